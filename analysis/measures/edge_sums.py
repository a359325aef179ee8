"""Quadratic forms of a state on a graph, as sums over edges: accurate where H is nearly constant, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from analysis.measures.state_checks import read_state
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- operator entries
# The entries of an operator for measures: indices, reverse edges, signs; computed once per operator.

#: Cached results about an operator, with the version of its weights.
_cache: WeakKeyDictionary[Operator, tuple[int, dict[str, Any]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class OperatorEntries:
    """The entries [i, j] of an operator, E of them: rows i, columns j, weights (*batch, E) in float64.

    `reverse` (E,) is the index of [j, i] for every [i, j], None if the pattern lacks one. `count` (*batch, n) is the
    number of nonzero entries of every row. Relative differences of weights below `tolerance` are rounding errors.
    """

    rows: Tensor
    columns: Tensor
    weights: Tensor
    reverse: Tensor | None
    count: Tensor
    tolerance: float

    @cached_property
    def is_signed(self) -> bool:
        """Whether some weight is negative."""
        return bool((self.weights < 0).any())

    @cached_property
    def is_two_way(self) -> bool:
        """True if every nonzero entry [i, j] has a nonzero reverse [j, i]; the two weights may differ."""
        return self.reverse is not None and bool(((self.weights != 0) == (self.weights[..., self.reverse] != 0)).all())

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge has its reverse with the same weight, up to rounding."""
        if self.reverse is None:
            return False
        other = self.weights[..., self.reverse]
        size = torch.maximum(self.weights.abs(), other.abs())
        return bool(((self.weights - other).abs() <= self.tolerance * size).all())

    @cached_property
    def once(self) -> tuple[Tensor, Tensor | None]:
        """Positions of the entries off the diagonal; one of each pair, and its reverse, if the pattern has reverses."""
        if self.reverse is None:
            return torch.nonzero(self.rows != self.columns)[:, 0], None
        above = torch.nonzero(self.rows < self.columns)[:, 0]
        return above, self.reverse[above]


def entries(op: Operator) -> OperatorEntries:
    """The entries of an operator, without gradient.

    >>> from rdgraph.graphs.generators import path
    >>> path_entries = entries(path(3).operator("row"))
    >>> path_entries.is_two_way, path_entries.is_undirected, path_entries.count
    (True, False, tensor([1., 2., 1.], dtype=torch.float64))
    """
    result: OperatorEntries = cached(op, _find_entries)
    return result


def cached(op: Operator, find: Callable[[Operator], Any]) -> Any:
    """find(op), computed once, and again only if the weights were changed in place.

    The result of `find` must not refer to `op` itself, so that an unused operator can be freed.
    """
    version = 0 if op.weights.is_inference() else op.weights._version
    if op not in _cache or _cache[op][0] != version:
        _cache[op] = version, {}
    known = _cache[op][1]
    if find.__name__ not in known:
        with torch.no_grad():
            known[find.__name__] = find(op)
    return known[find.__name__]


def rounding(op: Operator) -> float:
    """The relative error that counts as rounding in the operator's precision."""
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


# ---------------------------------------------------------------------- laplacian kernel
# The kernel of L on a graph of any number of components, and the symmetric form of a normalised operator.
#
# L = I - A, or D - A if the operator is not normalised. On a connected component of an undirected graph the kernel is
# spanned by one positive vector: sqrt(d) for `symmetric`, 1 for `row` and `none`, d for `column`, with d the degrees. A
# node without any entry in its row is a separate component: D - A has its indicator in the kernel, I - A does not,
# because there L h = h.

#: A projection shorter than this part of the vector is zero up to rounding.
MIN_PART = 1e-6


