"""Equivalence: equal systems agree on random states, witnesses really differ and are admissible, conditions suffice."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.adversary import expressions, formulas, graphs, rewriting
from tests.adversary.answers import Equivalence
from tests.adversary.assumptions import SIGNS, Unsatisfied
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "equivalence"
Array = np.ndarray
Random = np.random.Generator
CASES = 10


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    """A pair: rewritten, altered, by an identity, with hypotheses, or run at another speed."""
    letters = sorted(n for n, k in drawn.kinds if k == "scalar")
    kind = rng.choice(["rewritten", "altered", "identity", "given", "rescaled"], p=[0.3, 0.2, 0.2, 0.2, 0.1])
    given: tuple[str, ...] = ()
    rescale = bool(kind == "rescaled")
    other = rewriting.rewritten(drawn.body, rng)
    if kind == "altered" or (kind == "given" and rng.random() < 0.6):
        other = rewriting.altered(drawn.body, letters, rng)
    if kind == "given":
        given = _hypotheses(letters, rng)
    if rescale:
        factor = rng.choice(["2", "0.5", *letters[:2], "(-1)"])
        other = f"{factor}*({drawn.body})"
    return [Question(FAMILY, "equivalent", {"other": _declared(drawn, other), "given": given, "rescale_time": rescale})]


def drawn_pair(rng: Random) -> tuple[Drawn, Question]:
    """A system and another that an identity makes equal, or that only looks so."""
    pairs = rewriting.IDENTITIES if rng.random() < 0.6 else rewriting.LOOKALIKES
    left, right = pairs[int(rng.integers(len(pairs)))]
    if rng.random() < 0.5:
        left, right = right, left
    wrap = rng.choice(["{}", "-L@H + {}", "beta*({})", "A@({})", "alpha*L@H - beta*({})", "({})*H", "{} + gamma*H0"])
    bodies = [wrap.format(side) for side in (left, right)]
    kinds = {n: "node" if n == "M" else "scalar" for b in bodies for n in expressions.names(b) - set("HAIL") - {"H0"}}
    drawn = Drawn(bodies[0], tuple(sorted(kinds.items())), recipe="pair")
    return drawn, Question(FAMILY, "equivalent", {"other": bodies[1], "given": (), "rescale_time": False})


def _declared(drawn: Drawn, body: str) -> str:
    used = expressions.names(body)
    kinds = tuple((n, k) for n, k in drawn.kinds if n in used)
    return Drawn(body, kinds, tuple(s for s in drawn.statements if _about(s, used)), learned=drawn.learned).text


def _about(statement: str, used: set[str]) -> bool:
    """Whether a statement speaks of used letters only."""
    return set(re.findall(r"[A-Za-z_]\w*", statement)) - set(SIGNS) <= used


def _hypotheses(letters: list[str], rng: Random) -> tuple[str, ...]:
    """Hypotheses about coefficients or operators; some contradict the assumptions or each other."""
    options = ["A@A = A"]
    if letters:
        x = str(rng.choice(letters))
        options += [f"{x} = 0", f"{x} = 1", f"{x} = -1", f"{x} = 2"]
    if len(letters) > 1:
        x, y = map(str, rng.permutation(letters)[:2])
        options += [f"{x} = {y}", f"{x} = 2*{y}", f"{x} = -{y}", f"{x} = {y}**2"]
    chosen = [str(rng.choice(options))]
    if rng.random() < 0.2:
        chosen.append(str(rng.choice(options)))
    return tuple(dict.fromkeys(chosen))


# ---------------------------------------------------------------------- checking
def check(drawn: Drawn, question: Question, answer: Equivalence, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    other = question.arguments["other"].partition(" where ")[0]
    given, rescale = tuple(question.arguments["given"]), question.arguments["rescale_time"]
    match answer.status:
        case "proved":
            return _differs(drawn, other, given, rescale, rng)
        case "holds if":
            return next(
                filter(None, (_insufficient(drawn, other, given, c, rescale, rng) for c in answer.conditions)), None
            )
        case "refuted":
            return _bad_witness(drawn, other, given, rescale, answer)
    return f"expected proved, holds if or refuted, got {answer.status}"


def _assigned(values: Mapping[str, Any], equations: tuple[str, ...]) -> dict[str, Any]:
    """Values with "x = expression" put in, one after the other; relations between operators are left to the graph.

    Twice, since a later equation may change what an earlier one has read.
    """
    found = dict(values)
    for name, body in 2 * [*map(_sides_of, equations)]:
        if name.isidentifier():
            value = np.asarray(_value_of(body, found), dtype=float)
            found[name] = np.broadcast_to(value, np.shape(found.get(name, value))).copy()
    return found


def _sides_of(equation: str) -> tuple[str, str]:
    left, _, right = equation.partition("=")
    return left.strip(), right.strip()


def _value_of(body: str, values: Mapping[str, Any]) -> Any:
    """A coefficient expression: in the language where letters have shapes, as a formula (sqrt, ...) elsewhere."""
    if any(np.ndim(values.get(n, 0.0)) for n in formulas.letters(body)):
        return expressions.evaluate(body, values)
    return formulas.evaluate(body, values)


def _consistent(values: Mapping[str, Any], equations: tuple[str, ...]) -> bool:
    """Whether every equation holds: a later one may have undone an earlier one."""
    sides = [s for s in map(_sides_of, equations) if s[0].isidentifier()]
    return all(np.allclose(values[name], _value_of(body, values)) for name, body in sides if name in values)


def _projection(rng: Random) -> graphs.Graph:
    """A graph with A@A = A: complete blocks with self-loops."""
    blocks = [graphs.Graph("block", np.ones((k, k))) for k in rng.integers(1, 4, 2)]
    return graphs.union(blocks[0], blocks[1])


def _case(drawn: Drawn, given: tuple[str, ...], rng: Random, conditions: tuple[str, ...] = ()) -> Field | None:
    """A graph and coefficients that satisfy equations and assumptions; None where there are none."""
    equations, fixed = (*given, *conditions), _fixed(given)
    projection = any(e.replace(" ", "").startswith("A@A=") for e in equations)
    normalisation = "row" if projection else str(rng.choice(["row", "symmetric", "column"]))
    graph = _projection(rng) if projection else graphs.draw(rng, normalisation)
    for _ in range(150):
        try:
            values = drawn.values(rng, graph.nodes, 2)
        except Unsatisfied:
            return None
        values = _assigned({**values, "time_factor": float(np.exp(rng.normal()))}, equations)
        own = {n: v for n, v in values.items() if n in drawn.letters}
        if _consistent(values, equations) and drawn.assumed.satisfied(own, fixed) and _is_mask(own):
            return Field(drawn, graph, normalisation, values, 2)
    return None


def _fixed(given: tuple[str, ...]) -> set[str]:
    """The letters that hypotheses such as "beta = 0" fix."""
    return {_sides_of(g)[0] for g in given}


def _is_mask(values: Mapping[str, Any]) -> bool:
    return "M" not in values or bool(np.isin(values["M"], (0.0, 1.0)).all())


def _sides(field: Field, other: str, rng: Random) -> tuple[Array, Array, Array]:
    size = float(np.exp(rng.uniform(-1, 0.7)))  # larger ones drown differences of exponentials in rounding
    state, initial = size * rng.normal(size=(2, field.graph.nodes, 2))
    second = Field(Drawn(other, field.drawn.kinds), field.graph, field.normalisation, field.values, 2)
    return field(state, initial), second(state, initial), state


def _gap(left: Array, right: Array) -> float:
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return 0.0
    return float(np.abs(left - right).max() / (1 + np.abs(left).max() + np.abs(right).max()))


def _differs(drawn: Drawn, other: str, given: tuple[str, ...], rescale: bool, rng: Random) -> str | None:
    for _ in range(CASES):
        field = _case(drawn, given, rng)
        if field is None:
            return None  # the hypotheses contradict the assumptions: anything follows
        left, right, state = _sides(field, other, rng)
        if rescale:
            factor = float(np.sum(left * right) / max(float(np.sum(right * right)), 1e-300))
            if np.abs(left).max() > 1e-9 and factor <= 0:
                return f"the best factor is {factor}, at H = {state.tolist()}, {field.told()}"
            right = factor * right
        if _gap(left, right) > 1e-9:
            return f"left {left.tolist()}, right {right.tolist()} at H = {state.tolist()}, {field.told()}"
    return None


def _insufficient(
    drawn: Drawn, other: str, given: tuple[str, ...], condition: tuple[str, ...], rescale: bool, rng: Random
) -> str | None:
    for _ in range(CASES // 2):
        field = _case(drawn, given, rng, condition)
        if field is None:
            possible = _case(drawn, given, rng) is not None
            return f"told equal if {condition}, which the assumptions exclude" if possible else None
        left, right, state = _sides(field, other, rng)
        told = any(_sides_of(part)[0] == "time_factor" for part in condition)
        fitted = float(np.sum(left * right) / max(float(np.sum(right * right)), 1e-300))
        factor = 1.0 if not rescale else float(field.values["time_factor"]) if told else fitted
        if factor <= 0 and np.abs(left).max() > 1e-9:
            return f"the time factor is {factor}; {field.told()}"
        if _gap(left, factor * right) > 1e-9:
            return (
                f"under {condition}: left {left.tolist()}, right {right.tolist()}, H = {state.tolist()}, {field.told()}"
            )
    return None


def _value(text: str) -> Array:
    """A printed array of numbers and fractions."""

    def entries(node: ast.expr) -> Any:
        if isinstance(node, ast.List):
            return [entries(e) for e in node.elts]
        return formulas.evaluate(ast.unparse(node), {})

    return np.asarray(entries(ast.parse(text, mode="eval").body), dtype=float)


def _bad_witness(drawn: Drawn, other: str, given: tuple[str, ...], rescale: bool, answer: Equivalence) -> str | None:
    """The printed witness is evaluated: both sides must differ, every assumption and hypothesis must hold."""
    printed = {name: _value(text) for name, text in answer.letters}
    coefficients = {n: v for n, v in _assigned(printed, given).items() if n in drawn.letters}
    if rescale or set(drawn.letters) - set(coefficients):
        return None  # a factor is excluded by all states together, a letter that is not printed by none
    if not drawn.assumed.satisfied(coefficients, _fixed(given)) or not _is_mask(coefficients):
        return f"the witness violates the assumptions: {dict(answer.letters)}"
    if not _consistent({**coefficients, **{n: v for n, v in printed.items() if n in drawn.letters}}, given):
        return f"the witness violates {given}: {dict(answer.letters)}"
    return _operator_fault(printed, given, answer) or _same_sides(drawn, other, printed, coefficients, answer)


def _witness_graph(answer: Equivalence) -> graphs.Graph:
    weights = np.zeros((answer.nodes, answer.nodes))
    for i, j in answer.edges:
        weights[i, j] = weights[j, i] = 1.0
    return graphs.Graph("the witness", weights)


def _operator_fault(printed: Mapping[str, Array], given: tuple[str, ...], answer: Equivalence) -> str | None:
    """A must be an operator of the printed graph and satisfy what is given about it."""
    graph = _witness_graph(answer)
    A = printed.get("A", graph.operator("row"))
    if "A@A = A" in given:
        return None if np.allclose(A @ A, A) else f"the witness violates A@A = A: {A.tolist()}"
    if not any(np.allclose(A, graph.operator(n)) for n in ("row", "symmetric", "column", "none")):
        return f"A is no operator of the graph of the witness: {A.tolist()}"
    return None


def _same_sides(
    drawn: Drawn, other: str, printed: Mapping[str, Array], coefficients: Mapping[str, Any], answer: Equivalence
) -> str | None:
    A = printed.get("A", _witness_graph(answer).operator("row"))
    shape = next((printed[n].shape for n in ("H", "H0") if n in printed), (answer.nodes, 1))
    state, initial = (printed.get(n, np.zeros(shape)) for n in ("H", "H0"))
    sides = [
        Field(Drawn(body, drawn.kinds), graphs.Graph("A", A), "exact", coefficients, shape[1])(state, initial)
        for body in (drawn.body, other)
    ]
    if _gap(*sides) < 1e-10:
        return f"both sides of the witness are {sides[0].tolist()}: {dict(answer.letters)}"
    return None
