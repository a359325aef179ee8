"""What a verdict on oversmoothing is made of: the answer, thresholds, medians, ratios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from studies.oversmoothing.rows import TINY
from studies.runs.tables import MutableRow, Value

#: An energy below this share of the first one counts as gone.
GONE = 1e-3
#: Largest difference of a measured and a predicted number that counts as agreement, as a share.
CLOSE = 0.1


@dataclass(frozen=True)
class Answer:
    """A statement, whether it holds, what was measured, and a sentence for the text."""

    statement: str
    answer: str
    evidence: str
    summary: str = ""


def median_text(values: np.ndarray) -> str:
    there = values[~np.isnan(values)]
    return f"{np.median(there):.3g}" if there.size else "nan"


def decades(energy: Value, other: Value) -> float:
    """log10 of a ratio of energies, of which neither counts as less than rounding."""
    return float(np.log10(max(float(energy), TINY)) - np.log10(max(float(other), TINY)))


def is_kept(row: MutableRow) -> bool:
    return bool(np.isnan(float(row["failed_at"])))


def beta_over_alpha(row: MutableRow) -> float:
    return round(float(row["beta"]) / float(row["alpha"]), 9)
