"""docs/discovered.md from the measured numbers: `python -m studies.benchmarks.discovered_page`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdgraph.systems.parser import parse
from studies.benchmarks.cell_file import missing_cells, not_measured
from studies.benchmarks.compared import SETS
from studies.benchmarks.discovered import DISCOVERED, DOCS, FEW_TRIALS, KEY, TRANSFER
from studies.benchmarks.discovery_budget import MANY_TRIALS, usual_cells
from studies.benchmarks.searched import CONTESTANTS, FIRST, OTHERS, REACTIONS, TUNED
from studies.benchmarks.searched_page import SHARED_CARD, Cells, cells_of, compared, number, paired, table
from studies.cells.corrected_test import CorrectedTest
from studies.discovery.line_proofs import METHOD, NORMALISATION, NOT_TOLD, proofs
from studies.runs.boundary import run_program
from studies.runs.chart import FieldMap
from studies.runs.chart_figures import map_figure
from studies.runs.uncertainty import FAILS, HOLDS

SOURCE, SEARCHED = DOCS / "discovered.json", DOCS / "searched.json"
FIGURE = "figures/discovered.png"
#: Who is compared with the discovered equation, with few trials and with many.
FEW_NAMES = (*(one.name for one in REACTIONS), TUNED)

HEAD = """# Equations nobody wrote

On every set equations of the grammar `default` ([discover](discover.md)) are enumerated, each behaviour once, the
unsafe ones bounded or left out, and trained with the defaults of gread; the best mean validation accuracy over the
splits chooses one, and then its settings, from the space `paper`. Others that it is compared with have as many trials
of settings as both searches together, published settings first ([search](searching.md)). Test nodes choose nothing.
Percent, mean ± population standard deviation over the splits, one seed. Numbers in [discovered.json](discovered.json),
this page by `python -m studies.benchmarks.discovered_page`.
"""
NOISE = """Differences are those of test results on the same splits, first minus second, in points, with the standard
error of the corrected resampled t-test (Nadeau and Bengio 2003); **bold**: the two-sided p is below 0.05, without a
correction for the number of comparisons."""


def title(name: str) -> str:
    return "discovered" if name in (DISCOVERED, FEW_TRIALS) else CONTESTANTS[name].title


def rows_named(found: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The rows of a contestant by data set, in the order of all tables."""
    rows = {row["dataset"]: row for row in found["rows"] if row["contestant"] == name}
    return {dataset: rows[dataset] for dataset in (*SETS, *OTHERS) if dataset in rows}


def fresh_test(row: dict[str, Any]) -> CorrectedTest:
    """The chosen equation minus BS, both with the defaults, on splits that the choice did not see."""
    own, other = (dict(enumerate(row["fresh"]["splits"][name]["each"])) for name in ("chosen", FIRST))
    return CorrectedTest.of(own, other, row["test_to_train"])


def verdict(found: dict[str, Any], few: Cells) -> list[str]:
    """The answer: with equal budgets against BS in a sentence, then everything that was compared."""
    rows, cells = rows_named(found, DISCOVERED), cells_of(found)
    points = [
        _fresh_verdict(rows) if rows else "",
        _budget_verdict(found, cells, DISCOVERED, MANY_TRIALS),
        _budget_verdict(found, few, FEW_TRIALS, FEW_NAMES),
        transfer_verdict(rows_named(found, TRANSFER)),
    ]
    told = [f"- {_escaped(text)}" for text in points if text]
    head = _headline(_tests(found, few, FEW_TRIALS, FIRST)) if told else "Nothing is measured yet."
    return [*([f"**{head}**", ""] if head else []), *told, ""]


def _tests(found: dict[str, Any], cells: Cells, own: str, other: str) -> dict[str, CorrectedTest]:
    """By data set, where both have equal trials."""
    return {name: t for name in rows_named(found, own) if (t := compared(cells, own, other, name)) is not None}


def _headline(tests: dict[str, CorrectedTest]) -> str:
    if not tests:
        return ""
    better, worse = ([name for name, test in tests.items() if test.answer == answer] for answer in (HOLDS, FAILS))
    return (
        f"Under equal budgets, settings searched as well, the discovered equation is better than BS beyond noise on "
        f"{len(better)} of {len(tests)} sets{_listed(better)} and worse on {len(worse)}{_listed(worse)}."
    )


