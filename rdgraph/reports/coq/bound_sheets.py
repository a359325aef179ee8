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
_AT_MOST = {
    "diffusion": "rewrite Rabs_left1; nra",
    "ST": "rewrite Rabs_left1; nra",
    "BS": """apply Rabs_le.
assert (0 <= beta * lam) by nra. assert (0 <= beta * (lam * (2 - lam))) by (apply Rmult_le_pos; [lra | nra]). nra""",
    "FB": """replace (lam * (- alpha + beta)) with ((beta - alpha) * lam) by ring.
rewrite Rabs_mult, (Rabs_right lam) by lra. pose proof (Rabs_pos (alpha + - beta)).
replace (beta - alpha) with (- (alpha + - beta)) by ring. rewrite Rabs_Ropp. nra""",
    "FB*": """pose proof (Rmax_l beta (Rabs (2 * alpha + - 3 * beta))). pose proof (Rmax_r beta (Rabs (2 * alpha + - 3 * beta))) as W.
set (most := Rmax _ _) in *. assert (N : Rabs (2 * alpha + - 3 * beta) <= most) by exact W.
apply Rabs_le_between in N. apply Rabs_le. nra""",
}


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
        yield Theorem(f"{word}_constant", f"{variables}forall lam, 0 <= lam <= 2 -> Rabs ({at} lam) <= {real_text(constant)}",
                      f"intros {' '.join(scalars)}; intros. unfold {word}.\n{_AT_MOST[name]}.")  # fmt: skip
        ends = f"Rabs ({at} 2) = {real_text(constant)}"
        proof = "rewrite Rabs_left1; nra."
        if name == "FB":
            proof = (
                "replace (2 * (- alpha + beta)) with (- (2 * (alpha + - beta))) by ring.\n"
                "rewrite Rabs_Ropp, Rabs_mult, (Rabs_right 2) by lra. reflexivity."
            )
        if name == "FB*":
            ends = f"Rabs ({at} 0) = {real_text(constant)} \\/ Rabs ({at} 2) = {real_text(constant)}"
            proof = (
                "replace (beta + 0 * (- alpha + beta)) with beta by ring.\n"
                "replace (beta + 2 * (- alpha + beta)) with (- (2 * alpha + - 3 * beta)) by ring.\n"
                "rewrite Rabs_Ropp, (Rabs_right beta) by lra. unfold Rmax. destruct Rle_dec; [right | left]; reflexivity."
            )
        yield Theorem(
            f"{word}_reached", f"{variables}{ends}", f"intros {' '.join(scalars)}; intros. unfold {word}.\n{proof}"
        )


@sheet("M4.1", Library.OPERATORS)
def row_norms() -> Iterable[Theorem | str]:
    """The inf-norm of A, L and A - A^2 for a row-stochastic A: 1, 2, 2."""
    space = (
        "forall (R : realFieldType) (n : nat) (A : 'M[R]_n) (h : 'cV[R]_n) (c : R), row_stochastic A -> within h c -> "
    )
    yield Theorem("averaging_norm", f"{space}within (A *m h) c", "move=> R n A h c rows bound. exact: average_within.")
    yield Theorem(
        "laplacian_norm", f"{space}within (laplacian A *m h) (c + c)",
        "move=> R n A h c rows bound. rewrite /laplacian mulmxBl mul1mx.\n"
        "by apply: difference_within => //; apply: average_within.",
    )  # fmt: skip
    yield Theorem(
        "sharpening_norm", f"{space}within ((A - A *m A) *m h) (c + c)",
        "move=> R n A h c rows bound. rewrite mulmxBl -mulmxA.\n"
        "by apply: difference_within; do ?apply: average_within.",
    )  # fmt: skip


@sheet("M4.1", Library.RATIONALS)
def norms_reached() -> Iterable[Theorem]:
    """On two nodes that see each other, and the state (1, -1)."""
    values = {"A": [[0, 1], [1, 0]], "H": [[1], [-1]]}
    yield rational_value("laplacian_reaches_2", "L@H", values, [[2], [-2]])
    yield rational_value("sharpening_reaches_2", "(A - A@A)@H", values, [[-2], [2]])
    yield rational_value("averaging_reaches_1", "A@H", values, [[-1], [1]])


