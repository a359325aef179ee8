"""`Meta`: the origin and preparation of a data set."""

from __future__ import annotations

from dataclasses import dataclass

from rdgraph.errors import UnknownName

#: The metrics on the nodes of a mask: accuracy, or the area under the ROC curve of two classes.
ACCURACY, ROC_AUC = "accuracy", "roc_auc"
METRIC_TITLES = {ACCURACY: "accuracy", ROC_AUC: "ROC-AUC"}


@dataclass(frozen=True)
class Meta:
    """The origin and preparation of a data set.

    `sources` are pairs (file or work, its sha256 or reference), `variant` pairs (step, choice), `classes` the names of
    the labels 0, 1, ..., empty if unknown, `notes` sentences for the user, `cautions` those that `NodeData.warnings`
    repeats. `metric` is used to select and report networks on this set: accuracy, or roc_auc if its authors use that.

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
        """The name of the metric in reports."""
        return METRIC_TITLES[self.metric]
