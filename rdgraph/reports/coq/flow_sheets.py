"""M6 and M8.10 in Coq: closed flows of the reactions, splitting, and strong damping."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from rdgraph.language.answer_symbols import public
from rdgraph.reports.claims.claim_formulas import beta
from rdgraph.reports.claims.split_flows import FLOWS, GRAPHCON, slow_branch
from rdgraph.reports.coq.bound_sheets import reaction
from rdgraph.reports.coq.coq_text import real_text
from rdgraph.reports.coq.sheets import Library, Theorem, sheet
from rdgraph.reports.coq.theorem_kinds import real_function, real_theorem
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.filters import symbol

h = sp.Symbol("h")


def rate_function(name: str) -> str:
    return real_function(f"rate_{name}", public(sp.expand(beta * reaction(name))), "beta", "h")


@sheet("M6.1", Library.SOLUTIONS)
def closed_flows() -> Iterable[Theorem | str]:
    for name, formula in FLOWS.items():
        yield rate_function(name)
        yield real_function(f"flow_{name}", formula, "beta", "h0", "t")
        yield real_theorem(
            f"flow_{name}_starts_at_h0", "beta h0", "", f"flow_{name} beta h0 0 = h0",
            _STARTS[name],
        )  # fmt: skip
        inside = real_text(
            sp.fraction(formula, exact=True)[1] if name == "F" else sp.fraction(formula, exact=True)[1] ** 2
        )
        yield real_theorem(
            f"flow_{name}_solves", "beta h0 t", f"{inside} <> 0" if name == "F" else f"0 < {inside}",
            f"is_derive (flow_{name} beta h0) t (rate_{name} beta (flow_{name} beta h0 t))",
            _SOLVES[name],
        )  # fmt: skip
    yield rate_function("Z")
    yield real_function("lambert", h * sp.exp(h), "h")
    for name, start, less in (("upper", "- 1 <= u -> u < v", "u v"), ("lower", "u < v -> v <= - 1", "v u")):
        first, second = less.split()
        sign = "- " if name == "upper" else ""
        yield real_theorem(
            f"{name}_branch_is_one_to_one", "u v", start, f"lambert {first} < lambert {second}",
            f"""intros u v; intros. enough ({sign}lambert v < {sign}lambert u) by lra.
apply (decreasing (fun y => {sign}lambert y) (fun y => {sign}((1 + y) * exp y)) u v); [lra | |].
- intros t Ht. unfold lambert. auto_derive; [exact I | ring].
- intros t Ht. pose proof (exp_pos t). nra.""",
        )  # fmt: skip
    yield Theorem(
        "flow_Z",
        "forall (beta T : R) (x : R -> R), 0 <= T -> "
        "(forall t, 0 <= t <= T -> is_derive x t (rate_Z beta (x t))) -> (forall t, 0 <= t <= T -> x t <> 0) -> "
        "let y := fun t => (1 - x t) / x t in lambert (y T) = y 0 * exp (y 0 - beta * T)",
        """intros beta T x T0 D nz y.
assert (K : lambert (y T) * exp (beta * T) = lambert (y 0) * exp (beta * 0)).
{ apply (constant (fun t => lambert (y t) * exp (beta * t)) 0 T T0). intros t Ht.
  pose proof (D t Ht) as Dt. pose proof (nz t Ht) as n. unfold y, lambert, rate_Z in *.
  auto_derive; [repeat split; try exact I; try exact n; eexists; exact Dt |].
  known_derivative Dt. field. exact n. }
rewrite Rmult_0_r, exp_0, Rmult_1_r in K. unfold Rminus at 1. rewrite exp_plus.
replace (- (beta * T)) with (- beta * T) by ring. unfold lambert in *.
apply (Rmult_eq_reg_r (exp (beta * T))); [| pose proof (exp_pos (beta * T)); lra]. rewrite K.
rewrite !Rmult_assoc, <- exp_plus. replace (- beta * T + beta * T) with 0 by ring. rewrite exp_0. ring.""",
    )


_STARTS = {
    "F": "intros. unfold flow_F. rewrite ?Rmult_0_r, exp_0. field. lra.",
    "AC": """intros beta h0. unfold flow_AC. match goal with |- context [sqrt ?y] => replace y with 1 end.
- rewrite sqrt_1. field.
- rewrite ?Rmult_0_r, exp_0. ring.""",
}
_SOLVES = {
    "F": "intros beta h0 t nz. unfold flow_F, rate_F. auto_derive; [exact nz | field; exact nz].",
    "AC": """intros beta h0 t pos. unfold flow_AC, rate_AC.
