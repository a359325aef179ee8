"""The registry of measures: what a record promises, and one registered from outside in solve and in a study."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import analysis
import rdgraph as rd
from analysis.measures.measure_records import MEASURES
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.testing import graph_families, states
from studies.oversmoothing import study as oversmoothing
from studies.oversmoothing.flows import BASELINES, Batch, GraphEnsemble, solve_flow
from studies.oversmoothing.rows import curve_rows

F64 = torch.float64


def spread(H: Tensor, op: rd.graphs.Operator, labels: Any) -> Tensor:
    """Largest minus least entry, in units of the nodes: a measure that needs two things."""
    assert len(labels) == op.num_nodes
    return (H.amax((-2, -1)) - H.amin((-2, -1))) / op.num_nodes


@pytest.fixture
def outside() -> Iterator[analysis.Measure]:
    record = analysis.Measure(
        "spread",
        spread,
        ("operator", "labels"),
        label="spread",
        formula=r"$(\max H - \min H)/N$",
        range=(0.0, math.inf),
    )
    yield analysis.register_measure(record)
    analysis.measures.unregister_measure("spread")


# ---------------------------------------------------------------------- what a record promises
@given(graph_families(), st.data())
def test_values_lie_in_the_range_of_the_record(dense: np.ndarray, data: st.DataObject) -> None:
    graph = rd.Graph.from_dense(dense)
    H = torch.as_tensor(data.draw(states(graph.num_nodes, 2)), dtype=F64)
    plain, op = graph.operator("none", dtype=F64), graph.operator("symmetric", dtype=F64)
    labels = [k % 2 for k in range(graph.num_nodes)] if graph.num_nodes > 1 else None
    for name, value in analysis.measure_all(H, plain=plain, op=op, labels=labels).items():
        low, high = MEASURES[name].range
        number = float(value)
        assert math.isnan(number) or low - 1e-9 <= number <= high + 1e-9, (name, number)


def test_built_in_records_say_what_they_need() -> None:
    needs = {name: record.needs for name, record in MEASURES.items()}
    assert needs["dirichlet_energy"] == needs["mad"] == ("plain",)
    assert needs["rayleigh"] == needs["kernel_distance"] == ("operator",)
    assert needs["effective_rank"] == ()
    assert [name for name, need in needs.items() if "labels" in need] == ["fisher_ratio"]
    for record in MEASURES.values():
        assert record.formula.startswith("$")
        assert record.formula.endswith("$")
        assert record.function.__name__ == record.name
        assert record.label


# ---------------------------------------------------------------------- one from outside
def test_a_registered_measure_is_taken_with_the_others(outside: analysis.Measure) -> None:
    graph = rd.generators.path(3)
    plain = graph.operator("none", dtype=F64)
    H = torch.tensor([[0.0], [1.0], [3.0]], dtype=F64)
    assert "spread" not in analysis.measure_all(H, plain=plain)  # it needs labels
    found = analysis.measure_all(H, plain=plain, labels=[0, 1, 1])
    assert list(found)[-1] == "spread"
    assert float(found["spread"]) == 1.0
    with pytest.raises(InvalidArgument, match="expected labels for spread"):
        analysis.measures.make_measures(plain=plain, names=["spread"])
    assert analysis.measures.find_measure("spread") is outside


def test_a_registered_measure_is_followed_by_solve(outside: analysis.Measure) -> None:
    graph = rd.generators.path(3)
    op = graph.operator("row", dtype=F64)
    H = torch.tensor([[0.0], [1.0], [3.0]], dtype=F64)
    made = analysis.measures.make_measures(
        plain=graph.operator("none", dtype=F64), op=op, labels=[0, 1, 1], names=["spread", "dirichlet_energy"]
    )
    solution = rd.solve(rd.lower("diffusion", op, {"alpha": 1.0}), H, [0.0, 1.0], "exact", measures=made)
    assert solution.measures["spread"][0] == 1.0
    assert float(solution.measures["spread"][-1]) == float(spread(solution.final, op, [0, 1, 1]))


def test_a_registered_measure_has_its_rows_in_the_study_of_oversmoothing(outside: analysis.Measure) -> None:
    chosen = {**oversmoothing.settings(True), "graphs": 2, "sizes": [6, 6], "saves": [0.0, 1.0]}
    assert chosen["measures"][-1] == "spread"
    ensemble, flow = GraphEnsemble.make(chosen, 0), BASELINES[0]
    batch = Batch.scalars(flow, chosen)
    found = solve_flow(flow, ensemble, "flow", batch, chosen)
    rows = [row for row in curve_rows(flow, "flow", batch, found) if row["measure"] == "spread"]
    assert [row["t"] for row in rows] == [0.0, 1.0] * len(batch.alpha)
    first = ensemble.features
    sizes = (first.amax((-2, -1)) - first.amin((-2, -1))) / first.shape[-2]
    assert rows[0]["mean"] == pytest.approx(float(sizes.log().mean().exp()))


def test_registration_is_checked(outside: analysis.Measure) -> None:
    with pytest.raises(InvalidArgument, match="'spread' is taken by another measure"):
        analysis.register_measure(outside)
    with pytest.raises(InvalidArgument, match="expected a Measure, got function"):
        analysis.register_measure(spread)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="did you mean 'spread'"):
        analysis.measures.unregister_measure("spraed")
    rest = {"label": "", "formula": "$x$", "range": (0.0, 1.0)}
    with pytest.raises(InvalidArgument, match="expected a Python name"):
        analysis.Measure("two words", spread, (), **rest)
    with pytest.raises(InvalidArgument, match="needs among plain, operator, labels, got 'classes'"):
        analysis.Measure("x", spread, ("classes",), **rest)
    with pytest.raises(InvalidArgument, match="expected a range"):
        analysis.Measure("x", spread, (), label="", formula="$x$", range=(1.0, 0.0))
