"""The text of a system: right-hand sides, each after `u' =` or alone for H, and declarations after `where`.

Declarations are kinds (`beta channel`), further operators (`B antisymmetric`), assumptions (`beta < 0`), functions of
one argument (`g = H**2/(1 + H)`) and learned functions (`phi learned knots=12 odd`).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.language.assumptions import SIGN_WORDS, SYMMETRIC
from rdgraph.language.printer import to_text
from rdgraph.language.reader import (
    DRIVERS,
    GIVING_WAY,
    MAX_LENGTH,
    NOISE_LETTER,
    PRIME,
    RESERVED,
    STRUCTURAL,
    Vocabulary,
    check_new_name,
    read_expression,
    start_of,
)
from rdgraph.language.tree import COEFFICIENT_KINDS, Apply, Kind, TypeMismatch, kind_of, names_in
from rdgraph.language.unfolding import unfolded
from rdgraph.systems.equation import MAX_ORDER, Equation, Spelling
from rdgraph.systems.further_operators import OPERATOR_WORDS, FurtherOperators
from rdgraph.systems.system import System, system_text
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.learned_functions import WORD, LearnedFunction

# ---------------------------------------------------------------------- equation lines
# The lines of a text: the start of each equation, the field and order on its left side, the start of `where`.

#: Most equations of one system, and most characters of the name of a field.
MAX_EQUATIONS = 32
MAX_NAME = 100

_LEFT = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)\s*(?P<primes>'+)|d(?P<other>[^\W\d]\w*)\s*/\s*dt)\s*=(?!=)")
# Spaces of one line only, so that each empty line is skipped once.
_BREAK = re.compile(r";|\n(?=[^\S\n]*(?:[^\W\d]\w*[^\S\n]*'+|d[^\W\d]\w*[^\S\n]*/[^\S\n]*dt)[^\S\n]*=(?!=))")
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")
_WHERE = re.compile(r"\bwhere\b")


@dataclass(frozen=True)
class Line:
    """One equation of a text: its field and order, the columns of its right-hand side and of its declarations.

    `is_named`: it has a left side; without one it is dH/dt.
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
    """Columns between breaks, without blank lines and a blank rest after the last semicolon."""
    breaks = list(islice(_BREAK.finditer(text), MAX_EQUATIONS + 1))
    starts = [0, *(match.end() for match in breaks)]
    stops = [*(match.start() for match in breaks), len(text)]
    marks = [*(match[0] for match in breaks), "\n"]
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
            orders = "" if first.order == line.order else f" of order {line.order} and one of order {first.order}"
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


# ---------------------------------------------------------------------- equation text
_DEFINITION = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")


def as_texts(values: Any, what: str) -> list[str]:
    texts: list[Any] = list(values) if isinstance(values, Iterable) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(f"{what} must be a list of strings, as in ['beta<0'], got {values!r:.60}")
    return texts


def declared_kinds(coefficients: Mapping[str, str] | Iterable[str] | None) -> dict[str, Kind]:
    """The kinds of declared coefficients, checked."""
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
    """The declarations after `where`; functions are (name, its column, definition, its column).

    `columns` has the column at which a name was declared.
    """

    kinds: dict[str, Kind] = field(default_factory=dict)
    operators: dict[str, str] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    functions: list[tuple[str, int, str, int]] = field(default_factory=list)
    learned: dict[str, LearnedFunction] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)


def read_system(
    text: str,
    kinds: Mapping[str, Kind],
    assumed: list[str],
    named: Mapping[str, System] | None = None,
    operators: FurtherOperators | None = None,
) -> System:
    """The system a text describes; a right-hand side that is a name in `named` stands for that system."""
    lines = read_lines(text)
    clause = _Clause()
    for line in lines:
        if line.clause is not None:
            _read_clause(text, line.clause, line.end, clause)
    kinds = {**clause.kinds, **kinds}
    assumed = [*clause.assumed, *_symmetric_matrices(text, clause, kinds), *assumed]
    further = FurtherOperators.of(clause.operators).joined(operators or FurtherOperators())
    first = lines[0]
    body = text[first.start : first.stop].strip()
    if named is not None and not first.is_named and body in named:
        _check_learned_used(text, clause, named[body])
        return named[body].declared(kinds, assumed, further)
    states = tuple(line.field + PRIME * k for line in lines for k in range(line.order))
    is_plain = len(lines) == 1 and states == ("H",)
    _check_declared(text, clause, states, kinds, further)
    letters = {**kinds, **dict.fromkeys(further.names, Kind.OPERATOR)}
    functions = _read_functions(text, clause, letters, states)
    vocabulary = Vocabulary.standard(letters, functions, None if is_plain else states, clause.learned)
    equations = [_read_equation(text, line, vocabulary, functions) for line in lines]
    try:
        system = System.build(equations, kinds, assumed, operators=further)
    except LanguageError as problem:  # no equation has a field
        raise _moved(problem, text, _after_blanks(text, first.start)) from None
    _check_learned_used(text, clause, system)
    if (length := len(str(system)) - len(system_text(equations))) > MAX_LENGTH:
        raise LanguageError(
            text, first.start, expected=f"at most {MAX_LENGTH} characters of declarations when printed",
            got=str(length), remedy="declare fewer names, or shorter ones",
        )  # fmt: skip
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
        raise _moved(problem, text, _after_blanks(text, line.start)) from None
    except TypeMismatch as problem:
        noise = re.compile(rf"\b{NOISE_LETTER}\b").search(text, line.start, line.stop)
        raise _moved(problem, text, noise.start() if noise else line.start) from None


