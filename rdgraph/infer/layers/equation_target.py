"""`Target`: the map that a layer is compared with: a right-hand side, steps of Euler's method, or the flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.infer.formulas.slopes_and_inverses import Array
from rdgraph.language.printer import to_text
from rdgraph.language.tree import (
    Apply,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    field,
    kind_of,
    names_in,
)
from rdgraph.systems.system import System
from rdgraph.theory.equality.dense_oracle import compiled

# ---------------------------------------------------------------------- equation target
#: What a layer may be compared with, in words.
COMPARED = {
    "field": "the right-hand side",
    "map": "the right-hand side, applied count times",
    "step": "count steps of Euler's method",
    "flow": "the flow to time T",
}
#: Relative and absolute tolerance of the reference flow.
FLOW_TOLERANCE = 1e-12
#: The most evaluations of the right-hand side in one flow, and the largest state; beyond them it fails.
MOST_SPEEDS, FARTHEST_STATE = 3000, 1e8
#: Typical number of evaluations of the right-hand side in a flow.
USUAL_SPEEDS = 150
#: Probes do not distinguish degrees above this one.
MOST_DEGREE = 4


@dataclass(frozen=True)
class Target:
    """A right-hand side and the map built from it.

    >>> from rdgraph.systems.parser import parse
    >>> str(Target(right_hand_side(parse("-L@H")), "step", step=0.5))
    '-L@H: a step of 0.5'
    """

    tree: sp.Basic
    compared: str = "field"
    count: int = 1
    step: float = 1.0
    T: float = 1.0

    def __post_init__(self) -> None:
        if self.compared not in COMPARED:
            raise InvalidArgument(f"expected compared to be one of {', '.join(COMPARED)}, got {self.compared!r}")
        if self.count < 1:
            raise InvalidArgument(f"expected a count of 1 or more, got {self.count}")

    def values(self, letters: Mapping[str, Any]) -> Array:
        """The next state for every probe of a stack; `letters` holds states, operators and coefficients."""
        with np.errstate(all="ignore"):
            match self.compared:
                case "field":
                    return self._right(letters, letters["H"])
                case "flow":
                    return self._flow(letters)
            state: Array = letters["H"]
            for _ in range(self.count):
                change = self._right(letters, state)
                state = change if self.compared == "map" else state + self.step * change
            return state

    @property
    def cost(self) -> int:
        """Evaluations of the right-hand side for one output."""
        return USUAL_SPEEDS if self.compared == "flow" else self.count

    @cached_property
    def _compute(self) -> Callable[[Mapping[str, Any]], Any]:
        return compiled(self.tree)

    def _right(self, letters: Mapping[str, Any], state: Array) -> Array:
        rows = np.asarray(self._compute({**letters, "H": state}), dtype=float)
        if rows.ndim == 2 and rows.shape[0] == len(state):
            return rows
        return np.broadcast_to(rows, (len(state), rows.shape[-1] if rows.ndim else state.shape[1]))

    def _flow(self, letters: Mapping[str, Any]) -> Array:
        begun: Array = letters["H"]
        asked = 0

        def speed(_: float, flat: Array) -> Array:
            nonlocal asked
            asked += 1
            if asked > MOST_SPEEDS or not np.abs(flat).max(initial=0.0) < FARTHEST_STATE:
                raise FloatingPointError("the flow left the range of states")
            return self._right(letters, flat.reshape(begun.shape)).ravel()

        try:
            solution = solve_ivp(
                speed, (0.0, self.T), begun.ravel(), method="DOP853", rtol=FLOW_TOLERANCE, atol=FLOW_TOLERANCE
            )
        except FloatingPointError:
            return np.full(begun.shape, np.nan)
        return solution.y[:, -1].reshape(begun.shape) if solution.success else np.full(begun.shape, np.nan)

    @property
    def degree(self) -> int | None:
        """The degree in the entries of the state; None for no polynomial, or too high a degree."""
        once = degree_of(self.tree)
        if once is None:
            return None
        if self.compared == "flow":
            return 1 if once <= 1 else None
        whole = once if self.compared == "field" else max(once, 1) ** self.count
        return whole if whole <= MOST_DEGREE else None

    def __str__(self) -> str:
        text = to_text(self.tree)
        match self.compared:
            case "field":
                return text
            case "map":
                return f"{text}: applied {self.count} times" if self.count > 1 else text
            case "step":
                steps = "a step" if self.count == 1 else f"{self.count} steps"
                return f"{text}: {steps} of {self.step:g}"
        return f"{text}: the flow to T = {self.T:g}"


def right_hand_side(system: System) -> sp.Basic:
    """The tree of f in dH/dt = f(H), with the field renamed to H."""
    (equation, *others) = system.equations
    if others or equation.order > 1 or not system.is_autonomous or system.is_noisy:
        raise NotApplicable(
            f"expected one autonomous equation of first order without noise, got {system.text}; a layer is compared "
            "with a right-hand side in H"
        )
    tree = equation.expression
    if equation.field != "H":
        tree = tree.xreplace({field(equation.field): field("H"), field(f"{equation.field}0"): field("H0")})
    return tree


def degree_of(tree: sp.Basic) -> int | None:
    """The degree of a tree in the entries of H and H0; None where it is not a polynomial in them.

    >>> from rdgraph.language.reader import read_expression
    >>> degree_of(read_expression("-L@H + H*(1 - H**2)")), degree_of(read_expression("tanh(A@H)"))
    (3, None)
    """
    match tree:
        case Name():
            return 1 if tree.kind is Kind.FIELD else 0
        case Plus() | Minus():
            return _joined(degree_of(tree.left), degree_of(tree.right), max)
        case Times():
            return _joined(degree_of(tree.left), degree_of(tree.right), lambda a, b: a + b)
        case Over():
            return degree_of(tree.left) if degree_of(tree.right) == 0 else None
        case Negative():
            return degree_of(tree.inner)
        case Power():
            base = degree_of(tree.base)
            if kind_of(tree) is Kind.OPERATOR or base == 0:
                return 0
            return None if base is None or tree.exponent < 0 else base * tree.exponent
        case Call():
            return 0 if degree_of(tree.argument) == 0 else None
        case Apply():
            return degree_of(tree.right if kind_of(tree.left) is Kind.OPERATOR else tree.left)
    return 0


def longest_word(tree: sp.Basic) -> int:
    """The largest number of operators one after the other.

    >>> from rdgraph.language.reader import read_expression
    >>> longest_word(read_expression("A@(A@H + L**3@H) + H"))
    4
    """
    match tree:
        case Name():
            return 1 if tree.kind is Kind.OPERATOR and tree.name != "I" else 0
        case Power() if kind_of(tree) is Kind.OPERATOR:
            return longest_word(tree.base) * tree.exponent
        case Apply() if kind_of(tree.left) is Kind.OPERATOR:
            return longest_word(tree.left) + longest_word(tree.right)
        case sp.Rational():
            return 0
    return max((longest_word(part) for part in tree.args if names_in(part)), default=0)


def _joined(left: int | None, right: int | None, join: Any) -> int | None:
    return None if left is None or right is None else join(left, right)
