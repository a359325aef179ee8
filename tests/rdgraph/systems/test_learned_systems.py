"""Learned functions in equations: declarations travel with the text, names give way, mistakes raise errors."""

from __future__ import annotations

import pickle

import pytest

import rdgraph as rd
from rdgraph.errors import InvalidArgument, LanguageError, UnknownName
from rdgraph.systems.equation import Equation

TEXTS = [
    "-alpha*L@H + phi(H)",
    "-alpha*L@H + phi(H) where phi learned knots=8 odd lipschitz=2",
    "phi(A@H) - psi(H0)*H where psi learned range=0:1 nondecreasing bound=1/2 per_channel",
    "u' = gate(u) - v; v' = u - gate(v) where gate learned nonincreasing",
    "g(H) where g = 2*phi(H)*H, phi learned bound=1",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_carries_its_declarations(text: str) -> None:
    system = rd.parse(text)
    assert system.learned
    assert "learned knots=" in str(system)
    assert rd.parse(str(system)) == system
    assert pickle.loads(pickle.dumps(system)) == system
    assert {str(f) for f in pickle.loads(pickle.dumps(system)).learned.values()} == set(
        map(str, system.learned.values())
    )
    for normal in system.normals.values():
        assert pickle.loads(pickle.dumps(normal)) == normal


def test_a_declaration_is_part_of_the_system() -> None:
    plain, odd = rd.parse("phi(H) - H"), rd.parse("phi(H) - H where phi learned odd")
    assert plain != odd
    assert plain.normal != odd.normal
    assert odd.normal.subs(odd.algebra.symbols["H"], 0) == 0
    assert plain.normal.subs(plain.algebra.symbols["H"], 0) != 0


def test_registered_declarations_hold_for_what_is_read_after_them() -> None:
    before = rd.parse("phi(H) - H")
    try:
        rd.vocabulary.learned("phi", knots=6, odd=True)
        after = rd.parse("phi(H) - H")
        assert after.learned["phi"].odd
        assert not before.learned["phi"].odd
        assert rd.parse("phi(H) where phi learned knots=5").learned["phi"].knots == 5
        assert rd.parse(str(before)) == before
    finally:
        rd.vocabulary.forget_learned("phi")
    assert rd.parse("phi(H) - H") == before
    with pytest.raises(UnknownName, match="gate_of_nobody"):
        rd.vocabulary.forget_learned("gate_of_nobody")
    with pytest.raises(LanguageError, match="reserved for an elementwise function"):
        rd.vocabulary.learned("tanh")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("phi(alpha)*H", "a field inside phi"),
        ("phi*H", "phi without brackets"),
        ("phi(H) where phi learned odd range=0:2", "symmetric about zero"),
        ("phi(H) where phi learned increasing", "nondecreasing"),
        ("phi(H) where phi learned, phi channel", "declare it once"),
        ("phi(H) where phi learned, phi = H**2", "declare it once"),
        ("phi(H) where phi learned odd, phi learned", "one declaration of phi"),
        ("phi(H) where psi learned", "since psi is declared"),
        ("BS where phi learned", "since phi is declared"),
        ("tanh(H) where tanh learned", "reserved"),
        ("phi' = -phi where phi learned", "declare it once"),
    ],
)
def test_mistakes_are_told(text: str, words: str) -> None:
    with pytest.raises(LanguageError, match=words):
        rd.parse(text)


@pytest.mark.parametrize("text", ["phi*H where phi scalar", "phi(H) where phi = H**2", "u' = -psi*u where psi channel",
                                  "phi' = -phi"])  # fmt: skip
def test_phi_and_psi_give_way_to_other_declarations(text: str) -> None:
    assert rd.parse(text).learned == {}
    assert rd.parse(str(rd.parse(text))) == rd.parse(text)


def test_one_name_is_one_function() -> None:
    one, other = (rd.parse(f"phi(H) where phi learned knots={k}").expression for k in (5, 6))
    with pytest.raises(InvalidArgument, match="phi has two declarations"):
        rd.System((Equation("u", 1, one), Equation("v", 1, other)))


def test_sympy_and_back() -> None:
    system = rd.parse("-alpha*L@H + phi(A@H) where phi learned knots=7 lipschitz=1/2")
    again = rd.parse(system.sympy)
    assert (again.normal, again.learned) == (system.normal, system.learned)


def test_latex_names_greek_letters() -> None:
    assert r"\phi\left(" in rd.parse("phi(H)").latex()
    assert r"\operatorname{my\_gate}\left(" in rd.parse("my_gate(H) where my_gate learned").latex()
