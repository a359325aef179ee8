"""Measures of a state on a graph: energies, angles, distance to the kernel of L, ranks, separation of classes.

Every measure takes states H (*batch, n, d) and gives one number per member, (*batch); an operator with weights per
member (see `rdgraph.graphs.operator_stack`) measures every member on its own graph. Each is tied to the operator it is
given: `none` has L = D - W, the normalised ones have L = I - A. Time and memory are linear in the edges. NaN and
infinity are refused. A measure that would divide zero by zero, such as a quotient of the zero state, is nan. States in
half precision are measured in single precision. All but the numerical rank are differentiable in H where they are
smooth, the Dirichlet and the Laplacian energy in the weights too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from analysis.measures.class_separation import fisher_ratio
from analysis.measures.laplacian_kernel import nullspace, symmetrised
from analysis.measures.operator_entries import entries
from analysis.measures.ranks import effective_rank, numerical_rank
from analysis.measures.state_checks import read_state, rescaled
from rdgraph.errors import NotApplicable, UnknownName
from rdgraph.graphs.operator import Operator

__all__ = [
    "MEASURES",
    "Caption",
    "dirichlet_energy",
    "effective_rank",
    "fisher_ratio",
    "kernel_distance",
    "laplacian_energy",
    "mad",
    "make_measures",
    "measure_all",
    "normalised_energy",
    "numerical_rank",
    "rayleigh",
]

#: Most numbers that differences along edges may hold at once, on a CPU (its cache) and on a GPU; more come in pieces.
MAX_GATHERED = (1 << 18, 1 << 25)


class Caption(NamedTuple):
    """How a figure names a measure, and whether its axis is logarithmic."""

    label: str
    latex: str
    is_log: bool


#: The measures of `measure_all`, in order.
MEASURES: Mapping[str, Caption] = {
    "dirichlet_energy": Caption("Dirichlet energy", r"$E(H)$", True),
    "laplacian_energy": Caption("Laplacian energy", r"$\mathrm{tr}(H^\top L H)$", True),
    "normalised_energy": Caption("normalised energy", r"$\mathrm{tr}(H^\top (D-W) H)/\|H\|_F^2$", True),
    "rayleigh": Caption("Rayleigh quotient", r"$\langle H, L H\rangle/\langle H, H\rangle$", True),
    "mad": Caption("mean average distance (cosine)", r"$\mathrm{MAD}(H)$", True),
    "kernel_distance": Caption("distance to the kernel of L", r"$\|H - PH\|_F/\|H\|_F$", True),
    "effective_rank": Caption("effective rank", r"$\exp(-\sum_k p_k \log p_k)$", False),
    "numerical_rank": Caption("numerical rank", r"$\#\{\sigma_k > \mathrm{tol}\,\sigma_1\}$", False),
    "fisher_ratio": Caption("Fisher ratio", r"$\mathrm{tr}\,S_B/\mathrm{tr}\,S_W$", True),
}


# ---------------------------------------------------------------------- energies
def dirichlet_energy(H: Tensor, op: Operator) -> Tensor:
    """E(H) = (1/N) sum_i sum_{j in N_i} w_ij |h_i - h_j|^2, the paper's, for the operator `none` (weights W).

    The sum runs over ordered pairs, so an undirected edge counts twice: E = (2/N) tr(H' (D - W) H). Self-loops do not
    count. On a directed graph N_i are the nodes that i collects from. Sums differences, so it stays accurate where H is
    constant to the last digits.

    >>> from rdgraph.graphs.generators import path
    >>> H = torch.tensor([[0.0], [1.0], [3.0]])          # edges with differences 1 and 2: (1/3) * 2 * (1 + 4)
    >>> dirichlet_energy(H, path(3).operator("none"))
    tensor(3.3333)
    """
    _check_plain(op, "the Dirichlet energy")
    state = _read(H, op)
    unit, scale = rescaled(state)
    return _restored(_edge_sum(unit, op, op.weights.to(unit.dtype)) / op.num_nodes, scale)


def laplacian_energy(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H) for the operator's own L: D - W for `none`, I - A for the normalised ones.

    `symmetric` and `none` on an undirected graph: a sum of squares, >= 0, computed as one, namely
    1/2 sum_ij a_ij v_i v_j |h_i/v_i - h_j/v_j|^2 with v = sqrt(d) and v = 1, plus |h_i|^2 at nodes without edges where
    L = I - A. For `row`, `column` and directed graphs only the symmetric part of L counts, and the value may be
    negative; see `rayleigh` for the inner product that suits them.

    >>> from rdgraph.graphs.generators import path
    >>> H = torch.tensor([[1.0], [0.0], [0.0]])
    >>> laplacian_energy(H, path(3).operator("none")), laplacian_energy(H, path(3).operator("symmetric"))
    (tensor(1.), tensor(1.0000))
    """
    unit, scale = rescaled(_read(H, op))
    return _restored(_quadratic(unit, op), scale)


def normalised_energy(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H)/|H|_F^2 for the operator's own L: how rough H is, whatever its size.

    For `none` it is (N/2) E(H)/|H|_F^2 with the paper's E; for `symmetric` it lies in [0, 2] and is the Rayleigh
    quotient. nan for the zero state.

    >>> from rdgraph.graphs.generators import ring
    >>> H = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])  # the highest frequency of an even ring
    >>> normalised_energy(H, ring(4).operator("symmetric")), normalised_energy(H, ring(4).operator("none"))
    (tensor(2.0000), tensor(4.))
    """
    unit, _ = rescaled(_read(H, op))
    return _quadratic(unit, op) / _square(unit)


def rayleigh(H: Tensor, op: Operator) -> Tensor:
    """<H, L H>/<H, H> in the inner product that makes the operator's L self-adjoint, for undirected graphs.

    <G, H> = tr(G' H) for `symmetric` and `none`, tr(G' D H) for `row`, tr(G' D^-1 H) for `column`, where nodes without
    edges weigh 1. So it is a mean of eigenvalues of L weighted by the energy of the modes: 0 in the kernel, at most 2
    for the normalised operators. Of a disconnected graph with weights, an operator normalised by rows or columns tells
    D only up to a factor per component, see `analysis.measures.laplacian_kernel.symmetrised`. nan for the zero state.

    >>> from rdgraph.graphs.generators import star
    >>> H = torch.tensor([[1.0], [-1.0], [-1.0], [-1.0]])
    >>> rayleigh(H, star(4).operator("row")), laplacian_energy(H, star(4).operator("row"))
    (tensor(2.0000), tensor(8.))
    """
    unit, _ = rescaled(_read(H, op))
    symmetric, scaling = symmetrised(op)
    unit = unit * scaling.to(unit.dtype)[..., None]
    return _quadratic(unit, symmetric) / _square(unit)


# ---------------------------------------------------------------------- angles and distances
def mad(H: Tensor, op: Operator) -> Tensor:
    """Mean over nodes i of the mean over neighbours j of the cosine distance 1 - <h_i, h_j>/(|h_i| |h_j|), in [0, 2].

    Neighbours are the non-zero entries of row i but i itself, whatever their weight, so the operator's normalisation
    plays no part. A zero vector has no direction: pairs with one are left out, and so are nodes that have no pair; nan
    where none is left.

    >>> from rdgraph.graphs.generators import path
    >>> H = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, -1.0]])   # distances 1 and 2: (1 + 1.5 + 2)/3
    >>> mad(H, path(3).operator("row"))
    tensor(1.5000)
    """
    state = _read(H, op)
    size = state.detach().abs().amax(-1, keepdim=True)
    unit = state / torch.where(size > 0, size, 1.0)
    length = unit.norm(dim=-1, keepdim=True)
    has_direction = size[..., 0] > 0
    unit = unit / torch.where(length > 0, length, 1.0)
    found = entries(op)
    pairs = (found.weights != 0) & (found.rows != found.columns)
    if not bool(has_direction.all()):
        pairs = pairs & has_direction[..., found.rows] & has_direction[..., found.columns]
    pairs = pairs.to(unit.dtype)
    count = pairs.new_zeros((*pairs.shape[:-1], op.num_nodes)).index_add(-1, found.rows, pairs)
    share = pairs / count.clamp(min=1)[..., found.rows]
    # 1 - cos = |u - v|^2/2 for unit vectors, without loss of digits where they are nearly parallel.
    return _edge_sum(unit, op, share) / (2 * (count > 0).sum(-1))


def kernel_distance(H: Tensor, op: Operator) -> Tensor:
    """|H - P H|_F/|H|_F, in [0, 1], where P is the orthogonal projection on the kernel of the operator's L.

    On every connected component the kernel is spanned by sqrt(d) for `symmetric`, the constant for `row` and `none`, d
    for `column`. A node without edges belongs to it only where L = D - W. Asks for an undirected graph; `row` and
    `none` also take other weights > 0 in the two directions, as soft adjacency has. nan for the zero state.

    >>> from rdgraph.graphs.generators import path
    >>> H = torch.tensor([[3.0], [3.0], [0.0]])           # mean 2, deviations 1, 1, -2: sqrt(6/18)
    >>> kernel_distance(H, path(3).operator("row"))
    tensor(0.5774)
    """
    unit, _ = rescaled(_read(H, op))
    rest = unit - nullspace(op).project(unit)
    return rest.flatten(-2).norm(dim=-1) / _square(unit).sqrt()


# ---------------------------------------------------------------------- all of them
def make_measures(
    *, plain: Operator, op: Operator | None = None, labels: Any = None, names: Iterable[str] | None = None
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Functions of a state alone, for `solve(..., measures=make_measures(...))`, in the order of `MEASURES`.

    `plain` is the graph's operator `none`, for the Dirichlet energy, the normalised energy and MAD; `op` is the one of
    the dynamics, for the Laplacian energy, the Rayleigh quotient and the distance to the kernel, and `plain` where left
    out. `labels` (n,) or (*batch, n) add the Fisher ratio. `names` chooses among the measures.

    >>> from rdgraph.graphs.generators import ring
    >>> list(make_measures(plain=ring(4).operator("none"), names=["mad", "dirichlet_energy"]))
    ['dirichlet_energy', 'mad']
    """
    _check_plain(plain, "the Dirichlet energy")
    own = plain if op is None else op
    made: dict[str, Callable[[Tensor], Tensor]] = {
        "dirichlet_energy": partial(dirichlet_energy, op=plain),
        "laplacian_energy": partial(laplacian_energy, op=own),
        "normalised_energy": partial(normalised_energy, op=plain),
        "rayleigh": partial(rayleigh, op=own),
        "mad": partial(mad, op=plain),
        "kernel_distance": partial(kernel_distance, op=own),
        "effective_rank": effective_rank,
        "numerical_rank": numerical_rank,
    }
    if labels is not None:
        made["fisher_ratio"] = partial(fisher_ratio, labels=labels)
    chosen = list(made) if names is None else list(names)
    for name in chosen:
        if name not in MEASURES:
            raise UnknownName("measure", str(name), MEASURES)
        if name not in made:
            raise NotApplicable(f"expected labels for {name}, got none; pass labels=")
    return {name: function for name, function in made.items() if name in chosen}


