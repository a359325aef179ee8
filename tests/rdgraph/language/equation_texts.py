"""Texts for the tests of the reader, and how long it may take to read them."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from typing import Any

from rdgraph.errors import LanguageError, RdgraphError
from rdgraph.systems.parser import parse

#: Seconds of processor time within which every text must be read or refused.
QUICK = 1.0


def quickly(action: Callable[[], Any]) -> Any:
    """The result of an action (or the error it raises on purpose), which may not take longer than QUICK."""

    def give_up(*_: Any) -> None:
        raise TimeoutError(f"still busy after {3 * QUICK} s")

    previous = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, 3 * QUICK)
    gc.disable()  # a pause of the collector is of all that the process holds
    start = time.process_time()
    try:
        result: Any = action()
    except RdgraphError as error:
        result = error
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    assert time.process_time() - start < QUICK
    return result


def refusal(text: Any, coefficients: Any = None, **options: Any) -> Any:
    """The error that `parse` raises, checked for the promises every refusal makes."""
    error = quickly(lambda: parse(text, coefficients, **options))
    assert isinstance(error, RdgraphError), f"{text!r:.60} was read as {error}"
    if isinstance(error, LanguageError):
        assert error.expected
        assert error.got
        assert error.remedy
        assert 1 <= error.column <= len(error.text) + 1
        excerpt, caret = quickly(lambda: str(error)).split("\n")[1:3]
        pointed = error.text[error.offset : error.offset + 1]
        shown = pointed if pointed.isprintable() else " "
        assert excerpt[caret.index("^") :][:1] == shown
    return error


def nested(pattern: str, levels: int, inner: str = "H") -> str:
    for _ in range(levels):
        inner = pattern.replace("?", inner)
    return inner
