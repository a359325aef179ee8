"""Elementwise functions by their records: numerical slopes, inverses, and the forms in which layers use them.

Outputs of a layer are inverted where rounding allows it; a function without an inverse is not considered as the
outermost function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np
import sympy as sp
from sympy.codegen.rewriting import expm1_opt, optimize

from rdgraph.vocabulary.function_records import BUILT_IN, REALS, ElementwiseFunction
from rdgraph.vocabulary.functions import FUNCTIONS

Array = np.ndarray
#: From x and y = f(x) to f'(x).
Slope = Callable[[Array, Array], Array]
_X, _Y = sp.symbols("x y", real=True)
#: The functions used in searches by default.
FUNCTIONS_USED = ("tanh", "sigmoid", "exp", "sin", "cos", "relu", "abs")


class _Slopes(Mapping[str, Slope]):
    """The slopes of the functions of the language that are defined for all numbers."""

    def __getitem__(self, name: str) -> Slope:
        if name not in _NAMES:
            raise KeyError(name)
        return _slope(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


_NAMES = tuple(record.name for record in BUILT_IN if record.domain == REALS)
#: Slope of a function by its name.
SLOPES: Mapping[str, Slope] = _Slopes()


@cache
def _slope(name: str) -> Slope:
    """f' of a record, in x and y = f(x), so that f is not evaluated twice; at a jump the slope on the left."""
    record = FUNCTIONS[name]
    formula = record.derivative(_X).xreplace({record.sympy(_X): _Y})
    formula = formula.replace(sp.Heaviside, lambda at, *_: sp.Heaviside(at, 0))
    return sp.lambdify((_X, _Y), formula, [{other.name: other.numpy for other in BUILT_IN}, "numpy"])


def reflected(sign: int) -> tuple[str, ...]:
    """Names of the functions with f(-x) = sign*f(x), by their records.

    >>> reflected(-1), reflected(1)
    (('tanh', 'sin'), ('abs', 'cos'))
    """
    records = [(name, FUNCTIONS[name].reflection) for name in SLOPES]
    return tuple(name for name, reflection in records if reflection is not None and reflection(_X, _Y) == sign * _Y)


# ---------------------------------------------------------------------- function inverses
#: From outputs to arguments, nan where an output does not determine the argument.
Inverse = Callable[[Array], Array]
#: The largest error of an argument caused by rounding an output to float32.
MOST_LOST = 1e-4


def _inverse(record: ElementwiseFunction) -> Inverse | None:
    """x from y = f(x) by the record, where y lies inside the range and rounding it changes x little."""
    if record.pieces is not None and record.pieces[0] == 0:
        slope = record.pieces[1]
        return lambda y: np.where(y > 0, y / slope, np.nan)
    if record.inverse is None or record.domain != REALS:
        return None
    letter, span = sp.Symbol("y", real=True), record.range or REALS
    formula = sp.lambdify(letter, optimize(record.inverse(letter), [expm1_opt]), "numpy")

    def undone(y: Array) -> Array:
        with np.errstate(all="ignore"):
            x = formula(y)
            lost = np.finfo(np.float32).eps * np.abs(y) > MOST_LOST * np.abs(SLOPES[record.name](x, y))
        inside = (y > float(span.lower)) & (y < float(span.upper)) & np.isfinite(x)
        return np.where(inside & ~lost, x, np.nan)

    return undone


def _undone_first(record: ElementwiseFunction) -> tuple[bool, bool, bool]:
    """Sort key: functions with kinks, bounded functions, functions of linear growth, then all others."""
    return record.pieces is None, not record.is_bounded, record.growth != "linear"


@cache
def inverses() -> dict[str, Inverse]:
    """Inverses by name, of the functions that are tried as the outermost function."""
    pairs = ((record.name, _inverse(record)) for record in sorted(BUILT_IN, key=_undone_first))
    return {name: inverse for name, inverse in pairs if inverse is not None}


#: Functions that turn parameters into coefficients, with their inverses.
OF_PARAMETERS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda y: math.log(y / (1 - y))),
    "tanh": (math.tanh, math.atanh),
    "exp": (math.exp, math.log),
    "softplus": (lambda x: math.log1p(math.exp(x)), lambda y: math.log(math.expm1(y))),
    "sqrt": (math.sqrt, lambda y: y * y),
    "log": (math.log, math.exp),
}
#: The functions in leaky and gated activations.
KINK, GATE = "relu", "sigmoid"
#: Functions of single entries that a line may contain besides words, and functions of an affine map added to the state.
OF_ENTRIES = ("tanh", "relu", "sigmoid", "sin", "cos", "exp", "softplus", "abs")
BESIDE_THE_STATE = ("tanh", "sigmoid", "softplus", "sin")
#: Functions that gate a state: their values at H or A@H times H or A@H.
GATES = ("sigmoid", "tanh")


def is_in_range(name: str, outputs: Array) -> bool:
    """Whether the outputs lie in the range of a function; functions with kinks are never excluded.

    >>> is_in_range("tanh", np.array([0.5, 2.0])), is_in_range("exp", np.array([0.5, 2.0]))
    (False, True)
    """
    span = None if FUNCTIONS[name].pieces is not None else FUNCTIONS[name].range
    return span is None or bool(((outputs >= float(span.lower)) & (outputs <= float(span.upper))).all())
