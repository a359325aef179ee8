"""The page: template, style, scripts and data, put into one file that needs nothing else."""

from __future__ import annotations

import json
import keyword
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from jinja2 import Environment, StrictUndefined
from sympy import Poly

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.files import write_text
from rdgraph.language import reader, tree
from rdgraph.language.assumptions import SIGN_WORDS
from rdgraph.systems import equation_text, further_operators
from rdgraph.systems.catalogue import CatalogueEntry, catalogue
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.methods import tableau, z
from studies.explorer.equation_bundle import make_bundle, page_methods
from studies.explorer.javascript_source import function_body, function_slope
from studies.stability.named_graph import FORMS, USUAL, lattice_shape, named_graph

# ---------------------------------------------------------------------- small graph
# The small graph of the page: a named one or a file of edges, with places for its nodes.

#: More nodes than this are not seen on a page.
MOST_NODES = 400
KARATE = "Zachary's karate club"


def small_graph(name: str = "karate") -> dict[str, Any]:
    """Nodes, edges and places in the unit square of a graph that `named_graph` knows; edges go both ways.

    >>> ring = small_graph("ring")
    >>> ring["nodes"], ring["edges"][:2], ring["name"]
    (24, [[0, 1], [0, 23]], 'ring of 24')

    Raises:
        FileError: a file that is no list of edges.
        InvalidArgument: another word, or too many nodes.
    """
    found = named_graph(name, 0).without_self_loops()
    if not 2 <= found.num_nodes <= MOST_NODES:
        raise InvalidArgument(f"expected a graph of 2 to {MOST_NODES} nodes, got {found.num_nodes}; take a part of it")
    edges = sorted({(min(a, b), max(a, b)) for a, b in found.edge_index.T.tolist()})
    graph = nx.Graph()
    graph.add_nodes_from(range(found.num_nodes))
    graph.add_edges_from(edges)
    places = _layout(graph, name)
    return {"name": _title(name), "nodes": len(graph), "edges": [list(edge) for edge in edges], "layout": places}


def _title(name: str) -> str:
    """What a graph is called on the page."""
    kind, _, rest = name.partition(":")
    if kind not in FORMS:
        return Path(name.removeprefix("file:")).name.partition(".")[0]
    size = (rest or USUAL.get(kind, "")).replace(":", " × ")
    return KARATE if kind == "karate" else f"{kind} of {size}" if size else kind


