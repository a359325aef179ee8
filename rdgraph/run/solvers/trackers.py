"""Trackers: observers that `solve` calls with every saved state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

#: A function of one state (*batch, n, d), such as an energy.
Measure = Callable[[Tensor], Any]


class Tracker(Protocol):
    """The methods that `solve` calls: `start` once, `saved` in the order of the times, `stop` always."""

    def start(self, total: int) -> None:
        """Called at the start of a run that will save `total` states."""

    def saved(self, index: int, time: Tensor, state: Tensor) -> None:
        """Called with state number `index`; time () or (*batch), state (*batch, n, d), detached from the graph."""

    def stop(self) -> None:
        """Called at the end of the run, whether it finished or not."""


@dataclass(frozen=True)
class Callback:
    """Calls `function(index, time, state)` for every saved state.

    >>> import torch, rdgraph as rd
    >>> seen = []
    >>> callback = rd.run.Callback(lambda index, time, state: seen.append(float(time)))
    >>> callback.saved(0, torch.tensor(0.5), torch.zeros(3, 1))
    >>> seen
    [0.5]
    """

    function: Callable[[int, Tensor, Tensor], object]

    def start(self, total: int) -> None:
        """Nothing to prepare."""

    def saved(self, index: int, time: Tensor, state: Tensor) -> None:
        self.function(index, time, state)

    def stop(self) -> None:
        """Nothing to close."""


@dataclass
class ProgressBar:
    """A progress bar on standard error; silent if that is no terminal, unless forced."""

    description: str = "solve"
    force: bool = False
    console: Console | None = None
    _shown: tuple[Progress, TaskID] | None = field(default=None, init=False, repr=False)

    def start(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = self.console or Console(stderr=True, force_terminal=True if self.force else None)
        if not (console.is_terminal or self.force):
            return
        progress = Progress(console=console)
        self._shown = progress, progress.add_task(self.description, total=total)
        progress.start()

    def saved(self, index: int, time: Tensor, state: Tensor) -> None:
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, completed=index + 1)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown[0].stop()
            self._shown = None


class Recorder:
    """Receives saved states in order: measures them, stores them if wanted, calls the trackers."""

    def __init__(self, times: Tensor, measures: Mapping[str, Measure], trackers: Sequence[Tracker], keep: bool) -> None:
        self.times = times
        self.measures = measures
        self.trackers = trackers
        self.keep = keep
        self._states: list[Tensor] = []
        self._values: dict[str, list[Tensor]] = {name: [] for name in measures}
        self._count = 0

    def save(self, state: Tensor) -> None:
        """The next state, (*batch, n, d)."""
        if not self.keep:
            self._states.clear()
        self._states.append(state)
        for name, measure in self.measures.items():
            self._values[name].append(torch.as_tensor(measure(state), device=state.device))
        for tracker in self.trackers:
            tracker.saved(self._count, self.times[self._count].detach(), state.detach())
        self._count += 1

    @property
    def states(self) -> Tensor:
        """All states (S, *batch, n, d), or the last one (1, *batch, n, d)."""
        return torch.stack(self._states)

    @property
    def values(self) -> dict[str, Tensor]:
        """Every measure at every saved state, (S, ...)."""
        return {name: torch.stack(values) for name, values in self._values.items()}

    def silent(self) -> Recorder:
        """A new recorder for a repetition of the run, without trackers."""
        return Recorder(self.times, self.measures, (), self.keep)
