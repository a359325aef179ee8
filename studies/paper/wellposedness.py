"""The paper's appendix on well-posedness: what is proved of the equations, and of the networks that training gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.models.trained_network import Network
from gread.training.trainer import Trained
from rdgraph import existence, lipschitz_global, parse
from rdgraph.language.answer_symbols import R
from rdgraph.theory import lipschitz_local
from rdgraph.theory.global_existence import GLOBAL
from rdgraph.theory.rate_bounds import RateBound, rate_bound
from studies.cells.cell import LINEAR, departures, file_name, grouped_rows, train_first_splits
from studies.paper.drawing import row_map
from studies.paper.runner import (
    Findings,
    Picture,
    Settings,
    Sheet,
    Table,
    Verdict,
    attempt,
    make_run,
    untrained_verdicts,
)
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

SHEET = Sheet("wellposedness")
SIGNS = ("positive", "negative")
#: States of a flow that are looked at for their largest entry.
LOOKS = 9
PROVED, OPEN, DIVERGED = "proved", "not proved", "diverged"
#: The columns of a network that did not diverge.
NUMBERS = ("KT", "least_beta", "largest_beta", "largest_entry")


@dataclass(frozen=True, eq=False)
class Measured:
    """What is proved of the equations, a row for every network, and what could not be trained."""

    facts: list[MutableRow]
    networks: list[MutableRow]
    missing: list[str]


def measure(run: StudyRun) -> Measured:
    """Ask the regularity machinery about every equation, then about every trained network."""
    s = run.settings
    facts = run.part("facts", lambda: fact_rows(s["reactions"]))
    rows, missing = attempt(
        run, "cells of trainings",
        [
            (f"{reaction} on {dataset}", file_name(reaction, dataset),
             partial(network_rows, str(reaction), str(dataset), s, run.device, run.seed))
            for dataset in s["sets"] for reaction in s["reactions"]
        ],
    )  # fmt: skip
    return Measured(facts, rows, missing)


# ---------------------------------------------------------------------- what is proved of the equations
def fact_rows(reactions: Sequence[str]) -> list[MutableRow]:
    """A row for every reaction and normalisation."""
    rows: list[MutableRow] = []
    for name in reactions:
        for kind in ("symmetric", "row"):
            everywhere, inside = lipschitz_global(name, kind), lipschitz_local(name, kind)
            lives = {sign: existence(parse(name, assume=f"beta {sign}")).outcome for sign in SIGNS}
            rows.append({
                "reaction": name, "normalisation": kind, "for_all_states": str(everywhere.value or "none"),
                "up_to_R": str(inside.value or "none"), "lives_beta_positive": lives["positive"],
                "lives_beta_negative": lives["negative"],
            })  # fmt: skip
    return rows


def fact_verdicts(facts: Sequence[MutableRow]) -> list[Verdict]:
    """The appendix's sentences about Lipschitz continuity."""
    groups = {str(name): group for (name,), group in grouped_rows(facts, "reaction").items()}

    def with_constant(column: str, normalisations: Sequence[str] = ("symmetric", "row")) -> list[str]:
        return [
            name
            for name, group in groups.items()
            if all(row[column] != "none" for row in group if row["normalisation"] in normalisations)
        ]

    whole, soft = with_constant("for_all_states"), with_constant("for_all_states", ["row"])
    local = [name for name in groups if name not in whole]
    inside = [name for name in with_constant("up_to_R") if name in local]
    locally = HOLDS if inside else UNDECIDED if local else FAILS
    return [
        SHEET.verdict("some cases", HOLDS if whole else FAILS, names=", ".join(whole) or "none"),
        SHEET.verdict("others", locally, names=", ".join(inside) or "none"),
        SHEET.verdict("soft", "holds if the attention follows H(t)" if soft else HOLDS, names=", ".join(soft)),
    ]


# ---------------------------------------------------------------------- what is proved of trained networks
def network_rows(reaction: str, dataset: str, s: Settings, device: str, seed: int) -> list[MutableRow]:
    """A row for every split."""
    done = train_first_splits("paper", reaction, dataset, s, device, seed)
    return [_network_row(done, k, reaction, dataset) for k in range(len(done.trials))]


def _network_row(done: Trained, k: int, reaction: str, dataset: str) -> MutableRow:
    network = done.network(k)
    time, normalisation = network.gread.time, network.gread.normalisation
    head: MutableRow = {"dataset": dataset, "reaction": reaction, "split": done.trials[k].split}
    values = {name: value.double().cpu().numpy().ravel() for name, value in network.coefficients().items()}
    alpha, beta = (values.get(name, np.zeros(1)) for name in ("alpha", "beta"))
    largest = largest_entry(network, done, k)
    known = np.isfinite(largest) and bool(np.isfinite(alpha).all() and np.isfinite(beta).all())
    if done.status[k] != "ok" or not known:
        return {**head, "outcome": DIVERGED, **dict.fromkeys(NUMBERS, math.nan), "time": time}
    kind = normalisation if network.gread.adjacency == "original" else "row"
    K = float(bound_values(rate_bound(parse(reaction), kind), alpha, beta, largest).max())
    numbers = dict(zip(NUMBERS, (K * time, float(beta.min()), float(beta.max()), largest), strict=True))
    return {**head, "outcome": PROVED if lives(reaction, kind, beta) else OPEN, **numbers, "time": time}


