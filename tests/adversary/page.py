"""docs/trust.json and docs/trust.md from results: `python -m tests.adversary.page runs/adversary.jsonl`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.adversary.outcome import REFUTED
from tests.adversary.runner import resumed
from tests.adversary.summary import Summary

DOCS = Path(__file__).resolve().parents[2] / "docs"

HEAD = """# Trust

How often the answers of the symbolic core were wrong when somebody tried to refute them. The adversary
(`tests/adversary/`) draws systems from the whole language with assumptions of every kind, asks the questions of
[answers](answers.md), and checks what comes back with numpy and scipy alone: sampled Jacobians, faces of boxes,
iterated steps, integrated solutions, matrix exponentials, numerical ranks, on graphs with isolated nodes, self-loops,
weights and one-way edges. It shares no code with the modules that decide.

Numbers in [trust.json](trust.json), this page by `python -m tests.adversary.page`.
"""
MEANING = """
*held*: the attempt to refute failed. *undecided*: the tool said so. *refused*: the question does not apply, with a
documented error. *refuted*: the answer is wrong, with a witness. *timeout*: no answer within ten seconds. *error*: any
other exception.
"""


def numbers(summary: Summary, command: str, history: str = "") -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "command": command, "history": history,
        "systems": summary.systems, "asked": summary.asked, "decided": summary.decided,
        "refuted": summary.total(REFUTED), "error_rate": summary.error_rate, "families": summary.counts,
        "refutations": [outcome.to_dict() for outcome in summary.refuted],
    }  # fmt: skip


def page(summary: Summary, command: str, history: str = "") -> str:
    """The page as Markdown."""
    head = ["family", "asked", "held", "undecided", "refused", "refuted", "timeouts", "errors"]
    table = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    table += ["| " + " | ".join(row) + " |" for row in summary.rows()]
    rate = (
        f"{summary.total(REFUTED)} of {summary.decided} decided answers were refuted, {100 * summary.error_rate:.3g} %."
    )
    told = ["", history] if history else []
    return "\n".join([HEAD, f"`{command}`: {summary.systems} systems. {rate}", *told, "", *table, MEANING])


def main(arguments: list[str] | None = None) -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary.page", description=__doc__)
    parser.add_argument("results", type=Path, help="json lines of `python -m tests.adversary`")
    parser.add_argument("--command", default="make test-deep", help="the command the results came from")
    parser.add_argument("--history", default="", help="what a reader must know of how the results came about")
    parser.add_argument("--docs", type=Path, default=DOCS)
    options = parser.parse_args(arguments)
    summary = Summary.of(resumed(options.results).values())
    text = json.dumps(numbers(summary, options.command, options.history), indent=1) + "\n"
    (options.docs / "trust.json").write_text(text, encoding="utf-8")
    (options.docs / "trust.md").write_text(page(summary, options.command, options.history), encoding="utf-8")


if __name__ == "__main__":
    main()
