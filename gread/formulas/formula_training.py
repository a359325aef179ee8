"""The equation of a formula as it is trained: every constant starts at its mean over the trials."""

from __future__ import annotations

import numpy as np

from rdgraph.distillation.formula_letters import with_function
from rdgraph.distillation.found_formula import Formula
from rdgraph.distillation.prefix_terms import to_text

#: Letters that the settings of a network give kinds and links of their own.
TAKEN = ("alpha", "beta")


def scales(formula: Formula) -> dict[str, float]:
    """What each letter is multiplied by: a positive one is learned between 0 and 1 and starts in the middle, so that
    twice the mean over the trials stands before it; one of either sign starts anywhere between -1 and 1."""
    found = {}
    for name, sign, column in zip(formula.names, formula.lettered.signs, formula.constants.T, strict=True):
        found[name] = float(2 * np.abs(column.mean()) if sign else np.abs(column).max())
    return found


def trained_equation(equation: str, function: str, formula: Formula) -> str:
    """The equation with the formula in place of its function, each letter with its scale.

    >>> import numpy as np, rdgraph as rd
    >>> x = np.linspace(-2, 2, 50)
    >>> found = rd.find_formula(x, [1.5*x, 2.5*x], taken=TAKEN, functions=[])
    >>> trained_equation("-alpha*L@H + phi(H) where phi learned knots=12", "phi", found.formula)
    '-alpha*L@H + phi(H) where phi = 4*gamma*H'
    """
    scale = scales(formula)
    signs = formula.lettered.signs
    written = [f"{'-' if sign < 0 else ''}{scale[n]:.4g}*{n}" for n, sign in zip(formula.names, signs, strict=True)]
    body = to_text(formula.word, written)
    body = body if "H" in body else f"({body})*H**0"
    return with_function(equation, function, body, formula.lettered.statements)
