"""Figure 9 of the paper: milliseconds of an epoch on Cora at T = 3, step 1, scalar beta, original adjacency."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gread.datasets.node_data import NodeData
from gread.models.parameter_count import count_parameters
from gread.settings.config import Config
from gread.settings.model_records import find_model, models
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from gread.training.planner import estimate
from rdgraph.errors import RdgraphError
from studies.cells.cell import file_name, load_set
from studies.cells.cell_figures import curve_panels
from studies.cells.cell_limits import ANY_MODELS, ANY_REACTIONS, COUNT
from studies.cells.nine_sets import REACTIONS
from studies.oversmoothing.network_states import fitting_config
from studies.runs.bars import Bar, Bars
from studies.runs.chart import Line
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import UNDECIDED, agreed

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

DIFFUSION = "GRAND"
#: Times an epoch of GRAND that the paper's "little larger" may be, and steps that a cost may grow by when another
#: number doubles, to be called linear.
LITTLE = 1.5
#: The graph of the figure.
PRINTED = "cora"
#: Epochs before the clock runs: the first ones make CUDA graphs.
WARM = 3
SOLVERS = ("euler", "rk4")
SOLVER_WORDS = {"euler": "Euler", "rk4": "RK4", "-": "no equation"}


def settings(small: bool) -> dict[str, Any]:
    """The setting of the figure, and what the cost is measured against."""
    shared: dict[str, Any] = {"time": 3.0, "step": 1.0, "hidden": 64, "reactions": list(REACTIONS)}
    if small:
        return {
            **shared, "dataset": "karate", "hidden": 8, "reactions": ["BS"], "models": ["mlp", "gcn"], "repeats": 2,
            "epochs": 3, "times": [1.0, 2.0], "widths": [4, 8], "members": [1, 2],
        }  # fmt: skip
    known = [name for name, record in models.items() if record.published and name != "grand"]
    return {
        **shared, "dataset": PRINTED, "models": known, "repeats": 5, "epochs": 20,
        "times": [1.0, 2.0, 4.0, 8.0, 16.0], "widths": [16, 32, 64, 128, 256], "members": [1, 2, 5, 10, 50],
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    values = Limit(above=0, some=False)
    counts = dict.fromkeys(("hidden", "repeats", "epochs"), COUNT)
    grown = dict.fromkeys(("times", "widths", "members"), values)
    positive = dict.fromkeys(("time", "step"), Limit(above=0))
    return {**counts, **grown, **positive, "dataset": Limit(), "reactions": ANY_REACTIONS, "models": ANY_MODELS}


def run(run: StudyRun) -> None:
    """Time every network with both solvers, then the growth with T, width and members."""
    s = run.settings
    rows: list[MutableRow] = []
    failed = []
    for name, solver in run.progress(subjects(s), "networks"):
        config = configured(name, solver, s)
        try:
            found = run.part(
                file_name(name, solver or "no_solver"),
                partial(timed_row, name, solver, config, s, run.device, members=1),
            )
        except (RdgraphError, RuntimeError) as problem:
            failed.append(f"{name}: {str(problem).partition(chr(10))[0]}")
            continue
        rows += found
    growth = [
        row
        for kind, value, config, members in run.progress(growing(s), "growth")
        for row in run.part(
            file_name("growth", kind, f"{value:g}"), partial(growth_row, kind, value, config, members, s, run.device)
        )
    ]
    _draw(run, rows, growth, str(s["dataset"]))
    run.table("epochs", rows, f"Milliseconds of an epoch of one network on {s['dataset']}, {CAPTION}")
    caption = f"The cost of an epoch of GREAD-BS on {s['dataset']} with Euler's method against T, channels and members."
    run.table("growth", growth, caption)
    if failed:
        run.say("Not timed", "; ".join(failed))
    place = elsewhere(s["dataset"])
    for verdict in (*cost_verdicts(rows, place), *growth_verdicts(growth, place)):
        run.verdict(*verdict)
    run.answer(answer(rows, place), "epochs")
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", about(s))
    run.results(rows)


# ---------------------------------------------------------------------- what is timed
def subjects(s: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Reactions and plain diffusion with both solvers; other networks as they are."""
    own = [(f"GREAD-{reaction}", solver) for reaction in s["reactions"] for solver in SOLVERS]
    return [*own, *((DIFFUSION, solver) for solver in SOLVERS), *((name, "") for name in s["models"])]


