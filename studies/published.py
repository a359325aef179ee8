"""Published settings, read from the data files beside this module; every row names its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from studies.files import read_rows

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Setting:
    """What the paper chose for one reaction on one data set; alpha and beta are kinds (SC, VC), not values."""

    reaction: str
    dataset: str
    adjacency: str
    alpha: str
    beta: str
    step: float
    time: float
    solver: str
    source: str


@cache
def best_settings() -> tuple[Setting, ...]:
    """The best settings of the paper: seven reactions on nine data sets.

    >>> s = best_settings()[0]
    >>> s.reaction, s.dataset, s.step, s.time, s.solver
    ('BS', 'texas', 1.0, 1.46, 'euler')
    """
    texts = ("reaction", "dataset", "adjacency", "alpha", "beta", "solver", "source")
    return tuple(
        Setting(step=float(row["step"]), time=float(row["time"]), **{name: str(row[name]) for name in texts})
        for row in read_rows(DATA / "best_settings.csv")
    )
