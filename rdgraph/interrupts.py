"""Ctrl-C and SIGTERM: deferred to a safe point, and ignored during clean-up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], object]


class Interruption:
    """A Ctrl-C or SIGTERM that is deferred until `hear` is called."""

    def __init__(self, tell: Callable[[], object] | None = None) -> None:
        self._tell = tell
        self._before: dict[signal.Signals, Handler] = {}
        self._waiting: int | None = None

    @property
    def is_waiting(self) -> bool:
        return self._waiting is not None

    def hear(self) -> None:
        """Deliver a deferred signal, which usually raises KeyboardInterrupt."""
        if self._waiting is not None:
            number, self._waiting = self._waiting, None
            self._release()
            signal.raise_signal(number)

    def _hold(self) -> None:
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):  # signals that are ignored, or end the process at once, are left unchanged
                self._before[number] = handler
                signal.signal(number, self._arrive)

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        self._waiting = number
        self._release()
        if self._tell is not None:
            self._tell()

    def _release(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())


@contextmanager
def patient(tell: Callable[[], object] | None = None) -> Iterator[Interruption]:
    """Within the block the first Ctrl-C or SIGTERM waits until `hear` is called; the second one acts at once.

    `tell` is called when the first one arrives. Signals without a Python handler are left unchanged, and outside of
    the main thread none is deferred.

    >>> with patient() as interruption:
    ...     interruption.is_waiting
    False
    """
    interruption = Interruption(tell)
    if threading.current_thread() is threading.main_thread():
        interruption._hold()
    try:
        yield interruption
    except BaseException:
        interruption._release()
        raise
    interruption._release()
    interruption.hear()


@contextmanager
def terminable() -> Iterator[None]:
    """Within the block the first SIGTERM raises KeyboardInterrupt, as Ctrl-C does.

    Both are ignored afterwards, so that the clean-up is not interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
