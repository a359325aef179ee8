"""Proofs that no box is invariant: inequalities that a box must satisfy on certain graphs, and that no box does.

Row-stochastic A: in a directed chain, or in the trees of high degree that regular graphs approach, the averages
A^k g(h) of a node can lie on either face, independently of the entry of the node and of each other. Symmetric A: a star
with m leaves has s = sqrt(m); its hub collects s times the average of the leaves, a leaf collects the hub divided by s,
and after two steps either collects itself. A box [l, u] is invariant only if none of these corners moves outwards;
where no l < u satisfies that, there is no box.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import R, h, public, s
from rdgraph.language.normal_form import H0, H
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import factored
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import holds
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds

#: With more powers of A than this, the corners are not tried.
MAX_POWERS = 4
#: Coefficients tried one after the other; the seconds of one proof, and of all proofs of one kind.
POINTS, PROOF_SECONDS, SECONDS = 16, 0.8, 1.5
#: The star on which numbers are tried: four leaves.
LEAVES = 4
NOT_EVERYWHERE = "no box is invariant on every graph"

Held = list[sp.Basic]


@dataclass(frozen=True)
class Escape:
    """Why no box is invariant; `at` are the coefficients for which this is proved, empty if it is for all."""

    reason: str
    at: tuple[tuple[str, sp.Expr], ...] = ()


@dataclass(frozen=True)
class Escapes:
    """The search for a proof that no box is invariant, on row-stochastic A or (`stars`) on symmetric A with s > 1."""

    field: NodeSpeeds
    stars: bool = False

    @property
    def domain(self) -> Domain:
        return self.field.system.domain

    def always(self) -> Escape | None:
        """A proof that no box is invariant for any coefficients; None if none was found."""
        try:
            return limited(SECONDS, self._whatever_the_coefficients)
        except Undecided:
            return None

    def _whatever_the_coefficients(self) -> Escape | None:
        uniform, *others = self._modes()
        corners = None if self.field.has_source else self._no_faces
        return self._runaway([uniform]) or (corners and corners()) or self._runaway(others)

    def somewhere(self) -> Escape | None:
        """A proof that no box is invariant at some coefficients, which it names; None if none was found."""
        try:
            return limited(SECONDS, lambda: next(filter(None, map(self._at, self._points())), None))
        except Undecided:
            return None

    def _at(self, point: dict[sp.Symbol, sp.Expr]) -> Escape | None:
        reason = (self._runs_away_at if self.field.has_source else self._no_faces_at)(point)
        if not reason:
            return None
        coefficients = tuple(sorted((x.name, value) for x, value in point.items()))
        if not coefficients:
            return Escape(reason)
        where = ", ".join(f"{name} = {value}" for name, value in coefficients)
        return Escape(f"no box is invariant for all coefficients: with {where} {reason}", coefficients)

    # ------------------------------------------------------------------ corners
    def _no_faces(self) -> Escape | None:
        held = self._held(s)
        if held is None or not _is_empty(self.domain.where(*held)):
            return None
        return Escape(f"no maximum principle, {NOT_EVERYWHERE}: {self._graph(s)}")

    def outside(self, where: sp.Basic) -> bool:
        """Proved: no box is invariant for coefficients that violate a condition."""
        held = None if self.field.has_source else self._held(s)
        return held is not None and _is_empty(self.domain.where(sp.Not(where), *held))

    def _no_faces_at(self, point: dict[sp.Symbol, sp.Expr]) -> str:
        held = self._held(sp.sqrt(LEAVES))
        if held is None or not _is_empty(Domain(tuple(c.xreplace(point) for c in held))):
            return ""
        return f"{NOT_EVERYWHERE}: {self._graph(sp.sqrt(LEAVES))}"

    def _graph(self, stretch: sp.Expr) -> str:
        if not self.stars:
            return "averages over many neighbours can lie on either face"
        leaves = "m leaves, s = sqrt(m)" if stretch == s else f"{LEAVES} leaves, s = {stretch}"
        return f"together a star with {leaves}, regular graphs and isolated nodes leave every box"

    def _held(self, stretch: sp.Expr) -> Held | None:
        """What the faces of a box must satisfy; None where the corners are too many."""
        if len(self._powers) > MAX_POWERS:
            return None
        lower, upper = sp.Dummy("lower", real=True), sp.Dummy("upper", real=True)
        held: dict[sp.Basic, None] = {sp.Gt(upper, lower): None}
        for face, inward in ((lower, 1), (upper, -1)):
            for view in self._views(face, (lower, upper), stretch):
                seen = {call.letter: view(len(call.word), call.inner) for call in self.field.calls}
                speed = inward * self.field.speed.xreplace({H: face}).xreplace(seen)
                held[sp.Ge(speed, 0, evaluate=False)] = None
        conditions = [sp.Gt(s, 1)] if self.stars and stretch == s else []
        return [*conditions, *(c for c in held if c != sp.true)]

    def _views(
        self, entry: sp.Expr, faces: tuple[sp.Expr, sp.Expr], stretch: sp.Expr
    ) -> Iterator[Callable[[int, sp.Expr], sp.Expr]]:
        """What a node with a given entry collects as A^k g(h): functions of k and g, one for each corner."""
        for ends in itertools.product(faces, repeat=len(self._powers)):
            at = dict(zip(self._powers, ends, strict=True))
            yield lambda k, g, at=at: g.xreplace({H: at[k]})  # type: ignore[misc]
        if self.stars:
            yield lambda k, g: sp.S.Zero
            for end in faces:
                for scale in (stretch, 1 / stretch):
                    yield lambda k, g, end=end, scale=scale: (  # type: ignore[misc]
                        scale * g.xreplace({H: end}) if k % 2 else g.xreplace({H: entry})
                    )

    @property
    def _powers(self) -> list[int]:
        """The powers of A that occur."""
        return sorted({len(call.word) for call in self.field.calls})

    # ------------------------------------------------------------------ states that run away
    def _runaway(self, modes: list[tuple[sp.Expr, str]]) -> Escape | None:
        """States that leave every box: the same in all nodes, or of opposite sign at the two ends of an edge."""
        for speed, words in modes:
            reason = _runs_away(speed, self.domain, self.field.has_source)
            if reason:
                started = " and H0 = R in every node" if self.field.has_source else ""
                text = f"{words}{started} h' = {public(factored(speed))}"
                return Escape(reason.format(text))
        return None

    def _runs_away_at(self, point: dict[sp.Symbol, sp.Expr]) -> str:
        for speed, words in self._modes():
            here = speed.xreplace(point)
            reason = _runs_away(here, Domain(), self.field.has_source)
            if reason:
                return reason.format(f"{words} and H0 = R in every node h' = {public(factored(here))}")
        return ""

    def _modes(self) -> Iterator[tuple[sp.Expr, str]]:
        initial = R if self.field.has_source else sp.S.Zero
        masked = {x: sp.S.One for x in self.field.varying if x.name == "M"}
        uniform = self.field.uniform_one(h, initial).xreplace(masked)
        yield uniform, "on states equal in all nodes (A@1 = 1)"
        flips = {h: -h, R: -R}
        alternating = self.field.uniform_one(h, initial, sp.S.NegativeOne).xreplace(masked)
        odd = [alternating, *(call.inner.xreplace({H: h, H0: R}) for call in self.field.calls)]
        if alternating != uniform and all(sp.expand(e + e.xreplace(flips)) == 0 for e in odd):
            yield alternating, "on states h and -h at the two ends of one edge, H0 likewise,"

    # ------------------------------------------------------------------ coefficients to try
    def _points(self) -> Iterator[dict[sp.Symbol, sp.Expr]]:
        """Coefficients that satisfy all assumptions: numbers of several sizes, else a point that the solver finds."""
        known = {H, H0, R, s, *(call.letter for call in self.field.calls)}
        parts = [self.field.speed, *(call.inner for call in self.field.calls), *self.domain.conditions]
        letters = sorted({x for e in parts for x in e.free_symbols} - known, key=str)
        generator, count = random.Random(0), 0
        for _ in range(40 * POINTS):
            point = {x: _number(x, generator) for x in letters}
            if all(holds(c, point) for c in self.domain.conditions):
                count += 1
                yield point
            if count >= POINTS or not letters:
                return
        judged = self.domain.point() if not count else None
        if judged is not None:
            yield {x: judged.get(x, _number(x, generator)) for x in letters}


def _number(letter: sp.Symbol, generator: random.Random) -> sp.Rational:
    size = sp.Rational(generator.choice((1, 2, 3, 4)), generator.choice((1, 1, 2, 4, 10)))
    if letter.name == "M":  # the modes have every node under the mask
        return sp.S.One
    negative = letter.is_nonpositive or (not letter.is_nonnegative and generator.random() < 0.5)
    return -size if negative else size


def _is_empty(domain: Domain) -> bool:
    try:
        return limited(PROOF_SECONDS, domain.is_empty)
    except Undecided:
        return False


def _runs_away(speed: sp.Expr, domain: Domain, has_source: bool) -> str:
    """A proof that h' = speed leaves every box, as a text with {} for the equation; empty without one.

    With a source, H0 = R lies only in boxes with positive states; boxes without any are left from H0 = -R.
    """
    reason = _escape(speed, R, domain, has_source)
    if has_source and reason and not _escape(speed.xreplace({R: -R}), -R, domain, has_source):
        return ""
    return reason


def _escape(speed: sp.Expr, start: sp.Expr, domain: Domain, has_source: bool) -> str:
    """The proof for boxes that contain the state `start` of the source; without a source for all boxes."""

    def proved(claim: sp.Basic, *where: sp.Basic) -> bool:
        try:
            return limited(PROOF_SECONDS, lambda: domain.where(*where).proves(claim) is True)
        except Undecided:
            return False

    for sign in (1, -1):
        if proved(sp.Gt(sign * speed, 0, evaluate=False)):
            return "leaves every box: {} never changes its sign"
        beyond = sp.Ge(sign * h, sign * start, evaluate=False)
        if has_source and proved(sp.Gt(sign * speed, 0, evaluate=False), beyond):
            return f"leaves every box: {{}} is {'positive from R on' if sign > 0 else 'negative up to R'}"
    if not has_source and proved(sp.Gt(h * speed, 0, evaluate=False), sp.Ne(h, 0)):
        return "leaves every box but the point 0: {} has the sign of h"
    return ""
