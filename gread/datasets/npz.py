"""The npz files of heterophilous-graphs, read without pickles: a whole data set in one archive."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gread.datasets.array_files import read_header
from gread.datasets.raw import RawData, compact
from gread.datasets.sources import Dataset
from gread.datasets.splits import Masks
from rdgraph.errors import FileError

KEYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
#: The most splits in a published file.
MAX_SPLITS = 100


def read_npz(paths: Sequence[Path]) -> RawData:
    """Read edges as stored (each pair once), features, classes and the ten splits."""
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
    """The named arrays of an npz file; Python objects and damaged files are refused."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive.files]
            arrays = {} if missing else {key: archive[key] for key in keys}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, MemoryError) as reason:
        raise FileError(
            f"expected an npz file of plain arrays in {path.name}, got one that cannot be read ({reason}); "
            "fetch the file again"
        ) from None
    if missing:
        raise FileError(f"expected the arrays {', '.join(keys)} in {path.name}, got none named {missing[0]}")
    return arrays


def read_shapes(path: Path, keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the named arrays from their headers, without reading the arrays.

    Arrays that are not numeric, or whose size in the archive does not match their shape, are refused.
    """
    shapes = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for key in keys:
                with archive.open(f"{key}.npy") as member:
                    shape, _, dtype = read_header(member)
                    size = math.prod(shape) * dtype.itemsize + member.tell()
                if dtype.kind not in "biuf" or size != archive.getinfo(f"{key}.npy").file_size:
                    raise ValueError(f"{key} is no array of numbers of its declared size")
                shapes[key] = shape
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as reason:
        raise FileError(
            f"expected an npz file of the arrays {', '.join(keys)} in {path.name}, got one that cannot be read "
            f"({reason}); fetch the file again"
        ) from None
    return shapes


def check_npz(path: Path, entry: Dataset) -> None:
    """Refuse a file without the published numbers of nodes, edges, features and classes.

    The headers are checked first, so that no array larger than the published data is read.
    """
    assert entry.nodes is not None  # files without a hash are those of published sets, whose counts are known
    _check_shapes(read_shapes(path, KEYS), path, entry)
    arrays = read_arrays(path, KEYS)
    features, labels, edges = (arrays[key] for key in KEYS[:3])
    in_range = edges.size == 0 or (edges.min() >= 0 and edges.max() < entry.nodes)
    if np.unique(labels).size != entry.classes or not in_range:
        raise _other(path, entry, (*features.shape, len(edges), np.unique(labels).size))


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], path: Path, entry: Dataset) -> None:
    splits = (shapes["train_masks"] or (0,))[0]
    wanted = {
        "node_features": (entry.nodes, entry.features),
        "node_labels": (entry.nodes,),
        "edges": (entry.edges, 2),
        **dict.fromkeys(KEYS[3:], (splits, entry.nodes)),
    }
    if dict(shapes) != wanted or splits > MAX_SPLITS:
        raise _other(path, entry, dict(shapes))


def _other(path: Path, entry: Dataset, got: object) -> FileError:
    return FileError(
        f"expected {entry.nodes} nodes, {entry.features} features, {entry.edges} edges, {entry.classes} classes "
        f"({entry.counts}) in {path.name}, got {got}; the file is not the published one"
    )
