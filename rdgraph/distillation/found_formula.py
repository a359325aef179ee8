"""The answer of a search for a formula: the formula, and the front of error against size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.distillation.formula_letters import LetteredFormula, range_words
from rdgraph.distillation.prefix_terms import Word, evaluate, to_text
from rdgraph.distillation.simple_numbers import Rounding, simple_within
from rdgraph.html_tables import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray


@dataclass(frozen=True)
class FrontRow:
    """The best formula of a size: its error, how many numbers were fitted, its text, and its score.

    Fitted to one set, the text has its numbers. Fitted to several, the error is that of constants of every set: the
    text has letters, and `ranges` the smallest and the largest value of each.
    """

    size: int
    error: float
    parameters: int
    text: str
    score: float
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)

    @property
    def told(self) -> str:
        """The text, and the ranges of its letters where it has any."""
        return f"{self.text}, {range_words(self.ranges)}" if self.ranges else self.text


@dataclass(frozen=True)
class Formula:
    """A formula of the language: `text` with letters, whose values for every set are `constants` (sets, count).

    `intervals` (sets, count, 2) are linear ones at `level`; `rounded` says which constants became simple numbers.
    """

    lettered: LetteredFormula
    word: Word = field(repr=False)
    constants: Array
    intervals: Array
    level: float
    size: int
    error: float
    relative_error: float
    rounded: tuple[Rounding, ...]

    @property
    def text(self) -> str:
        return self.lettered.text

    @property
    def names(self) -> tuple[str, ...]:
        return self.lettered.names

    def values(self, number: int = 0) -> dict[str, float]:
        """The letters of one set."""
        return self.lettered.values(self.constants[number])

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each letter over the sets."""
        return self.lettered.ranges(self.constants)

    def with_numbers(self, number: int = 0, digits: int = 4) -> str:
        """The formula with the numbers of one set.

        >>> import numpy as np
        >>> x = np.linspace(0, 1, 30)
        >>> import rdgraph as rd
        >>> rd.find_formula(x, 2.34*x, functions=[]).formula.with_numbers()
        '2.34*H'
        """
        return to_text(self.word, [f"{value:.{digits}g}" for value in self.constants[number]])

    def __call__(self, x: Any) -> Array:
        """The values at x: (sets, points), or (points,) where there is one set."""
        points = np.asarray(x, dtype=float)
        found = evaluate(self.word, self.constants, points.reshape(-1))
        return found[0].reshape(points.shape) if len(found) == 1 else found

    def __str__(self) -> str:
        rows = [self.text]
        for k, (name, sign) in enumerate(zip(self.names, self.lettered.signs, strict=True)):
            if len(self.constants) == 1:
                value = float(self.constants[0, k]) * (sign or 1)
                low, high = sorted((sign or 1) * self.intervals[0, k])
                near = simple_within(low, high)
                told = f", which holds {near}" if near else ""
                rows.append(f"{name} = {value:.4g}  [{low:.4g}, {high:.4g}] at {100 * self.level:g} %{told}")
            else:
                rows.append(f"{range_words({name: self.ranges[name]})} over the sets")
        rows += [f"{note.number} was {note.was}, rounded" for note in self.rounded]
        return "\n".join(rows)


@dataclass(frozen=True)
class FormulaSearch:
    """A formula, or None where none up to `max_size` is good enough; `front` has the best of each size."""

    formula: Formula | None
    front: tuple[FrontRow, ...]
    rule: str
    max_size: int
    tolerance: float
    scale: float

    @property
    def answer(self) -> str:
        """The formula, or that there is none."""
        return self.answer_for("set")

    def answer_for(self, each: str) -> str:
        """The same, where `each` says what every set is of, such as a trial."""
        if self.formula is not None:
            return self.formula.text
        best = min(self.front, key=lambda row: row.error, default=None)
        near = ""
        if best is not None:
            own = f" with constants of every {each}" if best.ranges else ""
            near = f"; the nearest leaves {100 * best.error / self.scale:.2g} %{own}: {best.told}"
        return f"no formula of size <= {self.max_size} within {100 * self.tolerance:g} %{near}"

    def __str__(self) -> str:
        table = [f"{row.size:4d}  {row.error:9.3g}  {row.told}" for row in self.front]
        own = ", with constants of every set" if any(row.ranges for row in self.front) else ""
        head = f"size      error  formula{own}"
        return "\n".join([str(self.formula or self.answer), f"({self.rule})", head, *table])

    def _repr_html_(self) -> str:
        rows = [(f"size {row.size}", f"{row.told}  (error {row.error:.3g}{_own(row)})") for row in self.front]
        return html_table("Formula", [("chosen", self.answer), ("rule", self.rule), *rows])

    def plot(self) -> Figure:
        """Error against size, the chosen formula marked."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        draw_front(axes, self)
        return figure


def _own(row: FrontRow) -> str:
    return " with constants of every set" if row.ranges else ""


def draw_front(axes: Any, search: FormulaSearch) -> None:
    """The front as steps with a dot for each formula; that of the answer is full."""
    sizes, errors = [row.size for row in search.front], [row.error / search.scale for row in search.front]
    axes.step(sizes, errors, where="post", color="0.6", lw=1)
    axes.plot(sizes, errors, "o", mfc="white", mec="#0072B2")
    if search.formula is not None:
        axes.plot(
            [search.formula.size], [search.formula.relative_error], "o", color="#D55E00", label=search.formula.text
        )
        axes.legend(fontsize="small")
    axes.set(xlabel="size of the formula", ylabel="error, relative", yscale="log")
    axes.grid(color="0.92", lw=0.6)
