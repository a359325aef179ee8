"""docs/searched.md from the measured numbers: `python -m studies.benchmarks.searched_page`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gread.datasets.meta import METRIC_TITLES
from gread.settings.model_records import find_model
from gread.settings.presets import authors_runs, find_published
from studies.benchmarks.cell_file import missing_cells, not_measured
from studies.benchmarks.compared import SETS
from studies.benchmarks.searched import (
    BOUNDED,
    CONTESTANTS,
    FIRST,
    KEY,
    NETWORKS,
    OTHERS,
    REACTIONS,
    TUNED,
    Contestant,
    usual_cells,
)
from studies.cells.corrected_test import CorrectedTest
from studies.runs.boundary import run_program
from studies.runs.chart import FieldMap
from studies.runs.chart_figures import map_figure
from studies.runs.tables import number_text
from studies.runs.uncertainty import FAILS, HOLDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE, PRINTED = DOCS / "searched.json", DOCS / "accuracy.json"
FIGURE = "figures/searched.png"
SHARED_CARD = "other programs may have shared the card, so that a cell alone may take fewer seconds"
ALL_REACTIONS = (*REACTIONS, *BOUNDED)
Cell: TypeAlias = tuple[str, str]
Cells: TypeAlias = dict[Cell, dict[str, Any]]

TITLE = "# Settings chosen on validation nodes"
HEAD = """\
Every cell is a search: as many trials for every contestant of a data set, published settings first, then random ones of
a space, each on all splits of the set, the worse dropped on the way ([search](searching.md)). The trial with the best
mean validation accuracy over the splits is chosen. Test nodes choose nothing; *by test* is what a choice by them would
have claimed, among the trials that were trained to their ends, and is no result. Percent, mean ± population standard
deviation over the splits, one seed. Reactions are drawn from the space `paper`, without its adaptive solver DOPRI5, to
save time; networks from the space `tuned`. On the four sets that are not the paper's, BS stands for the reactions, to
save time as well. Trials have 200 epochs, as in the paper, and 500 on Minesweeper. Minesweeper and Tolokers are
measured, and their trials chosen, by ROC-AUC, as the authors of these sets do. †: trainings with the printed settings
diverged; each has its best epoch until then, 0 where there is none. Numbers and chosen settings in
[searched.json](searched.json), this page by `python -m studies.benchmarks.searched_page`.
"""
BUDGETS = """## Equal budgets

Reaction-diffusion and tuned networks with the same number of trials, epochs and splits. Differences are those of the
test results on the same splits, first minus second, in points, with the standard error of the corrected resampled
t-test (Nadeau and Bengio 2003): splits share their nodes, so the variance of a mean over k of them is taken as
(1/k + n_test/n_train) s². **Bold**: the two-sided p is below 0.05, without a correction for the number of comparisons.
A published row is that of its authors, with their own splits, numbers of epochs and trials."""


# ---------------------------------------------------------------------- numbers
def cells_of(found: dict[str, Any]) -> Cells:
    """The rows by contestant and data set."""
    return {(row["contestant"], row["dataset"]): row for row in found["rows"]}


class Printed(NamedTuple):
    """What printed settings gave here: the mean, and whether trainings diverged."""

    mean: float
    is_diverged: bool


def printed_settings(accuracy: dict[str, Any]) -> dict[Cell, Printed]:
    """What the settings that the paper prints gave here, by reaction and data set."""
    rows = accuracy.get("paper", {}).get("rows", [])
    return {(row["reaction"], row["dataset"]): Printed(row["mean"], row["diverged"] > 0) for row in rows}


def published_mean(contestant: Contestant, dataset: str) -> float | None:
    """What the paper prints for a reaction or a network."""
    method = f"GREAD-{contestant.reaction}" if contestant.reaction else find_model(contestant.model).published
    found = find_published(method, dataset) if method and not contestant.line else None
    return found.mean if found else None


def published_tuned() -> list[dict[str, str]]:
    """Published results of tuned networks, with their sources."""
    text = (files("gread") / "data" / "published_tuned.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def average(values: Iterable[float | None]) -> float | None:
    """The mean, None where a value is missing.

    >>> average([80.0, 90.0]), average([80.0, None])
    (85.0, None)
    """
    known = list(values)
    return fmean(v for v in known if v is not None) if known and None not in known else None


def compared(cells: Cells, own: str, other: str, dataset: str) -> CorrectedTest | None:
    """Two contestants on a data set; None where one is missing, or the budgets differ."""
    first, second = cells.get((own, dataset)), cells.get((other, dataset))
    if first is None or second is None or any(first[name] != second[name] for name in ("trials", "epochs")):
        return None
    own_each, other_each = (dict(enumerate(row["each"])) for row in (first, second))
    return CorrectedTest.of(own_each, other_each, first["test_to_train"])


# ---------------------------------------------------------------------- words
def number(value: float | None, std: float | None = None) -> str:
    return "" if value is None else number_text(value) + ("" if std is None else f" ± {number_text(std)}")


def printed_number(cells: Sequence[Printed | None]) -> str:
    """The mean of printed settings over some sets, marked where trainings diverged.

    >>> printed_number([Printed(80.0, False), Printed(70.0, True)]), printed_number([Printed(80.0, False), None])
    ('75.00†', '')
    """
    known = [cell for cell in cells if cell is not None]
    if len(known) < len(cells):
        return ""
    return number(fmean(cell.mean for cell in known)) + ("†" if any(cell.is_diverged for cell in known) else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown; the first column is text, the others are numbers."""
    return [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1), *(f"| {' | '.join(row)} |" for row in rows)]


