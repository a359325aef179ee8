"""Intervals by profile likelihood: how far an unknown can go before the best fit of all others is too bad."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy import stats
from torch import Tensor

from rdgraph.infer.fit.least_squares import Problems

_MAX_TURNS = 14
#: Steps of every fit on the way to a border.
PROFILE_STEPS = 25
#: How near the sum of squares must come to the border, in standard errors; or the end, as a share of its distance.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Border:
    """What a sum of squares may rise to: `variance` of the noise, `reach` the square of the quantile."""

    variance: Tensor
    reach: Tensor


def border_of(squares: Tensor, freedom: int, level: float, sigma: float | None, resolution: float = 0.0) -> Border:
    """The border at a level: of a known noise by the normal law, of an estimated one by Student's.

    Noise below the `resolution` of the runs counts as that: errors of a run lie in what the fit leaves.
    """
    if sigma is not None:
        reach = float(stats.norm.ppf((1 + level) / 2)) ** 2
        return Border(torch.full_like(squares, max(sigma, resolution) ** 2), torch.full_like(squares, reach))
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) ** 2
    return Border((squares / freedom).clamp_min(resolution**2), torch.full_like(squares, reach))


@dataclass(frozen=True)
class Profiles:
    """Ends of the intervals (fits, unknowns, 2) on the scale of the fit, infinite where there is no border.

    `better` are rows that lie lower than the fit that was profiled, (fits, all unknowns), NaN where there is none.
    """

    ends: Tensor
    better: Tensor


def profile(problems: Problems, best: Tensor, squares: Tensor, border: Border, flat: Tensor | None = None) -> Profiles:
    """Walk from every fit in both directions of every coefficient until the border is met.

    The root of the rise is close to linear in the distance, so that a secant meets it in a few turns. At the end of a
    ridge it is not: nothing rises for long, then much. There the secant creeps, and the interval is halved. Where runs
    become too costly before the border is met, there is none, and none is looked for in coefficients that are `flat`.
    Ends that were not met when the effort of the fit was spent are NaN.
    """
    fits, count = len(best), problems.residuals.unknowns.count
    fit = torch.arange(fits).repeat_interleave(2 * count)
    position = torch.arange(count).repeat_interleave(2).repeat(fits)
    side = torch.tensor([-1.0, 1.0], dtype=best.dtype).repeat(fits * count)
    scale = (border.variance * border.reach).sqrt()[fit]
    farthest = problems.residuals.unknowns.farthest(best)[fit, position]
    distance = _first_guess(problems, best, border)[fit, position].clamp_min(1e-10).minimum(farthest)
    low, high = torch.zeros_like(distance), torch.full_like(distance, torch.inf)
    low_rise, high_rise = torch.zeros_like(distance), torch.full_like(distance, torch.inf)
    rows = best[fit].clone()
    better = torch.full_like(best, torch.nan)
    found = torch.full_like(distance, torch.nan)
    if flat is not None:
        found[flat[position]] = torch.inf
    is_costly = torch.zeros_like(found, dtype=torch.bool)
    for _ in range(_MAX_TURNS):
        open_ = torch.nonzero(torch.isnan(found)).ravel()
        if not len(open_) or problems.is_spent():
            break
        tried = rows[open_].clone()
        at = torch.arange(len(open_))
        tried[at, position[open_]] = best[fit[open_], position[open_]] + side[open_] * distance[open_]
        free = torch.ones_like(tried, dtype=torch.bool)
        free[at, position[open_]] = False
        end = problems.minimise(tried, fit[open_], free, max_steps=PROFILE_STEPS)
        if problems.is_spent():  # the others did not follow to their minimum: the rise says nothing
            break
        for row, number, value in zip(end.rows, fit[open_].tolist(), end.squares.tolist(), strict=True):
            if value < float(squares[number]) - 0.01 * float(border.variance[number]):
                better[number] = row
        rise = (end.squares - squares[fit[open_]]).clamp_min(0).sqrt() / scale[open_]
        costly, rise = torch.isnan(rise), torch.nan_to_num(rise, nan=torch.inf, posinf=torch.inf)
        met = (rise - 1).abs() <= _TOLERANCE
        far = (distance[open_] >= farthest[open_]) & (rise < 1)
        found[open_] = torch.where(met, distance[open_], torch.where(far, torch.inf, torch.nan))
        below = rise < 1
        # On from within: a walk that went too far may have left the others where they do not come back from.
        rows[open_] = torch.where(below[:, None], end.rows, rows[open_])
        width = (high - low)[open_]
        low[open_] = torch.where(below, distance[open_], low[open_])
        low_rise[open_] = torch.where(below, rise, low_rise[open_])
        high[open_] = torch.where(below, high[open_], distance[open_])
        high_rise[open_] = torch.where(below, high_rise[open_], rise)
        is_costly[open_] = torch.where(below, is_costly[open_], costly)
        narrow = ((high - low <= _TOLERANCE * high) & torch.isfinite(high) & torch.isnan(found))[open_]
        found[open_] = torch.where(narrow, high[open_], found[open_])
        creeps = (high - low)[open_] > width / 2
        tried_next = _next(low[open_], low_rise[open_], high[open_], high_rise[open_], creeps)
        distance[open_] = tried_next.minimum(farthest[open_])
    if not problems.is_spent():
        found = torch.where(torch.isnan(found), torch.where(torch.isfinite(high), high, torch.inf), found)
    found = torch.where(is_costly & (found >= high), torch.inf, found)
    ends = best[fit, position] + side * found
    return Profiles(ends.reshape(fits, count, 2), better)


def _first_guess(problems: Problems, best: Tensor, border: Border) -> Tensor:
    """The distance at which a quadratic rise would meet the border, (fits, coefficients).

    That is at least the one with all others held, also where a direction is too weak to be inverted.
    """
    slopes = problems.derivatives(best, torch.arange(len(best)))
    products, count = slopes.transpose(1, 2) @ slopes, problems.residuals.unknowns.count
    inverse = torch.linalg.pinv(products, hermitian=True, rtol=1e-14)
    spread = inverse.diagonal(dim1=1, dim2=2)[:, :count].clamp_min(0.0).sqrt()
    spread = spread.maximum(products.diagonal(dim1=1, dim2=2)[:, :count].rsqrt())
    return torch.nan_to_num(spread * (border.variance * border.reach).sqrt()[:, None], nan=1.0)


def _next(low: Tensor, low_rise: Tensor, high: Tensor, high_rise: Tensor, creeps: Tensor) -> Tensor:
    """The next distance: by the line through both ends, kept inside; outward where no upper end is known.

    In the middle where the line keeps near the lower end though little has risen there, or to any end though the last
    turn took less than half of the interval away.
    """
    line = low + (1 - low_rise) * (high - low) / (high_rise - low_rise).clamp_min(1e-12)
    least, most = low + 0.05 * (high - low), high - 0.05 * (high - low)
    inside = torch.minimum(torch.maximum(line, least), most)
    flat = (low_rise < 0.5) & (line < low + 0.25 * (high - low))
    halved = flat | (creeps & ((line < least) | (line > most))) | ~torch.isfinite(high_rise)
    inside = torch.where(halved, (low + high) / 2, inside)
    outward = torch.maximum(low / low_rise.clamp_min(0.25), 1.3 * low)
    return torch.where(torch.isfinite(high), inside, outward)
