"""The equation against the recipe: every propagation with every recipe, tuned alike, compared on fresh splits.

Which line stands for which layer is in `study.toml`; a test compares each with its formula:

- GCN average: `-L@H`, one Euler step of 1, A = D^-1/2 (W + I) D^-1/2. The flow is H - L H = A H.
- SAGE mean: the same line with P = D^-1 W, without self-loops: P H. In a block with matrices and a linear residual this
  is SAGE's layer, H V + P H W.
- attention: the same line with A = softmax(Q K^T) over the edges of the block's input, as in GREAD, not GAT's scores.
- all others: the equation of that name in the catalogue, by the method that follows from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from analysis.spectra.eigenvalues import spectrum
from gread.comparison import LEVEL, Comparison, Estimate, holm, none_beyond, split_means
from gread.datasets.node_data import NodeData
from gread.discovery.winner_checks import fresh_splits
from gread.models.batched_model import count_parameters
from gread.models.resolution import resolve_method
from gread.settings.config import Config
from gread.training.trainer import Trained
from gread.tuning.random_draws import draw_candidates
from gread.tuning.space import find_space
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.systems.catalogue import catalogue
from rdgraph.theory.filters import ALL, BAND, HIGH, LOW, STOP
from studies.cells.cell import (
    Cell,
    Origins,
    Variation,
    file_name,
    grouped_rows,
    load_set,
    train_cells,
    training_rows,
    write_trials,
)
from studies.datasets.local_sets import all_names
from studies.paper.paired_rows import share_of, with_holm
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run
from studies.runs.chart import Chart, Line, Panel
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED
from studies.training.training_figures import LINEAR_GAIN, gains, own_blocks

LISTS: dict[str, Any] = {"data sets": all_names}
SHEET = Sheet("study", folder="recipe", lists=LISTS)
PROPAGATIONS, RECIPES, GRAPH = (SHEET.entries[name] for name in ("propagations", "recipes", "graph"))
LISTS["propagations"] = list(PROPAGATIONS)
#: The propagation that others are compared with, and the first and last recipes.
BASE, BARE, TUNED = "gcn", next(iter(RECIPES)), list(RECIPES)[-1]
#: The layers of other networks; all other propagations are equations.
AVERAGES = (BASE, "sage", "attention")
#: Points below which a difference does not matter, and the factor within which numbers of parameters are comparable.
POINTS, COMPARABLE = 1.0, 1.1
#: The settings of a preset.
PRESET = (*SHEET.entries["preset"]["settings"], *GRAPH, *RECIPES[BARE])
#: The frequencies of stored gains; a gain within this share of the largest one counts as equal.
LAM, FLAT = np.linspace(0.0, 2.0, 21), 0.05
#: What propagations are called in a report.
TITLES: dict[str, str] = {name: one.get("title", name) for name, one in PROPAGATIONS.items()}
#: Accuracies by propagation, recipe and split of one data set.
Scores = dict[tuple[str, str], dict[int, float]]


# ---------------------------------------------------------------------- what is trained
def variations(propagation: str, recipe: str, s: Settings, seed: int) -> tuple[Variation, ...]:
    """The trials of a cell: what the propagation and the recipe fix, and the rest drawn from the space `modern`."""
    fixed = {**GRAPH, **PROPAGATIONS[propagation]["settings"], **RECIPES[recipe], "hidden": s["hidden"]}
    base = Config().updated({**fixed, "epochs": s["epochs"]})
    space = find_space("modern").of(base).without(set(fixed))
    drawn = draw_candidates(space, base, s["trials"], seed)
    labels = {"propagation": propagation, "recipe": recipe}
    return tuple(
        Variation({**labels, "trial": one.number, "settings": ", ".join(map(_words, one.values.items()))}, one.config)
        for one in drawn
    )


def _words(setting: tuple[str, Any]) -> str:
    name, value = setting
    return f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"


def search_cells(s: Settings, seed: int) -> list[Cell]:
    """A cell for every propagation with every recipe on every set, with all trials."""
    return [
        Cell(
            file_name("search", dataset, propagation, recipe), (dataset,), variations(propagation, recipe, s, seed),
            s["search_splits"],
        )
        for dataset in s["sets"]
        for recipe in RECIPES
        for propagation in s["propagations"]
    ]  # fmt: skip


def chosen_trials(rows: Sequence[MutableRow]) -> dict[tuple[str, str, str], tuple[int, float]]:
    """The trial of every set, propagation and recipe with the best mean validation accuracy, and this mean.

    >>> row = {"dataset": "cora", "propagation": "BS", "recipe": "bare", "test_accuracy": 0.9}
    >>> chosen_trials([{**row, "trial": k, "val_accuracy": v} for k, v in enumerate((0.5, 0.75, 0.25))])
    {('cora', 'BS', 'bare'): (1, 0.75)}
    """
    best: dict[tuple[str, str, str], tuple[int, float]] = {}
    for (dataset, propagation, recipe, trial), group in grouped_rows(
        rows, "dataset", "propagation", "recipe", "trial"
    ).items():
        key = str(dataset), str(propagation), str(recipe)
        value = float(np.nan_to_num(np.mean([float(row["val_accuracy"]) for row in group])))  # nan: diverged at once
        if key not in best or value > best[key][1]:
            best[key] = int(trial), value
    return best


def verdict_cells(s: Settings, seed: int, chosen: Mapping[tuple[str, str, str], tuple[int, float]]) -> list[Cell]:
    """The chosen trial of every cell, for the fresh splits."""
    return [
        Cell(
            file_name("fresh", *key), (key[0],), (variations(key[1], key[2], s, seed)[trial],), s["splits"]
        )
        for key, (trial, _) in chosen.items()
    ]  # fmt: skip


@cache
def load_fresh(name: str, count: int, seed: int) -> NodeData:
    """A data set with new random splits, on which no setting was chosen."""
    return fresh_splits(load_set(name), count, seed)


def rows_with_gains(origins: Origins, done: Trained) -> list[MutableRow]:
    """A row for every training: also its parameters, the gains of every block, and where the spectrum of L ends."""
    data, config = done.data_of(0), done.trials[0].config
    model = config.gread
    shared: MutableRow = {
        "parameters": count_parameters(model, data.graph, features=data.num_features, classes=data.num_classes),
        "spectrum_end": spectrum_end(origins[0][0], model.adjacency, model.normalisation, model.self_loops),
    }
    return [{**row, **shared, "gains": gain_text(done, k)} for k, row in enumerate(training_rows(origins, done))]


@cache
def spectrum_end(dataset: str, adjacency: str, normalisation: str, self_loops: float) -> float:
    """The largest eigenvalue of L; the bound 2 for attention, which has an operator of its own for every state."""
    graph = load_set(dataset).graph
    graph = graph if graph.is_undirected else graph.undirected()
    op = graph.operator(normalisation, self_loops=self_loops, dtype=torch.float64)
    try:
        return 2.0 if adjacency != "original" else float(spectrum(op, 1, end="high").values[-1])
    except Undecided:
        return 2.0


def gain_text(done: Trained, k: int) -> str:
    """The mean gain over the channels at `LAM`, a list per block, as json; empty without a filter response."""
    network = done.network(k)
    try:
        curves = [gains(network, LAM, block).mean(0) for block in own_blocks(network)]
    except NotApplicable:
        return ""
    return json.dumps([[float(f"{x:.4g}") for x in curve] for curve in curves])


class Measured(NamedTuple):
    """The rows on fresh splits, and the chosen trial of every cell with its validation score."""

    rows: list[MutableRow]
    chosen: dict[tuple[str, str, str], tuple[int, float]]
    seed: int = 0


def measure(run: StudyRun) -> Measured:
    """Train all trials, choose one in every cell by validation, and train it on fresh splits."""
    s, seed = run.settings, run.seed
    trials = train_cells(run, search_cells(s, seed)).rows
    chosen = chosen_trials(trials)
    load = partial(load_fresh, count=s["splits"], seed=seed)
    rows = train_cells(run, verdict_cells(s, seed, chosen), load, rows_with_gains, keep_best=True).rows
    write_trials(run, trials, "search_trials")
    write_trials(run, rows)
    return Measured(rows, chosen, seed)


# ---------------------------------------------------------------------- numbers
def scores_by_set(rows: Sequence[MutableRow]) -> dict[str, Scores]:
    """Accuracies on fresh splits of every set."""
    result: dict[str, Scores] = {}
    for (dataset, propagation, recipe), group in grouped_rows(rows, "dataset", "propagation", "recipe").items():
        result.setdefault(str(dataset), {})[str(propagation), str(recipe)] = split_means(group)
    return result


def recipe_gain(scores: Scores, first: str, last: str, dataset: str) -> Comparison:
    """What one recipe has above another: the mean over all propagations with both, split by split."""
    both = [p for p in PROPAGATIONS if (p, first) in scores and (p, last) in scores]
    return Comparison.of(_mean(scores, both, last), _mean(scores, both, first), share_of(dataset))


def equation_gain(scores: Scores, recipe: str, dataset: str) -> Comparison | None:
    """What the mean of the equations has above the GCN average with the same recipe, split by split."""
    equations = [p for p in PROPAGATIONS if p not in AVERAGES and (p, recipe) in scores]
    if (BASE, recipe) not in scores or not equations:
        return None
    return Comparison.of(_mean(scores, equations, recipe), scores[BASE, recipe], share_of(dataset))


def _mean(scores: Scores, propagations: Sequence[str], recipe: str) -> dict[int, float]:
    splits = scores[propagations[0], recipe] if propagations else ()
    return {split: float(np.mean([scores[p, recipe][split] for p in propagations])) for split in splits}


def propagation_gains(scores: Scores, recipe: str, dataset: str) -> dict[str, Comparison]:
    """What every propagation has above the GCN average with the same recipe."""
    if (BASE, recipe) not in scores:
        return {}
    base = scores[BASE, recipe]
    return {
        p: Comparison.of(scores[p, recipe], base, share_of(dataset))
        for p in PROPAGATIONS
        if p != BASE and (p, recipe) in scores
    }


def effect_table(measured: Mapping[str, Scores]) -> list[MutableRow]:
    """On every set: all ingredients, the equations with each recipe, and the propagations with the tuned recipe."""
    table: list[MutableRow] = []
    for dataset, scores in measured.items():
        kinds = {
            "ingredient": {last: recipe_gain(scores, first, last, dataset) for first, last in pairwise(RECIPES)},
            "equations": {recipe: one for recipe in RECIPES if (one := equation_gain(scores, recipe, dataset))},
            "propagation": propagation_gains(scores, TUNED, dataset),
        }
        for kind, tests in kinds.items():
            table += with_holm([
                {
                    "dataset": dataset, "kind": kind, "name": name, "difference": round(test.difference, 4),
                    "low": test.interval[0], "high": test.interval[1], "reach": test.reach, "p": test.p,
                }
                for name, test in tests.items()
            ])  # fmt: skip
    return table


def summary_table(effects: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every set: the equations above the GCN average with every recipe."""
    groups = grouped_rows([row for row in effects if row["kind"] == "equations"], "dataset")
    return [
        {"data set": dataset, **{str(row["name"]): SHEET.text("cell", **row) for row in rows}}
        for (dataset,), rows in groups.items()
    ]


