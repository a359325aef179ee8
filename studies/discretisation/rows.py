"""What a solver does to every mode lam in [0, 2], beside the exact response of the same equation.

Linear reactions have a response of their own. F, AC and Z have one near each state at rest h*, where they read
-alpha*L@H + beta*r'(h*)*H.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
import torch

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.methods.tableaux import tableau
from rdgraph.systems.system import System
from studies.runs.published_settings import PublishedSetting
from studies.runs.tables import MutableRow

LINEAR = ("BS", "ST", "FB", "FB*")
CLASSICAL = ("F", "AC", "Z")
Gain = Callable[[np.ndarray, float, float], np.ndarray]
#: Gains this close to one are neither damped nor amplified, and gains this close to zero have no sign.
NEUTRAL = 1e-9


@dataclass(frozen=True)
class LinearForm:
    """A linear equation that stands for a reaction: itself, or its linearisation at a state at rest."""

    reaction: str
    name: str
    system: System


@cache
def forms(reaction: str) -> tuple[LinearForm, ...]:
    """The linear equations behind a reaction of the catalogue.

    >>> [str(f.system) for f in forms("F")]
    ['-alpha*L@H + 1*beta*H', '-alpha*L@H + -1*beta*H']
    >>> forms("BS")[0].name
    'BS'
    """
    system = rd.catalogue[reaction]
    if system.structure.linear:
        return (LinearForm(reaction, reaction, system),)
    h = sp.Symbol("h", real=True)
    found: dict[sp.Expr, LinearForm] = {}
    field = system.structure.scalar_field(h, h)
    for rest in sorted(sp.solveset(field, h, sp.S.Reals), key=abs):
        slope = sp.diff(field, h).subs(h, rest)
        beta = next(s for s in slope.free_symbols) if slope.free_symbols else None
        factor = sp.simplify(slope / beta) if beta is not None else sp.S.Zero
        if not factor.is_number:
            raise NotApplicable(f"expected a reaction whose slope at rest is a multiple of beta, got {slope}")
        text = f"-alpha*L@H + {factor}*beta*H" if factor else "-alpha*L@H"
        found.setdefault(factor, LinearForm(reaction, f"{reaction} near {abs(rest)}", rd.parse(text)))
    return tuple(found.values())


def steps(setting: PublishedSetting) -> int:
    """How many steps the solver takes, the last one shortened.

    >>> steps(PublishedSetting("BS", "texas", "OA", "SC", "VC", 1.0, 1.46, "euler", ""))
    2
    """
    return math.ceil(sp.Rational(repr(setting.time)) / sp.Rational(repr(setting.step)))


def gains(form: LinearForm, setting: PublishedSetting) -> tuple[Gain, Gain]:
    """Exact and computed gain as functions of lam, alpha, beta."""
    names = sp.symbols("lam alpha beta")
    exact = rd.response(form.system, T=setting.time)
    computed = rd.response(form.system, T=setting.time, method=setting.solver, step=setting.step)
    return _function(names, exact), _function(names, computed)


def _function(names: Sequence[sp.Symbol], expression: sp.Expr) -> Gain:
    raw = sp.lambdify(names, expression, "numpy")

    def gain(lam: np.ndarray, alpha: float, beta: float) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):  # the removable point of a source term, chosen around
            return np.array(np.broadcast_to(np.asarray(raw(lam, alpha, beta), dtype=float), lam.shape))

    return gain


def compare(exact: np.ndarray, computed: np.ndarray) -> dict[str, float]:
    """Error relative to the largest exact gain, and the share of modes that change their class or their sign.

    >>> compare(np.array([1.0, 0.5]), np.array([1.0, -1.5]))
    {'error': 2.0, 'amplified': 0.5, 'damped': 0.0, 'flipped': 0.5}
    """
    grows, falls = np.abs(exact) > 1 + NEUTRAL, np.abs(exact) < 1 - NEUTRAL
    signs = (np.abs(exact) > NEUTRAL) & (np.abs(computed) > NEUTRAL)
    return {
        "error": float(np.abs(computed - exact).max() / np.abs(exact).max()),
        "amplified": float((falls & (np.abs(computed) > 1 + NEUTRAL)).mean()),
        "damped": float((grows & (np.abs(computed) < 1 - NEUTRAL)).mean()),
        "flipped": float((signs & (exact * computed < 0)).mean()),
    }


def coefficient_box(setting: PublishedSetting, chosen: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The coefficients a setting can reach: a scalar beta passes a sigmoid, so it is positive, a vector does not."""
    betas = [b for b in chosen["betas"] if b > 0 or setting.beta == "VC"]
    return [(alpha, beta) for alpha in chosen["alphas"] for beta in betas]


