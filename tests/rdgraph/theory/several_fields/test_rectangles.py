"""Rectangles and densities of known systems, refutations by points, and bounds that are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch

import rdgraph as rd
from tests.adversary import field_attacks
from tests.adversary.field_systems import DrawnFields

COMPETITION = "u' = alpha*u*(1 - u - a*v) - Du*L@u; v' = beta*v*(1 - v - b*u) - Dv*L@v"
FITZHUGH_NAGUMO = "u' = u - u**3/3 - v + c - Du*L@u; v' = epsilon*(u + a - b*v)"
GRAY_SCOTT = "u' = -u*v**2 + a*(1 - u) - Du*L@u; v' = u*v**2 - (a + b)*v - Dv*L@v"
DENSITIES = {
    "SIR": "u' = -beta*u*(A@v); v' = beta*u*(A@v) - gamma*v; w' = gamma*v",
    "SIS": "u' = -beta*u*(A@v) + gamma*v; v' = beta*u*(A@v) - gamma*v",
    "competition": COMPETITION,
    "Gray-Scott": GRAY_SCOTT,
    "Schnakenberg": "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v",
    "Brusselator": "u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v",
}


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("normalisation", ["row", "none"])
def test_densities_stay_non_negative(name: str, normalisation: str) -> None:
    answer = rd.invariant_box(DENSITIES[name], normalisation).nonnegative
    assert (answer.outcome, answer.is_closed) == ("proved", True)


def test_an_activator_over_its_inhibitor_stays_positive() -> None:
    answer = rd.invariant_box("u' = u**2/v - b*u + a - Du*L@u; v' = u**2 - v - Dv*L@v", "row").nonnegative
    assert (answer.outcome, answer.is_closed) == ("proved", False)


@pytest.mark.parametrize(
    "text",
    ["u' = -v; v' = u", "u' = u - L@v; v' = -v", "H' = -L@H + B@H where B antisymmetric", FITZHUGH_NAGUMO],
)
def test_densities_that_become_negative_are_refuted_by_a_point(text: str) -> None:
    answer = rd.invariant_box(text, "row").nonnegative
    assert answer.outcome == "refuted"
    assert "falls below" in answer.reason


def test_a_mask_that_differs_between_neighbours_keeps_no_density() -> None:
    """On a star whose two leaves have M = 1 and M = 0 the centre has A@M = A@(1 - M) = 1, and u' = -1."""
    system = rd.parse("u' = -(A@M)*(A@(1 - M)); v' = -v")
    star = rd.Graph.from_edges([[0, 0, 1, 2], [1, 2, 0, 0]]).operator("none", dtype=torch.float64)
    mask = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    zero = torch.zeros(3, 2, dtype=torch.float64)
    assert rd.lower(system, star, {"M": mask})(None, zero)[0, 0] == -1
    assert rd.invariant_box(system, "none").nonnegative.outcome != "proved"
    assert rd.invariant_box("u' = A@(M*u) - u; v' = -v", "none").nonnegative.outcome == "proved"


def _speed_at_first_node(system: rd.System, graph: rd.Graph, coefficients: dict[str, list[float]]) -> float:
    """u' at node 0 of the row-normalised graph where u = v = 0."""
    operator = graph.operator("row", dtype=torch.float64)
    given = {name: torch.tensor(values, dtype=torch.float64) for name, values in coefficients.items()}
    return float(rd.lower(system, operator, given)(None, torch.zeros(graph.num_nodes, 2, dtype=torch.float64))[0, 0])


def test_averages_of_what_keeps_away_from_zero_need_not() -> None:
    """Two leaves with b = 1 and b = -1, both admitted by b**2 >= 1: the centre of the star has A@b = 0, and u' = -1."""
    system = rd.parse("u' = (A@b)**2 - 1; v' = -v where b node", assume=["b real", "b**2 >= 1"])
    star = rd.Graph.from_edges([[0, 0, 1, 2], [1, 2, 0, 0]])
    assert _speed_at_first_node(system, star, {"b": [1.0, 1.0, -1.0]}) == -1
    assert rd.invariant_box(system, "row", {"u": (0, "oo")}).outcome != "proved"
    affine = rd.parse("u' = 2 - (A@b)**2 - u; v' = -v where b node", assume=["b < 1"])
    assert rd.invariant_box(affine, "row", {"u": (0, "oo")}).outcome == "proved"


