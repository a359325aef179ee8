"""A round of a search: trains its trials on all splits in one call, with or without dropping the worse ones.

It does not need the library that chooses the trials, so a round can be trained where that is not installed.
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
#: The most restarts of a round in smaller batches.
TRIES = 4
#: Errors with which a configuration may be refused.
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

    A trial whose settings do not fit together, or of which a single network does not fit into memory, has failed, with
    the reason; the others are trained. If batches do not fit after all, the round restarts in smaller ones.

    Args:
        data: The data set that the plan was made for.
        plan: The trials.
        device: "auto" uses a GPU if there is one.
        checkpoint: A folder for checkpoints, from which an interrupted round resumes.
        every: Approximate seconds between two checkpoints.
        progress: Called with the finished share of the round.
        tell: Called with messages for the user.
        memory: Bytes that batches are planned for, if available; by default the free memory.

    Returns:
        The results in the order of the trials.

    Raises:
        InvalidArgument: For other data, or splits that do not exist or have no validation nodes.
    """
    plan.check(data)
    check_splits(data, plan.splits)
    return _Round(data, plan, choose_device(device), checkpoint, every, progress, tell).train(memory)


@dataclass(frozen=True, eq=False)
class _Round:
    """A round, retried without the trials that cannot be trained, then in smaller batches."""

    data: NodeData
    plan: PlannedRound
    device: str
    checkpoint: Path | None
    every: float
    progress: Callable[[float], None]
    tell: Callable[[str], object]

    def train(self, memory: int | None) -> list[TrialResult]:
        """The results in the order of the trials; batches are planned for `memory` bytes at first."""
        failed, tries = dict[int, TrialResult](), 0
        while True:
            remaining = [c for c in self.plan.candidates if c.number not in failed]
            outcome = self._attempt(remaining, memory, self._folder(tries, failed))
            if not isinstance(outcome, Exception):
                results = failed | {result.number: result for result in outcome}
                return [results[c.number] for c in self.plan.candidates]
            if more := refused(self.data, replace(self.plan, candidates=tuple(remaining)), self.device):
                self.tell(f"{len(more)} of {counted(len(remaining), 'trial')} cannot be trained: {reason(outcome)}")
                failed |= more
                continue
            if not isinstance(outcome, torch.OutOfMemoryError) or tries == TRIES:
                raise outcome
            free, tries = memory_to_plan_for(self.device), tries + 1
            memory = min((memory or free) // 2, free)
            self.tell(f"the round restarts in smaller batches, which may change the last digits: {reason(outcome)}")

    def _attempt(
        self, candidates: Sequence[Candidate], memory: int | None, folder: Path | None
    ) -> list[TrialResult] | Exception:
        """The results of some trials, or the error of a refusal after their memory is released."""
        run = self._halved if self.plan.halving else self._to_the_end
        try:
            with planned_for(memory):
                return run(candidates, folder) if candidates else []
        except REFUSALS as problem:
            error = problem.with_traceback(None)  # the traceback would keep the batches alive
        gc.collect()
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        return error

    def _to_the_end(self, candidates: Sequence[Candidate], folder: Path | None) -> list[TrialResult]:
        """All trials trained to the last epoch, as one call of `train`."""

        def report(now: Progress) -> None:
            self.progress(now.epoch / now.epochs)

        trials = [t for c in candidates for t in c.trainings(self.plan.splits, self.plan.seed)]
        run = train(
            self.data, trials, device=self.device, checkpoint=folder, every=self.every, progress=report, tell=self.tell,
            keep_best=False,
        )  # fmt: skip
        count, results = len(self.plan.splits), []
        for k, candidate in enumerate(candidates):
            part = slice(k * count, (k + 1) * count)
            state = COMPLETE if all(status == "ok" for status in run.status[part]) else DIVERGED
            val, test = (tuple(map(float, values[part])) for values in (run.val_accuracy, run.test_accuracy))
            results.append(TrialResult(candidate.number, state, int(run.epochs[part].max()), val, test))
        return results

    def _halved(self, candidates: Sequence[Candidate], folder: Path | None) -> list[TrialResult]:
        """The same with the worse part dropped at rungs."""
        return HalvedRound(
            self.data, candidates, self.plan.splits, self.plan.seed, Rungs(), halving_options(self.device), folder,
            self.tell, self.progress, self.every,
        ).run()  # fmt: skip

    def _folder(self, tries: int, failed: Mapping[int, TrialResult]) -> Path | None:
        """The folder of the state; attempts with other trials or batches have separate ones."""
        if self.checkpoint is None or not (tries or failed):
            return self.checkpoint
        without = hashlib.sha256(repr(sorted(failed)).encode()).hexdigest()[:16]
        return self.checkpoint / f"attempt-{tries}-{without}"


def reason(problem: Exception) -> str:
    """The reason of a failed training in one line; the same for every out-of-memory error of a GPU.

    >>> reason(RuntimeError("expected a graph, got none\\nand more")), reason(torch.OutOfMemoryError("CUDA ..."))
    ('expected a graph, got none', 'out of GPU memory')
    """
    if isinstance(problem, torch.OutOfMemoryError):
        return "out of GPU memory"
    return str(problem).partition("\n")[0] or type(problem).__name__


def in_pieces(plan: PlannedRound) -> list[PlannedRound]:
    """The parts of a round that may be trained separately with the same results, each of trials that share batches.

    With halving the whole round is one part, since its trials are compared with each other.
    """
    if plan.halving:
        return [plan]
    sound, unsound = _validated(plan)
    parts = [[candidate] for candidate, _ in unsound]
    parts += [[sound[k][0] for k in group] for group in grouped([trial for _, trial in sound])]
    return [replace(plan, candidates=tuple(part)) for part in parts]


def _validated(plan: PlannedRound) -> tuple[list[tuple[Candidate, Trial]], list[tuple[Candidate, str]]]:
    """The candidates with consistent settings, with their first training, and the others with the reason."""
    sound, unsound = [], []
    for candidate in plan.candidates:
        try:
            trials, _ = resolve_trials(candidate.trainings(plan.splits[:1], plan.seed))
            grouped(trials)  # raises for a method that needs a step and has none
        except REFUSALS as problem:
            unsound.append((candidate, str(problem)))
        else:
            sound.append((candidate, trials[0]))
    return sound, unsound


@dataclass(frozen=True, eq=False)
class RoundWork:
    """Trains the trials of a round on any machine; without the folder there it keeps no checkpoints."""

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
    """The folder of the checkpoints of a round, in the folder of its search."""
    return folder / CHECKPOINTS / digest[:16]


def planned_memory(device: str, reporter: Reporter) -> int:
    """Bytes that a worker plans batches for."""
    return memory_to_plan_for(choose_device(device))


def check_splits(data: NodeData, splits: Sequence[int]) -> None:
    """Refuse splits that cannot be trained on or have no validation nodes, and an empty list of splits."""
    if not splits:
        raise InvalidArgument(f"expected at least one split of {data.meta.name}, got none")
    for split in splits:
        check(data, split)
    for split in splits:
        if not data.masks.val[split].any():
            raise InvalidArgument(
                f"expected validation nodes in split {split} of {data.meta.name}, got none; trials are chosen by them"
            )


def refused(data: NodeData, plan: PlannedRound, device: str) -> dict[int, TrialResult]:
    """The trials that cannot be trained, with the reasons: of every shape the largest is tried, then the next."""
    sound, unsound = _validated(plan)
    failed = {c.number: TrialResult(c.number, FAILED, 0, note=problem) for c, problem in unsound}
    for group in grouped([trial for _, trial in sound]):
        untried = list(group)
        while untried:
            effort = max(sound[k][1].effort for k in untried)
            same = [k for k in untried if sound[k][1].effort == effort]
            try:
                most_members(data, sound[same[0]][1], **halving_options(device))
            except REFUSALS as problem:
                numbers = [sound[k][0].number for k in same]
                failed |= {number: TrialResult(number, FAILED, 0, note=reason(problem)) for number in numbers}
                untried = [k for k in untried if k not in same]
            else:
                break
    return failed
