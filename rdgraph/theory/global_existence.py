"""Do solutions exist for all time, and from which starts? Proofs on every graph, and blow-up of scalar equations.

With f_i = r_i(u_i) in every entry + terms that couple nodes, channels or fields, d/dt |u|^2/2 = sum u_i r_i(u_i) +
<u, coupled>. If h r_i(h) <= c (1 + h^2) and the coupled terms grow at most linearly, |u| grows at most exponentially;
coupled terms of a higher power q are controlled where h r_i(h) <= c - k |h|^(p + 1) with p > q. This holds for any
matrix A: directed, weighted, with isolated nodes. Coefficients may depend on t continuously. With noise, xi, the
equation is understood in the sense of Ito, and drift and noise factors must be Lipschitz.

Several fields may have global solutions from some starts only: where densities stay non-negative and a weighted sum of
all fields grows at most linearly, or where a bounded rectangle is invariant. Otherwise a state that is equal in all
nodes, or an isolated node, may blow up while all other fields are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import h, h0, public
from rdgraph.language.normal_form import TIME, Act, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import within_budget
from rdgraph.reals.condition_words import factored
from rdgraph.reals.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.reals.judge import BOUNDED, remembered, watched
from rdgraph.reals.regions import cases
from rdgraph.systems.canonical.cancelled_parts import with_cancelled
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.blowup import BlowUp, fate
from rdgraph.theory.growth_at_infinity import Trend, growth
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds, has_gap, normal_forms, starts_of, states_of, timely
from rdgraph.theory.several_fields.rectangles import positivity, rectangle
from rdgraph.vocabulary.normalisations import find_normalisation

GLOBAL, LOCAL = "global", "local"

__all__ = ["GLOBAL", "LOCAL", "BlowUp", "Existence", "existence", "existence_by_growth", "grows_linearly"]


@dataclass(frozen=True, repr=False)
class Existence(Answer):
    """Whether every solution exists for all time: "global", "local" (some can blow up), or None if undecided.

    `starts` is the condition on the starts, as in "u, v >= 0"; empty where the answer holds for all.
    """

    value: str | None
    reason: str
    blow_ups: tuple[BlowUp, ...] = ()
    starts: str = ""

    @property
    def status(self) -> Status:
        """proved, or bounded where a proof rests on interval arithmetic, or undecided."""
        return Status.UNDECIDED if self.value is None else certainty(self.reason)

    @property
    def outcome(self) -> str:
        """global, local or undecided."""
        return str(self.value or self.status)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The condition on the starts."""
        return (self.starts,) if self.starts else ()

    @property
    def headline(self) -> str:
        if self.value == GLOBAL:
            return "every solution exists for all time"
        return "; ".join(["some solutions blow up in finite time", *map(str, self.blow_ups)])

    def __bool__(self) -> bool:
        return self.value == GLOBAL


@reads_system
@within_budget(otherwise=lambda problem: Existence(None, str(problem)))
@remembered(maxsize=256)
def existence(system: System) -> Existence:
    """Whether every solution exists for all time.

    Args:
        system: dH/dt = f(H), or several fields, with time or noise (an equation in the sense of Ito).

    Returns:
        "global", "local" (with blow-ups and their times) or None (undecided), with the reason; for several fields
        `starts` says from which starts.

    >>> import rdgraph as rd
    >>> rd.existence(rd.parse("F")).blow_ups[0].time
    log(1 - 1/h0)/beta
    >>> rd.existence(rd.parse("AC")).value
    'global'
    """
    with watched() as watch:
        answer = _decided(system)
    return replace(answer, reason=f"{answer.reason}; {BOUNDED}") if watch.bounded else answer


@reads_system
@within_budget(otherwise=lambda problem: None)
@remembered(maxsize=256)
def existence_by_growth(system: System) -> Existence | None:
    """The proof of `existence` from growth bounds alone, without a search for blow-ups; None where there is none.

    Args:
        system: dH/dt = f(H).

    Returns:
        global with its reason, or None: then nothing is known.

    >>> from rdgraph.systems.parser import parse
    >>> existence_by_growth(parse("AC")).value, existence_by_growth(parse("F"))
    ('global', None)
    """
    with watched() as watch:
        answer, _ = _by_growth(system, _singularity(system))
    if answer is None:
        return None
    return replace(answer, reason=f"{answer.reason}; {BOUNDED}") if watch.bounded else answer


