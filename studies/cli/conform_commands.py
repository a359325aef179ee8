"""`rdgraph conform`: checks whether a PyTorch layer computes an equation, or finds the equation it computes."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument, MissingDependency, RdgraphError
from rdgraph.status_line import StatusLine
from studies.cli.graph_options import takes_records
from studies.cli.options import COEFFICIENT, Values, argument, option, read_numbers
from studies.runs.boundary import say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from rdgraph.infer.layers.conformity import Conformity
    from rdgraph.infer.layers.recovery import Recovery

console = Console()

#: None tries both.
_YES_NO: dict[str, bool | None] = {"yes": True, "no": False, "try": None}


@dataclass(frozen=True)
class ConformOptions:
    """The options of `rdgraph conform`."""

    layer: str = argument(
        MISSING,
        "A function, an nn.Module, or a class or function without arguments that returns one; MODULE may be a file: "
        "my.py:layer.",
        "MODULE:OBJECT",
    )
    equation: str | None = argument(None, "Right-hand side; without one, finds the equation.", "EQUATION")
    compared: str = option("field", "What the layer computes.", metavar="field|map|step|flow")
    step: float = option(1.0, "Step size of Euler's method, in units of time.")
    count: int = option(1, "Number of steps, or of applications of the map.")
    time: float = option(1.0, "End time of a flow.")
    normalisation: str | None = option(None, "Normalisation of A.", shown="tries symmetric, row, column and none")
    self_loops: str = option("try", "Self-loops: yes, no, try, none, removed, remaining, added or replaced.")
    transposed: str = option("no", "Whether messages run from target to source.", metavar="yes|no|try")
    coefficient: list[str] | None = option(None, COEFFICIENT, metavar="NAME[=KIND]")
    assume: list[str] | None = option(None, 'Assume a sign or relation, as in "beta<0"; repeatable.', metavar="TEXT")
    values: Values = None
    channels: int | None = option(None, "Number of channels, if the layer does not determine it.")
    graphs: str = option("all", "Graphs to probe the layer with.", metavar="all|undirected|simple")
    report: Path | None = option(None, "Write a report to this folder.", metavar="FOLDER")
    as_json: bool = option(False, "Print one JSON object.", "--json")


@takes_records
def conform_command(given: ConformOptions) -> None:
    """Check whether a PyTorch layer computes an equation.

    Without an equation, finds the one it computes. Exits with 0 if the layer conforms, 1 otherwise.

    Example: rdgraph conform my_layers.py:layer "-alpha*L@H" --compared step
    """
    require("a layer", "torch")
    with StatusLine("loading the layer", shown=True) as status:
        layer = load_layer(given.layer)
        status.say("searching for its equation" if given.equation is None else "comparing it with the equation")
        if given.equation is None:
            from rdgraph.infer.layers.recovery import recover

            answer: Conformity | Recovery = recover(layer, channels=given.channels, graphs=given.graphs)
        else:
            answer = _compared(layer, given.equation, given)
    if given.as_json:
        sys.stdout.write(json.dumps(answer.to_dict(), indent=2) + "\n")
    else:
        notes = [*(f"note: {note}" for note in answer.notes), *(f"property: {held}" for held in answer.properties)]
        say(console, "\n".join([str(answer), *notes]), wrap=True)
    if given.report is not None and given.equation is not None:
        from studies.cli.conform_report import write_report

        page = write_report(answer, given.layer, sys.argv[1:], given.report)  # type: ignore[arg-type]
        say(Console(stderr=True), f"wrote {page}")
    if not answer:
        raise typer.Exit(1)


def _compared(layer: Any, equation: str, given: ConformOptions) -> Conformity:
    from rdgraph.infer.layers.conformity import conform

    return conform(
        layer, equation, compared=given.compared, step=given.step, count=given.count, T=given.time,
        normalisation=given.normalisation, self_loops=_YES_NO.get(given.self_loops, given.self_loops),
        transposed=_yes_no(given.transposed, "--transposed"), values=read_numbers(given.values),
        kinds=_declared(given.coefficient), assume=given.assume or [], channels=given.channels, graphs=given.graphs,
    )  # fmt: skip


def _declared(texts: list[str] | None) -> dict[str, str]:
    return {name.strip(): kind.strip() or "scalar" for name, _, kind in (t.partition("=") for t in texts or [])}


def _yes_no(word: str, name: str) -> bool | None:
    if word not in _YES_NO:
        raise InvalidArgument(f"{name} is yes, no or try, got {word!r}")
    return _YES_NO[word]


def load_layer(text: str) -> Any:
    """The object named by MODULE:OBJECT; classes, and functions without parameters, are called to make it.

    >>> load_layer("math:sqrt").__name__
    'sqrt'
    """
    origin, colon, name = text.rpartition(":")
    if not colon or not origin or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidArgument(f"expected MODULE:OBJECT, got {text!r}; write my_layers:layer or my_layers.py:layer")
    layer: Any = _module(origin)
    for part in name.split("."):
        if not hasattr(layer, part):
            raise InvalidArgument(f"{origin} has no {part}; check the name {name}")
        layer = getattr(layer, part)
    if not _makes_a_layer(layer):
        return layer
    try:
        inspect.signature(layer).bind()
    except TypeError as problem:
        raise InvalidArgument(f"{name} needs arguments ({problem}); name a function that makes the layer") from None
    return layer()


def _module(origin: str) -> Any:
    if origin.endswith(".py"):
        path = Path(origin)
        name = path.stem
        while name in sys.modules:
            name += "_"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise InvalidArgument(f"there is no Python file {origin}; check its name")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and PyTorch Geometric look up the module of a class by its name
        try:
            spec.loader.exec_module(module)
        except BaseException as problem:
            del sys.modules[name]
            if isinstance(problem, Exception) and not isinstance(problem, RdgraphError):
                raise InvalidArgument(f"{origin} cannot be run: {type(problem).__name__}: {problem}") from problem
            raise
        return module
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(origin)
    except ImportError as problem:
        raise MissingDependency(f"cannot import the module {origin}: {problem}; check PYTHONPATH") from problem


def _makes_a_layer(layer: Any) -> bool:
    """Whether an object is a class, or a function without parameters."""
    return inspect.isclass(layer) or (inspect.isfunction(layer) and not inspect.signature(layer).parameters)
