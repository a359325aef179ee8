"""Unknown coefficients fitted to the outputs of a layer, by linear least squares or iteratively."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.infer.fit.damped_steps import Effort, minimise
from rdgraph.infer.formulas.slopes_and_inverses import inverses
from rdgraph.infer.layers.equation_target import Target
from rdgraph.infer.layers.probe_graphs import Reading
from rdgraph.infer.layers.probe_stack import Stack
from rdgraph.language.tree import (
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

# ---------------------------------------------------------------------- unknown coefficients
# Coefficients of an equation without a value: their shapes, inferred from the widths of input and output.

Array = np.ndarray
Shape = tuple[int, ...]
#: The name of the coefficient that replaces a number or coefficient that is fitted again.
FREED = "fitted"
#: More unknown numbers than this are not fitted.
MOST_UNKNOWN = 800


@dataclass(frozen=True)
class Unknowns:
    """Unknown coefficients with their shapes; a row of numbers holds their values.

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
        values, at = {}, 0
        for (name, shape), size in zip(self.shapes, self._sizes, strict=True):
            values[name] = numbers[at : at + size].reshape(shape)
            at += size
        return values

    def packed(self, values: Mapping[str, Array]) -> Array:
        parts = [np.broadcast_to(np.asarray(values[name], dtype=float), shape).ravel() for name, shape in self.shapes]
        return np.concatenate(parts) if parts else np.zeros(0)


