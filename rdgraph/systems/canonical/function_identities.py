"""One form for expressions that are equal: a fraction in independent generators, linear under operators and masks.

Elementwise functions are written in the generators of `function_field`; operands of operators and mixing
matrices are rewritten first and distributed linearly; masks M, with M*M = M, split an expression into
M*f(M=1) + (1 - M)*f(M=0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.normal_form import H0, Act, Algebra, H, Mix
from rdgraph.language.tree import Kind
from rdgraph.reals.judge import Possibility, possible
from rdgraph.systems.canonical.function_field import FinerUnit, FunctionField, common_multiple, ordered

if TYPE_CHECKING:
    from rdgraph.reals.domain import Domain

_Result = TypeVar("_Result")
STATES = (H, H0)
MAX_RESTARTS = 40
MAX_MODULI = 6


@dataclass(frozen=True)
class CanonicalForm:
    """numerator/denominator, polynomials in symbols, `Act` and `Mix` atoms and the functions `generators`.

    `obstacle` says why the generators other than absolute values cannot be claimed independent; it is empty where they
    are. Then equal functions have equal forms on every region in which the `moduli` keep their signs.
    """

    numerator: sp.Expr
    denominator: sp.Expr
    generators: tuple[sp.Expr, ...] = ()
    obstacle: str = ""

    @property
    def expression(self) -> sp.Expr:
        return self.numerator / self.denominator

    @property
    def moduli(self) -> tuple[sp.Expr, ...]:
        """The generators abs(p)."""
        return tuple(g for g in self.generators if isinstance(g, sp.Abs))

    @property
    def is_independent(self) -> bool:
        """Whether a sum of different power products of the generators vanishes only with all its coefficients.

        Absolute values of expressions that each have a separate free symbol take all signs independently.
        """
        if self.obstacle:
            return False
        inside = freed(g.args[0] for g in self.moduli)
        symbols = [p.free_symbols for p in inside]
        free = [{x for x in p.free_symbols if _is_free(p, x)} for p in inside]
        others = [set().union(*symbols[:i], *symbols[i + 1 :]) for i in range(len(symbols))]
        return all(mine - rest for mine, rest in zip(free, others, strict=True))

    def collected(self, letters: Collection[sp.Symbol]) -> dict[sp.Expr, sp.Expr]:
        """The numerator as {core: coefficient}: coefficients in `letters`, cores in all other symbols.

        Functions of `letters` and of a state together, as in exp(alpha*H), belong to the cores.

        >>> from rdgraph.systems.parser import parse
        >>> system = parse("alpha*abs(H) - beta*relu(H) - beta*relu(-H)")
        >>> form = canonical(system.normal, system.algebra)
        >>> form.collected([system.algebra.symbols[n] for n in ("alpha", "beta")])
        {Abs(H): alpha - beta}
        """
        table: dict[sp.Expr, sp.Expr] = {}
        for term in sp.Add.make_args(sp.expand(self.numerator, deep=False)):
            factor, core = sp.S.One, sp.S.One
            for part in sp.Mul.make_args(term):
                if part.free_symbols <= set(letters) and not part.has(Act, Mix):
                    factor *= part
                else:
                    core *= part
            table[core] = table.get(core, sp.S.Zero) + factor
        return {core: sp.expand(c) for core, c in table.items() if sp.expand(c) != 0}


def canonical(expression: sp.Expr, algebra: Algebra | None = None, domain: Domain | None = None) -> CanonicalForm:
    """The canonical form of a normal form, under the rules of an algebra and the signs that a domain knows.

    Without an algebra nothing passes through operators and there are no masks. Raises NotApplicable where the
    expression is not defined anywhere.

    >>> from rdgraph.language.normal_form import H

    >>> from rdgraph.vocabulary.functions import relu, sigmoid
    >>> canonical(relu(H) - relu(-H) - H).numerator
    0
    >>> canonical(2*sigmoid(2*H) - 1 - sp.tanh(H)).numerator
    0
    """
    return _in_units(expression, algebra, domain, lambda rewriting: rewriting.form(expression))


def generated(expression: sp.Expr, algebra: Algebra) -> tuple[FunctionField, sp.Expr, sp.Expr]:
    """Numerator and denominator of the canonical form in the symbols of generators, and the field of these.

    For expressions without operators and matrices.
    """
    return _in_units(expression, algebra, None, lambda rewriting: rewriting.fraction(expression))


def _in_units(
    expression: sp.Expr, algebra: Algebra | None, domain: Domain | None, result: Callable[[_Canonical], _Result]
) -> _Result:
    """The result of a rewriting in units of exponents that are fine enough for all of them."""
    memory = _Memory({}, {}, {})
    for _ in range(MAX_RESTARTS):
        try:
            return result(_Canonical(algebra or Algebra({}, {}, {}), domain, memory))
        except FinerUnit:
            continue
    raise NotApplicable(f"the functions in {expression} have too many arguments without a common unit")


def is_zero(expression: sp.Expr, algebra: Algebra | None = None, domain: Domain | None = None) -> bool:
    """Whether a normal form is proved to vanish wherever it is defined.

    >>> from rdgraph.language.normal_form import H
    >>> is_zero(sp.sin(2*H) - 2*sp.sin(H)*sp.cos(H)), is_zero(sp.tanh(H) - H)
    (True, False)
    """
    return vanishes(expression, algebra, domain) is True


def vanishes(expression: sp.Expr, algebra: Algebra | None = None, domain: Domain | None = None) -> bool | None:
    """True: zero wherever defined. False: not zero, with all symbols, `Act` and `Mix` atoms free. None: unknown."""
    if expression == 0:
        return True
    form = canonical(expression, algebra, domain)
    return _vanishes(form, algebra, domain, ())


def _vanishes(
    form: CanonicalForm, algebra: Algebra | None, domain: Domain | None, region: tuple[sp.Basic, ...]
) -> bool | None:
    """The answer with each absolute value replaced by p and by -p, on the regions that exist."""
    if form.numerator == 0:
        return True
    inner = [g for g in _moduli(form.numerator) if not any(True for _ in _moduli(g.args[0]))]
    if not inner:
        return None if form.obstacle or is_empty(_interior(domain), region) is not False else False
    if len(region) >= MAX_MODULI:
        return None
    answers = []
    modulus, p = inner[0], inner[0].args[0]
    for sign in (1, -1):
        part = (*region, sign * p > 0)
        if is_empty(domain, part):
            continue
        side = canonical(form.numerator.xreplace({modulus: sign * p}), algebra, domain)
        answers.append(_vanishes(side, algebra, domain, part))
        if answers[-1] is False:
            return False
    if not answers:  # p is zero all over the domain
        return _vanishes(
            canonical(form.numerator.xreplace({modulus: sp.S.Zero}), algebra, domain), algebra, domain, region
        )
    return True if all(answers) else None


def _interior(domain: Domain | None) -> Domain | None:
    """The domain without its border, in which a function that is not zero everywhere is not zero at some point."""
    if domain is None:
        return None
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}
    return replace(
        domain,
        conditions=tuple(
            strict.get(type(c), type(c))(*c.args, evaluate=False) if isinstance(c, sp.Rel) else c
            for c in domain.conditions
        ),
    )


def is_empty(domain: Domain | None, region: tuple[sp.Basic, ...]) -> bool | None:
    """Whether no admissible point meets the conditions; `Act` and `Mix` atoms count as free numbers."""
    conditions = (() if domain is None else domain.conditions) + region
    outcome = possible(*freed(conditions)).outcome
    return {Possibility.IMPOSSIBLE: True, Possibility.POSSIBLE: False, Possibility.UNKNOWN: None}[outcome]


def freed(conditions: Iterable[sp.Basic]) -> tuple[sp.Basic, ...]:
    """Conditions or expressions with `Act` and `Mix` atoms replaced by free numbers, the same atom by the same one."""
    free_conditions = tuple(conditions)
    letters = {atom: _free_number(atom) for part in free_conditions for atom in outermost(part)}
    return tuple(part.xreplace(letters) for part in free_conditions)


@cache
def _free_number(atom: Act | Mix) -> sp.Dummy:
    """The one symbol of an atom, so that the solver recognises repeated questions."""
    return sp.Dummy("x", real=True)


def outermost(expression: sp.Basic) -> Iterator[Act | Mix]:
    """The `Act` and `Mix` atoms that do not lie inside others."""
    if isinstance(expression, Act | Mix):
        yield expression
    else:
        for part in expression.args:
            yield from outermost(part)


def _moduli(expression: sp.Basic) -> Iterator[sp.Abs]:
    """Absolute values outside of operators and matrices, nested ones included."""
    if isinstance(expression, sp.Abs):
        yield expression
    if not isinstance(expression, Act | Mix):
        for part in expression.args:
            yield from _moduli(part)


def _is_free(expression: sp.Expr, letter: sp.Symbol) -> bool:
    """Whether an expression takes both signs for every value of its other symbols: odd degree, constant lead."""
    if letter.is_nonnegative or letter.is_nonpositive or not expression.is_polynomial(letter):
        return False
    polynomial = sp.Poly(expression, letter)
    return bool(polynomial.degree() % 2 and polynomial.LC().is_nonzero)


@dataclass(frozen=True)
class _Memory:
    """State kept between rewritings: units of exponents, symbols of atoms, denominators under operators."""

    units: dict[sp.Expr, int]
    letters: dict[sp.Expr, sp.Dummy]
    denominators: dict[tuple[type, tuple[sp.Symbol, ...], int], sp.Expr]


class _Canonical:
    """One rewriting: atoms become symbols, masks split, functions go to the field."""

    def __init__(self, algebra: Algebra, domain: Domain | None, memory: _Memory) -> None:
        self.algebra, self.domain, self.memory = algebra, domain, memory
        self.field = FunctionField(self._is_nonnegative, memory.units)

    def form(self, expression: sp.Expr) -> CanonicalForm:
        top, bottom = self._fraction(expression)
        used = ordered(g for g in self.field.generators if g in top.free_symbols | bottom.free_symbols)
        names = tuple(self._resolve(g) for g in used)
        return CanonicalForm(self._resolve(top), self._resolve(bottom), names, self.field.obstacle())

    def fraction(self, expression: sp.Expr) -> tuple[FunctionField, sp.Expr, sp.Expr]:
        return self.field, *self._fraction(expression)

    def _resolve(self, expression: sp.Expr) -> sp.Expr:
        """The expression with generators and symbols of atoms written out."""
        back = {letter: atom for atom, letter in self.memory.letters.items()}
        return self.field.resolve(expression).xreplace(back)

    def _fraction(self, expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        spread = {atom: self._spread(atom) for atom in set(outermost(expression))}
        return self.field.fraction(self._masked(expression.xreplace(spread)))

    def _masked(self, plain: sp.Expr) -> sp.Expr:
        """f(M) = M*f(1) + (1 - M)*f(0)"""
        mask = next((m for m in self.algebra.masks if plain.has(m)), None)
        if mask is None:
            return self.field.rewrite(plain)
        sides = [plain.xreplace({mask: sp.Integer(value)}) for value in (0, 1)]
        if any(side.has(sp.zoo, sp.nan, sp.oo) for side in sides):
            self.field.obstacles.append(f"a division by zero where {mask} is 0 or 1")
            return self.field.rewrite(plain)
        off, on = (top / bottom for top, bottom in (self.field.fraction(self._masked(side)) for side in sides))
        return mask * on + (1 - mask) * off

    def _spread(self, atom: Act | Mix) -> sp.Expr:
        """An operator or matrix applied to the canonical form of its operand, term by term, atoms as symbols."""
        top, bottom = self._fraction(atom.inner)
        passing, core = self._split(bottom, atom)
        common = self._common_denominator(atom, core)
        terms = sp.Add.make_args(sp.expand(top * sp.cancel(common / core)))
        scale = 1 / self._resolve(passing) / self._resolve(common)
        applied = self.algebra.applied(atom, sp.Add(*(self._resolve(t) * scale for t in terms)))
        letters = self.memory.letters
        return applied.xreplace({a: letters.setdefault(a, _letter(a)) for a in set(outermost(applied))})

    def _split(self, bottom: sp.Expr, atom: Act | Mix) -> tuple[sp.Expr, sp.Expr]:
        """The factors of a denominator that pass through the operator or matrix, and the rest."""
        through = {Kind.SCALAR, Kind.CHANNEL if isinstance(atom, Act) else Kind.NODE}
        passing, core = sp.S.One, sp.S.One
        for factor, power in sp.factor_list(bottom, *ordered(bottom.free_symbols))[1]:
            kinds = {self.algebra.kinds.get(x.name, Kind.FIELD) for x in self._resolve(factor).free_symbols}
            if kinds <= through:
                passing *= factor**power
            else:
                core *= factor**power
        return sp.cancel(bottom / core), sp.expand(core)

    def _common_denominator(self, atom: Act | Mix, core: sp.Expr) -> sp.Expr:
        """One denominator for everything under the same word, so that its terms are linearly independent.

        Atoms of each depth have their own: a denominator holds atoms of smaller depth, which must not depend on it.
        """
        depth = _depth(atom)
        key = (type(atom), atom.word, depth)
        if depth > 1 and core.free_symbols:
            self.field.obstacles.append("a division by operators or matrices under an operator or a matrix")
        known = self._fraction(self.memory.denominators.get(key, sp.S.One))[0]
        common = common_multiple(known, core)
        if sp.cancel(common / known).free_symbols:
            self.memory.denominators[key] = self._resolve(common)
            raise FinerUnit
        return known

    def _is_nonnegative(self, expression: sp.Expr) -> bool:
        if expression.is_nonnegative or self.domain is None:
            return bool(expression.is_nonnegative)
        if any(_is_free(expression, x) for x in expression.free_symbols if isinstance(x, sp.Dummy) or x in STATES):
            return False
        return self.domain.proves(sp.Ge(expression, 0, evaluate=False)) is True


def _depth(expression: sp.Basic) -> int:
    """The depth to which operators and matrices are nested."""
    return max((_depth(part) for part in expression.args), default=0) + isinstance(expression, Act | Mix)


def _letter(atom: Act | Mix) -> sp.Dummy:
    return sp.Dummy(str(atom), real=True)
