"""How many equations a minute are trained: `python -m studies.benchmarks.discover_speed --device cuda --out FILE`.

Different equations, drawn here or read from a file, are trained on all splits by `gread.discovery`, in a process of its
own whose clock runs from its start: imports, the first touch of the device, kernels compiled anew, reading the
equations, set-up, recording and all epochs are counted. Linear equations alone, or as many others among them. A time
limit ends what is under way; the rate is then that of the work that was done, and the row says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

from gread import load_dataset
from gread.discovery.equation_batches import DROPPED, FINISHED, EquationProgress, EquationResult, train_equations
from gread.settings.config import Config
from gread.training.trainer import choose_device
from rdgraph.errors import InvalidArgument
from rdgraph.files import read_text, write_text
from studies.benchmarks.speed_rows import command, environment
from studies.runs.boundary import run_program

KINDS = ("linear", "mixed")
#: Equations a minute to reach, by data set and kind.
TARGETS = {("texas", "mixed"): 300.0, ("texas", "linear"): 1500.0, ("cora", "mixed"): 20.0, ("cora", "linear"): 20.0}
EPOCHS, SPLITS = 200, 10
#: Letters of the terms of an equation, in order.
LETTERS = ("alpha", "beta", "gamma", "delta")
#: What stands behind a letter: words in A and L before H and H0, and what is not linear in H.
LINEAR = (
    "L@H", "A@H", "H", "A@A@H", "L@L@H", "A@L@H", "A@A@A@H", "H0", "A@H0", "L@H0", "A@A@H0", "L@L@H0", "(H0 - H)",
)  # fmt: skip
CURVED = (
    "tanh(H)", "sin(H)", "tanh(A@H)", "sigmoid(H)", "relu(A@H - H)", "tanh(H)*(A@H)", "sigmoid(A@H)*(H0 - H)",
    "H*(1 - tanh(H)**2)", "tanh(H0)*H", "tanh(H*(A@H))", "sigmoid(A@H)*H", "tanh(L@H)", "tanh(A@A@H)", "sin(A@H)",
)  # fmt: skip


def all_lines(last: Sequence[str]) -> list[str]:
    """Every line of two to four terms: diffusion, words without an order, and at the end one of these; all signs."""
    lines = []
    for count in range(len(LETTERS) - 1):
        for words in combinations(LINEAR[1:], count):
            ends = [
                word
                for word in last
                if word not in LINEAR or LINEAR.index(word) > max(map(LINEAR.index, words), default=0)
            ]
            for end, signs in product(ends, product("+-", repeat=count + 1)):
                terms = zip(signs, LETTERS[1:], (*words, end), strict=False)
                lines.append("-alpha*L@H" + "".join(f" {sign} {letter}*{term}" for sign, letter, term in terms))
    return lines


def draw_equations(count: int, kind: str, seed: int = 0) -> list[str]:
    """Different lines of two to four terms, the first of them diffusion; of a mixed draw every other is not linear.

    >>> draw_equations(2, "linear") == draw_equations(9, "linear")[:2]
    True
    >>> any("(H)" in line for line in draw_equations(9, "mixed"))
    True
    """
    if kind not in KINDS:
        raise InvalidArgument(f"expected a kind among {', '.join(KINDS)}, got {kind!r}")
    draw = Random(seed)
    found = all_lines(LINEAR[1:])
    draw.shuffle(found)
    if kind == "mixed":
        curved = all_lines(CURVED)
        draw.shuffle(curved)
        found = [line for pair in zip(found, curved, strict=False) for line in pair]
    if count > len(found):
        raise InvalidArgument(f"expected at most {len(found)} equations, there are no more {kind} ones, got {count}")
    return found[:count]


def read_equations(asked: str, kind: str) -> list[str]:
    """The lines of a file, or as many as asked for, drawn."""
    if asked.isdigit():
        return draw_equations(int(asked), kind)
    lines = read_text(Path(asked), "a file with an equation in every line").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Train the equations, with a clock at every part; this is what the process of its own does."""
    started = time.time()
    device = choose_device(given.device)
    data = load_dataset(given.dataset)
    equations = read_equations(given.equations, given.kind)
    ready, shares = time.time(), list[tuple[float, float]]()

    def hear(now: EquationProgress) -> None:
        shares.append((time.time() - ready, now.share))

    base = Config().updated({"adjacency": given.adjacency, "beta": given.beta, "hidden": given.hidden})
    found = train_equations(
        equations, data, base, splits=range(min(given.splits, data.num_splits)), epochs=given.epochs,
        rungs=given.rungs, keep=given.keep, device=device, seconds=given.seconds, on_progress=hear,
    )  # fmt: skip
    trained = time.time() - ready
    return {
        "dataset": given.dataset, "kind": given.kind, "equations": len(equations), "splits": given.splits,
        "epochs": given.epochs, "rungs": list(given.rungs), "keep": given.keep, "adjacency": given.adjacency,
        "beta": given.beta, "hidden": given.hidden, "states": dict(Counter(one.state for one in found)),
        "seconds_of_reading": ready - started, "seconds_of_training": trained, "share_done": work_done(found, given),
        "first_epochs_after": shares[0][0] if shares else None, "best": best_of(found),
        "reasons": sorted({one.reason for one in found if one.reason})[:5], "environment": environment(given.device),
    }  # fmt: skip