match type of pos with 0 < ?y => pose proof (sqrt_lt_R0 y pos) as root0; pose proof (sqrt_sqrt y (Rlt_le _ _ pos)) as square end.
match type of root0 with 0 < ?r => set (root := r) in * end.
assert (E : (1 + - h0 ^ 2) * exp (- 2 * beta * t) = root * root - h0 ^ 2) by (rewrite square; ring).
auto_derive; change (h0 * (h0 * 1)) with (h0 ^ 2); fold root.
- repeat split; [exact pos | lra].
- replace ((1 + - h0 ^ 2) * (- 2 * beta * 1 * exp (- 2 * beta * t))) with (- 2 * beta * (root * root - h0 ^ 2))
    by (rewrite <- E; ring). field. lra.""",
}


@sheet("M6.2", Library.OPERATORS, beyond="that Strang keeps the box at every step")
def splitting() -> Iterable[Theorem]:
    """The terms of exp(X) exp(Y) and exp(X/2) exp(Y) exp(X/2) up to third order against those of exp(X + Y)."""
    x, y = sp.symbols("X Y", commutative=False)

    def order(*generators: sp.Expr, degree: int) -> sp.Expr:
        """The terms of one degree in the product of the exponentials."""
        size = sp.Symbol("size")
        product = sp.S.One
        for g in generators:
            product *= sp.Add(*((size * g) ** k / sp.factorial(k) for k in range(degree + 1)))
        return sp.expand(product).coeff(size, degree)

    methods = {"Lie": ((x, y), 1), "Strang": ((x / 2, y, x / 2), 2)}
    for name, (parts, exact) in methods.items():
        for degree in range(1, exact + 1):
            yield Theorem(
                f"{name}_is_exact_at_order_{degree}",
                "forall (R : numFieldType) (n d : nat) (X Y : 'M[R]_n) (H : 'M[R]_(n, d)), "
                f"{_words(24 * order(*parts, degree=degree))} = {_words(24 * order_of_sum(degree))}",
                "intros; operators.",
            )
    yield Theorem(
        "Lie_misses_order_2",
        "forall (R : numFieldType) (n d : nat) (X Y : 'M[R]_n) (H : 'M[R]_(n, d)), "
        f"{_words(2 * order(x, y, degree=2))} = {_words(2 * order_of_sum(2))} + (X *m (Y *m H) - Y *m (X *m H))",
        "intros; operators.",
    )


def order_of_sum(degree: int) -> sp.Expr:
    """(X + Y)^degree / degree!, multiplied out."""
    x, y = sp.symbols("X Y", commutative=False)
    return sp.expand((x + y) ** degree / sp.factorial(degree))


def _words(polynomial: sp.Expr) -> str:
    """A polynomial in matrices with whole coefficients, applied to H."""
    terms = []
    for term in sp.Add.make_args(sp.expand(polynomial)):
        number, factors = term.as_coeff_mul()
        text = "H"
        for factor in reversed([f for part in factors for f in _letters(part)]):
            text = f"({factor} *m {text})"
        terms.append(f"{number}%:R *: {text}")
    return "(" + " + ".join(terms) + ")"


def _letters(part: sp.Expr) -> list[str]:
    base, power = part.as_base_exp()
    return [str(base)] * int(power)


# ---------------------------------------------------------------------- M8.10
@sheet("M8.10", Library.REALS)
def graphcon() -> Iterable[Theorem | str]:
    """The slow eigenvalue of GraphCON's symbol, times the damping, against GRAND's symbol."""
    system, damping = parse(GRAPHCON), sp.Symbol("alpha")
    slow, fast = slow_branch(system, damping)
    matrix = system.symbol()
    letters = ("alpha", "gamma", "lam")
    yield real_function("slow", slow, *letters)
    yield real_function("fast", fast, *letters)
    yield real_function("GRAND_l", symbol(catalogue["GRAND-l"]), "lam")
    real = "4 * (gamma + lam - 1) <= alpha ^ 2"
    at = "alpha gamma lam"
    opening = """intros alpha gamma lam; intros. unfold slow, fast.
