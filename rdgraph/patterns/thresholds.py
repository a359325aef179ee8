"""Thresholds: the values of one coefficient at which patterns begin or end, the other coefficients held.

What kind of instability a steady state has can change only where a root lam of the determinant of P(lam) or of the last
but one Hurwitz determinant appears, disappears, or passes an end of the range. These values of the coefficient are
roots of polynomials; between two of them one value decides, exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sympy as sp

from rdgraph.decisions.budget import within_budget
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.patterns.bands import between, real_roots
from rdgraph.patterns.dispersion import ANTI, END, Dispersion, dispersion_of
from rdgraph.patterns.half_planes import characteristic, hurwitz_determinants
from rdgraph.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.patterns.mode_spectra import ModeSpectrum, check_degrees, mode_spectrum
from rdgraph.patterns.mode_thresholds import mode_changes
from rdgraph.patterns.state_branches import StateBranch, follow
from rdgraph.patterns.threshold_values import CALM, NO_STATE, OUTSIDE, PATTERNS, Threshold, Thresholds
from rdgraph.syntax.answer_symbols import lam
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System

#: Half the width of an interval that is proved to hold a threshold, as a part of the value.
BRACKET = sp.Rational(1, 10**9)


@reads_system
@within_budget()
def turing_threshold(
    system: System,
    coefficient: str,
    values: Mapping[str, Any],
    operator: Any = None,
    *,
    state: int = 0,
    to: Any = END,
) -> Thresholds:
    """The values of one coefficient at which patterns begin or end, the others held.

    Args:
        system: of several fields.
        coefficient: the name of the coefficient that varies, over all values of its sign.
        values: numbers for all others.
        operator: an `Operator`, a matrix L or its eigenvalues: then only these lam count, in double precision.
        state: which of `steady_states`; it is followed while the coefficient varies.
        to: the end of the range of lam; `sympy.oo` for no end.

    Returns:
        The thresholds in ascending order, each with the mode that begins to grow and the kinds on both sides.

    Raises:
        InvalidArgument: there is no such coefficient, or values are missing.
        NotApplicable: no steady state that is the same in all nodes.
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
    """The thresholds of a kinetics; see `turing_threshold`."""
    if coefficient not in kinetics.coefficients:
        raise InvalidArgument(f"expected a coefficient among {sorted(kinetics.coefficients)}, got {coefficient!r}")
    held = kinetics.at({name: value for name, value in values.items() if name != coefficient})
    letter = held.coefficients.get(coefficient)
    others = sorted(set(held.coefficients) - {coefficient})
    if others or letter is None:
        raise InvalidArgument(f"expected values for all coefficients but {coefficient}, got none for {others}")
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
    for (low, high), found in zip(itertools.pairwise(edges), answers, strict=True):
        if regions and regions[-1][2] == found:
            regions[-1] = (regions[-1][0], high, found)
            continue
        if regions and (regions[-1][2] in PATTERNS) != (found in PATTERNS):
            at_rest = {regions[-1][2], found} & {*CALM, ANTI}
            mode = branch.critical_mode(kinetics, letter, low, to) if at_rest else 0.0
            thresholds.append(Threshold(low, mode, regions[-1][2], found, is_exact))
        regions.append((low, high, found))
    if not is_exact:
        _confirm(thresholds, lambda value: _at(kinetics, letter, branch, value, to))
    if not is_exact:
        note = "changes were located numerically; each is proved to lie within a part of 1e-9"
    elif is_complete:
        note = "all changes are roots of polynomials, and one value between any two decides"
    else:
        note = "some eigenvalues come in pairs s, -s for all values, whose changes were not looked for"
    within = f"for lam in (0, {to}]: " if to.is_finite else "for all lam > 0: "
    assumes = kinetics.on_real_modes(branch.assumes)
    return Thresholds(letter.name, tuple(thresholds), tuple(regions), is_complete, within + note, assumes)


def _admissible(letter: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
    lower = sp.S.Zero if letter.is_nonnegative else -sp.oo
    return lower, sp.S.Zero if letter.is_nonpositive else sp.oo


def _at(kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, value: sp.Rational, to: sp.Expr) -> str:
    """The kind of instability at one value of the coefficient."""
    found = _relation_at(kinetics, letter, branch, value, to)
    return found if isinstance(found, str) else found.outcome


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
    """The values at which the kind may change, ascending, and whether they are exact and all of them."""
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
    """What vanishes where an eigenvalue that is not zero throughout is zero, or two add up to zero."""
    coefficients = [sp.cancel(c) for c in characteristic(matrix)]
    while len(coefficients) > 1 and coefficients[-1] == 0:
        coefficients.pop()
    return list(hurwitz_determinants(coefficients)[-2:]) if len(coefficients) > 1 else []


def _meeting_eigenvalues(matrix: sp.Matrix) -> sp.Expr:
    """What vanishes where two eigenvalues are equal: there a pair begins or ceases to oscillate."""
    x = sp.Dummy("x")
    polynomial = sp.Poly(list(characteristic(matrix)), x)
    return sp.discriminant(polynomial) if polynomial.degree() > 1 else sp.S.One


def _projections(test: sp.Expr, letter: sp.Symbol, to: sp.Expr) -> Iterator[sp.Expr]:
    """Polynomials in the coefficient, with roots wherever roots lam of a test come, go or pass an end."""
    for part in sp.fraction(sp.cancel(sp.together(test))):
        if not part.has(lam):
            yield from _kept(part, letter)
            continue
        others = sorted(part.free_symbols - {lam}, key=str)
        for factor, _ in sp.factor_list(sp.Poly(part, lam, *others))[1]:
            polynomial = sp.Poly(factor.as_expr(), lam)
            yield from _kept(polynomial.LC(), letter)
            yield from _kept(polynomial.eval(0), letter)
            if to.is_finite:
                yield from _kept(polynomial.eval(to), letter)
            if polynomial.degree() > 1:
                yield from _kept(polynomial.discriminant(), letter)


def _kept(expression: sp.Expr, letter: sp.Symbol) -> Iterator[sp.Expr]:
    expanded = sp.expand(expression)
    if expanded.has(letter):
        yield expanded


def _confirm(thresholds: Sequence[Threshold], kind_at: Callable[[sp.Rational], str]) -> None:
    """Prove the kinds right and left of thresholds that were located numerically."""
    for threshold in thresholds:
        value = sp.Rational(threshold.value)
        width = abs(value) * BRACKET
        sides = kind_at(value - width), kind_at(value + width)
        if sides != (threshold.below, threshold.above):
            raise Undecided(
                f"a threshold near {float(value):.9g} was located numerically, and its sides were not confirmed: "
                f"expected {threshold.below} and {threshold.above}, got {sides[0]} and {sides[1]}"
            )


# ---------------------------------------------------------------------- the modes of one graph
def _on_modes(kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, spectrum: ModeSpectrum) -> Thresholds:
    lower, upper = _admissible(letter)
    changes, regions = mode_changes(kinetics, letter, branch, spectrum, (lower, upper))
    found = tuple(Threshold(sp.Float(c, 17), mode, below, above, False) for c, mode, below, above in changes)
    note = f"{spectrum.source}; thresholds in double precision"
    return Thresholds(letter.name, found, regions, False, note, branch.assumes)
