"""`GNNClassifier`: the networks of the trainer, settings by name, searches, files, other graphs."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from gread.classifier.estimators import GNNClassifier, GREADClassifier
from gread.datasets.embedded import karate
from gread.datasets.synthetic import csbm
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.trainer import train
from rdgraph import Graph
from rdgraph.errors import FileError, NotApplicable, UnknownName
from tests.gread.classifier.test_estimator_checks import EXCEPTIONS, edgeless

checks = pytest.importorskip("sklearn.utils.estimator_checks")
FAST: dict[str, Any] = {"hidden": 4, "epochs": 5, "device": "cpu"}


def fitted(model: str = "gcn", **settings: Any) -> GNNClassifier:
    data = karate()
    made = GNNClassifier(model, **FAST, **settings)
    return made.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])


@pytest.mark.parametrize("model", ["gcn", "gat", "h2gcn", "mlp"])
def test_it_is_the_network_of_the_trainer(model: str) -> None:
    clf, data = fitted(model, seed=3), karate()
    config = Config.of(model, hidden=4, epochs=5)
    network = train(data, [Trial(config, 0, 3)], device="cpu").network(0)
    assert clf.config == config
    np.testing.assert_allclose(clf.predict_proba(), network.probabilities(data.x, data.graph).numpy(), rtol=1e-5)
    assert clf.network_.config == config.model


def test_both_classifiers_are_one_for_gread() -> None:
    data = karate()
    options = {"graph": data.graph, "mask": data.masks.train[0], "val_mask": data.masks.val[0]}
    one, other = (
        made.fit(data.x, data.y, **options)
        for made in (GNNClassifier("gread", reaction="FB", **FAST), GREADClassifier("FB", **FAST))
    )
    np.testing.assert_array_equal(one.predict_proba(), other.predict_proba())


# ---------------------------------------------------------------------- settings
def test_settings_by_name() -> None:
    clf = GNNClassifier("gat", heads=2, epochs=7, seed=1)
    assert clf.get_params() == {
        "model": "gat", "seed": 1, "device": "auto", "validation": 0.2, "members": 1, "class_weight": None,
        "verbose": 0, "graph": None, "features": None, "heads": 2, "epochs": 7,
    }  # fmt: skip
    assert repr(clf) == "GNNClassifier(epochs=7, heads=2, model='gat', seed=1)"
    assert clf.config == Config.of("gat", heads=2, epochs=7)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert pickle.loads(pickle.dumps(clf)).get_params() == clf.get_params()


def test_unknown_names_are_errors() -> None:
    with pytest.raises(UnknownName, match="expected a setting of gcn, got 'layer'; did you mean 'layers'"):
        GNNClassifier("gcn", layer=3)
    with pytest.raises(UnknownName, match="expected a setting of gcn, got 'heads'"):
        GNNClassifier("gcn").set_params(heads=3)
    data = karate()
    with pytest.raises(UnknownName, match="expected a model, got 'gatt'; did you mean 'gat'"):
        GNNClassifier("gatt").fit(data.x, data.y, graph=data.graph)


def test_another_network_keeps_the_settings_it_has_too() -> None:
    clf = GNNClassifier("gat", heads=2, hidden=4)
    assert clf.set_params(model="gcn", layers=3) is clf
    assert clf.config == Config.of("gcn", hidden=4, layers=3)
    clf.set_params(seed=5, hidden=6)
    assert (clf.seed, clf.config.model.hidden) == (5, 6)
    before = clf.get_params()
    with pytest.raises(UnknownName):
        clf.set_params(seed=9, heads=1)
    assert clf.get_params() == before


def test_a_search_over_networks_and_settings() -> None:
    data = karate()
    base = GNNClassifier("gcn", epochs=3, device="cpu", graph=data.graph, features=data.x)
    search = GridSearchCV(base, {"model": ["gcn", "mlp"], "hidden": [2, 4]}, cv=2)
    search.fit(np.arange(data.num_nodes), data.y)
    assert len(search.cv_results_["params"]) == 4
    assert set(search.best_params_) == {"model", "hidden"}
    assert search.best_estimator_.config.model.hidden == search.best_params_["hidden"]


# ---------------------------------------------------------------------- files and other graphs
@pytest.mark.parametrize("model", ["gat", "h2gcn"])
def test_what_is_saved_is_loaded(tmp_path: Path, model: str) -> None:
    clf = fitted(model, members=2)
    clf.save(tmp_path / "saved")
    again = GNNClassifier.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.predict_proba(), clf.predict_proba())
    assert again.get_params() == clf.get_params()


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    fitted().save(tmp_path / "gcn")
    with pytest.raises(FileError, match="argument of the classifier"):
        GREADClassifier.load(tmp_path / "gcn")


def test_prediction_on_another_graph() -> None:
    clf, data = fitted(), karate()
    turned = np.arange(data.num_nodes)[::-1]
    other = Graph.from_edges(turned[data.graph.edge_index], data.num_nodes)
    np.testing.assert_allclose(
        clf.predict_proba(csr_array(data.x)[turned], graph=other)[turned], clf.predict_proba(), rtol=1e-5
    )
    some = csbm(0, n=12, features=data.num_features)
    assert clf.predict(some.x, graph=some.graph).shape == (12,)


def test_a_network_with_parameters_of_nodes_stays_on_its_graph() -> None:
    data, clf = karate(), fitted("linkx")
    assert clf.predict().shape == (34,)
    with pytest.raises(NotApplicable, match="expected the fitted graph, since linkx has parameters for its nodes"):
        clf.predict(data.x, graph=data.graph)


# ---------------------------------------------------------------------- scikit-learn's checks
class Apart(GNNClassifier):
    """Rows as nodes without edges."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Apart:  # type: ignore[override]
        super().fit(X, y, sample_weight, graph=edgeless(X))
        return self

    def _log_probabilities(self, X: Any, graph: Any, nodes: Any) -> np.ndarray:
        self._check_fitted()
        return super()._log_probabilities(X, edgeless(X), nodes)


@pytest.mark.deep
@pytest.mark.slow
def test_what_scikit_learn_asks_of_an_estimator() -> None:
    model = Apart("mlp", hidden=8, epochs=20, learning_rate=0.1, device="cpu", dropout=0.0, input_dropout=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(model, expected_failed_checks=EXCEPTIONS, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) >= 40
