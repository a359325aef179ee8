"""Step-size limits of explicit methods: the invariant box stays invariant (Euler), or the method stays stable.

Linear systems: the method must damp every frequency that the flow damps, |R(step p(lam))| <= 1 where p(lam) <= 0.
Several fields: the same for every eigenvalue of P(lam), complex ones too (`rdgraph.theory.field_step_limits`).
That is for undirected graphs, whose spectrum is real; directed graphs have eigenvalues in the disc |1 - lam| <= 1.
Nonlinear systems: Euler keeps the box iff step * Q <= 1 with Q the largest quotient of outward speed and distance to
the face, and so does Heun's method; other methods get the linear limit at the constant states. Where these are not
known, the slopes of the field give a limit for every state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import R, h, lam, public
from rdgraph.language.normal_form import H0, Act, H, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import branches, is_above, is_at_least, is_defined, sided_slope, with_moduli
from rdgraph.reals.budget import limited, within_budget
from rdgraph.reals.condition_words import in_words
from rdgraph.reals.domain import Domain
from rdgraph.reals.line_pieces import all_zeros
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum, plus, rational_candidates
from rdgraph.reals.regions import Split
from rdgraph.reals.rewriting import outermost
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.field_step_limits import (
    REAL_SPECTRUM,
    StepLimit,
    decimal,
    divide,
    real_limit,
    several_fields_limit,
    shown,
    spectrum_of,
)
from rdgraph.theory.gradient_flow import gradient_flow
from rdgraph.theory.invariant_boxes import check_averages, proved_box
from rdgraph.theory.lipschitz import norm_bounds, raw_constant
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.rectangle_faces import (
    AVERAGING,
    AVERAGING_OR_ALONE,
    NO_ISOLATED_NODES,
    UP_TO_S,
    Interval,
    RectangleFaces,
    within,
)
from rdgraph.theory.slope_bounds import extremes, is_kinked, slopes
from rdgraph.vocabulary.methods import Tableau, tableau
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- slope steps
# Steps from slopes alone: the effect of a method on the linearised flow, or on distances, at every state.
#
# Pointwise systems have the Jacobian p(A) + diag(r'), symmetric up to a scaling of the nodes: its eigenvalues lie above
# -damping = min p + min r'. Elsewhere Euler moves two states apart by |I + step J| <= max |1 + step J_0| + step |rest|,
# J_0 the slope in a node's own entry, which is at most 1 + step m, m = max J_0 + |rest|, as long as step * damping <= 1
# with damping = max -J_0. Methods that damp a half disc of radius r to the left of 0 damp every damped mode up to
# r/|J|.

_INFINITE = (sp.oo, -sp.oo, sp.zoo, sp.nan)


@dataclass(frozen=True)
class Damping:
    """The strongest damping over all states; over |h| <= R only where `local`; nearly reached where `exact`."""

    value: sp.Expr
    local: bool
    exact: bool = False

    @property
    def states(self) -> str:
        return "with |h| <= R" if self.local else "of any size"


def at_every_state(system: System, domain: Domain) -> Damping:
    """The strongest damping of the linearised flow of a generator plus entrywise terms.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + beta*sin(H)")
    >>> at_every_state(system, system.domain).value
    2*alpha + beta
    """
    structure = system.structure
    _check_defined(system, domain)
    if structure.coupled.has(Act, Mix):
        raise Undecided("no closed form outside generator plus entrywise reaction")
    by_node = sp.expand(-sp.diff(structure.coupled, H))
    p = sp.expand(sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.S.Zero))
    modes = interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain)

    reached = []

    def strongest(local: bool) -> sp.Expr:
        steep = slopes(structure.reaction, domain, local=local)
        reached.append(steep.exact and structure.coupled == 0)
        sums = [Candidate(-plus(g.value, r.value), g.valid + r.valid) for g in modes for r in steep.candidates]
        alike = steep.restore(maximum([*sums, Candidate(sp.S.Zero)], steep.domain(domain)))
        return alike + _from_above(by_node, norm_bounds(system, "row", local=local))

    damping = _smallest(strongest)
    return replace(damping, exact=reached[-1])


def _check_defined(system: System, domain: Domain) -> None:
    """Raise Undecided where the field has no value for some mask, or cancels a term without a value."""
    if system.normal.has(Nought):
        raise Undecided("; ".join(system.structure.obstacles))
    for divisor in (p.base for p in system.normal.atoms(sp.Pow) if p.exp.is_negative):
        for mask, value in itertools.product(system.algebra.masks, (sp.S.Zero, sp.S.One)):
            there = divisor.subs(mask, value)
            if divisor.has(mask) and domain.proves(sp.Ne(there, 0, evaluate=False)) is not True:
                raise Undecided(f"1/({divisor}) is not defined where {mask} = {value}")


def _from_above(
    expression: sp.Expr, measure: Magnitudes, neighbours: Mapping[sp.Symbol, sp.Expr] = MappingProxyType({})
) -> sp.Expr:
    """An upper bound of a sum with node coefficients; terms that are never positive are dropped.

    `neighbours` maps symbols to the operators and matrices for which they stand; their values are any real numbers.
    """
    domain = measure.system.domain
    terms = [t for t in sp.Add.make_args(expression) if t != 0 and not domain.sign(t).is_nonpositive]
    return sp.Add(*(measure.size(t.xreplace(dict(neighbours))) for t in terms))


def at_equal_states(system: System, domain: Domain) -> Damping:
    """A bound for the damping of the linearised flow at states equal in all nodes, where A@1 = 1."""
    field = NodeSpeeds.of_one(system)
    if field.varying:
        raise Undecided("with node coefficients no state stays equal in all nodes")
    seen = {call.letter: call.inner for call in field.calls}
    if any(is_kinked(call, seen) for call in field.speed.atoms(sp.Function)):
        raise Undecided("the field has a kink at states equal in all nodes")
    diagonal = sp.diff(field.speed, H).xreplace(seen)
    rest: dict[int, sp.Expr] = {}
    for call in field.calls:
        slope = sp.diff(field.speed, call.letter).xreplace(seen) * sp.diff(call.inner, H)
        rest[len(call.word)] = rest.get(len(call.word), sp.S.Zero) + slope

    if any(slope.has(H0) for slope in (diagonal, *rest.values())):
        raise Undecided("the slopes depend on H0")

    def strongest(local: bool) -> sp.Expr:
        sizes = [_largest(sp.expand(c), domain, local, modulus=True) for c in rest.values()]
        return sp.Max(0, sp.Add(_largest(sp.expand(-diagonal), domain, local, modulus=False), *sizes))

    return _smallest(strongest)


def _largest(expression: sp.Expr, domain: Domain, local: bool, *, modulus: bool) -> sp.Expr:
    """A bound for an expression, or for its modulus, over all entries H or those with |H| <= R."""
    steep = extremes(expression, domain, local=local)
    negated = [Candidate(-c.value, c.valid) for c in steep.candidates if modulus]
    return steep.restore(maximum([*steep.candidates, *negated], steep.domain(domain)))


@dataclass(frozen=True)
class Apart:
    """Two runs of Euler's method: `damping` limits the step, `rate` is the m of 1 + step m."""

    damping: Damping
    rate: sp.Expr


