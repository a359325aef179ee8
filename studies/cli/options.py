"""Arguments that several commands share, and how their words are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from rdgraph.engines.engine import Engine
from rdgraph.engines.engine_choice import opened
from rdgraph.errors import InvalidArgument
from studies.runs.libraries import require

#: Equations may begin with a minus sign, so no command has one-letter options.
EQUATION_SETTINGS = {"ignore_unknown_options": True}
Equation = Annotated[
    str, typer.Argument(help="An equation in the language, or a name of the catalogue.", metavar="EQUATION")
]
Values = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a coefficient to a number.")]
EngineName = Annotated[
    str, typer.Option("--engine", help="local, or ray: on the machines of a Ray cluster, with the same results.")
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="Of the Ray cluster, such as auto.", show_default="RAY_ADDRESS, else this machine"),
]


@contextmanager
def chosen_engine(name: str, address: str | None) -> Iterator[Engine]:
    """The engine of that name, for the length of a command."""
    if name == "ray":
        require("the engine ray", "ray")
    with opened(name, address) as engine:
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
