"""`LearnedFunction`: the declaration of a learned function of one entry, as in `phi(H)`.

It has no formula. It is a natural cubic spline on K equidistant knots x_0 < ... < x_{K-1}, continued by straight lines,
written by its control values a_0, ..., a_{K-1} in uniform cubic B-splines,

    phi(x) = sum_j a_j B((x - x_j)/h),  with a_{-1} = 2 a_0 - a_1, a_{-2} = 3 a_0 - 2 a_1, ..., and so at the end.

B is the cardinal cubic B-spline: B >= 0 and the shifts B(. - j) add up to one, so that everywhere

    phi(x)  is a mean of control values,
    phi'(x) is a mean of the slopes s_j = (a_{j+1} - a_j)/h, since phi' = sum_j s_j Q((x - x_j)/h - 1/2)

with the quadratic B-spline Q, which has the same two properties. Three facts follow for every x, in the tails too,
where the slopes are those of the ends:

    |a_{j+1} - a_j| <= c h for all j              implies  |phi'| <= c,
    a_{j+1} >= a_j for all j                      implies  phi' >= 0,
    |a_j| <= b for all j, and equal pairs of values at both ends (a_0 = a_1)    implies  |phi| <= b,

and a_j = -a_{K-1-j} on knots that are symmetric about zero implies that phi is odd. A declaration names such facts; the
control values satisfy them for all parameters (`rdgraph.run.lowering.splines`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, cast

import numpy as np
import sympy as sp
from flint import arb, fmpq
from numpy.typing import NDArray

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.function_records import REALS, ElementwiseFunction, Monotone, Span

# ---------------------------------------------------------------------- learned function
#: Fewest and most knots; with a bound two pairs of control values are equal.
MIN_KNOTS, MIN_BOUNDED_KNOTS, MAX_KNOTS = 2, 4, 512
#: Defaults.
STANDARD_KNOTS, STANDARD_RANGE = 12, (-3, 3)
#: The word after the name in a declaration.
WORD = "learned"

_NAME = re.compile(r"[A-Za-z][A-Za-z_0-9]*")
_DIRECTIONS = (Monotone.NONDECREASING, Monotone.NONINCREASING)


@dataclass(frozen=True)
class LearnedFunction:
    """The declaration of a learned function: knots, and facts that hold for every value of its parameters.

    Attributes:
        name: its name in equations.
        knots: their number K.
        range: (lower, upper), the first and the last knot; beyond them the function is a straight line.
        odd: whether phi(-x) = -phi(x).
        monotone: "nondecreasing" or "nonincreasing", or None.
        bound: b where |phi(x)| <= b, or None.
        lipschitz: c where |phi'(x)| <= c, or None.
        per_channel: whether every channel of the state has a separate function.

    >>> import rdgraph as rd
    >>> phi = rd.vocabulary.LearnedFunction("phi", knots=8, range=(-2, 2), odd=True, lipschitz=2)
    >>> print(phi)
    phi learned knots=8 range=-2:2 odd lipschitz=2
    >>> rd.vocabulary.LearnedFunction.read(str(phi)) == phi
    True
    """

    name: str
    knots: int = STANDARD_KNOTS
    range: tuple[Any, Any] = STANDARD_RANGE
    odd: bool = False
    _: KW_ONLY
    monotone: str | None = None
    bound: Any = None
    lipschitz: Any = None
    per_channel: bool = False

    def __post_init__(self) -> None:
        given: Any = self.range
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise InvalidArgument(f"expected range as (lower, upper), got {self.range!r:.60}; give (-3, 3)")
        object.__setattr__(self, "range", tuple(_rational(end, "end of the range") for end in given))
        for what in ("bound", "lipschitz"):
            value = getattr(self, what)
            object.__setattr__(self, what, None if value is None else _rational(value, what))
        if self.monotone is not None and self.monotone not in _DIRECTIONS:
            raise InvalidArgument(f"expected monotone among {', '.join(_DIRECTIONS)}, got {self.monotone!r}")
        object.__setattr__(self, "monotone", None if self.monotone is None else Monotone(self.monotone))
        self._check()

    def _check(self) -> None:
        name, knots = cast("Any", self.name), cast("Any", self.knots)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidArgument(f"expected a name of letters, digits and _, got {name!r:.60}; call it phi")
        least = MIN_KNOTS if self.bound is None else MIN_BOUNDED_KNOTS
        is_whole = isinstance(knots, int) and not isinstance(knots, bool)
        if not is_whole or not least <= knots <= MAX_KNOTS:
            raise InvalidArgument(f"expected {least} to {MAX_KNOTS} knots, got {knots!r:.60}; twelve are usual")
        lower, upper = self.range
        if not lower < upper:
            raise InvalidArgument(f"expected a range that rises, got ({lower}, {upper}); give the smaller number first")
        if self.odd and lower != -upper:
            raise InvalidArgument(
                f"expected a range symmetric about zero for an odd function, got ({lower}, {upper}); "
                f"give (-{max(abs(lower), upper)}, {max(abs(lower), upper)})"
            )
        for what in ("bound", "lipschitz"):
            value = getattr(self, what)
            if value is not None and not value > 0:
                raise InvalidArgument(f"expected {what} > 0, got {value}; omit it if unknown")

    # ------------------------------------------------------------------ text
    @classmethod
    def read(cls, text: str) -> LearnedFunction:
        """The declaration in a text: a name, the word `learned` and its facts, without commas.

        >>> import rdgraph as rd
        >>> rd.vocabulary.LearnedFunction.read("phi learned nondecreasing bound=1").slope
        Span(lower=0, upper=11/3, has_lower=True, has_upper=True)
        """
        name, *words = text.split()
        if words[:1] != [WORD]:
            raise InvalidArgument(f"expected a declaration as in 'phi learned knots=12 odd', got {text!r:.60}")
        given: dict[str, Any] = {}
        for word in words[1:]:
            key, value = _declared(word)
            if key in given:
                raise InvalidArgument(f"expected {key} once in the declaration of {name}, got it twice; remove one")
            given[key] = value
        return cls(name, **given)

    def __str__(self) -> str:
        lower, upper = self.range
        words = [f"knots={self.knots}", f"range={lower}:{upper}", *(["odd"] if self.odd else [])]
        words += [str(self.monotone)] if self.monotone is not None else []
        words += [f"{what}={value}" for what in ("bound", "lipschitz") if (value := getattr(self, what)) is not None]
        return " ".join([self.name, WORD, *words, *(["per_channel"] if self.per_channel else [])])

    @property
    def key(self) -> str:
        """A unique name of the function: two declarations with one name are two functions.

        >>> import rdgraph as rd
        >>> rd.vocabulary.LearnedFunction("phi", knots=4).key
        'phi[knots=4 range=-3:3]'
        """
        name, _, declared = str(self).split(" ", 2)
        return f"{name}[{declared}]"

    @classmethod
    def of_key(cls, key: str) -> LearnedFunction:
        """The declaration of a key."""
        name, _, declared = key.removesuffix("]").partition("[")
        return cls.read(f"{name} {WORD} {declared}")

    # ------------------------------------------------------------------ knots and parameters
    @cached_property
    def step(self) -> sp.Rational:
        """h, the distance between knots."""
        lower, upper = self.range
        return (upper - lower) / (self.knots - 1)

    @property
    def free_slopes(self) -> int:
        """Number of free slopes between control values; those at the ends are zero where there is a bound."""
        slopes = self.knots // 2 if self.odd else self.knots - 1
        return slopes - (0 if self.bound is None else 1 if self.odd else 2)

    @property
    def parameters(self) -> int:
        """Number of parameters: the free slopes, and the value in the middle unless the function is odd."""
        return self.free_slopes + (0 if self.odd else 1)

    # ------------------------------------------------------------------ facts
    @property
    def values(self) -> Span | None:
        """The interval that holds all values of the learned function; None if it is unbounded."""
        return None if self.bound is None else Span.of(-self.bound, self.bound, attained=True)

    @property
    def slope(self) -> Span | None:
        """The interval of all slopes, if it has a finite end; neighbours within [-b, b] are at most 2b apart."""
        limits = [] if self.lipschitz is None else [self.lipschitz]
        limits += [] if self.bound is None else [2 * self.bound / self.step]
        steepest = min(limits, default=sp.oo)
        lower = sp.S.Zero if self.monotone is Monotone.NONDECREASING else -steepest
        upper = sp.S.Zero if self.monotone is Monotone.NONINCREASING else steepest
        span = Span.of(lower, upper, attained=True)
        return None if span == REALS else span


def is_key(name: str) -> bool:
    """Whether a name is the key of a learned function.

    >>> is_key("phi[knots=4 range=-3:3]"), is_key("tanh")
    (True, False)
    """
    return name.endswith("]")


def short_name(function: str) -> str:
    """The name of a function in equations, which for a learned one is shorter than its key."""
    return function.partition("[")[0]


def _rational(value: Any, what: str) -> sp.Rational:
    number = exact_number(value, what)
    if not number.is_Rational:
        raise InvalidArgument(f"expected a decimal number or a fraction as {what}, got {number}; round it")
    return number


def _declared(word: str) -> tuple[str, Any]:
    """A word of a declaration as an argument."""
    key, equals, value = word.partition("=")
    if not equals and key in ("odd", "per_channel"):
        return key, True
    if not equals and key in _DIRECTIONS:
        return "monotone", key
    try:
        match key:
            case "knots":
                return key, int(value)
            case "bound" | "lipschitz":
                return key, sp.Rational(value)
            case "range":
                lower, _, upper = value.partition(":")
                return key, (sp.Rational(lower), sp.Rational(upper))
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        "expected knots=12, range=-3:3, odd, nondecreasing, nonincreasing, bound=1, lipschitz=2 or per_channel, "
        f"got {word!r:.40}; separate them by spaces"
    )


# ---------------------------------------------------------------------- learned records
# Records of learned functions: sympy classes without a formula, known by their declarations only.
#
# The class of a function and those of its derivatives follow from its key, so expressions can be pickled,
# and two functions with one name and two declarations are never confused.

#: Names of Greek letters, which LaTeX prints as such.
_GREEK = ("phi", "psi", "chi", "zeta", "xi", "eta", "theta", "rho", "sigma", "omega", "tau")


class LearnedCall(sp.Function):
    """The value of a learned function, or of a derivative of it; `learned_class` makes the subclasses."""

    is_real = True
    is_number = False  # phi(0) has no symbols, and still has no known value
    key: ClassVar[str]
    order: ClassVar[int]
    is_odd_function: ClassVar[bool] = False
    is_even_function: ClassVar[bool] = False

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if cls.is_odd_function and x.is_zero:
            return sp.S.Zero
        if (cls.is_odd_function or cls.is_even_function) and x.could_extract_minus_sign():
            return -cls(-x) if cls.is_odd_function else cls(-x)
        return None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return learned_class(self.key, self.order + 1)(self.args[0])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _applied, (self.key, self.order, self.args[0])


#: The classes by key, each created once per process.
_CLASSES: dict[tuple[str, int], Any] = {}


def learned_class(key: str, order: int = 0) -> Any:
    """The class of a learned function, or of one of its derivatives.

    >>> phi = learned_class(LearnedFunction("phi", odd=True).key)
    >>> x = sp.Symbol("x", real=True)
    >>> phi(-x) + phi(x), phi(0), sp.diff(phi(2 * x), x)
    (0, 0, 2*phi_slope(2*x))
    """
    if (key, order) in _CLASSES:
        return _CLASSES[key, order]
    declared = LearnedFunction.of_key(key)
    suffix = {0: "", 1: "_slope", 2: "_curvature"}.get(order, f"_derivative_{order}")
    known: dict[str, Any] = {"key": key, "order": order}
    if declared.odd:
        known["is_odd_function" if order % 2 == 0 else "is_even_function"] = True
    values = _values(declared, order)
    if values is not None and values.lower.is_nonnegative:
        known["is_nonnegative"] = True
    if values is not None and values.upper.is_nonpositive:
        known["is_nonpositive"] = True
    metaclass: Any = type(LearnedCall)
    return _CLASSES.setdefault((key, order), metaclass(declared.name + suffix, (LearnedCall,), known))


def learned_classes() -> dict[type, ElementwiseFunction]:
    """The classes of all learned functions in use, and of their derivatives, with their records."""
    return {kind: learned_record(key, order) for (key, order), kind in tuple(_CLASSES.items())}


@cache
def learned_record(key: str, order: int = 0) -> ElementwiseFunction:
    """The record of a learned function or of a derivative: facts without values."""
    declared = LearnedFunction.of_key(key)
    kind, name = learned_class(key, order), declared.name
    marks = "'" * order
    is_odd = declared.odd and order % 2 == 0
    return ElementwiseFunction(
        key if order == 0 else kind.__name__, kind, lambda u: learned_class(key, order + 1)(u), _latex(name, marks),
        numpy=lambda x: _no_values(name), torch=None, ball=lambda x: _enclosed(declared, order, x),
        range=_values(declared, order), slope=_values(declared, order + 1),
        monotone=Monotone(declared.monotone) if declared.monotone is not None and order == 0 else None,
        at_zero=sp.S.Zero if is_odd else None, reflection=_reflection(declared.odd, order), is_sharp=False,
        has_straight_tails=order == 0,
    )  # fmt: skip


def _values(declared: LearnedFunction, order: int) -> Span | None:
    return {0: declared.values, 1: declared.slope}.get(order)


def _reflection(odd: bool, order: int) -> Any:
    if not odd:
        return None
    return (lambda x, y: -y) if order % 2 == 0 else (lambda x, y: y)


def _latex(name: str, marks: str) -> str:
    letter = rf"\{name}" if name in _GREEK else rf"\operatorname{{{{{name.replace('_', chr(92) + '_')}}}}}"
    return rf"{letter}{marks}\left({{}}\right)"


def _no_values(name: str) -> Any:
    raise NotApplicable(
        f"expected a function with values, got {name}, which is learned; give its control values by name, as in "
        f"values={{{name!r}: ...}}"
    )


def _enclosed(declared: LearnedFunction, order: int, x: Any) -> Any:
    """A ball that contains f(x) for every function that satisfies the declaration."""

    def hull(span: Span | None) -> Any:
        if span is None or not span.is_bounded:
            return arb(0, arb("inf"))
        lower, upper = (arb(fmpq(int(end.p), int(end.q))) for end in (span.lower, span.upper))
        return lower.union(upper)

    values, point = hull(_values(declared, order)), arb(x)
    if declared.odd and order == 0 and point.is_finite():
        cone = point * hull(declared.slope)
        return cone if declared.bound is None else values.intersection(cone)
    return values


def _applied(key: str, order: int, argument: sp.Expr) -> sp.Expr:
    return learned_class(key, order)(argument)


# ---------------------------------------------------------------------- learned values
# `LearnedValues`: a learned function with control values: its values, derivatives and slopes.

Array = NDArray[np.float64]

#: Relative rounding error by which control values may exceed the declaration.
_ROUNDING = 1e-5

#: From four neighbouring control values to the coefficients of a cubic between the middle two.
_POWERS = np.array([[1, 4, 1, 0], [-3, 0, 3, 0], [3, -6, 3, 0], [-1, 3, -3, 1]]) / 6


@dataclass(frozen=True, eq=False)
class LearnedValues:
    """A learned function at control values (..., K); leading axes are separate functions.

    >>> import numpy as np, rdgraph as rd
    >>> phi = rd.vocabulary.LearnedFunction("phi", knots=5, range=(-2, 2))
    >>> square = rd.vocabulary.LearnedValues.through(phi, lambda x: x**2)
    >>> [round(float(y), 12) for y in square(np.array([-1.0, 1.0, 4.0]))]
    [1.0, 1.0, 10.857142857143]
    """

    declaration: LearnedFunction
    controls: Array

    def __post_init__(self) -> None:
        controls = np.asarray(self.controls, dtype=float)
        if controls.ndim < 1 or controls.shape[-1] != self.declaration.knots:
            raise InvalidArgument(
                f"expected {self.declaration.knots} control values of {self.declaration.name} along the last axis, "
                f"got the shape {controls.shape}; see LearnedValues.through"
            )
        object.__setattr__(self, "controls", controls)
        if problem := broken_fact(self.declaration, controls):
            raise InvalidArgument(
                f"the control values contradict the declaration of {self.declaration.name}: {problem}; "
                "make them with LearnedValues.near"
            )

    @classmethod
    def through(cls, declaration: LearnedFunction, function: Callable[[Array], Any]) -> LearnedValues:
        """The spline through the values of a function at the knots; it must satisfy the declaration."""
        return cls(declaration, controls_at(knots_of(declaration), declaration, function))

    @classmethod
    def near(cls, declaration: LearnedFunction, function: Callable[[Array], Any]) -> LearnedValues:
        """The spline through the values of a function at the knots, with slopes and values clipped to the declaration.

        >>> import rdgraph as rd
        >>> phi = rd.vocabulary.LearnedFunction("phi", knots=9, range=(-2, 2), odd=True, lipschitz=1)
        >>> steep = rd.vocabulary.LearnedValues.near(phi, lambda x: 3 * x + 1)
        >>> [round(float(y), 12) for y in steep([-2.0, 0.0, 5.0])]
        [-2.0, 0.0, 5.0]
        """
        return cls(declaration, cut_controls(declaration, controls_at(knots_of(declaration), declaration, function)))

    # ------------------------------------------------------------------ values
    def __call__(self, x: Any) -> Array:
        """phi(x); with axes in front, every function at every point: (..., *x.shape)."""
        return self._evaluated(x, 0)

    def slope(self, x: Any) -> Array:
        """phi'(x)."""
        return self._evaluated(x, 1)

    def curvature(self, x: Any) -> Array:
        """phi''(x), zero in the tails."""
        return self._evaluated(x, 2)

    def _evaluated(self, x: Any, order: int) -> Array:
        points = np.asarray(x, dtype=float)
        matrix = basis(self.declaration, points.ravel(), order)
        values: Array = self.controls @ matrix.T
        return values.reshape((*self.controls.shape[:-1], *points.shape))

    @property
    def knots(self) -> Array:
        """Where the pieces meet."""
        return knots_of(self.declaration)

    @property
    def lipschitz(self) -> Array:
        """The steepest slope between control values, which no slope of the function exceeds: (...,)."""
        slopes: Array = np.abs(np.diff(self.controls, axis=-1)).max(-1) / float(self.declaration.step)
        return slopes


