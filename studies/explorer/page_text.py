"""The page: template, style, scripts and data, put into one file that needs nothing else."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from sympy import Poly

from rdgraph.files import write_text
from rdgraph.methods.runge_kutta import z
from rdgraph.methods.tableaux import tableau
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from studies.explorer.equation_bundle import make_bundle, page_methods
from studies.explorer.language import language
from studies.explorer.small_graph import small_graph

#: In the order in which they build on each other.
SCRIPTS = (
    "reader", "equations", "compile", "numerics", "model", "verdict", "mathml", "charts", "phase", "run", "settings",
    "app", "panels", "player", "exports", "start",
)  # fmt: skip
#: Colours of the states, from low to high.
SHADES = 64
FIRST_EQUATION = "Gray-Scott"


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
    """What the scripts know beside the first equation, by the names of their constants."""
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
    """Every named system with its bundle, which `python -m studies.explorer.page_text` works out and keeps."""
    kept = json.loads(resources.files("studies").joinpath("data/explorer.json").read_text(encoding="utf-8"))
    starts = tomllib.loads(resources.files("studies").joinpath("data/explorer.toml").read_text(encoding="utf-8"))
    return [
        {"name": e.name, "title": e.title, "equation": e.equation, "source": e.source, "note": e.note,
         "aliases": list(e.aliases), "parameters": e.parameters, "start": starts.get(e.name, {}),
         "bundle": kept[e.name]}
        for e in catalogue.entries.values()
    ]  # fmt: skip


def main() -> None:
    """Work out the bundles of the catalogue anew, and keep them in studies/data/explorer.json."""
    from pathlib import Path

    bundles = {name: make_bundle(entry.system, seconds=30) for name, entry in catalogue.entries.items()}
    path = Path(str(resources.files("studies").joinpath("data/explorer.json")))
    write_text(path, json.dumps(bundles, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {path.name}: {len(bundles)} systems")


if __name__ == "__main__":
    main()
