"""Figures 2 and 10 of the paper: t-SNE of trained states over the time of the equation, one fit for all times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gread.comparison import Comparison, standard_error
from gread.datasets.node_data import NodeData
from gread.training.trainer import Trained
from rdgraph.errors import RdgraphError
from studies.cells.cell import cited, departures, file_name, grouped_rows, train_first_splits
from studies.paper.drawing import panels_chart
from studies.paper.paired_rows import share_of, signed, with_holm
from studies.paper.runner import Film, Findings, Picture, Settings, Sheet, Table, Verdict, make_run, untrained_verdicts
from studies.runs.chart import DotPanel, Line, MovingDots
from studies.runs.chart_figures import scatter_classes, write_frames
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS
from studies.training.training_figures import flat_map

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

SHEET = Sheet("embeddings", lists={"kinds": ("authors", "paper")})
#: Neighbours in the states' own space that are asked for their class.
NEIGHBOURS = 10
#: Frames between two computed times in the animation.
BETWEEN = 5


@dataclass(frozen=True, eq=False)
class Measured:
    """How classes lie in the states at every time, a map for all times of every set, and what could not be trained."""

    purities: list[MutableRow] = field(default_factory=list)
    maps: dict[str, list[MutableRow]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def measure(run: StudyRun) -> Measured:
    """Look at the states of every set, from networks that are trained only where a part is missing."""
    s, measured = run.settings, Measured()
    for dataset in run.progress([str(name) for name in s["sets"]], "data sets"):
        built = cache(partial(train_first_splits, s["kind"], s["reaction"], dataset, s, run.device, run.seed))
        try:
            purities = run.part(file_name("purity", dataset), partial(purity_rows, built, dataset, s))
            points = run.part(file_name("map", dataset), partial(map_rows, built, s))
        except RdgraphError as problem:
            measured.missing.append(f"{dataset}: {problem}")
            continue
        measured.purities.extend(purities)
        measured.maps[dataset] = points
    return measured


# ---------------------------------------------------------------------- numbers
def states(done: Trained, k: int, shares: Sequence[float]) -> tuple[np.ndarray, list[float]]:
    """States (times, nodes, channels) of network k at these shares of its T, and the times."""
    network, data = done.network(k), done.data_of(k)
    times = [share * network.gread.time for share in shares]
    return network.states(data.x, data.graph, times).double().cpu().numpy(), times


def purity(points: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> float:
    """The share of the nearest neighbours of the `asked` nodes that have their class; nodes without label do not count.

    >>> points = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> purity(points, np.array([0, 0, 0, 1, 1, 1]), np.arange(6)) < 1.0  # five neighbours, two of them alike
    True
    """
    from sklearn.neighbors import NearestNeighbors

    known = np.flatnonzero(labels >= 0)
    count = min(NEIGHBOURS, known.size - 1)
    wanted = asked[labels[asked] >= 0]
    near = NearestNeighbors(n_neighbors=count + 1).fit(points[known]).kneighbors(points[wanted], return_distance=False)
    shares = []
    for node, result in zip(wanted, known[near], strict=True):
        others = result[result != node][:count]
        shares.append(float((labels[others] == labels[node]).mean()))
    return float(np.mean(shares))


def purity_rows(built: Callable[[], Trained], dataset: str, s: Settings) -> list[MutableRow]:
    """How pure the neighbourhoods of the test nodes are at every time, for every split whose training went well."""
    rows: list[MutableRow] = []
    done = built()
    for k, trial in enumerate(done.trials):
        if done.status[k] != "ok":
            continue
        data = done.data_of(k)
        result, times = states(done, k, s["shares"])
        if not np.isfinite(result).all():
            continue
        asked = np.flatnonzero(data.masks.test[trial.split])
        rows += [
            {
                "dataset": dataset, "split": trial.split, "share": float(share), "time": time,
                "purity": purity(H, data.y, asked), "test_accuracy": float(done.test_accuracy[k]),
            }
            for share, time, H in zip(s["shares"], times, result, strict=True)
        ]  # fmt: skip
    return rows


def map_rows(built: Callable[[], Trained], s: Settings) -> list[MutableRow]:
    """One t-SNE of the states of a set at all times together, begun at their principal axes: places can be compared."""
    done = built()
    k = next((k for k, status in enumerate(done.status) if status == "ok"), 0)
    data = done.data_of(k)
    nodes = drawn_nodes(data, s["nodes"])
    result, times = states(done, k, s["shares"])
    chosen = result[:, nodes]
    places = flat_map(chosen.reshape(-1, chosen.shape[-1])).reshape(len(times), len(nodes), 2)
    return [
        {"time": t, "node": int(n), "label": int(data.y[n]), "x": float(p[0]), "y": float(p[1])}
        for t, frame in zip(times, places, strict=True)
        for n, p in zip(nodes, frame, strict=True)
    ]


def drawn_nodes(data: NodeData, most: int) -> np.ndarray:
    """The nodes to draw: all, or `most` random ones, always the same."""
    if data.num_nodes <= most:
        return np.arange(data.num_nodes)
    return np.sort(np.random.default_rng(0).choice(data.num_nodes, most, replace=False))


def purity_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every set and time."""
    table: list[MutableRow] = []
    for (dataset, share), group in grouped_rows(rows, "dataset", "share").items():
        values = np.array([float(row["purity"]) for row in group])
        table.append({
            "dataset": dataset, "share_of_T": float(share), "time": float(group[0]["time"]),
            "purity": float(values.mean()), "error": standard_error(float(values.std()), values.size),
            "splits": int(values.size),
        })  # fmt: skip
    return table


