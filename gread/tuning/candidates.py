"""`Candidate` and `TrialResult`: the trials of a search, their results, and the files that carry them elsewhere."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.settings.trials import Trial, make_trials
from gread.training.checkpoint import fingerprint
from gread.tuning.space import Value
from rdgraph.errors import FileError, InvalidArgument, RdgraphError
from rdgraph.files import read_text, write_text

# ---------------------------------------------------------------------- split accuracies
# `SplitAccuracies`: the accuracies by which trials and equations are compared.


class SplitAccuracies:
    """Means of the accuracies `val` and `test` over the splits; nan without any."""

    val: tuple[float, ...]
    test: tuple[float, ...]

    @property
    def val_accuracy(self) -> float:
        """The mean validation accuracy over the splits, used for selection."""
        return math.fsum(self.val) / len(self.val) if self.val else math.nan

    @property
    def test_accuracy(self) -> float:
        """The mean test accuracy over the splits, never used for selection."""
        return math.fsum(self.test) / len(self.test) if self.test else math.nan


# ---------------------------------------------------------------------- candidates
PLAN, RESULTS = "rdgraph search plan 1", "rdgraph search results 1"
#: States of a trial: trained to the last epoch, dropped early, diverged on some split, or impossible to train.
STATES = COMPLETE, PRUNED, DIVERGED, FAILED = ("complete", "pruned", "diverged", "failed")

V = TypeVar("V")


@dataclass(frozen=True)
class Candidate:
    """One trial of a search: its number, its complete configuration, and the drawn values."""

    number: int
    config: Config
    values: Mapping[str, Value] = field(default_factory=dict)

    def trainings(self, splits: Sequence[int], seed: int) -> list[Trial]:
        """The trainings of this candidate's configuration, one for each split, all with the same seed."""
        return make_trials(self.config, splits, [seed])

    def record(self) -> dict[str, Any]:
        """The candidate as a dictionary for JSON; `read` is the inverse."""
        return {"number": self.number, "values": dict(self.values), "config": self.config.sections()}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Candidate:
        return cls(int(record["number"]), Config.from_sections(record["config"]), dict(record["values"]))


@dataclass(frozen=True)
class TrialResult(SplitAccuracies):
    """The result of a trial: accuracies at the best epoch of every split, as shares of 1.

    `epochs` is the largest number of epochs over the splits, `rungs` are (epoch, mean validation accuracy) at which
    trials were compared, `note` says why it failed.
    """

    number: int
    state: str
    epochs: int
    val: tuple[float, ...] = ()
    test: tuple[float, ...] = ()
    rungs: tuple[tuple[int, float], ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise InvalidArgument(f"expected a state among {', '.join(STATES)}, got {self.state!r}")
        if len(self.val) != len(self.test) or (not self.val and self.state != FAILED):
            raise InvalidArgument(f"expected accuracies on every split, got {len(self.val)} and {len(self.test)}")

    @property
    def is_eligible(self) -> bool:
        """Whether the trial was trained to the last epoch, so that it may be chosen."""
        return self.state in (COMPLETE, DIVERGED)

    def record(self) -> dict[str, Any]:
        """The result of a trial as a dictionary for JSON; `read` is the inverse."""
        return asdict(self)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> TrialResult:
        rungs = tuple((int(epoch), float(value)) for epoch, value in record["rungs"])
        val, test = (tuple(map(float, record[name])) for name in ("val", "test"))
        return cls(int(record["number"]), record["state"], int(record["epochs"]), val, test, rungs, str(record["note"]))


@dataclass(frozen=True)
class PlannedRound:
    """Trials to be trained on any machine: their data, splits and seed, and whether the worse are dropped."""

    dataset: str
    data_digest: str
    splits: tuple[int, ...]
    seed: int
    halving: bool
    candidates: tuple[Candidate, ...]

    def __post_init__(self) -> None:
        if not self.splits:
            raise InvalidArgument("expected splits for the trials, got none")

    @classmethod
    def of(
        cls, data: NodeData, splits: Sequence[int], seed: int, halving: bool, candidates: Sequence[Candidate]
    ) -> PlannedRound:
        return cls(data.meta.name, fingerprint([data], []), tuple(splits), seed, halving, tuple(candidates))

    def check(self, data: NodeData) -> None:
        """Refuse data other than those of the plan."""
        if fingerprint([data], []) != self.data_digest:
            raise InvalidArgument(
                f"expected the data set {self.dataset} that the trials were planned for, got {data.meta.name} with "
                "other content; plan them for these data"
            )

    def text(self) -> str:
        """The text of a plan's file."""
        head = {"format": PLAN, "dataset": self.dataset, "data_digest": self.data_digest, "splits": list(self.splits)}
        rest = {"seed": self.seed, "halving": self.halving, "candidates": [c.record() for c in self.candidates]}
        return json.dumps(head | rest, indent=1) + "\n"

    @cached_property
    def digest(self) -> str:
        """SHA-256 digest of the plan's text; it identifies the plan."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def save(self, path: Path) -> None:
        write_text(path, self.text(), durable=True)


def load_plan(path: Path) -> PlannedRound:
    """Read a plan from a file."""

    def parsed(body: Mapping[str, Any]) -> PlannedRound:
        splits = tuple(map(int, body["splits"]))
        candidates = tuple(map(Candidate.read, body["candidates"]))
        return PlannedRound(
            str(body["dataset"]), str(body["data_digest"]), splits, int(body["seed"]), bool(body["halving"]), candidates
        )

    return _read(path, PLAN, "planned trials", parsed)


def save_results(path: Path, plan: PlannedRound, results: Sequence[TrialResult]) -> None:
    """Write the results of a plan's trials."""
    body = {"format": RESULTS, "plan": plan.digest, "results": [r.record() for r in results]}
    write_text(path, json.dumps(body, indent=1) + "\n", durable=True)


def load_results(path: Path) -> tuple[str, list[TrialResult]]:
    """Read the digest of a plan and the results of its trials."""

    def parsed(body: Mapping[str, Any]) -> tuple[str, list[TrialResult]]:
        results = [TrialResult.read(record) for record in body["results"]]
        if not results or len({r.number for r in results}) < len(results):
            raise ValueError("expected trials, each of them once")
        return str(body["plan"]), results

    return _read(path, RESULTS, "results of planned trials", parsed)


def _read(path: Path, kind: str, what: str, make: Callable[[Mapping[str, Any]], V]) -> V:
    text = read_text(path, what)
    try:
        body = json.loads(text)
        if body["format"] != kind:
            raise ValueError(f"the format {body['format']!r}")
        return make(body)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, RdgraphError) as problem:
        raise FileError(f"expected {what} in {path}, got another file ({problem}); write it again") from None
