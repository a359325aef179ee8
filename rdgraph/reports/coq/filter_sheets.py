"""M2 and M3 in Coq: symbols, responses, classes of filters, stability of Euler and Runge-Kutta, what a flow reveals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import sympy as sp

from rdgraph.language.tree import Kind
from rdgraph.reports.coq.bound_sheets import speed_function
from rdgraph.reports.coq.coq_text import matrix_text, nonnegative_above, nonnegative_between, real_text
from rdgraph.reports.coq.layer_sheets import PAIR, at, same_systems
from rdgraph.reports.coq.sheets import Library, Theorem, sheet
from rdgraph.reports.coq.theorem_kinds import (
    coq_name,
    real_function,
    real_theorem,
    refuted,
    right_hand_side,
    symbol_function,
    symbol_theorem,
)
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.filters import response, symbol
from rdgraph.vocabulary.methods import Tableau, methods

alpha, beta, lam, tau, T, x, y, z = sp.symbols("alpha beta lam tau T x y z")
_LINEAR = ("diffusion", "BS", "FB", "FB*", "FB-released", "FB*-released")


# ---------------------------------------------------------------------- M2.1
@sheet("M2.1", Library.OPERATORS)
def symbols() -> Iterable[Theorem | str]:
    for name in _LINEAR:
        yield right_hand_side(name)
        yield symbol_theorem(name)
    yield right_hand_side("ST")
    yield Theorem("ST_symbol")


@sheet("M2.1", Library.REALS)
def responses() -> Iterable[Theorem | str]:
    """A frequency's amplitude solves x' = p x, or x' = p x + q x0 with a source; the response is its only solution."""
    for name in _LINEAR:
        scalars = " ".join(catalogue[name].coefficients)
        yield symbol_function(name)
        at_lam = f"{coq_name(name)} {scalars} lam"
        yield Theorem(
            f"response_of_{coq_name(name)}",
            f"forall ({scalars} lam T : R) (x : R -> R), 0 <= T -> "
            f"(forall t, 0 <= t <= T -> is_derive x t ({at_lam} * x t)) -> x T = exp (T * {at_lam}) * x 0",
        )
    rate, constant = (formula.expr for formula in response(catalogue["ST"]).args)
    yield real_function("forced", rate, "alpha", "beta", "lam", "T")
    yield real_function("forced_at_0", constant, "beta", "T")
    yield from map(Theorem, ("response_of_ST", "response_of_ST_at_frequency_0"))


# ---------------------------------------------------------------------- M2.2
_METHODS = {"euler": ("euler", "2", "2"), "rk4": ("rk4", "2.7852", "2.7853"), "dopri5": ("dopri5", "3.3065", "3.3066")}


def step_function(method: Tableau, name: str) -> str:
    """One step of a method on x' = p x + q with step size tau, stage by stage as its tableau says."""
    lines = []
    for number, row in enumerate(method.stages):
        inner = " + ".join(["0", *(f"{real_text(a)} * k{j}" for j, a in enumerate(row) if a != 0)])
        lines.append(f"  let k{number} := p * (x + tau * ({inner})) + q in")
    total = " + ".join(f"{real_text(b)} * k{j}" for j, b in enumerate(method.weights) if b != 0)
    return f"Definition {name}_step (p q tau x : R) : R :=\n" + "\n".join(lines) + f"\n  x + tau * ({total})."


def bounded_where(name: str, reflected: sp.Expr, end: str) -> Theorem:
    """|R(-x)| <= 1 for 0 <= x <= end; `reflected` is R(-x)."""
    bound = sp.Rational(end)
    proofs = []
    for part in (sp.expand(1 + reflected), sp.expand(1 - reflected)):
        signs = textwrap.indent(nonnegative_between(part, x, sp.S.Zero, bound), "  ")
        proofs.append(f"- cut (0 <= {real_text(part)}); [intros; unfold {name}; lra |].\n{signs}")
    return real_theorem(f"{name}_stable", "x", f"0 <= x <= {real_text(bound)}", f"Rabs ({name} (- x)) <= 1",
                        "intros x [lo hi]. apply Rabs_le. split.\n" + "\n".join(proofs))  # fmt: skip


def unbounded_beyond(name: str, reflected: sp.Expr, end: str) -> Theorem:
    """|R(-x)| > 1 for x > end: the excess over 1 is at least (x - end)/10^6."""
    bound = sp.Rational(end)
    grows = sp.Poly(reflected, x).LC() > 0
    excess = sp.expand((reflected if grows else -reflected) - 1 - (x - bound) / 10**6)
    turn = "rewrite Rabs_right by lra" if grows else "rewrite Rabs_left by lra"
    return real_theorem(
        f"{name}_unstable", "x", f"{real_text(bound)} < x", f"1 < Rabs ({name} (- x))",
        f"intros x far. cut (0 <= {real_text(excess)}); [intros; unfold {name} in *; {turn}; lra |].\n"
        f"{nonnegative_above(excess, x, bound)}",
    )  # fmt: skip


