"""Energies of a state: the paper's Dirichlet energy, tr(H' L H), and both relative to the size of H."""

from __future__ import annotations

from torch import Tensor

from analysis.measures.edge_sums import (
    check_plain,
    edge_sum,
    quadratic_form,
    read_on,
    restored,
    squared_size,
    symmetrised,
)
from analysis.measures.state_checks import rescaled
from rdgraph.graphs.operator import Operator


def dirichlet_energy(H: Tensor, op: Operator) -> Tensor:
    """E(H) = (1/N) sum_i sum_{j in N_i} w_ij |h_i - h_j|^2, the paper's, for the operator `none` (weights W).

    The sum runs over ordered pairs, so an undirected edge counts twice: E = (2/N) tr(H' (D - W) H). Self-loops do not
    count. On a directed graph N_i are the nodes that i collects from. Sums differences, so it stays accurate where H is
    constant to the last digits.

    Args:
        H: States (*batch, n, d).
        op: The graph's operator `none`, with weights >= 0.

    Returns:
        One number >= 0 per member, (*batch).

    Raises:
        InvalidArgument: For states that do not match the operator, and for a normalised operator.
        NotApplicable: For negative weights.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[0.0], [1.0], [3.0]])          # edges with differences 1 and 2: (1/3) * 2 * (1 + 4)
        >>> analysis.dirichlet_energy(H, rd.generators.path(3).operator("none"))
        tensor(3.3333)
    """
    check_plain(op, "the Dirichlet energy")
    state = read_on(H, op)
    unit, scale = rescaled(state)
    return restored(edge_sum(unit, op, op.weights.to(unit.dtype)) / op.num_nodes, scale)


def laplacian_energy(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H) for the operator's own L: D - W for `none`, I - A for the normalised ones.

    `symmetric` and `none` on an undirected graph: a sum of squares, >= 0, computed as one, namely
    1/2 sum_ij a_ij v_i v_j |h_i/v_i - h_j/v_j|^2 with v = sqrt(d) and v = 1, plus |h_i|^2 at nodes without edges where
    L = I - A. For `row`, `column` and directed graphs only the symmetric part of L counts, and the value may be
    negative; see `rayleigh` for the inner product that suits them.

    Args:
        H: States (*batch, n, d).
        op: Any operator of the graph.

    Returns:
        One number per member, (*batch).

    Raises:
        InvalidArgument: For states that do not match the operator.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[1.0], [0.0], [0.0]])
        >>> path = rd.generators.path(3)
        >>> [analysis.measures.laplacian_energy(H, path.operator(kind)) for kind in ("none", "symmetric")]
        [tensor(1.), tensor(1.0000)]
    """
    unit, scale = rescaled(read_on(H, op))
    return restored(quadratic_form(unit, op), scale)


def normalised_energy(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H)/|H|_F^2 for the operator's own L: the roughness of H, independent of its size.

    For `none` it is (N/2) E(H)/|H|_F^2 with the paper's E; for `symmetric` it lies in [0, 2] and is the Rayleigh
    quotient. nan for the zero state.

    Args:
        H: States (*batch, n, d).
        op: Any operator of the graph.

    Returns:
        One number per member, (*batch).

    Raises:
        InvalidArgument: For states that do not match the operator.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])  # the highest frequency of an even ring
        >>> ring = rd.generators.ring(4)
        >>> [analysis.measures.normalised_energy(H, ring.operator(kind)) for kind in ("symmetric", "none")]
        [tensor(2.0000), tensor(4.)]
    """
    unit, _ = rescaled(read_on(H, op))
    return quadratic_form(unit, op) / squared_size(unit)


def rayleigh(H: Tensor, op: Operator) -> Tensor:
    """<H, L H>/<H, H> in the inner product that makes the operator's L self-adjoint, for undirected graphs.

    <G, H> = tr(G' H) for `symmetric` and `none`, tr(G' D H) for `row`, tr(G' D^-1 H) for `column`, where nodes without
    edges weigh 1. So it is a mean of eigenvalues of L weighted by the energy of the modes: 0 in the kernel, at most 2
    for the normalised operators. Of a disconnected graph with weights, an operator normalised by rows or columns tells
    D only up to a factor per component, see `analysis.measures.edge_sums.symmetrised`. nan for the zero state.

    Args:
        H: States (*batch, n, d).
        op: An operator of an undirected graph with weights >= 0.

    Returns:
        One number >= 0 per member, (*batch).

    Raises:
        InvalidArgument: For states that do not match the operator, and weights that do not belong to its normalisation.
        NotApplicable: For directed graphs, negative weights, and free weights.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[1.0], [-1.0], [-1.0], [-1.0]])
        >>> star = rd.generators.star(4).operator("row")
        >>> analysis.measures.rayleigh(H, star), analysis.measures.laplacian_energy(H, star)
        (tensor(2.0000), tensor(8.))
    """
    unit, _ = rescaled(read_on(H, op))
    symmetric, scaling = symmetrised(op)
    unit = unit * scaling.to(unit.dtype)[..., None]
    return quadratic_form(unit, symmetric) / squared_size(unit)
