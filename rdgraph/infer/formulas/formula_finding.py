"""`find_formula`: a short formula for a sampled function, and the answer of the search."""

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

# ---------------------------------------------------------------------- named constants
# Names for the constants of a formula, signs written out, and the equation that contains it.

Array = np.ndarray
#: The constants get these names in this order; names used in the equation are skipped.
LETTERS = tuple(name for name in USUAL_COEFFICIENTS if name not in ("alpha", "epsilon"))


@dataclass(frozen=True)
class LetteredFormula:
    """A formula with named constants: its text, and for every constant its name and the sign written before it.

    `signs` are 1 or -1 where the named value is positive, and 0 where it may have either sign.
    """

    word: Word = field(repr=False)
    text: str
    names: tuple[str, ...]
    signs: tuple[int, ...]

    @property
    def statements(self) -> list[str]:
        """The declarations that the formula needs after `where`."""
        return [f"{name} real" for name, sign in zip(self.names, self.signs, strict=True) if not sign]

    def values(self, constants: Array) -> dict[str, float]:
        """The values by name for constants (count,)."""
        entries = zip(self.names, self.signs, constants, strict=True)
        return {name: float(value) * (sign or 1) for name, sign, value in entries}

    def constants(self, values: Mapping[str, float]) -> Array:
        """The constants (count,) for values by name."""
        return np.array([values[name] * (sign or 1) for name, sign in zip(self.names, self.signs, strict=True)])

    def ranges(self, constants: Array) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each constant by name, for constants (sets, count).

        >>> lettered(("*", "c", "x"), np.array([[-2.0], [-3.0]]), ["alpha"]).ranges(np.array([[-2.0], [-3.0]]))
        {'beta': (2.0, 3.0)}
        """
        values = constants * np.array([sign or 1 for sign in self.signs])
        return {
            name: (float(column.min()), float(column.max())) for name, column in zip(self.names, values.T, strict=True)
        }

    def at(self, constants: Array, x: Any) -> Array:
        """The values at x for constants (sets, count): (sets, points), or of the shape of x where there is one set."""
        points = np.asarray(x, dtype=float)
        values = evaluate(self.word, constants, points.reshape(-1))
        return values[0].reshape(points.shape) if len(values) == 1 else values

    def within(self, equation: str, function: str) -> str:
        """The equation with the formula declared as its function.

        >>> lettered(("*", "c", "x"), np.array([[2.0]]), ["alpha"]).within("-alpha*L@H + phi(H)", "phi")
        '-alpha*L@H + phi(H) where phi = beta*H'
        """
        body = self.text if "H" in self.text else f"({self.text})*H**0"
        return with_function(equation, function, body, self.statements)


def lettered(word: Word, constants: Array, taken: Iterable[str], *, numbered: bool = False) -> LetteredFormula:
    """The formula with names for its constants (sets, count); a sign shared by all sets is written out.

    Raises ValueError where the names do not suffice, unless `numbered` adds c1, c2 and so on.

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
    """Ranges of named values in words.

    >>> range_words({"beta": (-0.25, 1.5), "gamma": (2.0, 2.0)})
    'beta from -0.25 to 1.5, gamma = 2'
    """
    return ", ".join(f"{name} {_span(*ends, digits)}" for name, ends in ranges.items())


def _span(low: float, high: float, digits: int) -> str:
    first, last = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return f"= {first}" if first == last else f"from {first} to {last}"


def with_function(equation: str, name: str, body: str, statements: Sequence[str] = ()) -> str:
    """The equation with its function declared after `where`, replacing an earlier declaration of it.

    >>> with_function("-alpha*L@H + phi(H) where alpha real, phi learned knots=8", "phi", "H**2")
    '-alpha*L@H + phi(H) where alpha real, phi = H**2'
    """
    line, _, clause = equation.partition(" where ")
    others = [part.strip() for part in clause.split(",") if part.split() and part.split()[0] != name]
    return f"{line.rstrip()} where {', '.join([*others, f'{name} = {body}', *statements])}"


