"""`rd.conform` on layers: published ones against their formulas, seeded faults, and correct variants."""

from __future__ import annotations

import ast
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import rdgraph as rd
from rdgraph.errors import UnknownName
from rdgraph.infer.layers.conformity import Conformity
from rdgraph.infer.layers.probe_graphs import probe_graphs
from rdgraph.vocabulary.normalisations import find_normalisation
from studies.benchmarks.result_files import RESULTS, head, write_json

# ---------------------------------------------------------------------- faulty layers
# Layers written as expressions of torch, and their faults: one operator, sign, power, term or number changed.


@dataclass(frozen=True)
class Recipe:
    """An expression in x, x_0, hop, lap and weights, the equation that it computes, and how its graph is read.

    `variants` are other ways to write the same. Coefficients have random values; matrices are `channels` x `channels`.
    """

    name: str
    source: str
    equation: str
    normalisation: str
    self_loops: bool
    letters: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    biases: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    is_flipped: bool = False
    is_dense: bool = False

    @property
    def has_start(self) -> bool:
        return "x_0" in self.source

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds of the names that the language does not know."""
        return {**{m: "matrix" for m in self.matrices if m != "W"}, **dict.fromkeys(self.biases, "channel")}

    def values(self, seed: int, channels: int) -> dict[str, Tensor]:
        """Values of all names: coefficients between 0.15 and 0.85, weights of either sign."""
        generator = torch.Generator().manual_seed(seed)
        found = {n: 0.15 + 0.7 * torch.rand((), generator=generator, dtype=torch.float64) for n in self.letters}
        shape = (channels, channels)
        found |= {n: torch.randn(shape, generator=generator, dtype=torch.float64) for n in self.matrices}
        return found | {n: torch.randn(channels, generator=generator, dtype=torch.float64) for n in self.biases}


RECIPES = (
    Recipe("gcn", "relu(hop(x) @ W + b)", "relu(A@H@W + b)", "symmetric", True, (), ("W",), ("b",),
           ("relu(hop(x @ W) + b)", "(hop(x) @ W + b) * (hop(x) @ W + b > 0)")),
    Recipe("sgc", "hop(hop(x)) @ W", "A@A@H@W", "symmetric", True, (), ("W",), (),
           ("hop(hop(x @ W))", "hop(hop(x) @ W)")),
    Recipe("appnp", "(1.0 - alpha)*hop(x) + alpha*x_0", "(1 - alpha)*A@H + alpha*H0", "symmetric", True, ("alpha",), (),
           (), ("hop(x) + alpha*(x_0 - hop(x))",)),
    Recipe("gcn2", "(1.0 - beta)*((1.0 - alpha)*hop(x) + alpha*x_0) + beta*((1.0 - alpha)*hop(x) + alpha*x_0) @ W",
           "(1 - beta)*((1 - alpha)*A@H + alpha*H0) + beta*((1 - alpha)*A@H + alpha*H0)@W", "symmetric", True,
           ("alpha", "beta"), ("W",)),
    Recipe("bs", "-alpha*lap(x) + beta*(hop(x) - hop(hop(x)))", "-alpha*L@H + beta*(A@H - A@A@H)", "row", False,
           ("alpha", "beta"), variants=("alpha*(hop(x) - x) + beta*hop(lap(x))", "beta*lap(hop(x)) - alpha*lap(x)")),
    Recipe("fb", "-alpha*lap(x) + beta*(lap(x) + x)", "-alpha*L@H + beta*(L@H + H)", "row", False, ("alpha", "beta"),
           variants=("(beta - alpha)*lap(x) + beta*x",)),
    Recipe("allen-cahn", "-alpha*lap(x) + beta*x*(1.0 - x**2)", "-alpha*L@H + beta*H*(1 - H**2)", "symmetric", False,
           ("alpha", "beta"), variants=("-alpha*lap(x) + beta*x - beta*x*x*x",)),
    Recipe("source", "-alpha*lap(x) + beta*x_0 - mu*x", "-alpha*L@H + beta*H0 - mu*H", "row", False,
           ("alpha", "beta", "mu"), variants=("alpha*hop(x) - (alpha + mu)*x + beta*x_0",)),
    Recipe("antisymmetric", "x + epsilon*tanh(x @ V + hop(x) @ W + b)", "H + epsilon*tanh(H@V + A@H@W + b)",
           "symmetric", True, ("epsilon",), ("V", "W"), ("b",),
           ("x + epsilon*(1.0 - 2.0/(exp(2.0*(x @ V + hop(x @ W) + b)) + 1.0))",)),
    Recipe("graph-conv", "x @ V + hop(x) @ W + b", "H@V + A@H@W + b", "none", False, (), ("V", "W"), ("b",),
           ("hop(x @ W) + (x @ V + b)",)),
    Recipe("chebyshev", "x @ U - hop(x) @ V + (2.0*hop(hop(x)) - x) @ W", "H@U - A@H@V + (2*A@A@H - H)@W", "symmetric",
           False, (), ("U", "V", "W"), (), ("x @ (U - W) - hop(x @ V - 2.0*hop(x @ W))",)),
    Recipe("wave", "alpha*sin(hop(x)) - beta*lap(lap(x))", "alpha*sin(A@H) - beta*L@L@H", "column", False,
           ("alpha", "beta"), variants=("alpha*sin(hop(x)) - beta*(lap(x) - hop(lap(x)))",)),
)  # fmt: skip

_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "sin": torch.sin, "exp": torch.exp,
    "softplus": torch.nn.functional.softplus,
}  # fmt: skip


def made_layer(recipe: Recipe, tree: ast.expr, values: Mapping[str, Tensor]) -> Callable[..., Tensor]:
    """The layer of an expression; it sends messages along edges, or multiplies by a dense matrix."""
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), recipe.name, "eval")

    def computed(x: Tensor, start: Tensor, edges: Tensor, weight: Tensor | None) -> Tensor:
        hop, degree = _neighbours(recipe, x, edges, weight)
        has_degrees = recipe.normalisation == "none"
        names = {"x": x, "x_0": start, "hop": hop, **_FUNCTIONS, **values}
        names["lap"] = lambda y: (degree * y if has_degrees else y) - hop(y)
        answer: Tensor = eval(code, {"__builtins__": {}}, names)
        return answer

    def plain(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return computed(x, x, edge_index, edge_weight)

    def started(x: Tensor, x_0: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return computed(x, x_0, edge_index, edge_weight)

    return started if recipe.has_start else plain


def _neighbours(
    recipe: Recipe, x: Tensor, edges: Tensor, weight: Tensor | None
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A as a function, and the sums of the weights that a node collects."""
    source, target = edges.flip(0) if recipe.is_flipped else edges
    heavy = x.new_ones(len(source)) if weight is None else weight
    if recipe.self_loops:
        own = torch.arange(len(x))
        source, target = torch.cat([source, own]), torch.cat([target, own])
        heavy = torch.cat([heavy, x.new_ones(len(x))])
    zeros = x.new_zeros(len(x))
    incoming, outgoing = zeros.index_add(0, target, heavy), zeros.index_add(0, source, heavy)
    inner, outer, sent = (
        torch.where(d > 0, d, torch.inf) for d in (incoming[target], incoming[source], outgoing[source])
    )
    entry = find_normalisation(recipe.normalisation).entry
    assert entry is not None
    entries = entry(heavy, inner, outer, sent)
    if recipe.is_dense:
        matrix = x.new_zeros((len(x), len(x))).index_put((target, source), entries, accumulate=True)
        return (lambda y: matrix @ y), incoming[:, None]
    return (lambda y: torch.zeros_like(y).index_add(0, target, entries[:, None] * y[source])), incoming[:, None]


