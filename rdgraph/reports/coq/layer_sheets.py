"""M2.6, M2.9 and M8 in Coq: when one system or layer is another, with computed counter-examples where it is not."""

from __future__ import annotations

from collections.abc import Iterable

from rdgraph.language.tree import Kind
from rdgraph.reports.coq.coq_text import matrix_text
from rdgraph.reports.coq.sheets import Library, Theorem, sheet
from rdgraph.reports.coq.theorem_kinds import SPACE, coq_name, refuted, right_hand_side, symbol_function
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.derivations import euler_map

#: Two nodes that see each other: the graph of the counter-examples.
PAIR: list[list[object]] = [[0, 1], [1, 0]]
WITH_REACTION = ("F", "AC", "Z", "BS", "ST", "FB", "FB*")


def at(name: str, coefficients: str) -> str:
    """A system's right-hand side at A and H (and H0, where it has one)."""
    source = " H0" if "H0" in catalogue[name].text else ""
    return " ".join(f"({coq_name(name)} {coefficients} A{source} H)".split())


def same_systems(
    name: str, left: str, right: str, systems: Iterable[str], *, scalars: str = "", given: str = ""
) -> Theorem:
    """Two right-hand sides agree for every A, H, H0 and every value of the scalars."""
    coefficients = f" ({scalars} : R)" if scalars else ""
    source = " (H0 : 'M[R]_(n, d))" if "H0" in left + right else ""
    unfold = " ".join(f"?/{coq_name(s)}" for s in systems)
    return Theorem(
        name,
        f"{SPACE}{source}{coefficients}, {f'{given} -> ' if given else ''}{left} = {right}",
        f"intros; subst; rewrite {unfold}; operators.",
    )


@sheet("M2.6", Library.OPERATORS)
def reductions() -> Iterable[Theorem | str]:
    names = ("diffusion", "FB", "FB*", "FB-released", "GRAND-l")
    yield from map(right_hand_side, names)
    pair = "alpha beta"
    yield same_systems("FB_is_diffusion", at("FB", pair), at("diffusion", "(alpha - beta)"), names, scalars=pair)
    yield same_systems("FBstar_adds_growth", at("FB*", pair), f"{at('FB', pair)} + beta *: H", names, scalars=pair)
    released = f"(alpha + beta) *: {at('GRAND-l', '')} + (2%:R * beta) *: H"
    yield same_systems("released_FB_is_GRAND_with_growth", at("FB-released", pair), released, names, scalars=pair)
    yield from map(Theorem, ("euler_step_of_FBstar", "euler_step_of_released_FB"))


@sheet("M2.6", Library.REALS)
def reduced_flows() -> Iterable[Theorem | str]:
    """The gains over a time T: the growth factors out."""
    for name in ("diffusion", "FB", "FB*", "FB-released", "GRAND-l"):
        yield symbol_function(name)
    yield from map(Theorem, ("flow_of_FB", "flow_of_FBstar", "flow_of_FB_released"))


@sheet("M2.9", Library.OPERATORS)
def normalisations() -> Iterable[Theorem]:
    """S is the diagonal matrix of the roots of the degrees: D = S S; only its inverse is used."""
    yield from map(Theorem, ("row_filter", "column_filter"))


@sheet("M8.1", Library.OPERATORS)
def gcn_step() -> Iterable[Theorem | str]:
    yield right_hand_side("diffusion")
    yield Theorem("euler_step_is_averaging")
    yield right_hand_side("SGC")
    yield same_systems("SGC_layer", f"H + {at('SGC', '')}", "A *m H", ["SGC"])


@sheet("M8.1", Library.RATIONALS)
def gcn_layer() -> Iterable[Theorem]:
    """A free mixing matrix, or an activation, is not reached by a step with tau alpha = 1, nor by any other."""
    step = euler_map(catalogue["diffusion"], "epsilon").expression
    matrix = {"W": Kind.MATRIX}
    identity: list[list[object]] = [[1, 0], [0, 1]]
    yield refuted("mixing_is_not_a_step", "A@H", "A@H@W", {"A": PAIR, "H": identity, "W": [[5, 4], [5, 6]]}, **matrix)
    values: dict[str, object] = {"A": PAIR, "H": [[-1], [-1]], "W": [[1]], "alpha": 1, "epsilon": 1}
    yield refuted("activation_is_not_a_step", step, "relu(A@H@W)", values, **matrix)


