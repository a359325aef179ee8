"""`MemberField`: dH/dt = f(H) of members that each have an equation of their own."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.linear_part import Linear
from rdgraph.integrators.member_equations import MemberEquations, PolynomialTable
from rdgraph.integrators.polynomial_flow import apply_polynomial
from rdgraph.integrators.scaled_operator import operator_base
from rdgraph.lowering.vector_field import VectorField, lower
from rdgraph.systems.equation_terms import LETTER

if TYPE_CHECKING:
    from rdgraph.systems.system import System


class MemberField:
    """f(H) = p(A)H + s(A)H0 + further terms, with polynomials and terms of every member's own; H is (M, n, d).

    Args:
        equations: Those of the members.
        operator: A, normalised, with shared weights or those of every member.
        letters: The values of the members' letters, (M, slots, 1 or d).
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
                f"expected a normalised operator for members with equations of their own, got {operator!r}; lower "
                "them one by one"
            )
        self.equations, self.operator, self.letters, self.channels = equations, operator, letters, channels
        self._initial: Tensor | None = None
        self._parts: tuple[Tensor, Tensor | None, tuple[VectorField, ...]] | None = None

    @property
    def system(self) -> System:
        """The equation of the first member: like that of all others one autonomous equation of first order."""
        return self.equations.each[0]

    @property
    def uses_initial(self) -> bool:
        """Whether the field has to know where it started."""
        own = self.equations.own
        return own is not None and (own.orders[1] > 0 or any("H0" in g.system.letters for g in self.equations.groups))

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
        found = [field(None, part) for field, part in zip(fields, parts, strict=True)]
        return spreading.collect(torch.cat(found) * self.equations.signs, out)

    def linear_part(self) -> Linear:
        """p(A) and s(A) of all members, where all equations are linear."""
        if self.equations.flow is None:
            raise NotApplicable("expected members whose equations are linear, got others among them; take steps")
        generator, source = self.equations.flow.values(self.letters)
        base = operator_base(self.operator, "A")
        return Linear(base, generator, None if self.equations.is_forced else source)

    # ------------------------------------------------------------------ the parts
    def _computed(self) -> tuple[Tensor, Tensor | None, tuple[VectorField, ...]]:
        """The series of p(A), s(A)H0, and the fields of the further terms, with their letters."""
        series, before_start = self._series(self._own)
        source = None
        if before_start is not None:
            source = apply_polynomial(self.operator, before_start, self._start(), "taylor")
        return series, source, self._fields()

    @property
    def _own(self) -> PolynomialTable:
        if self.equations.own is None:
            raise InvalidArgument("expected members whose fields are evaluated, got flows alone; make them not linear")
        return self.equations.own

    def _series(self, table: PolynomialTable) -> tuple[Tensor, Tensor | None]:
        generator, source = table.values(self.letters)
        kept = torch.promote_types(self.operator.dtype, torch.float32)
        return torch.stack(generator).to(kept), torch.stack(source).to(kept) if source else None

    def _fields(self) -> tuple[VectorField, ...]:
        spreading, groups = self.equations.spreading, self.equations.groups
        needs = [group for group in groups if "H0" in group.system.letters]
        starts = spreading.spread(self._start()).split(spreading.sizes) if needs else ()
        made = []
        for number, group in enumerate(groups):
            own = self.letters.expand(-1, -1, self.channels).index_select(0, group.members)
            values = {
                LETTER.format(k + 1): own.take_along_dim(group.slots[:, k, None, None], 1)[:, 0]
                for k in range(group.slots.shape[1])
            }
            field = lower(group.system, self.operator.members(group.members), values, batch=(len(group.members),))
            made.append((field.bind(starts[number]) if group in needs else field).prepared())
        return tuple(made)

    def _start(self) -> Tensor:
        if self._initial is None:
            raise InvalidArgument("expected a bound field, since the start is needed, got one without; call bind first")
        return self._initial
