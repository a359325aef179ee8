"""Every block of the documentation runs, and prints what it shows."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.repository.test_architecture import FOLDER_ORDER

PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/index.md",
        "docs/install.md",
        "docs/language.md",
        "docs/answers.md",
        "docs/running.md",
        "docs/inverse.md",
        "docs/laboratory.md",
        "docs/data.md",
        "docs/training.md",
        "docs/large_graphs.md",
        "docs/searching.md",
        "docs/classifier.md",
        "docs/conform.md",
    )
]
PAGES += sorted(page for page in (ROOT / "docs/explanation").glob("*.md") if page.name != "index.md")


#: Pages whose examples train and fit for ten seconds each.
LONG = ("classifier.md", "inverse.md")


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow) if p.name in LONG else p for p in PAGES], ids=lambda p: p.name
)
def test_python_blocks(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, verbose=False, encoding="utf-8")
    assert failed == 0
    assert tried >= 4


@pytest.mark.slow
def test_console_blocks() -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs/command_line.md").read_text(encoding="utf-8"), re.DOTALL)
    commands = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert commands
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "rdgraph"
        run = subprocess.run(
            [sys.executable, "-m", "studies.cli.app", *words[1:]], capture_output=True, text=True, cwd=ROOT
        )
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["identifiable"] == ["alpha - beta"]


def test_map_names_every_folder() -> None:
    """The map in CONTRIBUTING has one line for every folder, and none for others; it follows the order of imports."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The map")[1].split("```")[1]
    lines = [line.split(maxsplit=1) for line in section.strip().splitlines()]
    listed = [folder.rstrip("/") for folder, _ in lines]
    assert len(listed) == len(set(listed))
    folders = {p.parent.relative_to(ROOT) for package in FOLDER_ORDER for p in (ROOT / package).glob("*/*.*")}
    present = {str(f) for f in folders if f.name != "__pycache__"} | {*FOLDER_ORDER, "tests", "docs"}
    own = {"tests/adversary", "tests/mutants", "tests/repository", "tests/docs"}
    own |= {f"docs/{name}" for name in ("tutorials", "explanation", "examples", "building")}
    assert set(listed) == present | own
    for package, order in FOLDER_ORDER.items():
        named = [folder.split("/")[1] for folder in listed if folder.startswith(f"{package}/")]
        assert [name for name in named if name in order] == [name for name in order if name in named]


def every_page() -> list[Path]:
    """Of the root and of the documentation, without those that `make docs` generates."""
    below = [ROOT / "docs" / name for name in ("", "tutorials", "explanation")]
    return [page for folder in (ROOT, *below) for page in sorted(folder.glob("*.md"))]


@pytest.mark.parametrize("page", every_page(), ids=lambda p: p.name)
def test_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), (page.name, target)


@pytest.mark.parametrize("page", every_page(), ids=lambda p: p.name)
def test_modules_and_files_that_are_named_exist(page: Path) -> None:
    """Dotted names of our packages can be imported, and paths in backticks lie in the tree."""
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"(?<![\w./])(?:rdgraph|analysis|gread|studies|tests)(?:\.[a-z_]+)+(?![\w/])", text))
    for name in {n for n in names if not n.endswith(".md")}:
        assert is_importable(name), (page.name, name)
    for path in re.findall(r"`((?:rdgraph|analysis|gread|studies|tests|docs)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), (page.name, path)


def is_importable(name: str) -> bool:
    """A module, or an attribute of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
