"""The speed of one entry on the faces of a box, whatever the graph: averages over neighbours become numbers in a range.

f_i depends on the entry h_i, on its own coefficients and on averages (A^k g(h))_i. A has entries >= 0, and what else is
assumed of it is a `RowSums`: the sums that a row of A^k can have. With all entries in [l, u] an average of h is then a
number between the smallest and the largest of c*l and c*u, c a row sum; f is affine in most averages, so that only the
ends of their ranges have to be tried. What is proved here therefore holds on every graph, directed or weighted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import h, h0, s
from rdgraph.language.normal_form import H0, Act, H, Mix
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import is_defined
from rdgraph.reals.condition_words import in_words
from rdgraph.reals.domain import Domain
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import Monotone, record_of

# ---------------------------------------------------------------------- box faces
Interval = tuple[sp.Expr, sp.Expr]


@dataclass(frozen=True)
class RowSums:
    """What the row sums of A^k can be: from `lowest` to `highest(k)`."""

    lowest: int
    highest: Callable[[int], sp.Expr]
    conditions: tuple[sp.Basic, ...] = ()


#: Every row of A sums to 1: row-normalised graphs in which no node is without (incoming) edges, regular graphs.
STOCHASTIC = RowSums(1, lambda k: sp.S.One)
#: Rows sum to 1, and to 0 for nodes without (incoming) edges.
SUBSTOCHASTIC = RowSums(0, lambda k: sp.S.One)
#: Rows sum to at most s >= 1: symmetrically normalised graphs, isolated nodes included.
STRETCHED = RowSums(0, lambda k: s**k, (sp.Ge(s, 1, evaluate=False),))


@dataclass(frozen=True)
class Average:
    """(A^power inner)_i, written as `letter`; `inner` is a function of the entries of one other node."""

    letter: sp.Symbol
    power: int
    inner: sp.Expr
    affine: bool


@dataclass(frozen=True)
class LocalField:
    """f at one node: `speed` is a function of h, h0, the node's coefficients and the letters of the averages."""

    speed: sp.Expr
    averages: tuple[Average, ...]
    varying: frozenset[sp.Symbol]

    @classmethod
    def of(cls, system: System, *, scaled: bool = False) -> LocalField:
        """The field of a system; NotApplicable where it mixes channels, nests averages, or cancels what has no value.

        With `scaled`, mixing matrices are multiples of the identity, whose letters are theirs.

        >>> from rdgraph.systems.parser import parse
        >>> field = LocalField.of(parse("-alpha*L@H"))
        >>> field.speed.subs({a.letter: 0 for a in field.averages}), [a.inner for a in field.averages]
        (-alpha*h, [h])
        """
        normal = system.normal.replace(Mix, _scaled) if scaled else system.normal
        calls = sorted(normal.atoms(Act), key=str)
        if normal.has(Mix):
            raise NotApplicable("a matrix mixes the channels")
        for cancelled in sorted(normal.atoms(Nought), key=str):
            raise NotApplicable(cancelled.reason)
        own = {H: h, H0: h0}
        letters = {call: sp.Dummy(f"x{i}", real=True) for i, call in enumerate(calls)}
        averages = []
        speed = normal.xreplace(letters).xreplace(own)
        for call, letter in letters.items():
            if call.inner.has(Act) or any(w.name != "A" for w in call.word):
                raise NotApplicable(f"{call} is an average of averages, or of another operator")
            affine = sp.expand(sp.diff(speed, letter, 2)) == 0
            inner = call.inner.xreplace(own)
            if not affine and inner not in (h, h0):
                raise NotApplicable(f"the field is not affine in {call}")
            averages.append(Average(letter, len(call.word), inner, affine))
        kinds = system.algebra.kinds
        varying = {x for x in system.normal.free_symbols if kinds.get(x.name) is Kind.NODE or x.name == "M"}
        return cls(speed, tuple(averages), frozenset(varying))

    @property
    def has_source(self) -> bool:
        """Whether H0 occurs."""
        return self.speed.has(h0) or any(a.inner.has(h0) for a in self.averages)

    def uniform(self, value: sp.Expr, initial: sp.Expr, scale: Callable[[int], sp.Expr] | None = None) -> sp.Expr:
        """The speed in a state that is the same in all nodes, averages scaled by `scale(k)` (1 without it)."""
        own = {h: value, h0: initial}
        seen = {a.letter: (scale(a.power) if scale else 1) * a.inner.xreplace(own) for a in self.averages}
        return sp.expand(self.speed.xreplace(own).xreplace(seen))


