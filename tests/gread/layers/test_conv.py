"""`GREADConv` against dense float64 matrices and the classifier's own network; its gradients and precisions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

import rdgraph as rd
from gread.layers.conv import GREADConv
from gread.models.features import Features
from gread.models.gread_model import GREAD
from gread.models.place import Place
from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import InvalidArgument
from rdgraph.run.solvers.polynomial_flow import LinearFlow
from tests.gread.layers.small_layers import CHANNELS, DIRECTED, NODES, PATH, make_layer, make_state


def dense_adjacency(edges: Tensor, weight: np.ndarray, nodes: int = NODES) -> np.ndarray:
    matrix = np.zeros((nodes, nodes))
    np.add.at(matrix, (edges[1].numpy(), edges[0].numpy()), weight)
    return matrix


def normalised(matrix: np.ndarray, kind: str) -> np.ndarray:
    degree = matrix.sum(axis=0 if kind == "column" else 1)
    degree = np.where(degree > 0, degree, 1.0)
    return {
        "row": matrix / degree[:, None],
        "column": matrix / degree[None, :],
        "symmetric": matrix / np.sqrt(np.outer(degree, degree)),
    }[kind]


def dense_attention(layer: GREADConv, x: np.ndarray, edges: Tensor, loops: bool) -> np.ndarray:
    """Row softmax of scaled dot products on the edges, the mean over heads, by hand."""
    nodes, heads = len(x), layer.config.heads
    query, key = (
        (x @ m.weight.detach().numpy().T + m.bias.detach().numpy()).reshape(nodes, heads, -1)
        for m in (layer.query, layer.key)
    )
    joined = dense_adjacency(edges, np.ones(edges.shape[1]), nodes) + loops * np.eye(nodes) > 0
    result = np.zeros((nodes, nodes))
    for h in range(heads):
        raised = np.where(joined, np.exp(query[:, h] @ key[:, h].T / np.sqrt(query.shape[-1])), 0.0)
        total = raised.sum(axis=1, keepdims=True)
        result += raised / np.where(total > 0, total, 1.0) / heads
    return result


def blurring_sharpening(layer: GREADConv, A: np.ndarray, x: np.ndarray, time: float) -> np.ndarray:
    """expm of -alpha L + beta (A - A^2), channel by channel."""
    values = {k: v.detach().numpy() for k, v in layer.coefficients().items()}
    out = np.empty_like(x)
    for c, beta in enumerate(values["beta"]):
        generator = -values["alpha"] * (np.eye(len(A)) - A) + beta * (A - A @ A)
        out[:, c] = scipy.linalg.expm(time * generator) @ x[:, c]
    return out


# ---------------------------------------------------------------------- against dense matrices
@pytest.mark.parametrize("self_loops", [0.0, 0.5])
@pytest.mark.parametrize(("kind", "edges"), [("row", DIRECTED), ("column", DIRECTED), ("symmetric", PATH)])
def test_original_adjacency_is_the_matrix_exponential(kind: str, edges: Tensor, self_loops: float) -> None:
    layer = make_layer(adjacency="original", normalisation=kind, self_loops=self_loops, time=1.7)
    weight = torch.linspace(0.5, 2.0, edges.shape[1], dtype=torch.float64)
    if kind == "symmetric":
        weight = weight.view(-1, 2)[:, :1].expand(-1, 2).reshape(-1)
    x = make_state()
    A = normalised(dense_adjacency(edges, weight.numpy()) + self_loops * np.eye(NODES), kind)
    expected = blurring_sharpening(layer, A, x.numpy(), 1.7)
    torch.testing.assert_close(layer(x, edges, weight), torch.tensor(expected), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(layer.operator(x, edges, weight).dense(), torch.tensor(A), rtol=1e-14, atol=1e-15)


def test_without_normalisation_the_laplacian_is_d_minus_a() -> None:
    layer = make_layer("-alpha*L@H", adjacency="original", normalisation="none", self_loops=0.0, time=0.8)
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0, 0.5, 0.5], dtype=torch.float64)
    A = dense_adjacency(PATH, weight.numpy())
    generator = -layer.coefficients()["alpha"].item() * (np.diag(A.sum(1)) - A)
    expected = torch.tensor(scipy.linalg.expm(0.8 * generator)) @ make_state()
    torch.testing.assert_close(layer(make_state(), PATH, weight), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("self_loops", [0.0, 1.0])
def test_soft_adjacency_is_attention_on_the_edges(self_loops: float) -> None:
    layer = make_layer(self_loops=self_loops, time=1.3)
    x = make_state()
    A = dense_attention(layer, x.numpy(), DIRECTED, self_loops > 0)
    torch.testing.assert_close(layer.operator(x, DIRECTED).dense(), torch.tensor(A), rtol=1e-13, atol=1e-14)
    expected = blurring_sharpening(layer, A, x.numpy(), 1.3)
    torch.testing.assert_close(layer(x, DIRECTED), torch.tensor(expected), rtol=1e-11, atol=1e-12)


def test_live_attention_follows_the_state() -> None:
    layer = make_layer("-alpha*L@H", adjacency="live", method="euler", step=0.5, time=1.0)
    alpha = layer.coefficients()["alpha"].item()
    H = make_state().numpy()
    for _ in range(2):
        H = H - 0.5 * alpha * (H - dense_attention(layer, H, DIRECTED, True) @ H)
    torch.testing.assert_close(layer(make_state(), DIRECTED), torch.tensor(H), rtol=1e-12, atol=1e-13)
    frozen = make_layer("-alpha*L@H", adjacency="soft", method="euler", step=0.5, time=1.0)
    assert not torch.allclose(layer(make_state(), DIRECTED), frozen(make_state(), DIRECTED), atol=1e-4)


@pytest.mark.parametrize(
    "reaction", sorted(set(rd.catalogue.single) - {"GRAND++", "CGNN-authors", "CGNN-unweighted"})
)  # they have node vectors
@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_every_reaction_takes_its_steps(reaction: str, method: str) -> None:
    given = {"adjacency": "original", "normalisation": "row", "states": "free"}
    layer = make_layer(reaction, **given, method=method, step=0.25, time=0.6)
    operator = rd.Graph.from_edges(PATH, NODES).operator("row", self_loops=1.0, dtype=torch.float64)
    field = rd.lower(layer.system, operator, {k: v.detach() for k, v in layer.coefficients().items()})
    expected = rd.solve(field, make_state(), [0.0, 0.6], method, step=0.25).final
    torch.testing.assert_close(layer(make_state(), PATH), expected, rtol=1e-11, atol=1e-12)


def test_an_equation_of_ones_own_with_a_mixing_matrix() -> None:
    layer = make_layer("-alpha*L@H + tanh(H@W)", method="euler", step=1.0, normalisation="row", adjacency="original")
    assert layer.coefficients()["W"].shape == (CHANNELS, CHANNELS)
    x, W, alpha = make_state(), layer.coefficients()["W"], layer.coefficients()["alpha"]
    A = torch.tensor(normalised(dense_adjacency(PATH, np.ones(6)) + np.eye(NODES), "row"))
    torch.testing.assert_close(layer(x, PATH), x - alpha * (x - A @ x) + torch.tanh(x @ W), rtol=1e-12, atol=1e-13)
    system = rd.parse("-alpha*L@H + beta*(H - H*H*H)", {"beta": "channel"})
    assert GREADConv(CHANNELS, system, method="euler", step=1.0).system == system


def test_single_precision_keeps_single_precision() -> None:
    layer = make_layer(time=2.0)
    expected = layer(make_state(), DIRECTED)
    found = copy.deepcopy(layer).float()(make_state().float(), DIRECTED)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-6)


def test_it_is_the_layer_of_the_classifier() -> None:
    config = GreadSettings(hidden=CHANNELS, heads=2, attention_dim=4, time=1.4, reaction="ST")
    graph = rd.Graph.from_edges(PATH, NODES)
    network = GREAD(config, Place.of(graph), features=2, classes=2, seeds=[3])
    layer = GREADConv(CHANNELS, "ST", heads=2, attention_dim=4, time=1.4)
    with torch.no_grad():
        for name, linear in (("query", layer.query), ("key", layer.key)):
            linear.weight.copy_(getattr(network, f"{name}_weight")[0].T + 0.1)
            getattr(network, f"{name}_weight").add_(0.1)
            linear.bias.copy_(getattr(network, f"{name}_bias")[0])
        for name in ("alpha", "beta"):
            getattr(layer, f"coefficient_{name}").copy_(getattr(network, f"coefficient_{name}")[0])
    H0 = network.encode(Features.make(np.eye(NODES, 2)))
    time = torch.tensor([1.4], dtype=torch.float64)
    flow = network.flow(H0)
    H = network.evolve(H0, time, flow, flow.degree(network.field(H0), H0, time))[0]
    torch.testing.assert_close(layer(H0[0], PATH), H[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("settings", [{"adjacency": "original"}, {"adjacency": "soft"}], ids=str)
def test_it_takes_few_products(settings: dict[str, Any], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponential of a generator of size 2.4 takes some twenty terms, and not as many as there is noise for."""
    degrees = []
    original = LinearFlow.run

    def run(self: LinearFlow, *arguments: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
        degrees.append(self.degree)
        return original(self, *arguments, **options)

    monkeypatch.setattr(LinearFlow, "run", run)
    make_layer(**settings).to(dtype)(make_state().to(dtype), PATH)
    assert len(degrees) == 1
    assert 5 <= degrees[0] <= 40


# ---------------------------------------------------------------------- gradients
@pytest.mark.parametrize(
    "settings",
    [
        {"adjacency": "soft"},
        {"adjacency": "soft", "reaction": "AC", "method": "rk4", "step": 0.5},
        {"adjacency": "live", "method": "heun", "step": 0.5},
        {"adjacency": "original", "normalisation": "row"},
    ],
    ids=str,
)
def test_gradients_in_the_state_and_the_parameters(settings: dict[str, Any]) -> None:
    layer = make_layer(**settings)
    names = [name for name, _ in layer.named_parameters()]

    def call(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, DIRECTED))

    inputs = [make_state(), *(p.detach().clone() for p in layer.parameters())]
    assert torch.autograd.gradcheck(call, [t.requires_grad_() for t in inputs], atol=1e-7, fast_mode=True)
    layer(make_state(), DIRECTED).square().sum().backward()
    assert all(p.grad is not None and bool((p.grad != 0).any()) for p in layer.parameters())


