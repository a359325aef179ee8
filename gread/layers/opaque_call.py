"""A call that torch.compile does not compile, between compiled code before and after it.

This module is imported only while a model is compiled, so that uncompiled layers do not load the compiler.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


@torch.compiler.disable
def opaque_call(function: Callable[..., Tensor], *arguments: Tensor | None) -> Tensor:
    """Call a function outside of the compiled code, and return its result."""
    return function(*arguments)
