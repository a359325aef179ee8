"""`rdgraph.check_certificate`: a checker that shares no code with what it checks."""

from __future__ import annotations

import ast
import copy
import json
import operator
import random
import re
import subprocess
import sys
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.check_certificate import (
    FORMAT,
    Problem,
    Rejected,
    check,
    check_obligation,
    facts_of,
    is_true,
    main,
    polynomial,
    read,
    without_let,
)
from rdgraph.reals.certificates import write_certificate
from tests.paths import ROOT
from tests.property_examples import examples

FILE = ROOT / "rdgraph" / "check_certificate.py"
X = "(declare-const x Real)"
XY = f"{X} (declare-const y Real)"


def unsat(smt: str, proof: Any) -> dict[str, Any]:
    return {"claim": "unsat", "smt": smt, "proof": proof}


@pytest.fixture(scope="module")
def certificates() -> list[dict[str, Any]]:
    asked = [
        rd.step_limit("BS"),
        rd.steady_states("F"),
        rd.existence("F"),
        rd.invariant_box("AC"),
        rd.step_limit("ST", "rk4"),
    ]
    return [answer.certificate() for answer in asked]


def test_the_file_stands_alone() -> None:
    text = FILE.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= {"__future__", "fractions", "json", "pathlib", "re", "sys", "typing"}
    assert len(text.splitlines()) <= 500


