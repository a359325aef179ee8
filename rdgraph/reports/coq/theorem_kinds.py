"""Kinds of theorems that several claims share: identities of operators, symbols, refutations by computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from rdgraph.language.tree import Kind
from rdgraph.reports.coq.coq_text import matrix_text, rational_matrix, rational_text, real_text
from rdgraph.reports.coq.sheets import Theorem
from rdgraph.systems.catalogue import catalogue
from rdgraph.theory.filters import symbol

#: What every theorem about operators is about: n nodes, d channels, any matrix A and any field H.
SPACE = "forall (R : comRingType) (n d : nat) (A : 'M[R]_n) (H : 'M[R]_(n, d))"


def coq_name(system: str) -> str:
    """A system's name as an identifier.

    >>> coq_name("FB*-released")
    'FBstar_released'
    """
    return system.replace("++", "pp").replace("*", "star").replace("-", "_")


def right_hand_side(name: str) -> str:
    """A system of the catalogue as a definition over matrices: its coefficients, A, H0 if it has one, H."""
    system = catalogue[name]
    scalars = " ".join(system.coefficients)
    source = " (H0 : 'M[R]_(n, d))" if "H0" in str(system.text) else ""
    given = f" ({scalars} : R)" if scalars else ""
    return (
        f"Definition {coq_name(name)} (R : comRingType) n d{given} (A : 'M[R]_n){source} (H : 'M[R]_(n, d)) :\n"
        f"  'M[R]_(n, d) := {matrix_text(system.expression)}."
    )


def operator_identity(
    name: str, left: str, right: str, *, given: str = "", scalars: str = "", unfold: Sequence[str] = ()
) -> Theorem:
    """left = right for every A and H, from hypotheses in Coq (`given`) about the scalars."""
    coefficients = f" ({scalars} : R)" if scalars else ""
    hypotheses = f"{given} -> " if given else ""
    opened = f"rewrite ?/{' ?/'.join(unfold)}. " if unfold else ""
    return Theorem(name, f"{SPACE}{coefficients}, {hypotheses}{left} = {right}", f"intros; subst; {opened}operators.")


def chain_step(name: str, left: str, right: str, *, fields: Mapping[str, str] | None = None) -> Theorem:
    """One line of a derivation equals the next, where `fields` are defined by expressions."""
    defined = fields or {}
    letters = dict.fromkeys(defined, Kind.FIELD)
    names = "".join(f" ({letter} : 'M[R]_(n, d))" for letter in defined)
    hypotheses = "".join(f"{letter} = {matrix_text(text)} -> " for letter, text in defined.items())
    return Theorem(
        name,
        f"{SPACE}{names}, {hypotheses}{matrix_text(left, **letters)} = {matrix_text(right, **letters)}",
        "intros; subst; operators.",
    )


def symbol_theorem(name: str) -> Theorem:
    """On an eigenvector of L with eigenvalue lam, the right-hand side is the symbol times the vector."""
    scalars = " ".join([*catalogue[name].coefficients, "lam"])
    coefficients, factor = " ".join(catalogue[name].coefficients), ring_text(symbol(catalogue[name]))
    return Theorem(
        f"{coq_name(name)}_symbol",
        f"forall (R : comRingType) (n d : nat) (A : 'M[R]_n) (H : 'M[R]_(n, d)) ({scalars} : R), "
        f"laplacian A *m H = lam *: H -> {coq_name(name)} {coefficients} A H = ({factor}) *: H",
        f"move=> R n d A H {scalars} eigen.\n"
        "have known : A *m H = H - lam *: H by rewrite -eigen; operators.\n"
        f"rewrite /{coq_name(name)}; operators_by known.",
    )


def ring_text(expression: sp.Expr) -> str:
    """A polynomial as a term over a ring: powers and numbers as mathcomp writes them."""
    terms = []
    for term in sp.Add.make_args(sp.expand(expression)):
        number, factors = term.as_coeff_mul()
        powers = [f"{base}" if n == 1 else f"{base} ^+ {n}" for base, n in (f.as_base_exp() for f in factors)]
        size = abs(number)
        scale = [] if size == 1 and powers else [f"{size.p}%:R" if size.q == 1 else f"({size.p}%:R / {size.q}%:R)"]
        terms.append(("- " if number < 0 else "") + " * ".join(scale + powers))
    return " + ".join(f"({t})" if t.startswith("-") else t for t in terms)


def refuted(name: str, left: str, right: str, values: Mapping[str, object], **kinds: Kind) -> Theorem:
    """left and right differ at rational values, by computation."""
    lets = " ".join(_let(letter, value) for letter, value in values.items())
    one, other = rational_text(left, **kinds), rational_text(right, **kinds)
    return Theorem(name, f"{lets} shape {one} = shape {other} /\\ same {one} {other} = false", "decide_by_computation.")


def rational_value(
    name: str, expression: str | sp.Basic, values: Mapping[str, object], result: list[list[object]]
) -> Theorem:
    """An expression's value at rational values, by computation."""
    lets = " ".join(_let(letter, value) for letter, value in values.items())
    text = rational_text(expression)
    conclusion = f"same {text} {rational_matrix(result)} = true"
    return Theorem(name, f"{lets} {conclusion}", "decide_by_computation.")


def _let(letter: str, value: object) -> str:
    text = rational_matrix(value) if isinstance(value, list) else rational_text(str(value))
    return f"let {letter} := {text} in"


def real_theorem(name: str, variables: str, given: str, conclusion: str, proof: str = "") -> Theorem:
    """forall variables : R, given -> conclusion."""
    quantified = f"forall {variables} : R, " if variables else ""
    return Theorem(name, f"{quantified}{f'{given} -> ' if given else ''}{conclusion}", proof)


def real_function(name: str, expression: sp.Expr, *arguments: str) -> str:
    """A definition of a real function from a formula that the package computed."""
    return f"Definition {name} ({' '.join(arguments)} : R) : R := {real_text(expression)}."


def symbol_function(name: str) -> str:
    """A system's symbol as a definition over the reals."""
    return real_function(coq_name(name), symbol(catalogue[name]), *catalogue[name].coefficients, "lam")
