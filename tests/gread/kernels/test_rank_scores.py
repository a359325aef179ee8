"""The area under the ROC curve: against scikit-learn, with ties, missing classes, and in a training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from gread.datasets.embedded import digits, karate
from gread.datasets.node_data import NodeData
from gread.datasets.sources import datasets
from gread.models.label_propagation import accuracies, best_propagation, majority_class
from gread.models.problem import area_under_roc
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.checkpoint import fingerprint
from gread.training.ensemble import Ensemble
from gread.training.trainer import train
from rdgraph.errors import InvalidArgument, UnknownName

CONFIG = Config.of("gcn", hidden=8, epochs=30)


def club(metric: str = "roc_auc") -> NodeData:
    data = karate()
    return replace(data, meta=replace(data.meta, metric=metric))


@pytest.mark.parametrize("values", [3, 50, 10**9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_areas_are_those_of_scikit_learn_with_and_without_ties(values: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(values)
    scores = torch.tensor(rng.integers(0, values, (4, 101)) / values - 0.5, dtype=dtype)
    y, masks = rng.random((4, 101)) < 0.3, rng.random((4, 3, 101)) < 0.6
    found = area_under_roc(scores, torch.tensor(y), torch.tensor(masks, dtype=dtype))
    for m, p in np.ndindex(4, 3):
        own = masks[m, p]
        assert found[m, p].item() == pytest.approx(roc_auc_score(y[m][own], scores[m].numpy()[own]), abs=1e-14)


def test_one_class_alone_has_no_area() -> None:
    scores, masks = torch.tensor([[0.1, 0.2, 0.3]]), torch.tensor([[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]])
    found = area_under_roc(scores, torch.tensor([[False, False, True]]), masks)
    assert found[0, 0].isnan()
    assert found[0, 1] == 1


def test_a_training_is_chosen_and_reported_by_it() -> None:
    data = club()
    done = train(data, make_trials(CONFIG, range(4)), device="cpu")
    for k in range(4):
        assert done.history[k, :, 2].max() == pytest.approx(done.val_accuracy[k])
        assert done.best_epoch[k] == done.history[k, :, 2].argmax() + 1
        assert done.test_accuracy[k] == done.history[k, done.best_epoch[k] - 1, 3]
    ensemble = Ensemble(data, make_trials(CONFIG, range(4)))
    ensemble.advance(7)
    margins = (lambda x: x[..., 1] - x[..., 0])(ensemble.logits()).numpy()
    for k, column in np.ndindex(4, 3):
        nodes = [data.masks.train, data.masks.val, data.masks.test][column][k]
        expected = roc_auc_score(data.y[nodes], margins[k][nodes])
        assert ensemble.outcome().history[6, k, 1 + column].item() == pytest.approx(expected, abs=1e-6)


def test_the_metric_of_the_data_decides() -> None:
    by_area, by_hits = (train(club(m), make_trials(CONFIG, [0]), device="cpu") for m in ("roc_auc", "accuracy"))
    np.testing.assert_array_equal(by_area.history[..., 0], by_hits.history[..., 0])
    assert not np.array_equal(by_area.history[..., 2], by_hits.history[..., 2])
    assert fingerprint([club()], []) != fingerprint([club("accuracy")], []) == fingerprint([karate()], [])


def test_metrics_that_cannot_be_are_refused() -> None:
    data = digits()
    many = replace(data, meta=replace(data.meta, metric="roc_auc"))
    with pytest.raises(InvalidArgument, match="expected two classes for the metric roc_auc, got 10"):
        Ensemble(many, make_trials(CONFIG, [0]))
    with pytest.raises(InvalidArgument, match="data sets of one metric"):
        Ensemble([club(), club("accuracy")], make_trials(CONFIG, [0, 1]))
    with pytest.raises(UnknownName, match="metric"):
        replace(karate().meta, metric="area")


def test_references_are_measured_by_the_same_metric() -> None:
    data = club()
    scores = best_propagation(data, 1).scores
    found = accuracies(data, 1, scores)
    for value, nodes in zip(found, (data.masks.train, data.masks.val, data.masks.test), strict=True):
        expected = roc_auc_score(data.y[nodes[1]], (scores[:, 1] - scores[:, 0])[nodes[1]])
        assert value == pytest.approx(expected, abs=1e-12)
    assert accuracies(data, 1, majority_class(data, 1)) == (0.5, 0.5, 0.5)
    assert accuracies(karate(), 1, scores).train == 1.0


def test_sets_whose_authors_measure_the_area_have_it_as_their_metric() -> None:
    found = {name for name, record in datasets().items() if record.metric == "roc_auc"}
    assert found == {"minesweeper", "tolokers", "questions"}
