"""The report of a run as one html page that needs nothing else: figures inlined, tables sortable, dark and light."""

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
from studies.runs.chart import Bars, Chart, FieldMap, MovingDots
from studies.runs.run_config import RunConfig
from studies.runs.tables import Row, Value, number_text

# ---------------------------------------------------------------------- formula
# `Formula`: an equation on a page, as rendered maths with its text beside it.


@dataclass(frozen=True)
class Formula:
    """An equation by its name, as MathML and as the text that reads back to it."""

    name: str
    mathml: str
    text: str

    @classmethod
    def of(cls, equation: str, name: str = "") -> Formula:
        """From an equation, or the name of one of the catalogue.

        Args:
            equation: as `rdgraph.parse` takes it.
            name: what the page calls it; the name of the catalogue by default.

        Example:
            >>> found = Formula.of("ST")
            >>> found.name, found.text, "<mi>β</mi>" in found.mathml
            ('ST', '-alpha*L@H + beta*H0', True)
        """
        system = parse(equation)
        return cls(name or system.name or "", system.mathml(), str(system))


# ---------------------------------------------------------------------- report
TEMPLATES = Path(__file__).parent / "templates"
#: What a page draws itself.
Drawn = Chart | FieldMap | Bars | MovingDots
#: The address of a place in a page of the same folder.
LINK = re.compile(r"[a-z_]+\.html#\S+")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Passage:
    """A heading, which may be empty, and paragraphs of plain text."""

    heading: str
    text: str
    kind = "passage"

    @property
    def paragraphs(self) -> list[str]:
        """
        >>> Passage("", "one\\ntwo\\n\\nthree").paragraphs
        ['one two', 'three']
        """
        return [" ".join(p.split()) for p in re.split(r"\n\s*\n", self.text.strip())]


def as_address(content: bytes, ending: str) -> str:
    """An image itself, as a data address.

    >>> as_address(b"GIF", "gif")
    'data:image/gif;base64,R0lG'
    """
    return f"data:image/{ending};base64,{base64.b64encode(content).decode('ascii')}"


def fewer_colours(path: Path) -> bytes:
    """A png with 64 colours, a few times smaller: it stands in for a chart where there is no script, and in print."""
    from PIL import Image

    text = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").quantize(64).save(text, format="PNG", optimize=True)
    return text.getvalue()


@dataclass(frozen=True)
class Picture:
    """A png or gif file with its caption; a page draws its chart or map instead where there is one."""

    name: str
    path: Path
    caption: str
    chart: Drawn | None = None
    kind = "picture"

    @property
    def form(self) -> str:
        """How a page shows it: as a chart, a map, bars, dots that move, or an image."""
        return {Chart: "chart", FieldMap: "map", Bars: "bars", MovingDots: "dots"}.get(type(self.chart), "image")  # type: ignore[arg-type]

    @property
    def source(self) -> str:
        """The picture itself, as a data address."""
        ending = self.path.suffix.lstrip(".")
        return as_address(self.path.read_bytes() if self.chart is None else fewer_colours(self.path), ending)

    @property
    def files(self) -> list[str]:
        """The files beside it, relative to the report."""
        endings = ("gif",) if self.path.suffix == ".gif" else ("png", "pdf", "csv")
        return [f"figures/{self.name}.{ending}" for ending in endings]


@dataclass(frozen=True)
class ReportTable:
    """Rows that share their columns."""

    name: str
    caption: str
    rows: Sequence[Row]
    kind = "table"

    @property
    def columns(self) -> list[str]:
        return list(self.rows[0]) if self.rows else []


@dataclass(frozen=True)
class ReportVerdict:
    """A statement, whether it holds, and how we know."""

    statement: str
    answer: str
    evidence: str

    @property
    def sort(self) -> str:
        """holds, fails, if or undecided: the colour of the answer."""
        return "if" if self.answer.startswith("holds if") else self.answer


Item = Passage | Picture | ReportTable


@dataclass(frozen=True)
class Heading:
    """What a run is: its title and question, the line that makes it again, and the one that goes on with it."""

    title: str
    question: str
    command: str
    resume: str


