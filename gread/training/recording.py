"""Work recorded as a CUDA graph, without a pause of what else runs on the device where memory is plentiful.

`torch.cuda.graph` first waits for the whole device and gives all cached memory back, which makes room for the graph's
own pool, and leaves the device idle while many batches are recorded one after the other. With half of the memory free
there is no need for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

T = TypeVar("T")
#: The part of the device's memory that has to be free for a recording beside other work.
ROOM = 0.5


def captured_after_warming(
    work: Callable[[], None], device: torch.device, snapshot: Callable[[], T], restore: Callable[[T], None]
) -> Callable[[], None]:
    """Some work as a CUDA graph; warmed up once, with the state put back afterwards. Returns what replays it.

    It is recorded on the stream that it is replayed on, where that is not the default one, on which nothing can be
    recorded. cuBLAS has one workspace for each stream: work recorded on one stream and replayed on several at once
    would write into the same one.
    """
    before, current = snapshot(), torch.cuda.current_stream()
    is_default = current == torch.cuda.default_stream()
    stream = torch.cuda.Stream(device) if is_default else current
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        work()
    current.wait_stream(stream)
    restore(before)
    return capture(work, stream).replay


def capture(work: Callable[[], None], stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Record some work on a stream, which is not the default one; the work is not done by that.

    Where the memory turns out to be too little for a recording beside other work, the work is recorded again alone.
    """
    free, total = torch.cuda.mem_get_info(stream.device)
    if free >= ROOM * total:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.stream(stream), _beside_others(graph):
                work()
            return graph
        except torch.OutOfMemoryError:
            pass
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph


@contextmanager
def _beside_others(graph: Any) -> Iterator[None]:
    graph.capture_begin()
    try:
        yield
    finally:
        graph.capture_end()
