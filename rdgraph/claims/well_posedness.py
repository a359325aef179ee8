"""M4: Lipschitz constants, slopes and blow-up; the constant that state-dependent attention does not have."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.claims.formulas import R, all_hold, alpha, beta, h0, identical, same
from rdgraph.claims.numerics import double_cover, generator, make_field, solve
from rdgraph.claims.registry import FALSE, HOLDS, HOLDS_IF, UNDECIDED, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.interval_extrema import interval_candidates
from rdgraph.decisions.maxima import Candidate, maximum
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.syntax.answer_symbols import h, public
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.global_existence import GLOBAL, LOCAL, existence
from rdgraph.theory.invariant_boxes import raw_box
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided

#: Claimed 2-norm constants over all symmetric A, beta > 0.
CONSTANTS = {
    "diffusion": 2 * alpha,
    "ST": 2 * alpha,
    "BS": 2 * (alpha + beta),
    "FB": 2 * sp.Abs(beta - alpha),
    "FB*": sp.Max(beta, sp.Abs(3 * beta - 2 * alpha)),
}
#: Claimed sup |r'| on |h| <= R, on the reaction's own box, and sup r' over all states (None: unbounded).
SLOPES = {
    "F": (1 + 2 * R, 1, None),
    "AC": (sp.Max(1, 3 * R**2 - 1), 2, 1),
    "Z": (2 * R + 3 * R**2, 1, sp.Rational(1, 3)),
}
_SIZE = -beta
#: Claimed blow-up: system, sign of beta, starting values, time.
BLOW_UPS = (
    ("F", "positive", h0 < 0, sp.log(1 - 1 / h0) / beta),
    ("F", "negative", h0 > 1, sp.log(h0 / (h0 - 1)) / _SIZE),
    ("AC", "negative", h0 > 1, sp.log(h0**2 / (h0**2 - 1)) / (2 * _SIZE)),
    ("AC", "negative", h0 < -1, sp.log(h0**2 / (h0**2 - 1)) / (2 * _SIZE)),
    ("Z", "negative", h0 < 0, (-1 / h0 - sp.log(1 - 1 / h0)) / _SIZE),
    ("Z", "negative", h0 > 1, (-1 / h0 - sp.log(1 - 1 / h0)) / _SIZE),
)


@decides("M4.1")
def linear_constants(e: Evidence) -> ClaimVerdict:
    for name, claimed in CONSTANTS.items():
        found = lipschitz_global(catalogue[name])
        e.check(f"{name}: {claimed}", found.exact and same(found.value, claimed), found.value)
    size = -beta
    turning = sp.Piecewise(((alpha + size) ** 2 / (4 * size), size >= alpha / 3), (0, True))
    negative = lipschitz_global(parse("BS", assume="beta negative")).value
    claimed = sp.Max(2 * sp.Abs(size - alpha), turning)
    e.check("BS, beta < 0: max(2 | |beta| - alpha |, (alpha + |beta|)^2/(4 |beta|) from |beta| = alpha/3 on)",
            same(negative, claimed, beta="negative"), negative)  # fmt: skip
    for text, value in (("A@H", 1), ("L@H", 2), ("A@H - A@A@H", 2)):
        norms = [lipschitz_global(parse(text), n).value for n in ("symmetric", "row", "column")]
        e.check(
            f"{text}: {value} in the 2-norm (symmetric), inf-norm (row) and 1-norm (column)",
            norms == [value] * 3,
            norms,
        )
    star = sp.Matrix([[0, *[sp.Rational(1, 4)] * 4], *[[1, 0, 0, 0, 0]] * 4])
    spread = max((star.T * star).eigenvals())
    e.check("the 2-norm is no norm for row-stochastic A: a star of 5 nodes has |A|_2 = 2", spread == 4, sp.sqrt(spread))
    return all_hold(e)


@cross_checks("M4.1")
def linear_constants_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Norms stay below the constants on every graph and reach them on bipartite ones."""
    import numpy as np

    x, y = rng.uniform(0.1, 2, size=2)
    plain, cover = (dense_operator(w, "symmetric") for w in (adjacency, double_cover(adjacency)))
    row, column = (dense_operator(adjacency, n) for n in ("row", "column"))
    for name, formula in CONSTANTS.items():
        claimed = float(formula.subs({alpha: x, beta: y}))
        below = np.linalg.norm(generator(name, plain, alpha=x, beta=y), 2) <= claimed + 1e-9
        if not below or not np.isclose(np.linalg.norm(generator(name, cover, alpha=x, beta=y), 2), claimed):
            return False
    norms = [(np.linalg.norm(m, order), np.linalg.norm(m - m @ m, order)) for m, order in ((row, np.inf), (column, 1))]
    return all(np.isclose(a, 1) and b <= 2 + 1e-12 for a, b in norms)


