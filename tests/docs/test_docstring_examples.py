"""Examples in docstrings of public names are collected, and each runs alone, with no imports but its own."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.conftest import _let_examples_run_alone
from tests.doors import public_examples

EXAMPLES = sorted(public_examples())


def module_of(where: str) -> str:
    """The module in the dotted name of an example."""
    parts = where.split(".")
    for count in range(len(parts), 0, -1):
        try:
            return importlib.import_module(".".join(parts[:count])).__name__
        except ModuleNotFoundError:
            continue
    raise AssertionError(where)


def test_every_example_is_collected() -> None:
    assert len(EXAMPLES) > 150
    modules = {importlib.import_module(module_of(where)) for where in EXAMPLES}
    found = {test.name for module in modules for test in doctest.DocTestFinder().find(module) if test.examples}
    assert [where for where in EXAMPLES if where not in found] == []


def test_an_example_sees_no_import_of_its_module(request: pytest.FixtureRequest) -> None:
    parent = pytest.Module.from_parent(request.session, path=request.path)
    parser, item = doctest.DocTestParser(), None
    for name, globs in ((EXAMPLES[0], {}), ("rdgraph.nothing", {"x": 1})):
        example = parser.get_doctest(">>> x\n1", {"x": 1}, name, None, None)
        item = pytest.DoctestItem.from_parent(parent, name=name, runner=doctest.DocTestRunner(), dtest=example)
        _let_examples_run_alone([item])
        assert item.dtest.globs == globs
