"""Every number that takes a card: `python -m studies.benchmarks.measure_all --out FOLDER [--seconds 600] [--jobs 3]`.

Runs the programs of `studies.benchmarks.measurements` one after the other, or several beside each other where they take
no times, until all are done or the time is up; those under way are then interrupted, and the same command goes on with
them. FOLDER/state.json says what is done, FOLDER/NAME.log what a program said. `--pages` measures nothing: it puts what
is done into docs/ and writes its pages, and keeps there what was cut off as well: cells as they are, parts of studies
in docs/parts/. A folder that has nothing of a measurement goes on from there, on whatever machine; with `--anew` it
does not. `--retell` tells the pages of finished studies again from docs/parts/, by this code. `--list` shows all
measurements and their state. Programs beside each other take turns on a card; where the daemon of NVIDIA's MPS runs
(`nvidia-cuda-mps-control -d`), their kernels fill it together.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rdgraph.errors import InvalidArgument
from rdgraph.files import read_text, write_text
from studies.benchmarks.cell_file import cells_of_set, joined_cells, read_cells, write_cells
from studies.benchmarks.kept_parts import is_finished, restore_parts, save_parts
from studies.benchmarks.measurements import DOCS, STUDY, Measurement, measurements
from studies.benchmarks.searched import KEY
from studies.cells.cell import ALL_TRAINED
from studies.runs.boundary import run_program

DONE, FAILED, CUT = "done", "failed", "interrupted"
#: The folder of the documentation that has the parts of studies.
PARTS = "parts"
#: Seconds that a program has to end by itself once it is interrupted.
PATIENCE = 20.0
#: The share of a card's memory that programs beside each other divide.
MEMORY = 0.9


class Queue:
    """The programs of some measurements in a folder, with what became of them."""

    def __init__(self, folder: Path, device: str, jobs: int, checkpoints: Path | None = None) -> None:
        self.folder, self.device, self.jobs, self.checkpoints = folder, device, jobs, checkpoints
        self._path = folder / "state.json"
        self.state: dict[str, Any] = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        self._running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}

    def run(self, wanted: Sequence[Measurement], seconds: float) -> None:
        """Run what is not done until the time is up."""
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
        """Begin with what the documentation has of measurements that the folder has nothing of."""
        for one in wanted:
            place, kept = self.folder / one.result, kept_place(one)
            if place.exists() or not kept.exists():
                continue
            if not one.kept:
                restore_parts(kept, place)
            elif one.dataset:
                write_cells(place, cells_of_set(read_cells(kept), one.dataset))
            else:
                shutil.copyfile(kept, place)

    def _has_room(self, one: Measurement) -> bool:
        """Whether a program may start now; one that takes times, and those after it, wait for an empty card."""
        is_timed = any(other.alone for other in measurements_by_name(list(self._running)))
        return not self._running if one.alone else not is_timed and len(self._running) < self.jobs

    def _start(self, one: Measurement) -> None:
        words = one.filled(one.words, self.folder, self.device, self.checkpoints)
        share = [] if one.alone or self.jobs == 1 else ["studies.benchmarks.card_share", str(MEMORY / self.jobs)]
        with (self.folder / f"{one.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *share, *words], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=_hear_interrupts,
            )  # fmt: skip
        self._running[one.name] = process, time.monotonic()
        print(f"{one.name}: python -m {' '.join(words)}", file=sys.stderr, flush=True)

    def _collect(self, *, is_over: bool = False) -> None:
        """Note what has ended."""
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
            print(f"{name}: {found}, {spent:.0f} s", file=sys.stderr, flush=True)

    def _lacks_cells(self, name: str) -> bool:
        """Whether a program ended without some of its cells, which another run tries again."""
        (one,) = measurements_by_name([name])
        if one.is_in_cells:
            return bool(read_cells(self.folder / one.result).get("failed"))
        report = self.folder / one.result / "report.json"
        verdicts = [] if one.kept or not report.exists() else json.loads(read_text(report, "a report"))["verdicts"]
        return any(verdict["statement"] == ALL_TRAINED for verdict in verdicts)

    def _interrupt(self) -> None:
        """End what is under way: as Ctrl-C does, then by force."""
        self._collect()
        for word in (signal.SIGINT, signal.SIGKILL):
            for process, _ in self._running.values():
                os.killpg(process.pid, word)
            end = time.monotonic() + PATIENCE
            while self._running and time.monotonic() < end:
                self._collect(is_over=True)
                time.sleep(0.05)

    def keep(self, wanted: Sequence[Measurement]) -> list[list[str]]:
        """Put what is done, and what there is of cells and parts, into the documentation; the programs that write its
        pages, those of files that lack something not."""
        pages = []
        for one in wanted:
            if not one.kept and (self._is_done(one) or not is_finished(kept_place(one))):
                save_parts(self.folder / one.result, kept_place(one))
            files = [other for other in measurements() if other.kept and other.kept == one.kept]
            is_joined = len({other.result for other in files}) > 1
            if one.is_in_cells:
                files = [other for other in files if (self.folder / other.result).exists()]
            if not (one in files if one.is_in_cells else all(map(self._is_done, [one, *files]))):
                continue
            if one.kept:
                # What began as a copy of all cells comes first, so that it takes the place of none measured since.
                parts = [self.folder / other.result for other in sorted(files, key=lambda other: bool(other.dataset))]
                keep_file(parts, DOCS / one.kept, is_joined=is_joined)
            pages += [one.filled(words, self.folder, self.device) for words in one.pages]
        return [list(page) for page in dict.fromkeys(map(tuple, pages))]

    def retelling(self, wanted: Sequence[Measurement]) -> list[list[str]]:
        """The programs that tell finished studies again from the documentation, and write their pages."""
        kept = [one for one in wanted if not one.kept and is_finished(kept_place(one))]
        if not kept:
            names = ", ".join(one.name for one in wanted)
            raise InvalidArgument(
                f"expected finished studies in {DOCS / PARTS}, got none of {names}; measure them first"
            )
        self.restore(kept)
        words = [one.filled((*STUDY, one.name, "--out", "{out}", "--retell"), self.folder, self.device) for one in kept]
        pages = [one.filled(page, self.folder, self.device) for one in kept for page in one.pages]
        return [*words, *pages]

    def _is_done(self, one: Measurement) -> bool:
        return bool(self.state.get(one.name, {}).get("state") == DONE)


def _hear_interrupts() -> None:
    """What is started in the background ignores Ctrl-C otherwise."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def measurements_by_name(names: Sequence[str]) -> list[Measurement]:
    """The measurements of these names."""
    known = {one.name: one for one in measurements()}
    if unknown := [name for name in names if name not in known]:
        raise InvalidArgument(f"expected measurements among {', '.join(known)}, got {', '.join(unknown)}")
    return [known[name] for name in names]


