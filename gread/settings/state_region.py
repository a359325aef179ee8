"""`StateRegion`: the region of the initial states of a network, and whether their slopes are bounded."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from rdgraph.errors import InvalidArgument

#: Words of the setting: safe with method auto, safe, no restriction, bounded slopes, slopes evaluated inside.
AUTO, SAFE, FREE, TANH, ON, WITHIN = "auto", "safe", "free", "tanh", "on", "within"
#: The default interval of initial states.
UNIT = (-1.0, 1.0)
_INTERVAL = re.compile(r"\[\s*([^\s,\]]+)\s*,\s*([^\s,\]]+)\s*\]")
_TANH = re.compile(rf"{TANH} ({ON}|{WITHIN}) (.+)")


@dataclass(frozen=True)
class StateRegion:
    """The interval of each initial state, and whether dH/dt = tanh(f(H)) instead of f(H).

    H(0) = m + r tanh(e/r) for an interval m - r <= h <= m + r and encoded values e: a map onto the interval with slope
    1 in its middle. A single interval applies to all states; none leaves them unchanged. `is_clamped` is for equations
    with roots or quotients, whose poles the intervals avoid: dH/dt = tanh(f(C)), C the states clamped to their
    intervals.

    >>> StateRegion.read("[0, 1] x [-1, 1]").intervals, str(StateRegion.read("tanh"))
    (((0.0, 1.0), (-1.0, 1.0)), 'tanh on [-1, 1]')
    >>> StateRegion.read("tanh within [0.25, 1.25]").is_clamped
    True
    """

    intervals: tuple[tuple[float, float], ...] = ()
    is_saturated: bool = False
    is_clamped: bool = False

    @classmethod
    def read(cls, text: str) -> StateRegion:
        """Read free, tanh, intervals such as [0, 1] or [0, 1] x [-1, 1], or tanh on or within such intervals."""
        if text == FREE:
            return cls()
        if text == TANH:
            return cls((UNIT,), True)
        bounded = _TANH.fullmatch(text)
        matches = [_INTERVAL.fullmatch(part.strip()) for part in (bounded[2] if bounded else text).split(" x ")]
        if not all(matches):
            raise InvalidArgument(
                f"expected states auto, safe, free, tanh, or an interval such as [0, 1], got {text!r}"
            )
        intervals = tuple(_interval(match[1], match[2], text) for match in matches if match)
        return cls(intervals, bounded is not None, bounded is not None and bounded[1] == WITHIN)

    def __str__(self) -> str:
        inside = " x ".join(f"[{low:g}, {high:g}]" for low, high in self.intervals)
        slopes = f"{TANH} {WITHIN if self.is_clamped else ON} " if self.is_saturated else ""
        return f"{slopes}{inside}" or FREE

    @property
    def is_free(self) -> bool:
        return not self.intervals

    def of(self, states: int) -> tuple[tuple[float, float], ...]:
        """One interval for each of `states` states, none if free; an error for any other number of intervals."""
        if len(self.intervals) not in (0, 1, states):
            raise InvalidArgument(
                f"expected one interval for all states or one for each of {states}, got states={str(self)!r}"
            )
        return self.intervals * states if len(self.intervals) == 1 else self.intervals


def _interval(low: str, high: str, text: str) -> tuple[float, float]:
    try:
        ends = float(low), float(high)
    except ValueError:
        raise InvalidArgument(f"expected numbers in states={text!r}, such as [0, 1]") from None
    if not (ends[0] < ends[1] and all(map(math.isfinite, ends))):
        raise InvalidArgument(f"expected states [low, high] with low < high, got {text!r}")
    return ends
