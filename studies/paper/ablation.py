"""Tables 5, 6, 20 and 21 of the paper: adjacency and beta, separating the sign of beta from its kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from gread.comparison import ABOVE, BELOW, EXPLAINED, LEVEL, Comparison, Estimate, row_answer, tally
from gread.settings.config import Config
from gread.settings.published_tables import published_ablations
from studies.cells.cell import (
    Cell,
    Variation,
    cited,
    departures,
    file_name,
    grouped_rows,
    published_config,
    sized_config,
    uncompared,
)
from studies.paper.drawing import row_map
from studies.paper.paired_rows import Printed, compared, gap_to, picked, with_holm, with_printed
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run, trained
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, decide, interval

SHEET = Sheet("ablation")
ADJACENCIES, BETAS, EFFECTS = (SHEET.entries[name] for name in ("adjacencies", "betas", "effects"))
#: Rows of trainings by reaction, data set and option.
Options = dict[tuple[str, str, str], list[MutableRow]]
#: Fewer sets than this decide nothing by their number: the interval of a share of 5 of 5 holds one half.
FEW_SETS = 6


# ---------------------------------------------------------------------- what is trained
def best_options(config: Config) -> tuple[str, str]:
    """The adjacency and the beta of published settings.

    >>> best_options(published_config("paper", "BS", "texas"))
    ('OA', 'VC')
    """
    model = config.gread
    return {"original": "OA", "soft": "SA"}[model.adjacency], {"scalar": "SC", "channel": "VC"}[model.beta]


def options_of(reaction: str, dataset: str) -> dict[str, tuple[str, str]]:
    """Which adjacency and beta stand for an option on a set: the other one is the published one.

    >>> list(dict.fromkeys(options_of("BS", "texas").values()))
    [('OA', 'VC'), ('SA', 'VC'), ('OA', 'SC'), ('OA', 'SC±'), ('OA', 'VC+')]
    """
    adjacency, beta = best_options(published_config("paper", reaction, dataset))
    return {**{a: (a, beta) for a in ADJACENCIES}, **{b: (adjacency, b) for b in BETAS}}


def make_cells(s: Settings) -> list[Cell]:
    """A cell for every reaction on every set: both adjacencies with the published beta, and every beta."""
    cells = []
    for dataset in s["sets"]:
        for reaction in s["reactions"]:
            config = sized_config("paper", reaction, dataset, s)
            variations = tuple(
                Variation(
                    {"reaction": reaction, "adjacency": a, "beta": b}, config.updated({**ADJACENCIES[a], **BETAS[b]})
                )
                for a, b in dict.fromkeys(options_of(reaction, dataset).values())
            )
            cells.append(Cell(file_name(reaction, dataset), (dataset,), variations, s["splits"], s["seeds"]))
    return cells


# ---------------------------------------------------------------------- numbers
def by_option(rows: Sequence[MutableRow]) -> Options:
    """The trainings of every option; a training may stand for two of them."""
    trainings = grouped_rows(rows, "reaction", "dataset", "adjacency", "beta")
    return {
        (str(reaction), str(dataset), option): trainings[reaction, dataset, *pair]
        for reaction, dataset in grouped_rows(rows, "reaction", "dataset")
        for option, pair in options_of(str(reaction), str(dataset)).items()
        if (reaction, dataset, *pair) in trainings
    }


def printed_option(reaction: str, dataset: str, option: str) -> Printed | None:
    """What the paper prints for an option."""
    known = {(row.reaction, row.dataset, row.setting): row for row in published_ablations()}
    row = known.get((reaction, dataset, option))
    return Printed(row.mean, row.std, row.source) if row else None


def cell_table(options: Options) -> list[MutableRow]:
    """A row for every option of every reaction and set."""
    columns = "mean std splits diverged paper difference error p verdict source"
    return [
        {
            "ablation": "adjacency" if option in ADJACENCIES else "beta", "option": option, "reaction": reaction,
            "dataset": dataset, **picked(with_printed(group, printed_option(reaction, dataset, option)), columns),
        }
        for (reaction, dataset, option), group in options.items()
    ]  # fmt: skip


def effect_table(options: Options) -> list[MutableRow]:
    """A row for every effect on every reaction and set."""
    places = dict.fromkeys((reaction, dataset) for reaction, dataset, _ in options)
    table: list[MutableRow] = []
    for effect in EFFECTS:
        rows: list[MutableRow] = []
        for reaction, dataset in places:
            pair = [(reaction, dataset, option) for option in effect.split(" - ")]
            if not set(pair) <= set(options):
                continue
            test = compared(options[pair[0]], options[pair[1]], dataset)
            one, other = (printed_option(*key) for key in pair)
            rows.append({
                "effect": effect, "reaction": reaction, "dataset": dataset, "difference": round(test.difference, 4),
                "error": test.error, "t": test.t, "p": test.p,
                "paper": round(one.mean - other.mean, 4) if one and other else math.nan,
            })  # fmt: skip
        table += with_holm(rows)
    return table


# ---------------------------------------------------------------------- verdicts
def table_verdicts(options: Options) -> Iterator[Verdict]:
    """Is each option of the printed tables reproduced?"""
    for option in (*ADJACENCIES, "SC", "VC"):
        printed = {key: printed_option(*key) for key in options if key[2] == option}
        gaps = {key[:2]: gap_to(Estimate.of(options[key]), one) for key, one in printed.items() if one}
        if gaps:
            far: dict[str, list[str]] = {}
            for (r, d), g in gaps.items():
                far.setdefault(d, []).extend([f"{r} {g.difference:+z.1f}"] if g.word in (ABOVE, BELOW) else [])
            listed = "; ".join(f"{d} {', '.join(each)}" for d, each in far.items() if each)
            tables = "Tables 5 and 20" if option in ADJACENCIES else "Tables 6 and 21"
            answer, words = row_answer(list(gaps.values())), tally(gap.word for gap in gaps.values())
            yield SHEET.verdict("table", answer, option=option, tables=tables, tally=words, listed=listed or "none")


def effect_verdicts(effects: Sequence[MutableRow]) -> Iterator[Verdict]:
    """The paper's statements about the options, and ours that separate kind and sign."""
    source = cited("Tables 6 and 21", *(str(row["dataset"]) for row in effects))
    for one in SHEET.entries["statements"]:
        rows = [r for r in effects if r["effect"] == one["effect"] and r["dataset"] in one.get("sets", [r["dataset"]])]
        if rows:
            yield one["text"].format(source=source), *_counted(rows)


