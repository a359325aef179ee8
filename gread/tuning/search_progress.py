"""How far a search is: trials that are told of, shares of those under way, the best so far, and the time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gread.tuning.candidates import PlannedRound, TrialResult
from gread.tuning.selection import chosen


class SearchProgress(NamedTuple):
    """How far a search is: trials done (with a share of those under way), the best so far, seconds passed and left."""

    trials: float
    total: int
    best: float
    best_trial: int
    seconds: float
    seconds_left: float


@dataclass(eq=False)
class SearchMeter:
    """Counts the trials of a search, and tells `listener` how far it is whenever that changes.

    `before` trials were known when this process took the search up; the time that is left follows from the others.

    >>> meter = SearchMeter(4, lambda now: print(now.trials, now.total, now.best_trial))
    >>> meter.begin([TrialResult(0, "complete", 9, (0.5,), (0.5,))])
    1
    >>> meter.tell()
    1 4 0
    """

    total: int
    listener: Callable[[SearchProgress], None] | None
    before: int = 0
    known: Sequence[TrialResult] = ()
    _shares: dict[str, float] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    def begin(self, known: Sequence[TrialResult]) -> int:
        """Take note of the trials that were told of earlier; returns their number."""
        self.known, self.before = known, len(known)
        return self.before

    def hear_share(self, planned: PlannedRound, share: float) -> None:
        """A share of some trials under way is done."""
        self._shares[planned.digest] = share * len(planned.candidates)
        self.tell()

    def hear_results(self, planned: PlannedRound, known: Sequence[TrialResult]) -> None:
        """Some trials that were under way are told of, so that these are known now."""
        self._shares.pop(planned.digest, None)
        self.known = known

    def tell(self) -> None:
        """Tell how far it is."""
        if self.listener is None:
            return
        best, passed = chosen(self.known), time.monotonic() - self._started
        done = min(self.total, len(self.known) + sum(self._shares.values()))
        left = passed * (self.total - done) / (done - self.before) if done > self.before else math.nan
        value, number = (math.nan, -1) if best is None else (best.val_accuracy, best.number)
        self.listener(SearchProgress(done, self.total, value, number, passed, left))