# ---------------------------------------------------------------------- found formula
@dataclass(frozen=True)
class FrontRow:
    """The best formula of a size: its error, how many numbers were fitted, its text, and its score.

    For one set the text contains the numbers. For several sets, each with its constants, the text names the constants,
    and `ranges` has the smallest and the largest value of each.
    """

    size: int
    error: float
    parameters: int
    text: str
    score: float
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)

    @property
    def line(self) -> str:
        """The text, with the ranges of its constants where it names any."""
        return f"{self.text}, {range_words(self.ranges)}" if self.ranges else self.text


@dataclass(frozen=True)
class Formula:
    """A formula of the language: `text` with named constants, whose values are `constants` (sets, count).

    `intervals` (sets, count, 2) are linear ones at `level`; `rounded` lists the constants that were rounded to simple
    numbers.
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
        """The values by name of one set."""
        return self.lettered.values(self.constants[number])

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each named constant over the sets."""
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
        return self.lettered.at(self.constants, x)

    def __str__(self) -> str:
        rows = [self.text]
        for k, (name, sign) in enumerate(zip(self.names, self.lettered.signs, strict=True)):
            if len(self.constants) == 1:
                value = float(self.constants[0, k]) * (sign or 1)
                low, high = sorted((sign or 1) * self.intervals[0, k])
                near = simple_within(low, high)
                note_text = f", which contains {near}" if near else ""
                rows.append(f"{name} = {value:.4g}  [{low:.4g}, {high:.4g}] at {100 * self.level:g} %{note_text}")
            else:
                rows.append(f"{range_words({name: self.ranges[name]})} over the sets")
        rows += [f"{note.number} was {note.was}, rounded" for note in self.rounded]
        return "\n".join(rows)


