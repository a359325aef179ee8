"""Tables 5, 6, 20 and 21 of the paper: adjacency and beta, with the sign of beta told apart from its kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.settings.published_tables import PublishedAblation, published_ablations
from studies.ablation.options import ADJACENCIES, BETAS, EFFECTS, make_cells, options_of
from studies.cells.agreement import ABOVE, BELOW, EXPLAINED, LEVEL, Estimate, Gap, holm, row_answer, tally
from studies.cells.cell import grouped_rows, load_set, train_cells, write_trials
from studies.cells.cell_limits import cell_limits
from studies.cells.corrected_test import CorrectedTest, share_ratio
from studies.cells.nine_sets import REACTIONS, SETS, cited, departures, uncompared
from studies.runs.chart import FieldMap
from studies.runs.pairing import split_means
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, decide, interval

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Rows of trainings by reaction, data set and option.
Options = dict[tuple[str, str, str], list[MutableRow]]
#: Fewer sets than this decide nothing by their number: the interval of a share of 5 of 5 holds one half.
FEW_SETS = 6


def settings(small: bool) -> dict[str, Any]:
    """Sets, reactions and the size of the run; 0 epochs or channels are the published ones."""
    if small:
        return {"sets": ["karate"], "reactions": ["BS", "AC"], "splits": 3, "seeds": 1, "epochs": 15, "hidden": 8}
    return {"sets": list(SETS), "reactions": list(REACTIONS), "splits": 10, "seeds": 1, "epochs": 0, "hidden": 0}


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    return cell_limits()


def run(run: StudyRun) -> None:
    """Train every option, compare it with the tables, and tell the effects apart."""
    rows = train_cells(run, make_cells(run.settings)).rows
    write_trials(run, rows)
    options = by_option(rows)
    cells = cell_table(options)
    effects = effect_table(options)
    draw(run, effects)
    run.table("effects", effects, EFFECTS_CAPTION)
    beside = "." if uncompared(run.settings["sets"]) else f" beside the paper's tables. {EXPLAINED}"
    run.table("cells", cells, f"Every option: test accuracy in percent{beside}")
    for verdict in (*table_verdicts(options), *effect_verdicts(effects)):
        run.verdict(*verdict)
    run.answer(answer(effects), "effects")
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", about(run.settings))
    run.results(cells)


# ---------------------------------------------------------------------- numbers
def by_option(rows: Sequence[MutableRow]) -> Options:
    """The trainings of every option; a training may stand for two of them."""
    trained = grouped_rows(rows, "reaction", "dataset", "adjacency", "beta")
    found: Options = {}
    for reaction, dataset in grouped_rows(rows, "reaction", "dataset"):
        for option, pair in options_of(str(reaction), str(dataset)).items():
            own = trained.get((reaction, dataset, *pair))
            if own:
                found[str(reaction), str(dataset), option] = own
    return found


def _published(reaction: str, dataset: str, option: str) -> PublishedAblation | None:
    known = (row for row in published_ablations() if (row.reaction, row.dataset) == (reaction, dataset))
    return next((row for row in known if row.setting == option), None)


def cell_table(options: Options) -> list[MutableRow]:
    """A row for every option of every reaction and set."""
    table: list[MutableRow] = []
    for (reaction, dataset, option), own in options.items():
        one, paper = Estimate.of(own), _published(reaction, dataset, option)
        gap = Gap.between(one, paper.mean, paper.std) if paper else Gap(math.nan, math.nan, math.nan)
        table.append({
            "ablation": "adjacency" if option in ADJACENCIES else "beta", "option": option, "reaction": reaction,
            "dataset": dataset, "mean": round(one.mean, 4), "std": round(one.std, 4), "splits": one.count,
            "diverged": sum(row["status"] != "ok" for row in own), "paper": paper.mean if paper else math.nan,
            "difference": round(gap.difference, 4), "error": gap.error, "p": gap.p, "verdict": gap.word,
            "source": paper.source if paper else "not in the paper",
        })  # fmt: skip
    return table


EFFECTS_CAPTION = (
    "Differences of two options on the same splits, in points: mean, standard error and p of the corrected resampled "
    "t-test (Nadeau and Bengio), p corrected by Holm over all cells of an effect; paper: the difference of the two "
    "printed means, where both are printed. "
    + "; ".join(f"{name}: {words}" for name, (_, _, words) in EFFECTS.items())
    + "."
)


def effect_table(options: Options) -> list[MutableRow]:
    """A row for every effect on every reaction and set."""
    table: list[MutableRow] = []
    places = list(dict.fromkeys((reaction, dataset) for reaction, dataset, _ in options))
    for effect, (one, other, _) in EFFECTS.items():
        rows: list[MutableRow] = []
        for reaction, dataset in places:
            if not {(reaction, dataset, one), (reaction, dataset, other)} <= set(options):
                continue
            own, against = (split_means(options[reaction, dataset, o]) for o in (one, other))
            test = CorrectedTest.of(own, against, share_ratio(load_set(dataset)))
            printed = [_published(reaction, dataset, o) for o in (one, other)]
            rows.append({
                "effect": effect, "reaction": reaction, "dataset": dataset, "difference": round(test.difference, 4),
                "error": test.error, "t": test.t, "p": test.p,
                "paper": round(printed[0].mean - printed[1].mean, 4) if printed[0] and printed[1] else math.nan,
            })  # fmt: skip
        corrected = holm([float(row["p"]) for row in rows])
        table += [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]
    return table


# ---------------------------------------------------------------------- verdicts
def table_verdicts(options: Options) -> list[tuple[str, str, str]]:
    """Is each option of the printed tables reproduced?"""
    made = []
    for option in (*ADJACENCIES, "SC", "VC"):
        gaps = {}
        for (reaction, dataset, o), own in options.items():
            paper = _published(reaction, dataset, option) if o == option else None
            if paper:
                gaps[reaction, dataset] = Gap.between(Estimate.of(own), paper.mean, paper.std)
        if gaps:
            far = [f"{r} on {d} {g.difference:+z.1f}" for (r, d), g in gaps.items() if g.word in (ABOVE, BELOW)]
            tables = "Tables 5 and 20" if option in ADJACENCIES else "Tables 6 and 21"
            made.append((
                f"The accuracies with {option} in {tables} are reproduced.", row_answer(list(gaps.values())),
                f"{tally(gap.word for gap in gaps.values())}; beyond two standard errors: {', '.join(far) or 'none'}",
            ))  # fmt: skip
    return made


def effect_verdicts(effects: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """The paper's statements about the options, and ours that tell kind and sign apart."""
    source = cited("Tables 6 and 21", *(str(row["dataset"]) for row in effects))
    statements = (
        ("SA increases the accuracy in Cornell and Film (Table 5).", "SA - OA", ("cornell_old", "film")),
        (
            "SA outperforms OA in all the data sets except for Texas and Wisconsin (Table 20): in most of their cells.",
            "SA - OA",
            tuple(s for s in SETS if s not in ("texas", "wisconsin")),
        ),
        (f"VC shows effectiveness for most cases{source}.", "VC - SC", None),
        ("A vector beta in (0, 1) is better than a scalar one in (0, 1), in most cases.", "VC+ - SC", None),
        ("A vector beta of either sign is better than a scalar one of either sign, in most cases.", "VC - SC±", None),
        ("A vector beta of either sign is better than one in (0, 1), in most cases.", "VC - VC+", None),
        ("A scalar beta of either sign is better than one in (0, 1), in most cases.", "SC± - SC", None),
    )
    made = []
    for statement, effect, sets in statements:
        own = [row for row in effects if row["effect"] == effect and (sets is None or row["dataset"] in sets)]
        if own:
            made.append((statement, *_counted(own)))
    return made


