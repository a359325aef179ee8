"""`NodeClassifier`: the common part of the node classifiers: fitting, predicting, scoring, files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from gread.classifier.inputs import (
    as_data_set,
    check_alike,
    feature_names,
    named_labels,
    read_labels,
    read_rows_of,
    read_sample_weight,
)
from gread.classifier.prediction import FittedState, load_state, log_probabilities, save_state
from gread.classifier.sample import TrainingSet
from gread.datasets.checks import unscaled_columns
from gread.datasets.node_data import NodeData
from gread.models.resolution import divergence_remedy
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.trainer import train, training_text
from rdgraph.errors import Diverged, InvalidArgument, MissingDependency
from rdgraph.graphs.edges import read_nodes, read_whole
from rdgraph.status_line import StatusLine

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
