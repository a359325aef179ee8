"""A round of a search: its trials trained on all splits as one call, with or without dropping the worse ones.

Nothing here needs the library that chooses the trials, so that they can be trained where it is not installed.
"""

from __future__ import annotations

import gc
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from gread.datasets.node_data import NodeData
from gread.models.problem import check
from gread.models.resolution import resolve_trials
from gread.settings.trials import Trial, grouped
from gread.training.batch_queue import most_members
from gread.training.planner import memory_to_plan_for, planned_for
from gread.training.trainer import EVERY, Progress, choose_device, train
from gread.tuning.candidates import COMPLETE, DIVERGED, FAILED, Candidate, PlannedRound, TrialResult
from gread.tuning.successive_halving import HalvedRound, Rungs, halving_options
from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable, Undecided, UnknownName
from rdgraph.run.engines.engine import Reporter
from rdgraph.wording import counted

CHECKPOINTS = "checkpoints"
#: How often a round begins anew in smaller batches.
TRIES = 4
#: What a configuration may be refused with.
REFUSALS = (InvalidArgument, NotApplicable, LanguageError, Undecided, UnknownName, torch.OutOfMemoryError)


def train_round(
    data: NodeData,
    plan: PlannedRound,
    *,
    device: str = "auto",
    checkpoint: Path | None = None,
    every: float = EVERY,
    progress: Callable[[float], None] = lambda share: None,
    tell: Callable[[str], object] = warnings.warn,
    memory: int | None = None,
) -> list[TrialResult]:
    """Train every trial of a plan on its splits.

    A trial that cannot be trained, since its settings do not go together or one network alone does not fit the memory,
    has failed, with the reason; the others are trained. Where batches do not fit after all, the round begins anew in
    smaller ones.

    Args:
        data: The data set that the plan was made for.
        plan: The trials.
        device: "auto" takes a GPU where there is one.
        checkpoint: A folder for the state, from which a round that was cut off goes on.
        every: Seconds between two checkpoints, about.
        progress: Hears the share of the round that is done.
        tell: Hears sentences about what a user should know.
        memory: Bytes that batches are made for, unless they turn out not to be there; by default those that are free.

    Returns:
        The results in the order of the trials.

    Raises:
        InvalidArgument: For other data, or splits that are not there or have no validation nodes.
    """
    plan.check(data)
    for split in plan.splits:
        check(data, split)
    check_validation(data, plan.splits)
    return _Round(data, plan, choose_device(device), checkpoint, every, progress, tell).train(memory)


