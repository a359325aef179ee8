"""Searches of a moment, for the tests of what a search does."""

from __future__ import annotations

from typing import Any

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.tuning import searching
from gread.tuning.searching import SearchPlan, search

MLP: dict[str, Any] = {"base": Config.of("mlp", hidden=8), "device": "cpu", "splits": [0, 1, 2]}


def quick(trials: int = 5, **options: Any) -> searching.Found:
    given = {"fixed": {"epochs": 20, "hidden": 8}} | MLP | options
    return search(karate(), trials=trials, **given)


def plan(trials: int = 5, epochs: int = 20, **options: Any) -> SearchPlan:
    given = {
        "fixed": {"epochs": epochs, "hidden": 8},
        "splits": [0, 1],
        "base": MLP["base"],
        "space": "small",
    } | options
    return SearchPlan.make(karate(), trials=trials, **given)


class Cut(Exception):
    """A process that dies."""
