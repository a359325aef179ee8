"""Turing's conditions: when a steady state that is stable where all nodes agree is unstable on a graph.

The steady state decays without transport, transport alone lets nothing grow, and together some mode of the graph grows.
For two fields these are the classical inequalities between the Jacobian and the diffusivities; for more, those of
Hurwitz. One field never has such an instability: there the growth is that of the constant mode plus that of transport.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.decisions.judge import Possibility, possible
from rdgraph.decisions.maxima import tidy
from rdgraph.patterns.conditions import (
    EVERY_LAM,
    IMPOSSIBLE,
    NO_LAM,
    POSSIBLE,
    SOME_LAM,
    UNDECIDED,
    Condition,
    ConditionSet,
)
from rdgraph.patterns.half_planes import characteristic, hurwitz_determinants
from rdgraph.syntax.answer_symbols import lam

TURING, WAVE, HOPF, TURING_HOPF, ANTI = "turing", "wave", "hopf", "turing-hopf", "anti-diffusion"


@dataclass(frozen=True)
class SymbolicGrowth:
    """P(lam) with letters as coefficients, and where these letters live; `to` is the end of the range of lam."""

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

    # ------------------------------------------------------------------ the sets
    def sets(self) -> dict[str, ConditionSet]:
        """All sets of conditions, judged."""
        if self.size == 1:
            return self._of_one_field()
        stable, damped, band = self.stable_at_zero(), self.damped_transport(), self.stationary_band()
        found = {TURING: self.judged(ConditionSet(TURING, (*stable, *damped, *band)))}
        if self.size > 2:
            wave = self.judged(ConditionSet(WAVE, (*stable, *damped, *self.oscillating_band())))
            found[WAVE] = self._doubted(wave, self.matrix, (*stable, *damped))
        found[HOPF] = self._doubted(self.judged(ConditionSet(HOPF, self.hopf())), self.constant)
        others = (*self.oscillates_at_zero(), *damped, *band)
        both = self.judged(ConditionSet(TURING_HOPF, (*self.hopf(), *others)))
        found[TURING_HOPF] = self._doubted(both, self.constant, others)
        return found

    def _doubted(self, found: ConditionSet, matrix: sp.Matrix, others: tuple[Condition, ...] = ()) -> ConditionSet:
        """A set that is impossible only where no Hurwitz determinant can vanish while none is negative.

        From four fields on a pair of eigenvalues can grow with all determinants zero, as those of s^4 + 1; with fewer,
        one that vanishes leaves nothing that grows, or comes with a negative one.
        """
        if found.outcome != IMPOSSIBLE or self.size < 4:
            return found
        *minors, last = (sp.expand(x) for x in hurwitz_determinants(characteristic(matrix)))
        vanishing = sp.Or(*(sp.Eq(minor, 0, evaluate=False) for minor in minors))
        signs = [sp.Ge(minor, 0, evaluate=False) for minor in minors if minor != 0]
        asked = [vanishing, *signs, sp.Gt(last, 0, evaluate=False), *(c.inner for c in others)]
        in_range = self.in_range if any(sp.sympify(c).has(lam) for c in asked) else ()
        if possible(*self.domain.conditions, *in_range, *asked).outcome is Possibility.IMPOSSIBLE:
            return found
        reason = "no Hurwitz determinant is negative, but one may vanish, which tells nothing of four fields or more"
        return replace(found, outcome=UNDECIDED, reason=reason)

    def _of_one_field(self) -> dict[str, ConditionSet]:
        growing = self.judged(ConditionSet(ANTI, self.amplifying_transport()))
        reason = "with one field the growth is P(0) plus that of transport, and neither may be positive"
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
        """Transport alone lets nothing grow; what the assumptions grant is left out."""
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
        """What must not be negative for all eigenvalues of a matrix to have real parts >= 0."""
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
        found = [
            Condition("activation", self.above(b)),
            Condition("discriminant", self.above(b**2 - 4 * a * c)),
        ]
        if self.to.is_finite:
            at_end = self.below(a * self.to**2 - b * self.to + c)
            before = self.below(b - 2 * a * self.to)
            found.append(Condition(f"band meets (0, {self.to}]", sp.Or(at_end, before)))
        return tuple(found)

    def oscillating_band(self) -> tuple[Condition, ...]:
        """An even number of eigenvalues of P(lam) grows for some lam."""
        *minors, last = (sp.expand(x) for x in hurwitz_determinants(characteristic(self.matrix)))
        unstable = sp.Or(*(sp.Lt(minor, 0, evaluate=False) for minor in minors))
        both = sp.And(unstable, sp.Gt(last, 0, evaluate=False), evaluate=False)
        return (Condition("a Hurwitz determinant < 0 < determinant for lam > 0", both, SOME_LAM),)

    # ------------------------------------------------------------------ short forms, and the judge
    def plain(self, expression: sp.Expr) -> sp.Expr:
        """A short expression with the same sign: positive factors left out, denominators cleared."""
        if not expression.free_symbols or not expression.is_rational_function():
            return expression
        top, bottom = sp.fraction(sp.cancel(sp.together(expression)))
        kept = sp.S.One
        for part in (top, bottom):
            content, factors = sp.factor_list(part)
            kept *= sp.sign(content) * sp.Mul(*(self._sign_of_power(base, times) for base, times in factors))
        if sp.expand(kept) == 0:
            return sp.S.Zero
        return min((tidy(sp.expand(kept)), self._unexpanded(expression)), key=lambda e: (e.count_ops(), str(e)))

    def _sign_of_power(self, base: sp.Expr, times: int) -> sp.Expr:
        """A short expression with the sign of base**times."""
        sign = self.domain.sign(base)
        if sign in (POSITIVE, NEGATIVE):
            return sp.S.One if sign is POSITIVE else sp.S.NegativeOne**times
        return base if times % 2 else base**2

    def _unexpanded(self, expression: sp.Expr) -> sp.Expr:
        """The numerator as it comes, where the denominator is positive; positive factors are left out."""
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
        """The set with the judge's ruling on whether it can hold at all."""
        asked = [c.inner for c in conditions.conditions]
        with_lam = self.in_range if any(c.scope for c in conditions.conditions) else ()
        # What is asked for every lam holds at the one that is looked for too: without it there is none either.
        ruling = possible(*self.domain.conditions, *with_lam, *asked)
        if ruling.outcome is Possibility.IMPOSSIBLE:
            return replace(conditions, outcome=IMPOSSIBLE, reason="the judge proves that no values satisfy them")
        weak = [c for c in conditions.conditions if c.scope == EVERY_LAM or not c.is_sufficient]
        if ruling.outcome is Possibility.POSSIBLE and not weak:
            example = {str(x): value for x, value in (ruling.point or {}).items()}
            return replace(conditions, outcome=POSSIBLE, point=dict(sorted(example.items())))
        reason = ruling.reason or f"not excluded by what is necessary: {weak[0]}"
        return replace(conditions, outcome=UNDECIDED, reason=reason)
