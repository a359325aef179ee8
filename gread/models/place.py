"""`Place`: the graph of networks on a device; it creates their operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs import stack
from rdgraph.graphs.operator import Operator

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Place:
    """One graph for all members, or one of equal size for each, on a device, in a precision.

    Args:
        graphs: The graph, or one for every member.
        device: The device of the tensors.
        dtype: Their precision.
        trusted: The nodes (M, n) whose labels are known in training, 1 or 0; None if unknown.

    >>> import gread, rdgraph as rd
    >>> place = gread.models.Place((rd.generators.path(3),))
    >>> place.operator("row").dense()
    tensor([[0.0000, 1.0000, 0.0000],
            [0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000]])
    """

    graphs: tuple[Graph, ...]
    device: Any = "cpu"
    dtype: torch.dtype = torch.float32
    trusted: Tensor | None = None
    _cache: dict[object, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        sizes = {graph.num_nodes for graph in self.graphs}
        if len(sizes) != 1:
            raise InvalidArgument(f"expected graphs with one number of nodes, got {', '.join(map(str, sorted(sizes)))}")

    @property
    def nodes(self) -> int:
        return self.graphs[0].num_nodes

    @property
    def is_shared(self) -> bool:
        """Whether all members share one graph."""
        return len(self.graphs) == 1

    def operator(self, normalisation: str = "symmetric", self_loops: float = 0.0) -> Operator:
        """A of the graph, with self-loops of that weight; several graphs are stacked: weights (M, E) on one pattern."""
        return self.derived(_itself, normalisation, self_loops)

    def derived(
        self, change: Callable[[Graph], Graph], normalisation: str = "symmetric", self_loops: float = 0.0
    ) -> Operator:
        """A of a graph derived from each graph, such as that of second neighbours; cached by function."""
        key = change, normalisation, self_loops, self.dtype

        def make() -> Operator:
            operators = [
                change(graph).operator(normalisation, self_loops=self_loops, device=self.device, dtype=self.dtype)
                for graph in self.graphs
            ]
            return (operators[0] if self.is_shared else stack(operators)).prepare()

        return self.once(key, make)

    def once(self, key: object, make: Callable[[], V]) -> V:
        """The result of `make`, cached under a key for all networks of this place."""
        if key not in self._cache:
            self._cache[key] = make()
        value: V = self._cache[key]
        return value

    def tensor(self, values: Any) -> Tensor:
        """Numbers as a tensor with the device and precision of this place."""
        return torch.as_tensor(values, device=self.device, dtype=self.dtype)

    @classmethod
    def of(cls, graph: Graph | Sequence[Graph], **options: Any) -> Place:
        """A place for one graph, or for one graph per member."""
        return cls((graph,) if isinstance(graph, Graph) else tuple(graph), **options)


def _itself(graph: Graph) -> Graph:
    return graph
