"""Scikit-learn's own checks of estimators, on a classifier whose every row is a node without neighbours.

A graph belongs to its rows, so the checks, which cut and stack rows as they like, get the one graph that survives this.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse

from gread.classifier.estimators import GREADClassifier
from rdgraph import Graph

checks = pytest.importorskip("sklearn.utils.estimator_checks")

#: What is not as scikit-learn has it, and why.
EXCEPTIONS = {
    "check_sample_weight_equivalence_on_dense_data": "which rows validate is drawn by their numbers",
    "check_sample_weight_equivalence_on_sparse_data": "which rows validate is drawn by their numbers",
    "check_classifiers_classes": "the label -1 means unknown",
    "check_supervised_y_2d": "labels with two axes are refused, not flattened with a warning",
    "check_dtype_object": "a dict among the features is a ValueError, not a TypeError",
}


class Apart(GREADClassifier):
    """Rows as nodes without edges."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Apart:  # type: ignore[override]
        super().fit(X, y, sample_weight, graph=edgeless(X))
        return self

    def _log_probabilities(self, X: Any, graph: Any, nodes: Any) -> np.ndarray:
        self._check_fitted()
        return super()._log_probabilities(X, edgeless(X), nodes)


def edgeless(X: Any) -> Graph:
    rows = X.shape[0] if issparse(X) else len(np.asarray(X))
    return Graph.from_edges([[], []], num_nodes=max(1, rows))


MODEL = Apart(
    "diffusion", hidden=8, epochs=8, learning_rate=0.3, adjacency="original", method="euler", step=1.0, device="cpu",
    dropout=0.0, input_dropout=0.0,
)  # fmt: skip


@pytest.mark.slow
def test_what_scikit_learn_asks_of_an_estimator() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(MODEL, expected_failed_checks=EXCEPTIONS, on_skip=None, on_fail=None)
    by_status: dict[str, dict[str, Any]] = {}
    for result in results:
        by_status.setdefault(result["status"], {})[result["check_name"]] = result["exception"]
    assert by_status.get("failed", {}) == {}
    assert set(by_status["xfail"]) == set(EXCEPTIONS)
    assert len(by_status["passed"]) >= 40
