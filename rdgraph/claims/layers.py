"""M8: discrete layers (GCN, GCNII, GPR-GNN) against Euler steps."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import Mix
from rdgraph.claims.formulas import all_hold
from rdgraph.claims.numerics import make_field
from rdgraph.claims.registry import FALSE, HOLDS, HOLDS_IF, UNDECIDED, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities.comparison import CONDITIONAL, REFUTED
from rdgraph.identities.equivalence import equivalent
from rdgraph.identities.step_maps import euler_map, iterate
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse

#: Layers as maps in the language: what one Euler step is compared with.
GCN = "relu(A@H@W)"
GCNII = "(1 - a)*A@H + a*H0"


@decides("M8.1")
def gcn(e: Evidence) -> ClaimVerdict:
    """One Euler step of -alpha L H against sigma(A H W)."""
    step = euler_map(catalogue["diffusion"], "epsilon")
    bare = equivalent(step, "A@H")
    matches = e.check("the step is A H iff tau alpha = 1", bare.status == CONDITIONAL, bare)
    e.check("... which is SGC's layer", equivalent(euler_map(catalogue["SGC"], 1), "A@H"))
    layers = {layer: equivalent(step, layer) for layer in (GCN, "A@H@W")}
    refuted = all(not x and x.witness is not None for x in layers.values())
    e.check("a free W or an activation is not an Euler step", refuted, layers[GCN].witness)
    mixed = parse("A@H@W").normal
    e.check(
        "W = I undoes the mixing", mixed.replace(lambda x: isinstance(x, Mix), lambda x: x.inner) == parse("A@H").normal
    )
    plain, looped = (dense_operator([[0, 1], [1, 0]], self_loops=x) for x in (0, 1))
    e.check("GCN's self-loops change the operator A itself", abs(plain - looped).max() > 0, looped.tolist())
    status = HOLDS_IF if matches and refuted else HOLDS if matches else FALSE
    conditions = " or ".join(", ".join(c).replace("epsilon", "tau") for c in bare.conditions)
    condition = f"W = I, no activation, {conditions}, and A is GCN's own operator"
    return ClaimVerdict(status, condition, str(layers[GCN].witness))


@cross_checks("M8.1")
def gcn_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

    a = dense_operator(adjacency, "symmetric", self_loops=float(rng.integers(2)))
    state, w, x = rng.normal(size=(len(a), 3)), rng.normal(size=(3, 3)), float(rng.uniform(0.2, 2))
    step = state + make_field("diffusion", a, alpha=x)(state) / x
    return bool(np.allclose(step, a @ state) and not np.allclose(step, np.maximum(a @ state @ w, 0)))


@decides("M8.5")
def gcnii(e: Evidence) -> ClaimVerdict:
    """One Euler step of ST against (1 - a) A H + a H0, for all coefficients."""
    source = equivalent(euler_map(catalogue["ST"], "epsilon"), GCNII)
    never = e.check(
        "an Euler step of ST is never a GCNII layer with a > 0", source.status == REFUTED and source.witness, source
    )
    leak = equivalent(euler_map(catalogue["APPNP"], "epsilon"), GCNII)
    e.check(
        "with the leak -beta H it is, at tau (alpha + beta) = 1",
        leak.status == CONDITIONAL and _balanced(leak.conditions),
        leak,
    )
    weights = euler_map(catalogue["ST"], "epsilon").structure
    total = sp.expand(sum(weights.generator.values()))
    e.check("weights on H and A H sum to 1, GCNII's to 1 - a", total == 1, total)
    return ClaimVerdict(FALSE if never else UNDECIDED, witness=str(source.witness))


def _balanced(conditions: tuple[tuple[str, ...], ...]) -> bool:
    """Whether the conditions say tau (alpha + beta) = 1 and a = tau beta."""
    letters = {n: sp.Symbol(n) for n in ("a", "alpha", "beta", "epsilon")}
    for texts in conditions:
        solution = {
            letters[left.strip()]: sp.sympify(right, locals=letters)
            for left, _, right in (t.partition("=") for t in texts)
        }
        step = letters["epsilon"]
        rest = [step * (letters["alpha"] + letters["beta"]) - 1, letters["a"] - step * letters["beta"]]
        if any(sp.simplify(r.subs(solution)) != 0 for r in rest):
            return False
    return bool(conditions)


@cross_checks("M8.5")
def gcnii_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

    a = dense_operator(adjacency, "symmetric")
    state, start = rng.normal(size=(2, len(a), 3))
    share, step = float(rng.uniform(0.1, 0.9)), float(rng.uniform(0.2, 2))
    layer = (1 - share) * a @ state + share * start
    leak = make_field("APPNP", a, alpha=(1 - share) / step, beta=share / step, H0=start)
    source = make_field("ST", a, alpha=(1 - share) / step, beta=share / step, H0=start)
    return bool(np.allclose(state + step * leak(state), layer) and not np.allclose(state + step * source(state), layer))


@decides("M8.6")
def gpr(e: Evidence) -> ClaimVerdict:
    for name, growth in (("diffusion", 1), ("FB", 1), ("FB*", 1), ("BS", 2)):
        kinds = {"beta": "channel"} if "beta" in catalogue[name].coefficients else {}
        degrees = []
        for n in (1, 2, 3):
            map_ = iterate(euler_map(parse(name, kinds), "epsilon"), n).structure
            degrees.append(max(map_.generator) if map_.is_polynomial_in_operator else None)
        e.check(f"{name}: n Euler steps are a polynomial in A of degree {growth} n, n = 1, 2, 3",
                degrees == [growth, 2 * growth, 3 * growth], degrees)  # fmt: skip
        free = parse(name, assume=[f"{c} real" for c in catalogue[name].coefficients])
        converse = equivalent(iterate(euler_map(free, "epsilon"), 2 // growth), "H + A@A@H")
        e.check(
            f"{name}: the polynomial I + A^2 is not reached", converse.status == REFUTED and converse.witness, converse
        )
    return all_hold(e)


@cross_checks("M8.6")
def gpr_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Coefficients by polynomial multiplication, the state by stepping."""
    import numpy as np
    from numpy.polynomial import polynomial

    a = dense_operator(adjacency, "row")
    x, y, step = rng.uniform(-1, 1, size=3)
    state = rng.normal(size=(len(a), 1))
    once = {
        "diffusion": [1 - step * x, step * x],
        "FB": [1 - step * (x - y), step * (x - y)],
        "BS": [1 - step * x, step * (x + y), -step * y],
    }
    for name, factor in once.items():
        field, result, n = make_field(name, a, alpha=x, beta=y), state, int(rng.integers(1, 5))
        for _ in range(n):
            result = result + step * field(result)
        gammas = polynomial.polypow(factor, n)
        if not np.allclose(sum(g * np.linalg.matrix_power(a, k) @ state for k, g in enumerate(gammas)), result):
            return False
    return True
