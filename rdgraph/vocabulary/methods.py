"""`Method`: integrators as records, with their tableaux and facts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.records import Records

# ---------------------------------------------------------------------- runge kutta
# Explicit Runge-Kutta methods as data: tableau, stability polynomial, real stability limit, monotonicity radius.

z = sp.Symbol("z", real=True)


@dataclass(frozen=True)
class Tableau:
    """Weights of an explicit method, checked: strictly lower triangular, consistent, linear order as declared.

    >>> import sympy as sp, rdgraph as rd
    >>> half = sp.Rational(1, 2)
    >>> rd.vocabulary.Tableau("heun", ((), (sp.S.One,)), (half, half), 2).stability
    z**2/2 + z + 1
    """

    name: str
    stages: tuple[tuple[sp.Rational, ...], ...]
    weights: tuple[sp.Rational, ...]
    order: int
    _: KW_ONLY
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != i for i, row in enumerate(self.stages)) or len(self.weights) != len(self.stages):
            raise InvalidArgument(f"expected stage i to have i entries and one weight per stage in {self.name}")
        taylor = sum(z**k / sp.factorial(k) for k in range(self.order + 1))
        difference = sp.Poly(self.stability - taylor, z)
        if not difference.is_zero and min(m[0] for m in difference.monoms()) <= self.order:
            raise InvalidArgument(
                f"{self.name} declares order {self.order}, but its stability polynomial is {self.stability}"
            )

    @property
    def nodes(self) -> tuple[sp.Rational, ...]:
        return tuple(sum(row, sp.S.Zero) for row in self.stages)

    @property
    def stability(self) -> sp.Expr:
        """R(z) = 1 + z b^T (1 - z A)^-1 1, the factor of one step on H' = p H with z = step * p."""
        return _stability(self.stages, self.weights)

    @property
    def is_euler(self) -> bool:
        return len(self.weights) == 1

    @property
    def averages_euler(self) -> bool:
        """Heun's method: the mean of a state and of the state after two steps of Euler."""
        return self.stages == ((), (sp.S.One,)) and self.weights == (sp.Rational(1, 2), sp.Rational(1, 2))

    @property
    def half_disc(self) -> sp.Rational:
        """The largest x, in twentieths, with |R(z)| <= 1 wherever |z| <= x and the real part of z is <= 0.

        By the maximum principle the boundary suffices: z = i y, and z = x (-c + i sqrt(1 - c^2)).

        >>> from rdgraph.vocabulary.methods import methods
        >>> methods["rk4"].half_disc, methods["euler"].half_disc
        (13/5, 0)
        """
        return _half_disc(self.stability)

    def factor(self, argument: sp.Expr) -> sp.Expr:
        """R at a given argument."""
        return self.stability.subs(z, argument)

    @property
    def real_limit(self) -> sp.Expr:
        """The largest x with |R| <= 1 on [-x, 0], an exact algebraic number."""
        return _first_violation((1 - self.stability, 1 + self.stability))

    @property
    def monotone_radius(self) -> sp.Expr:
        """The largest x such that R, (R-1)/z and all their derivatives are >= 0 on [-x, 0].

        Then a step of a linear system with -x <= step * c_0 and other coefficients >= 0 is a convex combination.
        """
        increment = sp.cancel((self.stability - 1) / z)
        pieces = []
        for polynomial in (self.stability, increment):
            degree = sp.degree(polynomial, z) if polynomial.has(z) else 0
            pieces += [sp.diff(polynomial, z, k) for k in range(degree + 1)]
        return _first_violation(tuple(pieces))


@cache
def _stability(stages: tuple[tuple[sp.Rational, ...], ...], weights: tuple[sp.Rational, ...]) -> sp.Expr:
    values: list[sp.Expr] = []
    for row in stages:
        values.append(sp.expand(1 + z * sum((a * v for a, v in zip(row, values, strict=True)), sp.S.Zero)))
    return sp.expand(1 + z * sum((b * v for b, v in zip(weights, values, strict=True)), sp.S.Zero))


@cache
def _half_disc(stability: sp.Expr) -> sp.Rational:
    terms = sp.Poly(stability, z).terms()
    c, x = sp.Symbol("c", real=True), sp.Symbol("x", real=True)
    # |R|^2 = sum_jk a_j a_k x^(j+k) cos((j-k) t) at z = x exp(i t), with cos(t) = -c
    square = sum(a * b * x ** (j + k) * sp.chebyshevt(abs(j - k), -c) for (j,), a in terms for (k,), b in terms)

    def damps(size: sp.Rational) -> bool:
        arc, axis = sp.Poly(1 - square.subs(x, size), c), sp.Poly(1 - square.subs(c, 0), x)
        return _is_nonnegative(arc, sp.S.One) and _is_nonnegative(axis, size)

    radius = sp.S.Zero
    while damps(radius + sp.Rational(1, 20)):
        radius += sp.Rational(1, 20)
    return radius