def measure_all(H: Tensor, *, plain: Operator, op: Operator | None = None, labels: Any = None) -> dict[str, Tensor]:
    """Every measure of the states H (*batch, n, d) by name; operators and labels as in `make_measures`.

    >>> from rdgraph.graphs.generators import path
    >>> found = measure_all(torch.tensor([[0.0], [1.0], [3.0]]), plain=path(3).operator("none"))
    >>> found["dirichlet_energy"], found["numerical_rank"]
    (tensor(3.3333), tensor(1))
    """
    return {name: measure(H) for name, measure in make_measures(plain=plain, op=op, labels=labels).items()}


# ---------------------------------------------------------------------- parts
def _read(H: Any, op: Operator) -> Tensor:
    """A checked state, in single precision at least, spread over the members of the operator."""
    state = read_state(H)
    if state.shape[-2] != op.num_nodes:
        raise NotApplicable(f"expected a state (..., {op.num_nodes}, channels), got shape {tuple(state.shape)}")
    if state.device != op.device:
        raise NotApplicable(f"expected a state on {op.device}, got {state.device}; move one of them with .to(...)")
    try:
        batch = torch.broadcast_shapes(state.shape[:-2], op.batch)
    except RuntimeError:
        raise NotApplicable(
            f"expected states of batch {op.batch}, one per member of the operator (or more in front), got batch "
            f"{tuple(state.shape[:-2])}; stack one operator per member"
        ) from None
    return state.expand(*batch, *state.shape[-2:])


