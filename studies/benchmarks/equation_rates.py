"""How many equations a minute are trained, cold start included.

Different equations, drawn here or read from a file, are trained on all splits by `gread.discovery`, in a process of its
own whose clock runs from its start: imports, the first touch of the device, compiling kernels, reading the equations,
set-up, recording and all epochs are counted. Linear equations alone, or every other one not linear. A time limit ends
what is under way; the rate is then that of the work that was done, and the row says so.
"""

from __future__ import annotations

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
from gread.discovery.discovery_plan import STATE_WORDS
from gread.discovery.equation_batches import EquationProgress, EquationResult, train_equations
from gread.settings.config import Config
from gread.training.trainer import choose_device
from gread.tuning.candidates import COMPLETE, DIVERGED, PRUNED
from rdgraph.errors import InvalidArgument
from rdgraph.files import read_text
from studies.benchmarks.result_files import head, read_json, write_json

KINDS = ("linear", "mixed")
#: Equations a minute to reach, by data set and kind.
TARGETS = {("texas", "mixed"): 300.0, ("texas", "linear"): 1500.0, ("cora", "mixed"): 20.0, ("cora", "linear"): 20.0}
EPOCHS, SPLITS = 200, 10
#: Coefficients of the terms of an equation, in order.
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


def work_done(found: Sequence[EquationResult], epochs: int) -> float:
    """The share of the equations that were trained to the end."""
    through = [one.state in (COMPLETE, DIVERGED) or (one.state == PRUNED and one.epochs == epochs) for one in found]
    return sum(through) / max(1, len(found))


def best_of(found: Sequence[EquationResult]) -> dict[str, Any]:
    """The equation with the best mean validation accuracy among those that went to their end."""
    whole = [one for one in found if one.state == COMPLETE]
    if not whole:
        return {}
    best = max(whole, key=lambda one: one.val_accuracy)
    return {"equation": best.equation, "val": best.val_accuracy, "test": best.test_accuracy}


def discover_speed(
    *, command: str, out: Path | None = None, part: Path | None = None, device: str = "cpu", dataset: str = "texas",
    equations: str = "600", kind: str = "mixed", splits: int = SPLITS, epochs: int = EPOCHS,
    seconds: float | None = None,
) -> None:  # fmt: skip
    """How many equations a minute are trained, in a new process with an empty cache of kernels."""
    settings = {"dataset": dataset, "kind": kind, "splits": splits, "epochs": epochs}
    if part is not None:
        write_json(part, settings | measured(equations, device, seconds, settings) | head(command, device))
        return
    if out is None:
        raise InvalidArgument("expected --out FILE, got none")
    row = cold()
    rate, target = 60 * row["equations"] * row["share_done"] / row["seconds"], TARGETS.get((dataset, kind))
    row |= {"rate": rate, "target": target, "met": None if target is None else rate >= target, "command": command}
    write_json(out, [*read_json(out, []), row])
    print(json.dumps({name: row[name] for name in ("dataset", "kind", "rate", "target", "met", "seconds", "states")}))


def measured(asked: str, device: str, seconds: float | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Train the equations, with a clock at every part; the program of the new process."""
    started = time.time()
    data = load_dataset(settings["dataset"])
    equations = read_equations(asked, settings["kind"])
    ready, shares = time.time(), list[tuple[float, float]]()

    def hear(now: EquationProgress) -> None:
        shares.append((time.time() - ready, now.share))

    base = Config().updated({"adjacency": "original", "beta": "scalar", "hidden": 64})
    found = train_equations(
        equations, data, base, splits=range(min(settings["splits"], data.num_splits)), epochs=settings["epochs"],
        device=choose_device(device), seconds=seconds, on_progress=hear,
    )  # fmt: skip
    return {
        "equations": len(equations), "states": dict(Counter(STATE_WORDS[one.state] for one in found)),
        "seconds_of_reading": ready - started, "seconds_of_training": time.time() - ready,
        "share_done": work_done(found, settings["epochs"]),
        "first_epochs_after": shares[0][0] if shares else None, "best": best_of(found),
        "reasons": sorted({one.note for one in found if one.note})[:5],
    }  # fmt: skip


def cold() -> dict[str, Any]:
    """The row of the same program in a new process with an empty cache of kernels, and the seconds of that process."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "row.json"
        environment = {**os.environ, "TRITON_CACHE_DIR": str(Path(folder) / "kernels")}
        line = [sys.executable, "-m", "studies.benchmarks", *sys.argv[1:], "--part", str(part)]
        started = time.perf_counter()
        if status := subprocess.run(line, env=environment, check=False).returncode:
            sys.exit(status)  # it has said why
        seconds = time.perf_counter() - started
        row: dict[str, Any] = read_json(part, {})
    return row | {"seconds": seconds}
