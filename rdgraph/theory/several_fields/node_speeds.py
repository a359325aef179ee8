"""The right-hand sides at one node, where symbols stand for what the node collects through operators.

`Act(word, g)` becomes a symbol that remembers the word and g. Sums of |entries| over a row bound an operator: 1 for the
row normalisation and for a stochastic operator, s for any other A, s_B for an operator B, and 2 s for L = D - A.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import s
from rdgraph.language.normal_form import H0, TIME, Act, H, Mix, State
from rdgraph.language.reader import start_of
from rdgraph.language.tree import Kind
from rdgraph.reals.domain import Domain
from rdgraph.reals.rewriting import outermost
from rdgraph.systems.canonical.cancelled_parts import Nought, with_cancelled
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import REALS, record_of
from rdgraph.vocabulary.normalisations import Normalisation, find_normalisation


@dataclass(frozen=True)
class Call:
    """(word @ inner) at the node, written as `letter`; `inner` is a function of the entries of single nodes."""

    letter: sp.Symbol
    word: tuple[str, ...]
    inner: sp.Expr


@dataclass(frozen=True)
class NodeSpeeds:
    """f at one node by field, in the states, the starts, the coefficients and the symbols of the calls."""

    system: System
    record: Normalisation
    speeds: Mapping[str, sp.Expr]
    calls: tuple[Call, ...]

    @classmethod
    def of(cls, system: System, normalisation: str, *, is_open: bool = False) -> NodeSpeeds:
        """The speeds of a system; NotApplicable where matrices mix channels or operators act on what operators collect.

        With `is_open` these become calls of a nameless operator instead: symbols without any known bound.

        >>> from rdgraph.systems.parser import parse
        >>> speeds = NodeSpeeds.of(parse("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v"), "row")
        >>> [(call.word, call.inner) for call in speeds.calls]
        [(('A',), v)]
        """
        normals = normal_forms(system, normalisation)
        if is_open:
            return _opened(system, normalisation, normals)
        return cls._read(system, normalisation, normals)

    @classmethod
    def of_one(cls, system: System, *, scaled: bool = False) -> NodeSpeeds:
        """The speed of a single field, called H, on which A alone acts; NotApplicable for all other systems.

        With `scaled`, mixing matrices are multiples of the identity, each with the symbol of its matrix as factor.

        >>> from rdgraph.systems.parser import parse
        >>> one = NodeSpeeds.of_one(parse("-alpha*L@H"))
        >>> one.speed.subs({call.letter: 0 for call in one.calls}), [call.inner for call in one.calls]
        (-H*alpha, [H])
        """
        normal = system.normal.replace(Mix, _scaled) if scaled else system.normal
        for cancelled in sorted(normal.atoms(Nought), key=str):
            raise NotApplicable(cancelled.reason)
        for atom in sorted(normal.atoms(Act), key=str):
            if any(w.name != "A" for w in atom.word):
                raise NotApplicable(f"{atom} is an average of averages, or of another operator")
        return cls._read(system, "row", {H.name: normal})

    @classmethod
    def _read(cls, system: System, normalisation: str, normals: Mapping[str, sp.Expr]) -> NodeSpeeds:
        if any(normal.has(Mix) for normal in normals.values()):
            raise NotApplicable("a matrix mixes the channels")
        atoms = sorted({atom for normal in normals.values() for atom in normal.atoms(Act)}, key=str)
        for atom in atoms:
            if atom.inner.has(Act):
                raise NotApplicable(f"{atom} is an average of averages")
        letters = {atom: sp.Dummy(f"x{i}", real=True) for i, atom in enumerate(atoms)}
        calls = tuple(Call(x, tuple(w.name for w in atom.word), atom.inner) for atom, x in letters.items())
        speeds = {name: normal.xreplace(letters) for name, normal in normals.items()}
        return cls(system, find_normalisation(normalisation), speeds, calls)

    @property
    def speed(self) -> sp.Expr:
        """The speed of a single field."""
        return self.speeds[H.name]

    @property
    def varying(self) -> frozenset[sp.Symbol]:
        """Node coefficients and masks: symbols other than the states that differ from node to node."""
        kinds = self.system.algebra.kinds
        present = {x for part in self._parts for x in part.free_symbols}
        return frozenset(x for x in present if kinds.get(x.name) is Kind.NODE or x.name == "M")

    @property
    def has_source(self) -> bool:
        """Whether the start of some field occurs."""
        starts = {start_of(name) for name in self.speeds}
        return any(x.name in starts for part in self._parts for x in part.free_symbols)

    @property
    def _parts(self) -> tuple[sp.Expr, ...]:
        return (*self.speeds.values(), *(call.inner for call in self.calls))

    def uniform(self, name: str, values: Mapping[sp.Symbol, sp.Expr], weight: sp.Expr = sp.S.One) -> sp.Expr:
        """The speed of a field in states equal in all nodes, where every row of an operator sums to `weight`.

        >>> from rdgraph.systems.parser import parse
        >>> NodeSpeeds.of_one(parse("-alpha*L@H - H**3")).uniform("H", {H: sp.Integer(2)})
        -8
        """
        seen = {c.letter: weight ** len(c.word) * c.inner if "L" not in c.word else sp.S.Zero for c in self.calls}
        return sp.expand(self.speeds[name].xreplace(seen).xreplace(dict(values)))

    def uniform_one(self, value: sp.Expr, start: sp.Expr, weight: sp.Expr = sp.S.One) -> sp.Expr:
        """`uniform` of a single field with the given value, whose start has the value `start` in all nodes."""
        return self.uniform(H.name, {H: value, H0: start}, weight)


def _scaled(*arguments: sp.Basic) -> sp.Expr:
    """H @ (w I) as w H."""
    mixed = Mix(*arguments)
    return sp.Mul(*(sp.Symbol(w.name, real=True) for w in mixed.word), mixed.inner)


def _opened(system: System, normalisation: str, normals: Mapping[str, sp.Expr]) -> NodeSpeeds:
    calls: list[Call] = []

    def opened(expression: sp.Expr) -> sp.Expr:
        letters = {}
        for atom in sorted(outermost(expression.atoms(Act, Mix)), key=str):
            is_known = isinstance(atom, Act) and not atom.inner.has(Act, Mix)
            word = tuple(w.name for w in atom.word) if is_known else ()
            letters[atom] = sp.Dummy("x", real=True)
            calls.append(Call(letters[atom], word or ("",), opened(atom.inner)))
        return expression.xreplace(letters)

    speeds = {name: opened(normal.replace(Nought, lambda part: part)) for name, normal in normals.items()}
    return NodeSpeeds(system, find_normalisation(normalisation), speeds, tuple(calls))


@lru_cache(maxsize=256)
def normal_forms(system: System, normalisation: str) -> Mapping[str, sp.Expr]:
    """The normal forms of the flow under a normalisation: L = D - A stays a letter, else it is I - A."""
    if not find_normalisation(normalisation).has_degrees:
        return system.normals
    algebra = replace(system.algebra, definitions={})
    return {name: with_cancelled(tree, algebra, lambda: system.domain) for name, tree in system.flow.items()}


def states_of(system: System) -> dict[str, State]:
    """The symbols of the states, by field."""
    return {name: State(name) for name in system.fields}


def starts_of(system: System) -> dict[str, State]:
    """The symbols of the starts, by field."""
    return {name: State(start_of(name)) for name in system.fields}


def row_size(word: tuple[str, ...], system: System, record: Normalisation) -> sp.Expr:
    """A bound of the sums of |entries| over a row of a word of operators.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("u' = B@A@u where B signed")
    >>> row_size(("B", "A"), system, find_normalisation("symmetric"))
    s*s_B
    """
    return sp.Mul(*(_letter_size(letter, system, record) for letter in word))


def _letter_size(letter: str, system: System, record: Normalisation) -> sp.Expr:
    if letter in system.operators.names:
        is_average = "stochastic" in system.operators.facts(letter)
        return sp.S.One if is_average else sp.Symbol(f"s_{letter}", positive=True)
    if letter == "L":
        return 2 * s
    return sp.S.One if record.norm == "inf" else s


def timely(domain: Domain) -> Domain:
    """The domain, with times t >= 0."""
    return domain.where(sp.Ge(TIME, 0, evaluate=False))


def has_gap(expression: sp.Expr) -> bool:
    """Whether a function occurs that is not defined for all real numbers."""
    records = (record_of(call) for call in expression.atoms(sp.Function))
    return expression.has(sp.log) or any(record is not None and record.domain != REALS for record in records)
