"""The paper's appendix on complexity, measured: products, and seconds against edges, channels and steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rdgraph import Graph, lower
from rdgraph.integrators.steppers import fixed_stepper
from rdgraph.methods.registry import find_method
from studies.cells.cell import file_name, grouped_rows, load_set
from studies.cells.cell_figures import curve_panels
from studies.cells.cell_limits import ANY_SETS, COUNT, NAMED_REACTIONS
from studies.cells.nine_sets import REACTIONS, SETS
from studies.runs.chart import Line
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

EDGES, CHANNELS, STEPS = "edges", "channels", "steps"
#: The appendix: the cost of F, AC and Z has a term dim^k beside the edges, times dim once more.
POWERS = {"F": 1, "AC": 2, "Z": 3}
#: The appendix: reactions whose cost is said to be that of the edges times dim.
PLAIN = ("ST", "FB", "FB*")
#: Sparse products that one evaluation needs: A H once, and once more for A A H.
NEEDED = {"BS": 2}
#: How far an exponent may be from the stated one.
SLACK = 0.25
#: The least exponent that shows a device at work rather than its overhead.
FILLED = 0.6
COEFFICIENTS = {"alpha": 0.5, "beta": 0.3}
EULER = find_method("euler")


def settings(small: bool) -> dict[str, Any]:
    """Sizes: the base, and the numbers that each is changed to."""
    if small:
        return {
            "reactions": ["BS", "F", "AC", "ST"], "nodes": 300, "degree": 8, "width": 16, "count": 4,
            "degrees": [8, 16], "widths": [16, 32], "counts": [4, 8], "repeats": 3, "sets": [],
        }  # fmt: skip
    return {
        "reactions": list(REACTIONS), "nodes": 4000, "degree": 64, "width": 64, "count": 16,
        "degrees": [64, 128, 256, 512], "widths": [64, 128, 256, 512], "counts": [16, 32, 64, 128], "repeats": 9,
        "sets": list(SETS),
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    counts = dict.fromkeys(("nodes", "degree", "width", "count", "repeats"), COUNT)
    grown = dict.fromkeys(("degrees", "widths", "counts"), Limit(least=1, some=False))
    return {**counts, **grown, "reactions": NAMED_REACTIONS, "sets": ANY_SETS}


def run(run: StudyRun) -> None:
    """Count the products of every reaction, time its steps while one number grows, and look at A A of the data sets."""
    counts = run.part("products", lambda: product_rows(run.settings["reactions"]))
    rows: list[MutableRow] = []
    for reaction in run.progress(run.settings["reactions"], "reactions"):
        rows += run.part(file_name("seconds", reaction), partial(time_rows, str(reaction), run.settings, run.device))
    squares = run.part("squares", lambda: square_rows(run.settings["sets"])) if run.settings["sets"] else []
    exponents = exponent_table(rows)
    _draw(run, rows)
    run.table("products", counts, "Sparse products of one evaluation of dH/dt, from the plan of the generated code.")
    run.table("exponents", exponents, EXPONENTS)
    if squares:
        run.table("squares", squares, "Entries of A and of A A: what forming A A would cost in place of two products.")
    for verdict in (*product_verdicts(counts), *growth_verdicts(exponents), *square_verdicts(squares)):
        run.verdict(*verdict)
    run.answer(answer(counts, exponents), "seconds")
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", ABOUT)
    run.results(exponents)


# ---------------------------------------------------------------------- numbers
def random_graph(nodes: int, degree: int) -> Graph:
    """A graph whose nodes have about that degree, the same every time."""
    draw = np.random.default_rng(nodes * 1009 + degree)
    pairs = draw.integers(0, nodes, size=(2, nodes * degree // 2))
    kept = pairs[:, pairs[0] != pairs[1]]
    return Graph.from_edges(kept, nodes).undirected()


def product_rows(reactions: Sequence[str]) -> list[MutableRow]:
    """How many sparse products an evaluation takes."""
    operator = random_graph(20, 4).operator("symmetric")
    return [
        {"reaction": name, "products": int(lower(name, operator, COEFFICIENTS).plan.products)} for name in reactions
    ]


def time_rows(reaction: str, s: Mapping[str, Any], device: str) -> list[MutableRow]:
    """Seconds of a run of Euler's method while edges, channels or steps grow."""
    made = [
        *((EDGES, d, (s["nodes"], d, s["width"], s["count"])) for d in s["degrees"]),
        *((CHANNELS, w, (s["nodes"], s["degree"], w, s["count"])) for w in s["widths"]),
        *((STEPS, n, (s["nodes"], s["degree"], s["width"], n)) for n in s["counts"]),
    ]
    rows: list[MutableRow] = []
    for against, _, sizes in made:
        graph, seconds = run_seconds(reaction, *sizes, s["repeats"], device)
        value = {EDGES: graph.num_edges, CHANNELS: sizes[2], STEPS: sizes[3]}[against]
        rows.append({
            "reaction": reaction, "against": against, "value": int(value), "nodes": sizes[0],
            "seconds": float(np.median(seconds)), "least": min(seconds), "most": float(np.quantile(seconds, 0.75)),
        })  # fmt: skip
    return rows


