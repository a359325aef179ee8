"""`Meta`: where a data set comes from and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass

from rdgraph.errors import UnknownName

#: What may be measured on the nodes of a mask: the share of hits, or the area under the ROC curve of two classes.
ACCURACY, ROC_AUC = "accuracy", "roc_auc"
METRIC_TITLES = {ACCURACY: "accuracy", ROC_AUC: "ROC-AUC"}


@dataclass(frozen=True)
class Meta:
    """Where a data set comes from and what was done to it.

    `sources` are pairs (file or work, its sha256 or reference), `variant` pairs (step, choice), `classes` the names of
    the labels 0, 1, ..., empty where unknown, `notes` sentences on what a user ought to know, `cautions` those that
    `NodeData.warnings` repeats. `metric` is what networks are chosen and reported by on this set: accuracy, or roc_auc
    where its authors use that.

    >>> Meta("mine", metric="roc_auc").metric_title
    'ROC-AUC'
    """

    name: str
    title: str = ""
    sources: tuple[tuple[str, str], ...] = ()
    variant: tuple[tuple[str, str], ...] = ()
    split: str = ""
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metric: str = ACCURACY
    cautions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.metric not in METRIC_TITLES:
            raise UnknownName("metric", str(self.metric), METRIC_TITLES)

    @property
    def metric_title(self) -> str:
        """The metric as reports write it."""
        return METRIC_TITLES[self.metric]
