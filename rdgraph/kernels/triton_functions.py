"""Elementwise functions that Triton's language lacks, accurate in float32 and float64, for generated kernels.

NaN stays NaN, and infinities go where they go in torch.
"""

from __future__ import annotations

import triton
import triton.language as tl


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


#: The functions by the names that texts have for them.
BY_NAME = {function.fn.__name__: function for function in (tanh, softplus, root, sign)}
