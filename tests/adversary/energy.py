"""The energy law by numpy: 2 tr(H^T L f(H)) against rates, thresholds, witnesses, and statements about all graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tests.adversary import formulas, graphs
from tests.adversary.answers import Energy, Increase
from tests.adversary.boxes import numbers
from tests.adversary.systems import Drawn, Field

Array = np.ndarray
Random = np.random.Generator
CASES = 12
ALONG = "along solutions from H(0) = H0"


def check(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    found = _symmetric_jacobian(drawn, rng) if answer.is_gradient else None
    if found is None and answer.witness is not None:
        found = _witness(drawn, answer, answer.witness)
    if found is None and answer.mode_rate is not None:
        found = _law(drawn, answer, rng)
    if found is None and answer.decays.startswith("never increases"):
        found = _never(drawn, answer, rng)
    if found is None and answer.decays.startswith("increases on every"):
        found = _everywhere(drawn, answer, rng)
    return found or _somewhere(drawn, answer, rng)


# ---------------------------------------------------------------------- the law, and the witness
def _law(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    for _ in range(CASES):
        graph = graphs.draw(rng, "symmetric")
        field = Field(drawn, graph, "symmetric", drawn.values(rng, graph.nodes))
        state, initial = rng.normal(size=(2, graph.nodes, 1))
        rate, stated = _rate(field, state, field(state, initial)), _stated_rate(answer, field, state, initial)
        if abs(rate - stated) > 1e-7 * (1 + abs(rate) + abs(stated)):
            return f"dE/dt = {rate:.9g}, the law gives {stated:.9g}; H = {state.tolist()}, {field.told()}"
    return None


def _stated_rate(answer: Energy, field: Field, state: Array, initial: Array) -> float:
    frequencies, vectors = np.linalg.eigh(_laplacian(field))
    letters = numbers(field, 1.0)
    now, start = vectors.T @ state, vectors.T @ initial
    total = 0.0
    for text, amplitudes in ((answer.mode_rate, now * now), (answer.source_rate, now * start)):
        if text is not None:
            factors = [formulas.evaluate(text, {**letters, "lam": float(x)}) for x in frequencies]
            total += float(np.real(np.asarray(factors)) @ amplitudes[:, 0])
    return total


def _witness(drawn: Drawn, answer: Energy, witness: Increase) -> str | None:
    """The rate at the witness, on its cycle, with its coefficients; with a source its state lies on the solution."""
    values = {n: np.full((1, 1), x) if drawn.letters[n] == "matrix" else x for n, x in witness.coefficients}
    masks = set(drawn.letters) & {"M"} - set(values)  # a mask without a value is any one
    if set(values) | masks != set(drawn.letters):
        return f"the witness has values for {sorted(values)}, the equation has {sorted(drawn.letters)}"
    if not drawn.assumed.satisfied(values):
        return f"the coefficients of the witness {values} contradict the assumptions"
    graph = graphs.pair() if witness.nodes == 2 else graphs.cycle(witness.nodes)
    spread = {n: np.full(graph.nodes, x) if drawn.letters[n] == "channel" else x for n, x in values.items()}
    numbers_of = {n: x[:1] if np.ndim(x) == 1 else x for n, x in spread.items()}
    odd = np.arange(graph.nodes) % 2
    for mask in (0 * odd, 0 * odd + 1, odd) if masks else (None,):
        chosen = numbers_of if mask is None else {**numbers_of, "M": mask[:, None].astype(float)}
        found = _witness_of(Field(drawn, graph, "symmetric", chosen), answer, witness)
        if found:
            return found
    return None


def _witness_of(field: Field, answer: Energy, witness: Increase) -> str | None:
    state = np.array(witness.state)[:, None]
    initial = None if witness.initial is None else np.array(witness.initial)[:, None]
    rate = _rate(field, state, field(state, initial))
    if not (rate > 0 and abs(rate - witness.rate) <= 1e-6 * abs(rate)):
        return f"dE/dt = {rate:.9g} at the witness {witness}, {field.told()}"
    if answer.threshold is not None and formulas.evaluate(answer.threshold, numbers(field, 1.0)) <= 0:
        return f"the witness {witness} has {answer.threshold} <= 0"
    return _unreached(field, state, initial) if ALONG in answer.decays and initial is not None else None


def _unreached(field: Field, state: Array, initial: Array) -> str | None:
    """Against a state that the solution from H0 does not pass: the energy along it, which must increase somewhere."""
    energies = _energies(field, initial, 60.0)
    if np.max(energies[1:] - energies[:-1]) <= 1e-9 * energies[0]:
        return f"the energy never increases from H0 = {initial.ravel().tolist()}, {field.told()}"
    return None


def _energies(field: Field, initial: Array, end: float) -> Array:
    """The energy along the linear solution from H0, at many times."""
    J, S = field.generator(), field.source_generator()
    scale = 1 + np.abs(np.linalg.eigvals(J)).max()
    flow = solve_ivp(
        lambda _, h: J @ h + S @ initial.ravel(), (0, end / scale), initial.ravel(), rtol=1e-10, atol=1e-13,
        t_eval=np.linspace(0, end / scale, 400),
    )  # fmt: skip
    L = _laplacian(field)
    return np.array([h @ L @ h for h in flow.y.T])


# ---------------------------------------------------------------------- never, everywhere, somewhere
def _never(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """Random states, and those near constant ones, on graphs of every kind or on regular ones."""
    for _ in range(CASES):
        graph = _regular(rng) if "regular" in answer.decays else graphs.draw(rng, "symmetric")
        field = Field(drawn, graph, "symmetric", drawn.values(rng, graph.nodes))
        if answer.threshold is not None and formulas.evaluate(answer.threshold, numbers(field, 1.0)) > 0:
            continue
        if ALONG in answer.decays:
            initial = rng.normal(size=(graph.nodes, 1))
            energies = _energies(field, initial, 20.0)
            if np.max(energies[1:] - energies[:-1]) > 1e-7 * energies[0]:
                return f"the energy increases from H0 = {initial.ravel().tolist()}, {field.told()}"
            continue
        _, modes = np.linalg.eigh(_laplacian(field))
        for case in range(2 * CASES):
            level = float(rng.choice([0.0, rng.uniform(-4, 4)]))
            way = rng.normal(size=graph.nodes) if case % 2 else modes[:, case // 2 % graph.nodes]
            state = level + float(np.exp(rng.uniform(-3, 3))) * way[:, None]
            room = 1e-8 * (1 + np.abs(state).max() ** 2) * (1 + np.abs(field(state)).max())
            rate = _rate(field, state, field(state))
            if np.isfinite(rate) and rate > room:
                rate = _rate(field, state, field.precisely(state))
            if np.isfinite(rate) and rate > room:
                return f"dE/dt = {rate:.9g} > 0 at H = {state.tolist()}, {field.told()}"
    return None


def _everywhere(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """On every graph with an edge some state must show it: a mode near some constant state, or from some H0."""
    for _ in range(CASES // 2):
        graph = _regular(rng) if "regular" in answer.decays else graphs.draw(rng, "symmetric", loops=False)
        field = Field(drawn, graph, "symmetric", drawn.values(rng, graph.nodes))
        if ALONG in answer.decays:
            frequencies, modes = np.linalg.eigh(_laplacian(field))
            starts = [modes[:, [k]] for k in range(graph.nodes) if frequencies[k] > 1e-6]
            rises = any(_unreached(field, start, start) is None for start in starts)
        else:
            levels = [0.7] if answer.mode_rate is not None else _LEVELS
            rises = max(_growth(field, level) for level in levels) > 0
        if not rises and graph.operator("symmetric").any():
            return f"growth on every graph is stated, but no mode grows; {field.told()}"
    return None


def _somewhere(drawn: Drawn, answer: Energy, rng: Random) -> str | None:
    """Where growth is stated for all coefficients, or beyond a threshold, a long cycle must show it.

    The constant mode stands for the slowest ones of longer and longer cycles.
    """
    is_threshold = answer.threshold is not None and answer.decays.endswith("<= 0") and " iff " in answer.decays
    if ALONG in answer.decays or not (is_threshold or "increases on some" in answer.decays):
        return None
    levels = [0.7] if answer.mode_rate is not None else _LEVELS
    for _ in range(3):
        field = Field(drawn, graphs.cycle(240), "symmetric", drawn.values(rng, 240))
        worst = formulas.evaluate(str(answer.threshold), numbers(field, 1.0)) if is_threshold else 1.0
        columns = [field.column(np.full((240, 1), level)) for level in levels]
        rates = np.array([np.fft.fft(c).real for c in columns if np.isfinite(c).all()])
        scale = 0.03 * (1 + float(np.median(np.abs(rates)))) if is_threshold else 0.0
        if worst > scale and rates.max() <= 0:
            return f"growth is stated ({answer.decays}), but no mode of a cycle grows; coefficients {field.values}"
    return None


_LEVELS = [0.0, *(sign * float(x) for x in 10 ** np.linspace(-4, 4, 100) for sign in (1, -1))]


def _modes(field: Field, level: float) -> Array:
    """The growth rates of the modes that have energy, at a constant state of a graph; -inf where there are none."""
    J = field.jacobian(np.full((field.graph.nodes, 1), level))
    if not np.isfinite(J).all():
        return np.array([-np.inf])
    frequencies, vectors = np.linalg.eigh(_laplacian(field))
    rates = np.einsum("ik,ij,jk->k", vectors, J, vectors)
    return rates[frequencies > 1e-9] if (frequencies > 1e-9).any() else np.array([-np.inf])


def _growth(field: Field, level: float) -> float:
    return float(_modes(field, level).max())


def _regular(rng: Random) -> graphs.Graph:
    return (graphs.pair(), graphs.cycle(int(rng.integers(3, 25))), graphs.complete(5))[int(rng.integers(3))]


# ---------------------------------------------------------------------- gradient flows
def _symmetric_jacobian(drawn: Drawn, rng: Random) -> str | None:
    """f is a gradient exactly where df/dH is symmetric, on graphs with a symmetric A."""
    channels = 2 if drawn.has("matrix", "channel") else 1
    for _ in range(CASES // 2):
        graph = graphs.draw(rng, "symmetric", one_way=False)
        field = Field(drawn, graph, "symmetric", drawn.values(rng, graph.nodes, channels), channels)
        J = field.jacobian(*rng.normal(size=(2, graph.nodes, channels)))
        if np.isfinite(J).all() and np.abs(J - J.T).max() > 1e-8 * (1 + np.abs(J).max()):
            return f"a gradient flow is stated, but df/dH is not symmetric; {field.told()}"
    return None


def _laplacian(field: Field) -> Array:
    return np.eye(field.graph.nodes) - field.matrix


def _rate(field: Field, state: Array, speed: Any) -> float:
    return float(2 * np.sum(state * (_laplacian(field) @ speed)))
