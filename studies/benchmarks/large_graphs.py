"""Training on graphs of millions of nodes.

A random graph with communities and a power law of degrees, of the size of ogbn-products (2.4 million nodes, 124 million
entries, 100 features, 47 classes) or larger; an epoch is a training step and an evaluation. Every row has the time of
an epoch, the most memory, and what passes before the first epoch: sorting the edges, the data set, the ensemble. The
peer is a GCN of three layers of PyTorch Geometric, where that is installed, whose epoch is the training step alone.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import torch

from gread.datasets.community_graph import Community, community_graph
from gread.datasets.node_data import Meta, NodeData
from gread.datasets.splits import Masks
from gread.models.gread_model import GREAD
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.decoupled import DecoupledTraining
from gread.training.ensemble import Ensemble
from rdgraph import Graph
from rdgraph.errors import RdgraphError, UnknownName
from rdgraph.run import Powers, propagate
from studies.benchmarks.result_files import CASES, ResultRow, checked, head, read_json, say, write_json
from studies.benchmarks.timing import clocked

#: Nodes, entries, features and classes by name, and the settings that are trained.
SIZES, PARTS = CASES["large"]["sizes"], CASES["large"]["parts"]
#: The variable that says how torch takes memory of a GPU.
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
HIDDEN, TIME = 64, 1.0
Made = TypeVar("Made")
PEER = "GCN of three layers, torch-geometric"
#: Nodes of a batch of decoupled training, which stores the powers of the features on disk.
DECOUPLED, BATCH = "decoupled BS exact", 65_536
#: Seconds before the first epoch that a graph of the size of ogbn-products may take.
TARGET = {"products": 15.0}


class Case:
    """The graph of one size, made when it is first asked for, and what it took to set it up."""

    def __init__(self, size: str, device: str, seed: int = 0) -> None:
        self.size, self.device, self.seed = size, device, seed

    @cached_property
    def raw(self) -> Community:
        nodes, entries, features, classes = SIZES[self.size]
        share = (0.4, 0.2) if self.size == "tiny" else (0.08, 0.02)
        found = community_graph(
            nodes, entries, features=features, classes=classes, seed=self.seed, device=self.device, shares=share
        )
        release(self.device)
        return found

    @cached_property
    def timed(self) -> tuple[NodeData, float, float]:
        """The data set, and the seconds of its graph and of the rest."""
        raw = self.raw
        graph, first = clocked(lambda: Graph.from_edges(raw.edges, len(raw.y), device=self.device), self.device)
        masks = Masks(raw.train, raw.val, raw.test)
        data, second = clocked(lambda: NodeData(graph, raw.x, raw.y, masks, meta=Meta(self.size)), self.device)
        return data, first, second


def release(device: str) -> None:
    """Give back what is no longer used."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak(device: str) -> float | None:
    """Peak GiB since the last release; nan on a CPU."""
    return torch.cuda.max_memory_allocated() / 2**30 if device.startswith("cuda") else None


def clocked_row(
    case: Case, what: str, epochs: int, prepare: Callable[[], Made], advance: Callable[[Made, int], object],
    facts: Callable[[Made], Mapping[str, Any]],
) -> ResultRow:  # fmt: skip
    """One network on one graph: milliseconds per epoch, GiB at most, and seconds before the first epoch.

    `facts` tells the products, and where they are known the segment and the validation accuracy.
    """
    setup = (0.0, 0.0) if what == PEER else case.timed[1:]
    release(case.device)
    made, seconds = clocked(prepare, case.device)
    first, rest = (clocked(partial(advance, made, count), case.device)[1] for count in (1, epochs))
    return {
        "size": case.size, "what": what, "ms_per_epoch": 1e3 * rest / epochs, "graph_seconds": setup[0],
        "data_seconds": setup[1], "ensemble_seconds": seconds, "first_epoch_seconds": first, "segment": 0,
        "val_accuracy": None, **facts(made), "gib": peak(case.device), "epochs": epochs,
        "seconds_before": sum(setup) + seconds, "allocator": os.environ.get(ALLOCATOR, ""),
    }  # fmt: skip


def trial_of(what: str, epochs: int) -> Trial:
    """A training of the settings of this name."""
    settings = {"hidden": HIDDEN, "time": TIME, "epochs": epochs + 1, "input_dropout": 0.2, "dropout": 0.2}
    return Trial(Config().updated(settings | PARTS[what]))


def network_row(case: Case, what: str, epochs: int) -> ResultRow:
    """A network of ours."""

    def prepare() -> Ensemble:
        return Ensemble(case.timed[0], [trial_of(what, epochs)], device=case.device)

    def facts(ensemble: Ensemble) -> dict[str, Any]:
        model = ensemble.model
        assert isinstance(model, GREAD)
        accuracy = float(ensemble.outcome().val_accuracy[0])
        products = model.degree or model.chosen_flow.evaluations
        return {"segment": model.segment, "products": products, "val_accuracy": accuracy}

    return clocked_row(case, what, epochs, prepare, Ensemble.advance, facts)


