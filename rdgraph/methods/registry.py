"""Integrators as records: one for each method, in one registry; whatever asks about a method reads its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from rdgraph.errors import InvalidArgument
from rdgraph.methods.method import Method, StepFunction
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.records import Records


def _built_in() -> Iterable[Method]:
    from rdgraph.methods.built_in import built_in_methods

    return built_in_methods()


records: Records[Method] = Records("method", _built_in, pattern=r"[A-Za-z][A-Za-z0-9-]{0,39}", reserved=("auto",))


class MethodNames(Collection[str]):
    """The names of the methods with some property, as they are registered now."""

    def __init__(self, has_property: Callable[[Method], bool]) -> None:
        self._has_property = has_property

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in records and self._has_property(records[name])

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in records.items() if self._has_property(record))

    def __len__(self) -> int:
        return sum(1 for _ in self)


#: Every method that `solve` takes by name.
METHODS = MethodNames(lambda method: True)
#: Those with a fixed step from evaluations of the field alone; any `Tableau` will do as well.
FIXED = MethodNames(lambda method: method.is_fixed)
#: Those whose flows of linear systems are polynomials of one step or the exponential.
WITH_GAINS = MethodNames(lambda method: method.is_runge_kutta or method.is_exact)
#: Those for systems with white noise.
FOR_NOISE = MethodNames(lambda method: method.is_stochastic)
#: Those that torchdiffeq can run backwards.
WITH_ADJOINT = MethodNames(lambda method: method.adjoint is not None)


def find_method(name: str) -> Method:
    """The record of a method; unknown names get the closest one offered.

    >>> find_method("heun").note
    "Heun's explicit trapezoidal rule"
    """
    return records.find(name)


def is_exact_flow(method: str | Tableau) -> bool:
    """Whether a method, by name or as a tableau, evaluates the flow itself; unknown names do not.

    >>> is_exact_flow("exact"), is_exact_flow("euler")
    (True, False)
    """
    return isinstance(method, str) and method in records and records[method].is_exact


def register_method(
    name: str, definition: Tableau | StepFunction, *, order: int | None = None, note: str = ""
) -> Method:
    """Add an integrator with a fixed step, so that every part of the package takes it by its name.

    Args:
        name: letters, digits and "-", not one that is taken.
        definition: a `Tableau`, or a function (f, H, dt) -> H(t + dt) of plain arithmetic on f(H), H and dt. A method
            with a tableau has gains, step limits and a stability polynomial as well.
        order: of a step function; it is checked on equations whose solution is known. A tableau knows its own.
        note: one line about the method.

    Returns:
        The record.

    Raises:
        InvalidArgument: the name is taken or not a name, or the step does not have the order that was declared.

    >>> from rdgraph.methods.runge_kutta import make_tableau
    >>> register_method("ralston", make_tableau("ralston", [[], ["2/3"]], ["1/4", "3/4"], 2)).order
    2
    >>> unregister_method("ralston")
    """
    records.check_free(name)
    if isinstance(definition, Tableau):
        if order not in (None, definition.order):
            raise InvalidArgument(f"expected the order {definition.order} of the tableau, got {order}; leave it out")
        tableau = replace(definition, name=name)
        record = Method(name, note or tableau.note, tableau.order, tableau)
    elif callable(definition):
        if not isinstance(order, int) or order < 1:
            raise InvalidArgument(f"expected the order >= 1 of a step function, got {order!r}; pass order=")
        _check_order(name, definition, order)
        record = Method(name, note, order, step_function=definition)
    else:
        raise InvalidArgument(f"expected a Tableau or a function (f, H, dt), got {type(definition).__name__}")
    return records.add(record)


def unregister_method(name: str) -> None:
    """Take a registered method out again; those that are built in stay.

    Args:
        name: of a method that was registered.

    Raises:
        UnknownName: nothing was registered under this name.
    """
    records.remove(name)


#: Equations with a known solution: f, h(0) and h(t).
_KNOWN: tuple[tuple[Callable[[Any], Any], float, Callable[[float], float]], ...] = (
    (lambda h: h * (1 - h), 0.3, lambda t: 0.3 * math.exp(t) / (0.7 + 0.3 * math.exp(t))),
    (lambda h: -h * h, 1.1, lambda t: 1.1 / (1 + 1.1 * t)),
)


def _check_order(name: str, step: StepFunction, order: int) -> None:
    """The error of one step of length dt is O(dt^(order + 1)): halving dt divides it by 2^(order + 1)."""
    dt = 0.1
    for f, start, solution in _KNOWN:
        try:
            whole, half = (abs(float(step(f, start, x)) - solution(x)) for x in (dt, dt / 2))
        except (TypeError, ValueError, AttributeError) as problem:
            raise InvalidArgument(
                f"expected of {name} a function (f, H, dt) of plain arithmetic, got {problem}; use + - * / alone"
            ) from None
        if not (whole < 1e-13 or half < whole / 2 ** (order + 0.5)):
            raise InvalidArgument(
                f"expected of {name} the order {order}, got the errors {whole:.2g} and {half:.2g} of a step {dt:g} and "
                f"one half as long, which fall like order {math.log2(whole / half) - 1:.2g}"
            )
