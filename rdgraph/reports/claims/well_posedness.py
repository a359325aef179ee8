"""M4: Lipschitz constants, slopes and blow-up; the constant that state-dependent attention does not have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Status
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.answer_symbols import h, public
from rdgraph.language.normal_form import H
from rdgraph.reals.domain import Domain
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum
from rdgraph.reports.claims.claim_formulas import R, all_hold, alpha, beta, h0, identical, s, same
from rdgraph.reports.claims.claim_records import FALSE, HOLDS, HOLDS_IF, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.reports.claims.numerics import double_cover, final, generator, make_field, solve
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.theory.global_existence import GLOBAL, LOCAL, existence
from rdgraph.theory.invariant_boxes import raw_box, single_box
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided
from rdgraph.theory.step_limits import step_limit

# ---------------------------------------------------------------------- box keeping
# M4: invariant boxes of the flow, boxes for the symmetric normalisation, and Euler steps that keep them.

BOXES = {"F": (0, 1), "AC": (-1, 1), "Z": (0, 1)}
_Q = alpha / beta * (s - 1)
#: Claimed upper ends of the boxes for the symmetric A; the lower end is 0, or minus the upper one for AC.
STRETCHED = {"F": 1 + _Q, "AC": sp.sqrt(1 + _Q), "Z": (1 + sp.sqrt(1 + 4 * _Q)) / 2}
#: Claimed largest Euler steps, for beta > 0 and for beta < 0.
STEPS = {
    ("F", "positive"): 1 / (alpha + beta),
    ("Z", "positive"): 1 / (alpha + beta),
    ("AC", "positive"): 1 / (alpha + 2 * beta),
    ("F", "negative"): 1 / (alpha - beta),
    ("Z", "negative"): 1 / (alpha - beta / 4),
    ("AC", "negative"): 1 / (alpha - beta / 4),
}


@decides("M4.5")
def invariant_boxes(e: Evidence) -> ClaimVerdict:
    bounds = []
    for name, box in BOXES.items():
        derived = single_box(parse(name, assume="beta real"), "row")
        bounds.append((derived.lower, derived.upper) == box)
        e.check(f"{name}: row-stochastic A keeps {list(box)} for beta of any sign", bounds[-1], derived.reason)
    speeds = {name: _speed_at_hub(name) for name in BOXES}
    leaves = e.check("symmetric A, star of 5 nodes, all entries 1: the hub leaves at speed alpha (s - 1), s = 2",
                     all(v == Fraction(1) for v in speeds.values()), speeds)  # fmt: skip
    status = HOLDS_IF if all(bounds) and leaves else HOLDS if all(bounds) else Status.UNDECIDED
    witness = f"symmetric A, star of 5 nodes, alpha = beta = 1, all entries 1: speed {speeds['F']} at the hub"
    return ClaimVerdict(status, "A is row-stochastic", witness)


def _speed_at_hub(name: str) -> Any:
    """f at the hub of a star with 4 leaves, symmetric normalisation, all entries 1 and alpha = beta = 1, exactly."""
    half, none = Fraction(1, 2), Fraction(0)
    star = np.array([[half if (i == 0) != (j == 0) else none for j in range(5)] for i in range(5)], dtype=object)
    ones = np.array([[Fraction(1)]] * 5, dtype=object)
    unit = np.array(Fraction(1), dtype=object)
    return evaluate(catalogue[name].expression, {"A": star, "H": ones, "alpha": unit, "beta": unit})[0, 0]


@cross_checks("M4.5")
def boxes_on_graphs(adjacency: Any, rng: Any) -> bool:
    name = str(rng.choice(list(BOXES)))
    low, high = BOXES[name]
    x, y = rng.uniform(0.1, 3), rng.uniform(-3, 3)
    state = rng.uniform(low, high, size=(len(adjacency), 2))
    state[:, 1] = rng.choice([low, high], size=len(adjacency))
    end = final(make_field(name, dense_operator(adjacency, "row"), alpha=x, beta=y), state, 2.0)
    symmetric = dense_operator(adjacency, "symmetric")
    top = symmetric.sum(axis=1).max()
    speed = make_field(name, symmetric, alpha=x, beta=y)(np.ones((len(adjacency), 1))).max()
    return bool(end.min() >= low - 1e-8 and end.max() <= high + 1e-8 and np.isclose(speed, x * (top - 1)))


@decides("M4.5-symmetric")
def symmetric_boxes(e: Evidence) -> ClaimVerdict:
    for name, upper in STRETCHED.items():
        box = single_box(catalogue[name], "symmetric")
        lower = -upper if name == "AC" else 0
        e.check(f"{name}: [{lower}, {upper}]", _same_end(box.upper, upper) and _same_end(box.lower, lower), box)
        structure = catalogue[name].structure
        reaction = public(structure.scalar_field(h, sp.S.Zero)).subs(sp.Symbol("h"), upper)
        e.check(f"{name}: there the pull alpha (s - 1) h and the reaction balance",
                identical(_outside(alpha * (s - 1) * upper + reaction), sp.S.Zero))  # fmt: skip
        regular = sp.simplify(upper.subs(s, 1))
        e.check(f"{name}: s = 1 gives the box of the row-stochastic A", regular == BOXES[name][1], regular)
    none = single_box(catalogue["BS"], "symmetric")
    two_hops = public(catalogue["BS"].structure.generator[2])
    e.check(
        "BS: no maximum principle, A^2 enters with a negative coefficient",
        not none.exists and two_hops == -beta,
        none.reason,
    )
    return all_hold(e)


def _outside(formula: object) -> sp.Expr:
    """s = 1 + q with q >= 0, coefficients positive."""
    signed = {alpha: sp.Symbol("alpha", positive=True), beta: sp.Symbol("beta", positive=True)}
    return sp.sympify(formula).subs(s, 1 + sp.Symbol("q", nonnegative=True)).subs(signed)


def _same_end(derived: sp.Expr | None, claimed: object) -> bool:
    return derived is not None and identical(_outside(derived), _outside(claimed))


@cross_checks("M4.5-symmetric")
def symmetric_boxes_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "symmetric")
    name = str(rng.choice(list(STRETCHED)))
    x, y = rng.uniform(0.1, 2, size=2)
    high = float(STRETCHED[name].subs({alpha: x, beta: y, s: a.sum(axis=1).max()}))
    low = -high if name == "AC" else 0.0
    field = make_field(name, a, alpha=x, beta=y)
    state = rng.uniform(low, high, size=(len(a), 2))
    state[:, 1] = high
    end = final(field, state, 2.0)
    hub = int(np.argmax(a.sum(axis=1)))
    balanced = abs(field(np.full((len(a), 1), high))[hub, 0]) < 1e-9
    matrix = generator("BS", a, alpha=x, beta=y)
    two_hops = (a == 0) & (a @ a > 0) & ~np.eye(len(a), dtype=bool)
    return bool(end.min() >= low - 1e-8 and end.max() <= high + 1e-8 and balanced and np.all(matrix[two_hops] < 0))


@decides("M4.6")
def euler_steps(e: Evidence) -> ClaimVerdict:
    for (name, sign), claimed in STEPS.items():
        limit = step_limit(parse(name, assume=f"beta {sign}"), "euler", "row").value
        e.check(f"{name}, beta {sign}: {claimed}", same(limit, claimed, beta=sign), limit)
        e.check(f"{name}, beta {sign}: kept at the limit, left 5 % beyond it", _is_sharp(name, sign, claimed))
    return all_hold(e)


def _is_sharp(name: str, sign: str, limit: sp.Expr) -> bool:
    """Exact Euler steps of a node at h whose neighbours are all on one face, over a grid of the box."""
    entry, face = sp.symbols("entry face")
    structure = catalogue[name].structure
    pull = sum((c for k, c in structure.generator.items() if k > 0), sp.S.Zero) * face
    right = public(structure.generator[0] * entry + pull + structure.reaction.xreplace({H: entry}))
    speed, largest = sp.lambdify((entry, face, alpha, beta), right, "math"), sp.lambdify((alpha, beta), limit, "math")
    low, high = map(Fraction, BOXES[name])
    grid = [low + (high - low) * Fraction(k, 200) for k in range(201)]
    unit = Fraction(1 if sign == "positive" else -1)
    for x, y in ((Fraction(1, 2), unit), (Fraction(1), unit / 5), (Fraction(1, 3), 4 * unit)):
        is_invariant = [
            all(low <= g + size * largest(x, y) * speed(g, f, x, y) <= high for g in grid for f in (low, high))
            for size in (Fraction(1), Fraction(21, 20))
        ]
        if is_invariant != [True, False]:
            return False
    return True


@cross_checks("M4.6")
def euler_steps_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "row")
    for (name, sign), formula in STEPS.items():
        low, high = map(float, BOXES[name])
        x, y = rng.uniform(0.1, 1), rng.uniform(0.5, 2) * (1 if sign == "positive" else -1)
        limit = float(formula.subs({alpha: x, beta: y}))
        field = make_field(name, a, alpha=x, beta=y)
        states = np.hstack([rng.uniform(low, high, size=(len(a), 20)), rng.choice([low, high], size=(len(a), 20))])
        after = states + limit * field(states)
        if after.min() < low - 1e-12 or after.max() > high + 1e-12:
            return False
        grid = np.linspace(low, high, 201)
        lonely = np.hstack([np.full((len(a), 201), low), np.full((len(a), 201), high)])
        lonely[0] = np.concatenate([grid, grid])
        beyond = (lonely + 1.05 * limit * field(lonely))[0]
        if beyond.min() >= low and beyond.max() <= high:
            return False
    return True


# ---------------------------------------------------------------------- well posedness
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
        constant = lipschitz_global(catalogue[name])
        e.check(f"{name}: {claimed}", constant.is_sharp and same(constant.value, claimed), constant.value)
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
    """Whether norms stay below the Lipschitz constants on a graph, and reach them on its bipartite cover."""
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
        derived = lipschitz_local(reaction)
        e.check(f"{name}: {local} on |h| <= R", derived.is_sharp and same(derived.value, local), derived.value)
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
        e.check(f"{name}, beta > 0: never", lives.value == GLOBAL and not lives.blow_ups, lives.reason)
    for name, sign in dict.fromkeys((n, assumed) for n, assumed, _, _ in BLOW_UPS):
        lives = existence(parse(name, assume=f"beta {sign}"))
        time_of = {b.condition: b.time for b in lives.blow_ups}
        claimed = {c: t for n, assumed, c, t in BLOW_UPS if (n, assumed) == (name, sign)}
        e.check(f"{name}, beta {sign}: from {', '.join(map(str, claimed))} only",
                lives.value == LOCAL and set(time_of) == set(claimed), ", ".join(map(str, time_of)))  # fmt: skip
        rate = public(sp.expand(catalogue[name].structure.scalar_field(h, sp.S.Zero))).subs(sp.Symbol("h"), h0)
        for condition, formula in claimed.items():
            times = (formula, time_of.get(condition))
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
    status = (HOLDS_IF if finite else HOLDS) if grows else (FALSE if finite else Status.UNDECIDED)
    return ClaimVerdict(status, "the attention depends on the state", f"slope {steep} at neighbours R and -R")


@cross_checks("M4.7")
def attention_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Softmax attention with logits w h_i h_j over neighbours: finite differences at growing states; then frozen."""
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

    fixed = operator(rng.normal(size=len(adjacency)))
    growth = slope(8.0) / slope(2.0)
    return bool(growth > 12 and np.linalg.norm(np.eye(len(fixed)) - fixed, np.inf) <= 2 + 1e-12)