def _layout(graph: nx.Graph, name: str) -> list[list[float]]:
    """Places in the unit square: a circle for a ring, rows and columns for a grid, springs for all others."""
    shape = lattice_shape(name)
    if name.partition(":")[0] == "ring":
        found = nx.circular_layout(graph)
    elif shape is not None:
        found = {i: np.array([i % shape[1], i // shape[1]], dtype=float) for i in graph}
    else:
        found = nx.spring_layout(graph, seed=5, k=2.2 / np.sqrt(len(graph)), iterations=200)
    places = np.array([found[i] for i in sorted(graph)])
    low, high = places.min(axis=0), places.max(axis=0)
    unit = (places - low) / np.where(high > low, high - low, 1.0)
    return [[round(float(x), 4), round(float(y), 4)] for x, y in unit]


# ---------------------------------------------------------------------- language
# The words of the language as the page's reader needs them, taken from the real reader so that they cannot drift.


def language() -> dict[str, Any]:
    """Names, kinds, functions, reserved words and limits of the language, as JSON values.

    >>> language()["structural"]["L"], language()["limits"]["exponent"]
    ('operator', 32)
    """
    return {
        "structural": {name: str(kind) for name, kind in reader.STRUCTURAL.items()},
        "drivers": {name: str(kind) for name, kind in reader.DRIVERS.items()},
        "usual": list(reader.USUAL_COEFFICIENTS),
        "usual_of_fields": list(reader.FIELD_COEFFICIENTS),
        "giving_way": sorted(reader.GIVING_WAY),
        "reserved": dict(reader.RESERVED),
        "keywords": list(keyword.kwlist),
        "character_remedies": reader.CHARACTER_REMEDIES,
        "remedies": reader.REMEDIES,
        "spellings": reader.SPELLINGS,
        "kinds": [str(kind) for kind in tree.COEFFICIENT_KINDS],
        "operator_words": list(further_operators.OPERATOR_WORDS),
        "exclusive": [list(pair) for pair in further_operators.EXCLUSIVE_WORDS],
        "sign_words": list(SIGN_WORDS),
        "functions": list(FUNCTIONS),
        "function_bodies": dict(_written(function_body)),
        "function_slopes": dict(_written(function_slope)),
        "limits": {
            "length": reader.MAX_LENGTH,
            "nesting": reader.MAX_NESTING,
            "depth": reader.MAX_TREE_DEPTH,
            "exponent": tree.MAX_EXPONENT,
            "digits": tree.MAX_DIGITS,
            "decimal_exponent": tree.MAX_DECIMAL_EXPONENT,
            "equations": equation_text.MAX_EQUATIONS,
            "name": equation_text.MAX_NAME,
        },
    }


def _written(source: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """The functions that have a formula; an equation with another one is seen in Python alone."""
    for name in FUNCTIONS:
        with suppress(NotApplicable):
            yield name, source(name)


# ---------------------------------------------------------------------- page text
#: In the order in which they build on each other.
SCRIPTS = (
    "reader", "equations", "compile", "numerics", "model", "verdict", "mathml", "charts", "phase", "run", "settings",
    "app", "panels", "player", "exports", "start",
)  # fmt: skip
#: Colours of the states, from low to high.
SHADES = 64
FIRST_EQUATION = "Schnakenberg"


def page_text(equation: str | None = None, graph: str = "karate", *, served: bool = False) -> str:
    """The whole page as HTML.

    Args:
        equation: what it opens with, an equation or a name of the catalogue.
        graph: the small graph: karate, ring, grid, or a file of edges.
        served: whether a server answers for equations that are typed.

    Returns:
        One document without references to others.

    Raises:
        LanguageError: an equation that cannot be read.
        FileError: a graph that cannot be read.
    """
    template = Environment(undefined=StrictUndefined).from_string(_file("template.html"))
    script = "\n".join([_constants(equation, graph, served), *(_file(f"{name}.js") for name in SCRIPTS)])
    return template.render(
        style=_file("style.css"),
        script=script.replace("</script", "<\\/script"),
        connect="'self'" if served else "'none'",
    )


def page_constants(graph: str = "karate") -> dict[str, Any]:
    """The constants of the scripts, by name, without the first equation."""
    return {
        "LANGUAGE": language(),
        "METHODS": {name: _method(name) for name in page_methods()},
        "CATALOGUE": catalogue_entries(),
        "GRAPH": small_graph(graph),
        "COLOURMAP": _shades(),
    }


def _constants(equation: str | None, graph: str, served: bool) -> str:
    text = equation or FIRST_EQUATION
    start: dict[str, Any] = {"equation": text, "bundle": None}
    if text not in catalogue:
        system = parse(text)
        start = {"equation": str(system), "bundle": make_bundle(system)}
    constants = {**page_constants(graph), "START": start, "SERVED": served}
    return '"use strict";\n' + "\n".join(f"const {name} = {_json(value)};" for name, value in constants.items())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("\u2028", "\\u2028")


def _method(name: str) -> dict[str, Any]:
    """Rows and weights of a tableau, and the coefficients of its stability polynomial, highest power first."""
    weights = tableau(name)
    return {
        "rows": [[float(x) for x in row] for row in weights.stages],
        "weights": [float(x) for x in weights.weights],
        "stability": [float(c) for c in Poly(weights.stability, z).all_coeffs()],
    }


@cache
def _file(name: str) -> str:
    return resources.files("studies.explorer").joinpath(f"page/{name}").read_text(encoding="utf-8")


def _shades() -> list[str]:
    """matplotlib's viridis."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps["viridis"](k / (SHADES - 1))) for k in range(SHADES)]


# ---------------------------------------------------------------------- the catalogue, worked out beforehand
def catalogue_entries() -> list[dict[str, Any]]:
    """Every named system with its bundle: the kept one where it is of this equation, else one that is computed now.

    `python -m studies.explorer.page_text` computes and keeps the bundles of all, so that the page opens at once.
    """
    kept = json.loads(resources.files("studies").joinpath("data/explorer.json").read_text(encoding="utf-8"))
    starts = tomllib.loads(resources.files("studies").joinpath("data/explorer.toml").read_text(encoding="utf-8"))
    return [
        {"name": e.name, "title": e.title, "equation": e.equation, "source": e.source, "note": e.note,
         "aliases": list(e.aliases), "parameters": e.parameters, "start": starts.get(e.name, {}),
         "bundle": _bundle(e, kept.get(e.name))}
        for e in catalogue.entries.values()
    ]  # fmt: skip


def _bundle(entry: CatalogueEntry, kept: dict[str, Any] | None) -> dict[str, Any]:
    return kept if kept is not None and kept["text"] == str(entry.system) else make_bundle(entry.system)


def main() -> None:
    """Recompute the bundles of the catalogue and store them in studies/data/explorer.json."""
    from pathlib import Path

    bundles = {name: make_bundle(entry.system, seconds=30) for name, entry in catalogue.entries.items()}
    path = Path(str(resources.files("studies").joinpath("data/explorer.json")))
    write_text(path, json.dumps(bundles, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {path.name}: {len(bundles)} systems")


if __name__ == "__main__":
    main()
