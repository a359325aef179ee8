"""Exact matrices of operators beside A that are what an equation says of them, for counter-examples."""

from __future__ import annotations

import random
from collections.abc import Collection
from fractions import Fraction
from typing import Any

from rdgraph.identities.exact_values import Array, array, signs

Rows = list[list[Fraction]]

#: Largest modulus of the entries that are drawn.
LARGEST = 4


def example_operator(facts: Collection[str], nodes: int, attempt: int, generator: random.Random) -> Array:
    """A matrix with the facts: a diagonal one first where nothing else is said, then drawn ones.

    Of what cannot be together, such as stochastic and antisymmetric, the matrix has a part; `has_facts` tells.

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
    """Whether an exact matrix is what is said of it."""
    checks = {
        "symmetric": lambda: signs(matrix - matrix.T) <= {0},
        "antisymmetric": lambda: signs(matrix + matrix.T) <= {0},
        "stochastic": lambda: signs(matrix) <= {0, 1} and signs(matrix.sum(axis=1) - 1) <= {0},
    }
    return all(checks[fact]() for fact in facts if fact in checks)
