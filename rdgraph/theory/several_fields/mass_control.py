"""Mass control: positive weights w with sum_i w_i f_i <= c (1 + sum_i u_i) for densities.

Terms that grow faster than linearly are collected over the fields: what one field gains another one loses, as u**2*v
or u*(A@v) in u and v. Where densities stay non-negative, every field is then at most of the size of the sum, which
grows at most exponentially.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from rdgraph.algebra.normal_form import TIME, Act, Mix, State
from rdgraph.decisions.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.errors import NotApplicable
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.answer_symbols import public
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds, starts_of, states_of

#: Coefficients of a term by the field in whose equation it stands.
Shares = dict[str, sp.Expr]


def mass_control(system: System, normalisation: str = "row") -> str | None:
    """Why a weighted sum of densities grows at most linearly, at every node; None where no weights were found.

    >>> from rdgraph.systems.parser import parse
    >>> mass_control(parse("u' = a - u + u**2*v - L@u; v' = b - u**2*v - L@v"))
    'the sum u + v gains at most linearly'
    """
    try:
        speeds = NodeSpeeds.of(system, normalisation)
    except NotApplicable:
        return None
    shares = _fast_terms(system, speeds)
    if shares is None:
        return None
    domain = system.domain
    weights = _weights(system.fields, shares, domain)
    for choice in (dict.fromkeys(system.fields, sp.S.One), weights):
        totals = [sp.Add(*(choice[name] * c for name, c in row.items())) for row in shares.values()]
        if all(domain.sign(sp.simplify(total)).is_nonpositive for total in totals):
            text = " + ".join(name if w == 1 else f"{public(w)}*{name}" for name, w in choice.items())
            return f"the sum {text} gains at most linearly"
    return None


def _fast_terms(system: System, speeds: NodeSpeeds) -> Mapping[sp.Expr, Shares] | None:
    """Terms of higher order as monomials in quantities >= 0, with their coefficients; None where there are others."""
    measure = Magnitudes(system, find_normalisation("row"), is_local=False)
    back = {call.letter: Act(map(sp.Symbol, call.word), call.inner) for call in speeds.calls}
    moving = {*states_of(system).values(), *starts_of(system).values(), *back}
    found: dict[sp.Expr, Shares] = {}
    for name, speed in speeds.speeds.items():
        for term in sp.Add.make_args(sp.expand(speed)):
            if measure.order(term.xreplace(back)) <= 1:
                continue
            coefficient, core = term.as_independent(*moving, as_Add=False)
            if term.has(Mix, TIME) or not _is_nonnegative(core, system, back) or speeds.varying & term.free_symbols:
                return None
            row = found.setdefault(core, {})
            row[name] = row.get(name, sp.S.Zero) + coefficient
    return found


def _is_nonnegative(core: sp.Expr, system: System, back: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether a product is non-negative for densities: powers of states, and of what A collects of such products."""
    for factor in sp.Mul.make_args(core):
        base, exponent = factor.as_base_exp()
        if not (exponent.is_Integer and exponent > 0):
            return False
        if base in back:
            act = back[base]
            if any(w.name != "A" for w in act.word) or not _is_nonnegative(act.inner, system, back):
                return False
        elif not isinstance(base, State):
            return False
    return True


def _weights(fields: tuple[str, ...], shares: Mapping[sp.Expr, Shares], domain: Domain) -> dict[str, sp.Expr]:
    """Weights for which gains and losses of terms that stand in two equations cancel, 1 where nothing is asked."""
    weights: dict[str, sp.Expr] = {fields[0]: sp.S.One}
    pairs = [row for row in shares.values() if len(row) == 2]
    for _ in fields:
        for row in pairs:
            (one, p), (two, q) = row.items()
            if {domain.sign(p), domain.sign(q)} != {POSITIVE, NEGATIVE}:
                continue
            if one in weights and two not in weights:
                weights[two] = sp.cancel(-weights[one] * p / q)
            elif two in weights and one not in weights:
                weights[one] = sp.cancel(-weights[two] * q / p)
    return {name: weights.get(name, sp.S.One) for name in fields}
