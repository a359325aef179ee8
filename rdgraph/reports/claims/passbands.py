"""M2: which frequencies the exact flows pass, and what becomes of them after a long time."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.linalg import expm

from rdgraph.answers import Status
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.reports.claims.claim_formulas import RATIOS, T, all_hold, alpha, beta, identical, lam, same, same_classes
from rdgraph.reports.claims.claim_records import FALSE, HOLDS, HOLDS_IF, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.reports.claims.numerics import double_cover, generator, modes
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.equivalence import equivalent
from rdgraph.theory.filters import ALL, BAND, HIGH, LOW, STOP, FilterClass, classify, growth_rate, response, symbol

#: Claimed filter classes for a beta of either sign.
_BY_SIGN = (FilterClass(beta < alpha, LOW), FilterClass(sp.Eq(beta, alpha), ALL), FilterClass(beta > alpha, HIGH))
CLASSES = {
    "FB": _BY_SIGN,
    "FB*": _BY_SIGN,
    "FB-released": (
        FilterClass(beta > -alpha, LOW),
        FilterClass(sp.Eq(beta, -alpha), ALL),
        FilterClass(beta < -alpha, HIGH),
    ),
    "BS": (
        FilterClass(beta < -alpha / 3, STOP, sp.S.Half - alpha / (2 * beta)),
        FilterClass((beta >= -alpha / 3) & (beta <= alpha), LOW),
        FilterClass(beta > alpha, BAND, (beta - alpha) / (2 * beta)),
    ),
}


@decides("M2.3")
def filter_classes(e: Evidence) -> ClaimVerdict:
    for name, claimed in CLASSES.items():
        classes = classify(parse(name, assume="beta real"))
        e.check(f"{name}: {'; '.join(map(str, claimed))}", same_classes(classes, claimed), "; ".join(map(str, classes)))
    source = [c.kind for c in classify(parse("ST", assume="beta nonnegative"))]
    e.check("ST with beta >= 0 is low-pass", source == [LOW], source)
    p = symbol(catalogue["BS"])
    peak = growth_rate(parse("BS", assume="beta > alpha"))
    e.check(
        "BS, beta > alpha: the peak grows at (beta - alpha)^2/(4 beta)",
        same(peak, (beta - alpha) ** 2 / (4 * beta)),
        peak,
    )
    e.check("BS: no net gain at lam = 1 - alpha/beta", identical(p.subs(lam, 1 - alpha / beta), sp.S.Zero))
    gap = sp.expand((p - symbol(catalogue["diffusion"])).subs(lam, 2))
    e.check("BS damps lam = 2 by 2 beta more than diffusion does", gap == -2 * beta, gap)
    return all_hold(e)


@cross_checks("M2.3")
def classes_on_graphs(adjacency: Any, rng: Any) -> bool:
    """Gains, sorted by frequency, must rise and fall as the class says."""
    a = dense_operator(adjacency, "symmetric")
    frequencies, vectors = modes(a)
    for name, classes in CLASSES.items():
        x = float(rng.uniform(0.1, 2))
        y = x * float(rng.choice([-3, -1.2, -0.4, -0.3, 0.2, 0.9, 1.1, 3]))
        at = {alpha: x, beta: y}
        claimed = next(c for c in classes if c.condition.subs(at) == sp.true)
        turn = 3.0 if claimed.at is None else float(claimed.at.subs(at))
        rates = np.diag(vectors.T @ generator(name, a, alpha=x, beta=y) @ vectors)
        steps = np.diff(rates)
        before, after = steps[frequencies[1:] <= turn], steps[frequencies[:-1] >= turn]
        falling = claimed.kind in (LOW, STOP)
        if not (np.all((before <= 1e-9) if falling else (before >= -1e-9))):
            return False
        if not (np.all((after >= -1e-9) if falling else (after <= 1e-9))):
            return False
    return True


@decides("M2.3-sharpening")
def sharpening(e: Evidence) -> ClaimVerdict:
    """A high-pass filter must not damp the highest frequency more than the lowest."""
    reaction = catalogue["BS"].replace(alpha=0)
    p = symbol(reaction)
    e.check("the reaction's symbol is beta lam (1 - lam)", identical(p, beta * lam * (1 - lam)), p)
    kinds = {name: [c.kind for c in classify(x)] for name, x in (("reaction alone", reaction), ("BS", catalogue["BS"]))}
    never = HIGH not in kinds["reaction alone"] and HIGH not in kinds["BS"]
    e.check("for beta > 0 neither the reaction alone nor BS is high-pass for any alpha, beta", never, kinds)
    top = p.subs(lam, 2)
    damped = same(top, -2 * beta)
    e.check("the reaction damps lam = 2 while the mean is kept", damped and p.subs(lam, 0) == 0, f"p(2) = {top}")
    lifting = [c for c in classify(parse("BS", assume="beta real")) if c.kind == STOP]
    negative = all(c.condition.subs({alpha: 1, beta: x}) == sp.false for c in lifting for x in RATIOS if x >= 0)
    e.check("only a negative beta lifts lam = 2 above its surroundings", lifting and negative, *lifting)
    return ClaimVerdict(
        FALSE if never and damped else Status.UNDECIDED, witness=f"lam = 2: gain exp({top}*T) < 1, extra damping"
    )


@cross_checks("M2.3-sharpening")
def sharpening_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "symmetric")
    vectors = modes(a)[1]
    x, y = rng.uniform(0.1, 2, size=2)
    top = vectors[:, -1]
    return bool(
        top @ generator("BS", a, alpha=x, beta=y) @ top
        < top @ generator("diffusion", a, alpha=x) @ top - 1e-9 * np.abs(y)
    )


@decides("M2.3-continuous")
def high_frequencies(e: Evidence) -> ClaimVerdict:
    """What is left of a frequency after a long time: nothing without a source, beta/(alpha lam) with one."""
    mode, a, b, end = sp.symbols("lam alpha beta T", positive=True)
    signed = {lam: mode, alpha: a, beta: b, T: end}
    bare = sp.limit(response(catalogue["GRAND-l"]).xreplace(signed), end, sp.oo)
    lost = e.check("GRAND: the gain of every lam > 0 tends to 0", bare == 0, bare)
    cgnn = equivalent("ST", "CGNN")
    e.check("CGNN with W = 0 is ST", any("W = 0" in c for c in cgnn.conditions), cgnn)
    forced = sp.limit(response(catalogue["ST"]).xreplace(signed), end, sp.oo)
    is_bounded = e.check("ST: the gain tends to beta/(alpha lam), not to 0", identical(forced, b / (a * mode)), forced)
    rest = forced.subs({mode: 2, a: 1, b: 1})
    status = HOLDS_IF if lost and is_bounded else HOLDS if lost else FALSE
    return ClaimVerdict(
        status, "there is no source", f"CGNN with W = 0 (alpha = beta = 1) keeps {rest} of lam = 2 for all T"
    )


@cross_checks("M2.3-continuous")
def high_frequencies_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(double_cover(adjacency), "symmetric")
    n, top = len(a), modes(a)[1][:, -1]
    x, y = rng.uniform(0.5, 2, size=2)
    lost = expm(40 * generator("GRAND-l", a)) @ top
    extended = np.block([[generator("ST", a, alpha=x, beta=y), y * np.eye(n)], [np.zeros((n, 2 * n))]])
    final = (expm(40 * extended) @ np.concatenate([top, top]))[:n]
    return bool(np.abs(lost).max() < 1e-8 and np.allclose(final, y / (2 * x) * top, atol=1e-8))
