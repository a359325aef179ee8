"""What may be joined by which sign, and what may be declared."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

from rdgraph.errors import LanguageError, RdgraphError, UnknownName
from rdgraph.language.assumptions import Assumptions
from rdgraph.language.reader import USUAL_COEFFICIENTS, Vocabulary, read_expression
from rdgraph.language.tree import (
    Kind,
    Name,
    Times,
    TypeMismatch,
    kind_of,
)
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import FUNCTIONS
from tests.rdgraph.language.equation_texts import quickly, refusal

# ---------------------------------------------------------------------- typing
LETTERS = {"s": "alpha", "c": "k", "n": "M", "f": "H", "o": "A", "m": "W"}
KINDS = dict(zip("scnfom", Kind, strict=True))
#: Kind of left (row) and right (column) under each sign; a dot is refused.
TYPING = {
    "+": """
        s c n f . .
        c c f f . .
        n f n f . .
        f f f f . .
        . . . . o .
        . . . . . m""",
    "*": """
        s c n f o m
        c c f f o .
        n f n f o .
        f f f f . .
        o o . . . .
        m . . . . .""",
    "/": """
        s c n f . .
        c c f f . .
        n f n f . .
        f f f f . .
        o . . . . .
        m . . . . .""",
    "@": """
        . . . . . .
        . . . . . .
        . . . . . .
        . . . . . f
        . . n f o .
        . . . . . m""",
}
TYPING["-"] = TYPING["+"]
VOCABULARY = Vocabulary.standard({"k": Kind.CHANNEL})


def typing_cases() -> list[tuple[str, Kind | None]]:
    cases: list[tuple[str, Kind | None]] = []
    for sign, table in TYPING.items():
        for left, row in zip("scnfom", table.split("\n")[1:], strict=True):
            for right, result in zip("scnfom", row.split(), strict=True):
                cases.append((f"{LETTERS[left]} {sign} {LETTERS[right]}", KINDS.get(result)))
    for letter, word in LETTERS.items():
        kind = KINDS[letter]
        elementwise = letter in "scnf"
        cases += [(f"-{word}", kind), (f"+{word}", kind), (f"({word})", kind)]
        cases += [(f"{word}**2", kind if letter != "m" else None), (f"{word}**0", kind if letter != "m" else None)]
        cases += [(f"{word}**-1", kind if elementwise else None)]
        cases += [(f"{function}({word})", kind if elementwise else None) for function in FUNCTIONS]
    return cases


@pytest.mark.parametrize(("text", "kind"), typing_cases())
def test_typing(text: str, kind: Kind | None) -> None:
    if kind is None:
        with pytest.raises(LanguageError) as caught:
            read_expression(text, VOCABULARY)
        assert caught.value.remedy
    else:
        assert kind_of(read_expression(text, VOCABULARY)) is kind


def test_ill_typed_trees_are_refused_without_text() -> None:
    with pytest.raises(TypeMismatch, match=r"operator . field") as caught:
        System.of(Times(Name("A", Kind.OPERATOR), Name("H", Kind.FIELD)))
    assert "use A@H" in caught.value.remedy
    with pytest.raises(TypeMismatch, match="got Symbol"):
        System.of(sp.Symbol("H"))


# ---------------------------------------------------------------------- declarations
def test_usual_letters_need_no_declaration() -> None:
    system = parse("*".join([*USUAL_COEFFICIENTS, "H"]))
    assert system.coefficients == dict.fromkeys(sorted(USUAL_COEFFICIENTS), Kind.SCALAR)
    assert system.kinds == ()


@pytest.mark.parametrize("kind", ["scalar", "channel", "node", "matrix"])
@pytest.mark.parametrize("name", ["k", "beta", "rho_1", "X", "where_1", "channel", "dH", "printed"])
def test_declarations_by_argument_and_by_clause_agree(name: str, kind: str) -> None:
    body = f"A@H@{name}" if kind == "matrix" else f"{name}*A@H"
    system = parse(body, {name: kind})
    assert system.coefficients == {name: Kind(kind)}
    assert parse(f"{body} where {name} {kind}") == system
    assert parse(f"dH/dt = {body} where\n {name}   {kind}") == system
    assert parse(body, {name: Kind(kind)}) == system
    if kind == "scalar":
        assert parse(body, [name]) == parse(body, name) == system


def test_the_clause_gives_signs_and_relations() -> None:
    system = parse("alpha*H + beta*A@H + k*H0 where k channel, beta < 0, k real, beta <= 2*alpha, 0 < alpha")
    assert system.coefficients == {"alpha": Kind.SCALAR, "beta": Kind.SCALAR, "k": Kind.CHANNEL}
    assert [system.assumptions.sign(n) for n in ("alpha", "beta", "k")] == ["positive", "negative", "real"]
    assert system.assumptions.texts() == ("beta negative", "k real", "beta <= 2*alpha")
    assert str(system).endswith(" where k channel, beta negative, k real, beta <= 2*alpha")
    same = parse("alpha*H + beta*A@H + k*H0", {"k": "channel"}, assume=["2*alpha >= beta", "0 > beta", "k real"])
    assert same == system


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("beta<0", "negative"), ("0 > beta", "negative"), ("beta <= 0", "nonpositive"), ("beta>=0", "nonnegative"),
        ("beta>0", "positive"), ("0<beta", "positive"), ("beta real", "real"), ("beta nonpositive", "nonpositive"),
    ],
)  # fmt: skip
def test_signs(text: str, sign: str) -> None:
    system = parse("beta*H", assume=text)
    assert system.assumptions.sign("beta") == sign
    assert parse("beta*H", assume=[text]) == parse(f"beta*H where {text}") == system


def test_chains_give_one_relation_per_sign() -> None:
    system = parse("(alpha + beta)*H", assume="0 < alpha < beta <= 1")
    assert system.assumptions.texts() == ("alpha < beta", "beta <= 1")
    assert Assumptions.read(system.assumptions.texts()) == system.assumptions


def test_what_does_not_occur_is_dropped() -> None:
    assert parse("alpha*H where k channel, beta < 0, beta < alpha") == parse("alpha*H")


def test_declarations_refine_a_catalogued_system() -> None:
    system = parse("BS", {"beta": "channel"}, assume="beta<0")
    assert str(system) == "-alpha*L@H + beta*(A@H - A@A@H) where beta channel, beta negative"
    assert system.name == "BS"
    assert parse(parse("BS"), {"beta": "channel"}, assume="beta<0") == system


@pytest.mark.parametrize(
    ("coefficients", "fragment"),
    [
        (["H"], "reserved for a letter"), (["lam"], "an eigenvalue of L"), (["tanh"], "an elementwise function"),
        (["2k"], "'2k'"), (["k-1"], "'k-1'"), (["k l"], "'k l'"), ([""], "''"), (["_k"], "'_k'"),
        (["\u03b1"], "\u03b1"), (["__class__"], "'__class__'"), (["lambda"], "keyword"), (["if"], "keyword"),
        (["None"], "keyword"), (["True"], "keyword"), ({"k": "vector"}, "'vector'"), ({"k": ""}, "''"),
        ({"k": None}, "None"), ({"k": "field"}, "'field'"), ({"k": "operator"}, "'operator'"), ({1: "scalar"}, "int"),
        ([None], "None"), (5, "5"), ([["k"]], "k"),
    ],
)  # fmt: skip
def test_wrong_declarations(coefficients: Any, fragment: str) -> None:
    error = refusal("H", coefficients)
    assert fragment in str(error)


@pytest.mark.parametrize(
    ("assumption", "fragment"),
    [
        ("beta imaginary", "known words: positive"), ("", "known words"), ("beta", "known words"), ("foo real", "foo"),
        ("foo < 0", "unknown name 'foo'"), ("H < 0", "a field"), ("A < 0", "an? operator"), ("W real", "'W'"),
        ("beta < ", "nothing"), ("< 0", "nothing"), ("beta < (", "never closed"), ("lam < 1", "an eigenvalue"),
        ("beta == 0", "known words"), ("beta < __import__('os')", "' after the name of a field"), (5, "5"), ([5], "5"),
    ],
)  # fmt: skip
def test_wrong_assumptions(assumption: Any, fragment: str) -> None:
    error = refusal("beta*H", assume=assumption)
    assert re.search(fragment, str(error))


@pytest.mark.parametrize(
    "clause",
    [
        "where", "where ,", "where beta", "where beta foo", "where beta channel channel", "where beta channel,",
        "where H channel", "where lam node", "where where", "where beta < 0 where beta real", "where beta = 2",
        "where beta matrix",
    ],
)  # fmt: skip
def test_wrong_clauses(clause: str) -> None:
    assert "expected" in str(refusal(f"beta*H {clause}"))
    assert "expected" in str(refusal(clause))


def test_unknown_catalogue_names_offer_the_closest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'Nagumo'") as caught:
        catalogue["nagumoo"]
    assert isinstance(caught.value, KeyError)
    assert "allen-cahn" in catalogue
    assert "__class__" not in catalogue


@pytest.mark.parametrize(
    "value", ["A", "H@A", "__import__('os')", "zzz", "", float("nan"), float("inf"), object(), [1], None, 1j, sp.pi]
)
def test_values_that_cannot_replace_a_coefficient(value: Any) -> None:
    assert isinstance(quickly(lambda: parse("beta*A@H").replace(beta=value)), RdgraphError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2, "2*H"), (0.1, "0.1*H"), (-0.5, "-0.5*H"), (Fraction(1, 3), "1/3*H"), (sp.Rational(-2, 7), "-(2/7)*H"),
        ("2*gamma", "2*gamma*H"), (np.float64(0.25), "0.25*H"), (np.int64(3), "3*H"),
    ],
)  # fmt: skip
def test_values_that_replace_a_coefficient(value: Any, text: str) -> None:
    system = parse("beta*H where beta < 0").replace(beta=value)
    assert system == parse(text)
    assert parse(str(system)) == system
