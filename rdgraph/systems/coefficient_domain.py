"""The admissible values of a system's coefficients, out of its assumptions."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from rdgraph.algebra.normal_form import MASKS, Algebra
from rdgraph.decisions.domain import Domain
from rdgraph.syntax.assumptions import Assumptions
from rdgraph.syntax.reader import Vocabulary
from rdgraph.syntax.tree import ELEMENTWISE, Kind


def coefficient_domain(assumptions: Assumptions, algebra: Algebra) -> Domain:
    """Where the assumed relations hold; signs live in the symbols, and a mask is 0 or 1.

    Contradictory assumptions raise `AssumptionError`.
    """
    conditions: list[sp.Basic] = []
    for relation in assumptions.relations:
        gap = sp.expand(algebra.normal(relation.upper) - algebra.normal(relation.lower))
        conditions.append((sp.Gt if relation.strict else sp.Ge)(gap, 0, evaluate=False))
    conditions += [sp.Or(sp.Eq(mask, 0), sp.Eq(mask, 1)) for mask in algebra.masks if mask.name in algebra.kinds]
    domain = Domain(tuple(conditions))
    domain.check()
    return domain


def check_consistency(assumptions: Assumptions, kinds: Mapping[str, Kind]) -> None:
    """Refuse relations that no values satisfy, also those between letters that an equation does not use."""
    known = {n: k for n, k in Vocabulary.standard(kinds).kinds.items() if k in ELEMENTWISE - {Kind.FIELD}}
    coefficient_domain(assumptions, Algebra({n: assumptions.symbol(n) for n in known if n not in MASKS}, known))
