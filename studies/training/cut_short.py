"""Trainings with fewer epochs than their preset has: what they lose, they may lose for that reason alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gread.settings.config import Training
from studies.runs.uncertainty import FAILS, UNDECIDED


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
