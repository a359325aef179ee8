"""The walk to the border of an interval, against profiles with a known border."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from rdgraph.infer.fit.damped_steps import Minimum
from rdgraph.infer.fit.least_squares import Border, profile


class KnownProfile:
    """Problems of one unknown whose sum of squares rises by rise(|x|)**2; the first guess is one over `slope`."""

    def is_spent(self) -> bool:
        return False

    def __init__(self, rise: Callable[[Tensor], Tensor], slope: float) -> None:
        self.rise, self.slope, self.turns = rise, slope, 0
        self.residuals = SimpleNamespace(
            unknowns=SimpleNamespace(count=1, farthest=lambda best: torch.full_like(best, 7.0))
        )

    def derivatives(self, rows: Tensor, _which: Tensor) -> Tensor:
        return torch.full((len(rows), 1, 1), self.slope, dtype=rows.dtype)

    def minimise(self, rows: Tensor, _which: Tensor, _free: Tensor, **_options: Any) -> Minimum[Tensor]:
        self.turns += 1
        return Minimum(rows, 1 + self.rise(rows[:, 0].abs()).square(), torch.ones(len(rows), dtype=torch.bool))


@pytest.mark.parametrize(
    ("rise", "slope", "end", "turns"),
    [
        (lambda x: x, 1.0, 1.0, 1),
        (lambda x: x**1.3, 1.25, 1.0, 4),
        (lambda x: x + x**4, 3.0, 0.7245, 7),
        (lambda x: (20 * (x - 1.3)).clamp_min(0), 500.0, 1.35, 14),  # a ridge: nothing, and then much
        (lambda x: (1e3 * (x - 0.9)).clamp_min(0), 500.0, 0.901, 14),
        (lambda x: torch.where(x < 2, 0.0, torch.inf), 500.0, 2.0, 14),  # no run ends beyond
    ],
)
def test_the_end_is_where_the_border_is_met(
    rise: Callable[[Tensor], Tensor], slope: float, end: float, turns: int
) -> None:
    one = torch.ones(1, dtype=torch.float64)
    known: Any = KnownProfile(rise, slope)
    found = profile(known, torch.zeros(1, 1, dtype=torch.float64), one, Border(one, one))
    assert found.ends[0, 0].tolist() == pytest.approx([-end, end], rel=0.03)
    assert known.turns <= turns


def test_what_never_rises_has_no_end() -> None:
    one = torch.ones(1, dtype=torch.float64)
    known: Any = KnownProfile(torch.zeros_like, 500.0)
    found = profile(known, torch.zeros(1, 1, dtype=torch.float64), one, Border(one, one))
    assert found.ends[0, 0].tolist() == [-torch.inf, torch.inf]
