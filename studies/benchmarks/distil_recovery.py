"""Does `rd.distil` find the formula that made the states? Five reactions on random graphs, ten draws each.

python -m studies.benchmarks.distil_recovery [--draws 10] [--out docs/distil_recovery.json]

A draw has a random graph of 30 nodes, coefficients within a third of the usual ones, a random start, 41 times, and
noise of 1 % of the root mean square of the states, the first ones too. A formula is recovered where it is the true one
and all its coefficients are within 5 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import sympy as sp
import torch
from rich.progress import track

import rdgraph as rd
from rdgraph.distillation.prefix_terms import to_text
from studies.benchmarks.cell_file import write_cells
from studies.benchmarks.speed_rows import command, environment
from studies.runs.boundary import run_program

NODES, TIMES, END, NOISE = 30, 41, 4.0, 0.01
#: Of a coefficient, the relative error up to which it counts as found.
NEAR = 0.05
EQUATION = "-alpha*L@H + phi(H)"
_H = sp.Symbol("H")


@dataclass(frozen=True)
class Case:
    """A reaction, its usual coefficients, and where the states start."""

    name: str
    formula: str
    usual: dict[str, float]
    low: float
    high: float


CASES = (
    Case("Fisher", "beta*H*(1 - H)", {"beta": 1.2}, 0.0, 1.5),
    Case("Allen-Cahn", "beta*H*(1 - H**2)", {"beta": 1.2}, -1.5, 1.5),
    Case("Zeldovich", "beta*H**2*(1 - H)", {"beta": 1.2}, -0.3, 1.5),
    Case("bistable", "beta*H*(1 - H)*(H - a)", {"beta": 1.5, "a": 0.3}, -0.4, 1.5),
    Case("sine", "beta*sin(omega*H)", {"beta": 1.0, "omega": 1.7}, -3.0, 3.0),
)
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


def is_recovered(case: Case, truth: dict[str, float], found: rd.Distillation) -> tuple[bool, float]:
    """Whether the formula is the true one up to 5 %, and its largest relative error (infinite where it is another)."""
    if found.letters is None:
        return False, np.inf
    numbers = [repr(float(value)) for value in found.letters.constants(found.values)]
    made = coefficients_of(sp.sympify(to_text(found.word, numbers), locals={"H": _H}))
    true = coefficients_of(sp.sympify(case.formula, locals={"H": _H, "beta": truth["beta"], **truth}))
    if made is None or true is None or made.keys() != true.keys():
        return False, np.inf
    made["alpha"], true["alpha"] = float(found.values["alpha"]), truth["alpha"]
    worst = max(abs(made[name] / true[name] - 1) for name in true)
    return worst <= NEAR, float(worst)


def measure(case: Case, seed: int) -> dict[str, Any]:
    """One draw distilled."""
    draw = drawn(case, seed)
    began = time.process_time()
    found = rd.distil(draw.states, draw.times, draw.graph, EQUATION, nested=True)
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
    for case in CASES:
        own = [row for row in rows if row["case"] == case.name]
        good = [row for row in own if row["recovered"]]
        if own:
            worst = max((row["worst_error"] for row in good), default=None)
            found[case.name] = {"recovered": len(good), "draws": len(own), "worst_error": worst}
    return found


def main() -> None:
    """Measure the draws that the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("docs/distil_recovery.json"))
    given = parser.parse_args()
    rows = json.loads(given.out.read_text(encoding="utf-8"))["rows"] if given.out.exists() else []
    known = {(row["case"], row["seed"]) for row in rows}
    jobs = [(case, seed) for seed in range(given.draws) for case in CASES if (case.name, seed) not in known]
    for case, seed in track(jobs, description="draws"):
        rows.append(measure(case, seed))
        head = {
            "command": command("studies.benchmarks.distil_recovery", sys.argv[1:]),
            "environment": environment("cpu"),
            "noise": NOISE,
            "nodes": NODES,
            "times": TIMES,
            "end": END,
        }
        write_cells(given.out, {**head, "summary": summary(rows), "rows": rows})


if __name__ == "__main__":
    run_program(main)
