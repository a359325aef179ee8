"""Settings of a study that a user changes: read, checked, kept in the folder, and in the line that repeats the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdgraph.errors import InvalidArgument, UnknownName
from studies.runs.setting_limits import changed_settings, read_changes, setting_text
from studies.runs.study import Study, execute, study_commands


def test_values_are_read_as_toml_or_as_text() -> None:
    assert read_changes(["n=3", "x=0.5", 'words=["a","b"]', "graph=ring:9", "is=true"]) == {
        "n": 3, "x": 0.5, "words": ["a", "b"], "graph": "ring:9", "is": True,
    }  # fmt: skip
    for value in (3, 0.5, ["a", "b c"], True, [1, 2], "ring:9"):
        assert read_changes([f"v={setting_text(value)}"]) == {"v": value}
    with pytest.raises(InvalidArgument, match="expected NAME=VALUE"):
        read_changes(["points"])


def test_a_change_has_the_kind_of_what_it_replaces() -> None:
    assert changed_settings({"a": 1.0, "b": [1.0]}, {"a": 2, "b": [3]}) == {"a": 2.0, "b": [3.0]}
    with pytest.raises(UnknownName):
        changed_settings({"points": 1}, {"point": 2})
    for own, value in ((1, "x"), (1, 2.5), (1, [2]), ("x", 1), (1, True)):
        with pytest.raises(InvalidArgument, match="a must be"):
            changed_settings({"a": own}, {"a": value})
    with pytest.raises(InvalidArgument, match='a must be a whole number, such as 1, got "x"'):
        changed_settings({"a": [1]}, {"a": ["x"]})


def test_a_list_may_be_given_without_brackets() -> None:
    settings = {"sets": ["karate"], "sizes": [1, 2], "rates": [0.5]}
    given = read_changes(["sets=cora, texas", "sizes=3", "rates=1,0.25"])
    assert changed_settings(settings, given) == {"sets": ["cora", "texas"], "sizes": [3], "rates": [1.0, 0.25]}
    assert changed_settings(settings, read_changes(["sets=cora"]))["sets"] == ["cora"]
    with pytest.raises(InvalidArgument, match="sizes must be a whole number") as problem:
        changed_settings(settings, read_changes(["sizes=3,four"]))
    assert "[" not in str(problem.value)


def test_changes_are_kept_and_repeated(tmp_path: Path) -> None:
    body = lambda run: run.results([{"n": run.settings["n"]}])  # noqa: E731
    study = Study("count", "A count", "How many?", body, lambda small: {"n": 1})
    execute(study, tmp_path / "run", changes={"n": 4})
    assert (tmp_path / "run/results.csv").read_text() == '"n"\n4\n'
    config = study.config(changes={"n": 4})
    assert study_commands(config, tmp_path)[0].endswith(f"--set n=4 --out {tmp_path}")
    assert "changed" not in study.config().toml()
