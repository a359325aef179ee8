"""How fast the running half is: sparse products, fields, their gradients, ensembles, several states, scaling.

On a CPU the same cases are timed at smaller sizes, and ratios count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import MissingDependency
from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.kernels import torch_reference as plain
from rdgraph.graphs.operator import Operator, Pattern
from studies.benchmarks.result_files import CASES, head, write_json
from studies.benchmarks.timing import Case, Peer, SpeedRow, copy_bandwidth, median_seconds, replay_seconds

#: Nodes and entries of the graphs whose size the CPU products are taken at.
SIZES = {"Cora": (2708, 10556, 64), "PubMed": (19717, 88648, 64), "Squirrel": (5201, 396846, 256)}
#: One field with one product and one nonlinear term.
SINGLE = ("-alpha*L@H + beta*H*(1 - H**2)", {"alpha": 1.0, "beta": 0.5})


@dataclass(frozen=True)
class Sizes:
    """How large the graphs of a device are: a random one, a lattice, and the largest of the scaling."""

    device: str
    bandwidth: float
    nodes: int
    entries: int
    side: int
    largest: int

    @classmethod
    def of(cls, device: str) -> Sizes:
        sizes = (10**6, 2 * 10**7, 1000, 10**8) if device == "cuda" else (10**4, 2 * 10**5, 100, 10**6)
        return cls(device, copy_bandwidth(device), *sizes)

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    def operator(self) -> Operator:
        return random_operator(self.nodes, self.entries, self.device)

    def floor(self, op: Operator, channels: int, itemsize: int = 4) -> float:
        """Seconds to move every gathered row, the result, and an index and a weight per entry, once."""
        moved = op.num_edges * channels * itemsize + op.num_nodes * channels * itemsize
        return (moved + op.num_edges * (4 + op.weights.element_size())) / self.bandwidth


# ---------------------------------------------------------------------- sample operators
# Operators whose products are timed: random graphs, a local lattice, and the products everybody writes first.


def random_operator(
    nodes: int, entries: int, device: str, dtype: torch.dtype = torch.float32, seed: int = 0
) -> Operator:
    """A random undirected graph with about `entries` stored entries, symmetric normalisation, made on the device."""
    generator = torch.Generator(device).manual_seed(seed)
    ends = torch.randint(nodes, (2, entries // 2), generator=generator, device=device)
    flat = torch.cat([ends[0] * nodes + ends[1], ends[1] * nodes + ends[0]])
    flat = torch.unique(flat)
    return _operator(flat // nodes, flat % nodes, nodes, dtype)


def _operator(rows: Tensor, columns: Tensor, nodes: int, dtype: torch.dtype) -> Operator:
    """Symmetric normalisation of a pattern with unit weights, entries sorted by row."""
    degree = torch.bincount(rows, minlength=nodes)
    indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    root = degree.clamp(min=1).double().rsqrt()
    pattern = Pattern.from_csr(indptr, columns, rows.device)
    return Operator(pattern, (root[rows] * root[columns]).to(dtype), "symmetric")


def lattice(side: int) -> rd.Graph:
    """A local graph: a torus of side x side nodes with 20 neighbours each, its nodes in random order."""
    node = np.arange(side * side)
    row, column = node // side, node % side
    steps = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0) and abs(i) + abs(j) < 4]
    others = [((row + i) % side) * side + (column + j) % side for i, j in steps]
    name = np.random.default_rng(0).permutation(len(node))
    edges = np.stack([name[np.concatenate(others)], name[np.tile(node, len(steps))]])
    return rd.Graph.from_edges(edges, num_nodes=len(node))


def gather_scatter(op: Operator, x: Tensor) -> Callable[[], Tensor]:
    """The product everybody writes first: index_select, times weight, scatter_add."""
    rows, columns = op.pattern.rows.long(), op.pattern.indices.long()
    target = rows[:, None].expand(-1, x.shape[1])

    def product() -> Tensor:
        messages = x.index_select(0, columns) * op.weights[:, None]
        return torch.zeros_like(x).scatter_add_(0, target, messages)

    return product


def torch_csr(op: Operator) -> Tensor:
    """The operator as torch's own sparse matrix."""
    plain._accept_csr()
    pattern = op.pattern
    return torch.sparse_csr_tensor(
        pattern.indptr, pattern.indices, op.weights, size=(op.num_nodes,) * 2, check_invariants=False
    )


