"""Invariant rectangles and non-negative densities of several fields: proved on every graph, or refuted by a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from rdgraph.decisions.budget import limited, within_budget
from rdgraph.decisions.judge import BOUNDED, remembered, watched
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided, UnknownName
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.answer_symbols import R, public, s
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.syntax.formula_reader import read_expression
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.pair_graph import crossing
from rdgraph.theory.several_fields.positivity import PROVED, REFUTED, UNDECIDED, Positivity, positivity
from rdgraph.theory.several_fields.rectangle_faces import (
    ANY_SUMS,
    AVERAGING,
    AVERAGING_OR_ALONE,
    DEGREES,
    UP_TO_S,
    Bounds,
    Collecting,
    Interval,
    RectangleFaces,
)
from rdgraph.theory.several_fields.rectangle_search import found_rectangle

#: Seconds of the search for a rectangle, and of a proof of one.
SEARCH_SECONDS, PROOF_SECONDS = 4.0, 2.5
NO_ISOLATED_NODES = "no node is without incoming edges"
NOT_FOUND = (
    "undecided: no rectangle was found; tried zeros of the speeds, a common radius and sizes at which damping exceeds "
    "the rest"
)


@dataclass(frozen=True)
class Rectangle:
    """One interval for the entries of each field that no run leaves which starts inside.

    Attributes:
        status: "proved", "refuted" by the point in `note`, or "undecided", which `note` explains.
        bounds: the intervals that were asked for or found, None where none was found; an end may be infinite, and a
            run then stays inside for as long as it exists. R is any positive number, s the largest row sum of A.
        nonnegative: whether non-negative states stay non-negative.
        assumes: what the graph must be like beyond its normalisation, empty where nothing is needed.
        regular: without a proof, bounds that are kept on regular graphs with edges.
    """

    status: str
    bounds: Mapping[str, Interval] | None
    note: str = ""
    nonnegative: Positivity = field(default_factory=lambda: Positivity(UNDECIDED))
    assumes: str = ""
    regular: Mapping[str, Interval] | None = None

    @property
    def exists(self) -> bool:
        """A rectangle is proved to be kept, for all admissible coefficients."""
        return self.status == PROVED and self.bounds is not None

    @property
    def is_bounded(self) -> bool:
        """Proved, and finite in every field."""
        return self.exists and not any(end in (sp.oo, -sp.oo) for pair in (self.bounds or {}).values() for end in pair)

    @property
    def inside(self) -> str:
        """The rectangle in words."""
        return in_text(self.bounds or {})


def in_text(bounds: Bounds) -> str:
    """Intervals in words.

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
    """The rectangle of given bounds, or one that is found.

    >>> from rdgraph.systems.parser import parse
    >>> found = rectangle(parse("u' = u*(1 - u - a*v) - Du*L@u; v' = v*(1 - v - b*u) - Dv*L@v"), "row")
    >>> found.status, found.bounds, found.nonnegative.status
    ('proved', {'u': (0, 1), 'v': (0, 1)}, 'proved')
    """
    asked = None if bounds is None else read_bounds(system, bounds)
    with watched() as watch:
        answer = _answered(system, normalisation, None if asked is None else tuple(asked.items()))
    note = f"{answer.note}; {BOUNDED}".removeprefix("; ") if watch.bounded and answer.exists else answer.note
    return replace(answer, bounds=_public(answer.bounds), regular=_public(answer.regular), note=note)


def _public(bounds: Bounds | None) -> Bounds | None:
    return None if bounds is None else {name: (public(a), public(b)) for name, (a, b) in bounds.items()}


@within_budget(lambda problem: Rectangle(UNDECIDED, None, f"undecided: {problem}"))
@remembered(256)
def _answered(system: System, normalisation: str, asked: tuple[tuple[str, Interval], ...] | None) -> Rectangle:
    densities = positivity(system, normalisation)
    if system.is_noisy:
        reason = "undecided: noise can push a state over every face at which its factor is not zero"
        return Rectangle(UNDECIDED, None, reason, densities)
    try:
        collecting = collecting_of(normalisation)
        speeds = NodeSpeeds.of(system, normalisation)
    except NotApplicable as problem:
        return Rectangle(UNDECIDED, None, f"undecided: {problem}", densities)
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
    raise NotApplicable(f"nothing is known of the entries of A under the normalisation {normalisation}")


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
        return Rectangle(REFUTED, bounds, str(witness))
    note = "undecided: no face was seen to be crossed on two nodes, and not all faces are proved to hold"
    return _on_regular(system, collecting, bounds, Rectangle(UNDECIDED, bounds, note))