@dataclass(frozen=True)
class Page:
    """Everything a report shows; `files` says what each file of the folder holds."""

    heading: Heading
    state: str
    problem: str
    config: RunConfig
    environment: Mapping[str, Any]
    items: tuple[Item, ...]
    verdicts: tuple[ReportVerdict, ...]
    files: Mapping[str, str]
    #: Whether parts were read that another state of the code may have computed.
    mixed: bool = False
    #: The answer in a sentence, and the name of the figure that shows it; by default the first one.
    answer: str = ""
    shows: str = ""
    #: The equations that the run is about.
    formulas: tuple[Formula, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether there are charts or maps that the page itself draws."""
        return any(isinstance(item, Picture) and item.chart is not None for item in self.items)

    @property
    def is_moving(self) -> bool:
        """Whether some of them are dots that move."""
        return any(isinstance(item, Picture) and item.form == "dots" for item in self.items)

    @property
    def main(self) -> tuple[Item, int] | None:
        """The figure that stands beside the answer, with its number; None where there is none."""
        pictures = [(item, number) for item, number in self.numbered if isinstance(item, Picture)]
        return next((pair for pair in pictures if pair[0].name == self.shows), next(iter(pictures), None))

    @property
    def evidence(self) -> list[tuple[Item, int]]:
        """All items but the main figure, with their numbers."""
        main = self.main
        return [pair for pair in self.numbered if main is None or pair[0] is not main[0]]

    @property
    def tally(self) -> list[tuple[str, int]]:
        """How many verdicts there are of each sort, those that there are."""
        return verdict_tally(self.verdicts)

    @property
    def numbered(self) -> list[tuple[Item, int]]:
        """The items, figures and tables counted from 1 each."""
        seen: dict[str, int] = {}
        found = []
        for item in self.items:
            seen[item.kind] = seen.get(item.kind, 0) + 1
            found.append((item, seen[item.kind]))
        return found


def verdict_tally(verdicts: Sequence[ReportVerdict]) -> list[tuple[str, int]]:
    """How many verdicts there are of each sort, those that there are."""
    sorts = [verdict.sort for verdict in verdicts]
    return [(sort, sorts.count(sort)) for sort in ("holds", "if", "fails", "undecided") if sort in sorts]


def render(page: Page) -> str:
    """The html text of a report."""
    return templates().get_template("report.html").render(page=page, settings=settings(page.config))


def contents(page: Page) -> str:
    """The report's outline as json: what the index page shows of it."""
    verdicts = [{"statement": v.statement, "answer": v.answer, "evidence": v.evidence} for v in page.verdicts]
    drawn = [item for item, _ in ([page.main] if page.main else []) + page.evidence]
    pictures = [f"figures/{item.path.name}" for item in drawn if isinstance(item, Picture)]
    outline = {"title": page.heading.title, "question": page.heading.question, "answer": page.answer,
               "state": page.state, "verdicts": verdicts, "figures": pictures}  # fmt: skip
    return json.dumps(outline, indent=2, ensure_ascii=False) + "\n"


def settings(config: RunConfig) -> list[tuple[str, str]]:
    """Name and value of every setting, as text."""
    general = {"mode": "small" if config.small else "full", **config.head, "seed": config.seed, "device": config.device}
    return [(heading(name), shown(value)) for name, value in {**general, **config.settings}.items()]


def heading(name: str) -> str:
    """The name of a column or a setting as a reader wants it: spaces, and the Greek letter for eigenvalues.

    >>> heading("winning_lam"), heading("lam2"), heading("gain_at_lam_2"), heading("lamp")
    ('winning λ', 'λ₂', 'gain at λ 2', 'lamp')
    """
    words = name.replace("_", " ")
    return re.sub(r"\blam(\d?)\b", lambda found: "λ" + found[1].translate(SUBSCRIPTS), words)


def shown(value: Any) -> str:
    """A value as a reader wants it: four digits, infinity by its sign, a dash for no number, lists with commas.

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


def with_code(text: str) -> Markup:
    """A text whose parts between backticks are shown as code.

    >>> with_code("a < `b`")
    Markup('a &lt; <code>b</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def is_link(value: Value) -> bool:
    """Whether a cell is the address of a place in a page beside the report, which is shown as a link.

    >>> is_link("explore.html#e=BS"), is_link("a#b"), is_link(3)
    (True, False, False)
    """
    return isinstance(value, str) and LINK.fullmatch(value) is not None


def is_number(value: Value) -> bool:
    """Whether a cell is sorted and aligned as a number."""
    return not isinstance(value, str)


@cache
def templates() -> Environment:
    """The templates, with html escaped and unknown names refused."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["shown"] = shown
    found.filters["heading"] = heading
    found.filters["with_code"] = with_code
    found.tests["number_cell"] = is_number
    found.tests["link_cell"] = is_link
    return found
