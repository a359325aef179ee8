"""Runs every measurement that needs a GPU, resumably, stores the results and writes their pages.

Programs that measure time run one after the other, others several at once, until all are done or the time is up;
unfinished ones are then interrupted, and the same command resumes them. FOLDER/state.json has the state of each,
FOLDER/NAME.log its output. Results are stored in studies/results/: files of rows and cells, and for studies the parts
in studies/results/parts/, from which they are resumed and their reports rebuilt.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rdgraph.errors import InvalidArgument
from rdgraph.files import read_text, write_text
from studies.benchmarks.rates import TARGETS
from studies.benchmarks.result_files import RESULTS, cells_of_set, joined_cells, read_cells, say, write_json
from studies.benchmarks.searched import OTHERS
from studies.cells.cell import ALL_TRAINED, SETS

DONE, FAILED, CUT = "done", "failed", "interrupted"
#: Seconds in which an interrupted program may end by itself.
PATIENCE = 20.0
#: The share of the GPU's memory that concurrent programs divide.
MEMORY = 0.9
#: Studies that train, in the order of the paper's tables and figures.
STUDIES = (
    "trained-energy", "classification", "ablation", "sensitivity", "homophily", "depth", "significance", "embeddings",
    "wellposedness", "forensics", "recipe",
)  # fmt: skip
#: What runs a study.
STUDY = ("studies.cli.app", "study")
#: Where a search over equations stores its rounds, and one over settings its larger checkpoints.
ROUNDS, CHECKPOINTS = ("--folder", "{out}.rounds"), ("--folder", "{checkpoints}")
#: What runs a program of this package.
BENCHMARK = "studies.benchmarks"
#: The results folder with the parts of studies, and the other files that a run folder needs.
PARTS = "parts"
SETTINGS, ENVIRONMENT = "config.toml", "environment.json"
#: The file of a run folder that says whether it is finished.
STATE = "state"


# ---------------------------------------------------------------------- what is measured
@dataclass(frozen=True)
class Measurement:
    """A resumable program of this package, and where its result is stored.

    Args:
        name: Its name on the command line.
        words: Module and arguments; `{out}` is the path of its result, `{device}` the device, `{checkpoints}` a folder
            for unfinished work.
        result: The file or folder that it writes; several may share one.
        kept: The stored results file; empty for studies, whose parts are stored.
        pages: Programs that write pages once all measurements of the same `kept` are done; `{out}` as above.
        alone: Whether it measures time, so that nothing else may run at once.
        is_in_cells: Whether its result is a file of cells, which can be stored one by one.
        dataset: The data set whose cells it measures, if the stored file has cells of several measurements.
    """

    name: str
    words: tuple[str, ...]
    result: str
    kept: str = ""
    pages: tuple[tuple[str, ...], ...] = ()
    alone: bool = False
    is_in_cells: bool = False
    dataset: str = ""

    def filled(self, words: tuple[str, ...], folder: Path, device: str, checkpoints: Path | None = None) -> list[str]:
        """Words with their placeholders filled in; checkpoints are in the results folder unless given.

        >>> depth = of_study("depth")
        >>> depth.filled(depth.words, Path("measured"), "cpu")[-4:]
        ['--device', 'cpu', '--out', 'measured/depth']
        """
        unfinished = checkpoints or folder / "checkpoints"
        return [word.format(out=folder / self.result, device=device, checkpoints=unfinished) for word in words]


def of_study(name: str, *, alone: bool = False) -> Measurement:
    """A study; its page is written from its run folder."""
    words = (*STUDY, name, "--device", "{device}", "--out", "{out}")
    return Measurement(name, words, name, pages=(("studies.runs.kept_page", "{out}"),), alone=alone)


def _benchmark(
    program: str, *words: str, end: str = "", page: str = "", is_in_cells: bool = False, dataset: str = ""
) -> Measurement:
    """A program of this package that writes one file of results: times, or cells.

    A part of a table, one with an `end`, has a separate file until it is joined with the others.
    """
    command = (BENCHMARK, program, "--device", "{device}", *words, "--out", "{out}")
    pages = ((BENCHMARK, "pages", page),) if page else ()
    name, file = program + (f"-{end}" if end else ""), f"{program.replace('-', '_')}.json"
    result = f"{name}.json" if is_in_cells and end else file
    return Measurement(name, command, result, file, pages, not is_in_cells, is_in_cells, dataset)


def _by_set(program: str, dataset: str, words: tuple[str, ...]) -> Measurement:
    """The cells of one data set, a part of the table of a program."""
    return _benchmark(
        program, "--set", dataset, *words, end=dataset, page=program, is_in_cells=True, dataset=dataset
    )  # fmt: skip


def measurements() -> tuple[Measurement, ...]:
    """All measurements, those of time first."""
    searches = {name: [] if name in TARGETS else ["--samples", "0"] for name in SETS}
    return (
        _benchmark("model-speed", page="compared"),
        *(_benchmark("search-speed", "--dataset", name, *words, end=name, page="performance")
          for name, words in searches.items()),
        *(_benchmark("large-graphs", "--size", size, end=size, page="performance")
          for size in ("products", "ten-million")),
        _benchmark("printed-speed", page="performance"),
        *(of_study(name, alone=True) for name in ("runtime", "complexity")), *map(of_study, STUDIES),
        *(_by_set("searched", name, CHECKPOINTS) for name in (*SETS, *OTHERS)),
        _benchmark("distilled", page="distilled", is_in_cells=True),
        *(_by_set("discovered", name, ROUNDS) for name in SETS),
        _benchmark("discovered", "--contestant", "transfer", end="transfer", page="discovered", is_in_cells=True),
    )  # fmt: skip


def measurements_by_name(names: Sequence[str]) -> list[Measurement]:
    """The measurements of these names."""
    known = {one.name: one for one in measurements()}
    if unknown := [name for name in names if name not in known]:
        raise InvalidArgument(f"expected measurements among {', '.join(known)}, got {', '.join(unknown)}")
    return [known[name] for name in names]


def stored_path(one: Measurement) -> Path:
    """The stored file of a measurement: its results, or the parts of a study."""
    return RESULTS / (one.kept or f"{PARTS}/{one.name}.json")


# ---------------------------------------------------------------------- parts of studies
def save_parts(folder: Path, path: Path) -> bool:
    """Write the parts of a run folder, finished or interrupted, into one file; False if there are none.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> save_parts(place / "none", place / "kept.json")
    False
    """
    parts = {part.stem: read_text(part, "a part of a study") for part in sorted((folder / "parts").glob("*.csv"))}
    if not parts:
        return False
    found = {
        SETTINGS: read_text(folder / SETTINGS, "the settings of a run"),
        ENVIRONMENT: json.loads(read_text(folder / ENVIRONMENT, "an environment")),
        STATE: (folder / STATE).read_text("utf-8").strip() if (folder / STATE).exists() else "interrupted",
        "parts": parts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(found, indent=1) + "\n")
    return True


def is_finished(path: Path) -> bool:
    """Whether a file has all parts of a run.

    >>> is_finished(Path("none"))
    False
    """
    return path.exists() and json.loads(read_text(path, "the parts of a study")).get(STATE) == "done"


def restore_parts(path: Path, folder: Path) -> None:
    """Recreate the run folder of a stored file; its study can then be resumed, or its report rebuilt."""
    found = json.loads(read_text(path, "the parts of a study"))
    (folder / "parts").mkdir(parents=True)
    for name, text in found["parts"].items():
        write_text(folder / "parts" / f"{name}.csv", text)
    write_text(folder / SETTINGS, found[SETTINGS])
    write_text(folder / ENVIRONMENT, json.dumps(found[ENVIRONMENT]))


# ---------------------------------------------------------------------- the queue
class Queue:
    """The programs of some measurements in a folder, with their states."""

    def __init__(self, folder: Path, device: str, jobs: int, checkpoints: Path | None = None) -> None:
        self.folder, self.device, self.jobs, self.checkpoints = folder, device, jobs, checkpoints
        self._path = folder / "state.json"
        self.state: dict[str, Any] = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        self._running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}

    def run(self, wanted: Sequence[Measurement], seconds: float) -> None:
        """Run unfinished measurements until the time is up."""
        end = time.monotonic() + seconds
        waiting = [one for one in wanted if self.state.get(one.name, {}).get("state") != DONE]
        try:
            while (waiting or self._running) and time.monotonic() < end:
                self._collect()
                while waiting and self._has_room(waiting[0]):
                    self._start(waiting.pop(0))
                time.sleep(0.05)
        finally:
            self._interrupt()

    def restore(self, wanted: Sequence[Measurement]) -> None:
        """Copy stored results of measurements that the folder lacks."""
        for one in wanted:
            path, kept = self.folder / one.result, stored_path(one)
            if path.exists() or not kept.exists():
                continue
            if not one.kept:
                restore_parts(kept, path)
            elif one.dataset:
                write_json(path, cells_of_set(read_cells(kept), one.dataset))
            else:
                shutil.copyfile(kept, path)

    def _has_room(self, one: Measurement) -> bool:
        """Whether a program may start now; one that measures time, and those after it, wait for an idle GPU."""
        is_timed = any(other.alone for other in measurements_by_name(list(self._running)))
        return not self._running if one.alone else not is_timed and len(self._running) < self.jobs

    def _start(self, one: Measurement) -> None:
        words = one.filled(one.words, self.folder, self.device, self.checkpoints)
        share = [] if one.alone or self.jobs == 1 else [BENCHMARK, "share", str(MEMORY / self.jobs)]
        with (self.folder / f"{one.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *share, *words], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=_accept_interrupts,
            )  # fmt: skip
        self._running[one.name] = process, time.monotonic()
        say(f"{one.name}: python -m {' '.join(words)}")

    def _collect(self, *, is_over: bool = False) -> None:
        """Record programs that have ended."""
        for name, (process, began) in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[name]
            spent = self.state.get(name, {}).get("seconds", 0.0) + time.monotonic() - began
            found = CUT if code and is_over else FAILED
            if code == 0 and not self._lacks_cells(name):
                found = DONE
            self.state[name] = {"state": found, "code": code, "seconds": round(spent, 1)}
            write_text(self._path, json.dumps(self.state, indent=1) + "\n")
            say(f"{name}: {found}, {spent:.0f} s")

    def _lacks_cells(self, name: str) -> bool:
        """Whether some cells of a program failed, so that another run must try them again."""
        (one,) = measurements_by_name([name])
        if one.is_in_cells:
            return bool(read_cells(self.folder / one.result).get("failed"))
        report = self.folder / one.result / "report.json"
        verdicts = [] if one.kept or not report.exists() else json.loads(read_text(report, "a report"))["verdicts"]
        return any(verdict["statement"] == ALL_TRAINED for verdict in verdicts)

    def _interrupt(self) -> None:
        """Stop running programs: by an interrupt, then by force."""
        self._collect()
        for word in (signal.SIGINT, signal.SIGKILL):
            for process, _ in self._running.values():
                os.killpg(process.pid, word)
            end = time.monotonic() + PATIENCE
            while self._running and time.monotonic() < end:
                self._collect(is_over=True)
                time.sleep(0.05)

    def keep(self, wanted: Sequence[Measurement]) -> list[list[str]]:
        """Store finished results, and finished cells and parts of others; returns the programs that write the pages of
        complete files."""
        pages = []
        for one in wanted:
            if not one.kept and (self._is_done(one) or not is_finished(stored_path(one))):
                save_parts(self.folder / one.result, stored_path(one))
            files = [other for other in measurements() if other.kept and other.kept == one.kept]
            is_joined = len({other.result for other in files}) > 1
            if one.is_in_cells:
                files = [other for other in files if (self.folder / other.result).exists()]
            if not (one in files if one.is_in_cells else all(map(self._is_done, [one, *files]))):
                continue
            if one.kept:
                # Files that began as a copy of all cells come first, so that newer cells replace theirs.
                parts = [self.folder / other.result for other in sorted(files, key=lambda other: bool(other.dataset))]
                keep_file(parts, RESULTS / one.kept, is_joined=is_joined)
            pages += [one.filled(words, self.folder, self.device) for words in one.pages]
        return [list(page) for page in dict.fromkeys(map(tuple, pages))]

    def rebuilding(self, wanted: Sequence[Measurement]) -> list[list[str]]:
        """The programs that rebuild the reports of finished studies from stored parts, and write their pages."""
        kept = [one for one in wanted if not one.kept and is_finished(stored_path(one))]
        if not kept:
            names = ", ".join(one.name for one in wanted)
            raise InvalidArgument(f"{RESULTS / PARTS} has no finished study among {names}; measure them first")
        self.restore(kept)
        words = [
            one.filled((*STUDY, one.name, "--out", "{out}", "--report-only"), self.folder, self.device) for one in kept
        ]
        pages = [one.filled(page, self.folder, self.device) for one in kept for page in one.pages]
        return [*words, *pages]

    def _is_done(self, one: Measurement) -> bool:
        return bool(self.state.get(one.name, {}).get("state") == DONE)


def _accept_interrupts() -> None:
    """Let Ctrl-C reach a program that runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def keep_file(parts: Sequence[Path], kept: Path, *, is_joined: bool = False) -> None:
    """Store measured files as one results file; cells are added to those that it has."""
    files = list(dict.fromkeys(parts))
    if not is_joined:
        shutil.copyfile(files[0], kept)
        return
    write_json(kept, joined_cells([*([kept] if kept.exists() else []), *files]))


