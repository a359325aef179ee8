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
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

from rich.progress import track

from rdgraph.check_certificate import check
from rdgraph.reals import second_engine
from rdgraph.reals.basis import BOTH
from rdgraph.reals.certificates import certified
from rdgraph.reals.judge import Record, recorded, statistics
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
    claims, systems = _proofs(_decide_claims), _proofs(lambda: _ask_about(options.count, options.seed))
    measured = {
        "command": f"python -m tests.rdgraph.reals.confirmations --count {options.count} --seed {options.seed}",
        "cvc5": version("cvc5"), "seconds": second_engine.SECONDS,
        "claims": claims, "systems": {"count": options.count, **systems}, "contradictions": statistics.contradictions,
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


def _proofs(work: Callable[[], Iterator[tuple[str, Record]]]) -> dict[str, Any]:
    """The new proofs of some work: how many were confirmed, and how many obligations and answers were checked."""
    before = Counter(statistics.proofs)
    counts: dict[str, Counter[str]] = {}
    began = process_time()
    checking = 0.0
    for question, asked in work():
        made = certified({}, asked)
        start = process_time()
        checked, missing = check(made)
        checking += process_time() - start
        part = counts.setdefault(question, Counter())
        part["obligations"] += checked + missing
        part["checked"] += checked
        part["answers"] += checked + missing > 0
        part["answers_checked"] += checked > 0 and missing == 0
    proofs = {engines: count - before[engines] for engines, count in statistics.proofs.items() if engines}
    return {
        "proofs": sum(proofs.values()), "confirmed": proofs.get(BOTH, 0), **sum(counts.values(), Counter[str]()),
        "seconds_proving": round(process_time() - began - checking, 2), "seconds_checking": round(checking, 2),
        "by_question": {question: dict(part) for question, part in sorted(counts.items())},
    }  # fmt: skip


def _decide_claims() -> Iterator[tuple[str, Record]]:
    """What every claim rests on."""
    for statement in select("all"):
        with recorded() as asked:
            verify(statement.id)
        yield "claim", asked


def _ask_about(count: int, seed: int) -> Iterator[tuple[str, Record]]:
    """What every answer about systems of the adversary rests on, with its question."""
    for index in track(range(count), "asking about systems"):
        drawn, questions = suite.planned(seed, index, (), 3)
        decided = []
        for question in questions:
            # what is undecided or refused rests on nothing
            with suppress(Exception), recorded() as asked:
                answers.ask(drawn.text, question)
                decided.append((question.name, asked))
        yield from decided


if __name__ == "__main__":
    raise SystemExit(main())
