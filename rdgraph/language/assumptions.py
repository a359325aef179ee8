"""`Assumptions`: signs and relations of coefficients, which are positive by default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from rdgraph.errors import AssumptionError, LanguageError
from rdgraph.language.printer import to_text
from rdgraph.language.reader import DRIVERS, Vocabulary, read_expression
from rdgraph.language.tree import ELEMENTWISE, Kind, kind_of, names_in

SIGN_WORDS = ("positive", "negative", "nonnegative", "nonpositive", "real")
#: The one declaration of a matrix.
SYMMETRIC = "symmetric"
_SIGN_OF_RELATION = {"<": "negative", "<=": "nonpositive", ">": "positive", ">=": "nonnegative"}
_DRIVER_WORDS = {"t": "the time t, which runs from 0 on", "xi": "the noise xi"}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Relation:
    """lower < upper or lower <= upper between two coefficient expressions, as trees."""

    lower: sp.Basic
    upper: sp.Basic
    strict: bool

    def __str__(self) -> str:
        return f"{to_text(self.lower)} {'<' if self.strict else '<='} {to_text(self.upper)}"


@dataclass(frozen=True)
class Assumptions:
    """Signs that differ from "positive", inequalities between coefficients, and the matrices that are symmetric.

    >>> print(Assumptions.read(["beta<0", "alpha <= 2*gamma", "W symmetric"]))
    beta negative, alpha <= 2*gamma, W symmetric
    """

    signs: tuple[tuple[str, str], ...] = ()
    relations: tuple[Relation, ...] = ()
    #: Coefficients declared positive; no hypothesis may make these negative, though it may those positive by default.
    stated_positive: frozenset[str] = field(default=frozenset(), compare=False)
    symmetric: frozenset[str] = frozenset()

    @classmethod
    def read(cls, texts: Iterable[str], kinds: Mapping[str, Kind] | None = None) -> Assumptions:
        """The assumptions in texts such as "beta<0", "beta real", "0 < beta <= alpha"."""
        signs, relations = read_statements(texts, kinds)
        ordered = tuple(sorted(pair for pair in signs.items() if pair[1] not in ("positive", SYMMETRIC)))
        positive, symmetric = (
            frozenset(name for name, sign in signs.items() if sign == word) for word in ("positive", SYMMETRIC)
        )
        return cls(ordered, tuple(dict.fromkeys(relations)), positive, symmetric)

    @property
    def stated(self) -> set[str]:
        """The coefficients whose sign was declared."""
        return {*dict(self.signs), *self.stated_positive}

    def sign(self, name: str) -> str:
        return dict(self.signs).get(name, "positive")

    def symbol(self, name: str) -> sp.Symbol:
        """The sympy symbol of a coefficient, carrying its sign."""
        sign = self.sign(name)
        return sp.Symbol(name, real=True) if sign == "real" else sp.Symbol(name, **{sign: True})

    def texts(self) -> tuple[str, ...]:
        matrices = tuple(f"{name} {SYMMETRIC}" for name in sorted(self.symmetric))
        return tuple(f"{name} {sign}" for name, sign in self.signs) + tuple(map(str, self.relations)) + matrices

    def about(self, names: Iterable[str]) -> Assumptions:
        """The assumptions about the given coefficients."""
        wanted = set(names)
        relations = tuple(
            r for r in self.relations if {n.name for n in names_in(r.lower) | names_in(r.upper)} <= wanted
        )
        signs = tuple(pair for pair in self.signs if pair[0] in wanted)
        return Assumptions(signs, relations, self.stated_positive & wanted, self.symmetric & wanted)

    def joined(self, other: Assumptions) -> Assumptions:
        """Both sets of assumptions together; signs stated twice must agree."""
        signs = dict(self.signs)
        for name, sign in other.signs:
            _add_sign(name, sign, signs)
        relations = tuple(dict.fromkeys((*self.relations, *other.relations)))
        positive = self.stated_positive | other.stated_positive
        return Assumptions(tuple(sorted(signs.items())), relations, positive, self.symmetric | other.symmetric)

    def __str__(self) -> str:
        return ", ".join(self.texts())


def read_statements(
    texts: Iterable[str], kinds: Mapping[str, Kind] | None = None
) -> tuple[dict[str, str], list[Relation]]:
    """Every sign that is stated, "positive" and "symmetric" included, and every relation."""
    vocabulary = Vocabulary.standard(kinds)
    signs: dict[str, str] = {}
    relations: list[Relation] = []
    for text in texts:
        words = text.split()
        if len(words) == 2 and words[1] in SIGN_WORDS:
            _check_coefficient(words[0], vocabulary, text)
            _add_sign(words[0], words[1], signs)
            continue
        if len(words) == 2 and words[1] == SYMMETRIC:
            _check_matrix(words[0], vocabulary, text)
            signs[words[0]] = SYMMETRIC
            continue
        for lower, sign, upper in _comparisons(text, vocabulary):
            _add_comparison(lower, sign, upper, signs, relations)
    return signs, relations


def _comparisons(text: str, vocabulary: Vocabulary) -> list[tuple[sp.Basic, str, sp.Basic]]:
    parts = re.split(r"(<=|>=|<|>)", text)
    if len(parts) < 3:
        raise AssumptionError(
            f"expected an assumption such as 'beta<0', 'beta real' or '0 < beta <= alpha', got {text!r}; "
            f"known words: {', '.join(SIGN_WORDS)}, and {SYMMETRIC} of a matrix"
        )
    sides = []
    for part in parts[::2]:
        try:
            node = read_expression(part, vocabulary)
        except LanguageError as problem:
            raise AssumptionError(f"cannot read the assumption {text!r}: {problem}") from None
        if driving := sorted(n.name for n in names_in(node) if n.name in DRIVERS):
            raise AssumptionError(f"expected coefficients and numbers in {text!r}, got {_DRIVER_WORDS[driving[0]]}")
        if kind_of(node) not in ELEMENTWISE - {Kind.FIELD}:
            article = "an" if kind_of(node) is Kind.OPERATOR else "a"
            raise AssumptionError(
                f"expected coefficients and numbers in {text!r}, got {article} {kind_of(node)}: {part.strip()}"
            )
        sides.append(node)
    return [(sides[i], parts[2 * i + 1], sides[i + 1]) for i in range(len(sides) - 1)]


def _add_comparison(
    lower: sp.Basic, sign: str, upper: sp.Basic, signs: dict[str, str], relations: list[Relation]
) -> None:
    if lower == 0:
        lower, sign, upper = upper, _FLIPPED[sign], lower
    if upper == 0 and len(names_in(lower)) == 1 and lower in names_in(lower):
        _add_sign(to_text(lower), _SIGN_OF_RELATION[sign], signs)
        return
    if sign in (">", ">="):
        lower, upper = upper, lower
    relations.append(Relation(lower, upper, strict=sign in ("<", ">")))


_ALLOWED = {
    "real": {"+", "0", "-"}, "positive": {"+"}, "negative": {"-"}, "nonnegative": {"+", "0"}, "nonpositive": {"0", "-"},
}  # fmt: skip


def _add_sign(name: str, sign: str, signs: dict[str, str]) -> None:
    """The sign that several statements have in common; raises if they contradict each other."""
    common = _ALLOWED[sign] & _ALLOWED[signs.get(name, "real")]
    word = next((w for w, allowed in _ALLOWED.items() if allowed == common), None)
    if word is None:
        raise AssumptionError(f"expected one sign for {name}, got {signs[name]} and {sign}; drop one of them")
    signs[name] = word


def _check_coefficient(name: str, vocabulary: Vocabulary, text: str) -> None:
    kind = vocabulary.kinds.get(name)
    if kind is None or kind in (Kind.FIELD, Kind.OPERATOR, Kind.MATRIX) or name in DRIVERS:
        raise AssumptionError(
            f"expected a coefficient in {text!r}, got {name!r}; declare it first or check the spelling"
        )


def _check_matrix(name: str, vocabulary: Vocabulary, text: str) -> None:
    if vocabulary.kinds.get(name) is not Kind.MATRIX:
        raise AssumptionError(f"expected a matrix in {text!r}, got {name!r}; W is one, others are declared: V matrix")