def cell_table(
    measured: Mapping[str, Scores], rows: Sequence[MutableRow], chosen: Mapping[tuple[str, str, str], tuple[int, float]]
) -> list[MutableRow]:
    """A row for every propagation and recipe on every set."""
    groups = grouped_rows(rows, "dataset", "recipe", "propagation")
    table: list[MutableRow] = []
    for (dataset, recipe), part in grouped_rows(rows, "dataset", "recipe").items():
        tests = propagation_gains(measured[str(dataset)], str(recipe), str(dataset))
        corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
        base = groups.get((dataset, recipe, BASE))
        for propagation in dict.fromkeys(str(row["propagation"]) for row in part):
            group = groups[dataset, recipe, propagation]
            one, count = Estimate.of(group), int(group[0]["parameters"])
            ratio = count / int(base[0]["parameters"]) if base else float("nan")
            table.append({
                "dataset": dataset, "propagation": propagation, "recipe": recipe, "mean": round(one.mean, 4),
                "std": round(one.std, 4), "splits": one.count, "diverged": sum(r["status"] != "ok" for r in group),
                "difference": round(tests[propagation].difference, 4) if propagation in tests else 0.0,
                "p_holm": corrected.get(propagation, float("nan")), "parameters": count, "ratio": round(ratio, 3),
                "comparable": int(1 / COMPARABLE <= ratio <= COMPARABLE),
                "validation": round(100 * chosen[str(dataset), propagation, str(recipe)][1], 4),
                "filter": filter_words(mean_gains(group), float(group[0]["spectrum_end"])),
                "settings": group[0]["settings"],
            })  # fmt: skip
    return table


