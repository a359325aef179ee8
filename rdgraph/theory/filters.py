"""Spectra of linear systems: generator symbol, exact and Runge-Kutta responses, filter classes.

On an eigenvector of L with eigenvalue lam the system is H' = p(lam) H + q(lam) H0. All answers are for lam in [0, 2],
the spectrum of a symmetric or row-normalised undirected graph; channel coefficients give one such p per channel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.budget import within_budget
from rdgraph.reals.condition_words import condition_in_words, in_words
from rdgraph.reals.domain import NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum
from rdgraph.reals.polynomials import Line
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.methods import Tableau, is_exact_flow, tableau, z

# ---------------------------------------------------------------------- filters
LOW, HIGH, ALL, BAND, STOP, MULTI = "low-pass", "high-pass", "all-pass", "band-pass", "band-stop", "multi-band"
#: The class where the equation divides by zero.
UNDEFINED = "undefined"


@reads_system
def symbol(system: System) -> sp.Expr | sp.Matrix:
    """Generator symbol p(lam), in plain symbols: on an eigenvector of L with eigenvalue lam, H' = p(lam) H.

    Args:
        system: linear, with a polynomial of A as generator.

    Returns:
        p, an expression in lam and the coefficients; for several fields the matrix P(lam), states by states.

    Raises:
        NotApplicable: the system has no symbol, since it is nonlinear or couples nodes in another way.

    >>> import rdgraph as rd
    >>> rd.theory.symbol(rd.parse("-alpha*L@H + beta*L@H"))
    lam*(-alpha + beta)
    """
    return system.symbol()


@reads_system
@within_budget()
def response(system: System, T: Any = None, method: str | Tableau = "exact", step: Any = None) -> sp.Expr:
    """Gain of frequency lam after time T, source terms included.

    A fixed step takes ceil(T/step) steps, the last one shortened. Without numbers the answer is in T and tau, for T a
    multiple of tau.

    Args:
        system: linear, with a polynomial of A as generator.
        T: the end time.
        method: "exact", a method of `rdgraph.vocabulary.methods` or a `Tableau`.
        step: the step of a method.

    Returns:
        The factor by which the run multiplies an eigenvector of L with eigenvalue lam.

    Raises:
        NotApplicable: the system has no symbol, since it is nonlinear or couples nodes in another way.
        InvalidArgument: T < 0, a step <= 0, or values that are not numbers.

    >>> import rdgraph as rd
    >>> rd.theory.response(rd.parse("-alpha*L@H"), T=1, method="euler", step=0.5).factor()
    (alpha*lam - 2)**2/4
    """
    return system.response(T, method, step)


# ---------------------------------------------------------------------- filter classes
@dataclass(frozen=True)
class FilterClass:
    """The effect of the exact flow on frequencies where `condition` holds; `at` is the interior extremum, if any."""

    condition: sp.Basic
    kind: str
    at: sp.Expr | None = None

    def __str__(self) -> str:
        where = "" if self.condition == sp.true else f" if {condition_in_words(self.condition)}"
        extremum = (
            "" if self.at is None else f", {'peak' if self.kind == BAND else 'minimum'} at lam = {in_words(self.at)}"
        )
        return f"{self.kind}{where}{extremum}"


@dataclass(frozen=True, repr=False)
class FilterClasses(Answer):
    """The classes of a filter, which exclude each other; behaves like the tuple `value`."""

    value: tuple[FilterClass, ...]
    reason: str = "by the signs of the slope of the symbol on [0, 2]"

    @property
    def status(self) -> Status:
        """proved: undecided cases raise `Undecided`."""
        return Status.PROVED

    @property
    def headline(self) -> str:
        return "; ".join(map(str, self.value))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[FilterClass]:
        return iter(self.value)

    def __getitem__(self, index: int) -> FilterClass:
        return self.value[index]

    def __bool__(self) -> bool:
        return bool(self.value)


@reads_system
@within_budget()
def classify(system: System) -> FilterClasses:
    """Filter classes of the exact flow on [0, 2], such as low-pass, with their conditions on the coefficients.

    Args:
        system: linear, with a polynomial of A as generator.

    Returns:
        Classes that exclude each other, each with its condition; the answer behaves like a tuple.

    Raises:
        NotApplicable: the system has no symbol, since it is nonlinear or couples nodes in another way.
        Undecided: exact methods did not decide, or time ran out.

    >>> import rdgraph as rd
    >>> [str(c) for c in rd.classify(rd.parse("-alpha*L@H + beta*(A@H - A@A@H)"))]
    ['low-pass if beta <= alpha', 'band-pass if beta > alpha, peak at lam = (beta - alpha)/(2*beta)']
    """
    domain = system.domain
    slope = sp.expand(sp.diff(_followed(system), lam))
    if slope == 0:
        return FilterClasses((FilterClass(sp.true, ALL),))
    return FilterClasses(
        tuple(
            FilterClass(public(c.condition), c.kind, None if c.at is None else public(c.at))
            for c in _classes(slope, domain)
        )
    )


def _followed(system: System) -> sp.Expr:
    """The function of lam, p or q, with which the gain exp(p T) + q (exp(p T) - 1)/p rises and falls.

    Where q >= 0 the gain increases in p, since (exp(p T) - 1)/p does, and in q, whose factor is positive: the function
    is p where q is the same at all frequencies, and q where p is.
    """
    p, q, domain = system.generator_symbol, system.source_symbol, system.domain
    if q == 0:
        return p
    follows = q if q.has(lam) else p
    lowest = interval_candidates(q, lam, sp.S.Zero, sp.Integer(2), domain)
    is_positive = all(domain.given(*c.valid).is_nonnegative(c.value) for c in lowest)
    if not is_positive or (follows is q and p.has(lam)):
        raise Undecided(
            f"with the source {public(q) * sp.Symbol('H0')} the gain need not be monotone in p; decided are "
            "sources q >= 0 where p or q is the same at all frequencies"
        )
    return follows


def _classes(slope: sp.Expr, domain: Domain) -> list[FilterClass]:
    polynomial = sp.Poly(slope, lam)
    coefficients = [c for c in polynomial.all_coeffs() if c != 0]
    turning = _turning_point(polynomial)
    if not slope.free_symbols - {lam}:
        kind = _kind(slope)
        return [FilterClass(sp.true, kind, turning if kind in (BAND, STOP) else None)]
    line = domain.line(coefficients)
    if line is None:
        return _classes_by_ends(slope, domain, turning)
    borders = [slope.subs(lam, 0), slope.subs(lam, 2), coefficients[0]]
    borders += [sp.denom(sp.together(c)) for c in coefficients]
    if polynomial.degree() > 1:
        borders.append(sp.discriminant(slope, lam))
    cells = line.cells([line.reduce(sp.sympify(b)) for b in borders if sp.sympify(b).free_symbols])
    reduced = sum(line.reduce(c) * lam ** m[0] for m, c in polynomial.terms())
    open_kinds = {
        i: _kind(sp.expand(reduced.subs(line.ratio, c.sample))) for i, c in enumerate(cells) if c.sample.is_Rational
    }
    kinds = [open_kinds.get(i) or _simpler(open_kinds, i) for i in range(len(cells))]
    return _joined(line, cells, kinds, turning)


def _simpler(kinds: dict[int, str], border: int) -> str:
    """At an irrational border a turning point leaves [0, 2] or merges with another: the simpler neighbour's class."""
    rank = {ALL: 0, LOW: 1, HIGH: 1, BAND: 2, STOP: 2, MULTI: 3, UNDEFINED: 4}
    return min((kinds[i] for i in (border - 1, border + 1) if i in kinds), key=rank.__getitem__)


