"""Errors name only options that the command has: read off the sources, and met on the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rdgraph.errors import RdgraphError
from studies.cli import app as cli
from studies.cli.options import PYTHON_NAMES
from tests.paths import ROOT
from tests.studies.own_graph import club_files

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
#: What may stand before the options of another command, or of another program.
COMMAND = re.compile(r"(?:rdgraph|ray|tensorboard) (?:[a-z]+ )*[^;,.]*$")


def leaves(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command by its words, with its options."""
    command = command or typer.main.get_command(cli.app)
    if hasattr(command, "commands"):
        for name, part in command.commands.items():
            yield from leaves(part, (*words, name))
    if command.params:
        yield words, {option for part in command.params for option in (*part.opts, *part.secondary_opts)}


COMMANDS = dict(leaves())


def named(text: str) -> list[str]:
    """Options in a text that are not said to be those of another command."""
    return [found[0] for found in OPTION.finditer(text) if not COMMAND.search(text[: found.start()])]


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of errors and messages in a file: all but docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.lineno, node.value


def test_there_are_commands_with_options() -> None:
    assert COMMANDS["plot", "phase"] >= {"--graph", "--set"}
    assert COMMANDS["train",] >= {"--edges", "--graph", "--directed", "--undirected", "--duplicates", "--weight-column"}
    assert "--missing" not in COMMANDS["predict",]
    assert named("pass --edges, as rdgraph train --nodes FILE does") == ["--edges"]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["rdgraph", "analysis", "gread"])
def test_libraries_name_arguments_and_no_options(package: str) -> None:
    """A function does not know which command called it; options are named by `with_options`, and by own programs."""
    own = {
        ("rdgraph/graphs/kernels/c_compiler.py", "--version"),
        ("rdgraph/check_certificate.py", "--help"),
        ("rdgraph/reports/coq/kernel.py", "--changed"),
    }
    found = {
        (str(path.relative_to(ROOT)), option)
        for path in (ROOT / package).rglob("*.py")
        for _, text in strings(path)
        for option in named(text)
    }
    assert found <= own


def test_what_the_commands_name_is_an_option_of_some_command() -> None:
    known = set.union(*COMMANDS.values())
    found = [
        (str(path.relative_to(ROOT)), line, option)
        for part in ("cli", "training", "contest", "search", "discovery", "distilling", "runs")
        for path in (ROOT / "studies" / part).rglob("*.py")
        for line, text in strings(path)
        for option in OPTION.findall(text)
        if option not in known
    ]
    assert found == []


def test_arguments_that_become_options_are_parameters_of_commands() -> None:
    parameters = {part.name for words in COMMANDS for part in _leaf(words).params}
    assert set(PYTHON_NAMES.values()) <= parameters


def _leaf(words: tuple[str, ...]) -> Any:
    command: Any = typer.main.get_command(cli.app)
    for word in words:
        command = command.commands[word]
    return command


CLUB = ("--edges", "e.csv", "--nodes", "club.csv")
BROKEN = "id,label,u,v\n0,a,1,1\n1,b,,x\n2,a,1,2\n3,b,1,2\n"
READERS = [("train",), ("compare",), ("search",), ("discover",)]


def wrong() -> Iterator[tuple[tuple[str, ...], str]]:
    """Command lines that fail, with a piece of the remedy."""
    for words in READERS:
        yield (*words, *CLUB, "--id-column", "name"), "--id-column"
        yield (*words, *CLUB, "--label-column", "labl"), "--label-column label"
        yield (*words, *CLUB, "--weight-column", "w"), "--weight-column"
        yield (
            (*words, "--edges", "w.csv", "--nodes", "club.csv"),
            "--duplicates sum; also mean, max, first), or pass --directed",
        )
        yield (*words, "--edges", "e.csv", "--nodes", "gap.csv"), "--missing mean"
        yield (*words, "--edges", "e.csv", "--nodes", "word.csv"), "--categories"
        yield (*words, "--edges", "e.csv"), "--nodes FILE"
        yield (*words, "--graph", "club.graphml"), "--label-column NAME"
        yield (*words, "--dataset", "karate", "--set", "hidden"), "--set"
        yield (*words, "--dataset", "karate", "--epochs", "2", "--set", "epochs=3"), "twice"
        if words != ("discover",):
            yield (*words, "--dataset", "karate", "--equation", "-alpha*L@H + Hx*H"), "where Hx scalar"
            yield (*words, "--dataset", "karate", "--equation", "-alpha*L@H + gelu(H)"), "register_function('gelu'"
    yield ("analyse", "-k9*L@H"), "where k9 scalar"
    yield ("preflight", "-k9*L@H"), "where k9 scalar"
    yield ("explore", "--graph", "torus"), "torus:ROWS:COLUMNS"
    yield ("plot", "phase", "--graph", "tree:3"), "karate"
    yield ("plot", "phase", "-a*L@H + b*A@H - c*H", "--axes", "a,b"), "--set"
    yield ("plot", "phase", "u' = a*u - L@u; v' = -a*v - L@v"), "rdgraph study atlas"
    yield ("plot", "response", "-gamma*L@H"), "--set gamma=1.0"
    yield ("search", "--dataset", "karate", "--address", "x"), "--engine ray"


@pytest.mark.parametrize(
    ("words", "remedy"), list(wrong()), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_a_remedy_names_what_the_command_has(
    words: tuple[str, ...], remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    club_files(tmp_path)
    (tmp_path / "w.csv").write_text("source,target,weight\n0,1,2\n1,0,3\n")
    (tmp_path / "gap.csv").write_text(BROKEN.replace("x", "2"))
    (tmp_path / "word.csv").write_text(BROKEN.replace("b,,x", "b,1,x"))
    (tmp_path / "club.graphml").write_text(
        '<graphml><key id="d" for="node" attr.name="kind" attr.type="string"/><graph edgedefault="undirected">'
        '<node id="a"><data key="d">x</data></node><node id="b"/><edge source="a" target="b"/></graph></graphml>'
    )
    done = CliRunner().invoke(cli.app, list(words))
    assert isinstance(done.exception, RdgraphError), done.output
    text = str(done.exception)
    assert remedy in text
    command = words[:2] if words[0] == "plot" else words[:1]
    assert set(named(text)) <= COMMANDS[command], text
