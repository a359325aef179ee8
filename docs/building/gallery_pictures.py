"""The pictures of a gallery example: every matplotlib figure that a block has left in a variable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from docutils import nodes
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

#: Colours and axes of every figure that the site draws.
STYLE = Path(__file__).with_name("matplotlibrc")
EXAMPLES = Path(__file__).resolve().parents[1] / "start" / "examples"
#: The widest picture in the gallery, in pixels.
DPI = 130


def use_style(_gallery_conf: dict[str, Any], _file: str) -> None:
    """Reset matplotlib to the figure style of the site before a program runs."""
    matplotlib.rcdefaults()
    matplotlib.rc_file(STYLE, use_default_template=False)


def figures(_block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that were not there before, in the order of their variables.

    Raises:
        ValueError: nothing is drawn in some part of a figure.
    """
    saved = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and not getattr(value, "is_in_the_gallery", False):
            value.is_in_the_gallery = True  # type: ignore[attr-defined]
            if not all(axes.has_data() for axes in value.axes):
                raise ValueError(
                    f"expected something drawn in every part of {block_vars['src_file']}, got an empty one"
                )
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, format="png", dpi=DPI)
            saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])


def name_thumbnails(_app: Sphinx, doctree: nodes.document) -> None:
    """Give every thumbnail of the gallery the title of its program as alternative text."""
    for image in doctree.findall(nodes.image):
        uri = str(image["uri"])
        if uri.endswith("_thumb.png"):
            stem = Path(uri).name.removeprefix("sphx_glr_").removesuffix("_thumb.png")
            image["alt"] = title_of(stem)


def title_of(stem: str) -> str:
    """The title of a program of the gallery.

    >>> title_of("plot_threshold")
    'Exact Turing threshold'
    """
    (program,) = EXAMPLES.glob(f"*/{stem}.py")
    return program.read_text(encoding="utf-8").splitlines()[1]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", name_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
