"""`GREADClassifier`: the network in the manner of scikit-learn, for the nodes of one graph or of others like it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from gread.classifier.inputs import (
    Sample,
    assemble,
    check_alike,
    feature_names,
    read_graph,
    read_labels,
    read_parts,
    read_rows,
    read_sample_weight,
)
from gread.classifier.manner import Estimator
from gread.datasets.checks import read_features
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import METRICS
from gread.training.trainer import Trained, train
from rdgraph import Graph
from rdgraph.errors import NotApplicable
from rdgraph.graphs.edges import read_nodes, read_whole
from rdgraph.lowering.coefficients import STATE_LETTERS
from rdgraph.syntax.tree import Kind

#: Arguments of the classifier that are not settings of the network or its training.
OWN = ("seed", "device", "validation", "members", "graph", "features")


class GREADClassifier(Estimator):
    """Classifies the nodes of a graph from the labels of some of them.

    All settings of `gread.settings.config.Model` and `Training` under their own names, and:

    seed          where the random numbers start, those of the validation nodes included
    device        auto takes a GPU where there is one
    validation    share of the training nodes that is set aside to choose the best epoch, unless `fit` gets val_mask
    members       how many networks are trained, from consecutive seeds; their probabilities are averaged
    graph         the graph, if `fit` is not to get it
    features      (n, f) for all nodes of `graph`; then X of every method is a list of node numbers, (k,) or (k, 1),
                  which scikit-learn's cross-validation and searches can cut into pieces

    After `fit`: `classes_`, `n_features_in_`, `n_iter_`; `networks_`, `histories_` (members, epochs, 4) with the
    columns `gread.training.ensemble.METRICS`, `best_epochs_` (from 1), `status_`, and of the first member `network_`,
    `history_` (epochs, 4), `best_epoch_`.

    >>> from gread import karate
    >>> data = karate()
    >>> clf = GREADClassifier(hidden=8, epochs=60, learning_rate=0.05)
    >>> clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    GREADClassifier(hidden=8, epochs=60, learning_rate=0.05)
    >>> clf.predict(nodes=[0, 33]), clf.score(None, data.y, mask=data.masks.test[0])
    (array([0, 1]), 1.0)
    """

    seed: int
    device: str
    validation: float
    members: int
    graph: Any
    features: Any

    def __init__(
        self, reaction: str = "BS", *, alpha: str = "scalar", beta: str = "channel", alpha_link: str = "auto",
        beta_link: str = "auto", adjacency: str = "soft", normalisation: str = "symmetric", self_loops: float = 1.0,
        heads: int = 4, attention_dim: int = 64, time: float = 1.0, method: str = "exact", step: float | None = None,
        hidden: int = 64, encoder_mlp: bool = False, relu: bool = True, decoder_mlp: bool = False,
        input_dropout: float = 0.5, dropout: float = 0.4, epochs: int = 200, learning_rate: float = 0.01,
        weight_decay: float = 5e-4, seed: int = 0, device: str = "auto", validation: float = 0.2, members: int = 1,
        graph: Any = None, features: Any = None,
    ) -> None:  # fmt: skip
        vars(self).update({name: value for name, value in locals().items() if name != "self"})

    @property
    def config(self) -> Config:
        """The settings of the network and its training, checked."""
        values = {name: value for name, value in self.get_params().items() if name not in OWN}
        return Config().updated({k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()})

    # ------------------------------------------------------------------ training
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, graph: Any = None, mask: Any = None, val_mask: Any = None
    ) -> GREADClassifier:
        """Train on the labelled nodes; all nodes, labelled or not, take part in the diffusion.

        X (n, f), numpy, scipy sparse or a data frame, or node numbers, see above, which may repeat; y (rows of X,)
        whole numbers or names, with -1, None, nan or NA for unknown; `sample_weight` (rows of X,) weighs the training
        rows in the loss, and a row of weight 0 counts as unknown; `graph` a Graph, networkx graph, scipy adjacency
        (entry [i, j] is j -> i), PyTorch Geometric data or edge_index (2, E), whose edges go one way. `mask` and
        `val_mask`, booleans or row numbers, choose the rows that train (default: all with a label) and that choose the
        epoch (default: a share of the former), and with them the classes. Labels of other rows only fill the test
        column of the history, which is nan where there are none.
        """
        if y is None:
            raise NotApplicable(
                f"{type(self).__name__} requires y to be passed, but the target y is None; mark unknown labels by -1"
            )
        config = self.config
        seed, members = read_whole(self.seed, 0, "seed"), read_whole(self.members, 1, "members")
        x, made, rows = self._read(X, graph)
        classes, codes = read_labels(y)
        if codes.size != rows.size:
            raise NotApplicable(f"expected {rows.size} labels, one per row of X, got {codes.size}")
        sample = Sample.make(rows, codes, read_sample_weight(sample_weight, rows.size))
        chosen, validating = (
            sample.merged(rows_of, codes >= 0, name) for rows_of, name in ((mask, "mask"), (val_mask, "val_mask"))
        )
        parts = read_parts(sample.codes, chosen, validating, self.validation, seed, classes.tolist())
        used = np.unique(sample.codes[parts.train | parts.val])
        classes = classes[used]
        if len(classes) < 2:
            raise NotApplicable(
                f"expected labels of two classes or more, got {classes.tolist()} alone; with one class there is "
                "nothing to tell apart"
            )
        places = np.where(parts.train | parts.val | parts.rest, np.searchsorted(used, sample.codes), -1)
        data = assemble(x, made, classes, places, parts, sample.nodes)
        weights = np.zeros(data.num_nodes)
        weights[sample.nodes] = sample.weights
        trials = [Trial(config, 0, seed + k) for k in range(members)]
        trained = train(data, trials, device=self.device, weights=weights)
        self._keep(trained, len(made.degree), bool(parts.rest.any()))
        self._keep_names(self.features if self.features is not None else X)
        self.classes_, self.n_features_in_, self.n_iter_ = classes, int(x.shape[1]), config.training.epochs
        self._graph, self._x, self._by_node = made, x, self.features is not None
        failed = [s for s, epoch in zip(self.status_, self.best_epochs_, strict=True) if s != "ok" and epoch == 0]
        if failed:
            del self.networks_
            raise NotApplicable(
                f"expected a training that stays finite, got one that {failed[0]}; lower learning_rate or time"
            )
        return self

    def _keep_names(self, X: Any) -> None:
        """`feature_names_in_` where the columns have names, as scikit-learn's estimators have it."""
        vars(self).pop("feature_names_in_", None)
        if (names := feature_names(X)) is not None:
            self.feature_names_in_ = names

    def _check_names(self, X: Any) -> None:
        """Columns in another order than in fit would be taken for others."""
        known, given = getattr(self, "feature_names_in_", None), feature_names(X)
        if known is None or given is None:
            if (known is None) != (given is None):
                had, has = ("with", "without") if given is None else ("without", "with")
                warnings.warn(f"X was fitted {had} feature names and comes {has} them", UserWarning, stacklevel=4)
            return
        if list(known) != list(given):
            raise NotApplicable(
                f"expected the columns {known.tolist()[:6]}, in the order of fit, got {given.tolist()[:6]}; take "
                "X[clf.feature_names_in_]"
            )

    def _keep(self, trained: Trained, nodes: int, has_rest: bool) -> None:
        """Take over the results, without the node that `assemble` may have added."""
        kept = [trained.network(k) for k in range(len(trained.trials))]
        self.networks_ = tuple(_cut(network, nodes) for network in kept)
        self.histories_ = np.array(trained.history)
        if not has_rest:
            self.histories_[..., METRICS.index("test_accuracy")] = np.nan
        self.best_epochs_, self.status_ = trained.best_epoch, trained.status

    def _read(self, X: Any, graph: Any) -> tuple[np.ndarray | csr_array, Graph, np.ndarray]:
        """Features and graph of all nodes, and the node of every row of X."""
        if graph is not None and self.graph is not None:
            raise NotApplicable("expected one graph, got two; pass it to the constructor or to fit")
        chosen = self.graph if graph is None else graph
        if chosen is None:
            raise NotApplicable("expected a graph, got none; pass graph= to fit or to the constructor")
        by_node = self.features is not None
        x = read_features(self.features if by_node else X)
        if not x.shape[1]:
            raise NotApplicable(
                f"expected features (n, f), f >= 1, got 0 feature(s) (shape={x.shape}) while a minimum of 1 is required"
                "; np.ones((n, 1)) leaves everything to the graph"
            )
        rows = read_rows(X, x.shape[0]) if by_node else np.arange(x.shape[0])
        return x, read_graph(chosen, x.shape[0]), rows

    # ------------------------------------------------------------------ prediction
    def decision_function(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Logarithms of the probabilities (rows, classes); of two classes, that of their ratio (rows,)."""
        score = self._log_probabilities(X, graph, nodes)
        return score[:, 1] - score[:, 0] if len(self.classes_) == 2 else score

    def predict_proba(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Probabilities (rows, classes), the mean over the members."""
        return np.exp(self._log_probabilities(X, graph, nodes))

    def predict(self, X: Any = None, *, graph: Any = None, nodes: Any = None) -> np.ndarray:
        """Classes (rows,): of all nodes of the fitted graph, of its `nodes`, or of X on another `graph`."""
        best = self._log_probabilities(X, graph, nodes).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, graph: Any = None, mask: Any = None) -> float:
        """Accuracy on the rows of X (None: all nodes) with a known label, or on those of them in `mask`, weighted."""
        found = self.predict(X, graph=graph)
        classes, codes = read_labels(y)
        if codes.size != found.size:
            raise NotApplicable(f"expected {found.size} labels, one per predicted row, got {codes.size}")
        rows = np.arange(codes.size) if mask is None else read_nodes(mask, codes.size)
        weights = read_sample_weight(sample_weight, codes.size)
        rows = rows[(codes[rows] >= 0) & (weights[rows] > 0)]
        if not rows.size:
            raise NotApplicable("expected a row with a known label and a weight, got none")
        check_alike(self.classes_, classes)
        return float(np.average(found[rows] == classes[codes[rows]], weights=weights[rows]))

    def _log_probabilities(self, X: Any, graph: Any, nodes: Any) -> np.ndarray:
        self._check_fitted()
        x, made, rows = self._x, self._graph, None
        if X is not None and self._by_node:
            if nodes is not None:
                raise NotApplicable("expected node numbers once, got them as X and as nodes; leave one of them out")
            rows = read_rows(X, made.num_nodes)
        elif X is not None:
            self._check_names(X)
            x = read_features(X)
            made = self._read_other(x.shape, graph)
        if graph is not None and (X is None or self._by_node):
            raise NotApplicable("expected features X with another graph, got the graph alone; pass X (n, f)")
        found = [torch.log_softmax(network.logits(x, made).double(), -1) for network in self.networks_]
        mean = torch.logsumexp(torch.stack(found), 0) - np.log(len(found))
        chosen = rows if nodes is None else read_nodes(nodes, made.num_nodes)
        result: np.ndarray = mean.cpu().numpy()
        return result if chosen is None else result[chosen]

    def _read_other(self, shape: tuple[int, ...], graph: Any) -> Graph:
        """The graph of given features: the fitted one where no other is given."""
        if shape[1] != self.n_features_in_:
            raise NotApplicable(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input, as many as in fit"
            )
        if graph is None:
            if shape[0] != self._graph.num_nodes:
                raise NotApplicable(
                    f"expected features of the {self._graph.num_nodes} nodes of the fitted graph, got {shape[0]} rows; "
                    "pass their graph=, or choose nodes of the fitted graph with nodes="
                )
            return self._graph
        if node_wise := _node_wise(self.network_):
            raise NotApplicable(
                f"expected the fitted graph, since {', '.join(node_wise)} belongs to its nodes, got another; "
                "train with scalar or channel coefficients"
            )
        return read_graph(graph, shape[0])

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
        from gread.classifier.storage import save_classifier

        self._check_fitted()
        save_classifier(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> GREADClassifier:
        """Read what `save` wrote; predictions are the same to the bit, and nothing is unpickled."""
        from gread.classifier.storage import load_classifier

        return load_classifier(Path(folder))


def _node_wise(network: Network) -> list[str]:
    """The letters of the equation that stand for one number per node."""
    letters = network.system.letters.items()
    return [name for name, kind in letters if kind is Kind.NODE and name not in STATE_LETTERS]


def _cut(network: Network, nodes: int) -> Network:
    """Without what belongs to nodes from number `nodes` on."""
    own = {"trusted", *(f"coefficient_{name}" for name in _node_wise(network))}
    return replace(network, parameters={k: v[:, :nodes] if k in own else v for k, v in network.parameters.items()})
