"""The answer about identifiability: what f reveals, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

PROVED, MEASURED, UNDECIDED = "proved", "measured", "undecided"


@dataclass(frozen=True)
class Identifiability:
    """What f reveals of its coefficients, for coefficients in general position.

    `combinations` are independent formulas whose values f determines. `single` are the coefficients and matrices whose
    own value it determines; of those in `local` it is only known that no other value nearby gives the same f (a sign or
    an exchange may be free). `hidden` ones do not occur in f. `rank` is the number of independent combinations, a
    matrix counting once, and the least one where it depends on signs; `status` says whether it is proved or measured.
    """

    combinations: tuple[sp.Expr, ...]
    single: tuple[str, ...]
    hidden: tuple[str, ...]
    local: tuple[str, ...] = ()
    rank: int | None = 0
    status: str = PROVED
    note: str = ""