@reads_system
@within_budget(otherwise=lambda problem: False)
@remembered(maxsize=256)
def grows_linearly(system: System) -> bool:
    """Whether |f(H)| <= c (1 + |H|) is proved for all states, on every graph.

    No run of such an equation overflows, for any method and step. False where nothing is known.

    >>> [grows_linearly(name) for name in ("BS", "AC", "-alpha*L@H + beta*sin(H)*H", "-alpha*L@H + sqrt(H)")]
    [True, False, True, False]
    """
    trouble = _singularity(system)
    if trouble is not None and not trouble.is_continuous:
        return False
    measure = _measure(system)
    return system.coupling.is_linear or all(measure.order(normal) <= 1 for normal in system.normals.values())


def _decided(system: System) -> Existence:
    trouble = _singularity(system)
    if system.is_noisy:
        return _of_noise(system, trouble)
    answer, obstacle = _by_growth(system, trouble)
    tried = [obstacle]
    if answer is None and not system.is_single:
        answer = _from_some_starts(system, tried)
    if answer is None and trouble is None:
        answer = _on_scalars(system, tried)
    return Existence(None, "; ".join(dict.fromkeys(tried))) if answer is None else answer


# ---------------------------------------------------------------------- every start
def _by_growth(system: System, trouble: _Singularity | None) -> tuple[Existence | None, str]:
    """The proof from growth bounds, or the obstacle."""
    if trouble is not None and not trouble.is_continuous:
        return None, trouble.reason
    if system.coupling.is_linear:
        timed = "" if system.is_autonomous else ", with coefficients that are continuous in t"
        return Existence(GLOBAL, f"the vector field is affine in {', '.join(system.fields)}{timed}"), ""
    forms = [system.normals] if system.is_single else [normal_forms(system, kind) for kind in _kinds(system)]
    proved, obstacle = None, "no growth bound holds in every entry"
    try:
        reasons = [_energy_estimate(system, normals) for normals in forms]
        proved = None if None in reasons else reasons[0]
    except Undecided as problem:
        obstacle = str(problem)
    if proved is None and all(_is_damped(system, normals) for normals in forms):
        proved = "on every graph large states are damped or grow at most linearly, sum u_i f_i(u) <= c (1 + |u|^2)"
    if trouble is not None:
        proved, obstacle = proved and f"{proved}; {trouble.reason}", trouble.reason
    return (Existence(GLOBAL, proved) if proved else None), obstacle


def _kinds(system: System) -> tuple[str, ...]:
    """One normalisation for each right-hand side: L is I - A, or D - A."""
    return ("row", "none") if "L" in system.letters else ("row",)


def _measure(system: System) -> Magnitudes:
    return Magnitudes(system, find_normalisation("row"), is_local=False)


