"""Tables 4, 7 and 8 of the paper: seven reactions on nine data sets in every reading, a verdict for every cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gread.comparison import (
    ABOVE,
    AGREES,
    BELOW,
    EXPLAINED,
    LEVEL,
    SPLITS,
    Comparison,
    Estimate,
    Gap,
    holm,
    row_answer,
    split_means,
    tally,
    welch,
)
from gread.settings.presets import find_published, published_results
from gread.settings.published_tables import PublishedRank, published_ranking
from studies.cells.cell import BORROWS, BOUNDED, NOTHING_COMPARED, SETS, grouped_rows, size_words
from studies.paper.drawing import ComparedMeans, compared_means, comparison_chart, row_map
from studies.paper.families import (
    BASELINE,
    FAMILIES,
    SAME,
    Standing,
    better_by_signs,
    make_cells,
    measured_baselines,
    searched_rows,
    standings,
)
from studies.paper.paired_rows import gap_to, picked, printed_accuracy, share_of, with_printed
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run, trained
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, decide, interval

SHEET = Sheet("classification", lists={"readings": list(FAMILIES)})


# ---------------------------------------------------------------------- classification verdicts
# The statements about the main tables, decided from the cells.

#: Methods that the paper tests GREAD-BS against, and the sets on which it is not claimed to be the best.
REFERENCES, EXCEPTED = ("GloGNN", "ACM-GCN"), ("squirrel", "citeseer")
#: Sets that come in two forms: the one of the paper, and the other.
TWINS = (("cornell_old", "cornell"), ("chameleon", "chameleon_filtered"), ("squirrel", "squirrel_filtered"))


@dataclass(frozen=True, eq=False)
class Measured:
    """Estimates, gaps and accuracies of the splits by (family, method, data set).

    Gaps are there where a number was published.
    """

    estimates: Mapping[tuple[str, str, str], Estimate]
    gaps: Mapping[tuple[str, str, str], Gap]
    each: Mapping[tuple[str, str, str], Mapping[int, float]]
    sets: tuple[str, ...]

    def row(self, family: str, method: str) -> dict[str, Gap]:
        """The gaps of one published row, by data set."""
        return {s: self.gaps[family, method, s] for s in self.sets if (family, method, s) in self.gaps}

    @property
    def rows(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((family, method) for family, method, _ in self.gaps))


def row_verdicts(result: Measured, words: Mapping[str, str]) -> list[Verdict]:
    """One statement for every published row in every reading."""
    built = []
    for family, method in result.rows:
        gaps = result.row(family, method)
        listed = ", ".join(f"{s} {gap.difference:+z.2f} ({gap.error:.2f})" for s, gap in gaps.items())
        built.append(SHEET.verdict(
            "row", row_answer(list(gaps.values())), method=method, words=words[family],
            tally=tally(gap.word for gap in gaps.values()), listed=listed,
        ))  # fmt: skip
    return built


@dataclass(frozen=True, eq=False)
class Others:
    """The other methods: means by (method, data set), accuracies of the splits where they are known, the origin."""

    means: Mapping[tuple[str, str], float]
    each: Mapping[tuple[str, str], Mapping[int, float]]
    origin: str


def lead(result: Measured, others: Others, method: str, rival: str, dataset: str, ratio: float) -> tuple[float, float]:
    """How far a method with the paper's settings is ahead of another one, and the p of the corrected test.

    The test is paired where the accuracies of the splits are known, else Welch's with both errors corrected; a printed
    mean then has our standard deviation.
    """
    cell = "paper", method, dataset
    if (theirs := others.each.get((rival, dataset))) is not None:
        test = Comparison.of(result.each[cell], theirs, ratio)
        return test.difference, test.p
    group, mean = result.estimates[cell], others.means[rival, dataset]
    return group.mean - mean, welch(group, Estimate(mean, group.std, SPLITS), ratio, ratio)[1]


def best_verdicts(result: Measured, known: Others, ratio: Callable[[str], float]) -> list[Verdict]:
    """Is a GREAD network the best on the sets that the paper says, and is BS better than two others by their means?

    `ratio` is n_test/n_train of a data set.
    """
    others, origin = known.means, known.origin
    group = {(m, s): e for (family, m, s), e in result.estimates.items() if family == "paper" and s in result.sets}
    claimed = [s for s in result.sets if s not in EXCEPTED and s in SETS and any(d == s for _, d in others)]
    if not group or not claimed:
        return []
    best = {s: max((e.mean, m) for (m, d), e in group.items() if d == s)[1] for s in claimed}
    rival = {s: max((mean, m) for (m, d), mean in others.items() if d == s)[1] for s in claimed}
    gaps = {s: lead(result, known, best[s], rival[s], s, ratio(s)) for s in claimed}
    lost = [s for s in claimed if gaps[s][0] < 0]
    corrected = dict(zip(claimed, holm([p for _, p in gaps.values()]), strict=True))
    listed = ", ".join(f"{s}: {best[s]} {gaps[s][0]:+z.2f} from {rival[s]}, p = {corrected[s]:.2g}" for s in claimed)
    built = [SHEET.verdict(
        "best", FAILS if any(corrected[s] < LEVEL for s in lost) else UNDECIDED if lost else HOLDS,
        best=len(claimed) - len(lost), sets=len(claimed), origin=origin, listed=listed,
    )]  # fmt: skip
    for reference in REFERENCES:
        shared = [s for s in result.sets if (reference, s) in others and ("GREAD-BS", s) in group]
        if set(shared) != set(SETS):
            continue
        pair = [group["GREAD-BS", s].mean for s in shared], [others[reference, s] for s in shared]
        p, back = better_by_signs(*pair), better_by_signs(pair[1], pair[0])
        built.append(SHEET.verdict(
            "improves", HOLDS if p < LEVEL else FAILS if back < LEVEL else UNDECIDED, reference=reference, p=p,
            means=len(shared), back=back, origin=origin,
        ))  # fmt: skip
    return built


def reading_verdicts(result: Measured) -> list[Verdict]:
    """Which reading comes nearer to the paper: as printed, or as released, or with tanh?"""
    built = []
    for family, methods in (("released", ("GREAD-FB", "GREAD-FB*")), ("tanh", ("GREAD-F", "GREAD-AC", "GREAD-Z"))):
        for method in methods:
            printed, other = result.row("paper", method), result.row(family, method)
            shared = [s for s in printed if s in other]
            if not shared:
                continue
            distances = np.array([[abs(gaps[s].difference) for s in shared] for gaps in (other, printed)])
            nearer = distances[0] < distances[1]
            low, high = interval(int(nearer.sum()), len(nearer))
            word = "as released" if family == "released" else "inside tanh"
            built.append(SHEET.verdict(
                "reading", decide(nearer), method=method, word=word, nearer=int(nearer.sum()), sets=len(nearer),
                low=low, high=high, other=distances[0].mean(), printed=distances[1].mean(),
            ))  # fmt: skip
    return built


def twin_verdicts(result: Measured, ratio: Callable[[str], float]) -> list[Verdict]:
    """Are the corrected sets harder than those of the paper, for GREAD-BS? `ratio` is n_test/n_train of a data set."""
    built = []
    for old, new in TWINS:
        pair = [result.estimates.get(("paper", "GREAD-BS", s)) for s in (new, old)]
        group, other = pair
        if group is None or other is None:
            continue
        t, p = welch(group, other, ratio(new), ratio(old))
        answer = UNDECIDED if math.isnan(p) or p >= LEVEL else HOLDS if t < 0 else FAILS
        built.append(SHEET.verdict("twin", answer, new=new, old=old, group=group, other=other, p=p))
    return built


def ranking_verdict(
    result: Measured, ours: Sequence[Standing], others: Mapping[tuple[str, str], float]
) -> list[Verdict]:
    """Does GREAD-BS lead the ranking, as Table 7 says? Where it does and is better than the best other for sure; not,
    where that is better for sure. In between the next seeds may tell otherwise."""
    group = next((s for s in ours if s.method == "GREAD-BS"), None)
    first = next((s for s in ours if s.method != "GREAD-BS"), None)
    if group is None or first is None or set(result.sets) != set(SETS):
        return []
    position = 1 + sum(s.rank < group.rank - SAME for s in ours)
    means = {**others, **{(m, s): e.mean for (f, m, s), e in result.estimates.items() if f == "paper"}}
    best, lead = ([means[m, s] for s in SETS] for m in (first.method, group.method))
    behind, ahead = better_by_signs(best, lead), better_by_signs(lead, best)
    is_first = group.rank < first.rank - SAME
    printed = next(row for row in published_ranking() if row.method == group.method)
    shared = f", shared with {first.method}," if abs(first.rank - group.rank) <= SAME else ""
    return [SHEET.verdict(
        "ranking", HOLDS if is_first and ahead < LEVEL else FAILS if not is_first and behind < LEVEL else UNDECIDED,
        position=position, methods=len(ours), shared=shared, medals=_medals(group), printed=_medals(printed),
        first=first, ahead=ahead, behind=behind,
    )]  # fmt: skip


def _medals(one: Standing | PublishedRank) -> str:
    return f"the average rank {one.rank:.2f} and {one.gold} gold, {one.silver} silver, {one.bronze} bronze"


# ---------------------------------------------------------------------- numbers
def measured(rows: Sequence[MutableRow], sets: tuple[str, ...]) -> Measured:
    """Means over splits, and their differences from the published ones."""
    estimates, gaps, each = {}, {}, {}
    for key, group in grouped_rows(rows, "family", "method", "dataset").items():
        family, method, dataset = map(str, key)
        estimates[family, method, dataset] = one = Estimate.of(group)
        each[family, method, dataset] = split_means(group)
        if dataset in sets and (paper := printed_accuracy(method, dataset)):
            gaps[family, method, dataset] = gap_to(one, paper)
    return Measured(estimates, gaps, each, sets)


def cell_table(rows: Sequence[MutableRow], sets: Sequence[str]) -> list[MutableRow]:
    """A row for every cell; on other sets than those of the table nothing is compared."""
    compared = ("difference", "error", "p", "verdict")
    table: list[MutableRow] = []
    for group in grouped_rows(rows, "family", "method", "dataset").values():
        labels = picked(group[0], "family method dataset")
        method, dataset = str(labels["method"]), str(labels["dataset"])
        result = with_printed(group, printed_accuracy(method, dataset))
        if dataset not in sets:
            result |= {name: value for name, value in with_printed(group, None).items() if name in compared}
        columns = "mean std splits trials diverged paper paper_std difference error p verdict source"
        table.append({**labels, **picked(result, columns)})
    return table


def wide_table(result: Measured) -> list[MutableRow]:
    """A row for every method in every reading with a column for every set, with ours and the paper's numbers."""
    rows: list[MutableRow] = []
    sets = list(dict.fromkeys(dataset for _, _, dataset in result.estimates))
    for family, method in dict.fromkeys((family, method) for family, method, _ in result.estimates):
        row: MutableRow = {"method": method, "reading": family}
        pairs = []
        for dataset in sets:
            one, paper = result.estimates.get((family, method, dataset)), find_published(method, dataset)
            theirs = "" if paper is None else f"{paper.mean:.2f}" + (f" ± {paper.std:.2f}" if paper.std else "")
            row[dataset] = f"{'none' if one is None else one.text} / {theirs or 'none'}"
            pairs += [(one.mean, paper.mean)] if one is not None and paper is not None else []
        means = [f"{np.mean(side):.2f}" for side in zip(*pairs, strict=True)] if pairs else ["none", "none"]
        rows.append({**row, "average": " / ".join(means)})
    return rows


