"""Drawn systems: the equation as text with its `where`, and its right-hand side as a numpy function of our own."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import mpmath
import numpy as np

from tests.adversary import assumptions, expressions, graphs
from tests.adversary.assumptions import Assumed, Unsatisfied, Values
from tests.adversary.expressions import Operator, seeded

Array = np.ndarray
Random = np.random.Generator

LETTERS = ("alpha", "beta", "gamma", "delta", "epsilon", "kappa", "mu", "nu", "a", "b", "c")
#: Digits of what is computed again where doubles may have lost all of theirs.
DIGITS = 120
STRUCTURAL = ("H", "H0", "A", "L", "I")


@dataclass(frozen=True)
class Drawn:
    """A drawn system: the right-hand side, kinds of the coefficients and statements about them."""

    body: str
    kinds: tuple[tuple[str, str], ...]
    statements: tuple[str, ...] = ()
    recipe: str = ""
    tags: frozenset[str] = field(default_factory=frozenset)
    learned: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line, as a user would write it."""
        notes = [f"{n} {k}" for n, k in self.kinds if n not in ("M", "W") and (k != "scalar" or n not in LETTERS)]
        notes += [*self.statements, *(text for text in self.learned if f"{text.split()[0]}(" in self.body)]
        return self.body + (f" where {', '.join(notes)}" if notes else "")

    @property
    def assumed(self) -> Assumed:
        return assumptions.read(self.statements)

    @property
    def letters(self) -> dict[str, str]:
        return dict(self.kinds)

    @property
    def used(self) -> set[str]:
        return expressions.names(self.body)

    def has(self, *kinds: str) -> bool:
        return any(k in kinds for _, k in self.kinds)

    @property
    def has_source(self) -> bool:
        return "H0" in self.used

    def values(self, rng: Random, nodes: int = 1, channels: int = 1) -> Values:
        """Numbers for the coefficients under the assumptions, such that no coefficient that is divided by is zero."""
        for _ in range(100):
            found = assumptions.sample(self.assumed, self.letters, rng, nodes, channels)
            if all(np.all(np.asarray(expressions.evaluate(d, found)) != 0) for d in self.divisors):
                return found
        raise Unsatisfied

    @cached_property
    def divisors(self) -> tuple[str, ...]:
        """What the equation divides by, where that is made of coefficients alone."""
        divided = (n.right for n in ast.walk(expressions.read(self.body))
                   if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div))  # fmt: skip
        texts = (ast.unparse(right) for right in divided)
        return tuple(t for t in texts if expressions.names(t) and expressions.names(t) <= set(self.letters))


@dataclass(frozen=True)
class Field:
    """f on one graph with numbers for every coefficient."""

    drawn: Drawn
    graph: graphs.Graph
    normalisation: str
    values: Mapping[str, Any]
    channels: int = 1

    @cached_property
    def matrix(self) -> Array:
        """The operator A, shape (n, n)."""
        return self.graph.operator(self.normalisation)

    @cached_property
    def _laplacian(self) -> Array:
        A = self.matrix
        return np.diag(A.sum(1)) - A if self.normalisation == "none" else np.eye(len(A)) - A

    @cached_property
    def letters(self) -> dict[str, Any]:
        """Every letter but H and H0."""
        A, L = self.matrix, self._laplacian
        operators = {"A": Operator(lambda x: A @ x), "L": Operator(lambda x: L @ x), "I": Operator(lambda x: x)}
        return {**self.values, **operators}

    def __call__(self, state: Any, initial: Any = None, values: Mapping[str, Any] | None = None) -> Any:
        """f(H, H0), shape (n, d)."""
        letters = {**self.letters, **(values or {}), "H": state, "H0": state if initial is None else initial}
        with np.errstate(all="ignore"):
            found = expressions.evaluate(self.drawn.body, letters)
        shape = (self.graph.nodes, self.channels)
        if isinstance(found, expressions.Dual):
            size = found.tangent.shape[-1]
            return expressions.Dual(np.broadcast_to(found.value, shape), np.broadcast_to(found.tangent, (*shape, size)))
        return found if np.shape(found) == shape else np.broadcast_to(found, shape)

    def precisely(self, state: Array, initial: Array | None = None) -> Array:
        """f(H, H0) with many digits, rounded at the end: what doubles lose in differences of large numbers is kept."""

        def many(x: Any) -> Any:
            return np.frompyfunc(mpmath.mpf, 1, 1)(np.asarray(x, dtype=float))

        A, L = (many(matrix) for matrix in (self.matrix, self._laplacian))
        operators = {"A": Operator(lambda x: A @ x), "L": Operator(lambda x: L @ x), "I": Operator(lambda x: x)}
        start = state if initial is None else initial
        with mpmath.workdps(DIGITS):
            letters = {n: many(v) for n, v in self.values.items()} | {"H": many(state), "H0": many(start)}
            found = np.asarray(expressions.evaluate(self.drawn.body, {**letters, **operators}))
            return np.broadcast_to(found, (self.graph.nodes, self.channels)).astype(float)

    def jacobians(self, state: Array) -> list[Array]:
        """df/dH at a state, H0 = 0; at a kink, where it is none, what it is beside the state, one for each side."""
        if not re.search("abs|relu|sqrt", self.drawn.body):
            return [self.jacobian(state)]
        size = 1e-7 * (1 + float(np.abs(state).max()))
        rng = np.random.default_rng(0)
        ways = [np.ones(state.shape), -np.ones(state.shape), *rng.choice([-1.0, 1.0], (4, *state.shape))]
        near = [self.jacobian(state + size * way * rng.uniform(0.5, 1.0, state.shape)) for way in ways]
        here = self.jacobian(state)
        room = 1e-3 * (1 + np.abs(near).max())
        if any(np.abs(slopes - near[0]).max() > room for slopes in near[1:]):
            return near
        return [near[0] if np.abs(here - near[0]).max() > room else here]

    def jacobian(self, state: Array, initial: Array | None = None) -> Array:
        """df/dH of shape (n d, n d), H0 held."""
        start = seeded(state, 0, state.size)
        found = self(start, np.zeros_like(state) if initial is None else initial)
        if not isinstance(found, expressions.Dual):
            return np.zeros((state.size, state.size))
        return found.tangent.reshape(state.size, state.size)

    def generator(self) -> Array:
        """df/dH of a linear system, shape (n d, n d); taken where no root or kink is."""
        return self.jacobian(np.full((self.graph.nodes, self.channels), 0.7))

    def column(self, state: Array) -> Array:
        """The first column of df/dH, H0 = 0, shape (n d,)."""
        tangent = np.zeros((*state.shape, 1))
        tangent.flat[0] = 1.0
        found = self(expressions.Dual(state, tangent), np.zeros_like(state))
        return found.tangent.ravel() if isinstance(found, expressions.Dual) else np.zeros(state.size)

    def source_generator(self) -> Array:
        """df/dH0 of a linear system, shape (n d, n d)."""
        state = np.full((self.graph.nodes, self.channels), 0.7)
        found = self(state, seeded(state, 0, state.size))
        if not isinstance(found, expressions.Dual):
            return np.zeros((state.size, state.size))
        return found.tangent.reshape(state.size, state.size)

    def told(self) -> str:
        shown = {n: np.asarray(v).round(12).tolist() for n, v in self.values.items()}
        return f"{self.normalisation} operator of {self.graph}; coefficients {shown}"
