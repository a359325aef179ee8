"""`rd.conform` on layers: published ones against their formulas, seeded faults, and correct variants."""

from __future__ import annotations

import ast
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from studies.benchmarks.result_files import CASES, RESULTS, head, write_json

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


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


RECIPES = tuple(Recipe(**{name: _frozen(value) for name, value in row.items()}) for row in CASES["recipe"])
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
    loops = "added" if recipe.self_loops else "none"
    found = {"normalisation": recipe.normalisation, "self_loops": loops, "kinds": recipe.kinds}
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


def antisymmetric_part(layer: Any) -> Array:
    """The part of an AntiSymmetricConv that is given: x (W - W^T)^T."""
    weight: Array = layer.W.detach().double().numpy()
    return weight.T - weight


#: What the options of a published layer name, as functions of the layer.
NAMED: dict[str, Callable[[Any], Any]] = {
    "scaled Laplacian": lambda layer: scaled_laplacian, "diagonal part": lambda layer: diagonal_part,
    "degrees": lambda layer: degree_matrix, "signed attention": signed_attention,
    "antisymmetric part": antisymmetric_part, "unit edge features": lambda layer: with_unit_feature,
    **{f"nodes of degree {k}": partial(lambda count, layer: of_degree(count), k) for k in range(5)},
}  # fmt: skip


def _options(row: Mapping[str, Any], layer: Any) -> dict[str, Any]:
    """Options of `rd.conform` for a published layer, with functions in place of their names."""
    found = dict(row["options"])
    for name in found.keys() & {"operators", "values"}:
        found[name] = {letter: NAMED[word](layer) for letter, word in found[name].items()}
    return found | ({"call": NAMED[found["call"]](layer)} if "call" in found else {})


def _torch_geometric_layer(row: Mapping[str, Any]) -> nn.Module:
    """A layer of torch-geometric; the argument "network" is a network of two layers."""
    from torch_geometric import nn as pyg

    network = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    arguments = [network if value == "network" else value for value in row["arguments"]]
    layer: nn.Module = getattr(pyg, row["layer"])(*arguments, **row.get("keywords", {}))
    return layer


def torch_geometric_layers() -> tuple[PublishedLayer, ...]:
    """Sixteen layers of torch-geometric, with what its documentation prints."""
    return tuple(
        PublishedLayer(row["layer"], partial(_torch_geometric_layer, row), row["formula"], row["equation"],
                       partial(_options, row), row.get("note", ""))
        for row in CASES["published"]
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
