"""`Preparation`: how the columns of a table become features; saved with a network for use on other graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.wording import counted, listed

#: The treatment of a missing value: refuse the file, or use the mean of the column; a missing word is no category.
ERROR, MEAN = "error", "mean"
MISSING = (ERROR, MEAN)
#: Words for a missing value, case-insensitive.
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none"})
#: The most categories of a column.
MOST_CATEGORIES = 200


def is_missing(text: str) -> bool:
    """Whether a cell means a missing value.

    >>> is_missing("NA"), is_missing("0")
    (True, False)
    """
    return text.casefold() in MISSING_WORDS


@dataclass(frozen=True)
class FeatureChoices:
    """The feature columns and their treatment.

    `features` names them, by default all columns without another role; of these, `categories` become one column per
    word, and with `finds_categories` so do columns without a number. `missing` is one of `MISSING`. `standardise`
    scales every numeric column to mean 0 and standard deviation 1 over all nodes of the file, since all of them take
    part in the diffusion; labels are not used.
    """

    features: tuple[str, ...] | None = None
    categories: tuple[str, ...] = ()
    missing: str = ERROR
    standardise: bool = False
    finds_categories: bool = True

    @property
    def needed(self) -> dict[str, str]:
        """The required columns of a table, each with the remedy if it is missing."""
        choose = "name columns that it has (features=, categories=)"
        remedy = choose if self.finds_categories else "add it: the network was trained with this column"
        return dict.fromkeys((*(self.features or ()), *self.categories), remedy)

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise UnknownName("choice for missing values", self.missing, MISSING)
        outside = [name for name in self.categories if self.features is not None and name not in self.features]
        if outside:
            raise InvalidArgument(f"expected categories among the features, got {outside[0]}; add it to them")


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """Columns as read: `numbers` (n, k) with nan for missing values, `words` (n,) with None.

    `names` has all columns in the order of the file.
    """

    names: tuple[str, ...]
    numbers: np.ndarray
    words: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    @classmethod
    def of_array(cls, x: np.ndarray) -> FeatureColumns:
        """An array (n, f), whose columns are called x0, x1, ..."""
        return cls(tuple(f"x{k}" for k in range(x.shape[1])), x)


@dataclass(frozen=True)
class Column:
    """One column: numeric, with its mean and standard deviation; or categorical, in the order of its features."""

    name: str
    categories: tuple[str, ...] | None = None
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features."""
        return (self.name,) if self.categories is None else tuple(f"{self.name}={word}" for word in self.categories)


