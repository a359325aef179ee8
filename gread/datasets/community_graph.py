"""`community_graph`: a large random graph with communities and power-law degrees, generated on a device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument

#: The exponent of the degrees, and the largest expected degree as a multiple of the mean.
EXPONENT, LARGEST = 2.5, 200.0
#: The ratio of drawn to missing pairs, since some are repeated, and the most rounds of drawing.
SURPLUS, ROUNDS = 1.25, 40


@dataclass(frozen=True, eq=False)
class Community:
    """Unordered edges (2, entries) in both directions, features (n, f), labels (n,) and three masks (n,), as numpy."""

    edges: np.ndarray
    x: np.ndarray
    y: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


def community_graph(
    nodes: int, entries: int, *, features: int = 100, classes: int = 47, inside: float = 0.7, seed: int = 0,
    device: Any = "cpu", shares: tuple[float, float] = (0.08, 0.02),
) -> Community:  # fmt: skip
    """A random graph of given numbers of nodes and entries (edges count twice), with features, classes and masks.

    Every node has a class and a power-law weight; an edge joins two nodes drawn by their weights, the second with
    probability `inside` from the class of the first. There are no repeated edges and no loops. Features are the mean of
    the class plus noise. The numbers depend on the seed and on the kind of the device.

    Args:
        nodes: The number of nodes.
        entries: The number of entries of the adjacency, even.
        features: Columns of the features.
        classes: The number of classes, of different sizes.
        inside: The probability that an edge is drawn within a class.
        seed: The random seed.
        device: The device of the computation.
        shares: The shares of training and validation nodes; the others are test nodes.

    Raises:
        InvalidArgument: For more entries than about half of the possible ones.

    >>> graph = community_graph(500, 4000, features=8, classes=3)
    >>> graph.edges.shape, graph.x.shape, int(graph.y.max())
    ((2, 4000), (500, 8), 2)
    """
    if entries % 2 or not 0 < entries <= nodes * (nodes - 1) // 4:
        raise InvalidArgument(
            f"expected an even number of entries, at most {nodes * (nodes - 1) // 4} for {nodes} nodes, got {entries}"
        )
    random = torch.Generator(device=device).manual_seed(seed)
    sizes = torch.rand(classes, generator=random, device=device, dtype=torch.float64) + 0.2
    # In this order the nodes of a class are consecutive, and `reach` are the cumulative weights.
    ends = (sizes.cumsum(0) / sizes.sum() * nodes).round().long()
    ends[-1] = nodes
    label = torch.bucketize(torch.arange(nodes, device=device), ends, right=True)
    weight = _weights(nodes, random, device)
    reach = torch.cat([weight.new_zeros(1), weight.cumsum(0)])
    bounds = torch.cat([ends.new_zeros(1), ends])
    keys = _pairs(reach, bounds, label, entries // 2, inside, random)
    number = torch.randperm(nodes, generator=random, device=device)
    one, other = number[keys.div(nodes, rounding_mode="floor")], number[keys.remainder(nodes)]
    edges = torch.stack([torch.cat([one, other]), torch.cat([other, one])])
    y = torch.empty_like(label)
    y[number] = label
    means = torch.randn(classes, features, generator=random, device=device)
    x = means[y] + 2 * torch.randn(nodes, features, generator=random, device=device)
    drawn = torch.rand(nodes, generator=random, device=device)
    train, val = drawn < shares[0], (drawn >= shares[0]) & (drawn < sum(shares))
    masks = [mask.cpu().numpy() for mask in (train, val, ~(train | val))]
    return Community(edges.cpu().numpy(), x.cpu().numpy(), y.cpu().numpy(), *masks)


def _weights(nodes: int, random: torch.Generator, device: Any) -> Tensor:
    """Weights w >= 1 with density w^-EXPONENT, truncated so that no degree is too large."""
    drawn = torch.rand(nodes, generator=random, device=device, dtype=torch.float64)
    return (1 - drawn).pow(-1 / (EXPONENT - 1)).clamp(max=LARGEST)


def _pairs(reach: Tensor, bounds: Tensor, label: Tensor, count: int, inside: float, random: torch.Generator) -> Tensor:
    """`count` different pairs low*n + high, drawn by the weights."""
    nodes, device = len(label), label.device
    pairs = torch.empty(0, dtype=torch.int64, device=device)
    for _ in range(ROUNDS):
        missing = count - len(pairs)
        if missing <= 0:
            break
        size = math.ceil(missing * SURPLUS) + 16
        first = _drawn(reach, reach.new_zeros(size), reach[-1:].expand(size), random)
        home = label[first]
        stays = torch.rand(size, generator=random, device=device) < inside
        low = torch.where(stays, reach[bounds[home]], 0.0)
        high = torch.where(stays, reach[bounds[home + 1]], reach[-1])
        second = _drawn(reach, low, high, random)
        del home, stays, low, high
        keys = torch.minimum(first, second) * nodes + torch.maximum(first, second)
        pairs = torch.unique(torch.cat([pairs, keys[first != second]]))
    if len(pairs) < count:
        raise InvalidArgument(f"cannot draw {count} distinct edges among {nodes} nodes; lower entries")
    if len(pairs) == count:
        return pairs
    return pairs[torch.randperm(len(pairs), generator=random, device=device)[:count]]


def _drawn(reach: Tensor, low: Tensor, high: Tensor, random: torch.Generator) -> Tensor:
    """Nodes drawn by weight between two cumulative weights."""
    position = low + (high - low) * torch.rand(len(low), generator=random, device=reach.device, dtype=torch.float64)
    return (torch.searchsorted(reach, position, right=True) - 1).clamp(0, len(reach) - 2)
