"""What a CUDA graph may record: an epoch that takes nothing from the host and asks nothing of the device.

The CPU tells as well as a GPU would: every operation that would copy or wait passes the dispatcher under its own name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.gread_settings import ADJACENCIES
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph.vocabulary.methods import FOR_NOISE, METHODS
from rdgraph.vocabulary.normalisations import NORMALISATIONS
from tests.equations import random_networks

#: Operations that bring numbers from the host, or wait until the device has numbers for the host.
HOST = (
    "lift_fresh", "lift_fresh_copy", "_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero",
    "nonzero_static", "masked_select", "_unique2", "unique_dim", "unique_consecutive",
)  # fmt: skip


class Recorded(TorchDispatchMode):
    """Refuses what a CUDA graph cannot record."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        device = (kwargs or {}).get("device")
        moved = name == "_to_copy" and device is not None and args[0].device != torch.device(device)
        chosen = name == "index" and any(x is not None and x.dtype == torch.bool for x in args[1])
        if name in HOST or moved or chosen:
            raise AssertionError(f"{func} in a part that is captured")
        return func(*args, **(kwargs or {}))


def ensemble(values: Mapping[str, Any], **training: Any) -> Ensemble:
    config = Config().updated({"epochs": 4, **values, **training})
    return Ensemble(karate(), [Trial(config, split) for split in (0, 3)])


@pytest.mark.parametrize(
    "broken",
    [
        lambda x: x + torch.tensor(1.0),
        lambda x: x * float(x.sum()),
        lambda x: x if bool((x > 0).all()) else -x,
        lambda x: x[x > 0],
        lambda x: x.to("meta"),
        lambda x: x.new_tensor([1.0, 2.0]),
        lambda x: x.nonzero(),
    ],
)
def test_what_a_graph_cannot_record_is_noticed(broken: Any) -> None:
    x = torch.ones(2)
    with pytest.raises(AssertionError, match="in a part that is captured"), Recorded():
        broken(x)


LINEAR = (
    "-alpha*L@H + beta*A@H0", "-alpha*L@H + beta*A@(H0 - H)", "-alpha*L@H + beta*A@A@A@H", "-alpha*L@H + beta*L@H0",
    "-alpha*L@H + A@A@A@A@H0/2", "-alpha*L@H",
)  # fmt: skip


@pytest.mark.parametrize("adjacency", ["original", "soft", "live"])
@pytest.mark.parametrize("reaction", LINEAR)
def test_an_epoch_of_a_linear_equation_can_be_recorded(reaction: str, adjacency: str) -> None:
    shape = {"reaction": reaction, "adjacency": adjacency, "step": 0.5, "hidden": 8, "attention_dim": 8}
    for method in ("rk4",) if adjacency == "live" else ("rk4", "exact"):
        network = ensemble(shape | {"method": method})
        assert network.model.chosen_flow.form == ("steps" if adjacency == "live" else "polynomial")
        network._epoch()
        with Recorded():
            network._epoch()
        assert bool(network.outcome().history[:2, :, 0].isfinite().all())


@pytest.mark.parametrize(
    ("reaction", "methods"),
    [("BS", ("rk4", "exact", "euler")), ("ST", ("rk4", "exact", "euler")), ("F", ("rk4", "rk4", "rk4"))],
)
@pytest.mark.parametrize("adjacency", ["original", "soft"])
def test_an_epoch_of_members_of_many_kinds_can_be_recorded(
    reaction: str, methods: tuple[str, ...], adjacency: str
) -> None:
    base = Config().updated(
        {"reaction": reaction, "adjacency": adjacency, "hidden": 8, "attention_dim": 8, "epochs": 4}
    )
    own = [{"method": m, "step": 0.3 * k + 0.2, "time": 2.0 - 0.7 * k} for k, m in enumerate(methods)]
    kinds = [{"beta": "scalar"}, {"beta": "channel"}, {"beta": "channel", "alpha": "channel"}]
    trials = [Trial(base.updated(one | kind)) for one, kind in zip(own, kinds, strict=True)]
    mixed = Ensemble(karate(), trials)
    mixed._epoch()
    with Recorded():
        mixed._epoch()
    assert bool(mixed.outcome().history[:2, :, 0].isfinite().all())


@pytest.mark.slow
def test_epochs_of_random_networks_can_be_recorded() -> None:
    seen = set()
    for values in random_networks(16, 19):
        network = ensemble(values)
        if not network.model.is_capturable:
            continue
        network._epoch()
        with Recorded():
            network._epoch()
        seen.add((network.model.chosen_flow.form, values["adjacency"]))
    assert seen == {
        ("polynomial", "original"),
        ("polynomial", "soft"),
        *(("steps", a) for a in ("original", "soft", "live")),
    }


def test_random_networks_are_of_every_kind() -> None:
    networks = random_networks(100, 20)
    assert {network["method"] for network in networks} == set(METHODS) - set(FOR_NOISE)
    assert {network["adjacency"] for network in networks} == set(ADJACENCIES)
    assert {network["normalisation"] for network in networks} == set(NORMALISATIONS)


@pytest.mark.parametrize("text", ["-L@H + 2*A@H0/3 - 0.5*H", "tanh(2*H) + 3*A@H"])
def test_the_numbers_of_an_equation_are_made_on_the_device(text: str) -> None:
    op = rd.generators.ring(5).operator("row", dtype=torch.float64)
    H0 = torch.rand(5, 2, dtype=torch.float64)
    expected = rd.lower(text, op).bind(H0)(None, H0)
    field = rd.lower(text, op).bind(H0)
    with Recorded():
        found: Tensor = field(None, H0)
    assert torch.equal(found, expected)
