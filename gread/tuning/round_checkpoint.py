"""`RoundCheckpoint`: how far a round of halving is, on disk, for a quarter of its time at most.

The folder of a round holds the state of everything that began its present rung, the batches that have reached the end
of it, and those under way. What was dropped, and earlier rungs, are gone from it. Nothing is written of rungs that are
over before it is time to save. States are written batch by batch, since those of all trainings may fill the memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gread.models.bundle import Bundle, load_bundle, save_bundle
from gread.training.checkpoint import SavingPace
from gread.training.member_state import MemberState
from gread.tuning.candidates import TrialResult
from rdgraph.errors import FileError, RdgraphError

RUNG, PART = "gread rung 1", "gread batch at a rung 1"


class Standing(NamedTuple):
    """How a training stands at a rung; `is_sound` says that it has not diverged, `trained` for how many epochs."""

    epoch: int
    trained: int
    val: float
    test: float
    is_sound: bool


class Piece(NamedTuple):
    """The state of some members, as a batch left it."""

    members: list[int]
    state: MemberState

    def of(self, members: Collection[int]) -> Piece:
        """That of those among these; itself where nobody is left out."""
        places = [place for place, k in enumerate(self.members) if k in members]
        if len(places) == len(self.members):
            return self
        return Piece([self.members[place] for place in places], self.state.chosen(places))


class Part(NamedTuple):
    """A batch that has reached a rung: its members, how they stand, and their state where they may go on."""

    members: list[int]
    standings: list[Standing]
    state: MemberState | None


@dataclass(frozen=True, eq=False)
class RungStart:
    """How a round stands where it begins to climb to a rung.

    `end` is the epoch of that rung, `done` the work before it, `results` are those so far by the place of their trial,
    `pools` the pieces of every shape that goes on.
    """

    end: int
    done: float
    results: Mapping[int, TrialResult]
    pools: Sequence[Sequence[Piece]]


_NOWHERE = RungStart(0, 0.0, {}, ())


class RoundCheckpoint:
    """Where a round keeps how far it is; without a folder nothing is kept.

    Args:
        folder: Of this round alone.
        mark: What tells this round from others; found out only where something is written or read.
        every: Seconds between two saves, about.
        tell: Hears that nothing could be written.
    """

    def __init__(
        self, folder: Path | None, mark: Callable[[], str], every: float, tell: Callable[[str], object]
    ) -> None:
        self._is_kept, self._folder = folder is not None, folder or Path()
        self._find_mark, self._pace = cache(mark), SavingPace(every, tell)
        self._start, self._is_start_saved = _NOWHERE, True
        self._unsaved: dict[int, Part] = {}

    # ------------------------------------------------------------------ going on
    def load(self) -> RungStart | None:
        """How the round stood at the beginning of the rung that was saved last; None where it was the first one."""
        if not (self._is_kept and self._manifest.exists()):
            return None
        found = self._loaded(self._manifest, RUNG)
        with _read(self._manifest):
            end, done = int(found.words["end"]), float(found.words["done"])
            results = {int(place): TrialResult.read(record) for place, record in found.words["results"].items()}
            pools = [[self._loaded_piece(end, int(number)) for number in numbers] for numbers in found.words["pools"]]
            return RungStart(end, done, results, pools)

    def _loaded_piece(self, end: int, number: int) -> Piece:
        found = self._loaded(self._piece(end, number), PART)
        state = _state(found)
        if state is None:
            raise ValueError(f"no state in piece {number}")
        return Piece(list(map(int, found.words["members"])), state)

    def begin(self, start: RungStart, *, is_saved: bool) -> Path | None:
        """Climb to another rung; the folder of its batches."""
        self._start, self._is_start_saved = start, is_saved
        return self._rung(start.end) if self._is_kept else None

    def leave(self) -> None:
        """A rung is over: nothing of it is held any more."""
        self._start, self._is_start_saved, self._unsaved = _NOWHERE, True, {}

    def parts(self, batches: Sequence[Sequence[int]]) -> dict[int, Part]:
        """The batches that have reached this rung already, by number."""
        found: dict[int, Part] = {}
        for number, batch in enumerate(batches):
            path = self._part(number)
            if self._is_kept and path.exists():
                bundle = self._loaded(path, PART)
                with _read(path):
                    standings = [Standing(*values) for values in bundle.words["standings"]]
                    part = Part(list(batch), standings, _state(bundle))
                    if bundle.words["members"] == part.members:
                        found[number] = part
        return found

    def _loaded(self, path: Path, kind: str) -> Bundle:
        found = load_bundle(path, kind, "a round of trials")
        if found.words.get("mark") != self._find_mark():
            raise FileError(
                f"expected the state of these trials on this data in {path}, got that of others; "
                "remove it, or choose another folder"
            )
        return found

    # ------------------------------------------------------------------ saving
    def add(self, number: int, part: Part) -> None:
        """A batch has reached the rung."""
        if self._is_kept:
            self._unsaved[number] = part

    def tick(self) -> None:
        """Save where it is time."""
        if self._is_kept and self._pace.is_time:
            self.save()

    def save(self) -> None:
        """Save what is not on disk yet: the beginning of the rung, and the batches that have reached its end."""
        if self._is_kept:
            self._pace.write(self._write)

    def _write(self) -> None:
        if not self._is_start_saved:
            try:
                self._write_start()
            except FileError:
                shutil.rmtree(self._begun(self._start.end), ignore_errors=True)
                raise
            self._is_start_saved = True
            self._remove_earlier_rungs()
        for number, part in list(self._unsaved.items()):
            self._write_part(self._part(number), part)
            del self._unsaved[number]

    def _write_start(self) -> None:
        """The pieces first: without the manifest they count for nothing."""
        start, numbers, count = self._start, list[list[int]](), 0
        for pool in start.pools:
            numbers.append(list(range(count, count + len(pool))))
            for piece in pool:
                self._write_part(self._piece(start.end, count), Part(piece.members, [], piece.state))
                count += 1
        results = {str(place): result.record() for place, result in start.results.items()}
        words = {
            "mark": self._find_mark(), "end": start.end, "done": start.done, "results": results, "pools": numbers,
        }  # fmt: skip
        save_bundle(self._manifest, RUNG, words, {})

    def _write_part(self, path: Path, part: Part) -> None:
        degrees = None if part.state is None else list(part.state.degrees)
        standings = [list(one) for one in part.standings]
        words = {"mark": self._find_mark(), "members": part.members, "standings": standings, "degrees": degrees}
        save_bundle(path, PART, words, {} if part.state is None else part.state.values)

    def _remove_earlier_rungs(self) -> None:
        end = self._start.end
        for path in (*self._folder.glob("rung-*"), *self._folder.glob("begun-*")):
            if path not in (self._rung(end), self._begun(end)):
                shutil.rmtree(path, ignore_errors=True)

    # ------------------------------------------------------------------ names
    @property
    def _manifest(self) -> Path:
        return self._folder / "round.json"

    def _rung(self, end: int) -> Path:
        return self._folder / f"rung-{end}"

    def _begun(self, end: int) -> Path:
        return self._folder / f"begun-{end}"

    def _piece(self, end: int, number: int) -> Path:
        return self._begun(end) / f"piece-{number}.json"

    def _part(self, number: int) -> Path:
        return self._rung(self._start.end) / f"reached-{number}.json"


def _state(found: Bundle) -> MemberState | None:
    """The state of a part; None where it has none."""
    degrees = found.words["degrees"]
    return None if degrees is None else MemberState(dict(found.numbers), tuple(map(int, degrees)))


@contextmanager
def _read(path: Path) -> Iterator[None]:
    """What is wrong with the words of a file is told as such."""
    try:
        yield
    except FileError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RdgraphError) as problem:
        raise FileError(f"expected the state of a round in {path}, got another file ({problem}); remove it") from None
