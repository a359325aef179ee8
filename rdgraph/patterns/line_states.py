"""Steady states of one field, numbers as coefficients: all zeros of its rate on the real line, and which attract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.enclosure import sign_of
from rdgraph.decisions.line_pieces import between, is_before
from rdgraph.decisions.line_zeros import LineZero, LineZeros, line_zeros, period
from rdgraph.patterns.states import CERTIFIED, SteadyState

#: The part of the line that is searched where nothing is proved far out.
REACH = (sp.Integer(-100), sp.Integer(100))


@dataclass(frozen=True)
class LineStates:
    """States in their order, whether each attracts the constant states beside it (None if unknown), and what is proved.

    `is_complete` is about the whole line, or about the box that was asked for.
    """

    states: tuple[SteadyState, ...]
    attracting: tuple[bool | None, ...]
    is_complete: bool
    note: str


def line_states(rate: sp.Expr, letter: sp.Symbol, box: tuple[sp.Rational, sp.Rational] | None = None) -> LineStates:
    """The zeros of a rate without other letters, on the line or in a box.

    >>> x = sp.Symbol("x", real=True)
    >>> found = line_states(sp.tanh(x) - x / 2, x)
    >>> [str(state) for state in found.states], found.attracting
    (['x = -1.91501 (certified)', 'x = 0 (exact)', 'x = 1.91501 (certified)'], (True, False, True))
    >>> found.note
    'all real ones, by interval arithmetic'
    """
    found = line_zeros(rate, letter, box or REACH)
    flows = zip(found.signs, found.signs[1:], strict=False)
    both = [(zero, _attracts(*signs)) for zero, signs in zip(found.zeros, flows, strict=True)]
    if box is not None:
        both = [(z, attracts) for z, attracts in both if box[0] <= z.upper and z.lower <= box[1]]
    states = tuple(_state(letter, zero) for zero, _ in both)
    complete, note = _told(rate, letter, found, box)
    return LineStates(states, tuple(attracts for _, attracts in both), complete, note)


def attracts(rate: sp.Expr, letter: sp.Symbol, place: sp.Expr, zeros: Sequence[sp.Expr]) -> bool | None:
    """Whether constant states beside a zero move towards it, where all zeros of a continuous rate are given.

    >>> x = sp.Symbol("x", real=True)
    >>> [attracts(x**2 * (1 - x), x, sp.Integer(k), [sp.S.Zero, sp.S.One]) for k in (0, 1)]
    [False, True]
    """
    below = [z for z in zeros if is_before(z, place)]
    above = [z for z in zeros if is_before(place, z)]
    lower = next((z for z in below if not any(is_before(z, other) for other in below)), -sp.oo)
    upper = next((z for z in above if not any(is_before(other, z) for other in above)), sp.oo)
    sides = (between(lower, place), between(place, upper))
    return _attracts(*(sign_of(rate, {letter: side}) for side in sides))


def _attracts(before: int | None, after: int | None) -> bool | None:
    """Whether constant states on both sides move towards a zero; one side that moves away is enough to say no."""
    if before == -1 or after == 1:
        return False
    return True if before == 1 and after == -1 else None


def _state(letter: sp.Symbol, zero: LineZero) -> SteadyState:
    if zero.value is not None:
        return SteadyState({letter: zero.value})
    middle = sp.Float((zero.lower + zero.upper) / 2, 30)
    return SteadyState({letter: middle}, CERTIFIED, enclosures={letter: (zero.lower, zero.upper)})


def _told(
    rate: sp.Expr, letter: sp.Symbol, found: LineZeros, box: tuple[sp.Rational, sp.Rational] | None
) -> tuple[bool, str]:
    """Whether the states are all, and why."""
    lower, upper = found.reach
    if found.gaps:
        middle = sum(found.gaps[0]) / 2
        where = f"nothing is proved in {len(found.gaps)} short intervals, one of them around {middle:.6g}"
        return False, f"interval arithmetic over [{lower}, {upper}]; {where}"
    within = f"all in the box [{lower}, {upper}] of every field, by interval arithmetic"
    if box is not None:
        return True, within
    if found.beyond:
        return True, "all real ones, by interval arithmetic"
    turn = period(rate, letter)
    return True, within + (f"; the others repeat these with the period {turn}" if turn is not None else "")
