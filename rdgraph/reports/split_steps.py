"""What a preflight says of the steps of a splitting, whose parts are solved exactly but one after the other."""

from __future__ import annotations

from rdgraph.errors import NotApplicable
from rdgraph.reports.findings import IF, OK, UNKNOWN, Finding
from rdgraph.reports.run_settings import RunSettings
from rdgraph.syntax.answer_symbols import R, h, public
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.global_existence import GLOBAL, existence
from rdgraph.theory.invariant_boxes import single_box
from rdgraph.theory.reaction_flows import closed_rate

STABLE = "both parts are solved exactly, whatever the step"


def splitting(run: RunSettings) -> Finding:
    """Whether a step can diverge: the reaction exists for all states, or diffusion keeps a state where it does.

    Diffusion exp(t (p(A) - p(1))) with coefficients c_k >= 0 for k >= 1 keeps H >= 0, and finite states finite.
    """
    if run.system.structure.linear:
        return Finding("step", OK, "both parts are solved exactly and commute: no step size")
    try:
        reaction = reaction_alone(run.system)
    except NotApplicable as problem:
        return Finding("step", UNKNOWN, f"{run.method} does not apply", str(problem))
    if existence(reaction).status == GLOBAL:
        return Finding("step", OK, "no step can diverge: the reaction exists for all time from every state", STABLE)
    averages = (c for k, c in run.system.structure.generator.items() if k > 0)
    if all(run.system.domain.is_nonnegative(c) for c in averages) and _keeps_half_line(reaction):
        return Finding("step", IF, "H0 >= 0, where no step can diverge", STABLE)
    return Finding("step", UNKNOWN, "it is not settled whether a step can diverge", STABLE)


def reaction_alone(system: System) -> System:
    """h' = r(h) as a system of its own, under the same assumptions.

    >>> print(reaction_alone(parse("F")))
    -H**2*beta + H*beta
    """
    rate = public(closed_rate(system)).subs({public(h): "H"})
    kinds = {name: kind for name, kind in system.coefficients.items() if name in {x.name for x in rate.free_symbols}}
    return parse(str(rate), kinds, assume=system.assumptions.about(kinds).texts())


def _keeps_half_line(reaction: System) -> bool:
    """Whether [0, u] is invariant for arbitrarily large u."""
    box = single_box(reaction, "row")
    if not box.exists:
        return False
    intervals = [(box.lower, box.upper), *box.others]
    return any(lower == 0 and upper is not None and upper.has(public(R)) for lower, upper in intervals)
