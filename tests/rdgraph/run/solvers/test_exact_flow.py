"""`exact`: error bounds kept against the dense matrix exponential, counts of products, gradients, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.matrix_functions import phi1
from rdgraph.run.solvers.operator_filters import Filters, coefficients, nodes
from rdgraph.run.solvers.propagator import Propagator, exact_states, make_series
from rdgraph.systems.parser import parse
from rdgraph.testing import adjacency, graph_families
from tests.property_examples import examples
from tests.rdgraph.run.solvers.exact_cases import DOUBLE, made, matrix_exponential, random_graph, solve

LINEAR = ("diffusion", "BS", "ST", "FB", "FB*", "FB*-released", "APPNP", "SGC")
UNIT = ("symmetric", "row", "column")
COEFFICIENT = st.floats(-1, 1, allow_subnormal=False)


# ---------------------------------------------------------------------- special functions and series
def test_phi1_is_accurate_everywhere_and_in_the_complex_plane() -> None:
    real = torch.tensor([0.0, 1e-300, -1e-9, 0.4999, -0.5, 0.5001, 3.0, -800.0], dtype=DOUBLE)
    expected = [1.0 if x == 0 else math.expm1(x) / x for x in real.tolist()]
    assert torch.allclose(phi1(real), torch.tensor(expected, dtype=DOUBLE), rtol=3e-16, atol=0)
    z = torch.polar(torch.linspace(0.01, 3, 7, dtype=DOUBLE), torch.linspace(0, 6, 7, dtype=DOUBLE))
    assert torch.allclose(phi1(z), torch.expm1(z) / z, rtol=1e-13, atol=0)


def test_phi1_has_derivatives_at_zero() -> None:
    x = torch.tensor([-2.0, -0.5, -1e-9, 0.0, 1e-12, 0.3, 2.0], dtype=DOUBLE, requires_grad=True)
    (slope,) = torch.autograd.grad(phi1(x).sum(), x, create_graph=True)
    assert slope.detach()[[2, 3, 4]].tolist() == pytest.approx([0.5, 0.5, 0.5], rel=1e-8)
    (curvature,) = torch.autograd.grad(slope.sum(), x)
    assert curvature[3].item() == pytest.approx(1 / 3, rel=1e-14)
    assert torch.autograd.gradcheck(phi1, x)


def filters(generator: list[Any], time: Any, source: list[Any] = (), flow: bool = True) -> Filters:  # type: ignore[assignment]
    """Filters of scalars or rows, on the unit disc."""
    time, *rest = torch.broadcast_tensors(*(torch.as_tensor(x, dtype=DOUBLE) for x in (time, *generator, *source)))
    rows = [x.reshape(-1) for x in rest]
    p, s = rows[: len(generator)], rows[len(generator) :]
    time = time.reshape(-1)
    empty = time.new_empty((0, len(time)))
    source = torch.stack(s) if s else empty
    centre, radius = 0 * time, 0 * time + 1
    return Filters(torch.stack(p)[:, None, None], source[:, None, None], time, centre, radius, 2.0, flow)


def test_chebyshev_coefficients_of_diffusion_are_bessel_functions() -> None:
    decay = filters([-2.0, 2.0], 1.0)
    found = coefficients(decay(nodes("chebyshev", 32, decay.elapsed)), "chebyshev").ravel().numpy()
    expected = 2 * math.exp(-2.0) * scipy.special.iv(np.arange(32), 2.0)
    expected[0] /= 2
    assert np.abs(found - expected).max() < 1e-15


def test_power_coefficients_of_blurring_sharpening_obey_their_recurrence() -> None:
    alpha, beta, time = 0.7, 0.9, 3.49
    row = filters([-alpha, alpha + beta, -beta], time)
    found = coefficients(row(nodes("taylor", 64, row.elapsed)), "taylor").ravel().tolist()
    assert found[0] == pytest.approx(math.exp(-alpha * time), rel=1e-13)
    for k in range(2, 40):
        expected = ((alpha + beta) * time * found[k - 1] - 2 * beta * time * found[k - 2]) / k
        assert found[k] == pytest.approx(expected, abs=1e-14)


@given(
    st.sampled_from(["chebyshev", "taylor"]),
    st.lists(st.floats(-2, 2), min_size=1, max_size=4),
    st.lists(st.floats(-2, 2), max_size=3),
    st.floats(-3, 3),
    st.floats(1.001, 5),
    st.floats(0, 2 * math.pi),
)
@example("taylor", [-5.0], [1.0], 2.0, 1.5, 0.0)
@settings(max_examples=examples(80))
def test_the_bound_in_the_plane_bounds(
    kind: str, generator: list[float], source: list[float], time: float, rho: float, angle: float
) -> None:
    row = filters(generator, time, source)
    point = torch.polar(torch.tensor([rho], dtype=DOUBLE), torch.tensor([angle], dtype=DOUBLE))
    point = (point + 1 / point) / 2 if kind == "chebyshev" else point
    bound = row.log_bound(kind, torch.tensor([rho], dtype=DOUBLE)).item()
    assert row(point).abs().log().item() <= bound + 1e-9


@given(
    st.sampled_from(["chebyshev", "taylor"]),
    st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=4),
    st.lists(st.floats(-1, 1), max_size=2),
    st.floats(0, 6),
    st.floats(1e-12, 1e-1),
)
@settings(max_examples=examples(80))
def test_what_a_series_leaves_out_is_within_its_tolerance(
    kind: str, generator: list[float], source: list[float], time: float, tolerance: float
) -> None:
    row = filters(generator, time, source)
    allowed = tolerance * row.gain()
    kept = make_series(row, kind, allowed).ravel()
    full = coefficients(row(nodes(kind, 1024, row.elapsed)), kind).ravel()
    full[: len(kept)] -= kept
    noise = 1e-14 * row.peak().item()
    left = full.abs().sum().item()
    if kind == "taylor":
        assert full.norm().item() <= allowed.item() + noise
        assert left <= 2 * allowed.item() + 100 * noise
    else:
        assert left <= allowed.item() + 100 * noise


def test_a_series_is_no_longer_than_it_must_be() -> None:
    decay = filters([-3.0, 3.0], 1.0)
    for kind in ("chebyshev", "taylor"):
        full = coefficients(decay(nodes(kind, 64, decay.elapsed)), kind).abs().ravel()
        kept = len(make_series(decay, kind, torch.tensor([1e-6], dtype=DOUBLE)))
        assert full[kept - 1 :].sum() > 0.9e-6


@pytest.mark.parametrize(("kind", "most", "typical"), [("chebyshev", 20, 12), ("taylor", 40, 21)])
def test_blurring_sharpening_needs_few_products_on_the_whole_square(kind: str, most: int, typical: int) -> None:
    """T = 3.49 and 1e-6 for every (alpha, beta) in [-1, 1]^2: 112 products by RK4 at the paper's step."""
    axis = torch.linspace(-1, 1, 101, dtype=DOUBLE)
    alpha, beta = (x.reshape(-1) for x in torch.meshgrid(axis, axis, indexing="ij"))
    rows = filters([-alpha, alpha + beta, -beta], 3.49)
    series = make_series(rows, kind, 1e-6 * rows.scale())
    assert len(series) - 1 == most
    mild = filters([-0.7, 1.1, -0.4], 3.49)
    assert len(make_series(mild, kind, 1e-6 * mild.scale())) - 1 == typical


