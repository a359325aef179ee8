"""Filters as series of finite length, each cut where a rigorous bound of the tail allows it."""

from __future__ import annotations

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.integrators.expansions import coefficients, nodes
from rdgraph.integrators.matrix_filters import MatrixFilters
from rdgraph.integrators.operator_filters import Filters

#: Numbers of coefficients that are computed before the cut; a row takes the first that is proved to be enough.
_LADDER = tuple(2**k for k in range(4, 15))
#: Share of the tolerance left to what lies beyond the computed coefficients, and to their aliasing.
_BEYOND = 0.05
#: Tolerances below these, in units of the largest value and absolutely, would chase the rounding of the coefficients.
_RELATIVE_FLOOR, _FLOOR = 8 * torch.finfo(torch.float64).eps, 1e-290


def make_series(filters: Filters | MatrixFilters, kind: str, tolerance: Tensor) -> Tensor:
    """Coefficients (K + 1, R), or (K + 1, F, F, R), of the filters, each cut at its own degree, the rest zero.

    Differentiable; matrices count by their norms.

    What is left out of row r, infinitely many coefficients included, amounts to at most tolerance[r]: their sum in a
    Chebyshev series; in a power series the root of the sum of their squares, and their sum to at most twice that. A
    row that overflows is its own infinite gain. A tolerance that float64 does not resolve is raised to what it does.
    Where derivatives are recorded, a term counts with its parts apart (see `Filters.parts`).
    """
    with torch.no_grad():
        gain = filters.gain()
        lost = ~gain.isfinite()
        rounding = _RELATIVE_FLOOR * (gain if kind == "chebyshev" else filters.peak())
        tolerance = torch.maximum(tolerance, rounding.clamp(min=_FLOOR))
        lengths = _lengths(filters, kind, tolerance, gain)
    pieces = []
    for length in sorted(set(lengths.tolist())):
        index = (lengths == length).nonzero().squeeze(-1)
        part = filters.rows(index)
        expanded = torch.stack([coefficients(each(nodes(kind, length, gain)), kind) for each in part.parts()])
        found, sizes = expanded.sum(0), part.sizes(expanded.detach()).sum(0)
        degree = _degrees(sizes, kind, (1 - _BEYOND) * tolerance[index]) + filters.reserve
        degree = degree.masked_fill((part.elapsed == 0) | lost[index], 0)
        order = torch.arange(length, device=gain.device).reshape(-1, *(1,) * (found.ndim - 1))
        pieces.append((index, torch.where(order <= degree, found, 0.0)[: int(degree.max()) + 1]))
    longest = max(len(piece) for _, piece in pieces)
    shape = pieces[0][1].shape[1:-1]
    out = gain.new_zeros((longest, *shape, len(gain)))
    for index, piece in pieces:
        padding = piece.new_zeros((longest - len(piece), *shape, len(index)))
        out = out.index_copy(-1, index, torch.cat([piece, padding]))
    return torch.cat([torch.where(lost, gain, out[0])[None], torch.where(lost, 0.0, out[1:])])


def _degrees(sizes: Tensor, kind: str, tolerance: Tensor) -> Tensor:
    """The smallest degree of every row that leaves out no more than its tolerance, (R,), for sizes (K, R) of terms."""
    beyond = sizes.flip(0).cumsum(0).flip(0)[1:]
    if kind == "chebyshev":
        return (beyond > tolerance).sum(0)
    squares = sizes.square().flip(0).cumsum(0).flip(0)[1:]
    return ((squares.sqrt() > tolerance) | (beyond > 2 * tolerance)).sum(0)


def _lengths(filters: Filters | MatrixFilters, kind: str, tolerance: Tensor, gain: Tensor) -> Tensor:
    """How many coefficients of every row to compute, (R,), so that what lies beyond is negligible.

    On the ellipse or disc rho, |g| <= M implies |a_k| <= 2 M rho^-k (Bernstein) or M rho^-k (Cauchy), so the tail
    beyond degree N is at most 2 M rho^-N/(rho - 1), or half of that; the best rho of a list is taken.
    """
    rho = 1 + torch.logspace(-3, 2, 81, dtype=torch.float64, device=gain.device)
    log_size = (
        filters.log_bound(kind, rho) - (rho - 1).log() + (torch.log(rho.new_tensor(2.0)) if kind == "chebyshev" else 0)
    )
    # Twice: once as the tail itself, once as the aliasing that it causes in the computed coefficients.
    room = tolerance.log() + torch.log(rho.new_tensor(_BEYOND / 2))
    settled = ~gain.isfinite() | (filters.elapsed == 0)
    lengths = torch.full_like(gain, _LADDER[0], dtype=torch.int64)
    for length in _LADDER:
        lengths = torch.where(settled, lengths, length)
        settled = settled | ((log_size - (length - 1) * rho.log()).amin(-1) <= room)
        if bool(settled.all()):
            return lengths
    raise NotApplicable(
        f"expected a filter that {_LADDER[-1]} products can evaluate, got a longer one; shorten the time, lower the "
        "coefficients or raise rtol"
    )
