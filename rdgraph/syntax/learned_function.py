"""`LearnedFunction`: the declaration of a function of one entry that is learned, as in `phi(H)`.

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
control values of a learned function have them whatever its parameters are (`rdgraph.lowering.spline_parameters`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.syntax.function_record import REALS, Monotone, Span

#: Fewest and most knots; with a bound two pairs of control values are equal.
MIN_KNOTS, MIN_BOUNDED_KNOTS, MAX_KNOTS = 2, 4, 512
#: What is taken where nothing is said.
STANDARD_KNOTS, STANDARD_RANGE = 12, (-3, 3)
#: The word after the name in a declaration.
WORD = "learned"

_NAME = re.compile(r"[A-Za-z][A-Za-z_0-9]*")
_DIRECTIONS = (Monotone.NONDECREASING, Monotone.NONINCREASING)


@dataclass(frozen=True)
class LearnedFunction:
    """What is declared of a learned function: its knots, and facts that hold for every value of its parameters.

    Attributes:
        name: as equations call it.
        knots: how many, K.
        range: (lower, upper), the first and the last knot; beyond them the function is a straight line.
        odd: whether phi(-x) = -phi(x).
        monotone: "nondecreasing" or "nonincreasing", or None.
        bound: b where |phi(x)| <= b, or None.
        lipschitz: c where |phi'(x)| <= c, or None.
        per_channel: whether every channel of the state has a function of its own.

    >>> phi = LearnedFunction("phi", knots=8, range=(-2, 2), odd=True, lipschitz=2)
    >>> print(phi)
    phi learned knots=8 range=-2:2 odd lipschitz=2
    >>> LearnedFunction.read(str(phi)) == phi
    True
    """

    name: str
    knots: int = STANDARD_KNOTS
    range: tuple[Any, Any] = STANDARD_RANGE
    odd: bool = False
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
            raise InvalidArgument(f"expected range as (lower, upper), got ({lower}, {upper}); exchange them")
        if self.odd and lower != -upper:
            raise InvalidArgument(
                f"expected a range symmetric about zero for an odd function, got ({lower}, {upper}); "
                f"give (-{max(abs(lower), upper)}, {max(abs(lower), upper)})"
            )
        for what in ("bound", "lipschitz"):
            value = getattr(self, what)
            if value is not None and not value > 0:
                raise InvalidArgument(f"expected {what} > 0, got {value}; leave it out where nothing is known")

    # ------------------------------------------------------------------ text
    @classmethod
    def read(cls, text: str) -> LearnedFunction:
        """The declaration that a text makes: a name, the word `learned`, and what is declared, without commas.

        >>> LearnedFunction.read("phi learned nondecreasing bound=1").slope
        Span(lower=0, upper=11/3, has_lower=True, has_upper=True)
        """
        name, *words = text.split()
        if words[:1] != [WORD]:
            raise InvalidArgument(f"expected a declaration as in 'phi learned knots=12 odd', got {text!r:.60}")
        given: dict[str, Any] = {}
        for word in words[1:]:
            key, value = _declared(word)
            if key in given:
                raise InvalidArgument(f"expected {key} once in the declaration of {name}, got it twice; drop one")
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
        """The name of the function among all functions: two declarations under one name are two functions.

        >>> LearnedFunction("phi", knots=4).key
        'phi[knots=4 range=-3:3]'
        """
        name, _, declared = str(self).split(" ", 2)
        return f"{name}[{declared}]"

    @classmethod
    def of_key(cls, key: str) -> LearnedFunction:
        """The declaration behind a key."""
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
        """How many slopes between control values are free: those of the ends are zero where there is a bound."""
        slopes = self.knots // 2 if self.odd else self.knots - 1
        return slopes - (0 if self.bound is None else 1 if self.odd else 2)

    @property
    def parameters(self) -> int:
        """How many numbers describe it: the free slopes, and the value in the middle where it is not odd."""
        return self.free_slopes + (0 if self.odd else 1)

    # ------------------------------------------------------------------ facts
    @property
    def values(self) -> Span | None:
        """All values, where they are bounded."""
        return None if self.bound is None else Span.of(-self.bound, self.bound, attained=True)

    @property
    def slope(self) -> Span | None:
        """All slopes, where a side of them is bounded; neighbours within [-b, b] are at most 2b apart."""
        limits = [] if self.lipschitz is None else [self.lipschitz]
        limits += [] if self.bound is None else [2 * self.bound / self.step]
        steepest = min(limits, default=sp.oo)
        lower = sp.S.Zero if self.monotone is Monotone.NONDECREASING else -steepest
        upper = sp.S.Zero if self.monotone is Monotone.NONINCREASING else steepest
        found = Span.of(lower, upper, attained=True)
        return None if found == REALS else found


def is_key(name: str) -> bool:
    """Whether a name is the key of a learned function.

    >>> is_key("phi[knots=4 range=-3:3]"), is_key("tanh")
    (True, False)
    """
    return name.endswith("]")


def short_name(function: str) -> str:
    """The name that an equation uses for a function, which for a learned one is shorter than its key."""
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
