"""Lipschitz constants of several fields in the max norm: the largest sum of |slopes| over a row of the Jacobian.

A row belongs to a field at a node: slopes in the node's own entries of all fields, and for every operator word the
slope in what it collects times the sum of its entries. Where a row is a polynomial in the entries and what operators
collect of them, its supremum over |u| <= R is found exactly: at a corner where no two terms cancel, else among corners
and critical points. Other terms are bounded by the chain rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import Undecided, UnknownSign
from rdgraph.language.answer_symbols import R
from rdgraph.language.normal_form import TIME, Act, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.domain import NEGATIVE, POSITIVE, ZERO, Domain, Sign
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.node_speeds import normal_forms, row_size, starts_of, states_of
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- linear terms
# The linear terms of every field in itself, which are scalars or channels times A^k or L^k of it, and the rest.

Word = tuple[str, ...]


def linear_terms(system: System, normalisation: str, name: str) -> tuple[list[tuple[sp.Expr, Word]], sp.Expr]:
    """The coefficients and words of the linear terms of a field in itself, and the sum of all other terms.

    >>> from rdgraph.systems.parser import parse
    >>> linear_terms(parse("u' = u*v - 3*u + 2*A@u; v' = -v"), "row", "u")[0]
    [(-3, ()), (2, ('A',))]
    """
    linear, rest = [], []
    for term in sp.Add.make_args(normal_forms(system, normalisation)[name]):
        factor_and_word = _linear_term(term, State(name), system)
        if factor_and_word is None:
            rest.append(term)
        else:
            linear.append(factor_and_word)
    return sorted(linear, key=lambda pair: (len(pair[1]), pair[1], str(pair[0]))), sp.Add(*rest)


def _linear_term(term: sp.Expr, state: State, system: System) -> tuple[sp.Expr, Word] | None:
    pieces = sp.Mul.make_args(term)
    cores = [x for x in pieces if x.has(State, Act, Mix)]
    if len(cores) != 1 or any(x.has(TIME) for x in pieces):
        return None
    core = cores[0]
    factor = sp.Mul(*(x for x in pieces if x is not core))
    kinds = {system.letters.get(x.name) for x in factor.free_symbols}
    if not kinds <= {Kind.SCALAR, Kind.CHANNEL}:
        return None
    if core == state:
        return factor, ()
    if isinstance(core, Act) and core.inner == state and len({w.name for w in core.word}) == 1:
        word = tuple(w.name for w in core.word)
        return (factor, word) if word[0] in ("A", "L") else None
    return None


def linear_rate(system: System, normalisation: str) -> sp.Expr:
    """A bound of the linear rates: the largest sum of |coefficient| times the row sum of its word."""
    record = find_normalisation(normalisation)
    totals = [
        sp.Add(
            *(sp.Abs(c) * row_size(word, system, record) for c, word in linear_terms(system, normalisation, name)[0])
        )
        for name in system.fields
    ]
    return sp.Max(*totals)


# ---------------------------------------------------------------------- slope sums
#: Most variables whose corners are tried, and most candidates that are compared.
MAX_VARIABLES = 8
MAX_CANDIDATES = 64


@dataclass(frozen=True)
class SlopeSum:
    """A bound of the sums of |slopes|, infinite where there is none; `is_exact` says that it is the supremum."""

    value: sp.Expr
    is_exact: bool


def slope_sum(
    system: System,
    normalisation: str,
    *,
    is_local: bool,
    is_one_sided: bool = False,
    is_sharp: bool = True,
    is_rest: bool = False,
) -> SlopeSum:
    """The constant of a system over all its rows; without `is_sharp` an upper bound, which is found at once.

    With `is_rest` the linear terms of every field in itself are left out.

    >>> from rdgraph.systems.parser import parse
    >>> slope_sum(parse("u' = a - u + u**2*v; v' = b - u**2*v"), "row", is_local=True)
    SlopeSum(value=3*R**2 + 1, is_exact=True)
    """
    rows = [
        _Row.of(system, normalisation, name, is_local, is_one_sided, is_rest).total(is_sharp=is_sharp)
        for name in system.fields
    ]
    if any(row.value.has(sp.oo) for row in rows):
        certain = all(row.is_exact for row in rows if row.value.has(sp.oo))
        return SlopeSum(sp.oo, certain and any(row.value.has(sp.oo) for row in rows))
    if not is_sharp:
        return SlopeSum(sp.Max(*(row.value for row in rows)), False)
    domain = system.domain
    value = maximum([Candidate(row.value) for row in rows], domain)
    return SlopeSum(value, all(row.is_exact for row in rows))


@dataclass(frozen=True)
class _Row:
    """The slopes of one field: polynomials with weights, and a bound of the terms that are not polynomials.

    `variables` maps the symbols in the slopes to their largest modulus. `signed_slope` is the slope in the node's entry
    of the field, where it counts with its sign. Coefficients that change with time or differ between the entries of a
    row enter with their largest modulus.
    """

    domain: Domain
    polynomials: tuple[tuple[sp.Expr, sp.Expr], ...]
    signed_slope: sp.Expr | None
    variables: Mapping[sp.Symbol, sp.Expr]
    rest: sp.Expr
    measure: Magnitudes
    is_attained: bool

    @classmethod
    def of(
        cls, system: System, normalisation: str, name: str, is_local: bool, is_one_sided: bool, is_rest: bool
    ) -> _Row:
        record = find_normalisation(normalisation)
        measure = Magnitudes(system, record, is_local)
        whole, rest = normal_forms(system, normalisation)[name], linear_terms(system, normalisation, name)[1]
        normal, states = rest if is_rest else whole, list(states_of(system).values())
        calls = {
            atom: sp.Dummy(f"x{i}", real=True)
            for i, atom in enumerate(sorted(normal.atoms(Act), key=str))
            if isinstance(atom.inner, State)
        }
        moving = {*states, *starts_of(system).values(), *calls.values()}
        plain = normal.xreplace(calls)
        smooth = [t for t in sp.Add.make_args(plain) if not t.has(Act, Mix) and t.is_polynomial(*moving)]
        bent = plain - sp.Add(*smooth)
        main = sp.Add(*smooth)
        words = {x: tuple(w.name for w in atom.word) for atom, x in calls.items()}
        weights = {x: row_size(word, system, record) for x, word in words.items()}
        seen = {x: weights[x] for atom, x in calls.items() if atom.inner in states}
        slopes = [(sp.S.One, sp.expand(sp.diff(main, u))) for u in states if u.name != name or not is_one_sided]
        slopes += [(weight, sp.expand(sp.diff(main, x))) for x, weight in seen.items()]
        largest = R if is_local else sp.oo
        back = {x: atom for atom, x in calls.items()}
        short = all(len(word) == 1 for word in words.values())
        return cls(
            system.domain,
            tuple((weight, slope) for weight, slope in slopes if slope != 0),
            sp.expand(sp.diff(main, State(name))) if is_one_sided else None,
            {x: largest * weights.get(x, sp.S.One) for x in moving},
            measure.slope(bent.xreplace(back)),
            measure,
            is_attained=record.is_sharp and not record.has_degrees and (short or record.name == "row")
            and all(set(word) == {"A"} for word in words.values())
            and Kind.NODE not in {kind for letter, kind in system.letters.items() if letter != "M"},
        )  # fmt: skip

    def total(self, *, is_sharp: bool) -> SlopeSum:
        """The supremum of the row, or a bound of it."""
        crude = self._crude()
        if crude.has(sp.oo):
            return SlopeSum(sp.oo, self.signed_slope is None and self._is_unbounded())
        if not is_sharp:
            return SlopeSum(crude, False)
        if self._is_unsteady(sp.Tuple(*(slope for _, slope in self.polynomials), self.signed_slope or sp.S.Zero)):
            return SlopeSum(self._resolved(crude), False)
        clean = self.rest == 0 and self.is_attained
        if self._is_reached():
            return SlopeSum(self._resolved(crude), clean)
        try:
            return SlopeSum(self._searched() + self.rest, clean)
        except (Undecided, UnknownSign):
            return SlopeSum(self._resolved(crude), False)

    def _signed(self) -> list[tuple[sp.Expr, sp.Expr, tuple[int, ...]]]:
        """Weights and slopes, with the signs with which each may count."""
        signed: list[tuple[sp.Expr, sp.Expr, tuple[int, ...]]] = [(w, g, (1, -1)) for w, g in self.polynomials]
        return signed if self.signed_slope is None else [*signed, (sp.S.One, self.signed_slope, (1,))]

    # ------------------------------------------------------------------ term by term
    def _crude(self) -> sp.Expr:
        """The sum of the largest moduli of all terms; the constant part of a slope with a sign keeps the sign."""
        total = self.rest
        for weight, slope, signs in self._signed():
            for coefficient, monomial in self._monomials(slope):
                if monomial == 1 and signs == (1,):
                    size = self._signed_size(coefficient)
                else:
                    size = self.measure.size(coefficient) if self._is_unsteady(coefficient) else sp.Abs(coefficient)
                total = _plus(total, weight * size, self._largest(monomial))
        return total

    def _is_unsteady(self, expression: sp.Basic) -> bool:
        return expression.has(TIME) or self.measure.is_spread(expression)

    def _signed_size(self, coefficient: sp.Expr) -> sp.Expr:
        """A bound of a coefficient that counts with its sign: constants unchanged, of the rest what may be positive.

        A part -b is dropped, since b may be small where it counts.
        """
        parts = []
        for part in sp.Add.make_args(sp.expand(coefficient)):
            if not self._is_unsteady(part):
                parts.append(part)
            elif not self.domain.sign(part).is_nonpositive:
                parts.append(self.measure.size(part))
        return sp.oo if any(x.has(sp.oo) for x in parts) else sp.Add(*parts)

    def _resolved(self, value: sp.Expr) -> sp.Expr:
        """The value with x or -x for |x| wherever the sign of x is known."""
        signs = {e: self.domain.sign(e.args[0]) for e in value.atoms(sp.Abs)}
        known = {e: e.args[0] for e, sign in signs.items() if sign.is_nonnegative}
        known |= {e: -e.args[0] for e, sign in signs.items() if sign.is_nonpositive and not sign.is_nonnegative}
        return sp.expand(value.xreplace(known))

    def _monomials(self, slope: sp.Expr) -> list[tuple[sp.Expr, sp.Expr]]:
        letters = [x for x in self.variables if slope.has(x)]
        if not letters:
            return [(slope, sp.S.One)]
        return [
            (c, sp.Mul(*(x**k for x, k in zip(letters, powers, strict=True))))
            for powers, c in sp.Poly(slope, *letters).terms()
        ]

    def _largest(self, monomial: sp.Expr) -> sp.Expr:
        return sp.oo if monomial != 1 and self._is_global() else monomial.xreplace(dict(self.variables))

    def _is_global(self) -> bool:
        return any(size.has(sp.oo) for size in self.variables.values())

    def _is_unbounded(self) -> bool:
        """Proved: for all coefficients, some slope is a polynomial that is not constant."""
        if self.rest.has(sp.oo) or not self.is_attained or not self._is_global():
            return False
        return any(
            monomial != 1 and not self._is_unsteady(c) and self.domain.sign(c) in (POSITIVE, NEGATIVE)
            for _, slope in self.polynomials
            for c, monomial in self._monomials(slope)
        )

    # ------------------------------------------------------------------ corners
    def _is_reached(self) -> bool:
        """Proved: at some corner of the box the terms of every slope have one sign, so that nothing cancels."""
        terms = [(self._monomials(slope), signs) for _, slope, signs in self._signed()]
        letters = sorted({x for table, _ in terms for _, m in table for x in m.free_symbols}, key=str)
        known = [[(self.domain.sign(c), m) for c, m in table] for table, _ in terms]
        if len(letters) > MAX_VARIABLES:
            return False
        for corner in itertools.product((1, -1), repeat=len(letters)):
            at = dict(zip(letters, map(sp.Integer, corner), strict=True))
            if all(self._agree(row, signs, at) for row, (_, signs) in zip(known, terms, strict=True)):
                return True
        return False

    def _agree(
        self, row: Sequence[tuple[Sign, sp.Expr]], signs: tuple[int, ...], at: Mapping[sp.Symbol, sp.Integer]
    ) -> bool:
        if len(row) == 1 and len(signs) == 2:
            return True
        present = set()
        for sign, monomial in row:
            if sign is ZERO or (monomial == 1 and signs == (1,)):
                continue
            if sign not in (POSITIVE, NEGATIVE):
                return False
            present.add((1 if sign is POSITIVE else -1) * int(monomial.xreplace(dict(at))))
        return present <= {1} if signs == (1,) else len(present) <= 1

    # ------------------------------------------------------------------ corners and critical points
    def _searched(self) -> sp.Expr:
        """The largest value among corners and critical points, for every choice of signs."""
        constant, moving = sp.S.Zero, []
        for weight, slope, signs in self._signed():
            if any(slope.has(x) for x in self.variables):
                moving.append((weight, slope, signs))
            elif signs == (1,):
                constant += weight * slope
            else:
                constant += weight * self._resolved(sp.Abs(slope))
        candidates: list[Candidate] = []
        for choice in itertools.product(*(signs for _, _, signs in moving)):
            total = sp.expand(sp.Add(*(k * w * g for k, (w, g, _) in zip(choice, moving, strict=True))))
            candidates += self._candidates(total)
            if len(candidates) > MAX_CANDIDATES:
                raise Undecided("too many candidates for the largest slope")
        return sp.expand(maximum(candidates, self.domain) + constant) if candidates else constant

    def _candidates(self, total: sp.Expr) -> list[Candidate]:
        """Where a polynomial can be largest on the box: corners in its affine variables, then one variable by one."""
        letters = [x for x in sorted(self.variables, key=str) if total.has(x)]
        affine = [x for x in letters if sp.degree(total, x) == 1]
        others = [x for x in letters if x not in affine]
        if len(affine) > MAX_VARIABLES - 2:
            raise Undecided("too many corners")
        candidates: list[Candidate] = []
        for corner in itertools.product((1, -1), repeat=len(affine)):
            ends = {x: k * self.variables[x] for x, k in zip(affine, corner, strict=True)}
            candidates += self._one_by_one(sp.expand(total.xreplace(ends)), others)
        return candidates

    def _one_by_one(self, total: sp.Expr, letters: Iterable[sp.Symbol]) -> list[Candidate]:
        """Sums of extremes of polynomials in one variable each; Undecided where two variables share a term."""
        candidates = [Candidate(total.xreplace(dict.fromkeys(letters, sp.S.Zero)))]
        for x in letters:
            rest = {y: sp.S.Zero for y in letters if y != x}
            single = sp.expand(total.xreplace(rest) - total.xreplace({**rest, x: sp.S.Zero}))
            end = self.variables[x]
            candidates = [
                Candidate(a.value + b.value, a.valid + b.valid)
                for a in candidates
                for b in interval_candidates(single, x, -end, end, self.domain)
            ]
        parts = [total.xreplace({y: sp.S.Zero for y in letters if y != x}) for x in letters]
        constant = total.xreplace(dict.fromkeys(letters, sp.S.Zero))
        if letters and sp.expand(sp.Add(*parts) - (len(parts) - 1) * constant - total) != 0:
            raise Undecided(f"several variables of {total} have a degree above 1")
        return candidates


def _plus(total: sp.Expr, size: sp.Expr, largest: sp.Expr) -> sp.Expr:
    """total + size*largest, infinite where a part is."""
    if total.has(sp.oo) or size.has(sp.oo) or (largest.has(sp.oo) and size != 0):
        return sp.oo
    return total + size * largest
