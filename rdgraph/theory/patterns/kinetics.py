"""`Kinetics`: a system on states that are equal in all nodes, and its linearisation there.

On a state u that is constant over the nodes every operator word acts as a number (A as 1, L as 0), if the graph keeps
states constant. A small deviation that is an eigenvector of L with eigenvalue lam evolves by the matrix P(lam), in
which A is 1 - lam; terms such as L@(u*v) or tanh(A@u) are linearised with the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.normal_form import Act, Mix, State
from rdgraph.language.tree import Kind, names_in
from rdgraph.reals.branches import STEPS
from rdgraph.reals.condition_words import condition_in_words
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import holds
from rdgraph.reals.regions import defining_conditions
from rdgraph.systems.canonical.cancelled_parts import Nought, where_defined
from rdgraph.systems.system import System, coefficient_domain
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.wording import listed

EVERY_GRAPH = "every graph"
WITH_IDENTITY = "every graph with L = I - A, that is, any normalisation but none"
KEEPS_CONSTANTS = {
    frozenset(): EVERY_GRAPH,
    frozenset(
        "L"
    ): "L@1 = 0: normalisation none or row, or a regular graph; weights >= 0, and with row no node without "
    "incoming edges",
    frozenset("A"): "A@1 = 1: normalisation row, or a regular graph; weights >= 0 and no node without incoming edges",
}


#: Assumption under which statements about real lam hold for the modes of a graph; directed graphs have complex lam.
REAL_MODES = "L has real eigenvalues, as on undirected graphs"


@dataclass(frozen=True)
class Actions:
    """The action of operators: numbers on constant states (`sums`), symbols on deviations from them (`modes`)."""

    sums: Mapping[str, sp.Expr]
    modes: Mapping[str, sp.Expr]


#: A is 1 and L is 0 on constant states; on an eigenvector of L they are 1 - lam and lam.
ON_EIGENVECTORS = Actions({"A": sp.S.One, "L": sp.S.Zero}, {"A": 1 - lam, "L": lam})


@dataclass(frozen=True)
class Kinetics:
    """Rates f(u) of the fields at a constant state u, and the linearisation P(lam) there, in the same symbols.

    `assumes` says which graphs keep states constant; with `keeps_zero` every graph keeps the state 0. The equation
    has a value at a constant state where all conditions in `defined` on the state and the coefficients hold.
    """

    fields: tuple[str, ...]
    letters: tuple[sp.Symbol, ...]
    rates: tuple[sp.Expr, ...]
    matrix: sp.ImmutableMatrix
    domain: Domain = field(default_factory=Domain)
    assumes: str = EVERY_GRAPH
    keeps_zero: bool = True
    #: what the linearisation at zero, or of a linear system, assumes of the graph
    modes_assume: str = EVERY_GRAPH
    #: coefficients that may have values although they do not occur, such as those of white noise
    unused: frozenset[str] = frozenset()
    #: symbols in the matrix for operators or their eigenvalues
    mode_letters: tuple[sp.Symbol, ...] = (lam,)
    defined: tuple[sp.Basic, ...] = ()

    def __post_init__(self) -> None:
        size = len(self.fields)
        if not size or len(self.letters) != size or len(self.rates) != size or self.matrix.shape != (size, size):
            raise InvalidArgument(
                f"expected one symbol, one rate and one row of the matrix for each of {size} fields, got "
                f"{len(self.letters)} symbols, {len(self.rates)} rates and a matrix {self.matrix.shape}"
            )

    @property
    def coefficients(self) -> dict[str, sp.Symbol]:
        """The symbols that are neither states nor modes, by name."""
        used = set().union(*(rate.free_symbols for rate in self.rates), self.matrix.free_symbols)
        return {x.name: x for x in sorted(used - {*self.letters, *self.mode_letters}, key=str)}

    @property
    def is_linear(self) -> bool:
        """Whether the linearisation is the same at every state."""
        return not self.matrix.has(sp.nan) and not self.matrix.free_symbols & set(self.letters)

    def on_real_modes(self, assumes: str) -> str:
        """The assumptions of an answer about real lam: those of a state, and real eigenvalues."""
        return f"{assumes}; {REAL_MODES}" if self.matrix.has(lam) else assumes

    @property
    def jacobian(self) -> sp.ImmutableMatrix:
        """The linearisation without transport, P(0)."""
        return self.matrix.subs(lam, 0)

    @property
    def transport(self) -> sp.ImmutableMatrix:
        """The contribution of the graph to the linearisation, P(lam) - P(0)."""
        return (self.matrix - self.jacobian).applyfunc(sp.expand)

    def at(self, values: Mapping[str, Any] | None) -> Kinetics:
        """The kinetics with numbers for coefficients; decimals are taken as exact."""
        if not values:
            return self
        known = self.coefficients
        assumed = {x.name for c in self.domain.conditions for x in c.free_symbols}
        unknown = set(values) - set(known) - assumed - self.unused
        if unknown:
            raise InvalidArgument(
                f"expected coefficients among {listed(sorted(known)) or 'none'}, got {listed(sorted(unknown))}"
            )
        numbers = admissible_numbers(known, self.domain, values)
        conditions = [c.xreplace(numbers) for c in self.domain.conditions]
        return replace(
            self,
            rates=tuple(sp.sympify(rate.xreplace(numbers)) for rate in self.rates),
            matrix=self.matrix.xreplace(numbers),
            domain=Domain(tuple(c for c in conditions if c.free_symbols)),
            defined=tuple(c.xreplace(numbers) for c in self.defined),
        )


def admissible_numbers(
    letters: Mapping[str, sp.Symbol], domain: Domain, values: Mapping[str, Any]
) -> dict[sp.Symbol, sp.Expr]:
    """The values of letters by symbol, as exact numbers that keep the assumed signs and relations."""
    numbers = {letters[name]: _checked(letters[name], value) for name, value in values.items() if name in letters}
    for condition in domain.conditions:
        at_values = condition.xreplace(numbers)
        if at_values != condition and not at_values.free_symbols and holds(at_values) is False:
            given = ", ".join(f"{x} = {value}" for x, value in numbers.items() if condition.has(x))
            raise InvalidArgument(f"the values violate the assumption {condition_in_words(public(condition))}: {given}")
    return numbers


def _checked(letter: sp.Symbol, value: Any) -> sp.Expr:
    number = exact_number(value, f"value of {letter.name}")
    if number.free_symbols:
        raise InvalidArgument(f"expected a number for {letter.name}, got {number}")
    signs = {"positive": sp.Gt, "negative": sp.Lt, "nonnegative": sp.Ge, "nonpositive": sp.Le}
    for word, relation in signs.items():
        if getattr(letter, f"is_{word}") and holds(relation(number, 0, evaluate=False)) is False:
            raise InvalidArgument(
                f"{letter.name} is assumed to be {word}, got {number}; declare another sign, as in "
                f"'where {letter.name} real'"
            )
    return number


# ---------------------------------------------------------------------- from systems and normal forms
def system_kinetics(system: System, actions: Actions = ON_EIGENVECTORS) -> Kinetics:
    """The kinetics of a system without its white noise; starts are treated like coefficients.

    `actions` describes the operators of the system on constant states and on deviations.

    Raises NotApplicable where no state stays equal in all nodes, or time occurs.
    """
    system.require_autonomous("steady states")
    written = {n.name for tree in system.flow.values() for n in names_in(tree)}
    letters = {name: system.algebra.symbols[name] for name in system.fields}
    operators = frozenset(written & {"A", "L"})
    # the states themselves say where they are defined
    domain = coefficient_domain(system.assumptions, system.algebra)
    kinetics = kinetics_of(system.normals, letters, system.algebra.kinds, domain, operators, actions)
    parts = [part for tree in system.flow.values() for part in system.algebra.normal_and_parts(tree)[1]]
    cancelled = [c for part in parts for c in defining_conditions(part) if not c.has(State, Act, Mix)]
    kinetics = replace(kinetics, defined=tuple(dict.fromkeys([*kinetics.defined, *cancelled])))
    return replace(kinetics, unused=frozenset(system.coefficients) - set(kinetics.coefficients))


def kinetics_of(
    normals: Mapping[str, sp.Expr],
    letters: Mapping[str, sp.Symbol],
    kinds: Mapping[str, Kind],
    domain: Domain,
    operators: frozenset[str],
    actions: Actions = ON_EIGENVECTORS,
) -> Kinetics:
    """The kinetics of right-hand sides in normal form, one for each field.

    Args:
        normals: right-hand sides by field.
        letters: the symbols of the fields.
        kinds: the kinds of all other symbols.
        domain: the admissible coefficients.
        operators: which of L and A occur in the equations.
        actions: the operators on constant states and on deviations from them.

    Raises:
        NotApplicable: no state stays constant, since coefficients differ between nodes or matrices mix channels.
    """
    for normal in normals.values():
        _check(normal, kinds, actions)
    symbols = tuple(letters[name] for name in normals)
    defined = _defined(normals.values(), actions)
    normals = {name: where_defined(normal) for name, normal in normals.items()}
    rates = tuple(sp.expand(constant_value(normal, actions)) for normal in normals.values())
    rows = [[tidy_in_lam(slope(normal, x, actions)) for x in symbols] for normal in normals.values()]
    assumes = KEEPS_CONSTANTS[frozenset("A") if "A" in operators else operators & frozenset("L")]
    zero = dict.fromkeys(symbols, sp.S.Zero)
    inner = {act.inner for normal in normals.values() for act in normal.atoms(Act)}
    keeps_zero = all(constant_value(part, actions).xreplace(zero) == 0 for part in inner)
    modes_assume = WITH_IDENTITY if "A" in operators else EVERY_GRAPH
    matrix = sp.ImmutableMatrix(rows)
    modes = tuple(sorted(set().union(*(action.free_symbols for action in actions.modes.values())), key=str))
    return Kinetics(
        tuple(normals), symbols, rates, matrix, domain, assumes, keeps_zero, modes_assume, mode_letters=modes,
        defined=defined,
    )  # fmt: skip


def _defined(normals: Iterable[sp.Expr], actions: Actions) -> tuple[sp.Basic, ...]:
    """The conditions under which right-hand sides have a value at a constant state."""
    parts = [part for n in normals for part in (where_defined(n), *(x.args[0] for x in n.atoms(Nought)))]
    conditions = [c for part in parts for c in defining_conditions(part)]
    return tuple(
        dict.fromkeys(c.func(*(constant_value(x, actions) for x in c.args), evaluate=False) for c in conditions)
    )


def _check(normal: sp.Expr, kinds: Mapping[str, Kind], actions: Actions) -> None:
    if normal.has(Mix):
        raise NotApplicable("a matrix mixes channels, so that states equal in all nodes do not have one rate per field")
    other = {w.name for act in normal.atoms(Act) for w in act.word} - set(actions.modes)
    if other:
        raise NotApplicable(f"{', '.join(sorted(other))} need not keep states constant")
    nodewise = sorted(x.name for x in normal.free_symbols if kinds.get(x.name) is Kind.NODE or x.name == "M")
    if nodewise:
        raise NotApplicable(f"no state stays equal in all nodes: {', '.join(nodewise)} differs between them")


def constant_value(normal: sp.Expr, actions: Actions = ON_EIGENVECTORS) -> sp.Expr:
    """A normal form on a state that is equal in all nodes, where operators are numbers.

    >>> A, u = sp.Symbol("A"), sp.Symbol("u", real=True)
    >>> constant_value(Act((A,), u**2) - u)
    u**2 - u
    """
    flat = {act: _on_constants(act, actions) * constant_value(act.inner, actions) for act in _outermost(normal)}
    return normal.xreplace(flat)


def slope(normal: sp.Expr, state: sp.Symbol, actions: Actions = ON_EIGENVECTORS) -> sp.Expr:
    """The derivative of a normal form at a constant state in the direction of an eigenvector of L in one field.

    For operators that do not commute it is the derivative in every direction, as a polynomial in the operators. It is
    nan where no constant state has one, as for abs(L@H), which has its kink at all of them.

    >>> A, u = sp.Symbol("A"), sp.Symbol("u", real=True)
    >>> slope(Act((A,), u**2) - u, u)
    2*u*(1 - lam) - 1
    """
    acts = _outermost(normal)
    places = {act: sp.Dummy(f"act{i}", real=True) for i, act in enumerate(acts)}
    flat = normal.xreplace(places)
    total = sp.diff(flat, state)
    for act, symbol in places.items():
        total += sp.diff(flat, symbol) * _factor(act, actions) * slope(act.inner, state, actions)
    values = {
        symbol: _on_constants(act, actions) * constant_value(act.inner, actions) for act, symbol in places.items()
    }
    return sp.nan if _jumps(total, values) else sp.sympify(total.xreplace(values))


def _jumps(slope: sp.Expr, values: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether a slope jumps at every constant state, as that of abs(L@H) does."""
    for step in slope.atoms(*STEPS):
        if step.free_symbols & set(values) and sp.expand(step.args[0].xreplace(dict(values))) == 0:
            mark = sp.Dummy("step", real=True)
            weight = sp.diff(slope.xreplace({step: mark}), mark)
            if sp.expand(weight.xreplace(dict(values))) != 0:
                return True
    return False


