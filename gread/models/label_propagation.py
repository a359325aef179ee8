"""Baselines without training: label propagation over the graph, and the majority class.

Zhu, Ghahramani, "Learning from Labeled and Unlabeled Data with Label Propagation", CMU 2002; Zhou, Bousquet, Lal,
Weston, Schölkopf, "Learning with Local and Global Consistency", NIPS 2003.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array

from gread.datasets.meta import ROC_AUC
from gread.datasets.node_data import NodeData
from gread.models.problem import area_under_roc
from rdgraph.errors import InvalidArgument

#: The values of alpha to try, and the number of iterations.
ALPHAS, STEPS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99), 50


class Accuracies(NamedTuple):
    """Accuracies on the training, validation and test nodes, as shares of 1; nan for no nodes.

    If the metric of the data is roc_auc, the areas under the ROC curve.
    """

    train: float
    val: float
    test: float


class Propagated(NamedTuple):
    """The alpha chosen by validation accuracy, and its scores (n, classes)."""

    alpha: float
    scores: np.ndarray


def label_propagation(data: NodeData, split: int, alpha: float, steps: int = STEPS) -> np.ndarray:
    """Scores (n, classes) after `steps` iterations Y <- alpha A Y + (1 - alpha) Y0, with training nodes kept at Y0.

    Y0 is 1 at the class of every training node of a split and 0 elsewhere, A = D^-1/2 W D^-1/2 of the undirected graph.
    A node that no label reaches gets the shares of the classes among the training nodes.

    >>> from gread.datasets.embedded import karate
    >>> scores = label_propagation(karate(), 0, alpha=0.9)
    >>> scores.shape, round(accuracies(karate(), 0, scores).train, 3)
    ((34, 2), 1.0)
    """
    if not 0 <= alpha <= 1 or steps < 0:
        raise InvalidArgument(f"expected 0 <= alpha <= 1 and steps >= 0, got {alpha!r} and {steps!r}")
    if not 0 <= split < data.num_splits:
        raise InvalidArgument(f"expected a split among 0..{data.num_splits - 1}, got {split}")
    known = np.flatnonzero(data.masks.train[split])
    start = np.zeros((data.num_nodes, data.num_classes))
    start[known, data.y[known]] = 1.0
    operator, Y = _normalised(data), start.copy()
    for _ in range(steps):
        Y = alpha * (operator @ Y) + (1 - alpha) * start
        Y[known] = start[known]
    Y[Y.sum(1) == 0] = start[known].mean(0)
    return Y


def best_propagation(data: NodeData, split: int, steps: int = STEPS) -> Propagated:
    """Label propagation with the first alpha of best validation accuracy; the middle alpha without validation nodes."""
    candidates = [Propagated(alpha, label_propagation(data, split, alpha, steps)) for alpha in ALPHAS]
    scores = [accuracies(data, split, one.scores).val for one in candidates]
    return candidates[len(ALPHAS) // 2] if np.isnan(scores).all() else candidates[int(np.argmax(scores))]


def majority_class(data: NodeData, split: int) -> np.ndarray:
    """Scores (n, classes), for every node the shares of the classes among the training nodes.

    >>> from gread.datasets.embedded import karate
    >>> float(majority_class(karate(), 0)[0].sum())
    1.0
    """
    counts = np.bincount(data.y[data.masks.train[split]], minlength=data.num_classes)
    return np.tile(counts / counts.sum(), (data.num_nodes, 1))


def accuracies(data: NodeData, split: int, scores: np.ndarray) -> Accuracies:
    """The accuracies of the class with the highest score, the first of equals, or the metric of the data."""
    if data.meta.metric == ROC_AUC:
        masks = np.stack([getattr(data.masks, name)[split] for name in Accuracies._fields])
        areas = area_under_roc(
            *map(torch.as_tensor, ((scores[:, 1] - scores[:, 0])[None], data.y[None] == 1, masks[None]))
        )
        return Accuracies(*areas[0].tolist())
    right = scores.argmax(1) == data.y
    parts = (getattr(data.masks, name)[split] for name in Accuracies._fields)
    return Accuracies(*(float(right[part].mean()) if part.any() else float("nan") for part in parts))


def _normalised(data: NodeData) -> csr_array:
    """D^-1/2 W D^-1/2 of the undirected graph, with rows of zeros for nodes without neighbours."""
    graph = data.graph if data.graph.is_undirected else data.graph.undirected()
    source, target = graph.edge_index
    n = graph.num_nodes
    weights = csr_array((np.asarray(graph.weight, dtype=float), (target, source)), shape=(n, n))
    degree = np.asarray(weights.sum(1)).ravel()
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    return csr_array(weights.multiply(scale[:, None]).multiply(scale[None, :]))
