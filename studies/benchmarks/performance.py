"""How fast the running half is: sparse products, fields, their gradients, scaling. Run on a GPU or a CPU.

`python -m studies.benchmarks.performance --device cuda --out docs/performance.json` measures; `python -m
studies.benchmarks.speed_page` turns the numbers into docs/performance.md. On a CPU the same rows are taken at smaller
sizes, and ratios count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.graphs.operator import Operator, Pattern
from rdgraph.kernels import operations as ops
from studies.benchmarks.coupled_fields import coupled_rows
from studies.benchmarks.sample_operators import gather_scatter, lattice, random_operator, scipy_csr, torch_csr
from studies.benchmarks.scaling import scaling
from studies.benchmarks.speed_rows import SpeedRow, environment
from studies.benchmarks.timing import copy_bandwidth, median_seconds, replay_seconds
from studies.runs.boundary import run_program

#: Nodes and entries of the graphs whose size the CPU products are taken at.
SIZES = {"Cora": (2708, 10556, 64), "PubMed": (19717, 88648, 64), "Squirrel": (5201, 396846, 256)}


# ---------------------------------------------------------------------- rows
def product_rows(device: str, bandwidth: float, nodes: int, entries: int) -> Iterator[SpeedRow]:
    """The product of a large random graph against the gather floor, torch's CSR product and gather-scatter."""
    op = random_operator(nodes, entries, device)
    targets = {64: ("<= 1.1", ">= 1.4", ">= 10"), 256: ("<= 1.1", ">= 1.2", "")}
    for channels in (64, 256):
        near, csr, gathered = targets[channels] if device == "cuda" else ("", "", "")
        x = torch.randn(nodes, channels, device=device)
        size = f"{_count(nodes)} nodes, {_count(op.num_edges)} entries, d={channels}, float32"
        own = median_seconds(partial(op.product, x), device)
        floor = gather_floor(op, channels, 4, bandwidth)
        yield SpeedRow.against("product", size, own, f"gather floor {floor * 1e3:.2f} ms", own / floor, near)
        matrix = torch_csr(op)
        peer = median_seconds(partial(torch.matmul, matrix, x), device)
        yield SpeedRow.against("product", size, own, f"torch CSR {peer * 1e3:.2f} ms", peer / own, csr)
        peer = median_seconds(gather_scatter(op, x), device)
        yield SpeedRow.against("product", size, own, f"gather-scatter {peer * 1e3:.2f} ms", peer / own, gathered)
        check = (op @ x - matrix @ x).norm() / (op @ x).norm()
        if not check < 1e-5:
            raise RuntimeError(f"the product differs from torch's by {float(check):.2g}")
    for dtype in (torch.bfloat16, torch.float64):
        other, x = op.to(dtype=dtype), torch.randn(nodes, 64, device=device).to(dtype)
        own = median_seconds(partial(other.product, x), device)
        floor = gather_floor(other, 64, x.element_size(), bandwidth)
        what = f"{_count(nodes)} nodes, {_count(op.num_edges)} entries, d=64, {str(dtype).removeprefix('torch.')}"
        yield SpeedRow.against("product", what, own, f"gather floor {floor * 1e3:.2f} ms", own / floor)


def gather_floor(op: Operator, channels: int, itemsize: int, bandwidth: float) -> float:
    """Seconds to move every gathered row, the result, and an index and a weight per entry, once."""
    moved = op.num_edges * channels * itemsize + op.num_nodes * channels * itemsize
    return (moved + op.num_edges * (4 + op.weights.element_size())) / bandwidth


def locality_rows(device: str, bandwidth: float, side: int) -> Iterator[SpeedRow]:
    """The product of a local graph before and after its nodes are put in a local order."""
    graph = lattice(side)
    goal = "<= 0.5" if device == "cuda" else ""
    for label, one, target in (("as given", graph, ""), ("reordered", graph.permute(graph.local_order()), goal)):
        op = one.operator("symmetric", dtype=torch.float32, device=device)
        x = torch.randn(op.num_nodes, 64, device=device)
        own, floor = median_seconds(partial(op.product, x), device), gather_floor(op, 64, 4, bandwidth)
        what = f"torus of {_count(op.num_nodes)} nodes with 20 neighbours, d=64, {label}"
        yield SpeedRow.against("locality", what, own, f"gather floor {floor * 1e3:.2f} ms", own / floor, target)


