"""All measurements as one command: what is run, beside what, what is gone on with, and what is kept."""

from __future__ import annotations

import json
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rdgraph.errors import InvalidArgument
from studies.benchmarks import card_share, measure_all, measurements
from studies.benchmarks.measure_all import Queue
from studies.benchmarks.measurements import Measurement
from studies.catalogue import find_study


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Measurement, ...]:
    """A program that copies a file, one that fails, and one that takes a minute."""
    source = tmp_path / "source.json"
    source.write_text('{"rows": []}')
    found = (
        Measurement("short", ("json.tool", str(source), "{out}"), "short.json", "kept.json", (("json.tool", "{out}"),)),
        Measurement("wrong", ("json.tool", "no such file"), "wrong.json"),
        Measurement("long", ("timeit", "-n1", "-r1", "import time; time.sleep(60)"), "long", alone=True),
    )
    monkeypatch.setattr(measure_all, "measurements", lambda: found)
    return found


def test_what_is_done_is_not_run_again_and_what_was_cut_is(three: tuple[Measurement, ...], tmp_path: Path) -> None:
    folder = tmp_path / "measured"
    asked = ["--device", "cpu", "--out", str(folder), "--only"]
    assert measure_all.main([*asked, "short", "wrong"]) == 1
    assert measure_all.main([*asked, "long", "--seconds", "1"]) == 1
    state = json.loads((folder / "state.json").read_text())
    assert {name: one["state"] for name, one in state.items()} == {
        "short": "done", "wrong": "failed", "long": "interrupted",
    }  # fmt: skip
    assert state["long"]["code"] != -signal.SIGKILL
    assert json.loads((folder / "short.json").read_text()) == {"rows": []}
    (folder / "short.json").write_text("mine")
    queue = Queue(folder, "cpu", 1)
    queue.run([three[0], three[2]], 1.0)
    assert (folder / "short.json").read_text() == "mine"
    assert queue.state["long"]["seconds"] > state["long"]["seconds"]


def test_what_takes_times_runs_alone(three: tuple[Measurement, ...], tmp_path: Path) -> None:
    queue, (short, wrong, alone) = Queue(tmp_path, "cpu", 2), three
    assert queue._has_room(alone)
    queue._running = {"short": (None, 0.0)}  # type: ignore[dict-item]
    assert queue._has_room(wrong)
    assert not queue._has_room(alone)
    queue._running["wrong"] = (None, 0.0)  # type: ignore[assignment]
    assert not queue._has_room(short)
    queue._running = {"long": (None, 0.0)}  # type: ignore[dict-item]
    assert not queue._has_room(short)


def test_a_file_is_kept_once_all_of_its_parts_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_all, "DOCS", tmp_path)
    parts = [Measurement(name, ("m",), f"{name}.json", "both.json", (("page", "{out}"),)) for name in ("a", "b")]
    parts.append(Measurement("c", ("m",), "a.json", "copy.json"))
    monkeypatch.setattr(measure_all, "measurements", lambda: tuple(parts))
    for name, dataset in (("a", "cora"), ("b", "texas")):
        rows = [{"contestant": "BS", "dataset": dataset, "mean": 1.0}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"rows": rows}))
    queue = Queue(tmp_path, "cpu", 1)
    queue.state = {"a": {"state": "done"}, "b": {"state": "interrupted"}}
    assert queue.keep(parts) == []
    assert queue.keep(parts[:1]) == []  # the others of a file count, asked for or not
    assert not (tmp_path / "both.json").exists()
    queue.state["b"] = {"state": "done"}
    assert queue.keep(parts) == [["page", str(tmp_path / "a.json")], ["page", str(tmp_path / "b.json")]]
    assert {row["dataset"] for row in json.loads((tmp_path / "both.json").read_text())["rows"]} == {"cora", "texas"}
    assert not (tmp_path / "copy.json").exists()
    queue.state["c"] = {"state": "done"}
    assert queue.keep(parts[2:]) == []
    assert (tmp_path / "copy.json").read_text() == (tmp_path / "a.json").read_text()


def test_every_measurement_names_programs_that_there_are() -> None:
    found = measurements.measurements()
    assert len({one.name for one in found}) == len(found)
    for one in found:
        for module, *rest in (one.words, *one.pages):
            assert find_spec(module) is not None, module
            assert rest[:1] != ["study"] or find_study(rest[1]).name == rest[1]
    with pytest.raises(InvalidArgument, match="among model-speed, "):
        measure_all.measurements_by_name(["nothing"])


def test_a_program_gets_its_own_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, out = tmp_path / "a.json", tmp_path / "b.json"
    source.write_text("[1]")
    monkeypatch.setattr(sys, "argv", ["card_share", "0.5", "json.tool", str(source), str(out)])
    card_share.main()
    assert json.loads(out.read_text()) == [1]
