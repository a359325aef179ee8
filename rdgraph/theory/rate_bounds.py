"""A bound K of the slope of a field by the chain rule, as a formula to be evaluated at numbers.

|f(X) - f(Y)| <= K |X - Y| in the norm of the normalisation, for all states or on |h| <= R. It is an upper bound that is
cheap to find; `rdgraph.theory.lipschitz` has the exact constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.language.answer_symbols import R, h, s
from rdgraph.language.normal_form import H, State
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import within_budget
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import remembered
from rdgraph.reals.regions import cases
from rdgraph.systems.canonical.cancelled_parts import with_cancelled
from rdgraph.systems.structure import structure_of
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import norm_bounds
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.slope_sums import linear_rate, slope_sum
from rdgraph.theory.slope_bounds import steepest, sup_magnitude
from rdgraph.vocabulary.functions import in_exponentials
from rdgraph.vocabulary.normalisations import Normalisation, find_normalisation


@dataclass(frozen=True)
class RateBound:
    """K in the coefficients, norm_W for a matrix W, the largest row sum s of |A| and, if it is local, the radius R.

    For several fields also s_B, the largest row sum of an operator B, and the end T of a run.
    """

    value: sp.Expr
    system: System

    @property
    def is_finite(self) -> bool:
        return not self.value.has(sp.oo, -sp.oo, sp.zoo, sp.nan)

    @property
    def is_local(self) -> bool:
        return bool(self.value.has(R))

    @property
    def holds_everywhere(self) -> bool:
        """Whether the bound is finite and one number for all states."""
        return self.is_finite and not self.is_local

    def at(
        self,
        coefficients: Mapping[str, Any] | None = None,
        *,
        radius: Any = 1.0,
        row_sum: Any = 1.0,
        end: Any = 1.0,
        operator_sums: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """K at numbers or arrays that broadcast; a coefficient without a value is 1, or -1 if it is negative.

        Args:
            coefficients: by name.
            radius: R.
            row_sum: s.
            end: T, for coefficients that depend on the time.
            operator_sums: the largest row sums of |B| by the letter of further operators; 1 where not given.

        Returns:
            The bounds.

        >>> from rdgraph.systems.parser import parse
        >>> float(rate_bound(parse("-alpha*L@H + beta*tanh(H)")).at({"alpha": 0.5}))
        2.0
        """
        sums = {f"s_{name}": 1.0 for name in self.system.operators.names}
        sums |= {f"s_{name}": value for name, value in (operator_sums or {}).items()}
        return _evaluate(self.value, self.system, coefficients or {}, {"R": radius, "s": row_sum, "T": end, **sums})


def _evaluate(
    expression: sp.Expr, system: System, given: Mapping[str, Any], more: Mapping[str, Any] | None = None
) -> np.ndarray:
    values: dict[str, Any] = dict(more or {})
    spread = Magnitudes(system, find_normalisation("row"), is_local=False).spread
    for name, kind in system.letters.items():
        sign = -1.0 if system.assumptions.sign(name) in ("negative", "nonpositive") else 1.0
        values[name] = np.asarray(given.get(name, sign), dtype=float)
        if kind is Kind.MATRIX:
            values[f"norm_{name}"] = _norm(values[name])
        elif name in spread:
            values[name] = _largest(values[name], -2 if kind is Kind.NODE and values[name].ndim > 1 else -1)
    letters = sorted(expression.free_symbols, key=str)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(_function(expression, tuple(letters))(*(values[x.name] for x in letters)), dtype=float)
    except OverflowError:  # where numpy would give inf for arrays
        return np.asarray(np.inf)


def _largest(values: np.ndarray, axis: int) -> np.ndarray:
    """The number with the largest modulus along an axis, with that axis kept at length 1."""
    if not values.ndim:
        return values
    return np.take_along_axis(values, np.abs(values).argmax(axis, keepdims=True), axis)


@lru_cache(maxsize=1024)
def _function(expression: sp.Expr, letters: tuple[sp.Symbol, ...]) -> Callable[..., Any]:
    roots = {root: root.evalf() for root in expression.atoms(sp.CRootOf)}  # numbers that numpy has no name for
    function: Callable[..., Any] = sp.lambdify(letters, in_exponentials(expression.xreplace(roots)), "numpy")
    return function


def equilibrium_size(system: System, values: Mapping[str, Any] | None = None) -> np.ndarray:
    """The largest modulus of a constant steady state of a polynomial reaction; 0 where there is none.

    These states are the faces of the invariant boxes of such systems. Coefficients may be arrays that broadcast.

    >>> from rdgraph.systems.parser import parse
    >>> round(float(equilibrium_size(parse("-alpha*L@H + beta*H*(4 - H**2)"))), 9)
    2.0
    """
    if not system.is_single:
        return np.zeros(())
    structure = system.structure
    field = sp.S.Zero if structure.coupled != 0 or structure.has_source else structure.scalar_field(h, sp.S.Zero)
    if not field.is_polynomial(h) or sp.degree(field, h) < 1:
        return np.zeros(())
    weights = [_evaluate(c, system, values or {}) for c in sp.Poly(field, h).all_coeffs()]
    leading, *rest = np.broadcast_arrays(*weights)
    with np.errstate(all="ignore"):
        ratios = np.stack([-x / leading for x in rest], -1)
    ratios = np.where(np.isfinite(ratios).all(-1, keepdims=True), ratios, 0.0)
    companion = np.zeros((*ratios.shape, ratios.shape[-1]))
    companion[..., 0, :] = ratios
    companion[..., range(1, len(rest)), range(len(rest) - 1)] = 1.0
    roots = np.linalg.eigvals(companion)
    real = np.abs(roots.imag) <= 1e-6 * np.maximum(1.0, np.abs(roots))
    return np.asarray(np.where(real, np.abs(roots), 0.0).max(-1))


def _norm(matrix: np.ndarray) -> Any:
    """A bound of the 1-, 2- and inf-norm of matrices (..., d, d), of shape (..., 1, 1); a number stands for itself."""
    if matrix.ndim < 2:
        return np.abs(matrix)
    size = np.abs(matrix)
    return np.maximum(size.sum(-1).max(-1), size.sum(-2).max(-1))[..., None, None]


@remembered(256)
def rate_bound(system: System, normalisation: str = "symmetric") -> RateBound:
    """K for all states if there is one, else on |h| <= R; infinite where neither was found.

    >>> from rdgraph.systems.parser import parse
    >>> print(rate_bound(parse("-alpha*L@H + beta*H*(1 - H)")).value)
    2*R*Abs(beta) + Abs(alpha) + Abs(alpha - beta)
    """
    record = find_normalisation(normalisation)
    rule = _chain_rule if system.is_single else _of_fields
    bounds = (RateBound(rule(system, record, local), system) for local in (False, True))
    return next((bound for bound in bounds if bound.is_finite), RateBound(sp.oo, system))


@remembered(256)
def rates_of_parts(system: System, normalisation: str = "symmetric") -> tuple[RateBound, RateBound]:
    """K of the linear terms of every field in itself, and K of all other terms: for all states, else on |u| <= R.

    >>> from rdgraph.systems.parser import parse
    >>> linear, rest = rates_of_parts(parse("u' = u*v - Du*L@u; v' = 1 - v - Dv*L@v"), "row")
    >>> linear.value, rest.value
    (Max(2*Du, 2*Dv + 1), 2*R)
    """
    linear = RateBound(linear_rate(system, normalisation), system)
    rests = (
        slope_sum(system, normalisation, is_local=local, is_sharp=False, is_rest=True).value for local in (False, True)
    )
    bounds = (RateBound(value, system) for value in rests)
    return linear, next((bound for bound in bounds if bound.is_finite), RateBound(sp.oo, system))


def _of_fields(system: System, record: Normalisation, local: bool) -> sp.Expr:
    """The largest sum of |slopes| over a row, in the inf-norm."""
    return slope_sum(system, record.name, is_local=local, is_sharp=False).value


def _chain_rule(system: System, record: Normalisation, local: bool) -> sp.Expr:
    """sum_k |c_k| |A|^k + sup |r'| + the slope of the coupled terms, with |A| <= s where the norm does not bound A."""
    structure, size = system.structure, s if record.norm is None else sp.S.One
    if record.has_degrees:  # L = D - A stays a symbol: a row holds a degree and the entries that add up to it
        algebra = replace(system.algebra, definitions={})
        structure = structure_of(with_cancelled(system.expression, algebra, lambda: system.domain), algebra.kinds)
    loose = {x: sp.Symbol(x.name, real=True) for x in system.algebra.symbols.values() if not isinstance(x, State)}
    measure = norm_bounds(system, record.name, local=local)
    total = sp.Add(*(_modulus(c.xreplace(loose), measure) * size**k for k, c in structure.generator.items()))
    total += _reaction_slope(structure.reaction, measure, loose)
    return sp.expand(total + measure.slope(structure.coupled.xreplace(loose)))


