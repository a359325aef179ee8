"""Thresholds: the values of one coefficient at which patterns begin or end, all other coefficients fixed.

The kind of instability of a steady state can change only where a root lam of the determinant of P(lam) or of the last
but one Hurwitz determinant appears, disappears, or passes an end of the range. These values of the coefficient are
roots of polynomials; between two neighbouring roots one sample decides exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam
from rdgraph.reals.budget import within_budget
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.patterns.bands import between, characteristic, hurwitz_determinants, real_roots
from rdgraph.theory.patterns.dispersion import (
    ANTI,
    END,
    HOPF,
    MARGINAL,
    STABLE,
    TURING,
    TURING_WAVE,
    UNSTABLE,
    WAVE,
    Dispersion,
    dispersion_of,
)
from rdgraph.theory.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.theory.patterns.linearisation import fastest_first
from rdgraph.theory.patterns.mode_spectra import ModeSpectrum, check_degrees, mode_spectrum
from rdgraph.theory.patterns.states import EXACT, SteadyState, shown
from rdgraph.theory.patterns.steady_states import solve_states, state_at
from rdgraph.theory.patterns.turing_analysis import check_slopes
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.wording import html_table, listed

# ---------------------------------------------------------------------- state branches
# `StateBranch`: a steady state as one coefficient varies.

#: Digits of irrational numbers, the sizes of values at which a branch without closed form is evaluated, and how often
#: an interval between two of them is halved.
DIGITS = 50
SCANNED = tuple(sp.Rational(10) ** sp.Rational(k) for k in range(-3, 4))
STEPS = (1, 3)
HALVINGS = 33


@dataclass(frozen=True)
class StateBranch:
    """A steady state as function of one coefficient.

    Without a `state` the linearisation is the same at all states (a linear system), or, if `index` is given, the state
    has no rational closed form and is computed again at every value.
    """

    state: SteadyState | None
    index: int | None
    assumes: str

    @property
    def is_closed(self) -> bool:
        """Whether P(lam) is a rational function of the coefficient with rational numbers."""
        return self.index is None and (self.state is None or all(_is_plain(v) for v in self.state.point.values()))

    @property
    def limits(self) -> list[sp.Expr]:
        """Expressions that vanish where the state ceases to exist."""
        if self.state is None:
            return []
        bottoms = [sp.fraction(sp.together(value))[1] for value in self.state.point.values()]
        return [b for b in bottoms if b.free_symbols] + [c.lhs - c.rhs for c in self.state.conditions]

    def matrix(self, kinetics: Kinetics) -> sp.ImmutableMatrix:
        """P(lam) with the rational values of the state substituted."""
        if self.state is None:
            return kinetics.matrix
        plain = {x: value for x, value in self.state.point.items() if _is_plain(value)}
        return kinetics.matrix.xreplace(plain)

    def at(self, fixed: Kinetics, value: sp.Expr) -> SteadyState | None:
        """The state at one value, which `fixed` contains; raises NotApplicable where there is none."""
        if self.index is not None:
            return state_at(fixed, self.index)
        if self.state is None or self.state.is_number:
            return self.state
        letters = {x for v in self.state.point.values() for x in v.free_symbols}
        number = dict.fromkeys(letters, value)
        point = {x: sp.nsimplify(v.xreplace(number)) for x, v in self.state.point.items()}
        if any(c.xreplace(number) != sp.true for c in self.state.conditions) or sp.Tuple(*point.values()).has(sp.zoo):
            raise NotApplicable("the steady state does not exist at this value")
        return SteadyState(point, assumes=self.state.assumes)

    # ------------------------------------------------------------------ numbers
    def numbers(self, kinetics: Kinetics, letter: sp.Symbol, value: sp.Expr) -> dict[sp.Basic, sp.Expr]:
        """The coefficient and the state at one value, with many digits."""
        numbers: dict[sp.Basic, sp.Expr] = {letter: sp.N(value, DIGITS)}
        if self.index is not None:
            state = state_at(kinetics.at({letter.name: sp.Rational(str(sp.N(value, DIGITS)))}), self.index)
            return numbers | {x: sp.N(v, DIGITS) for x, v in state.point.items()}
        if self.state is not None:
            numbers |= {x: sp.N(v.xreplace({letter: numbers[letter]}), DIGITS) for x, v in self.state.point.items()}
        return numbers

    def roots(self, polynomials: Sequence[sp.Expr], letter: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[sp.Expr]:
        """The roots in the coefficient of polynomials that also contain the state, as rational numbers."""
        assert self.state is not None
        numbers = {x: sp.N(v, DIGITS) for x, v in self.state.point.items()}
        roots: list[sp.Expr] = []
        for polynomial in polynomials:
            put_in = sp.Poly(polynomial.xreplace(numbers), letter)
            for root in put_in.nroots(n=DIGITS // 2, maxsteps=200) if put_in.degree() else ():
                real, imaginary = root.as_real_imag()
                if abs(imaginary) < sp.Float(10) ** -12 * (1 + abs(real)):
                    roots.append(sp.Rational(str(real)))
        inside = sorted(r for r in roots if lower < r < upper)
        return [r for k, r in enumerate(inside) if k == 0 or r - inside[k - 1] > sp.Rational(1, 10**12) * abs(r)]

    def scanned(self, kinetics: Kinetics, letter: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[sp.Expr]:
        """The values where the kind changes between the values of a table, by bisection."""

        def kind(value: sp.Expr) -> str:
            try:
                return dispersion_of(kinetics.at({letter.name: value}), self.index or 0).outcome
            except NotApplicable:
                return "no steady state"

        sizes = [size * step for size in SCANNED for step in STEPS]
        table = [x for x in (*(-s for s in reversed(sizes)), *sizes) if lower < x < upper]
        kinds = [kind(x) for x in table]
        places = []
        for k in range(len(table) - 1):
            low, high = table[k], table[k + 1]
            if kinds[k] == kinds[k + 1]:
                continue
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if kind(middle) == kinds[k] else (low, middle)
            places.append((low + high) / 2)
        return places

    def critical_mode(self, kinetics: Kinetics, letter: sp.Symbol, value: sp.Expr, to: sp.Expr) -> float:
        """The lam in (0, to] whose growth is largest, and zero, at a threshold."""
        numbers = self.numbers(kinetics, letter, value)
        matrix = kinetics.matrix.xreplace(numbers)
        coefficients = characteristic(matrix)
        places = [float(to)] if to.is_finite else []
        for test in hurwitz_determinants(coefficients)[-2:]:
            polynomial = sp.Poly(test, lam)
            powers = [float(c) for c in polynomial.all_coeffs()]
            places += [float(root.real) for root in np.roots(powers)] if len(powers) > 1 else []
        inside = [x for x in places if x > 0 and (not to.is_finite or x <= float(to))]
        entries = sp.lambdify(lam, matrix, "numpy")
        return max(inside, key=lambda x: float(np.linalg.eigvals(np.array(entries(x), dtype=float)).real.max()))


def _is_plain(value: sp.Expr) -> bool:
    """Whether a value is a rational number or a rational function with rational numbers."""
    numbers = value.atoms(sp.Number, sp.NumberSymbol)
    whole = all(power.exp.is_Integer for power in value.atoms(sp.Pow))
    return whole and not value.has(sp.CRootOf, sp.Function) and all(number.is_Rational for number in numbers)


def follow(kinetics: Kinetics, letter: sp.Symbol, state: int) -> StateBranch:
    """The branch of the steady state with a number, along which the coefficient `letter` varies."""
    if kinetics.is_linear:
        return StateBranch(None, None, kinetics.modes_assume)
    states = solve_states(kinetics)
    chosen = states[state] if state < len(states) else None
    varies = any(rate.has(letter) for rate in kinetics.rates)
    if chosen is not None and not chosen.free:
        closed = chosen.how == EXACT and all(_is_plain(v) for v in chosen.point.values())
        if closed or not varies:
            return StateBranch(chosen, None, chosen.assumes)
    if not varies:
        raise NotApplicable(f"no steady state with the number {state} was found; {states.reason}")
    return StateBranch(None, state, kinetics.assumes)


# ---------------------------------------------------------------------- threshold values
# `Thresholds`: the values of one coefficient at which patterns begin or end, and the kinds between them.

NO_STATE, OUTSIDE = "no steady state", "outside the assumptions"
#: The kinds of instability that are patterns: the state is stable where all nodes agree.
PATTERNS = (TURING, WAVE, TURING_WAVE)

CALM = (STABLE, MARGINAL, Status.UNDECIDED, NO_STATE, OUTSIDE)


@dataclass(frozen=True)
class Threshold:
    """A value of a coefficient with patterns on one side.

    `below` and `above` are the kinds of instability on the two sides; `lam` is the mode whose growth is zero, 0 where
    the constant mode begins to grow. An exact value is an algebraic number; others have a relative error below 1e-9.
    """

    value: sp.Expr
    lam: float
    below: str
    above: str
    is_exact: bool = True

    @property
    def unstable_side(self) -> str:
        """The side on which the steady state is unstable: "above", "below" or "both"."""
        growing = [kind not in CALM for kind in (self.below, self.above)]
        return "both" if all(growing) else "above" if growing[1] else "below"

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{shown(self.value)} (at lam = {self.lam:.6g}): {self.below} below, {self.above} above"

    def to_dict(self) -> dict[str, Any]:
        """The threshold as texts and numbers."""
        return {
            "value": str(self.value), "number": float(self.value), "lam": self.lam, "below": self.below,
            "above": self.above, "unstable_side": self.unstable_side, "is_exact": self.is_exact,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Thresholds(Answer):
    """All thresholds of one coefficient in ascending order, and the kinds between them.

    `regions` are triples (lower, upper, kind at a value inside); with three or more fields patterns may be stationary
    in one part of a region and oscillate in another. With `is_complete` there are no others; `reason` says why.
    """

    coefficient: str
    thresholds: tuple[Threshold, ...]
    regions: tuple[tuple[sp.Expr, sp.Expr, str], ...]
    is_complete: bool
    reason: str
    assumes: str

    @property
    def status(self) -> Status:
        """proved if these are all and exact; bounded if some are enclosed or others are possible; else undecided."""
        if not self.is_complete and not self.thresholds:
            return Status.UNDECIDED
        is_exact = self.is_complete and all(threshold.is_exact for threshold in self.thresholds)
        return Status.PROVED if is_exact else Status.BOUNDED

    def __bool__(self) -> bool:
        return bool(self.thresholds)

    def __len__(self) -> int:
        return len(self.thresholds)

    def __iter__(self) -> Iterator[Threshold]:
        return iter(self.thresholds)

    def __getitem__(self, index: int) -> Threshold:
        return self.thresholds[index]

    @property
    def value(self) -> sp.Expr:
        """The only critical value, at which the state becomes unstable to patterns; raises where there are others."""
        critical = [threshold.value for threshold in self.thresholds if threshold.unstable_side != "both"]
        if len(critical) != 1:
            raise NotApplicable(f"{self.coefficient} has {len(critical)} critical values; use the list of thresholds")
        return critical[0]

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        lines = [f"{self.coefficient} = {threshold}" for threshold in self.thresholds] or [self._none()]
        lines += [f"{shown(low)} < {self.coefficient} < {shown(high)}: {kind}" for low, high, kind in self.regions]
        lines.append(f"{'complete' if self.is_complete else 'not proved to be complete'}: {self.reason}")
        return "\n".join([*lines, f"assumes: {self.assumes}"])

    def _none(self) -> str:
        kinds = list(dict.fromkeys(kind for _, _, kind in self.regions))
        if len(kinds) == 1:
            return f"no threshold of {self.coefficient}: {kinds[0]} throughout"
        return f"no threshold of {self.coefficient}: for no value a state that is stable without transport has patterns"

    def __repr__(self) -> str:
        return f"Thresholds of {self.coefficient}\n{self}"

    def _repr_html_(self) -> str:
        rows = [(f"{shown(low)} to {shown(high)}", kind) for low, high, kind in self.regions]
        return html_table(f"patterns by {self.coefficient}", rows, footer=f"{self.reason}; assumes: {self.assumes}")

    def to_dict(self) -> dict[str, Any]:
        """Thresholds and regions as texts and numbers."""
        return {
            "coefficient": self.coefficient,
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "regions": [[str(low), str(high), kind] for low, high, kind in self.regions],
            "status": str(self.status), "is_complete": self.is_complete, "reason": self.reason, "assumes": self.assumes,
        }  # fmt: skip


# ---------------------------------------------------------------------- mode thresholds
# Thresholds on the modes of one graph, in double precision.
#
# Every mode grows on some intervals of the coefficient; patterns form on their union, where the constant mode decays.

#: Eigenvalues of the constant mode, growth, and relative distances of two values below this count as zero.
TOLERANCE = 1e-9
#: Values that are tried where the eigenvalues of L are complex.
GRID = np.logspace(-4, 4, 401)

Interval = tuple[float, float]
Change = tuple[float, float, str, str]


class _Family:
    """P(lam; c) for numbers lam and c."""

    def __init__(self, kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch) -> None:
        if branch.index is not None:
            raise Undecided("the steady state has no closed form in the coefficient; ask without an operator")
        state = {} if branch.state is None else dict(branch.state.point)
        matrix = kinetics.matrix.xreplace(state)
        check_slopes(kinetics, branch.state, matrix)
        self.size = int(matrix.shape[0])
        self._entries = sp.lambdify((lam, letter), [sp.sympify(x) for x in matrix], "numpy")
        tests = [
            sp.fraction(sp.together(t)) for t in hurwitz_determinants(characteristic(branch.matrix(kinetics)))[-2:]
        ]
        numbers = {x: sp.N(v, 30) for x, v in state.items()}
        parts = [sp.Poly(part.xreplace(numbers), letter) for pair in tests for part in pair if part.has(letter)]
        self._polynomials = [sp.lambdify(lam, [sp.sympify(c) for c in p.all_coeffs()], "numpy") for p in parts]

    def matrices(self, modes: Any, values: Any) -> np.ndarray:
        """(*shape, size, size)"""
        modes, values = np.broadcast_arrays(modes, values)
        entries = [np.broadcast_to(np.asarray(e), modes.shape) for e in self._entries(modes, values)]
        return np.stack(entries, axis=-1).reshape(*modes.shape, self.size, self.size)

    def eigenvalues(self, modes: Any, values: Any) -> np.ndarray:
        """(*shape, size), the one with the largest real part first."""
        return fastest_first(self.matrices(modes, values))

    def growth(self, modes: Any, values: Any) -> np.ndarray:
        return self.eigenvalues(modes, values)[..., 0].real

    def changes(self, mode: Any, limits: Interval) -> list[float]:
        """The values at which the growth of one mode may change its sign, in ascending order."""
        places: list[float] = []
        if np.iscomplexobj(mode):
            signs = self.growth(mode, GRID) > 0
            switches = np.flatnonzero(signs[1:] != signs[:-1])
            places += [_bisected(lambda c: float(self.growth(mode, c)), GRID[k], GRID[k + 1]) for k in switches]
        else:
            for polynomial in self._polynomials:
                powers = np.trim_zeros(np.array([float(c) for c in polynomial(float(mode))]), "f")
                roots = np.roots(powers)
                real = np.abs(roots.imag) <= TOLERANCE * np.maximum(np.abs(roots), 1e-300)
                places += [float(x) for x in roots[real].real]
        return sorted(x for x in set(places) if limits[0] < x < limits[1])

    def growing(self, mode: Any, limits: Interval) -> list[Interval]:
        """The intervals of the coefficient on which one mode grows."""
        edges = [limits[0], *self.changes(mode, limits), limits[1]]
        pairs = list(itertools.pairwise(edges))
        values = self.growth(mode, np.array([_inside(*pair) for pair in pairs]))
        return [pair for pair, value in zip(pairs, values, strict=True) if value > TOLERANCE * 1e-3]


def mode_changes(
    kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, spectrum: ModeSpectrum, limits: tuple[sp.Expr, sp.Expr]
) -> tuple[list[Change], tuple[tuple[sp.Expr, sp.Expr, str], ...]]:
    """Thresholds (value, mode, kind below, kind above), and the regions between them."""
    family = _Family(kinetics, letter, branch)
    bounds = (float(limits[0]), float(limits[1]))
    modes = spectrum.eigenvalues
    moving = modes[np.abs(modes) > TOLERANCE * max(1.0, float(np.abs(modes).max()))]
    grown = [(low, high, mode) for mode in moving for low, high in family.growing(mode, bounds)]
    union = _merged([(low, high) for low, high, _ in grown])
    decaying = _complement(_merged(family.growing(0.0, bounds)), bounds)
    pattern = [pair for pair in _intersections(union, decaying) if pair[1] > pair[0]]
    edges = sorted({bounds[0], bounds[1], *(x for pair in [*pattern, *union, *decaying] for x in pair)})
    kinds = [_kind(family, moving, _inside(*pair)) for pair in itertools.pairwise(edges)]
    changes: list[Change] = []
    regions: list[tuple[sp.Expr, sp.Expr, str]] = []
    for (low, high), kind in zip(itertools.pairwise(edges), kinds, strict=True):
        if regions and regions[-1][2] == kind:
            regions[-1] = (regions[-1][0], _number(high), kind)
            continue
        if regions and (regions[-1][2] in (TURING, WAVE)) != (kind in (TURING, WAVE)):
            mode = moving[int(family.growth(moving, low).argmax())]
            at_rest = {regions[-1][2], kind} & {STABLE, MARGINAL, ANTI}
            changes.append((low, float(mode.real) if at_rest else 0.0, regions[-1][2], kind))
        regions.append((_number(low), _number(high), kind))
    return changes, tuple(regions)


def _kind(family: _Family, modes: np.ndarray, value: float) -> str:
    at_zero = family.eigenvalues(0.0, value)
    growing = int((at_zero.real > TOLERANCE).sum())
    if growing:
        return HOPF if growing % 2 == 0 else UNSTABLE
    eigenvalues = family.eigenvalues(modes, value)
    best = eigenvalues[int(eigenvalues[:, 0].real.argmax()), 0]
    if best.real <= 0:
        return STABLE if at_zero[0].real < -TOLERANCE else MARGINAL
    alone = family.matrices(modes, value) - family.matrices(0.0, value)
    if np.linalg.eigvals(alone).real.max() > TOLERANCE:
        return ANTI
    return WAVE if abs(best.imag) > TOLERANCE * abs(best) else TURING


def _inside(low: float, high: float) -> float:
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(high):
        return 2 * low + 1 if low >= 0 else low / 2 + 1
    if np.isinf(low):
        return 2 * high - 1 if high <= 0 else high / 2 - 1
    return (low + high) / 2


def _merged(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _complement(intervals: list[Interval], limits: Interval) -> list[Interval]:
    edges = [limits[0], *(x for pair in intervals for x in pair), limits[1]]
    return [(edges[k], edges[k + 1]) for k in range(0, len(edges), 2) if edges[k + 1] > edges[k]]


def _intersections(left: list[Interval], right: list[Interval]) -> list[Interval]:
    return [(max(a, c), min(b, d)) for a, b in left for c, d in right if max(a, c) < min(b, d)]


def _bisected(function: Callable[[float], float], low: float, high: float) -> float:
    sign = function(low) > 0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) == sign else (low, middle)
    return (low + high) / 2


def _number(value: float) -> sp.Expr:
    return sp.oo if value == np.inf else -sp.oo if value == -np.inf else sp.Float(value, 17)


# ---------------------------------------------------------------------- thresholds
#: Half the width of an interval that is proved to contain a threshold, relative to the value.
BRACKET = sp.Rational(1, 10**9)


@reads_system
@within_budget()
def turing_threshold(
    system: System, coefficient: str, values: Mapping[str, Any], operator: Any = None, *, state: int = 0, to: Any = END
) -> Thresholds:
    """The values of one coefficient at which patterns begin or end, all others fixed.

    Args:
        system: several fields.
        coefficient: the name of the coefficient that varies, over all values of its sign.
        values: numbers for all others.
        operator: an `Operator`, a matrix L or its eigenvalues, to which lam is then restricted, in double precision.
        state: which of `steady_states`, followed as the coefficient varies.
        to: the end of the range of lam; `sympy.oo` for no end.

    Returns:
        The thresholds in ascending order, each with the mode that begins to grow and the kinds on both sides.

    Raises:
        InvalidArgument: there is no such coefficient, or values are missing.
        NotApplicable: no steady state is equal in all nodes.
        Undecided: time ran out.

    >>> import sympy as sp, rdgraph as rd
    >>> s = rd.parse("u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v")
    >>> answer = rd.turing_threshold(s, "b", {"a": 2, "Du": 1, "Dv": 16}, to=sp.oo)
    >>> answer[0].value, answer[0].unstable_side
    (9/4, 'above')
    """
    kinetics = system_kinetics(system)
    end = sp.oo if to in (sp.oo, float("inf")) else exact_number(to, "end of the range")
    check_degrees(kinetics, operator)
    spectrum = None if operator is None else mode_spectrum(operator)
    return thresholds_of(kinetics, coefficient, values, state, spectrum, end)


def thresholds_of(
    kinetics: Kinetics,
    coefficient: str,
    values: Mapping[str, Any],
    state: int = 0,
    spectrum: ModeSpectrum | None = None,
    to: sp.Expr = END,
) -> Thresholds:
    """The thresholds of kinetics; see `turing_threshold`."""
    if coefficient not in kinetics.coefficients:
        known = ", ".join(sorted(kinetics.coefficients))
        raise InvalidArgument(f"expected a coefficient among {known}, got {coefficient!r}")
    held = kinetics.at({name: value for name, value in values.items() if name != coefficient})
    letter = held.coefficients.get(coefficient)
    others = sorted(set(held.coefficients) - {coefficient})
    if others or letter is None:
        raise InvalidArgument(f"expected values for all coefficients but {coefficient}, got none for {listed(others)}")
    branch = follow(held, letter, state)
    if spectrum is not None:
        return _on_modes(held, letter, branch, spectrum)
    return _on_range(held, letter, branch, to)


# ---------------------------------------------------------------------- a range of lam
def _on_range(kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, to: sp.Expr) -> Thresholds:
    lower, upper = _admissible(letter)
    places, is_complete = _candidates(kinetics, letter, branch, to, lower, upper)
    is_exact = branch.is_closed
    edges = [lower, *places, upper]
    answers = [_at(kinetics, letter, branch, between(a, b), to) for a, b in itertools.pairwise(edges)]
    regions: list[tuple[sp.Expr, sp.Expr, str]] = []
    thresholds: list[Threshold] = []
    for (low, high), kind in zip(itertools.pairwise(edges), answers, strict=True):
        if regions and regions[-1][2] == kind:
            regions[-1] = (regions[-1][0], high, kind)
            continue
        if regions and (regions[-1][2] in PATTERNS) != (kind in PATTERNS):
            at_rest = {regions[-1][2], kind} & {*CALM, ANTI}
            mode = branch.critical_mode(kinetics, letter, low, to) if at_rest else 0.0
            thresholds.append(Threshold(low, mode, regions[-1][2], kind, is_exact))
        regions.append((low, high, kind))
    if not is_exact:
        _confirm(thresholds, lambda value: _at(kinetics, letter, branch, value, to))
    if not is_exact:
        note = "changes were located numerically; each is proved with a relative error below 1e-9"
    elif is_complete:
        note = "all changes are roots of polynomials, and a sample between neighbouring roots decides"
    else:
        note = "some eigenvalues come in pairs s, -s for all values; their changes were not examined"
    within = f"for lam in (0, {to}]: " if to.is_finite else "for all lam > 0: "
    assumes = kinetics.on_real_modes(branch.assumes)
    return Thresholds(letter.name, tuple(thresholds), tuple(regions), is_complete, within + note, assumes)


def _admissible(letter: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
    lower = sp.S.Zero if letter.is_nonnegative else -sp.oo
    return lower, sp.S.Zero if letter.is_nonpositive else sp.oo


def _at(kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, value: sp.Rational, to: sp.Expr) -> str:
    """The kind of instability at one value of the coefficient."""
    relation = _relation_at(kinetics, letter, branch, value, to)
    return relation if isinstance(relation, str) else relation.outcome


def _relation_at(
    kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, value: sp.Rational, to: sp.Expr
) -> Dispersion | str:
    try:
        fixed = kinetics.at({letter.name: value})
    except InvalidArgument:
        return OUTSIDE
    try:
        state = branch.at(fixed, value)
    except NotApplicable:
        return NO_STATE
    return dispersion_of(fixed, state if state is not None else 0, to=to)


def _candidates(
    kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, to: sp.Expr, lower: sp.Expr, upper: sp.Expr
) -> tuple[list[sp.Expr], bool]:
    """The values at which the kind may change, in ascending order, and whether they are exact and complete."""
    if branch.index is not None:
        return branch.scanned(kinetics, letter, lower, upper), False
    matrix = branch.matrix(kinetics)
    moved = (matrix - matrix.subs(lam, 0)).applyfunc(lambda x: sp.cancel(x / lam))
    tests = [*_tests(matrix), *_tests(moved), _meeting_eigenvalues(matrix.subs(lam, 0)), *branch.limits]
    is_complete = sp.S.Zero not in _tests(matrix) + _tests(moved)
    tests += [c.lhs - c.rhs for c in kinetics.domain.conditions if isinstance(c, sp.Rel)]
    polynomials = [p for test in tests for p in _projections(test, letter, to)]
    unknown = {x for p in polynomials for x in p.free_symbols} - {letter}
    if unknown:
        return branch.roots(polynomials, letter, lower, upper), False
    product = sp.Mul(*dict.fromkeys(polynomials))
    roots = real_roots(product, letter, lower, upper) if product.has(letter) else []
    return roots, is_complete


def _tests(matrix: sp.Matrix) -> list[sp.Expr]:
    """Expressions that vanish where two eigenvalues add up to zero, or one is zero that is not always zero."""
    coefficients = [sp.cancel(c) for c in characteristic(matrix)]
    while len(coefficients) > 1 and coefficients[-1] == 0:
        coefficients.pop()
    return list(hurwitz_determinants(coefficients)[-2:]) if len(coefficients) > 1 else []


def _meeting_eigenvalues(matrix: sp.Matrix) -> sp.Expr:
    """An expression that vanishes where two eigenvalues are equal: there a pair begins or ceases to oscillate."""
    x = sp.Dummy("x")
    polynomial = sp.Poly(list(characteristic(matrix)), x)
    return sp.discriminant(polynomial) if polynomial.degree() > 1 else sp.S.One


def _projections(test: sp.Expr, letter: sp.Symbol, to: sp.Expr) -> Iterator[sp.Expr]:
    """Polynomials in the coefficient that vanish wherever roots lam of a test appear, disappear or pass an end."""
    for part in sp.fraction(sp.cancel(sp.together(test))):
        if not part.has(lam):
            yield from _with(part, letter)
            continue
        others = sorted(part.free_symbols - {lam}, key=str)
        for factor, _ in sp.factor_list(sp.Poly(part, lam, *others))[1]:
            polynomial = sp.Poly(factor.as_expr(), lam)
            yield from _with(polynomial.LC(), letter)
            yield from _with(polynomial.eval(0), letter)
            if to.is_finite:
                yield from _with(polynomial.eval(to), letter)
            if polynomial.degree() > 1:
                yield from _with(polynomial.discriminant(), letter)


def _with(expression: sp.Expr, letter: sp.Symbol) -> Iterator[sp.Expr]:
    expanded = sp.expand(expression)
    if expanded.has(letter):
        yield expanded


def _confirm(thresholds: Sequence[Threshold], kind_at: Callable[[sp.Rational], str]) -> None:
    """Raise Undecided unless the kinds on both sides of numerical thresholds are proved."""
    for threshold in thresholds:
        value = sp.Rational(threshold.value)
        width = abs(value) * BRACKET
        sides = kind_at(value - width), kind_at(value + width)
        if sides != (threshold.below, threshold.above):
            raise Undecided(
                f"the sides of the numerical threshold near {float(value):.9g} were not confirmed: "
                f"expected {threshold.below} and {threshold.above}, got {sides[0]} and {sides[1]}"
            )


# ---------------------------------------------------------------------- the modes of one graph
def _on_modes(kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, spectrum: ModeSpectrum) -> Thresholds:
    lower, upper = _admissible(letter)
    changes, regions = mode_changes(kinetics, letter, branch, spectrum, (lower, upper))
    thresholds = tuple(Threshold(sp.Float(c, 17), mode, below, above, False) for c, mode, below, above in changes)
    note = f"{spectrum.source}; thresholds in double precision"
    return Thresholds(letter.name, thresholds, regions, False, note, branch.assumes)
