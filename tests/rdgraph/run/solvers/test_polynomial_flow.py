"""Linear flows as one polynomial of A: the same states and gradients as stepping, and never more terms than needed."""

from __future__ import annotations

import cmath

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import grad, gradcheck

import rdgraph as rd
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.run.solvers.fixed_steps import make_timetable
from rdgraph.run.solvers.flow_coefficients import coefficients, full_degree
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.polynomial_flow import LinearFlow, apply_polynomial, is_polynomial
from rdgraph.run.solvers.schedules import Schedule, stability

SYSTEMS = ("BS", "ST", "FB", "FB*", "diffusion")
METHODS = (("euler", 0.4), ("rk4", 0.5), ("heun", 0.7), ("exact", None))
#: Times of three members that all take as many steps of every length above.
TIMES = (1.41, 1.45, 1.5)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Problem:
    """Three members on a graph with an isolated node: alpha per member, beta per member and channel, times, weights."""

    def __init__(self, name: str, normalisation: str, per_member: bool) -> None:
        adjacency = rd.generators.erdos_renyi(14, 0.25, 3).adjacency.toarray()
        adjacency[13], adjacency[:, 13] = 0, 0
        graph = rd.Graph.from_dense(adjacency)
        op = graph.operator(normalisation, self_loops=0.5, dtype=torch.float64)
        spread = 1 + 0.1 * random(3, op.num_edges, seed=5).tanh() if per_member else torch.ones(op.num_edges).double()
        self.weights = (op.weights * spread).requires_grad_(True)
        is_free = per_member or normalisation != "symmetric"
        self.operator = Operator(op.pattern, self.weights, normalisation) if is_free else op
        self.alpha = random(3, seed=1).sigmoid().requires_grad_(True)
        self.beta = random(3, 4, seed=2).tanh().requires_grad_(True)
        self.H0 = random(3, 14, 4, seed=3).requires_grad_(True)
        self.times = torch.tensor(TIMES, dtype=torch.float64, requires_grad=True)
        system = rd.parse(name)
        letters = system.coefficients
        if "beta" in letters:
            system = rd.parse(str(system), {"beta": "channel"})
        values = {"alpha": self.alpha, "beta": self.beta}
        self.field = rd.lower(system, self.operator, {k: values[k] for k in letters}, batch=(3,))
        self.leaves = [values[k] for k in letters] + [self.H0, self.times]
        self.leaves += [self.weights] if self.operator is not op else []