@dataclass(frozen=True, eq=False)
class _Round:
    """A round that is tried again: without the trials that cannot be trained, then in smaller batches."""

    data: NodeData
    plan: PlannedRound
    device: str
    checkpoint: Path | None
    every: float
    progress: Callable[[float], None]
    tell: Callable[[str], object]

    def train(self, memory: int | None) -> list[TrialResult]:
        """The results in the order of the trials, where batches are made for so many bytes at first."""
        failed, tries = dict[int, TrialResult](), 0
        while True:
            left = [c for c in self.plan.candidates if c.number not in failed]
            found = self._attempt(left, memory, self._folder(tries, failed))
            if not isinstance(found, Exception):
                done = failed | {result.number: result for result in found}
                return [done[c.number] for c in self.plan.candidates]
            if more := refused(self.data, replace(self.plan, candidates=tuple(left)), self.device):
                self.tell(f"{len(more)} of {counted(len(left), 'trial')} cannot be trained: {reason(found)}")
                failed |= more
                continue
            if not isinstance(found, torch.OutOfMemoryError) or tries == TRIES:
                raise found
            free, tries = memory_to_plan_for(self.device), tries + 1
            memory = min((memory or free) // 2, free)
            self.tell(f"the round begins anew in smaller batches, which may change last digits: {reason(found)}")

    def _attempt(
        self, candidates: Sequence[Candidate], memory: int | None, folder: Path | None
    ) -> list[TrialResult] | Exception:
        """The results of some trials, or what they were refused with, once nothing of them is left in memory."""
        make = _halved if self.plan.halving else _whole
        try:
            with planned_for(memory):
                return make(
                    self.data, self.plan, candidates, self.device, folder, self.every, self.progress, self.tell
                ) if candidates else []  # fmt: skip
        except REFUSALS as problem:
            found = problem.with_traceback(None)  # it would keep the batches
        gc.collect()
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        return found

    def _folder(self, tries: int, failed: Mapping[int, TrialResult]) -> Path | None:
        """Where the state lies: an attempt with other trials or batches goes on from its own."""
        if self.checkpoint is None or not (tries or failed):
            return self.checkpoint
        without = hashlib.sha256(repr(sorted(failed)).encode()).hexdigest()[:16]
        return self.checkpoint / f"attempt-{tries}-{without}"


def reason(problem: Exception) -> str:
    """Why a training failed, in one line; every out-of-memory error of a GPU gives the same line.

    >>> reason(RuntimeError("expected a graph, got none\\nand more")), reason(torch.OutOfMemoryError("CUDA ..."))
    ('expected a graph, got none', 'out of memory on the card')
    """
    if isinstance(problem, torch.OutOfMemoryError):
        return "out of memory on the card"
    return str(problem).partition("\n")[0] or type(problem).__name__


def in_pieces(plan: PlannedRound) -> list[PlannedRound]:
    """A round in parts that may be trained apart, to the same numbers: trials that share batches stay together.

    With halving that is the whole round, as its trials are compared with each other.
    """
    if plan.halving:
        return [plan]
    sound, unsound = _sorted_out(plan)
    parts = [[candidate] for candidate, _ in unsound]
    parts += [[sound[k][0] for k in group] for group in grouped([trial for _, trial in sound])]
    return [replace(plan, candidates=tuple(part)) for part in parts]


def _sorted_out(plan: PlannedRound) -> tuple[list[tuple[Candidate, Trial]], list[tuple[Candidate, str]]]:
    """The candidates whose settings go together, with their first training, and the others with what refuses them."""
    sound, unsound = [], []
    for candidate in plan.candidates:
        try:
            trials, _ = resolve_trials(candidate.trainings(plan.splits[:1], plan.seed))
            grouped(trials)  # a method without the step that it needs has no shape
        except REFUSALS as problem:
            unsound.append((candidate, str(problem)))
        else:
            sound.append((candidate, trials[0]))
    return sound, unsound


@dataclass(frozen=True, eq=False)
class RoundWork:
    """What is done with the trials of a round, wherever that is; a folder that is not there keeps no checkpoints."""

    data: NodeData
    device: str
    folder: Path | None
    every: float
    memory: int

    def __call__(self, planned: PlannedRound, reporter: Reporter) -> list[TrialResult]:
        has_folder = self.folder is not None and self.folder.is_dir()
        return train_round(
            self.data, planned, device=self.device, every=self.every, progress=reporter.share, tell=reporter.tell,
            checkpoint=checkpoints_of(self.folder, planned.digest) if self.folder and has_folder else None,
            memory=self.memory,
        )  # fmt: skip


def checkpoints_of(folder: Path, digest: str) -> Path:
    """Where the state of a round lies in the folder of its search."""
    return folder / CHECKPOINTS / digest[:16]


def planned_memory(device: str, reporter: Reporter) -> int:
    """Bytes that a worker makes batches for."""
    return memory_to_plan_for(choose_device(device))


def check_validation(data: NodeData, splits: Sequence[int]) -> None:
    """Refuse splits that nothing can be chosen by."""
    for split in splits:
        if 0 <= split < data.num_splits and not data.masks.val[split].any():
            raise InvalidArgument(
                f"expected validation nodes in split {split} of {data.meta.name}, got none; trials are chosen by them"
            )


def refused(data: NodeData, plan: PlannedRound, device: str) -> dict[int, TrialResult]:
    """The trials that cannot be trained, with the reasons: of every shape the largest is tried, then the next."""
    sound, unsound = _sorted_out(plan)
    found = {c.number: TrialResult(c.number, FAILED, 0, note=problem) for c, problem in unsound}
    for group in grouped([trial for _, trial in sound]):
        left = list(group)
        while left:
            effort = max(sound[k][1].effort for k in left)
            same = [k for k in left if sound[k][1].effort == effort]
            try:
                most_members(data, sound[same[0]][1], **halving_options(device))
            except REFUSALS as problem:
                numbers = [sound[k][0].number for k in same]
                found |= {number: TrialResult(number, FAILED, 0, note=reason(problem)) for number in numbers}
                left = [k for k in left if k not in same]
            else:
                break
    return found


def _whole(
    data: NodeData, plan: PlannedRound, candidates: Sequence[Candidate], device: str, checkpoint: Path | None,
    every: float, progress: Callable[[float], None], tell: Callable[[str], object],
) -> list[TrialResult]:  # fmt: skip
    """All trials to their ends, as one training of many."""

    def hear(now: Progress) -> None:
        progress(now.epoch / now.epochs)

    trials = [t for c in candidates for t in c.trainings(plan.splits, plan.seed)]
    done = train(
        data, trials, device=device, checkpoint=checkpoint, every=every, progress=hear, tell=tell, keep_best=False
    )  # fmt: skip
    count, found = len(plan.splits), []
    for place, candidate in enumerate(candidates):
        part = slice(place * count, (place + 1) * count)
        state = COMPLETE if all(status == "ok" for status in done.status[part]) else DIVERGED
        val, test = (tuple(map(float, values[part])) for values in (done.val_accuracy, done.test_accuracy))
        found.append(TrialResult(candidate.number, state, int(done.epochs[part].max()), val, test))
    return found


def _halved(
    data: NodeData, plan: PlannedRound, candidates: Sequence[Candidate], device: str, checkpoint: Path | None,
    every: float, progress: Callable[[float], None], tell: Callable[[str], object],
) -> list[TrialResult]:  # fmt: skip
    """The same with the worse part dropped at rungs."""
    return HalvedRound(
        data, candidates, plan.splits, plan.seed, Rungs(), halving_options(device), checkpoint, tell, progress, every
    ).run()