@sheet("M8.2", Library.OPERATORS)
def grand() -> Iterable[Theorem | str]:
    yield from map(right_hand_side, ("diffusion", "GRAND-l", *WITH_REACTION))
    for name in WITH_REACTION:
        yield same_systems(f"{coq_name(name)}_without_reaction", at(name, "alpha 0"), at("diffusion", "alpha"),
                           [name, "diffusion"], scalars="alpha")  # fmt: skip
    names = ["diffusion", "GRAND-l"]
    yield same_systems("linear_GRAND", at("diffusion", "1"), at("GRAND-l", ""), names)
    yield same_systems(
        "alpha_is_a_speed", at("diffusion", "alpha"), f"alpha *: {at('GRAND-l', '')}", names, scalars="alpha"
    )


@sheet("M8.3", Library.OPERATORS)
def cgnn() -> Iterable[Theorem | str]:
    yield right_hand_side("ST")
    printed = matrix_text(catalogue["CGNN"].expression)
    yield Theorem(
        "CGNN_without_mixing", f"{SPACE} (H0 : 'M[R]_(n, d)) (W : 'M[R]_d), W = 0 -> {at('ST', '1 1')} = {printed}"
    )
    yield Theorem(
        "equal_coefficients_are_a_speed",
        f"{SPACE} (H0 : 'M[R]_(n, d)) (W : 'M[R]_d) (alpha : R), W = 0 -> {at('ST', 'alpha alpha')} = alpha *: {printed}",
    )


@sheet("M8.3", Library.RATIONALS)
def cgnn_with_mixing() -> Iterable[Theorem]:
    values: dict[str, object] = {"A": PAIR, "H": [[1], [1]], "H0": [[0], [0]], "W": [[1]], "a": [[1], [1]]}
    kinds = {"W": Kind.MATRIX, "a": Kind.NODE}
    source = catalogue["ST"].expression
    for name, system in (("printed_form_mixes", "CGNN"), ("authors_form_decays", "CGNN-authors")):
        free = {"alpha": 1, "beta": 1} | (values if system == "CGNN" else values | {"W": [[0]]})
        yield refuted(name, source, catalogue[system].expression, free, **kinds)


@sheet("M8.4", Library.RATIONALS)
def grand_plus_plus() -> Iterable[Theorem]:
    """A source at one node of two: for all alpha and beta, ST differs from GRAND++ at one of two states."""
    yield Theorem("no_scalar_coefficient_switches_a_source")
    source, switched = catalogue["ST"].expression, catalogue["GRAND++"].expression
    values: dict[str, object] = {"A": PAIR, "H": [[0], [0]], "H0": [[1], [1]], "M": [[1], [0]], "alpha": 1}
    for beta in (0, 1):
        yield refuted(f"not_at_beta_{beta}", source, switched, values | {"beta": beta}, M=Kind.NODE)


@sheet("M8.4", Library.OPERATORS)
def grand_plus_plus_in_general() -> Iterable[Theorem | str]:
    """At H = 0, H0 = 1 and a source at node 0 alone, GRAND++ is M and ST is beta in every node."""
    yield right_hand_side("ST")
    switched = matrix_text(catalogue["GRAND++"].expression)
    channels = matrix_text(parse("ST", {"beta": "channel"}).expression)
    mask = "M = delta_mx 0 0"
    yield Theorem(
        "no_scalar_coefficients",
        "forall (R : comRingType) (n : nat) (A : 'M[R]_n.+2) (M : 'rV[R]_n.+2) (alpha beta : R), "
        f"{mask} -> ~ (forall H H0 : 'cV[R]_n.+2, {at('ST', 'alpha beta')} = {switched})",
    )
    yield Theorem(
        "no_channel_coefficients",
        "forall (R : comRingType) (n d : nat) (A : 'M[R]_n.+2) (M : 'rV[R]_n.+2) (alpha : R) (beta : 'rV[R]_d.+1), "
        f"{mask} -> ~ (forall H H0 : 'M[R]_(n.+2, d.+1), {channels} = {switched})",
    )


