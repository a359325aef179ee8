"""What a report about the synthetic Cora says of its run, from the settings of that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.homophily.levels import CORA, SAMPLE, settings_of_table
from studies.runs.uncertainty import reach

#: The graphs by the source of their features, and these features.
GRAPHS = {CORA: "the synthetic Cora", SAMPLE: "graphs grown as the synthetic Cora is, with random features"}
FEATURES = {CORA: "features of Cora", SAMPLE: "random features in place of those of Cora"}
#: Settings of Table 11 that all networks share, and those that they choose from.
SHARED = {"epochs": "epochs", "hidden": "channels", "dropout": "dropout", "input_dropout": "input dropout"}
CHOICES = {"adjacencies": "adjacency", "times": "T", "learning_rates": "learning rate", "weight_decays": "weight decay"}


def about(s: Mapping[str, Any]) -> str:
    """Which graphs were grown, with which settings networks were trained on them, and what they chose from."""
    table = settings_of_table(False)
    other = [word for name, word in SHARED.items() if s[name] != table[name]]
    but = f", but for {listed(other)}" if other else ""
    several = s["graphs"] > 1
    graphs = "several graphs a level with splits of their own" if several else "one graph a level with its own splits"
    return (
        f"Graphs are grown anew by the rule of Zhu et al. (2020) with {FEATURES[s['source']]}, {graphs}, since the "
        "paper does not release its own; the levels of a seed have the same nodes, features and splits, so that an "
        "MLP, which sees no edges, has the same accuracy at all of them. Settings follow Table 11"
        f"{but}: {s['epochs']} epochs, {s['hidden']} channels, Euler's method, dropout {s['dropout']:g}, input dropout "
        f"{s['input_dropout']:g}, alpha scalar and beta a vector, without self-loops. {choice_words(s)} Figure 6 "
        "prints no numbers, only curves. Verdicts take the graph as the unit, since its levels share nodes and splits: "
        f"{unit_words(s['graphs'])}"
    )


def choice_words(s: Mapping[str, Any]) -> str:
    """What every network chooses from, where there is more than one value, and what it is given."""
    asked = {
        "reactions choose": ("adjacencies", "times", "learning_rates") if s["reactions"] else (),
        "GRAND chooses": ("times", "learning_rates", "weight_decays") if "grand" in s["models"] else (),
        "the others choose": ("learning_rates", "weight_decays") if set(s["models"]) - {"grand"} else (),
    }
    told: list[str] = []
    for who, names in asked.items():
        if names:
            what = listed([CHOICES[name] for name in names if len(s[name]) > 1]) or "nothing"
            told.append(f"{who.rpartition(' ')[0] if told else who} {what}")
    alone = {word: s[name][0] for name, word in CHOICES.items() if len(s[name]) == 1}
    given = [f"{word} {value if isinstance(value, str) else f'{value:g}'}" for word, value in alone.items()]
    return (
        "At every level the mean validation accuracy chooses from a part of the printed space, which the paper "
        f"searched without saying what it chose: {', '.join(told)}, with the same epochs, channels and dropouts"
        + (f"; given are {listed(given)}." if given else ".")
    )


def unit_words(graphs: int) -> str:
    """How sure so many graphs can be.

    >>> unit_words(1)
    'one graph has no standard error, so that no difference is sure.'
    """
    if graphs == 1:
        return "one graph has no standard error, so that no difference is sure."
    return (
        f"with {'three' if graphs == 3 else graphs} graphs Student's quantile is {reach(1.0, graphs):.1f} standard "
        "errors, more where several differences are asked at once, so that only large differences are sure."
    )


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
