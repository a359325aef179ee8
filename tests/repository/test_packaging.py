"""What is installed: one version, extras that bring what they say, profiles of the tests."""

from __future__ import annotations

import re
import tomllib

import pytest

import rdgraph
from tests.paths import ROOT
from tests.property_examples import examples
from tests.repository.test_architecture import run_python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: Put before a program, it makes hypothesis look as if it were not installed.
WITHOUT_HYPOTHESIS = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hypothesis":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""


def test_the_version_is_written_in_one_place() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    assert re.fullmatch(r"\d+\.\d+\.\d+", rdgraph.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {rdgraph.__version__}\n" in citation


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=;\[ ]", r)[0] for r in requirements}


def test_hypothesis_comes_with_an_extra_of_its_own() -> None:
    extras = PROJECT["optional-dependencies"]
    assert "hypothesis" not in names(PROJECT["dependencies"])
    assert names(extras["testing"]) == {"hypothesis"}
    assert "rdgraph[testing]" in extras["dev"]


#: Extras of those who develop rdgraph.
FOR_DEVELOPERS = {"bench", "cluster", "docs", "dev"}


def brought(extra: str) -> set[str]:
    """The extras that come with one, itself included."""
    inner = [r[len("rdgraph[") : -1] for r in PROJECT["optional-dependencies"][extra] if r.startswith("rdgraph[")]
    return {extra, *(name for one in inner for name in brought(one))}


def test_the_extra_all_has_every_part_and_the_page_names_them() -> None:
    parts = set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS
    assert brought("all") - FOR_DEVELOPERS == parts
    page = (ROOT / "docs/start/install.md").read_text(encoding="utf-8")
    listed = {name for found in re.findall(r"'\.\[([a-z,]+)\]'", page) for name in found.split(",")}
    assert parts <= listed


def test_every_pinned_tool_is_in_the_constraints() -> None:
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().split()}
    wanted = names(PROJECT["dependencies"]) | {n for e in PROJECT["optional-dependencies"].values() for n in names(e)}
    assert {n.lower() for n in wanted} - {"rdgraph"} <= pinned


def test_without_hypothesis_claims_are_decided_and_the_strategies_name_the_extra() -> None:
    program = f"""{WITHOUT_HYPOTHESIS}
import rdgraph as rd
print(*(f"{{c.id}} {{c.as_expected}} {{c.evidence[-1].result}}" for c in rd.verify("M1.5")), sep=";")
try:
    import rdgraph.testing
except ImportError as problem:
    print(type(problem).__name__, problem)
"""
    claim, error = run_python(program).splitlines()
    assert claim == "M1.5 True 25 graphs"
    assert error.startswith("MissingDependency")
    assert "rdgraph[testing]" in error
    assert "pip install 'rdgraph[testing]'" in error


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("quick", [1, 3, 3, 10]),
        ("ci", [1, 5, 10, 50]),
        ("deep", [1000, 1000, 1000, 3000]),
    ],
)
def test_profiles_scale_the_examples(profile: str, expected: list[int]) -> None:
    assert [examples(n, profile) for n in (1, 5, 15, 100)] == expected


def test_no_property_test_sets_a_number_of_examples_of_its_own() -> None:
    """It would be the same in `make test` and in `make test-deep`: profiles only set what tests leave open."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    own = [str(path) for path, text in texts.items() if re.search(r"max_examples=\d", text)]
    assert own == []


def test_classifiers_name_the_versions_of_the_continuous_integration() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r'python: \["3\.11", "3\.12", "3\.13"\]', workflow)
    listed = re.findall(r"\d\.\d+", matrix)
    said = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert said == listed
    for command in re.findall(r"run: make ([\w-]+)", workflow):
        assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), command