def knots_of(declaration: LearnedFunction) -> Array:
    """The knots x_0, ..., x_{K-1}."""
    lower, upper = map(float, declaration.range)
    return np.linspace(lower, upper, declaration.knots)


def basis(declaration: LearnedFunction, x: Any, order: int = 0) -> Array:
    """The matrix (points, K) that maps control values to phi(x), or to a derivative of the given order.

    >>> phi = LearnedFunction("phi", knots=5, range=(-2, 2))
    >>> bool(np.allclose(basis(phi, [-9.0, 0.3, 7.0]).sum(1), 1.0))
    True
    """
    points = np.asarray(x, dtype=float)
    lower, step, count = float(declaration.range[0]), float(declaration.step), declaration.knots
    position = (points - lower) / step
    inside = np.clip(np.nan_to_num(position), 0, count - 1)
    piece = np.minimum(np.floor(inside).astype(int), count - 2)
    t, beyond = inside - piece, position - inside
    powers = _derived(t, order) @ _POWERS
    if order == 0:
        powers += beyond[:, None] * (_derived(t, 1) @ _POWERS)
    matrix = np.zeros((len(points), count + 2))
    np.add.at(matrix, (np.arange(len(points))[:, None], piece[:, None] + np.arange(4)), powers)
    folded = matrix[:, 1:-1]
    folded[:, [0, 1]] += matrix[:, :1] * [2, -1]
    folded[:, [-1, -2]] += matrix[:, -1:] * [2, -1]
    return folded / step**order


