"""The measures of trained networks as rows, one per network, stage and layer, and these as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from analysis.measures.measure_records import make_measures
from gread.datasets.node_data import NodeData
from rdgraph.graphs import stack
from studies.runs.tables import MutableRow
from studies.trained_energy.networks import STAGES, NetworkCourse, Subject, named

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
