"""Conserved linear functionals and the energy law, read off the normal form.

Numbers c_i with sum_i c_i w^T u_i constant, w weights of the nodes: w^T f_i is brought to one form by the laws of the
normalisations (`sum_laws`). The combinations that vanish are the kernel of the matrix of coefficients of independent
functions of the state, over the field of the coefficients of the system, and there are no others. A combination that
vanishes before it is contracted is conserved at every node. For one field the answer is about the weighted mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from rdgraph.answers import Answer, Status, certainty, listed_by_name
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.formula_reader import FormulaFunction
from rdgraph.language.normal_form import TIME, Act, H, Mix
from rdgraph.language.printer import to_text
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import ANSWER_SECONDS, limited, within_budget
from rdgraph.reals.enclosure import sign_of
from rdgraph.systems.canonical.cancelled_parts import where_defined
from rdgraph.systems.canonical.function_identities import CanonicalForm, canonical, is_zero
from rdgraph.systems.parser import reads_system
from rdgraph.systems.structure import structure_of
from rdgraph.systems.symbols import generator_symbol, source_symbol
from rdgraph.systems.system import System
from rdgraph.theory.gradient_flow import GradientFlow, gradient_flow
from rdgraph.theory.laplacian_energy import (
    EnergyWitness,
    coefficient_names,
    linear_fate,
    reaction_fate,
    source_fate,
    undecided,
)
from rdgraph.theory.several_fields.node_speeds import normal_forms
from rdgraph.vocabulary.learned_functions import LearnedCall
from rdgraph.vocabulary.normalisations import records


@dataclass(frozen=True, repr=False)
class Conservation(Answer):
    """Weights w with sum_i w_i H_i constant in time, by normalisation; empty where nothing is conserved.

    Isolated nodes have the weight 0, since they decay under L = I - A, even where all other weights are 1. `assumes`
    is what a graph must satisfy for these weights, by normalisation. With `is_undirected` no directed graph conserves
    the sum, although it is constant on undirected ones.
    """

    weights: dict[str, str]
    rate: sp.Expr
    assumes: dict[str, str] = field(default_factory=dict)
    is_undirected: bool = False

    @property
    def value(self) -> dict[str, str] | None:
        """The weights by normalisation; None where no weighted mean is constant."""
        return self.weights or None

    @property
    def status(self) -> Status:
        """proved: what is not decided raises `Undecided`."""
        return Status.PROVED

    @property
    def reason(self) -> str:
        """The rate of change of the weighted mean."""
        if self.is_undirected:
            return f"on undirected graphs the sum of {public(self.rate)} vanishes"
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
    """Weights w with w^T A = w^T for which w^T H is constant along every solution: exactly when w^T f(H) = 0.

    Args:
        system: dH/dt = f(H), or several fields.

    Returns:
        The weights for each normalisation, empty where nothing is conserved, and the rate of the weighted mean. For
        several fields `ConservedSums`: a basis of the combinations of the fields that are conserved.

    Raises:
        Undecided: it is not known whether the rate vanishes, or time ran out.

    >>> import rdgraph as rd
    >>> rd.theory.conserved(rd.parse("-alpha*L@(H**3 - H)")).weights["row"]
    'd'
    >>> print(*rd.theory.conserved("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v; w' = v").sums)
    u + v + w at every node
    """
    if not system.is_single:
        return limited(ANSWER_SECONDS, conserved_sums, system)
    return single_mean(system)


def single_mean(system: System) -> Conservation:
    """The conserved mean of one field.

    >>> from rdgraph.systems.parser import parse
    >>> single_mean(parse("H**2*(A@H) - H*(A@(H**2))")).weights["row"]
    'd'
    """
    rate, is_conserved = limited(ANSWER_SECONDS, _mean_rate, system)
    if not is_conserved:  # on undirected graphs the sums of u*(A@v) and v*(A@u) are equal
        sums = limited(ANSWER_SECONDS, conserved_sums, system)
        assumed = {name: text for one in sums.sums for name, text in one.assumes.items()}
        return Conservation(sums.weights, rate, assumed, is_undirected=sums.exists)
    known = {name: record.conserved for name, record in records.items() if record.conserved is not None}
    assumed = {name: assumes for name, (_, assumes) in known.items() if assumes}
    return Conservation({name: weights for name, (weights, _) in known.items()}, rate, assumed)


def _mean_rate(system: System) -> tuple[sp.Expr, bool]:
    """The rate of the weighted mean, and whether it vanishes."""
    rate = MEAN.contracted(where_defined(system.normal), system)
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


# ---------------------------------------------------------------------- node sums
# Weighted sums over the nodes: the effect of w^T on operators, and the laws of the normalisations.
#
# w^T A = w^T removes the outermost A, w^T L = 0 a term in L = D - A. On undirected graphs A is its own adjoint for
# the weights d of the row normalisation, and for the weights 1 of D - A and of a symmetric A: the sums of u*(A@v) and
# of v*(A@u) are equal.

UNDIRECTED = "the graph is undirected"


@dataclass(frozen=True)
class SumLaw:
    """Weights of a normalisation; `vanishing` is the outermost operator that they remove, A or L, or empty."""

    normalisation: str
    weights: str
    assumes: str
    vanishing: str
    is_adjoint: bool

    def contracted(self, expression: sp.Expr, system: System) -> sp.Expr:
        """The sum of a normal form over the nodes, in a canonical form for equal sums.

        >>> from rdgraph.systems.parser import parse
        >>> system = parse("u' = A@u - v*(A@u); v' = 0*v")
        >>> sum_laws()[1].contracted(system.normals["u"], system)
        -u*A@v + u
        """
        total = sp.S.Zero
        for term in sp.Add.make_args(sp.expand(expression)):
            total += self._term(term, system)
        return sp.expand(total)

    def _term(self, term: sp.Expr, system: System) -> sp.Expr:
        linear = [f for f in sp.Mul.make_args(term) if isinstance(f, Act | Mix)]
        others = sp.Mul(*(f for f in sp.Mul.make_args(term) if not isinstance(f, Act | Mix)))
        if len(linear) != 1:
            return term
        atom = linear[0]
        if not _varies(others, system):
            return others * self._alone(atom, system)
        return self._turned(others, atom, system) if isinstance(atom, Act) and self.is_adjoint else term

    def _alone(self, atom: Act | Mix, system: System) -> sp.Expr:
        if isinstance(atom, Mix):
            inner = self.contracted(atom.inner, system)
            return sp.Add(*(Mix(atom.word, part) for part in sp.Add.make_args(inner)))
        if self.vanishing == "L":
            return sp.S.Zero if atom.word[0].name == "L" else atom
        return atom.inner if self.vanishing == "A" and all(w.name == "A" for w in atom.word) else atom

    def _turned(self, others: sp.Expr, atom: Act, system: System) -> sp.Expr:
        """The first of g*(word@h) and h*(reversed word@g); only words of A and L are their own adjoints."""
        if any(w.name not in ("A", "L") for w in atom.word) or atom.inner.has(Act, Mix):
            return others * atom
        moving = [f for f in sp.Mul.make_args(others) if _varies(f, system)]
        fixed, field = sp.Mul(*(f for f in sp.Mul.make_args(others) if f not in moving)), sp.Mul(*moving)
        if str(field) <= str(atom.inner):
            return others * atom
        return fixed * atom.inner * Act(reversed(atom.word), field)

    def is_complete(self, expression: sp.Expr) -> bool:
        """Whether sums with different forms are known to differ: without products of operators and nested ones."""
        if not self.is_adjoint:
            return True
        if any(atom.inner.has(Act) for atom in expression.atoms(Act)) or expression.has(Mix):
            return False
        terms = sp.Add.make_args(sp.expand(expression))
        return all(sum(f.has(Act) for f in sp.Mul.make_args(t)) <= 1 and not _is_bent(t) for t in terms)


def _is_bent(term: sp.Expr) -> bool:
    """Whether a power or a function contains an operator."""
    return any(f.has(Act) and not isinstance(f, Act) for f in sp.Mul.make_args(term))


#: The law w^T A = w^T for any weights w.
MEAN = SumLaw("", "", "", "A", is_adjoint=False)


def sum_laws() -> tuple[SumLaw, ...]:
    """The laws of all normalisations that have one."""
    known = [(name, *record.conserved) for name, record in records.items() if record.conserved is not None]
    laws = [SumLaw(name, weights, assumes, "A", weights == "d") for name, weights, assumes in known]
    laws.append(SumLaw("none", "1", UNDIRECTED, "L", is_adjoint=True))
    laws.append(SumLaw("symmetric", "1", "", "", is_adjoint=True))
    return tuple(laws)


def _varies(expression: sp.Expr, system: System) -> bool:
    """Whether a factor varies from node to node."""
    kinds = system.algebra.kinds
    return any(kinds.get(x.name, Kind.FIELD) in (Kind.FIELD, Kind.NODE) for x in expression.free_symbols)


# ---------------------------------------------------------------------- conserved sums
@dataclass(frozen=True)
class ConservedSum:
    """sum_i c_i w^T u_i: the numbers c_i by field, and the weights w of the nodes by normalisation.

    With `is_local` it is conserved at every node, on any graph. `assumes` is what a graph must satisfy for these
    weights, by normalisation.
    """

    coefficients: tuple[tuple[str, sp.Expr], ...]
    weights: Mapping[str, str]
    is_local: bool = False
    assumes: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The combination, such as u + v."""
        return str(sp.Add(*(c * sp.Symbol(name) for name, c in self.coefficients), evaluate=True))

    def __str__(self) -> str:
        where = "at every node" if self.is_local else "summed with the weights w"
        return f"{self.text} {where}"


