"""Timing on any device, the cases that are timed, and their rows: one measurement, its peer in the same run, a target.

Times are medians after a warm-up, events on a GPU; the bandwidth of a copy is what everything is compared with.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch

# ---------------------------------------------------------------------- timing
#: Clock cycles the GPU waits while a call is queued: about a millisecond.
QUEUE_CYCLES = 2_000_000
Call = Callable[[], object]
T = TypeVar("T")


@dataclass(frozen=True)
class SpeedRow:
    """One measurement, its peer in the same run, and the target: ratio <= or >= `target`."""

    topic: str
    what: str
    seconds: float
    peer: str
    ratio: float
    target: str = ""
    met: bool | None = None

    @classmethod
    def against(cls, topic: str, what: str, seconds: float, peer: str, ratio: float, target: str = "") -> SpeedRow:
        met = None
        if target:
            sign, number = target.split()
            met = ratio <= float(number) if sign == "<=" else ratio >= float(number)
        return cls(topic, what, seconds, peer, ratio, target, met)


@dataclass(frozen=True)
class Peer:
    """What a case is compared with: a call, or seconds that are known; the ratio is ours/theirs, or how much faster."""

    name: str
    time: Call | float
    target: str = ""
    is_slower: bool = False


@dataclass(frozen=True)
class Case:
    """A call that is timed against its peers; the shortest median of several rounds, in which they take turns.

    `what` may be a function: it is asked after the timing. `clock` takes a call and gives its seconds.
    """

    topic: str
    what: str | Callable[[], str]
    call: Call
    peers: tuple[Peer, ...]
    rounds: int = 1
    with_gradients: bool = False
    clock: Callable[[Call], float] | None = None

    def rows(self, device: str) -> Iterator[SpeedRow]:
        """A row for every peer."""
        clock = self.clock or (lambda call: median_seconds(call, device))
        calls = [self.call, *(peer.time for peer in self.peers if callable(peer.time))]
        with torch.set_grad_enabled(self.with_gradients):
            turns = [[clock(call) for call in calls] for _ in range(self.rounds)]
        own, *others = (min(times) for times in zip(*turns, strict=True))
        what = self.what if isinstance(self.what, str) else self.what()
        for peer in self.peers:
            seconds = others.pop(0) if callable(peer.time) else peer.time
            ratio = seconds / own if peer.is_slower else own / seconds
            text = f"{peer.name} {duration(seconds)}"
            yield SpeedRow.against(self.topic, what, own, text, ratio, peer.target)


def duration(seconds: float) -> str:
    """A time with a unit that fits.

    >>> duration(0.00114), duration(0.00001966)
    ('1.14 ms', '19.7 us')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-4 else f"{seconds * 1e3:.3g} ms"


def median_seconds(function: Callable[[], object], device: str, seconds: float = 0.3, most: int = 200) -> float:
    """Median time of a call, seconds; repeated for about `seconds` after a warm-up.

    On a GPU every repetition finds a cold cache (a buffer larger than the L2 cache is written in between), and the GPU
    is kept waiting until the call is queued, so that the time is the GPU's alone.
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


def wait(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def clocked(call: Callable[[], T], device: str) -> tuple[T, float]:
    """What a call returns, and its seconds on the clock."""
    wait(device)
    started = time.perf_counter()
    found = call()
    wait(device)
    return found, time.perf_counter() - started
