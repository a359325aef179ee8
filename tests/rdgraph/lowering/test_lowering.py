"""Lowering: field = dense interpreter, products counted and shared, source that runs alone, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch
import torchdiffeq
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.identities.dense_oracle import evaluate
from rdgraph.syntax.reader import Vocabulary, read_expression
from rdgraph.syntax.tree import Kind, Name
from rdgraph.testing import adjacency, systems

STATE_LETTERS = {"H", "H0", "A", "L", "I"}
NODES, CHANNELS = 4, 3


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def operator(normalisation: str = "symmetric") -> rd.Operator:
    edges = [[0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 2, 0]]
    return rd.Graph.from_edges(edges).operator(normalisation, dtype=torch.float64)


def values_for(system: rd.System, nodes: int, channels: int, batch: tuple[int, ...] = ()) -> dict[str, torch.Tensor]:
    """Positive values for every coefficient, in the shape of its kind."""
    own = {"scalar": (), "channel": (channels,), "node": (nodes,), "matrix": (channels, channels)}
    wanted = {n: k for n, k in system.letters.items() if n not in STATE_LETTERS}
    return {n: random(*batch, *own[str(k)], seed=i).abs() + 0.1 for i, (n, k) in enumerate(wanted.items())}


def oracle(system: rd.System, matrix: np.ndarray, values: dict, H: torch.Tensor, H0: torch.Tensor) -> np.ndarray:
    """The dense interpreter on the same numbers."""
    kinds = system.letters
    plain = {n: v.numpy()[:, None] if str(kinds[n]) == "node" else v.numpy() for n, v in values.items()}
    with np.errstate(all="ignore"):
        found = evaluate(
            system.expression, {"A": matrix, "I": np.eye(len(matrix)), "H": H.numpy(), "H0": H0.numpy(), **plain}
        )
    return np.broadcast_to(np.asarray(found, dtype=float), H.shape)


# ---------------------------------------------------------------------- the same numbers
@given(systems(), adjacency(min_nodes=3, max_nodes=5), st.sampled_from(["symmetric", "row"]))
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
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
    field = rd.lower("-alpha*L@H", rd.stack(ops), {"alpha": 1.0}, batch=(2,))
    H = random(2, NODES, 1)
    for k, op in enumerate(ops):
        torch.testing.assert_close(field(0.0, H)[k], -op.laplacian(H[k]))
        torch.testing.assert_close(field.rebatched(k)(0.0, H[k]), -op.laplacian(H[k]))
        torch.testing.assert_close(field.members(torch.tensor([k]))(0.0, H[k : k + 1])[0], -op.laplacian(H[k]))


def test_a_field_without_a_batch_has_one_member():
    field, H = rd.lower("F", operator(), {"alpha": 1.0, "beta": torch.tensor(0.5)}), random(NODES, 2)
    assert torch.equal(field.members(torch.tensor([0]))(0.0, H[None])[0], field(0.0, H))


# ---------------------------------------------------------------------- what is proved is what runs
def normal_of_plan(system: rd.System) -> tuple[sp.Basic, sp.Expr]:
    """The steps of the plan, read as equations and put into each other: the tree that is run, and its normal form."""
    field = rd.lower(system, operator(), values_for(system, NODES, CHANNELS))
    vocabulary, trees = Vocabulary.standard(dict(system.letters)), {}
    for step in field.plan.steps:
        name, text = step.split(" = ", 1)
        tree = read_expression(text, vocabulary).xreplace(trees)
        trees[Name(name, Kind.FIELD)] = tree
        vocabulary = vocabulary.extended({name: Kind.FIELD})
    return tree, system.algebra.normal(tree)


@pytest.mark.parametrize("name", list(rd.catalogue.single))
def test_the_plan_has_the_normal_form_of_the_catalogued_system(name):
    assert normal_of_plan(rd.catalogue[name])[1] == rd.catalogue[name].normal


@given(systems())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_the_plan_has_the_normal_form_of_the_system(system):
    try:
        expected, (tree, found) = system.normal, normal_of_plan(system)
    except rd.NotApplicable:  # too large to expand, or constants beyond double precision
        reject()
    if found != expected:  # fractions have no unique normal form
        assert rd.equivalent(system.with_expression(tree), system).status.startswith("proved")


# ---------------------------------------------------------------------- the plan
@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("BS", 2), ("F", 1), ("AC", 1), ("Z", 1), ("ST", 1), ("FB", 1), ("FB*", 1), ("diffusion", 1),
        ("A@A@A@H - A@A@H + A@H", 3),
        ("A**2@H + tanh(A@A@H)", 2),
        ("A@H - A@H + H", 0),
        ("A@(H + H**2)", 1),
        ("A@H + A@H0 + A@H**2", 1),
        ("tanh(A@H)*(A@H) - L@H", 1),
        ("-L@H + A@A@H0", 2),
        ("H - H", 0),
        ("((A - A@A)**3)@H", 6),
        ("(H + A@H)**4", 1),
        ("tanh(H + A@H + A@A@H)", 2),
        ("(H + A@H)*(H0 - A@H)*(1 - L@H)", 1),
        ("A@(M*H + M*H0)", 1),
        ("tanh(A@(M*H + M*H0)) + A@(M*H + M*H0)", 1),
        ("A@(H@W) + A@(H0@W)", 1),
        ("A@H@W - (A@H)@W", 0),
        ("(A@M)*H + A@(M + 1)*H0", 2),
        ("(1 - H + A@H)**32*(1 + H0*H + A@H0)**32", 2),
        ("A**32@A**32@A**32@H", 96),
    ],
)  # fmt: skip
def test_products_are_counted_and_shared(text, products, monkeypatch):
    system = rd.parse(text)
    op = operator()
    field = rd.lower(system, op, values_for(system, NODES, CHANNELS)).bind(random(NODES, CHANNELS))
    assert field.plan.products == products
    calls = []
    product = rd.Operator.product

    def counted(self, *args, **kwargs):
        calls.append(1)
        return product(self, *args, **kwargs)

    monkeypatch.setattr(rd.Operator, "product", counted)
    field(0.0, random(NODES, CHANNELS))
    assert len(calls) == products


@pytest.mark.parametrize(
    ("text", "mixes"),
    [
        ("CGNN", 1),
        ("GRAFF", 1),
        ("tanh(H@W) + A@(H@W)", 1),
        ("tanh((H + A@H)@W) + (H + A@H)@W", 1),
        ("H@(W + W@W)", 1),
        ("(2*H)@W + H@W", 1),
        ("H@(W - W)", 0),
        ("tanh(H@W) + tanh(A@H@W) + H@W + A@H@W", 2),
    ],
)
def test_mixings_are_counted_and_shared(text, mixes):
    system = rd.parse(text)
    field = rd.lower(system, operator(), values_for(system, NODES, CHANNELS))
    taken = field.source.count(" @ W") + field.source.count(" @ (") - field.source.count("W @ W")
    assert field.plan.mixes == taken == mixes


@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
@pytest.mark.parametrize(
    "text",
    [
        "(1 - 0.1*H + A@H)**9*(1 + H0*H + A@H0)**9", "A**32@A**32@H", "tanh(tanh(tanh(tanh(tanh(tanh(A@H))))))",
        "(I + alpha*A)**32@(H + beta*H0)/2**32", "H@(W@(W - alpha*W/3) + 2*W)@W - beta*A@(H@W)",
    ],
)  # fmt: skip
def test_systems_that_are_not_expanded_run_as_the_dense_interpreter(text, normalisation):
    system, op = rd.parse(text), operator(normalisation)
    values = values_for(system, NODES, CHANNELS)
    H, H0 = random(NODES, CHANNELS, seed=50), random(NODES, CHANNELS, seed=51)
    expected = oracle(system, op.dense().numpy(), values, H, H0)
    found = rd.lower(system, op, values).bind(H0)(0.0, H).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_plan_prints_its_steps():
    field = rd.lower("BS", operator(), {"alpha": 1.0, "beta": 1.0})
    assert str(field.plan).splitlines() == [
        "dH/dt = -alpha*L@H + beta*(A@H - A@A@H)    (2 sparse products)",
        "  x1 = A@H",
        "  dH = (-beta)*(A@x1) + (-alpha)*H + (alpha + beta)*x1",
    ]


@pytest.mark.parametrize("name", ["BS", "F", "ST", "GRAFF", "GRAND++"])
def test_the_source_runs_on_its_own(name):
    system, op = rd.parse(name), operator()
    values = values_for(system, NODES, CHANNELS)
    H, H0 = random(NODES, CHANNELS, seed=1), random(NODES, CHANNELS, seed=2)
    field = rd.lower(system, op, values).bind(H0)
    alone: dict = {}
    exec(field.source, alone)
    shaped = field.coefficients
    names = field._stages.names
    numbers = alone["coefficients"](*(shaped[n] for n in names))
    known = {"H": H, "H0": H0, "A": alone["plain"](op.dense()), **shaped}
    arguments = [known[a] for a in field._stages.field.arguments]
    torch.testing.assert_close(alone["field"](0.0, *arguments, *numbers), field(0.0, H))
    assert "import" not in field.source.replace("import torch", "", 1)


def test_coefficients_may_have_the_names_the_source_uses():
    system = rd.parse("-x1*L@H + c0*H + torch*H**2", {"x1": "scalar", "c0": "scalar", "torch": "scalar"})
    H = random(NODES, 2)
    found = rd.lower(system, operator(), {"x1": 0.5, "c0": 2.0, "torch": 3.0})(0.0, H)
    expected = -0.5 * (H - operator().dense() @ H) + 2 * H + 3 * H**2
    torch.testing.assert_close(found, expected)


# ---------------------------------------------------------------------- gradients and torch
@pytest.mark.parametrize("text", ["BS", "F", "tanh(A@H)@W - L@H + a*H0"])
def test_gradients_reach_states_coefficients_matrices_and_edges(text):
    system, op = rd.parse(text), operator("row")
    values = {n: v.requires_grad_(True) for n, v in values_for(system, NODES, 2).items()}
    inputs = [op.weights.clone().requires_grad_(True), random(NODES, 2).requires_grad_(True), *values.values()]

    def run(weights, H, *coefficients):
        named = dict(zip(values, coefficients, strict=True))
        return rd.lower(system, op.with_weights(weights), named).bind(H)(0.0, H)

    assert gradcheck(run, inputs)


def test_parameters_are_parameters_of_the_module_and_follow_an_optimiser():
    beta = nn.Parameter(torch.ones(CHANNELS, dtype=torch.float64))
    system = rd.parse("-alpha*L@H + beta*H", {"beta": "channel"})
    field = rd.lower(system, operator(), {"alpha": 1.0, "beta": beta})
    assert [id(p) for p in field.parameters()] == [id(beta)]
    H = random(NODES, CHANNELS)
    before = field(0.0, H)
    with torch.no_grad():
        beta += 1.0
    torch.testing.assert_close(field(0.0, H), before + H)
    field(0.0, H).sum().backward()
    torch.testing.assert_close(beta.grad, H.sum(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BS", "AC", "ST"])
def test_compiled_equals_eager(name):
    system, op = rd.parse(name), operator()
    values = {n: v.requires_grad_(True) for n, v in values_for(system, NODES, CHANNELS).items()}
    field = rd.lower(system, op, values).bind(random(NODES, CHANNELS, seed=5))
    compiled = torch.compile(field, backend="aot_eager", fullgraph=True)
    for_eager, for_compiled = (random(NODES, CHANNELS, seed=4).requires_grad_(True) for _ in range(2))
    one, two = field(0.0, for_eager), compiled(0.0, for_compiled)
    torch.testing.assert_close(one, two)
    first = torch.autograd.grad(one.sum(), [for_eager, *values.values()])
    second = torch.autograd.grad(two.sum(), [for_compiled, *values.values()])
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("solver", [torchdiffeq.odeint, torchdiffeq.odeint_adjoint])
def test_torchdiffeq_accepts_the_field_unchanged(solver):
    field = rd.lower("diffusion", operator(), {"alpha": 1.0})
    H = random(NODES, 2)
    times = torch.tensor([0.0, 1.5], dtype=torch.float64)
    found = solver(field, H, times, rtol=1e-9, atol=1e-11)[-1]
    generator = operator().dense() - torch.eye(NODES, dtype=torch.float64)
    torch.testing.assert_close(found, torch.linalg.matrix_exp(1.5 * generator) @ H, rtol=1e-7, atol=1e-7)


def test_the_jacobian_is_the_symbolic_one():
    """d/dH of beta*h**2*(1 - h) from sympy, beside autograd through the lowered field."""
    field = rd.lower("Z", operator(), {"alpha": 0.0, "beta": 2.0})
    H = random(NODES, 1)
    found = torch.autograd.functional.jacobian(lambda x: field(0.0, x), H).reshape(NODES, NODES)
    h = sp.Symbol("h")
    slope = sp.lambdify(h, sp.diff(2 * h**2 * (1 - h), h))
    torch.testing.assert_close(found, torch.diag(slope(H[:, 0])))


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
    with pytest.raises(rd.UnknownName, match="coefficient of this field"):
        field.value(sp.Symbol("gamma"))


# ---------------------------------------------------------------------- bad input
CHANNEL_BETA = ("-alpha*L@H + beta*H", {"beta": "channel"})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rd.lower("BS", operator(), {"alpha": 1.0}), InvalidArgument, "got none for beta"),
        (lambda: rd.lower("BS", operator(), {"alpha": 1, "beta": 1, "bta": 1}), rd.UnknownName, "did you mean 'beta'"),
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
    with pytest.raises(rd.InvalidArgument, match="float32 or float64 for dopri5"):
        rd.solve(field, random(NODES, 2).bfloat16(), [0.0, 1.0], "dopri5")
