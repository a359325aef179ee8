"""Is there a real point at which these conditions hold? z3 decides, and cvc5 gives a second opinion.

Every question that is polynomial or piecewise polynomial in coefficients, eigenvalue, states and masks comes here:
"impossible" is a proof by z3 that cvc5 is asked to confirm, "possible" comes with a point that was evaluated again
without z3, anything else is unknown. Where the two engines contradict each other, the question is undecided. This
module alone knows z3. Questions are remembered, counted, limited in effort, and can be recorded as SMT-LIB.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import math
import os
import random
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.basis import ALONE, BOTH, EVALUATED, Watch, rest_on
from rdgraph.reals.basis import BOUNDED as BOUNDED
from rdgraph.reals.basis import rest_on_enclosures as rest_on_enclosures
from rdgraph.reals.basis import watched as watched
from rdgraph.reals.budget import remaining_time, spend, spent, unmetered
from rdgraph.reals.enclosure import holds
from rdgraph.reals.rewriting import NotRewritten, Rewriting, rewrite
from rdgraph.reals.second_engine import Consultation, Opinion
from rdgraph.reals.smtlib import NotTranslated, SmtProblem, translate
from rdgraph.vocabulary.functions import FUNCTIONS

#: Effort of one question in z3's own units, which do not depend on the machine: a short attempt, then a long one. Of
#: 7,206 questions that z3 decides, 7,203 take less than 75,000 units and the others less than 160,000; beyond, a unit
#: may take a hundred times as long. Seconds are a last resort.
EFFORTS = (80_000, 200_000)
SECONDS = 60.0
#: What a question, and a unit of z3's effort for it, cost of the effort of an answer, in seconds.
COST, UNIT_COST = 0.003, 1.5e-6
#: Characters of a problem beyond which there is no long attempt: its polynomials make the units slow.
LONG_TEXT = 3000
#: z3's options. By default z3 4.15 drops coefficients from its projections and then calls possible things impossible.
OPTIONS = {"add_all_coeffs": True}
#: Points tried between the two attempts: they can only show that something is possible.
SAMPLES = 40
#: Environment variable with the folder for obligations on which engines disagree, and the folder without it.
FOLDER_VARIABLE, FOLDER = "RDGRAPH_OBLIGATIONS", "rdgraph-obligations"

P = ParamSpec("P")
A = TypeVar("A")


class Possibility(Enum):
    """Whether conditions can hold together."""

    IMPOSSIBLE = "unsat"
    POSSIBLE = "sat"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Ruling:
    """An outcome; a point where the conditions hold, if possible; why, if unknown.

    `bounded` says that the proof rests on rational bounds of transcendental numbers (interval arithmetic). `effort`
    counts attempts of the solver, a long one as many short ones, and `cost` is in seconds of the reference machine;
    both are the same on every machine. `engines` says who decided: `BOTH`, `ALONE` or `EVALUATED`; "" where no solver
    was needed.
    """

    outcome: Possibility
    point: dict[sp.Basic, sp.Expr] | None = None
    reason: str = ""
    bounded: bool = False
    effort: int = 1
    cost: float = COST
    engines: str = ""


@dataclass(frozen=True)
class Obligation:
    """A question that was decided: the conditions in words, the problem as SMT-LIB text, the outcome.

    `point` has the rational coordinates of a point where the conditions hold, by the names in the text.
    """

    statement: str
    smt2: str
    outcome: Possibility
    point: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Identity:
    """Two terms of the language that were proved to be equal, in prefix form, with definitions and kinds of letters."""

    statement: str
    left: str
    right: str
    given: tuple[tuple[str, str], ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()


class Record(list[Obligation]):
    """The questions that were asked, in their order, and the identities that were proved."""

    def __init__(self) -> None:
        super().__init__()
        self.identities: list[Identity] = []


@dataclass
class Statistics:
    """Counts of new questions, how they ended, and who proved those that are impossible, since the program began."""

    asked: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    proofs: Counter[str] = field(default_factory=Counter)
    unchecked: int = 0
    contradictions: int = 0


@dataclass
class Allowance:
    """The effort that a search may still spend, and the allowance around it."""

    effort: int
    outer: Allowance | None = None

    def spend(self, effort: int) -> None:
        self.effort -= effort
        if self.outer is not None:
            self.outer.spend(effort)
        if self.effort < 0:
            raise Undecided("the effort allowed to a search is spent")


statistics = Statistics()
_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)
_record: ContextVar[Record | None] = ContextVar("record", default=None)


def possible(*conditions: sp.Basic, thorough: bool = True) -> Ruling:
    """Whether all conditions hold at some real point at which everything in them is defined.

    Conditions are relations between real expressions and their combinations by And, Or and Not; the signs of symbols
    are those of their sympy assumptions. A question that only helps may be given up after a short attempt, not
    `thorough`.

    >>> a, b = sp.symbols("a b", positive=True)
    >>> possible(a**2 + b**2 < 2 * a * b).outcome
    <Possibility.IMPOSSIBLE: 'unsat'>
    >>> possible(a * b > 1, a + b < 2.5).outcome
    <Possibility.POSSIBLE: 'sat'>
    """
    present = tuple(dict.fromkeys(c for c in conditions if c != sp.true))
    if sp.false in present:
        return Ruling(Possibility.IMPOSSIBLE)
    ruling, problem = unmetered(_judged, present, thorough)
    spend(ruling.cost)
    record = _record.get()
    if record is not None and problem is not None:
        words = ", ".join(map(str, present)) or "true"
        record.append(Obligation(words, problem.script(ruling.outcome.value), ruling.outcome, _named(ruling, problem)))
    rest_on(Watch(ruling.bounded, Counter([ruling.engines] if ruling.engines else [])))
    allowance = _allowance.get()
    if allowance is not None:
        allowance.spend(ruling.effort)
    return ruling


def always(claim: sp.Basic, *conditions: sp.Basic) -> bool | None:
    """Whether a claim holds wherever the conditions do: proved, refuted by a point, or None.

    >>> x, y, z = sp.symbols("x y z", nonnegative=True)
    >>> always(x**3 + y**3 + z**3 >= 3 * x * y * z)
    True
    """
    ruling = possible(sp.Not(claim), *conditions)
    return {Possibility.IMPOSSIBLE: True, Possibility.POSSIBLE: False, Possibility.UNKNOWN: None}[ruling.outcome]


def within_effort(effort: int, search: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a search returns that asks within an effort; `Undecided` beyond it.

    Questions that were answered before count like new ones, so that the outcome depends neither on the machine nor on
    what was asked earlier.

    >>> x = sp.Symbol("x", real=True)
    >>> within_effort(1, possible, x > 0).outcome
    <Possibility.POSSIBLE: 'sat'>
    >>> within_effort(1, lambda: [possible(x > k) for k in range(9)])
    Traceback (most recent call last):
      ...
    rdgraph.errors.Undecided: the effort allowed to a search is spent
    """
    token = _allowance.set(Allowance(effort, _allowance.get()))
    try:
        return search(*args, **kwargs)
    finally:
        _allowance.reset(token)


