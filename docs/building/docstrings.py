"""Converts docstrings, which are plain text with formulas, to reStructuredText."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

#: Code in single or double backticks, or a character that reStructuredText would take for a mark.
_PIECES = re.compile(r"(``?)(.+?)\1|[*|\\]|_(?!\w)")


def escaped(line: str) -> str:
    r"""A line in which `code` is code and every other character is itself.

    >>> escaped("`p` is -alpha*L@H, |h| <= k_(i-1)")
    '``p`` is -alpha\\*L@H, \\|h\\| <= k\\_(i-1)'
    """
    return _PIECES.sub(lambda found: f"``{found[2]}``" if found[1] else f"\\{found[0]}", line)


def rewrite(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Escape all lines but examples, in place; an example begins with >>> and ends at an empty line."""
    in_example = False
    for index, line in enumerate(lines):
        in_example = (in_example and bool(line.strip())) or line.lstrip().startswith(">>>")
        if not in_example:
            lines[index] = escaped(line)


def shorten(
    _app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    """Signatures with a default factory, which Sphinx cannot parse, get short type names and `...` as the default."""
    if signature is None or "<factory>" not in signature:
        return None
    return re.sub(r"~?(?:\w+\.)+(\w+)", r"\1", signature).replace("<factory>", "..."), returned


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", rewrite, priority=100)  # before napoleon reads the sections
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