def _moved(problem: LanguageError | TypeMismatch, text: str, at: int) -> LanguageError:
    """The same error, located in the whole text."""
    return LanguageError(text, at, expected=problem.expected, got=problem.got, remedy=problem.remedy)


def _after_blanks(text: str, start: int) -> int:
    return len(text) - len(text[start:].lstrip())


def _check_declared(
    text: str, clause: _Clause, states: tuple[str, ...], kinds: Mapping[str, Kind], further: FurtherOperators
) -> None:
    """Raise where a name is declared twice with different meanings."""
    for name in clause.learned:
        at = clause.columns[name]
        functions = [function for function, *_ in clause.functions]
        if name in {*kinds, *further.names, *functions, *states, *map(start_of, states)}:
            raise LanguageError(
                text, at, expected=f"{name!r} as a learned function or as something else", got="both",
                remedy="declare it once",
            )  # fmt: skip
    for name in (*kinds, *further.names):
        at = clause.columns.get(name, 0)
        if name in states or name in map(start_of, states):
            raise LanguageError(
                text, at, expected=f"{name!r} as a field or as a coefficient", got="both",
                remedy="give the coefficient another name",
            )  # fmt: skip
        if name in kinds and name in further.names:
            raise LanguageError(
                text, at, expected=f"{name!r} as an operator or as a coefficient", got="both", remedy="declare it once"
            )


def _read_part(text: str, part: str, start: int, vocabulary: Vocabulary) -> sp.Basic:
    """The tree of a part of a text; errors refer to the whole text."""
    try:
        return read_expression(part, vocabulary)
    except LanguageError as problem:
        raise _moved(problem, text, problem.offset + start) from None


def _too_large(text: str, at: int, got: str) -> LanguageError:
    return LanguageError(
        text, at, expected=f"at most {MAX_LENGTH} characters with functions written out", got=got,
        remedy="nest the functions less",
    )  # fmt: skip


def _read_clause(text: str, start: int, stop: int, clause: _Clause) -> None:
    """Add the declarations between two columns of a text to a clause."""
    if stop - start > MAX_LENGTH:
        raise LanguageError(
            text, start, expected=f"at most {MAX_LENGTH} characters after 'where'", got=f"{stop - start}",
            remedy="declare less, or pass kinds= and assume=",
        )  # fmt: skip
    at = start
    for item in text[start:stop].split(","):
        words = item.split()
        definition = _DEFINITION.match(item)
        if definition:
            body = definition.end()
            clause.functions.append((definition[1], at + definition.start(1), item[body:], at + body))
        elif words[1:2] == [WORD]:
            _declare_learned(text, _after_blanks(text, at), item, clause)
        elif len(words) == 2 and words[1] in COEFFICIENT_KINDS:
            _declare_kind(text, _after_blanks(text, at), words[0], words[1], clause)
        elif len(words) >= 2 and set(words[1:]) <= set(OPERATOR_WORDS):
            _declare_operator(text, _after_blanks(text, at), words[0], words[1:], clause)
        elif (len(words) == 2 and words[1] in SIGN_WORDS) or re.search("[<>]", item):
            clause.assumed.append(item.strip())
        else:
            raise LanguageError(
                text, at, expected="declarations after 'where', as in 'beta channel, beta < 0, g = H**2'",
                got=item.strip()[:40] or "nothing", remedy="separate declarations by commas",
            )  # fmt: skip
        at += len(item) + 1


def _declare_kind(text: str, at: int, name: str, word: str, clause: _Clause) -> None:
    try:
        kind = declared_kinds({name: word})[name]
    except LanguageError as problem:
        raise _moved(problem, text, at) from None
    if (before := clause.kinds.setdefault(name, kind)) is not kind:
        raise LanguageError(
            text, at, expected=f"one kind for {name}", got=f"{before} and {kind}", remedy="drop one of them"
        )
    clause.columns[name] = at


def _declare_operator(text: str, at: int, name: str, words: list[str], clause: _Clause) -> None:
    """Add words about an operator; those of several declarations hold together."""
    words_of_all = f"{clause.operators.get(name, '')} {' '.join(words)}".strip()
    try:
        if STRUCTURAL.get(name) is not Kind.MATRIX:
            FurtherOperators.of({name: words_of_all})
    except LanguageError as problem:
        raise _moved(problem, text, at) from None
    clause.operators[name] = words_of_all
    clause.columns[name] = at


