"""`GREADClassifier`: a scikit-learn classifier of the nodes of one graph, or of others like it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Self

import numpy as np

from gread.classifier.node_classifier import DATA, OWN, NodeClassifier
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

    The network is H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)), with f the equation of `reaction`. Beside the
    arguments below it takes all settings of `gread.settings.gread_settings.GreadSettings` and of
    `gread.settings.config.Training` under their own names, with the defaults of the former but for those of
    `gread.settings.gread_settings.FOR_OWN_DATA`.

    Args:
        reaction: A name of the catalogue, or an equation in the language of rdgraph; several fields, as in
            "u' = ...; v' = ...", and second order, as in "H'' = ...", too.
        method: "auto" lets the equation decide how it is integrated; `network_.config.method` says how, and
            `network_.reason` why.
        seed: Where the random numbers start, those of the validation nodes included.
        device: "auto" takes a GPU where there is one.
        validation: The share of the training nodes that is set aside to choose the best epoch, unless `fit` gets
            val_mask; 0 sets none aside and keeps the last epoch.
        members: How many networks are trained, from consecutive seeds; their probabilities are averaged.
        class_weight: Weights of the classes in the loss, by label, 1 for those that are not named; "balanced" weighs
            every class by n/(classes*n_class) of the training rows; None weighs all rows alike. Multiplies
            `sample_weight`.
        tune: So many settings are tried first, and those with the best validation accuracy are trained; 0 tries none.
            Searched are those of `TUNED`, but for arguments that differ from their defaults; needs optuna.
        verbose: Whether `fit` shows on standard error how far it is.
        graph: The graph, if `fit` is not to get it.
        features: (n, f) for all nodes of `graph`; then X of every method is a list of node numbers, (k,) or (k, 1),
            which scikit-learn's cross-validation and searches can cut into pieces.

    Attributes:
        classes_: The classes (k,), sorted.
        n_features_in_: How many features a node has; `feature_names_in_` are their names where they have some.
        n_iter_: Epochs of the training.
        networks_: The trained `gread.Network` of every member; `network_` is the first one.
        histories_: (members, epochs, 4), with the columns `gread.training.ensemble.METRICS`; `history_` of the first.
        best_epochs_: The epoch, from 1, that every member keeps; `best_epoch_` of the first.
        tuned_: With `tune`, what was tried and chosen, see `gread.tuning.searching.Found`.
        status_: "ok" for every member, or the epoch in which it diverged.

    Raises:
        MissingDependency: On import, where scikit-learn is not installed.

    >>> import gread
    >>> from gread import karate
    >>> data = karate()
    >>> clf = gread.GREADClassifier(hidden=8, epochs=60, learning_rate=0.05)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GREADClassifier(epochs=60, hidden=8, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33]), clf.score(None, data.y, mask=data.masks.test[0])
    (array([0, 1]), 1.0)
    """

    tuned_: Found

    def __init__(
        self, reaction: str = "BS", *, alpha: str = "scalar", beta: str = "channel", alpha_link: str = "auto",
        beta_link: str = "auto", adjacency: str = "original", normalisation: str = "row", self_loops: float = 1.0,
        heads: int = 4, attention_dim: int = 64, time: float = 4.0, method: str = "auto", step: float | None = None,
        hidden: int = 64, velocity: str = "zero", readout: str = "all", states: str = "auto", storage: str = "full",
        encoder_mlp: bool = False, relu: bool = True, decoder_mlp: bool = False, input_dropout: float = 0.5,
        dropout: float = 0.4, row_features: bool = False,
        epochs: int = 200, learning_rate: float = 0.01, weight_decay: float = 5e-4, optimiser: str = "adam",
        select: str = "accuracy", patience: int = 0, seed: int = 0, device: str = "auto",
        validation: float = 0.2, members: int = 1, class_weight: Any = None, tune: int = 0, verbose: int = 0,
        graph: Any = None, features: Any = None,
    ) -> None:  # fmt: skip
        self.reaction = reaction
        self.alpha = alpha
        self.beta = beta
        self.alpha_link = alpha_link
        self.beta_link = beta_link
        self.adjacency = adjacency
        self.normalisation = normalisation
        self.self_loops = self_loops
        self.heads = heads
        self.attention_dim = attention_dim
        self.time = time
        self.method = method
        self.step = step
        self.hidden = hidden
        self.velocity = velocity
        self.readout = readout
        self.states = states
        self.storage = storage
        self.encoder_mlp = encoder_mlp
        self.relu = relu
        self.decoder_mlp = decoder_mlp
        self.input_dropout = input_dropout
        self.dropout = dropout
        self.row_features = row_features
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.optimiser = optimiser
        self.select = select
        self.patience = patience
        self.seed = seed
        self.device = device
        self.validation = validation
        self.members = members
        self.class_weight = class_weight
        self.tune = tune
        self.verbose = verbose
        self.graph = graph
        self.features = features

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        return Config().updated(self.settings_values())

    def _chosen(self, config: Config, lesson: TrainingSet, seed: int, say: Callable[[str], None]) -> Config:
        """Settings that the validation nodes choose among `tune` trials; those given where none are asked for."""
        trials = read_whole(self.tune, 0, "tune")
        if hasattr(self, "tuned_"):
            del self.tuned_
        if not trials:
            return config
        if np.ptp(lesson.weights[lesson.data.masks.train[0]]) > 0:
            raise InvalidArgument(
                "expected training nodes of one weight with tune, got several; leave out sample_weight, class_weight "
                "and repeats"
            )
        given, plain = config.sections(), type(self)().config.sections()
        say(f"tuning, trial 0 of {trials}")
        own = {k: v for part in given for k, v in given[part].items() if plain[part].get(k) != v}
        self.tuned_ = search(
            lesson.data, trials=trials, space=TUNED, base=config, fixed=own, splits=[0], seed=seed, device=self.device,
            progress=lambda p: say(f"tuning, {p.text}{p.left}"),
        )  # fmt: skip
        return self.tuned_.best


