"""Stiff fields: `imex` and `strang` of several fields have order 2, outlive explicit steps, and are chosen for it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.run.lowering.split_field import SplitField
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.run.solvers.automatic import measured_rates
from rdgraph.run.solvers.solver import solve
from rdgraph.run.solvers.splitting import ExactPart, make_field_strang
from rdgraph.theory.method_choice import bounded_rates
from rdgraph.theory.rate_bounds import rates_of_parts
from tests.property_examples import examples

F64 = torch.float64
NODES = 8
GRAPH = rd.generators.erdos_renyi(NODES, 0.4, 1)
NORMALISATIONS = ("symmetric", "row", "none")
SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
OSCILLATORS = "H'' = -gamma*H - alpha*H' + tanh(A@H)"
SEASONS = "u' = -alpha*L@u + sin(u) + exp(-t)*v; v' = u - 3*L@v + t*u"
STARTS = "u' = -alpha*L@u + v*(u0 - u); v' = A@u0 - gamma*v"
ALONE = "u' = -alpha*L@u + u*(1 - u); v' = v - v**3 - beta*L@v"
FULL = "u' = k*L@u - m*u + u*v; v' = -3*L@L@v - u*v where k channel, m node"
SYSTEMS = (SCHNAKENBERG, OSCILLATORS, SEASONS, STARTS, ALONE)
VALUES = {"a": 0.1, "b": 0.9, "Du": 0.1, "Dv": 2.0, "alpha": 1.5, "beta": 2.0, "gamma": 1.2}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def made(text: str, normalisation: str = "symmetric", batch: tuple[int, ...] = (), **own: Any) -> VectorField:
    system = rd.parse(text)
    values = {**{n: VALUES[n] for n in system.coefficients if n in VALUES}, **own}
    return rd.lower(system, GRAPH.operator(normalisation, dtype=F64), values, batch=batch)


def start_for(field: VectorField, *batch: int, channels: int = 1) -> Tensor:
    return random(*batch, NODES, len(field.system.fields) * channels, seed=3)


def laplacian(field: VectorField) -> np.ndarray:
    matrix = field.operator.dense().numpy()
    degree = np.eye(NODES) if field.operator.degree is None else np.diag(matrix.sum(1))
    return degree - matrix


# ---------------------------------------------------------------------- the two parts
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("text", [*SYSTEMS, FULL, "F", "u' = A@u - L@u + u**2"])
def test_the_parts_add_up_to_the_field(text: str, normalisation: str) -> None:
    own = {"k": -random(2), "m": random(NODES)} if text == FULL else {}
    field = made(text, normalisation, **own)
    H = start_for(field, channels=2)
    field, parts = field.bind(H), SplitField(field.bind(H))
    torch.testing.assert_close(parts.linear(H) + parts.remainder(0.3, H), field(0.3, H), rtol=1e-12, atol=1e-12)


def test_what_every_field_does_with_itself_is_the_exact_part() -> None:
    parts = SplitField(made(SCHNAKENBERG))
    assert parts.letter == "A"
    assert [sorted(powers) for powers in parts.stages.generators] == [[0, 1], [0, 1]]
    assert parts.remainder_products == 0
    assert SplitField(made(SCHNAKENBERG, "none")).letter == "L"
    assert SplitField(made(SEASONS)).stages.generators[1].keys() == {0, 1}
    full = SplitField(made(FULL, k=-random(1), m=random(NODES)))
    assert [sorted(powers) for powers in full.stages.generators] == [[0, 1], [0, 1, 2]]


@pytest.mark.parametrize("rate", [1.0, 80.0, 1000.0])
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_the_exact_part_is_the_matrix_exponential(normalisation: str, rate: float) -> None:
    field = made(SCHNAKENBERG, normalisation, Dv=rate)
    H, forcing, dt = start_for(field), random(NODES, 2, seed=9), torch.tensor(0.1, dtype=F64)
    exact = ExactPart(field, H)
    moved, decayed = exact.moved(H, dt, exact.rate(H), forcing), exact.decayed(H, dt)
    for k, generator in enumerate((-0.1 * laplacian(field) - np.eye(NODES), -rate * laplacian(field))):
        wide = np.zeros((NODES + 1, NODES + 1))
        wide[:-1, :-1], wide[:-1, -1] = generator, forcing[:, k]
        wanted = scipy.linalg.expm(0.1 * wide) @ np.append(H[:, k], 1)
        np.testing.assert_allclose(moved[:, k].numpy(), wanted[:-1], rtol=0, atol=1e-9)
        flow = scipy.linalg.expm(0.1 * generator) @ H[:, k].numpy()
        np.testing.assert_allclose(decayed[:, k].numpy(), flow, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------- order, fixed points, stability
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize(
    ("text", "method"), [*((text, "imex") for text in (*SYSTEMS, "F")), (SCHNAKENBERG, "strang"), (ALONE, "strang")]
)
@pytest.mark.slow_cases(9)
@pytest.mark.slow
def test_the_order_is_two(text: str, method: str, normalisation: str) -> None:
    slower = {name: 0.3 for name in ("Dv", "beta", "alpha") if name in rd.parse(text).coefficients}
    field = made(text, normalisation, **(slower if normalisation == "none" else {}))
    H0, times = start_for(field), [0.1, 0.9]
    wanted = solve(field, H0, times, "dopri5", rtol=1e-11, atol=1e-12).final
    steps = (0.05, 0.025, 0.0125)
    errors = [float((solve(field, H0, times, method, step=h).final - wanted).abs().max()) for h in steps]
    assert abs(np.log2(errors[1] / errors[2]) - 2) < 0.3
    assert errors[2] < 5e-3


def test_states_at_rest_stay() -> None:
    field = made(SCHNAKENBERG, Dv=1000.0)
    H0 = torch.tensor([[1.0, 0.9]], dtype=F64).expand(NODES, 2).contiguous()  # u = a + b, v = b/u^2
    moved = made(SCHNAKENBERG, "row", Dv=1000.0)
    assert float(moved(None, H0).abs().max()) < 1e-12
    sol = solve(moved, H0, [0.0, 10.0], "imex", step=0.5)
    torch.testing.assert_close(sol.final, H0, rtol=0, atol=1e-9)
    assert float(field(None, H0).abs().max()) > 1  # constants are not at rest under the symmetric normalisation


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_linear_fields_are_exact_for_every_step(normalisation: str) -> None:
    field = made("u' = 0.3 - Du*L@u; v' = -Dv*L@L@v", normalisation, Du=3.0, Dv=40.0)
    H0 = start_for(field)
    one, many = (solve(field, H0, [0.0, 2.0], "imex", step=h).final for h in (2.0, 0.1))
    torch.testing.assert_close(one, many, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", ["imex", "strang"])
def test_stiff_diffusion_is_outlived_where_rk4_breaks(method: str) -> None:
    field = made(SCHNAKENBERG, Du=30.0, Dv=300.0)
    H0 = start_for(field)
    explicit = solve(field, H0, [0.0, 1.0], "rk4", step=0.02)
    assert explicit.status == "blow-up"
    sol = solve(field, H0, [0.0, 1.0], method, step=0.02)
    assert sol.ok
    finer = solve(field, H0, [0.0, 1.0], "rk4", step=0.002)
    assert finer.ok
    torch.testing.assert_close(sol.final, finer.final, rtol=0, atol={"imex": 2e-4, "strang": 2e-2}[method])


def test_stiff_diffusion_stays_linear_with_node_and_time_coefficients() -> None:
    """L = I - A gives the identity a share of the diffusion, which must not be stepped with what varies."""
    field = made("u' = -alpha*L@u + (m + exp(-t))*u; v' = -L@v - v where m node", alpha=400.0, m=-random(NODES))
    parts, H0 = SplitField(field), start_for(field)
    assert [float(c[0, 0]) for c in parts.generator(1)] == [-400.0, 400.0]
    sol = solve(field, H0, [0.0, 1.0], "imex", step=0.05)
    wanted = solve(field, H0, [0.0, 1.0], "rk4", step=0.002).final
    torch.testing.assert_close(sol.final, wanted, rtol=0, atol=1e-3)


# ---------------------------------------------------------------------- products, members, gradients
def test_all_fields_share_the_products_of_a_step() -> None:
    both, one = made(SCHNAKENBERG, Du=2.0, Dv=2.0), made("u' = a - u + u**2 - Du*L@u", Du=2.0)
    costs = [solve(f, start_for(f), [0.0, 0.1], "imex", step=0.1).stats.products for f in (both, one)]
    assert costs[0] == costs[1]


@pytest.mark.parametrize("method", ["imex", "strang"])
def test_members_have_different_coefficients_steps_and_times(method: str) -> None:
    rates = torch.tensor([0.5, 20.0, 3.0], dtype=F64)
    field = made(SCHNAKENBERG, "row", (3,), Dv=rates)
    H0 = start_for(field, 3)
    t, step = torch.tensor([[0.0, 0.1, 0.0], [1.0, 0.6, 0.0]], dtype=F64), torch.tensor([0.1, 0.05, 0.2], dtype=F64)
    sol = solve(field, H0, t, method, step=step)
    assert sol.ok
    for k in range(3):
        alone = solve(made(SCHNAKENBERG, "row", Dv=rates[k]), H0[k], t[:, k], method, step=step[k])
        torch.testing.assert_close(sol.final[k], alone.final, rtol=1e-9, atol=1e-10)
    broken = H0.clone()
    broken[1] = torch.inf
    beside = solve(field, broken, t, method, step=step)
    assert torch.equal(beside.final[[0, 2]], sol.final[[0, 2]])
    assert beside.status[1] == "blow-up"


@pytest.mark.parametrize(("text", "method"), [(SCHNAKENBERG, "imex"), (SEASONS, "imex"), (SCHNAKENBERG, "strang"), (ALONE, "strang")])  # fmt: skip  # noqa: E501
def test_gradients_are_those_of_differences(text: str, method: str) -> None:
    system, op = rd.parse(text), GRAPH.operator("row", dtype=F64)
    names = list(system.coefficients)

    def final(weights: Tensor, H0: Tensor, *numbers: Tensor) -> Tensor:
        field = rd.lower(system, op.with_weights(weights), dict(zip(names, numbers, strict=True)))
        return solve(field, H0, [0.0, 0.4], method, step=0.2).final

    leaves = [op.weights.clone(), random(NODES, 2), *(torch.tensor(VALUES[n], dtype=F64) for n in names)]
    leaves = [x.requires_grad_(True) for x in leaves]
    ways = [random(*x.shape, seed=k) - 0.5 for k, x in enumerate(leaves)]
    weight = random(NODES, 2, seed=20)
    slopes = torch.autograd.grad((final(*leaves) * weight).sum(), leaves)
    found = sum(float((a * b).sum()) for a, b in zip(slopes, ways, strict=True))
    with torch.no_grad():
        ends = [(final(*(x + h * w for x, w in zip(leaves, ways, strict=True))) * weight).sum() for h in (1e-4, -1e-4)]
    assert abs(found - float(ends[0] - ends[1]) / 2e-4) < 1e-5 * (1 + abs(found))


@pytest.mark.parametrize("method", ["imex", "strang"])
def test_narrow_states_stay_near(method: str) -> None:
    wide = made(SCHNAKENBERG, "row", Dv=50.0)
    narrow = rd.lower(wide.system, wide.operator.to(dtype=torch.float32), {"a": 0.1, "b": 0.9, "Du": 0.1, "Dv": 50.0})
    H0 = start_for(wide)
    found = solve(narrow, H0.float(), [0.0, 1.0], method, step=0.1).final
    wanted = solve(wide, H0, [0.0, 1.0], method, step=0.1).final
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=2e-4)


# ---------------------------------------------------------------------- strang
def test_fields_that_do_not_know_each_other_are_split_as_each_alone() -> None:
    field = made(ALONE, "row")
    H0 = start_for(field, channels=2)
    assert make_field_strang(field, H0).is_closed
    sol = solve(field, H0, [0.0, 1.0], "strang", step=0.25)
    for k, text in enumerate(ALONE.split("; ")):
        single = made(text, "row")
        alone = solve(single, H0.chunk(2, -1)[k].contiguous(), [0.0, 1.0], "strang", step=0.25)
        torch.testing.assert_close(sol.final.chunk(2, -1)[k], alone.final, rtol=1e-12, atol=1e-12)


@given(st.floats(0.1, 50), st.floats(0.1, 20), st.floats(0.01, 5))
@settings(max_examples=examples(15))
def test_closed_splittings_keep_their_boxes_for_every_step(alpha: float, beta: float, step: float) -> None:
    field = made(ALONE, "row", alpha=alpha, beta=beta)
    u, v = random(NODES, 1, seed=5), 2 * random(NODES, 1, seed=6) - 1
    sol = solve(field, {"u": u, "v": v}, [0.0, 3 * step], "strang", step=step)
    assert float(sol["u"].min()) >= -1e-9
    assert float(sol["u"].max()) <= 1 + 1e-9
    assert float(sol["v"].abs().max()) <= 1 + 1e-9


def test_letters_that_do_not_commute_are_not_mixed() -> None:
    field = made("u' = -alpha*L@u - u**2; v' = beta*A@v - v**3", "none", alpha=0.2, beta=0.1)
    H0 = start_for(field)
    wanted = solve(field, H0, [0.0, 0.5], "dopri5", rtol=1e-10, atol=1e-11).final
    with pytest.raises(NotApplicable, match="expected reactions at every node alone"):
        solve(field, H0, [0.0, 0.5], "strang", step=0.1)
    found = solve(field, H0, [0.0, 0.5], "imex", step=0.01).final
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-3)


@pytest.mark.parametrize("text", [OSCILLATORS, SEASONS, STARTS])
def test_reactions_beyond_a_node_are_refused(text: str) -> None:
    field = made(text)
    with pytest.raises(NotApplicable, match="use imex"):
        solve(field, start_for(field), [0.0, 1.0], "strang", step=0.1)


# ---------------------------------------------------------------------- the choice
def test_rates_are_those_of_the_parts() -> None:
    field = made("u' = -alpha*L@u + 3*v; v' = -u*0.5 - v", alpha=torch.tensor([1.0, 7.0], dtype=F64), batch=(2,))
    rates = measured_rates(field, start_for(field, 2), torch.tensor(0.0))
    np.testing.assert_allclose(rates.linear, [2.0, 14.0])
    assert ((rates.rest > 1.2) & (rates.rest < 3.01)).all()  # between the spectral radius sqrt(1.5) and the norm 3


@pytest.mark.slow
def test_auto_takes_imex_where_diffusion_is_stiff() -> None:
    field = made(SCHNAKENBERG, Du=400.0, Dv=3000.0)
    H0 = start_for(field)
    sol = solve(field, H0, [0.0, 1.0])
    assert sol.method == "imex"
    assert sol.reason.startswith("stiff: exact linear part, explicit rest")
    wanted = solve(field, H0, [0.0, 1.0], "imex", step=0.01).final
    torch.testing.assert_close(sol.final, wanted, rtol=0, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
@pytest.mark.parametrize(
    ("text", "values", "T", "method"),
    [
        (SCHNAKENBERG, {"a": 0.1, "b": 0.9, "Du": 0.1, "Dv": 2.0}, 2.0, "dopri5"),
        (SCHNAKENBERG, {"a": 0.1, "b": 0.9, "Du": 4000.0, "Dv": 30000.0}, 1.0, "imex"),
        (SCHNAKENBERG, {"a": 0.1, "b": 0.9, "Du": 4000.0, "Dv": 30000.0}, 0.001, "dopri5"),
        (OSCILLATORS, {"gamma": 1.2, "alpha": 1.5}, 2.0, "dopri5"),
        ("H'' = -gamma*H - alpha*H' - L@H", {"gamma": 1.2, "alpha": 1.5}, 2.0, "exact"),
        ("u' = -alpha*L@u + sigma*xi; v' = u - v", {"alpha": 1.0, "sigma": 0.1}, 1.0, "euler-maruyama"),
    ],
)
def test_what_is_chosen_beforehand_is_what_is_run(
    text: str, values: dict[str, float], T: float, method: str, normalisation: str
) -> None:
    """One decision: from bounds before the run, from the rates at its start within it, in the same words."""
    field = rd.lower(text, GRAPH.operator(normalisation, dtype=F64), values)
    before = rd.theory.choose_method(text, T, values=values, normalisation=normalisation, radius=1.0, row_sum=2.0)
    run = solve(field, start_for(field), [0.0, T])
    assert before.method == run.method == method
    words = [re.sub(r"step [0-9.e-]+", "step", r.partition("rates")[0].replace("bounds of the ", "")) for r in
             (before.reason, run.reason)]  # fmt: skip
    assert words[0] == words[1]
    asked = rd.theory.choose_method(text, T, values=values, normalisation=normalisation, stepped=True)
    assert asked.method == ("euler-maruyama" if "xi" in text else "rk4")


def test_bounds_of_the_rates_hold_at_every_start() -> None:
    system = rd.parse(SCHNAKENBERG)
    values = {name: VALUES[name] for name in system.coefficients}
    field = made(SCHNAKENBERG, "row")
    bounds = bounded_rates(system, "row", values, 1.0, 1.0, 1.0)
    for seed in range(10):
        rates = measured_rates(field, random(NODES, 2, seed=seed), torch.tensor(0.0))
        assert rates.linear <= bounds.linear * (1 + 1e-12)
        assert rates.rest <= bounds.rest * np.sqrt(2 * NODES)  # the 2-norm of a matrix, against its inf-norm
    linear, rest = rates_of_parts(system, "row")
    assert linear.at(values) == pytest.approx(4.0)
    assert "R" in {x.name for x in rest.value.free_symbols}
    assert "Dv" not in {x.name for x in rest.value.free_symbols}


def test_auto_gives_imex_up_where_the_reaction_turns_stiff() -> None:
    """The reaction is slow only until w, which grows by itself, has grown."""
    field = made("u' = -Du*L@u - 1000*w*u; w' = 8*w - 0.0001*w**2", Du=3000.0)
    H0 = torch.cat([torch.ones(NODES, 1, dtype=F64), torch.full((NODES, 1), 1e-4, dtype=F64)], -1)
    sol = solve(field, H0, [0.0, 1.5], max_steps=20)
    assert sol.method == "dopri5"
    assert "adaptive steps" in sol.reason


def test_auto_adapts_the_steps_of_what_is_not_stiff() -> None:
    field = made(SCHNAKENBERG)
    sol = solve(field, start_for(field), [0.0, 2.0])
    assert sol.method == "dopri5"
    assert sol.reason.startswith("no exact flow is known, and not stiff")
    stepped = solve(field, start_for(field), [0.0, 2.0], step=0.05)
    assert stepped.method == "rk4"
    torch.testing.assert_close(stepped.final, sol.final, rtol=1e-5, atol=1e-5)
