"""Figure 6 of the paper: accuracy on the synthetic Cora from heterophily (h = 0) to homophily (h = 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product

import numpy as np

from gread.comparison import Comparison, all_pairs, none_beyond, reach, standard_error
from gread.settings.config import Config
from gread.settings.model_records import find_model
from studies.cells.cell import Cell, Variation, file_name, grouped_rows
from studies.oversmoothing.networks_part import fitting_config
from studies.paper.degrees import CORA, SAMPLE, degree_rows, graph_names, level_graph, level_of
from studies.paper.drawing import panels_chart
from studies.paper.paired_rows import all_positive, signed, with_holm
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run, trained
from studies.runs.chart import Line
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

SHEET = Sheet("homophily", lists={"adjacencies": ("original", "soft"), "sources": (CORA, SAMPLE)})
#: Points that a curve falls by from one level to the next to be called a sudden drop, or moves by in all to be called
#: steady.
SUDDEN, STEADY = 5.0, 5.0
#: Levels up to this one are low homophily.
LOW = 0.3
#: Accuracies in percent by level and graph, and such curves by method.
Curve = Mapping[float, Mapping[int, float]]
Curves = dict[str, dict[float, dict[int, float]]]


# ---------------------------------------------------------------------- what is trained
def configurations(name: str, s: Settings) -> list[Config]:
    """The settings that a network or a reaction chooses from: those of Table 11 that it has.

    Reactions choose among adjacencies, end times and learning rates, with the first weight decay; other networks among
    learning rates and weight decays, GRAND among end times too.

    >>> given = settings(False)
    >>> len(configurations("GREAD-BS", given)), len(configurations("gcn", given))
    (8, 4)
    """
    reaction = name.removeprefix("GREAD-")
    shared = {key: s[key] for key in ("epochs", "dropout", "input_dropout", "hidden")}
    rates = product(s["learning_rates"], s["weight_decays"])
    optimisers = [{**shared, "learning_rate": lr, "weight_decay": wd} for lr, wd in rates]
    flows = [{"time": time, "step": s["step"], "method": "euler"} for time in s["times"]]
    if name == reaction:
        known = flows if name == "grand" else [{}]
        return [fitting_config(name, {**values, **flow}) for values, flow in product(optimisers, known)]
    given = {"reaction": reaction, "alpha": "scalar", "beta": "channel", "self_loops": 0.0}
    graphs = [{"adjacency": a, "normalisation": SHEET.entries["normalisations"][a]} for a in s["adjacencies"]]
    first_decay = optimisers[:: len(s["weight_decays"])]
    return [
        Config().updated({**values, **given, **graph, **flow})
        for graph, flow, values in product(graphs, flows, first_decay)
    ]


def make_cells(s: Settings) -> list[Cell]:
    """A cell for every network: all its settings on all graphs."""
    cells = []
    for name in (*s["models"], *(f"GREAD-{reaction}" for reaction in s["reactions"])):
        title = name if name.startswith("GREAD-") else find_model(name).title
        choices = enumerate(configurations(name, s))
        built = tuple(Variation({"method": title, "choice": k}, config) for k, config in choices)
        cells.append(Cell(file_name(name), graph_names(s), built, s["splits"], 1))
    return cells


# ---------------------------------------------------------------------- numbers
def chosen_rows(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """The trainings of the choice that is best on the validation nodes, for every network at every level."""
    chosen: list[MutableRow] = []
    levelled: list[MutableRow] = [{**row, "level": level_of(str(row["dataset"]))} for row in rows]
    for part in grouped_rows(levelled, "method", "level").values():
        choices = grouped_rows(part, "choice").values()
        chosen += max(choices, key=lambda group: float(np.mean([float(row["val_accuracy"]) for row in group])))
    return chosen


def make_curves(rows: Sequence[MutableRow]) -> Curves:
    """Accuracies of every network by level and graph, means over the splits."""
    curves: Curves = {}
    for (method, level, dataset), part in grouped_rows(rows, "method", "level", "dataset").items():
        mean = 100 * float(np.mean([float(row["test_accuracy"]) for row in part]))
        curves.setdefault(str(method), {}).setdefault(float(level), {})[int(str(dataset).split(":")[2])] = mean
    return curves


def level_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every network and level."""
    curves = make_curves(rows)
    table: list[MutableRow] = []
    for (method, level), part in grouped_rows(rows, "method", "level").items():
        means = np.array(list(curves[str(method)][float(level)].values()))
        table.append({
            "method": method, "homophily": float(level), "mean": round(float(means.mean()), 4),
            "error": standard_error(float(means.std()), means.size), "graphs": int(means.size), "trials": len(part),
            "choice": int(part[0]["choice"]), "diverged": sum(row["status"] != "ok" for row in part),
        })  # fmt: skip
    return table


