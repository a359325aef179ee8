"""`rdgraph train` and `rdgraph presets` as a user meets them: files, columns, errors, resuming."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from gread.datasets.embedded import karate
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.presets import presets
from gread.training.trainer import train
from rdgraph.errors import FileError, InvalidArgument, MissingDependency, RdgraphError, UnknownName
from studies.runs import libraries
from studies.runs.index import read_entry
from studies.runs.tables import read_rows
from studies.training import training_figures as training_figures
from studies.training import training_summary as training_summary
from studies.training.choices import parse_splits, read_settings
from studies.training.plan import Request, make_plan, read_plan
from tests.paths import ROOT
from tests.report_pages import code_names
from tests.studies.cli.train_calls import rdgraph
from tests.studies.own_graph import club_files
from tests.warm_processes import run_warm

FIGURES = ("learning", "coefficients", "response", "confusion", "states")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The small mode in a process of its own, warnings as errors."""
    folder = tmp_path_factory.mktemp("train") / "run"
    environment = {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "PATH": "/usr/bin:/bin", "NO_COLOR": "1",
                   "OMP_NUM_THREADS": "1"}  # fmt: skip
    words = ["studies.cli.app", "train", "--small", "--out", str(folder)]
    done = run_warm(words, folder.parent, environment, is_strict=True)
    return folder, done


