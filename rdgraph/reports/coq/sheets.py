"""Sheets: the Coq files of a claim, made from theorems whose statements are printed from systems and derivations."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module, resources
from pathlib import Path

from rdgraph.errors import UnknownName
from rdgraph.files import write_text
from rdgraph.reports.claims import statements

_MODULES = ("derivation_sheets", "layer_sheets", "filter_sheets", "bound_sheets", "flow_sheets")


class Library(StrEnum):
    """The vocabulary a sheet is written in: a file of `rdgraph/data/coq/` that every sheet of its kind imports."""

    OPERATORS = "operators"
    REALS = "reals"
    SOLUTIONS = "solutions"
    RATIONALS = "rationals"


_OPENING = {
    Library.OPERATORS: (
        "Set Implicit Arguments.\nUnset Strict Implicit.\nImport Order.TTheory GRing.Theory Num.Theory.\n"
        "Local Open Scope ring_scope."
    ),
    Library.REALS: "Open Scope R_scope.",
    Library.SOLUTIONS: "Open Scope R_scope.",
    Library.RATIONALS: "Open Scope Q_scope.",
}


@dataclass(frozen=True)
class Theorem:
    """A theorem: its name, its statement and the tactics that prove it, all as Coq text.

    A theorem without tactics has them in `rdgraph/data/coq/proofs.toml`, below the names of its file and of itself; one
    without a statement, into which no formula of the package enters, has it in `statements.toml` next to that file.
    """

    name: str
    statement: str = ""
    proof: str = ""

    def __str__(self) -> str:
        statement = textwrap.fill(self.statement, 116, initial_indent="  ", subsequent_indent="  ",
                                  break_long_words=False, break_on_hyphens=False)  # fmt: skip
        return f"Theorem {self.name} :\n{statement}.\nProof.\n{textwrap.indent(self.proof.strip(), '  ')}\nQed.\n"


@dataclass(frozen=True)
class Sheet:
    """One generated file: definitions and theorems about a claim, in the vocabulary of one library."""

    claim: str
    library: Library
    theorems: tuple[Theorem, ...]
    definitions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name without its ending, an identifier in Coq."""
        return f"{self.claim.replace('.', '_').replace('-', '_')}_{self.library.value}"

    @property
    def text(self) -> str:
        """The file: a heading, the definitions, the theorems, and what every theorem rests on."""
        entry = statements()[self.claim]
        heading = [f"{entry.id}: {entry.title}.", f"Claim ({entry.source}): {entry.statement}."]
        if beyond := beyond_coq(entry.id):
            heading.append(f"Not stated here: {beyond}.")
        comment = "\n   ".join(line for part in heading for line in textwrap.wrap(part, 112))
        parts = [
            f"(* {comment.replace('(*', '( *').replace('*)', '* )')} *)",
            f"From Rdgraph Require Import {self.library.value}.",
            _OPENING[self.library],
            "",
            *(f"{text.strip()}\n" for text in self.definitions),
            *(str(theorem) for theorem in self.theorems),
            *(f"Print Assumptions {theorem.name}." for theorem in self.theorems),
        ]
        return "\n".join(parts) + "\n"


Maker = Callable[[], Iterable[Theorem | str]]


@dataclass(frozen=True)
class _Entry:
    claim: str
    library: Library
    make: Maker
    beyond: str


_entries: list[_Entry] = []


def sheet(claim: str, library: Library, *, beyond: str = "") -> Callable[[Maker], Maker]:
    """Register a sheet of a claim; `beyond` names the part of the claim that no sheet states."""

    def register(make: Maker) -> Maker:
        _entries.append(_Entry(claim, library, make, beyond))
        return make

    return register


def sheets() -> tuple[Sheet, ...]:
    """Every generated file, in the order of the claims."""
    return tuple(one for claim in statements() for one in sheets_of(claim))


@cache
def sheets_of(claim: str) -> tuple[Sheet, ...]:
    """The files of one claim; none where the claim has no Coq statement."""
    if claim not in statements():
        raise UnknownName("claim", claim, statements())
    made = [_sheet(entry) for entry in _registered() if entry.claim == claim]
    return tuple(sorted(made, key=lambda one: one.library))


def beyond_coq(claim: str) -> str:
    """What no sheet states of a claim; empty where the sheets state all of it."""
    return "; ".join(dict.fromkeys(entry.beyond for entry in _registered() if entry.claim == claim and entry.beyond))


def library_text(library: Library) -> str:
    """A library as it is shipped, after the library that it imports."""
    below = library_text(Library.REALS) if library is Library.SOLUTIONS else ""
    return below + _shipped(library)


def _shipped(library: Library) -> str:
    return resources.files("rdgraph").joinpath(f"data/coq/{library.value}.v").read_text(encoding="utf-8")


def write_sheets(folder: Path, chosen: Iterable[Sheet] | None = None) -> list[Path]:
    """Write the libraries and the sheets (all, or those given) to a folder; returns the sheets' paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for library in Library:
        write_text(folder / f"{library.value}.v", _shipped(library))
    paths = []
    for one in sheets() if chosen is None else chosen:
        paths.append(folder / f"{one.name}.v")
        write_text(paths[-1], one.text)
    return paths


def _registered() -> list[_Entry]:
    for name in _MODULES:
        import_module(f"rdgraph.reports.coq.{name}")
    return _entries


def _sheet(entry: _Entry) -> Sheet:
    parts = list(entry.make())
    made = Sheet(
        entry.claim, entry.library, tuple(part for part in parts if isinstance(part, Theorem)),
        tuple(part for part in parts if isinstance(part, str)),
    )  # fmt: skip
    return replace(made, theorems=tuple(_completed(made.name, one) for one in made.theorems))


def _completed(file: str, one: Theorem) -> Theorem:
    statement = one.statement or _texts("statements")[file][one.name]
    return replace(one, statement=statement, proof=one.proof or _texts("proofs")[file][one.name])


@cache
def _texts(kind: str) -> dict[str, dict[str, str]]:
    return tomllib.loads(resources.files("rdgraph").joinpath(f"data/coq/{kind}.toml").read_text(encoding="utf-8"))
