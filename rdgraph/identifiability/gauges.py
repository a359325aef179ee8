"""Gauges: directions in which the coefficients can move without any change of f, found and proved symbolically.

A gauge is a vector v(theta) with sum_i v_i df/dtheta_i = 0 identically in the state, on every graph. The columns
df/dtheta_i are written in the functions of the canonical form, over the field of the coefficients: a vector in the
kernel of the coefficient matrix cancels term by term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from rdgraph.algebra.normal_form import Act, Mix
from rdgraph.canonical.function_identities import CanonicalForm, canonical
from rdgraph.identifiability.form import KINKED, ExaminedForm
from rdgraph.syntax.answer_symbols import public
from rdgraph.syntax.tree import Kind


@dataclass(frozen=True)
class Gauge:
    """One direction: the rate of every letter that moves; a matrix moves by a multiple of itself and of I."""

    rates: Mapping[str, sp.Expr]
    moves: str  # "all": one common motion; "channels" or "nodes": one in each channel or node

    def derivative(self, expression: sp.Expr) -> sp.Expr:
        """How fast an expression in the letters changes along the gauge."""
        return sp.Add(
            *(self.rates[x.name] * sp.diff(expression, x) for x in expression.free_symbols if x.name in self.rates)
        )


def gauges(form: ExaminedForm, *, rewritten: bool) -> tuple[Gauge, ...]:
    """A basis of the gauges that can be seen in a form of f, as it stands or with dependent functions rewritten.

    What is seen as it stands takes less time, and is all there is where the functions in f are independent.
    """
    if rewritten and form.expression.has(*KINKED):
        form = replace(form, expression=_canonical(form, form.expression).expression)
    columns = _columns(form)
    if not columns:
        return ()
    matrix = _coefficients(form, [column.derivative for column in columns], rewritten)
    kernel = DomainMatrix.from_Matrix(matrix).to_field().nullspace().to_Matrix() if matrix.rows else sp.eye(matrix.cols)
    found = [_gauge(form, columns, list(kernel.row(k))) for k in range(kernel.rows)]
    return tuple(gauge for gauge in found if gauge is not None)


def _canonical(form: ExaminedForm, expression: sp.Expr, further: Sequence[sp.Symbol] = ()) -> CanonicalForm:
    """The canonical form in the algebra of a system, `further` letters being scalars."""
    kinds = {**form.kinds, **dict.fromkeys((x.name for x in further), Kind.SCALAR)}
    return canonical(expression, replace(form.system.algebra, kinds=kinds))


@dataclass(frozen=True)
class _Column:
    """A way to move one letter: by `step` times a rate, the rate being a number (scalar) or one per channel or node."""

    letter: str
    rate_kind: Kind
    step: sp.Expr
    derivative: sp.Expr


def _columns(form: ExaminedForm) -> list[_Column]:
    """The ways to move the letters; those with one number as rate come last, so that kernels are unit vectors there."""
    found = [column for name, kind in form.letters.items() for column in _moves(form, name, kind)]
    return sorted(found, key=lambda column: (column.rate_kind is Kind.SCALAR, column.letter))


def _moves(form: ExaminedForm, name: str, kind: Kind) -> Iterator[_Column]:
    letter = form.symbol(name)
    if kind is Kind.MATRIX:
        own = derivative(form.expression, letter, form.kinds)
        yield _Column(name, Kind.SCALAR, letter, sp.expand(own, power_exp=True))
        last = all(letter not in atom.word[:-1] for atom in form.expression.atoms(Mix))
        shifted = derivative(form.expression, letter, form.kinds, identity=True)
        rate_kind = Kind.CHANNEL if last and not _nested(form.expression) else Kind.SCALAR
        yield _Column(name, rate_kind, sp.Symbol("I"), sp.expand(shifted, power_exp=True))
    elif _acted_on(form.expression, name, kind):
        grown = along_itself(form.expression, letter, form.kinds)
        yield _Column(name, Kind.SCALAR, letter, sp.expand(grown, power_exp=True))
    else:
        own = derivative(form.expression, letter, form.kinds)
        yield _Column(name, kind, sp.S.One, sp.expand(own, power_exp=True))


def _nested(expression: sp.Expr) -> bool:
    """Whether a matrix acts on what another matrix has mixed."""
    return any(atom.inner.has(Mix) for atom in expression.atoms(Mix))


def _acted_on(expression: sp.Expr, name: str, kind: Kind) -> bool:
    """A node or channel coefficient on which an operator or a matrix acts: it can be followed as a whole only."""
    across = {Kind.NODE: Act, Kind.CHANNEL: Mix}.get(kind)
    atoms = expression.atoms(across) if across is not None else ()
    return any(x.name == name for atom in atoms for x in atom.inner.free_symbols)


def _gauge(form: ExaminedForm, columns: Sequence[_Column], vector: list[sp.Expr]) -> Gauge | None:
    """A kernel vector as a gauge; None where a scalar would have to move differently in every channel or node."""
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
    """The columns as sums of functions of the state: one row per function, entries in the letters."""
    marks = [sp.Dummy(f"rate{k}", real=True) for k in range(len(columns))]
    total = sp.Add(*(mark * column for mark, column in zip(marks, columns, strict=True)))
    terms = _canonical(form, total, marks) if rewritten else CanonicalForm(sp.expand(total), sp.S.One)
    table = terms.collected([*marks, *map(form.symbol, form.letters)])
    return sp.Matrix([[coefficient.coeff(mark) for mark in marks] for coefficient in table.values()])


def derivative(form: sp.Expr, letter: sp.Symbol, kinds: Mapping[str, Kind], identity: bool = False) -> sp.Expr:
    """Derivative of a normal form along a letter; along a matrix W, that of W (1 + x), or of W + x*I (`identity`)."""
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
    shorter = [atom.word[:k] + atom.word[k + 1 :] for k, own in enumerate(atom.word) if own == letter]
    return sp.Add(*(Mix(word, atom.inner) if word else atom.inner for word in shorter))


def along_itself(form: sp.Expr, letter: sp.Symbol, kinds: Mapping[str, Kind]) -> sp.Expr:
    """Derivative of a normal form when a letter grows in proportion to itself."""
    factor = sp.Dummy("factor", positive=True)
    grown = _replaced(form, letter, factor * letter)
    return derivative(grown, factor, {**kinds, factor.name: Kind.SCALAR}).xreplace({factor: sp.S.One})


def spread(atom: Act | Mix, inner: sp.Expr, kinds: Mapping[str, Kind]) -> sp.Expr:
    """The operator or matrix of an atom applied to a sum, with what commutes with it taken out."""
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
    """Operators and matrices that stand inside no other."""
    if isinstance(form, Act | Mix):
        return {form}
    return {atom for part in form.args for atom in _outermost(part)}


def _replaced(form: sp.Expr, letter: sp.Symbol, value: sp.Expr) -> sp.Expr:
    """A letter replaced where it is a factor, not where it is a letter of a word."""
    if isinstance(form, Act | Mix):
        return type(form)(form.word, _replaced(form.inner, letter, value))
    if form == letter:
        return value
    return form.func(*(_replaced(part, letter, value) for part in form.args)) if form.args else form
