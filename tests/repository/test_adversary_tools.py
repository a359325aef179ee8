"""The tools, the runs and the independence of the adversary."""

from __future__ import annotations

import ast
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.adversary import (
    answers,
    assumptions,
    drawing,
    energy,
    formulas,
    graphs,
    methods,
    page,
    rewriting,
    steps,
    suite,
)
from tests.adversary.__main__ import main
from tests.adversary.answers import (
    Conservation,
    Energy,
    Increase,
    Refused,
    Step,
    Undecided,
)
from tests.adversary.integration import follow
from tests.adversary.outcome import ERROR, HELD, REFUSED, REFUTED, TIMEOUT, UNDECIDED, Outcome, Question
from tests.adversary.runner import Plan, Record, examined, resumed, run
from tests.adversary.summary import Summary
from tests.adversary.systems import Drawn, Field
from tests.repository.drawn_system import drawn


# ---------------------------------------------------------------------- the tools of the adversary
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Piecewise((1, a > 2), (7, True))", 7.0), ("Max(a, 2, -3)**2", 4.0), ("Abs(-a)/4", 0.25), ("sqrt(-4)", 2j),
        ("1/(a - 1)", math.inf), ("LambertW(exp(1))", 1.0), ("CRootOf(x**3 - 2*x, 2)", math.sqrt(2)),
        ("Ne(a, 1) | (a >= 1) & (a < 2)", True), ("(-8)**(1/3)", 1 + math.sqrt(3) * 1j), ("Eq(a, 1)", True),
    ],
)  # fmt: skip
def test_formulas_are_read(text: str, value: Any) -> None:
    assert formulas.evaluate(text, {"a": 1.0}) == pytest.approx(value)


def test_a_formula_with_an_unknown_word_is_refused() -> None:
    with pytest.raises(formulas.Unreadable, match="zeta"):
        formulas.evaluate("zeta(2)", {})


@pytest.mark.parametrize("index", range(25))
def test_jacobians_agree_with_differences(index: int) -> None:
    rng = np.random.default_rng([3, index])
    system = drawing.draw(rng)
    graph = graphs.draw(rng, "row")
    field = Field(system, graph, "row", system.values(rng, graph.nodes, 2), 2)
    state, initial, direction = rng.normal(size=(3, graph.nodes, 2))
    told = field.jacobian(state, initial) @ direction.ravel()
    step = 1e-6
    found = (field(state + step * direction, initial) - field(state - step * direction, initial)).ravel() / (2 * step)
    assert np.allclose(told, found, rtol=1e-4, atol=1e-4 * (1 + np.abs(found).max()))


@pytest.mark.parametrize("index", range(20))
def test_drawn_coefficients_are_admissible(index: int) -> None:
    rng = np.random.default_rng([4, index])
    system = drawing.draw(rng)
    for _ in range(5):
        assert system.assumed.satisfied(system.values(rng, 4, 2))


def test_assumptions_are_read() -> None:
    assumed = assumptions.read(["beta real", "0 < beta <= alpha", "gamma >= 0", "a < 1"])
    assert (assumed.sign("beta"), assumed.sign("gamma"), assumed.sign("a")) == ("positive", "nonnegative", "positive")
    assert assumed.satisfied({"alpha": 2.0, "beta": 2.0, "gamma": 0.0, "a": 0.5})
    assert not assumed.satisfied({"alpha": 1.0, "beta": 2.0, "gamma": 0.0, "a": 0.5})
    with pytest.raises(assumptions.Unsatisfied):
        assumptions.read(["beta<0", "beta positive"])


