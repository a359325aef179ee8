"""Figures of a training: learning curves, coefficients, filter response, confusion matrix, states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy as sp

from gread.models.resolution import TRUSTED
from gread.settings.gread_settings import GreadSettings
from gread.training.ensemble import METRICS
from rdgraph.errors import Diverged, NotApplicable
from rdgraph.language.tree import Kind, names_in
from rdgraph.run.engines.engine import silent
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.systems.system import System
from rdgraph.theory.filters import response
from rdgraph.vocabulary.methods import FIXED
from rdgraph.vocabulary.normalisations import find_normalisation
from rdgraph.wording import counted
from studies.runs.chart import Chart, DotPanel, FieldMap, Line, MovingDots, Panel
from studies.runs.report import Drawn

if TYPE_CHECKING:
    from gread.datasets.node_data import NodeData
    from gread.models.trained_network import Network
    from gread.training.trainer import Trained
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- training figures
GRID = np.linspace(0.0, 2.0, 201)
#: Most trials drawn one by one.
MOST_TRIALS = 40
#: Largest gain on a linear scale.
LINEAR_GAIN = 20.0


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption and its numbers."""

    name: str
    drawn: Drawn
    caption: str
    rows: Sequence[dict[str, Any]]

    def add_to(self, run: StudyRun) -> None:
        """Add it to the report."""
        run.figure(self.name, self.drawn, self.caption, self.rows)


# ---------------------------------------------------------------------- learning curves
def learning_curves(done: Trained) -> Drawing:
    """Learning curves: means over the trials with bands from the least to the largest, and the loss."""
    epochs = np.arange(1, done.history.shape[1] + 1)
    metric = done.data_of(0).meta.metric_title
    lines: dict[str, Line] = {}
    rows: list[dict[str, Any]] = []
    for k, part in enumerate(("loss", "training", "validation", "test")):
        values = done.history[:, :, k].astype(np.float64) * (1 if k == 0 else 100)
        low, high = (None if len(values) == 1 else _ends(values, end) for end in (np.fmin, np.fmax))
        lines[part] = Line(part, epochs, _mean(values), low=low, high=high)
        for row, epoch in enumerate(epochs):
            each = {f"split {t.split} seed {t.seed}": values[m, row] for m, t in enumerate(done.trials)}
            rows.append({"metric": METRICS[k], "epoch": int(epoch), "mean": lines[part].y[row], **each})
    best = [(float(e), 100 * float(done.history[m, e - 1, 3])) for m, e in enumerate(done.best_epoch.tolist()) if e > 0]
    scores = [lines[part] for part in ("training", "validation", "test")]
    if best:
        x, y = np.array(sorted(best)).T
        scores.append(Line("test at the best epochs", x, y, style="dots"))
    panels = [Panel(metric, scores), Panel("loss on training nodes", [lines["loss"]], y_label="cross-entropy")]
    caption = (
        f"Learning curves of {counted(len(done.trials), 'trial')}: mean and range. Dots: the first epoch with the best "
        f"validation {metric}, whose test {metric} is the result."
    )
    return Drawing("learning", Chart(panels, "epoch", f"{metric}, percent", columns=2), caption, rows)