def _means(curve: Curve) -> dict[float, float]:
    return {level: float(np.mean(list(result.values()))) for level, result in sorted(curve.items())}


# ---------------------------------------------------------------------- verdicts
def verdicts(curves: Curves) -> list[Verdict]:
    """The paper's sentences about its figure."""
    group = [name for name in curves if name.startswith("GREAD-")]
    built = []
    if "MLP" in curves:
        built.append(_steady("MLP", curves["MLP"]))
        built += [_poor(name, curves) for name in ("GCN", "GAT", "GRAND") if name in curves]
    if "H2GCN" in curves:
        smooth, details = _largest_drop(curves["H2GCN"])
        answer = {HOLDS: FAILS, FAILS: HOLDS}.get(smooth, UNDECIDED)
        built.append((f"H2GCN suddenly decreases at some homophily (by {SUDDEN:g} points or more).", answer, details))
    for name in group:
        built.append((f"{name} has no sudden drop (of {SUDDEN:g} points or more).", *_largest_drop(curves[name])))
    return [*built, *(_best_trend(name, curves) for name in group)]


def _against(curves: Curves, one: str, other: str, most: float = 1.0) -> Comparison:
    """One network against another on the levels up to `most`.

    The unit is the graph: its levels have the same nodes, features and splits, and count with their mean.
    """
    levels = [level for level in curves[one] if level <= most]
    return Comparison.of(_graph_means(curves[one], levels), _graph_means(curves[other], levels), 0.0)


def _graph_means(curve: Curve, levels: Sequence[float]) -> dict[int, float]:
    """The mean over some levels of every graph that has all of them."""
    graphs = set.intersection(*(set(curve[level]) for level in levels)) if levels else set()
    return {graph: float(np.mean([curve[level][graph] for level in levels])) for graph in sorted(graphs)}


def _steady(name: str, curve: Curve) -> Verdict:
    means, tests = _means(curve).values(), all_pairs(curve, 0.0)
    error = max((test.error for test in tests if not np.isnan(test.error)), default=float("nan"))
    low, high, graphs = min(means), max(means), max(len(result) for result in curve.values())
    return SHEET.verdict(
        "steady", none_beyond(tests, STEADY), name=name, most=STEADY, low=low, high=high, spread=high - low,
        error=error, graphs=graphs,
    )  # fmt: skip


def _poor(name: str, curves: Curves) -> Verdict:
    test = _against(curves, name, "MLP", LOW)
    return SHEET.verdict("poor", signed(-test.difference, test.p), name=name, low=LOW, test=test)


def _largest_drop(curve: Curve) -> tuple[str, str]:
    """Whether every fall from a level to the next is less than a sudden one, and the largest of them in words."""
    falls = {(a, b): Comparison.of(curve[a], curve[b], 0.0) for a, b in pairwise(sorted(curve))}
    if not falls:
        return UNDECIDED, "one level alone"
    (start, end), test = max(falls.items(), key=lambda pair: pair[1].difference)
    return none_beyond(list(falls.values()), SUDDEN), SHEET.text(
        "fall", moved="the largest fall" if test.difference > 0 else "it never falls; the smallest rise",
        size=abs(test.difference), error=test.error, graphs=test.splits, start=start, end=end, falls=len(falls),
    )  # fmt: skip


def _best_trend(name: str, curves: Curves) -> Verdict:
    """Is a reaction better than every other network over all levels?"""
    tests = {other: _against(curves, name, other) for other in curves if not other.startswith("GREAD-")}
    rows = with_holm([{"other": o, "difference": test.difference, "p": test.p} for o, test in tests.items()])
    details = ", ".join(f"{r['other']} {r['difference']:+z.2f} (p {r['p_holm']:.2g})" for r in rows)
    return SHEET.verdict("trend", all_positive(rows), name=name, listed=details)


