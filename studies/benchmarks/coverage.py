"""Do intervals of `rd.fit` contain the truth? Many sets of simulated data, and how often they do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import torch
from rich.progress import track
from scipy.stats import binomtest
from torch import Tensor

import rdgraph as rd
from rdgraph.infer.fit.least_squares import Problems, Residuals, Unknowns, border_of, profile
from rdgraph.infer.fit.observations import Observations
from studies.benchmarks.result_files import CASES, RESULTS, checked, head, present, read_json, write_json

LEVEL = 0.95
#: Observations of every observed node, after the start.
TIMES, NOISE = 12, 0.02
#: Data sets that are fitted as one batch.
AT_ONCE = 100


@dataclass(frozen=True)
class Case:
    """One equation with its truth: what is simulated, and what is looked for."""

    name: str
    text: str
    normalisation: str
    truth: dict[str, float]
    start: float
    end: float


FITTED = tuple(Case(**case) for case in CASES["fitted"])


def networks() -> dict[str, rd.Graph]:
    """Three networks: a social one, a lattice, a random one with hubs."""
    return {
        "karate": rd.Graph.from_networkx(nx.karate_club_graph(), weight=None),
        "grid": rd.generators.grid(5, 6),
        "hubs": rd.Graph.from_networkx(nx.barabasi_albert_graph(40, 2, seed=1)),
    }


def problems_of(case: Case, graph: rd.Graph, share: float, repeats: int, seed: int) -> tuple[Problems, Tensor]:
    """Data sets of one plan that differ in their noise, and the true coefficients on the scale of the fit."""
    generator = torch.Generator().manual_seed(seed)
    count = graph.num_nodes
    system = rd.parse(case.text)
    operator = graph.operator(case.normalisation, dtype=torch.float64)
    start = case.start * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    drawn = torch.rand(TIMES, generator=generator, dtype=torch.float64).sort().values * case.end
    times = torch.cat([torch.zeros(1, dtype=torch.float64), drawn])
    clean = rd.solve(rd.lower(system, operator, case.truth), start, times, "dopri5", rtol=1e-9, atol=1e-11).states
    seen = torch.zeros(clean.shape, dtype=torch.bool)
    seen[1:, torch.randperm(count, generator=generator)[: math.ceil(share * count)]] = True
    noise = torch.randn(repeats, *clean.shape, generator=generator, dtype=torch.float64)
    values = torch.where(seen, clean + NOISE * noise, 0.0)
    unknowns = Unknowns.of(system, list(case.truth), count, 1, 0)
    linear = rd.theory.choose_method(system).method == "exact"
    settings = {"method": "exact"} if linear else {"method": "dopri5", "rtol": 1e-6, "atol": 1e-9}
    observed = Observations(times, values[0], seen)
    residuals = Residuals(system, operator, observed, unknowns, {}, start, settings)
    return Problems(residuals, values), unknowns.starts(case.truth, 1, 0.0, generator)


def covered(problems: Problems, truth: Tensor, which: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Whether the interval of each coefficient holds the truth (sets, coefficients), and the fitted rows."""
    generator = torch.Generator().manual_seed(seed)
    away = 0.3 * torch.randn(len(which), truth.shape[1], generator=generator, dtype=torch.float64)
    end = problems.minimise(truth + away, which)
    chosen = Problems(problems.residuals, problems.values[which])
    freedom = problems.residuals.observed.count - truth.shape[1]
    ends = profile(chosen, end.rows, end.squares, border_of(end.squares, freedom, LEVEL, None)).ends
    return (ends[..., 0] <= truth) & (truth <= ends[..., 1]), end.rows


def measure(case: Case, graph: rd.Graph, share: float, repeats: int, seed: int = 0) -> dict[str, Any]:
    """How often the intervals of one equation on one network hold the truth, and how far the values scatter."""
    problems, truth = problems_of(case, graph, share, repeats, seed)
    parts = [
        covered(problems, truth, torch.arange(first, min(first + AT_ONCE, repeats)), seed + first)
        for first in range(0, repeats, AT_ONCE)
    ]
    inside = torch.cat([part for part, _ in parts])
    rows = torch.cat([part for _, part in parts])
    errors = (rows - truth).exp() - 1
    return {
        "share": share,
        "repeats": repeats,
        "inside": {name: int(inside[:, k].sum()) for k, name in enumerate(case.truth)},
        "relative_error": {name: float(errors[:, k].square().mean().sqrt()) for k, name in enumerate(case.truth)},
        "truth": case.truth,
    }


def summary(cells: dict[str, Any]) -> dict[str, Any]:
    """Over all cells and by equation: the coverage with its own interval (Wilson)."""
    found = {}
    for name in ["all", *(case.name for case in FITTED)]:
        chosen = [cell for key, cell in cells.items() if name in ("all", key.split()[0])]
        inside = sum(sum(cell["inside"].values()) for cell in chosen)
        total = sum(cell["repeats"] * len(cell["inside"]) for cell in chosen)
        if total:
            around = binomtest(inside, total).proportion_ci(method="wilson")
            found[name] = {"coverage": inside / total, "low": around.low, "high": around.high, "intervals": total}
    return found


def fit_coverage(
    *, repeats: int = 100, shares: Sequence[float] = (1.0, 0.2), equations: Sequence[str] = (),
    files: Sequence[Path] = (), out: Path = RESULTS / "fit_coverage.json",
) -> None:  # fmt: skip
    """How often intervals of `rd.fit` contain the truth: measures the cells that the file and other FILES lack."""
    cells = {
        key: cell for path in [out, *present(files)] for key, cell in read_json(path, {"cells": {}})["cells"].items()
    }
    names = checked(equations, [case.name for case in FITTED], "equation of this benchmark")
    jobs = [
        (f"{case.name} {name} {share:g}", case, graph, share)
        for share in shares
        for case in FITTED
        for name, graph in networks().items()
        if case.name in names
    ]
    for key, case, graph, share in track([job for job in jobs if job[0] not in cells], description="coverage"):
        cells[key] = measure(case, graph, share, repeats)
        keep(out, cells, repeats)
    keep(out, cells, repeats)


def keep(path: Path, cells: dict[str, Any], repeats: int) -> None:
    """Write the cells with what was run, where, and what they say together."""
    settings = {"level": LEVEL, "noise": NOISE, "times": TIMES}
    found = head(f"python -m studies.benchmarks fit-coverage --repeats {repeats}", "cpu") | settings
    write_json(path, found | {"summary": summary(cells), "cells": cells})
