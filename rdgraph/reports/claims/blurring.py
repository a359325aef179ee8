"""M1: the blurring-sharpening derivation, its "limit", and what kind of pattern former BS is."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Status
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.reader import Vocabulary, read_expression
from rdgraph.language.tree import Kind
from rdgraph.reals.domain import NEGATIVE
from rdgraph.reports.claims.claim_records import FALSE, HOLDS, ClaimVerdict, Evidence, cross_checks, decides
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.theory.equality.derivations import Derivation, derivation, euler_map
from rdgraph.theory.equality.equivalence import equivalent
from rdgraph.theory.filters import classify, fastest_frequency, symbol

lam, alpha, beta, tau = sp.symbols("lam alpha beta tau")


def _chain(e: Evidence, name: str) -> ClaimVerdict:
    """A shipped derivation under L = I - A, and the same chain under L = D - A."""
    chain = derivation(name)
    report = chain.check()
    holds = e.check(f"{len(report.steps)} steps are identities under L = I - A alone", report.holds)
    failure = chain.under("L = D - A").check().first_failure
    e.check(
        "the hypothesis is needed: the chain fails under L = D - A",
        failure is not None and failure.witness is not None,
        "" if failure is None else f"line {failure.number} -> {failure.number + 1}",
    )
    return ClaimVerdict(HOLDS if holds else FALSE, witness="" if holds else str(report.first_failure))


@decides("M1.1")
def blur(e: Evidence) -> ClaimVerdict:
    return _chain(e, "bs-blur")


@decides("M1.2")
def ten_lines(e: Evidence) -> ClaimVerdict:
    chain = derivation("bs-appendix")
    closed = Derivation("closed", (chain.lines[0], "H - L@L@H"), chain.hypotheses, letters=chain.letters)
    e.check("every line equals (I - L^2) H", closed.check().holds)
    return _chain(e, "bs-appendix")


@decides("M1.3")
def difference(e: Evidence) -> ClaimVerdict:
    verdict = _chain(e, "bs-difference")
    e.check("the right side is -L^2 H", equivalent("-L@H + (A - A@A)@H", "-L@L@H"))
    e.check(
        "A - A^2 = A L = L A = L - L^2", all(equivalent("(A - A@A)@H", t) for t in ("A@L@H", "L@A@H", "(L - L@L)@H"))
    )
    e.check("BS is (beta - alpha) L - beta L^2", equivalent("BS", "(beta - alpha)*L@H - beta*L@L@H"))
    e.check("alpha = beta gives -alpha L^2", equivalent("BS", "-alpha*L@L@H", given=["beta = alpha"]))
    return verdict


@decides("M1.4")
def limit(e: Evidence) -> ClaimVerdict:
    """The right side of the difference equation has no h in it; two exact statements replace the limit."""
    h, T, mode = sp.symbols("h T lam", positive=True)
    right = symbol(parse(derivation("bs-difference").lines[-1])).subs(lam, mode)
    literal = sp.limit(right, h, 0)
    empty = e.check("the right side does not depend on h, so the literal limit reads 0 = -L^2 H",
                    literal == right and sp.expand(right + mode**2) == 0, f"limit {literal}")  # fmt: skip
    one_step = equivalent(euler_map(parse("-L@L@H"), step=1), "H - L@L@H")
    e.check("(i) the blur-sharpen map is one Euler step of size 1 of H' = -L^2 H", one_step)
    factors = (1 - 4, sp.exp(-4))
    e.check(
        "... not its time-1 flow: factors at lam = 2",
        factors[0] != factors[1],
        f"{factors[0]} against {sp.N(factors[1], 3)}",
    )
    honest = sp.expand((1 + h * mode) * (1 - h * mode))
    e.check("(ii) honest substeps of size h give I - h^2 L^2", honest == 1 - h**2 * mode**2)
    slow, fast = (sp.limit(honest ** (T / h**k), h, 0) for k in (1, 2))
    e.check("... T/h of them tend to the identity", slow == 1, slow)
    e.check("... T/h^2 of them tend to exp(-T L^2)", sp.simplify(fast - sp.exp(-T * mode**2)) == 0, fast)
    series = sp.series(sp.log(1 - mode**2), mode, 0, 6).removeO()
    e.check(
        "(iii) the field with this time-1 map is log(I - L^2), real iff lam < 1",
        sp.expand(series + mode**2 + mode**4 / 2) == 0,
        series,
    )
    return ClaimVerdict(FALSE if empty else Status.UNDECIDED, witness="any lam > 0: 0 = -lam^2 is false")


@decides("M1.5")
def euler_factors(e: Evidence) -> ClaimVerdict:
    """I + tau G = (I + s L)(I - b L) with s b = tau beta and s - b = tau (beta - alpha)."""
    a, b, step = sp.symbols("alpha beta tau", positive=True)
    root = sp.sqrt(step**2 * (b - a) ** 2 + 4 * step * b)
    sharpen, blurring = (step * (b - a) + root) / 2, (-step * (b - a) + root) / 2
    p = symbol(catalogue["BS"]).subs({sp.Symbol("alpha"): a, sp.Symbol("beta"): b})
    residual = sp.expand(1 + step * p - (1 + sharpen * lam) * (1 - blurring * lam))
    holds = e.check("1 + tau p(lam) = (1 + s lam)(1 - b lam)", sp.simplify(residual) == 0)
    product = sp.expand(sharpen * blurring)
    margin = sp.expand(root**2 - step**2 * (b - a) ** 2)
    e.check(
        "s, b > 0: s b = tau beta > 0 and root^2 - tau^2 (beta - alpha)^2 > 0",
        product == step * b and margin.is_positive,
    )
    unit = [sp.simplify(x.subs({a: 1, b: 1, step: 1})) for x in (sharpen, blurring)]
    e.check("alpha = beta = tau = 1 gives the paper's map s = b = 1", unit == [1, 1], unit)
    lead = sp.limit(sharpen / sp.sqrt(step * b), step, 0)
    e.check("strengths are sqrt(tau beta) to leading order", sp.simplify(lead) == 1, lead)
    return ClaimVerdict(HOLDS if holds else FALSE)


@decides("M1.6")
def turing(e: Evidence) -> ClaimVerdict:
    """Diffusion-driven instability needs a growth rate that is largest at a frequency strictly between 0 and 2."""
    p = symbol(catalogue["BS"])
    centre = (beta - alpha) / (2 * beta)
    e.check(
        "BS: p = beta (c^2 - (lam - c)^2), a linear Swift-Hohenberg operator",
        is_zero(sp.expand(sp.cancel(p - beta * (centre**2 - (lam - centre) ** 2)))),
        f"c = {centre}",
    )
    none = []
    for name in ("F", "AC", "Z"):
        structure = catalogue[name].structure
        rate = sp.expand(sum(c * (1 - lam) ** k for k, c in structure.generator.items()))
        slope = sp.diff(rate, lam)
        none.append(catalogue[name].domain.sign(slope) is NEGATIVE)
        e.check(f"{name}: growth beta r'(h*) - alpha lam is largest at lam = 0", none[-1], f"slope {slope}")
    source = fastest_frequency(catalogue["ST"])
    e.check("ST: largest at lam = 0", source == 0, source)
    backward = fastest_frequency(parse("FB", assume="beta > alpha"))
    e.check("FB with beta > alpha: largest at lam = 2, no band", backward == 2, backward)
    band = [str(c) for c in classify(parse("BS", assume="beta > alpha"))]
    e.check(
        "BS with beta > alpha alone has a band, and nothing saturates it",
        len(band) == 1 and band[0].startswith("band-pass"),
        band,
    )
    return ClaimVerdict(
        FALSE if all(none) else Status.UNDECIDED,
        witness="F, AC and Z: the fastest frequency is lam = 0 for every alpha, beta > 0",
    )


@cross_checks("M1.2")
def ten_lines_on_graphs(adjacency: Any, rng: Any) -> bool:
    chain = derivation("bs-appendix")
    vocabulary = Vocabulary.standard().extended({"B": Kind.FIELD})
    # Any square matrix will do: no symmetry and no stochasticity is used.
    a = dense_operator(adjacency, "row") + rng.normal(size=adjacency.shape)
    state = rng.normal(size=(len(a), 2))
    values = {"A": a, "H": state, "B": a @ state}
    results = [evaluate(read_expression(line, vocabulary), values) for line in chain.lines]
    target = state - (np.eye(len(a)) - a) @ (np.eye(len(a)) - a) @ state
    return all(np.allclose(r, target, rtol=1e-9, atol=1e-9) for r in results)


@cross_checks("M1.5")
def factors_on_graphs(adjacency: Any, rng: Any) -> bool:
    a = dense_operator(adjacency, "row")
    eye = np.eye(len(a))
    laplacian = eye - a
    x, y, step = rng.uniform(0.05, 2, size=3)
    generator = (y - x) * laplacian - y * laplacian @ laplacian
    root = np.sqrt(step**2 * (y - x) ** 2 + 4 * step * y)
    sharpen, blurring = (step * (y - x) + root) / 2, (-step * (y - x) + root) / 2
    return bool(np.allclose(eye + step * generator, (eye + sharpen * laplacian) @ (eye - blurring * laplacian)))
