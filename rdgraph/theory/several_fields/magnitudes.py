"""Bounds by the chain rule: how large an expression can be, and how fast it changes, in the max norm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided, UnknownSign
from rdgraph.language.answer_symbols import R, T
from rdgraph.language.normal_form import MASKS, TIME, Act, H, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import is_defined
from rdgraph.reals.domain import POSITIVE, Domain
from rdgraph.reals.regions import Split, cases
from rdgraph.systems.system import System
from rdgraph.theory.growth_at_infinity import order
from rdgraph.theory.several_fields.node_speeds import has_gap, row_size, states_of, timely
from rdgraph.theory.slope_bounds import largest_slope, largest_value, steepest, sup_magnitude
from rdgraph.vocabulary.functions import record_of
from rdgraph.vocabulary.normalisations import Normalisation


@dataclass(frozen=True)
class Magnitudes:
    """Bounds for states and starts with entries |u| <= R if `is_local`, else for all, at times 0 <= t <= T.

    A coefficient of `spread` stands for its largest modulus over nodes and channels, and no bound decreases in it.
    Slopes are measured in the `norm`; in a norm other than inf, |A| <= 1, and single entries of a mixture of channels
    have no bound.
    """

    system: System
    record: Normalisation
    is_local: bool
    norm: str = "inf"

    @property
    def domain(self) -> Domain:
        return timely(self.system.domain)

    @cached_property
    def states(self) -> frozenset[State]:
        """The symbols of the states; the structure of a single field calls it H."""
        return frozenset({*states_of(self.system).values(), H})

    @cached_property
    def spread(self) -> frozenset[str]:
        """Coefficients with several values in one bound: of nodes, and of channels that a matrix mixes."""
        mixtures = {mix for normal in self.system.normals.values() for mix in normal.atoms(Mix)}
        mixed = {x.name for mix in mixtures for x in mix.inner.free_symbols}
        kinds = self.system.coefficients
        names = {n for n, kind in kinds.items() if kind is Kind.NODE or (kind is Kind.CHANNEL and n in mixed)}
        return frozenset({*names, *MASKS})

    def is_spread(self, expression: sp.Expr) -> bool:
        """Whether coefficients of `spread` occur in the expression."""
        return any(x.name in self.spread for x in expression.free_symbols)

    def size(self, expression: sp.Expr) -> sp.Expr:
        """A bound of |expression|; infinite where none is known."""
        if isinstance(expression, State):
            return R if self.is_local else sp.oo
        if isinstance(expression, sp.Symbol):
            return self._letter(expression)
        match expression:
            case sp.Number() | sp.NumberSymbol():
                return sp.Abs(expression)
            case Act():
                return row_size(_names(expression), self.system, self.record) * self.size(expression.inner)
            case Mix():
                return _norms(expression) * self.size(expression.inner) if self.norm == "inf" else sp.oo
            case sp.Add():
                return _sum(self.size(part) for part in expression.args)
            case sp.Mul():
                product = _product(self.size(part) for part in expression.args)
                is_entry = product.has(sp.oo) and not expression.has(Act, Mix, TIME) and not self.is_spread(expression)
                return sup_magnitude(expression, self.is_local) if is_entry else product
            case sp.Pow(exp=sp.Rational()):
                return self._power(expression)
        return self._function(expression)

    def _letter(self, letter: sp.Symbol) -> sp.Expr:
        if letter == TIME:
            return T
        return sp.S.One if letter.name in MASKS else sp.Abs(letter)

    def _power(self, power: sp.Pow) -> sp.Expr:
        if power.exp.is_positive:
            size = self.size(power.base)
            return sp.oo if size.has(sp.oo) else size**power.exp
        floor = self.floor(power.base)
        return sp.oo if floor is None else floor**power.exp

    def floor(self, base: sp.Expr, *, by_node: bool = False) -> sp.Expr | None:
        """A positive lower bound of |base|: a positive part of it, where the rest is never negative; else None.

        An expression without states, times and spread coefficients is its own bound: where it is 0, f has no value.
        With `by_node` the bound may differ between nodes.
        """
        spread = frozenset(MASKS) if by_node else self.spread
        if not base.has(State, TIME) and not any(x.name in spread for x in base.free_symbols):
            return sp.Abs(base)
        plain = base.xreplace({atom: sp.Dummy("z", real=True) for atom in base.atoms(Act, Mix)})
        moving = [x for x in plain.free_symbols if isinstance(x, State | sp.Dummy) or x == TIME or x.name in spread]
        constant, rest = plain.as_independent(*moving, as_Add=True)
        return constant if self.domain.sign(constant) is POSITIVE and self.domain.is_nonnegative(rest) else None

    def _function(self, call: sp.Expr) -> sp.Expr:
        largest = largest_value(call)
        if largest.is_finite:
            return largest
        if not call.args:
            return sp.oo
        if isinstance(call, sp.exp):
            return self._exponential(call.args[0])
        slope, at_zero = largest_slope(call), call.func(sp.S.Zero)
        if slope.is_finite and not has_gap(call) and at_zero != call:  # nothing is known of a learned function at zero
            at_zero = self.size(at_zero)
            return _sum((at_zero, _product((slope, self.size(call.args[0])))))
        return sp.oo

    def _exponential(self, exponent: sp.Expr) -> sp.Expr:
        plain = exponent.xreplace({atom: sp.Dummy("z", real=True) for atom in exponent.atoms(Act, Mix)})
        if self.domain.proves(sp.Le(plain, 0, evaluate=False)):
            return sp.S.One
        size = self.size(exponent)
        return sp.oo if size.has(sp.oo) else sp.exp(size)

    # ------------------------------------------------------------------ slopes
    def slope(self, expression: sp.Expr) -> sp.Expr:
        """A bound of |f(X) - f(Y)|/|X - Y|; in the inf-norm the sum of |derivatives| in all entries of all states.

        A function of one operand, such as tanh((A@H)**2), is bounded as a whole where that is tighter.
        """
        if not expression.has(*self.states):
            return sp.S.Zero
        if isinstance(expression, State):
            return sp.S.One
        match expression:
            case sp.Add():
                return _sum(self.slope(part) for part in expression.args)
            case Act():
                growth = row_size(_names(expression), self.system, self.record) if self.norm == "inf" else sp.S.One
                return _product((growth, self.slope(expression.inner)))
            case Mix():
                return _product((_norms(expression), self.slope(expression.inner)))
        front, moving = expression.as_independent(*self.states, as_Add=False)
        if front.has(State, Act, Mix, TIME) or self.is_spread(front):
            return _product((self.size(front), self.slope(moving)))
        atoms = self._atoms(expression)
        whole = self._of_one(expression, atoms[0]) if len(atoms) == 1 and self._is_taken_whole(expression) else None
        return self._by_chain(expression) if whole is None else _product((whole, self.slope(atoms[0])))

    def _is_taken_whole(self, expression: sp.Expr) -> bool:
        """Whether a function of one operand is bounded as a whole: of an entry, or where the chain rule gives no bound.

        On |u| <= R the values of operands other than entries are unknown.
        """
        if not expression.has(Act, Mix):
            return True
        divides = any(p.exp.is_negative and p.has(*self.states) for p in expression.atoms(sp.Pow))
        return not self.is_local and (divides or self._by_chain(expression).has(sp.oo))

    def _by_chain(self, expression: sp.Expr) -> sp.Expr:
        match expression:
            case sp.Mul():
                return _sum(self._of_factor(expression, k) for k in range(len(expression.args)))
            case sp.Pow(exp=sp.Rational()):
                outer = _product((sp.Abs(expression.exp), self.size(expression.base ** (expression.exp - 1))))
                return _product((outer, self.slope(expression.base)))
        if largest_slope(expression).is_finite and not has_gap(expression):
            return _product((largest_slope(expression), self.slope(expression.args[0])))
        if isinstance(expression, sp.exp):
            return _product((self.size(expression), self.slope(expression.args[0])))
        return sp.oo

    def _of_factor(self, product: sp.Mul, k: int) -> sp.Expr:
        """The contribution of one factor to the slope of a product."""
        slope = self.slope(product.args[k])
        if slope == 0:
            return sp.S.Zero
        return _product((slope, *(self.size(a) for j, a in enumerate(product.args) if j != k)))

    def _of_one(self, expression: sp.Expr, atom: sp.Expr) -> sp.Expr | None:
        """The largest slope of a nonlinear function, such as a quotient, in one operand; None for other expressions."""
        function = expression.xreplace({atom: H})
        if function.has(Act, Mix, TIME) or function.atoms(State) != {H} or self.is_spread(function):
            return None
        if function.is_polynomial(H) or not is_defined(function, self.domain, smooth=True):
            return None
        try:
            largest = steepest(function, self.system.domain, local=self.is_local)
        except (Undecided, UnknownSign, NotApplicable, Split):
            return None
        return None if largest.has(sp.oo, -sp.oo, sp.nan, sp.zoo) else largest

    # ------------------------------------------------------------------ growth
    def order(self, expression: sp.Expr) -> sp.Expr:
        """A power q with |expression| <= c (1 + |state|^q) on a fixed graph; infinite where none is known."""
        if not expression.has(*self.states):
            return (
                sp.oo if expression.has(TIME) and self.size(self._settled(expression)).is_finite is False else sp.S.Zero
            )
        if isinstance(expression, State):
            return sp.S.One
        match expression:
            case Act() | Mix():
                return self.order(expression.inner)
            case sp.Add():
                return sp.Max(*(self.order(part) for part in expression.args))
        atoms = self._atoms(expression)
        if len(atoms) == 1 and not expression.xreplace({atoms[0]: H}).has(TIME):
            return self._order_in(expression, atoms[0])
        match expression:
            case sp.Mul():
                return sp.Add(*(self.order(part) for part in self._by_atoms(expression)))
            case sp.Pow(exp=sp.Rational()) if expression.exp.is_positive:
                return self.order(expression.base) * expression.exp
            case sp.Pow() if expression.exp.is_negative and self.floor(expression.base, by_node=True) is not None:
                return sp.S.Zero
        if largest_value(expression).is_finite:
            return sp.S.Zero
        record = record_of(expression)
        if record is not None and record.growth is not None and not has_gap(expression):
            return self.order(expression.args[0])
        if isinstance(expression, sp.exp) and self.order(expression.args[0]) == 0:
            return sp.S.Zero
        return sp.oo

    def _atoms(self, expression: sp.Expr) -> list[sp.Expr]:
        """The largest parts through which an expression depends on the states: u itself, A@(...), (...)@W."""
        if expression in self.states or (isinstance(expression, Act | Mix) and expression.has(*self.states)):
            return [expression]
        return list(dict.fromkeys(atom for part in expression.args for atom in self._atoms(part)))

    def _settled(self, expression: sp.Expr) -> sp.Expr:
        """The expression with fixed numbers for starts and for operators applied to expressions without states."""
        fixed = {a: sp.Dummy("fixed", real=True) for a in expression.atoms(State, Act, Mix) if not self._atoms(a)}
        return expression.xreplace(fixed)

    def _order_in(self, expression: sp.Expr, atom: sp.Expr) -> sp.Expr:
        """The order of a function of one entry of a state, or of one operator applied to it."""
        letter = sp.Dummy("z", real=True)
        flat = self._settled(expression.xreplace({atom: letter}))
        try:
            powers = [p for _, p in cases(self.system.domain, partial(order, flat, letter))]
        except Undecided:
            return sp.oo
        return sp.Max(*powers) * self.order(atom)

    def _by_atoms(self, product: sp.Mul) -> list[sp.Expr]:
        """The factors of a product, those that depend on the states through the same parts multiplied."""
        groups: dict[tuple[frozenset[sp.Expr], bool], sp.Expr] = {}
        for factor in product.args:
            key = (frozenset(self._atoms(factor)), factor.has(TIME))
            groups[key] = groups.get(key, sp.S.One) * factor
        return list(groups.values()) if len(groups) > 1 else list(product.args)


def _names(word: Act | Mix) -> tuple[str, ...]:
    return tuple(w.name for w in word.word)


def _norms(mixed: Mix) -> sp.Expr:
    return sp.Mul(*(sp.Symbol(f"norm_{name}", nonnegative=True) for name in _names(mixed)))


def _sum(parts: Iterable[sp.Expr]) -> sp.Expr:
    """A sum of bounds, infinite where one of them is."""
    terms = list(parts)
    return sp.oo if any(x.has(sp.oo) for x in terms) else sp.Add(*terms)


def _product(parts: Iterable[sp.Expr]) -> sp.Expr:
    """A product of bounds: zero where one of them is, else infinite where one of them is."""
    factors = list(parts)
    if any(x == 0 for x in factors):
        return sp.S.Zero
    return sp.oo if any(x.has(sp.oo) for x in factors) else sp.Mul(*factors)
