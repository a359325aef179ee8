"""Definitions of functions of the user: trees of the language, or formulas that are smooth on all reals."""

from __future__ import annotations

import re

import sympy as sp

from rdgraph.algebra.normal_form import Algebra, H
from rdgraph.decisions.domain import Domain
from rdgraph.errors import InvalidArgument, LanguageError
from rdgraph.syntax import formula_reader
from rdgraph.syntax.functions import record_of
from rdgraph.syntax.reader import Vocabulary, read_expression
from rdgraph.syntax.tree import Kind, Name, kind_of
from rdgraph.syntax.unfolding import ARGUMENT

#: Smooth functions on all reals or with a proof of definedness; kinks can be written in the language alone.
_SMOOTH = (sp.log, sp.atan, sp.asinh, sp.sinh, sp.cosh, sp.erf)


def read_definition(definition: str | sp.Expr) -> tuple[sp.Basic | None, sp.Expr]:
    """The tree of a definition in the language, or None, and its formula in H.

    >>> read_definition("x**2")[1], read_definition("x*erf(x)")
    (H**2, (None, H*erf(H)))
    """
    if isinstance(definition, sp.Expr):
        if len(definition.free_symbols) != 1:
            raise InvalidArgument(f"expected a definition in one symbol, got {definition}")
        letter = str(next(iter(definition.free_symbols)))
        text = sp.sstr(definition).replace("Abs(", "abs(")
    elif isinstance(definition, str):
        text, letter = definition, "x" if re.search(r"\bx\b", definition) else "H"
    else:
        raise InvalidArgument(f"expected a definition as text or sympy expression, got {type(definition).__name__}")
    try:
        tree = read_expression(text, Vocabulary({letter: Kind.FIELD}))
    except LanguageError:
        formula = definition if isinstance(definition, sp.Expr) else formula_reader.read_expression(text)
        return None, _total(formula, letter)
    if kind_of(tree) is not Kind.FIELD:
        raise InvalidArgument(f"expected a definition in the letter x, got {text!r:.60}, which does not depend on it")
    tree = tree.xreplace({Name(letter, Kind.FIELD): ARGUMENT})
    return tree, Algebra({"H": H}, {"H": Kind.FIELD}).normal(tree)


def _total(formula: sp.Basic, letter: str) -> sp.Expr:
    """A formula in H that is proved to be smooth on all reals; others are refused."""
    names = sorted(x.name for x in formula.free_symbols)
    if not isinstance(formula, sp.Expr) or names != [letter]:
        raise InvalidArgument(f"expected a definition in the letter {letter}, got the letters {', '.join(names)}")
    plain = formula.xreplace(dict.fromkeys(formula.free_symbols, H))
    for part in sp.preorder_traversal(plain):
        if not _is_smooth(part):
            raise InvalidArgument(
                f"expected a definition in smooth functions ({', '.join(k.__name__ for k in _SMOOTH)} and those of "
                f"the language), got {type(part).__name__}; write kinks in the language, as in relu(x)"
            )
        for need in _needs(part):
            if Domain().proves(need) is not True:
                raise InvalidArgument(
                    f"expected a definition that is smooth on all reals, got one for which {need} is not proved"
                )
    return plain


def _is_smooth(part: sp.Basic) -> bool:
    """Whether a part of a formula is a number, the letter, arithmetic or a smooth function."""
    if isinstance(part, sp.Rational | sp.NumberSymbol | sp.Add | sp.Mul | sp.Pow | sp.exp) or part == H:
        return True
    record = record_of(part)
    return part.func in _SMOOTH or (record is not None and record.pieces is None)


def _needs(part: sp.Basic) -> list[sp.Basic]:
    """What must hold for a power or a logarithm to be smooth."""
    match part:
        case sp.Pow() if part.exp.is_Integer:
            return [] if part.exp > 0 else [sp.Ne(part.base, 0, evaluate=False)]
        case sp.Pow():
            return [sp.Gt(part.base, 0, evaluate=False)]
        case sp.log():
            return [sp.Gt(part.args[0], 0, evaluate=False)]
    return []