match goal with |- context [sqrt ?y] => pose proof (sqrt_sqrt y ltac:(lra)) as square; pose proof (sqrt_pos y);
  set (root := sqrt y) in * end."""
    yield real_theorem("eigenvalues_sum_to_the_trace", at, "", f"slow {at} + fast {at} = {real_text(sp.expand(matrix.trace()))}",
                       "intros. unfold slow, fast. field.")  # fmt: skip
    yield real_theorem("eigenvalues_multiply_to_the_determinant", at, real,
                       f"slow {at} * fast {at} = {real_text(sp.expand(matrix.det()))}", f"{opening}\nnra.")  # fmt: skip
    yield real_theorem("eigenvalues_differ_by_the_root", at, "", f"slow {at} - fast {at} = {real_text(slow - fast)}",
                       "intros. unfold slow, fast. field.")  # fmt: skip
    yield real_theorem(
        "slow_rate_is_near_its_limit", at, f"0 < alpha -> {real}",
        f"Rabs (alpha * slow {at} - (1 - gamma - lam)) <= 4 * (gamma + lam - 1) ^ 2 / alpha ^ 2",
        f"""{opening}
set (c := gamma + lam - 1). assert (product : (alpha - root) * (alpha + root) = 4 * c) by (unfold c; lra).
match goal with |- Rabs ?e <= _ => replace e with (- ((alpha - root) ^ 2 / 4)) by (unfold c in *; field_simplify; lra) end.
rewrite Rabs_Ropp, Rabs_right by (pose proof (pow2_ge_0 (alpha - root)); lra).
apply (Rmult_le_reg_r (alpha ^ 2)); [apply pow_lt; assumption |]. unfold Rdiv at 2.
rewrite Rmult_assoc, Rinv_l by (apply pow_nonzero; lra).
replace (4 * c ^ 2 * 1) with ((alpha - root) ^ 2 / 4 * (alpha + root) ^ 2)
  by (replace (4 * c ^ 2 * 1) with ((4 * c) ^ 2 / 4) by field; rewrite <- product; field).
apply Rmult_le_compat_l; [pose proof (pow2_ge_0 (alpha - root)); lra | nra].""",
    )  # fmt: skip
    yield real_theorem(
        "the_state_follows_the_slow_branch", at,
        "0 < alpha -> 0 <= gamma + lam - 1 -> 8 * (gamma + lam - 1) <= alpha ^ 2",
        f"Rabs (- fast {at} / (slow {at} - fast {at}) - 1) <= 2 * (gamma + lam - 1) / alpha ^ 2 /\\ "
        f"0 < / (slow {at} - fast {at}) <= 2 / alpha",
        f"""intros alpha gamma lam; intros. rewrite eigenvalues_differ_by_the_root.
{opening.partition("intros. ")[2]}
set (c := gamma + lam - 1) in *. assert (product : (alpha - root) * (alpha + root) = 4 * c) by (unfold c; lra).
assert (half : alpha / 2 <= root) by (destruct (Rle_lt_dec (alpha / 2) root); nra).
assert (most : root <= alpha) by (destruct (Rle_lt_dec root alpha); nra).
assert (P : 0 <= (alpha - root) * ((alpha + root) * root - alpha ^ 2)) by (apply Rmult_le_pos; nra).
split; [| split].
- match goal with |- Rabs ?e <= _ => replace e with ((alpha - root) / (2 * root)) by (field; lra) end.
  assert (E : 2 * c / alpha ^ 2 - (alpha - root) / (2 * root)
    = (alpha - root) * ((alpha + root) * root - alpha ^ 2) / (2 * alpha ^ 2 * root))
    by (replace (2 * c) with ((alpha - root) * (alpha + root) / 2) by lra; field; split; lra).
  assert (below : 0 < 2 * alpha ^ 2 * root) by (apply Rmult_lt_0_compat; [nra | lra]).
  assert (0 <= (alpha - root) * ((alpha + root) * root - alpha ^ 2) / (2 * alpha ^ 2 * root))
    by (apply Rmult_le_pos; [exact P | apply Rlt_le, Rinv_0_lt_compat; exact below]).
  rewrite Rabs_right; [lra |]. apply Rle_ge, Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra].
- apply Rinv_0_lt_compat; lra.
- replace (2 / alpha) with (/ (alpha / 2)) by (field; lra). apply Rinv_le_contravar; lra.""",
    )  # fmt: skip
    yield real_theorem("the_limit_is_GRAND_for_one_gamma", "gamma lam", "", "(1 - gamma - lam = GRAND_l lam <-> gamma = 1)",
                       "intros. unfold GRAND_l. split; intros; lra.")  # fmt: skip
