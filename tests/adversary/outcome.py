"""What comes of one question: held, refuted, undecided, refused, timeout or error."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

HELD, REFUTED, UNDECIDED, REFUSED, TIMEOUT, ERROR = "held", "refuted", "undecided", "refused", "timeout", "error"
STATUSES = (HELD, UNDECIDED, REFUSED, REFUTED, TIMEOUT, ERROR)


@dataclass(frozen=True)
class Question:
    """One question about one system: its family, its name and its arguments."""

    family: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.arguments.items())})"


@dataclass(frozen=True)
class Outcome:
    """The verdict on one answer; `detail` is the witness, or why there is none.

    Where certificates are asked for: how many obligations behind the answer were `checked` without a solver, and how
    many are `unproved`, without a proof to check.
    """

    family: str
    status: str
    text: str
    question: str
    answer: str = ""
    detail: str = ""
    seconds: float = 0.0
    checked: int = 0
    unproved: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.status}: {self.family}\n  equation: {self.text}\n  question: {self.question}\n"
            f"  answer:   {self.answer}\n  detail:   {self.detail}"
        )
