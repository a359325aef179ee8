"""Figures 2 and 10 of the paper: t-SNE of trained states over the time of the equation, one fit for all times."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.datasets.node_data import NodeData
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, train
from rdgraph.errors import RdgraphError
from studies.cells.agreement import LEVEL, holm
from studies.cells.cell import ALL_TRAINED, file_name, grouped_rows, load_set, shrunk
from studies.cells.cell_figures import curve_panels
from studies.cells.cell_limits import COUNT, NAMED_REACTIONS, cell_limits
from studies.cells.corrected_test import CorrectedTest, share_ratio
from studies.cells.nine_sets import SETS, cited, departures, published_config
from studies.runs.chart import Line
from studies.runs.chart_figures import class_colours, dot_area
from studies.runs.moving_dots import DotPanel, MovingDots
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, standard_error
from studies.training.figures import empty_figure
from studies.training.state_figures import flat_map

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Neighbours in the states' own space that are asked for their class.
NEIGHBOURS = 10
#: The kinds of published settings in words.
KINDS = {"authors": "the authors' released settings", "paper": "the settings that the paper prints"}
#: Frames between two computed times in the animation.
BETWEEN = 5


def settings(small: bool) -> dict[str, Any]:
    """Sets, shares of T at which states are looked at, and how many nodes are drawn."""
    if small:
        return {
            "sets": ["karate"], "reaction": "BS", "kind": "authors", "shares": [0.0, 0.5, 1.0], "nodes": 34,
            "splits": 2, "epochs": 20, "hidden": 8,
        }  # fmt: skip
    return {
        "sets": list(SETS), "reaction": "BS", "kind": "authors", "shares": [0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0],
        "nodes": 400, "splits": 10, "epochs": 0, "hidden": 0,
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    kinds = Limit(known=tuple(KINDS), what="kind of published settings")
    return cell_limits(
        reaction=NAMED_REACTIONS, kind=kinds, shares=Limit(least=0, most=1, needed=(0.0, 1.0)), nodes=COUNT
    )


def run(run: StudyRun) -> None:
    """Train, measure how classes lie in the states at every time, and draw one map for all times of every set."""
    measures: list[MutableRow] = []
    maps: dict[str, list[MutableRow]] = {}
    missing = []
    for dataset in run.progress(run.settings["sets"], "data sets"):
        try:
            found, points = _looked_at(run, str(dataset))
        except RdgraphError as problem:
            missing.append(f"{dataset}: {problem}")
            continue
        measures += found
        maps[str(dataset)] = points
    table = purity_table(measures)
    _draw(run, table, maps)
    run.table("purities", table, CAPTION)
    if missing:
        run.verdict(ALL_TRAINED, FAILS, "; ".join(missing))
    tests = purity_tests(measures)
    for verdict in verdicts(tests):
        run.verdict(*verdict)
    run.answer(answer(tests), "maps")
    run.equation(run.settings["reaction"], f"GREAD-{run.settings['reaction']}")
    run.say("What is run", about(run.settings))
    run.results(table)


def _looked_at(run: StudyRun, dataset: str) -> tuple[list[MutableRow], list[MutableRow]]:
    """Measures and map of one set, from networks that are trained only where a part is missing."""

    @cache
    def made() -> Trained:
        return trained(dataset, run.settings, run.device, run.seed)

    measures = run.part(file_name("purity", dataset), lambda: purity_rows(made(), dataset, run.settings))
    return measures, run.part(file_name("map", dataset), lambda: map_rows(made(), dataset, run.settings))


# ---------------------------------------------------------------------- numbers
def trained(dataset: str, s: Mapping[str, Any], device: str, seed: int) -> Trained:
    """A network for every split."""
    config = shrunk(published_config(s["kind"], s["reaction"], dataset), s["epochs"], s["hidden"])
    data = load_set(dataset)
    return train(data, make_trials(config, range(min(s["splits"], data.num_splits)), (seed,)), device=device)


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
    for node, found in zip(wanted, known[near], strict=True):
        others = found[found != node][:count]
        shares.append(float((labels[others] == labels[node]).mean()))
    return float(np.mean(shares))


def purity_rows(done: Trained, dataset: str, s: Mapping[str, Any]) -> list[MutableRow]:
    """How pure the neighbourhoods of the test nodes are at every time, for every split whose training went well."""
    rows: list[MutableRow] = []
    for k, trial in enumerate(done.trials):
        if done.status[k] != "ok":
            continue
        data = done.data_of(k)
        found, times = states(done, k, s["shares"])
        if not np.isfinite(found).all():
            continue
        asked = np.flatnonzero(data.masks.test[trial.split])
        rows += [
            {
                "dataset": dataset, "split": trial.split, "share": float(share), "time": time,
                "purity": purity(H, data.y, asked), "test_accuracy": float(done.test_accuracy[k]),
            }
            for share, time, H in zip(s["shares"], times, found, strict=True)
        ]  # fmt: skip
    return rows


def map_rows(done: Trained, dataset: str, s: Mapping[str, Any]) -> list[MutableRow]:
    """One t-SNE of the states at all times together, begun at their principal axes: positions can be compared."""
    k = next((k for k, status in enumerate(done.status) if status == "ok"), 0)
    data = done.data_of(k)
    nodes = drawn_nodes(data, s["nodes"])
    found, times = states(done, k, s["shares"])
    chosen = found[:, nodes]
    places = flat_map(chosen.reshape(-1, chosen.shape[-1])).reshape(len(times), len(nodes), 2)
    return [
        {"time": t, "node": int(n), "label": int(data.y[n]), "x": float(p[0]), "y": float(p[1])}
        for t, frame in zip(times, places, strict=True)
        for n, p in zip(nodes, frame, strict=True)
    ]


def drawn_nodes(data: NodeData, most: int) -> np.ndarray:
    """The nodes that are drawn: all, or so many at random, the same every time."""
    if data.num_nodes <= most:
        return np.arange(data.num_nodes)
    return np.sort(np.random.default_rng(0).choice(data.num_nodes, most, replace=False))


CAPTION = (
    f"Purity: the share of the {NEIGHBOURS} nearest neighbours of a test node, in the states themselves and not in the "
    "map, that have its class; mean and standard error over the splits."
)


def purity_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every set and time."""
    table: list[MutableRow] = []
    for (dataset, share), own in grouped_rows(rows, "dataset", "share").items():
        values = np.array([float(row["purity"]) for row in own])
        table.append({
            "dataset": str(dataset), "share_of_T": float(share), "time": float(own[0]["time"]),
            "purity": float(values.mean()), "error": standard_error(float(values.std()), values.size),
            "splits": int(values.size),
        })  # fmt: skip
    return table


