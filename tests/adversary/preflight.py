"""Preflight: what is called safe is run with the method and the step, and must not grow, drift or leave its box."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.adversary import formulas, graphs, methods
from tests.adversary.answers import Preflight
from tests.adversary.boxes import numbers
from tests.adversary.integration import follow
from tests.adversary.outcome import Question
from tests.adversary.responses import curve, flow_matrix, stepped_matrix
from tests.adversary.systems import Drawn, Field

FAMILY = "preflight"
Array = np.ndarray
Random = np.random.Generator
CASES = 5


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    """A run with numbers for every coefficient, sometimes with a graph."""
    if drawn.has("node", "matrix", "channel"):
        return []
    values = {n: round(float(v), 3) for n, v in drawn.values(rng).items()}
    if not drawn.assumed.satisfied(values):
        return []
    method = str(rng.choice(["exact", "euler", "euler", "rk4", "heun"]))
    normalisation = str(rng.choice(["symmetric", "row"]))
    settings: dict[str, Any] = {
        "normalisation": normalisation,
        "T": float(rng.choice([1.0, 2.0, 5.0])),
        "method": method,
    }
    settings["step"] = None if method == "exact" else float(rng.choice([0.05, 0.1, 0.25, 0.5, 1.0]))
    settings["values"] = values
    if rng.random() < 0.4:
        settings["graph"] = graphs.draw(rng, normalisation, one_way=False, loops=False).weights.tolist()
    return [Question(FAMILY, "preflight", settings)]


def check(drawn: Drawn, question: Question, answer: Preflight, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    if answer.status not in ("safe", "safe if"):
        return _safe_after_all(drawn, question, answer)
    settings = question.arguments
    for _ in range(CASES):
        field = _field(drawn, settings, rng, isolated="no node is without incoming edges" not in answer.verdict)
        box = _stated_box(answer, field)
        witness = _kept(field, settings, box, rng) if box else _tame(field, settings, answer, rng)
        witness = witness or _amplified(field, settings, answer, rng)
        if witness:
            return f"{witness}; {field.told()}"
    return None


def _field(drawn: Drawn, settings: dict[str, Any], rng: Random, *, isolated: bool) -> Field:
    normalisation = settings["normalisation"]
    weights = settings.get("graph")
    graph = (
        graphs.draw(rng, normalisation, isolated=isolated)
        if weights is None
        else graphs.Graph("given", np.array(weights))
    )
    return Field(drawn, graph, normalisation, {n: np.asarray(v) for n, v in settings["values"].items()})


def _stated_box(answer: Preflight, field: Field) -> tuple[float, float, bool] | None:
    """The box that H0 has to lie in, and whether a step is promised to keep it, not the flow alone."""
    for topic in ("step", "existence"):
        for box in (line.box for line in answer.findings if line.topic == topic and line.box is not None):
            lower, upper = (float(formulas.evaluate(face, numbers(field, 1.0))) for face in box)
            return lower, upper, topic == "step"
    return None


def _kept(field: Field, settings: dict[str, Any], box: tuple[float, float, bool], rng: Random) -> str | None:
    lower, upper, stepped = box
    start = rng.uniform(lower, upper, (field.graph.nodes, 1))
    if rng.random() < 0.5:
        start = rng.choice([lower, upper], start.shape)
    end, method = settings["T"], settings["method"]
    if method == "exact" or not stepped:
        after = follow(lambda x: field(x, start), start, end).state
    else:
        after = methods.run(method, lambda x: field(x, start), start, end, settings["step"])
    tolerance = 1e-5 * (1 + abs(lower) + abs(upper))
    if np.isfinite(after).all() and lower - tolerance <= after.min() and after.max() <= upper + tolerance:
        return None
    return f"from {start.ravel().tolist()} in [{lower}, {upper}] the run ends at {np.ravel(after).tolist()}"


def _tame(field: Field, settings: dict[str, Any], answer: Preflight, rng: Random) -> str | None:
    """Without a box: linear systems follow their exact flow, others at least do not blow up."""
    end, method, step = settings["T"], settings["method"], settings["step"]
    start = rng.normal(size=(field.graph.nodes, 1))
    if not answer.has("fidelity"):
        path = follow(lambda x: field(x, start), start, end)
        return f"blows up at t = {path.end:.6g} from {start.ravel().tolist()}" if path.blew_up else None
    if not field.graph.is_undirected or field.normalisation != "symmetric":
        return None
    exact, computed = flow_matrix(field, end), stepped_matrix(field, end, method, step)
    _, p, q = curve(field)
    allowed = 0.1 * max(float(np.linalg.norm(exact, 2)), _largest_gain(p, q, end))
    error = float(np.linalg.norm(computed - exact, 2))
    if not error <= allowed * 1.01 + 1e-9:
        return f"called safe, but {method} differs from the flow by {error:.6g} > {allowed:.6g}"
    return None


def _step_claim(answer: Preflight) -> tuple[str, bool] | None:
    """The limit of a step that holds at every state, and whether only as long as |h| <= R."""
    for line in answer.findings:
        if line.limit is not None and line.keeps in ("stability", "slopes"):
            return line.limit, "R" in formulas.letters(line.limit)
    return None


def _amplified(field: Field, settings: dict[str, Any], answer: Preflight, rng: Random) -> str | None:
    """Nonlinear systems, undirected graphs: a damped mode at some state that the step makes grow."""
    claim, linear = _step_claim(answer), answer.has("fidelity")
    if claim is None or linear or settings["step"] is None or not field.graph.is_undirected:
        return None
    for radius in np.exp(rng.uniform(-3, 3, 6)):
        if claim[1] and not settings["step"] <= formulas.evaluate(claim[0], numbers(field, float(radius))):
            continue
        height = rng.uniform(-radius, radius, (field.graph.nodes, 1))
        modes = np.linalg.eigvals(field.jacobian(height))
        witness = methods.amplified(settings["method"], modes, settings["step"])
        if witness and np.abs(modes.imag).max() < 1e-9:
            return f"{witness} at {height.ravel().tolist()}"
    return None


def _largest_gain(p: Array, q: Array, end: float) -> float:
    small = np.abs(p) < 1e-9
    with np.errstate(all="ignore"):
        return float(
            np.abs(np.exp(end * p) + q * np.where(small, end, np.expm1(end * p) / np.where(small, 1, p))).max()
        )


def _safe_after_all(drawn: Drawn, question: Question, answer: Preflight) -> str | None:
    """ "Unsafe" because of growth must grow: checked where the system is linear."""
    settings = question.arguments
    reasons = {line.topic for line in answer.findings if line.status == "problem"}
    if reasons == {"step"} and not answer.has("fidelity"):
        return _step_after_all(drawn, settings)
    if reasons != {"growth"}:
        return None
    field = Field(drawn, graphs.pair(), "row", {n: np.asarray(v) for n, v in settings["values"].items()})
    _, p, _ = curve(field)
    if settings["T"] * p.max() < np.log(1e6) - 1e-6:
        return f"told to grow beyond 1e6, but T max p = {settings['T'] * p.max():.6g}"
    return None


def _step_after_all(drawn: Drawn, settings: dict[str, Any]) -> str | None:
    """A step of a nonlinear system that is called too large damps every damped mode at states equal in all nodes."""
    graph = graphs.cycle(40)
    field = Field(drawn, graph, "symmetric", {n: np.asarray(v) for n, v in settings["values"].items()})
    sizes = np.concatenate([np.linspace(-6, 6, 61), [-40.0, 40.0, -300.0, 300.0]])
    jacobians = (field.jacobian(np.full((graph.nodes, 1), h)) for h in sizes)
    modes = [np.linalg.eigvals(j) for j in jacobians if np.isfinite(j).all()]
    if any(methods.amplified(settings["method"], m, settings["step"] * 1.02) for m in modes):
        return None
    return f"called too large, but a step of {settings['step']} damps every damped mode at equal states; {field.told()}"
