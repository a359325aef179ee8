"""The paper's appendix on well-posedness: what is proved of the equations, and of the networks that training gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.models.trained_network import Network
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, train
from rdgraph import existence, lipschitz_global, lipschitz_local, parse
from rdgraph.errors import RdgraphError
from rdgraph.syntax.answer_symbols import R
from rdgraph.theory.global_existence import GLOBAL
from rdgraph.theory.rate_bounds import RateBound, rate_bound
from studies.cells.cell import ALL_TRAINED, file_name, grouped_rows, load_set, shrunk
from studies.cells.cell_limits import ANY_SETS, cell_limits
from studies.cells.nine_sets import LINEAR, REACTIONS, SETS, departures, published_config
from studies.runs.chart import FieldMap
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

SIGNS = ("positive", "negative")
#: States of a flow that are looked at for their largest entry.
LOOKS = 9
PROVED, OPEN, DIVERGED = "proved", "not proved", "diverged"


def settings(small: bool) -> dict[str, Any]:
    """Sets, reactions and the size of the run; 0 epochs or channels are the published ones."""
    if small:
        return {"sets": ["karate"], "reactions": ["BS", "AC"], "splits": 2, "epochs": 15, "hidden": 8}
    return {"sets": list(SETS), "reactions": list(REACTIONS), "splits": 10, "epochs": 0, "hidden": 0}


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    return cell_limits(sets=ANY_SETS)


def run(run: StudyRun) -> None:
    """Ask the regularity machinery about every equation, then about every trained network."""
    s = run.settings
    facts = run.part("facts", lambda: fact_rows(s["reactions"]))
    rows: list[MutableRow] = []
    missing = []
    cells = [(str(d), str(r)) for d in s["sets"] for r in s["reactions"]]
    for dataset, reaction in run.progress(cells, "cells of trainings"):
        try:
            rows += run.part(
                file_name(reaction, dataset), partial(network_rows, reaction, dataset, s, run.device, run.seed)
            )
        except (RdgraphError, RuntimeError) as problem:
            missing.append(f"{reaction} on {dataset}: {str(problem).partition(chr(10))[0]}")
    table = summary_rows(rows)
    _draw(run, table)
    run.table("facts", facts, FACTS)
    run.table("networks", table, NETWORKS)
    if missing:
        run.verdict(ALL_TRAINED, FAILS, "; ".join(missing))
    for verdict in (*fact_verdicts(facts), *network_verdicts(rows)):
        run.verdict(*verdict)
    run.answer(answer(rows), "proved")
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", about(s))
    run.results(rows)


# ---------------------------------------------------------------------- what is proved of the equations
FACTS = (
    "For all graphs: the Lipschitz constant of the vector field over all states, or over |h| <= R where there is none "
    "for all; whether every solution lives for all time, by the sign of beta. row: also what attention that stays "
    "gives."
)


def fact_rows(reactions: Sequence[str]) -> list[MutableRow]:
    """A row for every reaction and normalisation."""
    rows: list[MutableRow] = []
    for name in reactions:
        for kind in ("symmetric", "row"):
            everywhere, inside = lipschitz_global(name, kind), lipschitz_local(name, kind)
            lives = {sign: existence(parse(name, assume=f"beta {sign}")).status for sign in SIGNS}
            rows.append({
                "reaction": name, "normalisation": kind, "for_all_states": str(everywhere.value or "none"),
                "up_to_R": str(inside.value or "none"), "lives_beta_positive": lives["positive"],
                "lives_beta_negative": lives["negative"],
            })  # fmt: skip
    return rows


def fact_verdicts(facts: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """The appendix's sentences about Lipschitz continuity."""
    names = list(dict.fromkeys(str(row["reaction"]) for row in facts))
    whole = [n for n in names if all(r["for_all_states"] != "none" for r in facts if r["reaction"] == n)]
    local = [n for n in names if n not in whole]
    inside = [n for n in local if all(r["up_to_R"] != "none" for r in facts if r["reaction"] == n)]
    soft = [n for n in names if any(r["for_all_states"] != "none" for r in _rows_of(facts, n, "row"))]
    return [
        (
            "The Lipschitz continuity of f can be fulfilled in some cases of GREAD.",
            HOLDS if whole else FAILS, f"a constant for all states: {', '.join(whole) or 'none'}",
        ),
        (
            "Some other functions are locally Lipschitz continuous.",
            HOLDS if inside else UNDECIDED if local else FAILS,
            f"a constant on |h| <= R alone: {', '.join(inside) or 'none'}",
        ),
        (
            "GREAD with the soft adjacency matrix is not globally Lipschitz.",
            "holds if the attention follows H(t)" if soft else HOLDS,
            "attention from H(0) that stays, as the authors run it, is a row-stochastic matrix, with which these have "
            f"a constant for all states: {', '.join(soft)}; attention from H(t) is claim M4.7 of `rdgraph verify`",
        ),
    ]  # fmt: skip


def _rows_of(facts: Sequence[MutableRow], name: str, kind: str) -> list[MutableRow]:
    return [row for row in facts if (row["reaction"], row["normalisation"]) == (name, kind)]


# ---------------------------------------------------------------------- what is proved of trained networks
NETWORKS = (
    "Trained networks, over the splits: how many diverged in training; for how many a solution up to T is proved, "
    "since the field is Lipschitz for all states or every channel has a sign of beta with which solutions live for "
    "ever; the median largest K T (K bounds the slope in the norm of the normalisation, on the states that were met "
    "where there is none for all), whose exponential bounds how far two solutions part; the least and largest beta; "
    "the largest |h|."
)


