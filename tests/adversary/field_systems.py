"""Random systems of two or three fields: their text, and the same equations in numpy, without the tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tests.adversary import expressions, splines
from tests.adversary.graphs import Graph

Array = np.ndarray
Random = np.random.Generator

NUMBERS = ("0.5", "1", "2", "0.3", "1.5", "3")
LETTERS = ("a", "b", "c")
#: States that are drawn of one rectangle.
STATES = 24
#: Bodies of one field, of two, and with time; {u} is the equation's own field, {v} any other.
OWN = ("{u}", "{u}**2", "{u}**3", "tanh({u})", "{u}/(1 + {u}**2)", "sin({u})", "1", "{u}*(1 - {u})", "sigmoid(A@{u})")
CROSSED = (
    "{v}", "{u}*{v}", "{u}**2*{v}", "{u}*{v}**2", "{u}*(A@{v})", "A@({u}*{v})", "A@{v}", "A@A@{v}", "{v}**2",
    "{u}*tanh({v})", "{v}*(A@{u})", "L@{v}", "{u}*(L@{v})", "{u}*{v}/(1 + {v}**2)", "sin(A@{v})",
)  # fmt: skip
TIMED = ("exp(-t)*{u}", "sin(t)*{v}", "cos(t)", "t*{u}")
#: With what differs between nodes: the mask M, which is 0 or 1, the node coefficient k, and starts.
MASKED = (
    "M*{u}", "A@(M*{v})", "(1 - M)*{u}*{v}", "(A@M)*{u}", "(A@M)*(A@(1 - M))", "{u}*(A@(M*{v}))", "M", "(A@M)**2",
    "{v}*tanh(M*{u})",
)  # fmt: skip
NODEWISE = (
    "k*{u}", "A@(k*{u})", "k*{u}*(1 - {u})", "{u}*(k - {u})", "A@({v}/(1 + k**2))", "k*{u}*(A@(k*{v}))", "k", "A@k",
    "(A@k)**2", "tanh(k*{v})",
)  # fmt: skip
STARTED = ("{u}0", "{v}0", "A@{v}0", "{u}*{v}0", "{u}*(A@{u}0)", "tanh({u}0)")
NODE_LETTER = "k"
DIFFUSION = "- {D}*L@{u}"
#: The share of systems with a learned function.
LEARNED = 0.15

NUMPY: dict[str, Any] = {
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "exp": np.exp, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@dataclass(frozen=True)
class DrawnFields:
    """Right-hand sides by field, as the language and Python read them alike, and the signs of letters.

    k is a coefficient of nodes, M a mask, and u0 the start of u.
    """

    equations: tuple[tuple[str, str], ...]
    signs: tuple[tuple[str, str], ...] = ()
    learned: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        lines = "; ".join(f"{name}' = {right}" for name, right in self.equations)
        notes = [f"{NODE_LETTER} node"] if NODE_LETTER in self.letters else []
        notes += [*(f"{name} {sign}" for name, sign in self.signs), *self.learned]
        return lines + (f" where {', '.join(notes)}" if notes else "")

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.equations)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        names = {name for _, right in self.equations for name in compile(right, "equation", "eval").co_names}
        return tuple(sorted(names - {*NUMPY, "A", "L", "t", *self.fields, *(f"{name}0" for name in self.fields)}))

    def values(self, rng: Random, nodes: int) -> dict[str, Any]:
        """Admissible numbers for the letters; those of nodes are (nodes,)."""
        real = {name for name, sign in self.signs if sign == "real"}
        found: dict[str, Any] = {}
        for name in self.letters:
            if name == "M":
                found[name] = rng.integers(0, 2, nodes).astype(float)
                continue
            count = (nodes,) if name == NODE_LETTER else ()
            sizes = np.exp(rng.uniform(-1.5, 2.5 if count else 1.2, count))
            found[name] = sizes * (rng.choice([-1.0, 1.0], count) if name in real else 1.0)
        return found


@dataclass(frozen=True)
class FieldRun:
    """A drawn system on a graph with numbers for its letters; states are (fields, nodes), or (fields, nodes, count)."""

    drawn: DrawnFields
    graph: Graph
    normalisation: str
    letters: Mapping[str, Any]

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """A and L."""
        A = self.graph.operator(self.normalisation)
        D = np.diag(self.graph.weights.sum(1)) if self.normalisation == "none" else np.eye(len(A))
        return A, D - A

    @cached_property
    def _code(self) -> list[Any]:
        return [compile(right, "equation", "eval") for _, right in self.drawn.equations]

    def speed(self, state: Array, t: float = 0.0, start: Array | None = None) -> Array:
        """f at states of a run that began at `start`, by default there."""
        A, L = self.matrices
        wide = state.ndim > 2
        letters = {n: x[:, None] if np.ndim(x) and wide else x for n, x in self.letters.items()}
        names = {**NUMPY, **letters, "A": A, "L": L, "t": t}
        names |= dict(zip(self.drawn.fields, state, strict=True))
        begun = state if start is None else start[..., None] if wide and start.ndim < state.ndim else start
        names |= {f"{name}0": x for name, x in zip(self.drawn.fields, begun, strict=True)}
        with np.errstate(all="ignore"):
            speeds = [np.asarray(eval(code, {"__builtins__": {}}, names)) for code in self._code]
            speeds = [x[:, None] if wide and x.ndim == 1 else x for x in speeds]
        return np.stack([np.broadcast_to(speed, state.shape[1:]) for speed in speeds])

    def jacobian(self, state: Array, t: float = 0.0, start: Array | None = None) -> Array:
        """Derivatives by complex steps, (fields*nodes, fields*nodes), the start held."""
        moved = state[..., None] + 1e-30j * np.eye(state.size).reshape(*state.shape, state.size)
        return self.speed(moved, t, state if start is None else start).imag.reshape(state.size, state.size) / 1e-30

    @property
    def row_sum(self) -> float:
        return float(self.matrices[0].sum(1).max())

    def told(self) -> str:
        letters = {name: np.asarray(x).tolist() for name, x in self.letters.items()}
        return f"{self.normalisation} normalisation of {self.graph}, {letters}"


def states(rng: Random, lower: Array, upper: Array, nodes: int, count: int = STATES) -> Iterator[Array]:
    """Random entries, corners and states equal in all nodes inside a rectangle; infinite ends are drawn large."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 5.0, -5.0))[:, None]
    high = np.where(np.isfinite(upper), upper, low[:, 0] + 5.0)[:, None]
    for k in range(count):
        shape = (len(lower), nodes)
        scale = 1.0 if k % 2 else float(np.exp(rng.uniform(-3, 2)))
        top = np.where(np.isfinite(upper)[:, None], high, low + scale * (high - low))
        bottom = np.where(np.isfinite(lower)[:, None], low, high - scale * (high - low))
        uniform = np.repeat(rng.random((len(lower), 1)), nodes, 1)
        part = [rng.random(shape), rng.integers(0, 2, shape).astype(float), uniform][k % 3]
        yield bottom + part * (top - bottom)


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
            pool = OWN if rng.random() < 0.5 else CROSSED if rng.random() < 0.75 else _further(rng)
            sign = "-" if rng.random() < 0.55 else "+"
            right[name].append(f"{sign} {_factor(rng)}*{_body(rng, pool, name, names)}")
        if rng.random() < 0.4:
            right[name].append(f"- {_factor(rng)}*{name}")
        if rng.random() < 0.55:
            right[name].append(DIFFUSION.format(D=_factor(rng), u=name))
        if not right[name]:
            right[name].append(f"- {_factor(rng)}*{name}")
    learned = tuple(_learned(rng, right, names) for _ in range(int(rng.random() < LEARNED)))
    equations = tuple((name, " ".join(terms).removeprefix("+ ")) for name, terms in right.items())
    drawn = DrawnFields(equations)
    signs = tuple((letter, "real") for letter in drawn.letters if letter != "M" and rng.random() < 0.2)
    return DrawnFields(equations, signs, learned)


