"""Every number that the paper prints, and every registered claim, each with a name and its place in the PDF."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from gread.comparison import REPRODUCED
from gread.datasets.published_comparison import published as published_counts
from gread.datasets.synthetic import published_degrees
from gread.settings.presets import data_name, published_results
from gread.settings.published_tables import published_ablations, published_depths, published_ranking, published_tests
from rdgraph.reports.claims.claim_records import statements
from studies.ledger.entry import CLAIMS, NOT_REPRODUCED, UNDECIDED, UNDERSPECIFIED, Measurement, PrintedNumber
from studies.paper.degrees import QUANTITIES
from studies.runs.uncertainty import FAILS, HOLDS

# ---------------------------------------------------------------------- measured claims
# What the paper says about its experiments, decided by the verdicts of studies that were kept.

#: What an answer says of the paper.
STATUS_OF = {HOLDS: REPRODUCED, FAILS: NOT_REPRODUCED, "holds if": UNDERSPECIFIED}


@dataclass(frozen=True)
class MeasuredClaim:
    """A sentence of the paper, its place, the study that decides it and the words that its verdicts have in common."""

    id: str
    title: str
    statement: str
    source: str
    study: str
    verdicts: str


@cache
def measured_claims() -> Mapping[str, MeasuredClaim]:
    """All of them by their names.

    >>> measured_claims()["E4"].study
    'classification'
    """
    text = resources.files("studies").joinpath("data/measured_claims.toml").read_text(encoding="utf-8")
    return {claim["id"]: MeasuredClaim(**claim) for claim in tomllib.loads(text)["claim"]}


def together(answers: Sequence[str]) -> str:
    """The answer of a sentence that is about all of several cases: one that fails refutes it.

    >>> together(["holds", "holds"]), together(["holds", "undecided"]), together(["undecided", "fails"])
    ('holds', 'undecided', 'fails')
    >>> together(["holds if T is small", "holds"])
    'holds if'
    """
    if FAILS in answers:
        return FAILS
    if answers and all(answer == HOLDS for answer in answers):
        return HOLDS
    return "holds if" if answers and all(answer.startswith(HOLDS) for answer in answers) else UNDECIDED


def claim_measurements(study: str, stored: Mapping[str, Any]) -> Iterator[Measurement]:
    """The claims that the kept page of a study decides; none where it has no verdict about them."""
    for claim in measured_claims().values():
        group = [verdict for verdict in stored.get("verdicts", ()) if claim.verdicts in verdict["statement"]]
        answers = [str(verdict["answer"]) for verdict in group]
        if claim.study != study or not group:
            continue
        answer = together(answers)
        tally = ", ".join(f"{answers.count(word)} {word}" for word in dict.fromkeys(answers))
        yield Measurement(
            claim.id, math.nan, word=STATUS_OF.get(answer, UNDECIDED), command=str(stored["command"]),
            answer=answers[0] if len(group) == 1 else f"{answer} ({tally})",
            note=str(group[0]["evidence"]) if len(group) == 1 else f"of {len(group)} verdicts {tally}",
            test="the verdicts of the study; one that fails refutes a sentence about all", detail={"verdicts": group},
        )  # fmt: skip


# ---------------------------------------------------------------------- printed numbers
#: The columns of Table 7.
STANDINGS = ("rank", "accuracy", "gold", "silver", "bronze")
#: Graphs that a number of Table 9 is a mean over.
GRAPHS = 3
#: What is counted of a data set for a correction of the counts, and not printed.
_CITED = ("loops",)


def table_of(source: str) -> str:
    """The table that a source names.

    >>> table_of("GREAD (Choi et al., ICML 2023), Table 8")
    'Table 8'
    """
    result = re.search(r"Table \d+", source)
    return result[0] if result else source


def cell_name(table: str, *words: object) -> str:
    """The name of a cell: the table, then what tells it from its other cells.

    >>> cell_name("Table 8", "GREAD-BS", "cora")
    'T8/GREAD-BS/cora'
    """
    return "/".join([table.replace("Table ", "T"), *(str(word) for word in words if word != "")])


@cache
def printed_numbers() -> tuple[PrintedNumber, ...]:
    """All of them: accuracies, ablations, depths, the t-test, the ranking, the data sets, the synthetic graphs,
    then the claims.

    >>> found = printed_numbers()
    >>> found[0].cell, len([p for p in found if p.table == "Table 8"]), found[-1].table
    ('T8/MLP/texas', 315, 'Claims')
    """
    return (*_accuracies(), *_tests(), *_ranking(), *_counts(), *_degrees(), *_claims())


def _accuracies() -> Iterator[PrintedNumber]:
    """Those of the large table, of the ablations and of the depths."""
    rows: list[tuple[Any, str, object, str]] = [
        *((row, row.method, "", "") for row in published_results()),
        *((row, f"GREAD-{row.reaction}", row.setting, row.setting) for row in published_ablations()),
        *((row, row.method, row.layers, f"{row.layers} layers") for row in published_depths()),
    ]
    for row, method, word, setting in rows:
        table = table_of(row.source)
        name = cell_name(table, method, row.dataset, word)
        yield PrintedNumber(name, table, method, row.dataset, "accuracy", row.mean, row.std, row.source, setting)


def _tests() -> Iterator[PrintedNumber]:
    for row in published_tests():
        table = table_of(row.source)
        for method, mean, std in (("GRAND", row.other_mean, row.other_std), ("GREAD-BS", row.own_mean, row.own_std)):
            name = cell_name(table, method, row.dataset)
            yield PrintedNumber(name, table, method, row.dataset, "accuracy", mean, std, row.source)
        name = cell_name(table, "t", row.dataset)
        yield PrintedNumber(name, table, "GREAD-BS against GRAND", row.dataset, "t", row.t, None, row.source)


def _ranking() -> Iterator[PrintedNumber]:
    for row in published_ranking():
        table = table_of(row.source)
        for quantity in STANDINGS:
            value = float(getattr(row, quantity))
            name = cell_name(table, row.method, quantity)
            yield PrintedNumber(name, table, row.method, "", quantity, value, None, row.source)


def _counts() -> Iterator[PrintedNumber]:
    for dataset, row in published_counts().items():
        for quantity, printed in row.items():
            if quantity not in _CITED:
                table, name = table_of(printed.source), data_name(dataset)
                yield PrintedNumber(
                    cell_name(table, name, quantity), table, name, name, quantity, printed.value, None, printed.source
                )  # fmt: skip


def _degrees() -> Iterator[PrintedNumber]:
    for row in published_degrees():
        table = table_of(row.source)
        for quantity in QUANTITIES:
            level = f"h={row.homophily:g}"
            yield PrintedNumber(
                cell_name(table, level, quantity), table, "synthetic Cora", "", quantity, float(getattr(row, quantity)),
                None, row.source, level, count=GRAPHS,
            )  # fmt: skip


def _claims() -> Iterator[PrintedNumber]:
    """Sentences about experiments, then mathematics."""
    result = [(claim.id, claim.title, claim.source, claim.statement) for claim in measured_claims().values()]
    result += [(claim.id, claim.title, claim.source, claim.statement) for claim in statements().values()]
    for name, title, source, statement in result:
        yield PrintedNumber(name, CLAIMS, title, "", "claim", math.nan, None, source, "", statement)