# ---------------------------------------------------------------------- M4.2
_SLOPE_PROOFS = {
    "F": "apply Rabs_le; lra",
    "AC": "pose proof (Rmax_l 1 (3 * (R ^ 2) + (- 1))); pose proof (Rmax_r 1 (3 * (R ^ 2) + (- 1))); "
    "set (most := Rmax _ _) in *; apply Rabs_le; nra",
    "Z": "apply Rabs_le; nra",
}


@sheet("M4.2", Library.REALS)
def nonlinear_slopes() -> Iterable[Theorem | str]:
    """r(h) - r(g) = (h - g) slope: the slope is bounded where |g|, |h| <= R, and the bound is a derivative in the box."""
    for name, (local, _, sided) in SLOPES.items():
        r = reaction(name)
        slope = sp.expand(sp.cancel((r - r.subs(h, g)) / (h - g)))
        claimed = real_text(local)
        yield real_function(f"reaction_{name}", r, "h")
        yield real_theorem(
            f"{name}_slope", "R g h", "Rabs g <= R -> Rabs h <= R",
            f"Rabs (reaction_{name} h - reaction_{name} g) <= {claimed} * Rabs (h - g)",
            f"""intros R g h bg bh. apply Rabs_le_between in bg. apply Rabs_le_between in bh.
replace (reaction_{name} h - reaction_{name} g) with ({real_text(slope)} * (h - g)) by (unfold reaction_{name}; ring).
rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos |]. {_SLOPE_PROOFS[name]}.""",
        )  # fmt: skip
        derivative = sp.expand(sp.diff(r, h))
        yield real_theorem(f"{name}_derivative", "h", "", f"is_derive reaction_{name} h ({real_text(derivative)})",
                           f"intros. unfold reaction_{name}. auto_derive; [exact I | ring].")  # fmt: skip
        yield real_function(f"derivative_{name}", derivative, "h")
        where = f"exists h, Rabs h <= R /\\ Rabs (derivative_{name} h) = {claimed}"
        yield real_theorem(f"{name}_slope_is_sharp", "R", "0 <= R", where, _SHARP[name])
        if sided is not None:
            yield real_theorem(
                f"{name}_one_sided", "g h", "",
                f"(reaction_{name} h - reaction_{name} g) * (h - g) <= {real_text(sided)} * (h - g) ^ 2",
                f"""intros g h.
replace ((reaction_{name} h - reaction_{name} g) * (h - g)) with ({real_text(slope)} * (h - g) ^ 2) by (unfold reaction_{name}; ring).
apply Rmult_le_compat_r; [apply pow2_ge_0 |].
pose proof (pow2_ge_0 (h + g)); pose proof (pow2_ge_0 (h - g)); pose proof (pow2_ge_0 (h + g - 2 / 3)); nra.""",
            )  # fmt: skip
    yield real_theorem("F_has_no_one_sided_constant", "c", "",
                       "exists g h, c * (h - g) ^ 2 < (reaction_F h - reaction_F g) * (h - g)",
                       "intros c. exists (- (c ^ 2) - 1), (- (c ^ 2) - 2). unfold reaction_F. nra.")  # fmt: skip


_SHARP = {
    "F": "intros R R0. exists (- R). rewrite Rabs_Ropp, Rabs_right by lra. split; [lra |].\n"
    "unfold derivative_F. rewrite Rabs_right; lra.",
    "AC": "intros R R0. unfold derivative_AC, Rmax. destruct Rle_dec.\n"
    "- exists R. rewrite (Rabs_right R) by lra. split; [lra |]. rewrite Rabs_left; nra.\n"
    "- exists 0. rewrite Rabs_R0. split; [lra |]. rewrite Rabs_right; lra.",
    "Z": "intros R R0. exists (- R). rewrite Rabs_Ropp, Rabs_right by lra. split; [lra |].\n"
    "unfold derivative_Z. rewrite Rabs_left1; nra.",
}


