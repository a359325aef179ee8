"""How much memory a device has left."""

from __future__ import annotations

import os
from typing import Any

import torch


def free_memory(device: Any) -> int:
    """Bytes that are free on a device, those that torch holds in reserve included, or on this machine.

    Of a card at most the share that `torch.cuda.set_per_process_memory_fraction` leaves to this process.

    >>> free_memory("cpu") > 0
    True
    """
    place = torch.device(device)
    if place.type == "cuda":
        free, total = torch.cuda.mem_get_info(place)
        used = int(torch.cuda.memory_allocated(place))
        share = torch.cuda.get_per_process_memory_fraction(place)
        return min(int(free) + int(torch.cuda.memory_reserved(place)) - used, int(share * total) - used)
    return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
