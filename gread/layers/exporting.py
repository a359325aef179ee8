"""`exportable`: models with `GREADConv`, trained networks and classifiers as modules for torch.export and ONNX."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gread.layers.conv import GREADConv
from gread.models.flow import POLYNOMIAL, STEPS, Flow, bounding
from gread.models.gread_model import GREAD
from gread.models.trained_network import Network
from rdgraph import Graph, lower
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.run import VectorField
from rdgraph.run.lowering.splines import spline_pieces
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.polynomial_flow import LinearFlow
from rdgraph.vocabulary.methods import find_method
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- plain conv
# `PlainConv`: a trained `GREADConv` with gathers and sums only, for torch.export, torch.compile and ONNX.
#
# A layer sorts the edges of every call and computes the degree of its polynomial from its coefficients, both on the
# host, which an exported program cannot do. Here the coefficients are those of the layer when it is copied, and edges
# are used in the given order: A x = sum over edges of w x[source], added up by target.

#: The attention score of an edge that does not count: its exponential is zero relative to any other.
ABSENT = -1e30
#: Named arguments of the generated function; all others are coefficients or matrices.
_STATE, _START, _TIME, _ADJACENCY, _LAPLACIAN = "H", "H0", "t", "A", "L"


class PlainConv(nn.Module):
    """The flow of a `GREADConv` with its current parameters; see `exportable`."""

    def __init__(self, layer: GREADConv) -> None:
        super().__init__()
        c = layer.config
        if not layer.system.is_single or not layer.system.is_autonomous:
            raise NotApplicable(
                f"expected a layer with one field and an equation without time, got {layer.system}; use one field, or "
                "save the parameters of the layer instead"
            )
        self.config, self.layout = c, layer.layout
        self.query, self.key = (copy.deepcopy(getattr(layer, part, None)) for part in ("query", "key"))
        record = find_normalisation(c.normalisation)
        self.normalisation = None if c.adjacency != "original" else record
        self.has_loops = c.self_loops > 0 or record.identity != 0
        with torch.no_grad():
            self._store(layer)

    # ------------------------------------------------------------------ computed once
    def _store(self, layer: GREADConv) -> None:
        """Store the series of a polynomial, or the function and the steps of other flows."""
        c, some = self.config, next(layer.parameters())
        x = torch.ones(3, layer.in_channels, dtype=some.dtype, device=some.device)
        ring = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]], device=some.device)
        start = layer.layout.start(x)
        field = lower(layer.system, layer.operator(x, ring), layer.coefficients(some.dtype))
        self.bounding = bounding(c, self.layout)
        flow = Flow.choose(field, c.method, c.time, c.step, c.adjacency == "live", self.bounding)
        self.form = flow.form
        if flow.form == POLYNOMIAL and linear_part(field).source is not None and flow.schedule is not None:
            time = torch.tensor(c.time, dtype=torch.float64, device=some.device)
            degree = layer.needed_degree(flow, field, start)
            ones = torch.ones(1, layer.channels, dtype=torch.float64, device=some.device)
            series = LinearFlow(flow.schedule, degree).terms(field, ones, time)
            self.is_chebyshev = linear_part(field).base.kind == "chebyshev"
            self.register_buffer("series", series.reshape(degree + 1, 1, -1).to(some.dtype))
            return
        record = find_method(c.method)
        if flow.form not in (STEPS, POLYNOMIAL) or record.tableau is None or c.step is None:
            raise NotApplicable(
                f"expected a flow that is a polynomial or has steps of one size, got {c.method} of {layer.system}; "
                "use euler or rk4 with a step"
            )
        self.form = STEPS
        self._store_steps(layer, field)

    def _store_steps(self, layer: GREADConv, field: VectorField) -> None:
        """Store the generated function, its coefficients, the tableau and the lengths of the steps."""
        from rdgraph.run.solvers.schedules import Schedule

        c, tableau = self.config, find_method(self.config.method).tableau
        assert tableau is not None
        self.rows = [[float(a) for a in row] for row in tableau.stages]
        self.weights = [float(b) for b in tableau.weights]
        time = torch.tensor(c.time, dtype=torch.float64)
        self.lengths = [float(length) for length in Schedule.make(c.method, c.time, c.step).lengths(time)]
        code: dict[str, Any] = {}
        exec(field.source, code)  # code that rdgraph generated from the parsed equation
        trained = layer.coefficients(field.dtype)
        learned = layer.system.learned.items()
        known = field.coefficients | {n: spline_pieces(trained[n], f.per_channel) for n, f in learned}
        constants = code["coefficients"](*(known[name] for name in inspect.signature(code["coefficients"]).parameters))
        self.function: Callable[..., Tensor] = code["field"]
        self.arguments = list(inspect.signature(self.function).parameters)
        numbers = {f"c{k}": value for k, value in enumerate(constants)}
        for name in self.arguments:
            if name not in (_STATE, _START, _TIME, _ADJACENCY, _LAPLACIAN):
                value = torch.as_tensor(numbers.get(name, known.get(name)), device=field.device)
                self.register_buffer(f"value_{name}", value.to(field.dtype).clone())

    # ------------------------------------------------------------------ the flow
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """H(T) (n, out_channels) of x (n, in_channels) on the edges (2, E)."""
        if edge_weight is not None and self.normalisation is None:
            raise InvalidArgument("expected no edge_weight for attention; leave it out")
        H = self.layout.start(x)
        ends = _Ends(edge_index, x.shape[0], self.has_loops)
        if self.form == POLYNOMIAL:
            return self.layout.readout(self._polynomial(self._operator(H, ends, edge_weight), H))
        fixed = None if self.config.adjacency == "live" else self._operator(H, ends, edge_weight)
        start = H
        for length in self.lengths:
            slopes: list[Tensor] = []
            for row in self.rows:
                at = H
                for a, slope in zip(row, slopes, strict=False):
                    at = at + (length * a) * slope if a else at
                slopes.append(self._slope(fixed or self._operator(at, ends, edge_weight), at, start))
            for b, slope in zip(self.weights, slopes, strict=True):
                H = H + (length * b) * slope if b else H
        return self.layout.readout(H)

    def _polynomial(self, operator: _Gathered, x: Tensor) -> Tensor:
        """sum_k c_k b_k(A) x, b_k = A^k or T_k(A)."""
        series: Tensor = self.series  # type: ignore[assignment]
        before, now = x, x
        total = series[0] * x
        for k in range(1, len(series)):
            product = operator.product(now)
            before, now = now, (2 * product - before if self.is_chebyshev and k > 1 else product)
            total = total + series[k] * now
        return total

    def _slope(self, operator: _Gathered, H: Tensor, start: Tensor) -> Tensor:
        at = H if self.bounding.at is None else self.bounding.at(H)
        operands = {
            _STATE: at,
            _START: start,
            _TIME: None,
            _ADJACENCY: operator.apply,
            _LAPLACIAN: operator.apply_laplacian,
        }
        value = self.function(*(operands[n] if n in operands else getattr(self, f"value_{n}") for n in self.arguments))
        slope = value.to(H.dtype).expand_as(H)
        return slope if self.bounding.change is None else self.bounding.change(slope)

    # ------------------------------------------------------------------ the operator
    def _operator(self, H: Tensor, ends: _Ends, edge_weight: Tensor | None) -> _Gathered:
        if self.normalisation is None:
            return _Gathered(ends, self._attention(self.layout.seen(H), ends), None)
        weights = H.new_ones(ends.edges) if edge_weight is None else edge_weight.to(H.dtype)
        loops = H.new_full((ends.loops,), self.config.self_loops)
        values = torch.cat([weights, loops])
        zero = H.new_zeros(ends.nodes)
        sums, across = (zero.scatter_add(0, end, values.abs()) for end in (ends.target, ends.source))
        degree, column = (torch.where(total > 0, total, 1.0) for total in (sums, across))
        record = self.normalisation
        assert record.entry is not None
        values = record.entry(values, degree[ends.target], degree[ends.source], column[ends.source])
        if record.identity:
            values = values + torch.cat([torch.zeros_like(weights), torch.full_like(loops, record.identity)])
        return _Gathered(ends, values, sums[:, None] if record.has_degrees else None)

    def _attention(self, seen: Tensor, ends: _Ends) -> Tensor:
        """The mean over the heads of the softmax within every row; a self-loop among the edges counts once."""
        heads = self.config.heads
        assert self.query is not None
        assert self.key is not None
        query, key = (part(seen).view(ends.nodes, heads, -1) for part in (self.query, self.key))
        scores = (query[ends.target] * key[ends.source]).sum(-1) * query.shape[-1] ** -0.5
        if self.has_loops:
            scores = torch.where(ends.is_double[:, None], ABSENT, scores)
        index = ends.target[:, None].expand(-1, heads)
        highest = scores.new_full((ends.nodes, heads), ABSENT).scatter_reduce(0, index, scores, "amax")
        shares = (scores - highest[ends.target]).exp()
        total = scores.new_zeros((ends.nodes, heads)).scatter_add(0, index, shares)
        return (shares / total[ends.target]).mean(1)


class _Ends:
    """The ends of the edges of a call, followed by those of self-loops if there are any."""

    def __init__(self, edge_index: Tensor, nodes: int, has_loops: bool) -> None:
        looped = torch.arange(nodes, device=edge_index.device) if has_loops else edge_index.new_zeros(0)
        self.nodes, self.edges, self.loops = nodes, edge_index.shape[1], nodes if has_loops else 0
        self.source, self.target = (torch.cat([edge_index[0], looped]), torch.cat([edge_index[1], looped]))
        given = edge_index[0] == edge_index[1]
        self.is_double = torch.cat([given, torch.zeros_like(looped, dtype=torch.bool)])


class _Gathered:
    """A as weights on edges: products by gather and scatter-add."""

    def __init__(self, ends: _Ends, weights: Tensor, degree: Tensor | None) -> None:
        self.ends, self.weights, self.degree = ends, weights, degree

    def product(self, x: Tensor) -> Tensor:
        moved = self.weights[:, None] * x[self.ends.source]
        return torch.zeros_like(x).scatter_add(0, self.ends.target[:, None].expand_as(moved), moved)

    def apply(self, x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        """scale*(A@x) + the sum of the terms, as generated functions call it."""
        out = self.product(x) if scale is None else scale * self.product(x)
        for factor, value in terms:
            out = out + factor * value
        return out

    def apply_laplacian(self, x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        """scale*(D*x - A@x) + the sum of the terms."""
        assert self.degree is not None
        out = self.degree * x - self.product(x)
        out = out if scale is None else scale * out
        for factor, value in terms:
            out = out + factor * value
        return out


# ---------------------------------------------------------------------- exporting
def exportable(model: Any, graph: Graph | None = None) -> nn.Module:
    """A copy of a model with gathers and sums only, in evaluation mode, for torch.export and ONNX.

    A module takes `edge_index` as before, for any graph: every edge once, and for the symmetric normalisation in both
    directions; the checks of the layers are omitted. A network or classifier becomes a module of one argument, the
    features (n, f) of its graph, and returns logits (n, classes), or for several members the logarithms of their mean
    probabilities.

    Args:
        model: A module with `GREADConv` layers, a fitted classifier, or a `Network`.
        graph: The graph for a `Network`; a classifier has its own.

    Returns:
        The copy, with the current parameters of the model.

    Raises:
        NotApplicable: For several fields, coefficients per node, an adaptive method or a splitting, and for networks
            that are not around an equation.

    >>> import torch, gread
    >>> layer = gread.GREADConv(4, "BS")
    >>> edges, x = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.eye(3, 4)
    >>> program = torch.export.export(gread.exportable(layer), (x, edges))
    >>> torch.allclose(program.module()(x, edges), layer(x, edges), atol=1e-6)
    True
    """
    if not isinstance(model, nn.Module):
        return _network(model, graph).eval()
    if graph is not None:
        raise InvalidArgument(f"{type(model).__name__} takes edge_index, so it needs no graph; leave it out")
    if isinstance(model, GREADConv):
        return PlainConv(model).eval()
    module = copy.deepcopy(model).eval()
    for name, part in list(module.named_modules()):
        if isinstance(part, GREADConv):
            owner, _, attribute = name.rpartition(".")
            setattr(module.get_submodule(owner), attribute, PlainConv(part))
    return module


def _network(model: Any, graph: Graph | None) -> PlainNetwork | PlainMean:
    """Networks of one or several members on their graph."""
    if isinstance(model, Network):
        if graph is None:
            raise InvalidArgument("expected the graph of the network, got none; pass exportable(network, graph)")
        return PlainNetwork(model, graph)
    if not hasattr(type(model), "network_"):
        raise InvalidArgument(f"expected a module, a classifier or a network, got {type(model).__name__}")
    if graph is not None:
        raise InvalidArgument(
            "expected a classifier alone, got a graph as well; for another graph use exportable(clf.network_, graph)"
        )
    members = [model.network_, *model.networks_[1:]]
    networks = [PlainNetwork(network, model._state.graph) for network in members]
    return PlainMean(networks) if networks[1:] else networks[0]


class PlainNetwork(nn.Module):
    """Encoder, flow and decoder of one trained network on one graph: features (n, f) to logits (n, classes)."""

    def __init__(self, network: Network, graph: Graph) -> None:
        super().__init__()
        model = network.model(graph)
        if type(model) is not GREAD:
            raise NotApplicable(
                f"expected a network around an equation with one flow, got {type(model).__name__} "
                f"({network.config.model}); export a torch module with GREADConv layers"
            )
        self.config = c = model.config
        if c.storage != "full":
            raise NotApplicable(f"expected states in full precision, got storage={c.storage!r}; train with 'full'")
        self.encoder = _linear(model, "encoder")
        if c.encoder_mlp:
            self.encoder_first, self.encoder_second = (_linear(model, f"encoder_{k}") for k in ("first", "second"))
        if c.decoder_mlp:
            self.decoder_hidden = _linear(model, "decoder_hidden")
        self.decoder = _linear(model, "decoder")
        self.flow = PlainConv(_layer(model))
        some = self.decoder.weight
        self.register_buffer("edge_index", torch.tensor(graph.edge_index, dtype=torch.int64, device=some.device))
        weight = torch.tensor(graph.weight, dtype=some.dtype, device=some.device)
        self.register_buffer("edge_weight", weight if c.adjacency == "original" else None)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes) of features (n, f)."""
        if self.config.row_features:
            total = x.abs().sum(-1, keepdim=True)
            x = x / torch.where(total > 0, total, 1.0)
        h = self.encoder(x)
        if self.config.encoder_mlp:
            h = h + self.encoder_first(torch.relu(h))
            h = h + self.encoder_second(torch.relu(h))
        h = self.flow(h, self.edge_index, self.edge_weight)
        h = torch.relu(h) if self.config.relu else h
        if self.config.decoder_mlp:
            h = torch.tanh(h + self.decoder_hidden(torch.tanh(h)))
        out: Tensor = self.decoder(h)
        return out


