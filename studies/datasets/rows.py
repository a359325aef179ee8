"""The data sets as rows: facts, shapes, twins, and the paper's table."""

from __future__ import annotations

from gread.datasets.comparison import Comparison
from gread.datasets.facts import alike_shares, degrees
from studies.datasets import figures as figures
from studies.datasets.local_sets import LocalSets
from studies.runs.tables import Row


def facts_rows(local: LocalSets, name: str) -> list[Row]:
    facts = local.facts(name)
    row: Row = {
        "set": facts.name,
        "nodes": facts.nodes,
        "edges": facts.edges,
        "loops": facts.loops,
        "features": facts.features,
        "classes": facts.classes,
        "edge_homophily": facts.edge_homophily,
        "node_homophily": facts.node_homophily,
        "adjusted_homophily": facts.adjusted_homophily,
        "splits": facts.split_shares,
        "masks_cover": facts.coverage,
        "components": facts.components,
        "largest_component": facts.component_nodes,
        "isolated": facts.isolated,
        "unlabelled": facts.unlabelled,
        "empty_rows": facts.empty_rows,
        "average_degree": facts.average_degree,
        "max_degree": facts.max_degree,
        "feature_density": facts.feature_density,
    }
    return [row]


def shape_rows(local: LocalSets, name: str) -> list[Row]:
    data = local.read(name)
    return [*figures.degree_rows(name, degrees(data.graph)), *figures.alike_rows(name, alike_shares(data))]


def twins_rows(local: LocalSets, name: str) -> list[Row]:
    twins = local.twins(name)
    shares = {
        "one_label": twins.one_label,
        "in_training": twins.in_training,
        "alike": twins.alike,
        "beyond_leaves": twins.beyond_leaves,
    }
    percent = {key: round(100 * share, 1) if share == share else -1.0 for key, share in shares.items()}
    return [{"set": twins.name, "nodes": twins.nodes, "twins": twins.twins, "groups": twins.groups, **percent}]


def paper_row(found: Comparison) -> Row:
    answer = "agrees" if found.agrees else "differs"
    return {
        "set": found.name,
        "quantity": found.quantity,
        "paper": found.printed.value,
        "counted": round(found.ours, 4),
        "answer": answer,
        "why": found.reason,
    }
