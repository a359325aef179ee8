"""Published settings and accuracies: counted, and figures typed from the tables beside what the presets say."""

from __future__ import annotations

from collections import Counter

import pytest

from gread.settings.presets import find_preset, find_published, presets, published_results
from rdgraph.errors import FileError, InvalidArgument, UnknownName
from rdgraph.systems.catalogue import catalogue

DATASETS = {"texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed"}
#: Sets that were published after the paper, with settings of tuned networks.
LATER = {"minesweeper", "squirrel_filtered", "chameleon_filtered"}
REACTIONS = {"F", "AC", "Z", "BS", "ST", "FB", "FB*"}


def test_every_reaction_on_every_data_set():
    kinds = Counter(p.name.split("/")[0] for p in presets())
    assert {kind: kinds[kind] for kind in ("paper", "authors")} == {"paper": 63, "authors": 9}
    assert set(kinds) == {"paper", "authors", "modern", "published"}
    assert {(p.reaction, p.dataset) for p in presets() if p.name.startswith("paper")} == {
        (r, d) for r in REACTIONS for d in DATASETS
    }
    assert {p.dataset for p in presets() if p.name.startswith("authors")} == DATASETS
    assert {p.reaction for p in presets() if p.name.startswith("authors")} == {"BS"}
    assert len({p.name for p in presets()}) == len(presets())
    for preset in presets():
        assert preset.source
        if preset.name.startswith("published/"):
            assert preset.name == f"published/{preset.config.model.model}/{preset.dataset}"
            assert preset.dataset in DATASETS | LATER
        else:
            assert preset.config.gread.reaction == preset.reaction
            assert preset.reaction in catalogue


#: GREAD (Choi et al., ICML 2023), appendix, tables of the best settings: reaction, data set, adjacency, alpha, beta,
#: learning rate, weight decay, input dropout, dropout, hidden, step, time, solver.
PAPER = [
    ("BS", "texas", "original", "scalar", "channel", 0.01, 0.0247, 0.47, 0.48, 128, 1.0, 1.46, "euler"),
    ("BS", "squirrel", "original", "channel", "channel", 0.0171, 0.0, 0.52, 0.09, 256, 0.75, 5.70, "euler"),
    ("BS", "cora", "soft", "channel", "scalar", 0.0105, 0.006, 0.53, 0.45, 64, 0.25, 3.49, "rk4"),
    ("F", "texas", "soft", "channel", "channel", 0.0113, 0.0079, 0.46, 0.38, 256, 1.0, 1.26, "euler"),
    ("F", "wisconsin", "soft", "scalar", "channel", 0.0094, 0.0057, 0.41, 0.05, 64, 0.1, 0.12, "rk4"),
    ("AC", "cora", "soft", "scalar", "channel", 0.0039, 0.0469, 0.4, 0.4, 128, 0.1, 3.52, "euler"),
    ("Z", "film", "soft", "scalar", "channel", 0.0023, 0.0011, 0.48, 0.48, 64, 0.2, 0.75, "rk4"),
    ("ST", "chameleon", "soft", "channel", "channel", 0.0077, 0.0, 0.65, 0.09, 256, 1.0, 1.0, "euler"),
    ("FB", "citeseer", "original", "channel", "scalar", 0.0012, 0.0042, 0.45, 0.54, 128, 0.6, 1.5, "rk4"),
    ("FB*", "cornell", "soft", "scalar", "scalar", 0.0072, 0.0169, 0.36, 0.19, 128, 0.1, 0.2, "euler"),
    ("FB*", "pubmed", "soft", "scalar", "channel", 0.0166, 0.0005, 0.35, 0.22, 128, 1.0, 1.4, "rk4"),
]


@pytest.mark.parametrize("row", PAPER, ids=lambda row: f"{row[0]}-{row[1]}")
def test_settings_of_the_paper(row):
    config = find_preset("paper", row[0], row[1]).config
    m, t = config.model, config.training
    found = (
        m.adjacency, m.alpha, m.beta, t.learning_rate, t.weight_decay, m.input_dropout, m.dropout, m.hidden, m.step,
        m.time, m.method,
    )  # fmt: skip
    assert found == row[2:]
    assert m.normalisation == ("symmetric" if m.adjacency == "original" else "row")
    assert t.epochs == 200


