"""One entry of f in terms of single entries of the state, the coefficients and the mixing matrices.

The graph is a tree in which every node collects from infinitely many neighbours of two kinds, so that the weights of
the reverse edges vanish: A collects a third from the first kind, two thirds from the second. Such trees are limits of
undirected graphs with equal degrees, on which the symmetric, row and column normalisations agree; the entries of all
nodes are independent, and so are A@H, A@(A@H) and similar nonlinear terms at the root. What these entries determine is
therefore determined by the right-hand sides on all graphs together.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp
from flint import arb, ctx

from rdgraph.language.normal_form import Act, Mix
from rdgraph.language.reader import TIME_LETTER
from rdgraph.language.tree import COEFFICIENT_KINDS, Kind
from rdgraph.reals.enclosure import NotEnclosed, enclose
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import FUNCTIONS

# ---------------------------------------------------------------------- form

#: Names that are given with the state, in addition to fields and operators; all others are unknowns.
GIVEN = {"M", TIME_LETTER}


def is_unknown(name: str, kind: Kind) -> bool:
    """Whether a name is a coefficient or a matrix whose value is unknown."""
    return kind in COEFFICIENT_KINDS and name not in GIVEN


#: Functions with a kink at zero, whose value at a*x depends on the sign of a.
KINKED = (*(record.sympy for record in FUNCTIONS.values() if record.pieces is not None), sp.sign, sp.Heaviside)


@dataclass(frozen=True)
class ExaminedForm:
    """A normal form and its unknowns, on the admissible coefficients with known signs.

    Matrices that occur only as one product are one unknown, named like the product: `W@V`.
    """

    system: System
    expression: sp.Expr
    kinds: Mapping[str, Kind]
    signs: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def letters(self) -> dict[str, Kind]:
        """The unknowns that f depends on: coefficients and mixing matrices."""
        present = {x.name for x in self.expression.free_symbols}
        return {name: kind for name, kind in self.kinds.items() if is_unknown(name, kind) and name in present}

    @cached_property
    def relations(self) -> tuple[sp.Basic, ...]:
        """The inequalities between coefficients that are assumed."""
        relations = []
        for relation in self.system.assumptions.relations:
            gap = self.system.algebra.normal(relation.upper) - self.system.algebra.normal(relation.lower)
            relations.append(sp.Gt(gap, 0) if relation.strict else sp.Ge(gap, 0))
        return tuple(r for r in relations if r != sp.true)

    def symbol(self, name: str) -> sp.Symbol:
        """The symbol of an unknown in the expression; matrices are plain symbols of a word."""
        if self.kinds[name] is Kind.MATRIX:
            return sp.Symbol(name)
        return sp.Symbol(name, **{self.signs[name]: True}) if name in self.signs else self.system.algebra.symbols[name]


def forms(system: System, expression: sp.Expr) -> tuple[ExaminedForm, ...]:
    """The forms of f for all choices of the signs that decide the side of a kink."""
    free = sorted(
        x.name
        for x in {x for atom in expression.atoms(*KINKED) for x in atom.free_symbols}
        if x.name in system.coefficients and not (x.is_nonnegative or x.is_nonpositive)
    )
    return tuple(_form(system, expression, dict(zip(free, choice, strict=True))) for choice in _choices(len(free)))


def whole(system: System, expression: sp.Expr) -> ExaminedForm:
    """The form on all admissible coefficients at once, for any signs."""
    return _form(system, expression, {})


def _choices(letters: int) -> Iterator[tuple[str, ...]]:
    return itertools.product(("positive", "negative"), repeat=letters)


def _form(system: System, expression: sp.Expr, signs: Mapping[str, str]) -> ExaminedForm:
    signed = {system.algebra.symbols[name]: sp.Symbol(name, **{sign: True}) for name, sign in signs.items()}
    merged, kinds = _merged(expression.xreplace(signed), system.letters)
    return ExaminedForm(system, merged, kinds, signs)


def _merged(expression: sp.Expr, kinds: Mapping[str, Kind]) -> tuple[sp.Expr, dict[str, Kind]]:
    """The expression with one matrix for every pair of matrices that occurs only as a product, and the kinds."""
    words = {tuple(w.name for w in atom.word) for atom in expression.atoms(Mix)}
    pair = next((p for word in words for p in itertools.pairwise(word) if _inseparable(p, words)), None)
    known = dict(kinds)
    if pair is None:
        return expression, known
    name = "@".join(pair)
    joined = expression.replace(lambda e: isinstance(e, Mix), lambda e: Mix(_joined(e.word, pair, name), e.inner))
    return _merged(joined, {**{n: k for n, k in known.items() if n not in pair}, name: Kind.MATRIX})


def _inseparable(pair: tuple[str, str], words: set[tuple[str, ...]]) -> bool:
    first, second = pair
    together = sum(p == pair for word in words for p in itertools.pairwise(word))
    return first != second and all(sum(word.count(n) for word in words) == together for n in pair)


def _joined(word: tuple[sp.Symbol, ...], pair: tuple[str, str], name: str) -> tuple[sp.Symbol, ...]:
    letters: list[sp.Symbol] = []
    for letter in word:
        if letters and (letters[-1].name, letter.name) == pair:
            letters[-1] = sp.Symbol(name)
        else:
            letters.append(letter)
    return tuple(letters)


# ---------------------------------------------------------------------- entries
#: A node of the tree: which branch was taken at every step from the root.
Node = tuple[int, ...]
ROOT: Node = ()
#: A node without neighbours: A@1 is 0 there and 1 elsewhere.
ALONE: Node = (-1,)

#: Weights of the two kinds of neighbours; from this depth on there is only one kind, to limit the size.
SHARES = (sp.Rational(1, 3), sp.Rational(2, 3))
BRANCHING_DEPTH = 3


@dataclass(frozen=True)
class FieldEntries:
    """The entries of f at the root of the tree, one per channel, and at its ancestors where nodes have coefficients.

    `parameters` are the unknowns in them: a scalar is one, a channel coefficient one per channel (`b[0]`), a node
    coefficient one per node (`k[()]`), a matrix one per pair of channels (`W[0,1]`).
    """

    form: ExaminedForm
    _known: dict[tuple[sp.Expr, Node, int], sp.Expr] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def channels(self) -> int:
        """The number of channels: enough to separate scalars from coefficients that differ between channels."""
        kinds = list(self.form.letters.values())
        if Kind.MATRIX in kinds:
            return 2
        return min(1 + kinds.count(Kind.SCALAR), 3) if Kind.CHANNEL in kinds else 1

    @cached_property
    def watched(self) -> Node:
        """The node with the unknown coefficients: as deep as f reaches, so that its neighbours depend on it too."""
        if Kind.NODE not in self.form.letters.values():
            return ROOT
        return (0,) * min(reach(self.form.expression), BRANCHING_DEPTH)

    @cached_property
    def values(self) -> tuple[sp.Expr, ...]:
        """f at the watched node and at the nodes above it, in every channel."""
        path = [self.watched[:k] for k in range(len(self.watched) + 1)]
        if any(not atom.inner.free_symbols for atom in self.form.expression.atoms(Act)):
            path.append(ALONE)
        return tuple(self.entry(self.form.expression, node, c) for node in path for c in range(self.channels))

    @cached_property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        parameters = {x for value in self.values for x in value.free_symbols if self.origin(x) in self.form.letters}
        return tuple(sorted(parameters, key=str))

    @cached_property
    def is_affine(self) -> bool:
        """Whether the values are affine in the parameters: no slope depends on a parameter.

        Then f determines globally what it determines locally.
        """
        parameters = set(self.parameters)
        return all(not sp.diff(value, x).free_symbols & parameters for value in self.values for x in self.parameters)

    @cached_property
    def states(self) -> tuple[sp.Symbol, ...]:
        symbols = {x for value in self.values for x in value.free_symbols}
        return tuple(sorted(symbols - set(self.parameters), key=str))

    @staticmethod
    def origin(symbol: sp.Basic) -> str:
        """The name of which a symbol is one entry.

        >>> FieldEntries.origin(sp.Symbol("W[0,1]"))
        'W'
        """
        return str(symbol).partition("[")[0]

    def parts(self, expression: sp.Expr) -> list[sp.Expr]:
        """An expression in coefficients, entry by entry: alpha*W + b*I is alpha*W[0,0] + b[0], alpha*W[0,1], ..."""
        names = {x.name: x for x in expression.free_symbols}
        kinds = {Kind.MATRIX if n == "I" else self.form.letters[n] for n in names}
        rows = range(self.channels if Kind.MATRIX in kinds else 1)
        columns = range(self.channels if kinds & {Kind.MATRIX, Kind.CHANNEL} else 1)
        return [
            sp.sympify(expression.xreplace({x: self._part(n, i, j) for n, x in names.items()}))
            for i in rows
            for j in columns
        ]

    def _part(self, name: str, row: int, column: int) -> sp.Expr:
        if name == "I":
            return sp.Integer(int(row == column))
        if self.form.letters[name] is Kind.MATRIX:
            return self._matrix((name,))[row, column]
        return self._symbol(self.form.symbol(name), self.watched, column)

    def _matrix(self, word: tuple[str, ...]) -> sp.Matrix:
        size = self.channels
        product = sp.eye(size)
        for name in word:
            product *= sp.Matrix(size, size, lambda i, j, name=name: sp.Symbol(f"{name}[{i},{j}]", real=True))
        return product

    def entry(self, expression: sp.Expr, node: Node, channel: int) -> sp.Expr:
        """The value of a normal form at a node and in a channel."""
        key = (expression, node, channel)
        if key not in self._known:
            self._known[key] = self._entry(expression, node, channel)
        return self._known[key]

    def _entry(self, expression: sp.Expr, node: Node, channel: int) -> sp.Expr:
        match expression:
            case Act():
                collected = descendants(node, len(expression.word))
                return sp.Add(*(share * self.entry(expression.inner, n, channel) for n, share in collected.items()))
            case Mix():
                row = sp.Matrix([[self.entry(expression.inner, node, c) for c in range(self.channels)]])
                return sp.expand((row * self._matrix(tuple(w.name for w in expression.word)))[channel])
            case sp.Symbol():
                return self._symbol(expression, node, channel)
        if not expression.args:
            return expression
        return expression.func(*(self.entry(part, node, channel) for part in expression.args))

    def _symbol(self, letter: sp.Symbol, node: Node, channel: int) -> sp.Expr:
        kind = self.form.kinds.get(letter.name, Kind.FIELD)
        path = "".join(map(str, node))
        match kind:
            case Kind.SCALAR:
                return letter
            case Kind.CHANNEL:
                return sp.Symbol(f"{letter.name}[{channel}]", **letter._assumptions_orig)
            case Kind.NODE:
                return sp.Symbol(f"{letter.name}[node {path}]", **letter._assumptions_orig)
        return sp.Symbol(f"{letter.name}[node {path},{channel}]", real=True)


def descendants(node: Node, steps: int) -> Mapping[Node, sp.Expr]:
    """The nodes from which A^steps collects, with their weights."""
    if node == ALONE and steps:
        return {}
    level: dict[Node, sp.Expr] = {node: sp.S.One}
    for _ in range(steps):
        shares = SHARES if len(next(iter(level))) < BRANCHING_DEPTH else (sp.S.One,)
        level = {(*n, k): weight * share for n, weight in level.items() for k, share in enumerate(shares)}
    return level


def reach(expression: sp.Expr) -> int:
    """The largest number of steps over which f collects."""
    steps = len(expression.word) if isinstance(expression, Act) else 0
    return steps + max((reach(part) for part in expression.args if isinstance(part, sp.Expr)), default=0)


# ---------------------------------------------------------------------- ranks
# Proved lower bounds of ranks: pivots of Gaussian elimination that are nonzero in ball arithmetic.

#: Bits of the balls; values below 2**-ZERO_BITS count as measured zeros.
BITS = 320
ZERO_BITS = 160

Point = dict[sp.Basic, sp.Expr]


def certain_rank(rows: Sequence[Sequence[Any]]) -> int:
    """A lower bound of the rank of a matrix of balls: the number of pivots that are proved to be nonzero.

    >>> from flint import arb
    >>> third = arb(1) / 3
    >>> certain_rank([[third, 1], [1, 3]]), certain_rank([[third, 1], [1, arb(2)]])
    (1, 2)
    """
    rest = [[arb(entry) for entry in row] for row in rows]
    rank = 0
    with ctx.workprec(BITS):
        while rest and rest[0]:
            size, i, j = max(
                (float(entry.abs_lower()), i, j) for i, row in enumerate(rest) for j, entry in enumerate(row)
            )
            if size <= 2.0**-ZERO_BITS:
                break
            pivot = rest.pop(i)
            rest = [_eliminated(row, pivot, j) for row in rest]
            rank += 1
    return rank


def _eliminated(row: list[Any], pivot: list[Any], column: int) -> list[Any]:
    """A row minus the multiple of the pivot's that clears a column, without that column."""
    factor = row[column] / pivot[column]
    return [entry - factor * pivot[k] for k, entry in enumerate(row) if k != column]


