"""How Sphinx makes the site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from docs.building.made_pages import write_made_pages  # noqa: E402
from docs.building.reference_pages import write_reference  # noqa: E402
from docs.building.root_pages import write_root_pages  # noqa: E402
from rdgraph.version import __version__  # noqa: E402

project = "rdgraph"
author = "The rdgraph developers"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docs.building.mathml",
    "docs.building.docstrings",
    "docs.building.code_blocks",
    "docs.building.gallery_pictures",
    "docs.building.root_pages",
    "docs.building.tutorial_pages",
    "docs.building.mathematics_pictures",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["building", "start/examples", "static", "figures", "measured/figures"]
highlight_language = "none"
smartquotes = False

html_theme = "furo"
html_title = f"rdgraph {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["../build/docs-extra"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0072B2",
        "color-brand-content": "#0072B2",
        "font-stack": 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif',
    },
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_display_short_literal_types = True
maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "start/examples",
    "gallery_dirs": "generated/gallery",
    "subsection_order": [f"start/examples/{name}" for name in ("filters", "flows", "patterns", "networks", "*")],
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("docs.building.gallery_pictures.figures",),
    "reset_modules": ("docs.building.gallery_pictures.use_style",),
    "capture_repr": (),
    "thumbnail_size": (640, 400),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.csv",
    "log_level": {"backreference_missing": "info", "gallery_examples": "info"},
}

write_reference(DOCS / "generated" / "reference")
write_root_pages(DOCS / "generated")
write_made_pages(ROOT / "build" / "docs-extra", DOCS / "generated")