@dataclass(frozen=True, eq=False)
class Nullspace:
    """ker L by one vector per component: `vector` (*batch, n), zero at nodes outside, `component` (*batch, n)."""

    vector: Tensor
    component: Tensor
    num_components: int

    def project(self, H: Tensor) -> Tensor:
        """P H, the orthogonal projection of H (*batch, n, d) on the kernel: sum over components of v (v'H)/(v'v).

        Sums are taken in float64: a component may have a million nodes.
        """
        v = self.vector[..., None]
        shape = torch.broadcast_shapes(H.shape, v.shape)
        index = self.component[..., None].expand(shape)
        sums = v.new_zeros((*shape[:-2], self.num_components, shape[-1]))
        inner = sums.scatter_add(-2, index, v * H.expand(shape))
        size = sums.scatter_add(-2, index, v.square().expand(shape))
        return (v * (inner / torch.where(size > 0, size, 1.0)).gather(-2, index)).to(H.dtype)


def nullspace(op: Operator) -> Nullspace:
    """The kernel of the operator's L, per component; computed once per operator.

    Requires weights >= 0 and the reverse of every edge; `column` and `symmetric` require an undirected graph.

    >>> from rdgraph.graphs.generators import star
    >>> nullspace(star(5).operator("symmetric", dtype=torch.float64)).vector
    tensor([2., 1., 1., 1., 1.], dtype=torch.float64)
    """
    kernel: Nullspace = cached(op, _find_nullspace)
    return kernel


def symmetrised(op: Operator) -> tuple[Operator, Tensor]:
    """The operator S = D^-1/2 W D^-1/2 behind a normalised one, and the scaling s (*batch, n) with s A s^-1 = S.

    s is sqrt(d) for `row`, 1/sqrt(d) for `column`, 1 for `symmetric` and `none`, which are their own symmetric form.
    A normalised operator determines d up to a factor per component, chosen so that unweighted graphs get their degrees;
    s is 1 at nodes without entries.

    >>> from rdgraph.graphs.generators import star
    >>> symmetrised(star(5).operator("row", dtype=torch.float64))[1]
    tensor([2., 1., 1., 1., 1.], dtype=torch.float64)
    """
    mean, scaling = cached(op, _find_symmetric)
    return op if mean is None else mean, scaling


def _find_nullspace(op: Operator) -> Nullspace:
    checked = _checked_entries(op, "the kernel of L")
    if op.record.has_degrees:
        vector = torch.ones_like(checked.count)
    elif op.record.row_stochastic:
        vector = (checked.count > 0).double()
    else:
        vector = _root_degree(op, checked)
        vector = vector.square() if op.record.column_stochastic else vector
    _check_kernel(op, vector)
    component, number = _components(op, checked)
    return Nullspace(vector, component, number)


def _find_symmetric(op: Operator) -> tuple[Operator | None, Tensor]:
    """The symmetric form, None for the operator itself, and the scaling."""
    checked = _checked_entries(op, "the inner product of its L")
    one = torch.ones_like(checked.count)
    if op.record.is_symmetric or op.record.has_degrees:
        if not checked.is_undirected:
            raise _directed("the inner product of its L", op)
        return None, one
    root = torch.where(checked.count > 0, _root_degree(op, checked), one)
    return _mean_operator(op, checked), root if op.record.row_stochastic else 1 / root


# ---------------------------------------------------------------------- checks of an operator
def _checked_entries(op: Operator, what: str) -> OperatorEntries:
    if not (op.record.is_similar or op.record.has_degrees):
        raise NotApplicable(
            f"expected weights of a known normalisation for {what}, got {op.normalisation} ones; name it with "
            "op.with_weights(op.weights, 'row')"
        )
    result = entries(op)
    if result.is_signed:
        raise NotApplicable(f"expected weights >= 0 for {what}, got negative ones; omit this measure for signed graphs")
    if not result.is_two_way:
        raise _directed(what, op)
    return result


def _directed(what: str, op: Operator) -> NotApplicable:
    return NotApplicable(
        f"expected an undirected graph for {what}, got edges whose reverse is missing or weighs differently in {op!r}; "
        "symmetrise the graph with Graph.undirected()"
    )


def _check_kernel(op: Operator, vector: Tensor) -> None:
    """Raise unless L v = 0, which detects weights that do not match their normalisation."""
    image = op.to(dtype=torch.float64).laplacian(vector[..., None])[..., 0]
    scale = vector if op.degree is None else op.degree.double()[..., 0] * vector
    if not bool((image.norm(dim=-1) <= rounding(op) * scale.norm(dim=-1)).all()):
        raise InvalidArgument(_misnamed(op))


