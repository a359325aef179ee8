"""Conserved linear functionals and the energy law, read off the normal form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import sympy as sp

from rdgraph.answers import Answer, Status, certainty, listed_by_name
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.formula_reader import FormulaFunction
from rdgraph.language.normal_form import Act, H, Mix
from rdgraph.language.printer import to_text
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import ANSWER_SECONDS, limited, within_budget
from rdgraph.reals.enclosure import sign_of
from rdgraph.systems.canonical.cancelled_parts import where_defined
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.systems.parser import reads_system
from rdgraph.systems.structure import structure_of
from rdgraph.systems.symbols import generator_symbol, source_symbol
from rdgraph.systems.system import System
from rdgraph.theory.dirichlet_energy import (
    EnergyWitness,
    coefficient_names,
    linear_fate,
    reaction_fate,
    source_fate,
    undecided,
)
from rdgraph.theory.gradient_flow import GradientFlow, gradient_flow
from rdgraph.theory.several_fields.conserved_sums import ConservedSums, conserved_sums
from rdgraph.vocabulary.learned_functions import LearnedCall
from rdgraph.vocabulary.normalisations import records


@dataclass(frozen=True, repr=False)
class Conservation(Answer):
    """Weights w with sum_i w_i H_i constant in time, per normalisation; empty where nothing is conserved.

    Isolated nodes have the weight 0 (they decay on their own under L = I - A), also where the weight of the others is
    1. `assumes` is what a graph must be like for the weights of a normalisation to be these.
    """

    weights: dict[str, str]
    rate: sp.Expr
    assumes: dict[str, str] = field(default_factory=dict)

    @property
    def value(self) -> dict[str, str] | None:
        """The weights by normalisation, None where no weighted mean is constant."""
        return self.weights or None

    @property
    def status(self) -> Status:
        """proved: what is not decided raises `Undecided`."""
        return Status.PROVED

    @property
    def reason(self) -> str:
        """The rate of the weighted mean."""
        return f"its rate {'is' if self.exists else 'does not vanish:'} {public(self.rate)}"

    @property
    def headline(self) -> str:
        if not self.exists:
            return "no weighted mean is conserved"
        return f"sum_i w_i H_i is conserved with w = {listed_by_name(self.weights)}, d the degree"

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


@dataclass(frozen=True, repr=False)
class EnergyLaw(Answer):
    """d/dt tr(H^T L H) for symmetric A: rate per squared mode amplitude, forcing by H0, and whether it must decay.

    An isolated node is a mode with lam = 1: it has the energy of its squared entries, and the law includes it. Where
    the energy can increase, `witness` is a graph, a state and coefficients at which it does; where that depends on the
    coefficients, `threshold` is what has to be <= 0. `gradient` is the energy of which the system is the gradient flow,
    where there is one: that energy never increases.
    """

    mode_rate: sp.Expr | None
    source_rate: sp.Expr | None
    text: str
    decays: str
    witness: EnergyWitness | None = None
    threshold: sp.Expr | None = None
    gradient: GradientFlow = field(default_factory=lambda: GradientFlow(None, "time ran out"))

    @property
    def value(self) -> str:
        """The law: what dE/dt is, or by what it is bounded."""
        return self.text

    @property
    def status(self) -> Status:
        """Whether it is decided that the energy decays, or can increase."""
        return Status.UNDECIDED if self.decays.startswith(f"{Status.UNDECIDED}:") else certainty(self.decays)

    @property
    def reason(self) -> str:
        """Whether the energy decays, with the witness where it can increase."""
        return self.verdict

    @property
    def assumes(self) -> str:
        """The law is that of symmetric operators."""
        return "A is symmetric"

    def __str__(self) -> str:
        return f"{self.text}; {self.verdict}, assuming that {self.assumes} ({self.status})"

    @property
    def verdict(self) -> str:
        """Whether the energy decays, with the witness where it can increase."""
        if self.witness is None:
            return self.decays
        return f"{self.decays}; {'' if self.threshold is None else 'else it increases, '}for example {self.witness}"


@reads_system
@within_budget(lambda problem: EnergyLaw(None, None, "dE/dt = 2 tr(H^T L f(H))", f"undecided: {problem}"))
def energy_law(system: System) -> EnergyLaw:
    """The energy law of E = tr(H^T L H), A symmetric.

    Args:
        system: dH/dt = f(H).

    Returns:
        The rate of the energy by frequency, where there is a symbol, and whether the energy must decay, with a witness
        where it can increase; of nonlinear reactions what holds on undirected regular graphs. With one symmetric
        matrix beside scalars the rate is that of its eigenvalues w. And the energy that a gradient flow descends.

    Raises:
        NotApplicable: a system of several fields, of second order, with time, noise or further operators.

    >>> from rdgraph.systems.parser import parse
    >>> energy_law(parse("-alpha*L@H")).mode_rate
    -2*alpha*lam**2
    >>> energy_law("A@H@W - alpha*H where W symmetric").decays
    'never increases, on every graph, iff (-alpha - w if w <= 0, otherwise -alpha + w) <= 0 for every eigenvalue w of W'
    """
    right = to_text(system.expression)
    gradient = gradient_flow(system)
    try:
        p, q, names, matrix = _symbols(system)
    except NotApplicable as reason:
        try:
            fate = reaction_fate(system) or undecided(reason)
        except (NotApplicable, Undecided) as problem:
            fate = undecided(problem)
        law = fate.bound or f"dE/dt = 2 tr(H^T L f(H)), f(H) = {right}"
        return EnergyLaw(None, None, law, fate.words, fate.witness, fate.threshold, gradient)
    rate = public(sp.expand(2 * lam * p))
    source = public(sp.expand(2 * lam * q)) if q != 0 else None
    text = f"dE/dt = sum_k ({rate}) |c_k|^2" + (f" + ({source}) c_k.c_k(0)" if source is not None else "")
    try:
        fate = linear_fate(p, system.domain, names) if q == 0 else source_fate(p, q, system.domain, names)
    except Undecided as problem:
        fate = undecided(problem)
    words = fate.words if matrix is None else _of_matrix(fate.words, matrix)
    text += "" if matrix is None else f", {matrix.value} the eigenvalues of {matrix.name}"
    return EnergyLaw(rate, source, text, words, fate.witness, fate.threshold, gradient)


def _symbols(system: System) -> tuple[sp.Expr, sp.Expr, dict[sp.Symbol, str], _Matrix | None]:
    """p and q in lam, the coefficients in them, and the symmetric matrix whose eigenvalues w they hold.

    Its eigenvectors split the channels, as long as no other matrix and no channel coefficient mixes them.
    """
    names = coefficient_names(system)
    try:
        return system.generator_symbol, system.source_symbol, names, None
    except NotApplicable:
        letters = {x for mix in system.normal.atoms(Mix) for x in mix.word}
        if len(letters) != 1:
            raise
        (letter,) = letters
        if letter.name not in system.assumptions.symmetric:
            raise NotApplicable(
                f"{letter} mixes channels; with a symmetric one the law follows: where {letter} symmetric"
            ) from None
        if Kind.CHANNEL in system.coefficients.values():
            raise NotApplicable(f"{letter} and the channel coefficients have no common eigenvectors") from None
    w = sp.Symbol("w" if "w" not in system.letters else f"w_{letter}", real=True)
    split = system.normal
    while split.has(Mix):
        split = split.replace(lambda e: isinstance(e, Mix), lambda e: w ** len(e.word) * e.inner)
    structure = structure_of(sp.expand(split), {**system.algebra.kinds, w.name: Kind.SCALAR})
    scalars = {symbol: name for symbol, name in names.items() if name != letter.name}
    names = {**scalars, w: letter.name}
    return generator_symbol(structure), source_symbol(structure), names, _Matrix(letter.name, w.name)


class _Matrix(NamedTuple):
    """A symmetric matrix, and the letter of its eigenvalues."""

    name: str
    value: str


def _of_matrix(words: str, matrix: _Matrix) -> str:
    """A fate in which a letter stands for the eigenvalues of a matrix."""
    if " iff " in words:
        return f"{words} for every eigenvalue {matrix.value} of {matrix.name}"
    return words.replace("whatever the coefficients", f"whatever the coefficients and {matrix.name} are")
