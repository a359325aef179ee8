"""Step limits of several fields: eigenvalues of the step's matrix on many lam, exact values, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import lam
from rdgraph.reals.polynomials import cell_points, rational_polynomial, signs_to_infinity
from rdgraph.theory.field_step_limits import blocks, imaginary_limit, joint_limit, leaves_once
from rdgraph.vocabulary.methods import methods, z

GRID = np.linspace(0, 2, 4001)
Q = sp.Rational


def worst_modulus(P: sp.Matrix, method: str, step: float) -> float:
    """The largest |R(step mu)| over the eigenvalues that do not grow, on a grid, in floats."""
    entries = [[np.broadcast_to(sp.lambdify(lam, x)(GRID), GRID.shape) for x in P.row(i)] for i in range(P.rows)]
    values = np.linalg.eigvals(np.array(entries, dtype=float).transpose(2, 0, 1))
    weights = [float(c) for c in sp.Poly(methods[method].stability, z).all_coeffs()]
    gains = np.abs(np.polyval(weights, step * values))
    return float(np.where(values.real <= 1e-12, gains, 0.0).max())


CASES = {
    "damped wave": sp.Matrix([[0, 1], [-1 - lam, -Q(1, 2)]]),
    "overdamped": sp.Matrix([[0, 1], [-lam, -5]]),
    "rotation": sp.Matrix([[-lam, -lam], [lam, -lam]]),
    "conserved": sp.Matrix([[-lam, lam], [lam, -lam]]),
    "chain": sp.Matrix([[-lam, 0], [1, -2 * lam]]),
    "interior": sp.Matrix([[-1, 2 * lam * (2 - lam)], [-1, -1]]),
    "growing": sp.Matrix([[1 - 2 * lam, 1], [0, -lam]]),
    "three": sp.Matrix([[0, 1, 0], [-lam - 1, -1, 1], [0, -lam, -2]]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["euler", "heun", "rk4"])
def test_no_mode_is_amplified_up_to_the_limit_and_one_is_beyond(name: str, method: str) -> None:
    P = CASES[name]
    answer = joint_limit(P, methods[method])
    value = float(answer.value)
    for share in (0.1, 0.5, 0.9, 1.0):
        assert worst_modulus(P, method, share * value) <= 1 + 1e-9
    assert worst_modulus(P, method, 1.001 * value) > 1 + 1e-6
    assert answer.grows == (name == "growing")


def test_random_systems_have_the_limit_of_their_eigenvalues() -> None:
    generator = np.random.default_rng(0)
    decided = 0
    for _ in range(24):
        entries = [Q(int(x), 4) for x in generator.integers(-8, 9, size=8)]
        P = sp.Matrix(2, 2, [a + b * lam for a, b in zip(entries[:4], entries[4:], strict=True)])
        P[0, 0] -= 2 + lam
        P[1, 1] -= 2 + lam
        method = str(generator.choice(["euler", "rk4"]))
        try:
            value = joint_limit(P, methods[method]).value
        except Undecided:
            continue
        decided += 1
        if value == 0:
            assert worst_modulus(P, method, 1e-3) > 1
        elif value == sp.oo:
            assert worst_modulus(P, method, 1e3) <= 1
        else:
            assert worst_modulus(P, method, float(value)) <= 1 + 1e-9
            assert worst_modulus(P, method, 1.01 * float(value)) > 1
    assert decided > 18


@pytest.mark.parametrize(
    ("name", "method", "value"),
    [
        ("damped wave", "euler", Q(1, 6)),
        ("overdamped", "euler", Q(2, 5)),
        ("rotation", "euler", Q(1, 2)),
        ("chain", "heun", Q(1, 2)),
        ("conserved", "heun", Q(1, 2)),
    ],
)
def test_exact_values(name: str, method: str, value: sp.Rational) -> None:
    answer = joint_limit(CASES[name], methods[method])
    assert answer.is_exact
    assert answer.value == value


def test_oscillations_that_are_not_damped_leave_euler_no_step() -> None:
    wave = sp.Matrix([[0, 1], [-lam, 0]])
    for method in ("euler", "heun", "midpoint"):
        assert joint_limit(wave, methods[method]).value == 0
        assert worst_modulus(wave, method, 1e-2) > 1
    assert joint_limit(wave, methods["rk4"]).value == 2
    # a pair that comes as near to the imaginary axis as one likes
    assert joint_limit(sp.Matrix([[1 - lam, 3], [-3, 1 - lam]]), methods["euler"]).value == 0
    assert joint_limit(sp.Matrix([[1, 0], [0, 2]]), methods["euler"]).value == sp.oo


def test_limits_by_text() -> None:
    wave = rd.step_limit("H'' = -alpha*L@H", "euler")
    assert wave.value == 0
    assert wave.value == 0
    assert rd.step_limit("H'' = -alpha*L@H", "rk4").value == 2 / sp.sqrt(sp.Symbol("alpha"))
    chain = rd.step_limit("u' = -alpha*L@u; v' = u - beta*L@v", "euler").value
    alpha, beta = sp.symbols("alpha beta")
    assert chain == sp.Min(1 / alpha, 1 / beta)
    numbers = rd.step_limit("H'' = -H - 0.5*H' - L@H", "rk4", "row")
    assert abs(float(numbers.value) - 1.7089461) < 1e-6  # type: ignore[arg-type]
    assert numbers.assumes
    assert numbers.keeps == "stability"


@pytest.mark.parametrize("gamma", [Q(1, 10), Q(1), Q(5)])
@pytest.mark.parametrize("alpha", [Q(1, 10), Q(2), Q(3), Q(9)])
def test_the_formula_for_damped_waves_is_what_numbers_say(alpha: sp.Rational, gamma: sp.Rational) -> None:
    text = "H'' = -gamma*H - alpha*H' - L@H"
    formula = rd.step_limit(text, "euler").value
    assert formula is not None
    value = formula.subs({sp.Symbol("alpha"): alpha, sp.Symbol("gamma"): gamma})
    answer = joint_limit(rd.parse(text).replace(alpha=alpha, gamma=gamma).generator_matrix, methods["euler"]).value
    assert abs(float(value) - float(answer)) <= 2e-9 * float(answer)


def test_what_is_not_decided_says_what_helps() -> None:
    answer = rd.step_limit("H'' = -gamma*H - alpha*H' - L@H", "rk4")
    assert answer.value is None
    assert "numbers" in answer.reason
    assert "nonlinear" in rd.step_limit("u' = u*v; v' = -L@v").reason


# ---------------------------------------------------------------------- regions of stability
def test_rays_leave_the_regions_once() -> None:
    assert all(leaves_once(method.stability) for method in methods.values())
    # an island of stability beyond the first exit, around the zero at -10
    island = sp.expand((1 + z) * (1 + z / 10))
    assert not leaves_once(island)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_the_limit_on_the_imaginary_axis_is_where_the_modulus_leaves_one(method: str) -> None:
    limit = float(imaginary_limit(methods[method]))
    factor = sp.lambdify(z, methods[method].stability)
    inside = np.linspace(0, limit, 500)
    assert np.abs(factor(1j * inside)).max() <= 1 + 1e-12
    assert abs(factor(1.001j * limit)) > 1


def test_cells_are_cut_at_zeros_and_blocks_follow_the_coupling() -> None:
    points = cell_points([rational_polynomial([0, -1, 1]), rational_polynomial([-2, 0, 1])], Q(0), Q(2))
    assert [0 < p < 1 or (p > 1 and p * p < 2) or p * p > 2 for p in points] == [True] * 3
    assert signs_to_infinity(rational_polynomial([2, -3, 1])) == [1, -1, 1]
    chain = sp.Matrix([[1, 1, 0], [1, 1, 1], [0, 0, 1]])
    assert sorted(block.size for block in blocks(chain)) == [1, 2]