# ---------------------------------------------------------------------- M4.3
@sheet("M4.3", Library.SOLUTIONS,
       beyond="that a solution exists until the time of its blow-up (continuation of solutions)")  # fmt: skip
def blow_up() -> Iterable[Theorem | str]:
    """Along a solution the time to blow-up falls at speed 1 and stays positive, so the solution ends before it is 0."""
    for name in ("F", "AC", "Z"):
        yield real_function(f"rate_{name}", public(sp.expand(beta * reaction(name))), "beta", "h")
    for name in ("AC", "Z"):
        yield Theorem(
            f"{name}_never_blows_up",
            f"forall (beta T : R) (x : R -> R), 0 < beta -> 0 <= T -> "
            f"(forall t, 0 <= t <= T -> is_derive x t (rate_{name} beta (x t))) -> "
            "forall t, 0 <= t <= T -> x t ^ 2 <= Rmax 1 (x 0 ^ 2)",
            f"""intros beta T x b0 T0 D.
apply (barrier (fun t => x t ^ 2) (fun t => 2 * x t * rate_{name} beta (x t)) T _ T0 (Rmax_r _ _)).
- intros t Ht. pose proof (D t Ht) as Dt. auto_derive; [eexists; exact Dt |].
  known_derivative Dt. ring.
- intros t Ht far. pose proof (Rmax_l 1 (x 0 ^ 2)). set (u := x t) in *. assert (1 < u ^ 2) by lra.
  {_NEVER[name]}""",
        )
    for number, (name, sign, condition, formula) in enumerate(BLOW_UPS, start=1):
        yield real_function(f"lifetime_{number}", formula.subs(h0, h), "beta", "h")
        relation = f"{'<' if isinstance(condition, sp.Lt) else '>'} {real_text(condition.args[1])}"
        yield Theorem(
            f"{name}_{sign}_blows_up_{number}",
            f"forall (beta T : R) (x : R -> R), {'0 < beta' if sign == 'positive' else 'beta < 0'} -> 0 <= T -> "
            f"(forall t, 0 <= t <= T -> is_derive x t (rate_{name} beta (x t))) -> "
            f"(forall t, 0 <= t <= T -> x t {relation}) -> "
            f"lifetime_{number} beta (x T) = lifetime_{number} beta (x 0) - T /\\ T < lifetime_{number} beta (x 0)",
            _lifetime_proof(name, number, relation),
        )


#: 2 x r(x) beta <= 0 where x^2 > 1.
_NEVER = {
    "AC": """replace (2 * u * rate_AC beta u) with (- (2 * beta * (u ^ 2 * (u ^ 2 - 1)))) by (unfold rate_AC; ring).
  assert (0 <= beta * (u ^ 2 * (u ^ 2 - 1))) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]). lra.""",
    "Z": """replace (2 * u * rate_Z beta u) with (- (2 * beta * (u ^ 2 * (u ^ 2 - u)))) by (unfold rate_Z; ring).
  assert (0 <= u ^ 2 - u) by (destruct (Rle_lt_dec u 0); nra).
  assert (0 <= beta * (u ^ 2 * (u ^ 2 - u))) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]). lra.""",
}


def _lifetime_proof(name: str, number: int, relation: str) -> str:
    argument, above_1, positive = _LOGARITHM[number]
    return f"""intros beta T x b0 T0 D inside.
apply (lifetime_falls (lifetime_{number} beta) (rate_{name} beta) x T (fun u => u {relation}) T0 D inside). intros u In.
assert (0 < {argument}) by ({_QUOTIENT[number]}).
assert (factored : rate_{name} beta u = {_FACTORS[name]}) by (unfold rate_{name}; ring). rewrite factored.
split; [| split].
- repeat apply Rmult_integral_contrapositive_currified; nra.
- unfold lifetime_{number}. auto_derive.
  + repeat split; try lra; try nra. match goal with |- 0 < ?e => replace e with ({argument}) by (field; nra) end. assumption.
  + field. repeat split; nra.
- unfold lifetime_{number}. match goal with |- context [ln ?e] => replace e with ({above_1}) by (field; nra) end.
  {positive}"""


