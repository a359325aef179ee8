"""`Layout`: the edges of a call as the rows of a matrix, found once for all calls with the same edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE
from rdgraph.graphs.operator import Operator, Pattern
from rdgraph.normalisations.registry import find_normalisation

#: Weights may differ by this many units of the precision and still count as equal.
ROUNDING = 8


@dataclass(frozen=True, eq=False)
class Layout:
    """Edges as the rows of a matrix: `place` (E,) is where in the pattern an edge went, `loops` (n,) its diagonal.

    `mirror` (entries,) is the place of the reversed entry, None where some edge has no reverse.

    >>> path = Layout.make(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3, has_loops=False)
    >>> path.operator(GreadSettings(normalisation="row", self_loops=0.0), torch.tensor([1.0, 1.0, 1.0, 3.0])).dense()
    tensor([[0.0000, 1.0000, 0.0000],
            [0.2500, 0.0000, 0.7500],
            [0.0000, 1.0000, 0.0000]])
    """

    edges: Tensor
    pattern: Pattern
    place: Tensor
    loops: Tensor | None
    mirror: Tensor | None

    @classmethod
    def make(cls, edge_index: Tensor, nodes: int, has_loops: bool) -> Layout:
        """Sort edges (2, E) between so many nodes, and self-loops where asked, by target and source."""
        edges = edge_index.detach().clone()
        count = edges.shape[1]
        if count and not (int(edges.min()) >= 0 and int(edges.max()) < nodes):
            raise InvalidArgument(
                f"expected edges between the nodes 0..{nodes - 1} of x, got {int(edges.min())}..{int(edges.max())}"
            )
        own = torch.arange(nodes if has_loops else 0, device=edges.device)
        source, target = (torch.cat([row.long(), own]) for row in edges)
        keys, place = torch.unique(target * nodes + source, return_inverse=True)
        rows, columns = keys.div(nodes, rounding_mode="floor"), keys.remainder(nodes)
        starts = torch.zeros(nodes + 1, dtype=torch.int64, device=edges.device)
        starts[1:] = torch.bincount(rows, minlength=nodes).cumsum(0)
        narrow = torch.int32 if max(nodes, len(keys)) < 2**31 else torch.int64
        pattern = Pattern(starts.to(narrow), columns.to(narrow))
        reverse = columns * nodes + rows
        mirror = torch.searchsorted(keys, reverse).clamp(max=max(len(keys) - 1, 0))
        is_mutual = bool((keys[mirror] == reverse).all())
        return cls(edges, pattern, place[:count], place[count:] if has_loops else None, mirror if is_mutual else None)

    def fits(self, edge_index: Tensor, nodes: int) -> bool:
        """Whether these are the same edges, by content, so that a change in place is seen."""
        known = self.edges
        is_alike = known.shape == edge_index.shape and known.device == edge_index.device
        return is_alike and self.pattern.num_nodes == nodes and torch.equal(known, edge_index)

    def operator(self, config: GreadSettings, weight: Tensor) -> Operator:
        """A of edge weights (E,), normalised as `rdgraph.graphs.normalisation` says, differentiable in them."""
        kind, pattern = config.normalisation, self.pattern
        values = weight.new_zeros(pattern.num_edges).index_add(0, self.place, weight)
        if self.loops is not None:
            values = values.index_add(0, self.loops, weight.new_full((pattern.num_nodes,), config.self_loops))
        record = find_normalisation(kind)
        assert record.entry is not None
        if record.is_symmetric:
            self._check_symmetric(values.detach(), kind)
        rows, columns = pattern.rows.long(), pattern.indices.long()
        zero = weight.new_zeros(pattern.num_nodes)
        sums, across = zero.index_add(0, rows, values.abs()), zero.index_add(0, columns, values.abs())
        own, column = (torch.where(total > 0, total, 1.0) for total in (sums, across))
        values = record.entry(values, own[rows], own[columns], column[columns])
        if record.identity and self.loops is not None:
            values = values.index_add(0, self.loops, weight.new_full((pattern.num_nodes,), record.identity))
        return Operator(pattern, values, kind, config.self_loops, sums[:, None] if record.has_degrees else None)

    def _check_symmetric(self, values: Tensor, kind: str) -> None:
        tolerance = max(SYMMETRY_TOLERANCE, ROUNDING * torch.finfo(values.dtype).eps)
        reverse = None if self.mirror is None else values[self.mirror]
        if reverse is None or bool(((values - reverse).abs() > tolerance * values.abs()).any()):
            raise InvalidArgument(
                f"expected an undirected graph for the {kind} normalisation, got edges whose reverse is missing or "
                "weighs differently; add the reversed edges, or take normalisation='row'"
            )


def check_edges(edge_index: Any) -> None:
    """Whether this is what PyTorch Geometric calls an edge_index; raises with what was expected."""
    is_fit = (
        isinstance(edge_index, Tensor) and edge_index.layout == torch.strided and not edge_index.is_floating_point()
    )
    if not is_fit or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        got = f"{edge_index.dtype} {tuple(edge_index.shape)}" if isinstance(edge_index, Tensor) else type(edge_index)
        raise InvalidArgument(
            f"expected edge_index of shape (2, edges), whole numbers, sources over targets, got {got}"
        )


def read_weights(edge_weight: Tensor | None, edge_index: Tensor, x: Tensor) -> Tensor:
    """Weights (E,) in the precision of x, float32 at least, since degrees are summed; ones where there are none."""
    edges, wide = edge_index.shape[1], torch.promote_types(x.dtype, torch.float32)
    if edge_weight is None:
        return x.new_ones(edges, dtype=wide)
    if edge_weight.shape != (edges,):
        raise InvalidArgument(f"expected edge_weight of shape ({edges},), one per edge, got {tuple(edge_weight.shape)}")
    weight = edge_weight.to(wide)
    if not bool(torch.isfinite(weight.detach().abs().sum())):
        raise InvalidArgument(f"expected finite weights whose sum {wide} holds, got others in edge_weight; scale them")
    return weight
