"""What does a formula cost in place of a learned function? `python -m studies.benchmarks.distilled --device cuda`.

Each of the nine data sets with the settings that were published for GREAD-BS, its equation -alpha*L@H + phi(H): trained
with phi as a spline, put into a formula, trained again with the formula on the same splits and seeds. Writes
docs/distilled.json after every set, and goes on where it was left; `python -m studies.benchmarks.distil_page` puts the
table into docs/distil.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.node_data import NodeData
from gread.formulas.distilled_network import MAX_SIZE, TOLERANCE, distil
from gread.settings.config import Config
from gread.settings.presets import find_preset
from gread.settings.trials import make_trials
from gread.training.trainer import choose_device, train
from studies.benchmarks.cell_file import measure_cells, missing_cells, read_cells
from studies.benchmarks.compared import SETS
from studies.benchmarks.speed_rows import environment
from studies.runs.boundary import run_program

#: The column that says which function was learned, and that of every row.
KEY, FUNCTION = "function", "phi"
EQUATION = "-alpha*L@H + phi(H)"
DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Points of accuracy that a formula may cost.
MOST_LOST = 0.5


@dataclass(frozen=True)
class DistilledRow:
    """One data set: test accuracies in percent with the function and with its formula, and the loss with its interval.

    `formula` is empty where none of the size was within the tolerance; then nothing was trained with it.
    """

    function: str
    dataset: str
    learned: float
    formula_accuracy: float | None
    lost: float | None
    low: float | None
    high: float | None
    formula: str
    answer: str
    size: int | None
    relative_error: float | None
    existence: str
    learned_each: tuple[float, ...]
    formula_each: tuple[float, ...]
    settings: dict[str, dict[str, Any]]
    seconds: float


def configuration(dataset: str, epochs: int | None = None) -> Config:
    """The published settings of GREAD-BS on a data set, with the learned function in its equation."""
    config = find_preset("paper", "BS", dataset).config.updated({"reaction": EQUATION})
    return config if epochs is None else replace(config, training=replace(config.training, epochs=epochs))


def measure(
    name: str, dataset: str, data: NodeData, device: str, splits: Sequence[int] | None = None, epochs: int | None = None
) -> DistilledRow:
    """Train, distil and train again, on all splits with one seed."""
    began = time.monotonic()
    config = configuration(dataset, epochs)
    chosen = range(data.num_splits) if splits is None else splits
    done = train(data, make_trials(config, chosen), device=device)
    found = distil(done, function=name, tolerance=TOLERANCE, max_size=MAX_SIZE, device=device)
    low, high = found.interval
    formula, after = found.search.formula, found.after
    lives = next((proof.text for proof in found.proofs if proof.topic == "existence"), "")
    return DistilledRow(
        name, dataset, 100 * float(found.before.mean()), None if after is None else 100 * float(after.mean()),
        None if after is None else found.lost, None if np.isnan(low) else low, None if np.isnan(high) else high,
        "" if formula is None else formula.text, found.search.answer_for("split"),
        None if formula is None else formula.size, None if formula is None else formula.relative_error, lives,
        tuple(round(100 * float(a), 4) for a in found.before),
        () if after is None else tuple(round(100 * float(a), 4) for a in after), config.sections(),
        time.monotonic() - began,
    )  # fmt: skip


def told(row: DistilledRow) -> str:
    """A row in a line."""
    if row.formula_accuracy is None:
        return f"{row.learned:.2f}, {row.answer}, {row.seconds:.1f} s"
    return f"{row.learned:.2f} -> {row.formula_accuracy:.2f} with {row.formula}, {row.seconds:.1f} s"


def _none(row: Mapping[str, Any]) -> str:
    """That there is no formula. Rows of before held the means of its constants, to which the error does not belong.

    >>> _none({"answer": "no formula; the nearest leaves 14 %: 0.5*H - 0.1", "learned_each": [41.0, 40.0]})
    'no formula; the nearest leaves 14 % with constants of every split; the means of these stand in 0.5*H - 0.1'
    """
    answer, several = str(row["answer"]), len(row["learned_each"]) > 1
    return (
        answer.replace(" %: ", " % with constants of every split; the means of these stand in ") if several else answer
    )


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The table of the page, and how many sets lose little.

    >>> print(page([{"dataset": "texas", "learned": 80.0, "formula_accuracy": 79.8, "lost": 0.2, "low": -1.0,
    ...     "high": 1.4, "formula": "gamma*H", "size": 5, "relative_error": 0.02, "answer": "gamma*H"}]))
    | data set | with phi | with the formula | lost, 95 % | formula | size | misses |
    |---|---|---|---|---|---|---|
    | texas | 80.00 | 79.80 | 0.20 [-1.00, 1.40] | `gamma*H` | 5 | 2.0 % |
    <BLANKLINE>
    At most 0.5 points lost on 1 of 1 data sets.
    """
    lines = [
        "| data set | with phi | with the formula | lost, 95 % | formula | size | misses |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["formula_accuracy"] is None:
            lines.append(f"| {row['dataset']} | {row['learned']:.2f} | | | {_none(row)} | | |")
            continue
        around = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
        lines.append(
            f"| {row['dataset']} | {row['learned']:.2f} | {row['formula_accuracy']:.2f} | {row['lost']:.2f}{around} "
            f"| `{row['formula']}` | {row['size']} | {100 * row['relative_error']:.1f} % |"
        )
    good = sum(row["lost"] is not None and row["lost"] <= MOST_LOST for row in rows)
    return "\n".join([*lines, "", f"At most {MOST_LOST:g} points lost on {good} of {len(rows)} data sets."])


def main() -> None:
    parser = argparse.ArgumentParser(description="Formulas in place of learned functions on the nine data sets")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME")
    parser.add_argument("--again", action="store_true", help="measure the chosen sets anew")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no set after so many seconds")
    parser.add_argument("--splits", type=int, help="only so many splits")
    parser.add_argument("--epochs", type=int, help="only so many epochs")
    parser.add_argument("--out", type=Path, default=DOCS / "distilled.json")
    given = parser.parse_args()
    found = read_cells(given.out)
    device, sets = choose_device(given.device), given.sets or SETS
    if given.again:
        found["rows"] = [row for row in found["rows"] if row["dataset"] not in sets]
    found["command"] = "python -m studies.benchmarks.distilled --device cuda"
    found["environment"] = environment(device)
    splits = None if given.splits is None else range(given.splits)
    cells = missing_cells(found, KEY, [FUNCTION], sets)
    work = partial(measure, device=device, splits=splits, epochs=given.epochs)
    measure_cells(cells, work, told, given.out, found, given.seconds)


if __name__ == "__main__":
    run_program(main)
