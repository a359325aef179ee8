"""Step-size limits of explicit methods: keep the invariant box (Euler), or stay stable.

Linear systems: every frequency the flow damps must be damped by the method, |R(step p(lam))| <= 1 where p(lam) <= 0.
That is for undirected graphs, whose spectrum is real; directed graphs have eigenvalues in the disc |1 - lam| <= 1.
Nonlinear systems: Euler keeps the box iff step * Q <= 1 with Q the largest quotient of outward speed and distance to
the face; other methods get the linear limit at the constant states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.algebra.normal_form import H
from rdgraph.decisions.branches import branches, is_above, is_at_least, is_defined
from rdgraph.decisions.budget import within_budget
from rdgraph.decisions.closed_zeros import all_zeros
from rdgraph.decisions.condition_words import in_words
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.interval_extrema import interval_candidates, rational_candidates
from rdgraph.decisions.maxima import Candidate, maximum
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.methods.tableaux import tableau
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.answer_symbols import R, h, lam, public
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.box_faces import STOCHASTIC, STRETCHED, SUBSTOCHASTIC, Faces, Interval, LocalField, between
from rdgraph.theory.invariant_boxes import NO_ISOLATED_NODES, Box, check_averages, raw_box
from rdgraph.theory.slope_bounds import slopes

REAL_SPECTRUM = "the graph is undirected (real spectrum)"
#: A step that is larger by this factor shows that a limit is sharp.
LARGER = sp.Rational(101, 100)


@dataclass(frozen=True)
class StepLimit:
    """The largest step, None where none is known; `means` says what is kept.

    `keeps` is "stability" (linear systems, proved), "box" (Euler, proved for states inside) or "linearised" (stability
    near constant states only). `assumes` is what the graph must be like beyond its normalisation. `directed` is a step,
    for linear systems, at which on directed graphs too no eigenvalue of the step's matrix is larger than 1 in modulus.
    `sharp` says that coefficients and a state were found where a step larger by a hundredth leaves the box.
    """

    value: sp.Expr | None
    means: str
    keeps: str = ""
    assumes: str = ""
    directed: sp.Expr | None = None
    sharp: bool = False


@reads_system
@within_budget(lambda problem: StepLimit(None, f"undecided: {problem}"))
def step_limit(
    system: System, method: str | Tableau = "euler", normalisation: str = "symmetric", *, isolated: bool = False
) -> StepLimit:
    """Largest step that keeps the box or stays stable; `isolated` asks for graphs with isolated nodes.

    >>> from rdgraph.systems.parser import parse
    >>> step_limit(parse("BS"), "euler").value
    1/(alpha + beta)
    >>> step_limit(parse("AC"), "euler", "row").value
    1/(alpha + 2*beta)
    """
    check_averages(normalisation)
    weights = tableau(method)
    try:
        if system.structure.linear:
            return _linear(system, weights, normalisation)
        if weights.is_euler:
            box = raw_box(system, normalisation)
            box = box.allowing_isolated() if isolated and box.exists else box
            if box.exists and not box.lower.has(R) and not box.upper.has(R):  # type: ignore[union-attr]
                return _box_keeping(system, normalisation, box)
        if isolated:
            raise Undecided("isolated nodes do not rest at the constant states of the others")
        return _at_equilibria(system, weights, normalisation)
    except (Undecided, NotApplicable) as problem:
        return StepLimit(None, f"undecided: {problem}")


# ---------------------------------------------------------------------- linear systems
def _linear(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    try:
        p = system.generator_symbol
    except NotApplicable as problem:
        return StepLimit(
            None, f"{problem}; use the Lipschitz constant K: step <= {sp.N(weights.real_limit, 6)}/K is the scale"
        )
    domain = system.domain
    values = interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain)
    strongest = maximum([*(Candidate(-c.value, c.valid) for c in values), Candidate(sp.S.Zero)], domain)
    spectrum = domain.where(*between(lam, (sp.S.Zero, sp.Integer(2))))
    if is_at_least(strongest, -p, spectrum) is False:
        raise Undecided(f"the largest damping of {p} was not found")
    means = "every frequency that the flow damps is damped"
    growth = maximum(values, domain)
    if is_at_least(sp.S.Zero, growth, domain) is not True:
        means += f"; the flow itself grows at rate {in_words(public(growth))}, whatever the step"
    limit = public(_divide(_decimal(weights.real_limit), strongest, domain))
    if find_normalisation(normalisation).is_symmetric:
        return StepLimit(limit, means, "stability")
    return StepLimit(limit, means, "stability", REAL_SPECTRUM, _directed_limit(system, weights, domain))


def _directed_limit(system: System, weights: Tableau, domain: Domain) -> sp.Expr | None:
    """A step for eigenvalues anywhere in the disc |1 - lam| <= 1.

    With c_k >= 0 for k >= 1 and sum_k c_k <= 0 a step with -step*c_0 below the method's monotone radius is a sum of
    powers of A with coefficients >= 0 that add up to at most 1: the largest entry (row), or the sum of moduli (column),
    never grows. Otherwise, for Euler, |1 + step p|^2 <= 1 on the circle lam = 1 - exp(i t), where |p|^2 and the real
    part of p are polynomials in cos(t).
    """
    generator = system.structure.generator
    own, others = generator.get(0, sp.S.Zero), [c for k, c in generator.items() if k > 0]
    total = sp.expand(own + sum(others, sp.S.Zero))
    if domain.is_nonnegative(-total) and all(domain.is_nonnegative(c) for c in others):
        return public(_divide(_decimal(weights.monotone_radius), sp.expand(-own), domain))
    if not weights.is_euler:
        return None
    c = sp.Dummy("c", real=True)
    real = sp.expand(sum(a * sp.chebyshevt(k, c) for k, a in generator.items()))
    square = sp.expand(sum(a * b * sp.chebyshevt(abs(k - j), c) for k, a in generator.items()
                           for j, b in generator.items()))  # fmt: skip
    try:
        worst = maximum(
            rational_candidates(sp.cancel(-square / (2 * real)), c, sp.S.NegativeOne, sp.S.One, domain), domain
        )
    except (Undecided, sp.PolynomialError, NotImplementedError):
        return None
    inside = domain.where(*between(c, (sp.S.NegativeOne, sp.S.One)))
    if worst.has(sp.oo, -sp.oo, sp.zoo, sp.nan) or is_above(worst, sp.S.Zero, domain) is not True:
        return None
    return public(_divide(sp.S.One, worst, domain)) if is_at_least(-2 * real * worst, square, inside) else None


def _decimal(limit: sp.Expr) -> sp.Expr:
    return limit if limit.is_Rational or limit == sp.oo else sp.Float(sp.N(limit, 15), 15)


def _divide(top: sp.Expr, bottom: sp.Expr, domain: Domain) -> sp.Expr:
    """top / bottom branch by branch; where the bottom is zero there is no limit."""
    pieces: list[tuple[sp.Expr, sp.Basic]] = []
    before: tuple[sp.Basic, ...] = ()
    for value, condition in bottom.args if isinstance(bottom, sp.Piecewise) else ((bottom, sp.true),):
        pieces += _quotient(top, value, condition, domain.where(*before))
        before += (sp.Not(condition),)
    return pieces[0][0] if pieces[0][1] == sp.true else sp.Piecewise(*pieces)


def _quotient(top: sp.Expr, bottom: sp.Expr, condition: sp.Basic, domain: Domain) -> list[tuple[sp.Expr, sp.Basic]]:
    if bottom == 0:
        return [(sp.oo, condition)]
    if isinstance(bottom, sp.Max):
        bottom = sp.Max(*(part for part in bottom.args if part != 0))
    value = sp.cancel(top / bottom) if top.is_Rational and bottom.is_rational_function() else top / bottom
    positive = sp.Gt(bottom, 0)
    if domain.where(condition).proves(positive) is True:
        return [(value, condition)]
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}.get(type(condition))
    if strict is not None and domain.where(strict(*condition.args)).proves(positive) is True:
        return [(value, strict(*condition.args)), (sp.oo, condition)]
    return [(value, sp.And(condition, positive)), (sp.oo, condition)]


# ---------------------------------------------------------------------- boxes
def _box_keeping(system: System, normalisation: str, box: Box) -> StepLimit:
    """Euler: h + step f stays in [l, u] for all h and all averages over neighbours; smaller steps stay inside too."""
    lower, upper = box.lower, box.upper
    assert lower is not None
    assert upper is not None
    stretched = find_normalisation(normalisation).averages == "stretched"
    rows = STRETCHED if stretched else STOCHASTIC if box.assumes else SUBSTOCHASTIC
    faces = Faces(LocalField.of(system), system.domain.where(*rows.conditions), rows, box.start)
    proposals: tuple[Callable[..., sp.Expr], ...] = (_outward_quotient, _steepest_slope)
    for propose in proposals:
        try:
            worst = propose(system, faces, lower, upper)
        except Undecided:
            continue
        if worst != 0 and is_defined(worst, faces.domain) and _keeps(worst, faces, lower, upper):
            text = f"keeps the box [{public(lower)}, {public(upper)}]"
            limit = public(_divide(sp.S.One, worst, faces.domain))
            return StepLimit(limit, text, "box", box.assumes, sharp=_leaves(worst / LARGER, faces, lower, upper))
    raise Undecided(f"no Euler step that keeps [{public(lower)}, {public(upper)}] was proved")


def _outward_quotient(system: System, faces: Faces, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """The largest quotient of outward speed and distance to a face, averages being where they push most."""
    candidates = [Candidate(sp.S.Zero)]
    for face, sign in ((upper, 1), (lower, -1)):
        pushing = {a.letter: faces.rows.highest(a.power) * face for a in faces.field.averages}
        speed = sp.expand(sign * faces.field.speed.xreplace(pushing))
        if not speed.is_polynomial(h):
            raise Undecided("the speed is not a polynomial")
        quotient, rest = sp.div(sp.Poly(speed, h), sp.Poly(sign * (face - h), h))
        if sp.simplify(rest.as_expr()) != 0:
            raise Undecided("the speed does not vanish on the face")
        candidates += interval_candidates(quotient.as_expr(), h, lower, upper, faces.domain)
    return maximum(candidates, faces.domain)


def _steepest_slope(system: System, faces: Faces, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """The largest -df/dh: with step times it at most 1, h + step f grows with h and is extreme on the faces."""
    slope = sp.expand(sp.diff(faces.field.speed, h))
    if any(slope.has(a.letter) for a in faces.field.averages) or not slope.free_symbols.isdisjoint(faces.field.varying):
        raise Undecided("the slope depends on the neighbours or on the node")
    if slope.is_polynomial(h):
        found = interval_candidates(-slope, h, lower, upper, faces.domain)
        return maximum([Candidate(sp.S.Zero), *found], faces.domain)
    own = system.structure.generator.get(0, sp.S.Zero)
    steep = slopes(system.structure.reaction, faces.domain, local=False)
    values = [Candidate(-own - c.value, c.valid) for c in steep.candidates]
    return steep.restore(maximum([Candidate(sp.S.Zero), *values], steep.domain(faces.domain)))


def _distances(rate: sp.Expr, faces: Faces, box: Interval) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """`rate` times the distances to both faces after a step 1/rate, at every corner of the averages' ranges."""
    lower, upper = box
    for distance in (rate * (h - lower) + faces.field.speed, rate * (upper - h) - faces.field.speed):
        for value, facts in faces.corners(distance, box):
            yield value, (*facts, *between(h, box))


