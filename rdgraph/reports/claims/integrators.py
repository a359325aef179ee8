"""M2: Runge-Kutta methods on linear systems: stability polynomials, and where they part from the flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.linalg import expm

from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.answer_symbols import tau as internal_tau
from rdgraph.reports.claims.claim_formulas import T, all_hold, alpha, beta, identical, lam, points, same, tau
from rdgraph.reports.claims.claim_records import ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.reports.claims.numerics import double_cover, generator, modes, runge_kutta_step
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.derivations import Derivation
from rdgraph.theory.equality.equivalence import equivalent
from rdgraph.theory.filters import growth_rate, response, symbol
from rdgraph.theory.step_limits import step_limit
from rdgraph.vocabulary.methods import methods, tableau, z

# ---------------------------------------------------------------------- filters
# M2: symbols and exact responses, reductions between filter banks, the three normalisations.

#: Claimed generator symbol p(lam) and source factor q, per system: H' = p H + q H0 on each frequency.
SYMBOLS: dict[str, tuple[sp.Expr, sp.Expr]] = {
    "diffusion": (-alpha * lam, sp.S.Zero),
    "BS": ((beta - alpha) * lam - beta * lam**2, sp.S.Zero),
    "ST": (-alpha * lam, beta),
    "FB": ((beta - alpha) * lam, sp.S.Zero),
    "FB*": ((beta - alpha) * lam + beta, sp.S.Zero),
    "FB-released": (2 * beta - (alpha + beta) * lam, sp.S.Zero),
    "FB*-released": (3 * beta - (alpha + beta) * lam, sp.S.Zero),
}


@decides("M2.1")
def symbols_and_responses(e: Evidence) -> ClaimVerdict:
    for name, (p, q) in SYMBOLS.items():
        e.check(f"{name}: symbol {p}", same(symbol(catalogue[name]), p), symbol(catalogue[name]))
        gain = response(catalogue[name])
        generic = gain.args[0].expr if isinstance(gain, sp.Piecewise) else gain
        claimed = sp.exp(T * p) + (q * (sp.exp(T * p) - 1) / p if q != 0 else 0)
        e.check(f"{name}: response exp(T p) + q T phi1(T p)", same(generic, claimed), gain)
        residual = sp.diff(generic, T) - p * generic - q
        starts = identical(generic.subs(T, 0), sp.S.One)
        e.check(f"{name}: the response solves g' = p g + q, g(0) = 1", starts and identical(residual, sp.S.Zero))
        split = parse(name, {"beta": "channel"}) if "beta" in catalogue[name].coefficients else catalogue[name]
        e.check(f"{name}: the same symbol per channel", same(symbol(split), p))
    constant = response(catalogue["ST"]).subs(lam, 0)
    e.check("ST at lam = 0: 1 + beta T", identical(constant, 1 + beta * T), constant)
    return all_hold(e)


@cross_checks("M2.1")
def responses_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "symmetric")
    n, (frequencies, vectors) = len(a), modes(a)
    x, y, end = rng.uniform(0.1, 2), rng.uniform(-2, 2), rng.uniform(0.1, 2)
    state = rng.normal(size=(n, 2))
    for p, q, name in ((*formula, name) for name, formula in SYMBOLS.items()):
        matrix = generator(name, a, alpha=x, beta=y)
        numeric = sp.lambdify((lam, alpha, beta), (p, q), "math")
        rates = np.array([numeric(f, x, y)[0] for f in frequencies])
        source = numeric(0, x, y)[1]
        diagonal = np.allclose(vectors.T @ matrix @ vectors, np.diag(rates), atol=1e-10)
        extended = np.block([[matrix, source * np.eye(n)], [np.zeros((n, 2 * n))]])
        exact = (expm(end * extended) @ np.vstack([state, state]))[:n]
        phi = np.where(np.abs(rates) > 1e-9, np.expm1(end * rates) / np.where(rates == 0, 1, rates), end)
        gain = np.exp(end * rates) + source * phi
        if not (diagonal and np.allclose(vectors @ (gain[:, None] * (vectors.T @ state)), exact, rtol=1e-8, atol=1e-8)):
            return False
    return True


@decides("M2.6")
def reductions(e: Evidence) -> ClaimVerdict:
    e.check("FB = diffusion with alpha - beta, any A", equivalent("FB", "-(alpha - beta)*L@H"))
    e.check("FB* = FB + beta H, any A", equivalent("FB*", "-(alpha - beta)*L@H + beta*H"))
    e.check(
        "released FB = 2 beta H + diffusion with alpha + beta, any A",
        equivalent("FB-released", "2*beta*H - (alpha + beta)*L@H"),
    )
    heat = response(catalogue["GRAND-l"])
    flows = {n: response(catalogue[n]) for n in ("FB", "FB*", "FB-released")}
    pairs = {
        "FB = GRAND run for (alpha - beta) T": (flows["FB"], heat.subs(T, (alpha - beta) * T)),
        "FB* = exp(beta T) FB": (flows["FB*"], sp.exp(beta * T) * flows["FB"]),
        "released FB = exp(2 beta T) GRAND run for (alpha + beta) T":
            (flows["FB-released"], sp.exp(2 * beta * T) * heat.subs(T, (alpha + beta) * T)),
    }  # fmt: skip
    for text, (left, right) in pairs.items():
        e.check(f"flow: {text}", same(left / right, 1))
    euler = {n: response(catalogue[n], T=internal_tau, method="euler") for n in ("FB*", "FB-released")}
    scaled = (1 + tau * beta) * (1 + tau / (1 + tau * beta) * (beta - alpha) * lam)
    e.check("Euler: FB* = (1 + tau beta) FB with tau/(1 + tau beta)", same(euler["FB*"], scaled), euler["FB*"])
    gain = 1 + 2 * tau * beta
    shadow = gain * (1 - tau / gain * (alpha + beta) * lam)
    e.check("Euler: released FB = (1 + 2 tau beta) GRAND", same(euler["FB-released"], shadow), euler["FB-released"])
    return all_hold(e)


@cross_checks("M2.6")
def reductions_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "row") + 0.1 * rng.normal(size=adjacency.shape)
    x, y, end = rng.uniform(0.1, 1.5, size=3)
    bank, star, released = (expm(end * generator(n, a, alpha=x, beta=y)) for n in ("FB", "FB*", "FB-released"))
    heat = [expm(size * end * generator("GRAND-l", a)) for size in (x - y, x + y)]
    flows = ((bank, heat[0]), (star, np.exp(y * end) * bank), (released, np.exp(2 * y * end) * heat[1]))
    eye, step = np.eye(len(a)), end / (1 + end * y)
    one = eye + end * generator("FB*", a, alpha=x, beta=y)
    two = (1 + end * y) * (eye + step * generator("FB", a, alpha=x, beta=y))
    return all(np.allclose(p, q, rtol=1e-9, atol=1e-9) for p, q in (*flows, (one, two)))


@decides("M2.9")
def normalisations(e: Evidence) -> ClaimVerdict:
    """Free algebra: Q = D^-1/2, P = D^1/2, K the adjacency, S = Q K Q; X stands for any power of S."""
    letters = dict.fromkeys("QPKSX", "operator")
    inverse = ("Q@P = I", "P@Q = I")
    steps = {
        "A_row = Q S P": ("Q@Q@K", "Q@(Q@K@Q)@P"),
        "A_col = P S Q": ("K@Q@Q", "P@(Q@K@Q)@Q"),
        "row: (Q X P)(Q S P) = Q (X S) P, so powers carry over": ("(Q@X@P)@(Q@S@P)", "Q@(X@S)@P"),
        "column: (P X Q)(P S Q) = P (X S) Q": ("(P@X@Q)@(P@S@Q)", "P@(X@S)@Q"),
        "power 0": ("I", "Q@P"),
    }
    for text, lines in steps.items():
        e.check(text, Derivation(text, lines, inverse, letters=letters).check().holds)
    sums = ("a*(Q@X@P@H) + b*(Q@S@P@H)", "Q@((a*X + b*S)@(P@H))")
    e.check("sums with scalar coefficients carry over", Derivation("sum", sums, inverse, letters=letters).check().holds)
    bare = Derivation("bare", steps["A_row = Q S P"], (), letters=letters).check()
    e.check("only P Q = Q P = I was used, and it was needed", not bare.holds, bare.first_failure)
    return all_hold(e)


@cross_checks("M2.9")
def normalisations_on_graphs(adjacency: Any, rng: Any) -> bool:
    coefficients = rng.normal(size=5)
    symmetric, row, column = (dense_operator(adjacency, n) for n in ("symmetric", "row", "column"))

    def f(m: Any) -> Any:
        return sum(c * np.linalg.matrix_power(m, k) for k, c in enumerate(coefficients))

    root = np.sqrt(adjacency.sum(axis=1))
    similar = f(symmetric) * root[None, :] / root[:, None]
    other = f(symmetric) * root[:, None] / root[None, :]
    return bool(np.allclose(f(row), similar) and np.allclose(f(column), other))


# ---------------------------------------------------------------------- integrators
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
        formula = response(catalogue["ST"], T=2 * internal_tau, method=name)
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
