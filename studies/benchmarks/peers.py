"""What a processor does, against peers in the same run: the symbolic half, and compiled right-hand sides on grids."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import rdgraph as rd
from rdgraph.errors import MissingDependency
from studies.benchmarks.result_files import CASES, checked, head, write_json

# ---------------------------------------------------------------------- the symbolic half
IMPORT_RUNS = 5


def best_time(function: Callable[[], object], runs: int) -> float:
    """Shortest wall time of several runs, seconds."""
    return min(timeit.repeat(function, number=1, repeat=runs))


def import_times() -> tuple[float, float]:
    """Seconds for `import sympy` and for `import rdgraph` after it, each in a fresh interpreter."""
    code = (
        "import time; a = time.perf_counter(); import sympy; b = time.perf_counter(); import rdgraph;"
        "print(b - a, time.perf_counter() - b)"
    )
    runs = []
    for _ in range(IMPORT_RUNS):
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        runs.append(tuple(map(float, output.split())))
    return min(r[0] for r in runs), min(r[1] for r in runs)


def symbolic_rows() -> Iterator[tuple[str, float, str, float]]:
    """What is measured, seconds, the peer of the same run, and its seconds."""
    import sympy as sp

    text = "-alpha*L@H + beta*(A@H - A@A@H)"
    base, ours = import_times()
    yield "import rdgraph, after sympy", ours, "import sympy", base
    letters = {n: sp.Symbol(n, commutative=False) for n in ("A", "L", "H")}
    letters |= {n: sp.Symbol(n) for n in ("alpha", "beta")}
    peer = best_time(lambda: sp.parse_expr("-alpha*L*H + beta*(A*H - A*A*H)", local_dict=letters), 20)
    yield "parse BS", best_time(lambda: rd.parse(text), 20), "sympy.parse_expr", peer
    for name in ("BS", "AC"):
        yield f"analyse {name}", best_time(lambda name=name: rd.analyse(name), 2), "import sympy", base  # type: ignore[misc]
    yield "verify BS", best_time(lambda: rd.verify("BS"), 1), "import sympy", base


def symbolic_speed() -> None:
    """How fast the symbolic half is; times are noisy, so each is compared with a peer measured in the same run."""
    table = Table("what", "seconds", "peer in the same run", "ratio to peer")
    for what, seconds, peer, theirs in symbolic_rows():
        table.add_row(what, f"{seconds:.3g}", f"{peer} {theirs:.3g} s", f"{seconds / theirs:.2f}")
    Console().print(table)


# ---------------------------------------------------------------------- compiled right-hand sides
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


PROBLEMS = tuple(Problem(**case) for case in CASES["compiled"])


def take_turns(functions: Sequence[Callable[[], object]], count: int) -> list[float]:
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
    return timeit.timeit(function, number=calls) / calls


def peer(problem: Problem, state: np.ndarray, side: int) -> Callable[[], np.ndarray]:
    """py-pde's compiled right-hand side at a state (fields, side, side)."""
    try:
        import pde
    except ImportError as missing:
        raise MissingDependency("this comparison needs py-pde: pip install 'rdgraph[bench]'") from missing
    grid = pde.CartesianGrid([[0, side]] * 2, side, periodic=True)
    fields = [pde.ScalarField(grid, block) for block in state]
    whole = fields[0] if len(fields) == 1 else pde.FieldCollection(fields)
    slope = pde.PDE(problem.theirs, consts=problem.values).make_pde_rhs(whole, backend="numba")
    return lambda: slope(whole.data, 0.0)


def compare(problem: Problem, side: int, count: int) -> dict[str, Any]:
    """Compile both, see that they agree, and time them in turns; a cache of our own starts empty.

    The row has the seconds of an evaluation, and of the first one with all that comes before it.
    """
    operator = rd.generators.grid(side, side, periodic=True).operator("none", dtype=torch.float64)
    state = np.random.default_rng(0).uniform(0.1, 1.0, (len(problem.theirs), side, side))
    H = torch.from_numpy(state.reshape(len(state), -1).T.copy())
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict("os.environ", {"RDGRAPH_CACHE": cache}):
        start = time.perf_counter()
        lowered = rd.lower(problem.ours, operator, problem.values)
        ours = rd.run.compile_field(lowered)
        slope = ours(0.0, H)
        first = time.perf_counter() - start
    start = time.perf_counter()
    theirs = peer(problem, state, side)
    expected = theirs()
    peer_first = time.perf_counter() - start
    np.testing.assert_allclose(slope.numpy().T.reshape(expected.shape), expected, rtol=1e-10, atol=1e-10)
    seconds, peer_seconds = take_turns([lambda: ours(0.0, H), theirs], count)
    (torch_seconds,) = take_turns([lambda: lowered(0.0, H)], 3)
    return {
        "problem": problem.name, "side": side, "seconds": seconds, "peer_seconds": peer_seconds,
        "torch_seconds": torch_seconds, "first": first, "peer_first": peer_first,
    }  # fmt: skip


def compiled_speed(
    *, command: str, sizes: Sequence[int] = SIZES, problems: Sequence[str] = (), turns: int = 20,
    out: Path | None = None,
) -> None:  # fmt: skip
    """Compiled right-hand sides on periodic grids, against py-pde's compiled ones in the same run, and against torch.

    Both are compiled for the same equation, agree on the same state, and are timed in turns; the shortest time counts.
    """
    names = checked(problems, [problem.name for problem in PROBLEMS], "equation of this benchmark")
    table = Table("equation", "grid", "compiled, us", "py-pde, us", "ratio", "torch, us", "first, s", "py-pde first, s")
    rows, ratios = list[dict[str, Any]](), list[float]()
    for problem, side in itertools.product((p for p in PROBLEMS if p.name in names), sizes):
        rows.append(row := compare(problem, side, turns))
        ratios.append(row["seconds"] / row["peer_seconds"])
        print(f"{problem.name}, {side} x {side}: ratio to py-pde {ratios[-1]:.2f}", flush=True)
        times = (f"{1e6 * row['seconds']:.1f}", f"{1e6 * row['peer_seconds']:.1f}", f"{ratios[-1]:.2f}")
        others = (f"{1e6 * row['torch_seconds']:.0f}", f"{row['first']:.2f}", f"{row['peer_first']:.1f}")
        table.add_row(problem.name, f"{side} x {side}", *times, *others)
    Console(width=120).print(table)
    print(f"largest ratio {max(ratios):.2f}, target {TARGET:g}; {torch.get_num_threads()} threads")
    if out:
        found = head(command, "cpu")
        found["environment"] |= {"threads": str(torch.get_num_threads())}
        write_json(out, found | {"rows": rows})
