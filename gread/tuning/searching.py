"""`search`: settings chosen on validation nodes alone, many trials as one program; it goes on where it was left."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gread.datasets.node_data import NodeData
from gread.models.problem import check
from gread.settings.config import Config
from gread.training.trainer import EVERY
from gread.tuning.ask_tell import SAMPLERS, Ledger
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult, load_results, save_results
from gread.tuning.rounds import check_validation, train_round
from gread.tuning.selection import chosen
from gread.tuning.space import Space, Value, find_space
from rdgraph.errors import FileError, InvalidArgument, UnknownName
from rdgraph.files import write_text

JOURNAL, CHECKPOINTS, UNTOLD, BEST = "journal.log", "checkpoints", "round.json", "best.toml"
#: Trials of one round: random ones do not learn from others, the others do.
ROUND = {"random": 50, "tpe": 16, "cmaes": 16}
#: The first columns of the table of trials.
COLUMNS = ("trial", "state", "epochs", "val_accuracy", "test_accuracy")


class SearchProgress(NamedTuple):
    """How far a search is: trials done (with a share of those under way), the best so far, seconds passed and left."""

    trials: float
    total: int
    best: float
    best_trial: int
    seconds: float
    seconds_left: float


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """A search with nothing left open.

    Args:
        data: One data set.
        base: The configuration that is searched around.
        space: What is searched, for the network of `base`.
        splits: Every trial is trained on all of these.
        trials: How many trials.
        sampler: random, tpe or cmaes.
        halving: Whether the worse part of a round is dropped on the way.
        seed: Of the sampler and of the trainings.
        round_size: Trials that are drawn and trained together.

    Raises:
        InvalidArgument: For no trials, splits that are not there, or that have no validation nodes.
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
        if self.trials < 1 or self.round_size < 1:
            raise InvalidArgument(
                f"expected at least one trial, in rounds of at least one, got {self.trials} and {self.round_size}"
            )
        if not self.splits:
            raise InvalidArgument(f"expected splits of {self.data.meta.name}, got none")
        for split in self.splits:
            check(self.data, split)
        check_validation(self.data, self.splits)

    @classmethod
    def make(
        cls, data: NodeData, *, trials: int, space: str | Path | Space, base: Config | None = None,
        fixed: Mapping[str, Value] | None = None, splits: Sequence[int] | None = None, sampler: str = "random",
        halving: bool = False, seed: int = 0, round_size: int | None = None,
    ) -> SearchPlan:  # fmt: skip
        """A search around `base`, in a space by name, with some settings fixed, which are then not searched."""
        start, settled = (base or Config()).updated(fixed or {}), set(fixed or {})
        made = (space if isinstance(space, Space) else find_space(space)).of(start).without(settled)
        if not made.searched:
            raise InvalidArgument("expected a setting that is left to search, got all of them fixed")
        return cls(
            data, start, made, tuple(range(data.num_splits)) if splits is None else tuple(splits), trials, sampler,
            halving, seed, round_size or ROUND.get(sampler, 1),
        )  # fmt: skip

    def round_of(self, candidates: Sequence[Candidate]) -> PlannedRound:
        return PlannedRound.of(self.data, self.splits, self.seed, self.halving, candidates)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found: all trials with their results, and the importance of settings where it could be told.

    `best` is the configuration with the best mean validation accuracy over the splits among trials that were trained
    to their ends; its test accuracy was not looked at.
    """

    plan: SearchPlan
    candidates: tuple[Candidate, ...]
    results: tuple[TrialResult, ...]
    importance: Mapping[str, float]

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
        """The configuration of a trial."""
        for candidate in self.candidates:
            if candidate.number == number:
                return candidate.config
        raise InvalidArgument(f"expected the number of a trial among {len(self.candidates)}, got {number}")

    def rows(self) -> list[dict[str, int | float | str]]:
        """One row per trial: trial, state, epochs, val_accuracy, test_accuracy, then a column for every setting.

        The cell of a setting that did not count is empty.
        """
        drawn = {c.number: c.values for c in self.candidates}
        names = [s.name for s in self.plan.space.searched]
        return [
            {
                **dict(zip(COLUMNS, (r.number, r.state, r.epochs, r.val_accuracy, r.test_accuracy), strict=True)),
                **{name: _cell(drawn[r.number].get(name, "")) for name in names},
            }
            for r in self.results
        ]


def _cell(value: Value) -> int | float | str:
    return str(value).lower() if isinstance(value, bool) else value


def search(
    data: NodeData,
    *,
    trials: int = 50,
    space: str | Path | Space = "small",
    base: Config | None = None,
    fixed: Mapping[str, Value] | None = None,
    splits: Sequence[int] | None = None,
    sampler: str = "random",
    halving: bool = False,
    seed: int = 0,
    round_size: int | None = None,
    folder: str | Path | None = None,
    device: str = "auto",
    progress: Callable[[SearchProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
) -> Found:
    """Search for settings: the best mean validation accuracy over the splits; test labels are never looked at.

    Trials are drawn in rounds, and all trials of a round are trained on all splits in one call. With a folder the
    search is kept there, and the same call goes on with one that was cut off, or reads a finished one.

    Args:
        data: One data set.
        trials: How many settings are tried.
        space: "paper", "wide", "small", "tuned", the path of a toml file, or a `gread.tuning.space.Space`.
        base: The configuration that is searched around, which also names the network; GREAD's defaults if left out.
        fixed: Settings with other values than in `base`, which are not searched.
        splits: Numbers of splits; all by default.
        sampler: random, tpe or cmaes.
        halving: Whether the worse trials of a round are dropped on the way, see `gread.tuning.halving.Rungs`.
        seed: Of the sampler and of the trainings.
        round_size: Trials of one round; 50 random ones, 16 of the other samplers by default.
        folder: Where the search is kept; None keeps it in memory.
        device: "auto" takes a GPU where there is one.
        progress: Hears how far it is, about once a second.
        tell: Hears sentences about what a user should know.

    Returns:
        The trials, their results and the best configuration, see `Found`.

    Raises:
        MissingDependency: Without optuna.
        InvalidArgument: For settings that the network does not have, or data without validation nodes.
        UnknownName: For a space or a sampler that there is not.
        FileError: For a folder that holds another search.

    >>> from gread import karate
    >>> found = search(karate(), trials=4, fixed={"epochs": 20, "hidden": 8}, splits=[0, 1], device="cpu")
    >>> len(found.results), found.best.model.hidden, sorted(found.rows()[0])[:2]
    (4, 8, ['dropout', 'epochs'])
    """
    plan = SearchPlan.make(
        data, trials=trials, space=space, base=base, fixed=fixed, splits=splits, sampler=sampler, halving=halving,
        seed=seed, round_size=round_size,
    )  # fmt: skip
    place = None if folder is None else Path(folder)
    if place is not None:
        _claim(place, plan)
    return Search(plan, place, device=device, progress=progress, tell=tell).run()


def _claim(folder: Path, plan: SearchPlan) -> None:
    """Write down what is searched, or refuse a folder with another search."""
    mark = plan.round_of([Candidate(0, plan.base)]).text() + repr(
        (plan.space, plan.trials, plan.sampler, plan.round_size)
    )
    path = folder / "search.txt"
    if path.exists() and path.read_text(encoding="utf-8") != mark:
        raise FileError(f"expected the folder of the same search, got {folder} with another one; choose another")
    write_text(path, mark)


class Search:
    """A search under way: `run` brings it to its end, `plan_round` and `hear_results` do the parts that need optuna."""

    def __init__(
        self,
        plan: SearchPlan,
        folder: Path | None,
        *,
        device: str = "auto",
        every: float = EVERY,
        progress: Callable[[SearchProgress], None] | None = None,
        tell: Callable[[str], object] = warnings.warn,
        on_round: Callable[[Found], None] = lambda found: None,
    ) -> None:
        self.plan, self.folder, self.device, self.every = plan, folder, device, every
        self._progress, self._say, self._on_round = progress, tell, on_round
        path = None if folder is None else folder / JOURNAL
        self.ledger = Ledger(plan.space, plan.base, plan.sampler, plan.seed, path)
        self._started, self._before = time.monotonic(), 0

    def run(self) -> Found:
        """Ask, train and tell, round by round."""
        self._hear_untold()
        self._before = len(self.ledger.results())
        while candidates := self._next():
            planned = self.plan.round_of(candidates)
            results = train_round(
                self.plan.data, planned, device=self.device, checkpoint=self._checkpoints(planned), every=self.every,
                progress=self._hear_share, tell=self._say,
            )  # fmt: skip
            if self.folder is not None:
                save_results(self.folder / UNTOLD, planned, results)
            self.ledger.tell(results)
            self._forget()
            self._on_round(self.found(importance=False))
            self._hear_share(0.0)
        return self.found()

    def found(self, *, importance: bool = True) -> Found:
        """What is known so far, with or without the importance of settings."""
        known = self.ledger.importance() if importance else {}
        return Found(self.plan, tuple(self.ledger.candidates()), tuple(self.ledger.results()), known)

    def _next(self) -> list[Candidate]:
        """The trials of the next round: those that were drawn and not told of, up to the end of their round."""
        while len(self.ledger.results()) < self.plan.trials:
            asked, size = len(self.ledger), self.plan.round_size
            waiting = self.ledger.pending()
            end = min(self.plan.trials, -(-asked // size) * size if waiting else (asked // size + 1) * size)
            self.ledger.ask(max(0, end - asked))
            if found := self.ledger.pending():
                return found
        return []

    def _checkpoints(self, planned: PlannedRound) -> Path | None:
        return None if self.folder is None else self.folder / CHECKPOINTS / planned.digest[:16]

    def _forget(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
            with suppress(OSError):
                (self.folder / UNTOLD).unlink(missing_ok=True)

    def _hear_untold(self) -> None:
        """Tell of a round that was trained to its end, and not yet told of."""
        if self.folder is not None and (self.folder / UNTOLD).exists():
            _, results = load_results(self.folder / UNTOLD)
            self.ledger.tell(results)
            self._forget()

    def _hear_share(self, share: float) -> None:
        if self._progress is None:
            return
        results = self.ledger.results()
        best, passed = chosen(results), time.monotonic() - self._started
        under_way = min(self.plan.trials, len(self.ledger)) - len(results)
        done = len(results) + share * under_way
        left = passed * (self.plan.trials - done) / (done - self._before) if done > self._before else float("nan")
        value, number = (float("nan"), -1) if best is None else (best.val_accuracy, best.number)
        self._progress(SearchProgress(done, self.plan.trials, value, number, passed, left))

    # ------------------------------------------------------------------ trained elsewhere
    def plan_round(self) -> PlannedRound | None:
        """The trials that are next, to be trained anywhere by `gread.tuning.rounds.train_round`; None at the end."""
        self._hear_untold()
        candidates = self._next()
        return self.plan.round_of(candidates) if candidates else None

    def hear_results(self, path: Path) -> int:
        """Take up the results of a planned round from a file; returns how many trials are still to come."""
        digest, results = load_results(path)
        pending = self.ledger.pending()
        known = {r.number for r in self.ledger.results()}
        if not {r.number for r in results} <= known and self.plan.round_of(pending).digest != digest:
            raise FileError(
                f"expected the results of the trials that were planned here, got those of others in {path}; run the "
                "plan of this search"
            )
        self.ledger.tell(results)
        return self.plan.trials - len(self.ledger.results())
