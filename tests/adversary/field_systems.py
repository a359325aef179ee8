"""Random systems of two or three fields: their text, and the same equations in numpy, without the tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tests.adversary.graphs import Graph

Array = np.ndarray
Random = np.random.Generator

NUMBERS = ("0.5", "1", "2", "0.3", "1.5", "3")
LETTERS = ("a", "b", "c")
#: Bodies of one field, of two, and with time; {u} is the equation's own field, {v} any other.
OWN = ("{u}", "{u}**2", "{u}**3", "tanh({u})", "{u}/(1 + {u}**2)", "sin({u})", "1", "{u}*(1 - {u})", "sigmoid(A@{u})")
CROSSED = (
    "{v}", "{u}*{v}", "{u}**2*{v}", "{u}*{v}**2", "{u}*(A@{v})", "A@({u}*{v})", "A@{v}", "A@A@{v}", "{v}**2",
    "{u}*tanh({v})", "{v}*(A@{u})", "L@{v}", "{u}*(L@{v})", "{u}*{v}/(1 + {v}**2)", "sin(A@{v})",
)  # fmt: skip
TIMED = ("exp(-t)*{u}", "sin(t)*{v}", "cos(t)", "t*{u}")
DIFFUSION = "- {D}*L@{u}"

NUMPY: dict[str, Any] = {
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "exp": np.exp, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@dataclass(frozen=True)
class DrawnFields:
    """Right-hand sides by field, as the language and Python read them alike, and the signs of letters."""

    equations: tuple[tuple[str, str], ...]
    signs: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        lines = "; ".join(f"{name}' = {right}" for name, right in self.equations)
        return lines + (f" where {', '.join(f'{n} {s}' for n, s in self.signs)}" if self.signs else "")

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.equations)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        names = {name for _, right in self.equations for name in compile(right, "equation", "eval").co_names}
        return tuple(sorted(names - {*NUMPY, "A", "L", "t", *self.fields}))

    def values(self, rng: Random) -> dict[str, float]:
        """Admissible numbers for the letters."""
        real = {name for name, sign in self.signs if sign == "real"}
        sizes = {name: float(np.exp(rng.uniform(-1.5, 1.2))) for name in self.letters}
        return {n: x * (float(rng.choice([-1, 1])) if n in real else 1.0) for n, x in sizes.items()}


@dataclass(frozen=True)
class FieldRun:
    """A drawn system on a graph with numbers for its letters; states are (fields, nodes), or (fields, nodes, count)."""

    drawn: DrawnFields
    graph: Graph
    normalisation: str
    letters: Mapping[str, float]

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """A and L."""
        A = self.graph.operator(self.normalisation)
        D = np.diag(self.graph.weights.sum(1)) if self.normalisation == "none" else np.eye(len(A))
        return A, D - A

    @cached_property
    def _code(self) -> list[Any]:
        return [compile(right, "equation", "eval") for _, right in self.drawn.equations]

    def speed(self, state: Array, t: float = 0.0) -> Array:
        A, L = self.matrices
        names = {**NUMPY, **self.letters, "A": A, "L": L, "t": t}
        names |= dict(zip(self.drawn.fields, state, strict=True))
        with np.errstate(all="ignore"):
            speeds = [eval(code, {"__builtins__": {}}, names) for code in self._code]
        return np.stack([np.broadcast_to(speed, state.shape[1:]) for speed in speeds])

    def jacobian(self, state: Array, t: float = 0.0) -> Array:
        """Derivatives by complex steps, (fields*nodes, fields*nodes)."""
        moved = state[..., None] + 1e-30j * np.eye(state.size).reshape(*state.shape, state.size)
        return self.speed(moved, t).imag.reshape(state.size, state.size) / 1e-30

    @property
    def row_sum(self) -> float:
        return float(self.matrices[0].sum(1).max())

    def told(self) -> str:
        return f"{self.normalisation} normalisation of {self.graph}, {dict(self.letters)}"


def draw(rng: Random) -> DrawnFields:
    """Two or three fields; exchanges between them, growth, damping and diffusion more often than anything else."""
    names = ("u", "v", "w")[: int(rng.integers(2, 4))]
    right: dict[str, list[str]] = {name: [] for name in names}
    for _ in range(int(rng.integers(0, 3))):
        one, two = (str(x) for x in rng.choice(names, 2, replace=False))
        body, factor = _body(rng, CROSSED, one, names), _factor(rng)
        right[one].append(f"- {factor}*{body}")
        right[two].append(f"+ {factor}*{body}")
    for name in names:
        for _ in range(int(rng.integers(0, 3))):
            pool = OWN if rng.random() < 0.5 else CROSSED if rng.random() < 0.9 else TIMED
            sign = "-" if rng.random() < 0.55 else "+"
            right[name].append(f"{sign} {_factor(rng)}*{_body(rng, pool, name, names)}")
        if rng.random() < 0.4:
            right[name].append(f"- {_factor(rng)}*{name}")
        if rng.random() < 0.55:
            right[name].append(DIFFUSION.format(D=_factor(rng), u=name))
        if not right[name]:
            right[name].append(f"- {_factor(rng)}*{name}")
    equations = tuple((name, " ".join(terms).removeprefix("+ ")) for name, terms in right.items())
    drawn = DrawnFields(equations)
    signs = tuple((letter, "real") for letter in drawn.letters if rng.random() < 0.2)
    return DrawnFields(equations, signs)


def _factor(rng: Random) -> str:
    return str(rng.choice(LETTERS)) if rng.random() < 0.35 else str(rng.choice(NUMBERS))


def _body(rng: Random, pool: tuple[str, ...], name: str, names: tuple[str, ...]) -> str:
    other = str(rng.choice([n for n in names if n != name]))
    return str(rng.choice(pool)).format(u=name, v=other)
