"""The pages of the reference, from the docstrings of the packages: a table of all names, and a page for each group."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

#: The page with the table of all names, and that of the command line.
ALL_NAMES, COMMANDS = "all_names.rst", "commands.md"
#: Packages that offer public names, each before its subpackages, and modules that are documented whole.
DOORS = (
    "rdgraph", "rdgraph.theory", "rdgraph.theory.patterns", "rdgraph.infer", "rdgraph.run", "rdgraph.graphs",
    "rdgraph.vocabulary", "rdgraph.reports",
    "analysis", "analysis.measures", "analysis.spectra", "analysis.phases", "analysis.verdicts",
    "gread", "gread.datasets", "gread.models", "gread.layers", "gread.training", "gread.formulas",
    "studies",
)  # fmt: skip
MODULES = ("rdgraph.errors", "rdgraph.testing")
NEW_PARAGRAPH = "\n\n"
_GROUP = re.compile(r"^(\w[\w' ]*):\s+(\S.*)$")


@dataclass(frozen=True)
class Group:
    """Public names of a package that belong together."""

    package: str
    title: str
    names: tuple[str, ...]

    @property
    def address(self) -> str:
        return re.sub(r"[^a-z]+", "_", f"{self.package}_{self.title.lower()}")

    @property
    def heading(self) -> str:
        return f"{self.title.capitalize()} ({self.package.removeprefix('rdgraph.')})"


def groups(package: str) -> Iterator[Group]:
    """The groups of names in the docstring of a package: lines `group: name, name`, continued on indented lines.

    >>> next(groups("rdgraph")).names[:3]
    ('parse', 'System', 'catalogue')
    """
    door = importlib.import_module(package)
    titled: dict[str, list[str]] = {}
    title = ""
    for line in inspect.getdoc(door).splitlines()[1:]:
        if found := _GROUP.match(line):
            title, text = found.groups()
        elif line.startswith(" ") and title:
            text = line
        else:
            title = ""
            continue
        words = [word.strip() for word in re.split(r"[,;]", text)]
        titled.setdefault(title, []).extend(word for word in words if word in door.__all__)
    for key, names in titled.items():
        if names:
            yield Group(package, key, tuple(names))


def directive(package: str, name: str) -> str:
    """The directive with which Sphinx documents one name."""
    value = getattr(importlib.import_module(package), name)
    if isinstance(value, ModuleType) and value.__name__ in (*DOORS, *MODULES):
        return f"``{package}.{name}``: {inspect.getdoc(value).split(NEW_PARAGRAPH)[0]}\n"
    if isinstance(value, ModuleType):
        return f".. automodule:: {value.__name__}\n   :members:\n"
    if inspect.isclass(value):
        return f".. autoclass:: {package}.{name}\n   :members:\n"
    kind = "autofunction" if callable(value) and inspect.isroutine(value) else "autodata"
    return f".. {kind}:: {package}.{name}\n"


def summary(package: str, name: str) -> str:
    """The first sentence of what a name says of itself; nothing for plain values.

    >>> summary("rdgraph", "classify").endswith(".")
    True
    """
    value = getattr(importlib.import_module(package), name)
    if not (isinstance(value, ModuleType) or callable(value)) and type(value).__module__ == "builtins":
        return ""
    first = " ".join((inspect.getdoc(value) or "").split(NEW_PARAGRAPH)[0].split())
    return re.split(r"(?<=[.;])\s", first)[0].rstrip(";.") + "."


def table(group: Group) -> str:
    """The names of a group, each with one sentence and a link to its documentation."""
    from docs.building.docstrings import escaped

    lines = [".. list-table::", "   :widths: 30 70", "   :width: 100%", ""]
    for name in group.names:
        value = getattr(importlib.import_module(group.package), name)
        is_module = isinstance(value, ModuleType)
        role = f"``{name}``" if is_module else f":py:obj:`{name} <{group.package}.{name}>`"
        lines += [f"   * - {role}", f"     - {escaped(summary(group.package, name))}"]
    return "\n".join(lines) + "\n"


def contents(top: str) -> str:
    """The pages of a package and its subpackages as a table in Markdown, each with its names."""
    rows = [
        (group.address, ", ".join(f"`{name}`" for name in group.names))
        for package in DOORS
        if package.split(".")[0] == top
        for group in groups(package)
    ]
    rows += [(name.replace(".", "_"), summary(*name.split("."))) for name in MODULES if name.startswith(f"{top}.")]
    lines = [f"| {{doc}}`/generated/reference/{address}` | {names} |" for address, names in rows]
    return "\n".join(["| page | names |", "|---|---|", *lines]) + "\n"


def all_names() -> str:
    """The page with every public name, a table for each group."""
    sections = [
        ":nosearch:\n\n"
        + titled("All names")
        + "Every public name with one sentence; a name links to its documentation.\n"
    ]
    for package in DOORS:
        sections += [f"{titled(group.heading, '-')}{table(group)}" for group in groups(package)]
    return "\n".join(sections)


def titled(title: str, line: str = "=") -> str:
    return f"{title}\n{line * len(title)}\n\n"


def write_reference(folder: Path) -> None:
    """Write the table of all names, a page for every group and module, and the page of the command line."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in DOORS:
        for group in groups(package):
            page = titled(group.heading) + "\n".join(
                [table(group), *(directive(package, name) for name in group.names)]
            )
            write_if_new(folder / f"{group.address}.rst", page)
    for module in MODULES:
        page = f"{titled(module)}.. automodule:: {module}\n   :members:\n"
        write_if_new(folder / f"{module.replace('.', '_')}.rst", page)
    for top in ("rdgraph", "analysis", "gread", "studies"):
        write_if_new(folder / f"{top}.inc", contents(top))
    write_if_new(folder / ALL_NAMES, all_names())
    write_if_new(folder / COMMANDS, commands())


def commands() -> str:
    """The help of every command, as typer prints it for a page."""
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from studies.cli.app import app

    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=command.context_class(command, info_name="rdgraph"), name="rdgraph")
    return "# All commands and options" + plain_stars(text.removeprefix("# `rdgraph`"))


def plain_stars(text: str) -> str:
    """Text in which the stars of formulas are escaped; lists, headings and code in backticks stay as they are.

    >>> plain_stars("* `-a*H`: -alpha*L@H, **Usage**:")
    '* `-a*H`: -alpha\\\\*L@H, **Usage**:'
    """
    pieces = re.split(r"(```.*?```|`[^`]*`|\*\*[A-Z]\w*\*\*|^\s*\* )", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(piece if k % 2 else piece.replace("*", "\\*") for k, piece in enumerate(pieces))


def write_if_new(path: Path, text: str) -> None:
    """Write a page only where it differs, so that Sphinx reads again only what has changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
