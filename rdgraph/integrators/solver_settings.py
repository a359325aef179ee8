"""The settings of `solve`: which method they name, whether it listens to them, and whether they make sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.integrators.adaptive_steps import MAX_STEPS, Tolerances
from rdgraph.integrators.automatic import Automatic
from rdgraph.methods.method import Method
from rdgraph.methods.registry import WITH_ADJOINT, find_method
from rdgraph.methods.runge_kutta import Tableau


def find_record(method: Any) -> Method:
    """The record of a method; one's own tableau is stepped by what it says, whatever its name."""
    if isinstance(method, Tableau):
        return Method(method.name, method.note, method.order, method)
    return find_method(method)


def packed_start(field: Any, H0: Tensor | Mapping[str, Tensor]) -> Tensor:
    """The start as one tensor, whether its states come by name or side by side."""
    if not hasattr(field, "check_state"):
        raise InvalidArgument(
            f"expected a vector field, got {type(field).__name__}; make one with lower(system, operator)"
        )
    packed: Tensor = field.blocks.pack(H0) if isinstance(H0, Mapping) else H0
    return packed


def check_state(field: Any, H0: Tensor) -> None:
    """Whether a state fits a field."""
    field.check_state(H0)
    if field.system.is_noisy:
        raise NotApplicable(f"expected a system without noise, got {field.system.text}; leave out the terms with xi")
    if 0 in H0.shape:
        raise InvalidArgument(f"expected at least one member, node and channel, got a state of shape {tuple(H0.shape)}")


def check_settings(record: Method, given: Mapping[str, Any], interpolation: str, chosen: Automatic) -> None:
    """Whether the method listens to every setting that is given."""
    if interpolation not in ("linear", "cubic"):
        raise InvalidArgument(f"expected interpolation 'linear' or 'cubic', got {interpolation!r}")
    used = {name for name, value in given.items() if value is not None}
    used |= {"interpolation"} if interpolation != "linear" else set()
    if strangers := sorted(used - set(record.options)):
        why = f", which auto chose ({chosen.reason})" if chosen.method else ""
        raise InvalidArgument(
            f"expected for {record.name}{why} only {', '.join(record.options)}, got {', '.join(strangers)}; leave it "
            "out, or name a method that uses it"
        )


def check_precision(record: Method, H0: Tensor) -> None:
    """Whether the precision of the state holds the tolerance of an adaptive method."""
    if record.is_adaptive and torch.finfo(H0.dtype).bits < 32:
        raise InvalidArgument(
            f"expected a state of float32 or float64 for {record.name}, whose tolerance {H0.dtype} cannot hold, got "
            "that; convert field and state, or take a fixed step"
        )


def check_numbers(given: Mapping[str, Any], limit: Any) -> None:
    """Whether tolerances and limits make sense."""
    for name in ("rtol", "atol"):
        value = given[name]
        if value is not None and not 0 <= value < float("inf"):
            raise InvalidArgument(f"expected {name} >= 0 and finite, got {value!r}")
    if given["rtol"] == 0 and given["atol"] == 0:
        raise InvalidArgument("expected one of rtol, atol to be > 0, got 0 and 0")
    if given["max_steps"] is not None and not given["max_steps"] >= 1:
        raise InvalidArgument(f"expected max_steps >= 1, got {given['max_steps']!r}")
    if limit is not None and not limit > 0:
        raise InvalidArgument(f"expected limit > 0, got {limit!r}; limit=None stops at overflow only")


def check_adjoint(record: Method, step: Any, save_at: Any) -> None:
    """Whether the method can be run backwards."""
    if record.adjoint is None:
        raise InvalidArgument(
            f"expected a method with an adjoint, {', '.join(WITH_ADJOINT)}, got {record.name}; without adjoint=True "
            "the gradient comes from the steps themselves"
        )
    if record.is_fixed and step is None and save_at is not None:
        raise InvalidArgument("expected a step for the adjoint with save_at, got none; pass step=...")


def tolerances(H0: Tensor, given: Mapping[str, Any], bound: float) -> Tolerances:
    """Tolerances of dopri5; they default to what the precision can hold."""
    default = (1e-7, 1e-9) if H0.dtype == torch.float64 else (1e-5, 1e-7)
    rtol, atol = (d if given[name] is None else given[name] for name, d in zip(("rtol", "atol"), default, strict=True))
    most = MAX_STEPS if given["max_steps"] is None else int(given["max_steps"])
    return Tolerances(float(rtol), float(atol), bound, most)
