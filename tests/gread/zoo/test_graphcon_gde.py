"""GraphCON-GAT and GDE, which are no lines, beside dense numpy evaluations and torch-geometric's attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit

from gread.datasets.synthetic import csbm
from gread.models.batched_model import BatchedModel
from gread.models.place import Place
from gread.models.problem import make_features
from gread.models.randomness import Dropper, Randomness, make_rates
from gread.settings.config import Config
from gread.settings.model_records import models
from rdgraph.errors import UnknownName

DATA = csbm(5, n=14, features=5)
X = np.asarray(DATA.x)


def make(name: str, **values: Any) -> BatchedModel:
    """A network of two members whose parameters are all drawn anew, so that nothing is zero."""
    settings = Config.of(name, **{"hidden": 3, **values}).model
    place = Place.of(DATA.graph, dtype=torch.float64)
    model: BatchedModel = models[name].network(settings, place, features=5, classes=2, seeds=[0, 1])
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2)
    return model


def logits(model: BatchedModel) -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = model(make_features(DATA.x, model.settings, dtype=torch.float64)).numpy()
    return found


def looped() -> np.ndarray:
    found = np.eye(DATA.num_nodes)
    found[DATA.graph.edge_index[1], DATA.graph.edge_index[0]] = 1
    return found


def linear(p: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    return x @ p[f"{name}_weight"] + p[f"{name}_bias"]


def values(model: BatchedModel, member: int) -> dict[str, np.ndarray]:
    return {name: part[member].detach().numpy() for name, part in model.parts.items()}


def force(p: dict[str, np.ndarray], h: np.ndarray, heads: int) -> np.ndarray:
    """mean over heads of elu(S(h) h W + b + h R)."""
    seen, present = [], looped() > 0
    for head, part in enumerate(np.split(h @ p["attention_weight"], heads, 1)):
        scores = (part @ p["score_own"][head])[:, None] + part @ p["score_neighbour"][head]
        weights = np.where(present, np.exp(np.where(scores > 0, scores, 0.2 * scores)), 0.0)
        seen.append(weights / weights.sum(1, keepdims=True) @ part)
    whole = np.concatenate(seen, 1) + p["attention_bias"] + linear(p, "residual", h)
    return np.mean(np.split(np.where(whole > 0, whole, np.expm1(np.minimum(whole, 0))), heads, 1), 0)


def test_graphcon_gat() -> None:
    model = make("gcon-gat", layers=3, heads=2, alpha=0.4, gamma=0.7, step=0.5)
    found = logits(model)
    for member in range(2):
        p = values(model, member)
        h = v = np.maximum(linear(p, "encoder", X), 0)
        for _ in range(3):
            v = v + 0.5 * (force(p, h, 2) - 0.4 * v - 0.7 * h)
            h = h + 0.5 * v
        np.testing.assert_allclose(found[member], linear(p, "decoder", h), rtol=1e-9, atol=1e-9)


def test_the_attention_of_graphcon_is_that_of_torch_geometric() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    model = make("gcon-gat", heads=2)
    layer = geometric.GATConv(3, 3, heads=2).double()
    h = torch.randn(2, 14, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for name in ("residual_weight", "residual_bias"):
            model.get_parameter(name).zero_()
        layer.lin.weight.copy_(model.get_parameter("attention_weight")[1].T)
        layer.bias.copy_(model.get_parameter("attention_bias")[1])
        layer.att_src.copy_(model.get_parameter("score_neighbour")[1][None])
        layer.att_dst.copy_(model.get_parameter("score_own")[1][None])
        seen = layer(h[1], torch.tensor(DATA.graph.edge_index))
        expected = torch.nn.functional.elu(seen).view(14, 2, 3).mean(1)
        torch.testing.assert_close(model.force(h)[1], expected, rtol=1e-9, atol=1e-9)  # type: ignore[operator]


@pytest.mark.parametrize("steps", [1, 2])
def test_gde(steps: int) -> None:
    model = make("gde", steps=steps)
    found = logits(model)
    weights = looped()
    A = weights / np.sqrt(np.outer(weights.sum(1), weights.sum(1)))
    for member in range(2):
        p = values(model, member)

        def convolve(name: str, x: np.ndarray, p: dict[str, np.ndarray] = p) -> np.ndarray:
            return A @ x @ p[f"{name}_weight"] + p[f"{name}_bias"]

        def slope(h: np.ndarray, convolve: Any = convolve) -> np.ndarray:
            inner = convolve("inner", h)
            found: np.ndarray = convolve("outer", inner - np.log(expit(inner)))  # softplus(x) = x - log sigmoid(x)
            return found

        h, dt = np.maximum(convolve("encoder", X), 0), 1 / steps
        for _ in range(steps):  # Kutta's 3/8 rule
            a = slope(h)
            b = slope(h + dt * a / 3)
            c = slope(h + dt * (b - a / 3))
            d = slope(h + dt * (a - b + c))
            h = h + dt * (a + 3 * b + 3 * c + d) / 8
        np.testing.assert_allclose(found[member], convolve("decoder", h), rtol=1e-9, atol=1e-9)


def test_entries_within_the_slope_of_gde_are_dropped_anew() -> None:
    model = make("gde", input_dropout=0.0)
    x, rates = make_features(DATA.x, model.settings, dtype=torch.float64), make_rates([model.settings] * 2)
    drop = Dropper(rates, Randomness(model.seeds, torch.tensor(1)))
    h = model.states(x, Dropper())[0]
    first, second = (model.slope(h, drop) for _ in range(2))  # type: ignore[operator]
    assert not torch.allclose(first, second)


def test_gde_takes_runge_kutta_methods() -> None:
    with pytest.raises(UnknownName, match="method"):
        Config.of("gde", method="exact")
