"""How far a search is, while it runs: a bar on a terminal, lines elsewhere; with the best so far and the time left."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from rdgraph.wording import counted
from studies.runs.boundary import say

if TYPE_CHECKING:
    from gread.tuning.search_progress import SearchProgress

#: Seconds between two lines where the output is not a terminal.
PAUSE = 10.0


class SearchDisplay:
    """How far a search is.

    >>> from types import SimpleNamespace
    >>> import io
    >>> text = io.StringIO()
    >>> with SearchDisplay(Console(file=text, width=100)) as display:
    ...     display.hear(SimpleNamespace(trials=12.5, total=50, best=0.8125, best_trial=3, seconds=10, seconds_left=30))
    >>> text.getvalue()
    '12 of 50 trials, best validation 81.25 % (trial 3), 10 s, 30 s left\\n'
    """

    #: What is under way.
    title = "searching"

    def __init__(self, console: Console) -> None:
        self.console = console
        self._told = time.monotonic() - PAUSE
        columns = TextColumn(self.title), BarColumn(), TextColumn("{task.description}", markup=False)
        self._bar = Bar(*columns, console=console, transient=True)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._bar.stop()

    def hear(self, progress: Any) -> None:
        """Show a progress with the trials that are done and their total, in the words of `line`."""
        text = self.line(progress)
        if self.console.is_terminal:
            self._bar.update(self._task, completed=progress.trials, total=progress.total, description=text)
        elif progress.trials >= progress.total or time.monotonic() - self._told >= PAUSE:
            self._told = time.monotonic()
            self.say(text)

    def say(self, text: str) -> None:
        """A sentence above the bar."""
        say(self.console, text)

    @staticmethod
    def line(p: SearchProgress) -> str:
        best = "" if p.best_trial < 0 else f", best validation {100 * p.best:.2f} % (trial {p.best_trial})"
        left = "" if math.isnan(p.seconds_left) else f", {duration(p.seconds_left)} left"
        return f"{math.floor(p.trials)} of {counted(p.total, 'trial')}{best}, {duration(p.seconds)}{left}"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(59.4), duration(600), duration(9000)
    ('59 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
