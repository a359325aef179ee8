"""Hypothesis strategies for graphs, states, coefficients and systems, for property tests about equations.

`conforms` is a pytest fixture that checks whether a torch layer computes an equation; it needs torch and pytest.

>>> from hypothesis import given
>>> from rdgraph.testing import systems
>>> @given(systems(linear=True))
... def test_has_a_symbol(system):
...     assert system.structure.is_polynomial_in_operator
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import sympy as sp

from rdgraph.errors import MissingDependency
from rdgraph.language.assumptions import SIGN_WORDS, Assumptions
from rdgraph.language.reader import STRUCTURAL, USUAL_COEFFICIENTS, start_of
from rdgraph.language.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times
from rdgraph.systems.equation import Equation
from rdgraph.systems.further_operators import OPERATOR_WORDS, FurtherOperators
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import BUILT_IN

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ImportError as problem:
    raise MissingDependency("rdgraph.testing needs hypothesis: pip install 'rdgraph[testing]'") from problem

#: Names drawn for coefficients: usual ones and names that need a declaration.
COEFFICIENT_NAMES = ("alpha", "beta", "mu", "a", "k", "omega", "rho_1", "n", "x", "Gamma2", "diffusivity", "real")

#: Names drawn for fields; none of them is a name drawn for a coefficient.
FIELD_NAMES = ("u", "v", "w", "H", "rho_2")

#: Functions that are drawn: the built-in ones, so that drawings do not depend on registrations.
FUNCTION_NAMES = tuple(function.name for function in BUILT_IN)

Draw = Callable[[st.SearchStrategy[Any]], Any]
Letters = Mapping[str, Kind]

_S, _C, _N, _F, _O, _M = Kind.SCALAR, Kind.CHANNEL, Kind.NODE, Kind.FIELD, Kind.OPERATOR, Kind.MATRIX


# ---------------------------------------------------------------------- graphs and states
@st.composite
def adjacency(
    draw: Draw, min_nodes: int = 2, max_nodes: int = 8, connected: bool = False, weighted: bool = False
) -> np.ndarray:
    """Symmetric adjacency A >= 0 without self-loops, float64 of shape (nodes, nodes).

    Entries are 0 or 1, or multiples of 1/8 up to 4 when `weighted`. A connected graph contains a drawn tree; otherwise
    isolated nodes occur. Shrinks to few nodes, few edges and weight 1.
    """
    nodes = draw(st.integers(min_nodes, max_nodes))
    tree = {(draw(st.integers(0, i - 1)), i) for i in range(1, nodes)} if connected else set()
    matrix = np.zeros((nodes, nodes))
    for i, j in combinations(range(nodes), 2):
        if (i, j) in tree or draw(st.booleans()):
            weight = draw(st.integers(1, 32).map(lambda eighths: eighths / 8)) if weighted else 1.0
            matrix[i, j] = matrix[j, i] = weight
    return matrix


@st.composite
def graph_families(draw: Draw, min_nodes: int = 4, max_nodes: int = 12) -> np.ndarray:
    """Adjacency of a known family, float64 of shape (nodes, nodes) with min_nodes <= nodes <= max_nodes.

    The families: path, ring, complete, star, grid, random tree, complete bipartite, Erdos-Renyi (maybe disconnected).
    """
    if not 3 <= min_nodes <= max_nodes:
        raise ValueError(f"expected 3 <= min_nodes <= max_nodes, got {min_nodes} and {max_nodes}; a ring has 3 nodes")
    n = draw(st.integers(min_nodes, max_nodes))
    part = st.integers(1, n - 1)
    families: dict[str, Callable[[], nx.Graph]] = {
        "path": lambda: nx.path_graph(n),
        "ring": lambda: nx.cycle_graph(n),
        "complete": lambda: nx.complete_graph(n),
        "star": lambda: nx.star_graph(n - 1),
        "grid": lambda: nx.grid_2d_graph(*draw(st.sampled_from([(p, n // p) for p in range(1, n + 1) if n % p == 0]))),
        "tree": lambda: nx.from_prufer_sequence(draw(st.lists(st.integers(0, n - 1), min_size=n - 2, max_size=n - 2))),
        "bipartite": lambda: nx.complete_bipartite_graph(p := draw(part), n - p),
        "random": lambda: nx.gnp_random_graph(n, draw(st.floats(0, 1)), seed=draw(st.integers(0, 2**32 - 1))),
    }
    return np.asarray(nx.to_numpy_array(families[draw(st.sampled_from(sorted(families)))]()), dtype=np.float64)


def states(nodes: int, channels: int = 1, bound: float = 10.0) -> st.SearchStrategy[np.ndarray]:
    """Finite states H, float64 of shape (nodes, channels), with entries in [-bound, bound]."""
    elements = st.floats(-bound, bound, allow_nan=False, allow_infinity=False, allow_subnormal=False)
    return hnp.arrays(np.float64, (nodes, channels), elements=elements)


def coefficient_values(
    names: Iterable[str], low: float | Fraction = 0.1, high: float | Fraction = 3
) -> st.SearchStrategy[dict[str, Fraction | float]]:
    """A number in [low, high] for every name: an exact `Fraction` or a float."""
    ends = Fraction(str(low)), Fraction(str(high))
    finest = max(64, *(end.denominator for end in ends))
    value = st.fractions(*ends, max_denominator=finest) | st.floats(float(low), float(high))
    return st.fixed_dictionaries(dict.fromkeys(names, value))


# ---------------------------------------------------------------------- expressions
@st.composite
def letters(draw: Draw, kinds: Sequence[Kind | str] = (_S, _C, _N, _M)) -> dict[str, Kind]:
    """One to five coefficient names with kinds among `kinds`: usual names and names that need a declaration."""
    kind = st.sampled_from([Kind(kind) for kind in kinds])
    return draw(st.dictionaries(st.sampled_from(COEFFICIENT_NAMES), kind, min_size=1, max_size=5)) if kinds else {}


def numbers(positive: bool = False) -> st.SearchStrategy[sp.Rational]:
    """Exact decimals with up to three digits and three places: 0 (unless `positive`) or 0.001 to 999."""
    digits, places = st.integers(int(positive), 999), st.integers(0, 3)
    return st.builds(lambda d, p: sp.Rational(d, 10**p), digits, places)


#: Kinds of two factors or terms whose elementwise combination has the given kind.
_PAIRS: dict[Kind, list[tuple[Kind, Kind]]] = {
    _S: [(_S, _S)],
    _C: [(_C, _C), (_C, _S), (_S, _C)],
    _N: [(_N, _N), (_N, _S), (_S, _N)],
    _F: [(_F, _F), (_F, _S), (_S, _F), (_F, _C), (_C, _F), (_F, _N), (_N, _F), (_C, _N), (_N, _C)],
    _O: [(_S, _O), (_O, _S), (_C, _O), (_O, _C), (_N, _O)],
    _M: [(_S, _M), (_M, _S)],
}
_APPLIED = {_F: [(_O, _F), (_F, _M)], _N: [(_O, _N)], _O: [(_O, _O)], _M: [(_M, _M)]}


@st.composite
def expressions(draw: Draw, kind: Kind | str = Kind.FIELD, kinds: Letters | None = None, depth: int = 3) -> sp.Basic:
    """A well-typed tree of the given kind, at most about 2*depth nodes deep, with every node type of the language.

    `kinds` are the names it may use, with their kinds, drawn where None. Divisors and radicands are nonzero for
    positive coefficients, so the value is finite short of overflow.
    """
    known = dict(draw(letters()) if kinds is None else kinds)
    if kind == Kind.CHANNEL and Kind.CHANNEL not in known.values():
        known["omega"] = Kind.CHANNEL
    return _Grower(draw, known).grow(Kind(kind), depth)


class _Grower:
    """Draws trees top down; the first choice is always the simplest, to which hypothesis shrinks."""

    def __init__(self, draw: Draw, coefficients: Letters, states: Sequence[str] = ("H",)) -> None:
        self.draw = draw
        fields = {letter: _F for state in states for letter in (state, start_of(state))}
        self.kinds = {**fields, **{n: k for n, k in STRUCTURAL.items() if k is not _F}, **coefficients}

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def grow(self, kind: Kind, depth: int) -> sp.Basic:
        leaf = depth <= 0 or self.draw(st.integers(0, 5)) == 0
        return self.leaf(kind) if leaf else self.compound(kind, depth)

    def compound(self, kind: Kind, depth: int) -> sp.Basic:
        depth -= 1
        spread = kind not in (_O, _M)
        rules: list[Any] = [Plus, Minus, Times, Negative, Over]
        rules += [Apply] * (kind in _APPLIED) + [Power] * (kind is not _M) + [Call] * spread
        rule = self.pick(rules)
        if rule in (Plus, Minus, Times, Apply):
            same = [(kind, kind)] if rule in (Plus, Minus) and not spread else None
            return rule(*self.pair(same or (_APPLIED if rule is Apply else _PAIRS)[kind], depth))
        if rule is Negative:
            return Negative(self.grow(kind, depth))
        if rule is Over:
            left, right = self.kinds_among(_PAIRS[kind]) if spread else (kind, _S)
            return Over(self.grow(left, depth), self.nonzero(right, depth))
        if rule is Power:
            exponent = self.pick([2, 3, 1, 0, -1, -2] if spread else [2, 3, 1, 0])
            return Power((self.nonzero if exponent < 0 else self.grow)(kind, depth), sp.Integer(exponent))
        function = self.pick(FUNCTION_NAMES)
        return Call(function, self.nonzero(kind, depth) if function == "sqrt" else self.grow(kind, depth))

    def leaf(self, kind: Kind) -> sp.Basic:
        names = [Name(name, kind_of_name) for name, kind_of_name in self.kinds.items() if kind_of_name is kind]
        if kind is _S and (not names or self.draw(st.booleans())):
            return self.draw(numbers())
        return self.pick(names)

    def kinds_among(self, options: Sequence[tuple[Kind, Kind]]) -> tuple[Kind, Kind]:
        return self.pick([pair for pair in options if {*pair} <= {_S, *self.kinds.values()}])

    def pair(self, options: Sequence[tuple[Kind, Kind]], depth: int) -> tuple[sp.Basic, sp.Basic]:
        left, right = self.kinds_among(options)
        return self.grow(left, depth), self.grow(right, depth)

    def nonzero(self, kind: Kind, depth: int) -> sp.Basic:
        """A tree without zeros: a number, a coefficient, 1 + x**2, exp(x), or a quotient or product of such."""
        names = [Name(n, k) for n, k in self.kinds.items() if k is kind and n not in STRUCTURAL]
        if kind is _S and self.draw(st.booleans()):
            return self.draw(numbers(positive=True))
        if names and self.draw(st.booleans()):
            return self.pick(names)
        if depth > 0 and self.draw(st.booleans()):
            return self.pick([Times, Over])(self.nonzero(kind, depth - 1), self.nonzero(_S, depth - 1))
        inner = self.grow(kind, depth - 1)
        return self.pick([Plus(sp.S.One, Power(inner, sp.Integer(2))), Call("exp", inner)])


# ---------------------------------------------------------------------- systems
@st.composite
def systems(
    draw: Draw, linear: bool | None = None, kinds: Sequence[Kind | str] = (_S, _C, _N, _M), depth: int = 3
) -> System:
    """A random `System`, sometimes with assumptions; its coefficients have kinds among `kinds`.

    `linear=True`: p(A)@H, maybe plus q(A)@H0, where p and q are polynomials with scalar or channel coefficients, so the
    system has a symbol. `linear=False`: such a system plus a nonlinear reaction. None: any field of the language.
    """
    known = draw(letters(kinds))
    if linear is None:
        return _system(draw, _Grower(draw, known).compound(_F, depth))
    passing = {name: kind for name, kind in known.items() if kind in (_S, _C)}
    expression: sp.Basic = Apply(_polynomial(draw, passing), Name("H", _F))
    if draw(st.booleans()):
        expression = draw(st.sampled_from([Plus, Minus]))(expression, Apply(_polynomial(draw, passing), Name("H0", _F)))
    if not linear:
        expression = Plus(expression, Times(_coefficient(draw, passing), _reaction(draw)))
    return _system(draw, expression)


@st.composite
def field_systems(
    draw: Draw,
    linear: bool | None = None,
    max_fields: int = 3,
    kinds: Sequence[Kind | str] = (_S, _C, _N, _M),
    depth: int = 2,
) -> System:
    """A random `System` of up to `max_fields` fields, of first or second order, sometimes with t, xi and an operator B.

    `linear=True`: operators with scalar or channel coefficients on the states, maybe on their starts, maybe with a
    constant. `linear=False`: such a system plus nonlinear reactions. None: any right-hand sides of the language.
    """
    names = draw(st.lists(st.sampled_from(FIELD_NAMES), min_size=1, max_size=max_fields, unique=True))
    orders = [draw(st.sampled_from([1, 1, 2])) for _ in names]
    states = [name + "'" * k for name, order in zip(names, orders, strict=True) for k in range(order)]
    known = {**draw(letters(kinds)), **draw(st.sampled_from([{}, {f"D{names[0]}": _S}]))}
    further = draw(st.sampled_from([{}, {}, *({"B": word} for word in OPERATOR_WORDS)]))
    lines = []
    for name, order in zip(names, orders, strict=True):
        grower = _Grower(draw, known | dict.fromkeys(further, _O) | draw(st.sampled_from([{}, {}, {"t": _S}])), states)
        right = grower.compound(_F, depth) if linear is None else _coupled(draw, grower.kinds, states, linear)
        lines.append(Equation(name, order, _noisy(draw, right, name)))
    texts = [f"{n} {draw(st.sampled_from(SIGN_WORDS))}" for n, k in sorted(known.items()) if k is _S and draw(_RARELY)]
    return System.build(lines, known, texts, operators=FurtherOperators.of(further))


_RARELY = st.integers(0, 3).map(lambda x: x == 3)


def _noisy(draw: Draw, right: sp.Basic, name: str) -> sp.Basic:
    """A right-hand side, now and then with white noise, additive or multiplied by the field."""
    amplitude = draw(st.sampled_from([None, None, None, Name("sigma", _S), Name(name, _F)]))
    return right if amplitude is None else Plus(right, Times(amplitude, Name("xi", _F)))


def _coupled(draw: Draw, kinds: Letters, states: Sequence[str], linear: bool) -> sp.Basic:
    """Operators on some of the states and starts, a constant now and then, and a reaction unless it is linear."""
    passing = {name: kind for name, kind in kinds.items() if kind in (_S, _C)}
    operators = [name for name, kind in kinds.items() if kind is _O]
    chosen = draw(st.lists(st.sampled_from(states), min_size=1, max_size=3))
    chosen += [start_of(draw(st.sampled_from(states)))] * draw(_RARELY)
    terms = [Apply(_polynomial(draw, passing, operators), Name(name, _F)) for name in chosen]
    terms += [_coefficient(draw, passing)] * draw(_RARELY)
    terms += [] if linear else [Times(_coefficient(draw, passing), _reaction(draw, states))]
    return reduce(lambda left, right: draw(st.sampled_from([Plus, Minus]))(left, right), terms)


def _coefficient(draw: Draw, known: Letters) -> sp.Basic:
    named = [Name(name, kind) for name, kind in known.items()]
    return draw(st.sampled_from(named) | numbers(positive=True) if named else numbers(positive=True))


def _polynomial(draw: Draw, known: Letters, letters: Sequence[str] = "IAL") -> sp.Basic:
    """Sum of coefficient times I, A, L, A@A, A**k or L**k and further operators: an operator."""
    words = [Name(name, _O) for name in ("I", "A", "L")]
    words += [Apply(words[1], words[1]), Power(words[1], sp.Integer(3)), Power(words[2], sp.Integer(2))]
    further = [Name(name, _O) for name in letters if name not in "IAL"]
    words += [*further, *(Apply(word, words[1]) for word in further)]
    terms = [Times(_coefficient(draw, known), draw(st.sampled_from(words))) for _ in range(draw(st.integers(1, 3)))]
    return reduce(lambda left, right: draw(st.sampled_from([Plus, Minus]))(left, right), terms)


def _reaction(draw: Draw, states: Sequence[str] = ("H",)) -> sp.Basic:
    state, other = (Name(draw(st.sampled_from(states)), _F) for _ in range(2))
    polynomials = [Power(state, sp.Integer(2)), Power(state, sp.Integer(3)), Times(state, Minus(sp.S.One, other))]
    return draw(st.sampled_from([*polynomials, *(Call(f, state) for f in FUNCTION_NAMES if f != "sqrt")]))


def _system(draw: Draw, expression: sp.Basic) -> System:
    """The system of a tree, declared as `parse` would declare it, with signs and an inequality now and then."""
    used = {n.name: n.kind for n in expression.atoms(Name) if n.name not in STRUCTURAL}
    declared = sorted((n, k) for n, k in used.items() if k is not _S or n not in USUAL_COEFFICIENTS)
    elementwise = sorted(n for n, k in used.items() if k is not _M)
    signs = {name: draw(st.sampled_from(SIGN_WORDS)) for name in elementwise if draw(_RARELY)}
    positive = [name for name in elementwise if name not in signs]
    texts = [f"{name} {sign}" for name, sign in signs.items()]
    if len(positive) > 1 and draw(st.booleans()):
        texts.append(f"{positive[0]} {draw(st.sampled_from(['<', '<=']))} 2*{positive[1]}")
    return System.of(expression, tuple(declared), Assumptions.read(texts, used))


def __getattr__(name: str) -> Any:
    """The fixture `conforms`, loaded on first use, since it needs torch and pytest and the strategies do not."""
    if name != "conforms":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rdgraph.infer.layers.pytest_fixture import conforms

    return conforms
