"""`GREADClassifier`: labels and masks as they are read, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gread.classifier.estimators import GREADClassifier
from gread.classifier.sample import read_labels, read_parts
from gread.datasets.node_data import NodeData
from rdgraph.errors import Diverged, InvalidArgument, RdgraphError, UnknownName
from tests.gread.classifier.small_estimators import SMALL, swapped


# ---------------------------------------------------------------------- labels and masks, read
def test_labels_of_any_kind() -> None:
    for y, classes, codes in [
        ([3, -1, 0, 3], [0, 3], [1, -1, 0, 1]),
        (np.array([1.0, np.nan, 2.0]), [1, 2], [0, -1, 1]),
        ([True, False], [False, True], [1, 0]),
        (["b", float("nan"), "", "a", None], ["a", "b"], [1, -1, -1, 0, -1]),
        (np.array(["-1", "x"]), ["-1", "x"], [0, 1]),
        ([None, -1], [], [-1, -1]),
    ]:
        found = read_labels(y)
        assert (found[0].tolist(), found[1].tolist()) == (classes, codes)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([0, -2, 1], "row 1: -2"),
        ([-1, 0.5, 1], "row 1: 0.5"),
        (["a", 1], "all numbers or all names"),
        ([[0], [1]], r"got shape \(2, 1\)"),
        ([], r"got shape \(0,\)"),
        ([1j, 2], "complex"),
    ],
    ids=str,
)
def test_labels_that_cannot_be(y: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        read_labels(y)


@given(
    sizes=st.lists(st.integers(1, 30), min_size=2, max_size=5).filter(lambda sizes: max(sizes) > 1),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 9),
)
def test_the_share_that_validates(sizes: list[int], share: float, seed: int) -> None:
    codes = np.append(np.repeat(np.arange(len(sizes)), sizes), [-1, -1])
    parts = read_parts(codes, None, None, share, seed, range(len(sizes)))
    total = sum(sizes)
    assert not (parts.train & parts.val).any()
    assert np.array_equal(parts.train | parts.val, codes >= 0)
    assert not parts.rest.any()
    counts = np.bincount(codes[parts.val], minlength=len(sizes))
    room = np.array(sizes) - 1
    assert (counts <= room).all()
    if (share * np.array(sizes) <= room).all():
        assert counts.sum() == max(1, round(share * total))
    assert (np.abs(counts - np.minimum(share * np.array(sizes), room)) <= 1 + 1e-6).all()
    assert counts.sum() >= 1
    again = read_parts(codes, None, None, share, seed, range(len(sizes)))
    assert np.array_equal(again.val, parts.val)


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: {"X": swapped(d.x.toarray(), (3, 7), np.nan)}, "node 3, column 7: nan"),
        (lambda d: {"X": d.x[:30]}, "graph of 30 nodes.*got 34"),
        (lambda d: {"y": d.y[:30]}, "expected 34 labels, one per row of X, got 30"),
        (lambda d: {"y": swapped(d.y, 4, -3)}, "row 4: -3"),
        (lambda d: {"y": np.full(34, -1)}, "at least one"),
        (lambda d: {"y": np.zeros(34, dtype=int)}, r"labels of two classes.*\[0\]"),
        (lambda d: {"graph": None}, "expected a graph, got none"),
        (lambda d: {"graph": [[0], [34]]}, "node 34 is out of range"),
        (lambda d: {"mask": np.zeros(34, dtype=bool)}, "expected rows in mask, got none"),
        (lambda d: {"mask": np.ones(33, dtype=bool)}, r"mask of shape \(34,\)"),
        (lambda d: {"mask": [0, 99]}, "node 99"),
        (lambda d: {"mask": [0, 33], "val_mask": [1, 33]}, "row 33 in both"),
        (lambda d: {"mask": [0, 33], "y": swapped(d.y, 33, -1)}, "labels for all rows of mask, got row 33"),
        (lambda d: {"val_mask": [0, 9], "y": swapped(d.y, 9, -1)}, "labels for all rows of val_mask, got row 9"),
        (lambda d: {"mask": np.flatnonzero(d.y == 0)}, r"in mask and val_mask.*\[0\].*some of 1"),
        (lambda d: {"graph": "ring"}, "got 'ring'; Graph.from_file reads a file"),
        (
            lambda d: {"mask": np.flatnonzero(d.y == 0), "val_mask": np.flatnonzero(d.y)},
            "none of class 1, which 17 rows of val_mask have",
        ),
        (lambda d: {"X": np.ones((34, 0))}, r"0 feature\(s\) \(shape=\(34, 0\)\) while a minimum of 1"),
        (lambda d: {"sample_weight": np.ones(33)}, r"sample_weight \(34,\), one number per row"),
        (lambda d: {"sample_weight": np.ones((34, 1))}, r"sample_weight \(34,\)"),
        (lambda d: {"sample_weight": -np.ones(34)}, "sample_weight >= 0"),
        (lambda d: {"sample_weight": np.zeros(34)}, "sample_weight > 0.*zeros"),
        (lambda d: {"sample_weight": np.full(34, np.nan)}, "finite sample_weight"),
        (lambda d: {"mask": [0, 33]}, "two training rows"),
    ],
)
def test_data_that_cannot_be(club: NodeData, change: Any, text: str) -> None:
    values = {"X": club.x, "y": club.y, "graph": club.graph} | change(club)
    with pytest.raises(InvalidArgument, match=text):
        GREADClassifier(**SMALL).fit(values.pop("X"), values.pop("y"), **values)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"validation": 1.0}, InvalidArgument, "0 <= validation < 1, got 1.0"),
        ({"validation": "half"}, InvalidArgument, "got 'half'"),
        ({"members": 0}, InvalidArgument, "whole number >= 1 for members"),
        ({"seed": -1}, InvalidArgument, "seed"),
        ({"hidden": 0}, InvalidArgument, "hidden >= 1"),
        ({"reaction": "BT"}, RdgraphError, "BT"),
        ({"adjacency": "hard"}, UnknownName, "hard"),
        ({"learning_rate": 1e30, "reaction": "-alpha*L@H + beta*H*H*H"}, Diverged, "diverged in epoch 2"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(club: NodeData, settings: dict[str, Any], error: type[Exception], text: str) -> None:
    clf = GREADClassifier(**SMALL | settings)
    with pytest.raises(error, match=text):
        clf.fit(club.x, club.y, graph=club.graph)
    assert not hasattr(clf, "network_")


def test_predictions_that_cannot_be(club: NodeData, fitted: GREADClassifier) -> None:
    for call, text in [
        (lambda: fitted.predict(club.x[:30]), "34 nodes of the fitted graph, got 30 rows"),
        (lambda: fitted.predict(club.x[:, :30]), "X has 30 features, but GREADClassifier is expecting 34"),
        (lambda: fitted.predict(graph=club.graph), "features X with another graph"),
        (lambda: fitted.predict(nodes=[34]), "node 34"),
        (lambda: fitted.score(None, club.y[:3]), "expected 34 labels"),
        (lambda: fitted.score(None, np.full(34, -1)), "known label and a weight"),
        (lambda: fitted.predict(swapped(club.x.toarray(), (1, 2), np.inf)), "node 1, column 2: inf"),
    ]:
        with pytest.raises(InvalidArgument, match=text):
            call()
    by_node = GREADClassifier(**SMALL, graph=club.graph, features=club.x)
    with pytest.raises(InvalidArgument, match=r"node numbers \(k,\) or \(k, 1\)"):
        by_node.fit(club.x.toarray(), club.y)
    with pytest.raises(InvalidArgument, match="node numbers were given twice"):
        by_node.fit(np.arange(34), club.y).predict([3], nodes=[3])
    with pytest.raises(InvalidArgument, match="expected one graph, got two"):
        by_node.fit(np.arange(34), club.y, graph=club.graph)


def test_columns_of_different_scales_are_warned_about(club: NodeData) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(34, 2)) * [1.0, 1e4]
    with pytest.warns(UserWarning, match=r"column 1: .*StandardScaler"):
        GREADClassifier(**SMALL).fit(x, club.y, graph=club.graph)
    with pytest.warns(UserWarning, match=r"income: .*StandardScaler"):
        GREADClassifier(**SMALL).fit(pd.DataFrame(x, columns=["age", "income"]), club.y, graph=club.graph)
    data = NodeData.from_scipy(club.graph.adjacency, x, club.y)
    with pytest.warns(UserWarning, match=r"standardised\(\)"):
        GREADClassifier(**SMALL).fit(data)
    GREADClassifier(**SMALL).fit(data.standardised())  # warnings are errors here


def test_columns_that_are_not_those_of_fit_are_named(club: NodeData) -> None:
    names = [f"c{k:02d}" for k in range(12)]
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(34, 12)), columns=names)
    fitted = GREADClassifier(**SMALL).fit(table, club.y, graph=club.graph)
    with pytest.raises(InvalidArgument, match="none called c11; add"):
        fitted.predict(table.drop(columns="c11"))
    with pytest.raises(InvalidArgument, match=r"others too: more; take X\[clf.feature_names_in_\]"):
        fitted.predict(table.assign(more=1.0))
    with pytest.raises(InvalidArgument, match="another order"):
        fitted.predict(table[names[::-1]])
    with pytest.raises(InvalidArgument, match="got both: 7"):
        GREADClassifier(**SMALL).fit(table.rename(columns={"c11": 7}), club.y, graph=club.graph)
