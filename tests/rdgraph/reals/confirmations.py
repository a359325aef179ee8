"""How many proofs of z3 does cvc5 confirm, behind the claims and behind answers about systems of the adversary?

python -m tests.rdgraph.reals.confirmations --count 150 --seed 101 writes the numbers to trust.json and renews trust.md.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from rich.progress import track

from rdgraph.reals import second_engine
from rdgraph.reals.basis import BOTH
from rdgraph.reals.judge import statistics
from rdgraph.reports.claims import select, verify
from tests.adversary import answers, suite
from tests.adversary.page import NUMBERS, PAGE, write


def main(arguments: list[str] | None = None) -> int:
    """Measure and write; the exit code is 1 where the engines contradict each other."""
    parser = argparse.ArgumentParser(prog="python -m tests.rdgraph.reals.confirmations", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="number of systems")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--numbers", type=Path, default=NUMBERS, help="trust.json")
    parser.add_argument("--page", type=Path, default=PAGE, help="trust.md")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    claims = _proofs(_decide_claims)
    systems = _proofs(lambda: _ask_about(options.count, options.seed))
    measured = {
        "command": f"python -m tests.rdgraph.reals.confirmations --count {options.count} --seed {options.seed}",
        "cvc5": version("cvc5"), "seconds": second_engine.SECONDS,
        "claims": claims, "systems": {"count": options.count, **systems}, "contradictions": statistics.contradictions,
    }  # fmt: skip
    stored = json.loads(options.numbers.read_text(encoding="utf-8"))
    write({**stored, "engines": measured}, options.numbers, options.page)
    return 1 if statistics.contradictions else 0


def _proofs(work: Callable[[], None]) -> dict[str, int]:
    """The new proofs of some work, and how many of them were confirmed."""
    before = Counter(statistics.proofs)
    work()
    proofs = {engines: count - before[engines] for engines, count in statistics.proofs.items() if engines}
    return {"proofs": sum(proofs.values()), "confirmed": proofs.get(BOTH, 0)}


def _decide_claims() -> None:
    for statement in track(select("all"), "deciding the claims"):
        verify(statement.id)


def _ask_about(count: int, seed: int) -> None:
    """Ask the questions of systems of the adversary; what is undecided or refused rests on nothing."""
    for index in track(range(count), "asking about systems"):
        drawn, questions = suite.planned(seed, index, (), 3)
        for question in questions:
            with suppress(Exception):
                answers.ask(drawn.text, question)


if __name__ == "__main__":
    raise SystemExit(main())
