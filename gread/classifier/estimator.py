"""`GREADClassifier`: a scikit-learn classifier of the nodes of one graph, or of others like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np

from gread.classifier.inputs import feature_names, read_rows_of, read_sample_weight
from gread.classifier.labels import check_alike, read_labels
from gread.classifier.prediction import log_probabilities
from gread.classifier.sample import TrainingSet
from gread.classifier.storage import FittedState, load_state, save_state
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.trainer import train
from gread.tuning.searching import Found, search
from rdgraph.errors import Diverged, InvalidArgument, MissingDependency
from rdgraph.graphs.edges import read_nodes, read_whole

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
except ImportError:
    raise MissingDependency(
        "expected scikit-learn, of which GREADClassifier is an estimator, got an installation without; "
        "pip install 'rdgraph[gread]'"
    ) from None

#: Arguments of the classifier that are not settings of the network or its training.
OWN = ("seed", "device", "validation", "members", "tune", "graph", "features")
#: The space of settings that `tune` searches, a file of gread/data/spaces.
TUNED = "small"
#: Arguments that are data, and saved as such.
DATA = ("graph", "features")


class GREADClassifier(ClassifierMixin, BaseEstimator):
    """Classifies the nodes of a graph from the labels of some of them.

    The network is H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)), with f the equation of `reaction`. Beside the
    arguments below it takes all settings of `gread.settings.gread_settings.GreadSettings` and of
    `gread.settings.config.Training` under their own names.

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
        tune: So many settings are tried first, and those with the best validation accuracy are trained; 0 tries none.
            Searched are those of `TUNED`, but for arguments that differ from their defaults; needs optuna.
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

    >>> from gread import karate
    >>> data = karate()
    >>> clf = GREADClassifier(hidden=8, epochs=60, learning_rate=0.05)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GREADClassifier(epochs=60, hidden=8, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33]), clf.score(None, data.y, mask=data.masks.test[0])
    (array([0, 1]), 1.0)
    """

    def __init__(
        self, reaction: str = "BS", *, alpha: str = "scalar", beta: str = "channel", alpha_link: str = "auto",
        beta_link: str = "auto", adjacency: str = "soft", normalisation: str = "symmetric", self_loops: float = 1.0,
        heads: int = 4, attention_dim: int = 64, time: float = 1.0, method: str = "auto", step: float | None = None,
        hidden: int = 64, velocity: str = "zero", readout: str = "all", encoder_mlp: bool = False, relu: bool = True,
        decoder_mlp: bool = False, input_dropout: float = 0.5, dropout: float = 0.4, row_features: bool = False,
        epochs: int = 200, learning_rate: float = 0.01, weight_decay: float = 5e-4, optimiser: str = "adam",
        select: str = "accuracy", patience: int = 0, seed: int = 0, device: str = "auto",
        validation: float = 0.2, members: int = 1, tune: int = 0, graph: Any = None, features: Any = None,
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
        self.tune = tune
        self.graph = graph
        self.features = features

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        values = {name: value for name, value in self.get_params().items() if name not in OWN}
        return Config().updated({k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()})

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
        self, X: Any, y: Any, sample_weight: Any = None, *, graph: Any = None, mask: Any = None, val_mask: Any = None
    ) -> Self:
        """Train on the labelled nodes; all nodes, labelled or not, take part in the diffusion.

        Labels of rows outside of `mask` and `val_mask` only fill the test column of the history, which is nan where
        there are none.

        Args:
            X: Features (n, f), numpy, scipy sparse or a data frame; or node numbers, see above, which may repeat.
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
        if y is None:
            raise InvalidArgument(
                f"{type(self).__name__} requires y to be passed, but the target y is None; mark unknown labels by -1"
            )
        config = self.config
        seed, members = read_whole(self.seed, 0, "seed"), read_whole(self.members, 1, "members")
        x, made, rows = read_rows_of(X, self.features, graph, self.graph)
        lesson = TrainingSet.read(x, made, rows, y, sample_weight, (mask, val_mask), self.validation, seed)
        found = self._search(config, lesson, seed)
        config = config if found is None else found.best
        trials = [Trial(config, 0, seed + k) for k in range(members)]
        trained = train(lesson.data, trials, device=self.device, weights=lesson.weights)
        failed = [s for s, epoch in zip(trained.status, trained.best_epoch, strict=True) if s != "ok" and epoch == 0]
        if failed:
            raise Diverged(
                f"expected a training that stays finite, got one that {failed[0]}; lower learning_rate or time"
            )
        names = feature_names(X if self.features is None else self.features)
        state = FittedState(
            tuple(trained.network(k) for k in range(members)), lesson.classes, made, x, trained.history,
            trained.best_epoch, trained.status, config.training.epochs, self.features is not None, names,
        )  # fmt: skip
        if found is not None:
            self.tuned_ = found
        elif hasattr(self, "tuned_"):
            del self.tuned_
        return self._keep(state)

    def _search(self, config: Config, lesson: TrainingSet, seed: int) -> Found | None:
        """Settings that the validation nodes choose among `tune` trials; None where none are asked for."""
        trials = read_whole(self.tune, 0, "tune")
        if not trials:
            return None
        if np.ptp(lesson.weights[lesson.data.masks.train[0]]) > 0:
            raise InvalidArgument(
                "expected training nodes of one weight with tune, got several; leave out sample_weight and repeats"
            )
        given = config.sections()
        plain = Config().sections()
        own = {k: v for part in given for k, v in given[part].items() if plain[part].get(k) != v}
        return search(
            lesson.data, trials=trials, space=TUNED, base=config, fixed=own, splits=[0], seed=seed, device=self.device
        )  # fmt: skip

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
            X: Features (n, f), or node numbers where `features` is an argument; None for those of fit.
            graph: The graph of X, where it is another than that of fit.
            nodes: Numbers or a mask of the nodes to answer for; None for all.

        Returns:
            An entry of `classes_` per row.
        """
        best = self._log_probabilities(X, graph, nodes).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, graph: Any = None, mask: Any = None) -> float:
        """Accuracy on the rows of X (None: all nodes) with a known label, or on those of them in `mask`, weighted."""
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
        known = [name for name in cls().get_params() if name not in DATA]
        arguments, state = load_state(Path(folder), known)
        loaded = cls(**arguments)
        if state.by_node:
            loaded.set_params(graph=state.graph, features=state.x)
        return loaded._keep(state)