def run_seconds(
    reaction: str, nodes: int, degree: int, width: int, steps: int, repeats: int, device: str
) -> tuple[Graph, list[float]]:
    """Euler's method with so many steps, timed several times after a warm-up."""
    graph = random_graph(nodes, degree)
    field = lower(reaction, graph.operator("symmetric", dtype=torch.float32, device=device), COEFFICIENTS)
    start = 0.1 * torch.rand(nodes, width, generator=torch.Generator().manual_seed(0)).to(device)
    length = torch.tensor(0.01, device=device)
    stepper = fixed_stepper(field.bind(start).prepared() if field.uses_initial else field.prepared(), EULER)

    @torch.no_grad()
    def once() -> None:
        state = start
        for _ in range(steps):
            state = stepper.advance(state, length).state

    work = recorded(once) if device.startswith("cuda") else once
    return graph, [_timed(work, device) for _ in range(repeats + 1)][1:]


def recorded(work: Callable[[], None]) -> Callable[[], None]:
    """Some work as one CUDA graph, so that it does not wait for the host to launch its kernels one by one."""
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def _timed(work: Callable[[], None], device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    began = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter() - began


def square_rows(sets: Sequence[str]) -> list[MutableRow]:
    """Entries of A and of A A for every data set."""
    from scipy.sparse import csr_array

    rows: list[MutableRow] = []
    for name in sets:
        graph = load_set(name).graph
        source, target = graph.edge_index
        A = csr_array((np.ones(graph.num_edges), (target, source)), shape=(graph.num_nodes, graph.num_nodes))
        entries, squared = int(A.nnz), int((A @ A).nnz)
        rows.append({
            "dataset": name, "entries": entries, "entries_of_square": squared, "ratio": squared / entries,
            "cost_of_square": (1 + squared / entries) / 2, "largest_degree": int(graph.degree.max()),
        })  # fmt: skip
    return rows


EXPONENTS = (
    "How the seconds of a run grow between the two largest values: the exponent of the medians, and the interval that "
    "the fastest and slow (upper quartile) repetitions allow. 1 is linear; less is what overhead and caches hide."
)


def exponent_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every reaction and number that grows."""
    table: list[MutableRow] = []
    for (reaction, against), own in grouped_rows(rows, "reaction", "against").items():
        points = sorted(own, key=lambda r: float(r["value"]))
        if len(points) < 2:
            continue
        one, two = points[-2:]
        scale = math.log(float(two["value"]) / float(one["value"]))
        low, middle, high = (
            math.log(float(two[a]) / float(one[b])) / scale
            for a, b in (("least", "most"), ("seconds", "seconds"), ("most", "least"))
        )
        table.append({
            "reaction": str(reaction), "against": str(against), "from": float(one["value"]), "to": float(two["value"]),
            "exponent": middle, "low": low, "high": high,
        })  # fmt: skip
    return table


# ---------------------------------------------------------------------- verdicts
def product_verdicts(counts: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """Does BS need A A, and do the others need more than one product?"""
    made = []
    for row in counts:
        name, products = str(row["reaction"]), int(row["products"])
        needed = NEEDED.get(name, 1)
        made.append((
            f"An evaluation of {name} takes {needed} sparse product{'s' * (needed > 1)} of |E| dim and forms no A A.",
            HOLDS if products == needed else FAILS, f"{products} in the plan of the generated code",
        ))  # fmt: skip
    return made


def growth_verdicts(exponents: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """The stated powers of dim, and linear growth with edges and steps."""
    made = []
    for row in exponents:
        name, against = str(row["reaction"]), str(row["against"])
        low, high, filled = float(row["low"]), float(row["high"]), is_filled(row)
        told = (
            f"exponent {float(row['exponent']):z.2f} ({low:z.2f} to {high:z.2f}) from {row['from']:g} to {row['to']:g}"
        )
        if against == CHANNELS and name in POWERS:
            stated = POWERS[name] + 1
            answer = HOLDS if low > stated - SLACK else FAILS if filled and high < stated - SLACK else UNDECIDED
            made.append(
                (
                    f"The cost of {name} grows with dim^{stated} (appendix: dim^k dim with k = {stated - 1}).",
                    answer,
                    told,
                )
            )
        elif against != CHANNELS or name in PLAIN:
            answer = HOLDS if filled and high <= 1 + SLACK else FAILS if low > 1 + SLACK else UNDECIDED
            made.append((f"The cost of {name} grows at most in proportion to {against}.", answer, told))
    return made


def is_filled(row: MutableRow) -> bool:
    """Whether a device was at work between the two sizes for sure; else its overhead hides what would grow."""
    return float(row["low"]) > FILLED


def square_verdicts(squares: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """Would forming A A, as the appendix has it for BS, cost more than two products?"""
    if not squares:
        return []
    dearer = [row for row in squares if float(row["cost_of_square"]) > 1]
    told = ", ".join(f"{row['dataset']} {float(row['cost_of_square']):.1f}" for row in squares)
    return [(
        "Forming A A for BS costs more per evaluation than two products with A, on every data set.",
        HOLDS if len(dearer) == len(squares) else FAILS if not dearer else UNDECIDED,
        f"times the cost of two products: {told}",
    )]  # fmt: skip


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, rows: Sequence[MutableRow]) -> None:
    panels: dict[str, list[Line]] = {}
    for (against, reaction), own in grouped_rows(rows, "against", "reaction").items():
        points = sorted(own, key=lambda r: float(r["value"]))
        x, y = (np.array([float(r[c]) for r in points]) for c in ("value", "seconds"))
        panels.setdefault(str(against), []).append(Line(str(reaction), x, 1e3 * y))
    if panels:
        chart = curve_panels(panels, "how many", "milliseconds of a run", x_scale="log", y_scale="log")
        caption = (
            "Milliseconds of a run of Euler's method while edges, channels or steps grow; medians, logarithmic axes."
        )
        run.chart("seconds", chart, caption)


def answer(counts: Sequence[MutableRow], exponents: Sequence[MutableRow]) -> str:
    """Products and the exponent of dim, in one sentence."""
    most = max((int(row["products"]) for row in counts), default=0)
    wide = [row for row in exponents if row["against"] == CHANNELS and row["reaction"] in POWERS]
    told = f"No reaction takes more than {most} sparse product{'s' * (most != 1)} an evaluation"
    if not wide or not all(map(is_filled, wide)):
        return f"{told}; with which power of dim the cost of F, AC and Z grows is hidden by overhead at these sizes."
    power = max(float(row["exponent"]) for row in wide)
    return (
        f"{told}, and the cost of F, AC and Z grows with dim to the power {power:.2f} at most, where the appendix "
        "states 2, 3 and 4."
    )


ABOUT = (
    "Random graphs with the symmetric normalisation, Euler's method in single precision without gradients, on a GPU as "
    f"one recorded graph; one number grows at a time. An exponent that may be {FILLED:g} or less means that the card "
    "or the processor is not filled yet, which decides nothing. The appendix bounds BS by the two-hop edges as well, "
    "which is needed only where A A is formed."
)
