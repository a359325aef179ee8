"""Invariant rectangles and non-negative densities of several fields: proved on every graph, or refuted by a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided, UnknownName
from rdgraph.language.answer_symbols import R, public, s
from rdgraph.language.formula_reader import read_expression
from rdgraph.language.normal_form import TIME, Act, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import is_defined
from rdgraph.reals.budget import limited, remaining, within_budget
from rdgraph.reals.domain import NEGATIVE, POSITIVE
from rdgraph.reals.judge import BOUNDED, remembered, watched
from rdgraph.reals.line_pieces import zeros
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import Call, NodeSpeeds, has_gap, starts_of, states_of, timely
from rdgraph.theory.several_fields.rectangle_faces import (
    ANY_SUMS,
    AVERAGING,
    AVERAGING_OR_ALONE,
    DEGREES,
    NO_ISOLATED_NODES,
    UP_TO_S,
    Bounds,
    Collecting,
    Interval,
    RectangleFaces,
    within,
)
from rdgraph.vocabulary.exact_numbers import exact_number
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
                if (witness := _across(pair, bounds, name, side, end)) is not None:
                    return witness
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
    # a start is where the run begins: the point is the start of a run
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
    """The symbols of the second node by those of the first, and the entry of operators without known bound."""

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
        is_state = letter in self.others
        return f"{letter.name} there" if is_state else "t" if letter == TIME else letter.name

    def _entry(self, letter: str, row: int) -> int:
        """The factor with which an operator takes the entry of the other node: 1 for A."""
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

    With `is_closed` this holds for states with zeros too; else they have to be positive at the start.
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
        return Positivity(None, f"the entries of A are unknown under the normalisation {normalisation}")
    try:
        faces = RectangleFaces(NodeSpeeds.of(system, normalisation), DEGREES if record.has_degrees else ANY_SUMS)
    except NotApplicable as problem:
        return Positivity(None, str(problem))
    try:
        return limited(SECONDS, _of_densities, system, faces)
    except Undecided as problem:
        return Positivity(None, str(problem))


def _of_densities(system: System, faces: RectangleFaces) -> Positivity:
    cone = dict.fromkeys(system.fields, (sp.S.Zero, sp.oo))
    if faces.keep(cone):
        note = "no field falls at zero while the others are non-negative, on every graph with weights >= 0"
        return Positivity(True, note)
    if not faces.is_lipschitz(cone):
        return _of_positive_states(faces, cone)
    witness = crossing(system, cone) if faces.speeds.record.is_sharp else None
    if witness is not None:
        return Positivity(False, str(witness))
    return Positivity(None, "no field falls at zero in a test on two nodes, but a proof was not found")


def _of_positive_states(faces: RectangleFaces, cone: dict[str, tuple[sp.Expr, sp.Expr]]) -> Positivity:
    """The answer where f is smooth only for positive states: f_i >= -k u_i keeps u_i above u_i(0) exp(-k t)."""
    positive = {State(name): sp.Symbol(f"{name}_positive", positive=True) for name in cone}
    domain = faces.domain.where(*faces.starting(cone, sp.Tuple(*faces.speeds.speeds.values())))
    for name in cone:
        for value, facts in faces.values(faces.speeds.speeds[name], cone):
            rest = _without_multiples_of(sp.expand(value), State(name)).xreplace(positive)
            inside = domain.where(*(c.xreplace(positive) for c in facts))
            smooth = not has_gap(rest) and is_defined(rest, inside, smooth=True)
            if not smooth or inside.proves(sp.Ge(rest, 0, evaluate=False)) is not True:
                note = (
                    "f is not smooth at zero, and it is not proved that fields fall at most in proportion to themselves"
                )
                return Positivity(None, note)
    note = "every field falls no faster than in proportion to itself: positive states stay positive while they exist"
    return Positivity(True, note, is_closed=False)


def _without_multiples_of(speed: sp.Expr, state: State) -> sp.Expr:
    """A speed without its terms c*u, u the field itself and c independent of all states."""
    terms = []
    for term in sp.Add.make_args(speed):
        factor = sp.cancel(term / state)
        collected = {x for x in factor.free_symbols if isinstance(x, sp.Dummy) and x.name != "degree"}
        if factor.has(State) or collected:
            terms.append(term)
    return sp.Add(*terms)


# ---------------------------------------------------------------------- rectangle search
# A search for rectangles: upper faces at zeros of the speeds, a common radius, sizes at which damping wins.
#
# Every rectangle that is returned was proved face by face; an end that was not found is infinite.

#: Seconds spent on one face or rectangle.
FACE_SECONDS = 0.8


def search_rectangle(faces: RectangleFaces, lower: sp.Expr) -> Bounds | None:
    """The smallest invariant rectangle that was found; `lower` is 0 where densities stay non-negative, else -oo."""
    fields = faces.speeds.system.fields
    for side in dict.fromkeys((lower if lower == 0 else -R, -R)):
        common = dict.fromkeys(fields, (side, R))
        if _is_invariant(faces, common):
            return common
    if lower == 0:
        bounds: dict[str, Interval] = dict.fromkeys(fields, (sp.S.Zero, sp.oo))
        changed = True
        while changed:
            changed = False
            for name in (n for n in fields if bounds[n][1] == sp.oo):
                tried = ((e, {**bounds, name: (sp.S.Zero, e)}) for e in _ends(faces, name))
                end = next((e for e, smaller in tried if _holds(faces, smaller, name)), None)
                if end is not None:
                    bounds[name], changed = (sp.S.Zero, end), True
        if all(end != sp.oo for _, end in bounds.values()) or (sized := _damped(faces)) is None:
            return bounds if faces.is_lipschitz(bounds) else None
        return sized
    return _damped(faces)


def _is_invariant(faces: RectangleFaces, bounds: Bounds) -> bool:
    try:
        return limited(min(FACE_SECONDS, remaining()), faces.keep, bounds)
    except Undecided:
        return False


def _holds(faces: RectangleFaces, bounds: Bounds, name: str) -> bool:
    try:
        return limited(min(FACE_SECONDS, remaining()), faces.hold, bounds, name, 1)
    except Undecided:
        return False


def _ends(faces: RectangleFaces, name: str) -> list[sp.Expr]:
    """Positive zeros of a field's speed on states equal in all nodes, the other fields zero; then any radius."""
    system, state = faces.speeds.system, State(name)
    others = {x: sp.S.Zero for n, x in states_of(system).items() if n != name}
    highest = faces.collecting.highest
    uniform = faces.speeds.uniform(name, others, sp.S.One if highest is None else highest)
    if uniform.has(TIME, *starts_of(system).values()):
        return [R]
    ends = [z for z in zeros(uniform, state) if faces.domain.sign(z) is POSITIVE and not z.has(state)]
    return [*ends, R]


