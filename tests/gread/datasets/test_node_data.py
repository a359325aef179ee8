"""`NodeData`, its masks, stratified splits and the embedded sets."""

from __future__ import annotations

import re
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from gread.datasets.embedded import digits, karate, nearest_neighbours
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks, part_sizes, stratified_splits, stream
from rdgraph import Graph, generators
from rdgraph.errors import InvalidArgument, MissingDependency
from tests.property_examples import examples

TRAIN, VAL, TEST = [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]


def toy(**changes: Any) -> NodeData:
    """A path of four nodes, two features, two classes, one split."""
    masks = Masks(TRAIN, VAL, TEST)
    fields = {"graph": generators.path(4), "x": np.arange(8.0).reshape(4, 2), "y": [0, 1, 0, 1], "masks": masks}
    return NodeData(**{**fields, **changes})


def test_splits_that_are_not_there_are_named() -> None:
    with pytest.raises(InvalidArgument, match=r"no splits; draw some with stratified\(\)"):
        toy(masks=Masks.none(4)).split(0)
    with pytest.raises(InvalidArgument, match=r"a split in 0\.\.0, got 1"):
        toy().split(1)


# ---------------------------------------------------------------------- masks
def test_masks_are_boolean_rows_that_cannot_be_written() -> None:
    masks = Masks(TRAIN, VAL, TEST)
    assert masks.train.dtype == bool
    assert masks.train.tolist() == [[True, True, False, False]]
    assert (masks.num_splits, masks.num_nodes) == (1, 4)
    assert masks.covered.all()
    with pytest.raises(ValueError, match="read-only"):
        masks.val[0, 0] = True


def test_masks_do_not_write_protect_the_array_they_came_from() -> None:
    own = np.array([TRAIN], dtype=bool)
    Masks(own, [VAL], [TEST])
    own[0, 0] = False
    assert not own[0, 0]


def test_some_of_the_splits_and_some_of_the_nodes() -> None:
    masks = Masks([TRAIN, VAL], [VAL, TEST], [TEST, TRAIN])
    assert masks[1].train.tolist() == [[False, False, True, False]]
    assert masks[[1, 0]].test[1].tolist() == [False, False, False, True]
    assert [one.val[0].argmax() for one in masks] == [2, 3]
    assert masks.take([3, 2, 0]).train[0].tolist() == [False, False, True]
    with pytest.raises(IndexError):
        masks[2]


