"""`GREADClassifier`: the manner of scikit-learn, what it learns, what it refuses, and what it writes."""

from __future__ import annotations

import dataclasses
import inspect
import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, eye_array

from gread.classifier import storage
from gread.classifier.estimator import GREADClassifier
from gread.classifier.inputs import read_graph
from gread.classifier.labels import read_labels
from gread.classifier.node_classifier import OWN
from gread.classifier.sample import read_parts
from gread.datasets.embedded import karate
from gread.datasets.masks import Masks
from gread.datasets.node_data import NodeData
from gread.models.bundle import load_bundle, save_bundle
from gread.models.problem import Problem
from gread.models.trained_network import Network
from gread.settings.config import Config, Training
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.ensemble import METRICS
from gread.training.trainer import train
from rdgraph import Graph
from rdgraph.errors import Diverged, FileError, InvalidArgument, NotApplicable, RdgraphError, UnknownName

#: A network that trains in a blink.
SMALL: dict[str, Any] = {
    "hidden": 8, "epochs": 25, "adjacency": "original", "method": "euler", "step": 1.0, "learning_rate": 0.05,
    "device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def club() -> NodeData:
    return karate()


@pytest.fixture(scope="module")
def fitted(club: NodeData) -> GREADClassifier:
    masks = club.masks
    return GREADClassifier(**SMALL).fit(
        club.x, club.y, graph=club.graph, mask=masks.train[0], val_mask=masks.val[0]
    )  # fmt: skip


# ---------------------------------------------------------------------- the manner of scikit-learn
def test_arguments_are_the_settings_with_their_defaults() -> None:
    own = {"seed": 0, "device": "auto", "validation": 0.2, "members": 1, "tune": 0, "graph": None, "features": None}
    settings = {f.name: f.default for part in (GreadSettings, Training) for f in dataclasses.fields(part)}
    assert GREADClassifier().get_params() == settings | own
    assert tuple(own) == OWN
    assert GREADClassifier().config == Config()
    kinds = [p.kind for p in inspect.signature(GREADClassifier).parameters.values()]
    assert kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD] + [inspect.Parameter.KEYWORD_ONLY] * (len(kinds) - 1)


def test_parameters_are_got_set_and_shown() -> None:
    clf = GREADClassifier("ST", hidden=32)
    assert clf.set_params(epochs=7, hidden=16) is clf
    assert (clf.get_params()["epochs"], clf.config.training.epochs, clf.config.model.hidden) == (7, 7, 16)
    assert clf.config.model.reaction == "ST"
    assert repr(clf) == "GREADClassifier(epochs=7, hidden=16, reaction='ST')"
    assert len(repr(GREADClassifier(features=np.ones((3000, 200))))) < 700  # scikit-learn shortens it
    with pytest.raises(ValueError, match=r"Invalid parameter 'epoch'.*'epochs'"):
        clf.set_params(epoch=3)
    with pytest.raises(TypeError, match="epoch"):
        GREADClassifier(epoch=3)
    settings = GREADClassifier(hidden=np.int64(8), learning_rate=np.float64(0.1), relu=np.bool_(False)).config
    assert (settings.model.hidden, settings.training.learning_rate, settings.model.relu) == (8, 0.1, False)


def test_scikit_learn_knows_it_as_a_classifier(fitted: GREADClassifier) -> None:
    base = pytest.importorskip("sklearn.base")
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted

    assert base.is_classifier(fitted)
    assert get_tags(fitted).target_tags.required
    assert not get_tags(fitted).input_tags.one_d_array
    assert get_tags(GREADClassifier(features=np.eye(2))).input_tags.one_d_array
    check_is_fitted(fitted)
    copy = base.clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "networks_")
    with pytest.raises(NotFittedError, match="GREADClassifier instance is not fitted"):
        check_is_fitted(copy)


@pytest.mark.parametrize("call", ["predict", "predict_proba", "decision_function"])
def test_prediction_before_fit(call: str) -> None:
    exceptions = pytest.importorskip("sklearn.exceptions")
    with pytest.raises(exceptions.NotFittedError, match="call fit first"):
        getattr(GREADClassifier(), call)()
    assert not hasattr(GREADClassifier(), "network_")


