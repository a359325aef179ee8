"""`MemberEquations`: members of one batch with different equations, as numbers and shared terms.

The coefficients of all members are numbers (M, slots, 1 or d): the first coefficient of a member is in the first slot.
The polynomial of A in an equation is then a row of a table, and the products with A are shared by all members; every
other term is evaluated once for all members that have it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.torch_source import coefficient_code, evaluated
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.linear_part import Linear
from rdgraph.run.solvers.operator_filters import operator_base
from rdgraph.run.solvers.polynomial_flow import apply_polynomial
from rdgraph.systems.equation_terms import LETTER, terms_of_system
from rdgraph.systems.system import System

if TYPE_CHECKING:
    from rdgraph.systems.system import System


# ---------------------------------------------------------------------- coefficient tables
# `CoefficientTable`: expressions in the coefficients of many equations, evaluated for all of them at once.

#: The name of a slot in the text of an expression.
_SLOT = "slot_{}"
#: Expressions of a member, and the names of its coefficients by slot.
Row = tuple[Sequence[sp.Expr], Sequence[str]]


@dataclass(frozen=True, eq=False)
class _Curved:
    """An expression that is not linear in the coefficients: it occurs in `members` (m,), at `entries` (m,) of the
    flattened table, with `factors` (m, 1)."""

    code: str
    places: tuple[int, ...]
    members: Tensor
    entries: Tensor
    factors: Tensor


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Expressions (M, C) in coefficients (M, slots, 1 or d): constants, multiples of coefficients, and all others.

    >>> a, b = sp.symbols("a b")
    >>> table = CoefficientTable.of([([2 * a - 1, b], ("a", "b")), ([a, a**2], ("a",))], slots=2)
    >>> table.values(torch.tensor([[3.0, 4.0], [5.0, 0.0]])[..., None])[..., 0]
    tensor([[ 5.,  4.],
            [ 5., 25.]], dtype=torch.float64)
    """

    constants: Tensor
    weights: Tensor
    curved: tuple[_Curved, ...]

    @classmethod
    def of(cls, rows: Sequence[Row], slots: int, device: Any = None) -> CoefficientTable:
        """The table of the members' expressions; rows that are the same object are read once."""
        count = len(rows[0][0])
        known: dict[tuple[int, int], tuple[list[list[float]], list[tuple[int, str, tuple[int, ...], float]]]] = {}
        numbers, further = [], dict[tuple[str, tuple[int, ...]], list[tuple[int, int, float]]]()
        for member, (expressions, letters) in enumerate(rows):
            key = id(expressions), id(letters)
            if key not in known:
                known[key] = _read(expressions, letters, slots)
            linear_row, curved = known[key]
            numbers.append(linear_row)
            for column, code, places, factor in curved:
                further.setdefault((code, places), []).append((member, member * count + column, factor))
        table = torch.tensor(numbers, dtype=torch.float64, device=device).reshape(len(rows), count, slots + 1)
        curved_terms = []
        for (code, places), occurrences in sorted(further.items()):
            members, entries, factors = zip(*occurrences, strict=True)
            curved_terms.append(
                _Curved(
                    code, places, torch.tensor(members, device=device), torch.tensor(entries, device=device),
                    torch.tensor(factors, dtype=torch.float64, device=device)[:, None],
                )
            )  # fmt: skip
        return cls(table[:, :, :1].contiguous(), table[:, :, 1:].contiguous(), tuple(curved_terms))

    def values(self, letters: Tensor) -> Tensor:
        """The values (M, C, 1 or d), float64."""
        wide = letters.double()
        values = self.constants + self.weights @ wide
        for one in self.curved:
            member_letters = wide.index_select(0, one.members)
            value = evaluated(one.code, {_SLOT.format(slot): member_letters[:, slot] for slot in one.places})
            flat = values.flatten(0, 1).index_add(0, one.entries, one.factors * value)
            values = flat.view_as(values)
        return values


def _read(
    expressions: Sequence[sp.Expr], letters: Sequence[str], slots: int
) -> tuple[list[list[float]], list[tuple[int, str, tuple[int, ...], float]]]:
    """One row for every expression, constant first; other terms as column, code, slots, factor."""
    places = {name: slot for slot, name in enumerate(letters)}
    table, curved = [[0.0] * (slots + 1) for _ in expressions], []
    for column, expression in enumerate(expressions):
        for term in sp.Add.make_args(sp.expand(expression)):
            number, rest = term.as_coeff_Mul()
            if not rest.free_symbols:
                table[column][0] += float(term)
            elif isinstance(rest, sp.Symbol):
                table[column][1 + places[rest.name]] += float(number)
            else:
                used = {symbol: places[symbol.name] for symbol in rest.free_symbols}
                renamed = {symbol: sp.Symbol(_SLOT.format(slot), real=True) for symbol, slot in used.items()}
                code = coefficient_code(rest.xreplace(renamed))
                curved.append((column, code, tuple(sorted(used.values())), float(number)))
    return table, curved


