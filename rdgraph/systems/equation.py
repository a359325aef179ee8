"""`Equation`: one line u' = ... or u'' = ..., and its right-hand side split into drift and noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import sympy as sp

from rdgraph.errors import InvalidArgument, LanguageError
from rdgraph.language.printer import row, sign, to_latex, to_mathml, to_text
from rdgraph.language.reader import NOISE_LETTER, PRIME
from rdgraph.language.tree import (
    ELEMENTWISE,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Times,
    TypeMismatch,
    kind_of,
    names_in,
)
from rdgraph.language.unfolding import ARGUMENT, unfolded

# ---------------------------------------------------------------------- spelling
# The source form of an equation that declares functions: `g(H) where g = H**3/(1 + H**2)`.


@dataclass(frozen=True)
class Spelling:
    """A right-hand side that calls declared functions, and their definitions with H as the argument.

    A definition may use the functions before it; definitions that the right-hand side does not need are omitted.
    """

    expression: sp.Basic
    functions: tuple[tuple[str, sp.Basic], ...]

    @classmethod
    def of(cls, expression: sp.Basic, functions: Mapping[str, sp.Basic]) -> Spelling | None:
        """The spelling of a tree; None where it calls no declared function."""
        needed = _called(expression)
        for name, definition in reversed(list(functions.items())):
            needed |= _called(definition) if name in needed else set()
        used = tuple((name, definition) for name, definition in functions.items() if name in needed)
        return cls(expression, used) if used else None

    @property
    def unfolded(self) -> sp.Basic:
        """The right-hand side with the functions written out."""
        return unfolded(self.expression, dict(self.functions))

    def replaced(self, letters: Mapping[sp.Basic, sp.Basic]) -> Spelling:
        """The same spelling with coefficients replaced, in the definitions too."""
        trees = tuple((name, definition.xreplace(dict(letters))) for name, definition in self.functions)
        return Spelling(self.expression.xreplace(dict(letters)), trees)

    def declarations(self) -> list[str]:
        """The definitions of functions, as written after `where`."""
        return [f"{name} = {to_text(definition)}" for name, definition in self.functions]

    def latex(self) -> str:
        """The right-hand side, and the definitions after it."""
        texts = [f"{to_latex(Call(name, ARGUMENT))} = {to_latex(definition)}" for name, definition in self.functions]
        return to_latex(self.expression) + r",\quad " + r",\ ".join(texts)

    def mathml(self) -> str:
        """The right-hand side in MathML, and the definitions after it."""
        parts = [to_mathml(self.expression)]
        for name, definition in self.functions:
            parts += [sign(","), '<mspace width="1em"/>', to_mathml(Call(name, ARGUMENT)), sign("=")]
            parts.append(to_mathml(definition))
        return row(*parts)


def _called(tree: sp.Basic) -> set[str]:
    return {call.function for call in tree.atoms(Call)}


# ---------------------------------------------------------------------- equation
#: The highest derivative an equation may have on its left.
MAX_ORDER = 2


@dataclass(frozen=True)
class Equation:
    """The derivative of a field of the given order is `expression`; `spelling` is its source form.

    >>> from rdgraph.language.reader import read_expression
    >>> print(Equation("H", 2, read_expression("-beta*H")))
    H'' = -beta*H
    """

    field: str
    order: int
    expression: sp.Basic
    spelling: Spelling | None = None

    def __post_init__(self) -> None:
        if self.spelling is not None and self.spelling.unfolded != self.expression:
            raise InvalidArgument("the spelling belongs to another expression; pass spelling=None")
        if not 1 <= self.order <= MAX_ORDER:
            raise InvalidArgument(f"an equation has order 1 or 2, got order {self.order}; write several equations")
        kind = kind_of(self.expression)
        if kind not in ELEMENTWISE:
            article = "an" if kind is Kind.OPERATOR else "a"
            raise LanguageError(
                to_text(self.expression) if kind is Kind.OPERATOR else "", 0,
                expected=f"a field: an expression in {self.field}", got=f"{article} {kind}",
                remedy=f"apply it to the state, as in A@{self.field} or beta*{self.field}",
            )  # fmt: skip
        split_noise(self.expression)

    def __str__(self) -> str:
        return f"{self.left} = {self.written}"

    @property
    def left(self) -> str:
        return self.field + PRIME * self.order

    @property
    def written(self) -> str:
        """The right-hand side, with declared functions as calls."""
        return to_text(self.spelling.expression if self.spelling else self.expression)

    def latex(self) -> str:
        """LaTeX of the right-hand side, and of the functions declared for it."""
        return self.spelling.latex() if self.spelling else to_latex(self.expression)

    def mathml(self) -> str:
        """MathML of the right-hand side, and of the functions declared for it."""
        return self.spelling.mathml() if self.spelling else to_mathml(self.expression)

    @property
    def states(self) -> tuple[str, ...]:
        """The states of the equation: its field, and the field's velocity where it is of second order."""
        return tuple(self.field + PRIME * k for k in range(self.order))

    def replaced(self, letters: dict[sp.Basic, sp.Basic]) -> Equation:
        """The same equation with coefficients replaced, in the spelling too."""
        spelling = self.spelling.replaced(letters) if self.spelling else None
        return Equation(self.field, self.order, self.expression.xreplace(letters), spelling)


