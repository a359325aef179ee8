"""The way imports flow, what `import rdgraph` costs, and what an `__init__.py` may hold."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

from tests.doors import DOORS
from tests.paths import ROOT

#: Which of our packages each package may import.
MAY_IMPORT = {
    "rdgraph": {"rdgraph"},
    "analysis": {"analysis", "rdgraph"},
    "gread": {"gread", "rdgraph"},
    "studies": {"studies", "analysis", "gread", "rdgraph"},
}

#: Modules and folders of rdgraph that may import the running libraries; all others are the symbolic half.
RUNNING_HALF = (
    "rdgraph.graphs.eigenbasis",
    "rdgraph.graphs.graph",
    "rdgraph.graphs.kernels",
    "rdgraph.graphs.operator",
    "rdgraph.graphs.twin_quotient",
    "rdgraph.infer.fit",
    "rdgraph.infer.formulas",
    "rdgraph.infer.layers",
    "rdgraph.run.lowering",
    "rdgraph.run.solvers",
)
#: The folders of each package from the ground up: a module imports from its own folder and from those before it.
#: A folder that is not listed belongs to the one around it; modules outside of all folders come first, unless listed.
FOLDER_ORDER = {
    "rdgraph": [
        "vocabulary", "language", "reals", "answers", "systems.canonical", "systems", "graphs.kernels", "graphs",
        "theory.equality", "theory", "theory.patterns", "theory.identifiability", "run.engines", "run.lowering",
        "run.solvers", "infer.fit", "infer.formulas", "infer.layers", "reports", "testing", "reports.claims",
        "reports.coq",
    ],
    "analysis": ["measures", "spectra", "verdicts", "phases", "plots"],
    "gread": [
        "kernels", "settings", "datasets", "comparison", "models", "zoo", "training", "tuning", "discovery",
        "formulas", "classifier", "layers",
    ],
    "studies": [
        "results", "runs", "stability", "grid", "response", "turing", "atlas", "discretisation", "oversmoothing",
        "trained_energy", "datasets", "training", "contest", "search", "distilling", "cells", "paper", "recipe",
        "ledger", "explorer", "discovery", "registered_studies", "cli", "benchmarks",
    ],
}  # fmt: skip

#: Modules, and lines of Python, of the four packages.
MOST_MODULES = 464
MOST_LINES = 119_912

RUNNING_LIBRARIES = {"torch", "torchdiffeq", "triton"}

#: Put before a program, it makes the running libraries look as if they were not installed.
WITHOUT_RUNNING_LIBRARIES = f"""
import sys
from tests.paths import ROOT

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(RUNNING_LIBRARIES)!r}:
            raise ImportError(f"{{name}} is blocked by this test", name=name)

sys.meta_path.insert(0, Refuse())
"""


def source_files(package: str, pattern: str = "*.py") -> list[Path]:
    return sorted((ROOT / package).rglob(pattern))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_running(module: str) -> bool:
    """Whether a module belongs to the running half."""
    return any(module == name or module.startswith(f"{name}.") for name in RUNNING_HALF)


def imported_names(tree: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in a file, inside functions and by `import_module("...")` too."""
    container = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                base = container.split(".")[: len(container.split(".")) - node.level + 1] if node.level else []
                module = ".".join(filter(None, [*base, node.module]))
                yield node.lineno, module
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


@cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    """Line and dotted name of every import in a file; `from p import m` names p, and p.m behind it."""
    return list(imported_names(ast.parse(path.read_text(encoding="utf-8"), str(path)), path))


