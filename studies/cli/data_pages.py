"""The output of `rdgraph data table`: statistics of data sets and their differences from the paper's table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from gread.datasets.facts import Facts, Twins
from gread.datasets.published_comparison import UNEXPLAINED, Comparison
from rdgraph.wording import markdown_row
from studies.cli.fitted_table import FittedTable
from studies.runs.tables import number_text

Cells = Sequence[str]
#: Headings of the two tables of facts; the first five are those of the paper's table.
SIZES = ("set", "nodes", "edges", "loops", "features", "classes", "edge hom.", "node hom.", "adjusted", "splits")
SHAPE = ("set", "masks cover", "components", "largest", "isolated", "degree mean/max", "no label", "no feature",
         "density", "twins in training (not leaves)")  # fmt: skip
PAPER = ("set", "quantity", "paper", "here", "reason")
_QUANTITY_OF = {
    "nodes": "nodes",
    "edges": "edges",
    "features": "features",
    "classes": "classes",
    "node hom.": "homophily",
}


def size_cells(facts: Facts, compared: Sequence[Comparison]) -> list[str]:
    """A row of sizes and homophily; numbers that differ from the paper's end with *."""
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
    """A row of splits, components, degrees and missing values."""
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


def paper_cells(row: Comparison) -> list[str]:
    """A row for a number of the paper that differs, or agrees with a remark."""
    ours = f"{row.ours:.2f}" if row.quantity == "homophily" else f"{row.ours:,.0f}"
    return [row.name, row.quantity, str(row.printed), ours, row.reason]


def summary(compared: Sequence[Comparison]) -> str:
    """How many numbers agree and differ, and how many differences are unexplained."""
    wrong = [c for c in compared if not c.agrees]
    open_cases = sum(c.reason == UNEXPLAINED for c in wrong)
    return (
        f"of the paper's {len(compared)} numbers {len(compared) - len(wrong)} agree and {len(wrong)} differ (*), "
        f"{open_cases} without an explanation"
    )


Section = tuple[str, Cells, list[list[str]]]


def sections(
    facts: Sequence[Facts], twins: Mapping[str, Twins], compared: Mapping[str, Sequence[Comparison]]
) -> list[Section]:
    """Title, headings and rows of the tables of `data table`."""
    noted = [paper_cells(c) for f in facts for c in compared[f.name] if c.reason or not c.agrees]
    tables: list[Section] = [
        ("Sizes and homophily", SIZES, [size_cells(f, compared[f.name]) for f in facts]),
        ("Splits, components, missing values", SHAPE, [shape_cells(f, twins[f.name]) for f in facts]),
    ]
    return [*tables, ("Comparison with the paper's table", PAPER, noted)] if noted else tables


def rich_page(parts: Sequence[Section], notes: Sequence[str]) -> RenderableType:
    """The tables for a terminal."""
    tables = (
        FittedTable(title, headings, [list(map(_marked, row)) for row in rows]) for title, headings, rows in parts
    )
    return Group(*tables, *(Text(note) for note in notes))


def _marked(text: str) -> Text:
    """Yellow text for a number that differs from the paper's."""
    return Text(text, style="yellow" if text.endswith("*") else "")


def markdown_page(parts: Sequence[Section], notes: Sequence[str]) -> str:
    """The same tables as markdown."""
    blocks = []
    for title, headings, rows in parts:
        rule = markdown_row(["---"] * len(headings))
        lines = [f"**{title}**", "", markdown_row(headings), rule, *map(markdown_row, rows)]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, *notes])


def _share(value: float) -> str:
    return number_text(value, ".3f")
