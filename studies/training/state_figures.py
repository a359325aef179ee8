"""What a trained network says and holds: the confusion matrix of its test nodes, its states by t-SNE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analysis.figures import PALETTE, plain
from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import Diverged, NotApplicable
from rdgraph.wording import counted
from studies.runs.chart import FieldMap
from studies.runs.moving_dots import DotPanel, MovingDots
from studies.training.figures import Drawing, empty_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gread.datasets.node_data import NodeData
    from gread.models.trained_network import Network
    from gread.training.trainer import Trained

#: Nodes that are drawn by t-SNE at most, and the seed of the choice and of the method.
MOST_NODES, SEED = 3000, 0
#: Rounds of t-SNE, the spread of its start, and the fewest nodes it is drawn for.
ROUNDS, START, FEWEST_NODES = 300, 1e-4, 4
#: Classes whose cells of the confusion matrix still carry numbers.
MOST_WRITTEN = 12


def confusion(done: Trained, sound: Sequence[int]) -> np.ndarray:
    """Counts (classes, classes) of test nodes: row the class, column the prediction, summed over the trials."""
    classes = max(done.data_of(k).num_classes for k in sound)
    counts = np.zeros((classes, classes), dtype=np.int64)
    for k in sound:
        data = done.data_of(k)
        test = data.masks.test[done.trials[k].split]
        told = done.network(k).logits(data.x, data.graph).argmax(-1).numpy()
        np.add.at(counts, (data.y[test], told[test]), 1)
    return counts


def confusion_matrix(done: Trained, sound: Sequence[int]) -> Drawing:
    """Which class of test nodes is taken for which."""
    counts = confusion(done, sound)
    names = _class_names(done.data_of(sound[0]), len(counts))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 2.4 + 0.34 * min(len(counts), 24)
    figure = empty_figure(side + 0.8, side)
    panel = figure.subplots()
    image = panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    places = range(len(counts))
    shown = [plain(name) for name in names]
    panel.set_xticks(places, shown, rotation=90 if max(map(len, names)) > 3 else 0, fontsize=8)
    panel.set_yticks(places, shown, fontsize=8)
    panel.set(xlabel="predicted", ylabel="class")
    if len(counts) <= MOST_WRITTEN:
        for i in places:
            for j in places:
                colour = "white" if shares[i, j] > 0.55 else "black"
                panel.text(j, i, f"{counts[i, j]}", ha="center", va="center", fontsize=8, color=colour)
    figure.colorbar(image, ax=panel, shrink=0.8, label="share of the class")
    rows = [
        {"class": names[i], "predicted": names[j], "count": int(counts[i, j]), "share": float(shares[i, j])}
        for i in places
        for j in places
    ]
    over = counted(len(sound), "trial")
    caption = f"Test nodes by class and prediction, summed over {over}; shades are shares of a class."
    told = [[f"{counts[i, j]} nodes, {100 * shares[i, j]:.0f} percent" for j in places] for i in places]
    table = FieldMap(
        names, names, 100 * shares, np.eye(len(counts)) > 0, "class (rows) and prediction (columns)", 100.0,
        "percent of the class", told, signed=False,
    )  # fmt: skip
    return Drawing("confusion", figure, caption, rows, table)


def _class_names(data: NodeData, count: int) -> list[str]:
    names = data.meta.classes or tuple(str(k) for k in range(count))
    return [name if len(name) <= 16 else name[:15] + "…" for name in names]


def embedded_states(network: Network, data: NodeData) -> Drawing:
    """t-SNE of states, coloured by class: H(0), H(T/2) and H(T), a row for each of several fields, or the first, middle
    and last state of a network without an equation."""
    shown, where = _shown_states(network, data)
    nodes = np.arange(data.num_nodes)
    if len(nodes) > MOST_NODES:
        nodes = np.sort(np.random.default_rng(SEED).choice(nodes, MOST_NODES, replace=False))
    columns = max(map(len, shown.values()))
    figure = empty_figure(3.8 * columns, 0.7 + 3.6 * len(shown))
    panels = figure.subplots(len(shown), columns, squeeze=False)
    rows: list[dict[str, Any]] = []
    labels, ids = data.y[nodes], data.graph.names or range(data.num_nodes)
    moving = []
    for line, (field, states) in zip(panels, shown.items(), strict=True):
        points, maps = None, []
        for panel, (time, state) in zip(line, states, strict=True):
            points = flat_map(state[nodes], points)
            maps.append(points)
            _scatter(panel, points, labels, data)
            panel.set_title(f"{plain(field)}({time:.3g})" if where.is_flow else f"state {time:g}", fontsize=10)
            rows += [
                {"field": field, where.column: time, "node": ids[int(n)], "label": int(c), "x": float(p[0]),
                 "y": float(p[1])}
                for n, c, p in zip(nodes, labels, points, strict=True)
            ]  # fmt: skip
        moving.append(DotPanel(field, [time for time, _ in states], np.array(maps), labels, nodes.tolist()))
    handles, names = panels[0, 0].collections, _legend(labels, data)
    figure.legend(handles, names, loc="outside lower center", ncols=min(10, len(names)), frameon=False, fontsize=8,
                  markerscale=(30 / _size(len(nodes))) ** 0.5)  # fmt: skip
    part = f"{len(nodes)} of {data.num_nodes} nodes" if len(nodes) < data.num_nodes else "all nodes"
    caption = f"{where.words}, {part}, in two dimensions by t-SNE; every map begins at the one before."
    return Drawing("states", figure, caption, rows, MovingDots(moving, word="t" if where.is_flow else "state"))


class _Where(NamedTuple):
    """When states are looked at: at times of a flow, or by number; the column of that, and what they are in words."""

    is_flow: bool
    column: str
    words: str


def _shown_states(network: Network, data: NodeData) -> tuple[dict[str, list[tuple[float, np.ndarray]]], _Where]:
    """By field the states that are drawn, each with its time or its number, layer by layer."""
    if isinstance(network.config, GreadSettings):
        T = network.config.time
        times = [0.0, T / 2, T]
        fields = [equation.field for equation in network.system.equations]
        found = {
            field: list(zip(times, network.states(data.x, data.graph, times, field).double().numpy(), strict=True))
            for field in fields
        }
        return found, _Where(True, "time", f"States of the trained flow at t = 0, T/2 and T = {T:g}")
    layers = network.layers(data.x, data.graph)
    numbers = sorted({0, len(layers) // 2, len(layers) - 1})
    states = [(float(k + 1), layers[k].double().numpy()) for k in numbers]
    told = ", ".join(str(k + 1) for k in numbers)
    words = f"States of the trained network, layer by layer: numbers {told} of {len(layers)}"
    return {"H": states}, _Where(False, "state", words)


def flat_map(points: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """t-SNE (n, 2) of points (n, d), begun at an earlier map or at two principal axes; the same for the same points."""
    from sklearn.manifold import TSNE

    if not np.isfinite(points).all():
        raise Diverged("no map because the states diverged")
    centred = points - points.mean(axis=0)
    scale = float(centred.std())
    if scale == 0 or len(points) < FEWEST_NODES:
        raise NotApplicable(f"no map because there are fewer than {FEWEST_NODES} different states")
    if start is None:
        left, sizes, _ = np.linalg.svd(centred / scale, full_matrices=False)
        axes = (left * sizes)[:, :2]
        start = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    first = (START * start / start.std()).astype(np.float32)
    rate = max(len(points) / 48, 10.0)  # scikit-learn's own is too fast for a few dozen points
    method = TSNE(
        perplexity=min(30.0, (len(points) - 1) / 3), learning_rate=rate, init=first, random_state=SEED, max_iter=ROUNDS
    )
    return np.asarray(method.fit_transform(centred / scale), dtype=np.float64)


def _scatter(panel: Axes, points: np.ndarray, labels: np.ndarray, data: NodeData) -> None:
    from matplotlib import colormaps

    known = np.unique(labels)
    wide = colormaps["tab20"]
    size = _size(len(points))
    for i, c in enumerate(known.tolist()):
        colour = "0.75" if c < 0 else PALETTE[i] if len(known) <= len(PALETTE) else wide(i % 20)
        mine = labels == c
        panel.scatter(points[mine, 0], points[mine, 1], s=size, color=colour, lw=0)
    panel.set(xticks=[], yticks=[])
    panel.set_aspect("equal", adjustable="datalim")


def _legend(labels: np.ndarray, data: NodeData) -> list[str]:
    """The name of every class that occurs, in the order in which `_scatter` draws them."""
    names = _class_names(data, data.num_classes)
    return ["unknown" if c < 0 else plain(names[c]) for c in np.unique(labels).tolist()]


def _size(count: int) -> float:
    """The area of a dot, where so many are drawn."""
    return float(np.clip(4000 / count, 4, 40))
