"""The paper's statements about oversmoothing, answered from measured ends and measured spectra.

Every threshold is computed: growth rates from the equations' symbols at the eigenvalues of each graph, plateaus from
its degrees, modes and signs. Nothing here stores an answer. What an equation does is the same on all graphs or
undecided; what random coefficients do is counted, and undecided where the interval of the share contains one half.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.oversmoothing.answers import CLOSE, Answer, decades, is_kept, median_text
from studies.oversmoothing.classical_verdicts import collapse, profile, sign_patterns, small_reactions
from studies.oversmoothing.flows import REACTIONS
from studies.oversmoothing.linear_verdicts import bounded, source_normalised, source_plateau
from studies.oversmoothing.rows import column, select
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, agreed, decide, interval


def verdicts(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> list[Answer]:
    """Every statement with its answer, in the order of the paper."""
    return [
        gcn_decay(ends, graphs),
        constants(ends, graphs),
        grand_delay(ends, graphs),
        *(bounded(name, ends, graphs) for name in ("BS", "FB", "FB*")),
        source_plateau(ends, graphs, settings),
        source_normalised(ends, settings),
        sign_patterns(ends, graphs),
        *(collapse(name, ends) for name in ("F", "Z")),
        profile(ends),
        small_reactions(ends, graphs, settings),
        *(vectors(name, ends, settings) for name in ("F", "AC", "ST", "FB")),
        euler_is_flow(ends, graphs, settings),
    ]


# ---------------------------------------------------------------------- baselines
def gcn_decay(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """GCN without weights: does the energy reach zero, or the plateau of sqrt(d)?"""
    rows = select(ends, flow="GCN", scheme="euler")
    first, fifth, last = (column(rows, f"energy_{k}") for k in ("0", "5", "T"))
    plateau = column(graphs, "plateau_loops")
    off = np.abs(last / plateau - 1).max()
    return Answer(
        'GCN: "the Dirichlet energy decays exponentially to zero in the first five layers"',
        agreed(last < 1e-8 * first),
        f"linear GCN, median over {len(rows)} graphs: E = {median_text(first)} at the start, {median_text(fifth)} "
        f"after 5 layers, {median_text(last)} after 40; the energy of the projection on sqrt(d) is "
        f"{median_text(plateau)} (largest difference {off:.1%})",
        f"With A_sym the energy falls by a factor {median_text(first / last)} and then stays at a positive plateau, "
        "the energy of the component along sqrt(d), since the graphs are not regular.",
    )


def constants(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """Diffusion: E -> 0 for which operator?"""
    rows = select(ends, flow="diffusion", scheme="flow", alpha=1.0)
    row = select(ends, flow="GRAND", scheme="flow", alpha=1.0)
    share = column(rows, "energy_T") / column(graphs, "plateau")
    expected = -2 * column(graphs, "lam2")
    off = np.abs(column(row, "rate") / expected - 1).max()
    end = column(row, "energy_T")
    stays = bool((share > 0.5).all())
    decays = bool(off < CLOSE)
    answer = "holds if A is row-stochastic" if stays and decays else HOLDS if decays else UNDECIDED
    return Answer(
        'diffusion: "all node features converge to constants", so that E "decays to zero asymptotically in time"',
        answer,
        f"exact flow, alpha = 1: with A_sym E(T)/E(plateau) lies in [{share.min():.3g}, {share.max():.3g}]; with "
        f"D^-1 W log |H - PH|^2 falls at the rate 2 alpha λ₂ within {off:.2%} and E(T) = {median_text(end)}",
        "Diffusion sends E to zero with the row-stochastic operator, at the rate of λ₂, not with the symmetric one.",
    )


def grand_delay(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """Diffusivity only rescales time."""
    slow, fast = (column(select(ends, flow="GRAND", scheme="flow", alpha=a), "rate") for a in (0.5, 1.0))
    ratio = slow / fast
    return Answer(
        "GRAND: diffusion with learned diffusivity can delay the oversmoothing",
        agreed((slow < 0) & (slow > fast)),
        f"rates of log |H - PH|^2: {median_text(fast)} at alpha = 1 and {median_text(slow)} at alpha = 0.5, ratio in "
        f"[{ratio.min():.3f}, {ratio.max():.3f}]; predicted 0.5, and the limit is the same",
        "A smaller diffusivity delays it, by rescaling time, and does not prevent it.",
    )


# ---------------------------------------------------------------------- vectors and Euler
def vectors(name: str, ends: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """beta as a vector, drawn, against the scalar: who has more energy at the end of Euler's steps?"""
    both = select(ends, flow=name, start="features", scheme="euler", alpha=settings["alpha"])
    scalar = {r["graph"]: r for r in select(both, kind="SC", beta=settings["beta"])}
    drawn = select(both, kind="VC")
    alive = [r for r in drawn if is_kept(r) and is_kept(scalar[r["graph"]])]
    more = np.array([float(r["energy_T"]) > float(scalar[r["graph"]]["energy_T"]) for r in alive], dtype=bool)
    lost = f"{sum(not is_kept(r) for r in drawn)} of {len(drawn)} VC and "
    lost += f"{sum(not is_kept(r) for r in scalar.values())} of {len(scalar)} SC"
    low, high = interval(int(more.sum()), len(more))
    return Answer(
        f'{name}: a vector beta (VC) "conserves more energy" than a scalar one (SC)',
        decide(more),
        f"Euler, untrained coefficients: VC has more energy at T in {int(more.sum())} of {len(more)} pairs (95 % "
        f"interval of the share {low:.2f} to {high:.2f}); frozen {lost}",
    )


def euler_is_flow(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """How many members Euler loses that the flow keeps, and how far the energies are apart."""
    words, differ = [], 0
    for name in (flow.name for flow in REACTIONS):
        lost, apart = [], []
        for scheme in ("euler", "flow"):
            rows = select(ends, flow=name, start="features", scheme=scheme, kind="SC")
            lost.append(sum(not is_kept(r) for r in rows))
        pairs = zip(
            *(select(ends, flow=name, start="features", scheme=s, kind="SC") for s in ("euler", "flow")), strict=True
        )
        for euler, flow in pairs:
            if is_kept(euler) and is_kept(flow):
                apart.append(abs(decades(euler["energy_T"], flow["energy_T"])))
        far = max(apart, default=float("nan"))
        differ += lost[0] != lost[1] or far > 1
        factor = "" if np.isnan(far) else f", energies up to a factor {10**far:.2g} apart"
        words.append(f"{name}: frozen {lost[0]} by Euler, {lost[1]} by the flow{factor}")
    limit = np.sqrt(1 + 2 / (settings["step"] * settings["beta"]))
    return Answer(
        "Euler's method with step 1 and 40 steps shows what the equations do",
        FAILS if differ else HOLDS,
        "; ".join(words) + f". Euler on AC diverges from |h| > sqrt(1 + 2/(step*beta)) = {limit:.3g} at beta = "
        f"{settings['beta']:g}; the features reach {column(graphs, 'largest').min():.2g} and more on every graph",
        f"In {differ} of 7 reactions Euler's method with step 1 shows something else than the equation.",
    )
