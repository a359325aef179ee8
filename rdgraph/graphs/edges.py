"""Edges as checked arrays: node numbers in range, finite weights, every pair once, sorted by (target, source)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.edge_keys import EdgeKeys, check_range

#: Largest number of nodes, so that a pair of nodes fits one 64-bit key.
MAX_NODES = 2**31 - 1
#: Without num_nodes, more nodes than MAX_IMPLIED, and than SPARSEST times the edges, are taken for a mistake.
MAX_IMPLIED, SPARSEST = 10**7, 100


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
    check_range(pairs, count)
    return coalesced(EdgeKeys.of(pairs, count, both_ways), weight, duplicates=duplicates, signed=signed)


def coalesced(
    keys: EdgeKeys, weight: Any, *, duplicates: str, signed: bool = False
) -> tuple[np.ndarray, np.ndarray, int]:
    """The same of edges whose keys are known, which are gone afterwards."""
    count = keys.num_nodes
    if weight is None and duplicates in ("sum", "once"):
        is_new = keys.sort()
        times = np.diff(np.flatnonzero(is_new), append=is_new.size) if duplicates == "sum" and not is_new.all() else 1
        found = keys.pairs(is_new)
        return found, np.full(found.shape[1], times, dtype=np.float64), count
    weights = np.ones(keys.edges) if weight is None else _read_weights(weight, keys.edges, signed)
    pairs, weights = _weighted(keys, weights, duplicates)
    kept = weights != 0
    return (pairs, weights, count) if kept.all() else (take_edges(pairs, kept), weights[kept], count)


def take_edges(edge_index: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Columns of edge_index by number or mask; row by row is three times as fast as both rows at once."""
    return np.stack([edge_index[0][which], edge_index[1][which]])


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
    """Whole numbers (2, E) of any kind, not copied where they are."""
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
            lambda k: f"expected weights >= 0, got edge {k}: {weights[k]}; pass signed=True to allow negative weights",
        )
    return weights


def _weighted(keys: EdgeKeys, weights: np.ndarray, duplicates: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by (target, source), every pair once."""
    if duplicates not in ("sum", "once", "error"):
        raise UnknownName("treatment of duplicates", str(duplicates), ("sum", "once", "error"))
    order = np.argsort(keys.keys, kind="stable")
    weights, is_new = weights.take(order, mode="wrap"), keys.sort()  # reversed edges stand behind the edges
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
                f"reverses edge {order[k - 1]}; keep one of them"
            )
        return f"expected repeated edges to agree, {text(k)} with another weight; pass duplicates='sum'"

    if duplicates == "error":
        _refuse(~is_new, lambda k: f"expected every edge once, {text(k)}; pass duplicates='sum' or 'once'")
    if duplicates == "once":
        differs = ~is_new
        differs[1:] &= weights[1:] != weights[:-1]
        _refuse(differs, odd_weight)
        del order, text, odd_weight  # before the pairs take their room
        weights = weights[is_new]
        return keys.pairs(is_new), weights
    starts = np.flatnonzero(is_new)
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weights, starts)
    _refuse(~np.isfinite(total), lambda k: f"expected finite sums of repeated edges, {text(starts[k] + 1)}: {total[k]}")
    return keys.pairs(is_new), total


def _refuse(wrong: Any, text: Callable[[int], str]) -> None:
    """Raise about the first place where `wrong` holds."""
    if wrong.any():
        raise InvalidArgument(text(int(wrong.argmax())))
