"""`StateBranch`: a steady state that is followed while one coefficient varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.patterns.dispersion import dispersion_of
from rdgraph.patterns.half_planes import characteristic, hurwitz_determinants
from rdgraph.patterns.kinetics import Kinetics
from rdgraph.patterns.state_choice import state_at
from rdgraph.patterns.states import EXACT, SteadyState
from rdgraph.patterns.steady_states import solve_states
from rdgraph.syntax.answer_symbols import lam

#: Digits of numbers that are not rational, the values at which a branch without closed form is looked at (times its
#: sign), and how often an interval between two of them is halved.
DIGITS = 50
SCANNED = tuple(sp.Rational(10) ** sp.Rational(k) for k in range(-3, 4))
STEPS = (1, 3)
HALVINGS = 33


@dataclass(frozen=True)
class StateBranch:
    """A steady state as function of one coefficient.

    Without a `state` the linearisation is the same at all (a linear system), or, where `index` is given, the state has
    no rational closed form and is solved for anew at every value.
    """

    state: SteadyState | None
    index: int | None
    assumes: str

    @property
    def is_closed(self) -> bool:
        """Whether P(lam) is a rational function of the coefficient with rational numbers."""
        return self.index is None and (self.state is None or all(_is_plain(v) for v in self.state.point.values()))

    @property
    def limits(self) -> list[sp.Expr]:
        """Expressions that vanish where the state ceases to exist."""
        if self.state is None:
            return []
        bottoms = [sp.fraction(sp.together(value))[1] for value in self.state.point.values()]
        return [b for b in bottoms if b.free_symbols] + [c.lhs - c.rhs for c in self.state.conditions]

    def matrix(self, kinetics: Kinetics) -> sp.ImmutableMatrix:
        """P(lam) with what is rational of the state put in."""
        if self.state is None:
            return kinetics.matrix
        plain = {x: value for x, value in self.state.point.items() if _is_plain(value)}
        return kinetics.matrix.xreplace(plain)

    def at(self, fixed: Kinetics, value: sp.Expr) -> SteadyState | None:
        """The state at one value, which `fixed` has put in; raises NotApplicable where there is none."""
        if self.index is not None:
            return state_at(fixed, self.index)
        if self.state is None or self.state.is_number:
            return self.state
        letters = {x for v in self.state.point.values() for x in v.free_symbols}
        number = dict.fromkeys(letters, value)
        point = {x: sp.nsimplify(v.xreplace(number)) for x, v in self.state.point.items()}
        if any(c.xreplace(number) != sp.true for c in self.state.conditions) or sp.Tuple(*point.values()).has(sp.zoo):
            raise NotApplicable("the steady state does not exist at this value")
        return SteadyState(point, assumes=self.state.assumes)

    # ------------------------------------------------------------------ numbers
    def numbers(self, kinetics: Kinetics, letter: sp.Symbol, value: sp.Expr) -> dict[sp.Basic, sp.Expr]:
        """The coefficient and the state at one value, with many digits."""
        found: dict[sp.Basic, sp.Expr] = {letter: sp.N(value, DIGITS)}
        if self.index is not None:
            state = state_at(kinetics.at({letter.name: sp.Rational(str(sp.N(value, DIGITS)))}), self.index)
            return found | {x: sp.N(v, DIGITS) for x, v in state.point.items()}
        if self.state is not None:
            found |= {x: sp.N(v.xreplace({letter: found[letter]}), DIGITS) for x, v in self.state.point.items()}
        return found

    def roots(self, polynomials: Sequence[sp.Expr], letter: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[sp.Expr]:
        """Roots of polynomials in the coefficient whose other letters are the state's, as rational numbers."""
        assert self.state is not None
        numbers = {x: sp.N(v, DIGITS) for x, v in self.state.point.items()}
        roots: list[sp.Expr] = []
        for polynomial in polynomials:
            put_in = sp.Poly(polynomial.xreplace(numbers), letter)
            for root in put_in.nroots(n=DIGITS // 2, maxsteps=200) if put_in.degree() else ():
                real, imaginary = root.as_real_imag()
                if abs(imaginary) < sp.Float(10) ** -12 * (1 + abs(real)):
                    roots.append(sp.Rational(str(real)))
        inside = sorted(r for r in roots if lower < r < upper)
        return [r for k, r in enumerate(inside) if k == 0 or r - inside[k - 1] > sp.Rational(1, 10**12) * abs(r)]

    def scanned(self, kinetics: Kinetics, letter: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[sp.Expr]:
        """Where the kind changes between the values of a table, by halving."""

        def kind(value: sp.Expr) -> str:
            try:
                return dispersion_of(kinetics.at({letter.name: value}), self.index or 0).outcome
            except NotApplicable:
                return "no steady state"

        sizes = [size * step for size in SCANNED for step in STEPS]
        table = [x for x in (*(-s for s in reversed(sizes)), *sizes) if lower < x < upper]
        kinds = [kind(x) for x in table]
        places = []
        for k in range(len(table) - 1):
            low, high = table[k], table[k + 1]
            if kinds[k] == kinds[k + 1]:
                continue
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if kind(middle) == kinds[k] else (low, middle)
            places.append((low + high) / 2)
        return places

    def critical_mode(self, kinetics: Kinetics, letter: sp.Symbol, value: sp.Expr, to: sp.Expr) -> float:
        """The lam in (0, to] whose growth is largest, and zero, at a threshold."""
        numbers = self.numbers(kinetics, letter, value)
        matrix = kinetics.matrix.xreplace(numbers)
        coefficients = characteristic(matrix)
        places = [float(to)] if to.is_finite else []
        for test in hurwitz_determinants(coefficients)[-2:]:
            polynomial = sp.Poly(test, lam)
            powers = [float(c) for c in polynomial.all_coeffs()]
            places += [float(root.real) for root in np.roots(powers)] if len(powers) > 1 else []
        inside = [x for x in places if x > 0 and (not to.is_finite or x <= float(to))]
        entries = sp.lambdify(lam, matrix, "numpy")
        return max(inside, key=lambda x: float(np.linalg.eigvals(np.array(entries(x), dtype=float)).real.max()))


def _is_plain(value: sp.Expr) -> bool:
    """A rational number, or a rational function of letters with rational numbers."""
    numbers = value.atoms(sp.Number, sp.NumberSymbol)
    whole = all(power.exp.is_Integer for power in value.atoms(sp.Pow))
    return whole and not value.has(sp.CRootOf, sp.Function) and all(number.is_Rational for number in numbers)


def follow(kinetics: Kinetics, letter: sp.Symbol, state: int) -> StateBranch:
    """The branch of the steady state with a number, the coefficient `letter` being free."""
    if kinetics.is_linear:
        return StateBranch(None, None, kinetics.modes_assume)
    found = solve_states(kinetics)
    chosen = found[state] if state < len(found) else None
    varies = any(rate.has(letter) for rate in kinetics.rates)
    if chosen is not None and not chosen.free:
        closed = chosen.how == EXACT and all(_is_plain(v) for v in chosen.point.values())
        if closed or not varies:
            return StateBranch(chosen, None, chosen.assumes)
    if not varies:
        raise NotApplicable(f"no steady state with the number {state} was found; {found.note}")
    return StateBranch(None, state, kinetics.assumes)
