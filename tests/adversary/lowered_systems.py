"""Random equations over the whole language, and their values on dense arrays of 80 bits, without the tool.

Texts are read by Python itself: states (n, d), node coefficients (n, 1), channel coefficients (d,), operators as
functions, mixing matrices (d, d). A rate u' is called u_rate here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tests.adversary.expressions import FUNCTIONS, Operator

Array = np.ndarray
Random = np.random.Generator
LONG = np.longdouble

KINDS = {
    "alpha": "scalar", "beta": "scalar", "gamma": "scalar", "kn": "scalar", "rho": "node", "M": "node",
    "omega": "channel", "W": "matrix", "Q": "matrix",
}  # fmt: skip
DECLARED = {"kn": "scalar", "rho": "node", "omega": "channel", "Q": "matrix", "B": "operator"}
#: Functions with a kink, or an edge, at an argument of 0.
KINKED = ("relu", "abs", "sqrt")
SMOOTH = ("tanh", "sigmoid", "softplus", "sin", "cos", "exp")


@dataclass(frozen=True)
class LoweredSystem:
    """Right-hand sides by field; orders say which have a second derivative on the left."""

    equations: tuple[tuple[str, str], ...]
    orders: tuple[int, ...]

    @property
    def text(self) -> str:
        lines = [
            f"{name}{chr(39) * order} = {_as_written(right)}"
            for (name, right), order in zip(self.equations, self.orders, strict=True)
        ]
        notes = [f"{name} {DECLARED[name]}" for name in self.letters if name in DECLARED]
        return "; ".join(lines) + (f" where {', '.join(notes)}" if notes else "")

    @property
    def states(self) -> tuple[str, ...]:
        """The blocks of a packed state: a field of second order is followed by its rate."""
        pairs = zip(self.equations, self.orders, strict=True)
        return tuple(x for (name, _), order in pairs for x in (name, f"{name}_rate")[:order])

    @cached_property
    def letters(self) -> tuple[str, ...]:
        used = {name for _, right in self.equations for name in compile(right, "equation", "eval").co_names}
        return tuple(sorted(used & {*KINDS, "B", "t"}))

    @property
    def uses_start(self) -> bool:
        return any(f"{name}0" in right for name in self.states for _, right in self.equations)


def _as_written(right: str) -> str:
    return right.replace("_rate0", "0'").replace("_rate", "'")


@dataclass
class Evaluation:
    """The values of one member's letters; remembers what functions with kinks were given."""

    system: LoweredSystem
    has_degrees: bool
    kinks: list[Array] = field(default_factory=list)
    largest: float = 0.0

    def speed(self, inputs: Mapping[str, Array]) -> Array:
        """dH/dt, (n, width), from matrices "A" and "B", "state" and "start" (n, width), "t" and the coefficients."""
        n, names = len(inputs["A"]), self.system.states
        width = inputs["state"].shape[1] // len(names)
        A, B = inputs["A"], inputs.get("B")
        D = np.diag(np.abs(A).sum(1)) if self.has_degrees else np.eye(n, dtype=LONG)
        known: dict[str, Any] = {name: self._function(name) for name in FUNCTIONS}
        known |= {name: x for name, x in inputs.items() if name in KINDS or name == "t"}
        known |= {name: inputs[name][:, None] for name in ("rho", "M") if name in inputs}
        matrices = {"A": A, "L": D - A, "I": np.eye(n, dtype=LONG)} | ({} if B is None else {"B": B})
        known |= {name: Operator(_applied(matrix, n)) for name, matrix in matrices.items()}
        for k, name in enumerate(names):
            known[name] = inputs["state"][:, k * width : (k + 1) * width]
            known[f"{name}0"] = inputs["start"][:, k * width : (k + 1) * width]
        speeds = {name: self._value(right, known, (n, width)) for name, right in self.system.equations}
        blocks = [
            x
            for (name, _), order in zip(self.system.equations, self.system.orders, strict=True)
            for x in (([known[f"{name}_rate"]] if order == 2 else []) + [speeds[name]])
        ]
        return np.concatenate(blocks, axis=1)

    def _value(self, right: str, known: Mapping[str, Any], shape: tuple[int, int]) -> Array:
        with np.errstate(all="ignore"):
            value = eval(compile(right, "equation", "eval"), {"__builtins__": {}}, dict(known))
        return np.broadcast_to(np.asarray(value, dtype=LONG), shape)

    def _function(self, name: str) -> Callable[[Any], Array]:
        def value(x: Any) -> Array:
            argument = np.asarray(x, dtype=LONG)
            self.largest = max(self.largest, float(np.abs(argument).max()))
            if name in KINKED:
                self.kinks.append(argument.ravel())
            return np.asarray(FUNCTIONS[name][0](argument), dtype=LONG)

        return value


