"""Pickles of data sets, which may hold plain arrays alone."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.datasets.loading import read_webkb
from gread.datasets.npz import read_arrays
from gread.datasets.planetoid import loads, read_planetoid
from rdgraph.errors import FileError


class Call:
    """Pickles as the call of a function."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def array_text(
    code: str, content: str, shape: tuple[int, ...] = (2,), order: str = "<", fortran: bool = False
) -> bytes:
    """A pickled array as Python 2 and the numpy of that time wrote it."""
    parts = [
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n",
        pickle.dumps((0,), 2)[2:-1].replace(b"q\x00", b"") + b"U\x01b\x87R",
        b"(K\x01" + pickle.dumps(shape, 2)[2:-1],
        b"cnumpy\ndtype\nU" + bytes([len(code)]) + code.encode() + b"K\x00K\x01\x87R",
        b"(K\x03U\x01" + order.encode() + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
        b"\x89" if not fortran else b"\x88",
        b"U" + bytes([len(content)]) + content.encode("latin1") + b"tb.",
    ]
    return b"".join(parts)


def test_arrays_of_old_pickles_are_read() -> None:
    assert loads(array_text("i4", "\x01\0\0\0\x02\0\0\0")).tolist() == [1, 2]
    assert loads(array_text("i4", "\0\0\0\x01\0\0\0\x02", order=">")).tolist() == [1, 2]
    square = array_text("u1", "\x01\x02\x03\xff", (2, 2), order="|", fortran=True)
    assert loads(square).tolist() == [[1, 3], [2, 255]]
    assert loads(b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00]K\x01au.") == {0: [1]}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "evil",
    [
        lambda trace: Call(os.system, f"touch {trace}"),
        lambda trace: Call(eval, f"open({str(trace)!r}, 'w')"),
        lambda trace: Call(getattr, Call(__import__, "os"), "system"),
        lambda trace: Call(Path.touch, trace),
        lambda trace: {0: [Call(os.mkdir, str(trace))]},
    ],
)
def test_a_planted_call_is_refused_without_effect(evil: Any, protocol: int, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    content = pickle.dumps(evil(trace), protocol)
    with pytest.raises(
        FileError,
        match=r"got [\w.]+\.(system|eval|getattr|__import__|touch|mkdir|PosixPath|_unpickle_path|Path); do not use it",
    ):
        loads(content)
    assert not trace.exists()


@pytest.mark.parametrize(
    "name",
    [
        "numpy.testing._private.utils\nrunstring", "numpy.testing\nrunstring", "numpy\nload", "numpy\nfromfile",
        "numpy\nmemmap", "numpy\nsave", "scipy.sparse\nload_npz", "scipy.sparse.csr\n__builtins__", "builtins\nlist",
        "numpy\ncore.multiarray._reconstruct", "collections\nOrderedDict", "__builtin__\napply", "_codecs\nencode",
    ],
)  # fmt: skip
def test_only_the_names_the_files_need_are_admitted(name: str) -> None:
    with pytest.raises(FileError, match="do not use it"):
        loads(b"\x80\x02c" + name.encode() + b"\nU\x01x\x85R.")
    with pytest.raises(FileError, match="do not use it"):
        loads(b"\x80\x04" + b"".join(b"\x8c" + bytes([len(p)]) + p.encode() for p in name.split("\n")) + b"\x93.")


@pytest.mark.parametrize("code", ["O", "O8", "V8", "S8", "M8", "f8,O", "object"])
def test_arrays_of_objects_are_refused(code: str) -> None:
    with pytest.raises(FileError, match="array of kind"):
        loads(array_text(code, "\0" * 16))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "cannot be read"),
        (array_text("i4", "\0" * 7), "cannot be read"),
        (array_text("i4", "\0" * 8)[:-9], "cannot be read"),
        (pickle.dumps({0: ["x"]}, 2), "got dict"),
        (pickle.dumps({"0": [1]}, 2), "got dict"),
        (pickle.dumps([1], 2), "got list"),
        (b"\x80\x02cnumpy\nndarray\n.", "got type"),
        (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nc__builtin__\nlist\nK\x00\x85U\x01b\x87R.", "another class"),
        (b"\x80\x02U\x01xQ.", "persistent"),
    ],
)
def test_other_content_is_refused(content: bytes, text: str) -> None:
    with pytest.raises(FileError, match=text):
        loads(content)