@contextmanager
def recorded() -> Iterator[Record]:
    """Collect every question asked in the block; cached answers are recomputed."""
    record = Record()
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)


def note_identity(identity: Callable[[], Identity]) -> None:
    """Add an identity to the record of the block, if there is one."""
    record = _record.get()
    if record is not None:
        record.identities.append(identity())


def remembered(maxsize: int) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """`lru_cache` for answers, bypassed while questions are recorded, and recomputed when functions come or go.

    A remembered answer rests on what it rested on when it was computed, and costs the same effort.
    """

    def decorate(question: Callable[P, A]) -> Callable[P, A]:
        @lru_cache(maxsize)
        def cached(functions: int, *args: P.args, **kwargs: P.kwargs) -> tuple[A, Watch, float]:
            before = spent()
            with watched(counts=False) as watch:
                answer = question(*args, **kwargs)
            return answer, watch, spent() - before

        @wraps(question)
        def ask(*args: P.args, **kwargs: P.kwargs) -> A:
            if _record.get() is not None:
                return question(*args, **kwargs)
            before = spent()
            answer, basis, effort = cached(FUNCTIONS.version, *args, **kwargs)  # type: ignore[arg-type]
            spend(before + effort - spent())  # nothing where it was computed now
            rest_on(basis)
            return answer

        return ask

    return decorate


