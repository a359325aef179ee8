"""Rows of the report of a search over equations: front, best equations, merges, safety, retrainings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import sympy as sp

from gread.comparison import Comparison, mean_interval, share_ratio
from gread.discovery.behaviours import RULE_WORDS, RULES
from gread.discovery.discovery_plan import Discovered
from gread.discovery.line_safety import finding_rows
from gread.discovery.term_grammar import Line
from gread.discovery.winner_checks import Retrained, term_effects
from rdgraph.errors import RdgraphError
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import in_words
from rdgraph.reals.line_extents import in_decimals
from rdgraph.systems.system import System
from rdgraph.theory.filters import classify, symbol
from rdgraph.theory.global_existence import existence
from rdgraph.theory.rate_bounds import rate_bound
from rdgraph.theory.step_limits import step_limit
from studies.runs.tables import Row
from studies.runs.uncertainty import interval_cells
from studies.search.study import choice_rows as choices_of

# ---------------------------------------------------------------------- line proofs
# Proofs about an equation in a row (symbol, filter class, Lipschitz bound, existence, step limit), and its address in
# the explorer.

#: Time limit of each question in seconds, and the file of the explorer.
SECONDS = 4.0
EXPLORER = "explore.html"
#: The normalisation and the method of the bounds.
NORMALISATION, METHOD = "row", "rk4"
#: How a missing answer begins.
UNKNOWN = "unknown"


def proofs(system: System, coefficients: Mapping[str, float] | None = None) -> dict[str, str]:
    """Proved facts about an equation in words; an unknown one says why.

    Symbol, slope and existence hold for all declared coefficients; the filter class and the step limit are for the
    given numbers, if any.

    >>> from rdgraph.systems.parser import parse
    >>> found = proofs(parse("-alpha*L@H"), {"alpha": 0.5})
    >>> found["symbol"], found["filter_class"], found["step_limit"][:5]
    ('-alpha*lam', 'low-pass', '2.785')
    """
    numbers = {name: f"{value:.4g}" for name, value in (coefficients or {}).items() if math.isfinite(value)}
    here = system.replace(**{name: sp.Rational(text) for name, text in numbers.items()}) if numbers else system
    return {
        "symbol": _asked(lambda: str(symbol(system))),
        "filter_class": _asked(lambda: "; ".join(map(str, classify(here)))),
        "Lipschitz_bound": _asked(lambda: _slope(system)),
        "existence": _asked(lambda: _life(system)),
        "step_limit": _asked(lambda: _step(here)),
    }


def _asked(question: Callable[[], str]) -> str:
    try:
        return limited(SECONDS, question)
    except RdgraphError as problem:
        return f"{UNKNOWN}: {str(problem).partition(chr(10))[0]}"


def _slope(system: System) -> str:
    bound = rate_bound(system, NORMALISATION)
    if not bound.is_finite:
        return "none for all states"
    return in_words(in_decimals(bound.value)) + (" on |h| <= R" if bound.is_local else "")


def _life(system: System) -> str:
    collected = existence(system)
    return f"{collected.outcome}: {collected.why}"


def _step(system: System) -> str:
    limit = step_limit(system, METHOD, NORMALISATION)
    if limit.value is None:
        return limit.reason
    value = f"{float(limit.value):.4g}" if limit.value.is_number and limit.value.is_finite else in_words(limit.value)
    return f"{value} ({limit.reason})"


def explorer_address(line: Line, coefficients: Mapping[str, float] | None = None) -> str:
    """Address of an equation in the explorer of the run folder, at the means of its coefficients.

    >>> from gread.discovery.term_grammar import Term
    >>> explorer_address(Line((Term("L@H", "-"),), ("alpha",), "scalar"), {"alpha": 0.25})
    'explore.html#e=-alpha%2AL%40H%20where%20alpha%20positive&c.alpha=0.25'
    """
    words = [f"e={quote(line.text, safe='')}"]
    words += [f"c.{name}={value:.6g}" for name, value in (coefficients or {}).items()]
    return f"{EXPLORER}#{'&'.join(words)}"


# ---------------------------------------------------------------------- discovery rows
#: Number of best equations shown with proofs.
TOP = 10


def percent(value: float) -> float:
    return 100 * value


def cloud_rows(collected: Discovered) -> list[Row]:
    """Size and validation accuracy of every fully trained equation."""
    return [
        {"equation": line.formula, "size": line.size, "validation": percent(r.val_accuracy)}
        for r, line in collected.ranked()
    ]


def front_rows(collected: Discovered) -> list[Row]:
    """The best equation of each size by validation; `on_front` says whether every smaller one is worse."""
    rows: list[Row] = []
    best, ratio = -1.0, share_ratio(collected.plan.data)
    ranked = collected.ranked()
    for size in sorted({line.size for _, line in ranked}):
        result, line = next(pair for pair in ranked if pair[1].size == size)
        rows.append({
            "size": size, "equation": line.formula, "validation": percent(result.val_accuracy),
            "test": percent(result.test_accuracy),
            **interval_cells(mean_interval(list(map(percent, result.test)), ratio)),
            "on_front": "yes" if result.val_accuracy > best else "no",
        })  # fmt: skip
        best = max(best, result.val_accuracy)
    return rows


def choice_rows(collected: Discovered) -> list[Row]:
    """Accuracy by way of choosing: by validation, with the search resampled, per split, by test."""
    known = {r.number: line.formula for r, line in collected.ranked()}
    return choices_of(collected.results, share_ratio(collected.plan.data), known.__getitem__, "equation")


def best_rows(collected: Discovered) -> list[Row]:
    """The best equations by validation, with their addresses in the explorer."""
    return [
        {
            "equation": line.formula, "size": line.size, "validation": percent(r.val_accuracy),
            "test": percent(r.test_accuracy), "coefficients": coefficient_text(collected, r.number),
            "explorer": explorer_address(line, collected.coefficients.get(r.number)),
        }
        for r, line in collected.ranked()[:TOP]
    ]  # fmt: skip


def proof_rows(collected: Discovered) -> list[Row]:
    """Proved facts about the best equations."""
    return [
        {"equation": line.formula, **proofs(line.system, collected.coefficients.get(r.number))}
        for r, line in collected.ranked()[:TOP]
    ]


def coefficient_text(collected: Discovered, number: int) -> str:
    return ", ".join(f"{name} = {value:.3g}" for name, value in collected.coefficients.get(number, {}).items())


def merge_rows(collected: Discovered) -> list[Row]:
    """Number of equations merged by each rule, with an example."""
    counts = collected.behaviours.counts()
    examples = {merge.rule: merge for merge in reversed(collected.behaviours.merges.values())}
    rows: list[Row] = []
    for rule in RULES:
        if counts[rule]:
            merge = examples.get(rule)
            example = "" if merge is None else f"{merge.line.formula} into {merge.into.formula}"
            rows.append({
                "rule": rule, "meaning": RULE_WORDS[rule], "equations": counts[rule], "example": example,
                "coefficients": "" if merge is None else merge.coefficients,
            })  # fmt: skip
    return rows


def safety_rows(collected: Discovered) -> list[Row]:
    """Number of equations by safety finding and treatment, with an example and its reason."""
    rows: list[Row] = []
    for row in finding_rows(collected.safety_counts()):
        kind = row["outcome"], row["finding"]
        group = next(t for t in collected.tried if (t.safety.state, t.safety.finding) == kind)
        rows.append({
            "treatment": row["outcome"], "finding": row["finding"] or "none",
            "equations": row["equations"], "example": group.line.formula, "trained as": group.safety.line.formula,
            "reason": group.safety.reason,
        })  # fmt: skip
    return rows


def effect_rows(collected: Discovered) -> list[Row]:
    """Effects of terms, in points."""
    known = collected.trained
    pairs = [(r, known[r.number].safety.line) for r in collected.results]
    return [
        {
            "term": one.term, "equations": one.equations, "effect": percent(one.effect), "low": percent(one.low),
            "high": percent(one.high), "share_of_variance": one.share, "p": one.p,
        }
        for one in term_effects(pairs)
    ]  # fmt: skip


# ---------------------------------------------------------------------- retrainings
def retrained_rows(results: Sequence[Retrained]) -> list[Row]:
    """A row for each equation and split, as stored in the parts of a run."""
    return [
        {"name": one.name, "split": split, "val": val, "test": test, "trainings": one.trainings,
         "diverged": one.diverged}
        for one in results
        for split, (val, test) in sorted(one.accuracies.items())
    ]  # fmt: skip


def read_retrained(rows: Sequence[Row]) -> dict[str, Retrained]:
    """The inverse of `retrained_rows`, by name."""
    results: dict[str, Retrained] = {}
    for name in dict.fromkeys(str(row["name"]) for row in rows):
        group = [row for row in rows if row["name"] == name]
        pairs = {int(row["split"]): (float(row["val"]), float(row["test"])) for row in group}
        results[name] = Retrained(name, pairs, int(group[0]["trainings"]), int(group[0]["diverged"]))
    return results


def difference(group: Retrained, other: Retrained, ratio: float) -> Comparison:
    """Comparison of two equations by test accuracy on the same splits, in points."""
    first, second = ({k: percent(test) for k, (_, test) in one.accuracies.items()} for one in (group, other))
    return Comparison.of(first, second, ratio)
