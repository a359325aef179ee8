"""The paper's first figure: diffusion against blurring-sharpening on a grid graph with one feature a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from studies.grid import figures as pictures
from studies.grid.rows import energy_rows, field_rows, flow_states, named_row, rate_rows
from studies.grid.verdicts import border_row, judge
from studies.runs.study_run import StudyRun

MEASURES_CAPTION = (
    "The two flows at the times of the figure. energy: the Dirichlet energy of the paper, the mean over nodes of the "
    "squared differences to all neighbours. laplacian energy: tr(HᵀLH) with the symmetric L; normalised energy: the "
    "same divided by ‖H‖². kernel distance: the part of H outside the kernel of L, relative to H."
)
RATES_CAPTION = (
    "Where each β leads for t → ∞, from the spectrum of this grid: the mode that wins among those outside the kernel, "
    "its rate p(λ), the limits of tr(HᵀLH) and of the normalised energy, and the gain of the highest frequency at the "
    "last time of the figure. β = 0 is diffusion."
)


def settings(small: bool) -> dict[str, Any]:
    """The paper prints the times alone; grid, start and coefficients are our choice."""
    side = 16 if small else 40
    return {
        "rows": side,
        "columns": side,
        "times": [0.0, 5.0, 25.0, 50.0],
        "start": "independent uniform numbers in [0, 1]",
        "operator": "symmetric, no self-loops",
        "method": "exact",
        "alpha": 1.0,
        "beta": 1.5,
        "beta_sweep": [0.0, 0.5, 1.0, 1.1, 1.25, 1.5, 2.0],
        "frames": 11 if small else 51,
    }


def run(run: StudyRun) -> None:
    """Still figure, animation, energies over time, the border between decay and growth, verdicts."""
    chosen = run.settings
    graph = rd.generators.grid(chosen["rows"], chosen["columns"])
    op = graph.operator("symmetric", dtype=torch.float64, device=run.device)
    H0 = torch.as_tensor(run.generator("start").random((graph.num_nodes, 1)), device=run.device)

    fields = run.part("fields", lambda: field_rows(op, H0, chosen))
    energies = run.part("energies", lambda: energy_rows(run, graph, op, H0))
    rates = run.part("rates", lambda: rate_rows(op, chosen))

    at_times = [named_row(row, chosen) for row in energies if row["t"] in chosen["times"]]
    drawn = [row for row in at_times if row["beta"] in (0.0, chosen["beta"])]
    run.answer(_answer(chosen, drawn, rates), "fields")
    for name in ("diffusion", "BS"):
        run.equation(name)
    run.say("The two flows", _about(chosen, drawn))
    run.figure("fields", pictures.still(fields, chosen), pictures.still_caption(chosen), fields)
    run.animation("flow", lambda path: _animate(path, op, H0, run), pictures.animation_caption(chosen))
    run.table("measures", drawn, MEASURES_CAPTION)
    run.say("Which coefficients balance", _border_text(chosen, rates))
    figure, chart = pictures.energy_figure(energies, chosen), pictures.energy_chart(energies, chosen)
    run.figure("energies", figure, pictures.energy_caption(chosen), energies, chart)
    run.table("rates", rates, RATES_CAPTION)
    judge(run, drawn, rates)
    run.results(at_times)


def _animate(path: Path, op: rd.Operator, H0: Tensor, run: StudyRun) -> None:
    """Both flows at evenly spaced times."""
    chosen = run.settings
    times = np.linspace(0.0, chosen["times"][-1], chosen["frames"]).tolist()
    shape = (len(times), chosen["rows"], chosen["columns"])
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    states = {name: flow_states(name, op, H0, times, numbers).reshape(shape).cpu().numpy() for name in pictures.FLOWS}
    pictures.write_animation(path, run.progress(times, "drawing frames"), states)


# ---------------------------------------------------------------------- words
def _about(chosen: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]]) -> str:
    alpha, beta = chosen["alpha"], chosen["beta"]
    end = {row["flow"]: row for row in drawn if row["t"] == chosen["times"][-1]}
    begin = next(row for row in drawn if row["t"] == 0)
    peak = (beta - alpha) ** 2 / (4 * beta)
    smooth, sharp = end["diffusion"], end["BS"]
    return f"""
    Diffusion is dH/dt = -α L H and blurring-sharpening is dH/dt = -α L H + β (A H - A² H), with A the symmetric
    normalised adjacency and L = I - A. A frequency λ of L grows at the rate p(λ) = -αλ under diffusion and
    p(λ) = (β - α)λ - βλ² under BS. The paper does not print its coefficients; here α = {alpha:g} and β = {beta:g}.

    With β > α, BS is a band-pass filter that amplifies: frequencies below λ = 1 - α/β = {1 - alpha / beta:.3f} grow,
    most of all λ = (β - α)/(2β) = {(beta - alpha) / (2 * beta):.3f}, at the rate (β - α)²/(4β) = {peak:.4f}; that is a
    factor {np.exp(peak * sharp["t"]):.3g} at t = {sharp["t"]:g}. Everything above is damped, the highest frequencies
    more than by diffusion. So the texture that BS shows is a band of low frequencies taken from the start and enlarged.
    The equation is linear: nothing saturates, and the pattern is no Turing pattern.

    From t = 0 to {sharp["t"]:g} the normalised energy falls from {begin["normalised_energy"]:.3g} to
    {smooth["normalised_energy"]:.2g} under diffusion and to {sharp["normalised_energy"]:.2g} under BS. The values lie
    in [{smooth["least"]:.3f}, {smooth["largest"]:.3f}] under diffusion and in [{sharp["least"]:.2f},
    {sharp["largest"]:.2f}] under BS, having started in [0, 1]. Nodes at the border of the grid have fewer neighbours,
    and the symmetric normalisation leads diffusion to a multiple of the square root of the degree, not to a constant.
    """


def _answer(chosen: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]], rates: Sequence[Mapping[str, Any]]) -> str:
    smooth = [float(row["normalised_energy"]) for row in drawn if row["flow"] == "diffusion"]
    return (
        f"Diffusion oversmooths: its normalised energy falls from {smooth[0]:.3g} to {smooth[-1]:.3g} by t = "
        f"{chosen['times'][-1]:g}. BS balances at β = {border_row(rates)['beta']:.5f} alone; below it decays, above it "
        "grows without bound."
    )


def _border_text(chosen: Mapping[str, Any], rates: Sequence[Mapping[str, Any]]) -> str:
    edge = border_row(rates)
    return f"""
    Whether BS balances depends on one number. Let λ₂ be the smallest eigenvalue of L above zero, here
    {edge["winning_lam"]:.5f}. If β(1 - λ₂) < α, every frequency but the kernel decays and BS oversmooths as diffusion
    does, only more slowly. If β(1 - λ₂) > α, some frequency grows and the energy rises without bound. The energy stays
    bounded and above zero on the border β = α/(1 - λ₂) = {edge["beta"]:.5f} (for α = {chosen["alpha"]:g}) alone, where
    the mode λ₂ is kept. At finite times the difference is one of speed: the slowest modes of a grid change over times
    of the order 1/(αλ₂) = {1 / (chosen["alpha"] * edge["winning_lam"]):.0f}.
    """
