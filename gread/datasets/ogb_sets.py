"""The node property sets of the Open Graph Benchmark (Hu et al., NeurIPS 2020), by the package ogb, from its files.

ogb knows the sets and reads its raw files; what it keeps of them itself is a pickle, which is neither read nor written
here: arrays are kept beside it in an npz file. Nothing is downloaded, since ogb asks at the keyboard before it does.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
import zlib
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.download import VARIABLE, folder
from gread.datasets.interchange import assemble
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.npz import read_arrays
from gread.datasets.splits import Masks
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, MissingDependency, NotApplicable, UnknownName

PREFIX = "ogbn_"
#: The file in the folder processed that holds the arrays of a set.
KEPT = "rdgraph.npz"
ARRAYS = ("edges", "x", "y")
PARTS = {"train": "train", "val": "valid", "test": "test"}


def is_ogb(name: str) -> bool:
    """Whether a name is one of ogb's.

    >>> is_ogb("ogbn-arxiv"), is_ogb("cora")
    (True, False)
    """
    return _plain(name).startswith(PREFIX)


def load_ogb(name: str, *, root: str | Path | None = None) -> NodeData:
    """A node property set of ogb as stored, with its one split: directions, and every edge both ways where ogb says so.

    Args:
        name: ogbn-arxiv, ogbn-products or ogbn-papers100M.
        root: The folder that ogb was given, which holds ogbn_arxiv and so on; by default $RDGRAPH_DATA and the cache.

    Returns:
        The data; nodes without label are in no split.

    Raises:
        MissingDependency: Without ogb.
        UnknownName: For a name that ogb does not know.
        NotApplicable: For ogbn-proteins, which has many labels per node, and ogbn-mag, which has many kinds of nodes.
        FileError: Where the files are not there, or are not what they should be.
    """
    key = _plain(name).replace("_", "-")
    facts = _facts(key)
    if facts["is hetero"] == "True" or int(facts["num tasks"]) != 1:
        what = "kinds of nodes" if facts["is hetero"] == "True" else "labels per node"
        raise NotApplicable(f"expected one kind of nodes with one label each, got {key}, which has many {what}")
    place = _place(key, root)
    edges, x, y = _arrays(place, facts)
    try:
        graph = Graph.from_edges(edges, len(y), duplicates="once")
    except InvalidArgument as problem:
        raise FileError(f"{place / 'raw'}: {problem}") from None
    meta = Meta(
        key, title=f"{key} of the Open Graph Benchmark", split=f"{facts['split']} split of ogb",
        sources=((f"ogb {key} version {facts['version']}", "Hu et al., Open Graph Benchmark, NeurIPS 2020"),),
    )  # fmt: skip
    masks = _masks(place / "split" / facts["split"], y)
    return NodeData(**assemble(graph, x if x.shape[1] else None, y, masks, meta))


def _plain(name: str) -> str:
    return str(name).strip().replace("-", "_")


def _facts(name: str) -> Mapping[str, str]:
    """What ogb knows of a set: its format, its split, whether edges are to be reversed too."""
    try:
        import pandas as pd

        # Looked up and not imported: the folder of these sets imports other libraries too.
        found = find_spec("ogb")
    except (ImportError, ValueError):
        found = None
    if found is None or found.origin is None:
        raise MissingDependency(f"expected the package ogb for {name}, got none; pip install 'rdgraph[ogb]'")
    table = Path(found.origin).parent / "nodeproppred" / "master.csv"
    known = pd.read_csv(table, index_col=0, keep_default_na=False)
    if name not in known:
        raise UnknownName("set of ogb", name, tuple(known))
    return {str(k): str(v) for k, v in known[name].items()}


def _place(name: str, root: str | Path | None) -> Path:
    """The folder of a set, below the root, or its folder ogb."""
    copy = os.environ.get(VARIABLE)
    bases = [Path(root)] if root is not None else [*([Path(copy)] if copy else []), folder(None)]
    tried = [base / part / name.replace("-", "_") for base in bases for part in ("", "ogb")]
    found = next((path for path in tried if (path / "raw").is_dir()), None)
    if found is None:
        raise FileError(
            f"expected the files of {name} in {tried[0]}, got none; fetch them once with ogb, which asks before it "
            f"downloads: NodePropPredDataset({name!r}, root={str(bases[0])!r})"
        )
    return found


def _arrays(place: Path, facts: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges (2, E), features (n, f), f = 0 for none, and labels (n,): kept from before, or read by ogb."""
    kept = place / "processed" / KEPT
    newest = max((path.stat().st_mtime for path in (place / "raw").iterdir()), default=0.0)
    if kept.exists() and kept.stat().st_mtime >= newest:
        with suppress(FileError):  # a torn copy is made again
            edges, x, y = read_arrays(kept, ARRAYS).values()
            return edges, x, y
    graph, labels = _read_raw(place / "raw", facts)
    values = np.asarray(labels, dtype=np.float64).reshape(-1)
    y = np.where(np.isnan(values), -1, values).astype(np.int64)
    features = graph["node_feat"]
    x = np.zeros((len(y), 0), np.float32) if features is None else np.asarray(features, dtype=np.float32)
    edges = np.ascontiguousarray(graph["edge_index"], dtype=np.int64)
    if int(graph["num_nodes"]) != len(y) or len(x) != len(y):
        raise FileError(
            f"expected a label for each of {graph['num_nodes']} nodes in {place}, got {len(y)}; fetch again"
        )
    with suppress(OSError):  # a copy that is only read is read again the next time
        kept.parent.mkdir(exist_ok=True)
        draft = kept.with_suffix(".part.npz")
        np.savez(draft, edges=edges, x=x, y=y)
        draft.replace(kept)
    return edges, x, y


