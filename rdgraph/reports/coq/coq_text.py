"""Expressions as Coq text: trees as matrices over a ring or as lists of rationals, sympy expressions as reals."""

from __future__ import annotations

import textwrap

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.reader import Vocabulary, read_expression
from rdgraph.language.tree import Apply, Call, Fold, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of

# ---------------------------------------------------------------------- trees


class MatrixText(Fold[str]):
    """A tree as a term over mathcomp's matrices: fields are 'M[R]_(n, d), operators 'M[R]_n, coefficients scalars in R.

    >>> MatrixText()(read_expression("-alpha*L@H + H*H", Vocabulary.standard()))
    '(((- alpha *: laplacian A) *m H) + hadamard H H)'
    """

    def number(self, node: sp.Rational) -> str:
        return f"{node.p}%:R" if node.q == 1 else f"({node.p}%:R / {node.q}%:R)"

    def name(self, node: Name) -> str:
        return {"I": "1%:M", "L": "laplacian A"}.get(node.name, node.name) if node.kind is Kind.OPERATOR else node.name

    def negative(self, node: Negative) -> str:
        return f"- {self(node.inner)}"

    def _sum(self, node: Plus | Minus, sign: str) -> str:
        kind = kind_of(node)
        return f"({self._as(node.left, kind)} {sign} {self._as(node.right, kind)})"

    def _as(self, node: sp.Basic, kind: Kind) -> str:
        """A number added to a field is the same in all of its entries."""
        if kind_of(node) is Kind.SCALAR and kind is Kind.FIELD:
            return f"const_mx {self(node)}"
        return self(node)

    def plus(self, node: Plus) -> str:
        return self._sum(node, "+")

    def minus(self, node: Minus) -> str:
        return self._sum(node, "-")

    def times(self, node: Times) -> str:
        left, right = kind_of(node.left), kind_of(node.right)
        if left is right is Kind.SCALAR:
            return f"({self(node.left)} * {self(node.right)})"
        if left is Kind.SCALAR:
            return f"({self(node.left)} *: {self(node.right)})"
        if right is Kind.SCALAR:
            return f"({self(node.right)} *: {self(node.left)})"
        if left is Kind.NODE:
            return f"(diag_mx {self._argument(node.left)} *m {self(node.right)})"
        if left is Kind.CHANNEL:
            return f"({self(node.right)} *m diag_mx {self._argument(node.left)})"
        return f"hadamard {self._argument(node.left)} {self._argument(node.right)}"

    def _argument(self, node: sp.Basic) -> str:
        text = self(node)
        return text if isinstance(node, Name) or text.startswith("(") else f"({text})"

    def over(self, node: Over) -> str:
        return f"({self(node.left)} / {self(node.right)})"

    def apply(self, node: Apply) -> str:
        left = node.left
        if isinstance(left, Times) and kind_of(left.left) is Kind.CHANNEL:  # it scales columns, so it comes last
            return self(Times(left.left, Apply(left.right, node.right)))
        return f"({self(left)} *m {self(node.right)})"

    def power(self, node: Power) -> str:
        if kind_of(node.base) is Kind.SCALAR:
            return f"({self(node.base)} ^+ {node.exponent})"
        product = self(Apply(node.base, node.base)) if kind_of(node.base) is Kind.OPERATOR else ""
        if node.exponent == 2:
            return product or self(Times(node.base, node.base))
        join = Apply if product else Times
        return self(join(Power(node.base, node.exponent - 1), node.base))