# ---------------------------------------------------------------------- figures and words
def picture(table: Sequence[MutableRow], source: str) -> Picture | None:
    """BS among the other networks, and the reactions."""
    panels: dict[str, list[Line]] = {"GREAD-BS and other networks": [], "reactions": []}
    for (name,), group in grouped_rows(table, "method").items():
        line = Line.of(str(name), group, "homophily", "mean", "error")
        if str(name).startswith("GREAD-"):
            panels["reactions"].append(line)
        if name == "GREAD-BS" or not str(name).startswith("GREAD-"):
            panels["GREAD-BS and other networks"].append(line)
    filled = {name: lines for name, lines in panels.items() if lines}
    words = SHEET.text("networks", graphs=SHEET.entries["graphs"][source])
    return Picture("networks", panels_chart(filled, "homophily h", columns=2), words) if filled else None


def answer(curves: Curves) -> str:
    """Who is best over all levels and at the two ends, in one sentence."""
    if not curves:
        return "Nothing was trained."
    means = {name: _means(curve) for name, curve in curves.items()}
    overall = {name: float(np.mean(list(group.values()))) for name, group in means.items()}
    best = max(overall, key=lambda name: overall[name])
    ends = []
    for level in (min(curves[best]), max(curves[best])):
        first = max(means, key=lambda name: means[name].get(level, 0.0))
        ends.append(f"{first} at h = {level:g} ({means[first][level]:.1f} %)")
    second = max((name for name in overall if name.startswith("GREAD-")), key=lambda name: overall[name], default=best)
    behind = "" if second == best else f", ahead of the best reaction, {second} ({overall[second]:.1f} %)"
    return SHEET.text("answer", best=best, mean=overall[best], reaction=behind, start=ends[0], end=ends[1])


def about(s: Settings) -> str:
    """Which graphs were grown, with which settings networks were trained on them, and what they chose from."""
    table = settings(False)
    other = [word for name, word in SHEET.entries["shared"].items() if s[name] != table[name]]
    several, one = "several graphs a level with splits of their own", "one graph a level with its own splits"
    return SHEET.text(
        "about", features=SHEET.entries["features"][s["source"]], graphs=several if s["graphs"] > 1 else one,
        but=f", but for {listed(other)}" if other else "", choices=choice_words(s), units=unit_words(s["graphs"]),
        **{name: s[name] for name in SHEET.entries["shared"]},
    )  # fmt: skip


def choice_words(s: Settings) -> str:
    """What every network chooses from, where there is more than one value, and what it is given."""
    words: dict[str, str] = SHEET.entries["choices"]
    asked = {
        "reactions choose": ("adjacencies", "times", "learning_rates") if s["reactions"] else (),
        "GRAND chooses": ("times", "learning_rates", "weight_decays") if "grand" in s["models"] else (),
        "the others choose": ("learning_rates", "weight_decays") if set(s["models"]) - {"grand"} else (),
    }
    chosen: list[str] = []
    for who, names in asked.items():
        if names:
            what = listed([words[name] for name in names if len(s[name]) > 1]) or "nothing"
            chosen.append(f"{who.rpartition(' ')[0] if chosen else who} {what}")
    alone = {word: s[name][0] for name, word in words.items() if len(s[name]) == 1}
    given = [f"{word} {value if isinstance(value, str) else f'{value:g}'}" for word, value in alone.items()]
    return SHEET.text("choices", chosen=", ".join(chosen), given=f"; given are {listed(given)}" if given else "")


def unit_words(graphs: int) -> str:
    """How significant a difference over this many graphs can be.

    >>> unit_words(1)
    'one graph has no standard error, so no difference is significant.'
    """
    if graphs == 1:
        return SHEET.text("one graph")
    return SHEET.text("more graphs", graphs="three" if graphs == 3 else graphs, quantile=reach(1.0, graphs))


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def findings(rows: Sequence[MutableRow], s: Settings) -> Findings:
    """Curves of the networks with the settings that validation nodes chose, and the paper's sentences about them."""
    chosen = chosen_rows(rows)
    curves, table = make_curves(chosen), level_table(chosen)
    return Findings(
        results=table,
        items=[
            picture(table, str(s["source"])),
            Table("levels", table, SHEET.text("levels")),
            Table("degrees", degree_rows(s), SHEET.text("degrees")) if s["source"] == CORA else None,
        ],
        verdicts=verdicts(curves),
        answer=answer(curves),
        shows="networks",
        about=about(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(trained(make_cells, level_graph), findings)
