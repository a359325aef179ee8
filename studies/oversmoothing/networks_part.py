"""Networks by name in the study of oversmoothing: their energies with random weights, before training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from analysis.measures.registry import find_measure, make_measures
from gread.models.features import Features
from gread.models.place import Place
from gread.settings.model_records import find_model
from studies.oversmoothing.answers import GONE, Answer, median_text
from studies.oversmoothing.figures import ENERGY, Curve, curves_chart, curves_figure
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.network_states import first_loss, fitting_config, layer_states
from studies.oversmoothing.rows import BAND, column, select
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import decide

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Our columns, and what a figure calls them.
MEASURES = {"energy": "Dirichlet energy", "normalised": "normalised energy"}


def networks_part(run: StudyRun, ensemble: GraphEnsemble) -> list[Answer]:
    """Draw random weights for every network by name, measure its layers on all graphs, and say what becomes of E."""
    names = list(dict.fromkeys(run.settings["models"]))
    rows: list[MutableRow] = []
    for _, found in each_cell(run, names, partial(_drawn, ensemble=ensemble), "networks with random weights"):
        rows += found
    if not names:
        return []
    curves = [c for k, name in enumerate(names) for c in _curves(k, name, select(rows, network=name))]
    title = "Networks with random weights, layer by layer"
    label = find_measure("dirichlet_energy").formula
    figure = curves_figure(curves, ylabel=label, title=title, columns=2, xlabel="layer")
    caption = (
        f"{title}: {run.settings['hidden']} hidden channels, {run.settings['layers']} layers where their number is a "
        "setting, weights as they are drawn before training, no dropout. Layer 0 is the state before the first layer. "
        "Normalised: (N/2) E/|H|^2. Lines: medians over the graphs, bands: 10 to 90 %."
    )
    used: list[MutableRow] = [
        {"network": c.name, "measure": c.group, "layer": int(t), "median": float(m), "low": float(a), "high": float(b)}
        for c in curves
        for t, m, a, b in zip(c.times, c.mean, c.low, c.high, strict=True)
    ]
    run.figure("networks", figure, caption, used, curves_chart(curves, y_label=ENERGY, x_label="layer"))
    return [_answer(name, select(rows, network=name)) for name in names]


def _drawn(run: StudyRun, name: str, *, ensemble: GraphEnsemble) -> list[MutableRow]:
    """The layers of one network, on all graphs."""
    return run.part(f"network-{name}", partial(network_rows, name, ensemble, run.settings, run.seed))


def network_rows(name: str, ensemble: GraphEnsemble, settings: Mapping[str, Any], seed: int) -> list[MutableRow]:
    """Measures of every layer on every graph; nan from the layer on at which a state has left single precision."""
    graphs = len(ensemble)
    features = ensemble.features
    place = Place(
        tuple(member.graph for member in ensemble.members), ensemble.device, torch.float64,
        torch.ones(graphs, features.shape[1], dtype=torch.float64, device=ensemble.device),
    )  # fmt: skip
    depth = int(settings["layers"])
    values = {"layers": depth, "hidden": settings["hidden"], "method": "euler", "step": 1.0, "time": float(depth)}
    config, classes = fitting_config(name, values).model, int(ensemble.labels.max()) + 1
    seeds = [(seed << 32) | k for k in range(graphs)]
    model = find_model(name).network(config, place, features=features.shape[-1], classes=classes, seeds=seeds)
    states = layer_states(
        model.requires_grad_(False), Features(features, (features.shape[1], features.shape[2])), depth
    )
    alive = ~(np.arange(len(states))[:, None] > first_loss(states))
    kept = torch.where(torch.as_tensor(alive, device=states.device)[..., None, None], states, 0.0)
    energy = make_measures(plain=ensemble.operator("none"), names=("dirichlet_energy",))["dirichlet_energy"](kept)
    found = {"energy": energy, "normalised": states.shape[-2] / 2 * energy / kept.square().sum((-2, -1))}
    shown = {key: np.where(alive, value.cpu().numpy(), np.nan) for key, value in found.items()}
    return [
        {"network": name, "graph": k, "layer": layer, **{key: float(value[layer, k]) for key, value in shown.items()}}
        for layer in range(len(states))
        for k in range(graphs)
    ]


def _table(rows: list[MutableRow], measure: str) -> np.ndarray:
    """A measure (layers + 1, graphs)."""
    return column(rows, measure).reshape(-1, 1 + max(int(row["graph"]) for row in rows))


def _curves(number: int, name: str, rows: list[MutableRow]) -> list[Curve]:
    """Median and band of a network over its layers, in the panel of each measure."""
    drawn = []
    for measure, panel in MEASURES.items():
        values = _table(rows, measure)
        summary = np.full((3, len(values)), np.nan)
        for k, row in enumerate(values):
            if (there := row[np.isfinite(row)]).size:
                summary[:, k] = np.quantile(there, (0.5, *BAND))
        alive, layers = np.isfinite(values).sum(1), np.arange(len(values), dtype=float)
        title = find_model(name).title
        median, low, high = summary
        members, colour, dash = values.shape[1], number % 7, number // 7 * 2
        drawn.append(Curve(title, panel, layers, median, low, high, alive, members, colour, dash))
    return drawn


def _answer(name: str, rows: list[MutableRow]) -> Answer:
    """Does the energy with random weights vanish, as that of deep networks is said to?"""
    energy, rough = (_table(rows, measure) for measure in MEASURES)
    share, title = energy[-1] / energy[0], find_model(name).title
    gone, lost = share <= GONE, int(np.isnan(energy[-1]).sum())
    return Answer(
        f"{title}, random weights: the Dirichlet energy vanishes with depth",
        decide(gone[np.isfinite(share)]),
        f"at most {GONE:g} of the first energy is left after {len(energy) - 1} layers on {int(gone.sum())} of "
        f"{len(share)} graphs ({lost} have left single precision); median E_T/E_0 {median_text(share)}, relative to "
        f"|H|^2 {median_text(rough[-1] / rough[0])}",
        f"With random weights {title} keeps {median_text(share)} of its energy over {len(energy) - 1} layers.",
    )