def configured(name: str, solver: str, s: Mapping[str, Any]) -> Config:
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


def growing(s: Mapping[str, Any]) -> list[tuple[str, float, Config, int]]:
    """GREAD-BS with one number changed: T, the channels, or the members of a batch."""
    base = configured("GREAD-BS", "euler", s)
    return [
        *(("T", t, base.updated({"time": t}), 1) for t in s["times"]),
        *(("channels", float(d), base.updated({"hidden": d}), 1) for d in s["widths"]),
        *(("members", float(m), base, m) for m in s["members"]),
    ]


def timed_row(
    name: str, solver: str, config: Config, s: Mapping[str, Any], device: str, *, members: int
) -> list[MutableRow]:
    """One network: the median time of an epoch and its extremes, bytes and parameters."""
    data = load_set(s["dataset"])
    times, peak = epoch_times(data, config, members, s["epochs"], s["repeats"], device)
    title = name if name.startswith("GREAD-") or name == DIFFUSION else find_model(name).title
    return [{
        "method": title, "solver": solver or "-", "ms_per_epoch": 1e3 * float(np.median(times)),
        "least": 1e3 * min(times), "most": 1e3 * max(times), "megabytes": peak / 1e6,
        "parameters": count_parameters(
            config.model, data.graph, features=data.num_features, classes=data.num_classes
        ),
    }]  # fmt: skip


def growth_row(
    kind: str, value: float, config: Config, members: int, s: Mapping[str, Any], device: str
) -> list[MutableRow]:
    """One point of a growth."""
    data = load_set(s["dataset"])
    times, peak = epoch_times(data, config, members, s["epochs"], s["repeats"], device)
    return [{
        "against": kind, "value": value, "ms_per_epoch": 1e3 * float(np.median(times)), "least": 1e3 * min(times),
        "most": 1e3 * max(times), "megabytes": peak / 1e6,
    }]  # fmt: skip


