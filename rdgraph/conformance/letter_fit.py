"""Unknown letters fitted to what a layer answered: by linear least squares where they enter linearly, else by steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rdgraph.conformance.equation_target import Target
from rdgraph.conformance.function_inverses import INVERSES
from rdgraph.conformance.operator_reading import Reading
from rdgraph.conformance.probe_stack import Stack
from rdgraph.conformance.search_effort import Effort
from rdgraph.conformance.unknown_letters import Unknowns
from rdgraph.syntax.tree import Call

#: Starts of the search where letters do not enter linearly.
STARTS = 6
#: Steps of one search, and how many may bring next to nothing.
ITERATIONS, SLOW = 80, 8
#: Errors from here on are not searched any further.
HUGE = 1e100
#: A singular value below this part of the largest one is a direction that the answers do not fix.
RANK = 1e-9

Array = np.ndarray
Values = Mapping[str, Array]


@dataclass(frozen=True)
class Fit:
    """Values of the unknown letters, the largest error by the size of the answers, and letters that are not fixed.

    `is_certain` says whether no other values have a smaller error: they were found by linear least squares.
    """

    values: dict[str, Array]
    error: float
    loose: tuple[str, ...] = field(default=())
    is_certain: bool = False


@dataclass(frozen=True)
class Search:
    """How the letters are looked for where they do not enter linearly.

    `starts`: how many, with 0 there is no search; `guesses`: values to begin with, such as the parameters of the layer;
    `objects`: what speaks against values that fit, in words, so that others are looked for; `effort`: nothing further
    is begun where it is spent.
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
        unknowns: the letters to be fitted.
        stack: probes with the answers of the layer.
        reading: what A stands for.
        known: values of the other letters.
        search: how letters are looked for that do not enter linearly.
    """
    letters = {**stack.states, **stack.operators(reading), **known}
    size = stack.tolerance(1.0)
    how = search or Search()

    def residual(numbers: Array, form: Target = target, wanted: Array = stack.outputs) -> Array:
        how.effort.spend(stack.outputs.size, form.cost)
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
    begun = list(_begun(unknowns, how.guesses, how.starts))
    if how.starts and (inside := _undone(target, stack, unknowns, residual)) is not None:
        begun.insert(0, inside)
    while begun and not how.effort.is_spent:
        found = _searched(residual, begun.pop(0), unknowns)
        fits = found.error <= how.enough
        if fits and not how.objects(found):
            return found
        if fits and not is_mirrored and (mirrored := _mirrored(found, unknowns)) is not None:
            is_mirrored = True
            begun.insert(0, mirrored)
        best = found if found.error < best.error else best
    return best


def _mirrored(fit: Fit, unknowns: Unknowns) -> Array | None:
    """Numbers of the other sign, and coefficients without theirs: of an odd function, -f(-x) is f(x)."""
    if all(value.ndim or value >= 0 for value in fit.values.values()):
        return None
    return unknowns.packed({name: -value if value.ndim else np.abs(value) for name, value in fit.values.items()})


def _undone(target: Target, stack: Stack, unknowns: Unknowns, residual: Callable[..., Array]) -> Array | None:
    """Numbers that fit the inside of a function around everything, where they enter it linearly."""
    tree = target.tree
    if not isinstance(tree, Call) or tree.function not in INVERSES or target.compared != "field":
        return None
    with np.errstate(all="ignore"):
        wanted = INVERSES[tree.function](stack.outputs)
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
    """The method of Levenberg and Marquardt; it gives up where the error is large and hardly falls any more."""
    numbers, rows = begun, residual(begun)
    if not _largest(rows) < HUGE or len(rows) < unknowns.size:
        return Fit({}, np.inf)
    cost, damping, jacobian, slow = float(rows @ rows), 1e-3, _slopes(residual, begun, rows), 0.0
    for _ in range(ITERATIONS):
        if _largest(rows) <= 1e-14 or slow >= SLOW:
            break
        normal = jacobian.T @ jacobian
        step = np.linalg.lstsq(normal + damping * np.diag(normal.diagonal() + 1e-12), -jacobian.T @ rows, rcond=None)[0]
        tried = residual(numbers + step)
        better = float(tried @ tried) if _largest(tried) < HUGE else np.inf
        if better < cost:
            slow = slow + 1 if better > 0.99 * cost else 0.0
            numbers, rows, cost, damping = numbers + step, tried, better, max(damping / 5, 1e-14)
            jacobian = _slopes(residual, numbers, rows)
        else:
            damping, slow = damping * 4, slow + 0.5
    return Fit(unknowns.unpacked(numbers), _largest(rows), _loose(jacobian, unknowns, None))


def _slopes(residual: Callable[[Array], Array], numbers: Array, rows: Array) -> Array:
    columns = []
    for place, value in enumerate(numbers):
        moved = numbers.copy()
        moved[place] += (width := 1e-7 * max(1.0, abs(value)))
        columns.append((residual(moved) - rows) / width)
    return np.nan_to_num(np.stack(columns, axis=1))


def _begun(unknowns: Unknowns, guesses: Sequence[Mapping[str, Array]], starts: int) -> Iterator[Array]:
    if not starts:
        return
    for guess in guesses:
        yield unknowns.packed(guess)
    yield np.full(unknowns.size, 0.5) + 0.01 * np.arange(unknowns.size)
    rng = np.random.default_rng(17)
    for _ in range(starts - 1):
        yield rng.normal(size=unknowns.size)


def _loose(matrix: Array, unknowns: Unknowns, rank: int | None) -> tuple[str, ...]:
    """Letters with a number that can change while no answer does."""
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
    """Values to begin with: parameters of the layer with the shape of a letter, or its transpose."""
    found: dict[str, Array] = {}
    used: set[str] = set()
    for name, shape in unknowns.shapes:
        found[name] = np.full(shape, 0.5)
        for key, value in named.items():
            squeezed = value.squeeze() if value.ndim > len(shape) else value
            fits = [a for a in (squeezed, squeezed.T) if a.shape == shape]
            if fits and key not in used:
                found[name] = fits[-1] if len(shape) == 2 else fits[0]
                used.add(key)
                break
    return [found] if used else []