@dataclass(frozen=True, repr=False)
class ConservedSums(Answer):
    """A basis of the conserved sums with constant coefficients; the reason says what an empty basis means.

    `is_complete` says that no other sum with these weights is constant on all graphs and for all states.
    """

    sums: tuple[ConservedSum, ...]
    is_complete: bool
    reason: str = ""

    @property
    def value(self) -> tuple[str, ...]:
        """The sums as texts."""
        return tuple(map(str, self.sums))

    @property
    def status(self) -> Status:
        """proved for the sums that were found; undecided where there are none and others are not excluded."""
        return Status.PROVED if self.sums or self.is_complete else Status.UNDECIDED

    @property
    def headline(self) -> str:
        return f"conserved: {', '.join(self.value)}" if self.sums else "nothing is conserved"

    @property
    def exists(self) -> bool:
        return bool(self.sums)

    @property
    def weights(self) -> dict[str, str]:
        """Weights of the sums that are conserved under each normalisation; local sums are conserved under all."""
        weights_of: dict[str, str] = {}
        for one in self.sums:
            for name, weights in one.weights.items():
                weights_of.setdefault(name, weights)
        return weights_of


def conserved_sums(system: System) -> ConservedSums:
    """The linear combinations of the fields whose weighted sum over the nodes is constant in time.

    >>> from rdgraph.systems.parser import parse
    >>> found = conserved_sums(parse("u' = -beta*u*(A@v) - Du*L@u; v' = beta*u*(A@v) - Dv*L@v"))
    >>> print(*found.sums), found.sums[0].weights["row"]
    u + v summed with the weights w
    (None, 'd')
    """
    local = _kernel(system, system.normals)
    sums = [_local(system, vector) for vector in local.vectors]
    laws = [(law, _kernel_of(system, law)) for law in sum_laws()]
    known: list[tuple[sp.Expr, ...]] = list(local.vectors)
    for _, kernel in laws:
        for vector in _beyond(kernel.vectors, known):
            known.append(vector)
            sums.append(_weighted(system, vector, laws))
    note = "" if sums else "no combination of the fields with constant coefficients has a constant weighted sum"
    complete = local.is_complete and all(kernel.is_complete for _, kernel in laws)
    if not complete:
        note = "; ".join(
            [*([note] if note else []), "others may exist: not all functions in f are known to be independent"]
        )
    return ConservedSums(tuple(sums), complete, note)


