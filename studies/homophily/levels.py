"""What is trained on the synthetic Cora: graphs by name, and the settings that every network chooses from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm, synthetic_cora
from gread.datasets.variants import Variant
from gread.settings.config import Config
from gread.settings.model_records import find_model
from studies.cells.cell import Cell, Variation, file_name
from studies.oversmoothing.network_states import fitting_config

#: Where the features come from: Cora's, or in the small mode random ones.
CORA, SAMPLE = "cora", "sample"
#: The adjacencies, and how each is normalised.
NORMALISATIONS = {"original": "symmetric", "soft": "row"}


@lru_cache(maxsize=2)
def _source(kind: str) -> NodeData:
    if kind == CORA:
        return load_dataset("cora", split="stratified", variant=Variant(component="all"))
    return csbm(n=100, classes=5, features=8, signal=2.0)


@lru_cache(maxsize=64)
def level_graph(name: str) -> NodeData:
    """The graph SOURCE:HOMOPHILY:SEED with three splits.

    >>> level_graph("sample:0.5:1").num_splits
    3
    """
    kind, level, seed = name.split(":")
    return synthetic_cora(float(level), int(seed), cora=_source(kind))


def graph_names(s: Mapping[str, Any]) -> tuple[str, ...]:
    """Every level with every seed."""
    return tuple(f"{s['source']}:{level:g}:{seed}" for level in s["levels"] for seed in range(s["graphs"]))


def level_of(name: str) -> float:
    """The homophily of a graph.

    >>> level_of("sample:0.5:1")
    0.5
    """
    return float(name.split(":")[1])


def configurations(name: str, s: Mapping[str, Any]) -> list[Config]:
    """The settings that a network or a reaction chooses from: those of Table 11 that it has.

    Reactions choose among adjacencies, end times and learning rates, with the first weight decay; other networks among
    learning rates and weight decays, GRAND among end times too.

    >>> given = settings_of_table(False)
    >>> len(configurations("GREAD-BS", given)), len(configurations("gcn", given))
    (8, 4)
    """
    reaction = name.removeprefix("GREAD-")
    shared = {key: s[key] for key in ("epochs", "dropout", "input_dropout", "hidden")}
    rates = list(product(s["learning_rates"], s["weight_decays"]))
    trained = [{**shared, "learning_rate": lr, "weight_decay": wd} for lr, wd in rates]
    if name == reaction:
        flows = [{"time": time, "step": s["step"], "method": "euler"} for time in s["times"]]
        return [fitting_config(name, {**v, **f}) for v, f in product(trained, flows if name == "grand" else [{}])]
    return [
        Config().updated({
            **values, "reaction": reaction, "adjacency": adjacency, "normalisation": NORMALISATIONS[adjacency],
            "time": time, "step": s["step"], "method": "euler", "alpha": "scalar", "beta": "channel",
            "self_loops": 0.0,
        })
        for adjacency, time, values in product(s["adjacencies"], s["times"], trained[:: len(s["weight_decays"])])
    ]  # fmt: skip


def make_cells(s: Mapping[str, Any]) -> list[Cell]:
    """A cell for every network: all its settings on all graphs."""
    graphs = graph_names(s)
    found = []
    for name in (*s["models"], *(f"GREAD-{reaction}" for reaction in s["reactions"])):
        title = name if name.startswith("GREAD-") else find_model(name).title
        made = tuple(
            Variation({"method": title, "choice": k}, config) for k, config in enumerate(configurations(name, s))
        )
        found.append(Cell(file_name(name), graphs, made, s["splits"], 1))
    return found


def settings_of_table(small: bool) -> dict[str, Any]:
    """Table 11 of the paper, thinned to a grid, with the sizes of the run."""
    table: dict[str, Any] = {
        "dropout": 0.35, "input_dropout": 0.5, "adjacencies": ["original", "soft"], "step": 0.5,
        "models": ["mlp", "gcn", "gat", "grand", "h2gcn", "gprgnn"],
        "reactions": ["BS", "F", "AC", "Z", "ST", "FB", "FB*"],
    }  # fmt: skip
    if small:
        return {
            **table, "source": SAMPLE, "levels": [0.0, 0.5, 1.0], "graphs": 1, "splits": 2, "epochs": 15, "hidden": 8,
            "times": [1.0], "learning_rates": [0.01], "weight_decays": [0.0005], "models": ["mlp", "gcn"],
            "reactions": ["BS"],
        }  # fmt: skip
    return {
        **table, "source": CORA, "levels": [k / 10 for k in range(11)], "graphs": 3, "splits": 3, "epochs": 100,
        "hidden": 64, "times": [1.0, 3.0], "learning_rates": [0.005, 0.01], "weight_decays": [0.0005, 0.01],
    }  # fmt: skip
