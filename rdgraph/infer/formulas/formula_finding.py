"""`find_formula`: a short formula of the language for a function that was sampled; and the answer of the search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.infer.fit.observations import check_seed
from rdgraph.infer.formulas.constant_fits import (
    Archive,
    Candidate,
    Rounding,
    Target,
    covariance,
    polished,
    rounded,
    samples,
    simple_within,
)
from rdgraph.infer.formulas.formula_search import (
    Breeder,
    Effort,
    Gene,
    GeneticSearch,
    joined_sum,
    search_library,
    search_shapes,
    signs_moved,
    split_sum,
)
from rdgraph.infer.formulas.prefix_terms import Word, evaluate, to_text
from rdgraph.infer.formulas.slopes_and_inverses import FUNCTIONS_USED, SLOPES
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

    word: Word = field(repr=False)
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
    return LetteredFormula(word, to_text(word, written), names, signs)


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
        return to_text(self.lettered.word, [f"{value:.{digits}g}" for value in self.constants[number]])

    def __call__(self, x: Any) -> Array:
        """The values at x: (sets, points), or (points,) where there is one set."""
        points = np.asarray(x, dtype=float)
        found = evaluate(self.lettered.word, self.constants, points.reshape(-1))
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
        """The formula, or that there is none; `each` names what every set belongs to, such as a trial."""
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


# ---------------------------------------------------------------------- formula finding
#: Differences of Schwarz's criterion below this say little (Kass and Raftery 1995, Section 3.2: 2 to 6 is positive).
LITTLE = 6.0
#: What a unit of size costs in the criterion: twice the logarithm of a prior that makes every unit four times less
#: likely. There are so many formulas of a size that some large ones fit noise well.
UNIT_COST = 2 * float(np.log(4))
#: The 95 % quantile of chi squared with one degree of freedom, in which a constant may be moved.
_RISE = 3.841
_LEVEL = 0.95


def find_formula(
    x: Any,
    y: Any,
    *,
    weights: Any = None,
    noise: float | None = None,
    tolerance: float = 0.01,
    max_size: int = 24,
    functions: Sequence[str] = FUNCTIONS_USED,
    nested: bool = False,
    taken: Sequence[str] = ("alpha",),
    effort: Effort | None = None,
    seed: int = 0,
) -> FormulaSearch:
    """A short formula for samples of a function, by sparse regression and a genetic search.

    Size counts signs: a letter, a number or an operation 1, a division, a power, a function or a fitted constant 2.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        x: where the function was sampled, (points,) or (sets, points).
        y: its values; several sets have the formula in common and constants of their own. Or a function of x.
        weights: of the squared errors, such as the density with which points are met.
        noise: the standard deviation of the values, where they are noisy. Then the smallest formula is chosen whose
            criterion, squares/noise^2 + constants*log(samples) + 2*log(4)*size, is at most 6 above the lowest:
            Schwarz's, with a prior in which every further unit of size is four times less likely.
        tolerance: without noise, the smallest formula is chosen whose root mean square error is at most this share of
            the root mean square of the values.
        max_size: of a formula.
        functions: of the language that may occur.
        nested: whether functions of functions may occur; they fit much and say little.
        taken: letters that the constants may not be called by.
        effort: how many sums in how many generations are bred.
        seed: of the search; the same seed finds the same.

    Returns:
        The formula, or None where there is none within the tolerance, and the front of error against size.

    Raises:
        InvalidArgument: samples that are not finite, or do not fit together.
        UnknownName: a function that formulas are not made of.

    >>> import numpy as np, rdgraph as rd
    >>> x = np.linspace(-1.5, 1.5, 60)
    >>> y = 1.3*x*(1 - x**2) + 0.01*np.random.default_rng(0).standard_normal(60)
    >>> found = rd.infer.find_formula(x, y, noise=0.01, functions=[])
    >>> found.formula.text
    'beta*(H - H**3)'
    """
    values = y(np.asarray(x, dtype=float)) if callable(y) else y
    target = samples(x, values, weights=weights, noise=noise)
    check_search(functions, max_size, seed, tolerance=tolerance)
    archive = searched(target, functions, max_size, tolerance, effort or Effort(), seed, nested=nested)
    return chosen(target, archive, tolerance, taken)


def check_search(functions: Sequence[str], max_size: int, seed: int, **positive: float) -> None:
    """Refuse functions that formulas are not made of, sizes below one, no seeds, and numbers that are not positive."""
    check_seed(seed)
    for name in functions:
        if name not in SLOPES:
            raise UnknownName("function of formulas", name, SLOPES)
    if max_size < 1:
        raise InvalidArgument(f"expected max_size >= 1, got {max_size}")
    for word, value in positive.items():
        if not value > 0:
            raise InvalidArgument(f"expected {word} > 0, got {value}")


def searched(
    target: Target,
    functions: Sequence[str],
    max_size: int,
    tolerance: float,
    effort: Effort,
    seed: int,
    *,
    nested: bool,
) -> Archive:
    """Search the best formulas of every size for a target; returns the archive of them."""
    archive = Archive(max_size)
    if not np.any(target.y):
        archive.add(Candidate(("0",), np.zeros((target.sets, 0)), 0.0))
        return archive
    search_library(target, functions, archive)
    search_shapes(target, functions, archive)
    floor = target.noise or tolerance * target.scale
    breeder = Breeder(functions, target.sets, np.random.default_rng(seed), nested)
    GeneticSearch(target, archive, breeder, effort, floor).run()
    return finished(target, archive)


def finished(target: Target, archive: Archive) -> Archive:
    """The same formulas, polished to their ends and spelled in one way."""
    found = Archive(archive.max_size, archive.keep)
    for candidate in archive:
        spelled = candidate if candidate.word == ("0",) else _spelled(candidate)
        end = polished(target, spelled.word, spelled.constants, 60)
        found.add(Candidate(spelled.word, end.constants, end.total))
    return found


def _spelled(candidate: Candidate) -> Candidate:
    """Terms in the one spelling, the largest positive factor first."""
    parts, constants = [], candidate.constants
    for gene in split_sum(candidate):
        word, factor, inner = signs_moved(gene.plain.word, constants[:, 0], gene.plain.constants)
        parts.append((factor, Gene(word, inner)))
        constants = constants[:, 1 + gene.constants.shape[1] :]
    parts.sort(key=lambda part: (not (part[0] > 0).all(), len(part[1].word)))
    return joined_sum([gene for _, gene in parts], np.stack([factor for factor, _ in parts], 1), candidate.squares)


def chosen(target: Target, archive: Archive, tolerance: float, taken: Sequence[str]) -> FormulaSearch:
    """The formula that the rule takes from the front, its constants rounded where they may be."""
    front = archive.front()
    criterion = _criterion(target, tolerance)
    scores = [criterion(candidate) for candidate in front]
    rows = tuple(_row(target, c, score, taken) for c, score in zip(front, scores, strict=True))
    border = min(scores) + LITTLE if target.noise else 1.0
    best = next((c for c, score in zip(front, scores, strict=True) if score <= border), None)
    formula = None if best is None else _formula(target, best, tolerance, taken)
    return FormulaSearch(formula, rows, rule_words(target.noise, tolerance), archive.max_size, tolerance, target.scale)


def _row(target: Target, candidate: Candidate, score: float, taken: Sequence[str]) -> FrontRow:
    """A row of the front: numbers where there is one set, else letters with their ranges over the sets."""
    error = float(np.sqrt(candidate.squares / target.count))
    if target.sets == 1:
        text = to_text(candidate.word, [f"{value:.4g}" for value in candidate.constants[0]])
        return FrontRow(candidate.size, error, candidate.parameters, text, score)
    letters = lettered(candidate.word, candidate.constants, taken, numbered=True)
    ranges = letters.ranges(candidate.constants)
    return FrontRow(candidate.size, error, candidate.parameters, letters.text, score, ranges)


def rule_words(noise: float | None, tolerance: float) -> str:
    """The rule of the choice in words."""
    if noise is None:
        return f"the smallest formula whose root mean square error is at most {100 * tolerance:g} % of the values'"
    return f"the smallest formula whose criterion is at most {LITTLE:g} above the lowest"


def _criterion(target: Target, tolerance: float) -> Callable[[Candidate], float]:
    if target.noise is None:
        return lambda c: float(np.sqrt(c.squares / target.count)) / (tolerance * target.scale)
    variance, weight = target.noise**2, float(np.log(target.count))
    return lambda c: c.squares / variance + c.parameters * weight + UNIT_COST * c.size


def _formula(target: Target, best: Candidate, tolerance: float, taken: Sequence[str]) -> Formula:
    if target.noise is None:
        most, rise = target.count * (tolerance * target.scale) ** 2, np.inf
    else:
        most, rise = np.inf, _RISE * target.noise**2 * target.sets
    simple, notes = rounded(target, best, most, rise)
    return Formula(
        lettered=lettered(simple.word, simple.constants, taken),
        constants=simple.constants,
        intervals=intervals_of(target, simple),
        level=_LEVEL,
        size=simple.size,
        error=float(np.sqrt(simple.squares / target.count)),
        relative_error=float(np.sqrt(simple.squares / target.count)) / target.scale,
        rounded=tuple(notes),
    )


def intervals_of(target: Target, candidate: Candidate) -> Array:
    """Ends (sets, count, 2) by the slopes at the minimum; the noise is what is given, else what the formula leaves."""
    from scipy.stats import norm, t

    freedom = max(target.count - candidate.parameters, 1)
    sigma = target.noise or np.sqrt(candidate.squares / freedom)
    reach = norm.ppf(0.5 + _LEVEL / 2) if target.noise else t.ppf(0.5 + _LEVEL / 2, freedom)
    if not candidate.constants.size:
        return np.zeros((*candidate.constants.shape, 2))
    spread = np.sqrt(np.diagonal(covariance(target, candidate.word, candidate.constants), axis1=1, axis2=2))
    half = reach * sigma * spread
    return np.stack([candidate.constants - half, candidate.constants + half], -1)
