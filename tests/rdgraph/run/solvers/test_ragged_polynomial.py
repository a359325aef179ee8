"""Members with degrees of their own in one ladder of products: each is what it is alone, in value and gradient."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.run.solvers import polynomial_flow
from rdgraph.run.solvers.polynomial_flow import Levels, LinearFlow, apply_polynomial, apply_ragged
from rdgraph.run.solvers.schedules import Schedule, Schedules

pytest.importorskip("triton", reason="Triton is not installed")
INTERPRETED = os.environ["TRITON_INTERPRET"] == "1"
pytestmark = pytest.mark.skipif(not INTERPRETED and not torch.cuda.is_available(), reason="no interpreter and no GPU")
DEVICE = "cpu" if INTERPRETED else "cuda"
DEGREES = (0, 2, 2, 5)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape))).to(DEVICE)


def operator(normalisation: str, members: int = 0):
    """That of a small graph; with members their weights, which want a gradient."""
    op = rd.generators.barabasi_albert(9, 2, seed=3).operator(normalisation, dtype=torch.float64, device=DEVICE)
    if not members:
        return op
    return op.with_weights((op.weights * (1 + 0.1 * random(members, op.num_edges))).requires_grad_())


def alone(op, series: Tensor, x: Tensor, kind: str) -> Tensor:
    """Every member by itself."""
    own = [op.member((m,)) if op.batch else op for m in range(len(DEGREES))]
    return torch.stack([
        apply_polynomial(one, series[: degree + 1, m], x[m], kind)
        for m, (one, degree) in enumerate(zip(own, DEGREES, strict=True))
    ])  # fmt: skip


def test_levels_say_where_vectors_lie() -> None:
    levels = Levels.of(DEGREES)
    assert levels is Levels.of(list(DEGREES))
    assert levels.firsts == (0, 1, 1, 3, 3, 3)
    assert levels.rows == sum(degree + 1 for degree in DEGREES)
    stack = torch.arange(levels.rows)
    blocks = [levels.block(stack, power).tolist() for power in range(6)]
    assert [row for block in blocks for row in block] == stack.tolist()
    assert levels.block(stack, 1, 3).tolist() == blocks[1][2:]
    shifts, degrees = levels.tables(torch.device("cpu"))
    assert [int(shifts[2]) + member for member in (1, 2, 3)] == blocks[2]
    assert degrees.tolist() == list(DEGREES)


@pytest.mark.parametrize("kind", ["taylor", "chebyshev"])
@pytest.mark.parametrize("members", [0, 4])
@pytest.mark.parametrize("channels", [1, 3])
def test_each_member_is_what_it_is_alone(kind: str, members: int, channels: int) -> None:
    op = operator("symmetric" if kind == "chebyshev" and not members else "row", members)
    series, x = random(6, 4, 1, channels).requires_grad_(), random(4, 9, 3).requires_grad_()
    wanted = [series, x, *([op.weights] if members else [])]
    found = apply_ragged(op, series, x, kind, slice(0, 4), Levels.of(DEGREES))
    expected = alone(op, series, x, kind)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    g = random(4, 9, 3)
    for one, two in zip(*(torch.autograd.grad(out, wanted, g) for out in (found, expected)), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        torch.testing.assert_close(apply_ragged(op, series, x, kind, slice(0, 4), Levels.of(DEGREES)), expected)


def test_a_part_of_the_batch_has_its_weights() -> None:
    op = operator("row", 6)
    series, x = random(6, 4, 1, 1), random(4, 9, 3)
    found = apply_ragged(op, series, x, "taylor", slice(2, 6), Levels.of(DEGREES))
    own = op.members(torch.arange(2, 6, device=DEVICE))
    torch.testing.assert_close(found, alone(own, series, x, "taylor"), rtol=1e-12, atol=1e-12)


def test_second_derivatives() -> None:
    op, levels = operator("row", 2), Levels.of((1, 2))
    series, x = random(3, 2, 1, 1).requires_grad_(), random(2, 9, 1).requires_grad_()

    def value(weights: Tensor, c: Tensor, h: Tensor) -> Tensor:
        return apply_ragged(op.with_weights(weights), c, h, "taylor", slice(0, 2), levels)

    assert torch.autograd.gradgradcheck(value, (op.weights, series, x), fast_mode=True)


@pytest.mark.parametrize("watch", [False, True])
def test_a_flow_in_one_ladder_is_the_flow_in_pieces(monkeypatch: pytest.MonkeyPatch, watch: bool) -> None:
    op = operator("row", 4)
    values = {"alpha": random(4).abs(), "beta": random(4, 3)}
    field = rd.lower(rd.parse("BS", {"beta": "channel"}), op, values, batch=(4,))
    times = torch.tensor([0.5, 1.0, 1.5, 4.0], dtype=torch.float64, device=DEVICE)
    schedule = Schedules.of([Schedule.make("rk4", float(t), 0.5) for t in times])
    H0 = random(4, 9, 3)
    pieces = ((0, 1, 5), (1, 3, 6), (3, 4, 20))
    seen = []
    kept = polynomial_flow.apply_ragged
    monkeypatch.setattr(polynomial_flow, "apply_ragged", lambda *given: seen.append(given[-1]) or kept(*given))
    results = []
    for is_ragged in (True, False):
        monkeypatch.setattr(LinearFlow, "takes_ragged", staticmethod(lambda *given, yes=is_ragged: yes))
        results.append(LinearFlow(schedule, 20, None, pieces).run(field, H0, times, watch=watch))
    assert [levels.degrees for levels in seen] == [(5, 6, 6)]
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-12, atol=1e-12)
    if watch:
        torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-12, atol=1e-15)
    else:
        assert results[0][1] is None


@pytest.mark.gpu
def test_a_captured_training_in_one_ladder_is_the_training_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    base = Config().updated({"hidden": 8, "epochs": 20, "adjacency": "soft", "attention_dim": 8, "method": "rk4"})
    times = (0.5, 1.0, 2.0, 4.0, 6.0, 6.0)
    trials = [Trial(base.updated({"time": t, "step": 0.25}), split) for split, t in enumerate(times)]
    results = []
    for is_ragged in (True, False):
        monkeypatch.setattr(LinearFlow, "takes_ragged", staticmethod(lambda *given, yes=is_ragged: yes))
        ensemble = Ensemble(karate(), trials, device="cuda", dtype=torch.float64)
        ensemble.advance(20)
        assert ensemble._replay is not None
        results.append(ensemble.outcome().history)
    torch.testing.assert_close(results[0], results[1], rtol=1e-7, atol=1e-8)
