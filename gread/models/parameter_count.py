"""How many numbers a network learns."""

from __future__ import annotations

import torch

from gread.models.place import Place
from gread.settings.model_records import find_model
from gread.settings.model_settings import ModelSettings
from rdgraph import Graph


def count_parameters(settings: ModelSettings, graph: Graph, *, features: int, classes: int) -> int:
    """Parameters of one network with these settings on a graph, of which most networks need the number of nodes alone.

    >>> from gread.settings.config import Config
    >>> count_parameters(Config.of("mlp", hidden=4).model, Graph.from_edges([[], []], 3), features=5, classes=2)
    34
    """
    place = Place.of(graph, trusted=torch.ones(1, graph.num_nodes))
    model = find_model(settings.model).network(settings, place, features=features, classes=classes, seeds=[0])
    return sum(p.numel() for p in model.parameters())