def scipy_csr(op: Operator) -> Any:
    """The operator as scipy's sparse matrix."""
    import scipy.sparse

    pattern = op.pattern
    return scipy.sparse.csr_array(
        (op.weights.numpy(), pattern.indices.numpy(), pattern.indptr.numpy()), shape=(op.num_nodes,) * 2
    )


# ---------------------------------------------------------------------- cases
def product_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """The product of a large random graph against the gather floor, torch's CSR product and gather-scatter."""
    op, device = sizes.operator(), sizes.device
    targets = {64: ("<= 1.1", ">= 1.4", ">= 10"), 256: ("<= 1.1", ">= 1.2", "")}
    for channels in (64, 256):
        near, csr, gathered = targets[channels] if sizes.is_gpu else ("", "", "")
        x, matrix = torch.randn(sizes.nodes, channels, device=device), torch_csr(op)
        error = (op @ x - matrix @ x).norm() / (op @ x).norm()
        if not error < 1e-5:
            raise RuntimeError(f"the product differs from torch's by {float(error):.2g}")
        yield Case(
            "product", f"{_size(op)}, d={channels}, float32", partial(op.product, x),
            (
                Peer("gather floor", sizes.floor(op, channels), near),
                Peer("torch CSR", partial(torch.matmul, matrix, x), csr, is_slower=True),
                Peer("gather-scatter", gather_scatter(op, x), gathered, is_slower=True),
            ),
        )  # fmt: skip
    for dtype in (torch.bfloat16, torch.float64):
        other, x = op.to(dtype=dtype), torch.randn(sizes.nodes, 64, device=device).to(dtype)
        floor = Peer("gather floor", sizes.floor(other, 64, x.element_size()))
        yield Case("product", f"{_size(op)}, d=64, {_name(dtype)}", partial(other.product, x), (floor,))


def locality_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """The product of a local graph before and after its nodes are put in a local order."""
    graph = lattice(sizes.side)
    goal = "<= 0.5" if sizes.is_gpu else ""
    for label, one, target in (("as given", graph, ""), ("reordered", graph.permute(graph.local_order()), goal)):
        op = one.operator("symmetric", dtype=torch.float32, device=sizes.device)
        x = torch.randn(op.num_nodes, 64, device=sizes.device)
        what = f"torus of {_count(op.num_nodes)} nodes with 20 neighbours, d=64, {label}"
        yield Case("locality", what, partial(op.product, x), (Peer("gather floor", sizes.floor(op, 64), target),))


def field_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """BS, forward and with its gradients, counted in products."""
    op, device = sizes.operator(), sizes.device
    alpha, beta = (torch.tensor(v, device=device, requires_grad=True) for v in (1.0, 0.5))
    for channels in (64, 256):
        x = torch.randn(sizes.nodes, channels, device=device)
        one = median_seconds(partial(op.product, x), device)
        what = f"BS, {_size(op)}, d={channels}, forward"
        field = rd.lower("BS", op, {"alpha": alpha, "beta": beta})
        yield Case("field", what, partial(_prepared(field), 0.0, x), (Peer("one product", one, "<= 2.1"),))
        state, g = x.clone().requires_grad_(True), torch.randn_like(x)
        call = partial(_gradients, field, state, [alpha, beta], g)
        what = f"{what} and gradients of state, alpha, beta"
        yield Case("field", what, call, (Peer("one product", one, "<= 5"),), with_gradients=True)
        if channels == 64:
            weights = op.weights.clone().requires_grad_(True)
            free = rd.lower("BS", Operator(op.pattern, weights, "symmetric"), {"alpha": alpha, "beta": beta})
            call = partial(_gradients, free, state, [alpha, beta, weights], g)
            yield Case("field", f"{what} and edge weights", call, (Peer("one product", one),), with_gradients=True)


