"""The statements about the main tables, decided from the cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gread.settings.published_tables import PublishedRank, published_ranking
from studies.cells.agreement import LEVEL, Estimate, Gap, holm, row_answer, tally, welch
from studies.cells.nine_sets import SETS
from studies.classification.ranking import SAME, Standing, better_by_signs
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, decide, interval

#: A statement, its answer, and the evidence.
Verdict = tuple[str, str, str]
#: Methods that the paper tests GREAD-BS against, and the sets on which it is not claimed to be the best.
REFERENCES, EXCEPTED = ("GloGNN", "ACM-GCN"), ("squirrel", "citeseer")
#: Sets that come in two forms: the one of the paper, and the other.
TWINS = (("cornell_old", "cornell"), ("chameleon", "chameleon_filtered"), ("squirrel", "squirrel_filtered"))


@dataclass(frozen=True, eq=False)
class Measured:
    """Estimates and gaps by (family, method, data set); gaps are there where a number was published."""

    estimates: Mapping[tuple[str, str, str], Estimate]
    gaps: Mapping[tuple[str, str, str], Gap]
    sets: tuple[str, ...]

    def row(self, family: str, method: str) -> dict[str, Gap]:
        """The gaps of one published row, by data set."""
        return {s: self.gaps[family, method, s] for s in self.sets if (family, method, s) in self.gaps}

    @property
    def rows(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((family, method) for family, method, _ in self.gaps))


def row_verdicts(found: Measured, words: Mapping[str, str]) -> list[Verdict]:
    """One statement for every published row in every reading."""
    made = []
    for family, method in found.rows:
        gaps = found.row(family, method)
        evidence = (
            f"{tally(gap.word for gap in gaps.values())}; differences "
            + ", ".join(f"{s} {gap.difference:+z.2f} ({gap.error:.2f})" for s, gap in gaps.items())
            + "; Welch's tests with Holm's correction over the row"
        )
        made.append(
            (f"{method} in Table 8 is reproduced with {words[family]}.", row_answer(list(gaps.values())), evidence)
        )
    return made


def best_verdicts(found: Measured, others: Mapping[tuple[str, str], float], origin: str) -> list[Verdict]:
    """Is a GREAD network the best on the sets that the paper says, and is BS better than two others by their means?"""
    own = {(m, s): e for (family, m, s), e in found.estimates.items() if family == "paper" and s in found.sets}
    claimed = [s for s in found.sets if s not in EXCEPTED and s in SETS and any(d == s for _, d in others)]
    if not own or not claimed:
        return []
    best = {s: max((e.mean, m) for (m, d), e in own.items() if d == s)[1] for s in claimed}
    rival = {s: max((mean, m) for (m, d), mean in others.items() if d == s)[1] for s in claimed}
    gaps = {s: Gap.between(own[best[s], s], others[rival[s], s], None) for s in claimed}
    lost = [s for s in claimed if gaps[s].difference < 0]
    corrected = dict(zip(claimed, holm([gap.p for gap in gaps.values()]), strict=True))
    told = ", ".join(f"{s}: {best[s]} {gaps[s].difference:+z.2f} from {rival[s]}" for s in claimed)
    made: list[Verdict] = [(
        "GREAD marks the best accuracy in all cases except for Squirrel and Citeseer.",
        FAILS if any(corrected[s] < LEVEL for s in lost) else UNDECIDED if lost else HOLDS,
        f"With the paper's settings a reaction is the best on {len(claimed) - len(lost)} of {len(claimed)} such sets, "
        f"the other methods {origin}; {told}; Welch's tests with Holm's correction.",
    )]  # fmt: skip
    for reference in REFERENCES:
        shared = [s for s in found.sets if (reference, s) in others and ("GREAD-BS", s) in own]
        if set(shared) != set(SETS):
            continue
        pair = [own["GREAD-BS", s].mean for s in shared], [others[reference, s] for s in shared]
        p, back = better_by_signs(*pair), better_by_signs(pair[1], pair[0])
        made.append((
            f"GREAD-BS improves on {reference} over the data sets (Wilcoxon's signed-rank test, Table 2).",
            HOLDS if p < LEVEL else FAILS if back < LEVEL else UNDECIDED,
            f"one-sided p = {p:.3g} on {len(shared)} means, {back:.3g} the other way; {reference} {origin}",
        ))  # fmt: skip
    return made


def reading_verdicts(found: Measured) -> list[Verdict]:
    """Which reading comes nearer to the paper: as printed, or as released, or with tanh?"""
    made = []
    for family, methods in (("released", ("GREAD-FB", "GREAD-FB*")), ("tanh", ("GREAD-F", "GREAD-AC", "GREAD-Z"))):
        for method in methods:
            printed, other = found.row("paper", method), found.row(family, method)
            shared = [s for s in printed if s in other]
            if not shared:
                continue
            nearer = np.array([abs(other[s].difference) < abs(printed[s].difference) for s in shared])
            low, high = interval(int(nearer.sum()), len(nearer))
            word = "as released" if family == "released" else "inside tanh"
            made.append((
                f"{method} {word} comes nearer to Table 8 than as printed.",
                decide(nearer),
                f"nearer on {int(nearer.sum())} of {len(nearer)} sets (95 % interval of the share {low:.2f} to "
                f"{high:.2f}); mean distance {_mean_distance(other, shared):.2f} against "
                f"{_mean_distance(printed, shared):.2f} points",
            ))  # fmt: skip
    return made


def _mean_distance(gaps: Mapping[str, Gap], sets: Sequence[str]) -> float:
    return float(np.mean([abs(gaps[s].difference) for s in sets]))


def twin_verdicts(found: Measured) -> list[Verdict]:
    """Are the corrected sets harder than those of the paper, for GREAD-BS?"""
    made = []
    for old, new in TWINS:
        pair = [found.estimates.get(("paper", "GREAD-BS", s)) for s in (new, old)]
        own, other = pair
        if own is None or other is None:
            continue
        t, p = welch(own, other)
        answer = UNDECIDED if math.isnan(p) or p >= LEVEL else HOLDS if t < 0 else FAILS
        made.append((
            f"GREAD-BS is less accurate on {new} than on {old}.", answer,
            f"{own.text} against {other.text}; Welch's p = {p:.3g}; the settings are those of {old}",
        ))  # fmt: skip
    return made


def ranking_verdict(
    found: Measured, ours: Sequence[Standing], others: Mapping[tuple[str, str], float]
) -> list[Verdict]:
    """Does GREAD-BS lead the ranking, as Table 7 says? Where it does and is better than the best other for sure; not,
    where that is better for sure. In between the next seeds may tell otherwise."""
    own = next((s for s in ours if s.method == "GREAD-BS"), None)
    first = next((s for s in ours if s.method != "GREAD-BS"), None)
    if own is None or first is None or set(found.sets) != set(SETS):
        return []
    place = 1 + sum(s.rank < own.rank - SAME for s in ours)
    means = {**others, **{(m, s): e.mean for (f, m, s), e in found.estimates.items() if f == "paper"}}
    best, lead = ([means[m, s] for s in SETS] for m in (first.method, own.method))
    behind, ahead = better_by_signs(best, lead), better_by_signs(lead, best)
    is_first = own.rank < first.rank - SAME
    printed = next(row for row in published_ranking() if row.method == own.method)
    shared = f", shared with {first.method}," if abs(first.rank - own.rank) <= SAME else ""
    return [(
        "GREAD-BS is ranked at the top (Table 7).",
        HOLDS if is_first and ahead < LEVEL else FAILS if not is_first and behind < LEVEL else UNDECIDED,
        f"place {place} of {len(ours)}{shared} with {_medals(own)}; Table 7 prints {_medals(printed)}; {first.method}, "
        f"the best other, has the average rank {first.rank:.2f}; Wilcoxon's one-sided p over the sets is {ahead:.3g} "
        f"that GREAD-BS is better, {behind:.3g} that {first.method} is",
    )]  # fmt: skip


def _medals(one: Standing | PublishedRank) -> str:
    return f"the average rank {one.rank:.2f} and {one.gold} gold, {one.silver} silver, {one.bronze} bronze"
