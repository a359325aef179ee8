"""Values with branches: comparisons and definedness of Piecewise and Max, each branch under its own condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.regions import defining_conditions


# ---------------------------------------------------------------------- branches
def branches(value: sp.Expr) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """The branches of a Piecewise with all that holds on them; any other expression is one branch.

    >>> a = sp.Symbol("a", real=True)
    >>> list(branches(sp.Piecewise((0, a >= 1), (a, True))))
    [(0, (a >= 1,)), (a, (a < 1, True))]
    """
    folds = value.has(sp.Piecewise) and not isinstance(value, sp.Max | sp.Min)
    folded = sp.piecewise_fold(value) if folds else value
    if not isinstance(folded, sp.Piecewise):
        yield folded, ()
        return
    before: tuple[sp.Basic, ...] = ()
    for branch, condition in folded.args:
        yield sp.sympify(branch), (*before, condition)
        before += (sp.Not(condition),)


def is_at_least(larger: sp.Expr, smaller: sp.Expr, domain: Domain) -> bool | None:
    """Whether larger >= smaller on the whole domain; infinite values count.

    >>> a = sp.Symbol("a", real=True)
    >>> is_at_least(sp.Piecewise((a, a >= 1), (sp.oo, True)), sp.S.One, Domain())
    True
    """
    return _compared(sp.sympify(larger), sp.sympify(smaller), domain, strict=False)


def is_above(larger: sp.Expr, smaller: sp.Expr, domain: Domain) -> bool | None:
    """Whether larger > smaller on the whole domain."""
    return _compared(sp.sympify(larger), sp.sympify(smaller), domain, strict=True)


def _compared(larger: sp.Expr, smaller: sp.Expr, domain: Domain, *, strict: bool) -> bool | None:
    relation = sp.Gt if strict else sp.Ge
    answers: list[bool | None] = []
    for upper, above in branches(larger):
        for lower, below in branches(smaller):
            part = domain.where(*above, *below)
            if upper.is_infinite or lower.is_infinite:
                larger_one = lower == -sp.oo or (upper == sp.oo and not (strict and lower == sp.oo))
                answers.append(True if larger_one or part.is_empty() else None)
            else:
                answers.append(part.proves(relation(upper, lower, evaluate=False)))
    return None if None in answers and False not in answers else False not in answers


def is_defined(expression: sp.Expr, domain: Domain, *, smooth: bool = False) -> bool:
    """Proved: a real number everywhere on the domain (`defining_conditions`); if `smooth`, without a root of zero."""
    if isinstance(expression, sp.Max | sp.Min):
        return all(is_defined(part, domain, smooth=smooth) for part in expression.args)
    if isinstance(expression, sp.Piecewise):
        return all(is_defined(part, domain.where(*facts), smooth=smooth) for part, facts in branches(expression))
    if expression.has(sp.I, sp.zoo, sp.nan, sp.oo):
        return False
    return all(domain.proves(c) is True for c in defining_conditions(expression, smooth=smooth))


# ---------------------------------------------------------------------- absolute values
# Absolute values in place of the cases that they stand for: bounds as a person would write them.


def with_moduli(expression: sp.Expr) -> sp.Expr:
    """The same real number, with |x| for max(x, -x) and for x by the cases of its sign.

    >>> a, b = sp.symbols("a b", real=True)
    >>> with_moduli(sp.Piecewise((-a, a <= 0), (a, True)) + sp.Max(a + 2 * b, a - 2 * b, 2 * b - a, -a - 2 * b))
    2*Abs(a) + 2*Abs(b)
    """
    return expression.replace(
        lambda part: isinstance(part, (sp.Piecewise, sp.Max)),
        lambda part: _of_cases(part) if isinstance(part, sp.Piecewise) else _largest(part.args),
    )


def _of_cases(cases: sp.Piecewise) -> sp.Expr:
    """|x| where one case is x, the other -x, and each is taken where it is not negative."""
    if len(cases.args) != 2 or cases.args[1].cond != sp.true:
        return cases
    (first, condition), (second, _) = cases.args
    if sp.expand(first + second) != 0:
        return cases
    sides = {sp.Ge: 1, sp.Gt: 1, sp.Le: -1, sp.Lt: -1}
    if type(condition) not in sides:
        return cases
    share = sp.cancel(sides[type(condition)] * first / (condition.lhs - condition.rhs))
    return sp.Abs(first) if share.is_positive else cases


def _largest(values: Iterable[sp.Expr]) -> sp.Expr:
    """The largest of several values; max(r + t, r - t) is r + |t| for every r."""
    candidates, moduli = [sp.expand(value) for value in values], []
    if any(value != 0 and -value in candidates for value in candidates):  # one of x and -x is at least 0
        candidates = [value for value in candidates if value != 0]
    while (pairs := _both_signs(candidates)) is not None:
        term, candidates = pairs
        moduli.append(sp.Abs(term))
    return sp.Add(_undominated(candidates), *moduli)


def _both_signs(values: list[sp.Expr]) -> tuple[sp.Expr, list[sp.Expr]] | None:
    """A term t such that the values come in pairs r + t and r - t, and the values r; None without one."""
    everything = set(values)
    for term in sp.Add.make_args(values[0]):
        rests: dict[sp.Expr, None] = {}
        for value in values:
            terms = sp.Add.make_args(value)
            signed = term if term in terms else -term
            if signed not in terms or value - 2 * signed not in everything:
                break
            rests[value - signed] = None
        else:
            return (term, list(rests)) if term != 0 else None
    return None


def _undominated(values: list[sp.Expr]) -> sp.Expr:
    """The largest of several values, with |x| for a pair x and -x, and one multiple of each modulus."""
    moduli: dict[sp.Expr, sp.Expr] = {}
    unpaired = []
    for value in values:
        if -value not in values:
            unpaired.append(value)
            continue
        number, rest = sp.Abs(value).as_coeff_Mul()
        moduli[rest] = sp.Max(number, moduli.get(rest, sp.S.Zero))
    return sp.Max(*unpaired, *(number * rest for rest, number in moduli.items()))


# ---------------------------------------------------------------------- sided slopes
# One-sided slopes: where a slope jumps, as those of relu and abs do at zero, its values on either side.

#: Slopes that jump where their argument vanishes, with their values before and after the jump.
STEPS: dict[type, tuple[int, int]] = {sp.Heaviside: (0, 1), sp.sign: (-1, 1)}


@dataclass(frozen=True)
class SidedSlope:
    """A slope just below and just above a place; `weights` are what multiplies the steps that jump there."""

    below: sp.Expr
    above: sp.Expr
    weights: tuple[sp.Expr, ...] = ()

    @property
    def agree(self) -> bool:
        """Whether the slope does not jump, after all."""
        return sp.expand(self.below - self.above) == 0


def sided_slope(slope: sp.Expr, letter: sp.Symbol, place: sp.Expr, domain: Domain) -> SidedSlope:
    """A slope on both sides of a value of one letter; Undecided where a jump may lie there or not.

    >>> x = sp.Symbol("x", real=True)
    >>> found = sided_slope(sp.diff(sp.Abs(x) - 2 * x, x), x, sp.S.Zero, Domain())
    >>> found.below, found.above
    (-3, -1)
    >>> sided_slope(sp.diff(x * sp.Abs(x), x), x, sp.S.Zero, Domain()).agree
    True
    """
    below, above = (_Side(slope, letter, place, domain, way) for way in (-1, 1))
    values = [side.value() for side in (below, above)]
    return SidedSlope(values[0], values[1], (*below.weights, *above.weights))


class _Side:
    """The steps of a slope on one side of a place, the innermost first."""

    def __init__(self, slope: sp.Expr, letter: sp.Symbol, place: sp.Expr, domain: Domain, way: int) -> None:
        self.slope, self.letter, self.domain, self.way = slope, letter, domain, way
        self.point = {letter: place}
        self.known: dict[sp.Expr, sp.Expr] = {}
        self.weights: list[sp.Expr] = []

    def value(self) -> sp.Expr:
        for step in sorted(self.slope.atoms(*STEPS), key=lambda s: (s.count_ops(), str(s))):
            self.known[step] = self._step(step)
        return sp.expand(self._here(self.slope))

    def _here(self, expression: sp.Expr) -> sp.Expr:
        return sp.sympify(expression.xreplace(self.known).xreplace(self.point))

    def _step(self, step: sp.Expr) -> sp.Expr:
        before, after = STEPS[step.func]
        sign = self.domain.sign(step.args[0].xreplace(self.point))
        if sign in (POSITIVE, NEGATIVE):
            return sp.Integer(after if sign is POSITIVE else before)
        mark = sp.Dummy("step", real=True)
        weight = sp.expand(self._here(sp.diff(self.slope.xreplace({step: mark}), mark)))
        if weight == 0:
            return sp.S.Zero  # as in h*abs(h) at 0: what jumps is multiplied by zero
        rise = self.domain.sign(sp.expand(self._here(sp.diff(step.args[0], self.letter))))
        if sign is not ZERO or rise not in (POSITIVE, NEGATIVE):
            raise Undecided(f"it is not known on which side of its jump {step} is")
        self.weights.append(weight)
        return sp.Integer(after if (rise is POSITIVE) == (self.way > 0) else before)
