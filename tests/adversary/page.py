"""trust.json and trust.md from results: `python -m tests.adversary.page runs/adversary.jsonl`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from tests.adversary.outcome import REFUTED, Outcome
from tests.adversary.runner import resumed
from tests.adversary.summary import HEAD, Summary
from tests.paths import ROOT

NUMBERS, PAGE = ROOT / "studies" / "results" / "trust.json", ROOT / "docs" / "measured" / "trust.md"
METHOD = """
## How answers are attacked

The adversary (`tests/adversary/`) draws systems from the whole language, with assumptions of every kind, and asks the
questions of [answers](../mathematics/answers.md). It checks each answer with numpy, scipy and mpmath alone: sampled
Jacobians, faces of boxes, iterated steps, integrated solutions, matrix exponentials and numerical ranks, on graphs with
isolated nodes, self-loops, weights and one-way edges. It shares no code with the modules that decide.
"""
#: What each round found, and what was changed.
HISTORY = """\
## Large rounds

28 answers were wrong in rounds 1 to 3, none since; smaller rounds are among the [tests](tests.md). Each wrong answer led to a fix for the whole class of questions it came from, and to a test.

| round | systems | answers | called refuted | wrong | faults found |
|---|---:|---:|---:|---:|---|
| 1 | 20,000 | | 43 | 11 | step limits from slopes at kinks (7); speed changed by a factor that may be zero (2); a constant that divides by zero for one coefficient (1); a sign overridden by a hypothesis (1) |
| 2 | 5,105 | 13,381 | 10 | 6 | perturbations at kinks (2); states and faces that are not real for some coefficients (3); a solver that called a possible case impossible (1) |
| 3 | 4,044 | 10,570 | 17 | 11 | kinks (3); proofs that no box is invariant, for a value of the mask they exclude (4); filter classes that looked only at the ratio of two coefficients (3); a box without its condition on the start (1) |
| 4 | 2,233 | 5,643 | 0 | 0 | |
| 5 | 1,500 | 4,268 | 0 | 0 | |
| 6 | 5,000 | 4,511 decided | 5 | 0 | one crash of the tool |
| 7 | 5,000 | 5,000, 4,520 decided | 1 | 0 | the search for certificates stopped at a zero denominator, with an error (2) |

The other refutations were the adversary's own mistakes, mostly rounding; one answer could be read in two ways. The
wrong answer of the solver in round 2 came from z3 4.15, which leaves coefficients out of its projections. Since then
every coefficient is kept, and another solver is asked to confirm every proof. Round 3 ran before the fixes of round 2;
round 4 added learned functions. In round 7 one of 4,520 decided answers was called refuted, a blow-up at t = 8e17: the
adversary had integrated to t = 1000, as always. It now takes the time from the integral of dh/h'. Asked again, it found
nothing against the answer, which the table above counts as held; its nine errors are those of the first run."""  # noqa: E501
#: Who checks what.
CHECKS = """
## What is checked by whom

