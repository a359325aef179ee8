"""Weights of the classes: None, balanced, or by label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gread import GNNClassifier, GREADClassifier, karate
from gread.classifier.sample import read_class_weight
from gread.settings.gread_settings import FOR_OWN_DATA
from rdgraph.errors import InvalidArgument

QUICK: dict[str, Any] = {"hidden": 4, "epochs": 5, "device": "cpu"}


def test_weights_of_classes_are_weights_of_their_rows() -> None:
    data, names = karate(), np.array(["b", "a"])
    y = names[data.y]
    given = GREADClassifier(class_weight={"a": 3.0}, **QUICK).fit(data.x, y, graph=data.graph)
    rows = GREADClassifier(**QUICK).fit(data.x, y, np.where(y == "a", 3.0, 1.0), graph=data.graph)
    assert np.array_equal(given.history_, rows.history_, equal_nan=True)
    plain = GREADClassifier(**QUICK).fit(data.x, y, graph=data.graph)
    assert not np.array_equal(given.history_, plain.history_, equal_nan=True)


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    y = np.repeat([0, 1, 2], [5, 1, 14])
    classes = np.arange(3)
    ours = read_class_weight("balanced", classes, np.bincount(y))
    np.testing.assert_allclose(ours, compute_class_weight("balanced", classes=classes, y=y))


def test_a_rare_class_is_found_by_its_weight() -> None:
    data = karate()
    y, rare = data.y.copy(), np.flatnonzero(data.y == 1)
    y[rare[3:]] = -1
    values = {**QUICK, "epochs": 30, "validation": 0.0, "learning_rate": 0.05}
    shares = [
        GNNClassifier("gcn", class_weight=weight, **values)
        .fit(data.x, y, graph=data.graph)
        .predict_proba()[:, 1]
        .mean()
        for weight in ({1: 0.2}, None, "balanced")
    ]
    assert shares == sorted(shares)


@pytest.mark.parametrize("wrong", ["equal", {7: 1.0}, {0: -1.0}, {0: 0.0, 1: 0.0}, 2.0])
def test_wrong_weights_are_refused(wrong: Any) -> None:
    data = karate()
    with pytest.raises(InvalidArgument):
        GREADClassifier(class_weight=wrong, **QUICK).fit(data)


def test_the_defaults_of_the_classifier_are_those_of_the_command_line() -> None:
    from studies.training.choices import choose_preset

    assert GREADClassifier().config == choose_preset(None, None, "mine").config
    assert {name: getattr(GREADClassifier(), name) for name in FOR_OWN_DATA} == FOR_OWN_DATA
