"""How long epochs take: BS on ten splits and a sweep, where the time goes, and every network against its peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gread import load_dataset
from gread.datasets.node_data import NodeData
from gread.datasets.variants import row_normalised
from gread.models.batched_model import count_parameters
from gread.models.gread_model import GREAD
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.presets import PUBLISHED, authors_runs, find_preset, presets
from gread.settings.trials import Trial, make_trials
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.graphs.twin_quotient import Quotient
from studies.benchmarks.result_files import ResultRow, head, read_json, say, write_json
from studies.benchmarks.timing import Case, Peer, SpeedRow, clocked, copy_bandwidth, wait
from studies.cells.cell import SETS

# ---------------------------------------------------------------------- gather scatter network
# The network as everybody writes it first, by gather, scatter and torchdiffeq: what training is timed against.


class GatherScatter(nn.Module):
    """The same network in the usual way: dense features, products by gathering and scattering, torchdiffeq's RK4."""

    def __init__(self, data: NodeData, config: Config) -> None:
        super().__init__()
        m = self.config = config.gread
        source, target = torch.tensor(data.graph.edge_index)
        loops = torch.arange(data.num_nodes)
        self.source, self.target = torch.cat([source, loops]), torch.cat([target, loops])
        x = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
        self.x = torch.tensor(x, dtype=torch.float32)
        self.encoder = nn.Linear(data.num_features, m.hidden)
        self.query, self.key = nn.Linear(m.hidden, m.attention_dim), nn.Linear(m.hidden, m.attention_dim)
        self.alpha, self.beta = nn.Parameter(torch.zeros(m.hidden)), nn.Parameter(torch.rand(m.hidden) * 2 - 1)
        self.hidden, self.decoder = nn.Linear(m.hidden, m.hidden), nn.Linear(m.hidden, data.num_classes)

    def attention(self, h: Tensor) -> Tensor:
        heads, nodes = self.config.heads, len(h)
        q, k = (layer(h).view(nodes, heads, -1) for layer in (self.query, self.key))
        logits = (q[self.target] * k[self.source]).sum(-1) / q.shape[-1] ** 0.5
        where = self.target[:, None].expand_as(logits)
        top = logits.new_full((nodes, heads), -torch.inf).scatter_reduce(0, where, logits, "amax")
        raised = torch.exp(logits - top[self.target])
        total = raised.new_zeros((nodes, heads)).index_add(0, self.target, raised)
        return (raised / total[self.target]).mean(1)

    def forward(self) -> Tensor:
        from torchdiffeq import odeint

        m = self.config
        h = self.encoder(functional.dropout(self.x, m.input_dropout, self.training))
        weights = self.attention(h)
        alpha = torch.sigmoid(self.alpha)

        def product(y: Tensor) -> Tensor:
            return torch.zeros_like(y).index_add(0, self.target, weights[:, None] * y[self.source])

        def field(t: Tensor, y: Tensor) -> Tensor:
            moved = product(y)
            return alpha * (moved - y) + self.beta * (moved - product(moved))

        times = torch.tensor([0.0, m.time])
        h = odeint(field, h, times, method="rk4", options={"step_size": m.step})[-1]
        h = functional.dropout(torch.relu(h), m.dropout, self.training)
        h = functional.dropout(h, m.dropout, self.training)
        h = functional.dropout(h + self.hidden(torch.tanh(h)), m.dropout, self.training)
        return functional.dropout(self.decoder(torch.tanh(h)), m.dropout, self.training)


def peer_epoch(
    model: nn.Module, given: Sequence[Tensor], data: NodeData, config: Config, device: str = "cpu"
) -> Callable[[], None]:
    """A training step of a usual network on split 0, and the accuracies on the parts of the split."""
    t, y = config.training, torch.tensor(data.y, device=device)
    adam = torch.optim.Adam(model.parameters(), lr=t.learning_rate, weight_decay=t.weight_decay)
    masks = [torch.tensor(getattr(data.masks, part)[0], device=device) for part in ("train", "val", "test")]

    def epoch() -> None:
        model.train()
        adam.zero_grad()
        functional.cross_entropy(model(*given)[masks[0]], y[masks[0]]).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            right = model(*given).argmax(-1) == y
            for mask in masks:
                float(right[mask].float().mean())

    return epoch


