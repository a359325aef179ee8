"""M1 in Coq: the derivation of blurring-sharpening line by line, its "limit", its factors, and Turing patterns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import sympy as sp

from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import H
from rdgraph.reports.coq.coq_text import matrix_text, real_text
from rdgraph.reports.coq.sheets import Library, Theorem, sheet
from rdgraph.reports.coq.theorem_kinds import (
    chain_step,
    operator_identity,
    real_function,
    real_theorem,
    right_hand_side,
)
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.derivations import derivation
from rdgraph.theory.filters import symbol

alpha, beta, lam, tau, h = sp.symbols("alpha beta lam tau h")


def derivation_steps(name: str) -> Iterable[Theorem]:
    """A theorem for every step of a shipped derivation, its definitions as hypotheses; L is laplacian A."""
    chain = derivation(name)
    defined = dict(h.replace(" ", "").split("=", 1) for h in chain.hypotheses)
    if defined.pop("L") != "I-A":
        raise ValueError(f"the derivation {name} has another L than I - A")
    title = name.replace("-", "_")
    for number, (left, right) in enumerate(itertools.pairwise(chain.lines), start=1):
        yield chain_step(f"{title}_{number}", left, right, fields=defined)


@sheet("M1.1", Library.OPERATORS)
def blurring_step() -> Iterable[Theorem]:
    yield from derivation_steps("bs-blur")


@sheet("M1.2", Library.OPERATORS)
def full_derivation() -> Iterable[Theorem]:
    yield from derivation_steps("bs-appendix")
    yield from derivation_steps("bs-main")


@sheet("M1.3", Library.OPERATORS)
def difference_equation() -> Iterable[Theorem | str]:
    yield from derivation_steps("bs-difference")
    yield right_hand_side("BS")
    yield chain_step("right_side_is_minus_L_squared", derivation("bs-difference").lines[-1], "-L@L@H")
    yield chain_step("products_commute", "A@L@H", "L@A@H")
    yield chain_step("both_are_A_minus_A_squared", "A@L@H", "(A - A@A)@H")
    at = "(BS alpha beta A H)"
    closed = matrix_text("(beta - alpha)*L@H - beta*L@L@H")
    yield operator_identity("blurring_sharpening_in_L", at, closed, scalars="alpha beta", unfold=["BS"])
    bilaplacian = matrix_text("-alpha*L@L@H")
    yield operator_identity(
        "equal_coefficients", at, bilaplacian, scalars="alpha beta", given="beta = alpha", unfold=["BS"]
    )


@sheet("M1.4", Library.REALS)
def limit() -> Iterable[Theorem | str]:
    """Taken literally, the limit leaves the state 0 alone; one step is not the flow; two substeps cancel at first order."""
    yield real_function("difference", symbol(parse(derivation("bs-difference").lines[-1])), "lam")
    yield from map(Theorem, ("literal_limit_keeps_only_zero", "one_step_is_not_the_flow"))
    substeps = sp.expand((1 + h * lam) * (1 - h * lam))
    yield real_theorem("substeps_of_size_h", "h lam", "", f"(1 + h * lam) * (1 - h * lam) = {real_text(substeps)}")
    yield Theorem("substeps_have_no_first_order_term")


@sheet("M1.5", Library.OPERATORS)
def euler_factors() -> Iterable[Theorem | str]:
    yield right_hand_side("BS")
    yield Theorem("euler_step_blurs_then_sharpens")


@sheet("M1.5", Library.REALS)
def positive_factors() -> Iterable[Theorem | str]:
    root = sp.sqrt(tau**2 * (beta - alpha) ** 2 + 4 * tau * beta)
    letters = ("alpha", "beta", "tau")
    yield real_function("sharpening", (tau * (beta - alpha) + root) / 2, *letters)
    yield real_function("blurring", (-tau * (beta - alpha) + root) / 2, *letters)
    yield from map(Theorem, ("product", "difference", "both_positive"))


@sheet("M1.6", Library.REALS)
def turing() -> Iterable[Theorem | str]:
    """The growth rate of frequency lam around a state h of all nodes, and where it is largest."""
    for name in ("F", "AC", "Z"):
        structure = catalogue[name].structure
        slope = sum((c * (1 - lam) ** k for k, c in structure.generator.items()), sp.diff(structure.reaction, H)).subs(
            H, h
        )
        yield real_function(f"growth_{name}", sp.expand(public(slope)), "alpha", "beta", "h", "lam")
        yield real_theorem(
            f"{name}_grows_fastest_at_0", "alpha beta h lam", "0 <= alpha -> 0 <= lam",
            f"growth_{name} alpha beta h lam <= growth_{name} alpha beta h 0",
        )  # fmt: skip
    for name in ("ST", "FB", "BS"):
        yield real_function(f"growth_{name}", symbol(catalogue[name]), "alpha", "beta", "lam")
        yield real_theorem(f"{name}_does_not_damp_constant_states", "alpha beta", "", f"growth_{name} alpha beta 0 = 0")
    yield from map(Theorem, ("ST_grows_fastest_at_0", "FB_grows_fastest_at_2", "BS_grows_exactly_in_a_band"))
