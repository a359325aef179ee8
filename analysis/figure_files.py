"""Figures: a colour-blind palette, and files as png, pdf and csv with the plotted numbers."""

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
    r"""A text escaped for matplotlib, so that $ starts no formula.

    Characters that cannot be printed, such as line ends, become spaces.

    >>> plain("$x$, 5 %"), plain("two\nlines")
    ('\\$x\\$, 5 %', 'two lines')
    """
    return "".join(c if c.isprintable() else " " for c in text).replace("$", r"\$")


def save_figure(figure: Figure, folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Write name.png, name.pdf and the numbers behind them, one mapping per row, as name.csv.

    Each file is written whole or not at all. Columns are the keys of the rows in order of appearance; floats have
    twelve digits.

    Args:
        figure: A matplotlib figure.
        folder: The folder of the files; created if missing.
        name: The name of the files, without extension.
        rows: The plotted numbers.

    Returns:
        The three paths.

    Raises:
        FileError: If they cannot be written.

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
    figure.set_layout_engine("none")  # keep the computed layout for the next format
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
