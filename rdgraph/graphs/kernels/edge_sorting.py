"""Edges sorted, added up and normalised on a device: what scipy does on the host, for large graphs.

Invalid edges are not reported here: the functions return None, and the host code repeats the check and raises. Sums are
taken row by row in the order of the entries, so that they are the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rdgraph.vocabulary.normalisations import Normalisation

#: Numbers of nodes up to here: a pair of nodes fits one 64-bit key.
MOST_NODES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Entries:
    """A square matrix by rows: indptr (n + 1,), columns (E,), both int64, and weights (E,) float64."""

    indptr: Tensor
    columns: Tensor
    weights: Tensor

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1

    def rows(self) -> Tensor:
        """The row of every entry, (E,)."""
        return torch.repeat_interleave(self.indptr.diff())

    def absolute_sums(self) -> Tensor:
        """Sums of |weight| over the rows, (n,)."""
        return torch.segment_reduce(self.weights.abs(), "sum", offsets=self.indptr)


def sorted_edges(
    edge_index: Any, nodes: int | None, weight: Any, *, duplicates: str, signed: bool, device: Any
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Edges (2, E) sorted by (target, source), every pair once, the weights and num_nodes; None where invalid.

    >>> sorted_edges(torch.tensor([[2, 0, 0], [0, 1, 1]]), None, None, duplicates="sum", signed=False, device="cpu")
    (array([[2, 0],
           [0, 1]]), array([1., 2.]), 3)
    """
    pairs = torch.as_tensor(edge_index, device=device)
    if pairs.ndim != 2 or len(pairs) != 2 or not pairs.numel() or pairs.is_floating_point() or pairs.is_complex():
        return None
    pairs = pairs.long()
    least, most = (int(x) for x in pairs.aminmax())
    count = most + 1 if nodes is None else nodes
    if least < 0 or most >= count or count > MOST_NODES:
        return None
    keys, order = torch.sort(pairs[1] * count + pairs[0], stable=True)
    fresh = torch.ones(len(keys), dtype=torch.bool, device=keys.device)
    torch.ne(keys[1:], keys[:-1], out=fresh[1:])
    starts = fresh.nonzero().ravel()
    given = None if weight is None else _read_weights(weight, order, signed)
    if weight is not None and given is None:
        return None
    sums = _added(given, fresh, starts, len(keys), duplicates)
    if sums is None:
        return None
    unique = keys[starts]
    if not bool((sums != 0).all()):
        unique, sums = unique[sums != 0], sums[sums != 0]
    ends = torch.stack([unique.remainder(count), unique.div(count, rounding_mode="floor")])
    return ends.cpu().numpy(), sums.cpu().numpy(), count


def _read_weights(weight: Any, order: Tensor, signed: bool) -> Tensor | None:
    given = torch.as_tensor(weight, device=order.device)
    if given.shape != order.shape or given.is_complex():
        return None
    given = given.double()[order]
    sound = given.isfinite().all() & (signed or (given >= 0).all())
    return given if bool(sound) else None


def _added(given: Tensor | None, fresh: Tensor, starts: Tensor, count: int, duplicates: str) -> Tensor | None:
    """The weights of the pairs, repeated ones combined as `duplicates` says; None where that is an error."""
    is_simple = len(starts) == count
    if is_simple or (duplicates == "once" and given is None):
        return torch.ones(len(starts), dtype=torch.float64, device=starts.device) if given is None else given[starts]
    if duplicates == "once" and given is not None:
        same = (given[1:] == given[:-1]) | fresh[1:]
        return given[starts] if bool(same.all()) else None
    if duplicates != "sum":
        return None
    ends = torch.cat([starts, starts.new_tensor([count])])
    if given is None:
        return ends.diff().double()
    sums = torch.segment_reduce(given, "sum", offsets=ends)
    return sums if bool(sums.isfinite().all()) else None


def normalised_entries(
    pairs: np.ndarray, weight: np.ndarray, nodes: int, record: Normalisation, self_loops: float, device: Any,
    tolerance: float,
) -> tuple[Entries, Tensor] | None:  # fmt: skip
    """The entries of the operator of sorted edges, and the sums of their absolute values over the rows (n,).

    None where the normalisation needs an undirected graph and this is none (weights may differ by a relative
    `tolerance`), or where sums are not finite.
    """
    source, target, weights = (torch.tensor(part, device=device) for part in (*pairs, weight))
    if record.is_symmetric and not _is_mutual(source, target, weights, nodes, tolerance):
        return None
    keys = target * nodes + source
    del source, target
    if self_loops:
        keys, weights = _with_diagonal(keys, weights, nodes, self_loops)
    entries = _entries(keys, weights, nodes)
    row_sums, columns, rows = entries.absolute_sums(), entries.columns, entries.rows()
    if not bool(row_sums.isfinite().all()):
        return None
    column = row_sums
    if not record.is_symmetric:
        order = torch.argsort(columns, stable=True)
        ends = _pointer(columns, nodes)
        column = torch.segment_reduce(weights[order].abs(), "sum", offsets=ends)
        if not bool(column.isfinite().all()):
            return None
    row_sums, column = (torch.where(d > 0, d, 1.0) for d in (row_sums, column))
    assert record.entry is not None  # free weights come from no graph
    values = record.entry(weights, row_sums[rows], row_sums[columns], column[columns])
    normalised = Entries(entries.indptr, columns, values)
    if record.identity:
        normalised = _entries(*_with_diagonal(rows * nodes + columns, values, nodes, record.identity), nodes)
    return normalised, normalised.absolute_sums()


def _is_mutual(source: Tensor, target: Tensor, weights: Tensor, nodes: int, tolerance: float) -> bool:
    """Whether every edge has its reverse, with the same weight."""
    back, order = torch.sort(source * nodes + target, stable=True)
    if not torch.equal(back, target * nodes + source):
        return False
    other = weights[order]
    size = torch.maximum(weights.abs(), other.abs())
    return bool(((weights - other).abs() <= tolerance * size).all())


def _with_diagonal(keys: Tensor, weights: Tensor, nodes: int, value: float) -> tuple[Tensor, Tensor]:
    """Sorted keys and weights of a matrix with a number added to its diagonal; entries that become zero are removed."""
    loops = torch.arange(nodes, device=keys.device) * (nodes + 1)
    places = torch.searchsorted(keys, loops).clamp(max=max(len(keys) - 1, 0))
    there = keys[places] == loops if len(keys) else torch.zeros_like(loops, dtype=torch.bool)
    weights = weights.clone()
    weights[places[there]] += value
    if bool((weights == 0).any()):
        keys, weights = keys[weights != 0], weights[weights != 0]
    new = loops[~there]
    joined, order = torch.sort(torch.cat([keys, new]), stable=True)
    return joined, torch.cat([weights, weights.new_full((len(new),), value)])[order]


def _entries(keys: Tensor, weights: Tensor, nodes: int) -> Entries:
    rows = keys.div(nodes, rounding_mode="floor")
    return Entries(_pointer(rows, nodes), keys - rows * nodes, weights)


def _pointer(places: Tensor, nodes: int) -> Tensor:
    """The number of entries with a row below each node, (n + 1,)."""
    pointer = torch.zeros(nodes + 1, dtype=torch.int64, device=places.device)
    pointer[1:] = torch.bincount(places, minlength=nodes).cumsum(0)
    return pointer