def _applied(matrix: Array, nodes: int) -> Callable[[Any], Array]:
    def act(x: Any) -> Array:
        x = np.asarray(x, dtype=LONG)
        return matrix @ (np.broadcast_to(x, (nodes, max(1, x.size))) if x.ndim < 2 else x)

    return act


# ---------------------------------------------------------------------- drawing
class Writer:
    """Draws right-hand sides: fields and operators nested in each other."""

    def __init__(self, rng: Random, states: tuple[str, ...]) -> None:
        self.rng, self.states = rng, states

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, *options: str) -> str:
        return str(options[int(self.rng.integers(len(options)))])

    def scalar(self) -> str:
        return self.pick("alpha", "beta", "gamma", "kn", "2", "0.5", "(1 - alpha)", "alpha*beta", "exp(-t)", "beta/2")

    def operator(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.4):
            return self.pick("A", "L", "A", "L", "I", "B")
        one, two = self.operator(depth - 1), self.operator(depth - 1)
        return self.pick(
            f"({one} + {two})", f"({one} - {two})", f"{one}@{two}", f"{_closed(one)}**{self.rng.integers(2, 4)}",
            f"({self.scalar()}*{one})", f"(({one} + {two}) - {two})", f"({one} - {one})", f"(omega*{one})",
            f"(rho*{one})",
        )  # fmt: skip

    def letter(self) -> str:
        name = self.pick(*self.states)
        return f"{name}0" if self.chance(0.12) else name

    def field(self, depth: int) -> str:
        """An elementwise expression with all channels in it, or none."""
        if depth <= 0 or self.chance(0.1):
            return self.letter()
        one, two = self.field(depth - 1), self.field(depth - 1 - int(self.rng.integers(2)))
        makers = (
            lambda: f"{self.operator(2)}@{_closed(one)}", lambda: f"{self.operator(1)}@{_closed(one)}",
            lambda: f"({one} + {two})", lambda: f"({one} - {two})", lambda: f"{_closed(one)}*{_closed(two)}",
            lambda: f"{self.pick(*SMOOTH[:5])}({one})", lambda: f"{self.pick(*SMOOTH, 'relu', 'abs')}({one})",
            lambda: f"{self.scalar()}*{_closed(one)}", lambda: f"{self.pick('rho', 'M', '(1 - M)', 'omega')}*({one})",
            lambda: f"({one})@{self.pick('W', 'W', 'Q', '(W + Q)')}",
            lambda: f"{_closed(one)}/(1 + {_closed(two)}**2)", lambda: f"{_closed(one)}**{self.rng.integers(2, 4)}",
            lambda: f"(({one} - {one}) + {two})", lambda: f"sqrt(1 + {_closed(one)}**2)", lambda: f"({one} + 1)",
            lambda: f"({self.operator(1)}@{self.pick('rho', 'M')})*{_closed(one)}",
        )  # fmt: skip
        return makers[int(self.rng.integers(len(makers)))]()


def _closed(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def draw(rng: Random) -> LoweredSystem:
    """One to three fields of first or second order; parts of one equation come again in others."""
    names = ("H",) if rng.random() < 0.35 else ("u", "v", "w")[: int(rng.integers(2, 4))]
    orders = tuple(2 if rng.random() < 0.2 else 1 for _ in names)
    states = LoweredSystem(tuple((name, "0") for name in names), orders).states
    writer, shared = Writer(rng, states), [Writer(rng, states).field(2)]
    equations = []
    for name in names:
        terms = []
        for _ in range(int(rng.integers(1, 4))):
            body = writer.field(int(rng.integers(1, 5)))
            if rng.random() < 0.35:
                body = f"{_closed(shared[int(rng.integers(len(shared)))])}{rng.choice([' + ', '*'])}{_closed(body)}"
            shared.append(body)
            terms.append(f"{rng.choice(['', '-'])}{writer.scalar()}*{_closed(body)}")
        equations.append((name, " + ".join(terms)))
    return LoweredSystem(tuple(equations), orders)
