"""What `gread` offers by name: every public name is there and documented with arguments, results and an example."""

from __future__ import annotations

import inspect

import pytest

import gread
from tests.paths import ROOT


def test_train_is_a_function() -> None:
    from gread import train

    assert inspect.isfunction(train)
    assert (ROOT / "gread" / "training" / "trainer.py").is_file()


def test_the_docstring_groups_every_name() -> None:
    words = (gread.__doc__ or "").replace(",", " ").split()
    assert [name for name in gread.__all__ if name not in words] == []


@pytest.mark.parametrize("name", gread.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(gread, name)
    text = inspect.getdoc(thing) or ""
    assert text, name
    assert len(text.splitlines()[0]) <= 120
    assert ">>> " in text, f"{name}: no example"
    parameters = [p for p in inspect.signature(thing).parameters if p not in ("self", "args", "kwargs")]
    if parameters:
        assert "Args:" in text, f"{name}: no arguments"
    if inspect.isfunction(thing):
        missing = [p for p in parameters if f"    {p}: " not in text]
        assert missing == [], f"{name}: arguments that are not described"
        assert "Returns:" in text, f"{name}: no word on what is returned"
