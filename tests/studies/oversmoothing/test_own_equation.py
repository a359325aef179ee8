"""An equation that the user gives to the study of oversmoothing, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from analysis.measures.measure_records import make_measures
from rdgraph.errors import InvalidArgument, NotApplicable
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.rows import select
from studies.oversmoothing.study import equation_rows, settings

SMALL = {**settings(True), "sizes": [6, 6], "graphs": 2, "saves": [0.0, 3.0]}


def test_energies_are_those_of_dense_matrices() -> None:
    ensemble = GraphEnsemble.make(SMALL, 0)
    rows = equation_rows("-alpha*L@H", ensemble, SMALL)
    measure = make_measures(plain=ensemble.operator("none"), names=("dirichlet_energy",))["dirichlet_energy"]
    laplacians = [
        np.eye(12) - m.graph.operator("symmetric", dtype=torch.float64).dense().numpy() for m in ensemble.members
    ]
    alpha = SMALL["alpha"]
    after = {
        "flow": [expm(-3.0 * alpha * lap) for lap in laplacians],
        "euler": [np.linalg.matrix_power(np.eye(12) - alpha * lap, 3) for lap in laplacians],
    }
    for scheme, maps in after.items():
        states = np.stack([m @ x for m, x in zip(maps, ensemble.features.numpy(), strict=True)])
        found = [row["energy"] for row in select(rows, scheme=scheme) if row["t"] == 3.0]
        assert found == pytest.approx(measure(torch.tensor(states)).tolist(), rel=1e-6)


@pytest.mark.parametrize(("text", "error"), [("-gamma*L@H", InvalidArgument), ("u' = -L@u; v' = -L@v", NotApplicable)])
def test_equations_that_cannot_be_run_are_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        equation_rows(text, GraphEnsemble.make(SMALL, 0), SMALL)
