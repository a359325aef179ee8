"""Networks trained on random graphs, and their states layer by layer before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gread.baselines.fitting import fit, fresh, tensors
from gread.baselines.heterophily import H2GCN
from gread.baselines.layered import Layered
from gread.datasets.node_data import NodeData
from gread.models.gread_model import GREAD
from gread.models.problem import Problem
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph import solve
from studies.runs.tables import MutableRow
from studies.trained_energy.subjects import Subject, builder, configuration, layer_count, named

#: When a network is looked at: before training, at its best validation epoch, after the last epoch.
STAGES = ("start", "best", "end")
#: An entry beyond this is no number in the single precision that networks are trained in.
LIMIT = float(torch.finfo(torch.float32).max)


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
    """Train a subject on every graph, and look at its states before and after."""
    trials = [Trial(configuration(subject, settings), 0, seed) for seed in seeds]
    if subject.is_module:
        return _module_course(subject, settings, datas, trials, device)
    if trials[0].config.model.adjacency == "original":
        return _flow_course(subject, datas, trials, device)
    # Attention looks at every entry of the pattern, and graphs that are stacked share theirs.
    return _joined([_flow_course(subject, [one], [t], device) for one, t in zip(datas, trials, strict=True)])


def _joined(parts: Sequence[NetworkCourse]) -> NetworkCourse:
    """Networks of several ensembles as one."""
    return NetworkCourse(
        {stage: torch.cat([part.states[stage] for part in parts], dim=1) for stage in STAGES},
        {stage: np.concatenate([part.left[stage] for part in parts]) for stage in STAGES},
        [{**part.results[0], "graph": k} for k, part in enumerate(parts)],
    )


def _flow_course(subject: Subject, datas: Sequence[NodeData], trials: Sequence[Trial], device: str) -> NetworkCourse:
    """Equations: all graphs as one ensemble, trained in single precision, looked at in double."""
    ensemble = Ensemble(datas, trials, device=device)
    stages = {"start": {name: p.detach().clone() for name, p in ensemble.parameters.items()}}
    ensemble.advance(ensemble.epochs)
    stages["best"] = {name: ensemble.state[f"best.{name}"] for name in ensemble.parameters}
    stages["end"] = {name: ensemble.state[name] for name in ensemble.parameters}
    problem = Problem.make(datas, trials, device=device, dtype=torch.float64)
    model = GREAD(
        trials[0].config.model, problem.operator, features=problem.features.shape[1], classes=problem.classes,
        seeds=[t.member_seed for t in trials],
    ).requires_grad_(False)  # fmt: skip
    states, left = {}, {}
    for stage, parameters in stages.items():
        states[stage], left[stage] = flow_states(model, problem, parameters)
    found = ensemble.outcome()
    spans = _coefficient_spans(model)
    results: list[MutableRow] = [
        {
            **named(subject), "graph": k, "seed": trial.seed, "best_epoch": int(found.best_epoch[k]),
            "val_accuracy": float(found.val_accuracy[k]), "test_accuracy": float(found.test_accuracy[k]),
            "status": found.status(k), **spans[k],
        }
        for k, trial in enumerate(trials)
    ]  # fmt: skip
    return NetworkCourse(states, _without_failed(left, results), results)


def _without_failed(left: Mapping[str, np.ndarray], results: Sequence[MutableRow]) -> dict[str, np.ndarray]:
    """The times at which networks diverged, -1 at the stages that a failed training did not reach."""
    ended = np.array([row["status"] == "ok" for row in results])
    scored = np.array([int(row["best_epoch"]) > 0 for row in results])
    reached = {"start": np.ones_like(ended), "best": scored, "end": ended}
    return {stage: np.where(reached[stage], times, -1.0) for stage, times in left.items()}


def flow_states(model: GREAD, problem: Problem, parameters: Mapping[str, Tensor]) -> tuple[Tensor, np.ndarray]:
    """States (K + 1, S, n, d) at every step of Euler's method, and the time at which a member diverged, or nan.

    A member whose parameters are no numbers never has a state: its time is -1.
    """
    whole = torch.stack([torch.isfinite(p).view(len(p), -1).all(1) for p in parameters.values()]).all(0)
    chosen = {k: torch.where(whole.view(-1, *(1,) * (p.ndim - 1)), p, 0.0) for k, p in parameters.items()}
    model.load_members(chosen)
    start, config = model.encode(problem.features), model.config
    steps = round(config.time / (config.step or 1.0))
    times = torch.linspace(0.0, config.time, steps + 1, dtype=torch.float64)
    solution = solve(model.field(start), start, times, config.method, step=config.step, limit=LIMIT)
    left = torch.where(whole.cpu(), solution.failed_at.cpu(), -1.0)
    return solution.states, left.numpy()


def _coefficient_spans(model: GREAD) -> list[MutableRow]:
    """alpha and the least and largest beta of every member; nan where an equation has none."""
    found = {name: value.detach().reshape(model.members, -1).cpu() for name, value in model.coefficients().items()}
    none = torch.full((model.members, 1), torch.nan)
    alpha, beta = found.get("alpha", none), found.get("beta", none)
    return [
        {"alpha": float(a[0]), "beta_least": float(b.min()), "beta_largest": float(b.max())}
        for a, b in zip(alpha, beta, strict=True)
    ]


def _module_course(
    subject: Subject, settings: Mapping[str, Any], datas: Sequence[NodeData], trials: Sequence[Trial], device: str
) -> NetworkCourse:
    """Modules: one graph after the other."""
    build = builder(subject, settings)
    done = fit(build, datas, trials, device=device)
    stages = {
        "start": [fresh(build, one, trial) for one, trial in zip(datas, trials, strict=True)],
        "best": done.best, "end": done.last,
    }  # fmt: skip
    none = dict.fromkeys(("alpha", "beta_least", "beta_largest"), float("nan"))
    rows = [{k: v for k, v in row.items() if k not in ("split", "seed")} for row in done.results.rows()]
    results: list[MutableRow] = [
        {**named(subject), "graph": k, "seed": trials[k].seed, **row, **none}  # type: ignore[dict-item]
        for k, row in enumerate(rows)
    ]
    states, left = {}, {}
    for stage, networks in stages.items():
        each = [_module_states(net, one, settings, device) for net, one in zip(networks, datas, strict=True)]
        states[stage] = torch.stack(each, dim=1)
        left[stage] = _first_loss(states[stage], settings["step"])
    return NetworkCourse(states, _without_failed(left, results), results)


@torch.no_grad()
def _module_states(network: Layered, data: NodeData, settings: Mapping[str, Any], device: str) -> Tensor:
    """States (K + 1, n, d) of one network."""
    x, edges = tensors(data, device, torch.float64)
    network = network.to(device=device, dtype=torch.float64)
    if isinstance(network, H2GCN):
        states = network.narrow_layers(x, edges, layer_count(settings))
    else:
        states = network.layers(x, edges)
    width = max(h.shape[1] for h in states)
    return torch.stack([functional.pad(h, (0, width - h.shape[1])) for h in states])


def _first_loss(states: Tensor, step: float) -> np.ndarray:
    """The time before the first state that has entries beyond `LIMIT`; nan without one."""
    wild = ~(states.abs().amax((-2, -1)) <= LIMIT).cpu().numpy()
    return np.where(wild.any(0), (wild.argmax(0) - 1.0) * step, np.nan)
