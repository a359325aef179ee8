"""Files that are written whole, bundles that verify themselves, and signals that wait."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, lil_array

from gread.datasets.checks import read_features
from gread.datasets.node_data import NodeData
from gread.models.bundle import Bundle, load_bundle, save_bundle
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, RdgraphError
from rdgraph.files import drafting, read_bytes, read_text, replacing, write_text
from rdgraph.graphs.matrix_formats import make_csr
from rdgraph.interrupts import patient, terminable
from tests.property_examples import examples

KIND, WHAT = "test bundle 1", "a bundle"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


# ---------------------------------------------------------------------- whole or not at all
def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """Names that earlier versions wrote to, as links to somebody's letter."""
    letter = tmp_path / "letter.txt"
    letter.write_text("dear")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (".state.part", ".state.txt.part", f".state.{os.getpid()}.part", "state.txt"):
        (folder / name).symlink_to(letter)
    write_text(folder / "state.txt", "running")
    assert letter.read_text() == "dear"
    assert (folder / "state.txt").read_text() == "running"
    assert not (folder / "state.txt").is_symlink()


def test_drafts_have_names_nobody_can_guess_and_must_be_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for _ in range(2):
        with drafting(tmp_path / "a.txt") as draft:
            seen.append(draft.name)
    assert seen[0] != seen[1]
    assert names(tmp_path) == []
    monkeypatch.setattr("secrets.token_hex", lambda count: "0" * 16)
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".0000000000000000.part.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(FileError, match=r"cannot write .*a\.txt: File exists"):
        write_text(tmp_path / "a.txt", "other")
    assert (tmp_path / "victim").read_text() == "mine"


def test_files_have_the_rights_the_user_gives_to_new_ones(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("durable", [True, False])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    write_text(tmp_path / "a.txt", "old", durable=durable)

    def full(self: Path, *_: Any, **__: Any) -> None:
        self.write_bytes(b"ne")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(FileError, match=r"a\.txt: No space left on device; make room, or choose another folder"):
        write_text(tmp_path / "a.txt", "new", durable=durable)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_errors_that_are_no_files_pass_through(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a.txt") as draft:
        draft.write_text(str(1 / 0))
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "needle"),
    [
        (None, r"expected a letter in .*a\.txt, got a file that cannot be read \(No such file or directory\)"),
        (b"abc\xff", "expected a letter in UTF-8 in .*, got byte 0xff at position 3; save it as UTF-8"),
    ],
)
def test_texts_that_cannot_be_read(tmp_path: Path, content: bytes | None, needle: str) -> None:
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
        assert read_bytes(tmp_path / "a.txt", "a letter") == content
    with pytest.raises(FileError, match=needle) as caught:
        read_text(tmp_path / "a.txt", "a letter")
    assert isinstance(caught.value, OSError | RdgraphError)
    with pytest.raises(FileError, match="Is a directory"):
        read_text(tmp_path, "a letter")


# ---------------------------------------------------------------------- bundles
WORDS = {"epochs": 200, "rate": 0.1, "names": ["a", "b"], "nothing": None}
NUMBERS = {"x": torch.arange(6.0).reshape(2, 3), "step": torch.tensor(7)}


def save(folder: Path, words: dict[str, Any] | None = None, numbers: dict[str, torch.Tensor] | None = None) -> None:
    save_bundle(folder / "b.json", KIND, WORDS if words is None else words, NUMBERS if numbers is None else numbers)


def load(folder: Path) -> Bundle:
    return load_bundle(folder / "b.json", KIND, WHAT)


def is_saved(found: Bundle) -> bool:
    same = found.words == WORDS and set(found.numbers) == set(NUMBERS)
    return same and all(torch.equal(found.numbers[k], v) for k, v in NUMBERS.items())


def test_a_bundle_comes_back_and_replaces_the_one_before(tmp_path: Path) -> None:
    save(tmp_path, {"first": 1}, {"x": torch.zeros(2)})
    (tmp_path / "b-notes.safetensors").write_text("mine")
    save(tmp_path)
    assert is_saved(load(tmp_path))
    (part,) = tmp_path.glob("b-????????????????.safetensors")
    assert names(tmp_path) == sorted([part.name, "b-notes.safetensors", "b.json"])


