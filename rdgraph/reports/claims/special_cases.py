"""M8: continuous models (GRAND, CGNN, GRAND++) as special cases, and the general statement."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from numpy.polynomial import polynomial
from scipy.linalg import expm

from rdgraph.answers import Status
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.normal_form import H0, Mix
from rdgraph.reports.claims.claim_formulas import T, all_hold, alpha, identical
from rdgraph.reports.claims.claim_records import FALSE, HOLDS, HOLDS_IF, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.reports.claims.numerics import generator, make_field
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.derivations import euler_map, iterate
from rdgraph.theory.equality.equality_proof import CONDITIONAL, REFUTED
from rdgraph.theory.equality.equivalence import equivalent
from rdgraph.theory.filters import response

# ---------------------------------------------------------------------- layers
# M8: discrete layers (GCN, GCNII, GPR-GNN) against Euler steps.

#: Layers as maps in the language: what one Euler step is compared with.
GCN = "relu(A@H@W)"
GCNII = "(1 - a)*A@H + a*H0"


@decides("M8.1")
def gcn(e: Evidence) -> ClaimVerdict:
    """One Euler step of -alpha L H against sigma(A H W)."""
    step = euler_map(catalogue["diffusion"], "epsilon")
    bare = equivalent(step, "A@H")
    matches = e.check("the step is A H iff tau alpha = 1", bare.outcome == CONDITIONAL, bare)
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
    a = dense_operator(adjacency, "symmetric", self_loops=float(rng.integers(2)))
    state, w, x = rng.normal(size=(len(a), 3)), rng.normal(size=(3, 3)), float(rng.uniform(0.2, 2))
    step = state + make_field("diffusion", a, alpha=x)(state) / x
    return bool(np.allclose(step, a @ state) and not np.allclose(step, np.maximum(a @ state @ w, 0)))


@decides("M8.5")
def gcnii(e: Evidence) -> ClaimVerdict:
    """One Euler step of ST against (1 - a) A H + a H0, for all coefficients."""
    source = equivalent(euler_map(catalogue["ST"], "epsilon"), GCNII)
    never = e.check(
        "an Euler step of ST is never a GCNII layer with a > 0", source.outcome == REFUTED and source.witness, source
    )
    leak = equivalent(euler_map(catalogue["APPNP"], "epsilon"), GCNII)
    e.check(
        "with the leak -beta H it is, at tau (alpha + beta) = 1",
        leak.outcome == CONDITIONAL and _balanced(leak.conditions),
        leak,
    )
    weights = euler_map(catalogue["ST"], "epsilon").structure
    total = sp.expand(sum(weights.generator.values()))
    e.check("weights on H and A H sum to 1, GCNII's to 1 - a", total == 1, total)
    return ClaimVerdict(FALSE if never else Status.UNDECIDED, witness=str(source.witness))


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
            f"{name}: the polynomial I + A^2 is not reached", converse.outcome == REFUTED and converse.witness, converse
        )
    return all_hold(e)


@cross_checks("M8.6")
def gpr_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Whether GPR-GNN's weights, multiplied out as polynomials, give the states that Euler's steps reach."""
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


# ---------------------------------------------------------------------- special cases
REACTIONS = ("F", "AC", "Z", "BS", "ST", "FB", "FB*")


@decides("M8.2")
def grand(e: Evidence) -> ClaimVerdict:
    for name in REACTIONS:
        e.check(f"{name} with beta = 0 is the diffusion", equivalent(name, "diffusion", given=["beta = 0"]))
    e.check("alpha = 1: linear GRAND", equivalent("diffusion", "GRAND-l", given=["alpha = 1"]))
    speed = equivalent("diffusion", "GRAND-l", rescale_time=True)
    e.check("any alpha: GRAND run at another speed", speed and speed.time_factor == "alpha", speed)
    pair = response(catalogue["diffusion"]), response(catalogue["GRAND-l"]).subs(T, alpha * T)
    e.check("alpha only rescales T", identical(*pair), pair[0])
    return all_hold(e)


@cross_checks("M8.2")
def grand_on_graphs(adjacency: Any, rng: Any) -> bool:
    weights = np.where(adjacency > 0, np.exp(rng.normal(size=adjacency.shape)), 0)
    a = weights / weights.sum(axis=1, keepdims=True)  # attention, frozen
    x, end, state = float(rng.uniform(0.2, 2)), float(rng.uniform(0.1, 2)), rng.normal(size=(len(a), 2))
    fields = [make_field(n, a, alpha=x, beta=0.0, H0=state)(state) for n in REACTIONS]
    heat = x * make_field("GRAND-l", a)(state)
    runs = expm(end * generator("diffusion", a, alpha=x)), expm(end * x * generator("GRAND-l", a))
    return all(np.allclose(f, heat) for f in fields) and bool(np.allclose(*runs))


