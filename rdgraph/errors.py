"""Errors: one base class and few subclasses; every message says what is wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class RdgraphError(Exception):
    """Base of every error this package raises on purpose; it can be pickled.

    >>> import pickle, rdgraph as rd
    >>> str(pickle.loads(pickle.dumps(rd.errors.UnknownName("method", "c", ["a", "b"]))))
    "expected a method, got 'c' (known: a, b)"
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class LanguageError(RdgraphError, ValueError):
    """A text that is not an equation of the language, with the column.

    >>> import rdgraph as rd
    >>> print(rd.errors.LanguageError("A*H", 1, expected="@ to apply an operator", got="*", remedy="write A@H"))
    cannot read the equation, column 2
      A*H
       ^
    expected: @ to apply an operator
    got:      *
    remedy:   write A@H
    """

    def __init__(self, text: str, offset: int, *, expected: str, got: str, remedy: str) -> None:
        self.text = text
        self.offset = max(0, min(offset, len(text)))
        self.expected = expected
        self.got = got
        self.remedy = remedy
        super().__init__(expected, got, remedy)

    @property
    def column(self) -> int:
        """One-based column of the offending character."""
        return self.offset + 1

    @property
    def line(self) -> str:
        """The message in one line, without the text itself."""
        return f"expected {self.expected} at column {self.column}, got {self.got}; {self.remedy}"

    def __str__(self) -> str:
        excerpt, caret = _excerpt(self.text, self.offset)
        return (
            f"cannot read the equation, column {self.column}\n  {excerpt}\n  {caret}\n"
            f"expected: {self.expected}\ngot:      {self.got}\nremedy:   {self.remedy}"
        )


class NotApplicable(RdgraphError, ValueError):
    """A question or a method that does not apply to this system; the message says why."""


class InvalidArgument(RdgraphError, ValueError):
    """An argument of the wrong type, shape or size, independent of the system."""


class MissingDependency(RdgraphError, ImportError):
    """A library that is not installed; the message names the extra that installs it."""


class Diverged(RdgraphError, ArithmeticError):
    """A computation whose result is not finite."""


class FileError(RdgraphError, OSError, ValueError):
    """A file that cannot be read or written, or has the wrong content; the message names it."""


class Undecided(RdgraphError):
    """Exact methods could not decide; the message says what was tried."""


class UnknownSign(Undecided):
    """The sign of an expression is unknown; the domain can be split there."""

    def __init__(self, text: str, expression: object) -> None:
        super().__init__(text)
        self.expression = expression


class AssumptionError(RdgraphError, ValueError):
    """Assumptions on the coefficients that cannot be read or contradict each other."""


class WorkLost(RdgraphError, RuntimeError):
    """Work that no other process completed."""


#: Up to this many known names are all listed in an error; of more only the nearest.
LISTED, NEAREST = 40, 12


class UnknownName(RdgraphError, KeyError):
    """An unknown name; the message offers the closest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = closest(name, names)
        hint = f"; did you mean {close!r}?" if close else ""
        super().__init__(f"expected a {kind}, got {name!r}{hint} (known: {_listed(name, names)})")

    def __str__(self) -> str:
        return str(self.args[0])


def _restored(kind: type[RdgraphError], args: tuple[Any, ...], state: dict[str, Any]) -> RdgraphError:
    """A pickled error, restored without calling its constructor."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`; None if no name is near.

    >>> import rdgraph as rd
    >>> rd.errors.closest("alhpa", ["alpha", "beta"]), rd.errors.closest("gnc", ["gcn", "sgc"])
    ('alpha', 'gcn')
    """
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    if name.casefold() in folded:
        return folded[name.casefold()]
    matches = [
        match for match in difflib.get_close_matches(name, names, n=8, cutoff=0.6)
        if match[:1].casefold() == name[:1].casefold() or _nearness(name, match)[0] >= 0.7
    ]  # fmt: skip
    return max(matches, key=lambda match: _nearness(name, match)) if matches else None


def _nearness(name: str, match: str) -> tuple[float, bool, bool]:
    """Similarity of two names: ratio, then the same letters, then the same first letter."""
    ratio = difflib.SequenceMatcher(None, match, name).ratio()
    return ratio, sorted(name) == sorted(match), name[:1] == match[:1]


def _listed(name: str, names: list[str]) -> str:
    """All names, or the nearest ones of very many."""
    if len(names) <= LISTED:
        return ", ".join(names)
    near = difflib.get_close_matches(name, names, n=NEAREST, cutoff=0.0)
    return f"{', '.join(sorted(near))} and {len(names) - len(near)} others"


def _excerpt(text: str, offset: int, width: int = 72) -> tuple[str, str]:
    """A window of one line around the offset, and the caret line below it."""
    start = max(0, offset - width // 2)
    piece = "".join(c if c.isprintable() else " " for c in text[start : start + width])
    lead = "..." if start else ""
    tail = "..." if start + width < len(text) else ""
    return lead + piece + tail, " " * (len(lead) + offset - start) + "^"
