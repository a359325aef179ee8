"""Lowering: field = dense interpreter, batches and their members, precision, parts, errors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import nn

import rdgraph as rd
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.testing import adjacency, systems
from tests.property_examples import examples
from tests.rdgraph.run.lowering.lowering_cases import CHANNELS, NODES, operator, oracle, random, values_for


# ---------------------------------------------------------------------- the same numbers
@given(systems(), adjacency(min_nodes=3, max_nodes=5), st.sampled_from(["symmetric", "row"]))
@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_every_system_lowers_to_the_dense_interpreter(system, matrix, normalisation):
    op = rd.Graph.from_dense(matrix).operator(normalisation, dtype=torch.float64)
    values = values_for(system, len(matrix), CHANNELS)
    H, H0 = random(len(matrix), CHANNELS, seed=50), random(len(matrix), CHANNELS, seed=51)
    expected = oracle(system, op.dense().numpy(), values, H, H0)
    assume(np.isfinite(expected).all() and np.abs(expected).max() < 1e8)
    found = rd.lower(system, op, values).bind(H0)(0.0, H)
    scale = 1 + np.abs(expected).max()
    assert np.abs(found.numpy() - expected).max() <= 1e-9 * scale


@pytest.mark.parametrize("name", list(rd.catalogue.single))
def test_batched_fields_are_their_members(name):
    system, op = rd.parse(name), operator("row")
    values = values_for(system, NODES, CHANNELS, batch=(2, 3))
    H, H0 = random(2, 3, NODES, CHANNELS, seed=1), random(2, 3, NODES, CHANNELS, seed=2)
    field = rd.lower(system, op, values, batch=(2, 3)).bind(H0)
    found = field(0.0, H)
    for i, j in np.ndindex(2, 3):
        own = {n: v[i, j] for n, v in values.items()}
        alone = rd.lower(system, op, own).bind(H0[i, j])
        torch.testing.assert_close(found[i, j], alone(0.0, H[i, j]), rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(field.rebatched(3 * i + j)(0.0, H[i, j]), found[i, j], rtol=1e-13, atol=1e-13)
    some = torch.tensor([5, 0, 2])
    chosen = field.members(some)
    assert chosen.batch == (3,)
    flat = (x.reshape(6, NODES, CHANNELS)[some] for x in (H, found))
    torch.testing.assert_close(chosen(0.0, next(flat)), next(flat), rtol=1e-13, atol=1e-13)


def test_members_may_have_their_own_edge_weights():
    op = operator("row")
    weights = op.weights * random(5, op.num_edges, seed=3).abs()
    field = rd.lower("BS", op.with_weights(weights), {"alpha": 1.0, "beta": random(5)}, batch=(5,))
    H = random(5, NODES, CHANNELS)
    for k in range(5):
        alone = rd.lower("BS", op.with_weights(weights[k]), {"alpha": 1.0, "beta": random(5)[k]})
        torch.testing.assert_close(field(0.0, H)[k], alone(0.0, H[k]), rtol=1e-13, atol=1e-13)


def test_nodes_may_be_renamed():
    graph, order = rd.Graph.from_edges([[0, 1, 2, 3], [1, 2, 3, 0]]), [2, 0, 3, 1]
    H = random(4, 2)
    values = {"alpha": 1.0, "beta": 0.5}
    one, two = (rd.lower("Z", g.operator("row", dtype=torch.float64), values) for g in (graph, graph.permute(order)))
    torch.testing.assert_close(one(0.0, H)[order], two(0.0, H[order]))


def test_the_laplacian_of_an_unnormalised_operator_is_degree_minus_adjacency():
    op = operator("none")
    matrix, H = op.dense(), random(NODES, 2)
    laplacian = torch.diag(matrix.sum(1)) - matrix
    found = rd.lower("-alpha*L@H + A@H", op, {"alpha": 0.5})(0.0, H)
    torch.testing.assert_close(found, -0.5 * laplacian @ H + matrix @ H)
    squared = rd.lower("L@L@H - H", op, {})(0.0, H)
    torch.testing.assert_close(squared, laplacian @ laplacian @ H - H)


def test_stacked_graphs_keep_their_own_degrees():
    graphs = [rd.generators.path(NODES), rd.generators.star(NODES)]
    ops = [g.operator("none", dtype=torch.float64) for g in graphs]
    field = rd.lower("-alpha*L@H", rd.graphs.stack(ops), {"alpha": 1.0}, batch=(2,))
    H = random(2, NODES, 1)
    for k, op in enumerate(ops):
        torch.testing.assert_close(field(0.0, H)[k], -op.laplacian(H[k]))
        torch.testing.assert_close(field.rebatched(k)(0.0, H[k]), -op.laplacian(H[k]))
        torch.testing.assert_close(field.members(torch.tensor([k]))(0.0, H[k : k + 1])[0], -op.laplacian(H[k]))


def test_a_field_without_a_batch_has_one_member():
    field, H = rd.lower("F", operator(), {"alpha": 1.0, "beta": torch.tensor(0.5)}), random(NODES, 2)
    assert torch.equal(field.members(torch.tensor([0]))(0.0, H[None])[0], field(0.0, H))


# ---------------------------------------------------------------------- precision, devices, parts
def test_storage_in_bfloat16_keeps_coefficients_in_float32():
    op = operator().to(dtype=torch.bfloat16)
    field = rd.lower("BS", op, {"alpha": 0.1, "beta": 0.3})
    assert field.coefficients["beta"].dtype == torch.float32
    H = random(NODES, 2).bfloat16()
    found = field(0.0, H)
    assert found.dtype == torch.bfloat16
    exact = rd.lower("BS", operator(), {"alpha": 0.1, "beta": 0.3})(0.0, H.double())
    assert (found.double() - exact).norm() / exact.norm() < 2e-2


def test_a_field_moves_and_changes_precision():
    field = rd.lower("-alpha*L@H", operator("none"), {"alpha": 1.0}).to(torch.float32)
    assert field.dtype == torch.float32
    assert field(0.0, random(NODES, 1).float()).dtype == torch.float32
    lowered = rd.lower("diffusion", operator(), {"alpha": 1.0}, dtype=torch.float32)
    assert lowered.operator.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
@pytest.mark.parametrize("text", ["CGNN", "GRAFF", "A@tanh(a*H) - b*L@(c*H*H)", "tanh(A@H@W)@W - L@L@H"])
def test_mixing_and_products_of_functions_in_half_precision(text, normalisation, dtype):
    system, op = rd.parse(text), operator(normalisation)
    values, H = values_for(system, NODES, CHANNELS), random(NODES, CHANNELS, seed=5)
    wanted = rd.lower(system, op, values).bind(H)(0.0, H)
    half = H.to(dtype)
    found = rd.lower(system, op.to(dtype=dtype), values).bind(half)(0.0, half)
    assert found.dtype == dtype
    assert float((found - wanted).abs().max() / wanted.abs().max()) < 0.05


def test_adaptive_steps_need_single_precision():
    field = rd.lower("AC", operator().to(dtype=torch.bfloat16), {"alpha": 1.0, "beta": 1.0})
    with pytest.raises(rd.errors.InvalidArgument, match="float32 or float64 for dopri5"):
        rd.solve(field, random(NODES, 2).bfloat16(), [0.0, 1.0], "dopri5")


def test_forcing_is_what_remains_at_zero():
    system = rd.parse("-alpha*L@H + beta*M*H0 + A@H0 + 2")
    values = values_for(system, NODES, 2)
    H0 = random(NODES, 2)
    field = rd.lower(system, operator(), values).bind(H0)
    torch.testing.assert_close(field.forcing(), field(0.0, torch.zeros_like(H0)))
    assert rd.lower("BS", operator(), {"alpha": 1.0, "beta": 1.0}).forcing() is None


def test_value_evaluates_coefficient_expressions():
    system = rd.parse("-alpha*L@H + beta*H", {"beta": "channel"})
    field = rd.lower(system, operator(), {"alpha": 2.0, "beta": torch.tensor([1.0, 3.0])})
    alpha, beta = sp.symbols("alpha beta")
    found = field.value(2 * alpha - beta**2 / 4)
    torch.testing.assert_close(found, torch.tensor([3.75, 1.75], dtype=torch.float64))
    assert field.value(3).item() == 3.0
    with pytest.raises(rd.errors.UnknownName, match="coefficient of this field"):
        field.value(sp.Symbol("gamma"))


# ---------------------------------------------------------------------- bad input
CHANNEL_BETA = ("-alpha*L@H + beta*H", {"beta": "channel"})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rd.lower("BS", operator(), {"alpha": 1.0}), InvalidArgument, "got none for beta"),
        (lambda: rd.lower("BS", operator(), {"alpha": 1, "beta": 1, "bta": 1}), UnknownName, "did you mean 'beta'"),
        (lambda: rd.lower("BS", rd.generators.path(3), {}), InvalidArgument, "graph.operator"),
        (lambda: rd.lower("diffusion", operator(), {"alpha": "fast"}), InvalidArgument, "number or a tensor"),
        (lambda: rd.lower("diffusion", operator(), {"alpha": [1.0, 2.0]}), InvalidArgument, "scalar coefficient"),
        (
            lambda: rd.lower(rd.parse(*CHANNEL_BETA), operator(), {"alpha": 1.0, "beta": torch.ones(2, 3)}),
            InvalidArgument, r"a channel coefficient, of shape \(channels,\)",
        ),
        (
            lambda: rd.lower(rd.parse("-a*L@H", {"a": "node"}), operator(), {"a": torch.ones(3)}),
            InvalidArgument, r"a node coefficient, of shape \(4,\), got \(3,\)",
        ),
        (lambda: rd.lower("H@W", operator(), {"W": torch.ones(2, 3)}), InvalidArgument, r"shape \(d, d\)"),
        (
            lambda: rd.lower("diffusion", operator().with_weights(torch.ones(2, 8, dtype=torch.float64)), {"alpha": 1}),
            InvalidArgument, r"pass batch=\(2,\)",
        ),
        (
            lambda: rd.lower("diffusion", operator(), {"alpha": nn.Parameter(torch.ones(()))}),
            InvalidArgument, "expected the parameter alpha as torch.float64",
        ),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (torch.zeros(3, 2, dtype=torch.float64), r"shape \(..., 4, channels\), got Tensor \(3, 2\)"),
        (torch.zeros(4, dtype=torch.float64), r"got Tensor \(4,\)"),
        (torch.zeros(4, 3, 2, dtype=torch.float64), r"got Tensor \(4, 3, 2\)"),
        (torch.zeros(4, 2), "state of torch.float64"),
        (torch.zeros(4, 5, dtype=torch.float64), "expected 2 channels"),
        (np.zeros((4, 2)), "got ndarray"),
    ],
)
def test_bad_states_are_refused(state, words):
    field = rd.lower(rd.parse(*CHANNEL_BETA), operator(), {"alpha": 1.0, "beta": torch.ones(2)})
    with pytest.raises(InvalidArgument, match=words):
        field(0.0, state)


def test_a_field_with_a_source_asks_for_its_start():
    field = rd.lower("ST", operator(), {"alpha": 1.0, "beta": 1.0})
    assert field.uses_initial
    with pytest.raises(InvalidArgument, match="bind"):
        field(0.0, random(NODES, 1))
