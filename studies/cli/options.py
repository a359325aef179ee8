"""Options that several commands share, how they are read, and how errors name them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.run.engines.engine import Engine
from rdgraph.run.engines.engine_choice import opened
from rdgraph.status_line import StatusLine
from studies.runs.boundary import say
from studies.runs.libraries import require
from studies.stability.named_graph import WORDS

#: Placeholders of values in help texts.
METAVARS: dict[Any, str] = {str: "NAME", int: "N", float: "NUMBER", Path: "PATH"}
#: Equations may begin with a minus sign, so no command has one-letter options.
EQUATION_SETTINGS = {"ignore_unknown_options": True}
Equation = Annotated[str, typer.Argument(help="An equation, or a name of the catalogue.", metavar="EQUATION")]
Values = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a coefficient to a number.")]
GraphName = Annotated[str, typer.Option("--graph", metavar="GRAPH", help=f"The graph: {WORDS}.")]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Folder of the data files.  [default: RDGRAPH_DATA, else the user's cache]"),
]


def option(default: Any, text: str, *names: str, shown: str | None = None, metavar: str | None = None) -> Any:
    """Field of a record of options; its name on the command line is that of the field unless `names` are given.

    Args:
        default: its value if the option is not given.
        text: its help text.
        names: on the command line, such as `--reaction`, `--equation`.
        shown: the default in the help text, if it differs from `default`.
        metavar: the placeholder of its value in the help text.
    """
    text = text if shown is None else f"{text}  [default: {shown}]"
    built = typer.Option(*names, help=text, metavar=metavar, show_default=shown is None)
    return field(default=default, metadata={"typer": built})


def argument(default: Any, text: str, metavar: str) -> Any:
    """Field of a record of options that is a positional argument; required if `default` is MISSING."""
    metadata = {"typer": typer.Argument(help=text, metavar=metavar)}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


#: Help texts of options that several commands have.
DATASET = "Data set, from `rdgraph data list`; digits and karate need no files."
SEEDS = "Number of seeds per split."
FIRST_SEED = "The first seed."
SMALL = "Run in seconds: 3 splits, 20 epochs, and karate if no data set is given."
DEVICE = "Device: auto (a GPU if there is one), cpu, cuda or cuda:N."
ENGINE = "Train on this machine or on a Ray cluster; the results are the same."
ADDRESS = "Address of the Ray cluster, such as auto."
RAY_DEFAULT = "RAY_ADDRESS, else this machine"
COEFFICIENT = "Declare a coefficient: scalar (default), channel, node or matrix."
#: From arguments of functions, as errors name them, to the parameters of commands.
PYTHON_NAMES = {
    "id": "id_column", "label": "label_column", "weight": "weight_column", "features": "features",
    "categories": "categories", "missing": "missing", "standardise": "standardise", "directed": "directed",
    "duplicates": "duplicates", "edges": "edges", "nodes": "nodes", "values": "values", "kinds": "coefficient",
    "engine": "engine",
}  # fmt: skip
#: The first stage of commands that train or predict.
LOADING = "loading the libraries and the data"
_ARGUMENT = re.compile(rf"\b({'|'.join(PYTHON_NAMES)})(?:=('[^']*'|\{{[^}}]*\}}|[\w.]*\w)?|d\(\))")


class Command(TyperCommand):
    """A command whose errors name its options where the functions it calls name their arguments."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for parameter in self.params:
            kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            parameter.metavar = parameter.metavar or METAVARS.get(kind)
            if parameter.param_type_name == "argument":  # typer would print its type after its name
                vars(parameter)["display_type_rich"] = lambda ctx: None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, options and those of each record with a title, under headings."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            kind = f"{parameter.param_type_name.title()}s"
            if record := parameter.get_help_record(ctx):
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RdgraphError as problem:
            options = {str(p.name): p.opts[0] for p in self.params if p.opts[0].startswith("--")}
            problem.args = tuple(with_options(a, options) if isinstance(a, str) else a for a in problem.args)
            raise


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text with the arguments of functions replaced by the options of a command, given by parameter.

    >>> with_options("write one, or pass missing='mean'", {"missing": "--missing"})
    'write one, or pass --missing mean'
    >>> with_options("expected numbers; pass values={'beta': 1.0}", {"values": "--set"})
    'expected numbers; pass --set beta=1.0'
    >>> with_options("pass directed=True.", {"directed": "--directed"}), with_options("pass id=NAME", {})
    ('pass --directed.', 'pass id=NAME')
    >>> with_options("take standardised()", {"standardise": "--standardise"})
    'take --standardise'
    """

    def named(match: re.Match[str]) -> str:
        name, value = options.get(PYTHON_NAMES[match[1]]), match[2] or ""
        if name is None:
            return match[0]
        pair = re.fullmatch(r"\{'(\w+)': '?([\w.]+)'?\}", value)
        value = f"{pair[1]}={pair[2]}" if pair else value.strip("'")
        return name if value in ("", "True") else f"{name} {value}"

    return _ARGUMENT.sub(named, text)


@contextmanager
def chosen_engine(name: str, address: str | None) -> Iterator[Engine]:
    """The engine of that name, closed when the command ends."""
    if name == "ray":
        require("the engine ray", "ray")
    with opened(name, address) as engine:
        if name == "ray":  # now, while nothing else is on the screen
            with StatusLine(f"connecting to Ray at {address}" if address else "starting Ray", shown=True):
                _ = engine.slots
        yield engine


def follow_alone(context: typer.Context, option: str, *others: str) -> None:
    """Raise InvalidArgument for options given together with `option`, except the parameters in `others`."""
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and f"--{name}" != option and name not in others:
            raise InvalidArgument(f"{parameter.opts[0]} has no effect with {option}; leave it out")


def read_numbers(texts: list[str] | None) -> dict[str, float]:
    """Numbers by name, from NAME=VALUE as given on the command line.

    >>> read_numbers(["alpha=0.5", "beta = -1"])
    {'alpha': 0.5, 'beta': -1.0}
    """
    numbers = {}
    for position, text in enumerate(texts or [], 1):
        name, sign, value = text.partition("=")
        try:
            numbers[name.strip()] = float(value)
        except ValueError:
            raise InvalidArgument(f"expected NAME=VALUE with a number, got {text!r}; write --set alpha=0.5") from None
        if not sign:
            raise InvalidArgument(f"expected NAME=VALUE, got {text!r}; write --set alpha=0.5")
        if len(numbers) < position:
            raise InvalidArgument(f"{name.strip()} is given twice; leave one out")
    return numbers


# ---------------------------------------------------------------------- trainings
@dataclass(frozen=True)
class DataOptions:
    """Options of every command that trains on a data set."""

    splits: str | None = option(None, "Splits to train on, such as 0,1,2 or 0-4.", shown="all", metavar="LIST")
    settings: list[str] | None = option(
        None, "Change a setting of the network or the training; repeatable.", "--set", metavar="NAME=VALUE"
    )
    epochs: int | None = option(None, "Number of training epochs; short for --set epochs=N.")
    device: str = option("auto", DEVICE)
    root: Root = None

    def pairs(self, **options: object) -> dict[str, str]:
        """The settings by name, from --set, --epochs and other options that stand for a setting."""
        from studies.training.choices import read_pairs

        return read_pairs(given_settings(self.settings, epochs=self.epochs, **options))


def say_report(console: Console, report: Path, *, all_verdicts: bool = False) -> str:
    """Answer of a finished report, printed with its verdicts (or their number) and its path."""
    from studies.runs.report import verdict_counts

    outline = json.loads((report.parent / "report.json").read_text(encoding="utf-8"))
    if outline["answer"]:
        say(console, outline["answer"], wrap=True)
    if all_verdicts:
        for verdict in outline["verdicts"]:
            say(console, f"{verdict['answer']}: {verdict['statement']} {verdict['evidence']}", wrap=True)
    elif outline["verdicts"]:
        say(console, verdict_counts([verdict["answer"] for verdict in outline["verdicts"]]))
    say(console, f"wrote {report}")
    return str(outline["answer"])


def choose_device(device: str) -> str:
    """The device by name; "auto" is the first CUDA device if there is one, else the CPU."""
    from gread.training.trainer import choose_device as choose

    return choose(device)


def given_settings(settings: list[str] | None, **options: object) -> list[str]:
    """The texts NAME=VALUE of --set and of options that stand for a setting.

    >>> given_settings(["hidden=8"], epochs=20, method=None)
    ['hidden=8', 'epochs=20']
    """
    given = [*(settings or []), *(f"{name}={value}" for name, value in options.items() if value is not None)]
    reaction = next((text.partition("=")[2] for text in given if text.partition("=")[0].strip() == "reaction"), None)
    if reaction is not None:
        raise InvalidArgument(f"give the reaction as --reaction {reaction}, not with --set")
    return given
