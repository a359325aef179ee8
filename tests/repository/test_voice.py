"""The words of the project: none that a reader would have to translate, and docstrings that name their subject."""

from __future__ import annotations

import importlib
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors import DOORS
from tests.paths import ROOT

WORDS = (
    "told", "retell", "retold", "beside", "so many", "anew", "hears", "that there is not", "that there are not",
    "for all that", "of one's own", "manner", "manners", "whatever",
)  # fmt: skip
PATTERN = re.compile(r"\b(" + "|".join(WORDS) + r")\b", re.IGNORECASE)

#: Where one of these words is a name: (the file's beginning, the word).
ALLOWED = {
    ("gread/settings/line_settings.py", "beside"),  # a setting of networks around an equation
    ("docs/reference/models.md", "beside"),
    ("gread/data/", "beside"),
    ("studies/runs/", "retold"),  # a key of environment.json
    ("studies/results/", "beside"),
}
SUFFIXES = {".py", ".md", ".toml", ".html", ".js", ".css"}
FOLDERS = ("rdgraph", "analysis", "gread", "studies", "docs")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every line that a person reads: all of a page, comments and strings of a program."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from enumerate(token.string.splitlines(), token.start[0])


def places(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return [
        f"{name}:{line}: {match[0]}"
        for line, text in texts(path)
        for match in PATTERN.finditer(re.sub(r"\s+", " ", text))
        if not any(name.startswith(file) and match[0].lower() == word for file, word in ALLOWED)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_word_needs_translating(folder: str) -> None:
    files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
    assert files
    skipped = {"generated", "__pycache__"}
    assert [place for path in files if not skipped & set(path.parts) for place in places(path)] == []


def test_no_word_of_the_pages_needs_translating() -> None:
    assert [place for page in PAGES for place in places(ROOT / page)] == []


def test_the_words_are_seen_in_texts_and_not_in_names(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('told = 1\n"""What is told.\n\nAnew."""\n# so   many\nprint(f"hears {told}")\n')
    assert [place.split(": ", 1)[1] for place in places(file)] == [
        "told",
        "Anew",
        "so   many".replace("   ", " "),
        "hears",
        "told",
    ]


# ---------------------------------------------------------------------- first lines

#: What a first line begins with that does not say what it is about.
WITHOUT_SUBJECT = re.compile(
    r"(It|Its|They|Those|These|This|That|The same|What|Whether it)\b(?! (system|graph|is|a|an|the)\b)"
)


@pytest.mark.parametrize("door", DOORS)
def test_first_lines_say_what_they_are_about(door: str) -> None:
    """`The page as Markdown.` does not: a first line has at least four words, and names its subject."""
    module = importlib.import_module(door)
    lacking = []
    for name in module.__all__:
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        first = (inspect.getdoc(value) or "").split("\n")[0]
        if len(first.split()) < 4 or WITHOUT_SUBJECT.match(first):
            lacking.append((name, first))
    assert lacking == []