def _budget_verdict(found: dict[str, Any], cells: Cells, own: str, others: Sequence[str]) -> str:
    told, trials = [], set()
    for other in others:
        if tests := _tests(found, cells, own, other):
            counts = Counter(test.answer for test in tests.values())
            told.append(f"{title(other)} on {counts[HOLDS]} of {len(tests)} sets (worse on {counts[FAILS]})")
            trials |= {cells[own, name]["trials"] for name in tests}
    if not told:
        return ""
    budget = " or ".join(map(str, sorted(trials)))
    return (
        f"With {budget} trials for everybody, settings searched as well, it is better beyond noise than "
        f"{', '.join(told)}."
    )


def _fresh_verdict(rows: dict[str, dict[str, Any]]) -> str:
    tests = {name: fresh_test(row) for name, row in rows.items()}
    better = [name for name, test in tests.items() if test.answer == HOLDS]
    worse = [name for name, test in tests.items() if test.answer == FAILS]
    counted = f"of {len(tests)} sets"
    return (
        f"With the same settings, on splits that the choice did not see, the chosen equation is better than BS beyond "
        f"noise on {len(better)} {counted}{_listed(better)}, worse on {len(worse)}{_listed(worse)}, and not told from "
        f"it on {len(tests) - len(better) - len(worse)}."
    )


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def differences(found: dict[str, Any], few: Cells) -> FieldMap | None:
    """The discovered equation minus everybody else on every set, bold beyond noise; None where nothing is compared."""
    sets = [name for name in SETS if (FEW_TRIALS, name) in few]
    rows = rows_named(found, DISCOVERED)
    tests = {
        f"{title(other)}, equal trials": [compared(few, FEW_TRIALS, other, name) for name in sets]
        for other in FEW_NAMES
    }
    tests[f"{FIRST}, same settings, fresh splits"] = [fresh_test(rows[d]) if d in rows else None for d in sets]
    tests = {name: line for name, line in tests.items() if any(line)}
    if not tests:
        return None
    return FieldMap(
        list(tests), sets, np.array([[t.difference if t else np.nan for t in line] for line in tests.values()]),
        np.array([[t is not None and t.answer in (HOLDS, FAILS) for t in line] for line in tests.values()]),
        "the discovered equation minus the others, test results; bold beyond noise", limit=10.0, unit="points",
    )  # fmt: skip


# ---------------------------------------------------------------------- parts
def budgets_part(cells: Cells, few: Cells, *, drawn: bool) -> list[str]:
    """Everybody on all sets, and the differences to the discovered equation: with few trials, and with many."""
    lines = ["## Equal budgets", "", NOISE, ""]
    if drawn:
        lines += [f"![The discovered equation minus the others on every set]({FIGURE})", ""]
    lines += _budget_tables(few, FEW_TRIALS, FEW_NAMES, "As many trials as in [searched](searched.md), all reactions:")
    return lines + _budget_tables(
        cells, DISCOVERED, MANY_TRIALS, "As many trials as the whole search over equations, on some sets, to save time:"
    )


def _budget_tables(cells: Cells, own: str, others: Sequence[str], words: str) -> list[str]:
    sets = [name for name in SETS if (own, name) in cells]
    if not sets:
        return []
    known = [n for n in others if any((n, d) in cells for d in sets)]
    results = [
        [title(n), *(number(cells[n, d]["mean"], cells[n, d]["std"]) if (n, d) in cells else "" for d in sets)]
        for n in (own, *known)
    ]
    trials = ["trials", *(str(cells[own, d]["trials"]) for d in sets)]
    lines = [words, "", *table(["", *sets], [*results, trials]), ""]
    rows = []
    for other in known:
        tests = [compared(cells, own, other, d) for d in sets]
        if any(test is not None for test in tests):
            rows.append([f"discovered - {title(other)}", *map(paired, tests)])
    return [*lines, *table(["", *sets], rows), ""] if rows else lines


def chosen_part(rows: dict[str, dict[str, Any]]) -> list[str]:
    """The chosen equation of every set, as chosen and with its settings searched."""
    told = [
        [
            name, f"`{row['formula']}`", number(row["untuned"]["val_mean"]),
            number(row["untuned"]["mean"], row["untuned"]["std"]), number(row["nested"]), number(row["by_test"]),
            number(row["tuned"]["mean"], row["tuned"]["std"]),
        ]
        for name, row in rows.items()
    ]  # fmt: skip
    head = ["set", "dH/dt =", "validation", "test, with the defaults", "chosen on every split for itself",
            "best by test (no result)", "test, settings searched"]  # fmt: skip
    return ["## What was chosen", "", *table(head, told), ""]


