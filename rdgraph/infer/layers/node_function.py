"""The function of one entry that a layer, or a part of it, computes: sampled, after a check that it is one."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import torch

from rdgraph.errors import InvalidArgument
from rdgraph.infer.layers.layer_call import LayerCall
from rdgraph.infer.layers.probe_graphs import ProbeGraph

Array = np.ndarray


def node_function(layer: Any, x: Array) -> Array:
    """The values (points,) of a layer at the entries x (points,).

    A module or function of one argument is asked with a column of entries, or with a row of as many channels as it
    has; a layer on graphs is asked on nodes without neighbours. Every entry must be answered by itself: what depends
    on the other entries is no function of one entry, and is refused.

    >>> import torch
    >>> node_function(torch.nn.Tanh(), np.array([0.0, 1.0])).round(3)
    array([0.   , 0.762])
    """
    if not callable(layer):
        raise InvalidArgument(f"expected a layer that can be called, got {type(layer).__name__}; name a part of it")
    asked = _asked_on_graph(layer) if _takes_graph(layer) else _asked(layer)
    values = asked(x)
    if values.shape != x.shape or not np.isfinite(values).all():
        raise InvalidArgument(
            f"expected a finite value for each of {x.size} entries, got an answer of shape {values.shape}; name the "
            "part of the layer that acts on one entry, as in module.py:Layer.mlp"
        )
    order = np.random.default_rng(0).permutation(len(x))
    half = order[: max(2, len(x) // 2)]
    if not np.allclose(asked(x[half]), values[half], rtol=1e-6, atol=1e-8 * (1 + np.abs(values).max())):
        raise InvalidArgument(
            "expected a function of one entry, got a layer whose answer depends on the other entries; name the part of "
            "it that acts on one, as in module.py:Layer.mlp"
        )
    return values


def _takes_graph(layer: Any) -> bool:
    try:
        call = layer.forward if isinstance(layer, torch.nn.Module) else layer
        named = [p for p in inspect.signature(call).parameters.values() if p.default is inspect.Parameter.empty]
    except (TypeError, ValueError):
        return False
    return len([p for p in named if p.kind is not inspect.Parameter.VAR_POSITIONAL]) > 1


def _asked(layer: Any) -> Any:
    """A callable of one argument on numpy arrays, in double precision where it can be."""
    model = copy.deepcopy(layer).double().eval() if isinstance(layer, torch.nn.Module) else layer

    def ask(x: Array) -> Array:
        column = torch.as_tensor(x, dtype=torch.float64)[:, None]
        with torch.no_grad():
            try:
                found = model(column)
            except (RuntimeError, ValueError) as problem:
                raise InvalidArgument(
                    f"expected a layer that takes entries as a column (points, 1), got: {str(problem).splitlines()[0]}"
                    "; name the part of it that acts on one entry"
                ) from None
        return torch.as_tensor(found).double().cpu().numpy().reshape(-1)

    return ask


def _asked_on_graph(layer: Any) -> Any:
    """The answers at nodes without neighbours, a node for each entry, the same entry in all channels."""
    call = LayerCall(layer, is_evaluated=True)

    def ask(x: Array) -> Array:
        state = np.repeat(x[:, None], call.width, 1)
        found = call(ProbeGraph("alone", len(x), ()), state)
        if found.shape != state.shape or not np.allclose(found, found[:, :1]):
            raise InvalidArgument(
                "expected the same function in every channel, got a layer that mixes them; name the part of it that "
                "acts on one entry, as in module.py:Layer.mlp"
            )
        return found[:, 0]

    return ask
