"""`Solution`: the result of an integration. Numerical failure is a value, one status per member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from torch import Tensor

from rdgraph.errors import UnknownName
from rdgraph.wording import html_table


class RunStatus(StrEnum):
    """How the integration of one member ended.

    >>> import rdgraph as rd
    >>> rd.run.RunStatus.BLOW_UP == "blow-up"
    True
    """

    OK = "ok"
    #: an entry became infinite or passed the limit; with dopri5 also growth faster than time can be resolved
    BLOW_UP = "blow-up"
    #: the right-hand side became NaN before anything overflowed: an undefined operation, or NaN in the initial state
    NOT_A_NUMBER = "not-a-number"
    #: the adaptive step fell below the resolution of time although the state does not grow
    STEP_UNDERFLOW = "step-underflow"
    #: the adaptive method used up `max_steps`
    TOO_MANY_STEPS = "too-many-steps"

    @property
    def code(self) -> int:
        """Position of this status in `tuple(RunStatus)`, which is how tensors hold it; 0 is ok."""
        return tuple(RunStatus).index(self)


@dataclass(frozen=True)
class Stats:
    """The cost of a solve. One call of the field on many members counts once; members integrated one by one add up.

    `evaluations` calls of the field, `products` sparse products, `accepted` and `rejected` steps. For a fixed step
    `accepted` is the number of steps of the longest member; for dopri5 the steps of all members add up. What a failure
    or a gradient made to be done again is counted again; backward passes are not counted.

    >>> Stats(4, 8, 1) + Stats(2, 4, 1)
    Stats(evaluations=6, products=12, accepted=2, rejected=0)
    """

    evaluations: int = 0
    products: int = 0
    accepted: int = 0
    rejected: int = 0

    def __add__(self, other: Stats) -> Stats:
        return Stats(
            self.evaluations + other.evaluations,
            self.products + other.products,
            self.accepted + other.accepted,
            self.rejected + other.rejected,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """States H(times[k]) of every member, with costs and one status each.

    times (K,) or (K, *batch); states (K, *batch, n, d), or (1, *batch, n, d) with the last one alone where states were
    not kept, with the channels of all `fields` side by side, of which `solution["u"]` cuts out one; measures name ->
    (K, ...); codes (*batch) positions in `tuple(RunStatus)`; failed_at (*batch), NaN where ok. A member that failed
    keeps its last finite state from `failed_at` on, the time that state belongs to, and that frozen state carries no
    gradient. `method` is the one that integrated, `reason` says why where it was chosen by `auto`.

    >>> import torch, rdgraph as rd
    >>> from rdgraph.run.solvers.solution import Stats
    >>> H = torch.zeros(2, 3, 1)
    >>> rd.run.Solution(torch.tensor([0.0, 1.0]), H, Stats(1, 1, 1), torch.tensor(0), torch.tensor(torch.nan))
    Solution(2 times, states (2, 3, 1), ok, 1 evaluations, 1 products)
    """

    times: Tensor
    states: Tensor
    stats: Stats
    codes: Tensor
    failed_at: Tensor
    measures: Mapping[str, Tensor] = field(default_factory=dict)
    method: str = ""
    reason: str = ""
    fields: tuple[str, ...] = ("H",)

    def __getitem__(self, name: str) -> Tensor:
        """The saved states of one field, (K, *batch, n, d): a block of the channels of `states`."""
        if name not in self.fields:
            raise UnknownName("field of this solution", name, self.fields)
        return self.states.chunk(len(self.fields), -1)[self.fields.index(name)]

    @property
    def final(self) -> Tensor:
        """The last saved state (*batch, n, d)."""
        return self.states[-1]

    @cached_property
    def status(self) -> np.ndarray:
        """`RunStatus` of every member, an object array of shape batch (0-dimensional without a batch)."""
        names = np.empty(len(RunStatus), dtype=object)
        names[:] = list(RunStatus)
        return np.asarray(names[self.codes.cpu().numpy()], dtype=object)

    @property
    def ok(self) -> bool:
        """Whether every member reached its last time."""
        return not bool(self.codes.any())

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("method", self.method)] if self.method else []
        rows += [("why", self.reason)] if self.reason else []
        rows += [("times", len(self.times)), ("states", tuple(self.states.shape)), ("status", self._statuses())]
        costs = ("evaluations", "products", "accepted", "rejected")
        return html_table("Solution", [*rows, *((name, getattr(self.stats, name)) for name in costs)])

    def _statuses(self) -> str:
        """How the members ended, in words."""
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        single = self.status.ndim == 0
        return ", ".join(name if single else f"{count} {name}" for name, count in zip(names, counts, strict=True))

    def __repr__(self) -> str:
        by = f"by {self.method}, " if self.method else ""
        return (
            f"Solution({len(self.times)} times, states {tuple(self.states.shape)}, {self._statuses()}, {by}"
            f"{self.stats.evaluations} evaluations, {self.stats.products} products)"
        )
