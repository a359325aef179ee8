"""M2: symbols and exact responses, reductions between filter banks, the three normalisations."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.claims.formulas import T, all_hold, alpha, beta, identical, lam, same, tau
from rdgraph.claims.numerics import generator, modes
from rdgraph.claims.registry import ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities.derivations import Derivation
from rdgraph.identities.equivalence import equivalent
from rdgraph.syntax.answer_symbols import tau as own_tau
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.filters import response, symbol

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
    import numpy as np
    from scipy.linalg import expm

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
    euler = {n: response(catalogue[n], T=own_tau, method="euler") for n in ("FB*", "FB-released")}
    scaled = (1 + tau * beta) * (1 + tau / (1 + tau * beta) * (beta - alpha) * lam)
    e.check("Euler: FB* = (1 + tau beta) FB with tau/(1 + tau beta)", same(euler["FB*"], scaled), euler["FB*"])
    gain = 1 + 2 * tau * beta
    shadow = gain * (1 - tau / gain * (alpha + beta) * lam)
    e.check("Euler: released FB = (1 + 2 tau beta) GRAND", same(euler["FB-released"], shadow), euler["FB-released"])
    return all_hold(e)


@cross_checks("M2.6")
def reductions_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np
    from scipy.linalg import expm

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
        e.check(text, Derivation(text, lines, inverse, letters).check().holds)
    sums = ("a*(Q@X@P@H) + b*(Q@S@P@H)", "Q@((a*X + b*S)@(P@H))")
    e.check("sums with scalar coefficients carry over", Derivation("sum", sums, inverse, letters).check().holds)
    bare = Derivation("bare", steps["A_row = Q S P"], (), letters).check()
    e.check("only P Q = Q P = I was used, and it was needed", not bare.holds, bare.first_failure)
    return all_hold(e)


@cross_checks("M2.9")
def normalisations_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

    coefficients = rng.normal(size=5)
    symmetric, row, column = (dense_operator(adjacency, n) for n in ("symmetric", "row", "column"))

    def f(m: Any) -> Any:
        return sum(c * np.linalg.matrix_power(m, k) for k, c in enumerate(coefficients))

    root = np.sqrt(adjacency.sum(axis=1))
    similar = f(symmetric) * root[None, :] / root[:, None]
    other = f(symmetric) * root[:, None] / root[None, :]
    return bool(np.allclose(f(row), similar) and np.allclose(f(column), other))
