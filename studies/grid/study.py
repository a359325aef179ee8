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
from studies.runs.word_sheets import WordSheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


# ---------------------------------------------------------------------- figures
# Pictures of flows on a grid: panels at chosen times, an animation, energies over time.

SHEET = WordSheet("grid")
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
    sharp, rate = values["BS", times[-1]], 2 * chosen["alpha"] * edge["winning_lam"]
    run.verdict(*SHEET.verdict("diffusion", "holds", first=first, smooth=smooth, end=times[-1], rate=rate))
    growth = sharp["laplacian_energy"] / values["BS", times[1]]["laplacian_energy"]
    run.verdict(
        *SHEET.verdict(
            "balance", "holds if β(1 - λ₂) = α", edge=edge, chosen=chosen, growth=growth, begin=times[1], end=times[-1]
        )
    )
    run.verdict(*SHEET.verdict("colours", "holds if β(1 - λ₂) > α", sharp=sharp, end=times[-1]))
    run.verdict(*SHEET.verdict("sharpens", "fails"))


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


settings = SHEET.settings


def run(run: StudyRun) -> None:
    """Still figure, animation, energies over time, the border between decay and growth, verdicts."""
    chosen = run.settings
    graph = rd.generators.grid(chosen["rows"], chosen["columns"])
    op = graph.operator("symmetric", dtype=torch.float64, device=run.device)
    H0 = torch.as_tensor(run.generator("start").random((graph.num_nodes, 1)), device=run.device)

    times = chosen["times"]
    fields = run.part("fields", lambda: field_rows(op, H0, chosen))
    energies = run.part("energies", lambda: energy_rows(run, graph, op, H0))
    rates = run.part("rates", lambda: rate_rows(op, chosen))

    at_times = [named_row(row, chosen) for row in energies if row["t"] in chosen["times"]]
    drawn = [row for row in at_times if row["beta"] in (0.0, chosen["beta"])]
    run.answer(_answer(chosen, drawn, rates), "fields")
    for name in ("diffusion", "BS"):
        run.equation(name)
    run.say("The two flows", _about(chosen, drawn))
    run.figure("fields", still(fields, chosen), SHEET.text("still", chosen=chosen), fields)
    run.animation(
        "flow", lambda path: _animate(path, op, H0, run), SHEET.text("animation", chosen=chosen, end=times[-1])
    )
    run.table("measures", drawn, SHEET.text("measures"))
    run.say("Which coefficients balance", _border_text(chosen, rates))
    run.figure("energies", energy_chart(energies, chosen), SHEET.text("energies", chosen=chosen), energies)
    run.table("rates", rates, SHEET.text("rates"))
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
    return SHEET.text(
        "about", alpha=alpha, beta=beta, edge=1 - alpha / beta, best=(beta - alpha) / (2 * beta), peak=peak,
        factor=np.exp(peak * sharp["t"]), sharp=sharp, begin=begin, smooth=smooth,
    )  # fmt: skip


def _answer(chosen: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]], rates: Sequence[Mapping[str, Any]]) -> str:
    smooth = [float(row["normalised_energy"]) for row in drawn if row["flow"] == "diffusion"]
    return SHEET.text(
        "answer", smooth=smooth, last=smooth[-1], end=chosen["times"][-1], border=border_row(rates)["beta"]
    )


def _border_text(chosen: Mapping[str, Any], rates: Sequence[Mapping[str, Any]]) -> str:
    edge = border_row(rates)
    return SHEET.text("border", edge=edge, chosen=chosen, order=1 / (chosen["alpha"] * edge["winning_lam"]))