@pytest.mark.slow
def test_cross_validation_and_grid_search_cut_node_numbers(club: NodeData) -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    clf = GREADClassifier(**SMALL, graph=club.graph, features=club.x)
    nodes = np.arange(club.num_nodes)
    folds = selection.StratifiedKFold(3, shuffle=True, random_state=0)
    scores = selection.cross_val_score(clf, nodes, club.y, cv=folds)
    for score, (learn, test) in zip(scores, folds.split(nodes, club.y), strict=True):
        y = np.full(club.num_nodes, -1)
        y[learn] = club.y[learn]
        whole = GREADClassifier(**SMALL).fit(club.x, y, graph=club.graph)
        assert score == np.mean(whole.predict(nodes=test) == club.y[test])
    assert scores.mean() > 0.6
    grid = {"learning_rate": np.array([1e-6, 0.05]), "reaction": ["BS"]}
    search = selection.GridSearchCV(clf, grid, cv=2, scoring="roc_auc").fit(nodes[:, None], club.y)
    assert search.best_params_ == {"learning_rate": 0.05, "reaction": "BS"}
    assert search.predict([[33], [0]]).tolist() == [1, 0]


# ---------------------------------------------------------------------- what it learns
def test_a_fit_is_the_training_of_that_split(club: NodeData, fitted: GREADClassifier) -> None:
    done = train(club, [Trial(fitted.config, 0, 0)], device="cpu")
    assert np.array_equal(done.history[0], fitted.history_)
    assert fitted.history_.shape == (25, len(METRICS))
    assert (fitted.best_epoch_, fitted.n_iter_, fitted.n_features_in_) == (int(done.best_epoch[0]), 25, 34)
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.status_ == ("ok",)
    logits = done.network(0).logits(club.x, club.graph)
    assert np.array_equal(fitted.predict(), logits.argmax(1).numpy())
    np.testing.assert_allclose(fitted.predict_proba(), logits.double().softmax(1).numpy(), rtol=1e-12)
    np.testing.assert_allclose(fitted.decision_function(), (logits[:, 1] - logits[:, 0]).double().numpy(), atol=1e-6)
    assert fitted.score(None, club.y, mask=club.masks.test[0]) == pytest.approx(done.test_accuracy[0])
    assert done.test_accuracy[0] > 0.8


def test_names_and_unknown_labels(club: NodeData, fitted: GREADClassifier) -> None:
    names = np.array(["hi", "officer"], dtype=object)[club.y]
    names[~club.masks.covered[0]] = None
    masks = {"mask": np.flatnonzero(club.masks.train[0]), "val_mask": club.masks.val[0]}
    clf = GREADClassifier(**SMALL).fit(club.x, names, graph=club.graph, **masks)
    assert clf.classes_.tolist() == ["hi", "officer"]
    assert np.array_equal(clf.predict(), np.array(["hi", "officer"])[fitted.predict()])
    names[club.masks.test[0]] = np.nan
    blind = GREADClassifier(**SMALL).fit(club.x, names, graph=club.graph, **masks)
    assert np.isnan(blind.history_[:, 3]).all()
    assert np.isfinite(blind.history_[:, :3]).all()
    np.testing.assert_allclose(blind.history_[:, :3], fitted.history_[:, :3], atol=1e-5)
    np.testing.assert_allclose(blind.predict_proba(), fitted.predict_proba(), atol=1e-5)
    assert blind.score(None, names) == np.mean(
        [p == n for p, n in zip(blind.predict(), names, strict=True) if n == n and n]
    )


def test_test_labels_change_nothing(club: NodeData, fitted: GREADClassifier) -> None:
    y = np.where(club.masks.train[0] | club.masks.val[0], club.y, 1 - club.y)
    masks = {"mask": club.masks.train[0], "val_mask": club.masks.val[0]}
    clf = GREADClassifier(**SMALL).fit(club.x, y, graph=club.graph, **masks)
    assert np.array_equal(clf.predict_proba(), fitted.predict_proba())
    assert not np.array_equal(clf.history_[:, 3], fitted.history_[:, 3])


