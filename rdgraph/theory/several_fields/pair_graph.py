"""Two nodes and one edge: a graph on which every normalisation is the same, so that it can refute for all of them.

A exchanges the two nodes, L = I - A = D - A; a further operator exchanges them as well, with an entry of either sign
unless it is stochastic. A point with entries inside a rectangle at which a face is crossed proves that the rectangle is
left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.algebra.normal_form import TIME, Act, Mix, State
from rdgraph.syntax.answer_symbols import public
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import starts_of, states_of, timely
from rdgraph.theory.several_fields.rectangle_faces import Bounds, within

#: The modulus of the entries of operators of which nothing bounds them, more than A has.
STRENGTH = 3


@dataclass(frozen=True)
class Crossing:
    """A state of the two nodes, with coefficients, at which a field leaves through a face."""

    field: str
    side: int
    point: tuple[tuple[str, sp.Expr], ...]
    speed: sp.Expr

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.point)
        way = "rises above its upper bound" if self.side > 0 else "falls below its lower bound"
        return f"on two nodes joined by an edge {self.field} {way}: {self.field}' = {self.speed} at {where}"


def crossing(system: System, bounds: Bounds) -> Crossing | None:
    """A point where a rectangle is left, for some admissible coefficients; None where none was found.

    >>> from rdgraph.systems.parser import parse
    >>> found = crossing(parse("u' = -v; v' = u"), {"u": (0, sp.oo), "v": (0, sp.oo)})
    >>> found.field, found.side
    ('u', -1)
    """
    if any(normal.has(Mix) for normal in system.normals.values()):
        return None
    for name, interval in bounds.items():
        for side, end in ((-1, sp.sympify(interval[0])), (1, sp.sympify(interval[1]))):
            for pair in _Pair.all_of(system) if end not in (sp.oo, -sp.oo) else ():
                if (found := _across(pair, bounds, name, side, end)) is not None:
                    return found
    return None


def _across(pair: _Pair, bounds: Bounds, name: str, side: int, end: sp.Expr) -> Crossing | None:
    system = pair.system
    speed = pair.at(system.normals[name]).xreplace({State(name): end})
    starts = starts_of(system)
    inside = [
        condition
        for field, interval in bounds.items()
        for letter in (State(field), starts[field])
        for x in (letter, pair.others[letter])
        if x != State(name)
        for condition in within(x, interval)
    ]
    # a start is where the run begins, so that this point is one of a run of its own
    begun = {starts[f]: State(f) for f in bounds} | {pair.others[starts[f]]: pair.others[State(f)] for f in bounds}
    speed = speed.xreplace(begun).xreplace({State(name): end})
    conditions = [c for c in inside if not c.has(*begun)]
    domain = timely(system.domain).where(*(c.xreplace(pair.others) for c in system.domain.conditions))
    point = domain.point(*conditions, sp.Gt(side * speed, 0, evaluate=False))
    if point is None:
        return None
    value = sp.simplify(speed.xreplace(point))
    if not (value.is_number and (side * value).is_positive):
        return None
    shown = sorted(((pair.shown(x), v) for x, v in point.items() if speed.has(x)), key=lambda entry: entry[0])
    fixed = [(f"{name} there", public(end.xreplace(point)))]
    fixed += [(f"{n}[there, elsewhere]", sp.Integer(pair._entry(n, 0))) for n in system.operators.names]
    return Crossing(name, side, tuple(fixed + shown), value)


@dataclass(frozen=True)
class _Pair:
    """The letters of the second node, by those of the first, and the entry of operators that may have any."""

    system: System
    others: Mapping[sp.Symbol, sp.Symbol]
    entry: int

    @classmethod
    def all_of(cls, system: System) -> Iterator[_Pair]:
        kinds = system.algebra.kinds
        nodes = [x for n, x in system.algebra.symbols.items() if kinds.get(n) is Kind.NODE or n == "M"]
        letters = [*states_of(system).values(), *starts_of(system).values(), *nodes]
        others = {x: sp.Symbol(f"{x.name} elsewhere", **x._assumptions_orig) for x in letters}
        signed = any("stochastic" not in system.operators.facts(name) for name in system.operators.names)
        yield from (cls(system, others, entry) for entry in ((STRENGTH, -STRENGTH) if signed else (1,)))

    def shown(self, letter: sp.Symbol) -> str:
        own = letter in self.others
        return f"{letter.name} there" if own else "t" if letter == TIME else letter.name

    def _entry(self, letter: str, row: int) -> int:
        """What an operator multiplies the other node's entry by: 1 for A."""
        if letter not in self.system.operators.names or "stochastic" in self.system.operators.facts(letter):
            return 1
        turned = -1 if "antisymmetric" in self.system.operators.facts(letter) and row == 1 else 1
        return self.entry * turned

    def at(self, expression: sp.Expr, node: int = 0) -> sp.Expr:
        """The value of a normal form at the first or the second node."""
        if isinstance(expression, Act):
            sign = sp.S.One
            for letter in expression.word:
                sign *= self._entry(letter.name, node)
                node = 1 - node
            return sign * self.at(expression.inner, node)
        if isinstance(expression, sp.Symbol):
            return self.others.get(expression, expression) if node else expression
        return expression.func(*(self.at(part, node) for part in expression.args)) if expression.args else expression