def other_methods(result: Measured, sets: Sequence[str]) -> Others:
    """The networks that are not GREAD, measured where they are, else as published."""
    here = {(m, s): one.mean for (family, m, s), one in result.estimates.items() if family == BASELINE}
    if here:
        each = {(m, s): values for (family, m, s), values in result.each.items() if family == BASELINE}
        return Others(here, each, "trained in this run")
    if (stored := measured_baselines()).means:
        means = {cell: mean for cell, mean in stored.means.items() if cell[1] in sets}
        return Others(means, stored.each, "measured here (docs/measured/compared.md)")
    printed = [p for p in published_results() if not p.method.startswith("GREAD-") and p.dataset in sets]
    return Others({(p.method, p.dataset): p.mean for p in printed}, {}, "as the paper prints them")


def ranking_table(ours: Sequence[Standing]) -> list[MutableRow]:
    """The ranking of our reactions among the others, the printed one, and the one that follows from the printed "
    "table."""
    printed = {row.method: row for row in published_ranking()}
    means = {(p.method, p.dataset): p.mean for p in published_results() if p.method in printed}
    again = {one.method: one for one in standings(means, SETS)}
    rows: list[MutableRow] = []
    for one in ours:
        paper, table_8 = printed.get(one.method), again.get(one.method)
        rows.append({
            "method": one.method, "rank": round(one.rank, 4), "accuracy": round(one.accuracy, 4), "gold": one.gold,
            "silver": one.silver, "bronze": one.bronze, "printed_rank": paper.rank if paper else math.nan,
            "rank_of_Table_8": round(table_8.rank, 4) if table_8 else math.nan,
            "printed_accuracy": paper.accuracy if paper else math.nan,
            "accuracy_of_Table_8": round(table_8.accuracy, 4) if table_8 else math.nan,
            "printed_medals": f"{paper.gold}/{paper.silver}/{paper.bronze}" if paper else "",
        })  # fmt: skip
    return rows


