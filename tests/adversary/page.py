"""trust.json and trust.md from results: `python -m tests.adversary.page runs/adversary.jsonl`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.adversary.outcome import REFUTED
from tests.adversary.runner import resumed
from tests.adversary.summary import Summary
from tests.paths import ROOT

HEAD = """# Trust

How often the answers of the symbolic core were wrong when somebody tried to refute them. The adversary
(`tests/adversary/`) draws systems from the whole language with assumptions of every kind, asks the questions of
[answers](../mathematics/answers.md), and checks what comes back with numpy, scipy and mpmath alone: sampled
Jacobians, faces of boxes, iterated steps, integrated solutions, matrix exponentials, numerical ranks, on graphs with
isolated nodes, self-loops, weights and one-way edges. It shares no code with the modules that decide.

Numbers in [trust.json](../../studies/results/trust.json), this page by `python -m tests.adversary.page`.
"""
#: What earlier rounds found, and what came of it.
HISTORY = """\
What this table is worth depends on what was found before it. In a first round 43 answers about 20,000 systems were
called refuted. Looked at one by one, 11 of them were wrong: step limits from slopes at states where the equation has a
kink (7, one through preflight), a change of speed by a factor that may be zero (2), a Lipschitz constant whose formula
divides by zero at one value of a coefficient (1), a sign that was stated and then overridden by a hypothesis (1). The
other 32 were faults of the adversary itself, such as a radius drawn twice for one box, a coefficient of zero that is
divided by, and rounding.

In a second round, about 5,105 other systems (seed 11) and with questions about steady states that the first had not
asked, 10 of 13,381 decided answers were called refuted, and 10 more questions ended in an error. 6 of the 10 were
wrong: what becomes of deviations from a state at a kink, where the mean of both slopes was taken for the slope (2);
states and faces of boxes that are no real numbers for some of the admitted coefficients, an inverse cosine of more
than one, a logarithm of a negative number, a division by a coefficient that may be zero (3); and a box that is left
for some coefficients, which the solver for real algebra had called impossible (1): z3 4.15 leaves coefficients out of
its projections, so that since then all of them are kept and every proof has to be found in two ways. The other 4 were
faults of the adversary: differences of exponentials that rounding had changed, now computed with 120 digits (2), and
a slope of its own choice at a kink (2). Of the errors 4 were the tool's and 6 the adversary's. All were mended, each
in the whole class of questions it came from, and each has a test.

In a third round, about 4,044 systems (seed 13) asked before the second was mended, 17 of 10,570 decided answers were
called refuted. 11 of them were wrong: kinks as in the second round (3); a proof that every box is left, with a value
of the mask that it does not hold for (4); filter classes in two letters where only their ratio was looked at, although
the coefficients have different degrees in them (3); a box of regular graphs that left out for which starts it holds
(1). 5 were faults of the adversary: rounding (2), a mixing matrix that the answer takes to be the identity (2), its own
slope at a kink (1). One is a matter of reading: a step limit at a state that is not defined where a letter is zero.

A fourth round, about 2,233 systems (seed 17) asked when the second round was mended and the last three of the third
were not, had learned functions among its systems. None of its 5,643 decided answers was refuted; its 15 errors were the
adversary's own, which could not evaluate such functions with many digits.

The table is of 1,500 further systems (seed 29), asked when all of this was mended. One question ended in an error at
first, an interrupt that arrived while z3 read an argument; that was mended, and the question asked again."""
MEANING = """
*held*: the attempt to refute failed. *undecided*: the tool said so. *refused*: the question does not apply, with a
documented error. *refuted*: the answer is wrong, with a witness. *timeout*: no answer within the limit, ten seconds
unless the command says another. *error*: any other exception.
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
    parser.add_argument("--history", default=HISTORY, help="what a reader must know of how the results came about")
    parser.add_argument("--results", type=Path, default=ROOT / "studies" / "results", dest="folder")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "measured")
    options = parser.parse_args(arguments)
    summary = Summary.of(resumed(options.results).values())
    text = json.dumps(numbers(summary, options.command, options.history), indent=1) + "\n"
    (options.folder / "trust.json").write_text(text, encoding="utf-8")
    (options.docs / "trust.md").write_text(page(summary, options.command, options.history), encoding="utf-8")


if __name__ == "__main__":
    main()
