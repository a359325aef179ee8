"""`GREADClassifier` and `GNNClassifier`: scikit-learn classifiers of the nodes of one graph, or of similar graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from gread.classifier.prediction import FittedState, load_state, log_probabilities, save_state
from gread.classifier.sample import (
    TrainingSet,
    as_data_set,
    check_alike,
    feature_names,
    named_labels,
    read_labels,
    read_rows_of,
    read_sample_weight,
)
from gread.datasets.checks import unscaled_columns
from gread.datasets.node_data import NodeData
from gread.models.resolution import divergence_remedy
from gread.models.trained_network import Network
from gread.settings.config import Config, Training
from gread.settings.model_records import find_model, models
from gread.settings.trials import Trial
from gread.training.trainer import train, training_text
from gread.tuning.searching import Found, search
from rdgraph.errors import Diverged, InvalidArgument, MissingDependency, UnknownName
from rdgraph.graphs.edges import read_nodes, read_whole
from rdgraph.status_line import StatusLine

# ---------------------------------------------------------------------- node classifier
# `NodeClassifier`: the common part of the node classifiers: fitting, predicting, scoring, files.

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
except ImportError:
    raise MissingDependency(
        "GREADClassifier and GNNClassifier need scikit-learn: pip install 'rdgraph[gread]'"
    ) from None

#: Arguments of a classifier that are not settings of the network or its training.
ARGUMENTS = ("seed", "device", "validation", "members", "class_weight", "tune", "verbose", "graph", "features")
#: Arguments that are data and saved separately.
DATA = ("graph", "features")
#: The transformer that scales the columns of an array.
SCALER = "sklearn.preprocessing.StandardScaler"


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier of the nodes of one graph, or of similar graphs, by some network.

    Subclasses have the `ARGUMENTS`, possibly without `tune`, and the settings of `config`.
    """

    seed: Any
    device: Any
    validation: Any
    members: Any
    class_weight: Any
    verbose: Any
    graph: Any
    features: Any

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        raise NotImplementedError

    def settings_values(self) -> dict[str, Any]:
        """The arguments that are settings, as Python numbers."""
        values = {name: value for name, value in self.get_params(deep=False).items() if name not in ARGUMENTS}
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}

    @classmethod
    def known_arguments(cls, given: Mapping[str, Any]) -> list[str]:
        """The possible arguments in a saved file of this classifier with the given ones."""
        return [name for name in cls().get_params() if name not in DATA]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.sparse = self.features is not None, True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this classifier is not fitted; call fit first")

    # ------------------------------------------------------------------ training
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        graph: Any = None,
        mask: Any = None,
        val_mask: Any = None,
    ) -> Self:
        """Train on the labelled nodes; all nodes, labelled or not, take part in the diffusion.

        A data set, `fit(data)`, provides its graph, its labels, by class name if classes have names, and the training
        and validation nodes of its first split if it has one; other arguments take precedence.

        Labels of rows outside of `mask` and `val_mask` are only used for the test column of the history, which is nan
        without any.

        Args:
            X: Features (n, f), numpy, scipy sparse or a data frame; or node numbers if `features` is given, which may
                repeat; or a `gread.NodeData` or PyTorch Geometric data.
            y: (rows of X,) whole numbers or names, with -1, None, nan or NA for unknown.
            sample_weight: (rows of X,) weights of the training rows in the loss; weight 0 counts as unknown.
            graph: A Graph, networkx graph, scipy adjacency (entry [i, j] is j -> i), PyTorch Geometric data or
                directed edge_index (2, E).
            mask: Booleans or row numbers of the training rows, which define the classes (default: all with a label).
            val_mask: The rows that choose the epoch (default: a share `validation` of the training rows).

        Returns:
            The classifier itself.

        Raises:
            InvalidArgument: For inconsistent data or settings.
            Diverged: If the loss diverged before the first epoch was finished.
        """
        if (data := as_data_set(X)) is not None:
            X, graph = data.x, self._graph_of_data(data, graph)
            if mask is None and val_mask is None and data.num_splits:
                mask, val_mask = data.masks.train[0], data.masks.val[0] if data.masks.val[0].any() else None
            y = named_labels(data) if y is None else y
        if y is None:
            raise InvalidArgument(
                f"{type(self).__name__} requires y to be passed, but the target y is None; mark unknown labels by -1"
            )
        config = self.config
        seed, members = read_whole(self.seed, 0, "seed"), read_whole(self.members, 1, "members")
        x, read_in, rows = read_rows_of(X, self.features, graph, self.graph)
        names = feature_names(X if self.features is None else self.features)
        if scales := unscaled_columns(x, SCALER, names) if data is None else data.unscaled():
            warnings.warn(scales, stacklevel=2)
        training_set = TrainingSet.read(
            x, read_in, rows, y, sample_weight, (mask, val_mask), self.validation, seed, self.class_weight
        )
        with StatusLine(type(self).__name__, shown=bool(self.verbose)) as status:
            config = self._chosen(config, training_set, seed, status.say)
            trials = [Trial(config, 0, seed + k) for k in range(members)]
            status.say("preparing the training")
            trained = train(
                training_set.data, trials, device=self.device, weights=training_set.weights, tell=status.note,
                progress=lambda p: status.say(training_text(p)),
            )  # fmt: skip
        failed = [s for s, epoch in zip(trained.status, trained.best_epoch, strict=True) if s != "ok" and epoch == 0]
        if failed:
            raise Diverged(f"the training {failed[0]}; {divergence_remedy(trained.trials[0].config, x)}")
        state = FittedState(
            tuple(trained.network(k) for k in range(members)), training_set.classes, read_in, x, trained.history,
            trained.best_epoch, trained.status, config.training.epochs, self.features is not None, names,
        )  # fmt: skip
        return self._store(state)

    def _graph_of_data(self, data: NodeData, graph: Any) -> Any:
        """The graph of a data set; an error if another graph or `features` are given."""
        if graph is not None or self.graph is not None or self.features is not None:
            raise InvalidArgument(
                "expected a data set alone, got a graph or features as well; leave them out, or pass data.x, data.y"
            )
        return data.graph

    def _chosen(self, config: Config, training_set: TrainingSet, seed: int, say: Callable[[str], None]) -> Config:
        """The settings to train; a classifier may search for better ones than the given ones."""
        return config

    def _store(self, state: FittedState) -> Self:
        """Store the result of a fit under the attribute names of scikit-learn."""
        self._state = state
        self.classes_, self.n_features_in_, self.n_iter_ = state.classes, int(state.x.shape[1]), state.epochs
        self.networks_, self.histories_ = state.networks, state.histories
        self.best_epochs_, self.status_ = state.best_epochs, state.status
        if state.names is not None:
            self.feature_names_in_: np.ndarray = state.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    # ------------------------------------------------------------------ prediction
    def decision_function(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Log probabilities (rows, classes); for two classes, the log of their ratio (rows,).

        The arguments are those of `predict`.
        """
        score = self._log_probabilities(X, graph, nodes)
        return score[:, 1] - score[:, 0] if len(self.classes_) == 2 else score

    def predict_proba(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Probabilities (rows, classes), the mean over the members; the arguments are those of `predict`."""
        return np.exp(self._log_probabilities(X, graph, nodes))

    def predict(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Classes (rows,) of all nodes of the fitted graph, of its `nodes`, or of X on another `graph`.

        Args:
            X: Features (n, f), or node numbers if `features` was given; or a data set, with its graph; None for those
                of fit.
            graph: The graph of X, if it differs from that of fit.
            nodes: Numbers or a mask of the nodes to classify; None for all.

        Returns:
            An entry of `classes_` per row.
        """
        best = self._log_probabilities(X, graph, nodes).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, graph: Any = None, mask: Any = None) -> float:
        """Weighted accuracy on the rows of X (None: all nodes) with a known label, or on those of them in `mask`.

        A data set, `score(data)`, provides its labels, and the test nodes of its first split if it has one.
        """
        if (data := as_data_set(X)) is not None:
            mask = data.masks.test[0] if mask is None and y is None and data.num_splits else mask
            y = named_labels(data) if y is None else y
        predicted = self.predict(X, graph=graph)
        classes, codes = read_labels(y)
        if codes.size != predicted.size:
            raise InvalidArgument(f"expected {predicted.size} labels, one per predicted row, got {codes.size}")
        rows = np.arange(codes.size) if mask is None else read_nodes(mask, codes.size)
        weights = read_sample_weight(sample_weight, codes.size)
        rows = rows[(codes[rows] >= 0) & (weights[rows] > 0)]
        if not rows.size:
            raise InvalidArgument("no row has both a known label and a weight > 0")
        check_alike(self.classes_, classes)
        return float(np.average(predicted[rows] == classes[codes[rows]], weights=weights[rows]))

    def _log_probabilities(self, X: Any, graph: Any, nodes: Any) -> np.ndarray:
        self._check_fitted()
        if (data := as_data_set(X)) is not None:
            X, graph = data.x, self._graph_of_data(data, graph)
        return log_probabilities(self._state, X, graph, nodes, type(self).__name__)

    @property
    def network_(self) -> Network:
        """The first member's network."""
        self._check_fitted()
        return self.networks_[0]

    @property
    def history_(self) -> np.ndarray:
        """The first member's metrics (epochs, 4)."""
        self._check_fitted()
        return np.asarray(self.histories_[0])

    @property
    def best_epoch_(self) -> int:
        """The first member's best epoch, from 1."""
        self._check_fitted()
        return int(self.best_epochs_[0])

    # ------------------------------------------------------------------ files
    def save(self, folder: str | Path) -> None:
        """Write classifier.json and its tensors, including graph and features; see `gread.models.bundle`."""
        self._check_fitted()
        arguments = {name: value for name, value in self.get_params().items() if name not in DATA}
        save_state(Path(folder), self._state, arguments)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a classifier written by `save`; predictions are equal to the bit, and nothing is unpickled."""
        arguments, state = load_state(Path(folder), cls.known_arguments)
        loaded = cls(**arguments)
        if state.by_node:
            loaded.set_params(graph=state.graph, features=state.x)
        return loaded._store(state)


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
