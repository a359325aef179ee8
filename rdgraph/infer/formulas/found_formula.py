"""The answer of a search for a formula: the formula, and the front of error against size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.infer.formulas.prefix_terms import Word, evaluate, to_text
from rdgraph.infer.formulas.simple_numbers import Rounding, simple_within
from rdgraph.language.reader import USUAL_COEFFICIENTS
from rdgraph.wording import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# ---------------------------------------------------------------------- formula letters
# Letters for the constants of a formula, signs written out, and the equation in which it stands.

Array = np.ndarray
#: Factors are called by these in their order; what the equation uses already is left out.
LETTERS = tuple(name for name in USUAL_COEFFICIENTS if name not in ("alpha", "epsilon"))


@dataclass(frozen=True)
class LetteredFormula:
    """A formula with letters: its text, and for every constant its letter and the sign that is written before it.

    `signs` are 1 or -1 where the letter is positive, and 0 where it may have either sign.
    """

    text: str
    names: tuple[str, ...]
    signs: tuple[int, ...]

    @property
    def statements(self) -> list[str]:
        """What must be declared after `where`."""
        return [f"{name} real" for name, sign in zip(self.names, self.signs, strict=True) if not sign]

    def values(self, constants: Array) -> dict[str, float]:
        """The letters for constants (count,)."""
        found = zip(self.names, self.signs, constants, strict=True)
        return {name: float(value) * (sign or 1) for name, sign, value in found}

    def constants(self, values: Mapping[str, float]) -> Array:
        """The constants (count,) for values of the letters, the other way."""
        return np.array([values[name] * (sign or 1) for name, sign in zip(self.names, self.signs, strict=True)])

    def ranges(self, constants: Array) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each letter, for constants (sets, count).

        >>> lettered(("*", "c", "x"), np.array([[-2.0], [-3.0]]), ["alpha"]).ranges(np.array([[-2.0], [-3.0]]))
        {'beta': (2.0, 3.0)}
        """
        values = constants * np.array([sign or 1 for sign in self.signs])
        return {
            name: (float(column.min()), float(column.max())) for name, column in zip(self.names, values.T, strict=True)
        }

    def within(self, equation: str, function: str) -> str:
        """The equation with the formula declared as its function.

        >>> lettered(("*", "c", "x"), np.array([[2.0]]), ["alpha"]).within("-alpha*L@H + phi(H)", "phi")
        '-alpha*L@H + phi(H) where phi = beta*H'
        """
        body = self.text if "H" in self.text else f"({self.text})*H**0"
        return with_function(equation, function, body, self.statements)


def lettered(word: Word, constants: Array, taken: Iterable[str], *, numbered: bool = False) -> LetteredFormula:
    """Letters for the constants (sets, count); a constant of one sign in all sets is written with it.

    Where the letters of the language do not suffice, it is an error, or c1, c2 and so on follow if `numbered`.

    >>> lettered(("+", "*", "c", "x", "*", "c", "cube", "x"), np.array([[1.0, -2.0]]), ["alpha"]).text
    'beta*H - gamma*H**3'
    """
    used = set(taken)
    names = tuple(name for name in LETTERS if name not in used)[: constants.shape[1]]
    if numbered:
        names += tuple(f"c{k}" for k in range(1, constants.shape[1] - len(names) + 1))
    if len(names) < constants.shape[1]:
        raise ValueError(f"expected at most {len(names)} constants, got {constants.shape[1]}")
    signs = tuple(1 if (column > 0).all() else -1 if (column < 0).all() else 0 for column in constants.T)
    written = [f"-{name}" if sign < 0 else name for name, sign in zip(names, signs, strict=True)]
    return LetteredFormula(to_text(word, written), names, signs)


def range_words(ranges: Mapping[str, tuple[float, float]], digits: int = 4) -> str:
    """Ranges of letters in words.

    >>> range_words({"beta": (-0.25, 1.5), "gamma": (2.0, 2.0)})
    'beta from -0.25 to 1.5, gamma = 2'
    """
    return ", ".join(f"{name} {_span(*ends, digits)}" for name, ends in ranges.items())


def _span(low: float, high: float, digits: int) -> str:
    first, last = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return f"= {first}" if first == last else f"from {first} to {last}"


def with_function(equation: str, name: str, body: str, statements: Sequence[str] = ()) -> str:
    """The equation with its function declared after `where`, in place of what was declared of it before.

    >>> with_function("-alpha*L@H + phi(H) where alpha real, phi learned knots=8", "phi", "H**2")
    '-alpha*L@H + phi(H) where alpha real, phi = H**2'
    """
    line, _, clause = equation.partition(" where ")
    kept = [part.strip() for part in clause.split(",") if part.split() and part.split()[0] != name]
    return f"{line.rstrip()} where {', '.join([*kept, f'{name} = {body}', *statements])}"


# ---------------------------------------------------------------------- found formula
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
        >>> rd.infer.find_formula(x, 2.34*x, functions=[]).formula.with_numbers()
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
