"""trust.json and trust.md from results: `python -m tests.adversary.page runs/adversary.jsonl`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.adversary.outcome import REFUTED
from tests.adversary.runner import resumed
from tests.adversary.summary import Summary
from tests.paths import ROOT

METHOD = """
## How answers are attacked

The adversary (`tests/adversary/`) draws systems from the whole language, with assumptions of every kind, and asks the
questions of [answers](../mathematics/answers.md). It checks each answer with numpy, scipy and mpmath alone: sampled
Jacobians, faces of boxes, iterated steps, integrated solutions, matrix exponentials and numerical ranks, on graphs with
isolated nodes, self-loops, weights and one-way edges. It shares no code with the modules that decide.
"""
#: What earlier rounds found, and what was changed.
HISTORY = """\
## Earlier rounds

Each wrong answer led to a fix for the whole class of questions it came from, and to a test.

| round | systems | answers | called refuted | wrong | what was wrong |
|---|---:|---:|---:|---:|---|
| 1 | 20,000 | | 43 | 11 | step limits from slopes at kinks (7); speed changed by a factor that may be zero (2); a constant that divides by zero for one coefficient (1); a sign overridden by a hypothesis (1) |
| 2 | 5,105 | 13,381 | 10 | 6 | perturbations at kinks (2); states and faces that are not real for some coefficients (3); a solver that called a possible case impossible (1) |
| 3 | 4,044 | 10,570 | 17 | 11 | kinks (3); proofs that no box is invariant, for a value of the mask they exclude (4); filter classes that looked only at the ratio of two coefficients (3); a box without its condition on the start (1) |
| 4 | 2,233 | 5,643 | 0 | 0 | |
| 5 | 1,500 | 4,268 | 0 | 0 | |

The other refutations were the adversary's own mistakes, mostly rounding; one answer could be read in two ways. The
wrong answer of the solver in round 2 came from z3 4.15, which leaves coefficients out of its projections. Since then
every coefficient is kept, and another solver is asked to confirm every proof. Round 3 ran before the fixes of round 2; round 4
added learned functions."""  # noqa: E501
MEANING = """
*held*: the attempt to refute the answer failed. *undecided*: rdgraph answered "undecided". *refused*: the question does
not apply, with a documented error. *refuted*: the answer is wrong, with a witness. *timeout*: no answer within ten
seconds, unless the command names another limit. *error*: any other exception.
"""


def second_engine(measured: Mapping[str, Any]) -> str:
    """The section on how many proofs of z3 another solver confirms."""
    systems, claims = measured["systems"], measured["claims"]
    checking, proving = (systems[part] + claims[part] for part in ("seconds_checking", "seconds_proving"))
    return (
        "## A second engine\n\n"
        f"Every proof of z3 is put to cvc5 {measured['cvc5']} as well. For {systems['count']} systems of the adversary "
        f"it confirmed {systems['confirmed']} of {systems['proofs']} proofs "
        f"({100 * systems['confirmed'] / systems['proofs']:.3g} %), for the registered claims {claims['confirmed']} of "
        f"{claims['proofs']}; the others it did not decide within {measured['seconds']:g} s of processor time. "
        f"Contradictions: {measured['contradictions']}.\n\n"
        "## Without a solver\n\n"
        "`rdgraph-check` checks certificates with fractions alone: a proof for each obligation that cannot hold, a "
        f"rational point for each one that can. Of {claims['obligations']} obligations behind the claims it checked "
        f"{claims['checked']}, of {systems['obligations']} behind the adversary's decided answers {systems['checked']} "
        f"({100 * systems['checked'] / systems['obligations']:.3g} %); {systems['answers_checked']} of "
        f"{systems['answers']} answers with obligations were checked in full. Checking takes "
        f"{checking:.3g} s of processor time, deciding and proving {proving:.3g} s. That a question became the right "
        "obligations is not checked: this rests on rdgraph, sympy and the adversary above.\n\n"
        f"{_by_question(measured)}\n\n`{measured['command']}`"
    )


def _by_question(measured: Mapping[str, Any]) -> str:
    """The share of obligations that are checked without a solver, question by question."""
    lines = ["| question | answers | obligations | checked | % |", "|---|---:|---:|---:|---:|"]
    for question, part in {**measured["claims"]["by_question"], **measured["systems"]["by_question"]}.items():
        if part["obligations"]:
            share = 100 * part["checked"] / part["obligations"]
            counted = (part["answers"], part["obligations"], part["checked"])
            lines.append(f"| {question} | {' | '.join(map(str, counted))} | {share:.3g} |")
    return "\n".join(lines)


def numbers(
    summary: Summary, command: str, history: str = "", engines: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The numbers of a run that are stored."""
    return {
        "engines": engines,
        "command": command, "history": history,
        "systems": summary.systems, "asked": summary.asked, "decided": summary.decided,
        "refuted": summary.total(REFUTED), "error_rate": summary.error_rate, "families": summary.counts,
        "refutations": [outcome.to_dict() for outcome in summary.refuted],
    }  # fmt: skip


def page(summary: Summary, command: str, history: str = "", engines: Mapping[str, Any] | None = None) -> str:
    """The page as Markdown."""
    head = ["family", "asked", "held", "undecided", "refused", "refuted", "timeouts", "errors"]
    table = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    table += ["| " + " | ".join(row) + " |" for row in summary.rows()]
    answer = (
        f"**{summary.total(REFUTED)} of {summary.decided} decided answers were refuted, "
        f"{100 * summary.error_rate:.3g} %**, in the latest round, which asked the symbolic core about "
        f"{summary.systems} systems."
        + (f" Behind these answers, {summary.certificates}." if summary.certificates else "")
    )
    origin = (
        f"## Provenance\n\n`{command}`. Numbers: [trust.json](../../studies/results/trust.json); this page: "
        "`python -m tests.adversary.page`.\n"
    )
    second = [second_engine(engines), ""] if engines else []
    earlier = [history, ""] if history else []
    top = ["# Trust", "", "How often was an answer wrong when an independent adversary tried to refute it?", ""]
    return "\n".join([*top, answer, "", *table, MEANING, METHOD.strip(), "", *second, *earlier, origin])


def main(arguments: list[str] | None = None) -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary.page", description=__doc__)
    parser.add_argument("results", type=Path, help="json lines of `python -m tests.adversary`")
    parser.add_argument("--command", default="make test-deep", help="the command the results came from")
    parser.add_argument("--history", default=HISTORY, help="Markdown about earlier rounds")
    parser.add_argument("--results", type=Path, default=ROOT / "studies" / "results", dest="folder")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "measured")
    options = parser.parse_args(arguments)
    summary = Summary.of(resumed(options.results).values())
    kept = options.folder / "trust.json"
    engines = json.loads(kept.read_text(encoding="utf-8")).get("engines") if kept.is_file() else None
    text = json.dumps(numbers(summary, options.command, options.history, engines), indent=1) + "\n"
    kept.write_text(text, encoding="utf-8")
    whole = page(summary, options.command, options.history, engines)
    (options.docs / "trust.md").write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    main()
