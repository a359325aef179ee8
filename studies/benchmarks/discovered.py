"""Discovered equations, the reactions and a tuned GCN under equal budgets.

A cell is a contestant on a data set. "discovered" searches equations with the defaults of gread, then settings of the
chosen one, as searches of settings do; BS and a tuned GCN have as many trials of settings as both together.
These two are measured on the three small sets alone unless they are asked for, to save time.
"discovered-few" is the same with as many trials in all as everybody has in `searched`, whose cells the page compares it
with: all reactions. "transfer" tries the equations that were chosen on other sets, unchanged, with the defaults, once
all of them are there. Test nodes are never used for selection.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import share_ratio
from gread.datasets.node_data import NodeData
from gread.discovery.discovering import Discovery, usual_jobs
from gread.discovery.discovery_plan import Discovered, DiscoveryPlan
from gread.discovery.equation_batches import line_config
from gread.discovery.term_grammar import find_terms
from gread.discovery.winner_checks import fresh_splits, retrained, term_effects
from gread.settings.config import Config
from gread.training.trainer import choose_device
from gread.tuning.selection import best_by_test, nested_accuracies
from rdgraph.errors import InvalidArgument
from rdgraph.systems.parser import parse
from studies.benchmarks import searched
from studies.benchmarks.result_files import (
    RESULTS,
    Cell,
    ResultRow,
    checked,
    measure_table,
    missing_cells,
    read_cells,
    say,
)
from studies.benchmarks.searched import CONTESTANTS, FIRST, KEY, OTHERS, TUNED, Contestant, searched_line, searched_row
from studies.cells.cell import SETS
from studies.discovery.discovery_rows import front_rows

DISCOVERED, FEW_TRIALS, TRANSFER = "discovered", "discovered-few", "transfer"
NAMES = (FEW_TRIALS, DISCOVERED, FIRST, TUNED, TRANSFER)
#: Terms of the equations that are enumerated, and seeds with which chosen equations are retrained.
SIZE, FRESH = 3, 3
#: How many of the best, and of the terms, a row keeps.
TOP, TERMS = 10, 12

#: Who has as many trials of settings as a whole search over equations.
MANY_TRIALS = (FIRST, TUNED)
#: Equations of a cell, and trials of settings of the chosen one.
EQUATIONS = dict.fromkeys(("texas", "wisconsin", "cornell_old", "chameleon", "cora", "citeseer"), 500)
FEWER = 150
SETTINGS = {"texas": 100, "wisconsin": 100, "cornell_old": 100}
FEW_SETTINGS = 30
#: The share of equations among few trials; the others are settings of the chosen one.
SHARE = 0.75


@dataclass(frozen=True)
class Budget:
    """Trials of a cell: equations, and settings of the chosen one; others that are compared have the sum."""

    equations: int
    settings: int
    epochs: int

    @classmethod
    def of(cls, dataset: str, equations: int | None, settings: int | None, epochs: int | None) -> Budget:
        """The budget of a data set, or another one.

        >>> Budget.of("texas", None, None, None), Budget.of("film", None, 5, None).total
        (Budget(equations=500, settings=100, epochs=200), 155)
        """
        own = equations or EQUATIONS.get(dataset, FEWER), settings or SETTINGS.get(dataset, FEW_SETTINGS)
        return cls(*own, searched.epochs_of(dataset, epochs))

    @classmethod
    def few(cls, dataset: str, trials: int | None, epochs: int | None) -> Budget:
        """As many trials in all as a contestant of `searched` has on a data set, or another number.

        >>> Budget.few("texas", None, None), Budget.few("film", None, None)
        (Budget(equations=150, settings=50, epochs=200), Budget(equations=45, settings=15, epochs=200))
        """
        total = searched.trials_of(dataset, trials)
        equations = int(SHARE * total)
        if equations < 1:
            raise InvalidArgument(f"expected at least 2 trials, one of an equation and one of settings, got {total}")
        return cls(equations, total - equations, searched.epochs_of(dataset, epochs))

    @property
    def total(self) -> int:
        return self.equations + self.settings


def usual_discoveries(cells: Sequence[Cell]) -> list[Cell]:
    """Those of some cells that are measured unless a contestant is asked for.

    >>> usual_discoveries([("BS", "texas"), ("BS", "cora"), ("discovered", "cora")])
    [('BS', 'texas'), ('discovered', 'cora')]
    """
    return [(name, dataset) for name, dataset in cells if dataset in SETTINGS or name not in MANY_TRIALS]


class OutOfTime(BaseException):
    """No time is left for another round; no error, so that nothing is noted as failed."""


# ---------------------------------------------------------------------- one search over equations
def defaults(epochs: int) -> Config:
    """The settings around every equation that is searched."""
    return Config().updated({"epochs": epochs})


def measure_discovered(
    name: str, dataset: str, data: NodeData, budget: Budget, *, device: str, seed: int, folder: Path, terms: str,
    until: float = float("inf"),
) -> ResultRow:  # fmt: skip
    """Search equations, then settings of the chosen one, and retrain it.

    Numbers are percent of the set's metric, accuracy or ROC-AUC. `untuned` is the chosen equation with the defaults,
    `tuned` the best trial of its settings; `mean`, `std` and `each` are those on the test nodes of whichever has the
    better validation accuracy, `val_mean` what it was chosen by. `fresh` are the chosen equation and BS with the
    defaults, retrained: by kind and name the validation mean and the test results. `by_test` is the best equation by
    test, which is no result. `seconds` are those of the last process, where a search was cut off.
    """
    began = time.monotonic()
    plan = DiscoveryPlan(
        data, defaults(budget.epochs), find_terms(terms), tuple(range(data.num_splits)), SIZE, budget.equations,
        "random", seed,
    )  # fmt: skip
    in_time, jobs = partial(_in_time, until), usual_jobs(budget.equations)
    found = Discovery(plan, folder, device=device, tell=say, on_round=in_time, jobs=jobs).run()
    chosen = time.monotonic()
    # Settings of the chosen equation are searched as those of a reaction are.
    line = Contestant(DISCOVERED, "discovered", reaction=FIRST, line=found.best.text)
    tuned = searched_row(
        line, dataset, data, device, trials=budget.settings, epochs=budget.epochs, seed=seed, folder=folder
    )
    settled = time.monotonic()
    fresh = fresh_results(found, data, device, seed)
    own = found.chosen
    top = best_by_test(found.results)
    untuned: dict[str, Any] = {"val_mean": 100 * own.val_accuracy, **_spread(own.test)}
    searched_best = {name: tuned[name] for name in ("val_mean", "mean", "std")}
    best = untuned if untuned["val_mean"] >= tuned["val_mean"] else tuned
    seconds = {"search": chosen - began, "settings": settled - chosen, "again": time.monotonic() - settled}
    return {
        "contestant": name, "dataset": dataset, "metric": data.meta.metric, "trials": budget.total,
        "epochs": budget.epochs, "equation": found.best.text, "formula": found.best.formula,
        **{column: best[column] for column in ("val_mean", "mean", "std", "each")}, "untuned": untuned,
        "tuned": {**searched_best, "settings": tuned["settings"]},
        "nested": 100 * float(np.mean(nested_accuracies(found.results))),
        "by_test": 100 * (top.test_accuracy if top else float("nan")), "counts": _counts(found),
        "front": [dict(row) for row in front_rows(found)], "best": _best(found), "terms": _terms(found),
        "fresh": fresh, "test_to_train": share_ratio(data), "seed": seed, "seconds": seconds,
    }  # fmt: skip


def _in_time(until: float, found: Discovered) -> None:
    """Report progress between two rounds; raise OutOfTime if no time is left."""
    say(f"{len(found.results)} of {found.plan.budget} equations on {found.plan.data.meta.name}")
    if time.monotonic() > until and len(found.results) < found.plan.budget:
        raise OutOfTime


def _spread(test: Sequence[float]) -> dict[str, Any]:
    values = 100 * np.array(test)
    return {"mean": float(values.mean()), "std": float(values.std()), "each": [round(float(v), 4) for v in values]}


def fresh_results(found: Discovered, data: NodeData, device: str, seed: int) -> dict[str, dict[str, dict[str, Any]]]:
    """The chosen equation and BS with the defaults, with fresh seeds on the same splits, and on fresh splits."""
    base = found.plan.base
    configs = {"chosen": line_config(base, found.best), "BS": base.updated({"reaction": "BS"})}
    seeds = range(seed + 1, seed + 1 + FRESH)
    drawn = fresh_splits(data, data.num_splits, seed)
    parts = {"seeds": (data, seeds), "splits": (drawn, seeds[:1])}
    told: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, (own, chosen_seeds) in parts.items():
        done = retrained(own, configs, range(own.num_splits), chosen_seeds, device=device, tell=say)
        told[kind] = {
            one.name: {"val_mean": 100 * one.val, **_spread([t for _, t in one.accuracies.values()]),
                       "diverged": one.diverged}
            for one in done
        }  # fmt: skip
    return told


def _counts(found: Discovered) -> dict[str, Any]:
    """How many equations were enumerated, merged, examined and trained, and why."""
    states = dict(Counter(result.state for result in found.results))
    safety = {f"{state}: {finding or 'no finding'}": count for (state, finding), count in found.safety_counts().items()}
    return {
        "enumerated": found.enumerated, "behaviours": found.distinct, "merged": dict(found.behaviours.counts()),
        "examined": len(found.tried), "safety": safety, "trained": len(found.results), "states": states,
    }  # fmt: skip


def _best(found: Discovered) -> list[ResultRow]:
    return [
        {
            "formula": line.formula,
            "equation": line.text,
            "val_mean": 100 * r.val_accuracy,
            "mean": 100 * r.test_accuracy,
        }
        for r, line in found.ranked()[:TOP]
    ]


def _terms(found: Discovered) -> list[ResultRow]:
    known = found.trained
    effects = term_effects([(r, known[r.number].safety.line) for r in found.results])
    kept = effects if len(effects) <= TERMS else [*effects[: TERMS // 2], *effects[-TERMS // 2 :]]
    return [
        {"term": one.term, "effect": 100 * one.effect, "low": 100 * one.low, "high": 100 * one.high, "p": one.p}
        for one in kept
    ]


# ---------------------------------------------------------------------- other cells
def measure_transfer(
    dataset: str, data: NodeData, rows: Sequence[dict[str, Any]], *, device: str, epochs: int, seed: int
) -> ResultRow:
    """The equations that other sets chose, untouched, and BS, on all splits of this one; all with the defaults."""
    began = time.monotonic()
    lines = {row["dataset"]: row["equation"] for row in rows if row["dataset"] != dataset}
    base = defaults(epochs)
    configs = {"BS": base.updated({"reaction": "BS"})}
    for origin, text in lines.items():
        kinds = {name: str(kind) for name, kind in parse(text).coefficients.items() if name in ("alpha", "beta")}
        configs[origin] = base.updated({"reaction": text, **kinds})
    done = retrained(data, configs, range(data.num_splits), [seed], device=device, tell=say)
    results = [
        {"origin": one.name, "equation": lines.get(one.name, "BS"), "val_mean": 100 * one.val,
         **_spread([test for _, test in one.accuracies.values()]), "diverged": one.diverged}
        for one in done
    ]  # fmt: skip
    return {
        "contestant": TRANSFER, "dataset": dataset, "metric": data.meta.metric, "epochs": epochs, "results": results,
        "test_to_train": share_ratio(data), "seed": seed, "seconds": time.monotonic() - began,
    }  # fmt: skip


def cells_to_measure(found: dict[str, Any], key: str, names: Sequence[str], sets: Sequence[str]) -> list[Cell]:
    """The cells that there is no row of, transfers last and only where all of the nine sets have chosen."""
    first = missing_cells(found, key, [n for n in names if n != TRANSFER], [s for s in sets if s in SETS])
    known = {row["dataset"] for row in found["rows"] if row[key] == DISCOVERED}
    later = missing_cells(found, key, [n for n in names if n == TRANSFER], sets) if set(SETS) <= known else []
    return first + later


def discovered(
    *, contestants: Sequence[str] = (), device: str = "auto", sets: Sequence[str] = (), terms: str = "default",
    equations: int | None = None, settings: int | None = None, trials: int | None = None, epochs: int | None = None,
    seed: int = 0, again: bool = False, seconds: float = float("inf"), folder: Path = Path("runs/discovered"),
    out: Path = RESULTS / "discovered.json",
) -> None:  # fmt: skip
    """Discovered equations, the reactions and a tuned GCN, resumed where it stopped.

    Writes the file after every cell, and keeps the rounds of a search in a folder.
    """
    device, until = choose_device(device), time.monotonic() + seconds
    names = checked(contestants, NAMES, "contestant")
    sets = checked(sets, (*SETS, *OTHERS), "data set of this benchmark")
    find_terms(terms)  # refused at once, not by every cell
    chosen = [row for row in read_cells(out)["rows"] if row[KEY] == DISCOVERED]

    def measure(name: str, dataset: str, data: NodeData) -> ResultRow:
        budget = Budget.few(dataset, trials, epochs) if name == FEW_TRIALS else Budget.of(
            dataset, equations, settings, epochs
        )  # fmt: skip
        if name == TRANSFER:
            return measure_transfer(dataset, data, chosen, device=device, epochs=budget.epochs, seed=seed)
        if name not in (DISCOVERED, FEW_TRIALS):
            return searched_row(CONTESTANTS[name], dataset, data, device, trials=budget.total, epochs=budget.epochs,
                                seed=seed, folder=folder)  # fmt: skip
        place = folder / f"{dataset}-{terms}-{budget.equations}-{budget.epochs}-{seed}"
        return measure_discovered(name, dataset, data, budget, device=device, seed=seed, folder=place, terms=terms,
                                  until=until)  # fmt: skip

    usual = list if contestants else usual_discoveries
    try:
        measure_table("discovered", KEY, names, sets, measure, line, device=device, out=out, again=again,
                      seconds=seconds, select=usual, cells=cells_to_measure)  # fmt: skip
    except OutOfTime:
        say("no time is left; the same command goes on")


def line(row: ResultRow) -> str:
    """A row in a line."""
    if row[KEY] == TRANSFER:
        best = max(row["results"], key=lambda one: one["val_mean"])
        return f"{len(row['results'])} equations, best by validation {best['mean']:.2f} ({best['origin']})"
    if row[KEY] in (DISCOVERED, FEW_TRIALS):
        head = f"{row['formula']}: {row['mean']:.2f} ± {row['std']:.2f}, untuned {row['untuned']['mean']:.2f}"
        return f"{head}, {row['counts']['trained']} equations, {row['seconds']['search']:.1f} s"
    return searched_line(row)
