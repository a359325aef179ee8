"""What a proven statement is: hypotheses with their numbers, the reaction, the graph and the run they speak of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import lam
from rdgraph.language.normal_form import H as STATE
from rdgraph.systems.parser import parse
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
    """A proven statement for given numbers: it applies where all hypotheses hold.

    Attributes:
        name: Contraction, sign pattern or collapse.
        conclusion: The conclusion in words.
        hypotheses: The hypotheses, each with its truth value.
        implies: The implied fate of E, "vanishes" or "stays positive", or None.
        evidence: The measured evidence.
        observed: Whether the run agrees; None if the statement does not apply.
        numbers: The numbers in the texts.

    Example:
        >>> import analysis
        >>> from analysis.verdicts.statements import Hypothesis
        >>> weak = Hypothesis("sup f' < alpha lam2", holds=False)
        >>> print(analysis.verdicts.EnergyStatement("contraction", "E -> 0", (weak,), None, "", None, {}))
        contraction: no statement, since not sup f' < alpha lam2
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
    def read(cls, system: System | str, values: Mapping[str, float]) -> Reaction:
        """The reaction of a system, a name of the catalogue or a line of text, with numbers for its coefficients.

        >>> r = Reaction.read("AC", {"alpha": 0.5, "beta": 3.0})
        >>> r.name, r.alpha, r.beta, r.steepest(-np.inf)
        ('AC', 0.5, 3.0, 3.0)
        """
        system = parse(system)
        numeric = system.replace(**{name: values[name] for name in system.coefficients})
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


def _is_multiple(coefficients: np.ndarray, wanted: tuple[float, ...]) -> bool:
    """Whether f = beta r with beta != 0; both have the leading coefficient first, and that of r is -1."""
    fits = len(coefficients) == len(wanted) and coefficients[0] != 0
    return bool(fits and np.allclose(coefficients, -coefficients[0] * np.array(wanted), rtol=1e-12, atol=0))
