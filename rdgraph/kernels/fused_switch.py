"""When steps of nonlinear fields run as a handful of generated Triton kernels, decided here and nowhere else."""

from __future__ import annotations

import torch
from torch import Tensor

from rdgraph.kernels.operations import has_triton

#: Entries of a state (members*nodes*channels) from which on the kernels are used. Each structure of an equation is
#: compiled once, in about a second: too long for a search that trains hundreds of structures on small graphs.
FUSED_ENTRIES = 1 << 20


def can_fuse(device: torch.device) -> bool:
    """Whether the kernels run on a device."""
    return device.type == "cuda" and has_triton()


def use_fused(x: Tensor) -> bool:
    """Whether what is computed from such a state runs as generated kernels.

    >>> use_fused(torch.ones(1024, 1024))
    False
    """
    if torch.compiler.is_compiling() or not can_fuse(x.device) or x.numel() < FUSED_ENTRIES:
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(x)
