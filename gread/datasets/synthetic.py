"""Synthetic graphs: cSBM, and the synthetic Cora with a given homophily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import describe_split, stratified_splits, stream
from gread.settings.presets import read_records
from rdgraph import Graph, generators
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import read_whole

#: Classes of the synthetic Cora, and edges of every arriving node.
CLASSES, LINKS = 5, 2


def csbm(
    seed: int = 0,
    *,
    n: int = 100,
    classes: int = 2,
    homophily: float | None = None,
    degree: float | None = None,
    within: float | None = None,
    between: float | None = None,
    signal: float = 0.5,
    sigma: float = 2.0,
    features: int = 2,
) -> NodeData:
    """Contextual stochastic block model with classes of equal size (up to one node) and ten stratified splits.

    With w pairs of nodes within classes, b across and m = n*degree/2 edges, within = homophily*m/w and between =
    (1 - homophily)*m/b. Every feature of class k is drawn from N(mean_k, sigma^2), the means evenly spaced from -signal
    to signal. The defaults are those of the GREAD paper's appendix.

    Args:
        seed: The random seed.
        n: The number of nodes.
        classes: The number of classes.
        homophily: The expected edge homophily, together with `degree`. Or:
        degree: The expected mean degree.
        within: The probability of an edge within a class, together with `between`; 0.9 and 0.1 by default.
        between: The probability of an edge across classes.
        signal: The largest mean of the features.
        sigma: The standard deviation of the features.
        features: Columns of the features.

    Returns:
        The data set.

    Raises:
        InvalidArgument: For impossible numbers, or other combinations of the four probabilities.

    >>> import gread
    >>> data = gread.datasets.csbm(homophily=0.3, degree=8, n=1000, classes=4)
    >>> data.graph.degree.mean().round(1), round(data.graph.homophily(data.y), 2)
    (np.float64(8.0), 0.29)
    """
    count = read_whole(n, 3, "nodes")
    blocks = read_whole(classes, 2, "classes")
    if blocks > count:
        raise InvalidArgument(f"expected no more classes than nodes, got {blocks} and {count}")
    sizes = np.bincount(np.arange(count) % blocks)
    if homophily is not None and degree is not None and within is None and between is None:
        within, between = _edge_probabilities(sizes, homophily, degree)
    elif homophily is not None or degree is not None or (within is None) != (between is None):
        raise InvalidArgument(
            "expected homophily and degree, or within and between, or none of them, got another choice; "
            "either pair determines the other"
        )
    elif within is None or between is None:
        within, between = 0.9, 0.1
    graph = generators.csbm(
        stream(seed, "csbm"), sizes=sizes.tolist(), means=np.linspace(-signal, signal, blocks).tolist(), sigma=sigma,
        channels=features, within=within, between=between,
    )  # fmt: skip
    chosen = {"within": within, "between": between, "signal": signal, "sigma": sigma, "seed": seed}
    meta = Meta(
        "csbm",
        title="Contextual stochastic block model",
        sources=(("generated", "Deshpande, Sen, Montanari and Mossel, Contextual stochastic block models, 2018"),),
        variant=tuple((name, f"{value:g}") for name, value in chosen.items()),
        split=describe_split(0.48, 0.32, seed),
    )
    return NodeData(graph.graph, graph.features, graph.labels, stratified_splits(graph.labels, seed=seed), meta=meta)


def synthetic_cora(
    homophily: float,
    seed: int = 0,
    *,
    cora: NodeData | None = None,
    splits: int = 3,
    train: float = 0.25,
    val: float = 0.25,
) -> NodeData:
    """A graph grown to a target homophily h with node features of Cora (Zhu et al., H2GCN, 2020).

    Nodes arrive one by one. A new node of class c is joined to two earlier ones, node v drawn in proportion to
    max(degree_v, 1)*H[c, class_v] with H = h on the diagonal and (1 - h)/(classes - 1) elsewhere. The five largest
    classes of Cora give five classes of equal size, that of the fifth (298, so 1,490 nodes), in random order after two
    of each; every node gets the features of a different Cora node of its class. The first ten nodes form a path of nine
    and a single node, 2,968 edges in all; if h is 0 or 1 a path would violate the rule, so each of them is joined to
    one node that the rule allows, if any. In about one graph in fifty the single node stays isolated. Splits are
    25/25/50 as in H2GCN; GREAD's paper uses three, and does not state their sizes.

    Args:
        homophily: h, from 0 to 1.
        seed: The random seed.
        cora: The whole graph of Cora, or a similar one; loaded by default.
        splits: The number of stratified splits.
        train: The share of training nodes.
        val: The share of validation nodes.

    Returns:
        The data set.

    Raises:
        InvalidArgument: For a homophily outside of 0..1, or a `cora` with too few nodes in five classes.

    >>> import gread
    >>> like_cora = gread.datasets.csbm(n=50, classes=5, features=7)
    >>> gread.datasets.synthetic_cora(0.5, cora=like_cora).graph.num_nodes
    50
    """
    if not 0 <= homophily <= 1:
        raise InvalidArgument(f"expected a homophily between 0 and 1, got {homophily}")
    source = load_cora() if cora is None else cora
    sizes = np.bincount(source.y[source.y >= 0], minlength=CLASSES)
    largest = np.argsort(-sizes, kind="stable")[:CLASSES]
    size = int(sizes[largest[-1]])
    if size < LINKS:
        raise InvalidArgument(f"expected {CLASSES} classes of {LINKS} nodes or more, got sizes {sizes.tolist()}")
    draw = stream(seed, "arrivals")
    first, others = (np.repeat(np.arange(CLASSES), count) for count in (LINKS, size - LINKS))
    y = np.append(draw.permutation(first), draw.permutation(others))
    pairs = grow(y, homophily, stream(seed, "growth"))
    graph = Graph.from_edges(np.concatenate([pairs, pairs[::-1]], axis=1), y.size, duplicates="error")
    nodes = np.empty(y.size, dtype=np.int64)
    draw = stream(seed, "features")
    for k, label in enumerate(largest):
        nodes[y == k] = draw.choice(np.flatnonzero(source.y == label), size, replace=False)
    names = source.meta.classes or tuple(str(k) for k in range(sizes.size))
    meta = Meta(
        "synthetic_cora",
        title=f"Synthetic Cora, homophily {homophily:g}",
        sources=(("generated", "Zhu et al., Beyond homophily in graph neural networks, 2020"), *source.meta.sources),
        variant=(*source.meta.variant, ("homophily", f"{homophily:g}"), ("seed", str(seed))),
        split=describe_split(train, val, seed),
        classes=tuple(names[k] for k in largest),
        notes=(
            "Generated by the published rule; these are not the graphs of the publication.",
            "Edges between different classes are spread evenly over the other classes.",
            "The share of training nodes follows H2GCN, since the GREAD paper does not state its own.",
        ),
    )
    masks = stratified_splits(y, splits, train=train, val=val, seed=seed)
    return NodeData(graph, source.x[nodes], y, masks, meta=meta)


def synthetic_cora_levels(
    *, cora: NodeData | None = None, levels: Sequence[float] | None = None, seeds: Sequence[int] = (0, 1, 2)
) -> Iterator[NodeData]:
    """The synthetic Cora at every level of homophily, for every seed.

    Args:
        cora: The whole graph of Cora, or a similar one; loaded by default.
        levels: The homophilies h; by default the published 0, 0.1, ..., 1.
        seeds: The seeds.

    Returns:
        The data sets, one after the other, seeds fastest.

    >>> import gread
    >>> like_cora = gread.datasets.csbm(n=50, classes=5)
    >>> graphs = gread.datasets.synthetic_cora_levels(cora=like_cora, levels=[0.2, 0.8], seeds=[0])
    >>> [data.meta.variant[-2][1] for data in graphs]
    ['0.2', '0.8']
    """
    source = load_cora() if cora is None else cora
    chosen = [row.homophily for row in published_degrees()] if levels is None else levels
    return (synthetic_cora(level, seed, cora=source) for level in chosen for seed in seeds)


@dataclass(frozen=True)
class PublishedDegrees:
    """One row of the paper's Table 9, the synthetic Cora: degrees, means over three graphs."""

    homophily: float
    average_degree: float
    max_degree: float
    min_degree: float
    source: str


