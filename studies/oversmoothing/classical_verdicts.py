"""Statements about F, AC and Z: sign patterns, collapse, profiles, and reactions too weak to matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

import rdgraph as rd
from studies.oversmoothing.answers import GONE, Answer, beta_over_alpha, decades, median_text
from studies.oversmoothing.flows import CLASSICAL, LEVEL, box
from studies.oversmoothing.rows import column, select
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, agreed

_H = sp.Symbol("h", real=True)


def sign_patterns(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """AC with row-stochastic diffusion: signs that start at size >= `LEVEL` persist where the reaction is strong."""
    strong = persistence("AC", LEVEL)
    rows = select(ends, flow="AC", normalisation="row", start="box", scheme="flow")
    cut = column(graphs, "cut")
    kept: dict[float, float] = {}
    for ratio in sorted({beta_over_alpha(r) for r in rows}):
        own = [r for r in rows if beta_over_alpha(r) == ratio]
        floor = np.tile(cut, len(own) // len(cut))
        kept[ratio] = float((column(own, "energy_least") / floor).min())
    proven = [value for ratio, value in kept.items() if ratio >= strong]
    lost = [f"{ratio:g}" for ratio, value in kept.items() if value < 1]
    holds = bool(proven) and min(proven) >= 1
    answer = (f"holds if beta >= {strong:g} alpha" if lost else HOLDS) if holds else FAILS
    words = ", ".join(f"{value:.2g} at beta/alpha = {ratio:g}" for ratio, value in kept.items())
    return Answer(
        'AC: "the Dirichlet energy of GREAD can be bounded in time thanks to the reaction term"',
        answer,
        f"row-stochastic A, start with {LEVEL:g} <= |h| <= 1: least energy on the way over the energy (2/N) cut that "
        f"a kept sign pattern guarantees, worst graph: {words}; proven to stay above 1 from beta = {strong:g} alpha on",
        f"AC keeps a sign pattern, and with it a positive energy, where beta >= {strong:g} alpha"
        + (f"; it was lost at beta/alpha = {', '.join(lost)}." if lost else "."),
    )


def persistence(name: str, level: float) -> float:
    """The least beta/alpha for which no entry of size >= level changes sign, whatever its neighbours do.

    At h = level diffusion takes at most alpha (level - lower), lower the bottom of the invariant box, and the reaction
    gives beta r(level); sharp for Allen-Cahn.
    """
    return (level - box(name)[0]) / float(_reaction(name).subs(_H, level))


def collapse(name: str, ends: list[MutableRow]) -> Answer:
    """F and Z with row-stochastic diffusion from inside [0, 1]: all trajectories tend to a constant."""
    rows = select(ends, flow=name, normalisation="row", start="box", scheme="flow")
    share = column(rows, "energy_T") / column(rows, "energy_0")
    raw = select(ends, flow=name, start="features", scheme="flow", kind="SC")
    frozen = int((~np.isnan(column(raw, "failed_at"))).sum())
    return Answer(
        f'{name}: "the Dirichlet energy of GREAD can be bounded in time thanks to the reaction term"',
        FAILS if (share < GONE).all() else UNDECIDED if (share < 0.5).any() else HOLDS,
        f"row-stochastic A, start in [0, 1]^n: E(T)/E(0) is at most {share.max():.2g} and in the median "
        f"{median_text(share)} over {len(rows)} members, every beta > 0; from the features themselves, A_sym, "
        f"{frozen} of {len(raw)} members blow up",
        f"{name} collapses to a constant from inside the unit box" + (" and blows up from outside." if frozen else "."),
    )


def profile(ends: list[MutableRow]) -> Answer:
    """F with A_sym from inside the box: energy is left, but both channels end in the same profile."""
    rows = select(ends, flow="F", normalisation="symmetric", start="box", scheme="flow")
    strong = [r for r in rows if beta_over_alpha(r) >= 1]
    energy, rank = column(strong, "energy_T"), column(strong, "rank_T")
    return Answer(
        "F with A_sym: an energy that stays away from zero means that features stay apart",
        agreed(rank[energy > 0] - 1 >= GONE),
        f"start in [0, 1]^n, beta >= alpha: E(T) is {energy.min():.2g} to {energy.max():.2g}, and the effective rank "
        f"of the two channels, which start apart, is at most 1 + {max(rank.max() - 1, 0):.1g}: every start ends in the "
        "same profile",
        "With A_sym the energy of F stays positive although nothing of the start is left.",
    )


def small_reactions(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """E -> 0 where beta nu < alpha lam2, with nu = sup r' on the box: F 1, AC 1, Z 1/3."""
    lam2 = column(graphs, "lam2")
    checked = exceeded = 0
    span = settings["time"] / 2
    for name, slope in _slopes().items():
        for row in select(ends, flow=name, normalisation="row", start="box", scheme="flow"):
            bound = 2 * (float(row["beta"]) * slope - float(row["alpha"]) * lam2[int(row["graph"])])
            if bound < 0 and not np.isnan(float(row["energy_T"])):
                measured = decades(row["energy_T"], row["energy_half"]) * np.log(10) / span
                checked, exceeded = checked + 1, exceeded + int(measured > bound * (1 - 1e-2))
    return Answer(
        "F, AC, Z: a reaction with beta sup r' < alpha λ₂ cannot stop E from vanishing",
        UNDECIDED if not checked else HOLDS if not exceeded else FAILS,
        f"{checked} members on row-stochastic A from the box are below the border; the energy of "
        f"{checked - exceeded} decays at least at the rate 2(alpha λ₂ - beta sup r')",
    )


def _slopes() -> dict[str, float]:
    """sup r' over the invariant box, from the reaction's own expression with beta = 1."""
    found = {}
    for flow in CLASSICAL:
        slope = sp.diff(_reaction(flow.system), _H)
        found[flow.name] = float(sp.maximum(slope, _H, sp.Interval(*map(int, box(flow.system)))))
    return found


def _reaction(name: str) -> sp.Expr:
    """r(h) with beta = 1: the equation on states that diffusion leaves alone."""
    reaction = rd.catalogue[name].structure.scalar_field(_H, _H)
    return reaction.xreplace(dict.fromkeys(reaction.free_symbols - {_H}, sp.S.One))
