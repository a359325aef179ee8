"""The lines of a text: where each equation starts, which field and order its left side names, where `where` begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from rdgraph.errors import LanguageError
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.reader import DRIVERS, PRIME, RESERVED, STRUCTURAL, start_of
from rdgraph.systems.equation import MAX_ORDER

#: Most equations of one system.
MAX_EQUATIONS = 32

_LEFT = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)\s*(?P<primes>'+)|d(?P<other>[^\W\d]\w*)\s*/\s*dt)\s*=(?!=)")
_BREAK = re.compile(r";|\n(?=\s*[^\W\d]\w*\s*'+\s*=(?!=))")
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
    """The equations of a text, separated by `;` or by a new line that starts with u' = ...

    >>> [(line.field, line.order) for line in read_lines("u' = -u; v'' = u - v")]
    [('u', 1), ('v', 2)]
    """
    places = [0, *(found.end() for found in _BREAK.finditer(text)), len(text) + 1]
    pieces = [(a, b - 1) for a, b in pairwise(places)]
    if len(pieces) > 1 and not text[slice(*pieces[-1])].strip():
        pieces.pop()  # a semicolon at the end
    if len(pieces) > MAX_EQUATIONS:
        at = pieces[MAX_EQUATIONS][0]
        raise LanguageError(
            text, at, expected=f"at most {MAX_EQUATIONS} equations", got=str(len(pieces)), remedy="use fewer fields"
        )
    lines = [_line(text, start, stop, len(pieces) > 1) for start, stop in pieces]
    _check_fields(text, lines)
    return lines


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
            got=f"{name}{PRIME * order}", remedy="add a field for the others, as in u'' = w; w' = ...",
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
    for line in lines:
        starts = {start_of(other): other for other in seen}
        if line.field in starts:
            raise LanguageError(
                text, line.at, expected="a free name for a field",
                got=f"{line.field!r}, which is the start of {starts[line.field]}", remedy=f"call it {line.field}_1",
            )  # fmt: skip


def _check_field_name(text: str, line: Line) -> None:
    name = line.field
    meaning = RESERVED.get(name, "")
    if (name in STRUCTURAL and name != "H") or name in DRIVERS:
        meaning = "a letter of the language"
    elif name in FUNCTIONS:
        meaning = "an elementwise function"
    if meaning or name.startswith("_") or not name.isascii():
        got = f"{name!r}, reserved for {meaning}" if meaning else repr(name)
        raise LanguageError(text, line.at, expected="a free name for a field", got=got, remedy="call it u, v or w")
