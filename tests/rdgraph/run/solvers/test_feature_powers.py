"""`propagate`: the powers against dense matrices, for every amount of memory; it continues where it was interrupted."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import rdgraph as rd
from rdgraph.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from rdgraph.run.solvers import feature_powers
from rdgraph.run.solvers.polynomial_flow import LinearFlow
from rdgraph.run.solvers.schedules import Schedule

NODES, FEATURES, DEGREE = 12, 5, 6


@pytest.fixture
def graph() -> rd.Graph:
    random = np.random.default_rng(3)
    return rd.Graph.from_edges(random.integers(0, NODES, (2, 30)), NODES, duplicates="once").undirected()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(4).normal(size=(NODES, FEATURES)).astype(np.float32)


def dense_powers(graph: rd.Graph, x: np.ndarray, kind: str, normalisation: str) -> np.ndarray:
    """The same by dense matrices of float64."""
    A = graph.operator(normalisation, self_loops=1.0, dtype=torch.float64).dense().numpy()
    start = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    found = [start, A @ start]
    for _ in range(2, DEGREE + 1):
        found.append(2 * A @ found[-1] - found[-2] if kind == "chebyshev" else A @ found[-1])
    return np.stack(found)


@pytest.mark.parametrize("memory", [None, 1, 3 * 4 * feature_powers.HELD * NODES])
@pytest.mark.parametrize(("normalisation", "kind"), [("symmetric", "chebyshev"), ("row", "taylor")])
@pytest.mark.parametrize("sparse", [False, True])
def test_powers_are_those_of_dense_matrices(
    graph: rd.Graph, x: np.ndarray, tmp_path: Path, normalisation: str, kind: str, memory: int | None, sparse: bool
) -> None:
    given = csr_array(x) if sparse else x
    powers = rd.run.propagate(
        graph, given, degree=DEGREE, out=tmp_path, normalisation=normalisation, self_loops=1.0, memory=memory
    )
    assert powers.kind == kind
    expected = dense_powers(graph, x, kind, normalisation)
    np.testing.assert_allclose(powers.rows(np.arange(NODES)), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(powers.rows([7, 2, 7], 3), expected[:4, [7, 2, 7]], rtol=2e-5, atol=2e-6)
    assert len(powers.record.groups) == {None: 1, 1: FEATURES + 1}.get(memory, 2)


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_call_that_was_cut_off_goes_on_to_the_same_bits(
    graph: rd.Graph, x: np.ndarray, tmp_path: Path, precision: str, cut: int
) -> None:
    options: dict[str, Any] = {"degree": DEGREE, "precision": precision, "memory": 3 * 4 * feature_powers.HELD * NODES}
    whole = rd.run.propagate(graph, x, out=tmp_path / "whole", **options)

    def stop(done: int, total: int) -> None:
        assert total == 2 * (DEGREE + 1)
        if done == cut:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rd.run.propagate(graph, x, out=tmp_path / "part", progress=stop, **options)
    heard: list[int] = []
    part = rd.run.propagate(graph, x, out=tmp_path / "part", progress=lambda done, total: heard.append(done), **options)
    assert heard == list(range(cut + 1, 2 * (DEGREE + 1) + 1))
    for k in range(DEGREE + 1):
        np.testing.assert_array_equal(part.power(k), whole.power(k))


def test_a_higher_degree_goes_on_from_the_last_one(graph: rd.Graph, x: np.ndarray, tmp_path: Path) -> None:
    rd.run.propagate(graph, x, degree=2, out=tmp_path / "a")
    before = (tmp_path / "a" / "power_001.npy").stat().st_mtime_ns
    longer = rd.run.propagate(graph, x, degree=5, out=tmp_path / "a")
    assert (tmp_path / "a" / "power_001.npy").stat().st_mtime_ns == before
    once = rd.run.propagate(graph, x, degree=5, out=tmp_path / "b")
    np.testing.assert_array_equal(longer.rows(np.arange(NODES)), once.rows(np.arange(NODES)))
    assert rd.run.propagate(graph, x, degree=1, out=tmp_path / "a").degree == 5


def test_features_may_lie_on_the_disk_and_an_operator_may_be_given(
    graph: rd.Graph, x: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", x)
    lying = np.load(tmp_path / "x.npy", mmap_mode="r")
    operator = graph.operator("row", self_loops=1.0)
    found = rd.run.propagate(operator, lying, degree=DEGREE, out=tmp_path / "powers")
    expected = dense_powers(graph, x, "taylor", "row")
    np.testing.assert_allclose(found.rows(np.arange(NODES)), expected, rtol=2e-5, atol=2e-6)


def test_the_flow_of_an_encoding_is_made_of_the_powers(graph: rd.Graph, x: np.ndarray, tmp_path: Path) -> None:
    powers = rd.run.propagate(graph, x, degree=30, out=tmp_path, self_loops=1.0)
    operator = graph.operator(self_loops=1.0, dtype=torch.float64)
    field = rd.lower(rd.parse("BS", {"beta": "channel"}), operator, {"alpha": 0.8, "beta": torch.tensor([0.3, -0.5])})
    W = torch.tensor(np.random.default_rng(5).normal(size=(FEATURES + 1, 2)))
    rows = torch.tensor(powers.rows(np.arange(NODES)), dtype=torch.float64)
    schedule, time = Schedule.make("exact", 1.5, None), torch.tensor(1.5, dtype=torch.float64)
    terms = LinearFlow(schedule, 30).terms(field, W, time)
    expected = rd.solve(field, rows[0] @ W, [0.0, 1.5], "exact").final
    torch.testing.assert_close((rows @ terms).sum(0), expected, rtol=1e-5, atol=1e-6)
    # What is left out is bounded by the terms behind the degree.
    for degree in (2, 5, 9):
        bound = float(LinearFlow.left_out(field, schedule, time, degree))
        short = (rows[: degree + 1] @ terms[: degree + 1]).sum(0)
        gain = max(1.0, float(torch.linalg.matrix_norm(expected, 2) / torch.linalg.matrix_norm(rows[0] @ W, 2)))
        error = torch.linalg.vector_norm(short - expected, dim=0) / torch.linalg.vector_norm(rows[0] @ W, dim=0)
        assert 0 < float(error.max()) <= bound * gain * 1.5 + 1e-6, degree
    assert float(LinearFlow.left_out(field, schedule, time, 30)) < 1e-12


def test_what_cannot_be_propagated_is_refused(graph: rd.Graph, x: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="expected one normalised operator"):
        rd.run.propagate(graph, x, degree=2, out=tmp_path, normalisation="none")
    with pytest.raises(InvalidArgument, match=r"expected features \(12, f\)"):
        rd.run.propagate(graph, x[:4], degree=2, out=tmp_path)
    for degree in (-1, 2.5):
        with pytest.raises(InvalidArgument, match=f"a whole number >= 0 for degree, got {degree}"):
            rd.run.propagate(graph, x, degree=degree, out=tmp_path)
    with pytest.raises(InvalidArgument, match="a whole number >= 1 for memory, got 0"):
        rd.run.propagate(graph, x, degree=1, out=tmp_path / "memory", memory=0)
    with pytest.raises(InvalidArgument, match="expected a graph or an operator, got None"):
        rd.run.propagate(None, x, degree=1, out=tmp_path)
    with pytest.raises(UnknownName):
        rd.run.propagate(graph, x, degree=1, out=tmp_path, precision="float8")
    wrong = x.copy()
    wrong[3, 1] = np.nan
    with pytest.raises(InvalidArgument, match="expected finite features"):
        rd.run.propagate(graph, wrong, degree=1, out=tmp_path / "nan")
    with pytest.raises(InvalidArgument, match="scale the features, or take float32"):
        rd.run.propagate(graph, x * 1e6, degree=1, out=tmp_path / "large", precision="float16")
    rd.run.propagate(graph, x, degree=1, out=tmp_path / "mine")
    with pytest.raises(FileError, match="got those of others"):
        rd.run.propagate(graph, x + 1, degree=1, out=tmp_path / "mine")
    with pytest.raises(FileError, match="got those of others"):
        rd.run.propagate(rd.generators.ring(NODES), x, degree=1, out=tmp_path / "mine")
    with pytest.raises(FileError, match="got none"):
        rd.run.Powers(tmp_path / "nowhere")
    with pytest.raises(InvalidArgument, match="propagate further"):
        rd.run.Powers(tmp_path / "mine").rows([0], 2)
    (tmp_path / "mine" / "powers.json").write_text(json.dumps({"format": "another"}))
    with pytest.raises(FileError, match="got something else"):
        rd.run.Powers(tmp_path / "mine")


def test_rows_are_of_nodes_that_there_are(graph: rd.Graph, x: np.ndarray, tmp_path: Path) -> None:
    powers = rd.run.propagate(graph, x, degree=2, out=tmp_path)
    mask = np.arange(NODES) % 5 == 0
    assert np.array_equal(powers.rows(mask), powers.rows(np.flatnonzero(mask)))
    assert powers.rows([]).shape == (3, 0, x.shape[1] + 1)
    assert np.array_equal(powers.rows([4, 1, 4])[:, [1, 2]], powers.rows([1, 4]))
    for wrong in ([NODES], [-1], [0.5], [[0]], [True]):
        with pytest.raises(InvalidArgument, match=rf"numbers of nodes in 0..{NODES - 1}, got "):
            powers.rows(wrong)


@pytest.mark.parametrize("fault", ["zeros", "of another power", "cut", "empty", "gone"])
def test_files_that_are_not_those_that_were_written_are_noticed(
    graph: rd.Graph, x: np.ndarray, tmp_path: Path, fault: str
) -> None:
    rd.run.propagate(graph, x, degree=3, out=tmp_path)
    path = tmp_path / "power_002.npy"
    whole = path.read_bytes()
    if fault == "gone":
        path.unlink()
    else:
        torn = {"zeros": whole[:-40] + bytes(40), "cut": whole[:-40], "empty": b""}
        path.write_bytes(torn.get(fault) or (tmp_path / "power_001.npy").read_bytes() * (fault != "empty"))
    for again in (lambda: rd.run.Powers(tmp_path), lambda: rd.run.propagate(graph, x, degree=5, out=tmp_path)):
        with pytest.raises(FileError, match=r"power_002.npy, got .*; remove .* and propagate again$") as problem:
            again()
        assert "\n" not in str(problem.value)
    path.write_bytes(whole)
    assert rd.run.propagate(graph, x, degree=5, out=tmp_path).degree == 5


def test_a_full_disk_is_reported_before_a_power_is_written(
    graph: rd.Graph, x: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory-mapped file without room on the disk would end the program by a signal."""
    rd.run.propagate(graph, x, degree=1, out=tmp_path)

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full, raising=False)
        with pytest.raises(
            FileError, match=r"cannot write .*: No space left on device; make room, or choose another folder"
        ):
            rd.run.propagate(graph, x, degree=4, out=tmp_path)
    assert rd.run.Powers(tmp_path).degree == 1
    assert rd.run.propagate(graph, x, degree=4, out=tmp_path).degree == 4


def test_features_that_a_coarse_precision_makes_zeros_of_are_refused(
    graph: rd.Graph, x: np.ndarray, tmp_path: Path
) -> None:
    small = x.copy()
    small[:, 1] *= 1e-9
    with pytest.raises(InvalidArgument, match=r"expected features from 6.1e-05 on, .* in column 1; scale the features"):
        rd.run.propagate(graph, small, degree=1, out=tmp_path / "half", precision="float16")
    assert rd.run.propagate(graph, small, degree=1, out=tmp_path / "single").degree == 1