def test_no_splits() -> None:
    masks = Masks.none(4)
    assert (masks.num_splits, masks.num_nodes) == (0, 4)
    assert masks.take([0, 1]).num_nodes == 2
    assert toy(masks=masks).num_splits == 0


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((TRAIN, VAL, [TEST, TEST]), r"of one shape \(splits, nodes\), got \(1, 4\), \(1, 4\), \(2, 4\)"),
        (([TRAIN, [0, 1, 1, 0]], [VAL, VAL], [TEST, TEST]), "split 1: node 2 in train and val"),
        (([TRAIN, [0, 0, 0, 0]], [VAL, VAL], [TEST, TEST]), "training nodes in every split, got split 1 without"),
        (([0, 3], VAL, TEST), "True and False in the mask train, got int64.*node numbers"),
        ((TRAIN, ["a"], TEST), "True and False in the mask val"),
        ((TRAIN, VAL, np.zeros((1, 1, 4))), r"mask test of shape \(splits, nodes\) or \(nodes,\), got \(1, 1, 4\)"),
    ],
)
def test_masks_that_are_refused(parts: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        Masks(*parts)


def test_a_choice_of_nodes_may_empty_a_part_but_not_the_training_nodes() -> None:
    masks = toy().subset([0, 3]).masks
    assert [getattr(masks, part).sum() for part in ("train", "val", "test")] == [1, 0, 1]
    with pytest.raises(InvalidArgument, match="expected training nodes in every split, got split 0 without"):
        toy().subset([2, 3])


# ---------------------------------------------------------------------- NodeData
def test_the_counts_and_the_kinds_of_its_arrays() -> None:
    data = toy()
    assert (data.num_nodes, data.num_features, data.num_classes, data.num_splits) == (4, 2, 2, 1)
    assert data.x.dtype == np.float32
    assert data.y.dtype == np.int64
    assert repr(data) == "NodeData('data', num_nodes=4, num_edges=6, num_features=2, num_classes=2, num_splits=1)"
    for array in (data.x, data.y):
        assert not array.flags.writeable
    assert toy(y=[-1] * 4, masks=Masks.none(4)).num_classes == 0


def test_dense_float32_is_shared_and_the_owner_may_still_write() -> None:
    own = np.ones((4, 2), dtype=np.float32)
    data = toy(x=own)
    assert np.shares_memory(data.x, own)
    own[0, 0] = 2


def test_sparse_features_stay_sparse_canonical_and_read_only() -> None:
    repeated = coo_array(([1.0, 2.0, 4.0], ([0, 0, 3], [1, 1, 0])), shape=(4, 2))
    for kind in ("coo", "csc", "csr"):
        data = toy(x=repeated.asformat(kind))
        assert data.is_sparse
        assert isinstance(data.x, csr_array)
        assert data.x.dtype == np.float32
        assert data.x.nnz == 2
        assert data.x.toarray().tolist() == [[0, 3], [0, 0], [0, 0], [4, 0]]
        assert not data.x.data.flags.writeable
        assert data.subset([3, 0, 2]).x.toarray().tolist() == [[4, 0], [0, 3], [0, 0]]
        assert (data.x @ np.ones(2)).tolist() == [3, 0, 0, 4]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"x": np.ones((3, 2))}, r"expected features \(4, f\) and labels \(4,\).*got \(3, 2\) and \(4,\)"),
        ({"x": np.ones(4)}, r"expected features \(n, f\), got shape \(4,\)"),
        ({"x": np.array([["a"]] * 4)}, "expected numbers as features, got dtype <U1"),
        ({"x": np.array([[0, 1], [0, np.nan], [0, 0], [0, 0]])}, "got node 1, column 1: nan"),
        ({"x": csr_array([[0, 0, 1], [0, 0, 0], [0, np.inf, 0], [1, 0, 0]])}, "got node 2, column 1: inf"),
        ({"x": np.full((4, 1), 1e39)}, r"in the range of float32, got node 0, column 0: 1e\+39"),
        ({"y": [0, 1, 0]}, r"got \(4, 2\) and \(3,\)"),
        ({"y": [0, 1, -2, 1]}, "expected labels from 0, or -1 for unknown, got node 2: -2"),
        ({"y": [0, 1, 0.5, 1]}, "expected whole numbers in labels, got 0.5 at node 2"),
        ({"y": list("abab")}, "expected whole numbers in labels"),
        ({"y": [0, 1, 0, -1]}, r"split 0: node 3 has none; label it, or take it out"),
        ({"masks": Masks.none(5)}, r"expected masks \(splits, 4\), one column per node, got \(0, 5\)"),
        ({"meta": Meta("toy", classes=("a",))}, r"labels 0\.\.0 for 1 named classes, got node 1: 1"),
    ],
)
def test_data_that_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        toy(**changes)


def test_named_classes_are_counted_even_where_a_subset_lacks_one() -> None:
    data = toy(meta=Meta("toy", classes=("a", "b", "c")), masks=Masks.none(4))
    assert data.num_classes == 3
    assert data.subset([0, 2]).num_classes == 3


def test_subset_and_component_keep_rows_together() -> None:
    graph = Graph.from_edges([[0, 2, 2, 3], [2, 0, 3, 2]], 4)
    data = toy(graph=graph, y=[0, 1, 2, 3], masks=Masks([1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]))
    part = data.component()
    assert part.y.tolist() == [0, 2, 3]
    assert part.x.tolist() == data.x[[0, 2, 3]].tolist()
    assert part.masks.test.tolist() == [[False, False, True]]
    assert part.graph.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert part.meta.notes == ("Cut to the largest connected component: 3 of 4 nodes.",)
    assert part.component() is part
    by_mask = data.subset(np.array([True, False, True, True]))
    assert by_mask.y.tolist() == [0, 2, 3]


def test_split_keeps_one_split_and_says_which() -> None:
    data = toy(masks=Masks([TRAIN, VAL], [VAL, TEST], [TEST, TRAIN]), meta=Meta("toy", split="given"))
    one = data.split(1)
    assert one.num_splits == 1
    assert one.masks.val[0].tolist() == [False, False, False, True]
    assert one.meta.split == "given, split 1"
    assert one.split(0).meta.split == "given, split 1"
    for wrong in (2, -1):
        with pytest.raises(InvalidArgument, match=re.escape(f"expected a split in 0..1, got {wrong}")):
            data.split(wrong)