def _check_plain(op: Operator, what: str) -> None:
    if not op.record.has_degrees:
        raise NotApplicable(
            f"expected the operator of normalisation none for {what}, got {op!r}; make it with graph.operator('none')"
        )
    if entries(op).is_signed:
        raise NotApplicable(
            f"expected weights >= 0 for {what}, got negative ones; laplacian_energy is defined for signed graphs"
        )


def _quadratic(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H), as a sum of squares where it is one."""
    vector = _sum_of_squares_vector(op)
    if vector is None:
        return (H * op.to(dtype=H.dtype).laplacian(H)).sum((-2, -1))
    v = vector.to(H.dtype)
    inside = v > 0
    found = entries(op)
    weights = op.weights.to(H.dtype) * v[..., found.rows] * v[..., found.columns]
    alone = torch.where(inside, 0.0, H.square().sum(-1)).sum(-1)
    return _edge_sum(H / torch.where(inside, v, 1.0)[..., None], op, weights) / 2 + alone


def _sum_of_squares_vector(op: Operator) -> Tensor | None:
    """The vector v of `laplacian_energy`; None where L is not symmetric, or signed, or wants a gradient itself."""
    if not ((op.record.is_similar and op.record.is_symmetric) or op.record.has_degrees) or op.weights.requires_grad:
        return None
    if entries(op).is_signed or not entries(op).is_undirected:
        return None
    return nullspace(op).vector


def _edge_sum(H: Tensor, op: Operator, weights: Tensor) -> Tensor:
    """sum over the entries [i, j] of weights[..., e] |h_i - h_j|^2, in pieces of bounded size: (*batch).

    An entry and its reverse have the same difference, which is taken once. Nodes come first, so that a node's members
    and channels lie side by side.
    """
    found = entries(op)
    once, back = found.once
    both = weights[..., once] if back is None else weights[..., once] + weights[..., back]
    both = both.movedim(-1, 0).contiguous()
    both = both.view(len(once), *(1,) * (H.ndim - 1 - both.ndim), *both.shape[1:])
    rows, columns, nodes = found.rows[once], found.columns[once], H.movedim(-2, 0).contiguous()
    total = H.new_zeros(H.shape[:-2])
    length = max(1, MAX_GATHERED[H.device.type == "cuda"] // max(1, nodes[0].numel()))
    for start in range(0, len(once), length):
        piece = slice(start, start + length)
        gap = nodes.index_select(0, rows[piece]) - nodes.index_select(0, columns[piece])
        total = total + (both[piece] * gap.square().sum(-1)).sum(0)
    return total


def _square(H: Tensor) -> Tensor:
    return H.square().sum((-2, -1))


def _restored(value: Tensor, scale: Tensor) -> Tensor:
    """scale^2*value, which overflows to infinity but never to 0*inf."""
    return value * scale * scale
