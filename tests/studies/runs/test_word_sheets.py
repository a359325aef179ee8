"""The words of the studies: every text and verdict of a sheet is used by its folder, and every place can be filled."""

from __future__ import annotations

import string
import tomllib
from pathlib import Path

import pytest

from studies.runs.word_sheets import WordSheet
from tests.paths import ROOT

#: The sheets outside of the paper's tables, which have a test of their own.
SHEETS = [
    path
    for path in sorted((ROOT / "studies").glob("*/*.toml"))
    if path.parent.name != "paper" and "texts" in tomllib.loads(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.parent.name)
def test_every_word_of_a_sheet_is_used(path: Path) -> None:
    """A misspelt entry would be ignored in silence."""
    entries = WordSheet(path.parent.name, path.stem).entries
    source = "".join(file.read_text(encoding="utf-8") for file in path.parent.glob("*.py"))
    for name in (*entries["texts"], *entries.get("verdicts", {})):
        assert f'"{name}"' in source
    words = [
        *entries["texts"].values(),
        *(text for one in entries.get("verdicts", {}).values() for text in one.values()),
    ]
    for text in words:
        assert all(field is None or field for _, field, _, _ in string.Formatter().parse(text))


def test_the_studies_have_sheets() -> None:
    assert {path.parent.name for path in SHEETS} >= {"grid", "turing", "oversmoothing", "search"}


def test_a_missing_place_is_an_error() -> None:
    with pytest.raises(KeyError, match="case"):
        WordSheet("turing").text("animation")