def _joined(line: Line, cells: list[Any], kinds: list[str], turning: sp.Expr | None) -> list[FilterClass]:
    classes: list[FilterClass] = []
    start = 0
    for i in range(1, len(kinds) + 1):
        if i == len(kinds) or kinds[i] != kinds[start]:
            at = turning if kinds[start] in (BAND, STOP) else None
            if kinds[start] != UNDEFINED:
                classes.append(FilterClass(line.condition(cells[start], cells[i - 1]), kinds[start], at))
            start = i
    return classes


def _classes_by_ends(slope: sp.Expr, domain: Domain, turning: sp.Expr | None) -> list[FilterClass]:
    """The classes for a linear slope, from its signs at both ends, for any number of coefficients."""
    if sp.degree(slope, lam) > 1:
        raise Undecided(f"the slope {slope} has several coefficients and degree > 1; set some of them to numbers")
    low, high = (sp.factor(slope.subs(lam, x)) for x in (0, 2))
    bend = domain.sign(high - low)
    cases: dict[str, list[sp.Basic]] = {
        LOW: [sp.Le(low, 0), sp.Le(high, 0), sp.Ne(low + high, 0)],
        HIGH: [sp.Ge(low, 0), sp.Ge(high, 0), sp.Ne(low + high, 0)],
        ALL: [sp.Eq(low, 0), sp.Eq(high, 0)],
    }
    if bend not in (POSITIVE, NONNEGATIVE, ZERO):
        cases[BAND] = [sp.Gt(low, 0), sp.Lt(high, 0)]
    if bend not in (NEGATIVE, NONPOSITIVE, ZERO):
        cases[STOP] = [sp.Lt(low, 0), sp.Gt(high, 0)]
    classes = []
    for kind, parts in cases.items():
        open_parts = _still_open(parts, domain)
        if open_parts is not None and not (kind == ALL and bend in (POSITIVE, NEGATIVE)):
            classes.append(FilterClass(sp.And(*open_parts), kind, turning if kind in (BAND, STOP) else None))
    return classes


