"""The page of `rdgraph conform --report`: two formulas side by side, the probes, and the witness drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

import numpy as np

from analysis.figure_files import PALETTE, plain
from rdgraph.errors import RdgraphError
from rdgraph.infer.layers.conformity import Conformity, LayerWitness
from rdgraph.systems.parser import parse
from studies.runs.run_config import RunConfig
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ANSWERS = {True: "holds", False: "fails", None: "undecided"}


def write_report(result: Conformity, layer: str, words: Sequence[str], folder: Path) -> Path:
    """Write the folder of a check with its report.html; returns the path of the page."""
    line = f"rdgraph {join(words)}" if words else f"rdgraph conform {layer}"

    def commands(config: RunConfig, position: Path) -> tuple[str, str]:
        return line, line

    study = Study(
        "conform", f"Does {layer} compute {result.asked}?", f"Does the layer {layer} compute {result.asked}?",
        lambda run: write_page(run, result), lambda small: {"layer": layer, "equation": result.asked}, "torch",
        commands,
    )  # fmt: skip
    return execute(study, folder)


def write_page(run: StudyRun, result: Conformity) -> None:
    """Answer, formulas, witness, hints, probes, properties."""
    if result.conforms:
        run.answer(f"The layer conforms: {result.reading}.", "formulas")
    else:
        why = f" First hint: {result.hints[0]}." if result.hints else ""
        run.answer(f"The layer differs from {result.asked}.{why}", "witness" if result.witness else "formulas")
    sides = formula_rows(result)
    run.figure("formulas", formulas_figure(result), "The equation, and what the layer computes.", sides)
    run.table("sides", sides, "Both sides, with the reading of A and the values of the coefficients.")
    if result.witness is not None:
        run.figure("witness", witness_figure(result.witness), f"The smallest witness found: {result.witness}.",
                   witness_rows(result.witness))  # fmt: skip
    if result.hints:
        rows: list[Row] = [{"kind": h.kind, "hint": h.text, "explains": "yes" if h.explains else "maybe"}
                           for h in result.hints]  # fmt: skip
        run.table("hints", rows, "Why it may be so, the likeliest first.")
    if result.agreement is not None:
        run.say("What the agreement is worth", f"The layer is {result.agreement}.")
    if result.notes:
        run.say("What was noticed", "\n\n".join(f"{note}." for note in result.notes))
    probes = probe_rows(result)
    run.table("probes", probes, "The graphs that the layer was asked on, and its largest error on each.")
    for held in result.properties:
        run.verdict(f"The layer: {held.name}.", _ANSWERS[held.holds], held.measured)
    run.results(probes)


def formula_rows(result: Conformity) -> list[Row]:
    """The two formulas."""
    computed = result.equation or "no line was found"
    return [
        {"side": "the equation", "formula": result.asked, "reading": result.reading if result.conforms else "as asked"},
        {"side": "the layer", "formula": computed, "reading": result.reading},
    ]


def probe_rows(result: Conformity) -> list[Row]:
    """One row per graph: what it is like, how many states, the largest error."""
    check, comparison = result.check, result.comparison
    errors = comparison.errors or check.errors(
        comparison.target, comparison.reading, {**check.known, **comparison.fit.values}
    )
    rows: list[Row] = []
    for graph in check.answers.graphs:
        group = [e for e, p in zip(errors, check.whole.probes, strict=True) if p.graph is graph]
        rows.append({
            "graph": graph.name, "nodes": graph.num_nodes, "edges": len(graph.edges),
            "directed": "yes" if graph.is_directed else "no", "weighted": "yes" if graph.is_weighted else "no",
            "states": len(group), "largest_error": max(group),
            "answer": "agrees" if max(group) <= check.precision else "differs",
        })  # fmt: skip
    for graph, reason in check.answers.refused:
        rows.append({
            "graph": graph.name, "nodes": graph.num_nodes, "edges": len(graph.edges),
            "directed": "yes" if graph.is_directed else "no", "weighted": "yes" if graph.is_weighted else "no",
            "states": 0, "largest_error": float("nan"), "answer": f"refused: {reason[:100]}",
        })  # fmt: skip
    return rows


def witness_rows(witness: LayerWitness) -> list[Row]:
    """Entries of the state and both outputs, node by node."""
    return [
        {"node": node, "state": _row(witness.state[node]), "equation": _row(witness.equation[node]),
         "layer": _row(witness.layer[node])}
        for node in range(witness.graph.num_nodes)
    ]  # fmt: skip


def formulas_figure(result: Conformity) -> Figure:
    """Two panels with formulas, as mathematics where they can be read back."""
    from matplotlib.figure import Figure

    computed = result.equation or "no line was found"
    figure = Figure(figsize=(12, 2.4), layout="constrained")
    for panel, title, text in zip(
        figure.subplots(1, 2), ("the equation", "the layer"), (result.asked, computed), strict=True
    ):
        panel.set_axis_off()
        panel.set_title(title, fontsize=11, loc="left")
        shown = formula_text(text)  # matplotlib breaks no line of mathematics
        panel.text(0.0, 0.5, shown, fontsize=14 if len(text) < 60 else 9, va="center", wrap="$" not in shown)
        same = title == "the equation" or result.conforms
        panel.axhline(0.98, color=PALETTE[0] if same else PALETTE[1], lw=3)
    return figure


def formula_text(text: str) -> str:
    """A formula for a figure: mathematics where matplotlib draws it, else as it is written."""
    from matplotlib.mathtext import MathTextParser

    line, colon, rest = text.partition(":")
    try:
        drawn = f"${parse(line).latex()}$"
        MathTextParser("agg").parse(drawn)
    except (RdgraphError, ValueError):
        return plain(text)
    return f"{drawn}{colon}{plain(rest)}"


def witness_figure(witness: LayerWitness) -> Figure:
    """The graph three times: with the state, with what the equation gives and with what the layer gives."""
    import networkx as nx
    from matplotlib.figure import Figure

    graph = nx.DiGraph()
    graph.add_nodes_from(range(witness.graph.num_nodes))
    graph.add_edges_from(witness.graph.edges)
    places = nx.circular_layout(graph)
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    differs = np.abs(witness.equation - witness.layer).max(axis=1) > 1e-6
    sides = (("H", witness.state), ("the equation gives", witness.equation), ("the layer gives", witness.layer))
    for panel, (title, values) in zip(figure.subplots(1, 3), sides, strict=True):
        marked = differs if title != "H" else np.zeros(len(differs), dtype=bool)
        _draw_values(panel, graph, places, values, marked, is_directed=witness.graph.is_directed)
        panel.set_title(title, fontsize=11)
    return figure


def _draw_values(
    panel: Axes,
    graph: object,
    places: dict[int, np.ndarray],
    values: np.ndarray,
    marked: np.ndarray,
    *,
    is_directed: bool,
) -> None:
    import networkx as nx

    colours = [PALETTE[1] if mark else PALETTE[0] for mark in marked]
    nx.draw_networkx_edges(graph, places, ax=panel, arrows=is_directed, node_size=1800, edge_color="0.5")
    nx.draw_networkx_nodes(graph, places, ax=panel, node_color=colours, node_size=1800, alpha=0.35)
    labels = {node: _row(values[node]) for node in range(len(values))}
    nx.draw_networkx_labels(graph, places, labels, ax=panel, font_size=9)
    panel.margins(0.3)
    panel.set_axis_off()


def _row(values: np.ndarray) -> str:
    shown = [f"{0.0 if abs(v) < 1e-12 else v:.4g}" for v in values[:4]]
    return shown[0] if len(values) == 1 else "(" + ", ".join(shown) + (", ..." if len(values) > 4 else "") + ")"