# ---------------------------------------------------------------------- figures and words
def pictures(result: Measured) -> Iterator[Picture]:
    """Differences from Table 8, a line for every reading of a row; and our means compared with the paper's."""
    rows: list[MutableRow] = [
        {"method": method if family == "paper" else f"{method}, {family}", "dataset": dataset,
         "difference": gap.difference, "error": gap.error, "verdict": gap.word}
        for family, method in result.rows
        for dataset, gap in result.row(family, method).items()
    ]  # fmt: skip
    if rows:
        chart = row_map(
            rows, "method", "dataset", lambda row: float(row["difference"]),
            lambda row: row["verdict"] in (ABOVE, BELOW), "accuracy here minus Table 8",
            note=lambda row: f"{row['difference']:+z.2f} (standard error {row['error']:.2f}), {row['verdict']}",
        )  # fmt: skip
        yield Picture("differences", chart, SHEET.text("differences"), rows)
    borrowing = [name for name in BORROWS if any(dataset == name for _, _, dataset in result.estimates)]
    panels: dict[str, list[ComparedMeans]] = {dataset: [] for dataset in (*result.sets, *borrowing)}
    for (family, method, dataset), one in result.estimates.items():
        if family == "paper" and dataset in panels:
            name, paper = method.removeprefix("GREAD-"), printed_accuracy(method, dataset)
            panels[dataset].append(compared_means(name, one, paper, one.count))
    both, numbers = comparison_chart(panels)
    yield Picture("accuracies", both, SHEET.text("accuracies"), numbers)


