"""The numbers of the pages that compare networks: agreement with print, paired tests, means over the nine sets."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gread.comparison import Comparison, mean_interval
from gread.datasets.meta import METRIC_TITLES
from gread.settings.model_records import find_model, models
from gread.settings.presets import authors_cells, authors_runs, find_published
from rdgraph.systems.parser import parse
from studies.benchmarks.accuracies import gap_to, verdict
from studies.benchmarks.discovered import DISCOVERED, FEW_TRIALS, MANY_TRIALS, TRANSFER, usual_discoveries
from studies.benchmarks.result_files import missing_cells
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
)  # fmt: skip
from studies.cells.cell import SETS
from studies.discovery.discovery_rows import METHOD, NORMALISATION, UNKNOWN, proofs
from studies.results import read_result
from studies.runs.chart import FieldMap
from studies.runs.tables import number_text
from studies.runs.uncertainty import FAILS, HOLDS

#: A cell in which this share of the trainings diverged is marked.
MANY = 0.1
#: Points of difference from which on a cell is an outlier.
FAR = 5.0
ALL_REACTIONS = (*REACTIONS, *BOUNDED)
#: Who is compared with the discovered equation under few trials.
FEW_NAMES = (*(one.name for one in REACTIONS), TUNED)
Cell: TypeAlias = tuple[str, str]
Cells: TypeAlias = dict[Cell, dict[str, Any]]
Rows: TypeAlias = Sequence[Mapping[str, Any]]


# ---------------------------------------------------------------------- compared with print
def paper_rows() -> list[dict[str, Any]]:
    """The cells with the paper's printed settings, as the study of the main tables measured them."""
    kept = read_result("classification")["results"]
    rows = (dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"])
    return [
        row | {"reaction": str(row["method"]).removeprefix("GREAD-")}
        for row in rows
        if row["family"] == "paper" and str(row["method"]).startswith("GREAD-")
    ]


def accuracy(found: Mapping[str, Any], printed: Rows) -> dict[str, Any]:
    """Every set with the authors' settings against their code, every printed cell against the paper."""
    authors = []
    for row in sorted(found["authors"]["rows"], key=lambda row: SETS.index(row["dataset"])):
        if row["authors"] is not None:
            gap = gap_to(row, "authors")
            row = row | {"gap": gap.difference, "error": gap.error, "verdict": verdict(gap)}
        authors.append(row)
    cells = {}
    for row in printed:
        word = None if row["paper"] is None else verdict(gap_to(row, "paper"))
        is_marked = row["diverged"] > MANY * row["trials"]
        cells[row["reaction"], row["dataset"]] = {**row, "verdict": word, "is_marked": is_marked}
    against = [row for row in cells.values() if row["verdict"]]
    counts = Counter(row["verdict"] for row in against)
    compared_authors = [row for row in authors if row["authors"] is not None]
    agree = sum(row["verdict"] == "agrees" for row in compared_authors) if compared_authors else None
    return {
        "authors": authors, "authors_agree": agree, "authors_compared": len(compared_authors),
        "sets": [name for name in SETS if any(dataset == name for _, dataset in cells)], "cells": cells,
        "reactions": list(dict.fromkeys(name for name, _ in cells)),
        "diverged": sum(row["is_marked"] for row in against),
        "counts": {word: counts[word] for word in ("agrees", "above", "below")},
    }  # fmt: skip


# ---------------------------------------------------------------------- compared networks
def status(row: Mapping[str, Any]) -> str:
    """agrees, above, below, underspecified, or "" where nothing was published.

    >>> status({"published": None})
    ''
    """
    if row["published"] is None:
        return ""
    word = verdict(gap_to({**row, "splits": len(row["each"])}, "published"))
    return "underspecified" if row["tried"] > 1 and word != "agrees" else word


def compared(found: Mapping[str, Any], reactions: Rows, notes: Rows, epochs: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of the page of compared networks: all cells, their agreement with print, outliers, costs."""
    own = [_as_cell(row) for row in reactions]
    every = [*found["rows"], *own]
    by_cell = {(row["model"], row["dataset"]): {**row, "status": status(row)} for row in every}
    names = [name for name in models if any((name, dataset) in by_cell for dataset in SETS)]
    names += dict.fromkeys(row["model"] for row in own)
    published = [row for row in every if row["published"] is not None]
    counts = Counter(map(status, published))
    far = [row for row in published if status(row) != "agrees" and abs(row["mean"] - row["published"]) > FAR]
    far.sort(key=lambda row: -abs(row["mean"] - row["published"]))
    return {
        "sets": SETS, "networks": {name: _title(name) for name in names}, "cells": by_cell,
        "published": len(published), "total": len(every), "far": FAR, "notes": notes,
        "counts": {word: counts[word] for word in ("agrees", "above", "below", "underspecified")},
        "difference": fmean(abs(row["mean"] - row["published"]) for row in published) if published else None,
        "outliers": [
            row | {"title": _title(row["model"]), "status": status(row), "cause": cause(row, notes)} for row in far
        ],
        "costs": list(_costs(found["rows"], epochs)),
    }  # fmt: skip


def _as_cell(row: Mapping[str, Any]) -> dict[str, Any]:
    """A cell of the main tables as one of this table."""
    named = {"model": f"GREAD-{row['reaction']}", "published": row["paper"], "published_std": row["paper_std"]}
    return {**row, **named, "each": [row["mean"]] * row["splits"], "tried": 1}


def _title(name: str) -> str:
    return models[name].title if name in models else name


def cause(row: Mapping[str, Any], notes: Rows) -> str:
    """The known cause of a difference between a cell and the paper."""
    for number, note in enumerate(notes, 1):
        if row["model"] in note["network"].split() and row["dataset"] in note["sets"].split():
            return f"{note['cause']} ({number})"
    parts = []
    if row.get("diverged"):
        parts.append(f"as printed, {row['diverged']} of {row['splits']} trainings diverge")
    for run in authors_cells():
        asked = run.beta == "free" and not run.row_features and not run.tanh
        if asked and (f"GREAD-{run.reaction}", run.dataset) == (row["model"], row["dataset"]):
            parts.append(f"the authors' code has {run.mean:.1f} ± {run.std:.1f} on {len(run.splits)} splits")
    return "; ".join(parts) or ("settings were not published" if row["tried"] > 1 else "not explained")


def _costs(rows: Rows, epochs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What training costs by network: an epoch of ten splits of Cora alone on the GPU, and all cells together."""
    each = {row["model"]: row["milliseconds"] for row in epochs.get("epochs", ())}
    for name in models:
        if own := [row for row in rows if row["model"] == name]:
            yield {
                "title": models[name].title, "epoch": each.get(name), "seconds": sum(row["seconds"] for row in own),
                "parameters": next((row["parameters"] for row in own if row["dataset"] == "cora"), None),
                "tried": sum(row["tried"] for row in own),
            }  # fmt: skip


# ---------------------------------------------------------------------- paired tests
def cells_of(found: Mapping[str, Any]) -> Cells:
    """The rows by contestant and data set."""
    return {(row[KEY], row["dataset"]): row for row in found["rows"]}


def paired_test(cells: Cells, own: str, other: str, dataset: str) -> Comparison | None:
    """Two contestants on a data set; None where one is missing, or the budgets differ."""
    first, second = cells.get((own, dataset)), cells.get((other, dataset))
    if first is None or second is None or any(first[name] != second[name] for name in ("trials", "epochs")):
        return None
    own_each, other_each = (dict(enumerate(row["each"])) for row in (first, second))
    return Comparison.of(own_each, other_each, first["test_to_train"])


def is_significant(test: Comparison | None) -> bool:
    return test is not None and test.answer in (HOLDS, FAILS)


def paired(test: Comparison | None) -> str:
    """A difference with its error, bold where it is significant.

    >>> paired(Comparison.of({0: 5.0, 1: 5.5}, {0: 0.0, 1: 0.0}, 0.0)), paired(None)
    ('**+5.25 (0.25)**', '')
    >>> paired(Comparison.of({0: 5.0}, {0: 0.0}, 0.0))
    '+5.00 (-)'
    """
    if test is None:
        return ""
    text = f"{number_text(test.difference, '+z.2f')} ({number_text(test.error)})"
    return f"**{text}**" if is_significant(test) else text


def tally(tests: Mapping[Any, Comparison | None]) -> dict[str, Any]:
    """How many there are, and the names of those where the first is significantly better, and worse."""
    known = {name: test for name, test in tests.items() if test is not None}
    better, worse = ([name for name, test in known.items() if test.answer == word] for word in (HOLDS, FAILS))
    return {"tests": len(known), "better": better, "worse": worse}


def _field(tests: Mapping[str, Sequence[Comparison | None]], sets: Sequence[str], title: str) -> FieldMap | None:
    """Differences of rows of tests as a figure, bold where significant; None where nothing is compared."""
    if not any(test for line in tests.values() for test in line):
        return None
    return FieldMap(
        list(tests), list(sets),
        np.array([[test.difference if test else np.nan for test in line] for line in tests.values()]),
        np.array([[is_significant(test) for test in line] for line in tests.values()]),
        f"{title}, test results; bold where significant", limit=10.0, unit="points",
    )  # fmt: skip


# ---------------------------------------------------------------------- searched settings
class Printed(NamedTuple):
    """What printed settings gave here: the mean, and whether trainings diverged."""

    mean: float
    is_diverged: bool


def published_mean(contestant: Contestant, dataset: str) -> float | None:
    """What the paper prints for a reaction or a network."""
    method = f"GREAD-{contestant.reaction}" if contestant.reaction else find_model(contestant.model).published
    row = find_published(method, dataset) if method and not contestant.line else None
    return row.mean if row else None


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


def printed_number(cells: Sequence[Printed | None]) -> str:
    """The mean of printed settings over some sets, marked where trainings diverged.

    >>> printed_number([Printed(80.0, False), Printed(70.0, True)]), printed_number([Printed(80.0, False), None])
    ('75.00†', '')
    """
    known = [cell for cell in cells if cell is not None]
    if len(known) < len(cells):
        return ""
    return number_text(fmean(cell.mean for cell in known)) + ("†" if any(cell.is_diverged for cell in known) else "")


def present(cells: Cells, contestants: Iterable[Contestant], sets: Sequence[str]) -> list[Contestant]:
    """Those that have a cell on some of the sets."""
    return [c for c in contestants if any((c.name, d) in cells for d in sets)]


def searched(found: Mapping[str, Any], printed_rows: Rows) -> dict[str, Any]:
    """Every reaction by set and on average, all contestants under equal budgets, and what it took."""
    cells = cells_of(found)
    printed = {(row["reaction"], row["dataset"]): Printed(row["mean"], row["diverged"] > 0) for row in printed_rows}
    sets = [d for d in (*SETS, *OTHERS) if any((name, d) in cells for name in CONTESTANTS)]
    answers = tally({d: paired_test(cells, FIRST, TUNED, d) for d in (*SETS, *OTHERS)})
    reactions = {d: _reactions_on(cells, printed, d) for d in SETS}
    every = None
    if all((c.name, d) in cells for c in ALL_REACTIONS for d in SETS):
        tops = {column: [_top(cells, d, column) for d in SETS] for column in ("val_mean", "by_test")}
        every = {"mean": fmean(row["mean"] for row in tops["val_mean"]),
                 "by_test": fmean(row["by_test"] for row in tops["by_test"])}  # fmt: skip
    metrics = {d: next(cells[n, d]["metric"] for n in CONTESTANTS if (n, d) in cells) for d in sets}
    return {
        "tests": answers, "best": _best_reaction(cells), "every": every,
        "reactions": {d: rows for d, rows in reactions.items() if rows}, "averages": list(_averages(cells, printed)),
        "drawn": searched_field(found) is not None, "results": _results(cells, sets), "pairs": _pairs(cells, sets),
        "sets": {d: d if metrics[d] == "accuracy" else f"{d}, {METRIC_TITLES[metrics[d]]}" for d in sets},
        "costs": list(_search_costs(found)),
        "missing": usual_cells(missing_cells(found, KEY, CONTESTANTS, (*SETS, *OTHERS))),
    }  # fmt: skip


def _best_reaction(cells: Cells) -> dict[str, Any] | None:
    """The reaction with the best mean on the validation nodes over the nine sets, of those that have all of them."""
    means = [
        {"title": c.title} | {k: fmean(cells[c.name, d][k] for d in SETS) for k in ("val_mean", "mean", "by_test")}
        for c in ALL_REACTIONS
        if all((c.name, d) in cells for d in SETS)
    ]
    return max(means, key=lambda row: row["val_mean"], default=None)


def _top(cells: Cells, dataset: str, column: str) -> dict[str, Any]:
    """The row of the reaction that has the most in a column."""
    return max((cells[c.name, dataset] for c in ALL_REACTIONS), key=lambda row: float(row[column]))


def _reactions_on(cells: Cells, printed: Mapping[Cell, Printed], dataset: str) -> list[dict[str, Any]]:
    """The rows of a data set with what was published and printed."""
    code = authors_runs().get(dataset)
    return [
        cells[c.name, dataset] | {
            "title": c.title, "paper": published_mean(c, dataset),
            "code": code.mean if code and c.name == FIRST else None,
            "printed": printed_number([printed.get((c.name, dataset))]),
        }
        for c in present(cells, ALL_REACTIONS, [dataset])
    ]  # fmt: skip


def _averages(cells: Cells, printed: Mapping[Cell, Printed]) -> Iterator[dict[str, Any]]:
    """Means over the nine sets of every contestant that has all of them, with the paper and the authors' code."""
    for c in present(cells, CONTESTANTS.values(), SETS):
        known = [cells[c.name, d] for d in SETS if (c.name, d) in cells]
        yield {
            "title": c.title, "known": len(known), "mean": fmean(row["mean"] for row in known),
            "by_test": fmean(row["by_test"] for row in known), "paper": average(published_mean(c, d) for d in SETS),
            "code": average(authors_runs()[d].mean for d in SETS) if c.name == FIRST else None,
            "printed": printed_number([printed.get((c.name, d)) for d in SETS]),
        }  # fmt: skip


def searched_field(found: Mapping[str, Any]) -> FieldMap | None:
    """BS minus every other contestant, by data set."""
    cells = cells_of(found)
    sets = [d for d in (*SETS, *OTHERS) if (FIRST, d) in cells]
    others = [c for c in present(cells, CONTESTANTS.values(), sets) if c.name != FIRST]
    tests = {c.title: [paired_test(cells, FIRST, c.name, d) for d in sets] for c in others}
    return _field(tests, sets, f"{FIRST} minus the others")


def _results(cells: Cells, sets: Sequence[str]) -> dict[str, Any]:
    """All contestants on all sets, and published tuned networks."""
    names = {c.name: c.title for c in present(cells, CONTESTANTS.values(), sets)}
    shown: dict[Cell, Mapping[str, Any]] = dict(cells)
    for row in sorted(published_tuned(), key=lambda row: row["network"]):
        title = f"published {CONTESTANTS[row['network']].title}, Luo et al. 2024"
        names[title] = title
        shown[title, row["dataset"]] = {"mean": float(row["mean"]), "std": float(row["std"])}
    return {"names": names, "cells": shown}


def _pairs(cells: Cells, sets: Sequence[str]) -> dict[str, Any]:
    """BS against every network, every other reaction against the tuned GCN, and how often either is better."""
    pairs = [(FIRST, c.name) for c in present(cells, NETWORKS, sets)]
    pairs += [(c.name, TUNED) for c in present(cells, ALL_REACTIONS, sets) if c.name != FIRST]
    names, shown = list[str](), dict[Cell, Any]()
    for first, second in pairs:
        tests = {d: paired_test(cells, first, second, d) for d in sets}
        if any(tests.values()):
            names.append(f"{CONTESTANTS[first].title} - {CONTESTANTS[second].title}")
            shown |= {(names[-1], d): test for d, test in tests.items()} | {(names[-1], "counts"): tally(tests)}
    return {"names": names, "cells": shown}


def _search_costs(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Seconds, the share of the epochs that was trained, and what became of the trials."""
    for c in present(cells_of(found), CONTESTANTS.values(), (*SETS, *OTHERS)):
        own = [row for row in found["rows"] if row[KEY] == c.name]
        trials = sum(row["trials"] for row in own)
        states = Counter[str]()
        for row in own:
            states.update(row["states"])
        yield {
            "title": c.title, "sets": len(own), "trials": trials, "states": sorted(states.items()),
            "share": sum(row["share"] * row["trials"] for row in own) / trials,
            "seconds": sum(row["seconds"] for row in own),
        }  # fmt: skip


# ---------------------------------------------------------------------- discovered equations
def title(name: str) -> str:
    return "discovered" if name in (DISCOVERED, FEW_TRIALS) else CONTESTANTS[name].title


def rows_named(found: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The rows of a contestant by data set, in the order of all tables."""
    rows = {row["dataset"]: row for row in found["rows"] if row[KEY] == name}
    return {dataset: rows[dataset] for dataset in (*SETS, *OTHERS) if dataset in rows}


def front_interval(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """The 95 % interval of the chosen equation, whose accuracies on the splits are kept; "" for the others."""
    if one["equation"] != row["formula"]:
        return ""
    low, high = mean_interval(row["untuned"]["each"], row["test_to_train"])
    return f" [{low:.2f}, {high:.2f}]"


def fresh_test(row: Mapping[str, Any]) -> Comparison:
    """The chosen equation minus BS, both with the defaults, on splits that the choice did not see."""
    own, other = (dict(enumerate(row["fresh"]["splits"][name]["each"])) for name in ("chosen", FIRST))
    return Comparison.of(own, other, row["test_to_train"])


def few_cells(found: Mapping[str, Any], searched_found: Mapping[str, Any]) -> Cells:
    """The cells with few trials: those of searched settings, and the discovered ones."""
    return cells_of(searched_found) | {cell: row for cell, row in cells_of(found).items() if cell[0] == FEW_TRIALS}


def discovered(found: Mapping[str, Any], searched_found: Mapping[str, Any]) -> dict[str, Any]:
    """What was chosen and proved, equal budgets with few trials and with many, the winner's curse, transfer, terms."""
    rows, few = rows_named(found, DISCOVERED), few_cells(found, searched_found)
    moved = rows_named(found, TRANSFER)
    missing = usual_discoveries(missing_cells(found, KEY, (FEW_TRIALS, DISCOVERED, *MANY_TRIALS), SETS))
    return {
        "rows": rows, "few_rows": rows_named(found, FEW_TRIALS), "moved": moved,
        "headline": tally({d: paired_test(few, FEW_TRIALS, FIRST, d) for d in rows_named(found, FEW_TRIALS)}),
        "fresh": tally({d: fresh_test(row) for d, row in rows.items()}), "fresh_test": fresh_test,
        "budgets": [_budget(few, FEW_TRIALS, FEW_NAMES), _budget(cells_of(found), DISCOVERED, MANY_TRIALS)],
        "transfer": _transfer(moved), "terms": terms, "normalisation": NORMALISATION, "method": METHOD,
        "proofs": lambda equation: [
            (topic, text) for topic, text in proofs(parse(equation)).items() if not text.startswith(UNKNOWN)
        ],
        "has_front": any(row["front"] for row in rows.values()),
        "drawn": discovered_field(found, searched_found) is not None,
        "missing": missing + missing_cells(found, KEY, (TRANSFER,), (*SETS, *OTHERS)),
    }  # fmt: skip


def _budget(cells: Cells, own: str, others: Sequence[str]) -> dict[str, Any]:
    """All contestants on the sets of the discovered equation, and how often it is better than each."""
    sets = [name for name in SETS if (own, name) in cells]
    known = [n for n in others if any((n, d) in cells for d in sets)]
    tests = {n: {d: paired_test(cells, own, n, d) for d in sets} for n in known}
    tests = {n: line for n, line in tests.items() if any(line.values())}
    compared_sets = {d for line in tests.values() for d, test in line.items() if test}
    return {
        "has_many": own == DISCOVERED, "sets": sets,
        "names": {n: title(n) for n in (own, *known)} | {"trials": "trials"},
        "cells": cells | {("trials", d): cells[own, d]["trials"] for d in sets},
        "others": [{"title": title(n)} | tally(line) for n, line in tests.items()],
        "pairs": {n: f"discovered - {title(n)}" for n in tests},
        "tests": {(n, d): test for n, line in tests.items() for d, test in line.items()},
        "trials": sorted({cells[own, d]["trials"] for d in compared_sets}),
    }  # fmt: skip


def discovered_field(found: Mapping[str, Any], searched_found: Mapping[str, Any]) -> FieldMap | None:
    """The discovered equation minus every other contestant, by data set."""
    few, rows = few_cells(found, searched_found), rows_named(found, DISCOVERED)
    sets = [name for name in SETS if (FEW_TRIALS, name) in few]
    tests: dict[str, list[Comparison | None]] = {
        f"{title(other)}, equal trials": [paired_test(few, FEW_TRIALS, other, d) for d in sets] for other in FEW_NAMES
    }
    tests[f"{FIRST}, same settings, fresh splits"] = [fresh_test(rows[d]) if d in rows else None for d in sets]
    kept = {name: line for name, line in tests.items() if any(line)}
    return _field(kept, sets, "the discovered equation minus the others")


def _transfer(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Equations of other sets on every set against BS, and the sets whose equations are worse nowhere."""
    tests: dict[Cell, Comparison] = {}
    means: dict[Cell, float] = {}
    for dataset, row in rows.items():
        each = {one["origin"]: dict(enumerate(one["each"])) for one in row["results"]}
        means |= {(one["origin"], dataset): one["mean"] for one in row["results"]}
        for name in each.keys() - {FIRST}:
            tests[name, dataset] = Comparison.of(each[name], each[FIRST], row["test_to_train"])
    found = tally(tests)
    origins = [name for name in SETS if any(own == name for own, _ in tests)]
    cells = [["BS", *(number_text(means[FIRST, d]) for d in rows), "", ""]]
    for name in origins:
        own = tally({d: tests.get((name, d)) for d in rows})
        moved = (_moved(means[name, d], tests[name, d]) if (name, d) in tests else "" for d in rows)
        cells.append([f"chosen on {name}", *moved, str(len(own["better"])), str(len(own["worse"]))])
    losers = {own for own, _ in found["worse"]}
    return found | {"origins": origins, "never": [name for name in origins if name not in losers], "cells": cells}


def _moved(mean: float, test: Comparison) -> str:
    text = f"{number_text(mean)} ({number_text(test.difference, '+z.2f')})"
    return f"**{text}**" if is_significant(test) else text


def terms(row: Mapping[str, Any], sign: int) -> str:
    """The terms of a row that help (sign 1) or harm (-1), of those whose interval does not contain 0."""
    sure = [t for t in row["terms"] if sign * t["effect"] > 0 and (t["low"] > 0 or t["high"] < 0)]
    return ", ".join(f"`{t['term']}` {number_text(t['effect'], '+z.1f')}" for t in sure) or "none for sure"
