"""Catalogue, safe readers, variants and loading; the facts of the public sets where their files are available."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

from gread.datasets import sources
from gread.datasets.download import DownloadError, fetch
from gread.datasets.loading import load_dataset, read_webkb
from gread.datasets.node_data import NodeData
from gread.datasets.npz import read_npz
from gread.datasets.planetoid import read_planetoid, read_split_files
from gread.datasets.raw import RawData, compact
from gread.datasets.splits import PARTS, Masks
from gread.datasets.variants import Variant, prepare, row_normalised
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, UnknownName

UNSEEN = ("roman_empire", "amazon_ratings", "questions")
SEEN = tuple(name for name in sources.entries() if name not in UNSEEN)


needs_files = pytest.mark.skipif(
    not os.environ.get("RDGRAPH_DATA"), reason="RDGRAPH_DATA names no folder with the public files"
)


def raw(name: str) -> RawData:
    entry = sources.entry(name)
    paths = [Path(os.environ["RDGRAPH_DATA"], file.key) for file in entry.files]
    return {"planetoid": read_planetoid, "webkb": read_webkb, "npz": read_npz}[entry.reader](paths)


def split_masks(name: str) -> Masks:
    return read_split_files([Path(os.environ["RDGRAPH_DATA"], file.key) for file in sources.entry(name).split_files])


def sizes(masks: Masks) -> list[tuple[int, ...]]:
    return [tuple(int(getattr(masks, part)[k].sum()) for part in PARTS) for k in range(masks.num_splits)]


# ---------------------------------------------------------------------- catalogue and registry
def test_names_and_aliases() -> None:
    assert [sources.canonical(name) for name in ("ACTOR", " film", "Chameleon-Filtered", "karate")] == [
        "film", "film", "chameleon_filtered", "karate",
    ]  # fmt: skip
    with pytest.raises(UnknownName, match="did you mean 'citeseer'"):
        load_dataset("citeseeer")


def test_every_file_is_known_and_only_three_are_trusted_on_first_use() -> None:
    unknown = {file.path for file in sources.registry().values() if file.sha256 is None or file.bytes is None}
    assert unknown == {f"data/{name}.npz" for name in UNSEEN}
    for file in sources.registry().values():
        assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
        assert len(file.addresses) >= 2
        assert all(address.startswith("https://") and address.endswith(file.path) for address in file.addresses)
    assert [len(sources.entry(name).all_files) for name in ("cora", "texas", "film")] == [16, 12, 1]


@needs_files
def test_the_registry_describes_the_files() -> None:
    for name in SEEN:
        for local in fetch(name, offline=True):
            assert (local.path.stat().st_size, local.sha256) == (local.file.bytes, local.file.sha256)


def test_offline_without_files(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"ind.cora.allx, .*run `rdgraph data fetch cora`"):
        load_dataset("cora", root=tmp_path, offline=True)


# ---------------------------------------------------------------------- the files as they are
@needs_files
@pytest.mark.parametrize(
    ("name", "rows", "unique", "loops", "pairs", "bare"),
    [
        ("texas", 325, 325, 16, 279, 37),
        ("wisconsin", 515, 515, 16, 450, 43),
        ("cornell_old", 298, 298, 3, 277, 34),
        ("cornell", 277, 277, 0, 277, None),
        ("cora", 10858, 10556, 0, 5278, None),
        ("citeseer", 9464, 9228, 124, 4552, 48),
        ("pubmed", 88676, 88651, 3, 44324, None),
        ("film", 26659, 26659, 0, 26659, None),
    ],
)
def test_stored_edges(name: str, rows: int, unique: int, loops: int, pairs: int, bare: int | None) -> None:
    data = raw(name)
    graph = Graph.from_edges(data.edges, data.y.size, duplicates="once")
    proper = graph.without_self_loops()
    assert (data.edges.shape[1], graph.num_edges, graph.num_edges - proper.num_edges) == (rows, unique, loops)
    assert proper.undirected().num_edges == 2 * pairs
    if bare is not None:
        collected_from_none = np.setdiff1d(np.arange(graph.num_nodes), proper.edge_index[1])
        assert collected_from_none.size == bare


@needs_files
@pytest.mark.parametrize("name", SEEN)
def test_counts_are_those_of_the_catalogue(name: str) -> None:
    entry, data = sources.entry(name), load_dataset(name, variant=Variant(component="all"), offline=True)
    got = (data.num_nodes, data.graph.num_edges, data.num_features, data.num_classes)
    assert got == (entry.nodes, 2 * entry.edges, entry.features, entry.classes)
    assert data.graph.is_undirected
    assert not data.graph.has_self_loops
    assert data.num_splits == 10
    density = np.count_nonzero(raw(name).x.toarray() if data.is_sparse else data.x) / np.prod(data.x.shape)
    assert data.is_sparse == (density < 0.2)


@needs_files
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("texas", (87, 59, 37)), ("cornell", (87, 59, 37)), ("cornell_old", (87, 59, 37)), ("wisconsin", (120, 80, 51)),
        ("film", (3648, 2432, 1520)), ("chameleon", (1092, 729, 456)), ("squirrel", (2496, 1664, 1041)),
        ("cora", (1192, 796, 497)), ("pubmed", (9463, 6310, 3944)),
    ],
)  # fmt: skip
def test_split_sizes(name: str, expected: tuple[int, ...]) -> None:
    assert sizes(load_dataset(name, offline=True).masks) == [expected] * 10


@needs_files
@pytest.mark.parametrize(
    ("name", "edge"),
    [("texas", 0.061), ("wisconsin", 0.178), ("cornell_old", 0.296), ("cornell", 0.123), ("film", 0.217),
     ("chameleon", 0.230), ("squirrel", 0.222), ("cora", 0.810), ("citeseer", 0.736), ("minesweeper", 0.68),
     ("tolokers", 0.59)],
)  # fmt: skip
def test_edge_homophily(name: str, edge: float) -> None:
    data = load_dataset(name, variant=Variant(component="all"), offline=True)
    y = np.maximum(data.y, 0) if name == "citeseer" else data.y  # the published figure counts the unknown as class 0
    assert data.graph.homophily(y) == pytest.approx(edge, abs=0.005 if edge in (0.68, 0.59) else 0.0006)


@needs_files
def test_the_old_cornell_carries_the_words_and_classes_of_texas() -> None:
    old, texas, new = (load_dataset(name, offline=True) for name in ("cornell_old", "texas", "cornell"))
    assert (old.x != texas.x).nnz == 0
    assert np.array_equal(old.y, texas.y)
    assert not np.array_equal(old.graph.edge_index, new.graph.edge_index)  # the same graph, its nodes renumbered
    spectra = [np.linalg.eigvalsh(data.graph.adjacency.toarray()) for data in (old, new)]
    assert spectra[0] == pytest.approx(spectra[1], abs=1e-9)
    assert np.bincount(new.y).tolist() == [38, 16, 30, 82, 17]
    assert any("byte for byte" in note and "texas" in note for note in old.meta.notes)
    assert not any("byte for byte" in note for note in new.meta.notes)
    stored = split_masks("cornell_old")
    assert all(np.array_equal(getattr(new.masks, part), getattr(stored, part)) for part in PARTS)


@needs_files
def test_cora_is_cut_to_what_its_splits_cover() -> None:
    data = load_dataset("Cora", offline=True)
    assert (data.num_nodes, data.graph.num_edges) == (2485, 2 * 5069)
    assert data.masks.covered.all()
    assert np.unique(data.graph.components()).size == 1
    whole = load_dataset("cora", variant=Variant(component="all"), offline=True)
    kept = whole.graph.largest_component()[1]
    assert np.array_equal(np.flatnonzero(whole.masks.covered[0]), kept)
    assert np.array_equal(whole.y[kept], data.y)
    assert (whole.x[kept] != data.x).nnz == 0


@needs_files
def test_citeseer_lives_on_two_graphs_and_has_nodes_without_label() -> None:
    stored, data = split_masks("citeseer"), load_dataset("citeseer", offline=True)
    assert sizes(stored) == [(1017, 679, 424) if k in (4, 5) else (1596, 1065, 666) for k in range(10)]
    unknown = np.flatnonzero(data.y < 0)
    assert (unknown.size, unknown[0], unknown[1], unknown[-1]) == (15, 2407, 2489, 3309)
    assert data.x[unknown].nnz == 0
    assert not np.isin(unknown, data.graph.isolated).any()
    assert data.graph.isolated.size == 48
    for part, most in (("train", 11), ("val", 7), ("test", 4)):
        dropped = getattr(stored, part) & ~getattr(data.masks, part)
        assert np.array_equal(dropped, getattr(stored, part) & (data.y < 0))
        assert dropped.sum(axis=1).max() == most
    assert not (data.masks.covered & (data.y < 0)).any()
    assert any("(4 to 11 training, 0 to 7 validation, 0 to 4 test)" in note for note in data.meta.notes)

    assert data.num_nodes == 3327
    single = data.split(4).component()
    assert (single.num_nodes, single.graph.num_edges, single.num_splits) == (2120, 2 * 3679, 1)
    assert single.masks.covered[0].sum() == np.count_nonzero(single.y >= 0)
    assert any("Splits 4, 5, no other, cover exactly" in note for note in data.meta.notes)


@needs_files
def test_features_of_each_kind() -> None:
    pubmed, texas = load_dataset("pubmed", offline=True), load_dataset("texas", offline=True)
    assert np.unique(pubmed.x.data).size > 100
    assert set(texas.x.data) == {1.0}
    for name, empty in (("chameleon", 233), ("squirrel", 165)):
        assert np.count_nonzero(np.diff(load_dataset(name, offline=True).x.indptr) == 0) == empty
    assert np.bincount(load_dataset("chameleon_filtered", offline=True).y).tolist() == [242, 134, 209, 164, 141]
    assert np.bincount(load_dataset("squirrel_filtered", offline=True).y).tolist() == [756, 516, 397, 321, 233]


@needs_files
def test_stored_direction_and_loops_on_request() -> None:
    data = load_dataset("texas", variant=Variant(undirected=False, self_loops="keep"), offline=True)
    assert np.array_equal(data.graph.edge_index, Graph.from_edges(raw("texas").edges, 183).edge_index)
    once = load_dataset("cornell", variant=Variant(undirected=False), offline=True)
    assert (once.graph.num_edges, once.graph.is_undirected) == (277, False)
    assert any("every edge once" in note for note in once.meta.notes)


@needs_files
def test_everything_is_recorded() -> None:
    meta = load_dataset("texas", variant=Variant(features="row"), offline=True).meta
    assert dict(meta.variant) == {
        "undirected": "true", "self_loops": "remove", "features": "row", "component": "covered",
    }  # fmt: skip
    assert dict(meta.sources) == {file.key: file.sha256 for file in sources.entry("texas").all_files}
    assert (meta.name, meta.split) == ("texas", "geom-gcn")
    assert "16 self-loops were removed." in meta.notes
    assert "309 stored edges join 279 pairs of nodes, now in both directions." in meta.notes
    assert load_dataset("minesweeper", offline=True).meta.split == "heterophilous-graphs"


@needs_files
def test_other_splits() -> None:
    drawn = load_dataset("cora", split="stratified", variant=Variant(component="largest"), offline=True)
    assert (drawn.num_nodes, drawn.num_splits) == (2485, 10)
    assert drawn.masks.covered.all()
    assert load_dataset("cora", split="stratified", offline=True).num_nodes == 2708
    assert not any("split_0.6" in key for key, _ in drawn.meta.sources)
    own = Masks(*np.eye(3, 2708, dtype=bool)[:, None])
    given_splits = load_dataset("cora", split=own, variant=Variant(component="all"), offline=True)
    assert (given_splits.masks.train[0].argmax(), given_splits.meta.split) == (0, "given")
    with pytest.raises(UnknownName, match="expected a split, got 'random'"):
        load_dataset("cora", split="random")


@needs_files
@pytest.mark.parametrize("name", SEEN)
def test_loading_is_fast(name: str) -> None:
    load_dataset(name, offline=True)
    spent = []
    for _ in range(2):
        start = time.process_time()
        load_dataset(name, offline=True)
        spent.append(time.process_time() - start)
    assert min(spent) < (2.0 if name in ("squirrel", "pubmed") else 1.0)


def test_embedded_sets_go_through_the_same_door() -> None:
    data = load_dataset("Karate")
    assert (data.num_nodes, data.graph.num_edges, data.graph.has_self_loops) == (34, 156, False)
    looped = load_dataset("karate", variant=Variant(self_loops="add"), split="stratified")
    assert looped.graph.num_edges == 156 + 34
    assert "34 self-loops were added." in looped.meta.notes
    assert looped.num_splits == 10


# ---------------------------------------------------------------------- variants
@st.composite
def node_data(draw: st.DrawFn) -> NodeData:
    n = draw(st.integers(3, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    graph = Graph.from_edges(np.array(pairs, dtype=np.int64).reshape(-1, 2).T, n, duplicates="once")
    x = np.array(draw(st.lists(st.integers(-3, 3), min_size=2 * n, max_size=2 * n)), np.float32).reshape(n, 2)
    trio = draw(st.permutations(range(n)))[:3]
    masks = Masks(*np.eye(n, dtype=bool)[trio][:, None])
    return NodeData(graph, csr_array(x) if draw(st.booleans()) else x, np.arange(n) % 2, masks)


variants = st.builds(
    Variant,
    st.booleans(),
    st.sampled_from(["remove", "keep", "add"]),
    st.sampled_from(["raw", "row"]),
    st.sampled_from(["covered", "all"]),
)


@given(node_data(), variants)
def test_prepare_does_what_the_variant_says(data: NodeData, variant: Variant) -> None:
    before = data.graph.adjacency.toarray() > 0
    after = prepare(data, variant)
    expected = before | before.T if variant.undirected else before
    diagonal = {"remove": np.zeros, "add": np.ones, "keep": lambda n: np.diag(before)}[variant.self_loops]
    expected[np.diag_indices_from(expected)] = diagonal(data.num_nodes)
    kept = np.arange(data.num_nodes)
    largest = data.graph.largest_component()[1]
    if variant.component == "covered" and np.isin(np.flatnonzero(data.masks.covered[0]), largest).all():
        kept = largest
    assert np.array_equal(after.graph.adjacency.toarray() > 0, expected[np.ix_(kept, kept)])
    assert np.array_equal(after.y, data.y[kept])
    assert after.masks.covered.sum() == 3
    assert issparse(after.x) == issparse(data.x)
    dense = [np.asarray(x.toarray() if issparse(x) else x) for x in (data.x, after.x)]
    if variant.features == "raw":
        assert np.array_equal(dense[1], dense[0][kept])
    assert after.meta.variant == variant.items()


@given(node_data(), variants)
def test_preparing_twice_changes_nothing_more(data: NodeData, variant: Variant) -> None:
    once = prepare(data, variant)
    twice = prepare(once, variant)
    assert np.array_equal(once.graph.edge_index, twice.graph.edge_index)
    assert abs(once.x - twice.x).max() <= 1e-6
    assert once.meta.variant == twice.meta.variant


@given(node_data())
def test_rows_sum_to_one_or_stay_zero(data: NodeData) -> None:
    scaled = row_normalised(data.x)
    sums = np.asarray(abs(scaled).sum(axis=1))
    before = np.asarray(abs(data.x).sum(axis=1))
    assert sums == pytest.approx((before > 0).astype(float))
    assert scaled.dtype == np.float32


def test_component_largest_cuts_always() -> None:
    graph = Graph.from_edges([[0, 1, 3], [1, 2, 4]], num_nodes=6)
    data = NodeData(graph, np.eye(6), np.array([0, 1, 0, 1, 0, 1]), Masks.none(6))
    assert prepare(data).num_nodes == 6
    cut = prepare(data, Variant(component="largest"))
    assert cut.y.tolist() == [0, 1, 0]
    assert cut.meta.notes[-1] == "Cut to the largest connected component: 3 of 6 nodes."


def test_one_split_outside_the_component_keeps_the_whole_graph() -> None:
    graph = Graph.from_edges([[0, 1, 3], [1, 2, 4]], num_nodes=6)
    inside, outside = np.eye(6, dtype=bool)[[0, 1, 2]], np.eye(6, dtype=bool)[[0, 1, 5]]
    data = NodeData(graph, np.eye(6), np.array([0, 1, 0, 1, 0, 1]), Masks(*np.stack([inside, outside], axis=1)))
    assert prepare(data).num_nodes == 6
    assert prepare(data.split(0)).num_nodes == 3


@pytest.mark.parametrize("choice", [{"self_loops": "drop"}, {"features": "unit"}, {"component": "giant"}])
def test_unknown_choices_are_refused(choice: dict[str, str]) -> None:
    with pytest.raises(UnknownName, match=f"expected a choice of {next(iter(choice))}"):
        Variant(**choice)
    with pytest.raises(InvalidArgument, match="True or False"):
        Variant(undirected="yes")


def test_compact_keeps_the_values() -> None:
    sparse, dense = np.diag([1.0, 2.0, 0.0, 4.0, 5.0, 6.0]), np.diag([1.0, 2.0])
    assert issparse(compact(sparse))
    assert np.array_equal(compact(sparse).toarray(), sparse)
    assert compact(sparse).nnz == 5
    assert np.array_equal(compact(csr_array(dense)), dense)
    assert compact(dense).dtype == compact(sparse).dtype == np.float32
