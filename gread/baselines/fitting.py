"""`fit`: plain modules trained by the protocol of `gread.training.trainer`, one trial after the other.

Full batch, Adam with weight decay in the gradient, cross-entropy on the training nodes, accuracies without dropout
after every step, and the first epoch with the best validation accuracy; without validation nodes the last.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gread.baselines.layered import Layered
from gread.datasets.node_data import NodeData
from gread.models.problem import check
from gread.settings.trials import Trial
from gread.training.ensemble import METRICS
from gread.training.trainer import Trained, choose_device
from rdgraph.errors import InvalidArgument

#: Makes a network from the numbers of features and classes.
Build = Callable[[int, int], Layered]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Results of M trials, and their networks at the best and after the last epoch, in evaluation mode."""

    results: Trained
    best: tuple[Layered, ...]
    last: tuple[Layered, ...]


def fit(
    build: Build,
    data: NodeData | Sequence[NodeData],
    trials: Sequence[Trial],
    *,
    device: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Fitted:
    """Train a network for every trial; of a trial's configuration [training] alone counts.

    `data` is one data set, or one for each trial. `progress` hears the number of every trial that is done. A trial's
    result depends on its seed and split, not on the others; on a GPU, sums over edges have no fixed order, so that it
    repeats up to rounding there.

    >>> from gread.baselines.registry import make_baseline
    >>> from gread.settings.config import Config
    >>> from gread.datasets.embedded import karate
    >>> build = lambda features, classes: make_baseline("H2GCN", features=features, classes=classes, hidden=8)
    >>> done = fit(build, karate(), [Trial(Config().updated({"epochs": 3}))], device="cpu")
    >>> done.results.history.shape, done.results.status
    ((1, 3, 4), ('ok',))
    """
    place, started, chosen = choose_device(device), time.monotonic(), tuple(trials)
    each = [data] * len(chosen) if isinstance(data, NodeData) else list(data)
    if not chosen or len(each) != len(chosen):
        raise InvalidArgument(f"expected trials, and one data set or one for each, got {len(chosen)} and {len(each)}")
    found = []
    for k, (one, trial) in enumerate(zip(each, chosen, strict=True)):
        found.append(_Fit(build, one, trial, place).run())
        if progress is not None:
            progress(k)
    longest = max(trial.config.training.epochs for trial in chosen)
    history = np.full((len(found), longest, len(METRICS)), np.nan, dtype=np.float32)
    for row, one_fit in zip(history, found, strict=True):
        row[: len(one_fit.history)] = one_fit.history
    results = Trained(
        data, chosen, np.array([f.best_epoch for f in found]), np.array([f.accuracies[0] for f in found]),
        np.array([f.accuracies[1] for f in found]), tuple(f.status for f in found), history, time.monotonic() - started,
    )  # fmt: skip
    return Fitted(results, tuple(f.best.eval() for f in found), tuple(f.network.eval() for f in found))


def fresh(build: Build, data: NodeData, trial: Trial) -> Layered:
    """The network that a trial starts with, in evaluation mode, on the host."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_seed(trial, "parameters"))
        return build(data.num_features, data.num_classes).eval()


def tensors(data: NodeData, device: str = "cpu", dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """x (n, f), dense, and edge_index (2, E) of a data set whose edges have no weights."""
    if not (data.graph.weight == 1).all():
        raise InvalidArgument(
            f"expected edges without weights, which these networks do not know, got weights in {data.meta.name}; "
            "drop them with Graph.from_edges(graph.edge_index, graph.num_nodes)"
        )
    x = data.x.toarray() if data.is_sparse else data.x  # type: ignore[union-attr]
    edges = torch.tensor(data.graph.edge_index, device=device)
    return torch.tensor(x, dtype=dtype, device=device), edges


def _seed(trial: Trial, purpose: str) -> int:
    """32 bits, all that torch's generator on a CPU takes, that depend on the trial's seed and split and the purpose."""
    words = (trial.seed, trial.split, ("parameters", "dropout").index(purpose))
    return int(np.random.SeedSequence(words).generate_state(1)[0])


class _Fit:
    """The training of one network."""

    def __init__(self, build: Build, data: NodeData, trial: Trial, device: str) -> None:
        check(data, trial.split)
        self.training, self.seed, self.device = trial.config.training, _seed(trial, "dropout"), device
        self.x, self.edges = tensors(data, device)
        self.y = torch.tensor(data.y, device=device)
        parts = (getattr(data.masks, name)[trial.split] for name in ("train", "val", "test"))
        self.nodes = [torch.tensor(np.flatnonzero(mask), device=device) for mask in parts]
        self.network = fresh(build, data, trial).to(device)
        self.best = copy.deepcopy(self.network)
        self.best_epoch, self.accuracies, self.status = 0, (0.0, 0.0), "ok"
        self.history: list[list[float]] = []

    def run(self) -> _Fit:
        """All epochs, or those up to the one in which the loss diverged."""
        training = self.training
        adam = torch.optim.Adam(
            self.network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )  # fmt: skip
        with torch.random.fork_rng(devices=[self.device] if self.device.startswith("cuda") else []):
            torch.manual_seed(self.seed)
            for epoch in range(1, training.epochs + 1):
                loss = self._step(adam)
                if not np.isfinite(loss):
                    self.status = f"diverged in epoch {epoch}"
                    break
                self._note(epoch, loss)
        return self

    def _step(self, adam: torch.optim.Adam) -> float:
        train = self.nodes[0]
        self.network.train()
        adam.zero_grad()
        loss = functional.cross_entropy(self.network(self.x, self.edges)[train], self.y[train])
        loss.backward()
        value = float(loss.detach())
        if np.isfinite(value):
            adam.step()
        return value

    @torch.no_grad()
    def _note(self, epoch: int, loss: float) -> None:
        """Keep the metrics of an epoch, and the network if it is the best so far."""
        hits = (self.network.eval()(self.x, self.edges).argmax(-1) == self.y).float()
        scores = torch.stack([hits[nodes].mean() for nodes in self.nodes]).tolist()
        self.history.append([loss, *scores])
        if np.isnan(scores[1]) or scores[1] > self.accuracies[0]:
            self.best_epoch, self.accuracies = epoch, (scores[1], scores[2])
            self.best.load_state_dict(self.network.state_dict())
