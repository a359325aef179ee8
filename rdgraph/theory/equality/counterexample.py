"""Counter-examples: the smallest graph, state and coefficients found on which two expressions are proved to differ.

Every sign, relation, mask and hypothesis holds exactly for a witness; values are rational, or enclosed in disjoint
balls.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp
from flint import arb

from rdgraph.language.normal_form import MASKS
from rdgraph.language.tree import Kind, Name, names_in
from rdgraph.theory.equality.exact_values import Array, Undefined, array, differ, enough_precision, evaluate, signs
from rdgraph.theory.equality.hypotheses import Hypotheses

# ---------------------------------------------------------------------- example operators
# Exact matrices with the declared properties of further operators, for counter-examples.

Rows = list[list[Fraction]]

#: Largest modulus of the entries that are drawn.
LARGEST = 4


def example_operator(facts: Collection[str], nodes: int, attempt: int, generator: random.Random) -> Array:
    """A random matrix with the properties `facts`, or at the first attempt without symmetry a diagonal one.

    Of properties that exclude each other, such as stochastic and antisymmetric, it has one; `has_facts` decides.

    >>> drawn = example_operator(("antisymmetric",), 3, 1, random.Random(0))
    >>> has_facts(drawn, ("antisymmetric",)), has_facts(drawn, ("stochastic",))
    (True, False)
    """
    if "stochastic" in facts:
        return array(_averages(nodes, generator) if "symmetric" in facts else _stochastic(nodes, generator))
    if attempt == 0 and not {"symmetric", "antisymmetric"} & set(facts):
        return array([[Fraction((i + 1) * (i == j)) for j in range(nodes)] for i in range(nodes)])
    drawn = [[Fraction(generator.randint(-LARGEST, LARGEST)) for _ in range(nodes)] for _ in range(nodes)]
    for word, sign in (("symmetric", 1), ("antisymmetric", -1)):
        if word in facts:
            drawn = [[drawn[i][j] + sign * drawn[j][i] for j in range(nodes)] for i in range(nodes)]
    return array(drawn)


def _stochastic(nodes: int, generator: random.Random) -> Rows:
    weights = [[generator.randint(0, LARGEST) + (i == j) for j in range(nodes)] for i in range(nodes)]
    return [[Fraction(x, sum(row)) for x in row] for row in weights]


def _averages(nodes: int, generator: random.Random) -> Rows:
    """A mean of permutations and their inverses: symmetric, and stochastic."""
    rows = [[Fraction(0)] * nodes for _ in range(nodes)]
    parts = [Fraction(generator.randint(1, LARGEST)) for _ in range(nodes)]
    for part in parts:
        for i, j in enumerate(generator.sample(range(nodes), nodes)):
            rows[i][j] += part / sum(parts) / 2
            rows[j][i] += part / sum(parts) / 2
    return rows


def has_facts(matrix: Any, facts: Collection[str]) -> bool:
    """Whether an exact matrix has the declared properties."""
    checks = {
        "symmetric": lambda: signs(matrix - matrix.T) <= {0},
        "antisymmetric": lambda: signs(matrix + matrix.T) <= {0},
        "stochastic": lambda: signs(matrix) <= {0, 1} and signs(matrix.sum(axis=1) - 1) <= {0},
    }
    return all(checks[fact]() for fact in facts if fact in checks)


# ---------------------------------------------------------------------- counterexample
#: Assignments for each graph, and draws of the coefficients for each assignment.
ATTEMPTS = 8
DRAWS = 12

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
_SIGNS = {"positive": {1}, "negative": {-1}, "nonnegative": {0, 1}, "nonpositive": {0, -1}, "real": {-1, 0, 1}}

Hint = Mapping[str, sp.Rational]


@dataclass(frozen=True)
class Witness:
    """A counter-example: the edges of the graph, the value of every letter, and both sides."""

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
    rules: Hypotheses,
    hints: Iterable[Hint] = (),
    *,
    apart: Callable[[Array, Array], bool] = differ,
) -> Witness | None:
    """The first counter-example on graphs of growing size that satisfy every hypothesis; None if none was found.

    `apart` decides whether the values of both sides are proved to differ, by default in some entry. `hints` are values
    of coefficients and of entries of the state to be tried on every graph. Without a degree operator D (and with L
    defined) A is the row-normalised adjacency, else the plain adjacency. Where hypotheses relate operators, graphs with
    self-loops are tried too. Further operators have their declared properties.
    """
    search = _Search(left, right, rules)
    with enough_precision():
        for nodes, edges in small_graphs(loops=bool(rules.word_rules.rules)):
            for values in search.assignments(nodes, edges, tuple(hints)):
                witness = search.check(nodes, edges, values, apart)
                if witness is not None:
                    return witness
    return None


def small_graphs(limit: int = 4, *, loops: bool = False) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """Connected graphs with up to `limit` nodes, smallest first, one for each degree sequence.

    With `loops`, each is followed by the same graph with a self-loop at every node.
    """
    for nodes in range(2, limit + 1):
        pairs = list(itertools.combinations(range(nodes), 2))
        seen: set[tuple[int, ...]] = set()
        for size in range(nodes - 1, len(pairs) + 1):
            for edges in itertools.combinations(pairs, size):
                degrees = tuple(sorted(sum(i in e for e in edges) for i in range(nodes)))
                if degrees not in seen and _connected(nodes, edges):
                    seen.add(degrees)
                    yield nodes, edges
                    if loops:
                        yield nodes, (*edges, *((i, i) for i in range(nodes)))


def _connected(nodes: int, edges: tuple[tuple[int, int], ...]) -> bool:
    reached, frontier = {0}, {0}
    while frontier:
        frontier = {b for a, b in (*edges, *((y, x) for x, y in edges)) if a in frontier} - reached
        reached |= frontier
    return len(reached) == nodes


class _Search:
    """Values for all letters of a comparison, and the tests that they are admissible and that the sides differ."""

    def __init__(self, left: sp.Basic, right: sp.Basic, rules: Hypotheses) -> None:
        self.left, self.right, self.rules = left, right, rules
        self.letters = {n.name: n.kind for n in self._used() if n.name != "I"}
        self.free = {n: k for n, k in self.letters.items() if n not in rules.definitions}
        self.facts = {n: words for n, words in rules.operators if n in self.letters}
        self.channels = 2 if {Kind.CHANNEL, Kind.MATRIX} & set(self.letters.values()) else 1

    def _used(self) -> set[Name]:
        """The letters of both sides, of their definitions and of all assumptions about them."""
        used = set(names_in(self.left) | names_in(self.right)) | {Name("A", Kind.OPERATOR)}
        related = [(e.left, e.right) for e in self.rules.equations]
        if self.rules.assumptions is not None:
            related += [(r.lower, r.upper) for r in self.rules.assumptions.relations]
        for _ in range(1 + len(related)):
            for one, other in related:
                letters = names_in(one) | names_in(other)
                if letters & used:
                    used |= letters
        return used

    # ------------------------------------------------------------------ candidates
    def assignments(
        self, nodes: int, edges: tuple[tuple[int, int], ...], hints: tuple[Hint, ...]
    ) -> Iterator[dict[str, Array]]:
        """Admissible values of all letters on a graph: special states first, then general ones, then the hints."""
        operators = self._operators(nodes, edges)
        if not self._is_admissible_graph(operators):
            return
        for attempt in range(nodes + ATTEMPTS):
            for draw in range(DRAWS):
                values = operators | {
                    name: self._example(kind, name, nodes, attempt, draw, index)
                    for index, (name, kind) in enumerate(sorted(self.free.items(), key=lambda x: (x[0] != "H", x[0])))
                    if name not in operators
                }
                if self._complete(values):
                    yield values
                    break
        for hint in hints:
            values = operators | {
                name: self._constant(kind, nodes, hint[name])
                if name in hint
                else self._example(kind, name, nodes, 0, 0, 0)
                for name, kind in self.free.items()
                if name not in operators
            }
            if self._complete(values):
                yield values

    def _operators(self, nodes: int, edges: tuple[tuple[int, int], ...]) -> dict[str, Array]:
        plain = [[Fraction(0)] * nodes for _ in range(nodes)]
        for i, j in edges:
            plain[i][j] = plain[j][i] = Fraction(1)
        degrees = [sum(row) for row in plain]
        if not {"D", "L"} & set(self.free):
            return {"A": array([[x / d for x in row] for row, d in zip(plain, degrees, strict=True)])}
        degree = array([[degrees[i] * (i == j) for j in range(nodes)] for i in range(nodes)])
        return {"A": array(plain), "D": degree} | ({"L": degree - array(plain)} if "L" in self.free else {})

    def _is_admissible_graph(self, operators: Mapping[str, Array]) -> bool:
        """Whether the hypotheses that involve only operators hold."""
        values = dict(operators)
        self._define(values)
        return self._equations_hold(values)

    def _example(self, kind: Kind, name: str, nodes: int, attempt: int, draw: int, index: int) -> Array:
        generator = random.Random(f"{name} {nodes} {attempt} {draw}")
        match kind:
            case Kind.FIELD:
                return self._state(nodes, attempt, index, generator)
            case Kind.NODE if name in MASKS:
                return array([[Fraction((i + attempt) % 2 == 0)] for i in range(nodes)])
            case Kind.SCALAR:
                return array(self._number(name, attempt, draw, index, generator))
            case Kind.CHANNEL:
                return array([self._number(name, attempt, draw, index + c, generator) for c in range(self.channels)])
            case Kind.NODE:
                return array([[self._number(name, attempt, draw, index + i, generator)] for i in range(nodes)])
            case Kind.MATRIX:
                size = range(self.channels)
                rows = [[Fraction(1 + i + 2 * j + index * (i + 1) * (j + 2) % 5) for j in size] for i in size]
                known = self.rules.assumptions
                is_symmetric = known is not None and name in known.symmetric
                return array([[rows[min(i, j)][max(i, j)] for j in size] for i in size] if is_symmetric else rows)
        return example_operator(self.facts.get(name, ()), nodes, attempt, generator)

    def _number(self, name: str, attempt: int, draw: int, index: int, generator: random.Random) -> Fraction:
        """A value with the assumed sign: one, then primes, then random values over several orders of magnitude."""
        if draw:
            size = Fraction(generator.randint(1, 40), generator.choice((1, 2, 4, 10)))
        elif attempt == 0:
            size = Fraction(1 + index * (self.letters[name] is not Kind.SCALAR))
        else:
            size = Fraction(_PRIMES[(index + attempt) % len(_PRIMES)], 1 + attempt % 3)
        sign = self._sign(name)
        negative = sign in ("negative", "nonpositive") or (sign == "real" and bool((attempt + draw) % 2))
        return -size if negative else size

    def _sign(self, name: str) -> str:
        return "real" if self.rules.assumptions is None else self.rules.assumptions.sign(name)

    def _state(self, nodes: int, attempt: int, index: int, generator: random.Random) -> Array:
        """A unit vector, a constant negative state, a positive state, or a state with both signs."""

        def entry(i: int, c: int) -> Fraction:
            if attempt < nodes and index == 0:
                return Fraction(int(i == attempt) if self.channels == 1 else int((i + c) % nodes == attempt))
            if attempt == nodes and index == 0:
                return Fraction(-1)
            size = Fraction((i + 2 + index) * (c + 1) + attempt, 1 + (attempt + index) % 2)
            if attempt == nodes + ATTEMPTS - 1:
                size = Fraction(generator.randint(1, 9), 10)
            return size * (-1 if attempt % 2 and (i + c) % 2 else 1)

        return array([[entry(i, c) for c in range(self.channels)] for i in range(nodes)])

    def _constant(self, kind: Kind, nodes: int, value: sp.Rational) -> Array:
        match kind:
            case Kind.CHANNEL:
                return array([value] * self.channels)
            case Kind.NODE:
                return array([[value]] * nodes)
            case Kind.FIELD:
                return array([[value] * self.channels] * nodes)
        return array(value)

    # ------------------------------------------------------------------ admissible?
    def _complete(self, values: dict[str, Array]) -> bool:
        """Whether all assumptions hold, after the values of defined letters are added."""
        try:
            self._define(values)
            if not all(has_facts(values[name], words) for name, words in self.facts.items()):
                return False
            return self._signs_hold(values) and self._relations_hold(values) and self._equations_hold(values)
        except Undefined:
            return False

    def _define(self, values: dict[str, Array]) -> None:
        """Add the values of defined letters, in the order of their dependencies."""
        pending = {n: body for n, body in self.rules.definitions.items() if n in self.letters}
        while ready := [n for n, body in pending.items() if {x.name for x in names_in(body)} <= {"I", *values}]:
            for name in ready:
                values[name] = self._defined(self.letters[name], pending.pop(name), values)

    def _defined(self, kind: Kind, body: sp.Basic, values: dict[str, Array]) -> Array:
        known = values if "H" in values else values | {"H": array([[0] * self.channels] * len(values["A"]))}
        if body == 0 and kind is Kind.MATRIX:
            return array([[0] * self.channels] * self.channels)
        value = evaluate(body, known)
        if kind is Kind.FIELD:
            return value + known["H"] * 0
        return value + array([[0]] * len(values["A"])) if kind is Kind.NODE else value

    def _signs_hold(self, values: Mapping[str, Array]) -> bool:
        """Whether all coefficients have their signs; a definition overrides only default signs."""
        explicit = set() if self.rules.assumptions is None else self.rules.assumptions.stated
        for name, kind in self.letters.items():
            if kind in (Kind.FIELD, Kind.OPERATOR, Kind.MATRIX):
                continue
            if name in MASKS and not signs(values[name] * (1 - values[name])) <= {0}:
                return False
            bound = name in explicit or name not in self.rules.chosen
            if name not in MASKS and bound and not signs(values[name]) <= _SIGNS[self._sign(name)]:
                return False
        return True

    def _relations_hold(self, values: Mapping[str, Array]) -> bool:
        relations = () if self.rules.assumptions is None else self.rules.assumptions.relations
        for relation in relations:
            if any(n.name not in values for n in names_in(relation.lower) | names_in(relation.upper)):
                continue
            gap = evaluate(relation.upper, values) - evaluate(relation.lower, values)
            if not signs(gap) <= ({1} if relation.strict else {0, 1}):
                return False
        return True

    def _equations_hold(self, values: Mapping[str, Array]) -> bool:
        for equation in self.rules.equations:
            letters = {n.name for n in names_in(equation.left) | names_in(equation.right)} - {"I"}
            defines = (
                isinstance(equation.left, Name) and self.rules.definitions.get(equation.left.name) == equation.right
            )
            if defines or not letters <= set(values):
                continue
            if not signs(evaluate(equation.left, values) - evaluate(equation.right, values)) <= {0}:
                return False
        return True

    def check(
        self,
        nodes: int,
        edges: tuple[tuple[int, int], ...],
        values: Mapping[str, Array],
        apart: Callable[[Array, Array], bool],
    ) -> Witness | None:
        """The witness, if both sides exist and are proved to differ; else None."""
        try:
            sides = evaluate(self.left, values), evaluate(self.right, values)
        except Undefined:
            return None
        if not apart(*sides):
            return None
        shown = tuple((n, _show(values[n])) for n in sorted(self.letters) if n in values)
        return Witness(nodes, edges, shown, *map(_show, sides))


def _show(value: Any) -> str:
    """Nested lists of fractions as text, enclosed numbers as decimals."""
    entries = np.asarray(value, dtype=object)
    if entries.ndim:
        return f"[{', '.join(map(_show, entries))}]"
    entry = entries.item()
    return repr(float(entry.mid())) if isinstance(entry, arb) else str(entry)
