"""Invariant boxes: intervals [l, u] such that a state with all entries inside stays inside.

With f_i = c_0 h_i + sum_k c_k (A^k h)_i + r(h_i) and c_k >= 0 for k >= 1, the faces decide. Row-stochastic A: averages
of entries in [l, u] stay there, so r̂(l) >= 0 >= r̂(u) with r̂(h) = (sum c_k) h + r(h) suffices. Symmetric A: row sums
reach s = max_i sum_j A_ij >= 1 (s = 1 on regular graphs only), and the box must grow with s.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.decide import BOTH, NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, UNKNOWN, ZERO, Domain
from rdgraph.errors import NotApplicable
from rdgraph.normal import H, Mix
from rdgraph.symbols import R, h, public, s
from rdgraph.system import System
from rdgraph.wording import factored


@dataclass(frozen=True)
class Box:
    """An invariant interval for every entry; None bounds with a note where there is none."""

    lower: sp.Expr | None
    upper: sp.Expr | None
    note: str = ""
    others: tuple[tuple[sp.Expr, sp.Expr], ...] = ()

    @property
    def exists(self) -> bool:
        return self.lower is not None


def _none(note: str) -> Box:
    return Box(None, None, note)


def invariant_box(system: System, normalisation: str = "row") -> Box:
    """The box between the outermost zeros of the reaction, or [-R, R] for every R where any size is kept.

    >>> from rdgraph.parse import parse
    >>> box = invariant_box(parse("F"), "row")
    >>> box.lower, box.upper
    (0, 1)
    >>> invariant_box(parse("F"), "symmetric").upper
    (alpha*s - alpha + beta)/beta
    """
    if normalisation not in ("row", "symmetric"):
        raise NotApplicable(f"expected the normalisation row or symmetric, got {normalisation!r}")
    own = raw_box(system, normalisation)
    if not own.exists:
        return own
    others = tuple((public(a), public(b)) for a, b in own.others)
    return Box(public(own.lower), public(own.upper), own.note, others)  # type: ignore[arg-type]


def raw_box(system: System, normalisation: str) -> Box:
    """The box in the package's own symbols."""
    structure = system.structure
    domain = Domain.of(system)
    if structure.coupled != 0 and (structure.coupled.has(H) or structure.coupled.has(Mix)):
        return _none(f"no box was derived: {'; '.join(structure.obstacles)}")
    if structure.coupled != 0:
        return _none("a source on some nodes only pushes them out of any box unless it is balanced by a decay")
    for k, c in structure.generator.items():
        if k == 0 or domain.is_nonnegative(c):
            continue
        if domain.sign(c) in (NEGATIVE, NONPOSITIVE):
            return _none(f"no maximum principle: the coefficient {public(c)} of A^{k} is negative, positivity is lost")
        return _none(f"needs {public(c)} >= 0 (the coefficient of A^{k}); assume it to get the box")
    if normalisation == "row":
        return _row_box(system, domain)
    return _symmetric_box(system, domain)


def _row_box(system: System, domain: Domain) -> Box:
    structure = system.structure
    total = sp.expand(sum(structure.generator.values(), sp.S.Zero))
    if structure.source:
        return _balanced(total, structure.source, structure, domain)
    scalar = sp.expand(structure.scalar_field(h, sp.S.Zero))
    if scalar == 0:
        return Box(-R, R, "every interval is kept: averages stay between the smallest and the largest entry")
    zeros = _ordered_zeros(scalar, domain)
    if zeros is not None and len(zeros) >= 2:
        others = tuple((a, b) for i, a in enumerate(zeros) for b in zeros[i + 1 :] if (a, b) != (zeros[0], zeros[-1]))
        return Box(zeros[0], zeros[-1], "the reaction vanishes on both faces", others)
    centre = zeros[0] if zeros else sp.S.Zero
    inward = (domain.sign(-scalar.subs(h, centre + R)), domain.sign(scalar.subs(h, centre - R)))
    if set(inward) <= {POSITIVE, NONNEGATIVE, ZERO}:
        return Box(centre - R, centre + R, "the reaction points inwards on both faces for every R")
    if set(inward) & {BOTH, UNKNOWN}:
        return _none(
            f"undecided: whether h' = {public(factored(scalar))} points inwards depends on R or the coefficients"
        )
    return _none(f"h' = {public(factored(scalar))} leaves every box that contains 0")


