"""The public question `turing`: conditions for pattern formation as inequalities in the coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from rdgraph.decisions.budget import within_budget
from rdgraph.decisions.enclosure import holds as holds_at
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.html_tables import html_table
from rdgraph.patterns.conditions import ConditionSet
from rdgraph.patterns.dispersion import END
from rdgraph.patterns.half_planes import characteristic, hurwitz_determinants
from rdgraph.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.patterns.linearisation import Linearisation
from rdgraph.patterns.rate_kinks import check_slopes
from rdgraph.patterns.state_choice import numbered, state_at
from rdgraph.patterns.states import EXACT, SteadyState
from rdgraph.patterns.steady_states import solve_states
from rdgraph.patterns.turing_conditions import HOPF, TURING, TURING_HOPF, WAVE, SymbolicGrowth
from rdgraph.syntax.answer_symbols import lam, public
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System


@dataclass(frozen=True, eq=False)
class Turing:
    """Conditions for Turing, Hopf and mixed instabilities at a steady state.

    `state` is None where the system is linear, or where the steady state has no closed form: the conditions are then in
    the letters of the fields, at which the rates vanish (`at_every_state`).
    """

    fields: tuple[str, ...]
    symbol: sp.ImmutableMatrix
    state: SteadyState | None
    sets: Mapping[str, ConditionSet]
    to: sp.Expr
    assumes: str
    kinetics: Kinetics = field(repr=False)
    at_every_state: bool = False

    @property
    def conditions(self) -> dict[str, sp.Basic]:
        """Turing's conditions by name, in plain symbols."""
        return self.sets[TURING].relations

    @property
    def outcome(self) -> str:
        """Whether a Turing instability is "possible", "impossible" (proved) or "undecided"."""
        return self.sets[TURING].outcome

    @property
    def reason(self) -> str:
        """Why, where that was decided."""
        return self.sets[TURING].reason

    @property
    def turing(self) -> ConditionSet:
        """Stable where all nodes agree, unstable on graphs without oscillation."""
        return self.sets[TURING]

    @property
    def hopf(self) -> ConditionSet:
        """Oscillations that grow where all nodes agree."""
        return self._set(HOPF)

    @property
    def turing_hopf(self) -> ConditionSet:
        """Both at once."""
        return self._set(TURING_HOPF)

    def _set(self, name: str) -> ConditionSet:
        if name not in self.sets:
            raise NotApplicable(
                f"one field does not oscillate: expected several fields for {name}, got {self.fields[0]}"
            )
        return self.sets[name]

    def holds(self, values: Mapping[str, Any], name: str = TURING, state: int = 0) -> bool:
        """Whether the conditions of a set hold at numbers for all coefficients, exactly.

        Args:
            values: a number for every coefficient.
            name: of the set.
            state: which steady state at these numbers, where the conditions are in the letters of the fields.

        Raises:
            InvalidArgument: values are missing, or no such set.
            Undecided: both sides of a condition agree as far as enclosures tell, or, of four fields or more, a Hurwitz
                determinant vanishes.
        """
        if name not in self.sets:
            raise InvalidArgument(f"expected one of {sorted(self.sets)}, got {name!r}")
        chosen = self.sets[name]
        if name == TURING and len(self.fields) == 1:
            return False
        kinetics = self.kinetics.at(values)
        known = self.kinetics.coefficients
        numbers = {known[key]: exact_number(value, key) for key, value in values.items() if key in known}
        if self.at_every_state:
            numbers |= dict(state_at(kinetics, state).point)
        left = {x for c in chosen.conditions for x in c.inner.free_symbols} - set(numbers) - {lam}
        if left:
            raise InvalidArgument(f"expected values for all coefficients, got none for {sorted(map(str, left))}")
        if self.state is not None and not all(holds_at(c.xreplace(numbers)) for c in self.state.conditions):
            return False
        if not all(condition.holds_at(numbers, self.to) for condition in chosen.conditions):
            if len(self.fields) > 3 and name != TURING and self._vanishes(name, numbers):
                raise Undecided(f"whether {name} holds could not be told: a Hurwitz determinant vanishes")
            return False
        return all(c.is_sufficient for c in chosen.conditions) or not self._transport_grows(numbers)

    def _vanishes(self, name: str, numbers: Mapping[sp.Basic, sp.Expr]) -> bool:
        """Whether a Hurwitz determinant that a set asks about is zero, for every lam where it has one."""
        matrix = self.symbol.xreplace({public(x): value for x, value in numbers.items()})
        matrix = matrix if name == WAVE else matrix.subs(public(lam), 0)
        return any(sp.expand(minor) == 0 for minor in hurwitz_determinants(characteristic(matrix))[:-1])

    def _transport_grows(self, numbers: Mapping[sp.Basic, sp.Expr]) -> bool:
        """Whether transport alone lets a mode grow; for conditions that are necessary only."""
        moved = (self.kinetics.transport.xreplace(dict(numbers)) / lam).applyfunc(sp.expand)
        return bool(Linearisation(sp.ImmutableMatrix(moved)).bands(self.to).bands)

    def __str__(self) -> str:
        return "\n".join(f"{head}: {cell}" for head, cell in self._rows())

    def __repr__(self) -> str:
        return f"Turing analysis of {', '.join(self.fields)}\n{self}"

    def _repr_html_(self) -> str:
        return html_table(f"Turing analysis of {', '.join(self.fields)}", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        where = str(self.state) if self.state else "every one" if self.at_every_state else "any: the system is linear"
        rows = [("steady state", where), ("range of lam", f"(0, {self.to}{']' if self.to.is_finite else ')'}")]
        for name, found in self.sets.items():
            text = str(found)
            rows.append((name, text.removeprefix(f"{name} ")))
        return [*rows, ("assumes", self.assumes)]

    def to_dict(self) -> dict[str, Any]:
        """The sets of conditions and their outcomes as texts."""
        return {
            "state": None if self.state is None else self.state.to_dict(),
            "symbol": [[str(entry) for entry in row] for row in self.symbol.tolist()],
            "sets": {name: found.to_dict() for name, found in self.sets.items()},
            "range": [0, str(self.to)],
            "assumes": self.assumes,
        }


@reads_system
@within_budget()
def turing(system: System, state: int | Mapping[str, Any] = 0, *, to: Any = END) -> Turing:
    """Conditions for patterns: a steady state that is stable where all nodes agree, and unstable on a graph.

    Args:
        system: one or several fields.
        state: which of `steady_states(system)`, or the values of its fields as numbers.
        to: the end of the range of lam; `sympy.oo` gives the classical conditions.

    Returns:
        Named inequalities in the coefficients, and whether they can hold at all under the assumptions. One field has no
        Turing instability; the answer then says whether transport itself makes modes grow.

    Raises:
        NotApplicable: no state is the same in all nodes.
        InvalidArgument: there is no such state.
        Undecided: time ran out.

    >>> import sympy as sp, rdgraph as rd
    >>> s = rd.parse("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v")
    >>> answer = rd.turing(s, to=sp.oo)
    >>> answer.outcome, answer.conditions["activation"]
    ('possible', ...)
    >>> rd.turing("F").outcome
    'impossible'
    """
    end = sp.oo if to in (sp.oo, float("inf")) else exact_number(to, "end of the range")
    return turing_of(system_kinetics(system), state, end)


def turing_of(kinetics: Kinetics, state: int | Mapping[str, Any] = 0, to: sp.Expr = END) -> Turing:
    """The conditions of a kinetics."""
    if not (to == sp.oo or to.is_Rational) or to <= 0:
        raise InvalidArgument(f"expected a positive number as end of the range of lam, got {to}")
    chosen = _closed_state(kinetics, state)
    every = chosen is None and not kinetics.is_linear
    domain, matrix = kinetics.domain, kinetics.matrix
    if chosen is not None:
        matrix = matrix.xreplace(dict(chosen.point)).applyfunc(_short)
        domain = domain.where(*chosen.conditions)
    check_slopes(kinetics, chosen, matrix)
    if chosen is None and every:
        domain = domain.where(*(sp.Eq(rate, 0, evaluate=False) for rate in kinetics.rates if rate != 0))
    sets = SymbolicGrowth(matrix, domain, to).sets()
    assumes = kinetics.modes_assume if kinetics.is_linear else kinetics.assumes if chosen is None else chosen.assumes
    return Turing(
        kinetics.fields, public(matrix), chosen, sets, to, kinetics.on_real_modes(assumes), kinetics, every
    )  # fmt: skip


def _closed_state(kinetics: Kinetics, state: int | Mapping[str, Any]) -> SteadyState | None:
    """The steady state in closed form; None where the letters of the fields are kept."""
    if kinetics.is_linear or (len(kinetics.fields) == 1 and state == 0):
        return None
    if isinstance(state, Mapping):
        return state_at(kinetics, state)
    found = solve_states(kinetics)
    if not found.states and state == 0:
        return None
    chosen = numbered(found, state)
    return chosen if chosen.how == EXACT and not chosen.free else None


def _short(entry: sp.Expr) -> sp.Expr:
    if not entry.is_rational_function():
        return sp.collect(sp.expand(entry), lam)
    polynomial = sp.Poly(entry, lam) if entry.has(lam) else None
    if polynomial is None:
        return sp.factor(entry)
    return sp.Add(*(sp.factor(c) * lam**k for (k,), c in polynomial.terms()))