def _counted(rows: Sequence[MutableRow]) -> tuple[str, str]:
    """Whether most differences are positive; equal means count for neither side.

    The unit is the set, whose reactions share nodes and splits. A few sets cannot decide by their number: of a sentence
    about them most cells have to be sure by themselves.
    """
    values = np.array([float(row["difference"]) for row in rows])
    there = values[np.isfinite(values) & (values != 0)]
    sure = [float(row["difference"]) > 0 for row in rows if float(row["p_holm"]) < LEVEL]
    up, down = sum(sure), len(sure) - sum(sure)
    groups = grouped_rows(rows, "dataset").values()
    sums = [int(np.nansum(np.sign([float(row["difference"]) for row in group]))) for group in groups]
    truths = np.array([total > 0 for total in sums if total], dtype=bool)  # most cells of a set, where either side has
    low, high = interval(int(truths.sum()), truths.size)
    evidence = SHEET.text(
        "counted", more=int((there > 0).sum()), there=there.size, equal=values.size - there.size,
        sets=int(truths.sum()), of_sets=truths.size, low=low, high=high, mean=np.nanmean(values), up=up, down=down,
    )  # fmt: skip
    if len(groups) >= FEW_SETS:
        return decide(truths), evidence
    return HOLDS if 2 * up > len(rows) else FAILS if 2 * down > len(rows) else UNDECIDED, evidence


# ---------------------------------------------------------------------- figures and words
def mean_rows(effects: Sequence[MutableRow]) -> list[MutableRow]:
    """The mean over the sets of every effect by reaction, and the p of its difference from zero."""
    rows: list[MutableRow] = []
    for (effect, reaction), group in grouped_rows(effects, "effect", "reaction").items():
        values = [float(row["difference"]) for row in group]
        test = Comparison.of(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0), 0.0)
        rows.append({"effect": effect, "reaction": reaction, "mean": float(np.mean(values)), "p": test.p})
    return rows


def pictures(effects: Sequence[MutableRow]) -> Iterator[Picture]:
    """Mean effects by reaction, then every effect by reaction and set."""
    means = mean_rows(effects)
    chart = row_map(
        means, "effect", "reaction", lambda row: float(row["mean"]), lambda row: float(row["p"]) < LEVEL,
        "mean over the sets", limit=8.0,
    )  # fmt: skip
    yield Picture("effects", chart, SHEET.text("means"), [picked(row, "effect reaction mean") for row in means])
    for (effect,), group in grouped_rows(effects, "effect").items():
        chart = row_map(
            group, "reaction", "dataset", lambda row: float(row["difference"]),
            lambda row: float(row["p_holm"]) < LEVEL, str(effect),
        )  # fmt: skip
        name = "-".join(str(effect).split(" - ")).replace("±", "_free").replace("+", "_positive")
        words = EFFECTS[effect]
        yield Picture(name, chart, SHEET.text("effect", words=words[0].upper() + words[1:]), group)


def answer(effects: Sequence[MutableRow]) -> str:
    """The mean effects with their significance, in one sentence."""

    def mean(effect: str) -> str:
        rows = [row for row in effects if row["effect"] == effect]
        if not rows:
            return "no number"
        sure = sum(float(row["p_holm"]) < LEVEL for row in rows)
        return (
            f"{np.nanmean([float(row['difference']) for row in rows]):+z.2f} points ({sure} of {len(rows)} significant)"
        )

    return SHEET.text(
        "answer", published=mean("VC - SC"), kind=mean("VC+ - SC"), sign=mean("VC - VC+"), soft=mean("SA - OA")
    )


def about(s: Settings) -> str:
    """What an option is, and which settings it leaves as they are."""
    kinds = ", ".join(f"{name} {values['beta']}, {values['beta_link']}" for name, values in BETAS.items())
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    return SHEET.text("about", changed=changed, kinds=kinds, uncompared=uncompared(s["sets"]))


def findings(rows: Sequence[MutableRow], s: Settings) -> Findings:
    """The options compared with the tables, and the effects separately."""
    options = by_option(rows)
    cells, effects = cell_table(options), effect_table(options)
    listed = "; ".join(f"{name}: {words}" for name, words in EFFECTS.items())
    suffix = "." if uncompared(s["sets"]) else f", compared with the paper's tables. {EXPLAINED}"
    return Findings(
        results=cells,
        items=[
            *pictures(effects),
            Table("effects", effects, SHEET.text("effects", effects=listed)),
            Table("cells", cells, f"Every option: test accuracy in percent{suffix}"),
        ],
        verdicts=[*table_verdicts(options), *effect_verdicts(effects)],
        answer=answer(effects),
        shows="effects",
        about=about(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(trained(make_cells), findings)