def apart(system: System, domain: Domain, normalisation: str) -> Apart:
    """How fast two runs of Euler's method can separate; holds for every system."""
    _check_defined(system, domain)
    outer = {call: sp.Dummy("x", real=True) for call in outermost(system.normal.atoms(Act, Mix))}
    back = {x: call for call, x in outer.items()}
    flat = system.normal.xreplace(outer)
    slope = sp.expand(sp.diff(flat, H))
    elsewhere = flat.xreplace({H: State("own")}).xreplace(back)

    damping = _smallest(
        lambda local: _from_above(sp.expand(-slope), norm_bounds(system, normalisation, local=local), back)
    )
    alike = sp.Add(*(t for t in sp.Add.make_args(slope) if _is_alike(t, system)))

    def rate(local: bool) -> sp.Expr:
        measure = norm_bounds(system, normalisation, local=local)
        return alike + _from_above(slope - alike, measure, back) + measure.slope(elsewhere)

    growth = _smallest(rate)
    local = damping.local or growth.local
    return Apart(Damping(damping.value, local), growth.value if growth.local == local else rate(local))


def _is_alike(term: sp.Expr, system: System) -> bool:
    """Whether a term has the same value in all nodes and states, and in all channels that a matrix mixes."""
    kinds, spread = system.algebra.kinds, Magnitudes(system, find_normalisation("row"), is_local=False).spread
    return all(kinds.get(x.name) in (Kind.SCALAR, Kind.CHANNEL) and x.name not in spread for x in term.free_symbols)


