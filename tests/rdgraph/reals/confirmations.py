"""How many proofs of z3 does cvc5 confirm, and how many are checked without a solver?

python -m tests.rdgraph.reals.confirmations --count 150 --seed 101 writes the numbers to trust.json and their section to
trust.md.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rdgraph.check_certificate import check
from rdgraph.reals import second_engine
from rdgraph.reals.basis import BOTH
from rdgraph.reals.certificates import certified
from rdgraph.reals.judge import Obligation, recorded, statistics
from rdgraph.reports.claims import select, verify
from tests.adversary import answers, suite
from tests.adversary.page import second_engine as section_of
from tests.paths import ROOT

NUMBERS, PAGE = ROOT / "studies" / "results" / "trust.json", ROOT / "docs" / "measured" / "trust.md"
SECTION = re.compile(r"## A second engine\n.*?\n(?=## Earlier)", re.DOTALL)


def main(arguments: list[str] | None = None) -> int:
    """Measure and write; the exit code is 1 where the engines contradict each other."""
    parser = argparse.ArgumentParser(prog="python -m tests.rdgraph.reals.confirmations", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="number of systems")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--numbers", type=Path, default=NUMBERS, help="trust.json")
    parser.add_argument("--page", type=Path, default=PAGE, help="trust.md")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    measured = {
        "command": f"python -m tests.rdgraph.reals.confirmations --count {options.count} --seed {options.seed}",
        "cvc5": version("cvc5"), "seconds": second_engine.SECONDS,
        "claims": _proofs(_decide_claims),
        "systems": {"count": options.count, **_proofs(lambda: _ask_about(options.count, options.seed))},
        "contradictions": statistics.contradictions,
    }  # fmt: skip
    write_section(measured, options.numbers, options.page)
    return 1 if statistics.contradictions else 0


def write_section(measured: dict[str, Any], numbers: Path, page: Path) -> None:
    """Replace what both files say about the second engine."""
    stored = json.loads(numbers.read_text(encoding="utf-8"))
    numbers.write_text(json.dumps({**stored, "engines": measured}, indent=1) + "\n", encoding="utf-8")
    text = SECTION.sub("", page.read_text(encoding="utf-8"))
    section = f"{section_of(measured)}\n\n"
    page.write_text(text.replace("## Earlier rounds", f"{section}## Earlier rounds", 1), encoding="utf-8")


def _proofs(work: Callable[[], list[list[Obligation]]]) -> dict[str, int]:
    """The new proofs of some work: how many were confirmed, and how many obligations and answers have a certificate."""
    before = Counter(statistics.proofs)
    answered = work()
    proofs = {engines: count - before[engines] for engines, count in statistics.proofs.items() if engines}
    checked = [check(certified({}, asked)) for asked in answered]
    return {
        "proofs": sum(proofs.values()), "confirmed": proofs.get(BOTH, 0),
        "obligations": sum(map(sum, checked)), "checked": sum(count for count, _ in checked),
        "answers": sum(count + missing > 0 for count, missing in checked),
        "answers_checked": sum(count > 0 and missing == 0 for count, missing in checked),
    }  # fmt: skip


def _decide_claims() -> list[list[Obligation]]:
    """The obligations of every claim."""
    asked = []
    for statement in select("all"):
        with recorded() as obligations:
            verify(statement.id)
        asked.append(obligations)
    return asked


def _ask_about(count: int, seed: int) -> list[list[Obligation]]:
    """The obligations of every decided answer."""
    asked = []
    for index in range(count):
        drawn, questions = suite.planned(seed, index, (), 3)
        for question in questions:
            # only the questions to the solver matter here
            with suppress(Exception), recorded() as obligations:
                answers.ask(drawn.text, question)
                asked.append(obligations)
    return asked


if __name__ == "__main__":
    raise SystemExit(main())
