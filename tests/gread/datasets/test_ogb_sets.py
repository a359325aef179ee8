"""Sets of the Open Graph Benchmark from small files that lie as ogb lays its own: csv, binary, splits, what is kept."""

from __future__ import annotations

import gzip
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from gread import load_dataset
from gread.datasets import ogb_sets
from gread.datasets.ogb_sets import CACHE, load_ogb
from gread.datasets.variants import Variant
from rdgraph.errors import FileError, MissingDependency, NotApplicable, UnknownName

if find_spec("ogb") is None:
    pytest.skip("ogb is not installed: rdgraph[ogb]", allow_module_level=True)

EDGES = np.array([[0, 1], [2, 1], [3, 0], [3, 4]])
X = np.round(np.random.default_rng(0).normal(size=(5, 3)), 3)
LABELS = np.array([0, 2, 1, 0, 1])


def write_csv(path: Path, rows: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, np.atleast_1d(rows), delimiter=",", fmt="%g")


def lay_out(root: Path, name: str, split: str, *, has_features: bool = True) -> Path:
    """A set as ogb unpacks it: raw, split, and the file that names the version."""
    folder = root / name.replace("-", "_")
    write_csv(folder / "raw" / "edge.csv.gz", EDGES)
    write_csv(folder / "raw" / "num-node-list.csv.gz", np.array([5]))
    write_csv(folder / "raw" / "num-edge-list.csv.gz", np.array([4]))
    write_csv(folder / "raw" / "node-label.csv.gz", LABELS)
    if has_features:
        write_csv(folder / "raw" / "node-feat.csv.gz", X)
    for word, nodes in (("train", [0, 1, 2]), ("valid", [3]), ("test", [4])):
        write_csv(folder / "split" / split / f"{word}.csv.gz", np.array(nodes))
    (folder / "RELEASE_v1.txt").write_text("")
    return folder


def test_a_set_of_csv_files_is_read_as_stored(tmp_path: Path) -> None:
    lay_out(tmp_path, "ogbn-arxiv", "time")
    data = load_ogb("ogbn-arxiv", root=tmp_path)
    assert sorted(data.graph.edge_index.T.tolist()) == sorted(EDGES.tolist())
    np.testing.assert_allclose(data.x, X, rtol=1e-6)
    np.testing.assert_array_equal(data.y, LABELS)
    assert [np.flatnonzero(m[0]).tolist() for m in (data.masks.train, data.masks.val, data.masks.test)] == [
        [0, 1, 2], [3], [4],
    ]  # fmt: skip
    assert data.meta.name == "ogbn-arxiv"
    assert "Open Graph Benchmark" in data.meta.sources[0][1]


def test_edges_are_reversed_where_ogb_says_so(tmp_path: Path) -> None:
    lay_out(tmp_path, "ogbn-products", "sales_ranking")
    assert load_ogb("ogbn-products", root=tmp_path).graph.is_undirected


def test_load_dataset_prepares_it_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path / "ogb", "ogbn-arxiv", "time")
    data = load_dataset("ogbn-arxiv", root=tmp_path)
    assert data.graph.is_undirected
    assert data.num_splits == 1
    stored = load_dataset("OGBN_arxiv".lower(), root=tmp_path, variant=Variant(undirected=False))
    assert not stored.graph.is_undirected
    monkeypatch.setenv("RDGRAPH_DATA", str(tmp_path))
    assert load_dataset("ogbn-arxiv").num_nodes == 5


def test_arrays_are_kept_and_read_again_unless_the_raw_files_are_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lay_out(tmp_path, "ogbn-arxiv", "time")
    first = load_ogb("ogbn-arxiv", root=tmp_path)
    assert (folder / "processed" / CACHE).exists()
    with monkeypatch.context() as patch:
        patch.setattr(ogb_sets, "_read_raw", lambda *_: pytest.fail("read again"))
        again = load_ogb("ogbn-arxiv", root=tmp_path)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.graph.edge_index, again.graph.edge_index)
    write_csv(folder / "raw" / "node-label.csv.gz", LABELS[::-1])
    later = (folder / "processed" / CACHE).stat().st_mtime + 5
    os.utime(folder / "raw" / "node-label.csv.gz", (later, later))
    np.testing.assert_array_equal(load_ogb("ogbn-arxiv", root=tmp_path).y, LABELS[::-1])


