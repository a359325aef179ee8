"""`ConditionSet`: named inequalities between coefficients, whether they can hold at all, and whether they do."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from rdgraph.decisions.condition_words import condition_in_words
from rdgraph.decisions.enclosure import holds, sign_of
from rdgraph.errors import Undecided
from rdgraph.patterns.bands import between, real_roots
from rdgraph.syntax.answer_symbols import lam, public

POSSIBLE, IMPOSSIBLE, UNDECIDED = "possible", "impossible", "undecided"

#: For which lam in (0, to] a relation is meant: it has none, one is enough, or all of them.
NO_LAM, SOME_LAM, EVERY_LAM = "", "for some lam", "for every lam"

#: Points of the range of lam that are tried where a polynomial's coefficients are not rational.
SAMPLES = 400


@dataclass(frozen=True)
class Condition:
    """A relation between coefficients with a name; `scope` says for which lam in (0, to] it is meant, if it has some.

    One that is not `is_sufficient` is necessary only.
    """

    name: str
    inner: sp.Basic
    scope: str = NO_LAM
    is_sufficient: bool = True

    @property
    def relation(self) -> sp.Basic:
        """The relation in plain symbols."""
        return public(self.inner)

    def __str__(self) -> str:
        scope = f" {self.scope}" if self.scope else ""
        necessary = "" if self.is_sufficient else " (necessary)"
        return f"{self.name}: {condition_in_words(self.relation)}{scope}{necessary}"

    def holds_at(self, numbers: Mapping[sp.Basic, sp.Expr], to: sp.Expr) -> bool:
        """Whether it holds at numbers for all letters, exactly; raises Undecided where that cannot be told."""
        put_in = self.inner.xreplace(dict(numbers))
        if not put_in.has(lam):
            answer = holds(put_in)
        elif self.scope == EVERY_LAM:
            refuted = holds_somewhere(sp.Not(put_in), to)
            answer = None if refuted is None else not refuted
        else:
            answer = holds_somewhere(put_in, to)
        if answer is None:
            raise Undecided(f"whether {self} could not be told: the two sides agree as far as enclosures tell")
        return answer


@dataclass(frozen=True)
class ConditionSet:
    """Conditions that together are necessary and sufficient for what `name` says.

    `outcome` is "possible" (with an example in `point`), "impossible" (proved under the assumptions) or "undecided";
    `reason` says why.
    """

    name: str
    conditions: tuple[Condition, ...]
    outcome: str = UNDECIDED
    reason: str = ""
    point: Mapping[str, sp.Expr] = field(default_factory=dict)

    @property
    def relations(self) -> dict[str, sp.Basic]:
        """The relations by name, in plain symbols."""
        return {c.name: c.relation for c in self.conditions}

    def __str__(self) -> str:
        example = ", ".join(f"{x} = {value}" for x, value in self.point.items())
        tail = f", for example {example}" if example else f": {self.reason}" if self.reason else ""
        return "; ".join([f"{self.name} ({self.outcome}{tail})", *map(str, self.conditions)])

    def to_dict(self) -> dict[str, Any]:
        """The conditions and the outcome as texts."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "conditions": [{"name": c.name, "relation": str(c.relation), "scope": c.scope} for c in self.conditions],
            "example": {name: str(value) for name, value in self.point.items()},
        }


def holds_somewhere(relation: sp.Basic, to: sp.Expr) -> bool | None:
    """Whether a relation with polynomials of lam, or several joined by And, holds for some lam in (0, to]."""
    parts = relation.args if isinstance(relation, sp.And) else (relation,)
    gaps = [sp.expand(part.lhs - part.rhs) for part in parts]
    polynomials = [sp.Poly(gap, lam) for gap in gaps]
    if all(c.is_Rational for p in polynomials for c in p.coeffs()):
        return any(all(bool(part.subs(lam, x)) for part in parts) for x in _samples(gaps, to))
    end = to if to.is_finite else sp.Integer(1000)
    for k in range(1, SAMPLES + 1):
        if all(holds(part.subs(lam, end * k / SAMPLES)) for part in parts):
            return True
    return _refuted(parts, polynomials)


def _refuted(parts: tuple[sp.Basic, ...], polynomials: list[sp.Poly]) -> bool | None:
    """False where one relation p < 0 or p > 0 is refuted for all lam > 0 by the signs of its coefficients."""
    for part, polynomial in zip(parts, polynomials, strict=True):
        signs = {sign_of(c) for c in polynomial.coeffs()}
        wanted = -1 if isinstance(part, sp.Lt) else 1
        if wanted not in signs and None not in signs:
            return False
    return None


def _samples(gaps: list[sp.Expr], to: sp.Expr) -> list[sp.Expr]:
    """One lam from every interval between roots, and the end of the range."""
    product = sp.Mul(*(gap for gap in gaps if gap.has(lam)))
    roots = real_roots(product, lam, sp.S.Zero, to) if product.has(lam) else []
    edges = [sp.S.Zero, *roots, to]
    samples = [between(left, right) for left, right in itertools.pairwise(edges)]
    return samples + ([to] if to.is_finite else [])
