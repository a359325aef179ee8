"""`analyse` answers under fixed keys, in strings sympy reads, for any equation; the known answers come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import sympy as sp
from hypothesis import given, settings

import rdgraph as rd
from rdgraph.testing import systems
from tests.property_examples import examples

NAMES = [
    "lam",
    "T",
    "tau",
    "R",
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "kappa",
    "mu",
    "nu",
    "a",
    "b",
    "c",
    "s",
    "d",
    "omega",
    "w",
]
LETTERS = {n: sp.Symbol(n) for n in NAMES}


def read(text: str) -> sp.Expr:
    return sp.sympify(text, locals=LETTERS)


@cache
def answers(name: str, *assume: str) -> dict[str, Any]:
    return rd.analyse(rd.parse(name, assume=assume)).to_dict()


#: What `analyse` asks under some of its keys; a value costs a small part of all answers about a system.
QUESTIONS: dict[str, Callable[[rd.System, str], Any]] = {
    "lipschitz_global": rd.lipschitz_global, "lipschitz_local": rd.theory.lipschitz_local,
    "one_sided": rd.theory.one_sided,
    "step_limit_euler": lambda system, where: rd.step_limit(system, "euler", where),
    "step_limit_rk4": lambda system, where: rd.step_limit(system, "rk4", where),
}  # fmt: skip


def same(text: str, formula: str, **values: float) -> bool:
    gap = read(text) - read(formula)
    if values:
        gap = gap.subs({LETTERS[k]: sp.Rational(str(v)) for k, v in values.items()})
    return bool(sp.simplify(gap) == 0)


@pytest.mark.slow_cases(11)
@pytest.mark.parametrize("name", list(rd.catalogue.single))
@pytest.mark.slow
def test_every_catalogued_system(name: str) -> None:
    answer = answers(name)
    json.dumps(answer)
    assert answer["existence"] in ("global", "local", "undecided")
    for key, value in answer.items():
        if value is None:
            assert answer["notes"][key], f"{key} is null without a note"
    for key in ("symbol", "response_exact"):
        if answer[key] is not None:
            assert read(answer[key]).free_symbols <= set(LETTERS.values())
    for key in ("lipschitz_global", "lipschitz_local", "one_sided", "step_limit_euler", "step_limit_rk4"):
        if answer[key] is not None:
            assert set(answer[key]) == {"symmetric", "row"}
            for text in answer[key].values():
                assert text is None or isinstance(read(text), sp.Expr)


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("diffusion", "-alpha*lam"), ("BS", "(beta - alpha)*lam - beta*lam**2"), ("ST", "-alpha*lam"),
        ("FB", "(beta - alpha)*lam"), ("FB*", "(beta - alpha)*lam + beta"),
        ("FB-released", "2*beta - (alpha + beta)*lam"), ("FB*-released", "3*beta - (alpha + beta)*lam"),
        ("GRAND++", "-lam"), ("APPNP", "-alpha*lam - beta"),
    ],
)  # fmt: skip
def test_symbols(name: str, symbol: str) -> None:
    assert same(str(rd.parse(name).symbol()), symbol)


@pytest.mark.parametrize("name", ["BS", "AC"])
def test_answers_are_those_of_single_questions(name: str) -> None:
    system, answer = rd.parse(name), answers(name)
    if name == "BS":
        assert same(answer["symbol"], str(system.symbol()))
    for key, question in QUESTIONS.items():
        for where in ("symmetric", "row"):
            text = answer[key] and answer[key][where]
            assert str(text) == str(question(system, where).value)
    for where in ("symmetric", "row"):
        box = rd.invariant_box(system, where)
        known = answer["invariant_box"] and answer["invariant_box"][where]
        assert known == ([str(box.lower), str(box.upper)] if box.exists else None)
    assert answer["existence"] == rd.existence(system).outcome


@pytest.mark.parametrize(
    ("name", "assume", "key", "where", "formula"),
    [
        ("FB*", (), "lipschitz_global", "symmetric", "Max(beta, Abs(3*beta - 2*alpha))"),
        ("FB", (), "lipschitz_global", "symmetric", "2*Abs(beta - alpha)"),
        ("BS", ("beta<0",), "lipschitz_global", "symmetric",
         "Max(2*Abs(-beta - alpha), Piecewise(((alpha - beta)**2/(-4*beta), -beta >= alpha/3), (0, True)))"),
        ("AC", (), "one_sided", "row", "beta"),
        ("Z", (), "one_sided", "symmetric", "beta/3"),
        ("Z", (), "lipschitz_local", "symmetric", "2*alpha + beta*(2*R + 3*R**2)"),
        ("AC", (), "lipschitz_local", "row", "Max(beta, 2*alpha + beta*(3*R**2 - 1))"),
        ("F", (), "step_limit_euler", "row", "1/(alpha + beta)"),
        ("Z", (), "step_limit_euler", "row", "1/(alpha + beta)"),
        ("AC", (), "step_limit_euler", "row", "1/(alpha + 2*beta)"),
        ("F", ("beta<0",), "step_limit_euler", "row", "1/(alpha - beta)"),
        ("AC", ("beta<0",), "step_limit_euler", "row", "1/(alpha - beta/4)"),
        ("Z", ("beta<0",), "step_limit_euler", "row", "1/(alpha - beta/4)"),
    ],
)  # fmt: skip
def test_constants(name: str, assume: tuple[str, ...], key: str, where: str, formula: str) -> None:
    text = str(QUESTIONS[key](rd.parse(name, assume=assume), where).value)
    sign = -1 if "beta<0" in assume else 1
    for alpha, beta, radius in ((1, 0.25, 0.5), (1, 0.5, 1), (0.3, 1, 2), (1, 1.5, 0.1), (1, 3, 3), (0.1, 1, 1)):
        assert same(text, formula, alpha=alpha, beta=sign * beta, R=radius)


def test_rk4_limit_is_the_real_stability_limit() -> None:
    value = read(answers("BS")["step_limit_rk4"]["symmetric"]).subs({LETTERS["alpha"]: 1, LETTERS["beta"]: 1})
    assert float(value) * 4 == pytest.approx(2.785293563405282, rel=1e-12)


@pytest.mark.slow
def test_boxes_and_existence() -> None:
    def box(name: str, where: str) -> list[str]:
        found = rd.invariant_box(rd.parse(name), where)
        assert found.exists
        return [str(found.lower), str(found.upper)]

    assert box("F", "row") == ["0", "1"]
    assert box("Z", "row") == ["0", "1"]
    assert box("AC", "row") == ["-1", "1"]
    assert answers("diffusion")["invariant_box"] == {"symmetric": None, "row": ["-R", "R"]}
    assert same(box("F", "symmetric")[1], "1 + alpha/beta*(s - 1)")
    assert same(box("AC", "symmetric")[1], "sqrt(1 + alpha/beta*(s - 1))", alpha=2, beta=3, s=5)
    assert same(box("Z", "symmetric")[1], "(1 + sqrt(1 + 4*alpha/beta*(s - 1)))/2", alpha=2, beta=3, s=5)
    expected = {"F": "local", "AC": "global", "Z": "global", "BS": "global", "CGNN": "global"}
    assert {name: rd.existence(name).outcome for name in expected} == expected
    assert {rd.existence(rd.parse(name, assume="beta<0")).outcome for name in ("F", "AC", "Z")} == {"local"}


def test_what_does_not_apply_is_null_and_explained() -> None:
    answer = answers("CGNN")
    assert answer["symbol"] is None
    assert "mixes channels" in answer["notes"]["symbol"]
    assert "norm_W" in answer["lipschitz_global"]["symmetric"]
    node = rd.analyse(rd.parse("-b*L@H", {"b": "node"})).to_dict()
    assert node["symbol"] is None
    assert "does not commute" in node["notes"]["symbol"]


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(systems())
def test_any_system_gets_an_answer(system: rd.System) -> None:
    """No equation a user can write makes `analyse` fail with anything but a package error."""
    try:
        answer = rd.analyse(system).to_dict()
    except rd.errors.RdgraphError:
        return
    json.dumps(answer)
    assert answer["text"] == str(system)


def test_an_absolute_bound_is_not_read_as_a_ratio() -> None:
    """beta < 1 says nothing about beta/alpha."""
    kinds = [c.kind for c in rd.classify(rd.parse("BS", assume="beta < 1"))]
    assert kinds == ["low-pass", "band-pass"]
    value = rd.lipschitz_global(rd.parse("FB", assume="beta < 1")).value
    assert value is not None
    assert value.subs({LETTERS["alpha"]: sp.Rational(1, 4), LETTERS["beta"]: sp.Rational(1, 2)}) == sp.Rational(1, 2)


@pytest.mark.slow
def test_transcendental_constants_are_left_alone() -> None:
    """Factoring exp(0.784) would never end."""
    answer = rd.analyse("(exp(0.784)*exp(0.389))**-2 + exp(H)").to_dict()
    assert answer["existence"] == "local"
    assert answer["lipschitz_local"] == {"symmetric": "exp(R)", "row": "exp(R)"}


# ---------------------------------------------------------------------- several fields
SEVERAL = {
    "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v": ["u", "v"],
    "H'' = -gamma*H - alpha*H' - L@H": ["H", "H'"],
    "u' = -alpha*exp(-t)*L@u": ["u"],
    "H' = -alpha*L@H + beta*B@H where B antisymmetric": ["H"],
    "u' = -L@u + alpha*u*xi": ["u"],
}


@pytest.mark.parametrize("text", SEVERAL)
def test_several_fields_are_analysed(text: str) -> None:
    analysis = rd.analyse(text)
    found = analysis.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["fields"] == SEVERAL[text]
    assert found["existence"] == ("global" if "u**2*v" not in text else found["existence"])
    assert found["notes"]["existence"]
    assert {"symbol", "steady_states", "turing"} <= set(found)
    assert "<table>" in analysis._repr_html_()
    assert analysis.method.method


def test_symbols_and_steady_states_of_several_fields() -> None:
    linear = rd.analyse("u' = -L@u + 2*v; v' = -u").to_dict()
    assert linear["symbol"] == [["-lam", "2"], ["-1", "0"]]
    assert linear["linear"] is True
    pair = rd.analyse("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v").to_dict()
    assert pair["symbol"] == pair["turing"]["symbol"]
    assert "of the linearisation at u = a + b" in pair["notes"]["symbol"]
    assert pair["steady_states"]["states"][0]["values"] == {"u": "a + b", "v": "b/(a + b)**2"}
    assert pair["turing"]["sets"]["turing"]["outcome"] == "possible"
    assert pair["turing"]["symbol"][0][1] == "(a + b)**2"
    timed = rd.analyse("u' = -alpha*exp(-t)*L@u").to_dict()
    assert timed["steady_states"] == timed["turing"] == "undecided"
    assert "time" in timed["notes"]["turing"]
