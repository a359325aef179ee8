"""A fitted classifier as a bundle: numbers in safetensors, words in json. Nothing is ever unpickled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from gread.datasets.checks import read_features
from gread.models.bundle import Bundle, load_bundle, save_bundle
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.training.ensemble import METRICS
from rdgraph import Graph
from rdgraph.errors import FileError, NotApplicable, RdgraphError
from rdgraph.graphs.matrix_formats import make_csr

if TYPE_CHECKING:
    from gread.classifier.estimator import GREADClassifier

FORMAT, WHAT = "gread classifier 2", "a saved classifier"
MANIFEST = "classifier.json"


def save_classifier(classifier: GREADClassifier, folder: Path) -> None:
    """Arguments, classes, networks, graph and features of a fitted classifier; names of nodes are left out."""
    c = classifier
    x: Any = c._x
    tensors: dict[str, Any] = {"edge_index": c._graph.edge_index, "edge_weight": c._graph.weight}
    tensors |= {"histories": c.histories_, "best_epochs": c.best_epochs_}
    tensors |= {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr} if issparse(x) else {"x": x}
    held = {name: torch.tensor(np.asarray(value)) for name, value in tensors.items()}
    for k, network in enumerate(c.networks_):
        held |= {f"member{k}.{name}": value for name, value in network.parameters.items()}
    words = {
        "arguments": {k: _plain(v) for k, v in c.get_params().items() if k not in ("graph", "features")},
        "model": vars(c.network_.config),
        "epochs": c.n_iter_,
        "classes": c.classes_.tolist(),
        "nodes": c._graph.num_nodes,
        "features": c.n_features_in_,
        "names": list(getattr(c, "feature_names_in_", ())),
        "by_node": c._by_node,
        "status": list(c.status_),
    }
    save_bundle(folder / MANIFEST, FORMAT, words, held)


def load_classifier(folder: Path) -> GREADClassifier:
    """What `save_classifier` wrote; an error says what is wrong with the files."""
    found = load_bundle(folder / MANIFEST, FORMAT, WHAT)
    try:
        return _restored(found)
    except (LookupError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError, RdgraphError) as error:
        raise FileError(
            f"expected {WHAT} in {folder}, got words and numbers that make none ({type(error).__name__}: {error}); "
            "save it again"
        ) from None


def _restored(found: Bundle) -> GREADClassifier:
    from gread.classifier.estimator import GREADClassifier

    words, held = found.words, found.numbers
    nodes, width = int(words["nodes"]), int(words["features"])
    arrays = {name: value.numpy() for name, value in held.items() if not name.startswith("member")}
    graph = Graph(arrays["edge_index"], arrays["edge_weight"], nodes)
    x: Any = arrays.get("x")
    if x is None:
        x = make_csr(arrays["x.data"], arrays["x.indices"], arrays["x.indptr"], (nodes, width), "the features")
    x = read_features(x)
    if x.shape != (nodes, width):
        raise NotApplicable(f"expected features ({nodes}, {width}), got {x.shape}")
    c = GREADClassifier(**words["arguments"])
    if words["by_node"]:
        c.set_params(graph=graph, features=x)
    c.classes_, c.n_features_in_, c.n_iter_ = np.array(words["classes"]), width, int(words["epochs"])
    if words["names"]:
        c.feature_names_in_ = _names(words["names"], width)
    c._graph, c._x, c._by_node = graph, x, bool(words["by_node"])
    c.histories_, c.best_epochs_, c.status_ = arrays["histories"], arrays["best_epochs"], tuple(words["status"])
    blank = Network(Config().updated(words["model"]).model, {}, width, len(c.classes_))
    c.networks_ = tuple(replace(blank, parameters=_member(held, k)) for k in range(len(c.best_epochs_)))
    _check_fitted(c)
    return c


def _names(names: Any, width: int) -> np.ndarray:
    if not isinstance(names, list) or len(names) != width or not all(isinstance(name, str) for name in names):
        raise NotApplicable(f"expected a name for each of {width} columns, got {str(names)[:80]}")
    return np.array(names, dtype=object)


def _check_fitted(c: GREADClassifier) -> None:
    """Whether results, members and parameters belong to one training."""
    members = len(c.best_epochs_)
    if members < 1 or c.best_epochs_.ndim != 1 or len(c.status_) != members or len(c.classes_) < 2:
        raise NotApplicable(f"expected results of one member or more and two classes or more, got {members} members")
    if c.histories_.ndim != 3 or c.histories_.shape[::2] != (members, len(METRICS)):
        raise NotApplicable(f"expected a history ({members}, epochs, {len(METRICS)}), got {c.histories_.shape}")
    for network in c.networks_:
        network.check(c._graph)


def _member(held: dict[str, Tensor], k: int) -> dict[str, Tensor]:
    start = f"member{k}."
    return {name.removeprefix(start): value for name, value in held.items() if name.startswith(start)}


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value
