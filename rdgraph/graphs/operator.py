"""`Operator`: the sparse matrix A of a graph on a device, with shared or per-member edge weights.

Normalisation and self-loops say where the weights come from: symmetric D^-1/2 A D^-1/2, row D^-1 A, column A D^-1,
none A itself (then L = D - A, otherwise L = I - A), free for weights of unknown kind. Claimed properties of weights are
verified in `from_csr` and `with_weights`, and are dropped once the weights are changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.kernels import torch_reference as plain
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.graphs.kernels.row_order import Rows
from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE
from rdgraph.vocabulary.normalisations import Normalisation, find_normalisation

# ---------------------------------------------------------------------- weight checks
# Checks that weights have the normalisation they are declared with, and the norms that follow from it.
#
# Weights of `row` have rows whose absolute values add up to 1 (or to 0, at a node without edges), `column` columns;
# `symmetric` weights equal their transpose and |A| has no eigenvalue above 1. Integrators rely on |A| <= 1 in the
# maximum norm, the 1-norm and the 2-norm: a series is truncated where that norm bounds the rest.

#: Sums and eigenvalues may differ from 1 by this part: of 512 products it changes the bound of the error by half a
#: percent. Weights of a coarse precision may differ by its rounding.
TOLERANCE, ROUNDING = 1e-5, 2.0
#: Matrices up to this size get all their eigenvalues at once.
_DENSE = 64


def absolute_sums(places: Tensor, weights: Tensor, nodes: int) -> Tensor:
    """Sums of |weight| (*batch, E) over equal `places` (E,), differentiable: (*batch, n).

    >>> absolute_sums(torch.tensor([0, 0, 2]), torch.tensor([1.0, -2.0, 3.0]), 3)
    tensor([3., 0., 3.])
    """
    zero = weights.new_zeros((*weights.shape[:-1], nodes))
    return zero.index_add(-1, places.long(), weights.abs())


def check_normalisation(rows: Tensor, columns: Tensor, weights: Tensor, nodes: int, normalisation: str) -> None:
    """Raise unless weights (*batch, E) of the entries [rows, columns] have the properties of a normalisation."""
    known = weights.detach().double()
    tolerance = max(TOLERANCE, ROUNDING * torch.finfo(weights.dtype).eps)
    record = find_normalisation(normalisation)
    if record.row_stochastic or record.norm == "inf":
        _check_sums(absolute_sums(rows, known, nodes), record, "row", tolerance)
    if record.column_stochastic or record.norm == "1":
        _check_sums(absolute_sums(columns, known, nodes), record, "column", tolerance)
    if record.is_symmetric:
        _check_symmetry(rows.long(), columns.long(), known, nodes, normalisation, torch.finfo(weights.dtype).eps)
    if record.norm == "2":
        _check_radius(rows, columns, known, nodes, normalisation, tolerance)


def _check_sums(sums: Tensor, record: Normalisation, word: str, tolerance: float) -> None:
    stochastic = record.row_stochastic if word == "row" else record.column_stochastic
    fits = ((sums - 1).abs() <= tolerance) | (sums == 0) if stochastic else sums <= 1 + tolerance
    wrong = ~fits
    if bool(wrong.any()):
        node = int(wrong.nonzero()[0, -1])
        what = "sum to 1" if stochastic else "sum to at most 1"
        raise InvalidArgument(
            f"expected weights of the normalisation {record.name}, whose {word}s {what} in absolute value, "
            f"got {float(sums[wrong][0]):.6g} at node {node}; divide by the sums, or call the weights 'free'"
        )


def _check_symmetry(rows: Tensor, columns: Tensor, weights: Tensor, nodes: int, name: str, eps: float) -> None:
    there, back = rows * nodes + columns, columns * nodes + rows
    order, reverse = torch.argsort(there, stable=True), torch.argsort(back, stable=True)
    mine, other = weights[..., order], weights[..., reverse]
    tolerance = max(SYMMETRY_TOLERANCE, 8 * eps)
    is_mutual = torch.equal(there[order], back[reverse])
    if not is_mutual or not bool(((mine - other).abs() <= tolerance * torch.maximum(mine.abs(), other.abs())).all()):
        raise InvalidArgument(
            f"expected weights of the normalisation {name}, equal for both directions of every edge, got others; "
            "symmetrise them, or call the weights 'free'"
        )


def _check_radius(rows: Tensor, columns: Tensor, weights: Tensor, nodes: int, name: str, tolerance: float) -> None:
    if not weights.numel():
        return
    places = (rows.cpu().numpy(), columns.cpu().numpy())
    for member in weights.abs().reshape(-1, weights.shape[-1]).cpu().numpy():
        radius = spectral_radius(csr_array((member, places), shape=(nodes, nodes)))
        if not radius <= 1 + tolerance:
            raise InvalidArgument(
                f"expected weights of the normalisation {name}, with eigenvalues of |A| up to 1, got {radius:.6g}; "
                "divide w_ij by sqrt(d_i d_j), or call the weights 'free'"
            )


def spectral_radius(matrix: csr_array) -> float:
    """The largest eigenvalue of a symmetric matrix with entries >= 0, or 1 where that bounds it, up to the tolerance.

    For v > 0, max (A v)_i/v_i is an upper bound (Collatz, Wielandt); with v = sqrt(entries of the row) it is 1 for
    every unweighted graph.

    >>> spectral_radius(csr_array([[0.0, 0.5], [0.5, 0.0]])), spectral_radius(csr_array([[0.0, 3.0], [3.0, 0.0]]))
    (1.0, 3.0)
    """
    if not np.isfinite(matrix.data).all():
        return float("nan")
    start = np.sqrt(np.maximum(np.diff(matrix.indptr), 1.0))
    if any(float((matrix @ v / v).max()) <= 1 + TOLERANCE for v in (np.ones(len(start)), start)):
        return 1.0
    if len(start) <= _DENSE:
        return float(np.linalg.eigvalsh(matrix.toarray())[-1])
    return float(eigsh(matrix, k=1, which="LA", v0=start, tol=1e-7, return_eigenvectors=False)[0])


# ---------------------------------------------------------------------- operator
#: Operators with more entries get their transpose when a gradient first needs it.
MAX_EAGER_TRANSPOSE = 1 << 27


@dataclass(frozen=True, eq=False)
class Pattern:
    """The sparsity pattern of A: compressed rows (targets), listed columns (sources); int32 where that is enough."""

    indptr: Tensor
    indices: Tensor

    @classmethod
    def from_csr(cls, indptr: Any, indices: Any, device: Any = None) -> Pattern:
        """From compressed rows, checked: row i has the columns indices[indptr[i]:indptr[i+1]]."""
        pointer, columns = torch.as_tensor(indptr), torch.as_tensor(indices)
        nodes = len(pointer) - 1 if pointer.ndim == 1 else 0
        if columns.ndim != 1 or nodes < 1:
            raise InvalidArgument(
                f"expected indptr (n + 1,) with n >= 1 and indices (E,), "
                f"got {tuple(pointer.shape)} and {tuple(columns.shape)}"
            )
        if pointer[0] != 0 or pointer[-1] != len(columns) or bool((pointer.diff() < 0).any()):
            raise InvalidArgument(f"expected indptr to rise from 0 to {len(columns)}, the number of edges")
        if len(columns) and not (int(columns.min()) >= 0 and int(columns.max()) < nodes):
            raise InvalidArgument(
                f"expected column numbers in 0..{nodes - 1}, got {int(columns.min())}..{int(columns.max())}"
            )
        return cls.sorted(pointer.to(device), columns.to(device))

    @classmethod
    def sorted(cls, indptr: Tensor, indices: Tensor) -> Pattern:
        """From compressed rows that are known to be valid, on their device."""
        narrow = torch.int32 if max(len(indptr) - 1, len(indices)) < 2**31 else torch.int64
        return cls(indptr.to(narrow).contiguous(), indices.to(narrow).contiguous())

    @cached_property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def num_edges(self) -> int:
        return len(self.indices)

    @cached_property
    def rows(self) -> Tensor:
        """The row of every edge, (E,)."""
        return plain.edge_rows(self.indptr, self.num_edges)

    @cached_property
    def row_tensors(self) -> list[Tensor]:
        """The rows of A as the kernels read them; arranged on a GPU."""
        whole = Rows(self.indptr, self.indices)
        return (whole.arrange() if self.indptr.is_cuda else whole).tensors

    @cached_property
    def tensors(self) -> list[Tensor]:
        """The rows of A, of its transpose, the order of the transpose's edges and the inverse order."""
        order = torch.argsort(self.indices, stable=True)
        counts = torch.bincount(self.indices, minlength=self.num_nodes)
        indptr = torch.zeros_like(self.indptr)
        indptr[1:] = counts.cumsum(0)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order), device=order.device)
        other = Pattern(indptr, self.rows[order].to(self.indices.dtype))
        return [*self.row_tensors, *other.row_tensors, order, inverse]

    def to(self, device: Any) -> Pattern:
        return self if self.indptr.device == torch.device(device) else Pattern(
            self.indptr.to(device), self.indices.to(device)
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Operator:
    """A square sparse operator; `op @ x` is A@x for x of shape (*batch, nodes, channels).

    `weights` has shape (E,) or (*batch, E) and may require a gradient. `degree` (n, 1) or (*batch, n, 1) is set where
    L = D - A. The constructor trusts the declared normalisation; `from_csr` and `with_weights` verify it.

    >>> import torch, rdgraph as rd
    >>> ring = rd.graphs.Operator.from_csr([0, 1, 2], [1, 0], torch.ones(2), normalisation="row")
    >>> (ring @ torch.tensor([[1.0], [3.0]])).ravel()
    tensor([3., 1.])
    """

    pattern: Pattern
    weights: Tensor
    normalisation: str = "free"
    self_loops: float = 0.0
    _: KW_ONLY
    degree: Tensor | None = field(default=None)
    #: the properties of the normalisation
    record: Normalisation = field(init=False, repr=False)
    _changes: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_changes", _changes(self.weights))
        record = find_normalisation(self.normalisation)
        object.__setattr__(self, "record", record)
        if self.weights.ndim < 1 or self.weights.shape[-1] != self.pattern.num_edges:
            raise InvalidArgument(
                f"expected one weight per edge, (..., {self.pattern.num_edges}), got shape {tuple(self.weights.shape)}"
            )
        if not self.weights.is_floating_point():
            raise InvalidArgument(f"expected floating-point weights, got {self.weights.dtype}; use weights.float()")
        if self.weights.device != self.pattern.indptr.device:
            raise InvalidArgument(
                f"expected weights on {self.pattern.indptr.device} like the pattern, got {self.weights.device}; "
                "move the operator with op.to(device=...)"
            )
        if record.has_degrees and self.degree is None:
            raise InvalidArgument(
                f"expected degrees (n, 1) with the normalisation {record.name}, where L = D - A, got none; use "
                f"op.with_weights(weights, {record.name!r}), which computes them"
            )

    @classmethod
    def from_csr(
        cls,
        indptr: Any,
        indices: Any,
        weights: Tensor,
        *,
        normalisation: str = "free",
        self_loops: float = 0.0,
        degree: Tensor | None = None,
    ) -> Operator:
        """From compressed rows: row i has the columns indices[indptr[i]:indptr[i+1]]; the rest as in `with_weights`."""
        pattern = Pattern.from_csr(indptr, indices, weights.device)
        return cls(pattern, weights, "free", self_loops).with_weights(weights, normalisation, degree)

    @property
    def num_nodes(self) -> int:
        return self.pattern.num_nodes

    @property
    def num_edges(self) -> int:
        return self.pattern.num_edges

    @property
    def dtype(self) -> torch.dtype:
        return self.weights.dtype

    @property
    def device(self) -> torch.device:
        return self.weights.device

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(self.weights.shape[:-1])

    @property
    def is_symmetric(self) -> bool:
        """Whether A is known to equal its transpose."""
        return self.record.is_symmetric and self._is_current

    @property
    def is_normalised(self) -> bool:
        """Whether |A| <= 1 is known, as in the 2-norm (symmetric), the maximum norm (row) or the 1-norm (column)."""
        return self.record.norm is not None and self._is_current

    @property
    def _is_current(self) -> bool:
        """Whether the weights have not been changed in place since construction; assumed in traced calls."""
        return torch.compiler.is_compiling() or _changes(self.weights) == self._changes

    def current(self) -> Operator:
        """This operator, or after a change of the weights in place one that no longer claims their old properties.

        Its weights are free; where L = D - A with the sums of |A| in D, the degrees are recomputed.
        """
        if self._is_current:
            return self
        if self.record.has_degrees:
            return self.with_weights(self.weights, self.normalisation)
        return self.with_weights(self.weights, degree=self.degree)

    def __repr__(self) -> str:
        loops = f", self-loops {self.self_loops:g}" if self.self_loops else ""
        members = f", weights of {self.batch} members" if self.batch else ""
        return f"Operator({self.normalisation}{loops}: {self.num_nodes} nodes, {self.num_edges} entries{members})"

    def __matmul__(self, x: Tensor) -> Tensor:
        return self.product(x)

    def product(self, x: Tensor, scale: Tensor | None = None, terms: Sequence[tuple[Tensor, Tensor]] = ()) -> Tensor:
        """scale*(A@x) + sum of factor*value over `terms`, one pass on a GPU; (*batch, n, d) in and out.

        Scale and factors broadcast against (*batch, n, d); the scale is the same for all nodes.
        """
        if x.ndim < 2 or x.shape[-2] != self.num_nodes:
            raise InvalidArgument(f"expected a state (..., {self.num_nodes}, channels), got shape {tuple(x.shape)}")
        if x.device != self.device:
            raise InvalidArgument(f"expected a state on {self.device}, got {x.device}; move one of them with .to(...)")
        if scale is None and not terms and self._is_simple(x):
            return plain.matrix_product(self.pattern.indptr, self.pattern.indices, self.weights, x)
        self_factors = [k for k, y in terms if y is x]
        self_factor = self_factors[0] if len(self_factors) == 1 else None
        others = [(k, y) for k, y in terms if self_factor is None or y is not x]
        values, factors = [y for _, y in others], [k for k, _ in others]
        batch = _common(
            [x.shape[:-2], self.batch, *(y.shape[:-2] for y in values), *_leading([*factors, scale, self_factor])]
        )
        shape = (*batch, *x.shape[-2:])
        wanted = (x, self.weights, *values, *(k for k in (*factors, scale, self_factor) if k is not None))
        tracked = torch.is_grad_enabled() and any(t.requires_grad for t in wanted)
        is_plain = not tracked and not torch.compiler.is_compiling()
        weights = self.flat_weights(batch, folds=is_plain and ops.folds(x))
        call = ops.compute_spmm if is_plain else ops.spmm
        out = call(
            self._tensors(tracked), weights, _flat(x, shape), _flat_factor(scale, batch),
            _flat_factor(self_factor, batch), [k for k in (_flat_factor(k, batch) for k in factors) if k is not None],
            [_flat(y, shape) for y in values],
        )  # fmt: skip
        return out.view(shape)

    def _is_simple(self, x: Tensor) -> bool:
        """One state on a CPU with shared weights and no gradient: nothing to arrange."""
        weights = self.weights
        tracked = torch.is_grad_enabled() and (x.requires_grad or weights.requires_grad)
        plain_types = x.dtype == weights.dtype and x.dtype in (torch.float32, torch.float64)
        is_plain = x.ndim == 2 and weights.ndim == 1 and x.device.type == "cpu" and plain_types
        return is_plain and not tracked and not torch.compiler.is_compiling()

    def flat_weights(self, batch: tuple[int, ...], members: slice | None = None, folds: bool = False) -> Tensor:
        """The weights for states (*batch, n, d): (1, E) where all members share them, else (B, E), contiguous.

        With `members` the batch is of these alone; `folds` leaves out axes in front of the same numbers in memory.
        """
        if self.weights.numel() == self.num_edges:
            return self.weights.reshape(1, -1).contiguous()
        each = (self.weights if members is None else self.weights[members]).expand(*batch, -1)
        return (_folded(each) if folds else each).flatten(0, -2).contiguous()

    def _tensors(self, tracked: bool) -> list[Tensor]:
        """The tensors the operations need; without the transpose where A is symmetric or no gradient is recorded."""
        if not tracked or (self.is_symmetric and not self.weights.requires_grad):
            return self.pattern.row_tensors * 2
        return self.pattern.tensors

    def prepare(self) -> Operator:
        """Arrange the pattern now, on a GPU its transpose too, so that no traced or captured call has to."""
        self._tensors(tracked=self.device.type == "cuda" and self.num_edges <= MAX_EAGER_TRANSPOSE)
        return self

    def laplacian(self, x: Tensor) -> Tensor:
        """L@x: x - A@x, or D*x - A@x where the operator is not normalised."""
        minus, one, degree = x.new_full((), -1.0), x.new_ones(()), self.current().degree
        return self.product(x, minus, [(one if degree is None else degree.to(x.dtype), x)])

    def transpose(self) -> Operator:
        """The transposed operator, sharing the weights' gradient."""
        if self.is_symmetric:
            return self
        _, rows, orders = ops.parts(self.pattern.tensors)
        pattern = Pattern(rows[0], rows[1])
        pattern.__dict__["tensors"] = ops.transposed(self.pattern.tensors)
        known = self.current()
        kind = known.record.transposed
        return replace(known, pattern=pattern, weights=self.weights.index_select(-1, orders[0]), normalisation=kind)

    def with_weights(self, weights: Tensor, normalisation: str = "free", degree: Tensor | None = None) -> Operator:
        """The same sparsity with other weights, (E,) or (*batch, E), whose declared properties are verified.

        Weights of row and column have sums of 1, symmetric ones equal their transpose and have no eigenvalue beyond
        1, each up to rounding; with none, D holds the sums of |A| over the rows of these weights. Free weights may be
        anything, and with a `degree` L = D - A. See `with_stochastic_weights` for those of a softmax.

        >>> import torch, rdgraph as rd
        >>> ring = rd.graphs.Operator.from_csr([0, 2, 3, 4], [1, 2, 0, 0], torch.ones(4), normalisation="none")
        >>> ring.degree.ravel()
        tensor([2., 1., 1.])
        >>> ring.with_weights(torch.tensor([0.5, 0.5, 1.0, 1.0]), "row").norm
        ('inf', 1.0)
        """
        if degree is not None and normalisation != "free":
            raise InvalidArgument(
                f"expected no degree with the normalisation {normalisation}, which defines L, got one; leave it "
                "out, or call the weights 'free'"
            )
        free = replace(self, weights=weights, normalisation="free", degree=degree)
        rows, columns = self.pattern.rows, self.pattern.indices
        if find_normalisation(normalisation).has_degrees:
            degree = absolute_sums(rows, weights, self.num_nodes)[..., None]
        else:
            check_normalisation(rows, columns, weights, self.num_nodes, normalisation)
        return replace(free, normalisation=normalisation, degree=degree)

    def with_stochastic_weights(self, weights: Tensor) -> Operator:
        """The same sparsity with weights whose rows sum to 1 by construction: nothing is checked, and the device is not
        synchronised.

        Soft adjacency uses it: a softmax over the entries of every row.
        """
        return replace(self, weights=weights, normalisation="row", degree=None)

    def to(self, device: Any = None, dtype: torch.dtype | None = None) -> Operator:
        """The operator on another device or in another precision."""
        known, device = self.current(), None if device is None else read_device(device)
        weights = known.weights.to(device=device, dtype=dtype)
        degree = None if known.degree is None else known.degree.to(device=device, dtype=dtype)
        return replace(known, pattern=self.pattern.to(weights.device), weights=weights, degree=degree)

    def member(self, index: tuple[int, ...]) -> Operator:
        """The operator of one member of the batch; itself where all share it.

        >>> import torch, rdgraph as rd
        >>> both = rd.graphs.Operator.from_csr([0, 1, 2], [1, 0], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> both.member((1,)).weights, both.members(torch.tensor([1, 1, 0])).batch
        (tensor([3., 4.]), (3,))
        """
        return self._cut(lambda values, axes: values[index])

    def members(self, index: Tensor) -> Operator:
        """The operator of some members, counted by `index` (m,) through the flattened batch."""
        return self._cut(lambda values, axes: values.reshape(-1, *values.shape[-axes:]).index_select(0, index))

    def _cut(self, cut: Callable[[Tensor, int], Tensor]) -> Operator:
        """The operator with weights and degrees of some members; `cut` gets the number of axes of one member."""
        known = self.current()
        weights = cut(known.weights, 1) if known.batch else known.weights
        degree = known.degree if known.degree is None or known.degree.ndim == 2 else cut(known.degree, 2)
        return replace(known, weights=weights, degree=degree)

    def dense(self) -> Tensor:
        """The matrix, (*batch, n, n)."""
        matrix = self.weights.new_zeros((*self.batch, self.num_nodes, self.num_nodes))
        flat = self.pattern.rows.long() * self.num_nodes + self.pattern.indices.long()
        where = flat.expand(*self.batch, -1)
        return matrix.flatten(-2).scatter_add(-1, where, self.weights).view(matrix.shape)

    @property
    def norm(self) -> tuple[str, float]:
        """A norm and a bound of A in it: "2", "inf", "1" with 1 if symmetric, row, column; else row or column sums."""
        if self.is_normalised and self.record.norm is not None:
            return self.record.norm, 1.0
        if not self.num_edges:
            return "inf", 0.0
        size = self.weights.detach().double()
        sums = [float(absolute_sums(p, size, self.num_nodes).max()) for p in (self.pattern.rows, self.pattern.indices)]
        return ("inf", sums[0]) if sums[0] <= sums[1] else ("1", sums[1])


def _changes(weights: Tensor) -> int:
    """A count of the changes in place; tensors of the inference mode keep none."""
    return 0 if torch.compiler.is_compiling() or weights.is_inference() else weights._version


def _common(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all of these broadcast to; equal shapes, the usual case, are seen at once."""
    different = {tuple(shape) for shape in shapes if len(shape)}
    if len(different) <= 1:
        return different.pop() if different else ()
    return tuple(torch.broadcast_shapes(*different))


def _leading(factors: Sequence[Tensor | None]) -> list[torch.Size]:
    return [k.shape[:-2] for k in factors if k is not None and k.ndim > 2]


def _flat(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """(*batch, n, d) as (B, n, d), contiguous."""
    if x.shape == shape and x.is_contiguous():
        return x if len(shape) == 3 else x.view(-1, *shape[-2:])
    return x.expand(shape).reshape(-1, *shape[-2:]).contiguous()


def _folded(weights: Tensor) -> Tensor:
    """Weights (*batch, E) without the axes in front along which they are the same numbers in memory."""
    while weights.ndim > 2 and weights.stride(0) == 0:
        weights = weights[0]
    return weights


def _flat_factor(factor: Tensor | None, batch: tuple[int, ...]) -> Tensor | None:
    """A factor that broadcasts against (*batch, n, d) as one that broadcasts against (B, n, d)."""
    if factor is None or factor.ndim <= 2:
        return factor
    if all(size == 1 for size in factor.shape[:-2]):
        return factor.reshape(1, *factor.shape[-2:])
    return factor.expand(*batch, *factor.shape[-2:]).reshape(-1, *factor.shape[-2:])


# ---------------------------------------------------------------------- operator stack
# `stack`: operators of several graphs on the same nodes as one operator with weights per member.

#: What the members have to share, and how to make them.
_SHARED: dict[str, tuple[Callable[[Operator], Any], str]] = {
    "number of nodes": (lambda op: op.num_nodes, "pad the smaller graphs with isolated nodes"),
    "normalisation": (lambda op: op.normalisation, "make all of them with the same graph.operator(...)"),
    "self-loop weight": (lambda op: op.self_loops, "make all of them with the same graph.operator(...)"),
    "meaning of L (D - A or I - A)": (
        lambda op: "I - A" if op.degree is None else "D - A",
        "make all of them with the same graph.operator(...)",
    ),
    "dtype": (lambda op: op.dtype, "convert them with op.to(dtype=...)"),
    "device": (lambda op: op.device, "move them with op.to(device=...)"),
}


def stack(operators: Sequence[Operator]) -> Operator:
    """B operators on the same n nodes as one, batch (B,): member b of `stack(ops) @ H` is ops[b] @ H[b].

    The pattern is the union of the members' patterns, rows sorted; weights (B, E) are zero where a member has no edge,
    and gradients reach the members' weights. Degrees, where L = D - A, are (B, n, 1). Normalisation and self-loops are
    the members' own, the same for all.

    Args:
        operators: of graphs on the same nodes, of one normalisation, dtype and device.

    Returns:
        One operator with weights per member.

    Raises:
        InvalidArgument: without operators, or if they do not match.

    >>> import torch, rdgraph as rd
    >>> both = rd.graphs.stack([rd.generators.path(4).operator("none"), rd.generators.ring(4).operator("none")])
    >>> both
    Operator(none: 4 nodes, 8 entries, weights of (2,) members)
    >>> (both @ torch.ones(4, 1))[..., 0]
    tensor([[1., 2., 2., 1.],
            [2., 2., 2., 2.]])
    """
    members = list(operators)
    _check(members)
    members = [op.current() for op in members]
    first = members[0]
    if all(op.pattern is first.pattern for op in members):
        pattern, weights = first.pattern, torch.stack([op.weights for op in members])
        degree = _degrees(members)
        return Operator(pattern, weights, first.normalisation, first.self_loops, degree=degree)
    nodes = first.num_nodes
    keys = [op.pattern.rows.long() * nodes + op.pattern.indices.long() for op in members]
    union = torch.unique(torch.cat(keys))
    empty = first.weights.new_zeros(len(union))
    weights = torch.stack(
        [empty.index_add(0, torch.searchsorted(union, key), op.weights) for key, op in zip(keys, members, strict=True)]
    )
    rows, columns = union // nodes, union % nodes
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device=union.device)
    indptr[1:] = torch.bincount(rows, minlength=nodes).cumsum(0)
    pattern = Pattern.from_csr(indptr, columns)
    return Operator(pattern, weights, first.normalisation, first.self_loops, degree=_degrees(members))


def _degrees(members: Sequence[Operator]) -> Tensor | None:
    """(B, n, 1), or None where L = I - A."""
    degrees = [op.degree for op in members if op.degree is not None]
    return torch.stack(degrees) if degrees else None


def _check(members: Sequence[Any]) -> None:
    if not members:
        raise InvalidArgument("expected at least one operator to stack, got none")
    for number, op in enumerate(members):
        if not isinstance(op, Operator):
            raise InvalidArgument(
                f"expected operators, got {type(op).__name__} as member {number}; make one with graph.operator(...)"
            )
        if op.batch:
            raise InvalidArgument(
                f"expected operators with weights (E,), got member {number} with weights of batch {op.batch}; "
                "stack its members one by one"
            )
        for name, (read, remedy) in _SHARED.items():
            if read(op) != read(members[0]):
                raise InvalidArgument(
                    f"expected the same {name} in all members, got {read(members[0])} in member 0 and {read(op)} in "
                    f"member {number}; {remedy}"
                )