def test_it_runs_without_anything_installed(certificates: list[dict[str, Any]], tmp_path: Path) -> None:
    copied, file = tmp_path / "checker.py", tmp_path / "certificate.json"
    copied.write_bytes(FILE.read_bytes())
    write_certificate(file, certificates[0])
    done = subprocess.run([sys.executable, "-I", "-S", copied, file], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    count = len(certificates[0]["obligations"])
    assert f"{count} of {count} obligations checked; translation not checked" in done.stdout


def test_certificates_of_answers_are_accepted(certificates: list[dict[str, Any]]) -> None:
    for made in certificates:
        assert check(made) == (len(made["obligations"]), 0)
        assert made["obligations"]


# ---------------------------------------------------------------- proofs that are none


ACCEPTED = [
    unsat(f"{X} (assert (< (* x x) 0.0))", {"sum": [["1", [0]], [[["1", "x"]], []]]}),
    unsat(f"{X} (assert (> x 0)) (assert (= x 0))", {"sum": [["1", [0]]], "zero": [["(- 1)", 1]]}),
    unsat(f"{X} (assert (distinct x 0)) (assert (= x 0))", {"sum": [["1", [0, 0]]], "zero": [["(- x)", 1]]}),
    unsat(f"{X} (assert (or (< x 0) (> x 1))) (assert (> x 0)) (assert (< x 1))",
          {"or": 0, "cases": [{"sum": [["1", [3]], ["1", [1]]]}, {"sum": [["1", [3]], ["1", [2]]]}]}),
    unsat(f"{X} (assert (> (* x x x) 0)) (assert (< x 0))", {"sum": [["1", [0]], [[["1", "x"]], [1]]]}),
    unsat(f"{X} (assert (distinct (* x x) 0)) (assert (<= (* x x) 0))",
          {"sign": "x", "cases": [{"sum": [["1", [2, 2]], ["1", [1]]]},
                                  {"sum": [["1", [0, 0]]], "zero": [["(- (* x x x))", 2]]},
                                  {"sum": [["1", [2, 2]], ["1", [1]]]}]}),
]  # fmt: skip

#: Each says why it is refused.
REFUSED = [
    (unsat(f"{X} (assert (>= x 0))", {"sum": [["1", [0]], ["-1", [0]]]}), "not positive"),
    (unsat(f"{X} (assert (>= x 0)) (assert (<= x 0))", {"sum": [["1", [0]], ["1", [1]]]}), "no product .* is positive"),
    (unsat(f"{X} (assert (> x 0)) (assert (< x 1))", {"sum": [["1", [0]], ["1", [1]]]}), "not the zero polynomial"),
    (unsat(f"{X} (assert (= x 0))", {"sum": [["1", [0]]]}), "says = 0"),
    (unsat(f"{X} (assert (distinct x 0)) (assert (< x 0))", {"sum": [["1", [0]], ["1", [1]]]}), "odd number"),
    (unsat(f"{X} (assert (> x 0))", {"sum": [], "zero": [["1", 0]]}), "does not say = 0"),
    (unsat(f"{X} (assert (or (< x 0) (> x 1))) (assert (= x 2))", {"or": 0, "cases": [{"sum": []}]}), "each of its"),
    (unsat(f"{X} (assert (> x 0))", {"or": 0, "cases": []}), "no choice"),
    (unsat(f"{X} (assert (> x 0))", {"sign": "x", "cases": [{}, {}]}), "three proofs"),
    (unsat(f"{X} (assert (> x 0))", {"sum": [["1", [4]]]}), "no fact"),
    (unsat(f"{X} (assert (> x 0))", {"sum": [["1", [-1]]]}), "no fact"),
    (unsat(f"{X} (assert (> y 0))", {"sum": [["1", [0]]]}), "unknown letter"),
    (unsat(f"{X} {X}", {"sum": [["1", []]]}), "twice"),
    (unsat(f"{X} (assert (forall x (> x 0)))", {}), "unknown word"),
    (unsat(f"{X} (define-fun f () Real 1) (assert (> x 0))", {}), "unknown command"),
    (unsat(f"{X} (assert (> x 0)", {}), "not closed"),
    ({"claim": "sat", "smt": f"{X} (assert (> x 0))", "model": {"x": "-1"}}, "does not satisfy"),
    ({"claim": "sat", "smt": f"{X} (assert (> (/ 1 x) 0))", "model": {"x": "0"}}, "division by zero"),
    ({"claim": "sat", "smt": f"{XY} (assert (> x 0))", "model": {"x": "1"}}, "no value for y"),
    ({"claim": "maybe", "smt": X, "model": {}}, "sat or unsat"),
]  # fmt: skip


def test_accepted() -> None:
    for obligation in ACCEPTED:
        check_obligation(obligation)


def test_refused() -> None:
    """In one test, so that every reason is tried in every run."""
    for obligation, why in REFUSED:
        with pytest.raises(Rejected, match=why):
            check_obligation(obligation)


QUOTIENTS = [
    "(/ 1 (/ x y))",
    "(/ 1 (* x x))",
    "(/ x (- 2))",
    "(/ (/ x y) (/ y x))",
    "(+ (/ 1 x) (/ 1 (* x y)))",
    "(/ y (- x))",
]


def test_quotients_are_compared_by_the_signs_of_their_divisors() -> None:
    points = [(Fraction(a, 2), Fraction(b, 2)) for a in (-3, -1, 1, 4) for b in (-5, -1, 2, 3)]
    for quotient in QUOTIENTS:
        for relation in ("<", ">=", "=", "distinct"):
            (formula,) = Problem(f"{XY} (assert ({relation} {quotient} 0.5))").assertions
            facts = facts_of(formula, {"x", "y"})
            for x, y in points:
                values = {"x": x, "y": y}
                assert all(_holds(fact, values) for fact in facts) == holds(formula, values)


def test_an_even_divisor_may_be_zero() -> None:
    (formula,) = Problem(f"{X} (assert (> (/ 1 (* x x)) 2))").assertions
    (choice,) = facts_of(formula, {"x"})
    assert choice[0] == "or"
    assert any(_holds(("or", [part]), {"x": Fraction(0)}) for part in choice[1])


def test_nothing_is_learned_from_a_division_by_zero() -> None:
    """x/y = 1 with x = 0: in SMT-LIB 0/0 may be 1, so that there is no contradiction."""
    problem = Problem(f"{XY} (assert (= (/ x y) 1)) (assert (= x 0))")
    [choice, _] = [fact for formula in problem.assertions for fact in facts_of(formula, problem.letters)]
    assert choice[0] == "or"
    assert [("fact", {(("y", 1),): Fraction(1)}, "=")] in choice[1]


def test_divisors_inside_divisors_stay_divisors() -> None:
    """1/(x/y) = 2 says nothing where y = 0, although y is a factor of the numerator."""
    problem = Problem(f"{XY} (assert (> (/ 1 (/ x y)) 2))")
    [choice] = facts_of(problem.assertions[0], problem.letters)
    assert any(part == [("fact", {(("x", 1), ("y", 1)): Fraction(1)}, "=")] for part in choice[1])


# ---------------------------------------------------------------- facts say what formulas say


terms = st.recursive(
    st.sampled_from(["x", "y", "1.0", "2", "0.5"]),
    lambda t: st.one_of(
        st.tuples(st.sampled_from("+-*/"), t, t).map(list),
        st.tuples(st.just("-"), t).map(list),
        st.tuples(st.just("ite"), st.tuples(st.sampled_from(["<", ">=", "="]), t, t).map(list), t, t).map(list),
    ),
    max_leaves=6,
)
atoms = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "distinct"]), terms, terms).map(list)
formulas = st.recursive(
    atoms | st.sampled_from(["true", "false"]),
    lambda f: st.one_of(
        st.tuples(st.sampled_from(["and", "or", "=>"]), f, f).map(list),
        st.tuples(st.just("not"), f).map(list),
        st.tuples(st.just("ite"), f, f, f).map(list),
    ),
    max_leaves=4,
)
numbers = st.sampled_from([Fraction(n, d) for n in range(-3, 4) for d in (1, 2)])


