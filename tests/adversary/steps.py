"""Step limits: modes that the flow damps stay damped up to the limit and not beyond; boxes are kept, and sharply so."""

from __future__ import annotations

import re

import numpy as np

from tests.adversary import formulas, graphs, methods, slopes
from tests.adversary.answers import Step
from tests.adversary.boxes import numbers
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "steps"
Array = np.ndarray
Random = np.random.Generator
CASES = 10
#: Modes that are smaller are no modes: a field that is zero has them by rounding.
ROUNDING = 1e-9


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    method = "euler" if rng.random() < 0.55 else str(rng.choice(sorted(methods.TABLEAUX)))
    normalisation = str(rng.choice(["symmetric", "row"]))
    return [Question(FAMILY, "step_limit", {"method": method, "normalisation": normalisation})]


def check(drawn: Drawn, question: Question, answer: Step, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    method, normalisation = question.arguments["method"], question.arguments["normalisation"]
    checks = {
        "stability": _stable, "box": _box_kept, "linearised": _linearised, "slopes": slopes.amplified,
        "equal slopes": slopes.amplified, "distances": slopes.separated,
    }  # fmt: skip
    return checks[answer.keeps](drawn, method, normalisation, answer, rng)


def _limit(answer: Step, field: Field) -> float:
    """The limit for the graph: the least one where it is another for nodes with and without the mask."""
    given = numbers(field, 1.0)
    masks: list[dict[str, float]] = [{"M": 0.0}, {"M": 1.0}] if "M" in formulas.letters(answer.value) else [{}]
    values = [formulas.evaluate(answer.value, given | mask) for mask in masks]
    if any(isinstance(value, complex) for value in values):
        return float("nan")
    return min(abs(float(value)) if np.isinf(value) else float(value) for value in values)


def _stable(drawn: Drawn, method: str, normalisation: str, answer: Step, rng: Random) -> str | None:
    witness = _directed(drawn, method, answer, rng)
    if witness:
        return witness
    for _ in range(CASES):
        graph = graphs.draw(rng, normalisation, one_way=answer.one_way)
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        limit = _limit(answer, field)
        if not limit > 0:
            return f"the limit is {limit}; {field.told()}"
        modes = np.linalg.eigvals(field.generator())
        for share in (1.0, 0.5, 0.9, 0.1):
            witness = methods.amplified(method, modes, min(limit, 1e6) * share)
            if witness:
                return f"{witness}, limit {limit:.9g}; {field.told()}"
    return _sharp(drawn, method, answer, rng)


def _directed(drawn: Drawn, method: str, answer: Step, rng: Random) -> str | None:
    """At the step told for directed graphs no eigenvalue of the step's matrix exceeds 1."""
    if answer.directed is None:
        return None
    for _ in range(CASES):
        graph = graphs.directed(rng)
        field = Field(drawn, graph, "row", drawn.values(rng, graph.nodes))
        limit = formulas.evaluate(answer.directed, numbers(field, 1.0))
        gains = np.abs(methods.stability(method, min(limit, 1e6) * np.linalg.eigvals(field.generator())))
        if gains.max() > 1 + 1e-7:
            return (
                f"a mode grows by {gains.max():.9g} in a step of {limit:.9g}, told for directed graphs; {field.told()}"
            )
    return None


def _sharp(drawn: Drawn, method: str, answer: Step, rng: Random) -> str | None:
    """Beyond the limit some mode of a long even cycle grows; without a limit nothing is damped."""
    for _ in range(3):
        field = Field(drawn, graphs.cycle(80), "symmetric", drawn.values(rng, 80))
        limit = _limit(answer, field)
        modes = np.linalg.eigvalsh(field.generator()).astype(complex)
        beyond = 1.05 * limit if np.isfinite(limit) else 1e9
        scale = np.abs(modes).max()
        noticeable = modes[modes.real < -max(1e-3 * scale, ROUNDING)]
        strongest = -noticeable.real.min() if len(noticeable) else 0.0
        if len(noticeable) and strongest > 0.05 * scale and not methods.amplified(method, noticeable, beyond):
            return f"called the largest step, {limit:.9g}, but {beyond:.9g} damps every damped mode; {field.told()}"
    return None


def _box_kept(drawn: Drawn, method: str, normalisation: str, answer: Step, rng: Random) -> str | None:
    assert answer.box is not None
    for _ in range(CASES):
        graph = graphs.draw(rng, normalisation, loops=False, isolated="without incoming edges" not in answer.assumes)
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        limit = _limit(answer, field)
        lower, upper = (formulas.evaluate(t, numbers(field, 1.0)) for t in answer.box)
        if isinstance(lower, complex) or isinstance(upper, complex) or not lower <= upper:
            return f"the box [{lower}, {upper}] is none; {field.told()}"
        if not limit > 0:
            return f"the limit is {limit}; {field.told()}"
        for share in (1 - 1e-9, 0.4):
            witness = _leaves_box(method, field, lower, upper, min(limit, 1e6) * share, rng)
            if witness:
                return f"{witness}, limit {limit:.9g}; {field.told()}"
    return _sharp_box(drawn, normalisation, answer, rng) if answer.sharp else None


def _leaves_box(method: str, field: Field, lower: float, upper: float, step: float, rng: Random) -> str | None:
    n = field.graph.nodes
    tolerance = 1e-7 * (1 + abs(lower) + abs(upper))
    for _ in range(8):
        state = rng.choice([lower, upper], (n, 1)) if rng.random() < 0.5 else rng.uniform(lower, upper, (n, 1))
        state[rng.integers(n)] = rng.uniform(lower, upper)
        after = methods.step(method, field, state, step)
        gap = max(lower - after.min(), after.max() - upper)
        if gap > tolerance + 1e-9 * np.abs(after).max():
            return f"a step of {step:.9g} leaves [{lower:.9g}, {upper:.9g}] by {gap:.6g} from {state.ravel().tolist()}"
    return None


def _sharp_box(drawn: Drawn, normalisation: str, answer: Step, rng: Random) -> str | None:
    """Beyond the limit the box is left for some coefficients: one entry inside, all it collects from on a face."""
    if normalisation == "symmetric" and re.search(r"@[AL]|\*\*[23]@|[)]@", drawn.body):
        return None  # walks of length two come back in an undirected graph
    assert answer.box is not None
    told = ""
    for _ in range(30):
        graph = graphs.chain(6) if normalisation == "row" else graphs.star(int(rng.integers(2, 6)))
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        limit = _limit(answer, field)
        lower, upper = (float(formulas.evaluate(t, numbers(field, 1.0))) for t in answer.box)
        beyond = 1.05 * limit if np.isfinite(limit) else 1e9
        if upper - lower < 1e-6:
            continue
        told = f"called sharp at {limit:.9g}, but {beyond:.9g} keeps [{lower:.9g}, {upper:.9g}] on {field.told()}"
        inside = np.linspace(lower, upper, 101)
        if any(_escapes(field, face, h, lower, upper, beyond) for face in (lower, upper) for h in inside):
            return None
    return told or None


def _escapes(field: Field, face: float, entry: float, lower: float, upper: float, step: float) -> bool:
    state = np.full((field.graph.nodes, 1), face)
    state[0] = entry
    after = (state + step * field(state))[0, 0]
    return bool(after < lower - 1e-12 or after > upper + 1e-12)


def _linearised(drawn: Drawn, method: str, normalisation: str, answer: Step, rng: Random) -> str | None:
    """At the constant states that are named, on regular graphs: every mode is damped and stays so."""
    found = re.search(r"constant states (.*?) \((?:regular|row)", answer.means)
    if found is None:
        return None
    for _ in range(CASES):
        regular = (graphs.pair(), graphs.cycle(int(rng.integers(3, 9))), graphs.complete(5))
        graph = regular[int(rng.integers(3))]
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        limit = _limit(answer, field)
        if not limit > 0:
            return f"the limit is {limit}; {field.told()}"
        for place in re.split(r", (?![^(]*\))", found.group(1)):
            height = formulas.evaluate(place, numbers(field, 1.0))
            if isinstance(height, complex) and "where they are real" in answer.means:
                continue
            if isinstance(height, complex):
                return f"the constant state {place} = {height} is not real; {field.told()}"
            state = np.full((graph.nodes, 1), height)
            slopes = field.jacobians(state)
            if not np.isfinite(slopes).all():
                continue
            if np.abs(field.precisely(state)).max() > 1e-6 * (1 + abs(height)) * (1 + np.abs(slopes).max()):
                return f"{place} = {height} is no constant state; {field.told()}"
            step = min(limit, 1e6) * rng.choice([1.0, 0.5]) * (1.0 if len(slopes) == 1 else 1 - 1e-5)
            witness = methods.amplified(method, np.linalg.eigvals(slopes).ravel(), step)
            if witness:
                return f"{witness}, limit {limit:.9g}, at {place}; {field.told()}"
    return None