def _proved(faces: RectangleFaces, bounds: Bounds) -> Rectangle:
    """A rectangle with what it assumes of the graph."""
    notes = ["s is the largest row sum of A"] if any(end.has(s) for pair in bounds.values() for end in pair) else []
    if any(end in (sp.oo, -sp.oo) for pair in bounds.values() for end in pair):
        notes.append("a run stays inside for as long as it exists")
    if not faces.speeds.system.is_autonomous:
        notes.append("for runs that begin at a time t >= 0")
    assumes = ""
    if faces.collecting is AVERAGING and not RectangleFaces(faces.speeds, AVERAGING_OR_ALONE).keep(bounds):
        assumes = NO_ISOLATED_NODES
    return Rectangle(PROVED, bounds, "; ".join(notes), assumes=assumes)


def _on_regular(system: System, collecting: Collecting, bounds: Bounds, answer: Rectangle) -> Rectangle:
    """An answer about the symmetric normalisation with what holds where its rows sum to 1."""
    if collecting is not UP_TO_S or not RectangleFaces(NodeSpeeds.of(system, "row"), AVERAGING).keep(bounds):
        return answer
    shown = in_text(_public(bounds) or {})
    note = f"{answer.note}; on regular graphs with edges, where rows of A sum to 1, {shown} is kept"
    return replace(answer, note=note, regular=bounds)


# ---------------------------------------------------------------------- a search
def _sought(system: System, speeds: NodeSpeeds, collecting: Collecting, densities: Positivity) -> Rectangle:
    lower = sp.S.Zero if densities.status == PROVED and densities.is_closed else -sp.oo
    faces = RectangleFaces(speeds, collecting)
    try:
        bounds = limited(SEARCH_SECONDS, found_rectangle, faces, lower)
    except Undecided:
        bounds = None
    if bounds is not None and (lower == 0 or any(b != sp.oo for _, b in bounds.values())):
        answer = _proved(faces, bounds)
        if collecting is not UP_TO_S or answer.is_bounded:
            return answer
    else:
        answer = Rectangle(UNDECIDED, None, NOT_FOUND)
    if collecting is not UP_TO_S:
        return answer
    row = rectangle(system, "row")
    if not row.is_bounded:
        return answer
    note = (
        f"{answer.note}; rows of the symmetric A sum to more than 1 on irregular graphs; on regular graphs with edges "
        f"{row.inside} is kept"
    )
    return replace(answer, note=note.removeprefix("; "), regular=row.bounds)


# ---------------------------------------------------------------------- arguments
def read_bounds(system: System, given: Mapping[str, Any]) -> dict[str, Interval]:
    """Bounds by field, in the package's own symbols; a field that is not named may have any size.

    >>> from rdgraph.systems.parser import parse
    >>> read_bounds(parse("u' = -u; v' = -a*v"), {"v": (0, "1/a")})
    {'u': (-oo, oo), 'v': (0, 1/a)}
    """
    found: dict[str, Interval] = {}
    for name, pair in given.items():
        if name not in system.fields:
            raise UnknownName(f"field of {system.text}", str(name), system.fields)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument(f"expected a lower and an upper bound of {name}, got {pair!r}; as in (0, 1)")
        lower, upper = (_end(system, value, name) for value in pair)
        if system.domain.proves(sp.Lt(lower, upper)) is not True and (lower, upper) != (-sp.oo, sp.oo):
            raise InvalidArgument(f"expected a lower bound of {name} below the upper one, got {lower} and {upper}")
        found[name] = (lower, upper)
    return {name: found.get(name, (-sp.oo, sp.oo)) for name in system.fields}


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
        own = {sp.Symbol(n): system.algebra.symbols[n] for n in fixed} | {sp.Symbol("R"): R}
        end = sp.sympify(value).xreplace(own)
        stray = sorted({x.name for x in end.free_symbols} - {x.name for x in own.values()})
        if stray and stray[0] in {*system.letters, "t"}:
            raise InvalidArgument(
                f"expected a bound of {name} that is the same in all nodes at all times, got {value}, in which "
                f"{stray[0]} is not; write it in {', '.join([*fixed, 'R'])}, or as a number"
            )
        if stray:
            raise UnknownName(f"coefficient of {system.text}", stray[0], fixed)
        return end
    return exact_number(value, f"bound of {name}")