def _modulus(coefficient: sp.Expr, measure: Magnitudes) -> sp.Expr:
    return measure.size(sp.expand(coefficient)) if measure.is_spread(coefficient) else sp.Abs(coefficient)


def _reaction_slope(reaction: sp.Expr, measure: Magnitudes, loose: Mapping[sp.Symbol, sp.Symbol]) -> sp.Expr:
    """sup |r'|, term by term; where that is infinite, from the extremes of the slope."""
    if reaction == 0:
        return sp.S.Zero
    loosened, local = reaction.xreplace(loose), measure.is_local
    if measure.is_spread(loosened):
        return measure.slope(loosened)
    for bound in (
        norm_bounds(measure.system, "row", local=local).slope(loosened),
        sup_magnitude(sp.expand(sp.diff(loosened, H)), local),
    ):
        if not bound.has(sp.oo):
            return bound
    return sp.oo if reaction.is_polynomial(H) else _largest_slope(loosened, Domain(), local)


@within_budget(lambda problem: sp.oo)
def _largest_slope(reaction: sp.Expr, domain: Domain, local: bool) -> sp.Expr:
    """The largest |slope| for all coefficients, over all cases of their signs."""
    return sp.Max(*(value for _, value in cases(domain, partial(steepest, reaction, local=local))))
