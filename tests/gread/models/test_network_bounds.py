"""Lipschitz constants of networks: against difference quotients, attained in linear ones, undecided elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from gread.models import network_bounds
from gread.models.features import Features
from gread.models.gread_model import GREAD
from gread.models.network_bounds import NetworkBounds, matrix_norm
from gread.models.place import Place
from gread.models.trained_network import Network
from gread.settings.config import Config
from rdgraph import Graph
from tests.property_examples import examples

NORMS = {"symmetric": 2.0, "row": math.inf, "column": 1.0}
GRAPHS = (rd.generators.ring(6), rd.generators.star(6), Graph.from_edges([[0, 1, 2, 1], [1, 0, 1, 2]], num_nodes=6))


def drawn(seed: int, **values: Any) -> Network:
    """A network with random parameters, as after a training."""
    config = Config().updated({"adjacency": "original", "hidden": 3, **values}).gread
    place = Place.of(GRAPHS[0], dtype=torch.float64)
    model = GREAD(config, place, features=2, classes=2, seeds=[seed])
    draw = torch.Generator().manual_seed(seed)
    parts = {name: torch.randn(part.shape, generator=draw, dtype=torch.float64) for name, part in model.parts.items()}
    parts |= {name: part.abs() + 0.05 for name, part in parts.items() if name.endswith("variance")}
    return Network(model.config, parts, 2, 2)


def quotient(network: Network, graph: Graph, seed: int) -> float:
    """The largest difference quotient of the logits near some states: random directions, then along the gradient."""
    draw = torch.Generator().manual_seed(seed)
    model, norm = network.model(graph), NORMS[network.gread.normalisation]

    def logits(x: torch.Tensor) -> torch.Tensor:
        return model(Features(x.reshape(1, 6, 2), (6, 2)))[0].flatten()

    x, far = (size * torch.randn(12, generator=draw, dtype=torch.float64) for size in (0.3, 3.0))
    jacobian = torch.autograd.functional.jacobian(logits, x)
    ways = {
        2.0: torch.linalg.svd(jacobian)[2][0],
        math.inf: jacobian[jacobian.abs().sum(1).argmax()].sign(),
        1.0: torch.eye(12, dtype=torch.float64)[jacobian.abs().sum(0).argmax()],
    }
    here, best = logits(x), 0.0
    for y in (x + 1e-3 * ways[norm], far):
        change = torch.linalg.vector_norm(logits(y) - here, norm)
        best = max(best, float(change / torch.linalg.vector_norm(y - x, norm)))
    return best


def bound(network: Network) -> float:
    answer = network.bounds().lipschitz
    assert answer.status == "bounded", answer
    return float(answer.value)


KINDS = st.fixed_dictionaries(
    {
        "reaction": st.sampled_from(["-L@H", "diffusion", "BS", "FB*", "ST", "-alpha*L@H + beta*tanh(H)"]),
        "normalisation": st.sampled_from(sorted(NORMS)),
        "method": st.sampled_from(["auto", "euler", "rk4"]),
        "step": st.sampled_from([0.4, 1.0]),
        "time": st.sampled_from([0.5, 1.2]),
        "beta": st.sampled_from(["scalar", "channel"]),
        "blocks": st.integers(1, 2),
        "mixing": st.booleans(),
        "residual": st.sampled_from(["none", "identity", "linear"]),
        "norm": st.sampled_from(["none", "batch", "layer"]),
        "activation": st.sampled_from(["relu", "gelu", "tanh", "none"]),
        "shared": st.sampled_from(["none", "coefficients"]),
        "encoder_mlp": st.booleans(),
        "decoder_mlp": st.booleans(),
    }
)


@given(values=KINDS, graph=st.sampled_from(GRAPHS), seed=st.integers(0, 1000))
@settings(max_examples=examples(12), deadline=None)
def test_no_difference_quotient_is_larger(values: dict[str, Any], graph: Graph, seed: int) -> None:
    network = drawn(seed, **values)
    answer = network.bounds().lipschitz
    if answer.status != "bounded":
        assert "tanh" in values["reaction"]
        return
    assert quotient(network, graph, seed) <= float(answer.value) * (1 + 1e-6)


CASES: list[dict[str, Any]] = [
    {"reaction": "-L@H", "method": "euler", "step": 1.0, "mixing": True, "blocks": 2},
    {"reaction": "diffusion", "mixing": True, "residual": "linear", "blocks": 2},
    {"reaction": "diffusion", "norm": "batch", "encoder_mlp": False},
]


@pytest.mark.parametrize("values", CASES, ids=str)
@pytest.mark.parametrize("part", ["matrix_norm", "flow_factor"])
def test_a_product_with_a_part_too_small_is_refuted(
    values: dict[str, Any], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One channel, positive weights and a graph with equal degrees: the constant is attained, so 1 % less is wrong."""
    network = drawn(3, hidden=1, activation="none", relu=False, dropout=0.0, **values)
    positive = {name: value.abs() for name, value in network.parameters.items()}
    network = Network(network.config, positive, 2, 2)
    ring = GRAPHS[0]
    assert quotient(network, ring, 0) == pytest.approx(bound(network), rel=1e-6)
    right = getattr(network_bounds, part)

    def smaller(*given: Any) -> Any:
        result = right(*given)
        return (0.99 * result[0], result[1]) if isinstance(result, tuple) else 0.99 * result

    monkeypatch.setattr(network_bounds, part, smaller)
    assert quotient(network, ring, 0) > bound(network)


def test_attention_adaptive_steps_and_steep_reactions_are_undecided() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"adjacency": "soft"}, "attention"),
        ({"normalisation": "none"}, "norm"),
        ({"reaction": "F"}, "slopes"),
        ({"method": "dopri5"}, "dopri5"),
        ({"reaction": "u' = -L@u + v; v' = u"}, "one field"),
        ({"storage": "bfloat16"}, "precision"),
    ]
    for values, word in cases:
        found = drawn(0, blocks=2, **values).bounds()
        assert found.lipschitz.status == "undecided", values
        assert found.lipschitz.value is None
        assert word in found.lipschitz.reason, found.lipschitz.reason
        assert found.factors == ()


def test_a_cubic_reaction_of_one_sign_has_a_constant() -> None:
    values = {"reaction": "AC", "beta": "scalar", "method": "strang", "step": 0.5}
    network = drawn(1, blocks=2, **values)
    assert quotient(network, GRAPHS[0], 1) <= bound(network)


def test_what_does_not_compose_says_why() -> None:
    def found(**values: Any) -> NetworkBounds:
        return drawn(0, blocks=2, **values).bounds()

    assert found(norm="batch").training.status == "refused"
    assert "batch norm" in found(norm="batch").training.reason
    assert "dropout" in found(norm="layer").training.reason
    still = found(norm="layer", dropout=0.0, input_dropout=0.0)
    assert still.training == still.lipschitz
    assert still.energy.status == "refused"
    assert "2 blocks" in still.energy.reason


def test_the_norm_of_a_matrix_is_that_of_the_map() -> None:
    W = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ways = np.vstack([np.eye(3), np.sign(W.numpy().T), np.linalg.svd(W.numpy())[0].T])
    for name, order in (("2", 2.0), ("inf", np.inf), ("1", 1.0)):
        seen = max(np.linalg.norm(x @ W.numpy(), order) / np.linalg.norm(x, order) for x in ways)
        assert seen == pytest.approx(matrix_norm(W, name))
