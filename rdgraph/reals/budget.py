"""Limits of effort, and of time as a last resort: a question beyond them is undecided, and says so.

Effort is what an answer may cost: questions to the solver, polynomial operations and subdivisions report theirs to
`spend`, in seconds that they take on one reference machine. So an answer depends neither on the speed of the machine
nor on what else it does. What reports too little effort is ended by the clock, after a multiple of the seconds: then
the whole question is undecided. Only `attempt` is limited by the clock alone: it is for closed forms that sympy may or
may not find.

A watch interrupts the thread that computes, wherever it is, by an exception that no `except Exception` on the way
catches. Its seconds are seconds of computing by that thread (where the system does not measure them, seconds of the
clock on the wall).

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

#: Effort of one answer, in seconds of the reference machine.
ANSWER_SECONDS = 8.0

#: Effort of the answers of one page together.
PAGE_SECONDS = 40.0

#: The outermost limit of effort, and a page, are also limits of the clock, of this multiple of their seconds.
CLOCK_FACTOR = 4.0

#: Seconds after which a thread that was interrupted and goes on is interrupted once more.
AGAIN_SECONDS = 0.25

#: The least and the most seconds between two looks of a watch: a thread that waits spends no time, however long.
SHORTEST_SLEEP, LONGEST_SLEEP = 0.001, 3600.0

#: What sympy raises where one of its algorithms does not apply or does not end.
_GIVING_UP = {
    BasePolynomialError: "an algorithm for polynomials does not apply",
    RecursionError: "formulas are nested too deeply",
    NotImplementedError: "sympy has no algorithm for it",
    OverflowError: "a number is too large",
    MemoryError: "it needs more memory than there is",
}

P = ParamSpec("P")
A = TypeVar("A")

#: The interpreter's own function: raise an exception in a thread.
_send = ctypes.pythonapi.PyThreadState_SetAsyncExc


class _Interrupt(BaseException):
    """Raised in the computing thread when its time is up."""


class _Spent(BaseException):
    """Raised where effort is reported beyond a limit."""


def spend(seconds: float) -> None:
    """Report effort, in seconds of the reference machine; ends the limit that it exceeds."""
    _here.spent += seconds
    if _here.spent > _here.effort_end:
        raise _Spent


def spent() -> float:
    """The effort that this thread has reported so far."""
    return _here.spent


def unmetered(function: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a function returns whose effort is reported as a whole elsewhere, as it may be remembered."""
    spent, end = _here.spent, _here.effort_end
    try:
        _here.effort_end = inf
        return function(*args, **kwargs)
    finally:
        _here.spent, _here.effort_end = spent, end