def _gradients(field: rd.run.VectorField, state: Tensor, others: list[Tensor], g: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(field(0.0, state), [state, *others], g)


def _prepared(field: rd.run.VectorField) -> Callable[..., Tensor]:
    with torch.no_grad():
        return field.prepared()


def ensemble_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """Ten members with their own weights on a graph of Cora's size: one BS evaluation."""
    op, members, device = graphs["Cora"], 10, sizes.device
    weights = op.weights * torch.rand(members, op.num_edges, device=device)
    beta = torch.rand(members, device=device)
    field = rd.lower("BS", op.with_weights(weights), {"alpha": 1.0, "beta": beta}, batch=(members,))
    alone = rd.lower("BS", op.with_weights(weights[0]), {"alpha": 1.0, "beta": beta[0]})
    x = torch.randn(members, op.num_nodes, 64, device=device)
    how = "from a CUDA graph" if sizes.is_gpu else "called"
    peers: tuple[Peer, ...] = (Peer("one member", partial(_prepared(alone), 0.0, x[0].contiguous())),)
    peers += (Peer("a budget of", 30e-6, "<= 1"),) if sizes.is_gpu else ()
    what = f"BS, Cora-sized, {members} members with their own weights, d=64, {how}"
    clock = replay_seconds if sizes.is_gpu else None
    yield Case("ensemble", what, partial(_prepared(field), 0.0, x), peers, clock=clock)


def coupled_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """Two fields of 32 channels against one field of 64, on one operator."""
    op = sizes.operator()
    x = torch.randn(op.num_nodes, 64, device=sizes.device)
    single = partial(_prepared(rd.lower(SINGLE[0], op, SINGLE[1])), 0.0, x)
    for case in CASES["coupled"]:
        field = _prepared(rd.lower(case["text"], op, case["values"]))
        peer = Peer("Allen-Cahn, 64 channels,", single, "<= 1.1" if sizes.is_gpu else "")
        what = f"{case['name']}, {_size(op)}, two fields of 32 channels"
        yield Case("fields", what, partial(field, 0.0, x), (peer,), rounds=3)


def huge_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """One evaluation of BS on a graph that fills the GPU."""
    if not sizes.is_gpu:
        return
    nodes, entries = 10**8, 10**9
    for dtype in (torch.bfloat16, torch.float32):
        torch.cuda.empty_cache()
        op = _poisson_operator(nodes, entries, sizes.device, dtype)
        field = _prepared(rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5}))
        x = torch.randn(nodes, 16, device=sizes.device, dtype=dtype)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        size = f"BS, {_size(op)}, d=16, {_name(dtype)}"
        floor = Peer("two gather floors", 2 * sizes.floor(op, 16, x.element_size()))
        clock = partial(median_seconds, device=sizes.device, seconds=1.0)
        yield Case("size", partial(_with_peak, size), partial(field, 0.0, x), (floor,), clock=clock)
        del op, field, x


def _with_peak(size: str) -> str:
    return f"{size}, {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at the peak"


def _poisson_operator(nodes: int, entries: int, device: str, dtype: torch.dtype) -> Operator:
    """Rows of Poisson length with random neighbours, row normalisation."""
    generator = torch.Generator(device).manual_seed(0)
    degree = torch.poisson(torch.full((nodes,), entries / nodes, device=device), generator=generator).int()
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device=device)
    torch.cumsum(degree, 0, out=indptr[1:])
    count = int(indptr[-1])
    indices = torch.randint(nodes, (count,), generator=generator, device=device, dtype=torch.int32)
    weights = torch.repeat_interleave((1 / degree.clamp(min=1)).to(dtype), degree, output_size=count)
    return Operator(Pattern.from_csr(indptr, indices, device), weights, "row")


def cpu_cases(sizes: Sizes, graphs: Mapping[str, Operator]) -> Iterator[Case]:
    """Products on the CPU against gather-scatter and scipy."""
    if sizes.is_gpu:
        return
    for name, op in graphs.items():
        channels = SIZES[name][2]
        x = torch.randn(op.num_nodes, channels)
        peers = (
            Peer("gather-scatter", gather_scatter(op, x), ">= 2.5", is_slower=True),
            Peer("scipy CSR", partial(scipy_csr(op).__matmul__, x.numpy()), "<= 1.5"),
        )
        what = f"{name}-sized, {_size(op)}, d={channels}, float32"
        yield Case("cpu product", what, partial(op.product, x), peers, rounds=5)


