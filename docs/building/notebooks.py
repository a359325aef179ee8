"""Turns tutorials into notebooks, runs them, and checks that they print what the pages show.

`python -m docs.building.notebooks FOLDER` writes the executed notebooks of all tutorials into a folder.
"""

from __future__ import annotations

import base64
import doctest
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
#: Colours and axes of the figures.
STYLE = ROOT / "docs" / "building" / "matplotlibrc"
TUTORIALS = ROOT / "docs" / "start" / "tutorials"
#: A block of Python in a page, and a link to another file of the documentation.
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LOCAL_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")
#: What a figure prints as, which says nothing next to its picture.
_FIGURE = re.compile(r"^<Figure size .*>\n", re.MULTILINE)
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def tutorials() -> list[Path]:
    """All tutorials, without the page that lists them."""
    return sorted(path for path in TUTORIALS.glob("*.md") if path.name != "index.md")


def as_notebook(text: str) -> NotebookNode:
    """A page as a notebook; a cell of code ends where the page shows what comes out.

    >>> notebook = as_notebook("# Sums" + chr(10) + "```python" + chr(10) + ">>> 1 + 1" + chr(10) + "2" + chr(10)*2
    ...                        + "```" + chr(10))
    >>> [(cell.cell_type, cell.source) for cell in notebook.cells]
    [('code', '%matplotlib inline'), ('markdown', '# Sums'), ('code', '1 + 1')]
    """
    cells = [new_code_cell("%matplotlib inline", metadata={"want": "", "block": -1})]
    for index, part in enumerate(_BLOCK.split(text)):
        if index % 2:
            cells += [
                new_code_cell(source.strip(), metadata={"want": want, "block": index // 2})
                for source, want in statements(part)
            ]
        elif part.strip():
            cells.append(new_markdown_cell(_LOCAL_LINK.sub(r"\1", part.strip())))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    notebook.metadata["source"] = hashlib.sha256(nbformat.writes(notebook).encode()).hexdigest()
    return notebook


def statements(block: str) -> Iterator[tuple[str, str]]:
    """Source and wanted output of the cells of one block."""
    source = ""
    for example in doctest.DocTestParser().get_examples(block):
        source += example.source
        if example.want:
            yield source, example.want
            source = ""
    if source:
        yield source, ""


def executed(page: Path, folder: Path) -> NotebookNode:
    """The notebook of a page, run in its own kernel and stored in a folder; an unchanged page is not run again.

    Raises:
        ValueError: a cell printed something else than the page shows.
    """
    notebook = as_notebook(page.read_text(encoding="utf-8"))
    path = folder / f"{page.stem}.ipynb"
    if path.exists():
        kept = nbformat.read(path, as_version=4)
        if kept.metadata.get("source") == notebook.metadata.source:
            return kept
    folder.mkdir(parents=True, exist_ok=True)
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}})
    client.extra_arguments = ["--IPKernelApp.log_level=40"]
    client.execute(env={**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1", "MATPLOTLIBRC": str(STYLE)})
    if found := "\n".join(disagreements(notebook)):
        raise ValueError(f"expected what {page.name} shows, got\n{found}")
    nbformat.write(notebook, path)
    return notebook


def disagreements(notebook: NotebookNode) -> Iterator[str]:
    """The cells whose output is not what the page shows."""
    checker = doctest.OutputChecker()
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        got = printed(cell)
        if not checker.check_output(cell.metadata.want, got, _FLAGS):
            yield f"{cell.source}\n  expected: {cell.metadata.want!r}\n  got:      {got!r}"
        if "<Figure" in got and not any("image/png" in output.get("data", ()) for output in cell.outputs):
            yield f"{cell.source}\n  expected: a picture\n  got:      {got!r}"


def printed(cell: NotebookNode) -> str:
    """The text output of a cell: what it printed, and its value."""
    text = ""
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            text += output.text
        elif output.output_type == "execute_result":
            text += output.data["text/plain"] + "\n"
    return text


def with_outputs(text: str, notebook: NotebookNode) -> str:
    """A page with what its cells printed, where the page has "..." because the digits depend on the machine."""
    parts = _BLOCK.split(text)
    for cell in notebook.cells:
        want = cell.metadata.get("want", "")
        if "..." in want:
            block = 2 * cell.metadata.block + 1
            parts[block] = parts[block].replace(f"\n{want}", f"\n{printed(cell)}", 1)
    return "".join(f"```python\n{part}```\n" if k % 2 else part for k, part in enumerate(parts))


def pictures(notebook: NotebookNode) -> Iterator[tuple[int, bytes]]:
    """The pictures of a notebook that was run, each with the number of its block."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", ()):
                yield cell.metadata.block, base64.b64decode(output.data["image/png"])


def illustrated(text: str, images: dict[int, list[str]], alternative: str) -> str:
    """A page with its pictures behind the blocks that drew them."""
    parts = _BLOCK.split(text)
    for index in range(1, len(parts), 2):
        shown = "".join(f"\n![{alternative}]({address})\n" for address in images.get(index // 2, ()))
        parts[index] = _FIGURE.sub("", parts[index])
        parts[index] = f"```python\n{parts[index]}```\n{shown}"
    return "".join(parts)


if __name__ == "__main__":
    for tutorial in tutorials():
        executed(tutorial, Path(sys.argv[1]))
