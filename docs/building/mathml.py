"""Formulas as MathML, written by docutils when the site is built: no script and no network when it is read."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError


def as_mathml(source: str, *, as_block: bool) -> str:
    """A formula of LaTeX as MathML; one that docutils does not know stops the build."""
    try:
        return tex2mathml(source, as_block=as_block)
    except MathError as problem:
        raise SphinxError(f"expected a formula that docutils can read, got {source!r}: {problem}") from problem


def visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(as_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{as_mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