def published_degrees() -> tuple[PublishedDegrees, ...]:
    """The degrees of the synthetic Cora graphs, as printed in the paper's Table 9.

    >>> row = published_degrees()[10]
    >>> row.homophily, row.average_degree, row.max_degree, row.min_degree
    (1.0, 3.98, 51.0, 2.0)
    """
    return tuple(read_records("synthetic_cora.csv", PublishedDegrees))


def grow(labels: np.ndarray, homophily: float, draw: np.random.Generator) -> np.ndarray:
    """The edges (2, E), each once, of nodes that arrive in order and are joined as in `synthetic_cora`.

    >>> labels = np.array([0, 1, 1, 0, 0, 1])
    >>> pairs = grow(labels, 1.0, np.random.default_rng(0))
    >>> bool((labels[pairs[0]] == labels[pairs[1]]).all())
    True
    """
    classes = int(labels.max()) + 1
    first = LINKS * classes
    affinity = np.full((classes, classes), (1 - homophily) / (classes - 1))
    np.fill_diagonal(affinity, homophily)
    degree = np.zeros(labels.size)
    pairs: list[tuple[int, int]] = []
    for node in range(2, labels.size):
        if node < first and 0 < homophily < 1:
            chosen = np.array([node - 1])
        else:
            weight = np.maximum(degree[:node], 1) * affinity[labels[node], labels[:node]]
            chosen = _drawn(weight, LINKS if node >= first else 1, draw)
        pairs.extend((node, other) for other in chosen.tolist())
        degree[chosen] += 1
        degree[node] = len(chosen)
    return np.array(pairs, dtype=np.int64).T