def sizes_part(rows: dict[str, dict[str, Any]]) -> list[str]:
    """The best equation of each number of terms by validation, and its results."""
    told = [
        [
            name, str(one["size"]), f"`{one['equation']}`", number(one["validation"]),
            f"{one['test']:.2f} [{one['low']:.2f}, {one['high']:.2f}]", one["on_front"],
        ]
        for name, row in rows.items()
        for one in row["front"]
    ]  # fmt: skip
    words = ("The best of each number of terms by validation, with the defaults; the test interval of 95 % is over "
             "splits. On the front: better on validation than all smaller ones.")  # fmt: skip
    head = ["set", "terms", "dH/dt =", "validation", "test", "on the front"]
    return ["## Accuracy against size", "", words, "", *table(head, told), ""] if told else []


def proofs_part(rows: dict[str, dict[str, Any]]) -> list[str]:
    """What the core proves of the chosen equations, for all coefficients that they declare."""
    words = (f"For all coefficients that an equation declares, with an adjacency of normalisation `{NORMALISATION}` "
             f"and steps of `{METHOD}`; `rdgraph analyse` says more.")  # fmt: skip
    lines = ["## What is proved of them", "", words, ""]
    for name, row in rows.items():
        answers = {k: v for k, v in proofs(parse(row["equation"])).items() if not v.startswith(NOT_TOLD)}
        lines += [f"**{name}**: `{row['formula']}`", ""]
        lines += [f"- {topic.replace('_', ' ')}: {_escaped(answer)}" for topic, answer in answers.items()]
        lines.append("")
    return lines


def _escaped(text: str) -> str:
    """Stars of products and names as they are, no emphasis."""
    return text.replace("*", "\\*")


