"""Conserved sums of several fields: numbers c_i with sum_i c_i w^T u_i constant, w weights of the nodes.

w^T f_i is brought to one form by the laws of the normalisations (`sum_laws`). The combinations that vanish are the
kernel of the matrix of coefficients of independent functions of the state, over the field of the coefficients of the
system: they are all there are. Where a combination vanishes before it is contracted, every node conserves it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from rdgraph.answers import Answer, Status
from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import TIME, Act, Mix
from rdgraph.language.tree import Kind
from rdgraph.systems.canonical.cancelled_parts import where_defined
from rdgraph.systems.canonical.function_identities import CanonicalForm, canonical
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import normal_forms
from rdgraph.vocabulary.normalisations import records

# ---------------------------------------------------------------------- node sums
# Weighted sums over the nodes: what w^T makes of operators, and the laws that the normalisations obey.
#
# w^T A = w^T takes the outermost A away, w^T L = 0 a term in L = D - A. On undirected graphs A is its own adjoint for
# the weights d of the row normalisation, and for the weights 1 of D - A and of a symmetric A: the sums of u*(A@v) and
# of v*(A@u) are equal.

UNDIRECTED = "the graph is undirected"


@dataclass(frozen=True)
class SumLaw:
    """Weights of a normalisation: `vanishing` says which outermost letter they take away, A or L, empty for none."""

    normalisation: str
    weights: str
    assumes: str
    vanishing: str
    is_adjoint: bool

    def contracted(self, expression: sp.Expr, system: System) -> sp.Expr:
        """The sum over the nodes of a normal form, in one form for sums that are equal.

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
        """g*(word@h) or h*(reversed word@g), whichever comes first; only words of A and L are their own adjoints."""
        if any(w.name not in ("A", "L") for w in atom.word) or atom.inner.has(Act, Mix):
            return others * atom
        moving = [f for f in sp.Mul.make_args(others) if _varies(f, system)]
        fixed, field = sp.Mul(*(f for f in sp.Mul.make_args(others) if f not in moving)), sp.Mul(*moving)
        if str(field) <= str(atom.inner):
            return others * atom
        return fixed * atom.inner * Act(reversed(atom.word), field)

    def is_complete(self, expression: sp.Expr) -> bool:
        """Whether sums with different forms are known to be different: no product of two operators, no nested ones."""
        if not self.is_adjoint:
            return True
        if any(atom.inner.has(Act) for atom in expression.atoms(Act)) or expression.has(Mix):
            return False
        terms = sp.Add.make_args(sp.expand(expression))
        return all(sum(f.has(Act) for f in sp.Mul.make_args(t)) <= 1 and not _is_bent(t) for t in terms)


def _is_bent(term: sp.Expr) -> bool:
    """Whether an operator stands inside a power or a function."""
    return any(f.has(Act) and not isinstance(f, Act) for f in sp.Mul.make_args(term))


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

    With `is_local` every node conserves it by itself, on any graph. `assumes` is what a graph must be like for the
    weights of a normalisation to be these.
    """

    coefficients: tuple[tuple[str, sp.Expr], ...]
    weights: Mapping[str, str]
    is_local: bool = False
    assumes: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The combination, as in u + v."""
        return str(sp.Add(*(c * sp.Symbol(name) for name, c in self.coefficients), evaluate=True))

    def __str__(self) -> str:
        where = "at every node" if self.is_local else "summed with the weights w"
        return f"{self.text} {where}"


@dataclass(frozen=True, repr=False)
class ConservedSums(Answer):
    """A basis of the conserved sums with constant coefficients; the reason says what an empty one means.

    `is_complete` says that there are no others with these weights that are constant on all graphs and for all states.
    """

    sums: tuple[ConservedSum, ...]
    is_complete: bool
    reason: str = ""

    @property
    def value(self) -> tuple[str, ...]:
        """The sums in words."""
        return tuple(map(str, self.sums))

    @property
    def status(self) -> Status:
        """proved for the sums that were found; undecided where there are none, and others are not excluded."""
        return Status.PROVED if self.sums or self.is_complete else Status.UNDECIDED

    @property
    def headline(self) -> str:
        return f"conserved: {', '.join(self.value)}" if self.sums else "nothing is conserved"

    @property
    def exists(self) -> bool:
        return bool(self.sums)

    @property
    def weights(self) -> dict[str, str]:
        """Weights by normalisation, of the sums that hold under it; those of the nodes alone hold under all."""
        found: dict[str, str] = {}
        for one in self.sums:
            for name, weights in one.weights.items():
                found.setdefault(name, weights)
        return found


