"""`LedgerEntry`: a published number or claim, our measurement, and the resulting status."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gread.comparison import ABOVE, AGREES, ERRORS, NOISE, REPRODUCED, Estimate, Gap

NOT_REPRODUCED, UNDERSPECIFIED = "not reproduced", "underspecified"
CONTRADICTED, UNDECIDED, NOT_MEASURED = "contradicted by the paper itself", "undecided", "not measured"
#: The statuses in the order of counting, with their meanings.
STATUSES = {
    REPRODUCED: "the same number within two standard errors of the difference and one point; a claim that holds",
    NOISE: "within two standard errors, but more than one point away: not significant",
    ABOVE: "ours is larger by more than two standard errors",
    NOT_REPRODUCED: "ours is smaller by more than two standard errors, or a count differs; a claim that is false",
    UNDERSPECIFIED: "differs, and the paper leaves open how to reproduce it: unpublished settings, or readings that "
    "disagree; a claim that needs a condition it does not state",
    CONTRADICTED: "the number does not follow from the paper's own tables or formulas, or the paper prints another one "
    "for the same quantity, with which ours agrees or which we did not measure",
    UNDECIDED: "measured, but there is no error to judge by; a claim that was not decided",
    NOT_MEASURED: "no results file has it",
}
#: The claims, as a table.
CLAIMS = "Claims"
#: The default for who measured a number.
HERE = "here"


@dataclass(frozen=True)
class PrintedNumber:
    """A number as the paper prints it, over `count` splits; or, with a statement, a claim without a number."""

    cell: str
    table: str
    subject: str
    dataset: str
    quantity: str
    value: float
    std: float | None = None
    source: str = ""
    option: str = ""
    statement: str = ""
    count: int = 10


@dataclass(frozen=True)
class Measurement:
    """A measurement of a cell: mean, population standard deviation over `count` splits, and its origin.

    Args:
        cell: whose number it is.
        value: the mean, nan for a claim.
        std: over the splits, None where there is none.
        count: splits.
        reading: with which settings, in words.
        is_main: whether it decides the status; other readings are only listed.
        is_open: whether its settings were not published but searched for.
        word: a status without a test, for a count or a claim.
        error: of the difference, where it does not follow from the deviations.
        chance: number of these errors up to which a difference counts as chance.
        test: the test behind the status.
        answer: of a claim.
        note: what is known about it.
        who, command, file, sha256: who measured it, how, and the file that says so.
        detail: everything else that the file says, such as settings and the accuracies of the splits.
    """

    cell: str
    value: float
    std: float | None = None
    count: int = 10
    reading: str = ""
    is_main: bool = True
    is_open: bool = False
    word: str = ""
    error: float = math.nan
    chance: float = ERRORS
    test: str = "Welch, two standard errors of the difference"
    answer: str = ""
    note: str = ""
    who: str = HERE
    command: str = ""
    file: str = ""
    sha256: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def gap(self, printed: PrintedNumber) -> Gap:
        """The difference from the printed number, with its error."""
        if math.isnan(self.error):
            own = Estimate(self.value, math.nan if self.std is None else self.std, self.count)
            return Gap.between(own, printed.value, printed.std, printed.count)
        return Gap(self.value - printed.value, self.error, math.nan, self.chance)

    def status(self, printed: PrintedNumber) -> str:
        """Status of the printed number by this measurement alone."""
        if self.word:
            return self.word
        word = self.gap(printed).word
        if word in AGREES or word == UNDECIDED:
            return word
        if self.is_open:
            return UNDERSPECIFIED
        return ABOVE if word == ABOVE else NOT_REPRODUCED


@dataclass(frozen=True)
class LedgerEntry:
    """A row of the ledger; `own` is the measurement behind its status."""

    printed: PrintedNumber
    status: str
    own: Measurement | None = None
    readings: tuple[Measurement, ...] = ()
    others: tuple[Measurement, ...] = ()
    contradiction: str = ""
    cause: str = ""

    @property
    def difference(self) -> Gap:
        """Ours minus the paper's; nan where there is none."""
        own = self.own
        return Gap(math.nan, math.nan, math.nan) if own is None else own.gap(self.printed)

    def row(self) -> dict[str, Any]:
        """The entry as one flat row; None where there is no number."""
        printed, own, gap = self.printed, self.own, self.difference
        return {
            "cell": printed.cell, "table": printed.table, "subject": printed.subject, "dataset": printed.dataset,
            "option": printed.option, "quantity": printed.quantity, "statement": printed.statement,
            "published": number(printed.value), "published_std": number(printed.std),
            "ours": number(own.value) if own else None, "ours_std": number(own.std) if own else None,
            "splits": own.count if own and own.std is not None else None, "answer": own.answer if own else "",
            "reading": own.reading if own else "", "difference": number(gap.difference), "error": number(gap.error),
            "p": number(gap.p, 12), "test": own.test if own else "", "status": self.status, "cause": self.cause,
            "contradiction": self.contradiction, "command": own.command if own else "",
            "file": own.file if own else "", "sha256": own.sha256 if own else "", "source": printed.source,
            "others": [measured_row(one, printed) for one in (*self.readings, *self.others)],
        }  # fmt: skip


def measured_row(one: Measurement, printed: PrintedNumber) -> dict[str, Any]:
    """Row of a further measurement: who, value, difference from the printed number, own status."""
    gap = one.gap(printed)
    return {
        "who": one.who, "reading": one.reading, "value": number(one.value), "std": number(one.std),
        "splits": one.count, "difference": number(gap.difference), "error": number(gap.error),
        "status": one.status(printed), "note": one.note, "command": one.command, "file": one.file,
        "sha256": one.sha256,
    }  # fmt: skip


def number(value: float | None, digits: int = 6) -> float | None:
    """A number rounded to `digits` decimals for json; None if it is missing.

    >>> number(None), number(math.nan), number(1 / 3)
    (None, None, 0.333333)
    """
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def status_tally(entries: Iterable[LedgerEntry]) -> dict[str, int]:
    """Number of entries by status, in the order of `STATUSES`."""
    result = [entry.status for entry in entries]
    return {status: result.count(status) for status in STATUSES if status in result}
