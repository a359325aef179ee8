"""`LayerCall`: any callable on a graph as a function of numpy arrays, in double precision and without side effects.

A layer is called as f(x, edge_index), f(x, edge_index, edge_weight), f(x, x_0, edge_index, edge_weight), f(x, adj), or
as f(t, x) if it holds its graph; the names of its parameters decide.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from rdgraph.errors import InvalidArgument
from rdgraph.infer.layers.probe_graphs import ProbeGraph

#: Parameter names by the argument that is passed for them.
_ROLES = {
    "time": ("t", "time"),
    "start": ("x_0", "x0", "h_0", "h0", "initial", "start", "x_initial", "x_start"),
    "edges": ("edge_index", "edges", "edge_list"),
    "weight": ("edge_weight", "edge_weights", "weight", "weights"),
    "adjacency": ("adj", "adjacency", "a", "adj_t"),
}
#: Attributes with the number of input channels of a layer.
_WIDTHS = ("in_channels", "channels", "in_features", "in_dim", "input_dim")
#: Channels of a layer without such an attribute.
CHANNELS = 2

Array = np.ndarray
#: (layer, state, start, graph) -> output; for layers that are called in another way.
Adaptor = Callable[[Any, torch.Tensor, torch.Tensor, ProbeGraph], Any]


@dataclass
class LayerCall:
    """A layer, how it is called, and notes about its behaviour.

    Args:
        layer: a function or an nn.Module.
        channels: how many the state has; read from the layer where None.
        graph: the graph that f(t, x) uses.
        adaptor: calls the layer where the names of its parameters do not tell how.
        is_evaluated: whether a module is put into evaluation mode; otherwise its mode stays.

    >>> call = LayerCall(lambda x, edge_index: 2*x)
    >>> call(ProbeGraph("edge", 2, ((0, 1),)), np.ones((2, 1))).ravel()
    array([2., 2.])
    """

    layer: Any
    channels: int | None = None
    graph: ProbeGraph | None = None
    adaptor: Adaptor | None = None
    is_evaluated: bool = False
    notes: list[str] = field(default_factory=list)
    #: Whether outputs depend on earlier calls; then every call uses a fresh copy.
    remembers: bool = True

    def __post_init__(self) -> None:
        if not callable(self.layer):
            raise InvalidArgument(
                f"expected a layer that can be called, got {type(self.layer).__name__}; pass a function or an nn.Module"
            )
        self.roles = ("state", "start", "edges") if self.adaptor else _roles(self.layer)
        if self.is_bound and self.graph is None:
            raise InvalidArgument("expected the graph of a layer f(t, x), got none; pass graph=rd.Graph...")
        self.dtype = torch.float64
        self._is_copied = self.is_module
        self._model = self._prepared()
        self.width = self.channels or _width(self._model) or CHANNELS
        self._settle_precision()

    @property
    def is_module(self) -> bool:
        return isinstance(self.layer, torch.nn.Module)

    @property
    def is_training(self) -> bool:
        """Whether the module is in training mode."""
        return isinstance(self._model, torch.nn.Module) and bool(self._model.training)

    @property
    def is_bound(self) -> bool:
        """Whether the layer holds its graph."""
        return self.adaptor is None and not {"edges", "adjacency"} & set(self.roles)

    @property
    def takes_start(self) -> bool:
        return self.adaptor is not None or "start" in self.roles

    @property
    def takes_weights(self) -> bool:
        return bool({"weight", "adjacency"} & set(self.roles))

    @property
    def is_single_precision(self) -> bool:
        return self.dtype is not torch.float64

    def named_values(self) -> dict[str, Array]:
        """Parameters, buffers and plain numbers of a module, by name."""
        if not isinstance(self._model, torch.nn.Module):
            return {}
        tensors = dict([*self._model.named_parameters(), *self._model.named_buffers()])
        arrays = {n: v.detach().cpu().double().numpy() for n, v in tensors.items() if v.is_floating_point()}
        plain = {n: np.array(float(v)) for n, v in vars(self._model).items() if isinstance(v, float)}
        return {**plain, **arrays}

    def __call__(self, graph: ProbeGraph, state: Array, start: Array | None = None) -> Array:
        """The output on one graph: (n, channels out); a module with memory is called as a fresh copy."""
        return self._asked(self._fresh() if self.remembers else self._model, graph, state, start)

    def settle_memory(self, graphs: Sequence[ProbeGraph]) -> None:
        """Detect memory: compare one copy called on all graphs with a fresh copy for each."""
        if not self.is_module:
            self.remembers = False
            return
        rng, used = np.random.default_rng(7), self._fresh()
        for graph in [*graphs, *graphs[:2]]:
            state = rng.normal(size=(graph.num_nodes, self.width))
            try:
                alone = self._asked(self._fresh(), graph, state, state)
            except Exception:
                continue
            try:
                again = self._asked(used, graph, state, state)
            except Exception:
                again = None
            if again is None or not np.array_equal(alone, again, equal_nan=True):
                self._note("the layer caches results between calls; each probe used a fresh copy")
                return
        self.remembers = False

    def is_random(self, graph: ProbeGraph) -> bool:
        """Whether repeated calls give different outputs, for instance because dropout is active."""
        state = np.random.default_rng(5).normal(size=(graph.num_nodes, self.width))
        answers = [self(graph, state, state) for _ in range(4)]
        return any(not np.array_equal(answers[0], other, equal_nan=True) for other in answers[1:])

    def _fresh(self) -> Any:
        return copy.deepcopy(self._model) if self._is_copied else self._model

    def _asked(self, model: Any, graph: ProbeGraph, state: Array, start: Array | None) -> Array:
        x, begun = (torch.tensor(a, dtype=self.dtype) for a in (state, state if start is None else start))
        before = x.clone()
        with torch.no_grad():
            answer = self._answer(model, graph, x, begun)
        if not torch.equal(before, x):
            self._note("the layer changes its input in place")
        return self._read(answer, graph)

    def _answer(self, model: Any, graph: ProbeGraph, x: torch.Tensor, start: torch.Tensor) -> Any:
        if self.adaptor is not None:
            return self.adaptor(model, x, start, graph)
        passed: dict[str, Any] = {"state": x, "start": start, "time": torch.zeros((), dtype=self.dtype)}
        if not self.is_bound:
            weight = torch.tensor(graph.edge_weight, dtype=self.dtype) if graph.is_weighted else None
            passed |= {"edges": torch.tensor(graph.edge_index), "weight": weight}
            passed |= {"adjacency": torch.tensor(graph.adjacency, dtype=self.dtype)}
        values = [passed[role] for role in self.roles]
        while values and values[-1] is None:
            values.pop()
        return model(*values)

    def _read(self, answer: Any, graph: ProbeGraph) -> Array:
        if isinstance(answer, tuple | list) and answer:
            self._note("the layer returns several values; the first is compared")
            answer = answer[0]
        values = answer.detach().cpu().double().numpy() if isinstance(answer, torch.Tensor) else np.asarray(answer)
        if values.ndim != 2 or len(values) != graph.num_nodes:
            raise InvalidArgument(
                f"expected an output of shape ({graph.num_nodes}, channels), got {values.shape}; "
                "wrap the layer so that it returns one row for each node"
            )
        if isinstance(answer, torch.Tensor) and answer.dtype is torch.float32 and not self.is_single_precision:
            self.dtype = torch.float32
            self._note("the layer computes in single precision")
        return values.astype(float)

    def _prepared(self) -> Any:
        if not isinstance(self.layer, torch.nn.Module):
            return self.layer
        try:
            model = copy.deepcopy(self.layer).cpu().double()
        except (TypeError, RuntimeError, AttributeError):
            self._is_copied = False
            self._note("the layer cannot be copied; it was called directly")
            return self.layer
        return model.eval() if self.is_evaluated else model

    def _settle_precision(self) -> None:
        """Switch to single precision for a layer that fails in double, because its constants are float32."""
        graph = self.graph or ProbeGraph("edge", 2, ((0, 1), (1, 0)))
        state = np.ones((graph.num_nodes, self.width))
        try:
            self(graph, state, state)
        except (RuntimeError, TypeError) as problem:
            self.dtype = torch.float32
            if self._is_copied:
                self._model = self._model.float()
            try:
                self(graph, state, state)
            except Exception as other:
                raise InvalidArgument(
                    f"expected a layer that takes a state of {self.width} channels, got {type(problem).__name__}: "
                    f"{problem}; give channels=, or call= for a layer with other parameters"
                ) from other
            self._note("the layer computes in single precision")
        except InvalidArgument:
            raise
        except Exception as problem:
            raise InvalidArgument(
                f"expected a layer that can be called as f({', '.join(self.roles)}), got {type(problem).__name__}: "
                f"{problem}; give channels=, or call= for a layer with other parameters"
            ) from problem

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _roles(layer: Any) -> tuple[str, ...]:
    """The roles of the positional parameters of a layer, in order."""
    function = layer.forward if isinstance(layer, torch.nn.Module) else layer
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ("state", "edges")
    places = {word: role for role, words in _ROLES.items() for word in words}
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    roles: list[str] = []
    for parameter in named:
        role = places.get(parameter.name.lower())
        if role is None and "state" not in roles:
            role = "state"
        if role is None and parameter.default is not parameter.empty:
            break
        if role is None:
            raise InvalidArgument(
                f"expected parameters called x, x_0, edge_index, edge_weight, adj or t, got {parameter.name!r}; "
                "rename it, or give call=lambda layer, x, x_0, graph: ..."
            )
        roles.append(role)
    if "state" not in roles:
        raise InvalidArgument(f"expected a parameter for the state, got {[p.name for p in named]}; call it x")
    return tuple(roles)


def _width(model: Any) -> int | None:
    """The input channels of a module, from its attributes or those of its parts."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else [model]
    for module in modules:
        for name in _WIDTHS:
            value = getattr(module, name, None)
            value = value[0] if isinstance(value, tuple) and value else value
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


