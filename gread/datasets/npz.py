"""The npz files of heterophilous-graphs, read without pickles: everything of a data set in one archive."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gread.datasets.masks import Masks
from gread.datasets.raw import RawData, compact
from gread.datasets.sources import Entry
from rdgraph.errors import NotApplicable

KEYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")


def read_npz(paths: Sequence[Path]) -> RawData:
    """Edges in the direction in which they are stored (each pair once), features, classes, the ten splits."""
    (path,) = paths
    features, labels, edges, *masks = read_arrays(path, KEYS).values()
    train, val, test = (mask.astype(bool) for mask in masks)
    return RawData(
        np.ascontiguousarray(edges.T.astype(np.int64)),
        compact(features),
        labels.astype(np.int64),
        Masks(train, val, test),
    )


def read_arrays(path: Path, keys: Sequence[str]) -> dict[str, np.ndarray]:
    """The named arrays of an npz file; Python objects in it are refused, and so is a damaged file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive.files]
            found = {} if missing else {key: archive[key] for key in keys}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as reason:
        raise NotApplicable(
            f"expected an npz file of plain arrays in {path.name}, got one that cannot be read ({reason}); "
            "fetch the file again"
        ) from None
    if missing:
        raise NotApplicable(f"expected the arrays {', '.join(keys)} in {path.name}, got none named {missing[0]}")
    return found


def check_npz(path: Path, entry: Entry) -> None:
    """Refuse a file that does not hold the published numbers of nodes, edges, features and classes."""
    arrays = read_arrays(path, KEYS)
    features, labels, edges = (arrays[key] for key in KEYS[:3])
    got = (*features.shape, len(edges), np.unique(labels).size)
    want = (entry.nodes, entry.features, entry.edges, entry.classes)
    shapes = [(len(edges), 2), (entry.nodes,), *(((len(arrays["train_masks"]), entry.nodes),) * 3)]
    fits = [arrays[key].shape for key in ("edges", "node_labels", *KEYS[3:])] == shapes
    in_range = edges.size == 0 or (edges.min() >= 0 and edges.max() < entry.nodes)
    if got != want or not fits or not in_range:
        raise NotApplicable(
            f"expected {want[0]} nodes, {want[1]} features, {want[2]} edges, {want[3]} classes ({entry.counts}) in "
            f"{path.name}, got {got}; the file is not the published one"
        )
