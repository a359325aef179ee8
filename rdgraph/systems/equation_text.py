"""The text of a system: right-hand sides, each after `u' =` or alone for H, and declarations after `where`.

Declarations are kinds (`beta channel`), further operators (`B antisymmetric`), assumptions (`beta < 0`) and functions
of one argument (`g = H**2/(1 + H)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.syntax.assumptions import SIGN_WORDS
from rdgraph.syntax.fold import TypeMismatch
from rdgraph.syntax.printer import to_text
from rdgraph.syntax.reader import (
    DRIVERS,
    MAX_LENGTH,
    NOISE_LETTER,
    PRIME,
    STRUCTURAL,
    Vocabulary,
    check_new_name,
    read_expression,
    start_of,
)
from rdgraph.syntax.tree import COEFFICIENT_KINDS, Apply, Kind, kind_of, names_in
from rdgraph.syntax.unfolding import unfolded
from rdgraph.systems.equation import Equation
from rdgraph.systems.equation_lines import Line, read_lines
from rdgraph.systems.further_operators import OPERATOR_WORDS, FurtherOperators
from rdgraph.systems.spelling import Spelling
from rdgraph.systems.system import System

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
    """What follows `where`: kinds, operators, assumptions, and functions as (name, its column, text, its column)."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    operators: dict[str, str] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    functions: list[tuple[str, int, str, int]] = field(default_factory=list)


def read_system(
    text: str,
    kinds: Mapping[str, Kind],
    assumed: list[str],
    named: Mapping[str, System] | None = None,
    operators: FurtherOperators | None = None,
) -> System:
    """The system a text describes; where its right-hand side is a name in `named`, that system under declarations."""
    lines = read_lines(text)
    clause = _Clause()
    for line in lines:
        if line.clause is not None:
            _read_clause(text, line.clause, line.end, clause)
    kinds, assumed = {**clause.kinds, **kinds}, clause.assumed + assumed
    further = FurtherOperators.of(clause.operators).joined(operators or FurtherOperators())
    first = lines[0]
    body = text[first.start : first.stop].strip()
    if named is not None and not first.is_named and body in named:
        return named[body].declared(kinds, assumed, further)
    states = tuple(first.field + PRIME * k for first in lines for k in range(first.order))
    is_plain = len(lines) == 1 and states == ("H",)
    _check_declared(text, states, kinds, further)
    letters = {**kinds, **dict.fromkeys(further.names, Kind.OPERATOR)}
    functions = _read_functions(text, clause, letters)
    vocabulary = Vocabulary.standard(letters, functions, None if is_plain else states)
    equations = [_read_equation(text, line, vocabulary, functions) for line in lines]
    system = System.build(equations, kinds, assumed, operators=further)
    if functions and (length := len(str(system)) - sum(len(e.written) for e in equations)) > MAX_LENGTH:
        raise _too_large(text, first.start, f"{length} characters of declarations when printed")
    return system


def _read_equation(text: str, line: Line, vocabulary: Vocabulary, functions: Mapping[str, sp.Basic]) -> Equation:
    written = _read_part(text, text[line.start : line.stop], line.start, vocabulary)
    try:
        expression = unfolded(written, functions)
    except NotApplicable as problem:
        raise _too_large(text, line.start, str(problem).partition(", got ")[2].partition(";")[0]) from None
    if functions and (length := len(to_text(expression))) > MAX_LENGTH:
        raise _too_large(text, line.start, f"{length} characters with the functions written out")
    try:
        return Equation(line.field, line.order, expression, Spelling.of(written, functions))
    except LanguageError as problem:
        blank = len(text[line.start :]) - len(text[line.start :].lstrip())
        raise LanguageError(
            text, line.start + blank, expected=problem.expected, got=problem.got, remedy=problem.remedy
        ) from None
    except TypeMismatch as problem:
        noise = re.compile(rf"\b{NOISE_LETTER}\b").search(text, line.start, line.stop)
        at = noise.start() if noise else line.start
        raise LanguageError(text, at, expected=problem.expected, got=problem.got, remedy=problem.remedy) from None


