"""Fast fits of formulas through the flow dH/dt = (M0 + sum c_j M_j) H + b0 + sum c_j b_j + g(H) and its sensitivities.

Many formulas are compared here; the chosen one is fitted again by `rdgraph.infer.fit`, which integrates with other
code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
import torch

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.infer.fit.damped_steps import minimise
from rdgraph.infer.formulas.constant_fits import Target
from rdgraph.infer.formulas.formula_finding import with_function
from rdgraph.infer.formulas.prefix_terms import Word, evaluate, with_slopes
from rdgraph.language.normal_form import H
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.vector_field import lower
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- weak form
# The weak form of an equation along observed states: rows that are linear in its coefficients and its function.
#
# With a test function psi that vanishes at the ends of a window of time, dH/dt = sum c_j w_j(H) + phi(H) gives
#
#     -int psi' H dt = sum c_j int psi w_j(H) dt + int psi phi(H) dt
#
# so that no state is differentiated (Messenger and Bortz 2021, "Weak SINDy for partial differential equations").

Array = np.ndarray
#: Points of time at which smoothed states are taken, test functions, and the half width of these in parts of the time.
POINTS, TESTS, HALF_WIDTH = 160, 24, 0.12
_ORDER = 4
#: The fewest observations of an entry that can be smoothed.
FEWEST = 8


@dataclass(frozen=True)
class SmoothStates:
    """Smoothed states (points, entries) at equally spaced times, and the noise of the observed ones."""

    times: Array
    states: Array
    noise: float


def smooth_states(times: Array, states: Array) -> SmoothStates:
    """Smoothing splines of every entry of states (K, entries), with the penalty chosen by cross-validation.

    Entries that were not observed are NaN.
    """
    from scipy.interpolate import make_smoothing_spline

    seen = np.isfinite(states)
    if (least := int(seen.sum(0).min())) < FEWEST:
        raise InvalidArgument(
            f"expected every node to be observed at least {FEWEST} times, got {least}; observe more, or leave nodes out"
        )
    span = times[-1] - times[0]
    fine = np.linspace(times[0], times[-1], POINTS)
    unit = (times - times[0]) / span
    columns = []
    for k in range(states.shape[1]):
        known = seen[:, k]
        scale = float(np.ptp(states[known, k])) or 1.0
        spline = make_smoothing_spline(unit[known], states[known, k] / scale)
        columns.append(scale * spline(np.linspace(0.0, 1.0, POINTS)))
    return SmoothStates(fine, np.stack(columns, 1), noise_level(times, states))


def noise_level(times: Array, states: Array) -> float:
    """The noise of states (K, entries), from their distance to the cubic through their four neighbours in time.

    Gasser, Sroka and Jennen-Steinmetz 1986 take the line through two.
    """
    if len(times) < 5:
        raise InvalidArgument(f"expected at least 5 times, got {len(times)}; observe more")
    squares = []
    for k in range(2, len(times) - 2):
        around = np.array([k - 2, k - 1, k + 1, k + 2])
        others = times[around]
        weights = np.array(
            [np.prod([(times[k] - o) / (t - o) for o in others if o != t]) for t in others]
        )  # Lagrange's, of the cubic
        squares.append(np.square(states[k] - weights @ states[around]) / (1 + np.square(weights).sum()))
    return float(np.sqrt(np.nanmean(np.stack(squares))))


@dataclass(frozen=True)
class WeakForm:
    """Rows (tests, entries) of the observed states, and of each known term with coefficient 1.

    `weights` (tests, points) maps the values of a term along the smoothed states to its rows.
    """

    smooth: SmoothStates
    weights: Array
    rows: Array
    columns: Array

    def target(self) -> Target:
        """The target of the function: the rows projected off the known terms."""
        basis = self._basis()

        def measure(values: Array) -> Array:
            shaped = values.reshape(*values.shape[:-1], *self.smooth.states.shape)
            rows = np.matmul(self.weights, shaped).reshape(*values.shape[:-1], -1)
            return rows - (rows @ basis) @ basis.T

        y = self.rows.reshape(1, -1)
        return Target(self.smooth.states.reshape(1, -1), y - (y @ basis) @ basis.T, measure)

    def coefficients(self, values: Array) -> Array:
        """The coefficients of the known terms, given the values of the function along the smoothed states."""
        rest = self.rows - self.weights @ values.reshape(self.smooth.states.shape)
        flat = self.columns.reshape(len(self.columns), -1)
        solution, *_ = np.linalg.lstsq(flat.T, rest.reshape(-1), rcond=None)
        return solution

    def _basis(self) -> Array:
        flat = self.columns.reshape(len(self.columns), self.rows.size)
        return np.linalg.qr(flat.T)[0] if len(flat) else np.zeros((self.rows.size, 0))


def weak_form(smooth: SmoothStates, known: Array, terms: Array) -> WeakForm:
    """Rows from the term without a coefficient (points, entries) and those with one (count, points, entries)."""
    span = smooth.times[-1] - smooth.times[0]
    half = HALF_WIDTH * span
    centres = np.linspace(smooth.times[0] + half, smooth.times[-1] - half, TESTS)
    s = (smooth.times - centres[:, None]) / half
    inside = np.where(np.abs(s) < 1, 1 - s**2, 0.0)
    step = span / (POINTS - 1)
    weights = inside**_ORDER * step
    slopes = -2 * _ORDER * s / half * inside ** (_ORDER - 1) * step
    rows = -slopes @ smooth.states - weights @ known
    return WeakForm(smooth, weights, rows, np.matmul(weights, terms))


def spline_function(form: WeakForm, knots: int = 14) -> tuple[Array, Array, float]:
    """The function as a cubic spline: points, values there, and the remaining error of a row.

    A small penalty on its second differences keeps the spline smooth.
    """
    from scipy.interpolate import BSpline

    target = form.target()
    x = target.x.reshape(-1)
    inner = np.linspace(x.min(), x.max(), knots - 2)
    places = np.concatenate([[inner[0]] * 3, inner, [inner[-1]] * 3])
    count = len(places) - 4
    design = BSpline.design_matrix(x, places, 3).toarray()
    matrix = np.stack([target.measure(design[:, k][None])[0] for k in range(count)], 1)
    bend = np.diff(np.eye(count), 2, axis=0)
    products = matrix.T @ matrix
    products += 1e-5 * np.trace(products) / count * bend.T @ bend + 1e-12 * np.trace(products) * np.eye(count)
    solution = np.linalg.solve(products, matrix.T @ target.y[0])
    rest = target.y[0] - matrix @ solution
    points = np.linspace(x.min(), x.max(), 101)
    freedom = max(len(rest) - count, 1)
    return points, BSpline(places, solution, 3)(points), float(np.sqrt(rest @ rest / freedom))


# ---------------------------------------------------------------------- flow fits
#: A step of the classical Runge-Kutta method is at most this share of the time scale of the state.
_SHARE, _MOST_STEPS = 0.35, 40
_STEPS, _SHORT, _GAIN = 40, 1e-9, 1e-5


@dataclass(frozen=True)
class AffineTerms:
    """Terms other than the function: matrices (1 + count, n, n) and shifts (1 + count, n, d), the first without c."""

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
        """Least squares starting at `first`; the squares are infinite if the states diverge from the data at once."""
        seen = np.isfinite(self.states)

        def rest(rows: Array, _: Array) -> Array:
            runs = [self.run(word, self._of(row, first), sensitive=False) for row in rows]
            return np.stack([np.full(seen.sum(), np.inf) if m is None else (m[0] - self.states)[seen] for m in runs])

        def slopes(rows: Array, _: Array) -> Array:
            runs = [self.run(word, self._of(row, first)) for row in rows]
            return np.stack([np.zeros((seen.sum(), len(rows[0]))) if m is None else m[1][seen] for m in runs])

        start = [] if self.fixed else [first.start.ravel()]
        row = np.concatenate([first.coefficients, first.constants, *start])
        end = minimise(rest, slopes, row[None], max_steps=_STEPS, rtol=_SHORT, gain=_GAIN)
        return replace(self._of(end.rows[0], first), squares=float(end.squares[0]))

    @staticmethod
    def _of(row: Array, like: FlowFit) -> FlowFit:
        """The unknowns of a row; a start that is not part of it is taken from `like`."""
        coefficients, constants, start = np.split(row, np.cumsum([len(like.coefficients), len(like.constants)]))
        return FlowFit(coefficients, constants, start.reshape(like.start.shape) if len(start) else like.start, np.inf)

    def run(self, word: Word, fit: FlowFit, *, sensitive: bool = True) -> tuple[Array, Array] | None:
        """States (K, n, d) and their derivatives in the unknowns (K, n, d, unknowns); None where the states diverge.

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
        """One step of the classical Runge-Kutta method for the states and their sensitivities."""
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


