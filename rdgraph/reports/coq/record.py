"""The record of what Coq's kernel accepted: the sha256 of every generated text with its library, as package data."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

from rdgraph.files import write_text
from rdgraph.reports.coq.sheets import Sheet, beyond_coq, library_text, sheets, sheets_of

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
    return PART if claim in beyond_coq() else WHOLE


def marks() -> dict[str, str]:
    """The marks of all claims that have one."""
    named = {s.claim: mark(s.claim) for s in sheets()}
    return {claim: text for claim, text in named.items() if text}


def write_record() -> None:
    """Record the present texts as accepted; only `make coq` calls this, after coqc accepted every one of them."""
    lines = ["# The sha256 of every generated file with its library, as coqc accepted it; `make coq` writes this.", "",
             "[accepted]"]  # fmt: skip
    lines += [f'{s.name} = "{fingerprint(s)}"' for s in sorted(sheets(), key=lambda s: s.name)]
    write_text(Path(str(resources.files("rdgraph").joinpath(_RECORD))), "\n".join(lines) + "\n")