@pytest.mark.parametrize("index", range(20))
def test_rewriting_keeps_the_value(index: int) -> None:
    rng = np.random.default_rng([5, index])
    system = drawing.draw(rng)
    other = Drawn(rewriting.rewritten(system.body, rng), system.kinds)
    values = system.values(rng, 4, 2)
    state, initial = rng.normal(size=(2, 4, 2))
    sides = [Field(s, graphs.cycle(4), "row", values, 2)(state, initial) for s in (system, other)]
    assert np.allclose(*sides, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("pair", rewriting.IDENTITIES + rewriting.LOOKALIKES)
def test_identities_hold_and_lookalikes_do_not(pair: tuple[str, str]) -> None:
    values = {"M": np.array([[1.0], [0.0], [1.0], [0.0]])}
    state, initial = np.random.default_rng(6).normal(size=(2, 4, 1))
    sides = [Field(drawn(text), graphs.star(4), "row", values)(state, initial) for text in pair]
    assert bool(np.allclose(*sides)) is (pair in rewriting.IDENTITIES)


def test_operators_follow_their_definitions() -> None:
    graph = graphs.with_isolated(graphs.star(4))
    assert np.allclose(graph.operator("row").sum(1), [1, 1, 1, 1, 0])
    assert np.allclose(graph.operator("column").sum(0), [1, 1, 1, 1, 0])
    assert graph.operator("symmetric")[0, 1] == pytest.approx(1 / math.sqrt(3))
    assert np.linalg.eigvalsh(graph.operator("symmetric"))[0] == pytest.approx(-1)


def test_stability_polynomials() -> None:
    z = np.array([-0.7, 0.3 + 0.4j])
    assert methods.stability("euler", z) == pytest.approx(1 + z)
    assert methods.stability("heun", z) == pytest.approx(1 + z + z**2 / 2)
    for name in ("rk4", "rk4-classical"):
        assert methods.stability(name, z) == pytest.approx(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24)


def test_blow_up_is_told_from_exponential_growth() -> None:
    start = np.array([[2.0]])
    square = follow(lambda x: x**2, start, 3.0)
    assert square.blew_up
    assert square.end == pytest.approx(0.5, rel=1e-5)
    growth = follow(lambda x: 40 * x, start, 3.0)
    assert growth.escaped
    assert not growth.blew_up
    rest = follow(lambda x: -x, start, 1.0)
    assert rest.finished
    assert float(rest.state[0]) == pytest.approx(2 * math.exp(-rest.end), rel=1e-6)


# ---------------------------------------------------------------------- runs
def fake(text: str, question: Question) -> Any:
    """A tool that hangs, fails, refuses, does not know, and lies, in turn."""
    match len(text) % 5:
        case 0:
            time.sleep(60)
        case 1:
            raise ZeroDivisionError("a bug")
        case 2:
            raise Refused("not applicable")
        case 3:
            raise Undecided("not known")
    if question.name == "energy_law":
        return Energy("-100 - lam", None, "")
    return Conservation((("symmetric", "d + 1"),))


def test_a_run_survives_a_tool_that_hangs_fails_and_lies(tmp_path: Path) -> None:
    plan = Plan(count=12, seed=1, families=("conservation",), questions=1, seconds=1.0, ask=fake)
    records = list(run(plan, jobs=2))
    assert sorted(r.index for r in records) == list(range(12))
    for record in records:
        (outcome,) = record.outcomes
        assert outcome.status == [TIMEOUT, ERROR, REFUSED, UNDECIDED, REFUTED][len(outcome.text) % 5], outcome
    summary = Summary.of(records)
    assert all(summary.total(s) for s in (TIMEOUT, ERROR, REFUSED, UNDECIDED, REFUTED))
    assert summary.asked == 12
    (tmp_path / "lines").write_text("".join(r.line() + "\n" for r in records) + '{"index": 99, "outco')
    assert resumed(tmp_path / "lines") == {r.index: r for r in records}


def test_the_command_resumes_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "adversary.jsonl"
    arguments = ["--seed", "5", "--family", "responses", "--questions", "1", "--out", str(out)]
    kept = Record(0, (Outcome("responses", HELD, "kept", "symbol()"),))
    out.parent.mkdir()
    out.write_text(kept.line() + "\n")
    main([*arguments, "--count", "3", "--resume"])
    assert resumed(out)[0] == kept
    assert sorted(resumed(out)) == [0, 1, 2]
    assert "3 systems" in capsys.readouterr().out


def test_certificates_of_decided_answers_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(count=1, seed=1, families=("lipschitz",), questions=2, certificates=True)

    def outcomes() -> list[Outcome]:
        announced: list[tuple[str, Any]] = []
        examined(plan, 0, 0, lambda stage, what: announced.append((stage, what)))
        return [what for stage, what in announced if stage == "done"]

    summary = Summary.of([Record(0, tuple(outcomes()))])
    assert summary.total(HELD) == 2
    checked, unproved = (summary.total(count) for count in ("checked", "unproved"))
    assert checked > 0
    assert f"{checked} of {checked + unproved} obligations" in str(summary)
    honest = answers.certified

    def forged(statement: dict[str, Any], asked: Any) -> dict[str, Any]:
        made = honest(statement, asked)
        for obligation in made["obligations"]:
            obligation["smt"] = "(declare-const x Real)(assert (> x 0))"
        return made

    monkeypatch.setattr(answers, "certified", forged)
    assert [(one.status, "certificate is rejected" in one.detail) for one in outcomes()] == [(REFUTED, True)] * 2

    def failing(statement: dict[str, Any], asked: Any) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(answers, "certified", failing)
    assert [(one.status, one.detail[:33]) for one in outcomes()] == [(ERROR, "in the certificate: ZeroDivisionE")] * 2


def test_the_page_shows_what_was_counted(tmp_path: Path) -> None:
    outcomes = [Outcome("boxes", status, "-L@H", "invariant_box()", "a", "b") for status in (HELD, HELD, REFUTED)]
    outcomes.append(Outcome("boxes", HELD, "-L@H", "invariant_box()", checked=18, unproved=2))
    records = [Record(0, tuple(outcomes)), Record(1, (Outcome("steps", UNDECIDED, "L@H", "step_limit()"),))]
    results, stored, written = tmp_path / "results.jsonl", tmp_path / "trust.json", tmp_path / "trust.md"
    results.write_text("".join(r.line() + "\n" for r in records))
    arguments = [str(results), "--numbers", str(stored), "--page", str(written), "--command", "make test-deep"]
    page.main(arguments)
    numbers = json.loads(stored.read_text())
    assert (numbers["systems"], numbers["asked"], numbers["refuted"], numbers["error_rate"]) == (2, 5, 1, 0.25)
    assert numbers["refutations"][0]["text"] == "-L@H"
    text = written.read_text()
    assert "1 of 4 decided answers were refuted, 25 %" in text
    assert "18 of 20 obligations (90 %)" in text
    assert f"| {page.QUESTIONS['boxes']} | 4 | 3 | 0 | 0 | 1 | 0 | 0 | 20 | 90 |" in text
    assert f"| {page.QUESTIONS['steps']} | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |  |" in text
    assert "## A second engine" not in text
    engines = {
        "command": "again", "cvc5": "1", "seconds": 1.0, "contradictions": 0,
        "claims": {"proofs": 5, "confirmed": 5}, "systems": {"count": 2, "proofs": 10, "confirmed": 8},
    }  # fmt: skip
    page.write({**numbers, "engines": engines}, stored, written)
    page.main(arguments)
    assert json.loads(stored.read_text())["engines"] == engines
    assert "8 of 10 proofs (80 %)" in written.read_text()


def test_the_page_is_what_the_kept_numbers_say() -> None:
    stored = json.loads(page.NUMBERS.read_text(encoding="utf-8"))
    assert page.page(stored) == page.PAGE.read_text(encoding="utf-8")
    assert stored["decided"] == sum(row["held"] + row["refuted"] for row in stored["families"].values())
    assert sum(row["checked"] for row in stored["families"].values()) > 0
    assert stored["engines"]["contradictions"] == 0


# ---------------------------------------------------------------------- independence
def test_only_the_adapter_knows_the_tool() -> None:
    folder = Path(suite.__file__).parent
    allowed = {"numpy", "scipy", "mpmath", "tests", "__future__", *sys.stdlib_module_names}
    adapters = {"answers.py": {"rdgraph"}, "lowered_attacks.py": {"rdgraph", "torch"}}
    for path in sorted(folder.glob("*.py")):
        imported = {
            name.partition(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in _imports(node)
        }
        assert imported <= allowed | adapters.get(path.name, set()), path.name


def _imports(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [node.module or ""]
    return []


# ---------------------------------------------------------------------- what is no fault
def test_a_witness_without_a_mask_is_tried_with_several() -> None:
    kinds = (("M", "node"), ("beta", "scalar"))
    increase = Increase(2, (("beta", 1.0),), (1.0, -1.0), None, 16.0)
    answer = Energy(None, None, "increases on some graph", witness=increase)
    assert energy._witness(Drawn("beta*L@H + M*(1 - M)*H", kinds), answer, increase) is None
    assert energy._witness(Drawn("beta*L@H + M*H", kinds), answer, increase) is not None


def test_rounding_is_no_mode() -> None:
    for body, refuted in (("0.3*beta*H - 0.1*beta*H - 0.2*beta*H", False), ("-beta*H", True)):
        system = Drawn(body, (("beta", "scalar"),))
        answer = Step("oo", "stability", "")
        assert bool(steps._sharp(system, "euler", answer, np.random.default_rng(0))) is False
        assert bool(steps._stable(system, "euler", "symmetric", answer, np.random.default_rng(0))) is refuted