@decides("M8.3")
def cgnn(e: Evidence) -> ClaimVerdict:
    printed = equivalent("ST", "CGNN")
    only = e.check("as printed: ST with W = 0 and unit coefficients", printed.outcome == CONDITIONAL, printed)
    speed = equivalent("ST", "CGNN", rescale_time=True)
    equal = ("W = 0", "alpha = beta") in speed.conditions and speed.time_factor == "alpha"
    e.check("with sigmoid coefficients: alpha = beta, run for T/alpha", equal, speed)
    run = equivalent("ST", "CGNN-authors")
    e.check("as its authors run it (node-wise diffusivity, decay): not an instance", not run and run.witness, run)
    e.check("the decay alone sets the printed form apart", _has_decay("CGNN-authors") and not _has_decay("CGNN"))
    conditions = " or ".join(", ".join(c) for c in printed.conditions)
    return ClaimVerdict(HOLDS_IF if only else HOLDS if printed else FALSE, conditions, str(run.witness))


def _has_decay(name: str) -> bool:
    """Whether states equal in all nodes decay once W and the source are gone."""
    structure = catalogue[name].structure
    return bool(structure.scalar_field(sp.S.One, sp.S.Zero).is_negative)


@cross_checks("M8.3")
def cgnn_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "symmetric")
    state, start, w = rng.normal(size=(len(a), 2)), rng.normal(size=(len(a), 2)), rng.normal(size=(2, 2))
    source = make_field("ST", a, alpha=1.0, beta=1.0, H0=start)(state)
    without, mixed = (make_field("CGNN", a, H0=start, W=m)(state) for m in (np.zeros((2, 2)), w))
    return bool(np.allclose(source, without) and not np.allclose(source, mixed))


@decides("M8.4")
def grand_plus_plus(e: Evidence) -> ClaimVerdict:
    """The source M*H0 is switched on and off by node; one beta would have to be 1 and 0 at once."""
    mask = sp.Symbol("M", real=True)
    beta = catalogue["ST"].algebra.symbols["beta"]
    gap = sp.expand(catalogue["ST"].normal - catalogue["GRAND++"].normal)
    free = sp.Symbol("beta", real=True)
    wanted = [gap.coeff(H0).subs({mask: value, beta: free}) for value in (0, 1)]
    common = sp.solve(wanted, [free], dict=True)
    impossible = e.check(
        "no scalar beta serves nodes with and without a source", common == [], f"{wanted[0]} = {wanted[1]} = 0"
    )
    for kind in ("scalar", "channel"):
        uniform = equivalent(parse("ST", {"beta": kind}), "GRAND++")
        e.check(f"a {kind} beta: not the same system as it stands", not uniform, uniform)
    nodewise = equivalent(parse("ST", {"beta": "node"}), "GRAND++")
    e.check("a node vector beta = M does it", any("beta = M" in c for c in nodewise.conditions), nodewise)
    return ClaimVerdict(
        FALSE if impossible else Status.UNDECIDED,
        witness=f"M = (1, 0): needs {wanted[1]} = 0 at one node, {wanted[0]} = 0 at the other",
    )


@cross_checks("M8.4")
def grand_plus_plus_on_graphs(adjacency: Any, rng: Any) -> bool:
    """The best channel-wise alpha, beta in the least-squares sense still misses a source on one node."""
    a = dense_operator(adjacency, "row")
    n = len(a)
    mask = np.zeros((n, 1))
    mask[int(rng.integers(n))] = 1
    states = rng.normal(size=(2, 4, n, 1))  # four states and their starts, one channel
    targets = np.concatenate([make_field("GRAND++", a, H0=s0, M=mask)(s) for s, s0 in zip(*states, strict=True)])
    basis = [np.concatenate([make_field("ST", a, alpha=x, beta=y, H0=s0)(s) for s, s0 in zip(*states, strict=True)])
             for x, y in ((1.0, 0.0), (0.0, 1.0))]  # fmt: skip
    design = np.hstack(basis)
    best = np.linalg.lstsq(design, targets, rcond=None)[0]
    nodewise = np.concatenate(
        [
            make_field(parse("ST", {"beta": "node"}), a, alpha=1.0, beta=mask, H0=s0)(s)
            for s, s0 in zip(*states, strict=True)
        ]
    )
    return bool(np.abs(design @ best - targets).max() > 1e-6 and np.allclose(nodewise, targets))


@decides("M8.9")
def special_cases(e: Evidence) -> ClaimVerdict:
    """The general statement, from the outcomes of the questions above."""
    models = {"SGC": gcn, "linear GRAND": grand, "CGNN": cgnn, "GRAND++": grand_plus_plus, "GCNII": gcnii}
    outcomes = {}
    for model, question in models.items():
        evidence = Evidence()
        outcomes[model] = question(evidence)
        e.check(f"{model}: decided on {len(evidence.checks)} checks", evidence.all_passed, outcomes[model].status)
    yes = [
        m if v.status == HOLDS else f"{m} ({v.condition})" for m, v in outcomes.items() if v.status in (HOLDS, HOLDS_IF)
    ]
    no = [m for m, v in outcomes.items() if v.status == FALSE]
    whole = all(v.status == HOLDS for v in outcomes.values())
    is_mixed = bool(yes) and len(yes) + len(no) == len(models)
    status = HOLDS if whole else HOLDS_IF if is_mixed else FALSE if no else Status.UNDECIDED
    return ClaimVerdict(status, f"the model is {', '.join(yes)}", f"not an instance: {', '.join(no)}")
