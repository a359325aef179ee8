"""Does a layer of two fields, or of second order, escape oversmoothing? What is proved, and what is measured beside it.

Proved, for linear equations: a mode of L with eigenvalue lam moves by P(lam) alone. So the energy of every start tends
to zero exactly where all eigenvalues of P(lam), lam > 0, have negative real parts. Let r be the largest of these real
parts and r0 that of P(0). For almost every start the energy as a share of the size tends to zero where r < r0, and does
not where r > r0, or where r = r0 and the eigenvalues of P(0) on that line have no Jordan blocks, so that constants do
not outgrow the rest by powers of t. For nonlinear equations the same numbers decide only what happens near zero; the
rest is measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.oversmoothing.answers import GONE, Answer, median_text
from studies.oversmoothing.coupled_flows import (
    COUPLED,
    DAMPED,
    EQUAL,
    EVEN,
    NONLINEAR,
    TOGETHER,
    TURING,
    UNDAMPED,
)  # fmt: skip
from studies.oversmoothing.rows import column, select
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, agreed

#: Real parts that differ by less are equal.
EQUAL_RATES = 1e-9
#: Change of a conserved quantity by rounding and by RK4; difference of a mean over a finite time and its limit.
DRIFT, MEAN = 1e-3, 0.1


def coupled_verdicts(rows: list[MutableRow], rates: list[MutableRow]) -> list[Answer]:
    """Every statement with its answer."""
    return [
        undamped(rows), damped(rows, rates), even(rows, rates), theorem(rows, rates), nonlinear(rows),
        turing(rows, rates), equal(rows, rates),
    ]  # fmt: skip


def share_left(rows: list[MutableRow], flow: str, field: str, name: str = "energy") -> np.ndarray:
    """The largest value over the last quarter of the time as a share of the first one, per graph (S,)."""
    own = select(rows, flow=flow, field=field)
    times = sorted({float(row["t"]) for row in own})
    values = column(own, name).reshape(-1, len(times))
    return np.asarray(values[:, np.array(times) >= 0.75 * times[-1]].max(1) / values[:, 0])


def undamped(rows: list[MutableRow]) -> Answer:
    """Linear GraphCON without damping: every mode keeps its energy."""
    own = select(rows, flow=UNDAMPED.name, field="H")
    first = select(own, t=0.0)
    drift = column(first, "conserved")
    times = sorted({float(row["t"]) for row in own})
    mean = column(own, "energy").reshape(-1, len(times)).mean(1)
    ratio = mean / column(first, "predicted")
    close = bool((np.abs(ratio - 1) < MEAN).all())
    return Answer(
        "linear GraphCON without damping, H'' = AH - γH with γ > 1: no mode loses energy, and it does not oversmooth",
        HOLDS if (drift < DRIFT).all() and close else UNDECIDED,
        "proved: c'' = -(γ - 1 + λ)c conserves |c'|² + (γ - 1 + λ)|c|² of every mode, so that the energy of H has half "
        f"the sum over the modes' first energies as mean over time. Measured: drift at most {drift.max():.1e}; mean "
        f"energy over the predicted one {ratio.min():.3f} to {ratio.max():.3f} on {len(drift)} graphs",
        "A linear GraphCON layer without damping keeps its Dirichlet energy, in the mean over time.",
    )


def damped(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """Linear GraphCON with damping and gamma = 1 oversmooths as diffusion does."""
    own = select(rates, flow=DAMPED.name)
    proved = bool((column(own, "beyond_0") < 0).all() and (np.abs(column(own, "at_0")) < EQUAL_RATES).all())
    left = share_left(rows, DAMPED.name, "H", "normalised")
    return Answer(
        "linear GraphCON with damping, γ = 1, does not oversmooth",
        FAILS if proved and (left < GONE).all() else UNDECIDED,
        f"proved: constants stay (rate 0), all other modes decay, the slowest at a rate of {_range(own, 'beyond_0')}. "
        f"Measured: the normalised energy of H falls to {median_text(left)} of the first in the median, at most "
        f"{left.max():.1e}",
        "With damping and γ = 1 it oversmooths.",
    )


def even(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """Damping with a strong spring: all modes decay alike, so that the shape stays rough while the state vanishes."""
    own = select(rates, flow=EVEN.name)
    spread = np.abs(column(own, "at_0") - column(own, "beyond_0")).max()
    decays = bool((column(own, "beyond_0") < 0).all())
    energy, shape = share_left(rows, EVEN.name, "H"), share_left(rows, EVEN.name, "H", "normalised")
    holds = decays and spread < EQUAL_RATES and (energy < GONE).all() and (shape > GONE).all()
    return Answer(
        "linear GraphCON with damping and γ > 1 + α²/4: the energy vanishes, and as a share of the state it does not",
        HOLDS if holds else UNDECIDED,
        f"proved: every mode, the constant one too, has the rate -α/2 = {_range(own, 'beyond_0')}. Measured: energy of "
        f"H at most {energy.max():.1e} of the first, normalised energy at least {shape.min():.2g} of it",
        "With a stronger spring all modes decay alike: the state vanishes without becoming smooth.",
    )


def theorem(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """All linear flows on all graphs: the eigenvalues of P decide whether the normalised energy vanishes."""
    right = count = 0
    words = []
    for flow in (flow for flow in COUPLED if flow.is_linear):
        own = select(rates, flow=flow.name)
        vanishes = column(own, "beyond_0") < column(own, "at_0") - EQUAL_RATES
        seen = share_left(rows, flow.name, TOGETHER, "normalised") < GONE
        right, count = right + int((vanishes == seen).sum()), count + len(own)
        words.append(f"{flow.name}: vanishes on {int(vanishes.sum())} predicted, {int(seen.sum())} measured")
    return Answer(
        "linear layers of any number of fields: the energy as a share of the state vanishes where the real parts of "
        "P(λ), λ > 0, lie below those of P(0), and does not where they reach them",
        HOLDS if right == count else UNDECIDED,
        "proved for almost every start, where the leading eigenvalues of P(0) have no Jordan blocks, as here; measured "
        f"as predicted in {right} of {count} runs: {'; '.join(words)}",
    )


def nonlinear(rows: list[MutableRow]) -> Answer:
    """GraphCON with tanh: measured alone."""
    left = share_left(rows, NONLINEAR.name, "H", "normalised")
    return Answer(
        "GraphCON with tanh, damped, γ = 1, does not oversmooth",
        agreed(left > GONE),
        f"measured alone, nothing is proved: the normalised energy of H is {left.min():.1e} to {left.max():.1e} of the "
        "first at the end",
    )


def turing(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """A Turing-unstable layer of two fields ends in a state that is not constant."""
    own = select(rates, flow=TURING.name)
    unstable = (column(own, "beyond_0") > 0) & (column(own, "at_0") < 0)
    left, settled = share_left(rows, TURING.name, TOGETHER), _settled(rows, TURING.name)
    return Answer(
        "a Turing-unstable layer of two fields holds a state that is not constant",
        agreed((left > GONE) & (settled < GONE)) if unstable.all() else UNDECIDED,
        f"proved: zero, which is stable without the graph (rate {_range(own, 'at_0')}), is unstable on "
        f"{int(unstable.sum())} of {len(own)} graphs (rate {_range(own, 'beyond_0')}). Measured, since that does not "
        f"say where runs end: the energy at the end is {left.min():.3g} to {left.max():.3g} of the first and changes "
        f"by at most {settled.max():.1e} of itself in the last quarter",
        "A Turing-unstable layer of two fields was seen to hold a state that is not constant.",
    )


def equal(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """The same reaction with equal diffusion: P(lam) = P(0) - lam, so that nothing but constants could grow."""
    own = select(rates, flow=EQUAL.name)
    stable = bool((column(own, "beyond_0") < column(own, "at_0")).all() and (column(own, "at_0") < 0).all())
    left = share_left(rows, EQUAL.name, TOGETHER)
    return Answer(
        "two fields alone, with equal diffusion, keep the energy",
        FAILS if stable and (left < GONE).all() else agreed(left > GONE),
        f"proved near zero: the rates are {_range(own, 'at_0')} at λ = 0 and at most {_range(own, 'beyond_0')} beyond. "
        f"Measured: the energy at the end is at most {left.max():.1e} of the first",
        "It is the difference of the diffusivities that does it, not the second field.",
    )


def _settled(rows: list[MutableRow], flow: str) -> np.ndarray:
    """How much the energy of all fields still changes in the last quarter, as a share of it, per graph."""
    own = select(rows, flow=flow, field=TOGETHER)
    times = sorted({float(row["t"]) for row in own})
    late = column(own, "energy").reshape(-1, len(times))[:, np.array(times) >= 0.75 * times[-1]]
    return np.asarray((late.max(1) - late.min(1)) / late[:, -1])


def _range(rows: Sequence[MutableRow], name: str) -> str:
    values = column(list(rows), name)
    low, high = float(values.min()), float(values.max())
    return f"{low:.3g}" if np.isclose(low, high) else f"{low:.3g} to {high:.3g}"
