"""Networks by name in the study of oversmoothing: their energies with random weights, before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from analysis.measures.measure_records import make_measures
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.place import Place
from gread.models.randomness import Dropper
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import find_model
from gread.zoo.neighbour_networks import H2GCN
from studies.oversmoothing.energy_figures import ENERGY, Curve, curves_chart
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.rows import GONE, SHEET, Answer, by_graph, median_text, select
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import decide

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- network states
# States of networks by name, layer by layer: which settings a deep one has, and what it holds before every layer.

#: An entry beyond this is no number in the single precision that networks are trained in.
LIMIT = float(torch.finfo(torch.float32).max)


def fitting_config(name: str, values: Mapping[str, Any]) -> Config:
    """The defaults of a network with those of the values that it has settings for.

    Heads are those of networks whose states lie side by side, one block a head; equations keep theirs.

    >>> fitting_config("gcn", {"layers": 8, "heads": 1}).model.layers
    8
    """
    start = Config.of(name)
    known = {f.name for part in (start.model, start.training) for f in fields(part)}
    if isinstance(start.model, GreadSettings):
        known -= {"heads"}
    return start.updated({key: value for key, value in values.items() if key in known})


@torch.no_grad()
def layer_states(model: BatchedModel, x: Features, depth: int) -> Tensor:
    """States (K + 1, M, n, d) of M networks: before the first layer, and after each.

    A network of K layers that gives K states has none before the first one: the features stand there. States that
    differ in width are filled up with zeros, which no measure sees. H2GCN, whose rounds have no parameters, is looked
    at for `depth` rounds, however many it has.
    """
    states = narrow_rounds(model, x, depth) if isinstance(model, H2GCN) else model.states(x, Dropper())
    if len(states) == getattr(model.settings, "layers", 0):
        states = [dense_features(x).expand(model.members, -1, -1), *states]
    width = max(h.shape[-1] for h in states)
    return torch.stack([functional.pad(h, (0, width - h.shape[-1])) for h in states])


def dense_features(x: Features) -> Tensor:
    """X (1 or M, n, f) with its zeros written out."""
    some = x.values
    return some if x.pattern is None else x @ torch.eye(x.shape[1], dtype=some.dtype, device=some.device)[None]


def narrow_rounds(model: H2GCN, x: Features, rounds: int) -> list[Tensor]:
    """States with the inner products of R_0, ..., R_rounds between nodes, in at most n columns each.

    Energies, angles and ranks of a state depend on R_k R_k' alone, which `narrowed` keeps, so that the width need not
    double in every round.
    """
    states = [narrowed(model.states(x, Dropper())[0])]
    for _ in range(rounds):
        states.append(narrowed(model.around(states[-1])))
    return states


def narrowed(state: Tensor) -> Tensor:
    """States (..., n, d) with the same inner products between nodes, H H', in no more columns than nodes.

    >>> H = torch.arange(6.0).reshape(2, 3)
    >>> torch.allclose(narrowed(H) @ narrowed(H).T, H @ H.T), narrowed(H).shape
    (True, torch.Size([2, 2]))
    """
    if state.shape[-1] <= state.shape[-2]:
        return state
    return torch.linalg.qr(state.mT, mode="r").R.mT.contiguous()


def first_loss(states: Tensor, step: float = 1.0) -> np.ndarray:
    """The time before the first state that has entries beyond `LIMIT`, of every member (M,); nan without one.

    >>> first_loss(torch.tensor([1.0, 2.0, torch.inf]).reshape(3, 1, 1, 1))
    array([1.])
    """
    wild = ~(states.abs().amax((-2, -1)) <= LIMIT).cpu().numpy()
    return np.where(wild.any(0), (wild.argmax(0) - 1.0) * step, np.nan)


# ---------------------------------------------------------------------- networks part
#: Our columns, and what a figure calls them.
MEASURES = {"energy": "Dirichlet energy", "normalised": "normalised energy"}


def networks_part(run: StudyRun, ensemble: GraphEnsemble) -> list[Answer]:
    """Draw random weights for every network by name, measure its layers on all graphs, and say what becomes of E."""
    names = list(dict.fromkeys(run.settings["models"]))
    rows: list[MutableRow] = []
    for _, result in each_cell(run, names, partial(_drawn, ensemble=ensemble), "networks with random weights"):
        rows += result
    if not names:
        return []
    curves = [c for k, name in enumerate(names) for c in _curves(k, name, select(rows, network=name))]
    title = "Networks with random weights, layer by layer"
    caption = SHEET.text("networks", title=title, hidden=run.settings["hidden"], layers=run.settings["layers"])
    used: list[MutableRow] = [
        {"network": c.name, "measure": c.group, "layer": int(t), "median": float(m), "low": float(a), "high": float(b)}
        for c in curves
        for t, m, a, b in zip(c.times, c.mean, c.low, c.high, strict=True)
    ]
    run.figure("networks", curves_chart(curves, y_label=ENERGY, x_label="layer", columns=2), caption, used)
    return [_answer(name, select(rows, network=name)) for name in names]


def _drawn(run: StudyRun, name: str, *, ensemble: GraphEnsemble) -> list[MutableRow]:
    """The layers of one network, on all graphs."""
    return run.part(f"network-{name}", partial(network_rows, name, ensemble, run.settings, run.seed))


def network_rows(name: str, ensemble: GraphEnsemble, settings: Mapping[str, Any], seed: int) -> list[MutableRow]:
    """Measures of every layer on every graph; nan from the layer on at which a state has left single precision."""
    graphs = len(ensemble)
    features = ensemble.features
    position = Place(
        tuple(member.graph for member in ensemble.members), ensemble.device, torch.float64,
        torch.ones(graphs, features.shape[1], dtype=torch.float64, device=ensemble.device),
    )  # fmt: skip
    depth = int(settings["layers"])
    values = {"layers": depth, "hidden": settings["hidden"], "method": "euler", "step": 1.0, "time": float(depth)}
    config, classes = fitting_config(name, values).model, int(ensemble.labels.max()) + 1
    seeds = [(seed << 32) | k for k in range(graphs)]
    model = find_model(name).network(config, position, features=features.shape[-1], classes=classes, seeds=seeds)
    states = layer_states(
        model.requires_grad_(False), Features(features, (features.shape[1], features.shape[2])), depth
    )
    alive = ~(np.arange(len(states))[:, None] > first_loss(states))
    stored = torch.where(torch.as_tensor(alive, device=states.device)[..., None, None], states, 0.0)
    energy = make_measures(plain=ensemble.operator("none"), names=("dirichlet_energy",))["dirichlet_energy"](stored)
    result = {"energy": energy, "normalised": states.shape[-2] / 2 * energy / stored.square().sum((-2, -1))}
    shown = {key: np.where(alive, value.cpu().numpy(), np.nan) for key, value in result.items()}
    return [
        {"network": name, "graph": k, "layer": layer, **{key: float(value[layer, k]) for key, value in shown.items()}}
        for layer in range(len(states))
        for k in range(graphs)
    ]


def _curves(number: int, name: str, rows: list[MutableRow]) -> list[Curve]:
    """Median and band of a network over its layers, in the panel of each measure."""
    drawn = []
    for measure, panel in MEASURES.items():
        values = by_graph(rows, measure)
        layers = np.arange(len(values), dtype=float)
        drawn.append(Curve.over(find_model(name).title, panel, layers, values, number % 7, number // 7 * 2))
    return drawn


def _answer(name: str, rows: list[MutableRow]) -> Answer:
    """Does the energy with random weights vanish with depth?"""
    energy, rough = (by_graph(rows, measure) for measure in MEASURES)
    share, title = energy[-1] / energy[0], find_model(name).title
    gone, lost = share <= GONE, int(np.isnan(energy[-1]).sum())
    return Answer.of(
        SHEET, "network", decide(gone[np.isfinite(share)]), title=title, gone=GONE, depth=len(energy) - 1,
        vanished=int(gone.sum()), graphs=len(share), lost=lost, median_share=median_text(share),
        rough=median_text(rough[-1] / rough[0]),
    )  # fmt: skip