def purity_tests(rows: Sequence[MutableRow]) -> dict[str, CorrectedTest]:
    """The purity at the end minus that at the start, for every set, in points."""
    found = {}
    for (dataset,), own in grouped_rows(rows, "dataset").items():
        shares = sorted({float(row["share"]) for row in own})
        first, last = (
            {int(r["split"]): 100 * float(r["purity"]) for r in own if r["share"] == share}
            for share in (shares[0], shares[-1])
        )
        found[str(dataset)] = CorrectedTest.of(last, first, share_ratio(load_set(str(dataset))))
    return found


def verdicts(tests: Mapping[str, CorrectedTest]) -> list[tuple[str, str, str]]:
    """Does the flow lead to local clusters: are neighbours more often of one class at T than at 0?"""
    corrected = holm([test.p for test in tests.values()])
    return [
        (
            f"On {dataset} the flow leads to local clusters of one class{cited('Figures 2 and 10', dataset)}.",
            (HOLDS if test.difference > 0 else FAILS) if p < LEVEL else UNDECIDED,
            f"purity at T minus purity at 0: {test.difference:+z.2f} points (error {test.error:.2f}, p {p:.2g} after "
            f"Holm) over {test.splits} splits",
        )
        for (dataset, test), p in zip(tests.items(), corrected, strict=True)
    ]


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, table: Sequence[MutableRow], maps: Mapping[str, Sequence[MutableRow]]) -> None:
    if maps:
        run.chart(
            "maps", MovingDots([dot_panel(name, own) for name, own in maps.items()]),
            "States of trained networks from the start to T, in two dimensions by t-SNE; one fit for all times of a "
            "set, begun at the principal axes, so that frames can be compared; between the computed times dots move "
            "on straight lines; colours are classes.",
            [{"dataset": name, **row} for name, own in maps.items() for row in own],
        )  # fmt: skip
        for name, own in maps.items():
            caption = f"the map of {name} from t = 0 to T as an animation"
            run.animation(file_name("flow", name), partial(write_flow, rows=own), caption, is_shown=False)
    panels = {}
    for (dataset,), own in grouped_rows(table, "dataset").items():
        columns = (np.array([float(r[c]) for r in own]) for c in ("share_of_T", "purity", "error"))
        panels[str(dataset)] = [Line("purity", *columns)]
    if panels:
        run.chart("purity", curve_panels(panels, "share of T", "purity of neighbourhoods"), CAPTION)


