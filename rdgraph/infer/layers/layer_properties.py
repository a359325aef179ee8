"""Measured properties of any layer: equivariance, reach, linearity, homogeneity, mass, slopes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from rdgraph.infer.layers.equation_target import longest_word
from rdgraph.infer.layers.layer_call import LayerCall
from rdgraph.infer.layers.layer_check import PRECISION, Comparison, LayerCheck
from rdgraph.infer.layers.probe_graphs import ProbeGraph, undirected
from rdgraph.infer.layers.probe_stack import Probe, coefficients_of

# ---------------------------------------------------------------------- layer properties
#: The largest reach in hops that is distinguished from "everywhere".
FARTHEST = 8
#: Random pairs and places at which slopes are measured.
DRAWS = 4

Array = np.ndarray


@dataclass(frozen=True)
class LayerProperty:
    """A property: whether it holds (None if it does not apply), and what was measured."""

    name: str
    holds: bool | None
    measured: str

    def __str__(self) -> str:
        word = {True: "yes", False: "no", None: "not checked"}[self.holds]
        return f"{self.name}: {word} ({self.measured})"


def layer_properties(
    call: LayerCall, graphs: Sequence[ProbeGraph], precision: float = 1e-9, bound: tuple[float, str] | None = None
) -> tuple[LayerProperty, ...]:
    """All measured properties; `bound` is a proved Lipschitz constant with its norm."""
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
    """The distance up to which a node changes the output, measured at the end of a path and on another component."""
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
    """The radius in hops that was measured; None where a node reaches the whole graph, or it was not measured."""
    local = next((p for p in properties if p.name == "local" and p.holds), None)
    return int(local.measured.split()[1]) if local else None


def _distances(graph: ProbeGraph) -> dict[int, int]:
    hops, queue = {0: 0}, deque([0])
    while queue:
        node = queue.popleft()
        for source, target in graph.edges:
            if source == node and target not in hops:
                hops[target] = hops[node] + 1
                queue.append(target)
    return hops


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
    measured = "f(sX) = s^p f(X) for no p" if power is None else f"f(sX) = s^{power} f(X) for s = 2, 3"
    return (
        LayerProperty("linear in the state", is_affine and is_zero, word),
        LayerProperty("homogeneous", power is not None, measured),
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
        return (LayerProperty(name, True, "the outputs of all nodes sum to 0: as a field it conserves the sum"),)
    if output.shape == state.shape and np.abs((output - state).sum(axis=0)).max() <= size:
        return (LayerProperty(name, True, "the sum over the nodes is the same before and after"),)
    degree = graph.adjacency.sum(axis=1)[:, None]
    for word, weight in (("degree", degree), ("root of the degree", np.sqrt(degree))):
        if np.abs((weight * output).sum(axis=0)).max() <= size:
            return (LayerProperty(name, True, f"sums weighted by the {word} are conserved, as a field"),)
    return (LayerProperty(name, False, f"the outputs sum to {output.sum(axis=0)[0]:.4g} in the first channel"),)


def _lipschitz(call: LayerCall, graphs: Sequence[ProbeGraph], bound: tuple[float, str] | None) -> LayerProperty:
    """The largest slope observed: norms of Jacobians by central differences."""
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
    for position in np.ndindex(state.shape):
        up, down = state.copy(), state.copy()
        up[position] += step
        down[position] -= step
        start = state if call.takes_start else None
        columns.append((call(graph, up, start) - call(graph, down, start)).ravel() / (2 * step))
    return np.stack(columns, axis=1)


# ---------------------------------------------------------------------- how far an agreement reaches
# How far agreement on probes reaches: a proof up to rounding for a class of layers, or agreement on these probes.

#: Above this condition number, rounding could hide a difference.
WORST_CONDITION = 1e5


@dataclass(frozen=True)
class Agreement:
    """How far the agreement of a layer with an equation reaches beyond the probes.

    `dimension` is the number of coefficients that a polynomial of degree `degree` in the entries of the state has,
    summed over `graphs`; `rank` is the number of independent probes on these graphs. If both are
    equal, every layer of that class which gives the same answers is equal to the equation for all states on these
    graphs, up to rounding, which is amplified by at most `condition`.
    """

    probes: int
    graphs: int
    degree: int | None = None
    dimension: int = 0
    rank: int = 0
    condition: float = 1.0
    words: int = 0
    error: float = 0.0

    @property
    def is_proof(self) -> bool:
        """Whether the probes span the class: agreement is then a proof up to rounding for the layers in it."""
        return self.degree is not None and 0 < self.dimension == self.rank

    def __str__(self) -> str:
        most = f"largest error {self.error:.1g}"
        if not self.is_proof:
            return f"agrees on {self.probes} probes of {self.graphs} graphs ({most})"
        kind = {0: "constant", 1: "affine"}.get(self.degree or 0, f"a polynomial of degree {self.degree} at most")
        words = f"; I, A, ..., A^{self.words} are independent on them" if self.words else ""
        return (
            f"equal on {self.probes} probes, {self.rank} of them independent, spanning a hypothesis space of dimension "
            f"{self.dimension}: a proof up to rounding, for all states on {self.graphs} graphs, if the layer is {kind} "
            f"in the state ({most}, condition {self.condition:.1g}){words}"
        )


def agreement_of(check: LayerCheck, comparison: Comparison) -> Agreement:
    """How far the agreement of a comparison reaches."""
    degree = comparison.target.degree
    count, graphs = len(check.whole.probes), len(check.answers.graphs)
    plain = Agreement(count, graphs, error=comparison.error)
    if degree is None or check.precision > PRECISION or not is_polynomial(check, degree):
        return plain
    dimension = rank = spanned = 0
    condition = 1.0
    for graph in check.answers.graphs:
        needed = coefficients_of(graph, check.call, degree)
        generic = [p for p in check.answers.probes if p.graph is graph and p.sort == "generic"]
        if len(generic) < needed:
            continue
        sizes = np.linalg.svd(monomials(generic, degree, check.call.takes_start), compute_uv=False)
        full = int((sizes > sizes[0] / WORST_CONDITION).sum())
        dimension, rank, spanned = dimension + needed, rank + full, spanned + 1
        condition = max(condition, float(sizes[0] / max(sizes[-1], 1e-300)))
    if not spanned or rank < dimension:
        return plain
    words = independent_words(check, comparison)
    return Agreement(count, spanned, degree, dimension, rank, condition, words, comparison.error)


def monomials(probes: Sequence[Probe], degree: int, with_start: bool) -> Array:
    """The monomials up to a degree in the entries of the states, one row per probe.

    >>> p = Probe(ProbeGraph("single node", 1, ()), np.array([[2.0]]), np.array([[0.0]]), np.zeros((1, 1)))
    >>> monomials([p], 3, False)
    array([[1., 2., 4., 8.]])
    """
    flat = [np.concatenate([p.state.ravel(), *([p.start.ravel()] if with_start else [])]) for p in probes]
    entries = np.stack(flat)
    columns = [np.ones(len(entries))]
    for total in range(1, degree + 1):
        places = combinations_with_replacement(range(entries.shape[1]), total)
        columns += [np.prod(entries[:, chosen], axis=1) for chosen in places]
    return np.stack(columns, axis=1)


def is_polynomial(check: LayerCheck, degree: int) -> bool:
    """Whether the layer looks like a polynomial of that degree along a line through new random states."""
    graph = max(check.answers.graphs, key=lambda g: g.num_nodes)
    rng = np.random.default_rng(29)
    shape = (graph.num_nodes, check.call.width)
    begin, way = rng.normal(size=(2, *shape))
    places = np.linspace(-2.0, 2.0, degree + 4)
    rows = np.stack([check.call(graph, begin + s * way, begin + s * way).ravel() for s in places])
    basis = np.vander(places, degree + 1)
    rest = rows - basis @ np.linalg.lstsq(basis, rows, rcond=None)[0]
    return bool(np.abs(rest).max() <= 10 * check.precision * max(1.0, float(np.abs(rows).max())))


def independent_words(check: LayerCheck, comparison: Comparison) -> int:
    """The largest K for which I, A, ..., A^K are independent on the probed graphs, up to what the equation uses."""
    target = comparison.target
    longest = longest_word(target.tree) * (target.count if target.compared in ("map", "step") else 1)
    matrices = [_powers(comparison, graph, longest) for graph in check.answers.graphs]
    stacked = np.concatenate([m.reshape(longest + 1, -1) for m in matrices], axis=1)
    return longest if np.linalg.matrix_rank(stacked, tol=1e-8 * max(1.0, float(np.abs(stacked).max()))) > longest else 0


def _powers(comparison: Comparison, graph: ProbeGraph, longest: int) -> Array:
    A = comparison.reading.operators(graph)["A"]
    powers = [np.eye(graph.num_nodes)]
    for _ in range(longest):
        powers.append(A @ powers[-1])
    return np.stack(powers)
