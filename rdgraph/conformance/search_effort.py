"""`Effort`: what a search may cost, counted in numbers worked out, so that its outcome does not depend on the clock."""

from __future__ import annotations

from math import inf

#: An evaluation costs as much as one of so many numbers, however few it has.
LEAST = 2_000


class Effort:
    """Numbers that may still be worked out; a search looks at it before it begins anything further.

    >>> effort = Effort(5_000)
    >>> effort.spend(10), effort.is_spent
    (None, False)
    >>> effort.spend(3_500), effort.is_spent
    (None, True)
    """

    def __init__(self, numbers: float = inf) -> None:
        self.left = numbers

    def spend(self, numbers: int, times: int = 1) -> None:
        """Take the cost of so many evaluations with so many numbers."""
        self.left -= times * max(numbers, LEAST)

    @property
    def is_spent(self) -> bool:
        return self.left <= 0
