"""The words of the language as the page's reader needs them, taken from the real reader so that they cannot drift."""

from __future__ import annotations

import keyword
from typing import Any

from rdgraph.errors import NotApplicable
from rdgraph.syntax import reader, tree
from rdgraph.syntax.assumptions import SIGN_WORDS
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.systems import equation_lines, further_operators
from studies.explorer.javascript_source import function_body


def language() -> dict[str, Any]:
    """Letters, kinds, functions, reserved words and limits, as values that JSON has.

    >>> language()["structural"]["L"], language()["limits"]["exponent"]
    ('operator', 32)
    """
    bodies = dict(_bodies())
    return {
        "structural": {name: str(kind) for name, kind in reader.STRUCTURAL.items()},
        "drivers": {name: str(kind) for name, kind in reader.DRIVERS.items()},
        "usual": list(reader.USUAL_COEFFICIENTS),
        "giving_way": sorted(reader.GIVING_WAY),
        "reserved": dict(reader.RESERVED),
        "keywords": list(keyword.kwlist),
        "kinds": [str(kind) for kind in tree.COEFFICIENT_KINDS],
        "operator_words": list(further_operators.OPERATOR_WORDS),
        "exclusive": [list(pair) for pair in further_operators.EXCLUSIVE_WORDS],
        "sign_words": list(SIGN_WORDS),
        "functions": list(FUNCTIONS),
        "function_bodies": bodies,
        "limits": {
            "length": reader.MAX_LENGTH,
            "nesting": reader.MAX_NESTING,
            "depth": reader.MAX_TREE_DEPTH,
            "exponent": tree.MAX_EXPONENT,
            "digits": tree.MAX_DIGITS,
            "decimal_exponent": tree.MAX_DECIMAL_EXPONENT,
            "equations": equation_lines.MAX_EQUATIONS,
            "name": equation_lines.MAX_NAME,
        },
    }


def _bodies() -> list[tuple[str, str]]:
    """The functions that have a formula; an equation with another one is seen in Python alone."""
    found = []
    for name in FUNCTIONS:
        try:
            found.append((name, function_body(name)))
        except NotApplicable:
            continue
    return found
