"""The planner: divides trials into as few batches of one shape as fit into memory.

Members of a batch are ordered by effort, so that polynomials are computed piece by piece, each as long as its members
need. Members with time steps all take as many steps as the longest; such a shape is divided into several batches if
that saves more than another batch costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from gread.datasets.node_data import NodeData
from gread.models.randomness import Randomness
from gread.settings.model_records import ModelSettings
from gread.settings.trials import Trial, grouped
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.devices import free_memory, total_memory

#: Share of the free memory that a batch may use.
SHARE = 0.8
#: The most members of a batch on a CPU, where more members do not make an epoch cheaper.
MOST_ON_CPU = 16
_PLANNED: ContextVar[int | None] = ContextVar("bytes that batches are planned for", default=None)
#: The fixed cost of a batch, as bytes moved in every epoch: set-up and recording on a GPU, spread over the epochs, and
#: the calls of an epoch on a CPU.
BATCH_ON_GPU, BATCH_ON_CPU = 1e10, 2e7


@dataclass(frozen=True)
class Need:
    """Bytes that one member needs: its parameters (with gradients, moments and copies) and its states."""

    parameters: int
    states: int

    @property
    def total(self) -> int:
        return self.parameters + self.states

    def times(self, factor: float) -> Need:
        """The same need with `factor` times the bytes for states."""
        return Need(self.parameters, int(factor * self.states))


def estimate(ensemble: Ensemble) -> Need:
    """Memory of a member of such an ensemble: its parts with their copies, and the states kept for its gradient."""
    item = ensemble.learning_rates.element_size()
    numbers = sum(p[0].numel() for p in ensemble.parts.values())
    copies = 4 + ensemble.keep_best + (3 + ensemble.keep_best if ensemble.model.is_cut else 0)
    features = ensemble.problem.features
    known = ensemble.model.memory(features)
    return Need(item * numbers * copies, measured_bytes(ensemble) if known is None else item * known)


def measured_bytes(ensemble: Ensemble) -> int:
    """Bytes that one member keeps for its gradient, doubled for the gradient itself, measured in a forward pass.

    Tensors that all members share, such as the edges of the graph, do not count; each storage counts once.
    """
    members, seen = ensemble.members, dict[int, int]()

    def note(x: torch.Tensor) -> torch.Tensor:
        if x.ndim and len(x) % members == 0 and x.is_floating_point():
            seen[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x.detach()  # an output that its operation keeps would keep itself alive

    random = Randomness(ensemble.model.seeds, ensemble.state["step"])
    before = {name: buffer.clone() for name, buffer in ensemble.model.named_buffers()}
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        logits = ensemble.model.run(ensemble.problem.features, ensemble.rates, random).logits
    for name, buffer in ensemble.model.named_buffers():
        buffer.copy_(before[name])
    return 2 * (sum(seen.values()) + logits.untyped_storage().nbytes()) // members


@contextmanager
def planned_for(memory: int | None) -> Iterator[None]:
    """Within the block, plan batches for `memory` free bytes, independently of the machine that trains them.

    The rounding of sums depends on the batch, so results are equal to the bit only for equal batches.
    """
    token = _PLANNED.set(memory)
    try:
        yield
    finally:
        _PLANNED.reset(token)


def memory_to_plan_for(device: str) -> int:
    """The free memory, rounded to four binary digits so that small differences do not change the batches."""
    free = planned_memory(device)
    coarse = max(0, free.bit_length() - 4)
    return free >> coarse << coarse


def planned_memory(device: str) -> int:
    """Free bytes on the device or this machine; within `planned_for`, the planned bytes, at most the device's total."""
    planned = _PLANNED.get()
    return free_memory(device) if planned is None else min(planned, total_memory(device))


