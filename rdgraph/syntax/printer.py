"""Tree to text and to LaTeX. The text reads back to the same tree, bracket for bracket."""

from __future__ import annotations

import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.tree import (
    MAX_DECIMAL_EXPONENT,
    MAX_DIGITS,
    Apply,
    Call,
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

_SIGN = {Plus: " + ", Minus: " - ", Times: "*", Over: "/", Apply: "@"}
_LEVEL = {Plus: 1, Minus: 1, Times: 2, Over: 2, Apply: 2, Negative: 3, Power: 4}
_ATOM = 5


def _level(node: sp.Basic) -> int:
    return _LEVEL.get(type(node), _ATOM)  # type: ignore[arg-type]


def to_text(node: sp.Basic) -> str:
    """The text of a tree, with the fewest brackets that keep its structure."""
    match node:
        case Plus() | Minus() | Times() | Over() | Apply():
            level = _level(node)
            left = _bracketed(node.left, level)
            right = _bracketed(node.right, level + 1)
            return left + _SIGN[type(node)] + right
        case Negative():
            return "-" + _bracketed(node.inner, _LEVEL[Negative])
        case Power():
            return f"{_bracketed(node.base, _ATOM)}**{node.exponent}"
        case Call():
            return f"{node.function}({to_text(node.argument)})"
        case Name():
            return node.name
        case sp.Rational():
            return _decimal(node)
    raise InvalidArgument(f"cannot print {type(node).__name__}")


def _bracketed(node: sp.Basic, level: int) -> str:
    text = to_text(node)
    return text if _level(node) >= level else f"({text})"


def _decimal(number: sp.Rational) -> str:
    """A terminating decimal, digit for digit; with an exponent where the plain form is too long to be read back."""
    step = 1 if number > 1 else -1
    for exponent in range(0, step * (MAX_DECIMAL_EXPONENT + 1), step):
        text = _plain(number * sp.Integer(10) ** -exponent)
        if len(text.replace(".", "").removeprefix("0")) <= MAX_DIGITS:
            return f"{text}e{exponent}" if exponent else text
    return _plain(number)


def _plain(number: sp.Rational) -> str:
    if number.q == 1:
        return str(number.p)
    places = 0
    scaled = number
    while scaled.q != 1:
        scaled, places = scaled * 10, places + 1
    digits = str(scaled.p).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def to_latex(node: sp.Basic) -> str:
    """LaTeX of a tree: operators and fields upright bold, Hadamard products as a circled dot."""
    match node:
        case Name():
            return _latex_name(node)
        case sp.Rational():
            return sp.latex(node)
        case Plus() | Minus():
            right = _latex(node.right, 4 if isinstance(node.right, Negative) else 2)
            return _latex(node.left, 1) + _SIGN[type(node)] + right
        case Negative():
            return "-" + _latex(node.inner, 4 if isinstance(node.inner, Negative) else 2)
        case Times():
            both = all(kind_of(side) in (Kind.FIELD, Kind.NODE, Kind.CHANNEL) for side in node.args)
            digits = isinstance(node.right, sp.Rational | Power) and _starts_with_digit(node.right)
            sign = r" \odot " if both else r" \cdot " if digits else " "
            return _latex(node.left, 2) + sign + _latex(node.right, 4)
        case Apply():
            return _latex(node.left, 2) + " " + _latex(node.right, 4)
        case Over():
            return rf"\frac{{{to_latex(node.left)}}}{{{to_latex(node.right)}}}"
        case Power():
            hadamard = kind_of(node.base) in (Kind.FIELD, Kind.NODE, Kind.CHANNEL)
            mark = r"\circ " if hadamard else ""
            base = _latex(node.base, _ATOM)
            fraction = isinstance(node.base, Over) or (isinstance(node.base, sp.Rational) and node.base.q != 1)
            return (rf"\left({base}\right)" if fraction else base) + f"^{{{mark}{node.exponent}}}"
        case Call():
            return _latex_call(node)
    raise InvalidArgument(f"cannot print {type(node).__name__}")


def _latex_call(node: Call) -> str:
    """A function of the language in its own notation, one declared with the equation by its name."""
    shape = FUNCTIONS[node.function].latex if node.function in FUNCTIONS else upright(node.function)
    return shape.format(to_latex(node.argument))


def upright(name: str) -> str:
    r"""LaTeX of a function that has no notation of its own, with {} for the argument.

    >>> upright("soft_step").format("x")
    '\\operatorname{soft\\_step}\\left(x\\right)'
    """
    escaped = name.replace("_", r"\_")
    return rf"\operatorname{{{{{escaped}}}}}\left({{}}\right)"


def _latex(node: sp.Basic, level: int) -> str:
    text = to_latex(node)
    if isinstance(node, Over | Call) or _level(node) >= level:
        return text
    return rf"\left({text}\right)"


def _starts_with_digit(node: sp.Basic) -> bool:
    return to_latex(node)[:1].isdigit()


def _latex_name(node: Name) -> str:
    if node.name == "H0":
        return r"\mathbf{H}(0)"
    if node.kind in (Kind.FIELD, Kind.OPERATOR, Kind.MATRIX):
        return sp.latex(sp.MatrixSymbol(node.name, 1, 1), mat_symbol_style="bold")
    return sp.latex(sp.Symbol(node.name))
