"""Conditions between algebraic expressions as SMT-LIB text over the reals (QF_NRA).

Square roots become variables (r >= 0, r^2 = x), |x|, max, relu and Piecewise become `ite`. An expression can be
undefined (a zero denominator, a root of a negative number): a relation holds only where both sides are defined, so
`Not` is moved inwards to the relations before they are written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from rdgraph.errors import Undecided
from rdgraph.reals.polynomials import reduced
from rdgraph.vocabulary.functions import record_of

_RELATIONS = {sp.Gt: ">", sp.Ge: ">=", sp.Lt: "<", sp.Le: "<=", sp.Eq: "=", sp.Ne: "distinct"}
MAX_POWER = 128
#: Bits of the longest number; Python writes no longer ones.
MAX_BITS = 10_000


class NotTranslated(Exception):
    """An expression that is not algebraic."""


@dataclass(frozen=True)
class SmtProblem:
    """SMT-LIB text without `check-sat`, and the symbols behind its names."""

    text: str
    letters: dict[str, sp.Symbol]

    def script(self, status: str) -> str:
        """A file that a solver can be run on; `status` is what to expect."""
        return f"(set-logic QF_NRA)\n(set-info :status {status})\n{self.text}(check-sat)\n"


def translate(conditions: Iterable[sp.Basic], *, quotients: bool = True) -> SmtProblem:
    """The conjunction of the conditions; without `quotients` those of polynomials are multiplied by the denominators.

    >>> x = sp.Symbol("x", positive=True)
    >>> print(translate([sp.sqrt(x) < x / 2]).text)
    (declare-const x Real)
    (declare-const root!1 Real)
    (assert (> x 0.0))
    (assert (=> (>= x 0.0) (and (>= root!1 0.0) (= (* root!1 root!1) x))))
    (assert (and (>= x 0.0) (< root!1 (* (/ 1.0 2.0) x))))
    <BLANKLINE>
    """
    writer = _Writer()
    plain = map(_negations_inside, conditions)
    asserted = [writer.condition(c if quotients else _without_quotients(c)) for c in plain]
    lines = [f"(declare-const {name} Real)" for name in [*writer.letters, *writer.helpers]]
    lines += [f"(assert {fact})" for fact in [*writer.signs, *writer.facts, *asserted]]
    return SmtProblem("\n".join(lines) + "\n", dict(writer.letters))


def _negations_inside(condition: sp.Basic) -> sp.Basic:
    match condition:
        case sp.And() | sp.Or():
            return condition.func(*(_negations_inside(part) for part in condition.args), evaluate=False)
        case sp.Not():
            inner = condition.args[0]
            match inner:
                case sp.And() | sp.Or():
                    dual = sp.Or if isinstance(inner, sp.And) else sp.And
                    return dual(*(_negations_inside(sp.Not(part, evaluate=False)) for part in inner.args))
                case sp.Not():
                    return _negations_inside(inner.args[0])
                case sp.core.relational.Relational():
                    return inner.negated
            return sp.Not(inner)
    return condition


def _without_quotients(condition: sp.Basic) -> sp.Basic:
    """The condition with p q > 0 instead of p/q > 0, and no denominator zero; Undecided where p or q is too long.

    >>> x, y = sp.symbols("x y")
    >>> _without_quotients(sp.Gt(x / y, 1))
    Ne(y, 0) & (y*(x - y) > 0)
    """
    if isinstance(condition, sp.And | sp.Or):
        return condition.func(*map(_without_quotients, condition.args), evaluate=False)
    if not isinstance(condition, sp.core.relational.Relational):
        return condition
    difference = condition.lhs - condition.rhs
    powers = [p for p in difference.atoms(sp.Pow) if p.exp.is_Integer and p.exp.is_negative]
    # Roots, absolute values, ... stay letters.
    letters = {x: sp.Dummy() for x in difference.atoms(sp.Pow, sp.Function) if not (x.is_Pow and x.exp.is_Integer)}
    plain = difference.xreplace(letters)
    if not powers or not plain.is_rational_function():
        return condition
    top, bottom = (part.xreplace({x: y for y, x in letters.items()}) for part in reduced(plain))
    cleared = top if isinstance(condition, sp.Eq | sp.Ne) else top * bottom
    defined = (sp.Ne(p.base, 0, evaluate=False) for p in powers)
    return sp.And(*defined, condition.func(cleared, 0, evaluate=False), evaluate=False)


class _Writer:
    """Text of expressions; collects symbols, helper variables with their facts, and what must hold to be defined."""

    def __init__(self) -> None:
        self.letters: dict[str, sp.Symbol] = {}
        self.helpers: list[str] = []
        self.signs: list[str] = []
        self.facts: list[str] = []
        self._names: dict[sp.Symbol, str] = {}
        self._roots: dict[sp.Expr, tuple[str, list[str]]] = {}

    # ------------------------------------------------------------------ conditions
    def condition(self, condition: sp.Basic) -> str:
        if condition in (sp.true, sp.false):
            return "true" if condition == sp.true else "false"
        match condition:
            case sp.And() | sp.Or():
                word = "and" if isinstance(condition, sp.And) else "or"
                return f"({word} {' '.join(self.condition(part) for part in condition.args)})"
            case sp.core.relational.Relational():
                return self._relation(condition)
        raise NotTranslated(f"not a condition between real expressions: {condition}")

    def _relation(self, relation: sp.Rel) -> str:
        defined: list[str] = []
        left, right = self.term(relation.lhs, defined), self.term(relation.rhs, defined)
        return _all([*defined, f"({_RELATIONS[type(relation)]} {left} {right})"])

    # ------------------------------------------------------------------ terms
    def term(self, expression: sp.Expr, defined: list[str]) -> str:
        """Text of an expression; what it takes to be defined is appended to `defined`."""
        match expression:
            case sp.Rational():
                return number(expression)
            case sp.Float():
                return number(sp.Rational(expression))
            case sp.Symbol():
                return self._letter(expression)
            case sp.Add():
                return f"(+ {' '.join(self.term(part, defined) for part in expression.args)})"
            case sp.Mul():
                return self._product(expression, defined)
            case sp.Pow():
                return self._power(expression.base, expression.exp, defined)
            case sp.Piecewise():
                return self._pieces(list(expression.args), defined)
            case sp.Max() | sp.Min():
                return self._extreme(expression, defined)
            case sp.CRootOf():
                return self._algebraic_number(expression)
        record = record_of(expression)
        if isinstance(expression, sp.sign | sp.Heaviside) or (record is not None and record.pieces is not None):
            return self._by_sign(expression, self.term(expression.args[0], defined))
        kind = "an unknown function" if isinstance(expression, AppliedUndef) else type(expression).__name__
        raise NotTranslated(f"{expression} is not algebraic ({kind})")

    def _letter(self, symbol: sp.Symbol) -> str:
        if symbol not in self._names:
            plain = symbol.name if symbol.name.isidentifier() and symbol.name.isascii() else "letter"
            taken = plain in self.letters or plain in _RESERVED
            name = self._numbered(plain, len(self.letters)) if taken else plain
            self._names[symbol] = name
            self.letters[name] = symbol
            if symbol.is_real is False:
                raise NotTranslated(f"{symbol} is not real")
            self.signs += [f"({r} {name} 0.0)" for r in _sign_relations(symbol)]
        return self._names[symbol]

    def _product(self, product: sp.Mul, defined: list[str]) -> str:
        top, bottom = sp.fraction(product)
        if bottom == 1 or bottom.is_Rational:
            return f"(* {' '.join(self.term(part, defined) for part in product.args)})"
        below = self.term(bottom, defined)
        defined.append(f"(distinct {below} 0.0)")
        return f"(/ {self.term(top, defined)} {below})"

    def _power(self, base: sp.Expr, exponent: sp.Expr, defined: list[str]) -> str:
        if not exponent.is_Rational or abs(exponent.p) > MAX_POWER:
            raise NotTranslated(f"the power {base}**{exponent} is not algebraic, or too large")
        inner = self.term(base, defined) if exponent.is_Integer else self._root(base, int(exponent.q), defined)
        times = abs(int(exponent.p))
        whole = inner if times == 1 else _repeated(inner, times)
        if exponent.p > 0:
            return whole
        defined.append(f"(distinct {inner} 0.0)")
        return f"(/ 1.0 {whole})"

    def _root(self, base: sp.Expr, order: int, defined: list[str]) -> str:
        """The real root of a nonnegative number as a helper variable."""
        key = sp.Pow(base, sp.Rational(1, order), evaluate=False)
        if key not in self._roots:
            needs: list[str] = []
            inside = self.term(base, needs)
            needs.append(f"(>= {inside} 0.0)")
            name = self._helper("root")
            self.facts.append(f"(=> {_all(needs)} (and (>= {name} 0.0) (= {_repeated(name, order)} {inside})))")
            self._roots[key] = (name, needs)
        name, needs = self._roots[key]
        defined += needs
        return name

    def _helper(self, kind: str) -> str:
        name = self._numbered(kind, len(self.helpers) + 1)
        self.helpers.append(name)
        return name

    def _numbered(self, word: str, first: int) -> str:
        """A word with a number that names neither a symbol nor a helper."""
        return next(
            name for k in itertools.count(first) if (name := f"{word}!{k}") not in {*self.letters, *self.helpers}
        )

    def _pieces(self, pieces: list[sp.Tuple], defined: list[str]) -> str:
        """Nested `ite`; only the branch that applies must be defined."""
        value, condition = pieces[0]
        own: list[str] = []
        text = self.term(value, own)
        if condition == sp.true:
            defined += own
            return text
        test = self.condition(_negations_inside(condition))
        rest: list[str] = []
        others = self._pieces(pieces[1:], rest) if len(pieces) > 1 else "0.0"
        if len(pieces) == 1:
            rest.append("false")
        if own or rest:
            defined.append(f"(ite {test} {_all(own)} {_all(rest)})")
        return f"(ite {test} {text} {others})"

    def _extreme(self, expression: sp.Expr, defined: list[str]) -> str:
        relation = ">=" if isinstance(expression, sp.Max) else "<="
        text, *others = (self.term(part, defined) for part in expression.args)
        for other in others:
            text = f"(let ((a!0 {text}) (b!0 {other})) (ite ({relation} a!0 b!0) a!0 b!0))"
        return text

    def _by_sign(self, expression: sp.Expr, inner: str) -> str:
        record = record_of(expression)
        if record is not None and record.pieces is not None:
            below, above = (_multiple(side) for side in record.pieces)
            return f"(let ((x!0 {inner})) (ite (>= x!0 0.0) {above} {below}))"
        steps = {sp.sign: ("(- 1.0)", "0.0"), sp.Heaviside: ("0.0", "0.5")}
        below, between = steps[expression.func]
        return f"(let ((x!0 {inner})) (ite (> x!0 0.0) 1.0 (ite (< x!0 0.0) {below} {between})))"

    def _algebraic_number(self, root: sp.CRootOf) -> str:
        """A real root of a polynomial with numeric coefficients: a variable in an interval that isolates it."""
        if not root.is_real:
            raise NotTranslated(f"{root} is not real")
        x = sp.Dummy("x", real=True)
        polynomial = root.poly.as_expr().subs(root.poly.gen, x)
        interval = root._get_interval()
        name = self._helper("number")
        self._names[x] = name
        value = self.term(polynomial, [])
        bounds = f"(>= {name} {number(sp.Rational(interval.a))}) (<= {name} {number(sp.Rational(interval.b))})"
        self.facts.append(f"(and (= {value} 0.0) {bounds})")
        return name


#: Words of SMT-LIB that cannot name a variable.
_RESERVED = {
    "and",
    "or",
    "not",
    "true",
    "false",
    "ite",
    "let",
    "distinct",
    "assert",
    "abs",
    "exists",
    "forall",
    "as",
    "par",
}


def _sign_relations(symbol: sp.Symbol) -> list[str]:
    if symbol.is_zero:
        return ["="]
    if symbol.is_positive:
        return [">"]
    if symbol.is_negative:
        return ["<"]
    found = [">="] if symbol.is_nonnegative else ["<="] if symbol.is_nonpositive else []
    return found + (["distinct"] if symbol.is_nonzero else [])


def number(value: sp.Rational) -> str:
    """A rational number; negative ones and fractions are applications in SMT-LIB.

    Raises:
        Undecided: for numbers of thousands of digits.
    """
    if max(int(value.p).bit_length(), int(value.q).bit_length()) > MAX_BITS:
        raise Undecided("a number in it has thousands of digits")
    text = f"{abs(int(value.p))}.0" if value.q == 1 else f"(/ {abs(int(value.p))}.0 {int(value.q)}.0)"
    return f"(- {text})" if value.p < 0 else text


def _multiple(factor: int) -> str:
    """factor * x!0"""
    plain = {0: "0.0", 1: "x!0", -1: "(- x!0)"}
    return plain.get(factor, f"(* {number(sp.Integer(factor))} x!0)")


def _repeated(text: str, times: int) -> str:
    if times == 1:
        return text
    if text.startswith("("):
        return f"(let ((p!0 {text})) (* {' '.join(['p!0'] * times)}))"
    return f"(* {' '.join([text] * times)})"


def _all(conditions: list[str]) -> str:
    parts = list(dict.fromkeys(conditions))
    return "true" if not parts else parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})"
