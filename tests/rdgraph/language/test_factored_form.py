"""The factored normal form: linear layers are normal, the rest is held, and what is too large to expand is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.language.factored_form import Entrywise, factored_form, terms_of
from rdgraph.language.normal_form import H0, Act, H, Mix

A = sp.Symbol("A")


def form(text: str, **kinds: str) -> sp.Expr:
    system = rd.parse(text, kinds)
    return factored_form(system.expression, system.algebra)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("L@H", "H - A@H"),
        ("(A - A@A)@H", "A@H - A@A@H"),
        ("alpha*(H + A@H) - H*alpha", "A@(alpha*H)"),
        ("A@(2*tanh(H)) + tanh(H)*alpha", "alpha*tanh(H) + 2*A@tanh(H)"),
        ("(H + H)*(3*A@H)", "6*(H*(A@H))"),
        ("tanh(L@H)", "tanh(H - A@H)"),
        ("H@(2*W) + (alpha*H)@W", "(2 + alpha)*(H@W)"),
        ("H@(W - W) + (H - H)@W", "0*H"),
        ("A@((alpha + 1)*H) - A@H", "alpha*A@H"),
    ],
)
def test_linear_layers_are_normal(first: str, second: str) -> None:
    assert form(first) == form(second)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("H*(1 - H)", Entrywise("*", H, 1 - H)),
        ("(H + A@H)**4", Entrywise("**", H + Act([A], H), sp.Integer(4))),
        ("A@tanh(A@H)", Act([A], Entrywise("tanh", Act([A], H)))),
        ("H0/H", Entrywise("/", H0, H)),
        ("(H + H0)@W", Mix([sp.Symbol("W", commutative=False)], H + H0)),
        ("A@A@(M*H + M*H0)", Act([A, A], sp.Symbol("M", real=True) * H + sp.Symbol("M", real=True) * H0)),
    ],
)
def test_what_is_not_linear_is_held(text: str, expected: sp.Expr) -> None:
    assert form(text) == expected


def test_a_quotient_keeps_the_places_where_it_is_not_defined() -> None:
    """H/H is 1 in the normal form, and has no value at 0 in a run."""
    assert form("H/H + sqrt(H)**2") == Entrywise("/", H, H) + Entrywise("**", Entrywise("sqrt", H), sp.Integer(2))


def test_terms_have_one_coefficient_for_each_word_and_atom() -> None:
    alpha, beta = (rd.parse("alpha*H + beta*H").algebra.symbols[name] for name in ("alpha", "beta"))
    terms = terms_of(form("beta*(A@H - A@A@H) - alpha*L@H"))
    assert [(t.coefficient, t.word, t.atom) for t in terms] == [
        (-alpha, (), H), (alpha + beta, ("A",), H), (-beta, ("A", "A"), H),
    ]  # fmt: skip
    assert sp.Add(*(t.expression() for t in terms)) == form("BS")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(1 - H + A@H)**32*(1 + H0*H + A@H0)**32", 1),
        ("(1 + alpha)**12*(1 + beta)**12*A@H", 1),
        ("(I + alpha*A)**32@(H + beta*H0)", 66),
        ("tanh(tanh(tanh(tanh(tanh(tanh(A@H))))))", 1),
        ("A**32@A**32@A**32@H", 1),
    ],
)
def test_what_is_too_large_to_expand_has_a_factored_form(text: str, words: int) -> None:
    system = rd.parse(text)
    if "alpha)**12" not in text:
        with pytest.raises(rd.errors.NotApplicable):
            system.normal  # noqa: B018
    assert len(terms_of(form(text))) == words


def test_words_in_two_letters_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under L = D - A the words of (A + L)**n are 2**n."""
    system = rd.parse("(A + L)**32@H")
    algebra = replace(system.algebra, definitions={})
    monkeypatch.setattr("rdgraph.language.factored_form.MAX_WORDS", 100)
    with pytest.raises(rd.errors.NotApplicable, match="at most 100 operator words, got 128"):
        factored_form(system.expression, algebra)
    five = rd.parse("(A + L)**5@H")
    assert len(terms_of(factored_form(five.expression, algebra))) == 32