# ---------------------------------------------------------------------- unknown function
# An equation with an unknown function, `... + phi(H)`: its known terms along states, and the equation with a formula
# for the function.

#: The most nodes for which dense matrices are built.
MOST_NODES = 600
_CALL = re.compile(r"(?<![\w'])([^\W\d]\w*)\(")


@dataclass(frozen=True)
class UnknownFunction:
    """An equation of one field in which `name` is added once, as in -alpha*L@H + phi(H).

    >>> UnknownFunction.of("-alpha*L@H + phi(H)", "phi").coefficients
    ('alpha',)
    """

    equation: str
    name: str
    coefficients: tuple[str, ...]

    @classmethod
    def of(cls, equation: str, name: str) -> UnknownFunction:
        """The equation with its unknown function; raises unless the function is simply added."""
        if name not in _CALL.findall(equation):
            raise InvalidArgument(f"expected {name}(H) in the equation, got {equation!r}; add it, or say function=")
        level, slope = (parse(with_function(equation, name, body, [f"{_LETTER} scalar"])) for body in (_LEVEL, _SLOPE))
        if not level.is_single or level.is_noisy:
            raise NotApplicable(f"expected one field without noise, got {equation!r}; write the equation of one field")
        letters = valued_letters(level)
        names = tuple(n for n in letters if n != _LETTER)
        for n in names:
            if letters[n] is not Kind.SCALAR:
                raise NotApplicable(f"expected scalar coefficients next to {name}, got {n} {letters[n].value}; fix it")
        rest = parse(with_function(equation, name, "0*H"))
        for factor, system in ((sp.S.One, level), (H, slope)):
            if not _adds(rest, system, factor):
                raise NotApplicable(
                    f"expected {name} to be added once, as in -alpha*L@H + {name}(H), got {equation!r}; "
                    "write the equation so"
                )
        return cls(equation, name, names)

    def system(self, body: str) -> System:
        """The equation with `body` as its function."""
        return parse(with_function(self.equation, self.name, body))

    def terms(self, operator: Operator, states: Array, start: Array) -> tuple[Array, Array]:
        """The terms other than the function at states (points, n, d): without coefficients, and with each of them.

        The terms must be linear in the coefficients.
        """
        system, names = self.system("0*H"), self.coefficients
        along = torch.as_tensor(states, dtype=torch.float64)

        def at(values: Array) -> Array:
            given = dict(zip(names, values.tolist(), strict=True))
            field = lower(system, operator, {n: v for n, v in given.items() if n in valued_letters(system)})
            if field.uses_initial:
                field = field.bind(torch.as_tensor(start, dtype=torch.float64))
            with torch.no_grad():
                return field(None, along).numpy()

        ones = np.ones(len(names))
        base = at(ones)
        terms = [at(ones + row) - base for row in np.eye(len(names))]
        known = base - sum(terms) if terms else base
        probe = np.linspace(0.5, 2.0, len(names))
        total = known + sum(value * term for value, term in zip(probe, terms, strict=True))
        if not np.allclose(total, at(probe), rtol=1e-8, atol=1e-8 * (1 + np.abs(total).max())):
            raise NotApplicable(f"expected terms that are linear in {', '.join(names)}, got {self.equation!r}")
        return known, np.stack(terms) if terms else np.zeros((0, *known.shape))