@pytest.mark.parametrize("kind", ["row", "column", "none", "symmetric"])
def test_gradients_in_the_edge_weights(kind: str) -> None:
    layer = make_layer(adjacency="original", normalisation=kind, method="rk4", step=0.5)

    def call(weight: Tensor) -> Tensor:
        return layer(make_state(), PATH, weight.repeat_interleave(2))

    weight = torch.tensor([0.5, 1.5, 2.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(call, [weight], atol=1e-7)
    assert bool((torch.autograd.grad(call(weight)[0].square().sum(), weight)[0] != 0).any())


# ---------------------------------------------------------------------- precision
ROUTES = [
    {}, {"method": "euler", "step": 0.5}, {"adjacency": "original"}, {"reaction": "ST"},
    {"adjacency": "live", "method": "rk4", "step": 0.5}, {"reaction": "AC", "method": "dopri5"},
    {"reaction": "F", "method": "strang", "step": 0.5}, {"reaction": "CGNN", "method": "rk4", "step": 0.5},
    {"reaction": "diffusion", "adjacency": "original", "normalisation": "none"},
]  # fmt: skip


@pytest.mark.parametrize("settings", ROUTES, ids=str)
@pytest.mark.parametrize(("dtype", "size"), [(torch.bfloat16, 0.03), (torch.float16, 0.004)])
def test_half_precision_is_close_to_single(settings: dict[str, Any], dtype: torch.dtype, size: float) -> None:
    """All parameters converted, or float32 ones under autocast; the state has the precision of x."""
    torch.manual_seed(0)
    layer, x = GREADConv(CHANNELS, **settings), make_state().float()
    wanted = layer(x, PATH).detach()
    with torch.autocast("cpu", dtype):
        for given in (x, x.to(dtype)):
            found = layer(given, PATH)
            assert found.dtype == given.dtype
            assert float((found - wanted).detach().abs().max()) < size
    layer.to(dtype)
    found = layer(x.to(dtype), PATH)
    assert found.dtype == dtype
    assert float((found - wanted).detach().abs().max()) < size
    found.sum().backward()
    assert {p.grad.dtype for p in layer.parameters()} == {dtype}
    assert all(bool(torch.isfinite(p.grad).all()) for p in layer.parameters())


def test_degrees_of_hubs_are_counted_in_half_precision_too() -> None:
    """600 ones added in bfloat16 are 256."""
    leaves = torch.arange(1, 601)
    hub = torch.zeros_like(leaves)
    edges = torch.stack([torch.cat([leaves, hub]), torch.cat([hub, leaves])])
    layer = GREADConv(1, "diffusion", adjacency="original", normalisation="row", self_loops=0.0)
    op = layer.operator(torch.ones(601, 1, dtype=torch.bfloat16), edges)
    assert float(op.weights[0]) == pytest.approx(1 / 600, rel=1e-2)


def test_other_precisions_are_refused_with_a_remedy() -> None:
    layer = GREADConv(CHANNELS)
    with pytest.raises(
        InvalidArgument, match=r"x of torch.float32, the precision of the layer, got torch.bfloat16; .*autocast"
    ):
        layer(make_state().bfloat16(), PATH)
    with pytest.raises(InvalidArgument, match=r"real numbers, got torch.int64; use x.float\(\)"):
        layer(torch.ones(NODES, CHANNELS, dtype=torch.int64), PATH)
