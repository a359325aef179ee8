"""Where the paper contradicts itself, computed from its own tables: other numbers for the same thing, wrong sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from gread.settings.presets import find_preset, find_published, published_results
from gread.settings.published_tables import published_ablations, published_ranking, published_tests
from studies.ablation.options import best_options
from studies.cells.agreement import AGREES, Estimate, Gap
from studies.cells.nine_sets import SETS
from studies.classification.ranking import Standing, standings
from studies.ledger.entry import PrintedNumber
from studies.ledger.printed_numbers import STANDINGS, cell_name, table_of
from studies.significance.study import PRINTED_RUNS, ROUNDED, recomputed

#: Half of the last digit that Table 7 prints, and a little for sums of binary numbers.
HALF_DIGIT = 0.005 + 1e-9


@dataclass(frozen=True)
class Contradiction:
    """What else the paper says about a number.

    `values` are the other numbers with their deviations, none where only the deviation is printed otherwise.
    """

    text: str
    values: tuple[tuple[float, float | None], ...] = ()


@cache
def contradictions() -> Mapping[str, Contradiction]:
    """What contradicts a printed number, by its cell.

    >>> contradictions()["T8/GREAD-BS/squirrel"].text
    "Table 13 has OA as the best setting, for which Table 20 prints 47.03, and Table 8's number for SA"
    """
    found: dict[str, list[Contradiction]] = {}
    for cell, one in (*_other_numbers(), *_wrong_tests(), *_wrong_standings()):
        found.setdefault(cell, []).append(one)
    return {
        cell: Contradiction(
            "; ".join(dict.fromkeys(one.text for one in all_)), tuple(v for o in all_ for v in o.values)
        )
        for cell, all_ in found.items()
    }


def is_arithmetic(printed: PrintedNumber) -> bool:
    """Whether a number is made from other printed ones, so that a contradiction is the answer, whatever we measure."""
    return printed.quantity in ("t", *STANDINGS) and (printed.quantity != "accuracy" or printed.dataset == "")


def _other_numbers() -> Iterator[tuple[str, Contradiction]]:
    """An ablation has the printed settings for one of its options: its number there should be that of Table 8."""
    by_option = {(p.reaction, p.dataset, p.setting): p for p in published_ablations()}
    for (reaction, dataset, option), row in by_option.items():
        main = find_published(f"GREAD-{reaction}", dataset)
        preset = find_preset("paper", reaction, dataset)
        if main is None or option not in best_options(preset.config):
            continue
        own, there = (cell_name(table_of(main.source), main.method, dataset), table_of(main.source))
        cell = cell_name(table_of(row.source), main.method, dataset, option)
        settings, here = table_of(preset.source), table_of(row.source)
        if row.mean != main.mean:
            other = next(o for r, d, o in by_option if (r, d) == (reaction, dataset) and _pair(o, option))
            swapped = by_option[reaction, dataset, other].mean == main.mean
            more = f", and {there}'s number for {other}" if swapped else ""
            text = f"{settings} has {option} as the best setting, for which {here} prints {row.mean}{more}"
            yield own, Contradiction(text, ((row.mean, row.std),))
            text = f"{there} prints {main.mean} for the best setting, which has {option} by {settings}"
            text = f"{text}; here that is the number of {other}" if swapped else text
            yield cell, Contradiction(text, ((main.mean, main.std),))
        elif row.std is not None and main.std is not None and row.std != main.std:
            yield own, Contradiction(f"{here} prints the same mean ± {row.std}")
            yield cell, Contradiction(f"{there} prints the same mean ± {main.std}")


def _pair(one: str, other: str) -> bool:
    """Whether two options are the two of one ablation."""
    return one != other and {one, other} in ({"OA", "SA"}, {"SC", "VC"})


def _wrong_tests() -> Iterator[tuple[str, Contradiction]]:
    """Does t follow from the means and deviations beside it, and are the means those of Table 8 within two errors?"""
    for row in published_tests():
        table = table_of(row.source)
        t = recomputed(row, PRINTED_RUNS)
        if abs(t / row.t - 1) > ROUNDED:
            text = f"its means and deviations give {t:.2f}"
            yield cell_name(table, "t", row.dataset), Contradiction(text, ((t, None),))
        for method, mean, std in (("GRAND", row.other_mean, row.other_std), ("GREAD-BS", row.own_mean, row.own_std)):
            main = find_published(method, row.dataset)
            if main is not None and Gap.between(Estimate(mean, std, 10), main.mean, main.std).word not in AGREES:
                text = f"{table_of(main.source)} prints {main.mean} ± {main.std}, beyond two standard errors"
                yield cell_name(table, method, row.dataset), Contradiction(text, ((main.mean, main.std),))


@cache
def printed_standings() -> Mapping[str, Standing]:
    """Average ranks, accuracies and medals as the numbers of Table 8 give them, for the methods that Table 7 ranks."""
    ranked = {row.method for row in published_ranking()}
    means = {(p.method, p.dataset): p.mean for p in published_results() if p.method in ranked}
    return {s.method: s for s in standings(means, SETS)}


def _wrong_standings() -> Iterator[tuple[str, Contradiction]]:
    found = printed_standings()
    for row in published_ranking():
        anew = found.get(row.method)
        for quantity in STANDINGS if anew is not None else ():
            value = float(getattr(anew, quantity))
            if abs(value - float(getattr(row, quantity))) > HALF_DIGIT:
                shown = f"{value:.2f}" if quantity in ("rank", "accuracy") else f"{value:g}"
                cell = cell_name(table_of(row.source), row.method, quantity)
                yield cell, Contradiction(f"the numbers of Table 8 give {shown}", ((value, None),))
