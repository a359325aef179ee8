"""Small tables for notebooks: everything that is shown is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, rows: Iterable[Sequence[object]], *, footer: str = "") -> str:
    """A caption, rows of texts of which the first is a heading, and a line below.

    >>> html_table("a < b", [("key", 1)], footer="done")
    '<table><caption>a &lt; b</caption><tr><th>key</th><td>1</td></tr></table><p>done</p>'
    """
    lines = "".join(
        f"<tr><th>{escape(str(head))}</th>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"
        for head, *cells in rows
    )
    below = f"<p>{escape(footer)}</p>" if footer else ""
    return f"<table><caption>{escape(title)}</caption>{lines}</table>{below}"
