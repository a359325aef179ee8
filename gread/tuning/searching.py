"""`search`: settings chosen on validation nodes alone, many trials as one program; it goes on where it was left."""

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
from gread.models.problem import check
from gread.settings.config import Config
from gread.training.trainer import EVERY, choose_device
from gread.tuning.ask_tell import SAMPLERS, STUDY, Ledger
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult, load_results, save_results
from gread.tuning.rounds import CHECKPOINTS, RoundWork, check_validation, checkpoints_of, in_pieces, planned_memory
from gread.tuning.selection import chosen
from gread.tuning.space import Space, Value, find_space
from rdgraph.errors import FileError, InvalidArgument, UnknownName
from rdgraph.graphs.edges import read_whole
from rdgraph.run.engines.engine import Engine, LocalEngine
from rdgraph.run.engines.engine_choice import opened
from rdgraph.wording import counted, duration

# ---------------------------------------------------------------------- search progress
# How far a search is: trials that are told of, shares of those under way, the best so far, and the time left.


class SearchProgress(NamedTuple):
    """How far a search is: trials done (with a share of those under way), the best so far, seconds passed and left."""

    trials: float
    total: int
    best: float
    best_trial: int
    seconds: float
    seconds_left: float

    @property
    def text(self) -> str:
        """How many trials are done, and the best so far."""
        best = "" if self.best_trial < 0 else f", best validation {100 * self.best:.2f} % (trial {self.best_trial})"
        return f"{math.floor(self.trials)} of {counted(self.total, 'trial')}{best}"

    @property
    def left(self) -> str:
        """The time left, with a comma before it; "" where it is not known."""
        return "" if math.isnan(self.seconds_left) else f", {duration(self.seconds_left)} left"


@dataclass(eq=False)
class SearchMeter:
    """Counts the trials of a search, and calls `listener` with the progress whenever it changes.

    `before` trials were known when this process took the search up; the time that is left follows from the others.

    >>> meter = SearchMeter(4, lambda now: print(now.trials, now.total, now.best_trial))
    >>> meter.begin([TrialResult(0, "complete", 9, (0.5,), (0.5,))])
    1
    >>> meter.tell()
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

    def hear_share(self, planned: PlannedRound, share: float) -> None:
        """Record that this share of a round's trials is done."""
        self._shares[planned.digest] = share * len(planned.candidates)
        self.tell()

    def hear_results(self, planned: PlannedRound, known: Sequence[TrialResult]) -> None:
        """Record that a round has ended, and that these results are known now."""
        self._shares.pop(planned.digest, None)
        self.known = known

    def tell(self) -> None:
        """Call the listener with the progress of the search: trials done, the best so far, and the seconds left."""
        if self.listener is None:
            return
        best, passed = chosen(self.known), time.monotonic() - self._started
        done = min(self.total, len(self.known) + sum(self._shares.values()))
        left = passed * (self.total - done) / (done - self.before) if done > self.before else math.nan
        value, number = (math.nan, -1) if best is None else (best.val_accuracy, best.number)
        self.listener(SearchProgress(done, self.total, value, number, passed, left))


