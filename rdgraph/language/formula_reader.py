"""`read_formula`: the text of an answer as a sympy expression in plain symbols, through a whitelist.

`sympy.sympify` evaluates text as Python, and takes `beta`, `gamma` or `zeta` for functions; here every name is a symbol
and nothing is evaluated. The grammar is what sympy prints of the answers: arithmetic, comparisons joined by & | ~,
and the functions of the language and of `FURTHER`. The matrix product `W@V` is read as one symbol.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import sympy as sp

from rdgraph.errors import LanguageError, closest
from rdgraph.vocabulary.function_records import Span
from rdgraph.vocabulary.functions import FUNCTIONS

# ---------------------------------------------------------------------- formula functions
# Classes of sympy for registered functions whose formula the language cannot write, such as x*(1 + erf(x))/2.
#
# They stay closed: f(x) and f'(x) are known by their records only, and the formula is inserted only for values and
# equalities.


class FormulaFunction(sp.Function):
    """f(x) of a formula in one variable; `formula_class` makes the subclasses."""

    is_real = True
    formula: ClassVar[sp.Lambda]
    slope: ClassVar[Any] = None

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        return cls.formula(sp.S.Zero) if x.is_zero else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        if self.slope is not None:
            return self.slope(self.args[0])
        letter = self.formula.variables[0]
        return sp.diff(self.formula.expr, letter).xreplace({letter: self.args[0]})

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return self.formula(self.args[0])._eval_evalf(precision)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _applied, (type(self).__name__, self.args[0])


def formula_class(name: str, formula: sp.Lambda, values: Span | None, slope: Any = None) -> Any:
    """The class of f(x) = formula(x), whose values lie in a span and whose derivative is the class `slope`."""
    known: dict[str, Any] = {"formula": formula, "slope": slope}
    if values is not None and values.lower.is_nonnegative:
        known["is_nonnegative"] = True
    if values is not None and values.upper.is_nonpositive:
        known["is_nonpositive"] = True
    metaclass: Any = type(FormulaFunction)
    return metaclass(name, (FormulaFunction,), known)


def _applied(name: str, argument: sp.Expr) -> sp.Expr:
    """f(x) by the name of its class; functions travel between processes that have registered them."""
    kinds = {kind.__name__: kind for kind in FUNCTIONS.classes()}
    return kinds[name](argument) if name in kinds else FUNCTIONS[name].sympy(argument)


# ---------------------------------------------------------------------- formula reader
MAX_LENGTH = 100_000
MAX_DEPTH = 200
#: Powers of numbers with more bits are not evaluated.
MAX_BITS = 20_000

#: The functions of answers besides those of the language.
FURTHER: dict[str, Any] = {
    "Abs": sp.Abs, "CRootOf": sp.CRootOf, "Heaviside": sp.Heaviside, "LambertW": sp.LambertW, "Max": sp.Max,
    "Min": sp.Min, "acos": sp.acos, "asin": sp.asin, "asinh": sp.asinh, "atan": sp.atan, "atanh": sp.atanh,
    "ceiling": sp.ceiling, "cosh": sp.cosh, "erf": sp.erf, "floor": sp.floor, "log": sp.log, "sign": sp.sign,
    "sinh": sp.sinh, "tan": sp.tan,
    "And": sp.And, "Eq": sp.Eq, "Ge": sp.Ge, "Gt": sp.Gt, "Le": sp.Le, "Lt": sp.Lt, "Ne": sp.Ne, "Not": sp.Not,
    "Or": sp.Or, "ITE": sp.ITE,
}  # fmt: skip
CONSTANTS: dict[str, sp.Basic] = {"oo": sp.oo, "pi": sp.pi, "E": sp.E}

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_LOGIC: dict[type, Any] = {ast.BitAnd: sp.And, ast.BitOr: sp.Or}
_COMPARISONS: dict[type, Any] = {
    ast.Lt: sp.Lt, ast.LtE: sp.Le, ast.Gt: sp.Gt, ast.GtE: sp.Ge, ast.Eq: sp.Eq, ast.NotEq: sp.Ne,
}  # fmt: skip


def read_expression(text: str) -> sp.Basic:
    """The formula or condition of a text that `analyse`, `preflight` or `identify` returned, in plain symbols.

    Args:
        text: as `analyse`, `preflight` and `identify` print it.

    Returns:
        The formula, or the condition, as sympy expression.

    Raises:
        LanguageError: the text is not such a formula; the error gives the column.

    >>> import sympy as sp, rdgraph as rd
    >>> rd.theory.read_expression("2*alpha + 2*beta").subs(sp.Symbol("beta"), 1)
    2*alpha + 2
    >>> rd.theory.read_expression("Piecewise((beta, alpha >= beta), (-2*alpha + 3*beta, True))")
    Piecewise((beta, alpha >= beta), (-2*alpha + 3*beta, True))
    """
    if not isinstance(text, str):
        raise LanguageError(
            repr(text)[:40], 0, expected="the text of a formula", got=type(text).__name__, remedy="pass a string"
        )
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, node: ast.AST | None, expected: str, got: str, remedy: str) -> LanguageError:
        at = getattr(node, "col_offset", 0)
        return LanguageError(self.text, at, expected=expected, got=got, remedy=remedy)

    def read(self) -> sp.Basic:
        if len(self.text) > MAX_LENGTH or not self.text.isascii() or "\n" in self.text:
            raise self.error(
                None, f"one line of at most {MAX_LENGTH} ASCII characters", f"{len(self.text)} characters", "shorten it"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as problem:
            raise self.error(None, "a formula", str(problem)[:60], "check brackets and operators") from None
        self.check_depth(tree)
        return self.convert(tree)

    def check_depth(self, tree: ast.expr) -> None:
        level: list[ast.AST] = [tree]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        raise self.error(level[0], f"a formula at most {MAX_DEPTH} deep", "a deeper one", "shorten it")

    def convert(self, node: ast.expr) -> sp.Basic:
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name():
                return CONSTANTS.get(node.id) or sp.Symbol(node.id)
            case ast.UnaryOp(op=ast.USub()):
                return -self.number(node.operand)
            case ast.UnaryOp(op=ast.Invert()):
                return sp.Not(self.condition(node.operand))
            case ast.BinOp(op=ast.Pow()):
                return self.power(node)
            case ast.BinOp(op=ast.MatMult()):
                return sp.Symbol("@".join(self.matrices(node)))
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](self.number(node.left), self.number(node.right))
            case ast.BinOp(op=op) if type(op) in _LOGIC:
                return _LOGIC[type(op)](self.condition(node.left), self.condition(node.right))
            case ast.Compare(ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return _COMPARISONS[type(op)](self.number(node.left), self.number(right))
            case ast.Call():
                return self.call(node)
        raise self.error(
            node, "numbers, names, + - * / **, comparisons and functions", type(node).__name__, "write plain maths"
        )

    def number(self, node: ast.expr) -> sp.Expr:
        value = self.convert(node)
        if not isinstance(value, sp.Expr):
            raise self.error(node, "a formula", f"the condition {value}", "put conditions into Piecewise")
        return value

    def condition(self, node: ast.expr) -> sp.Basic:
        value = self.convert(node)
        if isinstance(value, sp.Expr):
            raise self.error(node, "a condition, as in alpha > 0", f"the formula {value}", "compare it with another")
        return value

    def constant(self, node: ast.Constant) -> sp.Basic:
        match node.value:
            case bool():
                return sp.true if node.value else sp.false
            case int():
                return sp.Integer(node.value)
            case float():
                literal = self.text.strip()[node.col_offset : node.end_col_offset]
                return sp.Float(literal)
        raise self.error(node, "a number", repr(node.value)[:20], "write it as 3 or 0.25")

    def power(self, node: ast.BinOp) -> sp.Expr:
        base, exponent = self.number(node.left), self.number(node.right)
        if base.is_Rational and exponent.is_Rational:
            bits = int(max(abs(base.p), base.q)).bit_length() * abs(exponent)
            if bits > MAX_BITS:
                raise self.error(node, f"a power of at most {MAX_BITS} bits", "a larger one", "name the constant")
        return base**exponent

    def matrices(self, node: ast.expr) -> list[str]:
        match node:
            case ast.Name():
                return [node.id]
            case ast.BinOp(op=ast.MatMult()):
                return [*self.matrices(node.left), *self.matrices(node.right)]
        raise self.error(node, "names of matrices around @", type(node).__name__, "write W@V")

    def call(self, node: ast.Call) -> sp.Basic:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.error(node, "plain arguments", "keywords or stars", "write f(x)")
        if name == "Piecewise":
            return sp.Piecewise(*(self.branch(a) for a in node.args))
        function = FUNCTIONS[name].sympy if name in FUNCTIONS else FURTHER.get(name)
        if function is None:
            known = [*FURTHER, *FUNCTIONS, "Piecewise"]
            near = closest(name, known)
            remedy = f"did you mean {near}?" if near else f"known: {', '.join(known)}"
            raise self.error(node, "a known function", repr(name), remedy)
        arguments = [self.convert(a) for a in node.args]
        try:
            return function(*arguments)
        except (TypeError, ValueError, NotImplementedError) as problem:
            raise self.error(node, f"arguments that {name} takes", str(problem)[:80], "check their number") from None

    def branch(self, node: ast.expr) -> tuple[sp.Expr, sp.Basic]:
        if not isinstance(node, ast.Tuple) or len(node.elts) != 2:
            raise self.error(node, "a pair (value, condition)", type(node).__name__, "write Piecewise((x, x > 0), ...)")
        return self.number(node.elts[0]), self.condition(node.elts[1])
