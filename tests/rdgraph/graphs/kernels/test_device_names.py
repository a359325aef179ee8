"""Devices that torch cannot use are named, wherever work is done on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.device_names import read_device

RING = rd.generators.ring(5)
#: Devices that do not exist on a machine without a GPU, with the errors.
WRONG = [
    ("tpu", "expected the device cpu, cuda or cuda:N, got 'tpu'"),
    ("cuda:", "got 'cuda:'"),
    ("cuda:x", "got 'cuda:x'"),
    (3, "got 3"),
    (torch.device("meta"), "got device"),
    ("cuda", "expected a CUDA device torch can use, got 'cuda' and 0 such devices; choose cpu"),
    ("cuda:9", "got 'cuda:9' and 0"),
]


@pytest.fixture(autouse=True)
def _without_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


@pytest.mark.parametrize(("device", "message"), WRONG)
def test_other_devices_are_refused(device: Any, message: str, tmp_path: Path) -> None:
    operator = RING.operator()
    for work in (
        lambda: read_device(device),
        lambda: RING.operator(device=device),
        lambda: operator.to(device),
        lambda: rd.lower("-L@H", operator, device=device),
        lambda: rd.Graph.from_edges([[0], [1]], 2, device=device),
        lambda: rd.run.propagate(RING, np.eye(5), degree=1, out=tmp_path / "powers", device=device),
    ):
        with pytest.raises(InvalidArgument, match=message):
            work()
    assert not (tmp_path / "powers").exists()


def test_cards_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [read_device(name) for name in ("cuda", "cuda:1", torch.device("cuda:1"))] == ["cuda", "cuda:1", "cuda:1"]
    with pytest.raises(InvalidArgument, match="got 'cuda:2' and 2 such devices"):
        read_device("cuda:2")
