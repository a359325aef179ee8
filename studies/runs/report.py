"""The report of a run as one self-contained HTML page: inlined figures, sortable tables, dark and light."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rdgraph.systems.parser import parse
from rdgraph.wording import counted, markdown_text
from studies.runs.chart import Bars, Chart, FieldMap, MovingDots
from studies.runs.run_config import RunConfig
from studies.runs.tables import Row, Value, number_text

# ---------------------------------------------------------------------- formula
# `Formula`: an equation on a page, as rendered mathematics and as text.


@dataclass(frozen=True)
class Formula:
    """A named equation as MathML and as text that parses back."""

    name: str
    mathml: str
    text: str

    @classmethod
    def of(cls, equation: str, name: str = "") -> Formula:
        """Formula of an equation, or of a name of the catalogue.

        Args:
            equation: for `rdgraph.parse`.
            name: its heading; by default the name of the catalogue.

        Example:
            >>> formula = Formula.of("ST")
            >>> formula.name, formula.text, "<mi>β</mi>" in formula.mathml
            ('ST', '-alpha*L@H + beta*H0', True)
        """
        system = parse(equation)
        return cls(name or system.name or "", system.mathml(), str(system))


# ---------------------------------------------------------------------- report
TEMPLATES = Path(__file__).parent / "templates"
#: Figures that the page draws itself.
Drawn = Chart | FieldMap | Bars | MovingDots
#: The address of an anchor in a page of the same folder.
LINK = re.compile(r"[a-z_]+\.html#\S+")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Passage:
    """Paragraphs of plain text with a heading, which may be empty."""

    heading: str
    text: str
    kind = "passage"

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs, with single spaces.

        >>> Passage("", "one\\ntwo\\n\\nthree").paragraphs
        ['one two', 'three']
        """
        return [" ".join(p.split()) for p in re.split(r"\n\s*\n", self.text.strip())]


def as_address(content: bytes, ending: str) -> str:
    """An image as a data URL.

    >>> as_address(b"GIF", "gif")
    'data:image/gif;base64,R0lG'
    """
    return f"data:image/{ending};base64,{base64.b64encode(content).decode('ascii')}"


def fewer_colours(path: Path) -> bytes:
    """A png reduced to 64 colours, for pages without a script and for print."""
    from PIL import Image

    text = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").quantize(64).save(text, format="PNG", optimize=True)
    return text.getvalue()


@dataclass(frozen=True)
class Picture:
    """A png or gif file with its caption; the page draws its chart instead if there is one."""

    name: str
    path: Path
    caption: str
    chart: Drawn | None = None
    kind = "picture"

    @property
    def form(self) -> str:
        """How the page shows it: chart, map, bars, dots or image."""
        return {Chart: "chart", FieldMap: "map", Bars: "bars", MovingDots: "dots"}.get(type(self.chart), "image")  # type: ignore[arg-type]

    @property
    def source(self) -> str:
        """The picture as a data URL."""
        ending = self.path.suffix.lstrip(".")
        return as_address(self.path.read_bytes() if self.chart is None else fewer_colours(self.path), ending)

    @property
    def files(self) -> list[str]:
        """Its files, relative to the report."""
        endings = ("gif",) if self.path.suffix == ".gif" else ("png", "pdf", "csv")
        return [f"figures/{self.name}.{ending}" for ending in endings]


@dataclass(frozen=True)
class ReportTable:
    """Rows with the same columns."""

    name: str
    caption: str
    rows: Sequence[Row]
    kind = "table"

    @property
    def columns(self) -> list[str]:
        return list(self.rows[0]) if self.rows else []

    @property
    def lines(self) -> list[list[tuple[Value, str]]]:
        """For every row its values with their texts; numbers of a column have the same number of decimals."""
        texts = [column_texts([row[name] for row in self.rows]) for name in self.columns]
        return [[(row[n], texts[k][i]) for k, n in enumerate(self.columns)] for i, row in enumerate(self.rows)]


