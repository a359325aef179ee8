"""StudyRun folders: everything in them, the same bytes from the same seed, what is refused, and progress."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rdgraph.errors import InvalidArgument, RdgraphError, UnknownName
from studies import registered_studies as catalog
from studies.runs.run_config import RunConfig
from studies.runs.study import execute
from studies.runs.study_run import StudyRun
from studies.runs.tables import read_rows
from tests.studies.runs.toy_studies import files, state, toy, whole


# ---------------------------------------------------------------------- the folder
def test_a_run_leaves_everything(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "toy"
    assert execute(toy(whole), folder, small=True, seed=7) == folder / "report.html"
    assert files(folder) == {
        "config.toml", "environment.json", "metrics.csv", "parts/draws.csv", "report.html", "report.json",
        "results.csv", "results.parquet", "rows.csv", "state", "figures/line.png", "figures/line.pdf",
        "figures/line.csv", "figures/moving.gif",
    }  # fmt: skip
    assert state(folder) == "done"
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    assert config == {
        "study": "toy", "small": True, "seed": 7, "device": "cpu", "version": "0.1.0",
        "settings": {"alpha": 0.5, "times": [0.0, 1.0], "count": 2},
    }  # fmt: skip
    environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    assert environment["libraries"]["numpy"] == np.__version__
    assert environment["seconds"] >= 0
    rows = read_rows(folder / "results.csv")
    assert [row["k"] for row in rows] == [0, 1]
    measured = {row["measure"]: row for row in read_rows(folder / "metrics.csv")}
    assert measured["x"]["mean"] == pytest.approx((rows[0]["x"] + rows[1]["x"]) / 2)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        execute(toy(whole), tmp_path / name, seed=seed)
    tables = [sorted(p.relative_to(tmp_path / n) for p in (tmp_path / n).rglob("*.csv")) for n in "abc"]
    assert tables[0] == tables[1] == tables[2] != []
    for name in tables[0]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a/parts/draws.csv").read_bytes() != (tmp_path / "c/parts/draws.csv").read_bytes()


def test_streams_depend_on_seed_and_name_alone(tmp_path: Path) -> None:
    drawn: list[float] = []

    def body(run: StudyRun) -> None:
        run.generator("other").random(100)
        drawn.extend(run.generator(name).random() for name in ("a", "b", "a"))

    execute(toy(body), tmp_path / "x")
    assert drawn[0] == drawn[2] != drawn[1]


# ---------------------------------------------------------------------- what is refused
def test_a_folder_of_other_settings_is_refused(tmp_path: Path) -> None:
    execute(toy(whole), tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    for options, needle in (({"seed": 1}, "seed = 0 there, 1 here"), ({"small": True}, "small = False there")):
        with pytest.raises(RdgraphError, match=f"(?s){needle}.*--out"):
            execute(toy(whole), tmp_path, **options)
    with pytest.raises(RdgraphError, match=r"alpha = 0\.5 there, 0\.7 here"):
        execute(toy(whole, {"alpha": 0.7, "times": [0.0, 1.0]}), tmp_path)
    with pytest.raises(RdgraphError, match="study = 'toy' there, 'other' here"):
        execute(toy(whole, name="other"), tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RdgraphError, match=r"letter\.txt.*--out"):
        execute(toy(whole), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RdgraphError, match="cannot write"):
            execute(toy(whole), place)
    assert files(tmp_path) == {"file"}


def test_a_folder_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[broken")
    with pytest.raises(RdgraphError, match="not written by a study"):
        execute(toy(whole), tmp_path)
    (tmp_path / "config.toml").write_text("colour = 1")
    with pytest.raises(RdgraphError, match="study = None there, 'toy' here"):
        execute(toy(whole), tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RdgraphError, match="cannot write"):
            execute(toy(whole), tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        with pytest.raises(RdgraphError, match="another study is writing"):
            execute(toy(whole), tmp_path)

    execute(toy(body), tmp_path)
    assert state(tmp_path) == "done"


@pytest.mark.parametrize(
    ("act", "needle"),
    [
        (lambda run: run.part("../up", list), "consists of letters"),
        (lambda run: [run.part("a", list) for _ in range(2)], "two parts called 'a'"),
        (lambda run: run.table("results", [], ""), "results and metrics are reserved"),
        (lambda run: [run.results([]) for _ in range(2)], "two tables called 'results'"),
        (lambda run: run.verdict("x", "maybe", ""), "expected one of holds, fails, undecided or 'holds if ...'"),
    ],
)
def test_misuse_is_refused(tmp_path: Path, act: Callable[[StudyRun], object], needle: str) -> None:
    with pytest.raises(RdgraphError, match=needle):
        execute(toy(act), tmp_path)


@pytest.mark.parametrize(
    ("options", "needle"),
    [
        ({"seed": -1}, "must be 0 or more"),
        ({"device": "tpu"}, "expected the device cpu, cuda or cuda:N"),
        ({"device": "cuda:99"}, "such devices; choose cpu"),
    ],
)
def test_bad_options_leave_no_folder(tmp_path: Path, options: dict[str, Any], needle: str) -> None:
    with pytest.raises(RdgraphError, match=needle):
        execute(toy(whole), tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()


def test_settings_are_written_as_toml() -> None:
    chosen = {"a b": 'q"\\\n\x7f', "f": 1e-9, "l": [1, 2.5], "t": ("x",), "yes": True, "λ": 1}
    config = RunConfig("toy", sections={"settings": chosen})
    assert tomllib.loads(config.toml())["settings"] == {**chosen, "t": ["x"]}
    assert config.differences(config.toml()) == []
    other = RunConfig("other", sections={"settings": {"f": 2.0}})
    assert config.differences(other.toml()) == [
        "study = 'other' there, 'toy' here"
    ]  # its settings are beside the point
    for wrong in ({}, None, [1, None], np.int64(3)):
        with pytest.raises(InvalidArgument, match="numbers, texts or lists"):
            RunConfig("toy", sections={"settings": {"a": wrong}}).toml()


def test_unknown_study() -> None:
    with pytest.raises(UnknownName, match="did you mean 'grid'"):
        catalog.find_study("gird")


# ---------------------------------------------------------------------- progress
@pytest.mark.parametrize("terminal", [True, False])
def test_parts_are_counted_on_a_terminal_and_short_work_is_silent_elsewhere(tmp_path: Path, terminal: bool) -> None:
    shown = StringIO()
    texts = []

    def body(run: StudyRun) -> None:
        for _ in run.progress(range(2), "outer"):
            texts.append(run.status.text)
            texts.extend(run.status.text for _ in run.progress(iter([1]), "inner", 1))

    execute(toy(body), tmp_path, console=Console(file=shown, force_terminal=terminal, width=80))
    assert texts == ["outer 1 of 2", "inner 1 of 1", "outer 2 of 2", "inner 1 of 1"]
    assert bool(shown.getvalue()) is terminal


def test_a_number_that_there_is_not_is_unknown_in_a_sentence(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        run.verdict("It is larger.", "undecided", f"difference 1.00 (error {float('nan'):.2f}); banana")
        run.answer(f"The difference is {float('nan'):+z.2f} points.")

    execute(toy(body), tmp_path / "run")
    outline = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert outline["verdicts"][0]["evidence"] == "difference 1.00 (error unknown); banana"
    assert outline["answer"] == "The difference is unknown points."