@settings(max_examples=examples(400))
@given(formulas, numbers, numbers)
def test_facts_hold_where_the_formula_holds(formula: Any, x: Fraction, y: Fraction) -> None:
    """Both readings of a formula agree at every point at which nothing is divided by zero."""
    values = {"x": x, "y": y}
    try:
        expected = holds(formula, values)
        found = all(_holds(fact, values) for fact in facts_of(formula, {"x", "y"}))
    except Rejected:
        return
    if expected:
        assert found
    elif not found:
        return
    else:  # facts may say less than the formula only where a division says nothing
        with pytest.raises(Rejected, match="division by zero"):
            _every_term(formula, values)


def _holds(fact: Any, values: dict[str, Fraction]) -> bool:
    if fact[0] == "or":
        return any(all(_holds(part, values) for part in alternative) for alternative in fact[1])
    number = Fraction(0)
    for monomial, factor in fact[1].items():
        for letter, power in monomial:
            factor *= values[letter] ** power
        number += factor
    return {">": number > 0, ">=": number >= 0, "=": number == 0, "!=": number != 0}[fact[2]]


def _every_term(formula: Any, values: dict[str, Fraction]) -> None:
    """Evaluates all terms of a formula, in branches that do not apply as well."""
    if isinstance(formula, list):
        for part in formula[1:]:
            _every_term(part, values)
        if formula[0] in "+-*/":
            value_of(formula, values)


COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "distinct": operator.ne,
}
COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def holds(formula: Any, values: dict[str, Fraction]) -> bool:
    """Whether a formula holds at a point, branch by branch."""
    match formula:
        case "true" | "false":
            return bool(formula == "true")
        case ["not", part]:
            return not holds(part, values)
        case ["and", *parts]:
            return all(holds(part, values) for part in parts)
        case ["or", *parts]:
            return any(holds(part, values) for part in parts)
        case ["=>", first, second]:
            return not holds(first, values) or holds(second, values)
        case ["ite", test, yes, no]:
            return holds(yes if holds(test, values) else no, values)
    return bool(COMPARE[formula[0]](*(value_of(part, values) for part in formula[1:])))


def value_of(term: Any, values: dict[str, Fraction]) -> Fraction:
    match term:
        case str():
            return values[term] if term in values else Fraction(term)
        case ["ite", test, yes, no]:
            return value_of(yes if holds(test, values) else no, values)
        case ["-", part]:
            return -value_of(part, values)
    numbers = [value_of(part, values) for part in term[1:]]
    if term[0] == "/" and 0 in numbers[1:]:
        raise Rejected("a division by zero")
    return reduce(COMPUTE[term[0]], numbers)


@settings(max_examples=examples(400))
@given(formulas, numbers, numbers)
def test_models_satisfy_what_holds_at_the_point(formula: Any, x: Fraction, y: Fraction) -> None:
    values = {"x": x, "y": y}
    sizes = {name: ["/", str(abs(n.numerator)), str(n.denominator)] for name, n in values.items()}
    words = {name: ["-", sizes[name]] if n < 0 else sizes[name] for name, n in values.items()}
    try:
        expected = holds(formula, values)
    except Rejected:
        with pytest.raises(Rejected):
            is_true(without_let(formula, words))
        return
    assert is_true(without_let(formula, words)) == expected


