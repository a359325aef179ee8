"""Examples in docstrings of public names run when they are copied: each one alone, with no imports but its own."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator

import pytest

from tests import doors
from tests.conftest import LONG_EXAMPLES

PARSER = doctest.DocTestParser()
#: As pytest runs them in their modules.
RUNNER_FLAGS = doctest.ELLIPSIS


def members(value: object) -> Iterator[tuple[str, object]]:
    """A public value and, for a class, its public methods and properties, by the last part of the name."""
    yield "", value
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
                yield f".{name}", member


def examples() -> dict[str, str]:
    """Every docstring of a public name that has an example, once."""
    texts: dict[str, str] = {}
    for package in doors.PACKAGES:
        for name, value in doors.public_names(package).items():
            for suffix, member in members(value):
                text = inspect.getdoc(member) or ""
                if ">>>" in text and text not in texts.values():
                    where = f"{getattr(value, '__module__', package)}.{getattr(value, '__qualname__', name)}{suffix}"
                    texts[where] = text
    return texts


EXAMPLES = examples()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 150


@pytest.mark.parametrize("where", sorted(EXAMPLES.keys() - LONG_EXAMPLES))
def test_an_example_runs_alone(where: str) -> None:
    example = PARSER.get_doctest(EXAMPLES[where], {}, where, None, None)
    output: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=RUNNER_FLAGS).run(example, out=output.append, clear_globs=False)
    assert not failed, "".join(output)


@pytest.mark.slow
@pytest.mark.parametrize("where", sorted(EXAMPLES.keys() & LONG_EXAMPLES))
def test_a_long_example_runs_alone(where: str) -> None:
    test_an_example_runs_alone(where)
