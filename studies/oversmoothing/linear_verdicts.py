"""Statements about the linear reactions: growth rates and borders from symbols, plateaus of the source term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

import rdgraph as rd
from studies.oversmoothing.answers import CLOSE, Answer, median_text
from studies.oversmoothing.rows import column, select
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, agreed


def growth(name: str, alpha: float, beta: float, graphs: list[MutableRow]) -> np.ndarray:
    """max p(lam_k) over the modes outside the kernel, for every graph (S,).

    The spectrum is lam2, a gap, and a bulk from lam3 to lam_max; p is linear, or concave with its peak below lam3, so
    that the maximum is at one of these three.
    """
    symbol = rd.catalogue[name].symbol().subs({sp.Symbol("alpha"): alpha, sp.Symbol("beta"): beta})
    function = sp.lambdify(sp.Symbol("lam"), symbol, "numpy")
    lam = np.stack([column(graphs, key) for key in ("lam2", "lam3", "lam_max")])
    return np.asarray(np.broadcast_to(np.asarray(function(lam), dtype=float), lam.shape).max(0))


def border(name: str, graphs: list[MutableRow]) -> np.ndarray:
    """The smallest beta/alpha > 0 at which a mode outside the kernel stops decaying, for every graph (S,).

    The symbol is alpha p1(lam) + beta p2(lam), so that a mode with p2 > 0 is neutral at -p1/p2.
    """
    alpha, beta, lam = sp.symbols("alpha beta lam")
    symbol = rd.catalogue[name].symbol()
    parts = (sp.lambdify(lam, sp.diff(symbol, letter), "numpy") for letter in (alpha, beta))
    modes = np.stack([column(graphs, key) for key in ("lam2", "lam3", "lam_max")])
    first, second = (np.broadcast_to(np.asarray(part(modes), dtype=float), modes.shape) for part in parts)
    return np.asarray(np.where(second > 0, -first / np.where(second > 0, second, 1.0), np.inf).min(0))


def bounded(name: str, ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """A linear reaction with scalar coefficients: is the part outside the kernel bounded and away from zero?"""
    rows = select(ends, flow=name, scheme="flow", kind="SC")
    pairs = sorted({(float(r["alpha"]), float(r["beta"])) for r in rows})
    counts = dict.fromkeys(("decays", "grows", "stays"), 0)
    wrong, worst, smoother = 0, 0.0, 0
    for alpha, beta in pairs:
        own = select(rows, alpha=alpha, beta=beta)
        rate, expected = column(own, "rate"), 2 * growth(name, alpha, beta, graphs)
        known = ~np.isnan(rate)
        sign = np.where(np.abs(rate) < 1e-6, 0, np.sign(rate))
        for word, value in (("decays", -1), ("grows", 1), ("stays", 0)):
            counts[word] += int((sign[known] == value).sum())
        wrong += int((sign != np.where(np.abs(expected) < 1e-9, 0, np.sign(expected)))[known].sum())
        worst = max(worst, float(np.abs(rate - expected)[known].max(initial=0.0)))
        less = column(own, "normalised_T") < 0.5 * column(own, "normalised_0")
        smoother += int((less & (sign > 0)).sum())
    neutral = [pair for pair in pairs if np.allclose(growth(name, *pair, graphs), 0, atol=1e-9)]
    stays = list(dict.fromkeys(f"{beta / alpha:g}" for alpha, beta in neutral))
    answer = f"holds if beta/alpha = {' or '.join(stays)}" if stays and counts["stays"] else FAILS
    answer = UNDECIDED if wrong or worst > CLOSE else answer
    ratios = border(name, graphs)
    where = f"the border beta/alpha lies between {ratios.min():.3f} and {ratios.max():.3f}; "
    if smoother:
        where += f"{smoother} members grow while their normalised energy falls below half of its start; "
    return Answer(
        f'{name}: "the Dirichlet energy of GREAD can be bounded in time thanks to the reaction term"',
        answer,
        f"exact flow, {sum(counts.values())} members, alpha and beta scalar: |H - PH| decays in {counts['decays']}, "
        f"grows in {counts['grows']}, stays in {counts['stays']}; {where}the sign of max p(λ) over the graph's "
        f"spectrum predicts {sum(counts.values()) - wrong} of them, and the rate within {worst:.2g}",
        f"For {name} with scalar coefficients the energy either decays or grows without bound"
        + (", except on the border between the two." if stays else "."),
    )


def source_plateau(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """ST: tr(H'LH) -> (beta/alpha)^2 sum_k c_k^2/lam_k."""
    alpha, beta = settings["alpha"], settings["beta"]
    rows = select(ends, flow="ST", scheme="flow", kind="SC", alpha=alpha, beta=beta)
    share = column(rows, "laplacian_T") / ((beta / alpha) ** 2 * column(graphs, "source"))
    close = bool((np.abs(share - 1) < CLOSE).all())
    return Answer(
        'ST: "the Dirichlet energy of GREAD can be bounded in time thanks to the reaction term"',
        HOLDS if close else UNDECIDED,
        f"alpha = {alpha:g}, beta = {beta:g}: tr(H'LH) at T over its predicted limit (beta/alpha)^2 sum c_k^2/λ_k "
        f"lies in [{share.min():.3f}, {share.max():.3f}] on {len(rows)} graphs",
        "ST keeps the raw energy at a positive limit for every alpha > 0 and beta other than zero.",
    )


def source_normalised(ends: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """ST: the kernel component grows like 1 + beta t, so E/|H|^2 falls."""
    rows = select(
        ends, flow="ST", scheme="flow", kind="SC", alpha=settings["alpha"], beta=settings["beta"]
    )  # fmt: skip
    share = column(rows, "normalised_T") / column(rows, "normalised_0")
    return Answer(
        "ST: also relative to its size the state stays rough (E/|H|^2 away from zero)",
        agreed(share >= 0.5),
        f"E/|H|^2 at T over its start: median {median_text(share)}, range [{share.min():.2g}, {share.max():.2g}]; the "
        "kernel component grows like 1 + beta t",
        "Relative to |H|^2 its energy falls all the same, because the kernel component grows.",
    )
