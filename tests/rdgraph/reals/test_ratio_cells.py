"""The line of one ratio: its ends, its cells, and formulas joined over them."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from rdgraph.errors import AssumptionError, Undecided
from rdgraph.reals.domain import Domain, degree
from rdgraph.reals.polynomials import Cell, Line, isolated_roots, piecewise, sample_sign
from tests import naming

A, B = sp.symbols("a b", positive=True)
X, Y = sp.symbols("x y", real=True)
N, Q, M = sp.Symbol("n", negative=True), sp.Symbol("q", nonnegative=True), sp.Symbol("m", nonpositive=True)
R = sp.Dummy("r", real=True)
OO = sp.oo


def line(lower: Any = -OO, upper: Any = OO, ends: str = "()", unit: sp.Expr = sp.S.One) -> Line:
    """The line of x/unit from lower to upper; round brackets leave an end out."""
    return Line(R, X, unit, sp.sympify(lower), sp.sympify(upper), ends[0] == "(", ends[1] == ")")


def shown(found: Line | None) -> tuple[Any, ...] | None:
    if found is None:
        return None
    ends = ("(" if found.lower_open else "[") + (")" if found.upper_open else "]")
    return found.numerator, found.denominator, found.lower, found.upper, ends


@pytest.mark.parametrize(
    ("conditions", "expressions", "expected"),
    [
        ((), [A], (A, 1, 0, OO, "()")), ((), [X], (X, 1, -OO, OO, "()")), ((), [N], (N, 1, -OO, 0, "()")),
        ((), [Q], (Q, 1, 0, OO, "[)")), ((), [M], (M, 1, -OO, 0, "(]")), ((), [A + B, A - B], (B, A, 0, OO, "()")),
        ((), [X + N], (X, -N, -OO, OO, "()")), ((), [A * N, N**2], (N, A, -OO, 0, "()")),
        ((), [A + B**2], None), ((), [X + Y], None), ((), [A + B, X], None), ((), [Q + M], None),
        ((A > 2,), [A], (A, 1, 2, OO, "()")), ((A >= 2,), [A], (A, 1, 2, OO, "[)")),
        ((sp.Ge(3 - A, 0),), [A], (A, 1, 0, 3, "(]")), ((sp.Gt(3 - A, 0),), [A], (A, 1, 0, 3, "()")),
        ((sp.Gt(2 * A - B, 0),), [A, B], (B, A, 0, 2, "()")),
        ((sp.Ge(2 * A - B, 0), sp.Gt(3 * B - A, 0)), [A, B], (B, A, sp.Rational(1, 3), 2, "(]")),
        ((sp.Gt(2 * A - B, 0), sp.Ge(2 * A - B, 0)), [A, B], (B, A, 0, 2, "()")),
        ((sp.Ge(2 * A - B, 0), sp.Gt(2 * A - B, 0)), [A, B], (B, A, 0, 2, "()")),
        ((A >= 2, sp.Ge(2 - A, 0)), [A], (A, 1, 2, 2, "[]")), ((A >= 2, A >= 1), [A], (A, 1, 2, OO, "[)")),
        ((sp.Ge(3 - A, 0), sp.Ge(4 - A, 0)), [A], (A, 1, 0, 3, "(]")),
        ((sp.Gt(X - N, 0),), [X * N], (X, -N, -1, OO, "()")), ((sp.Gt(X - N, 1),), [X * N], (X, -N, -OO, OO, "()")),
        ((sp.Gt(X**2 - 1, 0),), [X], (X, 1, -OO, OO, "()")), ((sp.Gt(Y, 1),), [X], (X, 1, -OO, OO, "()")),
        ((sp.Gt(X + Y, 1),), [X], (X, 1, -OO, OO, "()")), ((sp.Ge(Q, 0, evaluate=False),), [Q], (Q, 1, 0, OO, "[)")),
        ((sp.Ne(X, 1), X > 2), [X], (X, 1, 2, OO, "()")),
    ],
)  # fmt: skip
def test_lines_of_a_domain(conditions: tuple[Any, ...], expressions: list[sp.Expr], expected: Any) -> None:
    assert shown(Domain(conditions).line(expressions)) == expected


@pytest.mark.parametrize("last", [sp.Gt(2 - A, 0), sp.Ge(1 - A, 0)])
def test_an_empty_line_is_refused(last: sp.Basic) -> None:
    with pytest.raises(AssumptionError, match="leave no value for a: expected 2 < a/1 < "):
        Domain((sp.Ge(A, 2), last)).line([A])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (A * B, 2), (A + B, 1), (A + 1, None), (A**2 + B, None), (sp.sqrt(A * B) + A, 1), (sp.Integer(3), 0), (X, 0),
        (A**X, None), (sp.exp(A), None), (sp.sqrt(A + 1), None), (X * A, 1), ((A + 1) * B, None), (A / B, 0),
        (A**3 * B - A**2 * B**2, 4),
    ],
    ids=naming.shown,
)  # fmt: skip
def test_degrees(expression: sp.Expr, expected: int | None) -> None:
    assert degree(expression, (A, B)) == expected


def test_expressions_on_the_line() -> None:
    assert line().reduce(X**2 + 1) == R**2 + 1
    assert line(unit=A).reduce(X - 2 * A) == R - 2
    assert line(unit=-N).reduce(X - 2 * N) == R + 2
    assert line(unit=A).reduce((X**2 - A**2) / (X - A)) == R + 1


def summary(cells: list[Cell]) -> list[tuple[Any, Any]]:
    return [(c.lower, c.upper) for c in cells]


def test_cells_cover_the_line() -> None:
    root = sp.sqrt(2)
    inner = [(1, 1), (1, root), (root, root)]
    found = line().cells([R - 1, R**2 - 2])
    assert summary(found) == [(-OO, -root), (-root, -root), (-root, 1), *inner, (root, OO)]
    assert [c.is_point for c in found] == [False, True, False, True, False, True, False]
    assert summary(line(0, 2, "[]").cells([R - 1, R**2 - 2])) == [(0, 0), (0, 1), *inner, (root, 2), (2, 2)]
    assert summary(line(0, 2, "(]").cells([R - 1])) == [(0, 1), (1, 1), (1, 2), (2, 2)]
    assert summary(line(0, 2, "[)").cells([R - 1])) == [(0, 0), (0, 1), (1, 1), (1, 2)]
    assert summary(line(0, 2).cells([R, R - 2, R - 3])) == [(0, 2)]
    assert summary(line(1, 1, "[]").cells([R - 1])) == [(1, 1)]
    for cell in [*found, *line(0, sp.Rational(1, 1000)).cells([R - sp.Rational(1, 3000)])]:
        assert cell.sample == cell.lower if cell.is_point else cell.lower < cell.sample < cell.upper


def test_cells_end_where_a_root_changes_the_sign() -> None:
    """sqrt(r + 1) - r vanishes at the golden ratio, and begins at -1; the pole of a fraction is a border as well."""
    golden = (1 + sp.sqrt(5)) / 2
    borders = {c.lower for c in line().cells([sp.sqrt(R + 1) - R]) if c.is_point}
    assert {sp.S(-1), golden} <= {sp.simplify(b) for b in borders}
    assert {c.lower for c in line().cells([(R - 1) / (R + 3)]) if c.is_point} == {1, -3}
    irrational = {c.lower for c in line().cells([sp.sqrt(2) * R - 1]) if c.is_point}
    assert sp.sqrt(2) / 2 in irrational
    both = {c.lower for c in line().cells([sp.sqrt(R) + sp.sqrt(R + 5) - 5]) if c.is_point}
    assert 4 in both
    with pytest.raises(Undecided, match="cannot isolate"):
        line().cells([sp.exp(R) - 1])


def test_conditions_of_stretches() -> None:
    cells = line().cells([R - 1, R - 2])  # (-oo, 1) 1 (1, 2) 2 (2, oo)
    on = line().condition
    assert on(cells[0], cells[0]) == sp.Lt(X, 1)
    assert on(cells[0], cells[1]) == sp.Le(X, 1)
    assert on(cells[2], cells[4]) == sp.Gt(X, 1)
    assert on(cells[1], cells[4]) == sp.Ge(X, 1)
    assert on(cells[1], cells[1]) == sp.Eq(X, 1)
    assert on(cells[0], cells[4]) == sp.true
    assert set(on(cells[2], cells[3]).args) == {sp.Gt(X, 1), sp.Le(X, 2)}
    scaled = line(unit=A)
    assert scaled.condition(*[scaled.cells([R - 3])[0]] * 2) == sp.Lt(X, 3 * A)
    closed = line(0, 2, "[]")
    parts = closed.cells([R - 1])  # 0 (0, 1) 1 (1, 2) 2
    assert closed.condition(parts[0], parts[1]) == sp.Lt(X, 1)
    assert set(closed.condition(parts[1], parts[3]).args) == {sp.Gt(X, 0), sp.Lt(X, 2)}
    assert closed.condition(parts[2], parts[4]) == sp.Ge(X, 1)
    assert closed.condition(parts[0], parts[0]) == sp.Eq(X, 0)
    point = line(1, 1, "[]")
    assert point.condition(*[point.cells([])[0]] * 2) == sp.true


def test_neighbours_with_the_same_formula_are_joined() -> None:
    cells = line().cells([R - 1, R - 2])
    values = [sp.Symbol("first"), sp.Symbol("second"), sp.Symbol("third")].__getitem__
    first, second, third = (values(i) for i in range(3))
    joined = piecewise(line(), cells, [{0}, {0, 1}, {1}, {1, 2}, {2}], values)
    assert joined == sp.Piecewise((first, X <= 1), (second, X <= 2), (third, True))
    assert piecewise(line(), cells, [{0, 1}, {0, 1}, {1, 0}, {1}, {1}], values) == second
    assert piecewise(line(), cells, [{0}, {0}, {0}, {0}, {0, 1}], values) == first
    alone = piecewise(line(), cells, [{0}, {1}, {0}, {0}, {2}], values)
    assert alone == sp.Piecewise((first, X < 1), (second, sp.Eq(X, 1)), (first, X <= 2), (third, True))
    apart = piecewise(line(), cells, [{0}, {0}, {1}, {0}, {0}], values)
    assert apart == sp.Piecewise((first, X <= 1), (second, X < 2), (first, True))
    scaled = piecewise(line(unit=A), cells, [{0}, {0}, {1}, {1}, {1}], values)
    assert scaled == sp.Piecewise((first, X <= A), (second, True))


def test_signs_at_samples() -> None:
    hidden = sp.sin(sp.S(1)) ** 2 + sp.cos(sp.S(1)) ** 2 - 1
    assert [sample_sign(v) for v in (sp.sqrt(2) - 2, sp.S.Zero, sp.pi, hidden, sp.sqrt(-1))] == [-1, 0, 1, 0, None]


def test_roots_are_exact_or_undecided() -> None:
    assert isolated_roots(sp.Poly(R**2 - 2, R)) == [-sp.sqrt(2), sp.sqrt(2)]
    with pytest.raises(Undecided, match="cannot isolate the zeros of"):
        isolated_roots(sp.Poly(sp.pi * R**5 + R - 1, R))
