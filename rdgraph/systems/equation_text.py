"""The text of one equation: an optional `dH/dt =`, a right-hand side, and declarations after `where`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rdgraph.errors import LanguageError, RdgraphError
from rdgraph.syntax.assumptions import SIGN_WORDS
from rdgraph.syntax.reader import MAX_LENGTH, Vocabulary, check_new_name, read_expression
from rdgraph.syntax.tree import COEFFICIENT_KINDS, Kind
from rdgraph.systems.system import System

_PREFIX = re.compile(r"\s*dH\s*/\s*dt\s*=(?!=)")
_WHERE = re.compile(r"\bwhere\b")


def as_texts(values: Any, what: str) -> list[str]:
    texts: list[Any] = list(values) if isinstance(values, Iterable) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise RdgraphError(f"expected {what} as texts, got {values!r:.60}; write them as in ['beta<0']")
    return texts


def declared_kinds(coefficients: Mapping[str, str] | Iterable[str] | None) -> dict[str, Kind]:
    """Check declarations of coefficients and turn their words into kinds."""
    if coefficients is None:
        return {}
    if isinstance(coefficients, str):
        coefficients = [coefficients]
    if isinstance(coefficients, Mapping):
        pairs = list(coefficients.items())
    else:
        pairs = [(name, "scalar") for name in as_texts(coefficients, "coefficients")]
    kinds = {}
    for name, word in pairs:
        check_new_name(name)
        if word not in COEFFICIENT_KINDS:
            raise LanguageError(
                f"{name}={word}", len(name) + 1, expected=f"a kind: {', '.join(COEFFICIENT_KINDS)}", got=repr(word),
                remedy=f"declare {name} as scalar, channel, node or matrix",
            )  # fmt: skip
        kinds[name] = Kind(word)
    return kinds


def read_system(
    text: str, kinds: Mapping[str, Kind], assumed: list[str], named: Mapping[str, System] | None = None
) -> System:
    """The system a text describes; where its right-hand side is a name in `named`, that system under declarations."""
    prefix = _PREFIX.match(text)
    start = prefix.end() if prefix else 0
    clause = _WHERE.search(text, start)
    body = text[start : clause.start()] if clause else text[start:]
    if clause:
        more_kinds, more_assumed = _read_clause(text, clause.end())
        kinds, assumed = {**more_kinds, **kinds}, more_assumed + assumed
    if named is not None and body.strip() in named:
        return named[body.strip()].declared(kinds, assumed)
    try:
        expression = read_expression(body, Vocabulary.standard(kinds))
    except LanguageError as problem:
        raise LanguageError(
            text, problem.offset + start, expected=problem.expected, got=problem.got, remedy=problem.remedy
        ) from None
    return System.build(expression, kinds, assumed)


def _read_clause(text: str, start: int) -> tuple[dict[str, Kind], list[str]]:
    kinds: dict[str, Kind] = {}
    assumed: list[str] = []
    if len(text) - start > MAX_LENGTH:
        raise LanguageError(
            text, start, expected=f"at most {MAX_LENGTH} characters after 'where'", got=f"{len(text) - start}",
            remedy="say less, or use coefficients= and assume=",
        )  # fmt: skip
    for item in text[start:].split(","):
        words = item.split()
        if len(words) == 2 and words[1] in COEFFICIENT_KINDS:
            kinds |= declared_kinds({words[0]: words[1]})
        elif (len(words) == 2 and words[1] in SIGN_WORDS) or re.search("[<>]", item):
            assumed.append(item.strip())
        else:
            raise LanguageError(
                text, start, expected="declarations after 'where', as in 'beta channel, beta < 0'",
                got=item.strip()[:40] or "nothing", remedy="separate declarations by commas",
            )  # fmt: skip
    return kinds, assumed
