"""The memory of a device: this machine's, and a card's by any of its names."""

from __future__ import annotations

import pytest
import torch

from rdgraph.graphs.kernels.devices import free_memory, total_memory


@pytest.mark.parametrize(("name", "index"), [("cuda", 1), ("cuda:0", 0), (torch.device("cuda"), 1)])
def test_a_card_may_be_named_with_or_without_its_number(
    monkeypatch: pytest.MonkeyPatch, name: str | torch.device, index: int
) -> None:
    asked: list[int] = []

    def share(device: int) -> float:  # torch takes no device without a number here
        asked.append(device)
        return 0.5

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", share)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (900, 1000))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 70)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 80)
    assert total_memory(name) == 500
    assert free_memory(name) == 430
    assert asked == [index, index]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card")
def test_a_card_has_memory_by_any_name() -> None:
    assert total_memory("cuda") == total_memory(f"cuda:{torch.cuda.current_device()}") > free_memory("cuda") > 0
