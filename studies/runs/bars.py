"""`Bars`: named numbers as bars below each other, which a page draws as text that fits any window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rdgraph.errors import InvalidArgument
from studies.runs.tables import MutableRow


@dataclass(frozen=True)
class Bar:
    """A number with its name, where known from its least to its largest, and the group that gives it its colour."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    group: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars in the order given, all on one axis.

    Args:
        bars: at least one; finite and, on a logarithmic axis, positive.
        unit: what the numbers are.
        is_log: whether the axis is logarithmic; then bars begin at its left end.
    """

    bars: Sequence[Bar]
    unit: str
    is_log: bool = False

    def __post_init__(self) -> None:
        bad = [bar.name for bar in self.bars if not math.isfinite(bar.value) or bar.value < 0]
        bad += [bar.name for bar in self.bars if self.is_log and bar.value <= 0]
        if bad or not self.bars:
            raise InvalidArgument(f"expected bars with numbers from 0 on, got {', '.join(bad) or 'none'}")

    @property
    def groups(self) -> list[str]:
        """The groups in the order of their colours."""
        return list(dict.fromkeys(bar.group for bar in self.bars))

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis: 0 and the largest, or a little less than the least and the largest."""
        known = [v for bar in self.bars for v in (bar.value, bar.low, bar.high) if math.isfinite(v)]
        return (min(v for v in known if v > 0) / 1.3 if self.is_log else 0.0), max(*known, 1e-300)

    def share(self, value: float) -> float:
        """Where a number lies between the ends, in percent.

        >>> Bars([Bar("a", 1.0), Bar("b", 4.0)], "ms").share(1.0)
        25.0
        """
        low, high = self.ends
        if self.is_log:
            return 100 * math.log(max(value, low) / low) / math.log(high / low)
        return 100 * value / high

    def lines(self) -> list[dict[str, Any]]:
        """Every bar for the page: name, number, width and range in percent, the number of its colour."""
        found = []
        for bar in self.bars:
            has_range = math.isfinite(bar.low) and math.isfinite(bar.high)
            note = f"{bar.value:.4g}" + (f", from {bar.low:.4g} to {bar.high:.4g}" if has_range else "")
            found.append({
                "name": bar.name, "text": f"{bar.value:.3g}", "width": round(self.share(bar.value), 2),
                "left": round(self.share(bar.low), 2) if has_range else None,
                "right": round(self.share(bar.high), 2) if has_range else None,
                "colour": self.groups.index(bar.group) % 7, "note": f"{bar.name}: {note} {self.unit}",
            })  # fmt: skip
        return found

    def numbers(self) -> list[MutableRow]:
        """A row for every bar."""
        return [
            {"name": bar.name, "value": bar.value, "low": bar.low, "high": bar.high, "group": bar.group}
            for bar in self.bars
        ]
