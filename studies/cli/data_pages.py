"""What the data commands print: tables of facts, the paper's table beside them, results of the checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gread.datasets.comparison import UNEXPLAINED, Comparison
from gread.datasets.facts import Facts
from gread.datasets.twins import Twins

Cells = Sequence[str]
#: A column of texts gets at least so many letters in a line.
NARROWEST_TEXT = 24
#: Headings of the two tables of facts; the first five are those of the paper's table.
SIZES = ("set", "nodes", "edges", "loops", "features", "classes", "edge hom.", "node hom.", "adjusted", "splits")
SHAPE = ("set", "masks cover", "components", "largest", "isolated", "degree mean/max", "no label", "no feature",
         "density", "twins in training (not leaves)")  # fmt: skip
PAPER = ("set", "quantity", "paper", "here", "why")
_QUANTITY_OF = {
    "nodes": "nodes",
    "edges": "edges",
    "features": "features",
    "classes": "classes",
    "node hom.": "homophily",
}


def size_cells(facts: Facts, compared: Sequence[Comparison]) -> list[str]:
    """One row of sizes and homophily; a figure that the paper prints otherwise carries a mark."""
    differs = {c.quantity for c in compared if not c.agrees}
    values = {
        "set": facts.name,
        "nodes": f"{facts.nodes:,}",
        "edges": f"{facts.edges:,}",
        "loops": f"{facts.loops:,}",
        "features": f"{facts.features:,}",
        "classes": f"{facts.classes}",
        "edge hom.": _share(facts.edge_homophily),
        "node hom.": _share(facts.node_homophily),
        "adjusted": _share(facts.adjusted_homophily),
        "splits": facts.split_shares,
    }
    return [text + ("*" if _QUANTITY_OF.get(heading) in differs else "") for heading, text in values.items()]


def shape_cells(facts: Facts, twins: Twins) -> list[str]:
    """One row of splits, components, degrees and what is missing."""
    return [
        facts.name,
        facts.coverage,
        f"{facts.components:,}",
        f"{facts.component_nodes:,}",
        f"{facts.isolated:,}",
        f"{facts.average_degree:.1f} / {facts.max_degree:,}",
        f"{facts.unlabelled:,}",
        f"{facts.empty_rows:,}",
        f"{facts.feature_density:.2%}",
        "-" if math.isnan(twins.in_training) else f"{twins.in_training:.1%} ({twins.beyond_leaves:.1%})",
    ]


def paper_cells(found: Comparison) -> list[str]:
    """One figure of the paper that differs, or agrees with a remark."""
    ours = f"{found.ours:.2f}" if found.quantity == "homophily" else f"{found.ours:,.0f}"
    return [found.name, found.quantity, str(found.printed), ours, found.reason]


def summary(compared: Sequence[Comparison]) -> str:
    """How many figures agree, differ, and have no reason."""
    wrong = [c for c in compared if not c.agrees]
    open_cases = sum(c.reason == UNEXPLAINED for c in wrong)
    return (
        f"{len(compared)} figures beside the paper's: {len(compared) - len(wrong)} agree, {len(wrong)} differ (*), "
        f"{open_cases} of them unexplained"
    )


Section = tuple[str, Cells, list[list[str]]]


def sections(
    facts: Sequence[Facts], twins: Mapping[str, Twins], compared: Mapping[str, Sequence[Comparison]]
) -> list[Section]:
    """Title, headings and rows of the tables that `data table` prints."""
    noted = [paper_cells(c) for f in facts for c in compared[f.name] if c.reason or not c.agrees]
    found: list[Section] = [
        ("Sizes and homophily", SIZES, [size_cells(f, compared[f.name]) for f in facts]),
        ("Splits, components, what is missing", SHAPE, [shape_cells(f, twins[f.name]) for f in facts]),
    ]
    return [*found, ("Beside the paper's table", PAPER, noted)] if noted else found


def rich_page(parts: Sequence[Section], notes: Sequence[str]) -> RenderableType:
    """The tables for a terminal."""
    return Group(*(FittedTable(*part) for part in parts), *(Text(note) for note in notes))


@dataclass(frozen=True)
class FittedTable:
    """A table that loses nothing on a narrow terminal: columns that do not fit follow below, the first one repeated.

    Columns that hold nothing but figures are set right, and never broken while there is room for one of them; texts
    are folded.
    """

    title: str
    headings: Cells
    rows: Sequence[Cells]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, columns in enumerate(self.cut(options.max_width)):
            yield self._table("" if number else self.title, columns, options.max_width)

    def cut(self, width: int) -> list[list[int]]:
        """The numbers of the columns, in groups that fit; each begins with the first column."""
        groups: list[list[int]] = [[0]]
        for k in range(1, len(self.headings)):
            if len(groups[-1]) > 1 and self._width([*groups[-1], k]) > width:
                groups.append([0])
            groups[-1].append(k)
        return groups

    def _width(self, columns: Sequence[int]) -> int:
        """What some columns need: their cells, with a space on each side and between them, and one at each edge."""
        return sum(self._least(k) + 3 for k in columns) + 1

    def _least(self, k: int) -> int:
        longest = max(cell_len(text) for text in (self.headings[k], *(row[k] for row in self.rows)))
        return longest if self._is_whole(k) else min(longest, NARROWEST_TEXT)

    def _is_whole(self, k: int) -> bool:
        """Whether a column is not to be folded."""
        return k == 0 or all(_is_figure(row[k]) for row in self.rows)

    def _table(self, title: str, columns: Sequence[int], width: int) -> Table:
        fits = self._width(columns) <= width
        table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left")
        for k in columns:
            justify: JustifyMethod = "right" if all(_is_figure(row[k]) for row in self.rows) else "left"
            is_whole = fits and self._is_whole(k)
            table.add_column(Text(self.headings[k]), justify=justify, overflow="fold", no_wrap=is_whole)
        for row in self.rows:
            table.add_row(*(Text(row[k], style="yellow" if row[k].endswith("*") else "") for k in columns))
        return table


def markdown_page(parts: Sequence[Section], notes: Sequence[str]) -> str:
    """The same tables as markdown."""
    blocks = []
    for title, headings, rows in parts:
        lines = [f"**{title}**", "", _line(headings), _line(["---"] * len(headings)), *map(_line, rows)]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, *notes])


def _line(cells: Cells) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("*", "\\*") for c in cells) + " |"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _is_figure(text: str) -> bool:
    return not any(c.isalpha() for c in text)