def largest_entry(network: Network, done: Trained, k: int) -> float:
    """The largest modulus that the flow of a network reaches at a few times, by its own method."""
    data = done.data_of(k)
    times = np.linspace(0.0, network.gread.time, LOOKS).tolist()
    return float(network.states(data.x, data.graph, times).abs().max())


def bound_values(bound: RateBound, alpha: np.ndarray, beta: np.ndarray, largest: float) -> np.ndarray:
    """The bound K of the slope in every channel: coefficients that are vectors give one for each.

    >>> bound_values(rate_bound(parse("FB")), np.array([1.0]), np.array([0.25, -1.0]), 1.0)
    array([1.5, 4. ])
    """
    import sympy as sp

    symbols = {str(x): x for x in bound.value.free_symbols}
    wanted = [symbols.get(name, sp.Symbol(name)) for name in ("alpha", "beta")]
    formula = sp.lambdify([*wanted, R], bound.value, "numpy")
    a, b = np.broadcast_arrays(alpha, beta)
    return np.broadcast_to(np.asarray(formula(a, b, largest), dtype=float), a.shape)


def lives(reaction: str, kind: str, beta: np.ndarray) -> bool:
    """Whether every solution is proved to live for all time with these values of beta; channels do not meet.

    >>> lives("AC", "row", np.array([0.2, 0.5])), lives("AC", "row", np.array([0.2, -0.5]))
    (True, False)
    """
    if lipschitz_global(reaction, kind).value is not None:
        return True
    result = {sign: existence(parse(reaction, assume=f"beta {sign}")).value == GLOBAL for sign in SIGNS}
    return all(result["positive"] if b > 0 else result["negative"] if b < 0 else True for b in beta)


def summary_rows(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every reaction and set: the median K T, and the least or largest of the other numbers."""
    kinds: tuple[Callable[[list[float]], Any], ...] = (np.median, min, max, max)
    over = dict(zip(NUMBERS, kinds, strict=True))
    table: list[MutableRow] = []
    for (reaction, dataset), group in grouped_rows(rows, "reaction", "dataset").items():
        sound = [row for row in group if row["outcome"] != DIVERGED]
        numbers = {name: float(one([float(row[name]) for row in sound] or [math.nan])) for name, one in over.items()}
        table.append({
            "reaction": reaction, "dataset": dataset, "networks": len(group), "diverged": len(group) - len(sound),
            "proved": sum(row["outcome"] == PROVED for row in group), **numbers,
        })  # fmt: skip
    return table


def network_verdicts(rows: Sequence[MutableRow]) -> Iterator[Verdict]:
    """For every reaction: are the problems that trained networks solve well posed up to T?"""
    for (reaction,), group in grouped_rows(rows, "reaction").items():
        proved, unproved, diverged = (sum(row["outcome"] == word for row in group) for word in (PROVED, OPEN, DIVERGED))
        spans = [float(row["KT"]) for row in group if row["outcome"] != DIVERGED]
        yield SHEET.verdict(
            "network", HOLDS if proved == len(group) else UNDECIDED, reaction=reaction, proved=proved,
            networks=len(group), open=unproved, diverged=diverged,
            span=f"{np.median(spans):.3g}" if spans else "unknown",
        )  # fmt: skip


# ---------------------------------------------------------------------- figures and words
def picture(table: Sequence[MutableRow]) -> Picture | None:
    """The share of networks that are proved well posed, by reaction and set."""
    if not table:
        return None

    def share(row: MutableRow) -> float:
        return 100 * int(row["proved"]) / int(row["networks"])

    chart = row_map(
        table, "reaction", "dataset", share, lambda row: share(row) >= 100, "networks proved well posed",
        limit=100.0, unit="percent", signed=False,
    )  # fmt: skip
    return Picture("proved", chart, SHEET.text("proved"), table)


def answer(rows: Sequence[MutableRow]) -> str:
    """For how many trained networks the problem is proved to be well posed, in one sentence."""
    linear = [row["outcome"] == PROVED for row in rows if row["reaction"] in LINEAR]
    others = [row["outcome"] == PROVED for row in rows if row["reaction"] not in LINEAR]
    return SHEET.text(
        "answer", proved=sum(linear) + sum(others), networks=len(rows), sure=sum(linear), linear=len(linear),
        other=sum(others), others=len(others),
    )  # fmt: skip


def about(s: Settings) -> str:
    """With which settings networks were trained, and what is proved of them."""
    return SHEET.text("about", changed=departures(s["sets"], s["epochs"], s["hidden"]))


def findings(measured: Measured, s: Settings) -> Findings:
    """What is proved of the equations and of the networks."""
    table = summary_rows(measured.networks)
    return Findings(
        results=measured.networks,
        items=[
            picture(table),
            Table("facts", measured.facts, SHEET.text("facts")),
            Table("networks", table, SHEET.text("networks")),
        ],
        verdicts=[
            *untrained_verdicts(measured.missing),
            *fact_verdicts(measured.facts),
            *network_verdicts(measured.networks),
        ],
        answer=answer(measured.networks),
        shows="proved",
        about=about(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(measure, findings)