def lipschitz_size(system: System, normalisation: str) -> Damping:
    """A bound for the modulus of every eigenvalue of the Jacobian."""
    domain = system.domain
    return _smallest(lambda local: raw_constant(system, normalisation, domain, local=local, one_sided=False)[0])


def _smallest(bound: Callable[[bool], sp.Expr]) -> Damping:
    """The bound over all states if it is finite, else the one over |h| <= R."""
    for local in (False, True):
        try:
            value = with_moduli(sp.sympify(bound(local)))
        except (Undecided, Split):
            continue
        if not value.has(*_INFINITE):
            return Damping(value, local)
    raise Undecided("the slopes of the field have no bound, not even on |h| <= R")


# ---------------------------------------------------------------------- step limits
#: A step that is larger by this factor shows that a limit is sharp.
LARGER = sp.Rational(101, 100)
#: The range of the coefficients of that state: with very large coefficients a crude limit can look sharp.
ORDINARY = (sp.Integer(-4), sp.Integer(4))
#: Seconds for one way to a limit, and for the limit on directed graphs.
ROUTE_SECONDS, DIRECTED_SECONDS = 3.5, 2.0


@reads_system
@within_budget(lambda problem: StepLimit(None, f"undecided: {problem}"))
def step_limit(
    system: System,
    method: str | Tableau = "euler",
    normalisation: str = "symmetric",
    *,
    isolated: bool = False,
    everywhere: bool = False,
    directed: bool = False,
) -> StepLimit:
    """Largest step at which the box stays invariant, or the method stable.

    Linear systems: |R(step p(lam))| <= 1 wherever p(lam) <= 0, R the stability polynomial of the method. Several
    linear fields: |R(step mu)| <= 1 for every eigenvalue mu of P(lam) that does not grow.

    Args:
        system: a system, or a text or name that `parse` reads.
        method: an explicit Runge-Kutta method by name, or a `Tableau`.
        normalisation: of the operator A: symmetric or row.
        isolated: whether the graph may have nodes without edges.
        everywhere: whether to exclude limits that hold only at states equal in all nodes.
        directed: whether the graph is known to be directed, which excludes limits for real spectra; for linear systems
            `directed` of the answer is a limit on such graphs.

    Returns:
        The limit as a formula, what it guarantees, and what it assumes of the graph; without a value, the reason says
        what was tried.

    Raises:
        UnknownName: no method has that name.
        NotApplicable: the rows of the normalisation are not averages.

    >>> import rdgraph as rd
    >>> rd.step_limit(rd.parse("BS"), "euler").value
    1/(alpha + beta)
    >>> rd.step_limit(rd.parse("AC"), "euler", "row").value
    1/(alpha + 2*beta)
    """
    check_averages(normalisation)
    weights = tableau(method)
    problems: list[str] = []
    for route in _routes(system, weights, normalisation, isolated, everywhere, directed):
        try:
            return limited(ROUTE_SECONDS, route)
        except (Undecided, NotApplicable) as problem:
            problems.append(str(problem))
        except Split as split:
            problems.append(f"the limit is not the same where {', where '.join(map(str, split.parts))}")
    return StepLimit(None, f"undecided: {problems[0]}")


