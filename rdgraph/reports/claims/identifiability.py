"""M3: what a flow reveals of its coefficients, and how channel and node coefficients differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Status
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.answer_symbols import lam as internal_lam
from rdgraph.reals.domain import BOTH, NEGATIVE, Domain
from rdgraph.reports.claims.claim_formulas import T, all_hold, alpha, beta, class_at, identical, lam, same
from rdgraph.reports.claims.claim_records import FALSE, HOLDS, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.reports.claims.numerics import double_cover, final, generator, make_field, modes
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.equality.derivations import euler_map, iterate
from rdgraph.theory.equality.equality_proof import REFUTED
from rdgraph.theory.equality.equivalence import equivalent
from rdgraph.theory.filters import classify, response, symbol
from rdgraph.theory.identifiability.question import identify

GAUGED = ("BS", "F", "AC", "Z", "ST")


def _faster(system: System, factor: str) -> System:
    """All coefficients times a factor."""
    return system.replace(alpha=f"{factor}*alpha", beta=f"{factor}*beta")


@decides("M3.1")
def time_gauge(e: Evidence) -> ClaimVerdict:
    """Coefficients times c run the same path c times as fast; a fixed step sees the difference."""
    c = sp.Symbol("c")
    for name in GAUGED:
        system = catalogue[name]
        e.check(f"{name}: coefficients times c give c f(H)", equivalent(_faster(system, "c"), f"c*({system.text})"))
        known = identify(system)
        e.check(
            f"{name}: T known, the flow reveals both coefficients",
            set(known.combinations) == {alpha, beta} and known.status == Status.PROVED,
            known.combinations,
        )
        once, twice = euler_map(_faster(system, "2"), "epsilon"), iterate(euler_map(system, "epsilon"), 2)
        gap = sp.expand(once.normal - twice.normal)
        e.check(f"{name}: one Euler step at doubled coefficients is not two steps", gap != 0)
    for name in ("BS", "ST"):
        gain = response(catalogue[name])
        scaled = gain.subs({alpha: c * alpha, beta: c * beta, T: T / c}, simultaneous=True)
        e.check(f"{name}: the response depends on alpha T and beta T alone", same(_generic(scaled), _generic(gain)))
        stepped = _generic(response(catalogue[name], T=2, method="euler", step=1))
        moved = _generic(response(_faster(catalogue[name], "2"), T=1, method="euler", step=1))
        e.check(f"{name}: with a fixed Euler step it does not", not identical(stepped, moved))
    return all_hold(e)


def _generic(gain: sp.Expr) -> sp.Expr:
    """The branch away from p = 0."""
    return gain.args[0].expr if isinstance(gain, sp.Piecewise) else gain


@cross_checks("M3.1")
def time_gauge_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "row")
    name = str(rng.choice(GAUGED))
    x, y, factor = rng.uniform(0.3, 1, size=3)
    state = rng.uniform(0.1, 0.9, size=(len(a), 1))
    slow = make_field(name, a, alpha=x, beta=y, H0=state)
    fast = make_field(name, a, alpha=x / factor, beta=y / factor, H0=state)
    same_path = np.allclose(final(slow, state, 1.0), final(fast, state, factor), rtol=1e-8, atol=1e-9)
    middle = state + 0.5 * slow(state)
    double = make_field(name, a, alpha=2 * x, beta=2 * y, H0=state)
    return bool(same_path and np.abs(middle + 0.5 * slow(middle) - state - 0.5 * double(state)).max() > 1e-6)


@decides("M3.6")
def channels_and_nodes(e: Evidence) -> ClaimVerdict:
    split = parse("BS", {"alpha": "channel", "beta": "channel"})
    e.check(
        "channel coefficients: every channel has the scalar symbol",
        same(symbol(split), symbol(catalogue["BS"])),
        symbol(split),
    )
    e.check("channel coefficients commute with L", equivalent("b*(L@H) where b channel", "L@(b*H) where b channel"))
    swapped = equivalent("b*(L@H) where b node", "L@(b*H) where b node")
    e.check(
        "node coefficients do not commute with L",
        swapped.outcome == REFUTED and swapped.witness is not None,
        swapped.witness,
    )
    reason = _refusal(parse("BS", {"beta": "node"}))
    e.check("node coefficients: there is no symbol", "does not commute" in reason, reason)
    similar = equivalent("b*(b*(L@(b*(H/b)))) where b node", "b*b*(L@H) where b node")
    e.check("diag(b^2) L = diag(b) [diag(b) L diag(b)] diag(b)^-1, a symmetric matrix up to similarity", similar)
    entries = sp.Matrix(3, 3, lambda i, j: sp.Symbol(f"l{min(i, j)}{max(i, j)}"))
    root = sp.diag(*sp.symbols("b:3"))
    x = sp.Symbol("x")
    left, right = ((x * sp.eye(3) - m).det() for m in (root**2 * entries, root * entries * root))
    e.check(
        "... the characteristic polynomials agree also where b vanishes (3 nodes, any symmetric L)",
        sp.expand(left - right) == 0,
    )
    e.check(
        "... which is >= 0 as L is: its spectrum is that of diffusion, lam on [0, 2]", same(symbol(parse("L@H")), lam)
    )
    return all_hold(e)


def _refusal(system: System) -> str:
    try:
        return f"the symbol {symbol(system)}"
    except NotApplicable as reason:
        return str(reason)


@cross_checks("M3.6")
def channels_and_nodes_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "symmetric")
    n, laplacian = len(a), np.eye(len(a)) - dense_operator(adjacency, "symmetric")
    x, y, state = rng.uniform(-1, 1, size=3), rng.uniform(-1, 1, size=3), rng.normal(size=(len(a), 3))
    together = make_field(parse("BS", {"alpha": "channel", "beta": "channel"}), a, alpha=x, beta=y)(state)
    apart = [generator("BS", a, alpha=x[c], beta=y[c]) @ state[:, c] for c in range(3)]
    nodes = rng.uniform(0, 2, size=n) * (rng.random(n) < 0.8)
    spectrum = np.linalg.eigvals(nodes[:, None] * laplacian)
    real = np.abs(spectrum.imag).max() < 1e-6 and spectrum.real.min() > -1e-6
    weights = np.diag(np.arange(1.0, n + 1))
    commutes = np.allclose(weights @ laplacian, laplacian @ weights)
    return bool(np.allclose(together, np.transpose(apart)) and real and not commutes)


@decides("M3.7")
def scalar_against_vector(e: Evidence) -> ClaimVerdict:
    """The two options reach different filters: compare what each constraint set allows, alpha in (0, 1) in both."""
    classes = classify(parse("BS", assume="beta real"))
    grid = [sp.Rational(k, 4) for k in range(-8, 9)]
    inside = [x for x in grid if 0 < x < 1]
    scalar = {(x, y): class_at(classes, {alpha: x, beta: y}) for x in inside for y in inside}
    vector = {(x, y): class_at(classes, {alpha: x, beta: y}) for x in inside for y in grid}
    kinds = [sorted({c.kind for c in kinds_of.values() if c is not None}) for kinds_of in (scalar, vector)]
    differ = e.check(
        "the vector option reaches filter classes that the scalar one can not", kinds[0] != kinds[1], kinds
    )
    top = (
        parse("BS").generator_symbol.subs(internal_lam, 2),
        parse("BS", assume="beta real").generator_symbol.subs(internal_lam, 2),
    )
    signs = [Domain().sign(p) for p in top]
    e.check(
        "lam = 2 is always damped for beta > 0, amplified or damped for a free beta", signs == [NEGATIVE, BOTH], signs
    )
    extra = [(x, y, c) for (x, y), c in vector.items() if c is not None and c.kind not in kinds[0]]
    witness = (
        f"alpha = {extra[0][0]}, beta = {extra[0][1]}: {extra[0][2].kind}, never for beta in (0, 1)" if extra else ""
    )
    return ClaimVerdict(FALSE if differ and extra else HOLDS, witness=witness)


@cross_checks("M3.7")
def reach_on_graphs(adjacency: Any, rng: Any) -> bool:
    """On a bipartite cover the top frequency is 2: a scalar beta in (0, 1) damps it, some vector beta amplifies it."""
    a = dense_operator(double_cover(adjacency), "symmetric")
    top = modes(a)[1][:, -1]
    x, y = rng.uniform(0.01, 0.99, size=2)
    damped = top @ generator("BS", a, alpha=x, beta=y) @ top
    amplified = top @ generator("BS", a, alpha=x, beta=-x - y) @ top
    return bool(np.allclose([damped, amplified], [-2 * (x + y), 2 * y]))