# ---------------------------------------------------------------------- faults
@dataclass(frozen=True)
class Fault:
    """A kind of fault, the recipe with it, and its expression."""

    kind: str
    recipe: Recipe
    tree: ast.expr

    @property
    def text(self) -> str:
        settings = f"{self.recipe.normalisation}, loops {self.recipe.self_loops}, flipped {self.recipe.is_flipped}"
        return f"{ast.unparse(self.tree)} ({settings})"


def faults(recipe: Recipe) -> Iterator[Fault]:
    """Every single fault of a recipe, each once."""
    tree = ast.parse(recipe.source, mode="eval").body
    yield Fault("transposed edges", replace(recipe, is_flipped=True), tree)
    yield Fault("self-loops", replace(recipe, self_loops=not recipe.self_loops), tree)
    for name in ("symmetric", "row", "column", "none"):
        if name != recipe.normalisation:
            yield Fault("normalisation", replace(recipe, normalisation=name), tree)
    seen = {recipe.source}
    for kind, changed in _changed(tree):
        if (text := ast.unparse(changed)) not in seen:
            seen.add(text)
            yield Fault(kind, recipe, changed)


def _changed(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    yield from _at(node)
    for name, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        for place, part in enumerate(parts):
            if isinstance(part, ast.expr) and not (isinstance(node, ast.Call) and name == "func"):
                for kind, other in _changed(part):
                    swapped = [*parts[:place], other, *parts[place + 1 :]]
                    copy = type(node)(
                        **{**dict(ast.iter_fields(node)), name: swapped if isinstance(value, list) else other}
                    )
                    yield kind, copy


def _at(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            yield "sign", ast.BinOp(left, ast.Sub() if isinstance(sign, ast.Add) else ast.Add(), right)
            yield "missing term", left
            yield "missing term", right if isinstance(sign, ast.Add) else ast.UnaryOp(ast.USub(), right)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            yield "sign", inner
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))):
            yield "power", ast.BinOp(base, ast.Pow(), ast.Constant(power + 1))
            yield "power", base
        case ast.Constant(value=float(number)) if number != 1.0:
            yield "coefficient", ast.Constant(1.5 * number)
        case ast.Name(id="alpha" | "beta" | "mu" | "epsilon" as name):
            yield "coefficient", ast.BinOp(ast.Constant(1.5), ast.Mult(), ast.Name(name, ast.Load()))
        case ast.Call(func=ast.Name(id="hop" | "lap" as name), args=[inner]):
            yield from _operators(name, node, inner)
        case ast.Call(func=ast.Name(id="relu" | "tanh" | "sin" as name), args=[inner]):
            for other in ("relu", "tanh", "sigmoid", "softplus", "sin"):
                if other != name:
                    yield "activation", _called(other, inner)
            yield "activation", inner


