"""The fate of small deviations from a constant state of one field: the largest P(lam) over lam in [0, 2].

At a kink there is no linearisation, but a slope on either side. Constant deviations follow one of the two, so that a
state is unstable where either is positive. Where the kink is in a function of single entries, f = p(L) H + r(H), every
node has one of the two slopes: on undirected graphs, where L is self-adjoint in a weighted product, deviations decay if
the largest of p plus the larger slope is negative.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.branches import STEPS, is_above, is_at_least, sided_slope
from rdgraph.reals.budget import limited
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import NotEnclosed
from rdgraph.reals.maxima import interval_candidates, maximum
from rdgraph.theory.patterns.kinetics import Kinetics
from rdgraph.theory.patterns.linearisation import Linearisation
from rdgraph.theory.patterns.states import CERTIFIED, SteadyState

STABLE, UNSTABLE, MARGINAL, UNDECIDED = "stable", "unstable", "marginal", "stability undecided"
SOME_MODES = "unstable for some lam"

#: The end of the spectrum of normalised operators, and seconds for one state.
END = sp.Integer(2)
SECONDS = 1.0


def stability(kinetics: Kinetics, state: SteadyState, attracts: bool | None = None) -> str:
    """The fate of deviations from a state of one field; empty for several fields and families of states.

    Args:
        kinetics: of one field.
        state: at which its rate vanishes.
        attracts: whether neighbouring constant states move towards it, if known.

    Returns:
        stable (every mode with lam in [0, 2] decays), unstable (the constant mode grows, or moves away), unstable for
        some lam, marginal (none grows, one does not decay at first order), or a condition on the coefficients. At a
        kink of the rate, stable and marginal hold on undirected graphs.
    """
    if len(kinetics.fields) != 1 or state.free or len(kinetics.mode_letters) != 1:
        return ""
    try:
        fate = limited(SECONDS, _fate, kinetics, state)
    except (Undecided, NotApplicable, InvalidArgument, NotEnclosed, sp.PolynomialError):
        fate = UNDECIDED
    return UNSTABLE if attracts is False and fate in (UNDECIDED, MARGINAL) else fate


def _fate(kinetics: Kinetics, state: SteadyState) -> str:
    linear = _numeric if _is_numeric(kinetics, state) else _symbolic
    if state.how == CERTIFIED or not kinetics.matrix.has(*STEPS):
        return linear(kinetics, state)
    ((letter, value),) = state.point.items()
    both = sided_slope(kinetics.matrix[0, 0], letter, value, kinetics.domain.where(*state.conditions))
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
        return UNDECIDED  # other modes have both slopes at once
    return _in_words(sp.Max(*worst), domain)


def _is_numeric(kinetics: Kinetics, state: SteadyState) -> bool:
    symbols = kinetics.matrix.free_symbols - {lam, *kinetics.letters}
    return state.is_number and not symbols


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
    """The stability that follows from the largest growth over lam, as text."""
    if is_above(sp.S.Zero, worst, domain):
        return STABLE
    if is_above(worst, sp.S.Zero, domain):
        return SOME_MODES
    if domain.proves(sp.Eq(worst, 0, evaluate=False)):
        return MARGINAL
    if worst.has(sp.Piecewise):
        return UNDECIDED
    if is_at_least(worst, sp.S.Zero, domain):
        return f"{SOME_MODES} where {_strictly(worst, '>', domain)}, else marginal"
    return f"stable iff {_strictly(worst, '<', domain)}"


def _strictly(worst: sp.Expr, relation: str, domain: Domain) -> str:
    """worst < 0 or worst > 0 as text, where a root as factor becomes the condition that its radicand is positive."""
    factors = sp.Mul.make_args(worst)
    roots = [f.base for f in factors if f.is_Pow and f.exp.is_Rational and f.exp.q == 2 and f.exp.is_positive]
    if not roots:
        return f"{public(worst)} {relation} 0"
    number, rest = sp.Mul(*(f for f in factors if not (f.is_Pow and f.base in roots))).as_coeff_Mul()
    words = [f"{public(root)} > 0" for root in roots if not domain.proves(sp.Gt(root, 0, evaluate=False))]
    words_of_rest = [] if rest == 1 else [f"{public(sp.sign(number) * rest)} {relation} 0"]
    return " and ".join([*words_of_rest, *words])
