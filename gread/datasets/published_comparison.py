"""The paper's table of data sets compared with the counts here, with a reason for every difference.

A reason is a function that tries to reproduce the printed number from the counts; the first that succeeds is reported.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gread.datasets.facts import COMPONENT, DIFFERS, Facts

#: Returns the facts of a set by name, None if its files are not available.
Lookup = Callable[[str], Facts | None]
UNEXPLAINED = "unexplained"
#: The columns of the paper's table.
QUANTITIES = ("nodes", "edges", "features", "classes", "homophily")


@dataclass(frozen=True)
class Printed:
    """A printed number with its source."""

    text: str
    source: str

    @property
    def value(self) -> float:
        return float(self.text)

    def fits(self, value: float) -> bool:
        """Whether a number equals this one, rounded to the printed digits.

        >>> Printed("0.30", "").fits(0.3036), Printed("279", "").fits(279.4)
        (True, True)
        """
        digits = len(self.text.partition(".")[2])
        return abs(value - self.value) <= 0.5 * 10.0**-digits + 1e-12

    def __str__(self) -> str:
        return self.text if "." in self.text else f"{int(self.text):,}"


@dataclass(frozen=True)
class Comparison:
    """One printed number, the count here, and the reason for their difference, or a remark if they agree."""

    name: str
    quantity: str
    printed: Printed
    ours: float
    agrees: bool
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "quantity": self.quantity, "printed": self.printed.value, "ours": self.ours,
                "agrees": self.agrees, "reason": self.reason, "source": self.printed.source}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One printed number of a data set with its facts: the input of the reasons for a difference."""

    quantity: str
    printed: Printed
    facts: Facts
    lookup: Lookup


@cache
def published() -> Mapping[str, Mapping[str, Printed]]:
    """The printed numbers by set and quantity, from the data file.

    >>> published()["chameleon"]["features"].text
    '235'
    """
    figures: dict[str, dict[str, Printed]] = {}
    text = resources.files("gread").joinpath("data/published_datasets.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        figures.setdefault(row["dataset"], {})[row["quantity"]] = Printed(row["printed"], row["source"])
    return MappingProxyType(figures)


def printed_for(name: str) -> Mapping[str, Printed]:
    """The printed numbers of a set, also for its old version; {} if the paper does not list it."""
    return published().get(name.removesuffix("_old"), {})


def counted(facts: Facts, quantity: str) -> float:
    """The count for a column, of the graph used for training; homophily is the node homophily of the paper."""
    names = {"nodes": "used_nodes", "edges": "used_edges", "homophily": "node_homophily"}
    return float(getattr(facts, names.get(quantity, quantity)))


def compare(facts: Facts, lookup: Lookup) -> list[Comparison]:
    """Compare every printed number of a data set with the count here; [] for a set that the paper does not list."""
    comparisons = []
    for quantity in QUANTITIES:
        printed = printed_for(facts.name).get(quantity)
        if printed is None:
            continue
        ours = counted(facts, quantity)
        case = Case(quantity, printed, facts, lookup)
        agrees = printed.fits(ours)
        reason = _two_graphs(case) if agrees else next(filter(None, (r(case) for r in REASONS)), UNEXPLAINED)
        comparisons.append(Comparison(facts.name, quantity, printed, ours, agrees, reason))
    return comparisons


# ---------------------------------------------------------------------- reasons
def _two_graphs(case: Case) -> str:
    """The number is that of the whole graph, and only some of the splits use it."""
    facts = case.facts
    if case.quantity not in ("nodes", "edges") or facts.coverage != DIFFERS:
        return ""
    inner = [str(k) for k, cover in enumerate(facts.covers) if cover == COMPONENT]
    size = facts.component_nodes if case.quantity == "nodes" else facts.component_edges
    return f"the whole graph; splits {', '.join(inner)} cover the largest component alone, with {size:,}"


def _cited_loops(facts: Facts) -> Printed | None:
    """The self-loops of the raw list, where the file read here does not have them."""
    return None if facts.loops else printed_for(facts.name).get("loops")


_WHOLE = "counts the whole graph; the masks of every split cover its largest component, {facts.used_nodes:,} nodes"
#: Other ways to count a column, None where they do not apply: the column, the count, and the reason in words.
OTHER_COUNTS: tuple[tuple[str, Callable[[Facts], float | None], str], ...] = (
    ("nodes", lambda facts: facts.nodes, _WHOLE),
    ("edges", lambda facts: facts.edges, _WHOLE),
    (
        "edges",
        lambda facts: facts.edges_with_loops if facts.loops else None,
        "counts the {facts.loops} self-loops ({facts.edges:,} without)",
    ),
    (
        "edges",
        lambda facts: facts.edges + cited.value if (cited := _cited_loops(facts)) else None,
        "counts the {cited} self-loops of the raw list ({facts.edges:,} without), which the file read here has not",
    ),
    (
        "homophily",
        lambda facts: facts.edge_homophily,
        "is the edge homophily, not the node homophily of the paper's formula ({facts.node_homophily:.2f})",
    ),
    (
        "homophily",
        lambda facts: facts.loop_homophily if facts.loops else None,
        "is the edge homophily with the {facts.loops} self-loops counted as homophilic ({facts.edge_homophily:.2f} "
        "without), not the node homophily of the paper's formula ({facts.node_homophily:.2f})",
    ),
)


def _counted_otherwise(case: Case) -> str:
    """The number is counted in one of the `OTHER_COUNTS`."""
    for quantity, count, words in OTHER_COUNTS:
        value = count(case.facts) if quantity == case.quantity else None
        if value is not None and case.printed.fits(value):
            return words.format(facts=case.facts, cited=_cited_loops(case.facts))
    return ""


def _old_version(case: Case) -> str:
    """The number is that of the files before a correction."""
    if case.facts.name not in published():
        return ""
    old = case.lookup(f"{case.facts.name}_old")
    if old is None or not case.printed.fits(counted(old, case.quantity)):
        return ""
    return f"is that of {old.name}, the files in use before the set was corrected"


def _swapped(case: Case) -> str:
    """Two sets of the table have their numbers swapped."""
    ours = counted(case.facts, case.quantity)
    for name, row in published().items():
        theirs = row.get(case.quantity)
        if name == case.facts.name or theirs is None or not theirs.fits(ours):
            continue
        other = case.lookup(name)
        if other is not None and case.printed.fits(counted(other, case.quantity)):
            return f"is {name}'s, and {name} has this one's: swapped"
    return ""


def _digit_missing(case: Case) -> str:
    """One digit of a whole number is missing."""
    full = f"{counted(case.facts, case.quantity):.0f}"
    shorter = {full[:k] + full[k + 1 :] for k in range(len(full))}
    return f"is {int(full):,} with a digit missing" if case.printed.text in shorter else ""


#: Possible reasons for a difference; the first that reproduces the printed number is reported.
REASONS = (_counted_otherwise, _digit_missing, _old_version, _swapped)
