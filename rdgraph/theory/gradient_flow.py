"""Gradient flows: f = -grad U in <X, Y> = tr(X^T Y), so that dU/dt = -|f|^2 and U never increases, A symmetric.

A linear term is N H C, N a word of A and node coefficients, C a word of matrices and channel coefficients; its adjoint
is N^T H C^T. The linear part is the gradient of 1/2 <H, f> exactly where it is self-adjoint: with A and the matrices
symmetric, where every word comes with its reverse and the same coefficient. What does not depend on H is the gradient
of <H, f>, and a function r of single entries is the gradient of sum R(h), R' = r. GRAFF (Di Giovanni et al. 2022) is
such a flow: H' = A H W - H Omega + beta H0 with W and Omega symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import Act, H, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import attempt
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.systems.coupling import degree
from rdgraph.systems.system import System

#: The factors of a word from the left: symbols of operators and matrices, expressions of other coefficients.
Word = tuple[sp.Expr, ...]
#: States at which a primitive has to be a real number.
STATES = tuple(map(sp.Rational, ("-5/2", "-1/3", "1/7", "2")))
#: Seconds for one primitive.
SECONDS = 1.0


@dataclass(frozen=True, repr=False)
class GradientFlow(Answer):
    """U = -1/2 <H, linear> - <H, forcing> - sum potential, or why f is the gradient of no such energy.

    Attributes:
        energy: U as text, None where there is none.
        reason: why there is none.
        linear: the self-adjoint part of f, a normal form.
        forcing: the terms that do not depend on H.
        potential: R(H), entry by entry; None where R' = r has no closed form, and the energy names the integral.
    """

    energy: str | None
    reason: str = ""
    linear: sp.Expr = sp.S.Zero
    forcing: sp.Expr = sp.S.Zero
    potential: sp.Expr | None = sp.S.Zero

    @property
    def value(self) -> str | None:
        """The energy as text."""
        return self.energy

    @property
    def status(self) -> Status:
        """proved where an energy was found, else undecided."""
        return Status.UNDECIDED if self.energy is None else Status.PROVED

    def __str__(self) -> str:
        if self.energy is None:
            return f"no gradient flow was found: {self.reason}"
        return f"gradient flow of {self.energy}, which never increases: dU/dt = -|f(H)|^2"


def gradient_flow(system: System) -> GradientFlow:
    """The energy of which f is the negative gradient, for symmetric A and one field.

    >>> from rdgraph.systems.parser import parse
    >>> print(gradient_flow(parse("A@H@W - omega*H where W symmetric")).energy)
    U = 1/2 <H, H*omega - (A@H)@W>
    >>> gradient_flow(parse("A@H@W - omega*H")).reason
    'the linear term (A@H)@W is self-adjoint only if W is symmetric'
    >>> print(gradient_flow(parse("-alpha*L@H + beta*H - beta*H**3 + gamma*H0")).energy)
    U = 1/2 <H, H*alpha - H*beta - alpha*A@H> - <H, H0*gamma> + sum H**4*beta/4
    """
    linear, forcing, reaction = [], [], []
    for term in sp.Add.make_args(system.normal):
        order = degree(term, {H})
        if isinstance(term, Nought):
            return GradientFlow(None, term.reason)
        if order == 0:
            forcing.append(term)
        elif order == 1 and not any(atom.has(H) for atom in term.atoms(sp.Function)):
            linear.append(term)
        elif any(atom.has(H) for atom in term.atoms(Act, Mix)):
            return GradientFlow(None, f"the term {public(term)} is nonlinear and couples nodes or channels")
        else:
            reaction.append(term)
    if problem := _asymmetry(linear, system):
        return GradientFlow(None, problem)
    parts = sp.Add(*linear), sp.Add(*forcing), _primitive(sp.Add(*reaction))
    return GradientFlow(_energy(*parts, sp.Add(*reaction)), "", *parts)


def _energy(linear: sp.Expr, forcing: sp.Expr, potential: sp.Expr | None, reaction: sp.Expr) -> str:
    texts = [f"1/2 <H, {public(-linear)}>"] if linear != 0 else []
    texts += [f"- <H, {public(forcing)}>"] if forcing != 0 else []
    if potential is None:
        texts.append(f"- sum of the integrals of {public(reaction)} from 0 to H")
    elif potential != 0:
        is_negated = potential.could_extract_minus_sign()
        shown = public(-potential if is_negated else potential)
        texts.append(f"{'+' if is_negated else '-'} sum {f'({shown})' if shown.is_Add else shown}")
    return f"U = {' '.join(texts).removeprefix('+ ')}" if texts else "U = 0"


def _primitive(reaction: sp.Expr) -> sp.Expr | None:
    """R with R' = r in closed form, verified by differentiation; None where none was found."""
    if reaction == 0:
        return sp.S.Zero
    try:
        primitive = sp.expand(attempt(SECONDS, sp.integrate, reaction, H))
    except (Undecided, NotImplementedError, ValueError, TypeError):
        return None
    if primitive.has(sp.Integral, sp.Piecewise, sp.I) or not is_zero(sp.expand(sp.diff(primitive, H) - reaction)):
        return None
    return primitive if all(_is_real(primitive, state) for state in STATES) else None


