"""The measured numbers and their page belong together, and the measuring program runs."""

from __future__ import annotations

import pytest
import torch

from studies.benchmarks import performance, rate_tables, speed_page
from studies.benchmarks.speed_rows import SpeedRow
from studies.benchmarks.timing import median_seconds


def test_the_page_is_made_from_the_numbers():
    found, *others = speed_page.sources()
    written = (speed_page.DOCS / "performance.md").read_text(encoding="utf-8")
    assert written == speed_page.page(found, *others)
    assert {row["topic"] for row in found["rows"]} >= {"product", "locality", "field", "ensemble", "size"}
    for row in found["rows"]:
        again = SpeedRow.against(*(row[k] for k in ("topic", "what", "seconds", "peer", "ratio", "target")))
        assert again.met == row["met"]


def test_rates_and_large_graphs_tell_what_was_reached():
    rates = [{"dataset": "texas", "kind": "linear", "equations": 90, "seconds": 9.0, "rate": 600.0, "target": 900.0,
              "met": False, "command": "the command", "environment": {"torch": "2"}}]  # fmt: skip
    assert "| texas | linear | 90 | 9.0 | 600 | 900 | no |" in rate_tables.equations_part(rates)
    assert rate_tables.search_part({}) == []
    search = {"methods": ["euler"], "rate": 200.0, "rate_alone": 250.0, "share": 0.8, "target": 250.0,
              "target_share": 0.6, "command": "c", "environment": {},
              "search": {"trainings": 5000, "shapes": 24}}  # fmt: skip
    paper = {"trainings": 315_000, "hours": 9.0, "hours_with_halving": 3.0, "target": 6.0,
             "measured": ["texas"], "seconds_per_training": {"texas": 0.1, "film": 0.2}}  # fmt: skip
    text = "\n".join(rate_tables.search_part({"texas": search, "paper": paper}))
    assert "| texas | euler | 5000 | 24 | 200 | 250 | no | 250 | 80% | 60% | yes |" in text
    assert "315,000 trainings of the paper's search would take 9.0 hours" in text
    assert "The rates of film are reckoned" in text
    seconds = dict.fromkeys(("loading", "planning", "setup", "recording"), 0.5) | {"running": 60.0, "seconds": 62.0}
    printed = {"rows": [{"dataset": "all together", **seconds}], "seconds": 62.0, "compiling": 9.0, "trainings": 70,
               "target": 60.0, "command": "c", "environment": {}}  # fmt: skip
    text = "\n".join(rate_tables.printed_part(printed))
    assert "| all together | 0.5 | 0.5 | 0.5 | 0.5 | 60.0 | 62.0 |" in text
    assert "70 trainings in 62.0 s; the target of 60 s is not met" in text
    assert rate_tables.printed_part({}) == []
    row = {"what": "BS", "ms_per_epoch": 7.2, "gib": 1.0, "products": 4, "graph_seconds": 1.0, "seconds_before": 16.0}
    rows = [
        row | {"val_accuracy": 0.9, "allocator": "given"},
        row | {"what": "AC", "val_accuracy": 0.0, "seconds_before": 14.0},
    ]
    part = {"rows": rows, "failed": {"Z": "no memory"}, "command": "c", "environment": {}, "target_before": 15.0}
    lines = rate_tables.large_part({"products": part})
    assert "| BS (given) | 7 | 1.0 | 4 | 16.0 | 15 | no |" in lines
    assert "| AC, diverged | 7 | 1.0 | 4 | 14.0 | 15 | yes |" in lines
    assert "| Z | no memory |  |  |  |  |  |" in lines


@pytest.mark.parametrize(("target", "ratio", "met"), [("<= 2", 2.0, True), ("<= 2", 2.1, False), (">= 3", 2.9, False)])
def test_targets_are_compared(target, ratio, met):
    assert SpeedRow.against("t", "w", 1.0, "p", ratio, target).met is met


def test_a_random_operator_is_symmetric_and_normalised():
    op = performance.random_operator(50, 300, "cpu", torch.float64)
    dense = op.dense()
    torch.testing.assert_close(dense, dense.T)
    assert torch.linalg.matrix_norm(dense, 2) == pytest.approx(1.0, abs=1e-12)


def test_gather_scatter_is_the_same_product():
    op = performance.random_operator(40, 200, "cpu")
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(performance.gather_scatter(op, x)(), op @ x)


def test_the_lattice_has_twenty_neighbours_and_a_local_order():
    graph = performance.lattice(8)
    assert set(graph.degree.tolist()) == {20.0}
    local = graph.permute(graph.local_order())

    def spread(g):
        return abs(g.edge_index[0] - g.edge_index[1]).mean()

    assert spread(local) < 0.8 * spread(graph)


def test_rows_are_measured_on_small_graphs():
    rows = [*performance.field_rows("cpu", 60, 400), *performance.locality_rows("cpu", 1e9, 6)]
    assert all(row.seconds > 0 and row.ratio > 0 for row in rows)
    assert [row.topic for row in rows].count("field") == 5


def test_times_are_medians_of_real_calls():
    calls = []
    seconds = median_seconds(lambda: calls.append(1), "cpu", seconds=0.01, most=50)
    assert 0 <= seconds < 0.01
    assert len(calls) >= 6
