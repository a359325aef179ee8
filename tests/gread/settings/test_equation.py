"""An equation is read once and travels as a `System`: one reading for a training, none for what comes after."""

from __future__ import annotations

import pytest
import torch

import rdgraph as rd
from gread import GREADClassifier, GREADConv, karate
from gread.settings.gread_settings import GreadSettings, read_equation
from rdgraph.language.tree import Kind
from rdgraph.systems import equation_text

EQUATION = "-alpha*L@H + beta*tanh(H)"
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is read as the right-hand side of an equation."""
    texts: list[str] = []
    read = equation_text.read_expression

    def counted(text: str, *given: object, **named: object) -> object:
        texts.append(text.strip())
        return read(text, *given, **named)

    monkeypatch.setattr(equation_text, "read_expression", counted)
    return texts


@pytest.mark.parametrize("members", [1, 2])
def test_a_training_reads_its_equation_once(readings: list[str], members: int) -> None:
    data = karate()
    clf = GREADClassifier(EQUATION, hidden=4, epochs=2, method="rk4", step=0.5, members=members)
    clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    assert readings == [EQUATION]
    readings.clear()
    clf.predict(nodes=[0, 33])
    network = clf.network_
    network.logits(data.x, data.graph)
    network.states(data.x, data.graph, [0.0, 1.0])
    network.coefficients()
    assert str(network.system) == f"{EQUATION} where beta channel"
    assert readings == []


def test_a_layer_reads_its_equation_when_it_is_made(readings: list[str]) -> None:
    layer = GREADConv(4, EQUATION, method="euler", step=0.5)
    assert readings == [EQUATION]
    layer(torch.eye(3, 4), EDGES).sum().backward()
    layer.coefficients()
    assert readings == [EQUATION]


def test_a_system_is_taken_as_it_is(readings: list[str]) -> None:
    system = rd.parse(EQUATION, {"beta": "channel"})
    readings.clear()
    layer = GREADConv(4, system, method="euler", step=0.5)
    assert layer.system is system
    rd.lower(system, rd.generators.path(3).operator("row"), {"alpha": 1.0, "beta": torch.ones(2)})
    assert readings == []


def test_a_catalogue_name_is_not_read_again(readings: list[str]) -> None:
    rd.catalogue["BS"]
    readings.clear()
    assert GreadSettings(reaction="BS").system.coefficients == {"alpha": Kind.SCALAR, "beta": Kind.CHANNEL}
    assert readings == []


def test_models_hold_their_equation() -> None:
    model = GreadSettings(reaction="Nagumo", alpha="channel", beta="scalar")
    assert model.system is model.system
    assert model.system == rd.parse("Nagumo", {"alpha": "channel"})
    assert model == GreadSettings(reaction="Nagumo", alpha="channel", beta="scalar")


@pytest.mark.parametrize("reaction", ["Nagumo", "GRAND++", "H@W - k*H where k channel, k < 2"])
@pytest.mark.parametrize(("alpha", "beta"), [("scalar", "channel"), ("node", "scalar")])
def test_declared_kinds_are_those_of_a_text_with_declarations(reaction: str, alpha: str, beta: str) -> None:
    found = read_equation(reaction, alpha, beta)
    text = str(rd.catalogue[reaction]) if reaction in rd.catalogue else reaction
    plain = rd.parse(text).coefficients
    asked = {name: kind for name, kind in (("alpha", alpha), ("beta", beta)) if name in plain}
    assert found == rd.parse(text, asked)