@lru_cache(maxsize=50_000)
def _judged(conditions: tuple[sp.Basic, ...], thorough: bool) -> tuple[Ruling, SmtProblem | None]:
    """The ruling and the problem that was solved; one that ran out of time is not remembered."""
    statistics.asked += 1
    try:
        algebraic = rewrite(conditions)
        problem = translate(algebraic.conditions + algebraic.facts)
    except (NotRewritten, NotTranslated) as reason:
        statistics.outcomes[Possibility.UNKNOWN.value] += 1
        return Ruling(Possibility.UNKNOWN, reason=str(reason)), None
    before = spent()
    ruling = _solved(problem, algebraic, conditions, thorough)
    ruling = replace(ruling, cost=COST + spent() - before)
    statistics.outcomes[ruling.outcome.value] += 1
    if ruling.outcome is Possibility.IMPOSSIBLE:
        statistics.proofs[ruling.engines] += 1
    return ruling, problem


def _named(ruling: Ruling, problem: SmtProblem) -> dict[str, Fraction]:
    """The rational coordinates of the ruling's point, by the names of the problem."""
    point = ruling.point or {}
    values = {name: point.get(letter) for name, letter in problem.letters.items()}
    return {name: Fraction(int(x.p), int(x.q)) for name, x in values.items() if isinstance(x, sp.Rational)}


def _solved(problem: SmtProblem, algebraic: Rewriting, conditions: tuple[sp.Basic, ...], thorough: bool) -> Ruling:
    """A short attempt of the solver, then points at random, then a long attempt."""
    try:
        import z3  # noqa: F401
    except ImportError:
        return Ruling(Possibility.UNKNOWN, reason="z3-solver is not installed")
    first, second = EFFORTS
    ruling = _attempt(problem, algebraic, conditions, first)
    attempts = 1
    if ruling is None and thorough:
        point = _sampled(conditions)
        if point is not None:
            return Ruling(Possibility.POSSIBLE, point)
        if len(problem.text) <= LONG_TEXT:
            ruling = _attempt(problem, algebraic, conditions, second)
            attempts += second // first
    ruling = ruling or Ruling(Possibility.UNKNOWN, reason="no decision within the effort allowed to one question")
    return replace(ruling, effort=attempts)


