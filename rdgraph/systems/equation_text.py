"""The text of one equation: an optional `dH/dt =`, a right-hand side, and declarations after `where`.

Declarations are kinds (`beta channel`), assumptions (`beta < 0`) and functions of one argument (`g = H**2/(1 + H)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.syntax.assumptions import SIGN_WORDS
from rdgraph.syntax.printer import to_text
from rdgraph.syntax.reader import MAX_LENGTH, STRUCTURAL, Vocabulary, check_new_name, read_expression
from rdgraph.syntax.tree import COEFFICIENT_KINDS, Apply, Kind, kind_of, names_in
from rdgraph.syntax.unfolding import unfolded
from rdgraph.systems.spelling import Spelling
from rdgraph.systems.system import System

_PREFIX = re.compile(r"\s*dH\s*/\s*dt\s*=(?!=)")
_WHERE = re.compile(r"\bwhere\b")
_DEFINITION = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")


def as_texts(values: Any, what: str) -> list[str]:
    texts: list[Any] = list(values) if isinstance(values, Iterable) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(f"expected {what} as texts, got {values!r:.60}; write them as in ['beta<0']")
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


@dataclass(frozen=True)
class _Clause:
    """What follows `where`: kinds, assumptions, and functions as (name, column of the name, text, its column)."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    functions: list[tuple[str, int, str, int]] = field(default_factory=list)


def read_system(
    text: str, kinds: Mapping[str, Kind], assumed: list[str], named: Mapping[str, System] | None = None
) -> System:
    """The system a text describes; where its right-hand side is a name in `named`, that system under declarations."""
    prefix = _PREFIX.match(text)
    start = prefix.end() if prefix else 0
    where = _WHERE.search(text, start)
    body = text[start : where.start()] if where else text[start:]
    clause = _read_clause(text, where.end()) if where else _Clause()
    kinds, assumed = {**clause.kinds, **kinds}, clause.assumed + assumed
    if named is not None and body.strip() in named:
        return named[body.strip()].declared(kinds, assumed)
    functions = _read_functions(text, clause, kinds)
    written = _read_part(text, body, start, Vocabulary.standard(kinds, functions))
    try:
        expression = unfolded(written, functions)
    except NotApplicable as problem:
        raise _too_large(text, start, str(problem).partition(", got ")[2].partition(";")[0]) from None
    if functions and (length := len(to_text(expression))) > MAX_LENGTH:
        raise _too_large(text, start, f"{length} characters with the functions written out")
    system = System.build(expression, kinds, assumed, spelling=Spelling.of(written, functions))
    if functions and (length := len(str(system)) - len(to_text(written))) > MAX_LENGTH:
        raise _too_large(text, start, f"{length} characters of declarations when printed")
    return system


def _read_part(text: str, part: str, start: int, vocabulary: Vocabulary) -> sp.Basic:
    """The tree of a part of a text; errors point into the whole."""
    try:
        return read_expression(part, vocabulary)
    except LanguageError as problem:
        raise LanguageError(
            text, problem.offset + start, expected=problem.expected, got=problem.got, remedy=problem.remedy
        ) from None


def _too_large(text: str, at: int, got: str) -> LanguageError:
    return LanguageError(
        text,
        at,
        expected=f"at most {MAX_LENGTH} characters with functions written out",
        got=got,
        remedy="nest the functions less",
    )


def _read_clause(text: str, start: int) -> _Clause:
    clause = _Clause()
    if len(text) - start > MAX_LENGTH:
        raise LanguageError(
            text, start, expected=f"at most {MAX_LENGTH} characters after 'where'", got=f"{len(text) - start}",
            remedy="say less, or use coefficients= and assume=",
        )  # fmt: skip
    at = start
    for item in text[start:].split(","):
        words = item.split()
        definition = _DEFINITION.match(item)
        if definition:
            body = definition.end()
            clause.functions.append((definition[1], at + definition.start(1), item[body:], at + body))
        elif len(words) == 2 and words[1] in COEFFICIENT_KINDS:
            clause.kinds.update(declared_kinds({words[0]: words[1]}))
        elif (len(words) == 2 and words[1] in SIGN_WORDS) or re.search("[<>]", item):
            clause.assumed.append(item.strip())
        else:
            raise LanguageError(
                text, at, expected="declarations after 'where', as in 'beta channel, beta < 0, g = H**2'",
                got=item.strip()[:40] or "nothing", remedy="separate declarations by commas",
            )  # fmt: skip
        at += len(item) + 1
    return clause


def _read_functions(text: str, clause: _Clause, kinds: Mapping[str, Kind]) -> dict[str, sp.Basic]:
    """The declared functions, each a tree in the letter H that may call those before it."""
    functions: dict[str, sp.Basic] = {}
    letters = Vocabulary.standard(kinds).kinds
    for name, at, body, place in clause.functions:
        _check_function_name(text, name, at, letters, functions)
        tree = _read_part(text, body, place, Vocabulary.standard(kinds, functions))
        if reason := _why_not_elementwise(tree):
            at_body = place + len(body) - len(body.lstrip())
            raise LanguageError(
                text, at_body, expected=f"a function of H alone, as in {name} = H**3/(1 + H**2)", got=reason,
                remedy="use H, numbers, coefficients and functions",
            )  # fmt: skip
        functions[name] = tree
    return functions


def _check_function_name(
    text: str, name: str, at: int, letters: Mapping[str, Kind], functions: Mapping[str, sp.Basic]
) -> None:
    taken = "a letter of the equation" if name in letters else "declared twice" if name in functions else ""
    try:
        check_new_name(name)
    except LanguageError as problem:
        raise LanguageError(text, at, expected=problem.expected, got=problem.got, remedy=problem.remedy) from None
    if taken:
        raise LanguageError(text, at, expected="a free name", got=f"{name!r}, {taken}", remedy=f"call it {name}_1")


def _why_not_elementwise(tree: sp.Basic) -> str:
    """What keeps a tree from being a function of one entry; empty where nothing does."""
    if tree.has(Apply):
        return "an operator or a matrix product"
    others = sorted(n.name for n in names_in(tree) if n.name in STRUCTURAL and n.name != "H")
    if others:
        return f"the letter {others[0]}"
    return "" if kind_of(tree) is Kind.FIELD else "an expression without H"
