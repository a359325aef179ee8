"""M4: invariant boxes of the flow, boxes for the symmetric normalisation, and Euler steps that keep them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import H
from rdgraph.claims.formulas import all_hold, alpha, beta, identical, s, same
from rdgraph.claims.numerics import final, generator, make_field
from rdgraph.claims.registry import HOLDS, HOLDS_IF, UNDECIDED, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities.dense_oracle import evaluate
from rdgraph.syntax.answer_symbols import h, public
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.invariant_boxes import single_box
from rdgraph.theory.step_limits import step_limit

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
    kept = []
    for name, box in BOXES.items():
        found = single_box(parse(name, assume="beta real"), "row")
        kept.append((found.lower, found.upper) == box)
        e.check(f"{name}: row-stochastic A keeps {list(box)} for beta of any sign", kept[-1], found.note)
    speeds = {name: _speed_at_hub(name) for name in BOXES}
    leaves = e.check("symmetric A, star of 5 nodes, all entries 1: the hub leaves at speed alpha (s - 1), s = 2",
                     all(v == Fraction(1) for v in speeds.values()), speeds)  # fmt: skip
    status = HOLDS_IF if all(kept) and leaves else HOLDS if all(kept) else UNDECIDED
    witness = f"symmetric A, star of 5 nodes, alpha = beta = 1, all entries 1: speed {speeds['F']} at the hub"
    return ClaimVerdict(status, "A is row-stochastic", witness)


def _speed_at_hub(name: str) -> Any:
    """f at the hub of a star with 4 leaves, symmetric normalisation, all entries 1 and alpha = beta = 1, exactly."""
    import numpy as np

    half, none = Fraction(1, 2), Fraction(0)
    star = np.array([[half if (i == 0) != (j == 0) else none for j in range(5)] for i in range(5)], dtype=object)
    ones = np.array([[Fraction(1)]] * 5, dtype=object)
    unit = np.array(Fraction(1), dtype=object)
    return evaluate(catalogue[name].expression, {"A": star, "H": ones, "alpha": unit, "beta": unit})[0, 0]


@cross_checks("M4.5")
def boxes_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

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
        found = single_box(catalogue[name], "symmetric")
        lower = -upper if name == "AC" else 0
        e.check(f"{name}: [{lower}, {upper}]", _same_end(found.upper, upper) and _same_end(found.lower, lower), found)
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
        none.note,
    )
    return all_hold(e)


def _outside(formula: object) -> sp.Expr:
    """s = 1 + q with q >= 0, coefficients positive."""
    signed = {alpha: sp.Symbol("alpha", positive=True), beta: sp.Symbol("beta", positive=True)}
    return sp.sympify(formula).subs(s, 1 + sp.Symbol("q", nonnegative=True)).subs(signed)


def _same_end(found: sp.Expr | None, claimed: object) -> bool:
    return found is not None and identical(_outside(found), _outside(claimed))


@cross_checks("M4.5-symmetric")
def symmetric_boxes_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

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
        found = step_limit(parse(name, assume=f"beta {sign}"), "euler", "row").value
        e.check(f"{name}, beta {sign}: {claimed}", same(found, claimed, beta=sign), found)
        e.check(f"{name}, beta {sign}: kept at the limit, left 5 % beyond it", _is_sharp(name, sign, claimed))
    return all_hold(e)


def _is_sharp(name: str, sign: str, limit: sp.Expr) -> bool:
    """Exact Euler steps of a node at h whose neighbours all sit on one face, over a grid of the box."""
    own, face = sp.symbols("own face")
    structure = catalogue[name].structure
    pull = sum((c for k, c in structure.generator.items() if k > 0), sp.S.Zero) * face
    right = public(structure.generator[0] * own + pull + structure.reaction.xreplace({H: own}))
    speed, largest = sp.lambdify((own, face, alpha, beta), right, "math"), sp.lambdify((alpha, beta), limit, "math")
    low, high = map(Fraction, BOXES[name])
    grid = [low + (high - low) * Fraction(k, 200) for k in range(201)]
    unit = Fraction(1 if sign == "positive" else -1)
    for x, y in ((Fraction(1, 2), unit), (Fraction(1), unit / 5), (Fraction(1, 3), 4 * unit)):
        kept = [
            all(low <= g + size * largest(x, y) * speed(g, f, x, y) <= high for g in grid for f in (low, high))
            for size in (Fraction(1), Fraction(21, 20))
        ]
        if kept != [True, False]:
            return False
    return True


@cross_checks("M4.6")
def euler_steps_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

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