def _split(system: System, name: str, normal: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The terms in single entries of one field, and all others; parts without states are constant symbols."""
    states = states_of(system)
    letters = {
        atom: sp.Dummy("constant", real=True) for atom in normal.atoms(Act, Mix) if not atom.has(TIME, *states.values())
    }
    plain = normal.xreplace(letters)
    beyond = (Act, Mix, TIME, *(x for n, x in states.items() if n != name))
    coupled = sp.Add(*(term for term in sp.Add.make_args(plain) if term.has(*beyond)))
    return sp.expand(plain - coupled), coupled


def _energy_estimate(system: System, normals: Mapping[str, sp.Expr]) -> str | None:
    """The proof of global existence from d/dt |u|^2, for all coefficients of the domain; None where it fails."""
    letter = sp.Dummy("h", real=True)
    parts = {name: _split(system, name, normal) for name, normal in normals.items()}
    rates = [single.xreplace({State(name): letter}) for name, (single, _) in parts.items()]
    ends = [g for rate in rates for way in (1, -1) for _, g in cases(system.domain, partial(growth, rate, letter, way))]
    coupled = sp.Tuple(*(rest for _, rest in parts.values()))
    power = sp.Max(*(_measure(system).order(rest) for rest in coupled))
    if power <= 1 and not any(g.trend is Trend.ESCAPING for g in ends):
        return _linear_reason(damped=any(g.trend is Trend.DAMPED for g in ends), coupled=any(x != 0 for x in coupled))
    if not coupled.has(TIME) and all(g.trend is Trend.DAMPED and g.order > power for g in ends):
        reason = f"large entries are damped by a higher power than {power}, the power of the coupling terms"
        return f"{reason}: solutions stay bounded, on every graph"
    return None


def _linear_reason(*, damped: bool, coupled: bool) -> str:
    if not damped:
        return "at most linear growth: solutions grow at most exponentially, on every graph"
    rest = ", the coupled terms grow at most linearly" if coupled else ""
    return f"large entries h are damped or grow at most linearly, h r(h) <= c (1 + h^2){rest}: on every graph"


def _is_damped(system: System, normals: Mapping[str, sp.Expr]) -> bool:
    """Proved: terms that grow faster than linearly are polynomials in single entries that damp |state|^2."""
    total, states, measure = sp.S.Zero, list(states_of(system).values()), _measure(system)
    for name, normal in normals.items():
        for term in sp.Add.make_args(normal):
            if measure.order(term) <= 1:
                continue
            if term.has(Act, Mix, *starts_of(system).values()) or not term.is_polynomial(*states):
                return False
            total += State(name) * term
    return timely(system.domain).proves(sp.Le(sp.expand(total), 0, evaluate=False)) is True


# ---------------------------------------------------------------------- where the field is defined and Lipschitz
@dataclass(frozen=True)
class _Singularity:
    """A root or a quotient that is not proved to be Lipschitz; roots of non-negative expressions are continuous."""

    reason: str
    is_continuous: bool


def _singularity(system: System, parts: Mapping[str, sp.Expr] | None = None) -> _Singularity | None:
    """A root, a quotient or a logarithm that is not proved to be smooth for all states and times, or None.

    Discontinuous ones come first. `parts` are the expressions in question, by default the right-hand sides.
    """
    domain, whole = timely(system.domain), sp.Tuple(*(system.normals if parts is None else parts).values())
    letters = {a: sp.Dummy("z", real=True) for a in whole.atoms(Act, Mix)}
    if whole.has(sp.I, sp.zoo, sp.nan, sp.oo) or any(
        call.has(State, Act) and has_gap(call) for call in whole.atoms(sp.Function)
    ):
        return _Singularity("the right-hand side is not proved to be defined for all states", False)
    continuous = None
    for power in sorted(whole.atoms(sp.Pow), key=lambda p: (p.count_ops(), str(p))):
        base, plain = power.base, power.base.xreplace(letters)
        is_masked = any(x.name == "M" for x in base.free_symbols)
        if (power.exp.is_Integer and power.exp > 0) or not (base.has(State, TIME, Act, Mix) or is_masked):
            continue
        if not power.exp.is_Integer and domain.proves(sp.Gt(plain, 0, evaluate=False)):
            continue
        if power.exp.is_negative and not domain.proves(sp.Ne(plain, 0, evaluate=False)):
            return _Singularity(f"{public(power)} can be singular: {public(base)} may be 0", False)
        if power.exp.is_Integer:
            continue
        if not domain.proves(sp.Ge(plain, 0, evaluate=False)):
            return _Singularity(f"{public(power)} need not be defined: {public(base)} may be negative", False)
        if not base.has(*states_of(system).values()):  # a root of times and starts is smooth in the states
            continue
        reason = f"solutions need not be unique: {public(power)} is not Lipschitz where {public(base)} = 0"
        continuous = continuous or _Singularity(reason, True)
    return continuous


# ---------------------------------------------------------------------- noise
def _of_noise(system: System, trouble: _Singularity | None) -> Existence:
    """Ito's theorem: drift and factors of noise that are Lipschitz for all states give one solution for all time."""
    measure = _measure(system)
    factors = {name: with_cancelled(tree, system.algebra, lambda: system.domain) for name, tree in system.noise.items()}
    bent = [name for name, normal in system.normals.items() if measure.slope(normal).has(sp.oo)]
    rough = [name for name, factor in factors.items() if measure.slope(factor).has(sp.oo)]
    trouble = trouble or _singularity(system, factors)
    if trouble is None and not bent and not rough:
        reason = "Ito equation with Lipschitz drift and factors of noise: one strong solution for all time"
        return Existence(GLOBAL, reason)
    parts = [trouble.reason] if trouble else []
    parts += [f"the drift of {', '.join(bent)} is not proved to be Lipschitz for all states"] if bent else []
    parts += [f"the factor of xi in {', '.join(rough)} is not proved to be Lipschitz for all states"] if rough else []
    return Existence(None, f"Ito equation: {'; '.join(parts)}; the theorem needs both")


# ---------------------------------------------------------------------- some starts
def _from_some_starts(system: System, tried: list[str]) -> Existence | None:
    """Global existence from densities of bounded mass or a bounded invariant rectangle; adds what failed to `tried`."""
    densities = [positivity(system, kind) for kind in _kinds(system)]
    if all(answer.value and answer.is_closed for answer in densities):
        sums = [mass_control(system, kind) for kind in _kinds(system)]
        if (mass := sums[0]) is not None and None not in sums:
            reason = f"{mass}: non-negative solutions stay bounded on finite times"
            return Existence(GLOBAL, reason, starts=f"{', '.join(system.fields)} >= 0")
        tried.append("no weighted sum of the fields is proved to grow at most linearly")
    box = rectangle(system, "row")
    if box.is_bounded:
        graph = f"row normalisation{f', {box.assumes}' if box.assumes else ''}"
        reason = "a run that starts in a bounded rectangle stays there"
        return Existence(GLOBAL, reason, starts=f"{box.inside} ({graph})")
    tried.append("no bounded invariant rectangle was found")
    return None


# Mass control: positive weights w with sum_i w_i f_i <= c (1 + sum_i u_i) for densities.
#
# Terms that grow faster than linearly are collected over the fields: one field gains what another loses, such as u**2*v
# or u*(A@v) in u and v. Where densities stay non-negative, the sum bounds every field, and it grows at most
# exponentially.

#: Coefficients of a term, by the field whose equation contains it.
Shares = dict[str, sp.Expr]


def mass_control(system: System, normalisation: str = "row") -> str | None:
    """Why a weighted sum of densities grows at most linearly, at every node; None where no weights were found.

    >>> from rdgraph.systems.parser import parse
    >>> mass_control(parse("u' = a - u + u**2*v - L@u; v' = b - u**2*v - L@v"))
    'the sum u + v gains at most linearly'
    """
    try:
        speeds = NodeSpeeds.of(system, normalisation)
    except NotApplicable:
        return None
    shares = _fast_terms(system, speeds)
    if shares is None:
        return None
    domain = system.domain
    weights = _weights(system.fields, shares, domain)
    for choice in (dict.fromkeys(system.fields, sp.S.One), weights):
        totals = [sp.Add(*(choice[name] * c for name, c in row.items())) for row in shares.values()]
        if all(domain.sign(sp.simplify(total)).is_nonpositive for total in totals):
            text = " + ".join(name if w == 1 else f"{public(w)}*{name}" for name, w in choice.items())
            return f"the sum {text} gains at most linearly"
    return None


def _fast_terms(system: System, speeds: NodeSpeeds) -> Mapping[sp.Expr, Shares] | None:
    """The terms of higher order, if all are monomials in quantities >= 0, with their coefficients; else None."""
    measure = _measure(system)
    back = {call.letter: Act(map(sp.Symbol, call.word), call.inner) for call in speeds.calls}
    moving = {*states_of(system).values(), *starts_of(system).values(), *back}
    terms: dict[sp.Expr, Shares] = {}
    for name, speed in speeds.speeds.items():
        for term in sp.Add.make_args(sp.expand(speed)):
            if measure.order(term.xreplace(back)) <= 1:
                continue
            coefficient, core = term.as_independent(*moving, as_Add=False)
            if term.has(Mix, TIME) or not _is_nonnegative(core, system, back) or speeds.varying & term.free_symbols:
                return None
            row = terms.setdefault(core, {})
            row[name] = row.get(name, sp.S.Zero) + coefficient
    return terms


def _is_nonnegative(core: sp.Expr, system: System, back: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether a product is non-negative for densities: it has powers of states, and of A applied to such products."""
    for factor in sp.Mul.make_args(core):
        base, exponent = factor.as_base_exp()
        if not (exponent.is_Integer and exponent > 0):
            return False
        if base in back:
            act = back[base]
            if any(w.name != "A" for w in act.word) or not _is_nonnegative(act.inner, system, back):
                return False
        elif not isinstance(base, State):
            return False
    return True


def _weights(fields: tuple[str, ...], shares: Mapping[sp.Expr, Shares], domain: Domain) -> dict[str, sp.Expr]:
    """Weights for which the gains and losses of terms in two equations cancel, 1 for fields without such terms."""
    weights: dict[str, sp.Expr] = {fields[0]: sp.S.One}
    pairs = [row for row in shares.values() if len(row) == 2]
    for _ in fields:
        for row in pairs:
            (one, p), (two, q) = row.items()
            if {domain.sign(p), domain.sign(q)} != {POSITIVE, NEGATIVE}:
                continue
            if one in weights and two not in weights:
                weights[two] = sp.cancel(-weights[one] * p / q)
            elif two in weights and one not in weights:
                weights[one] = sp.cancel(-weights[two] * q / p)
    return {name: weights.get(name, sp.S.One) for name in fields}


# ---------------------------------------------------------------------- blow-up
@dataclass(frozen=True)
class _Scalar:
    """A scalar equation that some states follow, and for which graphs and coefficients."""

    rate: sp.Expr
    states: str


def _on_scalars(system: System, tried: list[str]) -> Existence | None:
    """Blow-up of states that follow a scalar equation; global existence where all states do and none blows up."""
    for scalar in _scalars(system):
        outcome = fate(scalar.rate, system.domain)
        equation = f"h' = {public(_factored(scalar.rate))}"
        if outcome.blow_ups:
            others = f"; other blow-ups are not excluded: {'; '.join(outcome.open)}" if outcome.open else ""
            return Existence(LOCAL, f"{scalar.states}, {equation} reaches infinity{others}", outcome.blow_ups)
        if len(system.fields) == 1 and not system.normals[system.fields[0]].has(Act, Mix) and outcome.is_bounded:
            return Existence(GLOBAL, f"{scalar.states}, {equation} has a zero between every start and infinity")
        tried += [f"{scalar.states}, {reason}" for reason in outcome.open or (f"{equation} stays finite",)]
    return None


def _factored(rate: sp.Expr) -> sp.Expr:
    """The shorter way to write a rate, where sympy factors it."""
    try:
        return factored(rate)
    except BasePolynomialError:
        return rate


def _scalars(system: System) -> Iterator[_Scalar]:
    """The scalar equations of fields whose other fields can stay zero, with a text for the states h."""
    if not system.is_autonomous or system.operators.names:
        return
    starts = starts_of(system)
    for places, normals in _places(system):
        for name in system.fields:
            others = {x: sp.S.Zero for n in system.fields if n != name for x in (State(n), starts[n])}
            letters = {State(name): h, starts[name]: h0}
            rates = {n: sp.expand(f.xreplace(others).xreplace(letters)) for n, f in normals.items()}
            if all(rate == 0 for n, rate in rates.items() if n != name):
                zeros = "".join(f", {n} = 0" for n in system.fields if n != name)
                yield _Scalar(rates[name], f"{places}{zeros} and {name} = h" if zeros else places)


def _places(system: System) -> Iterator[tuple[str, dict[str, sp.Expr]]]:
    """Every entry by itself; states equal in all nodes where A@1 = 1; for one field, an isolated node."""
    normals, choice = system.normals, _choice(system)
    if not any(normal.has(Act, Mix) for normal in normals.values()):
        yield "in every entry", normals
        return
    has_operators = any(normal.has(Act) for normal in normals.values())
    graph = " (A@1 = 1: the rows of A sum to 1, no node is isolated)" if has_operators else ""
    uniform = {name: _constant_states(normal) for name, normal in normals.items()}
    yield f"on states equal in all nodes{graph}{choice}", uniform
    if has_operators and system.is_single:
        isolated = {name: _isolated(normal) for name, normal in normals.items()}
        yield f"in an isolated node (its row of A is 0){choice}", isolated


def _choice(system: System) -> str:
    """The admissible coefficients for which a state stays equal in all nodes, as text."""
    masks = ["M"] if "M" in system.letters else []
    nodes = masks + [name for name, kind in system.coefficients.items() if kind is Kind.NODE]
    matrices = [name for name, kind in system.letters.items() if kind is Kind.MATRIX]
    parts = [f"{' and '.join(nodes)} equal in all nodes"] if nodes else []
    parts += [f"{' and '.join(matrices)} the identity"] if matrices else []
    return f" with {', '.join(parts)}" if parts else ""


def _constant_states(expression: sp.Expr) -> sp.Expr:
    """An expression on constant states where A@1 = 1 and W = I: without operators and matrices."""
    return expression.replace(lambda e: isinstance(e, Act | Mix), lambda e: _constant_states(e.inner))


def _isolated(expression: sp.Expr) -> sp.Expr:
    """An expression at an isolated node with W = I: every word of A gives zero."""
    return expression.replace(
        lambda e: isinstance(e, Act | Mix), lambda e: sp.S.Zero if isinstance(e, Act) else _isolated(e.inner)
    )