def mean_gains(group: Sequence[MutableRow]) -> np.ndarray | None:
    """The gains (blocks, len(LAM)) of some trainings, their mean; None if one of them has no response."""
    texts = [str(row["gains"]) for row in group]
    return np.mean([json.loads(text) for text in texts], axis=0) if all(texts) else None


def filter_words(curves: np.ndarray | None, end: float) -> str:
    """The kind of the filter of all blocks in a row on the spectrum of a graph, from 0 to `end`.

    >>> filter_words(np.array([1 - LAM, 1 - LAM]), 1.2), filter_words(np.array([1 - LAM]), 2.0)
    ('low-pass, |g| 1 at 0 and 0.04 at 1.2', 'band-stop, |g| 1 at 0 and 1 at 2')
    >>> filter_words(np.array([1 + 0 * LAM]), 2.0), filter_words(None, 2.0)
    ('all-pass, |g| 1 at 0 and 1 at 2', 'no linear filter')
    """
    if curves is None:
        return "no linear filter"
    grid = np.linspace(0.0, end, len(LAM))
    gain = np.abs(np.prod([np.interp(grid, LAM, curve) for curve in curves], axis=0))
    near = FLAT * gain.max()
    first, last = gain[0], gain[-1]
    if np.ptp(gain) <= near:
        kind = ALL
    elif gain.max() > max(first, last) + near:
        kind = BAND
    elif gain.min() < min(first, last) - near:
        kind = STOP
    else:
        kind = LOW if first > last else HIGH
    return f"{kind}, |g| {first:.2g} at 0 and {last:.2g} at {end:.2g}"


