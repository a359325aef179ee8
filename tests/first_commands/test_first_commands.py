"""What each kind of user types first, as typed, on a terminal of 80 columns.

Trainings are cut to few epochs of one split by what is added behind the typed words; nothing else is changed.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread import GREADClassifier, Network, NodeData, karate
from gread.datasets.loading import load_dataset
from rdgraph.errors import RdgraphError
from tests.paths import ROOT
from tests.warm_processes import run_warm

WIDTH = 80
#: Lines of a terminal.
SCREEN = 40
#: Cuts a training short.
SHORT = " --splits 0 --epochs 5 --device cpu"


def typed(line: str, folder: Path, **environment: str) -> str:
    """What a command prints, warnings and all; its exit code is 0, and nothing is clipped."""
    words = shlex.split(line)
    assert words[0] == "rdgraph"
    known = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{folder}",
        "COLUMNS": str(WIDTH),
        "OMP_NUM_THREADS": "1",
        **environment,
    }
    done = run_warm(["studies.cli.app", *words[1:]], folder, known)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


needs_texas = pytest.mark.skipif(
    not os.environ.get("RDGRAPH_DATA"), reason="the public data sets are not here, and tests download nothing"
)


# ---------------------------------------------------------------------- a theorist
def test_a_theorist_analyses_a_line(tmp_path: Path) -> None:
    lines = typed('rdgraph analyse "-alpha*L@H + beta*tanh(H)"', tmp_path).splitlines()
    topics = [line[2:].split()[0] for line in lines if line.startswith("│ ") and line[2:3].strip()]
    assert topics[:3] == ["system", "existence", "bounds"]
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= WIDTH
    lines = typed('rdgraph analyse "-alpha*L@H + beta*tanh(H)" --all', tmp_path).splitlines()
    assert lines[-1].startswith(r"-\alpha \mathbf{L}")
    assert max(map(len, lines)) <= WIDTH


def test_a_theorist_asks_for_existence() -> None:
    found = rd.existence("F")
    assert found.outcome == "local"
    assert found.blow_ups


@pytest.mark.slow
def test_a_theorist_looks_before_a_run_and_at_the_claims(tmp_path: Path) -> None:
    shown = typed("rdgraph preflight BS", tmp_path)
    assert "safe if" in shown.partition("─╯")[0]  # the verdict, in the panel at the top
    assert "so that no frequency grows" in " ".join(shown.replace("│", " ").split())
    lines = typed("rdgraph verify BS", tmp_path).splitlines()
    assert sum(line.split()[:1] in (["holds"], ["false"]) for line in lines) == 16
    assert any(line.startswith("16 of 16 claims decided as recorded") for line in lines)
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.slow
def test_a_theorist_draws_a_phase_diagram(tmp_path: Path) -> None:
    shown = typed('rdgraph plot phase "-a*L@H + b*A@H" --points 30', tmp_path)
    assert re.search(r"30 x 30 runs: 100\.00%.*as predicted", shown)
    with (tmp_path / "runs/phase/phase.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 900
    assert {"a", "b"} <= set(rows[0])


# ---------------------------------------------------------------------- an inventor
@needs_texas
@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "equation",
    [
        "-alpha*L@H + beta*swish(H)",
        "-alpha*L@H + beta*H*tanh(1 - H)",
        "-alpha*L@H + tanh(H@W)",
        "u' = -alpha*L@u + tanh(u - v); v' = -beta*L@v + tanh(u) - v",
    ],
)
def test_an_inventor_trains_a_reaction(tmp_path: Path, equation: str) -> None:
    (tmp_path / "my_functions.py").write_text(
        'import rdgraph as rd\nrd.register_function("swish", "x/(1 + exp(-x))")\n'
    )
    shown = typed(
        f'rdgraph train --dataset texas --reaction "{equation}"{SHORT}', tmp_path, RDGRAPH_PLUGINS="my_functions"
    )
    assert shown.startswith("Test accuracy ")
    assert "±" not in shown
    (run,) = (tmp_path / "runs/train").iterdir()
    with (run / "predictions.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 183


@needs_texas
@pytest.mark.slow
def test_an_inventor_compares_a_reaction(tmp_path: Path) -> None:
    line = 'rdgraph compare --dataset texas --models gcn,gread-bs --reaction "-alpha*L@H + beta*H*tanh(1 - H)"'
    shown = typed(f"{line} --splits 0,1 --set epochs=5 --device cpu", tmp_path)
    assert {"GCN", "GREAD-BS"} <= set(shown.split())
    assert "tanh(1" in shown
    tables = [line for line in shown.splitlines() if line.startswith(" ") and not line.startswith("  rdgraph ")]
    assert max(map(len, tables)) <= WIDTH


@pytest.mark.slow
def test_an_inventor_explores(tmp_path: Path) -> None:
    typed('rdgraph explore "-alpha*L@H + beta*H*tanh(1 - H)" --out page.html', tmp_path)
    assert (tmp_path / "page.html").stat().st_size > 10_000


# ---------------------------------------------------------------------- a practitioner
def write_club(folder: Path, last: int = 34) -> None:
    """The karate club as two files, with ids, an age and a colour."""
    data, rng = karate(), np.random.default_rng(0)
    pairs = [f"m{a},m{b}" for a, b in data.graph.edge_index.T.tolist() if a < b < last]
    rows = [
        f"m{k},{'ab'[y]},{30 + 20 * y + rng.normal():.1f},{('red', 'blue')[y]}" for k, y in enumerate(data.y.tolist())
    ]
    (folder / "edges.csv").write_text("\n".join(["source,target", *pairs]))
    (folder / "nodes.csv").write_text("\n".join(["id,label,age,colour", *rows[:last]]))


@pytest.mark.slow
def test_a_practitioner_trains_and_predicts(tmp_path: Path) -> None:
    write_club(tmp_path)
    shown = typed(f"rdgraph train --edges edges.csv --nodes nodes.csv{SHORT}", tmp_path)
    assert "wrote runs/train/nodes-BS-1/predictions.csv" in shown
    typed("rdgraph predict runs/train/nodes-BS-1 --out again.csv", tmp_path)
    own, again = (tmp_path / name for name in ("runs/train/nodes-BS-1/predictions.csv", "again.csv"))
    assert own.read_bytes() == again.read_bytes()
    write_club(tmp_path, last=12)
    shown = typed("rdgraph predict runs/train/nodes-BS-1 --edges edges.csv --nodes nodes.csv --out new.csv", tmp_path)
    assert "12 nodes:" in shown
    assert re.search(r"\d+ of 12 labelled", shown)


@pytest.mark.slow
def test_a_practitioner_comes_with_other_libraries(tmp_path: Path) -> None:
    import networkx as nx

    settings = {"hidden": 8, "epochs": 10, "device": "cpu"}
    club = nx.karate_club_graph()
    mine = NodeData.from_networkx(club, label="club").stratified(1)
    clf = GREADClassifier(**settings).fit(mine)
    assert set(clf.predict(mine)) <= {"Mr. Hi", "Officer"}
    clf.save(tmp_path / "clf")
    program = (
        "from gread import GREADClassifier; import numpy as np; "
        "clf = GREADClassifier.load('clf'); np.save('said.npy', clf.predict_proba())"
    )
    known = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=known, check=True, timeout=300)
    np.testing.assert_array_equal(np.load(tmp_path / "said.npy"), clf.predict_proba())

    Data = pytest.importorskip("torch_geometric.data").Data
    x = torch.randn(34, 4, generator=torch.Generator().manual_seed(0))
    edges = torch.tensor(mine.graph.edge_index.copy())
    theirs = GREADClassifier(**settings).fit(Data(x=x, edge_index=edges, y=torch.tensor(mine.y.copy())))
    theirs.network_.save(tmp_path / "net")
    smaller = Data(x=x[:5], edge_index=edges[:, (edges < 5).all(0)], num_nodes=5)
    assert Network.load(tmp_path / "net")(smaller).shape == (5, 2)
    assert theirs.predict(smaller).shape == (5,)


# ---------------------------------------------------------------------- a reviewer
@pytest.mark.slow
def test_a_reviewer_reads_the_ledger(tmp_path: Path) -> None:
    lines = typed("rdgraph ledger", tmp_path).splitlines()
    assert "930 numbers and claims" in lines[0]
    assert max(map(len, lines[1:])) <= WIDTH
    shown = typed('rdgraph ledger show "GREAD-AC texas"', tmp_path)
    assert shown.startswith("cell: T8/GREAD-AC/texas\n")


@needs_texas
@pytest.mark.deep
@pytest.mark.slow
def test_a_reviewer_does_a_study_again(tmp_path: Path) -> None:
    try:
        load_dataset("texas", offline=True)
    except RdgraphError:
        pytest.skip("texas is not here")
    assert "wrote runs/classification-small/report.html" in typed("rdgraph study classification --small", tmp_path)


@pytest.mark.slow
def test_a_reviewer_asks_whether_a_layer_is_its_equation(tmp_path: Path) -> None:
    (tmp_path / "my_layer.py").write_text(
        "import torch\n\n\ndef layer(x, edge_index):\n"
        '    """-L@H with the row normalisation."""\n'
        "    n = len(x)\n    A = torch.zeros(n, n, dtype=x.dtype)\n    A[edge_index[1], edge_index[0]] = 1.0\n"
        "    d = A.sum(1, keepdim=True).clamp(min=1)\n    return A @ x / d - x\n"
    )
    typed('rdgraph conform my_layer:layer "-L@H"', tmp_path)
