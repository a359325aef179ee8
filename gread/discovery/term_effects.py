"""Which terms help: an analysis of variance over the terms of equations, with intervals.

The validation accuracy of an equation is taken as a constant, plus one number for each term that it has, plus noise;
least squares give the numbers. Equations are compared after the same number of epochs, the first rung, which all of
them reached: those that were dropped there count as well, else only good ones would be seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gread.discovery.term_grammar import Line
from gread.tuning.candidates import TrialResult

#: A term that fewer equations have is left out, and the share of the intervals.
LEAST, LEVEL = 3, 0.95


@dataclass(frozen=True)
class TermEffect:
    """How much a term adds to the mean validation accuracy, other terms held; shares of 1.

    `low` and `high` end the 95 % interval by Student's t; `share` is the part of the whole variance that is lost where
    the term is left out, `p` the probability of so much by chance (F with 1 and n - k degrees of freedom), without a
    correction for the number of terms.
    """

    term: str
    equations: int
    effect: float
    low: float
    high: float
    share: float
    p: float


def early_accuracy(result: TrialResult) -> float:
    """The mean validation accuracy after the first rung, or at the end where there was none."""
    return result.rungs[0][1] if result.rungs else result.val_accuracy


def term_effects(pairs: Sequence[tuple[TrialResult, Line]]) -> list[TermEffect]:
    """The effects of all terms that are in enough equations, the largest first.

    Terms whose columns are sums of others' have no effect of their own, and are left out.

    >>> from gread.discovery.term_grammar import Term
    >>> a, b = Term("H"), Term("A@H")
    >>> made = lambda k, *terms: (
    ...     TrialResult(k, "complete", 9, (0.5 + 0.2 * (a in terms) + 0.01 * (k % 2),), (0.0,)),
    ...     Line(terms, ("alpha", "beta"), "scalar"),
    ... )
    >>> found = term_effects([made(k, *terms) for k, terms in enumerate([(a,), (b,), (a, b), (a,), (b,), (a, b)] * 3)])
    >>> found[0].term, round(found[0].effect, 2), found[0].low < 0.2 < found[0].high
    ('H', 0.2, True)
    """
    from scipy.stats import f, t

    known = [(early_accuracy(result), line) for result, line in pairs if result.val]
    counts = Counter(str(term) for _, line in known for term in line.terms)
    names = [name for name, count in counts.items() if LEAST <= count <= len(known) - LEAST]
    values = np.array([value for value, _ in known])
    columns = [np.ones(len(known))]
    kept: list[str] = []
    for name in names:
        column = np.array([float(name in {str(term) for term in line.terms}) for _, line in known])
        if np.linalg.matrix_rank(np.stack([*columns, column])) == len(columns) + 1:
            columns.append(column)
            kept.append(name)
    design = np.stack(columns, axis=1) if known else np.zeros((0, 1))
    freedom = len(known) - design.shape[1]
    if not kept or freedom < 1:
        return []
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ values
    noise = float(((values - design @ weights) ** 2).sum()) / freedom
    whole = float(((values - values.mean()) ** 2).sum())
    reach = float(t.ppf((1 + LEVEL) / 2, freedom))
    found = []
    for k, name in enumerate(kept, start=1):
        error, effect = math.sqrt(noise * inverse[k, k]), float(weights[k])
        lost = effect**2 / float(inverse[k, k])
        p = float(f.sf(lost / noise, 1, freedom)) if noise > 0 else float(effect == 0)
        share = lost / whole if whole > 0 else 0.0
        ends = effect - reach * error, effect + reach * error
        found.append(TermEffect(name, counts[name], effect, *ends, share, p))
    return sorted(found, key=lambda one: -one.effect)
