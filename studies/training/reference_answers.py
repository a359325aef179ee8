"""The baselines of every training on the same splits: label propagation, the majority class, an MLP and a GCN."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import Comparison, Estimate, split_means
from gread.datasets.node_data import NodeData
from gread.models.batched_model import graph_seen_by
from gread.models.label_propagation import accuracies, best_propagation, majority_class
from gread.settings.config import Config, Training
from gread.settings.model_records import ModelSettings
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
# Trainings with fewer epochs than their preset, which may lose for that reason alone.


def cut_off(rows: Sequence[Mapping[str, Any]], training: Training, planned: int) -> str:
    """How a training was shortened, from the rows of its results; "" if it was not.

    `planned` are the epochs of its preset. Early stopping does not count.

    >>> cut_off([], Training(epochs=20), 200), cut_off([], Training(epochs=200), 200)
    ('trained for only 20 of 200 epochs', '')
    >>> cut_off([{"best_epoch": 7}], Training(epochs=20, patience=10), 200)
    ''
    """
    epochs, patience = training.epochs, training.patience
    if epochs >= planned:
        return ""
    if patience and rows and all(int(row["best_epoch"]) + patience <= epochs for row in rows):
        return ""
    return f"trained for only {epochs} of {planned} epochs"


def fair_answer(answer: str, loser_was_cut_off: bool) -> str:
    """An outcome, changed from "fails" to "undecided" if the loser's training was shortened.

    >>> fair_answer("fails", True), fair_answer("fails", False), fair_answer("holds", True)
    ('undecided', 'fails', 'holds')
    """
    return UNDECIDED if answer == FAILS and loser_was_cut_off else answer


# ---------------------------------------------------------------------- reference answers
PROPAGATION, MAJORITY, PERCEPTRON, CONVOLUTION = "label propagation", "majority class", "MLP", "GCN"
#: The baselines as the subject of a sentence.
TITLES = {
    PROPAGATION: "Label propagation", MAJORITY: "The majority class", PERCEPTRON: "The MLP", CONVOLUTION: "The GCN",
}  # fmt: skip
#: Networks among the baselines, and the file with the rows of all baselines.
NETWORKS, FILE = {PERCEPTRON: "mlp", CONVOLUTION: "gcn"}, "references"


# ---------------------------------------------------------------------- the rows
#: What the rows of a network say that sees a directed graph with edges both ways.
BOTH_WAYS = ", edges both ways"


def untrained_rows(data: NodeData, splits: Iterable[int], methods: Sequence[str]) -> list[MutableRow]:
    """Rows of the baselines without training, by split."""
    rows: list[MutableRow] = []
    for method in methods:
        for split in splits:
            if method == PROPAGATION:
                result = best_propagation(data, split)
                scores, how = result.scores, f"alpha = {result.alpha:g}"
            else:
                scores, how = majority_class(data, split), "of the training nodes"
            right = accuracies(data, split, scores)
            rows.append(
                {"method": method, "split": split, "val_accuracy": right.val, "test_accuracy": right.test, "how": how}
            )
    return rows


def data_seen_by(settings: ModelSettings, data: NodeData) -> NodeData:
    """The data of one network: with edges both ways where it refuses a directed graph."""
    graph = graph_seen_by(settings, data.graph, features=data.num_features, classes=data.num_classes)
    return data if graph is data.graph else replace(data, graph=graph)


def reference_rows(
    plan: TrainingPlan, progress: Callable[[Progress, str], None] | None = None, stage: Callable[[str], object] = silent
) -> list[MutableRow]:
    """Rows of all baselines of a plan; `progress` is called with the name of the one in training.

    The network of the plan is left out, and so is the MLP if features only identify nodes.
    """
    stage("baselines: label propagation and the majority class")
    rows = untrained_rows(plan.data, plan.splits, (PROPAGATION, MAJORITY))
    for title, model in NETWORKS.items():
        if plan.config.model.model == model or (title == PERCEPTRON and names_nodes(plan.data.x)):
            continue
        stage(f"baselines: preparing the {title}")
        config, source = reference_config(plan, title)
        trials = make_trials(config, plan.splits, [plan.seed])
        callback = None if progress is None else partial(_named, progress, title)
        data = data_seen_by(config.model, plan.data)
        done = train(data, trials, device=plan.device, progress=callback, keep_best=False)
        rows += [
            {
                "method": title, "split": trial.split, "val_accuracy": float(done.val_accuracy[k]),
                "test_accuracy": float(done.test_accuracy[k]), "how": source + BOTH_WAYS * (data is not plan.data),
            }
            for k, trial in enumerate(trials)
        ]  # fmt: skip
    return rows


def _named(progress: Callable[[Progress, str], None], title: str, current: Progress) -> None:
    progress(current, title)


def names_nodes(features: Any) -> bool:
    """Whether every feature (column) is non-zero for at most one node.

    >>> names_nodes(np.eye(3)), names_nodes(np.ones((3, 2)))
    (True, False)
    """
    return bool(np.all(np.asarray((features != 0).sum(0)) <= 1))


def reference_config(plan: TrainingPlan, title: str) -> tuple[Config, str]:
    """The published settings of a baseline network on the data set, or its defaults, and their source.

    The MLP always has its own epochs: the published one takes 600 on Texas and is 4 points worse after 200. A GCN with
    its defaults has the epochs of the network.
    """
    model = NETWORKS[title]
    name = f"{PUBLISHED}/{model}/{plan.preset.dataset}"
    known = None if plan.source.is_own else next((preset for preset in presets() if preset.name == name), None)
    budget = {"epochs": plan.config.training.epochs} if title == CONVOLUTION else {}
    config, source = (Config.of(model, **budget), "the defaults") if known is None else (known.config, known.name)
    patience = config.training.patience
    ends = f"early stopping after {patience} epochs" if patience else f"{config.training.epochs} epochs"
    return config, f"{source}, {ends}"


def read_references(folder: Path) -> list[Row]:
    """Rows of the baselines in the folder of a training, if it has got that far."""
    path = folder / f"{FILE}.csv"
    return list(read_rows(path)) if path.is_file() else []


# ---------------------------------------------------------------------- comparisons
@dataclass(frozen=True)
class Reference:
    """Accuracy of a baseline in percent over the splits, and its paired comparison with the network.

    `cut` says how the network's training was shortened, or "".
    """

    method: str
    estimate: Estimate
    paired: Comparison
    cut: str = ""

    @property
    def is_better(self) -> bool:
        """Whether it scores significantly higher than a network whose training was not shortened."""
        return self.verdict().answer == FAILS

    @property
    def text(self) -> str:
        """The mean ± the standard deviation over the splits; for a single split the mean."""
        return self.estimate.text

    def sentence(self) -> str:
        """The comparison in a sentence."""
        score, gap = f"{TITLES[self.method]} scores {self.text} % on the same splits", self.paired
        if math.isnan(gap.difference):
            return f"{score}."
        if gap.difference == 0:
            return f"{score}, as much as the network."
        side = f"{abs(gap.difference):.2f} points {'above' if gap.difference > 0 else 'below'}"
        doubt = f", undecided: the network was {self.cut}" if self.cut and gap.answer == FAILS else gap.doubt
        return f"{score}; the network is {side if round(gap.difference, 2) else 'level'}{gap.spread}{doubt}."

    def verdict(self) -> ReportVerdict:
        """Verdict: is the network significantly better? Undecided if it is worse after a shortened training."""
        evidence = (
            f"Mean difference {self.paired.text} over {counted(self.paired.splits, 'split')}, baseline {self.text}; "
            f"{self.paired.test}."
        )
        answer = fair_answer(self.paired.answer, bool(self.cut))
        if answer != self.paired.answer:
            evidence += f" The network was {self.cut}."
        statement = f"The network is more accurate than {article(self.method)} on the same splits."
        return ReportVerdict(statement, answer, evidence)


def article(method: str) -> str:
    """The method with its article."""
    return {
        MAJORITY: "the majority class",
        PERCEPTRON: "an MLP, which does not see the graph,",
        CONVOLUTION: "a GCN",
    }.get(method, method)


def compare(
    rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]], ratio: float, cut: str = ""
) -> tuple[Reference, ...]:
    """Comparisons of every baseline with the results of a training.

    `ratio` is n_test/n_train; `cut` says how the training was shortened, if it was.
    """
    accuracies, compared = split_means(rows), []
    for method in dict.fromkeys(str(row["method"]) for row in references):
        theirs = [row for row in references if row["method"] == method]
        paired = Comparison.of(accuracies, split_means(theirs), ratio)
        compared.append(Reference(method, Estimate.of(theirs), paired, cut))
    return tuple(compared)
