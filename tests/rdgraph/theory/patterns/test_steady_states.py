"""Steady states: all of them, exact or certified, against Newton's method from many starts."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.theory.patterns.box_search import search_box
from rdgraph.theory.patterns.elimination import Continuum, real_solutions
from rdgraph.theory.patterns.kinetics import from_reaction
from rdgraph.theory.patterns.steady_states import solve_states

x, y, z = sp.symbols("x y z", real=True)


# ---------------------------------------------------------------------- polynomial equations
def test_real_solutions_leave_complex_ones_out() -> None:
    assert real_solutions([x**2 + 1], [x]) == []
    assert real_solutions([x**3 - 1], [x]) == [(1,)]
    assert real_solutions([x**2 + y**2, x - y], [x, y]) == [(0, 0)]


def test_real_solutions_with_multiplicity_are_counted_once() -> None:
    assert real_solutions([(x - 1) ** 2 * (x + 2), y**2 - x], [x, y]) == [(1, -1), (1, 1)]


def test_real_solutions_need_not_have_different_coordinates() -> None:
    answer = real_solutions([x**2 - 2, y**2 - 2, z - x * y], [x, y, z])
    root = sp.sqrt(2)
    assert set(answer) == {(root, root, 2), (-root, -root, 2), (root, -root, -2), (-root, root, -2)}


def test_infinitely_many_solutions_are_not_listed() -> None:
    with pytest.raises(Continuum):
        real_solutions([x * y], [x, y])


def newton(rates: list[sp.Expr], letters: list[sp.Symbol], generator: np.random.Generator, starts: int) -> list:
    value = sp.lambdify(letters, rates, "numpy")
    slope = sp.lambdify(letters, sp.Matrix(rates).jacobian(letters), "numpy")
    answer = []
    for _ in range(starts):
        point = generator.normal(size=len(letters)) * generator.choice([0.5, 2, 6])
        for _ in range(50):
            try:
                step = np.linalg.solve(np.array(slope(*point), dtype=float), np.array(value(*point), dtype=float))
            except np.linalg.LinAlgError:
                break
            point = point - step
            if not np.isfinite(point).all() or abs(point).max() > 1e5:
                break
            if abs(step).max() < 1e-13 * (1 + abs(point).max()):
                answer.append(point)
                break
    return answer


@pytest.mark.slow
def test_lists_that_are_complete_miss_nothing_newton_finds() -> None:
    source, generator = random.Random(7), np.random.default_rng(7)
    complete = 0
    for _ in range(24):
        letters = [x, y, z][: source.choice([1, 2, 2, 3])]
        rates = []
        for _ in letters:
            terms = [sp.Rational(source.randint(-6, 6), source.choice([1, 2, 3])) * u for u in (1, *letters)]
            terms += [
                source.randint(-3, 3) * sp.Mul(*(source.choice(letters) for _ in range(source.choice([2, 3]))))
                for _ in range(2)
            ]
            rates.append(sp.Add(*terms))
        if any(not rate.has(*letters) for rate in rates):
            continue
        names = [u.name for u in letters]
        states = solve_states(from_reaction(names, rates, sp.eye(len(letters)).tolist()))
        if not states.is_complete or any(state.free for state in states):
            continue
        complete += 1
        points = [np.array(list(state.numbers().values())) for state in states]
        for point in points:
            residual = [abs(float(rate.subs(dict(zip(letters, point, strict=True))))) for rate in rates]
            assert max(residual) < 1e-7 * (1 + abs(point).max() ** 3)
        for zero in newton(rates, letters, generator, 12):
            assert any(abs(zero - point).max() < 1e-5 * (1 + abs(zero).max()) for point in points), (rates, zero)
    assert complete > 14


# ---------------------------------------------------------------------- rates that are not rational
def test_transcendental_rates_are_searched_over_a_box() -> None:
    states = rd.steady_states("u' = -u + 2*tanh(v) - L@u; v' = -v + tanh(u) - L@v", {}, box=(-5, 5))
    assert states.is_complete
    assert "[-5, 5]" in states.reason
    assert [state.how for state in states] == ["certified", "exact", "certified"]
    u = float(states[0].values["u"])
    assert u > 0
    assert abs(-u + 2 * np.tanh(np.tanh(u))) < 1e-14
    lower, upper = next(iter(states[0].enclosures.values()))
    assert 0 < upper - lower < sp.Rational(1, 10**40)
    assert abs(sp.Rational(states[0].values["u"]) - lower) < sp.Rational(1, 10**25)


def test_a_zero_without_slope_is_not_certified() -> None:
    answer = search_box([x**2], [x], sp.Integer(-1), sp.Integer(1))
    assert answer.zeros == ()
    assert answer.open_boxes
    assert search_box([sp.exp(x) + 1], [x], sp.Integer(-9), sp.Integer(9)) == type(answer)((), ())


def test_zeros_on_the_border_of_two_boxes_count_once() -> None:
    answer = search_box([sp.sin(x)], [x], sp.Integer(-10), sp.Integer(10))
    assert np.allclose([float(zero[0].mid()) for zero in answer.zeros], np.pi * np.arange(-3, 4), atol=1e-14)
    assert answer.open_boxes == ()


# ---------------------------------------------------------------------- symbolic coefficients
def test_closed_forms_come_with_their_conditions() -> None:
    states = rd.steady_states("u' = a - b*u + u**2 - L@u; v' = u - v - L@v")
    a, b = sp.symbols("a b")
    assert states.is_complete
    assert len(states) == 2
    assert {str(c) for state in states for c in state.to_dict()["conditions"]} == {"-4*a + b**2 >= 0"}
    assert sp.simplify(states[0].values["u"] + states[1].values["u"] - b) == 0
    assert sp.simplify(states[0].values["u"] * states[1].values["u"] - a) == 0


def listed(text: str, values: dict[str, sp.Rational]) -> tuple[set[sp.Expr], bool]:
    """The states of one field whose conditions hold at some coefficients, and whether any state is one."""
    isolated, anything = set(), False
    for state in rd.steady_states(text):
        plain = (c.subs({x: values[x.name] for x in c.free_symbols if x.name in values}) for c in state.conditions)
        if any(c == sp.false for c in plain):
            continue
        value = next(iter(state.values.values())).subs(values)
        anything, isolated = anything or bool(state.free), isolated | (set() if state.free else {sp.nsimplify(value)})
    return isolated, anything


HALF = sp.Rational(1, 2)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("alpha**2*H - H**2/(gamma + H**2) where 0 >= alpha, gamma real", (-2, 1), {0}),
        ("alpha**2*H - H**2/(gamma + H**2) where 0 >= alpha, gamma real", (-1, HALF**2), {0, HALF}),
        ("alpha**2*H - H**2/(gamma + H**2) where 0 >= alpha, gamma real", (-1, 0), {1}),
        ("-alpha**2*1/H - gamma*H where gamma real", (1, 1), set()),
        ("-alpha**2*1/H - gamma*H where gamma real", (1, -4), {-HALF, HALF}),
        ("gamma*H - alpha*H/(1 + H**2) where alpha real, gamma nonnegative", (3, 0), {0}),
        ("gamma*H - alpha*H/(1 + H**2) where alpha real, gamma nonnegative", (0, 0), None),
        ("-alpha + gamma/(1 + H**2) where alpha real", (0, 1), set()),
        ("3/(H - 1) + gamma/(H - alpha) where alpha real, gamma real", (2, -3), set()),
        ("3/(H - 1) + gamma/(H - alpha) where alpha real, gamma real", (1, -3), None),
        ("3/(H - 1) + gamma/(H - alpha) where alpha real, gamma real", (1, 2), set()),
        ("-gamma/(H - 3) - alpha*H/(1 + H**2) where gamma real, alpha real", (2, -2), {-sp.Rational(1, 3)}),
        ("H**2 - alpha*gamma where alpha nonnegative, gamma real", (0, -1), {0}),
        ("alpha/gamma*H*(1 - H) where alpha real, gamma real", (1, 0), set()),
        ("alpha/alpha*H*(gamma - H) where alpha real, gamma real", (0, 1), set()),
        ("H**2/H - alpha*gamma where alpha real", (0, 1), set()),
        ("gamma/(1/H + 1) where alpha real, gamma real", (1, 1), set()),
        ("abs(H) - alpha*gamma where alpha real", (-1, 1), set()),
        ("abs(H) - alpha*H - gamma where alpha real, gamma real", (1, 0), None),
        ("sqrt(H) - alpha*gamma where alpha real", (-1, 2), set()),
        ("sqrt(H) - alpha*gamma where alpha real", (1, 2), {4}),
        ("gamma*H**4 - alpha where alpha real, gamma real", (0, 0), None),
        ("gamma*H**4 - alpha where alpha real, gamma real", (-16, -1), {-2, 2}),
    ],
)
def test_listed_states_are_the_real_zeros_at_special_coefficients(
    text: str, values: tuple[sp.Expr, sp.Expr], expected: set[sp.Expr] | None
) -> None:
    """None: every state at which the equation is defined is steady."""
    numbers = dict(zip(("alpha", "gamma"), map(sp.sympify, values), strict=True))
    assert rd.steady_states(text).is_complete
    isolated, anything = listed(text, numbers)
    assert anything == (expected is None)
    assert expected is None or isolated == expected


def test_families_leave_poles_out() -> None:
    *_, family = rd.steady_states("3/(H - 1) + gamma/(H - alpha) where alpha real, gamma real")
    assert (family.free, family.values["H"]) == (("H",), sp.Symbol("H"))
    assert family.to_dict()["conditions"] == ["Eq(alpha, 1)", "Eq(gamma, -3)", "Ne(H, 1)"]
    assert "H free where alpha = 1 and gamma = -3 and H != 1" in family.to_dict()["words"]


def test_cases_of_several_fields_are_all_listed() -> None:
    states = rd.steady_states("u' = a - u + u**2*v; v' = b - u**2*v where a real, b real")
    assert states.is_complete
    assert [state.to_dict()["conditions"] for state in states] == [["Ne(a + b, 0)"], ["Eq(a, 0)", "Eq(b, 0)"]]
    assert states[1].free == ("v",)


def test_gray_scott_has_all_its_states() -> None:
    states = rd.steady_states("u' = p - p*u - u*v**2 - L@u; v' = u*v**2 - q*v - L@v where p scalar, q scalar")
    assert states.is_complete
    assert states[2].values == {"u": 1, "v": 0}
    assert [state.to_dict()["conditions"] for state in states] == [["p - 4*q**2 >= 0"]] * 2 + [[]]


def test_equations_are_not_defined_at_their_poles() -> None:
    with pytest.raises(InvalidArgument, match="not defined"):
        rd.dispersion("-L@H + alpha*H**3/H - H", {"alpha": 1}, {"H": 0})
    assert not len(rd.steady_states("-L@H + alpha*H**2/H", {"alpha": 1}))


def test_lines_of_steady_states_have_a_free_field() -> None:
    states = rd.steady_states("u' = -a*u*v - L@u; v' = a*u*v - b*v - L@v")
    assert states.is_complete
    assert states[0].free == ("u",)
    with pytest.raises(InvalidArgument, match="family"):
        rd.dispersion("u' = -a*u*v - L@u; v' = a*u*v - b*v - L@v", {"a": 1, "b": 1})
    relation = rd.dispersion("u' = -a*u*v - L@u; v' = a*u*v - b*v - L@v", {"a": 1, "b": 1}, {"u": 2, "v": 0})
    assert relation.kind == "unstable at 0"


def test_what_has_no_closed_form_is_not_called_complete() -> None:
    states = rd.steady_states("u' = a + u - u**3 - v; v' = b*u + c - v**3")
    assert len(states) == 0
    assert not states.is_complete


def test_values_are_read_as_written_and_checked() -> None:
    text = "u' = a - u - L@u; v' = u - b*v - L@v"
    assert rd.steady_states(text, {"a": 0.1, "b": 0.3})[0].values == {"u": sp.Rational(1, 10), "v": sp.Rational(1, 3)}
    with pytest.raises(InvalidArgument, match="positive"):
        rd.steady_states(text, {"a": -1, "b": 1})
    with pytest.raises(InvalidArgument, match="among"):
        rd.steady_states(text, {"k": 1})
    with pytest.raises(InvalidArgument, match="assumption"):
        rd.steady_states(rd.parse(text, assume="a < b"), {"a": 2, "b": 1})


def test_coefficients_of_noise_are_accepted_and_ignored() -> None:
    noisy = "u' = a - u - L@u + b*xi; v' = u - v"
    assert rd.steady_states(noisy, {"a": 2, "b": 5})[0].values == {"u": 2, "v": 2}


def test_which_graphs_keep_constant_states() -> None:
    assert "none or row" in rd.steady_states("u' = 1 - u - L@u; v' = u - v").assumes
    assert rd.steady_states("u' = 1 - u - A@u; v' = u - v").assumes.startswith("A@1 = 1")
    assert rd.steady_states("u' = 1 - u; v' = u - v").assumes == "every graph"
    assert rd.steady_states("u' = u**2 - v - L@u; v' = u - v")[-1].assumes == "every graph"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u' = -k*u - L@u; v' = u where k node", "differs between"),
        ("u' = v@W - u; v' = u - v", "mixes channels"),
        ("u' = -u*t; v' = u", "autonomous"),
        ("u' = -u + B@u; v' = u where B antisymmetric", "B need not keep"),
    ],
)
def test_systems_without_constant_states_are_refused(text: str, reason: str) -> None:
    with pytest.raises(NotApplicable, match=reason):
        rd.steady_states(text)


def test_answers_can_be_read_and_written() -> None:
    states = rd.steady_states("u' = a - u - L@u; v' = u - v - L@v")
    assert "u = a, v = a (exact)" in str(states)
    assert "complete" in repr(states)
    assert "<table>" in states._repr_html_()
    assert states.to_dict()["states"][0]["values"] == {"u": "a", "v": "a"}


@pytest.mark.parametrize(
    ("text", "fates"),
    [
        ("H**2 + a + b where a nonnegative, b nonnegative", ["marginal", "marginal"]),
        ("-H**2 + a - b", ["unstable for some lam where a - b > 0, else marginal", "stable iff a - b > 0"]),
    ],
)
def test_conditions_of_stability_are_real(text: str, fates: list[str]) -> None:
    """At a = b = 0, where alone it is real, the state sqrt(-a - b) is at rest to first order."""
    assert [state.stability for state in rd.steady_states(text)] == fates


def test_only_numbers_have_enclosures() -> None:
    (positive, _) = rd.steady_states("H**2 - a")
    with pytest.raises(NotApplicable, match="depends on letters"):
        _ = positive.balls
    (root, _) = rd.steady_states("H**2 - 2")
    (ball,) = root.balls.values()
    assert abs(float(ball) - 2**0.5) < 1e-15
