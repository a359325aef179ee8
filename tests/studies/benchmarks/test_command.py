"""One command: every program has its options, and errors take a line."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdgraph.errors import UnknownName
from studies.benchmarks import __main__ as command
from studies.benchmarks.__main__ import HELP, PROGRAMS, main, parser_of
from tests.paths import ROOT


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "share"])
def test_options_are_the_arguments_of_a_program(name: str) -> None:
    function = PROGRAMS[name].function()
    arguments = set(inspect.signature(function).parameters) - {"command"}
    actions = {action.dest: action for action in parser_of(name)._actions if action.dest != "help"}
    assert set(actions) == arguments
    assert inspect.getdoc(function)
    words = ["--device", "cpu"] if "device" in arguments else []
    required = [word for dest, action in actions.items() if action.required for word in _given(dest, action)]
    given = parser_of(name).parse_args([*words, *required])
    assert getattr(given, "device", "cpu") == "cpu"


def _given(dest: str, action: object) -> list[str]:
    flags = getattr(action, "option_strings", [])
    return [*flags, "here"] if flags else ["here"]


def test_every_word_of_help_belongs_to_an_option() -> None:
    known = {name for program in PROGRAMS.values() for name in inspect.signature(program.function()).parameters}
    assert set(HELP) == known - {"command", "words"}


def test_values_and_the_line_that_was_called_reach_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, object] = {}

    def compared(
        *, command: str, sets: Sequence[str] = (), trials: int | None = None, again: bool = False, out: Path
    ) -> None:
        seen.update(locals())

    monkeypatch.setattr(command.Program, "function", lambda self: compared)
    main(["compared", "--set", "cora", "texas", "--set", "film", "--trials", "3", "--out", str(tmp_path / "a.json")])
    assert seen["sets"] == ["cora", "texas", "film"]
    assert (seen["trials"], seen["again"], seen["out"]) == (3, False, tmp_path / "a.json")
    words = "--set cora texas --set film --trials 3 --out a.json"
    assert seen["command"] == f"python -m studies.benchmarks compared {words}"
    main(["compared", "--out", "b.json"])
    assert seen["sets"] == ()


def test_the_list_names_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(PROGRAMS)


@pytest.mark.parametrize(
    "words",
    [
        ["nosuch"], ["accuracy", "--set", "nosuch"], ["compared", "--contestant", "nosuch"],
        ["discovered", "--terms", "nosuch"], ["halving", "--network", "nosuch"], ["searched", "--set", "nosuch"],
        ["pages", "nosuch"], ["conform", "--only", "nosuch"],
    ],
)  # fmt: skip
def test_an_unknown_name_is_refused_before_anything_is_measured(words: list[str], tmp_path: Path) -> None:
    out = [] if words[0] in ("nosuch", "pages") else ["--out", str(tmp_path / "out")]
    with pytest.raises(UnknownName, match="nosuch"):
        main([*words, *out])
    assert not list(tmp_path.iterdir())


def test_an_error_is_one_line_and_the_status_2() -> None:
    line = [sys.executable, "-m", "studies.benchmarks", "nosuch"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert done.returncode == 2
    (told,) = done.stderr.splitlines()
    assert told.startswith("error: UnknownName: ")


def test_nothing_else_imports_the_benchmarks() -> None:
    """They are no part of the wheel."""
    for package in ("rdgraph", "analysis", "gread", "studies"):
        for path in (ROOT / package).rglob("*.py"):
            assert "benchmarks" in path.parts or "studies.benchmarks" not in path.read_text("utf-8"), path