def modern_settings(found: Measured, s: Settings) -> list[MutableRow]:
    """The presets `modern`: the settings of every equation on every set, from its best recipe by validation score."""
    best: dict[tuple[str, str], tuple[str, int, float]] = {}
    for (dataset, name, recipe), (trial, score) in found.chosen.items():
        if name not in AVERAGES and score > best.get((dataset, name), ("", 0, -1.0))[2]:
            best[dataset, name] = recipe, trial, score
    groups = grouped_rows(found.rows, "dataset", "propagation", "recipe")
    table: list[MutableRow] = []
    for (dataset, name), (recipe, trial, score) in best.items():
        config = variations(name, recipe, s, found.seed)[trial].config
        sections = replace(config, model=resolve_method(config.gread)[0]).sections()
        one = Estimate.of(groups[dataset, name, recipe])
        source = SHEET.text(
            "source", recipe=recipe, validation=100 * score, mean=one.mean, std=one.std, splits=one.count
        )
        known = {k: str(v).lower() if isinstance(v, bool) else v for part in sections.values() for k, v in part.items()}
        values = {k: known.get(k, "") for k in PRESET}
        table.append({"dataset": dataset, **values, "source": source})
    return table


# ---------------------------------------------------------------------- verdicts and words
def verdicts(measured: Mapping[str, Scores]) -> Iterator[Verdict]:
    """On every set: does the propagation matter with the tuned recipe, and does the recipe?"""
    for dataset, scores in measured.items():
        tests = propagation_gains(scores, TUNED, dataset)
        sure = any(p < LEVEL for p in holm([test.p for test in tests.values()]))
        both = [t for one in tests.values() for t in (one, Comparison(-one.difference, one.error, one.splits))]
        answer = HOLDS if sure else FAILS if none_beyond(both, POINTS) == HOLDS else UNDECIDED
        listed = ", ".join(f"{TITLES[name]} {test.text}" for name, test in tests.items()) or "no propagation"
        yield SHEET.verdict("matters", answer, dataset=dataset, listed=listed, count=len(tests))
        whole = recipe_gain(scores, BARE, TUNED, dataset)
        yield SHEET.verdict("recipe", whole.answer, dataset=dataset, difference=whole.text, test=whole.test)


def answer(effects: Sequence[MutableRow], cells: Sequence[MutableRow]) -> str:
    """On how many sets the equations matter with each recipe; with the tuned one by how much, and by what filter."""
    sure = [row for row in effects if float(row["p_holm"]) < LEVEL]
    sets, texts = list(dict.fromkeys(str(row["dataset"]) for row in effects)), []
    for recipe in RECIPES:
        ahead = [float(row["difference"]) > 0 for row in _rows(sure, "equations", name=recipe)]
        counts = {"ahead": sum(ahead), "behind": len(ahead) - sum(ahead)}
        texts.append(SHEET.text("count" if recipe == BARE else "other", recipe=recipe, sets=len(sets), **counts))
    kinds = {(r["dataset"], r["propagation"], r["recipe"]): str(r["filter"]).partition(",")[0] for r in cells}
    found = [max(rows, key=_size) for name in sets if (rows := _rows(sure, "propagation", dataset=name))]
    listed = "; ".join(
        SHEET.text(
            "difference", dataset=row["dataset"], title=TITLES[str(row["name"])], points=float(row["difference"]),
            filter=kinds[row["dataset"], row["name"], TUNED], base=kinds[row["dataset"], BASE, TUNED],
        )
        for row in found
    )  # fmt: skip
    tuned = SHEET.text("matters" if found else "same", listed=listed, count=len(found), sets=len(sets))
    return f"{'; '.join(texts)}. {tuned}"


