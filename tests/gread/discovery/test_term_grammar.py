"""Grammars of terms: what they enumerate, and what they refuse."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import rdgraph as rd
from gread.discovery.term_grammar import SHIPPED, Term, find_terms, read_terms
from rdgraph.errors import FileError, InvalidArgument, UnknownName

ALL_SECTIONS = """
source = "a test"
[coefficients]
names = ["a", "b", "c"]
kind = "channel"
[words]
letters = ["A"]
degree = 2
fields = ["H"]
[functions]
names = ["tanh", "sin"]
of = ["H", "A@H"]
[products]
factors = ["H", "A@H"]
degree = 3
sign = "both"
[gates]
gates = ["sigmoid(L@H)"]
of = ["A@H", "H0"]
[terms]
free = ["A@tanh(H)"]
signed = ["H*(1 - H)"]
"""


def test_every_section_adds_its_terms_in_order() -> None:
    terms = [str(term) for term in read_terms(ALL_SECTIONS, "test").terms]
    products = ["H*H", "H*(A@H)", "(A@H)*(A@H)", "H*H*H", "H*H*(A@H)", "H*(A@H)*(A@H)", "(A@H)*(A@H)*(A@H)"]
    assert terms == [
        "H", "A@H", "A@A@H", "tanh(H)", "tanh(A@H)", "sin(H)", "sin(A@H)",
        *(f"{sign}{body}" for body in products for sign in "+-"),
        "sigmoid(L@H)*(A@H)", "sigmoid(L@H)*H0", "A@tanh(H)", "+H*(1 - H)", "-H*(1 - H)",
    ]  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_grammars_read_every_equation_of_one_term(name: str) -> None:
    grammar = find_terms(name)
    for line in grammar.lines(1):
        system = rd.parse(line.text)
        assert system.is_single
        assert set(system.coefficients) == set(line.coefficients)
        assert all(str(kind) == grammar.kind for kind in system.coefficients.values())


def test_an_enumeration_is_complete_and_stable() -> None:
    grammar = find_terms("small")
    lines = [line.terms for line in grammar.lines(3)]
    expected = [
        terms
        for size in (1, 2, 3)
        for terms in combinations(grammar.terms, size)
        if not {Term("H**3", "+"), Term("H**3", "-")} <= set(terms)
    ]
    assert lines == expected
    assert len({line.text for line in grammar.lines(3)}) == len(expected)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("[wrods]\ndegree = 1", UnknownName, "did you mean 'words'"),
        ("[words]\nfeilds = ['H']", UnknownName, "fields"),
        ("[words]\ndegree = -1\nfields = ['H']", InvalidArgument, "from 0 to 8"),
        ("[words]\nfields = 'H'", InvalidArgument, "a list of texts"),
        ("[functions]\nnames = ['tangh']\nof = ['H']", UnknownName, "tanh"),
        ("[products]\nfactors = ['H']\nsign = 'any'", UnknownName, "both"),
        ("[coefficients]\nkind = 'node'\n[words]\nfields = ['H']", UnknownName, "scalar"),
        ("[coefficients]\nnames = ['a', 'a']\n[words]\nfields = ['H']", InvalidArgument, "different names"),
        ("[coefficients]\nnames = ['H']\n[words]\nfields = ['H']", InvalidArgument, "names of coefficients.*got 'H'"),
        ("[coefficients]\nnames = ['a b']\n[words]\nfields = ['H']", InvalidArgument, "names of coefficients"),
        ("[coefficients]\nnames = ['tanh']\n[words]\nfields = ['H']", InvalidArgument, "names of coefficients"),
        ("[coefficients]\nnames = ['a', 'lam']\n[words]\nfields = ['H']", InvalidArgument, "names of coefficients"),
        ("[terms]\nfree = ['alpha*H']", InvalidArgument, "without coefficients"),
        ("[terms]\nfree = ['sqrt(H)']", InvalidArgument, "every state"),
        ("[terms]\nfree = ['H**2/H']", InvalidArgument, "every state"),
        (
            "[terms]\nfree = ['H +']",
            InvalidArgument,
            "^expected a term of an equation in H, got 'H \\+': .* column 4.*$",
        ),
        ("[terms]\nfree = ['t*H']", InvalidArgument, "depends on the time"),
        ("source = 'nothing'", InvalidArgument, "different terms"),
        ("words = 3", InvalidArgument, "a table"),
    ],
)
def test_what_is_wrong_is_told(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        read_terms(text, "test")


@pytest.mark.parametrize("kind", ["scalar", "channel"])
def test_coefficients_may_have_names_that_the_language_does_not_know(kind: str) -> None:
    grammar = read_terms(f"[coefficients]\nnames = ['rate', 'k']\nkind = '{kind}'\n[words]\nfields = ['H']", "test")
    for line in grammar.lines(2):
        assert {name: str(found) for name, found in line.system.coefficients.items()} == dict.fromkeys(
            line.coefficients, kind
        )


def test_files_are_found_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(ALL_SECTIONS)
    assert find_terms(path).kind == "channel"
    path.write_text("[words")
    with pytest.raises(FileError, match="not: "):
        find_terms(path)
    with pytest.raises(UnknownName, match="default"):
        find_terms("defualt")


def test_an_equation_has_no_more_terms_than_names() -> None:
    grammar = find_terms("small")
    with pytest.raises(InvalidArgument, match="1 to 4 terms"):
        grammar.line(grammar.terms[:5])
    with pytest.raises(InvalidArgument, match="between 1 and 4"):
        next(grammar.lines(5))