def test_a_save_that_is_cut_off_leaves_the_old_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at every file that a save makes, one after the other."""
    save(tmp_path)
    before = names(tmp_path)
    real = os.open
    for count in range(2):
        made = [0]

        def refuse(path: Any, flags: int, *rest: Any, count: int = count, made: list[int] = made) -> int:
            if flags & os.O_CREAT:
                made[0] += 1
                if made[0] > count:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(path, flags, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refuse)
            with pytest.raises(FileError, match="No space left"):
                save(tmp_path, {"second": 2}, {"x": torch.ones(5)})
        assert is_saved(load(tmp_path))
    save(tmp_path)
    assert names(tmp_path) == before


def test_parts_of_two_saves_are_not_mixed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    save(one)
    save(two, {"epochs": 800}, {"x": torch.ones(2, 3), "step": torch.tensor(7)})
    (mine,), (theirs,) = (list(folder.glob("*.safetensors")) for folder in (one, two))
    (one / "b.json").write_bytes((two / "b.json").read_bytes())
    with pytest.raises(FileError, match=r"expected the numbers of a bundle in .*cannot be read \(No such file"):
        load(one)
    mine.rename(one / theirs.name)
    with pytest.raises(FileError, match=r"the numbers of a bundle in .* were changed"):
        load(one)


@pytest.mark.parametrize(
    ("change", "needle"),
    [
        (lambda body: body["words"].update(epochs=800), "was changed"),
        (lambda body: body["words"].pop("epochs"), "was changed"),
        (lambda body: body.pop("sha256"), "was changed"),
        (lambda body: body.update(sha256=None), "was changed"),
        (lambda body: body.update(more=1), "was changed"),
        (lambda body: body.update(numbers="../../../etc/passwd"), "was changed"),
        (lambda body: body.update(format="test bundle 2"), "of the format 'test bundle 1' in .*, got the format"),
        (lambda body: body.pop("format"), "got a file without one"),
    ],
)
def test_a_manifest_that_was_edited_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], needle: str
) -> None:
    save(tmp_path)
    body = json.loads((tmp_path / "b.json").read_text())
    change(body)
    (tmp_path / "b.json").write_text(json.dumps(body))
    with pytest.raises(FileError, match=needle):
        load(tmp_path)


def test_a_manifest_may_be_laid_out_otherwise(tmp_path: Path) -> None:
    save(tmp_path)
    body = json.loads((tmp_path / "b.json").read_text())
    (tmp_path / "b.json").write_text(json.dumps(dict(reversed(body.items())), indent=None))
    assert is_saved(load(tmp_path))


@pytest.mark.parametrize("text", ["[" * 100_000, "null", "3", '"text"', '{"format": 1e999}', "1" * 10_000])
def test_json_that_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(FileError, match="a bundle"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"\xff" * 8, b"\x10" + b"\0" * 7 + b'{"x": 3}' + b" " * 8])
def test_numbers_that_are_no_safetensors(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes fit, since the file was crafted with them."""
    monkeypatch.setattr("safetensors.torch.save", lambda tensors: content)
    save(tmp_path)
    with pytest.raises(FileError, match="got a file that is no safetensors"):
        load(tmp_path)


#: Which byte, counted around the file.
PLACE = st.integers(0, 10**6)
DAMAGE = st.one_of(
    st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
    st.tuples(st.just("cut"), PLACE, st.just(0)),
    st.tuples(st.just("byte"), PLACE, st.integers(0, 255)),
    st.tuples(st.just("add"), PLACE, st.integers(0, 255)),
)


def damaged(content: bytes, kind: str, place: int, value: int) -> bytes:
    k = place % len(content)
    match kind:
        case "flip":
            return content[:k] + bytes([content[k] ^ (1 << value)]) + content[k + 1 :]
        case "cut":
            return content[:k]
        case "byte":
            return content[:k] + bytes([value]) + content[k + 1 :]
    return content[:k] + bytes([value]) + content[k:]


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=st.lists(DAMAGE, min_size=1, max_size=3), in_words=st.booleans())
def test_damage_is_refused_or_does_no_harm(tmp_path: Path, damages: list[tuple[str, int, int]], in_words: bool) -> None:
    """A damaged file gives the same bundle or an error of the package."""
    save(tmp_path)
    (numbers,) = tmp_path.glob("*.safetensors")
    path = tmp_path / "b.json" if in_words else numbers
    content = path.read_bytes()
    for damage in damages:
        content = damaged(content, *damage) if content else content
    path.write_bytes(content)
    with suppress(FileError):
        assert is_saved(load(tmp_path))
    path.unlink(missing_ok=True)


# ---------------------------------------------------------------------- sparse matrices from outside
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array([1.0, 2.0, 3.0]), np.array([0, 2, 1]), np.array([0, 1, 3])


