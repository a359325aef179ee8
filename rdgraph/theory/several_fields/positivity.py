"""Densities: do non-negative states stay non-negative?

They do where no field falls at zero while the others are non-negative (quasi-positivity). Where f is not smooth at
zero, as in u**2/v, positive states stay positive if every field falls no faster than in proportion to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import TIME, Act, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import is_defined
from rdgraph.reals.budget import limited
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds, has_gap, starts_of, states_of, timely
from rdgraph.theory.several_fields.rectangle_faces import ANY_SUMS, DEGREES, Bounds, RectangleFaces, within
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- pair graph
# Two nodes and one edge: a graph on which every normalisation is the same, so that it can refute for all of them.
#
# A exchanges the two nodes, L = I - A = D - A; a further operator exchanges them as well, with an entry of either sign
# unless it is stochastic. A point with entries inside a rectangle at which a face is crossed proves that the rectangle
# is left.

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


# ---------------------------------------------------------------------- positivity
SECONDS = 2.5


@dataclass(frozen=True, repr=False)
class Positivity(Answer):
    """Whether densities stay non-negative: True on every graph, False by the point in the reason, None if undecided.

    `is_closed` tells that states with zeros count too; else they have to be positive at the start.
    """

    value: bool | None
    reason: str = ""
    is_closed: bool = True

    @property
    def status(self) -> Status:
        """The status of the answer on positivity: undecided, or as certain as its reason."""
        return Status.UNDECIDED if self.value is None else certainty(self.reason)

    @property
    def outcome(self) -> str:
        """proved, refuted or undecided."""
        return str(self.status) if self.value is not False else "refuted"

    def __bool__(self) -> bool:
        return self.value is True


def positivity(system: System, normalisation: str = "row") -> Positivity:
    """Whether states with entries >= 0 keep them, for all weights >= 0 of the graph.

    >>> from rdgraph.systems.parser import parse
    >>> positivity(parse("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v")).value
    True
    >>> print(positivity(parse("u' = -v; v' = u")).reason)
    on two nodes joined by an edge u falls below its lower bound: u' = -1 at u there = 0, v there = 1
    """
    if system.is_noisy:
        return Positivity(None, "noise can push a state below zero where its factor is not zero")
    record = find_normalisation(normalisation)
    known = record.averages or record.has_degrees or record.name == "column"
    if not known:
        return Positivity(None, f"nothing is known of the entries of A under the normalisation {normalisation}")
    try:
        faces = RectangleFaces(NodeSpeeds.of(system, normalisation), DEGREES if record.has_degrees else ANY_SUMS)
    except NotApplicable as problem:
        return Positivity(None, str(problem))
    try:
        return limited(SECONDS, _decided, system, faces)
    except Undecided as problem:
        return Positivity(None, str(problem))


def _decided(system: System, faces: RectangleFaces) -> Positivity:
    cone = dict.fromkeys(system.fields, (sp.S.Zero, sp.oo))
    if faces.keep(cone):
        note = "no field falls at zero while the others are non-negative, on every graph with weights >= 0"
        return Positivity(True, note)
    if not faces.is_lipschitz(cone):
        return _open(faces, cone)
    witness = crossing(system, cone) if faces.speeds.record.is_sharp else None
    if witness is not None:
        return Positivity(False, str(witness))
    return Positivity(None, "no field was seen to fall at zero on two nodes, and it is not proved that none does")


def _open(faces: RectangleFaces, cone: dict[str, tuple[sp.Expr, sp.Expr]]) -> Positivity:
    """Where f is smooth for positive states only: f_i >= -k u_i keeps u_i above u_i(0) exp(-k t)."""
    positive = {State(name): sp.Symbol(f"{name}_positive", positive=True) for name in cone}
    domain = faces.domain.where(*faces.starting(cone))
    for name in cone:
        for value, facts in faces.values(faces.speeds.speeds[name], cone):
            rest = _beside_itself(sp.expand(value), State(name)).xreplace(positive)
            own = domain.where(*(c.xreplace(positive) for c in facts))
            smooth = not has_gap(rest) and is_defined(rest, own, smooth=True)
            if not smooth or own.proves(sp.Ge(rest, 0, evaluate=False)) is not True:
                return Positivity(
                    None, "f is not smooth at zero, and it is not proved that no field falls faster than itself"
                )
    note = "every field falls no faster than in proportion to itself: positive states stay positive while they exist"
    return Positivity(True, note, is_closed=False)


def _beside_itself(speed: sp.Expr, own: State) -> sp.Expr:
    """A speed without the terms that are multiples of the field itself by what does not depend on states."""
    kept = []
    for term in sp.Add.make_args(speed):
        factor = sp.cancel(term / own)
        collected = {x for x in factor.free_symbols if isinstance(x, sp.Dummy) and x.name != "degree"}
        if factor.has(State) or collected:
            kept.append(term)
    return sp.Add(*kept)
