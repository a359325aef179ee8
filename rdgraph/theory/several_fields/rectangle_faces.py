"""Speeds on the faces of a rectangle of states, whatever the graph: one interval for the entries of each field.

A rectangle is kept where on every face u_i = end the speed of field i points inwards or is zero, for all values of the
other fields in their intervals and all that operators can collect from nodes inside (Nagumo's condition; f has to be
Lipschitz there). What is known of the row sums of A is a `Collecting`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.language.answer_symbols import s
from rdgraph.language.normal_form import MASKS, TIME, State
from rdgraph.language.reader import start_of
from rdgraph.reals.branches import is_defined
from rdgraph.reals.domain import Domain
from rdgraph.theory.several_fields.node_speeds import Call, NodeSpeeds, has_gap, timely

Interval = tuple[sp.Expr, sp.Expr]
Bounds = Mapping[str, Interval]
#: Values of the letters of calls, with what holds there.
Case = tuple[dict[sp.Symbol, sp.Expr], tuple[sp.Basic, ...]]

#: More averages that are tried at their ends make too many corners.
MAX_CORNERS = 64


@dataclass(frozen=True)
class Collecting:
    """What a row of A collects: weights >= 0 with sums from `lowest` to `highest` for A, its power for A^k.

    `highest` is None where nothing bounds the sums; `has_degrees` says that L = D - A, D the row sums of A.
    """

    lowest: int
    highest: sp.Expr | None
    conditions: tuple[sp.Basic, ...] = ()
    has_degrees: bool = False


#: Every row sums to 1; to 1, or to 0 at a node without edges; to at most s >= 1; to anything; to the degree in D - A.
AVERAGING = Collecting(1, sp.S.One)
AVERAGING_OR_ALONE = Collecting(0, sp.S.One)
UP_TO_S = Collecting(0, s, (sp.Ge(s, 1, evaluate=False),))
ANY_SUMS = Collecting(0, None)
DEGREES = Collecting(0, None, has_degrees=True)


@dataclass(frozen=True)
class RectangleFaces:
    """The question whether the speeds of a system keep a rectangle, on every A that collects as `Collecting` says."""

    speeds: NodeSpeeds
    collecting: Collecting

    @property
    def domain(self) -> Domain:
        return timely(self.speeds.system.domain).where(*self.collecting.conditions)

    def keep(self, bounds: Bounds) -> bool:
        """Whether f is proved to be Lipschitz inside the bounds and to point outwards on no face."""
        faces = [(name, side) for name in bounds for side in (-1, 1)]
        return all(self.hold(bounds, name, side) for name, side in faces) and self.is_lipschitz(bounds)

    def hold(self, bounds: Bounds, name: str, side: int) -> bool:
        """Proved: on the upper (side 1) or lower (-1) face of a field it does not leave; an infinite face has none.

        Faces that differ between nodes, or move, are not dealt with: what a neighbour has lies within its own.
        """
        end = bounds[name][0 if side < 0 else 1]
        if end in (sp.oo, -sp.oo):
            return True
        if sp.Tuple(*itertools.chain(*bounds.values())).free_symbols & {TIME, *self.speeds.varying}:
            return False
        on_face = {State(name): end}
        inside = self.inside({k: v for k, v in bounds.items() if k != name}) + self.starting(bounds)
        return all(
            self.domain.where(*inside, *facts).proves(sp.Le(side * value, 0, evaluate=False)) is True
            for value, facts in self.values(name, bounds, on_face)
        )

    def is_lipschitz(self, bounds: Bounds) -> bool:
        """Proved: f is defined inside and has no root of zero, so that solutions are unique."""
        inside = self.inside(bounds) + self.starting(bounds)
        parts = [(value, facts) for name in bounds for value, facts in self.values(name, bounds, {}, is_open=True)]
        inner = [(call.inner, ()) for call in self.speeds.calls]
        return all(
            not has_gap(value) and is_defined(value, self.domain.where(*inside, *facts), smooth=True)
            for value, facts in (*parts, *inner)
        )

    def inside(self, bounds: Bounds) -> tuple[sp.Basic, ...]:
        """The conditions of the intervals."""
        return tuple(c for name, interval in bounds.items() for c in within(State(name), interval))

    def starting(self, bounds: Bounds) -> tuple[sp.Basic, ...]:
        """The conditions that the starts lie in the intervals of their fields."""
        return tuple(c for name, interval in bounds.items() for c in within(State(start_of(name)), interval))

    # ------------------------------------------------------------------ what operators collect
    def values(
        self, name: str, bounds: Bounds, on_face: Mapping[sp.Basic, sp.Expr], *, is_open: bool = False
    ) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
        """The speed for everything that operators can collect, with what holds of the letters in it.

        Corners suffice in what the speed is affine in, unless they are to stay `is_open`.
        """
        speed = self.speeds.speeds[name]
        calls = [call for call in self.speeds.calls if speed.has(call.letter)]
        if self.collecting.has_degrees:
            cases = [self._by_degree(speed, calls, bounds)]
        else:
            cases = list(self._corners(speed, calls, bounds, is_open))
        for values, facts in cases:
            yield speed.xreplace(values).xreplace(dict(on_face)), tuple(c.xreplace(dict(on_face)) for c in facts)

    def _corners(self, speed: sp.Expr, calls: list[Call], bounds: Bounds, is_open: bool) -> Iterator[Case]:
        choices = []
        for call in calls:
            affine = not is_open and sp.expand(sp.diff(speed, call.letter, 2)) == 0
            choices.append(self._collected(call, bounds, is_affine=affine))
        if sp.prod(len(choice) for choice in choices) > MAX_CORNERS:
            choices = [self._collected(call, bounds, is_affine=False) for call in calls]
        letters = [call.letter for call in calls]
        for chosen in itertools.product(*choices):
            values = {letter: value for letter, (value, _) in zip(letters, chosen, strict=True)}
            yield values, tuple(fact for _, facts in chosen for fact in facts)

    def _collected(self, call: Call, bounds: Bounds, *, is_affine: bool) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
        """What a call can be: ends of its range where that suffices, else a letter in it."""
        sums = self._sums(call.word)
        if sums is None:  # nothing is known of the operator
            return [(call.letter, ())]
        if not is_affine and not self._is_connected(call.inner):
            return [(call.letter, ())]  # averages of what jumps between two values lie between them
        lowest, highest = sums
        lower, upper = self._range(call, bounds) or (None, None)
        if not is_affine or highest is None or lower is None or {lower, upper} & {sp.oo, -sp.oo}:
            return [self._in_letters(call, bounds, lowest, highest)]
        ends = [highest * lower, highest * upper] + ([sp.S.Zero] if lowest == 0 else [])
        return [(end, ()) for end in dict.fromkeys(ends)]

    def _sums(self, word: tuple[str, ...]) -> tuple[int, sp.Expr | None] | None:
        """Smallest and largest row sum of a word of operators with entries >= 0; None where entries have any sign."""
        operators, lowest, highest = self.speeds.system.operators, 1, sp.S.One
        for letter in word:
            if letter in operators.names:
                if "stochastic" not in operators.facts(letter):
                    return None
            elif letter == "A":
                lowest = min(lowest, self.collecting.lowest)
                most = self.collecting.highest
                highest = None if highest is None or most is None else highest * most
            else:
                return None
        return lowest, highest

    def _range(self, call: Call, bounds: Bounds) -> Interval | None:
        """The interval of a state, or a start, on which operators act; None for functions of them."""
        names = {State(name): name for name in bounds} | {State(start_of(name)): name for name in bounds}
        return bounds[names[call.inner]] if call.inner in names else None

    def _in_letters(
        self, call: Call, bounds: Bounds, lowest: int, highest: sp.Expr | None
    ) -> tuple[sp.Expr, tuple[sp.Basic, ...]]:
        """sum * average: an average is a value of the function at entries of its own inside the rectangle.

        That is so where these fill an interval; in what is affine in the average its largest values decide anyway.
        """
        average, facts = self.elsewhere(call.inner, bounds)
        if lowest == 1:
            return average, facts
        weight = sp.Dummy("sum", nonnegative=True)
        limits = () if highest is None else (sp.Le(weight, highest, evaluate=False),)
        return weight * average, (*facts, *limits)

    def _is_connected(self, inner: sp.Expr) -> bool:
        """Whether the values of a function of a node's entries are known to fill an interval.

        A mask is 0 or 1, and assumptions such as b**2 >= 1 may part the values of a node coefficient; those that are
        affine in node coefficients keep them together.
        """
        moving = inner.free_symbols & self.speeds.varying
        if any(x.name in MASKS for x in moving):
            return False
        bound = [c for c in self.domain.conditions if c.free_symbols & moving]
        return all(_is_half_space(c, self.speeds.varying) for c in bound)

    def elsewhere(self, inner: sp.Expr, bounds: Bounds) -> tuple[sp.Expr, tuple[sp.Basic, ...]]:
        """A function of another node's entries, in letters of their own, with their intervals."""
        moving = {x for x in inner.free_symbols if isinstance(x, State)} | self.speeds.varying
        own = {x: sp.Dummy(x.name, **x.assumptions0) for x in sorted(moving, key=str)}
        facts: tuple[sp.Basic, ...] = ()
        for name, interval in bounds.items():
            for letter in (State(name), State(start_of(name))):
                facts += within(own[letter], interval) if letter in own else ()
        moved = tuple(c.xreplace(own) for c in self.domain.conditions if c.free_symbols & set(own))
        return inner.xreplace(own), facts + moved

    def _by_degree(self, speed: sp.Expr, calls: list[Call], bounds: Bounds) -> Case:
        """A and L = D - A of one graph: both collect with the weights of the node, which sum to its degree."""
        degree = sp.Dummy("degree", nonnegative=True)
        averages: dict[sp.Expr, sp.Symbol] = {}
        values: dict[sp.Symbol, sp.Expr] = {}
        facts: tuple[sp.Basic, ...] = ()
        for call in calls:
            if call.word in (("A",), ("L",)):
                average = averages.setdefault(call.inner, sp.Dummy("average", real=True))
                values[call.letter] = degree * (average if call.word == ("A",) else call.inner - average)
            else:
                value, known = self._collected(call, bounds, is_affine=False)[0]
                values[call.letter], facts = value, facts + known
        collected = speed.xreplace(values)
        for inner, average in averages.items():
            if not self._is_connected(inner) and sp.expand(sp.diff(collected, average, 2)) != 0:
                continue  # it lies between two values, and what is affine in it is largest at one of them
            value, known = self.elsewhere(inner, bounds)
            values = {letter: own.xreplace({average: value}) for letter, own in values.items()}
            facts += known
        return values, facts


def _is_half_space(condition: sp.Basic, letters: frozenset[sp.Symbol]) -> bool:
    """Whether an inequality is affine in letters, so that all such ones together hold on a convex set."""
    if not isinstance(condition, sp.Gt | sp.Ge | sp.Lt | sp.Le):
        return False
    gap, present = sp.expand(condition.lhs - condition.rhs), sorted(letters & condition.free_symbols, key=str)
    return gap.is_polynomial(*present) and sp.Poly(gap, *present).total_degree() <= 1


def within(letter: sp.Symbol, interval: Interval) -> tuple[sp.Basic, ...]:
    """The conditions of an interval; an infinite end has none."""
    lower, upper = interval
    found = () if lower == -sp.oo else (sp.Ge(letter, lower, evaluate=False),)
    return found if upper == sp.oo else (*found, sp.Le(letter, upper, evaluate=False))