def answer(cells: Sequence[Mapping[str, Any]]) -> str:
    """How many of the printed cells were reached, and what cells with diverged trainings have to do with it."""
    rows = [row for row in cells if row["family"] == "paper" and row["verdict"] != UNDECIDED]
    if not rows:
        return NOTHING_COMPARED
    words, lost = [str(row["verdict"]) for row in rows], [row for row in rows if row["diverged"]]
    text = SHEET.text(
        "answer", reached=sum(word in AGREES for word in words), cells=len(rows), tally=tally(words),
        mean=np.mean([row["difference"] for row in rows]),
    )  # fmt: skip
    if not 0 < len(lost) < len(rows):
        return text
    below, rest = sum(row["verdict"] == BELOW for row in lost), [r["difference"] for r in rows if not r["diverged"]]
    return f"{text} {SHEET.text('diverged', cells=len(lost), below=below, rest=len(rest), mean=np.mean(rest))}"


def shown_equations(s: Settings) -> dict[str, str]:
    """The reactions as printed, and those that another reading has, by name."""
    result = {f"GREAD-{reaction}": str(reaction) for reaction in s["reactions"]}
    if "released" in s["families"]:
        result |= {f"GREAD-{r}, as released": f"{r}-released" for r in ("FB", "FB*") if r in s["reactions"]}
    if "tanh" in s["families"]:
        result |= {f"GREAD-{r}, inside tanh": text for r, text in BOUNDED.items() if r in s["reactions"]}
    return result


def about(s: Settings) -> str:
    """What was trained, and what the paper leaves open."""
    sizes = size_words(s["epochs"], s["hidden"])
    return SHEET.text(
        "about", splits=s["splits"], seeds=s["seeds"],
        readings="\n\n".join(f"{name}: {FAMILIES[name]}." for name in s["families"]),
        borrowed=", ".join(f"{name} of {source}" for name, source in BORROWS.items()),
        sizes=f". Every reading has {sizes} instead of the published ones" if sizes else "",
    )  # fmt: skip


def findings(rows: Sequence[MutableRow], s: Settings) -> Findings:
    """Every cell compared with the paper's, the ranking, and the statements about the tables."""
    sets = tuple(s["sets"])
    rows = [*rows, *searched_rows(s["reactions"], sets)]
    result, table = measured(rows, sets), cell_table(rows, sets)
    others = other_methods(result, sets)
    group = {(m, d): e.mean for (family, m, d), e in result.estimates.items() if family == "paper" and d in sets}
    ours = standings({**others.means, **group}, sets)
    return Findings(
        results=table,
        items=[
            *pictures(result),
            Table("comparison", wide_table(result), SHEET.text("comparison")),
            Table("cells", table, SHEET.text("cells", explained=EXPLAINED)),
            Table("ranking", ranking_table(ours), SHEET.text("ranking", origin=others.origin)) if ours else None,
        ],
        verdicts=[
            *row_verdicts(result, SHEET.entries["with"]),
            *best_verdicts(result, others, share_of),
            *ranking_verdict(result, ours, others.means),
            *reading_verdicts(result),
            *twin_verdicts(result, share_of),
        ],
        answer=answer(table),
        shows="differences",
        about=about(s),
        equations=shown_equations(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(trained(make_cells), findings)
