"""Networks with random weights in the study of oversmoothing: energies by hand, and networks by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gread.models.place import Place
from gread.zoo.classical_networks import GCN, GCNSettings
from rdgraph.errors import UnknownName
from studies.cli.app import app
from studies.cli.study_commands import read_names
from studies.oversmoothing import study as oversmoothing
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.networks_part import network_rows, networks_part
from studies.runs.report import Heading
from studies.runs.study import Study
from studies.runs.study_run import StudyRun

TINY: dict[str, Any] = {
    **oversmoothing.settings(True), "graphs": 2, "sizes": [6, 6], "layers": 3, "hidden": 4, "models": ["gcn", "mlp"],
}  # fmt: skip


def test_energies_of_a_gcn_by_hand() -> None:
    """relu(A H W + b) from the network's own weights, densely, and the energy as a double sum."""
    ensemble = GraphEnsemble.make(TINY, 5)
    rows = network_rows("gcn", ensemble, TINY, seed=5)
    assert [(row["layer"], row["graph"]) for row in rows] == [(layer, k) for layer in range(4) for k in range(2)]
    for k, member in enumerate(ensemble.members):
        place = Place.of(member.graph, dtype=torch.float64)
        net = GCN(GCNSettings(layers=3, hidden=4), place, features=2, classes=2, seeds=[(5 << 32) | k])
        W = np.zeros((12, 12))
        W[member.graph.edge_index[1], member.graph.edge_index[0]] = 1
        loops = W + np.eye(12)
        A = loops / np.sqrt(np.outer(loops.sum(1), loops.sum(1)))
        H = member.features
        for layer in range(4):
            if layer:
                weight, bias = (
                    net.get_parameter(f"layer_{layer - 1}_{p}").detach().numpy()[0] for p in ("weight", "bias")
                )
                H = A @ H @ weight + bias
                H = H if layer == 3 else np.maximum(H, 0)
            gaps = ((H[:, None] - H[None]) ** 2).sum(-1)
            row = next(r for r in rows if (r["layer"], r["graph"]) == (layer, k))
            assert row["energy"] == pytest.approx((W * gaps).sum() / 12, rel=1e-9)
            assert row["normalised"] == pytest.approx((W * gaps).sum() / 2 / (H**2).sum(), rel=1e-9)


def test_every_network_has_a_curve_and_an_answer(tmp_path: Path) -> None:
    study = Study("random-networks", "Random networks", "What is left?", lambda run: None)
    config = study.config(small=True)
    run = StudyRun(tmp_path, config, Heading("t", "q", "c", "r"))
    run.config.sections["settings"].update(TINY)  # type: ignore[attr-defined]
    answers = networks_part(run, GraphEnsemble.make(TINY, 0))
    assert [answer.statement.partition(",")[0] for answer in answers] == ["GCN", "MLP"]
    assert all("after 3 layers" in answer.evidence for answer in answers)
    assert (tmp_path / "figures" / "networks.png").is_file()
    assert {path.name for path in (tmp_path / "parts").iterdir()} == {"network-gcn.csv", "network-mlp.csv"}


def test_names_of_networks_on_the_command_line(tmp_path: Path) -> None:
    assert read_names("gcn,gat") == ["gcn", "gat"]
    with pytest.raises(UnknownName, match="did you mean 'gat'"):
        read_names("gatt")
    done = CliRunner().invoke(app, ["study", "grid", "--small", "--models", "gcn", "--out", str(tmp_path / "run")])
    assert done.exit_code != 0
    assert "expected a setting, got 'models'" in str(done.exception)
