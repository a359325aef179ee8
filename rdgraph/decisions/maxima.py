"""The largest of several candidate formulas, over all admissible coefficients."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, NONNEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.decisions.polynomials import factors, reduced
from rdgraph.decisions.ratio_cells import Line, piecewise, sample_sign
from rdgraph.errors import Undecided


@dataclass(frozen=True)
class Candidate:
    """A value that is attained, at the place `at`, where all `valid` expressions are >= 0."""

    value: sp.Expr
    valid: tuple[sp.Expr, ...] = ()
    at: sp.Expr | None = None


def plus(left: sp.Expr, right: sp.Expr) -> sp.Expr:
    """The sum, infinite where one of them is: sympy leaves x + oo as it is for letters that might be infinite."""
    infinite = [x for x in (left, right) if x in (sp.oo, -sp.oo)]
    return infinite[0] if len(infinite) == 1 else left + right


def maximum(candidates: Sequence[Candidate], domain: Domain, *, place: bool = False) -> sp.Expr:
    """The largest valid candidate, as one formula, a Piecewise over the coefficients, or a Max.

    With `place`, where it is attained instead of its value.
    """
    kept = _possible(candidates, domain)
    if any(c.value == sp.oo and not c.valid for c in kept):
        return sp.oo
    kept = _undominated([c for c in kept if c.value != -sp.oo], domain)
    if not kept:
        raise Undecided("no candidate for the maximum is valid on the whole domain")
    if len(kept) == 1:
        return _value(kept[0], place)
    differences = [a.value - b.value for a, b in itertools.combinations(kept, 2)]
    conditions = [v for c in kept for v in c.valid]
    is_finite = not any(c.value.has(sp.oo, -sp.oo) for c in kept)
    line = domain.line([c.value for c in kept], conditions) if is_finite else None
    if line is not None:
        try:
            formula = _maximum_on_line(line, kept, differences + conditions, place)
        except Undecided:  # borders that are no algebraic numbers; a maximum can be told if one value is certain
            if place or all(c.valid for c in kept):
                raise
        else:
            if place or _is_maximum(formula, kept, domain):
                return formula
    if place:
        raise Undecided(f"which of {', '.join(str(c.value) for c in kept)} is largest depends on several ratios")
    return _as_max(kept, domain)


def _is_maximum(formula: sp.Expr, candidates: list[Candidate], domain: Domain) -> bool:
    """Proved: no valid candidate exceeds the formula, and everywhere one of them attains it."""
    apart = []
    for c in candidates:
        valid = [sp.Ge(v, 0, evaluate=False) for v in c.valid]
        if domain.where(*valid).proves(sp.Le(c.value, formula, evaluate=False)) is not True:
            return False
        negated = [sp.Lt(v, 0, evaluate=False) for v in c.valid]
        apart.append(sp.Or(*negated, sp.Ne(c.value, formula, evaluate=False)))
    return domain.where(*apart).is_empty()


def _possible(candidates: Sequence[Candidate], domain: Domain) -> list[Candidate]:
    """Drop candidates that are never valid, and conditions that always hold; each presumes the ones before it."""
    kept: dict[tuple[sp.Expr, tuple[sp.Expr, ...]], Candidate] = {}
    for candidate in candidates:
        valid: tuple[sp.Expr, ...] = ()
        for condition in candidate.valid:
            sign = (domain.given(*valid) if valid else domain).sign(condition)
            if sign == NEGATIVE:
                break
            if sign not in (POSITIVE, NONNEGATIVE, ZERO):
                valid += (condition,)
        else:
            _keep(candidate, valid, kept)
    return list(kept.values())


def _keep(
    candidate: Candidate, valid: tuple[sp.Expr, ...], kept: dict[tuple[sp.Expr, tuple[sp.Expr, ...]], Candidate]
) -> None:
    value = sp.sympify(candidate.value)
    value = value if value.has(sp.Piecewise) else tidy(value)
    kept.setdefault((value, valid), Candidate(value, valid, candidate.at))


def _undominated(candidates: list[Candidate], domain: Domain) -> list[Candidate]:
    kept = list(candidates)
    for weak in sorted(candidates, key=lambda c: -len(c.valid)):
        rivals = [c for c in kept if c is not weak and not c.valid]
        where = domain.given(*weak.valid) if weak.valid else domain
        if any(where.is_nonnegative(c.value - weak.value, thorough=False) for c in rivals):
            kept = [c for c in kept if c is not weak]
    return kept


def _as_max(candidates: list[Candidate], domain: Domain) -> sp.Expr:
    certain = [c.value for c in candidates if not c.valid]
    if not certain:
        raise Undecided("every candidate for the maximum depends on a condition")
    for value in certain:
        bottom = sp.denom(sp.together(value))
        if not domain.where(sp.Eq(bottom, 0, evaluate=False)).is_empty():
            raise Undecided(f"a candidate for the maximum is not defined where {bottom} = 0")
    conditional = []
    for c in candidates:
        if c.valid:
            bottom = sp.denom(sp.together(c.value))
            parts = [sp.Ne(bottom, 0)] if domain.sign(bottom) not in (POSITIVE, NEGATIVE) else []
            parts += [sp.Ge(domain.cleared(v), 0) for v in c.valid]
            conditional.append(sp.Piecewise((c.value, sp.And(*parts)), (certain[0], True)))
    return sp.Max(*certain, *conditional)


def _maximum_on_line(line: Line, candidates: list[Candidate], borders: list[sp.Expr], place: bool) -> sp.Expr:
    reduced = [Candidate(line.reduce(c.value), tuple(line.reduce(v) for v in c.valid)) for c in candidates]
    cells = line.cells([line.reduce(b) for b in borders])
    best = [_best_at(reduced, line.ratio, cell.sample) for cell in cells]
    return piecewise(line, cells, best, lambda i: _value(candidates[i], place))


def _value(candidate: Candidate, place: bool) -> sp.Expr:
    return candidate.at if place and candidate.at is not None else candidate.value


def _best_at(candidates: list[Candidate], r: sp.Symbol, point: sp.Expr) -> set[int]:
    """Indices of the valid candidates that are largest at a point."""
    values: dict[int, sp.Expr] = {}
    for i, candidate in enumerate(candidates):
        signs = [sample_sign(v.subs(r, point)) for v in candidate.valid]
        if all(sign is not None and sign >= 0 for sign in signs):
            values[i] = candidate.value.subs(r, point)
    best: set[int] = set()
    for i, value in values.items():
        sign = sample_sign(value - values[next(iter(best))]) if best else sample_sign(value) and 1
        if sign == 1:
            best = {i}
        elif sign == 0:
            best.add(i)
    if not best:
        raise Undecided("no candidate for the maximum is valid at a sample point")
    return best


def tidy(expression: sp.Expr) -> sp.Expr:
    """A short form: factored where that is shorter."""
    if expression in (sp.oo, -sp.oo) or expression.is_number or expression.has(sp.CRootOf):
        return sp.sympify(expression)
    forms = [expression, sp.expand(expression), sp.factor_terms(sp.expand(expression))]
    if expression.is_rational_function():
        top, bottom = reduced(expression)
        forms = [forms[1], top / bottom, _factored(top) / _factored(bottom)]
    return min(forms, key=lambda e: (e.count_ops(), str(e)))


def _factored(polynomial: sp.Expr) -> sp.Expr:
    product = sp.Mul(*(factor**times for factor, times in factors(polynomial)))
    return sp.cancel(polynomial / product) * product