def _is_nonnegative(polynomial: sp.Poly, end: sp.Rational) -> bool:
    """Whether a polynomial is >= 0 on [0, end], tested between its zeros."""
    inside = sorted({r for r in sp.real_roots(polynomial) if 0 <= r <= end} | {sp.S.Zero, end})
    points = [(a + b) / 2 for a, b in itertools.pairwise(inside)]
    return all(sp.N(polynomial.eval(p), 30) >= 0 for p in points)


@cache
def _first_violation(polynomials: tuple[sp.Expr, ...]) -> sp.Expr:
    """Smallest x > 0 at which one of the polynomials turns negative on the way from 0 to -x."""
    candidates = []
    for polynomial in polynomials:
        if not polynomial.has(z):
            continue
        roots = sorted({r for r in sp.real_roots(sp.Poly(polynomial, z)) if r <= 0}, reverse=True)
        for i, root in enumerate(roots):
            probe = (root + roots[i + 1]) / 2 if i + 1 < len(roots) else root - 1
            if polynomial.subs(z, probe) < 0:
                candidates.append(-root)
                break
    return min(candidates) if candidates else sp.oo


def make_tableau(
    name: str, stages: Sequence[Sequence[object]], weights: Sequence[object], order: int, *, note: str = ""
) -> Tableau:
    """A tableau of numbers, or of texts of fractions.

    Args:
        name: the name of the method.
        stages: row i holds the weights of the slopes k_0 ... k_(i-1) in stage i; the first row is empty.
        weights: the weights of the slopes in the step.
        order: the order of the method; the stability polynomial must agree with exp up to it.
        note: one line about the method.

    Returns:
        The checked tableau.

    Raises:
        InvalidArgument: the shape is wrong, or the stability polynomial contradicts the order.

    >>> import rdgraph as rd
    >>> rd.vocabulary.make_tableau("ralston", [[], ["2/3"]], ["1/4", "3/4"], 2).nodes
    (0, 2/3)
    """
    rows = tuple(tuple(sp.Rational(x) for x in row) for row in stages)
    return Tableau(name, rows, tuple(sp.Rational(x) for x in weights), order, note=note)


# ---------------------------------------------------------------------- method
# `Method`: the facts about an integrator as data.

#: One step of a method: `f` is the field, H the state, dt the step; the result is H(t + dt). `f.ahead(x)` has
#: at every field of second order the entry of x at its velocity, and zero elsewhere.
StepFunction = Callable[[Callable[[Any], Any], Any, Any], Any]
#: Settings of `solve` for some methods.
FIXED_OPTIONS, SPLIT_OPTIONS = ("step", "interpolation"), ("step", "interpolation", "rtol")
FLOW_OPTIONS = ADAPTIVE_OPTIONS = ("rtol", "atol", "max_steps")
NOISE_OPTIONS, SPLIT_NOISE_OPTIONS = ("step", "seed", "path_parts"), ("step", "seed", "path_parts", "rtol")


@dataclass(frozen=True)
class Method:
    """The facts about an integrator.

    `tableau` and `step_function` are the two forms of a step; the exact flow and the splitting have neither. `applies`
    is "all", "linear" (a generator p(A) and a forcing), "closed" (entrywise reactions with a closed flow) or "noise"
    (systems with white noise only). `order` is that of smooth systems, and the
    weak one for noise. `options` are the settings of `solve` that it uses, `adjoint` is torchdiffeq's name for it,
    if any.

    >>> from rdgraph.vocabulary.methods import find_method
    >>> find_method("rk4").order, find_method("exact").applies, find_method("dopri5").is_adaptive
    (4, 'linear', True)
    """

    name: str
    note: str
    order: int | None = None
    tableau: Tableau | None = None
    step_function: StepFunction | None = None
    applies: str = "all"
    is_adaptive: bool = False
    options: tuple[str, ...] = FIXED_OPTIONS
    adjoint: str | None = None

    @property
    def is_runge_kutta(self) -> bool:
        """Whether the method has a tableau and a fixed step."""
        return self.tableau is not None and not self.is_adaptive

    @property
    def is_fixed(self) -> bool:
        """A fixed step from evaluations of the field alone: a tableau or a step function."""
        return self.is_runge_kutta or self.step_function is not None

    @property
    def takes_step(self) -> bool:
        """Whether it needs a step."""
        return "step" in self.options

    @property
    def is_exact(self) -> bool:
        """Whether it evaluates the flow itself, without steps."""
        return self.applies == "linear" and not self.takes_step and not self.is_adaptive

    @property
    def is_splitting(self) -> bool:
        """Whether it composes flows of parts of the equation."""
        return self.applies == "closed"

    @property
    def is_stochastic(self) -> bool:
        """Whether the method is for systems with white noise, and for no others."""
        return self.applies == "noise"


