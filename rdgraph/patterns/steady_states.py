"""Steady states: all constant states at which every rate vanishes, exact where there is a closed form.

Rational rates with numbers as coefficients are solved completely and exactly. With letters, elimination and inverse
functions propose closed forms, which are put in, and the judge decides whether there can be others. Other rates of one
field are searched over the whole line by interval arithmetic, those of several fields over a box.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from rdgraph.decisions.budget import limited, remaining, within_budget
from rdgraph.decisions.closed_zeros import zeros
from rdgraph.decisions.definedness import defining_conditions
from rdgraph.decisions.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.decisions.enclosure import precision
from rdgraph.errors import InvalidArgument, Undecided
from rdgraph.patterns.box_search import search_box
from rdgraph.patterns.elimination import proposals
from rdgraph.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.patterns.line_states import attracts, line_states
from rdgraph.patterns.real_solutions import Continuum, real_solutions
from rdgraph.patterns.state_stability import stability
from rdgraph.patterns.states import BITS, CERTIFIED, SteadyState, SteadyStates
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System

#: The box that is searched where rates are not rational, and how many conditions of closed forms are combined.
BOX = (-100, 100)
MAX_CONDITIONS = 4
#: Seconds for closed forms, and what must be left for a proof that there are no others.
SOLVING_SECONDS = 4.0
PROVING_SECONDS = 1.0


@reads_system
def steady_states(
    system: System, values: Mapping[str, Any] | None = None, *, box: tuple[Any, Any] = BOX
) -> SteadyStates:
    """All steady states that are the same in all nodes: on them A acts as 1 and L as 0.

    Args:
        system: one or several fields; white noise is left out.
        values: numbers for the coefficients, or for some of them; decimals are taken as written.
        box: the range of every field that is searched where the rates are not rational, for numbers.

    Returns:
        The states, how each is known, whether they are all, and which graphs keep constant states.

    Raises:
        NotApplicable: no state is the same in all nodes, or time occurs.
        InvalidArgument: values are no numbers, or contradict the assumptions.

    >>> import rdgraph as rd
    >>> s = rd.parse("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v")
    >>> rd.steady_states(s)[0].values
    {'u': a + b, 'v': b/(a + b)**2}
    >>> rd.steady_states(s, {"a": 0.1, "b": 0.9}).is_complete
    True
    """
    return solve_states(system_kinetics(system).at(values), box)


def solve_states(kinetics: Kinetics, box: tuple[Any, Any] = BOX) -> SteadyStates:
    """The constant steady states of a kinetics, with symbols or numbers as coefficients; none where time runs out."""

    def undecided(problem: Undecided) -> SteadyStates:
        return SteadyStates(kinetics.fields, (), False, str(problem), kinetics.assumes)

    return within_budget(undecided)(_solved)(kinetics, box)


def _solved(kinetics: Kinetics, box: tuple[Any, Any]) -> SteadyStates:
    kinetics = _without_common_factor(kinetics)
    rates = [sp.together(rate) for rate in kinetics.rates]
    letters = kinetics.letters
    numeric = not set().union(*(rate.free_symbols for rate in rates)) - set(letters)
    if _are_rational(rates, letters):
        if numeric and _has_rational_numbers(rates):
            try:
                return _exact(kinetics, rates)
            except Continuum:
                return _closed_forms(kinetics, rates, "infinitely many steady states; ")
        if not numeric:
            return _closed_forms(kinetics, rates)
    if numeric:
        return _on_line(kinetics, box) if len(letters) == 1 else _searched(kinetics, box)
    return _closed_forms(kinetics, rates)


def _without_common_factor(kinetics: Kinetics) -> Kinetics:
    """The rate of one field without factors that no state occurs in and that are proved not to vanish."""
    if len(kinetics.letters) != 1 or kinetics.rates[0] == 0:
        return kinetics
    factors = sp.Mul.make_args(sp.factor_terms(kinetics.rates[0]))
    dropped = [f for f in factors if not f.has(*kinetics.letters) and kinetics.domain.sign(f) in (POSITIVE, NEGATIVE)]
    sign = sp.Mul(*(1 if kinetics.domain.sign(f) is POSITIVE else -1 for f in dropped))
    return replace(kinetics, rates=(sp.expand(sign * sp.Mul(*(f for f in factors if f not in dropped))),))


def _has_rational_numbers(rates: Sequence[sp.Expr]) -> bool:
    return all(number.is_Rational for rate in rates for number in rate.atoms(sp.Number, sp.NumberSymbol)) and not any(
        isinstance(power.exp, sp.Rational) and not power.exp.is_Integer
        for rate in rates
        for power in rate.atoms(sp.Pow)
    )


def _exact(kinetics: Kinetics, rates: Sequence[sp.Expr]) -> SteadyStates:
    tops, bottoms = zip(*(sp.fraction(rate) for rate in rates), strict=True)
    letters = list(kinetics.letters)
    divisor = sp.Mul(*(b for b in dict.fromkeys(bottoms) if b.free_symbols))
    equations = [sp.expand(top) for top in tops]
    if divisor != 1:
        unit = sp.Dummy("unit")
        equations.append(sp.expand(unit * divisor - 1))
        letters.append(unit)
    solutions = real_solutions(equations, letters)
    states = [SteadyState(dict(zip(kinetics.letters, found, strict=False))) for found in solutions]
    return _answer(kinetics, states, True, "all real solutions, counted by the signature of the trace form")


# ---------------------------------------------------------------------- letters as coefficients
def _closed_forms(kinetics: Kinetics, rates: Sequence[sp.Expr], lead: str = "") -> SteadyStates:
    states: list[SteadyState] = []
    for proposal in [*_proposals(rates, kinetics.letters), dict.fromkeys(kinetics.letters, sp.S.Zero)]:
        state = _checked(kinetics, rates, {x: sp.sympify(proposal.get(x, x)) for x in kinetics.letters})
        if state is not None and not any(_holds(other, state) for other in states):
            states = [other for other in states if not _holds(state, other)] + [state]
    complete = remaining() > PROVING_SECONDS and _are_all(kinetics, rates, states)
    note = "closed forms, put in; " + ("the judge excludes others" if complete else "others are not excluded")
    return _answer(kinetics, states, complete, lead + note)


def _holds(family: SteadyState, state: SteadyState) -> bool:
    """Whether a state is one of a family: it agrees with all that is not free there."""
    fixed = [x for x, value in family.point.items() if value != x]
    return all(sp.expand(family.point[x] - state.point[x]) == 0 for x in fixed)


def _proposals(rates: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> list[Mapping[sp.Symbol, sp.Expr]]:
    """Closed forms of the solutions; those found in time."""
    found: list[Mapping[sp.Symbol, sp.Expr]] = []

    def find() -> None:
        if _are_rational(rates, letters):
            found.extend(proposals(rates, letters))
        elif len(letters) == 1:
            found.extend({letters[0]: zero} for zero in zeros(rates[0], letters[0]))

    try:
        limited(min(SOLVING_SECONDS, remaining()), find)
    except Undecided:
        return found
    return found


def _are_rational(rates: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> bool:
    return all(rate.is_rational_function(*letters) for rate in rates)


def _checked(kinetics: Kinetics, rates: Sequence[sp.Expr], point: dict[sp.Symbol, sp.Expr]) -> SteadyState | None:
    """A proposal as steady state, if every rate vanishes there and it is real for some coefficients."""
    if any(value.has(sp.zoo, sp.nan, sp.oo, sp.I) for value in point.values()):
        return None
    bottoms = [sp.fraction(rate)[1].xreplace(point) for rate in rates]
    conditions = [sp.Ne(sp.factor(b), 0, evaluate=False) for b in bottoms if b.free_symbols]
    if any(b.is_number and b.is_zero for b in map(sp.simplify, bottoms)):
        return None
    if any(sp.simplify(rate.xreplace(point)) != 0 for rate in rates):
        return None
    free = tuple(x.name for x, value in point.items() if value == x)
    conditions += [c for value in point.values() for c in defining_conditions(value)]
    kept: list[sp.Basic] = []
    for condition in dict.fromkeys(conditions):
        if kinetics.domain.where(*kept).proves(condition) is not True:
            kept.append(condition)
    if kept and kinetics.domain.where(*kept).is_empty():
        return None
    return SteadyState(point, conditions=tuple(kept), free=free)


def _are_all(kinetics: Kinetics, rates: Sequence[sp.Expr], states: Sequence[SteadyState]) -> bool:
    """Proved by the judge: where some of the states exist, and others do not, there is no further one."""
    conditions = list(dict.fromkeys(c for state in states for c in state.conditions))
    if len(conditions) > MAX_CONDITIONS:
        return False
    parts = [sp.fraction(rate) for rate in rates]
    still = [sp.Eq(top, 0, evaluate=False) for top, _ in parts]
    defined = [sp.Ne(bottom, 0, evaluate=False) for _, bottom in parts if bottom.free_symbols]
    for truths in itertools.product((True, False), repeat=len(conditions)):
        holding = {c for c, truth in zip(conditions, truths, strict=True) if truth}
        region = [c if c in holding else sp.Not(c) for c in conditions]
        elsewhere = []
        for state in states:
            if set(state.conditions) <= holding:
                apart = [sp.Ne(x, v, evaluate=False) for x, v in state.point.items() if v != x]
                elsewhere.append(sp.Or(*apart))
        if not kinetics.domain.where(*region, *still, *defined, *elsewhere).is_empty():
            return False
    return True


# ---------------------------------------------------------------------- numbers by interval arithmetic
def _on_line(kinetics: Kinetics, box: tuple[Any, Any]) -> SteadyStates:
    found = line_states(kinetics.rates[0], kinetics.letters[0], None if box == BOX else _ends_of(box))
    return _answer(kinetics, found.states, found.is_complete, found.note, found.attracting)


def _ends_of(box: tuple[Any, Any]) -> tuple[sp.Rational, sp.Rational]:
    lower, upper = (exact_number(end, "end of the box") for end in box)
    if not (lower.is_Rational and upper.is_Rational and lower < upper):
        raise InvalidArgument(f"expected a box (lower, upper) of two numbers, got {box}")
    return lower, upper


def _searched(kinetics: Kinetics, box: tuple[Any, Any]) -> SteadyStates:
    lower, upper = _ends_of(box)
    found = search_box(kinetics.rates, kinetics.letters, lower, upper)
    origin = dict.fromkeys(kinetics.letters, sp.S.Zero)
    origin_is_steady = all(sp.simplify(rate.xreplace(origin)) == 0 for rate in kinetics.rates)
    states = [] if not origin_is_steady else [SteadyState(origin)]
    others = [z for z in found.zeros if not (origin_is_steady and all(x.contains(0) for x in z))]
    states += [_certified(kinetics.letters, zero) for zero in others]
    note = f"interval arithmetic over the box [{lower}, {upper}] of every field"
    if found.open_boxes:
        middle = ", ".join(f"{m:.6g}" for m, _ in found.open_boxes[0])
        note += f"; nothing is proved in {len(found.open_boxes)} small boxes, one of them around ({middle})"
    else:
        note = f"all in the box [{lower}, {upper}] of every field, by interval arithmetic"
    return _answer(kinetics, states, not found.open_boxes, note)


def _certified(letters: Sequence[sp.Symbol], zero: Sequence[Any]) -> SteadyState:
    enclosures = {x: _ends(ball) for x, ball in zip(letters, zero, strict=True)}
    middle = {x: sp.Float((low + high) / 2, 30) for x, (low, high) in enclosures.items()}
    return SteadyState(middle, CERTIFIED, enclosures=enclosures)


def _ends(ball: Any) -> tuple[sp.Rational, sp.Rational]:
    """Both ends of a ball, exactly."""

    def rational(end: Any) -> sp.Rational:
        mantissa, exponent = end.man_exp()
        return sp.Rational(int(mantissa)) * sp.Integer(2) ** int(exponent)

    with precision(BITS):
        return rational(ball.lower()), rational(ball.upper())


# ---------------------------------------------------------------------- order and answer
def _answer(
    kinetics: Kinetics,
    states: Sequence[SteadyState],
    complete: bool,
    note: str,
    attracting: Sequence[bool | None] | None = None,
) -> SteadyStates:
    """The states in their order, with what they assume and what becomes of deviations."""
    known = attracting or (_flows(kinetics, states) if complete else [None] * len(states))
    named = [
        replace(with_assumption(state, kinetics), stability=stability(kinetics, state, attracts))
        for state, attracts in zip(states, known, strict=True)
    ]
    ordered = sorted(named, key=lambda state: _rank(state, kinetics.domain))
    return SteadyStates(kinetics.fields, tuple(ordered), complete, note, kinetics.assumes)


def _flows(kinetics: Kinetics, states: Sequence[SteadyState]) -> list[bool | None]:
    """Whether the constant states of one field beside each of all its states move towards it: polynomials alone."""
    rate, letters = kinetics.rates[0], kinetics.letters
    if len(letters) != 1 or not rate.is_polynomial(letters[0]) or rate.free_symbols != set(letters):
        return [None] * len(states)
    places = [sp.sympify(state.point[letters[0]]) for state in states]
    return [attracts(rate, letters[0], place, places) for place in places]


def with_assumption(state: SteadyState, kinetics: Kinetics) -> SteadyState:
    """The state with what it assumes of a graph; zero assumes less than others."""
    is_zero = all(value == 0 for value in state.point.values())
    assumes = kinetics.modes_assume if is_zero and kinetics.zero_is_kept else kinetics.assumes
    return replace(state, assumes=assumes)


def _rank(state: SteadyState, domain: Domain) -> tuple[Any, ...]:
    """States with positive fields first, then those with zeros, then the rest; numbers in their order."""
    values = [sp.sympify(value) for value in state.point.values()]
    if state.is_number:
        numbers = [float(value) for value in values]
        return (any(x < 0 for x in numbers), sum(x == 0 for x in numbers), numbers, "")
    signs = [domain.where(*state.conditions).sign(value) for value in values]
    doubtful = sum(sign not in (POSITIVE, ZERO) for sign in signs)
    return (doubtful > 0, sum(sign is ZERO for sign in signs) + doubtful, [], str(values))
