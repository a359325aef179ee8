"""Steps from slopes alone: what a method does at every state, constant or not, to the linearised flow or to distances.

Pointwise systems have the Jacobian p(A) + diag(r'), symmetric up to a scaling of the nodes: its eigenvalues lie above
-damping = min p + min r'. Elsewhere Euler moves two states apart by |I + step J| <= max |1 + step J_0| + step |rest|,
J_0 the slope in a node's own entry, which is at most 1 + step m, m = max J_0 + |rest|, as long as step * damping <= 1
with damping = max -J_0. Methods that damp a half disc of radius r to the left of 0 damp every damped mode up to r/|J|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import sympy as sp

from rdgraph.algebra.normal_form import Act, H, Mix
from rdgraph.decisions.absolute_values import with_moduli
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.interval_extrema import interval_candidates
from rdgraph.decisions.maxima import Candidate, maximum, plus
from rdgraph.decisions.regions import Split
from rdgraph.decisions.rewriting import outermost
from rdgraph.errors import Undecided
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.answer_symbols import h, h0, lam
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System
from rdgraph.theory.box_faces import LocalField
from rdgraph.theory.lipschitz import magnitude, raw_constant, spread_bound
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.slope_bounds import extremes, is_kinked, slopes

_INFINITE = (sp.oo, -sp.oo, sp.zoo, sp.nan)


@dataclass(frozen=True)
class Damping:
    """The strongest damping over all states; over |h| <= R only where `local`; nearly reached where `exact`."""

    value: sp.Expr
    local: bool
    exact: bool = False

    @property
    def states(self) -> str:
        return "with |h| <= R" if self.local else "whatever its size"


def at_every_state(system: System, domain: Domain) -> Damping:
    """The strongest damping of the linearised flow of a generator plus entrywise terms.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + beta*sin(H)")
    >>> at_every_state(system, system.domain).value
    2*alpha + beta
    """
    structure = system.structure
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
        return alike + _from_above(by_node, domain, local)

    found = _smallest(strongest)
    return replace(found, exact=reached[-1])


def _from_above(expression: sp.Expr, domain: Domain, local: bool, normalisation: str = "row") -> sp.Expr:
    """A bound for a sum whose terms hold coefficients of nodes; those that are never positive are left out."""
    terms = [t for t in sp.Add.make_args(expression) if t != 0 and not domain.sign(t).is_nonpositive]
    return sp.Add(*(magnitude(t, normalisation, local) for t in terms))


def at_equal_states(system: System, domain: Domain) -> Damping:
    """A bound for the damping of the linearised flow at states that are the same in all nodes, where A@1 = 1."""
    field = LocalField.of(system)
    if field.varying:
        raise Undecided("coefficients of nodes leave no state that is the same in all of them")
    seen = {a.letter: a.inner for a in field.averages}
    if any(is_kinked(call, seen) for call in field.speed.atoms(sp.Function)):
        raise Undecided("the field has a kink at states that are the same in all nodes")
    own = sp.diff(field.speed, h).xreplace(seen)
    rest: dict[int, sp.Expr] = {}
    for a in field.averages:
        slope = sp.diff(field.speed, a.letter).xreplace(seen) * sp.diff(a.inner, h)
        rest[a.power] = rest.get(a.power, sp.S.Zero) + slope

    if any(slope.has(h0) for slope in (own, *rest.values())):
        raise Undecided("the slopes depend on H0")

    def strongest(local: bool) -> sp.Expr:
        sizes = [_largest(sp.expand(c), domain, local, modulus=True) for c in rest.values()]
        return sp.Max(0, sp.Add(_largest(sp.expand(-own), domain, local, modulus=False), *sizes))

    return _smallest(strongest)


def _largest(expression: sp.Expr, domain: Domain, local: bool, *, modulus: bool) -> sp.Expr:
    """A bound for an expression, or for its modulus, over all entries h or those with |h| <= R."""
    steep = extremes(expression.xreplace({h: H}), domain, local=local)
    negated = [Candidate(-c.value, c.valid) for c in steep.candidates if modulus]
    return steep.restore(maximum([*steep.candidates, *negated], steep.domain(domain)))


@dataclass(frozen=True)
class Apart:
    """Two runs of Euler's method: `damping` limits the step, `rate` is the m of 1 + step m."""

    damping: Damping
    rate: sp.Expr


def apart(system: System, domain: Domain, normalisation: str) -> Apart:
    """How fast two runs of Euler's method can separate, for any system."""
    outer = {call: sp.Dummy("x", real=True) for call in outermost(system.normal.atoms(Act, Mix))}
    back = {x: call for call, x in outer.items()}
    flat = system.normal.xreplace(outer)
    slope = sp.expand(sp.diff(flat, H))
    elsewhere = flat.xreplace({H: sp.Dummy("H", real=True)}).xreplace(back)

    def size(expression: sp.Expr, local: bool) -> sp.Expr:
        return _from_above(expression.xreplace(back), domain, local, normalisation)

    damping = _smallest(lambda local: size(sp.expand(-slope), local))

    alike = sp.Add(*(t for t in sp.Add.make_args(slope) if _is_alike(t, system)))

    def rate(local: bool) -> sp.Expr:
        measure = Magnitudes(system, find_normalisation(normalisation), local)
        return alike + size(slope - alike, local) + spread_bound(elsewhere, measure)

    growth = _smallest(rate)
    local = damping.local or growth.local
    return Apart(Damping(damping.value, local), growth.value if growth.local == local else rate(local))


def _is_alike(term: sp.Expr, system: System) -> bool:
    """A number that is the same in all nodes and states, and in all channels that a matrix mixes."""
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
