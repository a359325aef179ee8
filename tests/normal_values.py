"""Numbers for normal forms, and for the letters of a system: what tests compare with the dense interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.language.normal_form import Act, Mix
from rdgraph.language.tree import Kind
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.vocabulary.functions import relu, sigmoid, softplus

#: Channels of the states that are drawn.
CHANNELS = 2

FUNCTIONS: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    sp.tanh: np.tanh,
    sp.exp: np.exp,
    sp.Abs: np.abs,
    sp.sin: np.sin,
    sp.cos: np.cos,
    relu: lambda x: np.maximum(x, 0),
    Nought: np.zeros_like,  # what is left of u - u*v/v, wherever v is not 0
    sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    softplus: lambda x: np.log1p(np.exp(x)),
}


class Evaluator:
    """Numbers for a normal form: Act multiplies from the left, Mix from the right, everything else is elementwise."""

    def __init__(self, values: Mapping[str, Any], shape: tuple[int, int]) -> None:
        self.values, self.shape = values, shape
        self.largest = 1.0

    def __call__(self, e: sp.Basic) -> np.ndarray:
        result = np.broadcast_to(np.asarray(self.value(e)), self.shape)
        self.largest = max(self.largest, float(np.abs(result).max()))
        return result

    def value(self, e: Any) -> Any:
        if e.is_number:
            number = complex(e)
            return number.real if number.imag == 0 else number
        match e:
            case sp.Symbol():
                return self.values[e.name]
            case Act():
                result = self(e.inner)
                for letter in reversed(e.word):
                    result = self.values[letter.name] @ result
                return result
            case Mix():
                result = self(e.inner)
                for letter in e.word:
                    result = result @ self.values[letter.name]
                return result
            case sp.Add():
                return sum((self(a) for a in e.args), np.zeros(self.shape))
            case sp.Mul():
                return np.prod([self(a) for a in e.args], axis=0)
            case sp.exp():
                return np.exp(self(e.args[0]))
            case sp.Pow():
                return self(e.base) ** float(e.exp)
        return FUNCTIONS[e.func](self(e.args[0]))


def example(kind: Kind, sign: str, nodes: int, generator: np.random.Generator) -> Any:
    shape = {Kind.SCALAR: (), Kind.CHANNEL: (CHANNELS,), Kind.NODE: (nodes, 1), Kind.MATRIX: (CHANNELS, CHANNELS)}[kind]
    size = generator.uniform(0.3, 1.5, shape)
    flip = generator.choice([-1.0, 1.0], shape) if sign == "real" or kind is Kind.MATRIX else 1.0
    return size * (-1.0 if sign in ("negative", "nonpositive") else flip)