def _attempt(problem: SmtProblem, algebraic: Rewriting, conditions: tuple[sp.Basic, ...], effort: int) -> Ruling | None:
    """The ruling of both engines; None where z3's effort was not enough.

    During a long attempt of z3, cvc5 works on the problem at the same time.
    """
    import z3

    second = Consultation(problem.text) if effort > EFFORTS[0] else None
    try:
        answer, model = _checked(problem, effort)
        if answer == z3.unsat:
            second = second or Consultation(problem.text)
            engines = _confirmed(second, Opinion.UNSAT, problem, algebraic, conditions)
            return Ruling(Possibility.IMPOSSIBLE, bounded=algebraic.bounded, engines=engines)
        if answer == z3.sat:
            return _possible_at(_values(model, problem), second, problem, algebraic, conditions)
    except ctypes.ArgumentError as problem:  # what is raised while ctypes reads the arguments of z3 keeps only its name
        if KeyboardInterrupt.__name__ in str(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        if second is not None:
            second.drop()
    return None


def _possible_at(
    values: dict[sp.Basic, sp.Expr], second: Consultation | None, problem: SmtProblem, algebraic: Rewriting,
    conditions: tuple[sp.Basic, ...],
) -> Ruling:  # fmt: skip
    """The ruling from z3's point: it is evaluated without z3, and cvc5 is asked unless that was rational arithmetic."""
    letters = {x for c in conditions for x in c.free_symbols}
    for point in _points(values, algebraic, letters):
        if _holds_at(conditions, point):
            is_exact = algebraic.conditions == conditions and all(x.is_Rational for x in point.values())
            if is_exact:
                return Ruling(Possibility.POSSIBLE, point, engines=EVALUATED)
            second = second or Consultation(problem.text)
            engines = _confirmed(second, Opinion.SAT, problem, algebraic, conditions)
            return Ruling(Possibility.POSSIBLE, point, engines=engines if engines == BOTH else EVALUATED)
    if algebraic.conditions != conditions:
        reason = "possible for what is known of the functions, which need not be attained"
        return Ruling(Possibility.UNKNOWN, reason=reason)
    statistics.unchecked += 1
    return Ruling(Possibility.UNKNOWN, reason="a point was found, but its exact evaluation did not confirm it")


def _confirmed(
    second: Consultation, outcome: Opinion, problem: SmtProblem, algebraic: Rewriting, conditions: tuple[sp.Basic, ...]
) -> str:
    """Who decided, when z3 has; raises `Undecided` where cvc5 contradicts it.

    Where cvc5 has no answer it is asked once more, without quotients, which are hard for it.
    """
    opinion = second.opinion()
    if opinion is Opinion.NONE:
        with suppress(Undecided):  # a quotient that is too large to be cleared
            cleared = translate(algebraic.conditions + algebraic.facts, quotients=False)
            if cleared.text != problem.text:
                problem, opinion = cleared, Consultation(cleared.text).opinion()
    if opinion is Opinion.NONE:
        return ALONE
    if opinion is outcome:
        return BOTH
    statistics.contradictions += 1
    statement = ", ".join(map(str, conditions))
    answers = {"z3": outcome.value, "cvc5": opinion.value}
    raise Undecided(report_contradiction(problem.script("unknown"), statement, answers))


def report_contradiction(script: str, statement: str, answers: dict[str, str]) -> str:
    """Write an obligation on which engines disagree to a file, warn, and return the reason for leaving it undecided.

    Args:
        script: the obligation in SMT-LIB.
        statement: its conditions in words.
        answers: the answer of each engine by name.
    """
    disagreement = " and ".join(f"{name} answers {answer}" for name, answer in answers.items())
    path = Path(os.environ.get(FOLDER_VARIABLE) or FOLDER) / f"{hashlib.sha256(script.encode()).hexdigest()[:16]}.smt2"
    header = "".join(f"; {line}\n" for line in [*statement.splitlines(), disagreement])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + script, encoding="utf-8")
        advice = f"please report the file {path}"
    except OSError as problem:
        advice = f"the obligation could not be written ({problem}); set {FOLDER_VARIABLE} to a folder"
    reason = f"two engines contradict each other on one obligation ({disagreement}): {advice}"
    warnings.warn(reason, RuntimeWarning, stacklevel=2)
    return reason


def _checked(problem: SmtProblem, effort: int) -> tuple[Any, Any]:
    """z3's answer, and its model where it says that the problem can be solved; `Undecided` where time ran out."""
    import z3

    solver = z3.Tactic("qfnra-nlsat").solver()
    limits = {"rlimit": effort, "timeout": max(1, int(1000 * min(SECONDS, remaining_time())))}
    _set(solver, {**limits, **{n: v for n, v in OPTIONS.items() if n in _settings()}})
    solver.from_string(problem.text)
    before = _units(solver)
    answer = solver.check()
    if answer == z3.unknown and solver.reason_unknown() == "interrupted from keyboard":
        signal.raise_signal(signal.SIGINT)  # which z3 keeps to itself
        return _checked(problem, effort)  # where the signal is deferred or ignored
    spend(UNIT_COST * (_units(solver) - before))
    if answer == z3.unknown and remaining_time() < 0.01:
        raise Undecided("time ran out")
    return answer, solver.model() if answer == z3.sat else None


def _units(solver: Any) -> int:
    """z3's own units of effort spent so far, by all solvers."""
    counts = solver.statistics()
    return int(counts.get_key_value("rlimit count")) if "rlimit count" in counts.keys() else 0  # noqa: SIM118


def _set(solver: Any, options: dict[str, int | bool]) -> None:
    """Set options of a solver: z3's own object for them cannot be ended halfway by a limit of time, and says so."""
    from z3 import z3core

    context = solver.ctx.ref()
    parameters = z3core.Z3_mk_params(context)
    z3core.Z3_params_inc_ref(context, parameters)
    for name, value in options.items():
        symbol = z3core.Z3_mk_string_symbol(context, name)
        write = z3core.Z3_params_set_bool if isinstance(value, bool) else z3core.Z3_params_set_uint
        write(context, parameters, symbol, value)
    z3core.Z3_solver_set_params(context, solver.solver, parameters)
    z3core.Z3_params_dec_ref(context, parameters)


