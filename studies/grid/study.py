"""The paper's first figure: diffusion against blurring-sharpening on a grid graph with one feature a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from analysis.measures import state_measures as measures
from analysis.spectra.eigenvalues import spectrum
from studies.grid import pictures as pictures
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

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

    fields = run.part("fields", lambda: _fields(op, H0, chosen))
    energies = run.part("energies", lambda: _energies(run, graph, op, H0))
    rates = run.part("rates", lambda: _rates(op, chosen))

    at_times = [_named(row, chosen) for row in energies if row["t"] in chosen["times"]]
    drawn = [row for row in at_times if row["beta"] in (0.0, chosen["beta"])]
    run.say("The two flows", _about(chosen, drawn))
    run.figure("fields", pictures.still(fields, chosen), pictures.still_caption(chosen), fields)
    run.animation("flow", lambda path: _animate(path, op, H0, run), pictures.animation_caption(chosen))
    run.table("measures", drawn, MEASURES_CAPTION)
    run.say("Which coefficients balance", _border_text(chosen, rates))
    run.figure("energies", pictures.energy_figure(energies, chosen), pictures.energy_caption(chosen), energies)
    run.table("rates", rates, RATES_CAPTION)
    _judge(run, drawn, rates)
    run.results(at_times)


# ---------------------------------------------------------------------- computing
def _flow(name: str, op: rd.Operator, H0: Tensor, times: Sequence[float], coefficients: Mapping[str, Any]) -> Tensor:
    """States (times, *batch, n, 1) of the exact flow."""
    known = rd.catalogue[name].coefficients
    used = {key: value for key, value in coefficients.items() if key in known}
    field = rd.lower(name, op, used, batch=tuple(H0.shape[:-2]))
    return rd.solve(field, H0, list(times), method="exact").states


def _fields(op: rd.Operator, H0: Tensor, chosen: Mapping[str, Any]) -> list[Row]:
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    rows: list[Row] = []
    for name in pictures.FLOWS:
        states = _flow(name, op, H0, chosen["times"], numbers).squeeze(-1).cpu().tolist()
        rows += [
            {"flow": name, "t": t, "row": i // chosen["columns"], "column": i % chosen["columns"], "value": value}
            for t, state in zip(chosen["times"], states, strict=True)
            for i, value in enumerate(state)
        ]
    return rows


def _energies(run: StudyRun, graph: rd.Graph, op: rd.Operator, H0: Tensor) -> list[Row]:
    """Every measure over time for all beta at once; beta = 0 is diffusion."""
    chosen = run.settings
    betas = torch.tensor(chosen["beta_sweep"], dtype=H0.dtype, device=H0.device)
    times = [float(t) for t in range(int(chosen["times"][-1]) + 1)]
    plain = graph.operator("none", dtype=H0.dtype, device=run.device)
    start = H0.expand(len(betas), *H0.shape)
    states = _flow("BS", op, start, times, {"alpha": chosen["alpha"], "beta": betas})
    rows: list[Row] = []
    for t, state in zip(times, run.progress(states, "measuring", len(times)), strict=True):
        found = {
            "energy": measures.dirichlet_energy(state, plain),
            "laplacian_energy": measures.laplacian_energy(state, op),
            "normalised_energy": measures.normalised_energy(state, op),
            "kernel_distance": measures.kernel_distance(state, op),
            "norm": torch.linalg.vector_norm(state, dim=(-2, -1)),
            "least": state.amin((-2, -1)),
            "largest": state.amax((-2, -1)),
        }
        rows += [
            {"beta": beta, "t": t, **{name: float(value[k]) for name, value in found.items()}}
            for k, beta in enumerate(chosen["beta_sweep"])
        ]
    return rows


def _rates(op: rd.Operator, chosen: Mapping[str, Any]) -> list[Row]:
    """Per beta the frequency outside the kernel that grows fastest, or decays slowest; one row is the border."""
    lam = spectrum(op).values[1:]
    alpha = chosen["alpha"]
    border = alpha / (1 - float(lam[0]))
    rows: list[Row] = []
    for beta in sorted([*chosen["beta_sweep"], border]):
        p = (beta - alpha) * lam - beta * lam**2
        at = int(np.argmax(p))
        limits = ("∞", f"{lam[at]:.4f}") if beta > border else ("0", "0") if beta < border else ("bounded, > 0", "> 0")
        rows.append(
            {
                "beta": beta,
                "winning_lam": float(lam[at]),
                "rate": 0.0 if beta == border else float(p[at]),
                "energy_limit": limits[0],
                "normalised_energy_limit": limits[1],
                "gain_at_lam_2": float(np.exp(-2 * (alpha + beta) * chosen["times"][-1])),
            }
        )
    return rows


def _named(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    flow = "diffusion" if row["beta"] == 0 else "BS"
    return {"flow": flow, "alpha": chosen["alpha"], **row}


def _animate(path: Path, op: rd.Operator, H0: Tensor, run: StudyRun) -> None:
    """Both flows at evenly spaced times."""
    chosen = run.settings
    times = np.linspace(0.0, chosen["times"][-1], chosen["frames"]).tolist()
    shape = (len(times), chosen["rows"], chosen["columns"])
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    states = {name: _flow(name, op, H0, times, numbers).reshape(shape).cpu().numpy() for name in pictures.FLOWS}
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


def _border(rates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next(row for row in rates if row["energy_limit"] == "bounded, > 0")


def _border_text(chosen: Mapping[str, Any], rates: Sequence[Mapping[str, Any]]) -> str:
    edge = _border(rates)
    return f"""
    Whether BS balances depends on one number. Let λ₂ be the smallest eigenvalue of L above zero, here
    {edge["winning_lam"]:.5f}. If β(1 - λ₂) < α, every frequency but the kernel decays and BS oversmooths as diffusion
    does, only more slowly. If β(1 - λ₂) > α, some frequency grows and the energy rises without bound. The energy stays
    bounded and above zero on the border β = α/(1 - λ₂) = {edge["beta"]:.5f} (for α = {chosen["alpha"]:g}) alone, where
    the mode λ₂ is kept. At finite times the difference is one of speed: the slowest modes of a grid change over times
    of the order 1/(αλ₂) = {1 / (chosen["alpha"] * edge["winning_lam"]):.0f}.
    """


def _judge(run: StudyRun, drawn: Sequence[Mapping[str, Any]], rates: Sequence[Mapping[str, Any]]) -> None:
    chosen, edge = run.settings, _border(rates)
    times = chosen["times"]
    values = {(row["flow"], row["t"]): row for row in drawn}
    first, smooth = values["diffusion", 0.0], values["diffusion", times[-1]]
    sharp = values["BS", times[-1]]
    run.verdict(
        "The diffusion equation oversmooths the grid.",
        "holds",
        f"Normalised energy {first['normalised_energy']:.3g} at t = 0, {smooth['normalised_energy']:.3g} at "
        f"t = {times[-1]:g}, and 0 in the limit, at the rate 2αλ₂ = {2 * chosen['alpha'] * edge['winning_lam']:.2g}.",
    )
    growth = sharp["laplacian_energy"] / values["BS", times[1]]["laplacian_energy"]
    run.verdict(
        "The blurring-sharpening equation seeks a balance between smoothing and sharpening: its energy stays bounded "
        "and above zero.",
        "holds if β(1 - λ₂) = α",
        f"Here that is β = {edge['beta']:.5f}. Below, the energy tends to 0; above, to infinity: at β = "
        f"{chosen['beta']:g} tr(HᵀLH) grows {growth:.3g}-fold between t = {times[1]:g} and t = {times[-1]:g}.",
    )
    run.verdict(
        "With the colours of every panel scaled to its own range, BS keeps showing a pattern.",
        "holds if β(1 - λ₂) > α",
        f"The fastest mode wins: the normalised energy is {sharp['normalised_energy']:.3g} at t = {times[-1]:g} and "
        "tends to the winning λ of the table of rates. The price is growth without bound.",
    )
    run.verdict(
        "The reaction of BS sharpens, that is, it raises the highest frequencies.",
        "fails",
        "For β > 0 the reaction βλ(1 - λ) raises λ < 1 and damps λ > 1: at λ = 2 the rate is -2(α + β), below the "
        "-2α of diffusion.",
    )