def test_every_form_of_a_graph_and_of_features(club: NodeData, fitted: GREADClassifier) -> None:
    pairs = club.graph.edge_index
    pyg = SimpleNamespace(edge_index=pairs, num_nodes=34)
    for graph in (nx.karate_club_graph(), club.graph.to_scipy(), pairs, pairs.tolist(), pyg):
        made = read_graph(graph, 34)
        assert np.array_equal(made.edge_index, club.graph.edge_index)
    masks = {"mask": club.masks.train[0], "val_mask": club.masks.val[0]}
    dense = GREADClassifier(**SMALL, graph=pairs).fit(club.x.toarray(), club.y, **masks)
    assert dense.score(None, club.y) > 0.8
    assert np.array_equal(fitted.predict(club.x.toarray()), fitted.predict())
    assert np.array_equal(fitted.predict(nodes=[5, 2]), fitted.predict()[[5, 2]])
    assert np.array_equal(fitted.predict_proba(nodes=club.y == 1), fitted.predict_proba()[club.y == 1])


def test_another_graph_with_the_same_features(club: NodeData, fitted: GREADClassifier) -> None:
    order = np.random.default_rng(0).permutation(34)[:30]
    part = club.subset(order)
    found = fitted.predict_proba(part.x, graph=part.graph)
    expected = fitted.network_.probabilities(part.x, part.graph).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not np.allclose(found, fitted.predict_proba()[order], atol=1e-3)
    assert fitted.score(part.x, part.y, graph=part.graph) == np.mean(found.argmax(1) == part.y)


def test_members_are_averaged(club: NodeData) -> None:
    args = {"graph": club.graph, "mask": club.masks.train[0]}
    alone = [GREADClassifier(**SMALL, seed=seed) for seed in (4, 5)]
    both = GREADClassifier(**SMALL, seed=4, members=2).fit(club.x, club.y, **args, val_mask=club.masks.val[0])
    for clf in alone:
        clf.fit(club.x, club.y, **args, val_mask=club.masks.val[0])
    mean = (alone[0].predict_proba() + alone[1].predict_proba()) / 2
    np.testing.assert_allclose(both.predict_proba(), mean, atol=1e-5)
    np.testing.assert_allclose(both.predict_proba().sum(1), 1.0, rtol=1e-12)
    assert np.array_equal(both.predict(), mean.argmax(1))
    assert both.histories_.shape == (2, 25, 4)
    assert not np.allclose(*both.histories_)
    assert np.allclose(alone[0].predict_proba() - alone[1].predict_proba(), 0, atol=1e-3) is False


def test_the_same_seed_gives_the_same_bits(club: NodeData) -> None:
    first, again, other = (
        GREADClassifier(**SMALL, seed=seed).fit(club.x, club.y, graph=club.graph) for seed in (1, 1, 2)
    )
    assert np.array_equal(first.predict_proba(), again.predict_proba())
    assert not np.array_equal(first.predict_proba(), other.predict_proba())
    parts = [read_parts(club.y, None, None, 0.2, seed, [0, 1]) for seed in (1, 2)]
    assert not np.array_equal(parts[0].val, parts[1].val)


def test_no_node_is_added_where_every_row_is_learned_from(club: NodeData) -> None:
    clf = GREADClassifier(**SMALL, beta="node").fit(club.x, club.y, graph=club.graph)
    assert clf.network_.parameters["coefficient_beta"].shape == (1, 34)
    assert np.isnan(clf.history_[:, 3]).all()
    assert np.isfinite(clf.history_[:, :3]).all()


