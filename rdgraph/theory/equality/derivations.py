"""Derivations: chains of expressions in which each step is an identity of the free algebra modulo hypotheses."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import sympy as sp

from rdgraph.answers import Status
from rdgraph.errors import UnknownName
from rdgraph.language.reader import USUAL_COEFFICIENTS, read_expression
from rdgraph.language.sympy_form import number_node
from rdgraph.language.tree import Apply, Kind, Name, Plus, Times, kind_of
from rdgraph.language.tree import field as field_name
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.equality.counterexample import Witness, find_witness
from rdgraph.theory.equality.hypotheses import Hypotheses

# ---------------------------------------------------------------------- derivations
HOLDS, FAILS = "holds", "fails"


@dataclass(frozen=True)
class DerivationStep:
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
    """All steps, each with its verdict."""

    steps: tuple[DerivationStep, ...]

    @property
    def holds(self) -> bool:
        return all(step.status == HOLDS for step in self.steps)

    @property
    def failures(self) -> tuple[DerivationStep, ...]:
        return tuple(step for step in self.steps if step.status == FAILS)

    @property
    def first_failure(self) -> DerivationStep | None:
        return next(iter(self.failures), None)


@dataclass(frozen=True)
class Derivation:
    """A named chain of lines under hypotheses.

    >>> import rdgraph as rd
    >>> chain = rd.theory.Derivation("blur", ("H - L@H", "A@H"), ("L = I - A",))
    >>> chain.check().holds
    True
    >>> step = chain.under("L = D - A").check().first_failure
    >>> step.witness.nodes
    3
    """

    name: str
    lines: tuple[str, ...]
    hypotheses: tuple[str, ...] = ("L = I - A",)
    _: KW_ONLY
    letters: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    source: str = ""

    def under(self, *hypotheses: str) -> Derivation:
        """The same chain with the given hypotheses instead of those about the same names."""
        replaced = {h.partition("=")[0].strip() for h in hypotheses}
        others = [h for h in self.hypotheses if h.partition("=")[0].strip() not in replaced]
        return replace(self, hypotheses=(*hypotheses, *others))

    def with_line(self, number: int, text: str) -> Derivation:
        """The same chain with line `number` (from 1) rewritten."""
        lines = list(self.lines)
        lines[number - 1] = text
        return replace(self, lines=tuple(lines))

    @property
    def rules(self) -> Hypotheses:
        return Hypotheses(self.hypotheses, tuple(sorted(self.letters.items())))

    def check(self) -> DerivationReport:
        """The report of all steps; a failing step has the smallest counter-example that was found."""
        rules = self.rules
        trees = [read_expression(line, rules.vocabulary) for line in self.lines]
        pairs = itertools.pairwise(trees)
        steps = [
            DerivationStep(i + 1, self.lines[i], self.lines[i + 1], *identity(left, right, rules))
            for i, (left, right) in enumerate(pairs)
        ]
        return DerivationReport(tuple(steps))


def identity(left: sp.Basic, right: sp.Basic, rules: Hypotheses) -> tuple[str, Witness | None]:
    """Whether left = right in the free algebra modulo the hypotheses; operators are compared by their action on H."""
    if kind_of(left) is Kind.OPERATOR and kind_of(right) is Kind.OPERATOR:
        left, right = (Apply(side, Name("H", Kind.FIELD)) for side in (left, right))
    domain = rules.domain
    difference = sp.expand(rules.algebra.normal(left) - rules.algebra.normal(right))
    if is_zero(difference, rules.algebra, domain):
        rules.note(left, right)
        return HOLDS, None
    witness = find_witness(left, right, rules)
    return (FAILS, witness) if witness else (Status.UNDECIDED, None)


@cache
def derivations() -> dict[str, Derivation]:
    """The derivations in `data/derivations.toml`, by name."""
    raw = tomllib.loads(resources.files("rdgraph").joinpath("data/derivations.toml").read_text(encoding="utf-8"))
    chains = {}
    for item in raw["derivation"]:
        chains[item["name"]] = Derivation(
            item["name"],
            tuple(item["lines"]),
            tuple(item["hypotheses"]),
            letters=item.get("letters", {}),
            title=item["title"],
            source=item["source"],
        )
    return chains


def derivation(name: str) -> Derivation:
    """A derivation of `data/derivations.toml` by name.

    Args:
        name: the name in that file.

    Returns:
        The derivation; its `check()` decides every step.

    Raises:
        UnknownName: no derivation has this name.

    >>> import rdgraph as rd
    >>> len(rd.theory.derivation("bs-blur").lines) > 1
    True
    """
    if name not in derivations():
        raise UnknownName("derivation", name, derivations())
    return derivations()[name]


# ---------------------------------------------------------------------- step maps
# One-step maps as expressions: explicit Euler, iteration and composition, in the language itself.
#
# A map H -> g(H, H0) is a `System` whose expression is g, so that the same algebra compares layers with ODE steps.


@reads_system
def euler_map(system: System, step: Any = "epsilon") -> System:
    """H + step * f(H), one step of the explicit Euler method as a system.

    Args:
        system: dH/dt = f(H).
        step: the name of a coefficient, or a number.

    Returns:
        The map as a system whose right-hand side is the next state.

    Raises:
        InvalidArgument: a step that is not rational.

    >>> import rdgraph as rd
    >>> rd.theory.euler_map(rd.parse("SGC"), step=1).normal
    A@H
    """
    if isinstance(step, str):
        factor: sp.Basic = Name(step, Kind.SCALAR)
        kinds = system.kinds if step in USUAL_COEFFICIENTS else (*system.kinds, (step, Kind.SCALAR))
    else:
        factor, kinds = number_node(sp.sympify(step)), system.kinds
    return System.of(Plus(field_name("H"), Times(factor, system.expression)), tuple(sorted(kinds)), system.assumptions)


def compose(outer: System, inner: System) -> System:
    """outer(inner(H)): the outer map with the inner one substituted for H."""
    expression = outer.expression.xreplace({field_name("H"): inner.expression})
    kinds = dict(outer.kinds) | dict(inner.kinds)
    return System.of(expression, tuple(sorted(kinds.items())), outer.assumptions)


def iterate(step_map: System, count: int) -> System:
    """A map applied `count` times."""
    result = step_map
    for _ in range(count - 1):
        result = compose(step_map, result)
    return result
