"""Between trees and sympy's matrix expressions: the form in which other sympy code can use an equation."""

from __future__ import annotations

from functools import reduce
from typing import Any

import sympy as sp
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction
from sympy.matrices.expressions.hadamard import HadamardPower, HadamardProduct

from rdgraph.errors import LanguageError, RdgraphError
from rdgraph.language import Vocabulary
from rdgraph.nodes import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of
from rdgraph.normal import SYMPY_FUNCTIONS

n = sp.Symbol("n", integer=True, positive=True)
d = sp.Symbol("d", integer=True, positive=True)

_SHAPES = {
    Kind.FIELD: (n, d),
    Kind.OPERATOR: (n, n),
    Kind.MATRIX: (d, d),
    Kind.NODE: (n, 1),
    Kind.CHANNEL: (1, d),
}


# ---------------------------------------------------------------------- tree -> sympy
def to_sympy(node: sp.Basic) -> Any:
    """A tree as matrix expression; coefficients of one entry per channel or node are row or column vectors."""
    match node:
        case sp.Rational():
            return node
        case Name(name="I"):
            return sp.Identity(n)
        case Name(kind=Kind.SCALAR):
            return sp.Symbol(node.name)
        case Name():
            return sp.MatrixSymbol(node.name, *_SHAPES[node.kind])
        case Negative():
            return -to_sympy(node.inner)
        case Plus() | Minus():
            kind = kind_of(node)
            left, right = _as_kind(node.left, kind), _as_kind(node.right, kind)
            return left + right if isinstance(node, Plus) else left - right
        case Times():
            return _times(node)
        case Over():
            return _over(node)
        case Apply():
            return _apply(node.left, node.right)
        case Power():
            return _power(node)
        case Call():
            return _call(node)
    raise RdgraphError(f"no sympy form for {type(node).__name__}")


def _as_kind(node: sp.Basic, kind: Kind) -> Any:
    """Broadcast an elementwise tree to the shape of `kind`."""
    own, value = kind_of(node), to_sympy(node)
    if own is kind or kind is Kind.SCALAR:
        return value
    if own is Kind.SCALAR:
        return value * sp.OneMatrix(*_SHAPES[kind])
    if own is Kind.CHANNEL:
        return sp.OneMatrix(n, 1) * value
    return value * sp.OneMatrix(1, d)


def _times(node: Times) -> Any:
    kind = kind_of(node)
    left, right = kind_of(node.left), kind_of(node.right)
    if Kind.SCALAR in (left, right):
        return to_sympy(node.left) * to_sympy(node.right)
    if kind is Kind.OPERATOR:
        raise RdgraphError("an operator scaled by a channel or node coefficient has no matrix form until it is applied")
    return HadamardProduct(_as_kind(node.left, kind), _as_kind(node.right, kind))


def _over(node: Over) -> Any:
    kind = kind_of(node)
    if kind_of(node.right) is Kind.SCALAR:
        return to_sympy(node.left) / to_sympy(node.right)
    return HadamardProduct(_as_kind(node.left, kind), HadamardPower(_as_kind(node.right, kind), -1))


def _apply(left: sp.Basic, right: sp.Basic) -> Any:
    if isinstance(left, Times) and {kind_of(left.left), kind_of(left.right)} & {Kind.CHANNEL, Kind.NODE}:
        first = kind_of(left.left) is Kind.OPERATOR
        op, factor = (left.left, left.right) if first else (left.right, left.left)
        return to_sympy(Times(factor, Apply(op, right)))
    if isinstance(left, Plus | Minus) and kind_of(left) is Kind.OPERATOR and _has_vector(left):
        return to_sympy(left.func(Apply(left.left, right), Apply(left.right, right)))
    if isinstance(left, Negative) and _has_vector(left):
        return to_sympy(Negative(Apply(left.inner, right)))
    if isinstance(left, Apply) and _has_vector(left):
        return to_sympy(Apply(left.left, Apply(left.right, right)))
    if isinstance(left, Power) and _has_vector(left):
        return to_sympy(reduce(lambda x, op: Apply(op, x), [left.base] * left.exponent, right))
    if isinstance(left, Over) and _has_vector(left):
        return to_sympy(Over(Apply(left.left, right), left.right))
    return to_sympy(left) * to_sympy(right)


def _has_vector(node: sp.Basic) -> bool:
    return kind_of(node) is Kind.OPERATOR and any(a.kind in (Kind.CHANNEL, Kind.NODE) for a in node.atoms(Name))


def _power(node: Power) -> Any:
    base = to_sympy(node.base)
    if kind_of(node.base) in (Kind.SCALAR, Kind.OPERATOR):
        return base**node.exponent
    return HadamardPower(base, node.exponent)


def _call(node: Call) -> Any:
    argument = to_sympy(node.argument)
    function = SYMPY_FUNCTIONS[node.function]
    if kind_of(node.argument) is Kind.SCALAR:
        return function(argument)
    x = sp.Symbol("x", real=True)
    return ElementwiseApplyFunction(sp.Lambda(x, function(x)), argument)


# ---------------------------------------------------------------------- sympy -> tree
def from_sympy(expression: sp.Basic, vocabulary: Vocabulary) -> sp.Basic:
    """A tree from a matrix expression (or one in non-commutative symbols) over the letters of the language."""
    return _Importer(vocabulary).convert(expression)


