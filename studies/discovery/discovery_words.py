"""What the report of a search over equations says: the answer, captions, verdicts."""

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

# ---------------------------------------------------------------------- discovery words
CHOICES_CAPTION = (
    "Test accuracy in percent, with corrected 95 % intervals over the splits, if there are several. What counts "
    "is the first row: one equation, chosen by its mean validation accuracy over the splits. The interval of the "
    "second is that of the search: it chooses anew on every sample of splits. The third chooses on every split for "
    "itself, among the equations that were not dropped; dropping compares means over all splits. The last looked at "
    "the test labels and is no result."
)
REACTIONS_CAPTION = (
    "The chosen equation beside the reactions of the GREAD paper with the same settings, splits and seed, which nobody "
    "chose: percent on the test nodes, and the difference to the chosen one in points with the standard error of the "
    "corrected resampled t-test (Nadeau and Bengio 2003) and its two-sided p. One of which all trainings diverged has "
    "no numbers: reactions of the paper may blow up with these settings, while found equations that may were bounded "
    "by tanh."
)
BEST_CAPTION = (
    "The ten best by mean validation accuracy, in percent, with the means of their coefficients over splits and "
    "channels; the last column opens the explorer on the equation at these means."
)
PROOFS_CAPTION = (
    "What is proved of them, for a row-normalised A: symbol, bound of the slope (s is the largest row sum of A) and "
    "existence for all coefficients that are declared; the filter class and the step limit of rk4 at the means of the "
    "coefficients."
)
#: The columns of `reaction_rows` that only trainings give which came to their ends.
NUMBERS = ("validation", "test", "chosen_minus_it", "error", "p")
CURSE_CAPTION = (
    "The winner's curse: the same equation trained anew with seeds that the choice did not see, on the same splits and "
    "on splits drawn anew; percent. What the validation accuracy loses is what the choice owed to luck. BS goes along."
)
TRANSFER_CAPTION = (
    "The chosen equation, untouched and with the same settings, on other data sets, beside BS there: percent, the "
    "difference in points, its standard error and two-sided p (corrected resampled t-test)."
)
MERGES_CAPTION = (
    "Equations that behave like others and were not trained again, by the rule that says so; the last column gives the "
    "coefficients of the equation that stands in those of the merged one."
)
SAFETY_CAPTION = (
    "What was found of the equations that were examined: those that are not proved to have solutions for all time get "
    "tanh around the terms that may outgrow the state, or are left out."
)


@dataclass(frozen=True)
class Yardsticks:
    """Equations that were trained on the same splits, by name, and n_test/n_train of these."""

    by_name: Mapping[str, Retrained]
    ratio: float


@dataclass(frozen=True)
class CursePart:
    """Retrainings by kind, fresh_seeds and fresh_splits, each by name; and n_test/n_train."""

    parts: Mapping[str, Mapping[str, Retrained]]
    ratio: float


def chosen_of(found: Discovered) -> Retrained:
    """The chosen equation as it was chosen, by split."""
    result = found.chosen
    pairs = {split: (result.val[k], result.test[k]) for k, split in enumerate(found.plan.splits)}
    return Retrained("chosen", pairs, len(pairs), 0)


def all_diverged(one: Retrained) -> bool:
    """Whether no training of an equation came to its end, so that its accuracies say nothing."""
    return one.diverged == one.trainings


# ---------------------------------------------------------------------- sentences
def counted_sentence(found: Discovered) -> str:
    """How many equations there are, were merged, examined and trained."""
    plan = found.plan
    states = Counter(STATE_WORDS[r.state] for r in found.results)
    told = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    unsafe = Counter(t.safety.state for t in found.tried)
    largest = max((t.line.size for t in found.tried if t.draw < 0), default=0)
    drawn = sum(t.draw >= 0 for t in found.tried)
    tried = len(found.tried) - drawn
    text = (
        f"{counted(found.enumerated, 'equation')} of up to {counted(plan.size, 'term')} ({plan.grammar.name}, "
        f"{counted(len(plan.grammar.terms), 'term')}): {counted(found.distinct, 'behaviour')}. "
        f"{len(found.tried)} were examined: "
        f"{unsafe[BOUNDED]} got tanh, {unsafe[LEFT_OUT]} were left out. {len(found.results)} were trained on "
        f"{counted(len(plan.splits), 'split')}, {counted(plan.base.training.epochs, 'epoch')}: {told}."
    )
    if tried < found.distinct:
        text += f" Those of {counted(largest, 'term')} are a random sample: the budget ends before all were tried."
    if drawn:
        text += f" {drawn} are larger ones, drawn by {plan.sampler}."
    if (metric := plan.data.meta.metric_title) != "accuracy":
        text += f" Whatever is called accuracy here is {metric}, the metric of this data set."
    return text


def answer_sentence(task: DiscoveryTask, found: Discovered, beside: Yardsticks, curse: CursePart) -> str:
    """The answer with its number, what it is beside BS, and what is left of it on fresh splits."""
    own = found.chosen
    text = (
        f"dH/dt = {found.best.formula} has the best mean validation accuracy of "
        f"{counted(len(found.results), 'equation')}, "
        f"{percent(own.val_accuracy):.2f} %; its test accuracy is {percent(own.test_accuracy):.2f} % "
        f"({interval_text(own.test, share_ratio(found.plan.data))})."
    )
    if (bs := beside.by_name.get("BS")) is not None:
        has = "diverged in all trainings" if all_diverged(bs) else f"has {percent(bs.test):.2f} %"
        text += f" BS with the same settings {has}."
    if (fresh := curse.parts.get("fresh_splits")) is not None and not all_diverged(fresh["BS"]):
        test = difference(fresh["chosen"], fresh["BS"], curse.ratio)
        word = {"holds": "better than", "fails": "worse than"}.get(test.answer, "not significantly different from")
        text += (
            f" On splits that the choice did not see it has {percent(fresh['chosen'].test):.2f} % and is {word} BS "
            f"({test.difference:+z.2f} points, p = {test.p:.2g})."
        )
    return text


