"""`solve` by default: the method follows from the equation, and every member has its own step."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import sympy as sp
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.run.solvers.automatic import automatic

F64 = torch.float64
GRAPH = rd.generators.ring(6)
LINES = {
    "BS": ("exact", 1e-8), "GRAND++": ("exact", 1e-8), "-alpha*L@H + beta": ("exact", 1e-8), "F": ("strang", 2e-3),
    "AC": ("strang", 2e-3), "Z": ("strang", 2e-3), "Nagumo": ("dopri5", 1e-5),
    "-alpha*L@H + beta*tanh(H)": ("rk4", 2e-3), "-alpha*L@H + beta*tanh(A@H)": ("rk4", 2e-3),
    "-L@H + H*(A@H)*(1 - H)": ("dopri5", 1e-5), "-alpha*L@H + beta*sin(H) + H0": ("rk4", 2e-3), "CGNN": ("rk4", 2e-3),
}  # fmt: skip


def values_of(line: str, channels: int = 2) -> dict[str, Any]:
    given: dict[str, Any] = {"W": torch.tensor([[0.2, -0.3], [0.1, 0.4]], dtype=F64), "M": torch.arange(6) % 2}
    return {name: given.get(name, 0.8) for name in rd.parse(line).letters if name not in ("H", "H0", "A", "L")}


def state(*batch: int, seed: int = 0) -> Tensor:
    return torch.rand(*batch, 6, 2, dtype=F64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column", "none"])
@pytest.mark.parametrize("line", LINES)
@pytest.mark.slow_cases(16)
@pytest.mark.slow
def test_the_default_is_near_the_flow(line: str, normalisation: str) -> None:
    field = rd.lower(line, GRAPH.operator(normalisation, dtype=F64), values_of(line))
    times = [0.0, 0.77, 2.0]
    sol = rd.solve(field, state(), times)
    truth = rd.solve(field, state(), times, "dopri5", rtol=1e-10, atol=1e-12)
    method, tolerance = LINES[line]
    if method != "dopri5" and normalisation == "none" and {"A", "L"} <= set(field.system.letters):
        method, tolerance = "rk4", 2e-3
    assert sol.ok
    assert sol.method == method
    assert sol.reason
    assert float((sol.states - truth.states).abs().max() / truth.states.abs().max()) < tolerance


def test_a_method_that_is_named_has_no_reason() -> None:
    field = rd.lower("F", GRAPH.operator(dtype=F64), {"alpha": 1.0, "beta": 1.0})
    sol = rd.solve(field, state(), [0.0, 1.0], "dopri5")
    assert (sol.method, sol.reason) == ("dopri5", "")


@pytest.mark.parametrize("line", ["F", "-alpha*L@H + beta*tanh(H)", "-alpha*L@H + beta*H*(1 - H)*(H - 0.3)"])
def test_a_member_does_not_notice_its_batch(line: str) -> None:
    op, beta = GRAPH.operator("row", dtype=F64), torch.tensor([0.3, 7.0, 1.0], dtype=F64)
    H0 = state(3) * torch.tensor([1.0, 1.0, 4.0], dtype=F64)[:, None, None]
    field = rd.lower(line, op, {"alpha": 1.0, "beta": beta}, batch=(3,))
    together = rd.solve(field, H0, [0.0, 0.4, 1.0])
    steps = automatic(field, H0, [0.0, 0.4, 1.0]).step
    assert (steps is None) == (together.method == "dopri5")
    assert steps is None or steps[1] < steps[0]
    for k in range(3):
        alone = rd.solve(rd.lower(line, op, {"alpha": 1.0, "beta": float(beta[k])}), H0[k], [0.0, 0.4, 1.0])
        torch.testing.assert_close(together.states[:, k], alone.states, rtol=1e-13, atol=1e-14)
        own = automatic(field.rebatched(k), H0[k], [0.0, 0.4, 1.0]).step
        assert own is None if steps is None else float(own) == float(steps[k])  # type: ignore[arg-type]


def test_different_times_give_different_steps() -> None:
    field = rd.lower("-alpha*L@H + beta*tanh(H)", GRAPH.operator(dtype=F64), {"alpha": 1.0, "beta": 1.0}, batch=(2,))
    t = torch.tensor([[0.0, 0.0], [0.1, 2.0]], dtype=F64)
    step = automatic(field, state(2), t).step
    assert torch.equal(step, torch.tensor([0.1, 0.4], dtype=F64))
    assert rd.solve(field, state(2), t).stats.accepted == 5


def test_weights_that_are_not_normalised_shorten_the_steps() -> None:
    op = rd.generators.complete(6).operator("none", dtype=F64)
    steps = [
        automatic(
            rd.lower("-alpha*L@H + tanh(H)", op.with_weights(c * op.weights, "none"), {"alpha": 1.0}), state(), [0, 1]
        )
        for c in (1.0, 10.0)
    ]
    assert [x.method for x in steps] == ["rk4", "rk4"]
    assert float(steps[1].step) < float(steps[0].step) / 8  # type: ignore[arg-type]
    stiff = rd.lower("-alpha*L@H + tanh(H)", op.with_weights(10 * op.weights, "none"), {"alpha": 1.0})
    assert rd.solve(stiff, state(), [0.0, 3.0]).ok


def test_failures_are_marked_member_by_member() -> None:
    field = rd.lower("-alpha*L@H + beta*H*H*tanh(H)", GRAPH.operator("row", dtype=F64), {"alpha": 0.1, "beta": 1.0})
    H0 = torch.stack([0.01 * state(), 5 * torch.ones(6, 2, dtype=F64), torch.full((6, 2), torch.nan, dtype=F64)])
    sol = rd.solve(field, H0, [0.0, 2.0])
    assert sol.status.tolist() == ["ok", "blow-up", "not-a-number"]
    alone = rd.solve(field, H0[0], [0.0, 2.0])
    torch.testing.assert_close(sol.final[0], alone.final, rtol=1e-13, atol=1e-15)


def test_gradients_go_through_the_default() -> None:
    for line in ("BS", "F", "-alpha*L@H + beta*tanh(H)"):
        beta = torch.tensor(0.7, dtype=F64, requires_grad=True)
        field = rd.lower(line, GRAPH.operator(dtype=F64), {"alpha": 1.0, "beta": beta})
        (found,) = torch.autograd.grad(rd.solve(field, state(), [0.0, 1.0]).final.sum(), beta)
        (truth,) = torch.autograd.grad(rd.solve(field, state(), [0.0, 1.0], "dopri5").final.sum(), beta)
        assert float(found) == pytest.approx(float(truth), rel=5e-3, abs=1e-6)


def test_with_the_adjoint_the_default_steps() -> None:
    field = rd.lower("BS", GRAPH.operator(dtype=F64), {"alpha": 1.0, "beta": torch.tensor(0.5, dtype=F64)})
    sol = rd.solve(field, state(), [0.0, 1.0], adjoint=True)
    assert sol.method == "rk4"
    assert "Runge-Kutta steps" in sol.reason
    truth = rd.solve(field, state(), [0.0, 1.0], "exact")
    torch.testing.assert_close(sol.final, truth.final, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("line", "settings"),
    [("BS", {"interpolation": "cubic"}), ("F", {"max_steps": 5}), ("-alpha*L@H + tanh(H)", {"rtol": 1e-3})],
)
def test_settings_that_the_chosen_method_cannot_use_are_refused(line: str, settings: dict[str, Any]) -> None:
    field = rd.lower(line, GRAPH.operator(dtype=F64), values_of(line))
    with pytest.raises(InvalidArgument, match="which auto chose"):
        rd.solve(field, state(), [0.0, 1.0], **settings)


def test_a_step_that_is_given_replaces_the_chosen_one() -> None:
    field = rd.lower("Nagumo", GRAPH.operator(dtype=F64), values_of("Nagumo"))
    given, named = (
        rd.solve(field, state(), [0.0, 1.0], step=0.25),
        rd.solve(field, state(), [0.0, 1.0], "rk4", step=0.25),
    )
    assert given.stats.accepted == 4
    linear = rd.lower("BS", GRAPH.operator(dtype=F64), values_of("BS"))
    assert rd.solve(linear, state(), [0.0, 1.0], step=0.25).method == "rk4"
    assert torch.equal(given.final, named.final)


STEEP = "H**2 + 1/1000000*(A@H)*sin(H)"


@pytest.mark.parametrize("line", [STEEP, f"u' = {STEEP.replace('H', 'u')}; v' = u - v"])
def test_steps_follow_a_state_that_outgrows_its_start(line: str) -> None:
    """Near h' = h**2, which reaches 10 at t = 0.9 and has no value at 1."""
    field = rd.lower(line, GRAPH.operator("row", dtype=F64))
    H0 = torch.ones(6, len(field.system.fields or "H"), dtype=F64)
    for end, value in ((0.4, 1 / 0.6), (0.9, 10.0)):
        run = rd.solve(field, H0, [0.0, end])
        assert run.method == rd.theory.choose_method(line, end, normalisation="row").method == "dopri5"
        assert float(run.final[:, 0].max()) == pytest.approx(value, rel=1e-3)
    assert not rd.solve(field, H0, [0.0, 1.01]).ok