def affine_terms(unknown: UnknownFunction, operator: Operator, channels: int) -> AffineTerms | None:
    """The terms other than the function as matrices and shifts; None if they are not affine in the state or use H0."""
    system = unknown.system("0*H")
    n = operator.num_nodes
    if not system.is_autonomous or "H0" in system.letters or n > MOST_NODES:
        return None
    rng = np.random.default_rng(0)
    probes = np.concatenate([np.zeros((1, n, 1)), np.eye(n)[:, :, None], rng.standard_normal((1, n, 1))])
    known, terms = unknown.terms(operator, probes, probes[0])
    every = np.concatenate([known[None], terms])
    shifts = every[:, 0]
    matrices = (every[:, 1:-1] - shifts[:, None])[..., 0].swapaxes(1, 2)
    if not np.allclose(matrices @ probes[-1] + shifts, every[:, -1], rtol=1e-8, atol=1e-10):
        return None
    return AffineTerms(matrices, np.repeat(shifts, channels, -1))


#: A name that no equation uses, for constant and linear functions.
_LETTER = "level_of_function"
_LEVEL, _SLOPE = f"{_LETTER}*H**0", f"{_LETTER}*H"


def _adds(rest: System, whole: System, factor: sp.Expr) -> bool:
    """Whether the second right-hand side is the first plus the probe coefficient times a factor."""
    letter = next((s for s in whole.normal.free_symbols if s.name == _LETTER), None)
    return letter is not None and sp.expand(whole.normal - rest.normal - letter * factor) == 0
