"""What becomes of small deviations from a constant state of one field: the largest of P(lam) over lam in [0, 2].

At a kink there is no linearisation, but a slope on either side. Constant states follow one of the two, so that a state
is left where either is positive. Where the kink is in a function of single entries, f = p(L) H + r(H), every node has
one of the two slopes: on undirected graphs, where L is self-adjoint in a weighted product, deviations decay if the
largest of p plus the larger slope is negative.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from rdgraph.decisions.branches import is_above
from rdgraph.decisions.budget import limited
from rdgraph.decisions.condition_words import in_words
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.enclosure import NotEnclosed
from rdgraph.decisions.interval_extrema import interval_candidates
from rdgraph.decisions.maxima import maximum
from rdgraph.decisions.sided_slopes import STEPS, sided_slope
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.patterns.kinetics import Kinetics
from rdgraph.patterns.linearisation import Linearisation
from rdgraph.patterns.states import CERTIFIED, SteadyState
from rdgraph.syntax.answer_symbols import lam, public

STABLE, UNSTABLE, MARGINAL, UNDECIDED = "stable", "unstable", "marginal", "stability undecided"
SOME_MODES = "unstable for some lam"

#: The end of the spectrum of normalised operators, and seconds of one state.
END = sp.Integer(2)
SECONDS = 1.0


def stability(kinetics: Kinetics, state: SteadyState, attracts: bool | None = None) -> str:
    """The fate of deviations from a state of one field; empty for several fields and families of states.

    Args:
        kinetics: of one field.
        state: at which its rate vanishes.
        attracts: whether constant states beside it move towards it, where that is known.

    Returns:
        stable (every mode with lam in [0, 2] decays), unstable (the constant mode grows, or moves away), unstable for
        some lam, marginal (none grows, one does not decay at first order), or a condition on the coefficients. At a
        kink of the rate stable and marginal are said of undirected graphs.
    """
    if len(kinetics.fields) != 1 or state.free or len(kinetics.mode_letters) != 1:
        return ""
    try:
        found = limited(SECONDS, _fate, kinetics, state)
    except (Undecided, NotApplicable, InvalidArgument, NotEnclosed, sp.PolynomialError):
        found = UNDECIDED
    return UNSTABLE if attracts is False and found in (UNDECIDED, MARGINAL) else found


def _fate(kinetics: Kinetics, state: SteadyState) -> str:
    linear = _numeric if _is_numeric(kinetics, state) else _symbolic
    if state.how == CERTIFIED or not kinetics.matrix.has(*STEPS):
        return linear(kinetics, state)
    ((letter, place),) = state.point.items()
    both = sided_slope(kinetics.matrix[0, 0], letter, place, kinetics.domain.where(*state.conditions))
    sides = [replace(kinetics, matrix=sp.ImmutableMatrix([[rate]])) for rate in (both.below, both.above)]
    if both.agree:
        return linear(sides[0], state)
    fates = {linear(side, state) for side in sides}
    if UNSTABLE in fates or any(weight.has(lam) for weight in both.weights):
        return UNSTABLE if UNSTABLE in fates else UNDECIDED
    if fates <= {STABLE, MARGINAL}:
        return MARGINAL if MARGINAL in fates else STABLE
    if linear is _numeric:
        return UNDECIDED
    domain = kinetics.domain.where(*state.conditions)
    worst = [_worst(rate, domain) for rate in (both.below, both.above)]
    at_zero = [rate.subs(lam, 0) for rate in (both.below, both.above)]
    if any(sp.expand(a - b) != 0 for a, b in zip(worst, at_zero, strict=True)):
        return UNDECIDED  # a mode that is not constant has both slopes at once
    return _in_words(sp.Max(*worst), domain)


def _is_numeric(kinetics: Kinetics, state: SteadyState) -> bool:
    left = kinetics.matrix.free_symbols - {lam, *kinetics.letters}
    return state.is_number and not left


def _numeric(kinetics: Kinetics, state: SteadyState) -> str:
    whole = Linearisation.at(kinetics, state)
    at_zero = whole.sign_at(sp.S.Zero)
    if at_zero == 1:
        return UNSTABLE
    bands = whole.bands(END)
    if bands.bands:
        return SOME_MODES
    if not bands.is_sure or at_zero is None:
        return UNDECIDED
    rate = sp.sympify(whole.exact_matrix[0, 0])
    worst = maximum(interval_candidates(rate, lam, sp.S.Zero, END, Domain()), Domain())
    return STABLE if is_above(sp.S.Zero, worst, Domain()) else MARGINAL


def _symbolic(kinetics: Kinetics, state: SteadyState) -> str:
    domain = kinetics.domain.where(*state.conditions)
    rate = sp.expand(kinetics.matrix[0, 0].xreplace(dict(state.point)))
    if rate.has(sp.zoo, sp.nan, sp.oo, *STEPS):
        return UNDECIDED
    if domain.proves(sp.Gt(rate.subs(lam, 0), 0, evaluate=False)):
        return UNSTABLE
    return _in_words(_worst(rate, domain), domain)


def _worst(rate: sp.Expr, domain: Domain) -> sp.Expr:
    return maximum(interval_candidates(rate, lam, sp.S.Zero, END, domain), domain)


def _in_words(worst: sp.Expr, domain: Domain) -> str:
    """What the largest growth over lam says."""
    if is_above(sp.S.Zero, worst, domain):
        return STABLE
    if is_above(worst, sp.S.Zero, domain):
        return SOME_MODES
    if domain.proves(sp.Eq(worst, 0, evaluate=False)):
        return MARGINAL
    if worst.has(sp.Max, sp.Piecewise) and not is_above(worst, sp.S.Zero, domain):
        return f"stable iff {in_words(public(worst))} < 0" if not worst.has(sp.Piecewise) else UNDECIDED
    return f"stable iff {public(worst)} < 0"