# ---------------------------------------------------------------------- epochs
EPOCHS = 200
#: Milliseconds per epoch for ten splits to reach, and seconds for all sets.
TARGETS = {"texas": 0.5, "cora": 12.0, "squirrel": 25.0, "pubmed": 20.0}
TARGET_EXACT, TARGET_TOTAL, TARGET_RATE, TARGET_CPU = 6.0, 20.0, 270.0, 4.0
#: Members of the sweep: configurations times splits.
CONFIGURATIONS, SPLITS = 300, 10
#: Kernels by what they do; the first that fits.
KINDS = (
    ("sparse products", ("_spmm_kernel",)),
    ("gradient of edge weights", ("_sample_kernel", "_sddmm_kernel")),
    ("gradient of coefficients", ("_moments_kernel", "_gain_kernel", "_pull_kernel", "_inner_kernel")),
    ("dense products", ("gemm", "cutlass")),
    ("Adam", ("_adam_kernel",)),
    ("dropout, softmax", ("_dropout_kernel", "_softmax_kernel")),
)
#: Milliseconds per epoch of ten splits to reach by network, and how many times faster than the peer.
NETWORK_TARGETS, TARGET_RATIO = {"gcn": 1.0, "gat": 3.0}, 30.0
PEER_EPOCHS, SHORT = 30, 40


# ---------------------------------------------------------------------- BS on a GPU


def epoch_seconds(ensemble: Ensemble, epochs: int, device: str, warm: int = 1) -> float:
    """Seconds per epoch; the first `warm` ones, which compile and capture, are not counted."""
    ensemble.advance(warm)
    return clocked(partial(ensemble.advance, epochs), device)[1] / epochs


def set_rows(device: str, epochs: int) -> Iterator[tuple[SpeedRow, dict[str, Any]]]:
    """One row per data set, with what the epoch consists of."""
    bandwidth = copy_bandwidth(device)
    total = 0.0
    for name in SETS:
        data, config = load_dataset(name), find_preset("authors", "BS", name).config
        ensemble = Ensemble(data, make_trials(config, range(SPLITS)), device=device)
        seconds = epoch_seconds(ensemble, epochs - 1, device)
        total += seconds * EPOCHS
        peer = authors_runs()[name].ms_per_epoch * SPLITS
        target = f">= {peer / TARGETS[name]:.1f}" if name in TARGETS else ""
        what = f"{name}, {config.gread.method}, {ensemble.model.degree} products"
        about = parts(ensemble) | {"floor": floor(ensemble, bandwidth), "epoch": seconds}
        against = f"the authors' code {peer:.0f} ms"
        yield SpeedRow.against("training", what, seconds, against, peer / (seconds * 1e3), target), about
        del ensemble
        torch.cuda.empty_cache()
    peer = sum(authors_runs()[name].ms_per_epoch for name in SETS) * SPLITS * EPOCHS / 1e3
    what = f"all nine sets, {SPLITS} splits, {EPOCHS} epochs"
    against, target = f"the authors' code {peer:.0f} s", f">= {peer / TARGET_TOTAL:.1f}"
    yield SpeedRow.against("training", what, total, against, peer / total, target), {}


def exact_row(device: str, epochs: int) -> SpeedRow:
    """Cora with the exact flow instead of RK4."""
    config = find_preset("authors", "BS", "cora").config.updated({"method": "exact"})
    ensemble = Ensemble(load_dataset("cora"), make_trials(config, range(SPLITS)), device=device)
    seconds = epoch_seconds(ensemble, epochs - 1, device)
    what, against = f"cora, exact, {ensemble.model.degree} products", f"a budget of {TARGET_EXACT:g} ms"
    return SpeedRow.against("training", what, seconds, against, seconds * 1e3 / TARGET_EXACT, "<= 1")


def sweep_trials(count: int) -> list[Trial]:
    """Configurations that differ in learning rate, decay, both dropouts and time, each on ten splits of Texas."""
    base = find_preset("authors", "BS", "texas").config
    random = np.random.default_rng(0)
    trials: list[Trial] = []
    for _ in range(count):
        config = base.updated(
            {
                "learning_rate": float(10 ** random.uniform(-3, -1.5)),
                "weight_decay": float(10 ** random.uniform(-4, -1.5)),
                "input_dropout": float(random.uniform(0.3, 0.7)),
                "dropout": float(random.uniform(0.1, 0.6)),
                "time": float(random.uniform(1.05, 1.95)),
            }
        )
        trials += make_trials(config, range(SPLITS))
    return trials