def paired(test: CorrectedTest | None) -> str:
    """A difference with its error, bold where it is decided.

    >>> paired(CorrectedTest.of({0: 5.0, 1: 5.5}, {0: 0.0, 1: 0.0}, 0.0)), paired(None)
    ('**+5.25 (0.25)**', '')
    >>> paired(CorrectedTest.of({0: 5.0}, {0: 0.0}, 0.0))
    '+5.00 (-)'
    """
    if test is None:
        return ""
    text = f"{number_text(test.difference, '+z.2f')} ({number_text(test.error)})"
    return f"**{text}**" if test.answer in (HOLDS, FAILS) else text


def present(cells: Cells, contestants: Iterable[Contestant], sets: Sequence[str]) -> list[Contestant]:
    """Those that have a cell on some of the sets."""
    return [c for c in contestants if any((c.name, d) in cells for d in sets)]


# ---------------------------------------------------------------------- the page
def answer(cells: Cells) -> str:
    """Whether reaction-diffusion beats a tuned GCN, and the best mean over the nine sets where all are there."""
    tests = [t for t in (compared(cells, FIRST, TUNED, d) for d in (*SETS, *OTHERS)) if t is not None]
    if not tests:
        return "Nothing is compared yet."
    better, worse = (sum(test.answer == word for test in tests) for word in (HOLDS, FAILS))
    counts = f"on {better} of {len(tests)} sets, worse on {worse}"
    told = f"Under equal budgets {FIRST} is better than a tuned GCN beyond noise {counts}"
    best = _best_reaction(cells)
    if best is None:
        return f"{told}."
    own = f"{told}; {best.title}, the best on the validation nodes, has a mean of {_mean(cells, best):.2f}"
    return f"{own} over the nine sets, where a choice by test would have claimed {_mean(cells, best, 'by_test'):.2f}."


def _mean(cells: Cells, contestant: Contestant, column: str = "mean") -> float:
    """The mean over the nine sets of a contestant that has all of them."""
    return fmean(cells[contestant.name, d][column] for d in SETS)


def _best_reaction(cells: Cells) -> Contestant | None:
    """The reaction with the best mean on the validation nodes over the nine sets, of those that have all of them."""
    complete = [c for c in ALL_REACTIONS if all((c.name, d) in cells for d in SETS)]
    return max(complete, key=lambda c: _mean(cells, c, "val_mean"), default=None)


