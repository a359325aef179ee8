"""Arguments that several commands share, how their words are read, and how errors name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.run.engines.engine import Engine
from rdgraph.run.engines.engine_choice import opened
from rdgraph.status_line import StatusLine
from studies.runs.libraries import require
from studies.stability.named_graph import WORDS

#: Equations may begin with a minus sign, so no command has one-letter options.
EQUATION_SETTINGS = {"ignore_unknown_options": True}
Equation = Annotated[
    str, typer.Argument(help="An equation in the language, or a name of the catalogue.", metavar="EQUATION")
]
Values = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a coefficient to a number.")]
GraphName = Annotated[str, typer.Option("--graph", help=f"{WORDS}.")]
EngineName = Annotated[
    str, typer.Option("--engine", help="local, or ray: on the machines of a Ray cluster, with the same results.")
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="Of the Ray cluster, such as auto.", show_default="RAY_ADDRESS, else this machine"),
]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="A name of `rdgraph data list`; digits and karate need no files.")
]
Seeds = Annotated[int, typer.Option("--seeds", help="How many seeds every split is trained with.")]
FirstSeed = Annotated[int, typer.Option("--seed", help="The first of them.")]
Small = Annotated[
    bool, typer.Option("--small", help="Seconds: three splits, 20 epochs, and karate if no data set is named.")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Folder of the data files.", show_default="RDGRAPH_DATA, else the user's cache"),
]
#: Arguments of functions, by which errors name them, with the parameters of commands that stand for them.
PYTHON_NAMES = {
    "id": "id_column", "label": "label_column", "weight": "weight_column", "features": "features",
    "categories": "categories", "missing": "missing", "standardise": "standardise", "directed": "directed",
    "duplicates": "duplicates", "edges": "edges", "nodes": "nodes", "values": "values", "kinds": "coefficient",
    "engine": "engine",
}  # fmt: skip
#: What commands that train or predict begin with.
LOADING = "loading the libraries and the data"
_ARGUMENT = re.compile(rf"\b({'|'.join(PYTHON_NAMES)})(?:=('[^']*'|\{{[^}}]*\}}|[\w.]*\w)?|d\(\))")


class Command(TyperCommand):
    """A command whose errors name its own options where the functions below it name their arguments."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RdgraphError as problem:
            options = {str(p.name): p.opts[0] for p in self.params if p.opts[0].startswith("--")}
            problem.args = tuple(with_options(a, options) if isinstance(a, str) else a for a in problem.args)
            raise


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text with the options of a command, by parameter, for the arguments of functions that it names.

    >>> with_options("write one, or pass missing='mean'", {"missing": "--missing"})
    'write one, or pass --missing mean'
    >>> with_options("expected numbers; pass values={'beta': 1.0}", {"values": "--set"})
    'expected numbers; pass --set beta=1.0'
    >>> with_options("pass directed=True.", {"directed": "--directed"}), with_options("pass id=NAME", {})
    ('pass --directed.', 'pass id=NAME')
    >>> with_options("take standardised()", {"standardise": "--standardise"})
    'take --standardise'
    """

    def option(found: re.Match[str]) -> str:
        name, value = options.get(PYTHON_NAMES[found[1]]), found[2] or ""
        if name is None:
            return found[0]
        pair = re.fullmatch(r"\{'(\w+)': '?([\w.]+)'?\}", value)
        value = f"{pair[1]}={pair[2]}" if pair else value.strip("'")
        return name if value in ("", "True") else f"{name} {value}"

    return _ARGUMENT.sub(option, text)


@contextmanager
def chosen_engine(name: str, address: str | None) -> Iterator[Engine]:
    """The engine of that name, for the length of a command."""
    if name == "ray":
        require("the engine ray", "ray")
    with opened(name, address) as engine:
        if name == "ray":  # now, while nothing else is on the screen
            with StatusLine(f"connecting to Ray at {address}" if address else "starting Ray", shown=True):
                _ = engine.slots
        yield engine


def follow_alone(context: typer.Context, option: str, *others: str) -> None:
    """Refuse options of the command line that do not go with `option`: all but itself and the named parameters."""
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and f"--{name}" != option and name not in others:
            raise InvalidArgument(f"expected options that {option} follows, got {parameter.opts[0]}; leave it out")


def read_numbers(texts: list[str] | None) -> dict[str, float]:
    """NAME=VALUE, as given on the command line, by name.

    >>> read_numbers(["alpha=0.5", "beta = -1"])
    {'alpha': 0.5, 'beta': -1.0}
    """
    found = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InvalidArgument(f"expected NAME=VALUE with a number, got {text!r}; write --set alpha=0.5") from None
        if not sign:
            raise InvalidArgument(f"expected NAME=VALUE, got {text!r}; write --set alpha=0.5")
    return found


# ---------------------------------------------------------------------- trainings
@dataclass(frozen=True)
class DataOptions:
    """What commands that train on a data set share."""

    splits: Annotated[str | None, typer.Option("--splits", help="all, 0,1,2 or 0-4.", show_default="all")] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="One setting of the network or the training; any number of them."
        ),
    ] = None
    epochs: Annotated[int | None, typer.Option("--epochs", help="As --set epochs=...")] = None
    device: Device = "auto"
    root: Root = None

    def pairs(self, **options: object) -> dict[str, str]:
        """The settings by name: those of --set, --epochs, and of other options that say the same."""
        from studies.training.choices import read_pairs

        return read_pairs(given_settings(self.settings, epochs=self.epochs, **options))


def choose_device(device: str) -> str:
    """cpu, or the device named; auto is the first CUDA device where there is one."""
    from gread.training.trainer import choose_device as choose

    return choose(device)


def given_settings(settings: list[str] | None, **options: object) -> list[str]:
    """The texts NAME=VALUE of --set, with those of options that say the same.

    >>> given_settings(["hidden=8"], epochs=20, method=None)
    ['hidden=8', 'epochs=20']
    """
    found = [*(settings or []), *(f"{name}={value}" for name, value in options.items() if value is not None)]
    reaction = next((text.partition("=")[2] for text in found if text.partition("=")[0].strip() == "reaction"), None)
    if reaction is not None:
        raise InvalidArgument(f"expected the reaction as --reaction {reaction}, got it with --set")
    return found