def _local(system: System, vector: Sequence[sp.Expr]) -> ConservedSum:
    names = [name for name, record in records.items() if record.entry is not None]
    is_everywhere = _holds(vector, _kernel(system, normal_forms(system, "none")).vectors)
    return ConservedSum(
        _named(system, vector),
        {name: "any" for name in names if is_everywhere or not records[name].has_degrees},
        is_local=True,
    )


def _kernel_of(system: System, law: SumLaw) -> _Kernel:
    normals = normal_forms(system, law.normalisation)
    kernel = _kernel(system, {name: law.contracted(normal, system) for name, normal in normals.items()})
    complete = kernel.is_complete and all(law.is_complete(normal) for normal in normals.values())
    return _Kernel(kernel.vectors, complete)


def _weighted(system: System, vector: tuple[sp.Expr, ...], laws: Sequence[tuple[SumLaw, _Kernel]]) -> ConservedSum:
    """A sum with the weights of every law under which it is constant; of two laws of one normalisation, the first."""
    weights: dict[str, str] = {}
    assumes: dict[str, str] = {}
    for law, kernel in laws:
        if law.normalisation not in weights and _holds(vector, kernel.vectors):
            weights[law.normalisation] = law.weights
            assumes |= {law.normalisation: law.assumes} if law.assumes else {}
    return ConservedSum(_named(system, vector), weights, assumes=assumes)


