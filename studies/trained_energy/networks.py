"""Networks trained on random graphs, their states layer by layer before and after, and the measures of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analysis.measures.measure_records import make_measures
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.models.batched_model import BatchedModel
from gread.models.gread_model import GREAD
from gread.models.problem import Problem
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import find_model
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph.graphs import stack
from studies.oversmoothing.networks_part import first_loss, fitting_config, layer_states
from studies.runs.tables import MutableRow

# ---------------------------------------------------------------------- subjects
# The networks that are compared, their settings, and the graphs they are trained on.

LINEAR, CLASSICAL = ("BS", "ST", "FB", "FB*"), ("F", "AC", "Z")
#: The equation that the reactions are compared with.
PLAIN = "diffusion"
#: The network around these equations.
EQUATION = "gread"
#: Settings of the study that are settings of a network, and those of them that only an equation takes from it.
SHARED = ("epochs", "learning_rate", "weight_decay", "dropout", "input_dropout", "hidden", "method", "time", "step")
CHOSEN = ("adjacency", "normalisation", "self_loops", "relu", "alpha", "beta")


@dataclass(frozen=True)
class Subject:
    """A kind of network: its name in print and, for a reaction, whether beta is a scalar (SC) or a vector (VC).

    `model` is the network by name; that of an equation is GREAD.
    """

    name: str
    kind: str = "-"
    model: str = field(default=EQUATION, compare=False)

    @classmethod
    def of(cls, model: str) -> Subject:
        """The subject of a network by name.

        >>> Subject.of("h2gcn").name
        'H2GCN'
        """
        return cls(find_model(model).title, model=model)

    @property
    def is_compared(self) -> bool:
        """Whether it is a network by name or plain diffusion, not a reaction."""
        return self.kind == "-"

    @property
    def is_equation(self) -> bool:
        """Whether it is an equation of the catalogue rather than a network by name."""
        return self.model == EQUATION and self != Subject.of(EQUATION)

    @property
    def key(self) -> str:
        """A name for files.

        >>> Subject("FB*", "SC").key, Subject.of("gcn").key
        ('FBstar-SC', 'gcn')
        """
        name = self.name.replace("*", "star") if self.is_equation else self.model
        return name if self.is_compared else f"{name}-{self.kind}"


def make_subjects(settings: Mapping[str, Any]) -> tuple[Subject, ...]:
    """The networks by name, plain diffusion, and the reactions with a scalar and with a vector beta.

    >>> [subject.key for subject in make_subjects({"models": ["gcn"], "reactions": ["BS"]})]
    ['gcn', 'diffusion', 'BS-SC', 'BS-VC']
    """
    reactions = tuple(dict.fromkeys(settings["reactions"]))
    return (
        *(Subject.of(name) for name in dict.fromkeys(settings["models"])),
        *([Subject(PLAIN)] if reactions else []),
        *(Subject(name, kind) for name in reactions for kind in ("SC", "VC")),
    )


def make_graphs(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[NodeData]:
    """The appendix' cSBM for every seed, with one stratified split."""
    s = settings
    options: dict[str, Any] = {name: s[name] for name in ("within", "between", "sigma")}
    built = (
        csbm(seed, n=sum(s["sizes"]), classes=len(s["sizes"]), signal=s["means"][-1], features=s["channels"], **options)
        for seed in seeds
    )
    return [one.stratified(1, train=s["train"], val=s["val"], seed=k) for one, k in zip(built, seeds, strict=True)]


def configuration(subject: Subject, settings: Mapping[str, Any]) -> Config:
    """The settings of a subject: a network by name takes those it has, as many layers as the flows have steps.

    >>> published = {"epochs": 3, "time": 4.0, "step": 1.0, "method": "euler", "adjacency": "original", "dropout": 0.0}
    >>> [configuration(Subject("BS", kind), published).model.beta for kind in ("SC", "VC")]
    ['scalar', 'channel']
    >>> configuration(Subject.of("gcn"), published).model.layers
    4
    """
    given = {name: settings[name] for name in (*SHARED, *CHOSEN) if name in settings}
    if subject.is_equation:
        kinds = {"SC": {"beta": "scalar"}, "VC": {"beta": "channel"}, "-": {}}
        return Config.of(EQUATION, **given, reaction=subject.name).updated(kinds[subject.kind])
    has_flow = issubclass(find_model(subject.model).settings, GreadSettings)
    wanted = (*SHARED, "relu") if has_flow else SHARED
    group = {name: settings[name] for name in (*wanted, "rounds", "heads") if name in settings}
    return fitting_config(
        subject.model, {**group, "layers": layer_count(settings), "attention_dropout": settings["dropout"]}
    )


def layer_count(settings: Mapping[str, Any]) -> int:
    """Number of steps of Euler's method, and of layers of the other networks."""
    return round(settings["time"] / settings["step"])


