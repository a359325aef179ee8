"""Recording beside other work, and alone where the memory is short."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch

from gread.training import ensemble


class Device:
    """What a recording asks of a device, and what it heard."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
        self.heard: list[str] = []
        heard = self.heard

        class Graph:
            def capture_begin(self) -> None:
                heard.append("begin")

            def capture_end(self) -> None:
                heard.append("end")

        @contextmanager
        def alone(graph: Any, stream: Any) -> Any:
            heard.append("alone")
            yield

        cuda = ensemble.torch.cuda
        monkeypatch.setattr(cuda, "mem_get_info", lambda place: (free, 100))
        monkeypatch.setattr(cuda, "stream", lambda stream: nullcontext())
        monkeypatch.setattr(cuda, "CUDAGraph", Graph)
        monkeypatch.setattr(cuda, "graph", alone)
        self.device = "cuda"

    def work(self) -> None:
        self.heard.append("work")


def test_with_much_free_memory_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Device(monkeypatch, free=60)
    ensemble.capture(stream.work, stream)  # type: ignore[arg-type]
    assert stream.heard == ["begin", "work", "end"]


def test_with_little_free_memory_the_device_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Device(monkeypatch, free=40)
    ensemble.capture(stream.work, stream)  # type: ignore[arg-type]
    assert stream.heard == ["alone", "work"]


def test_where_memory_runs_out_the_work_is_recorded_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Device(monkeypatch, free=60)

    def work() -> None:
        stream.work()
        if "alone" not in stream.heard:
            raise torch.OutOfMemoryError("planted")

    ensemble.capture(work, stream)  # type: ignore[arg-type]
    assert stream.heard == ["begin", "work", "end", "alone", "work"]


def test_other_faults_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Device(monkeypatch, free=60)

    def work() -> None:
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        ensemble.capture(work, stream)  # type: ignore[arg-type]
    assert stream.heard == ["begin", "end"]
