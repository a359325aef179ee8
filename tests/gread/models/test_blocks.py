"""Networks in blocks: against the same network written by hand in torch, in batches, and in their files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import gread
import rdgraph as rd
from gread.datasets.embedded import karate
from gread.layers import GREADBlock
from gread.models.features import Features
from gread.models.gread_model import GREAD, Stack
from gread.models.place import Place
from gread.models.randomness import Dropper
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName

GRAPH = rd.generators.ring(6)
X = np.random.default_rng(0).normal(size=(6, 3))
SMALL = {"hidden": 4, "attention_dim": 4, "heads": 2}


def network(seeds: tuple[int, ...] = (0, 1), **values: Any) -> GREAD:
    place = Place.of(GRAPH, dtype=torch.float64)
    return GREAD(GreadSettings(**(SMALL | values)), place, features=3, classes=2, seeds=seeds)


def logits(model: GREAD) -> torch.Tensor:
    return model(Features.make(X, dtype=torch.float64)).detach()


def by_hand(model: GREAD, member: int) -> torch.Tensor:
    """The logits of one member of a stack with the original adjacency: dense products, one Euler step per unit."""
    c = model.config
    parts = {name: value[member].detach() for name, value in model.parts.items()}
    A = torch.as_tensor(GRAPH.operator(c.normalisation, self_loops=c.self_loops, dtype=torch.float64).dense())
    L = torch.eye(6, dtype=torch.float64) - A
    curves = {"relu": torch.relu, "gelu": functional.gelu, "tanh": torch.tanh, "none": lambda x: x}
    h = torch.as_tensor(X) @ parts["encoder_weight"] + parts["encoder_bias"]
    for k in range(c.blocks):
        of = {name.removeprefix(f"blocks.{k}."): value for name, value in parts.items()}
        first = {name.removeprefix("blocks.0."): value for name, value in parts.items()}
        coefficients = first if c.shares("coefficients") else of
        h = curves[c.activation](h) if k else h
        H0 = h @ of["mixing_weight"] + of["mixing_bias"] if c.mixing else h
        alpha, beta = torch.sigmoid(coefficients["coefficient_alpha"]), coefficients["coefficient_beta"]
        beta = torch.sigmoid(beta) if c.beta == "scalar" else beta
        H = H0
        for _ in range(round(c.time)):
            H = H - alpha * L @ H + beta * (A @ H - A @ A @ H)
        if c.residual == "identity":
            H = H + h
        elif c.residual == "linear":
            H = H + h @ of["residual_weight"] + of["residual_bias"]
        if c.norm == "layer":
            H = functional.layer_norm(H, (4,), of["norm_weight"], of["norm_bias"])
        elif c.norm == "batch":
            H = (H - of["norm_mean"]) / (of["norm_variance"] + 1e-5).sqrt() * of["norm_weight"] + of["norm_bias"]
        h = H
    return torch.relu(h) @ parts["decoder_weight"] + parts["decoder_bias"]


EULER = {"adjacency": "original", "normalisation": "row", "method": "euler", "step": 1.0, "time": 2.0}


@pytest.mark.parametrize(
    "values",
    [
        {"blocks": 3},
        {"blocks": 2, "mixing": True, "residual": "linear", "norm": "layer", "activation": "gelu"},
        {"blocks": 3, "mixing": True, "residual": "identity", "norm": "batch", "beta": "scalar"},
        {"blocks": 2, "shared": "coefficients", "activation": "tanh", "beta": "scalar"},
        {"mixing": True, "activation": "none"},
    ],
    ids=str,
)
def test_a_stack_is_the_network_written_by_hand(values: dict[str, Any]) -> None:
    model = network(**({"beta": "channel"} | EULER | values))
    for part in model.parts.values():
        part.data.copy_(torch.rand(part.shape, generator=torch.Generator().manual_seed(part.numel())) - 0.3)
    for name, part in model.parts.items():
        if name.endswith("variance"):
            part.data.add_(0.5)
    assert isinstance(model, Stack)
    for member in (0, 1):
        torch.testing.assert_close(logits(model)[member], by_hand(model, member), rtol=1e-9, atol=1e-9)


def test_every_block_has_the_terms_that_its_polynomial_needs() -> None:
    """The second block needs more terms than the first: a long exact flow, against matrix exponentials."""
    values = {"reaction": "-alpha*L@H", "adjacency": "original", "self_loops": 0.0, "alpha_link": "free"}
    model = network((0,), method="exact", time=10.0, blocks=2, activation="none", **values)
    assert isinstance(model, Stack)
    for number, alpha in enumerate((0.1, 4.0)):
        model.block(number).parts["coefficient_alpha"].data.fill_(alpha)
    x = Features.make(X, dtype=torch.float64)
    L = torch.eye(6, dtype=torch.float64) - GRAPH.operator("symmetric", dtype=torch.float64).dense()
    with torch.no_grad():
        states = model.states(x, Dropper())
        for number, alpha in enumerate((0.1, 4.0)):
            expected = torch.linalg.matrix_exp(-10.0 * alpha * L) @ states[number]
            torch.testing.assert_close(states[number + 1], expected, rtol=1e-6, atol=1e-6)


def test_one_block_without_further_parts_is_gread() -> None:
    plain = network(blocks=1, activation="tanh", shared="all")
    assert type(plain) is GREAD
    assert torch.equal(logits(plain), logits(network()))


def test_blocks_start_from_different_numbers_and_members_from_those_they_have_alone() -> None:
    values = {"blocks": 3, "mixing": True, "residual": "linear", "norm": "batch"}
    both, alone = network((5, 9), **values), network((9,), **values)
    assert not torch.equal(both.parts["blocks.0.mixing_weight"], both.parts["blocks.1.mixing_weight"])
    assert set(both.parts) == set(alone.parts)
    for name, part in alone.parts.items():
        assert torch.equal(both.parts[name][1:], part), name


@pytest.mark.parametrize(
    ("shared", "queries", "betas"), [("none", 3, 3), ("coefficients", 3, 1), ("adjacency", 1, 3), ("all", 1, 1)]
)
def test_shared_parts_exist_once(shared: str, queries: int, betas: int) -> None:
    names = list(network(blocks=3, adjacency="soft", shared=shared).parts)
    assert sum(name.endswith("query_weight") for name in names) == queries
    assert sum(name.endswith("coefficient_beta") for name in names) == betas


def test_shared_attention_is_that_of_the_first_block() -> None:
    values = {"blocks": 2, "adjacency": "soft", "method": "euler", "step": 1.0, "activation": "none"}
    model = network(shared="adjacency", **values)
    for name, part in model.parts.items():
        if "query" in name or "key" in name:
            part.data.copy_(torch.randn(part.shape, generator=torch.Generator().manual_seed(1)))
    assert isinstance(model, Stack)
    x = Features.make(X, dtype=torch.float64)
    with torch.no_grad():
        h = model.encode(x)
        A = model.couple(h).dense()
        for k in range(2):
            values_of = model.block(k).coefficients()
            alpha, beta = values_of["alpha"][:, None, None], values_of["beta"][..., None, :]
            beta = beta if beta.ndim == 3 else values_of["beta"][:, None, None]
            Ah = A @ h
            h = h - alpha * (h - Ah) + beta * (Ah - A @ Ah)
        expected = model.decode(h)
    torch.testing.assert_close(logits(model), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shared", ["none", "adjacency"])
def test_live_attention_follows_the_state_with_the_parameters_of_its_block(shared: str) -> None:
    """Every Euler step has the attention of its state; shared, by the queries and keys of the first block."""
    values = {"blocks": 2, "adjacency": "live", "method": "euler", "step": 0.5, "time": 1.0, "activation": "none"}
    model = network((0,), shared=shared, beta="scalar", **values)
    for number, (name, part) in enumerate(model.parts.items()):
        if "query" in name or "key" in name:
            part.data.copy_(torch.randn(part.shape, generator=torch.Generator().manual_seed(number)))
    assert isinstance(model, Stack)
    W = torch.as_tensor(GRAPH.operator("none", self_loops=1.0, dtype=torch.float64).dense())
    parts = {name: value[0].detach() for name, value in model.parts.items()}

    def attention(k: int, h: torch.Tensor) -> torch.Tensor:
        """The mean over two heads of softmax(q k^T / sqrt(2)) over neighbours and the node itself."""
        query, key = (
            (h @ parts[f"blocks.{k}.{end}_weight"] + parts[f"blocks.{k}.{end}_bias"]).reshape(6, 2, 2).transpose(0, 1)
            for end in ("query", "key")
        )
        scores = (query @ key.mT / 2**0.5).masked_fill(W == 0, -torch.inf)
        return torch.softmax(scores, -1).mean(0)

    with torch.no_grad():
        h = model.encode(Features.make(X, dtype=torch.float64))[0]
        first = None
        for k in range(2):
            alpha, beta = (model.block(k).coefficients()[name] for name in ("alpha", "beta"))
            for _ in range(2):
                A = attention(0 if shared == "adjacency" else k, h)
                first = A if first is None else first
                h = h + 0.5 * (alpha * (A @ h - h) + beta * (A @ h - A @ A @ h))
        assert not torch.allclose(A, first, atol=1e-3)
        expected = model.decode(h[None])
    torch.testing.assert_close(logits(model), expected, rtol=1e-9, atol=1e-9)


def test_several_fields_pass_from_block_to_block() -> None:
    values = {"reaction": "u' = -Du*L@u + beta*v; v' = -Dv*L@v - u", "adjacency": "original", "blocks": 2}
    model = network(method="rk4", step=0.5, mixing=True, norm="layer", **values)
    assert model.parts["blocks.1.mixing_weight"].shape == (2, 8, 8)
    assert [tuple(h.shape) for h in model.states(Features.make(X, dtype=torch.float64), Dropper())] == [(2, 6, 8)] * 3
    only_v = network(method="rk4", step=0.5, readout="v", **values)
    assert only_v.parts["decoder_weight"].shape == (2, 4, 2)
    assert logits(only_v).isfinite().all()


def test_velocities_start_anew_and_cannot_be_read() -> None:
    wave = {"reaction": "H'' = -alpha*L@H", "blocks": 2, "adjacency": "original"}
    assert logits(network(**wave)).isfinite().all()
    with pytest.raises(NotApplicable, match="readout"):
        network(readout="H'", **wave)
    assert logits(network(readout="H'", velocity="encoded", **wave)).isfinite().all()


TRAINED = {
    "hidden": 8, "attention_dim": 8, "heads": 2, "epochs": 6, "blocks": 2, "mixing": True, "residual": "linear",
    "norm": "batch", "dropout": 0.3, "input_dropout": 0.2,
}  # fmt: skip


def trials(**values: Any) -> list[Trial]:
    config = Config().updated(TRAINED | values)
    return [Trial(config, split, seed) for split in (0, 1) for seed in (0, 1)]


@pytest.mark.parametrize("values", [{"adjacency": "soft"}, {"adjacency": "live", "method": "euler", "step": 0.5},
                                    {"adjacency": "original", "time": 9.0}], ids=str)  # fmt: skip
def test_members_train_as_if_they_were_alone(values: dict[str, Any]) -> None:
    together = Ensemble(karate(), trials(**values), device="cpu", dtype=torch.float64)
    together.advance(6)
    alone = Ensemble(karate(), trials(**values)[2:3], device="cpu", dtype=torch.float64)
    alone.advance(6)
    torch.testing.assert_close(together.outcome().history[:, 2], alone.outcome().history[:, 0], rtol=1e-7, atol=1e-8)


def test_members_may_differ_in_kinds_of_coefficients_and_times() -> None:
    different = [
        Trial(Config().updated(TRAINED | {"adjacency": "original", "beta": beta, "time": time}))
        for beta, time in (("scalar", 1.0), ("channel", 3.0))
    ]
    run = gread.train(karate(), different, device="cpu")
    assert [run.network(k).coefficients(2)["beta"].shape for k in (0, 1)] == [(), (8,)]
    for k in (0, 1):
        alone = gread.train(karate(), different[k : k + 1], device="cpu")
        torch.testing.assert_close(
            run.network(k).coefficients(1)["beta"], alone.network(0).coefficients(1)["beta"], rtol=1e-3, atol=1e-5
        )


def test_training_changes_every_part_and_continues_from_its_state() -> None:
    data = karate()
    whole = Ensemble(data, trials(adjacency="soft", epochs=40), device="cpu")
    before = {name: part.detach().clone() for name, part in whole.model.parts.items()}
    whole.advance(20)
    assert not [name for name, part in whole.model.parts.items() if torch.equal(part, before[name])]
    halfway = whole.member_state([3, 1])
    whole.advance(20)
    resumed = Ensemble(data, [trials(adjacency="soft", epochs=40)[k] for k in (3, 1)], device="cpu")
    resumed.resume(halfway)
    resumed.advance(20)
    torch.testing.assert_close(resumed.outcome().history, whole.outcome().history[:, [3, 1]], rtol=1e-5, atol=1e-5)


def test_a_saved_network_is_the_same_and_names_its_blocks(tmp_path: Any) -> None:
    data = karate()
    net = gread.train(data, trials(adjacency="soft")[:1], device="cpu").network(0)
    net.save(tmp_path)
    loaded = Network.load(tmp_path)
    assert torch.equal(loaded.logits(data.x, data.graph), net.logits(data.x, data.graph))
    assert [tuple(h.shape) for h in net.layers(data.x, data.graph)] == [(34, 8)] * 3
    assert not torch.equal(net.coefficients(1)["beta"], net.coefficients(2)["beta"])
    assert net.operator(data.x, data.graph).num_nodes == 34
    for block in (None, 0, 3):
        with pytest.raises(InvalidArgument, match="block=1 to 2"):
            net.coefficients(block)
    with pytest.raises(NotApplicable, match="layers"):
        net.states(data.x, data.graph, [0.0, 1.0])


def test_what_needs_one_flow_refuses_blocks() -> None:
    from gread.training.decoupled import check_decoupled
    from gread.zoo.equation_networks import GraffSettings

    stacked = GreadSettings(blocks=2, adjacency="original")
    with pytest.raises(NotApplicable, match="one flow"):
        check_decoupled(stacked)
    with pytest.raises(NotApplicable, match="one flow"):
        GraffSettings(blocks=2)
    net = gread.train(karate(), trials(adjacency="original")[:1], device="cpu").network(0)
    with pytest.raises(NotApplicable, match="one flow"):
        gread.exportable(net, karate().graph)
    for values in ({"blocks": 0}, {"blocks": 1000}):
        with pytest.raises(InvalidArgument, match="blocks"):
            GreadSettings(**values)
    for name in ("residual", "norm", "activation", "shared"):
        with pytest.raises(UnknownName, match=name):
            GreadSettings(**{name: "some"})


def test_the_effort_of_a_stack_is_that_of_its_flows() -> None:
    one = GreadSettings(adjacency="original", method="euler", step=0.5, time=2.0)
    assert replace(one, blocks=5).effort == 5 * one.effort
    assert replace(one, blocks=5).shape != one.shape


def test_the_layer_is_a_block() -> None:
    """With the parameters of a block of a stack, whose norm uses the nodes in training."""
    model = network((3,), **(EULER | {"mixing": True, "residual": "linear", "norm": "batch", "beta": "channel"}))
    assert isinstance(model, Stack)
    given = {k: EULER[k] for k in ("adjacency", "normalisation", "method", "step", "time")}
    layer = GREADBlock(4, "BS", activation="none", **given).double()
    block = model.block(0)
    with torch.no_grad():
        for name in ("alpha", "beta"):
            getattr(layer.flow, f"coefficient_{name}").copy_(block.parts[f"coefficient_{name}"][0])
        for part, linear in (("mixing", layer.mixing), ("residual", layer.residual)):
            linear.weight.copy_(block.parts[f"{part}_weight"][0].T)
            linear.bias.copy_(block.parts[f"{part}_bias"][0])
        h = model.encode(Features.make(X, dtype=torch.float64))
        edges = torch.as_tensor(np.array(GRAPH.edge_index))
        for is_training in (True, False):
            layer.train(is_training)
            H = model.evolve(block.mixed(h), torch.tensor([2.0]), model.flow(block.mixed(h)), 4, None, (), block.field)
            torch.testing.assert_close(layer(h[0], edges), block.finished(H[0], h, is_training)[0])
    with pytest.raises(UnknownName, match="norm"):
        GREADBlock(4, norm="pair")
    with pytest.raises(InvalidArgument, match="dropout"):
        GREADBlock(4, dropout=1.0)
    with pytest.raises(InvalidArgument, match="readout"):
        GREADBlock(4, "u' = -L@u + v; v' = -L@v - u", readout="u")


@pytest.mark.gpu
@pytest.mark.parametrize("values", [{"adjacency": "soft"}, {"adjacency": "original", "norm": "layer"}], ids=str)
def test_a_gpu_trains_blocks_as_a_cpu(values: dict[str, Any]) -> None:
    histories = []
    for device in ("cpu", "cuda"):
        ensemble = Ensemble(karate(), trials(**values), device=device, dtype=torch.float64)
        ensemble.advance(6)
        histories.append(ensemble.outcome().history.cpu())
    torch.testing.assert_close(*histories, rtol=1e-6, atol=1e-6)
