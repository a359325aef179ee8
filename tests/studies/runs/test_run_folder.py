"""StudyRun folders: resumed, interrupted, refused, and the same bytes from the same seed."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from rich.console import Console

from rdgraph.errors import FileError, InvalidArgument, RdgraphError, UnknownName
from rdgraph.files import replacing, write_text
from studies import catalogue as catalog
from studies.runs import study_run as run_module
from studies.runs.config import RunConfig
from studies.runs.index import write_index
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from studies.runs.tables import format_rows, parse_rows, read_rows, summary, write_rows
from tests.paths import ROOT


def toy(body: Callable[[StudyRun], object], numbers: dict[str, Any] | None = None, *, name: str = "toy") -> Study:
    """A study with a body of the test's choice."""
    chosen = numbers or {"alpha": 0.5, "times": [0.0, 1.0]}
    return Study(name, "A toy", "Does it run?", body, lambda small: {**chosen, "count": 2 if small else 3})


def whole(run: StudyRun) -> None:
    """A study that uses everything a run offers."""
    draws = run.generator("draws")
    rows = run.part("draws", lambda: [{"k": k, "x": float(draws.random())} for k in range(run.settings["count"])])
    figure = Figure()
    figure.subplots().plot([row["x"] for row in rows])
    run.say("First", "one\n\ntwo")
    run.figure("line", figure, "A line.", rows)
    run.animation("moving", lambda path: path.write_bytes(b"GIF89a"), "It moves.")
    run.table("rows", rows, "The rows.")
    run.verdict("It runs.", "holds", "It ran.")
    run.results(rows)


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


def state(folder: Path) -> str:
    return (folder / "state").read_text(encoding="utf-8").strip()


# ---------------------------------------------------------------------- tables
VALUES = st.one_of(st.floats(allow_nan=False), st.integers(), st.text(st.characters(exclude_categories=["Cs"])))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4))
def test_rows_come_back_as_they_were(pairs: list[tuple[Any, Any]]) -> None:
    rows = [{"first, \n": a, '"second"': b} for a, b in pairs]
    back = parse_rows(format_rows(rows))
    assert back == rows
    assert [[type(v) for v in row.values()] for row in back] == [[type(v) for v in row.values()] for row in rows]


def test_rows_of_every_kind(tmp_path: Path) -> None:
    rows = [
        {
            "n": math.nan,
            "i": -math.inf,
            "big": 10**30,
            "np": np.float64(0.1),
            "k": np.int64(3),
            "text": "1.0",
            "end": "\r\n",
        }
    ]
    write_rows(tmp_path / "t.csv", rows)
    (row,) = read_rows(tmp_path / "t.csv")
    assert math.isnan(float(row.pop("n")))
    assert row == {"i": -math.inf, "big": 10**30, "np": 0.1, "k": 3, "text": "1.0", "end": "\r\n"}
    assert format_rows([]) == ""
    assert parse_rows("") == []


@pytest.mark.parametrize("value", [None, True, [1], 1j])
def test_values_that_are_no_cells_are_refused(value: Any) -> None:
    with pytest.raises(RdgraphError, match="expected a float, an int or a str"):
        format_rows([{"x": value}])


def test_rows_share_their_columns() -> None:
    with pytest.raises(RdgraphError, match="expected the columns x in every row, got y in row 1"):
        format_rows([{"x": 1}, {"y": 1}])


@pytest.mark.parametrize("text", ['"x"\nword\n', '"x"\n1,2\n', '"x"\n"a"b\n'])
def test_a_damaged_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(RdgraphError, match="which was changed; delete it"):
        read_rows(tmp_path / "t.csv")


def test_summary_leaves_out_what_is_not_finite() -> None:
    rows = summary("p", [{"s": "a", "x": 1.0}, {"s": "b", "x": math.nan}, {"s": "c", "x": 4.0}])
    assert rows == [
        {"part": "p", "measure": "x", "count": 3, "not_finite": 1, "least": 1.0, "mean": 2.5, "largest": 4.0}
    ]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as draft:  # noqa: PT012
        draft.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert files(tmp_path) == {"a.txt"}


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


