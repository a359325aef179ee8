"""Edges as checked arrays: node numbers in range, finite weights, every pair once, sorted by (target, source)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rdgraph.errors import InvalidArgument, UnknownName

#: Largest number of nodes, so that a pair of nodes fits one 64-bit key.
MAX_NODES = 2**31 - 1
#: Without num_nodes, more nodes than MAX_IMPLIED, and than SPARSEST times the edges, are taken for a mistake.
MAX_IMPLIED, SPARSEST = 10**7, 100
#: Numbers that range over more than this many times their count are sorted by comparison.
_WIDE = 16


def read_edges(
    edge_index: Any, num_nodes: Any, weight: Any, *, duplicates: str, signed: bool, both_ways: bool = False
) -> tuple[np.ndarray, np.ndarray, int]:
    """Checked, coalesced and sorted (edge_index, weight, num_nodes); edges of weight zero are left out.

    With `both_ways`, which is for edges without weights that count once, the reversed ones as well.

    >>> read_edges([[2, 0, 0], [0, 1, 1]], None, None, duplicates="sum", signed=False)
    (array([[2, 0],
           [0, 1]]), array([1., 2.]), 3)
    """
    pairs = _read_pairs(edge_index)
    count = read_count(num_nodes) if num_nodes is not None else _implied_count(pairs)
    _check_range(pairs, count)
    if weight is None and duplicates in ("sum", "once"):
        keys = both_keys(pairs, count) if both_ways else pair_keys(pairs, count)
        del pairs
        keys.sort()
        is_new = first_of_each(keys)
        times = np.diff(np.flatnonzero(is_new), append=keys.size) if duplicates == "sum" and not is_new.all() else 1
        found = unpacked_pairs(keys, is_new, count)
        return found, np.full(found.shape[1], times, dtype=np.float64), count
    weights = np.ones(pairs.shape[1]) if weight is None else _read_weights(weight, pairs.shape[1], signed)
    pairs, weights = _coalesced(pairs, weights, count, duplicates)
    kept = weights != 0
    return (pairs, weights, count) if kept.all() else (take_edges(pairs, kept), weights[kept], count)


def pair_keys(edge_index: np.ndarray, num_nodes: int) -> np.ndarray:
    """One integer per edge, ordered like (target, source)."""
    return edge_index[1] * np.int64(num_nodes) + edge_index[0]


def both_keys(edge_index: np.ndarray, num_nodes: int) -> np.ndarray:
    """The keys of edges, and those of the reversed ones."""
    half = edge_index.shape[1]
    keys = np.empty(2 * half, dtype=np.int64)
    for part, way in ((keys[:half], edge_index), (keys[half:], edge_index[::-1])):
        np.multiply(way[1], num_nodes, out=part)
        part += way[0]
    return keys


def first_of_each(keys: np.ndarray) -> np.ndarray:
    """Where sorted keys have a value for the first time."""
    is_new = np.empty(keys.size, dtype=bool)
    is_new[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    return is_new


def unpacked_pairs(keys: np.ndarray, kept: np.ndarray, num_nodes: int) -> np.ndarray:
    """Edges (2, E) of those sorted keys that are kept.

    >>> keys = np.array([3, 7, 7])
    >>> unpacked_pairs(keys, first_of_each(keys), 3)
    array([[0, 1],
           [1, 2]])
    """
    chosen = keys if kept.all() else keys[kept]
    pairs = np.empty((2, chosen.size), dtype=np.int64)
    np.floor_divide(chosen, num_nodes, out=pairs[1])
    np.multiply(pairs[1], -num_nodes, out=pairs[0])
    pairs[0] += chosen
    return pairs


def grouped(edge_index: np.ndarray, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The stable order by (target, source), and where in it each new pair starts.

    >>> grouped(np.array([[1, 0, 1], [2, 1, 2]]), 3)
    (array([1, 0, 2]), array([0, 1]))
    """
    by_source = _counting_sort(edge_index[0], num_nodes)
    order = by_source[_counting_sort(edge_index[1][by_source], num_nodes)]
    return order, np.flatnonzero(np.diff(pair_keys(edge_index, num_nodes)[order], prepend=-1))