def field_rows(device: str, nodes: int, entries: int) -> Iterator[SpeedRow]:
    """BS, forward and with its gradients, counted in products."""
    op = random_operator(nodes, entries, device)
    alpha, beta = (torch.tensor(v, device=device, requires_grad=True) for v in (1.0, 0.5))
    for channels in (64, 256):
        x = torch.randn(nodes, channels, device=device)
        one = median_seconds(partial(op.product, x), device)
        peer = f"one product {one * 1e3:.2f} ms"
        size = f"BS, {_count(nodes)} nodes, {_count(op.num_edges)} entries, d={channels}"
        field = rd.lower("BS", op, {"alpha": alpha, "beta": beta})
        with torch.no_grad():
            ready = field.prepared()
            seconds = median_seconds(partial(ready, 0.0, x), device)
        yield SpeedRow.against("field", f"{size}, forward", seconds, peer, seconds / one, "<= 2.1")
        state, g = x.clone().requires_grad_(True), torch.randn_like(x)
        seconds = median_seconds(partial(_gradients, field, state, [alpha, beta], g), device)
        what = f"{size}, forward and gradients of state, alpha, beta"
        yield SpeedRow.against("field", what, seconds, peer, seconds / one, "<= 5")
        if channels == 64:
            weights = op.weights.clone().requires_grad_(True)
            free = rd.lower("BS", Operator(op.pattern, weights, "symmetric"), {"alpha": alpha, "beta": beta})
            seconds = median_seconds(partial(_gradients, free, state, [alpha, beta, weights], g), device)
            yield SpeedRow.against("field", f"{what} and edge weights", seconds, peer, seconds / one)


def _gradients(field: rd.VectorField, state: Tensor, others: list[Tensor], g: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(field(0.0, state), [state, *others], g)


def ensemble_rows(device: str, graphs: Mapping[str, Operator]) -> Iterator[SpeedRow]:
    """Ten members with their own weights on a graph of Cora's size: one BS evaluation."""
    op, members = graphs["Cora"], 10
    weights = op.weights * torch.rand(members, op.num_edges, device=device)
    beta = torch.rand(members, device=device)
    field = rd.lower("BS", op.with_weights(weights), {"alpha": 1.0, "beta": beta}, batch=(members,))
    x = torch.randn(members, op.num_nodes, 64, device=device)
    with torch.no_grad():
        ready = field.prepared()
        alone = rd.lower("BS", op.with_weights(weights[0]), {"alpha": 1.0, "beta": beta[0]}).prepared()
        single = x[0].contiguous()
        if device == "cuda":
            together, one = replay_seconds(partial(ready, 0.0, x)), replay_seconds(partial(alone, 0.0, single))
        else:
            together, one = (median_seconds(partial(f, 0.0, h), device) for f, h in ((ready, x), (alone, single)))
    how = "from a CUDA graph" if device == "cuda" else "called"
    what = f"BS, Cora-sized, {members} members with their own weights, d=64, {how}"
    yield SpeedRow.against("ensemble", what, together, f"one member {one * 1e6:.1f} us", together / one)
    if device == "cuda":
        yield SpeedRow.against("ensemble", what, together, "a budget of 30 us", together / 30e-6, "<= 1")


def huge_rows(device: str, bandwidth: float, nodes: int, entries: int) -> Iterator[SpeedRow]:
    """One evaluation of BS on a graph that fills the card."""
    for dtype in (torch.bfloat16, torch.float32):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        generator = torch.Generator(device).manual_seed(0)
        degree = torch.poisson(torch.full((nodes,), entries / nodes, device=device), generator=generator).int()
        indptr = torch.zeros(nodes + 1, dtype=torch.int64, device=device)
        torch.cumsum(degree, 0, out=indptr[1:])
        count = int(indptr[-1])
        indices = torch.randint(nodes, (count,), generator=generator, device=device, dtype=torch.int32)
        weights = torch.repeat_interleave((1 / degree.clamp(min=1)).to(dtype), degree, output_size=count)
        op = Operator(Pattern.from_csr(indptr, indices, device), weights, "row")
        del indptr, indices, weights, degree
        field = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5}).prepared()
        x = torch.randn(nodes, 16, device=device, dtype=dtype)
        with torch.no_grad():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            seconds = median_seconds(partial(field, 0.0, x), device, seconds=1.0)
        memory = torch.cuda.max_memory_allocated() / 2**30
        floor = 2 * gather_floor(op, 16, x.element_size(), bandwidth)
        name = str(dtype).removeprefix("torch.")
        what = f"BS, {_count(nodes)} nodes, {_count(count)} entries, d=16, {name}, {memory:.1f} GiB at the peak"
        yield SpeedRow.against("size", what, seconds, f"two gather floors {floor * 1e3:.0f} ms", seconds / floor)
        del op, field, x


