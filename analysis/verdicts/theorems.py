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
from dataclasses import dataclass

import numpy as np
import sympy as sp

from rdgraph.algebra.normal_form import H as STATE
from rdgraph.errors import NotApplicable
from rdgraph.syntax.answer_symbols import lam
from rdgraph.systems.system import System

VANISHES, STAYS = "vanishes", "stays positive"
#: Coefficients of r(h), highest power first, by the name of the reaction.
REACTIONS = {"F": (-1.0, 1.0, 0.0), "AC": (-1.0, 0.0, 1.0, 0.0), "Z": (-1.0, 1.0, 0.0, 0.0)}


@dataclass(frozen=True)
class Hypothesis:
    """One condition of a statement, with its numbers, and whether it holds."""

    text: str
    holds: bool


@dataclass(frozen=True)
class EnergyStatement:
    """A proven statement for given numbers: it applies where all hypotheses hold; `observed` is None where not.

    `implies` is what becomes of E, "vanishes" or "stays positive", or None; `numbers` are those in the texts.
    """

    name: str
    conclusion: str
    hypotheses: tuple[Hypothesis, ...]
    implies: str | None
    evidence: str
    observed: bool | None
    numbers: Mapping[str, float]

    @property
    def applies(self) -> bool:
        return all(h.holds for h in self.hypotheses)

    def __str__(self) -> str:
        if not self.applies:
            return (
                f"{self.name}: no statement, since not {'; not '.join(h.text for h in self.hypotheses if not h.holds)}"
            )
        seen = "seen" if self.observed else "not seen"
        return f"{self.name}: {self.conclusion}; {seen} in the run: {self.evidence}"


@dataclass(frozen=True, eq=False)
class Reaction:
    """H' = -alpha L H + f(H) with a polynomial f; `name` is F, AC or Z where f = beta r, else None."""

    alpha: float
    f: np.poly1d
    name: str | None
    beta: float

    @classmethod
    def read(cls, system: System, coefficients: Mapping[str, float]) -> Reaction:
        """The reaction of a system with numbers for its coefficients.

        >>> import rdgraph as rd
        >>> r = Reaction.read(rd.catalogue["AC"], {"alpha": 0.5, "beta": 3.0})
        >>> r.name, r.alpha, r.beta, r.steepest(-np.inf)
        ('AC', 0.5, 3.0, 3.0)
        """
        numeric = system.replace(**{name: coefficients[name] for name in system.coefficients})
        structure = numeric.structure
        p = sp.Poly(sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.S.Zero), lam)
        h = sp.Symbol("h")
        f = structure.scalar_field(h, sp.S.Zero)
        if structure.coupled != 0 or structure.has_source or p.degree() > 1 or not f.is_polynomial(h) or f.has(STATE):
            raise NotApplicable(
                f"expected -alpha*L@H plus a polynomial of single entries of H, got {system.text}; the proven "
                "statements cover that form, and linear systems are decided by their spectrum"
            )
        poly = np.poly1d([float(c) for c in sp.Poly(f, h).all_coeffs()])
        named = [name for name, r in REACTIONS.items() if _is_multiple(poly.coeffs, r)]
        return cls(-float(p.coeff_monomial(lam)), poly, named[0] if named else None, -float(poly.coeffs[0]))

    def steepest(self, low: float) -> float:
        """sup f' on [low, inf)."""
        slope = self.f.deriv()
        if slope.order and slope.coeffs[0] > 0:
            return float("inf")
        if np.isneginf(low) and slope.order % 2:
            return float("inf")
        turns = [x.real for x in slope.deriv().roots if abs(x.imag) < 1e-12 and x.real > low] if slope.order else []
        return float(max(slope(x) for x in [*turns, 0.0 if np.isneginf(low) else low]))


@dataclass(frozen=True, eq=False)
class EnergyTrajectory:
    """What the statements look at: times (K,), states (K, n, d), Dirichlet energies (K,), and whether it blew up."""

    times: np.ndarray
    states: np.ndarray
    energy: np.ndarray
    blew_up: bool


@dataclass(frozen=True, eq=False)
class StatementGraph:
    """The graph as the statements see it: lam2, connected or not, A row-stochastic or not; edges (2, E) and weights."""

    gap: float
    is_connected: bool
    is_stochastic: bool
    edges: np.ndarray
    weight: np.ndarray
    num_nodes: int


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


def _is_multiple(coefficients: np.ndarray, wanted: tuple[float, ...]) -> bool:
    """Whether f = beta r with beta != 0; both have the leading coefficient first, and that of r is -1."""
    fits = len(coefficients) == len(wanted) and coefficients[0] != 0
    return bool(fits and np.allclose(coefficients, -coefficients[0] * np.array(wanted), rtol=1e-12, atol=0))


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
