"""Proven statements about H' = -alpha L H + f(H), f entrywise: hypotheses checked for given numbers, outcome measured.

With E the Dirichlet energy of the graph and A row-stochastic:

    contraction   E(t) <= E(0) e^{2 (sup f' - alpha lam2) t}: E -> 0 where sup f' < alpha lam2;
    pattern       Allen-Cahn, f = beta h (1 - h^2): where alpha/beta <= c (1 - c), signs with c <= |h| <= 1 stay
                  and E >= (2/N) (2c)^2 cut; c = 1/2 is the weakest demand on alpha/beta, beta >= 4 alpha;
    collapse      Zeldovich, f = beta h^2 (1 - h), on a connected graph: every trajectory tends to the constant 0 or 1;
                  Fisher, f = beta h (1 - h), from h0 >= 0, h0 != 0: to the constant 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.verdicts.statements import (
    STAYS,
    VANISHES,
    EnergyStatement,
    EnergyTrajectory,
    Hypothesis,
    Reaction,
    StatementGraph,
)


def statements(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> tuple[EnergyStatement, ...]:
    """Every statement that is about this reaction, with its hypotheses checked and the run beside it."""
    found = [contraction(reaction, setting, run)]
    match reaction.name:
        case "AC":
            found.append(pattern(reaction, setting, run))
        case "Z":
            found.append(collapse_zeldovich(reaction, setting, run))
        case "F":
            found.append(collapse_fisher(reaction, setting, run))
    return tuple(found)


def contraction(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """E(t) <= E(0) e^{2 (sup f' - alpha lam2) t}."""
    H0 = run.states[0]
    above_zero = bool(H0.min() >= 0 and reaction.f(0.0) >= 0)
    steepest = reaction.steepest(0.0 if above_zero else -np.inf)
    rate = 2 * (steepest - reaction.alpha * setting.gap)
    where = "on h >= 0" if above_zero else "everywhere"
    hypotheses = (
        _stochastic(setting),
        Hypothesis(f"alpha > 0 (alpha = {reaction.alpha:g})", reaction.alpha > 0),
        Hypothesis(
            f"sup f' < alpha lam2 ({steepest:.6g} {where}, against {reaction.alpha * setting.gap:.6g})", rate < 0
        ),
    )
    ratio = np.nan
    if np.isfinite(rate) and run.energy[0] > 0:
        trusted = run.energy > 1e-14 * run.energy[0]
        ratio = float((run.energy / run.energy[0] * np.exp(-rate * run.times))[trusted].max())
    return _statement(
        "contraction", f"E(t) <= E(0) exp({rate:.6g} t), so E -> 0", hypotheses, VANISHES,
        f"largest E(t) over its bound {ratio:.6g}", ratio <= 1 + 1e-6, {"rate": rate, "over_bound": ratio},
    )  # fmt: skip


def pattern(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """Allen-Cahn keeps signs: |h_i| >= c for ever where alpha/beta <= c (1 - c), and E >= (2/N) (2c)^2 cut."""
    H0 = run.states[0]
    ratio = reaction.alpha / reaction.beta if reaction.beta > 0 else np.inf
    root = np.sqrt(max(1 - 4 * ratio, 0.0)) if ratio <= 0.25 else 0.0
    low, high = (1 - root) / 2, (1 + root) / 2
    smallest, largest = float(np.abs(H0).min()), float(np.abs(H0).max())
    level = min(smallest, high)
    source, target = setting.edges
    split = (np.sign(H0[source]) != np.sign(H0[target])).sum(axis=1)
    cut = float((setting.weight * split).sum() / 2)
    bound = 2 / setting.num_nodes * (2 * level) ** 2 * cut
    hypotheses = (
        _stochastic(setting),
        Hypothesis(f"alpha >= 0 and beta >= 4 alpha (alpha = {reaction.alpha:g}, beta = {reaction.beta:g})",
                   reaction.alpha >= 0 and ratio <= 0.25),
        Hypothesis(f"{low:.6g} <= |h0| <= 1 (|h0| in [{smallest:.6g}, {largest:.6g}])",
                   bool(smallest >= low - 1e-12 and largest <= 1 + 1e-12)),
    )  # fmt: skip
    kept = bool((np.sign(run.states) == np.sign(H0)).all())
    least = float(run.energy.min())
    return _statement(
        "sign pattern", f"every sign stays, |h| >= {level:.6g} and E >= {bound:.6g} (cut {cut:g})", hypotheses,
        STAYS if bound > 0 else None,
        f"smallest E {least:.6g}, smallest |h| {np.abs(run.states).min():.6g}, signs {'kept' if kept else 'lost'}",
        kept and least >= bound * (1 - 1e-6), {"level": level, "cut": cut, "bound": bound, "smallest": least},
    )  # fmt: skip


def collapse_zeldovich(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """Zeldovich: every trajectory tends to the constant 0 or 1."""
    end = run.states[-1]
    distance = max(min(float(np.abs(channel - c).max()) for c in (0.0, 1.0)) for channel in end.T)
    share = float(run.energy[-1] / run.energy[0]) if run.energy[0] > 0 else 0.0
    return _statement(
        "collapse", "every channel tends to the constant 0 or 1, so E -> 0", _collapsing(reaction, setting), VANISHES,
        f"E(T)/E(0) = {share:.3g}, distance to 0 or 1 at T {distance:.3g}", share < 1e-2,
        {"share": share, "distance": distance},
    )  # fmt: skip


def collapse_fisher(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """Fisher: from h0 >= 0 every channel that is not zero tends to 1; with negative entries it may blow up."""
    H0, end = run.states[0], run.states[-1]
    hypotheses = (
        *_collapsing(reaction, setting),
        Hypothesis(f"h0 >= 0 (smallest entry {float(H0.min()):.6g})", bool(H0.min() >= 0)),
        Hypothesis("every channel of h0 differs from 0", bool((np.abs(H0).max(axis=0) > 0).all())),
    )
    distance = float(np.abs(end - 1).max())
    return _statement(
        "collapse", "h tends to 1 everywhere, so E -> 0", hypotheses, VANISHES,
        "blew up" if run.blew_up else f"distance to 1 at T {distance:.3g}", distance < 1e-2 and not run.blew_up,
        {"distance": distance},
    )  # fmt: skip


def _collapsing(reaction: Reaction, setting: StatementGraph) -> tuple[Hypothesis, ...]:
    return (
        _stochastic(setting),
        Hypothesis("the graph is connected", setting.is_connected),
        Hypothesis(
            f"alpha > 0 and beta > 0 (alpha = {reaction.alpha:g}, beta = {reaction.beta:g})",
            reaction.alpha > 0 and reaction.beta > 0,
        ),
    )


def _stochastic(setting: StatementGraph) -> Hypothesis:
    return Hypothesis("A is row-stochastic (row normalisation, or a regular graph)", setting.is_stochastic)


def _statement(
    name: str, conclusion: str, hypotheses: tuple[Hypothesis, ...], implies: str | None, evidence: str, observed: bool,
    numbers: Mapping[str, float],
) -> EnergyStatement:  # fmt: skip
    applies = all(h.holds for h in hypotheses)
    return EnergyStatement(
        name,
        conclusion,
        hypotheses,
        implies if applies else None,
        evidence,
        bool(observed) if applies else None,
        numbers,
    )
