"""`rdgraph.reals.certificates` and `refutations`: proofs are found, exact, and the same on every run."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction

import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.check_certificate import Problem, check, check_obligation
from rdgraph.reals.certificates import certified, model_of, proof_of
from rdgraph.reals.judge import possible, recorded
from rdgraph.reals.refutations import refuted, text
from tests.paths import ROOT

a, b = sp.symbols("a b", positive=True)
x, y, z = sp.symbols("x y z", real=True)

#: Conditions without a common point; each needs another part of the search.
IMPOSSIBLE = {
    "a square": [x**2 < 2 * x - 2],
    "means": [a**2 + b**2 < 2 * a * b],
    "three squares": [x**2 + y**2 + z**2 < x * y + y * z + z * x],
    "a disjunction": [sp.Or(x > 2, x < -2), x**2 < 4],
    "pieces": [sp.Piecewise((x, x > 0), (-x, True)) < 0],
    "the largest": [sp.Max(x, y) < x],
    "a root": [sp.sqrt(a) > 1, a < 1],
    "roots of two": [sp.sqrt(a + b) > sp.sqrt(a) + sp.sqrt(b)],
    "a quotient": [1 / (1 + x**2) > 1],
    "factors": [x * (x - 1) * (x + 1) <= 0, x > 1],
    "a double root": [x**3 - 3 * x + 2 < 0, x >= 0],
    "equations": [sp.Eq(x * y, 1), sp.Eq(x, 0)],
    "signs that multiply": [a * x > 0, b * x < 0],
    "two denominators": [x / a + y / b > 1, x < a / 3, y < b / 3],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_proofs_are_found_and_accepted(name: str) -> None:
    with recorded() as asked:
        assert possible(*IMPOSSIBLE[name]).outcome.value == "unsat"
    (obligation,) = asked
    proof = proof_of(obligation.smt2)
    assert proof is not None
    check_obligation({"claim": "unsat", "smt": obligation.smt2, "proof": json.loads(json.dumps(proof))})


@pytest.mark.parametrize("conditions", [[x**2 < 1], [a * b > 1, a < 1], [sp.Or(x > 2, x < -2)], [1 / x > 1]])
def test_nothing_is_proved_of_what_is_possible(conditions: list[sp.Basic]) -> None:
    with recorded() as asked:
        possible(*conditions)
    problem = Problem(asked[0].smt2)
    assert refuted(problem.assertions, problem.letters) is None


def test_points_make_roots_rational() -> None:
    """sqrt(a + 1) is irrational at a = 1, and rational at a nearby point."""
    with recorded() as asked:
        possible(sp.sqrt(a + 1) > 1)
    model = model_of(asked[0].smt2, (("a", Fraction(1)),))
    assert model is not None
    assert Fraction(model["a"]) + 1 == Fraction(model["root!1"]) ** 2


def test_a_root_beside_a_quotient_gets_a_rational_value() -> None:
    """sqrt(y + 1/x) is irrational at x = y = 1; the search for a letter also tries x = 0, where it has no value."""
    with recorded() as asked:
        possible(sp.sqrt(y + 1 / x) > 1, x > 0, y > 0)
    model = model_of(asked[0].smt2, (("x", Fraction(1)), ("y", Fraction(1))))
    assert model is not None
    assert Fraction(model["y"]) + 1 / Fraction(model["x"]) == Fraction(model["root!1"]) ** 2


def test_a_point_beyond_the_numbers_of_the_machine_has_a_certificate_or_none() -> None:
    with recorded() as asked:
        possible(sp.sqrt(a + 1) > 1)
    huge = Fraction(10**700 + 1)
    model = model_of(asked[0].smt2, (("a", huge),))
    assert model is None or Fraction(model["a"]) + 1 == Fraction(model["root!1"]) ** 2


def test_an_irrational_point_has_no_certificate() -> None:
    with recorded() as asked:
        possible(sp.Eq(x**2, 2))
    made = certified({}, asked)
    assert made["obligations"][0]["model"] is None
    assert check(made) == (0, 1)


def test_polynomials_are_written_in_full() -> None:
    assert text({(("x", 1), ("y", 2)): Fraction(-1, 3)}) == "(* (- (/ 1 3)) x y y)"
    assert text({}) == "0"


def test_answers_made_by_hand_have_no_certificate() -> None:
    with pytest.raises(rd.errors.InvalidArgument, match=r"rd\.existence"):
        rd.Answer(1, rd.Status.PROVED).certificate()


def test_a_certificate_is_of_the_question_that_was_asked() -> None:
    made = rd.step_limit("BS", "rk4", normalisation="row").certificate()
    assert made["statement"]["question"] == "step_limit"
    assert made["statement"]["arguments"] == ["rk4", "normalisation=row"]
    assert "row" not in rd.step_limit("BS").certificate()["statement"]["arguments"]


def test_a_counter_example_has_its_graph_and_exact_numbers() -> None:
    found = json.loads(json.dumps(rd.equivalent("ST", "AC").certificate()))["statement"]["counter-example"]
    letters = dict(found["letters"])
    assert found["nodes"] == len(json.loads(letters["H"]))
    assert Fraction(letters["alpha"]) > 0
    assert found["edges"]
    assert found["left"] != found["right"]


PROGRAM = """
import json, sys, rdgraph as rd
json.dump([rd.step_limit("BS").certificate(), rd.invariant_box("Z", "row").certificate()], sys.stdout)
"""


def test_certificates_are_the_same_under_every_hash() -> None:
    def run(seed: str) -> str:
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env={"PYTHONHASHSEED": seed}, check=True
        )
        return done.stdout

    assert run("1") == run("2")
