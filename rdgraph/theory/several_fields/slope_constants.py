"""Lipschitz constants of several fields as answers: a formula, whether it is the supremum, and what it means."""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.budget import within_budget
from rdgraph.decisions.judge import BOUNDED, watched
from rdgraph.errors import Undecided
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.answer_symbols import R, T, public, s
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.slope_sums import SlopeSum, slope_sum

NORM = "inf-norm"

#: Value (None where there is none), whether it is the supremum, the norm, and a note.
Answer = tuple[sp.Expr | None, bool, str, str]


def slope_constant(system: System, normalisation: str, *, is_local: bool, is_one_sided: bool) -> Answer:
    """The largest sum of |slopes| over a row, for all states or on |u| <= R in every field.

    >>> from rdgraph.systems.parser import parse
    >>> slope_constant(parse("u' = v - L@u; v' = -u"), "symmetric", is_local=False, is_one_sided=False)
    (s + 2, True, 'inf-norm', 's is the largest row sum of A')
    """
    find_normalisation(normalisation)

    @within_budget(lambda problem: (None, False, NORM, f"undecided: {problem}"))
    def answer() -> Answer:
        with watched() as watch:
            found = _best(system, normalisation, is_local=is_local, is_one_sided=is_one_sided)
        if found.value.has(sp.oo):
            return None, found.is_exact, NORM, _absence(found, is_local, is_one_sided)
        return public(found.value), found.is_exact, NORM, _remark(system, found, watch.bounded)

    return answer()


def _best(system: System, normalisation: str, *, is_local: bool, is_one_sided: bool) -> SlopeSum:
    """The supremum, or the bound term by term where the search for it ends without one."""
    try:
        return slope_sum(system, normalisation, is_local=is_local, is_one_sided=is_one_sided)
    except Undecided:
        return slope_sum(system, normalisation, is_local=is_local, is_one_sided=is_one_sided, is_sharp=False)


def _absence(found: SlopeSum, is_local: bool, is_one_sided: bool) -> str:
    what = "one-sided constant" if is_one_sided else "Lipschitz constant"
    where = "on |u| <= R" if is_local else "for all states"
    if found.is_exact:
        return f"no finite {what} {where}: a slope is a polynomial in the states that is not constant"
    return f"undecided: no finite bound for a {what} {where} was found; tried exact slopes and the chain rule"


def _remark(system: System, found: SlopeSum, bounded: bool) -> str:
    """What a reader must know to use the formula."""
    value = found.value
    parts = [] if found.is_exact else ["upper bound, not claimed to be attained"]
    parts += [BOUNDED] if bounded else []
    parts += ["|u| <= R in every field, starts included"] if value.has(R) and len(system.fields) > 1 else []
    parts += ["s is the largest row sum of A"] if value.has(s) else []
    parts += [f"s_{n} is the largest row sum of |{n}|" for n in system.operators.names if _has(value, f"s_{n}")]
    matrices = [x.name for x in value.free_symbols if x.name.startswith("norm_")]
    parts += [f"{name} is the largest column sum of |{name.removeprefix('norm_')}|" for name in sorted(matrices)]
    parts += spread_remarks(system, value)
    parts += ["at times 0 <= t <= T"] if value.has(T) else []
    parts += ["of the drift, without noise"] if system.is_noisy else []
    return "; ".join(parts)


def spread_remarks(system: System, value: sp.Expr) -> list[str]:
    """Which letters of a bound stand for the largest of several values."""
    spread = Magnitudes(system, find_normalisation("row"), is_local=False).spread
    return [f"{name} counts by its largest modulus" for name in sorted(spread) if _has(value, name)]


def _has(value: sp.Expr, name: str) -> bool:
    return any(x.name == name for x in value.free_symbols)
