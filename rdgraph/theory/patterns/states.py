"""`SteadyState` and `SteadyStates`: constant states that do not change in time, and how they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import public
from rdgraph.reals.condition_words import condition_in_words
from rdgraph.reals.enclosure import enclose, enclose_at, precision, sign_of
from rdgraph.reals.line_pieces import between, is_before
from rdgraph.reals.zeros import LineZero, LineZeros, line_zeros, period
from rdgraph.systems.canonical.standard_form import in_trigonometric_factors
from rdgraph.theory.patterns.kinetics import EVERY_GRAPH
from rdgraph.wording import html_table

# ---------------------------------------------------------------------- states
EXACT, CERTIFIED = "exact", "certified"
#: Bits of the enclosures of values that are not rational.
BITS = 256


@dataclass(frozen=True)
class SteadyState:
    """One steady state: `point` has a value for the symbol of every field.

    `how` is "exact" (a closed form or an algebraic number) or "certified" (the only steady state between the numbers of
    `enclosures`). The state exists where `conditions` hold: there it is real and the equation is defined at it. Each
    condition is defined where those before it hold. Fields in `free` may have any value that the conditions allow. For
    one field, `stability` is the fate of small deviations (`rdgraph.theory.patterns.state_stability`).
    """

    point: Mapping[sp.Symbol, sp.Expr]
    how: str = EXACT
    conditions: tuple[sp.Basic, ...] = ()
    enclosures: Mapping[sp.Symbol, tuple[sp.Rational, sp.Rational]] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    assumes: str = EVERY_GRAPH
    stability: str = ""

    @property
    def values(self) -> dict[str, sp.Expr]:
        """The value of every field, in plain symbols."""
        return {x.name: public(sp.sympify(value)) for x, value in self.point.items()}

    @property
    def is_number(self) -> bool:
        """Whether every field has a number."""
        return not any(sp.sympify(value).free_symbols for value in self.point.values())

    def numbers(self) -> dict[str, float]:
        """The values as floating-point numbers."""
        return {name: float(value) for name, value in self.values.items()}

    @cached_property
    def balls(self) -> dict[sp.Basic, Any]:
        """Enclosures in ball arithmetic of the values that are not rational; NotApplicable if one is not a number."""
        if not self.is_number:
            raise NotApplicable(
                f"only numbers can be enclosed, and the state {self} depends on letters; set them first"
            )
        if self.how == EXACT:
            irrational = {x: value for x, value in self.point.items() if not value.is_Rational}
            return {x: enclose(value, BITS) for x, value in irrational.items()}
        with precision(BITS):
            return {x: enclose_at(low, {}).union(enclose_at(high, {})) for x, (low, high) in self.enclosures.items()}

    def __str__(self) -> str:
        fixed = [f"{name} = {shown(value)}" for name, value in self.values.items() if name not in self.free]
        text = ", ".join([*fixed, *(f"{name} free" for name in self.free)])
        where = " and ".join(condition_in_words(public(c)) for c in self.conditions)
        fate = f", {self.stability}" if self.stability else ""
        return f"{text}{f' where {where}' if where else ''} ({self.how}{fate})"

    def to_dict(self) -> dict[str, Any]:
        """Values, how they are known, conditions and assumptions about the graph, as texts; `words` is one line."""
        return {
            "values": {name: str(value) for name, value in self.values.items()},
            "how": self.how,
            "conditions": [str(public(c)) for c in self.conditions],
            "free": list(self.free),
            "assumes": self.assumes,
            "stability": self.stability,
            "words": str(self),
        }


@dataclass(frozen=True, repr=False)
class SteadyStates(Answer):
    """The steady states that were found; with `is_complete` there are provably no others (see `reason`)."""

    fields: tuple[str, ...]
    states: tuple[SteadyState, ...]
    is_complete: bool
    reason: str = ""
    assumes: str = EVERY_GRAPH

    @property
    def value(self) -> tuple[SteadyState, ...]:
        """The steady states."""
        return self.states

    @property
    def status(self) -> Status:
        """proved if these are all and exact; bounded if some are enclosed or others are possible; else undecided."""
        if not self.is_complete and not self.states:
            return Status.UNDECIDED
        is_exact = self.is_complete and all(state.how == EXACT for state in self.states)
        return certainty(self.reason) if is_exact else Status.BOUNDED

    def __bool__(self) -> bool:
        return bool(self.states)

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[SteadyState]:
        return iter(self.states)

    def __getitem__(self, index: int) -> SteadyState:
        return self.states[index]

    def __str__(self) -> str:
        lines = [f"{i}: {state}" for i, state in enumerate(self.states)] or ["none found"]
        lines.append(f"{'complete' if self.is_complete else 'not proved to be complete'}: {self.reason}")
        return "\n".join([*lines, f"constant over the nodes; assumes: {self.assumes}"])

    def __repr__(self) -> str:
        return f"SteadyStates of {', '.join(self.fields)}\n{self}"

    def _repr_html_(self) -> str:
        rows = [(i, str(state)) for i, state in enumerate(self.states)]
        complete = "complete" if self.is_complete else "not proved to be complete"
        return html_table(
            f"steady states of {', '.join(self.fields)}",
            rows,
            footer=f"{complete}: {self.reason}; assumes: {self.assumes}",
        )

    def to_dict(self) -> dict[str, Any]:
        """The states, whether they are all, and why, as texts."""
        return {
            "states": [state.to_dict() for state in self.states], "status": str(self.status),
            "is_complete": self.is_complete, "reason": self.reason, "assumes": self.assumes,
        }  # fmt: skip


def shown(value: sp.Expr) -> str:
    """A number or formula as text, long numbers with six digits."""
    text = str(value)
    return f"{float(value):.6g}" if value.is_number and len(text) > 24 else text


# ---------------------------------------------------------------------- line states
# Steady states of one field with numbers as coefficients: all zeros of its rate on the real line, and which attract.

#: The interval that is searched where nothing is proved for large states.
REACH = (sp.Integer(-100), sp.Integer(100))


@dataclass(frozen=True)
class LineStates:
    """States in ascending order, whether each attracts its neighbouring constant states (None if unknown), and a note.

    `is_complete` refers to the whole line, or to the given box.
    """

    states: tuple[SteadyState, ...]
    attracting: tuple[bool | None, ...]
    is_complete: bool
    note: str


def line_states(rate: sp.Expr, letter: sp.Symbol, box: tuple[sp.Rational, sp.Rational] | None = None) -> LineStates:
    """The zeros of a rate in one symbol, on the line or in a box.

    >>> x = sp.Symbol("x", real=True)
    >>> found = line_states(sp.tanh(x) - x / 2, x)
    >>> [str(state) for state in found.states], found.attracting
    (['x = -1.91501 (certified)', 'x = 0 (exact)', 'x = 1.91501 (certified)'], (True, False, True))
    >>> found.note
    'all real ones, by interval arithmetic'
    """
    zeros = line_zeros(in_trigonometric_factors(rate), letter, box or REACH)
    flows = zip(zeros.signs, zeros.signs[1:], strict=False)
    both = [(zero, _attracts(*signs)) for zero, signs in zip(zeros.zeros, flows, strict=True)]
    if box is not None:
        both = [(z, attracts) for z, attracts in both if box[0] <= z.upper and z.lower <= box[1]]
    states = tuple(_state(letter, zero) for zero, _ in both)
    complete, note = _completeness(rate, letter, zeros, box)
    return LineStates(states, tuple(attracts for _, attracts in both), complete, note)


def attracts(rate: sp.Expr, letter: sp.Symbol, zero: sp.Expr, zeros: Sequence[sp.Expr]) -> bool | None:
    """Whether constant states next to a zero move towards it, given all zeros of a continuous rate.

    >>> x = sp.Symbol("x", real=True)
    >>> [attracts(x**2 * (1 - x), x, sp.Integer(k), [sp.S.Zero, sp.S.One]) for k in (0, 1)]
    [False, True]
    """
    below = [z for z in zeros if is_before(z, zero)]
    above = [z for z in zeros if is_before(zero, z)]
    lower = next((z for z in below if not any(is_before(z, other) for other in below)), -sp.oo)
    upper = next((z for z in above if not any(is_before(other, z) for other in above)), sp.oo)
    sides = (between(lower, zero), between(zero, upper))
    return _attracts(*(sign_of(rate, {letter: side}) for side in sides))


def _attracts(before: int | None, after: int | None) -> bool | None:
    """Whether constant states on both sides move towards a zero; False if those on one side move away."""
    if before == -1 or after == 1:
        return False
    return True if before == 1 and after == -1 else None


def _state(letter: sp.Symbol, zero: LineZero) -> SteadyState:
    if zero.value is not None:
        return SteadyState({letter: zero.value})
    middle = sp.Float((zero.lower + zero.upper) / 2, 30)
    return SteadyState({letter: middle}, CERTIFIED, enclosures={letter: (zero.lower, zero.upper)})


def _completeness(
    rate: sp.Expr, letter: sp.Symbol, zeros: LineZeros, box: tuple[sp.Rational, sp.Rational] | None
) -> tuple[bool, str]:
    """Whether the states are complete, and why."""
    lower, upper = zeros.reach
    if zeros.gaps:
        middle = sum(zeros.gaps[0]) / 2
        where = f"nothing is proved in {len(zeros.gaps)} short intervals, one of them around {middle:.6g}"
        return False, f"interval arithmetic over [{lower}, {upper}]; {where}"
    within = f"all in the box [{lower}, {upper}] of every field, by interval arithmetic"
    if box is not None:
        return True, within
    if zeros.beyond:
        return True, "all real ones, by interval arithmetic"
    turn = period(rate, letter)
    return True, within + (f"; the others repeat these with the period {turn}" if turn is not None else "")
