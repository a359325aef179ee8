"""M6: closed flows of the nonlinear reactions, and splitting methods made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.linalg import expm
from scipy.special import lambertw

from rdgraph.answers import Status
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.reports.claims.claim_formulas import all_hold, beta, h0, identical
from rdgraph.reports.claims.claim_records import FALSE, HOLDS_IF, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.reports.claims.numerics import final, generator, make_field
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.equality.equivalence import equivalent
from rdgraph.theory.invariant_boxes import single_box
from rdgraph.theory.reaction_flows import reaction_flow
from rdgraph.theory.step_limits import step_limit

# ---------------------------------------------------------------------- overdamping
# M8: second-order models (GraphCON) against diffusion (GRAND): what strong damping leaves of them.

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
        return ClaimVerdict(Status.UNDECIDED)
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
    operator = dense_operator(adjacency, "row")
    n, end = len(operator), float(rng.uniform(0.2, 2))
    state, one = rng.normal(size=(n, 2)), np.eye(len(operator))
    wanted = expm(end * (operator - one)) @ state
    errors = []
    for damping in (20.0, 40.0):
        both = np.block([[0 * one, one], [operator - one, -damping * one]])
        final = expm(damping * end * both)[:n, :n] @ state
        errors.append(np.abs(final - wanted).max())
    return bool(errors[0] < 40 / 20**2 * np.abs(state).max() and 2.5 < errors[0] / errors[1] < 6)


# ---------------------------------------------------------------------- splitting
t = sp.Symbol("t")
_H = sp.Symbol("h")
_SIGNED = {beta: sp.Symbol("beta", positive=True), t: sp.Symbol("t", positive=True)}
_GROWTH = sp.Symbol("E", positive=True)
_DECAY = sp.exp(-beta * t)
#: Claimed flows: Fisher and Allen-Cahn in closed form; Zeldovich through y = (1 - h)/h, y exp(y) = y0 exp(y0 - beta t).
FLOWS = {"F": h0 / (h0 + (1 - h0) * _DECAY), "AC": h0 / sp.sqrt(h0**2 + (1 - h0**2) * _DECAY**2)}
STARTS = {"F": ("1/3", "7/2"), "AC": ("1/3", "-2/5", "7/2"), "Z": ("1/3", "7/2", "-5/3")}


@decides("M6.1")
def closed_flows(e: Evidence) -> ClaimVerdict:
    flows = {}
    for name, claimed in FLOWS.items():
        flow = reaction_flow(catalogue[name])
        solution = flows[name] = flow.expression
        squares = (_in_growth(f) ** 2 for f in (solution, claimed))
        e.check(f"{name}: h(t) = {claimed}", identical(*squares), solution)
        e.check(f"{name}: flowing on for another time is flowing for the sum", _is_group(solution))
        e.check(f"{name}: it solves h' = r(h)", _solves(flow.rate, solution))
    zeldovich = reaction_flow(catalogue["Z"])
    y0 = (1 - h0) / h0
    for condition, formula in zeldovich.branches:
        where = "otherwise" if condition == sp.true else condition
        if formula == 0:
            e.check("Z: 0 rests", zeldovich.rate.subs(_H, 0) == 0, condition)
            continue
        lambert = next(iter(formula.atoms(sp.LambertW)), sp.LambertW(sp.S.One))
        inside = sp.simplify(lambert.args[0] / (y0 * sp.exp(y0 - beta * t)))
        solved = identical(1 / formula - 1, lambert) and inside == 1
        e.check(f"Z, {where}: y = (1 - h)/h is W(y0 exp(y0 - beta t))", solved, lambert)
        e.check(f"Z, {where}: it solves h' = r(h)", _solves(zeldovich.rate, formula))
    flows["Z"] = zeldovich.expression
    for name, starts in STARTS.items():
        values = [flows[name].subs({h0: sp.Rational(x), t: 0, beta: 1}) for x in starts]
        gaps = [abs(sp.N(v - sp.Rational(x), 30)) for v, x in zip(values, starts, strict=True)]
        e.check(f"{name}: starts at h0 = {', '.join(starts)} (the right branches)", max(gaps) < sp.Rational(1, 10**20))
    return all_hold(e)


def _in_growth(formula: sp.Expr, growth: sp.Expr = _GROWTH) -> sp.Expr:
    """The formula with exp(beta t) = growth: rational, or the square root of a rational function."""
    return sp.sympify(formula).subs(t, sp.log(growth) / beta)


def _is_group(formula: sp.Expr) -> bool:
    """h(t2) from h(t1) is h(t1 + t2), exp(beta t1) and exp(beta t2) being any growth factors."""
    other = sp.Symbol("G", positive=True)
    composed = _in_growth(formula, other).subs(h0, _in_growth(formula))
    return identical(composed**2, _in_growth(formula, _GROWTH * other) ** 2)


def _solves(rate: sp.Expr, formula: sp.Expr) -> bool:
    """(h^2)' = 2 h r(h), free of square roots; Lambert's W counts as one more letter after differentiation."""
    residual = sp.diff(formula**2, t) - sp.expand(2 * _H * rate).subs(_H, formula)
    letters = {w: sp.Dummy("w") for w in residual.atoms(sp.LambertW)}
    return identical(_in_growth(residual.xreplace(letters)), sp.S.Zero)


@cross_checks("M6.1")
def flows_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Entries evolve on their own when alpha = 0: a tight solve against the closed forms."""
    name = str(rng.choice(["F", "AC", "Z", "Z below 0"]))
    strength, end = float(rng.uniform(0.5, 2)), float(rng.uniform(0.1, 1))
    start = rng.uniform(0.05, 3, size=(len(adjacency), 1)) * (-1 if name == "Z below 0" else 1)
    decay = np.exp(-strength * end)
    y = (1 - start) / start
    closed = {
        "F": lambda: start / (start + (1 - start) * decay),
        "AC": lambda: start / np.sqrt(start**2 + (1 - start**2) * decay**2),
        "Z": lambda: 1 / (1 + lambertw(y * np.exp(y) * decay).real),
        "Z below 0": lambda: 1 / (1 + lambertw(y * np.exp(y) * decay, -1).real),
    }
    field = make_field(name.partition(" ")[0], dense_operator(adjacency, "row"), alpha=0.0, beta=strength)
    return bool(np.allclose(final(field, start, end), closed[name](), rtol=1e-8, atol=1e-9))


