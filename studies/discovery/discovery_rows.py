"""Rows of the report of a search over equations: the front, the best, merges, what was unsafe, retrainings."""

from __future__ import annotations

from collections.abc import Sequence

from gread.discovery.behaviours import RULE_WORDS, RULES
from gread.discovery.discovery_plan import Discovered
from gread.discovery.line_safety import told_counts
from gread.discovery.term_effects import term_effects
from gread.discovery.winner_checks import Retrained
from gread.tuning.selection import best_by_test, mean_interval, nested_accuracies, searched_interval
from studies.cells.corrected_test import CorrectedTest
from studies.discovery.line_proofs import explorer_address, proofs
from studies.runs.tables import MutableRow, Row
from studies.runs.uncertainty import interval_cells

#: How many of the best are shown with their proofs.
TOP = 10


def percent(value: float) -> float:
    return 100 * value


def cloud_rows(found: Discovered) -> list[Row]:
    """Size and validation accuracy of every equation that was trained to its end."""
    return [
        {"equation": line.formula, "size": line.size, "validation": percent(r.val_accuracy)}
        for r, line in found.ranked()
    ]


def front_rows(found: Discovered) -> list[Row]:
    """The best of each size by validation; `on_front` says whether no smaller one is as good."""
    rows: list[Row] = []
    best = -1.0
    ranked = found.ranked()
    for size in sorted({line.size for _, line in ranked}):
        result, line = next(pair for pair in ranked if pair[1].size == size)
        rows.append({
            "size": size, "equation": line.formula, "validation": percent(result.val_accuracy),
            "test": percent(result.test_accuracy), **interval_cells(result.test, mean_interval(result.test)),
            "on_front": "yes" if result.val_accuracy > best else "no",
        })  # fmt: skip
        best = max(best, result.val_accuracy)
    return rows


def choice_rows(found: Discovered) -> list[Row]:
    """What the choices give: by validation, with the search resampled, per split, by test."""
    rows: list[Row] = []
    own, top, per_split = found.chosen, best_by_test(found.results), nested_accuracies(found.results)
    known = {r.number: line.formula for r, line in found.ranked()}

    def add(choice: str, equation: str, values: Sequence[float], interval: tuple[float, float]) -> None:
        row: MutableRow = {"choice": choice, "equation": equation, "test": percent(sum(values) / len(values))}
        rows.append(row | interval_cells(values, interval))

    add("by validation", known[own.number], own.test, mean_interval(own.test))
    add("by validation, the search resampled", known[own.number], own.test, searched_interval(found.results))
    add("by validation on every split", "several", per_split, mean_interval(per_split))
    if top is not None:
        add("by test (no result)", known[top.number], top.test, mean_interval(top.test))
    return rows


def best_rows(found: Discovered) -> list[Row]:
    """The best by validation, with the address of the explorer."""
    return [
        {
            "equation": line.formula, "size": line.size, "validation": percent(r.val_accuracy),
            "test": percent(r.test_accuracy), "coefficients": told_coefficients(found, r.number),
            "explorer": explorer_address(line, found.coefficients.get(r.number)),
        }
        for r, line in found.ranked()[:TOP]
    ]  # fmt: skip


def proof_rows(found: Discovered) -> list[Row]:
    """What is proved of the best."""
    return [
        {"equation": line.formula, **proofs(line.system, found.coefficients.get(r.number))}
        for r, line in found.ranked()[:TOP]
    ]


def told_coefficients(found: Discovered, number: int) -> str:
    return ", ".join(f"{name} = {value:.3g}" for name, value in found.coefficients.get(number, {}).items())


def merge_rows(found: Discovered) -> list[Row]:
    """How many equations were merged by which rule, with an example."""
    counts = found.behaviours.counts()
    examples = {merge.rule: merge for merge in reversed(found.behaviours.merges.values())}
    rows: list[Row] = []
    for rule in RULES:
        if counts[rule]:
            merge = examples.get(rule)
            told = "" if merge is None else f"{merge.line.formula} into {merge.into.formula}"
            rows.append({
                "rule": rule, "what_it_says": RULE_WORDS[rule], "equations": counts[rule], "example": told,
                "coefficients": "" if merge is None else merge.coefficients,
            })  # fmt: skip
    return rows


def safety_rows(found: Discovered) -> list[Row]:
    """How many equations had which trouble, what became of them, and an example with its reason."""
    rows: list[Row] = []
    for row in told_counts(found.safety_counts()):
        own = next(
            t for t in found.tried if (t.safety.state, t.safety.finding) == (row["what became of them"], row["finding"])
        )
        rows.append({
            "what became of them": row["what became of them"], "finding": row["finding"] or "none",
            "equations": row["equations"], "example": own.line.formula, "trained as": own.safety.line.formula,
            "reason": own.safety.reason,
        })  # fmt: skip
    return rows


def effect_rows(found: Discovered) -> list[Row]:
    """The effects of terms, in points."""
    known = found.trained
    pairs = [(r, known[r.number].safety.line) for r in found.results]
    return [
        {
            "term": one.term, "equations": one.equations, "effect": percent(one.effect), "low": percent(one.low),
            "high": percent(one.high), "share_of_variance": one.share, "p": one.p,
        }
        for one in term_effects(pairs)
    ]  # fmt: skip


# ---------------------------------------------------------------------- trained anew
def retrained_rows(results: Sequence[Retrained]) -> list[Row]:
    """A row for each equation and split, as parts of a run keep them."""
    return [
        {"name": one.name, "split": split, "val": val, "test": test, "trainings": one.trainings,
         "diverged": one.diverged}
        for one in results
        for split, (val, test) in sorted(one.accuracies.items())
    ]  # fmt: skip


def read_retrained(rows: Sequence[Row]) -> dict[str, Retrained]:
    """The inverse of `retrained_rows`, by name."""
    found: dict[str, Retrained] = {}
    for name in dict.fromkeys(str(row["name"]) for row in rows):
        own = [row for row in rows if row["name"] == name]
        pairs = {int(row["split"]): (float(row["val"]), float(row["test"])) for row in own}
        found[name] = Retrained(name, pairs, int(own[0]["trainings"]), int(own[0]["diverged"]))
    return found


def difference(own: Retrained, other: Retrained, ratio: float) -> CorrectedTest:
    """Test accuracies of two on the same splits, in points."""
    first, second = ({k: percent(test) for k, (_, test) in one.accuracies.items()} for one in (own, other))
    return CorrectedTest.of(first, second, ratio)
