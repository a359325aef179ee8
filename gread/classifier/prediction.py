"""Predictions of a fitted classifier, for the fitted nodes or for another graph, and its files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import Tensor

from gread.classifier.sample import feature_names, read_graph, read_rows
from gread.datasets.checks import read_features
from gread.models.bundle import Bundle, load_bundle, save_bundle
from gread.models.trained_network import Network
from gread.settings.config import NAME, Config
from gread.settings.gread_settings import GreadSettings
from gread.training.ensemble import METRICS
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, NotApplicable, RdgraphError, UnknownName
from rdgraph.graphs.edges import read_nodes
from rdgraph.graphs.generators import ring
from rdgraph.graphs.matrix_formats import make_csr
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.wording import listed

# ---------------------------------------------------------------------- storage
# `FittedState`: the result of a fit, and its files: tensors as safetensors, everything else as JSON.

FORMAT, WHAT = "gread classifier 3", "a saved classifier"
MANIFEST = "classifier.json"


@dataclass(frozen=True, eq=False)
class FittedState:
    """The result of a fit, and the graph and features (n, f) it was fitted on.

    `classes` (k,) in the order of the logits, `names` of the columns of x if they had names; `networks`,
    `best_epochs`, `status` and `histories` (members, epochs, 4) have one entry per member. `by_node` says whether rows
    are given as node numbers.
    """

    networks: tuple[Network, ...]
    classes: np.ndarray
    graph: Graph
    x: np.ndarray | csr_array
    histories: np.ndarray
    best_epochs: np.ndarray
    status: tuple[str, ...]
    epochs: int
    by_node: bool = False
    names: np.ndarray | None = None

    def __post_init__(self) -> None:
        members = len(self.best_epochs)
        if members < 1 or self.best_epochs.ndim != 1 or len(self.status) != members or len(self.classes) < 2:
            raise InvalidArgument(
                f"expected results of one member or more and two classes or more, got {members} members"
            )
        if self.histories.ndim != 3 or self.histories.shape[::2] != (members, len(METRICS)):
            raise InvalidArgument(f"expected a history ({members}, epochs, {len(METRICS)}), got {self.histories.shape}")
        if self.names is not None and len(self.names) != self.x.shape[1]:
            raise InvalidArgument(f"expected a name for each of {self.x.shape[1]} columns, got {len(self.names)}")


def save_state(folder: Path, state: FittedState, arguments: Mapping[str, Any]) -> None:
    """Write a state and the arguments of its classifier, without node names."""
    x: Any = state.x
    tensors: dict[str, Any] = {"edge_index": state.graph.edge_index, "edge_weight": state.graph.weight}
    tensors |= {"histories": state.histories, "best_epochs": state.best_epochs}
    tensors |= {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr} if issparse(x) else {"x": x}
    numbers = {name: torch.tensor(np.asarray(value)) for name, value in tensors.items()}
    for k, network in enumerate(state.networks):
        numbers |= {f"member{k}.{name}": value for name, value in network.parameters.items()}
    words = {
        "arguments": {name: _plain(value) for name, value in arguments.items()},
        "model": {NAME: state.networks[0].config.model, **asdict(state.networks[0].config)},
        "reason": state.networks[0].reason,
        "epochs": state.epochs,
        "classes": state.classes.tolist(),
        "nodes": state.graph.num_nodes,
        "features": int(x.shape[1]),
        "names": [] if state.names is None else state.names.tolist(),
        "by_node": state.by_node,
        "status": list(state.status),
    }
    save_bundle(folder / MANIFEST, FORMAT, words, numbers)


def load_state(
    folder: Path, find_known: Callable[[Mapping[str, Any]], Collection[str]]
) -> tuple[dict[str, Any], FittedState]:
    """Read and check what `save_state` wrote: the arguments, with names from `find_known`, and the state."""
    bundle = load_bundle(folder / MANIFEST, FORMAT, WHAT)
    try:
        arguments = dict(bundle.words["arguments"])
        known = find_known(arguments)
        for name in arguments:
            if name not in known:
                raise UnknownName("argument of the classifier", name, known)
        return arguments, _restored(bundle)
    except (LookupError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError, RdgraphError) as error:
        raise FileError(f"{folder} does not describe {WHAT} ({type(error).__name__}: {error}); save it again") from None


def _restored(bundle: Bundle) -> FittedState:
    words, numbers = bundle.words, bundle.numbers
    nodes, width, classes = int(words["nodes"]), int(words["features"]), np.array(words["classes"])
    arrays = {name: value.numpy() for name, value in numbers.items() if not name.startswith("member")}
    graph = Graph(arrays["edge_index"], arrays["edge_weight"], nodes)
    x: Any = arrays.get("x")
    if x is None:
        x = make_csr(arrays["x.data"], arrays["x.indices"], arrays["x.indptr"], (nodes, width), "the features")
    x = read_features(x)
    if x.shape != (nodes, width):
        raise InvalidArgument(f"expected features ({nodes}, {width}), got {x.shape}")
    model, reason = Config.from_sections({"model": words["model"]}).model, str(words.get("reason", ""))
    blank = Network(model, {}, width, len(classes), reason)
    best_epochs = arrays["best_epochs"]
    networks = tuple(replace(blank, parameters=_member(numbers, k)) for k in range(len(best_epochs)))
    state = FittedState(
        networks, classes, graph, x, arrays["histories"], best_epochs, tuple(words["status"]), int(words["epochs"]),
        bool(words["by_node"]), _names(words["names"]),
    )  # fmt: skip
    for network in networks:
        network.check(graph)
    return state


def _names(names: Any) -> np.ndarray | None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"expected a list of column names, got {str(names)[:80]}")
    return np.array(names, dtype=object) if names else None


def _member(numbers: Mapping[str, Tensor], k: int) -> dict[str, Tensor]:
    start = f"member{k}."
    return {name.removeprefix(start): value for name, value in numbers.items() if name.startswith(start)}


def _plain(value: Any) -> Any:
    """Numpy numbers as Python numbers."""
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------- prediction
#: Additional nodes of a graph on which to check whether a network needs other parameters.
SPARE = 3


def log_probabilities(state: FittedState, X: Any, graph: Any, nodes: Any, name: str) -> np.ndarray:
    """The log of the mean over the members of softmax(logits), (rows, classes); the arguments are those of `predict`.

    `name` is that of the classifier, for errors in scikit-learn's wording.
    """
    x, on_graph, rows = state.x, state.graph, None
    if X is not None and state.by_node:
        if nodes is not None:
            raise InvalidArgument("node numbers were given twice, as X and as nodes; leave one of them out")
        rows = read_rows(X, on_graph.num_nodes)
    elif X is not None:
        _check_names(state.names, feature_names(X))
        x = read_features(X)
        on_graph = _graph_of(state, x.shape, graph, name)
    if graph is not None and (X is None or state.by_node):
        raise InvalidArgument("expected features X with another graph, got only the graph; pass X (n, f)")
    each = [torch.log_softmax(network.logits(x, on_graph).double(), -1) for network in state.networks]
    mean = torch.logsumexp(torch.stack(each), 0) - np.log(len(each))
    chosen = rows if nodes is None else read_nodes(nodes, on_graph.num_nodes)
    result: np.ndarray = mean.cpu().numpy()
    return result if chosen is None else result[chosen]


def _check_names(known: np.ndarray | None, given: np.ndarray | None) -> None:
    """Raise for columns in another order than in fit, which would be confused."""
    if known is None or given is None:
        if (known is None) != (given is None):
            had, has = ("with", "without") if given is None else ("without", "with")
            warnings.warn(f"X was fitted {had} feature names and comes {has} them", UserWarning, stacklevel=5)
        return
    if missing := [name for name in known.tolist() if name not in set(given)]:
        raise InvalidArgument(f"expected the columns of fit, got none called {listed(missing)}; add them to X")
    if list(known) != list(given):
        others = [name for name in given.tolist() if name not in set(known)]
        got = f"others too: {listed(others)}" if others else "them in another order"
        raise InvalidArgument(f"expected the columns of fit, got {got}; take X[clf.feature_names_in_]")


def _graph_of(state: FittedState, shape: tuple[int, ...], graph: Any, name: str) -> Graph:
    """The graph of given features; the fitted one by default."""
    if shape[1] != state.x.shape[1]:
        raise InvalidArgument(
            f"X has {shape[1]} features, but {name} is expecting {state.x.shape[1]} features as input, as many as in "
            "fit"
        )
    fitted = state.graph
    if graph is None:
        if shape[0] != fitted.num_nodes:
            raise InvalidArgument(
                f"expected features of the {fitted.num_nodes} nodes of the fitted graph, got {shape[0]} rows; "
                "pass their graph=, or choose nodes of the fitted graph with nodes="
            )
        return fitted
    _check_nodeless(state.networks[0], fitted)
    return read_graph(graph, shape[0])


def _check_nodeless(network: Network, fitted: Graph) -> None:
    """Refuse a network that has separate parameters for every node of the fitted graph."""
    if isinstance(network.config, GreadSettings):
        kinds = valued_letters(network.system)
        if node_wise := [name for name, kind in kinds.items() if kind is Kind.NODE]:
            raise NotApplicable(
                f"expected the fitted graph, since {', '.join(node_wise)} belongs to its nodes, got another; "
                "train with scalar or channel coefficients"
            )
        return
    try:
        network.check(ring(fitted.num_nodes + SPARE))
    except InvalidArgument:
        raise NotApplicable(
            f"expected the fitted graph, since {network.config.model} has parameters for its nodes, got another; "
            "use a network without them"
        ) from None
