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
from rdgraph.reports.coq.theorem_kinds import real_function, real_theorem, symbol_function
from rdgraph.systems.parser import parse

h = sp.Symbol("h")


def rate_function(name: str) -> str:
    return real_function(f"rate_{name}", public(sp.expand(beta * reaction(name))), "beta", "h")


@sheet("M6.1", Library.SOLUTIONS)
def closed_flows() -> Iterable[Theorem | str]:
    for name, formula in FLOWS.items():
        yield rate_function(name)
        yield real_function(f"flow_{name}", formula, "beta", "h0", "t")
        yield real_theorem(f"flow_{name}_starts_at_h0", "beta h0", "", f"flow_{name} beta h0 0 = h0")
        inside = real_text(
            sp.fraction(formula, exact=True)[1] if name == "F" else sp.fraction(formula, exact=True)[1] ** 2
        )
        yield real_theorem(
            f"flow_{name}_solves", "beta h0 t", f"{inside} <> 0" if name == "F" else f"0 < {inside}",
            f"is_derive (flow_{name} beta h0) t (rate_{name} beta (flow_{name} beta h0 t))",
        )  # fmt: skip
    yield rate_function("Z")
    yield real_function("lambert", h * sp.exp(h), "h")
    yield from map(Theorem, ("upper_branch_is_one_to_one", "lower_branch_is_one_to_one", "flow_Z"))


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
            )
    yield Theorem(
        "Lie_misses_order_2",
        "forall (R : numFieldType) (n d : nat) (X Y : 'M[R]_n) (H : 'M[R]_(n, d)), "
        f"{_words(2 * order(x, y, degree=2))} = {_words(2 * order_of_sum(2))} + (X *m (Y *m H) - Y *m (X *m H))",
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
    yield symbol_function("GRAND-l")
    at = "alpha gamma lam"
    yield real_theorem("eigenvalues_sum_to_the_trace", at, "", f"slow {at} + fast {at} = {real_text(sp.expand(matrix.trace()))}")  # fmt: skip
    yield real_theorem("eigenvalues_multiply_to_the_determinant", at, "4 * (gamma + lam - 1) <= alpha ^ 2",
                       f"slow {at} * fast {at} = {real_text(sp.expand(matrix.det()))}")  # fmt: skip
    yield real_theorem("eigenvalues_differ_by_the_root", at, "", f"slow {at} - fast {at} = {real_text(slow - fast)}")  # fmt: skip
    yield from map(Theorem, ("slow_rate_is_near_its_limit", "the_state_follows_the_slow_branch"))
    yield Theorem("the_limit_is_GRAND_for_one_gamma")
