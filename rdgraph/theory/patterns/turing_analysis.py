"""Turing's conditions for pattern formation as inequalities in the coefficients, and critical ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.branches import STEPS
from rdgraph.reals.budget import within_budget
from rdgraph.reals.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.enclosure import holds as holds_at
from rdgraph.reals.enclosure import sign_of
from rdgraph.reals.judge import Possibility, possible
from rdgraph.reals.maxima import tidy
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.patterns.bands import characteristic, hurwitz_determinants
from rdgraph.theory.patterns.dispersion import END
from rdgraph.theory.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.theory.patterns.linearisation import (
    EVERY_LAM,
    IMPOSSIBLE,
    NO_LAM,
    POSSIBLE,
    SOME_LAM,
    Condition,
    ConditionSet,
    Linearisation,
)
from rdgraph.theory.patterns.states import EXACT, SteadyState, shown
from rdgraph.theory.patterns.steady_states import numbered, solve_states, state_at
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.wording import html_table, listed

# ---------------------------------------------------------------------- rate kinks
# Kinks of rates at constant states, such as those of relu and abs at zero, where there is no linearisation.


def check_slopes(kinetics: Kinetics, state: SteadyState | None, matrix: sp.Matrix) -> None:
    """Raise NotApplicable unless every rate has a slope for all coefficients, at a state or without one at all."""
    if matrix.has(sp.zoo, sp.nan, sp.oo):
        raise NotApplicable(f"no linearisation: a rate has no slope at {state or 'states equal in all nodes'}")
    for kink in sorted(kinetics.matrix.atoms(*STEPS), key=str):
        if state is None:
            at_it = [sp.Eq(e, 0, evaluate=False) for e in (*kinetics.rates, kink.args[0]) if e != 0]
            is_apart = kinetics.domain.where(*at_it).is_empty()
        else:
            is_apart = sp.simplify(kink.args[0].xreplace(dict(state.point))).is_nonzero is True
        if not is_apart:
            where = state or "all steady states"
            raise NotApplicable(f"no linearisation at {where} for all coefficients: the slope {kink} may jump there")


# ---------------------------------------------------------------------- critical ratio
@dataclass(frozen=True, repr=False)
class CriticalRatio(Answer):
    """Patterns form for lam in (0, oo) exactly where diffusivity(inhibitor)/diffusivity(activator) > value."""

    value: sp.Expr
    activator: str
    inhibitor: str
    state: SteadyState | None

    @property
    def status(self) -> Status:
        """proved where the steady state is exact, bounded where it is enclosed."""
        return Status.PROVED if self.state is None or self.state.how == EXACT else Status.BOUNDED

    @property
    def reason(self) -> str:
        """The formula of the ratio."""
        return "the larger root d of (d J_ii + J_kk)^2 = 4 d det J, with the Jacobian J at the steady state"

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return (
            f"{self.inhibitor} must spread more than {shown(self.value)} times as fast as {self.activator}"
            f" ({float(self.value):.6g}), for lam in (0, oo)"
        )

    def _repr_html_(self) -> str:
        return html_table("critical ratio of diffusivities", [(f"{self.inhibitor}/{self.activator}", str(self))])

    def to_dict(self) -> dict[str, Any]:
        """The ratio as text and number."""
        return {
            "value": str(self.value), "status": str(self.status), "number": float(self.value),
            "activator": self.activator, "inhibitor": self.inhibitor,
            "state": None if self.state is None else self.state.to_dict(),
        }  # fmt: skip


@reads_system
@within_budget()
def critical_ratio(
    system: System, values: Mapping[str, Any] | None = None, state: int | Mapping[str, Any] = 0
) -> CriticalRatio:
    """The ratio of the diffusivities of two fields beyond which patterns form, for lam of any size.

    With the Jacobian J at the steady state, activator i and inhibitor k, it is the larger root d of
    (d J_ii + J_kk)^2 = 4 d det J. The diffusivities themselves need no values.

    Args:
        system: two fields u and v that diffuse by multiples of L@u and L@v.
        values: numbers for the coefficients of the reaction.
        state: which of `steady_states(system, values)`, or the values of the fields.

    Returns:
        The ratio, exact where the steady state is.

    Raises:
        NotApplicable: not two diffusing fields, or no ratio makes patterns.
        InvalidArgument: values are missing, or there is no such state.

    >>> import rdgraph as rd
    >>> s = rd.parse("u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v")
    >>> rd.patterns.critical_ratio(s, {"a": 2, "b": 2.25}).value
    16
    """
    return ratio_of(system_kinetics(system).at(values), state)


def ratio_of(kinetics: Kinetics, state: int | Mapping[str, Any] = 0) -> CriticalRatio:
    """The critical ratio of kinetics."""
    if kinetics.matrix.has(sp.nan):
        raise NotApplicable("no linearisation: a rate has a kink at every state equal in all nodes")
    moved = -kinetics.transport / lam
    if len(kinetics.fields) != 2 or not moved.is_diagonal() or moved.applyfunc(sp.cancel).has(lam, *kinetics.letters):
        raise NotApplicable("expected two fields that each diffuse separately, as in -Du*L@u and -Dv*L@v")
    for name, entry in zip(kinetics.fields, moved.diagonal(), strict=True):
        if kinetics.domain.sign(entry) is not POSITIVE:
            raise NotApplicable(
                f"the diffusivity {public(entry)} of {name} is not proved to be positive; assume it or give it a number"
            )
    steady = None if kinetics.is_linear else state_at(kinetics, state)
    jacobian = kinetics.jacobian if steady is None else kinetics.jacobian.xreplace(dict(steady.point))
    check_slopes(kinetics, steady, jacobian)
    unset = jacobian.free_symbols
    if unset:
        raise InvalidArgument(
            f"expected values for the coefficients of the reaction, got none for {listed(sorted(map(str, unset)))}"
        )
    trace, determinant = jacobian.trace(), jacobian.det()
    if sign_of(sp.sympify(trace)) != -1 or sign_of(sp.sympify(determinant)) != 1:
        raise NotApplicable(
            "the steady state is not proved to be stable without transport, so that no ratio is critical"
        )
    signs = [sign_of(sp.sympify(jacobian[i, i])) for i in range(2)]
    if None in signs:
        raise Undecided("it is not decided whether a field activates itself")
    if 1 not in signs:
        raise NotApplicable("no ratio of diffusivities makes patterns: no field activates itself")
    active = signs.index(1)
    a, cross = jacobian[active, active], jacobian[0, 1] * jacobian[1, 0]
    value = (determinant - cross + 2 * sp.sqrt(-determinant * cross)) / a**2
    return CriticalRatio(_tidy(value), kinetics.fields[active], kinetics.fields[1 - active], steady)


def _tidy(value: sp.Expr) -> sp.Expr:
    return sp.radsimp(sp.sqrtdenest(value)) if not value.has(sp.CRootOf) else value


# ---------------------------------------------------------------------- turing conditions
# Turing's conditions: when a steady state that is stable where all nodes agree is unstable on a graph.
#
# Deviations from the steady state decay without transport, transport alone makes nothing grow, and together some mode
# of the graph grows. For two fields these are the classical inequalities between the Jacobian and the diffusivities;
# for more, those of Hurwitz. One field never has such an instability: its growth is that of the constant mode plus that
# of transport.

TURING, WAVE, HOPF, TURING_HOPF, ANTI = "turing", "wave", "hopf", "turing-hopf", "anti-diffusion"


@dataclass(frozen=True)
class SymbolicGrowth:
    """P(lam) with symbolic coefficients and their domain; `to` is the end of the range of lam."""

    matrix: sp.ImmutableMatrix
    domain: Domain
    to: sp.Expr

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def constant(self) -> sp.ImmutableMatrix:
        """P(0)"""
        return self.matrix.subs(lam, 0)

    @property
    def transport(self) -> sp.ImmutableMatrix:
        """(P(lam) - P(0))/lam"""
        return (self.matrix - self.constant).applyfunc(lambda x: sp.cancel(x / lam))

    @property
    def in_range(self) -> tuple[sp.Basic, ...]:
        """0 < lam <= to."""
        upper = (sp.Le(lam, self.to, evaluate=False),) if self.to.is_finite else ()
        return (sp.Gt(lam, 0, evaluate=False), *upper)

    # ------------------------------------------------------------------ sets of conditions
    def sets(self) -> dict[str, ConditionSet]:
        """All sets of conditions, each with its outcome."""
        if self.size == 1:
            return self._of_one_field()
        stable, damped, band = self.stable_at_zero(), self.damped_transport(), self.stationary_band()
        sets = {TURING: self.judged(ConditionSet(TURING, (*stable, *damped, *band)))}
        if self.size > 2:
            wave = self.judged(ConditionSet(WAVE, (*stable, *damped, *self.oscillating_band())))
            sets[WAVE] = self._doubted(wave, self.matrix, (*stable, *damped))
        sets[HOPF] = self._doubted(self.judged(ConditionSet(HOPF, self.hopf())), self.constant)
        others = (*self.oscillates_at_zero(), *damped, *band)
        both = self.judged(ConditionSet(TURING_HOPF, (*self.hopf(), *others)))
        sets[TURING_HOPF] = self._doubted(both, self.constant, others)
        return sets

    def _doubted(self, conditions: ConditionSet, matrix: sp.Matrix, others: tuple[Condition, ...] = ()) -> ConditionSet:
        """The set, which stays impossible only if no Hurwitz determinant can vanish while none is negative.

        With four fields or more a pair of eigenvalues can grow while all determinants are zero, as for s^4 + 1; with
        fewer, a determinant that vanishes excludes growth, or another one is negative.
        """
        if conditions.outcome != IMPOSSIBLE or self.size < 4:
            return conditions
        *minors, last = (sp.expand(x) for x in hurwitz_determinants(characteristic(matrix)))
        vanishing = sp.Or(*(sp.Eq(minor, 0, evaluate=False) for minor in minors))
        signs = [sp.Ge(minor, 0, evaluate=False) for minor in minors if minor != 0]
        asked = [vanishing, *signs, sp.Gt(last, 0, evaluate=False), *(c.inner for c in others)]
        in_range = self.in_range if any(sp.sympify(c).has(lam) for c in asked) else ()
        if possible(*self.domain.conditions, *in_range, *asked).outcome is Possibility.IMPOSSIBLE:
            return conditions
        reason = "no Hurwitz determinant is negative, but one may vanish, which is inconclusive for four fields or more"
        return replace(conditions, outcome=Status.UNDECIDED, reason=reason)

    def _of_one_field(self) -> dict[str, ConditionSet]:
        growing = self.judged(ConditionSet(ANTI, self.amplifying_transport()))
        reason = "with one field the growth is P(0) plus that of transport, and neither can be positive"
        if growing.outcome == IMPOSSIBLE:
            reason = "the growth is largest at lam = 0, since transport only damps"
        never = ConditionSet(TURING, (*self.stable_at_zero(), *self.damped_transport()), IMPOSSIBLE, reason)
        return {TURING: never, ANTI: growing}

    def stable_at_zero(self) -> tuple[Condition, ...]:
        """The constant mode decays."""
        if self.size == 1:
            return (Condition("decays at lam = 0", self.below(self.constant[0, 0])),)
        if self.size == 2:
            return (
                Condition("trace at lam = 0", self.below(self.constant.trace())),
                Condition("determinant at lam = 0", self.above(self.constant.det())),
            )
        minors = hurwitz_determinants(characteristic(self.constant))
        return tuple(Condition(f"Hurwitz {k + 1} at lam = 0", self.above(minor)) for k, minor in enumerate(minors))

    def hopf(self) -> tuple[Condition, ...]:
        """The constant mode grows and oscillates at onset: an even number of its eigenvalues grows."""
        if self.size == 2:
            return (
                Condition("trace at lam = 0", self.above(self.constant.trace())),
                Condition("determinant at lam = 0", self.above(self.constant.det())),
            )
        *minors, last = hurwitz_determinants(characteristic(self.constant))
        return (
            Condition("a Hurwitz determinant at lam = 0", sp.Or(*(self.below(minor) for minor in minors))),
            Condition("determinant at lam = 0", self.above(last)),
        )

    def oscillates_at_zero(self) -> tuple[Condition, ...]:
        """The growing eigenvalues of P(0) are not real, for two or three fields: the discriminant is negative."""
        if self.size > 3:
            return ()
        x = sp.Dummy("x")
        polynomial = sum(c * x**k for k, c in enumerate(reversed(characteristic(self.constant))))
        return (Condition("oscillates at lam = 0", self.below(sp.discriminant(polynomial, x))),)

    def damped_transport(self) -> tuple[Condition, ...]:
        """Transport alone makes nothing grow; conditions that the assumptions imply are dropped."""
        moved = -self.transport
        exact = self.size <= 2 or moved.is_diagonal()
        inside = self.domain.where(*self.in_range) if moved.has(lam) else self.domain
        terms = [x if moved.has(lam) else self.plain(x) for x in self._damping(moved)]
        if not exact and all(inside.proves(sp.Gt(x, 0, evaluate=False)) is True for x in terms):
            return ()
        needed = [sp.Ge(x, 0, evaluate=False) for x in terms]
        scope = EVERY_LAM if moved.has(lam) else NO_LAM
        return tuple(
            Condition("damped transport", relation, scope, exact)
            for relation in needed
            if not exact or inside.proves(relation) is not True
        )

    def _damping(self, moved: sp.ImmutableMatrix) -> list[sp.Expr]:
        """Expressions that must be >= 0 for all eigenvalues of a matrix to have real parts >= 0."""
        if moved.is_diagonal():
            return list(moved.diagonal())
        coefficients = characteristic(-moved)
        return list(coefficients[1:]) if self.size == 2 else list(hurwitz_determinants(coefficients))

    def amplifying_transport(self) -> tuple[Condition, ...]:
        """One field: some mode grows faster than the constant one."""
        moved = sp.expand(self.transport[0, 0])
        if not moved.has(lam):
            return (Condition("transport amplifies", self.above(moved)),)
        if sp.degree(moved, lam) == 1 and self.to.is_finite:
            ends = [self.above(moved.subs(lam, x)) for x in (sp.S.Zero, self.to)]
            return (Condition("transport amplifies", sp.Or(*ends)),)
        return (Condition("transport amplifies", sp.Gt(moved, 0, evaluate=False), SOME_LAM),)

    def stationary_band(self) -> tuple[Condition, ...]:
        """An odd number of eigenvalues of P(lam) grows for some lam: c_n(lam) < 0."""
        if self.size == 2 and not self.transport.has(lam):
            (j, k), (m, n) = self.constant.tolist()
            (p, q), (r, t) = (-self.transport).tolist()
            bend = self.transport.det()
            if self.domain.sign(bend) is POSITIVE:
                return self._parabola(bend, p * n + t * j - q * m - r * k, j * n - k * m)
        last = sp.expand(characteristic(self.matrix)[-1])
        numerator = sp.Poly(last, lam) if last.has(lam) else None
        if numerator is None:
            return (Condition("determinant for lam > 0", self.below(last)),)
        if self.size == 2 and numerator.degree() <= 2:
            c, b, a = (numerator.coeff_monomial(lam**k) for k in range(3))
            sign = self.domain.sign(a)
            if sign is POSITIVE:
                return self._parabola(a, -b, c)
            if sign is ZERO:
                edge = -b if not self.to.is_finite else -b * self.to - c
                return (Condition("determinant at the end of the range", self.above(edge)),)
        return (Condition("determinant for lam > 0", sp.Lt(last, 0, evaluate=False), SOME_LAM),)

    def _parabola(self, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> tuple[Condition, ...]:
        """a lam^2 - b lam + c < 0 for some lam in (0, to], with a > 0 and, where all nodes agree, c > 0."""
        conditions = [Condition("activation", self.above(b)), Condition("discriminant", self.above(b**2 - 4 * a * c))]
        if self.to.is_finite:
            at_end = self.below(a * self.to**2 - b * self.to + c)
            before = self.below(b - 2 * a * self.to)
            conditions.append(Condition(f"band meets (0, {self.to}]", sp.Or(at_end, before)))
        return tuple(conditions)

    def oscillating_band(self) -> tuple[Condition, ...]:
        """An even number of eigenvalues of P(lam) grows for some lam."""
        *minors, last = (sp.expand(x) for x in hurwitz_determinants(characteristic(self.matrix)))
        unstable = sp.Or(*(sp.Lt(minor, 0, evaluate=False) for minor in minors))
        both = sp.And(unstable, sp.Gt(last, 0, evaluate=False), evaluate=False)
        return (Condition("a Hurwitz determinant < 0 < determinant for lam > 0", both, SOME_LAM),)

    # ------------------------------------------------------------------ short forms, and outcomes
    def plain(self, expression: sp.Expr) -> sp.Expr:
        """A short expression with the same sign: without positive factors and denominators."""
        if not expression.free_symbols or not expression.is_rational_function():
            return expression
        top, bottom = sp.fraction(sp.cancel(sp.together(expression)))
        product = sp.S.One
        for part in (top, bottom):
            content, factors = sp.factor_list(part)
            product *= sp.sign(content) * sp.Mul(*(self._sign_of_power(base, times) for base, times in factors))
        if sp.expand(product) == 0:
            return sp.S.Zero
        return min((tidy(sp.expand(product)), self._unexpanded(expression)), key=lambda e: (e.count_ops(), str(e)))

    def _sign_of_power(self, base: sp.Expr, times: int) -> sp.Expr:
        """A short expression with the sign of base**times."""
        sign = self.domain.sign(base)
        if sign in (POSITIVE, NEGATIVE):
            return sp.S.One if sign is POSITIVE else sp.S.NegativeOne**times
        return base if times % 2 else base**2

    def _unexpanded(self, expression: sp.Expr) -> sp.Expr:
        """The numerator in its original form without positive factors, if the denominator is positive."""
        top, bottom = sp.fraction(sp.together(expression))
        if self.domain.sign(bottom) is not POSITIVE:
            return expression
        factors = sp.Mul.make_args(sp.factor_terms(top))
        return sp.Mul(*(f for f in factors if self.domain.sign(f) is not POSITIVE))

    def above(self, expression: sp.Expr) -> sp.Basic:
        """expression > 0"""
        return sp.Gt(self.plain(sp.sympify(expression)), 0)

    def below(self, expression: sp.Expr) -> sp.Basic:
        """expression < 0"""
        return sp.Lt(self.plain(sp.sympify(expression)), 0)

    def judged(self, conditions: ConditionSet) -> ConditionSet:
        """The set with its outcome: whether it is satisfiable."""
        asked = [c.inner for c in conditions.conditions]
        with_lam = self.in_range if any(c.scope for c in conditions.conditions) else ()
        # A condition for every lam also holds at the lam of the search: without such a lam the set is impossible.
        ruling = possible(*self.domain.conditions, *with_lam, *asked)
        if ruling.outcome is Possibility.IMPOSSIBLE:
            return replace(conditions, outcome=IMPOSSIBLE, reason="proved: no coefficients satisfy the conditions")
        weak = [c for c in conditions.conditions if c.scope == EVERY_LAM or not c.is_sufficient]
        if ruling.outcome is Possibility.POSSIBLE and not weak:
            example = {str(x): value for x, value in (ruling.point or {}).items()}
            return replace(conditions, outcome=POSSIBLE, point=dict(sorted(example.items())))
        reason = ruling.reason or f"the necessary conditions do not exclude it: {weak[0]}"
        return replace(conditions, outcome=Status.UNDECIDED, reason=reason)


# ---------------------------------------------------------------------- turing analysis
@dataclass(frozen=True, eq=False, repr=False)
class Turing(Answer):
    """Conditions for Turing, Hopf and mixed instabilities at a steady state.

    `state` is None where the system is linear, or where the steady state has no closed form: the conditions then
    contain the fields at a state where the rates vanish (`at_every_state`).
    """

    fields: tuple[str, ...]
    symbol: sp.ImmutableMatrix
    state: SteadyState | None
    sets: Mapping[str, ConditionSet]
    to: sp.Expr
    assumes: str = field()
    kinetics: Kinetics = field(repr=False)
    at_every_state: bool = False

    @property
    def value(self) -> str | None:
        """Whether a Turing instability is "possible" or "impossible"; None if undecided."""
        return None if self.outcome == Status.UNDECIDED else self.outcome

    @property
    def status(self) -> Status:
        """The status of Turing's conditions: undecided, or as certain as the reason."""
        return Status.UNDECIDED if self.value is None else certainty(self.reason)

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
        """Why a Turing instability is possible or impossible, if that is decided."""
        return self.sets[TURING].reason

    @property
    def turing(self) -> ConditionSet:
        """The conditions for a state that is stable where all nodes agree, and unstable on graphs, not oscillating."""
        return self.sets[TURING]

    @property
    def hopf(self) -> ConditionSet:
        """The conditions for growing oscillations where all nodes agree."""
        return self._set(HOPF)

    @property
    def turing_hopf(self) -> ConditionSet:
        """The conditions for Turing and Hopf instability at once."""
        return self._set(TURING_HOPF)

    def _set(self, name: str) -> ConditionSet:
        if name not in self.sets:
            raise NotApplicable(f"{name} needs several fields: one field such as {self.fields[0]} does not oscillate")
        return self.sets[name]

    def holds(self, values: Mapping[str, Any], name: str = TURING, state: int = 0) -> bool:
        """Whether the conditions of a set hold at numbers for all coefficients, exactly.

        Args:
            values: a number for every coefficient.
            name: of the set.
            state: which steady state at these numbers, if the conditions contain the fields.

        Raises:
            InvalidArgument: values are missing, or no such set.
            Undecided: both sides of a condition agree to the precision of the enclosures, or with four fields or more
                a Hurwitz determinant vanishes.
        """
        if name not in self.sets:
            raise InvalidArgument(f"expected one of {', '.join(sorted(self.sets))}, got {name!r}")
        chosen = self.sets[name]
        if name == TURING and len(self.fields) == 1:
            return False
        kinetics = self.kinetics.at(values)
        known = self.kinetics.coefficients
        numbers = {known[key]: exact_number(value, key) for key, value in values.items() if key in known}
        if self.at_every_state:
            numbers |= dict(state_at(kinetics, state).point)
        unset = {x for c in chosen.conditions for x in c.inner.free_symbols} - set(numbers) - {lam}
        if unset:
            names = listed(sorted(map(str, unset)))
            raise InvalidArgument(f"expected values for all coefficients, got none for {names}")
        if self.state is not None and not all(holds_at(c.xreplace(numbers)) for c in self.state.conditions):
            return False
        if not all(condition.holds_at(numbers, self.to) for condition in chosen.conditions):
            if len(self.fields) > 3 and name != TURING and self._vanishes(name, numbers):
                raise Undecided(f"{name} is not decided: a Hurwitz determinant vanishes")
            return False
        return all(c.is_sufficient for c in chosen.conditions) or not self._transport_grows(numbers)

    def _vanishes(self, name: str, numbers: Mapping[sp.Basic, sp.Expr]) -> bool:
        """Whether a Hurwitz determinant of a set is zero, for every lam if it depends on lam."""
        matrix = self.symbol.xreplace({public(x): value for x, value in numbers.items()})
        matrix = matrix if name == WAVE else matrix.subs(public(lam), 0)
        return any(sp.expand(minor) == 0 for minor in hurwitz_determinants(characteristic(matrix))[:-1])

    def _transport_grows(self, numbers: Mapping[sp.Basic, sp.Expr]) -> bool:
        """Whether transport alone makes a mode grow; for conditions that are only necessary."""
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
        for name, conditions in self.sets.items():
            text = str(conditions)
            rows.append((name, text.removeprefix(f"{name} ")))
        return [*rows, ("assumes", self.assumes)]

    def to_dict(self) -> dict[str, Any]:
        """The sets of conditions and their outcomes as texts."""
        return {
            "value": self.value,
            "status": str(self.status),
            "state": None if self.state is None else self.state.to_dict(),
            "symbol": [[str(entry) for entry in row] for row in self.symbol.tolist()],
            "sets": {name: conditions.to_dict() for name, conditions in self.sets.items()},
            "range": [0, str(self.to)],
            "assumes": self.assumes,
        }