@dataclass(frozen=True)
class Faces:
    """The question whether a box is kept: by a field, on every A with the given rows, from H0 in the range `start`."""

    field: LocalField
    domain: Domain
    rows: RowSums
    start: Interval | None = None

    def keep(self, lower: sp.Expr, upper: sp.Expr) -> bool:
        """Proved: f is smooth enough inside, on the lower face no entry falls, on the upper face none rises."""
        sides = self.hold(lower, 1, lower, upper) and self.hold(upper, -1, lower, upper)
        return sides and self.is_lipschitz(lower, upper)

    def is_lipschitz(self, lower: sp.Expr, upper: sp.Expr) -> bool:
        """Proved: inside the box f is defined and has no root of zero, so that solutions are unique."""
        start = self.start or (lower, upper)
        inside = self.domain.where(*self.rows.conditions, *between(h, (lower, upper)), *between(h0, start))
        averages = {a.letter: self._values(a, self.field.speed, (lower, upper), start) for a in self.field.averages}
        ranges = [fact for values in averages.values() for _, facts in values for fact in facts]
        parts = [self.field.speed, *(a.inner for a in self.field.averages)]
        return all(is_defined(part, inside.where(*ranges), smooth=True) for part in parts)

    def hold(self, face: sp.Expr, inward: int, lower: sp.Expr, upper: sp.Expr) -> bool:
        """Proved: an entry on the face does not move against `inward` (1 is up)."""
        speed = inward * self.field.speed.xreplace({h: face})
        corners = self.corners(speed, (lower, upper))
        return all(self.domain.where(*facts).proves(sp.Ge(v, 0, evaluate=False)) is True for v, facts in corners)

    def may_be(self, face: sp.Expr, inward: int) -> bool:
        """Not refuted as a face of any box: `hold` where it does not depend on the other face, else True."""
        other = sp.Dummy("other", real=True)
        box = (face, other) if inward > 0 else (other, face)
        speed = inward * self.field.speed.xreplace({h: face})
        if any(value.has(other) or sp.And(*facts).has(other) for value, facts in self.corners(speed, box)):
            return True
        return self.hold(face, inward, *box)

    def corners(self, speed: sp.Expr, box: Interval) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
        """The expression at every corner of the averages' ranges that can be its smallest, with what holds there."""
        start = self.start or box
        choices = [self._values(average, speed, box, start) for average in self.field.averages]
        letters = [average.letter for average in self.field.averages]
        own = between(h0, start) if speed.has(h0) else ()
        for chosen in itertools.product(*choices):
            values = {letter: value for letter, (value, _) in zip(letters, chosen, strict=True)}
            known = (*self.rows.conditions, *own, *(fact for _, facts in chosen for fact in facts))
            yield speed.xreplace(values), known

    def _values(
        self, average: Average, speed: sp.Expr, box: Interval, start: Interval
    ) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
        """What an average has to be tried at: ends of its range, or a letter inside it."""
        highest = self.rows.highest(average.power)
        sums = [highest] if self.rows.lowest == 1 else [sp.S.Zero, highest]
        span = _span(average.inner, box, start)
        if span is None:
            value, facts = self._elsewhere(average.inner, box, start)
            return [(c * value, facts) for c in sums if c != 0] + [(sp.S.Zero, ())] * (sp.S.Zero in sums)
        lower, upper = span
        zero = [sp.S.Zero] if self.rows.lowest == 0 else []
        if not average.affine:
            inside = between(average.letter, (sp.Min(*zero, highest * lower), sp.Max(*zero, highest * upper)))
            return [(average.letter, inside)]
        slope = self.domain.where(*self.rows.conditions).sign(sp.expand(sp.diff(speed, average.letter)))
        ends = [highest * lower] * (not slope.is_nonpositive) + [highest * upper] * (not slope.is_nonnegative)
        return [(value, ()) for value in dict.fromkeys([*(ends or [highest * lower]), *zero])]

    def _elsewhere(self, inner: sp.Expr, box: Interval, start: Interval) -> tuple[sp.Expr, tuple[sp.Basic, ...]]:
        """A function of another node's entries, in letters of their own."""
        other = {x: sp.Dummy(x.name, **x.assumptions0) for x in (h, h0, *self.field.varying)}
        facts = between(other[h], box) + (between(other[h0], start) if inner.has(h0) else ())
        moved = tuple(c.xreplace(other) for c in self.domain.conditions if c.free_symbols & self.field.varying)
        return inner.xreplace(other), facts + moved