def _is_real(potential: sp.Expr, state: sp.Rational) -> bool:
    """Whether a primitive is a real number at a state with all coefficients 1, unlike log(x) where x < 0."""
    value = potential.xreplace({H: state}).xreplace(dict.fromkeys(potential.free_symbols - {H}, sp.S.One))
    try:
        return bool(sp.im(sp.N(value, 15)) == 0)
    except TypeError:
        return False


def _asymmetry(linear: list[sp.Expr], system: System) -> str:
    """Why the sum of the linear terms is not self-adjoint; empty where it is."""
    total: dict[tuple[Word, Word], sp.Expr] = {}
    shown: dict[tuple[Word, Word], sp.Expr] = {}
    for term in linear:
        number, rows, columns = _words(term, system)
        key = rows, columns
        total[key] = total.get(key, sp.S.Zero) + number
        shown[key] = term
    for (rows, columns), number in total.items():
        free = [x for x in columns if _is_matrix(x, system) and x.name not in system.assumptions.symmetric]
        if free:
            names = " and ".join(dict.fromkeys(f"{x.name} is symmetric" for x in free))
            return f"the linear term {public(shown[rows, columns])} is self-adjoint only if {names}"
        adjoint = total.get((rows[::-1], columns[::-1]), sp.S.Zero)
        is_mixed = any(x.has(State) for x in rows) and any(_is_matrix(x, system) for x in columns)
        if is_mixed or not is_zero(sp.expand(number - adjoint)):  # a field such as H0 does not commute with matrices
            return f"the linear term {public(shown[rows, columns])} is not self-adjoint"
    return ""


def _words(term: sp.Expr, system: System) -> tuple[sp.Expr, Word, Word]:
    """A linear term as number * N H C: the words N and C, with neighbouring coefficients multiplied."""
    number: sp.Expr = sp.S.One
    rows: list[sp.Expr] = []
    columns: list[sp.Expr] = []
    kinds = system.algebra.kinds
    core = term
    while core != H:
        (moving,) = [x for x in sp.Mul.make_args(core) if x.has(H)]
        for factor in (x for x in sp.Mul.make_args(core) if not x.has(H)):
            kinds_of_factor = {kinds.get(x.name, Kind.FIELD) for x in factor.free_symbols}
            if kinds_of_factor <= {Kind.SCALAR}:
                number *= factor
            elif kinds_of_factor <= {Kind.SCALAR, Kind.CHANNEL} and not factor.has(State, Act, Mix):
                columns.insert(0, factor)
            else:
                rows.append(factor)
        if isinstance(moving, Act):
            rows += moving.word
        elif isinstance(moving, Mix):
            columns[:0] = moving.word
        core = moving.inner if isinstance(moving, Act | Mix) else moving
    return number, _joined(rows, system), _joined(columns, system)


def _joined(letters: list[sp.Expr], system: System) -> Word:
    """A word in which neighbouring coefficients, which commute, are multiplied."""
    word: list[sp.Expr] = []
    for letter in letters:
        is_plain = not _is_matrix(letter, system) and not _is_operator(letter, system)
        before = word[-1] if word else None
        if is_plain and before is not None and not _is_matrix(before, system) and not _is_operator(before, system):
            word[-1] = before * letter
        else:
            word.append(letter)
    return tuple(word)


def _is_matrix(letter: sp.Expr, system: System) -> bool:
    return isinstance(letter, sp.Symbol) and system.algebra.kinds.get(letter.name) is Kind.MATRIX


def _is_operator(letter: sp.Expr, system: System) -> bool:
    return isinstance(letter, sp.Symbol) and system.algebra.kinds.get(letter.name, Kind.OPERATOR) is Kind.OPERATOR
