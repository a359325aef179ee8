"""The paper's appendix on complexity, measured: products, and seconds against edges, channels and steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from rdgraph import Graph, lower
from rdgraph.run.solvers.steppers import fixed_stepper
from rdgraph.vocabulary.methods import find_method
from studies.cells.cell import file_name, grouped_rows, load_set
from studies.paper.drawing import panels_chart, row_curves
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

SHEET = Sheet("complexity")
EDGES, CHANNELS, STEPS = "edges", "channels", "steps"
POWERS: dict[str, int] = SHEET.entries["powers"]
#: Reactions whose cost is the number of edges times dim, according to the appendix.
PLAIN = ("ST", "FB", "FB*")
#: Sparse products that one evaluation needs: A H once, and once more for A A H.
NEEDED = {"BS": 2}
#: How far an exponent may be from the stated one.
SLACK = 0.25
#: The least exponent that shows a device at work rather than its overhead.
FILLED = 0.6
COEFFICIENTS = {"alpha": 0.5, "beta": 0.3}
EULER = find_method("euler")


@dataclass(frozen=True, eq=False)
class Measured:
    """Products of every reaction, seconds of its runs, and the entries of A A of the data sets."""

    products: list[MutableRow]
    seconds: list[MutableRow]
    squares: list[MutableRow]


def measure(run: StudyRun) -> Measured:
    """Count the products of every reaction, time its steps while one number grows, and look at A A of the data sets."""
    s = run.settings
    products = run.part("products", lambda: product_rows(s["reactions"]))
    seconds = [
        row
        for reaction in run.progress(s["reactions"], "reactions")
        for row in run.part(file_name("seconds", reaction), partial(time_rows, str(reaction), s, run.device))
    ]
    squares = run.part("squares", lambda: square_rows(s["sets"])) if s["sets"] else []
    return Measured(products, seconds, squares)


# ---------------------------------------------------------------------- numbers
def random_graph(nodes: int, degree: int) -> Graph:
    """A graph whose nodes have about that degree, the same every time."""
    draw = np.random.default_rng(nodes * 1009 + degree)
    pairs = draw.integers(0, nodes, size=(2, nodes * degree // 2))
    return Graph.from_edges(pairs[:, pairs[0] != pairs[1]], nodes).undirected()


def product_rows(reactions: Sequence[str]) -> list[MutableRow]:
    """How many sparse products an evaluation takes."""
    operator = random_graph(20, 4).operator("symmetric")
    return [
        {"reaction": name, "products": int(lower(name, operator, COEFFICIENTS).plan.products)} for name in reactions
    ]


def time_rows(reaction: str, s: Settings, device: str) -> list[MutableRow]:
    """Seconds of a run of Euler's method while edges, channels or steps grow."""
    built = [
        *((EDGES, (s["nodes"], d, s["width"], s["count"])) for d in s["degrees"]),
        *((CHANNELS, (s["nodes"], s["degree"], w, s["count"])) for w in s["widths"]),
        *((STEPS, (s["nodes"], s["degree"], s["width"], n)) for n in s["counts"]),
    ]
    rows: list[MutableRow] = []
    for against, sizes in built:
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
    """Times of runs of Euler's method after a warm-up, and the graph."""
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


def exponent_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every reaction and number that grows."""
    table: list[MutableRow] = []
    for (reaction, against), group in grouped_rows(rows, "reaction", "against").items():
        points = sorted(group, key=lambda r: float(r["value"]))
        if len(points) < 2:
            continue
        one, two = points[-2:]
        scale = math.log(float(two["value"]) / float(one["value"]))
        columns = {"exponent": ("seconds", "seconds"), "low": ("least", "most"), "high": ("most", "least")}
        table.append({
            "reaction": reaction, "against": against, "from": float(one["value"]), "to": float(two["value"]),
            **{name: math.log(float(two[a]) / float(one[b])) / scale for name, (a, b) in columns.items()},
        })  # fmt: skip
    return table


# ---------------------------------------------------------------------- verdicts
def product_verdicts(counts: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Does BS need A A, and do the others need more than one product?"""
    for row in counts:
        name, products = str(row["reaction"]), int(row["products"])
        needed = NEEDED.get(name, 1)
        answer, s = HOLDS if products == needed else FAILS, "s" * (needed > 1)
        yield SHEET.verdict("products", answer, name=name, needed=needed, s=s, products=products)


