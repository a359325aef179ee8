"""Tables 4, 7 and 8 of the paper: seven reactions on nine data sets in every reading, a verdict for every cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.settings.presets import find_published, published_results
from gread.settings.published_tables import published_ranking
from studies.cells.agreement import ABOVE, AGREES, BELOW, EXPLAINED, WORDS, Estimate, Gap, tally
from studies.cells.cell import grouped_rows, train_cells, write_trials
from studies.cells.cell_figures import beside_chart
from studies.cells.cell_limits import ANY_MODELS, ANY_REACTIONS, ANY_SETS, cell_limits
from studies.cells.nine_sets import BORROWS, BOUNDED, NOTHING_COMPARED, REACTIONS, SETS, size_words
from studies.classification.classification_verdicts import (
    Measured,
    best_verdicts,
    ranking_verdict,
    reading_verdicts,
    row_verdicts,
    twin_verdicts,
)
from studies.classification.families import (
    BASELINE,
    FAMILIES,
    SEARCHED,
    make_cells,
    measured_baselines,
    searched_rows,
)
from studies.classification.ranking import Standing, standings
from studies.runs.chart import FieldMap
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import standard_error

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: In the words of a verdict, with which settings a row was trained.
WITH = {
    "paper": "the paper's settings",
    "authors": "the authors' released settings",
    "released": "the reaction of the released code",
    "tanh": "the reaction inside tanh",
    BASELINE: "its published settings",
    SEARCHED: "settings searched here on the validation nodes",
}


def settings(small: bool) -> dict[str, Any]:
    """The sets, reactions and readings, and the size of the run; 0 epochs or channels are the published ones."""
    shared: dict[str, Any] = {"reactions": list(REACTIONS), "families": list(FAMILIES), "seeds": 1}
    if small:
        return {
            **shared, "sets": ["karate"], "other_sets": [], "splits": 2, "epochs": 3, "hidden": 8,
            "models": ["mlp", "gcn"],
        }  # fmt: skip
    return {
        **shared, "sets": list(SETS), "other_sets": ["cornell", "chameleon_filtered", "squirrel_filtered"],
        "splits": 10, "epochs": 0, "hidden": 0, "models": [],
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    readings = Limit(known=FAMILIES, what="reading", some=False)
    return cell_limits(
        sets=ANY_SETS, other_sets=ANY_SETS, reactions=ANY_REACTIONS, families=readings, models=ANY_MODELS
    )


def run(run: StudyRun) -> None:
    """Train every cell, compare it with what is printed, rank, and answer."""
    cells = make_cells(run.settings)
    rows = train_cells(run, cells).rows
    write_trials(run, rows)
    sets = tuple(run.settings["sets"])
    rows += searched_rows(run.settings["reactions"], sets)
    found = measured(rows, sets)
    table = cell_table(rows, found)
    draw(run, found)
    run.table("beside", wide_table(found), WIDE)
    run.table("cells", table, f"Every cell: test accuracy in percent over the splits beside Table 8. {EXPLAINED}")
    others, origin = _other_methods(found, sets)
    ours = _rank(run, found, others, origin)
    for verdict in (
        *row_verdicts(found, WITH), *best_verdicts(found, others, origin),
        *ranking_verdict(found, ours, others),
        *reading_verdicts(found), *twin_verdicts(found),
    ):  # fmt: skip
        run.verdict(*verdict)
    run.answer(answer(found), "differences")
    for name, text in shown_equations(run.settings).items():
        run.equation(text, name)
    run.say("What is run", about(run.settings))
    run.results(table)


# ---------------------------------------------------------------------- numbers
def measured(rows: Sequence[MutableRow], sets: tuple[str, ...]) -> Measured:
    """Means over splits, and their differences from the published ones."""
    estimates, gaps = {}, {}
    for key, own in grouped_rows(rows, "family", "method", "dataset").items():
        family, method, dataset = map(str, key)
        estimates[family, method, dataset] = one = Estimate.of(own)
        paper = find_published(method, dataset)
        if paper is not None and dataset in sets:
            gaps[family, method, dataset] = Gap.between(one, paper.mean, paper.std)
    return Measured(estimates, gaps, sets)


def cell_table(rows: Sequence[MutableRow], found: Measured) -> list[MutableRow]:
    """A row for every cell."""
    table: list[MutableRow] = []
    for key, own in grouped_rows(rows, "family", "method", "dataset").items():
        family, method, dataset = map(str, key)
        one, gap = found.estimates[family, method, dataset], found.gaps.get((family, method, dataset))
        paper = find_published(method, dataset)
        table.append({
            "family": family, "method": method, "dataset": dataset, "mean": round(one.mean, 4),
            "std": round(one.std, 4), "splits": one.count, "trials": len(own),
            "diverged": sum(row["status"] != "ok" for row in own),
            "paper": paper.mean if paper else math.nan, "paper_std": (paper.std if paper else None) or math.nan,
            "difference": round(gap.difference, 4) if gap else math.nan, "error": gap.error if gap else math.nan,
            "p": gap.p if gap else math.nan, "verdict": gap.word if gap else WORDS[-1],
            "source": paper.source if paper else "not in the paper",
        })  # fmt: skip
    return table


WIDE = (
    "Table 8 as we measure it: test accuracy in percent, mean ± population standard deviation over the splits, and "
    "behind the stroke what the paper prints; average: over the sets that have both numbers."
)


def wide_table(found: Measured) -> list[MutableRow]:
    """A row for every method in every reading with a column for every set, ours beside the paper's."""
    rows: list[MutableRow] = []
    sets = list(dict.fromkeys(dataset for _, _, dataset in found.estimates))
    for family, method in dict.fromkeys((family, method) for family, method, _ in found.estimates):
        row: MutableRow = {"method": method, "reading": family}
        pairs = []
        for dataset in sets:
            one, paper = found.estimates.get((family, method, dataset)), find_published(method, dataset)
            theirs = "" if paper is None else f"{paper.mean:.2f}" + (f" ± {paper.std:.2f}" if paper.std else "")
            row[dataset] = f"{'none' if one is None else one.text} / {theirs or 'none'}"
            pairs += [(one.mean, paper.mean)] if one is not None and paper is not None else []
        means = [f"{np.mean(side):.2f}" for side in zip(*pairs, strict=True)] if pairs else ["none", "none"]
        rows.append({**row, "average": " / ".join(means)})
    return rows