def _derived(t: Array, order: int) -> Array:
    """The derivatives of the powers 1, t, t**2, t**3 of the given order."""
    match order:
        case 0:
            rows = [np.ones_like(t), t, t**2, t**3]
        case 1:
            rows = [np.zeros_like(t), np.ones_like(t), 2 * t, 3 * t**2]
        case 2:
            rows = [np.zeros_like(t), np.zeros_like(t), 2 * np.ones_like(t), 6 * t]
        case _:
            raise InvalidArgument(f"expected a derivative of order 0, 1 or 2, got {order}; the spline has no others")
    return np.stack(rows, -1)


def controls_at(points: Array, declaration: LearnedFunction, function: Callable[[Array], Any]) -> Array:
    """Control values of the spline nearest to a function at some points; through it at the knots."""
    values = np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)
    return np.linalg.lstsq(basis(declaration, points), values, rcond=None)[0]


def cut_controls(declaration: LearnedFunction, controls: Array) -> Array:
    """Control values near given ones that satisfy the declaration.

    Slopes are clipped and summed from the middle, then values are clipped to the bound, which makes no slope steeper
    and changes no sign.
    """
    slopes, step = np.diff(controls, axis=-1) / float(declaration.step), float(declaration.step)
    if declaration.odd:
        slopes = (slopes + slopes[..., ::-1]) / 2
    if declaration.slope is not None:
        slopes = np.clip(slopes, float(declaration.slope.lower), float(declaration.slope.upper))
    if declaration.bound is not None:
        slopes[..., [0, -1]] = 0.0
    sums = np.concatenate([np.zeros_like(controls[..., :1]), np.cumsum(slopes, -1) * step], -1)
    if declaration.odd:
        cut = sums - sums[..., -1:] / 2
        cut = (cut - cut[..., ::-1]) / 2
    else:
        middle = declaration.knots // 2
        cut = sums + (controls - sums)[..., middle : middle + 1]
    return cut if declaration.bound is None else np.clip(cut, -float(declaration.bound), float(declaration.bound))


