"""Counts of a run by family of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.adversary.outcome import ERROR, HELD, REFUSED, REFUTED, STATUSES, TIMEOUT, UNDECIDED, Outcome
from tests.adversary.runner import Record

#: Obligations behind answers that held: checked without a solver, and without a proof to check.
CHECKED, UNPROVED = "checked", "unproved"
HEAD = ("family", "asked", "held", "undecided", "refused", "refuted", "timeouts", "errors", "obligations", "checked %")


@dataclass(frozen=True)
class Summary:
    """How often each status came up in each family, with its obligations; and everything that was refuted."""

    systems: int
    counts: dict[str, dict[str, int]]
    refuted: tuple[Outcome, ...]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Summary:
        table: dict[str, Counter[str]] = {}
        refuted: list[Outcome] = []
        systems = 0
        for record in records:
            systems += 1
            for outcome in record.outcomes:
                row = table.setdefault(outcome.family, Counter())
                row.update({outcome.status: 1, CHECKED: outcome.checked, UNPROVED: outcome.unproved})
                refuted += [outcome] if outcome.status == REFUTED else []
        counts = {family: {s: table[family][s] for s in (*STATUSES, CHECKED, UNPROVED)} for family in sorted(table)}
        return cls(systems, counts, tuple(refuted))

    def total(self, count: str) -> int:
        """A status, or `checked` or `unproved`, over all families."""
        return sum(row.get(count, 0) for row in self.counts.values())

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
        checked, total = self.total(CHECKED), self.total(CHECKED) + self.total(UNPROVED)
        share = f"{checked} of {total} obligations ({100 * checked / total:.3g} %)" if total else ""
        return f"{share} checked without a solver" if total else ""

    def rows(self) -> list[list[str]]:
        """The table under HEAD, with the sum last."""
        every = {**self.counts, "all": {count: self.total(count) for count in (*STATUSES, CHECKED, UNPROVED)}}
        return [[family, *map(str, _cells(row))] for family, row in every.items()]

    def __str__(self) -> str:
        lines = [f"{row[0]:<16}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in (HEAD, *self.rows())]
        last = f"{self.systems} systems; {self.total(REFUTED)} of {self.decided} decided answers refuted"
        return "\n".join([*lines, "; ".join(filter(None, [last, self.certificates]))])


def _cells(row: Mapping[str, int]) -> list[str | int]:
    statuses = [row[status] for status in (HELD, UNDECIDED, REFUSED, REFUTED, TIMEOUT, ERROR)]
    checked, obligations = row.get(CHECKED, 0), row.get(CHECKED, 0) + row.get(UNPROVED, 0)
    return [sum(statuses), *statuses, obligations, f"{100 * checked / obligations:.3g}" if obligations else ""]
