"""Tutorials on the site: run as notebooks when it is built, with their pictures and a link to the notebook."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

from sphinx.application import Sphinx

from docs.building.notebooks import executed, illustrated, pictures, with_outputs

#: Folders below the pages of the site, as Sphinx sees them.
PICTURES = "generated/pictures"
NOTEBOOKS = "generated/notebooks"


def show(app: Sphinx, name: str, source: list[str]) -> None:
    """Run a tutorial and put its pictures and its notebook into the page."""
    if not name.startswith("start/tutorials/") or name == "start/tutorials/index":
        return
    page = Path(app.srcdir, f"{name}.md")
    kept = Path(app.srcdir).parent / "build" / "notebooks"
    notebook = executed(page, kept)
    folder, copies = Path(app.srcdir, PICTURES), Path(app.srcdir, NOTEBOOKS)
    for needed in (folder, copies):
        needed.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept / f"{page.stem}.ipynb", copies / f"{page.stem}.ipynb")
    images: dict[int, list[str]] = defaultdict(list)
    for number, (block, data) in enumerate(pictures(notebook)):
        path = folder / f"{page.stem}_{number}.png"
        path.write_bytes(data)
        images[block].append(f"/{PICTURES}/{path.name}")
    title, _, rest = source[0].partition("\n")
    note = f"\n*This page as a notebook: {{download}}`{page.stem}.ipynb </{NOTEBOOKS}/{page.stem}.ipynb>`.*\n"
    rest = illustrated(with_outputs(rest, notebook), images, title.strip("# "))
    source[0] = f"{title}\n{note}{rest}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
