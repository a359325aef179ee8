"""The page of searches: what it says of planted numbers, whatever cells there are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gread.settings.presets import authors_runs, find_published
from studies.benchmarks import searched_page
from studies.benchmarks.compared import SETS


def row(contestant: str = "BS", dataset: str = "texas", **changes: Any) -> dict[str, Any]:
    given = {
        "contestant": contestant, "dataset": dataset, "metric": "accuracy", "trials": 60, "epochs": 200,
        "states": {"complete": 9, "pruned": 51}, "origin": "drawn", "val_mean": 88.0, "mean": 85.0, "std": 2.0,
        "each": [84.0, 86.0] * 5, "nested": 84.5, "nested_std": 2.5, "by_test": 86.25, "share": 0.25,
        "test_to_train": 0.4, "seconds": 7.0,
    }  # fmt: skip
    return given | changes


def page(*rows: dict[str, Any], **others: Any) -> str:
    printed = {"paper": {"rows": [{"reaction": "BS", "dataset": d, "mean": 83.5, "diverged": 0} for d in SETS]}}
    printed["paper"]["rows"].append({"reaction": "Z", "dataset": "texas", "mean": 0.0, "diverged": 10})
    found = {"rows": list(rows), "command": "the command", "environment": {"torch": "2"}}
    return searched_page.page(found | others, printed)


def line_of(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(start))
    return [part.strip() for part in line.strip("|").split("|")]


def test_a_reaction_stands_beside_what_is_known_of_it() -> None:
    text = page(row(origin="paper/BS/texas"))
    assert line_of(text, "| BS | 85.00") == [
        "BS", "85.00 ± 2.00", "84.50 ± 2.50", "88.92", "86.49", "83.50", "86.25", "1.25", "60", "paper/BS/texas",
    ]  # fmt: skip
    assert line_of(page(row("F-tanh")), "| F, tanh")[3:6] == ["", "", ""]
    assert line_of(page(row("Z")), "| Z | 85.00")[5] == "0.00†"


def test_means_over_nine_sets_need_all_of_them() -> None:
    rows = [row(dataset=d, mean=70.0 + k, by_test=80.0) for k, d in enumerate(SETS)]
    text = page(*rows, row("F"), *(row("FB", d, val_mean=90.0, mean=73.0) for d in SETS))
    paper = np.mean([find_published("GREAD-BS", d).mean for d in SETS])
    code = np.mean([authors_runs()[d].mean for d in SETS])
    assert (round(paper, 2), round(code, 2)) == (76.64, 74.69)
    assert line_of(text, "| BS | 74.00 |")[1:] == ["74.00", f"{paper:.2f}", f"{code:.2f}", "83.50", "80.00"]
    assert line_of(text, "| F | 1 of 9 sets")
    assert "FB has the best mean on the validation nodes (90.00); its test mean is 73.00" in text
    assert "No choice among its complete trials has more than 86.25" in text
    assert "chosen on the validation nodes as well" not in text


def test_the_reaction_may_be_chosen_on_every_set_once_all_are_there() -> None:
    names = [c.name for c in searched_page.ALL_REACTIONS]
    rows = [row(name, d, mean=60.0, by_test=61.0) for name in names for d in SETS if name != "F"]
    rows += [row("F", d, val_mean=88.0 + (2 if k else -2), mean=69.0, by_test=70.0) for k, d in enumerate(SETS)]
    text = page(*rows)
    assert f"chosen on the validation nodes as well, the mean is {(60 + 8 * 69) / 9:.2f}" in text
    assert "by test have 70.00" in text
    assert "chosen on the validation nodes as well" not in page(*rows[:-1])


def test_differences_are_drawn_where_budgets_are_equal() -> None:
    steady = [80.0, 82.0, 81.0, 83.0, 80.0, 82.0, 81.0, 83.0, 80.5, 82.5]
    lower = [value - 3 + 0.1 * (-1) ** k for k, value in enumerate(steady)]
    cells = searched_page.cells_of({"rows": [
        row(each=steady), row("mlp", each=lower), row("F", trials=61), row(dataset="cora"), row("FB", "cora"),
    ]})  # fmt: skip
    drawn = searched_page.differences(cells)
    assert drawn is not None
    assert (drawn.rows, drawn.columns) == (["F", "FB", "MLP"], ["texas", "cora"])
    np.testing.assert_allclose(drawn.values, [[np.nan, np.nan], [np.nan, 0.0], [3.0, np.nan]], atol=1e-12)
    np.testing.assert_array_equal(drawn.sure, [[False, False], [False, False], [True, False]])
    assert searched_page.FIGURE in page(row(), row("mlp"))
    assert searched_page.FIGURE not in page(row())


def test_the_answer_comes_first_and_says_what_is_decided() -> None:
    assert "**Nothing is compared yet.**" in page(row())
    spread = [80.0, 82.0, 81.0, 83.0, 80.0, 82.0, 81.0, 83.0, 80.5, 82.5]
    lower = [value - 9 + 0.1 * k for k, value in enumerate(spread)]
    for first, second, told in (
        (spread, lower, "1 of 1 sets, worse on 0"),
        (lower, spread, "0 of 1 sets, worse on 1"),
    ):
        text = page(row(each=first), row("gcn-tuned", each=second))
        assert f"BS is better than a tuned GCN beyond noise on {told}" in text.splitlines()[2]
    every = [row(dataset=d, val_mean=70.0) for d in SETS] + [row("F", d, val_mean=80.0, mean=60.0) for d in SETS]
    text = page(*every, row("gcn-tuned"))
    assert "F, the best on the validation nodes, has a mean of 60.00 over the nine sets" in text.splitlines()[2]


def test_budgets_are_compared_split_by_split() -> None:
    better = [80.0, 82.0, 81.0, 83.0, 80.0, 82.0, 81.0, 83.0, 80.5, 82.5]
    noise = [0.1, -0.1] * 5
    text = page(
        row(each=better),
        row("gcn-tuned", each=[b - 3 + n for b, n in zip(better, noise, strict=True)]),
        row("mlp", each=[b + 0.01 + 30 * n for b, n in zip(better, noise, strict=True)]),
        row("F", each=[b - 9 for b in better]),
    )
    error = math.sqrt((0.1 + 0.4) * np.var(noise, ddof=1))
    assert line_of(text, "| BS - tuned GCN")[1:] == [f"**+3.00 ({error:.2f})**", "1 / 0 / 0"]
    assert line_of(text, "| BS - MLP")[2] == "0 / 0 / 1"
    assert line_of(text, "| F - tuned GCN")[2] == "0 / 1 / 0"


def test_other_budgets_are_not_compared() -> None:
    text = page(row(), row("gcn-tuned", trials=200), row("mlp", epochs=500))
    assert "BS - " not in text


def test_published_tuned_rows_and_metrics_are_named() -> None:
    text = page(row(dataset="minesweeper", metric="roc_auc"), row("gcn-tuned", "minesweeper", metric="roc_auc"))
    assert "minesweeper, ROC-AUC" in text
    assert line_of(text, "| published tuned GCN")[1] == "97.86 ± 0.24"


def test_costs_and_failures_are_told() -> None:
    text = page(row(), row(dataset="cora", share=0.5), failed={"Z/pubmed": "no memory"})
    assert line_of(text, "| BS | 2 |")[1:] == ["2", "120", "38 %", "18 complete, 102 pruned", "14.0"]
    assert "Not measured: Z/pubmed (no memory)." in text
    assert "Not measured yet: 169 cells." in text  # 16 on nine sets and 7 on four, but two rows and a failure
    assert "`the command` on torch 2; other programs may have shared the card" in text


def test_an_empty_file_makes_a_page() -> None:
    assert page().startswith("# Settings chosen on validation nodes")
