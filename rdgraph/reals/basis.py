"""What an answer rests on: interval arithmetic or not, and which engines decided its questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

#: What an answer says that rests on enclosures.
BOUNDED = "decided with numbers bounded by interval arithmetic"

#: Who decided a question: two engines; z3 by a point that was evaluated exactly; z3 without a second opinion.
BOTH = "z3 and cvc5"
EVALUATED = "z3 and exact evaluation"
ALONE = "z3 alone (cvc5: no answer)"


@dataclass
class Watch:
    """What the answers of a block rest on: `bounded` on interval arithmetic, `engines` by who decided the questions."""

    bounded: bool = False
    engines: Counter[str] = field(default_factory=Counter)

    def add(self, other: Watch) -> None:
        """Rest on what `other` rests on as well."""
        self.bounded = self.bounded or other.bounded
        self.engines.update(other.engines)

    @property
    def agreement(self) -> str:
        """Who decided, in words; "" where no solver was asked.

        >>> Watch(engines=Counter({BOTH: 12, ALONE: 2})).agreement
        'z3 and cvc5; 2 of 14 questions by z3 alone (cvc5: no answer)'
        """
        alone, count = self.engines[ALONE], self.engines.total()
        if alone and alone == count:
            return ALONE
        confirmed = BOTH if self.engines[BOTH] else EVALUATED if count else ""
        return f"{confirmed}; {alone} of {count} questions by {ALONE}" if alone else confirmed


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(*, counts: bool = True) -> Iterator[Watch]:
    """What the answers of the block rest on; with `counts`, the answer around the block rests on it too."""
    outer, watch = _watch.get(), Watch()
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)
        if outer is not None and counts:
            outer.add(watch)


def rest_on(basis: Watch) -> None:
    """Record that the answer of the block rests on what `basis` holds."""
    watch = _watch.get()
    if watch is not None:
        watch.add(basis)


def rest_on_enclosures() -> None:
    """Record that the answer of the block rests on interval arithmetic."""
    rest_on(Watch(bounded=True))


def record_engines(answer: object, basis: Watch) -> None:
    """Set the field `engines` of an answer, where it has one, to the words for who decided."""
    if isinstance(getattr(answer, "engines", None), str):
        object.__setattr__(answer, "engines", basis.agreement)