# ---------------------------------------------------------------------- rows
def reaction_rows(found: Discovered, beside: Yardsticks) -> list[Row]:
    """The chosen equation and the reactions of the paper; nan for those of which all trainings diverged."""
    own = chosen_of(found)
    rows: list[Row] = [
        {"equation": f"chosen: {found.best.formula}", "validation": percent(own.val), "test": percent(own.test),
         "chosen_minus_it": 0.0, "error": 0.0, "p": 1.0, "diverged": 0}
    ]  # fmt: skip
    for name, other in beside.by_name.items():
        row: MutableRow = {"equation": name, **dict.fromkeys(NUMBERS, math.nan), "diverged": other.diverged}
        if not all_diverged(other):
            test = difference(own, other, beside.ratio)
            numbers = percent(other.val), percent(other.test), test.difference, test.error, test.p
            row |= dict(zip(NUMBERS, numbers, strict=True))
        rows.append(row)
    return rows


def curse_rows(found: Discovered, curse: CursePart) -> list[Row]:
    """The choice as it was chosen, and trained anew."""
    own = chosen_of(found)
    rows: list[Row] = [_curse_row("as chosen", "chosen", own, own)]
    for kind, known in curse.parts.items():
        rows += [_curse_row(kind.replace("_", " "), name, one, own) for name, one in known.items()]
    return rows


def _curse_row(kind: str, name: str, one: Retrained, own: Retrained) -> Row:
    lost = percent(own.val - one.val) if name == "chosen" else float("nan")
    return {
        "trained": kind, "equation": name, "validation": percent(one.val), "validation_lost": lost,
        "test": percent(one.test), "trainings": one.trainings, "diverged": one.diverged,
    }  # fmt: skip


def transfer_rows(moved: Mapping[str, Yardsticks]) -> list[Row]:
    """The choice beside BS on each other set."""
    rows: list[Row] = []
    for name, found in moved.items():
        own, other = found.by_name["chosen"], found.by_name["BS"]
        test = difference(own, other, found.ratio)
        rows.append({
            "dataset": name, "chosen": percent(own.test), "BS": percent(other.test), "difference": test.difference,
            "error": test.error, "p": test.p,
        })  # fmt: skip
    return rows


# ---------------------------------------------------------------------- verdicts
def verdicts(
    task: DiscoveryTask, found: Discovered, beside: Yardsticks, curse: CursePart
) -> list[tuple[str, str, str]]:
    """Whether the choice beats BS: on the splits it was chosen on, and on fresh ones, which count.

    Nothing where all trainings of BS diverged.
    """
    told = []
    pairs = []
    if "BS" in beside.by_name:
        pairs.append(("the splits it was chosen on", chosen_of(found), beside.by_name["BS"]))
    if (fresh := curse.parts.get("fresh_splits")) is not None:
        pairs.append(("splits that the choice did not see", fresh["chosen"], fresh["BS"]))
    for where, own, other in pairs:
        if all_diverged(other):
            continue
        test = difference(own, other, curse.ratio)
        evidence = (
            f"{test.difference:+z.2f} points, standard error {test.error:.2f}, two-sided p = {test.p:.3g} over "
            f"{test.splits} splits (corrected resampled t-test)."
        )
        statement = f"On {where} the chosen equation is better on test nodes than BS with the same settings."
        told.append((statement, test.answer, evidence))
    return told


# ---------------------------------------------------------------------- trained anew
# Trainings after a search over equations: reactions of the paper beside the choice, and the choice anew.

#: The reactions of the GREAD paper, which the chosen equation is compared with, and the first of them.
REACTIONS = ("BS", "F", "AC", "Z", "ST", "FB", "FB*")
#: What the chosen equation is called among retrained ones.
CHOSEN = "chosen"


class AnewProgress(NamedTuple):
    """How far a training after the search is: what is trained, epochs of all its batches, seconds."""

    what: str
    trials: float
    total: int
    seconds: float


@dataclass(frozen=True)
class Listener:
    """Who hears how far a search and the trainings after it are, and what is worth a sentence."""

    progress: Callable[[DiscoveryProgress | AnewProgress], None] | None = None
    tell: Callable[[str], object] = warnings.warn

    def training(self, what: str) -> Callable[[Progress], None] | None:
        """Who hears of one training."""
        if (hear := self.progress) is None:
            return None
        return lambda now: hear(AnewProgress(what, now.epoch, now.epochs, now.seconds))


@dataclass(frozen=True, eq=False)
class TrainedAnew:
    """The trainings that follow a choice, each a part of the run that is computed once."""

    run: StudyRun
    task: DiscoveryTask
    best: Line
    listener: Listener

    def yardsticks(self) -> Yardsticks:
        """The reactions of the paper on the same splits, with the same seed and settings."""
        plan = self.task.plan
        configs = reaction_configs(plan.base)
        rows = self._part("reactions", "reactions of the paper", plan.data, configs, plan.splits, [plan.seed])
        return Yardsticks(rows_of.read_retrained(rows), share_ratio(plan.data))

    def curse(self) -> CursePart:
        """The choice and BS, trained anew with fresh seeds on the same splits, and on fresh splits."""
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
        """The choice, untouched, on other data sets, beside BS there."""
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
    """Reactions of the paper in the same network: coefficients as the base has them."""
    return {name: base.updated({"reaction": name}) for name in names}