def test_an_order_between_node_coefficients_holds_at_every_node_and_not_between_two() -> None:
    """b < c at both nodes, but c = 1/2 at the first lies below b = 1 at the second: u' = -1/2."""
    system = rd.parse("u' = c - A@b - u; v' = -v where b node, c node", assume=["b < c"])
    pair = rd.Graph.from_edges([[0, 1], [1, 0]])
    assert _speed_at_first_node(system, pair, {"b": [0.25, 1.0], "c": [0.5, 2.0]}) == -0.5
    assert rd.invariant_box(system, "row", {"u": (0, "oo")}).outcome == "refuted"


@pytest.mark.parametrize("end", ["b", "t", "u0", "v"])
def test_bounds_that_differ_between_nodes_or_move_are_refused(end: str) -> None:
    """u' = A@u - u takes a node with u <= b above b where its neighbour may be larger."""
    system = rd.parse("u' = A@u - u; v' = b*u - t*v + u0 where b node")
    with pytest.raises(rd.errors.InvalidArgument, match="same in all nodes at all times"):
        rd.invariant_box(system, "row", {"u": (end, "oo")})
    with pytest.raises(rd.errors.UnknownName):
        rd.invariant_box(system, "row", {"u": (0, "z")})


@pytest.mark.parametrize("normalisation", ["row", "none", "symmetric"])
@pytest.mark.parametrize("text", ["u' = u*(k - u) - L@u; v' = -v", "u' = k*v - u - L@u; v' = 1 - v**3"])
def test_a_rectangle_is_the_same_in_all_nodes(text: str, normalisation: str) -> None:
    """With k = 1 and k = 10 at the ends of an edge u = 1, 10 lies on u <= k, and u' = 9 at the first node."""
    system = rd.parse(f"{text} where k node")
    operator = rd.Graph.from_edges([[0, 1], [1, 0]]).operator("row", dtype=torch.float64)
    logistic = rd.lower("u' = u*(k - u) - L@u; v' = -v where k node", operator, {"k": torch.tensor([1.0, 10.0])})
    assert float(logistic(None, torch.tensor([[1.0, 0.0], [10.0, 0.0]], dtype=torch.float64))[0, 0]) == 9
    bounds = rd.invariant_box(system, normalisation).bounds or {}
    assert not any(end.has(sp.Symbol("k")) for pair in bounds.values() for end in pair)


def test_bounds_in_scalar_and_channel_coefficients_are_read() -> None:
    system = rd.parse("u' = A@u - u + a*(c - u); v' = -v where c channel")
    assert rd.invariant_box(system, "row", {"u": (0, "c")}).outcome == "proved"


def test_a_row_without_incoming_edges_leaves_what_others_keep() -> None:
    """In 0 -> 1 the first node has an edge, but none that comes in: its row of A is zero, and u' = -u there."""
    system = rd.parse("u' = -L@u; v' = -v")
    graph = rd.Graph.from_edges([[0], [1]], num_nodes=2)
    state = torch.ones(2, 2, dtype=torch.float64)
    assert float(rd.lower(system, graph.operator("row", dtype=torch.float64))(None, state)[0, 0]) == -1
    assert rd.invariant_box(system, "row", {"u": (1, 2)}).assumes == "no node is without incoming edges"


def test_a_rectangle_with_moving_coefficients_has_a_first_time() -> None:
    assert "t >= 0" in rd.invariant_box("u' = -t*L@u; v' = -v", "row", {"u": (0, 1)}).reason


