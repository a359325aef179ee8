"""The planner: a list of trials in the fewest batches that share a shape and fit the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gread.models.randomness import Randomness
from gread.settings.trials import Trial, grouped
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument
from rdgraph.kernels.device_memory import free_memory

#: Share of the free memory that a batch may take.
SHARE = 0.8
#: Most members of one batch on a CPU, where more of them do not make an epoch cheaper.
MOST_ON_CPU = 16


@dataclass(frozen=True)
class Need:
    """Bytes that one member takes: its parameters (with gradients, moments and copies) and its states."""

    parameters: int
    states: int

    @property
    def total(self) -> int:
        return self.parameters + self.states


def estimate(ensemble: Ensemble) -> Need:
    """What a member of an ensemble like this takes: its parts with their copies, and what its gradient keeps."""
    item = ensemble.learning_rates.element_size()
    own = sum(p[0].numel() for p in ensemble.parts.values())
    copies = 4 + ensemble.keep_best + (3 + ensemble.keep_best if ensemble.model.is_cut else 0)
    features = ensemble.problem.features
    known = ensemble.model.memory(features)
    return Need(item * own * copies, kept_bytes(ensemble) if known is None else item * known)


def kept_bytes(ensemble: Ensemble) -> int:
    """Bytes that one member keeps for its gradient, and as many again for the gradient itself: counted in a pass.

    Tensors that all members share, such as the edges of the graph, do not count; each storage counts once.
    """
    members, seen = ensemble.members, dict[int, int]()

    def note(x: torch.Tensor) -> torch.Tensor:
        if x.ndim and len(x) % members == 0 and x.is_floating_point():
            seen[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    random = Randomness(ensemble.model.seeds, ensemble.state["step"])
    before = {name: buffer.clone() for name, buffer in ensemble.model.named_buffers()}
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        logits = ensemble.model.run(ensemble.problem.features, ensemble.rates, random).logits
    for name, buffer in ensemble.model.named_buffers():
        buffer.copy_(before[name])
    return 2 * (sum(seen.values()) + logits.untyped_storage().nbytes()) // members


def members_that_fit(need: Need, device: str) -> int:
    """How many such members the free memory holds."""
    return int(SHARE * free_memory(device)) // max(1, need.total)


def make_batches(trials: Sequence[Trial], most: Sequence[int]) -> list[list[int]]:
    """The numbers of the trials in batches: `most` says how many of every group fit; batches of a group are even.

    >>> from gread.settings.config import Config
    >>> both = [Trial(Config().updated({"hidden": h}), split) for h in (8, 16) for split in range(5)]
    >>> make_batches(both, [5, 2])
    [[0, 1, 2, 3, 4], [5, 6], [7, 8], [9]]
    """
    batches = []
    for group, fit in zip(grouped(trials), most, strict=True):
        count = -(-len(group) // fit)
        size = -(-len(group) // count)
        batches += [group[k : k + size] for k in range(0, len(group), size)]
    return batches


def check_fit(need: Need, device: str, asked: int | None) -> int:
    """How many members a batch gets: as many as fit, or as many as were asked for, if they do."""
    fit = members_that_fit(need, device)
    if fit < 1:
        raise InvalidArgument(
            f"expected {need.total / 2**30:.2f} GiB for one member, got {free_memory(device) / 2**30:.2f} GiB free on "
            f"{device}; lower hidden or the number of steps, or choose another device"
        )
    if asked is not None and asked < 1:
        raise InvalidArgument(
            f"expected batches of at least one member, got {asked}; pass None to let the planner choose"
        )
    if asked is None:
        return fit if device.startswith("cuda") else min(fit, MOST_ON_CPU)
    if asked > fit:
        raise InvalidArgument(
            f"expected batches of at most {fit} members, which is what fits into the free memory of {device}, got "
            f"{asked}; pass members={fit}, or None to let the planner choose"
        )
    return asked
