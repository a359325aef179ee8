"""`conform`: checks whether a layer computes an equation; `Conformity` is the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.infer.layers.coefficient_fit import Shape, Values
from rdgraph.infer.layers.equation_target import Target, right_hand_side
from rdgraph.infer.layers.faults import EXPLANATION_EFFORT, Explanation, Hint, attention_hint, explanations
from rdgraph.infer.layers.layer_call import Adaptor, LayerCall
from rdgraph.infer.layers.layer_check import Comparison, LayerCheck, first_agreeing, read_values
from rdgraph.infer.layers.layer_properties import Agreement, LayerProperty, agreement_of, layer_properties
from rdgraph.infer.layers.probe_graphs import ProbeGraph, Reading, declared_readings, read_graph, read_graphs
from rdgraph.infer.layers.probe_stack import OperatorRule, Probe, Stack, ask
from rdgraph.infer.layers.recovery import RecoveredLine, recovered_line
from rdgraph.language.printer import to_text
from rdgraph.language.tree import Apply, Kind, Name, Plus, names_in
from rdgraph.language.tree import field as field_name
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import lipschitz_global
from rdgraph.wording import listed

# ---------------------------------------------------------------------- small witness
#: Evaluations of the layer in the search for a smaller witness.
MOST_QUESTIONS = 250

Array = np.ndarray


@dataclass(frozen=True)
class LayerWitness:
    """A graph, a state and a start on which the layer and the equation differ."""

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
    """A small witness: the first difference on small graphs and simple states, shrunk while the difference persists."""
    search = _Shrinking(check, target, reading, values)
    witness = search.first()
    while witness is not None and search.remaining > 0:
        smaller = search.smaller(witness)
        if smaller is None:
            break
        witness = smaller
    return witness


class _Shrinking:
    """Comparisons of the layer with the equation, counted."""

    def __init__(self, check: LayerCheck, target: Target, reading: Reading, values: Values) -> None:
        self.check, self.target, self.reading, self.values = check, target, reading, values
        self.remaining = MOST_QUESTIONS
        #: A difference far above rounding, so that the witness is obvious.
        self.gap = 1e4 * check.precision

    def first(self) -> LayerWitness | None:
        for graph in self.check.answers.graphs:
            for state in _simple_states(graph, self.check.call.width):
                if self.remaining <= 0:
                    break
                if (witness := self.differs(graph, state, np.zeros_like(state))) is not None:
                    return witness
        for probe in self.check.answers.probes:
            if self.remaining > 0 and (witness := self.differs(probe.graph, probe.state, probe.start)) is not None:
                return witness
        self.gap, self.remaining = self.check.precision, MOST_QUESTIONS
        worst = np.argsort(self.check.errors(self.target, self.reading, self.values))[::-1][:3]
        probes = [self.check.whole.probes[k] for k in worst]
        return next((w for p in probes if (w := self.differs(p.graph, p.state, p.start)) is not None), None)

    def differs(self, graph: ProbeGraph, state: Array, start: Array) -> LayerWitness | None:
        self.remaining -= 1
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
            if (
                self.remaining > 0
                and (smaller_witness := self.differs(graph, witness.state[keep], start[keep])) is not None
            ):
                return smaller_witness
        for change in (_zeroed, _simplified):
            for state, begun in change(witness.state, start, self.check.call.takes_start):
                if self.remaining > 0 and (smaller_witness := self.differs(witness.graph, state, begun)) is not None:
                    return smaller_witness
        return None


def _simple_states(graph: ProbeGraph, width: int) -> Iterator[Array]:
    """Simple states: a single 1, all ones, 1, 2, 3 ..., and these with alternating signs."""
    shape = (graph.num_nodes, width)
    for node in range(graph.num_nodes):
        state = np.zeros(shape)
        state[node, 0] = 1.0
        yield state
    yield np.ones(shape)
    counted = np.arange(1.0, 1 + graph.num_nodes * width).reshape(shape)
    yield counted
    yield counted * np.where(np.indices(shape).sum(axis=0) % 2, -0.5, 0.5)


def _smaller_graphs(graph: ProbeGraph, *, is_bound: bool) -> Iterator[tuple[ProbeGraph, Array]]:
    """The graph without one node, or without one edge; both directions of an edge are removed together."""
    if is_bound:
        return
    weight = dict(zip(graph.edges, map(float, graph.edge_weight), strict=True))

    def subgraph(nodes: list[int], weights: dict[tuple[int, int], float]) -> ProbeGraph:
        number = {old: new for new, old in enumerate(nodes)}
        pairs = {(number[s], number[t]): w for (s, t), w in weights.items() if s in number and t in number}
        return ProbeGraph("witness", len(nodes), tuple(pairs), tuple(pairs.values()) if graph.is_weighted else ())

    everyone = list(range(graph.num_nodes))
    if graph.num_nodes > 1:
        for removed in everyone:
            rest = [node for node in everyone if node != removed]
            yield subgraph(rest, weight), np.array(rest)
    for source, target in graph.edges:
        if source <= target or (target, source) not in weight:
            both = {(source, target), (target, source)}
            yield subgraph(everyone, {e: w for e, w in weight.items() if e not in both}), np.array(everyone)
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
        for position in np.ndindex(array.shape):
            value = change(float(array[position]))
            if value is not None:
                other = array.copy()
                other[position] = value
                yield (other, start) if which == 0 else (state, other)


def _shown(array: Array) -> str:
    """Rows in brackets, numbers with four digits; entries at rounding level are shown as 0."""
    rounded = np.where(np.abs(array) <= 1e-12 * max(1.0, float(np.abs(array).max(initial=0.0))), 0.0, array)
    if array.shape[1] == 1:
        return "[" + ", ".join(f"{v:.4g}" for v in rounded[:, 0]) + "]"
    return "[" + ", ".join("(" + ", ".join(f"{v:.4g}" for v in row) + ")" for row in rounded) + "]"


# ---------------------------------------------------------------------- conformity
#: Outcomes of a check.
CONFORMS, DIFFERS = "conforms", "differs"
#: Restricted classes of graphs in words, the widest first.
_NARROWER = {"undirected": "undirected graphs", "simple": "undirected graphs without self-loops and weights"}
#: Names of the coefficients of the affine maps before and after the equation.
_INPUT, _OUTPUT = ("Win", "bin"), ("Wout", "bout")


@dataclass(frozen=True)
class Freedoms:
    """What the check may choose: readings of A, values of coefficients, operator rules, and shapes of matrices."""

    readings: tuple[Reading, ...]
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    rules: Mapping[str, OperatorRule] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Conformity(Answer):
    """Whether a layer computes an equation, with the evidence.

    `conforms`; `outcome`: "conforms", "differs", or "undecided" where coefficients that do not enter linearly were not
    found; `reading`: the normalisation, self-loops and coefficients under which it was compared; `equation`: what the
    layer computes, in the language, where it is known; `agreement`: how far the agreement reaches; `witness`: the
    smallest graph and state found on which both differ; `term`: the first term that differs; `hints`: possible reasons,
    the likeliest first; `notes`: observations about the layer.
    """

    asked: str
    conforms: bool
    reading: str
    equation: str | None
    agreement: Agreement | None
    witness: LayerWitness | None
    term: str
    hints: tuple[Hint, ...]
    notes: tuple[str, ...]
    values: Mapping[str, np.ndarray]
    outcome: str
    check: LayerCheck = field(repr=False)
    comparison: Comparison = field(repr=False)
    system: System = field(repr=False)

    @property
    def value(self) -> bool | None:
        """Whether the layer computes the equation; None if undecided."""
        return None if self.outcome == Status.UNDECIDED else self.conforms

    @property
    def status(self) -> Status:
        """proved where the agreement is a proof, measured for an observed agreement or difference, or undecided."""
        if self.value is None:
            return Status.UNDECIDED
        is_proof = self.conforms and self.agreement is not None and self.agreement.is_proof
        return Status.PROVED if is_proof else Status.MEASURED

    @property
    def reason(self) -> str:
        """How far the agreement reaches, or the first hint why the layer differs."""
        return str(self.agreement) if self.conforms else "; ".join(str(hint) for hint in self.hints[:1])

    def __bool__(self) -> bool:
        return self.conforms

    def __str__(self) -> str:
        if self.conforms:
            return f"conforms to {self.asked}{self._under}; {self.agreement}"
        lines = [f"differs from {self.asked}"]
        if self.outcome == Status.UNDECIDED:
            letters = ", ".join(self.check.unknowns(self.comparison.target.tree).names)
            lines = [f"undecided: no values of {letters} were found for which the layer computes {self.asked}; they do "
                     "not enter linearly, so pass known ones with values="]  # fmt: skip
        lines += [f"the layer computes: {self.equation}{self._under}"] if self.equation else []
        lines += [f"first term that differs: {self.term}"] if self.term else []
        lines += [f"witness: {self.witness}"] if self.witness else []
        return "\n".join([*lines, *(f"hint: {hint}" for hint in self.hints)])

    @property
    def _under(self) -> str:
        return f" ({self.reading})" if self.reading else ""

    @cached_property
    def properties(self) -> tuple[LayerProperty, ...]:
        """Equivariance, reach, linearity, homogeneity, mass, and the Lipschitz constant with the theorem's bound."""
        return layer_properties(self.check.call, self.check.answers.graphs, self.check.precision, self._bound())

    def _bound(self) -> tuple[float, str] | None:
        """The proved constant of the equation with its values, and its norm; None if there is none."""
        target, reading = self.comparison.target, self.comparison.reading
        if not self.conforms or target.compared != "field" or not self.system.is_single:
            return None
        try:
            constant = lipschitz_global(self.system, reading.normalisation)
            value = None if constant.value is None else sp.sympify(constant.value)
            numbers = {sp.Symbol(k): float(v) for k, v in {**self.check.known, **self.values}.items() if v.ndim == 0}
            number = None if value is None else float(value.xreplace(numbers))
        except (RdgraphError, TypeError, ValueError):
            return None
        return None if number is None else (number, constant.norm)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, for json."""
        return {
            "asked": self.asked, "conforms": self.conforms, "outcome": str(self.outcome), "status": str(self.status),
            "reading": self.reading, "equation": self.equation,
            "agreement": None if self.agreement is None else str(self.agreement),
            "proof": bool(self.agreement is not None and self.agreement.is_proof),
            "witness": None if self.witness is None else str(self.witness), "term": self.term,
            "hints": [{"kind": h.kind, "text": h.text, "explains": h.explains} for h in self.hints],
            "notes": list(self.notes),
            "refused": [{"graph": str(graph), "reason": reason} for graph, reason in self.check.answers.refused],
            "properties": [{"name": p.name, "holds": p.holds, "measured": p.measured} for p in self.properties],
        }  # fmt: skip


def conform(
    layer: Any,
    equation: str | System,
    *,
    compared: str = "field",
    step: float = 1.0,
    count: int = 1,
    T: float = 1.0,
    normalisation: str | Iterable[str] | None = None,
    self_loops: bool | str | None = None,
    transposed: bool | None = False,
    values: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] | Iterable[str] | None = None,
    assume: Iterable[str] | str = (),
    functions: Mapping[str, Sequence[str]] | None = None,
    operators: Mapping[str, OperatorRule] | None = None,
    input_map: bool = False,
    output_map: bool = False,
    shapes: Mapping[str, Shape] | None = None,
    channels: int | None = None,
    graph: Any = None,
    graphs: Any = "all",
    call: Adaptor | None = None,
    seed: int = 0,
) -> Conformity:
    """Check whether a layer computes an equation.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        layer: f(x, edge_index), f(x, edge_index, edge_weight), with x_0 after x where there is a start, f(x, adj), or
            f(t, x) with `graph`; a function or an nn.Module, which is copied and evaluated in double precision.
        equation: a right-hand side in H, H0 and A, or a `System`.
        compared: "field" the right-hand side, "map" the right-hand side applied `count` times, "step" `count` steps of
            Euler's method of length `step`, "flow" the flow to `T`.
        normalisation: of A; symmetric, row, column and none are tried where it is None.
        self_loops: whether A has added self-loops; both are tried where it is None.
        transposed: whether messages flow against the edge directions; both are tried where it is None.
        values: of known coefficients; the others are fitted.
        kinds: of coefficients, as in `parse`.
        assume: signs and relations, as in `parse`; scalars are positive unless declared otherwise, channels only where
            declared.
        functions: for a name such as phi, the functions that phi(...) may be.
        operators: rules (adjacency) -> matrix, or (adjacency, state) -> matrix, of operators besides A and L.
        input_map, output_map: whether an unknown affine map precedes or follows the equation.
        shapes: of matrices between two others.
        channels: of the state, where the layer has no such attribute.
        graph: the graph that f(t, x) uses.
        graphs: "all", "undirected", "simple" (neither loops nor weights either), or a list of graphs.
        call: how the layer is called, (layer, x, x_0, graph) -> output, where the names of its parameters do not tell.
        seed: of the probes.

    Returns:
        The answer; it is true where the layer conforms.

    Raises:
        LanguageError: an equation that cannot be read.
        InvalidArgument: a layer that cannot be called, or unknown options.
        NotApplicable: an equation of several fields, of second order, with time or noise.

    >>> import rdgraph as rd
    >>> def layer(x, edge_index):
    ...     source, target = edge_index
    ...     return x.new_zeros(x.shape).index_add(0, target, x[source]) + x
    >>> rd.conform(layer, "A@H + H", normalisation="none").conforms
    True
    >>> print(rd.conform(layer, "A@H - H", normalisation="none").hints[0])
    sign: the sign of H is flipped
    """
    rules = dict(operators or {})
    texts = _chosen_functions(equation, functions or {})
    systems = [parse(text, kinds, assume=assume, operators=dict.fromkeys(rules, "operator")) for text in texts]
    targets = [Target(_mapped(right_hand_side(s), input_map, output_map), compared, count, step, T) for s in systems]
    bound = None if graph is None else read_graph(graph)
    free = Freedoms(declared_readings(normalisation, self_loops, transposed), read_values(values), rules, shapes or {})
    _check_letters(targets[0].tree, free)
    asked = LayerCall(layer, channels, bound, call)
    examined = _Examination(asked, systems, targets, free, [bound] if bound else graphs, seed)
    return examined.answer()


def _chosen_functions(equation: str | System, functions: Mapping[str, Sequence[str]]) -> list[str | System]:
    """The equation with every choice of functions."""
    if not functions:
        return [equation]
    texts = [str(equation)]
    for letter, choices in functions.items():
        texts = [re.sub(rf"\b{re.escape(letter)}\s*\(", f"{choice}(", text) for text in texts for choice in choices]
    return list(texts)


def _mapped(tree: sp.Basic, before: bool, after: bool) -> sp.Basic:
    """The tree between affine maps."""
    if before:
        matrix, shift = Name(_INPUT[0], Kind.MATRIX), Name(_INPUT[1], Kind.CHANNEL)
        tree = tree.xreplace({field_name(n): Plus(Apply(field_name(n), matrix), shift) for n in ("H", "H0")})
    if after:
        tree = Plus(Apply(tree, Name(_OUTPUT[0], Kind.MATRIX)), Name(_OUTPUT[1], Kind.CHANNEL))
    return tree


def _check_letters(tree: sp.Basic, free: Freedoms) -> None:
    letters = {n.name for n in names_in(tree)}
    known = {n.name for n in names_in(tree) if n.kind not in (Kind.FIELD, Kind.OPERATOR)}
    if unknown := sorted(set(free.values) - known):
        raise InvalidArgument(
            f"expected values of coefficients among {listed(sorted(known)) or 'none'}, got {listed(unknown)}; check "
            "their names"
        )
    missing = {n.name for n in names_in(tree) if n.kind is Kind.OPERATOR} - {"A", "L", "I", *free.rules}
    if missing:
        text = listed(sorted(missing))
        raise InvalidArgument(f"expected a rule for the operators {text}, got none; give operators={{...}}")
    if unused := sorted(set(free.rules) - letters):
        raise InvalidArgument(f"expected operators of the equation, got rules for {listed(unused)}; check their names")


class _Examination:
    """One call of `conform`: the layer as given, and in evaluation mode where that makes a difference."""

    def __init__(
        self, call: LayerCall, systems: list[System], targets: list[Target], free: Freedoms, graphs: Any, seed: int
    ) -> None:
        self.call, self.systems, self.targets, self.free = call, systems, targets, free
        self.graphs: tuple[ProbeGraph, ...] = read_graphs(graphs, weighted=call.takes_weights, seed=seed)
        self.seed = seed

    def answer(self) -> Conformity:
        if self.call.is_random(max(self.graphs, key=lambda g: len(g.edges))):
            return self._random()
        conformity = self._settled(self.call)
        if conformity.conforms or not self.call.is_training:
            return conformity
        other = replace(self.call, is_evaluated=True, notes=[])
        if not self._is_moved(conformity, other):
            return conformity
        calm = self._settled(other, in_full=False)
        if calm.conforms:
            hint = Hint("training mode", "in evaluation mode it conforms; call layer.eval()")
            return replace(conformity, hints=(hint, *conformity.hints))
        return conformity

    def _is_moved(self, conformity: Conformity, other: LayerCall) -> bool:
        """Whether evaluation mode changes an answer."""
        probes = [p for p in conformity.check.answers.probes if p.sort == "generic"][:20]
        return any(not np.array_equal(other(p.graph, p.state, p.start), p.output, equal_nan=True) for p in probes)

    def _random(self) -> Conformity:
        """The answer for a random layer: checked again in evaluation mode, if it was in training mode."""
        hint = Hint("dropout", "the same input gives different outputs, for instance by active dropout", explains=False)
        if not self.call.is_training:
            conformity = self._settled(self.call, in_full=False)
            return replace(conformity, conforms=False, outcome=DIFFERS, agreement=None, equation=None, hints=(hint,))
        calm = self._settled(replace(self.call, is_evaluated=True, notes=[]))
        if calm.conforms:
            hint = Hint("dropout", f"{hint.text}; in evaluation mode it conforms: call layer.eval()")
        return replace(calm, conforms=False, outcome=DIFFERS, agreement=None, hints=(hint, *calm.hints))

    def _settled(self, call: LayerCall, *, in_full: bool = True) -> Conformity:
        answers = ask(call, self.graphs, self.targets[0].degree, self.seed)
        check = LayerCheck(
            call, answers, self.free.values, self.free.rules, self.free.shapes, self.systems[0].assumptions
        )
        outcome = first_agreeing(check, self.targets, self.free.readings)
        if outcome.check.agrees(outcome.comparison):
            return self._agreed(outcome.check, outcome.comparison)
        if not in_full:
            return self._result(check, outcome.comparison, conforms=False)
        conformity = self._differing(check, outcome.comparison, outcome.is_certain)
        return (
            conformity
            if outcome.is_certain or any(h.explains for h in conformity.hints)
            else replace(conformity, outcome=Status.UNDECIDED)
        )

    def _agreed(self, check: LayerCheck, comparison: Comparison) -> Conformity:
        worth = agreement_of(check, comparison)
        return self._result(check, comparison, conforms=True, equation=str(comparison.target), agreement=worth)

    def _differing(self, check: LayerCheck, nearest: Comparison, is_certain: bool) -> Conformity:
        # A layer with a fault may also have rounded numbers.
        causes, tried = self._explained(replace(check, is_mixed=True), nearest, is_certain)
        narrower = None if causes else self._narrower(check)
        line = None if causes else recovered_line(check)
        if narrower is not None:
            nearest = narrower.comparison
        elif line is not None and line.comparison.reading in self.free.readings:
            nearest = check.compared(nearest.target, line.comparison.reading)
        guess = None if causes or narrower else attention_hint(check, nearest.target, nearest.reading)
        hints = [*(e.hint for e in causes), *([guess] if guess else []), *([narrower.hint] if narrower else [])]
        if nearest.objection and not causes:
            hints.append(Hint("sign", nearest.objection, explains=False))
        witness = self._witness(check, nearest, causes, tried)
        equation, reading = _computed(check, causes, line)
        term = next((e.hint.term for e in causes if e.hint.term), "")
        result = self._result(check, nearest, conforms=False, equation=equation, witness=witness, hints=tuple(hints))
        return replace(result, term=term, reading=reading or result.reading)

    def _explained(
        self, check: LayerCheck, nearest: Comparison, is_certain: bool
    ) -> tuple[list[Explanation], tuple[Target, Reading]]:
        """Explanations of a difference under the first reading, the nearest one, or any other admitted reading.

        Returns them with the target and the reading that they modify. A faulty equation may be nearest under a reading
        that is not the layer's, so that all of them are tried where the layer certainly differs.
        """
        tried = [(self.targets[0], self.free.readings[0]), (nearest.target, nearest.reading)]
        tried += [(self.targets[0], reading) for reading in self.free.readings if is_certain]
        for k, (target, reading) in enumerate(dict.fromkeys(tried)):
            if causes := explanations(check, target, reading, EXPLANATION_EFFORT / (k + 1)):
                return causes, (target, reading)
        return [], (nearest.target, nearest.reading)

    def _narrower(self, check: LayerCheck) -> Explanation | None:
        """The reading under which the layer computes the equation on a restricted class of graphs."""
        for domain, words in _NARROWER.items():
            if (part := check.within(domain)) is None:
                continue
            outcome = first_agreeing(part, self.targets, self.free.readings, share=0.25)
            if outcome.check.agrees(outcome.comparison):
                text = f"on {words} it conforms ({part.words(outcome.comparison)}); pass graphs={domain!r} for these"
                return Explanation(Hint("graphs", text), outcome.comparison)
        return None

    def _witness(
        self, check: LayerCheck, nearest: Comparison, causes: list[Explanation], tried: tuple[Target, Reading]
    ) -> LayerWitness | None:
        """A witness for the reading and values of an explanation with all coefficients, else for the nearest fit."""
        options = [(*tried, e.comparison.fit.values) for e in causes]
        for target, reading, fitted in [*options, (nearest.target, nearest.reading, nearest.fit.values)]:
            wanted = check.unknowns(target.tree).names
            if set(wanted) <= set(fitted):
                return smallest_witness(
                    check, target, reading, {**check.known, **{name: fitted[name] for name in wanted}}
                )
        return None

    def _result(
        self,
        check: LayerCheck,
        comparison: Comparison,
        *,
        conforms: bool,
        equation: str | None = None,
        agreement: Agreement | None = None,
        witness: LayerWitness | None = None,
        hints: tuple[Hint, ...] = (),
    ) -> Conformity:
        system = self.systems[self.targets.index(comparison.target)] if comparison.target in self.targets else None
        rounded = [f"some numbers of the layer are rounded to single precision: {comparison.error:.1g}"]
        notes = list(dict.fromkeys([*check.call.notes, *_refusals(check), *(rounded if check.is_mixed else [])]))
        asked = str(self.targets[0]) if len(self.targets) == 1 else " or ".join(to_text(t.tree) for t in self.targets)
        return Conformity(
            asked, conforms, check.words(comparison), equation, agreement, witness, "", hints, tuple(notes),
            dict(comparison.fit.values), CONFORMS if conforms else DIFFERS, check, comparison,
            system or self.systems[0],
        )  # fmt: skip


def _computed(check: LayerCheck, causes: list[Explanation], line: RecoveredLine | None) -> tuple[str | None, str]:
    """The equation that the layer computes, and its reading."""
    if causes:
        first = causes[0]
        return first.hint.equation or str(first.comparison.target), check.words(first.comparison)
    return (None, "") if line is None else (line.text, check.words(line.comparison))


def _refusals(check: LayerCheck) -> list[str]:
    refused = check.answers.refused
    if not refused:
        return []
    names = ", ".join(dict.fromkeys(graph.name for graph, _ in refused))
    return [f"the layer refused these graphs: {names} ({refused[0][1][:120]})"]