def test_without_validation_the_last_epoch_is_kept(club: NodeData) -> None:
    clf = GREADClassifier(**SMALL, validation=0).fit(club.x, club.y, graph=club.graph)
    assert clf.best_epoch_ == clf.n_iter_ == 25
    assert np.isnan(clf.history_[:, 2:]).all()
    done = train(
        dataclasses.replace(club, masks=Masks(np.ones(34), np.zeros(34), np.zeros(34))),
        [Trial(clf.config)],
        device="cpu",
    )
    assert np.array_equal(done.history[0], clf.history_, equal_nan=True)
    assert clf.score(None, club.y) == pytest.approx(clf.history_[-1, 1])
    assert np.isnan([done.mean, done.std]).all()
    few = GREADClassifier(**SMALL, validation=0).fit(club.x, club.y, graph=club.graph, mask=[0, 33])
    assert few.predict(nodes=[0, 33]).tolist() == [0, 1]


def test_coefficients_of_nodes_stay_on_their_graph(club: NodeData) -> None:
    clf = GREADClassifier(**SMALL, beta="node", validation=0.25).fit(club.x, club.y, graph=club.graph)
    assert clf.network_.coefficients()["beta"].shape == (34,)
    assert clf.score(None, club.y) > 0.6
    assert np.array_equal(clf.predict(club.x), clf.predict())
    with pytest.raises(NotApplicable, match="beta belongs to its nodes"):
        clf.predict(club.x, graph=club.graph)


@pytest.mark.parametrize("reaction", ["GRAND++", "CGNN", "CGNN-authors"])
def test_trusted_nodes_and_mixing_matrices(club: NodeData, reaction: str, tmp_path: Path) -> None:
    clf = GREADClassifier(**SMALL | {"reaction": reaction, "epochs": 3}).fit(club.x, club.y, graph=club.graph)
    assert np.isfinite(clf.predict_proba()).all()
    clf.save(tmp_path)
    assert np.array_equal(GREADClassifier.load(tmp_path).predict_proba(), clf.predict_proba())
    if reaction == "CGNN":
        assert np.array_equal(clf.predict(club.x, graph=club.graph), clf.predict())
    else:
        with pytest.raises(NotApplicable, match="belongs to its nodes"):
            clf.predict(club.x, graph=club.graph)


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
def swapped(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    changed = np.array(values)
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: {"X": swapped(d.x.toarray(), (3, 7), np.nan)}, "node 3, column 7: nan"),
        (lambda d: {"X": d.x[:30]}, "graph of 30 nodes, as many as the features have rows, got 34"),
        (lambda d: {"y": d.y[:30]}, "expected 34 labels, one per row of X, got 30"),
        (lambda d: {"y": swapped(d.y, 4, -3)}, "row 4: -3"),
        (lambda d: {"y": np.full(34, -1)}, "some labels"),
        (lambda d: {"y": np.zeros(34, dtype=int)}, r"two classes or more, got \[0\]"),
        (lambda d: {"graph": None}, "expected a graph, got none"),
        (lambda d: {"graph": [[0], [34]]}, "node 34 is out of range"),
        (lambda d: {"mask": np.zeros(34, dtype=bool)}, "expected rows in mask, got none"),
        (lambda d: {"mask": np.ones(33, dtype=bool)}, r"mask of shape \(34,\)"),
        (lambda d: {"mask": [0, 99]}, "node 99"),
        (lambda d: {"mask": [0, 33], "val_mask": [1, 33]}, "row 33 in both"),
        (lambda d: {"mask": [0, 33], "y": swapped(d.y, 33, -1)}, "labels for all rows of mask, got row 33"),
        (lambda d: {"val_mask": [0, 9], "y": swapped(d.y, 9, -1)}, "labels for all rows of val_mask, got row 9"),
        (lambda d: {"mask": np.flatnonzero(d.y == 0)}, r"two classes or more, got \[0\] alone"),
        (
            lambda d: {"mask": np.flatnonzero(d.y == 0), "val_mask": np.flatnonzero(d.y)},
            "none of class 1, which 17 rows of val_mask have",
        ),
        (lambda d: {"X": np.ones((34, 0))}, r"0 feature\(s\) \(shape=\(34, 0\)\) while a minimum of 1"),
        (lambda d: {"sample_weight": np.ones(33)}, r"sample_weight \(34,\), one number per row"),
        (lambda d: {"sample_weight": np.ones((34, 1))}, r"sample_weight \(34,\)"),
        (lambda d: {"sample_weight": -np.ones(34)}, "sample_weight >= 0"),
        (lambda d: {"sample_weight": np.zeros(34)}, "all zero"),
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
        (lambda: fitted.score(None, np.full(34, -1)), "known label and a weight, got none"),
        (lambda: fitted.predict(swapped(club.x.toarray(), (1, 2), np.inf)), "node 1, column 2: inf"),
    ]:
        with pytest.raises(InvalidArgument, match=text):
            call()
    by_node = GREADClassifier(**SMALL, graph=club.graph, features=club.x)
    with pytest.raises(InvalidArgument, match=r"node numbers \(k,\) or \(k, 1\)"):
        by_node.fit(club.x.toarray(), club.y)
    with pytest.raises(InvalidArgument, match="node numbers once"):
        by_node.fit(np.arange(34), club.y).predict([3], nodes=[3])
    with pytest.raises(InvalidArgument, match="expected one graph, got two"):
        by_node.fit(np.arange(34), club.y, graph=club.graph)


