"""`Report`: the page of a preflight, its findings and the verdict that follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rdgraph.html_tables import html_table
from rdgraph.systems.system import System

SAFE, UNSAFE, CONDITIONAL, UNDECIDED = "safe", "unsafe", "safe if", "undecided"
OK, INFO, IF, PROBLEM, UNKNOWN = "ok", "info", "if", "problem", "unknown"


@dataclass(frozen=True)
class Finding:
    """One line of the page: a topic, how it stands (ok, info, if, problem, unknown), the text and its reason."""

    topic: str
    status: str
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """The page: settings, findings and the verdict."""

    system: System
    settings: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def status(self) -> str:
        """safe, unsafe, safe if (conditions), undecided."""
        present = {f.status for f in self.findings}
        for status, verdict in ((PROBLEM, UNSAFE), (UNKNOWN, UNDECIDED), (IF, CONDITIONAL)):
            if status in present:
                return verdict
        return SAFE

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the verdict rests on."""
        wanted = {UNSAFE: PROBLEM, UNDECIDED: UNKNOWN, CONDITIONAL: IF, SAFE: OK}[self.status]
        return tuple(f.text for f in self.findings if f.status == wanted)

    @property
    def verdict(self) -> str:
        joined = "; ".join(self.reasons)
        words = {SAFE: "safe: ", UNSAFE: "unsafe because ", CONDITIONAL: "safe if ", UNDECIDED: "undecided: "}
        return words[self.status] + joined

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": str(self.system), "settings": self.settings, "status": self.status, "verdict": self.verdict,
            "findings": [asdict(f) for f in self.findings],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        settings = ", ".join(f"{k} = {v}" for k, v in self.settings.items())
        rows = [(f.topic, f.status, f.text, f.reason) for f in self.findings]
        title = f"preflight of {self.system!r} ({settings})"
        return html_table(title, rows, footer=f"verdict: {self.verdict}")

    def __str__(self) -> str:
        lines = [
            f"preflight of {self.system!r}",
            "  " + ", ".join(f"{k} = {v}" for k, v in self.settings.items()),
            "",
        ]
        width = max(len(f.topic) for f in self.findings)
        for f in self.findings:
            reason = f" ({f.reason})" if f.reason else ""
            lines.append(f"  {f.topic:<{width}}  [{f.status:^7}]  {f.text}{reason}")
        return "\n".join([*lines, "", f"verdict: {self.verdict}"])
