"""`recover`: the line of maths that a layer computes, or why the language has none for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rdgraph.conformance.certificates import Certificate, certificate, is_polynomial
from rdgraph.conformance.layer_call import Adaptor, LayerCall
from rdgraph.conformance.layer_check import LayerCheck
from rdgraph.conformance.layer_properties import LayerProperty, layer_properties, reach_of
from rdgraph.conformance.line_recovery import LONGEST, RecoveredLine, recovered_line
from rdgraph.conformance.operator_reading import declared_readings
from rdgraph.conformance.probe_graphs import read_graph, read_graphs
from rdgraph.conformance.probe_stack import ask

#: Polynomials up to this degree are told apart.
MOST_DEGREE = 3


@dataclass(frozen=True)
class Recovery:
    """A line of the language with its reading and the values of its letters, or the reason why there is none."""

    equation: str | None
    reading: str
    reason: str
    values: Mapping[str, np.ndarray]
    certificate: Certificate | None
    properties: tuple[LayerProperty, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.equation is not None

    def __str__(self) -> str:
        if self.equation is None:
            return f"no line in the language: {self.reason}"
        return f"{self.equation} ({self.reading}); {self.certificate}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for json."""
        return {
            "equation": self.equation, "reading": self.reading, "reason": self.reason,
            "values": {name: value.tolist() for name, value in self.values.items()},
            "certificate": None if self.certificate is None else str(self.certificate),
            "properties": [{"name": p.name, "holds": p.holds, "measured": p.measured} for p in self.properties],
            "notes": list(self.notes),
        }  # fmt: skip


def recover(
    layer: Any,
    *,
    channels: int | None = None,
    graph: Any = None,
    graphs: Any = "all",
    call: Adaptor | None = None,
    seed: int = 0,
) -> Recovery:
    """The line of maths that a layer computes, or why there is none.

    Args:
        layer: as in `conform`.
        channels: of the state, where the layer does not say.
        graph: the graph that is bound in f(t, x).
        graphs: "all", "undirected", "simple", or a list of graphs.
        call: how the layer is called, where its parameters do not say.
        seed: of the probes.

    Returns:
        The line, the reading of A, the values of its letters, and what the agreement is worth; or the reason.

    Raises:
        InvalidArgument: a layer that cannot be called.

    >>> def layer(x, edge_index):
    ...     source, target = edge_index
    ...     return x - 0.25*x.new_zeros(x.shape).index_add(0, target, x[source])
    >>> recover(layer).equation, recover(layer).reading
    ('H - 0.25*A@H', 'no normalisation without self-loops')
    """
    bound = None if graph is None else read_graph(graph)
    asked = LayerCall(layer, channels, bound, call)
    chosen = read_graphs([bound] if bound else graphs, weighted=asked.takes_weights, seed=seed)
    largest = max(chosen, key=lambda g: len(g.edges))
    if asked.is_random(largest):
        return Recovery(None, "", _random_reason(asked), {}, None, (), tuple(asked.notes))
    answers = ask(asked, chosen, None, seed)
    check = LayerCheck(asked, answers)
    degree = next((m for m in range(1, MOST_DEGREE + 1) if is_polynomial(check, m)), None)
    check = LayerCheck(asked, ask(asked, chosen, degree, seed))
    properties = layer_properties(asked, check.answers.graphs, check.precision)
    check, line = _searched_line(check, degree, properties)
    if line is None:
        return Recovery(None, "", _reason(properties, degree), {}, None, properties, tuple(asked.notes))
    worth = certificate(check, line.comparison)
    reading = check.words(line.comparison)
    values = {**line.line.values, **line.comparison.fit.values}
    return Recovery(line.text, reading, "", values, worth, properties, tuple(asked.notes))


def _searched_line(
    check: LayerCheck, degree: int | None, properties: Sequence[LayerProperty]
) -> tuple[LayerCheck, RecoveredLine | None]:
    """The line, and the check that it was found with: numbers may have been rounded to single precision."""
    held = {p.name: p.holds for p in properties}
    if held["permutation equivariance"] is False or held["local"] is False:
        return check, None
    reach = reach_of(properties)
    readings, longest = declared_readings(transposed=None), LONGEST if reach is None else reach
    line = recovered_line(check, readings, longest)
    if line is None and degree == 1:
        check = replace(check, is_mixed=True)
        line = recovered_line(check, readings, longest)
    return check, line


def _random_reason(call: LayerCall) -> str:
    remedy = "; call layer.eval()" if call.is_training else ""
    return f"the same input gives different outputs, as by dropout that was left on{remedy}"


def _reason(properties: Sequence[LayerProperty], degree: int | None) -> str:
    """Why no line was found, from the properties that were measured."""
    held = {p.name: p for p in properties}
    if held["permutation equivariance"].holds is False:
        return "it depends on how the nodes are numbered"
    if held["local"].holds is False:
        return "a node reaches the whole graph, which no word of A does"
    if degree == 1:
        return (
            f"it is affine in the state, but no combination of words up to A^{LONGEST} and D under any normalisation: "
            "its weights depend on the graph in another way"
        )
    if degree is not None:
        return (
            f"it is a polynomial of degree {degree} in the state, but none of the monomials in H and A@H that are tried"
        )
    return (
        "it is no polynomial in the state, and no function of the list around or beside words of A: its weights may "
        "depend on states at both ends of an edge, as attention does"
    )
