"""`TermGrammar`: the terms of which equations are built, read from toml, and the equations in a fixed order.

    source = "where the terms come from"

    [coefficients]
    names = ["alpha", "beta", "gamma"]       # one for each term, so there are at most three terms
    kind = "channel"                         # or scalar, for all of them

    [words]                                  # words of operators applied to fields, including the empty word
    letters = ["A", "L"]
    degree = 2
    fields = ["H", "H0"]

    [functions]                              # every function of every expression
    names = ["tanh", "relu"]
    of = ["H", "A@H"]

    [products]                               # elementwise products of two to `degree` factors
    factors = ["H", "A@H", "H0"]
    degree = 2
    sign = "both"

    [gates]                                  # every gate times every expression
    gates = ["sigmoid(L@H)"]
    of = ["A@H"]

    [terms]                                  # single terms
    free = ["A@tanh(H)"]
    signed = ["H*(1 - H)"]

The coefficient of a term is a free real number. In a section with sign = "both", and for signed terms, there are two
terms instead, with + and with -, whose coefficients are positive: the sign of such a term may decide whether states
blow up.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from typing import Any

from gread.settings.shipped_toml import read_toml
from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable, UnknownName
from rdgraph.language.reader import USUAL_COEFFICIENTS, check_new_name
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.equality.equality_proof import in_words, needed_for_a_value
from rdgraph.vocabulary.functions import FUNCTIONS

#: The shipped grammars, files of gread/data/terms.
SHIPPED = ("default", "small")
KINDS = ("scalar", "channel")
#: The coefficient of a term: any real number, or positive with a sign before it.
SIGNS = FREE, PLUS, MINUS = ("free", "+", "-")
KEYS = {
    "coefficients": ("names", "kind"), "words": ("letters", "degree", "fields", "sign"),
    "functions": ("names", "of", "sign"), "products": ("factors", "degree", "sign"), "gates": ("gates", "of", "sign"),
    "terms": ("free", "signed"),
}  # fmt: skip
#: The keys whose values are not lists of texts.
NUMBERS, WORDS = ("degree",), ("kind", "sign")


@dataclass(frozen=True)
class Term:
    """A term of an equation without its coefficient: the text after it, and the sign before it.

    >>> Term("A@H - H").written("alpha"), Term("H**3", "-").written("beta")
    ('+ alpha*(A@H - H)', '- beta*H**3')
    """

    body: str
    sign: str = FREE

    def written(self, coefficient: str) -> str:
        """The term as text, with its sign and coefficient."""
        inner = ast.parse(self.body, mode="eval").body
        loose = isinstance(inner, ast.UnaryOp) or (
            isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add | ast.Sub)
        )
        body = f"({self.body})" if loose else self.body
        return f"{MINUS if self.sign == MINUS else PLUS} {coefficient}*{body}"

    @property
    def is_free(self) -> bool:
        """Whether its coefficient is any real number."""
        return self.sign == FREE

    @property
    def bounded(self) -> Term:
        """The term with tanh around it."""
        return replace(self, body=f"tanh({self.body})")

    def __str__(self) -> str:
        return self.body if self.is_free else f"{self.sign}{self.body}"


@dataclass(frozen=True)
class Line:
    """An equation of a grammar: its terms, with one coefficient each, all of one kind.

    >>> Line((Term("L@H"), Term("H**3", "-")), ("alpha", "beta"), "scalar").text
    'alpha*L@H - beta*H**3 where alpha real, beta positive'
    """

    terms: tuple[Term, ...]
    names: tuple[str, ...]
    kind: str

    @property
    def size(self) -> int:
        return len(self.terms)

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients that occur, in the order of the terms."""
        return self.names[: len(self.terms)]

    @cached_property
    def text(self) -> str:
        """The equation with the declarations of its coefficients, as `rdgraph.parse` reads it."""
        pairs = list(zip(self.coefficients, self.terms, strict=True))
        parts = " ".join(term.written(name) for name, term in pairs).removeprefix(f"{PLUS} ")
        notes = [f"{n} {self.kind}" for n, _ in pairs if self.kind != "scalar" or n not in USUAL_COEFFICIENTS]
        notes += [f"{name} {'real' if term.is_free else 'positive'}" for name, term in pairs]
        head = f"-{parts[2:]}" if parts.startswith(f"{MINUS} ") else parts
        return f"{head} where {', '.join(notes)}"

    @property
    def formula(self) -> str:
        """The equation without declarations."""
        return self.text.partition(" where ")[0]

    @cached_property
    def system(self) -> System:
        return parse(self.text)

    def with_terms(self, terms: Sequence[Term]) -> Line:
        """The equation with other terms."""
        return Line(tuple(terms), self.names, self.kind)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TermGrammar:
    """The terms of which equations are built.

    Args:
        name: default, small, or the name of a file.
        source: The origin of the terms.
        terms: All terms, in the order of enumeration.
        names: Names of coefficients, at least as many as an equation has terms.
        kind: scalar or channel: the kind of all coefficients.

    Raises:
        InvalidArgument: For names that are not coefficients, no terms, duplicates, or a term that does not belong to a
            single equation without coefficients, or is not defined for every state.
        UnknownName: For an unknown kind of coefficients.

    >>> grammar = find_terms("small")
    >>> [str(term) for term in grammar.terms]
    ['H', 'A@H', 'L@H', 'H0', 'A@H0', 'L@H0', 'tanh(H)', '+H**3', '-H**3']
    >>> [line.text for line in grammar.lines(2)][9]
    'alpha*H + beta*A@H where alpha real, beta real'
    """

    name: str
    source: str
    terms: tuple[Term, ...]
    names: tuple[str, ...]
    kind: str = "scalar"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName("kind of coefficients", self.kind, KINDS)
        if not self.terms or len(set(self.terms)) < len(self.terms):
            given = ", ".join(map(str, self.terms)) or "none"
            raise InvalidArgument(f"expected different terms in {self.name}, got {given}")
        if not self.names or len(set(self.names)) < len(self.names):
            given = ", ".join(self.names) or "none"
            raise InvalidArgument(f"expected different names of coefficients in {self.name}, got {given}")
        for name in self.names:
            self._check_name(name)
        for term in self.terms:
            self._check(term)

    def _check_name(self, name: str) -> None:
        try:
            check_new_name(name)
        except LanguageError as problem:
            raise InvalidArgument(
                f"expected names of coefficients in {self.name}, got {name!r}: {problem.expected} is needed, "
                f"{problem.remedy}"
            ) from None

    def _check(self, term: Term) -> None:
        try:
            system = parse(term.body)
            system.require_single()
        except (LanguageError, NotApplicable) as problem:
            reason = problem.line if isinstance(problem, LanguageError) else problem
            raise InvalidArgument(f"expected a term of an equation in H, got {term.body!r}: {reason}") from None
        if system.coefficients:
            raise InvalidArgument(
                f"expected a term without coefficients, got {', '.join(system.coefficients)} in {term.body!r}; one is "
                "added to every term"
            )
        if needs := needed_for_a_value(system.expression, system.algebra, system.domain):
            raise InvalidArgument(
                f"expected a term that has a value for every state, got {term.body!r}, which needs "
                f"{in_words(needs[0])}; take another"
            )
        try:
            self.line([term]).system  # noqa: B018
        except LanguageError as problem:
            raise InvalidArgument(
                f"expected a term that takes a coefficient in front, got {term.body!r}: {problem.line}, or add brackets"
            ) from None

    def line(self, terms: Sequence[Term]) -> Line:
        """The equation of these terms.

        Raises:
            InvalidArgument: For no terms, or more than there are names of coefficients.
        """
        if not 1 <= len(terms) <= len(self.names):
            raise InvalidArgument(f"expected 1 to {len(self.names)} terms, as many as names, got {len(terms)}")
        return Line(tuple(terms), self.names, self.kind)

    def lines(self, size: int, first: int = 1) -> Iterator[Line]:
        """All equations of `first` to `size` terms, smaller ones first; none has a term with both signs."""
        if not 1 <= size <= len(self.names):
            raise InvalidArgument(f"expected a size between 1 and {len(self.names)}, as many as names, got {size}")
        for count in range(first, size + 1):
            for terms in combinations(self.terms, count):
                if len({term.body for term in terms}) == count:
                    yield self.line(terms)


