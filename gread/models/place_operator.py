"""A of a place as the settings of a network around an equation ask for it."""

from __future__ import annotations

from dataclasses import replace

import torch

from gread.models.place import Place
from gread.settings.gread_settings import HALF, GreadSettings
from rdgraph.graphs.operator import Operator


def storage_dtype(place: Place, config: GreadSettings) -> torch.dtype:
    """The precision in which the states of the flow are kept, and what they are multiplied with.

    >>> from rdgraph import generators
    >>> storage_dtype(Place.of(generators.path(3)), GreadSettings(storage="bfloat16"))
    torch.bfloat16
    """
    return torch.bfloat16 if config.storage == HALF else place.dtype


def make_operator(place: Place, config: GreadSettings) -> Operator:
    """A as a network asks for it; for attention only its entries count, and self-loops are entries."""
    place = replace(place, dtype=storage_dtype(place, config))
    if config.adjacency == "original":
        return place.operator(config.normalisation, config.self_loops)
    return place.operator("row", float(config.self_loops > 0))
