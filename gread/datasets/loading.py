"""`load_dataset`: loads a data set by name, with the standard splits and a record of its preparation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gread.datasets.download import LocalFile, fetch_files
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.npz import read_npz
from gread.datasets.ogb_sets import is_ogb, load_ogb
from gread.datasets.planetoid import read_planetoid, read_split_files
from gread.datasets.raw import RawData, compact
from gread.datasets.sources import DRAWN, Dataset, canonical, entry, registry
from gread.datasets.splits import PARTS, Masks
from gread.datasets.variants import Variant, prepare
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, UnknownName

# ---------------------------------------------------------------------- webkb
# The text files of geom-gcn: Texas, Wisconsin and the old version of Cornell.


def read_webkb(paths: Sequence[Path]) -> RawData:
    """Read hyperlinks page -> page with loops, word occurrences (0 or 1) and classes; no masks."""
    edge_path, node_path = paths
    nodes = [line.split("\t") for line in _lines(node_path, "node_id\tfeature\tlabel")]
    if any(len(row) != 3 for row in nodes):
        raise FileError(f"expected node, features and label in every line of {node_path.name}; fetch the file again")
    order = np.array([row[0] for row in nodes], dtype=np.int64)
    if not np.array_equal(np.sort(order), np.arange(order.size)):
        raise FileError(f"expected every node 0..{order.size - 1} once in {node_path.name}; fetch the file again")
    x = np.empty((order.size, nodes[0][1].count(",") + 1), dtype=np.float32)
    y = np.empty(order.size, dtype=np.int64)
    for node, words, label in nodes:
        x[int(node)] = np.array(words.split(","), dtype=np.float32)
        y[int(node)] = int(label)
    pairs = [line.split("\t") for line in _lines(edge_path, "node_id\tnode_id")]
    return RawData(np.ascontiguousarray(np.array(pairs, dtype=np.int64).reshape(-1, 2).T), compact(x), y)


def _lines(path: Path, heading: str) -> list[str]:
    """The lines below the heading."""
    first, *rest = path.read_text(encoding="ascii").splitlines()
    if first != heading:
        raise FileError(f"expected the heading {heading!r} in {path.name}, got {first[:40]!r}; fetch the file again")
    return rest


# ---------------------------------------------------------------------- loading
READERS: Mapping[str, Callable[[Sequence[Path]], RawData]] = {
    "planetoid": read_planetoid,
    "webkb": read_webkb,
    "npz": read_npz,
}
PUBLIC, STRATIFIED = "geom-gcn", "stratified"


def load_dataset(
    name: str,
    *,
    root: str | Path | None = None,
    split: str | Masks = PUBLIC,
    variant: Variant | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> NodeData:
    """Load a data set by name, prepared as `variant` says; missing files are downloaded unless `offline`.

    The default variant is that of GREAD's authors, except for Citeseer: eight of its splits cover the whole graph, two
    only the largest component, and the authors restricted the graph for those two. `load_dataset("citeseer").split(4)
    .component()` is that graph.

    Args:
        name: A name of `rdgraph data list`, a name added by `register_dataset`, or ogbn-arxiv, ogbn-products or
            ogbn-papers100M, see `gread.datasets.ogb_sets`.
        root: The folder of the files; by default $RDGRAPH_DATA, then the user's cache.
        split: "geom-gcn" for the ten splits of the set (48/32/20 from geom-gcn; sets of heterophilous-graphs, embedded
            and registered sets have their own), "stratified" for ten random splits, or `Masks` over the stored nodes.
            Nodes without label are in no split. "stratified" splits are drawn after the variant has restricted the
            graph; they cover all nodes, so "covered" keeps the whole graph.
        variant: The preparation of the stored graph; see `Variant`.
        offline: Whether a missing file is an error instead of a download.
        progress: Whether to show a progress bar of downloads; None shows one only on a terminal.

    Returns:
        The data set, with a record of its files, choices and irregularities in `meta`.

    Raises:
        UnknownName: For an unknown name or kind of splits.
        FileError: For a file that is unavailable or has wrong content (`DownloadError`).
        MissingDependency: Without the library that contains or downloads the set.

    >>> import gread
    >>> data = gread.load_dataset("karate")
    >>> data.num_nodes, data.meta.variant[-1]
    (34, ('component', 'covered'))
    """
    variant = Variant() if variant is None else variant
    if isinstance(split, str) and split not in (PUBLIC, STRATIFIED):
        raise UnknownName("split", split, (PUBLIC, STRATIFIED))
    if is_ogb(name):
        return _divided(load_ogb(name, root=root), split, variant)
    key = canonical(name)
    is_public = isinstance(split, str) and split == PUBLIC
    source = entry(key)
    if source.loader is not None:
        data = _loaded(source, source.loader())
    else:
        data = _read(source, root, offline, progress, with_splits=is_public)
    return _divided(data, STRATIFIED if source.split == DRAWN and not isinstance(split, Masks) else split, variant)


def _divided(data: NodeData, split: str | Masks, variant: Variant) -> NodeData:
    """The prepared data with the requested splits."""
    if isinstance(split, Masks):
        data = replace(data, masks=split, meta=replace(data.meta, split="given"))
    elif split == STRATIFIED:
        return prepare(replace(data, masks=Masks.none(data.num_nodes)), variant).stratified()
    return prepare(data, variant)


def _loaded(source: Dataset, data: NodeData) -> NodeData:
    """The result of a loader, under the name of its record."""
    if not isinstance(data, NodeData):
        raise InvalidArgument(f"expected NodeData from the loader of {source.name}, got {type(data).__name__}")
    meta = data.meta
    cited = ((source.title, source.citation),) if source.citation else ()
    meta = replace(
        meta, name=source.name, title=meta.title or source.title, sources=(*meta.sources, *cited),
        notes=(*meta.notes, *source.notes),
    )  # fmt: skip
    return replace(data, meta=meta)


def _read(
    source: Dataset, root: str | Path | None, offline: bool, progress: bool | None, *, with_splits: bool
) -> NodeData:
    """The set as stored, with directions, loops and raw features, but without repeated edges."""
    wanted = source.all_files if with_splits else source.files
    local = fetch_files(source, wanted, root=root, offline=offline, progress=progress)
    count = len(source.files)
    reader = READERS[source.reader] if isinstance(source.reader, str) else source.reader
    assert reader is not None  # a record has a loader or a reader
    raw = reader([file.path for file in local[:count]])
    graph = Graph.from_edges(raw.edges, raw.y.size, duplicates="once")
    notes = [*source.notes, *_file_notes(source, local)]
    masks = Masks.none(raw.y.size)
    if with_splits:
        stored = read_split_files([file.path for file in local[count:]]) if source.split_files else raw.masks
        if stored is not None:
            masks = Masks(*(getattr(stored, part) & (raw.y >= 0) for part in PARTS))
            notes += _split_notes(source, stored, raw.y, graph)
    meta = Meta(
        name=source.name,
        title=source.title,
        sources=tuple((file.file.key, file.sha256) for file in local),
        split=source.split if with_splits else "none",
        notes=tuple(notes),
        metric=source.metric,
    )
    return NodeData(graph, raw.x, raw.y, masks, meta=meta)


def _file_notes(source: Dataset, local: Sequence[LocalFile]) -> list[str]:
    notes = []
    for file in local:
        same = [key for key, other in registry().items() if other.sha256 == file.sha256 and key != file.file.key]
        notes += [f"{file.file.key} is byte for byte the file {key}." for key in same]
        if file.file.sha256 is None:
            notes.append(
                f"{file.file.key} is trusted on first use: no hash was published, its counts match the "
                f"{source.counts}, and its sha256 was recorded at the first download."
            )
    if source.reader == "npz":
        notes.append("The file contains every edge once; its direction has no meaning.")
    return notes


def _split_notes(source: Dataset, stored: Masks, y: np.ndarray, graph: Graph) -> list[str]:
    """Notes on the splits: their actual shares, unlabelled nodes in them, and uncovered nodes."""
    notes = []
    parts = [getattr(stored, part) for part in PARTS]
    shares = np.sum(parts, axis=(1, 2)) / stored.covered.sum()
    if source.split_files:
        percent = "/".join(f"{100 * share:.0f}" for share in shares)
        notes.append(f"The names of the split files say 0.6 and 0.2; the splits have {percent} % of their nodes.")
    unknown = y < 0
    if unknown.any():
        counts = [part[:, unknown].sum(axis=1) for part in parts]
        held = ", ".join(f"{c.min()} to {c.max()} {word}" for c, word in zip(counts, PARTS.values(), strict=True))
        notes.append(
            f"{np.count_nonzero(unknown)} of {y.size} nodes have neither label nor features and are in no split here; "
            f"the split files contain them ({held}), and most papers treat them as class 0."
        )
    component = graph.components()
    inside = component == np.bincount(component).argmax()
    exact = np.flatnonzero((stored.covered == inside).all(axis=1))
    if exact.size and not inside.all():
        which = "All splits" if exact.size == stored.num_splits else f"Splits {', '.join(map(str, exact))}, no other,"
        notes.append(f"{which} cover exactly the largest connected component, {inside.sum()} of {y.size} nodes.")
    return notes