def _still_open(parts: list[sp.Basic], domain: Domain) -> list[sp.Basic] | None:
    """The conditions that the domain does not imply; None if one of them never holds."""
    above, below = {POSITIVE}, {NEGATIVE}
    not_above, not_below = {NEGATIVE, NONPOSITIVE, ZERO}, {POSITIVE, NONNEGATIVE, ZERO}
    granting = {sp.Ge: not_below, sp.Le: not_above, sp.Gt: above, sp.Lt: below, sp.Eq: {ZERO}, sp.Ne: above | below}
    refuting = {sp.Ge: below, sp.Le: above, sp.Gt: not_above, sp.Lt: not_below, sp.Eq: above | below, sp.Ne: {ZERO}}
    still_open = []
    for part in parts:
        if part in (sp.true, sp.false):
            if part == sp.false:
                return None
            continue
        sign = domain.sign(part.lhs - part.rhs)
        if sign in refuting[type(part)]:
            return None
        if sign not in granting[type(part)]:
            still_open.append(part)
    return still_open


def _turning_point(slope: sp.Poly) -> sp.Expr | None:
    if slope.degree() != 1:
        return None
    a, b = slope.all_coeffs()
    return sp.factor(-b / a)


def _kind(slope: sp.Expr) -> str:
    """The class of a slope with numbers as coefficients."""
    if slope == 0:
        return ALL
    if slope.has(sp.zoo, sp.nan):
        return UNDEFINED
    roots = sorted({r for r in sp.real_roots(sp.Poly(slope, lam)) if 0 < r < 2}) if slope.has(lam) else []
    edges = [sp.S.Zero, *roots, sp.Integer(2)]
    signs: list[int] = []
    for left, right in itertools.pairwise(edges):
        value = slope.subs(lam, (left + right) / 2)
        sign = 1 if value > 0 else -1
        if not signs or signs[-1] != sign:
            signs.append(sign)
    return {(1,): HIGH, (-1,): LOW, (1, -1): BAND, (-1, 1): STOP}.get(tuple(signs), MULTI)


def growth_candidates(system: System) -> list[Candidate]:
    """Candidates for the extreme values of p on [0, 2], in the package's internal symbols."""
    return interval_candidates(system.generator_symbol, lam, sp.S.Zero, sp.Integer(2), system.domain)


def _circle_candidates(system: System) -> list[Candidate]:
    """Candidates for the extreme values of Re p on the circle lam = 1 - exp(i t), a polynomial in cos(t)."""
    _ = system.generator_symbol  # refuses systems without a symbol
    cosine = sp.Dummy("cosine", real=True)
    real = sum((c * sp.chebyshevt(k, cosine) for k, c in system.structure.generator.items()), sp.S.Zero)
    return interval_candidates(real, cosine, sp.S.NegativeOne, sp.S.One, system.domain)


