"""Exact comparison of formulas: what the machinery returned against what a statement says, both in plain symbols."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

import sympy as sp

from rdgraph.language.assumptions import Assumptions
from rdgraph.reports.claims.claim_records import FALSE, HOLDS, ClaimVerdict, Evidence
from rdgraph.theory.filters import FilterClass

alpha, beta, lam, T, tau, R, s, h0 = sp.symbols("alpha beta lam T tau R s h0")
Point = Mapping[sp.Symbol, sp.Expr]

_BRANCHING = (sp.Piecewise, sp.Max, sp.Abs)
_SAMPLES = 24


def all_hold(e: Evidence) -> ClaimVerdict:
    """Holds if every check so far passed; otherwise false, with the first failure as witness."""
    failure = next((c for c in e.checks if not c.passed), None)
    return ClaimVerdict(HOLDS) if failure is None else ClaimVerdict(FALSE, witness=f"{failure.text}: {failure.result}")


def same(derived: sp.Expr | None, claimed: object, **signs: str) -> bool:
    """Whether two formulas agree for all coefficients of the given signs (positive by default).

    Branches, moduli and maxima are resolved at many exact points; the formulas in force there must be identical.

    >>> same(sp.Max(alpha - beta, beta - alpha), sp.Abs(alpha - beta))
    True
    >>> same(alpha - beta, sp.Abs(alpha - beta))
    False
    """
    if derived is None:
        return False
    assumed = Assumptions(tuple(signs.items()))
    pair = [sp.sympify(x) for x in (derived, claimed)]
    letters = {x: assumed.symbol(x.name) for formula in pair for x in formula.free_symbols}
    left, right = (formula.xreplace(letters) for formula in pair)
    if not left.has(*_BRANCHING) and not right.has(*_BRANCHING):
        return identical(left, right)
    resolved = {(in_force(left, point), in_force(right, point)) for point in points(letters.values())}
    return all(identical(a, b) for a, b in resolved)


def identical(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether two formulas without branches are the same function."""
    difference = sp.expand(left - right)
    if difference.is_rational_function():
        return bool(sp.cancel(sp.together(difference)) == 0)
    return bool(sp.simplify(difference) == 0)


def in_force(formula: sp.Basic, point: Point) -> sp.Basic:
    """The formula without its branches, as it reads around a point."""
    if isinstance(formula, sp.Piecewise):
        chosen = next(branch for branch, condition in formula.args if condition.xreplace(point) == sp.true)
        return in_force(chosen, point)
    if isinstance(formula, sp.Max):
        return in_force(max(formula.args, key=lambda x: x.xreplace(point)), point)
    if isinstance(formula, sp.Abs):
        inner = in_force(formula.args[0], point)
        return inner if inner.xreplace(point) >= 0 else -inner
    return formula.func(*(in_force(x, point) for x in formula.args)) if formula.args else formula


def points(letters: Iterable[sp.Symbol], count: int = _SAMPLES, seed: int = 0) -> Iterator[dict[sp.Symbol, sp.Expr]]:
    """Exact points over several orders of magnitude and with the signs of the coefficients, away from borders."""
    ordered = sorted(set(letters), key=str)
    generator = random.Random(seed)
    for _ in range(count):
        point = {}
        for x in ordered:
            size = sp.Rational(generator.randint(1, 10_000), generator.choice((97, 991, 9973)))
            below = x.is_nonpositive or (not x.is_nonnegative and generator.random() < 0.5)
            point[x] = -size if below else size
        yield point


# ---------------------------------------------------------------------- filter classes
#: beta/alpha: inside and on every border that occurs in the classes of the catalogue.
RATIOS = tuple(
    sp.Rational(k, 300)
    for k in (-1500, -450, -303, -300, -297, -150, -102, -100, -99, -33, 0, 150, 300, 303, 600, 2100)
)


def class_at(classes: Iterable[FilterClass], point: Point) -> FilterClass | None:
    """The one class whose condition holds at a point; None if there is none or more than one."""
    active = [c for c in classes if c.condition.subs(point) == sp.true]
    return active[0] if len(active) == 1 else None


def same_classes(
    derived: Iterable[FilterClass], claimed: Iterable[FilterClass], ratios: Iterable[sp.Expr] = RATIOS
) -> bool:
    """Whether two case distinctions give the same class and extremum at every ratio beta/alpha."""
    first, second = tuple(derived), tuple(claimed)
    for ratio in ratios:
        for size in (sp.Rational(3, 7), sp.Integer(5)):
            point = {alpha: size, beta: ratio * size}
            a, b = class_at(first, point), class_at(second, point)
            if a is None or b is None or a.kind != b.kind or not _same_position(a.at, b.at):
                return False
    return True


def _same_position(derived: sp.Expr | None, claimed: sp.Expr | None) -> bool:
    return derived is claimed is None or (derived is not None and claimed is not None and identical(derived, claimed))
