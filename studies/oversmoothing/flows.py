"""Flows on an ensemble of random graphs, all members as one batch, measured at every unit of time.

A `GraphFlow` is an equation on a normalised operator; it is run with Euler's method, as a network of layers would be,
and as the flow itself: `exact` where the equation is linear, Strang splitting where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from analysis.measures.measure_records import make_measures
from analysis.spectra.eigenvalues import Spectrum, spectrum
from rdgraph.errors import NotApplicable, UnknownName
from rdgraph.graphs.operator import Operator, stack
from rdgraph.theory.invariant_boxes import single_box

#: Entries beyond this are frozen: their square, summed over the nodes, is still a number.
LIMIT = 1e100
#: Least size of the entries of a start in [-1, 1].
LEVEL = 0.5
#: How a flow is run.
SCHEMES = ("euler", "flow")
#: Expensive measures over all edges; only computed for flows from the features at the initial coefficients.
DEAR = ("laplacian_energy", "rayleigh", "mad")
#: A measure that follows from the energy and the size of the state.
DERIVED = "normalised_energy"


@dataclass(frozen=True)
class GraphFlow:
    """An equation of the catalogue on one operator of every graph, from one kind of start.

    `start` is "features", the features as they are, or "box": inside the box that row-stochastic diffusion and the
    reaction keep, the logistic function of the features for F and Z, and for AC their sign times their size cut to
    [1/2, 1].
    """

    name: str
    system: str
    normalisation: str = "symmetric"
    self_loops: float = 0.0
    start: str = "features"

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.name}-{self.normalisation}-{self.start}".replace("*", "star")

    @property
    def is_linear(self) -> bool:
        return rd.catalogue[self.system].structure.linear

    @property
    def has_reaction(self) -> bool:
        return "beta" in rd.catalogue[self.system].coefficients

    def method(self, scheme: str) -> str:
        """What integrates it: "euler", or for the flow "exact" or "strang"."""
        if scheme not in SCHEMES:
            raise UnknownName("scheme", scheme, SCHEMES)
        return "euler" if scheme == "euler" else "exact" if self.is_linear else "strang"

    def initial(self, features: Tensor) -> Tensor:
        """H0: the features, or what fits the invariant box: their sigmoid into [0, 1], their signs into [-1, 1]."""
        if self.start == "features":
            return features
        lower, upper = box(self.system)
        return features.sigmoid() if lower == 0 else features.sign() * features.abs().clamp(LEVEL, upper)


def box(system: str) -> tuple[float, float]:
    """The invariant box of a catalogued system with row-stochastic diffusion.

    >>> box("AC")
    (-1.0, 1.0)
    """
    result = single_box(rd.catalogue[system], "row")
    if result.lower is None or result.upper is None:
        raise NotApplicable(f"expected a system with an invariant box, got {system}; start from the features")
    return float(result.lower), float(result.upper)


#: What the paper's figure compares with: A H with self-loops is the linear part of a GCN layer.
BASELINES = (
    GraphFlow("diffusion", "diffusion"),
    GraphFlow("GCN", "diffusion", self_loops=1.0),
    GraphFlow("GRAND", "diffusion", "row"),
)
LINEAR = tuple(GraphFlow(name, name) for name in ("BS", "ST", "FB", "FB*"))
CLASSICAL = tuple(GraphFlow(name, name) for name in ("F", "AC", "Z"))
#: Where the maximum principle holds: row-stochastic diffusion from inside the box.
BOXED = tuple(GraphFlow(name, name, "row", start="box") for name in ("F", "AC", "Z"))
#: Where every trajectory of F tends to the same profile, which is not constant.
PROFILE = GraphFlow("F", "F", "symmetric", start="box")
REACTIONS = LINEAR + CLASSICAL


@dataclass(frozen=True, eq=False)
class GraphEnsemble:
    """Contextual stochastic block models of several seeds: graphs, features (S, n, d) and labels (n,)."""

    members: tuple[rd.generators.LabelledGraph, ...]
    device: str = "cpu"
    _made: dict[tuple[str, float], Operator] = field(default_factory=dict, repr=False)

    @classmethod
    def make(cls, settings: Mapping[str, Any], seed: int, device: str = "cpu") -> GraphEnsemble:
        """`settings["graphs"]` graphs; member k depends on the seed and k alone."""
        names = ("sizes", "means", "sigma", "channels", "within", "between")
        drawn = {name: settings[name] for name in names}
        streams = (np.random.default_rng([seed, k]) for k in range(settings["graphs"]))
        return cls(tuple(rd.generators.csbm(stream, **drawn) for stream in streams), device)

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def features(self) -> Tensor:
        return torch.as_tensor(np.stack([m.features for m in self.members]), device=self.device)

    @property
    def labels(self) -> Tensor:
        return torch.as_tensor(self.members[0].labels, device=self.device)

    def operator(self, normalisation: str, self_loops: float = 0.0) -> Operator:
        """One operator with the weights of every graph, batch (S,), float64; made once."""
        key = normalisation, self_loops
        if key not in self._made:
            options: dict[str, Any] = {"self_loops": self_loops, "dtype": torch.float64, "device": self.device}
            self._made[key] = stack([m.graph.operator(normalisation, **options) for m in self.members])
        return self._made[key]

    @cached_property
    def walks(self) -> tuple[Spectrum, ...]:
        """The spectrum of I - D^-1 W of every graph, for the layers on the row-stochastic operator."""
        return tuple(spectrum(m.graph.operator("row", dtype=torch.float64)) for m in self.members)


@dataclass(frozen=True, eq=False)
class Batch:
    """C coefficients, each on every graph: alpha (C,), beta (C,) or one per graph and channel (C, S, d).

    `initial` says which of them are the coefficients the authors' code starts with; alpha = 1 without a reaction.
    """

    kind: str
    alpha: Tensor
    beta: Tensor
    initial: tuple[int, ...]

    @classmethod
    def scalars(cls, flow: GraphFlow, settings: Mapping[str, Any]) -> Batch:
        """alpha and beta = ratio*alpha on a grid; without a reaction alpha alone, and alpha = 1 for a layer A H."""
        alphas = [1.0] if flow.name == "GCN" else settings["alphas"] if flow.has_reaction else [0.5, 1.0]
        ratios = settings["ratios"] if flow.has_reaction else [0.0]
        pairs = [(alpha, alpha * ratio) for alpha in alphas for ratio in ratios]
        start = (settings["alpha"], settings["beta"]) if flow.has_reaction else (1.0, 0.0)
        chosen = tuple(k for k, pair in enumerate(pairs) if pair == start)
        alpha, beta = torch.tensor(pairs, dtype=torch.float64).T
        return cls("SC", alpha, beta, chosen)

    @classmethod
    def channels(cls, ensemble: GraphEnsemble, settings: Mapping[str, Any], stream: np.random.Generator) -> Batch:
        """beta drawn for every graph and channel, alpha at its initial value."""
        shape = settings["draws"], *ensemble.features.shape[::2]
        drawn = torch.as_tensor(stream.uniform(settings["beta_low"], settings["beta_high"], shape))
        return cls("VC", torch.full((shape[0],), float(settings["alpha"]), dtype=torch.float64), drawn, ())


@dataclass(frozen=True, eq=False)
class EnsembleTrajectory:
    """Measures (K, C, S) at times (K,) of C coefficients on S graphs, and when a member was frozen (C, S), else NaN.

    In addition to the measures by name, `size` is |H|_F^2. Measures that were not computed are NaN.
    """

    times: np.ndarray
    values: Mapping[str, np.ndarray]
    failed_at: np.ndarray

    @property
    def alive(self) -> np.ndarray:
        """Whether the state at a time is the flow's and not a frozen one, (K, C, S)."""
        return np.asarray(~(self.times[:, None, None] > self.failed_at))