@decides("M6.2")
def splitting(e: Evidence) -> ClaimVerdict:
    """Flows are exponentials of X (diffusion) and Y (reaction), which do not commute."""
    x, y = sp.symbols("X Y", commutative=False)
    size = sp.Symbol("tau")

    def flow(*generators: sp.Expr) -> sp.Expr:
        """The product of exp(generator), through third order."""
        product = sp.S.One
        for g in generators:
            powers = [sp.S.One]
            for k in range(1, 4):
                powers.append(sp.expand(powers[-1] * g / k))
            product *= sp.Add(*powers)
        return sp.expand(product)

    exact = flow(size * (x + y))
    methods = {"Lie": (flow(size * x, size * y), 1), "Strang": (flow(size * x / 2, size * y, size * x / 2), 2)}
    for name, (method, order) in methods.items():
        errors = [sp.expand(method - exact).coeff(size, k) for k in range(order + 2)]
        first = next((k for k, term in enumerate(errors) if term != 0), None)
        e.check(
            f"{name}: one step is exact through tau^{order} and not further, order {order}",
            first == order + 1,
            errors[-1],
        )
    parts, domain = catalogue["diffusion"].structure.generator, catalogue["diffusion"].domain
    averages = sp.expand(sum(parts.values())) == 0 and all(domain.is_nonnegative(c) for k, c in parts.items() if k > 0)
    e.check(
        "exp(-tau alpha L) averages: A^k enters with c_k >= 0, sum 0; its rows are >= 0 and sum to 1", averages, parts
    )
    for name in ("F", "AC", "Z"):
        box = single_box(catalogue[name], "row")
        reacted = reaction_flow(catalogue[name]).expression.subs(_SIGNED)
        faces = [sp.simplify(reacted.subs(h0, face)) for face in (box.lower, box.upper)]
        e.check(f"{name}: the reaction flow rests at both faces, so it maps the box to itself for every step",
                faces == [box.lower, box.upper], faces)  # fmt: skip
        limit = step_limit(catalogue[name], "euler", "row").value
        e.check(f"{name}: Euler keeps it only up to a finite step", limit is not None and limit != sp.oo, limit)
    return all_hold(e)


@cross_checks("M6.2")
def splitting_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Observed orders 1 and 2 against a tight solve, and the box under steps far beyond Euler's limit."""
    a = dense_operator(adjacency, "row")
    name = str(rng.choice(["F", "AC", "Z"]))
    x, y = rng.uniform(0.5, 1.5, size=2)
    state = rng.uniform(0.1, 0.9, size=(len(a), 1))

    def react(h: Any, step: float) -> Any:
        decay = np.exp(-y * step)
        if name == "F":
            return h / (h + (1 - h) * decay)
        if name == "AC":
            return h / np.sqrt(h**2 + (1 - h**2) * decay**2)
        ratio = (1 - h) / h
        return 1 / (1 + lambertw(ratio * np.exp(ratio) * decay).real)

    def run(steps: int, end: float, strang: bool) -> Any:
        tau, h = end / steps, state
        part = expm((tau / 2 if strang else tau) * generator("diffusion", a, alpha=x))
        for _ in range(steps):
            h = part @ react(part @ h, tau) if strang else react(part @ h, tau)
        return h

    exact = final(make_field(name, a, alpha=x, beta=y), state, 1.0)
    for strang, order in ((False, 1), (True, 2)):
        coarse, fine = (np.linalg.norm(run(n, 1.0, strang) - exact) for n in (32, 64))
        if fine > 1e-9 and abs(np.log2(coarse / fine) - order) > 0.25:
            return False
    far = run(3, 60.0, True)
    return bool(far.min() >= -1e-12 and far.max() <= 1 + 1e-12)