_FACTORS = {"F": "beta * (u * (1 - u))", "AC": "beta * (u * ((1 - u) * (1 + u)))", "Z": "beta * (u * (u * (1 - u)))"}
_QUOTIENT = {
    1: "apply Rdiv_lt_0_compat; lra", 2: "apply Rdiv_lt_0_compat; lra", 3: "apply Rdiv_lt_0_compat; nra",
    4: "apply Rdiv_lt_0_compat; nra", 5: "apply Rdiv_lt_0_compat; lra", 6: "apply Rdiv_lt_0_compat; lra",
}  # fmt: skip
_LOG_BELOW = """{side}
  assert (nz : / u <> 0) by (apply Rinv_neq_0_compat; lra). pose proof (ln_below (- / u) ltac:(lra) ltac:(lra)).
  set (l := ln (1 + - / u)) in *. match goal with |- 0 < ?e => replace e with ((- / u - l) * / - beta) by (field; lra) end.
  apply Rmult_lt_0_compat; [lra | apply Rinv_0_lt_compat; lra]."""
#: The logarithm's argument as a quotient of positive numbers, as 1 plus something, and why the lifetime is positive.
_LOGARITHM = {
    1: ("(1 - u) / - u", "1 + / - u", "assert (0 < / - u) by (apply Rinv_0_lt_compat; lra).\n"
        "  apply Rdiv_lt_0_compat; [apply ln_positive; lra | assumption]."),
    2: ("u / (u - 1)", "1 + / (u - 1)", "assert (0 < / (u - 1)) by (apply Rinv_0_lt_compat; lra).\n"
        "  set (l := ln _). assert (0 < l) by (apply ln_positive; lra).\n"
        "  match goal with |- 0 < ?e => replace e with (l * / - beta) by (field; lra) end.\n"
        "  apply Rmult_lt_0_compat; [assumption | apply Rinv_0_lt_compat; lra]."),
    5: ("(1 - u) / - u", "1 + - / u", _LOG_BELOW.replace("{side}", "assert (/ u < 0) by (apply Rinv_lt_0_compat; lra).")),
    6: ("(u - 1) / u", "1 + - / u", _LOG_BELOW.replace("{side}",
        "assert (/ u < 1) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).")),
}  # fmt: skip
_LOGARITHM[3] = _LOGARITHM[4] = (
    "u ^ 2 / (u ^ 2 - 1)", "1 + / (u ^ 2 - 1)", "assert (0 < / (u ^ 2 - 1)) by (apply Rinv_0_lt_compat; nra).\n"
    "  set (l := ln _). assert (0 < l) by (apply ln_positive; lra).\n"
    "  match goal with |- 0 < ?e => replace e with (l * / - (2 * beta)) by (field; lra) end.\n"
    "  apply Rmult_lt_0_compat; [assumption | apply Rinv_0_lt_compat; lra].",
)  # fmt: skip


# ---------------------------------------------------------------------- M4.5
def _faces(name: str, low: str, high: str) -> Iterable[Theorem]:
    yield real_theorem(
        f"{name}_points_inwards", "alpha beta m", f"0 <= alpha -> {low} <= m <= {high}",
        f"0 <= speed_{name} alpha beta {low} m /\\ speed_{name} alpha beta {high} m <= 0",
        f"intros. unfold speed_{name}. split; nra.",
    )  # fmt: skip
    yield Theorem(
        f"{name}_keeps_its_faces",
        "forall (alpha beta : R) (n : nat) (w : nat -> nat -> R) (h : nat -> R), 0 <= alpha -> "
        "(forall i, (i < n)%nat -> stochastic n (w i)) -> "
        f"(forall j, (j < n)%nat -> {low} <= h j <= {high}) -> forall i, (i < n)%nat -> "
        f"let speed := speed_{name} alpha beta (h i) (total n (fun j => w i j * h j)) in "
        f"(h i = {low} -> 0 <= speed) /\\ (h i = {high} -> speed <= 0)",
        f"""intros alpha beta n w h a0 rows box i Hi speed.
pose proof (mean_between n (w i) h {low} {high} (rows i Hi) box) as between.
destruct ({name}_points_inwards alpha beta _ a0 between) as [bottom top].
unfold speed. split; intros ->; assumption.""",
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
            _STRETCHED_PROOF[name],
        )  # fmt: skip