def _keeps(worst: sp.Expr, faces: Faces, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Proved: no step 1/rate leaves the box, for any rate from `worst` on."""
    rate = sp.Dummy("rate", positive=True)
    inside = faces.domain.where(_at_least(rate, worst))
    return all(
        inside.where(*facts).proves(sp.Ge(distance, 0, evaluate=False)) is True
        for distance, facts in _distances(rate, faces, (lower, upper))
    )


def _at_least(letter: sp.Symbol, value: sp.Expr) -> sp.Basic:
    """letter >= value as a condition without Max and Piecewise."""
    if isinstance(value, sp.Max):
        return sp.And(*(_at_least(letter, part) for part in value.args))
    if isinstance(value, sp.Piecewise):
        return sp.Or(*(sp.And(*facts, _at_least(letter, part)) for part, facts in branches(value)))
    return sp.Ge(letter, value, evaluate=False)


def _leaves(rate: sp.Expr, faces: Faces, lower: sp.Expr, upper: sp.Expr) -> bool:
    """A point was found at which a step 1/rate leaves the box."""
    return any(
        faces.domain.point(sp.Gt(rate, 0, evaluate=False), *facts, sp.Lt(distance, 0, evaluate=False)) is not None
        for distance, facts in _distances(rate, faces, (lower, upper))
    )


# ---------------------------------------------------------------------- constant states
def _at_equilibria(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    """The linear limit at all constant states that are not proved to be repelling; each counts where it is real."""
    structure, domain = system.structure, system.domain
    if not structure.is_pointwise or structure.has_source:
        raise Undecided("no closed form outside generator plus entrywise reaction")
    scalar = sp.expand(structure.scalar_field(h, sp.S.Zero))
    p = sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.S.Zero)
    damping: list[Candidate] = []
    places = []
    for zero, conditions in all_zeros(scalar, h, domain):
        rate = sp.expand(p + sp.diff(structure.reaction, H).xreplace({H: zero}))
        where = domain.given(*conditions)
        rates = interval_candidates(rate, lam, sp.S.Zero, sp.Integer(2), where)
        if any(not c.valid and where.proves(sp.Gt(c.value, 0, evaluate=False)) is True for c in rates):
            continue
        places.append(str(public(zero)))
        damping += [Candidate(-c.value, (*conditions, *c.valid)) for c in rates]
    if not damping:
        raise Undecided("no attracting or neutral constant state was found")
    strongest = maximum(damping, domain)
    limit = public(_divide(_decimal(weights.real_limit), strongest, domain))
    regular = find_normalisation(normalisation).is_symmetric
    where_text = "regular graphs" if regular else "row-stochastic A with real spectrum"
    means = (
        f"linear stability at the constant states {', '.join(sorted(places))} ({where_text}), where they are real; "
        "the box is not guaranteed"
    )
    assumes = "the graph is regular" if regular else f"{NO_ISOLATED_NODES}; {REAL_SPECTRUM}"
    return StepLimit(limit, means, "linearised", assumes)
