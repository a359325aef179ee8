"""Counts of a run by family of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.adversary.outcome import ERROR, HELD, REFUSED, REFUTED, STATUSES, TIMEOUT, UNDECIDED, Outcome
from tests.adversary.runner import Record


@dataclass(frozen=True)
class Summary:
    """How often each status came up in each family, everything that was refuted, and obligations with certificates."""

    systems: int
    counts: dict[str, dict[str, int]]
    refuted: tuple[Outcome, ...]
    checked: int = 0
    unproved: int = 0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Summary:
        table: dict[str, Counter[str]] = {}
        refuted: list[Outcome] = []
        systems = checked = unproved = 0
        for record in records:
            systems += 1
            for outcome in record.outcomes:
                table.setdefault(outcome.family, Counter())[outcome.status] += 1
                refuted += [outcome] if outcome.status == REFUTED else []
                checked, unproved = checked + outcome.checked, unproved + outcome.unproved
        counts = {family: {s: table[family][s] for s in STATUSES} for family in sorted(table)}
        return cls(systems, counts, tuple(refuted), checked, unproved)

    def total(self, status: str) -> int:
        return sum(row[status] for row in self.counts.values())

    @property
    def asked(self) -> int:
        return sum(map(self.total, STATUSES))

    @property
    def decided(self) -> int:
        """Answers that say something: held or refuted."""
        return self.total(HELD) + self.total(REFUTED)

    @property
    def error_rate(self) -> float:
        """The part of the decided answers that was refuted."""
        return self.total(REFUTED) / self.decided if self.decided else 0.0

    @property
    def certificates(self) -> str:
        """How many obligations behind the answers were checked without a solver; empty where none was asked for."""
        total = self.checked + self.unproved
        return f"{self.checked} of {total} obligations checked without a solver" if total else ""

    def rows(self) -> list[list[str]]:
        """The table: family, asked, held, undecided, refused, refuted, timeouts, errors; the sum last."""
        columns = (HELD, UNDECIDED, REFUSED, REFUTED, TIMEOUT, ERROR)
        found = [[f, str(sum(row.values())), *(str(row[s]) for s in columns)] for f, row in self.counts.items()]
        return [*found, ["all", str(self.asked), *(str(self.total(s)) for s in columns)]]

    def __str__(self) -> str:
        head = ["family", "asked", "held", "undecided", "refused", "refuted", "timeouts", "errors"]
        lines = [f"{row[0]:<16}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in (head, *self.rows())]
        last = f"{self.systems} systems; {self.total(REFUTED)} of {self.decided} decided answers refuted"
        return "\n".join([*lines, "; ".join(filter(None, [last, self.certificates]))])
