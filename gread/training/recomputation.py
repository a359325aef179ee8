"""How much of a pass a gradient keeps: all of it where that fits, else a state now and then, and the rest again."""

from __future__ import annotations

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from rdgraph.errors import InvalidArgument
from rdgraph.kernels.device_memory import free_memory

AUTO, NONE = "auto", "none"
#: Share of the free memory that the states of all members may take before some of them are computed twice.
SHARE = 0.8


def choose_segment(model: BatchedModel, x: Features, asked: str | int, device: str) -> int:
    """The steps or terms after which a state is kept, 0 for all of them; `asked` is auto, none or a number.

    The results are the same, whatever is chosen; a gradient that computes states again takes a forward pass more.
    """
    if isinstance(asked, int) and asked > 0:
        return asked if model.segments else 0
    if asked not in (AUTO, NONE):
        raise InvalidArgument(f"expected auto, none or a number of steps from 1 for checkpointing, got {asked!r}")
    if asked == NONE or not model.segments:
        return 0
    room, needs = SHARE * free_memory(device), dict[int, int]()
    for size in (0, *model.segments):
        model.segment = size
        needs[size] = (model.memory(x) or 0) * x.values.element_size() * model.members
        if needs[size] <= room:
            return size
    return min(needs, key=needs.__getitem__)
