"""The nine data sets of the paper, whose settings a set without its own takes, and configurations by reaction."""

from __future__ import annotations

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


def released_reaction(reaction: str, beta: str) -> str:
    """FB and FB* as the authors' code computes them: with a vector beta both are the same function.

    >>> released_reaction("FB*", "scalar"), released_reaction("FB*", "channel"), released_reaction("FB", "scalar")
    ('FB*-released', 'FB-released', 'FB-released')
    """
    return "FB*-released" if reaction == "FB*" and beta == "scalar" else "FB-released"