def run_python(program: str) -> str:
    """Standard output of a program in a fresh interpreter that sees this checkout; warnings are errors there too."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------------- the flow of imports
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import gread.models.gread_model as m", "gread.models.gread_model"),
        ("from gread import model", "gread"),
        ("from . import spectral", "rdgraph"),
        ("from .data import x", "rdgraph.data"),
        ("from ..gread import model", "gread"),
        ("def f():\n    import torch", "torch"),
        ("import importlib\nimportlib.import_module('torch.nn')", "torch.nn"),
    ],
)
def test_the_walk_sees_every_form_of_import(line: str, expected: str) -> None:
    assert expected in {name for _, name in imported_names(ast.parse(line), ROOT / "rdgraph" / "system.py")}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_what_lies_below_them(package: str) -> None:
    files = source_files(package)
    assert files, f"no sources in {ROOT / package}"
    forbidden = {*MAY_IMPORT, "tests"} - MAY_IMPORT[package]
    offences = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files
        for line, name in imports_of(path)
        if name.partition(".")[0] in forbidden
    ]
    assert offences == []


def modules_imported(path: Path, known: set[str]) -> set[str]:
    """The modules of this project that a file imports, in whatever form and place."""
    return {name for _, name in imports_of(path)} & known


@cache
def import_graph() -> nx.DiGraph:
    """Which module imports which; a package's door counts only where it is imported by itself."""
    files = {module_name(path): path for package in MAY_IMPORT for path in source_files(package)}
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        graph.add_edges_from((name, other) for other in modules_imported(path, set(files)) if other != name)
    return graph


def test_there_is_no_circle_of_imports() -> None:
    """Imports for typing and inside functions count as well; the doors, which name everything, do not."""
    graph = import_graph()
    graph.remove_nodes_from(DOORS)
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_folders_keep_their_order() -> None:
    assert {package: folders_out_of_order(package) for package in FOLDER_ORDER} == {p: [] for p in FOLDER_ORDER}


def folders_out_of_order(package: str) -> list[str]:
    """Folders without a place in the order, and imports against it."""
    order = FOLDER_ORDER[package]
    folders = {module_name(p).partition(".")[2] for p in source_files(package, "__init__.py")} - {""}
    known = {*order, *(name.rpartition(".")[0] for name in order)}
    strangers = [f"{f} has no place" for f in sorted(folders) if f not in known and f.rpartition(".")[0] not in order]

    def rank(module: str) -> int:
        parts = module.split(".")[1:]
        heads = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
        return next((order.index(head) for head in heads if head in order), -1)

    return strangers + [
        f"{user} imports {used}"
        for user, used in import_graph().edges
        if user.startswith(f"{package}.") and used.startswith(f"{package}.") and rank(user) < rank(used)
        if user not in DOORS
    ]


def test_no_public_name_is_also_the_name_of_a_module() -> None:
    """`from package import name` gives one thing, whatever was imported before: a module of that name is the module."""
    for package in DOORS:
        door = importlib.import_module(package)
        folder = ROOT.joinpath(*package.split("."))
        below = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
        both = {name for name in set(door.__all__) & below if not isinstance(getattr(door, name), ModuleType)}
        assert both == set(), package


def test_the_symbolic_half_imports_no_running_library() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in source_files("rdgraph")
        if not is_running(module_name(path))
        for line, name in imports_of(path)
        if name.partition(".")[0] in RUNNING_LIBRARIES
    ]
    assert offences == []


def test_the_running_half_names_modules_that_exist() -> None:
    assert {module_name(path) for path in source_files("rdgraph")} >= set(RUNNING_HALF)


def test_the_symbolic_half_works_where_torch_is_not_installed() -> None:
    values = {"alpha": 2, "beta": 5, "lam": 3}
    program = f"""
{WITHOUT_RUNNING_LIBRARIES}
import importlib, json, pkgutil
import rdgraph

running = {RUNNING_HALF!r}
found = [m.name for m in pkgutil.walk_packages(rdgraph.__path__, "rdgraph.", onerror=lambda name: None)]
names = [n for n in found if not any(n == r or n.startswith(r + ".") for r in running)]
for name in names:
    importlib.import_module(name)
try:
    import torch
except ImportError:
    blocked = True
else:
    blocked = False
symbol = rdgraph.parse("BS").symbol()
value = symbol.subs({{letter: {values}[letter.name] for letter in symbol.free_symbols}})
print(json.dumps([blocked, names, int(value)]))
"""
    blocked, names, value = json.loads(run_python(program))
    assert blocked
    modules = {module_name(path) for path in source_files("rdgraph")}
    assert set(names) == {m for m in modules if not is_running(m)} - {"rdgraph"}
    assert value == (5 - 2) * 3 - 5 * 3**2


