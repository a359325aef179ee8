"""Numbers given by users as exact ones: 0.1 is 1/10."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument


def exact_number(value: Any, what: str) -> sp.Expr:
    """A number as sympy rational (decimals as written); symbolic expressions unchanged.

    Numbers are int, float, Fraction, Decimal, and scalars of sympy, numpy or torch, also as arrays without axes.

    >>> exact_number(0.1, "step"), exact_number(Decimal("2.50"), "T")
    (1/10, 5/2)
    """
    plain = value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value
    if isinstance(plain, float | Decimal | sp.Float):
        if not math.isfinite(plain):
            raise InvalidArgument(f"expected a finite {what}, got {value}")
        # numpy prints a float32 with the digits that it has, not those of the float64 next to it
        return sp.Rational(str(value if type(value).__module__ == "numpy" else plain))
    try:
        converted = sp.sympify(plain, strict=True)
    except sp.SympifyError:
        converted = None
    if not isinstance(converted, sp.Expr) or converted.is_real is False or converted.has(sp.oo, sp.nan, sp.zoo):
        raise InvalidArgument(
            f"expected a real {what}, got {value!r:.60}; give a number such as 2, 0.5 or Fraction(1, 3)"
        )
    return converted
