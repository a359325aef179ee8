"""Several fields: packed field = dense interpreter = its members, products shared, time, starts, further operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

import rdgraph as rd
from rdgraph.errors import InvalidArgument, RdgraphError, UnknownName
from rdgraph.language.reader import start_of
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.theory.equality.dense_oracle import evaluate
from tests.adversary.lowered_attacks import attacked, drawn
from tests.adversary.lowered_systems import LoweredSystem
from tests.property_examples import examples

NODES, CHANNELS = 5, 3
GRAPH = rd.generators.erdos_renyi(NODES, 0.6, 1)
NORMALISATIONS = ("symmetric", "row", "column", "none")
F64 = torch.float64

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
EPIDEMIC = "S' = -beta*S*(A@J); J' = beta*S*(A@J) - gamma*J; Z' = gamma*J"
OSCILLATORS = "H'' = -gamma*H - alpha*H' + tanh(A@H)"
SEASONS = "u' = -alpha*exp(-t)*L@u + beta*sin(omega*t)*v; v' = u - t*v"
KINDS = "u' = k*L@v + m*u + A@(u*v)@W + M*(u0 - u); v' = tanh(A@A@u) - k*v + A@v0 where k channel, m node"
WIND = "u' = -alpha*L@u + beta*B@u - u*v; v' = B@A@v + u where B antisymmetric"
SYSTEMS = (SCHNAKENBERG, EPIDEMIC, OSCILLATORS, SEASONS, KINDS, WIND)

_FACTORS = ("", "alpha*", "-beta*", "k*", "m*", "exp(-t)*", "M*", "-2*")
_TERMS = (
    "{f}", "{g}", "{f}*{g}", "A@{f}", "L@{g}", "A@A@{f}", "tanh(A@{g})", "{f}**2*{g}", "A@({f}*{g})", "{f}*(L@{g})",
    "{f}0", "A@{g}0", "sin({f})", "L@L@{f}", "{f}@W", "(A@{g})@W", "{g}/(1 + {f}**2)", "exp(-{g}**2)",
)  # fmt: skip


@st.composite
def several_fields(draw: st.DrawFn) -> rd.System:
    """Two or three equations whose terms are drawn from a list, each with a factor of some kind."""
    names = ("u", "v", "w")[: draw(st.integers(2, 3))]
    lines = []
    for name in names:
        pieces = []
        for _ in range(draw(st.integers(1, 4))):
            term = draw(st.sampled_from(_TERMS)).format(f=name, g=draw(st.sampled_from(names)))
            pieces.append(f"{draw(st.sampled_from(_FACTORS))}({term})")
        lines.append(f"{name}' = {' + '.join(pieces)}")
    return rd.parse("; ".join(lines), {"k": "channel", "m": "node"})


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def antisymmetric(seed: int = 7) -> np.ndarray:
    matrix = random(NODES, NODES, seed=seed).numpy()
    return matrix - matrix.T


def values_for(system: rd.System, batch: tuple[int, ...] = (), channels: int = CHANNELS) -> dict[str, Tensor]:
    own = {"scalar": (), "channel": (channels,), "node": (NODES,), "matrix": (channels, channels)}
    letters = valued_letters(system).items()
    return {n: random(*batch, *own[str(k)], seed=i).abs() + 0.1 for i, (n, k) in enumerate(letters)}


def wind(system: rd.System) -> dict[str, Any]:
    return {name: antisymmetric() for name in system.operators.names}


def made(text: str, normalisation: str = "row", batch: tuple[int, ...] = ()) -> tuple[VectorField, Tensor, Tensor]:
    """A field bound to its start, a state and the start."""
    system = rd.parse(text)
    op = GRAPH.operator(normalisation, dtype=F64)
    field = rd.lower(system, op, values_for(system, batch), batch=batch, operators=wind(system))
    width = len(system.fields) * CHANNELS
    H, start = (random(*batch, NODES, width, seed=k) for k in (50, 51))
    return field.bind(start), H, start


def oracle(
    system: rd.System, op: rd.graphs.Operator, values: dict[str, Tensor], t: float, H: Tensor, start: Tensor
) -> np.ndarray:
    """The dense interpreter, equation by equation, side by side."""
    kinds = system.letters
    known: dict[str, Any] = {n: v.numpy()[:, None] if str(kinds[n]) == "node" else v.numpy() for n, v in values.items()}
    matrix = op.dense().numpy()
    known |= {"A": matrix, "I": np.eye(NODES), "t": t, **wind(system)}
    if op.degree is not None:
        known["L"] = np.diag(op.degree.numpy().ravel()) - matrix
    width = H.shape[-1] // len(system.fields)
    for k, name in enumerate(system.fields):
        block = slice(k * width, (k + 1) * width)
        known |= {name: H[:, block].numpy(), start_of(name): start[:, block].numpy()}
    with np.errstate(all="ignore"):
        parts = [np.asarray(evaluate(tree, known), dtype=float) for tree in system.flow.values()]
    return np.concatenate([np.broadcast_to(part, (NODES, width)) for part in parts], -1)


# ---------------------------------------------------------------------- the same numbers
@given(several_fields(), st.sampled_from(NORMALISATIONS), st.sampled_from([0.0, 0.7]))
@settings(max_examples=examples(100))
def test_every_system_lowers_to_the_dense_interpreter(system: rd.System, normalisation: str, t: float) -> None:
    op, values = GRAPH.operator(normalisation, dtype=F64), values_for(system)
    H, start = (random(NODES, len(system.fields) * CHANNELS, seed=k) for k in (50, 51))
    expected = oracle(system, op, values, t, H, start)
    assume(np.isfinite(expected).all())
    found = rd.lower(system, op, values).bind(start)(t, H)
    assert np.abs(found.numpy() - expected).max() <= 1e-12 * (1 + np.abs(expected).max())


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("text", SYSTEMS)
def test_the_field_is_the_dense_interpreter(text: str, normalisation: str) -> None:
    field, H, start = made(text, normalisation)
    values = values_for(field.system)
    expected = oracle(field.system, field.operator, values, 0.3, H, start)
    np.testing.assert_allclose(field(0.3, H).numpy(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(field.prepared()(0.3, H).numpy(), expected, rtol=1e-12, atol=1e-12)


@given(several_fields())
@settings(max_examples=examples(25))
def test_the_jacobian_is_that_of_difference_quotients_of_the_interpreter(system: rd.System) -> None:
    op, values = GRAPH.operator("row", dtype=F64), values_for(system, channels=1)
    H, start, way = (random(NODES, len(system.fields), seed=k) for k in (50, 51, 52))
    field = rd.lower(system, op, values).bind(start)
    _, found = torch.autograd.functional.jvp(lambda x: field(0.2, x), H, way)
    ahead, behind = (oracle(system, op, values, 0.2, H + h * way, start) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(found.numpy(), (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", SYSTEMS)
def test_nodes_may_be_renamed(text: str) -> None:
    order = torch.tensor([2, 0, 4, 3, 1])
    system, H = rd.parse(text), random(NODES, len(rd.parse(text).fields) * CHANNELS, seed=3)
    values, turned = values_for(system), wind(system)
    other = {n: v[order] if str(system.letters[n]) == "node" else v for n, v in values.items()}
    others = {n: m[order][:, order] for n, m in turned.items()}
    one = rd.lower(system, GRAPH.operator("row", dtype=F64), values, operators=turned).bind(H)
    two = rd.lower(system, GRAPH.permute(order.tolist()).operator("row", dtype=F64), other, operators=others)
    torch.testing.assert_close(one(0.3, H)[order], two.bind(H[order])(0.3, H[order]), rtol=1e-13, atol=1e-13)


# ---------------------------------------------------------------------- batches
@pytest.mark.parametrize("text", SYSTEMS)
def test_batched_fields_are_their_members(text: str) -> None:
    field, H, start = made(text, batch=(2, 3))
    values = values_for(field.system, (2, 3))
    times = random(2, 3, seed=8).abs()
    found = field(times, H)
    for i, j in np.ndindex(2, 3):
        own = {n: v[i, j] for n, v in values.items()}
        alone = rd.lower(field.system, field.operator, own, operators=wind(field.system)).bind(start[i, j])
        torch.testing.assert_close(found[i, j], alone(float(times[i, j]), H[i, j]), rtol=1e-13, atol=1e-13)
        one = field.rebatched(3 * i + j)
        torch.testing.assert_close(one(times[i, j], H[i, j]), found[i, j], rtol=1e-13, atol=1e-13)
    some = torch.tensor([5, 0, 2])
    state, wanted = (x.reshape(6, NODES, -1)[some] for x in (H, found))
    torch.testing.assert_close(field.members(some)(times.flatten()[some], state), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("text", [SCHNAKENBERG, EPIDEMIC, OSCILLATORS])
def test_members_do_not_notice_their_neighbours(text: str) -> None:
    field, H, _ = made(text, batch=(3,))
    before = field(0.0, H)
    H[1] = torch.nan
    assert torch.equal(field(0.0, H)[[0, 2]], before[[0, 2]])


def test_members_may_have_their_own_weights_of_every_operator() -> None:
    system = rd.parse(WIND)
    op, other = GRAPH.operator("row", dtype=F64), made(WIND)[0].further.entries["B"]
    weights, winds = (x.weights * random(4, 1, seed=k) for k, x in enumerate((op, other)))
    values = values_for(system, (4,))
    field = rd.lower(system, op.with_weights(weights), values, batch=(4,), operators={"B": other.with_weights(winds)})
    H = random(4, NODES, 2)
    some = field.members(torch.tensor([3, 1]))(None, H[[3, 1]])
    for k in range(4):
        own = {n: v[k] for n, v in values.items()}
        operators = {"B": other.with_weights(winds[k])}
        alone = rd.lower(system, op.with_weights(weights[k]), own, operators=operators)(None, H[k])
        torch.testing.assert_close(field(None, H)[k], alone, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(field.rebatched(k)(None, H[k]), alone, rtol=1e-13, atol=1e-13)
        if k in (1, 3):
            torch.testing.assert_close(some[(3, 1).index(k)], alone, rtol=1e-13, atol=1e-13)


def test_fields_without_a_batch_take_any_axes_in_front() -> None:
    field, _, _ = made(SCHNAKENBERG)
    H = random(4, 2, NODES, 2 * CHANNELS)
    found = field.spread((4, 2))(None, H)
    torch.testing.assert_close(found[3, 1], field(None, H[3, 1]), rtol=1e-14, atol=1e-14)


# ---------------------------------------------------------------------- products
@pytest.mark.parametrize(
    ("text", "products", "widths"),
    [
        (SCHNAKENBERG, 1, [2]),
        (EPIDEMIC, 1, [1]),
        (OSCILLATORS, 1, [1]),
        (SEASONS, 1, [1]),
        ("u' = -L@u + A@v; v' = -L@v + A@u", 1, [2]),
        ("u' = -L@L@u; v' = -L@v", 2, [2, 2]),
        ("u' = -L@L@u + v; v' = u; w' = -v", 2, [1, 1]),
        ("u' = A@(u*v) + A@u; v' = A@v - u", 2, None),
        ("u' = v; v' = -u*v", 0, []),
    ],
)
def test_products_are_counted_and_shared(
    text: str, products: int, widths: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = rd.parse(text)
    field = rd.lower(system, GRAPH.operator("row", dtype=F64), values_for(system))
    assert field.plan.products == products
    seen: list[int] = []
    product = rd.graphs.Operator.product

    def counted(self: rd.graphs.Operator, x: Tensor, *rest: Any) -> Tensor:
        seen.append(x.shape[-1])
        return product(self, x, *rest)

    monkeypatch.setattr(rd.graphs.Operator, "product", counted)
    field(0.5, random(NODES, len(system.fields)))
    assert len(seen) == products
    assert widths is None or seen == widths


@pytest.mark.parametrize("text", [SCHNAKENBERG, EPIDEMIC, OSCILLATORS, KINDS])
def test_the_source_runs_on_its_own(text: str) -> None:
    field, H, start = made(text)
    alone: dict[str, Any] = {}
    exec(field.source, alone)
    one = torch.ones((), dtype=F64)
    numbers = alone["coefficients"](one, CHANNELS, *(field.coefficients[n] for n in field._stages.names))
    numbers = [torch.as_tensor(x, dtype=F64) for x in numbers]
    known = {"[state]": H, "[start]": start, "A": alone["plain"](field.operator.dense()), **field.coefficients}
    arguments = [known[a] for a in field._stages.field.arguments]
    torch.testing.assert_close(alone["field"](0.0, *arguments, *numbers), field(0.0, H))


# ---------------------------------------------------------------------- gradients, precision, torch
@pytest.mark.parametrize("text", [SCHNAKENBERG, OSCILLATORS, SEASONS, KINDS])
def test_gradients_reach_states_coefficients_and_edges(text: str) -> None:
    system, op = rd.parse(text), GRAPH.operator("row", dtype=F64)
    values = {n: v.requires_grad_(True) for n, v in values_for(system, channels=1).items()}
    H = random(NODES, len(system.fields)).requires_grad_(True)

    def run(weights: Tensor, state: Tensor, *coefficients: Tensor) -> Tensor:
        named = dict(zip(values, coefficients, strict=True))
        return rd.lower(system, op.with_weights(weights), named).bind(state)(0.4, state)

    assert gradcheck(run, [op.weights.clone().requires_grad_(True), H, *values.values()], fast_mode=True)


@pytest.mark.parametrize("text", [SCHNAKENBERG, EPIDEMIC, OSCILLATORS])
@pytest.mark.slow
def test_compiled_equals_eager(text: str) -> None:
    field, H, _ = made(text)
    compiled = torch.compile(field, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(0.0, H), field(0.0, H))


@pytest.mark.parametrize("text", SYSTEMS)
def test_storage_in_bfloat16_keeps_coefficients_in_float32(text: str) -> None:
    exact, H, start = made(text)
    op = exact.operator.to(dtype=torch.bfloat16)
    field = rd.lower(exact.system, op, values_for(exact.system), operators=wind(exact.system))
    assert all(value.dtype == torch.float32 for value in field.coefficients.values())
    found = field.bind(start.bfloat16())(0.3, H.bfloat16())
    assert found.dtype == torch.bfloat16
    wanted = exact(0.3, H)
    assert (found.double() - wanted).norm() / wanted.norm() < 3e-2


def test_a_field_changes_precision_with_its_operators() -> None:
    field, H, _ = made(WIND)
    wanted = field(None, H)
    moved = field.to(torch.float32)
    assert moved.further.entries["B"].dtype == torch.float32
    torch.testing.assert_close(moved(None, H.float()).double(), wanted, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------------- parts
def test_the_forcing_is_what_remains_without_the_states() -> None:
    field, _, start = made("u' = a - u + A@u0; v' = -u*v + 2*v0")
    u, v = start.chunk(2, -1)
    expected = torch.cat([field.coefficients["a"] + field.operator @ u, 2 * v], -1)
    torch.testing.assert_close(field.forcing(), expected)
    assert made("u' = -v; v' = u")[0].forcing() is None


def test_blocks_pack_and_cut_states() -> None:
    field, _, _ = made(OSCILLATORS)
    H = random(NODES, CHANNELS)
    packed = field.blocks.pack({"H": H})
    assert torch.equal(packed, torch.cat([H, torch.zeros_like(H)], -1))
    assert torch.equal(field.blocks.block(packed, "H"), H)
    assert torch.equal(field.blocks.pack({"H'": H, "H": H + 1}), torch.cat([H + 1, H], -1))


@pytest.mark.parametrize("form", ["operator", "sparse", "dense", "tensor"])
def test_further_operators_come_in_several_forms(form: str) -> None:
    matrix = antisymmetric()
    given_as = {
        "operator": made(WIND)[0].further.entries["B"],
        "sparse": scipy.sparse.coo_array(matrix),
        "dense": matrix,
        "tensor": torch.from_numpy(matrix),
    }[form]
    system = rd.parse("H' = B@H where B antisymmetric")
    field = rd.lower(system, GRAPH.operator("row", dtype=F64), {}, operators={"B": given_as})
    H = random(NODES, 2)
    torch.testing.assert_close(field(None, H), torch.from_numpy(matrix) @ H)


def test_an_operator_without_entries_is_zero() -> None:
    system = rd.parse("H' = B@H - H where B antisymmetric")
    field = rd.lower(system, GRAPH.operator("row", dtype=F64), {}, operators={"B": np.zeros((NODES, NODES))})
    H = random(NODES, 2)
    assert torch.equal(field(None, H), -H)


@pytest.mark.parametrize(
    ("word", "matrix"),
    [("symmetric", antisymmetric()), ("antisymmetric", np.eye(NODES)), ("stochastic", 2 * np.eye(NODES)),
     ("stochastic", np.eye(NODES) + antisymmetric())],
)  # fmt: skip
def test_declared_properties_of_an_operator_are_checked(word: str, matrix: np.ndarray) -> None:
    system = rd.parse(f"H' = B@H where B {word}")
    with pytest.raises(InvalidArgument, match=f"expected B to be {word}"):
        rd.lower(system, GRAPH.operator("row", dtype=F64), {}, operators={"B": matrix})
    true = {"symmetric": np.ones((NODES, NODES)), "antisymmetric": antisymmetric(), "stochastic": np.eye(NODES)}[word]
    rd.lower(system, GRAPH.operator("row", dtype=F64), {}, operators={"B": true})


# ---------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: f(None, random(NODES, 3)), InvalidArgument, "expected a multiple of 2 channels"),
        (lambda f: f(None, random(NODES + 1, 2)), InvalidArgument, "expected a state tensor"),
        (lambda f: f.blocks.pack({"u": random(NODES, 1)}), InvalidArgument, "got none for v"),
        (lambda f: f.blocks.pack({"u": random(NODES, 1), "w": random(NODES, 1)}), UnknownName, "w"),
        (lambda f: f.blocks.pack({"u": random(NODES, 1), "v": random(NODES, 2)}), InvalidArgument, "states of one"),
        (lambda f: f.blocks.pack({"u": random(NODES, 1), "v": 3.0}), InvalidArgument, "expected v as a tensor"),
        (lambda f: f.blocks.block(random(NODES, 2), "w"), UnknownName, "w"),
    ],
)
def test_states_that_do_not_fit_are_refused(change: Any, error: type[RdgraphError], words: str) -> None:
    with pytest.raises(error, match=words):
        change(made(SCHNAKENBERG)[0])


@pytest.mark.parametrize(
    ("operators", "error", "words"),
    [
        ({}, InvalidArgument, "got none for B"),
        ({"B": antisymmetric(), "C": np.eye(NODES)}, UnknownName, "C"),
        ({"B": np.zeros((2, 2))}, InvalidArgument, f"expected B on {NODES} nodes"),
        ({"B": "wind"}, InvalidArgument, "expected B as an Operator"),
    ],
)
def test_operators_that_do_not_fit_are_refused(operators: Any, error: type[RdgraphError], words: str) -> None:
    system = rd.parse(WIND)
    with pytest.raises(error, match=words):
        rd.lower(system, GRAPH.operator("row", dtype=F64), values_for(system), operators=operators)


def test_a_field_of_time_asks_for_one() -> None:
    field, H, _ = made(SEASONS)
    with pytest.raises(InvalidArgument, match="expected a time"):
        field(None, H)
    with pytest.raises(InvalidArgument, match=r"expected a time \(\) or"):
        field(torch.zeros(3), H)


# ---------------------------------------------------------------------- what cancels
_CANCELLING = ("({x} - {x})", "(({x} + {y}) - {y} - {x})", "({x}@{y} - {x}@{y})", "(({x} + ({y} - {y})) - {x})")
_AROUND = (
    "({body})@W", "(L@{body})@W", "(A@w)*((L@{body})@W)", "A@({body}@(W + Q))", "({body} + omega)@W", "rho*({body}@W)",
    "({body}@W)@Q", "{body}",
)  # fmt: skip


@given(
    st.sampled_from(_CANCELLING), st.sampled_from(_AROUND), st.sampled_from(("softplus", "cos", "exp", "tanh", "abs")),
    st.tuples(*[st.sampled_from(("A", "L", "I", "B", "A**2"))] * 2), st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=examples(40))
def test_what_cancels_leaves_a_constant_with_the_channels_of_one_field(cancelling, around, function, letters, seed):
    zero = cancelling.format(x=letters[0], y=letters[1])
    body = f"{function}({zero}@w)"
    rights = {"u": f"-kn*(L@w) - gamma*(A@u) + {body}", "v": f"alpha*M*((L + A)@v) + {body}"}
    rights["w"] = around.format(body=body)
    for names, orders in ((("u", "v", "w"), (2, 1, 1)), (("w",), (1,))):
        system = LoweredSystem(tuple((name, rights[name]) for name in names), orders)
        rng = np.random.default_rng(seed)
        found = list(attacked(drawn(rng, system), rng, is_compiled=False))
        assert [verdict for verdict in found if verdict.status not in ("held", "rounded", "skipped")] == []
