"""`Problem`: a checked data set on a device, as the ensemble needs it: features, labels, masks and the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gread.datasets.meta import ACCURACY, ROC_AUC
from gread.datasets.node_data import NodeData, read_data_sets
from gread.datasets.variants import row_normalised
from gread.models.features import Features
from gread.models.place import Place
from gread.settings.model_records import ModelSettings
from gread.settings.trials import Trial
from rdgraph.errors import InvalidArgument

# ---------------------------------------------------------------------- rank scores
# The area under the ROC curve of many members at once, on the device, without synchronising with the host.


def area_under_roc(scores: Tensor, positive: Tensor, masks: Tensor) -> Tensor:
    """The areas (M, P) for scores (M, n) on the nodes of masks (M, P, n); nan if one of the two classes is missing.

    It is the share of pairs of a positive and a negative node in the right order; a tie counts half:

        sum over positive i of (#{j negative: s_j < s_i} + #{j negative: s_j <= s_i}) / (2 #positive #negative)

    Args:
        scores: Finite numbers, larger for positive nodes.
        positive: Whether each node is positive, (1 or M, n).
        masks: 1 at the nodes that count, else 0.

    Returns:
        float64, (M, P).

    >>> scores, positive = torch.tensor([[0.1, 0.4, 0.4, 0.8]]), torch.tensor([[False, True, False, True]])
    >>> area_under_roc(scores, positive, torch.ones(1, 1, 4))
    tensor([[0.8750]], dtype=torch.float64)
    """
    ordered, order = scores.sort(-1)
    ordered = ordered.contiguous()
    ends = [torch.searchsorted(ordered, ordered, right=right) for right in (False, True)]
    is_positive = positive.expand_as(scores).gather(-1, order)[:, None]
    counted = masks.gather(-1, order[:, None].expand_as(masks)).double()
    positives, negatives = counted * is_positive, counted * ~is_positive
    # below[k] counts the negative nodes among the first k
    below = torch.cat([torch.zeros_like(negatives[..., :1]), negatives.cumsum(-1)], -1)
    pairs = sum(below.gather(-1, end[:, None].expand_as(masks)) for end in ends)
    return (positives * pairs).sum(-1) / (2 * positives.sum(-1) * negatives.sum(-1))


# ---------------------------------------------------------------------- problem
#: A class with fewer nodes cannot be in all three masks; Texas has one with a single node.
SMALL_CLASS = 3


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set, or one per member, for M trials.

    `targets` (M, n, classes) is the weight of every training node in the loss, at its class; `masks` (M, 3, n) is 1 at
    the training, validation and test nodes, `sizes` (M, 3) counts them, `labels` (1 or M, n) are the classes. Only
    training nodes are required: an accuracy on no nodes is nan. `metric` is that of the data, see
    `gread.datasets.meta.Meta`.
    """

    features: Features
    place: Place
    labels: Tensor
    targets: Tensor
    masks: Tensor
    sizes: Tensor
    classes: int
    metric: str = ACCURACY

    @property
    def nodes(self) -> int:
        return self.place.nodes

    def scores(self, logits: Tensor, hits: Tensor) -> Tensor:
        """The metric (M, 3) on training, validation and test nodes, for logits (M, n, classes) and hits (M, n).

        Hits are counted exactly, so that equal accuracies are equal numbers.
        """
        if self.metric == ROC_AUC:
            margins = (logits[..., 1] - logits[..., 0]).nan_to_num()
            return area_under_roc(margins, self.labels == 1, self.masks).to(self.masks.dtype)
        return (self.masks @ hits.to(self.masks.dtype)[..., None])[..., 0] / self.sizes

    @classmethod
    def make(
        cls, data: NodeData | Sequence[NodeData], trials: Sequence[Trial], *, device: str = "cpu",
        dtype: torch.dtype = torch.float32, weights: np.ndarray | None = None,
    ) -> Problem:  # fmt: skip
        """Move a data set (or one of equal size per trial) to a device; `weights` (n,) are those of the loss."""
        datas = read_data_sets(data)
        if len(datas) not in (1, len(trials)):
            raise InvalidArgument(f"expected one data set or one for each of {len(trials)} trials, got {len(datas)}")
        each = datas * len(trials) if len(datas) == 1 else datas
        pairs = {(id(one), trial.split): one for one, trial in zip(each, trials, strict=True)}
        for (_, split), one in pairs.items():
            check(one, split)
        classes = max(one.num_classes for one in datas)
        _check_alike(datas)
        settings = trials[0].config.model
        if len(datas) == 1:
            features = make_features(datas[0].x, settings, device, dtype, len(trials))
        else:
            dense = [one.x.toarray() if one.is_sparse else one.x for one in datas]  # type: ignore[union-attr]
            features = make_features(np.stack(dense), settings, device, dtype)
        known = {
            key: np.stack([getattr(one.masks, part)[key[1]] for part in ("train", "val", "test")])
            for key, one in pairs.items()
        }
        masks = np.stack([known[id(one), t.split] for one, t in zip(each, trials, strict=True)])
        parts = torch.tensor(masks, device=device).to(dtype)
        sizes = torch.tensor(masks.sum(-1), device=device, dtype=dtype)
        labels = torch.tensor(np.stack([one.y for one in datas]), device=device)
        shares = masks[:, 0].astype(np.float64) if weights is None else masks[:, 0] * weights
        targets = _targets(shares / shares.sum(-1, keepdims=True), labels, classes, dtype)
        place = Place(tuple(one.graph for one in datas), device, dtype, parts[:, 0])
        return cls(features, place, labels, targets, parts, sizes, classes, _shared_metric(datas, classes))


def _targets(shares: np.ndarray, labels: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """The weights (M, n) of the nodes in the loss at their labels (1 or M, n), as (M, n, classes)."""
    weights = torch.tensor(shares, device=labels.device, dtype=dtype)
    known = labels.expand_as(weights)
    targets = torch.zeros((*weights.shape, classes), device=labels.device, dtype=dtype)
    return targets.scatter_(-1, known.clamp(min=0)[..., None], torch.where(known >= 0, weights, 0.0)[..., None])


def make_features(
    x: Any, settings: ModelSettings, device: Any = "cpu", dtype: torch.dtype = torch.float32, members: int = 1
) -> Features:
    """Features (n, f) or (M, n, f), prepared as the settings say."""
    return Features.make(row_normalised(x) if settings.row_features else x, device, dtype, members)


def check(data: NodeData, split: int) -> None:
    """Raise if a split of a data set cannot be trained on."""
    if not 0 <= split < data.num_splits:
        raise InvalidArgument(
            f"expected a split among 0..{data.num_splits - 1} of {data.meta.name}, got {split}"
            + ("" if data.num_splits else "; make some with stratified_splits(data.y)")
        )
    counts, trained = (
        np.bincount(data.y[nodes], minlength=data.num_classes)
        for nodes in (data.masks.covered[split], data.masks.train[split])
    )
    missing = np.flatnonzero((trained == 0) & (counts >= SMALL_CLASS))
    if missing.size:
        raise InvalidArgument(
            f"expected every class among the training nodes of split {split} of {data.meta.name}, got none of class "
            f"{data.class_title(int(missing[0]))}; train on some of its nodes, or take all of them out of the split"
        )


def check_classes(data: NodeData) -> None:
    """Raise unless there are at least two classes."""
    labels = np.unique(data.y[data.y >= 0])
    if len(labels) < 2:
        names = data.meta.classes or tuple(map(str, labels.tolist()))
        got = f"{names[0]!r} alone" if len(labels) else "no label at all"
        raise InvalidArgument(
            f"expected labels of two classes or more in {data.meta.name}, got {got}; check the column of labels"
        )


def _check_alike(datas: Sequence[NodeData]) -> None:
    shapes = {(one.num_nodes, one.num_features) for one in datas}
    if len(shapes) > 1:
        given = ", ".join(f"{nodes} and {features}" for nodes, features in sorted(shapes))
        raise InvalidArgument(f"expected data sets with equal numbers of nodes and features, got {given}")


def _shared_metric(datas: Sequence[NodeData], classes: int) -> str:
    """The metric of all data sets; the area under the ROC curve needs two classes."""
    metrics = sorted({one.meta.metric for one in datas})
    if len(metrics) > 1:
        raise InvalidArgument(f"expected data sets of one metric, got {', '.join(metrics)}; train them one by one")
    if metrics[0] == ROC_AUC and classes != 2:
        raise InvalidArgument(f"expected two classes for the metric {ROC_AUC}, got {classes}; measure the accuracy")
    return metrics[0]