def frames(rows: Sequence[MutableRow]) -> tuple[list[float], np.ndarray, np.ndarray]:
    """Times, places (times, nodes, 2) and labels (nodes,) of a map."""
    groups = grouped_rows(rows, "time")
    places = np.array([[[float(r["x"]), float(r["y"])] for r in own] for own in groups.values()])
    labels = np.array([int(r["label"]) for r in next(iter(groups.values()))])
    return [float(key[0]) for key in groups], places, labels


def dot_panel(name: str, rows: Sequence[MutableRow]) -> DotPanel:
    """The map of one set for the page."""
    times, places, labels = frames(rows)
    return DotPanel(name, times, places, labels, [int(r["node"]) for r in rows[: len(labels)]])


def write_flow(path: Path, rows: Sequence[MutableRow]) -> None:
    """A gif of the dots of one set, moving from time to time."""
    from PIL import Image

    times, places, labels = frames(rows)
    figure = empty_figure(4.2, 4.4)
    axis = figure.subplots()
    dots = axis.scatter(places[0, :, 0], places[0, :, 1], s=dot_area(len(labels)), c=class_colours(labels), lw=0)
    span = np.abs(places).max() * 1.05
    axis.set(xticks=[], yticks=[], xlim=(-span, span), ylim=(-span, span))
    pictures = []
    for at in np.linspace(0, len(times) - 1, BETWEEN * (len(times) - 1) + 1):
        k, part = min(int(at), max(0, len(times) - 2)), at - min(int(at), max(0, len(times) - 2))
        last = min(k + 1, len(times) - 1)
        dots.set_offsets((1 - part) * places[k] + part * places[last])
        axis.set_title(f"t = {(1 - part) * times[k] + part * times[last]:.2f}", fontsize=10)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=80)
        pictures.append(Image.open(drawn).convert("RGB").quantize(64))
    durations = [120] * (len(pictures) - 1) + [1500]
    pictures[0].save(path, format="GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0)


def answer(tests: Mapping[str, CorrectedTest]) -> str:
    """On how many sets the classes draw together, in one sentence."""
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    up = [d for d, test in tests.items() if test.difference > 0 and corrected[d] < LEVEL]
    down = [d for d, test in tests.items() if test.difference < 0 and corrected[d] < LEVEL]
    gaps = [test.difference for test in tests.values()]
    middle = f"{np.median(gaps):+z.1f}" if gaps else "no"
    return (
        f"From t = 0 to T the nearest neighbours of a test node come to share its class more often on {len(up)} of "
        f"{len(tests)} sets and less often on {len(down)}; the median change is {middle} points."
    )


def about(s: Mapping[str, Any]) -> str:
    """Which networks were trained, and what the maps show."""
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    return (
        f"GREAD-{s['reaction']} with {KINDS[s['kind']]}{changed}, a network for every split; states at the best "
        "validation epoch. The maps show the first split whose training went well. t-SNE shows neighbours and not "
        "distances, so that the statement about clusters is judged in the states themselves, on test nodes, which the "
        "network was not trained on."
    )
