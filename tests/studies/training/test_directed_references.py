"""The baselines of a training on a directed graph, which a GCN cannot use as it is."""

from __future__ import annotations

from dataclasses import replace

import rdgraph as rd
from studies.training.plan import Request, make_plan
from studies.training.reference_answers import CONVOLUTION, reference_rows


def test_the_gcn_of_a_directed_graph_has_edges_in_both_directions() -> None:
    plan = make_plan(Request("karate", splits="0", settings={"hidden": 4, "epochs": 2}))
    pairs = plan.data.graph.edge_index
    one_way = rd.Graph.from_edges(pairs[:, pairs[0] < pairs[1]], plan.data.num_nodes)
    rows = reference_rows(replace(plan, data=replace(plan.data, graph=one_way)))
    (row,) = [row for row in rows if row["method"] == CONVOLUTION]
    assert "both ways" in str(row["how"])
    (usual,) = [row for row in reference_rows(plan) if row["method"] == CONVOLUTION]
    assert row["test_accuracy"] == usual["test_accuracy"]
    assert "both ways" not in str(usual["how"])