# ---------------------------------------------------------------------- against the matrix exponential
@pytest.mark.parametrize("normalisation", UNIT)
@pytest.mark.parametrize("name", LINEAR)
def test_catalogued_systems_equal_the_matrix_exponential(name: str, normalisation: str) -> None:
    field = made(name, random_graph().operator(normalisation, dtype=DOUBLE), {"alpha": 0.8, "beta": 0.6})
    H0 = torch.randn(14, 3, dtype=DOUBLE)
    expected = matrix_exponential(field, H0, 2.5)
    assert np.abs(solve(field, H0, 2.5).numpy() - expected).max() < 1e-9 * np.abs(expected).max()


def gain_of(field: VectorField, time: float) -> float:
    structure = field.system.structure
    number: Callable[[Any], Tensor] = lambda c: field.value(c).double()  # noqa: E731
    p = [number(structure.generator.get(k, 0)) for k in range(4)]
    s = [number(structure.source.get(k, 0)) for k in range(2)]
    return filters(p, time, s).gain().max().item()


@given(graph_families(max_nodes=9), st.sampled_from(UNIT), st.sampled_from(LINEAR), COEFFICIENT, COEFFICIENT, st.data())
@settings(max_examples=examples(80))
def test_the_error_is_within_the_tolerance(
    graph: np.ndarray, normalisation: str, name: str, alpha: float, beta: float, data: st.DataObject
) -> None:
    time, rtol = data.draw(st.floats(0, 6)), data.draw(st.sampled_from([1e-2, 1e-4, 1e-6, 1e-9]))
    field = made(name, Graph.from_dense(graph).operator(normalisation, dtype=DOUBLE), {"alpha": alpha, "beta": beta})
    H0 = torch.randn(len(graph), 1, dtype=DOUBLE)
    error = solve(field, H0, time, rtol=rtol).numpy() - matrix_exponential(field, H0, time)
    order, worst = {"symmetric": (2, 1), "row": (np.inf, 2), "column": (1, 2)}[normalisation]
    size = gain_of(field, time) * np.linalg.norm(H0.numpy(), order)
    assert np.linalg.norm(error, order) <= (worst * rtol + 1e-12) * size