@sheet("M2.2", Library.REALS)
def stability_polynomials() -> Iterable[Theorem | str]:
    for name, (method, below, above) in _METHODS.items():
        tableau = methods[method]
        yield real_function(name, tableau.factor(z), "z")
        yield step_function(tableau, name)
        yield real_theorem(f"{name}_polynomial", "p tau x", "", f"{name}_step p 0 tau x = {name} (tau * p) * x")
        yield bounded_where(name, tableau.factor(-x), below)
        yield unbounded_beyond(name, tableau.factor(-x), above)
        yield real_theorem(
            f"{name}_step_with_source", "p q tau x", "p <> 0",
            f"{name}_step p q tau x = {name} (tau * p) * x + ({name} (tau * p) - 1) * (q / p)",
        )  # fmt: skip
        yield Theorem(
            f"{name}_steps_on_ST",
            "forall (alpha beta lam tau x0 : R) (n : nat), alpha * lam <> 0 -> "
            f"Nat.iter n ({name}_step (- alpha * lam) (beta * x0) tau) x0 = "
            f"({name} (tau * (- alpha * lam)) ^ n + beta / (alpha * lam) * (1 - {name} (tau * (- alpha * lam)) ^ n)) * x0",
        )


# ---------------------------------------------------------------------- M2.3
def slope_of(p: sp.Expr) -> sp.Expr:
    """(p(y) - p(x))/(y - x)."""
    return sp.cancel((p.subs(lam, y) - p.subs(lam, x)) / (y - x))


def monotone(name: str, theorem: str, given: str, sign: str, *, ends: str = "0 <= x -> x < y -> y <= 2",
             hint: str = "nra") -> Theorem:  # fmt: skip
    """The gain exp(T p) rises (sign +) or falls (sign -) from frequency x to frequency y."""
    p, word = symbol(catalogue[name]), coq_name(name)
    scalars = " ".join(catalogue[name].coefficients)
    slope = real_text(sp.expand(slope_of(p) if sign == "+" else -slope_of(p)))
    first, second = ("x", "y") if sign == "+" else ("y", "x")
    return Theorem(
        theorem,
        f"forall {scalars} T x y : R, 0 < alpha -> {given} -> 0 < T -> {ends} -> "
        f"exp (T * {word} {scalars} {first}) < exp (T * {word} {scalars} {second})",
        f"""intros {scalars} T x y alpha0; intros. apply exp_increasing, Rmult_lt_compat_l; [assumption |].
assert (slope : 0 < {slope}) by {hint}. assert (step : 0 < (y - x) * {slope}) by (apply Rmult_lt_0_compat; lra).
unfold {word}. lra.""",
    )


@sheet("M2.3", Library.REALS)
def filter_classes() -> Iterable[Theorem | str]:
    """Low-pass: the gain falls on [0, 2]; high-pass: it rises; a band ends where the symbol turns, at c."""
    for name, less, equal, more in (
        ("FB", "beta < alpha", "beta = alpha", "alpha < beta"),
        ("FB*", "beta < alpha", "beta = alpha", "alpha < beta"),
        ("FB-released", "- alpha < beta", "beta = - alpha", "beta < - alpha"),
    ):
        word = coq_name(name)
        yield symbol_function(name)
        yield monotone(name, f"{word}_low_pass", less, "-")
        yield monotone(name, f"{word}_high_pass", more, "+")
        yield real_theorem(f"{word}_all_pass", "alpha beta x y", equal, f"{word} alpha beta x = {word} alpha beta y")
    yield symbol_function("BS")
    yield monotone("BS", "BS_low_pass", "- alpha / 3 <= beta -> beta <= alpha", "-",
                   hint="(destruct (Rle_lt_dec 0 beta); nra)")  # fmt: skip
    turn, below, above = "2 * beta * c = beta - alpha", "0 <= x -> x < y -> y <= c", "c <= x -> x < y -> y <= 2"
    for kind, given, signs in (("band_pass", "alpha < beta", "+-"), ("band_stop", "beta < - alpha / 3", "-+")):
        for part, sign, ends in (("below", signs[0], below), ("above", signs[1], above)):
            theorem = monotone("BS", f"BS_{kind}_{part}_c", f"{given} -> {turn}", sign, ends=ends)
            yield Theorem(theorem.name, theorem.statement.replace("T x y : R", "T c x y : R"),
                          theorem.proof.replace("T x y alpha0", "T c x y alpha0"))  # fmt: skip
    yield Theorem("BS_peak")
    yield real_function("forced", response(catalogue["ST"]).args[0].expr, "alpha", "beta", "lam", "T")
    yield real_function("forced_at_0", response(catalogue["ST"]).args[1].expr, "beta", "T")
    yield from map(Theorem, ("ST_falls", "ST_passes_frequency_0_best"))