@decides("M4.2")
def nonlinear_slopes(e: Evidence) -> ClaimVerdict:
    for name, (local, boxed, sided) in SLOPES.items():
        reaction = catalogue[name].replace(alpha=0, beta=1)
        found = lipschitz_local(reaction)
        e.check(f"{name}: {local} on |h| <= R", found.exact and same(found.value, local), found.value)
        box = raw_box(catalogue[name], "row")
        slope = sp.diff(reaction.structure.scalar_field(h, sp.S.Zero), h)
        ends = interval_candidates(slope, h, box.lower, box.upper, Domain())
        largest = maximum([*ends, *(Candidate(-c.value) for c in ends)], Domain())
        e.check(f"{name}: {boxed} on [{box.lower}, {box.upper}]", largest == boxed, largest)
        upper = one_sided(reaction).value
        e.check(f"{name}: one-sided {'none' if sided is None else sided}", upper == sided, upper)
    return all_hold(e)


@cross_checks("M4.2")
def slopes_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Two states of the whole system: distances and inner products against the constants."""
    import numpy as np

    a = dense_operator(adjacency, "symmetric")
    radius = float(rng.uniform(0.2, 3))
    states = rng.uniform(-radius, radius, size=(2, len(a), 1))
    close = states[0] + 1e-6 * rng.normal(size=states[0].shape)
    for name, (local, _, sided) in SLOPES.items():
        bound = float(local.subs(R, radius))
        still = make_field(name, a, alpha=0.0, beta=1.0)
        moving = make_field(name, a, alpha=float(rng.uniform(0, 2)), beta=1.0)
        for other in (states[1], np.clip(close, -radius, radius)):
            gap = states[0] - other
            if np.any(np.abs(still(states[0]) - still(other)) > bound * np.abs(gap) * (1 + 1e-6) + 1e-12):
                return False
            if (
                sided is not None
                and np.sum((moving(states[0]) - moving(other)) * gap) > float(sided) * np.sum(gap**2) + 1e-12
            ):
                return False
        ends = np.array([[-radius], [radius], [0.0], [min(radius, 1 / 3)]])
        quotient = (still(ends + 1e-6) - still(ends - 1e-6)) / 2e-6 if len(a) == 4 else None
        if quotient is not None and np.abs(quotient).max() < bound * (1 - 1e-4):
            return False
    return True


@decides("M4.3")
def blow_up(e: Evidence) -> ClaimVerdict:
    """A closed time t*(h0) is right iff r(h0) dt*/dh0 = -1 and t* -> 0 as h0 goes to infinity."""
    for name in ("AC", "Z"):
        lives = existence(catalogue[name])
        e.check(f"{name}, beta > 0: never", lives.status == GLOBAL and not lives.blow_ups, lives.reason)
    for name, sign in dict.fromkeys((n, s) for n, s, _, _ in BLOW_UPS):
        lives = existence(parse(name, assume=f"beta {sign}"))
        found = {b.condition: b.time for b in lives.blow_ups}
        claimed = {c: t for n, s, c, t in BLOW_UPS if (n, s) == (name, sign)}
        e.check(f"{name}, beta {sign}: from {', '.join(map(str, claimed))} only",
                lives.status == LOCAL and set(found) == set(claimed), ", ".join(map(str, found)))  # fmt: skip
        rate = public(sp.expand(catalogue[name].structure.scalar_field(h, sp.S.Zero))).subs(sp.Symbol("h"), h0)
        for condition, formula in claimed.items():
            times = (formula, found.get(condition))
            e.check(f"{name}, {condition}: at t = {formula}", all(_is_time(t, rate) for t in times), times[1])
    return all_hold(e)


def _is_time(time: sp.Expr | None, rate: sp.Expr) -> bool:
    if time is None:
        return False
    u = sp.Symbol("u")
    # 1/h0 = u: the logarithms' arguments become rational functions that are 1 at u = 0.
    near = time.subs(h0, 1 / u).replace(sp.log, lambda x: sp.log(sp.cancel(x)))
    return identical(sp.diff(time, h0) * rate, sp.S.NegativeOne) and sp.expand(near.subs(u, 0)) == 0


@cross_checks("M4.3")
def blow_up_on_graphs(adjacency: Any, rng: Any) -> bool:
    """States equal in all nodes of a row-stochastic graph, until they are large."""
    import numpy as np

    a = dense_operator(adjacency, "row")
    name, sign, condition, formula = BLOW_UPS[int(rng.integers(len(BLOW_UPS)))]
    strength = float(rng.uniform(0.5, 2)) * (1 if sign == "positive" else -1)
    edge = float(condition.args[1])
    start = edge + float(rng.uniform(0.2, 2)) * (1 if isinstance(condition, sp.Gt) else -1)
    time = float(formula.subs({h0: start, beta: strength}))
    large = 1e3

    def escape(_: float, y: Any) -> float:
        return float(np.abs(y).max() - large)

    escape.terminal = True  # type: ignore[attr-defined]
    field = make_field(name, a, alpha=1.0, beta=strength)
    run = solve(field, np.full((len(a), 1), start), 2 * time, events=escape, rtol=1e-6, atol=1e-8)
    # From `large` on a quadratic reaction needs another 1/(|beta| large), a cubic one less.
    reached = run.t_events[0]
    return len(reached) == 1 and -1e-4 <= time - reached[0] <= 2 / (abs(strength) * large)


@decides("M4.7")
def attention(e: Evidence) -> ClaimVerdict:
    """A node x that attends to neighbours a and b with logits w x a and w x b: out = s a + (1 - s) b."""
    x, a, b = sp.symbols("x a b", real=True)
    w, radius = sp.symbols("w R", positive=True)
    weights = [sp.exp(w * x * v) for v in (a, b)]
    share = weights[0] / sum(weights)
    out = share * a + (1 - share) * b
    slope = sp.diff(out, x)
    e.check("d out/dx = w (a - b)^2 s (1 - s)", identical(slope, w * (a - b) ** 2 * share * (1 - share)))
    steep = sp.simplify(slope.subs({a: radius, b: -radius}).subs(x, 0))
    grows = e.check(
        "at a = -b = R, x = 0 it is w R^2, unbounded",
        steep == w * radius**2 and sp.limit(steep, radius, sp.oo) == sp.oo,
        steep,
    )
    e.check("the output stays between a and b: linear growth, so solutions still exist for all time",
            identical(out - a, (1 - share) * (b - a)) and identical(out - b, share * (a - b)))  # fmt: skip
    frozen = {name: lipschitz_global(catalogue[name], "row").value for name in ("GRAND-l", "BS", "ST")}
    finite = e.check(
        "attention computed once and kept: finite constants", all(v is not None for v in frozen.values()), frozen
    )
    status = (HOLDS_IF if finite else HOLDS) if grows else (FALSE if finite else UNDECIDED)
    return ClaimVerdict(status, "the attention depends on the state", f"slope {steep} at neighbours R and -R")


@cross_checks("M4.7")
def attention_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Softmax attention with logits w h_i h_j over neighbours: finite differences at growing states; then frozen."""
    import numpy as np

    degree = adjacency.sum(axis=1)
    node = int(np.argmax(degree))
    if degree[node] < 2:
        return True  # a single neighbour always has weight 1
    neighbours = np.flatnonzero(adjacency[node])
    w = float(rng.uniform(0.5, 2))

    def operator(state: Any) -> Any:
        weights = np.where(adjacency > 0, np.exp(w * np.outer(state, state)), 0)
        return weights / weights.sum(axis=1, keepdims=True)

    def slope(radius: float) -> float:
        state, step = np.zeros(len(adjacency)), np.eye(len(adjacency))[node] * 1e-4 / radius
        state[neighbours[:2]] = radius, -radius
        ahead, behind = (operator(state + sign * step) @ (state + sign * step) for sign in (1, -1))
        return float(np.linalg.norm(ahead - behind, np.inf) / (2 * np.abs(step).max()))

    kept = operator(rng.normal(size=len(adjacency)))
    growth = slope(8.0) / slope(2.0)
    return bool(growth > 12 and np.linalg.norm(np.eye(len(kept)) - kept, np.inf) <= 2 + 1e-12)
