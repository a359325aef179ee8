"""Counter-examples: the smallest graph, state and coefficients on which two expressions differ, in exact arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from rdgraph.nodes import Kind, Name, names_in

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


@dataclass(frozen=True)
class Witness:
    """A concrete disagreement: the graph's edges, every letter's value, and both sides."""

    nodes: int
    edges: tuple[tuple[int, int], ...]
    letters: tuple[tuple[str, str], ...]
    left: str
    right: str

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.letters)
        return f"{self.nodes} nodes, edges {list(self.edges)}; {values}: left {self.left}, right {self.right}"


def find_witness(
    left: sp.Basic,
    right: sp.Basic,
    *,
    definitions: Mapping[str, sp.Basic],
    relations: tuple[tuple[tuple[str, ...], sp.Basic], ...] = (),
    signs: Mapping[str, str] | None = None,
) -> Witness | None:
    """Search graphs of growing size; every hypothesis must hold on the witness. None if nothing was found.

    Without a degree operator D, A is the row-normalised adjacency; with D (or a free L) A is the plain adjacency.
    """
    letters = _free_letters(left, right, definitions)
    mixing = {n.name for n in names_in(left) | names_in(right) if n.kind is Kind.MATRIX}
    for nodes, edges in small_graphs():
        for values in _assignments(nodes, edges, letters, signs or {}):
            try:
                _add_definitions(values, definitions, nodes, mixing)
                if not _relations_hold(values, relations, nodes):
                    continue
                a, b = _value(left, values), _value(right, values)
            except (ZeroDivisionError, FloatingPointError):
                continue
            if _differ(a, b):
                shown = tuple(
                    (n, _show(values[n])) for n in sorted(values) if n in {x.name for x in letters} | {"A", "L", "D"}
                )
                return Witness(nodes, edges, shown, _show(a), _show(b))
    return None


def small_graphs(limit: int = 4) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """Connected graphs up to `limit` nodes, fewest nodes and edges first, one per degree sequence."""
    for nodes in range(2, limit + 1):
        pairs = list(itertools.combinations(range(nodes), 2))
        seen: set[tuple[int, ...]] = set()
        for size in range(nodes - 1, len(pairs) + 1):
            for edges in itertools.combinations(pairs, size):
                degrees = tuple(sorted(sum(i in e for e in edges) for i in range(nodes)))
                if degrees not in seen and _connected(nodes, edges):
                    seen.add(degrees)
                    yield nodes, edges


def _connected(nodes: int, edges: tuple[tuple[int, int], ...]) -> bool:
    reached, frontier = {0}, {0}
    while frontier:
        frontier = {b for a, b in (*edges, *((y, x) for x, y in edges)) if a in frontier} - reached
        reached |= frontier
    return len(reached) == nodes


def _free_letters(left: sp.Basic, right: sp.Basic, definitions: Mapping[str, sp.Basic]) -> list[Name]:
    found = set(names_in(left) | names_in(right))
    for name, body in definitions.items():
        if any(n.name == name for n in found):
            found |= set(names_in(body))
    return sorted((n for n in found if n.name not in definitions and n.name != "I"), key=lambda n: n.name)


def _assignments(nodes: int, edges: Any, letters: list[Name], signs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    import numpy as np

    plain = np.array([[Fraction(0)] * nodes for _ in range(nodes)], dtype=object)
    for i, j in edges:
        plain[i, j] = plain[j, i] = Fraction(1)
    degree = np.diag(plain.sum(axis=1))
    kinds = {n.name: n.kind for n in letters}
    combinatorial = "D" in kinds or "L" in kinds
    row = np.array([[x / sum(r) for x in r] for r in plain], dtype=object)
    channels = 2 if {Kind.CHANNEL, Kind.MATRIX} & set(kinds.values()) else 1
    for attempt in range(nodes + 3):
        values: dict[str, Any] = {"A": plain if combinatorial else row}
        if combinatorial:
            values |= {"D": degree, "L": degree - plain}
        order = sorted(kinds, key=lambda name: (name != "H", name))
        for index, name in enumerate(order):
            kind = kinds[name]
            if name not in values:
                values[name] = _example(kind, name, nodes, channels, attempt, index, signs)
        yield values


def _example(
    kind: Kind, name: str, nodes: int, channels: int, attempt: int, index: int, signs: Mapping[str, str]
) -> Any:
    import numpy as np

    prime = Fraction(_PRIMES[(index + attempt) % len(_PRIMES)])
    sign = -1 if signs.get(name) in ("negative", "nonpositive") else 1
    match kind:
        case Kind.SCALAR:
            return np.array(sign * (Fraction(1) if attempt == 0 else prime / (1 + attempt % 3)), dtype=object)
        case Kind.CHANNEL:
            return np.array([sign * prime * (c + 1) for c in range(channels)], dtype=object)
        case Kind.NODE:
            mask = name == "M"
            return np.array(
                [[Fraction(i % 2 == 0) if mask else sign * prime * (i + 1)] for i in range(nodes)], dtype=object
            )
        case Kind.FIELD:
            return _field(nodes, channels, attempt, index)
        case Kind.MATRIX:
            return np.array([[Fraction(1 + i + 2 * j) for j in range(channels)] for i in range(channels)], dtype=object)
    return np.array([[Fraction((i + 1) * (i == j)) for j in range(nodes)] for i in range(nodes)], dtype=object)


def _field(nodes: int, channels: int, attempt: int, index: int) -> Any:
    """Unit vectors first, then less special states."""
    import numpy as np

    def entry(i: int, c: int) -> Fraction:
        if attempt < nodes and index == 0:
            return Fraction(int(i == attempt)) if channels == 1 else Fraction(int((i + c) % nodes == attempt))
        return Fraction((i + 2 + index) * (c + 1) + attempt, 1 + (attempt + index) % 2)

    return np.array([[entry(i, c) for c in range(channels)] for i in range(nodes)], dtype=object)


def _add_definitions(values: dict[str, Any], definitions: Mapping[str, sp.Basic], nodes: int, mixing: set[str]) -> None:
    """Values of defined letters, in an order in which each is known when needed."""
    pending = dict(definitions)
    while pending:
        ready = [n for n, body in pending.items() if not any(x.name in pending for x in names_in(body))]
        for name in ready:
            body = pending.pop(name)
            if all(x.name in values or x.name == "I" for x in names_in(body)):
                values[name] = _value(body, values, nodes) * (_identity(values) if name in mixing and body == 0 else 1)


def _identity(values: Mapping[str, Any]) -> Any:
    """An identity in the channels of the state."""
    import numpy as np

    channels = values["H"].shape[1] if "H" in values else 1
    return np.array([[Fraction(int(i == j)) for j in range(channels)] for i in range(channels)], dtype=object)


def _value(tree: sp.Basic, values: Mapping[str, Any], nodes: int | None = None) -> Any:
    import numpy as np

    from rdgraph.dense import act, evaluate
    from rdgraph.nodes import kind_of

    if kind_of(tree) is Kind.OPERATOR:
        size = nodes or len(values["A"])
        eye = np.array([[Fraction(int(i == j)) for j in range(size)] for i in range(size)], dtype=object)
        return act(tree, eye, values)
    return evaluate(tree, values)


def _relations_hold(values: Mapping[str, Any], relations: Any, nodes: int) -> bool:
    for word, body in relations:
        product = values[word[0]]
        for letter in word[1:]:
            product = product @ values[letter]
        if _differ(product, _value(body, values, nodes)):
            return False
    return True


def _differ(a: Any, b: Any) -> bool:
    import numpy as np

    gap = np.asarray(a - b)
    if gap.dtype == object:
        return any(abs(float(x)) > 1e-9 for x in gap.ravel())
    return bool(np.isfinite(gap).all() and (np.abs(gap) > 1e-9).any())


def _show(value: Any) -> str:
    import numpy as np

    array = np.asarray(value)
    if array.ndim == 0:
        return str(array.item())
    rows = [_show(row) for row in array]
    return (
        f"[{', '.join(rows)}]" if len(rows) != 1 or array.ndim == 1 else rows[0] if array.ndim == 1 else f"[{rows[0]}]"
    )
