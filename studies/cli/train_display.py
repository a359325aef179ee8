"""How far a training is, while it runs: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from studies.runs.boundary import say
from studies.runs.tables import number_text

if TYPE_CHECKING:
    from gread.training.trainer import Progress

#: Letters of the bar, so that the table fits into 80 columns.
BAR = 14
#: Seconds between two lines where the output is not a terminal.
PAUSE = 10.0


class Display:
    """How far a training is: a live table on a terminal, a line now and then elsewhere.

    >>> from types import SimpleNamespace
    >>> import io
    >>> text = io.StringIO()
    >>> with Display(Console(file=text, width=100)) as display:
    ...     display.hear(SimpleNamespace(epoch=20, epochs=40, batch=0, batches=1, loss=0.5, val_accuracy=0.8125,
    ...                                  seconds=1.5))
    >>> text.getvalue()
    'epoch 20 of 40, batch 1 of 1, loss 0.5000, validation 81.25 %, 1.5 s\\n'

    `hear` is told what is trained where it is not the network itself, the MLP beside it for one.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.latest: Progress | None = None
        self.what = ""
        self._started = self._told = time.monotonic() - PAUSE
        self._live: Live | None = None

    def __enter__(self) -> Display:
        self._started = time.monotonic()
        if self.console.is_terminal:
            self._live = Live(get_renderable=self.table, console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def hear(self, progress: Progress, what: str = "") -> None:
        self.latest, self.what = progress, what
        is_last = progress.epoch >= progress.epochs
        if self._live is None and (is_last or time.monotonic() - self._told >= PAUSE):
            self._told = time.monotonic()
            self.say(self.line(progress))

    def say(self, text: str) -> None:
        """A sentence above the table."""
        say(self.console, text)

    def line(self, p: Progress) -> str:
        named = f"{self.what}: " if self.what else ""
        measured = f"loss {number_text(p.loss, '.4f')}, validation {_percent(p.val_accuracy)}"
        return (
            f"{named}epoch {p.epoch} of {p.epochs}, batch {p.batch + 1} of {p.batches}, {measured}, {p.seconds:.1f} s"
        )

    def table(self) -> Table:
        """One row: bar, epochs, batch, loss, validation accuracy, time."""
        p = self.latest
        table = Table(box=box.SIMPLE_HEAD)
        for k, heading in enumerate((self.what or "training", "epoch", "batch", "loss", "validation", "time")):
            table.add_column(heading, justify="right" if k else "left", no_wrap=True)
        passed = f"{time.monotonic() - self._started:.0f} s"
        if p is None:
            table.add_row(ProgressBar(total=1, completed=0, width=BAR, pulse=True), "", "", "", "", passed)
            return table
        is_drawing = p.epoch >= p.epochs
        bar = "drawing the report" if is_drawing else ProgressBar(total=p.epochs, completed=p.epoch, width=BAR)
        table.add_row(
            bar, f"{p.epoch}/{p.epochs}", f"{p.batch + 1} of {p.batches}", number_text(p.loss, ".4f"),
            _percent(p.val_accuracy), passed,
        )  # fmt: skip
        return table


def _percent(share: float) -> str:
    """
    >>> _percent(0.8125), _percent(float("nan"))
    ('81.25 %', '-')
    """
    return number_text(100 * share) + ("" if math.isnan(share) else " %")
