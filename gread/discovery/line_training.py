"""Equations of a grammar trained on all splits, the worse dropped on the way: one call for many of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gread.datasets.node_data import NodeData
from gread.discovery.equation_batches import (
    BROKEN,
    DROPPED,
    FINISHED,
    REFUSED,
    EquationProgress,
    EquationResult,
    train_equations,
)
from gread.discovery.term_grammar import Line
from gread.settings.config import Config
from gread.tuning.candidates import COMPLETE, DIVERGED, FAILED, PRUNED, TrialResult

#: Shares of the epochs after which the worse half of the equations that are left is dropped.
RUNGS, KEEP = (0.1, 0.2, 0.4), 0.5
#: States of equations as those of trials.
AS_TRIALS = {FINISHED: COMPLETE, DROPPED: PRUNED, BROKEN: DIVERGED, REFUSED: FAILED}


@dataclass(frozen=True)
class LineResult:
    """What became of an equation, as of a trial, and the means of its coefficients over splits and channels."""

    trial: TrialResult
    coefficients: dict[str, float]


def line_config(base: Config, line: Line) -> Config:
    """The configuration of an equation: kinds and signs of its coefficients are those that it declares.

    >>> from gread.discovery.term_grammar import find_terms
    >>> grammar = find_terms("default")
    >>> model = line_config(Config(), grammar.line(grammar.terms[:2])).gread
    >>> model.reaction, model.alpha, model.beta
    ('alpha*H + beta*A@H where alpha channel, beta channel, alpha real, beta real', 'channel', 'channel')
    """
    kinds = {"alpha": line.kind, "beta": line.kind}
    return base.updated({"reaction": line.text, **kinds, "alpha_link": "auto", "beta_link": "auto"})


def rungs_of(epochs: int) -> list[int]:
    """The epochs after which equations are dropped, as whole numbers that grow.

    >>> rungs_of(200), rungs_of(20), rungs_of(2)
    ([20, 40, 80], [2, 4, 8], [1])
    """
    ends = {math.ceil(share * epochs) for share in RUNGS}
    return sorted(end for end in ends if end < epochs)


def train_lines(
    data: NodeData,
    lines: Sequence[tuple[int, Line]],
    base: Config,
    *,
    splits: Sequence[int],
    seed: int,
    device: str,
    progress: Callable[[float], None] = lambda share: None,
    tell: Callable[[str], object] = warnings.warn,
) -> list[LineResult]:
    """What became of numbered equations, in their order.

    Args:
        data: The data set.
        lines: Equations with their numbers.
        base: The network around them and how it is trained.
        splits: Every equation is trained on all of these.
        seed: Of the trainings.
        device: cpu, cuda or cuda:N.
        progress: Hears the share that is done.
        tell: Hears sentences about what a user should know.

    Returns:
        A result for each; an equation that cannot be trained has failed, with the reason.
    """
    if not lines:
        return []

    def hear(now: EquationProgress) -> None:
        progress(now.share)

    epochs = base.training.epochs
    found = train_equations(
        [line.system for _, line in lines], data, line_config(base, lines[0][1]), splits=splits, epochs=epochs,
        rungs=rungs_of(epochs), keep=KEEP, seed=seed, device=device, on_progress=hear, tell=tell,
    )  # fmt: skip
    return [
        LineResult(_as_trial(number, one, epochs), one.coefficients)
        for (number, _), one in zip(lines, found, strict=True)
    ]


def _as_trial(number: int, one: EquationResult, epochs: int) -> TrialResult:
    """The result of an equation as that of a trial: one that diverged and was dropped was not trained to its end.

    >>> _as_trial(3, EquationResult("", BROKEN, 7, (0.5,), (0.5,), {}, ((20, 0.5),)), 200).state
    'pruned'
    """
    state = DROPPED if one.state == BROKEN and one.rungs[-1][0] < epochs else one.state
    return TrialResult(number, AS_TRIALS[state], one.epochs, one.val, one.test, one.rungs, one.reason)
