"""Existence: what is called global must not blow up, what is called blow-up must, as and when it was told."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tests.adversary import formulas, graphs
from tests.adversary.answers import BlowUp, Existence
from tests.adversary.integration import Journey, Path, follow, journey
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "existence"
Array = np.ndarray
Random = np.random.Generator
#: Sets of coefficients tried against a claim for all of them, and in search of one that a claim for some needs.
CASES, SOME = 4, 24


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    return [Question(FAMILY, "existence")]


def check(drawn: Drawn, question: Question, answer: Existence, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    if answer.status == "global":
        return _blows_up_somewhere(drawn, rng)
    for blow_up in answer.blow_ups:
        witness = _against(drawn, blow_up, answer.reason, rng)
        if witness:
            return witness
    complete = not any(words in answer.reason for words in ("isolated node (", "other blow-ups are not excluded"))
    for way in (1, -1) if complete else ():
        conditions = [None if b.example else b.condition for b in answer.blow_ups if b.way == way]
        witness = (
            _too_narrow(drawn, way, [c for c in conditions if c is not None], answer.reason, rng)
            if None not in conditions
            else ""
        )
        if witness:
            return witness
    return None


def _blows_up_somewhere(drawn: Drawn, rng: Random) -> str | None:
    for case in range(3):
        normalisation = str(rng.choice(["symmetric", "row", "column", "row"]))
        graph = graphs.draw(rng, normalisation)
        channels = 2 if drawn.has("matrix") else 1
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes, channels), channels)
        start = 10.0 ** (case % 4) * rng.normal(size=(graph.nodes, channels))
        if case % 2:
            start = np.abs(start) * (1 if case % 4 == 1 else -1)
        path = follow(lambda x, f=field, h=start: f(x, h), start, 3.0)  # type: ignore[misc]
        if path.blew_up and _superlinear(field, path, start) and not _is_noise(field, start):
            return f"blows up at t = {path.end:.6g} from H0 = {start.tolist()}, {field.told()}"
    return None


def _superlinear(field: Field, path: Path, start: Array) -> bool:
    """|f| / |H| keeps growing along the last direction: growth is not exponential."""
    state = path.state.reshape(start.shape)
    direction = state / np.abs(state).max()
    size = np.abs(state).max()
    rates = [np.abs(field(size * f * direction, start)).max() / (size * f) for f in (1e-3, 1.0)]
    return bool(rates[1] > 3 * rates[0])


def _is_noise(field: Field, start: Array) -> bool:
    """Whether somewhere on the way f is rounding: differences of large numbers that should cancel."""
    worst = 0.0

    def watched(state: Array) -> Array:
        nonlocal worst
        found = field(state, start)
        exact = field(state.astype(np.longdouble), start.astype(np.longdouble))
        worst = max(worst, float(np.nanmax(np.abs(found - exact)) / (np.nanmax(np.abs(found)) + 1e-300)))
        return found

    with np.errstate(all="ignore"):
        follow(watched, start, 3.0)
    return worst > 1e-6


# ---------------------------------------------------------------------- claimed blow-ups
def _scalar(drawn: Drawn, rng: Random, reason: str = "") -> Field:
    """f on states equal in all nodes of a graph with A@1 = 1, or without edges where the reason speaks of such nodes.

    Node coefficients differ from node to node, unless the reason presumes that they do not.
    """
    alone = graphs.Graph("two isolated nodes", np.zeros((2, 2)))
    values = drawn.values(rng, 2)
    if re.search(r"with [\w ]+ equal in all nodes", reason):
        values = {
            n: np.full_like(v, np.ravel(v)[0]) if drawn.letters.get(n) == "node" else v for n, v in values.items()
        }
    if "the identity" in reason:
        values |= {n: np.eye(len(values[n])) for n, kind in drawn.kinds if kind == "matrix"}
    return Field(drawn, alone if "isolated node (" in reason else graphs.pair(), "row", values)


def _letters(field: Field, start: float, node: int) -> dict[str, Any]:
    found: dict[str, Any] = {"h0": start}
    for name, kind in field.drawn.kinds:
        value = np.asarray(field.values[name])
        if kind != "matrix":
            found[name] = float(value.ravel()[node if kind == "node" else 0])
    return found


def _against(drawn: Drawn, claim: BlowUp, reason: str, rng: Random) -> str | None:
    """Starts that satisfy the condition must blow up on the claimed side.

    Where the claim depends on a sign, one set of coefficients that leads to it is enough.
    """
    failures = []
    sometimes = "depending" in reason
    for _ in range(SOME if sometimes else CASES):
        field = _scalar(drawn, rng, reason)
        for start in _starts(field, claim, rng):
            witness = _survives(field, claim, start)
            if witness is None and sometimes:
                return None
            if witness and not sometimes:
                return f"{witness}; {field.told()}"
            failures += [f"{witness}; {field.told()}"] if witness else []
    if failures:
        return f"{len(failures)} starts, and no sign of the coefficients leads to it: {failures[0]}"
    return None


def _starts(field: Field, claim: BlowUp, rng: Random) -> list[float]:
    """Starts well inside the condition, or far out where there is none."""
    if claim.condition is None:
        return [h for h in (claim.way * 1e4, claim.way * 1e6) if _met(claim.where, field, h)]
    sizes = np.exp(rng.uniform(-3, 4, 12)) * rng.choice([-1.0, 1.0], 12)
    inside = [float(h) for h in sizes if _met(claim.condition, field, float(h))]
    return inside[:2]


def _met(condition: str, field: Field, start: float) -> bool:
    """The condition holds at this start and, so that rounding does not matter, near it; in every node."""
    return all(
        formulas.holds(condition, _letters(field, start + shift * (0.05 * abs(start) + 0.01), node))
        for shift in (-1, 0, 1)
        for node in (0, 1)
    )


def _claimed_times(claim: BlowUp, field: Field, start: float) -> list[float] | None:
    if claim.time is None:
        return None
    found = [formulas.evaluate(claim.time, _letters(field, start, node)) for node in (0, 1)]
    return [float("nan") if isinstance(t, complex) else float(t) for t in found]


def _survives(field: Field, claim: BlowUp, start: float) -> str | None:
    """Why a solution does not blow up as claimed; None also where neither quadrature nor integration can tell."""
    times = _claimed_times(claim, field, start)
    if times is not None and not all(np.isfinite(times)):
        return f"the time {claim.time} is {times} at h0 = {start}"
    if times is not None and min(times) < 0:
        return f"the time {claim.time} is negative, {min(times)}, at h0 = {start}"
    nodes = _apart(field)
    journeys = [_journey(field, start, claim.way, node) for node in nodes]
    for way_out, node in zip(journeys, nodes, strict=True):
        witness = _stopped(field, start, claim.way, node, way_out) if way_out else None
        if witness:
            return witness
    known = [way_out for way_out in journeys if way_out and way_out.blows_up]
    if not known or len(known) < len(journeys):
        return None
    ends = [way_out.time for way_out in known]
    if all(way_out.is_followed for way_out in known):
        state = np.full((2, 1), start)
        path = follow(lambda x: field(x, state), state, 2 * max(ends))
        if not path.blew_up:
            if not path.finished:
                return None  # beyond every bound too fast to tell, or stuck
            return f"from h0 = {start} the solution lives at t = {path.end:.6g}, h = {path.state.tolist()}"
        side = np.sign(path.state[np.abs(path.state).argmax()])
        if side != claim.way:
            return f"from h0 = {start} it blows up to the side {side:+.0f}"
        ends = [path.end]
    if times is not None and not min(times) * 0.98 <= min(ends) <= max(times) * 1.02:
        return f"from h0 = {start} it blows up at t = {min(ends):.9g}, told {times}"
    return None


def _apart(field: Field) -> tuple[int, ...]:
    """Nodes that follow equations of their own, one where both follow the same; none where they feel each other."""
    if all(np.ptp(field.values[n]) == 0 for n, kind in field.drawn.kinds if kind == "node"):
        return (0,)
    return () if field.matrix.any() else (0, 1)


def _journey(field: Field, start: float, way: int, node: int) -> Journey | None:
    """The way of one node, at many places in one call: as many channels, which do not mix without a matrix."""

    def rates(places: Array) -> Array:
        size = len(places)
        state, first = np.tile(places, (2, 1)), np.full((2, size), start)
        return np.asarray(replace(field, channels=size)(state, first)[node])

    def one_by_one(places: Array) -> Array:
        first = np.full((2, 1), start)
        return np.array([field(np.full((2, 1), h), first)[node, 0] for h in places])

    return journey(one_by_one if field.drawn.has("matrix") else rates, start, way)


def _stopped(field: Field, start: float, way: int, node: int, seen: Journey) -> str | None:
    """Why nothing gets beyond every bound: computed with many digits, h' points back, or grows no faster than |h|."""
    first = np.full((2, 1), start)

    def outward(h: float) -> float:
        return way * float(field.precisely(np.full((2, 1), h), first)[node, 0])

    if seen.rest is not None and (speed := outward(seen.rest)) <= 0:
        return f"from h0 = {start} nothing passes h = {seen.rest:.9g}: h' = {way * speed:.6g}"
    if seen.rest is not None or seen.is_exponential:  # doubles may have lost a rate that is tiny, but not zero
        near, middle, far = (outward(way * size) / size for size in (1 + abs(start)) * np.array([10, 1e7, 1e14]))
        if far < 1.25 * middle or far < 1e-3 * near:
            shares = f"{near:.6g}, farther out {middle:.6g}, {far:.6g}"
            return f"from h0 = {start} h' grows no faster than |h|: h'/|h| is {shares}"
    return None


def _too_narrow(drawn: Drawn, way: int, conditions: list[str], reason: str, rng: Random) -> str | None:
    """A start outside all conditions for a side that blows up on it, among the states that the reason speaks of."""
    if not conditions:
        return None
    for _ in range(2):
        field = _scalar(drawn, rng, reason)
        if drawn.has("node"):
            return None
        for size in np.exp(rng.uniform(-2, 3, 4)) * rng.choice([-1.0, 1.0], 4):
            start = float(size)
            if all(_met(f"Not({condition})", field, start) for condition in conditions):
                state = np.full((2, 1), start)
                path = follow(lambda x, f=field, first=state: f(x, first), state, 20.0)  # type: ignore[misc]
                if path.blew_up and np.sign(path.state[0]) == way and _superlinear(field, path, np.zeros((2, 1))):
                    told = " or ".join(conditions)
                    return f"{start} does not satisfy {told}, blows up at {path.end:.6g}, {field.told()}"
    return None