z3 decides each obligation behind an answer and cvc5 is asked to confirm each proof; `rdgraph-check`, a program of the
standard library alone, checks an obligation without either of them where a certificate holds a proof or a rational
point. The adversary checks whole answers by numbers, and so also that a question became the right obligations.
On trust remain rdgraph and sympy for that step where no sampled number contradicts it, z3 for obligations without a
certificate that cvc5 does not confirm, and the interval arithmetic of answers that say they rest on it, also where a
rational point gives values of functions only within bounds.
"""
#: The questions of a family, as the first column of the table.
QUESTIONS = {
    "boxes": "Which boxes are invariant?",
    "conservation": "What is conserved, does the energy decay?",
    "equivalence": "Are two systems equal?",
    "existence": "Do solutions exist, for how long?",
    "flows": "What is the exact flow?",
    "forms": "Do equal forms get the same answers?",
    "identifiability": "Which coefficients are identifiable?",
    "lipschitz": "What are the Lipschitz constants?",
    "preflight": "Is a run safe?",
    "responses": "What is the filter response?",
    "state_conditions": "Which steady states exist for which coefficients?",
    "states": "What are the steady states?",
    "steps": "Which steps are safe?",
}
MEANING = """
*held*: the attempt to refute the answer failed. *undecided*: rdgraph answered "undecided". *refused*: the question does
not apply, with a documented error. *refuted*: the answer is wrong, with a witness. *timeout*: no answer within ten
seconds, unless the command names another limit. *error*: any other exception. *obligations*: statements about real
numbers behind the answers that held. *checked*: the share that `rdgraph-check` accepts, without a solver.
"""


def second_engine(measured: Mapping[str, Any]) -> str:
    """The section on how many proofs of z3 another solver confirms."""
    systems, claims = measured["systems"], measured["claims"]
    return (
        "## A second engine\n\n"
        f"Every proof of z3 is put to cvc5 {measured['cvc5']} as well, where needed without quotients. "
        f"For {systems['count']} systems of the adversary "
        f"it confirmed {systems['confirmed']} of {systems['proofs']} proofs "
        f"({100 * systems['confirmed'] / systems['proofs']:.3g} %), for the registered claims {claims['confirmed']} of "
        f"{claims['proofs']}; the others it did not decide within {measured['seconds']:g} s of processor time. "
        f"Contradictions: {measured['contradictions']}. `{measured['command']}`"
    )


def numbers(summary: Summary, command: str, engines: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The numbers that are stored: of a run, and of what `tests.rdgraph.reals.confirmations` measured."""
    return {
        "command": command, "systems": summary.systems, "asked": summary.asked, "decided": summary.decided,
        "refuted": summary.total(REFUTED), "error_rate": summary.error_rate, "families": summary.counts,
        "refutations": [outcome.to_dict() for outcome in summary.refuted], "engines": engines,
    }  # fmt: skip


def page(stored: Mapping[str, Any]) -> str:
    """The page as Markdown, from the stored numbers alone."""
    summary = Summary(stored["systems"], stored["families"], tuple(Outcome(**o) for o in stored["refutations"]))
    table = ["| " + " | ".join(HEAD) + " |", "|---" + "|---:" * (len(HEAD) - 1) + "|"]
    table += ["| " + " | ".join([QUESTIONS.get(name, name), *row]) + " |" for name, *row in summary.rows()]
    refuted = summary.total(REFUTED)
    most = binomtest(refuted, max(summary.decided, 1)).proportion_ci(0.95, "exact").high
    answer = (
        f"**{refuted} of {summary.decided} decided answers were refuted, {100 * summary.error_rate:.3g} %** (95 % "
        f"interval up to {100 * most:.2g} %), in the latest round, which asked the symbolic core about "
        f"{summary.systems} systems. Refutations that were the adversary's own mistakes are [listed](#large-rounds)."
        + (f" Certificates: {summary.certificates}." if summary.certificates else "")
    )
    origin = (
        f"## Provenance\n\n`{stored['command']}`. Numbers: [trust.json](../../studies/results/trust.json); this page: "
        "`python -m tests.adversary.page`.\n"
    )
    second = [second_engine(stored["engines"]), ""] if stored["engines"] else []
    top = ["# Trust", "", "How often was an answer wrong when an independent adversary tried to refute it?", ""]
    explained = [MEANING, CHECKS.strip(), "", METHOD.strip(), ""]
    return "\n".join([*top, answer, "", *table, *explained, *second, HISTORY, "", origin])


def write(stored: Mapping[str, Any], numbers_path: Path = NUMBERS, page_path: Path = PAGE) -> None:
    """Write both files."""
    numbers_path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    page_path.write_text(page(stored), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Write both files; what was measured of the second engine is kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary.page", description=__doc__)
    parser.add_argument("results", type=Path, help="json lines of `python -m tests.adversary`")
    parser.add_argument("--command", default="make test-deep", help="the command the results came from")
    parser.add_argument("--numbers", type=Path, default=NUMBERS, help="trust.json")
    parser.add_argument("--page", type=Path, default=PAGE, help="trust.md")
    options = parser.parse_args(arguments)
    summary = Summary.of(resumed(options.results).values())
    kept = options.numbers
    engines = json.loads(kept.read_text(encoding="utf-8"))["engines"] if kept.is_file() else None
    write(numbers(summary, options.command, engines), kept, options.page)


if __name__ == "__main__":
    main()
