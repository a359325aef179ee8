"""The method that follows from the equation: what is exact, split or stepped, the steps, and the bound behind them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import sympy as sp

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.language.normal_form import H
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local
from rdgraph.theory.method_choice import DEFAULT_STEP, MOST_STEPS, choose_method, step_for
from rdgraph.theory.rate_bounds import equilibrium_size, rate_bound
from rdgraph.vocabulary.methods import tableau

LINEAR = ["BS", "ST", "FB*", "GRAND++", "-L@H + M*H0 + 1", "beta*A@A@H + tanh(H0)", "-alpha*L@H + c*H0 where c node"]
CLOSED = ["F", "AC", "Z", "ACMP", "-alpha*L@H + H**2", "(alpha - beta)*H - A@H - H**4"]
STEPPED = ["CGNN", "-alpha*L@H + beta*tanh(H)", "-L@H + tanh(A@H)", "M*H - L@H"]
ADAPTED = ["Nagumo", "-L@H + H*(1 - H) + H0", "-L@H + sqrt(H)", "0.1*H**31 + 1e30*H**30 - L@H"]


@pytest.mark.parametrize(
    ("line", "method"),
    [
        *((line, "exact") for line in LINEAR), *((line, "strang") for line in CLOSED),
        *((line, "rk4") for line in STEPPED), *((line, "dopri5") for line in ADAPTED),
    ],
)  # fmt: skip
def test_the_method_follows_from_the_equation(line: str, method: str) -> None:
    choice = choose_method(line)
    assert choice.method == method
    assert (choice.step is None) == (method in ("exact", "dopri5"))
    assert method in str(choice)


def test_the_reason_is_one_sentence_with_the_symbol_or_the_obstacle() -> None:
    assert choose_method("-alpha*L@H").reason == "linear with symbol p(lam) = -alpha*lam: exact flow"
    assert "and a forcing" in choose_method("-alpha*L@H + beta").reason
    assert (
        "the reaction beta*tanh(H) is nonlinear; step 0.46 from the Lipschitz bound"
        in choose_method("-alpha*L@H + beta*tanh(H)").reason
    )
    assert "no bound of its slope is known" in choose_method("-L@H + sqrt(H)", stepped=True).reason


@pytest.mark.parametrize(
    ("line", "method"),
    [("-alpha*L@H", "exact"), ("A@H - H", "exact"), ("-alpha*L@H + beta*A@H", "rk4"), ("F", "strang")],
)
def test_where_l_is_d_minus_a_one_letter_is_needed(line: str, method: str) -> None:
    assert choose_method(line, normalisation="none").method == method


def test_runge_kutta_steps_on_request() -> None:
    choice = choose_method("BS", stepped=True)
    assert choice.method == "rk4"
    assert choice.step == 0.34  # half of 2.785 over K = 4
    assert "requested" in choice.reason


# ---------------------------------------------------------------------- the bound
NUMBERS = {"alpha": 0.7, "beta": 1.3, "gamma": 0.4, "a": 0.3, "delta": 0.9, "omega": 0.5, "W": 1.0}
BOUNDED = [
    *LINEAR[:4],
    *CLOSED,
    "Nagumo",
    "-alpha*L@H + beta*tanh(H)",
    "-alpha*L@H + sigmoid(gamma*H)",
    "-L@H + H/(1 + H**2)",
]


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
@pytest.mark.parametrize("line", BOUNDED)
def test_the_bound_is_no_less_than_the_exact_constant(line: str, normalisation: str) -> None:
    system = parse(line)
    bound = rate_bound(system, normalisation)
    exact = (lipschitz_local if bound.is_local else lipschitz_global)(system, normalisation).value
    assert exact is not None
    for radius in (0.5, 1.0, 3.0):
        known = {sp.Symbol(name): value for name, value in {**NUMBERS, "R": radius, "s": 1.0}.items()}
        own = float(bound.at({n: v for n, v in NUMBERS.items() if n in system.letters}, radius=radius))
        assert own >= float(exact.subs(known)) * (1 - 1e-12)
        assert own <= 3 * float(exact.subs(known))


@pytest.mark.parametrize("line", ["-alpha*L@H + beta*tanh(A@H)", "alpha*A@H - beta*L@(H*(A@H))", "A@A@H - H*(A@H)"])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_holds_for_graphs_that_are_not_normalised(line: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, (6, 6)) * (rng.random((6, 6)) < 0.6)
    degree = np.abs(A).sum(1)
    L = np.diag(degree) - A
    fields = {
        "-alpha*L@H + beta*tanh(A@H)": lambda h: -0.7 * L @ h + 1.3 * np.tanh(A @ h),
        "alpha*A@H - beta*L@(H*(A@H))": lambda h: 0.7 * A @ h - 1.3 * L @ (h * (A @ h)),
        "A@A@H - H*(A@H)": lambda h: A @ A @ h - h * (A @ h),
    }
    bound = float(rate_bound(parse(line), "none").at({"alpha": 0.7, "beta": 1.3} if "alpha" in line else {},
                                                     radius=2.0, row_sum=degree.max()))  # fmt: skip
    for _ in range(200):
        x, y = rng.uniform(-2, 2, (2, 6))
        assert np.abs(fields[line](x) - fields[line](y)).max() <= bound * np.abs(x - y).max() * (1 + 1e-12)


def test_constant_states_count_for_the_size_of_the_state() -> None:
    system = parse("-alpha*L@H + beta*H*(gamma - H)*(H + 1)")
    assert np.allclose(equilibrium_size(system, {"gamma": np.array([3.0, 0.5, 20.0])}), [3.0, 1.0, 20.0])
    assert float(equilibrium_size(parse("-L@H + tanh(H)"))) == 0
    assert float(equilibrium_size(parse("-L@H + beta*H"), {"beta": 0.0})) == 0
    far, near = (choose_method(system, values={"gamma": g}, stepped=True).step for g in (20.0, 0.5))
    assert far is not None
    assert near is not None
    assert far < near / 50


# ---------------------------------------------------------------------- the step
def test_the_step_is_half_the_stability_limit_and_on_directed_graphs_within_the_monotone_radius() -> None:
    undirected, directed = (choose_method("-alpha*L@H + beta*tanh(H)", undirected=u).step for u in (True, False))
    half = float(tableau("rk4").real_limit) / 2
    assert undirected == pytest.approx(half / 3, rel=0.02)
    assert undirected <= half / 3
    assert directed == pytest.approx(1 / 3, rel=0.02)
    assert directed <= 1 / 3


def test_a_time_that_is_given_is_cut_into_equal_parts() -> None:
    choice = choose_method("-alpha*L@H + beta*tanh(H)", T=1.0)
    assert choice.step == 1.0 / 3
    assert choose_method("-alpha*L@H + beta*tanh(H)", T=0.2).step == 0.2
    assert choose_method("-L@H + beta*tanh(H)", T=1.0, values={"beta": 1e12}).step == 1.0 / MOST_STEPS
    assert choose_method("-L@H + sqrt(H)", stepped=True).step == DEFAULT_STEP
    assert step_for("rk4", 0.0, 5.0) == 5.0
    assert step_for("rk4", 0.0) == 1.0


@pytest.mark.parametrize(
    ("line", "values", "expected"),
    [
        ("-alpha*L@H + beta*tanh(H)", {"alpha": 2.0, "beta": 6.0}, 10.0),
        ("-alpha*L@H + beta*tanh(H)", {"alpha": -2.0, "beta": -6.0}, 10.0),
        ("-alpha*L@H + beta*tanh(H) where beta channel", {"beta": [1.0, -6.0]}, 8.0),
        ("c*tanh(H) + b*tanh(A@H) where c node, b channel", {"c": [1.0, 2.0, 5.0], "b": [1.0, 4.0]}, 9.0),
        ("-L@H + H@W", {"W": [[0.0, 3.0], [1.0, 1.0]]}, 6.0),
        ("-L@H + beta*tanh(H) where beta negative", {}, 3.0),
    ],
)  # fmt: skip
def test_given_numbers_count_and_others_are_one(line: str, values: dict[str, Any], expected: float) -> None:
    step = choose_method(line, values=values).step
    assert step is not None
    assert step == pytest.approx(float(tableau("rk4").real_limit) / 2 / expected, rel=0.09)
    assert step <= float(tableau("rk4").real_limit) / 2 / expected


def test_the_choice_is_quick() -> None:
    for name in catalogue.single:
        choose_method(name)
    began = time.process_time()
    for name in catalogue.single:
        choose_method(name, T=3.0)
    assert time.process_time() - began < 0.3 * len(catalogue.single)


@pytest.mark.parametrize("settings", [{"T": -1.0}, {"T": np.inf}, {"radius": -2.0}, {"row_sum": np.nan}, {"T": "long"}])
def test_numbers_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="expected a finite number"):
        choose_method("F", **settings)


@pytest.mark.parametrize("name", ["gamma", "H", "A"])
def test_coefficients_that_do_not_occur_are_refused(name: str) -> None:
    with pytest.raises(UnknownName, match="expected a coefficient of"):
        choose_method("F", values={name: 1.0})


@pytest.mark.parametrize("text", ["beta*H*(1 - tanh(H)**2)", "-alpha*L@H + beta*H/(1 + H**2)", "beta*H*exp(-H**2)"])
@pytest.mark.parametrize("beta", [-1.5, 0.7])
def test_a_bound_of_the_slope_holds_for_coefficients_of_either_sign(text: str, beta: float) -> None:
    """Against the largest slope of the reaction on a grid: coefficients that are trained may become negative."""
    system = parse(text)
    bound = float(rate_bound(system).at({"alpha": 0.0, "beta": beta}))
    h = sp.Symbol("h", real=True)
    reaction = system.structure.reaction + sum(system.structure.generator.values(), sp.S.Zero) * H
    values = {symbol: beta if symbol.name == "beta" else 0.0 for symbol in reaction.free_symbols - {H}}
    slope = sp.lambdify(h, sp.diff(reaction.xreplace({H: h}), h).subs(values), "numpy")
    assert bound >= np.abs(slope(np.linspace(-6, 6, 2001))).max() - 1e-9


def test_a_slope_whose_end_depends_on_signs_has_a_bound_all_the_same() -> None:
    """tanh(H) - H**3 has the slopes of one sign at infinity, H**3 those of another: coefficient signs are split."""
    bound = rate_bound(parse("alpha*tanh(H) - beta*H**3"))
    assert bound.is_local
    assert float(bound.at({"alpha": -0.5, "beta": 0.25}, radius=2.0)) >= 0.5 + 0.25 * 3 * 4


@pytest.mark.parametrize("text", ["0.1*H**31 + 1e30*H**30 - L@H", "(1e30*H + 1e-30)**31 - L@H"])
def test_numbers_beyond_double_precision_leave_a_step_by_default(text: str) -> None:
    assert choose_method(text, stepped=True).step == DEFAULT_STEP


def test_a_bound_with_algebraic_numbers_gives_a_step() -> None:
    """The slope of H**2/(1 + H**4) is largest at a zero of 3*H**8 - 12*H**4 + 1, which has no name in numpy."""
    line = "-alpha*L@H - H**2*(A@H) + a*H**2/(1 + H**4)"
    choice = choose_method(line, T=2, stepped=True)
    bound = rate_bound(parse(line)).at({}, radius=1.0)
    assert np.isfinite(bound)
    assert choice.step == pytest.approx(2 / np.ceil(2 / (float(tableau("rk4").real_limit) / 2 / bound)), rel=0.1)
    assert "CRootOf" not in choice.reason
    assert choose_method("u' = -u + v**2/(1 + v**4); v' = -v - u**3", T=2).method == "dopri5"


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="for alpha, got 'x'"):
        choose_method("F", values={"alpha": "x"})
