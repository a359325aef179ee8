"""`StatusLine`: the current work and its duration, shown during long calls."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sized
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from rdgraph.wording import duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

T = TypeVar("T")
#: Seconds before the first line, and between two lines, where the output is not a terminal.
FIRST, PAUSE = 1.0, 10.0
#: Characters of a bar, which fits into 80 columns with its text.
BAR = 14


class StatusLine:
    """A line on standard error: redrawn four times a second on a terminal, elsewhere a line every few seconds.

    `shown` True shows it, False does not, None does on a terminal only; given a `console` it is shown there. On a
    terminal the line disappears at the end.

    >>> import io
    >>> from rich.console import Console
    >>> text = io.StringIO()
    >>> with StatusLine("fit", console=Console(file=text)) as status:
    ...     status.say("choosing starts")  # written after a second, if it takes so long
    ...     status.stage("intervals")
    >>> text.getvalue()
    'fit: intervals (0 s)\\n'
    """

    def __init__(self, title: str = "", *, shown: bool | None = None, console: Console | None = None) -> None:
        self.title, self.text = title, ""
        self.done, self.total = 0.0, 0.0
        self._started = time.monotonic()
        self._due = self._started + FIRST
        self._over = Event()
        self._ticker: Thread | None = None
        self._live: Live | None = None
        self._console: Console | None = None
        if shown is not False and (shown or console is not None or sys.stderr.isatty()):
            from rich.console import Console

            self._console = console or Console(stderr=True)

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._due = self._started + FIRST
        if self._console is not None and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(
                get_renderable=self.drawn, console=self._console, refresh_per_second=4, transient=True,
            )  # fmt: skip
            self._live.start(refresh=True)
        elif self._console is not None:
            self._ticker = Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
        if self._ticker is not None:
            self._ticker.join()

    def _tick(self) -> None:
        while not self._over.wait(max(self._due - time.monotonic(), 0.0)):
            if time.monotonic() >= self._due:
                self.write()

    @property
    def seconds(self) -> float:
        """Seconds since the block began."""
        return time.monotonic() - self._started

    def line(self) -> str:
        """The line as it is now."""
        return f"{': '.join(filter(None, (self.title, self.text)))} ({duration(self.seconds)})"

    def drawn(self) -> RenderableType:
        """The line for a terminal, after a bar where a total is known."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        line = Text(self.line(), no_wrap=True, overflow="ellipsis")
        if not self.total:
            return line
        grid = Table.grid(padding=(0, 1))
        grid.add_row(ProgressBar(total=self.total, completed=self.done, width=BAR), line)
        return grid

    def note(self, text: str) -> None:
        """Print a sentence above the line, or a warning where the line is not shown."""
        if self._console is None:
            warnings.warn(text, stacklevel=2)
        else:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def say(self, text: str, done: float = 0, total: float = 0) -> None:
        """Set the text of the current work, and how much of it is done if known."""
        self.text, self.done, self.total = text, done, total

    def stage(self, text: str) -> None:
        """Begin another stage, as `say` does; written at once where the output is not a terminal."""
        self.say(text)
        if self._ticker is not None:
            self.write()

    def write(self) -> None:
        """Write the status as a line, if there is one; the next follows after a pause."""
        self._due = time.monotonic() + PAUSE
        if self.title or self.text:
            self.note(self.line())

    def track(self, items: Iterable[T], text: str, total: float | None = None) -> Iterator[T]:
        """The items, with a text that counts them.

        >>> status = StatusLine("verify", shown=False)
        >>> [status.text for _ in status.track(["a", "b"], "claim")]
        ['claim 1 of 2', 'claim 2 of 2']
        """
        count = total or (len(items) if isinstance(items, Sized) else 0)
        for done, item in enumerate(items):
            self.say(f"{text} {done + 1}" + (f" of {count:g}" if count else ""), done, count)
            yield item
