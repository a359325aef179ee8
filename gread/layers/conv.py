"""`GREADConv`: a reaction-diffusion layer for your own networks, called like the layers of PyTorch Geometric."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gread.kernels.edge_attention import soft_weights
from gread.models.flow import Flow, bounding, with_finite_gradient
from gread.models.gread_model import ATTENTION_START
from gread.models.resolution import DRAWN, link_of, linked, pole_warning, resolve_method
from gread.models.state_layout import StateLayout
from gread.settings.gread_settings import AUTO, GreadSettings
from gread.settings.state_region import SAFE
from rdgraph import lower
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE
from rdgraph.graphs.operator import Operator, Pattern
from rdgraph.language.tree import Kind
from rdgraph.run import VectorField
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.splines import make_controls, start_parameters
from rdgraph.run.solvers.polynomial_flow import TOLERANCE
from rdgraph.systems.system import System
from rdgraph.vocabulary.methods import find_method
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- edge layout
# `Layout`: the edges of a call as the rows of a matrix, computed once for all calls with the same edges.

#: The tolerance for equal weights, in units of the precision.
ROUNDING = 8


@dataclass(frozen=True, eq=False)
class Layout:
    """Edges as the rows of a matrix: `place` (E,) is the entry of an edge in the pattern, `loops` (n,) its diagonal.

    `mirror` (entries,) is the index of the reversed entry, None if some edge has no reverse.

    >>> path = Layout.make(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3, has_loops=False)
    >>> path.operator(GreadSettings(normalisation="row", self_loops=0.0), torch.tensor([1.0, 1.0, 1.0, 3.0])).dense()
    tensor([[0.0000, 1.0000, 0.0000],
            [0.2500, 0.0000, 0.7500],
            [0.0000, 1.0000, 0.0000]])
    """

    edges: Tensor
    pattern: Pattern
    place: Tensor
    loops: Tensor | None
    mirror: Tensor | None

    @classmethod
    def make(cls, edge_index: Tensor, nodes: int, has_loops: bool) -> Layout:
        """Sort edges (2, E) between `nodes` nodes, and optional self-loops, by target and source."""
        edges = edge_index.detach().clone()
        count = edges.shape[1]
        if count and not (int(edges.min()) >= 0 and int(edges.max()) < nodes):
            raise InvalidArgument(
                f"expected edges between the nodes 0..{nodes - 1} of x, got {int(edges.min())}..{int(edges.max())}"
            )
        diagonal = torch.arange(nodes if has_loops else 0, device=edges.device)
        source, target = (torch.cat([row.long(), diagonal]) for row in edges)
        keys, place = torch.unique(target * nodes + source, return_inverse=True)
        rows, columns = keys.div(nodes, rounding_mode="floor"), keys.remainder(nodes)
        starts = torch.zeros(nodes + 1, dtype=torch.int64, device=edges.device)
        starts[1:] = torch.bincount(rows, minlength=nodes).cumsum(0)
        narrow = torch.int32 if max(nodes, len(keys)) < 2**31 else torch.int64
        pattern = Pattern(starts.to(narrow), columns.to(narrow))
        reverse = columns * nodes + rows
        mirror = torch.searchsorted(keys, reverse).clamp(max=max(len(keys) - 1, 0))
        is_mutual = bool((keys[mirror] == reverse).all())
        return cls(edges, pattern, place[:count], place[count:] if has_loops else None, mirror if is_mutual else None)

    def fits(self, edge_index: Tensor, nodes: int) -> bool:
        """Whether these are the same edges, by content, so that a change in place is noticed."""
        known = self.edges
        is_similar = known.shape == edge_index.shape and known.device == edge_index.device
        return is_similar and self.pattern.num_nodes == nodes and torch.equal(known, edge_index)

    def operator(self, config: GreadSettings, weight: Tensor) -> Operator:
        """A from edge weights (E,), normalised as in `rdgraph.graphs.normalisation`, differentiable in them."""
        kind, pattern = config.normalisation, self.pattern
        values = weight.new_zeros(pattern.num_edges).index_add(0, self.place, weight)
        if self.loops is not None:
            values = values.index_add(0, self.loops, weight.new_full((pattern.num_nodes,), config.self_loops))
        record = find_normalisation(kind)
        assert record.entry is not None
        if record.is_symmetric:
            self._check_symmetric(values.detach(), kind)
        rows, columns = pattern.rows.long(), pattern.indices.long()
        zero = weight.new_zeros(pattern.num_nodes)
        sums, across = zero.index_add(0, rows, values.abs()), zero.index_add(0, columns, values.abs())
        row, column = (torch.where(total > 0, total, 1.0) for total in (sums, across))
        values = record.entry(values, row[rows], row[columns], column[columns])
        if record.identity and self.loops is not None:
            values = values.index_add(0, self.loops, weight.new_full((pattern.num_nodes,), record.identity))
        return Operator(pattern, values, kind, config.self_loops, degree=sums[:, None] if record.has_degrees else None)

    def _check_symmetric(self, values: Tensor, kind: str) -> None:
        tolerance = max(SYMMETRY_TOLERANCE, ROUNDING * torch.finfo(values.dtype).eps)
        reverse = None if self.mirror is None else values[self.mirror]
        if reverse is None or bool(((values - reverse).abs() > tolerance * values.abs()).any()):
            raise InvalidArgument(
                f"expected an undirected graph for the {kind} normalisation, got edges whose reverse is missing or "
                "weighs differently; add the reversed edges, or use normalisation='row'"
            )


def check_edges(edge_index: Any) -> None:
    """Raise unless this is an edge_index as in PyTorch Geometric."""
    is_fit = (
        isinstance(edge_index, Tensor) and edge_index.layout == torch.strided and not edge_index.is_floating_point()
    )
    if not is_fit or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        got = f"{edge_index.dtype} {tuple(edge_index.shape)}" if isinstance(edge_index, Tensor) else type(edge_index)
        raise InvalidArgument(f"expected edge_index of shape (2, edges), whole numbers, sources first, got {got}")


def read_weights(edge_weight: Tensor | None, edge_index: Tensor, x: Tensor) -> Tensor:
    """Weights (E,) in the precision of x, at least float32 since degrees are summed; ones if None."""
    edges, wide = edge_index.shape[1], torch.promote_types(x.dtype, torch.float32)
    if edge_weight is None:
        return x.new_ones(edges, dtype=wide)
    if edge_weight.shape != (edges,):
        raise InvalidArgument(f"expected edge_weight of shape ({edges},), one per edge, got {tuple(edge_weight.shape)}")
    weight = edge_weight.to(wide)
    if not bool(torch.isfinite(weight.detach().abs().sum())):
        raise InvalidArgument(f"expected finite weights whose sum fits into {wide} as edge_weight; rescale them")
    return weight


# ---------------------------------------------------------------------- conv
#: The number of edge patterns that a layer caches.
CACHED = 4
#: The tolerated truncation of a polynomial, in units of the precision: just above the rounding error of coefficients.
NOISE = 4096


class GREADConv(nn.Module):
    """H(T) of dH/dt = f(t, H), H(0) = x (n, channels), for any system of rdgraph; the graph may change at every call.

    For several fields x has their initial states concatenated, (n, `in_channels`), and the output is the `readout`,
    (n, `out_channels`); velocities are included in x if `velocity` is "encoded", and start at zero otherwise.

    Edges j -> i are columns of `edge_index` (2, E) with source j and target i; repeated edges add up. With adjacency
    "soft" (attention from x) or "live" (from H(t)) only the edges matter and `edge_weight` is refused; with "original",
    A is computed from `edge_weight` (E,), 1 by default, by `normalisation`, and the result is differentiable in it;
    "symmetric" requires equal weights in both directions. The state has the precision of x; with half precision,
    coefficients, attention and degrees are still computed in float32. Under autocast x keeps its precision.

    Args:
        channels: Columns of x; for several fields, those of each.
        reaction: A name of the catalogue, an equation, or a `System`.
        alpha: The kind of alpha, scalar or channel, and so on: the other settings are those of
            `gread.settings.gread_settings.GreadSettings`. Coefficients are initialised as in the classifier.
        method: "auto" chooses from the equation; `config.method` is the choice, and `reason` explains it.
        states: "auto" maps x into a region in which no run overflows, unless the method is adaptive or a splitting;
            `config.states` is that region. "free" uses x unchanged: a run that overflows gives nan or inf without an
            error, so check `out.isfinite().all()`. Poles that no region avoids raise a warning.

    Raises:
        NotApplicable: For coefficients per node, since the nodes may change, for a method without steps if attention
            follows the state, and for white noise and operators besides A.
        UnknownName: For an unknown method, choice or field.

    >>> import torch, gread
    >>> _ = torch.manual_seed(0)
    >>> layer = gread.GREADConv(8, "BS", time=2.0)
    >>> layer
    GREADConv(
      8, -alpha*L@H + beta*(A@H - A@A@H) where beta channel, soft adjacency of 4 heads, exact to T = 2
      (query): Linear(in_features=8, out_features=64, bias=True)
      (key): Linear(in_features=8, out_features=64, bias=True)
    )
    >>> layer(torch.eye(4, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([4, 8])
    """

    def __init__(
        self,
        channels: int,
        reaction: str | System = "BS",
        *,
        alpha: str = "scalar",
        beta: str = "channel",
        alpha_link: str = "auto",
        beta_link: str = "auto",
        adjacency: str = "soft",
        normalisation: str = "symmetric",
        self_loops: float = 1.0,
        heads: int = 4,
        attention_dim: int = 64,
        time: float = 1.0,
        method: str = "auto",
        step: float | None = None,
        velocity: str = "zero",
        readout: str = "all",
        states: str = "auto",
    ) -> None:
        super().__init__()
        is_stepped = method == AUTO or find_method(method).is_fixed
        settings = GreadSettings.of(
            reaction, alpha=alpha, beta=beta, alpha_link=alpha_link, beta_link=beta_link,
            adjacency=adjacency, normalisation=normalisation, self_loops=self_loops, heads=heads,
            attention_dim=attention_dim, time=time, method=method, step=step, hidden=channels, velocity=velocity,
            readout=readout, states=SAFE if states == AUTO and is_stepped else states,
        )  # fmt: skip
        self.config, self.reason = resolve_method(settings)
        if warning := pole_warning(self.reason):
            warnings.warn(warning, stacklevel=2)
        self.channels = channels
        self.system = self.config.system
        self.coefficient_kinds = valued_letters(self.system)
        _check(self.config, self.coefficient_kinds)
        self.layout = StateLayout.of(self.config)
        self.in_channels, self.out_channels = self.layout.encoded_width, self.layout.read_width
        if adjacency != "original":
            self.query, self.key = (nn.Linear(self.in_channels, attention_dim) for _ in range(2))
        for name, kind in self.coefficient_kinds.items():
            shape = {Kind.SCALAR: (), Kind.CHANNEL: (channels,), Kind.MATRIX: (channels, channels)}[kind]
            self.register_parameter(f"coefficient_{name}", nn.Parameter(torch.empty(shape)))
        for name, declared in self.system.learned.items():
            shape = (channels,) * declared.per_channel + (declared.parameters,)
            self.register_parameter(f"coefficient_{name}", nn.Parameter(torch.empty(shape)))
        self._layouts: list[Layout] = []
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw all parameters, from torch's own generator."""
        if self.config.adjacency != "original":
            for linear in (self.query, self.key):
                linear.reset_parameters()
                nn.init.constant_(linear.weight, ATTENTION_START)
        for name, kind in self.coefficient_kinds.items():
            value = getattr(self, f"coefficient_{name}")
            bound = self.channels**-0.5 if kind is Kind.MATRIX else 1.0
            if link_of(self.config, name, kind) in DRAWN:
                nn.init.uniform_(value, -bound, bound)
            else:
                nn.init.zeros_(value)
        for name, declared in self.system.learned.items():
            start = torch.as_tensor(start_parameters(declared))
            with torch.no_grad():
                getattr(self, f"coefficient_{name}").copy_(start)

    def coefficients(self, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
        """The current coefficients of the equation, and the control values of learned functions.

        Coefficients are (), (channels,) or (channels, channels), control values (K,) or (channels, K).
        """
        values = {}
        for name, kind in self.coefficient_kinds.items():
            value = getattr(self, f"coefficient_{name}")
            value = value if dtype is None else value.to(dtype)
            values[name] = linked(value, link_of(self.config, name, kind))
        for name, declared in self.system.learned.items():
            value = getattr(self, f"coefficient_{name}")
            values[name] = make_controls(declared, value if dtype is None else value.to(dtype))
        return {name: self._apart_from_poles(value) for name, value in values.items()}

    def _apart_from_poles(self, x: Tensor) -> Tensor:
        """A value used by the equation; for equations with poles, its gradient is kept finite."""
        return with_finite_gradient(x) if self.config.region.is_clamped else x

    def extra_repr(self) -> str:
        c = self.config
        soft = f"{c.adjacency} adjacency of {c.heads} heads"
        original = f"original adjacency, {c.normalisation}, self-loops {c.self_loops:g}"
        step = f" in steps of {c.step:g}" if c.step is not None else ""
        adjacency = original if c.adjacency == "original" else soft
        inside = "" if c.region.is_free else f", states {c.region}"
        return f"{self.channels}, {self.system}, {adjacency}, {c.method} to T = {c.time:g}{step}{inside}"

    # ------------------------------------------------------------------ the operator
    def operator(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Operator:
        """The operator A of the layer at the initial state, including attention."""
        blank = self._blank(x, edge_index, edge_weight)
        return self._coupled(blank, self.layout.start(x))

    def _blank(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Operator:
        """The operator of the edges; for attention only its pattern matters."""
        layout = self._layout(edge_index, len(x))
        if self.config.adjacency == "original":
            return layout.operator(self.config, read_weights(edge_weight, edge_index, x)).to(dtype=x.dtype)
        if edge_weight is not None:
            raise InvalidArgument(
                f"expected no edge_weight for the {self.config.adjacency} adjacency, whose weights are attention; "
                "leave it out, or use adjacency='original'"
            )
        return Operator(layout.pattern, x.new_ones(layout.pattern.num_edges), "row")

    def _coupled(self, blank: Operator, H: Tensor) -> Operator:
        if self.config.adjacency == "original":
            return blank
        seen = self.layout.seen(H)
        query, key = (part(seen.to(part.weight.dtype))[None].to(_wide(H)) for part in (self.query, self.key))
        weights = soft_weights(blank, query, key, self.config.heads)
        return blank.with_stochastic_weights(self._apart_from_poles(weights[0].to(H.dtype)))

    def _layout(self, edge_index: Tensor, nodes: int) -> Layout:
        """The layout of these edges, cached by their content."""
        check_edges(edge_index)
        for known in self._layouts:
            if known.fits(edge_index, nodes):
                return known
        has_diagonal = self.config.self_loops > 0 or find_normalisation(self.config.normalisation).identity != 0
        layout = Layout.make(edge_index, nodes, has_diagonal)
        self._layouts = [layout, *self._layouts[: CACHED - 1]]
        return layout

    # ------------------------------------------------------------------ the flow
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """H(T) (n, out_channels) of x (n, in_channels) on the edges (2, E)."""
        if torch.compiler.is_exporting():
            raise NotApplicable(
                "torch.export cannot export GREADConv, which sorts the edges of every call on the host; export "
                "gread.exportable(model) instead"
            )
        if torch.compiler.is_compiling():
            from gread.layers.opaque_call import opaque_call

            return opaque_call(self.evolve, x, edge_index, edge_weight)
        return self.evolve(x, edge_index, edge_weight)

    def evolve(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Compute the output for features x and edges, also while a compiler traces it."""
        if x.ndim != 2 or x.shape[1] != self.in_channels:
            several = f", the starts of {', '.join(self.layout.encoded)} side by side" if self.system.fields[1:] else ""
            raise InvalidArgument(f"expected x of shape (nodes, {self.in_channels}){several}, got {tuple(x.shape)}")
        self._check_precision(x)
        if not len(x):
            return x.new_empty((0, self.out_channels))
        start = self.layout.start(x.to(Flow.start_dtype(self.config.method, x.dtype)))
        return self.layout.readout(self._flow(start, edge_index, edge_weight)).to(x.dtype)

    def _flow(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """H(T) of all states x, in their precision."""
        c = self.config
        blank = self._blank(x, edge_index, edge_weight)

        def make_field(H: Tensor) -> VectorField:
            return lower(self.system, self._coupled(blank, H), self.coefficients(_wide(H)))

        field = make_field(x)
        added = bounding(c, self.layout)
        flow = Flow.choose(field, c.method, c.time, c.step, c.adjacency == "live", added)
        time = torch.tensor(c.time, dtype=torch.float64, device=x.device)
        degree = self.needed_degree(flow, field, x)
        return flow.run(make_field, self._apart_from_poles(x), time, degree, added=added)[0]

    def needed_degree(self, flow: Flow, field: VectorField, x: Tensor) -> int:
        """The number of products that the polynomial of a flow needs with the current coefficients."""
        time = torch.tensor(self.config.time, dtype=torch.float64, device=x.device)
        return flow.needed(field, x, time, min(TOLERANCE, NOISE * torch.finfo(x.dtype).eps))

    def _check_precision(self, x: Tensor) -> None:
        """Raise for an x whose precision differs from that of the attention parameters, unless under autocast."""
        dtype = next((p.dtype for p in self.parameters()), x.dtype)
        if not x.is_floating_point():
            raise InvalidArgument(f"expected x of real numbers, got {x.dtype}; use x.float()")
        if self.config.adjacency != "original" and x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
            raise InvalidArgument(
                f"expected x of {dtype}, the precision of the layer, got {x.dtype}; convert one of them with .to(...), "
                "or call the layer under torch.autocast"
            )


def _wide(x: Tensor) -> torch.dtype:
    """The precision of computations with x: at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def _check(config: GreadSettings, kinds: Mapping[str, Kind]) -> None:
    """Raise for settings that no graph can satisfy."""
    Flow.check(config.method, config.time, config.step, config.adjacency == "live")
    for name, kind in kinds.items():
        if kind is Kind.NODE:
            raise NotApplicable(
                f"expected scalar, channel or matrix coefficients in a layer, whose graph may change, got {name} of "
                "kind node; the classifier supports them"
            )
