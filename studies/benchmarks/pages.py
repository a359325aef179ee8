"""Pages of measured numbers: `python -m studies.benchmarks pages [NAME ...]` writes docs/NAME.md from kept results.

A page is a template, the results files that it shows, and the numbers that are computed from them.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analysis.figure_files import PALETTE, plain
from gread.comparison import Comparison
from gread.formulas.distilled_network import MAX_SIZE, TOLERANCE
from gread.settings.presets import authors_runs
from rdgraph.files import read_text, write_text
from rdgraph.wording import markdown_text
from studies.benchmarks import contest_pages
from studies.benchmarks.coverage import FITTED
from studies.benchmarks.formulas import FUNCTION, KEY, MOST_LOST
from studies.benchmarks.result_files import checked, missing_cells, read_json
from studies.benchmarks.timing import duration
from studies.cells.cell import SETS
from studies.results import page_path, pages_folder, result_link, results_folder
from studies.runs.chart_figures import map_figure
from studies.runs.tables import markdown_table, number_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"
#: Dots per inch of figures.
DPI = 120
#: Epochs of one training of the authors.
EPOCHS = 200
#: Programs that were modules of another name when some results were measured.
RENAMED = {"conform_table": "conform", "halving_agreement": "halving", "coupled_fields": "several_fields"}
#: The panels of the figure of scaling.
AXES = {
    "edges": "entries (d = 16)",
    "channels": "channels",
    "members": "members (d = 16)",
    "products": "products per field (d = 16)",
}


@dataclass(frozen=True)
class Page:
    """A page of docs/, or the part of one between two marks.

    Args:
        name: Its template, and its file unless it is a part.
        sources: The results that the template shows, by their names.
        numbers: What else the template shows, computed from the sources.
        figure: Draws what docs/figures/ keeps under the name, from the sources; None where there is nothing to draw.
        part: The file and the mark of a part.
    """

    name: str
    sources: tuple[str, ...]
    numbers: Callable[..., Mapping[str, Any]] = lambda *found: {}
    figure: tuple[str, Callable[..., Figure | None]] | None = None
    part: tuple[str, str] | None = None

    @property
    def path(self) -> Path:
        """The file that holds the page."""
        return page_path(self.part[0] if self.part else self.name)

    def read(self) -> list[Any]:
        """The sources in their order; nothing of what was not measured yet."""
        return [read_json(results_folder() / f"{name}.json", {}) for name in self.sources]

    def text(self, *found: Any) -> str:
        """The page as Markdown."""
        return self.shown(dict(zip(self.sources, found, strict=True)) | dict(self.numbers(*found)))

    def shown(self, values: Mapping[str, Any]) -> str:
        """The page of values by the names of the template."""
        return _templates().get_template(f"{self.name}.md").render(values).rstrip("\n") + "\n"

    def written(self) -> str:
        """The whole file, made from the kept results."""
        text = self.text(*self.read())
        if self.part is None:
            return text
        return with_part(read_text(self.path, "a page"), self.part[1], text)

    def write(self) -> Path:
        """Write the file and its figure."""
        write_text(self.path, self.written())
        if self.figure is not None and (drawn := self.figure[1](*self.read())) is not None:
            drawn.savefig(pages_folder() / "figures" / f"{self.figure[0]}.png", dpi=DPI)
        return self.path


def write(*, names: Sequence[str] = ()) -> None:
    """Write pages of kept results into docs/, all by default."""
    for name in checked(names, tuple(PAGES), "page of measured numbers"):
        print(f"wrote {PAGES[name].write()}")


def with_part(text: str, mark: str, part: str) -> str:
    """The page with what stands between two marks replaced.

    >>> with_part("a\\n<!-- x -->\\nold\\n<!-- end of x -->\\nb", "x", "new\\n")
    'a\\n<!-- x -->\\n\\nnew\\n\\n<!-- end of x -->\\nb'
    """
    pattern = re.compile(rf"<!-- {mark} -->.*?<!-- end of {mark} -->", re.DOTALL)
    return pattern.sub(lambda _: f"<!-- {mark} -->\n\n{part.strip()}\n\n<!-- end of {mark} -->", text)


# ---------------------------------------------------------------------- what templates call
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=False,
    )  # fmt: skip
    found.filters |= {
        "number": lambda value, form=".2f": number_text(value, form, missing=""), "spread": spread, "where": where,
        "command": command_text, "duration": duration, "yes_no": yes_no, "percent": percent, "slope": slope,
        "cell": lambda text: text.replace("|", "\\|"), "markdown": markdown_text,
        "paired": contest_pages.paired, "counted": counted, "loss_interval": loss_interval,
    }  # fmt: skip
    found.globals |= {
        "origin": origin,
        "table": _table,
        "grid": _grid,
        "paired": contest_pages.paired,
        "link": result_link,
        "front_interval": contest_pages.front_interval,
    }
    return found


def spread(mean: float | None, std: float | None = None) -> str:
    """A mean and the deviation around it; nothing where there is no mean.

    >>> spread(80.0, 1.25), spread(80.0), spread(None)
    ('80.00 ± 1.25', '80.00', '')
    """
    return "" if mean is None else number_text(mean) + ("" if std is None else f" ± {number_text(std)}")


def where(environment: Mapping[str, Any]) -> str:
    """The versions and the device of a measurement.

    >>> where({"torch": "2.11", "load_before": 0.5})
    'torch 2.11, load before 0.5'
    """
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in environment.items())


def command_text(command: str) -> str:
    """A kept command as it is called now: results of before name a module for every program.

    >>> command_text("python -m studies.benchmarks.model_speed --device cuda")
    'python -m studies.benchmarks model-speed --device cuda'
    """
    return re.sub(
        r"studies\.benchmarks\.(\w+)",
        lambda m: f"studies.benchmarks {RENAMED.get(m[1], m[1]).replace('_', '-')}", command,
    )  # fmt: skip


def origin(found: Mapping[str, Any], end: str = ".") -> str:
    """The command of a result and the machine it ran on."""
    return f"`{command_text(found['command'])}` on {where(found['environment'])}{end}"


def yes_no(value: bool | None) -> str:
    """Whether a target was met; nothing where there is none."""
    return "" if value is None else "yes" if value else "no"


def percent(share: float | None) -> str:
    """A share in percent with one digit.

    >>> percent(0.021), percent(None)
    ('2.1 %', '')
    """
    return "" if share is None else f"{100 * share:.1f} %"


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How time grows at the large end of an axis: the exponent of a power law through the upper half of the points."""
    upper = np.log(np.array(points[len(points) // 2 :]))
    return float(np.polyfit(upper[:, 0], upper[:, 1], 1)[0])


def counted(counts: Mapping[str, int], start: str) -> int:
    """The sum of the counts whose names begin with a word."""
    return sum(count for name, count in counts.items() if name.startswith(start))


def _grid(
    columns: Iterable[str], names: Iterable[str], cells: Mapping[tuple[str, str], Any], show: Callable[[Any], str]
) -> str:
    """A table of cells by name and column; mappings of columns and names say what they are called."""
    shown, titles = (dict(x if isinstance(x, Mapping) else zip(x, x, strict=True)) for x in (columns, names))
    rows = [
        [title, *(show(cells[name, key]).strip() if (name, key) in cells else "" for key in shown)]
        for name, title in titles.items()
    ]
    return _table(["", *shown.values()], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(markdown_table(head, rows))


# ---------------------------------------------------------------------- the numbers of pages
def _performance(found: Any, training: Any, compiled: Any, printed: Any, searches: Any, *others: Any) -> dict[str, Any]:
    epochs = training["gpu"]["epochs"]
    kinds = list(dict.fromkeys(kind for detail in epochs.values() for kind in detail["parts"]))
    rows = []
    for name, detail in epochs.items():
        total = math.fsum(detail["parts"].values())
        shares = [number_text(detail["parts"].get(kind, 0.0) / total, ".0%") for kind in kinds]
        rows.append([name, duration(detail["epoch"]), str(detail["launches"]), *shares, duration(detail["floor"])])
    return {
        "kinds": kinds, "epochs": rows, "searches": {n: row for n, row in searches.items() if n != "paper"},
        "authors_rate": 1e3 / (authors_runs()["texas"].ms_per_epoch * EPOCHS),
    }  # fmt: skip


def scaling_figure(found: Mapping[str, Any], *others: Any) -> Figure:
    """Four panels, log-log, with a line of slope one through the last point."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 2.9), layout="constrained")
    panels = drawn.subplots(1, 4, sharey=False)
    for colour, panel, (axis, label) in zip(PALETTE, panels, AXES.items(), strict=False):
        size, seconds = np.array(found["scaling"][axis]).T
        panel.loglog(size, seconds * 1e3, "o-", color=colour, markersize=4)
        panel.loglog(size, seconds[-1] * 1e3 * size / size[-1], ":", color="0.5", linewidth=1)
        panel.set_xlabel(label)
        panel.xaxis.set_minor_formatter("")
        panel.yaxis.set_minor_formatter("")
        if axis == "products":
            panel.set_xticks(size, [f"{x:g}" for x in size])
        panel.grid(alpha=0.3, which="major")
    panels[0].set_ylabel("milliseconds")
    drawn.suptitle(f"Time of one evaluation on {plain(found['environment']['device'])}; dotted: linear", fontsize=10)
    return drawn


def loss_interval(row: Mapping[str, Any]) -> str:
    """95 % interval of the accuracy that a formula loses, from the accuracies kept; "" for a single split.

    >>> loss_interval({"learned_each": [80.0, 80.0], "formula_each": [79.0, 80.0], "test_to_train": 0.0})
    ' [-5.85, 6.85]'
    """
    learned, formula = (dict(enumerate(row[name])) for name in ("learned_each", "formula_each"))
    low, high = Comparison.of(learned, formula, row["test_to_train"]).interval
    return "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"


def _distilled(found: Mapping[str, Any]) -> dict[str, Any]:
    order = {name: k for k, name in enumerate(SETS)}
    rows = sorted(found["rows"], key=lambda row: order.get(row["dataset"], len(order)))
    good = sum(row["lost"] is not None and row["lost"] <= MOST_LOST for row in rows)
    return {
        "rows": rows, "good": good, "most_lost": MOST_LOST, "max_size": MAX_SIZE, "tolerance": TOLERANCE,
        "missing": missing_cells(found, KEY, (FUNCTION,), SETS),
    }  # fmt: skip


def _compared(found: Mapping[str, Any], epochs: Mapping[str, Any]) -> dict[str, Any]:
    notes = csv.DictReader(read_text(results_folder() / "compared_notes.csv", "notes on cells").splitlines())
    return contest_pages.compared(found, contest_pages.paper_rows(), list(notes), epochs)


def _drawn(field: Callable[..., Any]) -> Callable[..., Figure | None]:
    """The figure of a field over contestants and sets, where there is one."""

    def draw(*found: Any) -> Figure | None:
        drawn = field(*found)
        return None if drawn is None else map_figure(drawn)

    return draw


SPEEDS = (
    "performance", "training_speed", "compiled_speed", "printed_speed", "search_speed", "discover_speed",
    "large_graphs",
)  # fmt: skip
PAGES = {
    page.name.replace("_", "-"): page
    for page in (
        Page("accuracy", ("accuracy",), lambda found: contest_pages.accuracy(found, contest_pages.paper_rows())),
        Page("compared", ("compared", "model_speed"), _compared),
        Page("layers", ("conform", "conform_faults")),
        Page(
            "discovered", ("discovered", "searched"), contest_pages.discovered,
            ("discovered", _drawn(contest_pages.discovered_field)),
        ),
        Page(
            "distil_recovery", ("distil_recovery",),
            lambda found: {"inside": [flag for row in found["rows"] for flag in row.get("inside") or ()]},
            part=("distil", "recovery"),
        ),
        Page("distilled", ("distilled",), _distilled, part=("distil", "distilled")),
        Page("fit_coverage", ("fit_coverage",), lambda found: {"cases": FITTED}),
        Page("performance", SPEEDS, _performance, ("scaling", scaling_figure)),
        Page("scale", ("scale",)),
        Page(
            "searched", ("searched",), lambda found: contest_pages.searched(found, contest_pages.paper_rows()),
            ("searched", _drawn(contest_pages.searched_field)),
        ),
    )
}  # fmt: skip