def take_edges(edge_index: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Columns of edge_index by number or mask; row by row is three times as fast as both rows at once."""
    return np.stack([edge_index[0][which], edge_index[1][which]])


def _counting_sort(values: np.ndarray, count: int) -> np.ndarray:
    """The stable order of numbers in 0..count-1, in linear time where they are dense: scipy transposes one row."""
    if count > _WIDE * (values.size + 1):
        return np.argsort(values, kind="stable")
    row = csr_array((np.arange(values.size), values, [0, values.size]), shape=(1, count))
    return np.asarray(row.tocsc().data)


def as_array(values: Any, what: str) -> np.ndarray:
    """Lists, arrays, torch tensors on any device as a numpy array."""
    try:
        return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)
    except (TypeError, ValueError) as reason:
        raise InvalidArgument(f"expected numbers in {what}, got {type(values).__name__} ({reason})") from None


def whole_numbers(values: Any, what: str, entry: str = "entry") -> np.ndarray:
    """A new int64 array; floats pass where they are whole, and an error names the `entry` (last axis) that is not.

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
        place = np.argwhere(wrong)[0]
        raise InvalidArgument(
            f"expected whole numbers in {what}, got {array[tuple(place)]} at {entry} {place[-1] if len(place) else 0}; "
            "round or remove it"
        )
    return array.astype(np.int64)


def read_whole(value: Any, least: int, what: str) -> int:
    """An int that is not too small."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InvalidArgument(f"expected a whole number >= {least} for {what}, got {value!r}")
    return number


def read_count(num_nodes: Any) -> int:
    """A number of nodes, 1 or more."""
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
    pairs = whole_numbers(edge_index, "edge_index", "edge")
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


def _check_range(pairs: np.ndarray, count: int) -> None:
    def text(edge: int) -> str:
        node = next(int(x) for x in pairs[:, edge] if not 0 <= x < count)
        remedy = f"pass num_nodes={node + 1} or more, or renumber" if node >= 0 else "nodes are numbered from 0"
        return f"expected nodes in 0..{count - 1}, got edge {edge}: node {node} is out of range; {remedy}"

    _refuse(np.any((pairs < 0) | (pairs >= count), axis=0), text)


def _read_weights(weight: Any, edges: int, signed: bool) -> np.ndarray:
    given = as_array(weight, "weight")
    if given.dtype.kind not in "biuf" and given.size:
        raise InvalidArgument(f"expected real weights, got dtype {given.dtype}; pass floats")
    if given.shape != (edges,):
        raise InvalidArgument(f"expected weights of shape ({edges},), one per edge, got {given.shape}")
    weights = given.astype(np.float64)
    _refuse(~np.isfinite(weights), lambda k: f"expected finite weights, got edge {k}: {weights[k]}; remove the edge")
    if not signed:
        _refuse(
            weights < 0,
            lambda k: f"expected weights >= 0, got edge {k}: {weights[k]}; pass signed=True to allow negative weights",
        )
    return weights


def _coalesced(pairs: np.ndarray, weights: np.ndarray, count: int, duplicates: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by (target, source), every pair once."""
    if duplicates not in ("sum", "once", "error"):
        raise UnknownName("treatment of duplicates", str(duplicates), ("sum", "once", "error"))
    order, starts = grouped(pairs, count)
    pairs, weights = take_edges(pairs, order), weights[order]
    if starts.size == order.size:
        return pairs, weights
    opening = np.repeat(starts, np.diff(starts, append=order.size))

    def text(k: int) -> str:
        source, target = pairs[:, k]
        return f"got edge {order[k]}: {source} -> {target} repeats edge {order[opening[k]]}"

    if duplicates == "error":
        _refuse(
            opening != np.arange(order.size),
            lambda k: f"expected every edge once, {text(k)}; pass duplicates='sum' or 'once'",
        )
    if duplicates == "once":
        _refuse(
            weights != weights[opening],
            lambda k: f"expected repeated edges to agree, {text(k)} with another weight; pass duplicates='sum'",
        )
        return take_edges(pairs, starts), weights[starts]
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weights, starts)
    _refuse(~np.isfinite(total), lambda k: f"expected finite sums of repeated edges, {text(starts[k] + 1)}: {total[k]}")
    return take_edges(pairs, starts), total


def _refuse(wrong: Any, text: Callable[[int], str]) -> None:
    """Raise about the first place where `wrong` holds."""
    if wrong.any():
        raise InvalidArgument(text(int(wrong.argmax())))
