"""The fixture `conforms` in a suite of somebody else: the example of docs/guides/conform.md, run by pytest itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rdgraph.testing
from rdgraph.infer.layers.pytest_fixture import expectation
from tests.paths import ROOT


def example(name: str) -> str:
    """A file of the page, by the comment in its first line."""
    page = (ROOT / "docs/guides/conform.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    return next(block for block in blocks if block.startswith(f"# {name}\n"))


@pytest.mark.slow
def test_the_example_of_the_page_passes_and_its_fault_fails(tmp_path: Path) -> None:
    for name in ("conftest.py", "my_layers.py", "test_my_layers.py"):
        (tmp_path / name).write_text(example(name), encoding="utf-8")
    faulty = example("my_layers.py").replace("x - around", "x + around")
    assert faulty != example("my_layers.py")
    first = run_pytest(tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    (tmp_path / "my_layers.py").write_text(faulty, encoding="utf-8")
    second = run_pytest(tmp_path)
    assert second.returncode == 1
    assert "I + A in place of L" in second.stdout
    assert "witness: 2 nodes" in second.stdout


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True, timeout=300, check=False)


def test_an_expectation_fails_with_the_hints() -> None:
    assert expectation("2*H")(lambda x, edge_index: 2 * x).conforms
    with pytest.raises(pytest.fail.Exception, match=r"the result has another factor: 2\.5"):
        expectation("2*H")(lambda x, edge_index: 5 * x)


def test_only_the_fixture_is_added() -> None:
    assert "conforms" in rdgraph.testing.__doc__  # type: ignore[operator]
    with pytest.raises(AttributeError, match="has no attribute 'conform'"):
        _ = rdgraph.testing.conform
