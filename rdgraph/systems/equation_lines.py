"""The lines of a text: where each equation starts, which field and order its left side names, where `where` begins."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from itertools import islice

from rdgraph.errors import LanguageError
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.reader import DRIVERS, PRIME, RESERVED, STRUCTURAL
from rdgraph.systems.equation import MAX_ORDER

#: Most equations of one system, and most characters of the name of a field.
MAX_EQUATIONS = 32
MAX_NAME = 100

_LEFT = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)\s*(?P<primes>'+)|d(?P<other>[^\W\d]\w*)\s*/\s*dt)\s*=(?!=)")
# Spaces of one line only, so that many empty lines are passed over once.
_BREAK = re.compile(r";|\n(?=[^\S\n]*(?:[^\W\d]\w*[^\S\n]*'+|d[^\W\d]\w*[^\S\n]*/[^\S\n]*dt)[^\S\n]*=(?!=))")
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")
_WHERE = re.compile(r"\bwhere\b")


@dataclass(frozen=True)
class Line:
    """One equation of a text: its field and order, the columns of its right-hand side and of its declarations.

    `is_named` says whether it has a left side; without one it is dH/dt.
    """

    field: str
    order: int
    at: int
    start: int
    stop: int
    clause: int | None
    end: int
    is_named: bool


def read_lines(text: str) -> list[Line]:
    """The equations of a text, separated by `;` or by a new line that starts with u' = ... or du/dt = ...

    >>> [(line.field, line.order) for line in read_lines("u' = -u; v'' = u - v")]
    [('u', 1), ('v', 2)]
    """
    pieces = _pieces(text)
    if len(pieces) > MAX_EQUATIONS:
        at = pieces[MAX_EQUATIONS][0]
        raise LanguageError(
            text, at, expected=f"at most {MAX_EQUATIONS} equations", got="more", remedy="use fewer fields"
        )
    lines = [_line(text, start, stop, len(pieces) > 1) for start, stop in pieces]
    _check_fields(text, lines)
    return lines


def _pieces(text: str) -> list[tuple[int, int]]:
    """Columns between breaks. Blank lines are passed over, and so is what follows the last semicolon if it is blank."""
    breaks = list(islice(_BREAK.finditer(text), MAX_EQUATIONS + 1))
    starts = [0, *(found.end() for found in breaks)]
    stops = [*(found.start() for found in breaks), len(text)]
    marks = [*(found[0] for found in breaks), "\n"]
    pieces = [(a, b) for a, b, mark in zip(starts, stops, marks, strict=True) if mark == ";" or text[a:b].strip()]
    return pieces or [(0, len(text))]


def _line(text: str, start: int, stop: int, is_one_of_many: bool) -> Line:
    left = _LEFT.match(text, start, stop)
    body = left.end() if left else start
    where = _WHERE.search(text, body, stop)
    end = where.start() if where else stop
    clause = where.end() if where else None
    if left is None:
        equals = _EQUALS.search(text, start, end)
        if is_one_of_many or equals:
            at = start + len(text[start:end]) - len(text[start:end].lstrip())
            raise LanguageError(
                text, at, expected="a field with ' before the =, as in u' = ...",
                got=text[at : equals.start() if equals else end].strip()[:40] or "nothing",
                remedy="write u' for the derivative in time; a right-hand side alone is that of H'",
            )  # fmt: skip
        return Line("H", 1, start, body, end, clause, stop, is_named=False)
    name, order = left["name"] or left["other"], len(left["primes"] or PRIME)
    if order > MAX_ORDER:
        raise LanguageError(
            text, left.start("primes") + MAX_ORDER, expected="a first or a second derivative",
            got=f"{name}{PRIME * order}"[:40], remedy="add a field for the others, as in u'' = w; w' = ...",
        )  # fmt: skip
    at = left.start("name") if left["name"] else left.start("other")
    return Line(name, order, at, body, end, clause, stop, is_named=True)


def _check_fields(text: str, lines: list[Line]) -> None:
    seen: dict[str, Line] = {}
    for line in lines:
        _check_field_name(text, line)
        if line.field in seen:
            first = seen[line.field]
            orders = "" if first.order == line.order else f" of order {line.order} beside one of order {first.order}"
            raise LanguageError(
                text, line.at, expected=f"one equation for {line.field}", got=f"a second one{orders}",
                remedy="drop one of them, or name another field",
            )  # fmt: skip
        seen[line.field] = line


def _check_field_name(text: str, line: Line) -> None:
    name = line.field
    meaning = RESERVED.get(name, "")
    if (name in STRUCTURAL and name != "H") or name in DRIVERS:
        meaning = "a letter of the language"
    elif name in FUNCTIONS:
        meaning = "an elementwise function"
    elif name.endswith("0"):
        meaning = f"the start of {name[:-1]}"
    elif keyword.iskeyword(name):
        meaning = "Python, as a keyword"
    if len(name) > MAX_NAME:
        raise LanguageError(
            text, line.at, expected=f"a name of at most {MAX_NAME} characters", got=str(len(name)), remedy="call it u"
        )
    if meaning or name.startswith("_") or not name.isascii():
        got = f"{name!r}, reserved for {meaning}" if meaning else repr(name)
        raise LanguageError(text, line.at, expected="a free name for a field", got=got, remedy="call it u, v or w")
