"""Observed states: times, values, and which of them are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.systems.system import System


@dataclass(frozen=True)
class Observations:
    """States (K, n, d) at times (K,); `seen` marks what was observed, and entries that were not are zero."""

    times: Tensor
    values: Tensor
    seen: Tensor

    @property
    def count(self) -> int:
        """How many numbers were observed."""
        return int(self.seen.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and channels."""
        return int(self.values.shape[1]), int(self.values.shape[2])


def read_observations(system: System, states: Any, times: Any, nodes: int) -> Observations:
    """Checked observations: states (K, n) or (K, n, d) with NaN for missing entries; for several fields, by name."""
    when = numbers_of(times, "times")
    if when.ndim != 1 or len(when) < 2 or not bool(torch.isfinite(when).all()) or not bool((when.diff() > 0).all()):
        raise InvalidArgument(
            f"expected at least two times that rise, got {np.array2string(when.numpy(), threshold=6)}; sort them"
        )
    values = _values(system, states, len(when), nodes)
    if bool(torch.isinf(values).any()):
        raise InvalidArgument("expected finite states, got an infinite one; write NaN for what was not observed")
    seen = ~torch.isnan(values)
    if not bool(seen.any()):
        raise InvalidArgument("every observed state is NaN; at least one entry must be a number")
    return Observations(when, torch.where(seen, values, 0.0), seen)


def _values(system: System, states: Any, count: int, nodes: int) -> Tensor:
    if not isinstance(states, Mapping):
        return _of_field(states, count, nodes, "states")
    for name in states:
        if name not in system.fields:
            raise UnknownName(f"field of {system.text}", name, system.fields)
    given = {name: _of_field(value, count, nodes, name) for name, value in states.items()}
    if not given:
        raise InvalidArgument(f"expected states of {', '.join(system.fields)}, or of some of them, got none")
    widths = {value.shape[-1] for value in given.values()}
    if len(widths) != 1:
        raise InvalidArgument(f"expected fields with the same channels, got {', '.join(map(str, sorted(widths)))}")
    unseen = torch.full((count, nodes, widths.pop()), torch.nan, dtype=torch.float64)
    return torch.cat([given.get(name, unseen) for name in system.fields], -1)


def _of_field(states: Any, count: int, nodes: int, name: str) -> Tensor:
    values = numbers_of(states, name)
    values = values[..., None] if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[:2] != (count, nodes):
        raise InvalidArgument(
            f"expected {name} of shape ({count}, {nodes}) or ({count}, {nodes}, channels), one for every time and "
            f"node, got {tuple(values.shape)}; write NaN for what was not observed"
        )
    return values


def check_seed(seed: Any) -> None:
    """Raise unless `seed` is a whole number that seeds a random generator."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= int(seed) < 2**63:
        raise InvalidArgument(f"expected a whole number from 0 as seed, got {seed!r:.60}; leave it out and it is 0")


def numbers_of(given: Any, name: str) -> Tensor:
    """The numbers given for a name, in double precision."""
    try:
        array = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
        if np.iscomplexobj(array):
            raise InvalidArgument(f"expected real numbers for {name}, got complex ones; give their real parts")
        return torch.from_numpy(np.array(array, dtype=np.float64))
    except InvalidArgument:
        raise
    except (TypeError, ValueError):
        raise InvalidArgument(f"expected numbers for {name}, got {type(given).__name__}; give an array") from None
