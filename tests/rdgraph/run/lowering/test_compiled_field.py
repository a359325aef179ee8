"""Compiled fields: C = torch = dense interpreter on random systems, graphs, batches and precisions; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import InvalidArgument, MissingDependency
from rdgraph.graphs.kernels import c_compiler
from rdgraph.run.lowering import compiled_field
from rdgraph.run.lowering.compiled_field import compile_field, why_not_compiled
from rdgraph.testing import adjacency, systems
from rdgraph.theory.equality.dense_oracle import evaluate
from tests.property_examples import examples

pytestmark = pytest.mark.skipif(c_compiler.find_compiler() is None, reason="no C compiler")

F64 = torch.float64
CHANNELS = 3


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def values_for(system: rd.System, nodes: int, channels: int, batch: tuple[int, ...] = ()) -> dict[str, torch.Tensor]:
    """Positive values for every coefficient, in the shape of its kind."""
    own = {"scalar": (), "channel": (channels,), "node": (nodes,), "matrix": (channels, channels)}
    kinds = {n: str(k) for n, k in system.letters.items() if str(k) in own and n != "t"}
    return {n: random(*batch, *own[k], seed=i).abs() + 0.1 for i, (n, k) in enumerate(kinds.items())}


def dense(
    system: rd.System, op: rd.graphs.Operator, values: dict, H: torch.Tensor, start: torch.Tensor, t: float = 0.0
):
    """All fields by the dense interpreter, from the trees of the equations, side by side."""
    matrix, kinds, width = op.dense().numpy(), system.letters, H.shape[-1] // len(system.fields)
    plain = {n: v.numpy()[:, None] if str(kinds[n]) == "node" else v.numpy() for n, v in values.items()}
    known = {"A": matrix, "I": np.eye(len(matrix)), "t": np.float64(t), **plain}
    if op.degree is not None:
        known["L"] = np.diag(op.degree.numpy()[:, 0]) - matrix
    for k, name in enumerate(system.fields):
        block = slice(k * width, (k + 1) * width)
        known[name] = H.numpy()[:, block]
        known[f"{name[:-1]}0'" if name.endswith("'") else f"{name}0"] = start.numpy()[:, block]
    with np.errstate(all="ignore"):
        found = [np.asarray(evaluate(tree, known), dtype=float) for tree in system.flow.values()]
    return np.concatenate([np.broadcast_to(x, (len(matrix), width)) for x in found], axis=1)


# ---------------------------------------------------------------------- the same numbers
@given(
    systems(),
    adjacency(min_nodes=3, max_nodes=5, weighted=True),
    st.sampled_from(["symmetric", "row", "column", "none"]),
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@pytest.mark.slow
def test_every_system_compiles_to_the_dense_interpreter_and_to_torch(system, matrix, normalisation):
    op = rd.Graph.from_dense(matrix).operator(normalisation, dtype=F64)
    values = values_for(system, len(matrix), CHANNELS)
    H, start = random(len(matrix), CHANNELS, seed=50), random(len(matrix), CHANNELS, seed=51)
    expected = dense(system, op, values, H, start)
    assume(np.isfinite(expected).all() and np.abs(expected).max() < 1e8)
    field = rd.lower(system, op, values).bind(start)
    found = compile_field(field, CHANNELS)(0.0, H)
    scale = 1 + np.abs(expected).max()
    assert np.abs(found.numpy() - expected).max() <= 1e-9 * scale
    assert float((found - field(0.0, H)).abs().max()) <= 1e-9 * scale


@pytest.mark.parametrize(
    "text",
    [
        "u' = A@cos(A@v)*u + A@(cos(A@v)/(1 + cos(A@v)**2)); v' = A@cos(A@v)",
        "u' = u - beta*L@u; v' = alpha*M*(M*cos(beta*A@w)) + (I + (A - L))@(cos(beta*A@w)*u/(1 + cos(beta*A@w)**2)); "
        "w' = A@cos(beta*A@w)",
        "u' = A@(tanh(u)*v)@W + A@tanh(u); v' = (tanh(u)*v)@W - A@(tanh(u)*v + tanh(u))",
    ],
)
@pytest.mark.parametrize("normalisation", ["row", "none"])
def test_an_array_is_computed_before_it_is_read(text, normalisation):
    """An array that another one of the same pass is made of, and that an operator reads as well."""
    system = rd.parse(text)
    op = GRAPHS["random"].operator(normalisation, dtype=F64)
    field = rd.lower(system, op, values_for(system, 40, 2))
    H = random(40, 2 * len(system.fields), seed=7)
    torch.testing.assert_close(compile_field(field, 2)(0.0, H), field(0.0, H), rtol=1e-10, atol=1e-10)


GRAPHS = {
    "periodic grid": rd.generators.grid(9, 30, periodic=True),
    "grid": rd.generators.grid(6, 20),
    "ring": rd.generators.ring(40),
    "star": rd.generators.star(9),
    "random": rd.generators.erdos_renyi(40, 0.2, 0),
    "isolated nodes": rd.Graph.from_edges([[0, 1, 5, 6], [1, 0, 6, 5]], num_nodes=12),
    "directed": rd.Graph.from_edges([[0, 1, 2, 3, 3], [1, 2, 3, 0, 1]], num_nodes=6),
    "no edges": rd.Graph.from_edges(np.zeros((2, 0), dtype=int), num_nodes=5),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column", "none"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.slow_cases(20)
@pytest.mark.slow
def test_graphs_normalisations_and_precisions(graph, normalisation, dtype):
    if not GRAPHS[graph].is_undirected and normalisation == "symmetric":
        pytest.skip("a symmetric normalisation is of undirected graphs")
    op = GRAPHS[graph].operator(normalisation, dtype=dtype)
    nodes = op.num_nodes
    for channels in (1, 2):
        text = "-alpha*L@H + beta*(A@H - A@A@H) + H*(1 - H**2)/(2 + tanh(A@H)) - 0.3*H0 + omega"
        system = rd.parse(text, {"omega": "node"})
        field = rd.lower(system, op, {"alpha": 0.7, "beta": 0.4, "omega": random(nodes, seed=1).to(dtype)})
        H, start = random(nodes, channels, seed=2).to(dtype), random(nodes, channels, seed=3).to(dtype)
        field = field.bind(start)
        expected = field(0.0, H)
        tolerance = 1e-13 if dtype is F64 else 2e-5
        torch.testing.assert_close(compile_field(field, channels)(0.0, H), expected, rtol=tolerance, atol=tolerance)


def test_free_weights_with_degrees():
    ring = rd.generators.ring(6).operator("row", dtype=F64)
    degree = random(6, 1, seed=4)
    op = ring.with_weights(random(ring.num_edges, seed=5), degree=degree)
    field, H = rd.lower("-alpha*L@H + A@L@H", op, {"alpha": 0.5}), random(6, 2)
    laplacian = torch.diag(degree[:, 0]) - op.dense()
    torch.testing.assert_close(compile_field(field, 2)(0.0, H), -0.5 * laplacian @ H + op.dense() @ laplacian @ H)


@pytest.mark.parametrize("name", list(rd.catalogue))
@pytest.mark.slow
def test_batched_fields_are_their_members(name):
    system, nodes, batch = rd.parse(name), 5, (2, 3)
    op = rd.generators.path(nodes).operator("row", dtype=F64)
    weights = op.weights * (1 + random(*batch, op.num_edges, seed=6).abs())
    values = values_for(system, nodes, 2, batch)
    width = 2 * len(system.fields)
    H, start = random(*batch, nodes, width, seed=7), random(*batch, nodes, width, seed=8)
    field = rd.lower(system, op.with_weights(weights), values, batch=batch).bind(start)
    found = compile_field(field, 2)(0.0, H)
    torch.testing.assert_close(found, field(0.0, H), rtol=1e-13, atol=1e-13)
    alone = compile_field(field.rebatched(4), 2)(0.0, H[1, 1])
    assert torch.equal(found[1, 1], alone)


def test_states_that_share_everything_need_no_batch():
    op = rd.generators.ring(7).operator("symmetric", dtype=F64)
    field, H = rd.lower("F", op, {"alpha": 1.0, "beta": 0.5}), random(3, 2, 7, 1)
    made = compile_field(field)
    torch.testing.assert_close(made(0.0, H), field(0.0, H), rtol=1e-14, atol=1e-14)
    spread = H.transpose(0, 1)
    assert torch.equal(made(0.0, spread), made(0.0, spread.contiguous()))


def test_no_bit_depends_on_the_number_of_threads():
    op = rd.generators.grid(200, 210, periodic=True).operator("none", dtype=F64)
    made, H = compile_field(rd.lower("F", op, {"alpha": 1.0, "beta": 0.5})), random(200 * 210, 1)
    assert H.numel() > compiled_field.THREADED_ENTRIES
    before = torch.get_num_threads()
    try:
        found = [(torch.set_num_threads(n), made(0.0, H))[1] for n in (1, 2, 3)]
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.slow
def test_nan_and_infinity_stay_what_they_are():
    op = rd.generators.path(4).operator("row", dtype=F64)
    H = torch.tensor([[torch.nan], [1.0], [torch.inf], [-torch.inf]], dtype=F64)
    for function in ("tanh", "relu", "sigmoid", "exp", "abs", "softplus", "sin", "cos", "sqrt"):
        field = rd.lower(f"{function}(H)", op, {})
        torch.testing.assert_close(compile_field(field)(0.0, H), field(0.0, H), equal_nan=True)
    field = rd.lower("1/H + H**(-3) + H**9 - A@H", op, {})
    H[0] = 0.0
    torch.testing.assert_close(compile_field(field)(0.0, H), field(0.0, H), equal_nan=True)


# ---------------------------------------------------------------------- several fields
SEVERAL = [
    "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v",
    "u' = -Du*L@u - u*v**2 + a*(1 - u); v' = -Dv*L@v + u*v**2 - b*v",
    "u' = A@(u*v) - A@A@u + u0; v' = tanh(A@(u*v)) + beta*v*u0 - L@v + 0.1*v0",
    "H'' = -gamma*H - alpha*H' + tanh(A@H)",
    "u' = -alpha*exp(-t)*L@u + beta*sin(gamma*t)*u*v; v' = t*u - v",
    "c1' = -L@c1 + c1*x1; x1' = p*(A@c1) - x1; p' = c1 - p",
    "double' = A@double - A_u; A_u' = A@u + u*double; u' = -L@A_u",
    "complex' = A@complex - linux; linux' = A@WIDTH + WIDTH*complex; WIDTH' = -L@linux",
]


@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("text", SEVERAL)
def test_several_fields_are_one_kernel(text, channels, normalisation):
    system = rd.parse(text, dict.fromkeys(("a", "b"), "scalar") if " a" in text else None)
    op = rd.generators.grid(5, 12, periodic=True).operator(normalisation, dtype=F64)
    width = channels * len(system.fields)
    H, start = random(60, width, seed=9), random(60, width, seed=10)
    values = values_for(system, 60, channels)
    field = rd.lower(system, op, values).bind(start)
    found = compile_field(field, channels)(0.7, H)
    expected = dense(system, op, values, H, start, t=0.7)
    assert np.abs(found.numpy() - expected).max() <= 1e-12 * (1 + np.abs(expected).max())
    torch.testing.assert_close(found, field(0.7, H), rtol=1e-12, atol=1e-12)


def test_operators_and_fields_whose_names_run_together_are_distinguished():
    system = rd.parse("u_xy' = A@u_xy - xy; xy' = A_u@xy + A@u_xy where A_u operator")
    ring, path = (make(12).operator("row", dtype=F64) for make in (rd.generators.ring, rd.generators.path))
    field, H = rd.lower(system, ring, {}, operators={"A_u": path}), random(12, 2)
    torch.testing.assert_close(compile_field(field)(0.0, H), field(0.0, H), rtol=1e-13, atol=1e-13)


def test_a_number_is_no_state():
    made = compile_field(rd.lower("-L@H", rd.generators.ring(4).operator("row", dtype=F64), {}))
    with pytest.raises(InvalidArgument, match="expected a state of shape"):
        made(0.0, torch.tensor(1.0, dtype=F64))


def test_members_may_have_different_times():
    system = rd.parse("u' = -exp(-t)*L@u + v; v' = sin(t)*u")
    op = rd.generators.ring(6).operator("symmetric", dtype=F64)
    field, H = rd.lower(system, op, {}, batch=(3,)), random(3, 6, 2)
    t = torch.tensor([0.1, 0.5, 2.0], dtype=F64)
    made = compile_field(field)
    torch.testing.assert_close(made(t, H), field(t, H), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(made(t[:, None, None], H), field(t, H), rtol=1e-13, atol=1e-13)
    with pytest.raises(InvalidArgument, match="expected a time, since"):
        made(None, H)
    with pytest.raises(InvalidArgument, match="got 2"):
        made(t[:2], H)


def test_a_second_operator_has_other_rows():
    system = rd.parse("H' = -alpha*L@H + beta*B@tanh(H) + B@A@H where B operator")
    op = rd.generators.ring(8).operator("row", dtype=F64)
    other = rd.graphs.Operator.from_csr(
        [0, 1, 2, 2, 2, 2, 2, 2, 3], [3, 0, 7], torch.tensor([2.0, -1.0, 0.5], dtype=F64)
    )
    made = compile_field(rd.lower(system, op, {"alpha": 0.3, "beta": 0.9}, operators={"B": other}), 2)
    H, A, B = random(8, 2), op.dense(), other.dense()
    torch.testing.assert_close(made(0.0, H), -0.3 * (H - A @ H) + 0.9 * B @ torch.tanh(H) + B @ A @ H)


# ---------------------------------------------------------------------- what is stored, and the source
def test_a_reaction_and_its_diffusion_are_one_pass_and_nothing_is_stored():
    op = rd.generators.grid(8, 40, periodic=True).operator("none", dtype=F64)
    source = compile_field(rd.lower("-alpha*L@H + beta*H*(1 - H)", op, {"alpha": 1.0, "beta": 2.0})).source
    assert source.startswith("// -alpha*L@H + beta*H*(1 - H)\n// c0 = ")
    assert "STORED = 0" in source
    assert "pass_2" not in source
    assert "A_offsets" in source  # a grid is read without column numbers
    assert "A_columns" not in source


def test_words_of_two_letters_store_one_array():
    op = rd.generators.erdos_renyi(30, 0.2, 0).operator("row", dtype=F64)
    source = compile_field(rd.lower("A@A@H - A@H + tanh(A@H)", op, {})).source
    assert "STORED = 1" in source
    assert "pass_3" not in source
    assert "A_columns" in source


def test_one_product_takes_several_fields_where_that_is_cheaper():
    op = rd.generators.erdos_renyi(30, 0.2, 0).operator("row", dtype=F64)
    field, H = rd.lower("A@tanh(H) + 2*A@sin(H) - A@H", op, {}), random(30, 1)
    made = compile_field(field)
    assert made.source.count("+= weight * p->") == 1
    torch.testing.assert_close(made(0.0, H), field(0.0, H), rtol=1e-13, atol=1e-13)


def test_registered_functions():
    op, H = rd.generators.path(4).operator("row", dtype=F64), random(4, 1)
    rd.register_function("swish_in_c", "x/(1 + exp(-x))")
    rd.register_function("gelu_in_c", "x*(1 + erf(x/sqrt(2)))/2", slope=(-1, 2))
    try:
        for name in ("swish_in_c", "gelu_in_c"):
            field = rd.lower(f"{name}(H) - L@H", op, {})
            torch.testing.assert_close(compile_field(field)(0.0, H), field(0.0, H), rtol=1e-13, atol=1e-13)
    finally:
        rd.vocabulary.unregister_function("swish_in_c")
        rd.vocabulary.unregister_function("gelu_in_c")


def test_weights_that_are_changed_in_place_are_seen():
    op = rd.generators.ring(30).operator("row", dtype=F64)
    field, H = rd.lower("A@H", op, {}), random(30, 1)
    assert "A_offsets" in compile_field(field).source
    op.weights[3] = 7.0
    torch.testing.assert_close(compile_field(field)(0.0, H), op.dense() @ H)


def test_values_are_those_of_the_time_of_compiling():
    op = rd.generators.path(4).operator("row", dtype=F64)
    alpha, H = torch.tensor(1.0, dtype=F64), random(4, 1)
    field = rd.lower("diffusion", op, {"alpha": alpha})
    made = compile_field(field)
    before = made(0.0, H).clone()
    alpha.fill_(3.0)
    torch.testing.assert_close(compile_field(field)(0.0, H), 3 * before)


def test_the_result_is_written_to_out():
    op = rd.generators.path(4).operator("row", dtype=F64)
    field, H, out = rd.lower("diffusion", op, {"alpha": 1.0}), random(4, 1), torch.empty(4, 1, dtype=F64)
    assert compile_field(field)(0.0, H, out) is out
    torch.testing.assert_close(out, field(0.0, H))
    for wrong in (torch.empty(4, 2, dtype=F64), torch.empty(4, 1), torch.empty(1, 4, dtype=F64).T[:, :0]):
        with pytest.raises(InvalidArgument, match="expected out"):
            compile_field(field)(0.0, H, wrong)


# ---------------------------------------------------------------------- what is refused
def test_what_is_not_compiled_says_why():
    op = rd.generators.path(4).operator("row", dtype=F64)
    field = rd.lower("diffusion", op, {"alpha": 1.0})
    assert why_not_compiled(field) == ""
    trained = rd.lower("diffusion", op, {"alpha": torch.tensor(1.0, dtype=F64, requires_grad=True)})
    assert why_not_compiled(trained) == "a gradient is needed"
    with pytest.raises(InvalidArgument, match="gradient"):
        compile_field(trained)
    with torch.no_grad():
        assert why_not_compiled(trained) == ""
    half = rd.lower("diffusion", op.to(dtype=torch.bfloat16), {"alpha": 1.0})
    assert why_not_compiled(half) == "its numbers are torch.bfloat16"
    H = random(4, 1)
    with torch.autograd.forward_ad.dual_level():
        assert why_not_compiled(field, H) == "calls are traced or transformed by torch"
    seen = []
    torch.vmap(lambda x: seen.append(why_not_compiled(field, x)) or x)(H[None])
    assert seen == ["calls are traced or transformed by torch"]
    assert "not a field made by lower" in why_not_compiled(torch.nn.Identity())  # type: ignore[arg-type]


def test_states_that_do_not_fit_are_refused():
    made = compile_field(rd.lower("diffusion", rd.generators.path(4).operator("row", dtype=F64), {"alpha": 1.0}), 2)
    for state in (random(4, 1), random(5, 2), random(4, 2).float(), random(2)):
        with pytest.raises(InvalidArgument, match=r"expected a state of shape \(\.\.\., 4, 2\)"):
            made(0.0, state)
    with pytest.raises(InvalidArgument, match="expected 1 to 1024 channels, got 0"):
        compile_field(made_field(), 0)


def made_field() -> rd.run.VectorField:
    return rd.lower("diffusion", rd.generators.path(4).operator("row", dtype=F64), {"alpha": 1.0})


def test_a_start_has_to_be_known():
    field = rd.lower("-alpha*L@H + H0", rd.generators.path(4).operator("row", dtype=F64), {"alpha": 1.0})
    with pytest.raises(InvalidArgument, match=r"call field\.bind\(H0\) first"):
        compile_field(field)


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert why_not_compiled(made_field()) == "there is no C compiler"
    with pytest.raises(MissingDependency, match="install gcc or clang"):
        compile_field(made_field())
