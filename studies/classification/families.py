"""What is trained for the main tables: reactions in several readings of what the paper leaves open, and baselines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from studies.cells.cell import Cell, Variation, file_name, shrunk
from studies.cells.nine_sets import BOUNDED, SETS, published_config, released_reaction
from studies.contest.contestants import read_contestants
from studies.runs.tables import MutableRow

#: The readings by name, and what each is.
FAMILIES = {
    "paper": "the best settings that the paper prints (Tables 13 to 19); self-loops, hidden layers of encoder and "
    "decoder and the ReLU after the flow, which it leaves open, from the released settings of the same set",
    "authors": "the settings released with the authors' code, which are for BS",
    "released": "FB and FB* as the authors' code computes them (x + A x in place of L x), with the paper's settings",
    "tanh": "F, AC and Z inside tanh, an option of the authors' code that the paper does not mention, with the paper's "
    "settings",
}
BASELINE, SEARCHED = "baseline", "searched"
_DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Measured networks of other authors, and reactions with settings that were searched here; beside the documentation.
COMPARED, FOUND = _DOCS / "compared.json", _DOCS / "searched.json"


def family_configs(family: str, dataset: str, reactions: Sequence[str]) -> dict[str, Config]:
    """The configurations of a reading on a set, by reaction.

    >>> family_configs("released", "texas", ["BS", "FB*"])["FB*"].model.reaction
    'FB-released'
    """
    own = {"authors": ("BS",), "released": ("FB", "FB*"), "tanh": tuple(BOUNDED)}.get(family, tuple(reactions))
    found = {}
    for reaction in own:
        if reaction not in reactions:
            continue
        config = published_config("authors" if family == "authors" else "paper", reaction, dataset)
        if family == "released":
            config = config.updated({"reaction": released_reaction(reaction, _beta(config))})
        if family == "tanh":
            config = config.updated({"reaction": BOUNDED[reaction]})
        found[reaction] = config
    return found


def _beta(config: Config) -> str:
    return config.model.beta if isinstance(config.model, GreadSettings) else ""


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
    """Mean accuracies of other networks by their row in the paper's table and data set, and where they come from."""

    means: Mapping[tuple[str, str], float]
    origin: str


def measured_baselines(path: Path = COMPARED) -> MeasuredBaselines:
    """What docs/compared.json holds of networks that have a row in the paper's table; nothing where it is not there."""
    from gread.settings.model_records import find_model, models

    if not path.is_file():
        return MeasuredBaselines({}, "")
    found = json.loads(path.read_text(encoding="utf-8"))
    means = {
        (find_model(row["model"]).published, row["dataset"]): float(row["mean"])
        for row in found["rows"]
        if row["model"] in models and find_model(row["model"]).published and row["dataset"] in SETS
    }
    return MeasuredBaselines(means, str(found.get("command", path.name)))


def searched_rows(reactions: Sequence[str], sets: Sequence[str], path: Path = FOUND) -> list[MutableRow]:
    """The trainings of docs/searched.json as rows, where it is there: settings that validation nodes chose.

    It has one row a cell, with the test accuracies of its splits in percent; only those measured by accuracy count.
    """
    if not path.is_file():
        return []
    return [
        {
            "dataset": str(row["dataset"]), "family": SEARCHED, "method": f"GREAD-{row['contestant']}", "split": split,
            "seed": int(row.get("seed", 0)), "best_epoch": 0, "val_accuracy": float(row["val_mean"]) / 100,
            "test_accuracy": float(value) / 100, "status": "ok",
        }
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]
        if row["contestant"] in reactions and row["dataset"] in sets and row.get("metric", "accuracy") == "accuracy"
        for split, value in enumerate(row["each"])
    ]  # fmt: skip
