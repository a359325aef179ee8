"""What the wheel has: what its commands read and import, and nothing else. `make wheel` builds and uses one."""

from __future__ import annotations

from studies.ledger.assessment import FORENSICS, NOTES
from studies.ledger.kept_results import READERS
from tests.paths import ROOT
from tests.repository.installed_wheel import content_faults, shipped
from tests.repository.test_architecture import imports_of

#: Endings of files that are no program: records, tables, templates, pages and the mark of typed packages.
DATA = {".toml", ".csv", ".json", ".html", ".css", ".js", ".md", ".c", ".v", ".typed"}
PACKAGES = ("rdgraph", "analysis", "gread", "studies", "tests", "docs")


def test_it_has_the_results_that_commands_read_and_no_others() -> None:
    results = {path.rpartition("/")[2] for path in shipped() if path.startswith("studies/results/")}
    assert results == {*READERS, NOTES, "__init__.py", "reading.py"}
    assert FORENSICS in READERS


def test_it_has_programs_and_their_data_alone() -> None:
    for path in shipped():
        name = path.rpartition("/")[2]
        assert path.endswith(".py") or ("." + name.rpartition(".")[2]) in DATA, path
        assert not path.startswith("studies/benchmarks/"), path
        assert "test" not in path.split("/")[:-1], path
    assert "rdgraph/py.typed" in shipped()
    assert (ROOT / "studies/benchmarks/__init__.py").is_file()  # what is left out is in the repository


def test_its_modules_import_nothing_that_it_leaves_out() -> None:
    files = shipped()
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files}
    for path in sorted(path for path in files if path.endswith(".py")):
        for line, name in imports_of(ROOT / path):
            if name.partition(".")[0] in PACKAGES:
                assert name in modules or name.rpartition(".")[0] in modules, (path, line, name)


def test_a_wheel_with_more_or_less_is_refused() -> None:
    right = [*shipped(), "rdgraph-1.0.dist-info/RECORD"]
    assert content_faults(right) == []
    assert content_faults([*right, "studies/benchmarks/scale.py"]) == ["the wheel has studies/benchmarks/scale.py"]
    assert content_faults(name for name in right if name != "studies/results/claims.json") == [
        "the wheel lacks studies/results/claims.json"
    ]