class RationalText(Fold[str]):
    """A tree as a term over lists of rationals, every product and sum in prefix form.

    >>> RationalText()(read_expression("H - A@H", Vocabulary.standard()))
    '(sub H (mul A H))'
    """

    def number(self, node: sp.Rational) -> str:
        return rational(node)

    def name(self, node: Name) -> str:
        if node.kind is Kind.OPERATOR:
            return {"I": "(identity A)", "L": "(sub (identity A) A)"}.get(node.name, node.name)
        return node.name

    def negative(self, node: Negative) -> str:
        return f"(- {self(node.inner)})" if kind_of(node.inner) is Kind.SCALAR else f"(opp {self(node.inner)})"

    def _sum(self, node: Plus | Minus, sign: str, word: str) -> str:
        if kind_of(node) is Kind.SCALAR:
            return f"({self(node.left)} {sign} {self(node.right)})"
        if kind_of(node.left) is Kind.SCALAR:  # a number added to every entry
            return f"(shift {self(node.left)} {self(node.right if sign == '+' else Negative(node.right))})"
        return f"({word} {self(node.left)} {self(node.right)})"

    def plus(self, node: Plus) -> str:
        return self._sum(node, "+", "add")

    def minus(self, node: Minus) -> str:
        return self._sum(node, "-", "sub")

    def times(self, node: Times) -> str:
        left, right = kind_of(node.left), kind_of(node.right)
        if left is right is Kind.SCALAR:
            return f"({self(node.left)} * {self(node.right)})"
        if right is Kind.SCALAR:
            return f"(scale {self(node.right)} {self(node.left)})"
        words = {Kind.SCALAR: "scale", Kind.NODE: "by_node", Kind.FIELD: "hadamard"}
        return f"({words[left]} {self(node.left)} {self(node.right)})"

    def apply(self, node: Apply) -> str:
        return f"(mul {self(node.left)} {self(node.right)})"

    def power(self, node: Power) -> str:
        join = Apply if kind_of(node.base) is Kind.OPERATOR else Times
        rest = node.base if node.exponent == 2 else Power(node.base, node.exponent - 1)
        return self(join(rest, node.base))

    def call(self, node: Call) -> str:
        return f"({node.function} {self(node.argument)})"


def matrix_text(text: str | sp.Basic, **letters: Kind) -> str:
    """An expression of the language as a Coq matrix."""
    return MatrixText()(_tree(text, letters))


def rational_text(text: str | sp.Basic, **letters: Kind) -> str:
    """An expression of the language as a Coq term over lists of rationals."""
    return RationalText()(_tree(text, letters))


def _tree(text: str | sp.Basic, letters: dict[str, Kind]) -> sp.Basic:
    return read_expression(text, Vocabulary.standard().extended(letters)) if isinstance(text, str) else text


def rational_matrix(rows: list[list[object]]) -> str:
    """Rows of rationals as a Coq list of lists.

    >>> rational_matrix([[1, sp.Rational(-1, 2)]])
    '[[1; (-1 # 2)]]'
    """
    return "[" + "; ".join("[" + "; ".join(rational(sp.Rational(x)) for x in row) + "]" for row in rows) + "]"


def rational(value: sp.Rational) -> str:
    """A rational number as a Coq term of type Q."""
    if value.q == 1:
        return str(value.p) if value >= 0 else f"({value.p})"
    return f"({value.p} # {value.q})"


# ---------------------------------------------------------------------- real expressions
_FUNCTIONS = {sp.exp: "exp", sp.log: "ln", sp.Abs: "Rabs", sp.Max: "Rmax", sp.Min: "Rmin"}


def real_text(expression: object) -> str:
    """A sympy expression as a term over Coq's reals.

    >>> x = sp.Symbol("x")
    >>> real_text(1 - sp.sqrt(x) / 2)
    '(1 + ((- (sqrt x)) / 2))'
    """
    return _real(sp.sympify(expression))


def _real(e: sp.Expr) -> str:
    if isinstance(e, sp.Symbol):
        return e.name
    if isinstance(e, sp.Integer):
        return str(e) if e >= 0 else f"(- {-e})"
    if isinstance(e, sp.Rational):
        return f"({e.p} / {e.q})" if e >= 0 else f"(- ({-e.p} / {e.q}))"
    if isinstance(e, sp.Add):
        return "(" + " + ".join(_real(x) for x in e.as_ordered_terms()) + ")"
    if isinstance(e, sp.Mul):
        return _product(e)
    if isinstance(e, sp.Pow):
        return _power(e)
    word = _FUNCTIONS.get(type(e))
    if word is None:
        raise NotApplicable(f"{e} has no counterpart among Coq's reals here; write it with + - * / exp ln sqrt")
    first, *rest = (_factor(x) for x in e.args)
    if not rest:
        return f"{word} {first}"
    for other in rest:
        first = f"({word} {first} {other})"
    return first


def _product(e: sp.Expr) -> str:
    above, below = sp.fraction(e, exact=True)
    if below != 1:
        return f"({_factor(above)} / {_factor(below)})" if not below.is_Rational else f"({_factor(above)} / {below})"
    sign, rest = ("- ", -e) if e.could_extract_minus_sign() else ("", e)
    return sign + " * ".join(_factor(x) for x in sp.Mul.make_args(rest))


