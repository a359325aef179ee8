"""Speeds on the faces of a rectangle of states, on every graph: one interval for the entries of each field.

A rectangle is kept where on every face u_i = end the speed of field i points inwards or is zero, for all values of the
other fields in their intervals and all that operators can collect from nodes inside (Nagumo's condition; f has to be
Lipschitz there). A box of one field is the rectangle of that field. What is known of the row sums of A is a
`Collecting`: with entries in [l, u] an average is a number between the smallest and the largest of c*l and c*u, c a row
sum, and where f is affine in it only the ends of that range have to be tried. The proofs hold on directed and weighted
graphs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import sympy as sp

from rdgraph.language.answer_symbols import s
from rdgraph.language.normal_form import MASKS, TIME, State
from rdgraph.language.reader import start_of
from rdgraph.reals.branches import is_defined
from rdgraph.reals.domain import Domain
from rdgraph.reals.regions import defining_conditions
from rdgraph.theory.several_fields.node_speeds import Call, NodeSpeeds, timely
from rdgraph.vocabulary.functions import Monotone, record_of

Interval = tuple[sp.Expr, sp.Expr]
Bounds = Mapping[str, Interval]
Facts = tuple[sp.Basic, ...]
#: Values of the symbols of calls, with what holds there.
Case = tuple[dict[sp.Symbol, sp.Expr], Facts]
NOWHERE: Mapping[sp.Basic, sp.Expr] = MappingProxyType({})

#: With more corners than this, averages are not tried at their ends but taken as symbols.
MAX_CORNERS = 64
#: What is assumed of a graph where rows of A sum to 1.
NO_ISOLATED_NODES = "no node is without incoming edges"


@dataclass(frozen=True)
class Collecting:
    """What a row of A collects: weights >= 0 with sums from `lowest` to `highest` for A, its power for A^k.

    `highest` is None where nothing bounds the sums; `has_degrees` says that L = D - A, D the row sums of A.
    """

    lowest: int
    highest: sp.Expr | None
    conditions: Facts = ()
    has_degrees: bool = False


#: Every row sums to 1; to 1, or to 0 at a node without edges; to at most s >= 1; to anything; to the degree in D - A.
AVERAGING = Collecting(1, sp.S.One)
AVERAGING_OR_ALONE = Collecting(0, sp.S.One)
UP_TO_S = Collecting(0, s, (sp.Ge(s, 1, evaluate=False),))
ANY_SUMS = Collecting(0, None)
DEGREES = Collecting(0, None, has_degrees=True)


@dataclass(frozen=True)
class RectangleFaces:
    """The question whether the speeds of a system keep a rectangle, on every A that collects as `collecting` says.

    `starts` are the intervals of the starts, where they are not those of the rectangle; `given` are conditions on the
    coefficients besides those of the system.
    """

    speeds: NodeSpeeds
    collecting: Collecting
    starts: Bounds | None = None
    given: Facts = ()

    @cached_property
    def domain(self) -> Domain:
        """The admissible coefficients."""
        system = self.speeds.system
        domain = system.domain if system.is_autonomous else timely(system.domain)
        return domain.where(*self.collecting.conditions, *self.given)

    def keep(self, bounds: Bounds) -> bool:
        """Whether f is proved to be Lipschitz inside the bounds and to point outwards on no face."""
        faces = [(name, side) for name in bounds for side in (-1, 1)]
        return all(self.hold(bounds, name, side) for name, side in faces) and self.is_lipschitz(bounds)

    def hold(self, bounds: Bounds, name: str, side: int) -> bool:
        """Proved: no run crosses the upper (side 1) or lower (-1) face of a field; an infinite face is never crossed.

        Undecided for faces that move or differ between nodes: an entry of a neighbour lies within its own faces.
        """
        end = bounds[name][0 if side < 0 else 1]
        if end in (sp.oo, -sp.oo):
            return True
        if sp.Tuple(*itertools.chain(*bounds.values())).free_symbols & {TIME, *self.speeds.varying}:
            return False
        inside = self.inside({k: v for k, v in bounds.items() if k != name})
        inward = self.values(-side * self.speeds.speeds[name], bounds, {State(name): end})
        return all(
            self.domain.where(*inside, *self.starting(bounds, value), *facts).proves(sp.Ge(value, 0, evaluate=False))
            for value, facts in inward
        )

    def is_lipschitz(self, bounds: Bounds) -> bool:
        """Proved: f is defined inside and has no root of zero, so that solutions are unique."""
        parts = (*self.speeds.speeds.values(), *(call.inner for call in self.speeds.calls))
        domain = self.domain.where(*self.inside(bounds), *self.starting(bounds, sp.Tuple(*parts)))
        for part in parts:
            needed = defining_conditions(part, smooth=True)
            calls = [call for call in self.speeds.calls if any(c.has(call.letter) for c in needed)]
            for values, facts in self._cases(part, calls, bounds, None):
                if not is_defined(part.xreplace(values), domain.where(*facts), smooth=True):
                    return False
        return True

    def inside(self, bounds: Bounds) -> Facts:
        """The conditions of the intervals."""
        return tuple(c for name, interval in bounds.items() for c in within(State(name), interval))

    def starting(self, bounds: Bounds, expression: sp.Basic) -> Facts:
        """The conditions that the starts in an expression lie in their intervals."""
        ranges = {State(start_of(name)): interval for name, interval in (self.starts or bounds).items()}
        return tuple(c for x, interval in ranges.items() if expression.has(x) for c in within(x, interval))

    # ------------------------------------------------------------------ what operators collect
    def values(
        self, expression: sp.Expr, bounds: Bounds, on_face: Mapping[sp.Basic, sp.Expr] = NOWHERE
    ) -> Iterator[tuple[sp.Expr, Facts]]:
        """An expression at one node for every value of the calls, with the conditions on the symbols in it.

        Where it is affine in what a call collects, the ends of the range suffice, and of two ends the one at which the
        expression is smallest: what is >= 0 in all these cases is never negative.
        """
        plain = expression.xreplace(dict(on_face))
        calls = [call for call in self.speeds.calls if plain.has(call.letter)]
        for values, facts in self._cases(expression, calls, bounds, plain):
            yield expression.xreplace(values).xreplace(dict(on_face)), tuple(c.xreplace(dict(on_face)) for c in facts)

    def _cases(self, part: sp.Expr, calls: list[Call], bounds: Bounds, plain: sp.Expr | None) -> Iterator[Case]:
        """The values of calls: at their ends where `plain` is given and affine in them, else as symbols."""
        if self.collecting.has_degrees:
            yield self._by_degree(part, calls, bounds)
            return
        ends = [None if plain is None else self._smallest_ends(plain, call.letter) for call in calls]
        choices = [self._collected(call, bounds, sides) for call, sides in zip(calls, ends, strict=True)]
        if sp.prod(len(choice) for choice in choices) > MAX_CORNERS:
            choices = [self._collected(call, bounds, None) for call in calls]
        for chosen in itertools.product(*choices):
            values = {call.letter: value for call, (value, _) in zip(calls, chosen, strict=True)}
            yield values, tuple(fact for _, facts in chosen for fact in facts)

    def _smallest_ends(self, expression: sp.Expr, letter: sp.Symbol) -> tuple[int, ...] | None:
        """The ends, lower (0) or upper (1), at which an affine expression can be smallest; None if it is not affine."""
        if sp.expand(sp.diff(expression, letter, 2)) != 0:
            return None
        slope = self.domain.sign(sp.expand(sp.diff(expression, letter)))
        return (0,) if slope.is_nonnegative else (1,) if slope.is_nonpositive else (0, 1)

    def _collected(self, call: Call, bounds: Bounds, ends: tuple[int, ...] | None) -> list[tuple[sp.Expr, Facts]]:
        """What a call can be: the given ends of its range, or without them a symbol in the range."""
        sums = self._sums(call.word)
        if sums is None:  # nothing is known of the operator
            return [(call.letter, ())]
        lowest, highest = sums
        alone = [sp.S.Zero] if lowest == 0 else []
        span = self._range(call.inner, bounds)
        if span is not None and highest is not None:
            lower, upper = (highest * end for end in span)
            if ends is not None:
                return [(value, ()) for value in dict.fromkeys([*((lower, upper)[k] for k in ends), *alone])]
            return [(call.letter, within(call.letter, (sp.Min(lower, *alone), sp.Max(upper, *alone))))]
        if ends is None and not self._is_connected(call.inner):
            return [(call.letter, ())]  # averages of what jumps between two values lie between them
        average, facts = self.elsewhere(call.inner, bounds)
        if lowest == 1:
            return [(average, facts)]
        if ends is not None and highest is not None:
            return [(highest * average, facts), (sp.S.Zero, ())]
        weight = sp.Dummy("sum", nonnegative=True)
        limits = () if highest is None else (sp.Le(weight, highest, evaluate=False),)
        return [(weight * average, (*facts, *limits))]

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

    def _range(self, inner: sp.Expr, bounds: Bounds) -> Interval | None:
        """The values of a state, a start, or an increasing function of one; None for others and for infinite ends."""
        record = record_of(inner)
        rises = record is not None and record.monotone is Monotone.INCREASING
        argument = inner.args[0] if rises else inner
        starts = self.starts or bounds
        ranges = {State(n): bounds[n] for n in bounds} | {State(start_of(n)): starts[n] for n in starts}
        ends = ranges.get(argument)
        if ends is None or {*ends} & {sp.oo, -sp.oo}:
            return None
        return (inner.func(ends[0]), inner.func(ends[1])) if rises else ends

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

    def elsewhere(self, inner: sp.Expr, bounds: Bounds) -> tuple[sp.Expr, Facts]:
        """A function of the entries of another node, with symbols of that node, and the intervals of these."""
        moving = {x for x in inner.free_symbols if isinstance(x, State)} | self.speeds.varying
        there = {x: sp.Dummy(x.name, **x.assumptions0) for x in sorted(moving, key=str)}
        facts: Facts = ()
        for name, interval in bounds.items():
            start = (self.starts or bounds)[name]
            for letter, ends in ((State(name), interval), (State(start_of(name)), start)):
                facts += within(there[letter], ends) if letter in there else ()
        moved = tuple(c.xreplace(there) for c in self.domain.conditions if c.free_symbols & set(there))
        return inner.xreplace(there), facts + moved

    def _by_degree(self, speed: sp.Expr, calls: list[Call], bounds: Bounds) -> Case:
        """A and L = D - A of one graph: both collect with the weights of the node, which sum to its degree."""
        degree = sp.Dummy("degree", nonnegative=True)
        averages: dict[sp.Expr, sp.Symbol] = {}
        values: dict[sp.Symbol, sp.Expr] = {}
        facts: Facts = ()
        for call in calls:
            if call.word in (("A",), ("L",)):
                average = averages.setdefault(call.inner, sp.Dummy("average", real=True))
                values[call.letter] = degree * (average if call.word == ("A",) else call.inner - average)
            else:
                value, known = self._collected(call, bounds, None)[0]
                values[call.letter], facts = value, facts + known
        collected = speed.xreplace(values)
        for inner, average in averages.items():
            if not self._is_connected(inner) and sp.expand(sp.diff(collected, average, 2)) != 0:
                continue  # it lies between two values, and what is affine in it is largest at one of them
            value, known = self.elsewhere(inner, bounds)
            values = {letter: total.xreplace({average: value}) for letter, total in values.items()}
            facts += known
        return values, facts


def _is_half_space(condition: sp.Basic, letters: frozenset[sp.Symbol]) -> bool:
    """Whether an inequality is affine in some symbols, so that all such ones together hold on a convex set."""
    if not isinstance(condition, sp.Gt | sp.Ge | sp.Lt | sp.Le):
        return False
    gap, present = sp.expand(condition.lhs - condition.rhs), sorted(letters & condition.free_symbols, key=str)
    return gap.is_polynomial(*present) and sp.Poly(gap, *present).total_degree() <= 1


def within(letter: sp.Symbol, interval: Interval) -> Facts:
    """The conditions that a symbol lies in an interval; an infinite end has none."""
    lower, upper = interval
    above = () if lower == -sp.oo else (sp.Ge(letter, lower, evaluate=False),)
    return above if upper == sp.oo else (*above, sp.Le(letter, upper, evaluate=False))
