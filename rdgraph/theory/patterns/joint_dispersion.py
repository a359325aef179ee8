"""Dispersion relations of systems with operators in addition to A: exact where they commute, else bounded.

A deviation from a steady state evolves by the generator G, the sum of C (x) w over words w of operators, with matrices
C of the fields. Operators that commute have joint eigenvectors: there G is the matrix P(lam, B, ...) at their
eigenvalues. Otherwise the growth is bounded (see `growth_bounds` for the proof); on a given graph it is that of G.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.tree import names_in
from rdgraph.reals.budget import within_budget
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.system import System
from rdgraph.theory.patterns.growth_bounds import BoundProblem, GrowthBound, OperatorTerm
from rdgraph.theory.patterns.kinetics import Actions, Kinetics, system_kinetics
from rdgraph.theory.patterns.linearisation import Linearisation, fastest_first
from rdgraph.theory.patterns.mode_spectra import ROUNDING, RangeBox, check_degrees, laplacian_of, matrix_of, range_box
from rdgraph.theory.patterns.states import SteadyState
from rdgraph.theory.patterns.steady_states import state_at
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.wording import html_table

# ---------------------------------------------------------------------- operator matrices
# The operators of one graph as matrices: whether they commute, joint eigenvalues, the generator of all fields.

#: A word of letters of operators, applied from the right.
Word = tuple[str, ...]

#: Generators with more rows stay sparse, and only their fastest eigenvalues are computed.
MAX_ROWS = 3000
SEARCHED = 12
#: Entries below this fraction of the matrices count as rounding.
TOLERANCE = 1e-9
#: The same for entries below the diagonal of a triangular form, which close eigenvalues make larger.
TRIANGULAR = 1e-7


@dataclass(frozen=True, eq=False)
class OperatorMatrices:
    """Matrices (n, n) by letter, L among them where the equations have it."""

    matrices: Mapping[str, np.ndarray]

    @property
    def nodes(self) -> int:
        return len(next(iter(self.matrices.values())))

    def word(self, letters: Word) -> np.ndarray:
        """The product of the operators of a word."""
        return reduce(np.matmul, (self.matrices[x] for x in letters), np.eye(self.nodes))

    def box(self, letters: Word) -> RangeBox:
        """A box around the numerical range of a word; symmetry up to rounding counts as symmetry."""
        matrix = self.word(letters)
        transposed = matrix.T
        for sign in (1, -1):
            if np.abs(matrix - sign * transposed).max() <= ROUNDING * self.nodes * _size(matrix):
                return range_box((matrix + sign * transposed) / 2)
        return range_box(matrix)

    def row_sum(self, letter: str) -> float | None:
        """The factor of an operator on states equal in all nodes; None where it does not keep them equal."""
        sums = self.matrices[letter].sum(axis=1)
        return float(sums.mean()) if np.ptp(sums) <= TOLERANCE * max(1.0, np.abs(sums).max()) else None

    @property
    def symmetric(self) -> frozenset[str]:
        """The letters of symmetric matrices, up to rounding."""
        return frozenset(x for x, m in self.matrices.items() if np.abs(m - m.T).max() <= TOLERANCE * _size(m))

    @cached_property
    def commute(self) -> bool:
        """Whether all operators commute, up to rounding."""
        held = list(self.matrices.values())
        return all(
            np.abs(a @ b - b @ a).max() <= TOLERANCE * _size(a) * _size(b) for i, a in enumerate(held) for b in held[:i]
        )

    @cached_property
    def joint_eigenvalues(self) -> dict[str, np.ndarray] | None:
        """The joint eigenvalues (n,) by letter, one for each joint mode; None where there are no joint modes.

        Matrices that commute are triangular in one unitary basis, and a polynomial in them has the same polynomial of
        their diagonals as eigenvalues. The basis is that of Schur's form of a combination of them; whether all are
        triangular in it is checked.
        """
        if not self.commute:
            return None
        factors = np.random.default_rng(0).uniform(1.0, 2.0, len(self.matrices))
        mixed = sum(f * m / _size(m) for f, m in zip(factors, self.matrices.values(), strict=True))
        _, basis = scipy.linalg.schur(mixed, output="complex")
        seen = {name: basis.conj().T @ m @ basis for name, m in self.matrices.items()}
        if any(np.abs(np.tril(t, -1)).max(initial=0.0) > TRIANGULAR * _size(t) for t in seen.values()):
            return None
        return {name: np.diag(t) for name, t in seen.items()}

    @cached_property
    def balanced(self) -> tuple[OperatorMatrices, float] | None:
        """The operators in the inner product that makes L symmetric, as D^-1 W is, and the change's condition number.

        With w > 0 and w_i L_ij = w_j L_ji the matrix T L T^-1 with T = diag(sqrt(w)) is symmetric; its w is the left
        null vector of L. None where there is no such w, and where L is symmetric already.
        """
        held = self.matrices.get("L")
        if held is None or "L" in self.symmetric:
            return None
        weights = np.linalg.svd(held.T)[2][-1]
        weights = weights * np.sign(weights.sum())
        if weights.min() <= TOLERANCE * weights.max():
            return None
        root = np.sqrt(weights / weights.max())
        moved = OperatorMatrices({name: root[:, None] * m / root for name, m in self.matrices.items()})
        return (moved, float(1 / root.min())) if "L" in moved.symmetric else None

    def generator(self, words: Mapping[Word, np.ndarray]) -> Any:
        """The sum of C (x) word as a sparse matrix over all fields, the nodes of the first field first."""
        parts = [scipy.sparse.kron(c, scipy.sparse.csr_array(self.word(w))) for w, c in words.items()]
        return scipy.sparse.csr_array(reduce(lambda a, b: a + b, parts))


def _size(matrix: np.ndarray) -> float:
    """The largest sum of moduli in a row, at least the smallest number that divides."""
    return max(float(np.abs(matrix).sum(axis=1).max()), float(np.finfo(float).tiny))


def fastest_rates(generator: Any) -> tuple[np.ndarray, str]:
    """Eigenvalues of a generator, the fastest growing first, and how they were computed."""
    if generator.shape[0] <= MAX_ROWS:
        values = np.linalg.eigvals(generator.toarray()).astype(complex)
        source = "all eigenvalues of the generator, in double precision"
    else:
        start = np.random.default_rng(0).standard_normal(generator.shape[0])
        values = scipy.sparse.linalg.eigs(generator, SEARCHED, which="LR", v0=start, return_eigenvectors=False)
        source = f"the {SEARCHED} eigenvalues with the largest real parts found by Arnoldi's iteration"
    return values[np.argsort(-values.real, kind="stable")], source


def read_matrices(
    operator: Any, operators: Mapping[str, Any] | None, declared: FurtherOperators, used: Sequence[str]
) -> OperatorMatrices | None:
    """The matrices of the operators that occur: L from `operator`, the others by letter; None where none is given.

    Raises InvalidArgument where one is missing, does not fit, or does not have its declared properties.
    """
    given = dict(operators or {})
    for name in given:
        if name not in declared.names:
            raise UnknownName("operator of this system", name, declared.names)
    if operator is None and not given:
        return None
    missing = [name for name in used if name != "L" and name not in given]
    if missing or (operator is None and "L" in used):
        arguments = ["operator=..."] if operator is None and "L" in used else []
        arguments += [f"operators={{{name!r}: ...}}" for name in missing]
        raise InvalidArgument(f"operators without a matrix; pass {', '.join(arguments)}")
    matrices = {name: matrix_of(given[name], name) for name in used if name != "L"}
    if operator is not None:
        matrices = {"L": matrix_of(laplacian_of(operator), "L")} | matrices
    sizes = {name: len(matrix) for name, matrix in matrices.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidArgument(f"expected operators with the same number of nodes, got {sizes}")
    for name in matrices:
        if name != "L":
            _check_facts(name, matrices[name], declared.facts(name))
    return OperatorMatrices(matrices)


def _check_facts(name: str, matrix: np.ndarray, facts: Sequence[str]) -> None:
    """Raise InvalidArgument unless a matrix has its declared properties."""
    slack = TOLERANCE * _size(matrix)
    failed = {
        "symmetric": bool(np.abs(matrix - matrix.T).max() > slack),
        "antisymmetric": bool(np.abs(matrix + matrix.T).max() > slack),
        "stochastic": bool(matrix.min() < -slack or np.abs(matrix.sum(axis=1) - 1).max() > slack),
    }
    for fact in facts:
        if failed.get(fact):
            raise InvalidArgument(f"{name} is declared {fact}, but its matrix is not")


# ---------------------------------------------------------------------- operator ranges
# Boxes around the numerical ranges of words of operators, from their declared properties and norms.


class OperatorRanges:
    """Known properties of operators: L is symmetric with eigenvalues in [0, to], norms of others may be given.

    >>> ranges = OperatorRanges(FurtherOperators.of({"B": "antisymmetric"}), {"B": 3}, sp.Integer(2))
    >>> print(ranges.box(("B",)), ranges.box(("B", "B")), ranges.box(("L", "B")))
    [0, 0] + i*[-3, 3] [-9, 0] [-6, 6] + i*[-6, 6]
    """

    def __init__(self, declared: FurtherOperators, norms: Mapping[str, Any], to: sp.Expr) -> None:
        unknown = set(norms) - set(declared.names)
        if unknown:
            raise InvalidArgument(f"expected norms of {', '.join(declared.names)}, got {', '.join(sorted(unknown))}")
        self.declared, self.to = declared, to
        self.norms = {name: self._norm(name, norms) for name in declared.names}

    def _norm(self, name: str, norms: Mapping[str, Any]) -> sp.Expr:
        facts = self.declared.facts(name)
        if name not in norms:
            return sp.S.One if {"symmetric", "stochastic"} <= set(facts) else sp.oo
        value = exact_number(norms[name], f"norm of {name}")
        if not value.is_Rational or value < 0:
            raise InvalidArgument(f"expected a number >= 0 as norm of {name}, got {norms[name]}")
        return value

    def _is(self, letter: str, word: str) -> bool:
        return (letter == "L" and word == "symmetric") or (letter != "L" and word in self.declared.facts(letter))

    def box(self, word: Word) -> RangeBox:
        """The box of a word; a palindrome of symmetric and antisymmetric operators is one or the other."""
        if word == ("L",):
            return RangeBox(sp.S.Zero, self.to, sp.S.Zero)
        size = sp.Mul(*(self.to if x == "L" else self.norms[x] for x in word)) if word else sp.S.One
        size = sp.oo if size is sp.nan else size
        has_symmetry = all(self._is(x, "symmetric") or self._is(x, "antisymmetric") for x in word)
        if not has_symmetry or word != word[::-1]:
            return RangeBox(-size, size, size)
        odd = [x for x in word if self._is(x, "antisymmetric")]
        if len(odd) % 2:
            return RangeBox(sp.S.Zero, sp.S.Zero, size)
        if len(word) % 2:
            return RangeBox(-size, size, sp.S.Zero)
        # a word times its mirror image: V V^T, with a sign for every antisymmetric operator of the half
        return RangeBox(sp.S.Zero, size, sp.S.Zero) if len(odd) % 4 == 0 else RangeBox(-size, sp.S.Zero, sp.S.Zero)


# ---------------------------------------------------------------------- joint dispersion
class GraphRates(NamedTuple):
    """Eigenvalues of the generator on a graph, the fastest growing first, those that grow, and how they were computed.

    `joint` are the joint eigenvalues of the operators by letter, where they commute.
    """

    eigenvalues: np.ndarray
    unstable: tuple[complex, ...]
    joint: Mapping[str, np.ndarray] | None
    source: str

    @property
    def growth(self) -> float:
        """The largest real part of the eigenvalues."""
        return float(self.eigenvalues[0].real)


@dataclass(frozen=True, eq=False, repr=False)
class JointDispersion(Answer):
    """The dispersion relation of several operators at one steady state, with numbers as coefficients.

    `growth` and `frequency` are exact at joint eigenvalues of operators that commute; `bound` holds for all operators.
    With the matrices of a graph, `modes` and `unstable` are those of the graph. `state` is None for linear systems.
    """

    fields: tuple[str, ...]
    words: Mapping[Word, sp.ImmutableMatrix]
    state: SteadyState | None
    ranges: OperatorRanges
    assumes: str
    matrices: OperatorMatrices | None = None

    @property
    def value(self) -> float | None:
        """The growth of the fastest mode of the given graph, else a bound of it; None where there is none."""
        return self.modes.growth if self.matrices is not None else None if self.bound is None else self.bound.value

    @property
    def status(self) -> Status:
        """measured on a graph, bounded for all graphs, or undecided."""
        if self.matrices is not None:
            return Status.MEASURED
        return Status.UNDECIDED if self.bound is None else Status.BOUNDED

    @property
    def reason(self) -> str:
        """How the growth is known."""
        if self.matrices is not None:
            return self.modes.source
        return "no bound is known; give norms={...}, or a graph" if self.bound is None else str(self.bound)

    @property
    def letters(self) -> tuple[str, ...]:
        """The operators that occur, L first."""
        return tuple(sorted({x for word in self.words for x in word}, key=lambda x: (x != "L", x)))

    @property
    def symbol(self) -> sp.ImmutableMatrix:
        """P(lam, B, ...) in plain symbols, with an eigenvalue for every operator."""
        total = sp.zeros(len(self.fields), len(self.fields))
        for word, matrix in self.words.items():
            total += matrix * sp.Mul(*(lam if x == "L" else sp.Symbol(x) for x in word))
        values = {} if self.state is None else dict(self.state.point)
        return sp.ImmutableMatrix(public(sp.ImmutableMatrix(total).xreplace(values)))

    @cached_property
    def commutes(self) -> bool | None:
        """Whether the operators of the graph commute; None without one, and true for a single operator."""
        if len(self.letters) < 2:
            return True
        return None if self.matrices is None else self.matrices.commute

    @cached_property
    def boxes(self) -> dict[Word, RangeBox]:
        """Boxes around the numerical ranges of the operators and their words, of the graph or from known properties."""
        words = dict.fromkeys([*((x,) for x in self.letters), *(word for word in self.words if word)])
        source = self.ranges if self.matrices is None else self.matrices
        return {word: source.box(word) for word in words}

    @cached_property
    def _numbers(self) -> dict[Word, np.ndarray]:
        return {word: Linearisation(matrix, self.state).matrices(0.0) for word, matrix in self.words.items()}

    def _eigenvalues(self, places: Mapping[str, Any]) -> np.ndarray:
        """The eigenvalues of P at eigenvalues of the operators, the fastest first."""
        if set(places) != set(self.letters):
            raise InvalidArgument(
                f"expected an eigenvalue of each of {', '.join(self.letters)}, got {', '.join(places) or 'none'}; "
                "as in growth(L=1, B=0.5j)"
            )
        shape = np.broadcast_shapes(*(np.shape(x) for x in places.values()))
        total = np.zeros((*shape, len(self.fields), len(self.fields)), dtype=complex)
        for word, matrix in self._numbers.items():
            factor = np.ones(shape, dtype=complex)
            for letter in word:
                factor = factor * places[letter]
            total += factor[..., None, None] * matrix
        return fastest_first(total)

    def growth(self, **places: Any) -> Any:
        """The largest real part of the eigenvalues of P at joint eigenvalues, numbers or arrays, such as L=1, B=0.5j.

        Exact for operators that commute; other operators have no joint modes, see `bound`.
        """
        return plain(self._eigenvalues(places)[..., 0].real)

    def frequency(self, **places: Any) -> Any:
        """The imaginary part of the eigenvalue that grows fastest, as a frequency >= 0 in radians per time."""
        return plain(np.abs(self._eigenvalues(places)[..., 0].imag))

    @cached_property
    def bound(self) -> GrowthBound | None:
        """A proved bound of the growth of all operators with the same numerical ranges, in double precision on a graph.

        None where the norm of an operator is unknown, or time ran out.
        """
        return within_budget(lambda problem: None)(self._bound)()

    def _bound(self) -> GrowthBound | None:
        """The better bound of two inner products, where the one of the nodes' degrees makes L symmetric."""
        bound = self._bound_with(self.boxes)
        balanced = None if self.matrices is None else self.matrices.balanced
        if balanced is None:
            return bound
        moved, condition = balanced
        other = self._bound_with({word: moved.box(word) for word in self.boxes})
        if other is None or (bound is not None and bound.value <= other.value):
            return bound
        return replace(other, condition=other.condition * condition, assumes=f"{other.assumes}, scaled")

    def _bound_with(self, boxes: Mapping[Word, RangeBox]) -> GrowthBound | None:
        span = boxes.get(("L",), RangeBox(sp.S.Zero, sp.S.Zero, sp.S.One))
        if span.is_real and not span.upper.is_finite:
            return None
        main = {w: m for w, m in self.words.items() if not w or (span.is_real and set(w) == {"L"})}
        terms = [OperatorTerm(matrix, boxes[word]) for word, matrix in self.words.items() if word not in main]
        size = len(self.fields)
        total = sum((m * lam ** len(w) for w, m in main.items()), sp.zeros(size, size))
        ends = (span.lower, span.upper) if span.is_real else (sp.S.Zero, sp.S.Zero)
        parts = [f"{x} in {boxes[(x,)]}" for x in self.letters]
        where = "the operators of the graph" if self.matrices else "all operators"
        assumes = f"{where} with numerical ranges {', '.join(parts)}" if parts else where
        return BoundProblem(sp.ImmutableMatrix(total), ends, terms, self.state).bound(assumes)

    @cached_property
    def modes(self) -> GraphRates:
        """The eigenvalues of the generator on the given graph.

        Raises InvalidArgument without one.
        """
        if self.matrices is None:
            raise InvalidArgument("expected the operators of a graph, got none; give operator=... and operators={...}")
        joint = self.matrices.joint_eigenvalues
        if joint is not None:
            values = self._eigenvalues({x: joint[x] for x in self.letters}).ravel()
            values = values[np.argsort(-values.real, kind="stable")]
            source = "P at the joint eigenvalues of operators that commute, in double precision"
        else:
            values, source = fastest_rates(self.matrices.generator(self._numbers))
            source = f"operators that do not commute: {source}"
        size = max(1.0, float(np.abs(values).max()))
        growing = tuple(complex(x) for x in values[values.real > TOLERANCE * size])
        return GraphRates(values, growing, joint, source)

    @property
    def unstable(self) -> tuple[complex, ...]:
        """The eigenvalues of the generator of the graph that grow, the fastest first."""
        return self.modes.unstable

    def __str__(self) -> str:
        return "\n".join(f"{head}: {cell}" for head, cell in self._rows())

    def __repr__(self) -> str:
        return f"JointDispersion of {', '.join(self.fields)}\n{self}"

    def _repr_html_(self) -> str:
        return html_table(f"dispersion relation of {', '.join(self.fields)}", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        names = ["lam" if x == "L" else x for x in self.letters]
        rows = [("steady state", str(self.state) if self.state else "any: the system is linear")]
        rows += [(f"P({', '.join(names)})", f"{self.symbol.tolist()}, exact where the operators commute")]
        rows += [("bound", str(self.bound) if self.bound else "none; give norms={...}, or a graph")]
        if self.matrices is not None:
            summary = f"{len(self.modes.unstable)} grow, growth {self.modes.growth:.6g}; {self.modes.source}"
            rows += [("modes", summary)]
        return [*rows, ("assumes", self.assumes)]

    def to_dict(self) -> dict[str, Any]:
        """The answer as texts and numbers."""
        bound = self.bound
        return {
            "fields": list(self.fields),
            "symbol": [[str(entry) for entry in row] for row in self.symbol.tolist()],
            "state": None if self.state is None else self.state.to_dict(),
            "status": str(self.status),
            "bound": None if bound is None else {"value": bound.value, "assumes": bound.assumes},
            "commutes": self.commutes,
            "growth": None if self.matrices is None else self.modes.growth,
            "unstable": None if self.matrices is None else [[x.real, x.imag] for x in self.unstable],
            "assumes": self.assumes,
        }


def plain(values: np.ndarray) -> Any:
    """An array, or a number for an array without axes."""
    return values if np.ndim(values) else float(values)


def _order(word: Word) -> tuple[int, Word]:
    return len(word), word


# ---------------------------------------------------------------------- from systems
def joint_dispersion(
    system: System,
    values: Mapping[str, Any] | None,
    state: int | Mapping[str, Any],
    operator: Any,
    operators: Mapping[str, Any] | None,
    norms: Mapping[str, Any] | None,
    to: sp.Expr,
) -> JointDispersion:
    """The dispersion relation of a system with further operators besides A; see `dispersion`."""
    written = {x for tree in system.flow.values() for x in (n.name for n in names_in(tree))}
    further = system.operators.about(written)
    used = [*(["L"] if written & {"A", "L"} else []), *further.names]
    matrices = read_matrices(operator, operators, further, used)
    sums = {name: _row_sum(name, further, matrices) for name in further.names}
    letters = {name: sp.Symbol(name, commutative=False) for name in ("L", *further.names)}
    modes = {"A": 1 - letters["L"], **letters}
    kinetics = system_kinetics(system, Actions({"A": sp.S.One, "L": sp.S.Zero, **sums}, modes)).at(values)
    check_degrees(kinetics, operator)
    steady, assumes = _steady(kinetics, state, sums, matrices)
    words = words_of(Linearisation.at(kinetics, steady).matrix)
    ranges = OperatorRanges(further, norms or {}, to)
    return JointDispersion(kinetics.fields, words, steady, ranges, assumes, matrices)


def words_of(matrix: sp.ImmutableMatrix) -> dict[Word, sp.ImmutableMatrix]:
    """A matrix of polynomials in symbols that do not commute, as matrices of numbers by word.

    >>> L, B = sp.symbols("L B", commutative=False)
    >>> words_of(sp.ImmutableMatrix([[2 * L * B - B * L**2 + 3]]))
    {(): Matrix([[3]]), ('L', 'B'): Matrix([[2]]), ('B', 'L', 'L'): Matrix([[-1]])}
    """
    size = int(matrix.shape[0])
    matrices: dict[Word, sp.MutableDenseMatrix] = {(): sp.zeros(size, size)}
    for i in range(size):
        for j in range(size):
            for term in sp.Add.make_args(sp.expand(matrix[i, j])):
                numbers, factors = term.args_cnc()
                word = tuple(x for factor in factors for x in _repeated(factor))
                matrices.setdefault(word, sp.zeros(size, size))[i, j] += sp.Mul(*numbers)
    return {w: sp.ImmutableMatrix(matrices[w]) for w in sorted(matrices, key=_order) if not w or any(matrices[w])}


def _repeated(factor: sp.Expr) -> tuple[str, ...]:
    base, power = factor.as_base_exp()
    return (base.name,) * int(power)


def _row_sum(name: str, declared: FurtherOperators, matrices: OperatorMatrices | None) -> sp.Expr:
    """The factor of an operator on constant states: a number where that is known, else a symbol."""
    if "stochastic" in declared.facts(name):
        return sp.S.One
    value = None if matrices is None else matrices.row_sum(name)
    if value is None:
        return sp.Symbol(f"{name}@1", real=True)
    exact = sp.Rational(value)
    short = exact.limit_denominator(1000)
    return short if abs(short - exact) <= TOLERANCE * max(1.0, abs(value)) else exact


def _steady(
    kinetics: Kinetics, state: int | Mapping[str, Any], sums: Mapping[str, sp.Expr], matrices: OperatorMatrices | None
) -> tuple[SteadyState | None, str]:
    """The steady state, None for linear systems, and what it assumes of the operators."""
    if kinetics.is_linear:
        return None, kinetics.modes_assume
    zero = dict.fromkeys(kinetics.letters, sp.S.Zero)
    unknown = sorted(name for name, value in sums.items() if value.free_symbols)
    if unknown and any(rate.has(*(sums[name] for name in unknown)) for rate in kinetics.rates):
        rests = kinetics.keeps_zero and all(sp.simplify(rate.xreplace(zero)) == 0 for rate in kinetics.rates)
        asked = not isinstance(state, Mapping) or all(exact_number(x, "state") == 0 for x in state.values())
        if not (rests and asked):
            raise NotApplicable(
                f"{', '.join(unknown)} need not keep states constant; give operator=... and "
                f"operators={{{unknown[0]!r}: ...}} with equal row sums, or take the state 0 where it is steady"
            )
        return SteadyState(zero, assumes=kinetics.modes_assume), kinetics.modes_assume
    steady = state_at(kinetics, state)
    if steady.assumes != kinetics.assumes or steady.assumes == kinetics.modes_assume:
        return steady, steady.assumes
    if matrices is not None and "L" in matrices.matrices and matrices.row_sum("L") is None:
        raise NotApplicable(f"this operator does not keep states constant; expected {steady.assumes}")
    known = [f"{name}@1 = {value}" for name, value in sums.items() if not value.free_symbols]
    return steady, "; ".join([steady.assumes, *known])