def split_noise(tree: sp.Basic) -> tuple[sp.Basic, sp.Basic | None]:
    """The terms without xi, and the factor of xi; None without noise.

    >>> from rdgraph.language.reader import read_expression
    >>> drift, factor = split_noise(read_expression("-L@H + sigma*H*xi"))
    >>> to_text(drift), to_text(factor)
    ('-L@H', 'sigma*H')
    """
    drift: list[sp.Basic] = []
    noise: list[sp.Basic] = []
    for unit, term in signed_terms(tree):
        target, part = (noise, _noise_factor(term)) if _is_noisy(term) else (drift, term)
        target.append(part if unit == 1 else Negative(part))
    if not noise:
        return tree, None
    return _added(drift), _added(noise)


def _added(terms: list[sp.Basic]) -> sp.Basic:
    return (
        reduce(lambda a, b: Minus(a, b.inner) if isinstance(b, Negative) else Plus(a, b), terms) if terms else sp.S.Zero
    )


def signed_terms(tree: sp.Basic, sign: sp.Integer = sp.S.One) -> list[tuple[sp.Integer, sp.Basic]]:
    """The summands of a tree, each with its sign.

    >>> from rdgraph.language.reader import read_expression
    >>> [(int(sign), to_text(term)) for sign, term in signed_terms(read_expression("beta*(H0 - H) - L@H"))]
    [(1, 'beta*(H0 - H)'), (-1, 'L@H')]
    """
    match tree:
        case Plus():
            return signed_terms(tree.left, sign) + signed_terms(tree.right, sign)
        case Minus():
            return signed_terms(tree.left, sign) + signed_terms(tree.right, -sign)
        case Negative():
            return signed_terms(tree.inner, -sign)
    return [(sign, tree)]


def _is_noisy(tree: sp.Basic) -> bool:
    return any(n.name == NOISE_LETTER for n in names_in(tree))


def _noise_factor(term: sp.Basic) -> sp.Basic:
    """The factor of xi in a term, of which xi must be a factor exactly once."""
    match term:
        case Name():
            return sp.S.One
        case Negative():
            return Negative(_noise_factor(term.inner))
        case Times() if _is_noisy(term.left) != _is_noisy(term.right):
            noisy, other = (term.left, term.right) if _is_noisy(term.left) else (term.right, term.left)
            inner = _noise_factor(noisy)
            return other if inner == 1 else Times(inner, other) if noisy is term.left else Times(other, inner)
        case Over() if not _is_noisy(term.right):
            return Over(_noise_factor(term.left), term.right)
    raise TypeMismatch(
        "white noise as a factor of a term, as in sigma*xi or sigma*u*xi",
        to_text(term),
        "write the noise last: ... + sigma*xi",
    )