_Q_PROOF = """intros alpha beta s m K a0 b0 s1 E lo hi. set (q := alpha / beta * (s - 1)).
assert (at_q : beta * q = alpha * (s - 1)) by (unfold q; field; lra).
assert (q0 : 0 <= q) by (unfold q; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; assumption | lra])."""
_STRETCHED_PROOF = {
    "F": f"""{_Q_PROOF}
assert (EK : K = 1 + q) by (rewrite E; unfold end_F, q; field; lra).
assert (balance : beta * (K * (1 - K)) = - (alpha * (s - 1) * K)) by (rewrite <- at_q, EK; ring).
unfold speed_F. split; nra.""",
    "AC": f"""{_Q_PROOF}
assert (square : K ^ 2 = 1 + q).
{{ rewrite E. unfold end_AC. rewrite <- Rsqr_pow2, Rsqr_sqrt; [unfold q; field; lra |].
  match goal with |- 0 <= ?y => replace y with (1 + q) by (unfold q; field; lra) end. lra. }}
assert (K0 : 0 <= K) by (rewrite E; apply sqrt_pos).
assert (balance : beta * (K * (1 - K ^ 2)) = - (alpha * (s - 1) * K)) by (rewrite <- at_q, square; ring).
unfold speed_AC. split; nra.""",
    "Z": f"""{_Q_PROOF}
assert (root : K * (K - 1) = q /\\ 0 <= K).
{{ rewrite E. unfold end_Z. match goal with |- context [sqrt ?y] =>
    assert (square : sqrt y * sqrt y = 1 + 4 * q) by (rewrite sqrt_sqrt; [unfold q; field; lra |];
      replace y with (1 + 4 * q) by (unfold q; field; lra); lra);
    pose proof (sqrt_pos y); set (r := sqrt y) in * end. split; [nra | lra]. }}
destruct root as [root K0].
assert (balance : beta * (K * (K * (1 - K))) = - (alpha * (s - 1) * K))
  by (rewrite <- at_q, <- root; ring).
unfold speed_Z. split; nra.""",
}

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
                _KEPT[name, sign],
            )  # fmt: skip
            yield Theorem(
                f"{name}_{sign}_kept_on_graphs",
                "forall (alpha beta tau : R) (n : nat) (w : nat -> nat -> R) (h : nat -> R), "
                f"0 < alpha -> {given} -> 0 < tau -> {limit} -> (forall i, (i < n)%nat -> stochastic n (w i)) -> "
                f"(forall j, (j < n)%nat -> {ends[0]} <= h j <= {ends[1]}) -> forall i, (i < n)%nat -> "
                f"{ends[0]} <= h i + tau * speed_{name} alpha beta (h i) (total n (fun j => w i j * h j)) <= {ends[1]}",
                f"intros. apply {name}_{sign}_kept; try assumption; [auto |]. apply mean_between; auto.",
            )
            yield real_theorem(
                f"{name}_{sign}_left_beyond", "alpha beta tau", f"0 < alpha -> {given} -> 0 < tau -> {beyond}",
                f"exists h m, {ends[0]} <= h <= {ends[1]} /\\ {ends[0]} <= m <= {ends[1]} /\\ "
                f"({step} < {ends[0]} \\/ {ends[1]} < {step})",
                _LEFT[name, sign],
            )  # fmt: skip