@pytest.mark.parametrize("normalisation", UNIT)
def test_channels_have_their_own_coefficients(normalisation: str) -> None:
    values = {
        "alpha": torch.tensor([0.2, 1.0, 3.0], dtype=DOUBLE),
        "beta": torch.tensor([-1.0, 0.5, 1.0], dtype=DOUBLE),
    }
    operator = random_graph().operator(normalisation, dtype=DOUBLE)
    field = lower(parse("BS", {"alpha": "channel", "beta": "channel"}), operator, values)
    H0 = torch.randn(14, 3, dtype=DOUBLE)
    states = solve(field, H0, 3.49)
    for c in range(3):
        single = made("BS", operator, {name: value[c] for name, value in values.items()})
        assert torch.equal(states[:, c : c + 1], solve(single, H0[:, c : c + 1].contiguous(), 3.49))
        expected = matrix_exponential(single, H0[:, c : c + 1], 3.49)
        assert np.abs(states[:, c : c + 1].numpy() - expected).max() < 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize(
    "text", ["-alpha*L@H", "-alpha*L@H + beta*L@L@H - H", "-alpha*L@H + beta*H0", "-beta*H + alpha*A@H"]
)
@pytest.mark.parametrize("directed", [False, True])
def test_operators_that_are_not_normalised(text: str, directed: bool) -> None:
    weights = random_graph(9).adjacency.toarray()
    if directed:
        weights = np.tril(weights) + 0.05 * np.triu(weights)
    field = made(text, Graph.from_dense(weights).operator("none", dtype=DOUBLE), {"alpha": 0.3, "beta": -0.02})
    assert linear_part(field).base.kind == ("taylor" if directed else "chebyshev")
    H0 = torch.randn(9, 2, dtype=DOUBLE)
    expected = matrix_exponential(field, H0, 1.3)
    assert np.abs(solve(field, H0, 1.3).numpy() - expected).max() < 1e-8 * np.abs(expected).max()


