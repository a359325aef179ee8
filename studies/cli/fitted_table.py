"""Tables that also fit narrow terminals: `FittedTable` of numbers, `RecordList` of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

#: A cell may carry its own style.
Cell = str | Text
#: Least width of a terminal, in columns, for texts as a table.
WIDE = 110
#: Least width of a column of texts, in characters.
NARROWEST_TEXT = 24


@dataclass(frozen=True)
class FittedTable:
    """A table for any terminal: columns that do not fit follow below, with the first column repeated.

    Columns of numbers are right-aligned and not broken while one of them fits; texts are folded. `styles` are the
    styles of the columns.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=20)
    >>> console.print(FittedTable("", ("set", "nodes", "edges"), [["cora", "2,708", "5,278"]]))
    >>> [line.strip() for line in console.file.getvalue().splitlines() if "," in line]
    ['cora   2,708', 'cora   5,278']
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    styles: Sequence[str] = ()
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, columns in enumerate(self.cut(options.max_width)):
            yield self._table("" if number else self.title, columns, options.max_width)
        if self.caption:
            yield Text(self.caption, style="dim")

    def cut(self, width: int) -> list[list[int]]:
        """Indices of the columns in groups that fit; each begins with the first column."""
        groups: list[list[int]] = [[0]]
        for k in range(1, len(self.headings)):
            if len(groups[-1]) > 1 and self._width([*groups[-1], k]) > width:
                groups.append([0])
            groups[-1].append(k)
        return groups

    def _width(self, columns: Sequence[int]) -> int:
        """Width of some columns, with padding and edges."""
        return sum(self._least(k) + 3 for k in columns) + 1

    def _least(self, k: int) -> int:
        """Least width of a column: its longest line, or `NARROWEST_TEXT` if it may be folded."""
        lines = [line for cell in (self.headings[k], *(row[k] for row in self.rows)) for line in str(cell).split("\n")]
        longest = max(map(cell_len, lines))
        return longest if self._is_whole(k) else min(longest, NARROWEST_TEXT)

    def _is_whole(self, k: int) -> bool:
        """Whether a column must not be folded."""
        return k == 0 or self._holds_figures(k)

    def _holds_figures(self, k: int) -> bool:
        return all(is_figure(str(row[k])) for row in self.rows)

    def _table(self, title: str, columns: Sequence[int], width: int) -> Table:
        fits = self._width(columns) <= width
        table = Table(box=box.SIMPLE_HEAD, title=Text(title) if title else None, title_justify="left")
        for k in columns:
            justify: JustifyMethod = "right" if k and self._holds_figures(k) else "left"
            style = self.styles[k] if k < len(self.styles) else ""
            is_whole = fits and self._is_whole(k)
            table.add_column(Text(self.headings[k]), justify=justify, style=style, overflow="fold", no_wrap=is_whole)
        for row in self.rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in (row[k] for k in columns)))
        return table


@dataclass(frozen=True)
class RecordList:
    """Texts by name: a table on a wide terminal, on others a list of records with their fields by heading.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=40)
    >>> console.print(RecordList("Studies", ("name", "title"), [["grid", "Diffusion on a grid"]]))
    >>> print(console.file.getvalue().strip())
    Studies
    grid
      title: Diffusion on a grid
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= WIDE:
            yield self._table()
            return
        yield Text(self.title, style="italic")
        for row in self.rows:
            yield Text(row[0], style="bold")
            for heading, text in zip(self.headings[1:], row[1:], strict=True):
                if text:
                    several = "\n" if "\n" in text else " "
                    yield Padding(Text(f"{heading}:", style="dim").append(f"{several}{text}", "not dim"), (0, 0, 0, 2))

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, title=Text(self.title), title_justify="left")
        for k, heading in enumerate(self.headings):
            style = self.styles[k] if k < len(self.styles) else ""
            justify: JustifyMethod = "right" if all(is_figure(row[k]) for row in self.rows) else "left"
            table.add_column(Text(heading), style=style, overflow="fold", justify=justify)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def is_figure(text: str) -> bool:
    """Whether a cell contains only digits and signs.

    >>> is_figure("2,708 ± 3"), is_figure("3 MB")
    (True, False)
    """
    return not any(c.isalpha() for c in text)
