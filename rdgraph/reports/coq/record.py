"""The record of what Coq's kernel accepted: the sha256 of every generated text with its library, as package data."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from rdgraph.files import write_text
from rdgraph.reports.claims import statements
from rdgraph.reports.coq.sheets import Sheet, beyond_coq, library_text, sheets_of

_RECORD = "data/coq/checked.toml"
WHOLE, PART = "checked by Coq's kernel", "in part checked by Coq's kernel"


def fingerprint(sheet: Sheet) -> str:
    """The sha256 of a sheet and of the library it imports."""
    return hashlib.sha256((library_text(sheet.library) + sheet.text).encode()).hexdigest()


@cache
def recorded() -> dict[str, str]:
    """The sha256 of every text that coqc accepted when the record was written, by file name."""
    text = resources.files("rdgraph").joinpath(_RECORD).read_text(encoding="utf-8")
    accepted: dict[str, str] = tomllib.loads(text).get("accepted", {})
    return accepted


def is_checked(sheet: Sheet) -> bool:
    """Whether coqc accepted exactly this text."""
    return recorded().get(sheet.name) == fingerprint(sheet)


def mark(claim: str) -> str:
    """What the pages say of a claim: checked, in part checked, or nothing.

    >>> mark("M1.1")
    "checked by Coq's kernel"
    """
    files = sheets_of(claim)
    if not files or not all(map(is_checked, files)):
        return ""
    return PART if beyond_coq(claim) else WHOLE


def marks(claims: Iterable[str] | None = None) -> dict[str, str]:
    """The marks of the claims (all, or those given) that have one."""
    named = {claim: mark(claim) for claim in (statements() if claims is None else claims)}
    return {claim: text for claim, text in named.items() if text}


def write_record(accepted: Mapping[str, str]) -> None:
    """Record the sha256 of the texts that coqc accepted, by file name, and no others."""
    heading = "# The sha256 of every generated file with its library, as coqc accepted it; `make coq` writes this."
    entries = sorted(f'{name} = "{sha256}"' for name, sha256 in accepted.items())
    path = Path(str(resources.files("rdgraph").joinpath(_RECORD)))
    write_text(path, "\n".join([heading, "", "[accepted]", *entries]) + "\n")
