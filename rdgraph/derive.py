"""Derivations: chains of expressions, each step an identity of the free algebra modulo the stated hypotheses."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources

import sympy as sp

from rdgraph.errors import NotApplicable, UnknownName
from rdgraph.function_identities import is_zero
from rdgraph.language import Vocabulary, read_expression
from rdgraph.nodes import Apply, Kind, Name, kind_of, names_in
from rdgraph.normal import H0, Algebra, H
from rdgraph.witness import Witness, find_witness

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


@dataclass(frozen=True)
class Hypotheses:
    """What may be used: definitions `letter = expression` and relations between operator words, `A@A = A`.

    Only these are used: without "L = I - A" among them, L is just another operator.
    """

    texts: tuple[str, ...]
    letters: tuple[tuple[str, str], ...] = ()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.standard().extended({"D": Kind.OPERATOR} | {n: Kind(k) for n, k in self.letters})

    @cached_property
    def _split(self) -> tuple[dict[str, sp.Basic], tuple[tuple[tuple[str, ...], sp.Basic], ...]]:
        definitions: dict[str, sp.Basic] = {}
        relations = []
        for text in self.texts:
            left_text, sign, right_text = text.partition("=")
            if not sign or "=" in right_text:
                raise NotApplicable(f"expected a hypothesis such as 'L = I - A', got {text!r}")
            left, right = (read_expression(t, self.vocabulary) for t in (left_text, right_text))
            vanishes = right == 0 and isinstance(left, Name) and left.kind in (Kind.MATRIX, Kind.FIELD)
            if kind_of(left) is not kind_of(right) and not vanishes:
                raise NotApplicable(f"the sides of {text!r} differ in kind: {kind_of(left)} and {kind_of(right)}")
            if isinstance(left, Name):
                definitions[left.name] = right
            else:
                relations.append((_word(left, text), right))
        _check_acyclic(definitions)
        return definitions, tuple(relations)

    @property
    def definitions(self) -> dict[str, sp.Basic]:
        return self._split[0]

    @property
    def relations(self) -> tuple[tuple[tuple[str, ...], sp.Basic], ...]:
        return self._split[1]

    @cached_property
    def algebra(self) -> Algebra:
        kinds = dict(self.vocabulary.kinds)
        symbols = {n: sp.Symbol(n, real=True) for n in kinds} | {"H": H, "H0": H0}
        return Algebra(symbols, kinds, self.definitions, self.relations)


@dataclass(frozen=True)
class Step:
    """One step: line `number` to line `number + 1`."""

    number: int
    before: str
    after: str
    status: str
    witness: Witness | None = None

    def __str__(self) -> str:
        tail = f"\n    counter-example: {self.witness}" if self.witness else ""
        return f"line {self.number} -> {self.number + 1}: {self.status}: {self.before} = {self.after}{tail}"


@dataclass(frozen=True)
class DerivationReport:
    """Every step with its verdict."""

    steps: tuple[Step, ...]

    @property
    def holds(self) -> bool:
        return all(step.status == HOLDS for step in self.steps)

    @property
    def failures(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.status == FAILS)

    @property
    def first_failure(self) -> Step | None:
        return next(iter(self.failures), None)


@dataclass(frozen=True)
class Derivation:
    """A named chain of lines under hypotheses.

    >>> chain = Derivation("blur", ("H - L@H", "A@H"), ("L = I - A",))
    >>> chain.check().holds
    True
    >>> step = chain.under("L = D - A").check().first_failure
    >>> step.witness.nodes
    3
    """

    name: str
    lines: tuple[str, ...]
    hypotheses: tuple[str, ...] = ("L = I - A",)
    letters: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    source: str = ""

    def under(self, *hypotheses: str) -> Derivation:
        """The same chain with the hypotheses about these letters exchanged."""
        replaced = {h.partition("=")[0].strip() for h in hypotheses}
        kept = [h for h in self.hypotheses if h.partition("=")[0].strip() not in replaced]
        return replace(self, hypotheses=(*hypotheses, *kept))

    def with_line(self, number: int, text: str) -> Derivation:
        """The same chain with line `number` (from 1) rewritten."""
        lines = list(self.lines)
        lines[number - 1] = text
        return replace(self, lines=tuple(lines))

    @property
    def rules(self) -> Hypotheses:
        return Hypotheses(self.hypotheses, tuple(sorted(self.letters.items())))

    def check(self) -> DerivationReport:
        """Check every step; a failing one gets the smallest counter-example that was found."""
        rules = self.rules
        trees = [read_expression(line, rules.vocabulary) for line in self.lines]
        pairs = itertools.pairwise(trees)
        steps = [
            Step(i + 1, self.lines[i], self.lines[i + 1], *identity(left, right, rules))
            for i, (left, right) in enumerate(pairs)
        ]
        return DerivationReport(tuple(steps))


def identity(left: sp.Basic, right: sp.Basic, rules: Hypotheses) -> tuple[str, Witness | None]:
    """Is left = right in the free algebra modulo the hypotheses? Operators are compared through their action on H."""
    if kind_of(left) is Kind.OPERATOR and kind_of(right) is Kind.OPERATOR:
        left, right = (Apply(side, Name("H", Kind.FIELD)) for side in (left, right))
    difference = rules.algebra.normal(left) - rules.algebra.normal(right)
    if is_zero(sp.expand(difference)):
        return HOLDS, None
    witness = find_witness(left, right, definitions=rules.definitions, relations=rules.relations)
    return (FAILS, witness) if witness else (UNDECIDED, None)


@cache
def derivations() -> dict[str, Derivation]:
    """The derivations that ship as data."""
    raw = tomllib.loads(resources.files("rdgraph").joinpath("data/derivations.toml").read_text(encoding="utf-8"))
    found = {}
    for item in raw["derivation"]:
        found[item["name"]] = Derivation(
            item["name"],
            tuple(item["lines"]),
            tuple(item["hypotheses"]),
            item.get("letters", {}),
            item["title"],
            item["source"],
        )
    return found


def derivation(name: str) -> Derivation:
    """A shipped derivation by name."""
    if name not in derivations():
        raise UnknownName("derivation", name, derivations())
    return derivations()[name]


def _word(node: sp.Basic, text: str) -> tuple[str, ...]:
    """Letters of a product of operators, outermost first."""
    if isinstance(node, Name) and node.kind is Kind.OPERATOR:
        return (node.name,)
    if isinstance(node, Apply):
        return _word(node.left, text) + _word(node.right, text)
    raise NotApplicable(f"expected a letter or a product of operators left of '=' in {text!r}, as in 'A@A = A'")


def _check_acyclic(definitions: Mapping[str, sp.Basic]) -> None:
    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise NotApplicable(f"the hypotheses define {name} through itself: {' -> '.join((*path, name))}")
        for letter in names_in(definitions[name]):
            if letter.name in definitions:
                visit(letter.name, (*path, name))

    for name in definitions:
        visit(name, ())
