"""Tables 22 and 23 of the paper: GREAD-ST against GRAND++, by data set and by depth; linear reactions deeper still."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gread.comparison import EXPLAINED, LEVEL, Estimate, Gap, none_beyond, row_answer, tally
from gread.settings.config import Config
from gread.settings.published_tables import published_depths
from studies.cells.cell import (
    BORROWS,
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
from studies.paper.drawing import panels_chart
from studies.paper.paired_rows import Printed, all_positive, compared, picked, printed_accuracy, with_holm, with_printed
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run, trained
from studies.runs.chart import Line
from studies.runs.tables import MutableRow

SHEET = Sheet("depth")
READINGS: dict[str, str] = SHEET.entries["readings"]
UNIT, SHARE, EXACT, BEST = READINGS
OWN, OTHER = "GREAD-ST", "GRAND++"
#: Points of accuracy that a deep network may lose against its best depth without being called oversmoothed.
LOST = 2.0


# ---------------------------------------------------------------------- what is trained
def make_cells(s: Settings) -> list[Cell]:
    """A cell for every network, reading and depth, and for both networks on every set of Table 22."""

    def cell(method: str, reading: str, layers: int, config: Config, dataset: str) -> Cell:
        one = Variation({"method": method, "reading": reading, "layers": layers}, config)
        name = file_name(method, reading, layers, dataset).replace(" ", "_")
        return Cell(name, (dataset,), (one,), s["splits"], s["seeds"])

    suffix = str(s["dataset"])
    base, cells = sized_config("paper", "ST", suffix, s), []
    for method, config in ((OWN, base), (OTHER, grand_plus(base))):
        for reading in (UNIT, SHARE):
            cells += [cell(method, reading, k, layered(config, reading, k), suffix) for k in s["layers"]]
    for reaction in s["reactions"]:
        name = f"plain {reaction}" if reaction == "diffusion" else f"GREAD-{reaction}"
        exact = base.updated({"reaction": reaction, "method": "exact", "step": None})
        cells += [cell(name, EXACT, k, exact.updated({"time": float(k)}), suffix) for k in (*s["layers"], *s["deep"])]
    for dataset in s["sets"]:
        group = sized_config("paper", "ST", dataset, s)
        cells += [cell(method, BEST, 0, c, dataset) for method, c in ((OWN, group), (OTHER, grand_plus(group)))]
    return cells


def layered(config: Config, reading: str, layers: int) -> Config:
    """Euler's method with `layers` steps of 1, or of an equal share of T.

    >>> from studies.cells.cell import published_config
    >>> config = published_config("paper", "ST", "cora")
    >>> [layered(config, reading, 4).model.time for reading in (UNIT, SHARE)]
    [4.0, 3.04]
    """
    time = float(layers) if reading == UNIT else config.gread.time
    return config.updated({"method": "euler", "step": time / layers, "time": time})


def grand_plus(config: Config) -> Config:
    """GRAND++ with the settings of a GREAD network; its own are not published for these splits."""
    return config_like("grand-pp", config, keep=("reaction", "alpha", "beta", "alpha_link", "beta_link"))


# ---------------------------------------------------------------------- numbers
def printed_depth(method: str, reading: str, layers: int, dataset: str) -> Printed | None:
    """What the paper prints for a network at a depth, or in Table 22."""
    if reading == BEST:
        paper = printed_accuracy(method, dataset)
        return paper and paper._replace(source="GREAD (Choi et al., ICML 2023), Table 22")
    known = {} if reading == EXACT else {(row.method, row.layers, row.dataset): row for row in published_depths()}
    row = known.get((method, layers, dataset))
    return Printed(row.mean, row.std, row.source) if row else None


def point_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every network, reading, depth and set."""
    columns = """mean std error=standard_error splits diverged paper difference gap_error=error chance_errors p verdict
        source"""
    table: list[MutableRow] = []
    labels = ("method", "reading", "layers", "dataset")
    for (method, reading, layers, dataset), group in grouped_rows(rows, *labels).items():
        printed = printed_depth(str(method), str(reading), int(layers), str(dataset))
        table.append({**picked(group[0], " ".join(labels)), **picked(with_printed(group, printed), columns)})
    return table


def pair_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """GREAD-ST against GRAND++ wherever both were trained; p is corrected within a reading."""
    table: list[MutableRow] = []
    for reading in (UNIT, SHARE, BEST):
        result: list[MutableRow] = []
        those = [row for row in rows if row["reading"] == reading]
        for (layers, dataset), part in grouped_rows(those, "layers", "dataset").items():
            group, other = ([row for row in part if row["method"] == method] for method in (OWN, OTHER))
            if group and other:
                test = compared(group, other, str(dataset))
                result.append({
                    "reading": reading, "layers": layers, "dataset": dataset, "difference": round(test.difference, 4),
                    "error": test.error, "p": test.p,
                })  # fmt: skip
        table += with_holm(result)
    return table


# ---------------------------------------------------------------------- verdicts
def _differences(rows: Sequence[MutableRow], reading: str) -> str:
    name = "dataset" if reading == BEST else "layers"
    return ", ".join(f"{row[name]} {row['difference']:+z.2f}" for row in rows)