@dataclass(frozen=True)
class Costs:
    """The approximate cost of an epoch in moved bytes: of a batch, and of its members.

    Args:
        batch: The fixed cost of a batch.
        nodes: Nodes of the graph.
        edges: Entries of its adjacency.
        features: Columns of the features.
        entries: Entries of the features.
    """

    batch: float
    nodes: int
    edges: int
    features: int
    entries: int

    @classmethod
    def of(cls, data: NodeData, device: str) -> Costs:
        """The costs of trainings on a data set."""
        entries = data.x.nnz if data.is_sparse else data.x.size  # type: ignore[union-attr]
        batch = BATCH_ON_GPU if device.startswith("cuda") else BATCH_ON_CPU
        return cls(batch, data.num_nodes, data.graph.edge_index.shape[1], data.num_features, int(entries))

    @classmethod
    def each(cls, datas: Sequence[NodeData], device: str) -> list[Costs]:
        """The costs of trainings on each of several data sets."""
        known = {id(data): cls.of(data, device) for data in {id(data): data for data in datas}.values()}
        return [known[id(data)] for data in datas]

    def member(self, settings: ModelSettings) -> tuple[float, float]:
        """The cost of a member: its fixed part, and that of each product with A.

        Features and parameters pass three times through the encoder and through the optimiser, states through the other
        layers; a product is computed in training, its gradient and evaluation, and twice more for gradients of weights.
        """
        passes = 3 if getattr(settings, "adjacency", "original") == "original" else 5
        channel = 4 * settings.hidden
        fixed = channel * (3 * self.entries + 7 * self.features + 24 * self.nodes)
        return fixed, channel * passes * (self.edges + 3 * self.nodes)


