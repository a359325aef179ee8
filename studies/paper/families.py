"""What is trained for the main tables: reactions in several readings of what the paper leaves open, and baselines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gread.settings.config import Config
from rdgraph.files import read_text
from studies.cells.cell import BOUNDED, SETS, Cell, Variation, file_name, published_config, released_reaction, shrunk
from studies.contest.contestants import read_contestants
from studies.paper.runner import Sheet
from studies.results import read_result
from studies.runs.tables import MutableRow

# ---------------------------------------------------------------------- families
#: The readings by name, and what each is.
FAMILIES: dict[str, str] = Sheet("classification").entries["families"]
BASELINE, SEARCHED = "baseline", "searched"


def family_configs(family: str, dataset: str, reactions: Sequence[str]) -> dict[str, Config]:
    """The configurations of a reading on a set, by reaction.

    >>> family_configs("released", "texas", ["BS", "FB*"])["FB*"].model.reaction
    'FB-released'
    """
    group = {"authors": ("BS",), "released": ("FB", "FB*"), "tanh": tuple(BOUNDED)}.get(family, tuple(reactions))
    result = {}
    for reaction in group:
        if reaction not in reactions:
            continue
        config = published_config("authors" if family == "authors" else "paper", reaction, dataset)
        if family == "released":
            config = config.updated({"reaction": released_reaction(reaction, config.gread.beta)})
        if family == "tanh":
            config = config.updated({"reaction": BOUNDED[reaction]})
        result[reaction] = config
    return result


def make_cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Every training of the study, set by set."""
    return [
        cell for dataset in (*settings["sets"], *settings["other_sets"]) for cell in _cells_of(str(dataset), settings)
    ]


def _cells_of(dataset: str, s: Mapping[str, Any]) -> Iterator[Cell]:
    families = s["families"] if dataset in s["sets"] else ["paper"]
    for family in families:
        for reaction, config in family_configs(family, dataset, s["reactions"]).items():
            labels = {"family": family, "method": f"GREAD-{reaction}"}
            one = Variation(labels, shrunk(config, s["epochs"], s["hidden"]))
            yield Cell(file_name(family, reaction, dataset), (dataset,), (one,), s["splits"], s["seeds"])
    if dataset not in s["sets"] or not s["models"]:
        return
    for contestant in read_contestants(s["models"], dataset, epochs=s["epochs"] or None):
        if contestant.config is not None:
            one = Variation({"family": BASELINE, "method": contestant.title}, contestant.config)
            yield Cell(file_name(BASELINE, contestant.name, dataset), (dataset,), (one,), s["splits"], s["seeds"])


@dataclass(frozen=True)
class MeasuredBaselines:
    """Other networks by their row in the paper's table and data set: means, accuracies of the splits, the command."""

    means: Mapping[tuple[str, str], float]
    each: Mapping[tuple[str, str], Mapping[int, float]]
    origin: str


def measured_baselines(path: Path | None = None) -> MeasuredBaselines:
    """Measured networks that have a row in the paper's table, from compared.json or a file of its form."""
    from gread.settings.model_records import find_model, models

    result = _kept(path, "compared")
    rows = {
        (find_model(row["model"]).published, str(row["dataset"])): row
        for row in result["rows"]
        if row["model"] in models and find_model(row["model"]).published and row["dataset"] in SETS
    }
    means = {cell: float(row["mean"]) for cell, row in rows.items()}
    each = {cell: dict(enumerate(map(float, row["each"]))) for cell, row in rows.items()}
    return MeasuredBaselines(means, each, str(result["command"]))


def searched_rows(reactions: Sequence[str], sets: Sequence[str], path: Path | None = None) -> list[MutableRow]:
    """The trainings of searched.json, or a file of its form, as rows: settings that validation nodes chose.

    It has one row a cell, with the test accuracies of its splits in percent; only those measured by accuracy count.
    """
    return [
        {
            "dataset": str(row["dataset"]), "family": SEARCHED, "method": f"GREAD-{row['contestant']}", "split": split,
            "seed": int(row.get("seed", 0)), "best_epoch": 0, "val_accuracy": float(row["val_mean"]) / 100,
            "test_accuracy": float(value) / 100, "status": "ok",
        }
        for row in _kept(path, "searched")["rows"]
        if row["contestant"] in reactions and row["dataset"] in sets and row.get("metric", "accuracy") == "accuracy"
        for split, value in enumerate(row["each"])
    ]  # fmt: skip


def _kept(path: Path | None, name: str) -> Any:
    """Content of a results file: that of the package unless another is given."""
    return read_result(name) if path is None else json.loads(read_text(path, "measured results"))


# ---------------------------------------------------------------------- ranking
# Average ranks, average accuracies and medals over data sets, from any table of means.

#: Points of accuracy below which two means are the same number: a test node more or less on one of ten splits moves a
#: mean by more, and the rounding of a sum by less.
SAME = 0.001


@dataclass(frozen=True)
class Standing:
    """A method's average rank and accuracy over the sets, and how often it is first, second and third."""

    method: str
    rank: float
    accuracy: float
    gold: int
    silver: int
    bronze: int


def standings(means: Mapping[tuple[str, str], float], sets: Sequence[str]) -> list[Standing]:
    """All methods that have a number on every set, by their average rank; equal numbers share a rank and a medal.

    >>> found = standings({("a", "x"): 2.0, ("b", "x"): 1.0, ("c", "x"): 1.0}, ["x"])
    >>> [(s.method, s.rank, s.gold, s.silver, s.bronze) for s in found]
    [('a', 1.0, 1, 0, 0), ('b', 2.5, 0, 1, 0), ('c', 2.5, 0, 1, 0)]
    """
    methods = [m for m in dict.fromkeys(m for m, _ in means) if all((m, s) in means for s in sets)]
    if not methods or not sets:
        return []
    from scipy.stats import rankdata

    table = np.array([[means[m, s] for s in sets] for m in methods])
    levels = np.apply_along_axis(_levels, 0, table)
    ranks = rankdata(-levels, axis=0)
    places = rankdata(-levels, axis=0, method="min")
    result = [
        Standing(m, float(ranks[k].mean()), float(table[k].mean()), *(int((places[k] == p).sum()) for p in (1, 2, 3)))
        for k, m in enumerate(methods)
    ]
    return sorted(result, key=lambda s: (s.rank, -s.accuracy))


def _levels(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of `values`, the same for neighbours that are less than `SAME` apart.

    >>> _levels(np.array([83.51351, 70.0, 83.513514]))
    array([1, 0, 1])
    """
    order = np.argsort(values)
    levels = np.empty(values.size, dtype=int)
    levels[order] = np.cumsum(np.diff(values[order], prepend=values[order[0]]) >= SAME)
    return levels


def better_by_signs(group: Sequence[float], other: Sequence[float]) -> float:
    """The one-sided p of Wilcoxon's signed-rank test that `own` is larger, over data sets; 1 where all are the same.

    Sets on which the two are less than `SAME` apart do not count.

    >>> better_by_signs([2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 2, 3, 4, 5, 6, 7, 8, 9.5]) < 0.01
    True
    """
    gaps = np.asarray(group, dtype=float) - np.asarray(other, dtype=float)
    gaps = gaps[np.abs(gaps) >= SAME]
    if not gaps.size:
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(gaps, alternative="greater").pvalue)
