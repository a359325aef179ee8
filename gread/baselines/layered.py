"""`Layered`: a plain graph network that shows what each of its layers gives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from rdgraph.errors import InvalidArgument, MissingDependency


class Layered(nn.Module):
    """x (n, features) and edge_index (2, E), sources then targets as in PyTorch Geometric, to logits (n, classes)."""

    def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """The states (n, d_k), from the first, H_0, to the last; widths may differ."""
        raise NotImplementedError

    def read(self, states: list[Tensor]) -> Tensor:
        """Logits (n, classes) from the states; the last one, unless a network reads out more."""
        return states[-1]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits (n, classes)."""
        return self.read(self.layers(x, edge_index))


@dataclass(frozen=True)
class LayeredSettings:
    """Width of the hidden layers, and the shares of features and of hidden entries that are dropped in training."""

    hidden: int = 64
    input_dropout: float = 0.5
    dropout: float = 0.5

    def __post_init__(self) -> None:
        self.check_whole("hidden")
        for name in ("input_dropout", "dropout"):
            self.check_share(name)

    def check_whole(self, name: str) -> None:
        """Raise unless a setting is a whole number of 1 or more."""
        value = getattr(self, name)
        if not (type(value) is int and value >= 1):
            raise InvalidArgument(f"expected a whole number {name} >= 1, got {value!r}")

    def check_share(self, name: str) -> None:
        """Raise unless a setting is a share that may be dropped."""
        value = getattr(self, name)
        if not (isinstance(value, int | float) and 0 <= value < 1):
            raise InvalidArgument(f"expected 0 <= {name} < 1, got {value!r}")


def pyg(module: str) -> Any:
    """A module of PyTorch Geometric, such as "nn"; an error that names the extra where it is not installed."""
    try:
        with warnings.catch_warnings():
            # Its import calls functions that torch has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            return import_module(f"torch_geometric.{module}")
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.partition(".")[0] != "torch_geometric":
            raise
        raise MissingDependency(
            "expected PyTorch Geometric, whose layers this network is made of, got an installation without; "
            "pip install 'rdgraph[pyg]'"
        ) from None


def dropped(x: Tensor, rate: float, training: bool) -> Tensor:
    """x with entries left out while training; x itself otherwise, so that no random number is drawn."""
    return torch.dropout(x, rate, True) if training and rate > 0 else x
