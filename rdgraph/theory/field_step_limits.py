"""Step limits of several linear fields: no mode that the flow damps, or leaves oscillating, may be amplified by a step.

Modes are the eigenvalues mu of P(lam), lam in [0, 2], and a step multiplies them by R(step mu). With numbers for the
coefficients the limit is decided for every method (`joint_step_limits`). With letters it has a closed form

- where all eigenvalues are polynomials in lam: that of the fastest one;
- where two fields oscillate without damping (trace 0): the method's limit on the imaginary axis by the frequency;
- for Euler's method where the trace of two fields is a constant -a and their determinant d is linear in lam. A pair of
  complex eigenvalues has |1 + step mu|^2 = 1 - step a + step^2 d, which is 1 at step = a/d; real ones lead to
  4/(a + sqrt(a^2 - 4d)). The first falls with d and the second rises, so that the ends of [0, 2] decide.
"""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.branches import is_above, is_at_least
from rdgraph.decisions.condition_words import in_words
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.interval_extrema import interval_candidates
from rdgraph.decisions.maxima import Candidate, maximum
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.answer_symbols import lam, public
from rdgraph.systems.system import System
from rdgraph.theory.box_faces import between
from rdgraph.theory.joint_spectra import groups
from rdgraph.theory.joint_step_limits import WIDTH, joint_limit
from rdgraph.theory.ray_stability import imaginary_limit
from rdgraph.theory.step_limit_values import REAL_SPECTRUM, StepLimit, decimal, divide

_MEANS = "every mode that the flow damps or leaves oscillating is not amplified"


def several_fields_limit(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    """The limit of a linear system of several fields; raises Undecided, or NotApplicable where there is no symbol."""
    if system.is_noisy:
        raise NotApplicable(f"expected a system without noise for a step limit, got {system.text}; drop the noise xi")
    P, domain = system.generator_matrix, system.domain
    assumes = "" if find_normalisation(normalisation).is_symmetric else REAL_SPECTRUM
    if P.free_symbols <= {lam} and all(sp.Poly(x, lam).domain in (sp.ZZ, sp.QQ) for x in P):
        found = joint_limit(P, weights)
        means = f"{found.why}; no step will do" if found.value == 0 else found.why or _MEANS
        means += "" if found.is_exact else f"; a step larger by {float(WIDTH):g} in parts is proved to amplify one"
        means += "; the flow itself amplifies some modes, whatever the step" if found.grows else ""
        return StepLimit(found.value, means, "stability", assumes)
    limits, notes = [], []
    for group in groups(P):
        value, note = _symbolic_limit(P.extract(list(group), list(group)), weights, domain)
        limits.append(value)
        notes += [note] if note else []
    value = limits[0] if len(limits) == 1 else sp.Min(*limits)
    return StepLimit(public(value), "; ".join([_MEANS, *dict.fromkeys(notes)]), "stability", assumes)


def _symbolic_limit(block: sp.Matrix, weights: Tableau, domain: Domain) -> tuple[sp.Expr, str]:
    """The limit of fields that act on each other, and what else is to be said."""
    if block.rows == 1:
        return _real(block[0, 0], weights, domain)
    if block.rows > 2:
        raise Undecided(f"{block.rows} fields act on each other; with numbers for all coefficients the limit is found")
    trace, product = sp.expand(block.trace()), sp.expand(block.det())
    spectrum = domain.where(*between(lam, (sp.S.Zero, sp.Integer(2))))
    if trace == 0 and is_at_least(product, sp.S.Zero, spectrum) is True:
        return _undamped(product, weights, domain)
    if weights.is_euler and not trace.has(lam) and sp.degree(product, lam) <= 1 and is_above(-trace, 0, domain) is True:
        return _damped(-trace, product, domain)
    raise Undecided(
        f"the eigenvalues of two fields, with trace {public(trace)} and determinant {public(product)}, have no limit "
        f"in closed form for {weights.name}; with numbers for all coefficients it is found"
    )


def _real(p: sp.Expr, weights: Tableau, domain: Domain) -> tuple[sp.Expr, str]:
    values = interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain)
    strongest = maximum([*(Candidate(-c.value, c.valid) for c in values), Candidate(sp.S.Zero)], domain)
    spectrum = domain.where(*between(lam, (sp.S.Zero, sp.Integer(2))))
    if is_at_least(strongest, -p, spectrum) is False:
        raise Undecided(f"the largest damping of {p} was not found")
    growth = maximum(values, domain)
    grows = is_at_least(sp.S.Zero, growth, domain) is not True
    note = f"the flow itself grows at rate {in_words(public(growth))}, whatever the step" if grows else ""
    return divide(decimal(weights.real_limit), strongest, domain), note


def _undamped(product: sp.Expr, weights: Tableau, domain: Domain) -> tuple[sp.Expr, str]:
    """Frequencies sqrt(det): the imaginary axis decides."""
    fastest = maximum(interval_candidates(product, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    if is_above(fastest, sp.S.Zero, domain) is not True:
        raise Undecided(f"whether {public(fastest)} is positive is not known")
    limit = imaginary_limit(weights)
    if limit == 0:
        return sp.S.Zero, f"{weights.name} amplifies every oscillation that the flow does not damp: no step will do"
    return sp.sqrtdenest(limit / sp.sqrt(fastest)) if not limit.has(sp.CRootOf) else decimal(limit) / sp.sqrt(
        fastest
    ), ""


def _damped(rate: sp.Expr, product: sp.Expr, domain: Domain) -> tuple[sp.Expr, str]:
    """Euler's method on mu^2 + rate*mu + det = 0."""
    ends = list(dict.fromkeys(sp.expand(product.subs(lam, end)) for end in (0, 2)))
    limits = [
        sp.Piecewise((rate / d, sp.Ge(4 * d, rate**2)), (4 / (rate + sp.sqrt(rate**2 - 4 * d)), True)) for d in ends
    ]
    grows = any(is_at_least(d, sp.S.Zero, domain) is not True for d in ends)
    note = "modes with a negative determinant grow, whatever the step" if grows else ""
    return limits[0] if len(limits) == 1 else sp.Min(*limits, evaluate=False), note