# ---------------------------------------------------------------------- files
def find_terms(name: str | Path) -> TermGrammar:
    """The shipped grammar of that name, or the grammar of a toml file.

    Args:
        name: "default" or "small", or the path of a toml file.

    Returns:
        The grammar.

    Raises:
        UnknownName: For a name that is neither a grammar nor a file, or an unknown section, key or function.
        FileError: For a file that cannot be read.
        InvalidArgument: For a file that does not describe a grammar.

    >>> find_terms("default").kind
    'channel'
    """
    return read_toml(name, read_terms, "terms", SHIPPED, "grammar of terms")


def read_terms(text: str, name: str) -> TermGrammar:
    """The grammar that a toml text describes."""
    values = tomllib.loads(text)
    for section, table in values.items():
        if section in ("title", "source"):
            continue
        if section not in KEYS:
            raise UnknownName(f"section of the terms {name}", section, ("title", "source", *KEYS))
        _check_table(section, table)
    coefficients = values.get("coefficients", {})
    return TermGrammar(
        name, str(values.get("source", f"file {name}")), tuple(dict.fromkeys(_terms(values))),
        tuple(coefficients.get("names", ("alpha", "beta", "gamma", "delta"))), coefficients.get("kind", "scalar"),
    )  # fmt: skip


def _check_table(section: str, table: Any) -> None:
    """Refuse unknown keys and invalid values of a section."""
    if not isinstance(table, dict):
        raise InvalidArgument(f"expected a table [{section}], got {table!r}")
    for key, value in table.items():
        if key not in KEYS[section]:
            raise UnknownName(f"key of [{section}]", key, KEYS[section])
        if key in NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 8:
                raise InvalidArgument(f"expected {key} of [{section}] from 0 to 8, got {value!r}")
        elif key in WORDS:
            known = KINDS if key == "kind" else (FREE, "both")
            if value not in known:
                raise UnknownName(f"{key} of [{section}]", str(value), known)
        elif not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
            raise InvalidArgument(f"expected a list of texts as {key} of [{section}], got {value!r}")