def limited(seconds: float, function: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a function returns within an effort of `seconds`; raises `Undecided` beyond it.

    Of nested limits the first to end counts, and none goes on when the effort of `page` is spent. Only the outermost
    one is also limited by the clock: no other answer is given because a machine is slow.

    >>> def work(questions):
    ...     for _ in range(questions):
    ...         spend(0.01)
    ...     return "done"
    >>> limited(60, work, 9)
    'done'
    >>> try:
    ...     limited(0.05, work, 9)
    ... except Undecided as problem:
    ...     print(problem)
    the effort allowed is spent (0.05 s)
    """
    outer, was_limited = _here.effort_end, _here.is_limited
    seconds = min(seconds, _here.deadline - _here.spent)
    clock = inf if was_limited else min(CLOCK_FACTOR * seconds, _here.clock_deadline - _now())
    if _here.deadline <= _here.spent:
        raise Undecided("the effort allowed to all questions together is spent")
    if _here.clock_deadline < inf and clock <= 0:
        raise Undecided("the time of all questions together ran out")
    try:
        _here.effort_end = min(outer, _here.spent + seconds)
        _here.is_limited = True
        return attempt(clock, function, *args, **kwargs)
    except _Spent:
        if _here.spent > outer:
            raise  # the effort around this limit is spent as well
        raise Undecided(f"the effort allowed is spent ({seconds:g} s)") from None
    finally:
        _here.effort_end, _here.is_limited = outer, was_limited


def attempt(seconds: float, function: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a function returns within `seconds` of the clock; raises `Undecided` after them.

    For a search that reports no effort and whose failure changes no answer, only its form.

    >>> def work(forever):
    ...     while forever:
    ...         pass
    ...     return "done"
    >>> attempt(60, work, forever=False)
    'done'
    >>> try:
    ...     attempt(0.01, work, forever=True)
    ... except Undecided as problem:
    ...     print(problem)
    time ran out after 0.01 s
    """
    before, state = _here.watch, (_here.effort_end, _here.is_limited)
    watch = before or _Watch()
    now = watch.now()
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
        _here.effort_end, _here.is_limited = state
        clear_cache()  # what sympy was about to remember may be half done
        raise Undecided(f"time ran out after {seconds:g} s") from None


def page(seconds: float, questions: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> A:
    """What a function returns whose questions have `seconds` of effort together; those beyond are undecided.

    So are those beyond CLOCK_FACTOR times as many seconds of the clock.

    >>> def ask():
    ...     return [limited(8, len, "abc"), within_budget(str)(lambda: 1)()]
    >>> page(60, ask)
    [3, 1]
    >>> page(0, within_budget(str)(lambda: 1))
    'the effort allowed to all questions together is spent'
    """
    before, clock_before = _here.deadline, _here.clock_deadline
    try:
        _here.deadline = min(before, _here.spent + seconds)
        _here.clock_deadline = min(clock_before, _now() + CLOCK_FACTOR * seconds)
        return questions(*args, **kwargs)
    finally:
        _here.deadline, _here.clock_deadline = before, clock_before


def _now() -> float:
    """Seconds of computing of this thread."""
    return _clock(threading.get_ident())()


def _is_interrupt(problem: BaseException) -> bool:
    """Whether the time is up; what is raised while ctypes reads arguments, such as those of z3, keeps only its name."""
    return isinstance(problem, _Interrupt) or _Interrupt.__name__ in str(problem)


def remaining() -> float:
    """Effort left to the limits in force; infinite without one."""
    return max(0.0, _here.effort_end - _here.spent)


def remaining_time() -> float:
    """Seconds of the clock left to the limits in force; infinite without one."""
    watch = _here.watch
    return inf if watch is None else max(0.0, watch.end - watch.now())


class within_budget:
    """Decorator: a question that is answered within its effort.

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
            except tuple(_GIVING_UP) as reason:
                words = next(words for kind, words in _GIVING_UP.items() if isinstance(reason, kind))
                problem = Undecided(f"a step of the algebra of `{question.__name__}` failed: {words}")
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
            wait = max(self.end, self.again) - now
            try:
                is_over = self.bell.get(timeout=min(max(wait, SHORTEST_SLEEP), LONGEST_SLEEP))
            except Empty:
                continue


class _Here(threading.local):
    """The watch over this thread, if there is one, its effort, and the limits of effort and of its page."""

    watch: _Watch | None = None
    spent: float = 0.0
    effort_end: float = inf
    is_limited: bool = False
    deadline: float = inf
    clock_deadline: float = inf


_here = _Here()


def _clock(thread: int) -> Callable[[], float]:
    """Seconds of computing of a thread, to be asked from any thread."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    return partial(time.clock_gettime, time.pthread_getcpuclockid(thread))


def _hide_lost_interrupts() -> None:
    """Hide interrupts that are lost in a destructor, since they are repeated; everything else is reported as before."""
    before = sys.unraisablehook
    if getattr(before, "hides_lost_interrupts", False):
        return

    def hook(problem: sys.UnraisableHookArgs) -> None:
        if problem.exc_type is not _Interrupt:
            before(problem)

    hook.hides_lost_interrupts = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook
