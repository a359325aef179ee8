"""The paper's first figure: diffusion against blurring-sharpening on a grid graph with one feature a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from analysis.measures.measure_records import make_measures
from analysis.spectra.eigenvalues import spectrum
from studies.runs.chart import Chart, Line, Panel
from studies.runs.chart_figures import write_frames
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


# ---------------------------------------------------------------------- figures
# Pictures of flows on a grid: panels at chosen times, an animation, energies over time.

#: Rows of the figure from top to bottom, as in the paper; names of the catalogue.
FLOWS = ("BS", "diffusion")
COLOURS = "viridis"


def still(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Figure:
    """Figure of two flows at the chosen times, each panel with its own colour scale."""
    from matplotlib.figure import Figure

    times, shape = chosen["times"], (chosen["rows"], chosen["columns"])
    figure = Figure(figsize=(2.6 * len(times) + 0.6, 5.9), layout="constrained")
    panels = figure.subplots(len(FLOWS), len(times), squeeze=False)
    for across, name in zip(panels, FLOWS, strict=True):
        for panel, t in zip(across, times, strict=True):
            values = [row["value"] for row in rows if row["flow"] == name and row["t"] == t]
            _paint(panel, np.reshape(values, shape), f"t = {t:g}" if name == FLOWS[0] else "")
        across[0].set_ylabel(label(name, chosen), fontsize=11)
    return figure


def label(name: str, chosen: Mapping[str, Any]) -> str:
    """Label of a flow with its coefficients."""
    beta = f", β = {chosen['beta']:g}" if "beta" in rd.catalogue[name].coefficients else ""
    return f"{name}\nα = {chosen['alpha']:g}{beta}"


def _paint(panel: Axes, values: np.ndarray, title: str) -> AxesImage:
    image = panel.imshow(values, cmap=COLOURS, interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    panel.set_title(title, fontsize=11)
    panel.set_xlabel(_range(values), fontsize=9)
    return image


def _range(values: np.ndarray) -> str:
    return f"{values.min():.3g} to {values.max():.3g}"


def still_caption(chosen: Mapping[str, Any]) -> str:
    """What the panels show."""
    return (
        f"Blurring-sharpening (top, α = {chosen['alpha']:g}, β = {chosen['beta']:g}) and diffusion (bottom, α = "
        f"{chosen['alpha']:g}) on a {chosen['rows']} x {chosen['columns']} grid from the same start, exact flows. Each "
        "panel has its own colour scale, from dark (least) to bright (largest); its range of values is printed below."
    )


def animation_caption(chosen: Mapping[str, Any]) -> str:
    """What the animation shows."""
    return (
        f"The same flows from t = 0 to {chosen['times'][-1]:g} in {chosen['frames']} frames; the colours of every "
        "frame are scaled to the range printed below it."
    )


def write_animation(path: Path, times: Iterable[float], states: Mapping[str, np.ndarray]) -> None:
    """A gif of all flows side by side; states per flow (frames, rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(states), 3.6), dpi=90)
    panels = figure.subplots(1, len(states), squeeze=False)[0]
    figure.subplots_adjust(left=0.03, right=0.97, bottom=0.1, top=0.9, wspace=0.08)
    images = [_paint(panel, values[0], name) for panel, (name, values) in zip(panels, states.items(), strict=True)]

    def show(k: int, t: float) -> None:
        for panel, image, (name, values) in zip(panels, images, states.items(), strict=True):
            image.set_data(values[k])
            image.set_clim(values[k].min(), values[k].max())
            panel.set_title(f"{name}, t = {t:.0f}", fontsize=11)
            panel.set_xlabel(_range(values[k]), fontsize=9)

    write_frames(path, figure, starmap(show, enumerate(times)))


