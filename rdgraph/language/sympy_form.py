"""Trees as sympy matrix expressions and back, for use of equations in other sympy code."""

from __future__ import annotations

from functools import reduce
from typing import Any

import sympy as sp
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction
from sympy.matrices.expressions.hadamard import HadamardPower, HadamardProduct

from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.language.linear_fold import scaling
from rdgraph.language.reader import Vocabulary
from rdgraph.language.size_limits import check_size, order
from rdgraph.language.tree import (
    MAX_EXPONENT,
    Apply,
    Call,
    Fold,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    kind_of,
)
from rdgraph.language.unfolding import unfolded
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.functions import FUNCTIONS, record_of

n = sp.Symbol("n", integer=True, positive=True)
d = sp.Symbol("d", integer=True, positive=True)

_SHAPES = {Kind.FIELD: (n, d), Kind.OPERATOR: (n, n), Kind.MATRIX: (d, d), Kind.NODE: (n, 1), Kind.CHANNEL: (1, d)}


MAX_VECTOR_ORDER = 8


# ---------------------------------------------------------------------- tree -> sympy
def to_sympy(node: sp.Basic) -> Any:
    """A tree as matrix expression; coefficients of one entry per channel or node are row or column vectors."""
    tree = unfolded(node)
    check_size(tree)
    expression = _MATRIX_FORM(tree)
    return expression.xreplace({_real(x.name): sp.Symbol(x.name) for x in node.atoms(Name) if x.kind is Kind.SCALAR})


def _real(name: str) -> sp.Symbol:
    """Real while the expression is built, so that Abs and sqrt simplify as for real numbers."""
    return sp.Symbol(name, real=True)


class _MatrixForm(Fold[Any]):
    """A tree as a matrix expression in which scalars are real."""

    def number(self, node: sp.Rational) -> Any:
        return node

    def name(self, node: Name) -> Any:
        if node.name == "I":
            return sp.Identity(n)
        return _real(node.name) if node.kind is Kind.SCALAR else sp.MatrixSymbol(node.name, *_SHAPES[node.kind])

    def negative(self, node: Negative) -> Any:
        return -self(node.inner)

    def plus(self, node: Plus) -> Any:
        kind = kind_of(node)
        return self.as_kind(node.left, kind) + self.as_kind(node.right, kind)

    def minus(self, node: Minus) -> Any:
        kind = kind_of(node)
        return self.as_kind(node.left, kind) - self.as_kind(node.right, kind)

    def times(self, node: Times) -> Any:
        kind = kind_of(node)
        if Kind.SCALAR in (kind_of(node.left), kind_of(node.right)):
            return self(node.left) * self(node.right)
        if kind is Kind.OPERATOR:
            raise NotApplicable(
                "an operator scaled by a channel or node coefficient has no matrix form until it is applied"
            )
        return HadamardProduct(self.as_kind(node.left, kind), self.as_kind(node.right, kind))

    def over(self, node: Over) -> Any:
        kind = kind_of(node)
        if kind_of(node.right) is Kind.SCALAR:
            divisor = self(node.right)
            if divisor == 0:
                raise NotApplicable("division by zero")
            return self(node.left) / divisor
        return HadamardProduct(self.as_kind(node.left, kind), HadamardPower(self.as_kind(node.right, kind), -1))

    def apply(self, node: Apply) -> Any:
        if not _has_vector(node.left):
            return self(node.left) * self(node.right)
        if order(node.left) > MAX_VECTOR_ORDER:
            raise NotApplicable(
                f"an operator with node or channel coefficients is spread out only to degree {MAX_VECTOR_ORDER}"
            )
        return self(_SPREAD(node.left, node.right))

    def power(self, node: Power) -> Any:
        base = self(node.base)
        if kind_of(node.base) in (Kind.SCALAR, Kind.OPERATOR):
            return base**node.exponent
        return HadamardPower(base, node.exponent)

    def call(self, node: Call) -> Any:
        argument = self(node.argument)
        function = FUNCTIONS[node.function].sympy
        if kind_of(node.argument) is Kind.SCALAR:
            return function(argument)
        x = sp.Symbol("x", real=True)
        return ElementwiseApplyFunction(sp.Lambda(x, function(x)), argument)

    def as_kind(self, node: sp.Basic, kind: Kind) -> Any:
        """An elementwise tree, broadcast to the shape of `kind`."""
        actual, value = kind_of(node), self(node)
        if actual is kind or kind is Kind.SCALAR:
            return value
        if actual is Kind.SCALAR:
            return value * sp.OneMatrix(*_SHAPES[kind])
        if actual is Kind.CHANNEL:
            return sp.OneMatrix(n, 1) * value
        return value * sp.OneMatrix(1, d)


