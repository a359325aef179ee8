"""Do solutions exist for all time? Proofs on every graph, and blow-up shown on states that follow a scalar equation.

With f = r(h) in every entry + terms that couple nodes or channels, d/dt |H|^2/2 = sum h r(h) + <H, coupled>. If
h r(h) <= c (1 + h^2) and the coupled terms grow at most linearly, |H| grows at most exponentially; coupled terms of a
higher power q are held back where h r(h) <= c - k |h|^(p + 1) with p > q. This holds for any matrix A: directed,
weighted, with isolated nodes. Otherwise a state that is equal in all nodes, or an isolated node, may blow up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import h, h0, public
from rdgraph.language.normal_form import H0, Act, H, Mix
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import within_budget
from rdgraph.reals.condition_words import factored
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import BOUNDED, remembered, watched
from rdgraph.reals.regions import cases
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.blowup import BlowUp, fate
from rdgraph.theory.growth_at_infinity import Trend, growth, order
from rdgraph.theory.several_fields.lifetimes import lifetime
from rdgraph.vocabulary.functions import record_of

GLOBAL, LOCAL = "global", "local"

__all__ = ["GLOBAL", "LOCAL", "BlowUp", "Existence", "existence", "existence_by_growth", "grows_linearly"]


@dataclass(frozen=True, repr=False)
class Existence(Answer):
    """Whether every solution exists for all time: "global", "local" (some can blow up), or None if undecided.

    `starts` is what the starts must satisfy for it, as in "u, v >= 0"; empty where all of them do.
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
        """What the starts must satisfy."""
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
    """Whether every solution lives for all time.

    Args:
        system: dH/dt = f(H), or several fields, with time or noise (an equation in the sense of Ito).

    Returns:
        "global", "local" (with blow-ups and their times) or None (undecided), with the reason; for several fields
        `starts` says from which starts.

    >>> from rdgraph.systems.parser import parse
    >>> existence(parse("F")).blow_ups[0].time
    log(1 - 1/h0)/beta
    >>> existence(parse("AC")).value
    'global'
    """
    with watched() as watch:
        found = _decided(system) if system.is_single else _of_fields(system)
    return replace(found, reason=f"{found.reason}; {BOUNDED}") if watch.bounded else found


def _of_fields(system: System) -> Existence:
    found = lifetime(system)
    return Existence(found.value, found.reason, found.blow_ups, found.starts)


@reads_system
@within_budget(otherwise=lambda problem: None)
@remembered(maxsize=256)
def existence_by_growth(system: System) -> Existence | None:
    """The proof of `existence` by bounds of growth alone, without a search for blow-ups; None where they give none.

    Args:
        system: dH/dt = f(H).

    Returns:
        global with its reason, or None: nothing is known then.

    >>> from rdgraph.systems.parser import parse
    >>> existence_by_growth(parse("AC")).value, existence_by_growth(parse("F"))
    ('global', None)
    """
    with watched() as watch:
        found, _ = _by_growth(system)
    if found is None or found.value != GLOBAL:
        return None
    return replace(found, reason=f"{found.reason}; {BOUNDED}") if watch.bounded else found


@reads_system
@within_budget(otherwise=lambda problem: False)
@remembered(maxsize=256)
def grows_linearly(system: System) -> bool:
    """Whether |f(H)| <= c (1 + |H|) is proved for all states of one field, on every graph.

    No run of such an equation overflows, whatever its method and step. False where nothing is known.

    >>> [grows_linearly(name) for name in ("BS", "AC", "-alpha*L@H + beta*sin(H)*H", "-alpha*L@H + sqrt(H)")]
    [True, False, True, False]
    """
    trouble = _singularity(system.normal, system.domain)
    is_defined = trouble is None or trouble.is_continuous
    return is_defined and (system.structure.linear or bool(_order(system.normal, system.domain) <= 1))


def _decided(system: System) -> Existence:
    found, obstacle = _by_growth(system)
    return _on_scalars(system, system.domain, obstacle) if found is None else found


def _by_growth(system: System) -> tuple[Existence | None, str]:
    """What singularities and bounds of growth settle, or the obstacle."""
    domain = system.domain
    trouble = _singularity(system.normal, domain)
    if trouble is not None and not trouble.is_continuous:
        return Existence(None, trouble.reason), ""
    if system.structure.linear:
        return Existence(GLOBAL, "the vector field is affine in H"), ""
    obstacle = "no growth bound holds in every entry"
    try:
        proved = _energy_estimate(*_split(system.normal), domain)
    except Undecided as problem:
        proved, obstacle = None, str(problem)
    if trouble is not None:
        reason = f"{proved}; {trouble.reason}" if proved else trouble.reason
        return Existence(GLOBAL if proved else None, reason), ""
    return (Existence(GLOBAL, proved) if proved else None), obstacle


