"""`SteadyState` and `SteadyStates`: states that are the same in all nodes and do not move, and how they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.decisions.condition_words import condition_in_words
from rdgraph.decisions.enclosure import enclose, enclose_at, precision
from rdgraph.html_tables import html_table
from rdgraph.patterns.kinetics import EVERY_GRAPH
from rdgraph.syntax.answer_symbols import public

EXACT, CERTIFIED = "exact", "certified"
#: Bits of the enclosures of values that are not rational.
BITS = 256


@dataclass(frozen=True)
class SteadyState:
    """One steady state: `point` has a value for the symbol of every field.

    `how` is "exact" (a closed form or an algebraic number) or "certified" (a number that lies, and is the only steady
    state, between the two of `enclosures`). Where `conditions` hold it is real. Fields in `free` may have any value.
    `stability` says of one field what becomes of small deviations (`rdgraph.patterns.state_stability`).
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
        """Enclosures of the values by ball arithmetic, for every field whose value is not rational."""
        if self.how == EXACT:
            irrational = {x: value for x, value in self.point.items() if not value.is_Rational}
            return {x: enclose(value, BITS) for x, value in irrational.items()}
        with precision(BITS):
            return {x: enclose_at(low, {}).union(enclose_at(high, {})) for x, (low, high) in self.enclosures.items()}

    def __str__(self) -> str:
        text = ", ".join(f"{name} = {shown(value)}" for name, value in self.values.items())
        where = " and ".join(condition_in_words(public(c)) for c in self.conditions)
        free = f", {', '.join(self.free)} free" if self.free else ""
        fate = f", {self.stability}" if self.stability else ""
        return f"{text}{free}{f' where {where}' if where else ''} ({self.how}{fate})"

    def to_dict(self) -> dict[str, Any]:
        """Values, how they are known, conditions and what is assumed of the graph, as texts."""
        return {
            "values": {name: str(value) for name, value in self.values.items()},
            "how": self.how,
            "conditions": [str(public(c)) for c in self.conditions],
            "free": list(self.free),
            "assumes": self.assumes,
            "stability": self.stability,
        }


@dataclass(frozen=True)
class SteadyStates:
    """The steady states that were found; with `is_complete` it is proved that there are no others (see `note`)."""

    fields: tuple[str, ...]
    states: tuple[SteadyState, ...]
    is_complete: bool
    note: str = ""
    assumes: str = EVERY_GRAPH

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[SteadyState]:
        return iter(self.states)

    def __getitem__(self, index: int) -> SteadyState:
        return self.states[index]

    def __str__(self) -> str:
        lines = [f"{i}: {state}" for i, state in enumerate(self.states)] or ["none found"]
        lines.append(f"{'complete' if self.is_complete else 'not proved to be complete'}: {self.note}")
        return "\n".join([*lines, f"constant over the nodes; assumes: {self.assumes}"])

    def __repr__(self) -> str:
        return f"SteadyStates of {', '.join(self.fields)}\n{self}"

    def _repr_html_(self) -> str:
        rows = [(i, str(state)) for i, state in enumerate(self.states)]
        complete = "complete" if self.is_complete else "not proved to be complete"
        return html_table(
            f"steady states of {', '.join(self.fields)}",
            rows,
            footer=f"{complete}: {self.note}; assumes: {self.assumes}",
        )

    def to_dict(self) -> dict[str, Any]:
        """The states, whether they are all, and why, as texts."""
        return {
            "states": [state.to_dict() for state in self.states], "is_complete": self.is_complete, "note": self.note,
            "assumes": self.assumes,
        }  # fmt: skip


def shown(value: sp.Expr) -> str:
    """A number or formula as a person reads it: long numbers with six digits."""
    text = str(value)
    return f"{float(value):.6g}" if value.is_number and len(text) > 24 else text
