"""How much memory a device has left."""

from __future__ import annotations

import os
from typing import Any

import torch


def free_memory(device: Any) -> int:
    """Bytes that are free on a device, those that torch holds in reserve included, or on this machine.

    >>> free_memory("cpu") > 0
    True
    """
    place = torch.device(device)
    if place.type == "cuda":
        reserve = torch.cuda.memory_reserved(place) - torch.cuda.memory_allocated(place)
        return int(torch.cuda.mem_get_info(place)[0]) + reserve
    return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
