"""M8: continuous models (GRAND, CGNN, GRAND++) as special cases, and the general statement."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import H0
from rdgraph.claims.formulas import T, all_hold, alpha, identical
from rdgraph.claims.layers import gcn, gcnii
from rdgraph.claims.numerics import generator, make_field
from rdgraph.claims.registry import FALSE, HOLDS, HOLDS_IF, UNDECIDED, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities.comparison import CONDITIONAL
from rdgraph.identities.equivalence import equivalent
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.filters import response

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
    import numpy as np
    from scipy.linalg import expm

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
    only = e.check("as printed: ST with W = 0 and unit coefficients", printed.status == CONDITIONAL, printed)
    speed = equivalent("ST", "CGNN", rescale_time=True)
    equal = ("W = 0", "alpha = beta") in speed.conditions and speed.time_factor == "alpha"
    e.check("with sigmoid coefficients: alpha = beta, run for T/alpha", equal, speed)
    run = equivalent("ST", "CGNN-authors")
    e.check(
        "as its authors run it (node-wise diffusivity, decay): not an instance",
        not run and run.witness,
        run,
    )
    e.check("the decay alone sets the printed form apart", _has_decay("CGNN-authors") and not _has_decay("CGNN"))
    conditions = " or ".join(", ".join(c) for c in printed.conditions)
    return ClaimVerdict(HOLDS_IF if only else HOLDS if printed else FALSE, conditions, str(run.witness))


def _has_decay(name: str) -> bool:
    """Whether states equal in all nodes decay once W and the source are gone."""
    structure = catalogue[name].structure
    return bool(structure.scalar_field(sp.S.One, sp.S.Zero).is_negative)


@cross_checks("M8.3")
def cgnn_on_graphs(adjacency: Any, rng: Any) -> bool:
    import numpy as np

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
        FALSE if impossible else UNDECIDED,
        witness=f"M = (1, 0): needs {wanted[1]} = 0 at one node, {wanted[0]} = 0 at the other",
    )


@cross_checks("M8.4")
def grand_plus_plus_on_graphs(adjacency: Any, rng: Any) -> bool:
    """The best channel-wise alpha, beta in the least-squares sense still misses a source on one node."""
    import numpy as np

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
    status = HOLDS if whole else HOLDS_IF if yes and len(yes) + len(no) == len(models) else FALSE if no else UNDECIDED
    return ClaimVerdict(status, f"the model is {', '.join(yes)}", f"not an instance: {', '.join(no)}")
