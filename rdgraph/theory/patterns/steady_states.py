"""Steady states: all constant states at which every rate vanishes, exact where there is a closed form.

Rational rates with numbers as coefficients are solved completely and exactly. With symbolic coefficients, elimination
solves algebraic rates case by case; for others inverse functions propose closed forms, which are checked, and it is
decided whether there can be more. A state has the conditions under which it is real and the equation is defined there.
Other rates of one field are searched over the whole line by interval arithmetic, those of several fields over a box.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.reals import polynomials
from rdgraph.reals.budget import limited, remaining, within_budget
from rdgraph.reals.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.enclosure import holds, precision
from rdgraph.reals.line_pieces import zeros
from rdgraph.reals.regions import defining_conditions, reduced
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.patterns.box_search import search_box
from rdgraph.theory.patterns.elimination import Continuum, Solutions, real_solutions, solve
from rdgraph.theory.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.theory.patterns.state_stability import stability
from rdgraph.theory.patterns.states import BITS, CERTIFIED, SteadyState, SteadyStates, attracts, line_states
from rdgraph.vocabulary.exact_numbers import exact_number

# ---------------------------------------------------------------------- state conditions
# Short conditions under which a steady state exists; each is defined where those before it hold.

#: The order of conditions of equal complexity: equations first.
_ORDER: dict[type, int] = {sp.Eq: 0, sp.Ne: 1}


def shortened(conditions: Iterable[sp.Basic], domain: Domain) -> tuple[sp.Basic, ...] | None:
    """Short conditions that are equivalent to the given ones on a domain; None where these are contradictory.

    >>> a, b = sp.symbols("a b", real=True)
    >>> shortened([sp.Ne(a * b, 0), sp.Ge(a, 0), sp.Ne(a + sp.sqrt(a**2 + b), 0)], Domain())
    (Ne(b, 0), a > 0, a**2 + b >= 0)
    """
    plain = _put_in(list(dict.fromkeys(part for c in conditions for part in _parts(c))))
    if sp.false in plain:
        return None
    shorter: list[sp.Basic] = []
    for condition in sorted(plain, key=_condition_rank):
        for part in _without_root(condition, domain.where(*shorter)):
            if domain.where(*shorter).proves(part) is not True:
                shorter.append(part)
    shorter = _joined_conditions(sorted(shorter, key=_condition_rank), domain)
    return None if shorter and domain.where(*shorter).is_empty() else tuple(map(_solved_relation, shorter))


def _put_in(conditions: list[sp.Basic]) -> list[sp.Basic]:
    """The conditions with all equations substituted that give a symbol in terms of others."""
    equal: list[sp.Basic] = []
    for condition in (c for c in conditions if isinstance(c, sp.Eq)):
        equal += _zero(reduced(Domain(tuple(equal)), condition.lhs))
    for k in reversed(range(len(equal))):  # later equations are substituted in earlier ones too
        equal[k : k + 1] = _zero(reduced(Domain(tuple(equal[k + 1 :])), equal[k].lhs))
    if sp.false in equal:
        return [sp.false]
    where = Domain(tuple(equal))
    others = [c for c in conditions if not isinstance(c, sp.Eq)]
    put_in = [c if c == sp.false else c.func(reduced(where, c.lhs), 0, evaluate=False) for c in others]
    return list(dict.fromkeys([*equal, *(part for c in put_in for part in _parts(c))]))


def _condition_rank(condition: sp.Basic) -> tuple[int, bool, int, int, str]:
    """A sort key: fewer nested roots first, then without denominators, since later conditions may need earlier ones."""
    total = condition.lhs.is_polynomial(*condition.free_symbols)
    return (_nesting(condition), not total, _ORDER.get(type(condition), 2), condition.count_ops(), str(condition))


def _nesting(expression: sp.Basic) -> int:
    """The depth of nested roots, 2 for sqrt(a + sqrt(b))."""
    return max((1 + _nesting(root.base) for root in _roots(expression)), default=0)


def _roots(condition: sp.Basic) -> list[sp.Expr]:
    return sorted((p for p in condition.atoms(sp.Pow) if _is_root(p)), key=lambda p: (p.count_ops(), str(p)))


def _is_root(expression: sp.Expr) -> bool:
    return isinstance(expression, sp.Pow) and bool(expression.free_symbols) and not expression.exp.is_Integer


def _parts(condition: sp.Basic) -> Iterator[sp.Basic]:
    """A condition with zero on its right, and the conditions for it to be defined; one for each factor of a product."""
    if condition in (sp.true, sp.false):
        yield from (condition,) if condition == sp.false else ()
        return
    gap = sp.sympify(condition.lhs - condition.rhs)
    if not gap.free_symbols:
        if not condition.func(sp.simplify(gap), 0):
            yield sp.false
        return
    yield from (sp.Ge(p.base, 0, evaluate=False) for p in _roots(condition) if not p.base.is_nonnegative)
    if not isinstance(condition, sp.Ne | sp.Eq):  # roots that are divided by are positive
        gap = sp.Mul(*(f for f in sp.Mul.make_args(gap) if not (_is_root(f) and f.exp.is_negative)))
    top, bottom = (sp.expand(part) for part in sp.fraction(sp.together(gap)))
    yield from _nonzero_parts(bottom)
    if not isinstance(condition, sp.Ne | sp.Eq):
        cleared = top if bottom.is_nonnegative else sp.expand(top * bottom)
        is_upward = isinstance(condition, sp.Ge | sp.Gt)
        relation = condition.func if is_upward else condition.reversed.func
        yield relation(cleared if is_upward else -cleared, 0, evaluate=False)
        return
    yield from _nonzero_parts(top) if isinstance(condition, sp.Ne) else _zero(top)


def _zero(expression: sp.Expr) -> list[sp.Basic]:
    """The condition that an expression is zero, without powers and without factors that are not zero."""
    if expression == 0:
        return []
    bases = [base for base in _bases(expression) if not base.is_nonzero]
    return [sp.Eq(_signed(sp.expand(sp.Mul(*bases))), 0, evaluate=False) if bases else sp.false]


def _bases(expression: sp.Expr) -> list[sp.Expr]:
    """The distinct factors of a polynomial or of the radicand of a root; any other expression itself."""
    if isinstance(expression, sp.Pow) and expression.exp.is_positive:
        return _bases(expression.base)
    is_plain = expression.is_polynomial(*expression.free_symbols)
    return [base for base, _ in polynomials.factors(expression)] if is_plain else [expression]


def _nonzero_parts(expression: sp.Expr) -> Iterator[sp.Basic]:
    if expression == 0:
        yield sp.false
        return
    yield from (sp.Ne(_signed(base), 0, evaluate=False) for base in _bases(expression) if not base.is_nonzero)


def _signed(base: sp.Expr) -> sp.Expr:
    return -base if base.could_extract_minus_sign() else base


def _without_root(condition: sp.Basic, domain: Domain) -> list[sp.Basic]:
    """The condition p + q*sqrt(d) != 0 in terms of the factors of p**2 - d*q**2, if each of them decides."""
    roots = list(dict.fromkeys(p.base for p in _roots(condition)))
    if not isinstance(condition, sp.Ne) or len(roots) != 1:
        return [condition]
    if domain.proves(condition) is True:
        return []
    mark = sp.Dummy("root", nonnegative=True)
    polynomial = condition.lhs.replace(
        lambda e: isinstance(e, sp.Pow) and e.base == roots[0] and (2 * e.exp).is_Integer, lambda e: mark ** (2 * e.exp)
    )
    if not polynomial.is_polynomial(*polynomial.free_symbols):
        return [condition]
    rest = sp.rem(polynomial, mark**2 - roots[0], mark)
    p, q = (sp.expand(rest).coeff(mark, k) for k in (0, 1))
    conditions = []
    for factor, _ in polynomials.factors(sp.expand(p**2 - roots[0] * q**2)):
        part = domain.where(sp.Eq(factor, 0, evaluate=False))
        if part.is_empty() or part.proves(condition) is True:
            continue
        if part.proves(sp.Eq(condition.lhs, 0, evaluate=False)) is not True:
            return [condition]
        conditions.append(sp.Ne(_signed(factor), 0, evaluate=False))
    return conditions


def _joined_conditions(conditions: list[sp.Basic], domain: Domain) -> list[sp.Basic]:
    """The conditions with d > 0 for d >= 0 where d = 0 is excluded, and without those that follow from others."""
    if len(conditions) < 2 or any(_roots(c) or not c.lhs.is_polynomial(*c.free_symbols) for c in conditions):
        return conditions
    joined = list(conditions)
    for condition in conditions:
        others = [c for c in joined if c is not condition]
        if isinstance(condition, sp.Ge) and any(isinstance(c, sp.Ne) for c in others):
            strict = sp.Gt(condition.lhs, 0, evaluate=False)
            if domain.where(*others, sp.Eq(condition.lhs, 0, evaluate=False)).is_empty():
                joined = [*others, strict]
    for condition in list(joined):
        others = [c for c in joined if c is not condition]
        if others and domain.where(*others).proves(condition) is True:
            joined = others
    return sorted(joined, key=_condition_rank)


def _solved_relation(condition: sp.Basic) -> sp.Basic:
    """A linear relation in one symbol solved for it: a - 1 = 0 as a = 1."""
    if len(condition.free_symbols) != 1:
        return condition
    (letter,) = condition.free_symbols
    if not condition.lhs.is_polynomial(letter) or sp.degree(condition.lhs, letter) != 1:
        return condition
    slope = condition.lhs.coeff(letter)
    relation = condition.func if slope > 0 or isinstance(condition, sp.Eq | sp.Ne) else condition.reversed.func
    return relation(letter, sp.expand(letter - condition.lhs / slope), evaluate=False)


# ---------------------------------------------------------------------- steady states
#: The box that is searched where rates are not rational, and most conditions of closed forms that are combined.
BOX = (-100, 100)
MAX_CONDITIONS = 4
#: Seconds for closed forms, and the least time for a proof that there are no others.
SOLVING_SECONDS = 4.0
PROVING_SECONDS = 1.0


@reads_system
def steady_states(
    system: System, values: Mapping[str, Any] | None = None, *, box: tuple[Any, Any] = BOX
) -> SteadyStates:
    """All steady states that are equal in all nodes: on them A acts as 1 and L as 0.

    Args:
        system: one or several fields; white noise is ignored.
        values: numbers for all or some of the coefficients; decimals are taken as exact.
        box: the range of every field that is searched if the rates are not rational and all coefficients numbers.

    Returns:
        The states, how each is known, whether they are complete, and which graphs keep states constant.

    Raises:
        NotApplicable: no state stays equal in all nodes, or time occurs.
        InvalidArgument: values are not numbers, or contradict the assumptions.

    >>> import rdgraph as rd
    >>> s = rd.parse("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v")
    >>> rd.steady_states(s)[0].values
    {'u': a + b, 'v': b/(a + b)**2}
    >>> rd.steady_states(s, {"a": 0.1, "b": 0.9}).is_complete
    True
    """
    return solve_states(system_kinetics(system).at(values), box)


def solve_states(kinetics: Kinetics, box: tuple[Any, Any] = BOX) -> SteadyStates:
    """The constant steady states of kinetics with symbols or numbers as coefficients; none where time runs out."""

    def undecided(problem: Undecided) -> SteadyStates:
        return SteadyStates(kinetics.fields, (), False, str(problem), kinetics.assumes)

    return within_budget(undecided)(_solved_states)(kinetics, box)


def _solved_states(kinetics: Kinetics, box: tuple[Any, Any]) -> SteadyStates:
    kinetics = _without_common_factor(kinetics)
    rates = [sp.together(rate) for rate in kinetics.rates]
    letters = kinetics.letters
    if set().union(*(e.free_symbols for e in (*rates, *kinetics.defined))) - set(letters):
        return _closed_forms(kinetics)
    if all(rate.is_rational_function(*letters) for rate in rates) and _has_rational_numbers(rates):
        try:
            return _exact(kinetics, rates)
        except Continuum:
            return _closed_forms(kinetics, "infinitely many steady states; ")
    return _on_line(kinetics, box) if len(letters) == 1 else _searched(kinetics, box)


def _without_common_factor(kinetics: Kinetics) -> Kinetics:
    """The kinetics of one field without nonzero factors of the rate that are independent of the state."""
    if len(kinetics.letters) != 1 or kinetics.rates[0] == 0:
        return kinetics
    factors = sp.Mul.make_args(sp.factor_terms(kinetics.rates[0]))
    dropped = [f for f in factors if not f.has(*kinetics.letters) and kinetics.domain.sign(f) in (POSITIVE, NEGATIVE)]
    sign = sp.Mul(*(1 if kinetics.domain.sign(f) is POSITIVE else -1 for f in dropped))
    rate = sp.expand(sign * sp.Mul(*(f for f in factors if f not in dropped)))
    open_ones = tuple(c for c in kinetics.defined if c.has(*kinetics.letters) or kinetics.domain.proves(c) is not True)
    return replace(kinetics, rates=(rate,), defined=open_ones)


def _has_rational_numbers(rates: Sequence[sp.Expr]) -> bool:
    return all(number.is_Rational for rate in rates for number in rate.atoms(sp.Number, sp.NumberSymbol)) and not any(
        isinstance(power.exp, sp.Rational) and not power.exp.is_Integer
        for rate in rates
        for power in rate.atoms(sp.Pow)
    )


def _exact(kinetics: Kinetics, rates: Sequence[sp.Expr]) -> SteadyStates:
    letters = list(kinetics.letters)
    equations = [sp.expand(sp.fraction(rate)[0]) for rate in rates]
    divisors = [sp.fraction(sp.together(c.lhs - c.rhs))[0] for c in kinetics.defined if isinstance(c, sp.Ne)]
    divisor = sp.Mul(*dict.fromkeys(divisors))
    if divisor != 1:
        unit = sp.Dummy("unit")
        equations.append(sp.expand(unit * divisor - 1))
        letters.append(unit)
    solutions = real_solutions(equations, letters)
    points = [dict(zip(kinetics.letters, solution, strict=False)) for solution in solutions]
    return _answer(
        kinetics,
        [SteadyState(point) for point in points],
        True,
        "all real solutions, counted by the signature of the trace form",
    )


# ---------------------------------------------------------------------- symbolic coefficients
def _closed_forms(kinetics: Kinetics, lead: str = "") -> SteadyStates:
    """Closed forms: all cases by elimination where the rates are algebraic, else proposals that are checked."""
    solutions = Solutions()
    try:
        limited(min(SOLVING_SECONDS, remaining()), solve, kinetics.rates, kinetics.letters, kinetics.domain, solutions)
    except Undecided:
        solutions.is_complete = False
    points = [({x: solution.values.get(x, x) for x in kinetics.letters}, solution) for solution in solutions.solutions]
    states = _distinct([_state(kinetics, point, s.conditions) for point, s in points], kinetics.domain)
    if solutions.algebraic:
        note = "closed forms, case by case in the coefficients" + (
            "" if solutions.is_complete else "; others are not excluded"
        )
        return _answer(kinetics, states, solutions.is_complete, lead + note)
    proposed = [{x: zero} for x in kinetics.letters[:1] for zero in _proposals(kinetics)]
    for point in [*proposed, dict.fromkeys(kinetics.letters, sp.S.Zero)]:
        if not any(value.has(sp.zoo, sp.nan, sp.oo, sp.I) for value in point.values()) and _vanish(kinetics, point):
            states = _distinct([*states, _state(kinetics, point, ())], kinetics.domain)
    complete = remaining() > PROVING_SECONDS and _are_all(kinetics, states)
    note = "closed forms, checked in the equation; " + (
        "others are excluded" if complete else "others are not excluded"
    )
    return _answer(kinetics, states, complete, lead + note)


def _proposals(kinetics: Kinetics) -> list[sp.Expr]:
    """Closed forms of the zeros of one rate by inverse functions, if found in time."""
    if len(kinetics.letters) != 1:
        return []
    try:
        return limited(min(SOLVING_SECONDS, remaining()), zeros, kinetics.rates[0], kinetics.letters[0])
    except Undecided:
        return []


def _vanish(kinetics: Kinetics, point: Mapping[sp.Symbol, sp.Expr]) -> bool:
    return all(sp.simplify(rate.xreplace(dict(point))) == 0 for rate in kinetics.rates)


def _state(kinetics: Kinetics, point: dict[sp.Symbol, sp.Expr], known: Sequence[sp.Basic]) -> SteadyState | None:
    """The state at a point where the rates vanish if `known` holds, with all conditions; None if these never hold."""
    needs = [*known, *(c for value in point.values() for c in defining_conditions(value))]
    needs += [c.func(*(e.xreplace(point) for e in c.args), evaluate=False) for c in kinetics.defined]
    conditions = shortened(needs, kinetics.domain)
    if conditions is None:
        return None
    equal = Domain(tuple(c for c in conditions if isinstance(c, sp.Eq)))
    if equal.conditions:
        point = {x: sp.factor(reduced(equal, v)) if v.is_rational_function() else v for x, v in point.items()}
    free = tuple(x.name for x, value in point.items() if value == x)
    return SteadyState(point, conditions=conditions, free=free)


def _distinct(states: Sequence[SteadyState | None], domain: Domain) -> list[SteadyState]:
    """The states without special cases of others; cases with the same formula are joined."""
    distinct: list[SteadyState] = []
    for state in states:
        if state is None or any(_holds(other, state, domain) for other in distinct):
            continue
        other, joined = next(
            ((o, j) for o in distinct if (j := _joined_states(o, state) or _joined_states(state, o))), (None, state)
        )
        distinct = [o for o in distinct if o is not other and not _holds(joined, o, domain)] + [joined]
    return distinct


def _joined_states(general: SteadyState, special: SteadyState) -> SteadyState | None:
    """One state for two that differ in the conditions e != 0 and e = 0, if the first formula gives both; else None."""
    for zero in (c for c in special.conditions if isinstance(c, sp.Eq)):
        apart = sp.Ne(*zero.args, evaluate=False)
        rest = tuple(c for c in general.conditions if c != apart)
        if len(rest) == len(general.conditions) or set(rest) != set(special.conditions) - {zero}:
            continue
        there = {x: reduced(Domain((zero,)), v) for x, v in general.point.items()}
        if all(sp.expand(there[x] - v) == 0 for x, v in special.point.items()):
            return replace(general, conditions=rest)
    return None


def _holds(family: SteadyState, state: SteadyState, domain: Domain) -> bool:
    """Whether a state belongs to a family wherever it exists: it agrees in all fields that are not free."""
    fixed = [x for x, value in family.point.items() if value != x]
    if any(sp.expand(family.point[x] - state.point[x]) != 0 for x in fixed):
        return False
    where = domain.where(*state.conditions)
    return all(where.proves(c.xreplace(dict(state.point))) is True for c in family.conditions)


def _are_all(kinetics: Kinetics, states: Sequence[SteadyState]) -> bool:
    """Proved: for every choice of which states exist there is no further one."""
    if len({c for state in states for c in state.conditions}) > MAX_CONDITIONS:
        return False
    still = [sp.Eq(sp.fraction(sp.together(rate))[0], 0, evaluate=False) for rate in kinetics.rates]
    cases = [[(*s.conditions, _off_values(s)), *_failing(s.conditions)] for s in states]
    return all(
        kinetics.domain.where(*(c for part in parts for c in part), *still, *kinetics.defined).is_empty()
        for parts in itertools.product(*cases)
    )


def _off_values(state: SteadyState) -> sp.Basic:
    return sp.Or(*(sp.Ne(x, v, evaluate=False) for x, v in state.point.items() if v != x))


def _failing(conditions: Sequence[sp.Basic]) -> Iterator[tuple[sp.Basic, ...]]:
    """The cases in which a given condition is the first to fail, since later ones need not be defined there."""
    for k, condition in enumerate(conditions):
        yield (*conditions[:k], sp.Not(condition))


# ---------------------------------------------------------------------- numbers by interval arithmetic
def _on_line(kinetics: Kinetics, box: tuple[Any, Any]) -> SteadyStates:
    on_line = line_states(kinetics.rates[0], kinetics.letters[0], None if box == BOX else _ends_of(box))
    return _answer(kinetics, on_line.states, on_line.is_complete, on_line.note, on_line.attracting)


def _ends_of(box: tuple[Any, Any]) -> tuple[sp.Rational, sp.Rational]:
    lower, upper = (exact_number(end, "end of the box") for end in box)
    if not (lower.is_Rational and upper.is_Rational and lower < upper):
        raise InvalidArgument(f"expected a box (lower, upper) of two numbers, got {box}")
    return lower, upper


def _searched(kinetics: Kinetics, box: tuple[Any, Any]) -> SteadyStates:
    lower, upper = _ends_of(box)
    search = search_box(kinetics.rates, kinetics.letters, lower, upper)
    origin = dict.fromkeys(kinetics.letters, sp.S.Zero)
    origin_is_steady = all(sp.simplify(rate.xreplace(origin)) == 0 for rate in kinetics.rates)
    states = [] if not origin_is_steady else [SteadyState(origin)]
    others = [z for z in search.zeros if not (origin_is_steady and all(x.contains(0) for x in z))]
    states += [_certified(kinetics.letters, zero) for zero in others]
    note = f"interval arithmetic over the box [{lower}, {upper}] of every field"
    if search.open_boxes:
        middle = ", ".join(f"{m:.6g}" for m, _ in search.open_boxes[0])
        note += f"; nothing is proved in {len(search.open_boxes)} small boxes, one of them around ({middle})"
    else:
        note = f"all in the box [{lower}, {upper}] of every field, by interval arithmetic"
    return _answer(kinetics, states, not search.open_boxes, note)


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
def _has_value(kinetics: Kinetics, state: SteadyState) -> bool:
    """Whether the equation as written may have a value at a state; False if it is proved to have none."""
    needed = (c.xreplace(dict(state.point)) for c in kinetics.defined)
    return all(holds(c) is not False for c in needed if not c.free_symbols)


def _answer(
    kinetics: Kinetics,
    states: Sequence[SteadyState],
    complete: bool,
    note: str,
    attracting: Sequence[bool | None] | None = None,
) -> SteadyStates:
    """The answer: the states in order, with their assumptions and their stability."""
    known = attracting or (_flows(kinetics, states) if complete else [None] * len(states))
    named = [
        replace(with_assumption(state, kinetics), stability=stability(kinetics, state, attracts))
        for state, attracts in zip(states, known, strict=True)
        if _has_value(kinetics, state)
    ]
    ordered = sorted(named, key=lambda state: _state_rank(state, kinetics.domain))
    return SteadyStates(kinetics.fields, tuple(ordered), complete, note, kinetics.assumes)


def _flows(kinetics: Kinetics, states: Sequence[SteadyState]) -> list[bool | None]:
    """Whether neighbouring constant states move towards each state, for one field with a polynomial rate; else None."""
    rate, letters = kinetics.rates[0], kinetics.letters
    if len(letters) != 1 or not rate.is_polynomial(letters[0]) or rate.free_symbols != set(letters):
        return [None] * len(states)
    zeros_of_rate = [sp.sympify(state.point[letters[0]]) for state in states]
    return [attracts(rate, letters[0], zero, zeros_of_rate) for zero in zeros_of_rate]


def with_assumption(state: SteadyState, kinetics: Kinetics) -> SteadyState:
    """The state with its assumptions about the graph, which are weaker for zero."""
    is_zero = all(value == 0 for value in state.point.values())
    assumes = kinetics.modes_assume if is_zero and kinetics.keeps_zero else kinetics.assumes
    return replace(state, assumes=assumes)


def _state_rank(state: SteadyState, domain: Domain) -> tuple[Any, ...]:
    """A sort key: states with positive fields first, then with zeros, then others; at special coefficients last."""
    values = [sp.sympify(value) for value in state.point.values()]
    special = any(isinstance(c, sp.Eq) for c in state.conditions)
    if state.is_number:
        numbers = [float(value) for value in values]
        return (special, any(x < 0 for x in numbers), sum(x == 0 for x in numbers), numbers, "")
    signs = [domain.where(*state.conditions).sign(value) for value in values]
    doubtful = sum(sign not in (POSITIVE, ZERO) for sign in signs)
    return (special, doubtful > 0, sum(sign is ZERO for sign in signs) + doubtful, [], str(values))


# ---------------------------------------------------------------------- one state


def state_at(kinetics: Kinetics, state: int | Mapping[str, Any]) -> SteadyState:
    """The steady state with a number, or with given values, which are checked.

    Raises:
        InvalidArgument: there is no such state, or the rates do not vanish at the values.
        NotApplicable: no steady state was found.
    """
    if isinstance(state, Mapping):
        return _given(kinetics, state)
    return numbered(solve_states(kinetics), state)


def numbered(steady: SteadyStates, state: int) -> SteadyState:
    """The steady state with a number among those that were found; raises as `state_at` does."""
    if isinstance(state, bool) or not isinstance(state, int):
        raise InvalidArgument(f"expected the number of a steady state or values of the fields, got {state!r}")
    if not steady.states:
        raise NotApplicable(f"no steady state that is equal in all nodes was found; {steady.reason}")
    if not 0 <= state < len(steady):
        raise InvalidArgument(f"expected a state among 0..{len(steady) - 1}, got {state}; the states are\n{steady}")
    return steady[state]


def _given(kinetics: Kinetics, values: Mapping[str, Any]) -> SteadyState:
    if set(values) != set(kinetics.fields):
        given = ", ".join(sorted(values)) or "none"
        raise InvalidArgument(f"expected a value for each of {', '.join(kinetics.fields)}, got {given}")
    point = {
        x: exact_number(values[name], f"value of {name}")
        for name, x in zip(kinetics.fields, kinetics.letters, strict=True)
    }  # fmt: skip
    rates = [sp.simplify(rate.xreplace(point)) for rate in kinetics.rates]
    if any(rate != 0 for rate in rates):
        raise InvalidArgument(
            f"{dict(values)} is not a steady state: the rates there are {', '.join(map(str, rates))}; give the number "
            "of a state of steady_states(...)"
        )
    if any(holds(c.xreplace(point)) is False for c in kinetics.defined):
        raise InvalidArgument(f"the equation is not defined at {dict(values)}; take one of steady_states(...)")
    return with_assumption(SteadyState(point), kinetics)
