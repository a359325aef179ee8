"""LINKX: Lim et al., "Large Scale Learning on Non-Homophilous Graphs: New Benchmarks and Strong Simple Methods",
NeurIPS 2021."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import BatchNorm
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings


@dataclass(frozen=True, kw_only=True)
class LINKXSettings(ModelSettings):
    """Settings of LINKX: linear layers of the perceptrons of the edges, of the features, and of both together."""

    model: ClassVar[str] = "linkx"

    input_dropout: float = 0.0
    layers: int = 2
    edge_layers: int = 1
    node_layers: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "layers", "edge_layers", "node_layers")


class LINKX(BatchedModel):
    """E = mlp(A), F = mlp(X), logits = mlp(relu(E + F + E W + F V + b)): adjacency and features apart, then together.

    A has the weights of the graph, so that the first layer of mlp(A) has a row for every node: the network knows the
    nodes by name, and nodes with the same neighbours are the same to it. In all three, layers but the last are relu,
    then batch norm, and dropout in that of both together. [E, F] times one matrix is written as two products, as
    torch-geometric does; the authors' W of a row for every entry of [E, F] starts smaller by sqrt(2). They do not drop
    features, which is a setting here.
    """

    settings: LINKXSettings

    def build(self) -> None:
        """The three perceptrons, and what joins the first two."""
        s = self.settings
        self.adjacency = self.place.operator("none")
        self.norms: dict[str, BatchNorm] = {}
        self.add_perceptron("edges", [self.place.nodes, *s.edge_layers * [s.hidden]])
        self.add_perceptron("nodes", [self.features, *s.node_layers * [s.hidden]])
        self.add_linear("join_edges", s.hidden, s.hidden)
        self.add_linear("join_nodes", s.hidden, s.hidden)
        self.add_perceptron("both", [*s.layers * [s.hidden], self.classes])

    def add_perceptron(self, name: str, widths: list[int]) -> None:
        """Linear layers between those widths, and a batch norm after all but the last."""
        for k, (inputs, outputs) in enumerate(pairwise(widths)):
            self.add_linear(f"{name}_{k}", inputs, outputs)
            if k + 2 < len(widths):
                self.norms[f"{name}_{k}"] = BatchNorm(self, f"{name}_{k}_norm", outputs)

    def go_on(self, name: str, first: Tensor, drop: Dropper, rate: str | None = None) -> Tensor:
        """The rest of a perceptron after its first linear layer."""
        h, k = first, 0
        while f"{name}_{k}" in self.norms:
            h = self.norms[f"{name}_{k}"](self, torch.relu(h), drop.is_training)
            h = drop(h, rate) if rate else h
            k += 1
            h = self.linear(f"{name}_{k}", h)
        return h

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """What the perceptrons of the edges and of the features say, and both together after the relu."""
        around = self.adjacency @ self.get_parameter("edges_0_weight") + self.shift("edges_0")
        edges = self.go_on("edges", around, drop)
        nodes = self.go_on("nodes", self.linear("nodes_0", drop.features(x)), drop)
        both = edges + nodes + self.linear("join_edges", edges) + self.linear("join_nodes", nodes)
        return [edges, nodes, torch.relu(both)]

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of both together."""
        return self.go_on("both", self.linear("both_0", states[-1]), drop, "dropout")


RECORDS = (
    ModelRecord(
        "linkx", "LINKX", "heterophily", source="Lim et al., NeurIPS 2021",
        rule="Y = mlp(relu(W [mlp(A), mlp(X)] + mlp(A) + mlp(X)))",
        settings=LINKXSettings, network=LINKX, published="LINKX",
    ),
)  # fmt: skip