@lru_cache(maxsize=1)
def _settings() -> frozenset[str]:
    """What can be set in this version of the solver."""
    import z3

    known = z3.Tactic("qfnra-nlsat").solver().param_descrs()
    return frozenset(known.get_name(i) for i in range(known.size()))


def _sampled(conditions: tuple[sp.Basic, ...]) -> dict[sp.Basic, sp.Expr] | None:
    """A point where the conditions hold, by trying rational numbers of several orders of magnitude."""
    letters = sorted({x for c in conditions for x in c.free_symbols}, key=str)
    generator = random.Random(0)
    for _ in range(SAMPLES):
        point = {x: _example(x, generator) for x in letters}
        if _holds_at(conditions, point):
            return point
    return None


def _example(letter: Any, generator: random.Random) -> sp.Rational:
    size = sp.Rational(generator.randint(1, 40), generator.choice((1, 2, 4, 10, 40)))
    negative = letter.is_nonpositive or (not letter.is_nonnegative and generator.random() < 0.5)
    return -size if negative else size


def _values(model: Any, problem: SmtProblem) -> dict[sp.Basic, sp.Expr]:
    """The solver's point as exact numbers: rational, or roots of polynomials."""
    import z3

    values: dict[sp.Basic, sp.Expr] = {}
    for entry in model.decls():
        letter = problem.letters.get(entry.name())
        if letter is None:
            continue
        value = model[entry]
        if isinstance(value, z3.RatNumRef):
            values[letter] = sp.Rational(value.numerator_as_long(), value.denominator_as_long())
        else:
            x = sp.Dummy("x")
            coefficients = [sp.Rational(c.numerator_as_long(), c.denominator_as_long()) for c in value.poly()]
            polynomial = sum(c * x**k for k, c in enumerate(coefficients))
            values[letter] = sp.rootof(polynomial, x, value.index() - 1)
    return values


def _points(
    values: dict[sp.Basic, sp.Expr], algebraic: Rewriting, letters: set[sp.Basic]
) -> Iterator[dict[sp.Basic, sp.Expr]]:
    """Points in the symbols of the question: rational numbers around the solver's point, then that point."""
    for found in [*_rounded(values), values]:
        point = {x: found.get(x, _default(x)) for x in letters}
        for letter, origin in algebraic.origins:
            point[letter] = origin.xreplace({x: found.get(x, sp.S.One) for x in origin.free_symbols})
        yield point


def _rounded(values: dict[sp.Basic, sp.Expr]) -> list[dict[sp.Basic, sp.Expr]]:
    """The irrational coordinates of a point rounded down and up, at most eight ways for each of two denominators."""
    irrational = [x for x, value in values.items() if not value.is_Rational]
    if not irrational:
        return []
    found = []
    for denominator in (64, 4096):
        for ways in itertools.islice(itertools.product((math.floor, math.ceil), repeat=len(irrational)), 8):
            sides = zip(irrational, ways, strict=True)
            near = {x: sp.Rational(way(float(values[x]) * denominator), denominator) for x, way in sides}
            found.append(values | near)
    return found


def _default(letter: Any) -> sp.Expr:
    """A value for a symbol that the solver did not need."""
    return sp.Integer(-1) if letter.is_nonpositive else sp.S.One


def _holds_at(conditions: tuple[sp.Basic, ...], point: dict[sp.Basic, sp.Expr]) -> bool:
    """Whether the signs of the symbols and every condition hold at a point, checked without the solver."""
    signs = [relation(x, 0, evaluate=False) for x in point for relation in _sign_relations(x)]
    return all(holds(c, point, to_the_last_digit=False) for c in (*signs, *conditions))


def _sign_relations(letter: Any) -> list[Any]:
    found = [(sp.Gt, letter.is_positive), (sp.Lt, letter.is_negative), (sp.Ge, letter.is_nonnegative)]
    return [relation for relation, asked in [*found, (sp.Le, letter.is_nonpositive)] if asked]
