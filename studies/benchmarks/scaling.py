"""Seconds of a product as edges, channels, members and products grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

import rdgraph as rd
from studies.benchmarks.sample_operators import random_operator
from studies.benchmarks.timing import median_seconds


def scaling(device: str, largest: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of one product (or field) as edges, channels, members and products grow."""
    found: dict[str, list[tuple[float, float]]] = {"edges": [], "channels": [], "members": [], "products": []}

    def timed(axis: str, value: int, function: Callable[[], object]) -> None:
        with torch.no_grad():
            found[axis].append((value, median_seconds(function, device, 0.15, 50)))

    entries = 10_000
    while entries <= largest:
        op = random_operator(max(entries // 20, 10), entries, device)
        x = torch.randn(op.num_nodes, 16, device=device)
        timed("edges", op.num_edges, partial(op.product, x))
        entries *= 10
    size = largest // 20
    op = random_operator(size // 20, size, device)
    for channels in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        x = torch.randn(op.num_nodes, channels, device=device)
        timed("channels", channels, partial(op.product, x))
    for members in (1, 2, 4, 8, 16, 32, 64):
        weights = torch.rand(members, op.num_edges, device=device)
        own, x = op.with_weights(weights), torch.randn(members, op.num_nodes, 16, device=device)
        timed("members", members, partial(own.product, x))
    x = torch.randn(op.num_nodes, 16, device=device)
    for power in (1, 2, 3, 4, 6, 8):
        field = rd.lower(f"A**{power}@H", op, {}).prepared()
        timed("products", power, partial(field, 0.0, x))
    return found
