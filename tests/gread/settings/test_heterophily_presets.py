"""Settings of networks for heterophily: figures typed from scripts and tables beside what the presets say."""

from __future__ import annotations

from typing import Any

import pytest

from gread.settings.presets import find_preset, presets

DATASETS = {"texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed"}

#: From table_1_GGCN.sh, table_1_GPRGNN.txt and table_1_PN.sh of Yujun-Yan/Heterophily_and_oversmoothing, the script of
#: RecklessRonan/GloGNN, table 14 of Luan et al. (NeurIPS 2022), and the defaults of bdy9527/FAGCN.
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("fagcn", "squirrel", {"hidden": 32, "layers": 2, "epsilon": 0.3, "learning_rate": 0.01, "weight_decay": 5e-5}),
    ("gprgnn", "squirrel", {"alpha": 0.0, "propagation_dropout": 0.7, "learning_rate": 0.05, "weight_decay": 0.0}),
    ("gprgnn", "cora", {"alpha": 0.1, "learning_rate": 0.002, "weight_decay": 5e-4, "steps": 10}),
    ("gprgnn", "wisconsin", {"alpha": 1.0, "learning_rate": 0.05}),
    ("ggcn", "chameleon", {"layers": 5, "hidden": 32, "weight_decay": 0.01, "dropout": 0.3, "decay": 0.8}),
    ("ggcn", "citeseer", {"layers": 10, "hidden": 80, "weight_decay": 1e-7, "dropout": 0.5, "decay": 0.02}),
    ("glognn", "chameleon", {"delta": 0.0, "alpha": 0.0, "beta": 1.0, "layers": 2, "orders": 1, "patience": 0}),
    ("glognn", "wisconsin", {"alpha": 0.5, "beta": 0.5, "layers": 3, "orders": 5, "weight_decay": 1e-5}),
    ("glognn", "film", {"beta": 1000.0, "gamma": 0.1, "weight_decay": 1e-3, "orders": 6, "epochs": 2000}),
    ("acmgcn", "squirrel", {"learning_rate": 0.05, "weight_decay": 5e-6, "dropout": 0.7, "hidden": 64}),
    ("acmgcn", "cora", {"learning_rate": 0.01, "weight_decay": 5e-5, "dropout": 0.6, "structure": False}),
    ("pairnorm", "film", {"hidden": 64, "learning_rate": 0.005, "dropout": 0.6, "weight_decay": 5e-4}),
]


@pytest.mark.parametrize(("model", "dataset", "expected"), ROWS, ids=lambda part: part if isinstance(part, str) else "")
def test_settings_as_published(model: str, dataset: str, expected: dict[str, Any]) -> None:
    config = find_preset("published", model, dataset).config
    sections = config.sections()
    found = {**sections["model"], **sections["training"]}
    assert {name: found[name] for name in expected} == expected
    assert found["row_features"]


@pytest.mark.parametrize("model", sorted({row[0] for row in ROWS}))
def test_every_data_set_has_settings_with_a_source(model: str) -> None:
    chosen = [p for p in presets() if p.name.startswith(f"published/{model}/")]
    assert {p.dataset for p in chosen} == DATASETS
    assert all(p.source and p.config.model.model == model for p in chosen)
