"""Tables 22 and 23 of the paper: GREAD-ST against GRAND++, by data set and by depth; linear reactions deeper still."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.presets import find_published
from gread.settings.published_tables import published_depths
from rdgraph.errors import InvalidArgument
from studies.cells.agreement import EXPLAINED, LEVEL, Estimate, Gap, holm, row_answer, tally
from studies.cells.cell import Cell, Variation, file_name, grouped_rows, load_set, shrunk, train_cells, write_trials
from studies.cells.cell_figures import curve_panels
from studies.cells.cell_limits import ANY_SETS, NAMED_SETS, cell_limits
from studies.cells.corrected_test import CorrectedTest, none_beyond, share_ratio
from studies.cells.nine_sets import BORROWS, LINEAR, SETS, cited, departures, published_config, uncompared
from studies.runs.chart import Line
from studies.runs.pairing import split_means
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, standard_error

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

OWN, OTHER = "GREAD-ST", "GRAND++"
#: What a layer may be: a step of 1, so that depth is time; or a share of the published T, so that depth is resolution.
UNIT, SHARE, EXACT, BEST = "step 1", "T shared", "exact", "published T"
READINGS = {
    UNIT: "every layer is an Euler step of 1, so that T is the number of layers",
    SHARE: "T is the published one, and every layer an Euler step of its share",
    EXACT: "the exact flow at T = the number of layers, for linear reactions",
    BEST: "the paper's best settings, for Table 22",
}
#: Points of accuracy that a deep network may lose against its best depth without being called oversmoothed.
LOST = 2.0


def settings(small: bool) -> dict[str, Any]:
    """Depths, and the sets of the two tables; 0 epochs or channels are the published ones."""
    if small:
        return {
            "dataset": "karate", "layers": [2, 4], "deep": [8], "sets": ["karate"], "reactions": ["ST", "BS"],
            "splits": 3, "seeds": 1, "epochs": 15, "hidden": 8,
        }  # fmt: skip
    return {
        "dataset": "cora", "layers": [2, 4, 8, 16, 32, 64], "deep": [128, 256], "sets": list(SETS),
        "reactions": list(LINEAR), "splits": 10, "seeds": 1, "epochs": 0, "hidden": 0,
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    layers = Limit(least=1, some=False)
    linear = Limit(known=LINEAR, what="linear reaction", some=False)
    return cell_limits(dataset=NAMED_SETS, layers=layers, deep=layers, sets=ANY_SETS, reactions=linear)


def run(run: StudyRun) -> None:
    """Train both networks at every depth in both readings, then the linear reactions by the exact flow."""
    rows = train_cells(run, make_cells(run.settings)).rows
    write_trials(run, rows)
    table = point_table(rows)
    _draw(run, table)
    beside = f" beside Tables 22 and 23. {EXPLAINED}" if any(not math.isnan(float(r["paper"])) for r in table) else "."
    run.table("depths", table, f"Every network: test accuracy in percent{beside}")
    pairs = pair_table(rows)
    if pairs:
        run.table("pairs", pairs, PAIRS)
    for verdict in (*table_verdicts(table), *pair_verdicts(pairs), *deep_verdicts(rows, run.settings)):
        run.verdict(*verdict)
    run.answer(answer(table, run.settings), "depth")
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction))
    run.equation("GRAND++")
    run.say("What is run", about(run.settings))
    run.results(table)


# ---------------------------------------------------------------------- what is trained
def make_cells(s: Mapping[str, Any]) -> list[Cell]:
    """A cell for every network, reading and depth, and for both networks on every set of Table 22."""
    found = []
    place = str(s["dataset"])
    base = shrunk(published_config("paper", "ST", place), s["epochs"], s["hidden"])
    for method, config in ((OWN, base), (OTHER, grand_plus(base))):
        for reading in (UNIT, SHARE):
            found += [_cell(method, reading, k, layered(config, reading, k), place, s) for k in s["layers"]]
    for reaction in s["reactions"]:
        config = base.updated({"reaction": reaction})
        for layers in (*s["layers"], *s["deep"]):
            exact = config.updated({"method": "exact", "step": None, "time": float(layers)})
            name = f"plain {reaction}" if reaction == "diffusion" else f"GREAD-{reaction}"
            found.append(_cell(name, EXACT, layers, exact, place, s))
    for dataset in s["sets"]:
        own = shrunk(published_config("paper", "ST", dataset), s["epochs"], s["hidden"])
        found += [_cell(m, BEST, 0, c, dataset, s) for m, c in ((OWN, own), (OTHER, grand_plus(own)))]
    return found


def _cell(method: str, reading: str, layers: int, config: Config, dataset: str, s: Mapping[str, Any]) -> Cell:
    labels: MutableRow = {"method": method, "reading": reading, "layers": layers}
    name = file_name(method, reading, layers, dataset).replace(" ", "_")
    return Cell(name, (dataset,), (Variation(labels, config),), s["splits"], s["seeds"])


def layered(config: Config, reading: str, layers: int) -> Config:
    """Euler's method with so many steps: of 1, or of the share of T.

    >>> config = published_config("paper", "ST", "cora")
    >>> [layered(config, reading, 4).model.time for reading in (UNIT, SHARE)]
    [4.0, 3.04]
    """
    if not isinstance(config.model, GreadSettings):
        raise InvalidArgument(f"expected a network around an equation, got {config.model.model}")
    time = float(layers) if reading == UNIT else config.model.time
    return config.updated({"method": "euler", "step": time / layers, "time": time})


def grand_plus(config: Config) -> Config:
    """GRAND++ with the settings of a GREAD network, those it has: nobody published its own for these splits."""
    from dataclasses import fields, replace

    from gread.settings.model_records import find_model

    made = find_model("grand-pp").settings()
    known = {f.name for f in fields(made)} - {"reaction", "alpha", "beta", "alpha_link", "beta_link"}
    shared = {f.name: getattr(config.model, f.name) for f in fields(config.model) if f.name in known}
    return Config(replace(made, **shared), config.training)


# ---------------------------------------------------------------------- numbers
def _published(method: str, reading: str, layers: int, dataset: str) -> tuple[float, float | None, str] | None:
    if reading == BEST:
        paper = find_published(method, dataset)
        return (paper.mean, paper.std, "GREAD (Choi et al., ICML 2023), Table 22") if paper else None
    if reading == EXACT:
        return None
    for row in published_depths():
        if (row.method, row.layers, row.dataset) == (method, layers, dataset):
            return row.mean, row.std, row.source
    return None


def point_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every network, reading, depth and set."""
    table: list[MutableRow] = []
    for key, own in grouped_rows(rows, "method", "reading", "layers", "dataset").items():
        method, reading, layers, dataset = str(key[0]), str(key[1]), int(key[2]), str(key[3])
        one, paper = Estimate.of(own), _published(method, reading, layers, dataset)
        gap = Gap.between(one, paper[0], paper[1]) if paper else Gap(math.nan, math.nan, math.nan)
        table.append({
            "method": method, "reading": reading, "layers": layers, "dataset": dataset, "mean": round(one.mean, 4),
            "std": round(one.std, 4), "error": standard_error(one.std, one.count), "splits": one.count,
            "diverged": sum(row["status"] != "ok" for row in own), "paper": paper[0] if paper else math.nan,
            "difference": round(gap.difference, 4), "gap_error": gap.error, "chance_errors": gap.chance,
            "p": gap.p, "verdict": gap.word,
            "source": paper[2] if paper else "not in the paper",
        })  # fmt: skip
    return table