# ---------------------------------------------------------------------- member equations
#: The powers of A before H, and those before H0, with their coefficients.
Powers = tuple[Mapping[int, sp.Expr], Mapping[int, sp.Expr]]


@dataclass(frozen=True, eq=False)
class PolynomialTable:
    """Polynomials of A before H and before H0, member by member: `orders` are their numbers of coefficients."""

    table: CoefficientTable
    orders: tuple[int, int]

    @classmethod
    def of(cls, each: Sequence[System], powers: Callable[[System], Powers], slots: int, device: Any) -> PolynomialTable:
        """The polynomials of the members' equations."""
        known: dict[int, list[sp.Expr]] = {}
        polynomials = {id(system): powers(system) for system in each}
        orders = tuple(max(max(pair[part], default=-1) + 1 for pair in polynomials.values()) for part in (0, 1))
        first, second = max(1, orders[0]), orders[1]
        for system in each:
            if id(system) not in known:
                generator, source = polynomials[id(system)]
                row = [generator.get(k, sp.S.Zero) for k in range(first)]
                known[id(system)] = row + [source.get(k, sp.S.Zero) for k in range(second)]
        letters = {id(system): tuple(valued_letters(system)) for system in each}
        rows = [(known[id(system)], letters[id(system)]) for system in each]
        return cls(CoefficientTable.of(rows, slots, device), (first, second))

    def values(self, letters: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The coefficients before H and before H0, each (M, 1, 1 or d), float64."""
        values = self.table.values(letters)[:, :, None].unbind(1)
        return values[: self.orders[0]], values[self.orders[0] :]


@dataclass(frozen=True, eq=False)
class TermGroup:
    """A term that is no polynomial of A, and its `members` (m,): `slots` (m, coefficients) are the slots of its
    coefficients, `signs` (m,) its factors."""

    system: System
    members: Tensor
    slots: Tensor
    signs: Tensor


@dataclass(frozen=True, eq=False)
class Spreading:
    """From states (M, n, d) to those of the members of all groups (N, n, d), one group after the other, and back.

    `members` (N,) says the member of each; `passes` are pairs (members, positions among the N) in which every member
    occurs at most once, so that sums have one order.
    """

    members: Tensor
    passes: tuple[tuple[Tensor, Tensor], ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]], device: Any) -> Spreading:
        """The spreading for groups of members."""
        members = [k for group in groups for k in group]
        seen: dict[int, int] = {}
        passes: list[tuple[list[int], list[int]]] = []
        for position, member in enumerate(members):
            turn = seen[member] = seen.get(member, -1) + 1
            if turn == len(passes):
                passes.append(([], []))
            passes[turn][0].append(member)
            passes[turn][1].append(position)
        whole = torch.tensor(members, dtype=torch.int64, device=device)
        pairs = [torch.tensor(pair, dtype=torch.int64, device=device) for pair in passes]
        return cls(whole, tuple((a, b) for a, b in pairs), tuple(map(len, groups)))

    def spread(self, x: Tensor) -> Tensor:
        """The states of the members of all groups."""
        out: Tensor = _Spread.apply(self, x)  # type: ignore[no-untyped-call]
        return out

    def collect(self, parts: Tensor, onto: Tensor) -> Tensor:
        """Add the values at the members of all groups onto those of the members."""
        out: Tensor = _Collect.apply(self, parts, onto)  # type: ignore[no-untyped-call]
        return out


class _Spread(torch.autograd.Function):
    """x -> x[members]; its gradient is summed in the order of the passes."""

    @staticmethod
    def forward(ctx: Any, spreading: Spreading, x: Tensor) -> Tensor:
        ctx.spreading, ctx.members = spreading, len(x)
        return x.index_select(0, spreading.members)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor]:
        zero = g.new_zeros((ctx.members, *g.shape[1:]))
        return None, _Collect.apply(ctx.spreading, g, zero)  # type: ignore[no-untyped-call]


class _Collect(torch.autograd.Function):
    """parts, onto -> onto plus the parts of every member, in the order of the passes."""

    @staticmethod
    def forward(ctx: Any, spreading: Spreading, parts: Tensor, onto: Tensor) -> Tensor:
        ctx.spreading = spreading
        out = onto
        for number, (whose, which) in enumerate(spreading.passes):
            chosen = parts.index_select(0, which)
            out = out.index_add(0, whose, chosen) if number == 0 else out.index_add_(0, whose, chosen)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor, Tensor]:
        return None, _Spread.apply(ctx.spreading, g), g  # type: ignore[no-untyped-call]


@dataclass(frozen=True, eq=False)
class MemberEquations:
    """The equations of M members, on a device.

    `flow` has p and s of H' = p(A)H + s(A)H0 where all equations are of this form, or of H' = p(A)H and a forcing of
    any kind (`is_forced`); None where some are not linear. `polynomials` and `groups` are what their fields are
    computed from: polynomials of A, and other terms with their `signs` (N, 1, 1), one group after the other.
    """

    each: tuple[System, ...]
    flow: PolynomialTable | None
    is_forced: bool
    polynomials: PolynomialTable | None
    groups: tuple[TermGroup, ...]
    spreading: Spreading
    signs: Tensor

    @classmethod
    def of(
        cls, each: Sequence[System], slots: int, *, is_linear: bool, is_forced: bool, device: Any = None
    ) -> MemberEquations:
        """Equations of members with up to `slots` coefficients; `is_linear` and `is_forced` hold for all of them."""
        flow = PolynomialTable.of(each, _of_structure, slots, device) if is_linear else None
        if is_linear and not is_forced:  # their fields are never evaluated
            return cls(tuple(each), flow, False, None, (), Spreading.of((), device), torch.ones(0, device=device))
        polynomials = PolynomialTable.of(each, _of_terms, slots, device)
        groups = _groups(each, device)
        spreading = Spreading.of([group.members.tolist() for group in groups], device)
        signs = [group.signs for group in groups] or [torch.ones(0, device=device)]
        return cls(tuple(each), flow, is_forced, polynomials, tuple(groups), spreading, torch.cat(signs)[:, None, None])


def _of_structure(system: System) -> Powers:
    """Both polynomials of a linear equation."""
    structure = system.structure
    is_filter = structure.constant == 0 and structure.coupled == 0
    return structure.generator, structure.source if is_filter else {}


def _of_terms(system: System) -> Powers:
    """Both polynomials of those terms of an equation that have some."""
    totals: tuple[dict[int, sp.Expr], dict[int, sp.Expr]] = {}, {}
    for placed in terms_of_system(system):
        if not placed.term.is_linear:
            continue
        names = {LETTER.format(k): sp.Symbol(letter, real=True) for k, letter in enumerate(placed.letters, 1)}
        for total, powers in zip(totals, (placed.term.generator, placed.term.source), strict=True):
            for power, value in powers.items():
                named = value.xreplace({symbol: names[symbol.name] for symbol in value.free_symbols})
                total[power] = total.get(power, sp.S.Zero) + placed.sign * named
    return totals


def _groups(each: Sequence[System], device: Any) -> list[TermGroup]:
    """The other terms, in the order of their texts, so that the order of the members does not matter."""
    occurrences: dict[System, list[tuple[int, int, list[int]]]] = {}
    for member, system in enumerate(each):
        places = {name: k for k, name in enumerate(valued_letters(system))}
        for placed in terms_of_system(system):
            if not placed.term.is_linear:
                letters = [places[name] for name in placed.letters]
                occurrences.setdefault(placed.term.system, []).append((member, placed.sign, letters))
    groups = []
    for system, rows in sorted(occurrences.items(), key=lambda item: item[0].text):
        members, signs, slots = (torch.tensor(column, device=device) for column in zip(*rows, strict=True))
        groups.append(TermGroup(system, members, slots.long().reshape(len(rows), -1), signs))
    return groups


# ---------------------------------------------------------------------- member fields
# `MemberField`: dH/dt = f(H) of members with different equations.


class MemberField:
    """f(H) = p(A)H + s(A)H0 + other terms, with different polynomials and terms for every member; H is (M, n, d).

    Args:
        equations: Those of the members.
        operator: A, normalised, with shared weights or those of every member.
        letters: The values of the members' coefficients, (M, slots, 1 or d).
        channels: Those of a state.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(3).operator("row")
    >>> each = [rd.parse("-alpha*L@H"), rd.parse("-alpha*L@H + beta*tanh(H)")]
    >>> equations = MemberEquations.of(each, 2, is_linear=False, is_forced=False)
    >>> field = MemberField(equations, op, torch.tensor([[1.0, 0.0], [1.0, 2.0]])[..., None], channels=1)
    >>> H = torch.ones(2, 3, 1)
    >>> field(None, H)[:, 0, 0]
    tensor([0.0000, 1.5232])
    """

    is_autonomous = True

    def __init__(self, equations: MemberEquations, operator: Operator, letters: Tensor, channels: int) -> None:
        if not operator.is_normalised:
            raise NotApplicable(
                f"expected a normalised operator for members with different equations, got {operator!r}; lower "
                "them one by one"
            )
        self.equations, self.operator, self.letters, self.channels = equations, operator, letters, channels
        self._initial: Tensor | None = None
        self._parts: tuple[Tensor, Tensor | None, tuple[VectorField, ...]] | None = None

    @property
    def system(self) -> System:
        """The equation of the first member; like all others it is one autonomous equation of first order."""
        return self.equations.each[0]

    @property
    def uses_initial(self) -> bool:
        """Whether the field depends on the start."""
        polynomials = self.equations.polynomials
        return polynomials is not None and (
            polynomials.orders[1] > 0 or any("H0" in g.system.letters for g in self.equations.groups)
        )

    def bind(self, H0: Tensor) -> MemberField:
        """The field of trajectories that start at H0."""
        bound = copy.copy(self)
        bound._initial, bound._parts = H0, None
        return bound

    def prepared(self) -> MemberField:
        """The field with its coefficients computed once, for many evaluations between two backward passes."""
        ready = copy.copy(self)
        ready._parts = self._computed()
        return ready

    def __call__(self, t: object, H: Tensor) -> Tensor:
        """dH/dt at H; the time does not matter."""
        series, source, fields = self._parts or self._computed()
        out = apply_polynomial(self.operator, series, H, "taylor")
        if source is not None:
            out = out + source
        if not fields:
            return out
        spreading = self.equations.spreading
        parts = spreading.spread(H).split(spreading.sizes)
        rates = [field(None, part) for field, part in zip(fields, parts, strict=True)]
        return spreading.collect(torch.cat(rates) * self.equations.signs, out)

    def linear_part(self) -> Linear:
        """p(A) and s(A) of all members, where all equations are linear."""
        if self.equations.flow is None:
            raise NotApplicable("exact flows need members with linear equations; use a method with steps")
        generator, source = self.equations.flow.values(self.letters)
        base = operator_base(self.operator, "A")
        return Linear.scalar(base, generator, None if self.equations.is_forced else source)

    # ------------------------------------------------------------------ the parts
    def _computed(self) -> tuple[Tensor, Tensor | None, tuple[VectorField, ...]]:
        """The series of p(A), s(A)H0, and the fields of the other terms, with their coefficients."""
        series, before_start = self._series(self._polynomials)
        source = None
        if before_start is not None:
            source = apply_polynomial(self.operator, before_start, self._start(), "taylor")
        return series, source, self._fields()

    @property
    def _polynomials(self) -> PolynomialTable:
        if self.equations.polynomials is None:
            raise InvalidArgument("expected members whose fields are evaluated, got flows alone; make them not linear")
        return self.equations.polynomials

    def _series(self, table: PolynomialTable) -> tuple[Tensor, Tensor | None]:
        generator, source = table.values(self.letters)
        dtype = torch.promote_types(self.operator.dtype, torch.float32)
        return torch.stack(generator).to(dtype), torch.stack(source).to(dtype) if source else None

    def _fields(self) -> tuple[VectorField, ...]:
        spreading, groups = self.equations.spreading, self.equations.groups
        needs = [group for group in groups if "H0" in group.system.letters]
        starts = spreading.spread(self._start()).split(spreading.sizes) if needs else ()
        fields = []
        for number, group in enumerate(groups):
            letters = self.letters.expand(-1, -1, self.channels).index_select(0, group.members)
            values = {
                LETTER.format(k + 1): letters.take_along_dim(group.slots[:, k, None, None], 1)[:, 0]
                for k in range(group.slots.shape[1])
            }
            field = lower(group.system, self.operator.members(group.members), values, batch=(len(group.members),))
            fields.append((field.bind(starts[number]) if group in needs else field).prepared())
        return tuple(fields)

    def _start(self) -> Tensor:
        if self._initial is None:
            raise InvalidArgument("expected a bound field, since the start is needed, got one without; call bind first")
        return self._initial
