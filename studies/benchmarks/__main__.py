"""One command for all measurements: `python -m studies.benchmarks NAME [OPTION ...]`, or `--list`.

A program is a function whose keyword arguments are its options. The argument `command` is not an option: it is the
command line, which is stored in the results.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from rdgraph.errors import UnknownName
from studies.runs.boundary import run_program

_FILE = tomllib.loads((Path(__file__).parent / "programs.toml").read_text(encoding="utf-8"))
#: Help of the options, which mean the same in every program.
HELP: dict[str, str] = {**_FILE["help"], "part": argparse.SUPPRESS}
#: Options whose name differs from the argument.
FLAGS = {"contestants": "contestant", "sets": "set", "shares": "share", "list_states": "list"}
#: Positional arguments.
POSITIONAL = ("names", "files")


@dataclass(frozen=True)
class Program:
    """A measurement: its entry point, `module:function` of this package, and what it measures."""

    entry: str
    about: str

    def function(self) -> Callable[..., Any]:
        module, name = self.entry.split(":")
        found: Callable[..., Any] = getattr(import_module(f"studies.benchmarks.{module}"), name)
        return found


PROGRAMS = {name: Program(**facts) for name, facts in _FILE["programs"].items()}


def parser_of(name: str) -> argparse.ArgumentParser:
    """The options of a program, read from the arguments of its function."""
    function = PROGRAMS[name].function()
    parser = argparse.ArgumentParser(
        prog=f"python -m studies.benchmarks {name}", description=inspect.getdoc(function),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.name != "command":
            add_option(parser, parameter)
    return parser


def add_option(parser: argparse.ArgumentParser, parameter: inspect.Parameter) -> None:
    """Add the option of a keyword argument: a switch, one value, or a list."""
    name, kind = parameter.name, parameter.annotation
    flag = FLAGS.get(name, name).replace("_", "-")
    is_required = parameter.default is inspect.Parameter.empty
    keywords: dict[str, Any] = {"help": HELP[name]}
    if kind is bool:
        parser.add_argument(f"--{flag}", dest=name, action="store_true", **keywords)
        return
    inner = next((part for part in get_args(kind) if part is not NoneType), kind)
    keywords |= {"type": inner, "metavar": flag.upper()}
    if get_origin(kind) is not None and issubclass(get_origin(kind), Sequence):
        many = {"nargs": "+" if is_required else "*", "default": parameter.default}
        if name in POSITIONAL:
            parser.add_argument(name, **keywords | many)
        else:
            parser.add_argument(f"--{flag}", dest=name, action="extend", **keywords | many | {"default": None})
    elif is_required:
        parser.add_argument(f"--{flag}", dest=name, required=True, **keywords)
    else:
        parser.add_argument(f"--{flag}", dest=name, default=parameter.default, **keywords)


def command_line(words: Sequence[str]) -> str:
    """The command line as results store it, with absolute paths reduced to their names.

    >>> command_line(["accuracy", "--device", "cuda", "--out", "/somewhere/accuracy.json"])
    'python -m studies.benchmarks accuracy --device cuda --out accuracy.json'
    """
    return " ".join(["python -m studies.benchmarks", *(Path(w).name if Path(w).is_absolute() else w for w in words)])


def main(words: Sequence[str] | None = None) -> int | None:
    """Run the program that the first word names."""
    arguments = list(sys.argv[1:] if words is None else words)
    if not arguments or arguments[0] in ("-h", "--help", "--list"):
        print("\n".join(f"{name:18}{program.about}" for name, program in PROGRAMS.items()))
        return 0
    name, *rest = arguments
    if name not in PROGRAMS:
        raise UnknownName("measurement", name, PROGRAMS)
    function = PROGRAMS[name].function()
    if name == "share":
        return function(rest)  # the rest is another command
    given = {key: value for key, value in vars(parser_of(name).parse_args(rest)).items() if value is not None}
    if "command" in inspect.signature(function).parameters:
        given["command"] = command_line(arguments)
    return function(**given)


if __name__ == "__main__":
    run_program(main)
