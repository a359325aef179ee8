"""`Budget`: the trials of a search over equations, and who has as many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rdgraph.errors import InvalidArgument
from studies.benchmarks.cell_file import Cell
from studies.benchmarks.searched import EPOCHS, FIRST, TRIALS, TUNED, USUAL
from studies.benchmarks.searched import FEW as FEW_SEARCHED

#: Who has as many trials of settings as a whole search over equations.
MANY_TRIALS = (FIRST, TUNED)
#: Equations of a cell, and trials of settings of the chosen one.
EQUATIONS = dict.fromkeys(("texas", "wisconsin", "cornell_old", "chameleon", "cora", "citeseer"), 500)
FEWER = 150
SETTINGS = {"texas": 100, "wisconsin": 100, "cornell_old": 100}
FEW = 30
#: The share of equations among few trials; the others are settings of the chosen one.
SHARE = 0.75


@dataclass(frozen=True)
class Budget:
    """Trials of a cell: equations, and settings of the chosen one; others that are compared have the sum."""

    equations: int
    settings: int
    epochs: int

    @classmethod
    def of(cls, dataset: str, equations: int | None, settings: int | None, epochs: int | None) -> Budget:
        """The budget of a data set, or another one.

        >>> Budget.of("texas", None, None, None), Budget.of("film", None, 5, None).total
        (Budget(equations=500, settings=100, epochs=200), 155)
        """
        return cls(
            equations or EQUATIONS.get(dataset, FEWER), settings or SETTINGS.get(dataset, FEW),
            epochs or EPOCHS.get(dataset, USUAL),
        )  # fmt: skip

    @classmethod
    def few(cls, dataset: str, trials: int | None, epochs: int | None) -> Budget:
        """As many trials in all as a contestant of `searched` has on a data set, or another number.

        >>> Budget.few("texas", None, None), Budget.few("film", None, None)
        (Budget(equations=150, settings=50, epochs=200), Budget(equations=45, settings=15, epochs=200))
        """
        total = trials or TRIALS.get(dataset, FEW_SEARCHED)
        equations = int(SHARE * total)
        if equations < 1:
            raise InvalidArgument(f"expected at least 2 trials, one of an equation and one of settings, got {total}")
        return cls(equations, total - equations, epochs or EPOCHS.get(dataset, USUAL))

    @property
    def total(self) -> int:
        return self.equations + self.settings


def usual_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Those of some cells that are measured unless a contestant is asked for.

    >>> usual_cells([("BS", "texas"), ("BS", "cora"), ("discovered", "cora")])
    [('BS', 'texas'), ('discovered', 'cora')]
    """
    return [(name, dataset) for name, dataset in cells if dataset in SETTINGS or name not in MANY_TRIALS]