def growth_verdicts(exponents: Sequence[MutableRow]) -> Iterator[Verdict]:
    """The stated powers of dim, and linear growth with edges and steps."""
    for row in exponents:
        name, against = str(row["reaction"]), str(row["against"])
        low, middle, high = (float(row[column]) for column in ("low", "exponent", "high"))
        listed = f"exponent {middle:z.2f} ({low:z.2f} to {high:z.2f}) from {row['from']:g} to {row['to']:g}"
        if against == CHANNELS and name in POWERS:
            stated = POWERS[name] + 1
            answer = HOLDS if low > stated - SLACK else FAILS if is_filled(row) and high < stated - SLACK else UNDECIDED
            yield SHEET.verdict("power", answer, name=name, stated=stated, k=stated - 1, listed=listed)
        elif against != CHANNELS or name in PLAIN:
            answer = HOLDS if is_filled(row) and high <= 1 + SLACK else FAILS if low > 1 + SLACK else UNDECIDED
            yield SHEET.verdict("growth", answer, name=name, against=against, listed=listed)


def is_filled(row: MutableRow) -> bool:
    """Whether a device was at work between the two sizes for sure; else its overhead hides what would grow."""
    return float(row["low"]) > FILLED


def square_verdicts(squares: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Would forming A A, as the appendix has it for BS, cost more than two products?"""
    if squares:
        dearer = sum(float(row["cost_of_square"]) > 1 for row in squares)
        listed = ", ".join(f"{row['dataset']} {float(row['cost_of_square']):.1f}" for row in squares)
        answer = HOLDS if dearer == len(squares) else UNDECIDED if dearer else FAILS
        yield SHEET.verdict("squares", answer, listed=listed)


# ---------------------------------------------------------------------- figures and words
def picture(rows: Sequence[MutableRow]) -> Picture | None:
    """Milliseconds of a run while one number grows."""
    timed: list[MutableRow] = [{**row, "milliseconds": 1e3 * float(row["seconds"])} for row in rows]
    panels = row_curves(timed, "against", "reaction", "value", "milliseconds")
    if not panels:
        return None
    chart = panels_chart(panels, "how many", "milliseconds of a run", x_scale="log", y_scale="log")
    return Picture("seconds", chart, SHEET.text("seconds"))


def answer(counts: Sequence[MutableRow], exponents: Sequence[MutableRow]) -> str:
    """Products and the exponent of dim, in one sentence."""
    most = max((int(row["products"]) for row in counts), default=0)
    products = f"{most} sparse product{'s' * (most != 1)}"
    wide = [row for row in exponents if row["against"] == CHANNELS and row["reaction"] in POWERS]
    if not wide or not all(map(is_filled, wide)):
        return SHEET.text("answer, hidden", products=products)
    return SHEET.text("answer", products=products, power=max(float(row["exponent"]) for row in wide))


def findings(measured: Measured, s: Settings) -> Findings:
    """Products and exponents compared with those of the appendix."""
    exponents, squares = exponent_table(measured.seconds), measured.squares
    return Findings(
        results=exponents,
        items=[
            picture(measured.seconds),
            Table("products", measured.products, SHEET.text("products")),
            Table("exponents", exponents, SHEET.text("exponents")),
            Table("squares", squares, SHEET.text("squares")) if squares else None,
        ],
        verdicts=[*product_verdicts(measured.products), *growth_verdicts(exponents), *square_verdicts(squares)],
        answer=answer(measured.products, exponents),
        shows="seconds",
        about=SHEET.text("about", filled=FILLED),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(measure, findings)