def _learned(rng: Random, right: dict[str, list[str]], names: tuple[str, ...]) -> str:
    """Add a learned function to an equation, and say what is declared of it."""
    declared = splines.draw(rng)
    value, slope = expressions.FUNCTIONS[declared.name]

    def complex_value(x: Array) -> Array:  # with a complex step in it, to first order
        return value(x.real) + 1j * x.imag * slope(x.real) if np.iscomplexobj(x) else value(x)

    NUMPY[declared.name] = complex_value
    name = str(rng.choice(names))
    body = _body(
        rng, ("{f}({u})", "{f}({v})", "{f}(A@{v})", "{u}*{f}({v})", "A@{f}({u})", "{f}({u} - {v})"), name, names
    )
    right[name].append(f"{rng.choice(['-', '+'])} {_factor(rng)}*{body.replace('{f}', declared.name)}")
    return declared.text


def _further(rng: Random) -> tuple[str, ...]:
    return (TIMED, MASKED, NODEWISE, STARTED)[rng.integers(4)]


def _factor(rng: Random) -> str:
    return str(rng.choice(LETTERS)) if rng.random() < 0.35 else str(rng.choice(NUMBERS))


def _body(rng: Random, pool: tuple[str, ...], name: str, names: tuple[str, ...]) -> str:
    other = str(rng.choice([n for n in names if n != name]))
    return str(rng.choice(pool)).format(u=name, v=other, f="{f}")