@sheet("M2.3-sharpening", Library.REALS)
def sharpening() -> Iterable[Theorem | str]:
    reaction = symbol(parse("beta*(A@H - A@A@H)"))
    yield real_function("reaction", reaction, "beta", "lam")
    yield symbol_function("BS")
    yield from map(Theorem, ("amplifies_low_frequencies", "damps_high_frequencies", "at_frequency_2"))


@sheet("M2.3-continuous", Library.REALS)
def high_frequencies() -> Iterable[Theorem | str]:
    yield symbol_function("GRAND-l")
    rate = response(catalogue["ST"]).args[0].expr
    yield real_function("forced", rate, "alpha", "beta", "lam", "T")
    yield from map(
        Theorem, ("GRAND_loses_every_frequency", "a_source_keeps_half_of_frequency_2", "a_source_keeps_its_share")
    )


# ---------------------------------------------------------------------- M2.4
@sheet("M2.4", Library.REALS)
def euler_stability() -> Iterable[Theorem | str]:
    yield symbol_function("BS")
    yield from map(Theorem, ("euler_stable_iff", "euler_grows_beyond_alpha"))
    tableau = methods["rk4"]
    yield real_function("rk4", tableau.factor(z), "z")
    yield bounded_where("rk4", tableau.factor(-x), "2.7852")
    yield unbounded_beyond("rk4", tableau.factor(-x), "2.7853")
    yield from map(Theorem, ("rk4_stable_below", "rk4_unstable_above"))
    yield from map(Theorem, ("unit_step", "unit_step_at_2", "unit_step_grows_beyond_root_2"))


# ---------------------------------------------------------------------- M3
_GAUGED = ("BS", "F", "AC", "Z", "ST")


@sheet("M3.1", Library.OPERATORS)
def time_gauge() -> Iterable[Theorem | str]:
    """Coefficients times c give c times the right-hand side: the same path, c times as fast."""
    for name in _GAUGED:
        yield right_hand_side(name)
        yield same_systems(f"{coq_name(name)}_faster", at(name, "(c * alpha) (c * beta)"),
                           f"c *: {at(name, 'alpha beta')}", [name], scalars="alpha beta c")  # fmt: skip


@sheet("M3.1", Library.REALS)
def gauge_of_gains() -> Iterable[Theorem | str]:
    yield symbol_function("BS")
    yield from map(Theorem, ("BS_gain_sees_products_with_T", "BS_gain_reveals_both_at_known_T"))
    for name in ("F", "AC", "Z"):
        yield speed_function(name)
        yield Theorem(f"{name}_reveals_both_at_known_T")
    yield Theorem("a_fixed_step_breaks_the_gauge")


@sheet("M3.6", Library.OPERATORS, beyond="that the spectrum of diag(b) L with b >= 0 is real and non-negative")
def channels() -> Iterable[Theorem | str]:
    """Channel coefficients scale columns and act on one channel at a time; they commute with every operator."""
    system = parse("BS", {"alpha": "channel", "beta": "channel"})
    field = matrix_text(system.expression)
    yield right_hand_side("BS")
    yield Theorem(
        "every_channel_has_its_own_scalar_system",
        "forall (R : comRingType) (n d : nat) (A : 'M[R]_n) (H : 'M[R]_(n, d)) (alpha beta : 'rV[R]_d) (j : 'I_d), "
        f"col j ({field}) = BS (alpha 0 j) (beta 0 j) A (col j H)",
    )


@sheet("M3.6", Library.RATIONALS)
def nodes() -> Iterable[Theorem]:
    values: dict[str, object] = {"A": PAIR, "H": [[1], [0]], "b": [[1], [0]]}
    yield refuted("node_coefficients_do_not_commute_with_L", "b*(L@H)", "L@(b*H)", values, b=Kind.NODE)


@sheet("M3.7", Library.REALS)
def reach() -> Iterable[Theorem | str]:
    """A vector beta = -2 amplifies frequency 2; a scalar beta in (0, 1) damps it, for every alpha."""
    yield symbol_function("BS")
    yield from map(
        Theorem, ("a_scalar_beta_damps_frequency_2", "a_vector_beta_amplifies_it", "no_scalar_beta_gives_that_filter")
    )