def solve_flow(
    flow: GraphFlow, ensemble: GraphEnsemble, scheme: str, batch: Batch, settings: Mapping[str, Any]
) -> EnsembleTrajectory:
    """Run all coefficients on all graphs as one batch (C, S), and measure it at `settings["saves"]`."""
    shape = len(batch.alpha), len(ensemble)
    single = ensemble.operator(flow.normalisation, flow.self_loops)
    weights = single.weights.expand(*shape, -1)  # one copy in memory, so that a product passes over it once
    operator = Operator(single.pattern, weights, single.normalisation, single.self_loops)
    device = single.device
    coefficients = {"alpha": batch.alpha.to(device)[:, None].expand(shape)}
    system = rd.catalogue[flow.system]
    if flow.has_reaction:
        beta = batch.beta.to(device)
        coefficients["beta"] = beta[:, None].expand(shape) if batch.kind == "SC" else beta
        system = system if batch.kind == "SC" else rd.parse(system.text, {"beta": "channel"})
    equation = rd.lower(system, operator, coefficients, batch=shape)
    start = flow.initial(ensemble.features)
    start = start.expand(shape[0], *start.shape).contiguous()
    method = flow.method(scheme)
    options: dict[str, Any] = {
        "euler": {"step": settings["step"]},
        "strang": {"step": settings["splitting_step"], "rtol": settings["splitting_rtol"]},
        "exact": {},
    }[method]
    times = torch.tensor(settings["saves"], dtype=torch.float64)
    solution = rd.solve(equation, start, times, method, limit=LIMIT, **options)
    states, failed_at = solution.states, solution.failed_at
    is_drawn = scheme == "flow" and flow.start == "features"
    values = _measured(states, ensemble, single, settings["measures"], batch.initial if is_drawn else ())
    return EnsembleTrajectory(times.numpy(), values, failed_at.cpu().numpy())


def _measured(
    states: Tensor, ensemble: GraphEnsemble, op: Operator, names: Sequence[str], initial: Sequence[int]
) -> dict[str, np.ndarray]:
    """The registered measures of these names at every time, (K, C, S); the dear ones of the coefficients `initial`."""
    plain = ensemble.operator("none")
    built = make_measures(plain=plain, op=op, labels=ensemble.labels, names=[n for n in names if n != DERIVED])
    result = {"size": states.square().sum((-2, -1))}
    for name, measure in built.items():
        if name not in DEAR:
            result[name] = measure(states).double()
            continue
        result[name] = torch.full_like(result["size"], torch.nan)
        for k in initial:
            result[name][:, k] = measure(states[:, k])
    # (N/2) E = tr(H' (D - W) H), so that the energy is not summed twice.
    result[DERIVED] = states.shape[-2] / 2 * result["dirichlet_energy"] / result["size"]
    return {name: value.cpu().numpy() for name, value in result.items()}