@reads_system
@within_budget()
def fastest_frequency(system: System) -> sp.Expr:
    """The lam in [0, 2] that grows fastest (or decays slowest) under the exact flow.

    Args:
        system: linear, with a polynomial of A as generator.

    Returns:
        lam, by conditions on the coefficients.

    Raises:
        NotApplicable: no symbol, or every frequency grows at the same rate.
        Undecided: exact means were not enough, or time ran out.

    >>> import rdgraph as rd
    >>> rd.theory.fastest_frequency(rd.parse("-alpha*L@H + beta*(A@H - A@A@H)"))
    Piecewise((0, alpha >= beta), ((-alpha + beta)/(2*beta), True))
    """
    candidates = growth_candidates(system)
    if not system.generator_symbol.has(lam):
        raise NotApplicable("every frequency grows at the same rate")
    return public(maximum(candidates, system.domain, place=True))


@reads_system
@within_budget()
def growth_rate(system: System, *, directed: bool = False) -> sp.Expr:
    """The rate at which the fastest frequency grows: max of p over [0, 2], the spectrum of undirected graphs.

    Args:
        system: linear, with a polynomial of A as generator.
        directed: take the largest real part of p over the disc |1 - lam| <= 1, which holds the eigenvalues of every
            row- or column-normalised graph; it is a supremum, approached by long directed cycles.

    Returns:
        The rate, by conditions on the coefficients.

    Raises:
        NotApplicable: the system has no symbol, since it is nonlinear or couples nodes in another way.
        Undecided: exact means were not enough, or time ran out.

    >>> import rdgraph as rd
    >>> rd.theory.growth_rate(rd.parse("-alpha*L@H + beta*(L@H + H)"))
    Piecewise((beta, alpha >= beta), (-2*alpha + 3*beta, True))
    >>> rd.theory.growth_rate(rd.parse("-L@L@H")), rd.theory.growth_rate(rd.parse("-L@L@H"), directed=True)
    (0, 1/2)
    """
    candidates = _circle_candidates(system) if directed else growth_candidates(system)
    return public(maximum(candidates, system.domain))


# ---------------------------------------------------------------------- run gains
# Responses as numbers, without cancellation: gains of frequencies, and the maps of a run on a given graph.
#
# With H' = p H + q H0 a run multiplies a frequency by g + q (g - 1)/p, where g is exp(T p) or a product of steps. Near
# p = 0 the quotient is a difference of nearly equal numbers; here it is a phi function or a geometric sum instead.

#: (exp(z) - 1)/z is summed as a power series below this radius; the first omitted term is then below rounding.
SERIES_RADIUS, SERIES_TERMS = 0.25, 13


def response_values(
    system: System, frequencies: Any, T: Any, method: str | Tableau = "exact", step: Any = None
) -> np.ndarray:
    """The response as numbers at an array of frequencies, real or complex; every coefficient must be a number.

    q (g - 1)/p is evaluated as T q phi(T p), phi(z) = (exp(z) - 1)/z, or as a geometric sum of steps: nothing cancels
    where p is as small as a rounding error.

    >>> from rdgraph.systems.parser import parse
    >>> response_values(parse("-L@H + H0"), [0.0, 1e-17], T=1, method="rk4", step=0.01)
    array([2., 2.])
    """
    p, q = _numeric_symbols(system)
    points = np.asarray(frequencies)
    rates, sources = (np.broadcast_to(sp.lambdify(lam, e, "numpy")(points), points.shape) for e in (p, q))
    return forced_gain(rates, sources, T, method, step)


