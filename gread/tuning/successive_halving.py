"""Successive halving: at rungs the worse part of the trials is dropped, and the others go on in smaller batches.

A trial is compared by the mean over its splits of the best validation accuracy so far, with all trials of its round,
whatever their shapes. Those that stay go on from their own state, to the results that they would have had anyway.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gread.datasets.node_data import NodeData
from gread.models.bundle import Bundle, load_bundle, save_bundle
from gread.models.resolution import resolve_trials
from gread.settings.trials import grouped
from gread.training.batch_queue import most_members, queued, remembered, run_batches
from gread.training.checkpoint import Saver, SavingPace, fingerprint, manner_of
from gread.training.ensemble import CHUNK, Ensemble, MemberState
from gread.training.planner import Costs, largest, make_batches
from gread.training.trainer import EVERY
from gread.tuning.candidates import COMPLETE, DIVERGED, PRUNED, Candidate, TrialResult
from rdgraph.errors import FileError, InvalidArgument, RdgraphError
from rdgraph.graphs.kernels.devices import total_memory

# ---------------------------------------------------------------------- round checkpoint
# `RoundCheckpoint`: how far a round of halving is, on disk, for a quarter of its time at most.
#
# The folder of a round holds the state of everything that began its present rung, the batches that have reached the end
# of it, and those under way. What was dropped, and earlier rungs, are gone from it. Nothing is written of rungs that
# are over before it is time to save. States are written batch by batch, since those of all trainings may fill the
# memory.

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
        """The state of those members that are among `members`; the piece itself if it has no others."""
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


# ---------------------------------------------------------------------- halving
#: Share of a device's memory that states may take which wait for the end of a rung.
AT_REST = 0.1
#: What a product may miss a whole number by.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Rungs:
    """Where trials are compared, and how many of them go on.

    The default leaves two thirds after a tenth of the epochs, a quarter after a fifth, an eighth after two fifths: the
    first cut is gentle, since early accuracies mislead, and most is saved by the second. See docs/guides/searching.md
    for how often it chooses what a search without it does.

    Args:
        stages: Pairs of two shares: after this share of the epochs, rounded up to a whole number of the ensemble's
            chunks, this share of the trials is left, rounded up.

    Raises:
        InvalidArgument: For shares outside of 0 to 1, epochs that do not grow, or trials that do not become fewer.

    >>> Rungs().ends(200), Rungs().ends(20), [Rungs().kept(27, end, 200) for end in (20, 40, 80)]
    ((20, 40, 80, 200), (20,), [18, 7, 4])
    """

    stages: tuple[tuple[float, float], ...] = ((1 / 10, 2 / 3), (1 / 5, 1 / 4), (2 / 5, 1 / 8))

    def __post_init__(self) -> None:
        epochs, left = ([stage[k] for stage in self.stages] for k in (0, 1))
        is_sound = all(0 < share < 1 for share in (*epochs, *left))
        if not is_sound or sorted(set(epochs)) != epochs or sorted(set(left), reverse=True) != left:
            raise InvalidArgument(
                "expected growing shares of the epochs and falling ones of the trials between 0 and 1, got "
                f"{list(self.stages)}"
            )

    def ends(self, epochs: int) -> tuple[int, ...]:
        """The epochs after which trainings of that length stop, the last one included."""
        return (*sorted(self._left(epochs)), epochs)

    def _left(self, epochs: int) -> dict[int, float]:
        """The share of the trials that is left after every rung; of stages that meet on one the last counts."""
        ends = {CHUNK * math.ceil(share * epochs / CHUNK - ROUNDING): left for share, left in self.stages}
        return {end: left for end, left in ends.items() if end < epochs}

    def kept(self, count: int, end: int, epochs: int) -> int:
        """How many of the `count` trials that began a search of `epochs` epochs go on after a rung."""
        return math.ceil(count * self._left(epochs)[end] - ROUNDING)

    def work(self, lengths: Sequence[int]) -> float:
        """Epochs of all trials together, about, where each would have such a length.

        >>> round(Rungs().work([200] * 27) / (200 * 27), 3)
        0.307
        """
        total, before, longest, count = 0, 0, max(lengths), len(lengths)
        for end in self.ends(longest):
            total += count * (end - before)
            before, count = end, self.kept(len(lengths), end, longest) if end < longest else 0
        return float(total)


def _standings(ensemble: Ensemble) -> list[Standing]:
    outcome, epoch = ensemble.outcome(), ensemble.epoch
    sound = (outcome.failed_at < 0).tolist()
    columns = (outcome.epochs.tolist(), outcome.val_accuracy.tolist(), outcome.test_accuracy.tolist(), sound)
    return [Standing(epoch, *row) for row in zip(*columns, strict=True)]


def _epochs(part: Part, before: int) -> float:
    """Epochs of all members of a batch since the one `before`."""
    return float(sum(one.epoch - before for one in part.standings))


@dataclass(eq=False)
class _Pool:
    """The trainings of one shape that are still under way, by their numbers.

    `fit` of them fit the memory, `most` are in one batch, `pieces` have their states in this order; there are none
    where nothing was trained yet.
    """

    members: list[int]
    fit: int
    most: int
    pieces: list[Piece] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Epochs that all of them have behind them."""
        return int(self.pieces[0].state.values["step"]) if self.pieces else 0

    def take_up(self, pieces: Sequence[Piece]) -> None:
        """Go on with those that have a state."""
        self.pieces = list(pieces)
        self.members = [k for piece in pieces for k in piece.members]

    def keep(self, members: Collection[int]) -> None:
        """Drop all others; piece by piece, as the states of all of them may fill the memory."""
        self.members = [k for k in self.members if k in members]
        for place, piece in enumerate(self.pieces):
            self.pieces[place] = piece.of(members)
        self.pieces = [piece for piece in self.pieces if piece.members]

    def state_of(self, members: Sequence[int]) -> MemberState | None:
        """The state of some of them, in that order; none where nothing was trained yet."""
        if not self.pieces:
            return None
        wanted = set(members)
        found = [piece.of(wanted) for piece in self.pieces if not wanted.isdisjoint(piece.members)]
        places = {k: place for place, k in enumerate(k for piece in found for k in piece.members)}
        state = MemberState.joined([piece.state for piece in found])
        return state if list(places) == list(members) else state.chosen([places[k] for k in members])