def gradients(out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    return list(grad((out * random(*out.shape, seed=9)).sum(), leaves))


def close(found: Tensor, expected: Tensor, rtol: float = 1e-9) -> None:
    found, expected = found.detach(), expected.detach()
    error = float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-300))
    assert error <= rtol, error


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
@pytest.mark.parametrize(("method", "step"), METHODS, ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_states_and_gradients_are_those_of_solve(name, method, step, normalisation):
    p = Problem(name, normalisation, per_member=normalisation == "row")
    schedule = Schedule.make(method, TIMES[-1], step)
    degree = LinearFlow.needed(p.field, p.H0, schedule, p.times, 1e-13)
    out = LinearFlow(schedule, degree)(p.field, p.H0, p.times)
    span = torch.stack([torch.zeros_like(p.times), p.times])
    options = {"rtol": 1e-13} if step is None else {"step": step}
    expected = rd.solve(p.field, p.H0, span, method, **options).final
    close(out, expected)
    for found, wanted in zip(gradients(out, p.leaves), gradients(expected, p.leaves), strict=True):
        close(found, wanted, 1e-8)


def test_gradients_of_shared_weights_sum_over_the_members():
    p = Problem("BS", "row", per_member=False)
    schedule = Schedule.make("rk4", 1.5, 0.5)
    out = LinearFlow(schedule, 24)(p.field, p.H0, p.times)
    expected = rd.solve(p.field, p.H0, torch.stack([torch.zeros(3).double(), p.times]), "rk4", step=0.5).final
    assert p.weights.shape == (p.operator.num_edges,)
    for found, wanted in zip(gradients(out, p.leaves), gradients(expected, p.leaves), strict=True):
        close(found, wanted, 1e-8)


@pytest.mark.parametrize("kind", ["taylor", "chebyshev"])
@pytest.mark.parametrize("shared", [True, False])
def test_numerical_derivatives_of_a_polynomial(kind, shared):
    op = rd.Graph.from_edges([[0, 1, 2, 2], [1, 2, 0, 1]], num_nodes=4).operator("row", dtype=torch.float64)
    inputs = [random(*(() if shared else (2,)), 4, seed=1), random(4, 2, 1, 3, seed=2), random(2, 4, 3, seed=3)]
    inputs = [x.requires_grad_(True) for x in inputs]
    assert gradcheck(lambda w, c, x: apply_polynomial(op.with_weights(w), c, x, kind), inputs)


def test_numerical_derivatives_of_a_flow():
    op = rd.generators.path(3).operator("symmetric", dtype=torch.float64)
    system = rd.parse("FB*", {"beta": "channel"})

    def flow(alpha, beta, H0, time):
        field = rd.lower(system, op, {"alpha": alpha, "beta": beta}, batch=(2,))
        return LinearFlow(Schedule.make("heun", 0.9, 0.5), 8)(field, H0, time)

    inputs = [random(2), random(2, 2, seed=1), random(2, 3, 2, seed=2), torch.tensor([0.8, 0.9]).double()]
    assert gradcheck(flow, [x.requires_grad_(True) for x in inputs], fast_mode=True)


@pytest.mark.parametrize("kind", ["symmetric", "row"])
def test_a_polynomial_is_the_dense_one(kind):
    """sum_k c_k A^k x, or in Chebyshev polynomials, spelt out with matrices."""
    op = rd.generators.erdos_renyi(9, 0.4, 2).operator(kind, dtype=torch.float64)
    A, x, c = op.dense(), random(2, 9, 3), random(5, 2, 1, 3, seed=1)
    series = "chebyshev" if kind == "symmetric" else "taylor"
    terms = [torch.eye(9).double(), A]
    for _ in range(3):
        terms.append(2 * A @ terms[-1] - terms[-2] if series == "chebyshev" else A @ terms[-1])
    close(apply_polynomial(op, c, x, series), sum(c[k] * (terms[k] @ x) for k in range(5)), 1e-13)


# ---------------------------------------------------------------------- how many terms
@torch.no_grad()
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
@pytest.mark.parametrize(("method", "step"), [("exact", None), ("rk4", 0.5)])
def test_needed_leaves_out_at_most_the_tolerance_and_no_fewer_terms_do(method, step, normalisation, rtol):
    p = Problem("BS", normalisation, per_member=False)
    schedule, times = Schedule.make(method, 9.0, step), torch.tensor([8.7, 8.9, 9.0]).double()
    degree = LinearFlow.needed(p.field, p.H0, schedule, times, rtol)
    series, _, gain = coefficients(linear_part(p.field), schedule, times, 200)
    left_out = [float((series.detach()[k + 1 :].abs().sum(0) / gain).max()) for k in (degree - 1, degree)]
    assert left_out[1] <= rtol < left_out[0]
    truth = LinearFlow(schedule, 200)(p.field, p.H0, times).detach()
    error = LinearFlow(schedule, degree)(p.field, p.H0, times) - truth
    order = 2 if normalisation == "symmetric" else torch.inf
    size = gain[..., 0, :] * p.H0.norm(order, dim=-2)
    assert bool((error.norm(order, dim=-2) <= 2 * rtol * size + 1e-12).all())


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_the_whole_polynomial_of_rk4_is_rk4_and_its_degree_is_known(steps):
    """BS has a quadratic generator: rk4 in N steps is of degree 8 N, and the next coefficient is zero."""
    p = Problem("BS", "symmetric", per_member=False)
    schedule = Schedule.make("rk4", 0.25 * steps, 0.25)
    times = torch.full((3,), 0.25 * steps).double()
    whole = full_degree(linear_part(p.field), schedule)
    assert whole == 8 * steps
    series, _, gain = coefficients(linear_part(p.field), schedule, times, whole + 8)
    assert float((series.detach()[whole + 1 :].abs() / gain).max()) < 1e-14
    expected = rd.solve(p.field, p.H0, [0.0, 0.25 * steps], "rk4", step=0.25).final
    close(LinearFlow(schedule, whole)(p.field, p.H0, times), expected, 1e-10)
    needed = LinearFlow.needed(p.field, p.H0, schedule, times, 1e-12)
    assert needed <= whole
    close(LinearFlow(schedule, needed)(p.field, p.H0, times), expected, 1e-10)


CANCELLING = "-alpha*L@H + beta*L@H0"  # at alpha = beta the state stays at H0


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
@pytest.mark.parametrize(("method", "step"), METHODS, ids=str)
def test_a_source_that_undoes_the_flow_does_not_shorten_the_polynomial(method, step, normalisation):
    """Its gradients need the terms that the state does not, and coefficients a little further need them too."""
    schedule, times = Schedule.make(method, 1.5, step), torch.full((1,), 1.5).double()
    op = rd.generators.erdos_renyi(14, 0.25, 3).operator(normalisation, dtype=torch.float64)
    H0, found = random(1, 14, 4), {}
    for beta in (0.5, 0.5 + 1e-9, 0.7):
        leaves = [torch.tensor([x], dtype=torch.float64, requires_grad=True) for x in (0.5, beta)]
        field = rd.lower(CANCELLING, op, dict(zip(("alpha", "beta"), leaves, strict=True)), batch=(1,))
        degree = LinearFlow.needed(field, H0, schedule, times)
        out, tail = LinearFlow(schedule, degree).run(field, H0, times, watch=True)
        assert tail is not None
        whole = min(60, full_degree(linear_part(field.bind(H0)), schedule))
        expected = gradients(LinearFlow(schedule, whole)(field, H0, times), leaves)
        for one, two in zip(gradients(out, leaves), expected, strict=True):
            close(one, two, 1e-5)
        found[beta] = degree, float(tail)
    assert found[0.5] == pytest.approx(found[0.5 + 1e-9], rel=1e-6)
    assert abs(found[0.5][0] - found[0.7][0]) <= 1
    assert found[0.5][0] >= min(full_degree(linear_part(field.bind(H0)), schedule) - 1, 6)


def test_the_source_adds_to_the_degree():
    p = Problem("ST", "symmetric", per_member=False)
    linear = linear_part(p.field.bind(p.H0))
    assert full_degree(linear, Schedule.make("heun", 1.5, 0.5)) == 3 * 2
    assert full_degree(linear, Schedule("exact")) == 512


@pytest.mark.parametrize(("method", "step"), METHODS)
@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_a_forcing_that_is_no_filter_of_the_start_goes_by_an_increment(method, step, normalisation):
    op = rd.generators.erdos_renyi(14, 0.25, 3).operator(normalisation, self_loops=0.5, dtype=torch.float64)
    alpha, beta = random(3, seed=1).sigmoid().requires_grad_(True), random(3, 4, seed=2).requires_grad_(True)
    H0, mask = random(3, 14, 4, seed=3).requires_grad_(True), (random(14, seed=4) > 0).double()
    system = rd.parse("-alpha*L@H + beta*M*H0 + 0.3", {"beta": "channel"})
    field = rd.lower(system, op, {"alpha": alpha, "beta": beta, "M": mask}, batch=(3,))
    times, schedule = torch.tensor(TIMES, dtype=torch.float64), Schedule.make(method, TIMES[-1], step)
    degree = LinearFlow.needed(field, H0, schedule, times, 1e-13)
    found, tail = LinearFlow(schedule, degree).run(field, H0, times, watch=True)
    assert tail is not None
    assert float(tail.max()) < 1e-10
    options = {"rtol": 1e-13} if step is None else {"step": step}
    stepped = rd.solve(field, H0, torch.stack([torch.zeros(3).double(), times]), method, **options).final
    torch.testing.assert_close(found, stepped, rtol=1e-9, atol=1e-10)
    for own, other in zip(gradients(found, [alpha, beta, H0]), gradients(stepped, [alpha, beta, H0]), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-8)


def test_a_source_can_take_the_place_of_the_start():
    """A system of two fields whose second one does not move says what it is."""
    op = rd.generators.erdos_renyi(14, 0.25, 3).operator("row", dtype=torch.float64)
    H0, source = random(14, 4, seed=3), random(14, 4, seed=5)
    field = rd.lower("ST", op, {"alpha": 0.7, "beta": 0.4})
    pair = rd.lower("u' = -alpha*L@u + beta*v; v' = 0*v", op, {"alpha": 0.7, "beta": 0.4})
    schedule, time = Schedule.make("rk4", 1.5, 0.5), torch.tensor(1.5, dtype=torch.float64)
    degree = LinearFlow.needed(field, H0, schedule, time, 1e-13, is_forced=True)
    found, _ = LinearFlow(schedule, degree).run(field, H0, time, watch=False, source=source)
    expected = rd.solve(pair, torch.cat([H0, source], -1), [0.0, 1.5], "rk4", step=0.5).final[:, :4]
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    own = LinearFlow(schedule, degree).run(field, H0, time, watch=False, source=H0)[0]
    torch.testing.assert_close(own, LinearFlow(schedule, 12)(field, H0, time), rtol=1e-11, atol=1e-12)


@torch.no_grad()
def test_watching_measures_the_truncation_and_changes_nothing():
    p = Problem("BS", "row", per_member=False)
    schedule, times = Schedule("exact"), torch.full((3,), 4.0).double()
    out, tail = LinearFlow(schedule, 6).run(p.field, p.H0, times, watch=True)
    series, _, gain = coefficients(linear_part(p.field), schedule, times, 14)
    close(tail, (series[7:].abs().sum(0) / gain).amax((-2, -1)), 1e-12)
    assert tail.shape == (3,)
    assert float(tail.max()) > 0.01
    again, none = LinearFlow(schedule, 60).run(p.field, p.H0, times, watch=False)
    watched, small = LinearFlow(schedule, 60).run(p.field, p.H0, times, watch=True)
    assert none is None
    assert float(small.max()) < 1e-14
    close(watched, again, 1e-12)
    assert float((out - again).abs().max()) > 1e-6


def test_time_zero_is_the_identity():
    p = Problem("BS", "symmetric", per_member=False)
    for schedule in (Schedule.make("rk4", 0.0, 0.5), Schedule("exact")):
        close(LinearFlow(schedule, 8)(p.field, p.H0, torch.zeros(3).double()), p.H0, 1e-13)


@given(
    z=st.complex_numbers(max_magnitude=1.5, allow_nan=False, allow_infinity=False, allow_subnormal=False),
    method=st.sampled_from(["euler", "midpoint", "heun", "rk4", "rk4-classical"]),
)
def test_stability_polynomials_are_taylor_sections(z, method):
    weights = stability(method)
    factorial = torch.tensor([1.0, 1.0, 2.0, 6.0, 24.0])[: len(weights)]
    assert weights == pytest.approx((1 / factorial).tolist(), rel=1e-7)
    value = sum(w * z**k for k, w in enumerate(weights))
    assert abs(value - cmath.exp(z)) <= 3 * abs(z) ** len(weights) + 1e-15


# ---------------------------------------------------------------------- the number of steps
steps_and_counts = st.tuples(st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.3, 0.7, 0.75, 1.0, 1.5]), st.integers(1, 400))
exact_multiples = steps_and_counts.map(lambda p: (p[0] * p[1], p[0]))
decimal_multiples = steps_and_counts.map(lambda p: (round(p[0] * p[1], 10), p[0]))
noisy_multiples = st.tuples(exact_multiples, st.integers(-3, 3)).map(
    lambda p: (p[0][0] * (1 + p[1] * 2.0**-52), p[0][1])
)
anything = st.tuples(st.floats(0.0, 60.0, allow_subnormal=False), st.floats(0.02, 3.0))