def work_done(found: Sequence[EquationResult], given: argparse.Namespace) -> float:
    """The share of the equations that were trained as far as they should be: to the end, or to a rung."""
    stops = {20 * -(-rung // 20) for rung in given.rungs} | {given.epochs}
    through = [one.state in (FINISHED, "diverged") or (one.state == DROPPED and one.epochs in stops) for one in found]
    return sum(through) / max(1, len(found))


def best_of(found: Sequence[EquationResult]) -> dict[str, Any]:
    """The equation with the best mean validation accuracy among those that went to their end."""
    whole = [one for one in found if one.state == FINISHED]
    if not whole:
        return {}
    best = max(whole, key=lambda one: one.val_accuracy)
    return {"equation": best.equation, "val": best.val_accuracy, "test": best.test_accuracy}


def measure_cold(words: Sequence[str], given: argparse.Namespace) -> dict[str, Any]:
    """The same in a new process with an empty cache of kernels, and the rate with everything counted."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "row.json"
        cold = {**os.environ, "TRITON_CACHE_DIR": str(Path(folder) / "kernels")}
        line = [sys.executable, "-m", "studies.benchmarks.discover_speed", *words, "--part", str(part)]
        started = time.perf_counter()
        if status := subprocess.run(line, env=cold, check=False).returncode:
            sys.exit(status)  # it has said why
        seconds = time.perf_counter() - started
        row: dict[str, Any] = json.loads(part.read_text(encoding="utf-8"))
    rate = 60 * row["equations"] * row["share_done"] / seconds
    target = TARGETS.get((given.dataset, given.kind))
    row |= {"seconds": seconds, "rate": rate, "target": target, "met": None if target is None else rate >= target}
    return row | {"command": command("studies.benchmarks.discover_speed", words)}


def read_words(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Speed of the training of many different equations")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dataset", default="texas")
    parser.add_argument("--equations", default="600", help="a number, or a file with an equation in every line")
    parser.add_argument("--kind", choices=KINDS, default="mixed", help="which equations are drawn")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--rungs", type=int, nargs="*", default=[], help="epochs after which the worse are dropped")
    parser.add_argument("--keep", type=float, default=0.5)
    parser.add_argument("--adjacency", default="original")
    parser.add_argument("--beta", default="scalar")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--out", type=Path, help="the file that a row is added to")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.out is None and given.part is None:
        parser.error("expected --out FILE, got none")
    return given


def main(words: Sequence[str] | None = None) -> None:
    said = list(sys.argv[1:] if words is None else words)
    given = read_words(said)
    if given.part is not None:
        write_text(given.part, json.dumps(measure(given)))
        return
    row = measure_cold(said, given)
    rows = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else []
    write_text(given.out, json.dumps([*rows, row], indent=1) + "\n")
    print(json.dumps({name: row[name] for name in ("dataset", "kind", "rate", "target", "met", "seconds", "states")}))


if __name__ == "__main__":
    run_program(main)
