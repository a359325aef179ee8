"""A fitted classifier as two files: numbers in safetensors, words in json. Nothing is ever unpickled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import Tensor

from gread.config import Config
from gread.datasets.checks import read_features
from gread.network import Network
from rdgraph import Graph
from rdgraph.errors import NotApplicable, RdgraphError

if TYPE_CHECKING:
    from gread.estimator import GREADClassifier

FORMAT = "gread classifier 1"
WORDS, NUMBERS = "classifier.json", "classifier.safetensors"


def save_classifier(classifier: GREADClassifier, folder: Path) -> None:
    """Arguments, classes, networks, graph and features of a fitted classifier; names of nodes are left out."""
    from safetensors.torch import save_file

    c = classifier
    x: Any = c._x
    tensors: dict[str, Any] = {"edge_index": c._graph.edge_index, "edge_weight": c._graph.weight}
    tensors |= {"histories": c.histories_, "best_epochs": c.best_epochs_}
    tensors |= {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr} if issparse(x) else {"x": x}
    held = {name: torch.tensor(np.asarray(value)) for name, value in tensors.items()}
    for k, network in enumerate(c.networks_):
        held |= {f"member{k}.{name}": value.detach().cpu().contiguous() for name, value in network.parameters.items()}
    words = {
        "format": FORMAT,
        "arguments": {k: _plain(v) for k, v in c.get_params().items() if k not in ("graph", "features")},
        "model": vars(c.network_.config),
        "epochs": c.n_iter_,
        "classes": c.classes_.tolist(),
        "nodes": c._graph.num_nodes,
        "features": c.n_features_in_,
        "by_node": c._by_node,
        "status": list(c.status_),
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(held, folder / NUMBERS)
    (folder / WORDS).write_text(json.dumps(words, indent=2) + "\n", encoding="utf-8")


def load_classifier(folder: Path) -> GREADClassifier:
    """What `save_classifier` wrote; an error says what is wrong with the files."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        words = json.loads((folder / WORDS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotApplicable(f"expected a saved classifier in {folder}, got {error}") from None
    if not isinstance(words, dict) or words.get("format") != FORMAT:
        raise NotApplicable(f"expected a {WORDS} of the format {FORMAT!r} in {folder}, got another file")
    try:
        return _restored(words, load_file(folder / NUMBERS))
    except (OSError, SafetensorError, LookupError, RuntimeError, TypeError, ValueError, RdgraphError) as error:
        raise NotApplicable(
            f"expected {NUMBERS} and {WORDS} of one classifier in {folder}, got files that do not fit together "
            f"({type(error).__name__}: {error}); save it again"
        ) from None


def _restored(words: dict[str, Any], held: dict[str, Tensor]) -> GREADClassifier:
    from gread.estimator import GREADClassifier

    nodes, width = int(words["nodes"]), int(words["features"])
    arrays = {name: value.numpy() for name, value in held.items() if not name.startswith("member")}
    graph = Graph(arrays["edge_index"], arrays["edge_weight"], nodes)
    x: Any = arrays.get("x")
    if x is None:
        x = csr_array((arrays["x.data"], arrays["x.indices"], arrays["x.indptr"]), shape=(nodes, width))
    x = read_features(x)
    if x.shape != (nodes, width):
        raise NotApplicable(f"expected features ({nodes}, {width}), got {x.shape}")
    c = GREADClassifier(**words["arguments"])
    if words["by_node"]:
        c.set_params(graph=graph, features=x)
    c.classes_, c.n_features_in_, c.n_iter_ = np.array(words["classes"]), width, int(words["epochs"])
    c._graph, c._x, c._by_node = graph, x, bool(words["by_node"])
    c.histories_, c.best_epochs_, c.status_ = arrays["histories"], arrays["best_epochs"], tuple(words["status"])
    blank = Network(Config().updated(words["model"]).model, {}, width, len(c.classes_))
    c.networks_ = tuple(replace(blank, parameters=_member(held, k)) for k in range(len(c.best_epochs_)))
    for network in c.networks_:
        for name, parameter in network.model(graph).named_parameters():
            if parameter.shape != network.parameters[name].shape:
                raise NotApplicable(f"expected {name} of shape {tuple(parameter.shape)}, got another")
    return c


def _member(held: dict[str, Tensor], k: int) -> dict[str, Tensor]:
    start = f"member{k}."
    return {name.removeprefix(start): value for name, value in held.items() if name.startswith(start)}


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value
