"""Words that the pages of small runs hold, and words that are true of full runs alone."""

from __future__ import annotations

#: What the small page of a study says of its run, and what is true of the full run alone.
SAID = {
    "homophily": (
        ("random features in place of those of Cora, one graph a level", "15 epochs, 8 channels",
         "given are T 1, learning rate 0.01", "graphs grown as the synthetic Cora is"),
        ("with features of Cora", "several graphs", "100 epochs", "T and learning rate", "three graphs"),
    ),
    "significance": (
        ("released for texas, since karate has none, but 15 epochs and 8 channels;", "nothing is compared",
         "GREAD-BS is better than GRAND on karate."),
        ("the settings that the authors released;", "karate (Table 24)", "printed: t", "beside those of Table 24"),
    ),
    "embeddings": (
        ("released settings for texas, since karate has none, but 20 epochs and 8 channels,",
         "On karate the flow leads to local clusters of one class."),
        ("released settings, a network", "(Figures 2 and 10)."),
    ),
    "depth": (
        ("on texas, since karate has none, but 15 epochs and 8 channels;", "nothing is compared",
         "GREAD-ST is better than GRAND++ at every depth on karate,", "With 4 layers on karate",
         "share the T published for texas"),
        ("on the same set", "in all data sets (Table 22)", "at every depth (Table 23)", "beside Tables 22 and 23"),
    ),
    "runtime": (
        ("One network at a time on karate", "8 channels", "over 3 epochs, 2 times", "judged here is karate",
         "an epoch of one network on karate: median", "The cost of an epoch on karate against T",
         "an epoch of one network on karate, training", "The cost of an epoch of GREAD-BS on karate",
         "An epoch of GREAD-BS on karate takes", "With euler the training time of GREAD on karate is"),
        ("One network at a time, as", "An epoch of GREAD-BS takes"),
    ),
    "sensitivity": (
        ("best settings for texas, since karate has none, but 15 epochs and 8 channels, and change T",),
        ("best settings and change T",),
    ),
    "ablation": (
        ("for texas, since karate has none, but 15 epochs and 8 channels;", "VC shows effectiveness for most cases."),
        ("(Tables 13 to 19);", "most cases (Tables 6 and 21)", "beside the paper&#39;s tables"),
    ),
    "wellposedness": (("settings for texas, since karate has none, but 15 epochs",), ("paper&#39;s settings. Stat",)),
    "classification": (("Every reading has 3 epochs and 8 channels instead", "karate of texas"), ()),
}  # fmt: skip
