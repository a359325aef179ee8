"""The operators beside A that a field holds: read from what the user gives, checked against what was said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.lowering.operator_application import Application, application
from rdgraph.systems.further_operators import FurtherOperators

#: How far weights may be off what was said of an operator, relative to the largest.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


@dataclass(frozen=True)
class HeldOperators:
    """Operators by letter; they move, and are cut to members, with the field that holds them."""

    entries: Mapping[str, Operator] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    @property
    def weights(self) -> tuple[Tensor, ...]:
        return tuple(held.weights for held in self.entries.values())

    def application(self, name: str, dtype: torch.dtype) -> Application:
        """B(x, scale, (factor, value), ...) = scale*(B@x) + the sum of factor*value."""
        return application(self.entries[name].current(), dtype)

    def moved(self, fn: Callable[[Tensor], Tensor]) -> HeldOperators:
        """Those on another device or in another precision, where `fn` puts tensors."""
        return self._each(lambda held: moved_operator(held, fn(held.weights), fn))

    def member(self, place: tuple[int, ...]) -> HeldOperators:
        """Those of one member of the batch."""
        return self._each(lambda held: held.member(place).prepare())

    def members(self, index: Tensor) -> HeldOperators:
        """Those of some members, counted through the flattened batch."""
        return self._each(lambda held: held.members(index).prepare())

    def _each(self, change: Callable[[Operator], Operator]) -> HeldOperators:
        return HeldOperators({name: change(held) for name, held in self.entries.items()})


def moved_operator(held: Operator, weights: Tensor, fn: Callable[[Tensor], Tensor]) -> Operator:
    """An operator beside weights that were moved by `fn`, which moves its degrees too."""
    known = held.current()
    degree = None if known.degree is None else fn(known.degree)
    return replace(known, pattern=known.pattern.to(weights.device), weights=weights, degree=degree).prepare()


def reweighted_operator(held: Operator, weights: Tensor) -> Operator:
    """An operator with the weights that it has now: others than the first ones are free; where L = D - A, D is theirs.

    >>> from rdgraph import generators
    >>> ring = generators.ring(3).operator("row")
    >>> reweighted_operator(ring, ring.weights) is ring, reweighted_operator(ring, 2 * ring.weights).normalisation
    (True, 'free')
    """
    has_degrees = held.record.has_degrees
    follows = has_degrees and held.degree is not None and held.degree.requires_grad
    if held.weights is weights and not follows:
        return held.current()
    kind, degree = (held.normalisation, None) if has_degrees else ("free", held.degree)
    return held.with_weights(weights, kind, degree)


def read_operators(
    given: Mapping[str, Any], declared: FurtherOperators, beside: Operator, batch: tuple[int, ...]
) -> HeldOperators:
    """What the user gives as operators beside A; every declared one has a value, and nothing else has."""
    for name in given:
        if name not in declared.names:
            raise UnknownName("operator of this system", name, declared.names)
    missing = [name for name in declared.names if name not in given]
    if missing:
        raise InvalidArgument(
            f"expected a value for every operator, got none for {', '.join(missing)}; pass "
            f"operators={{{missing[0]!r}: ...}}"
        )
    found = {}
    for name, value in given.items():
        held = _operator(name, value).to(device=beside.device, dtype=beside.dtype)
        if held.num_nodes != beside.num_nodes:
            raise InvalidArgument(f"expected {name} on {beside.num_nodes} nodes, as A is, got {held.num_nodes}")
        if held.batch not in ((), batch):
            raise InvalidArgument(f"expected weights of {name} without a batch or for {batch}, got {held.batch}")
        _check_facts(name, held, declared.facts(name))
        found[name] = held.prepare()
    return HeldOperators(found)


def _operator(name: str, value: Any) -> Operator:
    if isinstance(value, Operator):
        return value
    if scipy.sparse.issparse(value) or (isinstance(value, np.ndarray | Tensor) and value.ndim == 2):
        rows = scipy.sparse.csr_array(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)
        rows.sort_indices()
        return Operator.from_csr(rows.indptr, rows.indices, torch.as_tensor(rows.data, dtype=torch.float64))
    raise InvalidArgument(
        f"expected {name} as an Operator, a scipy sparse or a dense matrix, got {type(value).__name__}; make one with "
        "graph.operator(...)"
    )


def _check_facts(name: str, held: Operator, facts: tuple[str, ...]) -> None:
    """Whether the weights are what the equation says of them; where it says nothing of them the device is not asked."""
    said = [fact for fact in facts if fact in WEIGHT_FACTS]
    if not said:
        return
    weights = torch.atleast_2d(held.weights.detach()).flatten(0, -2).cpu().double().numpy()
    rows, columns = held.pattern.rows.cpu().numpy(), held.pattern.indices.cpu().numpy()
    size = np.abs(weights).max(initial=1.0) * TOLERANCE.get(held.dtype, 1e-2)
    for member in weights:
        matrix = scipy.sparse.csr_array((member, (rows, columns)), shape=(held.num_nodes, held.num_nodes))
        for fact in said:
            if not WEIGHT_FACTS[fact](matrix, size):
                raise InvalidArgument(f"expected {name} to be {fact}, as the equation says, got weights that are not")


def _is_stochastic(matrix: Any, size: float) -> bool:
    sums = np.abs(matrix.sum(1) - 1).max()
    return bool(matrix.data.min(initial=0.0) >= -size and sums <= size * matrix.shape[0])


#: What an equation may say of the weights of an operator: whether it holds for a matrix, up to rounding.
WEIGHT_FACTS: dict[str, Callable[[Any, float], bool]] = {
    "symmetric": lambda matrix, size: bool(abs(matrix - matrix.T).max() <= size),
    "antisymmetric": lambda matrix, size: bool(abs(matrix + matrix.T).max() <= size),
    "stochastic": _is_stochastic,
}