@pytest.mark.parametrize("line", [STEEP, f"u' = {STEEP.replace('H', 'u')}; v' = u - v"])
def test_fixed_steps_that_a_state_has_outgrown_are_said_to_be_too_long(line: str) -> None:
    field = rd.lower(line, GRAPH.operator("row", dtype=F64))
    H0 = torch.ones(6, len(field.system.fields or "H"), dtype=F64)
    with pytest.warns(RuntimeWarning, match="too long; use method='dopri5'"):
        rd.solve(field, H0, [0.0, 0.99], adjoint=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.solve(field, H0, [0.0, 0.1], adjoint=True)
    half = rd.lower(STEEP, GRAPH.operator("row", dtype=torch.bfloat16))
    assert rd.solve(half, torch.ones(6, 1, dtype=torch.bfloat16), [0.0, 0.1]).method == "rk4"


def test_preflight_names_the_method_of_the_run() -> None:
    """With numbers in the place of letters a bound may be found that the run does not look for."""
    line, values = "-alpha*L@H + beta*1/(a + H**2)", {"alpha": 1.0, "beta": 1.0, "a": 0.7}
    run = rd.solve(rd.lower(line, GRAPH.operator("row", dtype=F64), values), state(), [0.0, 2.0])
    report = rd.preflight(line, T=2, normalisation="row", values=values)
    assert report.settings["method"] == run.method == "dopri5"


@pytest.mark.parametrize(("text", "number"), [("1/3", 1 / 3), ("2*beta", 2.0)])
def test_preflight_takes_values_as_text(text: str, number: float) -> None:
    """The step of a coefficient that is not given is that of 1, as for beta here."""
    line = "-alpha*L@H + beta*tanh(H)"
    report = rd.preflight(line, T=4, values={"alpha": text})
    assert report.settings["method"] == "rk4"
    assert float(sp.Rational(report.settings["step"])) == pytest.approx(
        rd.theory.choose_method(line, T=4, values={"alpha": number}).step
    )


def test_a_blow_up_with_the_adjoint_is_a_status() -> None:
    """The slope at the last state with a value is infinite."""
    field = rd.lower("-alpha*L@H + beta*exp(H)", GRAPH.operator("row", dtype=F64), {"alpha": 1.0, "beta": 1.0})
    H0 = 1 + 0.1 * state(seed=0)[:, :1]
    for end in (1.3, 1.7, 2.0, 2.5, 3.0):
        run = rd.solve(field, H0, [0.0, end / 3, end], adjoint=True)
        assert run.status.tolist() == "blow-up"
        assert torch.isfinite(run.states).all()
