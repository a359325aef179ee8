"""python -m tests.adversary --count 20000 --seed 7 --jobs 2 --out runs/adversary.jsonl --resume"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.adversary.runner import Plan, Record, resumed, run
from tests.adversary.suite import FAMILIES
from tests.adversary.summary import Summary


def main(arguments: list[str] | None = None) -> int:
    """Run the adversary; the exit code is 1 where an answer was refuted."""
    options = _options(arguments)
    plan = Plan(
        options.count, options.seed, tuple(options.family), options.questions, options.seconds,
        certificates=options.certificates,
    )  # fmt: skip
    earlier = {i: r for i, r in resumed(options.out).items() if i < plan.count} if options.resume else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    records = list(earlier.values())
    start = time.monotonic()
    _rewrite(options.out, records)
    with options.out.open("a") as file:
        for record in run(plan, options.jobs, skip=frozenset(earlier)):
            records.append(record)
            file.write(record.line() + "\n")
            file.flush()
            _show_progress(records, plan.count, len(records) - len(earlier), time.monotonic() - start)
    summary = Summary.of(records)
    sys.stderr.write("\n")
    print("\n\n".join([*map(str, summary.refuted), str(summary)]))
    return 1 if summary.refuted else 0


def _rewrite(path: Path, records: list[Record]) -> None:
    """The file with these records alone; a run that is cut short here loses nothing."""
    beside = path.with_suffix(".part")
    beside.write_text("".join(record.line() + "\n" for record in records))
    beside.replace(path)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="number of systems")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--questions", type=int, default=3, help="questions put to each system")
    parser.add_argument("--seconds", type=float, default=10.0, help="after which an answer counts as a timeout")
    parser.add_argument("--family", action="append", default=[], choices=sorted(FAMILIES), help="only these families")
    parser.add_argument("--certificates", action="store_true", help="check the certificate of every decided answer")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/adversary.jsonl"), help="results, one json line a system"
    )
    parser.add_argument("--resume", action="store_true", help="keep what the file already holds")
    return parser.parse_args(arguments)


def _show_progress(records: list[Record], count: int, done: int, seconds: float) -> None:
    refuted = sum(o.status == "refuted" for o in records[-1].outcomes)
    if not (sys.stderr.isatty() or refuted or len(records) % 100 == 0):
        return
    share = len(records) / count
    left = seconds / done * (count - len(records))
    bar = "#" * round(30 * share)
    end = "\r" if sys.stderr.isatty() else os.linesep
    sys.stderr.write(f"[{bar:<30}] {len(records)}/{count}, about {left / 60:.0f} min left{end}")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