def _outermost(normal: sp.Expr) -> list[Act]:
    """The operator words that are not inside others."""
    if isinstance(normal, Act):
        return [normal]
    return list(dict.fromkeys(act for part in normal.args for act in _outermost(part)))


def _on_constants(act: Act, actions: Actions) -> sp.Expr:
    return sp.Mul(*(actions.sums[w.name] for w in act.word))


def _factor(act: Act, actions: Actions) -> sp.Expr:
    return sp.Mul(*(actions.modes[w.name] for w in act.word))


def tidy_in_lam(entry: sp.Expr) -> sp.Expr:
    """A polynomial in lam, collected by powers of lam."""
    expanded = sp.expand(entry)
    return sp.collect(expanded, lam) if expanded.has(lam) else expanded


def from_reaction(
    fields: Sequence[str], reaction: Sequence[sp.Expr], diffusion: Sequence[Sequence[Any]], domain: Domain | None = None
) -> Kinetics:
    """u' = reaction(u) - diffusion @ (L u), the kinetics of reaction-diffusion in its usual form.

    >>> u = sp.Symbol("u", real=True)
    >>> from_reaction(["u"], [u - u**3], [[2]]).matrix
    Matrix([[-2*lam - 3*u**2 + 1]])
    """
    letters = tuple(sp.Symbol(name, real=True) for name in fields)
    jacobian = sp.Matrix([[sp.diff(f, x) for x in letters] for f in reaction])
    matrix = (jacobian - lam * sp.Matrix(diffusion)).applyfunc(tidy_in_lam)
    assumes = KEEPS_CONSTANTS[frozenset("L")]
    return Kinetics(
        tuple(fields), letters, tuple(reaction), sp.ImmutableMatrix(matrix), domain or Domain(), assumes,
        defined=tuple(dict.fromkeys(c for rate in reaction for c in defining_conditions(rate))),
    )  # fmt: skip