# ---------------------------------------------------------------- identities

KINDS = {"H": "field", "X": "field", "s": "scalar", "c": "channel", "n": "node"}


def identity(left: str, right: str, **given: str) -> dict[str, Any]:
    return {"claim": "identity", "left": left, "right": right, "given": given, "kinds": KINDS, "proof": "expansion"}


EQUAL = [
    identity("(act (- I A) H)", "(- H (act A H))"),
    identity("(act L H)", "(- H (act A H))", L="(- I A)"),
    identity("(act (@ A B) H)", "(act A (act B H))"),
    identity("(act A (mix W H))", "(mix W (act A H))"),
    identity("(mix (@ W V) H)", "(mix V (mix W H))"),
    identity("(act A (mix W (act B (mix V H))))", "(mix (@ V W) (act (@ A B) H))"),
    identity("(act A (* s c H))", "(* c s (act A H))"),
    identity("(mix W (* s n H))", "(* n s (mix W H))"),
    identity("(act (* n A) (+ H X))", "(+ (* n (act A H)) (* n (act A X)))"),
    identity("(mix (+ W (* 2 V)) H)", "(+ (mix W H) (* 2 (mix V H)))"),
    identity("(* (call tanh (+ H X)) (call tanh s))", "(* (call tanh s) (call tanh (+ X H)))"),
    identity("(act A (* (call tanh s) H))", "(* (call tanh s) (act A H))"),
    identity("(/ (* H X) (+ 1 H))", "(* H (/ 1 (+ H 1)) X)"),
    identity("(act A (/ H (+ 1 X)))", "(- (* 3 (act A (/ H (+ X 1)))) (* 2 (act A (/ H (+ 1 X)))))"),
    identity("(* s (act A s))", "(* s s (act A 1))"),
]  # fmt: skip

DIFFERENT = [
    identity("(act A H)", "(act B H)"),
    identity("(act (@ A B) H)", "(act (@ B A) H)"),
    identity("(mix (@ W V) H)", "(mix (@ V W) H)"),
    identity("(act A (* n H))", "(* n (act A H))"),
    identity("(mix W (* c H))", "(* c (mix W H))"),
    identity("(act A (* H X))", "(* H (act A X))"),
    identity("(call tanh (+ H X))", "(+ (call tanh H) (call tanh X))"),
    identity("(act A (* (call tanh H) X))", "(* (call tanh H) (act A X))"),
    identity("(act A (/ H X))", "(/ (act A H) X)"),
    identity("(act A H)", "(mix A H)"),
    identity("(* s H)", "(* c H)"),
    identity("(act A s)", "s"),
    {**identity("H", "H"), "proof": "trust me"},
]  # fmt: skip


@pytest.mark.parametrize("entry", EQUAL, ids=lambda entry: entry["left"])
def test_equal_terms_are_accepted(entry: dict[str, Any]) -> None:
    check_obligation(entry)
    assert_equal_numbers(entry)


def test_terms_that_differ_are_refused() -> None:
    for entry in DIFFERENT:
        with pytest.raises(Rejected):
            check_obligation(entry)


scalars = st.sampled_from(["s", "2", "(call tanh s)", "(- s 1)"])
weights = scalars | st.sampled_from(["n", "(* s n)", "(/ n 3)"])
operators = st.recursive(
    st.sampled_from(["A", "B", "I"]),
    lambda o: st.one_of(
        st.builds("(+ {} {})".format, o, o),
        st.builds("(@ {} {})".format, o, o),
        st.builds("(* {} {})".format, weights, o),
    ),
    max_leaves=3,
)
matrices = st.recursive(
    st.sampled_from(["W", "V"]),
    lambda w: (
        st.builds("(- {} {})".format, w, w)
        | st.builds("(@ {} {})".format, w, w)
        | st.builds("(* {} {})".format, scalars, w)
    ),
    max_leaves=3,
)
fields = st.recursive(
    st.sampled_from(["H", "X", "c", "n", "1"]) | scalars,
    lambda f: st.one_of(
        st.builds("({} {} {})".format, st.sampled_from("+-*"), f, f),
        st.builds("(act {} {})".format, operators, f),
        st.builds("(mix {} {})".format, matrices, f),
        st.builds("(call {} {})".format, st.sampled_from(["tanh", "cos"]), f),
        st.builds("(/ {} (+ 3 (call tanh {})))".format, f, f),
    ),
    max_leaves=6,
)  # fmt: skip
LIKE = [["A", "B", "I"], ["W", "V"], ["s", "c", "n", "H", "X", "1", "2"], ["+", "-"], ["tanh", "cos"]]