# ---------------------------------------------------------------------- searching
JOURNAL, UNTOLD, BEST = "journal.log", "untold_results.json", "best.toml"
#: What the digest of a search's choices is called in its storage.
CHOICES = "choices"
#: Trials of one round: random ones do not learn from others, the others do.
ROUND = {"random": 200, "tpe": 16, "cmaes": 16}
#: The first columns of the table of trials.
COLUMNS = ("trial", "state", "epochs", "val_accuracy", "test_accuracy")


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """A search with nothing left open.

    Args:
        data: One data set.
        base: The configuration that is searched around.
        space: What is searched, for the network of `base`.
        splits: Every trial is trained on all of these, on each of them once.
        trials: How many trials.
        sampler: random, tpe or cmaes.
        halving: Whether the worse part of a round is dropped on the way.
        seed: Of the sampler and of the trainings.
        round_size: Trials that are drawn and trained together.

    Raises:
        InvalidArgument: For no trials, a seed below 0, splits that are not there, or that have no validation nodes.
        UnknownName: For a sampler that there is not.
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
        if not self.splits:
            raise InvalidArgument(f"expected splits of {self.data.meta.name}, got none")
        for split in self.splits:
            check(self.data, split)
        check_validation(self.data, self.splits)

    @classmethod
    def make(
        cls, data: NodeData, *, trials: int, space: str | Path | Mapping[str, Any] | Space,
        base: Config | str | None = None,
        fixed: Mapping[str, Value] | None = None, splits: Sequence[int] | None = None, sampler: str = "random",
        halving: bool = False, seed: int = 0, round_size: int | None = None,
    ) -> SearchPlan:  # fmt: skip
        """A search around `base`, in a space by name, with some settings fixed, which are then not searched."""
        data, fixed = read_data(data), {} if fixed is None else fixed
        start = Config.read(base).updated(fixed)
        made = (space if isinstance(space, Space) else find_space(space)).of(start).without(set(fixed))
        if not made.draw(start, lambda searched: searched.distribution.examples[0]):
            raise InvalidArgument("expected a setting that is left to search, got all of them fixed or without effect")
        return cls(
            data, start, made, read_splits(splits, data), trials, sampler, halving, seed,
            ROUND.get(sampler, 1) if round_size is None else round_size,
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """SHA-256 digest of all choices of the search; it identifies the search."""
        start = self.round_of([Candidate(0, self.base)]).text()
        choices = start + repr((self.space, self.trials, self.sampler, self.round_size))
        return hashlib.sha256(choices.encode()).hexdigest()

    @property
    def study_name(self) -> str:
        """The name of this search in a database that holds several: that of the data, and of the digest a part."""
        return f"{self.data.meta.name}-{self.digest[:12]}"

    def round_of(self, candidates: Sequence[Candidate]) -> PlannedRound:
        return PlannedRound.of(self.data, self.splits, self.seed, self.halving, candidates)


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a search: all trials with their results, and the importance of settings where it is known.

    `best` is the configuration with the best mean validation accuracy over the splits among trials that were trained
    to their ends; its test accuracy was not looked at.
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
        """The trial that was chosen; none that could be is an error."""
        found = chosen(self.results)
        if found is None:
            notes = next((r.note for r in self.results if r.note), "none was trained to its end")
            raise InvalidArgument(f"expected a trial that could be trained, got {len(self.results)} without: {notes}")
        return found

    @property
    def best(self) -> Config:
        """The configuration that was chosen."""
        return self.config(self.chosen.number)

    def config(self, number: int) -> Config:
        """The configuration of the trial of a search with that number."""
        for candidate in self.candidates:
            if candidate.number == number:
                return candidate.config
        raise InvalidArgument(f"expected the number of a trial among {len(self.candidates)}, got {number}")

    def rows(self) -> list[dict[str, int | float | str]]:
        """One row per trial: trial, state, epochs, val_accuracy, test_accuracy, then a column for every setting.

        The cell of a setting that did not count is empty. `epochs` were trained, on the split that took most of them:
        patience may end a training early. Where their number is searched, it is in a column epochs_setting.
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
    """Search for settings: the best mean validation accuracy over the splits; test labels are never looked at.

    Trials are drawn in rounds, and all trials of a round are trained on all splits in one call. With a folder the
    search is kept there, and the same call goes on with one that was cut off, or reads a finished one.

    Args:
        data: One data set.
        trials: How many settings are tried.
        space: "paper", "wide", "small", "tuned", the path of a toml file, a mapping with the content of such a file, or
            a `gread.tuning.space.Space`.
        base: The configuration that is searched around, which also names the network, or the name of a network;
            GREAD's defaults if left out.
        fixed: Settings with other values than in `base`, which are not searched.
        splits: Numbers of splits; all by default.
        sampler: random, tpe or cmaes.
        halving: Whether the worse trials of a round are dropped on the way, see
            `gread.tuning.successive_halving.Rungs`.
        seed: Of the sampler and of the trainings.
        round_size: Trials of one round; 200 random ones, 16 of the other samplers by default.
        folder: Where the search is kept; None keeps it in memory.
        storage: The url of a database that holds the trials, such as postgresql://USER@HOST/DATABASE; by default a
            journal file in the folder.
        device: "auto" takes a GPU where there is one.
        engine: "local" trains in this process, "ray" on the machines of a Ray cluster; or an engine of
            `rdgraph.run.engines` that is open already. The results are the same.
        address: That of the Ray cluster; by default one is started on this machine.
        progress: Hears how far it is, about once a second.
        tell: Hears sentences about what a user should know.

    Returns:
        The trials, their results and the best configuration, see `Found`.

    Raises:
        MissingDependency: Without optuna, without ray for that engine, or without the driver of a database.
        InvalidArgument: For values of the wrong type, settings that the network does not have, data without
            validation nodes, or a storage without a folder.
        UnknownName: For a space, a sampler or an engine that there is not.
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
    place = None if folder is None else Path(folder)
    with opened(engine, address) as opened_engine:
        return Search(
            plan, place, storage=storage, device=device, engine=opened_engine, progress=progress, tell=tell
        ).run()  # fmt: skip


class Search:
    """A search under way: `run` brings it to its end, `plan_round` and `hear_results` do the parts that need optuna."""

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
            raise InvalidArgument("expected a folder for a search in a storage, got none; name one")
        self.plan, self.folder, self.every, self.engine = plan, folder, every, engine or LocalEngine()
        asked = self.engine.device(device)
        # The device of work that is done elsewhere need not be here.
        self.device = choose_device(asked) if self.engine.name == LocalEngine.name or asked == "auto" else asked
        self._meter, self._say, self._on_round = SearchMeter(plan.trials, progress), tell, on_round
        place, name = (storage, plan.study_name) if storage else (folder and folder / JOURNAL, STUDY)
        self.ledger = Ledger(plan.space, plan.base, plan.sampler, plan.seed, place, name)
        if self.ledger.noted(CHOICES, lambda: plan.digest) != plan.digest:
            raise FileError(f"expected the folder of the same search, got {folder} with another one; choose another")

    def run(self) -> Found:
        """Draw, train and record trials round by round; as many rounds at once as the engine and the sampler allow."""
        with self.ledger.held():
            self._hear_untold()
            if self._meter.begin(self.ledger.results()) < self.plan.trials:
                work = RoundWork(self.plan.data, self.device, self.folder, self.every, self._planned_memory())
                for wave in self._waves():
                    self._train(work, wave)
            return self.found()

    def _train(self, work: RoundWork, wave: Iterable[PlannedRound]) -> None:
        """Train what may be trained at the same time, and tell of every part as soon as it is done."""
        running = self.engine.run(work, wave, device=self.device, hear=self._meter.hear_share, tell=self._say)
        with closing(running):  # type: ignore[type-var]  # what is under way is stopped with us
            for planned, results in running:
                if self.folder is not None:
                    save_results(self.folder / UNTOLD, planned, results)
                self.ledger.tell(results)
                self._forget(planned.digest)
                self._meter.hear_results(planned, self.ledger.results())
                self._on_round(self.found(importance=False))
                self._meter.tell()

    def _planned_memory(self) -> int:
        """Bytes that batches are made for, found out once by a worker."""

        def measured() -> int:
            return next(iter(self.engine.run(planned_memory, [self.device], device=self.device)))[1]

        return int(self.ledger.noted("memory", measured))

    def _waves(self) -> Iterator[Iterable[PlannedRound]]:
        """Rounds that may be trained at the same time: all of them where no trial learns from others, else one.

        They are cut where they would not fill the engine, into parts that give the same numbers.
        """
        rounds, slots = self._rounds(), self.engine.slots
        if self.plan.sampler != "random":
            yield from (in_pieces(planned) if slots > 1 else [planned] for planned in rounds)
            return
        to_come = -(-(self.plan.trials - self._meter.before) // self.plan.round_size)
        yield chain.from_iterable(in_pieces(planned) if to_come < slots else [planned] for planned in rounds)

    def found(self, *, importance: bool = True) -> Found:
        """The results of the search so far, with or without the importance of settings."""
        known = self.ledger.importance() if importance else {}
        return Found(self.plan, tuple(self.ledger.candidates()), tuple(self.ledger.results()), known)

    def _rounds(self) -> Iterator[PlannedRound]:
        """The trials that were not told of, round by round; those of a round are drawn when it is asked for."""
        size = self.plan.round_size
        for first in range(0, self.plan.trials, size):
            end = min(self.plan.trials, first + size)
            self.ledger.ask(max(0, end - len(self.ledger)))
            own = [c for c in self.ledger.pending() if first <= c.number < end]
            if own:
                yield self.plan.round_of(own)

    def _forget(self, digest: str) -> None:
        """Remove what was kept of a part of the search that is told of."""
        if self.folder is not None:
            shutil.rmtree(checkpoints_of(self.folder, digest), ignore_errors=True)
            with suppress(OSError):
                (self.folder / UNTOLD).unlink(missing_ok=True)
                (self.folder / CHECKPOINTS).rmdir()

    def _hear_untold(self) -> None:
        """Tell of trials that were trained to their ends, and not yet told of."""
        if self.folder is not None and (self.folder / UNTOLD).exists():
            digest, results = load_results(self.folder / UNTOLD)
            self.ledger.tell(results)
            self._forget(digest)

    # ------------------------------------------------------------------ trained elsewhere
    def plan_round(self) -> PlannedRound | None:
        """The trials that are next, to be trained anywhere by `gread.tuning.rounds.train_round`; None at the end."""
        with self.ledger.held():
            self._hear_untold()
            return next(self._rounds(), None)

    def hear_results(self, path: Path) -> int:
        """Take up the results of a planned round from a file; returns how many trials are still to come."""
        digest, results = load_results(path)
        with self.ledger.held():
            numbers = {r.number for r in results}
            own = [c for c in self.ledger.pending() if c.number in numbers]
            known = {r.number for r in self.ledger.results()}
            is_of_all_splits = all(len(r.val) in (0, len(self.plan.splits)) for r in results)
            if not is_of_all_splits or (not numbers <= known and self.plan.round_of(own).digest != digest):
                raise FileError(
                    f"expected the results of the trials that were planned here, got those of others in {path}; run "
                    "the plan of this search"
                )
            self.ledger.tell(results)
            return self.plan.trials - len(self.ledger.results())