def test_warnings_tell_what_is_legal_but_odd() -> None:
    assert toy().warnings() == ()
    odd = NodeData(
        Graph.from_edges([[0, 1, 3], [1, 0, 3]], 5), np.diag([1.0, 1, 0, 1, 1]), [0, 0, 0, 3, -1],
        Masks([1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]), meta=Meta("odd", classes=("a", "b", "c", "d")),
    )  # fmt: skip
    assert odd.warnings() == (
        "The graph has self-loops.",
        "3 of 5 nodes have no neighbour.",
        "1 of 5 nodes have no feature other than zero.",
        "1 of 5 nodes have no label.",
        "No node is of class 1 (b).",
        "No node is of class 2 (c).",
        "Split 0 trains without class 3 (d).",
    )


# ---------------------------------------------------------------------- stratified splits
LABELS = st.lists(st.integers(-1, 4), min_size=3, max_size=80).filter(lambda y: sum(v >= 0 for v in y) >= 3)
SHARES = st.sampled_from([(0.48, 0.32), (0.25, 0.25), (0.6, 0.2), (0.1, 0.1), (0.9, 0.05)])


@given(LABELS, SHARES, st.integers(0, 3))
def test_every_labelled_node_is_in_one_part_and_every_class_in_every_part(
    y: list[int], shares: tuple[float, float], seed: int
) -> None:
    labels = np.array(y)
    masks = stratified_splits(labels, 2, train=shares[0], val=shares[1], seed=seed)
    together = masks.train.astype(int) + masks.val + masks.test
    assert np.array_equal(together, np.tile(labels >= 0, (2, 1)))
    for label in range(5):
        if (labels == label).sum() >= 3:
            for part in (masks.train, masks.val, masks.test):
                assert part[:, labels == label].any(axis=1).all()


@settings(max_examples=examples(400))
@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), SHARES)
def test_sizes_add_up_and_are_right_where_no_class_is_too_small(sizes: list[int], shares: tuple[float, float]) -> None:
    exact = np.array([*shares, 1 - sum(shares)])
    given_sizes = np.array(sizes)
    assume(given_sizes.sum() >= 3)
    counts = part_sizes(given_sizes, exact)
    assert np.array_equal(counts.sum(axis=1), given_sizes)
    assert (counts >= 0).all()
    wanted = np.outer(given_sizes, exact)
    if (wanted >= 1).all():
        assert (np.abs(counts - wanted) <= 1 + 1e-9).all()
        overall = given_sizes.sum() * exact
        assert (np.abs(counts.sum(axis=0) - overall) < 1 - 1e-9).all()
        lost = np.sort(overall - counts.sum(axis=0))  # largest remainders: no other rounding is closer
        assert lost[-1] - lost[0] <= 1 + 1e-9


@given(LABELS, st.integers(1, 4), st.integers(0, 5))
def test_a_split_does_not_depend_on_how_many_there_are(y: list[int], k: int, seed: int) -> None:
    few, many = (stratified_splits(y, count, seed=seed) for count in (k, k + 2))
    for part in ("train", "val", "test"):
        assert np.array_equal(getattr(few, part), getattr(many, part)[:k])


def test_the_sizes_of_a_split_and_what_the_seed_does() -> None:
    y = np.repeat(np.arange(5), [818, 426, 418, 351, 298])
    masks = stratified_splits(y, 3)
    assert masks.train.sum(axis=1).tolist() == [round(0.48 * y.size)] * 3
    assert masks.val.sum(axis=1).tolist() == [round(0.32 * y.size)] * 3
    assert np.bincount(y[masks.train[0]]).tolist() == np.bincount(y[masks.train[1]]).tolist()
    assert not np.array_equal(masks.train[0], masks.train[1])
    assert not np.array_equal(masks.train, stratified_splits(y, 3, seed=1).train)
    assert np.array_equal(masks.train, stratified_splits(y, 3).train)
    share = stratified_splits(y, 200, seed=3).train.mean(axis=0)
    assert 0.3 < share.min() < 0.48 < share.max() < 0.66  # 0.48 +- 5 standard deviations of 200 draws


def test_the_only_node_of_a_class_trains() -> None:
    y = np.append(np.repeat([0, 1], 30), 2)
    masks = stratified_splits(y)
    assert masks.train[:, -1].all()
    assert masks.train.sum(axis=1).tolist() == [29] * 10


