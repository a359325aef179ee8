"""The command that trains, called by tests."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from studies.cli import app as cli


def rdgraph(*words: object) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])
