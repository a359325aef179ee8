"""Successive halving: at rungs the worse part of the trials is dropped, and the others continue in smaller batches.

Trials of a round, also of different shapes, are compared by the mean over their splits of the best validation accuracy
so far. The remaining trials continue from their states, to the same results as without halving.
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
from gread.training.batch_queue import make_queue, most_members, recorded_batches, run_batches
from gread.training.checkpoint import Saver, SavingPace, fingerprint, options_text
from gread.training.ensemble import CHUNK, Ensemble, MemberState
from gread.training.planner import Costs, largest, make_batches
from gread.training.trainer import EVERY
from gread.tuning.candidates import COMPLETE, DIVERGED, PRUNED, Candidate, TrialResult
from rdgraph.errors import FileError, InvalidArgument, RdgraphError
from rdgraph.graphs.kernels.devices import total_memory

# ---------------------------------------------------------------------- round checkpoint
# `RoundCheckpoint`: the progress of a round of halving on disk; saving takes at most a quarter of the time.
#
# The folder of a round holds the state at the start of its current rung, the batches that have reached the end of the
# rung, and the running ones. Dropped trials and earlier rungs are deleted. Rungs that end before it is time to save are
# not written. States are written batch by batch, since those of all trainings may fill the memory.

RUNG, PART = "gread rung 1", "gread batch at a rung 1"


class Standing(NamedTuple):
    """The accuracies of a training at a rung; `is_sound` unless it diverged, `trained` counts its epochs."""

    epoch: int
    trained: int
    val: float
    test: float
    is_sound: bool


class Piece(NamedTuple):
    """The state of some members after a batch."""

    members: list[int]
    state: MemberState

    def of(self, members: Collection[int]) -> Piece:
        """The state of those members that are among `members`; the piece itself if it has no others."""
        chosen = [j for j, k in enumerate(self.members) if k in members]
        if len(chosen) == len(self.members):
            return self
        return Piece([self.members[j] for j in chosen], self.state.chosen(chosen))


class Part(NamedTuple):
    """A batch that has reached a rung: its members, their standings, and their state if they may continue."""

    members: list[int]
    standings: list[Standing]
    state: MemberState | None


@dataclass(frozen=True, eq=False)
class RungStart:
    """The state of a round at the start of a rung.

    `end` is the last epoch of the rung, `done` the work before it, `results` those so far by the index of their trial,
    `pools` the pieces of every shape that continues.
    """

    end: int
    done: float
    results: Mapping[int, TrialResult]
    pools: Sequence[Sequence[Piece]]


_NO_RUNG = RungStart(0, 0.0, {}, ())


class RoundCheckpoint:
    """The checkpoint of a round; without a folder nothing is saved.

    Args:
        folder: A folder for this round only.
        mark: Returns the text that identifies the round; called only when something is written or read.
        every: Approximate seconds between two saves.
        tell: Called with a message if nothing can be written.
    """

    def __init__(
        self, folder: Path | None, mark: Callable[[], str], every: float, tell: Callable[[str], object]
    ) -> None:
        self._is_saving, self._folder = folder is not None, folder or Path()
        self._mark, self._pace = cache(mark), SavingPace(every, tell)
        self._start, self._is_start_saved = _NO_RUNG, True
        self._unsaved: dict[int, Part] = {}

    # ------------------------------------------------------------------ resuming
    def load(self) -> RungStart | None:
        """The state at the start of the rung saved last; None if no rung was saved."""
        if not (self._is_saving and self._manifest.exists()):
            return None
        words = self._loaded(self._manifest, RUNG).words
        with _reporting_damage(self._manifest):
            end, done = int(words["end"]), float(words["done"])
            results = {int(index): TrialResult.read(record) for index, record in words["results"].items()}
            pools = [[self._loaded_piece(end, int(number)) for number in numbers] for numbers in words["pools"]]
            return RungStart(end, done, results, pools)

    def _loaded_piece(self, end: int, number: int) -> Piece:
        bundle = self._loaded(self._piece(end, number), PART)
        state = _state(bundle)
        if state is None:
            raise ValueError(f"no state in piece {number}")
        return Piece(list(map(int, bundle.words["members"])), state)

    def begin(self, start: RungStart, *, is_saved: bool) -> Path | None:
        """Start another rung; returns the folder of its batches."""
        self._start, self._is_start_saved = start, is_saved
        return self._rung(start.end) if self._is_saving else None

    def leave(self) -> None:
        """Release everything of a finished rung."""
        self._start, self._is_start_saved, self._unsaved = _NO_RUNG, True, {}

    def parts(self, batches: Sequence[Sequence[int]]) -> dict[int, Part]:
        """The batches that have already reached this rung, by number."""
        parts: dict[int, Part] = {}
        for number, batch in enumerate(batches):
            path = self._part(number)
            if self._is_saving and path.exists():
                bundle = self._loaded(path, PART)
                with _reporting_damage(path):
                    standings = [Standing(*values) for values in bundle.words["standings"]]
                    part = Part(list(batch), standings, _state(bundle))
                    if bundle.words["members"] == part.members:
                        parts[number] = part
        return parts

    def _loaded(self, path: Path, kind: str) -> Bundle:
        bundle = load_bundle(path, kind, "a round of trials")
        if bundle.words.get("mark") != self._mark():
            raise FileError(
                f"expected the state of these trials on this data in {path}, got that of others; "
                "remove it, or choose another folder"
            )
        return bundle

    # ------------------------------------------------------------------ saving
    def add(self, number: int, part: Part) -> None:
        """Record a batch that has reached the rung."""
        if self._is_saving:
            self._unsaved[number] = part

    def tick(self) -> None:
        """Save if it is time."""
        if self._is_saving and self._pace.is_time:
            self.save()

    def save(self) -> None:
        """Save what is not on disk yet: the start of the rung, and the batches that have reached its end."""
        if self._is_saving:
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
        """Write the pieces first: they are ignored without the manifest."""
        start, numbers, count = self._start, list[list[int]](), 0
        for pool in start.pools:
            numbers.append(list(range(count, count + len(pool))))
            for piece in pool:
                self._write_part(self._piece(start.end, count), Part(piece.members, [], piece.state))
                count += 1
        results = {str(index): result.record() for index, result in start.results.items()}
        words = {"mark": self._mark(), "end": start.end, "done": start.done, "results": results, "pools": numbers}
        save_bundle(self._manifest, RUNG, words, {})

    def _write_part(self, path: Path, part: Part) -> None:
        degrees = None if part.state is None else list(part.state.degrees)
        standings = [list(one) for one in part.standings]
        words = {"mark": self._mark(), "members": part.members, "standings": standings, "degrees": degrees}
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


def _state(bundle: Bundle) -> MemberState | None:
    """The state of a part, if it has one."""
    degrees = bundle.words["degrees"]
    return None if degrees is None else MemberState(dict(bundle.numbers), tuple(map(int, degrees)))


@contextmanager
def _reporting_damage(path: Path) -> Iterator[None]:
    """Within the block, invalid content of a file raises a FileError with its name."""
    try:
        yield
    except FileError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RdgraphError) as problem:
        raise FileError(f"expected the state of a round in {path}, got another file ({problem}); remove it") from None


# ---------------------------------------------------------------------- halving
#: Share of a device's memory for states that wait for the end of a rung.
AT_REST = 0.1
#: The rounding error of a product that is a whole number.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Rungs:
    """The epochs at which trials are compared, and how many of them continue.

    By default two thirds remain after a tenth of the epochs, a quarter after a fifth, an eighth after two fifths: the
    first cut is small, since early accuracies mislead, and the second saves most. docs/guides/searching.md reports how
    often it chooses the same trial as a search without halving.

    Args:
        stages: Pairs of two shares: after this share of the epochs, rounded up to a whole number of the ensemble's
            chunks, this share of the trials remains, rounded up.

    Raises:
        InvalidArgument: For shares outside of 0 to 1, epochs that do not increase, or trials that do not decrease.

    >>> Rungs().ends(200), Rungs().ends(20), [Rungs().survivors(27, end, 200) for end in (20, 40, 80)]
    ((20, 40, 80, 200), (20,), [18, 7, 4])
    """

    stages: tuple[tuple[float, float], ...] = ((1 / 10, 2 / 3), (1 / 5, 1 / 4), (2 / 5, 1 / 8))

    def __post_init__(self) -> None:
        epochs, remaining = ([stage[k] for stage in self.stages] for k in (0, 1))
        is_sound = all(0 < share < 1 for share in (*epochs, *remaining))
        if not is_sound or sorted(set(epochs)) != epochs or sorted(set(remaining), reverse=True) != remaining:
            raise InvalidArgument(
                f"shares of epochs must rise and shares of trials fall, all in (0, 1); got {list(self.stages)}"
            )

    def ends(self, epochs: int) -> tuple[int, ...]:
        """The epochs after which trainings of that length stop, the last one included."""
        return (*sorted(self._remaining(epochs)), epochs)

    def _remaining(self, epochs: int) -> dict[int, float]:
        """The share of the trials that remains after every rung; of stages at the same rung the last counts."""
        ends = {CHUNK * math.ceil(share * epochs / CHUNK - ROUNDING): remaining for share, remaining in self.stages}
        return {end: remaining for end, remaining in ends.items() if end < epochs}

    def survivors(self, count: int, end: int, epochs: int) -> int:
        """How many of the `count` trials of a search of `epochs` epochs continue after a rung."""
        return math.ceil(count * self._remaining(epochs)[end] - ROUNDING)

    def work(self, lengths: Sequence[int]) -> float:
        """The approximate number of epochs of all trials together, for trials of these lengths.

        >>> round(Rungs().work([200] * 27) / (200 * 27), 3)
        0.307
        """
        total, before, longest, count = 0, 0, max(lengths), len(lengths)
        for end in self.ends(longest):
            total += count * (end - before)
            before, count = end, self.survivors(len(lengths), end, longest) if end < longest else 0
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
    """The running trainings of one shape, by their numbers.

    `fit` of them fit into memory, `most` is the largest batch, `pieces` have their states in this order, empty before
    the first training.
    """

    members: list[int]
    fit: int
    most: int
    pieces: list[Piece] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """The epochs that all of them have been trained for."""
        return int(self.pieces[0].state.values["step"]) if self.pieces else 0

    def resume(self, pieces: Sequence[Piece]) -> None:
        """Continue with the members that have a state."""
        self.pieces = list(pieces)
        self.members = [k for piece in pieces for k in piece.members]

    def keep(self, members: Collection[int]) -> None:
        """Drop all other members, piece by piece, since all states together may fill the memory."""
        self.members = [k for k in self.members if k in members]
        for j, piece in enumerate(self.pieces):
            self.pieces[j] = piece.of(members)
        self.pieces = [piece for piece in self.pieces if piece.members]

    def state_of(self, members: Sequence[int]) -> MemberState | None:
        """The state of some members, in that order; None before the first training."""
        if not self.pieces:
            return None
        wanted = set(members)
        pieces = [piece.of(wanted) for piece in self.pieces if not wanted.isdisjoint(piece.members)]
        index = {k: j for j, k in enumerate(k for piece in pieces for k in piece.members)}
        state = MemberState.joined([piece.state for piece in pieces])
        return state if list(index) == list(members) else state.chosen([index[k] for k in members])


@dataclass(eq=False)
class HalvedRound:
    """Trials of one round, trained from rung to rung; `run` returns their results.

    `most` bounds the members of a batch in addition to the memory, `until` is the time of the monotonic clock after
    which no further epochs start. `look` is called with every batch at every rung and returns a value per member;
    `seen` has the last values by candidate and split, which are not saved in checkpoints.
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
    _running: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owners = [(index, t) for index, c in enumerate(self.candidates) for t in c.trainings(self.splits, self.seed)]
        self._owner = [index for index, _ in owners]
        self._trials, _ = resolve_trials([t for _, t in owners])
        self._lengths = [c.config.training.epochs for c in self.candidates]
        self._work = self.rungs.work(self._lengths) * len(self.splits)

    def run(self) -> list[TrialResult]:
        """Train, compare and drop trials until the longest is finished."""
        groups = grouped(self._trials)
        heaviest = [self._trials[largest(self._trials, group)] for group in groups]
        fits = [most_members(self.data, trial, **self.options) for trial in heaviest]
        most = [fit if self.most is None else min(fit, self.most) for fit in fits]
        pools = [_Pool(*of_shape) for of_shape in zip(groups, fits, most, strict=True)]
        saved = RoundCheckpoint(self.checkpoint, self._mark, self.every, self.tell)
        first = self._resumed(pools, saved.load())
        try:
            self._climb_all(pools, saved, first)
        except KeyboardInterrupt:
            saved.save()
            raise
        return [self.results[index] for index in range(len(self.candidates))]

    def _mark(self) -> str:
        """The text that identifies this round."""
        options = options_text(self.options["dtype"], keep_best=self.options["keep_best"])
        return fingerprint([self.data], list(self._trials), f"{options} {self.rungs}")

    def _resumed(self, pools: Sequence[_Pool], start: RungStart | None) -> int:
        """Resume from a saved rung; returns the epoch of that rung, 0 if there is none."""
        if start is None:
            return 0
        self.results, self._done = dict(start.results), start.done
        for pool, pieces in zip(pools, start.pools, strict=True):
            pool.resume(pieces)
        return start.end

    def _climb_all(self, pools: Sequence[_Pool], saved: RoundCheckpoint, first: int) -> None:
        """Train from rung to rung, starting with the one that ends after `first` epochs."""
        alive = set(range(len(self.candidates)))
        for end in (end for end in self.rungs.ends(max(self._lengths)) if end >= first):
            saved.leave()
            continuing = {k for k, index in enumerate(self._owner) if index in alive}
            for pool in pools:
                pool.keep(continuing)
            start = RungStart(end, self._done, dict(self.results), [list(pool.pieces) for pool in pools])
            folder = saved.begin(start, is_saved=end == first or not self.results)
            self._climb([pool for pool in pools if pool.members], end, folder, saved)
            alive = self._survivors(alive, end) if time.monotonic() < self.until else set()

    def _survivors(self, alive: set[int], end: int) -> set[int]:
        """The trials that continue after a rung: the best of those that are not finished."""
        unfinished = [index for index in alive if self._lengths[index] > end]
        if not unfinished:
            return set()
        started = sum(length > end for length in self._lengths)
        ranked = sorted(unfinished, key=lambda index: (-self.results[index].val_accuracy, index))
        return set(ranked[: self.rungs.survivors(started, end, max(self._lengths))])

    def _climb(self, pools: Sequence[_Pool], end: int, folder: Path | None, saved: RoundCheckpoint) -> None:
        """Train all running trials up to a rung, batch by batch, and record their standings there."""
        of_pool = {k: pool for pool in pools for k in pool.members}
        order = [k for pool in pools for k in pool.members]
        costs = [Costs.of(self.data, self.options["device"])] * len(self._trials)
        planned = make_batches([self._trials[k] for k in order], [pool.most for pool in pools], costs)
        batches = recorded_batches(folder, [[order[k] for k in batch] for batch in planned], self.tell)
        parts = {number: self._at_rest_part(part) for number, part in saved.parts(batches).items()}
        to_do = [number for number in range(len(batches)) if number not in parts]
        before = {number: of_pool[batch[0]].epoch for number, batch in enumerate(batches)}
        self._running = {number: _epochs(part, before[number]) for number, part in parts.items()}

        def begin(number: int) -> tuple[Ensemble, Saver]:
            ensemble = self._ensemble(of_pool[batches[number][0]], batches[number])
            return ensemble, Saver(folder, number, ensemble, [self.data], self.every, self.tell, at_end=False)

        def report(position: int, ensemble: Ensemble) -> None:
            self._running[to_do[position]] = (ensemble.epoch - before[to_do[position]]) * ensemble.members
            self.progress(min(1.0, (self._done + sum(self._running.values())) / self._work))
            saved.tick()

        def finish(position: int, ensemble: Ensemble, saver: Saver) -> None:
            number = to_do[position]
            batch, stop = batches[number], min(end, ensemble.epochs)
            if time.monotonic() < self.until:
                ensemble.advance(stop - ensemble.epoch)  # early stopping ends one training, not the batch
            if self.look is not None:
                self.seen |= {self._key(k): value for k, value in zip(batch, self.look(ensemble), strict=True)}
            is_continuing = stop < ensemble.epochs and ensemble.epoch == stop
            state = self._at_rest(ensemble.member_state(range(len(batch)))) if is_continuing else None
            parts[number] = Part(batch, _standings(ensemble), state)
            self._running[number] = _epochs(parts[number], before[number])
            saved.add(number, parts[number])
            saved.tick()

        fits = {k: pool.fit for k, pool in of_pool.items()}
        queue = [b._replace(until=self.until) for b in make_queue(self._trials, batches, fits, costs, begin, end)]
        run_batches([queue[number] for number in to_do], self.options["device"], report, finish, self.tell)
        self._done, self._running = self._done + sum(self._running.values()), {}
        for pool in pools:
            finished = [part for _, part in sorted(parts.items()) if of_pool[part.members[0]] is pool]
            pool.resume([Piece(part.members, part.state) for part in finished if part.state is not None])
        self._note({k: one for part in parts.values() for k, one in zip(part.members, part.standings, strict=True)})

    def _ensemble(self, pool: _Pool, batch: list[int]) -> Ensemble:
        ensemble = Ensemble(self.data, [self._trials[k] for k in batch], **self.options)
        if (state := pool.state_of(batch)) is not None:
            ensemble.resume(state.on(self.options["device"]))
        return ensemble

    def _at_rest_part(self, part: Part) -> Part:
        return part if part.state is None else part._replace(state=self._at_rest(part.state))

    def _at_rest(self, state: MemberState) -> MemberState:
        """The state of a waiting batch: on its device if the states of all trainings fit there, else on the CPU."""
        device = self.options["device"]
        size = sum(value.numel() * value.element_size() for value in state.values.values()) / len(state.degrees)
        if not device.startswith("cuda") or size * len(self._trials) > AT_REST * total_memory(device):
            return state.on("cpu")
        copy = state.on(device)
        torch.cuda.current_stream(torch.device(device)).synchronize()  # other streams read it
        return copy

    def _key(self, k: int) -> tuple[int, int]:
        """The candidate of a training, and its split."""
        return self._owner[k], self._trials[k].split

    def _note(self, seen: dict[int, Standing]) -> None:
        """Record the results at a rung; those of continuing trials are replaced at the next one."""
        by_candidate: dict[int, list[int]] = {}
        for k in sorted(seen):
            by_candidate.setdefault(self._owner[k], []).append(k)
        for index, members in by_candidate.items():
            candidate, reached = self.candidates[index], min(seen[k].epoch for k in members)
            val, test = tuple(seen[k].val for k in members), tuple(seen[k].test for k in members)
            is_sound = all(seen[k].is_sound for k in members)
            state = PRUNED if reached < self._lengths[index] else COMPLETE if is_sound else DIVERGED
            earlier = self.results[index].rungs if index in self.results else ()
            rungs = (*earlier, (reached, sum(val) / len(val)))
            trained = max(seen[k].trained for k in members)
            self.results[index] = TrialResult(candidate.number, state, trained, val, test, rungs)


def halving_options(device: str, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Options of the ensembles of a search: no parameters are kept, since the best trial is trained again."""
    return {"device": device, "dtype": dtype, "keep_best": False, "weights": None}