# ---------------------------------------------------------------------- built in
# The built-in integrators.

_DOPRI_ROWS: list[list[object]] = [
    [],
    ["1/5"],
    ["3/40", "9/40"],
    ["44/45", "-56/15", "32/9"],
    ["19372/6561", "-25360/2187", "64448/6561", "-212/729"],
    ["9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"],
    ["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"],
]
_DOPRI_WEIGHTS = ["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0]


def built_in_methods() -> tuple[Method, ...]:
    """Records of the built-in integration methods, in the order in which they are listed."""
    return (
        _fixed("euler", [[]], [1], 1, "explicit Euler", adjoint="euler"),
        _fixed("midpoint", [[], ["1/2"]], [0, 1], 2, "explicit midpoint", adjoint="midpoint"),
        _fixed("heun", [[], [1]], ["1/2", "1/2"], 2, "Heun's explicit trapezoidal rule", adjoint="heun2"),
        _fixed(
            "rk4", [[], ["1/3"], ["-1/3", 1], [1, -1, 1]], ["1/8", "3/8", "3/8", "1/8"], 4,
            "Kutta's 3/8 rule, called rk4 in torchdiffeq", adjoint="rk4",
        ),
        _fixed(
            "rk4-classical", [[], ["1/2"], [0, "1/2"], [0, 0, 1]], ["1/6", "1/3", "1/3", "1/6"], 4,
            "the classical fourth-order method",
        ),
        Method("semi-implicit-euler", "Euler, fields of second order by their new velocity; explicit for all others", 1,
               step_function=_with_new_velocity),
        Method("strang", "exact diffusion between halves of the exact reaction", 2, applies="closed",
               options=SPLIT_OPTIONS),
        Method("imex", "exact linear diffusion of every field, explicit reaction: the exponential midpoint rule", 2,
               options=SPLIT_OPTIONS),
        Method("exact", "the flow of a linear system, evaluated", applies="linear", options=FLOW_OPTIONS),
        Method(
            "dopri5", "Dormand-Prince with steps that follow the error; formulas take its fifth-order weights", 5,
            make_tableau("dopri5", _DOPRI_ROWS, _DOPRI_WEIGHTS, 5, note="fifth-order weights, with a fixed step"),
            is_adaptive=True, options=ADAPTIVE_OPTIONS, adjoint="dopri5",
        ),
        Method("euler-maruyama", "explicit Euler with the noise of the step; strong order 1/2, additive noise 1", 1,
               applies="noise", options=NOISE_OPTIONS),
        Method("exponential-euler-maruyama", "exact linear diffusion, explicit reaction and noise; the same orders", 1,
               applies="noise", options=SPLIT_NOISE_OPTIONS),
    )  # fmt: skip


def _with_new_velocity(f: Any, H: Any, dt: Any) -> Any:
    """V' = V + dt*dV/dt, then H' = H + dt*V', for all fields at once; `f.ahead` puts velocities at their fields."""
    slope = f(H)
    return H + dt * (slope + dt * f.ahead(slope))


def _fixed(
    name: str, stages: Sequence[Sequence[object]], weights: Sequence[object], order: int, note: str,
    adjoint: str | None = None,
) -> Method:  # fmt: skip
    return Method(name, note, order, make_tableau(name, stages, weights, order, note=note), adjoint=adjoint)


# ---------------------------------------------------------------------- registry
records: Records[Method] = Records(
    "method", built_in_methods, pattern=r"[A-Za-z][A-Za-z0-9-]{0,39}", reserved=("auto",)
)

#: Every method that `solve` takes by name.
METHODS = records.names(lambda method: True)
#: Those with a fixed step from evaluations of the field alone; any `Tableau` will do as well.
FIXED = records.names(lambda method: method.is_fixed)
#: Those whose linear flows are polynomials of one step, or the exponential.
WITH_GAINS = records.names(lambda method: method.is_runge_kutta or method.is_exact)
#: Those for systems with white noise.
FOR_NOISE = records.names(lambda method: method.is_stochastic)
#: Those that torchdiffeq can run backwards.
WITH_ADJOINT = records.names(lambda method: method.adjoint is not None)


def find_method(name: str) -> Method:
    """The record of a method; the error for an unknown name offers the closest one.

    >>> find_method("heun").note
    "Heun's explicit trapezoidal rule"
    """
    return records.find(name)


def is_exact_flow(method: str | Tableau) -> bool:
    """Whether a method, by name or as a tableau, evaluates the flow itself; unknown names do not.

    >>> is_exact_flow("exact"), is_exact_flow("euler")
    (True, False)
    """
    return isinstance(method, str) and method in records and records[method].is_exact


def register_method(
    name: str, definition: Tableau | StepFunction, *, order: int | None = None, note: str = ""
) -> Method:
    """Register an integrator with a fixed step under a name that the whole package accepts.

    Args:
        name: a free name of letters, digits and "-".
        definition: a `Tableau`, or a function (f, H, dt) -> H(t + dt) of plain arithmetic on f(H), H and dt. A method
            with a tableau has gains, step limits and a stability polynomial as well.
        order: the order of a step function, checked on equations with known solutions; not needed for a tableau.
        note: one line about the method.

    Returns:
        The record.

    Raises:
        InvalidArgument: the name is malformed or taken, or the step does not have the declared order.

    >>> import rdgraph as rd
    >>> rd.register_method("ralston", rd.vocabulary.make_tableau("ralston", [[], ["2/3"]], ["1/4", "3/4"], 2)).order
    2
    >>> rd.vocabulary.unregister_method("ralston")
    """
    records.check_free(name)
    if isinstance(definition, Tableau):
        if order not in (None, definition.order):
            raise InvalidArgument(f"the tableau has the order {definition.order}, got order={order}; omit it")
        tableau = replace(definition, name=name)
        record = Method(name, note or tableau.note, tableau.order, tableau)
    elif callable(definition):
        if not isinstance(order, int) or order < 1:
            raise InvalidArgument(f"a step function needs order= >= 1, got {order!r}")
        _check_order(name, definition, order)
        record = Method(name, note, order, step_function=definition)
    else:
        raise InvalidArgument(f"expected a Tableau or a function (f, H, dt), got {type(definition).__name__}")
    return records.add(record)


def unregister_method(name: str) -> None:
    """Remove a registered method; built-in ones cannot be removed.

    Args:
        name: the name of a registered method.

    Raises:
        UnknownName: no method is registered under this name.
    """
    records.remove(name)


#: Equations with a known solution: f, h(0) and h(t).
_KNOWN: tuple[tuple[Callable[[Any], Any], float, Callable[[float], float]], ...] = (
    (lambda h: h * (1 - h), 0.3, lambda t: 0.3 * math.exp(t) / (0.7 + 0.3 * math.exp(t))),
    (lambda h: -h * h, 1.1, lambda t: 1.1 / (1 + 1.1 * t)),
)


def _check_order(name: str, step: StepFunction, order: int) -> None:
    """The error of one step of length dt is O(dt^(order + 1)): halving dt divides it by 2^(order + 1)."""
    dt = 0.1
    for f, start, solution in _KNOWN:
        try:
            whole, half = (abs(float(step(f, start, x)) - solution(x)) for x in (dt, dt / 2))
        except (TypeError, ValueError, AttributeError) as problem:
            raise InvalidArgument(
                f"{name} must be a function (f, H, dt) of plain arithmetic, got {problem}; use only + - * /"
            ) from None
        if not (whole < 1e-13 or half < whole / 2 ** (order + 0.5)):
            raise InvalidArgument(
                f"{name} does not have the order {order}: the errors {whole:.2g} and {half:.2g} of a step {dt:g} and "
                f"one half as long fall like order {math.log2(whole / half) - 1:.2g}"
            )


# ---------------------------------------------------------------------- tableaux
# The tableaux of the registered methods by name.


class Tableaux(Mapping[str, Tableau]):
    """The tableaux by name.

    >>> methods["rk4"].stability
    z**4/24 + z**3/6 + z**2/2 + z + 1
    """

    def __getitem__(self, name: str) -> Tableau:
        tableau_of_method = records[name].tableau
        if tableau_of_method is None:
            raise KeyError(name)
        return tableau_of_method

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in records.items() if record.tableau is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


methods = Tableaux()


def tableau(name: str | Tableau) -> Tableau:
    """The tableau of a method by name; a `Tableau` is returned unchanged."""
    if isinstance(name, Tableau):
        return name
    if name in records and records[name].step_function is not None:
        raise NotApplicable(
            f"{name} is a step function without a tableau, so it has no gains; use a method with a tableau"
        )
    if name not in methods:
        raise UnknownName("method", name, methods)
    return methods[name]
