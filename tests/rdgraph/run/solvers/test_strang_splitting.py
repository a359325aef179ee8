"""Closed reaction flows in torch, and Strang splitting: order, boxes, blow-up, gradients, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.integrate
import sympy as sp
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.closed_reactions import bernoulli, make_reaction, zeldovich
from rdgraph.run.solvers.propagator import exact_states
from rdgraph.run.solvers.splitting import make_strang
from rdgraph.systems.parser import parse
from rdgraph.testing import adjacency
from rdgraph.theory.reaction_flows import reaction_flow
from tests.property_examples import examples

DOUBLE = torch.float64
REACTIONS = ("F", "AC", "Z")
RATES: dict[str, Callable[[Any], Any]] = {
    "F": lambda h: h * (1 - h),
    "AC": lambda h: h * (1 - h**2),
    "Z": lambda h: h**2 * (1 - h),
}


def number(value: float | list[float]) -> Tensor:
    return torch.tensor(value, dtype=DOUBLE)


def flow(name: str, h: Tensor, beta: Any, t: Any) -> Tensor:
    """The flow of beta*r(h) for one of the three reactions."""
    beta, t = torch.as_tensor(beta, dtype=h.dtype), torch.as_tensor(t, dtype=h.dtype)
    if name == "Z":
        return zeldovich(h, beta, t)
    return bernoulli(h, beta, -beta, 2 if name == "F" else 3, t)


def blow_up_time(name: str, h: float) -> float:
    """When the flow of sign*r from h becomes infinite, with the sign of time that lets it; h outside the box."""
    match name:
        case "F":
            return math.log1p(1 / -h) if h < 0 else math.log(h / (h - 1))
        case "AC":
            return math.log(h**2 / (h**2 - 1)) / 2
    return -1 / h - math.log1p(-1 / h)


# ---------------------------------------------------------------------- flows
@pytest.mark.parametrize("name", REACTIONS)
@pytest.mark.parametrize("beta", [0.7, -0.7])
def test_flows_equal_a_high_accuracy_ode_solve(name: str, beta: float) -> None:
    """Starts inside and outside the box, as far as the flow exists up to t = 0.5."""
    starts = np.array([0.0, 1e-3, 0.2, 0.5, 0.99, 1.0, 1.3, -0.05, -0.4])
    found = scipy.integrate.solve_ivp(
        lambda _, h: beta * RATES[name](h), (0, 0.5), starts, method="DOP853", rtol=1e-13, atol=1e-15
    ).y[:, -1]
    assert np.abs(flow(name, number(starts.tolist()), beta, 0.5).numpy() - found).max() < 1e-11


@pytest.mark.parametrize("name", REACTIONS)
def test_flows_equal_the_formulas_that_sympy_derived(name: str) -> None:
    derived = reaction_flow(parse(name))
    for h, t in [(0.3, 1.5), (0.9, 4.0), (1.7, 0.8), (-0.2, 0.3), (0.5, -2.0)]:
        values = {
            sp.Symbol("h0"): sp.Float(h, 40),
            sp.Symbol("beta"): sp.Rational(4, 5),
            sp.Symbol("t"): sp.Float(t, 40),
        }
        expected = float(sp.re(derived.expression.subs(values).evalf(30)))
        assert flow(name, number(h), 0.8, t).item() == pytest.approx(expected, rel=1e-13)


@given(st.sampled_from(REACTIONS), st.floats(-3, 3), st.floats(-2, 2), st.floats(0, 2), st.floats(0, 2))
@settings(max_examples=examples(200))
def test_flows_form_a_group(name: str, h: float, beta: float, s: float, t: float) -> None:
    whole = flow(name, number(h), beta, s + t).item()
    steps = flow(name, flow(name, number(h), beta, s), beta, t).item()
    assume(abs(whole) < 1e3)
    assert steps == pytest.approx(whole, rel=1e-9, abs=1e-9)


@given(st.sampled_from(REACTIONS), st.floats(-8, 8), st.floats(0.5, 0.999) | st.floats(1.001, 3))
@settings(max_examples=examples(150))
def test_blow_up_is_infinite_from_its_time_on(name: str, h: float, share: float) -> None:
    assume(abs(h) > 1.01 or (h < -0.01 and name != "AC"))
    sign = 1.0 if name == "F" and h < 0 else -1.0
    value = flow(name, number(h), sign, share * blow_up_time(name, h)).item()
    if share > 1:
        assert value == math.copysign(math.inf, h)
    else:
        assert math.isfinite(value)
        assert abs(value) > abs(h)


@pytest.mark.parametrize("name", REACTIONS)
def test_long_times_and_small_states_do_not_overflow(name: str) -> None:
    h = number([0.0, 1e-200, 1e-12, 0.5, 1.0, 7.0, 1e200])
    late = flow(name, h, 1.0, 1e5)
    assert late.isfinite().all()
    assert late[[0, 4]].tolist() == [0.0, 1.0]
    assert late[[3, 5, 6]].tolist() == pytest.approx([1.0, 1.0, 1.0], rel=1e-12)
    back = flow(name, h[:5], -1.0, 1e5)
    assert back.isfinite().all()
    assert back[4].item() == 1.0
    assert back[3].item() == pytest.approx(0.0 if name != "Z" else 1e-5, rel=1e-3, abs=1e-100)


def test_zeldovich_creeps_up_from_below_on_the_other_branch() -> None:
    h = zeldovich(number([-1e-6, -0.3, -50.0]), number(1.0), number(30.0))
    for start, found in zip((-1e-6, -0.3, -50.0), h.tolist(), strict=True):
        y = (1 - mpmath.mpf(start)) / mpmath.mpf(start)
        expected = 1 / (1 + mpmath.lambertw(y * mpmath.exp(y - 30), -1)) if start != -1e-6 else start / (1 - start * 30)
        assert found == pytest.approx(float(mpmath.re(expected)), rel=1e-9 if start == -1e-6 else 1e-13)


@pytest.mark.parametrize(("order", "b"), [(2, -0.5), (3, -0.5), (4, 0.3), (5, -1.0)])
@pytest.mark.parametrize("a", [0.0, 1e-14, 0.8, -0.8])
def test_bernoulli_flows_of_any_order_and_in_the_limit_without_growth(order: int, b: float, a: float) -> None:
    start = [-0.6, 0.3, 0.7]
    found = scipy.integrate.solve_ivp(
        lambda _, h: a * h + b * h**order, (0, 0.7), start, method="DOP853", rtol=1e-13, atol=1e-15
    ).y[:, -1]
    value = bernoulli(number(start), number(a), number(b), order, number(0.7))
    assert np.abs(value.numpy() - found).max() < 1e-11


@pytest.mark.parametrize("name", REACTIONS)
@pytest.mark.parametrize("beta", [0.0, 0.9, -0.9])
def test_flows_have_first_and_second_derivatives(name: str, beta: float) -> None:
    h = number([0.0, 0.2, 0.5, 1.0, 1.1, -0.1]).requires_grad_()
    inputs = (h, number(beta).requires_grad_(), number(0.6).requires_grad_())
    call = lambda h, beta, t: flow(name, h, beta, t)  # noqa: E731
    assert torch.autograd.gradcheck(call, inputs)
    assert torch.autograd.gradgradcheck(call, inputs)


@pytest.mark.parametrize("name", REACTIONS)
def test_blow_up_leaves_other_gradients_alone(name: str) -> None:
    beta = number(-1.0).requires_grad_()
    h = number([0.4, 3.0]).requires_grad_()
    value = flow(name, h, beta, 5.0)
    assert value[1] == math.inf
    slopes = torch.autograd.grad(value[0], (h, beta))
    assert all(slope.isfinite().all() for slope in slopes)
    assert slopes[0][1] == 0


# ---------------------------------------------------------------------- splitting
def random_graph(nodes: int = 10, seed: int = 0) -> Graph:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((nodes, nodes)) < 0.35, 1) * generator.uniform(0.5, 2, (nodes, nodes))
    return Graph.from_dense(upper + upper.T)


def made(text: str, normalisation: str = "row", values: Mapping[str, Any] | None = None, **options: Any) -> VectorField:
    system = parse(text)
    given = {"alpha": number(0.8), "beta": number(1.1), **(values or {})}
    operator = random_graph().operator(normalisation, dtype=options.pop("dtype", DOUBLE))
    return lower(system, operator, {name: v for name, v in given.items() if name in system.letters}, **options)


def reference(field: VectorField, H0: Tensor, time: float) -> Tensor:
    """An adaptive solve at tight tolerance."""
    rate = lambda _, h: field(0.0, torch.from_numpy(h).view(H0.shape)).numpy().ravel()  # noqa: E731
    found = scipy.integrate.solve_ivp(rate, (0, time), H0.numpy().ravel(), method="DOP853", rtol=1e-12, atol=1e-13)
    return torch.from_numpy(found.y[:, -1]).view(H0.shape)


def integrated(field: VectorField, H: Tensor, time: float, steps: int) -> Tensor:
    strang = make_strang(field)
    for _ in range(steps):
        H = strang.advance(H, number(time / steps))
    return H


@pytest.mark.parametrize(
    ("name", "normalisation"), [("F", "symmetric"), ("F", "row"), ("AC", "row"), ("Z", "column"), ("ACMP", "column")]
)
def test_the_order_is_two(name: str, normalisation: str) -> None:
    field, H0 = (
        made(name, normalisation, {"delta": 0.9, "beta": number(0.6 if name == "ACMP" else 1.1)}),
        torch.rand(10, 2, dtype=DOUBLE),
    )
    exact = reference(field, H0, 2.0)
    errors = [(integrated(field, H0, 2.0, steps) - exact).abs().max().item() for steps in (8, 16, 32)]
    assert errors[-1] < 1e-3
    for coarse, fine in pairwise(errors):
        assert math.log2(coarse / fine) == pytest.approx(2, abs=0.12)


@pytest.mark.parametrize(
    "name", ["-alpha*L@H + beta*H*(1 - H)", "-alpha*A@H + beta*H*(1 - H**2)", "-alpha*L@L@H + H - H**3"]
)
def test_operators_that_are_not_normalised(name: str) -> None:
    field, H0 = made(name, "none", {"alpha": 0.1}), torch.rand(10, 2, dtype=DOUBLE)
    exact = reference(field, H0, 1.0)
    errors = [(integrated(field, H0, 1.0, steps) - exact).abs().max().item() for steps in (16, 32)]
    assert errors[1] < 1e-3
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


BOXES = (adjacency(max_nodes=6, weighted=True), st.sampled_from(REACTIONS), st.floats(0, 3), st.floats(0, 3))


def box_steps(graph: np.ndarray, name: str, beta: float, alpha: float, step: float) -> float:
    """How far three steps leave the box from a state that touches its faces."""
    operator = Graph.from_dense(graph).operator("row", dtype=DOUBLE)
    strang = make_strang(lower(parse(name), operator, {"alpha": number(alpha), "beta": number(beta)}))
    low = -1.0 if name == "AC" else 0.0
    H = low + (1 - low) * torch.rand(len(graph), 3, dtype=DOUBLE)
    H[0], H[-1], H[:, 2] = low, 1.0, 1.0
    worst = 0.0
    for _ in range(3):
        H = strang.advance(H, number(step))
        worst = max(worst, low - H.min().item(), H.max().item() - 1)
    return worst if H.isfinite().all() else math.inf


@given(*BOXES, st.floats(1e-3, 8))
@example(np.array([[0.0, 1.0], [1.0, 0.0]]), "F", 3.0, 0.05, 1e3)
@example(np.array([[0.0, 1.0], [1.0, 0.0]]), "Z", 3.0, 0.05, 1e3)
@settings(max_examples=examples(40))
def test_boxes_are_kept_for_every_step(graph: np.ndarray, name: str, beta: float, alpha: float, step: float) -> None:
    assert box_steps(graph, name, beta, alpha, step) <= 1e-12


@given(*BOXES, st.floats(1e-3, 2))
@settings(max_examples=examples(30))
def test_boxes_are_kept_backwards_up_to_the_growth_of_rounding(
    graph: np.ndarray, name: str, beta: float, alpha: float, step: float
) -> None:
    """With beta < 0 a face repels: what rounding puts beyond it grows like exp(2 |beta| t)."""
    assume(beta * step < 2)
    assert box_steps(graph, name, -beta, alpha, step) <= 1e-15 * (2 + math.exp(6 * beta * step) * 4)


@pytest.mark.parametrize("name", REACTIONS)
def test_channels_and_members_have_their_own_coefficients(name: str) -> None:
    values = {"alpha": torch.rand(2, 3).double(), "beta": number([[0.5, 0.0, 2.0], [-1.0, 1.0, 0.3]])}
    operator = random_graph().operator("row", dtype=DOUBLE)
    field = lower(parse(name, {"alpha": "channel", "beta": "channel"}), operator, values, batch=(2,))
    H, dt = torch.rand(2, 10, 3, dtype=DOUBLE), number([0.3, 0.7]).reshape(2, 1, 1)
    together = make_strang(field).advance(H, dt)
    for member in range(2):
        alone = make_strang(field.rebatched(member)).advance(H[member].contiguous(), dt[member, 0, 0])
        assert torch.equal(together[member], alone)
        for c in range(3):
            single = made(name, values={key: value[member, c] for key, value in values.items()})
            column = make_strang(single).advance(H[member, :, c : c + 1].contiguous(), dt[member, 0, 0])
            assert torch.allclose(together[member, :, c : c + 1], column, rtol=0, atol=1e-14)


def test_blow_up_shows_and_stays_in_its_member() -> None:
    field = made("F", values={"beta": number([1.0, 1.0])}, batch=(2,))
    calm = torch.rand(2, 10, 1, dtype=DOUBLE)
    wild = calm.clone()
    wild[1, 4] = -3.0
    before, after = (make_strang(field).advance(H, number(1.0)) for H in (calm, wild))
    assert not after[1].isfinite().all()
    assert torch.equal(after[0], before[0])


def test_linear_systems_are_solved_exactly_in_one_step() -> None:
    field, H0 = made("FB*-released"), torch.randn(10, 2, dtype=DOUBLE)
    expected = exact_states(field, H0, torch.tensor([0.0, 1.5]))[0][-1]
    assert torch.allclose(make_strang(field).advance(H0, number(1.5)), expected, rtol=1e-9, atol=0)


def test_a_reaction_without_an_operator_needs_no_products() -> None:
    field, H0 = made("beta*H*(H - H**2)"), torch.rand(10, 2, dtype=DOUBLE)
    strang = make_strang(field)
    assert torch.allclose(strang.advance(H0, number(1.0)), flow("Z", H0, 1.1, 1.0), rtol=1e-13, atol=0)
    assert strang.products == 0


def test_products_are_counted_and_equal_steps_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import rdgraph.run.solvers.propagator as module

    calls = []
    make = module.Propagator.make
    monkeypatch.setattr(module.Propagator, "make", lambda *a, **k: calls.append(1) or make(*a, **k))
    strang, H = make_strang(made("F"), rtol=1e-6), torch.rand(10, 2, dtype=DOUBLE)
    H = strang.advance(H, number(0.5))
    once = strang.products
    for _ in range(3):
        H = strang.advance(H, number(0.5))
    assert strang.products == 4 * once
    assert 4 <= once <= 9
    assert len(calls) == 1
    strang.advance(H, number(0.25))
    assert len(calls) == 2


def test_a_step_with_a_gradient_is_not_taken_from_memory() -> None:
    field, H = made("F"), torch.rand(10, 2, dtype=DOUBLE)
    fresh, used = make_strang(field), make_strang(field)
    used.advance(H, number(0.5))
    slopes = []
    for strang in (fresh, used):
        step = number(0.5).requires_grad_()
        slopes.append(torch.autograd.grad(strang.advance(H, step).square().sum(), step)[0].item())
    assert slopes[0] == slopes[1]


@pytest.mark.parametrize("name", REACTIONS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    operator = random_graph(4, seed=3).operator("row", dtype=DOUBLE)

    def final(alpha: Tensor, beta: Tensor, dt: Tensor, weights: Tensor, H: Tensor) -> Tensor:
        field = lower(parse(name), operator.with_weights(weights, "row"), {"alpha": alpha, "beta": beta})
        strang = make_strang(field, rtol=1e-13)
        return strang.advance(strang.advance(H, dt), dt)

    inputs = (number(0.5), number(0.8), number(0.4), operator.weights, torch.rand(4, 2))
    leaves = tuple(x.detach().double().requires_grad_() for x in inputs)
    assert torch.autograd.gradcheck(final, leaves, rtol=1e-5, atol=1e-7, fast_mode=True)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_narrow_states(dtype: torch.dtype, size: float) -> None:
    for name in REACTIONS:
        H = torch.rand(10, 2, dtype=DOUBLE).to(dtype)
        found = make_strang(made(name, dtype=dtype)).advance(H, torch.tensor(0.5))
        assert found.dtype == dtype
        wide = make_strang(made(name)).advance(H.double(), number(0.5))
        assert (found.double() - wide).abs().max() < size


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Nagumo", "no closed flow"),
        ("-alpha*L@H + tanh(H)", "no closed flow"),
        ("-alpha*L@H + beta*H*(1 - H) + H0", "the source H0"),
        ("-alpha*L@H + H@W + H - H**2", "mixes channels"),
        ("-alpha*L@H + H*(A@H)", "couples nodes"),
        ("-alpha*L@H + H - H**2 where alpha node", "does not commute"),
    ],
)
def test_refusals_say_why(text: str, reason: str) -> None:
    values = {"a": 0.3, "W": torch.eye(2).double(), "alpha": torch.ones(10).double() if "node" in text else 1.0}
    with pytest.raises(NotApplicable, match=reason):
        make_strang(made(text, values=values))


def test_letters_that_do_not_commute_are_refused() -> None:
    with pytest.raises(NotApplicable, match="in A alone or in L alone"):
        make_strang(made("-alpha*L@H + beta*A@H - H**2", "none", {"beta": 0.1}))


def test_a_reaction_alone_is_a_function_of_state_and_time() -> None:
    reaction = make_reaction(made("AC"))
    h = torch.rand(10, 2, dtype=DOUBLE)
    assert torch.allclose(reaction(h, number(0.7)), flow("AC", h, 1.1, 0.7), rtol=1e-14, atol=0)