def test_a_binary_set_with_unknown_labels(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "ogbn-papers100M", "time")
    for path in (folder / "raw").iterdir():
        path.unlink()
    np.savez(
        folder / "raw" / "data.npz", edge_index=EDGES.T, num_nodes_list=[5], num_edges_list=[4],
        node_feat=X.astype(np.float16), node_year=np.zeros((5, 1)),
    )  # fmt: skip
    np.savez(folder / "raw" / "node-label.npz", node_label=np.array([[0.0], [2.0], [np.nan], [0.0], [1.0]]))
    data = load_ogb("ogbn-papers100M", root=tmp_path)
    assert data.y.tolist() == [0, 2, -1, 0, 1]
    assert np.flatnonzero(data.masks.train[0]).tolist() == [0, 1], "a node without label is in no split"


def test_nodes_without_features_carry_unit_vectors(tmp_path: Path) -> None:
    lay_out(tmp_path, "ogbn-arxiv", "time", has_features=False)
    for _ in range(2):
        assert load_ogb("ogbn-arxiv", root=tmp_path).num_features == 5


def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match=r"fetch them once with ogb, .*NodePropPredDataset\('ogbn-arxiv'"):
        load_ogb("ogbn-arxiv", root=tmp_path)
    with pytest.raises(UnknownName, match="ogbn-arxive"):
        load_ogb("ogbn-arxive", root=tmp_path)
    with pytest.raises(NotApplicable, match="many labels per node"):
        load_ogb("ogbn-proteins", root=tmp_path)
    with pytest.raises(NotApplicable, match="many kinds of nodes"):
        load_ogb("ogbn-mag", root=tmp_path)
    folder = lay_out(tmp_path, "ogbn-arxiv", "time")
    write_csv(folder / "split" / "time" / "test.csv.gz", np.array([77]))
    with pytest.raises(FileError, match=r"expected nodes in .*test\.csv\.gz"):
        load_ogb("ogbn-arxiv", root=tmp_path)
    other = lay_out(tmp_path / "other", "ogbn-arxiv", "time")
    (other / "raw" / "edge.csv.gz").unlink()
    with pytest.raises(FileError, match="expected the raw files of ogb"):
        load_ogb("ogbn-arxiv", root=tmp_path / "other")
    write_csv(other / "raw" / "edge.csv.gz", EDGES)
    write_csv(other / "raw" / "node-label.csv.gz", LABELS[:3])
    with pytest.raises(FileError, match="expected a label for each of 5 nodes"):
        load_ogb("ogbn-arxiv", root=tmp_path / "other")
    monkeypatch.setattr(ogb_sets, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'rdgraph\[ogb\]'"):
        load_ogb("ogbn-arxiv", root=tmp_path)


@pytest.mark.parametrize("name", ["raw/edge.csv.gz", "raw/node-label.csv.gz", "split/time/valid.csv.gz"])
def test_files_that_were_cut_off_are_told_in_a_line(tmp_path: Path, name: str) -> None:
    path = lay_out(tmp_path, "ogbn-arxiv", "time") / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileError, match=r"^expected .*(raw|valid\.csv\.gz), got .*; fetch them again$"):
        load_ogb("ogbn-arxiv", root=tmp_path)


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("split/time/valid.csv.gz", [-1], r"valid\.csv\.gz, got node -1; fetch"),
        ("split/time/valid.csv.gz", [2], "split/time: expected every node in at most one part"),
        ("raw/edge.csv.gz", [[0, 1], [2, 1], [3, 9], [3, 4]], "raw: .* node 9 is out of range"),
    ],
)
def test_nodes_that_there_are_not_are_told_with_their_file(
    tmp_path: Path, name: str, rows: list[int], words: str
) -> None:
    write_csv(lay_out(tmp_path, "ogbn-arxiv", "time") / name, np.array(rows))
    with pytest.raises(FileError, match=words):
        load_ogb("ogbn-arxiv", root=tmp_path)


def test_a_torn_copy_of_the_arrays_is_made_again(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "ogbn-arxiv", "time")
    first, kept = load_ogb("ogbn-arxiv", root=tmp_path), folder / "processed" / CACHE
    whole = kept.read_bytes()
    for size in (0, 200):
        kept.write_bytes(whole[:size])
        np.testing.assert_array_equal(load_ogb("ogbn-arxiv", root=tmp_path).x, first.x)
        assert kept.read_bytes()[:200] == whole[:200]
