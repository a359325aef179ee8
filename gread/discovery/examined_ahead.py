"""`AheadExamination`: equations examined by other processes, ahead of their turn, to the same answers.

Proofs take most of the time before a training, one processor each. While a round is trained, the next are examined.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import Self

from gread.discovery.line_safety import Examination, Safety
from gread.discovery.term_grammar import Line, Term
from gread.settings.gread_settings import GreadSettings

#: Equations that a process takes at a time, and how many wait for each process at most.
CHUNK, WAITING = 4, 32
#: What a process answers of an equation: state, terms of what is trained, finding, reason.
Answer = tuple[str, tuple[Term, ...], str, str]

_examination: list[Examination] = []


class AheadExamination:
    """Answers of `Examination`, worked out ahead for equations that are known to come.

    Args:
        settings: The network.
        lines: The equations in the order in which they will be asked for; others are examined when they are.
        jobs: How many processes; with 1 all is done in this one.

    >>> from gread.discovery.term_grammar import find_terms
    >>> with AheadExamination(GreadSettings(), list(find_terms("small").lines(1)), jobs=1) as examine:
    ...     examine(find_terms("small").line([Term("H**3", "+")])).state
    'bounded'
    """

    def __init__(self, settings: GreadSettings, lines: Sequence[Line], jobs: int) -> None:
        self._own = Examination(settings)
        self._settings, self._jobs = settings, jobs
        self._left = list(lines) if jobs > 1 else []
        self._answers: dict[Line, tuple[Future[list[Answer]], int]] = {}
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def __call__(self, line: Line) -> Safety:
        """What becomes of an equation."""
        self._send()
        if line not in self._answers:
            return self._own(line)
        future, place = self._answers.pop(line)
        state, terms, finding, reason = future.result()[place]
        return Safety(state, line if terms == line.terms else line.with_terms(terms), finding, reason)

    def _send(self) -> None:
        """Keep the processes busy."""
        while self._left and len(self._answers) < WAITING * self._jobs:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self._jobs, multiprocessing.get_context("spawn"), _begin, (self._settings,)
                )
            chunk, self._left = self._left[:CHUNK], self._left[CHUNK:]
            future = self._pool.submit(_examined, chunk)
            self._answers |= {line: (future, place) for place, line in enumerate(chunk)}


def _begin(settings: GreadSettings) -> None:
    """What a process does first."""
    _examination[:] = [Examination(settings)]


def _examined(lines: Sequence[Line]) -> list[Answer]:
    found = [_examination[0](line) for line in lines]
    return [(one.state, one.line.terms, one.finding, one.reason) for one in found]