def epoch_times(
    data: NodeData, config: Config, members: int, epochs: int, repeats: int, device: str
) -> tuple[list[float], float]:
    """Seconds of an epoch (training step and evaluation) in every repetition, and bytes of memory.

    On a card the bytes are the largest that were allocated, elsewhere what the planner estimates for the members.
    """
    total = WARM + epochs * repeats
    names = {f.name for f in fields(config.training)}
    made = config.updated({"epochs": total, **({"patience": 0} if "patience" in names else {})})
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    trials = [Trial(made, k % data.num_splits, k // data.num_splits) for k in range(members)]
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
CAPTION = (
    "training step and evaluation: median, least and most over the repetitions; memory in megabytes; parameters. "
    "Networks without an equation have no solver and their own numbers of layers."
)


def elsewhere(dataset: str) -> str:
    """The graph of a statement that is not about the graph of the figure, as words.

    >>> elsewhere("karate"), elsewhere("cora")
    (' on karate', '')
    """
    return "" if dataset == PRINTED else f" on {dataset}"


def cost_verdicts(rows: Sequence[MutableRow], place: str = "") -> list[tuple[str, str, str]]:
    """Does a reaction cost little more than diffusion alone?"""
    made = []
    for solver in SOLVERS:
        plain = next((r for r in rows if (r["method"], r["solver"]) == (DIFFUSION, solver)), None)
        own = [r for r in rows if str(r["method"]).startswith("GREAD-") and r["solver"] == solver]
        if plain is None or not own:
            continue
        bounds = [(float(r["least"]) / float(plain["most"]), float(r["most"]) / float(plain["least"])) for r in own]
        sure = np.array([high <= LITTLE for _, high in bounds])
        lost = np.array([low > LITTLE for low, _ in bounds])
        answer = agreed(sure) if sure.all() else "fails" if lost.any() else UNDECIDED
        told = ", ".join(f"{r['method']} {float(r['ms_per_epoch']) / float(plain['ms_per_epoch']):.2f}" for r in own)
        made.append((
            f"With {solver} the training time of GREAD{place} is little larger than that of GRAND: at most {LITTLE:g} "
            "times.",
            answer, f"times an epoch of GRAND, {float(plain['ms_per_epoch']):.2f} ms: {told}",
        ))  # fmt: skip
    return made


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


def growth_verdicts(growth: Sequence[MutableRow], place: str = "") -> list[tuple[str, str, str]]:
    """Does an epoch cost at most in proportion to T, channels and members?"""
    made = []
    for kind in dict.fromkeys(str(r["against"]) for r in growth):
        own = sorted((r for r in growth if r["against"] == kind), key=lambda r: float(r["value"]))
        if len(own) < 2:
            continue
        ratio = float(own[-1]["value"]) / float(own[0]["value"])
        low = float(own[-1]["least"]) / float(own[0]["most"])
        high = float(own[-1]["most"]) / float(own[0]["least"])
        answer = "holds" if high <= ratio else "fails" if low > ratio else UNDECIDED
        made.append((
            f"An epoch{place} costs at most in proportion to {kind}.", answer,
            f"{low:.2f} to {high:.2f} times the cost at {ratio:g} times {kind}; the exponent between the last two "
            f"values is {slope(own):z.2f}",
        ))  # fmt: skip
    return made


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, rows: Sequence[MutableRow], growth: Sequence[MutableRow], dataset: str) -> None:
    order = sorted(rows, key=lambda r: float(r["ms_per_epoch"]))
    if order:
        bars = [
            Bar(
                _title(r), float(r["ms_per_epoch"]), float(r["least"]), float(r["most"]), SOLVER_WORDS[str(r["solver"])]
            )
            for r in order
        ]
        caption = f"Milliseconds of an epoch of one network on {dataset}: median, and from the least to the most."
        run.chart("epochs", Bars(bars, "milliseconds of an epoch", is_log=True), caption, order)
    panels = {}
    for kind in dict.fromkeys(str(r["against"]) for r in growth):
        own = sorted((r for r in growth if r["against"] == kind), key=lambda r: float(r["value"]))
        x, y, low, high = (np.array([float(r[c]) for r in own]) for c in ("value", "ms_per_epoch", "least", "most"))
        panels[kind] = [Line("GREAD-BS, Euler", x, y, low=low, high=high)]
    if panels:
        chart = curve_panels(panels, "value", "milliseconds of an epoch", x_scale="log")
        words = f"The cost of an epoch on {dataset} against T, channels and members of a batch"
        run.chart("growth", chart, f"{words}; from the least to the most.")


def _title(row: MutableRow) -> str:
    return f"{row['method']}, {row['solver']}" if row["solver"] != "-" else str(row["method"])


def answer(rows: Sequence[MutableRow], place: str = "") -> str:
    """BS against plain diffusion with both solvers, in one sentence."""
    found = {(str(r["method"]), str(r["solver"])): float(r["ms_per_epoch"]) for r in rows}
    parts = [
        f"{found['GREAD-BS', solver]:.2f} ms with {solver} ({found['GREAD-BS', solver] / found[DIFFUSION, solver]:.2f} "
        "times GRAND)"
        for solver in SOLVERS
        if ("GREAD-BS", solver) in found and (DIFFUSION, solver) in found
    ]
    return f"An epoch of GREAD-BS{place} takes {' and '.join(parts) or 'a time that was not measured'}."


def about(s: Mapping[str, Any]) -> str:
    """What was timed, on which graph and how often."""
    other = "" if s["dataset"] == PRINTED else f" Figure 9 is about {PRINTED}; judged here is {s['dataset']}."
    return (
        f"One network at a time on {s['dataset']}, as the paper times them, in single precision: T = {s['time']:g}, "
        f"step {s['step']:g}, {s['hidden']} channels, scalar coefficients, the original adjacency; an epoch is a "
        f"training step and an evaluation, timed over {s['epochs']} epochs, {s['repeats']} times. GRAND is diffusion "
        "alone with the same settings, original adjacency included. Figure 9 prints bars without numbers, so that only "
        f"its sentence is judged.{other} Here many trainings share a batch, whose cost grows more slowly than the "
        "number of its members: see the growth."
    )
