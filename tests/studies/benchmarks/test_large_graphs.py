"""The benchmark of large graphs on a tiny one: rows of every network, written as they come, not measured twice."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch

from rdgraph.errors import InvalidArgument, UnknownName
from studies.benchmarks import large_graphs


@pytest.mark.slow
def test_every_network_gives_a_row_and_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "large.json"
    words = ["--device", "cpu", "--size", "tiny", "--epochs", "2", "--out", str(out)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peer's own imports
        monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
        large_graphs.main([*words, "--only", "BS exact"])
        monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF")
        assert [row["what"] for row in json.loads(out.read_text())["tiny"]["rows"]] == ["BS exact"]
        large_graphs.main(words)
    found = json.loads(out.read_text())["tiny"]
    assert [row["what"] for row in found["rows"]] == large_graphs.chosen_parts("tiny", None)
    assert found["failed"] == {}
    assert [row["allocator"] for row in found["rows"]][:2] == ["expandable_segments:True", ""]
    for row in found["rows"]:
        assert row["ms_per_epoch"] > 0
        parts = row["graph_seconds"] + row["data_seconds"] + row["ensemble_seconds"]
        assert row["seconds_before"] == pytest.approx(parts)
        assert row["gib"] is None
    monkeypatch.setattr(large_graphs, "measure", lambda *_: pytest.fail("measured again"))
    large_graphs.main(words)


def test_rows_are_chosen_by_how_their_names_begin() -> None:
    chosen = large_graphs.chosen_parts("ten-million", ["BS", large_graphs.DECOUPLED])
    assert {name.split()[0] for name in chosen if name != large_graphs.DECOUPLED} == {"BS"}
    assert large_graphs.DECOUPLED in chosen
    with pytest.raises(UnknownName, match="BZ"):
        large_graphs.chosen_parts("tiny", ["BS", "BZ"])


def test_what_does_not_fit_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = iter([torch.OutOfMemoryError("CUDA out of memory\nand more"), InvalidArgument("expected 3 GiB")])

    def fail(*_: object) -> None:
        raise next(problems)

    monkeypatch.setattr(large_graphs, "measure", fail)
    found = large_graphs.collect("tiny", "cpu", ["F", "BS soft"], 1, tmp_path / "large.json")["tiny"]
    assert found["rows"] == []
    assert found["failed"] == {
        "F euler": "OutOfMemoryError: CUDA out of memory", "BS soft": "InvalidArgument: expected 3 GiB",
    }  # fmt: skip
