"""All measurements as one command: what is run, what runs alone, what is resumed, and what is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rdgraph.errors import InvalidArgument
from studies.benchmarks import everything
from studies.benchmarks.__main__ import PROGRAMS, main, parser_of
from studies.benchmarks.everything import Measurement, Queue, measurements, of_study
from studies.benchmarks.pages import PAGES
from studies.benchmarks.result_files import write_json
from studies.cells.cell import ALL_TRAINED
from studies.ledger.printed_numbers import measured_claims
from studies.registered_studies import find_study
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun


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
    monkeypatch.setattr(everything, "measurements", lambda: found)
    return found


def test_what_is_done_is_not_run_again_and_what_was_cut_is(three: tuple[Measurement, ...], tmp_path: Path) -> None:
    folder = tmp_path / "measured"
    asked = ["all", "--device", "cpu", "--out", str(folder), "--only"]
    assert main([*asked, "short", "wrong"]) == 1
    assert main([*asked, "long", "--seconds", "1"]) == 1
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
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(everything, "RESULTS", docs)
    parts = [Measurement(name, ("m",), "both.json", "both.json", (("page", "{out}"),)) for name in ("a", "b")]
    parts.append(Measurement("c", ("m",), "both.json", "copy.json"))
    monkeypatch.setattr(everything, "measurements", lambda: tuple(parts))
    (tmp_path / "both.json").write_text('{"cora": 1, "texas": 2}')
    queue = Queue(tmp_path, "cpu", 1)
    queue.state = {"a": {"state": "done"}, "b": {"state": "interrupted"}}
    assert queue.keep(parts) == []
    assert queue.keep(parts[:1]) == []  # the others of a file count, asked for or not
    assert not (docs / "both.json").exists()
    queue.state["b"] = {"state": "done"}
    assert queue.keep(parts) == [["page", str(tmp_path / "both.json")]]
    assert json.loads((docs / "both.json").read_text()) == {"cora": 1, "texas": 2}
    assert not (docs / "copy.json").exists()


def test_parts_of_a_table_join_what_there_is_and_newer_cells_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(everything, "RESULTS", docs)

    def write(path: Path, **means: int) -> None:
        rows = [{"contestant": "BS", "dataset": name, "mean": mean} for name, mean in means.items()]
        path.write_text(json.dumps({"rows": rows}))

    parts = [
        Measurement(name, ("m",), f"{name}.json", "table.json", is_in_cells=True, dataset=dataset)
        for name, dataset in (("one", "cora"), ("two", "texas"), ("last", ""))
    ]
    monkeypatch.setattr(everything, "measurements", lambda: tuple(parts))
    write(docs / "table.json", cora=1, film=1)
    write(tmp_path / "one.json", cora=2)
    write(tmp_path / "last.json", cora=1, film=1, tolokers=3)  # a copy of the table, and a cell more
    Queue(tmp_path, "cpu", 1).keep(parts)
    found = {row["dataset"]: row["mean"] for row in json.loads((docs / "table.json").read_text())["rows"]}
    assert found == {"cora": 2, "film": 1, "tolokers": 3}


def test_every_measurement_is_a_program_with_its_options_and_pages() -> None:
    found = measurements()
    assert len({one.name for one in found}) == len(found)
    for one in found:
        for module, *rest in (one.filled(words, Path("out"), "cpu") for words in (one.words, *one.pages)):
            assert find_spec(module) is not None, module
            if module == "studies.benchmarks":
                assert rest[0] in PROGRAMS
                assert parser_of(rest[0]).parse_args(rest[1:])
                assert rest[0] != "pages" or rest[1] in PAGES
            elif rest[:1] == ["study"]:
                assert find_study(rest[1]).name == rest[1]
    with pytest.raises(InvalidArgument, match="among model-speed, "):
        everything.measurements_by_name(["nothing"])


def test_every_study_that_decides_a_sentence_is_measured_and_paged() -> None:
    found = {one.name: one for one in measurements()}
    assert all(found[claim.study.replace("_", "-")].pages for claim in measured_claims().values())
    assert found["complexity"].alone  # it takes times


def test_a_program_gets_its_own_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, out = tmp_path / "a.json", tmp_path / "b.json"
    source.write_text("[1]")
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    main(["share", "0.5", "json.tool", str(source), str(out)])
    assert json.loads(out.read_text()) == [1]


def test_cells_are_kept_as_they_come_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs, folder, later = (tmp_path / name for name in ("docs", "measured", "later"))
    for place in (docs, folder, later):
        place.mkdir()
    monkeypatch.setattr(everything, "RESULTS", docs)
    parts = [
        Measurement(name, ("m",), f"{name}.json", "both.json", (("page",),), is_in_cells=True, dataset=name)
        for name in ("cora", "texas")
    ]
    monkeypatch.setattr(everything, "measurements", lambda: tuple(parts))
    row = {"contestant": "BS", "dataset": "cora", "mean": 1.0}
    (docs / "both.json").write_text(json.dumps({"rows": [row | {"dataset": "texas"}]}))
    (folder / "cora.json").write_text(json.dumps({"rows": [row], "command": "c"}))
    queue = Queue(folder, "cpu", 1)
    queue.state = {"cora": {"state": "interrupted"}}
    assert queue.keep(parts) == [["page"]]
    assert [kept["dataset"] for kept in json.loads((docs / "both.json").read_text())["rows"]] == ["cora", "texas"]
    queue = Queue(later, "cpu", 1)
    queue.restore(parts)
    assert json.loads((later / "cora.json").read_text())["rows"] == [row]
    assert json.loads((later / "texas.json").read_text())["rows"] == [row | {"dataset": "texas"}]
    (later / "cora.json").write_text("mine")
    queue.restore(parts)
    assert (later / "cora.json").read_text() == "mine"


def test_a_study_under_way_goes_on_from_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that were computed are not computed again."""
    monkeypatch.setattr(everything, "RESULTS", tmp_path / "docs")
    computed: list[int] = []

    def body(run: StudyRun) -> None:
        for k in range(3):
            if k == 2 and len(computed) == 2:
                raise KeyboardInterrupt
            run.part(f"part-{k}", lambda k=k: [computed.append(k) or {"k": k, "third": k / 3}])  # type: ignore[misc]

    study, one = Study("thirds", "Thirds", "What is k/3?", body), of_study("depth")
    with pytest.raises(KeyboardInterrupt):
        execute(study, tmp_path / "here" / one.result)
    here, there = Queue(tmp_path / "here", "cpu", 1), Queue(tmp_path / "there", "cpu", 1)
    assert here.keep([one]) == []
    there.restore([one])
    assert there.keep([one]) == []  # restored, and not begun
    for name in ("part-0", "part-1"):
        texts = [(queue.folder / one.result / "parts" / f"{name}.csv").read_bytes() for queue in (here, there)]
        assert texts[0] == texts[1]
    computed.append(-1)
    execute(study, tmp_path / "there" / one.result)
    assert computed == [0, 1, -1, 2]
    there.state = {one.name: {"state": "done"}}
    assert there.keep([one])
    kept = json.loads((tmp_path / "docs" / "parts" / "depth.json").read_text())
    assert list(kept["parts"]) == ["part-0", "part-1", "part-2"]
    assert kept["state"] == "done"
    assert here.keep([one]) == []  # what was cut off does not take the place of what is finished
    assert json.loads((tmp_path / "docs" / "parts" / "depth.json").read_text()) == kept
    assert kept["environment.json"]["python"]