#: What is timed, topic by topic; the cases of a topic share their graph, which is freed after it.
TOPICS = (
    product_cases, locality_cases, field_cases, ensemble_cases, coupled_cases, huge_cases, cpu_cases,
)  # fmt: skip


def _size(op: Operator) -> str:
    return f"{_count(op.num_nodes)} nodes, {_count(op.num_edges)} entries"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _count(number: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def scaling(device: str, largest: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of one product (or field) as edges, channels, members and products grow."""
    found: dict[str, list[tuple[float, float]]] = {"edges": [], "channels": [], "members": [], "products": []}

    def timed(axis: str, value: int, function: Callable[[], object]) -> None:
        with torch.no_grad():
            found[axis].append((value, median_seconds(function, device, 0.15, 50)))

    entries = 10_000
    while entries <= largest:
        op = random_operator(max(entries // 20, 10), entries, device)
        x = torch.randn(op.num_nodes, 16, device=device)
        timed("edges", op.num_edges, partial(op.product, x))
        entries *= 10
    size = largest // 20
    op = random_operator(size // 20, size, device)
    for channels in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        x = torch.randn(op.num_nodes, channels, device=device)
        timed("channels", channels, partial(op.product, x))
    for members in (1, 2, 4, 8, 16, 32, 64):
        weights = torch.rand(members, op.num_edges, device=device)
        own, x = op.with_weights(weights), torch.randn(members, op.num_nodes, 16, device=device)
        timed("members", members, partial(own.product, x))
    x = torch.randn(op.num_nodes, 16, device=device)
    for power in (1, 2, 3, 4, 6, 8):
        field = rd.lower(f"A**{power}@H", op, {}).prepared()
        timed("products", power, partial(field, 0.0, x))
    return found


# ---------------------------------------------------------------------- programs
def measure_cases(makers: tuple[Callable[..., Iterator[Case]], ...], sizes: Sizes, graphs: Any) -> list[SpeedRow]:
    """The rows of cases, printed as they come."""
    rows = []
    for case in (case for make in makers for case in make(sizes, graphs)):
        for row in case.rows(sizes.device):
            rows.append(row)
            print(f"{row.topic:12s} {row.what}: {row.seconds * 1e3:.3f} ms")
            print(f"{'':12s} {row.ratio:.2f} against {row.peer} {row.target}")
    return rows


def sample_graphs(folder: Path | None, device: str) -> dict[str, Operator]:
    """Operators of three public graphs from a folder, or random ones of their size."""
    graphs = {}
    for name, (nodes, entries, _) in SIZES.items():
        file = folder / f"{name.lower()}.npz" if folder else None
        if file is not None and file.exists():
            graph = rd.Graph.from_edges(np.load(file)["edge_index"], num_nodes=nodes)
            graphs[name] = graph.operator("symmetric", dtype=torch.float32, device=device)
        else:
            graphs[name] = random_operator(nodes, entries, device)
    return graphs


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def performance(*, command: str, device: str = "", graphs: Path | None = None, out: Path | None = None) -> None:
    """How fast the running half is: products, fields, gradients, ensembles, scaling, against peers in the same run."""
    device = device or default_device()
    if device == "cuda" and not ops.has_triton():
        raise MissingDependency("measuring on a CUDA device needs Triton; install rdgraph[triton]")
    torch.manual_seed(0)
    sizes = Sizes.of(device)
    rows = measure_cases(TOPICS, sizes, sample_graphs(graphs, device))
    found = head(command, device) | {
        "copy_bandwidth": sizes.bandwidth, "rows": [asdict(row) for row in rows],
        "scaling": scaling(device, sizes.largest),
        "graphs": "as published" if graphs else "random, of the published size",
    }  # fmt: skip
    if out:
        write_json(out, found)


def several_fields(*, command: str, device: str = "", out: Path | None = None) -> None:
    """How fast the fields of several states are: one evaluation against one field with as many channels in all."""
    device = device or default_device()
    torch.manual_seed(0)
    rows = measure_cases((coupled_cases,), Sizes.of(device), {})
    if out:
        write_json(out, head(command, device) | {"rows": [asdict(row) for row in rows]})
