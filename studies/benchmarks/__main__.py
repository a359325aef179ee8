"""One command for all measurements: `python -m studies.benchmarks NAME [OPTION ...]`, or `--list`.

A program is a function whose keyword arguments are its options; `command` alone is none: it is the line that was
called, and goes into the results.
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

#: What options mean, whatever program they belong to.
HELP = {
    "adjacency": "of all equations", "again": "measure the chosen cells again", "beta": "the kind of beta",
    "by_set": "train the sets one after the other too", "checkpoints": "for what is under way; OUT/checkpoints",
    "contestants": "who is measured", "curves": "folder of learning curves; those that it has are not trained again",
    "dataset": "the data set", "device": "cpu, cuda or auto", "draws": "data sets of each reaction",
    "epochs": "of every training", "equations": "a number, or a file with an equation in every line",
    "every": "take one of this many faults and variants", "files": "files that become one",
    "fresh": "ignore kept results",
    "folder": "where unfinished work is kept", "graphs": "folder with cora.npz, ... holding edge_index",
    "hidden": "channels", "jobs": "programs side by side",
    "keep": "share kept at a rung",
    "kind": "linear or mixed equations", "list_states": "show the measurements and their states",
    "methods": "integration methods of the trials", "names": "what to do, all by default",
    "network": "the network that is searched", "only": "names, or what they begin with or contain",
    "out": "the results file or folder", "pages": "keep what is done and write its pages", "part": argparse.SUPPRESS,
    "problems": "equations", "repeats": "data sets of every cell", "report_only": "rebuild the pages of kept studies",
    "rounds": "that the time of the driver is averaged over", "rungs": "epochs after which the worse are dropped",
    "samples": "trials that are trained alone; 0 for none", "searches": "seeds",
    "seconds": "start nothing new after this",
    "seed": "of draws and trainings", "seeds": "of every split", "sets": "data sets", "settings": "trials of settings",
    "shares": "of the nodes that are observed", "size": "of the graph", "sizes": "sides of the grids",
    "skip": "networks to leave out", "splits": "of the data set", "terms": "the grammar of terms",
    "trials": "of settings", "turns": "of each measurement",
}  # fmt: skip
#: Options that are called otherwise than their arguments.
FLAGS = {"contestants": "contestant", "sets": "set", "shares": "share", "list_states": "list"}
#: Arguments that are given by their place.
PLACED = ("names", "files")


@dataclass(frozen=True)
class Program:
    """A measurement: its function, `module:function` of this package, and what it answers."""

    place: str
    about: str

    def function(self) -> Callable[..., Any]:
        module, name = self.place.split(":")
        found: Callable[..., Any] = getattr(import_module(f"studies.benchmarks.{module}"), name)
        return found


PROGRAMS = {
    "all": Program("everything:measure_all", "everything that takes a card, resumed where it stopped; its pages"),
    "pages": Program("pages:write", "pages of docs/ from kept results"),
    "join": Program("result_files:join", "files of cells that were measured side by side, as one"),
    "share": Program("everything:with_share", "another module with a share of the card's memory"),
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
    "scale": Program("scale:scale", "a search on several workers, and a model of many cards"),
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
    """One keyword argument as an option: a switch, one value, or as many as are given."""
    name, kind = parameter.name, parameter.annotation
    flag = FLAGS.get(name, name).replace("_", "-")
    is_required = parameter.default is inspect.Parameter.empty
    told: dict[str, Any] = {"help": HELP[name]}
    if kind is bool:
        parser.add_argument(f"--{flag}", dest=name, action="store_true", **told)
        return
    inner = next((part for part in get_args(kind) if part is not NoneType), kind)
    told |= {"type": inner, "metavar": flag.upper()}
    if get_origin(kind) is not None and issubclass(get_origin(kind), Sequence):
        many = {"nargs": "+" if is_required else "*", "default": parameter.default}
        if name in PLACED:
            parser.add_argument(name, **told | many)
        else:
            parser.add_argument(f"--{flag}", dest=name, action="extend", **told | many | {"default": None})
    elif is_required:
        parser.add_argument(f"--{flag}", dest=name, required=True, **told)
    else:
        parser.add_argument(f"--{flag}", dest=name, default=parameter.default, **told)


def command_line(words: Sequence[str]) -> str:
    """The line that was called, as results keep it: of absolute paths the names alone.

    >>> command_line(["accuracy", "--device", "cuda", "--out", "/somewhere/accuracy.json"])
    'python -m studies.benchmarks accuracy --device cuda --out accuracy.json'
    """
    return " ".join(["python -m studies.benchmarks", *(Path(w).name if Path(w).is_absolute() else w for w in words)])


def main(words: Sequence[str] | None = None) -> int | None:
    """Run the program that the first word names."""
    said = list(sys.argv[1:] if words is None else words)
    if not said or said[0] in ("-h", "--help", "--list"):
        print("\n".join(f"{name:18}{program.about}" for name, program in PROGRAMS.items()))
        return 0
    name, *rest = said
    if name not in PROGRAMS:
        raise UnknownName("measurement", name, PROGRAMS)
    function = PROGRAMS[name].function()
    if name == "share":
        return function(rest)  # what follows is another command
    given = {key: value for key, value in vars(parser_of(name).parse_args(rest)).items() if value is not None}
    if "command" in inspect.signature(function).parameters:
        given["command"] = command_line(said)
    return function(**given)


if __name__ == "__main__":
    run_program(main)
