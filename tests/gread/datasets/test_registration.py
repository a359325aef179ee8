"""A data set registered from outside: loaded by name, listed, trained on; and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gread
from gread import Masks, NodeData, load_dataset, register_dataset
from gread.datasets import RemoteFile
from gread.datasets.download import DownloadError
from gread.datasets.raw import RawData
from gread.datasets.sources import datasets, entry, unregister_dataset
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs import generators
from studies.cli import app as cli
from studies.cli import data_commands


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """What a test registers does not outlive it."""
    before = set(datasets())
    yield
    for name in set(datasets()) - before:
        unregister_dataset(name)


def two_rings(splits: bool = True) -> NodeData:
    """Forty nodes on a ring, a class on either half."""
    y = np.repeat([0, 1], 20)
    x = np.eye(40, 8, dtype=np.float32) + y[:, None]
    masks = gread.datasets.stratified_splits(y, 3) if splits else Masks.none(40)
    return NodeData(generators.ring(40), x, y, masks)


def rdgraph(*words: object) -> Any:
    return CliRunner(env={"NO_COLOR": "1"}).invoke(cli.app, [str(word) for word in words])


def test_a_registered_set_is_loaded_by_its_name() -> None:
    record = register_dataset(
        "Two-Rings", title="Two halves of a ring", citation="Nobody 2026", loader=two_rings, notes=["Made up."]
    )
    assert record is entry("two_rings")
    data = load_dataset("two-rings")
    assert (data.meta.name, data.meta.title, data.num_splits) == ("two_rings", "Two halves of a ring", 3)
    assert ("Two halves of a ring", "Nobody 2026") in data.meta.sources
    assert "Made up." in data.meta.notes
    assert np.array_equal(data.y, two_rings().y)
    assert load_dataset("two_rings", split="stratified").num_splits == 10


def test_splits_are_drawn_where_a_set_has_none() -> None:
    register_dataset("bare", loader=lambda: two_rings(splits=False))
    assert load_dataset("bare").num_splits == 0
    register_dataset("drawn", loader=lambda: two_rings(splits=False), splits="stratified")
    drawn = load_dataset("drawn")
    assert drawn.num_splits == 10
    assert drawn.meta.split.startswith("stratified")


@pytest.mark.slow
def test_the_commands_know_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_commands.console, "_width", 240)
    register_dataset("two_rings", title="Two halves of a ring", loader=two_rings)
    listed = rdgraph("data", "list", "--json")
    assert listed.exit_code == 0, listed.output
    row = next(row for row in json.loads(listed.stdout) if row["name"] == "two_rings")
    assert (row["nodes"], row["from"], row["title"]) == (40, "registered", "Two halves of a ring")
    assert "Two halves of a ring" in rdgraph("data", "list").stdout
    trained = rdgraph(
        "train",
        "--dataset",
        "two_rings",
        "--splits",
        "0,1",
        "--epochs",
        8,
        "--set",
        "hidden=8",
        "--out",
        tmp_path / "run",
    )
    assert trained.exit_code == 0, trained.output
    page = (tmp_path / "run" / "report.html").read_text()
    assert "two_rings" in page
    assert "Two halves of a ring" in page
    assert len((tmp_path / "run" / "results.csv").read_text().splitlines()) == 3


def read_pairs(paths: Sequence[Path]) -> RawData:
    edges = np.loadtxt(paths[0], dtype=np.int64).T
    y = np.loadtxt(paths[1], dtype=np.int64)
    return RawData(edges, np.eye(y.size, dtype=np.float32), y)


def test_a_set_of_files_is_read_from_a_checked_copy(tmp_path: Path) -> None:
    contents = {"edges.txt": b"0 1\n1 2\n2 3\n3 4\n4 5\n", "labels.txt": b"0\n0\n0\n1\n1\n1\n"}
    for name, content in contents.items():
        (tmp_path / "small-path").mkdir(exist_ok=True)
        (tmp_path / "small-path" / name).write_bytes(content)
    files = [
        RemoteFile(
            "small-path", name, len(content), hashlib.sha256(content).hexdigest(), urls=("https://example.org/" + name,)
        )
        for name, content in contents.items()
    ]
    register_dataset("small_path", files=files, reader=read_pairs, splits="stratified")
    data = load_dataset("small_path", root=tmp_path, offline=True)
    assert (data.num_nodes, data.graph.num_edges, data.num_splits) == (6, 10, 10)
    assert dict(data.meta.sources) == {file.key: file.sha256 for file in files}
    (tmp_path / "small-path" / "labels.txt").write_bytes(b"1\n")
    with pytest.raises(DownloadError, match=r"1 missing or damaged: small-path/labels\.txt"):
        load_dataset("small_path", root=tmp_path, offline=True)


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({"name": "cora", "loader": two_rings}, InvalidArgument, "not taken, got 'cora'"),
        ({"name": "Actor", "loader": two_rings}, InvalidArgument, "not taken"),
        ({"name": "a b", "loader": two_rings}, InvalidArgument, "letters, digits"),
        ({"name": "", "loader": two_rings}, InvalidArgument, "letters, digits"),
        ({"name": "new"}, InvalidArgument, "a loader, or files with their reader"),
        ({"name": "new", "reader": read_pairs}, InvalidArgument, "files and their reader"),
        ({"name": "new", "files": [RemoteFile("a", "b")], "reader": read_pairs}, InvalidArgument, "a sha256 for a/b"),
        ({"name": "new", "loader": two_rings, "splits": "random"}, UnknownName, "random"),
    ],
    ids=["taken", "alias", "space", "empty", "nothing", "reader", "hash", "splits"],
)
def test_records_that_cannot_be(values: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        register_dataset(**values)
    assert "new" not in datasets()


def test_a_loader_that_gives_something_else_is_refused() -> None:
    register_dataset("odd", loader=lambda: "data")  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidArgument, match="expected NodeData from the loader of odd, got str"):
        load_dataset("odd")
    unregister_dataset("odd")
    with pytest.raises(UnknownName, match="odd"):
        load_dataset("odd")
    with pytest.raises(InvalidArgument, match="built in"):
        unregister_dataset("karate")
