"""Settings of the paper's studies that make no sense are refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rdgraph.errors import InvalidArgument, RdgraphError, UnknownName
from studies.registered_studies import find_study
from studies.runs.setting_limits import Limit
from studies.runs.study import Study, execute

NAMES = (
    "classification", "ablation", "sensitivity", "depth", "homophily", "significance", "runtime", "embeddings",
    "complexity", "wellposedness", "forensics",
)  # fmt: skip
#: Settings whose words are looked up where they are used.
LOOKED_UP = ("models", "dataset")


def nonsense(value: Any) -> Any:
    """Of the same kind as a setting, and wrong."""
    entry = value[0] if isinstance(value, list) and value else "karate" if isinstance(value, list) else value
    wrong = "nonsense" if isinstance(entry, str) else type(entry)(-1)
    return [wrong] if isinstance(value, list) else wrong


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_limit_and_its_own_value_keeps_it(name: str, tmp_path: Path) -> None:
    study = find_study(name)
    for small in (True, False):
        assert set(study.limits(small)) >= set(study.settings(small))
        study.config(small=small)
    for setting, value in study.settings(True).items():
        if setting not in LOOKED_UP:
            with pytest.raises(RdgraphError, match="expected"):
                execute(study, tmp_path / name, small=True, changes={setting: nonsense(value)})
        if isinstance(value, list) and value:
            with pytest.raises(InvalidArgument, match=f"{setting} contains .* twice"):
                study.config(small=True, changes={setting: [value[0], value[0]]})
    assert not (tmp_path / name).exists()


def test_limits_of_numbers_words_and_lists() -> None:
    Limit(least=0, most=1).check("share", [0.0, 1.0])
    Limit(some=False).check("models", [])
    refused: list[tuple[Limit, Any, str]] = [
        (Limit(least=0, most=1), 1.5, "expected 0 <= x <= 1, got 1.5"),
        (Limit(above=0), 0.0, "expected x > 0, got 0.0"),
        (Limit(), float("nan"), "expected a finite x, got nan"),
        (Limit(least=1), [], "x is empty"),
        (Limit(needed=(0.0, 1.0)), [0.0, 0.5], "x must contain 1"),
        (Limit(), ["a", "a"], "x contains .a. twice"),
    ]
    for limit, value, words in refused:
        with pytest.raises(InvalidArgument, match=words):
            limit.check("x", value)
    with pytest.raises(UnknownName, match="expected a colour for x, got 'rad'; did you mean 'red'"):
        Limit(known=("red", "blue"), what="colour").check("x", ["rad"])
    with pytest.raises(UnknownName, match="expected a colour for x, got '3'"):
        Limit(known=("red", "blue"), what="colour").check("x", [3])


def test_states_are_compared_at_the_start_and_at_the_end() -> None:
    with pytest.raises(InvalidArgument, match="shares must contain 1"):  # its sentences speak of t = 0 and T
        find_study("embeddings").config(small=True, changes={"shares": [0.0, 0.5]})


def test_a_study_of_ones_own_has_limits_too(tmp_path: Path) -> None:
    study = Study(
        "n", "A count", "How many?", lambda run: None, lambda small: {"n": 1}, limits=lambda _: {"n": Limit(1)}
    )
    with pytest.raises(InvalidArgument, match="expected n >= 1, got 0"):
        execute(study, tmp_path / "run", changes={"n": 0})


@pytest.mark.parametrize(
    ("name", "changes"),
    [("classification", {"sets": []}), ("sensitivity", {"times": [], "steps": [], "reactions": ["AC"]}),
     ("homophily", {"models": [], "reactions": []}), ("forensics", {"sets": []})],
)  # fmt: skip
def test_settings_that_leave_nothing_to_train(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=rf"nothing to train .*: .*{next(iter(changes))}"):
        execute(find_study(name), tmp_path / "run", small=True, changes=changes)
