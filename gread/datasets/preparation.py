"""`Preparation`: how the columns of a table become features; it travels with a network, to other graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.wording import counted, listed

#: What is done about a missing value: refuse the file, or take the mean of the column; a missing word is no category.
ERROR, MEAN = "error", "mean"
MISSING = (ERROR, MEAN)
#: Words for a missing value, in whatever capitals.
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none"})
#: A column of more different words than this is no column of categories.
MOST_CATEGORIES = 200


def is_missing(text: str) -> bool:
    """Whether a cell stands for a missing value.

    >>> is_missing("NA"), is_missing("0")
    (True, False)
    """
    return text.casefold() in MISSING_WORDS


@dataclass(frozen=True)
class FeatureChoices:
    """Which columns are features, and what becomes of them.

    `features` names them, by default all columns without another task; of these, `categories` become one column per
    word, and so do columns without a number, where `finds_categories`. `missing` is one of `MISSING`. `standardise`
    makes mean 0 and deviation 1 of every column of numbers; both are those of all nodes of the file, since all of them
    take part in the diffusion, and labels play no part in it.
    """

    features: tuple[str, ...] | None = None
    categories: tuple[str, ...] = ()
    missing: str = ERROR
    standardise: bool = False
    finds_categories: bool = True

    @property
    def needed(self) -> dict[str, str]:
        """The columns that a table must have, with the remedy where it lacks one."""
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
    """Columns as they were read: `numbers` (n, k) with nan where one is missing, `words` (n,) with None.

    `names` has all of them in the order of the file.
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
    """One column: of numbers, with what takes the place of a missing one and what numbers are counted from and in; or
    of categories, in the order of their features."""

    name: str
    categories: tuple[str, ...] | None = None
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that it becomes."""
        return (self.name,) if self.categories is None else tuple(f"{self.name}={word}" for word in self.categories)


@dataclass(frozen=True)
class Preparation:
    """How columns become features (n, f), fitted on one table and applied to others.

    >>> table = FeatureColumns(("age", "colour"), np.array([[1.0], [3.0]]), {"colour": ["red", "blue"]})
    >>> made = Preparation.fit(table, FeatureChoices(standardise=True))
    >>> made.feature_names, made.apply(table).tolist()
    (('age', 'colour=blue', 'colour=red'), [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    """

    columns: tuple[Column, ...]
    standardise: bool = False
    missing: str = ERROR

    @classmethod
    def fit(cls, table: FeatureColumns, choices: FeatureChoices) -> Preparation:
        """Find means, deviations and categories."""
        plain = [name for name in table.names if name not in table.words]
        means, deviations = np.zeros(len(plain)), np.ones(len(plain))
        if choices.standardise or choices.missing == MEAN:
            means, deviations = _statistics(table.numbers, plain)
        made = {n: Column(n, None, m, d) for n, m, d in zip(plain, means.tolist(), deviations.tolist(), strict=True)}
        made |= {name: Column(name, _categories(name, words)) for name, words in table.words.items()}
        return cls(tuple(made[name] for name in table.names), choices.standardise, choices.missing)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.features)

    @property
    def choices(self) -> FeatureChoices:
        """How another table is to be read, so that this can be applied to it."""
        words = tuple(column.name for column in self.columns if column.categories is not None)
        names = tuple(column.name for column in self.columns)
        return FeatureChoices(names, words, self.missing, self.standardise, finds_categories=False)

    def apply(self, table: FeatureColumns) -> np.ndarray | None:
        """Features (n, f) of a table with these columns; None where there is no column. Nothing is copied in vain."""
        if tuple(column.name for column in self.columns) != table.names:
            raise InvalidArgument(
                f"expected the columns {listed([column.name for column in self.columns])}, got {listed(table.names)}"
            )
        if not self.columns:
            return None
        numbers = self._prepared(table.numbers, [c for c in self.columns if c.categories is None])
        if not table.words:
            return numbers
        place, parts = 0, []
        for column in self.columns:
            if column.categories is None:
                parts.append(numbers[:, place : place + 1])
                place += 1
            else:
                parts.append(_one_hot(table.words[column.name], column.categories))
        return np.concatenate(parts, axis=1)

    def _prepared(self, numbers: np.ndarray, columns: Sequence[Column]) -> np.ndarray:
        means, deviations = (np.array([getattr(c, part) for c in columns]) for part in ("mean", "deviation"))
        if self.missing == MEAN and np.isnan(numbers).any():
            numbers = np.where(np.isnan(numbers), means, numbers)
        if self.standardise:
            numbers = (numbers - means) / deviations
        return numbers if numbers.dtype.kind in "biu" else numbers.astype(np.float32, copy=False)

    def sentences(self) -> tuple[str, ...]:
        """What was done to the features, a sentence each."""
        words = [c for c in self.columns if c.categories is not None]
        told = [f"One feature per category: {', '.join(f'{c.name} ({len(c.categories or ())})' for c in words)}."]
        return tuple(
            text
            for holds, text in (
                (bool(words), told[0]),
                (self.standardise, "Numbers are standardised: mean 0 and deviation 1 over all nodes of the file."),
                (self.missing == MEAN, "A missing number is the mean of its column, a missing word no category."),
            )
            if holds
        )

    def unseen(self, table: FeatureColumns) -> tuple[str, ...]:
        """A sentence for each column with categories that were not in the table that was fitted; they count as none.

        >>> made = Preparation.fit(FeatureColumns(("town",), np.empty((1, 0)), {"town": ["Ulm"]}), FeatureChoices())
        >>> made.unseen(FeatureColumns(("town",), np.empty((2, 0)), {"town": ["Rome", "Rome"]}))
        ("Column 'town' has categories that the fitted table had not: 'Rome' (2 rows), read as none of its features.",)
        """
        found = []
        for column in self.columns:
            known = {None, *(column.categories or ())}
            counts = Counter(word for word in table.words.get(column.name, ()) if word not in known)
            shown = [f"{word!r} ({counted(count, 'row')})" for word, count in counts.most_common()]
            if shown:
                found.append(
                    f"Column {column.name!r} has categories that the fitted table had not: {listed(shown)}, read as "
                    "none of its features."
                )
        return tuple(found)

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
        made = cls(columns, bool(words["standardise"]), str(words["missing"]))
        if made.missing not in MISSING or not all(c.deviation > 0 and np.isfinite(c.mean) for c in columns):
            raise InvalidArgument("expected finite means and deviations > 0 of the columns, got others")
        return made


def _statistics(numbers: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of columns over what is not missing; a constant column keeps its size."""
    wide = np.asarray(numbers, dtype=np.float64)
    known = ~np.isnan(wide)
    counts = known.sum(0)
    if len(wide) and (counts == 0).any():
        raise InvalidArgument(
            f"expected a number in column {names[int((counts == 0).argmax())]!r}, got none; leave it out"
        )
    safe = np.maximum(counts, 1)
    means = np.where(known, wide, 0.0).sum(0) / safe
    deviations = np.sqrt(np.where(known, (wide - means) ** 2, 0.0).sum(0) / safe)
    return means, np.where(deviations > 1e-12 * np.maximum(1.0, np.abs(means)), deviations, 1.0)


def _categories(name: str, words: Sequence[str | None]) -> tuple[str, ...]:
    found = sorted({word for word in words if word is not None})
    if len(found) > MOST_CATEGORIES:
        raise InvalidArgument(
            f"expected at most {MOST_CATEGORIES} categories in column {name!r}, got {len(found)} different words; name "
            "the features without it (features=)"
        )
    return tuple(found)


def _one_hot(words: Sequence[str | None], categories: Sequence[str]) -> np.ndarray:
    """(n, categories); a word that is missing, or unknown to the table that was fitted, is a row of zeros."""
    place = {word: k for k, word in enumerate(categories)}
    made = np.zeros((len(words), len(categories)), dtype=np.float32)
    for row, word in enumerate(words):
        if word in place:
            made[row, place[word]] = 1.0
    return made
