"""Interpolation by features: which words A^k and which functions of entries occur in the answers of a layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy as sp

from rdgraph.conformance.number_words import MOST_PARTS
from rdgraph.conformance.operator_reading import Reading
from rdgraph.conformance.probe_stack import Stack
from rdgraph.identities.dense_oracle import evaluate
from rdgraph.syntax.reader import Vocabulary, read_expression
from rdgraph.syntax.tree import Kind

_VOCABULARY = Vocabulary.standard({"D": Kind.OPERATOR})
#: Coefficients below this part of the largest one are none.
NOTHING = 1e-8

Array = np.ndarray


@dataclass(frozen=True)
class FeatureFit:
    """sum_k F_k W_k + sum_m c_m G_m + b: matrices for the words, a number per channel for functions, a constant."""

    words: tuple[str, ...]
    matrices: tuple[Array, ...]
    entries: tuple[str, ...]
    factors: tuple[Array, ...]
    constant: Array
    error: float

    @property
    def occurring(self) -> int:
        """How many words and functions have a coefficient that is not zero."""
        return sum(not is_zero(m, self.size) for m in (*self.matrices, *self.factors))

    @property
    def size(self) -> float:
        """The largest coefficient."""
        parts = [*self.matrices, *self.factors]
        return max((float(np.abs(m).max(initial=0.0)) for m in parts), default=0.0)


def is_zero(array: Array, size: float) -> bool:
    """Whether an array is nothing beside the largest coefficient."""
    return bool(np.abs(array).max(initial=0.0) <= NOTHING * max(size, 1e-300))


def fit_features(
    stack: Stack,
    reading: Reading,
    words: Sequence[str],
    entries: Sequence[str] = (),
    undone: Callable[[Array], Array] | None = None,
) -> FeatureFit:
    """Least squares for the coefficients; `undone` inverts a function around everything, nan where it has no inverse.

    The error is that of the inner values, as a part of the largest.
    """
    letters = {**stack.states, **stack.operators(reading)}
    mixed = np.hstack([evaluate(tree_of(word), letters) for word in words])
    single = [evaluate(tree_of(entry), letters) for entry in entries]
    wanted = stack.outputs if undone is None else undone(stack.outputs)
    scale = stack.tolerance(1.0)
    out = wanted.shape[1]
    solved, worst = np.zeros((mixed.shape[1] + len(entries) + 1, out)), 0.0
    # Channels share their equations where nothing is taken entry by entry.
    for channels in [slice(None)] if undone is None and not entries else [slice(k, k + 1) for k in range(out)]:
        design = np.hstack([mixed, *(g[:, channels] for g in single), np.ones((len(wanted), 1))]) / scale
        right = wanted[:, channels] / scale
        kept = np.isfinite(right).all(axis=1)
        design, right = design[kept], right[kept]
        if len(design) < design.shape[1] or not np.isfinite(design).all():
            return FeatureFit(tuple(words), (), tuple(entries), (), np.zeros(out), np.inf)
        solved[:, channels] = np.linalg.lstsq(design, right, rcond=1e-11)[0]
        worst = max(worst, float(np.abs(design @ solved[:, channels] - right).max(initial=0.0)))
    width = mixed.shape[1] // len(words)
    matrices = tuple(solved[k * width : (k + 1) * width] for k in range(len(words)))
    factors = tuple(solved[mixed.shape[1] : -1])
    return FeatureFit(tuple(words), matrices, tuple(entries), factors, solved[-1], worst)


@cache
def tree_of(text: str) -> sp.Basic:
    """The tree of a feature; D is the degree matrix."""
    return read_expression(text, _VOCABULARY)


@dataclass(frozen=True)
class Line:
    """A line of the language, the kinds of its letters, and their values."""

    text: str
    kinds: dict[str, str]
    values: dict[str, Array]


def written(fit: FeatureFit) -> Line:
    """The fit as a line: numbers where a matrix is a multiple of I, one matrix where all are multiples of it.

    >>> fit = FeatureFit(("H", "A@H"), (np.zeros((2, 2)), 0.5*np.eye(2)), (), (), np.zeros(2), 0.0)
    >>> written(fit).text
    '0.5*A@H'
    """
    size = fit.size
    blocks = [(w, m) for w, m in zip(fit.words, fit.matrices, strict=True) if not is_zero(m, size)]
    kinds: dict[str, str] = {}
    values: dict[str, Array] = {}
    shared = _shared(blocks)
    terms: list[str] = []
    if shared is not None:
        matrix, numbers = shared
        inner = _sum([_scaled(c, w) for c, (w, _) in zip(numbers, blocks, strict=True)])
        kinds["W"], values["W"] = "matrix", matrix
        terms.append(f"({inner})@W" if len(blocks) > 1 or "@" in inner or "*" in inner else f"{inner}@W")
    else:
        for k, (word, matrix) in enumerate(blocks):
            terms.append(_block(word, matrix, f"W{k + 1}", f"k{k + 1}", kinds, values))
    for m, (entry, factor) in enumerate(zip(fit.entries, fit.factors, strict=True)):
        if not is_zero(factor, size):
            terms.append(_channelled(entry, factor, f"c{m + 1}", kinds, values))
    if not is_zero(fit.constant, max(size, 1.0)):
        terms.append(_constant(fit.constant, kinds, values))
    return Line(_sum(terms) if terms else "0*H", kinds, values)


def _shared(blocks: Sequence[tuple[str, Array]]) -> tuple[Array, list[float]] | None:
    """One matrix of which all are multiples, and the multiples; None where there is none, or a number does."""
    if not blocks or all(_multiple_of_identity(m) is not None for _, m in blocks):
        return None
    if any(_diagonal(m) is not None and m.shape[0] > 1 for _, m in blocks):
        return None
    matrix = max((m for _, m in blocks), key=lambda m: float(np.abs(m).max()))
    place = np.unravel_index(np.abs(matrix).argmax(), matrix.shape)
    numbers = [float(m[place] / matrix[place]) for _, m in blocks]
    near = all(
        np.abs(m - c * matrix).max() <= NOTHING * np.abs(matrix).max()
        for c, (_, m) in zip(numbers, blocks, strict=True)
    )
    return (matrix, numbers) if near else None


def _block(word: str, matrix: Array, name: str, channel: str, kinds: dict[str, str], values: dict[str, Array]) -> str:
    if (number := _multiple_of_identity(matrix)) is not None:
        return _scaled(number, word)
    if (diagonal := _diagonal(matrix)) is not None:
        return _channelled(word, diagonal, channel, kinds, values)
    kinds[name], values[name] = "matrix", matrix
    return f"{word}@{name}"


def _channelled(entry: str, factor: Array, name: str, kinds: dict[str, str], values: dict[str, Array]) -> str:
    if np.ptp(factor) <= NOTHING * np.abs(factor).max():
        return _scaled(float(factor.mean()), entry)
    kinds[name], values[name] = "channel", factor
    return f"{name}*({entry})" if "+" in entry else f"{name}*{entry}"


def _constant(constant: Array, kinds: dict[str, str], values: dict[str, Array]) -> str:
    if np.ptp(constant) <= NOTHING * np.abs(constant).max():
        return number_text(float(constant.mean()))
    kinds["b"], values["b"] = "channel", constant
    return "b"


def _scaled(number: float, word: str) -> str:
    text = number_text(number)
    return word if text == "1" else f"-{word}" if text == "-1" else f"{text}*{word}"


def number_text(value: float) -> str:
    """A number that the language reads: a short decimal or fraction where it is near one.

    >>> number_text(0.3333333333333), number_text(-0.25), number_text(2.0000000000001)
    ('1/3', '-0.25', '2')
    """
    for digits in range(5):
        if abs(round(value, digits) - value) <= 1e-9 * max(1.0, abs(value)):
            return f"{round(value, digits):.{digits}f}"
    plain = sp.Rational(value).limit_denominator(MOST_PARTS)
    if abs(float(plain) - value) <= 1e-9 * max(1.0, abs(value)):
        return str(plain)
    return f"{value:.13g}" if "e" not in f"{value:.13g}" else f"{value:.16f}"


def _sum(terms: Sequence[str]) -> str:
    text = terms[0]
    for term in terms[1:]:
        text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return text


def _multiple_of_identity(matrix: Array) -> float | None:
    diagonal = _diagonal(matrix)
    if diagonal is None or np.ptp(diagonal) > NOTHING * np.abs(matrix).max():
        return None
    return float(diagonal.mean())


def _diagonal(matrix: Array) -> Array | None:
    if matrix.shape[0] != matrix.shape[1]:
        return None
    rest = matrix - np.diag(matrix.diagonal())
    return matrix.diagonal() if np.abs(rest).max(initial=0.0) <= NOTHING * np.abs(matrix).max() else None
