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
    symbol_theorem,
)
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.filters import response, symbol
from rdgraph.vocabulary.methods import Tableau, methods

alpha, beta, lam, tau, T, x, y, z = sp.symbols("alpha beta lam tau T x y z")
_LINEAR = ("diffusion", "BS", "FB", "FB*", "FB-released", "FB*-released")


def symbol_function(name: str) -> str:
    """A system's symbol as a definition over the reals."""
    return real_function(coq_name(name), symbol(catalogue[name]), *catalogue[name].coefficients, "lam")


# ---------------------------------------------------------------------- M2.1
@sheet("M2.1", Library.OPERATORS)
def symbols() -> Iterable[Theorem | str]:
    for name in _LINEAR:
        yield right_hand_side(name)
        yield symbol_theorem(name, symbol(catalogue[name]))
    yield right_hand_side("ST")
    yield Theorem(
        "ST_symbol",
        "forall (R : comRingType) (n d : nat) (A : 'M[R]_n) (H H0 : 'M[R]_(n, d)) (alpha beta lam : R), "
        f"laplacian A *m H = lam *: H -> {at('ST', 'alpha beta')} = (- alpha * lam) *: H + beta *: H0",
        "move=> R n d A H H0 alpha beta lam eigen.\n"
        "have known : A *m H = H - lam *: H by rewrite -eigen; operators.\n"
        "rewrite /ST; operators_by known.",
    )


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
            "intros. apply linear_flow; assumption.",
        )
    rate, constant = (formula.expr for formula in response(catalogue["ST"]).args)
    yield real_function("forced", rate, "alpha", "beta", "lam", "T")
    yield real_function("forced_at_0", constant, "beta", "T")
    equation = "(forall t, 0 <= t <= T -> is_derive x t (- alpha * lam * x t + beta * x 0))"
    yield Theorem(
        "response_of_ST",
        f"forall (alpha beta lam T : R) (x : R -> R), alpha * lam <> 0 -> 0 <= T -> {equation} -> "
        "x T = forced alpha beta lam T * x 0",
        """intros alpha beta lam T x nz T0 D.
assert (alpha <> 0) by (intros e; apply nz; rewrite e; ring).
assert (lam <> 0) by (intros e; apply nz; rewrite e; ring).
rewrite (forced_flow x (- alpha * lam) (beta * x 0) T T0 ltac:(lra) D). unfold forced.
replace (- T * alpha * lam) with (T * (- alpha * lam)) by ring. field. split; assumption.""",
    )
    yield Theorem(
        "response_of_ST_at_frequency_0",
        "forall (alpha beta T : R) (x : R -> R), 0 <= T -> "
        "(forall t, 0 <= t <= T -> is_derive x t (beta * x 0)) -> x T = forced_at_0 beta T * x 0",
        """intros alpha beta T x T0 D. unfold forced_at_0. rewrite (steady_growth x (beta * x 0) T T0 D). ring.""",
    )


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
        yield real_theorem(f"{name}_polynomial", "p tau x", "", f"{name}_step p 0 tau x = {name} (tau * p) * x",
                           f"intros. unfold {name}_step, {name}. field.")  # fmt: skip
        yield bounded_where(name, tableau.factor(-x), below)
        yield unbounded_beyond(name, tableau.factor(-x), above)
        yield real_theorem(
            f"{name}_step_with_source", "p q tau x", "p <> 0",
            f"{name}_step p q tau x = {name} (tau * p) * x + ({name} (tau * p) - 1) * (q / p)",
            f"intros. unfold {name}_step, {name}. field. assumption.",
        )  # fmt: skip
        yield Theorem(
            f"{name}_steps_on_ST",
            "forall (alpha beta lam tau x0 : R) (n : nat), alpha * lam <> 0 -> "
            f"Nat.iter n ({name}_step (- alpha * lam) (beta * x0) tau) x0 = "
            f"({name} (tau * (- alpha * lam)) ^ n + beta / (alpha * lam) * (1 - {name} (tau * (- alpha * lam)) ^ n)) * x0",
            f"""intros alpha beta lam tau x0 n nz. assert (nz' : - alpha * lam <> 0) by lra.
assert (alpha <> 0) by (intros e; apply nz; rewrite e; ring).
assert (lam <> 0) by (intros e; apply nz; rewrite e; ring).
induction n as [| n IH]; [simpl; field; repeat split; assumption |].
change (Nat.iter (S n) ?f ?s) with (f (Nat.iter n f s)). rewrite IH, {name}_step_with_source by exact nz'.
set (r := {name} (tau * (- alpha * lam))). simpl pow. field. repeat split; assumption.""",
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
        yield real_theorem(f"{word}_all_pass", "alpha beta x y", equal, f"{word} alpha beta x = {word} alpha beta y",
                           f"intros. unfold {word}. nra.")  # fmt: skip
    yield symbol_function("BS")
    yield monotone("BS", "BS_low_pass", "- alpha / 3 <= beta -> beta <= alpha", "-",
                   hint="(destruct (Rle_lt_dec 0 beta); nra)")  # fmt: skip
    turn, below, above = "2 * beta * c = beta - alpha", "0 <= x -> x < y -> y <= c", "c <= x -> x < y -> y <= 2"
    for kind, given, signs in (("band_pass", "alpha < beta", "+-"), ("band_stop", "beta < - alpha / 3", "-+")):
        for part, sign, ends in (("below", signs[0], below), ("above", signs[1], above)):
            theorem = monotone("BS", f"BS_{kind}_{part}_c", f"{given} -> {turn}", sign, ends=ends)
            yield Theorem(theorem.name, theorem.statement.replace("T x y : R", "T c x y : R"),
                          theorem.proof.replace("T x y alpha0", "T c x y alpha0"))  # fmt: skip
    yield real_theorem(
        "BS_peak", "alpha beta lam", "0 < beta", "BS alpha beta lam <= (beta - alpha) ^ 2 / (4 * beta)",
        """intros alpha beta lam b0. unfold BS.
replace ((beta - alpha) ^ 2 / (4 * beta))
  with (- beta * (lam ^ 2) + lam * (- alpha + beta) + beta * (lam - (beta - alpha) / (2 * beta)) ^ 2) by (field; lra).
pose proof (pow2_ge_0 (lam - (beta - alpha) / (2 * beta))). nra.""",
    )  # fmt: skip
    yield real_function("forced", response(catalogue["ST"]).args[0].expr, "alpha", "beta", "lam", "T")
    yield real_function("forced_at_0", response(catalogue["ST"]).args[1].expr, "beta", "T")
    yield real_theorem(
        "ST_falls", "alpha beta T x y", "0 < alpha -> 0 <= beta -> 0 < T -> 0 < x -> x < y",
        "forced alpha beta y T < forced alpha beta x T",
        f"""intros alpha beta T x y a0 b0 T0 x0 xy. {_AS_MEAN}
assert (0 < T * alpha) by nra. assert (lo : 0 < T * alpha * x) by nra.
assert (step : T * alpha * x < T * alpha * y) by nra. pose proof (mean_decay_falls _ _ lo step).
assert (exp (- (T * alpha * y)) < exp (- (T * alpha * x))) by (apply exp_increasing; lra).
rewrite 2 F by lra. assert (0 <= beta * T) by nra. nra.""",
    )  # fmt: skip
    yield real_theorem(
        "ST_passes_frequency_0_best", "alpha beta T y", "0 < alpha -> 0 <= beta -> 0 < T -> 0 < y",
        "forced alpha beta y T < forced_at_0 beta T",
        f"""intros alpha beta T y a0 b0 T0 y0. {_AS_MEAN}
assert (0 < T * alpha * y) by (repeat apply Rmult_lt_0_compat; assumption).
assert (exp (- (T * alpha * y)) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
pose proof (mean_decay_below_1 (T * alpha * y) ltac:(lra)). rewrite F by lra. unfold forced_at_0.
assert (0 <= beta * T) by nra. nra.""",
    )  # fmt: skip


#: The gain with a source as a decay and a mean of decays.
_AS_MEAN = """assert (F : forall u, 0 < u ->
  forced alpha beta u T = exp (- (T * alpha * u)) + beta * T * mean_decay (T * alpha * u)).
{ intros u u0. unfold forced, mean_decay. replace (- T * alpha * u) with (- (T * alpha * u)) by ring. field. lra. }"""


@sheet("M2.3-sharpening", Library.REALS)
def sharpening() -> Iterable[Theorem | str]:
    reaction = symbol(parse("beta*(A@H - A@A@H)"))
    yield real_function("reaction", reaction, "beta", "lam")
    yield symbol_function("BS")
    gain = "exp (T * reaction beta {})".format
    yield real_theorem("amplifies_low_frequencies", "beta T lam", "0 < beta -> 0 < T -> 0 < lam < 1", f"1 < {gain('lam')}",
                       "intros. rewrite <- exp_0 at 1. apply exp_increasing, Rmult_lt_0_compat; [assumption |].\n"
                       "replace (reaction beta lam) with (beta * (lam * (1 - lam))) by (unfold reaction; ring).\n"
                       "apply Rmult_lt_0_compat; [assumption | apply Rmult_lt_0_compat; lra].")  # fmt: skip
    yield real_theorem("damps_high_frequencies", "beta T lam", "0 < beta -> 0 < T -> 1 < lam", f"{gain('lam')} < 1",
                       "intros. rewrite <- exp_0 at 1. apply exp_increasing.\n"
                       "assert (0 < T * (beta * (lam * (lam - 1)))) by (repeat apply Rmult_lt_0_compat; lra).\n"
                       "unfold reaction. lra.")  # fmt: skip
    yield real_theorem("at_frequency_2", "beta T", "", f"{gain('2')} = exp (- 2 * beta * T)",
                       "intros. f_equal. unfold reaction. ring.")  # fmt: skip


@sheet("M2.3-continuous", Library.REALS)
def high_frequencies() -> Iterable[Theorem | str]:
    yield symbol_function("GRAND-l")
    rate = response(catalogue["ST"]).args[0].expr
    yield real_function("forced", rate, "alpha", "beta", "lam", "T")
    yield real_theorem(
        "GRAND_loses_every_frequency", "lam e", "0 < lam -> 0 < e", "exists T, 0 < T /\\ exp (T * GRAND_l lam) < e",
        """intros lam e l0 e0. exists (/ (e * lam)). assert (0 < e * lam) by nra. split; [apply Rinv_0_lt_compat; assumption |].
unfold GRAND_l. replace (/ (e * lam) * - lam) with (- / e) by (field; lra).
rewrite exp_Ropp. pose proof (exp_ineq1 (/ e) ltac:(apply Rinv_neq_0_compat; lra)) as P.
assert (0 < / e) by (apply Rinv_0_lt_compat; lra). rewrite <- (Rinv_inv e) at 2.
apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; [assumption | apply exp_pos] | lra].""",
    )  # fmt: skip
    yield real_theorem("a_source_keeps_half_of_frequency_2", "T", "", "1 / 2 <= forced 1 1 2 T",
                       "intros. unfold forced. pose proof (exp_pos (- T * 1 * 2)) as P. set (decay := exp _) in *.\n"
                       "match goal with |- _ <= ?f => replace f with (1 / 2 + decay / 2) by field end. lra.")  # fmt: skip
    yield real_theorem(
        "a_source_keeps_its_share", "alpha beta lam T", "0 < alpha -> 0 < lam -> 0 < beta -> beta <= alpha * lam",
        "beta / (alpha * lam) <= forced alpha beta lam T",
        """intros alpha beta lam T a0 l0 b0 small. unfold forced. pose proof (exp_pos (- T * alpha * lam)) as P.
set (decay := exp _) in *. assert (0 < alpha * lam) by nra.
match goal with |- _ <= ?f => replace f with (beta / (alpha * lam) + decay * (alpha * lam - beta) / (alpha * lam))
  by (field; lra) end.
assert (0 <= decay * (alpha * lam - beta) / (alpha * lam)); [| lra].
apply Rmult_le_pos; [apply Rmult_le_pos; lra | apply Rlt_le, Rinv_0_lt_compat; assumption].""",
    )  # fmt: skip


# ---------------------------------------------------------------------- M2.4
@sheet("M2.4", Library.REALS)
def euler_stability() -> Iterable[Theorem | str]:
    yield symbol_function("BS")
    everywhere = "forall lam, 0 <= lam <= 2 -> Rabs (1 + tau * BS alpha beta lam) <= 1"
    yield real_theorem(
        "euler_stable_iff", "alpha beta tau", "0 < alpha -> 0 < beta -> 0 < tau",
        f"(({everywhere}) <-> beta <= alpha /\\ tau * (alpha + beta) <= 1)",
        """intros alpha beta tau a0 b0 t0. split.
- intros stable. split.
  + destruct (Rle_lt_dec beta alpha) as [ok | no]; [exact ok | exfalso].
    set (c := (beta - alpha) / (2 * beta)). assert (at_c : 2 * beta * c = beta - alpha) by (unfold c; field; lra).
    assert (0 < c) by (unfold c; apply Rdiv_lt_0_compat; lra). clearbody c. assert (c <= 2) by nra.
    pose proof (Rle_trans _ _ _ (Rle_abs _) (stable c ltac:(lra))) as P.
    assert (growth : BS alpha beta c = beta * c * c) by (unfold BS; replace (- alpha + beta) with (2 * beta * c) by lra; ring).
    assert (0 < tau * (beta * c * c)) by (repeat apply Rmult_lt_0_compat; assumption). rewrite growth in P. lra.
  + pose proof (stable 2 ltac:(lra)) as P. apply Rabs_le_between in P. unfold BS in P. lra.
- intros [ba short] lam [lo hi].
  assert (neg : 0 <= - BS alpha beta lam).
  { replace (- BS alpha beta lam) with (lam * (beta * lam + (alpha - beta))) by (unfold BS; ring).
    apply Rmult_le_pos; [lra |]. assert (0 <= beta * lam) by nra. lra. }
  assert (top : 0 <= BS alpha beta lam + 2 * (alpha + beta)).
  { replace (BS alpha beta lam + 2 * (alpha + beta)) with ((2 - lam) * (beta * lam + (alpha + beta))) by (unfold BS; ring).
    apply Rmult_le_pos; [lra |]. assert (0 <= beta * lam) by nra. lra. }
  assert (0 <= tau * - BS alpha beta lam) by (apply Rmult_le_pos; lra).
  assert (0 <= tau * (BS alpha beta lam + 2 * (alpha + beta))) by (apply Rmult_le_pos; lra).
  apply Rabs_le. lra.""",
    )  # fmt: skip
    yield real_theorem("euler_grows_beyond_alpha", "alpha beta tau c", "0 < tau -> 0 < beta -> 0 < c -> 2 * beta * c = beta - alpha",
                       "1 < 1 + tau * BS alpha beta c",
                       "intros alpha beta tau c t0 b0 c0 at_c. unfold BS. replace (- alpha + beta) with (2 * beta * c) by lra.\n"
                       "assert (0 < tau * (beta * (c * c))) by (repeat apply Rmult_lt_0_compat; assumption). lra.")  # fmt: skip
    tableau = methods["rk4"]
    yield real_function("rk4", tableau.factor(z), "z")
    yield bounded_where("rk4", tableau.factor(-x), "2.7852")
    yield unbounded_beyond("rk4", tableau.factor(-x), "2.7853")
    yield real_theorem(
        "rk4_stable_below", "alpha beta tau lam",
        "0 < alpha -> 0 < beta <= alpha -> 0 < tau -> 2 * tau * (alpha + beta) <= 6963 / 2500 -> 0 <= lam <= 2",
        "Rabs (rk4 (tau * BS alpha beta lam)) <= 1",
        """intros alpha beta tau lam a0 [b0 ba] t0 short [lo hi].
replace (tau * BS alpha beta lam) with (- (tau * (lam * (beta * lam + (alpha - beta))))) by (unfold BS; ring).
apply rk4_stable.
assert (0 <= beta * lam) by nra. split.
- apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra].
- assert (0 <= tau * ((2 - lam) * (beta * lam + (alpha + beta)))) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]).
  lra.""",
    )  # fmt: skip
    yield real_theorem("rk4_unstable_above", "alpha beta tau", "27853 / 10000 < 2 * tau * (alpha + beta)",
                       "1 < Rabs (rk4 (tau * BS alpha beta 2))",
                       "intros. replace (tau * BS alpha beta 2) with (- (2 * tau * (alpha + beta))) by (unfold BS; ring).\n"
                       "apply rk4_unstable. lra.")  # fmt: skip
    yield real_theorem("unit_step", "lam", "", "1 + 1 * BS 1 1 lam = 1 - lam ^ 2", "intros. unfold BS. ring.")
    yield real_theorem("unit_step_at_2", "", "", "1 + 1 * BS 1 1 2 = - 3", "unfold BS. ring.")
    yield real_theorem(
        "unit_step_grows_beyond_root_2", "lam", "0 <= lam -> sqrt 2 < lam", "1 < Rabs (1 + 1 * BS 1 1 lam)",
        """intros lam lo far. rewrite unit_step. pose proof (sqrt_sqrt 2 ltac:(lra)). pose proof (sqrt_lt_R0 2 ltac:(lra)).
assert (2 < lam * lam) by nra. rewrite Rabs_left; lra.""",
    )  # fmt: skip


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
    yield real_theorem("BS_gain_sees_products_with_T", "alpha beta lam T c", "c <> 0",
                       "exp (T / c * BS (c * alpha) (c * beta) lam) = exp (T * BS alpha beta lam)",
                       "intros. f_equal. unfold BS. field. assumption.")  # fmt: skip
    yield Theorem(
        "BS_gain_reveals_both_at_known_T",
        "forall alpha beta alpha' beta' T : R, 0 < T -> "
        "(forall lam, 0 <= lam <= 2 -> exp (T * BS alpha beta lam) = exp (T * BS alpha' beta' lam)) -> "
        "alpha = alpha' /\\ beta = beta'",
        """intros alpha beta alpha' beta' T T0 same.
assert (one := exp_inv _ _ (same 1 ltac:(lra))). assert (two := exp_inv _ _ (same 2 ltac:(lra))).
apply Rmult_eq_reg_l in one; [| lra]. apply Rmult_eq_reg_l in two; [| lra]. unfold BS in *. lra.""",
    )
    for name in ("F", "AC", "Z"):
        yield speed_function(name)
        yield Theorem(
            f"{name}_reveals_both_at_known_T",
            "forall alpha beta alpha' beta' : R, "
            f"(forall h m, speed_{name} alpha beta h m = speed_{name} alpha' beta' h m) -> alpha = alpha' /\\ beta = beta'",
            f"intros alpha beta alpha' beta' same. pose proof (same 0 1). pose proof (same (1 / 2) (1 / 2)).\n"
            f"unfold speed_{name} in *. split; lra.",
        )
    yield real_theorem("a_fixed_step_breaks_the_gauge", "alpha beta lam tau", "tau * BS alpha beta lam <> 0",
                       "(1 + tau * BS alpha beta lam) ^ 2 <> 1 + tau * BS (2 * alpha) (2 * beta) lam",
                       "intros alpha beta lam tau nz E. replace (BS (2 * alpha) (2 * beta) lam) with (2 * BS alpha beta lam) in E\n"
                       "  by (unfold BS; ring). apply nz. apply (Rsqr_0_uniq). unfold Rsqr. lra.")  # fmt: skip


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
        """intros. rewrite col_add !col_diag_product ?col_sub !col_product [(- alpha) 0 j]mxE /BS.
move: (alpha 0 j) (beta 0 j) (col j H) => a b X; operators.""",
    )


