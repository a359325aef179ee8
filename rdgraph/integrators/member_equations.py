"""`MemberEquations`: members of one batch that each have an equation of their own, as numbers and shared terms.

The letters of all members are numbers (M, slots, 1 or d): the first letter of a member lies at the first place,
whatever it is called. What is a polynomial of A in an equation is then a row of a table, and the products with A are
shared by all members; of the rest every term is evaluated once for all members that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.integrators.coefficient_tables import CoefficientTable
from rdgraph.lowering.coefficients import valued_letters
from rdgraph.systems.equation_terms import LETTER, terms_of_system
from rdgraph.systems.system import System

#: The powers of A before H, and those before H0, with their coefficients.
Powers = tuple[Mapping[int, sp.Expr], Mapping[int, sp.Expr]]


@dataclass(frozen=True, eq=False)
class PolynomialTable:
    """Polynomials of A before H and before H0, member by member: `orders` are their numbers of coefficients."""

    table: CoefficientTable
    orders: tuple[int, int]

    @classmethod
    def of(cls, each: Sequence[System], powers: Callable[[System], Powers], slots: int, device: Any) -> PolynomialTable:
        """Those of the members' equations."""
        known: dict[int, list[sp.Expr]] = {}
        found = {id(system): powers(system) for system in each}
        orders = tuple(max(max(pair[part], default=-1) + 1 for pair in found.values()) for part in (0, 1))
        first, second = max(1, orders[0]), orders[1]
        for system in each:
            if id(system) not in known:
                generator, source = found[id(system)]
                row = [generator.get(k, sp.S.Zero) for k in range(first)]
                known[id(system)] = row + [source.get(k, sp.S.Zero) for k in range(second)]
        letters = {id(system): tuple(valued_letters(system)) for system in each}
        rows = [(known[id(system)], letters[id(system)]) for system in each]
        return cls(CoefficientTable.of(rows, slots, device), (first, second))

    def values(self, letters: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The coefficients before H and before H0, each (M, 1, 1 or d), float64."""
        found = self.table.values(letters)[:, :, None].unbind(1)
        return found[: self.orders[0]], found[self.orders[0] :]


@dataclass(frozen=True, eq=False)
class TermGroup:
    """A term that is no polynomial of A, and who has it: `slots` (m, letters) says where their letters lie, `signs`
    (m,) what it is multiplied by."""

    system: System
    members: Tensor
    slots: Tensor
    signs: Tensor


@dataclass(frozen=True, eq=False)
class Spreading:
    """From states (M, n, d) to those of the members of all groups (N, n, d), one group after the other, and back.

    `members` (N,) says whose state is taken, `passes` are pairs (whose, which of the N) in which every member occurs
    once, so that sums have one order.
    """

    members: Tensor
    passes: tuple[tuple[Tensor, Tensor], ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]], device: Any) -> Spreading:
        """That of groups of members."""
        members = [k for group in groups for k in group]
        seen: dict[int, int] = {}
        passes: list[tuple[list[int], list[int]]] = []
        for place, member in enumerate(members):
            turn = seen[member] = seen.get(member, -1) + 1
            if turn == len(passes):
                passes.append(([], []))
            passes[turn][0].append(member)
            passes[turn][1].append(place)
        whole = torch.tensor(members, dtype=torch.int64, device=device)
        pairs = [torch.tensor(pair, dtype=torch.int64, device=device) for pair in passes]
        return cls(whole, tuple((a, b) for a, b in pairs), tuple(map(len, groups)))

    def spread(self, x: Tensor) -> Tensor:
        """The states of the members of all groups."""
        out: Tensor = _Spread.apply(self, x)  # type: ignore[no-untyped-call]
        return out

    def collect(self, parts: Tensor, onto: Tensor) -> Tensor:
        """What lies at the members of all groups, added to what the members have."""
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
            own = parts.index_select(0, which)
            out = out.index_add(0, whose, own) if number == 0 else out.index_add_(0, whose, own)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor, Tensor]:
        return None, _Spread.apply(ctx.spreading, g), g  # type: ignore[no-untyped-call]


@dataclass(frozen=True, eq=False)
class MemberEquations:
    """The equations of M members, on a device.

    `flow` has p and s of H' = p(A)H + s(A)H0 where all equations are of this form, or of H' = p(A)H and a forcing of
    any kind (`is_forced`); None where some are not linear. `own` and `groups` are what their fields are computed from:
    polynomials of A, and other terms with their `signs` (N, 1, 1), one group after the other.
    """

    each: tuple[System, ...]
    flow: PolynomialTable | None
    is_forced: bool
    own: PolynomialTable | None
    groups: tuple[TermGroup, ...]
    spreading: Spreading
    signs: Tensor

    @classmethod
    def of(
        cls, each: Sequence[System], slots: int, *, is_linear: bool, is_forced: bool, device: Any = None
    ) -> MemberEquations:
        """Equations whose letters lie in so many slots; `is_linear` and `is_forced` say what all of them are."""
        flow = PolynomialTable.of(each, _of_structure, slots, device) if is_linear else None
        if is_linear and not is_forced:  # their fields are never evaluated
            return cls(tuple(each), flow, False, None, (), Spreading.of((), device), torch.ones(0, device=device))
        own = PolynomialTable.of(each, _of_terms, slots, device)
        groups = _groups(each, device)
        spreading = Spreading.of([group.members.tolist() for group in groups], device)
        signs = [group.signs for group in groups] or [torch.ones(0, device=device)]
        return cls(tuple(each), flow, is_forced, own, tuple(groups), spreading, torch.cat(signs)[:, None, None])


def _of_structure(system: System) -> Powers:
    """Both polynomials of a linear equation."""
    found = system.structure
    is_filter = found.constant == 0 and found.coupled == 0
    return found.generator, found.source if is_filter else {}


def _of_terms(system: System) -> Powers:
    """Both polynomials of those terms of an equation that have some."""
    totals: tuple[dict[int, sp.Expr], dict[int, sp.Expr]] = {}, {}
    for placed in terms_of_system(system):
        if not placed.term.is_linear:
            continue
        own = {LETTER.format(k): sp.Symbol(letter, real=True) for k, letter in enumerate(placed.letters, 1)}
        for total, powers in zip(totals, (placed.term.generator, placed.term.source), strict=True):
            for power, value in powers.items():
                named = value.xreplace({symbol: own[symbol.name] for symbol in value.free_symbols})
                total[power] = total.get(power, sp.S.Zero) + placed.sign * named
    return totals


def _groups(each: Sequence[System], device: Any) -> list[TermGroup]:
    """The terms beside the polynomials, in the order of their texts, so that the members' order does not matter."""
    found: dict[System, list[tuple[int, int, list[int]]]] = {}
    for member, system in enumerate(each):
        places = {name: k for k, name in enumerate(valued_letters(system))}
        for placed in terms_of_system(system):
            if not placed.term.is_linear:
                own = [places[name] for name in placed.letters]
                found.setdefault(placed.term.system, []).append((member, placed.sign, own))
    groups = []
    for system, rows in sorted(found.items(), key=lambda item: item[0].text):
        members, signs, slots = (torch.tensor(column, device=device) for column in zip(*rows, strict=True))
        groups.append(TermGroup(system, members, slots.long().reshape(len(rows), -1), signs))
    return groups