# ---------------------------------------------------------------------- gnn estimator
# `GNNClassifier`: any network by name as a scikit-learn classifier of nodes.

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
        class_weight: Weights of the classes in the loss, by label, 1 for those that are not named; "balanced" weighs
            every class by n/(classes*n_class) of the training rows; None weighs all rows alike. Multiplies
            `sample_weight`.
        graph: The graph, if `fit` is not to get it.
        features: (n, f) for all nodes of `graph`; then X of every method is a list of node numbers.
        settings: Settings of the network and of its training, such as layers=3, hidden=16 or epochs=100.

    Raises:
        UnknownName: For a setting that the network does not have; on `fit`, for a network that there is not.

    >>> import gread
    >>> from gread import karate
    >>> data = karate()
    >>> clf = gread.GNNClassifier("gcn", hidden=16, epochs=100, learning_rate=0.05, input_dropout=0.0)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GNNClassifier(epochs=100, hidden=16, input_dropout=0.0, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33])
    array([0, 1])
    """

    def __init__(
        self, model: str = "gcn", *, seed: int = 0, device: str = "auto", validation: float = 0.2, members: int = 1,
        class_weight: Any = None, verbose: int = 0, graph: Any = None, features: Any = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.model = model
        self.seed = seed
        self.device = device
        self.validation = validation
        self.members = members
        self.class_weight = class_weight
        self.verbose = verbose
        self.graph = graph
        self.features = features
        check_settings(model, settings)
        self._settings = settings

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        values = self.settings_values()
        return Config.for_own_data(values.pop(MODEL), **values)

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
        """Names of the arguments that a file may set: the classifier's, and the settings of its network."""
        return [*(name for name in (MODEL, *UNTUNED) if name not in DATA), *setting_names(str(given[MODEL]))]


def setting_names(model: str) -> list[str]:
    """The settings of a network and its training.

    >>> setting_names("gcn")[:2]
    ['hidden', 'input_dropout']
    """
    return [f.name for part in (find_model(model).settings, Training) for f in fields(part)]


def check_settings(model: Any, settings: Iterable[str]) -> None:
    """Raise UnknownName for a setting the network does not have; an unknown network is left for `fit` to refuse."""
    if not _is_known(model):
        return
    known = setting_names(model)
    for name in settings:
        if name not in known:
            raise UnknownName(f"setting of {model}", name, known)


def _is_known(model: Any) -> bool:
    return isinstance(model, str) and model in models
