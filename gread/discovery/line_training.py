"""Equations of a grammar trained on all splits, the worse dropped on the way: one call for many of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from gread.datasets.node_data import NodeData
from gread.discovery.term_grammar import Line
from gread.settings.config import Config
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult
from gread.tuning.rounds import train_round


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


def train_lines(
    data: NodeData,
    lines: Sequence[tuple[int, Line]],
    base: Config,
    *,
    splits: Sequence[int],
    seed: int,
    device: str,
    halving: bool = True,
    checkpoint: Path | None = None,
    progress: Callable[[float], None] = lambda share: None,
    tell: Callable[[str], object] = warnings.warn,
) -> list[TrialResult]:
    """What became of numbered equations, in their order.

    Args:
        data: The data set.
        lines: Equations with their numbers.
        base: The network around them and how it is trained.
        splits: Every equation is trained on all of these.
        seed: Of the trainings.
        device: cpu, cuda or cuda:N.
        halving: Whether the worse part is dropped after a tenth, a fifth and two fifths of the epochs.
        checkpoint: A folder for the state, from which trainings that were cut off go on.
        progress: Hears the share that is done.
        tell: Hears sentences about what a user should know.

    Returns:
        A result for each; an equation that cannot be trained has failed, with the reason.
    """
    candidates = [Candidate(number, line_config(base, line)) for number, line in lines]
    plan = PlannedRound.of(data, splits, seed, halving, candidates)
    place = None if checkpoint is None else checkpoint / plan.digest[:16]
    return train_round(data, plan, device=device, checkpoint=place, progress=progress, tell=tell)