def energy_chart(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Chart:
    """Energy and normalised energy over time, one line per beta."""
    panels = []
    for column, title in (("laplacian_energy", "energy"), ("normalised_energy", "normalised energy")):
        lines = []
        for beta in chosen["beta_sweep"]:
            group = [row for row in rows if row["beta"] == beta]
            name = "β = 0 (diffusion)" if beta == 0 else f"β = {beta:g}"
            lines.append(Line.of(name, group, "t", column))
        panels.append(Panel(title, lines, y_label="tr(HᵀLH)" if column == "laplacian_energy" else "tr(HᵀLH)/‖H‖²"))
    return Chart(panels, "t", y_scale="log", columns=2)


def energy_caption(chosen: Mapping[str, Any]) -> str:
    """What the energies over time show."""
    return (
        f"Energy and normalised energy of BS over time for α = {chosen['alpha']:g} and several β, symmetric L, exact "
        "flow, logarithmic axes. Lines with β ≤ α decay; those with β > α finally grow without bound, and their "
        "normalised energy tends to the frequency that grows fastest."
    )


# ---------------------------------------------------------------------- verdicts
# Statements of the paper's first figure, decided by the spectrum of the grid and the measured energies.


def border_row(rates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The row of the beta at which the energy neither decays nor grows."""
    return next(row for row in rates if row["energy_limit"] == "bounded, > 0")


def judge(run: StudyRun, drawn: Sequence[Mapping[str, Any]], rates: Sequence[Mapping[str, Any]]) -> None:
    """Add the verdicts on diffusion and on blurring-sharpening."""
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
        "With colours scaled to the range of every panel, BS keeps showing a pattern.",
        "holds if β(1 - λ₂) > α",
        f"The fastest mode dominates: the normalised energy is {sharp['normalised_energy']:.3g} at t = "
        f"{times[-1]:g} and tends to the winning λ of the table of rates. The price is growth without bound.",
    )
    run.verdict(
        "The reaction of BS sharpens, that is, it raises the highest frequencies.",
        "fails",
        "For β > 0 the reaction βλ(1 - λ) raises λ < 1 and damps λ > 1: at λ = 2 the rate is -2(α + β), below the "
        "-2α of diffusion.",
    )


# ---------------------------------------------------------------------- rows
# The flows on a grid as rows: fields, measures over time, and where each beta leads.

#: Measures of the states, by the names of the registry.
MEASURED = ("dirichlet_energy", "laplacian_energy", "rayleigh", "kernel_distance")


def flow_states(
    name: str, op: rd.graphs.Operator, H0: Tensor, times: Sequence[float], coefficients: Mapping[str, Any]
) -> Tensor:
    """States (times, *batch, n, 1) of the exact flow."""
    known = rd.catalogue[name].coefficients
    used = {key: value for key, value in coefficients.items() if key in known}
    field = rd.lower(name, op, used, batch=tuple(H0.shape[:-2]))
    return rd.solve(field, H0, list(times), method="exact").states


def field_rows(op: rd.graphs.Operator, H0: Tensor, chosen: Mapping[str, Any]) -> list[Row]:
    """The values of both flows at every node and chosen time."""
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    rows: list[Row] = []
    for name in FLOWS:
        states = flow_states(name, op, H0, chosen["times"], numbers).squeeze(-1).cpu().tolist()
        rows += [
            {"flow": name, "t": t, "row": i // chosen["columns"], "column": i % chosen["columns"], "value": value}
            for t, state in zip(chosen["times"], states, strict=True)
            for i, value in enumerate(state)
        ]
    return rows


def energy_rows(run: StudyRun, graph: rd.Graph, op: rd.graphs.Operator, H0: Tensor) -> list[Row]:
    """Every measure over time for all beta at once; beta = 0 is diffusion."""
    chosen = run.settings
    betas = torch.tensor(chosen["beta_sweep"], dtype=H0.dtype, device=H0.device)
    times = [float(t) for t in range(int(chosen["times"][-1]) + 1)]
    plain = graph.operator("none", dtype=H0.dtype, device=run.device)
    start = H0.expand(len(betas), *H0.shape)
    states = flow_states("BS", op, start, times, {"alpha": chosen["alpha"], "beta": betas})
    measures = make_measures(plain=plain, op=op, names=MEASURED)
    rows: list[Row] = []
    for t, state in zip(times, run.progress(states, "measuring", len(times)), strict=True):
        result = {
            "energy": measures["dirichlet_energy"](state),
            "laplacian_energy": measures["laplacian_energy"](state),
            "normalised_energy": measures["rayleigh"](state),  # tr(H'LH)/|H|^2, since L is symmetric here
            "kernel_distance": measures["kernel_distance"](state),
            "norm": torch.linalg.vector_norm(state, dim=(-2, -1)),
            "least": state.amin((-2, -1)),
            "largest": state.amax((-2, -1)),
        }
        rows += [
            {"beta": beta, "t": t, **{name: float(value[k]) for name, value in result.items()}}
            for k, beta in enumerate(chosen["beta_sweep"])
        ]
    return rows


def rate_rows(op: rd.graphs.Operator, chosen: Mapping[str, Any]) -> list[Row]:
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


def named_row(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """A row of measures with the name of its flow."""
    flow = "diffusion" if row["beta"] == 0 else "BS"
    return {"flow": flow, "alpha": chosen["alpha"], **row}


# ---------------------------------------------------------------------- study
MEASURES_CAPTION = (
    "The two flows at the times of the figure. energy: the Dirichlet energy of the paper, the mean over nodes of the "
    "squared differences to all neighbours. laplacian energy: tr(HᵀLH) with the symmetric L; normalised energy: the "
    "same divided by ‖H‖². kernel distance: the part of H outside the kernel of L, relative to H."
)
RATES_CAPTION = (
    "Limits for t → ∞ for each β, from the spectrum of this grid: the dominant mode outside the kernel and its "
    "rate p(λ), the limits of tr(HᵀLH) and of the normalised energy, and the gain of the highest frequency at the "
    "last time of the figure. β = 0 is diffusion."
)


def settings(small: bool) -> dict[str, Any]:
    """Settings of a mode; the paper prints only the times, the rest is our choice."""
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
    run.figure("fields", still(fields, chosen), still_caption(chosen), fields)
    run.animation("flow", lambda path: _animate(path, op, H0, run), animation_caption(chosen))
    run.table("measures", drawn, MEASURES_CAPTION)
    run.say("Which coefficients balance", _border_text(chosen, rates))
    run.figure("energies", energy_chart(energies, chosen), energy_caption(chosen), energies)
    run.table("rates", rates, RATES_CAPTION)
    judge(run, drawn, rates)
    run.results(at_times)


def _animate(path: Path, op: rd.graphs.Operator, H0: Tensor, run: StudyRun) -> None:
    """Both flows at evenly spaced times."""
    chosen = run.settings
    times = np.linspace(0.0, chosen["times"][-1], chosen["frames"]).tolist()
    shape = (len(times), chosen["rows"], chosen["columns"])
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    states = {name: flow_states(name, op, H0, times, numbers).reshape(shape).cpu().numpy() for name in FLOWS}
    write_animation(path, run.progress(times, "drawing frames"), states)


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
        f"{chosen['times'][-1]:g}. BS balances only at β = {border_row(rates)['beta']:.5f}; below, it decays, "
        "above, it grows without bound."
    )


def _border_text(chosen: Mapping[str, Any], rates: Sequence[Mapping[str, Any]]) -> str:
    edge = border_row(rates)
    return f"""
    Whether BS balances depends on one number. Let λ₂ be the smallest eigenvalue of L above zero, here
    {edge["winning_lam"]:.5f}. If β(1 - λ₂) < α, every mode outside the kernel decays and BS oversmooths as diffusion
    does, only more slowly. If β(1 - λ₂) > α, some frequency grows and the energy rises without bound. The energy stays
    bounded and above zero only on the border β = α/(1 - λ₂) = {edge["beta"]:.5f} (for α = {chosen["alpha"]:g}), where
    the mode λ₂ persists. At finite times the difference is one of speed: the slowest modes of a grid change over times
    of the order 1/(αλ₂) = {1 / (chosen["alpha"] * edge["winning_lam"]):.0f}.
    """