# ---------------------------------------------------------------------- node function


def node_function(layer: Any, x: Array) -> Array:
    """The values (points,) of a layer at the entries x (points,).

    A module or function of one argument is called with a column of entries; a layer on graphs is called on nodes
    without neighbours. Raises InvalidArgument if an output depends on other entries.

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
                output = model(column)
            except (RuntimeError, ValueError) as problem:
                raise InvalidArgument(
                    f"expected a layer that takes entries as a column (points, 1), got: {str(problem).splitlines()[0]}"
                    "; name the part of it that acts on one entry"
                ) from None
        return torch.as_tensor(output).double().cpu().numpy().reshape(-1)

    return ask


def _asked_on_graph(layer: Any) -> Any:
    """A callable on numpy arrays: the layer at isolated nodes, one for each entry, the same entry in all channels."""
    call = LayerCall(layer, is_evaluated=True)

    def ask(x: Array) -> Array:
        state = np.repeat(x[:, None], call.width, 1)
        output = call(ProbeGraph("alone", len(x), ()), state)
        if output.shape != state.shape or not np.allclose(output, output[:, :1]):
            raise InvalidArgument(
                "expected the same function in every channel, got a layer that mixes them; name the part of it that "
                "acts on one entry, as in module.py:Layer.mlp"
            )
        return output[:, 0]

    return ask