@settings(max_examples=examples(400))
@given(fields, st.data())
def test_accepted_terms_have_equal_values(term: str, data: st.DataObject) -> None:
    """A term and the same term with one word changed or two words exchanged: accepted only where the numbers agree."""
    words = re.findall(r"[()]|[^\s()]+", term)
    places = [k for k, word in enumerate(words) if any(word in group for group in LIKE)]
    k = data.draw(st.sampled_from(places))
    group = next(group for group in LIKE if words[k] in group)
    others = [j for j in places if words[j] in group and words[j] != words[k]]
    exchanged = data.draw(st.booleans())
    if exchanged and others:
        j = data.draw(st.sampled_from(others))
        words[j], words[k] = words[k], words[j]
    else:
        words[k] = data.draw(st.sampled_from([word for word in group if word != words[k]]))
    entry = identity(term, " ".join(words))
    check_obligation(identity(term, term))
    try:
        check_obligation(entry)
        assert_equal_numbers(entry)
    except (Rejected, ValueError):  # numpy refuses weights of nodes times matrices: no term of the language
        return


def assert_equal_numbers(entry: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    shapes = {
        "H": (4, 3),
        "X": (4, 3),
        "s": (),
        "c": (3,),
        "n": (4, 1),
        "A": (4, 4),
        "B": (4, 4),
        "W": (3, 3),
        "V": (3, 3),
    }
    values = {name: rng.uniform(0.2, 1, shape) for name, shape in shapes.items()} | {"I": np.eye(4)}
    given = {name: read(body)[0] for name, body in entry["given"].items()}
    sides = [without_let(read(entry[side])[0], given) for side in ("left", "right")]
    left, right = (np.broadcast_to(_numbers(side, values), (4, 3)) for side in sides)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


def _numbers(term: Any, values: dict[str, Any]) -> Any:
    match term:
        case str():
            return values[term] if term in values else float(term)
        case ["act", word, x]:
            return _numbers(word, values) @ np.broadcast_to(_numbers(x, values), (4, 3))
        case ["mix", word, x]:
            return np.broadcast_to(_numbers(x, values), (4, 3)) @ _numbers(word, values)
        case ["call", name, x]:
            return getattr(np, name)(_numbers(x, values))
    parts = [_numbers(part, values) for part in term[1:]]
    return reduce({**COMPUTE, "@": operator.matmul}[term[0]], parts) if len(parts) > 1 else -parts[0]


def test_identities_of_the_tool_are_certified() -> None:
    made = rd.equivalent("BS", "-alpha*H + alpha*A@H + beta*(A@H - A@A@H)").certificate()
    assert [entry["claim"] for entry in made["obligations"]].count("identity") == 1
    assert check(made)[1] == 0
    for entry in made["obligations"]:
        if entry["claim"] == "identity":
            for side, old, new in (("left", "beta", "alpha"), ("right", "act A", "act I"), ("right", "+", "-")):
                assert old in entry[side]
                with pytest.raises(Rejected):
                    check_obligation({**entry, side: entry[side].replace(old, new, 1)})


def test_functions_with_parameters_are_one_word() -> None:
    made = rd.equivalent("phi(H) + phi(H) where phi learned", "2*phi(H) where phi learned").certificate()
    assert check(made) == (1, 0)


def test_what_needs_hypotheses_about_products_has_no_certificate() -> None:
    made = rd.equivalent("A@A@H", "A@H", given=["A@A = A"]).certificate()
    assert [entry["proof"] for entry in made["obligations"] if entry["claim"] == "identity"] == [None]


def test_polynomials_of_proofs() -> None:
    assert polynomial("(+ (* 2 x x) (- (/ 1 2)))", {"x"}) == {(("x", 2),): Fraction(2), (): Fraction(-1, 2)}
    with pytest.raises(Rejected, match="denominator"):
        polynomial("(/ 1 x)", {"x"})


# ---------------------------------------------------------------- mutants


def mutated(obligation: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy of an obligation with one number, sign, relation, case or index changed."""
    entry = copy.deepcopy(obligation)
    key = rng.choice([k for k in ("smt", "proof", "model") if entry.get(k)])
    if key == "smt":
        tokens = entry["smt"].split(" ")
        places = [k for k, t in enumerate(tokens) if t.strip("()") in SWAPS or t.strip("()").replace(".", "").isdigit()]
        if places:
            k = rng.choice(places)
            core = tokens[k].strip("()")
            new = SWAPS.get(core) or str(Fraction(core) + 1)
            tokens[k] = tokens[k].replace(core, new if new.replace(".", "").isdigit() or core in SWAPS else "7.0")
        entry["smt"] = " ".join(tokens)
    else:
        entry[key] = _changed(entry[key], rng)
    return entry


SWAPS = {
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
    "=": "distinct",
    "distinct": "=",
    "+": "-",
    "and": "or",
    "or": "and",
}


def _changed(part: Any, rng: random.Random) -> Any:
    if isinstance(part, dict) and part:
        key = rng.choice(sorted(part))
        return {**part, key: _changed(part[key], rng)}
    if isinstance(part, list) and part:
        k = rng.randrange(len(part))
        if rng.random() < 0.3:
            return part[:k] + part[k + 1 :]
        return [*part[:k], _changed(part[k], rng), *part[k + 1 :]]
    if isinstance(part, int):
        return part + rng.choice((-1, 1))
    if isinstance(part, str):
        return rng.choice(("0", "-1", "(- 1)", "3/7", f"(+ 1 {part})"))
    return part


@pytest.mark.parametrize("count", [250, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutated_certificates_are_rejected(certificates: list[dict[str, Any]], count: int) -> None:
    """Unless what is written is still true and proved: z3 looks at the few that pass."""
    rng = random.Random(count)
    rejected = 0
    for _ in range(count):
        before = rng.choice(rng.choice(certificates)["obligations"])
        after = mutated(before, rng)
        if after == before:
            continue
        try:
            check({"format": FORMAT, "obligations": [after]})
        except Rejected:
            rejected += 1
            continue
        if after.get("proof") or after.get("model"):
            solver = z3.Solver()
            solver.from_string(after["smt"])
            assert str(solver.check()) == after["claim"]
    assert rejected > 0.7 * count


def test_another_statement_needs_another_proof() -> None:
    made = rd.existence("F").certificate()
    entry = next(o for o in made["obligations"] if o["claim"] == "unsat")
    for text in (X + " (assert (> x 0))", entry["smt"].replace("(assert", "(assert (not true)) (assert", 1) + "("):
        with pytest.raises(Rejected):
            check({**made, "obligations": [{**entry, "smt": text}]})


# ---------------------------------------------------------------- the command


def test_exit_codes(certificates: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, without, bad, empty = (tmp_path / f"{name}.json" for name in ("good", "without", "bad", "empty"))
    write_certificate(good, certificates[1])
    entry = {**certificates[1]["obligations"][0], "proof": None, "model": None}
    write_certificate(without, {**certificates[1], "obligations": [entry]})
    bad.write_text("{}")
    write_certificate(empty, {"format": FORMAT, "statement": {}, "steps": [], "obligations": []})
    assert main([str(good)]) == 0
    assert main([str(without)]) == 2
    assert main([str(bad)]) == 1
    assert main([str(tmp_path / "missing.json")]) == 1
    assert main([str(empty)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "1 without a proof" in printed[1]
    assert "rejected" in printed[2]
    assert "no obligations" in printed[4]


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '{"format": "rdgraph-certificate-1"}', '{"format": 2}', "{" * 100_000, "[" * 100_000]
)
def test_torn_files_are_rejected(text: str, tmp_path: Path) -> None:
    file = tmp_path / "torn.json"
    file.write_text(text)
    assert main([str(file)]) == 1


def test_written_files_read_back(certificates: list[dict[str, Any]], tmp_path: Path) -> None:
    write_certificate(tmp_path / "c.json", certificates[0])
    assert json.loads((tmp_path / "c.json").read_text()) == certificates[0]