def _read_raw(raw: Path, facts: Mapping[str, str]) -> tuple[dict[str, Any], np.ndarray]:
    """The one graph and the labels of the raw files, by ogb's readers, whose words are not shown."""
    import pandas as pd

    reader = _reader()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            if facts["binary"] == "True":
                (graph,) = reader.read_binary_graph_raw(str(raw))
                with np.load(raw / "node-label.npz", allow_pickle=False) as archive:
                    return graph, archive["node_label"]
            (graph,) = reader.read_csv_graph_raw(str(raw), add_inverse_edge=facts["add_inverse_edge"] == "True")
            return graph, pd.read_csv(raw / "node-label.csv.gz", header=None).to_numpy()
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, zlib.error) as problem:
        raise FileError(f"expected the raw files of ogb in {raw}, got {problem}; fetch them again") from None


def _reader() -> Any:
    """ogb's reader of raw files. Its import asks the network for newer versions by the package outdated, unless that is
    not to be had, as here.
    """
    before = sys.modules.get("outdated")
    sys.modules["outdated"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("ogb.io.read_graph_raw")
    finally:
        sys.modules.pop("outdated")
        if before is not None:
            sys.modules["outdated"] = before


def _masks(split: Path, y: np.ndarray) -> Masks:
    import pandas as pd

    found = np.zeros((3, 1, len(y)), dtype=bool)
    for row, word in zip(found, PARTS.values(), strict=True):
        try:
            nodes = pd.read_csv(split / f"{word}.csv.gz", header=None).to_numpy(dtype=np.int64).reshape(-1)
            if nodes.size and nodes.min() < 0:
                raise IndexError(f"node {nodes.min()}")
            row[0, nodes] = True
        except (OSError, ValueError, IndexError, EOFError, zlib.error) as problem:
            raise FileError(f"expected nodes in {split / word}.csv.gz, got {problem}; fetch them again") from None
    try:
        return Masks(*(found & (y >= 0)))
    except InvalidArgument as problem:
        raise FileError(f"{split}: {problem}") from None
