"""Unknown letters fitted to what a layer answered: by linear least squares where they enter linearly, else by steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rdgraph.conformance.equation_target import Target
from rdgraph.conformance.operator_reading import Reading
from rdgraph.conformance.probe_stack import Stack
from rdgraph.conformance.unknown_letters import Unknowns

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
    """Values of the unknown letters, the largest error by the size of the answers, and letters that are not fixed."""

    values: dict[str, Array]
    error: float
    loose: tuple[str, ...] = field(default=())


def fitted(
    target: Target,
    unknowns: Unknowns,
    stack: Stack,
    reading: Reading,
    known: Values,
    *,
    starts: int = STARTS,
    guesses: Sequence[Mapping[str, Array]] = (),
    enough: float = 1e-10,
) -> Fit:
    """The values with the smallest error on a stack of probes.

    Args:
        target: what is compared.
        unknowns: the letters to be fitted.
        stack: probes with the answers of the layer.
        reading: what A stands for.
        known: values of the other letters.
        starts: of the search where letters do not enter linearly; with 0 there is none.
        guesses: values to begin with, such as the parameters of the layer itself.
        enough: an error at which the search ends.
    """
    letters = {**stack.states, **stack.operators(reading), **known}
    size = stack.tolerance(1.0)

    def residual(numbers: Array) -> Array:
        values = target.values({**letters, **unknowns.unpacked(numbers)})
        if values.shape != stack.outputs.shape:
            return np.full(stack.outputs.size, np.inf)
        return np.asarray((values - stack.outputs) / size).ravel()

    if not unknowns.size:
        return Fit({}, _largest(residual(np.zeros(0))))
    if (linear := _linear_fit(residual, unknowns)) is not None:
        return linear
    best = Fit({}, np.inf)
    for begun in _begun(unknowns, guesses, starts):
        found = _searched(residual, begun, unknowns)
        best = min(best, found, key=lambda fit: fit.error)
        if best.error <= enough:
            break
    return best


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
    return Fit(unknowns.unpacked(numbers), _largest(residual(numbers)), _loose(matrix, unknowns, rank))


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