@sheet("M3.6", Library.RATIONALS)
def nodes() -> Iterable[Theorem]:
    values: dict[str, object] = {"A": PAIR, "H": [[1], [0]], "b": [[1], [0]]}
    yield refuted("node_coefficients_do_not_commute_with_L", "b*(L@H)", "L@(b*H)", values, b=Kind.NODE)


@sheet("M3.7", Library.REALS)
def reach() -> Iterable[Theorem | str]:
    """A vector beta = -2 amplifies frequency 2; a scalar beta in (0, 1) damps it, for every alpha."""
    yield symbol_function("BS")
    yield real_theorem("a_scalar_beta_damps_frequency_2", "alpha beta T",
                       "0 < alpha < 1 -> 0 < beta < 1 -> 0 < T", "exp (T * BS alpha beta 2) < 1",
                       "intros. rewrite <- exp_0 at 1. apply exp_increasing.\n"
                       "assert (0 < T * (alpha + beta)) by (apply Rmult_lt_0_compat; lra). unfold BS. lra.")  # fmt: skip
    yield real_theorem("a_vector_beta_amplifies_it", "T", "0 < T", "1 < exp (T * BS (1 / 4) (- 2) 2)",
                       "intros. rewrite <- exp_0 at 1. apply exp_increasing. unfold BS. nra.")  # fmt: skip
    yield Theorem(
        "no_scalar_beta_gives_that_filter",
        "forall alpha beta T T' : R, 0 < alpha < 1 -> 0 < beta < 1 -> 0 < T -> 0 < T' -> "
        "exp (T * BS alpha beta 2) <> exp (T' * BS (1 / 4) (- 2) 2)",
        """intros alpha beta T T' a b t t'. pose proof (a_scalar_beta_damps_frequency_2 alpha beta T a b t).
pose proof (a_vector_beta_amplifies_it T' t'). lra.""",
    )