class _Spread(Fold[sp.Basic]):
    """An operator with vectors in it applied to a tree: one layer is distributed until vectors multiply fields."""

    def times(self, node: Times, operand: sp.Basic) -> sp.Basic:
        factor, inner = scaling(node)
        return Times(factor, Apply(inner, operand))

    def plus(self, node: Plus | Minus, operand: sp.Basic) -> sp.Basic:
        return node.func(Apply(node.left, operand), Apply(node.right, operand))

    minus = plus

    def negative(self, node: Negative, operand: sp.Basic) -> sp.Basic:
        return Negative(Apply(node.inner, operand))

    def apply(self, node: Apply, operand: sp.Basic) -> sp.Basic:
        return Apply(node.left, Apply(node.right, operand))

    def power(self, node: Power, operand: sp.Basic) -> sp.Basic:
        return reduce(lambda x, op: Apply(op, x), [node.base] * node.exponent, operand)

    def over(self, node: Over, operand: sp.Basic) -> sp.Basic:
        return Over(Apply(node.left, operand), node.right)


_MATRIX_FORM, _SPREAD = _MatrixForm(), _Spread()


def _has_vector(node: sp.Basic) -> bool:
    return kind_of(node) is Kind.OPERATOR and any(a.kind in (Kind.CHANNEL, Kind.NODE) for a in node.atoms(Name))


# ---------------------------------------------------------------------- sympy -> tree
def from_sympy(expression: sp.Basic, vocabulary: Vocabulary) -> sp.Basic:
    """A tree from a matrix expression (or one in non-commutative symbols) in the names of the language."""
    importer = _Importer(vocabulary)
    tree = importer.convert(expression)
    return importer.spread(tree, expression) if isinstance(expression, sp.MatrixExpr) else tree


def number_node(number: sp.Basic) -> sp.Basic:
    """A number as tree: non-negative rationals whose decimals end, quotients and signs around them."""
    if isinstance(number, sp.Float):
        number = sp.Rational(str(number))
    if not isinstance(number, sp.Rational):
        raise InvalidArgument(f"expected a rational number, got {number}; keep other constants as coefficients")
    if number < 0:
        return Negative(number_node(-number))
    remainder = number.q
    for prime in (2, 5):
        while remainder % prime == 0:
            remainder //= prime
    return number if remainder == 1 else Over(sp.Integer(number.p), sp.Integer(number.q))


def number_tree(value: Any) -> sp.Basic:
    """The tree of a number given by a user."""
    try:
        return number_node(exact_number(value, "number"))
    except InvalidArgument:
        raise InvalidArgument(
            f"expected a number or a text, got {type(value).__name__}; give 2, 0.5 or '2*gamma'"
        ) from None


