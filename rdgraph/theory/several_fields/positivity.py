"""Densities: do non-negative states stay non-negative?

They do where no field falls at zero while the others are non-negative (quasi-positivity). Where f is not smooth at
zero, as in u**2/v, positive states stay positive if every field falls no faster than in proportion to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.algebra.normal_form import State
from rdgraph.decisions.branches import is_defined
from rdgraph.decisions.budget import limited
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds, has_gap
from rdgraph.theory.several_fields.pair_graph import crossing
from rdgraph.theory.several_fields.rectangle_faces import ANY_SUMS, DEGREES, RectangleFaces

PROVED, REFUTED, UNDECIDED = "proved", "refuted", "undecided"
SECONDS = 2.5


@dataclass(frozen=True)
class Positivity:
    """Whether densities stay non-negative: "proved" on every graph, "refuted" by the point in `note`, or "undecided".

    `is_closed` tells that states with zeros count too; else they have to be positive at the start.
    """

    status: str
    note: str = ""
    is_closed: bool = True


def positivity(system: System, normalisation: str = "row") -> Positivity:
    """Whether states with entries >= 0 keep them, whatever the weights >= 0 of the graph.

    >>> from rdgraph.systems.parser import parse
    >>> positivity(parse("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v")).status
    'proved'
    >>> print(positivity(parse("u' = -v; v' = u")).note)
    on two nodes joined by an edge u falls below its lower bound: u' = -1 at u there = 0, v there = 1
    """
    if system.is_noisy:
        return Positivity(UNDECIDED, "noise can push a state below zero where its factor is not zero")
    record = find_normalisation(normalisation)
    known = record.averages or record.has_degrees or record.name == "column"
    if not known:
        return Positivity(UNDECIDED, f"nothing is known of the entries of A under the normalisation {normalisation}")
    try:
        faces = RectangleFaces(NodeSpeeds.of(system, normalisation), DEGREES if record.has_degrees else ANY_SUMS)
    except NotApplicable as problem:
        return Positivity(UNDECIDED, str(problem))
    try:
        return limited(SECONDS, _decided, system, faces)
    except Undecided as problem:
        return Positivity(UNDECIDED, str(problem))


def _decided(system: System, faces: RectangleFaces) -> Positivity:
    cone = dict.fromkeys(system.fields, (sp.S.Zero, sp.oo))
    if faces.keep(cone):
        note = "no field falls at zero while the others are non-negative, on every graph with weights >= 0"
        return Positivity(PROVED, note)
    if not faces.is_lipschitz(cone):
        return _open(faces, cone)
    witness = crossing(system, cone) if faces.speeds.record.is_sharp else None
    if witness is not None:
        return Positivity(REFUTED, str(witness))
    return Positivity(UNDECIDED, "no field was seen to fall at zero on two nodes, and it is not proved that none does")


def _open(faces: RectangleFaces, cone: dict[str, tuple[sp.Expr, sp.Expr]]) -> Positivity:
    """Where f is smooth for positive states only: f_i >= -k u_i keeps u_i above u_i(0) exp(-k t)."""
    positive = {State(name): sp.Symbol(f"{name}_positive", positive=True) for name in cone}
    domain = faces.domain.where(*faces.starting(cone))
    for name in cone:
        for value, facts in faces.values(name, cone, {}):
            rest = _beside_itself(sp.expand(value), State(name)).xreplace(positive)
            own = domain.where(*(c.xreplace(positive) for c in facts))
            smooth = not has_gap(rest) and is_defined(rest, own, smooth=True)
            if not smooth or own.proves(sp.Ge(rest, 0, evaluate=False)) is not True:
                return Positivity(
                    UNDECIDED, "f is not smooth at zero, and it is not proved that no field falls faster than itself"
                )
    note = "every field falls no faster than in proportion to itself: positive states stay positive while they exist"
    return Positivity(PROVED, note, is_closed=False)


def _beside_itself(speed: sp.Expr, own: State) -> sp.Expr:
    """A speed without the terms that are multiples of the field itself by what does not depend on states."""
    kept = []
    for term in sp.Add.make_args(speed):
        factor = sp.cancel(term / own)
        collected = {x for x in factor.free_symbols if isinstance(x, sp.Dummy) and x.name != "degree"}
        if factor.has(State) or collected:
            kept.append(term)
    return sp.Add(*kept)
