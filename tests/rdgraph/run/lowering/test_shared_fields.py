"""Fields without a batch take batches of states: every member gets what it would get alone, gradients included."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.vocabulary.methods import FOR_NOISE, METHODS

NODES, CHANNELS = 6, 2
GRAPH = rd.generators.erdos_renyi(NODES, 0.5, 1)
LINEAR = {"diffusion", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "GRAND++", "APPNP", "SGC"}
CLOSED = {"diffusion", "F", "AC", "Z", "BS", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "SGC", "ACMP"}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def field_of(name: str, normalisation: str = "row") -> VectorField:
    """The system with coefficients of every kind, with gradients."""
    system = rd.catalogue[name]
    shapes = {Kind.SCALAR: (), Kind.CHANNEL: (CHANNELS,), Kind.NODE: (NODES,), Kind.MATRIX: (CHANNELS, CHANNELS)}
    values = {
        letter: (0.2 + 0.5 * random(*shapes[kind], seed=k)).requires_grad_(True)
        for k, (letter, kind) in enumerate(valued_letters(system).items())
    }
    operator = GRAPH.operator(normalisation, dtype=torch.float64)
    weights = operator.weights.clone().requires_grad_(True)
    return rd.lower(system, operator.with_weights(weights, normalisation), values)


def run(field: VectorField, H0: Tensor, method: str) -> rd.run.Solution:
    step = None if method in ("exact", "dopri5") else 0.45
    return rd.solve(field, H0, [0.0, 0.9], method, step=step)


def applies(name: str, method: str) -> bool:
    few = name in ("AC", "ST", "CGNN") and method not in FOR_NOISE
    return {"exact": name in LINEAR, "strang": name in CLOSED, "euler": True, "rk4": True}.get(method, few)


CASES = [(n, m) for n in rd.catalogue.single for m in METHODS if applies(n, m)]


@pytest.mark.slow_cases(24)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), CASES)
def test_members_of_a_shared_field_are_those_of_single_runs(name: str, method: str) -> None:
    field, H0 = field_of(name), random(2, 1, NODES, CHANNELS, seed=9).requires_grad_(True)
    sol = run(field, H0, method)
    assert sol.states.shape == (2, 2, 1, NODES, CHANNELS)
    assert sol.status.tolist() == [["ok"], ["ok"]]
    alone = torch.stack([run(field, H[0], method).states for H in H0], 1)[:, :, None]
    torch.testing.assert_close(sol.states, alone, rtol=1e-13, atol=1e-14)
    weight = random(*sol.states.shape, seed=4)
    leaves = [H0, *field.tensors()]
    found, wanted = (torch.autograd.grad((x * weight).sum(), leaves) for x in (sol.states, alone))
    for own, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column", "none"])
@pytest.mark.parametrize("name", ["BS", "ST", "GRAND++", "CGNN", "GRAFF", "AC"])
def test_one_evaluation_of_a_shared_field(name: str, normalisation: str) -> None:
    field, H = field_of(name, normalisation), random(4, NODES, CHANNELS, seed=2)
    bound = field.bind(H)
    assert bound.batch == (4,)
    found = bound(0.0, H)
    for k in range(4):
        torch.testing.assert_close(found[k], field.bind(H[k])(0.0, H[k]), rtol=1e-14, atol=1e-14)


def test_members_have_different_times_and_failures() -> None:
    field = rd.lower("H*H", GRAPH.operator("row", dtype=torch.float64), {})
    H0 = torch.stack([random(NODES, 1) * 0.1, random(NODES, 1) + 2])
    sol = rd.solve(field, H0, torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64), "rk4", step=0.1)
    assert sol.status.tolist() == ["ok", "blow-up"]
    alone = rd.solve(field, H0[0], [0.0, 1.0], "rk4", step=0.1)
    torch.testing.assert_close(sol.final[0], alone.final, rtol=1e-14, atol=0)


def test_different_numbers_of_members_need_a_declared_batch() -> None:
    operator = GRAPH.operator("row", dtype=torch.float64)
    with pytest.raises(InvalidArgument, match=r"pass batch=\(...\)"):
        rd.lower("diffusion", operator, {"alpha": [0.1, 0.2]})
    with pytest.raises(InvalidArgument, match=r"pass batch=\(2,\)"):
        rd.lower("diffusion", operator.with_weights(operator.weights.expand(2, -1), "row"), {"alpha": 1.0})
    many = rd.lower("diffusion", operator, {"alpha": [0.1, 0.2]}, batch=(2,))
    with pytest.raises(InvalidArgument, match=rf"shape \(2, {NODES}, channels\), got Tensor \(3, {NODES}, 1\)"):
        many(0.0, random(3, NODES, 1))
    with pytest.raises(InvalidArgument, match=r"expected the batch \(2,\)"):
        many.spread((3,))
    bound = rd.lower("ST", operator, {"alpha": 1.0, "beta": 1.0}).bind(random(2, NODES, 1))
    with pytest.raises(InvalidArgument, match=rf"shape \(2, {NODES}, channels\)"):
        bound(0.0, random(NODES, 1))


def test_a_number_for_a_coefficient_of_channels_is_shared_by_the_members() -> None:
    system = rd.parse("-alpha*L@H + beta*tanh(H)", {"beta": "channel"})
    op, H = rd.generators.ring(5).operator("row", dtype=torch.float64), random(3, 5, 2)
    field = rd.lower(system, op, {"alpha": [1.0, 2.0, 3.0], "beta": 0.5}, batch=(3,))
    some = field.members(torch.tensor([2, 0]))
    torch.testing.assert_close(some(None, H[[2, 0]]), field(None, H)[[2, 0]])


def test_members_of_a_batch_have_different_operators() -> None:
    op = rd.generators.ring(5).operator("row", dtype=torch.float64)
    other = op.with_weights(random(3, op.num_edges, seed=1))
    field = rd.lower("H' = B@H where B operator", op, {}, operators={"B": other}, batch=(3,))
    H = random(3, 5, 2)
    torch.testing.assert_close(field.members(torch.tensor([2, 0]))(None, H[[2, 0]]), field(None, H)[[2, 0]])
    torch.testing.assert_close(field.rebatched(1)(None, H[1]), field(None, H)[1])