@pytest.mark.parametrize("lacks", [False, True])
def test_a_study_that_lacks_cells_is_not_done(lacks: bool, tmp_path: Path) -> None:
    one = of_study("depth")
    queue, statement = Queue(tmp_path, "cpu", 1), ALL_TRAINED if lacks else "Another one."
    (tmp_path / one.result).mkdir()
    (tmp_path / one.result / "report.json").write_text(json.dumps({"verdicts": [{"statement": statement}]}))
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    queue._running = {one.name: (process, 0.0)}  # type: ignore[dict-item]
    queue._collect()
    assert queue.state[one.name]["state"] == ("failed" if lacks else "done")


@pytest.mark.parametrize("failed", [{}, {"BS/texas": "out of memory on the GPU"}])
def test_a_table_with_cells_that_failed_is_not_done(failed: dict[str, str], tmp_path: Path) -> None:
    (one,) = everything.measurements_by_name(["searched-texas"])
    queue = Queue(tmp_path, "cpu", 1)
    write_json(tmp_path / one.result, {"rows": [], "failed": failed})
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    queue._running = {one.name: (process, 0.0)}  # type: ignore[dict-item]
    queue._collect()
    assert queue.state[one.name]["state"] == ("failed" if failed else "done")


def test_the_share_of_a_card_is_set_once() -> None:
    """Concurrent programs leave it to `share`."""
    folder = Path(everything.__file__).parent
    setting = {
        path.stem for path in folder.glob("*.py") if "set_per_process_memory_fraction" in path.read_text("utf-8")
    }
    assert setting == {"everything"}


@pytest.mark.deep
@pytest.mark.slow
def test_the_report_of_a_finished_study_is_rebuilt_from_stored_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebuilt folder has the tables of the measured one; an interrupted study has no page."""
    docs, one, other = tmp_path / "docs", of_study("significance"), of_study("depth")
    monkeypatch.setattr(everything, "RESULTS", docs)
    here = Queue(tmp_path / "here", "cpu", 1)
    words = ["study", one.name, "--small", "--device", "cpu", "--out", str(here.folder / one.result)]
    subprocess.run([sys.executable, "-m", "studies.cli.app", *words], check=True)
    here.state = {one.name: {"state": "done"}}
    here.keep([one])
    (docs / "parts" / "depth.json").write_text(json.dumps({"state": "interrupted"}))
    there = Queue(tmp_path / "there", "cpu", 1)
    rebuild, page = there.rebuilding([one, other])
    assert page == ["studies.runs.kept_page", str(there.folder / one.result)]
    subprocess.run([sys.executable, "-m", *rebuild], check=True)
    tables = [(queue.folder / one.result / "results.csv").read_bytes() for queue in (here, there)]
    assert tables[0] == tables[1]
    environments = [json.loads((q.folder / one.result / "environment.json").read_text()) for q in (here, there)]
    assert environments[1].pop("retold")
    assert environments[0]["seconds"] == environments[1]["seconds"]
    with pytest.raises(InvalidArgument, match="depth"):
        there.rebuilding([other])