# ---------------------------------------------------------------------- damping
def _damped(faces: RectangleFaces) -> Bounds | None:
    """Bounds |u_i| <= B_i so large that damping wins in every field, solved for one field after the other."""
    sizes = {name: sp.Dummy(name, positive=True) for name in faces.speeds.system.fields}
    speeds = {name: _outward(faces, name, sizes) for name in sizes}
    if any(value is None for value in speeds.values()):
        return None
    unsolved: dict[str, sp.Expr] = {name: value for name, value in speeds.items() if value is not None}
    solved: dict[sp.Symbol, sp.Expr] = {}
    while unsolved:
        step = next((x for name in unsolved if (x := _solved(faces, unsolved[name], sizes[name])) is not None), None)
        if step is None:
            return None
        letter, value = step
        solved = {x: sp.expand(v.xreplace({letter: value})) for x, v in solved.items()} | {letter: value}
        unsolved = {n: sp.expand(v.xreplace({letter: value})) for n, v in unsolved.items() if sizes[n] != letter}
    bounds = {name: (-solved[x], solved[x]) for name, x in sizes.items()}
    if any(not end.is_finite and not end.free_symbols for _, end in bounds.values()):
        return None
    tidy = {name: (-sp.factor(end), sp.factor(end)) for name, (_, end) in bounds.items()}
    lemmas = tuple(sp.Ge(end, 0, evaluate=False) for _, end in tidy.values())  # which the solver does not see by itself
    known = replace(faces, given=lemmas) if all(map(faces.domain.proves, lemmas)) else faces
    return tidy if _is_invariant(known, tidy) else None


def _outward(faces: RectangleFaces, name: str, sizes: dict[str, sp.Symbol]) -> sp.Expr | None:
    """A bound of the outward speed at |u| = B: odd powers of u keep their sign, other terms count by their modulus."""
    system, state = faces.speeds.system, State(name)
    letters = {call.letter: call for call in faces.speeds.calls}
    speed = sp.expand(faces.speeds.speeds[name])
    moving = [*states_of(system).values(), *letters]
    if not speed.is_polynomial(*moving) or speed.has(TIME, *starts_of(system).values()):
        return None
    total = sp.S.Zero
    for powers, c in sp.Poly(speed, *moving).terms():
        present = {x: k for x, k in zip(moving, powers, strict=True) if k}
        sign = faces.domain.sign(c)
        if set(present) == {state} and present[state] % 2 == 1:
            total += c * sizes[name] ** present[state]
            continue
        if sign is NEGATIVE and len(present) == 1 and _is_laplacian_of(letters.get(next(iter(present))), state):
            continue  # D - A points inwards where its field is largest
        size = c if sign is POSITIVE else -c if sign is NEGATIVE else sp.Abs(c)
        for x, k in present.items():
            largest = sizes[x.name] if isinstance(x, State) else _collected_size(faces, letters[x], sizes)
            if largest is None:
                return None
            size *= largest**k
        total += size
    return sp.expand(total)


