"""`Report`: the findings of a preflight and the verdict that follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.language.reader import RESERVED
from rdgraph.reports.run_settings import RunSettings
from rdgraph.reports.summary import as_words
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided
from rdgraph.wording import html_table

# ---------------------------------------------------------------------- findings
SAFE, UNSAFE, CONDITIONAL = "safe", "unsafe", "safe if"
OK, INFO, IF, PROBLEM, UNKNOWN = "ok", "info", "if", "problem", "unknown"


#: Topics whose numbers are computed in floating point, and so are measured.
COMPUTED = ("growth", "growth, directed", "fidelity")


@dataclass(frozen=True, repr=False)
class Finding(Answer):
    """One line of the page: a topic, its outcome (ok, info, if, problem, unknown), the text and its reason.

    A condition on the run as formulas too: `box` is the interval that H0 has to lie in, `limit` that of the step, and
    `keeps` what the limit keeps (as in `StepLimit`).
    """

    topic: str
    outcome: str
    text: str
    reason: str = ""
    box: tuple[sp.Expr, sp.Expr] | None = None
    limit: sp.Expr | None = None
    keeps: str = ""

    @property
    def value(self) -> str | None:
        """The finding as text; None if unknown."""
        return None if self.outcome == UNKNOWN else self.text

    @property
    def status(self) -> Status:
        """undecided where nothing is known, measured where numbers were computed in floating point, else proved."""
        if self.outcome == UNKNOWN:
            return Status.UNDECIDED
        return Status.MEASURED if self.topic in COMPUTED else certainty(self.reason)

    def __str__(self) -> str:
        return f"{self.topic} ({self.outcome}): {self.text}{f' ({self.reason})' if self.reason else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The line as plain values."""
        return {
            "topic": self.topic, "outcome": self.outcome, "status": str(self.status), "text": self.text,
            "reason": self.reason, "box": None if self.box is None else [str(face) for face in self.box],
            "limit": None if self.limit is None else str(self.limit), "keeps": self.keeps,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Report(Answer):
    """Settings, findings and verdict of a preflight; true only if the run is safe."""

    system: System
    settings: dict[str, str]
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.outcome == SAFE

    @property
    def outcome(self) -> str:
        """safe, unsafe, safe if (conditions), undecided."""
        present = {f.outcome for f in self.findings}
        for kind, outcome in ((PROBLEM, UNSAFE), (UNKNOWN, Status.UNDECIDED.value), (IF, CONDITIONAL)):
            if kind in present:
                return outcome
        return SAFE

    @property
    def value(self) -> str | None:
        """safe, unsafe, safe if (conditions), None if undecided."""
        return None if self.outcome == Status.UNDECIDED else self.outcome

    @property
    def status(self) -> Status:
        """How certain the verdict is: measured where one of its reasons was computed in floating point."""
        stages = {finding.status for finding in self._deciding}
        order = (Status.UNDECIDED, Status.MEASURED, Status.BOUNDED)
        return next((stage for stage in order if stage in stages), Status.PROVED)

    @property
    def _deciding(self) -> list[Finding]:
        wanted = {UNSAFE: PROBLEM, Status.UNDECIDED: UNKNOWN, CONDITIONAL: IF, SAFE: OK}[self.outcome]
        return [finding for finding in self.findings if finding.outcome == wanted]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the verdict rests on."""
        return tuple(finding.text for finding in self._deciding)

    @property
    def reason(self) -> str:
        """What the verdict rests on, in one line."""
        return "; ".join(dict.fromkeys(self.reasons))

    @property
    def conditions(self) -> tuple[str, ...]:
        """Under which conditions the run is safe."""
        return tuple(dict.fromkeys(self.reasons)) if self.outcome == CONDITIONAL else ()

    @property
    def verdict(self) -> str:
        texts = dict.fromkeys(self.reasons)
        joined = "; ".join(t for t in texts if not any(other.startswith(f"{t} and ") for other in texts))
        if self.outcome == CONDITIONAL and re.search(r"(?<![\w'])s(?!\w)", joined):
            joined += f" (s is {RESERVED['s']})"
        words = {SAFE: "safe: ", UNSAFE: "unsafe because ", CONDITIONAL: "safe if ", Status.UNDECIDED: "undecided: "}
        return words[self.outcome] + joined

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": str(self.system), "settings": self.settings, "outcome": self.outcome,
            "status": str(self.status), "verdict": self.verdict, "findings": [f.to_dict() for f in self.findings],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        settings = ", ".join(f"{k} = {v}" for k, v in self.settings.items())
        rows = [(f.topic, f.outcome, f.text, f.reason) for f in self.findings]
        title = f"preflight of {self.system!r} ({settings})"
        return html_table(title, rows, footer=f"verdict: {self.verdict}")

    def __str__(self) -> str:
        lines = [
            f"preflight of {self.system!r}",
            "  " + ", ".join(f"{k} = {v}" for k, v in self.settings.items()),
            f"verdict: {self.verdict}",
            "",
        ]
        width = max(len(f.topic) for f in self.findings)
        for f in self.findings:
            reason = f" ({f.reason})" if f.reason else ""
            lines.append(f"  {f.topic:<{width}}  [{f.outcome:^7}]  {f.text}{reason}")
        return "\n".join(lines)


# ---------------------------------------------------------------------- slope findings
# The slopes of a field: its Lipschitz and one-sided constants.


def slope_findings(run: RunSettings) -> list[Finding]:
    """One finding for each constant, with its norm."""
    entry = "h" if run.system.is_single else "u"
    questions = {"Lipschitz": lipschitz_global, f"Lipschitz, |{entry}|<=R": lipschitz_local, "one-sided": one_sided}
    findings = []
    for name, question in questions.items():
        constant = question(run.system, run.normalisation)
        value = "none" if constant.value is None else f"{as_words(constant)} ({constant.norm})"
        findings.append(Finding(name, INFO, value, constant.remark))
    return findings