def peer_row(case: Case, epochs: int) -> ResultRow:
    """A GCN of PyTorch Geometric on a sparse matrix: the training step alone."""
    from torch_geometric.nn import GCNConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_torch_csr_tensor

    raw, device = case.raw, case.device

    def prepare() -> tuple[Any, ...]:
        edges, weight = gcn_norm(torch.from_numpy(raw.edges).to(device), num_nodes=len(raw.y), dtype=torch.float32)
        matrix = to_torch_csr_tensor(edges, weight, size=(len(raw.y), len(raw.y)))
        layers = torch.nn.ModuleList(
            GCNConv(a, b, normalize=False)
            for a, b in ((raw.x.shape[1], HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, int(raw.y.max()) + 1))
        ).to(device)
        given = [torch.from_numpy(part).to(device) for part in (raw.x, raw.y, raw.train)]
        return matrix, layers, torch.optim.Adam(layers.parameters(), lr=0.01), *given

    def advance(made: tuple[Any, ...], count: int) -> None:
        matrix, layers, optimiser, x, y, mask = made
        for _ in range(count):
            h = x
            for number, layer in enumerate(layers):
                h = layer(torch.relu(h) if number else h, matrix)
            loss = torch.nn.functional.cross_entropy(h[mask], y[mask])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return clocked_row(case, PEER, epochs, prepare, advance, lambda made: {"products": len(made[1])})


def decoupled_row(case: Case, epochs: int) -> ResultRow:
    """BS on propagated features; what is written down for the ensemble are the products, to the disk and back."""
    data, trial, accuracies = case.timed[0], trial_of("BS exact", epochs), list[float]()
    model = trial.config.gread
    with tempfile.TemporaryDirectory() as folder:

        def extend(degree: int) -> Powers:
            return propagate(
                data.graph, data.x, degree=degree, out=folder, normalisation=model.normalisation,
                self_loops=model.self_loops, device=case.device,
            )  # fmt: skip

        def prepare() -> DecoupledTraining:
            return DecoupledTraining(
                extend(1), data.y, data.masks, trial, classes=data.num_classes, batch=BATCH, device=case.device,
                extend=extend,
            )  # fmt: skip

        def advance(training: DecoupledTraining, count: int) -> None:
            for _ in range(count):
                training.epoch()
                accuracies.append(float(training.scores()[0][1]))

        def facts(training: DecoupledTraining) -> dict[str, Any]:
            return {"products": training.network.degree, "val_accuracy": max(accuracies[1:])}

        return clocked_row(case, DECOUPLED, epochs, prepare, advance, facts)


def measure(case: Case, what: str, epochs: int) -> ResultRow:
    if what == DECOUPLED:
        return decoupled_row(case, epochs)
    return peer_row(case, epochs) if what == PEER else network_row(case, what, epochs)


def chosen_parts(size: str, only: Sequence[str]) -> list[str]:
    """What is measured: all rows, or those whose names begin with one of the words."""
    apart = [] if size == "ten-million" else [DECOUPLED]
    known = [*PARTS, *apart, *([PEER] if find_spec("torch_geometric") is not None else [])]
    every = list(dict.fromkeys([*known, DECOUPLED]))
    for word in only:
        if not any(name.startswith(word) for name in every):
            raise UnknownName("row of the large graphs", word, every)
    return known if not only else [name for name in every if name.startswith(tuple(only))]


def large_graphs(
    *, out: Path, device: str = "cuda", size: str = "products", only: Sequence[str] = (), epochs: int = 10
) -> None:
    """Training on graphs of millions of nodes.

    Rows are written as they come and are not measured again; `--only` chooses those whose names begin with a word.
    """
    checked([size], tuple(SIZES), "size of a graph")
    found: dict[str, Any] = read_json(out, {})
    case, part = Case(size, device), found.setdefault(size, {"rows": [], "failed": {}})
    part |= head(f"python -m studies.benchmarks large-graphs --device {device} --size {size}", device)
    part |= {"target_before": TARGET.get(size)}
    for what in chosen_parts(size, only):
        if any(row["what"] == what for row in part["rows"]):
            continue
        try:
            row = measure(case, what, epochs)
        except (torch.OutOfMemoryError, RdgraphError) as problem:
            part["failed"][what] = f"{type(problem).__name__}: {str(problem).splitlines()[0].partition(' GPU ')[0]}"
            say(f"{what} {part['failed'][what]}")
        else:
            part["failed"].pop(what, None)
            part["rows"].append(row)
            memory = "" if row["gib"] is None else f" {row['gib']:.1f} GiB,"
            parts = ", ".join(f"{name} {row[f'{name}_seconds']:.1f}" for name in ("graph", "data", "ensemble"))
            say(
                f"{what}: {row['ms_per_epoch']:.1f} ms per epoch,{memory} {row['seconds_before']:.1f} s before the "
                f"first epoch ({parts}), first epoch {row['first_epoch_seconds']:.1f} s, segment {row['segment']}"
            )
        write_json(out, found)
