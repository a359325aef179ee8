"""Responses of several fields: closed forms against scipy's exponential and against steps taken one by one."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import scipy.linalg
import sympy as sp

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.answer_symbols import lam
from rdgraph.systems.symbols import divided_difference, function_of, matrix_gain
from rdgraph.vocabulary.methods import Tableau, methods

PLAIN_LAM = sp.Symbol("lam")
PLACES = (sp.S.Zero, sp.Rational(1, 4), sp.Rational(1, 2), sp.S.One, sp.Integer(2))


def numbers(matrix: sp.Matrix, place: sp.Expr, letter: sp.Symbol = lam) -> np.ndarray:
    values = np.array(matrix.subs(letter, place).evalf(30).tolist(), dtype=complex)
    assert np.abs(values.imag).max() < 1e-12 * (1 + np.abs(values).max())
    return values.real


def stepped(method: Tableau, P: np.ndarray, Q: np.ndarray, end: sp.Rational, step: sp.Rational) -> np.ndarray:
    """Steps straight from the tableau, the last one shortened."""
    state, left = np.eye(len(P)), end
    while left > 0:
        dt = float(min(left, step))
        slopes: list[np.ndarray] = []
        for row in method.stages:
            stage = state + dt * sum((float(a) * k for a, k in zip(row, slopes, strict=True)), 0 * state)
            slopes.append(P @ stage + Q)
        state = state + dt * sum(float(b) * k for b, k in zip(method.weights, slopes, strict=True))
        left -= step
    return state


def random_symbols(seed: int) -> tuple[sp.ImmutableMatrix, sp.ImmutableMatrix]:
    """P and Q with small rational entries; among them singular, defective and block-triangular ones."""
    draw = random.Random(seed)
    size = draw.choice([1, 2, 2, 2, 3])

    def entry(*_: int) -> sp.Expr:
        return sp.Rational(draw.randint(-4, 4), 2) + sp.Rational(draw.randint(-3, 3), 3) * lam * draw.choice([0, 1])

    P = sp.Matrix(size, size, entry)
    if size == 3:
        P = P.upper_triangular() if seed % 2 else sp.diag(P[:2, :2], P[2:, 2:])
    if size == 2 and seed % 5 == 0:
        P = sp.Matrix([[0, 1], [-(lam**2) / 4, -lam]])  # a double eigenvalue at every lam, zero at lam = 0
    Q = sp.zeros(size) if seed % 3 == 0 else sp.Matrix(size, size, entry)
    return P.as_immutable(), Q.as_immutable()


@pytest.mark.parametrize("seed", range(12))
def test_exact_responses_are_exponentials(seed: int) -> None:
    P, Q = random_symbols(seed)
    G = matrix_gain(P, Q, sp.Rational(3, 4), "exact", None)
    for place in PLACES:
        p, q = (np.array(x.subs(lam, place).tolist(), dtype=float) for x in (P, Q))
        both = scipy.linalg.expm(0.75 * np.block([[p, q], [0 * p, 0 * p]]))
        wanted = both[: len(p), : len(p)] + both[: len(p), len(p) :]
        assert np.abs(numbers(G, place) - wanted).max() < 1e-11 * (1 + np.abs(wanted).max())


@pytest.mark.parametrize(("method", "step"), [*((m, sp.Rational(1, 3)) for m in methods), ("rk4", sp.Rational(1, 20))])
@pytest.mark.slow
def test_responses_of_methods_are_their_steps(method: str, step: sp.Rational) -> None:
    for seed in (0, 1, 2, 4, 5):
        P, Q = random_symbols(seed)
        end = sp.Rational(3, 4)
        G = matrix_gain(P, Q, end, method, step)
        for place in PLACES[::2]:
            p, q = (np.array(x.subs(lam, place).tolist(), dtype=float) for x in (P, Q))
            wanted = stepped(methods[method], p, q, end, step)
            assert np.abs(numbers(G, place) - wanted).max() < 1e-10 * (1 + np.abs(wanted).max())


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-14, 1e-11, 1e-7, -1e-15, -1e-9, -1e-5])
def test_numbers_near_a_double_eigenvalue_keep_their_digits(gap: float) -> None:
    G = rd.parse("H'' = -L@H - alpha*H'").response(2)
    value = sp.lambdify([PLAIN_LAM, sp.Symbol("alpha")], G)
    with np.errstate(all="ignore"):  # all branches are evaluated, one is taken
        found = np.array(value(1 + gap, 2.0), dtype=float)
    wanted = scipy.linalg.expm(2 * np.array([[0, 1], [-1 - gap, -2]]))
    assert np.abs(found - wanted).max() < 1e-14


def test_letters_for_time_and_step() -> None:
    system = rd.parse("H'' = -L@H - H'")
    T, tau = sp.symbols("T tau")
    exact, euler = system.response(), system.response(method="euler")
    assert exact.free_symbols == {PLAIN_LAM, T}
    assert euler.free_symbols == {PLAIN_LAM, T, tau}
    for place in (sp.Rational(1, 8), sp.Rational(1, 4), sp.Rational(2)):
        P = np.array(system.symbol().subs(PLAIN_LAM, place).tolist(), dtype=float)
        wanted = np.linalg.matrix_power(np.eye(2) + P / 2, 3)
        found = numbers(euler.subs({T: sp.Rational(3, 2), tau: sp.Rational(1, 2)}), place, PLAIN_LAM)
        assert np.abs(found - wanted).max() < 1e-12
        assert np.abs(numbers(exact.subs(T, 2), place, PLAIN_LAM) - scipy.linalg.expm(2 * P)).max() < 1e-12


def test_the_function_door_and_the_system_agree() -> None:
    text = "u' = -alpha*L@u + v + beta*u0; v' = -u"
    assert rd.theory.response(text, 1, "rk4", 0.5) == rd.parse(text).response(1, "rk4", 0.5)
    assert rd.theory.response(text, 0) == sp.eye(2)


def test_what_has_no_closed_form_says_so() -> None:
    cubic = "u' = v; v' = w; w' = -L@u - v - u"
    with pytest.raises(NotApplicable, match="degree 3"):
        rd.parse(cubic).response()
    assert rd.parse(cubic).response(1, "euler", 1).shape == (3, 3)  # steps have a response all the same
    with pytest.raises(NotApplicable, match="constant forcing"):
        rd.parse("u' = v + 1; v' = -u").response()
    with pytest.raises(NotApplicable, match="nonlinear"):
        rd.parse("u' = v*u; v' = -u").response()
    with pytest.raises(InvalidArgument, match="step > 0"):
        rd.parse("H'' = -H").response(1, "euler", 0)
    with pytest.raises(InvalidArgument, match="T >= 0"):
        rd.parse("H'' = -H").response(-1)


def test_divided_differences_are_right_where_points_coincide() -> None:
    x = sp.Symbol("x")
    letters = sp.symbols("a b c")
    formula = divided_difference(sp.exp(x), x, letters)
    for points in itertools.combinations_with_replacement((0, 1, sp.Rational(1, 3)), 3):
        found = formula.subs(dict(zip(letters, points, strict=True)), simultaneous=True)
        # f[a, b, c] is the integral of f'' over the simplex
        s, t = sp.symbols("s t", positive=True)
        a, b, c = points
        inner = sp.integrate(sp.exp(a + s * (b - a) + t * (c - b)), (t, 0, s))
        assert abs(sp.N(found - sp.integrate(inner, (s, 0, 1)), 20)) < 1e-15


def test_a_function_of_a_defective_matrix_uses_the_slope() -> None:
    mu = sp.Symbol("mu")
    jordan = sp.ImmutableMatrix([[3, 1], [0, 3]])
    assert function_of(jordan, sp.exp(mu), mu) == sp.exp(3) * sp.Matrix([[1, 1], [0, 1]])
