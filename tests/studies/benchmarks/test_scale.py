"""The model of scale: its limits, what it is fed with, and the page that shows it."""

from __future__ import annotations

import json

import pytest

from studies.benchmarks import scale, scale_page
from studies.benchmarks.scale import ScaleModel


@pytest.mark.parametrize(
    ("model", "cards", "seconds", "bottleneck"),
    [
        (ScaleModel(card=2.0, driver=0.1, rounds=10), 1, 20.0, "cards"),
        (ScaleModel(card=2.0, driver=0.1, rounds=10), 4, 6.0, "cards"),
        (ScaleModel(card=2.0, driver=0.1, rounds=10), 64, 2.0, "rounds"),
        (ScaleModel(card=2.0, driver=0.5, rounds=10), 64, 5.0, "driver"),
        (ScaleModel(card=2.0, driver=0.5, rounds=630, drivers=63), 512, 5.0, "driver"),
    ],
)
def test_the_slowest_part_decides(model: ScaleModel, cards: int, seconds: float, bottleneck: str) -> None:
    assert model.seconds(cards) == seconds
    assert model.bottleneck(cards) == bottleneck


def test_a_round_of_a_card_is_that_of_the_measured_rows() -> None:
    found = scale.card_seconds(json.loads(scale.GPU_ROWS.read_text(encoding="utf-8")))
    assert set(found) == set(scale.SPEEDS)
    assert found["texas"] == pytest.approx(500 / 662, rel=0.01)
    assert found["texas"] < found["cora"] < found["pubmed"]


def test_the_page_is_that_of_the_numbers() -> None:
    found = json.loads(scale_page.SOURCE.read_text(encoding="utf-8"))
    assert (scale_page.DOCS / "scale.md").read_text(encoding="utf-8") == scale_page.page(found)
    assert found["model"] == scale.model_rows(found["card_seconds_per_round"], found["driver_seconds_per_round"])
    assert [(row["engine"], row["workers"]) for row in found["throughput"]] == [("local", 1), ("ray", 1), ("ray", 2)]
