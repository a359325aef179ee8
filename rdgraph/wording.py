"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """A number with its noun, which has an s for every number but one.

    >>> counted(1, "split"), counted(10, "split"), counted(0, "trial")
    ('1 split', '10 splits', '0 trials')
    """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
