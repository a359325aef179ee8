"""Numbers in sentences, and plain text in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from math import isfinite


# ---------------------------------------------------------------------- wording
def counted(number: int, word: str) -> str:
    """A number with its noun, which has an s for every number but one.

    >>> counted(1, "split"), counted(10, "split"), counted(0, "trial")
    ('1 split', '10 splits', '0 trials')
    """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def near_fraction(value: float, close: float) -> Fraction | None:
    """A fraction with a denominator up to 64, or a decimal of four places, within `close` of a value; None without one.

    >>> near_fraction(0.33333333, 1e-7), near_fraction(0.123456, 1e-9)
    (Fraction(1, 3), None)
    """
    if not isfinite(value) or abs(value) > 1e6:
        return None
    candidates = (Fraction(value).limit_denominator(64), Fraction(round(value * 10**4), 10**4))
    return next((number for number in candidates if abs(float(number) - value) <= close), None)


def fraction_text(number: Fraction) -> str:
    """A number as a decimal where it ends after four places, else as p/q.

    >>> fraction_text(Fraction(1, 2)), fraction_text(Fraction(1, 3)), fraction_text(Fraction(-3))
    ('0.5', '1/3', '-3')
    """
    return f"{float(number):.10g}" if 10**4 % number.denominator == 0 else str(number)


def signed_sum(terms: Sequence[str]) -> str:
    """Terms added up; one that is written with a minus is subtracted.

    >>> signed_sum(["a", "-2*b", "c"]), signed_sum([])
    ('a - 2*b + c', '0')
    """
    text = " + ".join(terms) or "0"
    return text.replace(" + -", " - ")


def scaled_term(number: str, term: str) -> str:
    """A term times a number that is already text; 1 and -1 are not written.

    >>> scaled_term("2", "x"), scaled_term("-1", "x")
    ('2*x', '-x')
    """
    return {"1": term, "-1": f"-{term}"}.get(number, f"{number}*{term}")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names with commas between them; of many the first ones, and how many more there are.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
    ('a, b, c', 'a and 2 more')
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def markdown_text(text: str) -> str:
    """Plain text that Markdown shows as it is: the stars of formulas are no emphasis.

    >>> markdown_text("exp(-2*beta*T) < 1")
    'exp(-2\\\\*beta\\\\*T) < 1'
    """
    return text.replace("*", "\\*")


def markdown_row(cells: Iterable[object]) -> str:
    """One row of a Markdown table, of plain texts.

    >>> markdown_row(["a*b", "|h| <= 1"])
    '| a\\\\*b | \\\\|h\\\\| <= 1 |'
    """
    plain = (markdown_text(str(cell)).replace("|", r"\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(plain)} |"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(59.4), duration(600), duration(9000)
    ('59 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# ---------------------------------------------------------------------- html tables
# Small tables for notebooks: everything that is shown is escaped.


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
