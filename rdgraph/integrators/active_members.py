"""The members of a batch that are under way together, and the states that are saved of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from rdgraph.integrators.dormand_prince import Attempt

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


class Saves:
    """Saved states in any order, each with the number of its time and of its member."""

    def __init__(self) -> None:
        self._rows: list[Tensor] = []
        self._times: list[np.ndarray] = []
        self._members: list[np.ndarray] = []

    def add(self, times: np.ndarray, members: np.ndarray, states: Tensor) -> None:
        """Some states (q, n, d)."""
        if len(times):
            self._rows.append(states)
            self._times.append(times)
            self._members.append(members)

    def states(self, count: int, members: int) -> Tensor:
        """All of them, (count, members, n, d)."""
        rows = torch.cat(self._rows)
        order = np.lexsort((np.concatenate(self._members), np.concatenate(self._times)))
        return rows[index_beside(order, rows)].view(count, members, *rows.shape[1:])


@dataclass(frozen=True, eq=False)
class Group:
    """The members still under way: who they are (m,), their field, states and slopes (m, n, d)."""

    members: np.ndarray
    field: VectorField
    state: Tensor
    slope: Tensor

    @classmethod
    def make(cls, field: VectorField, starts: Tensor, members: np.ndarray, times: np.ndarray) -> Group:
        """Some members at their start and its time (m,); one evaluation."""
        index = index_beside(members, starts)
        chosen, state = field.members(index).prepared(), starts.index_select(0, index)
        return cls(members, chosen, state, chosen(beside(times, state), state))

    def attempt(self, times: np.ndarray, steps: np.ndarray) -> Attempt:
        """A step of every member from its own time by its own length (m,)."""
        dt = torch.from_numpy(steps).to(self.state)[:, None, None]
        if self.field.is_autonomous:
            return Attempt.make(lambda H, node: self.field(None, H), self.state, self.slope, dt)
        t = beside(times, self.state)[:, None, None].to(self.state.dtype)
        return Attempt.make(lambda H, node: self.field(t + node * dt, H), self.state, self.slope, dt)

    def kept(self, mask: np.ndarray) -> Group:
        """The members that go on."""
        if mask.all():
            return self
        index = index_beside(np.flatnonzero(mask), self.state)
        parts = (x.index_select(0, index) for x in (self.state, self.slope))
        return Group(self.members[mask], self.field.members(index).prepared(), *parts)


def host(values: Tensor) -> np.ndarray:
    """The numbers of a tensor."""
    return values.detach().cpu().numpy()


def beside(values: np.ndarray, model: Tensor) -> Tensor:
    """Numbers of the host as float64 beside a tensor."""
    return torch.from_numpy(values).to(model.device)


def index_beside(numbers: np.ndarray, model: Tensor) -> Tensor:
    """Numbers of members or times as an index beside a tensor."""
    return torch.from_numpy(np.asarray(numbers, dtype=np.int64)).to(model.device)
