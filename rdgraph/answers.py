"""`Answer`: what every question returns: a value, its certainty, the reason and the assumptions.

An answer to a yes-or-no question is true only if it is yes and certain; an answer with several values has a length;
every other answer has no truth value: `if answer:` raises an error that names the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

import sympy as sp

from rdgraph.reals.basis import BOUNDED
from rdgraph.reals.condition_words import condition_in_words, in_words, number_in_words
from rdgraph.wording import html_table


class Status(StrEnum):
    """How certain an answer is.

    proved: by exact algebra. bounded: proved as a bound that need not be attained, or with numbers enclosed by
    interval arithmetic. measured: computed in floating point, without proof. undecided: the reason says what was
    tried. refused: the question does not apply; the reason says why.

    >>> import rdgraph as rd
    >>> rd.Status.PROVED == "proved", rd.Status.UNDECIDED
    (True, 'undecided')
    """

    PROVED = "proved"
    BOUNDED = "bounded"
    MEASURED = "measured"
    UNDECIDED = "undecided"
    REFUSED = "refused"

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def is_certain(self) -> bool:
        """Whether it is proved or bounded, so that no run can contradict it."""
        return self in (Status.PROVED, Status.BOUNDED)


class Answer:
    """The answer to a question about an equation or a layer.

    Answers with more fields are subclasses: frozen dataclasses with `repr=False` and fields or properties of these
    names.

    Args:
        value: the answer itself; None where none exists or none is known.
        status: how certain it is.
        reason: why, in words.
        assumes: assumptions beyond the question, such as on the graph; by normalisation where they differ.
        conditions: conditions on coefficients under which it holds, as relations or in words.

    The field `engines` says who decided it: "z3 and cvc5", or how many questions z3 decided alone; "" without either.

    >>> import sympy as sp, rdgraph as rd
    >>> slope = sp.Symbol("beta") * 2
    >>> answer = rd.Answer(slope, rd.Status.PROVED, "the largest slope", assumes="the graph is undirected")
    >>> print(answer)
    2*beta, assuming that the graph is undirected (proved: the largest slope)
    >>> answer.to_dict()["value"], answer.status == "proved"
    ('2*beta', True)
    """

    if TYPE_CHECKING:  # read only for mypy; at run time a default here would be that of every subclass

        @property
        def value(self) -> Any: ...

        @property
        def status(self) -> Status: ...

        @property
        def reason(self) -> str: ...

        @property
        def assumes(self) -> str | Mapping[str, str]: ...

        @property
        def conditions(self) -> Any: ...

        @property
        def engines(self) -> str: ...

    else:
        reason, assumes, conditions, engines = "", "", (), ""

    def __init__(
        self, value: Any, status: Status, reason: str = "", *, assumes: str | Mapping[str, str] = "",
        conditions: Iterable[Any] = (),
    ) -> None:  # fmt: skip
        given = {
            "value": value, "status": Status(status), "reason": reason, "assumes": assumes,
            "conditions": tuple(conditions),
        }  # fmt: skip
        for name, part in given.items():
            object.__setattr__(self, name, part)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to {name}: answers do not change")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete {name}: answers do not change")

    def _parts(self) -> tuple[Any, ...]:
        return (self.value, self.status, self.reason, self.assumes, self.conditions)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), str(self)))

    def __bool__(self) -> bool:
        if isinstance(self.value, bool):
            return self.value and self.status.is_certain
        raise TypeError(
            f"{type(self).__name__} with the value {self.value} is not a yes-or-no answer, so it has no truth value; "
            "ask for .value, or compare .status"
        )

    # ------------------------------------------------------------------ in words
    @property
    def headline(self) -> str:
        """The value in words, without reason and assumptions."""
        return shown(self.value)

    @property
    def why(self) -> str:
        """The reason, without the word of the status."""
        return self.reason.removeprefix(f"{Status.UNDECIDED}: ")

    @property
    def remark(self) -> str:
        """The reason as a note, which begins with "undecided" where the answer is."""
        return f"undecided: {self.why}" if self.status == Status.UNDECIDED and self.reason else self.why

    def __str__(self) -> str:
        if self.status == Status.UNDECIDED:
            return self.remark or "undecided"
        if self.status == Status.REFUSED:
            return f"not applicable: {self.reason}"
        where = f" where {' and '.join(map(condition_shown, self.conditions))}" if self.conditions else ""
        assumed = self.assumes if isinstance(self.assumes, str) else listed_by_name(self.assumes)
        assuming = f", assuming that {assumed}" if assumed else ""
        return f"{self.headline}{where}{assuming} ({self.status}{f': {self.why}' if self.reason else ''})"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        """Heads and cells of the table in a notebook."""
        answer = self.headline if self.status.is_certain or self.value is not None else str(self.status)
        assumed = self.assumes if isinstance(self.assumes, str) else listed_by_name(self.assumes)
        rows = [("answer", answer), ("status", str(self.status)), ("reason", self.why), ("assumes", assumed)]
        rows.append(("where", " and ".join(map(condition_shown, self.conditions))))
        return [(head, cell) for head, cell in rows if cell]

    def _repr_latex_(self) -> str | None:
        value = self.value
        is_formula = isinstance(value, sp.Basic | sp.MatrixBase) and self.status.is_certain
        return f"${sp.latex(value)}$" if is_formula else None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, for json."""
        return {
            "value": plain(self.value),
            "status": str(self.status),
            "reason": self.why,
            "assumes": plain(self.assumes),
            "conditions": plain(self.conditions),
            "engines": self.engines,
        }