def conserved_sums(system: System) -> ConservedSums:
    """The linear combinations of the fields whose weighted sum over the nodes is constant in time.

    >>> from rdgraph.systems.parser import parse
    >>> found = conserved_sums(parse("u' = -beta*u*(A@v) - Du*L@u; v' = beta*u*(A@v) - Dv*L@v"))
    >>> print(*found.sums), found.sums[0].weights["row"]
    u + v summed with the weights w
    (None, 'd')
    """
    local = _kernel(system, system.normals)
    found = [_local(system, vector) for vector in local.vectors]
    laws = [(law, _kernel_of(system, law)) for law in sum_laws()]
    known: list[tuple[sp.Expr, ...]] = list(local.vectors)
    for _, kernel in laws:
        for vector in _beyond(kernel.vectors, known):
            known.append(vector)
            found.append(_weighted(system, vector, laws))
    note = "" if found else "no combination of the fields with constant coefficients has a constant weighted sum"
    complete = local.is_complete and all(kernel.is_complete for _, kernel in laws)
    if not complete:
        note = "; ".join(
            [*([note] if note else []), "others may exist: not all functions in f are known to be independent"]
        )
    return ConservedSums(tuple(found), complete, note)


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
    """A sum with the weights of every law under which it is constant; of two laws of a normalisation the first."""
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
    rows += [[sp.Integer(name == own) for own in system.fields] for name in system.noise]
    complete = form.is_independent and not any(rate.has(TIME) for rate in rates.values())
    if not rows:
        return _Kernel(tuple(tuple(sp.eye(len(marks)).row(k)) for k in range(len(marks))), True)
    matrix = DomainMatrix.from_Matrix(sp.Matrix(rows)).to_field().nullspace().to_Matrix()
    vectors = tuple(_cleared(list(matrix.row(k))) for k in range(matrix.rows))
    return _Kernel(tuple(v for v in vectors if _vanishes(v, rates)), complete)


def _cleared(vector: list[sp.Expr]) -> tuple[sp.Expr, ...]:
    """Without denominators, and with a positive first number."""
    common = sp.lcm_list([sp.denom(sp.together(c)) for c in vector])
    cleared = [sp.cancel(c * common) for c in vector]
    divisor = sp.gcd_list(cleared)
    first = next(c for c in cleared if c != 0)
    sign = -1 if first.could_extract_minus_sign() else 1
    return tuple(sign * sp.cancel(c / divisor) for c in cleared)


def _vanishes(vector: Sequence[sp.Expr], rates: Mapping[str, sp.Expr]) -> bool:
    """The combination put in once more: it cancels term by term, or by an identity of functions."""
    total = sp.expand(sp.Add(*(c * rate for c, rate in zip(vector, rates.values(), strict=True))))
    return total == 0 or canonical(total).numerator == 0


def _holds(vector: Sequence[sp.Expr], basis: Sequence[Sequence[sp.Expr]]) -> bool:
    """Whether a vector is a combination of others."""
    return bool(basis) and _rank([*basis, vector]) == _rank(basis)


def _beyond(vectors: Sequence[tuple[sp.Expr, ...]], known: Sequence[Sequence[sp.Expr]]) -> list[tuple[sp.Expr, ...]]:
    """Vectors that are no combinations of known ones and of those before them."""
    found: list[tuple[sp.Expr, ...]] = []
    for vector in vectors:
        if not _holds(vector, [*known, *found]):
            found.append(vector)
    return found


def _rank(rows: Sequence[Sequence[sp.Expr]]) -> int:
    return int(DomainMatrix.from_Matrix(sp.Matrix([list(row) for row in rows])).to_field().rank())
