"""M2: Runge-Kutta methods on linear systems: stability polynomials, and where they part from the flow."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.claims.filters import SYMBOLS
from rdgraph.claims.formulas import all_hold, alpha, beta, identical, lam, points, same, tau
from rdgraph.claims.numerics import double_cover, generator, modes, runge_kutta_step
from rdgraph.claims.registry import ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.methods.runge_kutta import z
from rdgraph.methods.tableaux import methods, tableau
from rdgraph.syntax.answer_symbols import tau as own_tau
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.filters import growth_rate, response, symbol
from rdgraph.theory.step_limits import step_limit

_Q = sp.Rational
#: Claimed stability polynomials and real stability limits.
POLYNOMIALS = {
    "euler": 1 + z,
    "rk4": 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24,
    "rk4-classical": 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24,
    "dopri5": 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24 + z**5 / 120 + z**6 / 600,
}
LIMITS = {"euler": "2.0000", "rk4": "2.7853", "dopri5": "3.3066"}


@decides("M2.2")
def stability_polynomials(e: Evidence) -> ClaimVerdict:
    for name, claimed in POLYNOMIALS.items():
        e.check(f"{name}: R(z) = {claimed}", sp.expand(methods[name].stability - claimed) == 0, methods[name].stability)
    for name, digits in LIMITS.items():
        limit = methods[name].real_limit
        edge = abs(sp.N(methods[name].factor(-limit) ** 2 - 1, 40)) < _Q(1, 10**30)
        close = abs(sp.N(limit, 30) - _Q(digits)) <= _Q(1, 2 * 10**4)
        e.check(f"{name}: real stability limit {digits}", edge and close, sp.N(limit, 10))
    p, q = SYMBOLS["ST"]
    for name in POLYNOMIALS:
        factor = POLYNOMIALS[name].subs(z, tau * p)
        gains, state = [], sp.S.One
        for _ in range(2):
            state = sp.expand(runge_kutta_step(methods[name], lambda y: p * y + q, state, tau, sp.sympify))
            gains.append(state)
        claimed = [factor**n + beta / (alpha * lam) * (1 - factor**n) for n in (1, 2)]
        steps = all(identical(g, c) for g, c in zip(gains, claimed, strict=True))
        formula = response(catalogue["ST"], T=2 * own_tau, method=name)
        e.check(f"{name} on ST: n steps give R^n + beta/(alpha lam) (1 - R^n), n = 1, 2", steps)
        e.check(f"{name} on ST: the response says so", identical(formula.args[0].expr, claimed[1]))
    shortened = response(catalogue["diffusion"], T=1, method="euler", step=_Q(2, 5))
    product = (1 - _Q(2, 5) * alpha * lam) ** 2 * (1 - alpha * lam / 5)
    e.check("T = 1 in steps of 2/5: the last step is shortened", identical(shortened, product), shortened)
    fisher = [
        runge_kutta_step(methods[m], lambda h: h * (1 - h), _Q(1, 3), 1, sp.sympify) for m in ("rk4", "rk4-classical")
    ]
    e.check("the 3/8 rule and the classical rk4 share R, not their results on Fisher", fisher[0] != fisher[1], fisher)
    return all_hold(e)


@cross_checks("M2.2")
def runge_kutta_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

    a = dense_operator(adjacency, "symmetric")
    frequencies, vectors = modes(a)
    x, y, step = rng.uniform(0.1, 1.5), rng.uniform(-2, 2), rng.uniform(0.05, 1)
    state = rng.normal(size=(len(a), 1))
    matrix = generator("ST", a, alpha=x, beta=y)
    for name, polynomial in POLYNOMIALS.items():
        factor = np.polyval([float(c) for c in sp.Poly(polynomial, z).all_coeffs()], -step * x * frequencies)
        stable = np.abs(factor) <= 1 + 1e-12
        if name in LIMITS and not np.array_equal(stable, step * x * frequencies <= float(LIMITS[name]) + 1e-4):
            return False
        result = state
        for _ in range(3):
            result = runge_kutta_step(methods[name], lambda h: matrix @ h + y * state, result, step)
        rates = np.where(frequencies > 1e-9, x * frequencies, 1)
        forced = np.where(frequencies > 1e-9, y / rates * (1 - factor**3), 3 * step * y)
        gain = factor**3 + forced
        if not np.allclose(vectors @ (gain[:, None] * (vectors.T @ state)), result, rtol=1e-7, atol=1e-7):
            return False
    return True


@decides("M2.4")
def euler_stability(e: Evidence) -> ClaimVerdict:
    growth = growth_rate(parse("BS", assume="beta > alpha"))
    rest = growth_rate(parse("BS", assume="beta <= alpha"))
    e.check("the flow grows iff beta > alpha", rest == 0 and same(growth, (beta - alpha) ** 2 / (4 * beta)), growth)
    follows = all(c > 0 for m in ("euler", "rk4") for c in sp.Poly(tableau(m).stability - 1, z).coeffs())
    e.check("... and with it every step of Euler and RK4: R(z) > 1 for z > 0", follows)
    euler = step_limit(parse("BS", assume="beta <= alpha"), "euler").value
    e.check("Euler: tau <= 1/(alpha + beta)", same(euler, 1 / (alpha + beta)), euler)
    runge = step_limit(parse("BS", assume="beta <= alpha"), "rk4").value
    scaled = sp.simplify(2 * (alpha + beta) * runge)
    e.check(
        "RK4: 2 tau (alpha + beta) <= 2.7853", scaled.is_number and abs(scaled - _Q("2.7853")) < _Q(1, 10**4), runge
    )
    e.check("both limits at exact points: |R| <= 1 on [0, 2] exactly below them", _sharp_at_points())
    factor = response(catalogue["BS"].replace(alpha=1, beta=1), T=1, method="euler", step=1)
    e.check("alpha = beta = tau = 1: factor 1 - lam^2", identical(factor, 1 - lam**2), factor)
    e.check("... -3 at lam = 2", factor.subs(lam, 2) == -3, factor.subs(lam, 2))
    x = sp.Symbol("x", real=True)
    unstable = sp.solve_univariate_inequality(
        factor.subs(lam, x) ** 2 > 1, x, relational=False, domain=sp.Interval(0, 2)
    )
    e.check("... above 1 in modulus iff lam > sqrt 2", unstable == sp.Interval.Lopen(sp.sqrt(2), 2), unstable)
    return all_hold(e)


def _sharp_at_points() -> bool:
    """max |R(tau p)| over the ends and the vertex of p, exactly, against the claimed condition."""
    a, b, step = sp.symbols("alpha beta tau", positive=True)
    p = symbol(catalogue["BS"])
    for point in points((a, b, step), 40):
        x, y, size = (sp.Rational(point[v]) for v in (a, b, step))
        places = [sp.S.Zero, sp.Integer(2), *(v for v in ((y - x) / (2 * y),) if 0 < v < 2)]
        for name, limit in (("euler", sp.Integer(2)), ("rk4", _Q("2.785293563"))):
            values = [methods[name].factor(size * p.subs({alpha: x, beta: y, lam: v})) for v in places]
            if (max(map(abs, values)) <= 1) != bool(y <= x and 2 * size * (x + y) <= limit):
                return False
    return True


@cross_checks("M2.4")
def euler_stability_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

    a = dense_operator(double_cover(adjacency), "symmetric")
    x = rng.uniform(0.2, 2)
    y = x * rng.uniform(0, 1)
    matrix = generator("BS", a, alpha=x, beta=y)

    def largest(m: Any, name: str, step: float) -> float:
        factor = runge_kutta_step(methods[name], lambda h: m @ h, np.eye(len(a)), step)
        return float(np.abs(np.linalg.eigvalsh(factor)).max())

    for name, top in (("euler", 1.0), ("rk4", 2.785293 / 2)):
        step = top / (x + y)
        if largest(matrix, name, 0.999 * step) > 1 + 1e-9 or largest(matrix, name, 1.001 * step) < 1 + 1e-6:
            return False
    frequencies = modes(a)[0]
    slow = frequencies[(frequencies > 1e-6) & (frequencies < 1 - 1e-6)]
    growing = generator("BS", a, alpha=x, beta=x / (1 - slow[0]) + 0.1) if len(slow) else None
    return growing is None or all(largest(growing, m, step) > 1 for m in ("euler", "rk4") for step in (1e-2, 0.3))
