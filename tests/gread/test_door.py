"""What `gread` offers by name: every public name is there and documented with arguments, results and an example."""

from __future__ import annotations

import inspect

import pytest

from tests.doors import public_names
from tests.paths import ROOT


def test_train_is_a_function() -> None:
    from gread import train

    assert inspect.isfunction(train)
    assert (ROOT / "gread" / "training" / "trainer.py").is_file()


@pytest.mark.parametrize("name", public_names("gread"))
def test_every_public_name_is_documented(name: str) -> None:
    thing = public_names("gread")[name]
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
