"""Time limits: an answer that takes too long is undecided, and says so.

Most of an answer's time is spent inside sympy, which knows no limits. A watch therefore interrupts the thread that
computes, wherever it is, by an exception that no `except Exception` on the way catches; it becomes `Undecided` where
the limit was set. Seconds are seconds of computing by that thread, so that an answer does not depend on what else the
machine is doing (where the system does not tell, seconds of the clock on the wall).

An interrupt arrives between two steps of the interpreter: at the beginning of a function, at the end of a loop, or
after a call; so also in the code that ends a limit. No `with` statement is safe from that, for its end is a call. A
limit is a function instead, and ends by storing a number, which is a single step.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from functools import partial, wraps
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar, cast

from sympy.core.cache import clear_cache
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.errors import Undecided
from rdgraph.reals.basis import record_engines, watched

#: Seconds an answer may take before it is undecided; with what surrounds it, it is there within ten.
ANSWER_SECONDS = 8.0

#: Seconds that the answers of one page may take together.
PAGE_SECONDS = 40.0

#: Seconds after which a thread that was interrupted and goes on is interrupted once more.
AGAIN_SECONDS = 0.25

#: The least and the most seconds between two looks of a watch: a thread that waits spends no time, however long.
SHORTEST_SLEEP, LONGEST_SLEEP = 0.001, 3600.0

#: What sympy raises where an algorithm of its own does not apply or does not end.
_SYMPY_GAVE_UP = (BasePolynomialError, NotImplementedError, RecursionError, OverflowError, MemoryError)

P = ParamSpec("P")
A = TypeVar("A")

#: The interpreter's own function: raise an exception in a thread.
_send = ctypes.pythonapi.PyThreadState_SetAsyncExc


class _Interrupt(BaseException):
    """Raised in the computing thread when its time is up."""


def limited(seconds: float, function: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a function returns within `seconds` seconds; raises `Undecided` after them.

    Of nested limits the first to end counts, and none goes on when the time of `page` is up.

    >>> def work(forever):
    ...     while forever:
    ...         pass
    ...     return "done"
    >>> limited(60, work, forever=False)
    'done'
    >>> try:
    ...     limited(0.01, work, forever=True)
    ... except Undecided as problem:
    ...     print(problem)
    time ran out after 0.01 s
    """
    before = _here.watch
    watch = before or _Watch()
    now = watch.now()
    if _here.deadline <= now:
        raise Undecided("the time of all questions together ran out")
    seconds = min(seconds, _here.deadline - now)
    end, outer = now + seconds, watch.end
    if outer <= end:
        return function(*args, **kwargs)  # the limit around this one ends first and interrupts both
    try:
        try:
            _here.watch = watch
            watch.set(end, is_new=before is None)
            return function(*args, **kwargs)
        finally:  # plain stores: nothing arrives between the end of the work and the first of them, or between them
            watch.end = outer
            _here.watch = before
            watch.again = -inf
            try:  # noqa: SIM105
                watch.bell.put(before is None)  # which is done before an interrupt that is on its way arrives
            except _Interrupt:
                pass  # the work was done
    except (_Interrupt, ctypes.ArgumentError) as problem:
        if not _is_interrupt(problem):
            raise
        watch.end = outer  # stored again: a trace function, called at every line, can be what was interrupted above
        _here.watch = before
        watch.again = -inf
        watch.bell.put(before is None)
        if outer <= watch.now():
            raise  # the time around this limit is up as well
        clear_cache()  # what sympy was about to remember may be half done
        raise Undecided(f"time ran out after {seconds:g} s") from None


def page(seconds: float, questions: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a function returns whose questions have a number of seconds together: those after them are undecided.

    >>> def ask():
    ...     return [limited(8, len, "abc"), within_budget(str)(lambda: 1)()]
    >>> page(60, ask)
    [3, 1]
    >>> page(0, within_budget(str)(lambda: 1))
    'the time of all questions together ran out'
    """
    before = _here.deadline
    try:
        _here.deadline = min(before, _clock(threading.get_ident())() + seconds)
        return questions(*args, **kwargs)
    finally:
        _here.deadline = before


def _is_interrupt(problem: BaseException) -> bool:
    """Whether the time is up; ctypes tells what is raised while it reads arguments, as those of z3, by name alone."""
    return isinstance(problem, _Interrupt) or _Interrupt.__name__ in str(problem)


def remaining() -> float:
    """Seconds left to the limits in force; infinite without one."""
    watch = _here.watch
    return inf if watch is None else max(0.0, watch.end - watch.now())


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
                with watched() as basis:
                    answer = limited(self.seconds, question, *args, **kwargs)
                record_engines(answer, basis)
                return answer
            except Undecided as reason:
                problem = reason
            except _SYMPY_GAVE_UP as reason:
                problem = Undecided(f"sympy gave up: {type(reason).__name__}")
            if self.otherwise is None:
                raise problem
            return cast(A, self.otherwise(problem))

        return ask


class _Watch:
    """The end of the limit in force in the thread that made it, and a second thread that interrupts the first then.

    An interrupt that arrives inside a destructor is lost (Python ignores what is raised there), so it is repeated, but
    never so soon that the end of a limit would meet two of them.
    """

    __slots__ = ("_message", "again", "bell", "end", "now")

    def __init__(self) -> None:
        thread = threading.get_ident()
        self.now = _clock(thread)
        self.end = inf
        self.again = -inf
        self.bell: SimpleQueue[bool] = SimpleQueue()
        self._message = (ctypes.c_ulong(thread), ctypes.py_object(_Interrupt))
        _hide_lost_interrupts()

    def set(self, end: float, is_new: bool) -> None:
        """Put an end in force, sooner than the one before."""
        self.end = end
        if is_new:
            start_new_thread(self._run, ())  # `Thread.start` waits under a lock that an interrupt would leave locked
        else:
            self.bell.put(False)

    def _run(self) -> None:
        """Interrupt whenever the end has passed; the bell says that there is a new one, or that all is over."""
        is_over = False
        while not is_over:
            now = self.now()
            if self.end <= now and self.again <= now:
                self.again = now + AGAIN_SECONDS
                # One expression, within which the interpreter changes to no other thread: what is sent is in time.
                _ = self.end <= now and _send(*self._message)
            left = max(self.end, self.again) - now
            try:
                is_over = self.bell.get(timeout=min(max(left, SHORTEST_SLEEP), LONGEST_SLEEP))
            except Empty:
                continue


class _Here(threading.local):
    """The watch over this thread, if there is one, and when the time of its page is up."""

    watch: _Watch | None = None
    deadline: float = inf


_here = _Here()


def _clock(thread: int) -> Callable[[], float]:
    """Seconds of computing of a thread, to be asked from any thread."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    return partial(time.clock_gettime, time.pthread_getcpuclockid(thread))


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
