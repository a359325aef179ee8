"""Conserved sums and the energy law, by algebra: w^T f(H) = 0, and 2 tr(H^T L f(H)) against the told rates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tests.adversary import formulas, graphs
from tests.adversary.answers import Conservation, Energy
from tests.adversary.boxes import numbers
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "conservation"
Array = np.ndarray
Random = np.random.Generator
CASES = 12
KERNEL = {"symmetric": "sqrt(d)", "row": "d", "column": "1"}


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    return [Question(FAMILY, "conserved"), Question(FAMILY, "energy_law")]


def check(drawn: Drawn, question: Question, answer: Any, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    if question.name == "conserved":
        return _conserved(drawn, answer, rng)
    return _energy(drawn, answer, rng)


def _drift(
    drawn: Drawn, normalisation: str, weight: str, rng: Random, *, alone: bool = True, **kind: bool
) -> tuple[float, str]:
    """w^T f(H) relative to its parts, on one graph; isolated nodes have the same weight, or none if not `alone`."""
    graph = graphs.draw(rng, normalisation, **kind)
    channels = 2 if drawn.has("matrix", "channel") else 1
    field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes, channels), channels)
    state, initial = rng.normal(size=(2, graph.nodes, channels)) * np.exp(rng.uniform(-1, 1))
    degrees = [float(d) for d in graph.degree(normalisation)]
    w = np.array([float(formulas.evaluate(weight, {"d": d})) if d or alone else 0.0 for d in degrees])
    rate = field(state, initial)
    if not np.isfinite(rate).all():
        return 0.0, ""
    if np.abs(w @ rate).max() > 1e-9 * (1 + np.abs(state).max()):
        rate = field.precisely(state, initial)
    drift = np.abs(w @ rate).max() / (1e-12 + (w @ np.abs(rate)).max() + np.abs(state).max())
    return float(
        drift
    ), f"w^T f = {(w @ rate).tolist()} at H = {state.tolist()}, H0 = {initial.tolist()}, {field.told()}"


def _conserved(drawn: Drawn, answer: Conservation, rng: Random) -> str | None:
    if not answer.weights:
        return _conserved_after_all(drawn, rng)
    assumed = dict(answer.assumes)
    for normalisation, weight in answer.weights:
        one_way = "undirected" not in assumed.get(normalisation, "")
        alone = "weight is 0" not in assumed.get(normalisation, "")
        for _ in range(CASES):
            drift, told = _drift(drawn, normalisation, weight, rng, alone=alone, one_way=one_way)
            if drift > 1e-7:
                return told
    return None


def _conserved_after_all(drawn: Drawn, rng: Random) -> str | None:
    drifts = [_drift(drawn, "row", KERNEL["row"], rng, one_way=False) for _ in range(2 * CASES)]
    if max(d for d, _ in drifts) < 1e-11:
        return f"told that no weighted mean is constant, but w = d keeps it on {len(drifts)} random cases"
    return None


def _energy(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    if answer.mode_rate is None:
        return _regular_energy(drawn, answer, rng)
    for _ in range(CASES):
        graph = graphs.draw(rng, "symmetric")
        field = Field(drawn, graph, "symmetric", drawn.values(rng, graph.nodes))
        state, initial = rng.normal(size=(2, graph.nodes, 1))
        L = np.eye(graph.nodes) - field.matrix
        rate = float(2 * np.sum(state * (L @ field(state, initial))))
        told = _told_rate(answer, field, L, state, initial)
        if abs(rate - told) > 1e-7 * (1 + abs(rate) + abs(told)):
            return f"dE/dt = {rate:.9g}, the law gives {told:.9g}; H = {state.tolist()}, {field.told()}"
        witness = _monotone(answer, field, rate, state)
        if witness:
            return witness
    return _increases(drawn, answer, rng)


def _told_rate(answer: Energy, field: Field, L: Array, state: Array, initial: Array) -> float:
    frequencies, vectors = np.linalg.eigh(L)
    letters = numbers(field, 1.0)
    now, start = vectors.T @ state, vectors.T @ initial
    total = 0.0
    for text, amplitudes in ((answer.mode_rate, now * now), (answer.source_rate, now * start)):
        if text is not None:
            factors = [formulas.evaluate(text, {**letters, "lam": float(x)}) for x in frequencies]
            total += float(np.real(np.asarray(factors)) @ amplitudes[:, 0])
    return total


def _monotone(answer: Energy, field: Field, rate: float, state: Array) -> str | None:
    tolerance = 1e-8 * (1 + np.abs(state).max() ** 2)
    if answer.decays.startswith("never increases, on every graph") and rate > tolerance:
        return f"dE/dt = {rate:.9g} > 0 at H = {state.tolist()}, {field.told()}"
    if (told := re.fullmatch(r"never increases iff (.*) <= 0", answer.decays)) is not None:
        worst = formulas.evaluate(told.group(1), numbers(field, 1.0))
        if worst <= 0 and rate > tolerance:
            return f"{told.group(1)} = {worst} and dE/dt = {rate:.9g} > 0 at H = {state.tolist()}, {field.told()}"
    return None


def _increases(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """Where growth is told, a mode of a long cycle must show it."""
    told = re.fullmatch(r"never increases iff (.*) <= 0", answer.decays)
    if told is None and not answer.decays.startswith("increases for some states"):
        return None
    for _ in range(3):
        graph = graphs.cycle(60)
        field = Field(drawn, graph, "symmetric", drawn.values(rng, 60))
        L = np.eye(60) - field.matrix
        rates = np.linalg.eigvalsh(L @ field.generator())
        scale = np.abs(rates).max()
        worst = 1.0 if told is None else formulas.evaluate(told.group(1), numbers(field, 1.0))
        if worst > 0.02 * (1 + scale) and rates.max() <= 1e-9 * scale:
            return f"growth is told ({answer.decays}), but no mode of a cycle of 60 grows; {field.told()}"
    return None


# ---------------------------------------------------------------------- nonlinear reactions on regular graphs
def _regular_energy(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """The energy on cycles, complete graphs and pairs, from random states of several sizes and near constant ones."""
    told = re.search(r"never increases (iff|where) (.*) <= 0", answer.decays)
    for _ in range(CASES):
        graph = (graphs.pair(), graphs.cycle(int(rng.integers(3, 9))), graphs.complete(5))[int(rng.integers(3))]
        field = Field(drawn, graph, "symmetric", drawn.values(rng, graph.nodes))
        claims = answer.decays.startswith("never increases")
        if told is not None:
            claims = formulas.evaluate(told.group(2), numbers(field, 1.0)) <= 0
        if not claims:
            continue
        for _ in range(12):
            size = float(np.exp(rng.uniform(-3, 3)))
            state = rng.uniform(-4, 4) + size * rng.normal(size=(graph.nodes, 1))
            room = 1e-8 * (1 + np.abs(state).max() ** 2) * (1 + np.abs(field(state)).max())
            rate = _energy_rate(field, state, field(state))
            if np.isfinite(rate) and rate > room:
                rate = _energy_rate(field, state, field.precisely(state))
            if np.isfinite(rate) and rate > room:
                return f"dE/dt = {rate:.9g} > 0 at H = {state.tolist()}, {field.told()}"
    return _rises(drawn, answer, rng) if told is None or told.group(1) == "iff" else None


def _energy_rate(field: Field, state: Array, speed: Array) -> float:
    L = np.eye(field.graph.nodes) - field.matrix
    return float(2 * np.sum(state * (L @ speed)))


def _rises(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """Where growth is told, small deviations from some constant state of a long cycle must show it.

    The constant mode stands for the slowest ones of longer and longer cycles.
    """
    told = re.search(r"never increases iff (.*) <= 0", answer.decays)
    if told is None and not answer.decays.startswith("increases for some states"):
        return None
    sizes = 10 ** np.linspace(-4, 4, 400)
    for _ in range(3):
        field = Field(drawn, graphs.cycle(30), "symmetric", drawn.values(rng, 30))
        worst = 1.0 if told is None else formulas.evaluate(told.group(1), numbers(field, 1.0))
        columns = [field.column(np.full((30, 1), h)) for h in (*sizes, 0.0, *-sizes)]
        rates = np.array([np.fft.fft(c).real.max() for c in columns if np.isfinite(c).all()])
        scale = 0.0 if told is None else 0.03 * (1 + float(np.median(np.abs(rates))))
        if worst > scale and rates.max() <= 0:
            return f"growth is told ({answer.decays}), but no mode of a cycle grows; coefficients {dict(field.values)}"
    return None
