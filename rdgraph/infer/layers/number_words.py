"""Fitted numbers in words: fractions, functions of fractions, and the parameters of a layer that they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from rdgraph.infer.layers.function_inverses import OF_PARAMETERS

#: Denominators of fractions that a number is taken for, and how near it must lie.
MOST_PARTS, NEAR = 64, 1e-9

Array = np.ndarray


def number_word(
    value: float, named: Mapping[str, Array] | None = None, near: float = NEAR, letter: str = ""
) -> tuple[str, float]:
    """A number in words, and the number that these words stand for.

    Of the layer's parameters that fit, the one with the name of the letter comes first, and 1 - p after every p.

    >>> number_word(0.3333333333333), number_word(1/(1 + math.exp(-0.3)))[0], number_word(2.0)[0]
    (('1/3', 0.3333333333333333), 'sigmoid(0.3)', '2')
    >>> number_word(0.123456, {"beta": np.array(0.123456)})[0]
    'beta of the layer'
    >>> layer = {"alpha": np.array(0.7654321), "beta": np.array(0.2345679)}
    >>> [number_word(0.2345679, layer, letter=letter)[0] for letter in ("beta", "k")]
    ['beta of the layer', 'beta of the layer']
    """
    close = near * max(1.0, abs(value))
    if (plain := _fraction(value, close)) is not None:
        return _written(plain), float(plain)
    single = {key: float(array.reshape(-1)[0]) for key, array in (named or {}).items() if array.size == 1}
    ordered = sorted(single.items(), key=lambda pair: pair[0].rpartition(".")[2] != letter)
    for words in (_as_parameter, _from_parameter):
        for key, parameter in ordered:
            if word := words(value, key, parameter, close):
                return word
    for name, (function, inverse) in OF_PARAMETERS.items():
        try:
            inner = _fraction(inverse(value), near)
            if inner is not None and inner.denominator <= 20 and abs(function(float(inner)) - value) <= close:
                return f"{name}({_written(inner)})", function(float(inner))
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
    return f"{value:.10g}", value


def array_word(name: str, value: Array, named: Mapping[str, Array] | None = None, near: float = NEAR) -> str:
    """What a fitted letter is, in words.

    >>> array_word("W", np.eye(2)), array_word("k", np.array([0.5, 0.25]))
    ('W = I', 'k = (1/2, 1/4)')
    """
    if value.ndim == 0:
        return f"{name} = {number_word(float(value), named, near, name)[0]}"
    for key, array in (named or {}).items():
        squeezed = array.squeeze() if array.ndim > value.ndim else array
        if squeezed.shape == value.shape and _same(squeezed, value, near):
            return f"{name} = {key} of the layer"
        if squeezed.ndim == 2 and squeezed.T.shape == value.shape and _same(squeezed.T, value, near):
            return f"{name} = {key} of the layer, transposed"
    if value.ndim == 1:
        shown = ", ".join(number_word(float(v), None, near)[0] for v in value[:4])
        return f"{name} = ({shown}{', ...' if len(value) > 4 else ''})"
    rows, columns = value.shape
    if rows == columns and _same(value, np.eye(rows), near):
        return f"{name} = I"
    if rows == columns and _same(value, value[0, 0] * np.eye(rows), near):
        return f"{name} = {number_word(float(value[0, 0]), named, near)[0]}*I"
    return f"{name} fitted ({rows} x {columns})"


def _fraction(value: float, close: float) -> Fraction | None:
    if not math.isfinite(value) or abs(value) > 1e6:
        return None
    plain = Fraction(value).limit_denominator(MOST_PARTS)
    if abs(float(plain) - value) <= close:
        return plain
    decimal = Fraction(round(value * 10**4), 10**4)
    return decimal if abs(float(decimal) - value) <= close else None


def _written(plain: Fraction) -> str:
    """A fraction as a short decimal where it ends, else as p/q."""
    text = f"{float(plain):.6g}"
    short = plain.denominator in (1, 5, 10, 20, 25, 50) or plain.denominator > MOST_PARTS
    return text if short and Fraction(text) == plain else str(plain)


def _as_parameter(value: float, key: str, parameter: float, close: float) -> tuple[str, float] | None:
    return (f"{key} of the layer", parameter) if abs(parameter - value) <= close else None


def _from_parameter(value: float, key: str, parameter: float, close: float) -> tuple[str, float] | None:
    if abs(1 - parameter - value) <= close:
        return f"1 - {key} of the layer", 1 - parameter
    for name, (function, _) in OF_PARAMETERS.items():
        try:
            if abs(function(parameter) - value) <= close:
                return f"{name}({key} of the layer)", function(parameter)
        except (ValueError, OverflowError):
            continue
    return None


def _same(left: Array, right: Array, near: float) -> bool:
    return bool(np.abs(left - right).max(initial=0.0) <= near * max(1.0, float(np.abs(right).max(initial=0.0))))
