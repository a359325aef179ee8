"""Properties of any layer, whatever it computes: equivariance, reach, linearity, homogeneity, mass, slopes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rdgraph.conformance.layer_call import LayerCall
from rdgraph.conformance.probe_graphs import ProbeGraph, undirected

#: Hops up to which the reach of a layer is told apart from "everywhere".
FARTHEST = 8
#: Random pairs and places at which slopes are measured.
DRAWS = 4

Array = np.ndarray


@dataclass(frozen=True)
class LayerProperty:
    """A property: whether it holds (None where the question has no sense here), and what was measured."""

    name: str
    holds: bool | None
    measured: str

    def __str__(self) -> str:
        word = {True: "yes", False: "no", None: "not asked"}[self.holds]
        return f"{self.name}: {word} ({self.measured})"


def layer_properties(
    call: LayerCall, graphs: Sequence[ProbeGraph], precision: float = 1e-9, bound: tuple[float, str] | None = None
) -> tuple[LayerProperty, ...]:
    """Every property that is measured; `bound` is a Lipschitz constant that a theorem gives, with its norm."""
    largest = max(graphs, key=lambda g: g.num_nodes)
    return (
        _equivariance(call, graphs, precision),
        _reach(call, precision),
        *_linearity(call, largest, precision),
        *_mass(call, largest, precision),
        _lipschitz(call, graphs, bound),
    )


def _draw(graph: ProbeGraph, call: LayerCall, seed: int) -> Array:
    return np.random.default_rng([seed, graph.num_nodes]).normal(size=(graph.num_nodes, call.width))


def _equivariance(call: LayerCall, graphs: Sequence[ProbeGraph], precision: float) -> LayerProperty:
    name = "permutation equivariance"
    if call.is_bound:
        return LayerProperty(name, None, "the graph is bound")
    worst, rng = 0.0, np.random.default_rng(2)
    for graph in graphs:
        state = _draw(graph, call, 1)
        order = rng.permutation(graph.num_nodes)
        places = np.argsort(order)
        shuffled = rng.permutation(len(graph.edges))
        pairs = tuple((int(places[s]), int(places[t])) for s, t in (graph.edges[k] for k in shuffled))
        heavy = tuple(graph.weights[k] for k in shuffled) if graph.weights else ()
        other = ProbeGraph("permuted", graph.num_nodes, pairs, heavy)
        try:
            plain, moved = call(graph, state), call(other, state[order])
        except Exception:
            continue
        worst = max(worst, float(np.abs(plain[order] - moved).max() / max(1.0, np.abs(plain).max())))
    return LayerProperty(name, worst <= precision, f"largest difference {worst:.1g}")


def _reach(call: LayerCall, precision: float) -> LayerProperty:
    """How many hops away a node still changes the output: a change at one end of a path, beside another component."""
    name = "local"
    if call.is_bound:
        return LayerProperty(name, None, "the graph is bound")
    count = FARTHEST + 3
    pairs = [(k, k + 1) for k in range(count - 1)]
    graph = undirected("path and an edge", count + 2, [*pairs, (count, count + 1)])
    state = _draw(graph, call, 3)
    other = state.copy()
    other[0] += 1.0
    gap = np.abs(call(graph, other) - call(graph, state)).max(axis=1)
    reached = np.flatnonzero(gap > 1e-3 * precision)
    hops = _distances(graph)
    far = [hops.get(int(node), count) for node in reached]
    radius = max(far, default=0)
    if radius > FARTHEST:
        return LayerProperty(name, False, "a node reaches the whole graph")
    return LayerProperty(name, True, f"radius {radius} hop{'' if radius == 1 else 's'}")


def reach_of(properties: Sequence[LayerProperty]) -> int | None:
    """The radius in hops that was measured; None where a node reaches the whole graph, or it was not asked."""
    found = next((p for p in properties if p.name == "local" and p.holds), None)
    return int(found.measured.split()[1]) if found else None


def _distances(graph: ProbeGraph) -> dict[int, int]:
    found, queue = {0: 0}, deque([0])
    while queue:
        node = queue.popleft()
        for source, target in graph.edges:
            if source == node and target not in found:
                found[target] = found[node] + 1
                queue.append(target)
    return found


def _linearity(call: LayerCall, graph: ProbeGraph, precision: float) -> tuple[LayerProperty, LayerProperty]:
    first, second = _draw(graph, call, 4), _draw(graph, call, 5)
    values = [call(graph, s) for s in (first, second, first + second, np.zeros_like(first), 2 * first, 3 * first)]
    one, other, both, zero, double, triple = values
    size = max(1.0, *(float(np.abs(v).max()) for v in values))
    is_affine = np.abs(both + zero - one - other).max() <= precision * size
    is_affine = bool(is_affine and np.abs(double - 2 * one + zero).max() <= precision * size)
    is_zero = bool(np.abs(zero).max() <= precision * size)
    word = "linear" if is_affine and is_zero else "affine" if is_affine else "nonlinear"
    power = _power(one, double, triple, precision)
    told = "f(sX) = s^p f(X) for no p" if power is None else f"f(sX) = s^{power} f(X) for s = 2, 3"
    return (
        LayerProperty("linear in the state", is_affine and is_zero, word),
        LayerProperty("homogeneous", power is not None, told),
    )


def _power(one: Array, double: Array, triple: Array, precision: float) -> int | None:
    for power in range(5):
        size = max(1.0, float(np.abs(triple).max()))
        if max(np.abs(double - 2**power * one).max(), np.abs(triple - 3**power * one).max()) <= precision * size:
            return power
    return None


def _mass(call: LayerCall, graph: ProbeGraph, precision: float) -> tuple[LayerProperty, ...]:
    state = _draw(graph, call, 6)
    output = call(graph, state)
    size = precision * max(1.0, float(np.abs(output).max())) * graph.num_nodes
    keeps_zero = bool(np.abs(output.sum(axis=0)).max() <= size)
    name = "mass conservation"
    if keeps_zero:
        return (LayerProperty(name, True, "the outputs of all nodes sum to 0: as a field it keeps the sum"),)
    if output.shape == state.shape and np.abs((output - state).sum(axis=0)).max() <= size:
        return (LayerProperty(name, True, "the sum over the nodes is the same before and after"),)
    degree = graph.adjacency.sum(axis=1)[:, None]
    for word, weight in (("degree", degree), ("root of the degree", np.sqrt(degree))):
        if np.abs((weight * output).sum(axis=0)).max() <= size:
            return (LayerProperty(name, True, f"sums weighted by the {word} are kept, as a field"),)
    return (LayerProperty(name, False, f"the outputs sum to {output.sum(axis=0)[0]:.4g} in the first channel"),)


def _lipschitz(call: LayerCall, graphs: Sequence[ProbeGraph], bound: tuple[float, str] | None) -> LayerProperty:
    """The largest slope that was seen, by the norm of Jacobians measured with central differences."""
    order = {"2-norm": 2, "inf-norm": np.inf, "1-norm": 1}[bound[1] if bound else "2-norm"]
    worst = 0.0
    for graph in graphs[-3:]:
        for draw in range(DRAWS):
            jacobian = slopes(call, graph, _draw(graph, call, 20 + draw))
            worst = max(worst, float(np.linalg.norm(jacobian, order)))
    name = "Lipschitz constant"
    if bound is None:
        return LayerProperty(name, None, f"at least {worst:.4g} in the 2-norm, on these graphs")
    value, norm = bound
    holds = worst <= value * (1 + 1e-6)
    sign = "<=" if holds else ">"
    return LayerProperty(name, holds, f"at least {worst:.4g} {sign} {value:.4g}, the theorem's bound in the {norm}")


def slopes(call: LayerCall, graph: ProbeGraph, state: Array, width: float = 1e-5) -> Array:
    """The Jacobian of the output with respect to the state, by central differences: (outputs, entries)."""
    columns = []
    step = 1e-2 if call.is_single_precision else width
    for place in np.ndindex(state.shape):
        up, down = state.copy(), state.copy()
        up[place] += step
        down[place] -= step
        start = state if call.takes_start else None
        columns.append((call(graph, up, start) - call(graph, down, start)).ravel() / (2 * step))
    return np.stack(columns, axis=1)
