"""The cells of feature columns, row by row: numbers, words, what is missing; errors name file, line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gread.datasets.preparation import ERROR, FeatureChoices, FeatureColumns, is_missing
from rdgraph.errors import FileError

#: The largest feature float32 can hold.
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Place:
    """A file, a line and a column, for errors."""

    path: Path
    line: int
    column: str = ""

    def error(self, expected: str, got: str, remedy: str) -> FileError:
        column = f", column {self.column!r}" if self.column else ""
        return FileError(f"{self.path}, line {self.line}{column}: expected {expected}, got {got}; {remedy}")


class FeatureCells:
    """Collects the feature columns of a table, whose places in a row are given by name.

    A cell that is no finite number is remembered with its line, until all rows are there: a column without any number
    is one of categories, another is refused.
    """

    def __init__(self, path: Path, places: Mapping[str, int], choices: FeatureChoices) -> None:
        self.path, self.choices = path, choices
        self.names = tuple(places)
        self._numeric = {name: k for name, k in places.items() if name not in choices.categories}
        self._places = list(self._numeric.values())
        self._words = {name: places[name] for name in choices.categories if name in places}
        self._texts: dict[str, list[str]] = {name: [] for name in self._words}
        self._odd: dict[str, list[tuple[int, str]]] = {}
        self._rows: list[np.ndarray] = []
        self._lines: list[int] = []

    def add(self, line: int, cells: Sequence[str]) -> None:
        """The next row."""
        self._lines.append(line)
        for name, place in self._words.items():
            self._texts[name].append(cells[place])
        try:
            row = np.array([float(cells[k]) for k in self._places])
        except ValueError:
            row = np.array([np.nan])
        if not (np.abs(row) <= LARGEST).all():
            row = np.array([_number(cells[k]) for k in self._places])
            for (name, place), value in zip(self._numeric.items(), row, strict=True):
                if np.isnan(value):
                    self._odd.setdefault(name, []).append((line, cells[place]))
        self._rows.append(row.astype(np.float32))

    def columns(self) -> FeatureColumns:
        """What was read, checked."""
        words = {name: self._read_words(name, self._texts[name], self._lines) for name in self._words}
        for name, odd in self._odd.items():
            if self._is_category(odd):
                words[name] = self._read_words(name, [text for _, text in odd], self._lines)
            else:
                self._check_numbers(name, odd)
        numbers = np.stack(self._rows) if self._rows else np.empty((0, len(self._places)), dtype=np.float32)
        kept = [k for k, name in enumerate(self._numeric) if name not in words]
        return FeatureColumns(self.names, numbers if len(kept) == len(self._places) else numbers[:, kept], words)

    def _is_category(self, odd: Sequence[tuple[int, str]]) -> bool:
        """Whether every cell of a column is a word or missing, and some are words."""
        if not self.choices.finds_categories or len(odd) < len(self._lines):
            return False
        texts = [text for _, text in odd if not is_missing(text)]
        return bool(texts) and not any(_is_number(text) for text in texts)

    def _check_numbers(self, name: str, odd: Sequence[tuple[int, str]]) -> None:
        wrong = [(line, text) for line, text in odd if not is_missing(text)]
        if wrong:
            remedy = "write one, name the columns that are features (features=, --features), or the columns of "
            raise self._error(name, *wrong[0], f"{remedy}categories (categories=, --categories)")
        if self.choices.missing == ERROR:
            raise self._error(
                name, *odd[0], "write one, or take the mean of the column (missing='mean', --missing mean)"
            )

    def _read_words(self, name: str, texts: Sequence[str], lines: Sequence[int]) -> list[str | None]:
        if self.choices.missing == ERROR:
            for line, text in zip(lines, texts, strict=True):
                if is_missing(text):
                    got = repr(text) if text else "an empty cell"
                    remedy = "write one, or let it be none of them (missing='mean', --missing mean)"
                    raise Place(self.path, line, name).error("a category", got, remedy)
        return [None if is_missing(text) else text for text in texts]

    def _error(self, name: str, line: int, text: str, remedy: str) -> FileError:
        return Place(self.path, line, name).error("a finite number", repr(text) if text else "an empty cell", remedy)


def _number(text: str) -> float:
    """A number that float32 can hold, nan for anything else."""
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return value if abs(value) <= LARGEST else float("nan")


def _is_number(text: str) -> bool:
    """Whether a text spells a number, be it infinite."""
    try:
        float(text)
    except ValueError:
        return False
    return True
