"""Table 24 of the paper: GREAD-BS against GRAND with ten seeds on ten splits, by the printed test and better ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from gread.comparison import LEVEL, Estimate, row_answer, tally, welch
from gread.settings.config import Config
from gread.settings.published_tables import PublishedTest, published_tests
from studies.cells.cell import (
    Cell,
    Variation,
    cited,
    config_like,
    departures,
    file_name,
    grouped_rows,
    sized_config,
    uncompared,
)
from studies.paper.drawing import ComparedMeans, compared_means, comparison_chart
from studies.paper.paired_rows import Printed, compared, gap_to, signed, with_holm
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run, trained
from studies.runs.chart import FieldMap
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS

SHEET = Sheet("significance")
OWN, OTHER = "GREAD-BS", "GRAND"
#: Trainings of a method on a set in the printed table: ten seeds on ten splits.
PRINTED_RUNS = 100
#: A printed t that differs from the recomputed one by more than this share is not explained by rounded digits.
ROUNDED = 0.02


def make_cells(s: Settings) -> list[Cell]:
    """A cell for each of the two networks on every set."""
    cells = []
    for dataset in s["sets"]:
        group = sized_config("authors", "BS", dataset, s)
        for method, config in ((OWN, group), (OTHER, plain_diffusion(group))):
            one = Variation({"method": method}, config)
            cells.append(Cell(file_name(method, dataset), (dataset,), (one,), s["splits"], s["seeds"]))
    return cells


def plain_diffusion(config: Config) -> Config:
    """GRAND with the settings of a GREAD network: diffusion by attention in place of diffusion and reaction.

    >>> from studies.cells.cell import published_config
    >>> found = plain_diffusion(published_config("authors", "BS", "texas"))
    >>> found.model.model, found.model.reaction, found.model.adjacency, found.model.hidden
    ('grand', 'diffusion', 'soft', 128)
    """
    return config_like("grand", config, reaction="diffusion", adjacency="soft", normalisation="row")


# ---------------------------------------------------------------------- numbers
def printed_means(dataset: str) -> dict[str, Printed]:
    """The printed means of both networks on a set; none where the table does not have it."""
    return {
        method: Printed(mean, std, row.source)
        for row in published_tests()
        if row.dataset == dataset
        for method, mean, std in ((OWN, row.own_mean, row.own_std), (OTHER, row.other_mean, row.other_std))
    }


def set_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every set."""
    printed = {row.dataset: row for row in published_tests()}
    table: list[MutableRow] = []
    for (dataset,), part in grouped_rows(rows, "dataset").items():
        group, other = ([row for row in part if row["method"] == method] for method in (OWN, OTHER))
        if not group or not other:
            continue
        one, two = _all_runs(group), _all_runs(other)
        t, p = welch(one, two)
        test, paper = compared(group, other, str(dataset)), printed.get(str(dataset))
        table.append({
            "dataset": dataset, "own": round(one.mean, 4), "own_std": round(one.std, 4), "other": round(two.mean, 4),
            "other_std": round(two.std, 4), "runs": len(group), "difference": round(test.difference, 4), "welch_t": t,
            "welch_p": p, "corrected_error": test.error, "corrected_t": test.t, "corrected_p": test.p,
            "probability": test.probability,
            "paper": round(paper.own_mean - paper.other_mean, 4) if paper else math.nan,
            "paper_t": paper.t if paper else math.nan,
        })  # fmt: skip
    return with_holm(with_holm(table, "welch_p"), "corrected_p")


def _all_runs(rows: Sequence[MutableRow]) -> Estimate:
    """Every training as one sample."""
    values = 100 * np.array([float(row["test_accuracy"]) for row in rows])
    return Estimate(float(values.mean()), float(values.std()), values.size)


def recomputed(row: PublishedTest, count: int) -> float:
    """t of the printed means and deviations, for `count` independent samples each.

    >>> texas = published_tests()[0]
    >>> round(recomputed(texas, 100), 2), texas.t
    (18.42, 18.42)
    """
    return (row.own_mean - row.other_mean) / math.hypot(row.own_std, row.other_std) * math.sqrt(count)


def printed_table() -> list[MutableRow]:
    """The printed test by its own numbers."""
    return [
        {
            "dataset": row.dataset, "printed_t": row.t, "t_of_100": round(recomputed(row, PRINTED_RUNS), 3),
            "t_of_10": round(recomputed(row, 10), 3), "source": row.source,
        }
        for row in published_tests()
    ]  # fmt: skip


