"""Checks of the available data sets: hashes of files, sizes, and known oddities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gread.datasets import download
from gread.datasets.facts import NO_SPLITS, WHOLE
from gread.datasets.sources import RemoteFile, entries, entry
from rdgraph.errors import RdgraphError
from studies.datasets.local_sets import LocalSets

#: Outcomes of a check.
GOOD, BAD, NOTE = "ok", "bad", "note"
#: Least share of test nodes with twins in the training set that is noted.
TWINS_NOTED = 0.05


@dataclass(frozen=True)
class DataCheck:
    """A check and its outcome."""

    name: str
    what: str
    status: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check(local: LocalSets, name: str) -> Iterator[DataCheck]:
    """All checks of an available data set; a set with a bad file is not read."""
    if name in entries():
        files = list(_files(local, name))
        yield from files
        if any(result.status == BAD for result in files):
            return
        yield _counts(local, name)
    yield from _oddities(local, name)


def _files(local: LocalSets, name: str) -> Iterator[DataCheck]:
    """One check for all good files, or one for each bad file."""
    files = entry(name).all_files
    wrong = [text for file in files if (text := wrong_with(local, name, file))]
    yield from (DataCheck(name, "file", BAD, text) for text in wrong)
    if not wrong:
        unknown = sum(file.sha256 is None for file in files)
        first = f", {unknown} of them recorded on this machine" if unknown else ""
        size = sum(path.stat().st_size for file in files if (path := local.path(file)))
        yield DataCheck(name, "files", GOOD, f"{len(files)} with {size:,} bytes, every sha256 as registered{first}")


def wrong_with(local: LocalSets, name: str, file: RemoteFile) -> str:
    """The problem with a local file, or ""."""
    try:
        if download.find(entry(name), file, root=local.root) is not None:
            return ""
    except RdgraphError as problem:
        return str(problem)
    return f"{file.key}: expected sha256 {file.sha256}, got other content; rdgraph data fetch {name} replaces it"


def _counts(local: LocalSets, name: str) -> DataCheck:
    """Check of nodes, edges, features and classes against the catalogue."""
    facts, known = local.facts(name), entry(name)
    pairs = {what: (getattr(known, what), getattr(facts, what)) for what in ("nodes", "edges", "features", "classes")}
    wrong = [f"{what}: expected {a:,}, got {b:,}" for what, (a, b) in pairs.items() if a not in (None, b)]
    text = "; ".join(wrong) or ", ".join(f"{b:,} {what}" for what, (_, b) in pairs.items())
    return DataCheck(name, "counts", BAD if wrong else GOOD, text)


def _oddities(local: LocalSets, name: str) -> Iterator[DataCheck]:
    """Notes on the data set, measured on the data."""
    facts, twins = local.facts(name), local.twins(name)
    if facts.coverage not in (WHOLE, NO_SPLITS):
        text = f"masks cover: {facts.coverage}; largest component {facts.component_nodes:,} of {facts.nodes:,} nodes"
        yield DataCheck(name, "splits", NOTE, text)
    if facts.unlabelled:
        yield DataCheck(name, "labels", NOTE, _unlabelled(local, name))
    if facts.empty_rows:
        yield DataCheck(name, "features", NOTE, f"{facts.empty_rows:,} of {facts.nodes:,} nodes have no feature at all")
    if twins.in_training >= TWINS_NOTED:
        text = (
            f"test nodes with a twin in training: {twins.in_training:.1%} (in the same class {twins.alike:.1%}, not a "
            f"leaf {twins.beyond_leaves:.1%})"
        )
        yield DataCheck(name, "twins", NOTE, text)
    other = next((n for n in entries() if n != name and local.is_available(n) and _same_nodes(local, name, n)), None)
    if other is not None:
        yield DataCheck(
            name, "copy", NOTE, f"every node has the features and label it has in {other}{_same_file(name, other)}"
        )


def _unlabelled(local: LocalSets, name: str) -> str:
    data = local.read(name)
    nodes = np.flatnonzero(data.y < 0)
    empty = int((abs(data.x[nodes]).sum(axis=1) == 0).sum())
    isolated = np.isin(nodes, data.graph.isolated).sum()
    return f"{nodes.size} nodes have no label, {empty} of them no features either, {isolated} of them no edge"


def _same_nodes(local: LocalSets, name: str, other: str) -> bool:
    """Whether two sets of the same size have the same features and labels."""
    known, theirs = entries().get(name), entries()[other]
    if known is None or (known.nodes, known.features) != (theirs.nodes, theirs.features):
        return False
    try:
        a, b = local.read(name), local.read(other)
    except download.DownloadError:  # the other set is damaged, which its own check reports
        return False
    return bool(np.array_equal(a.y, b.y) and (abs(a.x - b.x)).sum() == 0)


def _same_file(name: str, other: str) -> str:
    """The files of two sets that are equal byte for byte, by their hashes."""
    theirs = {file.sha256: file.path for file in entry(other).files if file.sha256}
    equal = [(file.path, theirs[file.sha256]) for file in entry(name).files if file.sha256 in theirs]
    return "".join(f"; {ours} is byte for byte {copy}" for ours, copy in equal)
