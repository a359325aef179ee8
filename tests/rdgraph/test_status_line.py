"""`StatusLine`: redrawn on a terminal, a line every few seconds elsewhere, also without new messages."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest
from rich.console import Console

from rdgraph import status_line
from rdgraph.status_line import StatusLine


def written(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_terminal_shows_the_latest_text_with_brackets_as_they_are() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    with StatusLine("reading", console=terminal) as status:
        assert "reading" in written(terminal)
        status.say("symbol [P]", 1, 4)
        time.sleep(0.4)
    assert "symbol [P]" in written(terminal)


def test_short_work_writes_nothing_to_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "FIRST", 60.0)
    pipe = Console(file=io.StringIO(), width=80)
    with StatusLine("reading", console=pipe) as status:
        status.say("symbol")
    assert written(pipe) == ""


def test_long_work_that_says_nothing_goes_on_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "FIRST", 0.05)
    monkeypatch.setattr(status_line, "PAUSE", 0.1)
    pipe = Console(file=io.StringIO(), width=80)
    with StatusLine("reading", console=pipe) as status:
        status.say("step limits")
        while len(written(pipe).splitlines()) < 2:
            time.sleep(0.01)
    lines = written(pipe).splitlines()
    assert all(re.fullmatch(r"reading: step limits \(\d+ s\)", line) for line in lines)
    time.sleep(0.2)
    assert written(pipe).splitlines() == lines


def test_a_stage_is_written_at_once_and_the_next_line_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "FIRST", 60.0)
    monkeypatch.setattr(status_line, "PAUSE", 600.0)
    pipe = Console(file=io.StringIO(), width=80)
    with StatusLine(console=pipe) as status:
        status.stage("drawing")
        assert status._due > time.monotonic() + 300
    assert re.fullmatch(r"drawing \(\d+ s\)\n", written(pipe))


@pytest.mark.parametrize("shown", [None, False])
def test_without_a_console_a_pipe_stays_silent(
    shown: bool | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_line, "FIRST", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with StatusLine("fit", shown=shown) as status:
        status.stage("step 1")
        time.sleep(0.1)
        with pytest.warns(UserWarning, match="truncated"):
            status.note("truncated")
    assert capsys.readouterr().err == ""
