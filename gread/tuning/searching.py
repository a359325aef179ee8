"""`search`: chooses settings by validation accuracy, many trials as one program; an interrupted search resumes."""

from __future__ import annotations

import hashlib
import math
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from gread.datasets.node_data import NodeData, read_data, read_splits
from gread.settings.config import Config
from gread.training.trainer import EVERY, choose_device
from gread.tuning.ask_tell import SAMPLERS, STUDY, Ledger
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult, load_results, save_results
from gread.tuning.rounds import CHECKPOINTS, RoundWork, check_splits, checkpoints_of, in_pieces, planned_memory
from gread.tuning.selection import chosen, require_chosen
from gread.tuning.space import Space, Value, find_space
from rdgraph.errors import FileError, InvalidArgument, UnknownName
from rdgraph.graphs.edges import read_whole
from rdgraph.run.engines.engine import Engine, LocalEngine
from rdgraph.run.engines.engine_choice import opened
from rdgraph.wording import counted, duration


# ---------------------------------------------------------------------- search progress
class SearchProgress(NamedTuple):
    """Progress of a search: finished trials (and shares of running ones), the best so far, seconds passed and left."""

    trials: float
    total: int
    best: float
    best_trial: int
    seconds: float
    seconds_left: float

    @property
    def text(self) -> str:
        """The number of finished trials, and the best so far."""
        best = "" if self.best_trial < 0 else f", best validation {100 * self.best:.2f} % (trial {self.best_trial})"
        return f"{math.floor(self.trials)} of {counted(self.total, 'trial')}{best}"

    @property
    def left(self) -> str:
        """The remaining time, preceded by a comma; "" if unknown."""
        return "" if math.isnan(self.seconds_left) else f", {duration(self.seconds_left)} left"


@dataclass(eq=False)
class SearchMeter:
    """Counts the trials of a search, and calls `listener` with the progress whenever it changes.

    `before` trials were finished when this process resumed the search; the remaining time is estimated from the others.

    >>> meter = SearchMeter(4, lambda now: print(now.trials, now.total, now.best_trial))
    >>> meter.begin([TrialResult(0, "complete", 9, (0.5,), (0.5,))])
    1
    >>> meter.report()
    1 4 0
    """

    total: int
    listener: Callable[[SearchProgress], None] | None
    before: int = 0
    known: Sequence[TrialResult] = ()
    _shares: dict[str, float] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    def begin(self, known: Sequence[TrialResult]) -> int:
        """Record the trials that have results from earlier runs; returns their number."""
        self.known, self.before = known, len(known)
        return self.before

    def record_share(self, planned: PlannedRound, share: float) -> None:
        """Record that this share of a round's trials is done."""
        self._shares[planned.digest] = share * len(planned.candidates)
        self.report()

    def record_results(self, planned: PlannedRound, known: Sequence[TrialResult]) -> None:
        """Record that a round has ended, with all results that are known now."""
        self._shares.pop(planned.digest, None)
        self.known = known

    def report(self) -> None:
        """Call the listener with the progress of the search: finished trials, the best so far, and the seconds left."""
        if self.listener is None:
            return
        best, passed = chosen(self.known), time.monotonic() - self._started
        done = min(self.total, len(self.known) + sum(self._shares.values()))
        remaining = passed * (self.total - done) / (done - self.before) if done > self.before else math.nan
        value, number = (math.nan, -1) if best is None else (best.val_accuracy, best.number)
        self.listener(SearchProgress(done, self.total, value, number, passed, remaining))