@sheet("M8.5", Library.RATIONALS)
def gcnii() -> Iterable[Theorem]:
    step = euler_map(catalogue["ST"], "epsilon").expression
    values: dict[str, object] = {
        "A": PAIR, "H": [[1], [0]], "H0": [[4], [5]], "a": 1, "alpha": 1, "beta": 1, "epsilon": 1,
    }  # fmt: skip
    scalars = {"a": Kind.SCALAR}
    yield refuted("step_of_ST_is_not_GCNII", step, GCNII, values, **scalars)


GCNII = "(1 - a)*(A@H) + a*H0"


@sheet("M8.5", Library.OPERATORS)
def gcnii_with_leak() -> Iterable[Theorem | str]:
    """Without the leak the weights on H and A H sum to 1 instead of 1 - a: constant states decide."""
    yield right_hand_side("ST")
    yield right_hand_side("APPNP")
    layer = matrix_text(GCNII, a=Kind.SCALAR)
    yield Theorem(
        "with_the_leak_it_is_GCNII",
        f"{SPACE} (H0 : 'M[R]_(n, d)) (alpha beta tau a : R), tau * (alpha + beta) = 1 -> a = tau * beta -> "
        f"H + tau *: {at('APPNP', 'alpha beta')} = {layer}",
    )
    yield Theorem(
        "without_the_leak_it_never_is",
        "forall (R : comRingType) (n d : nat) (A : 'M[R]_n.+1) (alpha beta tau a : R), "
        "A *m const_mx 1 = const_mx 1 :> 'cV_n.+1 -> "
        f"(forall H H0 : 'cV[R]_n.+1, H + tau *: {at('ST', 'alpha beta')} = {layer}) -> a = 0",
    )


@sheet("M8.6", Library.OPERATORS)
def gpr() -> Iterable[Theorem | str]:
    """n Euler steps: the n-th power of a polynomial in A, of degree at most 1 (2 for BS)."""
    for name, growth in (("diffusion", 1), ("FB", 1), ("FB*", 1), ("BS", 2)):
        system = catalogue[name]
        scalars = " ".join(system.coefficients)
        yield right_hand_side(name)
        step = f"(fun X : 'M[R]_(n.+1, d) => X + tau *: {coq_name(name)} {scalars} A X)"
        yield Theorem(
            f"{coq_name(name)}_steps_are_a_polynomial",
            f"forall (R : comRingType) (n d k : nat) (A : 'M[R]_n.+1) (H : 'M[R]_(n.+1, d)) ({scalars} tau : R), "
            f"exists p : {{poly R}}, (size p <= ({growth} * k).+1)%N /\\ iter k {step} H = horner_mx A p *m H",
        )


@sheet("M8.6", Library.REALS)
def gpr_converse() -> Iterable[Theorem | str]:
    """I + A^2 doubles constant states, and more than doubles nothing: the factors of two steps (one of BS) do not."""
    for name, steps in (("diffusion", 2), ("FB", 2), ("FB*", 2), ("BS", 1)):
        scalars = list(catalogue[name].coefficients)
        yield symbol_function(name)
        yield Theorem(
            f"{coq_name(name)}_does_not_reach_I_plus_A_squared",
            f"forall {' '.join(scalars)} tau : R, "
            f"~ (forall lam, (1 + tau * {coq_name(name)} {' '.join(scalars)} lam) ^ {steps} = 1 + (1 - lam) ^ 2)",
        )


@sheet("M8.9", Library.OPERATORS)
def special_cases() -> Iterable[Theorem | str]:
    """The models that are special cases; M8.4 and M8.5 refute GRAND++ and GCNII."""
    yield from map(right_hand_side, ("diffusion", "GRAND-l", "ST", "SGC"))
    yield same_systems("linear_GRAND", at("diffusion", "1"), at("GRAND-l", ""), ["diffusion", "GRAND-l"])
    yield same_systems("SGC_layer", at("diffusion", "1"), at("SGC", ""), ["diffusion", "SGC"])
    printed = matrix_text(catalogue["CGNN"].expression)
    yield Theorem(
        "CGNN_without_mixing", f"{SPACE} (H0 : 'M[R]_(n, d)) (W : 'M[R]_d), W = 0 -> {at('ST', '1 1')} = {printed}"
    )


@sheet("M8.9", Library.RATIONALS)
def other_models() -> Iterable[Theorem | str]:
    yield from gcnii()
    yield from grand_plus_plus()
