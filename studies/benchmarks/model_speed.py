"""How long an epoch of every network takes: `python -m studies.benchmarks.model_speed --device cuda --out FILE`.

Ten splits of Cora as one ensemble, with the published settings of Cora, or the defaults where there are none; each
epoch is a training step and an evaluation. GCN and GAT are put beside torch-geometric's layers, trained one split after
the other.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.datasets.variants import row_normalised
from gread.models.parameter_count import count_parameters
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.presets import PUBLISHED, find_preset, presets
from gread.settings.trials import make_trials
from gread.training.ensemble import Ensemble
from rdgraph.errors import RdgraphError
from studies.benchmarks.speed_rows import SpeedRow, command, environment
from studies.runs.boundary import run_program

#: Milliseconds per epoch of ten splits to reach, and how many times faster than the peer.
TARGETS, TARGET_RATIO = {"gcn": 1.0, "gat": 3.0}, 30.0
EPOCHS, PEER_EPOCHS, SHORT = 200, 30, 40


class PeerGCN(nn.Module):
    """Two layers of torch-geometric's GCNConv, as its examples put them together."""

    def __init__(self, features: int, classes: int, settings: Any) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.first = GCNConv(features, settings.hidden, cached=True)
        self.second = GCNConv(settings.hidden, classes, cached=True)
        self.rate = settings.dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = torch.relu(self.first(functional.dropout(x, self.rate, self.training), edges))
        out: Tensor = self.second(functional.dropout(h, self.rate, self.training), edges)
        return out


class PeerGAT(nn.Module):
    """Two layers of torch-geometric's GATConv, as its examples put them together."""

    def __init__(self, features: int, classes: int, settings: Any) -> None:
        super().__init__()
        from torch_geometric.nn import GATConv

        rate = settings.attention_dropout
        self.first = GATConv(features, settings.hidden, heads=settings.heads, dropout=rate)
        self.second = GATConv(settings.hidden * settings.heads, classes, heads=1, dropout=rate)
        self.rate = settings.dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = functional.elu(self.first(functional.dropout(x, self.rate, self.training), edges))
        out: Tensor = self.second(functional.dropout(h, self.rate, self.training), edges)
        return out


PEERS: dict[str, Callable[[int, int, Any], nn.Module]] = {"gcn": PeerGCN, "gat": PeerGAT}


def peer_seconds(name: str, data: NodeData, config: Any, device: str, epochs: int) -> float:
    """Seconds of an epoch of one split: a step and an evaluation."""
    x = row_normalised(data.x)
    dense = torch.tensor(x.toarray() if data.is_sparse else x, device=device)  # type: ignore[union-attr]
    edges, labels = (torch.tensor(a, device=device) for a in (data.graph.edge_index, data.y))
    masks = [torch.tensor(getattr(data.masks, part)[0], device=device) for part in ("train", "val", "test")]
    network = PEERS[name](data.num_features, data.num_classes, config.model).to(device)
    adam = torch.optim.Adam(
        network.parameters(), lr=config.training.learning_rate, weight_decay=config.training.weight_decay
    )  # fmt: skip

    def epoch() -> None:
        network.train()
        adam.zero_grad()
        functional.cross_entropy(network(dense, edges)[masks[0]], labels[masks[0]]).backward()
        adam.step()
        network.eval()
        with torch.no_grad():
            right = network(dense, edges).argmax(-1) == labels
            for mask in masks:
                float(right[mask].float().mean())

    return timed(epoch, epochs, device)


def timed(epoch: Callable[[], object], epochs: int, device: str) -> float:
    """Seconds of a call on the clock, after three to warm up."""
    for _ in range(3):
        epoch()
    _wait(device)
    began = time.perf_counter()
    for _ in range(epochs):
        epoch()
    _wait(device)
    return (time.perf_counter() - began) / epochs


def ensemble_seconds(ensemble: Ensemble, device: str) -> float:
    """Seconds of an epoch of an ensemble, the first ones, which compile and record, left out."""
    ensemble.advance(5)
    _wait(device)
    began = time.perf_counter()
    ensemble.advance(EPOCHS)
    _wait(device)
    return (time.perf_counter() - began) / EPOCHS


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


@dataclass(frozen=True)
class EpochRow:
    """An epoch of all splits of a network in milliseconds, the seconds before it, and where its settings come from."""

    model: str
    dataset: str
    milliseconds: float
    setup_seconds: float
    parameters: int
    settings: str


def epoch_rows(names: Iterable[str], device: str, dataset: str, epochs: int = SHORT) -> list[EpochRow]:
    """One row per network; one that cannot be trained here is told of and left out."""
    data, found = load_dataset(dataset, offline=True), []
    for name in names:
        own = [p for p in presets() if p.name == f"{PUBLISHED}/{name}/{dataset}"]
        config = own[0].config if own else Config.of(name)
        config = config.updated({"epochs": epochs + 5, "patience": 0})
        began = time.perf_counter()
        try:
            ensemble = Ensemble(data, make_trials(config, range(data.num_splits)), device=device)
            ensemble.advance(5)
            _wait(device)
            ready = time.perf_counter()
            ensemble.advance(epochs)
            _wait(device)
        except (RdgraphError, RuntimeError) as problem:
            print(f"{name}: {problem}", file=sys.stderr, flush=True)
            continue
        each = (time.perf_counter() - ready) / epochs * 1e3
        count = count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)
        found.append(EpochRow(name, dataset, each, ready - began, count, own[0].name if own else "defaults"))
        print(f"{name} {dataset}: {each:.3f} ms per epoch, {ready - began:.1f} s before", file=sys.stderr, flush=True)
    return found


def rows(device: str, dataset: str = "cora") -> list[SpeedRow]:
    """GCN and GAT: an epoch of ten splits, against ten of the peer's epochs."""
    data, found = load_dataset(dataset, offline=True), []
    for name, target in TARGETS.items():
        config = find_preset("published", name, dataset).config.updated({"epochs": EPOCHS + 10, "patience": 0})
        ensemble = Ensemble(data, make_trials(config, range(data.num_splits)), device=device)
        ours = ensemble_seconds(ensemble, device)
        theirs = data.num_splits * peer_seconds(name, data, config, device, PEER_EPOCHS)
        what = f"{name} on {dataset}, {data.num_splits} splits, target {target:g} ms"
        peer = f"torch-geometric, one split after the other, {theirs * 1e3:.1f} ms"
        found.append(SpeedRow.against("networks", what, ours, peer, theirs / ours, f">= {TARGET_RATIO:g}"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Epochs of the networks")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    measured = rows(given.device)
    epochs = epoch_rows(models, given.device, "cora")
    found = {
        "command": command("studies.benchmarks.model_speed", sys.argv[1:]),
        "environment": environment(given.device), "rows": [asdict(row) for row in measured],
        "epochs": [asdict(row) for row in epochs],
    }  # fmt: skip
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for row in measured:
        print(f"{row.what}: {row.seconds * 1e3:.3f} ms, {row.ratio:.1f}x", file=sys.stderr)


if __name__ == "__main__":
    run_program(main)
