"""The data sets available on this machine: their files, contents and statistics."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gread.datasets import download
from gread.datasets.sources import RemoteFile, canonical, datasets, embedded, entry
from rdgraph.errors import FileError, MissingDependency
from studies.runs.libraries import is_installed

if TYPE_CHECKING:  # these load numpy and scipy, which a list of the sets does not need
    from gread.datasets.facts import Facts, Twins
    from gread.datasets.node_data import NodeData


def all_names() -> tuple[str, ...]:
    """Names of all data sets: public ones in the order of the catalogue, those without files, and registered ones.

    >>> all_names()[0], all_names()[-1]
    ('texas', 'karate')
    """
    return tuple(datasets())


class LocalSets:
    """Data sets with files below `root`, each read and counted once; only `fetch` downloads.

    >>> LocalSets().facts("karate").edges
    78
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root
        self._data: dict[str, NodeData] = {}
        self._facts: dict[str, Facts] = {}
        self._twins: dict[str, Twins] = {}

    def named(self, name: str) -> str:
        """The name in the catalogue for a name given by a user; raises for unknown names."""
        return canonical(name)

    def folders(self) -> list[Path]:
        """The folders searched for files, in order."""
        copy = os.environ.get(download.VARIABLE) if self.root is None else None
        if copy and not Path(copy).is_dir():
            raise FileError(f"{download.VARIABLE} is {copy!r}, which is no folder; correct or unset it")
        try:
            cache = [download.folder(self.root)]
        except MissingDependency:  # without pooch there is only the copy
            cache = []
        return [Path(copy), *cache] if copy else cache

    def path(self, file: RemoteFile) -> Path | None:
        """Path of a file, not checked; None if it is missing."""
        return next((path for folder in self.folders() if (path := folder / file.key).is_file()), None)

    def is_available(self, name: str) -> bool:
        """Whether a set can be read without a download."""
        source = entry(name)
        if source.loader is None:
            return all(self.path(file) is not None for file in source.all_files)
        if source.library:
            return is_installed(source.library)
        try:
            self.read(name)
        except MissingDependency:  # its library is not installed
            return False
        return True

    def describe(self, name: str) -> dict[str, Any]:
        """Name, nodes, bytes, origin, availability and title of a data set."""
        source = entry(name)
        if source.loader is not None:
            here = self.is_available(name)
            nodes = (source.nodes or self.read(name).num_nodes) if here else 0
            state = "available" if here else "pip install 'rdgraph[gread]'"
            return {"name": name, "nodes": nodes, "bytes": 0, "from": source.origin, "state": state,
                    "title": source.title}  # fmt: skip
        paths = [self.path(file) for file in source.all_files]
        size = sum(file.bytes or 0 for file in source.all_files) or sum(p.stat().st_size for p in paths if p)
        count = sum(path is not None for path in paths)
        state = "available" if count == len(paths) else f"{count} of {len(paths)} files" if count else "to be fetched"
        return {
            "name": name,
            "nodes": source.nodes or 0,
            "bytes": size,
            "from": source.origin,
            "state": state,
            "title": source.title,
        }

    def fetch(self, name: str, *, offline: bool = False) -> int:
        """Number of files of a data set, after downloading them; 0 for a set without files."""
        return 0 if name in embedded() else len(download.fetch(name, root=self.root, offline=offline))

    def read(self, name: str) -> NodeData:
        """The set for statistics: undirected, with self-loops, all nodes, raw features and public splits."""
        if name not in self._data:
            from gread.datasets.loading import load_dataset
            from gread.datasets.variants import Variant

            # keep self-loops and small components
            variant = Variant(undirected=True, self_loops="keep", features="raw", component="all")
            self._data[name] = load_dataset(name, root=self.root, variant=variant, offline=True)
        return self._data[name]

    def facts(self, name: str) -> Facts:
        if name not in self._facts:
            from gread.datasets.facts import count

            self._facts[name] = count(self.read(name))
        return self._facts[name]

    def facts_or_none(self, name: str) -> Facts | None:
        """The facts of a set; None if it is not available or not in the catalogue."""
        return self.facts(name) if name in datasets() and self.is_available(name) else None

    def twins(self, name: str) -> Twins:
        if name not in self._twins:
            from gread.datasets.facts import find_twins

            self._twins[name] = find_twins(self.read(name))
        return self._twins[name]
