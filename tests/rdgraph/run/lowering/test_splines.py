"""Splines in torch: values against numpy's, gradients, batches, and parameters that cannot break a declaration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch

from rdgraph.errors import InvalidArgument
from rdgraph.graphs import generators
from rdgraph.run.lowering import splines
from rdgraph.run.lowering.coefficients import coefficient_shapes, read_coefficients
from rdgraph.run.lowering.splines import SOURCE, make_controls, parameters_of, spline_pieces, start_parameters
from rdgraph.run.lowering.splines import spline as spline_of_pieces
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues, cut_controls
from tests.rdgraph.language.test_learned_function import DECLARATIONS, check_facts

PHI = LearnedFunction("phi", knots=7, range=(-2, 1))
ENDS = {"lower": -2.0, "step": float(PHI.step)}


def spline(
    x: torch.Tensor, controls: torch.Tensor, lower: float, step: float, per_channel: bool = False
) -> torch.Tensor:
    return spline_of_pieces(x, spline_pieces(controls, per_channel), lower, step)


def drawn(*shape: int, seed: int = 0, size: float = 1.0) -> torch.Tensor:
    return size * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_every_member_has_its_own_function(batch: tuple[int, ...], per_channel: bool) -> None:
    x = drawn(*batch, 11, 4, size=3.0)
    controls = drawn(*batch, *([4] if per_channel else []), 7, seed=1)
    got = spline(x, controls, **ENDS, per_channel=per_channel)
    for place in np.ndindex(*batch):
        for channel in range(4):
            own = controls[place][channel] if per_channel else controls[place]
            expected = LearnedValues(PHI, own.numpy())(x[place][:, channel].numpy())
            np.testing.assert_allclose(got[place][:, channel], expected, atol=1e-12)


@pytest.mark.parametrize(("shape", "per_channel"), [((7,), False), ((2, 7), True), ((3, 7), False), ((3, 2, 7), True)])
def test_gradients_of_both_orders(shape: tuple[int, ...], per_channel: bool) -> None:
    x, controls = drawn(3, 4, 2, size=2.0).requires_grad_(), drawn(*shape, seed=1).requires_grad_()

    def value(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return spline(a, b, **ENDS, per_channel=per_channel)

    assert torch.autograd.gradcheck(value, (x, controls))
    assert torch.autograd.gradgradcheck(value, (x, controls))


def test_sums_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, slope = drawn(3, 40, 2, size=2.0), drawn(3, 40, 2, seed=2)
    found = []
    for most in (2**26, 100):
        monkeypatch.setattr(splines, "MAX_ENTRIES", most)
        controls = drawn(3, 7, seed=1).requires_grad_()
        spline(x, controls, **ENDS).backward(slope)
        found.append(controls.grad)
    torch.testing.assert_close(*found)


def test_what_is_no_number_stays_none() -> None:
    x = torch.tensor([[float("nan"), float("inf"), -float("inf"), 0.5]])
    got = spline(x, drawn(7).float(), **ENDS)
    assert got.isfinite().tolist() == [[False, False, False, True]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_out_the_function_and_its_gradients_are_those_of_the_lines(dtype: torch.dtype) -> None:
    far = torch.tensor([-1e30, -1e19, -1e13, 0.5, 1e13, 1e19, 1e30], dtype=dtype)[:, None]
    controls = torch.tensor([-1.0, -1.0, -0.5, 0.25, 0.5, 2.0, 2.0], dtype=dtype, requires_grad=True)
    found = spline(far, controls, **ENDS)
    assert found[:3].flatten().tolist() == [-1.0] * 3
    assert found[4:].flatten().tolist() == [2.0] * 3
    (slope,) = torch.autograd.grad(found[3].sum(), controls)
    (alone,) = torch.autograd.grad(spline(far[3:4], controls, **ENDS).sum(), controls)
    torch.testing.assert_close(slope, alone)


def test_the_source_runs_with_torch_alone() -> None:
    names: dict = {"torch": torch}
    exec(compile(SOURCE, "<spline>", "exec"), names)
    x, controls = drawn(3, 4, size=2.0), drawn(7, seed=1)
    got = names["spline"](x, names["spline_pieces"](controls), -2.0, 0.5)
    assert torch.equal(got, spline(x, controls, -2.0, 0.5))


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_no_parameters_break_the_declaration(declared: LearnedFunction) -> None:
    for seed, size in enumerate((0.0, 0.1, 1.0, 10.0, 1e4)):
        theta = drawn(6, declared.parameters, seed=seed, size=size)
        for dtype, room in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
            controls = make_controls(declared, theta.to(dtype)).double().numpy()
            check_facts(LearnedValues(declared, controls), room * max(1.0, float(np.abs(controls).max())))


FINE = [
    LearnedFunction("phi", knots=512, lipschitz=2),
    LearnedFunction("phi", knots=511, monotone="nondecreasing"),
    LearnedFunction("phi", knots=512, odd=True, monotone="nonincreasing", lipschitz=0.3),
    LearnedFunction("phi", knots=257, monotone="nondecreasing", bound=0.7),
    LearnedFunction("phi", knots=300, range=(7, 8), bound=0.1, lipschitz=2),
]


def check_exactly(declared: LearnedFunction, controls: torch.Tensor) -> None:
    """Compare control values, as fractions, with a declaration: nothing is rounded here."""
    for row in controls.reshape(-1, declared.knots).tolist():
        values = [Fraction(value) for value in row]
        steps = [right - left for left, right in itertools.pairwise(values)]
        if declared.slope is not None:
            lower, upper = (end * declared.step for end in (declared.slope.lower, declared.slope.upper))
            assert lower <= sp.Rational(min(steps))
            assert sp.Rational(max(steps)) <= upper
        if declared.bound is not None:
            assert sp.Rational(max(map(abs, values))) <= declared.bound
            assert steps[0] == steps[-1] == 0
        assert not declared.odd or values == [-value for value in values[::-1]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("declared", [*DECLARATIONS, *FINE], ids=str)
def test_what_is_declared_holds_for_the_rounded_numbers(declared: LearnedFunction, dtype: torch.dtype) -> None:
    for seed, size in enumerate((0.0, 1e-3, 1.0, 1e3, 1e6)):
        controls = make_controls(declared, drawn(3, declared.parameters, seed=seed, size=size).to(dtype))
        check_exactly(declared, controls)
        ends = {"lower": float(declared.range[0]), "step": float(declared.step)}
        x = (ends["lower"] + ends["step"] * declared.knots * (3 * torch.rand(3, 2000, 1) - 1)).to(dtype)
        x.requires_grad_()
        (slope,) = torch.autograd.grad(spline(x, controls, **ends).sum(), x)
        if declared.lipschitz is not None:
            assert float(slope.abs().max()) <= float(declared.lipschitz)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("declared", FINE, ids=str)
def test_values_that_are_given_are_put_on_the_grid_of_the_field(declared: LearnedFunction, dtype: torch.dtype) -> None:
    system = parse(f"-L@H + phi(H) where {declared}")
    given = cut_controls(declared, 1e3 * drawn(declared.knots).numpy().cumsum())
    for value in (given, LearnedValues(declared, given), torch.as_tensor(given)):
        if dtype is torch.float64 and isinstance(value, torch.Tensor):
            continue  # as it was given
        operator = generators.ring(5).operator("row", dtype=dtype)
        found = read_coefficients({"phi": value}, coefficient_shapes(system, 5, ()), system, operator)["phi"]
        assert found.dtype == dtype
        check_exactly(declared, found)
        np.testing.assert_allclose(found, given, atol=2e-3 * np.abs(given).max())


def test_large_values_make_no_spurious_slope() -> None:
    controls = 1000 + 0.01 * drawn(7, seed=3)
    x = torch.linspace(-3, 2, 400)[:, None].requires_grad_()
    (slope,) = torch.autograd.grad(spline(x, controls.float(), **ENDS).sum(), x)
    expected = LearnedValues(PHI, controls.float().double().numpy()).slope(x.detach().double().numpy())
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_gradients_go_through_the_grid(declared: LearnedFunction) -> None:
    theta = drawn(2, declared.parameters, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: make_controls(declared, x), (theta,))


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_every_parameter_counts(declared: LearnedFunction) -> None:
    theta = drawn(declared.parameters).requires_grad_()
    jacobian = torch.autograd.functional.jacobian(lambda x: make_controls(declared, x), theta)
    assert torch.linalg.matrix_rank(jacobian) == declared.parameters


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_parameters_of_values_give_the_values_back(declared: LearnedFunction) -> None:
    theta = drawn(4, declared.parameters, size=0.05)
    values = LearnedValues(declared, make_controls(declared, theta).numpy())
    again = make_controls(declared, torch.as_tensor(parameters_of(values)))
    np.testing.assert_allclose(again, values.controls, atol=1e-9)


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_learning_starts_at_zero_or_next_to_it(declared: LearnedFunction) -> None:
    start = torch.as_tensor(start_parameters(declared)).requires_grad_()
    controls = make_controls(declared, start)
    if declared.monotone is None:
        assert controls.abs().max() == 0
    else:
        assert controls.diff().abs().max() <= 0.1 * float(declared.step) + 1e-12
    controls.square().sum().backward() if declared.monotone else controls.sum().backward()
    assert start.grad.isfinite().all()
    near = LearnedValues(declared, cut_controls(declared, np.linspace(-1, 1, declared.knots)))
    assert np.isfinite(parameters_of(near)).all()


def test_parameters_of_another_size_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="expected 7 parameters of phi"):
        make_controls(PHI, torch.zeros(6))