def _size(row: MutableRow) -> float:
    return abs(float(row["difference"]))


def _rows(effects: Sequence[MutableRow], kind: str, **values: str) -> list[MutableRow]:
    return [row for row in effects if all(row[name] == value for name, value in {"kind": kind, **values}.items())]


# ---------------------------------------------------------------------- figures
def effect_chart(effects: Sequence[MutableRow]) -> Chart:
    """On every set: points of the ingredients, and of the equations above the average with each recipe."""
    sets = list(dict.fromkeys(str(row["dataset"]) for row in effects))
    panels = []
    for kind, title in (
        ("equations", "equations above the GCN average"),
        ("ingredient", "ingredient added to the recipe"),
    ):
        own = list(dict.fromkeys(str(row["name"]) for row in effects if row["kind"] == kind))
        lines = []
        for k, name in enumerate(own):
            rows = _rows(effects, kind, name=name)
            points, errors = (np.array([float(row[column]) for row in rows]) for column in ("difference", "reach"))
            places = np.array(
                [sets.index(str(row["dataset"])) + (k - (len(own) - 1) / 2) * 0.7 / len(own) for row in rows]
            )
            look = list(RECIPES).index(name)
            lines.append(Line(name, places, points, errors, style="dots", look=look, error_name="95 % interval"))
        if lines:
            panels.append(Panel(title, lines, {"no difference": 0.0}, names=sets))
    return Chart(panels, "", "points", columns=1)


def response_chart(rows: Sequence[MutableRow]) -> Chart | None:
    """The trained response of every block with the tuned recipe, a panel for every set and propagation."""
    panels = []
    tuned = [row for row in rows if row["recipe"] == TUNED and row["propagation"] != "attention"]
    for (dataset, propagation), group in grouped_rows(tuned, "dataset", "propagation").items():
        curves = mean_gains(group)
        if curves is not None:
            lines = [Line(f"block {k + 1}", LAM, curve, look=k) for k, curve in enumerate(curves)]
            panels.append(Panel(f"{dataset}: {TITLES[str(propagation)]}", lines, {"unchanged": 1.0}))
    if not panels:
        return None
    largest = max(float(np.abs(line.y).max()) for panel in panels for line in panel.lines)
    scale = "linear" if largest <= LINEAR_GAIN else "symlog"
    return Chart(panels, "λ, eigenvalue of L", "gain", y_scale=scale, columns=4)


def about(s: Settings) -> str:
    """The recipes, and what was searched."""
    words = {
        name: ", ".join(f"{k} {v}" for k, v in one.items()) or "all of these searched" for name, one in RECIPES.items()
    }
    return SHEET.text("about", recipes="; ".join(f"{name}: {one}" for name, one in words.items()), **s)


def findings(found: Measured, s: Settings) -> Findings:
    """Every ingredient and every propagation in points, and the filters that were learned."""
    measured = scores_by_set(found.rows)
    effects, cells = effect_table(measured), cell_table(measured, found.rows, found.chosen)
    responses = response_chart(found.rows)
    lines: dict[str, Any] = {p: PROPAGATIONS[p]["settings"]["reaction"] for p in s["propagations"]}
    return Findings(
        results=cells,
        items=[
            Picture("ingredients", effect_chart(effects), SHEET.text("ingredients")),
            Table("summary", summary_table(effects), SHEET.text("summary")),
            Table("effects", effects, SHEET.text("effects")),
            Table("cells", cells, SHEET.text("cells")),
            Table("modern_settings", modern_settings(found, s), SHEET.text("modern")),
            Picture("responses", responses, SHEET.text("responses")) if responses else None,
        ],
        verdicts=list(verdicts(measured)),
        answer=answer(effects, cells),
        shows="ingredients",
        about=about(s),
        equations={TITLES[p]: str(catalogue.get(text, text)) for p, text in lines.items()},
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(measure, findings)
