"""Letters of an equation that nobody gave a value: their shapes, found from the widths of input and output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.syntax.tree import (
    ELEMENTWISE,
    Apply,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    kind_of,
    names_in,
)

Array = np.ndarray
Shape = tuple[int, ...]
#: More unknown numbers than this are not fitted.
MOST_UNKNOWN = 800


@dataclass(frozen=True)
class Unknowns:
    """Unknown letters with their shapes; numbers in a row are their values.

    >>> u = Unknowns((("alpha", ()), ("W", (2, 1))))
    >>> u.unpacked(np.array([1.0, 2.0, 3.0]))["W"].ravel()
    array([2., 3.])
    """

    shapes: tuple[tuple[str, Shape], ...]

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(int(np.prod(shape)) for _, shape in self.shapes)

    @property
    def size(self) -> int:
        return sum(self._sizes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.shapes)

    def unpacked(self, numbers: Array) -> dict[str, Array]:
        found, at = {}, 0
        for (name, shape), size in zip(self.shapes, self._sizes, strict=True):
            found[name] = numbers[at : at + size].reshape(shape)
            at += size
        return found

    def packed(self, values: Mapping[str, Array]) -> Array:
        parts = [np.broadcast_to(np.asarray(values[name], dtype=float), shape).ravel() for name, shape in self.shapes]
        return np.concatenate(parts) if parts else np.zeros(0)


def unknown_letters(
    tree: sp.Basic, known: Iterable[str], widths: tuple[int, int], given: Mapping[str, Shape] | None = None
) -> Unknowns:
    """The letters of a tree without a value, from the width of the state and that of the output.

    A matrix between two others is as wide as the output, unless its shape is given.
    """
    shapes: dict[str, Shape] = {}
    _Widths(widths[0], dict(given or {}), shapes).visit(tree, widths[1])
    unknown = {n.name: n.kind for n in names_in(tree) if n.kind not in (Kind.FIELD, Kind.OPERATOR)}
    for name, kind in sorted(unknown.items()):
        if kind is Kind.NODE and name not in known:
            raise NotApplicable(
                f"expected coefficients that do not depend on the graph, got the node coefficient {name}; declare it "
                "as an operator with a rule, operators={...}"
            )
    found = Unknowns(tuple((name, shapes[name]) for name in sorted(unknown) if name not in set(known)))
    if found.size > MOST_UNKNOWN:
        raise NotApplicable(
            f"expected at most {MOST_UNKNOWN} unknown numbers, got {found.size} in {', '.join(found.names)}; give them "
            "with values={...}, or check a narrower layer"
        )
    return found


class _Widths:
    """A width flows down from the output; what it meets gets its shape."""

    def __init__(self, state: int, given: dict[str, Shape], shapes: dict[str, Shape]) -> None:
        self.state, self.given, self.shapes = state, given, shapes

    def visit(self, tree: sp.Basic, width: int) -> None:
        match tree:
            case Name():
                self.letter(tree, width)
            case Plus() | Minus() | Times() | Over():
                for part in (tree.left, tree.right):
                    self.visit(part, width)
            case Negative():
                self.visit(tree.inner, width)
            case Power():
                self.visit(tree.base, width)
            case Call():
                self.visit(tree.argument, width)
            case Apply() if kind_of(tree.left) is Kind.OPERATOR:
                self.visit(tree.left, width)
                self.visit(tree.right, width)
            case Apply():
                self.mixed(tree, width)

    def letter(self, tree: Name, width: int) -> None:
        match tree.kind:
            case Kind.FIELD if width != self.state:
                raise InvalidArgument(
                    f"expected {tree.name} with {width} channels, got a state with {self.state}; write a matrix, as in "
                    f"{tree.name}@W, where a layer changes the number of channels"
                )
            case Kind.CHANNEL:
                self.shapes[tree.name] = (width,)
            case Kind.SCALAR | Kind.NODE:
                self.shapes[tree.name] = ()

    def mixed(self, tree: Apply, width: int) -> None:
        """field @ matrices: the last matrix ends at `width`, the first begins where the field does."""
        letters = _chain(tree.right)
        inner = self._inner_width(tree.left, letters, width)
        for place, letter in enumerate(letters):
            default = (inner if place == 0 else width, width)
            self.shapes[letter.name] = self.given.get(letter.name, default)
        self._scalars(tree.right)
        self.visit(tree.left, inner)

    def _inner_width(self, left: sp.Basic, letters: list[Name], width: int) -> int:
        if letters and letters[0].name in self.given:
            return self.given[letters[0].name][0]
        return self._own_width(left) or width

    def _own_width(self, tree: sp.Basic) -> int | None:
        """The width of a tree where a field or a matrix of given shape fixes it."""
        match tree:
            case Name():
                return self.state if tree.kind is Kind.FIELD else None
            case sp.Rational():
                return None
            case Apply() if kind_of(tree.left) in ELEMENTWISE:
                last = _chain(tree.right)
                return self.given[last[-1].name][1] if last and last[-1].name in self.given else None
        return next((w for part in tree.args if names_in(part) and (w := self._own_width(part))), None)

    def _scalars(self, matrix: sp.Basic) -> None:
        for letter in names_in(matrix):
            if letter.kind is Kind.SCALAR:
                self.shapes[letter.name] = ()


def _chain(matrix: sp.Basic) -> list[Name]:
    """The matrices of a product, from left to right; those of a sum share their shape."""
    match matrix:
        case Name():
            return [matrix] if matrix.kind is Kind.MATRIX else []
        case Apply():
            return _chain(matrix.left) + _chain(matrix.right)
    return [letter for part in matrix.args if names_in(part) for letter in _chain(part)]