@dataclass(frozen=True)
class Preparation:
    """How columns become features (n, f), fitted on one table and applied to others.

    >>> table = FeatureColumns(("age", "colour"), np.array([[1.0], [3.0]]), {"colour": ["red", "blue"]})
    >>> fitted = Preparation.fit(table, FeatureChoices(standardise=True))
    >>> fitted.feature_names, fitted.apply(table).tolist()
    (('age', 'colour=blue', 'colour=red'), [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    """

    columns: tuple[Column, ...]
    standardise: bool = False
    missing: str = ERROR

    @classmethod
    def fit(cls, table: FeatureColumns, choices: FeatureChoices) -> Preparation:
        """Compute means, standard deviations and categories."""
        plain = [name for name in table.names if name not in table.words]
        means, deviations = np.zeros(len(plain)), np.ones(len(plain))
        if choices.standardise or choices.missing == MEAN:
            means, deviations = _statistics(table.numbers, plain)
        columns = {n: Column(n, None, m, d) for n, m, d in zip(plain, means.tolist(), deviations.tolist(), strict=True)}
        columns |= {name: Column(name, _categories(name, words)) for name, words in table.words.items()}
        return cls(tuple(columns[name] for name in table.names), choices.standardise, choices.missing)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.features)

    @property
    def choices(self) -> FeatureChoices:
        """The choices for reading another table to which this is applied."""
        words = tuple(column.name for column in self.columns if column.categories is not None)
        names = tuple(column.name for column in self.columns)
        return FeatureChoices(names, words, self.missing, self.standardise, finds_categories=False)

    def apply(self, table: FeatureColumns) -> np.ndarray | None:
        """Features (n, f) of a table with these columns; None without columns. Copies only if necessary."""
        if tuple(column.name for column in self.columns) != table.names:
            raise InvalidArgument(
                f"expected the columns {listed([column.name for column in self.columns])}, got {listed(table.names)}"
            )
        if not self.columns:
            return None
        numbers = self._prepared(table.numbers, [c for c in self.columns if c.categories is None])
        if not table.words:
            return numbers
        plain = iter(numbers.T)
        parts = [
            next(plain)[:, None] if c.categories is None else _one_hot(table.words[c.name], c.categories)
            for c in self.columns
        ]
        return np.concatenate(parts, axis=1)

    def _prepared(self, numbers: np.ndarray, columns: Sequence[Column]) -> np.ndarray:
        means, deviations = (np.array([getattr(c, part) for c in columns]) for part in ("mean", "deviation"))
        if self.missing == MEAN and np.isnan(numbers).any():
            numbers = np.where(np.isnan(numbers), means, numbers)
        if self.standardise:
            numbers = (numbers - means) / deviations
        return numbers if numbers.dtype.kind in "biu" else numbers.astype(np.float32, copy=False)

    def sentences(self) -> tuple[str, ...]:
        """Sentences on the preparation of the features."""
        words = [c for c in self.columns if c.categories is not None]
        counts = ", ".join(f"{c.name} ({len(c.categories or ())})" for c in words)
        findings = (
            (words, f"One feature per category: {counts}."),
            (self.standardise, "Numbers are standardised: mean 0 and deviation 1 over all nodes of the file."),
            (self.missing == MEAN, "Missing numbers are the mean of their column, missing words no category."),
        )
        return tuple(text for holds, text in findings if holds)

    def unseen(self, table: FeatureColumns) -> tuple[str, ...]:
        """A warning for each column with categories unknown to the fitted table, which are treated as missing.

        >>> fitted = Preparation.fit(FeatureColumns(("town",), np.empty((1, 0)), {"town": ["Ulm"]}), FeatureChoices())
        >>> fitted.unseen(FeatureColumns(("town",), np.empty((2, 0)), {"town": ["Rome", "Rome"]}))
        ("Column 'town' has categories unknown to the fitted table: 'Rome' (2 rows), treated as missing.",)
        """
        warnings = []
        for column in self.columns:
            known = {None, *(column.categories or ())}
            counts = Counter(word for word in table.words.get(column.name, ()) if word not in known)
            shown = [f"{word!r} ({counted(count, 'row')})" for word, count in counts.most_common()]
            if shown:
                warnings.append(
                    f"Column {column.name!r} has categories unknown to the fitted table: {listed(shown)}, treated as "
                    "missing."
                )
        return tuple(warnings)

    # ------------------------------------------------------------------ in files
    def to_words(self) -> dict[str, Any]:
        """The preparation as a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def from_words(cls, words: Any) -> Preparation:
        """The preparation that `to_words` described, checked."""
        columns = tuple(
            Column(
                str(c["name"]), None if c["categories"] is None else tuple(map(str, c["categories"])), float(c["mean"]),
                float(c["deviation"]),
            )
            for c in words["columns"]
        )  # fmt: skip
        preparation = cls(columns, bool(words["standardise"]), str(words["missing"]))
        if preparation.missing not in MISSING or not all(c.deviation > 0 and np.isfinite(c.mean) for c in columns):
            raise InvalidArgument("expected finite means and deviations > 0 of the columns")
        return preparation


def _statistics(numbers: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of columns without missing values; 1 for a constant column."""
    wide = np.asarray(numbers, dtype=np.float64)
    if not len(wide):
        return np.zeros(len(names)), np.ones(len(names))
    if (is_empty := np.isnan(wide).all(axis=0)).any():
        raise InvalidArgument(f"expected a number in column {names[int(is_empty.argmax())]!r}, got none; leave it out")
    means, deviations = np.nanmean(wide, axis=0), np.nanstd(wide, axis=0)
    return means, np.where(deviations > 1e-12 * np.maximum(1.0, np.abs(means)), deviations, 1.0)


def _categories(name: str, words: Sequence[str | None]) -> tuple[str, ...]:
    categories = sorted({word for word in words if word is not None})
    if len(categories) > MOST_CATEGORIES:
        raise InvalidArgument(
            f"expected at most {MOST_CATEGORIES} categories in column {name!r}, got {len(categories)} different words; "
            "name the features without it (features=)"
        )
    return tuple(categories)


def _one_hot(words: Sequence[str | None], categories: Sequence[str]) -> np.ndarray:
    """One-hot rows (n, categories); missing words, and words unknown to the fitted table, are rows of zeros."""
    position: dict[str | None, int] = {word: k for k, word in enumerate(categories)}
    chosen = np.array([position.get(word, -1) for word in words], dtype=np.int64)
    return (chosen[:, None] == np.arange(len(categories))).astype(np.float32)