def _other_methods(found: Measured, sets: Sequence[str]) -> tuple[dict[tuple[str, str], float], str]:
    """Means of the networks that are not GREAD, measured where they are, else as published; and which."""
    trained = {(m, s): one.mean for (family, m, s), one in found.estimates.items() if family == BASELINE}
    if trained:
        return trained, "trained in this run"
    kept = measured_baselines()
    if kept.means:
        return {k: v for k, v in kept.means.items() if k[1] in sets}, "measured here (docs/compared.md)"
    printed = {
        (p.method, p.dataset): p.mean
        for p in published_results()
        if not p.method.startswith("GREAD-") and p.dataset in sets
    }
    return printed, "as the paper prints them"


def _rank(
    run: StudyRun, found: Measured, others: Mapping[tuple[str, str], float], origin: str
) -> list[Standing]:  # fmt: skip
    """The ranking of our reactions among the others, beside the printed one and what the printed table gives."""
    own = {(m, s): e.mean for (family, m, s), e in found.estimates.items() if family == "paper" and s in found.sets}
    ours = standings({**others, **own}, found.sets)
    printed = {row.method: row for row in published_ranking()}
    again = {
        s.method: s
        for s in standings({(p.method, p.dataset): p.mean for p in published_results() if p.method in printed}, SETS)
    }
    rows: list[MutableRow] = []
    for s in ours:
        paper, anew = printed.get(s.method), again.get(s.method)
        rows.append({
            "method": s.method, "rank": round(s.rank, 4), "accuracy": round(s.accuracy, 4), "gold": s.gold,
            "silver": s.silver, "bronze": s.bronze, "printed_rank": paper.rank if paper else math.nan,
            "rank_of_Table_8": round(anew.rank, 4) if anew else math.nan,
            "printed_accuracy": paper.accuracy if paper else math.nan,
            "accuracy_of_Table_8": round(anew.accuracy, 4) if anew else math.nan,
            "printed_medals": f"{paper.gold}/{paper.silver}/{paper.bronze}" if paper else "",
        })  # fmt: skip
    if rows:
        run.table(
            "ranking", rows,
            "Average rank and accuracy over the sets and first, second and third places: our reactions with the "
            f"paper's settings among the other methods {origin}; beside them what Table 7 prints, and what Table 8 "
            "gives by the same rule. Methods without a number on every set are left out.",
        )  # fmt: skip
    return ours


