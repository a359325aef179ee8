"""Compiled right-hand sides on periodic grids, against py-pde's compiled ones in the same run, and against torch.

Both are compiled for the same equation, agree on the same state, and are timed in turns; the shortest time counts.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import rdgraph as rd
from rdgraph.errors import MissingDependency
from studies.benchmarks.speed_rows import command, environment
from studies.runs.boundary import run_program

#: A side of the grids, and how long one turn of a measurement lasts, seconds.
SIZES, TURN = (64, 1024), 0.05
#: How much longer than py-pde's an evaluation may take.
TARGET = 2.0


@dataclass(frozen=True)
class Problem:
    """An equation as we write it and as py-pde does; L is minus the Laplacian of a grid with spacing 1."""

    name: str
    ours: str
    theirs: dict[str, str]
    values: dict[str, float]


PROBLEMS = (
    Problem("diffusion", "u' = -alpha*L@u", {"u": "alpha*laplace(u)"}, {"alpha": 0.7}),
    Problem("Allen-Cahn", "u' = -alpha*L@u + u - u**3", {"u": "alpha*laplace(u) + u - u**3"}, {"alpha": 0.7}),
    Problem(
        "Fisher", "u' = -alpha*L@u + beta*u*(1 - u)", {"u": "alpha*laplace(u) + beta*u*(1 - u)"},
        {"alpha": 0.7, "beta": 1.3},
    ),
    Problem(
        "Gray-Scott", "u' = -Du*L@u - u*v**2 + beta*(1 - u); v' = -Dv*L@v + u*v**2 - gamma*v",
        {"u": "Du*laplace(u) - u*v**2 + beta*(1 - u)", "v": "Dv*laplace(v) + u*v**2 - gamma*v"},
        {"Du": 0.2, "Dv": 0.1, "beta": 0.03, "gamma": 0.09},
    ),
    Problem(
        "Schnakenberg", "u' = alpha - u + u**2*v - Du*L@u; v' = beta - u**2*v - Dv*L@v",
        {"u": "alpha - u + u**2*v + Du*laplace(u)", "v": "beta - u**2*v + Dv*laplace(v)"},
        {"Du": 0.1, "Dv": 0.9, "alpha": 0.1, "beta": 0.9},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One comparison: seconds of an evaluation, and of the first one with all that comes before it."""

    problem: str
    side: int
    seconds: float
    peer_seconds: float
    torch_seconds: float
    first: float
    peer_first: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.peer_seconds


def turns(functions: Sequence[Callable[[], object]], count: int) -> list[float]:
    """The shortest time of each of several functions, seconds; they take turns, so that noise meets all of them.

    Calls are timed in bunches of about a millisecond, short enough to be left alone on a busy machine.
    """
    sizes = [_bunch(function) for function in functions]
    best = [float("inf")] * len(functions)
    for _ in range(count):
        for k, function in enumerate(functions):
            stop = time.perf_counter() + TURN
            while time.perf_counter() < stop:
                best[k] = min(best[k], _seconds(function, sizes[k]))
    return best


def _bunch(function: Callable[[], object]) -> int:
    """How many calls take about a millisecond."""
    return max(1, int(1e-3 / min(_seconds(function, 1) for _ in range(20))))


def _seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def peer(problem: Problem, state: np.ndarray, side: int) -> Callable[[], np.ndarray]:
    """py-pde's compiled right-hand side at a state (fields, side, side)."""
    try:
        import pde
    except ImportError as missing:
        raise MissingDependency(
            "expected py-pde, the peer of this comparison, got an environment without it; run pip install "
            "'rdgraph[bench]'"
        ) from missing
    grid = pde.CartesianGrid([[0, side]] * 2, side, periodic=True)
    fields = [pde.ScalarField(grid, block) for block in state]
    whole = fields[0] if len(fields) == 1 else pde.FieldCollection(fields)
    slope = pde.PDE(problem.theirs, consts=problem.values).make_pde_rhs(whole, backend="numba")
    return lambda: slope(whole.data, 0.0)


def compare(problem: Problem, side: int, count: int) -> Row:
    """Compile both, see that they agree, and time them in turns; a cache of our own starts empty."""
    operator = rd.generators.grid(side, side, periodic=True).operator("none", dtype=torch.float64)
    state = np.random.default_rng(0).uniform(0.1, 1.0, (len(problem.theirs), side, side))
    H = torch.from_numpy(state.reshape(len(state), -1).T.copy())
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict("os.environ", {"RDGRAPH_CACHE": cache}):
        start = time.perf_counter()
        lowered = rd.lower(problem.ours, operator, problem.values)
        ours = rd.compile_field(lowered)
        slope = ours(0.0, H)
        first = time.perf_counter() - start
    start = time.perf_counter()
    theirs = peer(problem, state, side)
    expected = theirs()
    peer_first = time.perf_counter() - start
    np.testing.assert_allclose(slope.numpy().T.reshape(expected.shape), expected, rtol=1e-10, atol=1e-10)
    seconds, peer_seconds = turns([lambda: ours(0.0, H), theirs], count)
    (torch_seconds,) = turns([lambda: lowered(0.0, H)], 3)
    return Row(problem.name, side, seconds, peer_seconds, torch_seconds, first, peer_first)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="sides of the grids")
    parser.add_argument("--problems", nargs="+", choices=[p.name for p in PROBLEMS], help="by default all")
    parser.add_argument("--turns", type=int, default=20, help="of each measurement")
    parser.add_argument("--out", type=Path, help="write the numbers to this json file")
    options = parser.parse_args()
    chosen = [p for p in PROBLEMS if options.problems is None or p.name in options.problems]
    rows = []
    for problem, side in itertools.product(chosen, options.sizes):
        rows.append(compare(problem, side, options.turns))
        print(f"{problem.name}, {side} x {side}: ratio to py-pde {rows[-1].ratio:.2f}", flush=True)
    table = Table("equation", "grid", "compiled, us", "py-pde, us", "ratio", "torch, us", "first, s", "py-pde first, s")
    for row in rows:
        table.add_row(
            row.problem, f"{row.side} x {row.side}", f"{1e6 * row.seconds:.1f}", f"{1e6 * row.peer_seconds:.1f}",
            f"{row.ratio:.2f}", f"{1e6 * row.torch_seconds:.0f}", f"{row.first:.2f}", f"{row.peer_first:.1f}",
        )  # fmt: skip
    Console(width=120).print(table)
    print(f"largest ratio {max(row.ratio for row in rows):.2f}, target {TARGET:g}; {torch.get_num_threads()} threads")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        found = {
            "command": command("studies.benchmarks.compiled_speed", sys.argv[1:]),
            "environment": environment("cpu") | {"threads": str(torch.get_num_threads())},
            "rows": [asdict(row) for row in rows],
        }
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