def curse_part(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Validation and test accuracies of the choice when it is trained anew, beside BS."""
    told = []
    for name, row in rows.items():
        seeds, splits = row["fresh"]["seeds"], row["fresh"]["splits"]
        lost = row["untuned"]["val_mean"] - seeds["chosen"]["val_mean"]
        told.append([
            name, number(row["untuned"]["val_mean"]), number(seeds["chosen"]["val_mean"]), f"{lost:+z.2f}",
            number(seeds["chosen"]["mean"]), number(splits["chosen"]["mean"]), number(splits[FIRST]["mean"]),
            paired(fresh_test(row)),
        ])  # fmt: skip
    head = ["set", "validation, as chosen", "validation, fresh seeds", "lost", "test, fresh seeds",
            "test, fresh splits", "BS, fresh splits", "difference"]  # fmt: skip
    words = ("The best of many validation accuracies is partly luck. The chosen equation and BS, both with the "
             "defaults, trained anew with seeds, and on splits, that the choice did not see:")  # fmt: skip
    return ["## The winner's curse", "", words, "", *table(head, told), ""]


def transfer_tests(rows: dict[str, dict[str, Any]]) -> dict[tuple[str, str], tuple[float, CorrectedTest]]:
    """By the set that an equation was chosen on and the set that it is tried on: its mean, and it minus BS."""
    tests = {}
    for dataset, row in rows.items():
        each = {one["origin"]: dict(enumerate(one["each"])) for one in row["results"]}
        for one in row["results"]:
            if (origin := one["origin"]) != FIRST:
                test = CorrectedTest.of(each[origin], each[FIRST], row["test_to_train"])
                tests[origin, dataset] = one["mean"], test
    return tests


def transfer_verdict(rows: dict[str, dict[str, Any]]) -> str:
    """How often the equation of one set is better than BS on another, and which equation is worse nowhere."""
    tests = {cell: test for cell, (_, test) in transfer_tests(rows).items()}
    if not tests:
        return ""
    counts = Counter(test.answer for test in tests.values())
    losers = {origin for (origin, _), test in tests.items() if test.answer == FAILS}
    origins = [name for name in SETS if any(origin == name for origin, _ in tests)]
    never = [name for name in origins if name not in losers]
    return (
        f"Untouched on other sets, both with the defaults, the chosen equations are better than BS beyond noise in "
        f"{counts[HOLDS]} of {len(tests)} cells and worse in {counts[FAILS]}; those chosen on {len(never)} of "
        f"{len(origins)} sets{_listed(never)} are worse nowhere."
    )


def transfer_part(found: dict[str, Any]) -> list[str]:
    """Equations of other sets on every set, beside BS; and which set each of them comes from."""
    rows = rows_named(found, TRANSFER)
    if not rows:
        return []
    sets, tests = list(rows), transfer_tests(rows)
    first = ({one["origin"]: one for one in rows[name]["results"]}[FIRST]["mean"] for name in sets)
    body = [["BS", *map(number, first), "", ""]]
    for origin in (name for name in SETS if any((name, d) in tests for d in sets)):
        cells = [_moved(*tests[origin, d]) if (origin, d) in tests else "" for d in sets]
        counts = Counter(test.answer for (name, _), (_, test) in tests.items() if name == origin)
        body.append([f"chosen on {origin}", *cells, str(counts[HOLDS]), str(counts[FAILS])])
    words = ("Equations that were chosen on one set, untouched and with the defaults, on the others, in brackets the "
             "difference to BS with the same settings and splits; better and worse: the number of sets where this "
             "is beyond noise.")  # fmt: skip
    return ["## Transfer", "", words, "", *table(["", *sets, "better", "worse"], body), ""]


def _moved(mean: float, test: CorrectedTest) -> str:
    text = f"{mean:.2f} ({test.difference:+z.2f})"
    return f"**{text}**" if test.answer in (HOLDS, FAILS) else text


def terms_part(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Terms whose interval is on one side of zero, by set."""
    told = []
    for name, row in rows.items():
        helps, harms = (
            ", ".join(
                f"`{t['term']}` {t['effect']:+z.1f}" for t in row["terms"] if sign * t["effect"] > 0 and _is_sure(t)
            )
            for sign in (1, -1)
        )
        told.append([name, helps or "none for sure", harms or "none for sure"])
    words = ("Points of validation accuracy that a term adds, other terms held, after the first rung; those whose 95 % "
             "interval does not hold 0, without a correction for their number:")  # fmt: skip
    return ["## Which terms help", "", words, "", *table(["set", "help", "harm"], told), ""]


def _is_sure(term: dict[str, Any]) -> bool:
    return bool(term["low"] > 0 or term["high"] < 0)


def tried_part(found: dict[str, Any], rows: dict[str, dict[str, Any]]) -> list[str]:
    """How many equations were tried, merged and bounded, and what it took."""
    told = []
    for name, row in rows.items():
        counts = row["counts"]
        bounded = sum(n for state, n in counts["safety"].items() if state.startswith("bounded"))
        left = sum(n for state, n in counts["safety"].items() if state.startswith("left out"))
        told.append([
            name, str(counts["enumerated"]), str(counts["behaviours"]), str(counts["trained"]), str(bounded), str(left),
            ", ".join(f"{n} {state}" for state, n in sorted(counts["states"].items())),
            f"{sum(row['seconds'].values()):.0f}",
        ])  # fmt: skip
    head = ["set", "enumerated", "behaviours", "trained", "with tanh", "left out", "states", "seconds"]
    words = f"{SHARED_CARD}. Seconds are those of the last process: a search that was stopped and went on took more"
    lines = ["## What was tried", "", f"`{found['command']}` on {_where(found)}; {words}.", ""]
    lines += [*table(head, told), ""]
    merged = next(iter(rows.values()))["counts"]["merged"]
    lines += ["Merged before training: " + ", ".join(f"{n} by {rule}" for rule, n in merged.items()) + "."]
    names = (FEW_TRIALS, DISCOVERED, *MANY_TRIALS)
    missing = usual_cells(missing_cells(found, KEY, names, SETS))
    missing += missing_cells(found, KEY, (TRANSFER,), (*SETS, *OTHERS))
    return lines + not_measured(found, missing)


def _where(found: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in found["environment"].items())


def few_trials(found: dict[str, Any], searched: dict[str, Any]) -> Cells:
    """The cells with few trials: those of searched settings, and the discovered ones beside them."""
    return cells_of(searched) | {cell: row for cell, row in cells_of(found).items() if cell[0] == FEW_TRIALS}


def page(found: dict[str, Any], searched: dict[str, Any]) -> str:
    """The page as Markdown, of whatever cells there are; `searched` has those that few trials are compared with."""
    rows, cells = rows_named(found, DISCOVERED), cells_of(found)
    few = few_trials(found, searched)
    parts = [verdict(found, few)]
    if rows:
        parts += [chosen_part(rows), proofs_part(rows), sizes_part(rows)]
    if rows or rows_named(found, FEW_TRIALS):
        parts.append(budgets_part(cells, few, drawn=differences(found, few) is not None))
    if rows:
        parts += [curse_part(rows), transfer_part(found), terms_part(rows), tried_part(found, rows)]
    return "\n".join([HEAD, *(line for part in parts for line in part)]).rstrip("\n") + "\n"


def main() -> None:
    found, searched = (json.loads(path.read_text(encoding="utf-8")) for path in (SOURCE, SEARCHED))
    (DOCS / "discovered.md").write_text(page(found, searched), encoding="utf-8")
    if drawn := differences(found, few_trials(found, searched)):
        map_figure(drawn).savefig(DOCS / FIGURE, dpi=120)


if __name__ == "__main__":
    run_program(main)
