"""Time limits: an answer that takes too long is undecided, and says so.

Most of an answer's time is spent inside sympy, which knows no limits. The clock therefore interrupts the thread that
computes, wherever it is, by an exception that no `except Exception` on the way catches; it becomes `Undecided` where
the limit was set. Seconds are seconds of computing by that thread, so that an answer does not depend on what else the
machine is doing (where the system does not tell, seconds of the clock on the wall).
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from sympy.core.cache import clear_cache
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.errors import Undecided

#: Seconds an answer may take before it is undecided; with what surrounds it, it is there within ten.
ANSWER_SECONDS = 8.0

#: Seconds after which a thread that was interrupted and goes on is interrupted once more.
AGAIN_SECONDS = 0.25

#: What sympy raises where an algorithm of its own does not apply or does not end.
_SYMPY_GAVE_UP = (BasePolynomialError, NotImplementedError, RecursionError)

P = ParamSpec("P")
A = TypeVar("A")

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class _Interrupt(BaseException):
    """Raised in the computing thread when its time is up."""


@contextmanager
def time_limit(seconds: float = ANSWER_SECONDS) -> Iterator[None]:
    """Raise `Undecided` in the block after so many seconds; of nested limits the first to end counts.

    >>> import time
    >>> try:
    ...     with time_limit(0.01):
    ...         while True:
    ...             pass
    ... except Undecided as problem:
    ...     print(problem)
    time ran out after 0.01 s
    """
    end = _clock() + seconds
    outer = _deadline.get()
    if outer is not None and outer <= end:
        yield  # the limit around this one ends first and interrupts both
        return
    token = _deadline.set(end)
    try:
        alarm = _Alarm(seconds)
        try:
            yield
        finally:
            alarm.cancel()
    except _Interrupt:
        clear_cache()  # what sympy was about to remember may be half done
        raise Undecided(f"time ran out after {seconds:g} s") from None
    finally:
        _deadline.reset(token)


def remaining() -> float:
    """Seconds left to the limits in force; infinite without one."""
    end = _deadline.get()
    return float("inf") if end is None else max(0.0, end - _clock())


def _clock(thread: int | None = None) -> float:
    """Seconds of computing of a thread, by default this one."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(thread or threading.get_ident()))


class within_budget:
    """Decorator: a question that is answered within its time.

    Where it is not, or an algorithm of sympy gives up on the way, `otherwise` makes an answer of the problem; without
    it `Undecided` is raised.
    """

    def __init__(self, otherwise: Callable[[Undecided], Any] | None = None, seconds: float = ANSWER_SECONDS) -> None:
        self.otherwise, self.seconds = otherwise, seconds

    def __call__(self, question: Callable[P, A]) -> Callable[P, A]:
        @wraps(question)
        def ask(*args: P.args, **kwargs: P.kwargs) -> A:
            try:
                with time_limit(self.seconds):
                    return question(*args, **kwargs)
            except Undecided as reason:
                problem = reason
            except _SYMPY_GAVE_UP as reason:
                problem = Undecided(f"sympy gave up: {type(reason).__name__}")
            if self.otherwise is None:
                raise problem
            return cast(A, self.otherwise(problem))

        return ask


class _Alarm:
    """A timer that interrupts the thread that made it until it hears, and never after `cancel` has returned.

    An interrupt that arrives inside a destructor is lost (Python ignores what is raised there), so it is repeated.
    """

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._end = _clock() + seconds
        self._lock = threading.Lock()
        self._over = False
        _hide_lost_interrupts()
        self._arm(seconds)

    def cancel(self) -> None:
        self._over = True
        while True:
            try:
                with self._lock:
                    self._timer.cancel()
                    _send(self._thread, None)  # an interrupt that was sent but has not arrived yet is taken back
                    return
            except _Interrupt:  # it arrived just here, after the work was done
                continue

    def _arm(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self) -> None:
        with self._lock:
            if self._over:
                return
            left = self._end - _clock(self._thread)
            if left <= 0:
                _send(self._thread, _Interrupt)
            self._arm(max(left, 0.001) if left > 0 else AGAIN_SECONDS)


def _hide_lost_interrupts() -> None:
    """An interrupt that is lost in a destructor is repeated, so nobody is told of it; all else is told as before."""
    before = sys.unraisablehook
    if getattr(before, "hides_lost_interrupts", False):
        return

    def hook(problem: sys.UnraisableHookArgs) -> None:
        if problem.exc_type is not _Interrupt:
            before(problem)

    hook.hides_lost_interrupts = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook


def _send(thread: int, exception: type[BaseException] | None) -> None:
    pointer = ctypes.py_object(exception) if exception is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), pointer)
