"""The operators of one graph as matrices: whether they commute, joint eigenvalues, the generator of all fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.patterns.mode_spectra import laplacian_of, matrix_of
from rdgraph.patterns.numerical_ranges import ROUNDING, RangeBox, range_box
from rdgraph.systems.further_operators import FurtherOperators

#: A word of letters of operators, applied from the right.
Word = tuple[str, ...]

#: Generators with more rows are not made dense: their fastest eigenvalues are searched for.
MAX_ROWS = 3000
SEARCHED = 12
#: What is smaller than this part of the matrices is rounding.
TOLERANCE = 1e-9
#: Entries below the diagonal of a triangular form, which close eigenvalues make larger.
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
        """A box around the numerical range of a word; what is symmetric up to rounding is taken as symmetric."""
        matrix = self.word(letters)
        transposed = matrix.T
        for sign in (1, -1):
            if np.abs(matrix - sign * transposed).max() <= ROUNDING * self.nodes * _size(matrix):
                return range_box((matrix + sign * transposed) / 2)
        return range_box(matrix)

    def row_sum(self, letter: str) -> float | None:
        """The number that an operator is on states that are the same in all nodes; None where it is none."""
        sums = self.matrices[letter].sum(axis=1)
        return float(sums.mean()) if np.ptp(sums) <= TOLERANCE * max(1.0, np.abs(sums).max()) else None

    @property
    def symmetric(self) -> frozenset[str]:
        """The letters of symmetric matrices, up to rounding."""
        return frozenset(x for x, m in self.matrices.items() if np.abs(m - m.T).max() <= TOLERANCE * _size(m))

    @cached_property
    def commute(self) -> bool:
        """Whether all of them commute, up to rounding."""
        held = list(self.matrices.values())
        return all(
            np.abs(a @ b - b @ a).max() <= TOLERANCE * _size(a) * _size(b) for i, a in enumerate(held) for b in held[:i]
        )

    @cached_property
    def joint_eigenvalues(self) -> dict[str, np.ndarray] | None:
        """Eigenvalues (n,) by letter that belong together, one for each joint mode; None where there are none.

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
        """The same in the inner product in which L is symmetric, as D^-1 W is, and the condition of the change.

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
    """Eigenvalues of a generator, the fastest growing first, and how they were found."""
    if generator.shape[0] <= MAX_ROWS:
        values = np.linalg.eigvals(generator.toarray()).astype(complex)
        source = "all eigenvalues of the generator, in double precision"
    else:
        start = np.random.default_rng(0).standard_normal(generator.shape[0])
        values = scipy.sparse.linalg.eigs(generator, SEARCHED, which="LR", v0=start, return_eigenvectors=False)
        source = f"{SEARCHED} eigenvalues with the largest real parts that Arnoldi's iteration found"
    return values[np.argsort(-values.real, kind="stable")], source


def read_matrices(
    operator: Any, operators: Mapping[str, Any] | None, declared: FurtherOperators, used: Sequence[str]
) -> OperatorMatrices | None:
    """The matrices of the letters that are used: L from `operator`, the others by letter; None where none is given.

    Raises InvalidArgument where one is missing, does not fit, or is not what was said of it.
    """
    given = dict(operators or {})
    for name in given:
        if name not in declared.names:
            raise UnknownName("operator of this system", name, declared.names)
    if operator is None and not given:
        return None
    missing = [name for name in used if name != "L" and name not in given]
    if missing or (operator is None and "L" in used):
        left = ["operator=..."] if operator is None and "L" in used else []
        left += [f"operators={{{name!r}: ...}}" for name in missing]
        raise InvalidArgument(f"expected a matrix for every operator, got none for some; pass {', '.join(left)}")
    found = {name: matrix_of(given[name], name) for name in used if name != "L"}
    if operator is not None:
        found = {"L": matrix_of(laplacian_of(operator), "L")} | found
    sizes = {name: len(matrix) for name, matrix in found.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidArgument(f"expected operators on the same nodes, got {sizes}")
    for name in found:
        if name != "L":
            _check_facts(name, found[name], declared.facts(name))
    return OperatorMatrices(found)


def _check_facts(name: str, matrix: np.ndarray, facts: Sequence[str]) -> None:
    """Whether a matrix is what the equation says of it."""
    slack = TOLERANCE * _size(matrix)
    failed = {
        "symmetric": bool(np.abs(matrix - matrix.T).max() > slack),
        "antisymmetric": bool(np.abs(matrix + matrix.T).max() > slack),
        "stochastic": bool(matrix.min() < -slack or np.abs(matrix.sum(axis=1) - 1).max() > slack),
    }
    for fact in facts:
        if failed.get(fact):
            raise InvalidArgument(f"expected {name} to be {fact}, as the equation says, got a matrix that is not")