def _symmetric_matrices(text: str, clause: _Clause, kinds: Mapping[str, Kind]) -> list[str]:
    """The assumptions on matrices, moved out of the declarations of operators."""
    matrices = [name for name in clause.operators if {**STRUCTURAL, **kinds}.get(name) is Kind.MATRIX]
    for name in matrices:
        if set(words := clause.operators.pop(name).split()) != {SYMMETRIC}:
            raise LanguageError(
                text, clause.columns[name], expected=f"{SYMMETRIC}, the only declaration of a matrix",
                got=" ".join(words), remedy=f"write {name} {SYMMETRIC}, or remove the declaration",
            )  # fmt: skip
    return [f"{name} {SYMMETRIC}" for name in matrices]


def _declare_learned(text: str, at: int, item: str, clause: _Clause) -> None:
    try:
        declared = LearnedFunction.read(item)
        check_new_name(declared.name)
    except LanguageError as problem:
        raise _moved(problem, text, at) from None
    except InvalidArgument as problem:
        expected, _, rest = str(problem).removeprefix("expected ").partition(", got ")
        got, _, remedy = rest.partition("; ")
        raise LanguageError(text, at, expected=expected, got=got, remedy=remedy) from None
    if clause.learned.setdefault(declared.name, declared) != declared:
        raise LanguageError(
            text, at, expected=f"one declaration of {declared.name}", got="two that differ", remedy="drop one of them"
        )
    clause.columns[declared.name] = at


def _check_learned_used(text: str, clause: _Clause, system: System) -> None:
    """Raise where a declared function is not called: its name may be misspelt."""
    for name in clause.learned:
        if name not in system.learned:
            raise LanguageError(
                text, clause.columns[name], expected=f"{name}(...) in the equation, since {name} is declared",
                got="none", remedy="call it, or remove the declaration",
            )  # fmt: skip


def _read_functions(
    text: str, clause: _Clause, kinds: Mapping[str, Kind], states: tuple[str, ...]
) -> dict[str, sp.Basic]:
    """The declared functions, each a tree in H that may call those before it."""
    functions: dict[str, sp.Basic] = {}
    names = [name for name, *_ in clause.functions]
    letters = {**Vocabulary.standard(kinds, names).kinds, **dict.fromkeys(states, Kind.FIELD)}
    for number, (name, at, body, start) in enumerate(clause.functions):
        _check_function_name(text, name, at, letters, functions)
        _check_no_cycle(text, body, start, names[number:])
        _check_no_field(text, body, start, states)
        unused = GIVING_WAY.intersection(names) - set(kinds)
        vocabulary = Vocabulary.standard(kinds, functions, learned=clause.learned)
        tree = _read_part(text, body, start, vocabulary.without(*unused))
        if reason := _why_not_elementwise(tree):
            at_body = start + len(body) - len(body.lstrip())
            raise LanguageError(
                text, at_body, expected=f"a function of H alone, as in {name} = H**3/(1 + H**2)", got=reason,
                remedy="use H, numbers, coefficients and functions",
            )  # fmt: skip
        functions[name] = tree
    return functions


def _check_no_cycle(text: str, body: str, start: int, later: list[str]) -> None:
    """Raise where a definition calls itself or a later one, so that calls have no cycle."""
    for call in re.finditer(r"\b([^\W\d]\w*)\s*\(", body):
        if call[1] in later:
            name, caller = call[1], later[0]
            got = (
                f"{caller}, which calls itself"
                if name == caller
                else f"{caller}, which calls {name}, declared after it"
            )
            raise LanguageError(
                text, start + call.start(), expected="definitions that call only those before them, without a cycle",
                got=got, remedy="write the function out" if name == caller else f"declare {name} before {caller}",
            )  # fmt: skip


def _check_no_field(text: str, body: str, start: int, states: tuple[str, ...]) -> None:
    """Raise where a definition contains a field: its argument is always called H."""
    fields = {name for state in states for name in (state, start_of(state))} - {"H", "H0"}
    for word in re.finditer(r"[^\W\d]\w*'?", body):
        if word[0] in fields:
            raise LanguageError(
                text, start + word.start(), expected="a function of H alone, as in g = H**3/(1 + H**2)",
                got=f"the field {word[0]}", remedy=f"write H for the argument, and call the function of {word[0]}",
            )  # fmt: skip


def _check_function_name(
    text: str, name: str, at: int, letters: Mapping[str, Kind], functions: Mapping[str, sp.Basic]
) -> None:
    taken = "a letter of the equation" if name in letters else "declared twice" if name in functions else ""
    try:
        check_new_name(name)
    except LanguageError as problem:
        raise _moved(problem, text, at) from None
    if taken:
        raise LanguageError(text, at, expected="a free name", got=f"{name!r}, {taken}", remedy=f"call it {name}_1")


def _why_not_elementwise(tree: sp.Basic) -> str:
    """Why a tree is not a function of one entry; empty if it is."""
    if tree.has(Apply):
        return "an operator or a matrix product"
    others = sorted(n.name for n in names_in(tree) if n.name in {*STRUCTURAL, *DRIVERS} and n.name != "H")
    if others:
        return f"the letter {others[0]}"
    return "" if kind_of(tree) is Kind.FIELD else "an expression without H"