class PlainMean(nn.Module):
    """The logarithm of the mean probabilities of several networks."""

    def __init__(self, networks: list[PlainNetwork]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of softmax(logits) over the members, (n, classes)."""
        each = torch.stack([torch.log_softmax(network(x), -1) for network in self.networks])
        return torch.logsumexp(each, 0) - math.log(len(self.networks))


def _linear(model: GREAD, name: str) -> nn.Linear:
    """A linear layer of a network with one member, as a torch layer."""
    weight, bias = (model.get_parameter(f"{name}_{part}")[0].detach() for part in ("weight", "bias"))
    inputs, outputs = weight.shape
    layer = nn.Linear(inputs, outputs, device=weight.device, dtype=weight.dtype).requires_grad_(False)
    layer.weight.copy_(weight.T)
    layer.bias.copy_(bias)
    return layer


def _layer(model: GREAD) -> GREADConv:
    """The flow of a network with one member as a layer."""
    c = model.config
    shared = {f.name for f in dataclasses.fields(c)} & set(inspect.signature(GREADConv).parameters) - {"reaction"}
    layer = GREADConv(c.hidden, c.reaction, **{name: getattr(c, name) for name in shared})
    layer = layer.to(model.place.device, model.place.dtype).requires_grad_(False)
    if c.adjacency != "original":
        layer.query, layer.key = _linear(model, "query"), _linear(model, "key")
    for name, value in layer.named_parameters():
        if name.startswith("coefficient_"):
            value.copy_(model.get_parameter(name)[0])
    return layer
