"""M4 in Coq: Lipschitz constants, slopes, lifetimes, boxes, and the largest Euler steps that keep them."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import H
from rdgraph.reports.claims.well_posedness import BLOW_UPS, BOXES, CONSTANTS, SLOPES, STEPS, STRETCHED
from rdgraph.reports.coq.coq_text import real_text
from rdgraph.reports.coq.sheets import Library, Theorem, sheet
from rdgraph.reports.coq.theorem_kinds import coq_name, rational_value, real_function, real_theorem, right_hand_side
from rdgraph.systems.catalogue import catalogue
from rdgraph.theory.filters import symbol

alpha, beta, lam, tau, g, h, m, R, T, s, h0 = sp.symbols("alpha beta lam tau g h m R T s h0")


def node_speed(name: str) -> sp.Expr:
    """The speed of a node at h whose weighted mean of neighbours is m: the right-hand side, for any graph."""
    structure = catalogue[name].structure
    own, pull = (structure.generator.get(k, sp.S.Zero) for k in (0, 1))
    return public(sp.expand(own * h + pull * m + structure.reaction.subs(H, h)))


def reaction(name: str) -> sp.Expr:
    """r(h), the speed for alpha = 0 and beta = 1."""
    return sp.expand(node_speed(name).subs({alpha: 0, beta: 1}))


def speed_function(name: str) -> str:
    return real_function(f"speed_{name}", node_speed(name), "alpha", "beta", "h", "m")


# ---------------------------------------------------------------------- M4.1
@sheet("M4.1", Library.REALS,
       beyond="the spectral theorem, which makes the largest |p(lam)| over the spectrum the 2-norm of a symmetric matrix")  # fmt: skip
def linear_constants() -> Iterable[Theorem | str]:
    """The largest |p(lam)| on [0, 2], and where it is reached."""
    for name, constant in CONSTANTS.items():
        word, scalars = coq_name(name), list(catalogue[name].coefficients)
        p = symbol(catalogue[name])
        yield real_function(word, p, *scalars, "lam")
        at, signs = f"{word} {' '.join(scalars)}", "".join(f"0 < {x} -> " for x in scalars)
        variables = f"forall {' '.join(scalars)} : R, {signs}"
        yield Theorem(f"{word}_constant", f"{variables}forall lam, 0 <= lam <= 2 -> Rabs ({at} lam) <= {real_text(constant)}")  # fmt: skip
        ends = f"Rabs ({at} 2) = {real_text(constant)}"
        if name == "FB*":
            ends = f"Rabs ({at} 0) = {real_text(constant)} \\/ Rabs ({at} 2) = {real_text(constant)}"
        yield Theorem(f"{word}_reached", f"{variables}{ends}")


@sheet("M4.1", Library.OPERATORS)
def row_norms() -> Iterable[Theorem | str]:
    """The inf-norm of A, L and A - A^2 for a row-stochastic A: 1, 2, 2."""
    yield from map(Theorem, ("averaging_norm", "laplacian_norm", "sharpening_norm"))


@sheet("M4.1", Library.RATIONALS)
def norms_reached() -> Iterable[Theorem]:
    """On two nodes that see each other, and the state (1, -1)."""
    values = {"A": [[0, 1], [1, 0]], "H": [[1], [-1]]}
    yield rational_value("laplacian_reaches_2", "L@H", values, [[2], [-2]])
    yield rational_value("sharpening_reaches_2", "(A - A@A)@H", values, [[-2], [2]])
    yield rational_value("averaging_reaches_1", "A@H", values, [[-1], [1]])


# ---------------------------------------------------------------------- M4.2
@sheet("M4.2", Library.REALS)
def nonlinear_slopes() -> Iterable[Theorem | str]:
    """r(h) - r(g) = (h - g) slope: the slope is bounded where |g|, |h| <= R, and the bound is a derivative in the box."""
    for name, (local, _, sided) in SLOPES.items():
        r = reaction(name)
        claimed = real_text(local)
        yield real_function(f"reaction_{name}", r, "h")
        yield real_theorem(
            f"{name}_slope", "R g h", "Rabs g <= R -> Rabs h <= R",
            f"Rabs (reaction_{name} h - reaction_{name} g) <= {claimed} * Rabs (h - g)",
        )  # fmt: skip
        derivative = sp.expand(sp.diff(r, h))
        yield real_theorem(f"{name}_derivative", "h", "", f"is_derive reaction_{name} h ({real_text(derivative)})")
        yield real_function(f"derivative_{name}", derivative, "h")
        where = f"exists h, Rabs h <= R /\\ Rabs (derivative_{name} h) = {claimed}"
        yield real_theorem(f"{name}_slope_is_sharp", "R", "0 <= R", where)
        if sided is not None:
            yield real_theorem(
                f"{name}_one_sided", "g h", "",
                f"(reaction_{name} h - reaction_{name} g) * (h - g) <= {real_text(sided)} * (h - g) ^ 2",
            )  # fmt: skip
    yield Theorem("F_has_no_one_sided_constant")


# ---------------------------------------------------------------------- M4.3
@sheet("M4.3", Library.SOLUTIONS,
       beyond="that a solution exists until the time of its blow-up (continuation of solutions)")  # fmt: skip
def blow_up() -> Iterable[Theorem | str]:
    """Along a solution the time to blow-up falls at speed 1 and stays positive, so the solution ends before it is 0."""
    for name in ("F", "AC", "Z"):
        yield real_function(f"rate_{name}", public(sp.expand(beta * reaction(name))), "beta", "h")
    yield from map(Theorem, ("AC_never_blows_up", "Z_never_blows_up"))
    for number, (name, sign, condition, formula) in enumerate(BLOW_UPS, start=1):
        yield real_function(f"lifetime_{number}", formula.subs(h0, h), "beta", "h")
        relation = f"{'<' if isinstance(condition, sp.Lt) else '>'} {real_text(condition.args[1])}"
        yield Theorem(
            f"{name}_{sign}_blows_up_{number}",
            f"forall (beta T : R) (x : R -> R), {'0 < beta' if sign == 'positive' else 'beta < 0'} -> 0 <= T -> "
            f"(forall t, 0 <= t <= T -> is_derive x t (rate_{name} beta (x t))) -> "
            f"(forall t, 0 <= t <= T -> x t {relation}) -> "
            f"lifetime_{number} beta (x T) = lifetime_{number} beta (x 0) - T /\\ T < lifetime_{number} beta (x 0)",
        )


# ---------------------------------------------------------------------- M4.5
def _faces(name: str, low: str, high: str) -> Iterable[Theorem]:
    yield real_theorem(
        f"{name}_points_inwards", "alpha beta m", f"0 <= alpha -> {low} <= m <= {high}",
        f"0 <= speed_{name} alpha beta {low} m /\\ speed_{name} alpha beta {high} m <= 0",
    )  # fmt: skip
    yield Theorem(
        f"{name}_keeps_its_faces",
        "forall (alpha beta : R) (n : nat) (w : nat -> nat -> R) (h : nat -> R), 0 <= alpha -> "
        "(forall i, (i < n)%nat -> stochastic n (w i)) -> "
        f"(forall j, (j < n)%nat -> {low} <= h j <= {high}) -> forall i, (i < n)%nat -> "
        f"let speed := speed_{name} alpha beta (h i) (total n (fun j => w i j * h j)) in "
        f"(h i = {low} -> 0 <= speed) /\\ (h i = {high} -> speed <= 0)",
    )


@sheet("M4.5", Library.REALS,
       beyond="Nagumo's theorem: a box whose faces the field does not cross outwards is invariant")  # fmt: skip
def boxes() -> Iterable[Theorem | str]:
    """On a face of the box the field does not point outwards, for every graph, row-stochastic weights and any beta."""
    for name, (low, high) in BOXES.items():
        yield speed_function(name)
        yield from _faces(name, f"({low})" if low < 0 else str(low), str(high))


#: A hub and four leaves, normalised symmetrically: entries 1/2.
_STAR: list[list[object]] = [[0, *[sp.Rational(1, 2)] * 4], *[[sp.Rational(1, 2), 0, 0, 0, 0]] * 4]


@sheet("M4.5", Library.RATIONALS)
def boxes_on_a_star() -> Iterable[Theorem]:
    """With the symmetric A, all entries 1: the hub leaves the box at speed 1 = alpha (s - 1)."""
    values = {"A": _STAR, "H": [[1]] * 5, "alpha": 1, "beta": 1}
    expected = [[1], *[[sp.Rational(-1, 2)]] * 4]
    for name in ("F", "Z", "AC"):
        yield rational_value(f"{name}_leaves_its_box", catalogue[name].expression, values, expected)


@sheet("M4.5-symmetric", Library.REALS,
       beyond="Nagumo's theorem: a box whose faces the field does not cross outwards is invariant")  # fmt: skip
def stretched_boxes() -> Iterable[Theorem | str]:
    """With non-negative weights of sum at most s, and K the claimed end, the field points inwards at K."""
    for name, end in STRETCHED.items():
        yield speed_function(name)
        yield real_function(f"end_{name}", end, "alpha", "beta", "s")
        low = "- K <= m" if name == "AC" else "0 <= m"
        bottom = f"0 <= speed_{name} alpha beta {'(- K)' if name == 'AC' else '0'} m"
        yield real_theorem(
            f"{name}_points_inwards_at_K", "alpha beta s m K",
            f"0 < alpha -> 0 < beta -> 1 <= s -> K = end_{name} alpha beta s -> {low.replace('K', 's * K')} -> m <= s * K",
            f"{bottom} /\\ speed_{name} alpha beta K m <= 0",
        )  # fmt: skip


#: A path of three nodes, row-stochastic: its ends are two steps apart.
_PATH: list[list[object]] = [[0, 1, 0], [sp.Rational(1, 2), 0, sp.Rational(1, 2)], [0, 1, 0]]


@sheet("M4.5-symmetric", Library.RATIONALS)
def no_maximum_principle() -> Iterable[Theorem]:
    """BS: a state that is 0 but for one end of a path falls below 0 at the other end."""
    values = {"A": _PATH, "H": [[0], [0], [1]], "alpha": 1, "beta": 1}
    half = sp.Rational(1, 2)
    yield rational_value(
        "BS_leaves_the_positive_states", catalogue["BS"].expression, values, [[-half], [1], [-3 * half]]
    )


# ---------------------------------------------------------------------- M4.6
@sheet("M4.6", Library.REALS)
def euler_steps() -> Iterable[Theorem | str]:
    """One Euler step of every node stays in the box up to the limit, and beyond it one node leaves."""
    for name, (low, high) in BOXES.items():
        yield speed_function(name)
        ends = f"({low})" if low < 0 else str(low), str(high)
        for sign in ("positive", "negative"):
            above, below = sp.fraction(sp.together(STEPS[name, sign]))
            given = "0 < beta" if sign == "positive" else "beta < 0"
            limit = f"tau * {real_text(below)} <= {real_text(above)}"
            beyond = f"{real_text(above)} < tau * {real_text(below)}"
            step = f"h + tau * speed_{name} alpha beta h m"
            yield real_theorem(
                f"{name}_{sign}_kept", "alpha beta tau h m",
                f"0 < alpha -> {given} -> 0 < tau -> {limit} -> {ends[0]} <= h <= {ends[1]} -> {ends[0]} <= m <= {ends[1]}",
                f"{ends[0]} <= {step} <= {ends[1]}",
            )  # fmt: skip
            yield Theorem(
                f"{name}_{sign}_kept_on_graphs",
                "forall (alpha beta tau : R) (n : nat) (w : nat -> nat -> R) (h : nat -> R), "
                f"0 < alpha -> {given} -> 0 < tau -> {limit} -> (forall i, (i < n)%nat -> stochastic n (w i)) -> "
                f"(forall j, (j < n)%nat -> {ends[0]} <= h j <= {ends[1]}) -> forall i, (i < n)%nat -> "
                f"{ends[0]} <= h i + tau * speed_{name} alpha beta (h i) (total n (fun j => w i j * h j)) <= {ends[1]}",
            )
            yield real_theorem(
                f"{name}_{sign}_left_beyond", "alpha beta tau", f"0 < alpha -> {given} -> 0 < tau -> {beyond}",
                f"exists h m, {ends[0]} <= h <= {ends[1]} /\\ {ends[0]} <= m <= {ends[1]} /\\ "
                f"({step} < {ends[0]} \\/ {ends[1]} < {step})",
            )  # fmt: skip


# ---------------------------------------------------------------------- M4.7
@sheet("M4.7", Library.REALS)
def attention() -> Iterable[Theorem | str]:
    """A node x that attends to neighbours a and b with logits w x a and w x b."""
    x, a, b, w = sp.symbols("x a b w")
    first, second = sp.exp(w * x * a), sp.exp(w * x * b)
    yield real_function("attended", (a * first + b * second) / (first + second), "w", "a", "b", "x")
    yield from map(Theorem, ("no_global_constant", "output_stays_between"))


@sheet("M4.7", Library.OPERATORS)
def frozen_attention() -> Iterable[Theorem | str]:
    """Computed once and kept, attention is a row-stochastic A, and the right-hand side has a constant."""
    yield right_hand_side("GRAND-l")
    yield right_hand_side("BS")
    yield from map(Theorem, ("frozen_attention_has_a_constant", "frozen_attention_of_BS_has_a_constant"))