def _balanced(total: sp.Expr, source: dict[int, sp.Expr], structure: object, domain: Domain) -> Box:
    """A source keeps |h| <= R (H0 inside too) iff the decay is at least as strong."""
    if structure.reaction != 0 or structure.constant != 0:  # type: ignore[attr-defined]
        return _none("a source together with a nonlinear reaction: no box was derived")
    strength = sp.Add(*(c if domain.is_nonnegative(c) else sp.Abs(c) for c in source.values()))
    sign = domain.sign(-total - strength)
    if sign in (POSITIVE, NONNEGATIVE, ZERO):
        return Box(-R, R, "the decay balances the source: h stays in the range of H0")
    if sign in (BOTH, UNKNOWN):
        return _none(f"[-R, R] is kept iff {public(total + strength)} <= 0")
    return _none("the source is not balanced by a decay: the mean drifts out of every box")


def _ordered_zeros(scalar: sp.Expr, domain: Domain) -> list[sp.Expr] | None:
    """Real zeros from small to large, if their order can be decided."""
    if not scalar.is_polynomial(h):
        return None
    zeros: list[sp.Expr] = []
    found = sp.roots(sp.Poly(scalar, h))
    if sum(found.values()) < sp.degree(scalar, h):
        return None
    for zero in found:
        if zero.is_real is False:
            continue
        if zero.is_real is None:
            return None
        signs = [domain.sign(known - zero) for known in zeros]
        if set(signs) & {BOTH, UNKNOWN}:
            return None
        zeros.insert(sum(sign not in (POSITIVE, NONNEGATIVE) for sign in signs), zero)
    return zeros


def _symmetric_box(system: System, domain: Domain) -> Box:
    regular = _row_box(system, domain)
    if not regular.exists:
        return regular
    note = "s is the largest row sum of A, 1 on regular graphs only"
    structure = system.structure
    pull = sum((c * s**k for k, c in structure.generator.items()), sp.S.Zero)
    stretched = pull * h + structure.reaction.xreplace({H: h})
    if regular.upper.has(R) or structure.source or structure.constant != 0:  # type: ignore[union-attr]
        return _none(
            "no box for irregular graphs: row sums of the symmetric A exceed 1; the row box holds on regular ones"
        )
    inside = domain.given(s - 1)
    bounds = []
    for face in (regular.lower, regular.upper):
        bound = sp.S.Zero if face == 0 else _stretched_face(stretched, face, inside)
        if bound is None:
            return _none("no box for irregular graphs was derived: the stretched face is not a zero of the reaction")
        bounds.append(bound)
    lower, upper = bounds
    if not (domain.is_nonnegative(-regular.lower) and domain.is_nonnegative(regular.upper)):  # type: ignore[operator]
        return _none("no box for irregular graphs: it would have to contain 0")
    return Box(lower, upper, note)


def _stretched_face(stretched: sp.Expr, face: sp.Expr, domain: Domain) -> sp.Expr | None:
    """The zero of c_0 h + sum c_k s^k h + r(h) that is the given face at s = 1 and lies outside it for s > 1."""
    excess = sp.Dummy("excess", nonnegative=True)
    for zero in sp.roots(sp.Poly(sp.expand(stretched), h)):
        if zero.is_real is False or sp.simplify(zero.subs(s, 1) - face) != 0:
            continue
        outward = 1 if face.is_positive else -1
        motion = sp.simplify(sp.diff(zero.subs(s, 1 + excess), excess) * outward)
        if motion.is_nonnegative or domain.is_nonnegative(outward * (zero - face)):
            return min(sp.expand(zero), sp.simplify(zero), key=sp.count_ops)
    return None