def _operators(name: str, node: ast.expr, inner: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    yield "power", _called(name, node)
    match inner:
        case ast.Call(func=ast.Name(id=same)) if same == name:
            yield "power", inner
    yield "operator", _called("lap" if name == "hop" else "hop", inner)
    if name == "lap":
        yield "operator", ast.BinOp(inner, ast.Add(), _called("hop", inner))


def _called(name: str, inner: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [inner], [])


def options(recipe: Recipe, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of `rd.conform` for a recipe; without values the coefficients are fitted."""
    found: dict[str, Any] = {
        "normalisation": recipe.normalisation,
        "self_loops": "added" if recipe.self_loops else "none",
    }
    found |= {"kinds": recipe.kinds}
    return found | ({"values": dict(values)} if values is not None else {})


# ---------------------------------------------------------------------- published layers
# Layers of torch-geometric and of our own, each with its published formula in the language.

Array = np.ndarray


@dataclass(frozen=True)
class PublishedLayer:
    """A layer, the formula that its documentation prints, and the same in the language.

    `options` are further options of `rd.conform`, or a function of the layer if they need its weights.
    """

    name: str
    make: Callable[[], Any]
    formula: str
    equation: str
    options: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""

    def settings(self, layer: Any) -> dict[str, Any]:
        return dict(self.options(layer) if callable(self.options) else self.options)


def drawn(layer: nn.Module) -> nn.Module:
    """The layer with random parameters, so that biases, which start at zero, matter too."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(0.7 * torch.randn(parameter.shape, generator=generator))
    return layer.eval()


def scaled_laplacian(adjacency: Array) -> Array:
    """2 L/lam_max - I with the largest eigenvalue itself."""
    degree = adjacency.sum(axis=1)
    inverse = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    laplacian = np.eye(len(degree)) - inverse[:, None] * adjacency * inverse[None, :]
    return 2 * laplacian / max(1e-12, np.linalg.eigvals(laplacian).real.max()) - np.eye(len(degree))


def diagonal_part(adjacency: Array) -> Array:
    """diag(D^-1 A)."""
    degree = adjacency.sum(axis=1)
    return np.diag(adjacency.diagonal() / np.where(degree > 0, degree, 1.0))


def degree_matrix(adjacency: Array) -> Array:
    return np.diag(adjacency.sum(axis=1))


def of_degree(count: int) -> Callable[[Array], Array]:
    """1 on the diagonal at nodes with `count` incoming edges."""
    return lambda adjacency: np.diag(((adjacency != 0).sum(axis=1) == count).astype(float))


def signed_attention(layer: Any) -> Callable[[Array, Array], Array]:
    """tanh(a^T [x_i, x_j])/sqrt(d_i d_j) on the edges j -> i, with the weights of an FAConv."""
    left, right = (linear.weight.detach().double().numpy().ravel() for linear in (layer.att_l, layer.att_r))

    def operator(adjacency: Array, state: Array) -> Array:
        degree = adjacency.sum(axis=1)
        inverse = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
        weights = np.tanh((state @ right)[:, None] + (state @ left)[None, :])
        return weights * inverse[:, None] * adjacency * inverse[None, :]

    return operator


def with_unit_feature(layer: Any, x: torch.Tensor, start: torch.Tensor, graph: Any) -> torch.Tensor:
    """A layer that wants edge features, called with 1 for each."""
    edges = torch.tensor(graph.edge_index)
    answer: torch.Tensor = layer(x, edges, torch.ones((edges.shape[1], 1), dtype=x.dtype))
    return answer


def antisymmetric(layer: Any) -> dict[str, Any]:
    """The part of an AntiSymmetricConv that is given: x (W - W^T)^T."""
    weight = layer.W.detach().double().numpy()
    kinds = {"V": "matrix", "b": "channel"}
    return {"values": {"V": weight.T - weight}, "kinds": kinds, **_LITERAL, "assume": "gamma real"}


#: A + I, as the formulas print it.
_LITERAL: dict[str, Any] = {"normalisation": "symmetric", "self_loops": "added"}
_PLAIN: dict[str, Any] = {"normalisation": "symmetric", "self_loops": "none"}
_BIAS = {"kinds": {"b": "channel"}}


def _matrices(*names: str, **more: str) -> dict[str, Any]:
    return {"kinds": {**dict.fromkeys(names, "matrix"), **more}}


def torch_geometric_layers() -> tuple[PublishedLayer, ...]:
    """Sixteen layers of torch-geometric, with what its documentation prints."""
    from torch_geometric import nn as pyg

    degrees = [f"P{k}" for k in range(5)]
    by_degree = " + ".join([*(f"P{k}@H@U{k}" for k in range(5)), *(f"P{k}@A@H@V{k}" for k in range(1, 5))])
    mlp = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    return (
        PublishedLayer("GCNConv", lambda: pyg.GCNConv(3, 2), "D^-1/2 (A+I) D^-1/2 X W", "A@H@W + b",
                       {**_LITERAL, **_BIAS}),
        PublishedLayer("SGConv", lambda: pyg.SGConv(3, 2, K=3), "(D^-1/2 (A+I) D^-1/2)^K X W", "A@A@A@H@W + b",
                       {**_LITERAL, **_BIAS}),
        PublishedLayer("SSGConv", lambda: pyg.SSGConv(3, 2, alpha=0.3, K=2), "1/K sum_k ((1-alpha) A^k X + alpha X) W",
                       "(alpha*H + (1 - alpha)/2*(A@H + A@A@H))@W + b", {**_LITERAL, **_BIAS}),
        PublishedLayer("APPNP", lambda: pyg.APPNP(3, 0.1), "X_k = (1-alpha) A X_(k-1) + alpha X_0, k = 1..K",
                       "(1 - alpha)*A@H + alpha*H0", {**_LITERAL, "compared": "map", "count": 3}),
        PublishedLayer("TAGConv", lambda: pyg.TAGConv(2, 3, K=2), "sum_k (D^-1/2 A D^-1/2)^k X W_k",
                       "H@W0 + A@H@W1 + A@A@H@W2 + b", {**_PLAIN, **_matrices("W0", "W1", "W2", b="channel")}),
        PublishedLayer("ChebConv", lambda: pyg.ChebConv(2, 3, K=3), "sum_k Z_k W_k, Z_k Chebyshev in 2L/lam_max - I",
                       "H@W0 + B@H@W1 + (2*B@B@H - H)@W2 + b",
                       {**_PLAIN, **_matrices("W0", "W1", "W2", b="channel"), "operators": {"B": scaled_laplacian}},
                       "lam_max as printed"),
        PublishedLayer("ChebConv", lambda: pyg.ChebConv(2, 3, K=3), "the same with lam_max = 2",
                       "H@W0 - A@H@W1 + (2*A@A@H - H)@W2 + b", {**_PLAIN, **_matrices("W0", "W1", "W2", b="channel")},
                       "lam_max = 2"),
        PublishedLayer("GCN2Conv", lambda: pyg.GCN2Conv(2, 0.1, theta=0.5, layer=1),
                       "((1-alpha) P X + alpha X_0) ((1-beta) I + beta W)",
                       "(1 - beta)*((1 - alpha)*A@H + alpha*H0) + beta*((1 - alpha)*A@H + alpha*H0)@W", _LITERAL),
        PublishedLayer("FAConv", lambda: pyg.FAConv(2), "eps x_0 + sum_N(i) tanh(a^T[x_i,x_j])/sqrt(d_i d_j) x_j",
                       "epsilon*H0 + S@H", lambda layer: {**_PLAIN, "operators": {"S": signed_attention(layer)}}),
        PublishedLayer("ARMAConv", lambda: pyg.ARMAConv(2, 3), "relu(D^-1/2 A D^-1/2 X W + X_0 V)",
                       "relu(A@H@W + H@V + b)", {**_PLAIN, **_matrices("V", b="channel")}),
        PublishedLayer("ClusterGCNConv", lambda: pyg.ClusterGCNConv(2, 3, diag_lambda=0.5),
                       "(B + lambda diag(B)) X W_1 + X W_2, B = (D+I)^-1 (A+I)",
                       "(A + mu*B)@H@W1 + H@W2 + b",
                       {"normalisation": "row", "self_loops": "added", **_matrices("W1", "W2", b="channel"),
                        "operators": {"B": diagonal_part}}),
        PublishedLayer("LEConv", lambda: pyg.LEConv(2, 2), "x_i W_1 + sum_j e_ji (W_2 x_i - W_3 x_j)",
                       "H@W1 + D@H@W2 - A@H@W3 + b",
                       {"normalisation": "none", "self_loops": "none", **_matrices("W1", "W2", "W3", b="channel"),
                        "operators": {"D": degree_matrix}}, "with biases"),
        PublishedLayer("LEConv", lambda: pyg.LEConv(2, 2, bias=False), "the same", "H@W1 + D@H@W2 - A@H@W3",
                       {"normalisation": "none", "self_loops": "none", **_matrices("W1", "W2", "W3"),
                        "operators": {"D": degree_matrix}}, "bias=False"),
        PublishedLayer("GraphConv", lambda: pyg.GraphConv(2, 3), "W_1 x_i + W_2 sum_j e_ji x_j", "H@W1 + A@H@W2 + b",
                       {"normalisation": "none", "self_loops": "none", **_matrices("W1", "W2", b="channel")}),
        PublishedLayer("MFConv", lambda: pyg.MFConv(2, 2, max_degree=4, bias=False),
                       "W_1^(deg i) x_i + W_2^(deg i) sum_j x_j", by_degree,
                       {"normalisation": "none", "self_loops": "none",
                        **_matrices(*(f"U{k}" for k in range(5)), *(f"V{k}" for k in range(1, 5))),
                        "operators": {name: of_degree(k) for k, name in enumerate(degrees)}}, "bias=False"),
        PublishedLayer("GINConv", lambda: pyg.GINConv(mlp, eps=0.2), "h((1 + eps) x_i + sum_j x_j), h a network",
                       "relu((1 + epsilon)*H@W1 + A@H@W1 + b1)@W2 + b2",
                       {"normalisation": "none", "self_loops": "none", "shapes": {"W1": (2, 4)},
                        **_matrices("W1", "W2", b1="channel", b2="channel")}),
        PublishedLayer("AntiSymmetricConv", lambda: pyg.AntiSymmetricConv(2),
                       "x_i + eps tanh((W - W^T - gamma I) x_i + Phi(X)_i + b)",
                       "H + epsilon*tanh(H@V - gamma*H + A@H@W + b)", antisymmetric),
        PublishedLayer("PDNConv", lambda: pyg.PDNConv(2, 3, 1, 4), "sum_(N(i), i) f(e_ji) W x_j", "A@H@W + b",
                       {"normalisation": "none", "self_loops": "added", **_BIAS}, "without edge features, f = 1"),
        PublishedLayer("PDNConv", lambda: pyg.PDNConv(2, 3, 1, 4, normalize=False), "the same", "A@H@W + b",
                       {"normalisation": "none", "self_loops": "added", "call": with_unit_feature, **_BIAS},
                       "normalize=False, one edge feature that is 1"),
    )  # fmt: skip


def our_layers() -> tuple[PublishedLayer, ...]:
    """Layers and fields of our own, and the filter bank as its authors released it."""
    from gread import GREADConv
    from rdgraph.graphs import generators
    from rdgraph.run.lowering.vector_field import lower

    graph = generators.grid(2, 3)
    operator = graph.operator("symmetric", dtype=torch.float64)

    def lowered(name: str, **values: float) -> Callable[[], Any]:
        return lambda: lower(name, operator, values)

    held = {"graph": graph, "normalisation": "symmetric", "self_loops": False, "channels": 2}
    flow = {"normalisation": "symmetric", "self_loops": "added"}
    made: dict[str, Any] = {"adjacency": "original", "beta": "scalar"}
    half = {"values": {"alpha": 0.5, "beta": 0.25}}
    return (
        PublishedLayer("GREADConv, BS, exact", lambda: GREADConv(2, "BS", **made), "the flow of BS to T = 1",
                       "-alpha*L@H + beta*(A@H - A@A@H)",
                       {**flow, "compared": "flow", "T": 1.0, "assume": "beta real"}),
        PublishedLayer("GREADConv, FB, euler", lambda: GREADConv(2, "FB", method="euler", step=0.5, **made),
                       "two steps of FB", "-alpha*L@H + beta*L@H",
                       {**flow, "compared": "step", "step": 0.5, "count": 2, "assume": "beta real"}),
        PublishedLayer("lowered BS", lowered("BS", alpha=0.5, beta=0.25), "Eq. of BS",
                       "-alpha*L@H + beta*(A@H - A@A@H)", {**held, **half}),
        PublishedLayer("lowered Fisher", lowered("-alpha*L@H + beta*H*(1 - H)", alpha=0.5, beta=0.25),
                       "Fisher's equation", "-alpha*L@H + beta*H*(1 - H)", {**held, **half}),
        PublishedLayer("filter bank as released", lowered("FB-released", alpha=0.5, beta=0.25), "Eq. 10, FB",
                       "-alpha*L@H + beta*L@H", {**held, **half}, "the authors' released reaction"),
    )  # fmt: skip


# ---------------------------------------------------------------------- conforming
#: Channels of a layer with a fault, and hints among which its kind must be.
CHANNELS, FIRST = 2, 3
#: Correct variants of every recipe.
VARIANTS = 18


# ---------------------------------------------------------------------- published layers


def table_row(published: PublishedLayer, source: str) -> dict[str, Any]:
    """Verdicts on one layer, on simple graphs and on all."""
    made = published.make()
    layer = drawn(made) if source == "torch-geometric" else made
    options = published.settings(layer)
    domains = ["the bound graph"] if "graph" in options else ["simple", "all"]
    row: dict[str, Any] = {
        "layer": published.name, "source": source, "formula": published.formula, "equation": published.equation,
        "note": published.note, "verdicts": {},
    }  # fmt: skip
    for domain in domains:
        began = time.process_time()
        graphs: dict[str, Any] = {} if "graph" in options else {"graphs": domain}
        found = rd.conform(layer, published.equation, **options, **graphs)
        row["verdicts"][domain] = {**_short(found), "seconds": round(time.process_time() - began, 2)}
    return row


def _short(found: Conformity) -> dict[str, Any]:
    worth = found.agreement
    return {
        "conforms": found.conforms,
        "reading": found.reading,
        "certificate": None if worth is None else str(worth),
        "proof": bool(worth is not None and worth.is_proof),
        "equation": found.equation,
        "witness": None if found.witness is None else str(found.witness),
        "hints": [str(hint) for hint in found.hints],
        "notes": list(found.notes),
    }


def conform(*, command: str, out: Path = RESULTS / "conform.json", only: str = "") -> None:
    """Published layers against their formulas; `--only` layers whose name contains this, without a file.

    Every layer is asked on simple graphs (undirected, neither loops nor weights), and on all of them. Seconds are those
    of the processor.
    """
    every = [(p, "torch-geometric") for p in torch_geometric_layers()] + [(p, "ours") for p in our_layers()]
    chosen = [(published, source) for published, source in every if only in published.name]
    if not chosen:
        raise UnknownName("layer", only, [published.name for published, _ in every])
    rows = []
    for published, source in chosen:
        rows.append(row := table_row(published, source))
        for domain, verdict in row["verdicts"].items():
            word = "conforms" if verdict["conforms"] else f"differs: {'; '.join(verdict['hints'][:2])}"
            print(f"{published.name} ({published.note}) {domain}: {word} [{verdict['seconds']} s]")
    if not only:
        write_json(out, head(command, "cpu") | {"rows": rows})


# ---------------------------------------------------------------------- seeded faults
def seeded_faults(seed: int = 0) -> Iterator[tuple[Recipe, Fault]]:
    """The faults of all recipes that change an output."""
    for recipe in RECIPES:
        for fault in faults(recipe):
            if changes_something(recipe, fault, seed):
                yield recipe, fault


def changes_something(recipe: Recipe, fault: Fault, seed: int) -> bool:
    """Whether a fault changes an output on some graph, and leaves a layer: one row for each node."""
    values = recipe.values(seed, CHANNELS)
    sound = made_layer(recipe, ast.parse(recipe.source, mode="eval").body, values)
    faulty = made_layer(fault.recipe, fault.tree, values)
    generator = torch.Generator().manual_seed(1)
    for graph in probe_graphs():
        x, start = (
            torch.randn((graph.num_nodes, CHANNELS), generator=generator, dtype=torch.float64) for _ in range(2)
        )
        weight = torch.tensor(graph.edge_weight)
        states = (x, start) if recipe.has_start else (x,)
        first, second = (layer(*states, torch.tensor(graph.edge_index), weight) for layer in (sound, faulty))
        if first.shape != second.shape:
            return False
        if float((first - second).abs().max()) > 1e-6:
            return True
    return False


def fault_row(recipe: Recipe, fault: Fault, seed: int = 0) -> dict[str, Any]:
    """The answer of `rd.conform` to one fault."""
    values = recipe.values(seed, CHANNELS)
    began = time.process_time()
    found = rd.conform(
        made_layer(fault.recipe, fault.tree, values), recipe.equation, **options(recipe, values), channels=CHANNELS
    )
    kinds = [hint.kind for hint in found.hints]
    return {
        "layer": recipe.name, "kind": fault.kind, "fault": fault.text, "caught": not found.conforms,
        "named": fault.kind in kinds[:FIRST], "hints": [str(hint) for hint in found.hints[:FIRST]],
        "seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def correct_variants() -> Iterator[tuple[Recipe, str, int, int, bool]]:
    """A recipe, an expression of it, a seed, a width, and whether its coefficients are given."""
    for recipe in RECIPES:
        ways = (recipe.source, *recipe.variants)
        for k in range(VARIANTS):
            yield replace(recipe, is_dense=bool(k % 2)), ways[k % len(ways)], 100 + k, 1 + k % 3, k % 3 != 2


def variant_row(recipe: Recipe, source: str, seed: int, channels: int, given: bool) -> dict[str, Any]:
    """The answer of `rd.conform` to one correct variant."""
    values = recipe.values(seed, channels)
    layer = made_layer(recipe, ast.parse(source, mode="eval").body, values)
    began = time.process_time()
    found = rd.conform(layer, recipe.equation, **options(recipe, values if given else None), channels=channels)
    return {
        "layer": recipe.name, "source": source, "seed": seed, "channels": channels, "given": given,
        "conforms": found.conforms, "proof": bool(found.agreement is not None and found.agreement.is_proof),
        "hints": [str(hint) for hint in found.hints[:FIRST]], "seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def summary(found: Sequence[dict[str, Any]], sound: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts and times."""
    kinds = Counter(row["kind"] for row in found)
    named = Counter(row["kind"] for row in found if row["named"] and row["caught"])
    seconds = [row["seconds"] for row in (*found, *sound)]
    return {
        "layers": len({row["layer"] for row in found}), "faults": len(found),
        "caught": sum(row["caught"] for row in found), "named": sum(named.values()),
        "by_kind": {kind: {"faults": count, "named": named[kind]} for kind, count in sorted(kinds.items())},
        "variants": len(sound), "false_alarms": sum(not row["conforms"] for row in sound),
        "proofs": sum(row["proof"] for row in sound),
        "median_seconds": round(median(seconds), 2), "most_seconds": max(seconds),
    }  # fmt: skip


def conform_faults(*, command: str, out: Path = RESULTS / "conform_faults.json", every: int = 1) -> None:
    """Seeded faults and correct variants.

    Every single fault of twelve layers is put to `rd.conform` with the equation of the layer without it: is it caught,
    and does one of the first three hints name its kind? The same number of correct variants, with other numbers, other
    ways to write the same and other widths, must conform. Faults that change no output are left out. Seconds are those
    of the processor.
    """
    found, sound = [], []
    for recipe, fault in list(seeded_faults())[::every]:
        found.append(row := fault_row(recipe, fault))
        if not (row["caught"] and row["named"]):
            print(f"{row['layer']}: {row['kind']}, {row['fault']}: caught {row['caught']}, {row['hints']}", flush=True)
    for variant in list(correct_variants())[::every]:
        sound.append(row := variant_row(*variant))
        if not row["conforms"]:
            print(f"false alarm: {row}", flush=True)
    counts = summary(found, sound)
    print(json.dumps(counts, indent=1))
    write_json(out, head(command, "cpu") | {"summary": counts, "faults": found, "variants": sound})