def _named(system: System, vector: Sequence[sp.Expr]) -> tuple[tuple[str, sp.Expr], ...]:
    return tuple((name, public(c)) for name, c in zip(system.fields, vector, strict=True) if c != 0)


# ---------------------------------------------------------------------- linear algebra
@dataclass(frozen=True)
class _Kernel:
    """A basis of the combinations that vanish; complete where the functions are known to be independent."""

    vectors: tuple[tuple[sp.Expr, ...], ...]
    is_complete: bool


def _kernel(system: System, rates: Mapping[str, sp.Expr]) -> _Kernel:
    rates = {name: where_defined(rate) for name, rate in rates.items()}
    marks = {name: sp.Dummy(f"c_{i}", real=True) for i, name in enumerate(system.fields)}
    total = sp.expand(sp.Add(*(mark * rates[name] for name, mark in marks.items())))
    kinds = {**system.algebra.kinds, **{mark.name: Kind.SCALAR for mark in marks.values()}}
    try:
        form = canonical(total, replace(system.algebra, kinds=kinds))
    except NotApplicable:
        form = CanonicalForm(total, sp.S.One)
    scalars = [
        x for n, x in system.algebra.symbols.items() if kinds.get(n) in (Kind.SCALAR, Kind.CHANNEL) and x != TIME
    ]
    table = form.collected([*marks.values(), *scalars])
    rows = [[c.coeff(mark) for mark in marks.values()] for c in table.values()]
    rows += [[sp.Integer(name == field_name) for field_name in system.fields] for name in system.noise]
    complete = form.is_independent and not any(rate.has(TIME) for rate in rates.values())
    if not rows:
        return _Kernel(tuple(tuple(sp.eye(len(marks)).row(k)) for k in range(len(marks))), True)
    matrix = DomainMatrix.from_Matrix(sp.Matrix(rows)).to_field().nullspace().to_Matrix()
    vectors = tuple(_cleared(list(matrix.row(k))) for k in range(matrix.rows))
    return _Kernel(tuple(v for v in vectors if _vanishes(v, rates)), complete)


