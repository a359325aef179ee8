"""`fit(data)`: a data set of ours or of PyTorch Geometric in the place of features, labels and graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gread import GNNClassifier, GREADClassifier
from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from rdgraph.errors import InvalidArgument

FAST = {"hidden": 8, "epochs": 12, "learning_rate": 0.05, "device": "cpu"}


def named(data: NodeData) -> NodeData:
    return replace(data, meta=replace(data.meta, classes=("hi", "officer")))


def test_a_data_set_is_its_features_labels_graph_and_first_split() -> None:
    data = replace(karate(), meta=replace(karate().meta, classes=()))
    own = GREADClassifier(**FAST).fit(data)
    pieces = GREADClassifier(**FAST).fit(
        data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0]
    )
    np.testing.assert_array_equal(own.predict_proba(), pieces.predict_proba())
    np.testing.assert_array_equal(own.predict_proba(data), pieces.predict_proba())
    assert own.score(data) == pieces.score(None, data.y, mask=data.masks.test[0])
    assert own.score(data, mask=np.arange(34)) == pieces.score(None, data.y)


def test_classes_have_the_names_of_the_data() -> None:
    data = named(karate())
    clf = GNNClassifier("gcn", **FAST).fit(data)
    assert clf.classes_.tolist() == ["hi", "officer"]
    assert set(clf.predict(data)) <= {"hi", "officer"}
    plain = GNNClassifier("gcn", **FAST).fit(data, data.y)
    assert plain.classes_.tolist() == [0, 1]


def test_unknown_labels_and_data_without_splits() -> None:
    data = named(karate())
    y = data.y.copy()
    y[5:9] = -1
    bare = replace(data, y=y, masks=Masks.none(34))
    clf = GREADClassifier(**FAST).fit(bare)
    assert clf.classes_.tolist() == ["hi", "officer"]
    assert 0 <= clf.score(bare) <= 1


def test_data_of_pytorch_geometric() -> None:
    Data = pytest.importorskip("torch_geometric.data").Data
    data = karate()
    data = replace(
        data, x=np.asarray(data.x.todense() if data.is_sparse else data.x), meta=replace(data.meta, classes=())
    )
    masks = {f"{part}_mask": torch.tensor(getattr(data.masks, part)[0]) for part in ("train", "val", "test")}
    theirs = Data(
        x=torch.tensor(data.x), y=torch.tensor(data.y), edge_index=torch.tensor(data.graph.edge_index), **masks
    )
    clf = GREADClassifier(**FAST).fit(theirs)
    ours = GREADClassifier(**FAST).fit(data)
    np.testing.assert_allclose(clf.predict_proba(theirs), ours.predict_proba(), rtol=1e-5)
    assert clf.score(theirs) == ours.score(data, data.y, mask=data.masks.test[0])
    assert clf.network_(theirs).shape == (34, 2)


def test_a_graph_beside_a_data_set_is_refused() -> None:
    data = karate()
    with pytest.raises(InvalidArgument, match="expected a data set alone"):
        GREADClassifier(**FAST).fit(data, graph=data.graph)
    with pytest.raises(InvalidArgument, match="expected a data set alone"):
        GREADClassifier(**FAST, features=data.x, graph=data.graph).fit(data)
    with pytest.raises(InvalidArgument, match="requires y to be passed"):
        GREADClassifier(**FAST).fit(data.x, graph=data.graph)
