"""How accurate the classifier is with published settings: `python -m studies.benchmarks.accuracy --device cuda`.

Writes docs/accuracy.json, one row per reaction and data set, beside what the paper prints and what the authors' own
code reached; `python -m studies.benchmarks.accuracy_page` turns it into docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gread import load_dataset
from gread.settings.presets import Preset, authors_runs, find_published, presets
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, choose_device, train
from studies.benchmarks.cell_file import checked
from studies.benchmarks.speed_rows import command, environment
from studies.runs.boundary import run_program
from studies.runs.uncertainty import difference_error

KINDS = ("authors", "paper")
DOCS = Path(__file__).resolve().parents[2] / "docs"


@dataclass(frozen=True)
class AccuracyRow:
    """One cell: mean and population standard deviation of the test accuracy over splits and seeds, in percent."""

    preset: str
    reaction: str
    dataset: str
    mean: float
    std: float
    val_mean: float
    by_seed: tuple[float, ...]
    splits: int
    diverged: int
    seconds: float
    paper: float | None
    paper_std: float | None
    authors: float | None
    authors_std: float | None


def difference(mean: float, std: float, splits: int, other: float, other_std: float | None) -> tuple[float, float]:
    """mean - other, and its standard error: both are means over splits with those population standard deviations.

    >>> difference(86.0, 9.0, 10, 85.0, 12.0)
    (1.0, 5.0)
    """
    return mean - other, difference_error(std, splits, other_std or 0.0, splits)


def verdict(gap: float, error: float) -> str:
    """Within two standard errors of the difference, better than that, or below.

    >>> verdict(-1.0, 0.6), verdict(-1.3, 0.6), verdict(2.0, 0.6)
    ('agrees', 'below', 'above')
    """
    return "agrees" if abs(gap) <= 2 * error else "above" if gap > 0 else "below"


def chosen(kind: str, sets: Iterable[str] | None, reactions: Iterable[str] | None) -> list[Preset]:
    """The presets of a kind for some data sets and reactions."""
    return [
        p
        for p in presets()
        if p.name.startswith(f"{kind}/")
        and (sets is None or p.dataset in sets)
        and (reactions is None or p.reaction in reactions)
    ]


def measure(cells: Iterable[Preset], seeds: int, device: str) -> Iterator[AccuracyRow]:
    """Train every cell on all splits with as many seeds."""
    for preset in cells:
        data = load_dataset(preset.dataset)
        done = train(data, make_trials(preset.config, range(data.num_splits), range(seeds)), device=device,
                     keep_best=False)  # fmt: skip
        yield row_of(preset, done, data.num_splits)


def row_of(preset: Preset, done: Trained, splits: int) -> AccuracyRow:
    """A trained cell as a row; the standard deviation is the mean over the seeds of the one over the splits."""
    each = 100 * done.test_accuracy.reshape(-1, splits)
    paper = find_published(f"GREAD-{preset.reaction}", preset.dataset)
    own = authors_runs().get(preset.dataset) if preset.name.startswith("authors/") else None
    return AccuracyRow(
        preset.name.partition("/")[0], preset.reaction, preset.dataset, float(each.mean()),
        float(each.std(axis=1).mean()), float(100 * done.val_accuracy.mean()),
        tuple(round(float(m), 4) for m in each.mean(axis=1)), splits,
        sum(s != "ok" for s in done.status), done.seconds, paper.mean if paper else None,
        paper.std if paper else None, own.mean if own else None, own.std if own else None,
    )  # fmt: skip


def replaced(rows: list[dict[str, Any]], fresh: AccuracyRow) -> list[dict[str, Any]]:
    """The rows with a new one in the place of the old one of its cell."""
    kept = [r for r in rows if (r["reaction"], r["dataset"]) != (fresh.reaction, fresh.dataset)]
    return [*kept, asdict(fresh)]


def run(cells: list[Preset], seeds: int, device: str, out: Path, head: dict[str, Any]) -> None:
    """Measure cells and write the file after each of them."""
    for row in measure(cells, seeds, device):
        print(f"{row.preset} {row.reaction} {row.dataset}: {row.mean:.2f} ± {row.std:.2f}  ({row.seconds:.1f} s)",
              file=sys.stderr, flush=True)  # fmt: skip
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        rows = replaced(found.get(row.preset, {}).get("rows", []), row)
        found[row.preset] = head | {"seeds": seeds, "rows": rows}
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy with published settings")
    parser.add_argument("--preset", choices=KINDS, action="append")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME")
    parser.add_argument("--reaction", action="append", dest="reactions", metavar="NAME")
    parser.add_argument("--out", type=Path, default=DOCS / "accuracy.json")
    given = parser.parse_args()
    device = choose_device(given.device)
    checked(given.sets, sorted({p.dataset for p in presets()}), "data set with published settings")
    checked(given.reactions, sorted({p.reaction for p in presets()}), "reaction with published settings")
    head = {
        "command": command("studies.benchmarks.accuracy", sys.argv[1:]),
        "environment": environment(device),
    }
    for kind in given.preset or KINDS:
        run(chosen(kind, given.sets, given.reactions), given.seeds, device, given.out, head)


if __name__ == "__main__":
    run_program(main)
