"""Responses of linear systems: the generator symbol, and the gain of a frequency under the flow or a method.

On an eigenvector of L with eigenvalue lam the system is H' = p(lam) H + q(lam) H0.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import H
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.methods.registry import is_exact_flow
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.methods.tableaux import tableau
from rdgraph.syntax import answer_symbols
from rdgraph.syntax.answer_symbols import lam
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.structure import Structure


def generator_symbol(structure: Structure) -> sp.Expr:
    """p(lam) in the package's own symbols; raises NotApplicable with the reason where there is none."""
    if not structure.linear or structure.coupled.has(H):
        raise NotApplicable(f"no symbol because {'; '.join(structure.obstacles)}")
    return _polynomial(structure.generator)


def source_symbol(structure: Structure) -> sp.Expr:
    """q(lam), the factor of H0; raises NotApplicable where the forcing is not a filter of H0."""
    if structure.constant != 0 or structure.coupled != 0:
        raise NotApplicable(f"no response because {'; '.join(structure.obstacles)}")
    return _polynomial(structure.source)


def _polynomial(coefficients: dict[int, sp.Expr]) -> sp.Expr:
    total = sum((c * (1 - lam) ** k for k, c in coefficients.items()), sp.S.Zero)
    return sp.collect(sp.expand(total), lam)


def gain(structure: Structure, T: Any, method: str | Tableau, step: Any) -> sp.Expr:
    """Gain of frequency lam after time T, source terms included, in the package's own symbols."""
    end = answer_symbols.T if T is None else exact_number(T, "T")
    if end.is_negative:
        raise InvalidArgument(f"expected T >= 0, got {T}")
    p, q = generator_symbol(structure), source_symbol(structure)
    factor = sp.exp(end * p) if is_exact_flow(method) else _product_of_steps(p, end, method, step)
    if q == 0:
        return factor
    if p == 0:
        return 1 + q * end
    forced = factor + q * (factor - 1) / p
    return sp.Piecewise((forced, sp.Ne(p, 0)), (1 + q * end, True))


def _product_of_steps(p: sp.Expr, end: sp.Expr, method: str | Tableau, step: Any) -> sp.Expr:
    method_tableau = tableau(method)
    size = answer_symbols.tau if step is None else exact_number(step, "step")
    if size.is_nonpositive:
        raise InvalidArgument(f"expected a step > 0, got {step}")
    if not (size.is_number and end.is_number):
        return method_tableau.factor(size * p) ** (end / size)
    full = int(sp.floor(end / size))
    rest = end - full * size
    return method_tableau.factor(size * p) ** full * (method_tableau.factor(rest * p) if rest else 1)
