"""Adds root files such as CONTRIBUTING to the site, and drops patterns in tables of contents that match no page."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from sphinx.application import Sphinx

from docs.building.reference_pages import write_if_new

ROOT = Path(__file__).resolve().parents[2]
#: Files of the root with the names that they have on the site.
PAGES = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changes",
    "SECURITY.md": "security",
    "CODE_OF_CONDUCT.md": "conduct",
}
#: Pages below CONTRIBUTING in the navigation.
CONTENTS = "\n```{toctree}\n:hidden:\n\nsecurity\nconduct\n```\n"
_LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")
_PATTERN = re.compile(r"^[\w/]+\*\n", re.MULTILINE)


def write_root_pages(folder: Path) -> None:
    """Write the pages of the root into a folder one below `docs`, with links that hold there."""
    for source, name in PAGES.items():
        below = CONTENTS if name == "contributing" else ""
        write_if_new(folder / f"{name}.md", _LINK.sub(moved, (ROOT / source).read_text(encoding="utf-8")) + below)


def moved(link: re.Match[str]) -> str:
    """A link of the root as one of the site.

    >>> _LINK.sub(moved, "[a](docs/measured/tests.md#b), [c](CHANGELOG.md)")
    '[a](../measured/tests.md#b), [c](changes.md)'
    """
    target, place = link[1], link[2] or ""
    if target in PAGES:
        return f"]({PAGES[target]}.md{place})"
    return f"](../{target.removeprefix('docs/')}{place})" if target.startswith("docs/") else f"](../../{target}{place})"


def settle(app: Sphinx, _name: str, source: list[str]) -> None:
    """Redirect links to root files to their pages, and drop patterns in tables of contents that match no page."""
    for file, name in PAGES.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(file)}", f"](/generated/{name}.md", source[0])
    source[0] = _PATTERN.sub(
        lambda line: line[0] if any(fnmatch(page, line[0].strip()) for page in app.env.found_docs) else "", source[0]
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", settle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
