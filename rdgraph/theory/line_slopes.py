"""The extremes of slopes that are sums of letters times functions of the state alone, by interval arithmetic.

A slope c_1 g_1(h) + c_2 g_2(h) + ... lies between the sums of the extremes of its parts; with one part that depends on
h these are its own. The extremes of every g over the reals come from `rdgraph.decisions.line_extents`.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import sympy as sp

from rdgraph.algebra.normal_form import H
from rdgraph.decisions.budget import limited
from rdgraph.decisions.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.decisions.judge import rest_on_enclosures
from rdgraph.decisions.line_extents import Extreme, infimum, supremum
from rdgraph.decisions.maxima import Candidate
from rdgraph.decisions.regions import strict_sign
from rdgraph.errors import Undecided

#: More parts than this are not combined; seconds for the extremes of one of them.
MAX_PARTS, SECONDS = 4, 2.5


def line_extremes(slope: sp.Expr, domain: Domain) -> tuple[tuple[Candidate, ...], bool] | None:
    """Candidates for the extreme values of a slope over the reals, and whether they are its own; None without any.

    Raises `Split` where the sign of a coefficient decides whether it is bounded.

    >>> a = sp.Symbol("a", positive=True)
    >>> found, exact = line_extremes(a * sp.exp(-(H**2)) * (1 - 2 * H**2), Domain())
    >>> [c.value for c in found], exact
    ([-2*a*exp(-3/2), a], True)
    """
    parts = _parts(_unscaled(slope, domain))
    moving = [c for c, g in parts.items() if g.has(H)]
    if len(moving) > MAX_PARTS or any(g.free_symbols - {H} for g in parts.values()):
        return None
    rest = sp.Add(*(c * g for c, g in parts.items() if not g.has(H)))
    try:
        ends = {c: limited(SECONDS, _both, parts[c]) for c in moving}
    except (Undecided, sp.PolynomialError, NotImplementedError):
        return None
    if not moving:
        return None
    rest_on_enclosures()
    choices = [[_product(c, end.value, domain) for end in ends[c]] for c in moving]
    values = [rest + sp.Add(*chosen) for chosen in itertools.product(*choices) if not _is_open(chosen)]
    infinite = {x for chosen in choices for x in chosen if x in (sp.oo, -sp.oo)}
    candidates = [Candidate(v) for v in values if not v.has(sp.oo, -sp.oo)] + [Candidate(x) for x in infinite]
    return tuple(candidates), len(moving) == 1 and all(end.exact for end in ends[moving[0]])


def _unscaled(slope: sp.Expr, domain: Domain) -> sp.Expr:
    """The slope as a function of c h, where functions see the state times one letter c that is not zero."""
    calls = [call for call in slope.atoms(sp.Function) if call.has(H)]
    scales = {sp.expand(call.args[0]).coeff(H) for call in calls}
    scale = next(iter(scales)) if len(scales) == 1 else sp.S.One
    if not scale.free_symbols or scale.has(H) or domain.sign(scale) not in (POSITIVE, NEGATIVE):
        return slope
    return sp.expand(slope.xreplace({H: H / scale}))


def _parts(slope: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """A sum by the letters in front: {coefficient: function of the state}, rational factors with the functions."""
    parts: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(slope):
        front, function = term.as_independent(H, as_Add=False)
        number, letters = front.as_coeff_Mul(rational=True)
        if not letters.free_symbols:
            number, letters = front, sp.S.One
        parts[letters] = parts.get(letters, sp.S.Zero) + number * function
    return {letters: function for letters, function in parts.items() if function != 0}


@lru_cache(maxsize=512)
def _both(function: sp.Expr) -> tuple[Extreme, Extreme]:
    return infimum(function, H), supremum(function, H)


def _product(letters: sp.Expr, end: sp.Expr, domain: Domain) -> sp.Expr:
    if end not in (sp.oo, -sp.oo):
        return letters * end
    sign = strict_sign(domain, letters)
    return sp.S.Zero if sign == 0 else sign * end


def _is_open(chosen: tuple[sp.Expr, ...]) -> bool:
    """Whether infinite parts of both signs meet; each of them counts by itself."""
    return sp.oo in chosen and -sp.oo in chosen
