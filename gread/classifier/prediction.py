"""What a fitted classifier says of nodes: those it was fitted on, or those of another graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from gread.classifier.inputs import feature_names, read_graph, read_rows
from gread.classifier.storage import FittedState
from gread.datasets.checks import read_features
from gread.models.trained_network import Network
from gread.settings.gread_settings import GreadSettings
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.edges import read_nodes
from rdgraph.graphs.generators import ring
from rdgraph.lowering.coefficients import valued_letters
from rdgraph.syntax.tree import Kind

#: Nodes more than the fitted graph has, to see whether a network would need other parameters there.
SPARE = 3


def log_probabilities(state: FittedState, X: Any, graph: Any, nodes: Any, name: str) -> np.ndarray:
    """log of the mean over the members of softmax(logits), (rows, classes); the arguments are those of `predict`.

    `name` is the classifier's, for errors in scikit-learn's words.
    """
    x, made, rows = state.x, state.graph, None
    if X is not None and state.by_node:
        if nodes is not None:
            raise InvalidArgument("expected node numbers once, got them as X and as nodes; leave one of them out")
        rows = read_rows(X, made.num_nodes)
    elif X is not None:
        _check_names(state.names, feature_names(X))
        x = read_features(X)
        made = _graph_of(state, x.shape, graph, name)
    if graph is not None and (X is None or state.by_node):
        raise InvalidArgument("expected features X with another graph, got the graph alone; pass X (n, f)")
    each = [torch.log_softmax(network.logits(x, made).double(), -1) for network in state.networks]
    mean = torch.logsumexp(torch.stack(each), 0) - np.log(len(each))
    chosen = rows if nodes is None else read_nodes(nodes, made.num_nodes)
    result: np.ndarray = mean.cpu().numpy()
    return result if chosen is None else result[chosen]


def _check_names(known: np.ndarray | None, given: np.ndarray | None) -> None:
    """Columns in another order than in fit would be taken for others."""
    if known is None or given is None:
        if (known is None) != (given is None):
            had, has = ("with", "without") if given is None else ("without", "with")
            warnings.warn(f"X was fitted {had} feature names and comes {has} them", UserWarning, stacklevel=5)
        return
    if list(known) != list(given):
        raise InvalidArgument(
            f"expected the columns {known.tolist()[:6]}, in the order of fit, got {given.tolist()[:6]}; take "
            "X[clf.feature_names_in_]"
        )


def _graph_of(state: FittedState, shape: tuple[int, ...], graph: Any, name: str) -> Graph:
    """The graph of given features: the fitted one where no other is given."""
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
    """Refuse a network that has numbers of its own for every node of the fitted graph."""
    if isinstance(network.config, GreadSettings):
        letters = valued_letters(network.system)
        if node_wise := [letter for letter, kind in letters.items() if kind is Kind.NODE]:
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
            "take a network without"
        ) from None
