"""The energy E = tr(H^T L H) under f = p(A) H + r(H), r acting on every entry, on undirected regular graphs.

With A symmetric and A@1 = 1, <L H, r(H)> = 1/2 sum_ij A_ij (h_i - h_j) (r(h_i) - r(h_j)) <= m E with m = sup r', so
that dE/dt <= sum_k 2 lam_k (p(lam_k) + m) |c_k|^2. Near a constant state at which r' comes close to m a mode with the
largest p grows at the rate that this says: the energy never increases on every such graph iff max p + m <= 0, the
one-sided constant of the symmetric normalisation.
"""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.branches import is_above, is_at_least
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.judge import BOUNDED, watched
from rdgraph.decisions.line_extents import in_decimals
from rdgraph.decisions.regions import cases
from rdgraph.errors import NotApplicable
from rdgraph.syntax.answer_symbols import lam, public
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import raw_constant
from rdgraph.theory.unboundedness import is_unbounded

REGULAR = "on undirected regular graphs"


def reaction_energy(system: System) -> tuple[str, str] | None:
    """The bound of dE/dt and whether E must decay, in words; None outside generator plus entrywise reaction.

    >>> from rdgraph.systems.parser import parse
    >>> reaction_energy(parse("-alpha*L@H + tanh(H) - beta*H"))[1]
    'on undirected regular graphs never increases iff 1 - beta <= 0'
    >>> reaction_energy(parse("-alpha*L@H - beta*H**3"))[1]
    'never increases, on undirected regular graphs'
    """
    structure, domain = system.structure, system.domain
    if not structure.is_pointwise or structure.has_source:
        return None

    def question(inside: Domain) -> tuple[sp.Expr, bool]:
        value, exact = raw_constant(system, "symmetric", inside, local=False, one_sided=True)
        infinite = value.has(sp.oo, -sp.oo, sp.zoo, sp.nan)
        if infinite and not exact:
            exact = is_unbounded(system, inside, one_sided=True)
        return (sp.oo if infinite else value), exact

    with watched() as watch:
        parts = cases(domain, question)
        told = [_fate(value, exact, domain.where(condition)) for condition, (value, exact) in parts]
    if len(set(told)) > 1:
        return None
    return _bound(parts, system), f"{told[0]}; {BOUNDED}" if watch.bounded else told[0]


def _fate(worst: sp.Expr, exact: bool, domain: Domain) -> str:
    if worst == sp.oo:
        if not exact:
            raise NotApplicable("no bound of the slopes of the reaction was found")
        return f"increases for some states, whatever the coefficients, {REGULAR}"
    if is_at_least(sp.S.Zero, worst, domain):
        return f"never increases, {REGULAR}"
    if exact and is_above(worst, sp.S.Zero, domain):
        return f"increases for some states, whatever the coefficients, {REGULAR}"
    return f"{REGULAR} never increases {'iff' if exact else 'where'} {in_decimals(public(worst))} <= 0"


def _bound(parts: list[tuple[sp.Basic, tuple[sp.Expr, bool]]], system: System) -> str:
    """dE/dt by frequencies, where the slopes have one bound."""
    law = "dE/dt = 2 tr(H^T L f(H))"
    (_, (worst, _)), *others = parts
    if others or worst == sp.oo or worst.has(sp.Piecewise, sp.Max):
        return law
    rate = in_decimals(public(sp.expand(lam * worst)))
    return f"{law} <= 2 sum_k ({rate}) |c_k|^2 {REGULAR}"