def _routes(
    system: System, weights: Tableau, normalisation: str, isolated: bool, everywhere: bool, directed: bool
) -> Iterator[Callable[[], StepLimit]]:
    """Ways to a limit, the strongest first."""
    if not system.is_single:
        yield lambda: several_fields_limit(system, weights, normalisation)
        return
    if system.structure.is_polynomial_in_operator:
        yield lambda: _linear(system, weights, normalisation)
    if not system.structure.linear:
        if weights.is_euler or weights.averages_euler:
            yield lambda: _box_keeping(system, normalisation, weights, isolated)
        if not isolated and not everywhere and not directed:  # isolated nodes have other steady states
            yield lambda: _at_equilibria(system, weights, normalisation)
    if not directed:
        yield lambda: _at_every_state(system, weights, normalisation)
    if not isolated and not directed and (system.structure.is_polynomial_in_operator or not everywhere):
        yield lambda: _at_equal_states(system, weights, normalisation)
    if system.structure.linear and not directed:
        yield lambda: _self_adjoint(system, weights, normalisation)
    if weights.is_euler or weights.averages_euler:
        yield lambda: _separating(system, weights, normalisation)
    yield lambda: _in_half_disc(system, weights, normalisation)


# ---------------------------------------------------------------------- linear systems
def _linear(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    value, note = real_limit(system.generator_symbol, weights, system.domain)
    limit, assumes = shown(value), spectrum_of(normalisation)
    means = "; ".join(filter(None, ["every frequency that the flow damps stays damped", note]))
    if not assumes:
        return StepLimit(limit, means, "stability")
    try:
        directed = limited(DIRECTED_SECONDS, _directed_limit, system, weights, system.domain)
    except Undecided:
        directed = None
    return StepLimit(limit, means, "stability", assumes, directed)


def _directed_limit(system: System, weights: Tableau, domain: Domain) -> sp.Expr | None:
    """A step for eigenvalues anywhere in the disc |1 - lam| <= 1.

    With c_k >= 0 for k >= 1 and sum_k c_k <= 0 a step with -step*c_0 below the method's monotone radius is a sum of
    powers of A with coefficients >= 0 that add up to at most 1: the largest entry (row), or the sum of moduli (column),
    never grows. Otherwise, for Euler, |1 + step p|^2 <= 1 on the circle lam = 1 - exp(i t), where |p|^2 and the real
    part of p are polynomials in cos(t).
    """
    generator = system.structure.generator
    diagonal, others = generator.get(0, sp.S.Zero), [c for k, c in generator.items() if k > 0]
    total = sp.expand(diagonal + sum(others, sp.S.Zero))
    if domain.is_nonnegative(-total) and all(domain.is_nonnegative(c) for c in others):
        return shown(divide(decimal(weights.monotone_radius), sp.expand(-diagonal), domain))
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
    inside = domain.where(*within(c, (sp.S.NegativeOne, sp.S.One)))
    if worst.has(sp.oo, -sp.oo, sp.zoo, sp.nan) or is_above(worst, sp.S.Zero, domain) is not True:
        return None
    return shown(divide(sp.S.One, worst, domain)) if is_at_least(-2 * real * worst, square, inside) else None


# ---------------------------------------------------------------------- boxes
def _box_keeping(system: System, normalisation: str, weights: Tableau, isolated: bool) -> StepLimit:
    """Euler: h + step f stays in [l, u] for all h and all averages over neighbours; smaller steps stay inside too."""
    box = proved_box(system, normalisation)
    box = box.allowing_isolated() if isolated and box.exists else box
    lower, upper = box.lower, box.upper
    if lower is None or upper is None or lower.has(R) or upper.has(R):
        raise Undecided("no box of fixed size was found")
    stretched = find_normalisation(normalisation).averages == "stretched"
    collecting = UP_TO_S if stretched else AVERAGING if box.assumes else AVERAGING_OR_ALONE
    faces = RectangleFaces(NodeSpeeds.of_one(system), collecting, None if box.start is None else {H.name: box.start})
    proposals: tuple[Callable[..., sp.Expr], ...] = (_outward_quotient, _steepest_slope)
    for propose in proposals:
        try:
            worst = propose(system, faces, lower, upper)
        except Undecided:
            continue
        if worst != 0 and is_defined(worst, faces.domain) and _keeps(worst, faces, lower, upper):
            text = f"the box [{public(lower)}, {public(upper)}] stays invariant"
            limit = shown(divide(sp.S.One, worst, faces.domain))
            highest = sp.sympify(collecting.highest)
            rests = any(sp.simplify(faces.speeds.uniform_one(face, sp.S.Zero, highest)) == 0 for face in (lower, upper))
            sharp = weights.is_euler and rests and _leaves(worst / LARGER, faces, lower, upper)
            return StepLimit(limit, text, "box", box.assumes, is_sharp=sharp)
    raise Undecided(f"for no Euler step is [{public(lower)}, {public(upper)}] proved to stay invariant")


def _outward_quotient(system: System, faces: RectangleFaces, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """The largest quotient of outward speed and distance to a face, with averages at their most outward values."""
    candidates = [Candidate(sp.S.Zero)]
    for face, sign in ((upper, 1), (lower, -1)):
        highest = sp.sympify(faces.collecting.highest)
        pushing = {call.letter: highest ** len(call.word) * face for call in faces.speeds.calls}
        speed = sp.expand(sign * faces.speeds.speed.xreplace(pushing))
        if not speed.is_polynomial(H):
            raise Undecided("the speed is not a polynomial")
        quotient, rest = sp.div(sp.Poly(speed, H), sp.Poly(sign * (face - H), H))
        if sp.simplify(rest.as_expr()) != 0:
            raise Undecided("the speed does not vanish on the face")
        candidates += interval_candidates(quotient.as_expr(), H, lower, upper, faces.domain)
    return maximum(candidates, faces.domain)


def _steepest_slope(system: System, faces: RectangleFaces, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """The largest -df/dh: with step times it at most 1, h + step f grows with h and is extreme on the faces."""
    slope = sp.expand(sp.diff(faces.speeds.speed, H))
    if slope.free_symbols & {*faces.speeds.varying, *(call.letter for call in faces.speeds.calls)}:
        raise Undecided("the slope depends on the neighbours or on the node")
    if slope.is_polynomial(H):
        candidates = interval_candidates(-slope, H, lower, upper, faces.domain)
        return maximum([Candidate(sp.S.Zero), *candidates], faces.domain)
    diagonal = system.structure.generator.get(0, sp.S.Zero)
    steep = slopes(system.structure.reaction, faces.domain, local=False)
    values = [Candidate(-diagonal - c.value, c.valid) for c in steep.candidates]
    return steep.restore(maximum([Candidate(sp.S.Zero), *values], steep.domain(faces.domain)))


def _distances(rate: sp.Expr, faces: RectangleFaces, box: Interval) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """`rate` times the distances to both faces after a step 1/rate, at every corner of the averages' ranges."""
    (lower, upper), bounds = box, {H.name: box}
    for distance in (rate * (H - lower) + faces.speeds.speed, rate * (upper - H) - faces.speeds.speed):
        for value, facts in faces.values(distance, bounds):
            yield value, (*facts, *faces.starting(bounds, value), *faces.inside(bounds))


def _keeps(worst: sp.Expr, faces: RectangleFaces, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Proved: no step 1/rate with rate >= `worst` leaves the box."""
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


def _leaves(rate: sp.Expr, faces: RectangleFaces, lower: sp.Expr, upper: sp.Expr) -> bool:
    """A point was found, with coefficients of ordinary size, at which a step 1/rate leaves the box."""
    letters = sorted(rate.free_symbols, key=str)
    ordinary = faces.domain.where(*(bound for x in letters for bound in within(x, ORDINARY)))
    return any(
        ordinary.point(sp.Gt(rate, 0, evaluate=False), *facts, sp.Lt(distance, 0, evaluate=False)) is not None
        for distance, facts in _distances(rate, faces, (lower, upper))
    )


# ---------------------------------------------------------------------- constant states
def _equal_states(regular: bool) -> tuple[str, str]:
    """The graphs on which states stay equal in all nodes: for the text, and as an assumption."""
    if regular:
        return "regular graphs", "the graph is regular"
    return "row-stochastic A with real spectrum", f"{NO_ISOLATED_NODES}; {REAL_SPECTRUM}"


def _at_equilibria(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    """The linear limit at all constant states that are not proved to be repelling, each where it is real."""
    structure, domain = system.structure, system.domain
    if not structure.is_pointwise or structure.has_source:
        raise Undecided("no closed form outside generator plus entrywise reaction")
    scalar = sp.expand(structure.scalar_field(h, sp.S.Zero))
    p = sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.S.Zero)
    damping: list[Candidate] = []
    places = []
    for zero, conditions in all_zeros(scalar, h, domain):
        where = domain.given(*conditions)
        slope = sided_slope(sp.diff(structure.reaction, H), H, zero, where)
        if not slope.agree:
            raise Undecided(f"the reaction has a kink at the constant state {public(zero)}")
        rate = sp.expand(p + slope.above)
        if not is_defined(rate, where):
            raise Undecided(f"the slope at the constant state {public(zero)} is not defined for all values")
        rates = interval_candidates(rate, lam, sp.S.Zero, sp.Integer(2), where)
        if any(not c.valid and where.proves(sp.Gt(c.value, 0, evaluate=False)) is True for c in rates):
            continue
        places.append(str(public(zero)))
        damping += [Candidate(-c.value, (*conditions, *c.valid)) for c in rates]
    if not damping:
        raise Undecided("no attracting or neutral constant state was found")
    strongest = maximum(damping, domain)
    limit = shown(divide(decimal(weights.real_limit), strongest, domain))
    where_text, assumes = _equal_states(find_normalisation(normalisation).is_symmetric)
    means = (
        f"linear stability at the constant states {', '.join(sorted(places))} ({where_text}), where they are real; "
        "no box is guaranteed"
    )
    return StepLimit(limit, means, "linearised", assumes)


# ---------------------------------------------------------------------- slopes
def _at_every_state(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    domain = system.domain
    damping = at_every_state(system, domain)
    limit = shown(divide(decimal(weights.real_limit), damping.value, domain))
    means = (
        f"at every state {damping.states}, each mode that the linearised flow damps stays damped; no box is guaranteed"
    )
    assumes = spectrum_of(normalisation)
    return StepLimit(limit, means, "slopes", assumes, is_sharp=damping.exact and not damping.local)


def _at_equal_states(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    domain = system.domain
    damping = at_equal_states(system, domain)
    limit = shown(divide(decimal(weights.real_limit), damping.value, domain))
    if system.structure.is_polynomial_in_operator:  # the same Jacobian at all states
        means = "at every state, each mode that the flow damps stays damped"
        return StepLimit(limit, means, "slopes", spectrum_of(normalisation))
    where_text, assumes = _equal_states(find_normalisation(normalisation).averages == "stretched")
    means = (
        f"at every state equal in all nodes ({where_text}), {damping.states}, each mode that the linearised flow damps "
        "stays damped; no box is guaranteed"
    )
    return StepLimit(limit, means, "equal slopes", assumes)


def _self_adjoint(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    """Linear gradient flows, the matrices among them symmetric: real eigenvalues, none larger than the constant K."""
    if gradient_flow(system).energy is None:
        raise Undecided("the linear terms are not self-adjoint")
    size = lipschitz_size(system, normalisation)
    limit = shown(divide(decimal(weights.real_limit), size.value, system.domain))
    assumes = spectrum_of(normalisation)
    return StepLimit(limit, "at every state, each mode that the flow damps stays damped", "slopes", assumes)


def _separating(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    domain = system.domain
    separation = apart(system, domain, normalisation)
    if separation.damping.value == 0:  # |1 + step*J| <= 1 + step*|J| holds for every step
        raise Undecided("the damping of the flow is not known")
    limit, rate = shown(divide(sp.S.One, separation.damping.value, domain)), shown(separation.rate)
    factor = "1 + step*m" if weights.is_euler else "1 + step*m + (step*m)**2/2"
    norm = find_normalisation(normalisation).norm_name
    inside = " and its stage" if weights.averages_euler and separation.damping.local else ""
    means = (
        f"two runs, each state{inside} {separation.damping.states}, separate in one step at most by {factor} ({norm}), "
        f"m = {in_words(rate)}; solutions separate at most like exp(m t)"
    )
    return StepLimit(limit, means, "distances", rate=rate)


def _in_half_disc(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    if weights.half_disc == 0:
        raise Undecided(f"eigenvalues near the imaginary axis, which {weights.name} does not damp, are not excluded")
    size = lipschitz_size(system, normalisation)
    limit = shown(divide(weights.half_disc, size.value, system.domain))
    means = f"at every state {size.states}, each mode that the linearised flow damps stays damped, also complex modes"
    return StepLimit(limit, means, "slopes")
