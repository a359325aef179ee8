"""The examination of one form of f: bounds of the rank, and closed formulas for what is determined."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.utilities.iterables import sift

from rdgraph.answers import Answer, Status
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import Act, Mix
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import condition_in_words, in_words
from rdgraph.systems.canonical.function_identities import CanonicalForm, canonical, is_zero
from rdgraph.systems.system import System
from rdgraph.theory.identifiability.certainty import Certainty
from rdgraph.theory.identifiability.entries import (
    KINKED,
    ExaminedForm,
    FieldEntries,
    Point,
    admissible_points,
    balls,
    certain_rank,
    forms,
    is_unknown,
    sample_states,
    whole,
)
from rdgraph.wording import counted

# ---------------------------------------------------------------------- answer
# The answer about identifiability.


@dataclass(frozen=True, repr=False)
class Identifiability(Answer):
    """What f determines of its coefficients, for coefficients in general position.

    `combinations` are independent formulas whose values f determines. `single` are the coefficients and matrices whose
    values it determines; for those in `local` it is only known that no other value nearby gives the same f (a sign or
    an exchange may be free). `hidden` ones do not occur in f. `rank` is the number of independent combinations, where a
    matrix counts once, and the smallest number if it depends on signs; `status` is proved or measured.
    """

    combinations: tuple[sp.Expr, ...]
    single: tuple[str, ...]
    hidden: tuple[str, ...]
    local: tuple[str, ...] = ()
    rank: int | None = 0
    status: Status = Status.PROVED
    reason: str = ""

    @property
    def value(self) -> tuple[sp.Expr, ...] | None:
        """The combinations; None if undecided."""
        return None if self.status == Status.UNDECIDED else self.combinations

    @property
    def headline(self) -> str:
        if not self.combinations:
            hidden = f"{counted(self.rank or 0, 'combination')} without a closed form"
            return hidden if self.rank else "no coefficient is identifiable"
        verb = "is" if len(self.combinations) == 1 else "are"
        return f"{', '.join(map(in_words, self.combinations))} {verb} identifiable"


# ---------------------------------------------------------------------- gauges
# Gauges: directions in which the coefficients can change without any change of f, found and proved symbolically.
#
# A gauge is a vector v(theta) with sum_i v_i df/dtheta_i = 0 identically in the state, on every graph. The columns
# df/dtheta_i are written in the functions of the canonical form, over the field of the coefficients: a vector in the
# kernel of the coefficient matrix cancels term by term.


@dataclass(frozen=True)
class Gauge:
    """One direction: the rate of every coefficient that changes; a matrix changes by multiples of itself and of I."""

    rates: Mapping[str, sp.Expr]
    moves: str  # "all": one common motion; "channels" or "nodes": one in each channel or node

    def derivative(self, expression: sp.Expr) -> sp.Expr:
        """The rate of an expression in the coefficients along the gauge."""
        return sp.Add(
            *(self.rates[x.name] * sp.diff(expression, x) for x in expression.free_symbols if x.name in self.rates)
        )


def gauges(form: ExaminedForm, *, rewritten: bool) -> tuple[Gauge, ...]:
    """A basis of the gauges of a form of f, unchanged or with dependent functions rewritten.

    The unchanged form takes less time, and gives all gauges if the functions in f are independent.
    """
    if rewritten and form.expression.has(*KINKED):
        form = replace(form, expression=_canonical(form, form.expression).expression)
    columns = _columns(form)
    if not columns:
        return ()
    matrix = _coefficients(form, [column.derivative for column in columns], rewritten)
    kernel = DomainMatrix.from_Matrix(matrix).to_field().nullspace().to_Matrix() if matrix.rows else sp.eye(matrix.cols)
    kernel_gauges = [_gauge(form, columns, list(kernel.row(k))) for k in range(kernel.rows)]
    return tuple(gauge for gauge in kernel_gauges if gauge is not None)


def _canonical(form: ExaminedForm, expression: sp.Expr, further: Sequence[sp.Symbol] = ()) -> CanonicalForm:
    """The canonical form in the algebra of a system, with `further` symbols as scalars."""
    kinds = {**form.kinds, **dict.fromkeys((x.name for x in further), Kind.SCALAR)}
    return canonical(expression, replace(form.system.algebra, kinds=kinds))


@dataclass(frozen=True)
class _Column:
    """A change of one coefficient by `step` times a rate, with one rate, or one rate per channel or node."""

    letter: str
    rate_kind: Kind
    step: sp.Expr
    derivative: sp.Expr


def _columns(form: ExaminedForm) -> list[_Column]:
    """All changes of coefficients; those with one number as rate come last, so that kernels are unit vectors there."""
    columns = [column for name, kind in form.letters.items() for column in _moves(form, name, kind)]
    return sorted(columns, key=lambda column: (column.rate_kind is Kind.SCALAR, column.letter))


def _moves(form: ExaminedForm, name: str, kind: Kind) -> Iterator[_Column]:
    letter = form.symbol(name)
    if kind is Kind.MATRIX:
        slope = derivative(form.expression, letter, form.kinds)
        yield _Column(name, Kind.SCALAR, letter, sp.expand(slope, power_exp=True))
        last = all(letter not in atom.word[:-1] for atom in form.expression.atoms(Mix))
        shifted = derivative(form.expression, letter, form.kinds, identity=True)
        rate_kind = Kind.CHANNEL if last and not _nested(form.expression) else Kind.SCALAR
        yield _Column(name, rate_kind, sp.Symbol("I"), sp.expand(shifted, power_exp=True))
    elif _acted_on(form.expression, name, kind):
        grown = along_itself(form.expression, letter, form.kinds)
        yield _Column(name, Kind.SCALAR, letter, sp.expand(grown, power_exp=True))
    else:
        slope = derivative(form.expression, letter, form.kinds)
        yield _Column(name, kind, sp.S.One, sp.expand(slope, power_exp=True))


def _nested(expression: sp.Expr) -> bool:
    """Whether a matrix acts on what another matrix has mixed."""
    return any(atom.inner.has(Mix) for atom in expression.atoms(Mix))


def _acted_on(expression: sp.Expr, name: str, kind: Kind) -> bool:
    """Whether an operator or a matrix acts on a node or channel coefficient, which can then only change as a whole."""
    across = {Kind.NODE: Act, Kind.CHANNEL: Mix}.get(kind)
    atoms = expression.atoms(across) if across is not None else ()
    return any(x.name == name for atom in atoms for x in atom.inner.free_symbols)


def _gauge(form: ExaminedForm, columns: Sequence[_Column], vector: list[sp.Expr]) -> Gauge | None:
    """A kernel vector as a gauge; None where a scalar would need different rates in different channels or nodes."""
    moving = [(column, sp.sympify(rate)) for column, rate in zip(columns, vector, strict=True) if rate != 0]
    common = [rate for column, rate in moving if column.rate_kind is Kind.SCALAR]
    kinds = {column.rate_kind for column, _ in moving}
    if common:
        moving = [(column, sp.cancel(rate / common[0])) for column, rate in moving]
    for column, rate in moving:
        if not {form.kinds[x.name] for x in rate.free_symbols} <= {Kind.SCALAR, column.rate_kind}:
            return None
    rates: dict[str, sp.Expr] = {}
    for column, rate in moving:
        rates[column.letter] = rates.get(column.letter, sp.S.Zero) + public(rate) * public(column.step)
    return Gauge(rates, {1: _MOVES[next(iter(kinds))]}.get(len(kinds), "all"))


_MOVES = {Kind.SCALAR: "all", Kind.CHANNEL: "channels", Kind.NODE: "nodes"}


def _coefficients(form: ExaminedForm, columns: Sequence[sp.Expr], rewritten: bool) -> sp.Matrix:
    """The columns as sums of functions of the state: one row per function, with coefficients as entries."""
    marks = [sp.Dummy(f"rate{k}", real=True) for k in range(len(columns))]
    total = sp.Add(*(mark * column for mark, column in zip(marks, columns, strict=True)))
    terms = _canonical(form, total, marks) if rewritten else CanonicalForm(sp.expand(total), sp.S.One)
    table = terms.collected([*marks, *map(form.symbol, form.letters)])
    return sp.Matrix([[coefficient.coeff(mark) for mark in marks] for coefficient in table.values()])


def derivative(form: sp.Expr, letter: sp.Symbol, kinds: Mapping[str, Kind], identity: bool = False) -> sp.Expr:
    """Derivative of a normal form in a coefficient; in a matrix W, along W (1 + x), or along W + x*I (`identity`)."""
    if letter not in form.free_symbols:
        return sp.S.Zero
    if isinstance(form, Act | Mix):
        inner = spread(form, derivative(form.inner, letter, kinds, identity), kinds)
        return inner + (_along_matrix(form, letter, identity) if isinstance(form, Mix) else 0)
    atoms = {atom: sp.Dummy(real=True) for atom in _outermost(form)}
    flat = form.xreplace(atoms)
    chain = [sp.diff(flat, x) * derivative(atom, letter, kinds, identity) for atom, x in atoms.items()]
    back = {x: atom for atom, x in atoms.items()}
    return sp.Add(sp.diff(flat, letter), *chain).xreplace(back)


def _along_matrix(atom: Mix, letter: sp.Symbol, identity: bool) -> sp.Expr:
    if not identity:
        return atom.word.count(letter) * atom
    shorter = [atom.word[:k] + atom.word[k + 1 :] for k, symbol in enumerate(atom.word) if symbol == letter]
    return sp.Add(*(Mix(word, atom.inner) if word else atom.inner for word in shorter))


def along_itself(form: sp.Expr, letter: sp.Symbol, kinds: Mapping[str, Kind]) -> sp.Expr:
    """Derivative of a normal form when a coefficient grows in proportion to itself."""
    factor = sp.Dummy("factor", positive=True)
    grown = _replaced(form, letter, factor * letter)
    return derivative(grown, factor, {**kinds, factor.name: Kind.SCALAR}).xreplace({factor: sp.S.One})


def spread(atom: Act | Mix, inner: sp.Expr, kinds: Mapping[str, Kind]) -> sp.Expr:
    """The operator or matrix of an atom applied to a sum, with commuting factors outside."""
    passing = {Kind.SCALAR, Kind.CHANNEL if isinstance(atom, Act) else Kind.NODE}
    total = sp.S.Zero
    for term in sp.Add.make_args(sp.expand(inner)):
        outside, inside = sp.S.One, sp.S.One
        for factor in sp.Mul.make_args(term):
            free = {kinds.get(x.name, Kind.FIELD) for x in factor.free_symbols}
            if free <= passing and not factor.has(Act, Mix):
                outside *= factor
            else:
                inside *= factor
        total += outside * type(atom)(atom.word, inside) if term != 0 else 0
    return total


def _outermost(form: sp.Expr) -> set[sp.Expr]:
    """Operators and matrices that are not inside others."""
    if isinstance(form, Act | Mix):
        return {form}
    return {atom for part in form.args for atom in _outermost(part)}


def _replaced(form: sp.Expr, letter: sp.Symbol, value: sp.Expr) -> sp.Expr:
    """A form with a symbol replaced where it is a factor, but not in words."""
    if isinstance(form, Act | Mix):
        return type(form)(form.word, _replaced(form.inner, letter, value))
    if form == letter:
        return value
    return form.func(*(_replaced(part, letter, value) for part in form.args)) if form.args else form


# ---------------------------------------------------------------------- examination
#: Seconds for the search for closed formulas, which the rank does not need.
CLOSED_FORM_SECONDS = 4.0
#: Number of points at which the rank is certified.
TRIALS = 3
#: Points drawn to find every side of the kinks in coefficients, and how many sides are tried.
SIDE_DRAWS, MOST_SIDES = 50, 8
#: Seconds for rewriting dependent functions, without which the rank may stay measured.
REWRITING_SECONDS = 3.0


def examined(system: System, expression: sp.Expr) -> Identifiability:
    """What a form of f determines of its coefficients, for all signs."""
    names = [name for name, kind in system.letters.items() if is_unknown(name, kind)]
    cells = [(form, Examination(form).answer(names)) for form in forms(system, expression)]
    return cells[0][1] if len(cells) == 1 else _joined(Examination(whole(system, expression)), cells)


def _joined(everything: Examination, cells: list[tuple[ExaminedForm, Identifiability]]) -> Identifiability:
    """The answer for all signs at once."""
    answers = [answer for _, answer in cells]
    nearby = [name for name in everything.form.letters if all(name in (*a.single, *a.local) for a in answers)]
    notes: list[str] = []
    single: list[str] = []
    combinations: list[sp.Expr] = []

    def find() -> None:
        single.extend([name for name in nearby if everything.is_determined(sp.Symbol(name), notes)])
        rank = max(answer.rank or 0 for answer in answers)
        combinations.extend(everything.combinations(single, rank, (), notes))

    try:
        limited(CLOSED_FORM_SECONDS, find)
    except Undecided as problem:
        notes.append(f"closed forms: {problem}")
    if len({(a.rank, a.combinations) for a in answers}) > 1:
        by_sign = "; ".join(
            f"{_signs(form)}: {', '.join(map(str, answer.combinations)) or 'nothing'}" for form, answer in cells
        )
        notes.insert(0, f"what is identifiable depends on signs: {by_sign}")
    return Identifiability(
        tuple(public(c) for c in combinations),
        tuple(single),
        tuple(name for name in answers[0].hidden if all(name in a.hidden for a in answers)),
        tuple(name for name in nearby if name not in single),
        min(answer.rank or 0 for answer in answers),
        Status.PROVED if all(answer.status == Status.PROVED for answer in answers) else Status.MEASURED,
        "; ".join(dict.fromkeys(notes)),
    )


def _away_from(border: sp.Expr) -> sp.Basic:
    """The condition that an expression does not vanish; Heaviside's function does not on the positive side."""
    steps, others = sift(sp.Mul.make_args(border), lambda f: isinstance(f, sp.Heaviside), binary=True)
    pieces = [step.args[0].as_coeff_Add() for step in steps]
    return sp.And(*(rest > -number for number, rest in pieces), *(sp.Ne(f, 0) for f in others))


