"""The node property sets of the Open Graph Benchmark (Hu et al., NeurIPS 2020), read with the package ogb.

ogb describes the sets and reads its raw files; its cache is a pickle, which is neither read nor written here: arrays
are cached in an npz file in the same folder. Nothing is downloaded, since ogb asks for confirmation on the keyboard.
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
from rdgraph.errors import FileError, MissingDependency, NotApplicable, UnknownName
from rdgraph.files import naming

PREFIX = "ogbn_"
#: The file of cached arrays in the folder processed.
CACHE = "rdgraph.npz"
ARRAYS = ("edges", "x", "y")
PARTS = {"train": "train", "val": "valid", "test": "test"}


def is_ogb(name: str) -> bool:
    """Whether a name is one of an ogb set.

    >>> is_ogb("ogbn-arxiv"), is_ogb("cora")
    (True, False)
    """
    return _plain(name).startswith(PREFIX)


def load_ogb(name: str, *, root: str | Path | None = None) -> NodeData:
    """Load a node property set of ogb with its split, directed as stored or undirected where ogb says so.

    Args:
        name: ogbn-arxiv, ogbn-products or ogbn-papers100M.
        root: The root folder of ogb, which contains ogbn_arxiv and so on; by default $RDGRAPH_DATA and the cache.

    Returns:
        The data; nodes without label are in no split.

    Raises:
        MissingDependency: Without ogb.
        UnknownName: For a name unknown to ogb.
        NotApplicable: For ogbn-proteins, which has many labels per node, and ogbn-mag, which has many kinds of nodes.
        FileError: For missing or wrong files.
    """
    key = _plain(name).replace("_", "-")
    facts = _facts(key)
    if facts["is hetero"] == "True" or int(facts["num tasks"]) != 1:
        what = "kinds of nodes" if facts["is hetero"] == "True" else "labels per node"
        raise NotApplicable(f"expected one kind of nodes with one label each, got {key}, which has many {what}")
    base = _folder(key, root)
    edges, x, y = _arrays(base, facts)
    with naming(base / "raw"):
        graph = Graph.from_edges(edges, len(y), duplicates="once")
    meta = Meta(
        key, title=f"{key} of the Open Graph Benchmark", split=f"{facts['split']} split of ogb",
        sources=((f"ogb {key} version {facts['version']}", "Hu et al., Open Graph Benchmark, NeurIPS 2020"),),
    )  # fmt: skip
    masks = _masks(base / "split" / facts["split"], y)
    return NodeData(**assemble(graph, x if x.shape[1] else None, y, masks, meta))


def _plain(name: str) -> str:
    return str(name).strip().replace("-", "_")


def _facts(name: str) -> Mapping[str, str]:
    """The description of a set in ogb: its format, its split, whether reversed edges are added."""
    try:
        import pandas as pd

        # Located without import, since importing the package loads other libraries.
        spec = find_spec("ogb")
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise MissingDependency(f"{name} needs the package ogb: pip install 'rdgraph[ogb]'")
    table = Path(spec.origin).parent / "nodeproppred" / "master.csv"
    known = pd.read_csv(table, index_col=0, keep_default_na=False)
    if name not in known:
        raise UnknownName("set of ogb", name, tuple(known))
    return {str(k): str(v) for k, v in known[name].items()}


def _folder(name: str, root: str | Path | None) -> Path:
    """The folder of a set, below the root, or its folder ogb."""
    copy = os.environ.get(VARIABLE)
    bases = [Path(root)] if root is not None else [*([Path(copy)] if copy else []), folder(None)]
    tried = [base / part / name.replace("-", "_") for base in bases for part in ("", "ogb")]
    existing = next((path for path in tried if (path / "raw").is_dir()), None)
    if existing is None:
        raise FileError(
            f"expected the files of {name} in {tried[0]}, got none; fetch them once with ogb, which asks before it "
            f"downloads: NodePropPredDataset({name!r}, root={str(bases[0])!r})"
        )
    return existing


def _arrays(base: Path, facts: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges (2, E), features (n, f), f = 0 for none, and labels (n,), from the cache or read by ogb."""
    cache = base / "processed" / CACHE
    newest = max((path.stat().st_mtime for path in (base / "raw").iterdir()), default=0.0)
    if cache.exists() and cache.stat().st_mtime >= newest:
        with suppress(FileError):  # a damaged cache is written again
            edges, x, y = read_arrays(cache, ARRAYS).values()
            return edges, x, y
    graph, labels = _read_raw(base / "raw", facts)
    values = np.asarray(labels, dtype=np.float64).reshape(-1)
    y = np.where(np.isnan(values), -1, values).astype(np.int64)
    features = graph["node_feat"]
    x = np.zeros((len(y), 0), np.float32) if features is None else np.asarray(features, dtype=np.float32)
    edges = np.ascontiguousarray(graph["edge_index"], dtype=np.int64)
    if int(graph["num_nodes"]) != len(y) or len(x) != len(y):
        raise FileError(f"expected a label for each of {graph['num_nodes']} nodes in {base}, got {len(y)}; fetch again")
    with suppress(OSError):  # without write access the raw files are read every time
        cache.parent.mkdir(exist_ok=True)
        draft = cache.with_suffix(".part.npz")
        np.savez(draft, edges=edges, x=x, y=y)
        draft.replace(cache)
    return edges, x, y


def _read_raw(raw: Path, facts: Mapping[str, str]) -> tuple[dict[str, Any], np.ndarray]:
    """The graph and the labels of the raw files, read by ogb with its output suppressed."""
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
    """ogb's reader of raw files, imported without the package outdated, which would check for newer versions online."""
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

    masks = np.zeros((3, 1, len(y)), dtype=bool)
    for row, word in zip(masks, PARTS.values(), strict=True):
        try:
            nodes = pd.read_csv(split / f"{word}.csv.gz", header=None).to_numpy(dtype=np.int64).reshape(-1)
            if nodes.size and nodes.min() < 0:
                raise IndexError(f"node {nodes.min()}")
            row[0, nodes] = True
        except (OSError, ValueError, IndexError, EOFError, zlib.error) as problem:
            raise FileError(f"expected nodes in {split / word}.csv.gz, got {problem}; fetch them again") from None
    with naming(split):
        return Masks(*(masks & (y >= 0)))
