"""Kinks of rates at constant states, as relu and abs have them at zero: there is no linearisation there."""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.sided_slopes import STEPS
from rdgraph.errors import NotApplicable
from rdgraph.patterns.kinetics import Kinetics
from rdgraph.patterns.states import SteadyState


def check_slopes(kinetics: Kinetics, state: SteadyState | None, matrix: sp.Matrix) -> None:
    """Refuse a state, or without one all of them, where a rate has no slope, or may have none for some coefficients."""
    if matrix.has(sp.zoo, sp.nan, sp.oo):
        raise NotApplicable(f"no linearisation: a rate has no slope at {state or 'states equal in all nodes'}")
    for kink in sorted(kinetics.matrix.atoms(*STEPS), key=str):
        if state is None:
            at_it = [sp.Eq(e, 0, evaluate=False) for e in (*kinetics.rates, kink.args[0]) if e != 0]
            is_apart = kinetics.domain.where(*at_it).is_empty()
        else:
            is_apart = sp.simplify(kink.args[0].xreplace(dict(state.point))).is_nonzero is True
        if not is_apart:
            where = state or "all steady states"
            raise NotApplicable(f"no linearisation at {where} for all coefficients: the slope {kink} may jump there")
