"""Identifiability: the rank of the map from coefficients to the field, at random states of random graphs."""

from __future__ import annotations

import numpy as np

from tests.adversary import formulas, graphs
from tests.adversary.answers import Identifiability
from tests.adversary.expressions import Dual
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "identifiability"
Array = np.ndarray
Random = np.random.Generator


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    letters = [k for n, k in drawn.kinds if n != "M"]
    return [Question(FAMILY, "identify")] if letters and set(letters) <= {"scalar"} else []


def sensitivity(drawn: Drawn, values: dict[str, Array], letters: list[str], rng: Random) -> Array:
    """df/d(letters) at several states of several graphs, rows scaled, shape (entries, letters)."""
    rows = []
    for size in (0.3, 1.0, 1.0, 3.0):
        graph = graphs.draw(rng, "row", loops=True)
        weights = np.round(rng.uniform(0.2, 2.0, graph.weights.shape), 3) * (graph.weights > 0)
        graph = graphs.union(graphs.Graph("weighted", weights), graphs.directed_cycle(5))
        own = {n: v for n, v in values.items() if n != "M"}
        if "M" in drawn.letters:
            own["M"] = (rng.random((graph.nodes, 1)) < 0.5).astype(float)
        field = Field(drawn, graph, "row", own)
        states = size * rng.normal(size=(2, graph.nodes, 1))
        plain, exact = (_tangent(field, states.astype(t), letters) for t in (np.float64, np.longdouble))
        rows.append(np.where(np.abs(plain) > 1000 * np.abs(plain - exact), plain, 0.0))  # the rest is rounding
    matrix = np.concatenate(rows)
    matrix = matrix[np.isfinite(matrix).all(axis=1)]
    scale = np.abs(matrix).max(axis=1, keepdims=True, initial=1e-300)
    return np.where(scale > 1e-13, matrix / np.maximum(scale, 1e-300), 0.0)


def _tangent(field: Field, states: Array, letters: list[str]) -> Array:
    """df/d(letters) at one pair of states, shape (n, letters), in the precision of the states."""
    units = np.eye(len(letters), dtype=states.dtype)
    seeds = {n: Dual(np.asarray(field.values[n], dtype=states.dtype), units[i]) for i, n in enumerate(letters)}
    found = field(states[0], states[1], seeds)
    if not isinstance(found, Dual):
        return np.zeros((field.graph.nodes, len(letters)))
    return found.tangent.reshape(-1, len(letters)).astype(states.dtype)


def check(drawn: Drawn, question: Question, answer: Identifiability, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    letters = sorted(n for n, k in drawn.kinds if n != "M")
    best: tuple[int, Array, dict[str, Array]] | None = None
    for _ in range(3):
        values = drawn.values(rng)
        if any((np.asarray(v) == 0).any() for n, v in values.items() if n != "M"):
            continue  # not in general position
        matrix = sensitivity(drawn, values, letters, rng)
        singular = np.linalg.svd(matrix, compute_uv=False)
        if ((singular > 1e-10 * singular[0]) & (singular < 1e-5 * singular[0])).any():
            continue
        rank = int((singular > 1e-7 * max(singular[0], 1e-300)).sum())
        if best is None or rank > best[0]:
            best = (rank, matrix, values)
    if best is None:
        return None
    rank, matrix, values = best
    at = {n: float(v) for n, v in values.items() if n != "M"}
    told = len(answer.combinations) if answer.rank is None else answer.rank
    if rank != told:
        return f"the field has rank {rank} in the {len(letters)} coefficients, told {told}; at {at}"
    return _revealed(answer, matrix, letters, at)


def _revealed(answer: Identifiability, matrix: Array, letters: list[str], at: dict[str, float]) -> str | None:
    """Gradients of what is told to be revealed lie in the row space; hidden letters have no effect."""
    _, singular, rows = np.linalg.svd(matrix, full_matrices=False)
    basis = rows[singular > 1e-7 * max(singular[0], 1e-300)]
    gradients = {text: gradient(text, letters, at) for text in (*answer.combinations, *answer.single)}
    for text, slope in gradients.items():
        rest = slope - basis.T @ (basis @ slope)
        if np.abs(rest).max(initial=0.0) > 1e-4 * max(np.abs(slope).max(), 1e-300):
            return (
                f"{text} is told to be revealed, but a change of the coefficients that keeps the field changes it; {at}"
            )
    own = np.array([gradients[c] for c in answer.combinations]).reshape(-1, len(letters))
    if np.linalg.matrix_rank(own / np.maximum(np.abs(own).max(axis=1, keepdims=True), 1e-300), tol=1e-6) < len(own):
        return f"the combinations {answer.combinations} depend on each other; {at}"
    for name in answer.hidden:
        if np.abs(matrix[:, letters.index(name)]).max() > 1e-9:
            return f"{name} is told to be hidden, but the field changes with it; {at}"
    return _hides_single(answer, basis, letters, at)


def _hides_single(answer: Identifiability, basis: Array, letters: list[str], at: dict[str, float]) -> str | None:
    for i, name in enumerate(letters):
        unit = np.eye(len(letters))[i]
        inside = np.abs(unit - basis.T @ (basis @ unit)).max() < 1e-7
        if inside and name not in (*answer.single, *answer.local):
            return f"{name} is revealed on its own, but not told to be; {at}"
    return None


def gradient(text: str, letters: list[str], at: dict[str, float]) -> Array:
    """Central differences of a formula in the letters."""
    slopes = []
    for name in letters:
        step = 1e-5 * (abs(at[name]) + 1e-3)
        ends = [float(np.real(formulas.evaluate(text, {**at, name: at[name] + s * step}))) for s in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * step))
    return np.array(slopes)
