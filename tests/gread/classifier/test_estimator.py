"""`GREADClassifier`: the manner of scikit-learn, and what it learns."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array

from gread.classifier.estimators import ARGUMENTS, GREADClassifier
from gread.classifier.sample import read_graph, read_parts
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from gread.settings.config import Config, Training
from gread.settings.gread_settings import FOR_OWN_DATA, GreadSettings
from gread.settings.trials import Trial
from gread.training.ensemble import METRICS
from gread.training.trainer import train
from rdgraph import Graph
from rdgraph.errors import NotApplicable
from tests.gread.classifier.small_estimators import SMALL


# ---------------------------------------------------------------------- the manner of scikit-learn
def test_arguments_are_the_settings_with_their_defaults() -> None:
    own = {"seed": 0, "device": "auto", "validation": 0.2, "members": 1, "class_weight": None, "tune": 0,
           "verbose": 0, "graph": None, "features": None}  # fmt: skip
    settings = {f.name: f.default for part in (GreadSettings, Training) for f in dataclasses.fields(part)}
    assert GREADClassifier().get_params() == settings | FOR_OWN_DATA | own
    assert tuple(own) == ARGUMENTS
    assert GREADClassifier().config == Config().updated(FOR_OWN_DATA)
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


def test_scikit_learn_bags_it(club: NodeData) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    clf = GREADClassifier(**SMALL, graph=club.graph, features=club.x)
    bag = ensemble.BaggingClassifier(clf, n_estimators=3, random_state=0)
    nodes = np.arange(34)[:, None]
    bag.fit(nodes, club.y)
    assert bag.score(nodes, club.y) > 0.8
    assert len({tuple(e.predict(nodes)) for e in bag.estimators_}) > 1


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


def test_isolated_nodes_and_features_without_entries() -> None:
    graph = Graph.from_edges([[0, 1, 2, 3], [1, 0, 3, 2]], num_nodes=6)
    x = csr_array(eye_array(6, 4, format="csr"))
    clf = GREADClassifier(**SMALL).fit(x, [0, 0, 1, 1, 0, 1], graph=graph, val_mask=[1, 3])
    assert np.isfinite(clf.predict_proba()).all()