def number_node(number: sp.Basic) -> sp.Basic:
    """A number as tree: non-negative rationals whose decimals end, quotients and signs around them."""
    if isinstance(number, sp.Float):
        number = sp.Rational(str(number))
    if not isinstance(number, sp.Rational):
        raise RdgraphError(f"expected a rational number, got {number}; keep other constants as coefficients")
    if number < 0:
        return Negative(number_node(-number))
    remainder = number.q
    for prime in (2, 5):
        while remainder % prime == 0:
            remainder //= prime
    return number if remainder == 1 else Over(sp.Integer(number.p), sp.Integer(number.q))


_FROM_FUNCTION = {function: name for name, function in SYMPY_FUNCTIONS.items() if name != "sqrt"}


class _Importer:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def convert(self, e: Any) -> sp.Basic:
        match e:
            case sp.Number():
                return number_node(e)
            case sp.Identity():
                return Name("I", Kind.OPERATOR)
            case sp.MatrixSymbol() | sp.Symbol():
                return self.letter(str(e.name))
            case sp.OneMatrix():
                return sp.S.One
            case sp.ZeroMatrix():
                return sp.S.Zero
            case sp.MatAdd() | sp.Add():
                return reduce(_plus, [self.convert(a) for a in e.args])
            case sp.MatMul() | sp.Mul():
                return self.product(e)
            case HadamardProduct():
                return reduce(Times, [self.convert(a) for a in e.args])
            case HadamardPower() | sp.MatPow() | sp.Pow():
                return self.power(e)
            case ElementwiseApplyFunction():
                return self.elementwise(e)
            case sp.Function() | sp.Abs() if e.func in _FROM_FUNCTION:
                return Call(_FROM_FUNCTION[e.func], self.convert(e.args[0]))
        raise self.refuse(e, f"a {type(e).__name__}")

    def refuse(self, e: Any, got: str) -> LanguageError:
        return LanguageError(
            str(e)[:80], 0, expected="sympy matrix expressions in H, H0, A, L, W and coefficients", got=got,
            remedy="use MatrixSymbol, HadamardProduct, HadamardPower and applyfunc",
        )  # fmt: skip

    def letter(self, name: str) -> Name:
        kind = self.vocabulary.kinds.get(name)
        if kind is None:
            raise self.refuse(name, f"unknown name {name!r}: declare it in coefficients=")
        return Name(name, kind)

    def product(self, e: Any) -> sp.Basic:
        factors = [a for a in e.args if not isinstance(a, sp.OneMatrix)]
        if not factors:
            return sp.S.One
        sign, factors = (-1, [f for f in factors if f != -1]) if sp.S.NegativeOne in factors else (1, factors)
        divisors = [f for f in factors if isinstance(f, sp.Pow) and f.exp.is_negative and f.is_commutative]
        others = [self.convert(f) for f in factors if f not in divisors] or [sp.S.One]
        scalars = [x for x in others if kind_of(x) is Kind.SCALAR]
        rest = [x for x in others if kind_of(x) is not Kind.SCALAR]
        if sum(kind_of(x) is Kind.FIELD for x in rest) > 1:
            raise self.refuse(e, "a plain product of two fields, whose order is ambiguous")
        chain: list[sp.Basic] = scalars[:]
        if rest:
            chain.append(self.applied(rest))
        result = reduce(Times, chain)
        for divisor in divisors:
            result = Over(result, self.convert(1 / divisor))
        return Negative(result) if sign < 0 else result

    def applied(self, factors: list[sp.Basic]) -> sp.Basic:
        """Operators from the left, then the field, then mixing matrices."""
        elementwise = [f for f in factors if kind_of(f) in (Kind.NODE, Kind.CHANNEL)]
        if elementwise and all(kind_of(f) in (Kind.NODE, Kind.CHANNEL) for f in factors):
            return reduce(Times, factors)
        at = next((i for i, f in enumerate(factors) if kind_of(f) in (Kind.FIELD, Kind.NODE)), len(factors) - 1)
        result = reduce(lambda x, op: Apply(op, x), reversed(factors[:at]), factors[at])
        return reduce(Apply, factors[at + 1 :], result)

    def power(self, e: Any) -> sp.Basic:
        base, exponent = e.args
        if exponent == sp.Rational(1, 2):
            return Call("sqrt", self.convert(base))
        if not isinstance(exponent, sp.Integer):
            raise self.refuse(e, f"the exponent {exponent}")
        if isinstance(e, sp.Pow) and exponent < 0:
            return Over(sp.S.One, self.convert(base**-exponent))
        return Power(self.convert(base), exponent)

    def elementwise(self, e: Any) -> sp.Basic:
        function, inner = e.function, self.convert(e.expr)
        x = function.variables[0]
        if function.expr == x:
            return inner
        if function.expr == sp.sqrt(x):
            return Call("sqrt", inner)
        if function.expr.func in _FROM_FUNCTION and function.expr.args == (x,):
            return Call(_FROM_FUNCTION[function.expr.func], inner)
        raise self.refuse(e, f"the function {function}")


def _plus(left: sp.Basic, right: sp.Basic) -> sp.Basic:
    if isinstance(right, Negative):
        return Minus(left, right.inner)
    return Plus(left, right)
