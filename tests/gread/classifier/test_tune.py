"""`tune`: settings that the validation nodes choose, then the classifier that was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from gread.classifier.estimators import GREADClassifier
from gread.datasets.embedded import karate
from rdgraph.errors import InvalidArgument

DATA = karate()
QUICK = {"epochs": 20, "hidden": 8, "adjacency": "original", "device": "cpu"}
FIT = {"graph": DATA.graph, "mask": DATA.masks.train[0], "val_mask": DATA.masks.val[0]}


@pytest.mark.slow
def test_the_chosen_settings_are_those_that_are_trained() -> None:
    tuned = GREADClassifier(tune=4, **QUICK).fit(DATA.x, DATA.y, **FIT)
    values = tuned.tuned_.best
    assert len(tuned.tuned_.results) == 4
    assert (values.model.hidden, values.training.epochs, values.gread.adjacency) == (8, 20, "original")
    searched = [s.name for s in tuned.tuned_.plan.space.searched]
    assert searched == ["learning_rate", "weight_decay", "input_dropout", "dropout", "time"]
    chosen = {name: tuned.tuned_.rows()[tuned.tuned_.chosen.number][name] for name in searched}
    plain = GREADClassifier(**QUICK | chosen).fit(DATA.x, DATA.y, **FIT)
    np.testing.assert_allclose(tuned.predict_proba(), plain.predict_proba(), atol=1e-6)
    best = tuned.history_[tuned.best_epoch_ - 1, 2]
    assert best == pytest.approx(max(r.val_accuracy for r in tuned.tuned_.results))


@pytest.mark.slow
def test_unknown_labels_do_not_matter() -> None:
    """The labels of all other nodes are hidden: the same settings are chosen."""
    hidden = np.where(FIT["mask"] | FIT["val_mask"], DATA.y, -1)
    one, two = (GREADClassifier(tune=3, **QUICK).fit(DATA.x, y, **FIT) for y in (DATA.y, hidden))
    assert one.tuned_.best == two.tuned_.best
    np.testing.assert_array_equal(one.predict_proba(), two.predict_proba())


def test_it_is_an_argument_like_others() -> None:
    classifier = GREADClassifier(tune=2, **QUICK)
    assert clone(classifier).get_params()["tune"] == 2
    classifier.fit(DATA.x, DATA.y, **FIT)
    classifier.set_params(tune=0).fit(DATA.x, DATA.y, **FIT)
    assert not hasattr(classifier, "tuned_")


@pytest.mark.parametrize("tune", [-1, 1.5, "many", True])
def test_only_whole_numbers_of_trials(tune: object) -> None:
    with pytest.raises(InvalidArgument, match="tune"):
        GREADClassifier(tune=tune, **QUICK).fit(DATA.x, DATA.y, **FIT)


def test_weights_and_no_validation_are_refused() -> None:
    weights = np.linspace(0.5, 1.5, DATA.num_nodes)
    with pytest.raises(InvalidArgument, match="equal weight"):
        GREADClassifier(tune=2, **QUICK).fit(DATA.x, DATA.y, sample_weight=weights, **FIT)
    with pytest.raises(InvalidArgument, match="validation nodes"):
        GREADClassifier(tune=2, validation=0.0, **QUICK).fit(DATA.x, DATA.y, graph=DATA.graph, mask=FIT["mask"])