def sweep_row(device: str) -> tuple[SpeedRow, dict[str, Any]]:
    """Whole trainings per second of many configurations at once, everything counted from the first capture on."""
    trials = sweep_trials(CONFIGURATIONS)
    ensemble = Ensemble(load_dataset("texas"), trials, device=device, keep_best=False)
    ensemble._one()
    torch.cuda.synchronize()
    started = time.perf_counter()
    ensemble.advance(EPOCHS - 1)
    ensemble.outcome()
    seconds = (time.perf_counter() - started) * EPOCHS / (EPOCHS - 1)
    rate = len(trials) / seconds
    peak = torch.cuda.max_memory_allocated() / 2**30
    what = f"texas, {len(trials)} members of {CONFIGURATIONS} configurations, {EPOCHS} epochs, {peak:.0f} GiB"
    about = parts(ensemble) | {"floor": floor(ensemble, copy_bandwidth(device)), "epoch": seconds / EPOCHS}
    against = f"{rate:.0f} trainings per second"
    return SpeedRow.against("sweep", what, seconds, against, rate, f">= {TARGET_RATE:g}"), about


def parts(ensemble: Ensemble) -> dict[str, Any]:
    """Seconds of one epoch by the kind of kernel, and the number of launches, by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    before = ensemble.snapshot()
    ensemble.state["step"].zero_()
    ensemble._epoch()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        ensemble._epoch()
        torch.cuda.synchronize()
    found: dict[str, float] = {}
    launches = 0
    for event in seen.key_averages():
        kind = next((k for k, words in KINDS if any(w in event.key for w in words)), "everything else")
        found[kind] = found.get(kind, 0.0) + event.device_time_total / 1e6
        launches += event.count
    ensemble.restore(before)
    return {"parts": found, "launches": launches}


def floor(ensemble: Ensemble, bandwidth: float) -> float:
    """Seconds an epoch takes at least if every gathered row came from memory, and every parameter moved as Adam asks.

    Three polynomials of products (training, gradient, evaluation), and the sampled products of the edge weights.
    """
    model, problem = ensemble.model, ensemble.problem
    if not isinstance(model, GREAD):
        raise InvalidArgument("expected networks around an equation, got others")
    operator = model.shortcut.operator if isinstance(model.shortcut, Quotient) else model.operator
    row = 4 * model.config.hidden * ensemble.members
    soft = model.config.adjacency != "original"
    gathered = ensemble.model.degree * operator.num_edges * row * (3 + 2 * soft)
    entries = problem.features.values[0].numel() * row * 3
    weights = sum(p.numel() for p in ensemble.parameters.values()) * 4 * 7
    return (gathered + entries + weights) / bandwidth


def cpu_row() -> SpeedRow:
    """One epoch on Cora, one split, the authors' settings; both programs take turns in one run."""
    data, config = load_dataset("cora"), find_preset("authors", "BS", "cora").config
    ensemble = Ensemble(data, make_trials(config, [0]), device="cpu")
    torch.manual_seed(0)
    plain = peer_epoch(GatherScatter(data, config), (), data, config)
    peer = Peer("gather-scatter and torchdiffeq", plain, f">= {TARGET_CPU:g}", is_slower=True)
    what = f"cora, one split, rk4, {ensemble.model.degree} products, one epoch"
    (row,) = Case("cpu training", what, ensemble._epoch, (peer,), rounds=5, with_gradients=True).rows("cpu")
    return row


def training_rows(device: str, epochs: int) -> dict[str, Any]:
    """All rows of a device, and what their epochs consist of."""
    if device == "cpu":
        return {"rows": [asdict(cpu_row())], "epochs": {}}
    rows, about = [], {}
    for row, detail in set_rows(device, epochs):
        say(f"{row.what} {row.seconds * 1e3:.3f} ms")
        rows.append(asdict(row))
        if detail:
            about[row.what] = detail
    rows.append(asdict(exact_row(device, epochs)))
    sweep, detail = sweep_row(device)
    rows.append(asdict(sweep))
    about[sweep.what] = detail
    return {"rows": rows, "epochs": about, "copy_bandwidth": copy_bandwidth(device)}


def training_speed(*, command: str, out: Path, device: str = "cpu", epochs: int = EPOCHS) -> None:
    """How fast ensembles are trained.

    Ten splits of every data set with the authors' settings of BS, a large sweep on Texas, and where the time goes. On a
    CPU one epoch on Cora compared with the same computation with gather-scatter products and torchdiffeq.
    """
    found = read_json(out, {})
    found["cpu" if device == "cpu" else "gpu"] = head(command, device) | training_rows(device, epochs)
    write_json(out, found)


