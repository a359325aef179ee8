"""`Coupling`: which states act on which, linearly and nonlinearly, and the matrix symbol of the equations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import lam
from rdgraph.language.normal_form import Act, Mix, State
from rdgraph.language.reader import start_of
from rdgraph.language.tree import Kind
from rdgraph.systems.canonical.cancelled_parts import Nought

#: Names of operators, the one applied last first; () is the identity.
OperatorWord = tuple[str, ...]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Coupling:
    """f_i = sum_j linear[i, j] @ j + sum_j source[i, j] @ j0 + constant[i] + reaction[i] + coupled[i].

    `linear` and `source` hold scalar or channel coefficients by word; pairs without a term are omitted. `reaction` is
    a nonlinear function of single entries of the states, `coupled` the rest: operators on nonlinear terms, matrices,
    node coefficients, products with starts, what cancels but is not defined for all states; each of its terms has a
    reason in `obstacles`.
    """

    fields: tuple[str, ...]
    linear: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]
    source: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]
    constant: Mapping[str, sp.Expr]
    reaction: Mapping[str, sp.Expr]
    coupled: Mapping[str, sp.Expr]
    is_linear: bool
    obstacles: tuple[str, ...] = ()

    def symbol(self) -> sp.Matrix:
        """P(lam): a mode of L with eigenvalue lam moves by the states' matrix P(lam) alone, up to sources.

        Raises NotApplicable where the equations are not linear, or not in A alone.
        """
        if not self.is_linear or any(x.has(State, Nought) for x in self.coupled.values()):
            raise NotApplicable(f"no symbol because {'; '.join(self.obstacles)}")
        return self.linear_symbol()

    def linear_symbol(self) -> sp.Matrix:
        """The matrix symbol of the linear terms alone."""
        return self._matrix(self.linear)

    def source_symbol(self) -> sp.Matrix:
        """Q(lam), the factor of the starts; raises NotApplicable where the forcing is more than that."""
        beyond = [i for i in self.fields if self.constant[i] != 0 or self.coupled[i] != 0]
        if beyond:
            raise NotApplicable(f"no response because {'; '.join(self.obstacles)}")
        return self._matrix(self.source)

    def _matrix(self, terms: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]) -> sp.Matrix:
        rows = [[_polynomial(terms.get((i, j), {})) for j in self.fields] for i in self.fields]
        return sp.Matrix(rows)


def _polynomial(words: Mapping[OperatorWord, sp.Expr]) -> sp.Expr:
    total = sp.S.Zero
    for word, coefficient in words.items():
        further = sorted(set(word) - {"A"})
        if further:
            raise NotApplicable(
                f"no symbol in lam because the operator {further[0]} does not share the eigenvectors of L; "
                "ask for the eigenvalues on a graph"
            )
        total += coefficient * (1 - lam) ** len(word)
    return sp.collect(sp.expand(total), lam)


def coupling_of(fields: tuple[str, ...], normals: Mapping[str, sp.Expr], kinds: Mapping[str, Kind]) -> Coupling:
    """The terms of normal forms, sorted; `kinds` are the kinds of the names in them."""
    sorting = _Sorting(fields, kinds)
    for i in fields:
        for term in sp.Add.make_args(normals[i]):
            sorting.add(i, term)
    return sorting.result()


class _Sorting:
    """The parts of a coupling while its terms are being sorted."""

    def __init__(self, fields: tuple[str, ...], kinds: Mapping[str, Kind]) -> None:
        self.fields, self.kinds = fields, kinds
        self.states = {State(name): name for name in fields}
        self.starts = {State(start_of(name)): name for name in fields}
        self.linear: dict[Pair, dict[OperatorWord, sp.Expr]] = {}
        self.source: dict[Pair, dict[OperatorWord, sp.Expr]] = {}
        self.constant, self.reaction, self.coupled = (dict.fromkeys(fields, sp.S.Zero) for _ in range(3))
        self.reasons: list[str] = []
        self.is_linear = True

    def add(self, i: str, term: sp.Expr) -> None:
        if term == 0:
            return
        order = degree(term, set(self.states))
        self.is_linear = self.is_linear and order <= 1
        if isinstance(term, Nought):
            self.coupled[i] += term
            self.reasons.append(term.reason)
            return
        factor, core = _split(term, self.kinds)
        inner, word = (core.inner, tuple(w.name for w in core.word)) if isinstance(core, Act) else (core, ())
        for target, letters in ((self.linear, self.states), (self.source, self.starts)):
            if inner in letters:
                words = target.setdefault((i, letters[inner]), {})
                words[word] = words.get(word, sp.S.Zero) + factor
                return
        varying = {self.kinds.get(x.name, Kind.FIELD) for x in term.free_symbols if x not in self.states}
        if term.has(Act, Mix) or not varying <= {Kind.SCALAR, Kind.CHANNEL}:
            self.coupled[i] += term
            self.reasons.append(self.reason(term, order, Kind.NODE in varying))
        elif term.has(*self.states):
            self.reaction[i] += term
        else:
            self.constant[i] += term

    def reason(self, term: sp.Expr, order: float, has_node: bool) -> str:
        if term.has(Mix):
            return f"the matrix in {term} mixes channels"
        if order > 1:
            return f"the term {term} is nonlinear and couples nodes"
        if has_node:
            return f"the node coefficient in {term} does not commute with A"
        return f"the term {term} is not a multiple of {self.multiples('A^k ')}"

    def multiples(self, lead: str = "") -> str:
        """The states and initial states that a linear system may contain, in words."""
        letters = [f"{lead}{x}" for name in self.fields for x in (name, start_of(name))]
        return f"{', '.join(letters[:-1])} or {letters[-1]}"

    def result(self) -> Coupling:
        reactions = [f"the reaction {x} is nonlinear" for x in self.reaction.values() if x != 0]
        constants = [
            f"the constant forcing {x} is not a multiple of {self.multiples()}"
            for x in self.constant.values()
            if x != 0
        ]
        obstacles = tuple(dict.fromkeys([*self.reasons, *reactions, *constants]))
        linear, source = _expanded(self.linear), _expanded(self.source)
        return Coupling(
            self.fields, linear, source, self.constant, self.reaction, self.coupled, self.is_linear, obstacles
        )


def _expanded(terms: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]) -> dict[Pair, dict[OperatorWord, sp.Expr]]:
    """Coefficients multiplied out, without zeros, short words first."""
    expanded = {}
    for pair, words in terms.items():
        coefficients = {w: sp.expand(words[w]) for w in sorted(words, key=lambda w: (len(w), w))}
        coefficients = {w: c for w, c in coefficients.items() if c != 0}
        if coefficients:
            expanded[pair] = coefficients
    return expanded


def _split(term: sp.Expr, kinds: Mapping[str, Kind]) -> tuple[sp.Expr, sp.Expr]:
    """The scalar and channel factors of a term, and the rest of it."""
    factor, core = sp.S.One, sp.S.One
    for piece in sp.Mul.make_args(term):
        kinds_in_piece = {kinds.get(s.name, Kind.FIELD) for s in piece.free_symbols}
        if piece.has(State, Act, Mix) or not kinds_in_piece <= {Kind.SCALAR, Kind.CHANNEL}:
            core *= piece
        else:
            factor *= piece
    return factor, core


def degree(expression: sp.Expr, states: set[State]) -> float:
    """Degree in the states together; infinite for anything that is not a polynomial in them and their images."""
    if not expression.has(*states):
        return 0
    if expression in states:
        return 1
    match expression:
        case Act() | Mix():
            return degree(expression.inner, states)
        case sp.Add():
            return max(degree(a, states) for a in expression.args)
        case sp.Mul():
            return sum(degree(a, states) for a in expression.args)
        case sp.Pow(exp=sp.Integer()) if expression.exp > 0:
            return degree(expression.base, states) * int(expression.exp)
    return float("inf")