def _misnamed(op: Operator) -> str:
    return (
        f"expected weights of the normalisation {op.normalisation} on an undirected graph, got others in {op!r}: no "
        "positive v has L v = 0; make the operator with graph.operator(...)"
    )


# ---------------------------------------------------------------------- components and degrees
def _components(op: Operator, checked: OperatorEntries) -> tuple[Tensor, int]:
    """Component numbers from 0 in every member, (*batch, n), and the largest number of components."""
    nodes, members = op.num_nodes, checked.weights.reshape(math.prod(op.batch), op.num_edges)
    member, entry = (x.cpu().numpy() for x in torch.nonzero(members, as_tuple=True))
    rows, columns = (x.cpu().numpy()[entry] + member * nodes for x in (checked.rows, checked.columns))
    size = checked.count.numel()
    whole = csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(size, size))
    labels = connected_components(whole, directed=False)[1].reshape(-1, nodes)
    # Numbers increase with the lowest node, so those of every member are consecutive.
    labels = labels - labels.min(axis=1, keepdims=True)
    component = torch.as_tensor(labels, dtype=torch.int64, device=op.device).reshape(checked.count.shape)
    return component, int(labels.max()) + 1


def _mean_operator(op: Operator, checked: OperatorEntries) -> Operator:
    """sqrt(a_ij a_ji), which is w_ij/sqrt(d_i d_j) for the row and for the column normalisation."""
    weights = checked.weights
    if not op.record.is_symmetric:
        weights = (weights * weights[..., checked.reverse]).sqrt()
    return Operator(op.pattern, weights.to(op.dtype), "symmetric", op.self_loops)


def _root_degree(op: Operator, checked: OperatorEntries) -> Tensor:
    """sqrt(d) (*batch, n) behind a normalised operator, up to a factor per component; 0 at nodes without entries.

    sqrt(d) spans the kernel of the symmetric L on a component, so it is the projection x - L^+ L x of a positive x on
    the kernel, here by conjugate gradients; x = sqrt(neighbours + self-loop weight) is exact for unweighted graphs.
    """
    mean = _mean_operator(op, checked).to(dtype=torch.float64)
    is_loop = ((checked.rows == checked.columns) & (checked.weights != 0)).double()
    loops = torch.zeros_like(checked.count).index_add(-1, checked.rows, is_loop)
    start = (checked.count + (op.self_loops - 1) * loops if op.self_loops else checked.count).sqrt()
    root = start - _pseudo_identity(mean, start, 16 * torch.finfo(op.dtype).eps)
    # sqrt(a_ij a_ji) has the eigenvalue 1 only if it is similar to A; otherwise the projection vanishes.
    residual = mean.laplacian(root[..., None])[..., 0].norm(dim=-1)
    length, first = root.norm(dim=-1), start.norm(dim=-1)
    is_kernel = (residual <= rounding(op) * length) & (length >= MIN_PART * first)
    if not (bool(is_kernel.all()) and bool((root >= 0).all())):
        raise NotApplicable(_misnamed(op))
    return root


def _pseudo_identity(op: Operator, start: Tensor, tolerance: float) -> Tensor:
    """L^+ L x for a symmetric L >= 0 by conjugate gradients, all members together, each to its own residual."""
    x = start[..., None]
    y, r = torch.zeros_like(x), op.laplacian(x)
    p, size = r, r.square().sum(-2, keepdim=True)
    goal = (tolerance * x.norm(dim=-2, keepdim=True)).square()
    for _ in range(20 * op.num_nodes):
        active = size > goal
        if not bool(active.any()):
            break
        image = op.laplacian(p)
        curvature = (p * image).sum(-2, keepdim=True)
        active &= curvature > 0  # weights rounded to single precision may leave a trace of negative eigenvalues
        step = torch.where(active, size / curvature, 0.0)
        y, r = y + step * p, r - step * image
        new = r.square().sum(-2, keepdim=True)
        p, size = torch.where(active, r + new / size * p, p), torch.where(active, new, 0.0)
    return y[..., 0]