def table_verdicts(table: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Are the two rows of both tables reproduced, in each reading?"""
    printed = [row for row in table if not math.isnan(float(row["paper"]))]
    for (method, reading), group in grouped_rows(printed, "method", "reading").items():
        columns = ("difference", "gap_error", "p", "chance_errors")
        gaps = [Gap(*(float(row[column]) for column in columns)) for row in group]
        where = "Table 22" if reading == BEST else f"Table 23, where {READINGS[str(reading)]}"
        listed, words = _differences(group, str(reading)), tally(gap.word for gap in gaps)
        yield SHEET.verdict("table", row_answer(gaps), method=method, where=where, tally=words, listed=listed)


def pair_verdicts(pairs: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Is GREAD-ST better than GRAND++ everywhere, as the paper says?"""
    for (reading,), group in grouped_rows(pairs, "reading").items():
        sure = [float(row["difference"]) < 0 for row in group if float(row["p_holm"]) < LEVEL]
        yield SHEET.verdict(
            "pair", all_positive(group),
            statement=_superiority(str(reading), tuple(dict.fromkeys(str(row["dataset"]) for row in group))),
            all=len(group), up=len(sure) - sum(sure), down=sum(sure), listed=_differences(group, str(reading)),
        )  # fmt: skip


def _superiority(reading: str, sets: tuple[str, ...]) -> str:
    """The paper's statement; on other sets than those of its table the same one about them."""
    if reading == BEST:
        if source := cited("Table 22", *sets):
            return f"GREAD-ST shows superiority to GRAND++ in all data sets{source}."
        return f"GREAD-ST is better than GRAND++ on {', '.join(sets)}."
    is_printed = set(sets) <= {row.dataset for row in published_depths()}
    suffix = " (Table 23)" if is_printed else f" on {', '.join(sets)}"
    return f"GREAD-ST is better than GRAND++ at every depth{suffix}, where {READINGS[reading]}."


def deep_verdicts(rows: Sequence[MutableRow], dataset: str) -> Iterator[Verdict]:
    """Does a linear reaction keep its accuracy at the largest depth of the exact flow?"""
    for (method,), group in grouped_rows([row for row in rows if row["reading"] == EXACT], "method").items():
        points = {int(layers): part for (layers,), part in grouped_rows(group, "layers").items()}
        means = {layers: Estimate.of(part).mean for layers, part in points.items()}
        best, last = max(means, key=lambda k: means[k]), max(points)
        losses = {k: compared(points[k], points[last], dataset) for k in points}
        diverged = sum(row["status"] != "ok" for row in points[last])
        yield SHEET.verdict(
            "deep", none_beyond([test for k, test in losses.items() if k != last], LOST), method=method, lost=LOST,
            last=last, there=means[last], best=best, most=means[best], difference=-losses[best].difference,
            error=losses[best].error, diverged=diverged, trainings=len(points[last]),
        )  # fmt: skip


# ---------------------------------------------------------------------- figures and words
def picture(table: Sequence[MutableRow]) -> Picture | None:
    """Accuracy against depth, a panel for every reading."""
    panels: dict[str, list[Line]] = {}
    for (reading, method), group in grouped_rows(table, "reading", "method").items():
        if reading == BEST:
            continue
        lines = panels.setdefault(str(reading), [])
        lines.append(Line.of(str(method), group, "layers", "mean", "error"))
        if any(not math.isnan(float(row["paper"])) for row in group):
            lines.append(Line.of(f"{method}, the paper", group, "layers", "paper"))
    if not panels:
        return None
    words = "; ".join(f"{name}: {READINGS[name]}" for name in panels)
    chart = panels_chart(panels, "layers", x_scale="log")
    return Picture("depth", chart, f"Accuracy against depth. {words[0].upper()}{words[1:]}.")


def answer(table: Sequence[MutableRow], s: Settings) -> str:
    """Both networks at the largest depth, in one sentence.

    >>> answer([], {"layers": [], "dataset": "cora"})
    'No depth of Table 23 is in this run.'
    """
    if not s["layers"]:
        return SHEET.text("nothing deep")
    most = max(s["layers"])
    deepest = [row for row in table if (row["layers"], row["dataset"]) == (most, s["dataset"])]
    means = {(str(row["reading"]), str(row["method"])): float(row["mean"]) for row in deepest}
    names = {"unit": (UNIT, OWN), "other_unit": (UNIT, OTHER), "share": (SHARE, OWN), "other_share": (SHARE, OTHER)}
    lender = BORROWS.get(s["dataset"])
    suffix, shared = (f" on {s['dataset']}", f"the T published for {lender}") if lender else ("", "the published T")
    values = {name: means.get(key, math.nan) for name, key in names.items()}
    return SHEET.text("answer", most=most, place=suffix, shared=shared, **values)


def about(s: Settings) -> str:
    """What a layer is, and with which settings the networks were trained."""
    sets = (s["dataset"], *s["sets"])
    return SHEET.text(
        "about", unit=READINGS[UNIT], share=READINGS[SHARE], uncompared=uncompared(sets),
        own="" if set(sets) <= BORROWS.keys() else " on the same set",
        changed=departures(sets, s["epochs"], s["hidden"], "on"),
    )  # fmt: skip


def findings(rows: Sequence[MutableRow], s: Settings) -> Findings:
    """Both networks compared with the tables and with each other, and the linear reactions by the exact flow."""
    table, pairs = point_table(rows), pair_table(rows)
    is_printed = any(not math.isnan(float(row["paper"])) for row in table)
    suffix = f", compared with Tables 22 and 23. {EXPLAINED}" if is_printed else "."
    return Findings(
        results=table,
        items=[
            picture(table),
            Table("depths", table, SHEET.text("depths", suffix=suffix)),
            Table("pairs", pairs, SHEET.text("pairs")) if pairs else None,
        ],
        verdicts=[*table_verdicts(table), *pair_verdicts(pairs), *deep_verdicts(rows, str(s["dataset"]))],
        answer=answer(table, s),
        shows="depth",
        about=about(s),
        equations={**{str(reaction): str(reaction) for reaction in s["reactions"]}, OTHER: OTHER},
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(trained(make_cells), findings)