# ---------------------------------------------------------------------- files
def test_saved_and_loaded_to_the_bit(club: NodeData, fitted: GREADClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "club")
    names = sorted(p.name for p in (tmp_path / "club").iterdir())
    assert [re.sub("[0-9a-f]{16}", "*", name) for name in names] == ["classifier-*.safetensors", "classifier.json"]
    loaded = GREADClassifier.load(tmp_path / "club")
    assert np.array_equal(loaded.predict_proba(), fitted.predict_proba())
    assert np.array_equal(loaded.history_, fitted.history_)
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.best_epoch_, loaded.n_iter_, loaded.n_features_in_, loaded.status_) == (
        fitted.best_epoch_, fitted.n_iter_, fitted.n_features_in_, fitted.status_,
    )  # fmt: skip
    assert loaded.set_params(hidden=4, epochs=3).n_iter_ == 25
    loaded.save(tmp_path / "again")  # the network that was trained, whatever the next one will be
    again = GREADClassifier.load(tmp_path / "again")
    assert np.array_equal(again.predict_proba(), fitted.predict_proba())
    assert (again.hidden, again.epochs, again.n_iter_) == (4, 3, 25)
    assert again.fit(club.x, club.y, graph=club.graph).network_.config.hidden == 4


def test_saved_with_names_members_and_node_numbers(club: NodeData, tmp_path: Path) -> None:
    names = np.array(["hi", "officer"])[club.y]
    clf = GREADClassifier(
        **SMALL | {"learning_rate": np.float64(0.05), "beta": "node"}, members=2, graph=club.graph,
        features=club.x.toarray(),
    ).fit(np.arange(34), names)  # fmt: skip
    clf.save(tmp_path)
    loaded = GREADClassifier.load(str(tmp_path))
    assert np.array_equal(loaded.predict_proba([[3], [1]]), clf.predict_proba([[3], [1]]))
    assert loaded.predict([33]).tolist() == ["officer"]
    assert np.array_equal(loaded.best_epochs_, clf.best_epochs_)
    assert np.array_equal(loaded.features, clf.features)