def test_npz_that_claims_more_than_any_memory_holds_is_refused(tmp_path: Path) -> None:
    header = io.BytesIO()
    claims = {"descr": "<f8", "fortran_order": False, "shape": (1 << 57,)}
    np.lib.format.write_array_header_1_0(header, claims)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("edges.npy", header.getvalue() + bytes(64))
    with pytest.raises(FileError, match="plain arrays"):
        read_arrays(tmp_path / "a.npz", ["edges"])


def test_npz_with_objects_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    np.savez(tmp_path / "a.npz", edges=np.array([Call(Path.touch, trace)], dtype=object), y=np.arange(2))
    with pytest.raises(FileError, match="plain arrays"):
        read_arrays(tmp_path / "a.npz", ["edges"])
    with pytest.raises(FileError, match="none named x"):
        read_arrays(tmp_path / "a.npz", ["x", "y"])
    assert not trace.exists()


def bytes_of(values: list[int]) -> str:
    return np.array(values, "<i4").tobytes().decode("latin1")


def rows_text(values: list[int], columns: list[int], starts: list[int], width: int) -> bytes:
    """A pickled csr_matrix of that time."""
    parts = {"data": values, "indices": columns, "indptr": starts}
    pairs = [
        b"U" + bytes([len(key)]) + key.encode() + array_text("i4", bytes_of(part), (len(part),))[2:-1]
        for key, part in parts.items()
    ]
    shape = b"U\x06_shapeK" + bytes([len(starts) - 1]) + b"K" + bytes([width]) + b"\x86"
    return b"\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + b"".join(pairs) + shape + b"ub."


def planetoid_files(folder: Path, test: str) -> list[Path]:
    """Nodes 0 and 1, then test rows for the numbers given; node 1 has no class."""
    content = {
        "allx": rows_text([7, 8], [0, 1], [0, 1, 2], 9),
        "ally": array_text("i4", bytes_of([0, 1, 0, 0]), (2, 2)),
        "tx": rows_text([5, 6, 9], [2, 0, 8], [0, 1, 3], 9),
        "ty": array_text("i4", bytes_of([1, 0, 0, 1]), (2, 2)),
        "graph": b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00](K\x01K\x04eu.",
        "test.index": test.encode(),
    }
    for key, text in content.items():
        (folder / f"ind.tiny.{key}").write_bytes(text)
    return [folder / f"ind.tiny.{key}" for key in content]


def test_planetoid_rows_go_to_their_nodes_and_gaps_stay_empty(tmp_path: Path) -> None:
    data = read_planetoid(planetoid_files(tmp_path, "4\n2\n"))
    expected = np.zeros((5, 9))
    expected[[0, 1, 4, 2, 2], [0, 1, 2, 0, 8]] = [7, 8, 5, 6, 9]
    assert np.array_equal(data.x.toarray(), expected)
    assert data.y.tolist() == [1, -1, 1, -1, 0]
    assert data.edges.tolist() == [[0, 0], [1, 4]]


@pytest.mark.parametrize("test", ["4\n4\n", "3\n4\n", "1\n2\n", "2\n3\n4\n"])
def test_planetoid_files_that_do_not_fit_are_refused(tmp_path: Path, test: str) -> None:
    with pytest.raises(FileError, match="expected the test nodes to follow the 2 other nodes"):
        read_planetoid(planetoid_files(tmp_path, test))


def test_text_files_are_read_by_node_number_and_checked(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "edges.txt", tmp_path / "nodes.txt"
    edges.write_text("node_id\tnode_id\n0\t1\n1\t1\n")
    nodes.write_text("node_id\tfeature\tlabel\n1\t0,1\t3\n0\t1,1\t2\n")
    data = read_webkb([edges, nodes])
    assert (data.edges.tolist(), data.x.tolist(), data.y.tolist()) == ([[0, 1], [1, 1]], [[1, 1], [0, 1]], [2, 3])
    for text, error in (("\n0\t1,1\t2\n0\t1,1\t2\n", "once"), ("\n0\t1\n", "every line"), ("!\n", "the heading")):
        nodes.write_text("node_id\tfeature\tlabel" + text)
        with pytest.raises(FileError, match=error):
            read_webkb([edges, nodes])