def balls(rows: Sequence[Sequence[sp.Expr]], point: Point) -> list[list[Any]]:
    """Enclosures of the rows of entries at a point, without rows that have no finite real values there."""
    enclosed = []
    for row in rows:
        try:
            enclosed.append([enclose(sp.sympify(entry).xreplace(point), BITS) for entry in row])
        except NotEnclosed:
            continue
    return enclosed


def admissible_points(
    form: ExaminedForm, parameters: Sequence[sp.Symbol], count: int, scale: int = 1
) -> Iterator[Point]:
    """Rational values of the parameters that satisfy the assumptions, drawn with a fixed seed.

    Parameters are entries of coefficients, such as b[0]; a relation has to hold for every entry. Values are between
    a tenth and three times the scale.
    """
    generator = random.Random(0)
    for _ in range(200 * count):
        values = {x: scale * _value(x, generator) for x in parameters}
        letters = {name: [v for x, v in values.items() if str(x).partition("[")[0] == name] for name in form.kinds}
        if all(_allowed(relation, letters, generator) for relation in form.relations):
            yield dict(values)
            count -= 1
        if count == 0:
            return


def _value(parameter: sp.Symbol, generator: random.Random) -> sp.Rational:
    size = sp.Rational(generator.randint(20, 200), generator.choice((61, 97, 211)))
    negative = parameter.is_nonpositive or (not parameter.is_nonnegative and generator.random() < 0.5)
    return -size if negative else size


def _allowed(relation: sp.Basic, letters: dict[str, list[sp.Expr]], generator: random.Random) -> bool:
    """Whether a relation holds; a coefficient without entries takes any value, since nothing depends on it."""
    entries = max((len(letters.get(x.name, [])) for x in relation.free_symbols), default=1)
    for k in range(max(entries, 1)):
        point = {
            x: values[k % len(values)] if (values := letters.get(x.name)) else _value(x, generator)
            for x in relation.free_symbols
        }
        if relation.xreplace(point) != sp.true:
            return False
    return True


def sample_states(states: Sequence[sp.Symbol], count: int) -> Iterator[Point]:
    """Rational states of both signs and several sizes, drawn with a fixed seed; masks are 0 or 1."""
    generator = random.Random(1)
    for _ in range(count):
        scale = generator.choice((1, 1, 2, 4))
        yield {
            x: sp.Integer(generator.randint(0, 1))
            if x.name.startswith("M[")
            else sp.Rational(generator.randint(-60, 60) * scale, 37)
            for x in states
        }