def _counted(rows: Sequence[MutableRow]) -> tuple[str, str]:
    """Whether most differences are positive; equal means count for neither side.

    The unit is the set, whose reactions share nodes and splits. A few sets cannot decide by their number: of a sentence
    about them most cells have to be sure by themselves.
    """
    values = np.array([float(row["difference"]) for row in rows])
    there = values[np.isfinite(values) & (values != 0)]
    sure = [row for row in rows if float(row["p_holm"]) < LEVEL]
    up = sum(float(row["difference"]) > 0 for row in sure)
    truths = _by_set(rows)
    low, high = interval(int(truths.sum()), truths.size)
    evidence = (
        f"more accurate in {int((there > 0).sum())} of {there.size} cells, {values.size - there.size} equal, and in "
        f"most cells of {int(truths.sum())} of {truths.size} sets (95 % interval of the share {low:.2f} to "
        f"{high:.2f}); mean {np.nanmean(values):+z.2f} points; sure by themselves after Holm's correction: {up} up, "
        f"{len(sure) - up} down"
    )
    if len({row["dataset"] for row in rows}) >= FEW_SETS:
        return decide(truths), evidence
    return HOLDS if 2 * up > len(rows) else FAILS if 2 * (len(sure) - up) > len(rows) else UNDECIDED, evidence