def broken_fact(declaration: LearnedFunction, controls: Array) -> str:
    """The declared fact that control values violate beyond rounding; empty if none."""
    room = _ROUNDING * max(1.0, float(np.abs(controls).max(initial=0.0)))
    steps, step = np.diff(controls, axis=-1), float(declaration.step)
    if not np.isfinite(controls).all():
        return "control values that are not finite"
    if declaration.odd and np.abs(controls + controls[..., ::-1]).max(initial=0.0) > room:
        return "values that are not odd"
    signs = {Monotone.NONDECREASING: (steps.min(initial=0.0) < -room, "fall"),
             Monotone.NONINCREASING: (steps.max(initial=0.0) > room, "rise")}  # fmt: skip
    if declaration.monotone is not None and signs[Monotone(declaration.monotone)][0]:
        return f"values that {signs[Monotone(declaration.monotone)][1]} somewhere"
    if declaration.lipschitz is not None:
        steepest = float(np.abs(steps).max(initial=0.0))
        if steepest > float(declaration.lipschitz) * step + room:
            return f"the slope {steepest / step:.6g}, beyond {declaration.lipschitz}"
    if declaration.bound is not None:
        largest = float(np.abs(controls).max(initial=0.0))
        if largest > float(declaration.bound) + room:
            return f"the value {largest:.6g}, beyond {declaration.bound}"
        if np.abs(steps[..., [0, -1]]).max(initial=0.0) > room:
            return "tails that are not level, so that no bound holds there"
    return ""