def test_files_of_something_else_are_refused(fitted: GREADClassifier, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected a saved classifier"):
        GREADClassifier.load(tmp_path)
    network = tmp_path / "network"
    fitted.network_.save(network)
    with pytest.raises(FileError, match="expected a saved classifier"):
        GREADClassifier.load(network)
    (network / "network.json").rename(network / "classifier.json")
    with pytest.raises(FileError, match="format 'gread classifier 3'"):
        GREADClassifier.load(network)
    place = tmp_path / "clf"
    fitted.save(place)
    with pytest.raises(FileError, match="expected a saved network"):
        Network.load(place)
    bundle = load_bundle(place / storage.MANIFEST, storage.FORMAT, "a saved classifier")
    words, numbers = bundle.words, bundle.numbers
    bias = numbers["member0.decoder_bias"]
    for changed, others in (
        ({"classes": [0, 1, 2]}, {}),
        ({"classes": None}, {}),
        ({"nodes": 33}, {}),
        ({"nodes": "many"}, {}),
        ({"features": 12}, {}),
        ({"arguments": {"epoch": 3}}, {}),
        ({"model": {}}, {}),
        ({"status": []}, {}),
        ({}, {"member0.decoder_bias": bias[:, :1]}),
        ({}, {"edge_weight": numbers["edge_weight"][:5]}),
        ({}, {"edge_index": numbers["edge_index"] + 30}),
        ({}, {"histories": torch.zeros(2, 3, 4)}),
        ({}, {"best_epochs": torch.zeros(0, dtype=torch.int64)}),
    ):
        save_bundle(place / storage.MANIFEST, storage.FORMAT, words | changed, numbers | others)
        with pytest.raises(FileError, match="got words and numbers that make none"):
            GREADClassifier.load(place)


@pytest.mark.parametrize(
    "changed",
    [
        {"x.indices": lambda v: v + 40},
        {"x.indices": lambda v: v - 40},
        {"x.indices": lambda v: v.double()},
        {"x.indptr": lambda v: v + 10**6},
        {"x.indptr": lambda v: v.flip(0)},
        {"x.indptr": lambda v: torch.cat([v[:1], v[:-1]])},
        {"x.indptr": lambda v: v[:-1]},
        {"x.indptr": lambda v: torch.cat([v[:3], v[3:4] + 5000, v[4:]])},
        {"x.data": lambda v: v[:-1]},
        {"x.data": lambda v: v * torch.inf},
        {"x.data": lambda v: v[None]},
    ],
)
def test_saved_features_that_point_outside_are_refused(
    fitted: GREADClassifier, tmp_path: Path, changed: dict[str, Any]
) -> None:
    """A crafted file: its hashes fit, its sparse matrix does not; scipy's compiled code must not see it."""
    fitted.save(tmp_path)
    found = load_bundle(tmp_path / storage.MANIFEST, storage.FORMAT, "a saved classifier")
    others = {name: change(found.numbers[name]) for name, change in changed.items()}
    save_bundle(tmp_path / storage.MANIFEST, storage.FORMAT, found.words, found.numbers | others)
    with pytest.raises(FileError, match="in the features"):
        GREADClassifier.load(tmp_path)


def test_isolated_nodes_and_features_without_entries() -> None:
    graph = Graph.from_edges([[0, 1, 2, 3], [1, 0, 3, 2]], num_nodes=6)
    x = csr_array(eye_array(6, 4, format="csr"))
    clf = GREADClassifier(**SMALL).fit(x, [0, 0, 1, 1, 0, 1], graph=graph, val_mask=[1, 3])
    assert np.isfinite(clf.predict_proba()).all()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7), cut=st.booleans(), which=st.integers(0, 1))
def test_a_damaged_classifier_is_refused_or_the_same(
    fitted: GREADClassifier, tmp_path: Path, place: int, bit: int, cut: bool, which: int
) -> None:
    fitted.save(tmp_path)
    path = sorted(tmp_path.iterdir())[which]
    content = path.read_bytes()
    k = place % len(content)
    path.write_bytes(content[:k] if cut else content[:k] + bytes([content[k] ^ (1 << bit)]) + content[k + 1 :])
    with suppress(FileError):
        assert np.array_equal(GREADClassifier.load(tmp_path).predict_proba(), fitted.predict_proba())
    path.unlink()


# ---------------------------------------------------------------------- rows, weights, names
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
    with pytest.raises(
        InvalidArgument, match=r"in the order of fit, got \['word 5'.*; take X\[clf.feature_names_in_\]"
    ):
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


def test_scikit_learn_bags_it(club: NodeData) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    clf = GREADClassifier(**SMALL, graph=club.graph, features=club.x)
    bag = ensemble.BaggingClassifier(clf, n_estimators=3, random_state=0)
    nodes = np.arange(34)[:, None]
    bag.fit(nodes, club.y)
    assert bag.score(nodes, club.y) > 0.8
    assert len({tuple(e.predict(nodes)) for e in bag.estimators_}) > 1
