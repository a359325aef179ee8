"""One command for all measurements: `python -m studies.benchmarks NAME [OPTION ...]`, or `--list`.

A program is a function whose keyword arguments are its options. The argument `command` is not an option: it is the
command line, which is stored in the results.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from rdgraph.errors import UnknownName
from studies.runs.boundary import run_program

#: Help of the options, which mean the same in every program.
HELP = {
    "again": "measure the selected cells again",
    "checkpoints": "folder of unfinished runs; default OUT/checkpoints", "contestants": "networks to measure",
    "curves": "folder of learning curves; existing ones are not trained again", "dataset": "the data set",
    "device": "cpu, cuda or auto", "draws": "data sets per reaction", "epochs": "epochs of every training",
    "equations": "a number, or a file with one equation per line",
    "every": "take one of this many faults and variants", "files": "files to join", "fresh": "ignore stored results",
    "folder": "folder of unfinished work", "graphs": "folder with cora.npz, ... holding edge_index",
    "jobs": "programs to run at once",
    "kind": "linear or mixed equations", "list_states": "list the measurements and their states",
    "methods": "integration methods of the trials", "names": "which ones; default all",
    "network": "the network to search", "only": "names or parts of names", "out": "the results file or folder",
    "pages": "store finished results and write their pages", "part": argparse.SUPPRESS, "problems": "equations",
    "repeats": "data sets per cell", "report_only": "rebuild the pages of stored studies; measures nothing",
    "rounds": "rounds over which the driver's time is averaged",
    "samples": "number of trials to train alone", "searches": "number of seeds",
    "seconds": "start nothing new after this time", "seed": "seed of draws and trainings", "seeds": "seeds per split",
    "sets": "data sets", "settings": "number of trials of settings", "shares": "shares of observed nodes",
    "size": "size of the graph", "sizes": "side lengths of the grids", "skip": "networks to leave out",
    "splits": "number of splits", "terms": "the grammar of terms", "trials": "number of trials",
    "turns": "repetitions of each measurement",
}  # fmt: skip
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


PROGRAMS = {
    "all": Program("everything:measure_all", "every measurement that needs a GPU, resumable; its pages"),
    "pages": Program("pages:write", "pages of docs/ from stored results"),
    "join": Program("result_files:join", "files of cells joined into one"),
    "share": Program("everything:with_share", "another module with a share of the GPU's memory"),
    "accuracy": Program("accuracies:accuracy", "BS with the authors' released settings"),
    "compared": Program("accuracies:compared", "every compared network on the nine data sets"),
    "searched": Program("searched:searched", "reactions and tuned networks under one budget of trials"),
    "discovered": Program("discovered:discovered", "discovered equations, reactions and a tuned GCN"),
    "distilled": Program("formulas:distilled", "accuracy lost by a formula in place of a learned function"),
    "distil-recovery": Program("formulas:distil_recovery", "how often `rd.infer.distil` finds the true formula"),
    "fit-coverage": Program("coverage:fit_coverage", "how often intervals of `rd.fit` contain the truth"),
    "halving": Program("halving:halving", "does halving choose what a whole search chooses?"),
    "conform": Program("conforming:conform", "published layers against their formulas"),
    "conform-faults": Program("conforming:conform_faults", "seeded faults and correct variants of layers"),
    "symbolic-speed": Program("peers:symbolic_speed", "import, parse, analyse, verify"),
    "compiled-speed": Program("peers:compiled_speed", "compiled right-hand sides against py-pde's"),
    "performance": Program("kernels:performance", "sparse products, fields, gradients, scaling"),
    "several-fields": Program("kernels:several_fields", "fields of several states against one field"),
    "training-speed": Program("epochs:training_speed", "epochs of BS, a sweep, where the time goes"),
    "model-speed": Program("epochs:model_speed", "an epoch of every network, against torch-geometric"),
    "search-speed": Program("rates:search_speed", "trainings per second of a search"),
    "printed-speed": Program("rates:printed_speed", "seconds of the paper's table"),
    "discover-speed": Program("equation_rates:discover_speed", "equations per minute, cold start included"),
    "large-graphs": Program("large_graphs:large_graphs", "training on graphs of millions of nodes"),
    "scale": Program("scale:scale", "a search on several workers, and a model of many GPUs"),
}


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
