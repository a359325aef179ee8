"""Steady states with letters as coefficients: at single values, each listed state is real, defined and a zero, and a
list that is called complete misses none. Values are chosen where coefficients vanish and roots meet.

Rational rates are computed exactly, as quotients of polynomials over the rational numbers, abs and relu on both sides
of their kinks; roots of the field are followed along a grid.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

from tests.adversary import expressions, formulas
from tests.adversary.answers import State, States
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn

FAMILY = "state_conditions"
Random = np.random.Generator
Values = Mapping[str, Fraction]

DIGITS = 60
#: A number below this is zero; two places nearer than this are one.
SMALL, NEAR = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** -12
#: Values of coefficients: zero, and numbers at which discriminants and denominators often vanish.
GRID = tuple(Fraction(n, 16) for n in (0, 0, 0, 1, 4, 4, 8, 16, 16, 16, 24, 32, 32, 48, 48, 64, 72))
CASES = 10
#: Places at which a family of states is looked at, and between which roots of the field are followed.
SAMPLES = tuple(Fraction(n, 7) for n in (-61, -15, -7, -2, 0, 3, 7, 14, 21, 40))
PLACES = np.unique(np.concatenate([np.linspace(-40, 40, 2001), np.sinh(np.linspace(-6, 6, 801))]))


class Undefined(ArithmeticError):
    """A division by zero, or a root of a negative number."""


# ---------------------------------------------------------------------- equations
def draw(rng: Random) -> tuple[Drawn, list[Question]]:
    """An equation of one field with letters as coefficients, and the question for its steady states."""
    while True:
        names = [str(n) for n in rng.permutation(["alpha", "beta", "gamma"])]
        terms = [f"{_coefficient(rng, names)}*{_shape(rng, names)}" for _ in range(rng.integers(1, 4))]
        body = terms[0] + "".join(f" {rng.choice(['+', '-'])} {term}" for term in terms[1:])
        used = sorted(expressions.names(body) & set(names))
        statements = tuple(f"{n} {rng.choice(_SIGNS)}" for n in used if rng.random() < 0.75)
        if len(used) > 1 and rng.random() < 0.15:
            statements += (f"{used[0]} <= {used[1]}",)
        drawn = Drawn(body, tuple((n, "scalar") for n in used), statements, "state conditions", frozenset({FAMILY}))
        if used and "H" in expressions.names(body) and next(_edges(drawn, rng), None) is not None:
            break
    values = {n: float(v) for n, v in next(_edges(drawn, rng)).items()} if rng.random() < 0.15 else None
    return drawn, [Question(FAMILY, "steady_states", {"values": values})]


_SIGNS = ("real", "real", "real", "nonnegative", "nonpositive", "positive", "negative")


def _coefficient(rng: Random, names: list[str]) -> str:
    x, y = names[0] if rng.random() < 0.3 else str(rng.choice(names)), str(rng.choice(names))
    options = [x] * 8 + [f"{x}**2", f"({x} - {y})", f"({x} - 1)", f"{x}*{y}", f"{x}/{y}", f"({x} + 2)", "1", "2", "3"]
    return str(rng.choice(options))


def _shape(rng: Random, names: list[str]) -> str:
    x, y, n = str(rng.choice(names)), str(rng.choice(names)), int(rng.integers(1, 4))
    options = [
        "1", "1", "H", "H", "H**2", "H**2", "H**3", "1/H", "H/(1 + H**2)", "1/(1 + H**2)", f"H**2/({x} + H**2)",
        f"1/(H - {n})", f"1/(H - {x})", f"H/(H + {x})", "H**2/H", f"(H - {x})*(H - {n})", "H*(1 - H)", f"H*({x} - H)",
        f"H**2/({n} + H**2)", "1/(1/H + 1)", f"(H**2 - {x})", "H**4", f"H/({x} - {y}*H)", "A@(A@H)", "L@H",
        f"(1 - {x})/(H**2 - {n})", "abs(H)", f"abs(H - {x})", f"relu(H - {x})", "H*abs(H)", "sqrt(H)", f"sqrt(H - {x})",
        f"sqrt({x})*H", f"(H - {x})**2", "1/H**2", f"tanh({x}*H)",
    ]  # fmt: skip
    return str(rng.choice(options))


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    """None: this family draws its own equations."""
    return []


def _edges(drawn: Drawn, rng: Random) -> Iterator[dict[str, Fraction]]:
    """Admitted values of the coefficients, many of them special."""
    assumed = drawn.assumed
    for _ in range(200):
        found = {}
        for name in drawn.letters:
            size = GRID[int(rng.integers(len(GRID)))]
            if rng.random() < 0.2:
                size = Fraction(int(rng.integers(1, 400)), 64)
            word = assumed.sign(name)
            negative = word in ("negative", "nonpositive") or (word == "real" and rng.random() < 0.5)
            found[name] = -size if negative else size
        if assumed.satisfied({n: float(v) for n, v in found.items()}):
            yield found


# ---------------------------------------------------------------------- formulas with many digits
def _number(text: str, letters: Mapping[str, Any]) -> Any:
    return _evaluated(_tree(text), letters)


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _divided(a: Any, b: Any) -> Any:
    if _is_zero(b):
        raise Undefined("division by zero")
    return a / b


def _powered(a: Any, b: Any) -> Any:
    if b == int(b):
        return a ** int(b) if b >= 0 else _divided(1, a ** int(-b))
    if _real(a) < -SMALL or (b < 0 and abs(_real(a)) < SMALL):
        raise Undefined("a root of a negative number, or of zero below a fraction")
    return mpmath.mpf(max(_real(a), 0)) ** _real(b)


def _is_zero(x: Any) -> bool:
    """Exactly for polynomials and fractions, else below a bound."""
    return not x if isinstance(x, Quotient | Fraction | int) else abs(x) < SMALL


def _real(x: Any) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else x


def _function(name: str, x: Any) -> Any:
    if name == "sqrt":
        return _powered(x, Fraction(1, 2))
    if name in ("abs", "Abs"):
        return abs(x)
    if name == "relu":
        return x if x > 0 else 0 * x
    if name in ("atanh", "log"):
        value = getattr(mpmath, name)(_real(x))
        if mpmath.im(value) != 0 or not mpmath.isfinite(value):
            raise Undefined(f"{name} outside of its domain")
        return value
    return getattr(mpmath, name)(_real(x))


def _evaluated(node: ast.expr, letters: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return Fraction(str(node.value))
        case ast.Name(id=name):
            return letters[name]
        case ast.UnaryOp(op=ast.USub()):
            return -_evaluated(node.operand, letters)
        case ast.BinOp():
            a, b = _evaluated(node.left, letters), _evaluated(node.right, letters)
            if isinstance(a, mpmath.mpf) or isinstance(b, mpmath.mpf):
                a, b = _real(a), _real(b)
            match node.op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult() | ast.MatMult():
                    return a * b
                case ast.Div():
                    return _divided(a, b)
                case ast.Pow():
                    return _powered(a, b)
        case ast.Call(func=ast.Name(id="CRootOf" | "rootof")):
            return mpmath.mpf(formulas.evaluate(ast.unparse(node), {}))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return _function(name, _evaluated(argument, letters))
    raise formulas.Unreadable(f"expected a formula, got {ast.unparse(node)!r}")


def _holds(text: str, letters: Mapping[str, Any]) -> bool:
    """Whether a condition of an answer holds; `Undefined` where it has no real value."""
    node = _tree(text)
    match node:
        case ast.Call(func=ast.Name(id="Eq" | "Ne" as name)):
            sides, test = node.args, "==" if name == "Eq" else "!="
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            sides, test = [left, right], {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(sign)]
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            both = [_holds(ast.unparse(side), letters) for side in (node.left, node.right)]
            return all(both) if isinstance(node.op, ast.BitAnd) else any(both)
        case _:
            raise formulas.Unreadable(f"expected a condition, got {text!r}")
    a, b = (_real(_evaluated(side, letters)) for side in sides)
    same = abs(a - b) < SMALL
    return {"==": same, "!=": not same, "<": a < b and not same, "<=": a < b or same, ">": a > b and not same,
            ">=": a > b or same}[test]  # fmt: skip


# ---------------------------------------------------------------------- the zeros of a rate
class Quotient:
    """A rational function of the field, exact: coefficients from the lowest power on."""

    def __init__(self, top: list[Fraction], bottom: list[Fraction]) -> None:
        while top and not top[-1]:
            top = top[:-1]
        self.top, self.bottom = top, bottom

    def __bool__(self) -> bool:
        return bool(self.top)

    @staticmethod
    def of(x: Any) -> Quotient:
        return x if isinstance(x, Quotient) else Quotient([Fraction(x)], [Fraction(1)])

    def __add__(self, other: Any) -> Quotient:
        o = Quotient.of(other)
        return Quotient(_sum(_times(self.top, o.bottom), _times(o.top, self.bottom)), _times(self.bottom, o.bottom))

    def __mul__(self, other: Any) -> Quotient:
        o = Quotient.of(other)
        return Quotient(_times(self.top, o.top), _times(self.bottom, o.bottom))

    def __truediv__(self, other: Any) -> Quotient:
        o = Quotient.of(other)
        return Quotient(_times(self.top, o.bottom), _times(self.bottom, o.top))

    def __neg__(self) -> Quotient:
        return self * Fraction(-1)

    def __sub__(self, other: Any) -> Quotient:
        return self + -Quotient.of(other)

    def __rsub__(self, other: Any) -> Quotient:
        return Quotient.of(other) - self

    def __rtruediv__(self, other: Any) -> Quotient:
        return Quotient.of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, power: int) -> Quotient:
        return Quotient.of(Fraction(1)) if not power else self * self ** (power - 1)


def _times(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    found = [Fraction(0)] * (len(a) + len(b) - 1) if a and b else []
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += x * y
    return found


def _sum(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    return [x + y for x, y in itertools.zip_longest(a, b, fillvalue=Fraction(0))]


def _simple(top: list[Fraction]) -> list[Fraction]:
    """The polynomial with every root once."""
    a, b = top, [k * c for k, c in enumerate(top)][1:]
    while b:
        a, b = b, _divided_by(a, b)[1]
    return _divided_by(top, a)[0]


def _divided_by(a: list[Fraction], b: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    rest, quotient = list(a), [Fraction(0)] * max(len(a) - len(b) + 1, 0)
    for k in reversed(range(len(quotient))):
        quotient[k] = rest[k + len(b) - 1] / b[-1]
        for j, c in enumerate(b):
            rest[k + j] -= quotient[k] * c
    while rest and not rest[-1]:
        rest.pop()
    return quotient, rest


def _sides(body: str) -> Iterator[str]:
    """The body with every abs and relu written out on one side of its kink."""
    calls = [n for n in ast.walk(_tree(body)) if isinstance(n, ast.Call) and n.func.id in ("abs", "relu")]  # type: ignore[attr-defined]
    options = [((-1, 1) if c.func.id == "abs" else (0, 1)) for c in calls]  # type: ignore[attr-defined]
    for chosen in itertools.product(*options):
        text = ast.unparse(_tree(body))
        for call, sign in zip(calls, chosen, strict=True):
            text = text.replace(ast.unparse(call), f"({sign}*({ast.unparse(call.args[0])}))")
        yield text


def _zeros(drawn: Drawn, values: Values) -> list[Any] | None:
    """The real zeros of the rate, and no more than where it may have some; None where it vanishes along a stretch."""
    operators = {"A": Fraction(1), "L": Fraction(0), "I": Fraction(1)}
    rate = _rate(drawn, values)
    if any(f in drawn.body for f in ("sqrt", "tanh")):
        return _followed(rate)
    found: list[Any] = []
    for side in _sides(drawn.body):
        try:
            whole = Quotient.of(_number(side, {**values, **operators, "H": Quotient([0, Fraction(1)], [Fraction(1)])}))
        except Undefined:
            continue
        if not whole and any(_vanishes(rate, _real(x)) for x in SAMPLES):
            return None
        if len(whole.top) > 1:
            powers = [_real(c) for c in reversed(_simple(whole.top))]
            roots = mpmath.polyroots(powers, maxsteps=400, extraprec=400) if len(powers) > 1 else []
            found += [mpmath.re(r) for r in roots if abs(mpmath.im(r)) < SMALL]
    return [x for x in found if _vanishes(rate, x)]


def _rate(drawn: Drawn, values: Values) -> Callable[[Any], Any]:
    letters = {**{n: _real(v) for n, v in values.items()}, "A": mpmath.mpf(1), "L": mpmath.mpf(0), "I": mpmath.mpf(1)}
    return lambda h: _real(_number(drawn.body, {**letters, "H": h}))


def _vanishes(rate: Callable[[Any], Any], place: Any) -> bool:
    try:
        return bool(abs(rate(place)) < mpmath.mpf(10) ** -20 * (1 + abs(place)) ** 4)
    except Undefined:
        return False


def _followed(rate: Callable[[Any], Any]) -> list[Any] | None:
    """Changes of sign along a grid, by halving; None where the rate vanishes along it."""
    samples: list[Any] = []
    for h in PLACES:
        try:
            samples.append(rate(mpmath.mpf(float(h))))
        except Undefined:
            samples.append(None)
    if sum(s is not None and abs(s) < SMALL for s in samples) > len(samples) // 10:
        return None
    found = [mpmath.mpf(float(h)) for h, s in zip(PLACES, samples, strict=True) if s is not None and s == 0]
    for a, b, x, y in zip(PLACES, PLACES[1:], samples, samples[1:], strict=False):
        if x is None or y is None or not x * y < 0:
            continue
        low, high = mpmath.mpf(float(a)), mpmath.mpf(float(b))
        try:
            for _ in range(180):
                middle = (low + high) / 2
                low, high = (middle, high) if rate(middle) * x > 0 else (low, middle)
            found += [low] if _vanishes(rate, low) else []
        except Undefined:
            continue
    return found


# ---------------------------------------------------------------------- the check
def check(drawn: Drawn, question: Question, answer: States, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    given = question.arguments["values"]
    cases = [{n: Fraction(v) for n, v in given.items()}] if given else itertools.islice(_edges(drawn, rng), CASES)
    with mpmath.workdps(DIGITS):
        for values in cases:
            if witness := refuted(drawn, answer, values):
                return f"{witness}; {', '.join(f'{n} = {v}' for n, v in values.items())}"
    return None


def refuted(drawn: Drawn, answer: States, values: Values) -> str | None:
    """A witness at single values of the coefficients."""
    letters, rate = {n: _real(v) for n, v in values.items()}, _rate(drawn, values)
    places: list[tuple[Any, Any]] = []
    families: list[State] = []
    for state in answer.states:
        plain = [c for c in state.conditions if "H" not in expressions.names(c)]
        try:  # in their order: each has a value where those before it hold
            if not all(_holds(c, letters) for c in plain):
                continue
        except Undefined as reason:
            return f"a condition of {state.lower} has no real value, {plain}: {reason}"
        if state.free:
            families.append(state)
            continue
        try:
            lower, upper = (_real(_number(text, letters)) for text in (state.lower, state.upper))
        except Undefined as reason:
            return f"{state.lower} is listed, and is no real number: {reason}"
        places.append((lower, upper))
        if lower == upper and "CRootOf" not in state.lower:
            try:
                speed = rate(lower)
            except Undefined as reason:
                return f"the rate is not defined at the state {state.lower}: {reason}"
            if abs(speed) > mpmath.mpf(10) ** -20 * (1 + abs(lower)) ** 4:
                return f"the rate is {mpmath.nstr(speed, 6)} at the state {state.lower}"
    covers = _covering(families, letters)
    wrong = next((x for x in SAMPLES if covers(_real(x)) and not _vanishes(rate, _real(x))), None)
    if wrong is not None:
        return f"any H is listed, but {wrong} is no state"
    return _missed(drawn, values, places, covers) if answer.is_complete else None


def _covering(families: list[State], letters: Mapping[str, Any]) -> Callable[[Any], bool]:
    return lambda h: any(all(_holds(c, {**letters, "H": h}) for c in f.conditions) for f in families)


def _missed(drawn: Drawn, values: Values, places: list[tuple[Any, Any]], covers: Callable[[Any], bool]) -> str | None:
    """A zero that is not listed."""
    zeros, rate = _zeros(drawn, values), _rate(drawn, values)
    if zeros is None:
        zeros = [_real(x) for x in SAMPLES if _vanishes(rate, _real(x))]
    for zero in zeros:
        near = NEAR * (1 + abs(zero))
        if not covers(zero) and not any(a - near <= zero <= b + near for a, b in places):
            return f"called complete, but {mpmath.nstr(zero, 12)} is a zero of the rate"
    return None
