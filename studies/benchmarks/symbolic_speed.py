"""Benchmarks of the symbolic half; times are noisy, so each is set against a peer measured in the same run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from studies.runs.boundary import run_program

IMPORT_RUNS = 5


def best_time(function: Callable[[], object], runs: int = 5) -> float:
    """Shortest wall time of several runs, seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


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


def main() -> None:
    """Print the table."""
    import sympy as sp

    import rdgraph as rd

    text = "-alpha*L@H + beta*(A@H - A@A@H)"
    table = Table("what", "seconds", "peer in the same run", "ratio to peer")
    base, ours = import_times()
    table.add_row("import rdgraph, after sympy", f"{ours:.3f}", f"import sympy {base:.3f} s", f"{ours / base:.2f}")
    letters = {n: sp.Symbol(n, commutative=False) for n in ("A", "L", "H")} | {
        n: sp.Symbol(n) for n in ("alpha", "beta")
    }
    peer = best_time(lambda: sp.parse_expr("-alpha*L*H + beta*(A*H - A*A*H)", local_dict=letters), 20)
    own = best_time(lambda: rd.parse(text), 20)
    table.add_row("parse BS", f"{own:.5f}", f"sympy.parse_expr {peer:.5f} s", f"{own / peer:.2f}")
    for name in ("BS", "AC"):
        seconds = best_time(lambda name=name: rd.analyse(name), 2)  # type: ignore[misc]
        table.add_row(f"analyse {name}", f"{seconds:.3f}", f"import sympy {base:.3f} s", f"{seconds / base:.2f}")
    seconds = best_time(lambda: rd.verify("BS"), 1)
    table.add_row("verify BS", f"{seconds:.2f}", f"import sympy {base:.3f} s", f"{seconds / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    run_program(main)