def forced_gain(
    rates: np.ndarray, sources: np.ndarray, T: Any, method: str | Tableau = "exact", step: Any = None
) -> np.ndarray:
    """h(T)/h(0) of h' = p h + q h(0), for arrays of p and q that broadcast; overflow gives inf or nan.

    >>> forced_gain(np.array([-1.0, 0.0]), np.array([1.0, 2.0]), T=3)
    array([1., 7.])
    """
    end = exact_number(T, "T")
    if not end.is_number:
        raise InvalidArgument(f"expected a number T, got {T}")
    with np.errstate(over="ignore", invalid="ignore"):
        if is_exact_flow(method):
            return np.asarray(np.exp(float(end) * rates) + float(end) * sources * _phi(float(end) * rates))
        size = exact_number(step, "step")
        full = int(sp.floor(end / size))
        gain, forcing = _after_steps(tableau(method), float(size), full, rates)
        last, pushed = _after_steps(tableau(method), float(end - full * size), 1, rates)
        return np.asarray(gain * last + sources * (forcing * last + pushed))


def _phi(z: np.ndarray) -> np.ndarray:
    """(exp(z) - 1)/z, 1 at zero, real or complex; a power series near zero."""
    near = np.abs(z) < SERIES_RADIUS
    inside, outside = np.where(near, z, 0.0), np.where(near, 1.0, z)
    series = np.ones_like(inside)
    for k in range(SERIES_TERMS, 1, -1):
        series = 1 + inside / k * series
    return np.where(near, series, (np.exp(outside) - 1) / outside)


def _after_steps(weights: Tableau, size: float, steps: int, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R^n and the integral (R^n - 1)/rate after n steps, the latter as a sum of the powers of R by doubling."""
    argument = size * rates
    increment = sp.lambdify(z, sp.cancel((weights.stability - 1) / z), "numpy")(argument) * np.ones_like(argument)
    factor = 1 + argument * increment
    power, total = np.ones_like(factor), np.zeros_like(factor)
    for bit in f"{steps:b}":
        total, power = total * (1 + power), power * power
        if bit == "1":
            total, power = total + power, power * factor
    return power, size * increment * total


def run_maps(
    system: System, operator: np.ndarray, T: Any, method: str | Tableau = "exact", step: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Matrices that take H0 to the exact response at T and to a method's, for a dense operator A (n, n).

    A need not be normal, so the maps contain more than its eigenvalues. Entries that overflow are not finite.

    >>> from rdgraph.systems.parser import parse
    >>> exact, computed = run_maps(parse("-L@H"), np.eye(2)[::-1], T=1, method="euler", step=0.5)
    >>> computed
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    from scipy.linalg import expm

    _numeric_symbols(system)
    end, n = exact_number(T, "T"), len(operator)
    rates, sources = (_matrix(c, operator) for c in (system.structure.generator, system.structure.source))
    zero = np.zeros_like(rates)
    with np.errstate(over="ignore", invalid="ignore"):
        flow = expm(float(end) * np.block([[rates, sources], [zero, zero]]))
        exact = flow[:n, :n] + flow[:n, n:]
        if is_exact_flow(method):
            return exact, exact
        size, weights = exact_number(step, "step"), tableau(method)
        full = int(sp.floor(end / size))
        steps = np.linalg.matrix_power(_step_matrix(weights, float(size), rates, sources), full)
        steps = _step_matrix(weights, float(end - full * size), rates, sources) @ steps
    return exact, steps[:n, :n] + steps[:n, n:]


def _step_matrix(weights: Tableau, size: float, rates: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """One step as a map of (H, H0)."""
    n = len(rates)
    increment = np.zeros_like(rates)
    for coefficient in sp.Poly(sp.cancel((weights.stability - 1) / z), z).all_coeffs():
        increment = increment @ (size * rates) + float(coefficient) * np.eye(n)
    top = [np.eye(n) + size * rates @ increment, size * increment @ sources]
    return np.block([top, [np.zeros((n, n)), np.eye(n)]])


def _matrix(coefficients: dict[int, sp.Expr], operator: np.ndarray) -> np.ndarray:
    """sum_k c_k A^k."""
    total = np.zeros_like(operator)
    for k, c in coefficients.items():
        total = total + float(c) * np.linalg.matrix_power(operator, k)
    return total


def _numeric_symbols(system: System) -> tuple[sp.Expr, sp.Expr]:
    p, q = system.generator_symbol, system.source_symbol
    letters = sorted({x.name for x in (p.free_symbols | q.free_symbols) - {lam}})
    if letters:
        raise NotApplicable(f"expected numbers for all coefficients, got none for {', '.join(letters)}; set them")
    return p, q