def test_cross_diffusion_keeps_densities_under_one_laplacian_and_not_under_the_other() -> None:
    text = "u' = v - L@v; v' = -v"  # A@v under L = I - A, v - D v + A@v under L = D - A
    assert rd.invariant_box(text, "row").nonnegative.outcome == "proved"
    assert rd.invariant_box(text, "none").nonnegative.outcome != "proved"


def test_the_rectangle_of_competition_is_the_unit_square_and_grows_with_the_row_sums() -> None:
    assert rd.invariant_box(COMPETITION, "row").bounds == {"u": (0, 1), "v": (0, 1)}
    assert rd.invariant_box(COMPETITION, "none").bounds == {"u": (0, 1), "v": (0, 1)}
    upper = rd.invariant_box(COMPETITION, "symmetric").bounds["u"][1]
    assert sp.simplify(upper - (1 + sp.Symbol("Du") * (sp.Symbol("s") - 1) / sp.Symbol("alpha"))) == 0


def test_half_of_a_rectangle_is_infinite_where_nothing_bounds_it() -> None:
    answer = rd.invariant_box(GRAY_SCOTT, "row")
    assert answer.bounds == {"u": (0, 1), "v": (0, sp.oo)}
    assert answer.exists
    assert not answer.is_bounded


def test_damping_gives_a_rectangle_that_no_face_of_which_is_crossed() -> None:
    answer = rd.invariant_box(FITZHUGH_NAGUMO.replace("epsilon", "0.1"), "row")
    assert answer.is_bounded
    right = ("u - u**3/3 - v + c - Du*L@u", "0.1*(u + a - b*v)")
    drawn = DrawnFields((("u", right[0]), ("v", right[1])))
    assert field_attacks.rectangle(drawn, answer.bounds, "row", np.random.default_rng(3), answer.assumes) is None


def test_bounds_that_are_asked_for() -> None:
    assert rd.invariant_box(COMPETITION, "row", {"u": (0, 2), "v": (0, 1)}).outcome == "proved"
    low = rd.invariant_box(COMPETITION, "row", {"u": (0, 0.5), "v": (0, 1)})
    assert low.outcome == "refuted"
    assert "u rises above" in low.reason
    assert rd.invariant_box("u' = -a*u + b; v' = -v", "row", {"u": (0, "b/a"), "v": (-1, 1)}).outcome == "proved"
    assert rd.invariant_box("-alpha*L@H + beta*H*(1 - H)", "row", {"H": (0, 1)}).outcome == "proved"


def test_a_symmetric_operator_keeps_constants_on_regular_graphs_only() -> None:
    answer = rd.invariant_box("u' = -L@u; v' = -L@v", "symmetric", {"u": (0, 1), "v": (0, 1)})
    assert answer.outcome == "undecided"
    assert answer.regular == {"u": (0, 1), "v": (0, 1)}


def test_isolated_nodes_are_assumed_away_where_zero_lies_outside() -> None:
    answer = rd.invariant_box("u' = -L@u; v' = -L@v", "row", {"u": (1, 2), "v": (0, 1)})
    assert answer.outcome == "proved"
    assert answer.assumes == "no node is without incoming edges"


def test_time_that_only_slows_diffusion_keeps_the_rectangle() -> None:
    assert rd.invariant_box("u' = -exp(-t)*L@u", "row", {"u": (0, 1)}).outcome == "proved"


def test_noise_is_undecided_with_its_reason() -> None:
    answer = rd.invariant_box("u' = -L@u + sigma*xi", "row")
    assert answer.outcome == "undecided"
    assert "noise" in answer.reason


@pytest.mark.parametrize("bounds", [{"u": (1, 0)}, {"u": 3}, {"u": (0, None)}])
def test_bounds_that_are_no_intervals_are_refused(bounds: dict[str, object]) -> None:
    with pytest.raises(rd.errors.InvalidArgument, match="expected"):
        rd.invariant_box("u' = -u; v' = -v", "row", bounds)


def test_fields_that_do_not_exist_are_refused() -> None:
    with pytest.raises(rd.errors.UnknownName, match="field"):
        rd.invariant_box("u' = -u; v' = -v", "row", {"w": (0, 1)})