class _Importer:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def convert(self, e: Any) -> sp.Basic:
        match e:
            case sp.Number():
                return number_node(e)
            case sp.core.numbers.Exp1():
                return Call("exp", sp.S.One)
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
            case sp.Function() | sp.Abs() if (record := record_of(e)) is not None:
                return Call(record.name, self.convert(e.args[0]))
        raise self.refuse(e, f"a {type(e).__name__}")

    def refuse(self, e: Any, got: str) -> LanguageError:
        return LanguageError(
            str(e)[:80], 0, expected="sympy matrix expressions in H, H0, A, L, W and coefficients", got=got,
            remedy="use MatrixSymbol, HadamardProduct, HadamardPower and applyfunc",
        )  # fmt: skip

    def letter(self, name: str) -> Name:
        kind = self.vocabulary.kinds.get(name)
        if kind is None:
            raise self.refuse(name, f"unknown name {name!r}: declare it in kinds=")
        return Name(name, kind)

    def spread(self, tree: sp.Basic, e: Any) -> sp.Basic:
        """A tree of the kind that the shape of `e` asks for, where sympy has left a smaller one, as in H - H."""
        rows, columns = e.shape
        kind = kind_of(tree)
        if rows == 1 or kind not in (Kind.SCALAR, Kind.CHANNEL, Kind.NODE) or (columns == 1 and kind is Kind.NODE):
            return tree
        ones = Power(Name("M", Kind.NODE) if columns == 1 else Name("H", Kind.FIELD), sp.S.Zero)
        return ones if tree == 1 else Times(tree, ones)

    def product(self, e: Any) -> sp.Basic:
        sign = -1 if sp.S.NegativeOne in e.args else 1
        factors = [f for f in e.args if f != -1]
        divisors = [f for f in factors if isinstance(f, sp.Pow) and f.exp.is_negative and f.is_commutative]
        scalars: list[sp.Basic] = []
        chain: list[tuple[Any, sp.Basic]] = []
        for f in factors:
            if f in divisors:
                continue
            tree = self.convert(f)
            if kind_of(tree) is Kind.SCALAR and not isinstance(f, sp.MatrixExpr):
                scalars.append(tree)
            else:
                chain.append((f, tree))
        if sum(kind_of(x) is Kind.FIELD for _, x in chain) > 1:
            raise self.refuse(e, "a plain product of two fields, whose order is ambiguous")
        if chain:
            scalars.append(self.applied(chain))
        result = reduce(Times, scalars or [sp.S.One])
        for divisor in divisors:
            result = Over(result, self.convert(1 / divisor))
        return Negative(result) if sign < 0 else result

    def applied(self, factors: list[tuple[Any, sp.Basic]]) -> sp.Basic:
        """Operators from the left, then the field, then mixing matrices; vectors of ones only broadcast."""
        trees = [tree for _, tree in factors]
        kinds = [kind_of(tree) for tree in trees]
        at = next((i for i, kind in enumerate(kinds) if kind not in (Kind.OPERATOR, Kind.MATRIX)), None)
        if at is None:
            first = next((i for i, kind in enumerate(kinds) if kind is Kind.MATRIX), len(kinds))
            if 0 < first < len(kinds):
                raise self.refuse(factors[first][0], "an operator times a mixing matrix without a field")
            return reduce(Apply, trees)
        ops, result, rest = trees[:at], trees[at], list(zip(trees[at + 1 :], kinds[at + 1 :], strict=True))
        if ops and isinstance(factors[at][0], sp.MatrixExpr):
            result = self.spread(result, factors[at][0])
        result = reduce(lambda x, op: Apply(op, x), reversed(ops), result)
        for tree, kind in rest:
            if kind is Kind.MATRIX:
                wide = (
                    result if kind_of(result) is Kind.FIELD else Times(result, Power(Name("H", Kind.FIELD), sp.S.Zero))
                )
                result = Apply(wide, tree)
            elif kind is Kind.OPERATOR:
                result = Apply(result, tree)
            elif tree != 1:
                result = tree if result == 1 else Times(result, tree)
        return result

    def power(self, e: Any) -> sp.Basic:
        base, exponent = e.args
        if not (isinstance(exponent, sp.Rational) and exponent.q in (1, 2)):
            raise self.refuse(e, f"the exponent {exponent}")
        if exponent < 0 and not isinstance(e, sp.MatPow):
            inverse = HadamardPower(base, -exponent) if isinstance(e, HadamardPower) else base**-exponent
            return Over(sp.S.One, self.convert(inverse))
        tree = self.convert(base)
        if exponent.q == 2:
            tree, exponent = Call("sqrt", tree), sp.Integer(exponent.p)
        return tree if exponent == 1 else repeated(tree, int(exponent))

    def elementwise(self, e: Any) -> sp.Basic:
        inner = self.convert(e.expr)
        return self.composed(e, e.function.expr, e.function.variables[0], inner)

    def composed(self, e: Any, body: Any, x: sp.Symbol, inner: sp.Basic) -> sp.Basic:
        """sympy merges nested elementwise functions into one: unfold f(g(x))."""
        if body == x:
            return inner
        if isinstance(body, sp.Pow) and not isinstance(body, sp.exp) and body.exp.is_Rational:
            if body.exp == sp.Rational(1, 2):
                return Call("sqrt", self.composed(e, body.base, x, inner))
            if body.exp.is_Integer and body.exp > 0:
                return repeated(self.composed(e, body.base, x, inner), int(body.exp))
        record = record_of(body)
        if record is not None and len(body.args) == 1:
            return Call(record.name, self.composed(e, body.args[0], x, inner))
        if isinstance(body, sp.Mul):
            return reduce(Times, [self.composed(e, a, x, inner) for a in body.args])
        if isinstance(body, sp.Number):
            return number_node(body)
        raise self.refuse(e, f"the function {e.function}")


def repeated(base: sp.Basic, exponent: int) -> sp.Basic:
    """A power in steps the language can write: exponents up to its limit, products for mixing matrices."""
    matrix = kind_of(base) is Kind.MATRIX
    step = 1 if matrix else MAX_EXPONENT
    whole, rest = divmod(exponent, step)
    parts = [base if matrix else Power(base, sp.Integer(step))] * whole
    parts += [Power(base, sp.Integer(rest))] if rest or not parts else []
    return reduce(Apply if kind_of(base) in (Kind.OPERATOR, Kind.MATRIX) else Times, parts)


def _plus(left: sp.Basic, right: sp.Basic) -> sp.Basic:
    if isinstance(right, Negative):
        return Minus(left, right.inner)
    return Plus(left, right)
