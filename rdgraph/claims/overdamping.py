"""M8: second-order models (GraphCON) against diffusion (GRAND): what strong damping leaves of them."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.claims.registry import FALSE, HOLDS_IF, UNDECIDED, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.identities.equivalence import equivalent
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

#: GraphCON with one linear averaging layer: the activation is left out and the coupling is A.
GRAPHCON = "H'' = A@H - gamma*H - alpha*H'"


def slow_branch(system: System, damping: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
    """The eigenvalues of a symbol of two states, slow and fast, for a damping that is large; in plain symbols.

    >>> a = sp.Symbol("alpha", positive=True)
    >>> slow, fast = slow_branch(parse(GRAPHCON).replace(gamma=1), a)
    >>> sp.simplify(slow * fast)
    lam
    """
    P = system.symbol().subs(sp.Symbol(damping.name), damping)
    trace, product = sp.expand(P.trace()), sp.expand(P.det())
    root = sp.sqrt(trace**2 - 4 * product)
    return (trace + root) / 2, (trace - root) / 2


@decides("M8.10")
def graphcon(e: Evidence) -> ClaimVerdict:
    a, lam, gamma = sp.Symbol("alpha", positive=True), sp.Symbol("lam"), sp.Symbol("gamma")
    x = sp.Symbol("x", positive=True)  # 1/alpha
    system = parse(GRAPHCON)
    same = equivalent(GRAPHCON, "H' = V; V' = A@H - gamma*H - alpha*V")
    e.check("it is a system of two fields of first order", same, same)
    e.check("which is no diffusion", not equivalent(GRAPHCON, "GRAND-l"), equivalent(GRAPHCON, "GRAND-l"))
    slow, fast = slow_branch(system, a)
    expansion = sp.series((slow * a).subs(a, 1 / x), x, 0, 4).removeO()
    limit = sp.expand(expansion.subs(x, 0))
    e.check("alpha times the slow eigenvalue has a limit: the rate in the time t/alpha", not limit.has(x), limit)
    e.check("the fast one has none: alpha*mu + alpha**2 stays bounded", _is_bounded(fast * a + a**2, a, x))
    target = catalogue["GRAND-l"].symbol()
    solved = sp.solve(sp.Poly(limit - target, lam).coeffs(), gamma, dict=True)
    agree = e.check("the limit is GRAND's symbol for one gamma alone", len(solved) == 1, solved)
    if not agree:
        return ClaimVerdict(UNDECIDED)
    value = solved[0][gamma]
    correction = sp.factor(sp.expand(expansion - limit).subs(gamma, value) / x**2)
    e.check("the next term is of order 1/alpha**2", not correction.has(x) and correction != 0, correction)
    e.check("all of the state goes along: it is projected on the slow branch", _follows(slow, fast, a, x, gamma, value))
    near = _is_near(slow.subs(gamma, value), a, lam)
    e.check("alpha*mu lies within 4*lam**2/alpha**2 of the limit where alpha**2 >= 4*lam", near)
    if not e.all_passed:
        return ClaimVerdict(FALSE, witness=next(c.text for c in e.checks if not c.passed))
    return ClaimVerdict(HOLDS_IF, f"gamma = {value} and time runs in units of alpha")


def _is_bounded(value: sp.Expr, a: sp.Symbol, x: sp.Symbol) -> bool:
    """Whether an expression has a limit as a grows."""
    start = sp.series(value.subs(a, 1 / x), x, 0, 1).removeO()
    return not sp.expand(start).has(x)


def _follows(slow: sp.Expr, fast: sp.Expr, a: sp.Symbol, x: sp.Symbol, gamma: sp.Symbol, value: sp.Expr) -> bool:
    """exp(T P) in its first row is (-fast, 1)/(slow - fast) exp(T slow) + ..., which tends to (1, 0) exp(T slow)."""
    gap = slow - fast
    weights = (-fast / gap, 1 / gap)
    limits = [sp.limit(w.subs(gamma, value).subs(a, 1 / x), x, 0) for w in weights]
    return limits == [1, 0]


def _is_near(slow: sp.Expr, a: sp.Symbol, lam: sp.Symbol) -> bool:
    """With lam = alpha^2 (1 - r^2)/4, 0 <= r <= 1: -alpha mu/lam - 1 = (1 - r)/(1 + r), at most 4 lam/alpha^2."""
    r = sp.Symbol("r", nonnegative=True)
    inside = a**2 * (1 - r**2) / 4
    excess = sp.simplify(-a * slow.subs(lam, inside) / inside - 1)
    same = sp.simplify(excess - (1 - r) / (1 + r)) == 0
    gap = sp.cancel((4 * inside / a**2 - (1 - r) / (1 + r)) * (1 + r) / ((1 - r) * r))
    return bool(same) and all(c >= 0 for c in sp.Poly(gap, r).coeffs())


@cross_checks("M8.10")
def graphcon_on_graphs(adjacency: Any, rng: Any) -> bool:
    """The flow of GraphCON after time alpha*T against GRAND's after T: the difference falls like 1/alpha^2."""
    import numpy as np
    from scipy.linalg import expm

    from rdgraph.graphs.normalisation import dense_operator

    operator = dense_operator(adjacency, "row")
    n, end = len(operator), float(rng.uniform(0.2, 2))
    state, one = rng.normal(size=(n, 2)), np.eye(len(operator))
    wanted = expm(end * (operator - one)) @ state
    errors = []
    for damping in (20.0, 40.0):
        both = np.block([[0 * one, one], [operator - one, -damping * one]])
        found = expm(damping * end * both)[:n, :n] @ state
        errors.append(np.abs(found - wanted).max())
    return bool(errors[0] < 40 / 20**2 * np.abs(state).max() and 2.5 < errors[0] / errors[1] < 6)