@dataclass(frozen=True)
class FormulaSearch:
    """The result of a search: a formula, or None if none is good enough, and `front` with the best of each size."""

    formula: Formula | None
    front: tuple[FrontRow, ...]
    rule: str
    max_size: int
    tolerance: float
    scale: float

    @property
    def answer(self) -> str:
        """The formula, or a sentence that there is none."""
        return self.answer_for("set")

    def answer_for(self, each: str) -> str:
        """The formula, or a sentence that there is none; `each` names what a set is, such as a trial."""
        if self.formula is not None:
            return self.formula.text
        best = min(self.front, key=lambda row: row.error, default=None)
        near = ""
        if best is not None:
            suffix = f" with constants of every {each}" if best.ranges else ""
            near = f"; the nearest leaves {100 * best.error / self.scale:.2g} %{suffix}: {best.line}"
        return f"no formula of size <= {self.max_size} within {100 * self.tolerance:g} %{near}"

    def __str__(self) -> str:
        table = [f"{row.size:4d}  {row.error:9.3g}  {row.line}" for row in self.front]
        suffix = ", with constants of every set" if any(row.ranges for row in self.front) else ""
        head = f"size      error  formula{suffix}"
        return "\n".join([str(self.formula or self.answer), f"({self.rule})", head, *table])

    def _repr_html_(self) -> str:
        notes = ["", " with constants of every set"]
        rows = [(f"size {r.size}", f"{r.line}  (error {r.error:.3g}{notes[bool(r.ranges)]})") for r in self.front]
        return html_table("Formula", [("chosen", self.answer), ("rule", self.rule), *rows])

    def plot(self) -> Figure:
        """Error against size, the chosen formula marked."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        draw_front(axes, self)
        return figure


def draw_front(axes: Any, search: FormulaSearch) -> None:
    """Draw the front as steps with a dot for each formula; the chosen one is filled."""
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
#: The cost of a unit of size in the criterion: twice the logarithm of a prior that makes every unit four times less
#: likely. Among many large formulas some fit noise well.
UNIT_COST = 2 * float(np.log(4))
#: The 95 % quantile of chi squared with one degree of freedom, by which rounding a constant may raise the squares.
_RISE = 3.841
_LEVEL = 0.95


def complexity(size: int, constants: int, count: float) -> float:
    """What a formula of a size with fitted constants costs in the criterion, for `count` observed numbers."""
    return constants * float(np.log(count)) + UNIT_COST * size


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
        y: its values; several sets share the formula but not its constants. Or a function of x.
        weights: of the squared errors, such as the density of the points.
        noise: the standard deviation of the values, where they are noisy. Then the smallest formula is chosen whose
            criterion, squares/noise^2 + constants*log(samples) + 2*log(4)*size, is at most 6 above the lowest:
            Schwarz's, with a prior in which every further unit of size is four times less likely.
        tolerance: without noise, the smallest formula is chosen whose root mean square error is at most this share of
            the root mean square of the values.
        max_size: of a formula.
        functions: of the language that may occur.
        nested: whether functions of functions may occur; they fit almost anything.
        taken: names that the constants must not have.
        effort: the size of the population and the number of generations.
        seed: of the search; the same seed gives the same result.

    Returns:
        The formula, or None where there is none within the tolerance, and the best formula of each size.

    Raises:
        InvalidArgument: samples that are not finite, or whose shapes do not match.
        UnknownName: a function that formulas cannot contain.

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
    """Raise for unknown functions, sizes below one, invalid seeds, and numbers that are not positive."""
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
    """The same formulas, polished to convergence and in canonical spelling."""
    polished_archive = Archive(archive.max_size, archive.keep)
    for candidate in archive:
        spelled = candidate if candidate.word == ("0",) else _spelled(candidate)
        end = polished(target, spelled.word, spelled.constants, 60)
        polished_archive.add(Candidate(spelled.word, end.constants, end.total))
    return polished_archive


def _spelled(candidate: Candidate) -> Candidate:
    """The formula in canonical spelling, terms with positive factors first."""
    parts, constants = [], candidate.constants
    for gene in split_sum(candidate):
        word, factor, inner = signs_moved(gene.plain.word, constants[:, 0], gene.plain.constants)
        parts.append((factor, Gene(word, inner)))
        constants = constants[:, 1 + gene.constants.shape[1] :]
    parts.sort(key=lambda part: (not (part[0] > 0).all(), len(part[1].word)))
    return joined_sum([gene for _, gene in parts], np.stack([factor for factor, _ in parts], 1), candidate.squares)


def chosen(target: Target, archive: Archive, tolerance: float, taken: Sequence[str]) -> FormulaSearch:
    """The formula that the rule chooses from the front, its constants rounded where the fit allows."""
    front = archive.front()
    criterion = _criterion(target, tolerance)
    scores = [criterion(candidate) for candidate in front]
    rows = tuple(_row(target, c, score, taken) for c, score in zip(front, scores, strict=True))
    border = min(scores) + LITTLE if target.noise else 1.0
    best = next((c for c, score in zip(front, scores, strict=True) if score <= border), None)
    formula = None if best is None else _formula(target, best, tolerance, taken)
    return FormulaSearch(formula, rows, rule_words(target.noise, tolerance), archive.max_size, tolerance, target.scale)


def _row(target: Target, candidate: Candidate, score: float, taken: Sequence[str]) -> FrontRow:
    """A row of the front: with numbers for one set, else with named constants and their ranges over the sets."""
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
    variance, count = target.noise**2, target.count
    return lambda c: c.squares / variance + complexity(c.size, c.parameters, count)


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
    """Ends (sets, count, 2) by the derivatives at the minimum; the noise is given, or estimated from the residuals."""
    from scipy.stats import norm, t

    freedom = max(target.count - candidate.parameters, 1)
    sigma = target.noise or np.sqrt(candidate.squares / freedom)
    reach = norm.ppf(0.5 + _LEVEL / 2) if target.noise else t.ppf(0.5 + _LEVEL / 2, freedom)
    if not candidate.constants.size:
        return np.zeros((*candidate.constants.shape, 2))
    spread = np.sqrt(np.diagonal(covariance(target, candidate.word, candidate.constants), axis1=1, axis2=2))
    half = reach * sigma * spread
    return np.stack([candidate.constants - half, candidate.constants + half], -1)
