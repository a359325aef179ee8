"""Texts that are refused: the place, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from rdgraph.errors import LanguageError
from rdgraph.language.reader import RESERVED
from rdgraph.language.tree import (
    Kind,
)
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.functions import FUNCTIONS
from tests.rdgraph.language.equation_texts import refusal

STATE = sp.Symbol("H")


REFUSALS = [
    # text, column, expected, got, remedy
    ("A*H", 2, "elementwise factors", "operator * field", "use A@H"),
    ("beta*H + A * H", 12, "elementwise factors", "operator * field", "use A@H"),
    ("dH/dt = A*H where beta<0", 10, "elementwise factors", "operator * field", "use A@H"),
    ("H*A", 2, "elementwise factors", "field * operator", "A@H"),
    ("H@A", 2, "operator @ field", "field @ operator", "write A@H, not H@A"),
    ("H@H", 2, "operator @ field", "field @ field", "use *"),
    ("A@beta", 2, "operator @ field", "operator @ scalar", "beta*(A@H)"),
    ("A@W@H", 2, "operator @ field", "operator @ matrix", "A@H@W"),
    ("W@H", 2, "operator @ field", "matrix @ field", "write H@W"),
    ("W*H", 2, "elementwise factors", "matrix * field", "H@W"),
    ("A*M@H", 2, "elementwise factors", "operator * node", "beta*A@H"),
    ("A + H", 3, "two terms of one kind", "operator and field", "A@H"),
    ("(A + 1)@H", 4, "two terms of one kind", "operator and scalar", "I - A"),
    ("H + W", 3, "two terms of one kind", "field and matrix", "H@W"),
    ("H/A", 2, "a divisor", "field / operator", "divide by a scalar"),
    ("H@W**2", 4, "a field, coefficient or operator", "matrix", "H@W@W"),
    ("A**-1@H", 2, "an operator power >= 0", "-1", "not inverted"),
    ("tanh(A)@H", 1, "inside tanh(...)", "operator", "tanh(A@H)"),
    ("beta", 1, "a field", "a scalar", "beta*H"),
    ("A", 1, "a field", "operator", "A@H"),
    ("W", 1, "a field", "matrix", "A@H"),
    ("3", 1, "a field", "a scalar", "beta*H"),
    # names
    ("alhpa*H", 1, "a known name", "'alhpa'", "did you mean alpha?"),
    ("-alpha*L@H + gama*H", 14, "a known name", "'gama'", "did you mean gamma?"),
    ("ALPHA*H", 1, "a known name", "'ALPHA'", "did you mean alpha?"),
    ("h1*H", 1, "a known name", "'h1'", "declare it: where h1 scalar"),
    ("beta*G@H", 6, "a known name", "'G'", "declare it: where G operator"),
    ("zzz*H", 1, "a known name", "'zzz'", "declare it: where zzz scalar"),
    ("lam*H", 1, "a letter of the language", "an eigenvalue of L", "another name"),
    ("H + T*H", 5, "a letter of the language", "the end time", "another name"),
    ("tau*H", 1, "a letter of the language", "the step size", "another name"),
    ("pi*H", 1, "a letter of the language", "the constant", "another name"),
    ("tanh*H", 1, "tanh(...)", "tanh without brackets", "write tanh(H)"),
    ("H + relu", 5, "relu(...)", "relu without brackets", "write relu(H)"),
    ("tahn(H)", 1, "a known function", "'tahn'", "did you mean tanh?"),
    ("print(H)", 1, "a known function", "'print'", "known functions: tanh"),
    ("A(H)", 1, "a known function", "'A'", "A@( ... )"),
    ("2(H)", 1, "a function name", "Constant", "write *"),
    ("tanh()", 1, "tanh(expression)", "0 arguments", "exactly one"),
    ("tanh(*H)", 1, "tanh(expression)", "1 arguments", "exactly one"),
    ("lambda*H", 1, "an expression", "keyword", "lambda_1"),
    # powers and numbers
    ("H**H", 4, "a whole number", "H", "sqrt(H)"),
    ("H**0.5", 4, "a whole number", "0.5", "sqrt(H)"),
    ("H**2**2", 4, "a whole number", "2**2", "H**2"),
    ("H**True", 4, "a whole number", "True", "H**2"),
    ("H**0x10", 4, "a whole number", "0x10", "H**2"),
    ("H**1_0", 4, "a whole number", "1_0", "H**2"),
    ("H**99999999", 2, "at most 32", "99999999", "smaller power"),
    ("H**-99999999", 2, "at most 32", "-99999999", "smaller power"),
    ("H**33", 2, "at most 32", "33", "smaller power"),
    ("1e999999999*H", 1, "at most 40 digits", "11 characters", "name the constant"),
    ("1e-31*H", 1, "exponent 30", "5 characters", "name the constant"),
    ("H*" + "7" * 41, 3, "at most 40 digits", "41 characters", "name the constant"),
    ("0x10*H", 1, "a decimal number", "0x10", "0.25 or 3"),
    ("1_000*H", 1, "a decimal number", "1_000", "0.25 or 3"),
    ("1j*H", 1, "a decimal number", "1j", "0.25 or 3"),
    ("None*H", 1, "a decimal number", "None", "0.25 or 3"),
    # grammar
    ("", 1, "an equation", "nothing", "right-hand side"),
    (" \t\n ", 1, "an equation", "nothing", "right-hand side"),
    ("dH/dt = ", 8, "an equation", "nothing", "right-hand side"),
    ("H +", 4, "an expression", "the end of the text", "near the mark"),
    ("H @ ", 4, "an expression", "the end of the text", "near the mark"),
    ("H */ H", 4, "an expression", "'/'", "near the mark"),
    ("H H", 3, "an operator", "H", "between factors"),
    ("  (H + H0", 3, "an expression", "never closed", "near the mark"),
    ("H + H0)", 7, "an expression", "unmatched", "near the mark"),
    ("H.T", 1, "names, numbers", "Attribute", "plain maths"),
    ("H if H else H0", 1, "names, numbers", "IfExp", "plain maths"),
    ("H and H0", 1, "names, numbers", "BoolOp", "plain maths"),
    ("not H", 1, "names, numbers", "UnaryOp", "plain maths"),
    ("H // 2", 1, "names, numbers", "BinOp", "plain maths"),
    ("()", 1, "names, numbers", "Tuple", "plain maths"),
    ("H^2", 2, "a character of the language", "'^'", "**"),
    ("H = 1", 1, "a field with ' before the =", "H", "a right-hand side alone"),
    ("dH/dt == H", 7, "a character of the language", "'='", "right-hand side"),
    ("H[0]", 2, "a character of the language", "'['", "round brackets"),
    ("H; H", 1, "a field with ' before the =", "H", "a right-hand side alone"),
    ("H + 'a'", 5, "' after the name of a field", "' alone", "write u'"),
    ("H # note", 3, "a character of the language", "'#'", "round brackets"),
    ("tanh(H, H)", 7, "a character of the language", "','", "round brackets"),
    ("H\\\n", 2, "a character of the language", "\\\\", "round brackets"),
    ("H\x00", 2, "a character of the language", "\\x00", "round brackets"),
    ("\x00", 1, "a character of the language", "\\x00", "round brackets"),
    # look-alikes
    ("\u0410@H", 1, "plain ASCII", "CYRILLIC CAPITAL LETTER A", "write A"),
    ("A@\u041d", 3, "plain ASCII", "CYRILLIC CAPITAL LETTER EN", "write H"),
    ("\u03b1*H", 1, "plain ASCII", "GREEK SMALL LETTER ALPHA", "write alpha"),
    ("H \u2212 H0", 3, "plain ASCII", "MINUS SIGN", "write -"),
    ("H\u00b2", 2, "plain ASCII", "SUPERSCRIPT TWO", "write **2"),
    ("2\u00b7H", 2, "plain ASCII", "MIDDLE DOT", "write *"),
    ("\U0001d407", 1, "plain ASCII", "MATHEMATICAL BOLD CAPITAL H", "write H"),
    ("\uff28", 1, "plain ASCII", "FULLWIDTH LATIN CAPITAL LETTER H", "write H"),
    ("\u0663*H", 1, "plain ASCII", "ARABIC-INDIC DIGIT THREE", "ASCII"),
    ("H\u200b", 2, "plain ASCII", "ZERO WIDTH SPACE", "use plain ASCII"),
    ("\ufeffH", 1, "plain ASCII", "ZERO WIDTH NO-BREAK SPACE", "use plain ASCII"),
    ("H\u202e", 2, "plain ASCII", "RIGHT-TO-LEFT OVERRIDE", "use plain ASCII"),
    ("\ud800*H", 1, "plain ASCII", "\\ud800", "use plain ASCII"),
    # size
    ("(" * 10_000 + "H" + ")" * 10_000, 61, "at most 60 nested brackets", "more", "superfluous"),
    ("-" * 10_000 + "H", 4001, "at most 4000 characters", "10001 characters", "shorten"),
    ("+".join(["H"] * 5_000), 4001, "at most 4000 characters", "9999 characters", "shorten"),
    ("1" * 10**5 + "*H", 4001, "at most 4000 characters", "100002 characters", "shorten"),
    ("x" * 10**6, 4001, "at most 4000 characters", "1000000 characters", "shorten"),
    ("1" * 3_000 + "*H", 1, "at most 40 digits", "3000 characters", "name the constant"),
    ("H**" + "9" * 3_000, 2, "at most 32", "9" * 20, "smaller power"),
    ("H**0x" + "f" * 3_900, 4, "a whole number", "0xff", "H**2"),
]


@pytest.mark.parametrize(
    ("text", "column", "expected", "got", "remedy"), REFUSALS, ids=[ascii(case[0])[:30] for case in REFUSALS]
)
def test_refusals_point_at_the_place(text: str, column: int, expected: str, got: str, remedy: str) -> None:
    error = refusal(text)
    assert isinstance(error, LanguageError)
    assert isinstance(error, ValueError)
    assert expected in error.expected
    assert got in error.got
    assert remedy in error.remedy
    assert error.column == column
    assert len(str(error)) < 1000
    assert {f"expected: {error.expected}", f"got:      {error.got}", f"remedy:   {error.remedy}"} <= {
        line for line in str(error).split("\n") if line
    }


@pytest.mark.parametrize(
    "text",
    [
        "-" * 3_900 + "H",
        "+".join(["H"] * 1_900),
        "-(" * 59 + "+".join(["H"] * 120) + ")" * 59,
        "tanh" + "(" * 10_000,
        ")" * 10_000,
        " " * 10**6,
        " " * 10**6 + "H",
        "dH/dt" + " " * 10**6 + "= H*A",
        "dH" + "\t" * 10**6,
        "\u03b1" * 10**6,
        "\x00" * 10**6,
        "H" + "." * 3_000,
        "H" + "()" * 1_900,
        "tanh(" * 59 + "A" + ")" * 59,
        "where" * 10**5,
        "H where " + ",".join(["beta<0"] * 10**5),
        "H where " + "<".join(["0"] * 10**5),
        "H where " + "beta" * 10**5 + "<0",
        "H where " + "," * 10**6,
        "H where beta<" + "(" * 10**5,
        "H where beta<" + "-" * 3_900 + "1",
        "H where beta<1e999999999",
        "H where beta<2**99999999",
    ],
    ids=lambda text: ascii(text)[:24],
)
def test_exhausting_texts_are_refused_at_once(text: str) -> None:
    assert str(refusal(text))


def test_the_whole_message() -> None:
    assert str(refusal("beta*H + A*H")) == (
        "cannot read the equation, column 11\n"
        "  beta*H + A*H\n"
        "            ^\n"
        "expected: elementwise factors (fields and coefficients)\n"
        "got:      operator * field\n"
        "remedy:   operators are applied with @, as in A@H (use A@H, not A*H)"
    )


@pytest.mark.parametrize("name", [*RESERVED, *FUNCTIONS])
def test_reserved_names_are_neither_read_nor_declared(name: str) -> None:
    assert isinstance(refusal(f"{name}*H"), LanguageError)
    error = refusal("H", [name])
    assert error.expected == "a free name"
    assert "reserved" in error.got
    assert error.remedy == f"call it {name}_1"
    assert parse(f"{name}_1*H", [f"{name}_1"]).coefficients == {f"{name}_1": Kind.SCALAR}


@pytest.mark.parametrize("source", [None, 3, 2.5, b"H", [], ["H", 3], {"u": 3}, object(), sp.eye(2)])
def test_other_objects_are_refused(source: Any) -> None:
    assert "expected text, a sympy expression or a System" in str(refusal(source))


@pytest.mark.parametrize(
    "source",
    [
        sp.pi * STATE, sp.I * STATE, sp.Symbol("lam") * STATE, sp.Symbol("zzz") * STATE, sp.oo * STATE, sp.gamma(STATE),
        STATE**STATE, STATE ** sp.Rational(1, 3), sp.Eq(STATE, 1), sp.Integer(3), sp.nan, sp.true, sp.Tuple(1, 2),
        sp.MatrixSymbol("A", 2, 2),
        sp.Symbol("H", commutative=False) * sp.Symbol("A", commutative=False),
    ],
)  # fmt: skip
def test_sympy_expressions_outside_the_language_are_refused(source: sp.Basic) -> None:
    assert "expected" in str(refusal(source))


def test_plain_and_non_commutative_symbols_are_read() -> None:
    A, H = sp.symbols("A H", commutative=False)
    beta = sp.Symbol("beta")
    assert parse(beta * A * H).normal == parse("beta*A@H").normal
    assert parse(A**2 * H - H / 3).normal == parse("A@A@H - H/3").normal
    X, S = sp.MatrixSymbol("H", 5, 2), sp.MatrixSymbol("A", 5, 5)
    assert parse(S * X - 2 * X).normal == parse("A@H - 2*H").normal
