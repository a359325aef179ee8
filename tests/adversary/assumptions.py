"""Coefficients that satisfy what is assumed about them: positive unless said otherwise, entry by entry."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.adversary.expressions import evaluate

Random = np.random.Generator
Values = dict[str, Any]

SIGNS = ("positive", "negative", "nonnegative", "nonpositive", "real")
_TESTS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ATTEMPTS = 400


class Unsatisfied(ValueError):
    """No coefficients were found that satisfy the assumptions."""


@dataclass(frozen=True)
class Comparison:
    """left < right and the like, between coefficient expressions."""

    left: str
    sign: str
    right: str

    def holds(self, values: Mapping[str, Any]) -> bool:
        return bool(np.all(_TESTS[self.sign](evaluate(self.left, values), evaluate(self.right, values))))


@dataclass(frozen=True)
class Assumed:
    """Sign words and comparisons, read from texts such as "beta<0", "beta real", "0 < beta <= alpha"."""

    signs: tuple[tuple[str, str], ...]
    comparisons: tuple[Comparison, ...]

    def sign(self, name: str) -> str:
        return dict(self.signs).get(name, "positive")

    def satisfied(self, values: Mapping[str, Any], fixed: Collection[str] = ()) -> bool:
        """Whether values are admissible; letters that a hypothesis fixes need not be positive by default."""
        return self.signs_hold(values, fixed) and all(c.holds(values) for c in self.comparisons)

    def signs_hold(self, values: Mapping[str, Any], fixed: Collection[str] = ()) -> bool:
        tests = {"positive": np.greater, "negative": np.less, "nonnegative": np.greater_equal,
                 "nonpositive": np.less_equal}  # fmt: skip
        by_default = set(fixed) - {name for name, _ in self.signs}
        signed = {name: self.sign(name) for name in values if name not in {"M", "W"} | by_default}
        return all(word == "real" or bool(np.all(tests[word](values[name], 0))) for name, word in signed.items())


def read(statements: Iterable[str]) -> Assumed:
    """The assumptions of a list of texts. A comparison of one letter with 0 says its sign."""
    signs: dict[str, str] = {}
    comparisons: list[Comparison] = []
    for text in statements:
        words = text.split()
        if len(words) == 2 and words[1] in SIGNS:
            _add_sign(words[0], words[1], signs)
            continue
        parts = [p.strip() for p in re.split(r"(<=|>=|<|>)", text)]
        for left, sign, right in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
            _note(left, sign, right, signs, comparisons)
    return Assumed(tuple(sorted(signs.items())), tuple(comparisons))


def _note(left: str, sign: str, right: str, signs: dict[str, str], comparisons: list[Comparison]) -> None:
    words = {"<": "negative", "<=": "nonpositive", ">": "positive", ">=": "nonnegative"}
    flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    if left == "0":
        left, sign, right = right, flipped[sign], left
    if right == "0" and left.isidentifier():
        _add_sign(left, words[sign], signs)
    else:
        comparisons.append(Comparison(left, sign, right))


_ALLOWED = {"real": "+0-", "positive": "+", "negative": "-", "nonnegative": "+0", "nonpositive": "0-"}


def _add_sign(name: str, word: str, signs: dict[str, str]) -> None:
    """Several statements about one sign mean what is common to them."""
    both = "".join(c for c in _ALLOWED[word] if c in _ALLOWED[signs.get(name, "real")])
    if both not in _ALLOWED.values():
        raise Unsatisfied(f"expected signs of {name} that agree, got {signs[name]} and {word}")
    signs[name] = next(w for w, allowed in _ALLOWED.items() if allowed == both)


def sample(assumed: Assumed, kinds: Mapping[str, str], rng: Random, nodes: int = 1, channels: int = 1) -> Values:
    """Values of the right shape for every letter of `kinds`; borders and ties occur.

    Raises:
        Unsatisfied: when no admissible values were found.
    """
    shapes = {"scalar": (), "channel": (channels,), "node": (nodes, 1), "matrix": (channels, channels)}
    for attempt in range(_ATTEMPTS):
        spread = 1.0 if attempt < _ATTEMPTS // 2 else 0.2
        values: Values = {}
        tied = float(_size(rng, ())) if rng.random() < 0.08 else None
        for name, kind in kinds.items():
            if name == "M":
                values[name] = (rng.random(shapes["node"]) < 0.5).astype(float)
            elif kind == "matrix":
                values[name] = rng.normal(size=shapes["matrix"]) * rng.uniform(0.1, 2)
            else:
                size = _size(rng, shapes[kind], spread) if tied is None else np.full(shapes[kind], tied)
                values[name] = _signed(size, assumed.sign(name), rng)
        _touch(assumed, values, rng)
        if assumed.satisfied(values):
            return values
    raise Unsatisfied(f"expected coefficients with {assumed}, found none")


def _size(rng: Random, shape: tuple[int, ...], spread: float = 1.0) -> Any:
    if rng.random() < 0.2:
        return np.asarray(rng.choice([0.5, 1.0, 2.0, 3.0], size=shape), dtype=float)
    return np.exp(spread * rng.uniform(np.log(0.05), np.log(6.0), size=shape))


def _signed(size: Any, word: str, rng: Random) -> Any:
    size = np.asarray(size, dtype=float)
    if word in ("real", "nonnegative", "nonpositive") and rng.random() < 0.12:
        return size * 0.0
    if word == "real":
        return size * rng.choice([-1.0, 1.0], size=size.shape)
    return -size if word in ("negative", "nonpositive") else size


def _touch(assumed: Assumed, values: Values, rng: Random) -> None:
    """Now and then the border of a comparison that allows it."""
    for comparison in assumed.comparisons:
        if comparison.sign in ("<=", ">=") and comparison.left in values and rng.random() < 0.2:
            right = np.asarray(evaluate(comparison.right, values), dtype=float)
            values[comparison.left] = np.broadcast_to(right, np.shape(values[comparison.left])).copy()
