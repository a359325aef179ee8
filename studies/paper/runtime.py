"""Figure 9 of the paper: milliseconds of an epoch on Cora at T = 3, step 1, scalar beta, original adjacency."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from gread.datasets.node_data import NodeData
from gread.models.batched_model import count_parameters
from gread.settings.config import Config
from gread.settings.model_records import find_model, models
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from gread.training.planner import estimate
from studies.cells.cell import file_name, grouped_rows, load_set
from studies.oversmoothing.networks_part import fitting_config
from studies.paper.drawing import panels_chart
from studies.paper.runner import Findings, Passage, Picture, Settings, Sheet, Table, Verdict, attempt, make_run
from studies.runs.chart import Bar, Bars, Line
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

DIFFUSION = "GRAND"


def published_models() -> list[str]:
    """The networks with a row in the paper, but for the one that is diffusion alone."""
    return [name for name, record in models.items() if record.published and name != "grand"]


SHEET = Sheet("runtime", lists={"published models": published_models})
#: Times an epoch of GRAND that the paper's "little larger" may be.
LITTLE = 1.5
#: The graph of the figure.
PRINTED = "cora"
#: Epochs before the clock runs: the first ones make CUDA graphs.
WARM = 3
SOLVERS = ("euler", "rk4")


@dataclass(frozen=True, eq=False)
class Measured:
    """A row for every network and solver, one for every point of the growth, and what could not be timed."""

    epochs: list[MutableRow]
    growth: list[MutableRow]
    failed: list[str]


def measure(run: StudyRun) -> Measured:
    """Time every network with both solvers, then the growth with T, width and members."""
    s = run.settings
    rows, failed = attempt(
        run, "networks",
        [
            (name, file_name(name, solver or "no_solver"), partial(timed_row, name, solver, s, run.device))
            for name, solver in subjects(s)
        ],
    )  # fmt: skip
    growth = [
        row
        for kind, value, config, members in run.progress(growing(s), "growth")
        for row in run.part(
            file_name("growth", kind, f"{value:g}"), partial(growth_row, kind, value, config, members, s, run.device)
        )
    ]
    return Measured(rows, growth, failed)


# ---------------------------------------------------------------------- what is timed
def subjects(s: Settings) -> list[tuple[str, str]]:
    """Reactions and plain diffusion with both solvers; other networks as they are."""
    flows = [*(f"GREAD-{reaction}" for reaction in s["reactions"]), DIFFUSION]
    return [*((name, solver) for name in flows for solver in SOLVERS), *((name, "") for name in s["models"])]


def configured(name: str, solver: str, s: Settings) -> Config:
    """The setting of Figure 9: T = 3, step 1, scalar coefficients, the original adjacency.

    >>> found = configured("GREAD-BS", "euler", settings(False)).model
    >>> found.time, found.step, found.beta, found.adjacency
    (3.0, 1.0, 'scalar', 'original')
    """
    flow = {"time": s["time"], "step": s["step"], "method": solver, "adjacency": "original", "hidden": s["hidden"]}
    if name.startswith("GREAD-"):
        return Config().updated({**flow, "reaction": name.removeprefix("GREAD-"), "alpha": "scalar", "beta": "scalar"})
    if name == DIFFUSION:
        return Config.of("grand").updated(flow)
    return fitting_config(name, {"hidden": s["hidden"]})


def growing(s: Settings) -> list[tuple[str, float, Config, int]]:
    """GREAD-BS with one number changed: T, the channels, or the members of a batch."""
    base = configured("GREAD-BS", "euler", s)
    return [
        *(("T", t, base.updated({"time": t}), 1) for t in s["times"]),
        *(("channels", float(d), base.updated({"hidden": d}), 1) for d in s["widths"]),
        *(("members", float(m), base, m) for m in s["members"]),
    ]


def clocked(config: Config, members: int, s: Settings, device: str) -> MutableRow:
    """The median time of an epoch and its extremes in milliseconds, and the memory."""
    times, peak = epoch_times(load_set(s["dataset"]), config, members, s["epochs"], s["repeats"], device)
    return {
        "ms_per_epoch": 1e3 * float(np.median(times)), "least": 1e3 * min(times), "most": 1e3 * max(times),
        "megabytes": peak / 1e6,
    }  # fmt: skip


def timed_row(name: str, solver: str, s: Settings, device: str) -> list[MutableRow]:
    """One network: its times, memory and parameters."""
    data, config = load_set(s["dataset"]), configured(name, solver, s)
    title = name if name.startswith("GREAD-") or name == DIFFUSION else find_model(name).title
    size = count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)
    return [{"method": title, "solver": solver or "-", **clocked(config, 1, s, device), "parameters": size}]


def growth_row(kind: str, value: float, config: Config, members: int, s: Settings, device: str) -> list[MutableRow]:
    """One point of a growth."""
    return [{"against": kind, "value": value, **clocked(config, members, s, device)}]


def epoch_times(
    data: NodeData, config: Config, members: int, epochs: int, repeats: int, device: str
) -> tuple[list[float], float]:
    """Seconds of an epoch (training step and evaluation) in every repetition, and bytes of memory.

    On a card the bytes are the largest that were allocated, elsewhere what the planner estimates for the members.
    """
    total = WARM + epochs * repeats
    names = {f.name for f in fields(config.training)}
    built = config.updated({"epochs": total, **({"patience": 0} if "patience" in names else {})})
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    trials = [Trial(built, k % data.num_splits, k // data.num_splits) for k in range(members)]
    ensemble = Ensemble(data, trials, device=device, keep_best=False)
    ensemble.advance(WARM)
    done, times = ensemble.epoch, []  # reading the epoch waits for the device
    for _ in range(repeats):
        began = time.perf_counter()
        ensemble.advance(epochs)
        reached = ensemble.epoch
        times.append((time.perf_counter() - began) / max(1, reached - done))
        done = reached
    if device.startswith("cuda"):
        return times, float(torch.cuda.max_memory_allocated(device))
    return times, float(members * estimate(ensemble).total)


# ---------------------------------------------------------------------- verdicts
def elsewhere(dataset: str) -> str:
    """The graph of a statement that is not about the graph of the figure, as words.

    >>> elsewhere("karate"), elsewhere("cora")
    (' on karate', '')
    """
    return "" if dataset == PRINTED else f" on {dataset}"


def _within(bounds: Sequence[tuple[float, float]], most: float) -> str:
    """Whether ratios are at most so much: each is known between its two bounds."""
    if all(high <= most for _, high in bounds):
        return HOLDS
    return FAILS if any(low > most for low, _ in bounds) else UNDECIDED


def _ratio(row: MutableRow, other: MutableRow) -> tuple[float, float]:
    """The least and largest ratio of two times."""
    return float(row["least"]) / float(other["most"]), float(row["most"]) / float(other["least"])


def cost_verdicts(rows: Sequence[MutableRow], suffix: str = "") -> Iterator[Verdict]:
    """Does a reaction cost little more than diffusion alone?"""
    for solver in SOLVERS:
        ours = [r for r in rows if str(r["method"]).startswith("GREAD-") and r["solver"] == solver]
        for plain in [r for r in rows if ours and (r["method"], r["solver"]) == (DIFFUSION, solver)]:
            base = float(plain["ms_per_epoch"])
            listed = ", ".join(f"{r['method']} {float(r['ms_per_epoch']) / base:.2f}" for r in ours)
            answer = _within([_ratio(r, plain) for r in ours], LITTLE)
            yield SHEET.verdict("cost", answer, solver=solver, place=suffix, little=LITTLE, base=base, listed=listed)


def slope(rows: Sequence[MutableRow]) -> float:
    """The exponent of the growth between the last two values; nan for fewer.

    >>> slope([{"value": 1.0, "ms_per_epoch": 3.0}, {"value": 2.0, "ms_per_epoch": 6.0}])
    1.0
    """
    points = sorted((float(r["value"]), float(r["ms_per_epoch"])) for r in rows)
    if len(points) < 2:
        return math.nan
    (a, one), (b, other) = points[-2:]
    return math.log(other / one) / math.log(b / a)


def growth_verdicts(growth: Sequence[MutableRow], suffix: str = "") -> Iterator[Verdict]:
    """Does an epoch cost at most in proportion to T, channels and members?"""
    for (kind,), group in grouped_rows(growth, "against").items():
        ours = sorted(group, key=lambda r: float(r["value"]))
        if len(ours) > 1:
            ratio, (low, high) = float(ours[-1]["value"]) / float(ours[0]["value"]), _ratio(ours[-1], ours[0])
            evidence = SHEET.text("slope", low=low, high=high, ratio=ratio, kind=kind, slope=slope(ours))
            yield f"An epoch{suffix} costs at most in proportion to {kind}.", _within([(low, high)], ratio), evidence


# ---------------------------------------------------------------------- figures and words
def pictures(measured: Measured, dataset: str) -> Iterator[Picture]:
    """The networks from the fastest to the slowest, and the growth."""
    order = sorted(measured.epochs, key=lambda r: float(r["ms_per_epoch"]))
    if order:
        bars = [
            Bar(
                f"{r['method']}, {r['solver']}" if r["solver"] != "-" else str(r["method"]),
                float(r["ms_per_epoch"]), float(r["least"]), float(r["most"]), SHEET.entries["solvers"][r["solver"]],
            )
            for r in order
        ]  # fmt: skip
        chart = Bars(bars, "milliseconds of an epoch", is_log=True)
        yield Picture("epochs", chart, SHEET.text("epochs drawn", dataset=dataset), order)
    panels = {}
    for (kind,), group in grouped_rows(measured.growth, "against").items():
        panels[str(kind)] = [Line.of("GREAD-BS, Euler", group, "value", "ms_per_epoch", low="least", high="most")]
    if panels:
        grown = panels_chart(panels, "value", "milliseconds of an epoch", x_scale="log")
        yield Picture("growth", grown, SHEET.text("growth drawn", dataset=dataset))


def answer(rows: Sequence[MutableRow], suffix: str = "") -> str:
    """BS against plain diffusion with both solvers, in one sentence."""
    result = {(str(r["method"]), str(r["solver"])): float(r["ms_per_epoch"]) for r in rows}
    pairs = {solver: (result.get(("GREAD-BS", solver)), result.get((DIFFUSION, solver))) for solver in SOLVERS}
    parts = [
        f"{ours:.2f} ms with {solver} ({ours / plain:.2f} times GRAND)"
        for solver, (ours, plain) in pairs.items()
        if ours is not None and plain is not None
    ]
    return SHEET.text("answer", place=suffix, times=" and ".join(parts) or "a time that was not measured")


def about(s: Settings) -> str:
    """What was timed, on which graph and how often."""
    other = "" if s["dataset"] == PRINTED else f" Figure 9 is about {PRINTED}; judged here is {s['dataset']}."
    return SHEET.text("about", **s, other=other)


def findings(measured: Measured, s: Settings) -> Findings:
    """Times of the networks, and their growth."""
    dataset, suffix = str(s["dataset"]), elsewhere(s["dataset"])
    return Findings(
        results=measured.epochs,
        items=[
            *pictures(measured, dataset),
            Table("epochs", measured.epochs, SHEET.text("epochs", dataset=dataset)),
            Table("growth", measured.growth, SHEET.text("growth", dataset=dataset)),
            Passage("Not timed", "; ".join(measured.failed)) if measured.failed else None,
        ],
        verdicts=[*cost_verdicts(measured.epochs, suffix), *growth_verdicts(measured.growth, suffix)],
        answer=answer(measured.epochs, suffix),
        shows="epochs",
        about=about(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(measure, findings)