def named(subject: Subject) -> MutableRow:
    """The columns that name a subject."""
    return {"network": subject.name, "beta": subject.kind}


# ---------------------------------------------------------------------- networks
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
    result, spans = ensemble.outcome(), coefficient_spans(model)
    results: list[MutableRow] = [
        {
            **named(subject), "graph": k, "seed": trial.seed, "best_epoch": int(result.best_epoch[k]),
            "val_accuracy": float(result.val_accuracy[k]), "test_accuracy": float(result.test_accuracy[k]),
            "status": result.status(k), **spans[k],
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
    group = model.coefficients() if isinstance(model, GREAD) else {}
    result = {name: value.detach().reshape(model.members, -1).cpu() for name, value in group.items()}
    none = torch.full((model.members, 1), torch.nan)
    alpha, beta = result.get("alpha", none), result.get("beta", none)
    return [
        {"alpha": float(a[0]), "beta_least": float(b.min()), "beta_largest": float(b.max())}
        for a, b in zip(alpha, beta, strict=True)
    ]


# ---------------------------------------------------------------------- measures as rows
# The measures of trained networks as rows, one per network, stage and layer, and these as arrays.

#: Our columns, and the measures in them.
MEASURES = {"energy": "dirichlet_energy", "mad": "mad", "rank": "effective_rank"}


def layer_rows(subject: Subject, result: NetworkCourse, datas: Sequence[NodeData], step: float) -> list[MutableRow]:
    """Measures of every network at every stage and layer; nan from the layer on at which it has diverged.

    `normalised` is (N/2) E/|H|^2 with the paper's E: roughness independent of size.
    """
    rows: list[MutableRow] = []
    device = result.states["end"].device
    plain = stack([d.graph.operator("none", dtype=torch.float64, device=device) for d in datas])
    measures = make_measures(plain=plain, names=tuple(MEASURES.values()))
    for stage in STAGES:
        states = result.states[stage]
        alive = ~(np.arange(len(states))[:, None] * step > result.left[stage])
        stored = torch.where(torch.as_tensor(alive, device=device)[..., None, None], states, 0.0)
        values = {name: measures[measure](stored) for name, measure in MEASURES.items()}
        values["normalised"] = states.shape[-2] / 2 * values["energy"] / stored.square().sum((-2, -1))
        columns = {name: np.where(alive, value.cpu().numpy(), np.nan) for name, value in values.items()}
        rows += [
            {
                **named(subject), "stage": stage, "graph": k, "layer": layer, "alive": int(alive[layer, k]),
                **{name: float(value[layer, k]) for name, value in columns.items()},
            }
            for layer in range(len(states))
            for k in range(len(datas))
        ]  # fmt: skip
    return rows


@dataclass(frozen=True, eq=False)
class EnergyTable:
    """Rows of all subjects as arrays: `values(subject, stage, measure)` (K + 1, S), nan where a network is lost."""

    subjects: tuple[Subject, ...]
    layers: Mapping[tuple[str, str, str], Mapping[str, np.ndarray]]
    results: Mapping[tuple[str, str], list[MutableRow]]

    @classmethod
    def make(
        cls, subjects: Sequence[Subject], layers: Sequence[MutableRow], results: Sequence[MutableRow]
    ) -> EnergyTable:
        """Sort the rows by network, kind and stage."""
        groups: dict[tuple[str, str, str], list[MutableRow]] = {}
        for row in layers:
            groups.setdefault((str(row["network"]), str(row["beta"]), str(row["stage"])), []).append(row)
        arrays = {}
        for key, rows in groups.items():
            graphs = 1 + max(int(row["graph"]) for row in rows)
            names = (*MEASURES, "normalised")
            arrays[key] = {n: np.array([float(r[n]) for r in rows]).reshape(-1, graphs) for n in names}
        ends: dict[tuple[str, str], list[MutableRow]] = {}
        for row in results:
            ends.setdefault((str(row["network"]), str(row["beta"])), []).append(row)
        return cls(tuple(subjects), arrays, ends)

    def __contains__(self, subject: Subject) -> bool:
        return subject in self.subjects

    def values(self, subject: Subject, stage: str, measure: str = "energy") -> np.ndarray:
        """A measure (K + 1, S)."""
        return self.layers[subject.name, subject.kind, stage][measure]

    def trained(self, subject: Subject) -> np.ndarray:
        """Whether the training of a network ended well, (S,)."""
        return np.array([row["status"] == "ok" for row in self.results[subject.name, subject.kind]])

    def column(self, subject: Subject, name: str) -> np.ndarray:
        """A column of the results (S,)."""
        return np.array([float(row[name]) for row in self.results[subject.name, subject.kind]])
