"""Constants of reactions whose slopes have no extremes in closed form, against sampled slopes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rdgraph as rd

GRID = np.unique(np.concatenate([np.linspace(-30, 30, 200_001), np.sinh(np.linspace(-8, 8, 20_001))]))
CASES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "H*tanh(1 - H)": lambda h: h * np.tanh(1 - h),
    "-H*tanh(H)": lambda h: -h * np.tanh(h),
    "H*exp(-H**2)": lambda h: h * np.exp(-(h**2)),
    "exp(-H**2) - 0.5*H": lambda h: np.exp(-(h**2)) - h / 2,
    "H/sqrt(1 + H**2)": lambda h: h / np.sqrt(1 + h**2),
    "tanh(H)*sigmoid(H)": lambda h: np.tanh(h) / (1 + np.exp(-np.clip(h, -700, 700))),
    "sin(H) + cos(2*H)": lambda h: np.sin(h) + np.cos(2 * h),
}


@pytest.mark.parametrize("reaction", CASES)
def test_constants_bound_sampled_slopes_closely(reaction: str) -> None:
    """With p(lam) = -lam in [-2, 0]: m = sup r', K = max(sup r', 2 - inf r')."""
    values = CASES[reaction](GRID)
    slopes = np.diff(values) / np.diff(GRID)
    one_sided, both = rd.theory.one_sided(f"-L@H + {reaction}"), rd.lipschitz_global(f"-L@H + {reaction}")
    for answer, sampled in ((one_sided, slopes.max()), (both, max(slopes.max(), 2 - slopes.min()))):
        assert answer.reason.endswith("bounded by interval arithmetic")
        assert sampled <= float(answer.value) + 1e-9
        assert sampled >= float(answer.value) - 1e-3


def test_letters_stay_letters() -> None:
    assert str(rd.theory.one_sided("-alpha*L@H - delta*H*tanh(gamma*H)").value) == "1.1997*delta"
    assert str(rd.lipschitz_global("-alpha*L@H + H*exp(-H**2)").value) == "Max(1, 2*alpha + 2*exp(-3/2))"


@pytest.mark.parametrize(
    ("text", "one_sided"),
    [("H*(1 - abs(H))", "1"), ("exp(-H) - exp(H)", "-2"), ("relu(H) - H**3", "1"), ("-delta*H**2*tanh(H)", "0")],
)
def test_slopes_that_are_bounded_on_one_side_alone(text: str, one_sided: str) -> None:
    answer = rd.theory.one_sided(f"-alpha*L@H + {text}")
    assert (str(answer.value), answer.is_sharp) == (one_sided, True)
    unbounded = rd.lipschitz_global(f"-alpha*L@H + {text}")
    assert unbounded.value is None
    assert unbounded.reason.startswith("no finite")
