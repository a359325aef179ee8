"""Pages come from kept numbers, and what they say of planted ones."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from gread.settings.presets import authors_runs, find_published
from studies.benchmarks import contest_pages
from studies.benchmarks.contest_pages import paper_rows, status
from studies.benchmarks.discovered import DISCOVERED, FEW_TRIALS
from studies.benchmarks.pages import PAGES
from studies.benchmarks.timing import SpeedRow
from studies.cells.cell import SETS
from studies.results import page_path, read_result

#: Pages whose numbers are proved again when they are written.
SLOW = ("discovered",)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in PAGES])
def test_pages_are_those_of_the_kept_results(name: str) -> None:
    page = PAGES[name]
    assert page.path.read_text(encoding="utf-8") == page.written()


def test_speeds_meet_their_targets_as_their_rows_say() -> None:
    rows = [*read_result("performance")["rows"], *read_result("training_speed")["gpu"]["rows"]]
    topics = {"product", "locality", "field", "ensemble", "size", "training", "sweep"}
    assert topics <= {row["topic"] for row in rows}
    for row in rows:
        again = SpeedRow.against(*(row[k] for k in ("topic", "what", "seconds", "peer", "ratio", "target")))
        assert again.met == row["met"]


def test_the_accuracies_count_cells_as_the_main_tables_do() -> None:
    text = PAGES["accuracy"].path.read_text(encoding="utf-8")
    agree, above, below = re.search(r"(\d+) of 63 cells .*\((\d+) higher, (\d+) lower\)", text).groups()  # type: ignore[union-attr]
    main = page_path("classification").read_text(encoding="utf-8")
    counts = re.search(r"(\d+) of 63 accuracies .* (\d+) above, (\d+) below", main).groups()  # type: ignore[union-attr]
    assert (agree, above, below) == counts
    published = [row for row in paper_rows() if row["paper"] is not None]
    assert len(published) == 63
    for row in published:
        found = find_published(row["method"], row["dataset"])
        assert found is not None
        assert row["paper"] == found.mean


#: Where planted results come from.
PROVENANCE = {"command": "a command", "environment": {"device": "a machine"}}


def table_lines(text: str) -> dict[str, list[str]]:
    """Cells of the tables of a page by their first one, the first line with it."""
    lines = (line.strip("| ").split(" | ") for line in reversed(text.splitlines()) if line.startswith("| "))
    return {cells[0]: [cell.strip() for cell in cells[1:]] for cells in lines}


# ---------------------------------------------------------------------- compared networks
def compared_row(**changes: Any) -> dict[str, Any]:
    given = {
        "model": "gcn", "dataset": "cora", "mean": 86.0, "std": 1.2, "each": [86.0] * 10, "tried": 1, "parameters": 7,
        "seconds": 2.0, "published": 86.5, "published_std": 1.3,
    }  # fmt: skip
    return given | changes


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "agrees"), ({"mean": 80.0}, "below"), ({"mean": 92.0}, "above"), ({"published": None}, ""),
        ({"mean": 80.0, "tried": 12}, "underspecified"), ({"tried": 12}, "agrees"),
    ],
)  # fmt: skip
def test_the_status_of_a_cell(changes: dict[str, Any], word: str) -> None:
    assert status(compared_row(**changes)) == word


def test_compared_cells_are_counted_and_outliers_have_their_causes() -> None:
    notes = [{"network": "gat gcn", "sets": "cora texas", "cause": "explained", "note": "Swapped."}]
    rows = [
        compared_row(), compared_row(model="gat", mean=70.0), compared_row(model="sgc", mean=60.0, tried=12),
        compared_row(model="jknet", published=None), compared_row(model="acmp", mean=60.0),
    ]  # fmt: skip
    reaction = {"reaction": "BS", "dataset": "texas", "mean": 80.0, "std": 4.0, "splits": 10, "paper": 88.9,
                "paper_std": 3.7}  # fmt: skip
    epochs = {"epochs": [{"model": "gcn", "milliseconds": 0.35}]}
    found = contest_pages.compared({"rows": rows}, [reaction], notes, epochs)
    assert found["counts"] == {"agrees": 1, "above": 0, "below": 3, "underspecified": 1}
    assert (found["published"], found["total"]) == (5, 6)
    assert found["difference"] == pytest.approx((0.5 + 16.5 + 26.5 + 26.5 + 8.9) / 5)
    causes = {row["title"]: row["cause"] for row in found["outliers"]}
    assert (causes["GAT"], causes["SGC"]) == ("explained (1)", "settings were not published")
    lines = table_lines(PAGES["compared"].shown(found | {"compared": PROVENANCE, "model_speed": {}}))
    assert lines["GREAD-BS"][SETS.index("texas")] == "**80.0 (88.9)**"
    assert lines["GCN"][SETS.index("cora")] == "86.0 (86.5)"
    assert lines["SGC"][SETS.index("cora")] == "*60.0 (86.5)*"
    assert next(row for row in found["costs"] if row["title"] == "GCN")["epoch"] == 0.35


# ---------------------------------------------------------------------- searched settings


def row(contestant: str = "BS", dataset: str = "texas", **changes: Any) -> dict[str, Any]:
    given = {
        "contestant": contestant, "dataset": dataset, "metric": "accuracy", "trials": 60, "epochs": 200,
        "states": {"complete": 9, "pruned": 51}, "origin": "drawn", "val_mean": 88.0, "mean": 85.0, "std": 2.0,
        "each": [84.0, 86.0] * 5, "nested": 84.5, "nested_std": 2.5, "by_test": 86.25, "share": 0.25,
        "test_to_train": 0.4, "seconds": 7.0,
    }  # fmt: skip
    return given | changes


def searched(*rows: dict[str, Any], **others: Any) -> dict[str, Any]:
    printed = [{"reaction": "BS", "dataset": d, "mean": 83.5, "diverged": 0} for d in SETS]
    printed.append({"reaction": "Z", "dataset": "texas", "mean": 0.0, "diverged": 10})
    return contest_pages.searched({"rows": list(rows)} | others, printed)


def test_a_reaction_is_shown_with_what_is_known_of_it() -> None:
    (found,) = searched(row())["reactions"]["texas"]
    assert (found["title"], found["paper"], found["code"], found["printed"]) == ("BS", 88.92, 86.49, "83.50")
    (other,) = searched(row("F-tanh"))["reactions"]["texas"]
    assert (other["paper"], other["code"], other["printed"]) == (None, None, "")
    assert searched(row("Z"))["reactions"]["texas"][0]["printed"] == "0.00†"


def test_means_over_nine_sets_need_all_of_them() -> None:
    rows = [row(dataset=d, mean=70.0 + k, by_test=80.0) for k, d in enumerate(SETS)]
    found = searched(*rows, row("F"), *(row("FB", d, val_mean=90.0, mean=73.0) for d in SETS))
    averages = {line["title"]: line for line in found["averages"]}
    assert (averages["BS"]["mean"], averages["BS"]["by_test"], averages["F"]["known"]) == (74.0, 80.0, 1)
    assert averages["BS"]["code"] == pytest.approx(np.mean([authors_runs()[d].mean for d in SETS]))
    assert (found["best"]["title"], found["best"]["mean"], found["every"]) == ("FB", 73.0, None)


def test_the_reaction_may_be_chosen_on_every_set_once_all_are_there() -> None:
    names = [c.name for c in contest_pages.ALL_REACTIONS]
    rows = [row(name, d, mean=60.0, by_test=61.0) for name in names for d in SETS if name != "F"]
    rows += [row("F", d, val_mean=88.0 + (2 if k else -2), mean=69.0, by_test=70.0) for k, d in enumerate(SETS)]
    assert searched(*rows)["every"] == {"mean": pytest.approx((60 + 8 * 69) / 9), "by_test": 70.0}
    assert searched(*rows[:-1])["every"] is None


STEADY = [80.0, 82.0, 81.0, 83.0, 80.0, 82.0, 81.0, 83.0, 80.5, 82.5]


def test_budgets_are_compared_split_by_split_where_they_are_equal() -> None:
    noise = [0.1, -0.1] * 5
    rows = [
        row(each=STEADY), row("gcn-tuned", each=[b - 3 + n for b, n in zip(STEADY, noise, strict=True)]),
        row("mlp", each=[b + 0.01 + 30 * n for b, n in zip(STEADY, noise, strict=True)]),
        row("F", each=[b - 9 for b in STEADY]), row("FB", trials=61),
    ]  # fmt: skip
    found = searched(*rows)
    text = PAGES["searched"].text({"rows": rows} | PROVENANCE)
    counts, pairs = (table_lines(part) for part in text.split("<details><summary>Differences")[:2])
    error = math.sqrt((0.1 + 0.4) * np.var(noise, ddof=1))
    assert pairs["BS - tuned GCN"] == [f"**+3.00 ({error:.2f})**"]
    assert counts["BS - tuned GCN"] == ["1 / 0 / 0"]
    assert counts["BS - MLP"] == ["0 / 0 / 1"]
    assert counts["F - tuned GCN"] == ["0 / 1 / 0"]
    assert "FB - tuned GCN" not in pairs
    assert found["tests"]["better"] == ["texas"]
    assert "on 1 of 1 sets and worse on 0" in text
    drawn = contest_pages.searched_field({"rows": rows})
    assert drawn is not None
    assert (list(drawn.rows), list(drawn.columns)) == (["F", "FB", "tuned GCN", "MLP"], ["texas"])
    np.testing.assert_array_equal(np.isnan(drawn.values), [[False], [True], [False], [False]])
    np.testing.assert_array_equal(drawn.sure, [[True], [False], [True], [False]])


def test_costs_and_failures_are_counted() -> None:
    found = searched(row(), row(dataset="cora", share=0.5), failed={"Z/pubmed": "no memory"})
    (cost,) = found["costs"]
    assert (cost["sets"], cost["trials"], cost["seconds"]) == (2, 120, 14.0)
    assert (cost["share"], cost["states"]) == (0.375, [("complete", 18), ("pruned", 102)])
    assert len(found["missing"]) == 170  # 16 on nine sets and 7 on four, but two rows
    text = PAGES["searched"].text({"rows": [row()], "failed": {"Z/pubmed": "no memory"}} | PROVENANCE)
    assert "\n\nNot measured: Z/pubmed (no memory).\n\nNot measured yet: 170 cells.\n" in text


# ---------------------------------------------------------------------- discovered equations


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
    return {"rows": [planted_row(name, gain) for name in sets]} | PROVENANCE


def planted_other(name: str, mean: float, trials: int) -> dict[str, Any]:
    return {"contestant": name, "dataset": "texas", "metric": "accuracy", "trials": trials, "epochs": 20,
            **spread(mean), "test_to_train": 0.4}  # fmt: skip


def test_discovered_equations_are_compared_where_budgets_are_equal() -> None:
    found = planted_file(9.0, "texas", "cora")
    found["rows"].append({**planted_row("texas", -9.0), "contestant": FEW_TRIALS, "trials": 6})
    found["rows"].append(planted_other("BS", 70.0, 15))
    others = {"rows": [planted_other("Z", 60.0, 6), planted_other("AC", 60.0, 7)]}
    numbers = contest_pages.discovered(found, others)
    assert numbers["fresh"] == {"tests": 2, "better": ["texas", "cora"], "worse": []}
    few, many = numbers["budgets"]
    assert [(one["title"], one["better"]) for one in few["others"]] == [("Z", ["texas"])]
    assert [(one["title"], one["better"]) for one in many["others"]] == [("BS", ["texas"])]
    assert (few["trials"], many["trials"]) == ([6], [15])
    drawn = contest_pages.discovered_field(found, others)
    assert drawn is not None
    assert list(drawn.rows) == ["Z, equal trials", "BS, same settings, fresh splits"]
    assert drawn.values[1, 0] == pytest.approx(9.0)
    assert drawn.sure.all()
    assert contest_pages.discovered_field({"rows": []}, {"rows": []}) is None
    terms = [contest_pages.terms(found["rows"][0], sign) for sign in (1, -1)]
    assert terms == ["`L@H` +3.0", "none for sure"]


def test_the_page_proves_the_chosen_equations_and_shows_sizes() -> None:
    found = planted_file(0.0, "texas")
    found["rows"][0]["front"] = [
        {"size": 1, "equation": "alpha*L@H", "validation": 81.0, "test": 80.0, "on_front": "yes"},
        {"size": 2, "equation": "alpha*L@H + beta*H", "validation": 80.0, "test": 79.0, "on_front": "no"},
    ]
    text = PAGES["discovered"].text(found, {"rows": []})
    assert "- symbol: alpha\\*lam" in text
    assert "- Lipschitz bound: 2\\*|alpha|" in text
    assert "- existence: global" in text
    assert (
        "| texas | 1 | `alpha*L@H` | 81.00 | 80.00 [78.63, 81.37] | yes |" in text
    )  # by hand: 80 +- 2.571 sqrt(0.5 (1/6 + 0.4))
    assert "| texas | 2 | `alpha*L@H + beta*H` | 80.00 | 79.00 | no |" in text
    assert "on 0 of 1 sets, worse on 0, and not significantly different on 1" in text


def test_equations_of_other_sets_are_counted_against_bs() -> None:
    """Better on one set and worse on another: the first origin is worse nowhere."""
    rows = []
    for dataset, gain in (("texas", 9.0), ("cora", -9.0)):
        results = [{"origin": name, "equation": "BS", "val_mean": 80.0, **spread(80.0 + by), "diverged": 0}
                   for name, by in (("BS", 0.0), ("film", abs(gain)), ("pubmed", gain))]  # fmt: skip
        rows.append({"contestant": "transfer", "dataset": dataset, "results": results, "test_to_train": 0.4})
    found = contest_pages.discovered({"rows": rows}, {"rows": []})["transfer"]
    assert (found["tests"], len(found["better"]), len(found["worse"])) == (4, 3, 1)
    assert (found["origins"], found["never"]) == (["film", "pubmed"], ["film"])
    assert found["cells"][1] == ["chosen on film", "**89.00 (+9.00)**", "**89.00 (+9.00)**", "2", "0"]


@pytest.mark.parametrize("name", ["compared", "discovered", "searched", "distilled"])
def test_an_empty_file_makes_a_page(name: str) -> None:
    empty = {"rows": [], "command": "a command", "environment": {"torch": "2"}}
    page = PAGES[name]
    found = [empty if source != "model_speed" else {} for source in page.sources]
    assert page.text(*found).startswith("#")


def test_templates_name_no_program_that_does_not_exist() -> None:
    from studies.benchmarks.__main__ import PROGRAMS

    for page in PAGES.values():
        if page.name in SLOW:
            continue
        for words in re.findall(r"python -m studies\.benchmarks ([a-z-]+)(?: ([a-z-]+))?`?", page.written()):
            assert words[0] in PROGRAMS
            assert words[0] != "pages" or words[1] in PAGES
