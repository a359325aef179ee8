"""Networks that cannot use a directed graph as it is, in the baselines of a training and in comparisons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import rdgraph as rd
from gread.datasets.node_data import NodeData
from studies.contest.study import enter, make_contest, table_rows
from studies.training.plan import Request, make_plan
from studies.training.reference_answers import BOTH_WAYS, CONVOLUTION, reference_rows


def one_way(data: NodeData) -> NodeData:
    """The data with one direction of every edge."""
    pairs = data.graph.edge_index
    return replace(data, graph=rd.Graph.from_edges(pairs[:, pairs[0] < pairs[1]], data.num_nodes))


def test_the_gcn_of_a_directed_graph_has_edges_in_both_directions() -> None:
    plan = make_plan(Request("karate", splits="0", settings={"hidden": 4, "epochs": 2}))
    rows = reference_rows(replace(plan, data=one_way(plan.data)))
    (row,) = [row for row in rows if row["method"] == CONVOLUTION]
    assert str(row["how"]).endswith(BOTH_WAYS)
    (usual,) = [row for row in reference_rows(plan) if row["method"] == CONVOLUTION]
    assert row["test_accuracy"] == usual["test_accuracy"]
    assert BOTH_WAYS not in str(usual["how"])


def test_networks_of_a_comparison_see_a_directed_graph_as_they_can(tmp_path: Path) -> None:
    plan = make_contest(Request("karate", splits="0"), ["gcn", "gat"], changes=("hidden=4", "epochs=2"))
    directed = replace(plan, data=one_way(plan.data))
    entries = {
        (one.name, name): enter(p, one, tmp_path / f"{one.name}-{name}")
        for one in plan.contestants
        for name, p in (("usual", plan), ("directed", directed))
    }
    assert entries["gcn", "directed"].curves == entries["gcn", "usual"].curves
    assert entries["gat", "directed"].curves != entries["gat", "usual"].curves
    found = {one.name: entries[one.name, "directed"] for one in plan.contestants}
    table = table_rows(
        plan.contestants, {k: e.results for k, e in found.items()}, {k: e.cost[0] for k, e in found.items()}, 0.4
    )
    assert [str(row["settings"]).endswith(BOTH_WAYS) for row in table] == [True, False]