# ---------------------------------------------------------------------- the small mode, from end to end
def test_small_mode_leaves_every_file(small: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = small
    assert done.returncode == 0, done.stderr
    assert {p.name for p in folder.iterdir() if not p.name.startswith(".")} == {
        "config.toml", "constants.csv", "environment.json", "figures", "metrics.parquet", "network", "report.html",
        "report.json", "predictions.csv", "references.csv", "results.csv", "results.parquet", "state", "summary.csv",
    }  # fmt: skip
    expected = {f"{name}.{ending}" for name in FIGURES for ending in ("png", "pdf", "csv")}
    assert {p.name for p in (folder / "figures").iterdir()} == expected
    assert (folder / "state").read_text() == "done\n"
    assert "BS on karate: 34 nodes, 2 classes; preset quick; 3 trainings of 20 epochs on cpu" in done.stderr
    assert "epoch 20 of 20, loss " in done.stderr
    assert f"wrote {folder / 'report.html'}" in done.stdout


def test_small_mode_numbers_agree_with_each_other(small: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = small
    with (folder / "results.csv").open(encoding="utf-8") as file:
        assert next(csv.reader(file)) == ["split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status"]
    rows = read_rows(folder / "results.csv")
    assert [(r["split"], r["seed"], r["status"]) for r in rows] == [(0, 0, "ok"), (1, 0, "ok"), (2, 0, "ok")]
    table = parquet.read_table(folder / "metrics.parquet")
    assert table.column_names == [
        "split", "seed", "epoch", "loss", "train_accuracy", "val_accuracy", "test_accuracy",
    ]  # fmt: skip
    assert parquet.ParquetFile(folder / "metrics.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    metrics = {name: table[name].to_numpy() for name in table.column_names}
    assert len(metrics["epoch"]) == 3 * 20
    for row in rows:
        own = metrics["split"] == row["split"]
        val, test = metrics["val_accuracy"][own], metrics["test_accuracy"][own]
        assert metrics["epoch"][own].tolist() == list(range(1, 21))
        hits = np.round(val.astype(float) * karate().masks.val[int(row["split"])].sum())
        assert row["best_epoch"] == int(np.argmax(hits)) + 1  # the first best one, counted in nodes
        assert row["val_accuracy"] == pytest.approx(val.max())
        assert row["test_accuracy"] == pytest.approx(test[int(row["best_epoch"]) - 1])
    accuracy = 100 * np.array([r["test_accuracy"] for r in rows], dtype=float)
    assert f"Test accuracy {accuracy.mean():.2f} ± {accuracy.std():.2f} % (3 trials on 3 splits;" in done.stdout


def test_small_mode_keeps_the_network_and_the_settings(
    small: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _ = small
    network, data = Network.load(folder / "network"), karate()
    told = network.logits(data.x, data.graph).argmax(-1).numpy()
    test = data.masks.test[0]
    first = read_rows(folder / "results.csv")[0]
    assert (told == data.y)[test].mean() == pytest.approx(first["test_accuracy"])
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    head = {k: v for k, v in config.items() if k not in ("model", "training", "version", "source")}
    assert head == {"study": "train", "small": True, "dataset": "karate", "reaction": "BS", "preset": "quick",
                    "splits": [0, 1, 2], "seed": 0, "seeds": 1, "device": "cpu", "preset_epochs": 60}  # fmt: skip
    assert (config["model"]["hidden"], config["training"]["epochs"]) == (32, 20)
    assert read_settings(folder / "config.toml") == read_plan(folder).config
    assert len(json.loads((folder / "environment.json").read_text())["code"]) == 12


def test_report_needs_no_network(small: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = small
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page
    drawn = page.count('<img src="data:image/png;base64,'), page.count('<table class="map"')
    assert drawn == (len(FIGURES) - 1, 1)  # the confusion matrix is a table
    for words in (
        "Training BS on karate",
        "Zachary&#39;s karate club: 34 nodes",
        "metrics.parquet",
        "predictions.csv",
        "Learning curves",
    ):
        assert words in page
    assert "metrics.csv" not in page
    assert code_names(folder) == []
    assert "Gain g(λ)" in page
    entry = read_entry(folder, folder.parent)
    assert (entry.study, entry.small, entry.state) == ("train", True, "done")
    compared = ("label propagation", "the majority class", "a GCN")  # karate's features name the nodes: no MLP
    assert [verdict.statement for verdict in entry.verdicts] == [
        f"The network is more accurate than {reference} on the same splits." for reference in compared
    ]
    assert entry.picture is not None


def test_a_finished_folder_is_not_trained_again(small: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = small
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    again = rdgraph("train", "--resume", "--out", folder)
    assert again.exit_code == 0, again.output
    assert " ".join(done.stdout.partition("wrote")[0].split()) in " ".join(again.stdout.split())
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    refused = rdgraph("train", "--small", "--out", folder)
    assert isinstance(refused.exception, RdgraphError)
    assert "add --resume" in str(refused.exception)
    other = rdgraph("train", "--small", "--set", "hidden=8", "--resume", "--out", folder)
    assert "model.hidden = 32 there, 8 here" in str(other.exception)
    mixed = rdgraph("train", "--resume", "--out", folder, "--epochs", "3")
    assert "leave the others out" in str(mixed.exception)


# ---------------------------------------------------------------------- what a request becomes
def test_defaults_then_preset_then_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[model]\nreaction = "ST"\nhidden = 16\ntime = 2.0\n[training]\nepochs = 7\n')
    plan = make_plan(Request("karate", preset=str(file), settings={"hidden": "8"}))
    model = plan.config.model
    assert (model.reaction, model.hidden, model.time, model.heads, plan.config.training.epochs) == ("ST", 8, 2.0, 4, 7)
    assert plan.preset.source == "file mine.toml; changed here: hidden"
    assert make_plan(Request("karate", preset=str(file), reaction="FB")).reaction == "FB"
    defaults = make_plan(Request("karate", preset="defaults"))
    assert defaults.config == Config.for_own_data("gread").updated({"method": "exact", "states": "free"})
    assert defaults.method_reason.endswith("exact flow")
    assert make_plan(Request("karate")).preset.name == "quick"
    written = tmp_path / "config.toml"
    written.write_text(plan.run_config.toml(), encoding="utf-8")
    assert read_settings(written) == plan.config
    assert read_plan(tmp_path).run_config.toml() == plan.run_config.toml()


def test_trials_are_every_split_with_every_seed() -> None:
    plan = make_plan(Request("karate", splits="1,4-5", seeds=2, seed=3))
    assert [(t.split, t.seed) for t in plan.trials] == [(1, 3), (4, 3), (5, 3), (1, 4), (4, 4), (5, 4)]
    assert make_plan(Request("karate")).splits == tuple(range(10))
    assert parse_splits("2, 0-1,1", 3) == (2, 0, 1)
    with pytest.raises(InvalidArgument, match=r"among 0\.\.2, got 1-3"):
        parse_splits("1-3", 3)
    words = plan.command(Path("runs/x")).split()
    assert words[:8] == [
        "rdgraph",
        "train",
        "--dataset",
        "karate",
        "--preset",
        "runs/x/config.toml",
        "--splits",
        "1,4,5",
    ]
    assert words[8:] == ["--seed", "3", "--seeds", "2", "--device", "cpu"]


def test_a_graph_of_ones_own_gets_splits(tmp_path: Path) -> None:
    edges, nodes = club_files(tmp_path)
    plan = make_plan(Request(edges=edges, nodes=nodes))
    assert (plan.preset.dataset, plan.data.num_nodes, len(plan.splits), plan.preset.name) == (
        "club",
        34,
        10,
        "defaults",
    )
    (tmp_path / "config.toml").write_text(plan.run_config.toml(), encoding="utf-8")
    assert read_plan(tmp_path).run_config.toml() == plan.run_config.toml()
    assert training_summary.summarise(plan, [_row(0, 0.5)]).published is None


@pytest.mark.parametrize(
    ("words", "error", "needle"),
    [
        ((), InvalidArgument, "--dataset digits needs no download"),
        (("--dataset", "kora"), UnknownName, "did you mean 'cora'"),
        (("--dataset", "cora", "--root", "nowhere"), RdgraphError, "rdgraph data fetch cora"),
        (("--small", "--preset", "papre"), UnknownName, "did you mean 'paper'"),
        (("--small", "--preset", "paper"), InvalidArgument, "got BS on karate"),
        (("--small", "--preset", "no.toml"), FileError, "no.toml"),
        (("--small", "--splits", "10"), InvalidArgument, "among 0..9"),
        (("--small", "--splits", "3-1"), InvalidArgument, "among 0..9"),
        (("--small", "--splits", "one"), InvalidArgument, "all, 0,1,2 or 0-4"),
        (("--small", "--set", "hiden=3"), UnknownName, "did you mean 'hidden'"),
        (("--small", "--set", "hidden"), InvalidArgument, "NAME=VALUE"),
        (("--small", "--set", "hidden=wide"), InvalidArgument, "expected int for hidden"),
        (("--small", "--set", "epochs=3", "--epochs", "4"), InvalidArgument, "epochs is given twice"),
        (("--small", "--set", "relu=true", "--set", "relu=false"), InvalidArgument, "relu is given twice"),
        (("--small", "--set", "reaction=ST"), InvalidArgument, "--reaction ST"),
        (("--small", "--method", "rk5"), UnknownName, "did you mean 'rk4'"),
        (("--dataset", "karate", "--preset", "defaults", "--method", "rk4"), InvalidArgument, "--set step=0.5"),
        (("--small", "--epochs", "0"), InvalidArgument, "epochs >= 1"),
        (("--small", "--seeds", "0"), InvalidArgument, "1 to 10,000 seeds"),
        (("--small", "--reaction", "A*H"), RdgraphError, "use A@H"),
        (("--small", "--device", "gpu"), InvalidArgument, "cpu, cuda or cuda:N"),
        (("--small", "--edges", "e.csv"), InvalidArgument, "add --nodes FILE"),
        (("--nodes", "n.csv"), InvalidArgument, "add --edges FILE"),
        (("--dataset", "karate", "--edges", "e.csv", "--nodes", "n.csv"), InvalidArgument, "--edges exclude"),
        (("--resume", "--out", "nowhere"), InvalidArgument, "not a training run"),
    ],
)
def test_errors_come_before_any_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], error: type[Exception], needle: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RDGRAPH_DATA", "")
    run = rdgraph("train", *words)
    assert isinstance(run.exception, error), run.output
    assert needle in str(run.exception)
    assert not (tmp_path / "runs").exists()


def test_a_missing_library_is_named_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(libraries.EXTRAS, "gread", ("torch", "no_such_library"))  # type: ignore[arg-type]
    run = rdgraph("train", "--small")
    assert isinstance(run.exception, MissingDependency)
    assert "a training needs no_such_library" in str(run.exception)
    assert "pip install 'rdgraph[gread]'" in str(run.exception)


def _row(split: int, accuracy: float) -> dict[str, Any]:
    return {"split": split, "seed": 0, "test_accuracy": accuracy, "status": "ok"}


# ---------------------------------------------------------------------- presets
def test_presets_are_listed_with_their_sources() -> None:
    rows = json.loads(rdgraph("presets", "--json").stdout)
    assert sum(row["model"] == "gread" for row in rows) == 72 + 60  # the paper, its authors; modern
    assert [row["name"] for row in rows] == [p.name for p in presets()]
    assert all(row["source"] for row in rows)
    some = json.loads(rdgraph("presets", "--reaction", "BS", "--dataset", "Cora", "--json").stdout)
    assert [row["name"] for row in some] == ["paper/BS/cora", "authors/BS/cora", "modern/BS/cora"]
    lines = rdgraph("presets", "--reaction", "ST").stdout.splitlines()
    assert lines[0].startswith("19 presets")  # nine of the paper, ten modern ones
    chosen = next(p for p in presets() if p.name == "paper/ST/film").config
    film, *_ = (line.split() for line in lines if "paper/ST/film" in line)
    assert film[2:6] == [
        chosen.model.method,
        *(f"{v:.3g}" for v in (chosen.model.time, chosen.model.step, chosen.model.hidden)),
    ]
    assert [line for line in lines if line.startswith("paper/ST: GREAD (Choi et al., ICML 2023), appendix, Table 17")]


def test_a_preset_is_shown_as_toml(tmp_path: Path) -> None:
    text = rdgraph("presets", "show", "paper/BS/cora").stdout
    chosen = next(p for p in presets() if p.name == "paper/BS/cora")
    assert text.startswith(f"# paper/BS/cora\n# {chosen.source}\n[model]\n")
    assert Config.from_toml(text) == chosen.config
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    plan = make_plan(Request("karate", preset=str(tmp_path / "mine.toml")))
    assert plan.config == chosen.config


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (("show", "paper/BS/kora"), "did you mean 'paper/BS/cora'"),
        (("--reaction", "BSS"), "did you mean 'BS'"),
        (("--dataset", "karate"), "expected a data set with presets"),
        (("--dataset", "kora"), "did you mean 'cora'"),
    ],
)
def test_unknown_presets(words: tuple[str, ...], needle: str) -> None:
    run = rdgraph("presets", *words)
    assert isinstance(run.exception, UnknownName)
    assert needle in str(run.exception)


# ---------------------------------------------------------------------- texts from outside
LABELS = (r"$\frac{$", "_under", "<b>&amp;</b>", "[bold]red[/]", "a\tb $5 $6 \\$")


@pytest.mark.slow
def test_labels_of_any_kind_are_drawn_and_written_as_they_are(tmp_path: Path) -> None:
    """Formulas that are none, html, markup, a label that legends leave out: on the page they stand as they were."""
    count = 12 * len(LABELS)
    with (tmp_path / "[bold]x.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "x"])
        writer.writerows([k, LABELS[k % len(LABELS)], k % len(LABELS)] for k in range(count))
    pairs = "".join(f"{k},{(k + len(LABELS)) % count}\n" for k in range(count))
    (tmp_path / "e.csv").write_text(f"source,target\n{pairs}")
    words = ["--edges", tmp_path / "e.csv", "--nodes", tmp_path / "[bold]x.csv", "--splits", "0", "--epochs", "2"]
    run = rdgraph("train", *words, "--set", "hidden=4", "--device", "cpu", "--out", tmp_path / "[red]run")
    assert run.exit_code == 0, run.exception
    assert "on [bold]x:" in run.stderr
    assert f"wrote {tmp_path / '[red]run' / 'report.html'}" in run.stdout.replace("\n", "")
    page = (tmp_path / "[red]run/report.html").read_text(encoding="utf-8")
    assert "<b>&amp;</b>" not in page
    assert "Training BS on [bold]x" in page
    with (tmp_path / "[red]run/figures/confusion.csv").open(encoding="utf-8", newline="") as file:
        drawn = {row["class"] for row in csv.DictReader(file)}
    assert drawn == set(LABELS)


def test_matrices_and_given_letters_in_the_figure_of_coefficients(tmp_path: Path) -> None:
    """W is drawn entry by entry; the trusted nodes M are given, so that GRAND++ has nothing to draw."""
    settings = {"hidden": 4, "epochs": 2, "method": "euler", "step": 0.5}
    kinds = {"CGNN": {"W": "matrix"}, "GRAFF": {"W": "matrix"}, "GRAND++": {},
             "-alpha*L@H + beta*tanh(H@W)": {"W": "matrix", "alpha": "scalar", "beta": "channel"}}  # fmt: skip
    for reaction, expected in kinds.items():
        plan = make_plan(Request("karate", splits="0", reaction=reaction, settings=settings))
        done = train(plan.data, plan.trials, device="cpu")
        drawing = training_figures.coefficient_values(done, [0])
        rows = [] if drawing is None else drawing.rows
        found = {row["coefficient"]: row["kind"] for row in rows}
        assert expected.items() <= found.items(), reaction
        assert "M" not in found
        assert sum(row["coefficient"] == "W" for row in rows) == (16 if "W" in expected else 0)


# ---------------------------------------------------------------------- libraries
def test_extras_bring_what_pyproject_says() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    imported = {"scikit-learn": "sklearn", "torch-geometric": "torch_geometric"}

    def brings(extra: str) -> set[str]:
        found: set[str] = set()
        for text in declared[extra]:
            inner = re.fullmatch(r"rdgraph\[(\w+)\]", text)
            name = re.split(r"[>=;<\[ ]", text)[0]
            found |= brings(inner[1]) if inner else {imported.get(name, name)}
        return found

    for extra, known in libraries.EXTRAS.items():
        assert set(known) == brings(extra), extra


WITHOUT_TORCH = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
from typer.testing import CliRunner
from studies.cli import app as cli

print(json.dumps([str(CliRunner().invoke(cli.app, words).exception) for words in json.loads(sys.argv[1])]))
"""


def test_without_torch_every_program_names_the_extra_it_needs(tmp_path: Path) -> None:
    needs = {
        ("train", "--small"): "gread",
        ("study", "trained-energy", "--small"): "gread",
        ("study", "grid", "--small"): "torch",
        ("plot", "phase"): "torch",
    }
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, json.dumps(list(needs))], env={"PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for (words, extra), text in zip(needs.items(), json.loads(done.stdout), strict=True):
        assert text.partition(" needs ")[2].startswith("torch,"), words
        assert text.endswith(f": pip install 'rdgraph[{extra}]'"), words
    assert list(tmp_path.iterdir()) == []
