"""`community_graph`: a large graph with communities and degrees that follow a power law, made on a device."""

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
#: How many more pairs are drawn than are missing, since some come twice, and how often that is tried.
SURPLUS, ROUNDS = 1.25, 40


@dataclass(frozen=True, eq=False)
class Community:
    """Edges (2, entries) both ways in no order, features (n, f), labels (n,) and the three masks (n,), as numpy."""

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

    Every node has a class and a weight with a power law; an edge joins two nodes drawn by their weights, the second
    with the probability `inside` from the class of the first. No edge occurs twice, and none is a loop. Features are
    the mean of the class plus noise. The numbers depend on the seed and on the kind of the device.

    Args:
        nodes: How many nodes.
        entries: How many entries the adjacency has; an even number.
        features: Columns of the features.
        classes: How many classes; their sizes differ.
        inside: The share of edges that stay in a class by design.
        seed: Where the random numbers start.
        device: Where all this is computed.
        shares: Of training and validation nodes; the others test.

    Raises:
        InvalidArgument: For more entries than there are pairs of nodes, about.

    >>> made = community_graph(500, 4000, features=8, classes=3)
    >>> made.edges.shape, made.x.shape, int(made.y.max())
    ((2, 4000), (500, 8), 2)
    """
    if entries % 2 or not 0 < entries <= nodes * (nodes - 1) // 4:
        raise InvalidArgument(
            f"expected an even number of entries, at most {nodes * (nodes - 1) // 4} for {nodes} nodes, got {entries}"
        )
    random = torch.Generator(device=device).manual_seed(seed)
    sizes = torch.rand(classes, generator=random, device=device, dtype=torch.float64) + 0.2
    # In this order the nodes of a class lie side by side, each with its share of all weights up to it.
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
    """Weights with density w^-EXPONENT from 1 on, cut off so that no node takes too much."""
    drawn = torch.rand(nodes, generator=random, device=device, dtype=torch.float64)
    return (1 - drawn).pow(-1 / (EXPONENT - 1)).clamp(max=LARGEST)


def _pairs(reach: Tensor, bounds: Tensor, label: Tensor, count: int, inside: float, random: torch.Generator) -> Tensor:
    """So many different pairs low*n + high, drawn by the weights."""
    nodes, device = len(label), label.device
    found = torch.empty(0, dtype=torch.int64, device=device)
    for _ in range(ROUNDS):
        missing = count - len(found)
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
        found = torch.unique(torch.cat([found, keys[first != second]]))
    if len(found) < count:
        raise InvalidArgument(f"expected fewer entries than {2 * count} for {nodes} nodes, got pairs that come again")
    if len(found) == count:
        return found
    return found[torch.randperm(len(found), generator=random, device=device)[:count]]


def _drawn(reach: Tensor, low: Tensor, high: Tensor, random: torch.Generator) -> Tensor:
    """Nodes whose stretch of the weights holds a number between two others."""
    place = low + (high - low) * torch.rand(len(low), generator=random, device=reach.device, dtype=torch.float64)
    return (torch.searchsorted(reach, place, right=True) - 1).clamp(0, len(reach) - 2)