def cpu_rows(graphs: Mapping[str, Operator]) -> Iterator[SpeedRow]:
    """Products on the CPU against gather-scatter and scipy."""
    for name, op in graphs.items():
        channels = SIZES[name][2]
        x = torch.randn(op.num_nodes, channels)
        calls: list[Callable[[], object]] = [
            partial(op.product, x),
            gather_scatter(op, x),
            partial(scipy_csr(op).__matmul__, x.numpy()),
        ]
        rounds = [[median_seconds(call, "cpu", 0.2) for call in calls] for _ in range(5)]
        own, gathered, scipys = (min(times) for times in zip(*rounds, strict=True))
        what = f"{name}-sized, {_count(op.num_nodes)} nodes, {_count(op.num_edges)} entries, d={channels}, float32"
        yield SpeedRow.against(
            "cpu product", what, own, f"gather-scatter {gathered * 1e3:.2f} ms", gathered / own, ">= 2.5"
        )
        yield SpeedRow.against("cpu product", what, own, f"scipy CSR {scipys * 1e3:.2f} ms", own / scipys, "<= 1.5")


def _count(number: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def measure(device: str, graphs: Mapping[str, Operator]) -> dict[str, Any]:
    """All rows, printed as they come."""
    if device == "cuda" and not ops.has_triton():
        raise SystemExit("expected Triton beside a CUDA device; install rdgraph[triton]")
    torch.manual_seed(0)
    bandwidth = copy_bandwidth(device)
    nodes, entries, side, largest = (
        (10**6, 2 * 10**7, 1000, 10**8) if device == "cuda" else (10**4, 2 * 10**5, 100, 10**6)
    )
    makers: list[Callable[[], Iterator[SpeedRow]]] = [
        lambda: product_rows(device, bandwidth, nodes, entries),
        lambda: locality_rows(device, bandwidth, side),
        lambda: field_rows(device, nodes, entries),
        lambda: ensemble_rows(device, graphs),
        lambda: coupled_rows(random_operator(nodes, entries, device), device, f"{_count(nodes)} nodes"),
    ]
    makers += [lambda: huge_rows(device, bandwidth, 10**8, 10**9)] if device == "cuda" else [lambda: cpu_rows(graphs)]
    rows = []
    for make in makers:
        for row in make():
            rows.append(row)
            print(f"{row.topic:12s} {row.what}: {row.seconds * 1e3:.3f} ms")
            print(f"{'':12s} {row.ratio:.2f} against {row.peer} {row.target}")
    return {
        "command": f"python -m studies.benchmarks.performance --device {device}",
        "environment": environment(device),
        "copy_bandwidth": bandwidth,
        "rows": [asdict(row) for row in rows],
        "scaling": scaling(device, largest),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write the numbers to this json file")
    parser.add_argument(
        "--graphs", type=Path, help="a folder with cora.npz, ... holding edge_index; else random graphs"
    )
    options = parser.parse_args()
    graphs = {}
    for name, (nodes, entries, _) in SIZES.items():
        file = options.graphs / f"{name.lower()}.npz" if options.graphs else None
        if file is not None and file.exists():
            graph = rd.Graph.from_edges(np.load(file)["edge_index"], num_nodes=nodes)
            graphs[name] = graph.operator("symmetric", dtype=torch.float32, device=options.device)
        else:
            graphs[name] = random_operator(nodes, entries, options.device)
    found = measure(options.device, graphs)
    found["graphs"] = "as published" if options.graphs else "random, of the published size"
    if options.graphs:
        found["command"] += f" --graphs {options.graphs.name}"
    if options.out:
        found["command"] += f" --out {options.out.name}"
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