def test_streams_have_names() -> None:
    assert stream(3, "a", 1).random() == stream(3, "a", 1).random()
    draws = [stream(*key).random() for key in ((3, "a", 1), (3, "a", 2), (3, "b", 1), (4, "a", 1))]
    assert len(set(draws)) == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"y": [0, 1, -1]}, r"three known ones, got shape \(3,\) with 2"),
        ({"y": np.zeros((3, 2))}, r"got shape \(3, 2\)"),
        ({"train": 0.7, "val": 0.3}, r"train \+ val < 1, got 0.7 and 0.3"),
        ({"val": 0.0}, "val > 0"),
        ({"k": 1.5}, "whole number >= 0 for splits, got 1.5"),
        ({"seed": -1}, "whole number >= 0 for a seed, got -1"),
    ],
)
def test_splits_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        stratified_splits(**{"y": [0, 0, 0, 1, 1, 1], **arguments})


def test_stratified_gives_new_splits_and_records_them() -> None:
    data = karate().stratified(4, train=0.6, val=0.2, seed=7)
    assert data.meta.split == "stratified 60/20/20, seed 7"
    assert np.array_equal(data.masks.train, stratified_splits(data.y, 4, train=0.6, val=0.2, seed=7).train)


# ---------------------------------------------------------------------- embedded sets
def test_karate_is_zacharys_club() -> None:
    data = karate()
    club = nx.karate_club_graph()
    assert np.array_equal(data.graph.adjacency.toarray(), nx.to_numpy_array(club, weight=None))
    assert np.bincount(data.y).tolist() == [17, 17]
    assert data.meta.classes[data.y[0]] == club.nodes[0]["club"] == "Mr. Hi"
    assert data.meta.classes[data.y[33]] == club.nodes[33]["club"] == "Officer"
    assert np.array_equal(data.x.toarray(), np.eye(34))
    assert [part.sum(axis=1).tolist() for part in (data.masks.train, data.masks.val, data.masks.test)] == [
        [16] * 10, [11] * 10, [7] * 10
    ]  # fmt: skip
    assert data.warnings() == ()


def test_digits_joins_each_image_to_its_nearest() -> None:
    from sklearn.datasets import load_digits

    data, source = digits(), load_digits()
    assert np.array_equal(data.x, (source.data / 16).astype(np.float32))
    assert np.array_equal(data.y, source.target)
    assert (data.num_nodes, data.num_classes, data.num_splits) == (1797, 10, 10)
    assert data.graph.is_undirected
    assert not data.graph.has_self_loops
    assert (data.graph.weight == 1).all()
    assert data.graph.degree.min() >= 10
    assert data.masks.train.sum(axis=1).tolist() == [863] * 10
    assert data.masks.val.sum(axis=1).tolist() == [575] * 10
    assert data.warnings() == ()
    for node in (0, 500, 1796):
        distance = ((source.data - source.data[node]) ** 2).sum(axis=1)
        distance[node] = np.inf
        nearest = set(np.argsort(distance, kind="stable")[:10])
        assert nearest <= set(data.graph.adjacency[[node]].indices)
    assert digits(3).graph.num_edges < data.graph.num_edges


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12), st.data())
def test_nearest_neighbours_by_the_definition(points: list[tuple[int, int]], data: st.DataObject) -> None:
    """Small whole numbers, so that most distances tie."""
    k = data.draw(st.integers(1, len(points) - 1))
    where = np.array(points)
    joined = np.zeros((len(points), len(points)), dtype=bool)
    for i, point in enumerate(where):
        others = [j for j in range(len(points)) if j != i]
        others.sort(key=lambda j, here=point: (((where[j] - here) ** 2).sum(), j))  # type: ignore[misc]
        joined[i, others[:k]] = True
    found = nearest_neighbours(where, k)
    assert np.array_equal(found.adjacency.toarray(), joined | joined.T)


def test_neighbours_that_are_refused() -> None:
    points = np.array([[0], [1], [3]])
    for wrong in (0, 1.5):
        with pytest.raises(InvalidArgument, match=re.escape(f"whole number >= 1 for neighbours, got {wrong}")):
            nearest_neighbours(points, wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="1 to 2 neighbours, got 3"):
        nearest_neighbours(points, 3)
    with pytest.raises(InvalidArgument, match="whole numbers, got fractions"):
        nearest_neighbours(points / 2, 1)


def test_digits_without_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingDependency, match=re.escape("pip install 'rdgraph[gread]'")):
        digits()