@given(exact_multiples | decimal_multiples | noisy_multiples | anything)
@example((1.1, 0.1))
@example((0.30000000000000004, 0.1))
@example((0.0, 1.0))
@example((1.46, 1.0))
def test_the_number_of_steps_is_that_of_solve(case):
    time, step = case
    schedule = Schedule.make("rk4", time, step)
    grid = make_timetable([0.0, time], None, step, (), "cpu").grid
    assert schedule.steps == max(1, len(grid) - 1)
    lengths = torch.stack(schedule.lengths(torch.tensor([time], dtype=torch.float64)))[:, 0]
    assert torch.allclose(lengths.cumsum(0), grid[1:] if time else torch.zeros(1).double(), rtol=1e-12, atol=1e-13)
    assert bool((lengths > 0).all()) or time == 0


def test_schedules_that_make_no_sense_are_refused():
    assert Schedule.make("exact", 3.0, 0.1) == Schedule("exact")
    for step in (None, 0.0, -1.0, float("nan")):
        with pytest.raises(InvalidArgument, match="expected a step > 0 for euler"):
            Schedule.make("euler", 1.0, step)
    with pytest.raises(UnknownName, match="did you mean 'euler'"):
        Schedule.make("eulr", 1.0, 0.1)


# ---------------------------------------------------------------------- what is a polynomial
def lowered(system: str, normalisation: str = "row", **kinds: str) -> bool:
    op = rd.generators.path(4).operator(normalisation, dtype=torch.float64)
    parsed = rd.parse(str(rd.parse(system)), kinds)
    shapes = {"scalar": (), "channel": (3,), "node": (4,)}
    values = {name: torch.ones(shapes[str(kind)]).double() for name, kind in parsed.coefficients.items()}
    return is_polynomial(rd.lower(parsed, op, values))


def test_what_counts_as_a_polynomial():
    for name in (*SYSTEMS, "GRAND-l", "alpha*A@H + H0"):
        assert all(lowered(name, kind) for kind in ("symmetric", "row", "column")), name
    assert lowered("BS", beta="channel")
    assert not any(lowered(name) for name in ("F", "AC", "Z"))
    assert not lowered("BS", beta="node")
    assert not lowered("diffusion", alpha="node")
    assert not lowered("-alpha*L@H + gamma*tanh(H)")
    assert lowered("-alpha*L@H + 1")
    assert lowered("H'' = -alpha*L@H + 1")
    assert not lowered("diffusion", "none")
