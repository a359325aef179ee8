"""`GREADClassifier`: names of columns, missing labels, classes, weights of rows and nodes that repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.classifier.estimators import GREADClassifier
from gread.classifier.sample import read_labels
from gread.datasets.node_data import NodeData
from gread.models.problem import Problem
from gread.settings.trials import Trial
from rdgraph.errors import InvalidArgument
from tests.gread.classifier.small_estimators import SMALL, swapped


class Frame:
    """What of a data frame is read: the names of its columns, and its values."""

    def __init__(self, values: Any, columns: list[Any]) -> None:
        self.values, self.columns = np.asarray(values), columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


class NotAvailable:
    """Compares as pandas.NA does: to nothing that has a truth value."""

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = object.__hash__


@pytest.mark.slow
def test_columns_are_known_by_their_names(club: NodeData, tmp_path: Path) -> None:
    x = club.x.toarray()[:, :6]
    names = [f"word {k}" for k in range(6)]
    clf = GREADClassifier(**SMALL).fit(Frame(x, names), club.y, graph=club.graph)
    assert clf.feature_names_in_.tolist() == names
    wanted = clf.predict_proba()
    clf.save(tmp_path)
    assert GREADClassifier.load(tmp_path).feature_names_in_.tolist() == names
    assert np.array_equal(clf.predict_proba(Frame(x, names)), wanted)
    turned = Frame(x[:, ::-1], names[::-1])
    with pytest.raises(InvalidArgument, match=r"in another order; take X\[clf.feature_names_in_\]"):
        clf.predict(turned)
    with pytest.raises(InvalidArgument, match="expected the columns"):
        clf.predict(Frame(x, [*names[:5], "other"]))
    with pytest.warns(UserWarning, match="fitted with feature names and comes without"):
        assert np.array_equal(clf.predict_proba(x), wanted)
    clf.fit(x, club.y, graph=club.graph)
    assert not hasattr(clf, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        clf.predict(Frame(x, names))
    with pytest.raises(InvalidArgument, match="all text, or none of them"):
        clf.fit(Frame(x, [*names[:5], 5]), club.y, graph=club.graph)
    assert not hasattr(clf.fit(Frame(x, list(range(6))), club.y, graph=club.graph), "feature_names_in_")
    by_node = GREADClassifier(**SMALL, graph=club.graph, features=Frame(x, names)).fit(np.arange(34), club.y)
    assert by_node.feature_names_in_.tolist() == names


def test_missing_labels_of_pandas() -> None:
    classes, codes = read_labels(np.array(["red", NotAvailable(), "blue", None, np.nan], dtype=object))
    assert (classes.tolist(), codes.tolist()) == (["blue", "red"], [1, -1, 0, -1, -1])
    classes, codes = read_labels([3, NotAvailable(), 5])
    assert (classes.tolist(), codes.tolist()) == ([3, 5], [0, -1, 1])
    pandas = pytest.importorskip("pandas")
    for dtype in ("string", "category", "object"):
        assert read_labels(pandas.Series(["red", None, "blue"], dtype=dtype))[1].tolist() == [1, -1, 0]
    assert read_labels(pandas.Series([3, None, 5], dtype="Int64"))[1].tolist() == [0, -1, 1]


def test_labels_of_another_kind_are_no_score_of_zero(club: NodeData, fitted: GREADClassifier) -> None:
    with pytest.raises(InvalidArgument, match=r"numbers as labels, as in fit, got names: \['0', '1'\]"):
        fitted.score(None, club.y.astype(str))
    named = GREADClassifier(**SMALL).fit(club.x, np.array(["a", "b"])[club.y], graph=club.graph)
    with pytest.raises(InvalidArgument, match="names as labels, as in fit, got numbers"):
        named.score(None, club.y)
    assert fitted.score(None, club.y.astype(float)) == fitted.score(None, club.y)


def test_classes_are_those_of_the_rows_that_are_learned_from(club: NodeData, fitted: GREADClassifier) -> None:
    masks = {"mask": club.masks.train[0], "val_mask": club.masks.val[0]}
    outside = np.flatnonzero(club.masks.test[0])
    for count in (1, 4):
        y = swapped(club.y, outside[:count], 2)
        clf = GREADClassifier(**SMALL).fit(club.x, y, graph=club.graph, **masks)
        assert clf.classes_.tolist() == [0, 1]
        assert np.array_equal(clf.predict_proba(), fitted.predict_proba())
        assert clf.score(None, y, mask=outside[:count]) == 0.0
    inside = swapped(club.y, np.flatnonzero(club.masks.val[0])[:1], 2)
    clf = GREADClassifier(**SMALL).fit(club.x, inside, graph=club.graph, **masks)
    assert clf.classes_.tolist() == [0, 1, 2]


def test_weights_of_rows(club: NodeData, fitted: GREADClassifier) -> None:
    masks = {"mask": club.masks.train[0], "val_mask": club.masks.val[0]}

    def fit(weights: Any, **changed: Any) -> GREADClassifier:
        return GREADClassifier(**SMALL).fit(club.x, club.y, weights, graph=club.graph, **masks | changed)

    even = fit(np.full(34, 3.0))
    np.testing.assert_allclose(even.history_, fitted.history_, atol=1e-5)
    first = np.flatnonzero(club.masks.train[0])[0]
    without = fit(None, mask=swapped(club.masks.train[0], first, False))
    zero = fit(swapped(np.ones(34), first, 0.0))
    np.testing.assert_allclose(zero.predict_proba(), without.predict_proba(), atol=1e-5)
    uneven = np.linspace(1.0, 5.0, 34)
    targets = Problem.make(club, [Trial(fitted.config, 0)], weights=uneven).targets[0].numpy()
    share = np.where(club.masks.train[0], uneven, 0.0)
    np.testing.assert_allclose(targets[np.arange(34), club.y], share / share.sum(), rtol=1e-6)
    assert targets.sum() == pytest.approx(1.0)
    assert abs(fit(uneven).history_[0, 0] - fitted.history_[0, 0]) > 1e-4
    found = fitted.predict() == club.y
    weights = np.linspace(0, 1, 34)
    assert fitted.score(None, club.y, weights) == pytest.approx(np.average(found, weights=weights))
    assert fitted.score(None, club.y, 2.0) == np.mean(found)
    rows = np.flatnonzero(club.masks.test[0])
    expected = np.average(found[rows], weights=weights[rows])
    assert fitted.score(None, club.y, weights, mask=rows) == pytest.approx(expected)


def test_nodes_that_repeat_weigh_more(club: NodeData) -> None:
    clf = GREADClassifier(**SMALL, graph=club.graph, features=club.x)
    train_nodes, val = np.flatnonzero(club.masks.train[0]), np.flatnonzero(club.masks.val[0])
    twice = np.concatenate([train_nodes, val, train_nodes[:3]])
    mask, chosen = (
        np.arange(len(twice)) < len(train_nodes),
        np.isin(np.arange(len(twice)), len(train_nodes) + np.arange(len(val))),
    )
    repeated = clf.fit(twice, club.y[twice], mask=mask, val_mask=chosen).predict_proba()
    once = np.concatenate([train_nodes, val])
    weights = np.where(np.arange(len(once)) < 3, 2.0, 1.0)
    kept = slice(0, len(once))
    weighted = clf.fit(once, club.y[once], weights, mask=mask[kept], val_mask=chosen[kept]).predict_proba()
    np.testing.assert_allclose(repeated, weighted, atol=1e-5)
    assert clf.predict([5, 5, 0]).tolist() == clf.predict([5, 0]).tolist()[:1] * 2 + [clf.predict([0])[0]]
    with pytest.raises(InvalidArgument, match="two for node 5"):
        clf.fit([0, 5, 5, 7, 33], [0, 0, 1, 0, 1])