@dataclass(eq=False)
class HalvedRound:
    """Trials of one round, trained from rung to rung; `run` gives what became of them.

    `most` bounds the members of a batch beside the memory, `until` is the time of the monotonic clock after which no
    further epochs are begun. `look` is asked of every batch at every rung, one answer for each member; `seen` has the
    last answers by candidate and split; they are not kept in a checkpoint.
    """

    data: NodeData
    candidates: Sequence[Candidate]
    splits: Sequence[int]
    seed: int
    rungs: Rungs
    options: dict[str, Any]
    checkpoint: Path | None
    tell: Callable[[str], object]
    progress: Callable[[float], None]
    every: float = EVERY
    most: int | None = None
    until: float = math.inf
    look: Callable[[Ensemble], Sequence[Any]] | None = None
    results: dict[int, TrialResult] = field(default_factory=dict)
    seen: dict[tuple[int, int], Any] = field(default_factory=dict)
    _done: float = 0.0
    _under_way: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owners = [(place, t) for place, c in enumerate(self.candidates) for t in c.trainings(self.splits, self.seed)]
        self._owner = [place for place, _ in owners]
        self._trials, _ = resolve_trials([t for _, t in owners])
        self._lengths = [c.config.training.epochs for c in self.candidates]
        self._work = self.rungs.work(self._lengths) * len(self.splits)

    def run(self) -> list[TrialResult]:
        """Train, compare and drop, up to the end of the longest."""
        groups = grouped(self._trials)
        heaviest = [self._trials[largest(self._trials, group)] for group in groups]
        fits = [most_members(self.data, trial, **self.options) for trial in heaviest]
        most = [fit if self.most is None else min(fit, self.most) for fit in fits]
        pools = [_Pool(*of_shape) for of_shape in zip(groups, fits, most, strict=True)]
        kept = RoundCheckpoint(self.checkpoint, self._mark, self.every, self.tell)
        first = self._taken_up(pools, kept.load())
        try:
            self._climb_all(pools, kept, first)
        except KeyboardInterrupt:
            kept.save()
            raise
        return [self.results[place] for place in range(len(self.candidates))]

    def _mark(self) -> str:
        """What tells this round from others."""
        manner = manner_of(self.options["dtype"], keep_best=self.options["keep_best"])
        return fingerprint([self.data], list(self._trials), f"{manner} {self.rungs}")

    def _taken_up(self, pools: Sequence[_Pool], start: RungStart | None) -> int:
        """Go on from the beginning of a rung, where one was saved; the epoch of that rung, else 0."""
        if start is None:
            return 0
        self.results, self._done = dict(start.results), start.done
        for pool, pieces in zip(pools, start.pools, strict=True):
            pool.take_up(pieces)
        return start.end

    def _climb_all(self, pools: Sequence[_Pool], kept: RoundCheckpoint, first: int) -> None:
        """From rung to rung; the one after `first` epochs is where the pools stand already."""
        alive = set(range(len(self.candidates)))
        for end in (end for end in self.rungs.ends(max(self._lengths)) if end >= first):
            kept.leave()
            going = {k for k, place in enumerate(self._owner) if place in alive}
            for pool in pools:
                pool.keep(going)
            start = RungStart(end, self._done, dict(self.results), [list(pool.pieces) for pool in pools])
            folder = kept.begin(start, is_saved=end == first or not self.results)
            self._climb([pool for pool in pools if pool.members], end, folder, kept)
            alive = self._left(alive, end) if time.monotonic() < self.until else set()

    def _left(self, alive: set[int], end: int) -> set[int]:
        """The trials that go on after a rung: the best of those that have epochs left."""
        going = [place for place in alive if self._lengths[place] > end]
        if not going:
            return set()
        began = sum(length > end for length in self._lengths)
        ranked = sorted(going, key=lambda place: (-self.results[place].val_accuracy, place))
        return set(ranked[: self.rungs.kept(began, end, max(self._lengths))])

    def _climb(self, pools: Sequence[_Pool], end: int, folder: Path | None, kept: RoundCheckpoint) -> None:
        """Train everything that is under way up to a rung, batch by batch, and note how it stands there."""
        of_pool = {k: pool for pool in pools for k in pool.members}
        order = [k for pool in pools for k in pool.members]
        costs = [Costs.of(self.data, self.options["device"])] * len(self._trials)
        made = make_batches([self._trials[k] for k in order], [pool.most for pool in pools], costs)
        batches = remembered(folder, [[order[k] for k in batch] for batch in made], self.tell)
        parts = {number: self._laid_part(part) for number, part in kept.parts(batches).items()}
        to_do = [number for number in range(len(batches)) if number not in parts]
        before = {number: of_pool[batch[0]].epoch for number, batch in enumerate(batches)}
        self._under_way = {number: _epochs(part, before[number]) for number, part in parts.items()}

        def begin(number: int) -> tuple[Ensemble, Saver]:
            ensemble = self._ensemble(of_pool[batches[number][0]], batches[number])
            return ensemble, Saver(folder, number, ensemble, [self.data], self.every, self.tell, at_end=False)

        def hear(place: int, ensemble: Ensemble) -> None:
            self._under_way[to_do[place]] = (ensemble.epoch - before[to_do[place]]) * ensemble.members
            self.progress(min(1.0, (self._done + sum(self._under_way.values())) / self._work))
            kept.tick()

        def finish(place: int, ensemble: Ensemble, saver: Saver) -> None:
            number = to_do[place]
            batch, stop = batches[number], min(end, ensemble.epochs)
            if time.monotonic() < self.until:
                ensemble.advance(stop - ensemble.epoch)  # patience ends a training for itself, not for the others
            if self.look is not None:
                self.seen |= {self._place(k): answer for k, answer in zip(batch, self.look(ensemble), strict=True)}
            is_going_on = stop < ensemble.epochs and ensemble.epoch == stop
            state = self._laid(ensemble.member_state(range(len(batch)))) if is_going_on else None
            parts[number] = Part(batch, _standings(ensemble), state)
            self._under_way[number] = _epochs(parts[number], before[number])
            kept.add(number, parts[number])
            kept.tick()

        fits = {k: pool.fit for k, pool in of_pool.items()}
        queue = [b._replace(until=self.until) for b in queued(self._trials, batches, fits, costs, begin, end)]
        run_batches([queue[number] for number in to_do], self.options["device"], hear, finish, self.tell)
        self._done, self._under_way = self._done + sum(self._under_way.values()), {}
        for pool in pools:
            own = [part for _, part in sorted(parts.items()) if of_pool[part.members[0]] is pool]
            pool.take_up([Piece(part.members, part.state) for part in own if part.state is not None])
        self._note({k: one for part in parts.values() for k, one in zip(part.members, part.standings, strict=True)})

    def _ensemble(self, pool: _Pool, batch: list[int]) -> Ensemble:
        ensemble = Ensemble(self.data, [self._trials[k] for k in batch], **self.options)
        if (state := pool.state_of(batch)) is not None:
            ensemble.take_up(state.on(self.options["device"]))
        return ensemble

    def _laid_part(self, part: Part) -> Part:
        return part if part.state is None else part._replace(state=self._laid(part.state))

    def _laid(self, state: MemberState) -> MemberState:
        """The state of a batch where it waits for the others: on its device where those of all trainings fit."""
        device = self.options["device"]
        size = sum(value.numel() * value.element_size() for value in state.values.values()) / len(state.degrees)
        if not device.startswith("cuda") or size * len(self._trials) > AT_REST * total_memory(device):
            return state.on("cpu")
        laid = state.on(device)
        torch.cuda.current_stream(torch.device(device)).synchronize()  # others read it on streams of their own
        return laid

    def _place(self, k: int) -> tuple[int, int]:
        """The candidate of a training, and its split."""
        return self._owner[k], self._trials[k].split

    def _note(self, seen: dict[int, Standing]) -> None:
        """The results as they stand at a rung; those of trials that go on are replaced at the next one."""
        places: dict[int, list[int]] = {}
        for k in sorted(seen):
            places.setdefault(self._owner[k], []).append(k)
        for place, members in places.items():
            candidate, reached = self.candidates[place], min(seen[k].epoch for k in members)
            val, test = tuple(seen[k].val for k in members), tuple(seen[k].test for k in members)
            is_sound = all(seen[k].is_sound for k in members)
            state = PRUNED if reached < self._lengths[place] else COMPLETE if is_sound else DIVERGED
            earlier = self.results[place].rungs if place in self.results else ()
            rungs = (*earlier, (reached, sum(val) / len(val)))
            trained = max(seen[k].trained for k in members)
            self.results[place] = TrialResult(candidate.number, state, trained, val, test, rungs)


def halving_options(device: str, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """How the ensembles of a search are made: no parameters are kept, as the best trial is trained again."""
    return {"device": device, "dtype": dtype, "keep_best": False, "weights": None}