def kept_place(one: Measurement) -> Path:
    """What the documentation has of a measurement: its file, or the parts of a study."""
    return DOCS / (one.kept or f"{PARTS}/{one.name}.json")


def keep_file(parts: Sequence[Path], kept: Path, *, is_joined: bool = False) -> None:
    """One results file of the documentation from those that were measured; cells join those that it has."""
    files = list(dict.fromkeys(parts))
    if not is_joined:
        shutil.copyfile(files[0], kept)
        return
    write_cells(kept, joined_cells([*([kept] if kept.exists() else []), *files], KEY))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Every number that takes a card")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some measurements, in this order")
    parser.add_argument("--jobs", type=int, default=1, help="programs beside each other")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="interrupt what is under way after so many")
    parser.add_argument("--out", type=Path, default=Path("runs/measured"))
    parser.add_argument("--checkpoints", type=Path, help="for what is under way; OUT/checkpoints by default")
    parser.add_argument("--pages", action="store_true", help="put what is done into docs/ and write its pages")
    parser.add_argument("--retell", action="store_true", help="tell the pages of studies again from docs/parts/")
    parser.add_argument("--anew", action="store_true", help="do not go on from what docs/ has")
    parser.add_argument("--list", action="store_true", help="show the measurements and what became of them")
    given = parser.parse_args(arguments)
    wanted = measurements_by_name(given.only) if given.only else list(measurements())
    given.out.mkdir(parents=True, exist_ok=True)
    queue = Queue(given.out, given.device, given.jobs, given.checkpoints)
    if given.list:
        for one in wanted:
            print(f"{one.name}: {queue.state.get(one.name, {}).get('state', 'waiting')}")
        return 0
    if given.pages or given.retell:
        for page in queue.retelling(wanted) if given.retell else queue.keep(wanted):
            subprocess.run([sys.executable, "-m", *page], check=True)
        return 0
    if not given.anew:
        queue.restore(wanted)
    queue.run(wanted, given.seconds)
    return int(any(queue.state.get(one.name, {}).get("state") != DONE for one in wanted))


if __name__ == "__main__":
    run_program(main)