def _span(inner: sp.Expr, box: Interval, start: Interval) -> Interval | None:
    """The values of a state, a start, or a function of one of them that never falls; None for anything else."""
    if inner in (h, h0):
        return box if inner == h else start
    record = record_of(inner)
    if record is None or record.monotone is not Monotone.INCREASING or inner.args[0] not in (h, h0):
        return None
    lower, upper = box if inner.args[0] == h else start
    return inner.func(lower), inner.func(upper)


def _scaled(*arguments: sp.Basic) -> sp.Expr:
    """H @ (w I) as w H."""
    mixed = Mix(*arguments)
    return sp.Mul(*(sp.Symbol(w.name, real=True) for w in mixed.word), mixed.inner)


def between(letter: sp.Symbol, ends: Interval) -> tuple[sp.Basic, ...]:
    """The two conditions that put a letter into an interval."""
    return sp.Ge(letter, ends[0], evaluate=False), sp.Le(letter, ends[1], evaluate=False)


# ---------------------------------------------------------------------- box values
# `Box`, the answer about an invariant interval of one field.


@dataclass(frozen=True, repr=False)
class Box(Answer):
    """An invariant interval for every entry; without one there is none (proved), or none was found (undecided).

    `others` are further boxes. `assumes` is what the graph must be like beyond its normalisation, empty where nothing
    is needed; `with_isolated` is a box that holds with isolated nodes too. `start` is the range of H0 where it is
    narrower than the box. `where` is the condition on the coefficients under which the box is kept. Without a box,
    `regular` is one that regular graphs with edges keep, for H0 in `regular_start` where that is narrower; `is_left`
    says that every box is left, which is proved for the coefficients `at` where some are given, else for all.
    """

    lower: sp.Expr | None
    upper: sp.Expr | None
    reason: str = ""
    others: tuple[Interval, ...] = ()
    assumes: str = ""
    with_isolated: Interval | None = None
    start: Interval | None = None
    where: sp.Basic = sp.true
    regular: Interval | None = None
    is_left: bool = False
    at: tuple[tuple[str, sp.Expr], ...] = ()
    regular_start: Interval | None = None

    @property
    def value(self) -> Interval | None:
        """The lower and the upper face."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def status(self) -> Status:
        """proved for a box, and where every box is left; undecided where none was found."""
        return certainty(self.reason) if self.lower is not None or self.is_left else Status.UNDECIDED

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        """What the coefficients must satisfy for the box to be kept, or at which of them every box is left."""
        where = () if self.where == sp.true else (self.where,)
        return where + tuple(sp.Eq(sp.Symbol(name), value, evaluate=False) for name, value in self.at)

    @property
    def headline(self) -> str:
        if self.value is None:
            return "no box is kept"
        given = "" if self.start is None else f" for H0 in {self.inside}"
        return f"[{in_words(self.lower)}, {in_words(self.upper)}] is invariant{given}"

    @property
    def exists(self) -> bool:
        """Whether the box is proved to be kept for all admissible coefficients."""
        return self.lower is not None and self.where == sp.true

    @property
    def is_decided(self) -> bool:
        """A box, perhaps for some coefficients or graphs only, or the proof that there is none."""
        return self.lower is not None or self.regular is not None or self.is_left

    def allowing_isolated(self) -> Box:
        """The part of the answer that also holds on graphs with isolated nodes."""
        if self.with_isolated is None:
            return no_box(f"no box was found for graphs with isolated nodes; without them {self.reason}")
        if self.with_isolated == (self.lower, self.upper):
            return self
        return Box(*self.with_isolated, self.reason, with_isolated=self.with_isolated)

    @property
    def inside(self) -> str:
        """The range of H0 for which the box is kept, in words."""
        lower, upper = self.start or (self.lower, self.upper)
        return f"[{in_words(lower)}, {in_words(upper)}]"


def no_box(reason: str) -> Box:
    """The answer without a box, for a reason."""
    return Box(None, None, reason)