def reactions_part(cells: Cells, printed: dict[Cell, Printed]) -> list[str]:
    """A table for every one of the nine sets."""
    lines = ["## The reactions on the nine sets", ""]
    for dataset in SETS:
        rows = []
        for c in present(cells, ALL_REACTIONS, [dataset]):
            row = cells[c.name, dataset]
            code = authors_runs().get(dataset) if c.name == FIRST else None
            rows.append([
                c.title, number(row["mean"], row["std"]), number(row["nested"], row["nested_std"]),
                number(published_mean(c, dataset)), number(code.mean if code else None),
                printed_number([printed.get((c.name, dataset))]), number(row["by_test"]),
                number(row["by_test"] - row["mean"]), str(row["trials"]), row["origin"],
            ])  # fmt: skip
        if rows:
            head = [dataset, "by validation", "by validation, on every split for itself", "the paper",
                    "the authors' code", "printed settings, here", "by test", "gap", "trials", "chosen"]  # fmt: skip
            lines += [*table(head, rows), ""]
    return lines


def averages_part(cells: Cells, printed: dict[Cell, Printed]) -> list[str]:
    """Means over the nine sets of every contestant that has all of them, beside the paper and the authors' code."""
    rows = []
    for c in present(cells, CONTESTANTS.values(), SETS):
        known = [row for row in (cells.get((c.name, d)) for d in SETS) if row is not None]
        if len(known) < len(SETS):
            rows.append([c.title, f"{len(known)} of {len(SETS)} sets", *[""] * 4])
            continue
        code = average(authors_runs()[d].mean for d in SETS) if c.name == FIRST else None
        rows.append([
            c.title, number(fmean(row["mean"] for row in known)), number(average(published_mean(c, d) for d in SETS)),
            number(code), printed_number([printed.get((c.name, d)) for d in SETS]),
            number(fmean(row["by_test"] for row in known)),
        ])  # fmt: skip
    head = ["mean over the nine sets", "by validation", "the paper", "the authors' code", "printed settings, here",
            "by test"]  # fmt: skip
    lines = ["## Means over the nine sets", "", *table(head, rows), ""]
    if best := _best_reaction(cells):
        val, mean, ceiling = (_mean(cells, best, column) for column in ("val_mean", "mean", "by_test"))
        lines += [f"Of the reactions with all nine sets, {best.title} has the best mean on the validation nodes "
                  f"({val:.2f}); its test mean is {mean:.2f}. No choice among its complete trials has more than "
                  f"{ceiling:.2f}, the mean of the best by test of every set.", ""]  # fmt: skip
    if all((c.name, d) in cells for c in ALL_REACTIONS for d in SETS):
        chosen = fmean(_top(cells, d, "val_mean")["mean"] for d in SETS)
        ceiling = fmean(_top(cells, d, "by_test")["by_test"] for d in SETS)
        lines += [f"With the reaction of every set chosen on the validation nodes as well, the mean is {chosen:.2f}; "
                  f"the best reaction and trial of every set by test have {ceiling:.2f}.", ""]  # fmt: skip
    return lines


def _top(cells: Cells, dataset: str, column: str) -> dict[str, Any]:
    """The row of the reaction that has the most in a column."""
    return max((cells[c.name, dataset] for c in ALL_REACTIONS), key=lambda row: float(row[column]))


def differences(cells: Cells) -> FieldMap | None:
    """BS minus everybody else on every set as a figure, bold beyond noise; None where nothing is compared."""
    sets = [d for d in (*SETS, *OTHERS) if (FIRST, d) in cells]
    others = [c for c in present(cells, CONTESTANTS.values(), sets) if c.name != FIRST]
    tests = [[compared(cells, FIRST, c.name, d) for d in sets] for c in others]
    if not any(test for line in tests for test in line):
        return None
    return FieldMap(
        [c.title for c in others], sets, np.array([[t.difference if t else np.nan for t in line] for line in tests]),
        np.array([[t is not None and t.answer in (HOLDS, FAILS) for t in line] for line in tests]),
        f"{FIRST} minus the others, test results; bold beyond noise", limit=10.0, unit="points",
    )  # fmt: skip


