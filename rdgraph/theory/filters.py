"""Spectra of linear systems: generator symbol, exact and Runge-Kutta responses, filter classes.

On an eigenvector of L with eigenvalue lam the system is H' = p(lam) H + q(lam) H0. All answers are for lam in [0, 2],
the spectrum of a symmetric or row-normalised undirected graph; channel coefficients give one such p per channel.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.decisions.budget import within_budget
from rdgraph.decisions.condition_words import condition_in_words
from rdgraph.decisions.domain import NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, ZERO, Domain
from rdgraph.decisions.interval_extrema import interval_candidates
from rdgraph.decisions.maxima import Candidate, maximum
from rdgraph.decisions.ratio_cells import Line
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.syntax.answer_symbols import lam, public
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System

LOW, HIGH, ALL, BAND, STOP, MULTI = "low-pass", "high-pass", "all-pass", "band-pass", "band-stop", "multi-band"
#: Where a coefficient is divided by zero the equation says nothing.
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

    >>> from rdgraph.systems.parser import parse
    >>> symbol(parse("-alpha*L@H + beta*L@H"))
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
        method: "exact", a method of `rdgraph.methods.tableaux` or a `Tableau` of your own.
        step: of a method.

    Returns:
        The factor by which the run multiplies an eigenvector of L with eigenvalue lam.

    Raises:
        NotApplicable: the system has no symbol, since it is nonlinear or couples nodes in another way.
        InvalidArgument: T < 0, a step <= 0, or numbers that are none.

    >>> from rdgraph.systems.parser import parse
    >>> response(parse("-alpha*L@H"), T=1, method="euler", step=0.5).factor()
    (alpha*lam - 2)**2/4
    """
    return system.response(T, method, step)


# ---------------------------------------------------------------------- filter classes
@dataclass(frozen=True)
class FilterClass:
    """What the exact flow does to frequencies where `condition` holds; `at` is the interior extremum, if any."""

    condition: sp.Basic
    kind: str
    at: sp.Expr | None = None

    def __str__(self) -> str:
        where = "" if self.condition == sp.true else f" if {condition_in_words(self.condition)}"
        extremum = "" if self.at is None else f", {'peak' if self.kind == BAND else 'minimum'} at lam = {self.at}"
        return f"{self.kind}{where}{extremum}"


@reads_system
@within_budget()
def classify(system: System) -> tuple[FilterClass, ...]:
    """Low-, high-, band-pass or band-stop of the exact flow on [0, 2], as conditions on the coefficients.

    Args:
        system: linear, with a polynomial of A as generator.

    Returns:
        Classes that exclude each other, each with its condition.

    Raises:
        NotApplicable: the system has no symbol, since it is nonlinear or couples nodes in another way.
        Undecided: exact means were not enough, or time ran out.

    >>> from rdgraph.systems.parser import parse
    >>> [str(c) for c in classify(parse("-alpha*L@H + beta*(A@H - A@A@H)"))]
    ['low-pass if beta <= alpha', 'band-pass if beta > alpha, peak at lam = -(alpha - beta)/(2*beta)']
    """
    domain = system.domain
    slope = sp.expand(sp.diff(_followed(system), lam))
    if slope == 0:
        return (FilterClass(sp.true, ALL),)
    return tuple(
        FilterClass(public(c.condition), c.kind, None if c.at is None else public(c.at))
        for c in _classes(slope, domain)
    )


def _followed(system: System) -> sp.Expr:
    """What the gain exp(p T) + q (exp(p T) - 1)/p rises and falls with.

    Where q >= 0 it grows with p, of which (exp(p T) - 1)/p is an increasing function, and with q, whose factor is
    positive: it is p where q is the same at all frequencies, and q where p is.
    """
    p, q, domain = system.generator_symbol, system.source_symbol, system.domain
    if q == 0:
        return p
    follows = q if q.has(lam) else p
    lowest = interval_candidates(q, lam, sp.S.Zero, sp.Integer(2), domain)
    is_positive = all(domain.given(*c.valid).is_nonnegative(c.value) for c in lowest)
    if not is_positive or (follows is q and p.has(lam)):
        raise Undecided(
            f"the source {public(q) * sp.Symbol('H0')} adds to the gain in a way that need not follow p; tried: q >= 0 "
            "where p or q is the same at all frequencies"
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
    found: list[FilterClass] = []
    start = 0
    for i in range(1, len(kinds) + 1):
        if i == len(kinds) or kinds[i] != kinds[start]:
            at = turning if kinds[start] in (BAND, STOP) else None
            if kinds[start] != UNDEFINED:
                found.append(FilterClass(line.condition(cells[start], cells[i - 1]), kinds[start], at))
            start = i
    return found


def _classes_by_ends(slope: sp.Expr, domain: Domain, turning: sp.Expr | None) -> list[FilterClass]:
    """For a linear slope the signs at both ends decide, whatever the number of coefficients."""
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
    found = []
    for kind, parts in cases.items():
        open_parts = _still_open(parts, domain)
        if open_parts is not None and not (kind == ALL and bend in (POSITIVE, NEGATIVE)):
            found.append(FilterClass(sp.And(*open_parts), kind, turning if kind in (BAND, STOP) else None))
    return found


def _still_open(parts: list[sp.Basic], domain: Domain) -> list[sp.Basic] | None:
    """Conditions that the domain does not settle; None if one of them never holds."""
    above, below = {POSITIVE}, {NEGATIVE}
    not_above, not_below = {NEGATIVE, NONPOSITIVE, ZERO}, {POSITIVE, NONNEGATIVE, ZERO}
    granting = {sp.Ge: not_below, sp.Le: not_above, sp.Gt: above, sp.Lt: below, sp.Eq: {ZERO}, sp.Ne: above | below}
    refuting = {sp.Ge: below, sp.Le: above, sp.Gt: not_above, sp.Lt: not_below, sp.Eq: above | below, sp.Ne: {ZERO}}
    kept = []
    for part in parts:
        if part in (sp.true, sp.false):
            if part == sp.false:
                return None
            continue
        sign = domain.sign(part.lhs - part.rhs)
        if sign in refuting[type(part)]:
            return None
        if sign not in granting[type(part)]:
            kept.append(part)
    return kept


def _turning_point(slope: sp.Poly) -> sp.Expr | None:
    if slope.degree() != 1:
        return None
    a, b = slope.all_coeffs()
    return sp.factor(-b / a)


def _kind(slope: sp.Expr) -> str:
    """Class from a slope with numeric coefficients."""
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
    """Extreme values of p on [0, 2], in the package's own symbols."""
    return interval_candidates(system.generator_symbol, lam, sp.S.Zero, sp.Integer(2), system.domain)


def _circle_candidates(system: System) -> list[Candidate]:
    """Extreme values of the real part of p on the circle lam = 1 - exp(i t): a polynomial in cos(t)."""
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

    >>> from rdgraph.systems.parser import parse
    >>> fastest_frequency(parse("-alpha*L@H + beta*(A@H - A@A@H)"))
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

    >>> from rdgraph.systems.parser import parse
    >>> growth_rate(parse("-alpha*L@H + beta*(L@H + H)"))
    Piecewise((beta, alpha >= beta), (-2*alpha + 3*beta, True))
    >>> growth_rate(parse("-L@L@H")), growth_rate(parse("-L@L@H"), directed=True)
    (0, 1/2)
    """
    candidates = _circle_candidates(system) if directed else growth_candidates(system)
    return public(maximum(candidates, system.domain))
