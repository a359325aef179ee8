"""Linear systems of several fields: exact flows against dense exponentials, bounds kept, gradients, refusals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.identities.dense_oracle import evaluate
from rdgraph.integrators.coupled_flow import apply_coupled, coupled_coefficients
from rdgraph.integrators.coupled_linear import CoupledLinear, coupled_part
from rdgraph.integrators.exact_flow import exact_states
from rdgraph.integrators.expansions import powers
from rdgraph.integrators.flow_coefficients import Schedule
from rdgraph.integrators.matrix_filters import MatrixFilters, logarithmic_norm
from rdgraph.integrators.matrix_functions import exponentials, power_sums
from rdgraph.integrators.polynomial_flow import LinearFlow, is_polynomial
from rdgraph.integrators.propagator import Propagator
from rdgraph.integrators.scaled_operator import operator_base
from rdgraph.lowering.vector_field import VectorField, lower
from rdgraph.syntax.reader import start_of

DOUBLE = torch.float64
WAVE = "H'' = -gamma*H - alpha*H' - L@H"
PAIR = "u' = -alpha*L@u + beta*v; v' = -u - gamma*L@L@v"
FORCED = "u' = -alpha*L@u + beta*v + gamma*A@u0; v' = -u - L@v + v0 + delta"
TRIPLE = "u' = -L@u + v; v' = -alpha*w - L@v; w' = beta*u - gamma*A@w"
SYSTEMS = (WAVE, PAIR, FORCED, TRIPLE)
VALUES = {"alpha": 0.7, "beta": 1.3, "gamma": 0.4, "delta": 0.25}
NORMALISATIONS = ("symmetric", "row", "column", "none")


def random_matrix(generator: np.random.Generator, *, directed: bool = False, nodes: int = 7) -> np.ndarray:
    """Weighted and irregular, with one isolated node."""
    matrix = (generator.random((nodes, nodes)) < 0.5) * generator.uniform(0.2, 2, (nodes, nodes))
    np.fill_diagonal(matrix, 0)
    matrix[-1], matrix[:, -1] = 0, 0
    matrix[0, 1] = matrix[1, 0] = 1
    return matrix if directed else np.triu(matrix) + np.triu(matrix).T


def made(text: str, operator: Operator, values: Mapping[str, Any] = VALUES, **options: Any) -> VectorField:
    system = rd.parse(text)
    return lower(system, operator, {n: v for n, v in values.items() if n in system.letters}, **options)


def dense_solution(field: VectorField, H0: Tensor, time: float) -> np.ndarray:
    """The packed state after a time, channel by channel, from the equations' dense interpretation and scipy's expm."""
    names, nodes = field.system.fields, len(H0)
    blocks = np.split(H0.detach().numpy(), len(names), axis=1)
    channels = blocks[0].shape[1]
    matrix = field.operator.dense().detach().numpy()
    values: dict[str, Any] = {"A": matrix}
    if field.operator.degree is not None:
        values["L"] = np.diag(field.operator.degree.numpy()[:, 0]) - matrix
    values |= {name: value.detach().numpy() for name, value in field.coefficients.items()}
    values |= {start_of(name): block for name, block in zip(names, blocks, strict=True)}

    def at(state: np.ndarray) -> np.ndarray:
        parts = dict(zip(names, np.split(state, len(names)), strict=True))
        shape = (nodes, channels)
        return np.concatenate([np.broadcast_to(evaluate(t, values | parts), shape) for t in field.system.flow.values()])

    size = nodes * len(names)
    forcing = at(np.zeros((size, channels)))
    columns = [at(np.repeat(unit[:, None], channels, axis=1)) - forcing for unit in np.eye(size)]
    start, answer = np.concatenate(blocks), np.empty((size, channels))
    for c in range(channels):
        whole = np.zeros((size + 1, size + 1))
        whole[:size, :size] = np.stack([column[:, c] for column in columns], axis=1)
        whole[:size, size] = forcing[:, c]
        answer[:, c] = (scipy.linalg.expm(time * whole) @ np.append(start[:, c], 1.0))[:size]
    return np.concatenate(np.split(answer, len(names)), axis=1)


def start(nodes: int, width: int, seed: int = 0, batch: tuple[int, ...] = ()) -> Tensor:
    return torch.randn(*batch, nodes, width, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------------- functions of small matrices
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_exponentials_are_those_of_scipy(size: int) -> None:
    generator = np.random.default_rng(size)
    for scale, is_complex in itertools.product((1e-3, 0.4, 3.0, 40.0), (False, True)):
        matrices = scale * generator.normal(size=(6, size, size))
        if is_complex:
            matrices = matrices + 1j * scale * generator.normal(size=(6, size, size))
        exp, phi1 = exponentials(torch.from_numpy(matrices).movedim(0, -1))
        for k, matrix in enumerate(matrices):
            zero = np.zeros_like(matrix)
            both = scipy.linalg.expm(np.block([[matrix, np.eye(size)], [zero, zero]]))
            for found, wanted in ((exp, both[:size, :size]), (phi1, both[:size, size:])):
                scale_of = max(1, np.abs(wanted).max())  # of which scipy loses some digits
                assert np.abs(found[..., k].numpy() - wanted).max() <= 2e-11 * scale_of


def test_exponentials_of_singular_and_defective_matrices() -> None:
    shear = torch.tensor([[0.0, 2.0], [0.0, 0.0]], dtype=DOUBLE)
    exp, phi1 = exponentials(shear)
    assert exp.tolist() == [[1, 2], [0, 1]]
    assert phi1.tolist() == [[1, 1], [0, 1]]


def test_exponentials_mark_what_needs_more_squarings_and_leave_the_others_alone() -> None:
    matrices = torch.stack([torch.eye(2, dtype=DOUBLE), 600 * torch.eye(2, dtype=DOUBLE)], -1)
    few, many = exponentials(matrices, 4).exp, exponentials(matrices[..., :1]).exp
    assert torch.equal(few[..., 0], many[..., 0])
    assert few[..., 1].isinf().all()
    assert exponentials(torch.full((2, 2, 1), torch.nan, dtype=DOUBLE)).exp.isinf().all()


def test_exponentials_have_two_derivatives() -> None:
    matrices = start(2, 2, seed=3)[..., None].requires_grad_()
    assert torch.autograd.gradcheck(exponentials, (matrices,))
    assert torch.autograd.gradgradcheck(lambda m: exponentials(m).phi1, (matrices,))


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_power_sums_are_powers_and_their_sums(count: int) -> None:
    factor = start(3, 3, seed=count) / 2
    power, sums = power_sums(factor, count)
    wanted = [torch.linalg.matrix_power(factor, k) for k in range(count + 1)]
    assert torch.allclose(power, wanted[-1], atol=1e-13)
    assert torch.allclose(sums, torch.stack(wanted[:-1]).sum(0), atol=1e-13)


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_the_logarithmic_norm_is_its_limit_and_bounds_the_exponential(order: float) -> None:
    generator = np.random.default_rng(1)
    for matrix in generator.normal(size=(20, 3, 3)):
        mu = float(logarithmic_norm(torch.from_numpy(matrix)[..., None], order))
        h = 1e-7
        assert abs((np.linalg.norm(np.eye(3) + h * matrix, order) - 1) / h - mu) < 1e-5
        for t in (0.3, 2.0):
            assert np.linalg.norm(scipy.linalg.expm(t * matrix), order) <= np.exp(t * mu) * (1 + 1e-12)


@pytest.mark.parametrize(("kind", "order"), [("chebyshev", 2.0), ("taylor", 1.0), ("taylor", float("inf"))])
def test_the_bound_holds_on_ellipses_and_discs(kind: str, order: float) -> None:
    generator = torch.Generator().manual_seed(5)
    rows = 12
    P, S = (torch.randn(3, 2, 2, rows, dtype=DOUBLE, generator=generator) for _ in range(2))
    P[:, 1, 0] *= 50  # fields in very different units
    one = torch.ones(rows, dtype=DOUBLE)
    for source, flow in ((S[:0], True), (S, True), (S, False)):
        filters = MatrixFilters(P, source, 0.3 * one, 0.2 * one, 0.9 * one, order, flow)
        for rho in (1.2, 2.0, 4.0):
            angle = torch.linspace(0, 2 * torch.pi, 200, dtype=DOUBLE)
            z = torch.polar(torch.full_like(angle, rho), angle)
            y = (z + 1 / z) / 2 if kind == "chebyshev" else z
            values = filters(y).movedim((2, 3), (0, 1))
            largest = torch.linalg.matrix_norm(values, ord=order).amax(-1)
            bound = filters.log_bound(kind, torch.tensor([rho], dtype=DOUBLE))[:, 0]
            assert (largest.log() <= bound + 1e-9).all()
            assert powers(kind, 2, torch.tensor([rho], dtype=DOUBLE))[1] >= y.abs().max() - 1e-12


# ---------------------------------------------------------------------- the flow itself
@pytest.mark.parametrize("text", SYSTEMS)
@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_fields_move_as_the_dense_exponential_says(text: str, kind: str) -> None:
    for seed, directed in itertools.product((0, 1), (False, True)):
        if directed and kind == "symmetric":
            continue
        if kind == "none" and text == FORCED:
            text = "u' = -alpha*L@u + beta*v + gamma*L@u0; v' = -u - L@v + v0 + delta"
        if kind == "none" and text == TRIPLE:
            text = "u' = -L@u + v; v' = -alpha*w - L@v; w' = beta*u - gamma*L@w"
        matrix = random_matrix(np.random.default_rng(seed), directed=directed)
        field = made(text, Graph.from_dense(matrix).operator(kind, dtype=DOUBLE))
        H0 = start(7, 2 * len(field.system.fields), seed)
        for time in (0.1, 1.7):
            solution = rd.solve(field, H0, [0.0, time / 2, time])
            assert solution.method == "exact"
            wanted = dense_solution(field, H0, time)
            assert np.abs(solution.final.numpy() - wanted).max() <= 1e-8 * np.abs(wanted).max()
            half = dense_solution(field, H0, time / 2)
            assert np.abs(solution.states[1].numpy() - half).max() <= 1e-8 * np.abs(half).max()


def test_the_flow_solves_the_equations() -> None:
    field = made(FORCED, Graph.from_dense(random_matrix(np.random.default_rng(4))).operator("row", dtype=DOUBLE))
    H0 = start(7, 4, 2)
    bound = field.bind(H0)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        return bound(0.0, torch.from_numpy(y).reshape(7, 4)).numpy().ravel()

    wanted = scipy.integrate.solve_ivp(rate, (0, 2), H0.numpy().ravel(), method="DOP853", rtol=1e-12, atol=1e-13)
    found = rd.solve(field, H0, [0.0, 2.0], "exact").final
    assert np.abs(found.numpy().ravel() - wanted.y[:, -1]).max() < 1e-9


def random_linear(generator: np.random.Generator) -> tuple[CoupledLinear, np.ndarray, list[np.ndarray]]:
    """A linear part of two or three fields on a random graph, its X, and its matrices by power."""
    directed = bool(generator.random() < 0.5)
    kind = str(generator.choice(NORMALISATIONS[1:] if directed else NORMALISATIONS))
    nodes = int(generator.integers(3, 8))
    operator = Graph.from_dense(random_matrix(generator, directed=directed, nodes=nodes)).operator(kind, dtype=DOUBLE)
    letter = str(generator.choice(["A", "L"])) if kind == "none" else "A"
    size, count = int(generator.integers(2, 4)), int(generator.integers(1, 4))
    scale = 10 ** generator.uniform(-1, 0.7)
    matrices = [generator.normal(size=(size, size)) * scale / (1 + k) for k in range(count)]
    entries = tuple(tuple(tuple(torch.from_numpy(row).unbind()) for row in matrix) for matrix in matrices)
    dense = operator.dense().numpy()
    if letter == "L":
        dense = np.diag(operator.degree.numpy()[:, 0]) - dense  # type: ignore[union-attr]
    return CoupledLinear(operator_base(operator, letter), entries), dense, matrices


def largest_gain(linear: CoupledLinear, elapsed: Tensor) -> float:
    """max |exp(t P(x))| over the real interval, densely sampled."""
    values = linear.filters(elapsed)[0](torch.linspace(-1, 1, 201, dtype=DOUBLE)).movedim((2, 3), (0, 1))
    return float(torch.linalg.matrix_norm(values, ord=linear.base.norm).max())


def check_bound(seed: int) -> int:
    """One random case: the error stays below what was promised before the first product; the products it took."""
    generator = np.random.default_rng(seed)
    linear, X, matrices = random_linear(generator)
    degree, size = len(matrices) - 1, len(matrices[0])
    time = 10 ** generator.uniform(-2, 0.5) / max(1.0, float(linear.base.radius.max())) ** degree
    rtol = float(generator.choice([1e-3, 1e-6, 1e-10]))
    H = torch.from_numpy(generator.normal(size=(len(X), size)))
    elapsed = torch.tensor([time], dtype=DOUBLE).reshape(1, 1, 1)
    propagator = Propagator.make(linear, elapsed, H, rtol=rtol)
    whole = sum(np.kron(matrix, np.linalg.matrix_power(X, k)) for k, matrix in enumerate(matrices))
    begin = H.numpy().T.ravel()
    wanted, found = scipy.linalg.expm(time * whole) @ begin, propagator(H)[0].numpy().T.ravel()
    order = linear.base.norm
    gain = max(largest_gain(linear, elapsed), 1.0 if len(propagator.segments) > 1 else 0.0)
    allowed = (1 if linear.base.kind == "chebyshev" else 2) * rtol + 200 * size * np.finfo(float).eps
    assert np.linalg.norm(found - wanted, order) <= allowed * gain * np.linalg.norm(begin, order), seed
    return propagator.products


@pytest.mark.slow
def test_errors_stay_below_the_bound_on_random_systems() -> None:
    degrees = [check_bound(seed) for seed in range(120)]
    assert max(degrees) > 20
    assert np.median(degrees) <= 6  # the degree is not paid for twice


@pytest.mark.slow
def test_errors_stay_below_the_bound_on_thousands_of_random_systems() -> None:
    for seed in range(1000, 4000):
        check_bound(seed)


def test_coefficients_may_differ_between_channels_and_members() -> None:
    matrix = random_matrix(np.random.default_rng(7))
    operator = Graph.from_dense(matrix).operator("symmetric", dtype=DOUBLE)
    system = rd.parse(WAVE, {"alpha": "channel"})
    alpha = torch.tensor([[0.1, 2.0, 0.5], [3.0, 0.2, 0.0]], dtype=DOUBLE)
    gamma = torch.tensor([0.3, 5.0], dtype=DOUBLE)
    H0 = start(7, 6, 1, (2,))
    both = lower(system, operator, {"alpha": alpha, "gamma": gamma}, batch=(2,))
    found = rd.solve(both, H0, torch.tensor([[0.0, 0.0], [1.5, 0.7]], dtype=DOUBLE)).final
    for k, time in enumerate((1.5, 0.7)):
        single = lower(system, operator, {"alpha": alpha[k], "gamma": gamma[k]})
        assert np.abs(found[k].numpy() - dense_solution(single, H0[k], time)).max() < 1e-9
        assert torch.equal(rd.solve(single, H0[k], [0.0, time]).final, found[k])


def test_one_product_over_all_fields_for_every_degree(monkeypatch: pytest.MonkeyPatch) -> None:
    field = made(TRIPLE, Graph.from_dense(random_matrix(np.random.default_rng(2))).operator("symmetric", dtype=DOUBLE))
    H0, widths = start(7, 6), []
    original = Operator.product

    def counted(self: Operator, x: Tensor, *rest: Any) -> Tensor:
        widths.append(x.shape[-1])
        return original(self, x, *rest)

    monkeypatch.setattr(Operator, "product", counted)
    solution = rd.solve(field, H0, [0.0, 1.0])
    assert widths == [6] * solution.stats.products
    assert 0 < solution.stats.products < 25


def test_a_member_that_overflows_leaves_the_others_alone() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(2))).operator("row", dtype=DOUBLE)
    text = "u' = beta*u + v; v' = u - L@v"
    field = lower(rd.parse(text, assume=["beta real"]), operator, {"beta": torch.tensor([0.5, 5000.0])}, batch=(2,))
    H0 = start(7, 4, 0, (2,))
    solution = rd.solve(field, H0, [0.0, 1.0], "exact")
    alone = rd.solve(lower(rd.parse(text), operator, {"beta": 0.5}), H0[0], [0.0, 1.0], "exact")
    assert [str(status) for status in solution.status] == ["ok", "blow-up"] or solution.status[1] != solution.status[0]
    assert torch.equal(solution.final[0], alone.final)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["symmetric", "row"])
def test_gradients_in_coefficients_time_weights_and_start(kind: str) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1), nodes=4)).operator(kind, dtype=DOUBLE)
    H0 = start(4, 2, 5).requires_grad_()
    time = torch.tensor(0.8, dtype=DOUBLE, requires_grad=True)
    alpha, beta = (torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (0.6, 1.1))
    weights = operator.weights.clone().requires_grad_()

    def final(alpha: Tensor, beta: Tensor, time: Tensor, H0: Tensor, weights: Tensor) -> Tensor:
        own = operator.with_weights(weights) if weights.requires_grad else operator
        values = {"alpha": alpha, "beta": beta, "gamma": 0.3, "delta": 0.2}
        field = lower(rd.parse("u' = -alpha*L@u + beta*v + gamma*u0; v' = -u - A@v + delta"), own, values)
        return exact_states(field.bind(H0), H0, torch.stack([torch.zeros_like(time), time]))[0][-1]

    fixed = operator.weights
    assert torch.autograd.gradcheck(lambda a, b, t, h: final(a, b, t, h, fixed), (alpha, beta, time, H0))
    assert torch.autograd.gradcheck(
        lambda w: final(alpha.detach(), beta.detach(), time.detach(), H0.detach(), w), (weights,)
    )


@pytest.mark.slow
def test_gradients_of_a_wave_in_all_its_numbers() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1), nodes=4)).operator("symmetric", dtype=DOUBLE)
    given = [torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (0.6, 1.1, 0.9)]
    H0 = start(4, 2, 5).requires_grad_()

    def final(alpha: Tensor, gamma: Tensor, time: Tensor, H0: Tensor) -> Tensor:
        field = lower(rd.parse(WAVE), operator, {"alpha": alpha, "gamma": gamma})
        return exact_states(field, H0, torch.stack([torch.zeros_like(time), time]))[0][-1]

    assert torch.autograd.gradcheck(final, (*given, H0))
    assert torch.autograd.gradgradcheck(final, (*given, H0))


# ---------------------------------------------------------------------- flows for training
@pytest.mark.parametrize("text", [WAVE, PAIR, TRIPLE, "u' = -alpha*L@u + beta*v + gamma*A@u0; v' = -u - L@v + v0"])
@pytest.mark.parametrize("kind", ["symmetric", "row"])
@pytest.mark.parametrize(("method", "step"), [("exact", None), ("rk4", 0.5), ("heun", 2.0)])
def test_a_polynomial_of_fixed_degree_is_the_run(text: str, kind: str, method: str, step: float | None) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(3))).operator(kind, dtype=DOUBLE)
    field = made(text, operator)
    assert is_polynomial(field)
    H0, time = start(7, 2 * len(field.system.fields), 4), torch.tensor(1.1, dtype=DOUBLE)
    schedule = Schedule.make(method, 1.1, step)
    degree = LinearFlow.needed(field, H0, schedule, time, rtol=1e-13)
    found, beyond = LinearFlow(schedule, degree).run(field, H0, time, watch=True)
    options = {} if step is None else {"step": step}
    wanted = rd.solve(field, H0, [0.0, 1.1], method, **options).final
    assert (found - wanted).abs().max() < 1e-9
    assert beyond is not None
    assert float(beyond) < 1e-11


@pytest.mark.slow
def test_the_polynomial_has_gradients_in_everything() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1), nodes=4)).operator("row", dtype=DOUBLE)
    alpha, gamma, time = (torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (0.6, 1.1, 0.9))
    H0, weights = start(4, 4, 5).requires_grad_(), operator.weights.clone().requires_grad_()

    def final(alpha: Tensor, gamma: Tensor, time: Tensor, H0: Tensor, weights: Tensor) -> Tensor:
        own = operator.with_stochastic_weights(weights)
        return LinearFlow(Schedule("exact"), 12)(lower(WAVE, own, {"alpha": alpha, "gamma": gamma}), H0, time)

    assert torch.autograd.gradcheck(final, (alpha, gamma, time, H0, weights))
    assert torch.autograd.gradgradcheck(final, (alpha, gamma, time, H0, weights))


def test_members_of_a_batch_have_polynomials_of_their_own() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("symmetric", dtype=DOUBLE)
    alpha, time = torch.tensor([0.2, 3.0], dtype=DOUBLE), torch.tensor([1.0, 0.5], dtype=DOUBLE)
    field = lower(WAVE, operator, {"alpha": alpha, "gamma": 0.4}, batch=(2,))
    H0 = start(7, 4, 2, (2,))
    found = LinearFlow(Schedule("exact"), 24)(field, H0, time)
    for k in range(2):
        single = lower(WAVE, operator, {"alpha": float(alpha[k]), "gamma": 0.4})
        assert np.abs(found[k].numpy() - dense_solution(single, H0[k], float(time[k]))).max() < 1e-9


def test_terms_of_a_sum_of_matrices_are_applied_field_by_field() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("symmetric", dtype=DOUBLE)
    A, series = operator.dense(), start(5 * 3, 3, 1).reshape(5, 3, 3)
    x = start(7, 6, 2)
    for kind in ("taylor", "chebyshev"):
        basis = [torch.eye(7, dtype=DOUBLE), A]
        for _ in range(3):
            basis.append(2 * A @ basis[-1] - basis[-2] if kind == "chebyshev" else A @ basis[-1])
        blocks = x.reshape(7, 3, 2)
        wanted = sum(torch.einsum("ij,nm,mjd->nid", c, b, blocks) for c, b in zip(series, basis, strict=True))
        found = apply_coupled(operator, series[..., None, None], x, kind)
        assert torch.allclose(found, wanted.reshape(7, 6), atol=1e-12)  # type: ignore[union-attr]


def test_coefficients_ask_nothing_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("symmetric", dtype=DOUBLE)
    linear, time = coupled_part(made(WAVE, operator)), torch.tensor(1.0, dtype=DOUBLE)
    coupled_coefficients(linear, Schedule("exact"), time, 8)  # tables that are made once

    def refused(self: Tensor) -> Any:
        raise AssertionError("the host was asked for a number")

    for name in ("item", "__bool__", "__int__", "__float__", "tolist", "cpu", "numpy"):
        monkeypatch.setattr(Tensor, name, refused)
    coupled_coefficients(linear, Schedule("exact"), time, 8)


# ---------------------------------------------------------------------- what is refused, and what is chosen
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u' = -L@u + u*v; v' = -u", "nonlinear"),
        ("u' = -exp(-t)*L@u + v; v' = u", "time t"),
        ("u' = -L@u + v; v' = tanh(A@u)", "nonlinear"),
    ],
)
def test_other_fields_are_refused_with_the_reason(text: str, reason: str) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("row", dtype=DOUBLE)
    with pytest.raises(NotApplicable, match=reason):
        coupled_part(made(text, operator))
    assert not is_polynomial(made(text, operator))


def test_further_operators_and_two_letters_without_normalisation_are_refused() -> None:
    from rdgraph.systems.single_operator import coupled_in_one_operator

    with pytest.raises(NotApplicable, match="operator B need not commute"):
        coupled_in_one_operator(rd.parse("u' = -L@u + B@v; v' = u where B antisymmetric"))
    with pytest.raises(NotApplicable, match="do not commute"):
        coupled_in_one_operator(rd.parse("u' = -L@u + A@v; v' = u"), has_degrees=True)
    with pytest.raises(NotApplicable, match="noise"):
        coupled_in_one_operator(rd.parse("u' = -L@u + v + sigma*xi; v' = u"))


def test_the_method_is_chosen_with_its_reason() -> None:
    assert rd.choose_method(WAVE).method == "exact"
    assert "P(lam) = [[0, 1], [-gamma - lam, -alpha]]" in rd.choose_method(WAVE).reason
    assert rd.choose_method("u' = -L@u + u*v; v' = -u").method == "dopri5"
    assert rd.choose_method("u' = -L@u + u*v; v' = -u", stepped=True).method == "rk4"
    assert rd.choose_method(WAVE, 1.0, stepped=True).method == "rk4"