def test_signed_and_empty_operators() -> None:
    signed = Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[1.0, 1.0, -2.0, -2.0], signed=True)
    empty = Graph.from_edges(np.zeros((2, 0), dtype=int), num_nodes=3)
    H0 = torch.randn(3, 2, dtype=DOUBLE)
    for graph in (signed, empty):
        for text in ("-alpha*L@H", "alpha*A@H"):
            field = made(text, graph.operator("none", dtype=DOUBLE), {"alpha": 0.7})
            expected = matrix_exponential(field, H0, 2.0)
            assert np.abs(solve(field, H0, 2.0).numpy() - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(
    "text", ["GRAND++", "-alpha*L@H + beta", "-alpha*L@H + b + beta*A@H0 where b channel", "-A@H + M*(A@H0)"]
)
@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_other_forcing(text: str, normalisation: str) -> None:
    values = {
        "alpha": 0.8,
        "beta": 0.6,
        "b": torch.tensor([1.0, -2.0], dtype=DOUBLE),
        "M": (torch.arange(14) % 2).double(),
    }
    field = made(text, random_graph().operator(normalisation, dtype=DOUBLE), values)
    H0 = torch.randn(14, 2, dtype=DOUBLE)
    times = torch.tensor([0.0, 0.5, 2.5], dtype=DOUBLE)
    states, stats = exact_states(field.bind(H0), H0, times)
    for time, state in zip(times.tolist(), states, strict=True):
        expected = matrix_exponential(field.bind(H0), H0, time)
        assert np.abs(state.numpy() - expected).max() < 1e-9 * np.abs(expected).max()
    assert stats.evaluations == 1


@pytest.mark.parametrize(
    ("text", "time", "parts"),
    [
        ("BS", 2.0, 1),
        ("ST", 2.0, 1),
        ("GRAND++", 2.0, 1),
        ("BS", 20.0, 4),
        ("-alpha*L@H + beta*(A@H - A@A@H) + M*H0", 20.0, 4),
    ],
)
def test_products_are_counted(text: str, time: float, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"alpha": 0.5, "beta": 2.0, "M": torch.ones(14).double()}
    field, H0 = made(text, random_graph().operator("row", dtype=DOUBLE), values), torch.randn(14, 2, dtype=DOUBLE)
    calls = []
    product = Operator.product
    monkeypatch.setattr(Operator, "product", lambda *a: calls.append(1) or product(*a))  # type: ignore[func-returns-value]
    stats = exact_states(field.bind(H0), H0, torch.tensor([0.0, time]))[1]
    assert stats.products == len(calls)
    assert stats.accepted == parts


def test_what_decays_below_every_number_is_zero() -> None:
    field = made("-alpha*L@H - beta*H", random_graph().operator(dtype=DOUBLE), {"alpha": 1.0, "beta": 100.0})
    H0 = torch.randn(14, 2, dtype=DOUBLE)
    for time in (7.0, 7.4, 50.0):
        assert solve(field, H0, time).abs().max() < 1e-300


def test_a_polynomial_source_costs_no_second_recurrence() -> None:
    operator, H0 = random_graph().operator("row", dtype=DOUBLE), torch.randn(14, 2, dtype=DOUBLE)
    times = torch.tensor([0.0, 3.0], dtype=DOUBLE)
    counts = [
        exact_states(made(name, operator, {"alpha": 1.0, "beta": 0.5}).bind(H0), H0, times)[1].products
        for name in ("diffusion", "ST")
    ]
    assert counts[1] <= counts[0]


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("F", "nonlinear"),
        ("-alpha*L@H + tanh(H)", "nonlinear"),
        ("H*(A@H)", "couples nodes"),
        ("-alpha*L@H where alpha node", "does not commute"),
        ("GRAFF", "mixes channels"),
    ],
)
def test_refusals_say_why(text: str, reason: str) -> None:
    values = {"alpha": 1.0, "beta": 1.0, "omega": torch.ones(2).double(), "W": torch.eye(2).double()}
    values |= {"alpha": torch.ones(14).double()} if "node" in text else {}
    H0 = torch.randn(14, 2, dtype=DOUBLE)
    field = made(text, random_graph().operator("row", dtype=DOUBLE), values).bind(H0)
    with pytest.raises(NotApplicable, match=reason) as caught:
        exact_states(field, H0, torch.tensor([0.0, 1.0]))
    assert "use dopri5 or rk4" in str(caught.value)


def test_only_what_stands_in_the_way_is_named() -> None:
    field = made(
        "-alpha*L@H + H**2 + M*H0", random_graph().operator(dtype=DOUBLE), {"alpha": 1.0, "M": torch.ones(14).double()}
    )
    H0 = torch.randn(14, 2, dtype=DOUBLE)
    with pytest.raises(NotApplicable, match="H\\*\\*2 is nonlinear") as caught:
        exact_states(field.bind(H0), H0, torch.tensor([0.0, 1.0]))
    assert "M" not in str(caught.value).split("H0:")[1]


def test_mixed_letters_are_refused_where_they_do_not_commute() -> None:
    field = made("BS", random_graph().operator("none", dtype=DOUBLE), {"alpha": 1.0, "beta": 1.0})
    with pytest.raises(NotApplicable, match="in A alone or in L alone"):
        exact_states(field, torch.randn(14, 1).double(), torch.tensor([0.0, 1.0]))


@given(adjacency(max_nodes=6, weighted=True), st.floats(0.01, 5))
@settings(max_examples=examples(25))
def test_diffusion_on_row_operators_keeps_constants_and_bounds(graph: np.ndarray, time: float) -> None:
    operator = Graph.from_dense(graph).operator("row", self_loops=1.0, dtype=DOUBLE)
    field = made("diffusion", operator, {"alpha": 1.0})
    H0 = torch.rand(len(graph), 1, dtype=DOUBLE)
    both = torch.cat([H0, torch.ones_like(H0)], -1)
    final = solve(field, both, time)
    assert torch.allclose(final[:, 1], torch.ones(len(graph), dtype=DOUBLE), rtol=0, atol=1e-9)
    assert final[:, 0].min() >= H0.min() - 1e-9
    assert final[:, 0].max() <= H0.max() + 1e-9


def test_a_propagator_is_reusable() -> None:
    field, H = (
        made("BS", random_graph().operator(dtype=DOUBLE), {"alpha": 1.0, "beta": 0.5}),
        torch.randn(14, 2).double(),
    )
    step = Propagator.make(linear_part(field), torch.full((1, 1, 1), 0.5, dtype=DOUBLE), H)
    assert torch.allclose(step(step(H)[0])[0], solve(field, H, 1.0), rtol=0, atol=1e-9)
