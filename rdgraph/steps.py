"""Step-size limits of explicit methods: keep the invariant box (Euler), or stay stable.

Linear systems: every frequency the flow damps must be damped by the method, |R(step p(lam))| <= 1 where p(lam) <= 0.
Nonlinear systems: Euler keeps the box iff step * Q <= 1 with Q the largest quotient of outward speed and distance to
the face; other methods get the linear limit at the attracting constant states.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.boxes import raw_box
from rdgraph.decide import NEGATIVE, NONPOSITIVE, ZERO, Domain
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.extrema import interval_candidates
from rdgraph.maxima import Candidate, maximum
from rdgraph.normal import H
from rdgraph.spectral import generator_symbol
from rdgraph.symbols import R, h, lam, public, s
from rdgraph.system import System
from rdgraph.tableaux import Tableau, tableau
from rdgraph.wording import in_words


@dataclass(frozen=True)
class StepLimit:
    """The largest step, None where none is known; `means` says what is kept.

    `keeps` is "stability" (linear systems, proved), "box" (Euler, proved for states inside) or "linearised" (stability
    near constant states only).
    """

    value: sp.Expr | None
    means: str
    keeps: str = ""


def step_limit(system: System, method: str | Tableau = "euler", normalisation: str = "symmetric") -> StepLimit:
    """Largest step that keeps the box or stays stable.

    >>> from rdgraph.parse import parse
    >>> step_limit(parse("BS"), "euler").value
    1/(alpha + beta)
    >>> step_limit(parse("AC"), "euler", "row").value
    1/(alpha + 2*beta)
    """
    if normalisation not in ("row", "symmetric"):
        raise NotApplicable(f"expected the normalisation row or symmetric, got {normalisation!r}")
    weights = tableau(method)
    try:
        if system.structure.linear:
            return _linear(system, weights)
        box = raw_box(system, normalisation)
        if weights.is_euler and box.exists and not box.upper.has(R):  # type: ignore[union-attr]
            return _box_keeping(system, normalisation)
        return _at_equilibria(system, weights, normalisation)
    except (Undecided, NotApplicable) as problem:
        return StepLimit(None, f"undecided: {problem}")


def _linear(system: System, weights: Tableau) -> StepLimit:
    try:
        p = generator_symbol(system)
    except NotApplicable as problem:
        return StepLimit(
            None, f"{problem}; use the Lipschitz constant K: step <= {sp.N(weights.real_limit, 6)}/K is the scale"
        )
    domain = Domain.of(system)
    damping = [Candidate(-c.value, c.valid) for c in interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain)]
    strongest = maximum([*damping, Candidate(sp.S.Zero)], domain)
    means = "every frequency that the flow damps is damped"
    growth = maximum(interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    if not domain_nonpositive(domain, growth):
        means += f"; the flow itself grows at rate {in_words(public(growth))}, whatever the step"
    return StepLimit(public(_divide(_decimal(weights.real_limit), strongest)), means, "stability")


def domain_nonpositive(domain: Domain, growth: sp.Expr) -> bool:
    """Whether a maximum (possibly piecewise) is <= 0 on the whole domain."""
    values = [branch.expr for branch in growth.args] if isinstance(growth, sp.Piecewise) else [growth]
    return all(domain.sign(v) in (ZERO, NONPOSITIVE, NEGATIVE) for v in values)


def _decimal(limit: sp.Expr) -> sp.Expr:
    return limit if limit.is_Rational or limit == sp.oo else sp.Float(sp.N(limit, 15), 15)


def _divide(top: sp.Expr, bottom: sp.Expr) -> sp.Expr:
    """top / bottom branch by branch; nothing to damp means no limit."""
    if isinstance(bottom, sp.Piecewise):
        branches = []
        for value, condition in bottom.args:
            strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}.get(type(condition))
            condition = strict(*condition.args) if strict and value != 0 else condition
            branches.append((_divide(top, value), condition))
        return sp.Piecewise(*branches)
    if bottom == 0:
        return sp.oo
    return sp.cancel(top / bottom) if top.is_Rational else top / sp.factor(bottom)


def _box_keeping(system: System, normalisation: str) -> StepLimit:
    """Euler: h + step f stays in [l, u] for all h and all neighbour averages in the box (no self-loops)."""
    box = raw_box(system, normalisation)
    structure, domain = system.structure, Domain.of(system)
    if normalisation == "symmetric":
        domain = domain.given(s - 1)
    lower, upper = box.lower, box.upper
    assert lower is not None
    assert upper is not None
    reach = {k: c * (s**k if normalisation == "symmetric" else 1) for k, c in structure.generator.items() if k > 0}
    pull = sum(reach.values(), sp.S.Zero)
    own = structure.generator.get(0, sp.S.Zero) * h + structure.reaction.xreplace({H: h}) + structure.constant
    candidates = [Candidate(sp.S.Zero)]
    for face, sign in ((upper, 1), (lower, -1)):
        speed = sp.expand(sign * (own + pull * face))
        quotient, rest = sp.div(sp.Poly(speed, h), sp.Poly(sign * (face - h), h))
        if sp.simplify(rest.as_expr()) != 0:
            raise Undecided("the reaction does not vanish on the face; the sharp step is not a polynomial maximum")
        candidates += interval_candidates(quotient.as_expr(), h, lower, upper, domain)
    worst = maximum(candidates, domain)
    return StepLimit(public(_divide(sp.S.One, worst)), f"keeps the box [{public(lower)}, {public(upper)}]", "box")


def _at_equilibria(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    structure, domain = system.structure, Domain.of(system)
    if not structure.is_pointwise or structure.has_source:
        raise Undecided("no closed form outside generator plus entrywise reaction")
    scalar = sp.expand(structure.scalar_field(h, sp.S.Zero))
    if not scalar.is_polynomial(h):
        raise Undecided(f"the zeros of {scalar} have no closed form")
    p = sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.S.Zero)
    damping: list[Candidate] = []
    places = []
    for zero in sp.roots(sp.Poly(scalar, h)):
        rate = sp.expand(p + sp.diff(structure.reaction, H).xreplace({H: zero}))
        growth = maximum(interval_candidates(rate, lam, sp.S.Zero, sp.Integer(2), domain), domain)
        if zero.is_real and domain_nonpositive(domain, growth):
            places.append(str(public(zero)))
            damping += [
                Candidate(-c.value, c.valid) for c in interval_candidates(rate, lam, sp.S.Zero, sp.Integer(2), domain)
            ]
    if not damping:
        raise Undecided("no attracting or neutral constant state was found")
    limit = public(_divide(_decimal(weights.real_limit), maximum(damping, domain)))
    where = "regular graphs" if normalisation == "symmetric" else "row-stochastic A with real spectrum"
    means = f"linear stability at the constant states {', '.join(sorted(places))} ({where}); the box is not guaranteed"
    return StepLimit(limit, means, "linearised")