PAIRS = (
    "GREAD-ST minus GRAND++ on the same splits: difference, corrected standard error (Nadeau and Bengio), p, and p "
    "corrected by Holm within a reading."
)


def pair_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """GREAD-ST against GRAND++ wherever both were trained."""
    table: list[MutableRow] = []
    for reading in (UNIT, SHARE, BEST):
        found: list[MutableRow] = []
        own_rows = [row for row in rows if row["reading"] == reading]
        for (layers, dataset), part in grouped_rows(own_rows, "layers", "dataset").items():
            own, other = (split_means([r for r in part if r["method"] == m]) for m in (OWN, OTHER))
            if own and other:
                test = CorrectedTest.of(own, other, share_ratio(load_set(str(dataset))))
                found.append({
                    "reading": reading, "layers": int(layers), "dataset": str(dataset),
                    "difference": round(test.difference, 4), "error": test.error, "p": test.p,
                })  # fmt: skip
        corrected = holm([float(row["p"]) for row in found])
        table += [{**row, "p_holm": p} for row, p in zip(found, corrected, strict=True)]
    return table


# ---------------------------------------------------------------------- verdicts
def table_verdicts(table: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """Are the two rows of both tables reproduced, in each reading?"""
    made = []
    for (method, reading), own in grouped_rows(table, "method", "reading").items():
        known = [row for row in own if not math.isnan(float(row["paper"]))]
        if not known:
            continue
        columns = ("difference", "gap_error", "p", "chance_errors")
        gaps = [Gap(*(float(r[column]) for column in columns)) for r in known]
        where = "Table 22" if reading == BEST else f"Table 23, where {READINGS[str(reading)]}"
        told = ", ".join(f"{r['dataset'] if reading == BEST else r['layers']} {r['difference']:+z.2f}" for r in known)
        made.append((f"{method} in {where}: the numbers are reproduced.", row_answer(gaps),
                     f"{tally(gap.word for gap in gaps)}; differences {told}"))  # fmt: skip
    return made


def pair_verdicts(pairs: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """Is GREAD-ST better than GRAND++ everywhere, as the paper says?"""
    made = []
    for (reading,), own in grouped_rows(pairs, "reading").items():
        sure = [row for row in own if float(row["p_holm"]) < LEVEL]
        down = [row for row in sure if float(row["difference"]) < 0]
        up = len(sure) - len(down)
        told = ", ".join(f"{r['dataset'] if reading == BEST else r['layers']} {r['difference']:+z.2f}" for r in own)
        sets = tuple(dict.fromkeys(str(r["dataset"]) for r in own))
        made.append((_superiority(str(reading), sets), FAILS if down else HOLDS if up == len(own) else UNDECIDED,
                     f"of {len(own)} differences {up} are sure to be positive and {len(down)} negative after Holm's "
                     f"correction: {told}"))  # fmt: skip
    return made


def _superiority(reading: str, sets: tuple[str, ...]) -> str:
    """The paper's statement; on other sets than those of its table the same one about them."""
    if reading == BEST:
        if source := cited("Table 22", *sets):
            return f"GREAD-ST shows superiority to GRAND++ in all data sets{source}."
        return f"GREAD-ST is better than GRAND++ on {', '.join(sets)}."
    is_printed = set(sets) <= {row.dataset for row in published_depths()}
    place = " (Table 23)" if is_printed else f" on {', '.join(sets)}"
    return f"GREAD-ST is better than GRAND++ at every depth{place}, where {READINGS[reading]}."


def deep_verdicts(rows: Sequence[MutableRow], s: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Does a linear reaction keep its accuracy at the largest depth of the exact flow?"""
    made = []
    exact = [row for row in rows if row["reading"] == EXACT]
    for (method,), own in grouped_rows(exact, "method").items():
        points = {int(layers): part for (layers,), part in grouped_rows(own, "layers").items()}
        means = {layers: Estimate.of(part).mean for layers, part in points.items()}
        best, last = max(means, key=lambda k: means[k]), max(points)
        ratio = share_ratio(load_set(str(s["dataset"])))
        losses = {k: CorrectedTest.of(split_means(points[k]), split_means(points[last]), ratio) for k in points}
        answer = none_beyond([test for k, test in losses.items() if k != last], LOST)
        diverged = sum(row["status"] != "ok" for row in points[last])
        made.append((
            f"{method} by the exact flow loses at most {LOST:g} points at {last} layers.", answer,
            f"{means[last]:.2f} at {last} against {means[best]:.2f} at {best}, difference "
            f"{-losses[best].difference:+z.2f} (error {losses[best].error:.2f}); "
            f"{diverged} of {len(points[last])} trainings diverged",
        ))  # fmt: skip
    return made


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, table: Sequence[MutableRow]) -> None:
    panels: dict[str, list[Line]] = {}
    for (reading, method), own in grouped_rows(table, "reading", "method").items():
        if reading == BEST:
            continue
        points = sorted(own, key=lambda r: int(r["layers"]))
        panels.setdefault(str(reading), []).append(_line(str(method), points, "mean", "error"))
        if any(not math.isnan(float(r["paper"])) for r in points):
            panels[str(reading)].append(_line(f"{method}, the paper", points, "paper", ""))
    if panels:
        chart = curve_panels(panels, "layers", x_scale="log")
        words = "; ".join(f"{name}: {READINGS[name]}" for name in panels)
        run.chart("depth", chart, f"Accuracy against depth. {words[0].upper()}{words[1:]}.")


def _line(label: str, points: Sequence[MutableRow], column: str, error: str) -> Line:
    values = (np.array([float(p[c]) if c else math.nan for p in points]) for c in ("layers", column, error))
    return Line(label, *values)


def answer(table: Sequence[MutableRow], s: Mapping[str, Any]) -> str:
    """Both networks at the largest depth, in one sentence.

    >>> answer([], {"layers": [], "dataset": "cora"})
    'No depth of Table 23 is in this run.'
    """
    if not s["layers"]:
        return "No depth of Table 23 is in this run."
    most = max(s["layers"])
    found = {
        (str(r["reading"]), str(r["method"])): float(r["mean"])
        for r in table
        if r["layers"] == most and r["dataset"] == s["dataset"]
    }
    lender = BORROWS.get(s["dataset"])
    place, shared = (f" on {s['dataset']}", f"the T published for {lender}") if lender else ("", "the published T")
    return (
        f"With {most} layers{place} GREAD-ST reaches {found.get((UNIT, OWN), math.nan):.2f} % and GRAND++ "
        f"{found.get((UNIT, OTHER), math.nan):.2f} % where a layer is a step of 1, "
        f"{found.get((SHARE, OWN), math.nan):.2f} % and {found.get((SHARE, OTHER), math.nan):.2f} % where the layers "
        f"share {shared}."
    )


def about(s: Mapping[str, Any]) -> str:
    """What a layer is, and with which settings the networks were trained."""
    sets = (s["dataset"], *s["sets"])
    own = "" if set(sets) <= BORROWS.keys() else " on the same set"
    changed = departures(sets, s["epochs"], s["hidden"], "on")
    return (
        "The paper does not say what a layer of an equation is, so that Table 23 is underspecified and read in two "
        f"ways: {READINGS[UNIT]}; or {READINGS[SHARE]}. All other settings are those the paper prints for "
        f"GREAD-ST{own}{changed}; GRAND++ takes the same, since nobody published its settings for these splits. Its "
        "source is H(0) of the training nodes less their mean. The linear reactions are trained with the same settings "
        "by the exact flow, whose cost does not grow with depth as that of steps does."
        f"{uncompared(sets)}"
    )
