"""Total and free memory of a device."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from rdgraph.graphs.kernels.operations import has_triton


# ---------------------------------------------------------------------- device memory
def free_memory(device: Any) -> int:
    """Bytes that are free on a GPU, those that torch holds in reserve included, or on this machine.

    Of a GPU at most the share that `torch.cuda.set_per_process_memory_fraction` leaves to this process.

    >>> 0 < free_memory("cpu") < total_memory("cpu")
    True
    """
    chosen = torch.device(device)
    if chosen.type == "cuda":
        used = int(torch.cuda.memory_allocated(chosen))
        free = int(torch.cuda.mem_get_info(chosen)[0]) + int(torch.cuda.memory_reserved(chosen))
        return min(free, total_memory(chosen)) - used
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def total_memory(device: Any) -> int:
    """Bytes of a GPU that this process may use, or all bytes of this machine."""
    chosen = torch.device(device)
    if chosen.type == "cuda":
        index: int | None = chosen.index
        share = torch.cuda.get_per_process_memory_fraction(torch.cuda.current_device() if index is None else index)
        return int(share * torch.cuda.mem_get_info(chosen)[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# ---------------------------------------------------------------------- fused switch
# Decides when steps of nonlinear fields run as a few generated Triton kernels.

#: Entries of a state (members*nodes*channels) from which on the kernels are used. Each structure of an equation is
#: compiled once, in about a second: too long for a search that trains hundreds of structures on small graphs.
FUSED_ENTRIES = 1 << 20


def can_fuse(device: torch.device) -> bool:
    """Whether the kernels run on a device."""
    return device.type == "cuda" and has_triton()


def use_fused(x: Tensor) -> bool:
    """Whether computations with such a state run as generated kernels.

    >>> use_fused(torch.ones(1024, 1024))
    False
    """
    if torch.compiler.is_compiling() or not can_fuse(x.device) or x.numel() < FUSED_ENTRIES:
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(x)
