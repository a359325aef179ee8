"""What the paper's first figure says, decided by the spectrum of the grid and the measured energies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.runs.study_run import StudyRun


def border_row(rates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next(row for row in rates if row["energy_limit"] == "bounded, > 0")


def judge(run: StudyRun, drawn: Sequence[Mapping[str, Any]], rates: Sequence[Mapping[str, Any]]) -> None:
    chosen, edge = run.settings, border_row(rates)
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
