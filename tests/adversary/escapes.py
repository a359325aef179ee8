"""Claims that every box is left: refuted by a box that no state on any of our graphs leaves.

Without a source a box is tried at its corners: every entry on either face, on a directed chain (where A^k h is the
entry of the k-th node on), an edge, a cycle, and for the symmetric A a star and an isolated node. With a source the
solution itself decides: from H0 = R it must go on growing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tests.adversary import formulas, graphs
from tests.adversary.systems import Drawn, Field

Array = np.ndarray
Random = np.random.Generator
BOXES = 40
#: A star with four leaves has the largest row sum 2.
STAR = graphs.star(5)


def kept_after_all(drawn: Drawn, normalisation: str, values: Mapping[str, Any], rng: Random) -> str | None:
    """A box that is kept on all graphs that are tried, with coefficients that are the same in all nodes."""
    masks = ({"M": 0.0}, {"M": 1.0}) if drawn.letters.get("M") else ({},)
    fields = [
        Field(drawn, graph, kind, _spread(drawn, {**values, **mask}, graph.nodes))
        for graph, kind in _graphs(normalisation) for mask in masks
    ]  # fmt: skip
    for lower, upper in _boxes(fields[0], rng):
        if not any(_leaves(field, lower, upper) for field in fields):
            return f"[{lower:.6g}, {upper:.6g}] is not left; {fields[0].told()}"
    return None


def _graphs(normalisation: str) -> list[tuple[graphs.Graph, str]]:
    """Chains stand for the trees of high degree that regular graphs approach, whatever the normalisation."""
    found = [(graphs.chain(6), "row"), (graphs.pair(), "row"), (graphs.cycle(4), "row")]
    if normalisation == "symmetric":
        found += [(STAR, "symmetric"), (graphs.with_isolated(graphs.pair()), "symmetric")]
    return found


def _spread(drawn: Drawn, values: Mapping[str, Any], nodes: int) -> dict[str, Any]:
    """One number for each coefficient, in the shape of its kind."""
    shapes = {"scalar": (), "channel": (1,), "node": (nodes, 1), "matrix": (1, 1)}
    return {name: np.full(shapes[kind], float(np.ravel(values[name])[0])) for name, kind in drawn.kinds}


def _boxes(field: Field, rng: Random) -> Iterator[tuple[float, float]]:
    """Intervals of many sizes, around 0, on either side of it, and with faces where equal entries rest."""
    # exp and its like vanish in rounding far out
    largest = 1.0 if re.search("exp|sigmoid|tanh|softplus", field.drawn.body) else 4.0
    places = np.concatenate([-np.exp(np.linspace(largest, -4, 40)), np.exp(np.linspace(-4, largest, 40))])
    speeds = [float(field(np.full((field.graph.nodes, 1), h))[0, 0]) for h in places]
    rests = [
        float(b) for a, b, x, y in zip(places, places[1:], speeds, speeds[1:], strict=False) if x * y < 0 or a == b
    ]
    for size in np.exp(np.linspace(-3, largest, 15)):
        yield from ((-size, size), (0.0, size), (-size, 0.0))
    for _ in range(BOXES):
        pool = [*rests, 0.0, *rng.normal(size=2), *rng.normal(size=2) * np.exp(largest) / 3]
        lower, upper = sorted(rng.choice(pool, 2, replace=False))
        if upper - lower > 1e-3:
            yield lower, upper


def _leaves(field: Field, lower: float, upper: float) -> bool:
    for corner in itertools.product((lower, upper), repeat=field.graph.nodes):
        state = np.array(corner)[:, None]
        speed = field(state)
        outward = np.where(state == upper, speed, -speed)
        if (outward > 0).any() or not np.isfinite(speed).all():
            return True
    return False


def feels_source(drawn: Drawn, values: Mapping[str, Any], rng: Random) -> bool:
    """Whether a source that is written down matters; in (beta - beta)*H0 it does not."""
    field = Field(drawn, graphs.pair(), "row", _spread(drawn, values, 2))
    state, one, other = rng.normal(size=(3, 2, 1))
    return not np.array_equal(field(state, one), field(state, other), equal_nan=True)


def stays_after_all(
    drawn: Drawn, values: Mapping[str, Any], rng: Random, *, told: bool, alternating: bool
) -> str | None:
    """With a source: from H0 = R, or R and -R at the ends of an edge, the solution comes to rest."""
    mask = {} if told else {"M": 1.0}  # what is claimed for all coefficients, is claimed for one mask
    field = Field(drawn, graphs.pair(), "row", _spread(drawn, {**values, **mask}, 2))
    R = float(np.exp(rng.uniform(-1, 1)))
    start = np.array([[R], [-R if alternating else R]])

    def slope(_: float, y: Array) -> Array:
        return np.asarray(field(y.reshape(2, 1), start)).ravel()

    def far(_: float, y: Array) -> float:
        return float(1e6 - np.abs(y).max())

    far.terminal = True  # type: ignore[attr-defined]
    flow = solve_ivp(slope, (0, 100.0), start.ravel(), events=far, rtol=1e-8, atol=1e-10)
    end = flow.y[:, -1]
    if flow.status == 1 or not np.isfinite(end).all():
        return None
    speed = slope(0.0, end)
    if np.abs(speed).max() > 1e-6 and abs(end[0] - R) > 1e-6 and np.sign(speed[0]) == np.sign(end[0] - R):
        return None
    return f"from H0 = {start.ravel().tolist()} the solution is at {end.tolist()} after t = 100; {field.told()}"


def violating(drawn: Drawn, where: str, rng: Random) -> dict[str, Any] | None:
    """Coefficients for which a condition does not hold, on a star with s = 2."""
    for _ in range(40):
        values = _spread(drawn, drawn.values(rng, 1), 1)
        numbers = {name: float(np.ravel(v)[0]) for name, v in values.items()}
        if not formulas.holds(where, {**numbers, "s": 2.0, "R": 1.0}):
            return values
    return None
