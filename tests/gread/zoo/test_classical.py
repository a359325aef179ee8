"""The classical networks against dense numpy, written from the formulas, and against torch-geometric's layers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import BatchNorm, LayerNorm, pair_norm
from gread.models.place import Place
from gread.models.randomness import Dropper, Randomness, make_rates
from gread.settings.config import Config
from gread.settings.model_records import find_model
from rdgraph import Graph, parse

N, F, C = 9, 5, 3
EDGES = np.array([[0, 1, 2, 3, 4, 5, 6, 0, 2, 7], [1, 2, 3, 4, 5, 6, 7, 4, 6, 0]])
GRAPH = Graph.from_edges(np.concatenate([EDGES, EDGES[::-1]], 1), N)  # node 8 has no neighbour
X = np.random.default_rng(0).normal(size=(N, F))
W = np.zeros((N, N))
W[EDGES[1], EDGES[0]] = W[EDGES[0], EDGES[1]] = 1


def make(name: str, **values: Any) -> BatchedModel:
    config = Config.of(name, **values)
    place = Place.of(GRAPH, dtype=torch.float64)
    made: BatchedModel = find_model(name).network(config.model, place, features=F, classes=C, seeds=[0, 1])
    with torch.no_grad():  # zeros would hide a term that is missing
        for k, part in enumerate(made.parameters()):
            part.add_(0.3 * torch.randn(part.shape, generator=torch.Generator().manual_seed(k), dtype=part.dtype))
    return made


def logits(model: BatchedModel) -> np.ndarray:
    with torch.no_grad():
        return model(Features.make(X, dtype=torch.float64))[1].numpy()


def own(model: BatchedModel, name: str) -> np.ndarray:
    return model.get_parameter(name)[1].detach().numpy()


def symmetric(loops: float) -> np.ndarray:
    weights = W + loops * np.eye(N)
    degree = weights.sum(1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros(N), where=degree > 0)
    return scale[:, None] * weights * scale


def mean_of_neighbours() -> np.ndarray:
    return np.divide(W, W.sum(1, keepdims=True), out=np.zeros((N, N)), where=W.sum(1, keepdims=True) > 0)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


# ---------------------------------------------------------------------- dense numpy
def test_mlp() -> None:
    model = make("mlp", hidden=4, layers=3)
    h = X
    for k in range(3):
        h = h @ own(model, f"layer_{k}_weight") + own(model, f"layer_{k}_bias")
        h = relu(h) if k < 2 else h
    same(logits(model), h)


def test_gcn() -> None:
    model = make("gcn", hidden=4, layers=3)
    h = X
    for k in range(3):
        h = symmetric(1.0) @ h @ own(model, f"layer_{k}_weight") + own(model, f"layer_{k}_bias")
        h = relu(h) if k < 2 else h
    same(logits(model), h)


def test_chebnet() -> None:
    model, h = make("chebnet", hidden=4, taps=4), X
    scaled = 2 * (np.eye(N) - symmetric(0.0)) / 2 - np.eye(N)
    for k in range(2):
        bias = own(model, f"layer_{k}_bias")
        weights = own(model, f"layer_{k}_weight").reshape(h.shape[1], 4, len(bias)).swapaxes(0, 1)
        before, now = np.eye(N), scaled
        out = h @ weights[0] + bias
        for weight in weights[1:]:
            out = out + now @ h @ weight
            before, now = now, 2 * scaled @ now - before
        h = relu(out) if k == 0 else out
    same(logits(model), h)


def test_gat() -> None:
    model, h = make("gat", hidden=4, heads=3), X
    for k, heads in enumerate((3, 1)):
        values = (h @ own(model, f"layer_{k}_weight")).reshape(N, heads, -1)
        out = np.zeros_like(values)
        for head in range(heads):
            left, right = (values[:, head] @ own(model, f"layer_{k}_{end}")[head] for end in ("own", "neighbour"))
            for i in range(N):
                near = [j for j in range(N) if W[i, j] or i == j]
                score = np.array([left[i] + right[j] for j in near])
                score = np.where(score > 0, score, 0.2 * score)
                soft = np.exp(score) / np.exp(score).sum()
                out[i, head] = sum(p * values[j, head] for p, j in zip(soft, near, strict=True))
        h = out.reshape(N, -1) + own(model, f"layer_{k}_bias")
        h = np.where(h > 0, h, np.expm1(h)) if k == 0 else h
    same(logits(model), h)


def test_graph_sage() -> None:
    model, h = make("graphsage", hidden=4), X
    for k in range(2):
        alone, near = np.split(own(model, f"layer_{k}_weight"), 2, 1)
        h = h @ alone + mean_of_neighbours() @ h @ near + own(model, f"layer_{k}_bias")
        h = relu(h) if k == 0 else h
    same(logits(model), h)


def test_sgc_and_smoothed_features() -> None:
    model, A = make("sgc", hops=3), symmetric(1.0)
    same(logits(model), A @ A @ A @ X @ own(model, "classifier_weight") + own(model, "classifier_bias"))
    other = make("smoothed", hops=2)
    parts = np.split(own(other, "classifier_weight"), 3, 1)
    powers = (np.eye(N), A, A @ A)
    expected = sum(power @ X @ part for power, part in zip(powers, parts, strict=True))
    same(logits(other), expected + own(other, "classifier_bias"))


@pytest.mark.parametrize("jump", ["cat", "max"])
def test_jknet(jump: str) -> None:
    model, h, seen = make("jknet", hidden=4, layers=3, jump=jump), X, []
    for k in range(3):
        h = relu(symmetric(1.0) @ h @ own(model, f"layer_{k}_weight") + own(model, f"layer_{k}_bias"))
        seen.append(h)
    joined = np.concatenate(seen, 1) if jump == "cat" else np.max(seen, 0)
    same(logits(model), joined @ own(model, "classifier_weight") + own(model, "classifier_bias"))


@pytest.mark.parametrize("variant", [False, True])
def test_gcnii(variant: bool) -> None:
    model = make("gcnii", hidden=4, layers=3, alpha=0.2, decay=1.5, variant=variant)
    first = h = relu(X @ own(model, "encoder_weight") + own(model, "encoder_bias"))
    for k in range(3):
        beta = np.log(1.5 / (k + 1) + 1)
        near, start = 0.8 * symmetric(1.0) @ h, 0.2 * first
        weight = own(model, f"layer_{k}_weight")
        other = own(model, f"start_{k}_weight") if variant else weight
        h = relu((1 - beta) * (near + start) + beta * (near @ weight + start @ other))
    same(logits(model), h @ own(model, "classifier_weight") + own(model, "classifier_bias"))


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("name", ["gcn-tuned", "sage-tuned"])
def test_tuned(name: str, norm: str) -> None:
    """In prediction the batch norm has its first running numbers, mean 0 and variance 1."""
    model, h = make(name, hidden=4, layers=2, norm=norm), X
    for k in range(2):
        weight, bias = own(model, f"layer_{k}_weight"), own(model, f"layer_{k}_bias")
        if name == "gcn-tuned":
            out = symmetric(1.0) @ h @ weight + bias
        else:
            alone, near = np.split(weight, 2, 1)
            out = h @ alone + mean_of_neighbours() @ h @ near + bias
        out = out + h @ own(model, f"residual_{k}_weight") + own(model, f"residual_{k}_bias")
        if norm == "layer":
            out = (out - out.mean(1, keepdims=True)) / np.sqrt(out.var(1, keepdims=True) + 1e-5)
        if norm == "batch":
            out = out / np.sqrt(1 + 1e-5)
        if norm != "none":
            out = out * own(model, f"norm_{k}_weight") + own(model, f"norm_{k}_bias")
        h = relu(out)
    same(logits(model), h @ own(model, "classifier_weight") + own(model, "classifier_bias"))


def test_lines_can_be_read() -> None:
    for name in ("sgc", "gcnii"):
        assert parse(find_model(name).line).coupling.is_linear


# ---------------------------------------------------------------------- torch-geometric
@pytest.fixture(scope="module")
def pyg() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch_geometric.nn")


PAIRS = torch.tensor(GRAPH.edge_index)
DENSE = torch.tensor(X)


def fill(layer: Any, values: dict[str, Tensor]) -> Any:
    """A layer of the other library with the same numbers."""
    layer = layer.double()
    with torch.no_grad():
        for name, value in values.items():
            target = layer.get_parameter(name)
            target.copy_(value.reshape(target.shape))
    return layer


def part(model: BatchedModel, name: str) -> Tensor:
    return model.get_parameter(name)[1].detach()


def outputs(model: BatchedModel) -> Tensor:
    with torch.no_grad():
        return model(Features.make(X, dtype=torch.float64))[1]


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected.detach(), rtol=1e-9, atol=1e-10)


def test_gcn_conv(pyg: Any) -> None:
    model = make("gcn", layers=1)
    layer = fill(
        pyg.GCNConv(F, C), {"lin.weight": part(model, "layer_0_weight").T, "bias": part(model, "layer_0_bias")}
    )
    close(outputs(model), layer(DENSE, PAIRS))


def test_cheb_conv(pyg: Any) -> None:
    model = make("chebnet", layers=1, taps=4)
    split = part(model, "layer_0_weight").reshape(F, 4, C)
    values = {f"lins.{k}.weight": split[:, k].T for k in range(4)} | {"bias": part(model, "layer_0_bias")}
    close(outputs(model), fill(pyg.ChebConv(F, C, 4), values)(DENSE, PAIRS))


def test_gat_conv(pyg: Any) -> None:
    model = make("gat", layers=2, hidden=4, heads=3)
    h = DENSE
    for k, (inputs, width, heads) in enumerate([(F, 4, 3), (12, C, 1)]):
        values = {
            "lin.weight": part(model, f"layer_{k}_weight").T, "bias": part(model, f"layer_{k}_bias"),
            "att_dst": part(model, f"layer_{k}_own"), "att_src": part(model, f"layer_{k}_neighbour"),
        }  # fmt: skip
        h = fill(pyg.GATConv(inputs, width, heads=heads), values)(h, PAIRS)
        h = torch.nn.functional.elu(h) if k == 0 else h
    close(outputs(model), h)


def test_sage_conv(pyg: Any) -> None:
    model = make("graphsage", layers=1)
    alone, near = part(model, "layer_0_weight").chunk(2, -1)
    values = {"lin_l.weight": near.T, "lin_l.bias": part(model, "layer_0_bias"), "lin_r.weight": alone.T}
    close(outputs(model), fill(pyg.SAGEConv(F, C), values)(DENSE, PAIRS))


def test_sg_conv(pyg: Any) -> None:
    model = make("sgc", hops=3)
    values = {"lin.weight": part(model, "classifier_weight").T, "lin.bias": part(model, "classifier_bias")}
    close(outputs(model), fill(pyg.SGConv(F, C, K=3), values)(DENSE, PAIRS))


@pytest.mark.parametrize("variant", [False, True])
def test_gcn2_conv(pyg: Any, variant: bool) -> None:
    model = make("gcnii", hidden=4, layers=2, alpha=0.3, decay=0.7, variant=variant)
    first = h = torch.relu(DENSE @ part(model, "encoder_weight") + part(model, "encoder_bias"))
    for k in range(2):
        layer = pyg.GCN2Conv(4, alpha=0.3, theta=0.7, layer=k + 1, shared_weights=not variant)
        values = {"weight1": part(model, f"layer_{k}_weight")}
        if variant:
            values["weight2"] = part(model, f"start_{k}_weight")
        h = torch.relu(fill(layer, values)(h, first, PAIRS))
    close(outputs(model), h @ part(model, "classifier_weight") + part(model, "classifier_bias"))


@pytest.mark.parametrize("mode", ["cat", "max", "lstm"])
def test_jumping_knowledge(pyg: Any, mode: str) -> None:
    model = make("jknet", hidden=4, layers=3, jump=mode)
    with torch.no_grad():
        states = model.states(Features.make(X, dtype=torch.float64), Dropper())
        found = model.join(model, states)[1]  # type: ignore[operator]
    layer = pyg.JumpingKnowledge(mode, channels=4, num_layers=3)
    if mode == "lstm":
        inner = 3 * 4 // 2
        values: dict[str, Tensor] = {}
        for way, suffix in (("forward", ""), ("backward", "_reverse")):
            values[f"lstm.weight_ih_l0{suffix}"] = part(model, f"join_{way}_in").T
            values[f"lstm.weight_hh_l0{suffix}"] = part(model, f"join_{way}_own").T
            values[f"lstm.bias_ih_l0{suffix}"] = part(model, f"join_{way}_bias")
            values[f"lstm.bias_hh_l0{suffix}"] = torch.zeros(4 * inner, dtype=torch.float64)
        values |= {"att.weight": part(model, "join_score_weight").T, "att.bias": part(model, "join_score_bias")}
        layer = fill(layer, values)
    close(found, layer([state[1] for state in states]))


# ---------------------------------------------------------------------- norms
def test_batch_norm_is_torchs(pyg: Any) -> None:
    """Three passes in training, then one in prediction."""
    model = make("gcn-tuned", hidden=4, norm="batch")
    norm = BatchNorm(model, "extra", 4)
    peer = torch.nn.BatchNorm1d(4).double()
    x = torch.randn(2, N, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    for step in range(3):
        close(norm(model, x * (step + 1), is_training=True)[1], peer(x[1] * (step + 1)))
    close(norm(model, x, is_training=False)[1], peer.eval()(x[1]))


def test_gradients_of_batch_norm_are_torchs() -> None:
    model = make("gcn-tuned", hidden=4, norm="batch")
    norm, peer = BatchNorm(model, "extra", 4), torch.nn.BatchNorm1d(4).double()
    draw = torch.Generator().manual_seed(4)
    x = (5 + torch.randn(2, N, 4, dtype=torch.float64, generator=draw)).requires_grad_()
    g = torch.randn(2, N, 4, dtype=torch.float64, generator=draw)
    parameters = [model.get_parameter(f"extra_{part}") for part in ("weight", "bias")]
    ours = [peer.weight, peer.bias]
    with torch.no_grad():
        for mine, his in zip(parameters, ours, strict=True):
            mine.copy_(torch.randn(mine.shape, dtype=torch.float64, generator=draw))
            his.copy_(mine[1])
    found = torch.autograd.grad(norm(model, x, is_training=True), [x, *parameters], g)
    expected = torch.autograd.grad(peer(x[1]), [x, *ours], g[1])
    close(found[0][1], expected[0][1])
    for one, other in zip(found[1:], expected[1:], strict=True):
        close(one[1], other)


def test_layer_and_pair_norm_are_the_others(pyg: Any) -> None:
    model = make("gcn-tuned", hidden=4, norm="layer")
    x = torch.randn(2, N, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    close(LayerNorm(model, "extra", 4)(model, x)[1], torch.nn.LayerNorm(4).double()(x[1]))
    close(pair_norm(x, 2.0)[1], pyg.PairNorm(scale=2.0)(x[1]))
    close(pair_norm(x, individually=True)[1], pyg.PairNorm(scale_individually=True)(x[1]))


def test_running_numbers_are_kept_with_the_parameters() -> None:
    model = make("gcn-tuned", hidden=4, norm="batch")
    assert {name for name, _ in model.named_buffers()} <= set(model.parts)
    x, rates = Features.make(X, dtype=torch.float64), make_rates([model.settings] * 2)
    before = {name: value.clone() for name, value in model.named_buffers()}
    model.run(x)
    assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    model.run(x, rates, Randomness(model.seeds, torch.tensor(1)))
    assert not any(torch.equal(value, before[name]) for name, value in model.named_buffers())