def _is_laplacian_of(call: Call | None, state: State) -> bool:
    return call is not None and call.word == ("L",) and call.inner == state


def _collected_size(faces: RectangleFaces, call: Call, sizes: dict[str, sp.Symbol]) -> sp.Expr | None:
    inner, word = call.inner, call.word
    highest = faces.collecting.highest
    if not isinstance(inner, State) or inner.name not in sizes or set(word) != {"A"} or highest is None:
        return None
    return highest ** len(word) * sizes[inner.name]


def _solved(faces: RectangleFaces, speed: sp.Expr, letter: sp.Symbol) -> tuple[sp.Symbol, sp.Expr] | None:
    """A size at which a bound of the outward speed is not positive; other sizes may occur if the damping is linear."""
    polynomial = sp.Poly(speed, letter)
    lead, degree = polynomial.LC(), polynomial.degree()
    if degree < 1 or faces.domain.sign(lead) is not NEGATIVE:
        return None
    others = [sp.Abs(c) if not _is_signed(faces, c) else c for c in polynomial.all_coeffs()[1:]]
    if degree == 1:
        return letter, sp.expand(sp.cancel((others[0] - lead) / -lead))
    if any(x.free_symbols & _sizes(speed, letter) for x in (lead, *others)):
        return None
    large = [sp.Max(c, 0) if not _is_signed(faces, c) else c for c in others if faces.domain.sign(c) is not NEGATIVE]
    return letter, sp.expand(1 + sp.Add(*(sp.cancel(c / -lead) for c in large)))


def _is_signed(faces: RectangleFaces, coefficient: sp.Expr) -> bool:
    return coefficient == 0 or faces.domain.sign(coefficient) in (POSITIVE, NEGATIVE)


def _sizes(speed: sp.Expr, letter: sp.Symbol) -> set[sp.Symbol]:
    return {x for x in speed.free_symbols if isinstance(x, sp.Dummy) and x != letter}


# ---------------------------------------------------------------------- rectangles
#: Seconds of the search for a rectangle, and of a proof of one.
SEARCH_SECONDS, PROOF_SECONDS = 4.0, 2.5
NOT_FOUND = (
    "undecided: no rectangle was found; tried zeros of the speeds, a common radius and sizes at which damping exceeds "
    "the rest"
)


@dataclass(frozen=True, repr=False)
class Rectangle(Answer):
    """One interval for the entries of each field, such that no run leaves that starts inside.

    Attributes:
        is_kept: True where it is proved, False where a run leaves at the point in the reason, None if undecided.
        bounds: the given intervals or those that were found, None where none were; an end may be infinite, and a run
            then stays inside for as long as it exists. R is any positive number, s the largest row sum of A.
        nonnegative: whether non-negative states stay non-negative.
        assumes: what the graph must satisfy in addition to its normalisation, empty where nothing is needed.
        regular: without a proof, bounds that are invariant on regular graphs with edges.
    """

    is_kept: bool | None
    bounds: Mapping[str, Interval] | None
    reason: str = ""
    nonnegative: Positivity = field(default_factory=lambda: Positivity(None))
    assumes: str = ""
    regular: Mapping[str, Interval] | None = None

    @property
    def value(self) -> Mapping[str, Interval] | None:
        """The intervals by field, where they are invariant."""
        return self.bounds if self.is_kept else None

    @property
    def status(self) -> Status:
        """proved where the rectangle is shown to be invariant or not, else undecided."""
        return Status.UNDECIDED if self.is_kept is None else certainty(self.reason)

    @property
    def outcome(self) -> str:
        """proved, refuted or undecided."""
        return str(self.status) if self.is_kept is not False else "refuted"

    @property
    def headline(self) -> str:
        return f"{self.inside} is {'' if self.is_kept else 'not '}invariant"

    @property
    def exists(self) -> bool:
        """Whether a rectangle is proved to be invariant for all admissible coefficients."""
        return self.is_kept is True and self.bounds is not None

    @property
    def is_bounded(self) -> bool:
        """Whether the rectangle is proved to be invariant and is finite in every field."""
        return self.exists and not any(end in (sp.oo, -sp.oo) for pair in (self.bounds or {}).values() for end in pair)

    @property
    def inside(self) -> str:
        """The rectangle as text."""
        return in_text(self.bounds or {})