# ---------------------------------------------------------------------- global existence
def _split(normal: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Terms of single entries of H, and terms that couple entries; what holds no H is a constant letter."""
    letters = {a: sp.Dummy("constant", real=True) for a in normal.atoms(Act, Mix) if not a.has(H)}
    plain = normal.xreplace(letters)
    coupled = [term for term in sp.Add.make_args(plain) if term.has(Act, Mix)]
    return sp.expand(plain - sp.Add(*coupled)), sp.Add(*coupled)


def _energy_estimate(own: sp.Expr, coupled: sp.Expr, domain: Domain) -> str | None:
    """Why d/dt |H|^2 proves global existence, for all coefficients of the domain; None where the estimate fails."""
    letter = sp.Dummy("h", real=True)
    rate = own.xreplace({H: letter})
    ends = [g for way in (1, -1) for _, g in cases(domain, partial(growth, rate, letter, way))]
    power = _order(coupled, domain)
    if power <= 1 and not any(g.trend is Trend.ESCAPING for g in ends):
        return _linear_reason(damped=any(g.trend is Trend.DAMPED for g in ends), coupled=coupled)
    if all(g.trend is Trend.DAMPED and g.order > power for g in ends):
        reason = f"large entries are damped by a higher power than {power}, that of the terms that couple them"
        return f"{reason}: solutions stay bounded, on every graph"
    return None


def _linear_reason(*, damped: bool, coupled: sp.Expr) -> str:
    if not damped:
        return "at most linear growth: solutions grow at most exponentially, on every graph"
    rest = "" if coupled == 0 else ", the coupled terms grow at most linearly"
    return f"large entries h are damped or grow at most linearly, h r(h) <= c (1 + h^2){rest}: on every graph"


def _order(expression: sp.Expr, domain: Domain) -> sp.Expr:
    """A power q with |expression| <= c (1 + |H|^q) for a fixed graph; infinite where none is known."""
    if not expression.has(H):
        return sp.S.Zero
    if expression == H:
        return sp.S.One
    match expression:
        case Act() | Mix():
            return _order(expression.inner, domain)
        case sp.Add():
            return sp.Max(*(_order(part, domain) for part in expression.args))
    atoms = _state_atoms(expression)
    if len(atoms) == 1 and expression not in atoms:
        return _order_in(expression, atoms[0], domain)
    match expression:
        case sp.Mul():
            return sp.Add(*(_order(part, domain) for part in _by_atoms(expression)))
        case sp.Pow() if expression.exp.is_Rational and expression.exp.is_positive:
            return _order(expression.base, domain) * expression.exp
    record = record_of(expression)
    if record is not None and record.growth is not None:
        return sp.S.Zero if record.is_bounded else _order(expression.args[0], domain)
    if isinstance(expression, sp.exp) and _order(expression.args[0], domain) == 0:
        return sp.S.Zero
    if isinstance(expression, sp.Pow) and expression.exp.is_negative and _has_floor(expression.base, domain):
        return sp.S.Zero
    return sp.oo


def _order_in(expression: sp.Expr, atom: sp.Expr, domain: Domain) -> sp.Expr:
    """The order of a function of one entry of the state, or of one operator applied to it."""
    letter = sp.Dummy("z", real=True)
    try:
        powers = [p for _, p in cases(domain, partial(order, expression.xreplace({atom: letter}), letter))]
    except Undecided:
        return sp.oo
    return sp.Max(*powers) * _order(atom, domain)


def _by_atoms(product: sp.Mul) -> list[sp.Expr]:
    """Factors that see the state through the same parts, multiplied."""
    groups: dict[frozenset[sp.Expr], sp.Expr] = {}
    for factor in product.args:
        atoms = frozenset(_state_atoms(factor))
        groups[atoms] = groups.get(atoms, sp.S.One) * factor
    return list(groups.values()) if len(groups) > 1 else list(product.args)


def _state_atoms(expression: sp.Expr) -> list[sp.Expr]:
    """The largest parts through which an expression sees the state: H itself, A@(...), (...)@W."""
    if expression == H or (isinstance(expression, Act | Mix) and expression.has(H)):
        return [expression]
    return list(dict.fromkeys(atom for part in expression.args for atom in _state_atoms(part)))


def _has_floor(base: sp.Expr, domain: Domain) -> bool:
    """Whether an expression keeps above a positive constant: one part of it is, and the rest is never negative."""
    letters = {atom: sp.Dummy("z", real=True) for atom in _state_atoms(base)}
    constant, rest = base.xreplace(letters).as_independent(*letters.values(), as_Add=True)
    return domain.sign(constant).value == "+" and domain.is_nonnegative(rest)


# ---------------------------------------------------------------------- where the field is defined and Lipschitz
@dataclass(frozen=True)
class _Singularity:
    """A root or a quotient that is not proved to be Lipschitz; roots of what is never negative are continuous."""

    reason: str
    is_continuous: bool


def _singularity(normal: sp.Expr, domain: Domain) -> _Singularity | None:
    """A root or a quotient of the state that is not proved to keep away from zero; discontinuous ones first."""
    letters = {a: sp.Dummy("z", real=True) for a in normal.atoms(Act, Mix)}
    continuous = None
    for power in sorted(normal.atoms(sp.Pow), key=lambda p: (p.count_ops(), str(p))):
        base, plain = power.base, power.base.xreplace(letters)
        if (power.exp.is_Integer and power.exp > 0) or not (base.has(H, H0, Act, Mix) or _has_mask(base)):
            continue
        if not power.exp.is_Integer and domain.proves(sp.Gt(plain, 0, evaluate=False)):
            continue
        if power.exp.is_negative and not domain.proves(sp.Ne(plain, 0, evaluate=False)):
            return _Singularity(f"{public(power)} can be singular: {public(base)} may be 0", False)
        if power.exp.is_Integer:
            continue
        if not domain.proves(sp.Ge(plain, 0, evaluate=False)):
            return _Singularity(f"{public(power)} need not be defined: {public(base)} may be negative", False)
        reason = f"solutions need not be unique: {public(power)} is not Lipschitz where {public(base)} = 0"
        continuous = continuous or _Singularity(reason, True)
    return continuous


def _has_mask(expression: sp.Expr) -> bool:
    return any(x.name == "M" for x in expression.free_symbols)


# ---------------------------------------------------------------------- blow-up
@dataclass(frozen=True)
class _Scalar:
    """A scalar equation that some states follow, and on which graphs, with which coefficients."""

    rate: sp.Expr
    states: str


def _on_scalars(system: System, domain: Domain, otherwise: str) -> Existence:
    """Blow-up of states that follow a scalar equation; global where all states do and none blows up."""
    reasons = [otherwise]
    for scalar in _scalars(system):
        found = fate(scalar.rate, domain)
        equation = f"h' = {public(_factored(scalar.rate))}"
        if found.blow_ups:
            others = f"; other blow-ups are not excluded: {'; '.join(found.open)}" if found.open else ""
            return Existence(LOCAL, f"{scalar.states}, {equation} reaches infinity{others}", found.blow_ups)
        if _is_uncoupled(system) and found.is_bounded:
            return Existence(GLOBAL, f"{scalar.states}, {equation} has a zero between every start and infinity")
        reasons += [f"{scalar.states}, {reason}" for reason in found.open or (f"{equation} stays finite",)]
    return Existence(None, "; ".join(dict.fromkeys(reasons)))


def _factored(rate: sp.Expr) -> sp.Expr:
    """The shorter way to write a rate, where sympy factors it."""
    try:
        return factored(rate)
    except BasePolynomialError:
        return rate


def _is_uncoupled(system: System) -> bool:
    return not system.normal.has(Act, Mix)


def _scalars(system: System) -> Iterator[_Scalar]:
    """Every entry on its own; states equal in all nodes where A@1 = 1; an isolated node."""
    if _is_uncoupled(system):
        yield _Scalar(_rate(system.normal), "in every entry")
        return
    choice = _choice(system)
    if not system.normal.has(Act):
        yield _Scalar(_rate(_constant_states(system.normal)), f"on states equal in all nodes{choice}")
        return
    graph = "(A@1 = 1: the rows of A sum to 1, no node is isolated)"
    yield _Scalar(_rate(_constant_states(system.normal)), f"on states equal in all nodes {graph}{choice}")
    yield _Scalar(_rate(_isolated(system.normal)), f"in an isolated node (its row of A is 0){choice}")


def _rate(expression: sp.Expr) -> sp.Expr:
    return sp.expand(expression.xreplace({H: h, H0: h0}))


def _choice(system: System) -> str:
    """The admissible coefficients for which a state stays equal in all nodes, in words."""
    masks = ["M"] if "M" in system.letters else []
    nodes = masks + [name for name, kind in system.coefficients.items() if kind is Kind.NODE]
    matrices = [name for name, kind in system.letters.items() if kind is Kind.MATRIX]
    parts = [f"{' and '.join(nodes)} equal in all nodes"] if nodes else []
    parts += [f"{' and '.join(matrices)} the identity"] if matrices else []
    return f" with {', '.join(parts)}" if parts else ""


def _constant_states(expression: sp.Expr) -> sp.Expr:
    """Every operator and matrix removed: what they do to constants where A@1 = 1 and W = I."""
    return expression.replace(lambda e: isinstance(e, Act | Mix), lambda e: _constant_states(e.inner))


def _isolated(expression: sp.Expr) -> sp.Expr:
    """What an isolated node sees: every word of A gives zero; W = I."""
    return expression.replace(
        lambda e: isinstance(e, Act | Mix), lambda e: sp.S.Zero if isinstance(e, Act) else _isolated(e.inner)
    )
