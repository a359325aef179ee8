"""M6: closed flows of the nonlinear reactions, and splitting methods made of them."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.claims.formulas import all_hold, beta, h0, identical
from rdgraph.claims.numerics import final, generator, make_field
from rdgraph.claims.registry import ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.systems.catalogue import catalogue
from rdgraph.theory.invariant_boxes import single_box
from rdgraph.theory.reaction_flows import reaction_flow
from rdgraph.theory.step_limits import step_limit

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
        found = flows[name] = flow.expression
        squares = (_in_growth(f) ** 2 for f in (found, claimed))
        e.check(f"{name}: h(t) = {claimed}", identical(*squares), found)
        e.check(f"{name}: flowing on for another time is flowing for the sum", _is_group(found))
        e.check(f"{name}: it solves h' = r(h)", _solves(flow.rate, found))
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
    import numpy as np
    from scipy.special import lambertw

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
    import numpy as np
    from scipy.linalg import expm
    from scipy.special import lambertw

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
