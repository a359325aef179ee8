"""Rows of trainings that were never run: accuracies with the mean and the spread one asks for."""

from __future__ import annotations

import numpy as np

from studies.runs.tables import MutableRow, Value


def planted_rows(
    mean: float, std: float, dataset: str, splits: int = 10, seeds: int = 1, **labels: Value
) -> list[MutableRow]:
    """Ten splits whose means have that mean and population standard deviation, in percent."""
    shape = np.linspace(-1, 1, splits)
    values = mean + std * (shape - shape.mean()) / shape.std()
    return [
        {
            "dataset": dataset, **labels, "split": split, "seed": seed, "best_epoch": 1, "val_accuracy": 0.5,
            "test_accuracy": float(values[split]) / 100, "status": "ok",
        }
        for seed in range(seeds)
        for split in range(splits)
    ]  # fmt: skip
