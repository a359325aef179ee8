"""What every training is compared with on the same splits: label propagation, the majority class, an MLP, a GCN."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import Comparison, Estimate, split_means
from gread.datasets.node_data import NodeData
from gread.models.label_propagation import accuracies, best_propagation, majority_class
from gread.settings.config import Config, Training
from gread.settings.presets import PUBLISHED, presets
from gread.settings.trials import make_trials
from gread.training.trainer import Progress, train
from rdgraph.run.engines.engine import silent
from rdgraph.wording import counted
from studies.runs.report import ReportVerdict
from studies.runs.tables import MutableRow, Row, read_rows
from studies.runs.uncertainty import FAILS, UNDECIDED
from studies.training.plan import TrainingPlan

# ---------------------------------------------------------------------- cut short
# Trainings with fewer epochs than their preset has: what they lose, they may lose for that reason alone.


def cut_off(rows: Sequence[Mapping[str, Any]], training: Training, planned: int) -> str:
    """How a training ended before its time, from the rows of its results; "" where it did not.

    `planned` are the epochs of its preset. A training that its patience ended came to its own end.

    >>> cut_off([], Training(epochs=20), 200), cut_off([], Training(epochs=200), 200)
    ('cut off after 20 of 200 epochs', '')
    >>> cut_off([{"best_epoch": 7}], Training(epochs=20, patience=10), 200)
    ''
    """
    epochs, patience = training.epochs, training.patience
    if epochs >= planned:
        return ""
    if patience and rows and all(int(row["best_epoch"]) + patience <= epochs for row in rows):
        return ""
    return f"cut off after {epochs} of {planned} epochs"


def fair_answer(answer: str, loser_was_cut_off: bool) -> str:
    """An answer, undecided where it says that something fails which was cut off.

    >>> fair_answer("fails", True), fair_answer("fails", False), fair_answer("holds", True)
    ('undecided', 'fails', 'holds')
    """
    return UNDECIDED if answer == FAILS and loser_was_cut_off else answer


# ---------------------------------------------------------------------- reference answers
PROPAGATION, MAJORITY, PERCEPTRON, CONVOLUTION = "label propagation", "majority class", "MLP", "GCN"
#: The references as the subject of a sentence.
TITLES = {
    PROPAGATION: "Label propagation", MAJORITY: "The majority class", PERCEPTRON: "The MLP", CONVOLUTION: "The GCN",
}  # fmt: skip
#: Networks among the references, and the file with the rows of all of them.
NETWORKS, FILE = {PERCEPTRON: "mlp", CONVOLUTION: "gcn"}, "references"
CAPTION = (
    "What the network is compared with, on the same splits: label propagation over the graph from the training labels "
    "(alpha chosen on the validation nodes), the class that most training nodes have, an MLP, which does not see "
    "the graph (none where every feature is that of a single node, which says nothing of others), and a GCN of as many "
    "epochs as the network. Accuracies are shares of 1."
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


def reference_rows(
    plan: TrainingPlan,
    progress: Callable[[Progress, str], None] | None = None,
    stage: Callable[[str], object] = silent,
) -> list[MutableRow]:
    """All references of a plan; `progress` is called with the name of the one that is trained.

    A network is left out where it is what the plan trains, and the MLP where features only name the nodes, so that it
    knows nothing of those that it was not trained on.
    """
    stage("references: label propagation and the majority class")
    rows = untrained_rows(plan.data, plan.splits, (PROPAGATION, MAJORITY))
    for title, model in NETWORKS.items():
        if plan.config.model.model == model or (title == PERCEPTRON and names_nodes(plan.data.x)):
            continue
        stage(f"references: preparing the {title}")
        config, source = reference_config(plan, title)
        trials = make_trials(config, plan.splits, [plan.seed])
        hears = None if progress is None else partial(_named, progress, title)
        done = train(plan.data, trials, device=plan.device, progress=hears, keep_best=False)
        rows += [
            {
                "method": title, "split": trial.split, "val_accuracy": float(done.val_accuracy[k]),
                "test_accuracy": float(done.test_accuracy[k]), "how": source,
            }
            for k, trial in enumerate(trials)
        ]  # fmt: skip
    return rows


def _named(progress: Callable[[Progress, str], None], title: str, heard: Progress) -> None:
    progress(heard, title)


def names_nodes(features: Any) -> bool:
    """Whether every feature, a column of an array or of a sparse one, is that of a single node.

    >>> names_nodes(np.eye(3)), names_nodes(np.ones((3, 2)))
    (True, False)
    """
    return bool(np.all(np.asarray((features != 0).sum(0)) <= 1))


def reference_config(plan: TrainingPlan, title: str) -> tuple[Config, str]:
    """The published settings of a reference network on the data set, or its defaults.

    The MLP has its own epochs, however few the network has: cut off early it is no yardstick. The published one takes
    600 epochs on Texas, and is 4 points worse after 200. A GCN with its defaults has the epochs of the network.
    """
    model = NETWORKS[title]
    name = f"{PUBLISHED}/{model}/{plan.preset.dataset}"
    known = None if plan.source.is_own else next((preset for preset in presets() if preset.name == name), None)
    budget = {"epochs": plan.config.training.epochs} if title == CONVOLUTION else {}
    config, source = (Config.of(model, **budget), "the defaults") if known is None else (known.config, known.name)
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
    """A reference's accuracy in percent over the splits, and how far the network is above it on the same splits.

    `cut` says how the network's training ended before its time, "" where it did not.
    """

    method: str
    estimate: Estimate
    paired: Comparison
    cut: str = ""

    @property
    def is_better(self) -> bool:
        """Whether it scores higher than the network: significantly, and the network's training was not cut off."""
        return self.verdict().answer == FAILS

    @property
    def text(self) -> str:
        """The mean ± the standard deviation over the splits, of a single split the mean alone."""
        return self.estimate.text

    def sentence(self) -> str:
        """In words, as the verdict has it; one that beats the network says so first."""
        own, gap = f"{self.method} {self.text} %", self.paired
        if math.isnan(gap.difference):
            return f"On the same splits {own}."
        if self.is_better:
            ahead = f"{-gap.difference:.2f} points above the network{gap.spread}"
            return f"{TITLES[self.method]} scores higher on the same splits: {self.text} %, {ahead}."
        if gap.difference == 0:
            return f"On the same splits {own}: as the network."
        doubt = f", undecided: the network was {self.cut}" if gap.answer == FAILS else gap.doubt
        return f"On the same splits {own}: the network is at {gap.text}{doubt}."

    def verdict(self) -> ReportVerdict:
        """Is the network better, for all that the splits tell? Undecided where it is not, and was cut off."""
        evidence = (
            f"Mean difference {self.paired.text} over {counted(self.paired.splits, 'split')}, reference {self.text}; "
            f"{self.paired.test}."
        )
        answer = fair_answer(self.paired.answer, bool(self.cut))
        if answer != self.paired.answer:
            evidence += f" The network was {self.cut}."
        statement = f"The network is more accurate than {article(self.method)} on the same splits."
        return ReportVerdict(statement, answer, evidence)


def article(method: str) -> str:
    """The method as a sentence calls it."""
    return {
        MAJORITY: "the majority class",
        PERCEPTRON: "an MLP, which does not see the graph,",
        CONVOLUTION: "a GCN",
    }.get(method, method)


def compare(
    rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]], ratio: float, cut: str = ""
) -> tuple[Reference, ...]:
    """Every reference next to the rows of a training's results.

    `ratio` is n_test/n_train; `cut` says how the training ended before its time, if it did.
    """
    own, found = split_means(rows), []
    for method in dict.fromkeys(str(row["method"]) for row in references):
        theirs = [row for row in references if row["method"] == method]
        paired = Comparison.of(own, split_means(theirs), ratio)
        found.append(Reference(method, Estimate.of(theirs), paired, cut))
    return tuple(found)
