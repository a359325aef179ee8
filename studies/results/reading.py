"""Paths and contents of measured results and of the pages about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rdgraph.errors import FileError
from rdgraph.files import read_text

_FOLDER = Path(__file__).resolve().parent
_PAGES = _FOLDER.parents[1] / "docs"


def results_folder() -> Path:
    """Folder of the results files, in a checkout or an installed package.

    >>> (results_folder() / "classification.json").is_file()
    True
    """
    return _FOLDER


def read_result(name: str) -> Any:
    """Content of the results file NAME.json.

    >>> sorted(read_result("degrees"))
    ['command', 'rows']
    >>> read_result("nothing")
    Traceback (most recent call last):
    rdgraph.errors.FileError: ...
    """
    path = _FOLDER / f"{name}.json"
    if not path.is_file():
        raise FileError(f"{path} is missing; reinstall rdgraph or restore the file")
    return json.loads(read_text(path, "measured results"))


def pages_folder(chapter: str = "measured") -> Path:
    """Folder of the pages of a chapter of the documentation; only a checkout of the repository has one.

    >>> pages_folder("guides").parent.name
    'docs'
    """
    folder = _PAGES / chapter
    if not folder.is_dir():
        raise FileError(f"{folder} does not exist: pages are written in a checkout of the repository only")
    return folder


def page_path(name: str) -> Path:
    """Path of the page NAME.md in its chapter; in docs/measured for a new page.

    >>> [page_path(name).parent.name for name in ("conform", "scale", "nothing")]
    ['guides', 'measured', 'measured']
    """
    folder = pages_folder()
    return next(iter(sorted(folder.parent.glob(f"*/{name}.md"))), folder / f"{name}.md")


def result_link(name: str) -> str:
    """Markdown link from a page of a chapter to the results file NAME.json.

    >>> result_link("scale")
    '[scale.json](../../studies/results/scale.json)'
    """
    return f"[{name}.json](../../studies/results/{name}.json)"
