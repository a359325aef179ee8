"""The entries of an operator as measures need them: places, reverse edges, signs; found once per operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE
from rdgraph.graphs.operator import Operator

#: What was found out about an operator, with the version of its weights that it holds for.
_found: WeakKeyDictionary[Operator, tuple[int, dict[str, Any]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class OperatorEntries:
    """The entries [i, j] of an operator, E of them: rows i, columns j, weights (*batch, E) in float64.

    `reverse` (E,) is the place of [j, i] for every [i, j], None where the pattern lacks one. `count` (*batch, n) is the
    number of non-zero entries of every row. Weights that differ by less than the part `tolerance` differ by rounding.
    """

    rows: Tensor
    columns: Tensor
    weights: Tensor
    reverse: Tensor | None
    count: Tensor
    tolerance: float

    @cached_property
    def is_signed(self) -> bool:
        """Some weight is negative."""
        return bool((self.weights < 0).any())

    @cached_property
    def is_two_way(self) -> bool:
        """Every edge has its reverse, whatever the two weights."""
        return self.reverse is not None and bool(((self.weights != 0) == (self.weights[..., self.reverse] != 0)).all())

    @cached_property
    def is_undirected(self) -> bool:
        """Every edge has its reverse with the same weight, up to rounding."""
        if self.reverse is None:
            return False
        other = self.weights[..., self.reverse]
        size = torch.maximum(self.weights.abs(), other.abs())
        return bool(((self.weights - other).abs() <= self.tolerance * size).all())

    @cached_property
    def once(self) -> tuple[Tensor, Tensor | None]:
        """Entries off the diagonal, of a pattern that has every reverse those above it beside their reverses."""
        if self.reverse is None:
            return torch.nonzero(self.rows != self.columns)[:, 0], None
        above = torch.nonzero(self.rows < self.columns)[:, 0]
        return above, self.reverse[above]


def entries(op: Operator) -> OperatorEntries:
    """The entries of an operator, without gradient.

    >>> from rdgraph.graphs.generators import path
    >>> found = entries(path(3).operator("row"))
    >>> found.is_two_way, found.is_undirected, found.count
    (True, False, tensor([1., 2., 1.], dtype=torch.float64))
    """
    found: OperatorEntries = remembered(op, _find_entries)
    return found


def remembered(op: Operator, find: Callable[[Operator], Any]) -> Any:
    """find(op), computed once, and again only where the weights were changed in place.

    What `find` returns must not hold `op` itself: an operator that nobody uses any more is forgotten.
    """
    version = 0 if op.weights.is_inference() else op.weights._version
    if op not in _found or _found[op][0] != version:
        _found[op] = version, {}
    known = _found[op][1]
    if find.__name__ not in known:
        with torch.no_grad():
            known[find.__name__] = find(op)
    return known[find.__name__]


def rounding(op: Operator) -> float:
    """The part of a number that counts as rounding in the operator's precision."""
    return max(SYMMETRY_TOLERANCE, 64 * torch.finfo(op.dtype).eps)


def _find_entries(op: Operator) -> OperatorEntries:
    rows, columns = op.pattern.rows.long(), op.pattern.indices.long()
    weights = op.weights.detach().double()
    there, back = (a * op.num_nodes + b for a, b in ((rows, columns), (columns, rows)))
    order, order_back = torch.argsort(there), torch.argsort(back)
    reverse = None
    if torch.equal(there[order], back[order_back]):
        reverse = torch.empty_like(order)
        reverse[order] = order_back
    count = weights.new_zeros((*op.batch, op.num_nodes)).index_add(-1, rows, (weights != 0).double())
    return OperatorEntries(rows, columns, weights, reverse, count, rounding(op))