def in_text(bounds: Bounds) -> str:
    """Intervals as text.

    >>> in_text({"u": (sp.S.Zero, sp.S.One), "v": (sp.S.Zero, sp.oo)})
    'u in [0, 1], v >= 0'
    """
    parts = []
    for name, (lower, upper) in bounds.items():
        if lower == -sp.oo and upper == sp.oo:
            parts.append(f"{name} of any size")
        elif upper == sp.oo:
            parts.append(f"{name} >= {lower}")
        else:
            parts.append(f"{name} <= {upper}" if lower == -sp.oo else f"{name} in [{lower}, {upper}]")
    return ", ".join(parts)


def rectangle(system: System, normalisation: str, bounds: Mapping[str, Any] | None = None) -> Rectangle:
    """The answer about the rectangle of given bounds, or without bounds about one that is found.

    >>> from rdgraph.systems.parser import parse
    >>> found = rectangle(parse("u' = u*(1 - u - a*v) - Du*L@u; v' = v*(1 - v - b*u) - Dv*L@v"), "row")
    >>> found.status.value, found.bounds, found.nonnegative.value
    ('proved', {'u': (0, 1), 'v': (0, 1)}, True)
    """
    asked = None if bounds is None else read_bounds(system, bounds)
    with watched() as watch:
        answer = _answered(system, normalisation, None if asked is None else tuple(asked.items()))
    note = f"{answer.reason}; {BOUNDED}".removeprefix("; ") if watch.bounded and answer.exists else answer.reason
    return replace(answer, bounds=_public(answer.bounds), regular=_public(answer.regular), reason=note)


def _public(bounds: Bounds | None) -> Bounds | None:
    return None if bounds is None else {name: (public(a), public(b)) for name, (a, b) in bounds.items()}


@within_budget(lambda problem: Rectangle(None, None, f"undecided: {problem}"))
@remembered(256)
def _answered(system: System, normalisation: str, asked: tuple[tuple[str, Interval], ...] | None) -> Rectangle:
    densities = positivity(system, normalisation)
    if system.is_noisy:
        reason = "undecided: noise can push a state across every face where its factor is not zero"
        return Rectangle(None, None, reason, densities)
    try:
        collecting = collecting_of(normalisation)
        speeds = NodeSpeeds.of(system, normalisation)
    except NotApplicable as problem:
        return Rectangle(None, None, f"undecided: {problem}", densities)
    if asked is not None:
        return replace(_decided(system, speeds, collecting, dict(asked)), nonnegative=densities)
    return replace(_sought(system, speeds, collecting, densities), nonnegative=densities)


def collecting_of(normalisation: str) -> Collecting:
    """What rows of a normalisation collect at nodes with edges; NotApplicable where nothing is known of them."""
    record = find_normalisation(normalisation)
    if record.averages == "stochastic":
        return AVERAGING
    if record.averages == "stretched":
        return UP_TO_S
    if record.has_degrees:
        return DEGREES
    if record.name == "column":
        return ANY_SUMS
    raise NotApplicable(f"the entries of A are unknown under the normalisation {normalisation}")


# ---------------------------------------------------------------------- bounds that are asked for
def _decided(system: System, speeds: NodeSpeeds, collecting: Collecting, bounds: Bounds) -> Rectangle:
    faces = RectangleFaces(speeds, collecting)
    try:
        proved = limited(PROOF_SECONDS, lambda: _proved(faces, bounds) if faces.keep(bounds) else None)
    except Undecided:
        proved = None
    if proved is not None:
        return proved
    witness = crossing(system, bounds) if speeds.record.is_sharp else None
    if witness is not None:
        return Rectangle(False, bounds, str(witness))
    note = "undecided: no run crosses a face in a test on two nodes, but not all faces are proved to hold"
    return _on_regular(system, collecting, bounds, Rectangle(None, bounds, note))


