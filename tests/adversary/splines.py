"""Learned functions of our own: random splines that have what is declared of them, often at its very limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from scipy.interpolate import BSpline

from tests.adversary import expressions, formulas

Array = np.ndarray
Random = np.random.Generator


@dataclass(frozen=True)
class Declared:
    """What is said of a learned function, and the seed of the one that is drawn."""

    name: str
    knots: int
    end: float
    odd: bool = False
    monotone: str = ""
    bound: float | None = None
    lipschitz: float | None = None

    @property
    def text(self) -> str:
        """The declaration as a user would write it."""
        words = [f"{self.name} learned knots={self.knots} range=-{self.end:g}:{self.end:g}"]
        words += ["odd"] if self.odd else []
        words += [self.monotone] if self.monotone else []
        words += [f"bound={self.bound:g}"] if self.bound is not None else []
        return " ".join([*words, *([f"lipschitz={self.lipschitz:g}"] if self.lipschitz is not None else [])])

    @property
    def step(self) -> float:
        return 2 * self.end / (self.knots - 1)

    def controls(self, rng: Random) -> Array:
        """Coefficients of cubic B-splines at the knots: steps between them as allowed, some as large as allowed."""
        most = self.step * (self.lipschitz if self.lipschitz is not None else float(rng.choice([0.3, 2.0, 8.0])))
        steps = most * np.clip(rng.normal(scale=rng.choice([0.2, 1.0, 4.0]), size=self.knots - 1), -1, 1)
        if self.monotone:
            steps = np.abs(steps) * (1 if self.monotone == "nondecreasing" else -1)
        if self.odd:
            steps = (steps + steps[::-1]) / 2
        if self.bound is not None:
            steps[[0, -1]] = 0.0
        found = np.concatenate([[0.0], np.cumsum(steps)])
        found -= (found[0] + found[-1]) / 2 if self.odd else found[self.knots // 2] - rng.normal()
        return found if self.bound is None else np.clip(found, -self.bound, self.bound)

    def register(self, rng: Random) -> None:
        """Make a drawn function known to our own evaluation under its name."""
        controls = self.controls(rng)
        before, after = 2 * controls[0] - controls[1], 2 * controls[-1] - controls[-2]
        places = -self.end + self.step * np.arange(-3, self.knots + 3)
        inner = BSpline(places, np.concatenate([[before], controls, [after]]), 3)
        slope = inner.derivative()

        def value(x: Array) -> Array:
            held = np.clip(x, -self.end, self.end)
            return inner(held) + (x - held) * slope(held)

        def steepness(x: Array) -> Array:
            return slope(np.clip(x, -self.end, self.end))

        expressions.FUNCTIONS[self.name] = value, steepness
        expressions.PRECISE[self.name] = lambda x: self.precise(np.concatenate([[before], controls, [after]]), x)
        formulas.take_up(self.name, value)
        formulas.take_up(f"{self.name}_slope", steepness)

    def precise(self, controls: Array, x: Any) -> Any:
        """The same on a number of mpmath, by the four cubic pieces of a B-spline; lines beyond the ends."""
        held = min(max(x, mpmath.mpf(-self.end)), mpmath.mpf(self.end))
        step = 2 * mpmath.mpf(self.end) / (self.knots - 1)
        piece = min(int(mpmath.floor((held + self.end) / step)), self.knots - 2)
        t = (held + self.end) / step - piece
        a, b, c, d = (mpmath.mpf(float(value)) for value in controls[piece : piece + 4])
        value = (
            (1 - t) ** 3 * a + (3 * t**3 - 6 * t**2 + 4) * b + (1 + 3 * t + 3 * t**2 - 3 * t**3) * c + t**3 * d
        ) / 6
        slope = (-((1 - t) ** 2) * a + (3 * t**2 - 4 * t) * b + (1 + 2 * t - 3 * t**2) * c + t**2 * d) / (2 * step)
        return value + (x - held) * slope


def draw(rng: Random) -> Declared:
    """A random declaration with a drawn function behind it; the name tells them apart, for the life of the process."""

    def maybe(options: list[float], share: float) -> float | None:
        return float(rng.choice(options)) if rng.random() < share else None

    odd = bool(rng.random() < 0.5)
    monotone = str(rng.choice(["", "", "nondecreasing", "nonincreasing"]))
    found = Declared(
        f"phi_{int(rng.integers(10**9))}", int(rng.integers(4, 12)), float(rng.choice([1.0, 2.0, 3.0])), odd, monotone,
        maybe([0.5, 1.0, 2.0], 0.4), maybe([0.25, 0.5, 1.0, 2.0], 0.7),
    )  # fmt: skip
    found.register(rng)
    return found
