"""`GNNClassifier`: any network by name as a scikit-learn classifier of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Self

from gread.classifier.node_classifier import DATA, OWN, NodeClassifier
from gread.settings.config import Config, Training
from gread.settings.model_records import find_model, models
from rdgraph.errors import UnknownName

MODEL = "model"
#: Arguments that are not settings; settings are not searched for.
UNTUNED = tuple(name for name in OWN if name != "tune")


class GNNClassifier(NodeClassifier):
    """Classifies the nodes of a graph from the labels of some of them, by any network of `rdgraph models`.

    Beside the arguments below it takes all settings of the network and of `gread.settings.config.Training` under their
    own names; those that are not given are the defaults. `fit`, `predict`, `score`, `save` and all else are those of
    `GREADClassifier`, and so are the attributes of a fitted classifier.

    Args:
        model: The name of a network, such as "gcn" or "gcnii".
        seed: Where the random numbers start, those of the validation nodes included.
        device: "auto" takes a GPU where there is one.
        validation: The share of the training nodes that is set aside to choose the best epoch, unless `fit` gets
            val_mask; 0 sets none aside and keeps the last epoch.
        members: How many networks are trained, from consecutive seeds; their probabilities are averaged.
        graph: The graph, if `fit` is not to get it.
        features: (n, f) for all nodes of `graph`; then X of every method is a list of node numbers.
        settings: Settings of the network and of its training, such as layers=3, hidden=16 or epochs=100.

    Raises:
        UnknownName: For a setting that the network does not have; on `fit`, for a network that there is not.

    >>> from gread import karate
    >>> data = karate()
    >>> clf = GNNClassifier("gcn", hidden=16, epochs=100, learning_rate=0.05, input_dropout=0.0)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GNNClassifier(epochs=100, hidden=16, input_dropout=0.0, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33])
    array([0, 1])
    """

    def __init__(
        self, model: str = "gcn", *, seed: int = 0, device: str = "auto", validation: float = 0.2, members: int = 1,
        graph: Any = None, features: Any = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.model = model
        self.seed = seed
        self.device = device
        self.validation = validation
        self.members = members
        self.graph = graph
        self.features = features
        check_settings(model, settings)
        self._settings = settings

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        values = self.settings_values()
        return Config.of(values.pop(MODEL), **values)

    # ------------------------------------------------------------------ settings by name, in scikit-learn's manner
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments, and the settings that were given."""
        return {**super().get_params(deep), **self._settings}

    def set_params(self, **params: Any) -> Self:
        """Set arguments and settings; another `model` keeps those settings that it has too."""
        own = (MODEL, *UNTUNED)
        name = params.get(MODEL, self.model)
        known = None if not _is_known(name) else setting_names(name)
        kept = {k: v for k, v in self._settings.items() if known is None or k in known}
        given = {k: v for k, v in params.items() if k not in own}
        check_settings(name, given)
        super().set_params(**{k: v for k, v in params.items() if k in own})
        self._settings = {**kept, **given}
        return self

    @classmethod
    def known_arguments(cls, given: Mapping[str, Any]) -> list[str]:
        """Those of the classifier and, of the network that a file names, its settings."""
        return [*(name for name in (MODEL, *UNTUNED) if name not in DATA), *setting_names(str(given[MODEL]))]


def setting_names(model: str) -> list[str]:
    """The settings of a network and its training.

    >>> setting_names("gcn")[:2]
    ['hidden', 'input_dropout']
    """
    return [f.name for part in (find_model(model).settings, Training) for f in fields(part)]


def check_settings(model: Any, settings: Iterable[str]) -> None:
    """Refuse settings that a network does not have; a network that there is not is found out by `fit`."""
    if not _is_known(model):
        return
    known = setting_names(model)
    for name in settings:
        if name not in known:
            raise UnknownName(f"setting of {model}", name, known)


def _is_known(model: Any) -> bool:
    return isinstance(model, str) and model in models
