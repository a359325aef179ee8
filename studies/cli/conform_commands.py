"""`rdgraph conform`: does a torch layer compute an equation? Without one: which line of maths does it compute?"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument, MissingDependency
from rdgraph.status_line import StatusLine
from studies.cli.options import Values, read_numbers
from studies.runs.boundary import say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from rdgraph.infer.layers.conformity import Conformity
    from rdgraph.infer.layers.recovery import Recovery

console = Console()

#: Words for a yes, a no, and what is tried both ways.
_OPEN: dict[str, bool | None] = {"yes": True, "no": False, "try": None}


def conform_command(
    layer: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:OBJECT",
            help="A function, an nn.Module, or what makes one without arguments; MODULE may be a file, my.py:layer.",
        ),
    ],
    equation: Annotated[
        str | None, typer.Argument(metavar="EQUATION", help="A right-hand side; without one it is looked for.")
    ] = None,
    compared: Annotated[str, typer.Option("--compared", help="field, map, step or flow.")] = "field",
    step: Annotated[float, typer.Option("--step", help="Length of a step of Euler's method.")] = 1.0,
    count: Annotated[int, typer.Option("--count", help="How many steps, or times that a map is applied.")] = 1,
    time: Annotated[float, typer.Option("--time", help="End time of a flow.")] = 1.0,
    normalisation: Annotated[
        str | None, typer.Option("--normalisation", help="Of A.", show_default="symmetric, row, column, none are tried")
    ] = None,
    self_loops: Annotated[
        str, typer.Option("--self-loops", help="yes, no, try, or a rule: none, removed, remaining, added, replaced.")
    ] = "try",
    transposed: Annotated[
        str, typer.Option("--transposed", help="Messages against the arrows: yes, no or try.")
    ] = "no",
    coefficient: Annotated[
        list[str] | None, typer.Option("--coefficient", metavar="NAME[=KIND]", help="Declare a coefficient.")
    ] = None,
    assume: Annotated[list[str] | None, typer.Option("--assume", metavar="TEXT", help="Assume a sign.")] = None,
    values: Values = None,
    channels: Annotated[
        int | None, typer.Option("--channels", help="Of the state, where the layer does not say.")
    ] = None,
    graphs: Annotated[str, typer.Option("--graphs", help="all, undirected or simple.")] = "all",
    report: Annotated[Path | None, typer.Option("--report", metavar="FOLDER", help="Write a page of html.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Hold a torch layer against an equation; exit 0 if it conforms, 1 if it differs or no line was found."""
    require("a layer", "torch")
    with StatusLine("loading the layer", shown=True) as status:
        loaded = load_layer(layer)
        status.say("looking for its equation" if equation is None else "comparing it with the equation")
        if equation is None:
            found: Conformity | Recovery = _recovered(loaded, channels, graphs)
        else:
            from rdgraph.infer.layers.conformity import conform

            found = conform(
                loaded, equation, compared=compared, step=step, count=count, T=time, normalisation=normalisation,
                self_loops=_opened(self_loops), transposed=_open(transposed, "--transposed"),
                values=read_numbers(values), kinds=_declared(coefficient), assume=assume or [],
                channels=channels, graphs=graphs,
            )  # fmt: skip
    if as_json:
        sys.stdout.write(json.dumps(found.to_dict(), indent=2) + "\n")
    else:
        _show(found)
    if report is not None and equation is not None:
        from studies.cli.conform_report import write_report

        say(Console(stderr=True), f"wrote {write_report(found, layer, sys.argv[1:], report)}")  # type: ignore[arg-type]
    if not found:
        raise typer.Exit(1)


def _recovered(layer: Any, channels: int | None, graphs: str) -> Recovery:
    from rdgraph.infer.layers.recovery import recover

    return recover(layer, channels=channels, graphs=graphs)


def _show(found: Conformity | Recovery) -> None:
    say(console, str(found))
    for note in found.notes:
        say(console, f"note: {note}")
    for held in found.properties:
        say(console, f"property: {held}")


def _declared(texts: list[str] | None) -> dict[str, str]:
    return {name.strip(): kind.strip() or "scalar" for name, _, kind in (t.partition("=") for t in texts or [])}


def _open(word: str, option: str) -> bool | None:
    if word not in _OPEN:
        raise InvalidArgument(f"expected yes, no or try for {option}, got {word!r}")
    return _OPEN[word]


def _opened(word: str) -> bool | str | None:
    return _OPEN.get(word, word)


def load_layer(text: str) -> Any:
    """The object that MODULE:OBJECT names; a class or a function without parameters is called for it.

    >>> load_layer("math:sqrt").__name__
    'sqrt'
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidArgument(f"expected MODULE:OBJECT, got {text!r}; write my_layers:layer or my_layers.py:layer")
    found: Any = _module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise InvalidArgument(f"expected {name} in {place}, got a module without {part}; check its name")
        found = getattr(found, part)
    return found() if _makes_a_layer(found) else found


def _module(place: str) -> Any:
    if place.endswith(".py"):
        path = Path(place)
        name = path.stem
        while name in sys.modules:
            name += "_"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise InvalidArgument(f"expected a file of Python, got {place}; check its name")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and PyTorch Geometric look up the module of a class by its name
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ImportError as problem:
        raise MissingDependency(f"expected the module {place}, got: {problem}; check PYTHONPATH") from problem


def _makes_a_layer(found: Any) -> bool:
    """Whether an object is a class, or a function that takes nothing."""
    if inspect.isclass(found):
        return True
    return inspect.isfunction(found) and not inspect.signature(found).parameters