def _signs(form: ExaminedForm) -> str:
    return ", ".join(f"{name} {'>' if sign == 'positive' else '<'} 0" for name, sign in form.signs.items())


#: States in addition to three per unknown, since relu or a mask may be zero at half of them or more.
SPARE_STATES = 12


class Examination:
    """One form of f, examined from below (entries at states) and from above (gauges)."""

    def __init__(self, form: ExaminedForm) -> None:
        self.form = form
        self.entries = FieldEntries(form)

    def answer(self, names: list[str]) -> Identifiability:
        hidden = [name for name in names if name not in self._occurring or self._is_free(name)]
        if not self.form.letters:
            return Identifiability((), (), tuple(hidden))
        rank, status = self.rank
        local = [name for name in self.form.letters if name in names and self._is_local(name)]
        notes: list[str] = []
        single: list[str] = []
        combinations: list[sp.Expr] = []

        def find() -> None:
            single.extend([name for name in local if self._is_single(name, notes)])
            combinations.extend(self.combinations(single, rank, self.gauges, notes))
            notes.extend([text for name in local if name not in single and (text := self._ambiguity(name))])

        try:
            limited(CLOSED_FORM_SECONDS, find)
        except Undecided as problem:
            notes.append(f"closed forms: {problem}")
        if len(combinations) < rank:
            notes.insert(0, f"{rank - len(combinations)} of {rank} identifiable combinations have no closed form here")
        if status == Status.MEASURED:
            notes.append(f"the rank is only a proved lower bound; {self._doubt}")
        return Identifiability(
            tuple(public(c) for c in combinations), tuple(single), tuple(hidden),
            tuple(name for name in local if name not in single), rank, status, "; ".join(dict.fromkeys(notes)),
        )  # fmt: skip

    # ------------------------------------------------------------------ bounds of the rank
    @cached_property
    def _trials(self) -> list[tuple[int, Point, list[list[Any]]]]:
        """Ranks and Jacobians at a few admissible points."""
        points = (*admissible_points(self.form, self.entries.parameters, TRIALS), *self._across_kinks())
        trials = [(certain_rank(jacobian), point, jacobian) for point in points if (jacobian := self._jacobian(point))]
        if not trials:
            raise Undecided("f is not a finite real number at any of 200 random coefficients and states")
        return trials

    def _across_kinks(self) -> list[Point]:
        """Points on other sides of the kinks that depend on coefficients alone."""
        atoms = self.form.expression.atoms(*KINKED)
        inside = [a.args[0] for a in atoms if a.free_symbols and a.free_symbols <= set(self.entries.parameters)]
        points: dict[tuple[bool, ...], Point] = {}
        for scale in (1, 20) if inside else ():
            for point in admissible_points(self.form, self.entries.parameters, SIDE_DRAWS, scale):
                points.setdefault(tuple(sp.N(x.xreplace(point)) > 0 for x in inside), point)
        return list(points.values())[:MOST_SIDES]

    @property
    def least_rank(self) -> int:
        """A proved lower bound of the rank of df/dtheta, from random states."""
        return max(self._trials, key=lambda trial: trial[0])[0]

    @property
    def point(self) -> Point:
        """Admissible coefficients in general position, with the largest rank of those that were tried."""
        return max(self._trials, key=lambda trial: trial[0])[1]

    @property
    def jacobian(self) -> list[list[Any]]:
        """Balls of df/dtheta at random states."""
        return max(self._trials, key=lambda trial: trial[0])[2]

    @property
    def _doubt(self) -> str:
        if len({rank for rank, _, _ in self._trials}) > 1:
            return "it differs between admissible coefficients, and is the largest that was found"
        return "the upper bound was measured at random states"

    def _jacobian(self, point: Point) -> list[list[Any]]:
        columns = [[sp.diff(value, x) for x in self.entries.parameters] for value in self.entries.values]
        rows: list[list[Any]] = []
        wanted = 3 * len(self.entries.parameters) + SPARE_STATES
        for state in sample_states(self.entries.states, 4 * wanted):
            rows += balls(columns, {**state, **point})
            if len(rows) >= wanted * len(columns):
                break
        return rows

    @cached_property
    def gauges(self) -> tuple[Gauge, ...]:
        """Gauges of f, with dependent functions rewritten where those of the unchanged f do not explain the rank."""
        plain = gauges(self.form, rewritten=False)
        if self._bound(plain) == self.least_rank:
            return plain
        try:
            return limited(REWRITING_SECONDS, gauges, self.form, rewritten=True)
        except (NotApplicable, Undecided):
            return plain

    def _bound(self, directions: tuple[Gauge, ...]) -> int:
        """The upper bound of the rank from gauges."""
        return len(self.entries.parameters) - sum(self._dimension(gauge) for gauge in directions)

    @cached_property
    def rank(self) -> tuple[int, Status]:
        """The number of independent combinations, and its status."""
        if all(rank == self._bound(self.gauges) for rank, _, _ in self._trials):
            return len(self.form.letters) - len(self.gauges), Status.PROVED
        return certain_rank(self._by_letter), Status.MEASURED

    @cached_property
    def _by_letter(self) -> list[list[Any]]:
        """The Jacobian with one column per coefficient, all entries of which change in proportion."""
        origins = [FieldEntries.origin(x) for x in self.entries.parameters]
        sizes = [self.point[x] for x in self.entries.parameters]
        scaled = [[entry * int(v.p) / int(v.q) for entry, v in zip(row, sizes, strict=True)] for row in self.jacobian]
        return [
            [sum(e for e, origin in zip(row, origins, strict=True) if origin == name) for name in self.form.letters]
            for row in scaled
        ]

    def _dimension(self, gauge: Gauge) -> int:
        """The number of directions among the parameters that a gauge represents."""
        if gauge.moves == "all":
            return 1
        if gauge.moves == "channels":
            return self.entries.channels
        names = set(gauge.rates)
        places = {x.name.partition("[")[2] for x in self.entries.parameters if FieldEntries.origin(x) in names}
        return len(places)

    # ------------------------------------------------------------------ what is determined
    @cached_property
    def certainty(self) -> Certainty:
        return Certainty(self.entries, self.point)

    @property
    def _occurring(self) -> set[str]:
        """The coefficients in f, with the factors of products of matrices."""
        return {part for name in self.form.letters for part in name.split("@")}

    def _is_free(self, name: str) -> bool:
        return any(set(gauge.rates) == {name} for gauge in self.gauges) and self.form.kinds[name] is not Kind.MATRIX

    def _is_local(self, name: str) -> bool:
        """Whether f determines a coefficient locally."""
        if self.rank[1] == Status.PROVED:
            return all(name not in gauge.rates for gauge in self.gauges)
        columns = [k for k, x in enumerate(self.entries.parameters) if FieldEntries.origin(x) == name]
        units = [[int(k == j) for j in range(len(self.entries.parameters))] for k in columns]
        return certain_rank([*self.jacobian, *units]) == self.least_rank

    def _is_single(self, name: str, notes: list[str]) -> bool:
        """Whether f determines a coefficient globally; if f is affine in all of them, local means global."""
        if self.entries.is_affine and self.rank[1] == Status.PROVED:
            return True
        return self.is_determined(sp.Symbol(name), notes)

    def is_determined(self, formula: sp.Expr, notes: list[str]) -> bool:
        certain, border = self.certainty.determines(self.entries.parts(formula))
        if certain and border != 1:
            notes.append(f"{formula} where {condition_in_words(public(_away_from(border)))}")
        return certain

    def _ambiguity(self, name: str) -> str:
        """Two values of a coefficient with the same f, as text; empty where none were found."""
        pair = self.certainty.twin(self.entries.parts(sp.Symbol(name)))
        if pair is None or not self._same_function(*pair):
            return ""
        values = [", ".join(f"{x} = {v}" for x, v in point.items()) for point in pair]
        return f"{name} is determined up to finitely many values: {values[0]} and {values[1]} give the same f"

    def _same_function(self, first: Point, second: Point) -> bool:
        """Whether two choices of scalars are proved to give the same f."""
        scalars = all(kind is Kind.SCALAR for kind in self.form.letters.values())
        f = self.form.expression
        return scalars and is_zero(f.xreplace(first) - f.xreplace(second), self.form.system.algebra)

    # ------------------------------------------------------------------ closed formulas
    def combinations(self, single: list[str], rank: int, known: tuple[Gauge, ...], notes: list[str]) -> list[sp.Expr]:
        """The coefficients that are determined, then the simplest formulas that f determines, as many as the rank.

        Formulas that change along a known gauge are skipped.
        """
        chosen: list[sp.Expr] = [sp.Symbol(name) for name in single]
        for formula in self._candidates():
            if len(chosen) >= rank:
                break
            still = all(sp.simplify(gauge.derivative(formula)) == 0 for gauge in known)
            if still and self._is_new(formula, chosen) and self.is_determined(formula, notes):
                chosen.append(_without(formula, {*single, "I"}))
        return chosen

    def _candidates(self) -> Iterator[sp.Expr]:
        plain = sorted({f for r in self.certainty.readings for f in self._in_letters(r)}, key=_simplicity)
        yield from plain
        pairs = list(itertools.permutations(plain[:6], 2))
        yield from sorted({sp.cancel(a / b) for a, b in pairs} | {sp.factor(a * b) for a, b in pairs}, key=_simplicity)

    def _in_letters(self, reading: sp.Expr) -> Iterator[sp.Expr]:
        """A reading in coefficients instead of entries, with one entry of each; terms without a matrix are times I."""
        symbols = {x: sp.Symbol(FieldEntries.origin(x)) for x in reading.free_symbols}
        if len(set(symbols.values())) < len(symbols):
            return
        matrices = {s for s in symbols.values() if self.form.kinds[s.name] is Kind.MATRIX}
        formula = reading.xreplace(symbols)
        if matrices:
            terms = sp.Add.make_args(sp.expand(formula))
            formula = sp.Add(*(t if t.free_symbols & matrices else t * sp.Symbol("I") for t in terms))
        short = sp.factor(formula) if formula.is_rational_function(*formula.free_symbols) else formula
        yield min((short.as_coeff_Mul()[1], formula), key=lambda f: f.count_ops())

    def _is_new(self, formula: sp.Expr, chosen: list[sp.Expr]) -> bool:
        """Whether a formula is independent of the chosen ones, by the rank of the gradients at a point."""
        real = {sp.Symbol(name): sp.Symbol(name, real=True) for name in (*self.form.letters, "I")}
        point: Point = {x: sp.Rational(k + 3, 2 * k + 5) for k, x in enumerate(real.values())}
        rows = [[sp.diff(f.xreplace(real), real[sp.Symbol(n)]) for n in self.form.letters] for f in (*chosen, formula)]
        return certain_rank(balls(rows, point)) == len(rows)


def _without(formula: sp.Expr, known: set[str]) -> sp.Expr:
    """A formula without the terms that depend only on known coefficients.

    >>> a, b, c = sp.symbols("a b c")
    >>> _without(a + b * c, {"a"})
    b*c
    """
    terms = sp.Add.make_args(formula)
    return sp.Add(*(term for term in terms if {x.name for x in term.free_symbols} - known))


def _simplicity(formula: sp.Expr) -> tuple[int, str]:
    return int(formula.count_ops()), str(formula)