def cut_by_effort(efforts: Sequence[int], fit: int, batch: float, fixed: float, product: float) -> list[list[int]]:
    """The cheapest division of members into pieces of similar effort.

    A piece costs its highest effort for every member, and `batch` for each batch of at most `fit` members.

    >>> cut_by_effort([1, 9, 1, 9], 4, batch=1.0, fixed=0.0, product=1.0)
    [[0, 2], [1, 3]]
    >>> cut_by_effort([1, 9, 1, 9], 4, batch=100.0, fixed=0.0, product=1.0)
    [[0, 1, 2, 3]]
    """
    counts = Counter(efforts)
    levels = sorted(counts)
    totals = list(accumulate(counts[level] for level in levels))
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end, (level, total) in enumerate(zip(levels, totals, strict=True)):
        costs = []
        for start in range(end + 1):
            count = total - (totals[start - 1] if start else 0)
            costs.append((best[start][0] + -(-count // fit) * batch + count * (fixed + product * level), start))
        best.append(min(costs))
    ends, end = [], len(levels)
    while end:
        ends.append((best[end][1], end))
        end = best[end][1]
    return [sorted((k for k, e in enumerate(efforts) if e in levels[start:end])) for start, end in reversed(ends)]


def union_entries(datas: Sequence[NodeData]) -> int | None:
    """Entries of the union pattern that the graphs of a batch share; None if their numbers of nodes differ."""
    sets = list({id(one): one for one in datas}.values())
    nodes = {one.num_nodes for one in sets}
    if len(nodes) > 1:
        return None
    if len(sets) == 1:
        return int(sets[0].graph.edge_index.shape[1])
    (count,) = nodes
    keys = [edges[0].astype(np.int64) * count + edges[1] for edges in map(_edges, sets)]
    return int(np.unique(np.concatenate(keys)).size)


def _edges(data: NodeData) -> np.ndarray:
    """Sources and targets on the host."""
    edges: Any = data.graph.edge_index
    return edges if isinstance(edges, np.ndarray) else edges.cpu().numpy()


def union_factor(data: NodeData, among: Sequence[NodeData]) -> float:
    """How many times more entries a member has in a batch with all these graphs, at least 1.

    >>> from gread.datasets.synthetic import csbm
    >>> one, other = csbm(0, n=40), csbm(1, n=40)
    >>> union_factor(one, [one, one]), union_factor(one, [one, other]) > 1.2
    (1.0, True)
    """
    union, entries = union_entries(among or [data]), int(data.graph.edge_index.shape[1])
    return max(1.0, (union or entries) / max(1, entries))


def cut_by_set(
    trials: Sequence[Trial], groups: Sequence[list[int]], each: Sequence[NodeData], device: str
) -> list[list[int]]:
    """Groups whose members have different graphs, divided by graph if that saves more than the batches cost.

    In one batch every member computes products with the union of all graphs; `each` has the data set of every trial.

    >>> from gread.datasets.synthetic import csbm
    >>> from gread.settings.config import Config
    >>> large, small = ([one for k in (0, 1) for one in [csbm(k, n=n)] * 5] for n in (200, 10))
    >>> trials = [Trial(Config(), split) for _ in (0, 1) for split in range(5)]
    >>> [len(cut_by_set(trials, [list(range(10))], datas, "cpu")) for datas in (large, small)]
    [2, 1]
    """
    pieces: list[list[int]] = []
    for group in groups:
        by_graph: dict[int, list[int]] = {}
        for k in group:
            by_graph.setdefault(id(each[k]), []).append(k)
        union = union_entries([each[k] for k in group])
        if len(by_graph) > 1 and (union is None or _saved(trials, each, group, union, device, len(by_graph)) > 0):
            pieces += by_graph.values()
        else:
            pieces.append(group)
    return pieces


def _saved(
    trials: Sequence[Trial], each: Sequence[NodeData], group: Sequence[int], union: int, device: str, parts: int
) -> float:
    """The cost that `parts` batches, one for every graph, save in an epoch over one with the union of the graphs."""
    saved = 0.0
    for k in group:
        costs = Costs.of(each[k], device)
        model = trials[k].config.model
        product = replace(costs, edges=union).member(model)[1] - costs.member(model)[1]
        saved += trials[k].effort * product - costs.batch * (parts - 1) / len(group)
    return saved


def make_batches(
    trials: Sequence[Trial],
    most: Sequence[int],
    costs: Sequence[Costs] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> list[list[int]]:
    """The numbers of the trials in batches: `most` is how many of every group fit; batches of a group have equal size.

    By default groups are the trials that can share a batch. With `costs`, one for every trial, members of a group are
    ordered by effort, and if those with less effort would pay for those with more, they get separate batches.

    >>> from gread.settings.config import Config
    >>> both = [Trial(Config().updated({"hidden": h}), split) for h in (8, 16) for split in range(5)]
    >>> make_batches(both, [5, 2])
    [[0, 1, 2, 3, 4], [5, 6], [7, 8], [9]]
    """
    batches = []
    for group, fit in zip(grouped(trials) if groups is None else groups, most, strict=True):
        pieces = [list(range(len(group)))]
        efforts = [trials[k].effort for k in group] if costs is not None else []
        if costs is not None and len(set(efforts)) > 1:
            model = trials[group[0]].config.model
            if model.is_padded:
                cost = costs[group[0]]
                pieces = cut_by_effort(efforts, fit, cost.batch, *cost.member(model))
            pieces = [sorted(piece, key=lambda k: (efforts[k], k)) for piece in pieces]
        for piece in pieces:
            size = -(-len(piece) // -(-len(piece) // fit))
            batches += [[group[k] for k in piece[start : start + size]] for start in range(0, len(piece), size)]
    return batches


def largest(trials: Sequence[Trial], group: Sequence[int]) -> int:
    """The number of the trial of a group with the most products, and so the most memory."""
    return max(group, key=lambda k: (trials[k].effort, -k))


def check_fit(need: Need, device: str, asked: int | None) -> int:
    """The number of members of a batch: as many as fit, or as many as were asked for if they fit.

    Those fit that fit into the planned memory, and one that fits into the free memory.
    """
    memories = planned_memory(device), free_memory(device)
    planned, free = (int(SHARE * memory) // max(1, need.total) for memory in memories)
    fit = max(planned, min(1, free))
    if fit < 1:
        raise InvalidArgument(
            f"expected {need.total / 2**30:.2f} GiB for one member, got {free_memory(device) / 2**30:.2f} GiB free "
            f"on {device}; lower hidden or the number of steps, or use another device"
        )
    if asked is not None and asked < 1:
        raise InvalidArgument(
            f"expected batches of at least one member, got {asked}; pass None to let the planner choose"
        )
    if asked is None:
        return fit if device.startswith("cuda") else min(fit, MOST_ON_CPU)
    if asked > fit:
        raise InvalidArgument(
            f"expected batches of at most {fit} members, which fit into the free memory of {device}, got "
            f"{asked}; pass members={fit}, or None to let the planner choose"
        )
    return asked
