"""`GREADClassifier`: a scikit-learn classifier of the nodes of one graph, or of similar graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Self

import numpy as np

from gread.classifier.node_classifier import ARGUMENTS, DATA, NodeClassifier
from gread.classifier.sample import TrainingSet
from gread.settings.config import Config, Training
from gread.settings.model_records import find_model, models
from gread.tuning.searching import Found, search
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.edges import read_whole

# ---------------------------------------------------------------------- estimator
#: The space of settings that `tune` searches, a file of gread/data/spaces.
TUNED = "small"


class GREADClassifier(NodeClassifier):
    """Classifies the nodes of a graph from the labels of some of them.

    The network is H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)), with f the equation of `reaction`. In addition to the
    arguments below it accepts all settings of `gread.settings.gread_settings.GreadSettings` and of
    `gread.settings.config.Training` by name, with their defaults except for those of
    `gread.settings.gread_settings.FOR_OWN_DATA`.

    Args:
        reaction: A name of the catalogue, or an equation in the language of rdgraph, also with several fields, as in
            "u' = ...; v' = ...", or of second order, as in "H'' = ...".
        method: "auto" chooses the integration method from the equation; `network_.config.method` is the choice, and
            `network_.reason` explains it.
        seed: The random seed, also of the validation nodes.
        device: "auto" uses a GPU if there is one.
        validation: The share of the training nodes that is held out to choose the best epoch, unless `fit` is given
            val_mask; 0 holds out none and keeps the last epoch.
        members: The number of networks, trained from consecutive seeds; their probabilities are averaged.
        class_weight: Weights of the classes in the loss, by label, 1 if not given; "balanced" weights every class by
            n/(classes*n_class) of the training rows; None weights all rows equally. Multiplies `sample_weight`.
        tune: The number of hyperparameter trials before the final fit, which uses the settings with the best validation
            accuracy; 0 for none. The search space is `TUNED`, without arguments that differ from their defaults; needs
            optuna.
        verbose: Whether `fit` shows its progress on standard error.
        graph: The graph, if it is not passed to `fit`.
        features: (n, f) for all nodes of `graph`; then X of every method is a list of node numbers, (k,) or (k, 1),
            which scikit-learn's cross-validation and searches can divide.

    Attributes:
        classes_: The classes (k,), sorted.
        n_features_in_: The number of features; `feature_names_in_` are their names, if they have names.
        n_iter_: Epochs of the training.
        networks_: The trained `gread.Network` of every member; `network_` is the first one.
        histories_: (members, epochs, 4), with the columns `gread.training.ensemble.METRICS`; `history_` of the first.
        best_epochs_: The selected epoch of every member, from 1; `best_epoch_` of the first.
        tuned_: With `tune`, the trials and the choice, see `gread.tuning.searching.Found`.
        status_: "ok" for every member, or the epoch in which it diverged.

    Raises:
        MissingDependency: On import, if scikit-learn is not installed.

    >>> import gread
    >>> from gread import karate
    >>> data = karate()
    >>> clf = gread.GREADClassifier(hidden=8, epochs=60, learning_rate=0.05)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GREADClassifier(epochs=60, hidden=8, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33]), clf.score(None, data.y, mask=data.masks.test[0])
    (array([0, 1]), 1.0)
    """

    tune: Any
    tuned_: Found

    def __init__(
        self, reaction: str = "BS", *, alpha: str = "scalar", beta: str = "channel", alpha_link: str = "auto",
        beta_link: str = "auto", adjacency: str = "original", normalisation: str = "row", self_loops: float = 1.0,
        heads: int = 4, attention_dim: int = 64, time: float = 4.0, method: str = "auto", step: float | None = None,
        hidden: int = 64, velocity: str = "zero", readout: str = "all", states: str = "auto", storage: str = "full",
        encoder_mlp: bool = False, relu: bool = True, decoder_mlp: bool = False, input_dropout: float = 0.5,
        dropout: float = 0.4, row_features: bool = False, blocks: int = 1, mixing: bool = False,
        residual: str = "none", norm: str = "none", activation: str = "relu", shared: str = "none",
        epochs: int = 200, learning_rate: float = 0.01, weight_decay: float = 5e-4, optimiser: str = "adam",
        select: str = "accuracy", patience: int = 0, seed: int = 0, device: str = "auto",
        validation: float = 0.2, members: int = 1, class_weight: Any = None, tune: int = 0, verbose: int = 0,
        graph: Any = None, features: Any = None,
    ) -> None:  # fmt: skip
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        return Config().updated(self.settings_values())

    def _chosen(self, config: Config, training_set: TrainingSet, seed: int, say: Callable[[str], None]) -> Config:
        """The settings with the best validation accuracy among `tune` trials; the given ones for tune=0."""
        trials = read_whole(self.tune, 0, "tune")
        if hasattr(self, "tuned_"):
            del self.tuned_
        if not trials:
            return config
        if np.ptp(training_set.weights[training_set.data.masks.train[0]]) > 0:
            raise InvalidArgument(
                "tune needs training nodes of equal weight; leave out sample_weight, class_weight and repeated nodes"
            )
        given, plain = config.sections(), type(self)().config.sections()
        say(f"tuning, trial 0 of {trials}")
        fixed = {k: v for part in given for k, v in given[part].items() if plain[part].get(k) != v}
        self.tuned_ = search(
            training_set.data, trials=trials, space=TUNED, base=config, fixed=fixed, splits=[0], seed=seed,
            device=self.device, progress=lambda p: say(f"tuning, {p.text}{p.left}"),
        )  # fmt: skip
        return self.tuned_.best


# ---------------------------------------------------------------------- gnn estimator
# `GNNClassifier`: any network by name as a scikit-learn classifier of nodes.

MODEL = "model"
#: Arguments that are not settings; settings are not searched for.
UNTUNED = tuple(name for name in ARGUMENTS if name != "tune")


class GNNClassifier(NodeClassifier):
    """Classifies the nodes of a graph from the labels of some of them, by any network of `rdgraph models`.

    In addition to the arguments below it accepts all settings of the network and of `gread.settings.config.Training` by
    name. The methods, and the attributes of a fitted classifier, are those of `GREADClassifier`.

    Args:
        model: The name of a network, such as "gcn" or "gcnii".
        seed: The random seed, also of the validation nodes.
        device: "auto" uses a GPU if there is one.
        validation: The share of the training nodes that is held out to choose the best epoch, unless `fit` is given
            val_mask; 0 holds out none and keeps the last epoch.
        members: The number of networks, trained from consecutive seeds; their probabilities are averaged.
        class_weight: Weights of the classes in the loss, by label, 1 if not given; "balanced" weights every class by
            n/(classes*n_class) of the training rows; None weights all rows equally. Multiplies `sample_weight`.
        graph: The graph, if it is not passed to `fit`.
        features: (n, f) for all nodes of `graph`; then X of every method is a list of node numbers.
        settings: Settings of the network and of its training, such as layers=3, hidden=16 or epochs=100.

    Raises:
        UnknownName: For a setting that the network does not have; on `fit`, for an unknown network.

    >>> import gread
    >>> from gread import karate
    >>> data = karate()
    >>> clf = gread.GNNClassifier("gcn", hidden=16, epochs=100, learning_rate=0.05, input_dropout=0.0)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GNNClassifier(epochs=100, hidden=16, input_dropout=0.0, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33])
    array([0, 1])
    """

    model: Any

    def __init__(
        self, model: str = "gcn", *, seed: int = 0, device: str = "auto", validation: float = 0.2, members: int = 1,
        class_weight: Any = None, verbose: int = 0, graph: Any = None, features: Any = None, **settings: Any,
    ) -> None:  # fmt: skip
        given = {name: value for name, value in locals().items() if name not in ("self", "settings")}
        self.__dict__.update(given)
        check_settings(model, settings)
        self._settings = settings

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        values = self.settings_values()
        return Config.for_own_data(values.pop(MODEL), **values)

    # ------------------------------------------------------------------ parameters of scikit-learn
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments and the given settings."""
        return {**super().get_params(deep), **self._settings}

    def set_params(self, **params: Any) -> Self:
        """Set arguments and settings; a new `model` keeps those settings that it has as well."""
        arguments = (MODEL, *UNTUNED)
        name = params.get(MODEL, self.model)
        known = None if not _is_known(name) else setting_names(name)
        remaining = {k: v for k, v in self._settings.items() if known is None or k in known}
        given = {k: v for k, v in params.items() if k not in arguments}
        check_settings(name, given)
        super().set_params(**{k: v for k, v in params.items() if k in arguments})
        self._settings = {**remaining, **given}
        return self

    @classmethod
    def known_arguments(cls, given: Mapping[str, Any]) -> list[str]:
        """Names of the arguments in a saved file: those of the classifier, and the settings of its network."""
        return [*(name for name in (MODEL, *UNTUNED) if name not in DATA), *setting_names(str(given[MODEL]))]


def setting_names(model: str) -> list[str]:
    """The settings of a network and its training.

    >>> setting_names("gcn")[:2]
    ['hidden', 'input_dropout']
    """
    return [f.name for part in (find_model(model).settings, Training) for f in fields(part)]


def check_settings(model: Any, settings: Iterable[str]) -> None:
    """Raise UnknownName for a setting that the network does not have; an unknown network is reported by `fit`."""
    if not _is_known(model):
        return
    known = setting_names(model)
    for name in settings:
        if name not in known:
            raise UnknownName(f"setting of {model}", name, known)


def _is_known(model: Any) -> bool:
    return isinstance(model, str) and model in models
