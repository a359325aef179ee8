"""Rows of the report of a search over equations: the front, the best, merges, what was unsafe, retrainings."""

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
# What is proved of an equation, in a row: symbol, filter class, Lipschitz constant, existence, step limit.
#
# And the address under which the explorer opens on it.

#: Seconds of each question, and the file of the explorer.
SECONDS = 4.0
EXPLORER = "explore.html"
#: The normalisation and the method that bounds are told for.
NORMALISATION, METHOD = "row", "rk4"
#: How an answer begins that is none.
NOT_TOLD = "not told"


def proofs(system: System, coefficients: Mapping[str, float] | None = None) -> dict[str, str]:
    """The answers of the core about an equation, each in words; what is not known says why.

    Symbol, slope and existence hold for all coefficients that are declared; the filter class and the step limit are
    those at the given numbers, where there are some.

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
        return f"{NOT_TOLD}: {str(problem).partition(chr(10))[0]}"


def _slope(system: System) -> str:
    bound = rate_bound(system, NORMALISATION)
    if not bound.is_finite:
        return "none for all states"
    return in_words(in_decimals(bound.value)) + (" on |h| <= R" if bound.is_local else "")


def _life(system: System) -> str:
    found = existence(system)
    return f"{found.outcome}: {found.why}"


def _step(system: System) -> str:
    limit = step_limit(system, METHOD, NORMALISATION)
    if limit.value is None:
        return limit.reason
    value = f"{float(limit.value):.4g}" if limit.value.is_number and limit.value.is_finite else in_words(limit.value)
    return f"{value} ({limit.reason})"


def explorer_address(line: Line, coefficients: Mapping[str, float] | None = None) -> str:
    """Where the explorer beside the report opens on an equation, at the means of its coefficients.

    >>> from gread.discovery.term_grammar import Term
    >>> explorer_address(Line((Term("L@H", "-"),), ("alpha",), "scalar"), {"alpha": 0.25})
    'explore.html#e=-alpha%2AL%40H%20where%20alpha%20positive&c.alpha=0.25'
    """
    words = [f"e={quote(line.text, safe='')}"]
    words += [f"c.{name}={value:.6g}" for name, value in (coefficients or {}).items()]
    return f"{EXPLORER}#{'&'.join(words)}"


# ---------------------------------------------------------------------- discovery rows
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
    best, ratio = -1.0, share_ratio(found.plan.data)
    ranked = found.ranked()
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


def choice_rows(found: Discovered) -> list[Row]:
    """What the choices give: by validation, with the search resampled, per split, by test."""
    known = {r.number: line.formula for r, line in found.ranked()}
    return choices_of(found.results, share_ratio(found.plan.data), known.__getitem__, "equation")


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
    for row in finding_rows(found.safety_counts()):
        own = next(t for t in found.tried if (t.safety.state, t.safety.finding) == (row["outcome"], row["finding"]))
        rows.append({
            "what became of them": row["outcome"], "finding": row["finding"] or "none",
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


def difference(own: Retrained, other: Retrained, ratio: float) -> Comparison:
    """Test accuracies of two on the same splits, in points."""
    first, second = ({k: percent(test) for k, (_, test) in one.accuracies.items()} for one in (own, other))
    return Comparison.of(first, second, ratio)