def test_settings_of_the_authors():
    """jeongwhanchoi/GREAD, src/gread_params.py: rows of Texas and Wisconsin, and Cornell."""
    texas = find_preset("authors", "BS", "texas").config
    assert texas.model.time == 1.4607185193289032
    assert texas.training.learning_rate == 0.01882477235894058
    assert texas.training.weight_decay == 0.02466898106256942
    assert (texas.model.input_dropout, texas.model.dropout) == (0.4662723384814147, 0.4772766211800558)
    assert (texas.model.self_loops, texas.model.relu, texas.model.method, texas.model.step) == (
        0.0,
        False,
        "euler",
        1.0,
    )
    wisconsin = find_preset("authors", "BS", "wisconsin").config
    assert (wisconsin.model.hidden, wisconsin.model.relu, wisconsin.model.normalisation) == (256, True, "row")
    cornell = find_preset("authors", "BS", "cornell").config
    assert (cornell.model.encoder_mlp, cornell.model.self_loops, cornell.model.time) == (True, 1.0, 0.11564783557675194)


def test_what_the_paper_leaves_open_comes_from_the_authors_and_says_so():
    for preset in presets():
        if not preset.name.startswith("paper"):
            continue
        own, other = preset.config.model, find_preset("authors", "BS", preset.dataset).config.model
        for name in ("self_loops", "encoder_mlp", "decoder_mlp", "relu"):
            assert getattr(own, name) == getattr(other, name)
        assert "gread_params.py" in preset.source


def test_cornell_means_the_old_graph():
    for name in ("cornell", "cornell_old"):
        preset = find_preset("paper", "BS", name)
        assert (preset.name, preset.dataset) == ("paper/BS/cornell_old", "cornell_old")
    assert preset.config.model.step == 0.2


def test_presets_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(UnknownName, match="expected a preset, got 'papr'; did you mean 'paper'"):
        find_preset("papr", "BS", "cora")
    with pytest.raises(InvalidArgument, match="expected one of the 9 authors presets, got F on cora"):
        find_preset("authors", "F", "cora")
    with pytest.raises(InvalidArgument, match="expected one of the 63 paper presets, got BS on karate"):
        find_preset("paper", "BS", "karate")
    with pytest.raises(FileError, match="No such file"):
        find_preset(str(tmp_path / "none.toml"), "BS", "cora")


def test_a_file_serves_as_a_preset(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[model]\nhidden = 12\n", encoding="utf-8")
    preset = find_preset(str(file), "BS", "karate")
    assert (preset.config.model.hidden, preset.dataset, preset.source) == (12, "karate", "file mine.toml")


#: GREAD, large table of results: method, data set, mean, standard deviation.
RESULTS = [
    ("MLP", "texas", 80.81, 4.75),
    ("MLP", "cornell_old", 81.89, 6.4),
    ("GREAD-BS", "texas", 88.92, 3.72),
    ("GREAD-BS", "cora", 88.57, 0.66),
    ("GREAD-F", "squirrel", 46.16, 1.44),
    ("GREAD-Z", "texas", 87.3, 5.68),
    ("GREAD-FB*", "pubmed", 90.08, 0.46),
]


@pytest.mark.parametrize("row", RESULTS, ids=str)
def test_published_accuracies(row):
    found = find_published(row[0], row[1])
    assert found is not None
    assert (found.mean, found.std) == row[2:]


def test_published_accuracies_are_36_methods_on_nine_data_sets():
    assert len({p.method for p in published_results()}) == 36
    assert {p.dataset for p in published_results()} == DATASETS
    assert {f"GREAD-{r}" for r in REACTIONS} <= {p.method for p in published_results()}
    assert all(0 < p.mean < 100 for p in published_results())
    assert find_published("GREAD-BS", "karate") is None
    assert find_published("nobody", "cora") is None
