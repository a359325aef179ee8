"""Generated Triton kernels for entrywise terms: sum_m k_m*phi_m(H, H0), and all sums for its gradient, in one pass.

The text of the expressions comes from `rdgraph.run.lowering.fused_slope`; equal texts share their kernels. One program
owns a block of nodes of one member, and every sum has a fixed order, so the results are the same bits in every run.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from rdgraph.graphs.kernels.entry_text import EntryText, kernel_source
from rdgraph.graphs.kernels.triton_spmm import TRITON_TYPES, accumulator

# ---------------------------------------------------------------------- triton functions
# Elementwise functions that Triton's language lacks, accurate in float32 and float64, for generated kernels.
#
# NaN stays NaN, and infinities go where they go in torch.


@triton.jit
def tanh(x):
    """tanh(x): Lambert's fraction near zero, where exponentials cancel, (1 - exp(-2|x|))/(1 + exp(-2|x|)) elsewhere."""
    square = x * x
    top = x * (135135 + square * (17325 + square * (378 + square)))
    near = top / (135135 + square * (62370 + square * (3150 + square * 28)))
    small = tl.exp(-2 * tl.abs(x))
    far = (1 - small) / (1 + small)
    return tl.where(tl.abs(x) < 0.5, near, tl.where(x < 0, -far, far))


@triton.jit
def softplus(x):
    """log(1 + exp(x)) = max(x, 0) + log(1 + t) with t = exp(-|x|), by the series of 2*artanh(t/(2 + t))."""
    small = tl.exp(-tl.abs(x))
    s = small / (2 + small)
    square = s * s
    total = tl.zeros_like(x) + 1 / 33
    for k in tl.static_range(16):
        total = total * square + 1 / (31 - 2 * k)
    return tl.where(x < 0, 0.0, x) + 2 * s * total


@triton.jit
def root(x):
    """sqrt(x), rounded to the nearest number."""
    if x.dtype == tl.float64:
        return tl.sqrt(x)
    else:
        return tl.sqrt_rn(x)


@triton.jit
def sign(x):
    """-1, 0 or 1; 0 for NaN, as in torch."""
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))


#: The functions by their names in generated text.
BY_NAME = {function.fn.__name__: function for function in (tanh, softplus, root, sign)}


# ---------------------------------------------------------------------- entry kernels
#: Nodes of one program, and bytes of a sum that it holds at a time, limited by the registers.
SPAN, HELD = 64, 4096

_numbers = count(1)


@dataclass(frozen=True, eq=False)
class EntryKernels:
    """The two kernels of some expressions: of their sum, and of its gradient."""

    source: str
    value_kernel: Callable[..., Any]
    gradient_kernel: Callable[..., Any]
    count: int

    def value(self, state: Tensor, start: Tensor | None, stack: Tensor) -> Tensor:
        """sum_m stack[m]*phi_m(state, start), m = 1, 2, ...: (B, n, d); stack (terms + 1, 1 or B, 1, 1 or d)."""
        out = torch.empty_like(state)
        if out.numel():
            grid, numbers, shape = _cut(state)
            self.value_kernel[grid](  # type: ignore[index]
                state, state if start is None else start, stack, out, *numbers, *_strides(stack), **shape
            )
        return out

    def gradient(
        self, g: Tensor, state: Tensor, start: Tensor | None, product: Tensor | None, stack: Tensor,
        partial: Tensor | None, *, wants_start: bool, wants_scaled: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
        """The gradients in the state and in the start for a gradient g of the sum, and stack[0]*g.

        `partial` receives the gradients of the stack, as sums over blocks of nodes; the first row of the stack is the
        factor of `product`, which is needed for these sums alone.
        """
        grad_state = torch.empty_like(state)
        grad_start = torch.empty_like(state) if wants_start else None
        scaled = torch.empty_like(g) if wants_scaled else None
        if grad_state.numel():
            grid, numbers, shape = _cut(state)
            self.gradient_kernel[grid](  # type: ignore[index]
                g, state, state if start is None else start, g if product is None else product, stack, grad_state,
                g if grad_start is None else grad_start, g if scaled is None else scaled,
                g if partial is None else partial, *numbers, len(state), *_strides(stack),
                HAS_START=wants_start, HAS_SCALED=wants_scaled, HAS_SUMS=partial is not None,
                HAS_PRODUCT=partial is not None and product is not None, **shape,
            )  # fmt: skip
        return grad_state, grad_start, scaled

    def partial_sums(self, state: Tensor, count: int) -> Tensor:
        """Room for the partial sums of `count` gradients of the stack: (count, terms + 1, B, blocks of nodes, d)."""
        members, nodes, d = state.shape
        shape = (count, self.count + 1, members, triton.cdiv(nodes, SPAN), d)
        return torch.empty(shape, dtype=accumulator(state.dtype), device=state.device)


def stack_gradient(partial: Tensor, stack: Tensor) -> Tensor:
    """Partial sums added up to the shape of a stack (terms + 1, 1 or B, 1, 1 or d), in one pass."""
    axes = [0, 3, *(axis + 1 for axis in (1, 3) if stack.shape[axis] == 1)]
    return partial.sum(dim=axes, keepdim=True)[0].to(stack.dtype)


@lru_cache(maxsize=256)
def entry_kernels(text: EntryText) -> EntryKernels:
    """The kernels of some lines, compiled by Triton when they are first launched."""
    source = kernel_source(text)
    filename = f"<rdgraph kernels {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": __name__, "triton": triton, "tl": tl, **BY_NAME}
    exec(compile(source, filename, "exec"), namespace)
    return EntryKernels(source, namespace["value_kernel"], namespace["gradient_kernel"], len(text.results))


def _cut(state: Tensor) -> tuple[tuple[int, int], tuple[int, int, int], dict[str, Any]]:
    """The grid of a launch, the numbers of nodes, channels and tiles, and the shape of a program."""
    members, nodes, d = state.shape
    width = min(triton.next_power_of_2(max(d, 1)), 128)
    tiles = triton.cdiv(nodes, SPAN)
    sums = accumulator(state.dtype)
    rows = min(SPAN, HELD // (sums.itemsize * width))
    shape = {"SPAN": SPAN, "ROWS": rows, "CHANNELS": width, "ACC": TRITON_TYPES[sums], "num_warps": 4}
    return (members * tiles, triton.cdiv(d, width)), (nodes, d, tiles), shape


def _strides(stack: Tensor) -> tuple[int, int, int]:
    """How far terms, members and channels are apart in a stack; 0 along what they share."""
    terms, members, channels = stack.stride(0), stack.stride(1), stack.stride(3)
    return terms, members if stack.shape[1] > 1 else 0, channels if stack.shape[3] > 1 else 0