# ---------------------------------------------------------------------- interruption
def stopping(computed: list[str], stop: Callable[[], object] | None) -> Callable[[StudyRun], None]:
    def body(run: StudyRun) -> None:
        def compute(name: str) -> list[dict[str, float]]:
            computed.append(name)
            return [{"x": 0.1 + len(name)}]

        first = run.part("first", lambda: compute("first"))
        if stop is not None:
            stop()
        run.table("both", first + run.part("second", lambda: compute("second")), "Both parts.")

    return body


def raise_interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("stop", [raise_interrupt, lambda: os.kill(os.getpid(), signal.SIGTERM)])
def test_an_interrupted_run_is_valid_and_resumes(tmp_path: Path, stop: Callable[[], object]) -> None:
    computed: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        execute(toy(stopping(computed, stop)), tmp_path)
    assert signal.getsignal(signal.SIGTERM) is before
    assert state(tmp_path) == "interrupted"
    assert "This run was interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [row["part"] for row in read_rows(tmp_path / "metrics.csv")] == ["first"]
    execute(toy(stopping(computed, None)), tmp_path)
    assert computed == ["first", "second"]
    assert state(tmp_path) == "done"
    assert read_rows(tmp_path / "both.csv") == [{"x": 5.1}, {"x": 6.1}]
    assert "This run was interrupted" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_killed_run_resumes(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from studies.runs.study import Study, execute

def body(run):
    run.part("first", lambda: [{{"x": 5.1}}])
    run.part("second", lambda: os.kill(os.getpid(), signal.SIGKILL))

numbers = {{"alpha": 0.5, "times": [0.0, 1.0], "count": 3}}
study = Study("toy", "A toy", "Does it run?", body, lambda small: numbers)
execute(study, Path({str(tmp_path)!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert state(tmp_path) == "running"
    computed: list[str] = []
    execute(toy(stopping(computed, None)), tmp_path)
    assert computed == ["second"]
    assert state(tmp_path) == "done"


def test_ctrl_c_twice_leaves_a_run_that_says_so(tmp_path: Path) -> None:
    """The second signal comes while the report is written."""

    def body(run: StudyRun) -> None:
        finish = run.finish

        def interrupted(state: str, problem: str = "") -> None:
            signal.raise_signal(signal.SIGINT)
            finish(state, problem)

        run.finish = interrupted  # type: ignore[method-assign]
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        execute(toy(body), tmp_path)
    assert state(tmp_path) == "interrupted"
    assert "This run was interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_interruption_of_the_report_is_no_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    presses = [signal.SIGINT]
    render = run_module.report.render

    def pressed(page: Any) -> str:
        if presses:
            signal.raise_signal(presses.pop())
        return render(page)

    monkeypatch.setattr(run_module.report, "render", pressed)
    with pytest.raises(KeyboardInterrupt):
        execute(toy(whole), tmp_path)
    assert state(tmp_path) == "interrupted"
    execute(toy(whole), tmp_path)
    assert state(tmp_path) == "done"


def test_a_full_disk_does_not_hide_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(run: StudyRun) -> None:
        def refuse(*_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "open", refuse)
        raise ZeroDivisionError("the first")

    with pytest.raises(ZeroDivisionError, match="the first"):
        execute(toy(body), tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"code": 3}', '{"earlier_code": 3, "code": "a"}', "\xff"])
def test_a_damaged_environment_is_refused(tmp_path: Path, text: str) -> None:
    execute(toy(whole), tmp_path)
    (tmp_path / "environment.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match="got a file that was changed; delete the folder"):
        execute(toy(whole), tmp_path)


@pytest.mark.parametrize("text", ["\xff", "settings = 3"])
def test_damaged_settings_are_refused(tmp_path: Path, text: str) -> None:
    execute(toy(whole), tmp_path)
    (tmp_path / "config.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(RdgraphError, match=r"in UTF-8|that no study wrote"):
        execute(toy(whole), tmp_path)


@pytest.mark.parametrize("name", ["report.json", "config.toml", "state", "figures/line.png"])
def test_an_index_over_damaged_runs_names_them(tmp_path: Path, name: str) -> None:
    execute(toy(whole), tmp_path / "toy")
    assert write_index(tmp_path).is_file()
    path = tmp_path / "toy" / name
    path.unlink() if name.endswith("png") else path.write_bytes(b"\xff")
    with pytest.raises(FileError, match=r"expected the run of a study in|in UTF-8"):
        write_index(tmp_path)


def test_a_part_is_not_left_half_written(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        run.part("bad", lambda: [{"x": 1.0}, {"x": None}])  # type: ignore[list-item]

    with pytest.raises(RdgraphError, match="expected a float"):
        execute(toy(body), tmp_path)
    assert state(tmp_path) == "failed"
    assert not (tmp_path / "parts").exists()
    assert "InvalidArgument: expected a float" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_parts_of_other_code_are_kept_and_reported(tmp_path: Path) -> None:
    execute(toy(whole), tmp_path)
    path = tmp_path / "environment.json"
    assert "earlier state of it" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "code": "0" * 12}))
    execute(toy(whole), tmp_path)
    assert json.loads(path.read_text(encoding="utf-8"))["earlier_code"] == ["0" * 12]
    assert "earlier state of it" in (tmp_path / "report.html").read_text(encoding="utf-8")


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
    with pytest.raises(RdgraphError, match=r"letter\.txt in it; choose another with --out"):
        execute(toy(whole), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RdgraphError, match="expected a place that can be written"):
            execute(toy(whole), place)
    assert files(tmp_path) == {"file"}


def test_a_folder_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[broken")
    with pytest.raises(RdgraphError, match=r"a config\.toml that no study wrote"):
        execute(toy(whole), tmp_path)
    (tmp_path / "config.toml").write_text("colour = 1")
    with pytest.raises(RdgraphError, match="study = None there, 'toy' here"):
        execute(toy(whole), tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RdgraphError, match="expected a place that can be written"):
            execute(toy(whole), tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        with pytest.raises(RdgraphError, match="where a study is running"):
            execute(toy(whole), tmp_path)

    execute(toy(body), tmp_path)
    assert state(tmp_path) == "done"


@pytest.mark.parametrize(
    ("act", "needle"),
    [
        (lambda run: run.part("../up", list), "expected a name of letters"),
        (lambda run: [run.part("a", list) for _ in range(2)], "for the second time"),
        (lambda run: run.table("results", [], ""), "expected another name than results"),
        (lambda run: [run.results([]) for _ in range(2)], "for the second time"),
        (lambda run: run.verdict("x", "maybe", ""), "expected one of holds, fails, undecided or 'holds if ...'"),
    ],
)
def test_misuse_is_refused(tmp_path: Path, act: Callable[[StudyRun], object], needle: str) -> None:
    with pytest.raises(RdgraphError, match=needle):
        execute(toy(act), tmp_path)


@pytest.mark.parametrize(
    ("options", "needle"),
    [
        ({"seed": -1}, "seed of 0 or more"),
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
def test_bars_on_a_terminal_and_silence_elsewhere(tmp_path: Path, terminal: bool) -> None:
    shown = StringIO()
    found: list[tuple[int, int]] = []

    def body(run: StudyRun) -> None:
        found.extend((a, b) for a in run.progress(range(2), "outer") for b in run.progress(iter([1]), "inner", 1))

    execute(toy(body), tmp_path, console=Console(file=shown, force_terminal=terminal, width=80))
    assert found == [(0, 1), (1, 1)]
    assert ("outer" in shown.getvalue()) is terminal
    assert bool(shown.getvalue()) is terminal


def test_a_number_that_there_is_not_is_unknown_in_a_sentence(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        run.verdict("It is larger.", "undecided", f"difference 1.00 (error {float('nan'):.2f}); banana")
        run.answer(f"The difference is {float('nan'):+z.2f} points.")

    execute(toy(body), tmp_path / "run")
    outline = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert outline["verdicts"][0]["evidence"] == "difference 1.00 (error unknown); banana"
    assert outline["answer"] == "The difference is unknown points."