# ---------------------------------------------------------------------- figures and words
def draw(run: StudyRun, found: Measured) -> None:
    """The map of differences, and our means beside the paper's."""
    if found.rows:
        _draw_map(run, found)
    panels = {
        s: [
            (
                method.removeprefix("GREAD-"), one.mean, standard_error(one.std, one.count),
                paper.mean if (paper := find_published(method, s)) else math.nan,
                standard_error(paper.std or math.nan, one.count) if paper else math.nan,
            )
            for (family, method, dataset), one in found.estimates.items()
            if family == "paper" and dataset == s
        ]
        for s in (*found.sets, *(t for t in BORROWS if any(d == t for _, _, d in found.estimates)))
    }  # fmt: skip
    chart, drawn = beside_chart(panels)
    run.chart("accuracies", chart, "Means with their standard errors, the paper's settings; Table 4 beside.", drawn)


def _draw_map(run: StudyRun, found: Measured) -> None:
    """Differences from Table 8, a line for every reading of a row."""
    lines = found.rows
    names = [method if family == "paper" else f"{method}, {family}" for family, method in lines]
    gaps = [[_gap(found, *line, s) for s in found.sets] for line in lines]
    values = np.array([[gap.difference for gap in line] for line in gaps])
    sure = np.array([[gap.word in (ABOVE, BELOW) for gap in line] for line in gaps])
    rows: list[MutableRow] = [
        {"method": name, "dataset": s, "difference": gap.difference, "error": gap.error, "verdict": gap.word}
        for name, line in zip(names, gaps, strict=True)
        for s, gap in zip(found.sets, line, strict=True)
    ]
    notes = [[f"{gap.difference:+z.2f} (standard error {gap.error:.2f}), {gap.word}" for gap in line] for line in gaps]
    drawn = FieldMap(names, found.sets, values, sure, "accuracy here minus Table 8", notes=notes)
    caption = "Test accuracy here minus that of Table 8, in points; bold beyond two standard errors."
    run.chart("differences", drawn, caption, rows)


def _gap(found: Measured, family: str, method: str, dataset: str) -> Gap:
    return found.gaps.get((family, method, dataset), Gap(math.nan, math.nan, math.nan))


def answer(found: Measured) -> str:
    """How many of the printed cells were reached, in one sentence."""
    gaps = [gap for (family, method, _), gap in found.gaps.items() if family == "paper"]
    if not gaps:
        return NOTHING_COMPARED
    reached = sum(gap.word in AGREES for gap in gaps)
    return (
        f"With the paper's settings {reached} of {len(gaps)} cells of Table 8 are reached within two standard errors "
        f"({tally(gap.word for gap in gaps)}); the mean difference is "
        f"{np.mean([gap.difference for gap in gaps]):+z.2f} points."
    )


def shown_equations(s: Mapping[str, Any]) -> dict[str, str]:
    """The reactions as printed, and those that another reading has, by name."""
    found = {f"GREAD-{reaction}": str(reaction) for reaction in s["reactions"]}
    if "released" in s["families"]:
        found |= {f"GREAD-{r}, as released": f"{r}-released" for r in ("FB", "FB*") if r in s["reactions"]}
    if "tanh" in s["families"]:
        found |= {f"GREAD-{r}, inside tanh": text for r, text in BOUNDED.items() if r in s["reactions"]}
    return found


def about(s: Mapping[str, Any]) -> str:
    """What was trained, and what the paper leaves open."""
    readings = "\n\n".join(f"{name}: {FAMILIES[name]}." for name in s["families"])
    sizes = size_words(s["epochs"], s["hidden"])
    return (
        f"Every reaction on the first {s['splits']} public splits of every set with {s['seeds']} seed(s), test "
        "accuracy at the first epoch with the best validation accuracy. A training that diverges is frozen and counts "
        "with the best epoch it had, 0 where it had none; `diverged` counts them. The settings are underspecified "
        f"in the paper, so that a row has several readings.\n\n{readings}\n\nSets without settings borrow: "
        + ", ".join(f"{name} of {source}" for name, source in BORROWS.items())
        + (f". Every reading has {sizes} in place of its own" if sizes else "")
        + ". Rows `searched` are not trained in this run: they are read from docs/searched.json where it is there."
    )