# ---------------------------------------------------------------------- every network
class PeerNetwork(nn.Module):
    """Two layers of torch-geometric's GCNConv or GATConv, as its examples put them together."""

    def __init__(self, name: str, features: int, classes: int, settings: Any) -> None:
        super().__init__()
        from torch_geometric.nn import GATConv, GCNConv

        self.rate, self.activation = settings.dropout, torch.relu if name == "gcn" else functional.elu
        if name == "gcn":
            self.first = GCNConv(features, settings.hidden, cached=True)
            self.second = GCNConv(settings.hidden, classes, cached=True)
        else:
            heads, rate = settings.heads, settings.attention_dropout
            self.first = GATConv(features, settings.hidden, heads=heads, dropout=rate)
            self.second = GATConv(settings.hidden * heads, classes, heads=1, dropout=rate)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = self.activation(self.first(functional.dropout(x, self.rate, self.training), edges))
        out: Tensor = self.second(functional.dropout(h, self.rate, self.training), edges)
        return out


def peer_seconds(name: str, data: NodeData, config: Any, device: str, epochs: int) -> float:
    """Seconds of an epoch of one split: a step and an evaluation."""
    x = row_normalised(data.x)
    dense = torch.tensor(x.toarray() if data.is_sparse else x, device=device)  # type: ignore[union-attr]
    edges = torch.tensor(data.graph.edge_index, device=device)
    network = PeerNetwork(name, data.num_features, data.num_classes, config.model).to(device)
    epoch = peer_epoch(network, (dense, edges), data, config, device)
    for _ in range(3):  # to warm up
        epoch()
    return clocked(lambda: [epoch() for _ in range(epochs)], device)[1] / epochs


def epoch_rows(names: Iterable[str], device: str, dataset: str, epochs: int = SHORT) -> list[ResultRow]:
    """An epoch of all splits of every network, the seconds before it, and where its settings come from.

    A network that cannot be trained here is reported and left out.
    """
    data, found = load_dataset(dataset, offline=True), list[ResultRow]()
    for name in names:
        own = [p for p in presets() if p.name == f"{PUBLISHED}/{name}/{dataset}"]
        config = own[0].config if own else Config.of(name)
        config = config.updated({"epochs": epochs + 5, "patience": 0})
        began = time.perf_counter()
        try:
            ensemble = Ensemble(data, make_trials(config, range(data.num_splits)), device=device)
            ensemble.advance(5)
            wait(device)
            setup = time.perf_counter() - began
            _, seconds = clocked(partial(ensemble.advance, epochs), device)
        except (RdgraphError, RuntimeError) as problem:
            say(f"{name}: {problem}")
            continue
        each = seconds / epochs * 1e3
        count = count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)
        found.append({
            "model": name, "dataset": dataset, "milliseconds": each, "setup_seconds": setup,
            "parameters": count, "settings": own[0].name if own else "defaults",
        })  # fmt: skip
        say(f"{name} {dataset}: {each:.3f} ms per epoch, {setup:.1f} s before")
    return found


def network_rows(device: str, dataset: str = "cora") -> list[SpeedRow]:
    """GCN and GAT: an epoch of ten splits, against ten of the peer's epochs."""
    data, found = load_dataset(dataset, offline=True), []
    for name, target in NETWORK_TARGETS.items():
        config = find_preset("published", name, dataset).config.updated({"epochs": EPOCHS + 10, "patience": 0})
        ensemble = Ensemble(data, make_trials(config, range(data.num_splits)), device=device)
        ours = epoch_seconds(ensemble, EPOCHS, device, warm=5)
        theirs = data.num_splits * peer_seconds(name, data, config, device, PEER_EPOCHS)
        what = f"{name} on {dataset}, {data.num_splits} splits, target {target:g} ms"
        peer = f"torch-geometric, one split after the other, {theirs * 1e3:.1f} ms"
        found.append(SpeedRow.against("networks", what, ours, peer, theirs / ours, f">= {TARGET_RATIO:g}"))
    return found


def model_speed(*, command: str, out: Path, device: str = "cuda") -> None:
    """How long an epoch of every network takes.

    Ten splits of Cora as one ensemble, with the published settings of Cora, or the defaults where there are none; each
    epoch is a training step and an evaluation. GCN and GAT are compared with torch-geometric's layers, trained one
    split after the other.
    """
    rows = network_rows(device)
    epochs = epoch_rows(models, device, "cora")
    measured = {"rows": [asdict(row) for row in rows], "epochs": epochs}
    write_json(out, head(command, device) | measured)
    for row in rows:
        say(f"{row.what}: {row.seconds * 1e3:.3f} ms, {row.ratio:.1f}x")