def _step_bounds(name: str, lower: str, upper: str) -> str:
    """Proof that a step stays between the faces: its distances to them, written as products of what is >= 0."""
    return f"""intros alpha beta tau h m a0 b0 t0 small hb mb. unfold speed_{name}.
assert (0 <= tau * alpha) by nra. assert (0 <= tau * Rabs beta) by (apply Rmult_le_pos; [lra | apply Rabs_pos]).
rewrite {"Rabs_right" if "- beta" not in lower + upper else "Rabs_left"} in * by lra.
assert (0 <= tau * alpha * (m - {BOXES[name][0] if BOXES[name][0] >= 0 else "- 1"})) by (apply Rmult_le_pos; [apply Rmult_le_pos |]; lra).
assert (0 <= tau * alpha * (1 - m)) by (apply Rmult_le_pos; [apply Rmult_le_pos |]; lra).
{lower}
{upper}
split; lra."""


def _product(left: str, right: str, facts: str = "") -> str:
    """0 <= left * right, from 0 <= left by lra and 0 <= right by lra after some facts."""
    return f"assert (0 <= {left} * ({right})) by ({facts}apply Rmult_le_pos; lra)."


def _below(size: str, factor: str, bound: str, sign: str) -> str:
    """A fact: tau |beta| factor <= tau |beta| bound, for factor <= bound."""
    return (
        f"assert (tau * {size} * ({factor}) <= tau * {size} * {bound}) by (apply Rmult_le_compat_l; [lra | {_SQUARES}nra]); "
        + sign
    )


_SQUARES = "pose proof (pow2_ge_0 (h - 1 / 2)); pose proof (pow2_ge_0 (h + 1 / 2)); "
_B = "- beta"
_KEPT = {
    ("F", "positive"): _step_bounds(
        "F", "assert (0 <= tau * beta * (h * (1 - h))) by (apply Rmult_le_pos; nra).\n" + _product("h", "1 - tau * alpha"),
        _product("(1 - h)", "1 - tau * alpha - tau * beta * h", _below("beta", "h", "1", "")),
    ),
    ("F", "negative"): _step_bounds(
        "F", _product("h", "1 - tau * alpha - tau * - beta * (1 - h)", _below(_B, "1 - h", "1", "")),
        "assert (0 <= tau * - beta * (h * (1 - h))) by (apply Rmult_le_pos; nra).\n"
        + _product("(1 - h)", "1 - tau * alpha", "assert (0 <= tau * - beta) by nra; "),
    ),
    ("Z", "positive"): _step_bounds(
        "Z", "assert (0 <= tau * beta * (h * h * (1 - h))) by (apply Rmult_le_pos; [nra | apply Rmult_le_pos; nra]).\n"
        + _product("h", "1 - tau * alpha"),
        _product("(1 - h)", "1 - tau * alpha - tau * beta * (h * h)", _below("beta", "h * h", "1", "")),
    ),
    ("Z", "negative"): _step_bounds(
        "Z", _product("h", "1 - tau * alpha - tau * - beta * (h * (1 - h))", _below(_B, "h * (1 - h)", "(1 / 4)", "")),
        "assert (0 <= tau * - beta * (h * h * (1 - h))) by (apply Rmult_le_pos; [nra | apply Rmult_le_pos; nra]).\n"
        + _product("(1 - h)", "1 - tau * alpha", "assert (0 <= tau * - beta) by nra; "),
    ),
    ("AC", "positive"): _step_bounds(
        "AC", _product("(1 + h)", "1 - tau * alpha - tau * beta * (- h * (1 - h))", _below("beta", "- h * (1 - h)", "2", "")),
        _product("(1 - h)", "1 - tau * alpha - tau * beta * (h * (1 + h))", _below("beta", "h * (1 + h)", "2", "")),
    ),
    ("AC", "negative"): _step_bounds(
        "AC", _product("(1 + h)", "1 - tau * alpha - tau * - beta * (h * (1 - h))", _below(_B, "h * (1 - h)", "(1 / 4)", "")),
        _product("(1 - h)", "1 - tau * alpha - tau * - beta * (- h * (1 + h))", _below(_B, "- h * (1 + h)", "(1 / 4)", "")),
    ),
}  # fmt: skip
_OPEN = "intros alpha beta tau a0 b0 t0 far."
_NEAR = """%s set (excess := %s). assert (0 < excess) by (unfold excess; lra).
assert (tb : 0 < %s) by nra. set (e := excess / (%s)). assert (at_e : %s * e = excess) by (unfold e; field; lra).
assert (e0 : 0 < e) by (unfold e; apply Rdiv_lt_0_compat; lra). clearbody e. unfold excess in *. clear excess.
destruct (Rle_lt_dec e 1) as [small | large]."""


