"""What stands beside every training, on the same splits: label propagation, the majority class and an MLP."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.node_data import NodeData
from gread.references.label_propagation import accuracies, best_propagation, majority_class
from gread.settings.config import Config
from gread.settings.presets import PUBLISHED, presets
from gread.settings.trials import make_trials
from gread.training.trainer import Progress, train
from rdgraph.wording import counted
from studies.runs.pairing import Paired, split_means
from studies.runs.report import ReportVerdict
from studies.runs.tables import MutableRow, Row, read_rows
from studies.runs.uncertainty import FAILS, UNDECIDED
from studies.training.cut_short import fair_answer
from studies.training.plan import TrainingPlan

PROPAGATION, MAJORITY, PERCEPTRON = "label propagation", "majority class", "MLP"
#: The name of the network that looks at the features alone, and the file with the rows of all references.
MLP, FILE = "mlp", "references"
CAPTION = (
    "What the network is compared with, on the same splits: label propagation over the graph from the training labels "
    "(alpha chosen on the validation nodes), the class that most training nodes have, and an MLP, which does not see "
    "the graph; none where every feature is that of a single node, which says nothing of others. Accuracies are shares "
    "of 1."
)


# ---------------------------------------------------------------------- the rows
def untrained_rows(data: NodeData, splits: Iterable[int], methods: Sequence[str]) -> list[MutableRow]:
    """A row for every split of the references that need no training."""
    rows: list[MutableRow] = []
    for method in methods:
        for split in splits:
            if method == PROPAGATION:
                found = best_propagation(data, split)
                scores, how = found.scores, f"alpha = {found.alpha:g}"
            else:
                scores, how = majority_class(data, split), "of the training nodes"
            right = accuracies(data, split, scores)
            rows.append(
                {"method": method, "split": split, "val_accuracy": right.val, "test_accuracy": right.test, "how": how}
            )
    return rows


def reference_rows(plan: TrainingPlan, progress: Callable[[Progress], None] | None = None) -> list[MutableRow]:
    """All references of a plan.

    The MLP is left out where it is what the plan trains, and where features only name the nodes, so that it knows
    nothing of those that it was not trained on.
    """
    rows = untrained_rows(plan.data, plan.splits, (PROPAGATION, MAJORITY))
    if plan.config.model.model == MLP or names_nodes(plan.data.x):
        return rows
    config, source = perceptron(plan)
    trials = make_trials(config, plan.splits, [plan.seed])
    done = train(plan.data, trials, device=plan.device, progress=progress, keep_best=False)
    return rows + [
        {
            "method": PERCEPTRON, "split": trial.split, "val_accuracy": float(done.val_accuracy[k]),
            "test_accuracy": float(done.test_accuracy[k]), "how": source,
        }
        for k, trial in enumerate(trials)
    ]  # fmt: skip


def names_nodes(features: Any) -> bool:
    """Whether every feature, a column of an array or of a sparse one, is that of a single node.

    >>> names_nodes(np.eye(3)), names_nodes(np.ones((3, 2)))
    (True, False)
    """
    return bool(np.all(np.asarray((features != 0).sum(0)) <= 1))


def perceptron(plan: TrainingPlan) -> tuple[Config, str]:
    """The MLP's published settings on the data set, or its defaults; with its own epochs, however few the network has.

    Cut off early it is no yardstick: the published one takes 600 epochs on Texas, and is 4 points worse after 200.
    """
    name = f"{PUBLISHED}/{MLP}/{plan.preset.dataset}"
    known = None if plan.source.is_own else next((preset for preset in presets() if preset.name == name), None)
    config, source = (Config.of(MLP), "the defaults") if known is None else (known.config, known.name)
    patience = config.training.patience
    ends = f"until {patience} epochs bring nothing better" if patience else f"{config.training.epochs} epochs"
    return config, f"{source}, {ends}"


def read_references(folder: Path) -> list[Row]:
    """The rows that a training left in its folder; none where it had not come so far."""
    path = folder / f"{FILE}.csv"
    return list(read_rows(path)) if path.is_file() else []


# ---------------------------------------------------------------------- what they say
@dataclass(frozen=True)
class Reference:
    """A reference's accuracy in percent over the splits, and how far the network is above it on the same ones.

    `cut` says how the network's training ended before its time, "" where it did not.
    """

    method: str
    mean: float
    std: float
    splits: int
    paired: Paired
    cut: str = ""

    @property
    def is_better(self) -> bool:
        """Whether it is above the network, for all that the splits tell."""
        return self.paired.answer == FAILS

    @property
    def text(self) -> str:
        """The mean, with the deviation where there is more than one split."""
        return f"{self.mean:.2f}" if self.splits == 1 else f"{self.mean:.2f} ± {self.std:.2f}"

    def sentence(self) -> str:
        """In words; one that beats the network says so first."""
        own, gap = f"{self.method} {self.text} %", self.paired
        if math.isnan(gap.difference):
            return f"On the same splits {own}."
        if self.is_better:
            ended = f", {self.cut}" if self.cut else ""
            return f"Beaten by {own} on the same splits: the network is at {gap.text}{ended}."
        if gap.difference == 0:
            return f"On the same splits {own}: as the network."
        return f"On the same splits {own}: the network is at {gap.text}{undecided_words(gap)}."

    def verdict(self) -> ReportVerdict:
        """Is the network better, for all that the splits tell? Undecided where it is not, and was cut off."""
        evidence = (
            f"Mean difference {self.paired.text} over {counted(self.paired.splits, 'split')}, reference {self.text}; "
            f"Student's interval at 95 %. Splits share nodes, so that it may be too narrow."
        )
        answer = fair_answer(self.paired.answer, bool(self.cut))
        if answer != self.paired.answer:
            evidence += f" The network was {self.cut}."
        statement = f"The network is more accurate than {article(self.method)} on the same splits."
        return ReportVerdict(statement, answer, evidence)


def undecided_words(gap: Paired) -> str:
    """What follows a difference that the splits do not decide; "" where they do.

    >>> undecided_words(Paired(2.0, 1.5, 10)), undecided_words(Paired(2.0, 0.1, 10))
    (', which the splits do not decide', '')
    """
    if gap.answer != UNDECIDED:
        return ""
    return ", which one split does not decide" if gap.splits == 1 else ", which the splits do not decide"


def article(method: str) -> str:
    """The method as a sentence calls it."""
    return {MAJORITY: "the majority class", PERCEPTRON: "an MLP, which does not see the graph,"}.get(method, method)


def compare(
    rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]], cut: str = ""
) -> tuple[Reference, ...]:
    """Every reference beside the rows of a training's results; `cut` says how it ended before its time, if it did."""
    own, found = split_means(rows), []
    for method in dict.fromkeys(str(row["method"]) for row in references):
        theirs = split_means(row for row in references if row["method"] == method)
        values = np.array(list(theirs.values()))
        mean, std, paired = float(values.mean()), float(values.std()), Paired.of(own, theirs)
        found.append(Reference(method, mean, std, len(values), paired, cut))
    return tuple(found)