@reads_system
@within_budget()
def turing(system: System, state: int | Mapping[str, Any] = 0, *, to: Any = END) -> Turing:
    """Conditions for patterns: a steady state that is stable where all nodes agree and unstable on a graph.

    Args:
        system: one or several fields.
        state: which of `steady_states(system)`, or the values of its fields as numbers.
        to: the end of the range of lam; `sympy.oo` gives the classical conditions.

    Returns:
        Named inequalities in the coefficients, and whether they are satisfiable under the assumptions. One field has no
        Turing instability; the answer then says whether transport alone makes modes grow.

    Raises:
        NotApplicable: no state stays equal in all nodes.
        InvalidArgument: there is no such state.
        Undecided: time ran out.

    >>> import sympy as sp, rdgraph as rd
    >>> s = rd.parse("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v")
    >>> answer = rd.turing(s, to=sp.oo)
    >>> answer.outcome, answer.conditions["activation"]
    ('possible', -Du*(a + b)**3 - Dv*(a - b) > 0)
    >>> rd.turing("F").outcome
    'impossible'
    """
    end = sp.oo if to in (sp.oo, float("inf")) else exact_number(to, "end of the range")
    return turing_of(system_kinetics(system), state, end)


def turing_of(kinetics: Kinetics, state: int | Mapping[str, Any] = 0, to: sp.Expr = END) -> Turing:
    """Turing's conditions for kinetics."""
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
    """The steady state in closed form; None where the conditions contain the fields."""
    if kinetics.is_linear or (len(kinetics.fields) == 1 and state == 0):
        return None
    if isinstance(state, Mapping):
        return state_at(kinetics, state)
    states = solve_states(kinetics)
    if not states.states and state == 0:
        return None
    chosen = numbered(states, state)
    return chosen if chosen.how == EXACT and not chosen.free else None


def _short(entry: sp.Expr) -> sp.Expr:
    if not entry.is_rational_function():
        return sp.collect(sp.expand(entry), lam)
    polynomial = sp.Poly(entry, lam) if entry.has(lam) else None
    if polynomial is None:
        return sp.factor(entry)
    return sp.Add(*(sp.factor(c) * lam**k for (k,), c in polynomial.terms()))
