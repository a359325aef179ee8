"""Networks trained on random graphs, and their states layer by layer before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gread.datasets.node_data import NodeData
from gread.models.batched_model import BatchedModel
from gread.models.gread_model import GREAD
from gread.models.problem import Problem
from gread.settings.model_records import find_model
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from studies.oversmoothing.network_states import first_loss, layer_states
from studies.runs.tables import MutableRow
from studies.trained_energy.subjects import Subject, configuration, layer_count, named

#: When a network is looked at: before training, at its best validation epoch, after the last epoch.
STAGES = ("start", "best", "end")


@dataclass(frozen=True, eq=False)
class NetworkCourse:
    """S networks at every stage: states of K + 1 layers, (K + 1, S, n, d), and when a network diverged, (S,).

    That time is nan for networks that never do, -1 for those whose training failed before. Layers that differ in width
    are filled up with zeros, which no measure sees. `results` has one row per network.
    """

    states: Mapping[str, Tensor]
    left: Mapping[str, np.ndarray]
    results: list[MutableRow]


# ---------------------------------------------------------------------- training
def course(
    subject: Subject, settings: Mapping[str, Any], datas: Sequence[NodeData], seeds: Sequence[int], device: str
) -> NetworkCourse:
    """Train a subject on all graphs as one ensemble in single precision, and look at its states in double."""
    trials = [Trial(configuration(subject, settings), 0, seed) for seed in seeds]
    ensemble = Ensemble(datas, trials, device=device)
    stages = {"start": {name: part.detach().clone() for name, part in ensemble.parts.items()}}
    ensemble.advance(ensemble.epochs)
    stages["best"] = {name: ensemble.state[f"best.{name}"] for name in ensemble.parts}
    stages["end"] = {name: ensemble.state[name] for name in ensemble.parts}
    model, problem = observer(datas, ensemble.trials, device)
    states, left = {}, {}
    for stage, parts in stages.items():
        states[stage], left[stage] = stage_states(model, problem, parts, settings)
    found, spans = ensemble.outcome(), coefficient_spans(model)
    results: list[MutableRow] = [
        {
            **named(subject), "graph": k, "seed": trial.seed, "best_epoch": int(found.best_epoch[k]),
            "val_accuracy": float(found.val_accuracy[k]), "test_accuracy": float(found.test_accuracy[k]),
            "status": found.status(k), **spans[k],
        }
        for k, trial in enumerate(trials)
    ]  # fmt: skip
    return NetworkCourse(states, _without_failed(left, results), results)


def observer(datas: Sequence[NodeData], trials: Sequence[Trial], device: str = "cpu") -> tuple[BatchedModel, Problem]:
    """The networks of some trials in double precision, and what they live on."""
    problem = Problem.make(datas, trials, device=device, dtype=torch.float64)
    settings = trials[0].config.model
    model: BatchedModel = find_model(settings.model).network(
        settings, problem.place, features=problem.features.shape[1], classes=problem.classes,
        seeds=[t.member_seed for t in trials],
    )  # fmt: skip
    return model.requires_grad_(False), problem


def stage_states(
    model: BatchedModel, problem: Problem, parts: Mapping[str, Tensor], settings: Mapping[str, Any]
) -> tuple[Tensor, np.ndarray]:
    """States (K + 1, S, n, d) at every layer, and the time at which a member diverged, or nan.

    A member whose parameters are no numbers never has a state: its time is -1.
    """
    whole = torch.stack([torch.isfinite(p).view(len(p), -1).all(1) for p in parts.values()]).all(0)
    model.load_members({k: torch.where(whole.view(-1, *(1,) * (p.ndim - 1)), p, 0.0) for k, p in parts.items()})
    states = layer_states(model, problem.features, layer_count(settings))
    left = np.where(whole.cpu().numpy(), first_loss(states, settings["step"]), -1.0)
    return states, left


def _without_failed(left: Mapping[str, np.ndarray], results: Sequence[MutableRow]) -> dict[str, np.ndarray]:
    """The times at which networks diverged, -1 at the stages that a failed training did not reach."""
    ended = np.array([row["status"] == "ok" for row in results])
    scored = np.array([int(row["best_epoch"]) > 0 for row in results])
    reached = {"start": np.ones_like(ended), "best": scored, "end": ended}
    return {stage: np.where(reached[stage], times, -1.0) for stage, times in left.items()}


def coefficient_spans(model: BatchedModel) -> list[MutableRow]:
    """alpha and the least and largest beta of every member; nan where a network has none."""
    own = model.coefficients() if isinstance(model, GREAD) else {}
    found = {name: value.detach().reshape(model.members, -1).cpu() for name, value in own.items()}
    none = torch.full((model.members, 1), torch.nan)
    alpha, beta = found.get("alpha", none), found.get("beta", none)
    return [
        {"alpha": float(a[0]), "beta_least": float(b.min()), "beta_largest": float(b.max())}
        for a, b in zip(alpha, beta, strict=True)
    ]
