"""Conditions with exp, tanh, sin, ... as conditions between polynomials, with facts about the new variables.

tanh and sigmoid are rational functions of exp. Arguments that are rational multiples of one another share one variable:
exp(2x/3) and exp(x/2) are powers of y = exp(x/6) > 0; sin and cos of multiples of x/2 are polynomials in the sine s and
the cosine c of x/2 with s^2 + c^2 = 1. Where the argument occurs nowhere else, the new variables are free and
nothing is lost; elsewhere inequalities that hold for the function, such as exp(x) >= 1 + x, tie them to the argument,
so that "impossible" remains a proof. Numbers such as exp(2) become variables between rational bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from rdgraph.reals.enclosure import NotEnclosed, bounds
from rdgraph.vocabulary.functions import FUNCTIONS, ElementwiseFunction, in_exponentials

#: Larger multiples of a common unit are not written out as powers of one letter.
MAX_MULTIPLE = 64
#: Conditions of a higher degree in the new letters, on one denominator, are not written out.
MAX_DEGREE = 64


def _transcendental() -> tuple[type, ...]:
    """Functions that are not algebraic; of those with a kink at zero the solver knows by itself."""
    own = (kind for kind, record in FUNCTIONS.classes().items() if record.pieces is None)
    return (sp.log, sp.tan, sp.atan, sp.LambertW, sp.NumberSymbol, *own)


def _named_functions() -> dict[type, ElementwiseFunction]:
    """Functions that are replaced by one variable each: all but exp, sin, cos and those written in exp."""
    return {
        kind: record
        for kind, record in FUNCTIONS.classes().items()
        if record.pieces is None and record.rewriting is None and kind not in _WITH_UNITS
    }


#: Functions with addition theorems: their arguments are split into multiples of units.
_WITH_UNITS = (sp.exp, sp.sin, sp.cos)


class NotRewritten(Exception):
    """A function or an argument that the rewriting does not know."""


@dataclass(frozen=True)
class Rewriting:
    """Conditions between algebraic expressions, facts about the new variables, and the way back to the old ones.

    `origins` expresses old symbols in new variables: {x: log(y)} for y = exp(x) where x no longer occurs. `bounded`:
    a number was replaced by rational bounds.
    """

    conditions: tuple[sp.Basic, ...]
    facts: tuple[sp.Basic, ...] = ()
    origins: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()
    bounded: bool = False


def rewrite(conditions: Iterable[sp.Basic]) -> Rewriting:
    """Conditions without transcendental functions.

    >>> x = sp.Symbol("x", real=True)
    >>> rewrite([sp.exp(2 * x) + sp.exp(3 * x) > 1]).conditions
    (_y**3 + _y**2 > 1,)
    """
    given = tuple(conditions)
    if not any(c.has(*_transcendental()) for c in given):
        algebraic, numbers = _constants(list(given))
        return Rewriting(tuple(algebraic), tuple(numbers), bounded=bool(numbers))
    unified = [_unified(c) for c in given]
    exponentials, angles = _Units(), _Units()
    for condition in unified:
        for call in condition.atoms(sp.exp):
            exponentials.collect(call.args[0])
        for call in condition.atoms(sp.sin, sp.cos):
            angles.collect(call.args[0])
    for condition in unified:
        if (degree := max(_degrees(condition, exponentials, angles))) > MAX_DEGREE:
            raise NotRewritten(f"a condition of degree {degree} in functions of the state is too long")
    rewritten, facts = _named([_through(c, exponentials, angles) for c in unified])
    kept = {x for c in [*rewritten, *facts] for x in c.free_symbols}
    origins: list[tuple[sp.Symbol, sp.Expr]] = []
    for units, tie, inverse in ((exponentials, _tie_exponential, _logarithm), (angles, _tie_angle, _angle)):
        for core, letters in units.letters.items():
            free = core.is_Symbol and core not in kept and not _elsewhere(core, exponentials, angles)
            facts += tie(core, None if free else units.scale[core] * core, letters)
            if free:
                origins.append((core, inverse(core, letters) / units.scale[core]))
    everything, numbers = _constants([*rewritten, *facts])
    count = len(rewritten)
    return Rewriting(tuple(everything[:count]), (*everything[count:], *numbers), tuple(origins), bool(numbers))


def _unified(condition: sp.Basic) -> sp.Basic:
    """tanh and sigmoid through exp, softplus of negative arguments through that of positive ones."""

    def turned(call: sp.Expr) -> sp.Expr:
        argument, reflection = call.args[0], named[call.func].reflection
        if reflection is None or not argument.could_extract_minus_sign():
            return call
        return reflection(-argument, call.func(-argument))

    named = _named_functions()
    return in_exponentials(condition).replace(lambda e: e.func in named, turned)


class _Units:
    """Arguments as sums of rational multiples of cores; the unit of a core is the common divisor of its multiples."""

    def __init__(self) -> None:
        self.multiples: dict[sp.Expr, set[sp.Rational]] = defaultdict(set)
        self._letters: dict[sp.Expr, tuple[sp.Symbol, ...]] = {}

    def collect(self, argument: sp.Expr) -> None:
        for multiple, core in split(argument):
            if core.has(*_WITH_UNITS, *_named_functions(), sp.log):
                raise NotRewritten(f"a function of a function: {core}")
            self.multiples[core].add(abs(multiple))

    @property
    def scale(self) -> dict[sp.Expr, sp.Rational]:
        return {core: _divisor(found) for core, found in self.multiples.items() if core != 1}

    @property
    def letters(self) -> dict[sp.Expr, tuple[sp.Symbol, ...]]:
        for core in self.multiples:
            if core != 1 and core not in self._letters:
                self._letters[core] = (
                    sp.Dummy("y", positive=True), sp.Dummy("sine", real=True), sp.Dummy("cosine", real=True),
                )  # fmt: skip
        return self._letters

    def power(self, core: sp.Expr, multiple: sp.Rational) -> int:
        times = multiple / self.scale[core]
        if abs(times) > MAX_MULTIPLE:
            raise NotRewritten(f"{multiple} is a large multiple of the unit {self.scale[core]} of {core}")
        return int(times)


def split(argument: sp.Expr) -> list[tuple[sp.Rational, sp.Expr]]:
    """An expanded sum as pairs (rational factor, core); the constant has the core 1."""
    return [term.as_coeff_Mul(rational=True) for term in sp.Add.make_args(sp.expand(argument)) if term != 0]


def _divisor(multiples: Iterable[sp.Rational]) -> sp.Rational:
    """The largest number of which all are integer multiples."""
    found = list(multiples)
    below = sp.ilcm(1, *(m.q for m in found))
    return sp.Rational(sp.igcd(0, *(int(m * below) for m in found)), below)


def _degrees(expression: sp.Basic, exponentials: _Units, angles: _Units) -> tuple[int, int]:
    """Bounds of the degrees of numerator and denominator in the letters of exponentials and angles."""
    if expression.is_number or not expression.has(*_WITH_UNITS):
        return 0, 0
    if isinstance(expression, _WITH_UNITS):
        units = exponentials if isinstance(expression, sp.exp) else angles
        powers = [units.power(core, m) for m, core in split(expression.args[0]) if core != 1]
        return sum(p for p in powers if p > 0), -sum(p for p in powers if p < 0)
    parts = [_degrees(argument, exponentials, angles) for argument in expression.args]
    below = sum(bottom for _, bottom in parts)
    if isinstance(expression, sp.Mul):
        return sum(top for top, _ in parts), below
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer:
        (top, bottom), times = parts[0], int(expression.exp)
        return (top * times, bottom * times) if times > 0 else (-bottom * times, -top * times)
    return max(top + below - bottom for top, bottom in parts), below


def _through(condition: sp.Basic, exponentials: _Units, angles: _Units) -> sp.Basic:
    """A condition with exp, sin and cos written in the variables of their units."""

    def written(call: sp.Expr) -> sp.Expr:
        if isinstance(call, sp.exp):
            return sp.Mul(*(_exponential(m, core, exponentials) for m, core in split(call.args[0])))
        sine, cosine = sp.S.Zero, sp.S.One
        for multiple, core in split(call.args[0]):
            s, c = _sine_cosine(multiple, core, angles)
            sine, cosine = sine * c + cosine * s, cosine * c - sine * s
        return sp.expand(sine if isinstance(call, sp.sin) else cosine)

    return condition.replace(lambda e: isinstance(e, sp.exp | sp.sin | sp.cos) and not e.is_number, written)


def _exponential(multiple: sp.Rational, core: sp.Expr, units: _Units) -> sp.Expr:
    if core == 1:
        return sp.exp(multiple)
    return units.letters[core][0] ** units.power(core, multiple)


def _sine_cosine(multiple: sp.Rational, core: sp.Expr, units: _Units) -> tuple[sp.Expr, sp.Expr]:
    if core == 1:
        return sp.sin(multiple), sp.cos(multiple)
    times = units.power(core, multiple)
    _, s, c = units.letters[core]
    cosine = sp.chebyshevt(abs(times), c)
    sine = s * sp.chebyshevu(abs(times) - 1, c) if times else sp.S.Zero
    return (sine if times > 0 else -sine), cosine


def _elsewhere(core: sp.Symbol, *families: _Units) -> bool:
    """Whether a letter occurs in another core, or in both families."""
    others = [c for units in families for c in units.multiples if c != core and c.has(core)]
    return bool(others) or all(core in units.multiples for units in families)


def _tie_exponential(core: sp.Expr, argument: sp.Expr | None, letters: tuple[sp.Symbol, ...]) -> list[sp.Basic]:
    """Inequalities between x and y = exp(x) that hold for every real x; without x, what its sign says about y."""
    y = letters[0]
    if argument is None:
        above = [sp.Gt(y, 1, evaluate=False)] if core.is_positive else [_at_least(y, 1)] if core.is_nonnegative else []
        below = [sp.Lt(y, 1, evaluate=False)] if core.is_negative else [_at_least(1, y)] if core.is_nonpositive else []
        return above + below
    x = argument
    cubic = 1 + x + x**2 / 2 + x**3 / 6
    return [
        _at_least(y, 1 + x), _at_least(1, y * (1 - x)), _at_least(y, cubic),
        sp.Or(_at_least(0, x), _at_least(y, cubic + x**4 / 24)),
        sp.Or(_at_least(x, 0), _at_least(1 + x + x**2 / 2, y)),
        sp.Or(sp.Ne(x, 0, evaluate=False), sp.Eq(y, 1, evaluate=False)),
        sp.Or(sp.Eq(x, 0, evaluate=False), sp.Gt(y, 1 + x, evaluate=False)),
    ]  # fmt: skip


def _tie_angle(core: sp.Expr, argument: sp.Expr | None, letters: tuple[sp.Symbol, ...]) -> list[sp.Basic]:
    """The circle, and where the argument x occurs elsewhere, what holds of sine and cosine for every real x."""
    _, s, c = letters
    circle: list[sp.Basic] = [sp.Eq(s**2 + c**2, 1, evaluate=False)]
    if argument is None:
        return circle
    x = argument
    return [
        *circle, _at_least(x**2, s**2), _at_least(c, 1 - x**2 / 2),
        sp.Or(_at_least(0, x), _at_least(s, x - x**3 / 6)), sp.Or(_at_least(x, 0), _at_least(x - x**3 / 6, s)),
    ]  # fmt: skip


def _logarithm(core: sp.Symbol, letters: tuple[sp.Symbol, ...]) -> sp.Expr:
    return sp.log(letters[0])


def _angle(core: sp.Symbol, letters: tuple[sp.Symbol, ...]) -> sp.Expr:
    """The angle of a point of the circle, a turn away from zero where the letter has a sign."""
    turn = 2 * sp.pi if core.is_nonnegative else -2 * sp.pi if core.is_nonpositive else 0
    return sp.atan2(letters[1], letters[2]) + turn


def _named(conditions: list[sp.Basic]) -> tuple[list[sp.Basic], list[sp.Basic]]:
    """Replace log, softplus and registered functions by variables, with inequalities that hold for them."""
    facts: list[sp.Basic] = []
    letters: dict[sp.Expr, sp.Symbol] = {}
    named = _named_functions()
    for call in sorted({f for c in conditions for f in c.atoms(sp.log, *named) if not f.is_number}, key=str):
        x, y = call.args[0], sp.Dummy(call.func.__name__, real=True)
        letters[call] = y
        if isinstance(call, sp.log):
            facts += [sp.Or(_at_least(0, x), bound) for bound in (_at_least(x - 1, y), _at_least(x * y, x - 1))]
        else:
            facts += named[call.func].relations(x, y)
    if not letters:
        return conditions, []
    return [c.xreplace(letters) for c in conditions], facts


def _constants(conditions: list[sp.Basic]) -> tuple[list[sp.Basic], list[sp.Basic]]:
    """Replace transcendental and unwieldy algebraic numbers by variables between rational bounds."""
    letters: dict[sp.Expr, sp.Symbol] = {}
    transcendental = _transcendental()

    def named(expression: sp.Basic) -> sp.Basic:
        if not expression.args or not expression.has(*transcendental, sp.CRootOf, sp.Pow):
            return _letter(expression, letters) if isinstance(expression, sp.NumberSymbol) else expression
        if isinstance(expression, sp.Expr) and expression.is_number:
            return _letter(expression, letters) if _is_unwieldy(expression) else expression
        if isinstance(expression, sp.Add | sp.Mul):
            number, rest = expression.as_independent(*expression.free_symbols, as_Add=expression.is_Add)
            if number.args and rest.args:
                return expression.func(named(number), *map(named, expression.func.make_args(rest)))
        parts = [named(part) for part in expression.args]
        if all(part is before for part, before in zip(parts, expression.args, strict=True)):
            return expression
        return expression.func(*parts, **_UNEVALUATED.get(type(expression), {}))

    rewritten = [named(c) for c in conditions]
    facts: list[sp.Basic] = []
    for number, letter in letters.items():
        try:
            lower, upper = bounds(number)
        except NotEnclosed as problem:
            raise NotRewritten(str(problem)) from None
        facts += [_at_least(letter, lower), _at_least(upper, letter)]
    return rewritten, facts


#: Relations keep their sides as they are.
_UNEVALUATED = {relation: {"evaluate": False} for relation in (sp.Gt, sp.Ge, sp.Lt, sp.Le, sp.Eq, sp.Ne)}


def _letter(number: sp.Expr, letters: dict[sp.Expr, sp.Symbol]) -> sp.Symbol:
    return letters.setdefault(number, sp.Dummy("number", real=True))


def _is_unwieldy(number: sp.Expr) -> bool:
    """Transcendental, or made of several roots: bounds serve better than equations."""
    return number.has(*_transcendental()) or len(number.atoms(sp.Pow, sp.CRootOf)) > 2


def _at_least(left: sp.Expr | int, right: sp.Expr | int) -> sp.Basic:
    return sp.Ge(left, right, evaluate=False)


def outermost(parts: Iterable[sp.Expr]) -> list[sp.Expr]:
    """The expressions that no other one of them contains.

    >>> x = sp.Symbol("x")
    >>> outermost([sp.sin(x), sp.exp(sp.sin(x)), sp.cos(x)])
    [exp(sin(x)), cos(x)]
    """
    known = list(parts)
    return [part for part in known if not any(other != part and other.has(part) for other in known)]