def _check_declared(text: str, states: tuple[str, ...], kinds: Mapping[str, Kind], further: FurtherOperators) -> None:
    """Refuse a letter that is declared as two things."""
    for name in (*kinds, *further.names):
        if name in states or name in map(start_of, states):
            found = re.compile(rf"\b{name}\b").search(text)
            raise LanguageError(
                text, found.start() if found else 0, expected=f"{name!r} as a field or as a declared letter",
                got="both", remedy="give the coefficient another name",
            )  # fmt: skip
        if name in kinds and name in further.names:
            raise LanguageError(
                text, 0, expected=f"{name!r} as an operator or as a coefficient", got="both", remedy="declare it once"
            )


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


def _read_clause(text: str, start: int, stop: int, clause: _Clause) -> None:
    """Add what a text says between two columns to a clause."""
    if stop - start > MAX_LENGTH:
        raise LanguageError(
            text, start, expected=f"at most {MAX_LENGTH} characters after 'where'", got=f"{stop - start}",
            remedy="say less, or use coefficients= and assume=",
        )  # fmt: skip
    at = start
    for item in text[start:stop].split(","):
        words = item.split()
        definition = _DEFINITION.match(item)
        if definition:
            body = definition.end()
            clause.functions.append((definition[1], at + definition.start(1), item[body:], at + body))
        elif len(words) == 2 and words[1] in COEFFICIENT_KINDS:
            clause.kinds.update(declared_kinds({words[0]: words[1]}))
        elif len(words) >= 2 and set(words[1:]) <= set(OPERATOR_WORDS):
            clause.operators[words[0]] = " ".join(words[1:])
        elif (len(words) == 2 and words[1] in SIGN_WORDS) or re.search("[<>]", item):
            clause.assumed.append(item.strip())
        else:
            raise LanguageError(
                text, at, expected="declarations after 'where', as in 'beta channel, beta < 0, g = H**2'",
                got=item.strip()[:40] or "nothing", remedy="separate declarations by commas",
            )  # fmt: skip
        at += len(item) + 1


def _read_functions(text: str, clause: _Clause, kinds: Mapping[str, Kind]) -> dict[str, sp.Basic]:
    """The declared functions, each a tree in the letter H that may call those before it."""
    functions: dict[str, sp.Basic] = {}
    letters = Vocabulary.standard(kinds).kinds
    for place_in_clause, (name, at, body, place) in enumerate(clause.functions):
        _check_function_name(text, name, at, letters, functions)
        _check_no_cycle(text, body, place, [later for later, *_ in clause.functions[place_in_clause:]])
        tree = _read_part(text, body, place, Vocabulary.standard(kinds, functions))
        if reason := _why_not_elementwise(tree):
            at_body = place + len(body) - len(body.lstrip())
            raise LanguageError(
                text, at_body, expected=f"a function of H alone, as in {name} = H**3/(1 + H**2)", got=reason,
                remedy="use H, numbers, coefficients and functions",
            )  # fmt: skip
        functions[name] = tree
    return functions


def _check_no_cycle(text: str, body: str, place: int, later: list[str]) -> None:
    """Refuse a definition that calls itself or one that follows it; so no chain of calls comes back to its start."""
    for call in re.finditer(r"\b([^\W\d]\w*)\s*\(", body):
        if call[1] in later:
            name, own = call[1], later[0]
            got = f"{own}, which calls itself" if name == own else f"{own}, which calls {name}, declared after it"
            raise LanguageError(
                text, place + call.start(), expected="definitions that call only those before them, without a cycle",
                got=got, remedy="write the function out" if name == own else f"declare {name} before {own}",
            )  # fmt: skip


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
    others = sorted(n.name for n in names_in(tree) if n.name in {*STRUCTURAL, *DRIVERS} and n.name != "H")
    if others:
        return f"the letter {others[0]}"
    return "" if kind_of(tree) is Kind.FIELD else "an expression without H"
