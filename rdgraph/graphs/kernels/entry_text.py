"""The source of generated Triton kernels for entrywise terms, from lines of text; it needs no Triton to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_HEAD = """
    member = (tl.program_id(0) // tiles).to(tl.int64)
    tile = (tl.program_id(0) % tiles).to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    live = channel < d
    own = stack + member * sb + channel * sc
{loads}
"""
_ENTRY = """
    for step in range(0, SPAN, ROWS):
        row = tile * SPAN + step + tl.arange(0, ROWS)
        mask = (row < nodes)[:, None] & live[None, :]
        place = (member * nodes + row)[:, None] * d + channel[None, :]
        h = tl.load(state + place, mask=mask, other=0).to(ACC)
{lines}
"""
_VALUE = '''
@triton.jit(do_not_specialize=["nodes", "tiles", "sk", "sb"])
def value_kernel(
    state, start, stack, out, nodes, d, tiles, sk, sb, sc,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,
):
    """out = sum_m k_m*phi_m."""{head}{entry}        total = tl.zeros((ROWS, CHANNELS), dtype=ACC)
{sums}
        tl.store(out + place, total, mask=mask)
'''
_GRADIENT = '''
@triton.jit(do_not_specialize=["nodes", "tiles", "members", "sk", "sb"], do_not_specialize_on_alignment=["partial"])
def gradient_kernel(
    g_, state, start, product, stack, grad_state, grad_start, scaled, partial, nodes, d, tiles, members, sk, sb, sc,
    HAS_START: tl.constexpr, HAS_SCALED: tl.constexpr, HAS_SUMS: tl.constexpr, HAS_PRODUCT: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,
):
    """The gradients in H and H0, k_0*g, and the sums over the nodes of g*product and of every g*phi_m."""{head}
    k0 = tl.load(own, mask=live, other=0).to(ACC)[None, :]
{accumulators}{entry}        g = tl.load(g_ + place, mask=mask, other=0).to(ACC)
        if HAS_SUMS:
{sums}
        if HAS_PRODUCT:
            taken = tl.load(product + place, mask=mask, other=0).to(ACC)
            s0 += tl.where(mask, g * taken, 0.0)
        if HAS_SCALED:
            tl.store(scaled + place, k0 * g, mask=mask)
{back}
        tl.store(grad_state + place, {own}, mask=mask)
{other}
    if HAS_SUMS:
        spot = (member * tiles + tile) * d + channel
        size = tl.full((), 1, tl.int64) * members * tiles * d
{stores}
'''


@dataclass(frozen=True)
class EntryText:
    """The lines of some expressions phi_1, phi_2, ... in `h` and `h0`, the entries of H and H0.

    Args:
        lines: Compute the values of the expressions.
        results: The names of these values, in their order.
        back: Compute the gradients from `g`, the gradient of the sum, and the factors k1, k2, ... of the expressions.
        gradients: The names of the gradients in `h` and in `h0`, None where it does not occur.
    """

    lines: tuple[str, ...]
    results: tuple[str, ...]
    back: tuple[str, ...]
    gradients: tuple[str | None, str | None]


def kernel_source(text: EntryText) -> str:
    """The module of two kernels.

    >>> text = EntryText(("y1 = h*h",), ("y1",), ("a_y1 = k1*g", "a_h = a_y1*h + a_y1*h"), ("a_h", None))
    >>> [line.strip() for line in kernel_source(text).splitlines() if "y1" in line][:2]
    ['y1 = h*h', 'total += k1*y1']
    """
    terms = range(1, len(text.results) + 1)
    loads = [f"    k{m} = tl.load(own + {m} * sk, mask=live, other=0).to(ACC)[None, :]" for m in terms]
    uses_start = any("h0" in line for line in (*text.lines, *text.results))
    start = ["h0 = tl.load(start + place, mask=mask, other=0).to(ACC)"] if uses_start else []
    head = _HEAD.format(loads="\n".join(loads))
    entry = _ENTRY.format(lines=_indented([*start, *text.lines], 8))
    value = _VALUE.format(
        head=head, entry=entry,
        sums=_indented([f"total += k{m}*{name}" for m, name in zip(terms, text.results, strict=True)], 8),
    )  # fmt: skip
    state_gradient, start_gradient = text.gradients
    gradient = _GRADIENT.format(
        head=head, entry=entry,
        accumulators=_indented([f"s{m} = tl.zeros((ROWS, CHANNELS), dtype=ACC)" for m in (0, *terms)], 4),
        sums=_indented(
            [f"s{m} += tl.where(mask, g * {name}, 0.0)" for m, name in zip(terms, text.results, strict=True)], 12
        ),
        back=_indented(text.back, 8),
        own="tl.zeros_like(g)" if state_gradient is None else state_gradient,
        other="" if start_gradient is None else _indented(
            ["if HAS_START:", f"    tl.store(grad_start + place, {start_gradient}, mask=mask)"], 8
        ),
        stores=_indented(
            [f"tl.store(partial + {m} * size + spot, tl.sum(s{m}, axis=0), mask=live)" for m in (0, *terms)], 8
        ),
    )  # fmt: skip
    return value + "\n" + gradient


def _indented(lines: Sequence[str], spaces: int) -> str:
    return "\n".join(" " * spaces + line for line in lines)
