"""The nine data sets of the paper, whose settings a set without its own takes and how a report says so."""

from __future__ import annotations

from collections.abc import Iterable

from gread.settings.config import Config
from gread.settings.presets import find_preset

SETS = ("texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed")
REACTIONS = ("BS", "F", "AC", "Z", "ST", "FB", "FB*")
#: Whose published settings a set takes that has none.
BORROWS = {
    "cornell": "cornell_old",
    "chameleon_filtered": "chameleon",
    "squirrel_filtered": "squirrel",
    "karate": "texas",
    "digits": "cora",
}
#: What a report says where no graph of its run has printed numbers.
NOTHING_COMPARED = "None of the graphs of this run is in the paper's table, so that nothing is compared."
#: Reactions whose flow is linear, so that it can be computed exactly.
LINEAR = ("BS", "ST", "FB", "FB*", "diffusion")
#: The reactions inside tanh, as the option of the authors' code has them.
BOUNDED = {
    "F": "-alpha*L@H + beta*tanh(H*(1 - H))",
    "AC": "-alpha*L@H + beta*tanh(H*(1 - H**2))",
    "Z": "-alpha*L@H + beta*tanh(H*(H - H**2))",
}


def settings_set(dataset: str) -> str:
    """The set whose published settings are taken.

    >>> settings_set("karate"), settings_set("cora")
    ('texas', 'cora')
    """
    return BORROWS.get(dataset, dataset)


def published_config(kind: str, reaction: str, dataset: str) -> Config:
    """The paper's or the authors' settings of a reaction on a set, or on the one that it borrows from.

    >>> published_config("paper", "BS", "karate").model.time
    1.46
    """
    return find_preset(kind, reaction, settings_set(dataset)).config


def departures(sets: Iterable[str], epochs: int, hidden: int, word: str = "for") -> str:
    """What a text says behind "the published settings": whose they are where a set has none, and what replaces them.

    Args:
        sets: the data sets of a run.
        epochs: those that replace the published ones; 0 for none.
        hidden: the channels that do; 0 for none.
        word: the preposition before a lender.

    Returns:
        Words that begin with a space or a comma; none where every set has its own settings and all of them are kept.

    Example:
        >>> departures(["cora", "film"], 0, 0)
        ''
        >>> departures(["karate"], 15, 8)
        ' for texas, since karate has none, but 15 epochs and 8 channels'
        >>> departures(["cora", "karate"], 0, 8)
        ', on karate, which has none, those for texas, but 8 channels'
    """
    asked = dict.fromkeys(sets)
    lenders = {name: settings_set(name) for name in asked if name in BORROWS}
    if len(lenders) < len(asked):
        told = [f", on {name}, which has none, those {word} {lender}" for name, lender in lenders.items()]
    else:
        told = [f"{word} {lender}, since {name} has none" for name, lender in lenders.items()]
        told = [f" {' and '.join(told)}"] if told else []
    sizes = size_words(epochs, hidden)
    return "".join(told) + (f", but {sizes}" if sizes else "")


def size_words(epochs: int, hidden: int) -> str:
    """Epochs and channels that replace the published ones, where these are not 0.

    >>> size_words(15, 8), size_words(0, 8), size_words(0, 0)
    ('15 epochs and 8 channels', '8 channels', '')
    """
    return " and ".join(f"{count} {what}" for count, what in ((epochs, "epochs"), (hidden, "channels")) if count)


def cited(tables: str, *sets: str) -> str:
    """The tables or figures that a statement is from, in brackets; nothing for a set that the paper does not have.

    >>> cited("Table 24", "cora"), cited("Table 24", "karate")
    (' (Table 24)', '')
    """
    return f" ({tables})" if set(sets) <= set(SETS) else ""


def uncompared(sets: Iterable[str]) -> str:
    """A last sentence for a run without any set of the paper, which has nothing to be compared with; else nothing.

    >>> uncompared(["karate", "cora"]), uncompared(["karate"]).startswith(" None of the graphs")
    ('', True)
    """
    return "" if set(sets) & set(SETS) else f" {NOTHING_COMPARED}"


def released_reaction(reaction: str, beta: str) -> str:
    """FB and FB* as the authors' code computes them: with a vector beta both are the same function.

    >>> released_reaction("FB*", "scalar"), released_reaction("FB*", "channel"), released_reaction("FB", "scalar")
    ('FB*-released', 'FB-released', 'FB-released')
    """
    return "FB*-released" if reaction == "FB*" and beta == "scalar" else "FB-released"
