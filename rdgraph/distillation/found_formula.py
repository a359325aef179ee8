"""The answer of a search for a formula: the formula, and the front of error against size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.distillation.formula_letters import LetteredFormula
from rdgraph.distillation.prefix_terms import Word, evaluate, to_text
from rdgraph.distillation.simple_numbers import Rounding, simple_within
from rdgraph.html_tables import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray


@dataclass(frozen=True)
class FrontRow:
    """The best formula of a size: its error, how many numbers were fitted, the numbers in it, and its score."""

    size: int
    error: float
    parameters: int
    text: str
    score: float


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
            value = float(self.constants[:, k].mean()) * (sign or 1)
            if len(self.constants) == 1:
                low, high = sorted((sign or 1) * self.intervals[0, k])
                near = simple_within(low, high)
                told = f", which holds {near}" if near else ""
                rows.append(f"{name} = {value:.4g}  [{low:.4g}, {high:.4g}] at {100 * self.level:g} %{told}")
            else:
                rows.append(f"{name} = {value:.4g} ± {float(self.constants[:, k].std()):.2g} over the sets")
        rows += [f"{note.number} was {note.fitted:.4g}, rounded" for note in self.rounded]
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
        if self.formula is not None:
            return self.formula.text
        best = min(self.front, key=lambda row: row.error, default=None)
        near = "" if best is None else f"; the nearest leaves {100 * best.error / self.scale:.2g} %: {best.text}"
        return f"no formula of size <= {self.max_size} within {100 * self.tolerance:g} %{near}"

    def __str__(self) -> str:
        table = [f"{row.size:4d}  {row.error:9.3g}  {row.text}" for row in self.front]
        return "\n".join([str(self.formula or self.answer), f"({self.rule})", "size      error  formula", *table])

    def _repr_html_(self) -> str:
        rows = [(f"size {row.size}", f"{row.text}  (error {row.error:.3g})") for row in self.front]
        return html_table("Formula", [("chosen", self.answer), ("rule", self.rule), *rows])

    def plot(self) -> Figure:
        """Error against size, the chosen formula marked."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        draw_front(axes, self)
        return figure


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
