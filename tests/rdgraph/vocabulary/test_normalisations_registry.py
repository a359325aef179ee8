"""Records of normalisations: what they claim is true, and one that comes from outside goes all the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sympy as sp
import torch
from scipy.sparse import csr_array
from typer.testing import CliRunner

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.normalisation import dense_operator, sparse_operator
from rdgraph.vocabulary.normalisations import NORMALISATIONS, check_claims, find_normalisation, records

F64 = torch.float64


def lazy(w: Any, own: Any, other: Any, column: Any) -> Any:
    """(I + D^-1/2 A D^-1/2)/2, without the identity."""
    return w / (2 * own**0.5 * other**0.5)


@pytest.fixture
def lazy_walk() -> Iterator[None]:
    facts: dict[str, Any] = {"is_symmetric": True, "norm": "2", "spectrum": (0, 1)}
    rd.register_normalisation("lazy", lazy, identity=0.5, formula="(I + D^-1/2 A D^-1/2)/2", **facts)
    yield
    rd.vocabulary.unregister_normalisation("lazy")


# ---------------------------------------------------------------------- the records
def test_the_facts_of_the_built_in_ones_hold() -> None:
    assert list(NORMALISATIONS) == ["symmetric", "row", "column", "none"]
    for name in NORMALISATIONS:
        check_claims(find_normalisation(name))
    with pytest.raises(UnknownName, match="did you mean 'symmetric'"):
        find_normalisation("symetric")


@pytest.mark.parametrize("name", ["symmetric", "row", "column", "none"])
def test_the_weights_are_the_textbook_matrices(name: str) -> None:
    rng = np.random.default_rng(1)
    w = np.triu(rng.uniform(0.5, 2, (7, 7)) * (rng.random((7, 7)) < 0.6), 1)
    w = w + w.T
    w[6] = w[:, 6] = 0.0
    d = np.diag(np.where(w.sum(1) > 0, w.sum(1), 1.0))
    half = np.diag(np.diag(d) ** -0.5)
    expected = {"symmetric": half @ w @ half, "row": np.linalg.inv(d) @ w, "column": w @ np.linalg.inv(d), "none": w}
    assert np.allclose(dense_operator(w, name), expected[name], atol=1e-14)
    assert np.allclose(sparse_operator(csr_array(w), name).toarray(), expected[name], atol=1e-14)


@pytest.mark.parametrize(
    ("entry", "facts", "claim"),
    [
        (lazy, {"identity": 0.5, "row_stochastic": True}, "rows that sum to 1"),
        (lazy, {"identity": 0.5, "norm": "inf"}, "inf-norm"),
        (lazy, {"identity": 0.5, "is_symmetric": True, "spectrum": (0, 0.5)}, r"eigenvalues of L in \[0, 0.5\]"),
        (lambda w, own, other, column: w / own, {"is_symmetric": True}, "A = A\\^T"),
        (lambda w, own, other, column: w / own, {"column_stochastic": True}, "columns that sum to 1"),
        (lambda w, own, other, column: w / own, {"norm": "1"}, "1-norm"),
        (lambda w, own, other, column: w / (own - own), {}, "finite entries"),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid):RuntimeWarning")
def test_a_false_claim_is_refused_with_a_graph(entry: Any, facts: dict[str, Any], claim: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{claim}.*On the graph with the weights \\[\\["):
        rd.register_normalisation("wrong", entry, **facts)
    assert "wrong" not in records


@pytest.mark.parametrize(
    ("name", "entry", "facts", "text"),
    [
        ("row", lazy, {}, "taken by another normalisation"),
        ("free", lazy, {}, "taken by another normalisation"),
        ("a b", lazy, {}, "letters, digits"),
        ("mine", lazy, {"norm": "3"}, "a norm among"),
        ("mine", lambda w: w, {}, "plain arithmetic"),
    ],
)
def test_what_is_no_normalisation_is_refused(name: str, entry: Any, facts: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        rd.register_normalisation(name, entry, **facts)


# ---------------------------------------------------------------------- lazy from outside
@pytest.mark.usefixtures("lazy_walk")
def test_the_operator_is_what_was_registered() -> None:
    graph = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], num_nodes=4)
    op = graph.operator("lazy", dtype=F64)
    plain = graph.operator("symmetric", dtype=F64)
    assert torch.equal(op.dense(), (torch.eye(4, dtype=F64) + plain.dense()) / 2)
    assert op.is_symmetric
    assert op.norm == ("2", 1.0)
    assert torch.allclose(op.laplacian(torch.eye(4, dtype=F64)), torch.eye(4, dtype=F64) - op.dense())
    with pytest.raises(NotApplicable, match="undirected graph for the lazy normalisation"):
        rd.Graph.from_edges([[0, 1], [1, 2]]).operator("lazy")


@pytest.mark.usefixtures("lazy_walk")
@pytest.mark.parametrize(("line", "method"), [("BS", "exact"), ("F", "strang"), ("-alpha*L@H + beta*tanh(A@H)", "rk4")])
def test_fields_on_it_are_solved(line: str, method: str) -> None:
    field = rd.lower(line, rd.generators.star(6).operator("lazy", dtype=F64), {"alpha": 1.0, "beta": 0.5})
    H0 = torch.rand(6, 2, dtype=F64, generator=torch.Generator().manual_seed(0))
    sol = rd.solve(field, H0, [0.0, 2.0])
    truth = rd.solve(field, H0, [0.0, 2.0], "dopri5", rtol=1e-11, atol=1e-13)
    assert sol.method == method
    assert float((sol.final - truth.final).abs().max()) < (1e-8 if method == "exact" else 2e-3)


@pytest.mark.usefixtures("lazy_walk")
def test_bounds_follow_from_its_spectrum() -> None:
    alpha = sp.Symbol("alpha")
    found = rd.lipschitz_global(rd.parse("diffusion"), "lazy")
    assert found.value == alpha  # lam in [0, 1] rather than [0, 2]
    assert not found.is_sharp
    everything = rd.analyse("F", ["symmetric", "lazy"])
    assert everything.answers["invariant_box"]["lazy"] is None
    assert "got 'lazy'" in everything.notes["invariant_box"]
    assert set(everything.answers["lipschitz_local"]) == {"symmetric", "lazy"}
    with pytest.raises(NotApplicable, match="got 'lazy'"):
        rd.invariant_box(rd.parse("F"), "lazy")


@pytest.mark.usefixtures("lazy_walk")
def test_preflight_with_and_without_a_graph() -> None:
    values = {"alpha": 1, "beta": 0.5}
    assert rd.preflight("BS", normalisation="lazy", values=values).outcome == "safe"
    page = rd.preflight("BS", normalisation="lazy", values=values, graph=rd.generators.star(5))
    assert page.outcome == "safe"
    assert "lam in [0, 1]" in next(f.text for f in page.findings if f.topic == "graph")
    stepped = rd.preflight("F", normalisation="lazy", method="euler", step=0.1, values=values)
    assert stepped.status == "undecided"
    # 1 <= 2/(alpha lam) on [0, 1], but not on [0, 2]
    long = rd.preflight("diffusion", normalisation="lazy", method="euler", step=1.5, values={"alpha": 1})
    assert long.status == "undecided"


@pytest.mark.usefixtures("lazy_walk")
def test_a_layer_has_the_same_operator() -> None:
    from gread.layers.conv import Layout
    from gread.settings.gread_settings import GreadSettings

    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    made = Layout.make(edges, 3, has_loops=True).operator(
        GreadSettings(normalisation="lazy", self_loops=0.0), torch.ones(4, dtype=F64)
    )
    assert torch.allclose(made.dense(), rd.Graph.from_edges(edges).operator("lazy", dtype=F64).dense())


@pytest.mark.usefixtures("lazy_walk")
def test_a_network_is_trained_on_it() -> None:
    from gread import GREADClassifier

    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = rng.normal(size=(24, 4)) + y[:, None]
    settings: dict[str, Any] = {"epochs": 3, "hidden": 4, "adjacency": "original", "self_loops": 0.0}
    graph = rd.generators.ring(24)
    clf = GREADClassifier("BS", normalisation="lazy", **settings).fit(x, y, graph=graph, mask=y >= 0)
    assert clf.predict(x, graph=graph).shape == (24,)


@pytest.mark.usefixtures("lazy_walk")
def test_the_command_line_knows_it() -> None:
    from studies.cli.app import app

    done = CliRunner().invoke(
        app, ["preflight", "BS", "--normalisation", "lazy", "--set", "alpha=1", "--set", "beta=0.5"]
    )
    assert done.exit_code == 0, done.output
    assert "normalisation = lazy" in done.stdout
    done = CliRunner().invoke(app, ["analyse", "BS", "--normalisation", "lazy", "--json"])
    bound = json.loads(done.stdout)["lipschitz_global"]["lazy"]
    values = {sp.Symbol("alpha"): 1, sp.Symbol("beta"): sp.Rational(1, 2)}
    assert rd.theory.read_expression(bound).subs(values) == 1  # |p| on lam in [0, 1]
