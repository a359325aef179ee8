"""Residuals of many fits at once, and their derivatives through the flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.solver import solve
from rdgraph.inverse.observations import Observations
from rdgraph.inverse.unknowns import Unknowns
from rdgraph.lowering.vector_field import lower
from rdgraph.systems.system import System

#: Entries of the states of one differentiated run, over which the directions are taken in several runs.
_MAX_ENTRIES = 4_000_000


@dataclass(frozen=True)
class Residuals:
    """What the model leaves of the observations, for rows of unknowns.

    The observed values may be the same for all rows (K, n, d) or differ, (rows, K, n, d), so that many sets of data
    of the same plan are fitted at once. `initial` (n, d) is the known start; without it, it is part of the rows.
    """

    system: System
    operator: Operator
    observed: Observations
    unknowns: Unknowns
    known: Mapping[str, Any]
    initial: Tensor | None
    settings: Mapping[str, Any]

    def states(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The states at the times of observation (rows, K, n, d), and which rows reached the last time."""
        members, shape = len(rows), self.observed.shape
        coefficients = {**self.known, **self.unknowns.values(rows)}
        field = lower(self.system, self.operator, coefficients, batch=(members,))
        if self.initial is None:
            start = rows[:, self.unknowns.count :].reshape(members, *shape)
        else:
            start = self.initial.expand(members, *shape)
        found = solve(field, start, self.observed.times, **self.settings)
        return found.states.movedim(0, 1), found.codes == 0

    def of(self, rows: Tensor, values: Tensor) -> Tensor:
        """Residuals (rows, K n d), infinite where the run did not reach the last time."""
        try:
            with torch.no_grad():
                states, good = self.states(rows)
        except NotApplicable:
            # Coefficients for which the method declines; found by halving, since a batch declines as a whole.
            if len(rows) == 1:
                return rows.new_full((1, self.observed.seen.numel()), torch.inf)
            shared, middle = values.ndim < 4 or len(values) == 1, len(rows) // 2
            parts = ((rows[:middle], slice(None, middle)), (rows[middle:], slice(middle, None)))
            return torch.cat([self.of(part, values if shared else values[place]) for part, place in parts])
        return self._left(states, good, values)

    def _left(self, states: Tensor, good: Tensor, values: Tensor) -> Tensor:
        left = torch.where(self.observed.seen, states - values, 0.0)
        good = good & torch.isfinite(left).all(dim=(1, 2, 3))
        return torch.where(good[:, None], left.flatten(1), torch.inf)

    def derivatives(self, rows: Tensor) -> Tensor:
        """How the observed states follow the unknowns, (rows, K n d, unknowns).

        A direction v is a member of its own: the gradient of <u, states> along v is linear in u, and its derivative
        in u is the derivative of the states along v. Two backward passes give all directions that fit in one run.
        """
        members, total = rows.shape
        entries = len(self.observed.times) * members * self.observed.shape[0] * self.observed.shape[1]
        at_once = max(1, min(total, _MAX_ENTRIES // max(entries, 1)))
        parts = [
            self._along(rows, torch.eye(total, dtype=rows.dtype)[first : first + at_once])
            for first in range(0, total, at_once)
        ]
        return torch.cat(parts, -1)

    def _along(self, rows: Tensor, directions: Tensor) -> Tensor:
        count, members = len(directions), len(rows)
        repeated = rows.repeat_interleave(count, 0).requires_grad_()
        states, _ = self.states(repeated)
        weight = torch.zeros_like(states, requires_grad=True)
        (gradient,) = torch.autograd.grad(states, repeated, weight, create_graph=True)
        (along,) = torch.autograd.grad((gradient * directions.repeat(members, 1)).sum(), weight)
        along = torch.where(self.observed.seen, along, 0.0)
        return along.reshape(members, count, -1).transpose(1, 2)