def _power(e: sp.Pow) -> str:
    base, exponent = e.as_base_exp()
    if exponent == sp.Rational(1, 2):
        return f"sqrt {_factor(base)}"
    if exponent.is_Integer:
        return f"{_factor(base)} ^ {exponent}" if exponent > 0 else f"(/ {_factor(base**-exponent)})"
    raise NotApplicable(f"{e} has no counterpart among Coq's reals here; use whole powers and square roots")


def _factor(e: sp.Expr) -> str:
    text = _real(e)
    return text if e.is_Symbol or (e.is_Integer and e >= 0) or _is_enclosed(text) else f"({text})"


def _is_enclosed(text: str) -> bool:
    """Whether the first bracket of a text closes at its end."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[0] == "(" and place == len(text) - 1
    return False


# ---------------------------------------------------------------------- signs of polynomials
# Tactics for the sign of a polynomial of one variable: Bernstein's form on an interval, Taylor's on a half-line.

#: The most times that an interval is halved.
_DEEPEST = 12


def nonnegative_between(polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational, hi: sp.Rational, depth: int = 0) -> str:
    """Tactics for `0 <= polynomial` where `lo <= x <= hi`: a sum of products of powers of x - lo and hi - x.

    An interval on which a coefficient is negative is halved.
    """
    terms = _bernstein(polynomial, x, lo, hi)
    if all(c >= 0 for c in terms):
        return _sum_of_products(polynomial, x, lo, hi, terms)
    if depth == _DEEPEST:
        raise NotApplicable(f"{polynomial} was not shown to be >= 0 on [{lo}, {hi}]; a smaller interval may do")
    middle = (lo + hi) / 2
    halves = (nonnegative_between(polynomial, x, *ends, depth + 1) for ends in ((lo, middle), (middle, hi)))
    cases = "\n".join("{ " + textwrap.indent(half, "  ").lstrip() + " }" for half in halves)
    return f"destruct (Rle_lt_dec {x} {real_text(middle)}).\n{cases}"


def _bernstein(polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational, hi: sp.Rational) -> list[sp.Rational]:
    """The coefficients c_k of sum c_k (x - lo)^k (hi - x)^(d - k)."""
    s = sp.Symbol("s")
    # x = (lo + hi s)/(1 + s), s = (x - lo)/(hi - x) >= 0.
    degree = int(sp.degree(polynomial, x))
    powers = sp.Poly(polynomial, x).all_coeffs()[::-1]
    total = sum((c * (lo + hi * s) ** k * (1 + s) ** (degree - k) for k, c in enumerate(powers)), sp.S.Zero)
    coefficients = sp.Poly(sp.expand(total), s).all_coeffs()[::-1]
    padded = coefficients + [sp.S.Zero] * (degree + 1 - len(coefficients))
    return [c / (hi - lo) ** degree for c in padded]


def _sum_of_products(
    polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational, hi: sp.Rational, terms: list[sp.Rational]
) -> str:
    degree, below, above = len(terms) - 1, real_text(x - lo), real_text(hi - x)
    products = [f"{real_text(c)} * ({below} ^ {k} * {above} ^ {degree - k})" for k, c in enumerate(terms) if c != 0]
    return _replaced(polynomial, products)


def nonnegative_above(polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational) -> str:
    """Tactics for `0 <= polynomial` where `lo <= x`: all coefficients around lo are >= 0."""
    powers = sp.Poly(sp.expand(polynomial.subs(x, x + lo)), x).all_coeffs()[::-1]
    if any(c < 0 for c in powers):
        raise NotApplicable(f"{polynomial} has a negative coefficient around {lo}")
    products = [f"{real_text(c)} * ({real_text(x - lo)} ^ {k} * 1 ^ 0)" for k, c in enumerate(powers) if c != 0]
    return _replaced(polynomial, products)


def _replaced(polynomial: sp.Expr, products: list[str]) -> str:
    return (
        f"replace {real_text(polynomial)} with\n  ({' + '.join(products)}) by field.\n"
        "repeat apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [lra | apply Rmult_le_pos; apply pow_le; lra])."
    )