def _cleared(vector: list[sp.Expr]) -> tuple[sp.Expr, ...]:
    """A multiple of the vector without denominators and with a positive first entry."""
    common = sp.lcm_list([sp.denom(sp.together(c)) for c in vector])
    cleared = [sp.cancel(c * common) for c in vector]
    divisor = sp.gcd_list(cleared)
    first = next(c for c in cleared if c != 0)
    sign = -1 if first.could_extract_minus_sign() else 1
    return tuple(sign * sp.cancel(c / divisor) for c in cleared)


def _vanishes(vector: Sequence[sp.Expr], rates: Mapping[str, sp.Expr]) -> bool:
    """Whether the combination is confirmed to vanish, term by term or by an identity of functions."""
    total = sp.expand(sp.Add(*(c * rate for c, rate in zip(vector, rates.values(), strict=True))))
    return total == 0 or canonical(total).numerator == 0


def _holds(vector: Sequence[sp.Expr], basis: Sequence[Sequence[sp.Expr]]) -> bool:
    """Whether a vector is a combination of others."""
    return bool(basis) and _rank([*basis, vector]) == _rank(basis)


def _beyond(vectors: Sequence[tuple[sp.Expr, ...]], known: Sequence[Sequence[sp.Expr]]) -> list[tuple[sp.Expr, ...]]:
    """The vectors that are not combinations of known ones and of the vectors before them."""
    new: list[tuple[sp.Expr, ...]] = []
    for vector in vectors:
        if not _holds(vector, [*known, *new]):
            new.append(vector)
    return new


def _rank(rows: Sequence[Sequence[sp.Expr]]) -> int:
    return int(DomainMatrix.from_Matrix(sp.Matrix([list(row) for row in rows])).to_field().rank())


# ---------------------------------------------------------------------- energy law
@dataclass(frozen=True, repr=False)
class EnergyLaw(Answer):
    """d/dt tr(H^T L H) for symmetric A: the rate per squared mode amplitude, the forcing by H0, and whether it decays.

    An isolated node is a mode with lam = 1, which the law includes with the energy of its squared entries. Where the
    energy can increase, `witness` is a graph, a state and coefficients at which it does; where that depends on the
    coefficients, the energy decays if `threshold` <= 0. `gradient` is the energy of which the system is the gradient
    flow, if there is one: that energy never increases.
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
        """The law as text: dE/dt, or a bound of it."""
        return self.text

    @property
    def status(self) -> Status:
        """proved where it is decided whether the energy must decay or can increase."""
        return Status.UNDECIDED if self.decays.startswith(f"{Status.UNDECIDED}:") else certainty(self.decays)

    @property
    def reason(self) -> str:
        """Whether the energy decays, with the witness where it can increase."""
        return self.verdict

    @property
    def assumes(self) -> str:
        """The law is for symmetric operators."""
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
        where it can increase. For nonlinear reactions it holds on undirected regular graphs. With one symmetric matrix
        the rate depends on the eigenvalues w of the matrix. The answer also has the energy of a gradient flow.

    Raises:
        NotApplicable: a system of several fields, of second order, with time, noise or further operators.

    >>> import rdgraph as rd
    >>> rd.theory.energy_law(rd.parse("-alpha*L@H")).mode_rate
    -2*alpha*lam**2
    >>> rd.theory.energy_law("A@H@W - alpha*H where W symmetric").decays
    'never increases, on every graph, iff (-alpha - w if w <= 0, otherwise w - alpha) <= 0 for every eigenvalue w of W'
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
    """p and q in lam, the names of their coefficients, and the symmetric matrix whose eigenvalues w occur in them.

    Its eigenvectors decouple the channels, as long as there is no other matrix and no channel coefficient.
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
                f"{letter} mixes channels; declare 'where {letter} symmetric' if it is symmetric"
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
    """A symmetric matrix, and the symbol of its eigenvalues."""

    name: str
    value: str


def _of_matrix(words: str, matrix: _Matrix) -> str:
    """The text of a law in which a symbol stands for the eigenvalues of a matrix."""
    if " iff " in words:
        return f"{words} for every eigenvalue {matrix.value} of {matrix.name}"
    return words.replace("for all coefficients", f"for all coefficients and every {matrix.name}")
