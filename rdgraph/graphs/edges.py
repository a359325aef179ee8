"""Edges as checked arrays: node numbers in range, finite weights, every pair once, sorted by (target, source)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName

# ---------------------------------------------------------------------- edge keys
# Edges as one integer each, ordered like (target, source): sorted, every pair once, and unpacked in place.

#: Numbers processed at a time, so that intermediate arrays stay small.
BLOCK = 1 << 18


class EdgeKeys:
    """The keys target*n + source of edges that are added in blocks, and with `both_ways` those of the reversed edges.

    The keys are unpacked into pairs in the same memory, so neither is held twice.

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
        """The keys of edges (2, E) of whole numbers."""
        keys = cls(edge_index.shape[1], num_nodes, both_ways)
        for end, nodes in enumerate(edge_index):
            keys.add(end, 0, nodes)
        return keys

    @property
    def keys(self) -> np.ndarray:
        """The keys: those of the edges, then those of the reversed edges."""
        return self._room[: self.ways * self.edges]

    def add(self, end: int, start: int, nodes: np.ndarray) -> None:
        """Sources (end 0) or targets (end 1) of the edges from `start` on; each is added once, in any order."""
        check_range(nodes[None], self.num_nodes, start)
        for part in blocks(len(nodes)):
            for way in range(self.ways):
                factor = self.num_nodes if end != way else 1
                first = way * self.edges + start + part.start
                chosen = nodes[part]
                self._room[first : first + len(chosen)] += np.multiply(chosen, factor, dtype=np.int64, casting="unsafe")

    def sort(self) -> np.ndarray:
        """Sort the keys; returns a mask of the first occurrence of each."""
        keys = self.keys
        keys.sort()
        is_new = np.empty(keys.size, dtype=bool)
        is_new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        return is_new

    def pairs(self, chosen_keys: np.ndarray) -> np.ndarray:
        """Edges (2, E) of the chosen sorted keys; they overwrite the keys."""
        keys, count = self.keys, 0
        for part in blocks(keys.size):
            chosen = keys[part][chosen_keys[part]]
            keys[count : count + chosen.size] = chosen
            count += chosen.size
        source, target = edges = self._room[: 2 * count].reshape(2, count)
        np.floor_divide(source, self.num_nodes, out=target)
        for part in blocks(count):
            source[part] -= target[part] * self.num_nodes
        return edges if 2 * count >= keys.size else edges.copy()


def blocks(count: int) -> Iterator[slice]:
    """Slices of `BLOCK` positions that cover the range 0..count-1, in order.

    >>> list(blocks(3))
    [slice(0, 262144, None)]
    """
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


def is_sorted_once(edge_index: np.ndarray, num_nodes: int) -> bool:
    """Whether edges are sorted by (target, source) without repetition."""
    for part in blocks(edge_index.shape[1]):
        sources, targets = edge_index[:, part.start : part.stop + 1]
        if not (np.diff(targets * np.int64(num_nodes) + sources) > 0).all():
            return False
    return True


def check_range(pairs: np.ndarray, count: int, start: int = 0) -> None:
    """Raise unless all ends (k, E) of edges are nodes 0..count-1; the error numbers edges from `start`."""
    if not pairs.size or (pairs.min() >= 0 and pairs.max() < count):
        return
    edge = int(np.any((pairs < 0) | (pairs >= count), axis=0).argmax())
    node = next(int(x) for x in pairs[:, edge] if not 0 <= x < count)
    remedy = f"pass num_nodes={node + 1} or more, or renumber" if node >= 0 else "nodes are numbered from 0"
    raise InvalidArgument(
        f"expected nodes in 0..{count - 1}, got edge {start + edge}: node {node} is out of range; {remedy}"
    )


# ---------------------------------------------------------------------- edges
#: Largest number of nodes, so that a pair of nodes fits one 64-bit key.
MAX_NODES = 2**31 - 1
#: Without num_nodes, more nodes than MAX_IMPLIED, and than SPARSEST times the edges, are treated as a mistake.
MAX_IMPLIED, SPARSEST = 10**7, 100
#: How a pair that occurs more than once is treated: one edge if all weights agree, one edge with the sum, mean, largest
#: or first of the weights, or an error.
DUPLICATES = ("once", "sum", "mean", "max", "first", "error")


def read_edges(
    edge_index: Any, num_nodes: Any, weight: Any, *, duplicates: str, signed: bool, both_ways: bool = False
) -> tuple[np.ndarray, np.ndarray, int]:
    """Checked, coalesced and sorted (edge_index, weight, num_nodes); edges of weight zero are left out.

    With `both_ways`, for edges without weights that count once, the reversed edges are added.

    >>> read_edges([[2, 0, 0], [0, 1, 1]], None, None, duplicates="sum", signed=False)
    (array([[2, 0],
           [0, 1]]), array([1., 2.]), 3)
    """
    pairs = _read_pairs(edge_index)
    count = read_count(num_nodes) if num_nodes is not None else _implied_count(pairs)
    check_range(pairs, count)
    return coalesced(EdgeKeys.of(pairs, count, both_ways), weight, duplicates=duplicates, signed=signed)


