"""How much memory a device has left."""

from __future__ import annotations

import os
from typing import Any

import torch


def free_memory(device: Any) -> int:
    """Bytes that are free on a device, or on this machine.

    >>> free_memory("cpu") > 0
    True
    """
    if torch.device(device).type == "cuda":
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
