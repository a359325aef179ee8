"""`NodeClassifier`: what the classifiers of nodes share: fitting, predicting, scoring, files."""

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
        "expected scikit-learn, of which the classifiers are estimators, got an installation without; "
        "pip install 'rdgraph[gread]'"
    ) from None

#: Arguments of a classifier that are not settings of the network or its training.
OWN = ("seed", "device", "validation", "members", "class_weight", "tune", "verbose", "graph", "features")
#: Arguments that are data, and saved as such.
DATA = ("graph", "features")
#: What brings the columns of an array to one scale.
SCALER = "sklearn.preprocessing.StandardScaler"


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier of the nodes of one graph, or of others like it, around a network of some kind.

    Subclasses have the arguments `OWN`, perhaps without `tune`, and settings that `config` reads.
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
        """The arguments that are settings, as Python's own numbers."""
        values = {name: value for name, value in self.get_params(deep=False).items() if name not in OWN}
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}

    @classmethod
    def known_arguments(cls, given: Mapping[str, Any]) -> list[str]:
        """The arguments that a file with the given ones may hold for this classifier."""
        return [name for name in cls().get_params() if name not in DATA]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.sparse = self.features is not None, True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("expected a fitted classifier, got one without data; call fit first")

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

        A data set, `fit(data)`, brings its graph and its labels, by the names of their classes where it has some, and
        its first split where it has any: training and validation nodes; what is given beside it counts instead.

        Labels of rows outside of `mask` and `val_mask` only fill the test column of the history, which is nan where
        there are none.

        Args:
            X: Features (n, f), numpy, scipy sparse or a data frame; or node numbers, see above, which may repeat; or a
                `gread.NodeData` or PyTorch Geometric data.
            y: (rows of X,) whole numbers or names, with -1, None, nan or NA for unknown.
            sample_weight: (rows of X,) weighs the training rows in the loss; a row of weight 0 counts as unknown.
            graph: A Graph, networkx graph, scipy adjacency (entry [i, j] is j -> i), PyTorch Geometric data or
                edge_index (2, E), whose edges go one way.
            mask: Booleans or row numbers: the rows that train (default: all with a label), and with them the classes.
            val_mask: The rows that choose the epoch (default: a share `validation` of the former).

        Returns:
            The classifier itself.

        Raises:
            InvalidArgument: For data or settings that do not fit together.
            Diverged: Where the loss left the finite numbers before there was a network to keep.
        """
        if (data := as_data_set(X)) is not None:
            X, graph = data.x, self._own_graph(data, graph)
            if mask is None and val_mask is None and data.num_splits:
                mask, val_mask = data.masks.train[0], data.masks.val[0] if data.masks.val[0].any() else None
            y = named_labels(data) if y is None else y
        if y is None:
            raise InvalidArgument(
                f"{type(self).__name__} requires y to be passed, but the target y is None; mark unknown labels by -1"
            )
        config = self.config
        seed, members = read_whole(self.seed, 0, "seed"), read_whole(self.members, 1, "members")
        x, made, rows = read_rows_of(X, self.features, graph, self.graph)
        names = feature_names(X if self.features is None else self.features)
        if scales := unscaled_columns(x, SCALER, names) if data is None else data.unscaled():
            warnings.warn(scales, stacklevel=2)
        lesson = TrainingSet.read(
            x, made, rows, y, sample_weight, (mask, val_mask), self.validation, seed, self.class_weight
        )
        with StatusLine(type(self).__name__, shown=bool(self.verbose)) as status:
            config = self._chosen(config, lesson, seed, status.say)
            trials = [Trial(config, 0, seed + k) for k in range(members)]
            status.say("preparing the training")
            trained = train(
                lesson.data, trials, device=self.device, weights=lesson.weights, tell=status.note,
                progress=lambda p: status.say(training_text(p)),
            )  # fmt: skip
        failed = [s for s, epoch in zip(trained.status, trained.best_epoch, strict=True) if s != "ok" and epoch == 0]
        if failed:
            raise Diverged(f"the training {failed[0]}; {divergence_remedy(trained.trials[0].config, x)}")
        state = FittedState(
            tuple(trained.network(k) for k in range(members)), lesson.classes, made, x, trained.history,
            trained.best_epoch, trained.status, config.training.epochs, self.features is not None, names,
        )  # fmt: skip
        return self._keep(state)

    def _own_graph(self, data: NodeData, graph: Any) -> Any:
        """The graph of a data set, where no other is given and X is to be features."""
        if graph is not None or self.graph is not None or self.features is not None:
            raise InvalidArgument(
                "expected a data set alone, got a graph or features beside it; leave them out, or pass data.x, data.y"
            )
        return data.graph

    def _chosen(self, config: Config, lesson: TrainingSet, seed: int, say: Callable[[str], None]) -> Config:
        """The settings that are trained; a classifier may look for better ones than those it was given."""
        return config

    def _keep(self, state: FittedState) -> Self:
        """Take over what was fitted, under the names that scikit-learn's estimators have for it."""
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
        """Logarithms of the probabilities (rows, classes); of two classes, that of their ratio (rows,).

        The arguments are those of `predict`.
        """
        score = self._log_probabilities(X, graph, nodes)
        return score[:, 1] - score[:, 0] if len(self.classes_) == 2 else score

    def predict_proba(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Probabilities (rows, classes), the mean over the members; the arguments are those of `predict`."""
        return np.exp(self._log_probabilities(X, graph, nodes))

    def predict(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Classes (rows,): of all nodes of the fitted graph, of its `nodes`, or of X on another `graph`.

        Args:
            X: Features (n, f), or node numbers where `features` is an argument; or a data set, with its graph; None
                for those of fit.
            graph: The graph of X, where it is another than that of fit.
            nodes: Numbers or a mask of the nodes to answer for; None for all.

        Returns:
            An entry of `classes_` per row.
        """
        best = self._log_probabilities(X, graph, nodes).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, graph: Any = None, mask: Any = None) -> float:
        """Accuracy on the rows of X (None: all nodes) with a known label, or on those of them in `mask`, weighted.

        A data set, `score(data)`, brings its labels, and the test nodes of its first split where it has any.
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
            raise InvalidArgument("expected a row with a known label and a weight, got none")
        check_alike(self.classes_, classes)
        return float(np.average(predicted[rows] == classes[codes[rows]], weights=weights[rows]))

    def _log_probabilities(self, X: Any, graph: Any, nodes: Any) -> np.ndarray:
        self._check_fitted()
        if (data := as_data_set(X)) is not None:
            X, graph = data.x, self._own_graph(data, graph)
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
        """Write classifier.json and the numbers it names, graph and features included; see `gread.models.bundle`."""
        self._check_fitted()
        arguments = {name: value for name, value in self.get_params().items() if name not in DATA}
        save_state(Path(folder), self._state, arguments)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; predictions are the same to the bit, and nothing is unpickled."""
        arguments, state = load_state(Path(folder), cls.known_arguments)
        loaded = cls(**arguments)
        if state.by_node:
            loaded.set_params(graph=state.graph, features=state.x)
        return loaded._keep(state)