def coalesced(
    keys: EdgeKeys, weight: Any, *, duplicates: str, signed: bool = False
) -> tuple[np.ndarray, np.ndarray, int]:
    """Checked, coalesced and sorted (edge_index, weight, num_nodes) of edges given by keys, which it consumes."""
    count = keys.num_nodes
    if duplicates not in DUPLICATES:
        raise UnknownName("treatment of duplicates", str(duplicates), DUPLICATES)
    if weight is None and duplicates != "error":
        is_new = keys.sort()
        is_counted = duplicates == "sum" and not is_new.all()
        times = np.diff(np.flatnonzero(is_new), append=is_new.size) if is_counted else np.ones(1)
        pairs_once = keys.pairs(is_new)
        weights = np.full(pairs_once.shape[1], times, dtype=np.float64)
        return pairs_once, _loops_once(keys, pairs_once, weights) if is_counted else weights, count
    weights = np.ones(keys.edges) if weight is None else _read_weights(weight, keys.edges, signed)
    pairs, weights = _weighted(keys, weights, duplicates)
    is_edge = weights != 0
    return (pairs, weights, count) if is_edge.all() else (take_edges(pairs, is_edge), weights[is_edge], count)


def take_edges(edge_index: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Columns of edge_index by number or mask; row by row is three times as fast as both rows at once."""
    return np.stack([edge_index[0][which], edge_index[1][which]])


def as_array(values: Any, what: str) -> np.ndarray:
    """`values` as a numpy array: lists, arrays, or torch tensors on any device."""
    try:
        return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)
    except (TypeError, ValueError) as reason:
        raise InvalidArgument(f"expected numbers in {what}, got {type(values).__name__} ({reason})") from None


def whole_numbers(values: Any, what: str, entry: str = "entry") -> np.ndarray:
    """`values` as a new int64 array; whole floats pass, and the error names the first other `entry` (last axis).

    >>> whole_numbers([0.0, 2.0], "nodes")
    array([0, 2])
    """
    array = as_array(values, what)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        raise InvalidArgument(f"expected whole numbers in {what}, got dtype {array.dtype}; pass integers")
    if array.dtype.kind == "f":
        wrong = ~((array == np.trunc(array)) & (np.abs(array) < 2.0**53))
    else:
        wrong = array > np.iinfo(np.int64).max
    if wrong.any():
        position = np.argwhere(wrong)[0]
        raise InvalidArgument(
            f"expected whole numbers in {what}, got {array[tuple(position)]} at {entry} "
            f"{position[-1] if len(position) else 0}; round or remove it"
        )
    return array.astype(np.int64)


def read_whole(value: Any, least: int, what: str) -> int:
    """`value` as an int >= `least`."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InvalidArgument(f"expected a whole number >= {least} for {what}, got {value!r}")
    return number


def read_count(num_nodes: Any) -> int:
    """`num_nodes` as an int, 1 or more."""
    try:
        count = operator.index(num_nodes)
    except TypeError:
        raise InvalidArgument(
            f"expected a whole number of nodes, got {num_nodes!r} ({type(num_nodes).__name__}); pass an int"
        ) from None
    if not 1 <= count <= MAX_NODES:
        raise InvalidArgument(f"expected 1 to {MAX_NODES} nodes, got {count}; a graph has at least one node")
    return count


def read_nodes(nodes: Any, num_nodes: int) -> np.ndarray:
    """Distinct node numbers, at least one, from a sequence of numbers or a mask of length num_nodes."""
    given = as_array(nodes, "nodes")
    if given.dtype.kind == "b":
        if given.shape != (num_nodes,):
            raise InvalidArgument(f"expected a mask of shape ({num_nodes},), got {given.shape}; one entry per node")
        given = np.flatnonzero(given)
    chosen = whole_numbers(given, "nodes")
    if chosen.ndim != 1 or not chosen.size:
        raise InvalidArgument(
            f"expected node numbers of shape (k,), k >= 1, got {chosen.shape}; choose a node at least"
        )
    _refuse(
        (chosen < 0) | (chosen >= num_nodes),
        lambda k: f"expected nodes in 0..{num_nodes - 1}, got entry {k}: node {chosen[k]}; leave it out",
    )
    first = np.unique(chosen, return_index=True)[1]
    _refuse(
        ~np.isin(np.arange(chosen.size), first),
        lambda k: f"expected distinct nodes, got entry {k}: node {chosen[k]} again; name every node once",
    )
    return chosen


def _read_pairs(edge_index: Any) -> np.ndarray:
    """`edge_index` as whole numbers (2, E), without a copy where it is an integer array."""
    given = as_array(edge_index, "edge_index")
    is_whole = given.size > 0 and np.can_cast(given.dtype, np.int64) and given.dtype.kind in "iu"
    pairs = given if is_whole else whole_numbers(given, "edge_index", "edge")
    if pairs.shape == (0,):
        return pairs.reshape(2, 0)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        remedy = "transpose the list of pairs" if pairs.ndim == 2 and pairs.shape[1] == 2 else "sources, then targets"
        raise InvalidArgument(f"expected edge_index of shape (2, E), got {pairs.shape}; {remedy}")
    return pairs


def _implied_count(pairs: np.ndarray) -> int:
    if not pairs.size:
        raise InvalidArgument("expected at least one node, got no edges and no number of nodes; pass num_nodes=")
    count = read_count(max(int(pairs.max()) + 1, 1))
    if count > max(MAX_IMPLIED, SPARSEST * pairs.shape[1]):
        raise InvalidArgument(
            f"expected num_nodes for a graph of {pairs.shape[1]} edges whose largest node is {count - 1}, got none; "
            f"pass num_nodes={count} if that is meant, or renumber: np.unique(edge_index, return_inverse=True)"
        )
    return count


def _read_weights(weight: Any, edges: int, signed: bool) -> np.ndarray:
    given = as_array(weight, "weight")
    if given.dtype.kind not in "biuf" and given.size:
        raise InvalidArgument(f"expected real weights, got dtype {given.dtype}; pass floats")
    if given.shape != (edges,):
        raise InvalidArgument(f"expected weights of shape ({edges},), one per edge, got {given.shape}")
    weights = given.astype(np.float64, copy=False)
    _refuse(~np.isfinite(weights), lambda k: f"expected finite weights, got edge {k}: {weights[k]}; remove the edge")
    if not signed:
        _refuse(
            weights < 0,
            lambda k: (
                f"expected weights >= 0, got edge {k}: {weights[k]}; build the graph with signed=True to allow them"
            ),
        )
    return weights


def _weighted(keys: EdgeKeys, weights: np.ndarray, duplicates: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by (target, source), every pair once."""
    order = _order(keys, duplicates)
    weights, is_new = weights.take(order, mode="wrap"), keys.sort()  # reversed edges follow the edges
    if is_new.all():
        del order
        return keys.pairs(is_new), weights

    def text(k: int) -> str:
        way, edge = divmod(int(order[k]), keys.edges)
        ends = divmod(int(keys.keys[k]), keys.num_nodes)
        first = order[np.flatnonzero(is_new[: k + 1])[-1]] % keys.edges
        return f"got edge {edge}: {ends[1 - way]} -> {ends[way]} repeats edge {first}"

    def odd_weight(k: int) -> str:
        if order[k - 1] < keys.edges <= order[k]:
            return (
                f"expected one weight for both directions of an edge, got two at edge {order[k] - keys.edges}, which "
                f"reverses edge {order[k - 1]}; combine them (duplicates='sum'; also mean, max, first), or pass "
                "directed=True if direction matters"
            )
        return f"expected repeated edges to agree, {text(k)} with another weight; pass duplicates='sum'"

    if duplicates == "error":
        is_other = np.diff(order % keys.edges, prepend=-1) != 0  # a loop is its own reverse
        _refuse(~is_new & is_other, lambda k: f"expected every edge once, {text(k)}; pass duplicates='sum' or 'once'")
    if duplicates == "once":
        differs = ~is_new
        differs[1:] &= weights[1:] != weights[:-1]
        _refuse(differs, odd_weight)
    if duplicates in ("once", "first", "error"):
        del order, text, odd_weight  # frees memory before the pairs are unpacked
        weights = weights[is_new]
        return keys.pairs(is_new), weights
    starts = np.flatnonzero(is_new)
    with np.errstate(over="ignore"):
        total = (np.maximum if duplicates == "max" else np.add).reduceat(weights, starts)
    _refuse(~np.isfinite(total), lambda k: f"expected finite sums of repeated edges, {text(starts[k] + 1)}: {total[k]}")
    if duplicates == "mean":
        total /= np.diff(starts, append=is_new.size)
    pairs = keys.pairs(is_new)
    return pairs, _loops_once(keys, pairs, total) if duplicates == "sum" else total


def _order(keys: EdgeKeys, duplicates: str) -> np.ndarray:
    """The order that sorts the keys; equal keys in the order of the edges, so that both directions agree."""
    if keys.ways == 1 or duplicates == "once":
        return np.argsort(keys.keys, kind="stable")
    return np.lexsort((np.arange(keys.keys.size) % keys.edges, keys.keys))


def _loops_once(keys: EdgeKeys, pairs: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Sums over edges and their reverses, in which a loop has been counted twice."""
    return np.where(pairs[0] == pairs[1], sums / keys.ways, sums)


def _refuse(wrong: Any, text: Callable[[int], str]) -> None:
    """Raise InvalidArgument for the first entry where `wrong` holds."""
    if wrong.any():
        raise InvalidArgument(text(int(wrong.argmax())))