def _proved(faces: RectangleFaces, bounds: Bounds) -> Rectangle:
    """A proved rectangle, with what it assumes of the graph."""
    notes = ["s is the largest row sum of A"] if any(end.has(s) for pair in bounds.values() for end in pair) else []
    if any(end in (sp.oo, -sp.oo) for pair in bounds.values() for end in pair):
        notes.append("a run stays inside for as long as it exists")
    if not faces.speeds.system.is_autonomous:
        notes.append("for runs that begin at a time t >= 0")
    assumes = ""
    if faces.collecting is AVERAGING and not RectangleFaces(faces.speeds, AVERAGING_OR_ALONE).keep(bounds):
        assumes = NO_ISOLATED_NODES
    return Rectangle(True, bounds, "; ".join(notes), assumes=assumes)


def _on_regular(system: System, collecting: Collecting, bounds: Bounds, answer: Rectangle) -> Rectangle:
    """An answer about the symmetric normalisation, with what holds where its rows sum to 1."""
    if collecting is not UP_TO_S or not RectangleFaces(NodeSpeeds.of(system, "row"), AVERAGING).keep(bounds):
        return answer
    shown = in_text(_public(bounds) or {})
    note = f"{answer.reason}; on regular graphs with edges, where rows of A sum to 1, {shown} is invariant"
    return replace(answer, reason=note, regular=bounds)


# ---------------------------------------------------------------------- a search
def _sought(system: System, speeds: NodeSpeeds, collecting: Collecting, densities: Positivity) -> Rectangle:
    lower = sp.S.Zero if densities.value and densities.is_closed else -sp.oo
    faces = RectangleFaces(speeds, collecting)
    try:
        bounds = limited(SEARCH_SECONDS, search_rectangle, faces, lower)
    except Undecided:
        bounds = None
    if bounds is not None and (lower == 0 or any(b != sp.oo for _, b in bounds.values())):
        answer = _proved(faces, bounds)
        if collecting is not UP_TO_S or answer.is_bounded:
            return answer
    else:
        answer = Rectangle(None, None, NOT_FOUND)
    if collecting is not UP_TO_S:
        return answer
    row = rectangle(system, "row")
    if not row.is_bounded:
        return answer
    note = (
        f"{answer.reason}; rows of the symmetric A sum to more than 1 on irregular graphs; on regular graphs with "
        f"edges {row.inside} is invariant"
    )
    return replace(answer, reason=note.removeprefix("; "), regular=row.bounds)


# ---------------------------------------------------------------------- arguments
def read_bounds(system: System, given: Mapping[str, Any]) -> dict[str, Interval]:
    """Bounds by field, in the package's internal symbols; a field without given bounds may have any size.

    >>> from rdgraph.systems.parser import parse
    >>> read_bounds(parse("u' = -u; v' = -a*v"), {"v": (0, "1/a")})
    {'u': (-oo, oo), 'v': (0, 1/a)}
    """
    bounds: dict[str, Interval] = {}
    for name, pair in given.items():
        if name not in system.fields:
            raise UnknownName(f"field of {system.text}", str(name), system.fields)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument(f"expected a lower and an upper bound of {name}, got {pair!r}; as in (0, 1)")
        lower, upper = (_end(system, value, name) for value in pair)
        if system.domain.proves(sp.Lt(lower, upper)) is not True and (lower, upper) != (-sp.oo, sp.oo):
            raise InvalidArgument(f"expected a lower bound of {name} below the upper one, got {lower} and {upper}")
        bounds[name] = (lower, upper)
    return {name: bounds.get(name, (-sp.oo, sp.oo)) for name in system.fields}


def _end(system: System, value: Any, name: str) -> sp.Expr:
    infinite = {"oo": sp.oo, "-oo": -sp.oo, float("inf"): sp.oo, float("-inf"): -sp.oo}
    if value is None:
        raise InvalidArgument(f"expected a bound of {name}, got None; give 'oo' or '-oo' where there is none")
    if isinstance(value, str | float) and value in infinite:
        return infinite[value]
    if isinstance(value, str):
        value = read_expression(value)
    if isinstance(value, sp.Basic):
        fixed = [n for n, kind in system.coefficients.items() if kind in (Kind.SCALAR, Kind.CHANNEL)]
        symbols = {sp.Symbol(n): system.algebra.symbols[n] for n in fixed} | {sp.Symbol("R"): R}
        end = sp.sympify(value).xreplace(symbols)
        stray = sorted({x.name for x in end.free_symbols} - {x.name for x in symbols.values()})
        if stray and stray[0] in {*system.letters, "t"}:
            raise InvalidArgument(
                f"expected a bound of {name} that is the same in all nodes at all times, got {value}, in which "
                f"{stray[0]} is not; write it in {', '.join([*fixed, 'R'])}, or as a number"
            )
        if stray:
            raise UnknownName(f"coefficient of {system.text}", stray[0], fixed)
        return end
    return exact_number(value, f"bound of {name}")
