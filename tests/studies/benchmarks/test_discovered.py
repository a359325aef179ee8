"""Discovered equations under equal budgets: which cells there are, what a cell holds, what the page says."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from rdgraph.errors import InvalidArgument
from studies.benchmarks import cell_file, discovered, discovered_page, searched
from studies.benchmarks.compared import SETS
from studies.benchmarks.discovered import DISCOVERED, FEW_TRIALS, NAMES, TRANSFER, cells_to_measure
from studies.benchmarks.discovery_budget import Budget


def spread(mean: float) -> dict[str, Any]:
    return {"mean": mean, "std": 1.0, "each": [mean - 1.0, mean, mean + 1.0, mean + 0.5, mean, mean - 0.5]}


def planted_row(dataset: str, gain: float) -> dict[str, Any]:
    """A row of a search over equations whose choice beats BS by so much on fresh splits."""
    ours, theirs = spread(80.0 + gain), spread(80.0)
    fresh = {"chosen": {"val_mean": 81.0, **ours, "diverged": 0}, "BS": {"val_mean": 80.0, **theirs, "diverged": 0}}
    counts = {
        "enumerated": 45, "behaviours": 40, "merged": {"reparametrisation": 4}, "examined": 12, "trained": 12,
        "safety": {"safe: no finding": 10, "bounded: terms that outgrow the state can blow up": 2},
        "states": {"complete": 5, "pruned": 7},
    }  # fmt: skip
    return {
        "contestant": DISCOVERED, "dataset": dataset, "metric": "accuracy", "trials": 15, "epochs": 20,
        "equation": "alpha*L@H where alpha real", "formula": "alpha*L@H", "val_mean": 84.0, **ours,
        "untuned": {"val_mean": 83.0, **ours}, "tuned": {"val_mean": 84.0, **ours, "settings": {}}, "nested": 80.0,
        "by_test": 85.0, "counts": counts, "front": [], "best": [], "fresh": {"seeds": fresh, "splits": fresh},
        "terms": [{"term": "L@H", "effect": 3.0, "low": 1.0, "high": 5.0, "p": 0.01},
                  {"term": "H", "effect": -1.0, "low": -3.0, "high": 1.0, "p": 0.4}],
        "test_to_train": 0.4, "seed": 0, "seconds": {"search": 1.0, "settings": 1.0, "anew": 1.0},
    }  # fmt: skip


def planted_file(gain: float, *sets: str) -> dict[str, Any]:
    return {
        "rows": [planted_row(name, gain) for name in sets],
        "command": "a command",
        "environment": {"device": "a machine"},
    }


def told(found: dict[str, Any], *searched: dict[str, Any]) -> str:
    return discovered_page.page(found, {"rows": list(searched)})


def test_transfers_wait_for_all_choices() -> None:
    some = planted_file(0.0, *SETS[:8])
    cells = cells_to_measure(some, NAMES, [*SETS, "minesweeper"])
    assert (DISCOVERED, SETS[8]) in cells
    assert all(name != TRANSFER for name, _ in cells)
    assert all(dataset != "minesweeper" for _, dataset in cells)
    later = cells_to_measure(planted_file(0.0, *SETS), [DISCOVERED, TRANSFER], [*SETS, "minesweeper"])
    assert later == [(TRANSFER, dataset) for dataset in (*SETS, "minesweeper")]


def test_everybody_has_as_many_trials() -> None:
    assert Budget.of("cora", None, None, None).equations == 500
    assert Budget.of("pubmed", None, None, None).equations == 150
    assert Budget.of("texas", 7, 3, 20).total == 10
    assert [Budget.of(name, None, None, None).epochs for name in ("minesweeper", "tolokers")] == [500, 200]
    assert Budget.few("cora", None, None).total == searched.FEW
    assert Budget.few("texas", None, None).total == searched.TRIALS["texas"]
    assert Budget.few("texas", 2, None).settings == 1
    with pytest.raises(InvalidArgument, match="at least 2 trials"):
        Budget.few("texas", 1, None)


def test_the_page_says_who_is_better_and_only_then() -> None:
    better = told(planted_file(9.0, "texas", "cora"))
    assert "better than BS beyond noise on 2 of 2 sets (texas, cora), worse on 0" in better
    same = told(planted_file(0.0, "texas"))
    assert "on 0 of 1 sets, worse on 0, and not told from it on 1" in same
    worse = told(planted_file(-9.0, "texas"))
    assert "worse on 1 (texas)" in worse
    for text in (better, same, worse):
        assert "`L@H` +3.0" in text
        assert "`H` -1.0" not in text
    assert "Nothing is measured yet." in told({"rows": []})


def test_the_page_proves_the_chosen_equations_and_shows_sizes() -> None:
    found = planted_file(0.0, "texas")
    found["rows"][0]["front"] = [
        {"size": 1, "equation": "alpha*L@H", "validation": 80.0, "test": 79.0, "low": 78.0, "high": 80.5,
         "on_front": "yes"},
    ]  # fmt: skip
    text = told(found)
    assert "**texas**: `alpha*L@H`" in text
    assert "- symbol: alpha\\*lam" in text
    assert "- Lipschitz bound: 2\\*Abs(alpha)" in text
    assert "- existence: global" in text
    assert "| texas | 1 | `alpha*L@H` | 80.00 | 79.00 [78.00, 80.50] | yes |" in text
    found["rows"][0]["equation"] = "alpha*tanh(A@H) where alpha real"
    assert "not told:" not in told(found)


def test_the_figure_shows_what_is_compared_and_bold_beyond_noise() -> None:
    found = planted_file(9.0, "texas")
    found["rows"].append({**planted_row("texas", -9.0), "contestant": FEW_TRIALS, "trials": 6})
    few = discovered_page.few_trials(found, {"rows": [planted_other("Z", 60.0, 6), planted_other("AC", 60.0, 7)]})
    drawn = discovered_page.differences(found, few)
    assert drawn is not None
    assert (list(drawn.rows), list(drawn.columns)) == (
        ["Z, equal trials", "BS, same settings, fresh splits"],
        ["texas"],
    )
    assert drawn.values[1, 0] == pytest.approx(9.0)
    assert drawn.sure.all()
    assert discovered_page.differences({"rows": []}, {}) is None


def planted_other(name: str, mean: float, trials: int) -> dict[str, Any]:
    return {"contestant": name, "dataset": "texas", "metric": "accuracy", "trials": trials, "epochs": 20,
            **spread(mean), "test_to_train": 0.4}  # fmt: skip


def test_the_page_compares_equal_budgets_alone() -> None:
    found = planted_file(9.0, "texas")
    found["rows"].append(planted_other("BS", 70.0, 15))
    assert "With 15 trials for everybody" in told(found)
    assert "better beyond noise than BS on 1 of 1 sets (worse on 0)." in told(found)
    found["rows"][-1] = planted_other("BS", 70.0, 14)
    assert "for everybody" not in told(found)


def test_few_trials_are_compared_with_searched_cells_of_all_reactions() -> None:
    found = planted_file(9.0, "texas")
    found["rows"].append({**planted_row("texas", -9.0), "contestant": FEW_TRIALS, "trials": 6})
    text = told(found, planted_other("F", 89.0, 6), planted_other("Z", 60.0, 6), planted_other("AC", 60.0, 7))
    assert "With 6 trials for everybody" in text
    assert r"FB\* on 1 of 1 sets" in told(found, planted_other("FB*", 60.0, 6))
    assert "better beyond noise than F on 0 of 1 sets (worse on 1), Z on 1 of 1 sets (worse on 0)." in text
    assert "| discovered - Z | **+11.00" in text
    assert "Under equal budgets" not in text
    headline = (
        "**Under equal budgets, settings searched as well, the discovered equation is better than BS beyond noise"
    )
    assert f"{headline} on 1 of 1 sets (texas) and worse on 0.**" in told(found, planted_other("BS", 60.0, 6))
    assert f"{headline} on 0 of 1 sets and worse on 1 (texas).**" in told(found, planted_other("BS", 89.0, 6))
    assert "| discovered - AC |" not in text
    found["rows"].pop(0)  # before the whole search is done
    assert "| discovered - Z | **+11.00" in told(found, planted_other("Z", 60.0, 6))


def test_the_page_keeps_the_order_of_sets_and_says_what_is_missing() -> None:
    found = planted_file(0.0, *reversed(SETS[1:]))
    found["failed"] = {f"{FEW_TRIALS}/cora": "no memory"}
    text = told(found)
    chosen = text.partition("## What was chosen")[2].partition("##")[0]
    names = [line.split(" | ")[0].removeprefix("| ") for line in chosen.splitlines()[4:] if line]
    assert names == list(SETS[1:])
    assert f"Not measured: {FEW_TRIALS}/cora (no memory)." in text
    assert "Not measured yet: " in text
    found["rows"] += [
        {**planted_row(name, 0.0), "contestant": other} for name in SETS for other in (FEW_TRIALS, "BS", "gcn-tuned")
    ]
    found["rows"] += [{"contestant": TRANSFER, "dataset": name, "results": [
        {"origin": "BS", "equation": "BS", "val_mean": 80.0, **spread(80.0), "diverged": 0}], "test_to_train": 0.4}
        for name in (*SETS, "minesweeper", "tolokers", "chameleon_filtered")]  # fmt: skip
    assert f"Not measured yet: {DISCOVERED}/{SETS[0]}, {TRANSFER}/squirrel_filtered." in told(found)


def planted_transfer(dataset: str, **means: float) -> dict[str, Any]:
    results = [{"origin": name, "equation": name, "val_mean": 80.0, **spread(mean), "diverged": 0}
               for name, mean in {"BS": 80.0, **means}.items()]  # fmt: skip
    return {"contestant": TRANSFER, "dataset": dataset, "metric": "accuracy", "epochs": 20, "results": results,
            "test_to_train": 0.4, "seed": 0, "seconds": 1.0}  # fmt: skip


def test_transfers_are_told_beside_bs() -> None:
    found = planted_file(0.0, *SETS)
    assert "Untouched on other sets" not in told(found)
    found["rows"] += [
        planted_transfer("minesweeper", cora=90.0, film=70.0),
        planted_transfer("tolokers", cora=80.0, film=90.0),
    ]
    text = told(found)
    assert "| BS | 80.00 | 80.00 |  |  |" in text
    assert "| chosen on cora | **90.00 (+10.00)** | 80.00 (+0.00) | 1 | 0 |" in text
    assert "| chosen on film | **70.00 (-10.00)** | **90.00 (+10.00)** | 1 | 1 |" in text
    assert "better than BS beyond noise in 2 of 4 cells and worse in 1" in text
    assert "those chosen on 1 of 2 sets (cora) are worse nowhere" in text


def measure_small(out: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, Any]:
    given = ["discovered", "--device", "cpu", "--set", "texas", "--terms", "small", "--equations", "6", "--settings",
             "2", "--epochs", "20", "--out", str(out), "--folder", str(folder), *options]  # fmt: skip
    monkeypatch.setattr(sys, "argv", given)
    discovered.main()
    return json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"rows": []}


@pytest.mark.slow
def test_a_cell_is_searched_resumed_and_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_file, "load_dataset", lambda name, offline: karate())
    monkeypatch.setattr(discovered, "FRESH", 1)
    out, folder = tmp_path / "discovered.json", tmp_path / "runs"
    found = measure_small(out, folder, monkeypatch, "--contestant", "discovered")
    [row] = found["rows"]
    assert (row["contestant"], row["trials"], row["counts"]["trained"]) == ("discovered", 8, 6)
    assert row["val_mean"] == max(row["untuned"]["val_mean"], row["tuned"]["val_mean"])
    assert len(row["each"]) == 10
    assert set(row["fresh"]) == {"seeds", "splits"}
    assert set(row["fresh"]["splits"]) == {"chosen", "BS"}
    assert row["formula"] in told(found)
    rounds = next(folder.iterdir()) / "rounds"
    changed = {path: path.stat().st_mtime for path in rounds.iterdir()}
    began = time.monotonic()
    assert measure_small(out, folder, monkeypatch, "--contestant", "discovered")["rows"] == found["rows"]
    assert time.monotonic() - began < 20
    assert {path: path.stat().st_mtime for path in rounds.iterdir()} == changed
    moved = discovered.measure_transfer(
        "karate", karate(), [{**row, "dataset": "texas"}], device="cpu", epochs=20, seed=0
    )
    assert [one["origin"] for one in moved.results] == ["BS", "texas"]


def test_no_round_is_begun_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        results = (1, 2)
        plan = type("Plan", (), {"budget": 5, "data": karate()})

    discovered._in_time(time.monotonic() + 60, Found())  # type: ignore[arg-type]
    with pytest.raises(discovered.OutOfTime):
        discovered._in_time(time.monotonic() - 1, Found())  # type: ignore[arg-type]
    Found.plan.budget = 2
    discovered._in_time(time.monotonic() - 1, Found())  # type: ignore[arg-type]