def budgets_part(cells: Cells) -> list[str]:
    """All contestants on all sets, and the paired tests."""
    sets = [d for d in (*SETS, *OTHERS) if any((name, d) in cells for name in CONTESTANTS)]
    metrics = {d: next(cells[n, d]["metric"] for n in CONTESTANTS if (n, d) in cells) for d in sets}
    head = ["", *(d if metrics[d] == "accuracy" else f"{d}, {METRIC_TITLES[metrics[d]]}" for d in sets)]
    everybody = present(cells, CONTESTANTS.values(), sets)
    results = [
        [c.title, *(number(r["mean"], r["std"]) if (r := cells.get((c.name, d))) else "" for d in sets)]
        for c in everybody
    ]
    own = [[f"published {CONTESTANTS[n].title}, Luo et al. 2024", *(_published(n, d) for d in sets)] for n in _names()]
    drawn = [f"![{FIRST} minus the others on every set]({FIGURE})", ""] if differences(cells) else []
    lines = [BUDGETS, "", *drawn, *table(head, [*results, *own]), ""]
    pairs = [(FIRST, c.name) for c in present(cells, NETWORKS, sets)]
    pairs += [(c.name, TUNED) for c in present(cells, ALL_REACTIONS, sets) if c.name != FIRST]
    rows = []
    for first, second in pairs:
        tests = [compared(cells, first, second, d) for d in sets]
        if any(tests):
            counts = [sum(t.answer == word for t in tests if t is not None) for word in (HOLDS, FAILS)]
            told = f"{counts[0]} / {counts[1]} / {sum(t is not None for t in tests) - sum(counts)}"
            rows.append([f"{CONTESTANTS[first].title} - {CONTESTANTS[second].title}", *map(paired, tests), told])
    if rows:
        lines += [*table([*head, "first better / second better / undecided"], rows), ""]
    return lines


def _names() -> list[str]:
    return sorted({row["network"] for row in published_tuned()})


def _published(name: str, dataset: str) -> str:
    rows = [r for r in published_tuned() if (r["network"], r["dataset"]) == (name, dataset)]
    return number(float(rows[0]["mean"]), float(rows[0]["std"])) if rows else ""


def costs_part(found: dict[str, Any]) -> list[str]:
    """Seconds, the share of the epochs that was trained, and what became of the trials."""
    lines = ["## What it took", "", f"`{found['command']}` on {_where(found)}; {SHARED_CARD}.", ""]
    rows = []
    for c in present(cells_of(found), CONTESTANTS.values(), (*SETS, *OTHERS)):
        own = [row for row in found["rows"] if row["contestant"] == c.name]
        states = {state: sum(row["states"].get(state, 0) for row in own) for row in own for state in row["states"]}
        share = sum(row["share"] * row["trials"] for row in own) / sum(row["trials"] for row in own)
        rows.append([c.title, str(len(own)), str(sum(row["trials"] for row in own)), f"{100 * share:.0f} %",
                     ", ".join(f"{count} {state}" for state, count in sorted(states.items())),
                     f"{sum(row['seconds'] for row in own):.1f}"])  # fmt: skip
    lines += table(["", "sets", "trials", "epochs trained", "states", "seconds"], rows)
    return lines + not_measured(found, usual_cells(missing_cells(found, KEY, CONTESTANTS, (*SETS, *OTHERS))))


def _where(found: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in found["environment"].items())


def page(found: dict[str, Any], accuracy: dict[str, Any]) -> str:
    """The page as Markdown, of whatever cells there are."""
    cells, printed = cells_of(found), printed_settings(accuracy)
    parts = [reactions_part(cells, printed), averages_part(cells, printed), budgets_part(cells), costs_part(found)]
    lines = (line for part in parts for line in part)
    return "\n".join([TITLE, "", f"**{answer(cells)}**", "", HEAD, *lines]).rstrip("\n") + "\n"


def main() -> None:
    found, accuracy = (json.loads(path.read_text(encoding="utf-8")) for path in (SOURCE, PRINTED))
    (DOCS / "searched.md").write_text(page(found, accuracy), encoding="utf-8")
    if drawn := differences(cells_of(found)):
        map_figure(drawn).savefig(DOCS / FIGURE, dpi=120)


if __name__ == "__main__":
    run_program(main)