# ---------------------------------------------------------------------- edge sums
#: The most differences along edges in memory at once, on a CPU (its cache) and on a GPU; more are computed in pieces.
MAX_GATHERED = (1 << 16, 1 << 25)


def read_on(H: Any, op: Operator) -> Tensor:
    """A checked state, in at least single precision, expanded to the members of the operator."""
    state = read_state(H)
    if state.shape[-2] != op.num_nodes:
        raise InvalidArgument(f"expected a state (..., {op.num_nodes}, channels), got shape {tuple(state.shape)}")
    if state.device != op.device:
        raise InvalidArgument(f"expected a state on {op.device}, got {state.device}; move one of them with .to(...)")
    try:
        batch = torch.broadcast_shapes(state.shape[:-2], op.batch)
    except RuntimeError:
        raise InvalidArgument(
            f"expected states of batch {op.batch}, one per member of the operator (or more in front), got batch "
            f"{tuple(state.shape[:-2])}; stack one operator per member"
        ) from None
    return state.expand(*batch, *state.shape[-2:])


def check_plain(op: Operator, what: str) -> None:
    """Refuse an operator that is normalised, or has negative weights."""
    if not op.record.has_degrees:
        raise InvalidArgument(
            f"expected the operator of normalisation none for {what}, got {op!r}; make it with graph.operator('none')"
        )
    if entries(op).is_signed:
        raise NotApplicable(
            f"expected weights >= 0 for {what}, got negative ones; laplacian_energy is defined for signed graphs"
        )


def quadratic_form(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H), as a sum of squares if it is one."""
    vector = _sum_of_squares_vector(op)
    if vector is None:
        return (H * op.to(dtype=H.dtype).laplacian(H)).sum((-2, -1))
    v = vector.to(H.dtype)
    inside = v > 0
    pattern = entries(op)
    weights = op.weights.to(H.dtype) * v[..., pattern.rows] * v[..., pattern.columns]
    alone = torch.where(inside, 0.0, H.square().sum(-1)).sum(-1)
    return edge_sum(H / torch.where(inside, v, 1.0)[..., None], op, weights) / 2 + alone


def _sum_of_squares_vector(op: Operator) -> Tensor | None:
    """The vector v of `laplacian_energy`; None if L is not symmetric, is signed, or needs a gradient."""
    if not ((op.record.is_similar and op.record.is_symmetric) or op.record.has_degrees) or op.weights.requires_grad:
        return None
    if entries(op).is_signed or not entries(op).is_undirected:
        return None
    return nullspace(op).vector


def edge_sum(H: Tensor, op: Operator, weights: Tensor) -> Tensor:
    """sum over the entries [i, j] of weights[..., e] |h_i - h_j|^2, in pieces of bounded size: (*batch).

    An entry and its reverse have the same difference, computed once. Nodes are the first axis, then channels, so that
    the members of a node are adjacent in memory and squares are added for all of them at once.
    """
    pattern = entries(op)
    once, back = pattern.once
    both = weights[..., once] if back is None else weights[..., once] + weights[..., back]
    both = both.movedim(-1, 0).contiguous()
    both = both.view(len(once), *(1,) * (H.ndim - 1 - both.ndim), *both.shape[1:])
    rows, columns, nodes = pattern.rows[once], pattern.columns[once], H.movedim((-2, -1), (0, 1)).contiguous()
    total = H.new_zeros(H.shape[:-2])
    length = max(1, MAX_GATHERED[H.device.type == "cuda"] // max(1, nodes[0].numel()))
    for start in range(0, len(once), length):
        piece = slice(start, start + length)
        gap = nodes.index_select(0, rows[piece]) - nodes.index_select(0, columns[piece])
        total = total + (both[piece] * gap.square_().sum(1)).sum(0)
    return total


def squared_size(H: Tensor) -> Tensor:
    """|H|_F^2 per member."""
    return H.square().sum((-2, -1))


def restored(value: Tensor, scale: Tensor) -> Tensor:
    """scale^2*value, which overflows to infinity but never to 0*inf."""
    return value * scale * scale