def unknown_coefficients(
    tree: sp.Basic, known: Iterable[str], widths: tuple[int, int], given: Mapping[str, Shape] | None = None
) -> Unknowns:
    """The coefficients of a tree without a value, shaped by the width of the state and that of the output.

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
    unknowns = Unknowns(tuple((name, shapes[name]) for name in sorted(unknown) if name not in set(known)))
    if unknowns.size > MOST_UNKNOWN:
        raise NotApplicable(
            f"expected at most {MOST_UNKNOWN} unknown numbers, got {unknowns.size} in {', '.join(unknowns.names)}; "
            "give them with values={...}, or check a narrower layer"
        )
    return unknowns


class _Widths:
    """Propagates the width of the output down the tree and records the shapes of the coefficients."""

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
        """field @ matrices: the last matrix ends at `width`, the first begins with the width of the field."""
        letters = _chain(tree.right)
        inner = self._inner_width(tree.left, letters, width)
        for position, letter in enumerate(letters):
            default = (inner if position == 0 else width, width)
            self.shapes[letter.name] = self.given.get(letter.name, default)
        self._scalars(tree.right)
        self.visit(tree.left, inner)

    def _inner_width(self, left: sp.Basic, letters: list[Name], width: int) -> int:
        if letters and letters[0].name in self.given:
            return self.given[letters[0].name][0]
        return self._fixed_width(left) or width

    def _fixed_width(self, tree: sp.Basic) -> int | None:
        """The width of a tree, if a field or a matrix of given shape determines it."""
        match tree:
            case Name():
                return self.state if tree.kind is Kind.FIELD else None
            case sp.Rational():
                return None
            case Apply() if kind_of(tree.left) in ELEMENTWISE:
                last = _chain(tree.right)
                return self.given[last[-1].name][1] if last and last[-1].name in self.given else None
        return next((w for part in tree.args if names_in(part) and (w := self._fixed_width(part))), None)

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


# ---------------------------------------------------------------------- coefficient fit
#: The least cost of an evaluation, in output numbers.
LEAST = 2_000
#: Starts of the search where coefficients do not enter linearly.
STARTS = 6
#: Steps of one search, and how many steps without progress end it.
ITERATIONS, SLOW = 80, 8
#: Sums of squares up to here are exact.
EXACT = 1e-28
#: Singular values below this share of the largest one belong to undetermined directions.
RANK = 1e-9

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Fit:
    """Values of the unknown coefficients, the largest relative error, and the coefficients that are not determined.

    `is_certain` says whether no other values have a smaller error, as after linear least squares.
    """

    values: dict[str, Array]
    error: float
    loose: tuple[str, ...] = field(default=())
    is_certain: bool = False


@dataclass(frozen=True)
class Search:
    """Settings of the search for coefficients that do not enter linearly.

    `starts`: their number, 0 for no search; `guesses`: initial values, such as the parameters of the layer; `objects`:
    the assumption violated by values that fit, in words, so that the search continues; `effort`: the budget.
    """

    starts: int = STARTS
    guesses: Sequence[Mapping[str, Array]] = ()
    objects: Callable[[Fit], str] = lambda fit: ""
    enough: float = 1e-10
    effort: Effort = field(default_factory=Effort)


def fitted(
    target: Target, unknowns: Unknowns, stack: Stack, reading: Reading, known: Values, search: Search | None = None
) -> Fit:
    """The values with the smallest error on a stack of probes.

    Args:
        target: what is compared.
        unknowns: the coefficients to be fitted.
        stack: probes with the outputs of the layer.
        reading: the meaning of A.
        known: values of the other coefficients.
        search: settings for coefficients that do not enter linearly.
    """
    letters = {**stack.states, **stack.operators(reading), **known}
    size = stack.tolerance(1.0)
    how = search or Search()

    def residual(numbers: Array, form: Target = target, wanted: Array = stack.outputs) -> Array:
        how.effort.spend(form.cost * max(stack.outputs.size, LEAST))
        values = form.values({**letters, **unknowns.unpacked(numbers)})
        if values.shape != wanted.shape:
            return np.full(wanted.size, np.inf)
        rows = np.asarray((values - wanted) / size).ravel()
        return rows if wanted is stack.outputs else rows[np.isfinite(wanted).ravel()]

    if not unknowns.size:
        return Fit({}, _largest(residual(np.zeros(0))), is_certain=True)
    if (linear := _linear_fit(residual, unknowns)) is not None:
        return linear
    best, is_mirrored = Fit({}, np.inf), False
    waiting = list(_initial_rows(unknowns, how.guesses, how.starts))
    if how.starts and (inside := _inner_start(target, stack, unknowns, residual)) is not None:
        waiting.insert(0, inside)
    while waiting and not how.effort.is_spent:
        fit = _searched(residual, waiting.pop(0), unknowns)
        fits = fit.error <= how.enough
        if fits and not how.objects(fit):
            return fit
        if fits and not is_mirrored and (mirrored := _mirrored(fit, unknowns)) is not None:
            is_mirrored = True
            waiting.insert(0, mirrored)
        best = fit if fit.error < best.error else best
    return best


def _mirrored(fit: Fit, unknowns: Unknowns) -> Array | None:
    """Arrays with the opposite sign and scalars without a sign: -f(-x) = f(x) for odd functions."""
    if all(value.ndim or value >= 0 for value in fit.values.values()):
        return None
    return unknowns.packed({name: -value if value.ndim else np.abs(value) for name, value in fit.values.items()})


def _inner_start(target: Target, stack: Stack, unknowns: Unknowns, residual: Callable[..., Array]) -> Array | None:
    """Numbers fitted to the argument of the outermost function, if they enter it linearly."""
    tree = target.tree
    if not isinstance(tree, Call) or tree.function not in inverses() or target.compared != "field":
        return None
    with np.errstate(all="ignore"):
        wanted = inverses()[tree.function](stack.outputs)
    if np.isfinite(wanted).sum() < 2 * unknowns.size:
        return None
    inside = Target(tree.argument)
    fit = _linear_fit(lambda numbers: residual(numbers, inside, wanted), unknowns)
    return None if fit is None else unknowns.packed(fit.values)


def _linear_fit(residual: Callable[[Array], Array], unknowns: Unknowns) -> Fit | None:
    """Least squares where the residual is affine in the numbers; None where it is not."""
    rng = np.random.default_rng(3)
    zero = np.zeros(unknowns.size)
    first, second = rng.normal(size=(2, unknowns.size))
    base = residual(zero)
    parts = [residual(first), residual(second), residual(first + second)]
    if not all(np.isfinite(part).all() for part in (base, *parts)):
        return None
    if _largest(parts[2] + base - parts[0] - parts[1]) > 1e-11 * max(1.0, *(_largest(part) for part in parts)):
        return None
    matrix = np.stack([residual(row) - base for row in np.eye(unknowns.size)], axis=1)
    numbers, _, rank, _ = np.linalg.lstsq(matrix, -base, rcond=RANK)
    return Fit(unknowns.unpacked(numbers), _largest(residual(numbers)), _loose(matrix, unknowns, rank), is_certain=True)


def _searched(residual: Callable[[Array], Array], begun: Array, unknowns: Unknowns) -> Fit:
    """The nearest minimum; gives up where the error is large and hardly falls any more."""
    lowest, slow = inf, 0.0

    def after(_: int, squares: Array) -> None:
        nonlocal lowest, slow
        (now,) = squares.tolist()
        slow = slow + 0.5 if now == lowest else slow + 1 if now > 0.99 * lowest else 0.0
        lowest = now

    end = minimise(
        lambda rows, _: residual(rows[0])[None], lambda rows, _: _slopes(residual, rows[0])[None], begun[None],
        max_steps=ITERATIONS, after=after, stop=lambda: slow >= SLOW or lowest <= EXACT,
    )  # fmt: skip
    (numbers,), error = end.rows, _largest(rows := residual(end.rows[0]))
    if not error < inf or len(rows) < unknowns.size:
        return Fit({}, inf)
    return Fit(unknowns.unpacked(numbers), error, _loose(_slopes(residual, numbers), unknowns, None))


def _slopes(residual: Callable[[Array], Array], numbers: Array) -> Array:
    rows, columns = residual(numbers), []
    for position, value in enumerate(numbers):
        moved = numbers.copy()
        moved[position] += (width := 1e-7 * max(1.0, abs(value)))
        columns.append((residual(moved) - rows) / width)
    return np.nan_to_num(np.stack(columns, axis=1))


def _initial_rows(unknowns: Unknowns, guesses: Sequence[Mapping[str, Array]], starts: int) -> Iterator[Array]:
    if not starts:
        return
    for guess in guesses:
        yield unknowns.packed(guess)
    yield np.full(unknowns.size, 0.5) + 0.01 * np.arange(unknowns.size)
    rng = np.random.default_rng(17)
    for _ in range(starts - 1):
        yield rng.normal(size=unknowns.size)


def _loose(matrix: Array, unknowns: Unknowns, rank: int | None) -> tuple[str, ...]:
    """The coefficients that can change without changing an output."""
    if rank == unknowns.size:
        return ()
    _, sizes, rows = np.linalg.svd(matrix, full_matrices=True)
    full = np.concatenate([sizes, np.zeros(len(rows) - len(sizes))])
    free = rows[full <= max(RANK, 1e-7 if rank is None else 0.0) * max(full[0], 1e-300)]
    if not len(free):
        return ()
    moved = unknowns.unpacked(np.abs(free).max(axis=0))
    return tuple(name for name, change in moved.items() if change.max(initial=0.0) > 1e-5)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0)) if np.isfinite(values).all() else np.inf


def parameter_guesses(unknowns: Unknowns, named: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Initial values: parameters of the layer with the shape of a coefficient, or its transpose."""
    guess: dict[str, Array] = {}
    used: set[str] = set()
    for name, shape in unknowns.shapes:
        guess[name] = np.full(shape, 0.5)
        for key, value in named.items():
            squeezed = value.squeeze() if value.ndim > len(shape) else value
            fits = [a for a in (squeezed, squeezed.T) if a.shape == shape]
            if fits and key not in used:
                guess[name] = fits[-1] if len(shape) == 2 else fits[0]
                used.add(key)
                break
    return [guess] if used else []