def network_rows(reaction: str, dataset: str, s: Mapping[str, Any], device: str, seed: int) -> list[MutableRow]:
    """A row for every split."""
    data = load_set(dataset)
    config = shrunk(published_config("paper", reaction, dataset), s["epochs"], s["hidden"])
    done = train(data, make_trials(config, range(min(s["splits"], data.num_splits)), (seed,)), device=device)
    return [_network_row(done, k, reaction, dataset) for k in range(len(done.trials))]


def _network_row(done: Trained, k: int, reaction: str, dataset: str) -> MutableRow:
    head: MutableRow = {"dataset": dataset, "reaction": reaction, "split": done.trials[k].split}
    network = done.network(k)
    values = {name: value.double().cpu().numpy().ravel() for name, value in network.coefficients().items()}
    alpha, beta = (values.get(name, np.zeros(1)) for name in ("alpha", "beta"))
    largest = largest_entry(network, done, k)
    known = np.isfinite(largest) and bool(np.isfinite(alpha).all() and np.isfinite(beta).all())
    if done.status[k] != "ok" or not known:
        return {**head, "outcome": DIVERGED, "KT": math.nan, "least_beta": math.nan, "largest_beta": math.nan,
                "largest_entry": math.nan, "time": network.gread.time}  # fmt: skip
    kind = network.gread.normalisation if network.gread.adjacency == "original" else "row"
    K = float(bound_values(rate_bound(parse(reaction), kind), alpha, beta, largest).max())
    return {
        **head, "outcome": PROVED if lives(reaction, kind, beta) else OPEN, "KT": K * network.gread.time,
        "least_beta": float(beta.min()), "largest_beta": float(beta.max()), "largest_entry": largest,
        "time": network.gread.time,
    }  # fmt: skip


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
    found = {sign: existence(parse(reaction, assume=f"beta {sign}")).status == GLOBAL for sign in SIGNS}
    return all(found["positive"] if b > 0 else found["negative"] if b < 0 else True for b in beta)


def summary_rows(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every reaction and set."""
    table: list[MutableRow] = []
    for (reaction, dataset), own in grouped_rows(rows, "reaction", "dataset").items():
        sound = [row for row in own if row["outcome"] != DIVERGED]

        def column(name: str, sound: Sequence[MutableRow] = sound) -> list[float]:
            return [float(row[name]) for row in sound] or [math.nan]

        table.append({
            "reaction": str(reaction), "dataset": str(dataset), "networks": len(own),
            "diverged": len(own) - len(sound), "proved": sum(row["outcome"] == PROVED for row in own),
            "KT": float(np.median(column("KT"))), "least_beta": min(column("least_beta")),
            "largest_beta": max(column("largest_beta")), "largest_entry": max(column("largest_entry")),
        })  # fmt: skip
    return table


def network_verdicts(rows: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """For every reaction: are the problems that trained networks solve well posed up to T?"""
    made = []
    for (reaction,), own in grouped_rows(rows, "reaction").items():
        counts = {word: sum(row["outcome"] == word for row in own) for word in (PROVED, OPEN, DIVERGED)}
        sound = [row for row in own if row["outcome"] != DIVERGED]
        span = f"{np.median([float(r['KT']) for r in sound]):.3g}" if sound else "unknown"
        made.append((
            f"The initial value problems that trained GREAD-{reaction} solves are well posed up to T.",
            HOLDS if counts[PROVED] == len(own) else UNDECIDED,
            f"proved for {counts[PROVED]} of {len(own)} networks, not proved for {counts[OPEN]}, {counts[DIVERGED]} "
            f"diverged in training; median K T = {span}",
        ))  # fmt: skip
    return made


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, table: Sequence[MutableRow]) -> None:
    if not table:
        return
    reactions = list(dict.fromkeys(str(row["reaction"]) for row in table))
    sets = list(dict.fromkeys(str(row["dataset"]) for row in table))
    share = {(r["reaction"], r["dataset"]): 100 * int(r["proved"]) / int(r["networks"]) for r in table}
    values = np.array([[share.get((r, d), math.nan) for d in sets] for r in reactions])
    drawn = FieldMap(
        reactions, sets, values, values >= 100, "networks proved well posed", 100.0, "percent", signed=False
    )
    run.chart("proved", drawn, "Share of trained networks whose initial value problem is proved to have one solution "
               "up to T, in percent; the others are undecided or diverged in training.", table)  # fmt: skip


def answer(rows: Sequence[MutableRow]) -> str:
    """For how many trained networks the problem is proved to be well posed, in one sentence."""
    proved = sum(row["outcome"] == PROVED for row in rows)
    plain = [row for row in rows if row["reaction"] in LINEAR]
    sure = sum(row["outcome"] == PROVED for row in plain)
    return (
        f"The initial value problem is proved to be well posed for {proved} of {len(rows)} trained networks: {sure} of "
        f"{len(plain)} with a linear reaction, {proved - sure} of {len(rows) - len(plain)} with F, AC or Z."
    )


def about(s: Mapping[str, Any]) -> str:
    """With which settings networks were trained, and what is proved of them."""
    return (
        f"The paper's settings{departures(s['sets'], s['epochs'], s['hidden'])}. Statements about equations are proved "
        "for every graph by rdgraph's regularity functions (lipschitz_global, lipschitz_local, existence), not "
        "measured. Of a trained network its coefficients count, channel by channel, since channels do not meet in "
        "these equations; attention is that of H(0), which stays. A network that is not proved well posed may be so "
        "all the same: a solution may stay away from the states from which others blow up."
    )
