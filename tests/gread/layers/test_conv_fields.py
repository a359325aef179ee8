"""`GREADConv` with several fields, second order and the time: against scipy's solver on dense matrices."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import torch
from torch import Tensor

from gread.layers.conv import GREADConv
from gread.models.features import Features
from gread.models.gread_model import GREAD
from gread.models.place import Place
from gread.settings.gread_settings import GreadSettings
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName

EDGES = torch.tensor([[0, 1, 2, 3, 0, 2, 1], [1, 2, 0, 1, 3, 4, 3]])
NODES, CHANNELS = 5, 3
PAIR = "u' = -Du*L@u + tanh(v); v' = -Dv*L@v + u - gamma*v"
ROW: dict[str, Any] = {"adjacency": "original", "normalisation": "row", "method": "rk4", "step": 0.05}


def make_layer(reaction: str, **settings: Any) -> GREADConv:
    layer = GREADConv(CHANNELS, reaction, heads=2, attention_dim=4, **settings).double()
    with torch.no_grad():
        for k, parameter in enumerate(layer.parameters()):
            parameter.copy_(0.7 * torch.sin(torch.arange(parameter.numel()) + k + 1.0).reshape(parameter.shape))
    return layer


def make_state(columns: int) -> Tensor:
    return torch.cos(torch.arange(NODES * columns, dtype=torch.float64)).reshape(NODES, columns)


def row_normalised() -> np.ndarray:
    matrix = np.eye(NODES)
    np.add.at(matrix, (EDGES[1].numpy(), EDGES[0].numpy()), 1.0)
    return matrix / matrix.sum(1, keepdims=True)


def solved(rate: Any, start: np.ndarray, time: float) -> np.ndarray:
    """States (states, n, d) after a time, by scipy with tight tolerances."""

    def flat(t: float, y: np.ndarray) -> np.ndarray:
        return np.stack(rate(t, *y.reshape(start.shape))).ravel()

    return (
        scipy.integrate.solve_ivp(flat, (0, time), start.ravel(), rtol=1e-10, atol=1e-12).y[:, -1].reshape(start.shape)
    )


def test_two_fields_are_those_of_scipy() -> None:
    layer = make_layer(PAIR, **ROW)
    assert (layer.in_channels, layer.out_channels) == (6, 6)
    A, c = row_normalised(), {k: v.detach().numpy() for k, v in layer.coefficients().items()}
    x = make_state(6)
    u, v = solved(
        lambda t, u, v: (-c["Du"] * (u - A @ u) + np.tanh(v), -c["Dv"] * (v - A @ v) + u - c["gamma"] * v),
        np.stack([x[:, :3].numpy(), x[:, 3:].numpy()]),
        1.0,
    )
    torch.testing.assert_close(layer(x, EDGES), torch.tensor(np.hstack([u, v])), rtol=1e-5, atol=1e-6)
    one = make_layer(PAIR, readout="v", **ROW)
    assert one.out_channels == 3
    torch.testing.assert_close(one(x, EDGES), torch.tensor(v), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("velocity", ["zero", "encoded"])
def test_second_order_and_the_time_are_those_of_scipy(velocity: str) -> None:
    layer = make_layer("H'' = -gamma*exp(-t)*L@H - alpha*H' + tanh(A@H)", velocity=velocity, **ROW)
    A, c = row_normalised(), {k: v.detach().numpy() for k, v in layer.coefficients().items()}
    x = make_state(layer.in_channels)
    moving = x[:, 3:] if velocity == "encoded" else torch.zeros(NODES, 3, dtype=torch.float64)

    def rate(t: float, h: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return w, -c["gamma"] * np.exp(-t) * (h - A @ h) - c["alpha"] * w + np.tanh(A @ h)

    h, w = solved(rate, np.stack([x[:, :3].numpy(), moving.numpy()]), 1.0)
    expected = np.hstack([h, w]) if velocity == "encoded" else h
    torch.testing.assert_close(layer(x, EDGES), torch.tensor(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("adjacency", ["soft", "live"])
def test_attention_is_that_of_the_classifiers_network(adjacency: str) -> None:
    """Same numbers in both: the network on features that are the states themselves."""
    settings: dict[str, Any] = {"adjacency": adjacency, "method": "rk4", "step": 0.5}
    layer = make_layer(PAIR, **settings)
    model = GreadSettings(PAIR, hidden=CHANNELS, heads=2, attention_dim=4, **settings)
    graph = Graph.from_edges(EDGES.numpy(), num_nodes=NODES)
    net = GREAD(model, Place.of(graph, dtype=torch.float64), features=6, classes=2, seeds=[0])
    with torch.no_grad():
        net.encoder_weight.copy_(torch.eye(6, dtype=torch.float64)[None])
        net.encoder_bias.zero_()
        for name in ("query", "key"):
            net.get_parameter(f"{name}_weight").copy_(getattr(layer, name).weight.T[None])
            net.get_parameter(f"{name}_bias").copy_(getattr(layer, name).bias[None])
        for name in layer.coefficient_kinds:
            net.get_parameter(f"coefficient_{name}").copy_(layer.get_parameter(f"coefficient_{name}")[None])
    x = make_state(6)
    start = net.encode(Features.make(x.numpy(), dtype=torch.float64))
    found, _ = net.evolve(start, torch.ones(1, dtype=torch.float64), net.flow(start), 0)
    torch.testing.assert_close(layer(x, EDGES), found[0], rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(layer.operator(x, EDGES).dense(), net.couple(start).dense()[0], rtol=1e-12, atol=1e-14)


def test_gradients_are_numerical_derivatives() -> None:
    layer = make_layer(
        "u'' = -alpha*L@u - c*u' + v; v' = cos(t)*u - v*u", adjacency="live", method="midpoint", step=0.5
    )
    x = make_state(6).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: layer(y, EDGES), (x,), fast_mode=True)
    layer(x, EDGES).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in layer.parameters())


def test_a_layer_is_copied_moved_and_shown() -> None:
    layer = make_layer(PAIR, **ROW)
    x = make_state(6)
    assert torch.equal(copy.deepcopy(layer)(x, EDGES), layer(x, EDGES))
    assert "u' = -Du*L@u + tanh(v); v' = " in repr(layer)
    half = layer.float()
    torch.testing.assert_close(half(x.float(), EDGES).double(), layer.double()(x, EDGES), rtol=1e-5, atol=1e-5)
    assert layer(torch.zeros(0, 6, dtype=torch.float64), torch.zeros(2, 0, dtype=torch.int64)).shape == (0, 6)


def test_wrong_inputs_are_told() -> None:
    with pytest.raises(InvalidArgument, match=r"expected x of shape \(nodes, 6\), the starts of u, v side by side"):
        make_layer(PAIR)(make_state(3), EDGES)
    with pytest.raises(UnknownName, match="expected a readout, got 'w'"):
        GREADConv(3, PAIR, readout="w")
    with pytest.raises(NotApplicable, match="white noise"):
        GREADConv(3, "-alpha*L@H + sigma*xi")
    with pytest.raises(NotApplicable, match="for whose B a network has no graph"):
        GREADConv(3, "-alpha*L@H + B@H where B antisymmetric")
    with pytest.raises(NotApplicable, match="got Du of kind node"):
        GREADConv(3, f"{PAIR} where Du node")
