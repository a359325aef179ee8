"""Which states of several fields are encoded, seen by attention and read; how their coefficients start."""

from __future__ import annotations

import pytest
import torch

import rdgraph as rd
from gread.models.gread_model import GREAD
from gread.models.place import Place
from gread.models.resolution import link_of, resolve_method
from gread.models.state_layout import StateLayout
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings, read_equation
from rdgraph.errors import NotApplicable, UnknownName
from rdgraph.language.tree import Kind

MIXED = "u'' = -alpha*L@u - v; v' = u - v"


def test_velocities_start_at_zero_between_the_encoded_fields() -> None:
    layout = StateLayout.of(GreadSettings(MIXED, hidden=2))
    assert (layout.fields, layout.encoded, layout.read) == (("u", "u'", "v"), ("u", "v"), ("u", "v"))
    assert (layout.encoded_width, layout.read_width) == (4, 4)
    encoded = torch.arange(1.0, 13.0).reshape(3, 4)
    start = layout.start(encoded)
    assert torch.equal(start[:, 2:4], torch.zeros(3, 2))
    assert torch.equal(layout.seen(start), encoded)
    assert torch.equal(layout.readout(start), encoded)
    assert torch.equal(layout.block(start, "v"), encoded[:, 2:])
    with pytest.raises(UnknownName, match="expected a field of this network, got 'w'"):
        layout.block(start, "w")


def test_encoded_velocities_are_states_as_all_others() -> None:
    layout = StateLayout.of(GreadSettings(MIXED, hidden=2, velocity="encoded"))
    x = torch.rand(3, 6)
    assert layout.start(x) is x
    assert layout.readout(x) is x
    one = StateLayout.of(GreadSettings(MIXED, hidden=2, velocity="encoded", readout="u'"))
    assert torch.equal(one.readout(x), x[:, 2:4])
    assert one.read_width == 2


def test_one_field_is_the_state_itself() -> None:
    layout = StateLayout.of(GreadSettings())
    x = torch.rand(3, 64)
    assert layout.start(x) is layout.seen(x) is layout.readout(x) is x
    assert StateLayout.of(GreadSettings(readout="H")).read == ("H",)


def test_unknown_choices_are_told() -> None:
    with pytest.raises(UnknownName, match="expected a readout, got 'w'"):
        StateLayout.of(GreadSettings(MIXED, readout="w"))
    with pytest.raises(UnknownName, match="velocity"):
        GreadSettings(velocity="random")
    with pytest.raises(UnknownName, match="readout"):
        StateLayout.of(GreadSettings("BS", readout="H'"))


def count(**values: object) -> int:
    place = Place.of(rd.generators.path(4))
    model = GREAD(Config().updated({"hidden": 8, **values}).gread, place, features=5, classes=3, seeds=[0])
    return sum(p.numel() for p in model.parameters())


def test_hidden_is_the_width_of_each_field_and_a_still_velocity_costs_nothing() -> None:
    """By hand: encoder, query and key of 64, coefficients, decoder."""
    attention = 64
    one, first = count(reaction="-alpha*L@H"), 5 * 8 + 8 + 2 * (8 * attention + attention) + 1 + 8 * 3 + 3
    assert one == first
    assert count(reaction="H'' = -alpha*L@H") == one
    pair = "u' = -Du*L@u - v; v' = u - Dv*L@v"
    wide = 5 * 16 + 16 + 2 * (16 * attention + attention) + 2 + 16 * 3 + 3
    assert count(reaction=pair) == wide
    assert count(reaction=pair, readout="v") == wide - 8 * 3
    assert count(reaction="H'' = -alpha*L@H", velocity="encoded") == wide - 1


# ---------------------------------------------------------------------- coefficients
def test_new_names_start_as_alpha_does_and_declared_signs_are_kept() -> None:
    text = "u' = -Du*L@u + beta*v + mu*u; v' = -D_v*L@v - gamma*v + nu*u"
    model = GreadSettings(
        f"{text} where Du channel, D_v channel, mu channel, nu channel, gamma channel, gamma negative, mu positive"
    )
    kinds = model.system.coefficients
    assert {name: link_of(model, name, kind) for name, kind in kinds.items()} == {
        "Du": "sigmoid", "D_v": "sigmoid", "beta": "free", "mu": "sigmoid", "nu": "free", "gamma": "negated sigmoid",
    }  # fmt: skip
    place = Place.of(rd.generators.path(4))
    net = GREAD(resolve_method(model)[0], place, features=2, classes=2, seeds=[0, 1])
    values = net.coefficients()
    assert torch.equal(values["Du"], torch.full((2, 64), 0.5))
    assert torch.equal(values["gamma"], torch.full((2, 64), -0.5))
    assert bool((values["nu"].abs() <= 1).all())
    assert bool((values["nu"] < 0).any())
    assert bool((values["nu"] > 0).any())


def test_a_declared_sign_counts_for_one_field_too_and_a_link_beats_it() -> None:
    text = "-alpha*L@H + beta*H0 + c*H where beta negative, c real"
    assert link_of(GreadSettings(text), "beta", Kind.CHANNEL) == "negated sigmoid"
    assert link_of(GreadSettings(text, beta_link="free"), "beta", Kind.CHANNEL) == "free"
    assert link_of(GreadSettings(text), "c", Kind.SCALAR) == "free"
    assert link_of(GreadSettings("-alpha*L@H + c*H"), "c", Kind.SCALAR) == "sigmoid"


def test_beta_keeps_its_sign_where_several_fields_are_not_linear() -> None:
    linear, curved = "u' = -Du*L@u + beta*v; v' = u - v", "u' = -Du*L@u + beta*u*v; v' = u - v"
    assert resolve_method(GreadSettings(linear))[0].beta_link == "auto"
    chosen, reason = resolve_method(GreadSettings(curved))
    assert chosen.beta_link == "sigmoid"
    assert "beta in (0, 1)" in reason
    negative = resolve_method(GreadSettings(f"{curved} where beta negative"))[0]
    assert link_of(negative, "beta", Kind.CHANNEL) == "negated sigmoid"


@pytest.mark.parametrize(
    ("reaction", "step"),
    [("H'' = -gamma*H - alpha*H' + tanh(A@H)", 0.3), ("u' = u*v; v' = -L@v", 0.5), ("-sin(t)*tanh(H)", 1.0)],
)
@pytest.mark.parametrize("adjacency", ["original", "soft", "live"])
def test_the_method_that_is_chosen_can_be_recorded(reaction: str, step: float, adjacency: str) -> None:
    chosen, reason = resolve_method(GreadSettings(reaction, adjacency=adjacency, time=3.0))
    assert chosen.method == "rk4"
    assert chosen.step == pytest.approx(step)
    assert reason


# ---------------------------------------------------------------------- what is refused
def test_noise_and_further_operators_are_refused() -> None:
    with pytest.raises(NotApplicable, match="expected an equation without white noise to train"):
        read_equation("u' = -L@u + sigma*xi", "scalar", "channel")
    with pytest.raises(NotApplicable, match="for whose B a network has no graph"):
        read_equation("H' = -alpha*L@H + beta*B@H where B antisymmetric", "scalar", "channel")
