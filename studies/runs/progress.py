"""How far a program is, on stderr."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress(console: Console) -> Progress:
    """A progress bar on stderr with the time left, that leaves no trace when it is done."""
    left = TimeRemainingColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), left)
    return Progress(*columns, console=console, transient=True)
