"""Splines on equidistant knots in torch: the piece of an entry is found by arithmetic, and nothing asks the device.

`SOURCE` is this code as it stands, for generated modules, so it uses torch alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

#: Most entries of the matrices with which sums over pieces are taken; larger ones are cut along the nodes.
MAX_ENTRIES = 2**26


def spline(x: torch.Tensor, pieces: torch.Tensor, lower: float, step: float) -> torch.Tensor:
    """The spline with the given pieces, at every entry of x (*batch, nodes, channels).

    >>> line = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    >>> spline(torch.tensor([[-7.0, 0.25]], dtype=torch.float64), spline_pieces(line), lower=-1.0, step=1.0)
    tensor([[-7.0000,  0.2500]], dtype=torch.float64)
    """
    place = x.to(pieces.dtype) * (1 / step) + (1 - lower / step)
    found: torch.Tensor = SplinePieces.apply(place, pieces)  # type: ignore[no-untyped-call]
    return found.to(x.dtype)


def spline_pieces(controls: torch.Tensor, per_channel: bool = False) -> torch.Tensor:
    """The cubics of the natural spline with control values: (*batch, 1, channels or 1, K + 1, 4).

    `controls` is (K,) or (*batch, K), with `per_channel` (channels, K) or (*batch, channels, K). The first and the last
    piece are the straight lines beyond the knots.
    """
    first, last, steps = controls[..., :1], controls[..., -1:], controls.diff(dim=-1)
    # From differences of neighbours: those of the values would be rounded by the size of the values.
    steps = torch.cat([steps[..., :1], steps, steps[..., -1:]], -1)
    before, here, after = steps[..., :-2], steps[..., 1:-1], steps[..., 2:]
    bend = here - before
    value = controls[..., :-1] + bend / 6
    inner = torch.stack([value, (before + here) / 2, bend / 2, ((after - here) - bend) / 6], -1)
    zero = torch.zeros_like(first)
    head = torch.stack([first - steps[..., :1], steps[..., :1], zero, zero], -1)
    tail = torch.stack([last, steps[..., -1:], zero, zero], -1)
    pieces = torch.cat([head, inner, tail], -2)
    lead = tuple(pieces.shape[:-2]) if per_channel else (*pieces.shape[:-2], 1)
    return pieces.reshape(*lead[:-1], 1, lead[-1], *pieces.shape[-2:])


class SplinePieces(torch.autograd.Function):
    """Cubics in pieces at a place: sum over p of pieces[..., k, p] (place - k)**p, with k the piece of the place.

    place is (*batch, nodes, channels), pieces (*batch, 1, channels or 1, K + 1, 4). The first and the last piece go on
    for ever and are straight.
    """

    @staticmethod
    def forward(context: Any, place: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        context.save_for_backward(place, pieces)
        return cubic_at(*pieces_at(place, pieces))

    @staticmethod
    def backward(context: Any, slope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:  # type: ignore[override]
        place, pieces = context.saved_tensors
        t, (_, one, two, three) = pieces_at(place, pieces)
        to_place = slope * cubic_at(t, (one, 2 * two, 3 * three))
        return to_place, sums_over_pieces(slope, place, pieces) if context.needs_input_grad[1] else None


def piece_of(place: torch.Tensor, count: int) -> torch.Tensor:
    """The number of the piece of every place, which may be too large for a whole number; no number may get any."""
    return place.clamp(0, count - 1).long().clamp(0, count - 1)


def pieces_at(place: torch.Tensor, pieces: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
    """The place within its piece, and the four coefficients there."""
    rows, count = pieces.shape[:-2], pieces.shape[-2]
    piece = piece_of(place, count)
    row = piece
    if rows.numel() > 1:
        row = piece + torch.arange(0, rows.numel() * count, count, device=place.device).reshape(rows)
    found = pieces.reshape(-1, 4).index_select(0, row.flatten())
    return place - piece, found.reshape(*row.shape, 4).unbind(-1)


def cubic_at(t: torch.Tensor, powers: Sequence[torch.Tensor]) -> torch.Tensor:
    """A polynomial by its coefficients, the constant one first."""
    value = powers[-1]
    for power in powers[-2::-1]:
        value = power + t * value
    return value


def sums_over_pieces(slope: torch.Tensor, place: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Slopes of the coefficients: sums over the entries of each piece as products of matrices, in one order."""
    rows, count = pieces.shape[:-2], pieces.shape[-2]
    place = place.expand(slope.shape)
    nodes = slope.shape[-2]
    parts = min(nodes, -(-slope.numel() * count // MAX_ENTRIES))
    if parts > 1:
        cut = zip(slope.tensor_split(parts, -2), place.tensor_split(parts, -2), strict=True)
        return torch.stack([sums_over_pieces(s, p, pieces) for s, p in cut]).sum(0)
    piece = piece_of(place, count)
    t = place - piece
    bent = t.clamp(0, 1)  # far out on the lines beyond the knots a cube would be infinite, and they have none
    powers = torch.stack([slope, slope * t, slope * bent**2, slope * bent**3], -1)
    hot = (piece[..., None] == torch.arange(count, device=place.device)).to(powers.dtype)
    width = slope.ndim
    sizes = (1,) * (width - len(rows)) + tuple(rows)
    over = [axis for axis in range(width) if sizes[axis] == 1]
    kept = [axis for axis in range(width) if sizes[axis] > 1]
    lead = [slope.shape[axis] for axis in kept]
    hot = hot.permute(*kept, *over, width).reshape(*lead, -1, count)
    powers = powers.permute(*kept, *over, width).reshape(*lead, -1, 4)
    return (hot.mT @ powers).reshape(*rows, count, 4)


_PARTS: tuple[Any, ...] = (spline, spline_pieces, SplinePieces, piece_of, pieces_at, cubic_at, sums_over_pieces)

#: The code above as a text.
SOURCE = "\n\n".join(
    [
        "from collections.abc import Sequence\nfrom typing import Any\n",
        f"MAX_ENTRIES = {MAX_ENTRIES}\n",
        *(inspect.getsource(part) for part in _PARTS),
    ]
)
