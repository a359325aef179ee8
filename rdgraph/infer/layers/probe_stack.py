"""Probes of a layer, and `Stack`: all of them as one graph, so that an equation is evaluated on them at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rdgraph.errors import InvalidArgument
from rdgraph.infer.layers.layer_call import LayerCall
from rdgraph.infer.layers.probe_graphs import ProbeGraph, Reading

#: Generic states on every graph, in addition to the special ones.
GENERIC = 3
#: The most probes of one check, and of one graph.
MOST_PROBES, MOST_ON_A_GRAPH = 1200, 260

Array = np.ndarray
#: (adjacency, state) -> an operator of the graph, or adjacency alone.
OperatorRule = Callable[..., Array]


@dataclass(frozen=True)
class Probe:
    """A graph, a state, a start, and the output of the layer."""

    graph: ProbeGraph
    state: Array
    start: Array
    output: Array
    sort: str = "generic"


@dataclass(frozen=True)
class Answers:
    """The probes of a layer, and the graphs on which it failed, with the reason."""

    probes: tuple[Probe, ...]
    refused: tuple[tuple[ProbeGraph, str], ...]

    @property
    def output_width(self) -> int:
        return int(self.probes[0].output.shape[1])

    @property
    def graphs(self) -> tuple[ProbeGraph, ...]:
        return tuple(dict.fromkeys(probe.graph for probe in self.probes))


def ask(call: LayerCall, graphs: Sequence[ProbeGraph], degree: int | None, seed: int = 0) -> Answers:
    """Evaluate the layer on probe states of every graph, enough to separate polynomials of degree `degree`.

    On every graph there are a few generic and special states; where the degree m is known, more generic ones than
    polynomials of degree m in the entries of the state have coefficients.
    """
    call.settle_memory(graphs)
    rng = np.random.default_rng([seed, 11])
    probes: list[Probe] = []
    refused: list[tuple[ProbeGraph, str]] = []
    for graph in graphs:
        needed = coefficients_of(graph, call, degree)
        extra = needed + needed // 4 + 2 if needed else 0
        extra = extra if extra <= min(MOST_ON_A_GRAPH, MOST_PROBES - len(probes)) else 0
        for sort, state, start in _questions(graph, call, max(GENERIC, extra), rng):
            try:
                output = call(graph, state, start)
            except Exception as problem:
                refused.append((graph, f"{type(problem).__name__}: {problem}"))
                break
            probes.append(Probe(graph, state, start, output, sort))
    if not probes:
        raise InvalidArgument(
            f"expected a layer that runs on some graph, got on all {len(refused)}: {refused[0][1]}; "
            "give channels=, graphs= or call="
        )
    if len({probe.output.shape[1] for probe in probes}) > 1:
        raise InvalidArgument("expected outputs with the same number of channels on all graphs, got several numbers")
    return Answers(tuple(probes), tuple(refused))


def coefficients_of(graph: ProbeGraph, call: LayerCall, degree: int | None) -> int:
    """The number of coefficients of a polynomial of that degree in the entries of the state; 0 if None."""
    if degree is None:
        return 0
    return math.comb(graph.num_nodes * call.width * (1 + call.takes_start) + degree, degree)


def _questions(
    graph: ProbeGraph, call: LayerCall, generic: int, rng: np.random.Generator
) -> Iterable[tuple[str, Array, Array]]:
    shape = (graph.num_nodes, call.width)
    for _ in range(generic):
        yield "generic", *_pair(rng.normal(size=shape), rng.normal(size=shape), call)
    one = np.zeros(shape)
    one[0, 0] = 1.0
    for sort, state in (
        ("zero", np.zeros(shape)), ("ones", np.ones(shape)), ("one entry", one), ("large", 30 * rng.normal(size=shape)),
        ("small", 1e-3 * rng.normal(size=shape)), ("negative", -np.abs(rng.normal(size=shape))),
    ):  # fmt: skip
        yield sort, *_pair(state, rng.normal(size=shape), call)


def _pair(state: Array, start: Array, call: LayerCall) -> tuple[Array, Array]:
    """State and start; the start is the state for a layer that takes none."""
    return state, start if call.takes_start else state


class Stack:
    """Probes as the blocks of one graph: the equation is evaluated on all of them at once."""

    def __init__(self, probes: Sequence[Probe], rules: Mapping[str, OperatorRule] | None = None) -> None:
        self.probes = tuple(probes)
        self.rules = dict(rules or {})
        self.sizes = [probe.graph.num_nodes for probe in self.probes]
        self._operators: dict[Reading, dict[str, Any]] = {}

    @cached_property
    def outputs(self) -> Array:
        return np.vstack([probe.output for probe in self.probes])

    @cached_property
    def states(self) -> dict[str, Array]:
        """H and H0 of all probes, one below the other."""
        return {
            "H": np.vstack([probe.state for probe in self.probes]),
            "H0": np.vstack([probe.start for probe in self.probes]),
        }

    def operators(self, reading: Reading) -> dict[str, Any]:
        """A, L and the operators of the rules, block by block."""
        if reading not in self._operators:
            by_graph: dict[ProbeGraph, dict[str, Array]] = {}
            blocks: dict[str, list[Array]] = {}
            for probe in self.probes:
                if probe.graph not in by_graph:
                    by_graph[probe.graph] = reading.operators(probe.graph)
                matrices = by_graph[probe.graph]
                if self.rules:
                    weights = reading.looped(probe.graph)
                    matrices = matrices | {name: _ruled(rule, weights, probe) for name, rule in self.rules.items()}
                for name, matrix in matrices.items():
                    blocks.setdefault(name, []).append(matrix.ravel())
            # Sparse matrices with dense blocks on their diagonals.
            joined = {name: csr_array((np.concatenate(data), *self._places)) for name, data in blocks.items()}
            self._operators[reading] = joined
        return self._operators[reading]

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Columns and row ends of the blocks."""
        ends = np.cumsum([0, *np.repeat(self.sizes, self.sizes)])
        starts = np.cumsum([0, *self.sizes[:-1]])
        columns = [
            np.tile(np.arange(start, start + size), size) for start, size in zip(starts, self.sizes, strict=True)
        ]
        return np.concatenate(columns), ends

    def tolerance(self, precision: float) -> Array:
        """`precision` times the size of each probe, for every row: (nodes, 1)."""
        sizes = [max(1.0, *(float(np.abs(a).max(initial=0.0)) for a in (p.output, p.state))) for p in self.probes]
        return precision * np.repeat(sizes, self.sizes)[:, None]

    def per_probe(self, rows: Array) -> list[Array]:
        """Rows of the stack, split into those of every probe."""
        return np.split(rows, np.cumsum(self.sizes)[:-1])


def _ruled(rule: OperatorRule, adjacency: Array, probe: Probe) -> Array:
    matrix = np.asarray(rule(*(adjacency, probe.state)[: _arguments(rule)]), dtype=float)
    if matrix.shape != adjacency.shape:
        raise InvalidArgument(f"expected an operator of shape {adjacency.shape} from its rule, got {matrix.shape}")
    return matrix


def _arguments(rule: OperatorRule) -> int:
    code: Any = getattr(rule, "__code__", None)
    return 2 if code is not None and code.co_argcount > 1 else 1