def _ends(values: np.ndarray, end: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """The least or the largest finite value of every column."""
    return reduce(end, np.where(np.isfinite(values), values, np.nan))


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean of the finite values of every column; nan without any."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    return np.where(count > 0, np.where(finite, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


# ---------------------------------------------------------------------- coefficients
def coefficient_values(done: Trained, sound: Sequence[int]) -> Drawing | None:
    """Learned coefficients, a panel each: a dot per trial for scalars, else a histogram over all trials.

    A coefficient of several equations is drawn with the first of them, one of several blocks by block. None if the
    equation has no learned coefficient; the trusted nodes M of a source are given.
    """
    system = done.network(sound[0]).system
    kinds = learned(system)
    lines = coefficient_lines(system)
    if not lines:
        return None
    blocks = own_blocks(done.network(sound[0]))
    if len(blocks) > 1:
        return _by_block(done, sound, kinds, blocks)
    values = _entries(done, sound, kinds, blocks[0])
    panels: list[Panel] = []
    rows: list[dict[str, Any]] = []
    for rest, names in lines.items():
        for name in names:
            lead = f"{rest}: " if len(lines) > 1 else ""
            panels.append(_value_panel(name, f"{lead}{name}, {kinds[name].value}", values[name]))
            rows += _value_rows(done, sound, name, kinds[name], values[name])
    caption = (
        "Learned coefficients at the best epochs: for scalars a dot per trial and their mean, else a histogram of the "
        f"values of all channels, nodes or matrix entries over {counted(len(sound), 'trial')}."
    )
    return Drawing("coefficients", Chart(panels, "trial", columns=max(map(len, lines.values()))), caption, rows)


def own_blocks(network: Network) -> range:
    """The blocks of a network around an equation that have coefficients of their own, counted from 1."""
    model = network.gread
    return range(1, 2 if model.shares("coefficients") else model.blocks + 1)


def _entries(done: Trained, sound: Sequence[int], kinds: Mapping[str, Kind], block: int) -> dict[str, list[np.ndarray]]:
    """The entries of the coefficients of a block, by name, for every trial."""
    collected = [done.network(k).coefficients(block) for k in sound]
    return {name: [one[name].detach().double().numpy().reshape(-1) for one in collected] for name in kinds}


def _by_block(done: Trained, sound: Sequence[int], kinds: Mapping[str, Kind], blocks: range) -> Drawing:
    """Learned coefficients against the block: mean and range over all trials and entries."""
    numbers = np.array(blocks, dtype=float)
    values = {block: _entries(done, sound, kinds, block) for block in blocks}
    panels = []
    for name, kind in kinds.items():
        entries = np.stack([np.concatenate(values[block][name]) for block in blocks])
        line = Line("mean and range", numbers, entries.mean(1), low=entries.min(1), high=entries.max(1))
        panels.append(Panel(f"{name}, {kind.value}", [line], y_label=name))
    rows = [
        {"block": block, **row}
        for block in blocks
        for name, kind in kinds.items()
        for row in _value_rows(done, sound, name, kind, values[block][name])
    ]
    caption = (
        "Learned coefficients of every block at the best epochs: mean and range over the values of all channels, nodes "
        f"or matrix entries of {counted(len(sound), 'trial')}."
    )
    return Drawing("coefficients", Chart(panels, "block", columns=min(3, len(panels))), caption, rows)


def coefficient_lines(system: System) -> dict[str, list[str]]:
    """Learned coefficients by the left-hand side of the first equation in which they occur.

    >>> import rdgraph as rd
    >>> coefficient_lines(rd.parse("u' = -Du*L@u + beta*v; v' = beta*u - Dv*L@v"))
    {"u'": ['Du', 'beta'], "v'": ['Dv']}
    """
    remaining = dict(learned(system))
    lines: dict[str, list[str]] = {}
    for equation in system.equations:
        names = {name.name for name in names_in(equation.expression)}
        if first := [name for name in remaining if name in names]:
            lines[equation.left] = first
            remaining = {name: kind for name, kind in remaining.items() if name not in names}
    return lines


def _value_rows(
    done: Trained, sound: Sequence[int], name: str, kind: Kind, values: Sequence[np.ndarray]
) -> list[dict[str, Any]]:
    """Rows of the entries of a coefficient in every trial."""
    return [
        {"coefficient": name, "kind": str(kind.value), "split": done.trials[k].split, "seed": done.trials[k].seed,
         "index": i, "value": v}
        for k, group in zip(sound, values, strict=True)
        for i, v in enumerate(group.tolist())
    ]  # fmt: skip


def learned(system: System) -> dict[str, Kind]:
    """The coefficients of an equation that training learns, including matrices, with their kinds.

    >>> import rdgraph as rd
    >>> {name: kind.value for name, kind in learned(rd.parse("-alpha*L@H + H@W")).items()}
    {'W': 'matrix', 'alpha': 'scalar'}
    """
    return {n: kind for n, kind in valued_letters(system).items() if not (n == TRUSTED and kind is Kind.NODE)}


def _value_panel(letter: str, title: str, values: Sequence[np.ndarray]) -> Panel:
    """Panel of a coefficient: a dot for every trial if it is a scalar, else a histogram."""
    every = np.concatenate(values)
    title += f": mean {every.mean():.3g}, from {every.min():.3g} to {every.max():.3g}"
    if all(group.size == 1 for group in values) and len(values) <= MOST_TRIALS:
        line = Line("value", np.arange(1.0, len(values) + 1), every, style="dots")
        return Panel(title, [line], {"mean": float(every.mean())}, y_label=letter)
    counts, ends = np.histogram(every, bins=min(40, max(5, every.size // 8)))
    line = Line("number of values", (ends[1:] + ends[:-1]) / 2, counts.astype(float))
    return Panel(title, [line], y_label=line.label, x_label=letter)


# ---------------------------------------------------------------------- filter response
def gains(network: Network, lam: np.ndarray = GRID, block: int = 1) -> np.ndarray:
    """Gain g(lam) of a trained flow at T with the network's own solver: (lines, len(lam)), one line per channel.

    The flow is that of a block. Raises NotApplicable unless the equation is linear with scalar or channel coefficients.
    """
    model = network.gread
    if not network.system.is_single:
        raise NotApplicable(
            f"{network.system.text} is not one autonomous equation of first order, so a frequency has no single gain"
        )
    if model.adjacency == "live":
        raise NotApplicable("the adjacency depends on the state, so there is no response")
    if model.adjacency == "original" and find_normalisation(model.normalisation).norm is None:
        raise NotApplicable("the operator is not normalised, so there is no response on [0, 2]")
    stepped = model.method in FIXED
    method, step = (model.method, model.step) if stepped else ("exact", None)
    expression = response(network.system, T=model.time, method=method, step=step)
    values = {k: v.detach().double().numpy().reshape(-1, 1) for k, v in network.coefficients(block).items()}
    letters = sorted((s for s in expression.free_symbols if s.name != "lam"), key=lambda s: s.name)
    function = sp.lambdify([sp.Symbol("lam"), *letters], expression, "numpy")
    shape = np.broadcast_shapes((1, lam.size), *(values[s.name].shape for s in letters))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # the removable point of a source term
        collected = np.asarray(
            function(lam[None, :] + np.zeros(shape), *(values[s.name] for s in letters)), dtype=float
        )
    return np.array(np.broadcast_to(collected, shape))


def response_lines(done: Trained, sound: Sequence[int], data: NodeData) -> Drawing:
    """The learned filter: range and mean over the channels of the first trial, or over the trials for scalars.

    With several blocks, the mean of every block over all trials and channels.
    """
    blocks = own_blocks(done.network(sound[0]))
    if len(blocks) > 1:
        return _block_responses(done, sound, data, blocks)
    lines = gains(done.network(sound[0]))
    kind = "channel"
    if len(lines) == 1:
        lines, kind = np.concatenate([gains(done.network(k)) for k in sound]), "trial"
    model = done.trials[sound[0]].config.gread
    lam, density = _density(data, model.self_loops)
    how = f"{model.method}, step {model.step:g}" if model.method in FIXED else "the exact flow"
    caption = (
        f"Gain g(λ) of the trained equation after T = {model.time:g} by {how}: mean and range over the {kind}s; and "
        "the density of the eigenvalues of the graph's symmetric L."
    )
    rows = _gain_rows({f"{kind} {i}": line for i, line in enumerate(lines)}, lam, density)
    return Drawing("response", response_chart(lines, kind, model.time, lam, density), caption, rows)


def _block_responses(done: Trained, sound: Sequence[int], data: NodeData, blocks: range) -> Drawing:
    """The learned filter of every block: its mean over all trials and channels."""
    networks = [done.network(k) for k in sound]
    means = {b: np.concatenate([gains(network, block=b) for network in networks]).mean(axis=0) for b in blocks}
    model = done.trials[sound[0]].config.gread
    lam, density = _density(data, model.self_loops)
    scale = "linear" if max(np.abs(line).max() for line in means.values()) <= LINEAR_GAIN else "symlog"
    lines = [Line(f"block {block}", GRID, mean, look=block - 1) for block, mean in means.items()]
    panels = [
        Panel("filters", lines, {"unchanged": 1.0}, y_label=f"gain after T = {model.time:g}", y_scale=scale),
        Panel("eigenvalues of the graph", [Line("density", lam, density, look=len(means))], y_label="density"),
    ]
    rows = _gain_rows({f"block {block}": mean for block, mean in means.items()}, lam, density)
    caption = (
        f"Gain g(λ) of the equation in every block, after T = {model.time:g}: mean over the channels of "
        f"{counted(len(sound), 'trial')}; and the density of the eigenvalues of the graph's symmetric L. The matrices, "
        "norms and activations between the flows are not part of it."
    )
    return Drawing("response", Chart(panels, "λ, eigenvalue of L", columns=2), caption, rows)


def response_chart(lines: np.ndarray, kind: str, time: float, lam: np.ndarray, density: np.ndarray) -> Chart:
    """Chart of the mean gain with its range, and of the density of eigenvalues."""
    ends = None if len(lines) == 1 else (lines.min(axis=0), lines.max(axis=0))
    mean = Line(f"mean of {len(lines)} {kind}s", GRID, lines.mean(axis=0), low=ends and ends[0], high=ends and ends[1])
    scale = "linear" if np.abs(lines).max() <= LINEAR_GAIN else "symlog"
    panels = [
        Panel("filter", [mean], {"unchanged": 1.0}, y_label=f"gain after T = {time:g}", y_scale=scale),
        Panel("eigenvalues of the graph", [Line("density", lam, density)], y_label="density"),
    ]
    return Chart(panels, "λ, eigenvalue of L", columns=2)


def _gain_rows(gains_of: Mapping[str, np.ndarray], lam: np.ndarray, density: np.ndarray) -> list[dict[str, Any]]:
    """The points of lines of gains by name, then those of the density."""
    points = ((name, "gain", GRID, line) for name, line in gains_of.items())
    return [
        {"line": name, "lam": float(x), column: float(y)}
        for name, column, xs, ys in (*points, ("density", "density", lam, density))
        for x, y in zip(xs, ys, strict=True)
    ]


def _density(data: NodeData, self_loops: float) -> tuple[np.ndarray, np.ndarray]:
    """Density of the eigenvalues of the symmetric L on [0, 2]."""
    import torch

    from analysis.spectra.density import spectral_density

    graph = data.graph if data.graph.is_undirected else data.graph.undirected()
    op = graph.operator("symmetric", self_loops=self_loops, dtype=torch.float64)
    collected = spectral_density(op, points=60, method="histogram" if data.num_nodes <= 600 else "polynomial")
    return collected.lam, np.maximum(collected.density, 0.0)


# ---------------------------------------------------------------------- state figures
# The confusion matrix of the test nodes, and the states by t-SNE.

#: Most nodes drawn by t-SNE, and the seed of their choice and of t-SNE.
MOST_NODES, SEED = 1000, 0
#: Iterations of t-SNE, the spread of its start, and the fewest nodes for it.
ROUNDS, START, FEWEST_NODES = 300, 1e-4, 4


def confusion(done: Trained, sound: Sequence[int]) -> np.ndarray:
    """Counts (classes, classes) of test nodes by class (row) and prediction (column), summed over the trials."""
    classes = max(done.data_of(k).num_classes for k in sound)
    counts = np.zeros((classes, classes), dtype=np.int64)
    for k in sound:
        data = done.data_of(k)
        test = data.masks.test[done.trials[k].split]
        predicted = done.network(k).logits(data.x, data.graph).argmax(-1).numpy()
        np.add.at(counts, (data.y[test], predicted[test]), 1)
    return counts


def confusion_matrix(done: Trained, sound: Sequence[int]) -> Drawing:
    """Confusion matrix of the test nodes."""
    counts = confusion(done, sound)
    names = _class_names(done.data_of(sound[0]), len(counts))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    places = range(len(counts))
    rows = [
        {"class": names[i], "predicted": names[j], "count": int(counts[i, j]), "share": float(shares[i, j])}
        for i in places
        for j in places
    ]
    over = counted(len(sound), "trial")
    caption = (
        f"Test nodes by class (rows) and prediction (columns), in percent of the class, over {over}; diagonal in bold."
    )
    notes = [[f"{counts[i, j]} nodes, {100 * shares[i, j]:.0f} percent" for j in places] for i in places]
    table = FieldMap(
        names, names, 100 * shares, np.eye(len(counts)) > 0, "class (rows) and prediction (columns)", 100.0,
        "percent of the class", notes, signed=False,
    )  # fmt: skip
    return Drawing("confusion", table, caption, rows)


def _class_names(data: NodeData, count: int) -> list[str]:
    names = data.meta.classes or tuple(str(k) for k in range(count))
    return [name if len(name) <= 16 else name[:15] + "…" for name in names]


def embedded_states(network: Network, data: NodeData, stage: Callable[[str], object] = silent) -> Drawing:
    """t-SNE of the states H(0), H(T/2) and H(T) by field, or of the first, middle and last state of other networks."""
    shown, where = _shown_states(network, data)
    nodes = np.arange(data.num_nodes)
    if len(nodes) > MOST_NODES:
        nodes = np.sort(np.random.default_rng(SEED).choice(nodes, MOST_NODES, replace=False))
    rows: list[dict[str, Any]] = []
    labels, ids = data.y[nodes], data.graph.names or range(data.num_nodes)
    moving = []
    for field, states in shown.items():
        points, maps = None, []
        for number, (time, state) in enumerate(states, 1):
            stage(f"drawing states of {field}: t-SNE {number} of {len(states)}")
            points = flat_map(state[nodes], points)
            maps.append(points)
            rows += [
                {"field": field, where.column: time, "node": ids[int(n)], "label": int(c), "x": float(p[0]),
                 "y": float(p[1])}
                for n, c, p in zip(nodes, labels, points, strict=True)
            ]  # fmt: skip
        moving.append(DotPanel(field, [time for time, _ in states], np.array(maps), labels, nodes.tolist()))
    part = f"{len(nodes)} of {data.num_nodes} nodes" if len(nodes) < data.num_nodes else "all nodes"
    caption = f"{where.words}, {part}, in two dimensions by t-SNE; each map starts from the previous one."
    dots = MovingDots(moving, word="t" if where.is_flow else "state", classes=_class_names(data, data.num_classes))
    return Drawing("states", dots, caption, rows)


class _Where(NamedTuple):
    """How states are indexed: by time of a flow or by number; the column for it, and a description."""

    is_flow: bool
    column: str
    words: str


def _shown_states(network: Network, data: NodeData) -> tuple[dict[str, list[tuple[float, np.ndarray]]], _Where]:
    """The states to draw by field, each with its time or number, and how they are indexed."""
    if isinstance(network.config, GreadSettings) and not network.config.is_stacked:
        T = network.config.time
        times = [0.0, T / 2, T]
        fields = [equation.field for equation in network.system.equations]
        collected = {
            field: list(zip(times, network.states(data.x, data.graph, times, field).double().numpy(), strict=True))
            for field in fields
        }
        return collected, _Where(True, "time", f"States of the trained flow at t = 0, T/2 and T = {T:g}")
    layers = network.layers(data.x, data.graph)
    numbers = sorted({0, len(layers) // 2, len(layers) - 1})
    states = [(float(k + 1), layers[k].double().numpy()) for k in numbers]
    listed = ", ".join(str(k + 1) for k in numbers)
    words = f"States {listed} of {len(layers)} of the trained network"
    return {"H": states}, _Where(False, "state", words)


def flat_map(points: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Deterministic t-SNE (n, 2) of points (n, d), started from an earlier map or from two principal axes."""
    from sklearn.manifold import TSNE

    if not np.isfinite(points).all():
        raise Diverged("the states diverged, so there is no map")
    centred = points - points.mean(axis=0)
    scale = float(centred.std())
    if scale == 0 or len(points) < FEWEST_NODES:
        raise NotApplicable(f"there are fewer than {FEWEST_NODES} different states, so there is no map")
    if start is None:
        rest, sizes, _ = np.linalg.svd(centred / scale, full_matrices=False)
        axes = (rest * sizes)[:, :2]
        start = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    first = (START * start / start.std()).astype(np.float32)
    rate = max(len(points) / 48, 10.0)  # scikit-learn's default is too large for a few dozen points
    method = TSNE(
        perplexity=min(30.0, (len(points) - 1) / 3), learning_rate=rate, init=first, random_state=SEED, max_iter=ROUNDS
    )
    return np.asarray(method.fit_transform(centred / scale), dtype=np.float64)