def product_modules() -> list[Path]:
    return [path for package in MAY_IMPORT for path in source_files(package) if path.name != "__init__.py"]


def test_the_tree_only_shrinks() -> None:
    """Ceilings of the product, to be lowered whenever the tree gets smaller and never raised."""
    lines = sum(
        path.read_text(encoding="utf-8").count("\n") for package in MAY_IMPORT for path in source_files(package)
    )
    assert (len(product_modules()) <= MOST_MODULES, lines <= MOST_LINES) == (True, True), (
        len(product_modules()),
        lines,
    )


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.stem for path in product_modules())
    assert {name for name, count in names.items() if count > 1} <= {"study", "__main__"}


# ---------------------------------------------------------------------- the doors
#: The most names that a door offers.
MOST_NAMES = {"rdgraph": 40, "gread": 25, "analysis": 20}


def test_a_door_offers_few_names() -> None:
    for package, most in MOST_NAMES.items():
        assert len(set(importlib.import_module(package).__all__) - {"__version__"}) <= most, package


@pytest.mark.parametrize("package", DOORS)
def test_a_door_opens_on_every_public_name(package: str) -> None:
    door = importlib.import_module(package)
    assert door.__all__
    assert set(door.__all__) <= set(dir(door))
    words = set(re.findall(r"\w+", door.__doc__ or ""))
    for name in set(door.__all__) - {"__version__"}:
        assert hasattr(door, name)
        assert name in words, f"{name} is not in the docstring"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = door.nothing


def test_a_public_name_is_at_one_door() -> None:
    offered = Counter(
        (package.partition(".")[0], name) for package in DOORS for name in importlib.import_module(package).__all__
    )
    assert [name for name, count in offered.items() if count > 1] == []


@pytest.mark.parametrize(
    "path", [p for package in MAY_IMPORT for p in source_files(package, "__init__.py")], ids=lambda p: p.parent.name
)
def test_init_files_only_re_export(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    assert ast.get_docstring(tree), f"{path.relative_to(ROOT)}: expected a docstring that groups the names by task"
    strangers = [f"line {node.lineno}: {ast.unparse(node)[:60]}" for node in tree.body[1:] if not is_door_work(node)]
    assert strangers == []


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("from rdgraph.systems.parser import parse", True),
        ("from rdgraph.systems.parser import *", False),
        ("__all__ = ['parse']", True),
        ("_LAZY = {'parse': 'rdgraph.parse'}", True),
        ("_CACHE = make()", False),
        ("VERSION = '1'", False),
        ("if TYPE_CHECKING:\n    from rdgraph.systems.parser import parse", True),
        ("if TYPE_CHECKING:\n    setup()", False),
        ("__all__, __getattr__, __dir__ = lazy_door(__name__)", True),
        ("def __getattr__(name): ...", False),
        ("def helper(): ...", False),
        ("setup()", False),
    ],
)
def test_what_counts_as_the_work_of_a_door(statement: str, allowed: bool) -> None:
    assert is_door_work(ast.parse(statement).body[0]) is allowed


def is_door_work(node: ast.stmt) -> bool:
    """Imports by name (under TYPE_CHECKING too), `__all__`, private tables of literals, and the lazy door."""
    match node:
        case ast.Import():
            return True
        case ast.ImportFrom():
            return all(alias.name != "*" for alias in node.names)
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AnnAssign(target=ast.Name(id="__all__")):
            return True
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return name.startswith("_") and value is not None and is_literal(value)
        case ast.Assign():
            return ast.unparse(node) == "__all__, __getattr__, __dir__ = lazy_door(__name__)"
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return all(isinstance(inner, ast.Import | ast.ImportFrom) and is_door_work(inner) for inner in node.body)
    return False


def is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True