def _drawn(weight: np.ndarray, count: int, draw: np.random.Generator) -> np.ndarray:
    """Numbers drawn without replacement in proportion to their weights; fewer if weights are zero.

    Exponential random times with these rates are in the order of such draws.
    """
    possible = np.flatnonzero(weight)
    times = draw.standard_exponential(possible.size) / weight[possible]
    return possible if possible.size <= count else possible[np.argpartition(times, count)[:count]]


def load_cora() -> NodeData:
    """The whole graph of Cora."""
    from gread.datasets.loading import load_dataset
    from gread.datasets.variants import Variant

    return load_dataset("cora", split="stratified", variant=Variant(component="all"))


def _edge_probabilities(sizes: np.ndarray, homophily: float, degree: float) -> tuple[float, float]:
    """The probabilities of an edge within and between classes that give this homophily and mean degree."""
    if not (0 <= homophily <= 1 and degree > 0):
        raise InvalidArgument(f"expected a homophily in 0..1 and a degree > 0, got {homophily} and {degree}")
    total = int(sizes.sum())
    inside = float((sizes * (sizes - 1)).sum()) / 2
    across = total * (total - 1) / 2 - inside
    shares = np.array([homophily, 1 - homophily])
    pairs = np.array([inside, across])
    with np.errstate(divide="ignore", invalid="ignore"):
        most = float(np.min(np.where(shares > 0, 2 * pairs / (shares * total), np.inf)))
    if degree > most:
        raise InvalidArgument(
            f"expected a degree of {most:.4g} at most for homophily {homophily:g} of {total} nodes, got {degree:g}; "
            "there are not enough pairs of nodes"
        )
    within, between = (shares * total * degree / 2 / np.maximum(pairs, 1)).tolist()
    return min(within, 1.0), min(between, 1.0)
