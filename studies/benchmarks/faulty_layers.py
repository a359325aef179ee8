"""Layers written as expressions of torch, and their faults: one operator, sign, power, term or number changed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rdgraph.normalisations.registry import find_normalisation


@dataclass(frozen=True)
class Recipe:
    """An expression in x, x_0, hop, lap and weights, the equation that it computes, and how its graph is read.

    `variants` are other ways to write the same. Letters of the language have the values drawn for them; matrices are
    `channels` wide both ways.
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
        """Kinds of the letters that the language does not know by themselves."""
        return {**{m: "matrix" for m in self.matrices if m != "W"}, **dict.fromkeys(self.biases, "channel")}

    def values(self, seed: int, channels: int) -> dict[str, Tensor]:
        """Numbers for all letters: coefficients between 0.15 and 0.85, weights of either sign."""
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
    """What `rd.conform` is told of a recipe; without values the letters are fitted."""
    found: dict[str, Any] = {
        "normalisation": recipe.normalisation,
        "self_loops": "added" if recipe.self_loops else "none",
    }
    found |= {"coefficients": recipe.kinds}
    return found | ({"values": dict(values)} if values is not None else {})
