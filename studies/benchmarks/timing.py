"""Timing on any device: medians after a warm-up, events on a GPU, and the bandwidth that everything is held against."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

#: Clock cycles the card waits while a call is queued: about a millisecond.
QUEUE_CYCLES = 2_000_000


def median_seconds(function: Callable[[], object], device: str, seconds: float = 0.3, most: int = 200) -> float:
    """Median time of a call, seconds; repeated for about `seconds` after a warm-up.

    On a GPU every repetition finds a cold cache (a buffer larger than the L2 cache is written in between), and the card
    is kept waiting until the call is queued, so that the time is the card's alone.
    """
    for _ in range(3):
        function()
    return _gpu(function, seconds, most) if device == "cuda" else _cpu(function, seconds, most)


def _cpu(function: Callable[[], object], seconds: float, most: int) -> float:
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < stop and len(times) < most):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _gpu(function: Callable[[], object], seconds: float, most: int) -> float:
    flush = torch.empty(256 * 2**20, dtype=torch.int8, device="cuda")
    pairs: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
    stop = time.perf_counter() + seconds
    while len(pairs) < 5 or (time.perf_counter() < stop and len(pairs) < most):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        torch.cuda._sleep(QUEUE_CYCLES)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        pairs.append((start, end))
    return statistics.median(start.elapsed_time(end) for start, end in pairs) / 1e3


def copy_bandwidth(device: str) -> float:
    """Bytes read and written per second by a large copy."""
    size = 2**30 if device == "cuda" else 2**25
    source = torch.empty(size, device=device).normal_()
    target = torch.empty_like(source)
    return 2 * source.nbytes / median_seconds(lambda: target.copy_(source), device)


def replay_seconds(function: Callable[[], object], runs: int = 200) -> float:
    """Time of one call replayed from a captured CUDA graph, seconds: `runs` replays back to back, divided."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    graph.replay()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(7):
        start.record()
        for _ in range(runs):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / runs)
    return statistics.median(times) / 1e3
