"""Functions of the language that formulas are made of, with their slopes as numbers, both from their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np
import sympy as sp

from rdgraph.vocabulary.function_records import BUILT_IN, REALS
from rdgraph.vocabulary.functions import FUNCTIONS

Array = np.ndarray
#: From x and y = f(x) to f'(x).
Slope = Callable[[Array, Array], Array]
_X, _Y = sp.symbols("x y", real=True)
#: Those that are looked for unless others are named.
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
    """Those with f(-x) = sign*f(x), by their records.

    >>> reflected(-1), reflected(1)
    (('tanh', 'sin'), ('abs', 'cos'))
    """
    records = [(name, FUNCTIONS[name].reflection) for name in SLOPES]
    return tuple(name for name, reflection in records if reflection is not None and reflection(_X, _Y) == sign * _Y)
