"""A call that torch.compile leaves as it is, between what is compiled before and after it.

This module is imported while a model is compiled, so that layers which are not need nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


@torch.compiler.disable
def opaque_call(function: Callable[..., Tensor], *arguments: Tensor | None) -> Tensor:
    """Call a function outside of the compiler's view, and return its result."""
    return function(*arguments)
