"""Input that is too large, or not what it says, is refused at once and with words; what is merely unusual works."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp
import torch
from scipy.sparse import coo_array, csc_array, csr_array

import rdgraph as rd
from gread import GREADConv
from gread.datasets.checks import read_features
from gread.datasets.npz import KEYS, check_npz
from rdgraph.errors import FileError, InvalidArgument, NotApplicable
from rdgraph.graphs.edges import MAX_NODES
from rdgraph.graphs.normalisation import dense_operator, sparse_operator
from rdgraph.language.normal_form import Act
from rdgraph.language.size_limits import MAX_DEGREE, degree

OP = rd.generators.path(4).operator("row", dtype=torch.float64)


def rate(text: str, **options: Any) -> list[float]:
    field = rd.lower(rd.parse(text, **options), OP, {})
    return field(0.0, torch.ones(4, 1, dtype=torch.float64)).ravel().tolist()


# ---------------------------------------------------------------------- equations
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(((A**32)**32)**32)@H", "at most 128 operators .* got 32768; lower the powers"),
        ("((A**32)**4)@A@H", "got 129"),
        ("((A**32)**4)@tanh(A@H)", "got 129"),
        ("H + (((I - A)**32)**32)@H", "got 1024"),
        ("(((9999999999**32)**32)**32)*H", "more than 4000 bits"),
        ("1e30**11*H", "double precision"),
        ("exp(1000)*H", "double precision"),
        ("sqrt(-1)*H", r"in \[0, oo\), got sqrt\(-1\)"),
        ("sqrt(-2)*H*sqrt(-2)", r"got sqrt\(-2\)"),
        ("tanh(sqrt(1 - 2))*H", r"in \[0, oo\)"),
    ],
)
def test_equations_too_large_or_not_real_are_refused_at_once(text: str, words: str) -> None:
    start = time.process_time()
    with pytest.raises(NotApplicable, match=words):
        rate(text)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("H**32*H**32 - L@H", 64),
        ("((H**32)**32)**32", 32768),
        ("1/(1 + H**2) + 1/(1 + H**2)", 2),
        ("1/(1 + H**2) + 1/(2 + H**2)", 4),
        ("H**3/(1 + H**2)/(1 + H**2)", 4),
        ("(1 + H**2)**-30", 60),
        ("1/(1 + 1/(1 + 1/H))", 1),
        ("(H/(1 + H))**20 - H**5", 25),
        ("alpha*H*(A@H)**2", 4),
        ("(A**32)@H", 1),
    ],
)
def test_the_degree_bounds_numerator_and_denominator(text: str, expected: int) -> None:
    system = rd.parse(text)
    bound = degree(system.expression)
    assert bound == expected
    if bound <= MAX_DEGREE:
        normal = system.algebra.normal(system.expression)
        averages = {atom: sp.Dummy() for atom in normal.atoms(Act)}
        parts = sp.fraction(sp.together(normal.xreplace(averages)))
        assert max(sp.Poly(part, *part.free_symbols, sp.Dummy()).total_degree() for part in parts) <= bound


def test_degrees_up_to_the_limit_have_a_normal_form() -> None:
    below, above = f"H**{MAX_DEGREE % 32}*(H**32)**{MAX_DEGREE // 32}", "H"
    assert rd.parse(below).normal
    with pytest.raises(NotApplicable, match=f"the degree {MAX_DEGREE + 1} exceeds {MAX_DEGREE}"):
        _ = rd.parse(f"{below}*{above}").normal
    assert rate(f"{below}*{above}") == [1.0] * 4  # the flow needs no normal form


def test_roots_that_are_not_real_have_no_normal_form_either() -> None:
    for text in ("sqrt(-1)*H", "sqrt(-2)*H*sqrt(-2)", "sqrt(alpha - alpha - 1)*H"):
        with pytest.raises(NotApplicable, match=r"in \[0, oo\)"):
            _ = rd.parse(text).structure
    assert rd.parse("sqrt(alpha)*sqrt(alpha)*H").symbol() == rd.parse("alpha*H").symbol()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("((A**32)**4)@H", 1.0),
        ("(A**32)@H", 1.0),
        ("1234567890123456789012345678901234567890*H", 1.2345678901234568e39),
        ("9007199254740993*H", 9007199254740993.0),
        ("-0.1234567890123456789012345678901234567890*H", -0.12345678901234568),
        ("1e30**10*H", 1e300),
        ("sqrt(2)*H*sqrt(2)", 2.0),
        ("sqrt(0)*H + H", 1.0),
    ],
)
def test_large_numbers_and_powers_within_the_limits_work(text: str, value: float) -> None:
    assert rate(text) == pytest.approx([value] * 4, rel=1e-14)


# ---------------------------------------------------------------------- graphs
def test_a_large_number_of_nodes_is_named() -> None:
    far = [[0], [MAX_NODES - 1]]
    with pytest.raises(
        InvalidArgument, match=rf"whose largest node is {MAX_NODES - 1}, got none; pass num_nodes={MAX_NODES}"
    ):
        rd.Graph.from_edges(far)
    start = time.process_time()
    assert rd.Graph.from_edges(far, num_nodes=MAX_NODES).edge_index.tolist() == far
    assert time.process_time() - start < 2
    assert rd.Graph.from_edges([[0], [9_999_999]]).num_nodes == 10**7
    with pytest.raises(InvalidArgument, match="num_nodes=10000001"):
        rd.Graph.from_edges([[0], [10**7]])


@pytest.mark.parametrize("kind", ["symmetric", "row", "column", "none"])
def test_weights_whose_sums_overflow_are_refused(kind: str) -> None:
    graph = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[1e308] * 4)
    with pytest.raises(InvalidArgument, match="infinite degree at node 1; divide all weights by the largest"):
        graph.operator(kind)
    with pytest.raises(InvalidArgument, match="infinite degree at node 1"):
        _ = graph.degree
    if kind != "none":
        with pytest.raises(InvalidArgument, match="infinite degree at node 1"):
            dense_operator(graph, kind)
        large = rd.Graph.from_edges(graph.edge_index, weight=[5e307] * 4).operator(kind, dtype=torch.float64)
        torch.testing.assert_close(large.dense(), rd.generators.path(3).operator(kind, dtype=torch.float64).dense())


def test_weights_beyond_the_precision_of_an_operator_are_refused() -> None:
    graph = rd.Graph.from_edges([[0, 1], [1, 0]], weight=[1e300, 1e300])
    with pytest.raises(InvalidArgument, match=r"torch\.float32 holds"):
        graph.operator("none", dtype=torch.float32)
    assert graph.operator("none", dtype=torch.float64).degree.ravel().tolist() == [1e300, 1e300]
    layer = GREADConv(2, "diffusion", adjacency="original", normalisation="row")
    for wrong in (3e38, float("nan")):
        with pytest.raises(InvalidArgument, match=r"finite weights .* torch\.float32"):
            layer(torch.ones(2, 2), torch.tensor([[0, 1], [1, 0]]), torch.full((2,), wrong))


def broken(kind: str) -> Any:
    matrix = (csc_array if kind.endswith("csc") else csr_array)(
        np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    )
    match kind.split()[0]:
        case "index":
            matrix.indices[0] = 99
        case "negative":
            matrix.indices[0] = -1
        case "pointer":
            matrix.indptr[1] = 50
        case "falling":
            matrix.indptr[1], matrix.indptr[2] = 3, 1
        case "last":
            matrix.indptr[-1] = 7
    return matrix


@pytest.mark.parametrize(
    "kind", [f"{a} {b}" for a in ("index", "negative", "pointer", "falling", "last") for b in ("csr", "csc")]
)
def test_broken_sparse_matrices_are_refused(kind: str) -> None:
    for read in (rd.Graph.from_scipy, sparse_operator, dense_operator, read_features):
        with pytest.raises(
            InvalidArgument, match=r"in the (adjacency matrix|features), got .*; build the sparse matrix again"
        ):
            read(broken(kind))


def test_coordinates_out_of_range_are_refused() -> None:
    matrix = coo_array((np.ones(1), ([0], [1])), shape=(2, 2))
    matrix.coords[0][0] = 5
    with pytest.raises(InvalidArgument, match=r"expected rows in 0\.\.1 in the adjacency matrix, got 5\.\.5"):
        rd.Graph.from_scipy(matrix)


# ---------------------------------------------------------------------- archives
ENTRY = SimpleNamespace(nodes=4, features=3, edges=2, classes=2, counts="published")
SHAPES = {"node_features": (4, 3), "node_labels": (4,), "edges": (2, 2), **dict.fromkeys(KEYS[3:], (2, 4))}


def archive(path: Path, **changed: Any) -> Path:
    """An archive of zeros; a change is a shape, or (a shape in the header, what follows it)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for key, shape in (SHAPES | changed).items():
            header, data = shape if isinstance(shape[-1], bytes) else (shape, bytes(8 * int(np.prod(shape))))
            content = io.BytesIO()
            np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": header})
            made.writestr(f"{key}.npy", content.getvalue() + data)
    return path


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"node_features": ((400_000_000, 3), b"")}, "cannot be read"),
        ({"node_features": (1000, 3)}, "not the published one"),
        ({"edges": (10**6, 2)}, "not the published one"),
        ({"train_masks": (101, 4), "val_masks": (101, 4), "test_masks": (101, 4)}, "not the published one"),
        ({"node_labels": ((4,), bytes(10**6))}, "cannot be read"),
        ({"node_labels": ((), bytes(8))}, "not the published one"),
    ],
)
def test_an_archive_that_declares_other_sizes_is_not_read(tmp_path, monkeypatch, changed, words) -> None:
    """Neither the header's promise is allocated nor the archive's content unpacked."""

    def refuse(*_: Any) -> None:
        raise AssertionError("read")

    monkeypatch.setattr("gread.datasets.npz.read_arrays", refuse)
    with pytest.raises(FileError, match=words):
        check_npz(archive(tmp_path / "bomb.npz", **changed), ENTRY)


def test_an_archive_of_the_right_sizes_is_read_and_its_content_checked(tmp_path) -> None:
    with pytest.raises(FileError, match=r"got \(4, 3, 2, 1\)"):
        check_npz(archive(tmp_path / "zeros.npz"), ENTRY)
    (tmp_path / "text.npz").write_bytes(b"no archive")
    with pytest.raises(FileError, match="cannot be read"):
        check_npz(tmp_path / "text.npz", ENTRY)