def purity_tests(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """The purity at the end minus that at the start, for every set, in points."""
    table: list[MutableRow] = []
    for (dataset,), group in grouped_rows(rows, "dataset").items():
        shares = [float(row["share"]) for row in group]
        last, first = (
            {int(r["split"]): 100 * float(r["purity"]) for r in group if r["share"] == share}
            for share in (max(shares), min(shares))
        )
        test = Comparison.of(last, first, share_of(str(dataset)))
        table.append(
            {"dataset": dataset, "difference": test.difference, "error": test.error, "p": test.p, "splits": test.splits}
        )
    return with_holm(table)


def _answer(row: MutableRow) -> str:
    return signed(float(row["difference"]), float(row["p_holm"]))


def verdicts(tests: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Does the flow lead to local clusters: are neighbours more often of one class at T than at 0?"""
    for row in tests:
        source = cited("Figures 2 and 10", str(row["dataset"]))
        yield SHEET.verdict("change", _answer(row), **row, source=source)


# ---------------------------------------------------------------------- figures and words
def pictures(table: Sequence[MutableRow], maps: Mapping[str, Sequence[MutableRow]]) -> Iterator[Picture | Film]:
    """The maps of all sets, each as an animation too, and the purity over time."""
    if maps:
        rows: list[MutableRow] = [{"dataset": name, **row} for name, group in maps.items() for row in group]
        dots = MovingDots([dot_panel(name, group) for name, group in maps.items()])
        yield Picture("maps", dots, SHEET.text("maps"), rows)
    for name, group in maps.items():
        caption = f"the map of {name} from t = 0 to T as an animation"
        yield Film(file_name("flow", name), partial(write_flow, rows=group), caption)
    groups = grouped_rows(table, "dataset").items()
    panels = {str(dataset): [Line.of("purity", group, "share_of_T", "purity", "error")] for (dataset,), group in groups}
    if panels:
        chart = panels_chart(panels, "share of T", "purity of neighbourhoods")
        yield Picture("purity", chart, SHEET.text("purity", neighbours=NEIGHBOURS))


def frames(rows: Sequence[MutableRow]) -> tuple[list[float], np.ndarray, np.ndarray]:
    """Times, places (times, nodes, 2) and labels (nodes,) of a map."""
    groups = grouped_rows(rows, "time")
    places = np.array([[[float(r["x"]), float(r["y"])] for r in group] for group in groups.values()])
    labels = np.array([int(r["label"]) for r in next(iter(groups.values()))])
    return [float(key[0]) for key in groups], places, labels


def dot_panel(name: str, rows: Sequence[MutableRow]) -> DotPanel:
    """The map of one set for the page."""
    times, places, labels = frames(rows)
    return DotPanel(name, times, places, labels, [int(r["node"]) for r in rows[: len(labels)]])


def write_flow(path: Path, rows: Sequence[MutableRow]) -> None:
    """A gif of the dots of one set, moving from time to time."""
    from matplotlib.figure import Figure

    times, places, labels = frames(rows)
    figure = Figure(figsize=(4.2, 4.4), dpi=80, layout="constrained")
    axis = figure.subplots()
    groups = scatter_classes(axis, places[0], labels)
    span = np.abs(places).max() * 1.05
    axis.set(xticks=[], yticks=[], xlim=(-span, span), ylim=(-span, span))

    def show(at: float) -> None:
        k = min(int(at), max(0, len(times) - 2))
        part, last = at - k, min(k + 1, len(times) - 1)
        for nodes, dots in groups:
            dots.set_offsets((1 - part) * places[k, nodes] + part * places[last, nodes])
        axis.set_title(f"t = {(1 - part) * times[k] + part * times[last]:.2f}", fontsize=10)

    write_frames(path, figure, map(show, np.linspace(0, len(times) - 1, BETWEEN * (len(times) - 1) + 1)))


def answer(tests: Sequence[MutableRow]) -> str:
    """On how many sets the classes draw together, in one sentence."""
    answers = [_answer(row) for row in tests]
    middle = f"{np.median([float(row['difference']) for row in tests]):+z.1f}" if tests else "no"
    up, down = answers.count(HOLDS), answers.count(FAILS)
    return SHEET.text("answer", up=up, down=down, sets=len(tests), middle=middle)


def about(s: Settings) -> str:
    """Which networks were trained, and what the maps show."""
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    return SHEET.text("about", reaction=s["reaction"], kind=SHEET.entries["kinds"][s["kind"]], changed=changed)


def findings(measured: Measured, s: Settings) -> Findings:
    """How classes lie in the states from the start to T."""
    table, tests = purity_table(measured.purities), purity_tests(measured.purities)
    return Findings(
        results=table,
        items=[*pictures(table, measured.maps), Table("purities", table, SHEET.text("purity", neighbours=NEIGHBOURS))],
        verdicts=[*untrained_verdicts(measured.missing), *verdicts(tests)],
        answer=answer(tests),
        shows="maps",
        about=about(s),
        equations={f"GREAD-{s['reaction']}": str(s["reaction"])},
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(measure, findings)
