"""Random systems of several fields that the adversary may not refute, and false answers that it must."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp

from tests.adversary import field_attacks, graphs
from tests.adversary.field_systems import DrawnFields, FieldRun

SEED = 20230724
SLICE, LONG = 30, 240

DECAY = DrawnFields((("u", "- u + v"), ("v", "- v")))


@dataclass(frozen=True)
class Claim:
    """An answer that somebody made up."""

    value: sp.Expr | None = None
    is_sharp: bool = False
    outcome: str = "global"
    starts: str = ""
    sums: tuple[object, ...] = ()
    is_complete: bool = True
    coefficients: tuple[tuple[str, sp.Expr], ...] = ()
    weights: tuple[tuple[str, str], ...] = ()


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def refuted(first: int, count: int) -> list[field_attacks.Attack]:
    found = list(field_attacks.attacks(count, SEED, first))
    assert sum(attack.status == "held" for attack in found) >= count // 4
    return [attack for attack in found if attack.status in ("refuted", "error")]


@pytest.mark.slow
def test_no_answer_of_a_slice_is_refuted() -> None:
    assert refuted(0, SLICE) == []


@pytest.mark.slow_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(SLICE, LONG, SLICE))
def test_no_answer_of_many_is_refuted(first: int) -> None:
    assert refuted(first, SLICE) == []


def test_a_run_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_attacks, "MOST_SPEEDS", 600)
    stiff = DrawnFields((("u", "1e7*v - 1e9*u"), ("v", "- v")))
    run = FieldRun(stiff, graphs.pair(), "row", {})
    times, found = field_attacks._followed(run, np.ones((2, 2)), 1e-8)
    assert 0 < times[-1] < field_attacks.END
    assert found.shape == (len(times), 2, 2)
    assert len(times) <= 600


# ---------------------------------------------------------------------- false answers
def test_a_constant_that_is_too_small_is_refuted() -> None:
    assert field_attacks.lipschitz(DECAY, Claim(sp.Integer(2)), "row", rng(), is_local=True) is None
    assert field_attacks.lipschitz(DECAY, Claim(sp.Rational(19, 10)), "row", rng(), is_local=True)


def test_a_constant_that_is_called_exact_and_is_too_large_is_refuted() -> None:
    assert "called exact" in str(
        field_attacks.lipschitz(DECAY, Claim(sp.Integer(3), True), "row", rng(), is_local=True)
    )
    assert "no constant" in str(field_attacks.lipschitz(DECAY, Claim(None, True), "row", rng(), is_local=False))


def test_a_rectangle_that_is_left_is_refuted() -> None:
    assert field_attacks.rectangle(DECAY, {"u": (0, 1), "v": (0, 1)}, "row", rng(), "") is None
    assert field_attacks.rectangle(DECAY, {"u": (0, 1), "v": (0, 2)}, "row", rng(), "")


def test_a_point_that_does_not_refute_is_noticed() -> None:
    note = "on two nodes joined by an edge u rises above its upper bound: u' = 1 at u there = 1, v there = {}"
    bounds = {"u": (0, 1), "v": (0, 2)}
    assert field_attacks.refutation(DECAY, bounds, note.format(2)) is None
    assert field_attacks.refutation(DECAY, bounds, note.format("1/2"))
    assert field_attacks.refutation(DECAY, bounds, note.format(3))


def test_a_life_that_ends_is_noticed() -> None:
    squares = DrawnFields((("u", "u**2 + 3"), ("v", "- v")))
    assert field_attacks.existence(DECAY, Claim(), rng()) is None
    assert field_attacks.existence(squares, Claim(starts="u, v >= 0"), rng())


def test_a_sum_that_moves_and_a_sum_that_was_missed_are_noticed() -> None:
    exchange = DrawnFields((("u", "- u*v"), ("v", "u*v")))

    @dataclass(frozen=True)
    class Sum:
        coefficients: tuple[tuple[str, sp.Expr], ...]
        weights: dict[str, str]

    right = Sum((("u", sp.S.One), ("v", sp.S.One)), dict.fromkeys(field_attacks.NORMALISATIONS, "any"))
    wrong = Sum((("u", sp.S.One), ("v", sp.Integer(2))), right.weights)
    assert field_attacks.conserved(exchange, Claim(sums=(right,)), rng()) is None
    assert "moves" in str(field_attacks.conserved(exchange, Claim(sums=(wrong,)), rng()))
    assert "were found" in str(field_attacks.conserved(exchange, Claim(), rng()))


def test_what_differs_between_nodes_is_attacked() -> None:
    """False claims about node coefficients, masks and starts, and true ones beside them."""
    neighbours = DrawnFields((("u", "A@(k*u) - k*u"), ("v", "-v")))
    assert neighbours.text == "u' = A@(k*u) - k*u; v' = -v where k node"
    one_sided = {"is_local": False, "is_one_sided": True}
    assert field_attacks.lipschitz(neighbours, Claim(sp.Integer(0)), "row", rng(), **one_sided)
    assert field_attacks.lipschitz(neighbours, Claim(sp.Symbol("k")), "row", rng(), **one_sided) is None
    masked = DrawnFields((("u", "-(A@M)*(A@(1 - M))"), ("v", "-v")))
    assert field_attacks.rectangle(masked, {"u": (0, "oo"), "v": (0, 1)}, "none", rng(), "")
    started = DrawnFields((("u", "u0 - u"), ("v", "u0*v - 3*v")))
    assert field_attacks.rectangle(started, {"u": (0, 1), "v": (0, 1)}, "row", rng(), "") is None
    assert field_attacks.lipschitz(started, Claim(sp.Integer(3)), "row", rng(), is_local=True)