# ---------------------------------------------------------------------- searching
#: Files of a search: the journal of trials, results that are not in it yet, and the best configuration.
JOURNAL, UNRECORDED, BEST = "journal.log", "untold_results.json", "best.toml"
#: The name of the digest of a search's choices in its storage.
CHOICES = "choices"
#: Trials of one round by sampler; all but random learn from earlier rounds.
ROUND = {"random": 200, "tpe": 16, "cmaes": 16}
#: The first columns of the table of trials.
COLUMNS = ("trial", "state", "epochs", "val_accuracy", "test_accuracy")


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """A complete description of a search.

    Args:
        data: One data set.
        base: The base configuration, whose other settings all trials share.
        space: The search space, for the network of `base`.
        splits: The splits; every trial is trained once on each of them.
        trials: The number of trials.
        sampler: random, tpe or cmaes.
        halving: Whether the worse part of a round is dropped early.
        seed: The seed of the sampler and of the trainings.
        round_size: Trials that are drawn and trained together.

    Raises:
        InvalidArgument: For no trials, a seed below 0, splits that do not exist or have no validation nodes.
        UnknownName: For an unknown sampler.
    """

    data: NodeData
    base: Config
    space: Space
    splits: tuple[int, ...]
    trials: int
    sampler: str = "random"
    halving: bool = False
    seed: int = 0
    round_size: int = ROUND["random"]

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UnknownName("sampler", self.sampler, SAMPLERS)
        if not isinstance(self.halving, bool):
            raise InvalidArgument(f"expected True or False for halving, got {self.halving!r:.60}")
        for name, least in (("trials", 1), ("round_size", 1), ("seed", 0)):
            object.__setattr__(self, name, read_whole(getattr(self, name), least, name))
        check_splits(self.data, self.splits)

    @classmethod
    def make(
        cls, data: NodeData, *, trials: int, space: str | Path | Mapping[str, Any] | Space,
        base: Config | str | None = None,
        fixed: Mapping[str, Value] | None = None, splits: Sequence[int] | None = None, sampler: str = "random",
        halving: bool = False, seed: int = 0, round_size: int | None = None,
    ) -> SearchPlan:  # fmt: skip
        """A search around `base`, in a space by name; settings in `fixed` are not searched."""
        data, fixed = read_data(data), {} if fixed is None else fixed
        start = Config.read(base).updated(fixed)
        free = (space if isinstance(space, Space) else find_space(space)).of(start).without(set(fixed))
        if not free.draw(start, lambda searched: searched.distribution.examples[0]):
            raise InvalidArgument("nothing to search: all settings of the space are fixed or have no effect")
        return cls(
            data, start, free, read_splits(splits, data), trials, sampler, halving, seed,
            ROUND.get(sampler, 1) if round_size is None else round_size,
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of all choices of the search, which identifies it."""
        start = self.round_of([Candidate(0, self.base)]).text()
        choices = start + repr((self.space, self.trials, self.sampler, self.round_size))
        return hashlib.sha256(choices.encode()).hexdigest()

    @property
    def study_name(self) -> str:
        """The name of this search in a shared database: the name of the data and the start of the digest."""
        return f"{self.data.meta.name}-{self.digest[:12]}"

    def round_of(self, candidates: Sequence[Candidate]) -> PlannedRound:
        return PlannedRound.of(self.data, self.splits, self.seed, self.halving, candidates)


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a search: all trials with their results, and the importance of settings if known.

    `best` is the configuration with the best mean validation accuracy over the splits, among trials trained to the last
    epoch; test accuracies are never used for selection.
    """

    plan: SearchPlan
    candidates: tuple[Candidate, ...]
    results: tuple[TrialResult, ...]
    importance: Mapping[str, float]

    def __repr__(self) -> str:
        best = chosen(self.results)
        text = "none could be chosen" if best is None else f"best trial {best.number}: {100 * best.val_accuracy:.2f} %"
        return f"Found({counted(len(self.results), 'trial')} on {self.plan.data.meta.name}, {text} on validation nodes)"

    @property
    def chosen(self) -> TrialResult:
        """The chosen trial; an error if no trial could be trained."""
        return require_chosen(self.results, "trial")

    @property
    def best(self) -> Config:
        """The chosen configuration."""
        return self.config(self.chosen.number)

    def config(self, number: int) -> Config:
        """The configuration of the trial with that number."""
        for candidate in self.candidates:
            if candidate.number == number:
                return candidate.config
        raise InvalidArgument(f"expected the number of a trial among {len(self.candidates)}, got {number}")

    def rows(self) -> list[dict[str, int | float | str]]:
        """One row per trial: trial, state, epochs, val_accuracy, test_accuracy, then a column for every setting.

        The cell of a setting without effect is empty. `epochs` is the largest number of trained epochs over the splits;
        early stopping may lower it. If the number of epochs is searched, its column is epochs_setting.
        """
        drawn = {c.number: c.values for c in self.candidates}
        names = {s.name: f"{s.name}_setting" if s.name in COLUMNS else s.name for s in self.plan.space.searched}
        return [
            {
                **dict(zip(COLUMNS, (r.number, r.state, r.epochs, r.val_accuracy, r.test_accuracy), strict=True)),
                **{column: _cell(drawn[r.number].get(name, "")) for name, column in names.items()},
            }
            for r in self.results
        ]


def _cell(value: Value) -> int | float | str:
    return str(value).lower() if isinstance(value, bool) else value


def search(
    data: NodeData,
    *,
    trials: int = 50,
    space: str | Path | Mapping[str, Any] | Space = "small",
    base: Config | str | None = None,
    fixed: Mapping[str, Value] | None = None,
    splits: Sequence[int] | None = None,
    sampler: str = "random",
    halving: bool = False,
    seed: int = 0,
    round_size: int | None = None,
    folder: str | Path | None = None,
    storage: str | None = None,
    device: str = "auto",
    engine: str | Engine = "local",
    address: str | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
) -> Found:
    """Search for the settings with the best mean validation accuracy over the splits; test labels are never used.

    Trials are drawn in rounds, and all trials of a round are trained on all splits in one call. With a folder the
    search is stored there; the same call resumes an interrupted search or reads a finished one.

    Args:
        data: One data set.
        trials: The number of trials.
        space: "paper", "wide", "small", "tuned", the path of a toml file, a mapping with the content of such a file, or
            a `gread.tuning.space.Space`.
        base: The base configuration, which also names the network, or the name of a network; GREAD's defaults if left
            out.
        fixed: Settings with other values than in `base`, which are not searched.
        splits: Numbers of splits; all by default.
        sampler: random, tpe or cmaes.
        halving: Whether the worse trials of a round are dropped early, see `gread.tuning.successive_halving.Rungs`.
        seed: The seed of the sampler and of the trainings.
        round_size: Trials of one round; by default 200 for the random sampler, 16 for the others.
        folder: The folder of the search; None keeps it in memory.
        storage: The url of a database for the trials, such as postgresql://USER@HOST/DATABASE; by default a journal
            file in the folder.
        device: "auto" uses a GPU if there is one.
        engine: "local" trains in this process, "ray" on the machines of a Ray cluster; or an open engine of
            `rdgraph.run.engines`. The results are the same.
        address: The address of the Ray cluster; by default one is started on this machine.
        progress: Called with the progress, about once a second.
        tell: Called with messages for the user.

    Returns:
        The trials, their results and the best configuration, see `Found`.

    Raises:
        MissingDependency: Without optuna, without ray for that engine, or without the driver of a database.
        InvalidArgument: For values of the wrong type, settings that the network does not have, data without
            validation nodes, or a storage without a folder.
        UnknownName: For an unknown space, sampler or engine.
        FileError: For a folder that holds another search, or a storage that does not answer.

    >>> import gread
    >>> found = gread.search(gread.karate(), trials=4, fixed={"epochs": 20, "hidden": 8}, splits=[0, 1], device="cpu")
    >>> len(found.results), found.best.model.hidden, sorted(found.rows()[0])[:2]
    (4, 8, ['dropout', 'epochs'])
    """
    plan = SearchPlan.make(
        data, trials=trials, space=space, base=base, fixed=fixed, splits=splits, sampler=sampler, halving=halving,
        seed=seed, round_size=round_size,
    )  # fmt: skip
    with opened(engine, address) as opened_engine:
        return Search(
            plan, None if folder is None else Path(folder), storage=storage, device=device, engine=opened_engine,
            progress=progress, tell=tell,
        ).run()  # fmt: skip


class Search:
    """A running search: `run` completes it, `plan_round` and `take_results` do the parts that need optuna."""

    def __init__(
        self,
        plan: SearchPlan,
        folder: Path | None,
        *,
        storage: str | None = None,
        device: str = "auto",
        engine: Engine | None = None,
        every: float = EVERY,
        progress: Callable[[SearchProgress], None] | None = None,
        tell: Callable[[str], object] = warnings.warn,
        on_round: Callable[[Found], None] = lambda found: None,
    ) -> None:
        if storage is not None and folder is None:
            raise InvalidArgument("a search in a storage needs a folder; pass folder=")
        self.plan, self.folder, self.every, self.engine = plan, folder, every, engine or LocalEngine()
        device = self.engine.device(device)
        # Another machine may have a device that this one lacks.
        self.device = choose_device(device) if self.engine.name == LocalEngine.name or device == "auto" else device
        self._meter, self._tell, self._on_round = SearchMeter(plan.trials, progress), tell, on_round
        location, name = (storage, plan.study_name) if storage else (folder and folder / JOURNAL, STUDY)
        self.ledger = Ledger(plan.space, plan.base, plan.sampler, plan.seed, location, name)
        if self.ledger.constant(CHOICES, lambda: plan.digest) != plan.digest:
            raise FileError(f"{folder} holds another search; choose another folder")

    def run(self) -> Found:
        """Draw, train and record trials round by round; as many rounds at once as the engine and the sampler allow."""
        with self.ledger.locked():
            self._record_pending()
            if self._meter.begin(self.ledger.results()) < self.plan.trials:
                work = RoundWork(self.plan.data, self.device, self.folder, self.every, self._planned_memory())
                for wave in self._waves():
                    self._train(work, wave)
            return self.found()

    def _train(self, work: RoundWork, wave: Iterable[PlannedRound]) -> None:
        """Train rounds that may run at the same time, and record every part as soon as it is finished."""
        running = self.engine.run(work, wave, device=self.device, hear=self._meter.record_share, tell=self._tell)
        with closing(running):  # type: ignore[type-var]  # running work is stopped with this process
            for planned, results in running:
                if self.folder is not None:
                    save_results(self.folder / UNRECORDED, planned, results)
                self.ledger.tell(results)
                self._clean_up(planned.digest)
                self._meter.record_results(planned, self.ledger.results())
                self._on_round(self.found(importance=False))
                self._meter.report()

    def _planned_memory(self) -> int:
        """Bytes that batches are planned for, measured once by a worker."""

        def measured() -> int:
            return next(iter(self.engine.run(planned_memory, [self.device], device=self.device)))[1]

        return int(self.ledger.constant("memory", measured))

    def _waves(self) -> Iterator[Iterable[PlannedRound]]:
        """Groups of rounds that may be trained at the same time: all rounds if trials are independent, else one each.

        Rounds are divided if they would not fill the engine, into parts with the same results.
        """
        rounds, slots = self._rounds(), self.engine.slots
        if self.plan.sampler != "random":
            yield from (in_pieces(planned) if slots > 1 else [planned] for planned in rounds)
            return
        remaining = -(-(self.plan.trials - self._meter.before) // self.plan.round_size)
        yield chain.from_iterable(in_pieces(planned) if remaining < slots else [planned] for planned in rounds)

    def found(self, *, importance: bool = True) -> Found:
        """The results of the search so far, with or without the importance of settings."""
        known = self.ledger.importance() if importance else {}
        return Found(self.plan, tuple(self.ledger.candidates()), tuple(self.ledger.results()), known)

    def _rounds(self) -> Iterator[PlannedRound]:
        """The trials without results, round by round; a round is drawn when it is requested."""
        size = self.plan.round_size
        for first in range(0, self.plan.trials, size):
            end = min(self.plan.trials, first + size)
            self.ledger.ask(max(0, end - len(self.ledger)))
            candidates = [c for c in self.ledger.pending() if first <= c.number < end]
            if candidates:
                yield self.plan.round_of(candidates)

    def _clean_up(self, digest: str) -> None:
        """Remove the files of a part of the search that is recorded."""
        if self.folder is not None:
            shutil.rmtree(checkpoints_of(self.folder, digest), ignore_errors=True)
            with suppress(OSError):
                (self.folder / UNRECORDED).unlink(missing_ok=True)
                (self.folder / CHECKPOINTS).rmdir()

    def _record_pending(self) -> None:
        """Record results that were saved before an interruption and are not in the storage yet."""
        if self.folder is not None and (self.folder / UNRECORDED).exists():
            digest, results = load_results(self.folder / UNRECORDED)
            self.ledger.tell(results)
            self._clean_up(digest)

    # ------------------------------------------------------------------ trained elsewhere
    def plan_round(self) -> PlannedRound | None:
        """The next trials, to be trained on any machine by `gread.tuning.rounds.train_round`; None at the end."""
        with self.ledger.locked():
            self._record_pending()
            return next(self._rounds(), None)

    def take_results(self, path: Path) -> int:
        """Record the results of a planned round from a file; returns the number of remaining trials."""
        digest, results = load_results(path)
        with self.ledger.locked():
            numbers = {r.number for r in results}
            candidates = [c for c in self.ledger.pending() if c.number in numbers]
            known = {r.number for r in self.ledger.results()}
            is_of_all_splits = all(len(r.val) in (0, len(self.plan.splits)) for r in results)
            if not is_of_all_splits or (not numbers <= known and self.plan.round_of(candidates).digest != digest):
                raise FileError(
                    f"expected the results of the trials that were planned here, got those of others in {path}; run "
                    "the plan of this search"
                )
            self.ledger.tell(results)
            return self.plan.trials - len(self.ledger.results())