# ---------------------------------------------------------------------- verdicts
def set_verdicts(table: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Is GREAD-BS better than GRAND on every set, by the corrected test with Holm's correction?"""
    for row in table:
        printed = "" if math.isnan(float(row["paper_t"])) else f"; printed: t = {row['paper_t']:z.2f}"
        outcome = signed(float(row["difference"]), float(row["corrected_p_holm"]))
        yield SHEET.verdict("set", outcome, **row, source=cited("Table 24", str(row["dataset"])), printed=printed)


def row_verdicts(rows: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Are the printed means of both networks reproduced?"""
    for (method,), part in grouped_rows(rows, "method").items():
        gaps = {
            dataset: gap_to(Estimate.of(group), printed[str(method)])
            for (dataset,), group in grouped_rows(part, "dataset").items()
            if (printed := printed_means(str(dataset)))
        }
        if gaps:
            listed = ", ".join(f"{d} {gap.difference:+z.2f}" for d, gap in gaps.items())
            outcome, words = row_answer(list(gaps.values())), tally(gap.word for gap in gaps.values())
            yield SHEET.verdict("row", outcome, method=method, tally=words, listed=listed)


def printed_verdict() -> Verdict:
    """Do the printed t values follow from the printed means and deviations?"""
    table = {row: recomputed(row, PRINTED_RUNS) for row in published_tests()}
    off = [f"{row.dataset} {t:.2f} against {row.t:.2f}" for row, t in table.items() if abs(t / row.t - 1) > ROUNDED]
    words = f"; not: {', '.join(off)}" if off else ""
    on = len(table) - len(off)
    return SHEET.verdict("printed", FAILS if off else HOLDS, rounded=ROUNDED, on=on, of=len(table), off=words)


# ---------------------------------------------------------------------- figures and words
def pictures(rows: Sequence[MutableRow], table: Sequence[MutableRow]) -> Iterator[Picture]:
    """The differences of both networks on every set, and their means, with the printed ones if any."""
    if not table:
        return
    sets = [str(row["dataset"]) for row in table]
    lines = ["here", *(["the paper"] if any(printed_means(dataset) for dataset in sets) else [])]
    values = np.array([[float(row[c]) for row in table] for c in ("difference", "paper")][: len(lines)])
    sure = np.array([[is_own and float(row["corrected_p_holm"]) < LEVEL for row in table] for is_own in (True, False)])
    chart = FieldMap(lines, sets, values, sure[: len(lines)], f"{OWN} minus {OTHER}")
    drawn: list[MutableRow] = [{"dataset": r["dataset"], "here": r["difference"], "paper": r["paper"]} for r in table]
    yield Picture("differences", chart, SHEET.text("differences"), drawn)
    panels: dict[str, list[ComparedMeans]] = {OWN: [], OTHER: []}
    for method, points in panels.items():
        for dataset in sets:
            one = Estimate.of([row for row in rows if (row["method"], row["dataset"]) == (method, dataset)])
            points.append(compared_means(dataset, one, printed_means(dataset).get(method), 10))
    both, numbers = comparison_chart(panels)
    words = ", with those of Table 24" if len(lines) > 1 else ""
    yield Picture("means", both, SHEET.text("means", suffix=words), numbers)


def answer(table: Sequence[MutableRow]) -> str:
    """How many sets are decided by which test, in one sentence."""
    answers = [signed(float(row["difference"]), float(row["corrected_p_holm"])) for row in table]
    welchs = [signed(float(row["difference"]), float(row["welch_p"])) for row in table]
    return SHEET.text(
        "answer", better=answers.count(HOLDS), worse=answers.count(FAILS), welch=welchs.count(HOLDS), sets=len(table)
    )


def about(s: Settings) -> str:
    """With which settings the two networks were trained."""
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    return SHEET.text("about", changed=changed, uncompared=uncompared(s["sets"]))


def findings(rows: Sequence[MutableRow], s: Settings) -> Findings:
    """The difference of both networks by several tests, and the printed test recomputed."""
    table = set_table(rows)
    return Findings(
        results=table,
        items=[
            *pictures(rows, table),
            Table("tests", table, SHEET.text("tests")),
            Table("printed", printed_table(), SHEET.text("printed")),
        ],
        verdicts=[*set_verdicts(table), *row_verdicts(rows), printed_verdict()],
        answer=answer(table),
        shows="differences",
        about=about(s),
        equations={OWN: "BS", OTHER: "diffusion"},
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(trained(make_cells), findings)