def with_share(words: Sequence[str]) -> None:
    """Run another module with a share of the GPU's memory: `SHARE MODULE [ARGUMENT ...]`.

    Trainings plan their memory within that share, so several programs fit on one GPU.
    """
    if torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(float(words[0]))
    sys.argv[1:] = words[2:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)


def measure_all(
    *, device: str = "cuda", only: Sequence[str] = (), jobs: int = 1, seconds: float = float("inf"),
    out: Path = Path("runs/measured"), checkpoints: Path | None = None, pages: bool = False, report_only: bool = False,
    fresh: bool = False, list_states: bool = False,
) -> int:  # fmt: skip
    """Run every measurement that needs a GPU; resumable.

    `--pages` measures nothing: it stores finished results, and finished cells and parts of interrupted ones, in
    studies/results/ and writes their pages. A measurement that the folder lacks starts from the stored results, on any
    machine; `--fresh` ignores them. `--report-only` rebuilds the pages of finished studies from their parts with the
    current code. `--list` lists all measurements and their states. Concurrent programs take turns on a GPU; with
    NVIDIA's MPS daemon (`nvidia-cuda-mps-control -d`) their kernels run together.
    """
    wanted = measurements_by_name(only) if only else list(measurements())
    out.mkdir(parents=True, exist_ok=True)
    queue = Queue(out, device, jobs, checkpoints)
    if list_states:
        for one in wanted:
            print(f"{one.name}: {queue.state.get(one.name, {}).get('state', 'waiting')}")
        return 0
    if pages or report_only:
        for page in queue.rebuilding(wanted) if report_only else queue.keep(wanted):
            subprocess.run([sys.executable, "-m", *page], check=True)
        return 0
    if not fresh:
        queue.restore(wanted)
    queue.run(wanted, seconds)
    return int(any(queue.state.get(one.name, {}).get("state") != DONE for one in wanted))
