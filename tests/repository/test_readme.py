"""Every block of the documentation runs, and prints what it shows."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from docs.building.made_pages import MADE_PAGES
from docs.building.reference_pages import ALL_NAMES, COMMANDS
from tests.paths import ROOT
from tests.repository.test_architecture import FOLDER_ORDER
from tests.warm_processes import run_warm

PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/index.md",
        "docs/start/install.md",
        "docs/guides/language.md",
        "docs/mathematics/answers.md",
        "docs/guides/running.md",
        "docs/guides/methods.md",
        "docs/guides/finding.md",
        "docs/guides/inverse.md",
        "docs/guides/laboratory.md",
        "docs/guides/studies.md",
        "docs/guides/data.md",
        "docs/guides/public_sets.md",
        "docs/guides/training.md",
        "docs/guides/protocol.md",
        "docs/guides/blocks.md",
        "docs/guides/large_graphs.md",
        "docs/guides/searching.md",
        "docs/guides/classifier.md",
        "docs/guides/greadconv.md",
        "docs/guides/conform.md",
    )
]
PAGES += sorted(
    page for page in (ROOT / "docs/mathematics").glob("*.md") if page.name not in ("index.md", "answers.md")
)
PAGES += sorted(page for page in (ROOT / "docs/howto").glob("*.md") if page.name != "index.md")


#: Folders of pages.
CHAPTERS = ("start", "start/tutorials", "howto", "guides", "mathematics", "measured", "reference")
#: Pages whose examples train and fit for ten seconds each.
LONG = ("classifier.md", "finding.md", "inverse.md")


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow) if p.name in LONG else p for p in PAGES], ids=lambda p: p.name
)
def test_python_blocks(page: Path) -> None:
    failed, tried = doctest.testfile(
        str(page), module_relative=False, verbose=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert failed == 0
    assert tried >= 3


@pytest.mark.slow
def test_console_blocks() -> None:
    blocks = re.findall(
        r"```console\n(.*?)```", (ROOT / "docs/reference/command_line.md").read_text(encoding="utf-8"), re.DOTALL
    )
    commands = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert commands
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "rdgraph"
        run = run_warm(["studies.cli.app", *words[1:]])
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["identifiable"] == ["alpha - beta"]


def test_map_names_every_folder() -> None:
    """The map in CONTRIBUTING has one line for every folder, and none for others; it follows the order of imports."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The map")[1].split("```")[1]
    lines = [line.split(maxsplit=1) for line in section.strip().splitlines()]
    listed = [folder.rstrip("/") for folder, _ in lines]
    assert len(listed) == len(set(listed))
    files = [p for package in FOLDER_ORDER for glob in ("*/*.*", "*/*/*.py") for p in (ROOT / package).glob(glob)]
    folders = {p.parent.relative_to(ROOT) for p in files}
    present = {str(f) for f in folders if f.name != "__pycache__"} | {*FOLDER_ORDER, "tests", "docs"}
    own = {"tests/adversary", "tests/mutants", "tests/repository", "tests/docs"}
    own |= {f"docs/{name}" for name in (*CHAPTERS, "start/examples", "building")}
    assert set(listed) == present | own
    for package, order in FOLDER_ORDER.items():
        named = [f.removeprefix(f"{package}/").replace("/", ".") for f in listed if f.startswith(f"{package}/")]
        assert [name for name in named if name in order] == [name for name in order if name in named]


def every_page() -> list[Path]:
    """Of the root and of the documentation, without those that `make docs` generates."""
    folders = [ROOT, ROOT / "docs", *(ROOT / f"docs/{name}" for name in CHAPTERS)]
    return [page for folder in folders for page in sorted(folder.glob("*.md"))]


@pytest.mark.parametrize("page", every_page(), ids=lambda p: p.name)
def test_links_exist(page: Path) -> None:
    """In the tree, or among the pages that `make docs` makes."""
    made = {ROOT / f"docs/generated/{name}.md" for name, *_ in MADE_PAGES}
    made |= {ROOT / "docs" / "generated" / "reference" / name for name in (ALL_NAMES, COMMANDS)}
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve()
        assert path in made or path.exists(), (page.name, target)


@pytest.mark.parametrize("page", every_page(), ids=lambda p: p.name)
def test_modules_and_files_that_are_named_exist(page: Path) -> None:
    """Dotted names of our packages can be imported, and paths in backticks lie in the tree."""
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"(?<![\w./])(?:rdgraph|analysis|gread|studies|tests)(?:\.[a-z_]+)+(?![\w/])", text))
    for name in {n for n in names if not n.endswith(".md")}:
        assert is_importable(name), (page.name, name)
    for path in re.findall(r"`((?:rdgraph|analysis|gread|studies|tests|docs)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), (page.name, path)


@pytest.mark.parametrize("page", every_page(), ids=lambda p: p.name)
def test_no_star_of_a_formula_is_taken_as_emphasis(page: Path) -> None:
    """Outside of code, a star between factors is escaped: Markdown would drop it and print what follows in italics."""
    literal = re.compile(r"^(```|~~~).*?^\1|(`+).*?\2|\$[^$]*\$|\\\*", re.DOTALL | re.MULTILINE)
    text = literal.sub("", page.read_text(encoding="utf-8"))
    prose = [line for line in text.splitlines() if not line.startswith("    ")]
    assert [line for line in prose if re.search(r"[\w)]\*\(|[\w)]\*\w", line)] == []


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