def mode_rows(setting: PublishedSetting, chosen: Mapping[str, Any]) -> list[MutableRow]:
    """One row per linear form: errors at typical and at the worst coefficients, and shares of modes changed."""
    lam = np.linspace(0.0, 2.0, chosen["points"])
    rows: list[MutableRow] = []
    for form in forms(setting.reaction):
        exact, computed = gains(form, setting)

        def at(alpha: float, beta: float, e: Gain = exact, c: Gain = computed) -> dict[str, float]:
            return compare(e(lam, alpha, beta), c(lam, alpha, beta))

        box = {pair: at(*pair) for pair in coefficient_box(setting, chosen)}
        worst = max(box, key=lambda pair: box[pair]["error"])
        typical = at(chosen["typical_alpha"], chosen["typical_beta"])
        rows.append({
            "reaction": setting.reaction, "dataset": setting.dataset, "form": form.name,
            "adjacency": setting.adjacency, "beta": setting.beta, "T": setting.time, "step": setting.step,
            "solver": setting.solver, "steps": steps(setting), "error_typical": _short(typical["error"]),
            "error_worst": _short(box[worst]["error"]), "alpha_worst": worst[0], "beta_worst": worst[1],
            "flipped_typical": _short(typical["flipped"]), "amplified_typical": _short(typical["amplified"]),
            **{name: _short(max(found[name] for found in box.values())) for name in ("amplified", "damped", "flipped")},
        })  # fmt: skip
    return rows


def product_row(setting: PublishedSetting, chosen: Mapping[str, Any]) -> MutableRow:
    """Sparse products of the published solver and of `exact`, at typical and over all coefficients a setting reaches.

    The degree of `exact` depends on the equation, the time and the kind of operator, not on the graph: a ring will do.
    A symmetric operator gets a Chebyshev series, a row-stochastic one (soft adjacency) a power series.
    """
    system = rd.parse(rd.catalogue[setting.reaction].text, {"alpha": "channel", "beta": "channel"})
    normalisation = "symmetric" if setting.adjacency == "OA" else "row"
    operator = rd.generators.ring(4).operator(normalisation, dtype=torch.float64)
    counts = {}
    typical = [(chosen["typical_alpha"], chosen["typical_beta"])]
    for name, pairs in (("exact_typical", typical), ("exact_worst", coefficient_box(setting, chosen))):
        alpha, beta = torch.tensor(pairs, dtype=torch.float64).T
        field = rd.lower(system, operator, {"alpha": alpha, "beta": beta})
        start = torch.ones(4, len(pairs), dtype=torch.float64)
        solved = rd.solve(field, start, [0.0, setting.time], "exact", rtol=chosen["tolerance"])
        counts[name] = solved.stats.products
    stages = len(tableau(setting.solver).weights)
    return {
        "reaction": setting.reaction, "dataset": setting.dataset, "adjacency": setting.adjacency,
        "solver": setting.solver, "steps": steps(setting),
        "solver_products": steps(setting) * stages * field.plan.products, **counts,
    }  # fmt: skip


def _short(value: float) -> float:
    """Six digits, so that the last bits of a library do not show."""
    return float(f"{value:.6g}")
