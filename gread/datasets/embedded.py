"""Two real data sets that need no download: handwritten digits and the karate club."""

from __future__ import annotations

import numpy as np
from scipy.sparse import eye_array

from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import describe_split, stratified_splits
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, MissingDependency
from rdgraph.graphs.edges import read_whole


def digits(neighbours: int = 10) -> NodeData:
    """Scikit-learn's handwritten digits as a nearest-neighbour graph: 1,797 images of 8 x 8 pixels, 10 classes.

    i and j are joined, with weight 1, if one is among the `neighbours` nearest of the other in Euclidean distance of
    the pixels; among equally distant images the earlier one counts as nearer. x (1797, 64) is the grey value, 0 to 1.

    Args:
        neighbours: The number of nearest images that every image is joined to.

    Returns:
        The data set, with ten stratified splits.

    Raises:
        MissingDependency: Without scikit-learn, which contains the images.
        InvalidArgument: For neighbours other than a whole number from 1 to 1,796.

    >>> import gread
    >>> data = gread.digits()
    >>> data
    NodeData('digits', num_nodes=1797, num_edges=24678, num_features=64, num_classes=10, num_splits=10)
    >>> round(data.graph.homophily(data.y), 3)
    0.956
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingDependency("the digits need scikit-learn: pip install 'rdgraph[gread]'") from None
    images, labels = load_digits(return_X_y=True)
    graph = nearest_neighbours(images, neighbours)
    meta = Meta(
        "digits",
        title="Handwritten digits",
        sources=(("sklearn.datasets.load_digits", "test set of Alpaydin and Kaynak, Optical recognition, UCI, 1998"),),
        variant=(("neighbours", str(neighbours)), ("features", "grey value / 16"), ("undirected", "true")),
        split=describe_split(0.48, 0.32, 0),
        classes=tuple(str(k) for k in range(10)),
        notes=(
            f"The graph is not part of the source: it joins every image to its {neighbours} nearest, so its edges "
            "contain no information beyond the features.",
        ),
    )
    return NodeData(graph, images / 16, labels, stratified_splits(labels, seed=0), meta=meta)


def karate() -> NodeData:
    """Zachary's karate club: 34 members, joined where they met outside the club, and the side each took when it split.

    Edges are unweighted, x is the identity (sparse), label 0 followed Mr. Hi, 1 the officer.

    Returns:
        The data set, with ten stratified splits.

    >>> import gread
    >>> data = gread.karate()
    >>> data.graph.num_edges, data.y.sum(), round(data.graph.homophily(data.y), 3)
    (156, np.int64(17), 0.859)
    """
    import networkx as nx

    club = nx.karate_club_graph()
    classes = ("Mr. Hi", "Officer")
    labels = np.array([classes.index(side) for _, side in club.nodes(data="club")])
    meta = Meta(
        "karate",
        title="Zachary's karate club",
        sources=(("networkx.karate_club_graph", "Zachary, Journal of Anthropological Research 33, 1977"),),
        variant=(("weights", "none"), ("features", "identity"), ("undirected", "true")),
        split=describe_split(0.48, 0.32, 0),
        classes=classes,
        notes=(
            "The tie strengths in networkx are not used: every edge has weight 1.",
            "The nodes have no features: each has its unit vector.",
        ),
    )
    features = eye_array(labels.size, dtype=np.float32, format="csr")
    graph = Graph.from_networkx(club, weight=None)
    return NodeData(graph, features, labels, stratified_splits(labels, seed=0), meta=meta)


def nearest_neighbours(points: np.ndarray, neighbours: int) -> Graph:
    """The undirected graph that joins every point (n, d) to its nearest neighbours, ties to the lower number.

    The points must be whole numbers, so that squared distances are exact and ties are ties on every machine.

    >>> nearest_neighbours(np.array([[0], [1], [3]]), 1).edge_index.tolist()
    [[1, 0, 2, 1], [0, 1, 1, 2]]
    """
    n = len(points)
    if read_whole(neighbours, 1, "neighbours") >= n:
        raise InvalidArgument(f"expected 1 to {n - 1} neighbours, got {neighbours}; every point has {n - 1} others")
    whole = points.astype(np.int64)
    if not np.array_equal(whole, points):
        raise InvalidArgument("expected points of whole numbers, got fractions; scale and round them")
    exact = whole.astype(np.float64)  # products in float64 are exact here and far faster than in integers
    squares = (exact**2).sum(axis=1)
    distance = (squares[:, None] + squares - 2 * exact @ exact.T).astype(np.int64)
    np.fill_diagonal(distance, distance.max() + 1)
    nearest = np.argpartition(distance * n + np.arange(n), neighbours - 1, axis=1)[:, :neighbours]
    targets = np.repeat(np.arange(n), neighbours)
    return Graph.from_edges(np.stack([nearest.ravel(), targets]), n).undirected()
