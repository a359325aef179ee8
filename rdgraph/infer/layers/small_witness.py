"""The smallest graph and state found on which a layer and an equation differ, with both outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rdgraph.infer.layers.equation_target import Target
from rdgraph.infer.layers.layer_check import LayerCheck
from rdgraph.infer.layers.letter_fit import Values
from rdgraph.infer.layers.operator_reading import Reading
from rdgraph.infer.layers.probe_graphs import ProbeGraph
from rdgraph.infer.layers.probe_stack import Probe, Stack

#: Questions to the layer on the way to a smaller witness.
MOST_QUESTIONS = 250

Array = np.ndarray


@dataclass(frozen=True)
class LayerWitness:
    """A graph, a state and a start on which both sides differ."""

    graph: ProbeGraph
    state: Array
    start: Array | None
    equation: Array
    layer: Array

    def __str__(self) -> str:
        start = "" if self.start is None else f", H0 = {_shown(self.start)}"
        return (
            f"{self.graph}; H = {_shown(self.state)}{start}: the equation gives {_shown(self.equation)}, "
            f"the layer {_shown(self.layer)}"
        )


def smallest_witness(check: LayerCheck, target: Target, reading: Reading, values: Values) -> LayerWitness | None:
    """The first difference on the smallest graphs and simplest states, made smaller as long as it stays."""
    search = _Shrinking(check, target, reading, values)
    found = search.first()
    while found is not None and search.left > 0:
        smaller = search.smaller(found)
        if smaller is None:
            break
        found = smaller
    return found


class _Shrinking:
    """Questions put to both sides, counted."""

    def __init__(self, check: LayerCheck, target: Target, reading: Reading, values: Values) -> None:
        self.check, self.target, self.reading, self.values = check, target, reading, values
        self.left = MOST_QUESTIONS
        #: What rounding cannot explain by far, so that a witness is plain to see.
        self.gap = 1e4 * check.precision

    def first(self) -> LayerWitness | None:
        for graph in self.check.answers.graphs:
            for state in _simple_states(graph, self.check.call.width):
                if self.left <= 0:
                    break
                if (found := self.differs(graph, state, np.zeros_like(state))) is not None:
                    return found
        for probe in self.check.answers.probes:
            if self.left > 0 and (found := self.differs(probe.graph, probe.state, probe.start)) is not None:
                return found
        self.gap, self.left = self.check.precision, MOST_QUESTIONS
        worst = np.argsort(self.check.errors(self.target, self.reading, self.values))[::-1][:3]
        probes = [self.check.whole.probes[k] for k in worst]
        return next((w for p in probes if (w := self.differs(p.graph, p.state, p.start)) is not None), None)

    def differs(self, graph: ProbeGraph, state: Array, start: Array) -> LayerWitness | None:
        self.left -= 1
        call = self.check.call
        begun = start if call.takes_start else state
        try:
            output = call(graph, state, begun)
        except Exception:
            return None
        stack = Stack([Probe(graph, state, begun, output)], self.check.rules)
        rows = self.target.values({**stack.states, **stack.operators(self.reading), **self.values})
        if rows.shape != output.shape or (np.isnan(rows).any() and np.isnan(output).any()):
            return None
        if np.abs(rows - output).max() <= self.gap * stack.tolerance(1.0).max():
            return None
        return LayerWitness(graph, state, begun if call.takes_start else None, rows, output)

    def smaller(self, witness: LayerWitness) -> LayerWitness | None:
        start = witness.state if witness.start is None else witness.start
        for graph, keep in _smaller_graphs(witness.graph, is_bound=self.check.call.is_bound):
            if self.left > 0 and (found := self.differs(graph, witness.state[keep], start[keep])) is not None:
                return found
        for change in (_zeroed, _simplified):
            for state, begun in change(witness.state, start, self.check.call.takes_start):
                if self.left > 0 and (found := self.differs(witness.graph, state, begun)) is not None:
                    return found
        return None


def _simple_states(graph: ProbeGraph, width: int) -> Iterator[Array]:
    """One entry that is 1, ones, 1, 2, 3 ..., and the like with signs."""
    shape = (graph.num_nodes, width)
    for place in range(graph.num_nodes):
        state = np.zeros(shape)
        state[place, 0] = 1.0
        yield state
    yield np.ones(shape)
    counted = np.arange(1.0, 1 + graph.num_nodes * width).reshape(shape)
    yield counted
    yield counted * np.where(np.indices(shape).sum(axis=0) % 2, -0.5, 0.5)


def _smaller_graphs(graph: ProbeGraph, *, is_bound: bool) -> Iterator[tuple[ProbeGraph, Array]]:
    """The graph without one node, or without one edge; edges that go both ways go together."""
    if is_bound:
        return
    weight = dict(zip(graph.edges, map(float, graph.edge_weight), strict=True))

    def made(nodes: list[int], kept: dict[tuple[int, int], float]) -> ProbeGraph:
        place = {old: new for new, old in enumerate(nodes)}
        pairs = {(place[s], place[t]): w for (s, t), w in kept.items() if s in place and t in place}
        return ProbeGraph("witness", len(nodes), tuple(pairs), tuple(pairs.values()) if graph.is_weighted else ())

    everyone = list(range(graph.num_nodes))
    if graph.num_nodes > 1:
        for gone in everyone:
            rest = [node for node in everyone if node != gone]
            yield made(rest, weight), np.array(rest)
    for source, target in graph.edges:
        if source <= target or (target, source) not in weight:
            both = {(source, target), (target, source)}
            yield made(everyone, {e: w for e, w in weight.items() if e not in both}), np.array(everyone)
    if graph.is_weighted:
        yield ProbeGraph("witness", graph.num_nodes, graph.edges), np.array(everyone)


def _zeroed(state: Array, start: Array, both: bool) -> Iterator[tuple[Array, Array]]:
    yield from _changed(state, start, both, lambda value: 0.0 if value != 0 else None)


def _simplified(state: Array, start: Array, both: bool) -> Iterator[tuple[Array, Array]]:
    def simpler(value: float) -> float | None:
        return None if value == round(value) and abs(value) <= 1 else 1.0 if value > 0 else -1.0

    yield from _changed(state, start, both, simpler)


def _changed(
    state: Array, start: Array, both: bool, change: Callable[[float], float | None]
) -> Iterator[tuple[Array, Array]]:
    """The arrays with one entry changed at a time."""
    for which, array in enumerate((state, start) if both else (state,)):
        for place in np.ndindex(array.shape):
            value = change(float(array[place]))
            if value is not None:
                other = array.copy()
                other[place] = value
                yield (other, start) if which == 0 else (state, other)


def _shown(array: Array) -> str:
    """Rows in brackets, numbers with four digits; what is rounding beside the largest is 0."""
    rounded = np.where(np.abs(array) <= 1e-12 * max(1.0, float(np.abs(array).max(initial=0.0))), 0.0, array)
    if array.shape[1] == 1:
        return "[" + ", ".join(f"{v:.4g}" for v in rounded[:, 0]) + "]"
    return "[" + ", ".join("(" + ", ".join(f"{v:.4g}" for v in row) + ")" for row in rounded) + "]"
