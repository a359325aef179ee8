"""Expressions printed for Coq: read back as Python they have the values of the originals."""

from __future__ import annotations

import re

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from rdgraph.errors import NotApplicable
from rdgraph.reports.coq.coq_text import matrix_text, nonnegative_above, nonnegative_between, rational_text, real_text
from rdgraph.reports.coq.theorem_kinds import ring_text

x, y = sp.symbols("x y")
numbers = st.fractions(min_value=-5, max_value=5, max_denominator=7).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)


def read(text: str) -> sp.Expr:
    """A term over the reals or a ring as sympy reads it."""
    plain = re.sub(r"(\d+)%:R", r"\1", text).replace("^+", "**").replace("^", "**")
    plain = re.sub(r"\b(sqrt|exp|ln|Rabs) (\(|\w)", r"\1@\2", plain)
    names = {"ln": "log", "Rabs": "Abs"}
    while match := re.search(r"(sqrt|exp|ln|Rabs)@", plain):
        start = match.end()
        end = start + 1
        if plain[start] == "(":
            depth = 1
            while depth:
                depth += {"(": 1, ")": -1}.get(plain[end], 0)
                end += 1
        else:
            end = start + len(re.match(r"\w+", plain[start:]).group())  # type: ignore[union-attr]
        word = names.get(match.group(1), match.group(1))
        plain = f"{plain[: match.start()]}{word}({plain[start:end]}){plain[end:]}"
    return sp.sympify(plain, rational=True)


@given(numbers, numbers, numbers, st.integers(0, 3))
def test_real_terms_read_back(a: sp.Rational, b: sp.Rational, c: sp.Rational, power: int) -> None:
    for term in (a * x**power + b * y - c, (a + x) / (b**2 + 1 + x**2), -((a * x + b) ** 2) * y, a - x * (b - y) / 3):
        assert sp.cancel(read(real_text(term)) - term) == 0


def test_functions_of_reals() -> None:
    for term in (sp.exp(-x * y) / 2, sp.sqrt(x**2 + 1) - 1, sp.log(1 - 1 / x), sp.Abs(x - y)):
        assert sp.simplify(read(real_text(term)) - term) == 0
    assert real_text(sp.Max(x, y)) == "(Rmax x y)"
    with pytest.raises(NotApplicable):
        real_text(sp.sin(x))


@given(numbers, numbers)
def test_ring_terms_read_back(a: sp.Rational, b: sp.Rational) -> None:
    term = a * x**2 - b * x * y + y - 1
    assert sp.expand(read(ring_text(term)) - term) == 0


def test_operators() -> None:
    assert matrix_text("A**2@H") == "((A *m A) *m H)"
    assert matrix_text("H*H") == "hadamard H H"
    assert rational_text("L@H") == "(mul (sub (identity A) A) H)"


@given(st.lists(numbers, min_size=1, max_size=3), numbers)
def test_certificates_of_signs_are_identities(roots: list[sp.Rational], shift: sp.Rational) -> None:
    """The sum of products in the tactic is the polynomial, and its coefficients are >= 0."""
    polynomial = sp.expand(sp.Mul(*((x - r) ** 2 for r in roots)) + sp.Rational(1, 3))
    text = nonnegative_between(polynomial, x, sp.S.Zero, sp.S(2))
    for replaced in re.findall(r"with\n\s*(.*) by field", text):
        assert sp.expand(read(replaced) - polynomial) == 0
        assert not re.search(r"\(- [^)]*\) \* \(", replaced)
    squares = sp.expand((x + 1) ** 3 * (1 + shift**2))
    (above,) = re.findall(r"with\n\s*(.*) by field", nonnegative_above(squares, x, sp.S.Zero))
    assert sp.expand(read(above) - squares) == 0


def test_a_negative_polynomial_has_no_certificate() -> None:
    with pytest.raises(NotApplicable):
        nonnegative_between(x - 1, x, sp.S.Zero, sp.S(2))
    with pytest.raises(NotApplicable):
        nonnegative_above(x - 1, x, sp.S.Zero)
