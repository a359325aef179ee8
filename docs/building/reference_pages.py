"""The pages of the reference, from what each package says of itself: a page for every group of names of its door."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

#: Packages with a door, each before those behind it, and modules that are documented whole.
DOORS = (
    "rdgraph", "rdgraph.theory", "rdgraph.theory.patterns", "rdgraph.infer", "rdgraph.run", "rdgraph.graphs",
    "rdgraph.vocabulary", "rdgraph.reports",
    "analysis", "analysis.measures", "analysis.spectra", "analysis.phases", "analysis.verdicts",
    "gread", "gread.datasets", "gread.models", "gread.training", "gread.formulas",
    "studies",
)  # fmt: skip
MODULES = ("rdgraph.errors", "rdgraph.testing")
NEW_PARAGRAPH = "\n\n"
_GROUP = re.compile(r"^(\w[\w' ]*):\s+(\S.*)$")


@dataclass(frozen=True)
class Group:
    """Names of a door that belong together."""

    package: str
    title: str
    names: tuple[str, ...]

    @property
    def address(self) -> str:
        return re.sub(r"[^a-z]+", "_", f"{self.package}_{self.title.lower()}")


def groups(package: str) -> Iterator[Group]:
    """The groups in the docstring of a package, `group: name, name`, with continued lines indented.

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
    """How Sphinx is asked for one name."""
    value = getattr(importlib.import_module(package), name)
    if isinstance(value, ModuleType) and value.__name__ in (*DOORS, *MODULES):
        return f"``{package}.{name}``: {inspect.getdoc(value).split(NEW_PARAGRAPH)[0]}\n"
    if isinstance(value, ModuleType):
        return f".. automodule:: {value.__name__}\n   :members:\n"
    if inspect.isclass(value):
        return f".. autoclass:: {package}.{name}\n   :members:\n"
    kind = "autofunction" if callable(value) and inspect.isroutine(value) else "autodata"
    return f".. {kind}:: {package}.{name}\n"


def titled(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def write_reference(folder: Path) -> None:
    """Write a page for every group and module, and the list of them for the table of contents."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in DOORS:
        for group in groups(package):
            page = titled(f"{package}: {group.title}") + "\n".join(directive(package, name) for name in group.names)
            write_if_new(folder / f"{group.address}.rst", page)
    for module in MODULES:
        page = f"{titled(module)}.. automodule:: {module}\n   :members:\n"
        write_if_new(folder / f"{module.replace('.', '_')}.rst", page)
    write_if_new(folder / "commands.md", commands())


def commands() -> str:
    """The help of every command, as typer prints it for a page."""
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from studies.cli.app import app

    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=command.context_class(command, info_name="rdgraph"), name="rdgraph")
    return "# The command line" + plain_stars(text.removeprefix("# `rdgraph`"))


def plain_stars(text: str) -> str:
    """Stars of formulas as they are: those of lists and headings stay, and so does all that stands in backticks.

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