def _left_near_face(
    name: str, size: str, multiple: int, steep: str, start: str, face: str, side: str, at_1: str
) -> str:
    """A node near the face, or, where the excess is large, at a fixed place."""
    scaled = f"{multiple} * (tau * {size})"
    opening = _NEAR % (_OPEN, steep, f"tau * {size}", scaled, scaled)
    return f"""{opening}
- exists {start}, {face}. split; [lra |]. split; [lra |]. {side}. unfold speed_{name}. nra.
- exists {at_1}, {face}. split; [lra |]. split; [lra |]. {side}. unfold speed_{name}. nra."""


_LEFT = {
    ("F", "positive"): _left_near_face("F", "beta", 2, "tau * (alpha + beta) - 1", "(1 - e)", "1", "right", "0"),
    ("Z", "positive"): _left_near_face("Z", "beta", 4, "tau * (alpha + beta) - 1", "(1 - e)", "1", "right", "0"),
    ("AC", "positive"): _left_near_face("AC", "beta", 6, "tau * (alpha + 2 * beta) - 1", "(1 - e)", "1", "right", "0"),
    ("F", "negative"): _left_near_face("F", "(- beta)", 2, "tau * (alpha - beta) - 1", "e", "0", "left", "1"),
    ("Z", "negative"): f"{_OPEN} exists (1 / 2), 0. split; [lra |]. split; [lra |]. left. unfold speed_Z. nra.",
    ("AC", "negative"): f"{_OPEN} exists (1 / 2), (- 1). split; [lra |]. split; [lra |]. left. unfold speed_AC. nra.",
}


