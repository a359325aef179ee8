"""Conserved linear functionals and the energy law, read off the normal form."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from rdgraph.algebra.normal_form import Act, H, Mix
from rdgraph.canonical.cancelled_parts import where_defined
from rdgraph.canonical.function_identities import is_zero
from rdgraph.decisions.branches import is_above
from rdgraph.decisions.budget import ANSWER_SECONDS, limited, within_budget
from rdgraph.decisions.enclosure import sign_of
from rdgraph.decisions.interval_extrema import interval_candidates
from rdgraph.decisions.maxima import maximum
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.normalisations.registry import records
from rdgraph.syntax.answer_symbols import lam, public
from rdgraph.syntax.formula_functions import FormulaFunction
from rdgraph.syntax.learned_records import LearnedCall
from rdgraph.syntax.printer import to_text
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.reaction_energy import reaction_energy
from rdgraph.theory.several_fields.conserved_sums import ConservedSums, conserved_sums


@dataclass(frozen=True)
class Conservation:
    """Weights w with sum_i w_i H_i constant in time, per normalisation; empty where nothing is conserved.

    Isolated nodes have the weight 0 (they decay on their own under L = I - A), also where the weight of the others is
    1. `assumes` is what a graph must be like for the weights of a normalisation to be these.
    """

    weights: dict[str, str]
    rate: sp.Expr
    assumes: dict[str, str] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        return bool(self.weights)


@reads_system
def conserved(system: System) -> Conservation | ConservedSums:
    """Is w^T H constant, w the stationary weights of A? Exactly when w^T f(H) = 0 after w^T A = w^T.

    Args:
        system: dH/dt = f(H), or several fields.

    Returns:
        The weights for each normalisation, empty where nothing is conserved, and the rate of the weighted mean. For
        several fields `ConservedSums`: a basis of the combinations of the fields that are conserved.

    Raises:
        Undecided: it is not known whether the rate vanishes, or time ran out.

    >>> from rdgraph.systems.parser import parse
    >>> conserved(parse("-alpha*L@(H**3 - H)")).weights["row"]
    'd'
    >>> print(*conserved("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v; w' = v").sums)
    u + v + w at every node
    """
    if not system.is_single:
        return limited(ANSWER_SECONDS, conserved_sums, system)
    return single_mean(system)


def single_mean(system: System) -> Conservation:
    """The conserved mean of one field."""
    rate, is_conserved = limited(ANSWER_SECONDS, _mean_rate, system)
    if not is_conserved:
        return Conservation({}, rate)
    known = {name: record.conserved for name, record in records.items() if record.conserved is not None}
    assumed = {name: assumes for name, (_, assumes) in known.items() if assumes}
    return Conservation({name: weights for name, (weights, _) in known.items()}, rate, assumed)


def _mean_rate(system: System) -> tuple[sp.Expr, bool]:
    """The rate of the weighted mean, and whether it vanishes."""
    rate = sp.expand(_contracted(where_defined(system.normal), system))
    if is_zero(rate):
        return rate, True
    if rate.has(FormulaFunction, LearnedCall) and not _is_seen_to_differ(rate, system):
        raise Undecided(f"it is not known whether {public(rate)} vanishes")
    return rate, False


def _is_seen_to_differ(rate: sp.Expr, system: System) -> bool:
    """Whether the rate is proved to be other than zero at a state that is equal in all nodes, where A@1 = 1."""
    if system.assumptions.relations or rate.has(Mix):
        return False
    uniform = rate.replace(lambda e: isinstance(e, Act), lambda e: e.inner)
    letters = {x: sp.S.NegativeOne if x.is_nonpositive else sp.S.One for x in uniform.free_symbols}
    return any(sign_of(uniform, {**letters, H: value}) in (1, -1) for value in (sp.S.One, sp.S.NegativeOne, sp.S.Half))


def _contracted(expression: sp.Expr, system: System) -> sp.Expr:
    """w^T of a normal form after w^T A = w^T: the outermost operators of every term are dropped."""
    total = sp.S.Zero
    for term in sp.Add.make_args(expression):
        linear = [f for f in sp.Mul.make_args(term) if isinstance(f, Act | Mix)]
        others = sp.Mul(*(f for f in sp.Mul.make_args(term) if not isinstance(f, Act | Mix)))
        if len(linear) != 1 or _is_field(others, system):
            total += term
        elif isinstance(linear[0], Mix):
            inner = sp.expand(_contracted(linear[0].inner, system))
            total += others * sp.Add(*(Mix(linear[0].word, part) for part in sp.Add.make_args(inner)))
        else:
            total += others * (linear[0].inner if all(w.name == "A" for w in linear[0].word) else linear[0])
    return total


def _is_field(expression: sp.Expr, system: System) -> bool:
    """Whether a factor varies from node to node."""
    kinds = system.algebra.kinds
    return any(kinds.get(x.name, "field") in ("field", "node") for x in expression.free_symbols)


@dataclass(frozen=True)
class EnergyLaw:
    """d/dt tr(H^T L H) for symmetric A: rate per squared mode amplitude, forcing by H0, and whether it must decay.

    An isolated node is a mode with lam = 1: it has the energy of its squared entries, and the law includes it.
    """

    mode_rate: sp.Expr | None
    source_rate: sp.Expr | None
    text: str
    decays: str


@reads_system
@within_budget(lambda problem: EnergyLaw(None, None, "dE/dt = 2 tr(H^T L f(H))", f"undecided: {problem}"))
def energy_law(system: System) -> EnergyLaw:
    """The energy law of E = tr(H^T L H), A symmetric.

    Args:
        system: dH/dt = f(H).

    Returns:
        The rate of the energy by frequency, where there is a symbol, and whether the energy must decay; of nonlinear
        reactions what holds on undirected regular graphs.

    Raises:
        NotApplicable: a system of several fields, of second order, with time, noise or further operators.

    >>> from rdgraph.systems.parser import parse
    >>> energy_law(parse("-alpha*L@H")).mode_rate
    -2*alpha*lam**2
    """
    right = to_text(system.expression)
    try:
        p, q = system.generator_symbol, system.source_symbol
    except NotApplicable as reason:
        law = f"dE/dt = 2 tr(H^T L f(H)), f(H) = {right}"
        try:
            found = reaction_energy(system)
        except (NotApplicable, Undecided) as problem:
            return EnergyLaw(None, None, law, f"undecided: {problem}")
        return EnergyLaw(None, None, law, f"undecided: {reason}") if found is None else EnergyLaw(None, None, *found)
    rate = public(sp.expand(2 * lam * p))
    source = public(sp.expand(2 * lam * q)) if q != 0 else None
    text = f"dE/dt = sum_k ({rate}) |c_k|^2" + (f" + ({source}) c_k.c_k(0)" if source is not None else "")
    return EnergyLaw(rate, source, text, _decays(system, p, q))


def _decays(system: System, p: sp.Expr, q: sp.Expr) -> str:
    if q != 0:
        return "not monotone in general: the source feeds the modes of H0"
    domain = system.domain
    quotient = sp.cancel(p / lam)
    rate = quotient if quotient.is_polynomial(lam) else p
    spectrum = domain.where(sp.Gt(lam, 0, evaluate=False), sp.Le(lam, 2, evaluate=False))
    if spectrum.proves(sp.Le(rate, 0, evaluate=False)) is True:
        return "never increases, on every graph"
    try:
        worst = maximum(interval_candidates(rate, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    except Undecided as problem:
        return f"undecided: {problem}"
    if is_above(worst, sp.S.Zero, domain):
        return "increases for some states, whatever the coefficients"
    return f"never increases iff {public(worst)} <= 0"
