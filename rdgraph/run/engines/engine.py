"""`Engine`: where many independent pieces of work are done; `LocalEngine` does them here, one after another.

What an engine gives does not depend on where a piece was done or on which came first: a piece is fixed before it is
placed, and nothing is shared between two of them but what all of them are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def silent(*anything: object) -> None:
    """Accept any message and ignore it."""


@dataclass(frozen=True, eq=False)
class Reporter:
    """What a piece of work may say while it is done: the share of it that is, and sentences for the user."""

    share: Callable[[float], None] = silent
    tell: Callable[[str], object] = silent


class Engine(Protocol):
    """Runs `work(item, reporter)` for every item, and yields the results as they finish."""

    name: str

    @property
    def slots(self) -> int:
        """How many pieces are done at once."""

    def device(self, asked: str) -> str:
        """The device that work runs on where the user asked for `asked`; "auto" may stay undecided."""

    def run(
        self,
        work: Callable[[T, Reporter], R],
        items: Iterable[T],
        *,
        device: str = "cpu",
        hear: Callable[[T, float], None] = silent,
        tell: Callable[[str], object] = silent,
    ) -> Iterator[tuple[T, R]]:
        """Every item with its result, in the order in which they finish.

        Args:
            work: The function applied to an item; it is sent to every worker once, with everything it refers to.
            items: Started one by one as there is room for them.
            device: "cpu", or "cuda" for work that needs a GPU for itself.
            hear: Called about once a second with an item and the share of it that is done.
            tell: Called with the messages of the work.

        Raises:
            RdgraphError: What the work raised; all other work is stopped.
        """

    def close(self) -> None:
        """Release the resources of the engine."""


class LocalEngine:
    """In this process, one piece after another.

    >>> [result for _, result in LocalEngine().run(lambda item, reporter: item**2, range(4))]
    [0, 1, 4, 9]
    """

    name = "local"
    slots = 1

    def device(self, asked: str) -> str:
        return asked

    def run(
        self,
        work: Callable[[T, Reporter], R],
        items: Iterable[T],
        *,
        device: str = "cpu",
        hear: Callable[[T, float], None] = silent,
        tell: Callable[[str], object] = silent,
    ) -> Iterator[tuple[T, R]]:
        for item in items:
            yield item, work(item, Reporter(partial(hear, item), tell))

    def close(self) -> None:
        """Nothing is held."""
