"""When the Laplacian energy E = tr(H^T L H) of a symmetric A increases: for which graphs, states and coefficients.

**Linear.** With f = p(A) H the modes of L give dE/dt = sum_k 2 lam_k p(lam_k) |c_k|^2: E never increases on every graph
iff p <= 0 on (0, 2], and increases on every graph with an edge if p > 0 there. The frequencies of cycles are dense in
[0, 2], so that one of them increases E wherever p > 0 at one lam.

**With a source.** With f = p(A) H + q(A) H0 the solution from H(0) = H0 has c_k(t) = g(t) c_k(0), g' = (p + q) e^(p t):
E never increases along it on every graph iff, on (0, 2], p + q = 0, or p + q < 0 and q >= 0; where q < 0 the state
passes through zero, and E grows from there.

**Reactions.** With f = p(A) H + r(H), r acting on every entry, and A@1 = 1: <L H, r(H)> = 1/2 sum_ij A_ij (h_i - h_j)
(r(h_i) - r(h_j)) <= m E with m = sup r', so that dE/dt <= sum_k 2 lam_k (p(lam_k) + m) |c_k|^2. Near a constant state
where r' is close to m a mode comes close to this rate: the energy never increases on any undirected regular graph iff
max p + m <= 0, the one-sided constant of the symmetric normalisation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import sympy as sp
from flint import arb, fmpq

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.normal_form import H
from rdgraph.reals.branches import is_above, is_at_least
from rdgraph.reals.condition_words import condition_in_words, in_words
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import NotEnclosed, holds, make_enclosure, precision
from rdgraph.reals.judge import BOUNDED, watched
from rdgraph.reals.line_extents import in_decimals
from rdgraph.reals.maxima import interval_candidates, maximum
from rdgraph.reals.regions import cases
from rdgraph.systems.structure import Structure
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import is_unbounded, raw_constant
from rdgraph.vocabulary.learned_functions import LearnedCall

# ---------------------------------------------------------------------- energy witness
# A state at which the Laplacian energy increases: a cosine on a cycle, with numbers for the coefficients.
#
# On the cycle of n nodes the cosine of mode k is an eigenvector of L with lam = 1 - cos(2 pi k/n). At the state
# h + a cos(2 pi k i/n), with the start H0 = b cos(2 pi k i/n), f = p(A) H + q(A) H0 + r(H) gives
#
#     dE/dt = 2 lam a sum_i c_i ((p(lam) a + q(lam) b) c_i + r(h + a c_i)),   c_i = cos(2 pi k i/n),
#
# which is enclosed in ball arithmetic: for a witness the enclosure is positive.

#: Lengths of the cycles that are searched in turn; the longest have frequencies close to 0.
CYCLES = (*range(2, 41), *range(42, 120, 6), 150, 200, 300, 500, 1000)
LEVELS = tuple(
    sp.Rational(sign * x, 10)
    for x in (0, 1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 10_000)
    for sign in ((1, -1) if x else (1,))
)
AMPLITUDES = tuple(sp.Rational(1, 4**k) for k in range(7))
#: H0 as a multiple of H, just after the state has passed through zero.
PASSED = sp.Integer(-1000)
#: Random values of the coefficients that are tried, and states for each.
TRIES, ATTEMPTS = 24, 4
#: The smallest rate that double precision resolves, relative to the largest entries of H and f.
ROOM = 1e-9


@dataclass(frozen=True)
class EnergyWitness:
    """A graph, a state and coefficients at which E = tr(H^T L H) increases, with the rate dE/dt > 0 there.

    The graph is the cycle of `nodes` nodes (of two: one edge); H_i = level + amplitude cos(2 pi mode i/nodes), and
    H0_i = start cos(2 pi mode i/nodes) where the equation has a source. A matrix is the 1 x 1 matrix of its number.

    >>> print(EnergyWitness(4, 1, sp.S.Zero, sp.S.One, None, {"alpha": sp.S.One}, 4.0))
    on the cycle of 4 nodes at H_i = cos(2*pi*i/4), i = 0, ..., 3, with alpha = 1: dE/dt = 4
    >>> [round(x) for x in EnergyWitness(4, 1, sp.S.Zero, sp.S.One, None, {}, 4.0).state]
    [1, 0, -1, 0]
    """

    nodes: int
    mode: int
    level: sp.Rational
    amplitude: sp.Rational
    start: sp.Rational | None
    coefficients: Mapping[str, sp.Expr] = field(default_factory=dict)
    rate: float = 0.0

    @property
    def state(self) -> list[float]:
        """H, an entry for every node."""
        return [float(self.level) + float(self.amplitude) * c for c in self._cosines]

    @property
    def initial(self) -> list[float] | None:
        """H0, where the equation has a source."""
        return None if self.start is None else [float(self.start) * c for c in self._cosines]

    @property
    def _cosines(self) -> list[float]:
        return [math.cos(2 * math.pi * self.mode * i / self.nodes) for i in range(self.nodes)]

    def __str__(self) -> str:
        graph = "one edge" if self.nodes == 2 else f"the cycle of {self.nodes} nodes"
        times = "" if self.mode == 1 else f"{self.mode}*"
        wave = f"cos(2*pi*{times}i/{self.nodes})"
        state = " + ".join([*([str(self.level)] if self.level else []), _multiple(self.amplitude, wave)])
        places = [f"H_i = {state}", *([] if self.start is None else [f"H0_i = {_multiple(self.start, wave)}"])]
        numbers = ", ".join(f"{name} = {value}" for name, value in self.coefficients.items())
        return (
            f"on {graph} at {', '.join(places)}, i = 0, ..., {self.nodes - 1}"
            f"{f', with {numbers}' if numbers else ''}: dE/dt = {self.rate:.3g}"
        )


def _multiple(factor: sp.Rational, wave: str) -> str:
    return wave if factor == 1 else f"-{wave}" if factor == -1 else f"{factor}*{wave}"


def energy_witness(
    p: sp.Expr, q: sp.Expr, r: sp.Expr, domain: Domain, *conditions: sp.Basic, names: Mapping[sp.Symbol, str]
) -> EnergyWitness | None:
    """A witness for coefficients of the domain, or None where none was found.

    `p` and `q` are polynomials in lam, `r` is a function of H. A point of `conditions` on the coefficients, and on lam
    in (0, 2], is tried too. `names` are the names of the coefficients by symbol.

    >>> a = sp.Symbol("alpha", positive=True)
    >>> print(energy_witness(a * lam, sp.S.Zero, sp.S.Zero, Domain(), names={a: "alpha"}))
    on one edge at H_i = cos(2*pi*i/2), i = 0, ..., 1, with alpha = 1: dE/dt = 16
    """
    if sp.sympify(r).has(LearnedCall):  # the values of the function are unknown
        return None
    for numbers in _numbers(domain, conditions, names):
        try:
            with precision(128):
                best = _on_cycles(*(sp.sympify(e).xreplace(dict(numbers)) for e in (p, q, r)))
        except (NotEnclosed, NotApplicable, Undecided, ZeroDivisionError):
            continue
        if best is not None:
            values = {name: numbers[letter] for letter, name in names.items()}
            nodes, mode, level, amplitude, start, rate = best
            return EnergyWitness(nodes, mode, level, amplitude, start, dict(sorted(values.items())), rate)
    return None


def _numbers(
    domain: Domain, conditions: tuple[sp.Basic, ...], names: Mapping[sp.Symbol, str]
) -> Iterator[dict[sp.Basic, sp.Expr]]:
    """Admissible values of the coefficients: ones, a point that the solver finds, and random powers of two."""
    usual = {x: sp.S.NegativeOne if x.is_nonpositive else sp.S.One for x in names}
    wanted = [c for c in (*domain.conditions, *conditions) if not c.has(lam)]

    def is_admissible(numbers: Mapping[sp.Basic, sp.Expr]) -> bool:
        return all(holds(c, numbers) for c in wanted)

    if is_admissible(usual):
        yield usual
    if conditions and (point := domain.point(*conditions)) is not None:
        yield {x: point.get(x, one) for x, one in usual.items()}
    generator = random.Random(0)
    for _ in range(TRIES if names else 0):
        signs = {x: generator.choice((-1, 1)) if x.is_nonpositive is x.is_nonnegative is None else 1 for x in names}
        drawn = {x: signs[x] * one * sp.Integer(2) ** generator.randint(-3, 3) for x, one in usual.items()}
        if is_admissible(drawn):
            yield drawn


def _on_cycles(p: sp.Expr, q: sp.Expr, r: sp.Expr) -> tuple[Any, ...] | None:
    """nodes, mode, level, amplitude, start and rate, for formulas without coefficients; short cycles first."""
    growth, forcing = (sp.lambdify(lam, e, "math") for e in (p, q))

    def passed(x: float) -> float:
        """The growth at H = -H0/1000, if the solution from H0 gets there: it falls to a limit below that or to -oo."""
        g, f = growth(x), forcing(x)
        gets_there = g + f < -1e-6 * (abs(g) + abs(f)) and (g >= 0 or 500 * f < g)
        return g + float(PASSED) * f if gets_there else -1.0

    ways: list[tuple[sp.Rational, sp.Rational | None, Callable[[float], float]]]
    if q != 0:
        ways = [(sp.S.Zero, sp.S.One, lambda x: growth(x) + forcing(x)), (sp.S.Zero, PASSED, passed)]
    else:
        ways = [(level, None, partial(_raised, growth, steep)) for level, steep in _slopes(r)]
    modes = [(mode, level, start) for level, start, rate in ways if (mode := _mode(rate)) is not None]
    modes.sort(key=lambda way: way[0][0] + abs(float(way[1])))
    for mode, level, start in modes[:ATTEMPTS]:
        for amplitude in AMPLITUDES if r != 0 else AMPLITUDES[:1]:
            proved = _rate(p, q, r, *mode, level, amplitude, start)
            if proved is not None:
                return *mode, level, amplitude, start, proved
    return None


def _raised(growth: Callable[[float], float], steep: float, x: float) -> float:
    return growth(x) + steep


def _slopes(r: sp.Expr) -> list[tuple[sp.Rational, float]]:
    """Constant states with the slope of the reaction there, from a difference quotient."""
    if r == 0:
        return [(sp.S.Zero, 0.0)]
    enclosed, gap = make_enclosure(r, H), sp.Rational(1, 2**30)
    slopes = []
    for level in LEVELS:
        try:
            value = float((enclosed(_ball(level + gap)) - enclosed(_ball(level - gap))).mid()) / (2 * float(gap))
        except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
            continue
        if math.isfinite(value):
            slopes.append((level, value))
    return slopes


def _mode(rate: Callable[[float], float]) -> tuple[int, int] | None:
    """The shortest cycle with a growing mode, and its fastest growing mode."""
    if max(rate(k / 500) for k in range(1001)) <= 0:
        return None
    for nodes in CYCLES:
        rates = [(rate(1 - math.cos(2 * math.pi * k / nodes)), k) for k in range(1, nodes // 2 + 1)]
        best, mode = max(rates)
        if best > 1e-6 * (1 + max(abs(x) for x, _ in rates)):
            common = math.gcd(nodes, mode)
            return nodes // common, mode // common
    return None


def _rate(
    p: sp.Expr, q: sp.Expr, r: sp.Expr, nodes: int, mode: int, level: sp.Rational, amplitude: sp.Rational,
    start: sp.Rational | None,
) -> float | None:  # fmt: skip
    """dE/dt where it is proved to be positive and double precision resolves it, else None."""
    h, a, b = (_ball(x) for x in (level, amplitude, start or 0))
    cosines = [arb.cos_pi_fmpq(fmpq(2 * mode * i, nodes)) for i in range(nodes)]
    frequency = 1 - cosines[1]
    growth, forcing = (make_enclosure(e, lam)(frequency) for e in (p, q))
    reaction = make_enclosure(r, H)
    linear = growth * a + forcing * b
    terms = [linear * c + reaction(h + a * c) for c in cosines]
    rate = 2 * frequency * a * sum((c * term for c, term in zip(cosines, terms, strict=True)), arb(0))
    largest = max(abs(float(term.mid())) for term in terms) + abs(float((growth * h).mid()))
    size = (abs(float(level)) + float(amplitude)) * largest * nodes
    value = float(rate.mid())
    return value if rate > 0 and math.isfinite(size) and value > ROOM * size else None


def _ball(number: Any) -> Any:
    exact = sp.Rational(number)
    return arb(fmpq(int(exact.p), int(exact.q)))


# ---------------------------------------------------------------------- dirichlet energy
GRAPH, REGULAR = "graph", "undirected regular graph"
FROM_START = "along solutions from H(0) = H0"
#: The range of lam on all graphs, without the constant mode, which has no energy.
SPECTRUM = (sp.Gt(lam, 0, evaluate=False), sp.Le(lam, 2, evaluate=False))


@dataclass(frozen=True)
class Fate:
    """Whether the energy can increase, as text, with a witness where it can.

    If it depends on the coefficients, the energy never increases where `threshold` <= 0. `bound` is the bound of dE/dt
    of a reaction.
    """

    words: str
    witness: EnergyWitness | None = None
    threshold: sp.Expr | None = None
    bound: str = ""


def undecided(problem: object) -> Fate:
    return Fate(f"undecided: {problem}")


def _never(graphs: str, *, along: str = "", only: str = "", worst: sp.Expr | None = None) -> str:
    """The text that the energy never increases, or only (`only` is "iff" or "if") where `worst` is not positive."""
    condition = "" if worst is None else f"{only} {_not_positive(public(worst))}"
    return ", ".join(filter(None, ["never increases", along, f"on every {graphs}", condition]))


def _not_positive(worst: sp.Expr) -> str:
    """worst <= 0 as text, a maximum part by part, without positive numerical factors.

    >>> _not_positive(sp.Max(sp.Symbol("a"), 2 * sp.Symbol("b")))
    'b <= 0 and a <= 0'
    """
    if isinstance(worst, sp.Max):
        return " and ".join(_not_positive(part) for part in sorted(worst.args, key=str))
    if isinstance(worst, sp.Piecewise):
        return f"({in_words(worst)}) <= 0"
    factor, rest = worst.as_coeff_Mul()
    value = in_decimals(rest if factor.is_positive and rest != 1 else worst)
    return condition_in_words(sp.Le(value, 0, evaluate=False))


def _grows(graphs: str, names: Mapping[sp.Symbol, str], *, everywhere: bool, along: str = "") -> str:
    where = f"on every {graphs} with an edge" if everywhere else f"on some {graphs}"
    extent = "for all coefficients" if names else ""
    return ", ".join(filter(None, [f"increases {where}", along or "from some state", extent]))


def linear_fate(p: sp.Expr, domain: Domain, names: Mapping[sp.Symbol, str]) -> Fate:
    """Whether the Laplacian energy can increase under dH/dt = p(A)H.

    >>> a = sp.Symbol("alpha", positive=True)
    >>> linear_fate(-a * lam, Domain(), {a: "alpha"}).words
    'never increases, on every graph'
    >>> linear_fate(a * lam, Domain(), {a: "alpha"}).words
    'increases on every graph with an edge, from some state, for all coefficients'
    """
    rate, spectrum = _without_zero(p), domain.where(*SPECTRUM)
    if spectrum.proves(sp.Le(rate, 0, evaluate=False)) is True:
        return Fate(_never(GRAPH))
    worst = maximum(interval_candidates(rate, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    above = sp.Gt(rate, 0, evaluate=False)
    witness = energy_witness(p, sp.S.Zero, sp.S.Zero, domain, *SPECTRUM, above, names=names)
    if is_above(worst, sp.S.Zero, domain):
        return Fate(_grows(GRAPH, names, everywhere=spectrum.proves(above) is True), witness)
    return Fate(_never(GRAPH, only="iff", worst=worst), witness, public(worst))


def source_fate(p: sp.Expr, q: sp.Expr, domain: Domain, names: Mapping[sp.Symbol, str]) -> Fate:
    """Whether the Laplacian energy can increase under dH/dt = p(A)H + q(A)H0, along solutions from H0.

    >>> a, b = sp.symbols("alpha beta", positive=True)
    >>> source_fate(-a * lam - b, b, Domain(), {a: "alpha", b: "beta"}).words
    'never increases, along solutions from H(0) = H0, on every graph'
    """
    total, spectrum = _without_zero(sp.expand(p + q)), domain.where(*SPECTRUM)
    falls = spectrum.proves(sp.Le(total, 0, evaluate=False)) is True
    feeds = spectrum.proves(sp.Ge(q, 0, evaluate=False)) is True
    if total == 0 or (falls and feeds):
        return Fate(_never(GRAPH, along=FROM_START))
    worst = maximum(interval_candidates(total, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    witness = energy_witness(p, q, sp.S.Zero, domain, *SPECTRUM, sp.Gt(total, 0, evaluate=False), names=names)
    below = spectrum.proves(sp.Lt(q, 0, evaluate=False)) is True
    turns = below and spectrum.proves(sp.Lt(total, 0, evaluate=False)) is True
    if turns or is_above(worst, sp.S.Zero, domain):
        everywhere = turns or spectrum.proves(sp.Gt(total, 0, evaluate=False)) is True
        return Fate(_grows(GRAPH, names, everywhere=everywhere, along=FROM_START), witness)
    if feeds:
        return Fate(_never(GRAPH, along=FROM_START, only="iff", worst=worst), witness, public(worst))
    if witness is not None:
        return Fate(f"increases on some graph, {FROM_START}, for some coefficients", witness)
    return undecided(f"it depends on the signs of {public(q)} and {public(sp.expand(p + q))}")


def reaction_fate(system: System) -> Fate | None:
    """Whether the energy can increase under p(A)H + r(H), on undirected regular graphs; None for other systems.

    >>> from rdgraph.systems.parser import parse
    >>> reaction_fate(parse("-alpha*L@H + tanh(H) - beta*H")).words
    'never increases, on every undirected regular graph, iff beta >= 1'
    >>> reaction_fate(parse("-alpha*L@H - beta*H**3")).words
    'never increases, on every undirected regular graph'
    """
    structure, domain = system.structure, system.domain
    if not structure.is_pointwise or structure.has_source:
        return None

    def question(inside: Domain) -> tuple[sp.Expr, bool]:
        value, exact = raw_constant(system, "symmetric", inside, local=False, one_sided=True)
        infinite = value.has(sp.oo, -sp.oo, sp.zoo, sp.nan)
        if infinite and not exact:
            exact = is_unbounded(system, inside, one_sided=True)
        return (sp.oo if infinite else value), exact

    names = coefficient_names(system)
    with watched() as watch:
        parts = cases(domain, question)
        fates = [_reaction(structure, value, exact, domain.where(c), names) for c, (value, exact) in parts]
    if len(set(fates)) > 1:
        return None
    (fate,) = set(fates)
    if fate.words != _never(REGULAR) and (fate.threshold is None or " iff " in fate.words):
        p = generator_polynomial(structure)
        slope = sp.Gt(p + sp.diff(structure.reaction, H), 0, evaluate=False)
        witness = energy_witness(p, sp.S.Zero, structure.reaction, domain, *SPECTRUM, slope, names=names)
        fate = replace(fate, witness=witness)
    words = f"{fate.words}; {BOUNDED}" if watch.bounded else fate.words
    return replace(fate, words=words, bound=_bound(parts))


def _reaction(
    structure: Structure, worst: sp.Expr, exact: bool, domain: Domain, names: Mapping[sp.Symbol, str]
) -> Fate:
    if worst == sp.oo and not exact:
        raise NotApplicable("no bound of the slopes of the reaction was found")
    if worst == sp.oo:
        return Fate(_grows(REGULAR, names, everywhere=True))
    if is_at_least(sp.S.Zero, worst, domain):
        return Fate(_never(REGULAR))
    if is_above(worst, sp.S.Zero, domain):
        if not exact:
            raise NotApplicable(
                f"all that is known is dE/dt <= ({in_words(in_decimals(public(2 * worst)))}) E, on every {REGULAR}"
            )
        return Fate(_grows(REGULAR, names, everywhere=_everywhere(structure, worst, domain)))
    return Fate(_never(REGULAR, only="iff" if exact else "if", worst=worst), None, public(worst))


def _everywhere(structure: Structure, worst: sp.Expr, domain: Domain) -> bool:
    """Whether near some constant state every mode grows: min p + sup r' > 0, where worst = max p + sup r'."""
    p = generator_polynomial(structure)
    try:
        largest = maximum(interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    except Undecided:
        return False
    return domain.where(*SPECTRUM).proves(sp.Gt(p - largest + worst, 0, evaluate=False)) is True


def _bound(parts: list[tuple[sp.Basic, tuple[sp.Expr, bool]]]) -> str:
    """dE/dt by frequencies, where the slopes have one bound."""
    law = "dE/dt = 2 tr(H^T L f(H))"
    (_, (worst, _)), *others = parts
    if others or worst == sp.oo or worst.has(sp.Piecewise, sp.Max):
        return law
    rate = in_decimals(public(sp.expand(lam * worst)))
    return f"{law} <= 2 sum_k ({rate}) |c_k|^2 on every {REGULAR}"


def generator_polynomial(structure: Structure) -> sp.Expr:
    """p(lam) of the linear terms; all other terms are ignored."""
    return sp.expand(sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.S.Zero))


def coefficient_names(system: System) -> dict[sp.Symbol, str]:
    """The names of the coefficients, by their symbols in the normal form."""
    return {system.algebra.symbols[name]: name for name in system.coefficients}


def _without_zero(p: sp.Expr) -> sp.Expr:
    """p/lam where that is a polynomial, else p: it has the sign of p on (0, 2]."""
    quotient = sp.cancel(p / lam)
    return quotient if quotient.is_polynomial(lam) else p
