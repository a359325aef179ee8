"""The layer as torch.compile sees it: one call that is left as it is, between what is compiled before and after it.

This module is imported while a model is compiled, so that layers which are not need nothing of the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gread.layers.conv import GREADConv


@torch.compiler.disable
def opaque_call(layer: GREADConv, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    """What the layer gives, out of the compiler's sight."""
    return layer.evolve(x, edge_index, edge_weight)
