"""Learned functions put into formulas: what a formula costs in accuracy, and how often the true one is found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import sympy as sp
import torch
from rich.progress import track

import rdgraph as rd
from gread.comparison import share_ratio
from gread.datasets.node_data import NodeData
from gread.formulas.distilled_network import MAX_SIZE, TOLERANCE, distil_network
from gread.settings.config import Config
from gread.settings.presets import find_preset
from gread.settings.trials import make_trials
from gread.training.trainer import choose_device, train
from rdgraph.infer.formulas.prefix_terms import to_text
from studies.benchmarks.result_files import CASES, RESULTS, ResultRow, head, measure_table, read_cells, write_json
from studies.cells.cell import SETS

#: The column that says which function was learned, and that of every row.
KEY, FUNCTION = "function", "phi"
EQUATION = "-alpha*L@H + phi(H)"
#: Points of accuracy that a formula may cost.
MOST_LOST = 0.5

# ---------------------------------------------------------------------- the cost of a formula


def configuration(dataset: str, epochs: int | None = None) -> Config:
    """The published settings of GREAD-BS on a data set, with the learned function in its equation."""
    config = find_preset("paper", "BS", dataset).config.updated({"reaction": EQUATION})
    return config if epochs is None else replace(config, training=replace(config.training, epochs=epochs))


def distilled_row(
    name: str, dataset: str, data: NodeData, device: str, splits: Sequence[int] | None = None, epochs: int | None = None
) -> ResultRow:
    """Train, distil and train again, on all splits with one seed: test accuracies in percent, and the loss.

    `formula` is empty where none of the size was within the tolerance; then nothing was trained with it.
    """
    began = time.monotonic()
    config = configuration(dataset, epochs)
    chosen = range(data.num_splits) if splits is None else splits
    done = train(data, make_trials(config, chosen), device=device)
    found = distil_network(done, function=name, tolerance=TOLERANCE, max_size=MAX_SIZE, device=device)
    formula, after = found.search.formula, found.after
    lives = next((proof.text for proof in found.proofs if proof.topic == "existence"), "")
    return {
        "function": name, "dataset": dataset, "learned": 100 * float(found.before.mean()),
        "formula_accuracy": None if after is None else 100 * float(after.mean()),
        "lost": None if after is None else found.lost, "formula": "" if formula is None else formula.text,
        "answer": found.search.answer_for("split"), "size": None if formula is None else formula.size,
        "relative_error": None if formula is None else formula.relative_error, "existence": lives,
        "learned_each": [round(100 * float(a), 4) for a in found.before],
        "formula_each": [] if after is None else [round(100 * float(a), 4) for a in after],
        "settings": config.sections(), "test_to_train": share_ratio(data), "seconds": time.monotonic() - began,
    }  # fmt: skip


def distilled_line(row: ResultRow) -> str:
    """A row in a line."""
    if row["formula_accuracy"] is None:
        return f"{row['learned']:.2f}, {row['answer']}, {row['seconds']:.1f} s"
    return f"{row['learned']:.2f} -> {row['formula_accuracy']:.2f} with {row['formula']}, {row['seconds']:.1f} s"


def distilled(
    *, device: str = "auto", sets: Sequence[str] = (), again: bool = False, seconds: float = float("inf"),
    splits: int | None = None, epochs: int | None = None, out: Path = RESULTS / "distilled.json",
) -> None:  # fmt: skip
    """What a formula costs in place of a learned function, resumed where it stopped.

    Each of the nine data sets with the settings that were published for GREAD-BS, its equation -alpha*L@H + phi(H):
    trained with phi as a spline, put into a formula, trained again with the formula on the same splits and seeds.
    Writes the file after every set.
    """
    device, sets = choose_device(device), sets or SETS
    chosen = None if splits is None else range(splits)
    measure = partial(distilled_row, device=device, splits=chosen, epochs=epochs)
    measure_table("distilled", KEY, [FUNCTION], sets, measure, distilled_line, device=device, out=out, again=again,
                  seconds=seconds)  # fmt: skip


# ---------------------------------------------------------------------- formulas from states
NODES, TIMES, END, NOISE = 30, 41, 4.0, 0.01
#: Of a coefficient, the relative error up to which it counts as found.
NEAR = 0.05
_H = sp.Symbol("H")


@dataclass(frozen=True)
class Case:
    """A reaction, its usual coefficients, and where the states start."""

    name: str
    formula: str
    usual: dict[str, float]
    low: float
    high: float


REACTIONS = tuple(Case(**case) for case in CASES["reaction"])
ALPHA = 0.3


@dataclass(frozen=True)
class Draw:
    """One set of data with what made it."""

    graph: rd.Graph
    truth: dict[str, float]
    states: np.ndarray
    times: np.ndarray


def drawn(case: Case, seed: int) -> Draw:
    """The data of one draw."""
    rng = np.random.default_rng([seed, sum(map(ord, case.name))])
    kinds = (
        lambda s: nx.watts_strogatz_graph(NODES, 4, 0.3, seed=s),
        lambda s: nx.barabasi_albert_graph(NODES, 2, seed=s),
        lambda s: nx.gnp_random_graph(NODES, 0.15, seed=s),
    )
    graph = rd.Graph.from_networkx(kinds[seed % 3](int(rng.integers(10**6))))
    usual = {"alpha": ALPHA, **case.usual}
    truth = {name: float(value * rng.uniform(2 / 3, 4 / 3)) for name, value in usual.items()}
    start = torch.as_tensor(rng.uniform(case.low, case.high, (NODES, 1)))
    times = torch.linspace(0, END, TIMES, dtype=torch.float64)
    field = rd.lower(f"-alpha*L@H + {case.formula}", graph.operator(dtype=torch.float64), truth)
    clean = rd.solve(field, start, times, "dopri5", rtol=1e-9, atol=1e-11).states.numpy()
    noise = NOISE * np.sqrt(np.square(clean).mean())
    return Draw(graph, truth, clean + noise * rng.standard_normal(clean.shape), times.numpy())


def coefficients_of(expression: sp.Expr) -> dict[str, float] | None:
    """What a formula is made of: the coefficients of a polynomial by power, amplitude and frequency of a sine.

    >>> coefficients_of(2 * _H * (1 - _H)), coefficients_of(sp.tanh(_H))
    ({'H**1': 2.0, 'H**2': -2.0}, None)
    """
    plain = sp.expand(expression)
    if plain.is_polynomial(_H):
        powers = sp.Poly(plain, _H).as_dict()
        return {f"H**{power}": float(value) for (power,), value in sorted(powers.items())}
    amplitude, frequency = sp.Wild("amplitude", exclude=[_H]), sp.Wild("frequency", exclude=[_H])
    match = plain.match(amplitude * sp.sin(frequency * _H))
    return None if match is None else {str(name).strip("_"): float(value) for name, value in match.items()}


def is_recovered(case: Case, truth: dict[str, float], found: rd.infer.Distillation) -> tuple[bool, float]:
    """Whether the formula is the true one up to 5 %, and its largest relative error (infinite where it is another)."""
    if found.letters is None:
        return False, np.inf
    numbers = [repr(float(value)) for value in found.letters.constants(found.values)]
    made = coefficients_of(sp.sympify(to_text(found.letters.word, numbers), locals={"H": _H}))
    true = coefficients_of(sp.sympify(case.formula, locals={"H": _H, "beta": truth["beta"], **truth}))
    if made is None or true is None or made.keys() != true.keys():
        return False, np.inf
    made["alpha"], true["alpha"] = float(found.values["alpha"]), truth["alpha"]
    worst = max(abs(made[name] / true[name] - 1) for name in true)
    return worst <= NEAR, float(worst)


def recovery_row(case: Case, seed: int) -> dict[str, Any]:
    """One draw distilled."""
    draw = drawn(case, seed)
    began = time.process_time()
    found = rd.infer.distil(draw.states, draw.times, draw.graph, EQUATION, nested=True)
    recovered, worst = is_recovered(case, draw.truth, found)
    inside = None
    if recovered and set(found.intervals) == set(draw.truth):
        ends = zip(found.intervals.values(), (draw.truth[name] for name in found.intervals), strict=True)
        inside = [bool(low <= value <= high) for (low, high), value in ends]
    return {
        "case": case.name, "seed": seed, "truth": draw.truth, "formula": found.formula, "answer": found.answer,
        "values": {name: float(value) for name, value in found.values.items()}, "recovered": recovered,
        "worst_error": worst if np.isfinite(worst) else None, "inside": inside, "noise": found.noise,
        "seconds": time.process_time() - began,
    }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """By reaction: how many of the draws were recovered, and how far the worst coefficient was off."""
    found = {}
    for case in REACTIONS:
        own = [row for row in rows if row["case"] == case.name]
        good = [row for row in own if row["recovered"]]
        if own:
            worst = max((row["worst_error"] for row in good), default=None)
            found[case.name] = {"recovered": len(good), "draws": len(own), "worst_error": worst}
    return found


def distil_recovery(*, command: str, draws: int = 10, out: Path = RESULTS / "distil_recovery.json") -> None:
    """Does `rd.infer.distil` find the formula that made the states? Five reactions on random graphs, ten draws each.

    A draw has a random graph of 30 nodes, coefficients within a third of the usual ones, a random start, 41 times, and
    noise of 1 % of the root mean square of the states, the first ones too. A formula is recovered where it is the true
    one and all its coefficients are within 5 %. Measures the draws that the file lacks.
    """
    rows = read_cells(out)["rows"]
    known = {(row["case"], row["seed"]) for row in rows}
    jobs = [(case, seed) for seed in range(draws) for case in REACTIONS if (case.name, seed) not in known]
    sizes = {"noise": NOISE, "nodes": NODES, "times": TIMES, "end": END}
    for case, seed in track(jobs, description="draws"):
        rows.append(recovery_row(case, seed))
        write_json(out, head(command, "cpu") | sizes | {"summary": summary(rows), "rows": rows})