#: The status of several answers together is the last of these that occurs.
ORDER = (Status.PROVED, Status.BOUNDED, Status.MEASURED, Status.REFUSED, Status.UNDECIDED)


class AnswersByName(Answer):
    """One question asked under several normalisations: an answer for each, read by its name.

    >>> both = AnswersByName({"row": Answer(sp.Integer(2), Status.PROVED), "none": refused("A is not bounded")})
    >>> print(both)
    2 (row); not applicable: A is not bounded (none)
    >>> both["row"].value, both.status.value
    (2, 'refused')
    """

    def __init__(self, parts: Mapping[str, Answer]) -> None:
        status = max((part.status for part in parts.values()), key=ORDER.index, default=Status.UNDECIDED)
        reasons = {name: part.why for name, part in parts.items()}
        texts = dict.fromkeys(text for text in reasons.values() if text)
        reason = next(iter(texts), "") if len(texts) < 2 else listed_by_name(reasons)
        super().__init__({name: part.value for name, part in parts.items()}, status, reason)
        object.__setattr__(self, "parts", dict(parts))
        engines = {name: part.engines for name, part in parts.items()}
        distinct = set(engines.values())
        object.__setattr__(self, "engines", distinct.pop() if len(distinct) == 1 else listed_by_name(engines))

    if TYPE_CHECKING:

        @property
        def parts(self) -> dict[str, Answer]: ...

    def __getitem__(self, name: str) -> Answer:
        return self.parts[name]

    def __str__(self) -> str:
        texts = {n: part.headline if part.status.is_certain else str(part) for n, part in self.parts.items()}
        return next(iter(texts.values())) if len(set(texts.values())) == 1 else listed_by_name(texts)

    def to_dict(self) -> dict[str, Any]:
        """The answers by name as plain values, for json."""
        return {name: part.to_dict() for name, part in self.parts.items()}


def certainty(reason: str) -> Status:
    """The status of an answer with a reason: bounded where it rests on interval arithmetic, else proved.

    >>> certainty("the vector field is affine in H").value, certainty(f"by its slope; {BOUNDED}").value
    ('proved', 'bounded')
    """
    return Status.BOUNDED if BOUNDED in reason else Status.PROVED


def refused(problem: Exception | str) -> Answer:
    """The answer to a question that does not apply.

    >>> print(refused("the system has no symbol"))
    not applicable: the system has no symbol
    """
    return Answer(None, Status.REFUSED, str(problem))


def undecided(problem: Exception | str) -> Answer:
    """The answer to an undecided question.

    >>> print(undecided("time ran out after 10 s"))
    undecided: time ran out after 10 s
    """
    return Answer(None, Status.UNDECIDED, str(problem))


def shown(value: Any) -> str:
    """A value in words: formulas with their cases spelled out, intervals, lists.

    >>> a = sp.Symbol("a")
    >>> shown(sp.Piecewise((0, a > 1), (a, True))), shown(True), shown(None), shown((0, a)), shown({"row": a})
    ('0 if a > 1, otherwise a', 'yes', 'none', '0, a', 'a (row)')
    """
    match value:
        case None | () | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return number_in_words(value)
        case sp.Rel() | sp.And() | sp.Or():
            return condition_in_words(value)
        case sp.Basic():
            return in_words(value)
        case Mapping():
            return ", ".join(f"{shown(part)} ({name})" for name, part in value.items())
        case list() | tuple():
            return ", ".join(map(shown, value))
    return str(value)


def condition_shown(condition: Any) -> str:
    """A condition in words, whether it is a relation or text."""
    return condition_in_words(condition) if isinstance(condition, sp.Basic) else str(condition)


def listed_by_name(texts: Mapping[str, str]) -> str:
    """Texts by normalisation in one line.

    >>> listed_by_name({"row": "undirected", "column": ""})
    'undirected (row)'
    """
    return "; ".join(f"{text} ({name})" for name, text in texts.items() if text)


def plain(value: Any) -> Any:
    """The value for json: formulas as text, arrays as lists.

    >>> plain({"x": (sp.Symbol("a") + 1, sp.oo)})
    {'x': ['a + 1', 'oo']}
    """
    match value:
        case Answer():
            return value.to_dict()
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(part) for part in value]
    return (
        value.tolist() if hasattr(value, "tolist") and not isinstance(value, sp.Basic | sp.MatrixBase) else str(value)
    )
