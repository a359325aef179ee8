"""Dispersion relations of systems with operators beside A: exact where the operators commute, else bounded.

A deviation from a steady state evolves by the generator G, the sum of C (x) w over words w of operators, with matrices
C of the fields. Operators that commute have joint eigenvectors: there G is the matrix P(lam, B, ...) at their
eigenvalues. Others have none, and the growth is bounded (`growth_bounds` has the proof); on a given graph it is that
of G itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from rdgraph.decisions.budget import within_budget
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.html_tables import html_table
from rdgraph.patterns.growth_bounds import BoundProblem, GrowthBound, OperatorTerm
from rdgraph.patterns.kinetics import Actions, Kinetics, system_kinetics
from rdgraph.patterns.linearisation import Linearisation
from rdgraph.patterns.mode_spectra import check_degrees
from rdgraph.patterns.numerical_ranges import RangeBox
from rdgraph.patterns.operator_matrices import OperatorMatrices, Word, fastest_rates, read_matrices
from rdgraph.patterns.operator_ranges import OperatorRanges
from rdgraph.patterns.state_choice import state_at
from rdgraph.patterns.states import SteadyState
from rdgraph.syntax.answer_symbols import lam, public
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.syntax.tree import names_in
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.system import System

#: Real parts below this part of the fastest eigenvalue are rounding.
TOLERANCE = 1e-9


class GraphRates(NamedTuple):
    """Eigenvalues of the generator on a graph, the fastest growing first, those that grow, and how they were found.

    `joint` are the eigenvalues of the operators that belong together, by letter, where the operators commute.
    """

    eigenvalues: np.ndarray
    unstable: tuple[complex, ...]
    joint: Mapping[str, np.ndarray] | None
    source: str

    @property
    def growth(self) -> float:
        """The largest real part."""
        return float(self.eigenvalues[0].real)


@dataclass(frozen=True, eq=False)
class JointDispersion:
    """The dispersion relation of several operators at one steady state, with numbers as coefficients.

    `growth` and `frequency` are exact at joint eigenvalues of operators that commute; `bound` holds for all. With the
    matrices of a graph, `modes` and `unstable` are the graph's own. `state` is None where the system is linear.
    """

    fields: tuple[str, ...]
    words: Mapping[Word, sp.ImmutableMatrix]
    state: SteadyState | None
    ranges: OperatorRanges
    assumes: str
    matrices: OperatorMatrices | None = None

    @property
    def letters(self) -> tuple[str, ...]:
        """The operators that occur, L first."""
        return tuple(sorted({x for word in self.words for x in word}, key=lambda x: (x != "L", x)))

    @property
    def symbol(self) -> sp.ImmutableMatrix:
        """P(lam, B, ...) in plain symbols, where every operator is one of its eigenvalues."""
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
        """Boxes that hold the numerical ranges of the operators and of their words: the graph's, or what is known."""
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
        values = np.linalg.eigvals(total)
        return np.take_along_axis(values, np.argsort(-values.real, axis=-1, kind="stable"), axis=-1)

    def growth(self, **places: Any) -> Any:
        """The largest real part of the eigenvalues of P at joint eigenvalues, numbers or arrays, as in L=1, B=0.5j.

        Exact for a mode of operators that commute; operators that do not have no such modes, see `bound`.
        """
        return _plain(self._eigenvalues(places)[..., 0].real)

    def frequency(self, **places: Any) -> Any:
        """The imaginary part of the eigenvalue that grows fastest, as a frequency >= 0 in radians per time."""
        return _plain(np.abs(self._eigenvalues(places)[..., 0].imag))

    @cached_property
    def bound(self) -> GrowthBound | None:
        """A proved bound of the growth of all operators with the same numerical ranges, in double precision on a graph.

        None where an operator of unknown norm leaves none, or time ran out.
        """
        return within_budget(lambda problem: None)(self._bound)()

    def _bound(self) -> GrowthBound | None:
        """The better one of two inner products, where that of the nodes' degrees makes L symmetric."""
        found = self._bound_with(self.boxes)
        balanced = None if self.matrices is None else self.matrices.balanced
        if balanced is None:
            return found
        moved, condition = balanced
        other = self._bound_with({word: moved.box(word) for word in self.boxes})
        if other is None or (found is not None and found.value <= other.value):
            return found
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
        """The eigenvalues of the generator on the graph that was given.

        Raises InvalidArgument where none was.
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
            told = f"{len(self.modes.unstable)} grow, growth {self.modes.growth:.6g}; {self.modes.source}"
            rows += [("modes", told)]
        return [*rows, ("assumes", self.assumes)]

    def to_dict(self) -> dict[str, Any]:
        """The answer as texts and numbers."""
        bound = self.bound
        return {
            "fields": list(self.fields),
            "symbol": [[str(entry) for entry in row] for row in self.symbol.tolist()],
            "state": None if self.state is None else self.state.to_dict(),
            "bound": None if bound is None else {"value": bound.value, "assumes": bound.assumes},
            "commutes": self.commutes,
            "growth": None if self.matrices is None else self.modes.growth,
            "unstable": None if self.matrices is None else [[x.real, x.imag] for x in self.unstable],
            "assumes": self.assumes,
        }


def _plain(values: np.ndarray) -> Any:
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
    """The dispersion relation of a system with operators beside A; see `dispersion`."""
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
    """A matrix of polynomials in letters that do not commute, as matrices of numbers by word.

    >>> L, B = sp.symbols("L B", commutative=False)
    >>> words_of(sp.ImmutableMatrix([[2 * L * B - B * L**2 + 3]]))
    {(): Matrix([[3]]), ('L', 'B'): Matrix([[2]]), ('B', 'L', 'L'): Matrix([[-1]])}
    """
    size = int(matrix.shape[0])
    found: dict[Word, sp.MutableDenseMatrix] = {(): sp.zeros(size, size)}
    for i in range(size):
        for j in range(size):
            for term in sp.Add.make_args(sp.expand(matrix[i, j])):
                numbers, factors = term.args_cnc()
                word = tuple(x for factor in factors for x in _repeated(factor))
                found.setdefault(word, sp.zeros(size, size))[i, j] += sp.Mul(*numbers)
    return {w: sp.ImmutableMatrix(found[w]) for w in sorted(found, key=_order) if not w or any(found[w])}


def _repeated(factor: sp.Expr) -> tuple[str, ...]:
    base, power = factor.as_base_exp()
    return (base.name,) * int(power)


def _row_sum(name: str, declared: FurtherOperators, matrices: OperatorMatrices | None) -> sp.Expr:
    """What an operator is on constant states: a number where that is known, else a letter."""
    if "stochastic" in declared.facts(name):
        return sp.S.One
    value = None if matrices is None else matrices.row_sum(name)
    if value is None:
        return sp.Symbol(f"{name}@1", real=True)
    exact = sp.Rational(value)
    short = exact.limit_denominator(1000)
    return short if abs(short - exact) <= TOLERANCE * max(1.0, abs(value)) else exact


def _steady(
    kinetics: Kinetics,
    state: int | Mapping[str, Any],
    sums: Mapping[str, sp.Expr],
    matrices: OperatorMatrices | None,
) -> tuple[SteadyState | None, str]:
    """The steady state, None for linear systems, and what it assumes of the operators."""
    if kinetics.is_linear:
        return None, kinetics.modes_assume
    zero = dict.fromkeys(kinetics.letters, sp.S.Zero)
    unknown = sorted(name for name, value in sums.items() if value.free_symbols)
    if unknown and any(rate.has(*(sums[name] for name in unknown)) for rate in kinetics.rates):
        rests = kinetics.zero_is_kept and all(sp.simplify(rate.xreplace(zero)) == 0 for rate in kinetics.rates)
        asked = not isinstance(state, Mapping) or all(exact_number(x, "state") == 0 for x in state.values())
        if not (rests and asked):
            raise NotApplicable(
                f"constant states are not known to be kept by {', '.join(unknown)}; give operator=... and "
                f"operators={{{unknown[0]!r}: ...}} whose rows have one sum, or take the state 0 where it is steady"
            )
        return SteadyState(zero, assumes=kinetics.modes_assume), kinetics.modes_assume
    found = state_at(kinetics, state)
    if found.assumes != kinetics.assumes or found.assumes == kinetics.modes_assume:
        return found, found.assumes
    if matrices is not None and "L" in matrices.matrices and matrices.row_sum("L") is None:
        raise NotApplicable(f"constant states are not kept by this operator; expected {found.assumes}")
    known = [f"{name}@1 = {value}" for name, value in sums.items() if not value.free_symbols]
    return found, "; ".join([found.assumes, *known])