def _by_set(rows: Sequence[MutableRow]) -> np.ndarray:
    """Whether most cells of a set are positive, for every set (S,) where either side has more of them."""
    signs = [
        int(np.nansum(np.sign([float(row["difference"]) for row in own])))
        for own in grouped_rows(rows, "dataset").values()
    ]
    return np.array([sign > 0 for sign in signs if sign], dtype=bool)


# ---------------------------------------------------------------------- figures and words
def draw(run: StudyRun, effects: Sequence[MutableRow]) -> None:
    """Mean effects by reaction, then every effect by reaction and set."""
    reactions = list(dict.fromkeys(str(row["reaction"]) for row in effects))
    sets = list(dict.fromkeys(str(row["dataset"]) for row in effects))
    means = np.full((len(EFFECTS), len(reactions)), math.nan)
    sure = np.zeros(means.shape, dtype=bool)
    for i, effect in enumerate(EFFECTS):
        for j, reaction in enumerate(reactions):
            found = [float(r["difference"]) for r in effects if (r["effect"], r["reaction"]) == (effect, reaction)]
            if found:
                means[i, j] = float(np.mean(found))
                test = CorrectedTest.of(dict(enumerate(found)), dict.fromkeys(range(len(found)), 0.0), 0.0)
                sure[i, j] = test.p < LEVEL
    run.chart(
        "effects", FieldMap(list(EFFECTS), reactions, means, sure, "mean over the sets", limit=8.0),
        "Mean over the data sets of every effect, by reaction; bold where Student's interval over the sets does not "
        "hold zero.",
        [
            {"effect": e, "reaction": r, "mean": float(means[i, j])}
            for i, e in enumerate(EFFECTS)
            for j, r in enumerate(reactions)
        ],
    )  # fmt: skip
    for effect, (one, other, words) in EFFECTS.items():
        own = {(r["reaction"], r["dataset"]): r for r in effects if r["effect"] == effect}
        values = np.array([[_number(own.get((r, d)), "difference") for d in sets] for r in reactions])
        bold = np.array([[_number(own.get((r, d)), "p_holm") < LEVEL for d in sets] for r in reactions])
        if own:
            run.chart(
                _slug(one, other), FieldMap(reactions, sets, values, bold, effect),
                f"{words[0].upper()}{words[1:]}; points of accuracy, bold where sure after Holm's correction.",
                list(own.values()),
            )  # fmt: skip


def _number(row: Mapping[str, Any] | None, column: str) -> float:
    return math.nan if row is None else float(row[column])


def _slug(one: str, other: str) -> str:
    return f"{one}-{other}".replace("±", "_free").replace("+", "_positive")


def answer(effects: Sequence[MutableRow]) -> str:
    """What kind and sign of beta do on average, in one sentence."""

    def mean(effect: str) -> str:
        values = [float(row["difference"]) for row in effects if row["effect"] == effect]
        return f"{np.nanmean(values):+z.2f}" if values else "no number"

    return (
        f"A vector beta as published changes the accuracy by {mean('VC - SC')} points on average, of which "
        f"{mean('VC+ - SC')} come from the vector alone (sign held in (0, 1)) and {mean('VC - VC+')} from its free "
        f"sign; the soft adjacency by {mean('SA - OA')}."
    )


def about(s: Mapping[str, Any]) -> str:
    """What an option is, and which settings it leaves as they are."""
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    kinds = ", ".join(f"{name} {values['beta']}, {values['beta_link']}" for name, values in BETAS.items())
    return (
        f"Every option replaces one setting of the paper's best ones (Tables 13 to 19){changed}; the paper does not "
        "say whether the other settings were searched anew for each option, so that the printed numbers are "
        "underspecified. Adjacencies: OA is the graph's own with the symmetric normalisation, SA attention. Kinds of "
        f"beta: {kinds}. In the authors' code a scalar beta passes through a sigmoid and a vector does not: the "
        "published ablation compares values in (0, 1) with values of either sign. VC+ and SC± take the two apart."
        f"{uncompared(s['sets'])}"
    )
