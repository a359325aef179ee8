"""The options of the ablations, and the configurations that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from studies.cells.cell import Cell, Variation, file_name, shrunk
from studies.cells.nine_sets import published_config

#: The adjacency: original with the symmetric normalisation, or attention, whose rows sum to one.
ADJACENCIES = {
    "OA": {"adjacency": "original", "normalisation": "symmetric"},
    "SA": {"adjacency": "soft", "normalisation": "row"},
}
#: beta: scalar or a value per channel; in (0, 1) or of either sign. The authors' code has SC in (0, 1) and VC of either
#: sign, so that SC against VC changes two things at once; SC± and VC+ change one.
BETAS = {
    "SC": {"beta": "scalar", "beta_link": "sigmoid"},
    "SC±": {"beta": "scalar", "beta_link": "free"},
    "VC+": {"beta": "channel", "beta_link": "sigmoid"},
    "VC": {"beta": "channel", "beta_link": "free"},
}
#: Name of an effect -> the options whose difference it is, and what alone differs between them.
EFFECTS = {
    "SA - OA": ("SA", "OA", "soft against original adjacency (Tables 5 and 20)"),
    "VC - SC": ("VC", "SC", "vector against scalar beta as published, kind and sign at once (Tables 6 and 21)"),
    "VC+ - SC": ("VC+", "SC", "vector against scalar, both in (0, 1): the kind alone"),
    "VC - SC±": ("VC", "SC±", "vector against scalar, both of either sign: the kind alone"),
    "SC± - SC": ("SC±", "SC", "either sign against (0, 1), both scalar: the sign alone"),
    "VC - VC+": ("VC", "VC+", "either sign against (0, 1), both vectors: the sign alone"),
}


def best_options(config: Config) -> tuple[str, str]:
    """The adjacency and the beta of published settings.

    >>> best_options(published_config("paper", "BS", "texas"))
    ('OA', 'VC')
    """
    model = config.model
    if not isinstance(model, GreadSettings):
        return "", ""
    return {"original": "OA", "soft": "SA"}[model.adjacency], {"scalar": "SC", "channel": "VC"}[model.beta]


def variations(config: Config, reaction: str) -> list[Variation]:
    """Both adjacencies with the published beta, and every beta with the published adjacency; none twice.

    >>> [tuple(v.labels.values())[1:] for v in variations(published_config("paper", "BS", "texas"), "BS")]
    [('OA', 'VC'), ('SA', 'VC'), ('OA', 'SC'), ('OA', 'SC±'), ('OA', 'VC+')]
    """
    adjacency, beta = best_options(config)
    pairs = dict.fromkeys([*((a, beta) for a in ADJACENCIES), *((adjacency, b) for b in BETAS)])
    return [
        Variation({"reaction": reaction, "adjacency": a, "beta": b}, config.updated({**ADJACENCIES[a], **BETAS[b]}))
        for a, b in pairs
    ]


def make_cells(s: Mapping[str, Any]) -> list[Cell]:
    """A cell for every reaction on every set."""
    found = []
    for dataset in s["sets"]:
        for reaction in s["reactions"]:
            config = shrunk(published_config("paper", reaction, dataset), s["epochs"], s["hidden"])
            made = tuple(variations(config, reaction))
            found.append(Cell(file_name(reaction, dataset), (dataset,), made, s["splits"], s["seeds"]))
    return found


def options_of(
    reaction: str, dataset: str, options: Sequence[str] = (*ADJACENCIES, *BETAS)
) -> dict[str, tuple[str, str]]:
    """Which adjacency and beta stand for an option on a set: the other one is the published one."""
    adjacency, beta = best_options(published_config("paper", reaction, dataset))
    return {o: (o, beta) if o in ADJACENCIES else (adjacency, o) for o in options}
