"""Sparse regression over a library of terms: every choice of a few of them, by exact least squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rdgraph.infer.formulas.constant_fits import Target
from rdgraph.infer.formulas.formula_archive import Archive, Candidate
from rdgraph.infer.formulas.function_slopes import SLOPES, reflected
from rdgraph.infer.formulas.prefix_terms import Word, arity, end_of, evaluate, size_of, weighted_sum

# ---------------------------------------------------------------------- term forms
# One spelling for terms that are the same: sums and products in order, squares, constants of constants.

Array = np.ndarray
_ODD, _EVEN = (*reflected(-1), "cube"), (*reflected(1), "square")


@dataclass(frozen=True, eq=False)
class _Node:
    """A sign, what it acts on, and the values (sets,) of a constant."""

    sign: str
    inner: tuple[_Node, ...] = ()
    value: Array | None = None

    def word(self) -> Word:
        return (self.sign, *(sign for node in self.inner for sign in node.word()))

    def values(self) -> list[Array]:
        own = [] if self.value is None else [self.value]
        return own + [value for node in self.inner for value in node.values()]


def plain_form(word: Word, constants: Array) -> tuple[Word, Array]:
    """The term in the one spelling, with its constants (sets, count) in their new order.

    >>> plain_form(("*", "*", "x", "x", "+", "c", "1"), np.array([[2.0]]))
    (('*', 'c', 'square', 'x'), array([[3.]]))
    """
    columns = iter(constants.T)
    node = _plain(_read(iter(word), columns))
    values = node.values()
    found = np.stack(values, 1) if values else np.zeros((len(constants), 0))
    return node.word(), found


def _read(word: Iterator[str], columns: Iterator[Array]) -> _Node:
    sign = next(word)
    if sign == "c":
        return _Node("c", (), next(columns))
    return _Node(sign, tuple(_read(word, columns) for _ in range(arity(sign))))


def _plain(node: _Node) -> _Node:
    inner = tuple(_plain(part) for part in node.inner)
    made = _Node(node.sign, inner, node.value)
    if not inner:
        return made
    word = made.word()
    if "x" not in word and "c" in word:
        values = np.stack(made.values(), 1)
        return _Node("c", (), evaluate(word, values, np.zeros(1))[:, 0])
    if made.sign in ("+", "*"):
        return _ordered(made)
    if made.sign == "-" and inner[1].sign == "c" and inner[1].value is not None and (inner[1].value < 0).all():
        return _ordered(_Node("+", (inner[0], _Node("c", (), -inner[1].value))))
    if made.sign in (*_ODD, *_EVEN):
        return _without_sign(made)
    return made


def _ordered(node: _Node) -> _Node:
    left, right = sorted(node.inner, key=_rank)
    if left.sign == "c" and left.value is not None and right.sign == node.sign and right.inner[0].sign == "c":
        # c*(c*w) and c + (c + w) have one constant.
        other = right.inner[0].value
        value = left.value * other if node.sign == "*" else left.value + other
        return _Node(node.sign, (_Node("c", (), value), right.inner[1]))
    if left.sign == "c" and node.sign == "+":
        # Of c + w, what depends on the letter is written first: w - 0.3.
        if left.value is not None and (left.value < 0).all():
            return _Node("-", (right, _Node("c", (), -left.value)))
        return _Node("+", (left, right))
    same = left.word() == right.word() and not left.values()
    if same:
        return _Node("square", (left,)) if node.sign == "*" else _Node("*", (_Node("2"), left))
    if node.sign == "*" and left.sign == "x" and right.word() == ("square", "x"):
        return _Node("cube", (left,))
    return _Node(node.sign, (left, right))


def _without_sign(node: _Node) -> _Node:
    """An even function of -w is that of w; the sign of an odd one is left to the factor before the term."""
    (inner,) = node.inner
    factor = inner.inner[0] if inner.sign == "*" else None
    if node.sign in _EVEN and factor is not None and factor.value is not None and (factor.value < 0).all():
        return _Node(node.sign, (_Node("*", (_Node("c", (), -factor.value), inner.inner[1])),))
    return node


def _rank(node: _Node) -> tuple[int, int, Word]:
    """Constants first, then numbers, the letter, powers of it, and what is larger."""
    kind = 0 if node.sign == "c" else 1 if arity(node.sign) == 0 and node.sign != "x" else 2 if node.sign == "x" else 3
    word = node.word()
    return kind, size_of(word), word


def signs_moved(word: Word, factor: Array, constants: Array) -> tuple[Word, Array, Array]:
    """A term, its factor and its constants, the signs moved to where they are easy to read.

    An odd function is not taken of a negative multiple, and a negative factor turns a difference round.

    >>> signs_moved(("tanh", "*", "c", "x"), np.array([2.0]), np.array([[-3.0]]))
    (('tanh', '*', 'c', 'x'), array([-2.]), array([[3.]]))
    >>> signs_moved(("*", "x", "-", "x", "1"), np.array([-2.0]), np.zeros((1, 0)))[:2]
    (('*', 'x', '-', '1', 'x'), array([2.]))
    """
    if len(word) > 2 and word[0] in _ODD and word[1:3] == ("*", "c") and (constants[:, 0] < 0).all():
        factor, constants = -factor, np.concatenate([-constants[:, :1], constants[:, 1:]], 1)
    place = _difference(word)
    if place is None or not (factor < 0).all():
        return word, factor, constants
    middle = end_of(word, place + 1)
    stop = end_of(word, middle)
    first, second = word[place + 1 : middle], word[middle:stop]
    before = word[:place].count("c")
    cuts = np.cumsum([before, first.count("c"), second.count("c")])
    parts = np.split(constants, cuts, axis=1)
    swapped = (*word[: place + 1], *second, *first, *word[stop:])
    return swapped, -factor, np.concatenate([parts[0], parts[2], parts[1], parts[3]], 1)


def _difference(word: Word, place: int = 0) -> int | None:
    """Where a factor of a product is a difference; None where none is."""
    if word[place] == "-":
        return place
    if word[place] != "*":
        return None
    left = _difference(word, place + 1)
    return left if left is not None else _difference(word, end_of(word, place + 1))


def is_trivial(word: Word) -> bool:
    """Whether a part of a term is needed by no formula: w - w, w/w, 1*w, w/1, or a function of a number.

    >>> is_trivial(("*", "x", "-", "x", "x")), is_trivial(("tanh", "x"))
    (True, False)
    """
    return any(_is_idle(word, place) for place in range(len(word)))


def _is_idle(word: Word, place: int) -> bool:
    sign = word[place]
    if arity(sign) == 0:
        return False
    if arity(sign) == 1:
        return arity(word[place + 1]) == 0 and word[place + 1] not in ("x", "c")
    middle = end_of(word, place + 1)
    left, right = word[place + 1 : middle], word[middle : end_of(word, middle)]
    if sign in ("-", "/") and left == right and "c" not in left:
        return True
    return (sign == "*" and ("1",) in (left, right)) or (sign == "/" and right == ("1",))


def is_nested(word: Word) -> bool:
    """Whether a function is taken of something with a function in it.

    >>> is_nested(("tanh", "+", "x", "sin", "x")), is_nested(("*", "tanh", "x", "sin", "x"))
    (True, False)
    """
    places = [place for place, sign in enumerate(word) if sign in SLOPES]
    return any(sign in SLOPES for place in places for sign in word[place + 1 : end_of(word, place)])


# ---------------------------------------------------------------------- term library
#: Terms without constants of their own: powers, and the factored forms that reactions have.
POLYNOMIALS: tuple[Word, ...] = (
    ("1",),
    ("x",),
    ("square", "x"),
    ("cube", "x"),
    ("square", "square", "x"),
    ("*", "x", "square", "square", "x"),
    ("*", "x", "-", "1", "x"),
    ("*", "x", "+", "1", "x"),
    ("*", "x", "-", "1", "square", "x"),
    ("*", "square", "x", "-", "1", "x"),
)
MOST_TERMS = 4
#: A share of the diagonal that is added to it, so that terms that are the same on all points do no harm.
_RIDGE = 1e-12
#: Columns below this size are nothing: a term can vanish for one set of points and not for another.
_NOTHING = 1e-100


def library(functions: Sequence[str]) -> list[Word]:
    """All terms: powers, factored forms, each function, and x times each."""
    return [*POLYNOMIALS, *((name, "x") for name in functions), *(("*", "x", name, "x") for name in functions)]


def solve_subsets(gram: Array, along: Array, total: Array, subsets: Array) -> tuple[Array, Array]:
    """Coefficients (choices, sets, terms) and squares (choices, sets) of every choice of columns at once.

    `gram` (sets, columns, columns) and `along` (sets, columns) are the products of the columns with each other and with
    the rows, `total` (sets,) the squares of the rows.
    """
    chosen = gram[:, subsets[:, :, None], subsets[:, None, :]].swapaxes(0, 1)
    right = along[:, subsets].swapaxes(0, 1)
    size = np.sqrt(np.diagonal(chosen, axis1=2, axis2=3))
    scale = np.where(size > _NOTHING, size, 1.0)
    matrix = chosen / (scale[..., :, None] * scale[..., None, :]) + _RIDGE * np.eye(subsets.shape[1])
    coefficients = np.linalg.solve(matrix, (right / scale)[..., None])[..., 0] / scale
    explained = 2 * (coefficients * right).sum(-1) - np.einsum("csa,csab,csb->cs", coefficients, chosen, coefficients)
    return coefficients, np.maximum(total - explained, 0.0)


def products_of(target: Target, columns: Array) -> tuple[Array, Array, Array]:
    """What `solve_subsets` needs of columns (sets, columns, rows)."""
    return columns @ columns.swapaxes(1, 2), (columns @ target.y[..., None])[..., 0], np.square(target.y).sum(-1)


def search_library(target: Target, functions: Sequence[str], archive: Archive) -> None:
    """Every choice of up to four terms of the library, the best of each size kept."""
    words = [word for word in library(functions) if size_of(word) <= archive.max_size]
    nothing = np.zeros((target.sets, 0))
    columns = np.stack([target.measure(evaluate(word, nothing, target.x)) for word in words], 1)
    usable = np.isfinite(columns).all((0, 2)) & (np.abs(columns).max((0, 2)) < 1e8)
    words, columns = [word for word, good in zip(words, usable, strict=True) if good], columns[:, usable]
    gram, along, total = products_of(target, columns)
    for count in range(1, MOST_TERMS + 1):
        subsets = np.array(list(combinations(range(len(words)), count)))
        if not len(subsets):
            return
        coefficients, squares = solve_subsets(gram, along, total, subsets)
        sizes = size_sums(np.array([size_of(word) for word in words]), subsets, [word == ("1",) for word in words])
        for place in best_of_each(sizes, squares.sum(-1), archive.keep):
            word = weighted_sum([words[k] for k in subsets[place]])
            archive.add(Candidate(word, coefficients[place], float(squares[place].sum())))


def size_sums(sizes: Array, subsets: Array, is_one: Sequence[bool]) -> Array:
    """The sizes of the weighted sums of every choice: each term with its constant and its sign, and a plus between."""
    with_constants = sizes + np.where(is_one, 1, 3)
    return with_constants[subsets].sum(-1) + subsets.shape[1] - 1


def best_of_each(sizes: Array, squares: Array, keep: int) -> Array:
    """The places of the few smallest squares of every size."""
    order = np.lexsort((squares, sizes))
    sorted_sizes = sizes[order]
    first = np.searchsorted(sorted_sizes, sorted_sizes)
    return order[np.arange(len(order)) - first < keep]
