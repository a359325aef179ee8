"""`OpaqueOperation`: a function of tensors known to the dispatcher of torch, into which `torch.compile` does not look.

As `torch.library.custom_op` makes them, less what that adds to each call and to the first one, which loads torch's
compiler: seconds for a process that compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class OpaqueOperation:
    """A function under a name "space::name", for all devices; it changes none of its arguments and returns none.

    >>> from rdgraph.kernels.operations import inner
    >>> inner(torch.ones(1, 3, 2), torch.ones(1, 3, 2))
    tensor([[3., 3.]])
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        torch.library.define(name, torch.library.infer_schema(function, mutates_args=()))
        torch.library.impl(name, "CompositeExplicitAutograd", function)
        space, own = name.split("::")
        #: What torch's dispatcher calls.
        self.overload = getattr(getattr(torch.ops, space), own).default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overload(*args, **kwargs)

    def register_fake(self, function: Callable[..., Any]) -> None:
        """Say what the result looks like, from tensors without numbers."""
        torch.library.register_fake(self.name, function)

    def register_autograd(self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None = None) -> None:
        """Say the derivative: `backward(ctx, *gradients)`, with what `setup_context(ctx, inputs, output)` has kept."""
        torch.library.register_autograd(self.name, backward, setup_context=setup_context)


def opaque(name: str) -> Callable[[Callable[..., Any]], OpaqueOperation]:
    """Decorator: the function as an operation of that name."""

    def made(function: Callable[..., Any]) -> OpaqueOperation:
        return OpaqueOperation(name, function)

    return made
