"""Texts of the report of a search over equations (answer, captions, verdicts), and the retrainings behind them."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from gread.comparison import share_ratio
from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.discovery.discovery_plan import STATE_WORDS, Discovered, DiscoveryProgress
from gread.discovery.equation_batches import line_config
from gread.discovery.line_safety import BOUNDED, LEFT_OUT
from gread.discovery.term_grammar import Line
from gread.discovery.winner_checks import Retrained, fresh_splits, retrained
from gread.settings.config import Config
from gread.training.trainer import Progress
from gread.tuning.selection import interval_text
from rdgraph.wording import counted
from studies.discovery import discovery_rows as rows_of
from studies.discovery.discovery_rows import difference, percent
from studies.discovery.discovery_task import DiscoveryTask
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row
from studies.runs.word_sheets import WordSheet

# ---------------------------------------------------------------------- discovery words
SHEET = WordSheet("discovery", "words")
#: The columns of `reaction_rows` that need trainings without divergence.
NUMBERS = ("validation", "test", "chosen_minus_it", "error", "p")


@dataclass(frozen=True)
class Yardsticks:
    """Equations trained on the same splits, by name, and n_test/n_train."""

    by_name: Mapping[str, Retrained]
    ratio: float


@dataclass(frozen=True)
class CursePart:
    """Retrainings with fresh seeds and on fresh splits, each by name, and n_test/n_train."""

    parts: Mapping[str, Mapping[str, Retrained]]
    ratio: float


def chosen_of(collected: Discovered) -> Retrained:
    """Accuracies of the chosen equation in the search, by split."""
    result = collected.chosen
    pairs = {split: (result.val[k], result.test[k]) for k, split in enumerate(collected.plan.splits)}
    return Retrained("chosen", pairs, len(pairs), 0)


def all_diverged(one: Retrained) -> bool:
    """Whether all trainings of an equation diverged, so that its accuracies mean nothing."""
    return one.diverged == one.trainings


# ---------------------------------------------------------------------- sentences
def counted_sentence(collected: Discovered) -> str:
    """Number of equations enumerated, merged, examined and trained, in words."""
    plan = collected.plan
    states = Counter(STATE_WORDS[r.state] for r in collected.results)
    outcomes = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    unsafe = Counter(t.safety.state for t in collected.tried)
    largest = max((t.line.size for t in collected.tried if t.draw < 0), default=0)
    drawn = sum(t.draw >= 0 for t in collected.tried)
    tried = len(collected.tried) - drawn
    text = SHEET.text(
        "counts", enumerated=counted(collected.enumerated, "equation"), size=counted(plan.size, "term"), plan=plan,
        terms=counted(len(plan.grammar.terms), "term"), behaviours=counted(collected.distinct, "behaviour"),
        examined=len(collected.tried), bounded=unsafe[BOUNDED], left_out=unsafe[LEFT_OUT],
        trained=len(collected.results), splits=counted(len(plan.splits), "split"),
        epochs=counted(plan.base.training.epochs, "epoch"), outcomes=outcomes,
    )  # fmt: skip
    if tried < collected.distinct:
        text += f" Those of {counted(largest, 'term')} are a random sample, limited by the budget."
    if drawn:
        text += f" {drawn} larger ones were drawn by {plan.sampler}."
    if (metric := plan.data.meta.metric_title) != "accuracy":
        text += f' This data set is scored by {metric}; read "accuracy" as {metric}.'
    return text


def answer_sentence(task: DiscoveryTask, collected: Discovered, reactions: Yardsticks, curse: CursePart) -> str:
    """The answer with its number, compared with BS, and repeated on fresh splits."""
    group = collected.chosen
    text = SHEET.text(
        "answer", collected=collected, among=counted(len(collected.results), "equation"),
        validation=percent(group.val_accuracy), test=percent(group.test_accuracy),
        interval=interval_text(group.test, share_ratio(collected.plan.data)),
    )  # fmt: skip
    if (bs := reactions.by_name.get("BS")) is not None:
        has = "diverged in all trainings" if all_diverged(bs) else f"has {percent(bs.test):.2f} %"
        text += f" BS with the same settings {has}."
    if (fresh := curse.parts.get("fresh_splits")) is not None and not all_diverged(fresh["BS"]):
        test = difference(fresh["chosen"], fresh["BS"], curse.ratio)
        word = {"holds": "better than", "fails": "worse than"}.get(test.answer, "not significantly different from")
        text += SHEET.text("fresh", accuracy=percent(fresh["chosen"].test), word=word, test=test)
    return text


# ---------------------------------------------------------------------- rows
def reaction_rows(collected: Discovered, reactions: Yardsticks) -> list[Row]:
    """Rows of the chosen equation and the reactions of the paper; nan if all trainings diverged."""
    group = chosen_of(collected)
    rows: list[Row] = [
        {"equation": f"chosen: {collected.best.formula}", "validation": percent(group.val), "test": percent(group.test),
         "chosen_minus_it": 0.0, "error": 0.0, "p": 1.0, "diverged": 0}
    ]  # fmt: skip
    for name, other in reactions.by_name.items():
        row: MutableRow = {"equation": name, **dict.fromkeys(NUMBERS, math.nan), "diverged": other.diverged}
        if not all_diverged(other):
            test = difference(group, other, reactions.ratio)
            numbers = percent(other.val), percent(other.test), test.difference, test.error, test.p
            row |= dict(zip(NUMBERS, numbers, strict=True))
        rows.append(row)
    return rows


def curse_rows(collected: Discovered, curse: CursePart) -> list[Row]:
    """Rows of the chosen equation in the search, and retrained."""
    group = chosen_of(collected)
    rows: list[Row] = [_curse_row("as chosen", "chosen", group, group)]
    for kind, known in curse.parts.items():
        rows += [_curse_row(kind.replace("_", " "), name, one, group) for name, one in known.items()]
    return rows


def _curse_row(kind: str, name: str, one: Retrained, group: Retrained) -> Row:
    lost = percent(group.val - one.val) if name == "chosen" else float("nan")
    return {
        "trained": kind, "equation": name, "validation": percent(one.val), "validation_lost": lost,
        "test": percent(one.test), "trainings": one.trainings, "diverged": one.diverged,
    }  # fmt: skip


def transfer_rows(moved: Mapping[str, Yardsticks]) -> list[Row]:
    """Rows of the chosen equation and BS on the other data sets."""
    rows: list[Row] = []
    for name, collected in moved.items():
        group, other = collected.by_name["chosen"], collected.by_name["BS"]
        test = difference(group, other, collected.ratio)
        rows.append({
            "dataset": name, "chosen": percent(group.test), "BS": percent(other.test), "difference": test.difference,
            "error": test.error, "p": test.p,
        })  # fmt: skip
    return rows


# ---------------------------------------------------------------------- verdicts
def verdicts(
    task: DiscoveryTask, collected: Discovered, reactions: Yardsticks, curse: CursePart
) -> list[tuple[str, str, str]]:
    """Verdicts: does the choice beat BS on its own splits, and on fresh ones, which count?

    None if all trainings of BS diverged.
    """
    answers = []
    pairs = []
    if "BS" in reactions.by_name:
        pairs.append(("the splits of the choice", chosen_of(collected), reactions.by_name["BS"]))
    if (fresh := curse.parts.get("fresh_splits")) is not None:
        pairs.append(("fresh splits", fresh["chosen"], fresh["BS"]))
    for where, group, other in pairs:
        if all_diverged(other):
            continue
        test = difference(group, other, curse.ratio)
        evidence = (
            f"{test.difference:+z.2f} points, standard error {test.error:.2f}, two-sided p = {test.p:.3g} over "
            f"{test.splits} splits (corrected resampled t-test)."
        )
        statement = f"On {where} the chosen equation has a higher test accuracy than BS with the same settings."
        answers.append((statement, test.answer, evidence))
    return answers


# ---------------------------------------------------------------------- retrainings
# Trainings after a search: the reactions of the paper, and the chosen equation again.

#: The reactions of the GREAD paper.
REACTIONS = ("BS", "F", "AC", "Z", "ST", "FB", "FB*")
#: Name of the chosen equation among retrained ones.
CHOSEN = "chosen"


class RetrainingProgress(NamedTuple):
    """Progress of a training after the search: its name, epochs and seconds."""

    what: str
    trials: float
    total: int
    seconds: float


@dataclass(frozen=True)
class Listener:
    """Callbacks for the progress of a search and of the trainings after it, and for messages."""

    progress: Callable[[DiscoveryProgress | RetrainingProgress], None] | None = None
    tell: Callable[[str], object] = warnings.warn

    def training(self, what: str) -> Callable[[Progress], None] | None:
        """Callback for the progress of one training."""
        if (update := self.progress) is None:
            return None
        return lambda now: update(RetrainingProgress(what, now.epoch, now.epochs, now.seconds))


@dataclass(frozen=True, eq=False)
class Retraining:
    """The trainings after a choice, each a part of the run."""

    run: StudyRun
    task: DiscoveryTask
    best: Line
    listener: Listener

    def yardsticks(self) -> Yardsticks:
        """Reactions of the paper on the same splits, with the same seed and settings."""
        plan = self.task.plan
        configs = reaction_configs(plan.base)
        rows = self._part("reactions", "reactions of the paper", plan.data, configs, plan.splits, [plan.seed])
        return Yardsticks(rows_of.read_retrained(rows), share_ratio(plan.data))

    def curse(self) -> CursePart:
        """The choice and BS, retrained with fresh seeds on the same splits, and on fresh splits."""
        plan, fresh = self.task.plan, self.task.request.fresh
        parts = {}
        if fresh:
            seeds = range(plan.seed + 1, plan.seed + 1 + fresh)
            drawn = fresh_splits(plan.data, len(plan.splits), plan.seed)
            parts = {
                "fresh_seeds": self._part(
                    "fresh_seeds", "the choice and BS, fresh seeds", plan.data, self._pair(), plan.splits, seeds
                ),
                "fresh_splits": self._part(
                    "fresh_splits", "the choice and BS, fresh splits", drawn, self._pair(), range(drawn.num_splits),
                    seeds[:1],
                ),
            }  # fmt: skip
        return CursePart({name: rows_of.read_retrained(rows) for name, rows in parts.items()}, share_ratio(plan.data))

    def transfers(self) -> dict[str, Yardsticks]:
        """The choice and BS on other data sets."""
        moved = {}
        for name in self.task.request.transfer:
            data = load_dataset(name, root=self.task.request.root, offline=True)
            rows = self._part(
                f"transfer_{name}", f"the choice and BS on {name}", data, self._pair(), range(data.num_splits),
                [self.task.plan.seed],
            )  # fmt: skip
            moved[name] = Yardsticks(rows_of.read_retrained(rows), share_ratio(data))
        return moved

    def _pair(self) -> dict[str, Config]:
        base = self.task.plan.base
        return {CHOSEN: line_config(base, self.best), **reaction_configs(base, REACTIONS[:1])}

    def _part(
        self, name: str, what: str, data: NodeData, configs: Mapping[str, Config], splits: Sequence[int],
        seeds: Sequence[int],
    ) -> list[Row]:  # fmt: skip
        train = partial(
            retrained, data, configs, splits, seeds, device=self.task.request.device, tell=self.listener.tell,
            progress=self.listener.training(what),
        )  # fmt: skip
        return list(self.run.part(name, lambda: rows_of.retrained_rows(train())))


def reaction_configs(base: Config, names: tuple[str, ...] = REACTIONS) -> dict[str, Config]:
    """Configurations of reactions of the paper in the same network."""
    return {name: base.updated({"reaction": name}) for name in names}
