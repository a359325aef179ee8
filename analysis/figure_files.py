"""Figures: colour-blind palette, data beside every picture (csv), png and pdf of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's palette, safe for the common kinds of colour blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")


def plain(text: str) -> str:
    r"""A text from outside as matplotlib draws it letter by letter: $ begins no formula, other marks are as they are.

    What cannot be printed, such as a line end, becomes a space.

    >>> plain("$x$, 5 %"), plain("two\nlines")
    ('\\$x\\$, 5 %', 'two lines')
    """
    return "".join(c if c.isprintable() else " " for c in text).replace("$", r"\$")


def save_figure(figure: Figure, folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Write name.png, name.pdf and the numbers behind them, one mapping a row, as name.csv.

    Each file is written whole or not at all. Columns are the keys of the rows in order of appearance; floats have
    twelve digits.

    Args:
        figure: a matplotlib figure.
        folder: where the files are written; it is made where it is missing.
        name: of the files, without an ending.
        rows: the numbers drawn.

    Returns:
        The three paths.

    Raises:
        FileError: where they cannot be written.

    Example:
        >>> from pathlib import Path
        >>> import tempfile, analysis
        >>> from matplotlib.figure import Figure
        >>> [path.name for path in analysis.save_figure(Figure(), Path(tempfile.mkdtemp()), "empty", [{"x": 1.0}])]
        ['empty.png', 'empty.pdf', 'empty.csv']
    """
    paths = [folder / f"{name}.{ending}" for ending in ("png", "pdf", "csv")]
    with replacing(paths[0]) as file:
        figure.savefig(file, format="png", dpi=160)
    figure.set_layout_engine("none")  # the places that were found hold for the next format too
    with replacing(paths[1]) as file:
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
    with replacing(paths[2]) as file:
        file.write_text(_csv(rows), encoding="utf-8", newline="")
    return paths


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        values = (row.get(key, "") for key in columns)
        writer.writerow([f"{v:.12g}" if isinstance(v, float | np.floating) else v for v in values])
    return text.getvalue()