@dataclass(frozen=True)
class ReportVerdict:
    """A statement, its outcome and the evidence."""

    statement: str
    answer: str
    evidence: str

    @property
    def sort(self) -> str:
        """Outcome for colours: holds, fails, if or undecided."""
        return "if" if self.answer.startswith("holds if") else self.answer


Item = Passage | Picture | ReportTable


@dataclass(frozen=True)
class Heading:
    """Title and question of a run, and the commands that repeat and resume it."""

    title: str
    question: str
    command: str
    resume: str


@dataclass(frozen=True)
class Page:
    """Everything a report shows; `files` describes the files of the folder."""

    heading: Heading
    state: str
    problem: str
    config: RunConfig
    environment: Mapping[str, Any]
    items: tuple[Item, ...]
    verdicts: tuple[ReportVerdict, ...]
    files: Mapping[str, str]
    #: Whether some parts may have been computed by an earlier version of the code.
    mixed: bool = False
    #: The answer in a sentence, and the name of the figure that shows it; by default the first figure.
    answer: str = ""
    shows: str = ""
    #: The equations of the run.
    formulas: tuple[Formula, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether the page draws figures itself."""
        return any(isinstance(item, Picture) and item.chart is not None for item in self.items)

    @property
    def is_moving(self) -> bool:
        """Whether some figures are moving dots."""
        return any(isinstance(item, Picture) and item.form == "dots" for item in self.items)

    @property
    def main(self) -> tuple[Item, int] | None:
        """The figure below the answer, with its number; None without figures."""
        pictures = [(item, number) for item, number in self.numbered if isinstance(item, Picture)]
        return next((pair for pair in pictures if pair[0].name == self.shows), next(iter(pictures), None))

    @property
    def evidence(self) -> list[tuple[Item, int]]:
        """All items except the main figure, with their numbers."""
        main = self.main
        return [pair for pair in self.numbered if main is None or pair[0] is not main[0]]

    @property
    def numbered(self) -> list[tuple[Item, int]]:
        """The items with their numbers; figures and tables are numbered separately."""
        seen: dict[str, int] = {}
        numbered = []
        for item in self.items:
            seen[item.kind] = seen.get(item.kind, 0) + 1
            numbered.append((item, seen[item.kind]))
        return numbered


def counts_in_words(sorts: Sequence[str]) -> list[tuple[str, str]]:
    """Outcomes that occur, each with its number in words.

    >>> counts_in_words(["fails", "holds", "fails"])
    [('holds', '1 holds'), ('fails', '2 fail')]
    """
    words = {"holds": ("holds", "hold"), "if": ("holds if ...", "hold under conditions"), "fails": ("fails", "fail"),
             "undecided": ("undecided", "undecided")}  # fmt: skip
    counts = {sort: sorts.count(sort) for sort in words if sort in sorts}
    return [(sort, f"{count} {words[sort][count > 1]}") for sort, count in counts.items()]


def verdict_counts(answers: Sequence[str]) -> str:
    """Number of verdicts by outcome, in one line.

    >>> verdict_counts(["holds", "fails", "holds if a > b", "holds"])
    '4 verdicts: 2 hold, 1 holds if ..., 1 fails'
    """
    sorts = ["if" if answer.startswith("holds if") else answer for answer in answers]
    return f"{counted(len(answers), 'verdict')}: {', '.join(text for _, text in counts_in_words(sorts))}"


def render(page: Page) -> str:
    """The HTML of a report."""
    return templates().get_template("report.html").render(page=page, settings=settings(page.config))


def contents(page: Page) -> str:
    """The outline of a report as json, which the index page reads."""
    verdicts = [{"statement": v.statement, "answer": v.answer, "evidence": v.evidence} for v in page.verdicts]
    items = [item for item, _ in ([page.main] if page.main else []) + page.evidence]
    pictures = [f"figures/{item.path.name}" for item in items if isinstance(item, Picture)]
    table = next((x for x in items if isinstance(x, ReportTable) and x.name == "summary"), None)
    rows = [] if table is None else [[text for _, text in line] for line in table.lines]
    summary = None if table is None else {"caption": table.caption, "columns": table.columns, "rows": rows}
    outline = {"title": page.heading.title, "question": page.heading.question, "answer": page.answer,
               "state": page.state, "verdicts": verdicts, "figures": pictures, "summary": summary}  # fmt: skip
    return json.dumps(outline, indent=2, ensure_ascii=False) + "\n"


def settings(config: RunConfig) -> list[tuple[str, str]]:
    """Names and values of all settings as text."""
    general = {"mode": "small" if config.small else "full", **config.head, "seed": config.seed, "device": config.device}
    return [(heading(name), shown(value)) for name, value in {**general, **config.settings}.items()]


def heading(name: str) -> str:
    """Name of a column or setting for readers: with spaces, and λ for eigenvalues.

    >>> heading("winning_lam"), heading("lam2"), heading("gain_at_lam_2"), heading("lamp")
    ('winning λ', 'λ₂', 'gain at λ 2', 'lamp')
    """
    words = name.replace("_", " ")
    return re.sub(r"\blam(\d?)\b", lambda match: "λ" + match[1].translate(SUBSCRIPTS), words)


def shown(value: Any) -> str:
    """Value for readers: four digits, ∞, a dash for a missing number, lists with commas.

    >>> shown(0.123456), shown(float("inf")), shown([1, 2.5]), shown(1e-9), shown(40), shown(float("nan"))
    ('0.1235', '∞', '1, 2.5', '1e-09', '40', '-')
    """
    match value:
        case list() | tuple():
            return ", ".join(map(shown, value))
        case bool():
            return "yes" if value else "no"
        case float() if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        case float():
            return number_text(value, ".4g")
    return str(value)


def column_texts(values: Sequence[Value]) -> list[str]:
    """Texts of the values of a column; its numbers share their decimals, of which the largest has four digits.

    >>> column_texts([97.304, 99.0, float("nan")]), column_texts([0.5252, 1e-7]), column_texts([3, "a"])
    (['97.30', '99.00', '-'], ['0.5252', '1e-07'], ['3', 'a'])
    """
    sizes = [abs(v) for v in values if isinstance(v, float) and math.isfinite(v)]
    small = [size for size in sizes if 1e-6 * max(sizes) < size < 1e-3]
    if not sizes or small or max(sizes) >= 1e6 or all(size == round(size) for size in sizes):
        return [shown(value) for value in values]
    decimals = max(0, 3 - math.floor(math.log10(max(max(sizes), 1e-3))))
    rounded_away = 0.5 * 10.0**-decimals

    def written(value: Value) -> str:
        if not isinstance(value, float) or math.isinf(value) or 0 < abs(value) < rounded_away:
            return shown(value)
        return number_text(value, f".{decimals}f")

    return [written(value) for value in values]


def with_code(text: str) -> Markup:
    """HTML of a text with its parts between backticks as code.

    >>> with_code("a < `b`")
    Markup('a &lt; <code>b</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def is_link(value: Value) -> bool:
    """Whether a cell is the address of an anchor in a page of the same folder.

    >>> is_link("explore.html#e=BS"), is_link("a#b"), is_link(3)
    (True, False, False)
    """
    return isinstance(value, str) and LINK.fullmatch(value) is not None


@cache
def templates() -> Environment:
    """The templates, which escape HTML and refuse unknown names."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "shown": shown, "heading": heading, "with_code": with_code, "markdown": markdown_text,
        "cell": lambda text: text.replace("|", "\\|"),
        "tally": lambda verdicts: counts_in_words([verdict.sort for verdict in verdicts]),
    }  # fmt: skip
    environment.tests["link_cell"] = is_link
    return environment
