"""Blocks of code without the empty line that ends an example in a page."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def trim(_app: Sphinx, doctree: nodes.document) -> None:
    """Cut the empty lines at the end of every block; the raw source is what the highlighter compares with."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.astext().rstrip("\n")
            block.children = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