# ---------------------------------------------------------------------- M4.7
@sheet("M4.7", Library.REALS)
def attention() -> Iterable[Theorem | str]:
    """A node x that attends to neighbours a and b with logits w x a and w x b."""
    x, a, b, w = sp.symbols("x a b w")
    first, second = sp.exp(w * x * a), sp.exp(w * x * b)
    yield real_function("attended", (a * first + b * second) / (first + second), "w", "a", "b", "x")
    yield real_theorem(
        "no_global_constant", "w K", "0 < w",
        "exists R x, K * Rabs (x - 0) < Rabs (attended w R (- R) x - attended w R (- R) 0)",
        """intros w K w0. set (R := 1 + 2 * Rabs K / w). assert (K0 := Rabs_pos K).
assert (R1 : 1 <= R) by (unfold R; assert (0 <= 2 * Rabs K / w) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]); lra).
assert (wR : w * R = w + 2 * Rabs K) by (unfold R; field; lra). clearbody R.
assert (pos : 0 < w * R) by nra. exists R, (/ (w * R)).
assert (zero : attended w R (- R) 0 = 0).
{ unfold attended. rewrite !Rmult_0_r, exp_0. rewrite ?Rmult_0_l, ?exp_0. field. }
rewrite zero, !Rminus_0_r.
assert (value : attended w R (- R) (/ (w * R)) = R * ((exp 1 - exp (- 1)) / (exp 1 + exp (- 1)))).
{ unfold attended. pose proof (exp_pos 1). pose proof (exp_pos (- 1)).
  repeat match goal with |- context [exp ?u] => lazymatch u with 1 => fail | - 1 => fail | _ =>
    first [replace u with 1 by (field; nra) | replace u with (- 1) by (field; nra)] end end. field. lra. }
rewrite value. pose proof (exp_ineq1 1 ltac:(lra)) as e2. pose proof (exp_pos (- 1)) as e0.
assert (e1 : exp 1 * exp (- 1) = 1) by (rewrite <- exp_plus; replace (1 + - 1) with 0 by ring; apply exp_0).
assert (half : 1 / 2 <= (exp 1 - exp (- 1)) / (exp 1 + exp (- 1))).
{ apply (Rmult_le_reg_r (exp 1 + exp (- 1))); [lra |]. unfold Rdiv at 2. rewrite Rmult_assoc, Rinv_l by lra. nra. }
set (share := (exp 1 - exp (- 1)) / (exp 1 + exp (- 1))) in *.
rewrite (Rabs_right (/ (w * R))) by (apply Rle_ge, Rlt_le, Rinv_0_lt_compat; exact pos).
rewrite (Rabs_right (R * share)) by nra.
apply (Rmult_lt_reg_r (w * R)); [exact pos |]. rewrite Rmult_assoc, Rinv_l by lra.
assert (K <= Rabs K) by apply Rle_abs. assert (1 / 2 * (w * R) <= R * share * (w * R)); [| lra].
apply Rmult_le_compat_r; [lra |]. nra.""",
    )  # fmt: skip
    yield real_theorem(
        "output_stays_between", "w a b x", "a <= b", "a <= attended w a b x <= b",
        """intros w a b x ab. unfold attended.
match goal with |- context [(?u + ?v) / (?p + ?q)] => pose proof (exp_pos (w * x * a)); pose proof (exp_pos (w * x * b)) end.
repeat match goal with |- context [exp ?u] => lazymatch u with w * x * a => fail | w * x * b => fail | _ =>
  first [replace u with (w * x * a) by ring | replace u with (w * x * b) by ring] end end.
set (p := exp (w * x * a)) in *. set (q := exp (w * x * b)) in *.
split; apply (Rmult_le_reg_r (p + q)); try lra; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; nra.""",
    )  # fmt: skip


@sheet("M4.7", Library.OPERATORS)
def frozen_attention() -> Iterable[Theorem | str]:
    """Computed once and kept, attention is a row-stochastic A, and the right-hand side has a constant."""
    yield right_hand_side("GRAND-l")
    yield right_hand_side("BS")
    yield Theorem(
        "frozen_attention_has_a_constant",
        "forall (R : realFieldType) (n : nat) (A : 'M[R]_n) (g h : 'cV[R]_n) (c : R), row_stochastic A -> "
        "within (g - h) c -> within (GRAND_l A g - GRAND_l A h) (c + c)",
        """move=> R n A g h c rows bound.
have -> : GRAND_l A g - GRAND_l A h = A *m (g - h) - (g - h) by rewrite /GRAND_l; operators.
by apply: difference_within => //; apply: average_within.""",
    )
    yield Theorem(
        "frozen_attention_of_BS_has_a_constant",
        "forall (R : realFieldType) (n : nat) (A : 'M[R]_n) (g h : 'cV[R]_n) (alpha beta c : R), row_stochastic A -> "
        "0 <= alpha -> 0 <= beta -> within (g - h) c -> "
        "within (BS alpha beta A g - BS alpha beta A h) (alpha * (c + c) + beta * (c + c))",
        """move=> R n A g h alpha beta c rows a0 b0 bound.
have -> : BS alpha beta A g - BS alpha beta A h
  = alpha *: (A *m (g - h) - (g - h)) + beta *: (A *m (g - h) - A *m (A *m (g - h))) by rewrite /BS; operators.
have one := average_within rows bound. have two := average_within rows one.
have first := difference_within one bound. have second := difference_within one two.
move=> i; rewrite !mxE; apply: le_trans (ler_norm_add _ _) _; rewrite !normrM (ger0_norm a0) (ger0_norm b0).
have := first i; have := second i; rewrite !mxE => s f.
by apply: ler_add; apply: ler_wpmul2l.""",
    )
