"""Every block of the documentation runs, and prints what it shows."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/language.md",
        "docs/answers.md",
        "docs/running.md",
        "docs/laboratory.md",
        "docs/data.md",
        "docs/training.md",
        "docs/classifier.md",
    )
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, verbose=False, encoding="utf-8")
    assert failed == 0
    assert tried >= 4


def test_console_blocks() -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
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


def test_map_names_every_module() -> None:
    """The map in the README lists the modules that exist, and no others."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## The map")[1]
    section = text.split("```")[1]
    for package in ("rdgraph", "analysis", "gread", "studies"):
        folder = ROOT / package
        files = [p for p in folder.rglob("*.py") if "claims" not in p.parts and p.stem != "__init__"]
        modules = {p.stem for p in files}
        listed = set(re.findall(r"[a-z_]+", re.split(r"\n\w+/", section.split(f"{package}/", 1)[1])[0]))
        assert modules <= listed, (package, modules - listed)


def test_links_exist() -> None:
    for page in [
        *PAGES,
        *(ROOT / "docs" / f"{name}.md" for name in ("answers", "performance", "accuracy", "trained_energy")),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)
