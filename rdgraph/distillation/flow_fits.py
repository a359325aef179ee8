"""Formulas through the flow, quickly: dH/dt = (M0 + sum c_j M_j) H + b0 + sum c_j b_j + g(H), and its sensitivities.

Many formulas are compared here; the one that is chosen is fitted again by `rdgraph.inverse`, which shares no code with
this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdgraph.distillation.prefix_terms import Word, evaluate, with_slopes

Array = np.ndarray
#: Steps of the classical Runge-Kutta method are at most this share of the time in which a state changes.
_SHARE, _MOST_STEPS = 0.35, 40
_TURNS, _GAIN = 15, 1e-5


@dataclass(frozen=True)
class AffineTerms:
    """What stands beside the function: matrices (1 + count, n, n) and shifts (1 + count, n, d), the first without c."""

    matrices: Array
    shifts: Array

    def joined(self, coefficients: Array) -> tuple[Array, Array]:
        factors = np.concatenate([[1.0], coefficients])
        return np.tensordot(factors, self.matrices, 1), np.tensordot(factors, self.shifts, 1)


@dataclass(frozen=True)
class FlowFit:
    """Coefficients, constants, the start (n, d), and the sum of squares over what was observed."""

    coefficients: Array
    constants: Array
    start: Array
    squares: float


@dataclass(frozen=True)
class FlowProblem:
    """Observed states (K, n, d) with NaN at times (K,); the start is an unknown unless it is `fixed`."""

    terms: AffineTerms
    states: Array
    times: Array
    fixed: bool

    def fit(self, word: Word, first: FlowFit) -> FlowFit:
        """Least squares by Levenberg's and Marquardt's method, from where `first` stands."""
        best, damping = first, 1e-3
        seen = np.isfinite(self.states)
        made = self.run(word, best)
        if made is None:
            return FlowFit(first.coefficients, first.constants, first.start, np.inf)
        best = self._with(best, made[0])
        for _ in range(_TURNS):
            matrix = made[1][seen]
            left = (self.states - made[0])[seen]
            products, slopes = matrix.T @ matrix, matrix.T @ left
            scale = np.sqrt(np.diagonal(products)) + 1e-12 * np.sqrt(np.diagonal(products).max())
            products = products / np.outer(scale, scale)
            moved = False
            while damping < 1e6 and not moved:
                step = np.linalg.solve(products + damping * np.eye(len(products)), slopes / scale) / scale
                tried = self._stepped(best, step)
                states = self.run(word, tried, sensitive=False)
                tried = tried if states is None else self._with(tried, states[0])
                moved = states is not None and tried.squares < best.squares
                damping = max(damping / 10, 1e-12) if moved else damping * 10
            if not moved:
                return best
            gained, best = 1 - tried.squares / best.squares, tried
            if gained < _GAIN or (made := self.run(word, best)) is None:
                return best
        return best

    def _with(self, fit: FlowFit, states: Array) -> FlowFit:
        squares = float(np.nansum(np.square(self.states - states)))
        return FlowFit(fit.coefficients, fit.constants, fit.start, squares if np.isfinite(states).all() else np.inf)

    def _stepped(self, fit: FlowFit, step: Array) -> FlowFit:
        count, inner = len(fit.coefficients), len(fit.constants)
        start = fit.start if self.fixed else fit.start + step[count + inner :].reshape(fit.start.shape)
        return FlowFit(fit.coefficients + step[:count], fit.constants + step[count : count + inner], start, np.inf)

    def run(self, word: Word, fit: FlowFit, *, sensitive: bool = True) -> tuple[Array, Array] | None:
        """States (K, n, d) and how they follow the unknowns (K, n, d, unknowns); None where the states leave the data.

        The unknowns are the coefficients, the constants and, unless it is fixed, the entries of the start.
        """
        field = _Field(self, word, fit)
        n, d = fit.start.shape
        state, along = fit.start.copy(), self._first_slopes(fit) if sensitive else np.zeros((n, d, 0))
        limit = 20 * (1 + float(np.nanmax(np.abs(self.states))))
        states, slopes = [state], [along]
        with np.errstate(all="ignore"):
            for span in np.diff(self.times):
                count = field.steps(state, span)
                for _ in range(count):
                    state, along = field.step(state, along, span / count)
                if not np.abs(state).max() < limit:
                    return None
                states.append(state)
                slopes.append(along)
        return np.stack(states), np.stack(slopes)

    def _first_slopes(self, fit: FlowFit) -> Array:
        n, d = fit.start.shape
        before = len(fit.coefficients) + len(fit.constants)
        if self.fixed:
            return np.zeros((n, d, before))
        return np.concatenate([np.zeros((n, d, before)), np.eye(n * d).reshape(n, d, n * d)], -1)


class _Field:
    """The right-hand side and its slopes for one choice of the unknowns."""

    def __init__(self, problem: FlowProblem, word: Word, fit: FlowFit) -> None:
        self.terms, self.word, self.constants = problem.terms, word, fit.constants[None]
        self.matrix, self.shift = problem.terms.joined(fit.coefficients)
        self.counts = len(fit.coefficients), len(fit.constants)
        self.norm = float(np.abs(self.matrix).sum(1).max())

    def steps(self, state: Array, span: float) -> int:
        _, slopes = with_slopes(self.word, self.constants, state.reshape(1, -1), along_letter=True)
        speed = self.norm + float(np.nan_to_num(np.abs(slopes[-1])).max())
        return int(np.clip(np.ceil(speed * span / _SHARE), 1, _MOST_STEPS))

    def step(self, state: Array, along: Array, h: float) -> tuple[Array, Array]:
        """One step of the classical Runge-Kutta method for the states and what follows them."""
        a, sa = self.at(state, along)
        b, sb = self.at(state + h / 2 * a, along + h / 2 * sa)
        c, sc = self.at(state + h / 2 * b, along + h / 2 * sb)
        e, se = self.at(state + h * c, along + h * sc)
        return state + h / 6 * (a + 2 * b + 2 * c + e), along + h / 6 * (sa + 2 * sb + 2 * sc + se)

    def at(self, state: Array, along: Array) -> tuple[Array, Array]:
        n, d = state.shape
        flat = state.reshape(1, -1)
        if not along.shape[-1]:
            value = evaluate(self.word, self.constants, flat).reshape(n, d)
            return self.matrix @ state + self.shift + value, along
        values, slopes = with_slopes(self.word, self.constants, flat, along_letter=True)
        speed = self.matrix @ state + self.shift + values.reshape(n, d)
        count, inner = self.counts
        change = (self.matrix @ along.reshape(n, -1)).reshape(along.shape)
        change += slopes[-1].reshape(n, d, 1) * along
        if count:
            change[..., :count] += np.moveaxis(self.terms.matrices[1:] @ state + self.terms.shifts[1:], 0, -1)
        change[..., count : count + inner] += np.moveaxis(slopes[:-1].reshape(inner, n, d), 0, -1)
        return speed, change