def broken(kind: type, change: Callable[[Any], object]) -> Any:
    matrix = kind(csr_array(arrays(), shape=(2, 3)))
    change(matrix)
    return matrix


BROKEN = [
    broken(csr_array, lambda m: m.indices.__setitem__(1, 3)),
    broken(csr_array, lambda m: m.indices.__setitem__(1, -1)),
    broken(csr_array, lambda m: m.indptr.__setitem__(1, 5)),
    broken(csr_array, lambda m: m.indptr.__setitem__(0, 1)),
    broken(csr_array, lambda m: m.indptr.__setitem__(2, 9)),
    broken(csr_array, lambda m: setattr(m, "indptr", m.indptr[:-1])),
    broken(csr_array, lambda m: setattr(m, "data", m.data[:-1])),
    broken(csr_array, lambda m: setattr(m, "indices", m.indices.astype(float))),
    broken(csc_array, lambda m: m.indices.__setitem__(0, 2)),
    broken(csc_array, lambda m: m.indptr.__setitem__(1, 7)),
    broken(bsr_array, lambda m: m.indices.__setitem__(0, 9)),
    broken(coo_array, lambda m: m.coords[1].__setitem__(0, 3)),
    broken(coo_array, lambda m: setattr(m, "data", m.data[:-1])),
]


@pytest.mark.parametrize("matrix", BROKEN, ids=lambda m: m.format)
def test_matrices_that_point_outside_are_refused(matrix: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"in the features, got .*; build the sparse matrix again"):
        read_features(matrix)
    with pytest.raises(InvalidArgument, match="in the features"):
        NodeData.from_scipy(csr_array([[0, 1], [1, 0]]), matrix, [0, 1])


def test_adjacencies_that_point_outside_are_refused() -> None:
    matrix = csr_array(([1.0, 1.0], [1, 0], [0, 1, 2]), shape=(2, 2))
    assert Graph.from_scipy(matrix).num_edges == 2
    matrix.indices[0] = 10**6
    with pytest.raises(InvalidArgument, match=r"expected columns in 0\.\.1 in the adjacency matrix, got 0\.\.1000000"):
        Graph.from_scipy(matrix)


@pytest.mark.parametrize("kind", [csr_array, csc_array, bsr_array, coo_array, lil_array])
def test_sound_matrices_of_every_format_are_read(kind: type) -> None:
    dense = np.array([[1.0, 0.0, 0.0], [0.0, 3.0, 2.0]])
    assert np.array_equal(read_features(kind(dense)).toarray(), dense)
    assert read_features(kind((0, 3))).shape == (0, 3)


def test_room_after_the_last_entry_is_no_damage() -> None:
    """scipy allows arrays that are longer than indptr says; a file has no reason to."""
    data, indices, indptr = arrays()
    longer = (np.append(data, np.nan), np.append(indices, 99), indptr)
    found = read_features(csr_array(longer, shape=(2, 3)))
    assert np.array_equal(found.toarray(), csr_array(arrays(), shape=(2, 3)).toarray())
    with pytest.raises(InvalidArgument, match="expected no more than the 3 entries of indptr in x, got 4"):
        make_csr(*longer, (2, 3), "x")


# ---------------------------------------------------------------------- signals
def test_the_first_signal_waits_and_the_second_acts() -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt), patient(lambda: told.append("waits")) as interruption:  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        assert interruption.is_waiting
        told.append("goes on")
        signal.raise_signal(signal.SIGINT)
        told.append("too far")
    assert told == ["waits", "goes on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("asks", [True, False])
def test_a_waiting_signal_is_heard_when_asked_or_at_the_end(asks: bool) -> None:
    done: list[str] = []

    def work() -> None:
        with patient() as interruption:
            signal.raise_signal(signal.SIGINT)
            if asks:
                interruption.hear()
            done.append("worked")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ([] if asks else ["worked"])
    with patient() as interruption:
        interruption.hear()  # nothing waits


def test_signals_that_end_the_process_or_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with terminable(), patient() as interruption:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
            assert not interruption.is_waiting
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("later", [signal.SIGINT, signal.SIGTERM])
def test_tidying_up_is_not_interrupted_again(later: signal.Signals) -> None:
    done: list[str] = []

    def work() -> None:
        with terminable():
            try:
                signal.raise_signal(signal.SIGTERM)
                done.append("too far")
            finally:
                signal.raise_signal(later)
                done.append("tidy")

    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        work()
    assert done == ["tidy"]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
