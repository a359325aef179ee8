"""Edges as one integer each, ordered like (target, source): sorted, every pair once, and unpacked in their own room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rdgraph.errors import InvalidArgument

#: Numbers that are worked on together, so that what lies between takes little memory.
BLOCK = 1 << 18


class EdgeKeys:
    """The keys target*n + source of edges that come in blocks, and with `both_ways` those of the reversed edges.

    The room is that of the pairs which the keys become, so that neither the edges nor their keys are held twice.

    >>> keys = EdgeKeys(2, 3, both_ways=True)
    >>> keys.add(0, 0, np.array([0, 1]))
    >>> keys.add(1, 0, np.array([1, 2]))
    >>> keys.pairs(keys.sort())
    array([[1, 0, 2, 1],
           [0, 1, 1, 2]])
    """

    def __init__(self, edges: int, num_nodes: int, both_ways: bool = False) -> None:
        self.edges, self.num_nodes, self.ways = edges, num_nodes, 1 + both_ways
        self._room = np.zeros(2 * self.ways * edges, dtype=np.int64)

    @classmethod
    def of(cls, edge_index: np.ndarray, num_nodes: int, both_ways: bool = False) -> EdgeKeys:
        """Those of edges (2, E) of whole numbers."""
        made = cls(edge_index.shape[1], num_nodes, both_ways)
        for end, nodes in enumerate(edge_index):
            made.add(end, 0, nodes)
        return made

    @property
    def keys(self) -> np.ndarray:
        """The keys themselves, of the reversed edges behind those of the edges."""
        return self._room[: self.ways * self.edges]

    def add(self, end: int, start: int, nodes: np.ndarray) -> None:
        """Sources (end 0) or targets (end 1) of the edges from `start` on; each is added once, in any order."""
        check_range(nodes[None], self.num_nodes, start)
        for part in blocks(len(nodes)):
            for way in range(self.ways):
                factor = self.num_nodes if end != way else 1
                place = way * self.edges + start + part.start
                chosen = nodes[part]
                self._room[place : place + len(chosen)] += np.multiply(chosen, factor, dtype=np.int64, casting="unsafe")

    def sort(self) -> np.ndarray:
        """Sort the keys; where each is for the first time."""
        keys = self.keys
        keys.sort()
        is_new = np.empty(keys.size, dtype=bool)
        is_new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        return is_new

    def pairs(self, kept: np.ndarray) -> np.ndarray:
        """Edges (2, E) of those sorted keys that are kept; they take the place of the keys, which are gone."""
        keys, count = self.keys, 0
        for part in blocks(keys.size):
            chosen = keys[part][kept[part]]
            keys[count : count + chosen.size] = chosen
            count += chosen.size
        source, target = found = self._room[: 2 * count].reshape(2, count)
        np.floor_divide(source, self.num_nodes, out=target)
        for part in blocks(count):
            source[part] -= target[part] * self.num_nodes
        return found if 2 * count >= keys.size else found.copy()


def blocks(count: int) -> Iterator[slice]:
    """Pieces of so many numbers, in order.

    >>> list(blocks(3))
    [slice(0, 262144, None)]
    """
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


def is_sorted_once(edge_index: np.ndarray, num_nodes: int) -> bool:
    """Whether edges are sorted by (target, source), every pair once."""
    for part in blocks(edge_index.shape[1]):
        sources, targets = edge_index[:, part.start : part.stop + 1]
        if not (np.diff(targets * np.int64(num_nodes) + sources) > 0).all():
            return False
    return True


def check_range(pairs: np.ndarray, count: int, start: int = 0) -> None:
    """Raise unless the ends (k, E) of the edges from `start` on are nodes of a graph of so many."""
    if not pairs.size or (pairs.min() >= 0 and pairs.max() < count):
        return
    edge = int(np.any((pairs < 0) | (pairs >= count), axis=0).argmax())
    node = next(int(x) for x in pairs[:, edge] if not 0 <= x < count)
    remedy = f"pass num_nodes={node + 1} or more, or renumber" if node >= 0 else "nodes are numbered from 0"
    raise InvalidArgument(
        f"expected nodes in 0..{count - 1}, got edge {start + edge}: node {node} is out of range; {remedy}"
    )