def _terms(values: Mapping[str, Any]) -> Iterator[Term]:
    """The terms of all sections, in the order of the sections."""
    words, functions, products, gates, written = (
        values.get(section, {}) for section in ("words", "functions", "products", "gates", "terms")
    )
    operators = words.get("letters", ["A"])
    spelled = [
        "@".join([*word, field])
        for field in words.get("fields", [])
        for degree in range(words.get("degree", 1) + 1)
        for word in product(operators, repeat=degree)
    ]
    yield from _signed(spelled, words)
    for name in functions.get("names", []):
        if name not in FUNCTIONS:
            raise UnknownName("function of the language", name, FUNCTIONS)
    yield from _signed([f"{f}({x})" for f in functions.get("names", []) for x in functions.get("of", [])], functions)
    factors = [_factor(text) for text in products.get("factors", [])]
    multiplied = [
        "*".join(chosen)
        for count in range(2, products.get("degree", 2) + 1)
        for chosen in combinations_with_replacement(factors, count)
    ]
    yield from _signed(multiplied, products)
    yield from _signed([f"{g}*{_factor(x)}" for g in gates.get("gates", []) for x in gates.get("of", [])], gates)
    yield from _signed(written.get("free", []), {})
    yield from _signed(written.get("signed", []), {"sign": "both"})


def _factor(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _signed(bodies: Sequence[str], table: Mapping[str, Any]) -> Iterator[Term]:
    signs = (PLUS, MINUS) if table.get("sign") == "both" else (FREE,)
    return (Term(body, sign) for body in bodies for sign in signs)
